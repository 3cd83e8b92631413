"""Masks and places: masked_fill, masked_select, masked_scatter, nonzero, argwhere, fill_diagonal_.

Read next: `index.py`, whose checks these share.
"""

from __future__ import annotations

from ..array import dtype as dt
from ..array.dims import broadcast_shapes, numel
from ..core.op import Composite, Op, Pointwise
from ..errors import DTypeError, ShapeError
from ..table.packets import ops
from .create import as_number
from .index import needs_data, same_dtype, size_by_data
from .kinds import Moving, Synonym
from .layout import in_front, pad_rank

# --- masks ----------------------------------------------------------------------------------------


def check_mask(mask, name: str) -> None:
    """Masks must be bool."""
    if mask.dtype.kind != "b":
        raise RuntimeError(
            f"{name} only supports boolean masks, but got mask with dtype {mask.dtype}"
        )


class masked_fill_Tensor(Pointwise):
    """`self` with a 0-d tensor where a mask is true."""

    schema = "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor"
    ahead = True
    lower = "pointwise.masked_fill"
    tags = ()
    number = 1
    promote = "same"
    complex = True
    nondiff = ("mask",)
    grad = {"self": "grad.masked_fill(mask, 0)", "value": "where(mask, grad, 0)"}
    push = "where(mask, value_t.to(self_t.dtype), self_t)"
    c = "where({mask}, {value}, {self})"

    def run(xp, self, mask, value):
        check_mask(mask, "masked_fill_")
        if value.ndim:
            raise RuntimeError(
                "masked_fill_ only supports a 0-dimensional value tensor, "
                f"but got tensor with {value.ndim} dimension(s)."
            )
        if value.dtype.kind == "c" and self.dtype.kind != "c":
            raise RuntimeError(f"value cannot be converted to type {self.dtype} without overflow")
        return xp.where(mask, value.astype(self.dtype), self)

    def shape(self, mask, value):
        return broadcast_shapes(self.shape, mask.shape)

    def batch(n, batched, self, mask, value):
        rank = max(self.ndim - batched[0], mask.ndim - batched[1])
        self = pad_rank(self, rank) if batched[0] else self
        mask = pad_rank(mask, rank) if batched[1] else mask
        if not batched[2]:
            return self.masked_fill(mask, value)
        return ops.where(mask, value.view((n, *(1,) * rank)).to(self.dtype), self)

    def decomp(self, mask, value):
        return ops.where(mask, value.to(self.dtype), self)

    def samples(s):
        yield s(s.real(3, 4), s.bool(3, 4), s.real())
        yield s(s.real(3, 4), s.bool(4), s.real())
        yield s(s.real(4), s.bool(3, 4), s.real())


class masked_fill_Scalar(Pointwise):
    """`self` with a number where a mask is true."""

    schema = "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor"
    ahead = True
    lower = "pointwise.masked_fill"
    number = 0
    promote = "keep"
    dtype = "self.dtype"
    complex = True
    nondiff = ("mask",)
    grad = {"self": "grad.masked_fill(mask, 0)"}
    push = "self_t.masked_fill(mask, 0)"
    c = "where({mask}, {value}, {self})"

    def run(xp, self, mask, value):
        check_mask(mask, "masked_fill_")
        return xp.where(mask, self.dtype.type(as_number(self, value)), self)

    def decomp(self, mask, value):
        return ops.where(mask, ops.full((), value, dtype=self.dtype, device=self.device), self)

    def samples(s):
        yield s(s.real(3, 4), s.bool(3, 4), 1.5)
        yield s(s.real(3, 4), s.bool(4), 0)
        yield s(s.real(4), s.bool(3, 4), 2)
        yield s(s.real(), s.bool(), 2)


