"""Helpers that all distributions share: broadcasting, probabilities and logits, lazy attributes.

Read next: `base.py`, which uses them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from numbers import Number

from .. import errors
from ..array import dtype as dt
from ..autograd.grad_mode import enable_grad
from ..core.handle import Tensor
from ..creation import broadcast_tensors, tensor
from ..interp.box import Wrapped
from ..interp.trace import Traced
from ..memory.reading import concrete
from ..overrides import is_tensor_like
from ..table.packets import ops
from ..threads.state import in_passing

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant = 0.57721566490153286060


def broadcast_all(*values: Tensor | float) -> tuple[Tensor, ...]:
    """Tensors and numbers as tensors of one shape; numbers take the dtype of the first tensor."""
    for value in values:
        if not (isinstance(value, Number) or is_tensor_like(value)):
            raise errors.named(errors.BadValue, "broadcast_all",
                               f"expected tensors and numbers, got {type(value).__name__}")
    first = next((v for v in values if is_tensor_like(v)), None)
    kind = {"dtype": dt.default()} if first is None else {"dtype": first.dtype,
                                                          "device": first.device}
    values = [v if is_tensor_like(v) else tensor(v, **kind) for v in values]
    if all(v.shape == values[0].shape for v in values):
        return tuple(values)
    return tuple(broadcast_tensors(*values))


@in_passing
def everywhere(test: Tensor) -> bool:
    """Does a test hold for every element, and for every example under `vmap`?

    While a function is being captured there are no values: then the answer is yes.
    """
    try:
        return _all_of(test, "the check of a distribution's arguments")
    except errors.DataDependentError:
        return True


def surely(test: Tensor, what: str) -> bool:
    """The same where the answer decides what is computed: a capture without values refuses."""
    return _all_of(test, what)


def _all_of(test: Tensor, what: str) -> bool:
    while isinstance(test._payload, Wrapped) and not isinstance(test._payload, Traced):
        test = test._payload.inner
    return bool(concrete(test, what).all())


def _standard_normal(shape, dtype, device) -> Tensor:
    return ops.empty(shape, dtype=dtype, device=device).normal_()


def uniform(shape, like: Tensor, low: float, high: float) -> Tensor:
    """Numbers evenly spread over [low, high), of a tensor's dtype."""
    return ops.empty(shape, dtype=like.dtype, device=like.device).uniform_(low, high)


def rand(shape, like: Tensor) -> Tensor:
    """Numbers evenly spread over [0, 1), of a tensor's dtype."""
    return ops.rand(shape, dtype=like.dtype, device=like.device)


def at_least(value: Tensor, low: float) -> Tensor:
    """Numbers below a bound raised to it; their derivatives stay as they are."""
    still = value.detach()
    return ops.where(still < low, value - still + low, value)


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last `dim` dims."""
    return value.flatten(-dim).sum(-1) if dim else value


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of log odds (`is_binary`), or of log weights in the last dim."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities kept away from 0 and 1 by the precision of their dtype."""
    eps = dt.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log odds (`is_binary`), or logarithms, of probabilities kept away from 0 and 1."""
    probs = clamp_probs(probs)
    return probs.log() - (-probs).log1p() if is_binary else probs.log()


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """-log of the probability of `target` ones, given log odds."""
    return ops.binary_cross_entropy_with_logits(logits, target, reduction=0)


class lazy_property:
    """A property that is computed once, when first asked for, and recorded for gradients.

    The value then stands in the instance's dict, where it can also be set beforehand.
    """

    def __init__(self, wrapped: Callable) -> None:
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)

    def __get__(self, instance, owner=None):
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property, property):
    """What a class gives for a lazy property: it is one, and documentation tools see a property."""

    def __init__(self, wrapped: Callable) -> None:
        property.__init__(self, wrapped)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements on and below a diagonal of matrices, row by row."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise errors.named(errors.BadValue, "tril_matrix_to_vec",
                           f"diag ({diag}) must lie in [{-n}, {n - 1}]")
    rows, columns = ops.tril_indices(n, n, offset=diag, device=mat.device).unbind()
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The matrices whose elements on and below a diagonal are given row by row, else zero."""
    size, n = vec.shape[-1], max(-diag, 0)
    while (held := _tril_size(n, diag)) < size:
        n += 1
    if held != size:
        raise errors.named(errors.BadValue, "vec_to_tril_matrix",
                           f"{size} elements fill no square matrix up to diagonal {diag}")
    rows, columns = ops.tril_indices(n, n, offset=diag, device=vec.device).unbind()
    blank = ops.zeros((*vec.shape[:-1], n * n), dtype=vec.dtype, device=vec.device)
    index = (rows * n + columns).expand(vec.shape)
    return blank.scatter(-1, index, vec).reshape((*vec.shape[:-1], n, n))


def _tril_size(n: int, diag: int) -> int:
    """How many elements an n x n matrix has on and below a diagonal."""
    below = n + min(diag, 0)
    above = max(n - max(diag, 0) - 1, 0)
    return below * (below + 1) // 2 if diag <= 0 else n * n - above * (above + 1) // 2
