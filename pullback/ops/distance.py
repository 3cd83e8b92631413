"""Distances between points, the rows of matrices.

Euclidean distances of many points go through a product of matrices, as in PyTorch; everything else
takes differences, a slice of rows at a time.  Formulas are in `formulas/distance.py`, distances of
whole tensors in `ops/statistics.py`, losses made of distances in `ops/margin_loss.py`.
"""

from __future__ import annotations

import math

from ..array.dims import broadcast_shapes
from ..core.op import Op
from ..errors import DTypeError, ShapeError
from ..formulas.distance import (
    cdist_pullback,
    norm_of_offsets,
    offsets_between,
    pairs_of,
    pdist_pullback,
)
from ..table.packets import ops
from .kinds import Free, InFunctional, Keeping
from .layout import in_front, pad_rank
from .pointwise import refuse, title

MODES = {0: "if_necessary", 1: "always", 2: "never"}
MANY = 25  # from more rows than this on, Euclidean distances go through a product of matrices
SLICE = 1 << 18  # elements of differences that are held at a time


def _norms(xp, offset, p: float):
    """p-norms along the last axis."""
    if p == 0:
        count = (offset != 0).sum(axis=-1).astype(offset.dtype)
        return xp.where(xp.isnan(offset).any(axis=-1), math.nan, count).astype(offset.dtype)
    if p == 2:
        return xp.sqrt((offset * offset).sum(axis=-1))
    size = xp.abs(offset)
    if p == 1:
        return size.sum(axis=-1)
    if math.isinf(p):
        if not size.shape[-1]:
            return xp.zeros(size.shape[:-1], dtype=size.dtype)
        return size.max(axis=-1)
    return (size**p).sum(axis=-1) ** (1 / p)