class masked_select(Moving):
    """The elements where a mask is true, in a vector."""

    schema = "masked_select(Tensor self, Tensor mask) -> Tensor"
    kept = "values"
    tags = ("dynamic_output_shape",)
    linear = ("self",)
    nondiff = ("mask",)
    out = ("exact", "apart")
    grad = {"self": "masked_select_backward(grad, self.shape, mask)"}

    def run(xp, self, mask):
        if mask.dtype.kind != "b":
            raise RuntimeError("masked_select: expected BoolTensor for mask")
        shape = broadcast_shapes(self.shape, mask.shape)
        return xp.broadcast_to(self, shape)[xp.broadcast_to(mask, shape)]

    def shape(self, mask):
        shape = broadcast_shapes(self.shape, mask.shape)
        return (size_by_data("masked_select", shape=shape),)

    def batch(n, batched, self, mask):
        if batched[1]:
            raise needs_data("masked_select with a mask that differs per example")
        shape = broadcast_shapes(self.shape[1:], mask.shape)
        self = pad_rank(self, len(shape)).expand((n, *shape))
        mask = mask.expand(shape)
        if not shape:
            self, mask = self.unsqueeze(1), mask.unsqueeze(0)
        return ops.index(self, [None, mask])

    def picks(self, mask):
        shape = broadcast_shapes(self.shape, mask.shape)
        return self.expand(shape), [mask.expand(shape)]

    def samples(s):
        yield s(s.real(3, 4), s.bool(3, 4))
        yield s(s.real(3, 4), s.bool(4))
        yield s(s.real(4), s.bool(3, 4))
        yield s(s.real(), s.bool())


class _OfMasked(Moving):
    """Moves elements to where a mask is true, or from there."""

    cost = "reduce"
    nondiff = ("mask",)


class masked_scatter(_OfMasked):
    """`self` with consecutive elements of a source where a mask is true."""

    schema = "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor"
    core = True
    inplace = True
    linear = ("self", "source")
    grad = {
        "self": "grad.masked_fill(mask, 0)",
        "source": "masked_scatter_backward(grad, mask, source.shape)",
    }

    def run(xp, self, mask, source):
        check_mask(mask, "masked_scatter_")
        same_dtype(self, source, "masked_scatter: expected self and source to have same dtypes")
        shape = broadcast_shapes(self.shape, mask.shape)
        out = xp.broadcast_to(self, shape).copy()
        mask = xp.broadcast_to(mask, shape)
        count = int(mask.sum())
        if count > source.size:
            raise RuntimeError("Number of elements of source < number of ones in mask")
        out[mask] = source.reshape(-1)[:count]
        return out

    def shape(self, mask, source):
        return broadcast_shapes(self.shape, mask.shape)

    def batch(n, batched, self, mask, source):
        logical = broadcast_shapes(self.shape[int(batched[0]) :], mask.shape[int(batched[1]) :])
        shape = (n, *logical)
        self = pad_rank(in_front(self, batched[0], n), len(logical)).expand(shape)
        mask = pad_rank(in_front(mask, batched[1], n), len(logical)).expand(shape)
        if numel(logical) == 0:
            return self.clone()
        source = in_front(source, batched[2], n)
        source = source.reshape((n, numel(source.shape[1:])))
        if source.shape[1] == 0:
            return self.clone()
        # the k-th true place takes the k-th element
        order = ops.cumsum(mask.reshape((n, -1)).to(dt.int64), 1) - 1
        order = order.clamp(0, source.shape[1] - 1)
        return ops.where(mask, source.gather(1, order).reshape(shape), self)

    def samples(s):
        yield s(s.real(3, 4), s.bool(3, 4), s.real(12))
        yield s(s.real(3, 4), s.bool(4), s.real(4, 4))
        yield s(s.real(4), s.bool(3, 4), s.real(14))


class masked_scatter_backward(_OfMasked):
    """The masked elements of a gradient, compacted and filled up with zeros."""

    schema = "masked_scatter_backward(Tensor grad_output, Tensor mask, SymInt[] sizes) -> Tensor"
    kept = "kernel"
    method = function = False
    linear = ("grad_output",)
    shape = "tuple(sizes)"
    grad = {"grad_output": "zeros_like(grad_output).masked_scatter(mask, grad)"}

    def run(xp, grad_output, mask, sizes):
        out = xp.zeros(numel(sizes), grad_output.dtype)
        chosen = grad_output[xp.broadcast_to(mask, grad_output.shape)]
        out[: chosen.size] = chosen
        return out.reshape(tuple(sizes))

    def batch(n, batched, grad_output, mask, sizes):
        grad_output = in_front(grad_output, batched[0], n)
        shape = grad_output.shape
        mask = pad_rank(in_front(mask, batched[1], n), grad_output.ndim - 1).expand(shape)
        count = numel(sizes)
        zeros = grad_output.new_zeros((n, count + 1))
        if numel(shape) == 0 or count == 0:
            return zeros[:, :count].reshape((n, *sizes))
        mask = mask.reshape((n, -1))
        order = ops.cumsum(mask.to(dt.int64), 1) - 1
        order = ops.where(mask, order, count)  # what is not selected goes to a spare place
        out = zeros.scatter_add(1, order, grad_output.reshape((n, -1)))
        return ops.slice(out, 1, 0, count).reshape((n, *sizes))

    samples = lambda s: [s(s.real(3, 4), s.bool(3, 4), (12,)), s(s.real(3, 4), s.bool(4), (4, 4))]


