"""Extremes and where they are: amax, max, argmax, median."""

from __future__ import annotations

import math
from collections.abc import Callable

from ..array import dtype as dt
from ..array.dims import wrap_dim, wrap_dims
from ..array.xp import picked
from ..core.op import Reduction
from ..table.packets import ops
from .batching import dims, of_overload
from .kinds import Synonym
from .pointwise import refuse
from .reduce import check_size, extremes, extremes_of_all, one_dim, reduced, rows, spaced


def _extreme(name: str, xp, self, dim, keepdim):
    refuse(f"{name}_cpu", self, "c")
    check_size(name, self.shape, dim)
    function = xp.max if name.endswith("max") else xp.min
    return function(self, axis=wrap_dims(dim, self.ndim), keepdims=keepdim)


class _OfTwo(Synonym):
    tags = ("pointwise",)
    samples = lambda s: [s(s.real(3, 4), s.real(4))]


class max_other(_OfTwo):
    """The larger of two elements."""
    schema = "max.other(Tensor self, Tensor other) -> Tensor"
    same_as = "maximum"


class min_other(_OfTwo):
    """The smaller of two elements."""
    schema = "min.other(Tensor self, Tensor other) -> Tensor"
    same_as = "minimum"


class _Max:
    lower = "shape.reduction('max')"


class _Min:
    lower = "shape.reduction('min')"


class Extreme(Reduction):
    """Extremes over some dims; ties share the gradient."""

    core = True
    grad = {"self": "extreme_pullback(grad, self, result, dim, keepdim)"}
    push = "extreme_push(self_p, self_t, result, dim, keepdim)"
    shape = lambda self, dim, keepdim: reduced(self.shape, dim, keepdim)
    batch = dims("dim")

    @classmethod
    def run(cls, xp, self, dim, keepdim):
        return _extreme(cls.base_name, xp, self, dim, keepdim)

    def samples(s):
        yield s(spaced(s, 3, 4))
        yield from extremes(s)
        yield s(spaced(s, 2, 3, 2), [0, -1])
        yield s(spaced(s, 2, 3, 2), [1, 2], True)


class amax(_Max, Extreme):
    """Largest elements over some dims; ties share the gradient."""
    schema = "amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor"


class amin(_Min, Extreme):
    """Smallest elements over some dims; ties share the gradient."""
    schema = "amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor"


class aminmax(Reduction):
    """Smallest and largest elements, of all or along one dim."""
    schema = ("aminmax(Tensor self, *, int? dim=None, bool keepdim=False)"
              " -> (Tensor min, Tensor max)")
    grad = {"self": "aminmax_pullback(grad_min, grad_max, self, min, max, dim, keepdim)"}
    push = {"min": "extreme_push(self_p, self_t, min, dim, keepdim)",
            "max": "extreme_push(self_p, self_t, max, dim, keepdim)"}
    out = ("exact",)
    shape = lambda self, dim, keepdim: [reduced(self.shape, dim, keepdim)] * 2
    dtype = "[self.dtype, self.dtype]"

    def run(xp, self, dim, keepdim):
        refuse("aminmax_cpu", self, "c")
        if dim is None and 0 in self.shape:
            raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the "
                               "operation has no identity.")
        check_size("aminmax", self.shape, dim)
        axes = wrap_dims(dim, self.ndim)
        return (xp.min(self, axis=axes, keepdims=keepdim),
                xp.max(self, axis=axes, keepdims=keepdim))

    def batch(n, batched, self, dim, keepdim):
        x, over = one_dim(n, self, dim)
        shape = (n, *reduced(self.shape[1:], dim, keepdim))
        return tuple(out.reshape(shape) for out in ops.aminmax(x, dim=over))

    def decomp(self, dim=None, keepdim=False):
        over = [] if dim is None else [dim]
        return ops.amin(self, over, keepdim), ops.amax(self, over, keepdim)

    def samples(s):
        yield s(spaced(s, 3, 4))
        yield s(spaced(s, 3, 4), dim=1)
        yield s(spaced(s, 4, 3).T, dim=-2, keepdim=True)
        yield s(s.real(), dim=0)


