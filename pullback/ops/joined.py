"""Tensors put together: cat, stack, hstack, block_diag, cartesian_prod."""

from __future__ import annotations

import itertools

from ..array import dtype as dt
from ..array.dims import numel, wrap_dim
from ..array.evaluate import lying_with_channels
from ..core.op import Composite
from ..errors import BadValue
from ..table.packets import ops
from .arrange import _grid
from .kinds import ComplexFree, Free, Moving, Synonym
from .layout import in_front, inner


def cat_parts(tensors) -> list:
    """What `cat` joins: legacy empty vectors are skipped."""
    if not tensors:
        raise BadValue("torch.cat(): expected a non-empty list of Tensors")
    for i, x in enumerate(tensors):
        if x.ndim == 0:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    parts = [x for x in tensors if tuple(x.shape) != (0,)]
    return parts or list(tensors[:1])


def cat_shape(tensors, dim: int) -> tuple[int, ...]:
    """The shape of `cat`, after checking its arguments."""
    parts = cat_parts(tensors)
    first = parts[0]
    dim = wrap_dim(dim, first.ndim)
    total = 0
    for i, x in enumerate(parts):
        if x.ndim != first.ndim:
            raise RuntimeError(
                f"Tensors must have same number of dimensions: got {first.ndim} and {x.ndim}"
            )
        for d in range(first.ndim):
            if d != dim and x.shape[d] != first.shape[d]:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size "
                    f"{first.shape[d]} but got size {x.shape[d]} for tensor number {i} in the list."
                )
        total = total + x.shape[dim]
    return (*first.shape[:dim], total, *first.shape[dim + 1 :])


def unified(tensors, parts) -> list:
    """Arrays in the dtype that all `tensors` promote to."""
    common = dt.result_type(tensors).np
    return [p if p.dtype == common else p.astype(common) for p in parts]


class cat(Moving):
    """Tensors joined along a dim."""

    schema = "cat(Tensor[] tensors, int dim=0) -> Tensor"
    native = "cat"
    lower = "shape.cat"
    autocast = "widest"
    core = True
    memory_format, arranges = "channels", True
    method = False
    linear = ("tensors",)
    out = ("apart", "castable")
    grad = {"tensors": "cat_backward(grad, tensors.shape, dim)"}

    def dtype(tensors, dim):
        return dt.result_type(tensors)

    def run(xp, tensors, dim):
        cat_shape(tensors, dim)
        out = xp.concatenate(unified(tensors, cat_parts(tensors)), axis=dim)
        if out.ndim > 1 and not out.flags.c_contiguous:  # as its parts lie, if these lie alike
            return lying_with_channels(xp, out, (tensors,))
        return out

    def shape(tensors, dim):
        return cat_shape(tensors, dim)

    def batch(n, batched, tensors, dim):
        flags = batched[0]
        parts = [in_front(x, b, n) for x, b in zip(tensors, flags, strict=True)]
        model = next((x for x in parts if tuple(x.shape[1:]) != (0,)), None)
        if model is None:
            return parts[0]
        if model.ndim == 1:
            raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
        dim = inner(dim, model)
        nothing = (*model.shape[:dim], 0, *model.shape[dim + 1 :])  # keeps dtype and history
        return ops.cat([x.reshape(nothing) if tuple(x.shape[1:]) == (0,) else x for x in parts],
                       dim)

    def samples(s):
        yield s([s.real(2, 3), s.real(4, 3)])
        yield s([s.real(2, 3), s.real(2, 1), s.real(2, 0)], -1)
        yield s([s.real(0), s.real(2, 3)], 1)
        yield s([s.real(3)])


class concat(Synonym):
    """Another name of `cat`."""

    schema = "concat(Tensor[] tensors, int dim=0) -> Tensor"
    method = False
    same_as = "cat"
    samples = lambda s: [s([s.real(2, 3), s.real(4, 3)])]


