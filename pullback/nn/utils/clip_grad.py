"""Gradients made smaller before a step: by their common norm, or element by element."""

from __future__ import annotations

import types
import warnings
from collections.abc import Iterable

from ...autograd.grad_mode import no_grad
from ...core.handle import Tensor
from ...parts.trees import has_parts
from ...table.packets import ops
from ...threads.state import fast


def _listed(tensors: Iterable[Tensor] | Tensor) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _numbers(tensors: list[Tensor]) -> list[Tensor]:
    """Of sparse gradients their values, those of one place added up."""
    if not fast["PARTS"]:
        return tensors
    return [t.own_values() if has_parts(t) else t for t in tensors]


def _by_kind(tensors: list[Tensor]) -> list[list[Tensor]]:
    """Tensors of one device and dtype together, as PyTorch orders them."""
    groups: dict = {}
    for tensor in _numbers(tensors):
        groups.setdefault((tensor.device, tensor.dtype), []).append(tensor)
    return list(groups.values())


def get_total_norm(tensors: Iterable[Tensor] | Tensor, norm_type: float = 2.0,
                   error_if_nonfinite: bool = False, foreach: bool | None = None) -> Tensor:
    """The norm of all tensors as one vector."""
    tensors, norm_type = _listed(tensors), float(norm_type)
    if not tensors:
        return ops.zeros([])
    with no_grad():
        norms, groups = [], _by_kind(tensors)
        for group in groups:
            if foreach is False:
                norms += [ops.linalg_vector_norm(tensor, norm_type) for tensor in group]
            else:
                norms += ops._foreach_norm(group, norm_type)
        if len(groups) > 1:
            norms = [n.to(tensors[0].device) for n in norms]
        total = ops.linalg_vector_norm(ops.stack(norms), norm_type)
        if error_if_nonfinite and bool(ops.logical_or(total.isnan(), total.isinf())):
            raise RuntimeError(
                f"The total norm of order {norm_type} for gradients from `parameters` is "
                "non-finite, so it cannot be clipped. To disable this error and scale the "
                "gradients by the non-finite norm anyway, set `error_if_nonfinite=False`")
    return total


def clip_grads_with_norm_(parameters: Iterable[Tensor] | Tensor, max_norm: float,
                          total_norm: Tensor, foreach: bool | None = None) -> None:
    """Scale gradients down so that a norm that is known becomes at most `max_norm`."""
    grads = [p.grad for p in _listed(parameters) if p.grad is not None]
    with no_grad():
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for group in _by_kind(grads):
            there = factor.to(group[0].device)
            if foreach is False:
                for grad in group:
                    grad.mul_(there)
            else:
                ops._foreach_mul_(group, there)


def clip_grad_norm_(parameters: Iterable[Tensor] | Tensor, max_norm: float,
                    norm_type: float = 2.0, error_if_nonfinite: bool = False,
                    foreach: bool | None = None) -> Tensor:
    """Scale gradients down to a common norm of at most `max_norm`; gives the norm they had."""
    lazy = isinstance(parameters, types.GeneratorType)
    parameters = _listed(parameters)
    if lazy and not parameters:
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.",
                      stacklevel=2)
    grads = [p.grad for p in parameters if p.grad is not None]
    total = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(parameters: Iterable[Tensor] | Tensor, max_norm: float,
                   norm_type: float = 2.0, error_if_nonfinite: bool = False,
                   foreach: bool | None = None) -> Tensor:
    """The old name of `clip_grad_norm_`."""
    warnings.warn("`torch.nn.utils.clip_grad_norm` is now deprecated in favor of "
                  "`torch.nn.utils.clip_grad_norm_`.", FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Iterable[Tensor] | Tensor, clip_value: float,
                     foreach: bool | None = None) -> None:
    """Cut gradients off at plus and minus `clip_value`."""
    bound = float(clip_value)
    grads = [p.grad for p in _listed(parameters) if p.grad is not None]
    with no_grad():
        for group in _by_kind(grads):
            if foreach is False:
                for grad in group:
                    grad.clamp_(-bound, bound)
            else:
                ops._foreach_clamp_min_(group, -bound)
                ops._foreach_clamp_max_(group, bound)


_get_total_norm, _clip_grads_with_norm_ = get_total_norm, clip_grads_with_norm_
