"""Logical reductions, and counts over dims: any, all, count_nonzero."""

from __future__ import annotations

from ..array import dtype as dt
from ..array.dims import wrap_dims
from ..core.op import Reduction
from ..table.packets import ops
from .batching import dims
from .reduce import one_dim, reduced, rows


def _truth_dtype(self):
    return dt.uint8 if self.dtype is dt.uint8 else dt.bool_


def _truth(xp, function: str, self, dim, keepdim, *, empty_is_all: bool = True):
    axes = wrap_dims(dim, self.ndim, empty_is_all=empty_is_all)
    out = getattr(xp, function)(self, axis=axes, keepdims=keepdim)
    return xp.asarray(out, dtype=xp.uint8 if dt.name_of(self.dtype) == "uint8" else xp.bool_)


def _none_false(self, dim, keepdim):
    """`all` by `any`: no element is zero."""
    out = ops.any(self.logical_not(), dim, keepdim).logical_not()
    return out.to(dt.uint8) if self.dtype is dt.uint8 else out


def _truth_samples(s):
    yield s(s.bool(3, 4), 1)
    yield s(s.bool(3, 4), -2, True)
    yield s(s.int(3, 4, low=0, high=2), 0)
    yield s(s.real(3, 4), 0)
    yield s(s.bool(), 0)
    yield s(s.bool(0, 3), 0)


def _truth_samples_dims(s):
    yield s(s.bool(2, 3, 2), [0, 2])
    yield s(s.bool(2, 3, 2), [1, -1], True)
    yield s(s.bool(3, 4), None)


def _truth_samples_all(s):
    yield s(s.bool(3, 4))
    yield s(s.int(3, 4, low=0, high=2))
    yield s(s.real(0, 3))
    yield s(s.bool())


class _Truth(Reduction):
    out = ("exact", "uint8")
    nondiff = ("self",)
    complex = True


class _TruthOfAll(_Truth):
    """Of all elements."""

    writing = "all_out"
    shape = "()"
    dtype = _truth_dtype
    samples = _truth_samples_all

    @classmethod
    def run(cls, xp, self):
        return _truth(xp, cls.base_name, self, None, False)

    @classmethod
    def batch(cls, n, batched, self):
        return getattr(rows(n, self), cls.base_name)(1)


class _TruthAlong(_Truth):
    """Along a dim."""

    shape = lambda self, dim, keepdim: reduced(self.shape, dim, keepdim)
    dtype = lambda self, dim, keepdim: _truth_dtype(self)
    batch = dims("dim")
    samples = _truth_samples

    @classmethod
    def run(cls, xp, self, dim, keepdim):
        return _truth(xp, cls.base_name, self, dim, keepdim)


class _TruthOver(_Truth):
    """Over some dims; an empty list reduces nothing."""

    shape = lambda self, dim, keepdim: reduced(self.shape, dim, keepdim, empty_is_all=False)
    dtype = lambda self, dim, keepdim: _truth_dtype(self)
    samples = _truth_samples_dims

    @classmethod
    def run(cls, xp, self, dim, keepdim):
        return _truth(xp, cls.base_name, self, dim, keepdim, empty_is_all=False)

    @classmethod
    def batch(cls, n, batched, self, dim, keepdim):
        return _batched_truth(getattr(ops, cls.base_name), self, dim, keepdim)


class _Any:
    """Whether there is one."""

    lower = "shape.reduction('any')"
    core = True


class _All:
    """Whether there is no other."""

    lower = "shape.reduction('all')"

    def decomp(self, dim=None, keepdim=False):
        return _none_false(self, dim, keepdim)


class any_default(_Any, _TruthOfAll):
    """Whether any element is nonzero."""
    schema = "any(Tensor self) -> Tensor"


class any_dim(_Any, _TruthAlong):
    """Whether any element along a dim is nonzero."""
    schema = "any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor"


class any_dims(_Any, _TruthOver):
    """Whether any element over some dims is nonzero; an empty list reduces nothing."""
    schema = "any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor"


class all_default(_All, _TruthOfAll):
    """Whether all elements are nonzero."""
    schema = "all(Tensor self) -> Tensor"


class all_dim(_All, _TruthAlong):
    """Whether all elements along a dim are nonzero."""
    schema = "all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor"


class all_dims(_All, _TruthOver):
    """Whether all elements over some dims are nonzero; an empty list reduces nothing."""
    schema = "all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor"


def _batched_truth(op, self, dim, keepdim):
    """any or all over several dims of every example; None means all of them."""
    over = wrap_dims(dim, self.ndim - 1, empty_is_all=False)
    return op(self, [d + 1 for d in over], keepdim)


class _Count(Reduction):
    nondiff = ("self",)
    shape = lambda self, dim: reduced(self.shape, dim, False)
    dtype = dt.int64
    complex = True

    def run(xp, self, dim):
        axes = wrap_dims(dim, self.ndim)
        return xp.sum(xp.not_equal(self, 0), axis=axes, dtype=xp.int64)


class count_nonzero_dim_IntList(_Count):
    """How many elements over some dims are not zero."""
    schema = "count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor"
    batch = dims("dim")

    def decomp(self, dim):
        return ops.sum(self != 0, dim)

    samples = lambda s: [s(s.int(2, 3, 2, low=0, high=3), [0, -1]), s(s.real(3, 4), [1])]


class count_nonzero_default(_Count):
    """How many elements are not zero, of all or along one dim."""
    schema = "count_nonzero(Tensor self, int? dim=None) -> Tensor"

    def batch(n, batched, self, dim):
        x, over = one_dim(n, self, dim)
        return ops.count_nonzero(x, over)

    def decomp(self, dim=None):
        return ops.sum(self != 0, None if dim is None else [dim])

    def samples(s):
        yield s(s.int(3, 4, low=0, high=3))
        yield s(s.int(3, 4, low=0, high=3), -1)
        yield s(s.real())