class concatenate(Synonym):
    """Another name of `cat`."""

    schema = "concatenate(Tensor[] tensors, int dim=0) -> Tensor"
    method = False
    same_as = "cat"
    samples = lambda s: [s([s.real(2, 3), s.real(2, 1)], 1)]


def _check_any(name: str, tensors) -> None:
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")


def stack_shape(tensors, dim: int) -> tuple[int, ...]:
    """The shape of `stack`, after checking its arguments."""
    _check_any("stack", tensors)
    first = tuple(tensors[0].shape)
    for i, x in enumerate(tensors):
        if tuple(x.shape) != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 "
                f"and {list(x.shape)} at entry {i}"
            )
    dim = wrap_dim(dim, len(first) + 1)
    return (*first[:dim], len(tensors), *first[dim:])


class stack(Moving):
    """Tensors of one shape joined along a new dim."""

    schema = "stack(Tensor[] tensors, int dim=0) -> Tensor"
    native = "stack"
    lower = "shape.stack"
    autocast = "widest"
    out = ("castable",)
    method = False
    linear = ("tensors",)
    grad = {"tensors": "grad.unbind(dim)"}

    def dtype(tensors, dim):
        return dt.result_type(tensors)

    def run(xp, tensors, dim):
        stack_shape(tensors, dim)
        return xp.stack(unified(tensors, tensors), axis=dim)

    def shape(tensors, dim):
        return stack_shape(tensors, dim)

    def batch(n, batched, tensors, dim):
        parts = [in_front(x, b, n) for x, b in zip(tensors, batched[0], strict=True)]
        return ops.stack(parts, wrap_dim(dim, parts[0].ndim) + 1)

    def decomp(tensors, dim):
        dim = wrap_dim(dim, tensors[0].ndim + 1)
        return ops.cat([ops.unsqueeze(x, dim) for x in tensors], dim)

    def samples(s):
        yield s([s.real(2, 3), s.real(2, 3)])
        yield s([s.real(2, 3), s.real(2, 3)], -1)
        yield s([s.real(), s.real()])


class hstack(Free):
    """Tensors joined along the second dim (the first of vectors)."""

    schema = "hstack(Tensor[] tensors) -> Tensor"

    def compose(tensors):
        _check_any("hstack", tensors)
        parts = ops.atleast_1d(tensors)
        return ops.cat(parts, 0 if parts[0].ndim == 1 else 1)

    def samples(s):
        yield s([s.real(2), s.real(3)])
        yield s([s.real(2, 3), s.real(2, 1)])
        yield s([s.real(), s.real()])


class vstack(Free):
    """Tensors joined along the first dim, vectors as rows."""

    schema = "vstack(Tensor[] tensors) -> Tensor"

    def compose(tensors):
        _check_any("vstack", tensors)
        return ops.cat(ops.atleast_2d(tensors), 0)

    samples = lambda s: [s([s.real(3), s.real(2, 3)])]


class row_stack(Synonym):
    """Another name of `vstack`."""

    schema = "row_stack(Tensor[] tensors) -> Tensor"
    method = False
    same_as = "vstack"
    samples = lambda s: [s([s.real(3), s.real(2, 3)])]


class dstack(Free):
    """Tensors joined along the third dim."""

    schema = "dstack(Tensor[] tensors) -> Tensor"

    def compose(tensors):
        _check_any("dstack", tensors)
        return ops.cat(ops.atleast_3d(tensors), 2)

    samples = lambda s: [s([s.real(2, 3), s.real(2, 3)]), s([s.real(3), s.real(3)])]


class column_stack(Free):
    """Tensors joined along the second dim, vectors as columns."""

    schema = "column_stack(Tensor[] tensors) -> Tensor"

    def compose(tensors):
        _check_any("column_stack", tensors)
        return ops.hstack([x.reshape((x.numel(), 1)) if x.ndim <= 1 else x for x in tensors])

    samples = lambda s: [s([s.real(3), s.real(3, 2)])]


