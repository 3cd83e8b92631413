"""Transforms of vectors and matrices, and of the parts of a tensor.

Simplices, triangular factors, correlation and positive definite matrices; `Cat` and `Stack`.
Those of single numbers come from `transform_base.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .. import errors
from ..array import dtype as dt
from ..array.size import Size
from ..core.handle import Tensor
from ..table.packets import ops
from . import constraints
from .transform_base import (
    AbsTransform,
    AffineTransform,
    ComposeTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
    Transform,
    _InverseTransform,  # noqa: F401  for programs that ask whether a transform is one
    clipped_sigmoid,
    identity_transform,
)
from .utils import tril_matrix_to_vec, vec_to_tril_matrix

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]


def _refuse(transform: Transform, what: str):
    raise errors.named(errors.BadValue, type(transform).__name__, what)


def _sized(transform: Transform, shape: Sequence[int], dims: int) -> Size:
    """A shape that must have a number of dims at least."""
    if len(shape) < dims:
        _refuse(transform, f"too few dims: {len(shape)} of {dims}")
    return Size(shape)


class _ByType(Transform):
    """A transform without arguments: equal to its likes."""

    def __eq__(self, other) -> bool:
        return type(other) is type(self)


class SoftmaxTransform(_ByType):
    """Weights proportional to exp(x) in the last dim.

    Not one to one (x + c gives the same), so without determinant: for optimisation.  `inv` is the
    logarithm.
    """

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        weights = (x - x.amax(-1, True)).exp()
        return weights / weights.sum(-1, True)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return _sized(self, shape, 1)

    inverse_shape = forward_shape


class StickBreakingTransform(_ByType):
    """n numbers as n + 1 weights: each takes its share of what the ones before have left.

    Shifted so that zeros become equal weights.
    """

    domain, codomain = constraints.real_vector, constraints.simplex
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        share = clipped_sigmoid(x - _left(x.shape[-1], x).log())
        rest = (1 - share).cumprod(-1)
        return ops.constant_pad_nd(share, [0, 1], 1) * ops.constant_pad_nd(rest, [1, 0], 1)

    def _inverse(self, y: Tensor) -> Tensor:
        y = y[..., :-1]
        rest = (1 - y.cumsum(-1)).clamp(min=dt.finfo(y.dtype).tiny)
        return y.log() - rest.log() + _left(y.shape[-1], y).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - _left(x.shape[-1], x).log()
        return (-x + ops.log_sigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        shape = _sized(self, shape, 1)
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        shape = _sized(self, shape, 1)
        return shape[:-1] + (shape[-1] - 1,)


def _left(n: int, like: Tensor) -> Tensor:
    """n, n - 1, ... 1: how many weights come after each."""
    return ops.arange(n, 0, -1, dtype=like.dtype, device=like.device)


class LowerCholeskyTransform(_ByType):
    """The lower triangle of a matrix, with exponentials on the diagonal."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_ByType):
    """L L^T with the factor L of `LowerCholeskyTransform`."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(ops.linalg_cholesky(y))


class CorrCholeskyTransform(Transform):
    """n (n - 1) / 2 numbers as the Cholesky factor of a correlation matrix.

    tanh of the numbers fills the triangle below the diagonal; each row then breaks a stick of
    length 1, measured by squares, and what is left stands on the diagonal.
    """

    domain, codomain = constraints.real_vector, constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = dt.finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), diag=-1)
        rest = (1 - r * r).sqrt().cumprod(-1)
        r = r + ops.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return r * ops.constant_pad_nd(rest[..., :-1], [1, 0], 1)

    def _inverse(self, y: Tensor) -> Tensor:
        rest = ops.constant_pad_nd((1 - (y * y).cumsum(-1))[..., :-1], [1, 0], 1)
        t = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(rest, diag=-1).sqrt()
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates=None) -> Tensor:
        # the shares of the stick have diagonal Jacobians; what is left after the first n - 2
        # columns scales the later ones
        rest = tril_matrix_to_vec(1 - (y * y).cumsum(-1), diag=-2)
        tanh = -2 * (x + ops.softplus(-2 * x) - math.log(2.0)).sum(-1)
        return 0.5 * rest.log().sum(-1) + tanh

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        shape = _sized(self, shape, 1)
        n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != shape[-1]:
            _refuse(self, f"{shape[-1]} elements fill no triangle below a diagonal")
        return shape[:-1] + (n, n)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        shape = _sized(self, shape, 2)
        if shape[-1] != shape[-2]:
            _refuse(self, f"matrices of {shape[-2]} x {shape[-1]} are not square")
        return shape[:-2] + (shape[-1] * (shape[-1] - 1) // 2,)


# --- parts ----------------------------------------------------------------------------------------


class _Parts(Transform):
    """One transform for each part of a dim; a subclass says how to cut and join."""

    _cut: Callable[[Tensor], Sequence[Tensor]]
    _join: Callable[[list[Tensor]], Tensor]

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError(f"{type(self).__name__} needs transforms")
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    bijective = property(lambda self: all(t.bijective for t in self.transforms))

    def _call(self, x: Tensor) -> Tensor:
        return self._join([t(v) for t, v in zip(self.transforms, self._cut(x))])

    def _inverse(self, y: Tensor) -> Tensor:
        return self._join([t.inv(v) for t, v in zip(self.transforms, self._cut(y))])


class CatTransform(_Parts):
    """Transforms of parts of given lengths along a dim."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0,
                 lengths: Sequence[int] | None = None, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError("CatTransform needs one length for each transform")

    event_dim = property(lambda self: max(t.event_dim for t in self.transforms))
    length = property(lambda self: sum(self.lengths))
    domain = property(lambda self: constraints.cat(
        [t.domain for t in self.transforms], self.dim, self.lengths))
    codomain = property(lambda self: constraints.cat(
        [t.codomain for t in self.transforms], self.dim, self.lengths))

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else CatTransform(
            self.transforms, self.dim, self.lengths, cache_size)

    def _cut(self, x: Tensor) -> Sequence[Tensor]:
        if not -x.ndim <= self.dim < x.ndim or x.shape[self.dim] != self.length:
            raise AssertionError(f"dim {self.dim} of shape {tuple(x.shape)} must have the size "
                                 f"{self.length} of all parts")
        return x.split_with_sizes(self.lengths, self.dim)

    def _join(self, parts: list[Tensor]) -> Tensor:
        return ops.cat(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = []
        for t, a, b in zip(self.transforms, self._cut(x), self._cut(y)):
            term = t.log_abs_det_jacobian(a, b)
            extra = self.event_dim - t.event_dim
            terms.append(term.flatten(-extra).sum(-1) if extra else term)
        dim = self.dim - x.ndim if self.dim >= 0 else self.dim
        dim += self.event_dim
        # a dim of the batch stays; one of the event was summed over in each part
        return ops.cat(terms, dim) if dim < 0 else sum(terms[1:], terms[0])


class StackTransform(_Parts):
    """Transforms of the slices of a dim."""

    domain = property(lambda self: constraints.stack([t.domain for t in self.transforms], self.dim))
    codomain = property(
        lambda self: constraints.stack([t.codomain for t in self.transforms], self.dim))

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else StackTransform(
            self.transforms, self.dim, cache_size)

    def _cut(self, x: Tensor) -> Sequence[Tensor]:
        if not -x.ndim <= self.dim < x.ndim or x.shape[self.dim] != len(self.transforms):
            raise AssertionError(f"dim {self.dim} of shape {tuple(x.shape)} must have one slice "
                                 f"for each of {len(self.transforms)} transforms")
        return x.unbind(self.dim)

    def _join(self, parts: list[Tensor]) -> Tensor:
        return ops.stack(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self._join([t.log_abs_det_jacobian(a, b)
                           for t, a, b in zip(self.transforms, self._cut(x), self._cut(y))])