def _extreme_along(name: str, xp, self, dim, keepdim):
    """(values, indices) of the extremes along a dim: the first of equals, or the first NaN."""
    refuse(f"{name}_cpu", self, "c")
    check_size(name, self.shape, dim)
    dim = wrap_dim(dim, self.ndim)
    if self.ndim == 0:
        return self.copy(), xp.zeros((), dtype=xp.int64)
    find = xp.argmax if name == "max" else xp.argmin
    indices = find(self, axis=dim, keepdims=True)
    values = picked(xp, self, indices, dim)
    return kept_or_squeezed(xp, values, xp.asarray(indices, dtype=xp.int64), dim, keepdim)


def kept_or_squeezed(xp, values, indices, dim: int, keepdim: bool):
    """Values and indices along a dim of size one, with that dim or without."""
    if keepdim:
        return values, indices
    return xp.squeeze(values, axis=dim), xp.squeeze(indices, axis=dim)


class OfAll(Reduction):
    """One of all elements; ties share the gradient."""

    grad = {"self": "evenly_pullback(grad, self, result)"}
    push = "evenly_push(self_p, self_t, result)"
    shape = "()"
    samples = extremes_of_all


def _of_rows(extreme, self):
    """The extreme of each row; its NaN share the gradient, as those of one example do, and an
    infinite gradient reaches nothing but the extremes, though it is multiplied by shares."""
    if not self.is_floating_point() or not self.requires_grad:
        return extreme(self, [1])
    odd = self.isnan()
    mean = self.masked_fill(odd.logical_not(), 0).sum([1]) / odd.sum([1])
    known = self.masked_fill(odd, 0)
    others = known != extreme(known, [1], True)
    known = known.masked_fill(others, math.inf if extreme is ops.amin else -math.inf)
    return ops.where(odd.any(1), mean, extreme(known, [1]))


class Places(Reduction):
    """Values found along a dim, and where they are."""

    grad = {"self": "selected_pullback(grad, self.shape, indices, dim, keepdim)"}
    push = {"values": "selected_push(self_t, indices, dim, keepdim)"}
    diff_outputs = (True, False)
    shape = lambda self, dim, keepdim: [reduced(self.shape, dim, keepdim)] * 2
    dtype = "[self.dtype, dt.int64]"
    batch = dims("dim")
    samples = extremes


class ExtremeAlong(Places):
    """Largest or smallest elements along a dim, by the operator's name."""

    core = True

    @classmethod
    def run(cls, xp, self, dim, keepdim):
        return _extreme_along(cls.base_name, xp, self, dim, keepdim)


class ExtremeOfAll(OfAll):
    """The largest or smallest of all elements, by the operator's name."""

    writing = "unary_out"
    out = ("castable",)

    @classmethod
    def run(cls, xp, self):
        return _extreme(cls.base_name, xp, self, None, False)

    @classmethod
    def batch(cls, n, batched, self):
        return _of_rows(getattr(ops, f"a{cls.base_name}"), rows(n, self))

    @classmethod
    def decomp(cls, self):
        return getattr(ops, f"a{cls.base_name}")(self, [])


class max_dim(ExtremeAlong):
    """Largest elements along a dim, and where they are."""
    schema = "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)"
    native = "max_along"
    writing = "dim_max"
    lower = "scan.place('max', True)"


class min_dim(ExtremeAlong):
    """Smallest elements along a dim, and where they are."""
    schema = "min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)"
    writing = "dim_min"
    lower = "scan.place('min', True)"


class max_default(_Max, ExtremeOfAll):
    """Largest of all elements; ties share the gradient."""
    schema = "max(Tensor self) -> Tensor"


class min_default(_Min, ExtremeOfAll):
    """Smallest of all elements; ties share the gradient."""
    schema = "min(Tensor self) -> Tensor"


def _argument(name: str, xp, self, dim, keepdim):
    """Where the extreme is; in the flattened tensor if `dim` is None."""
    if self.dtype.kind in "bc":
        raise RuntimeError(f"{name}(): does not support {self.dtype.name} input")
    if dim is None and 0 in self.shape:
        raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
    check_size(name, self.shape, dim)
    find = xp.argmax if name == "argmax" else xp.argmin
    if dim is None or self.ndim == 0:
        wrap_dim(dim or 0, self.ndim)
        where = xp.asarray(find(xp.reshape(self, (-1,))), dtype=xp.int64)
        return xp.reshape(where, (1,) * self.ndim) if keepdim else where
    out = find(self, axis=wrap_dim(dim, self.ndim), keepdims=keepdim)
    return xp.asarray(out, dtype=xp.int64)