# --- where things are -----------------------------------------------------------------------------


class _Coordinates(Op):
    complex = True
    nondiff = ("self",)
    cost = "reduce"
    dtype = dt.int64


class nonzero(_Coordinates):
    """Coordinates of the nonzero elements, one row each."""

    schema = "nonzero(Tensor self) -> Tensor"
    tags = ("dynamic_output_shape",)
    core = True

    def run(xp, self):
        if self.ndim == 0:
            return xp.empty((int(bool(self != 0)), 0), xp.int64)
        return xp.stack(xp.nonzero(self), axis=1).astype(xp.int64)

    def shape(self):
        return size_by_data("nonzero", self), self.ndim

    def batch(n, batched, self):
        found = ops.nonzero(self)  # row by row, so that the examples stand one after another
        counts = set(self.ne(0).reshape((n, numel(self.shape[1:]))).sum(1).tolist())
        if len(counts) > 1:
            raise needs_data("nonzero under vmap, with another count for each example")
        return found.reshape((n, *counts, self.ndim))[:, :, 1:]

    samples = lambda s: [s(s.real(3, 4)), s(s.bool(3, 4)), s(s.real()), s(s.real(0, 3))]


class nonzero_as_tuple(Composite):
    """Coordinates of the nonzero elements, as rows or as one vector per dim."""

    schema = "nonzero.as_tuple(Tensor self, *, bool as_tuple) -> Tensor[]"

    def compose(self, as_tuple):
        return tuple(ops.nonzero_numpy(self)) if as_tuple else ops.nonzero(self)

    samples = lambda s: [s(s.bool(3, 4), as_tuple=True)]


class nonzero_numpy(Composite):
    """Coordinates of the nonzero elements, one vector per dim."""

    schema = "nonzero_numpy(Tensor self) -> Tensor[]"
    method = function = False

    def compose(self):
        self = self if self.ndim else self.unsqueeze(0)
        return list(ops.nonzero(self).unbind(1))

    samples = lambda s: [s(s.bool(3, 4))]


class nonzero_static(_Coordinates):
    """The first rows of `nonzero`, filled up to a given number."""

    schema = "nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor"
    kept = "values"
    shape = "(size, self.ndim)"

    def run(xp, self, size, fill_value):
        out = xp.full((size, self.ndim), fill_value, xp.int64)
        if self.ndim:
            found = xp.stack(xp.nonzero(self), axis=1)[:size]
            out[: found.shape[0]] = found
        return out

    samples = lambda s: [s(s.real(3, 4), size=5), s(s.bool(3), size=5)]


class argwhere(Synonym):
    """Another name of `nonzero`."""

    schema = "argwhere(Tensor self) -> Tensor"
    tags = ("dynamic_output_shape",)
    same_as = "nonzero"
    samples = lambda s: [s(s.bool(3, 4))]


class fill_diagonal_(Composite):
    """Writes a number onto the main diagonal; `wrap` starts again below the square of tall ones."""
    schema = "fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)"
    function = False

    def compose(self, fill_value, wrap):
        if self.ndim < 2:
            raise ShapeError("fill_diagonal_: dimensions must larger than 1, got "
                             f"{self.ndim}")
        if self.ndim > 2 and any(n != self.shape[0] for n in self.shape):
            raise ShapeError("fill_diagonal_: all dimensions of input must be of equal length, got "
                             f"{list(self.shape)}")
        if isinstance(fill_value, complex) and not self.is_complex():
            raise DTypeError("value cannot be converted to type float without overflow")
        places = [ops.arange(n, device=self.device).reshape((n, *(1,) * (self.ndim - d - 1)))
                  for d, n in enumerate(self.shape)]
        if wrap and self.ndim == 2:
            places[0] = places[0] % (self.shape[1] + 1)
        mask = places[0] == places[1]
        for place in places[2:]:
            mask = mask.logical_and(places[0] == place)
        exact = self.dtype.category < 2
        return self.masked_fill_(mask, int(fill_value) if exact else fill_value)

    def samples(s):
        yield s(s.real(4, 3), 0.5)
        yield s(s.real(7, 3), 0.5, True)
        yield s(s.real(2, 2, 2), 0.5)
        yield s(s.real(0, 2), 0.5)