class block_diag(Free):
    """A matrix with the given matrices on its diagonal."""

    schema = "block_diag(Tensor[] tensors) -> Tensor"

    def compose(tensors):
        for i, x in enumerate(tensors):
            if x.ndim > 2:
                raise RuntimeError(
                    "torch.block_diag: Input tensors must have 2 or fewer dimensions. "
                    f"Input {i} has {x.ndim} dimensions"
                )
        if not tensors:
            return ops.empty((1, 0))
        blocks = ops.atleast_2d(tensors)
        width = sum(x.shape[1] for x in blocks)
        rows, left = [], 0
        for x in blocks:
            rows.append(ops.constant_pad_nd(x, (left, width - left - x.shape[1])))
            left += x.shape[1]
        return ops.cat(rows, 0)

    samples = lambda s: [s([s.real(2, 3), s.real(2), s.real()])]


class cartesian_prod(Free):
    """All combinations of the elements of vectors, as rows."""

    schema = "cartesian_prod(Tensor[] tensors) -> Tensor"
    tags = ("maybe_aliasing_or_mutating",)

    def compose(tensors):
        for x in tensors:
            if x.ndim != 1:
                raise RuntimeError(f"Expect a 1D vector, but got shape {list(x.shape)}")
        if len(tensors) == 1:
            return tensors[0]
        return ops.stack([g.flatten() for g in _grid(tensors, "ij")], 1)

    samples = lambda s: [s([s.real(2), s.real(3)])]


class combinations(Composite):
    """All combinations of r elements of a vector, as rows."""

    schema = "combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor"

    def compose(self, r, with_replacement):
        if self.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(self.shape)}")
        if r < 0:
            raise RuntimeError(f"Expect a non-negative number, but got {r}")
        if r == 0:
            return self.new_empty((0,))
        choose = (
            itertools.combinations_with_replacement if with_replacement else itertools.combinations
        )
        rows = list(choose(range(self.shape[0]), r))
        columns = [self[[row[i] for row in rows]] for i in range(r)]
        return ops.stack(columns, 1)

    samples = lambda s: [s(s.real(4)), s(s.real(3), 3, True)]


class _chunk_cat(ComplexFree):
    """Tensors cut into chunks along a dim, filled up with zeros; all first chunks, all second..."""

    schema = "_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor"

    def compose(tensors, dim, num_chunks):
        dim = _common_dim(tensors, dim)
        if num_chunks < 1:
            raise RuntimeError("_chunk_cat expects positive num_chunks")
        rows = []
        for x in tensors:
            size = -(-x.shape[dim] // num_chunks) * num_chunks
            border = [0, 0] * (x.ndim - dim - 1) + [0, size - x.shape[dim]]
            width = size // num_chunks * numel(x.shape[dim + 1 :])
            padded = ops.constant_pad_nd(x, border)
            rows.append(padded.reshape((*x.shape[:dim], num_chunks, width)))
        return ops.cat(rows, dim + 1)

    def samples(s):
        yield s([s.real(3, 2), s.real(4)], 0, 2)
        yield s([s.real(2, 5), s.real(2, 3, 2)], 1, 3)
        yield s([s.real(4, 2).T], -1, 2)


def _common_dim(tensors, dim: int) -> int:
    """The dim along which `_chunk_cat` cuts, counted from the front."""
    if not tensors:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    if any(0 in x.shape for x in tensors):
        raise RuntimeError("_chunk_cat expects non-empty tensor")
    if dim < 0 and len({x.ndim for x in tensors}) > 1:
        raise RuntimeError("_chunk_cat expects non-negative dim when input tensors have different "
                           "ndims")
    dim = wrap_dim(dim, tensors[0].ndim)
    if any(x.ndim <= dim for x in tensors):
        raise RuntimeError("_chunk_cat expects dim < ndim for all input tensors")
    if any(tuple(x.shape[:dim]) != tuple(tensors[0].shape[:dim]) for x in tensors):
        raise RuntimeError("_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors")
    return dim