class _Argument(Reduction):
    core = True
    nondiff = ("self",)
    shape = lambda self, dim, keepdim: reduced(self.shape, dim, keepdim)
    dtype = dt.int64

    @classmethod
    def run(cls, xp, self, dim, keepdim):
        return _argument(cls.base_name, xp, self, dim, keepdim)

    @of_overload
    def batch(ov, n, batched, self, dim, keepdim):
        x, over = one_dim(n, self, dim)
        return ov.call(x, over, False).reshape((n, *reduced(self.shape[1:], dim, keepdim)))

    def samples(s):
        yield s(spaced(s, 3, 4))
        yield s(spaced(s, 3, 4), keepdim=True)
        yield from extremes(s)


class argmax(_Argument):
    """Where the largest element is, along a dim or in the flattened tensor."""
    schema = "argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor"
    native = "argmax"
    lower = "scan.place('max', False)"


class argmin(_Argument):
    """Where the smallest element is, along a dim or in the flattened tensor."""
    schema = "argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor"
    lower = "scan.place('min', False)"


def _median_place(xp, x):
    """Index of the lower median along the last axis; of the first NaN where there is one."""
    order = xp.argsort(x, axis=-1, kind="stable")
    place = order[..., (x.shape[-1] - 1) // 2].copy()  # not a part of the whole order
    if x.dtype.kind != "f":
        return place
    nan = xp.isnan(x)
    return xp.where(xp.any(nan, axis=-1), xp.argmax(nan, axis=-1), place)


def shared(flat, value):
    """A value for each row, with the derivative shared by all elements that are equal to it."""
    same = (flat == value).logical_or(flat.isnan().logical_and(value.isnan()))
    count, fine = same.sum(1, True), value.isfinite()
    # 0 with a history; subtracted, since what is added to -0.0 makes 0.0 of it
    moves = ops.where(same.logical_and(fine), flat.detach() - flat, 0.0).sum(1, True) / count
    odd = ops.where(same, flat, 0.0).sum(1, True) / count  # infinite ones have no difference
    return ops.where(fine, value - moves, odd).squeeze(1)


def median_along(place, xp, self, dim, keepdim):
    """(values, indices) of the elements that `place` finds along a dim."""
    refuse("median_cpu", self, "bc")
    check_size("median", self.shape, dim)
    dim = wrap_dim(dim, self.ndim)
    if self.ndim == 0:
        return self.copy(), xp.zeros((), dtype=xp.int64)
    indices = xp.asarray(place(xp, xp.moveaxis(self, dim, -1)), dtype=xp.int64)
    indices = xp.expand_dims(indices, dim)
    return kept_or_squeezed(xp, picked(xp, self, indices, dim), indices, dim, keepdim)


def median_of_rows(n, self, name: str):
    """The median of each example, whose gradient is shared by all elements equal to it."""
    flat = rows(n, self)
    value = getattr(flat.detach(), name)(1, True)[0]
    return shared(flat, value) if self.is_floating_point() else value.squeeze(1)


class Medians(Places):
    """Medians along a dim, and where they are: the elements that `place` finds."""

    place: Callable
    writing = "dim_values"
    kept = "order"
    tags = ()

    @classmethod
    def run(cls, xp, self, dim, keepdim):
        return median_along(cls.place, xp, self, dim, keepdim)


class MedianOfAll(OfAll):
    """The median of all elements: the one that `place` finds; NaN if there is none."""

    place: Callable
    kept = "order"
    tags = ()

    @classmethod
    def run(cls, xp, self):
        refuse("median_cpu", self, "bc")
        flat = xp.reshape(self, (-1,))
        if flat.shape[0] == 0:
            return xp.full((), math.nan).astype(self.dtype)  # integers: their smallest
        return flat[cls.place(xp, flat)]


class median_default(MedianOfAll):
    """Lower median of all elements; NaN if there is one."""
    schema = "median(Tensor self) -> Tensor"
    place = _median_place

    def batch(n, batched, self):
        return median_of_rows(n, self, "median")


class median_dim(Medians):
    """Lower medians along a dim, and where they are."""
    schema = ("median.dim(Tensor self, int dim, bool keepdim=False)"
              " -> (Tensor values, Tensor indices)")
    place = _median_place