def _check_cdist(x1, x2, p) -> None:
    """What PyTorch checks before it looks at values."""
    for name, x in (("X1", x1), ("X2", x2)):
        if x.ndim < 2:
            raise ShapeError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
    if x1.shape[-1] != x2.shape[-1]:
        raise ShapeError("X1 and X2 must have the same number of columns. "
                         f"X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    for name, x in (("X1", x1), ("X2", x2)):
        if x.dtype.kind not in "fV":
            raise DTypeError(f"cdist only supports floating-point dtypes, {name} got: "
                             f"{title(x.dtype)}")
    if not p >= 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if x1.dtype != x2.dtype:
        raise DTypeError(f"expected scalar type {title(x1.dtype)} but found {title(x2.dtype)}")


def _cdist_shape(x1, x2) -> tuple[int, ...]:
    for x, which in ((x1, "X1"), (x2, "X2")):
        if x.ndim < 2:
            raise ShapeError(f"cdist only supports at least 2D tensors, {which} got: {x.ndim}D")
    return (*broadcast_shapes(x1.shape[:-2], x2.shape[:-2]), x1.shape[-2], x2.shape[-2])


def _by_product(x1, x2, p, compute_mode) -> bool:
    """Whether Euclidean distances are taken from |x|^2 - 2 x y + |y|^2."""
    mode = 0 if compute_mode is None else compute_mode
    if mode not in MODES:
        raise RuntimeError(f"possible modes: 0, 1, 2, but was: {mode}")
    large = x1.shape[-2] > MANY or x2.shape[-2] > MANY
    return p == 2 and (mode == 1 or (mode == 0 and large))


def _square_parts(xp, x1, x2):
    """|x|^2 - 2 x y + |y|^2 as one product of matrices."""
    first, second = (x1 * x1).sum(axis=-1, keepdims=True), (x2 * x2).sum(axis=-1, keepdims=True)
    left = xp.concatenate([-2 * x1, first, xp.ones_like(first)], axis=-1)
    right = xp.concatenate([x2, xp.ones_like(second), second], axis=-1)
    return xp.matmul(left, xp.swapaxes(right, -1, -2))


class _euclidean_dist(Op):
    """Euclidean distances of all rows of x1 and x2, by way of a product of matrices."""
    schema = "_euclidean_dist(Tensor x1, Tensor x2) -> Tensor"
    same_dtype = ("x1", "x2")
    grad = {"x1, x2": "euclidean_pullback(grad, x1, x2, result, grad_input_mask)"}
    push = "euclidean_push(x1_p, x1_t, x2_p, x2_t, result)"
    cost = "heavy"
    method = False

    def run(xp, x1, x2):
        if x1.dtype.kind in "biu":
            raise DTypeError(f"result type Float can't be cast to the desired output type "
                             f"{title(x1.dtype)}")
        _cdist_shape(x1, x2)
        return xp.sqrt(xp.maximum(_square_parts(xp, x1, x2), 0))

    def shape(x1, x2):
        return _cdist_shape(x1, x2)

    def batch(n, batched, x1, x2):
        rank = max(x1.ndim - batched[0], x2.ndim - batched[1])
        x1, x2 = in_front(x1, batched[0], n), in_front(x2, batched[1], n)
        return ops._euclidean_dist(pad_rank(x1, rank), pad_rank(x2, rank))

    def decomp(x1, x2):
        first, second = (x1 * x1).sum(-1, True), (x2 * x2).sum(-1, True)
        left = ops.cat([-2 * x1, first, ops.ones_like(first)], -1)
        right = ops.cat([x2, ops.ones_like(second), second], -1)
        return left.matmul(right.mT).clamp(min=0).sqrt()

    def samples(s):
        yield s(s.real(3, 2), s.real(4, 2))
        yield s(s.real(2, 1, 3, 2), s.real(3, 4, 2))
        yield s(s.real(0, 2), s.real(4, 2))


class _cdist_forward(Keeping):
    """p-norm distances of all rows of x1 and x2."""
    schema = "_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor"
    intensive = True
    core = True
    grad = {"x1": "_cdist_backward(grad, x1, x2, p, result)",
            "x2": "_cdist_backward(grad.mT, x2, x1, p, result.mT)"}
    push = "cdist_push(x1_p, x1_t, x2_p, x2_t, p, result)"
    cost = "heavy"
    method = False

    def run(xp, x1, x2, p, compute_mode):
        _check_cdist(x1, x2, p)
        shape = _cdist_shape(x1, x2)
        by_product = _by_product(x1, x2, p, compute_mode)
        if x1.dtype.itemsize < 4:
            refuse("cdist", x1, "fV")
        if by_product:
            return xp.sqrt(xp.maximum(_square_parts(xp, x1, x2), 0))
        out = xp.zeros(shape, dtype=x1.dtype)
        step = max(SLICE * x1.shape[-2] // max(math.prod(shape) * x1.shape[-1], 1), 1)
        for start in range(0, x1.shape[-2] if out.size else 0, step):
            part = x1[..., start : start + step, :]
            offset = xp.expand_dims(part, -2) - xp.expand_dims(x2, -3)
            out[..., start : start + step, :] = _norms(xp, offset, p)
        return out

    def shape(x1, x2, p, compute_mode):
        _check_cdist(x1, x2, p)
        return _cdist_shape(x1, x2)

    def dtype(x1, x2, p, compute_mode):
        return x1.dtype

    def batch(n, batched, x1, x2, p, compute_mode):
        rank = max(x1.ndim - batched[0], x2.ndim - batched[1])
        x1, x2 = in_front(x1, batched[0], n), in_front(x2, batched[1], n)
        return ops._cdist_forward(pad_rank(x1, rank), pad_rank(x2, rank), p, compute_mode)

    def decomp(x1, x2, p, compute_mode):
        if _by_product(x1, x2, p, compute_mode):
            return ops._euclidean_dist(x1, x2)
        return norm_of_offsets(offsets_between(x1, x2), p)

    def samples(s):
        apart = [[0.0, 1.0], [2.5, 3.0]], [[1.0, 2.5], [4.0, 0.2], [-1.0, 1.8]]
        for p in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, math.inf):
            yield s(s.values(apart[0]), s.values(apart[1]), p, None)
        yield s(s.real(2, 1, 3, 2), s.real(3, 4, 2), 2.0, 2)
        yield s(s.real(3, 2), s.real(4, 2), 2.0, 1)
        yield s(s.real(0, 2), s.real(4, 2), 1.0, None)
        yield s(s.real(2, 0), s.real(4, 0), 2.0, None)
        yield s(s.real(2, 3).T, s.real(2, 4).T, 3.0, None)


class _cdist_backward(Free):
    """Gradient of `_cdist_forward` with respect to x1."""
    schema = ("_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist)"
              " -> Tensor")
    same_dtype = ("grad", "x1", "x2", "cdist")
    compose = cdist_pullback

    def samples(s):
        yield s(s.real(3, 4), s.real(3, 2), s.real(4, 2), 2.0, s.real(3, 4, low=0.5))
        yield s(s.real(3, 4), s.real(3, 2), s.real(4, 2), 3.0, s.real(3, 4, low=0.5))


class cdist(Free):
    """p-norm distances of all rows of x1 and x2; leading dims broadcast."""
    schema = "cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor"
    autocast = "float32"

    def compose(x1, x2, p, compute_mode):
        _check_cdist(x1, x2, p)
        small = x1.dtype.itemsize < 4
        if _by_product(x1, x2, p, compute_mode) and not small and x1.shape[-1]:
            return ops._euclidean_dist(x1, x2)
        return ops._cdist_forward(x1, x2, p, compute_mode)

    def samples(s):
        yield s(s.real(3, 2), s.real(4, 2))
        yield s(s.real(27, 2), s.real(2, 4, 2))
        yield s(s.real(3, 2), s.real(4, 2), 1.0)


class _pdist_forward(Keeping):
    """p-norm distances of all pairs of rows."""
    schema = "_pdist_forward(Tensor self, float p=2.) -> Tensor"
    core = True
    grad = {"self": "_pdist_backward(grad, self, p, result)"}
    push = "pdist_push(self_p, self_t, p, result)"
    cost = "heavy"
    method = False
    dtype = "self.dtype"

    def run(xp, self, p):
        refuse("pdist", self, "fVbiuc" if self.dtype.itemsize < 4 else "biuc")
        if self.ndim != 2:
            raise ShapeError(f"pdist only supports 2D tensors, got: {self.ndim}D")
        n = self.shape[0]
        first, second = xp.triu_indices(n, 1)
        out = xp.zeros(len(first), dtype=self.dtype)
        step = max(SLICE // max(self.shape[1], 1), 1)
        for start in range(0, len(first), step):
            part = slice(start, start + step)
            out[part] = _norms(xp, self[first[part]] - self[second[part]], p)
        return out

    def shape(self, p):
        n = self.shape[0]
        return (n * (n - 1) // 2 if n else 0,)

    def batch(n, batched, self, p):
        first, second = pairs_of(self.shape[1], self.device)
        first, second = self.index_select(1, first), self.index_select(1, second)
        apart = ops._cdist_forward(first.unsqueeze(-2), second.unsqueeze(-2), p, None)
        return apart.reshape((n, first.shape[1]))  # whose gradient is 0 where points coincide

    def decomp(self, p):
        first, second = pairs_of(self.shape[0], self.device)
        return norm_of_offsets(self.index_select(0, first) - self.index_select(0, second), p)

    def samples(s):
        apart = [[0.0, 1.0, -1.2], [2.5, 3.0, 0.4], [1.0, 2.0, 1.1], [-1.0, 0.3, 2.2]]
        for p in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, math.inf):
            yield s(s.values(apart), p)
        yield s(s.real(1, 3))
        yield s(s.real(0, 3))
        yield s(s.real(3, 0))
        yield s(s.real(3, 4).T, 2.0)


class _pdist_backward(Free):
    """Gradient of `_pdist_forward`."""
    schema = "_pdist_backward(Tensor grad, Tensor self, float p, Tensor pdist) -> Tensor"
    same_dtype = ("grad", "self", "pdist")
    compose = pdist_pullback

    def samples(s):
        yield s(s.real(3), s.real(3, 2), 2.0, s.real(3, low=0.5))
        yield s(s.real(3), s.real(3, 2), 1.5, s.real(3, low=0.5))


class pdist(InFunctional, Free):
    """p-norm distances of all pairs of rows of a matrix."""
    schema = "pdist(Tensor self, float p=2.) -> Tensor"

    def compose(self, p):
        if self.ndim != 2:
            raise ShapeError(f"pdist only supports 2D tensors, got: {self.ndim}D")
        if not self.dtype.is_floating_point:
            raise DTypeError("pdist only supports floating-point dtypes, got: "
                             f"{title(self.dtype)}")
        if not p >= 0:
            raise RuntimeError("pdist only supports non-negative p values")
        return ops._pdist_forward(self, p)

    samples = lambda s: [s(s.real(4, 3)), s(s.real(4, 3), 1.0)]
