"""Normalisation and distances."""

from __future__ import annotations

from ...array.dims import numel
from ...core.handle import Tensor
from ...table.packets import ops
from ...tensor.overridable import asks_in as _asks_in
from ...tensor.overridable import overridable as _overridable
from ...tensor.overridable import taken_over as _taken_over
from ...threads.state import state

_asks = _asks_in(globals())


def layer_norm(input: Tensor, normalized_shape, weight: Tensor | None = None,
               bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """Zero mean and unit variance over the last dims, then scale and shift."""
    if _asks and (taken := _taken_over(layer_norm, locals())):
        return taken[0]
    if state.observers.trace is not None:  # a capture that shows operators as users call them
        return ops.layer_norm(input, list(normalized_shape), weight, bias, eps)
    return ops.native_layer_norm(input, list(normalized_shape), weight, bias, eps)[0]


def rms_norm(input: Tensor, normalized_shape, weight: Tensor | None = None,
             eps: float | None = None) -> Tensor:
    """Division by the root mean square over the last dims, then scale."""
    if _asks and (taken := _taken_over(rms_norm, locals())):
        return taken[0]
    return ops.rms_norm(input, list(normalized_shape), weight, eps)


def _check_several(size, found: int, what: str) -> None:
    """One value alone has no variance."""
    if found == 1:
        raise ValueError(f"Expected more than 1 {what} when training, got input size {size}")


def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
               weight: Tensor | None = None, bias: Tensor | None = None, training: bool = False,
               momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """Zero mean and unit variance of each channel (dim 1), then scale and shift."""
    if _asks and (taken := _taken_over(batch_norm, locals())):
        return taken[0]
    if training and input.ndim:
        _check_several(input.shape, numel((input.shape[0], *input.shape[2:])), "value per channel")
    return ops.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps,
                          False)


def instance_norm(input: Tensor, running_mean: Tensor | None = None,
                  running_var: Tensor | None = None, weight: Tensor | None = None,
                  bias: Tensor | None = None, use_input_stats: bool = True,
                  momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """Zero mean and unit variance of each channel of each example, then scale and shift."""
    if _asks and (taken := _taken_over(instance_norm, locals())):
        return taken[0]
    if use_input_stats:
        _check_several(input.shape, numel(input.shape[2:]), "spatial element")
    return ops.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats,
                             momentum, eps, False)


def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None,
               bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """Zero mean and unit variance of each group of channels, then scale and shift."""
    if _asks and (taken := _taken_over(group_norm, locals())):
        return taken[0]
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received "
                           f"{input.ndim}")
    if num_groups > 0:
        rows = input.shape[0] * input.shape[1] // num_groups
        _check_several([rows, num_groups, *input.shape[2:]], numel((rows, *input.shape[2:])),
                       "value per channel")
    return ops.group_norm(input, num_groups, weight, bias, eps)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75,
                        k: float = 1.0) -> Tensor:
    """Division by a power of the mean square of the `size` nearest channels."""
    if _asks and (taken := _taken_over(local_response_norm, locals())):
        return taken[0]
    if input.ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.ndim} "
                         "dimensions)")
    if input.numel() == 0:
        return input
    ends = [0, 0] * (input.ndim - 2) + [size // 2, (size - 1) // 2]
    squares = ops.constant_pad_nd(input * input, ends, 0)
    return input / (squares.unfold(1, size, 1).mean(-1) * alpha + k) ** beta


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12,
              out: Tensor | None = None) -> Tensor:
    """Vectors along `dim` divided by their p-norm."""
    if _asks and (taken := _taken_over(normalize, locals())):
        return taken[0]
    dims = [dim] if isinstance(dim, int) else list(dim)
    norms = ops.linalg_vector_norm(input, p, dims, True).clamp_min(eps).expand_as(input)
    return input / norms if out is None else ops.div(input, norms, out=out)


@_overridable
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Cosine of the angle between vectors along `dim`."""
    return ops.cosine_similarity(x1, x2, dim, eps)


@_overridable
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6,
                      keepdim: bool = False) -> Tensor:
    """p-norm of the difference of vectors along the last dim."""
    return ops.pairwise_distance(x1, x2, p, eps, keepdim)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """p-norm distances of all pairs of rows."""
    if _asks and (taken := _taken_over(pdist, (input, p))):
        return taken[0]
    return ops.pdist(input, p)
