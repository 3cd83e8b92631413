"""Several views at once: split, chunk, unbind, tensor_split and their relatives.

Read next: `shape.py` and `slices.py`.
"""

from __future__ import annotations

import itertools

from ..array import dtype as dt
from ..array.dims import wrap_dim
from ..core.op import Composite
from ..table.packets import ops
from .kinds import ComplexComposite, ComplexView, Moving, Synonym
from .layout import END, along, checked_pieces, cut, cut_shapes, inner, needs_dims, split_pieces


class split_Tensor(ComplexView):
    """Consecutive pieces of equal size; the last may be smaller."""

    schema = "split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]"
    lower = "shape.split"
    grad = {"self": "split_backward(grads, self.shape, split_size, dim)"}

    def run(xp, self, split_size, dim):
        needs_dims(self.ndim, "split")
        dim = wrap_dim(dim, self.ndim)
        return cut(self, dim, split_pieces(self.shape[dim], split_size))

    def batch(n, batched, self, split_size, dim):
        needs_dims(self.ndim - 1, "split")
        return ops.split(self, split_size, inner(dim, self))

    def decomp(self, split_size, dim):
        sizes = split_pieces(self.shape[dim], split_size)
        return ops.split_with_sizes(self, sizes, dim)

    def scatter_piece(base, new, number, split_size, dim):
        start = number * split_size
        return ops.slice_scatter(base, new, dim, start, start + new.shape[dim])

    samples = lambda s: [s(s.real(5, 2), 2), s(s.real(2, 4), 2, -1), s(s.real(0, 2), 3)]


class split_with_sizes(ComplexView):
    """Consecutive pieces of the given sizes."""

    schema = "split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]"
    lower = "shape.split"
    core = True
    grad = {"self": "split_with_sizes_backward(grads, self.shape, split_sizes, dim)"}

    def run(xp, self, split_sizes, dim):
        needs_dims(self.ndim, "split")
        dim = wrap_dim(dim, self.ndim)
        return cut(self, dim, checked_pieces(self.shape[dim], dim, split_sizes))

    def batch(n, batched, self, split_sizes, dim):
        needs_dims(self.ndim - 1, "split")
        return ops.split_with_sizes(self, split_sizes, inner(dim, self))

    def scatter_piece(base, new, number, split_sizes, dim):
        start = sum(split_sizes[:number])
        return ops.slice_scatter(base, new, dim, start, start + new.shape[dim])

    samples = lambda s: [s(s.real(5, 2), (1, 4)), s(s.real(2, 4), (2, 0, 2), -1)]


class split_sizes(Synonym):
    """`split` with a list of sizes."""

    schema = "split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]"
    may_alias = True
    lower = "shape.split"
    same_as = "split_with_sizes"
    samples = lambda s: [s(s.real(5, 2), (1, 4))]


def _chunk_step(self, chunks: int, dim: int) -> int:
    """The size of the pieces of `chunk`."""
    needs_dims(self.ndim, "chunk")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    size = self.shape[wrap_dim(dim, self.ndim)]
    return (size + chunks - 1) // chunks


class chunk(ComplexComposite):
    """At most `chunks` pieces of equal size; the last may be smaller."""

    schema = "chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]"
    may_alias = True
    lower = "shape.split"

    def compose(self, chunks, dim):
        step = _chunk_step(self, chunks, dim)
        if step == 0:  # an empty dim still gives the number of pieces asked for
            return ops.split_with_sizes(self, [0] * chunks, dim)
        return ops.split(self, step, dim)

    samples = lambda s: [s(s.real(5, 2), 2), s(s.real(2, 6), 4, 1), s(s.real(0, 2), 3)]


def clones(parts) -> list:
    return [p.clone(memory_format="contiguous_format") for p in parts]


class UnsafePieces(Moving):
    """Pieces that count as fresh memory: writes to them are not seen by the derivative.

    They are those of the operator that `pieces_of` names; `sizes_of` gives their sizes.
    """

    memory_format = "parts"
    unchecked = ("pure",)  # the pieces are memory of the input, that is the point
    linear = ("self",)
    pieces_of = sizes_of = None

    @classmethod
    def run(cls, xp, self, how, dim):
        needs_dims(self.ndim, "split")
        dim = wrap_dim(dim, self.ndim)
        return cut(self, dim, cls.sizes_of(self.shape[dim], dim, how))

    @classmethod
    def batch(cls, n, batched, self, how, dim):
        needs_dims(self.ndim - 1, "split")
        return getattr(ops, cls.pieces_of)(self, how, inner(dim, self))

    @classmethod
    def shape(cls, self, how, dim):
        needs_dims(self.ndim, "split")
        return cut_shapes(self.shape, dim, cls.sizes_of(self.shape[dim], dim, how))

    @classmethod
    def decomp(cls, self, how, dim):
        return clones(getattr(ops, cls.pieces_of)(self, how, dim))


class unsafe_split_Tensor(UnsafePieces):
    """`split` whose pieces count as fresh memory: writes to them are not seen by the derivative."""

    schema = "unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]"
    grad = {"self": "split_backward(grads, self.shape, split_size, dim)"}
    pieces_of, sizes_of = "split", lambda size, dim, step: split_pieces(size, step)
    samples = lambda s: [s(s.real(5, 2), 2), s(s.real(2, 4), 2, -1)]


class unsafe_split_with_sizes(UnsafePieces):
    """`split_with_sizes` whose pieces count as fresh memory, as those of `unsafe_split`."""

    schema = "unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]"
    grad = {"self": "split_with_sizes_backward(grads, self.shape, split_sizes, dim)"}
    pieces_of, sizes_of = "split_with_sizes", checked_pieces
    samples = lambda s: [s(s.real(5, 2), (1, 4))]


class unsafe_chunk(Composite):
    """`chunk` whose pieces count as fresh memory, as those of `unsafe_split`."""

    schema = "unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]"
    tags = ("maybe_aliasing_or_mutating",)

    def compose(self, chunks, dim):
        step = _chunk_step(self, chunks, dim)
        if step == 0:
            return ops.unsafe_split_with_sizes(self, [0] * chunks, dim)
        return ops.unsafe_split(self, step, dim)

    samples = lambda s: [s(s.real(5, 2), 2)]


class unbind_int(ComplexView):
    """One tensor per index of a dim."""

    schema = "unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]"
    lower = "shape.unbind"
    grad = {"self": "unbind_backward(grads, self.shape, dim)"}

    def run(xp, self, dim):
        dim = wrap_dim(dim, self.ndim, scalar_ok=False)
        return [self[along(dim, i)] for i in range(self.shape[dim])]

    def batch(n, batched, self, dim):
        return self.unbind(wrap_dim(dim, self.ndim - 1, scalar_ok=False) + 1)

    def decomp(self, dim):
        return [ops.select(self, dim, i) for i in range(self.shape[dim])]

    def scatter_piece(base, new, number, dim):
        return ops.select_scatter(base, new, dim, number)

    samples = lambda s: [s(s.real(3, 2)), s(s.real(3, 2), -1), s(s.real(3))]


def _split_at(self, bounds, dim):
    """Pieces between consecutive bounds, as `tensor_split` makes them."""
    edges = [0, *bounds, END]
    return [ops.slice(self, dim, a, b, 1) for a, b in itertools.pairwise(edges)]


def _has_dims(self) -> None:
    if self.ndim == 0:
        raise RuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        )


def _tensor_split(self, sections: int, dim: int):
    _has_dims(self)
    dim = wrap_dim(dim, self.ndim)
    if sections <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
    small, large = divmod(self.shape[dim], sections)
    sizes = [small + 1] * large + [small] * (sections - large)
    edges = [0, *itertools.accumulate(sizes)]
    return [ops.slice(self, dim, a, b, 1) for a, b in itertools.pairwise(edges)]


class tensor_split_sections(Composite):
    """Pieces as equal as possible."""

    schema = "tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]"
    compose = _tensor_split

    samples = lambda s: [s(s.real(5, 2), 3), s(s.real(2, 5), 3, -1)]


class tensor_split_indices(Composite):
    """Pieces between the given indices."""

    schema = "tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]"

    def compose(self, indices, dim):
        _has_dims(self)
        return _split_at(self, indices, wrap_dim(dim, self.ndim, scalar_ok=False))

    samples = lambda s: [s(s.real(5, 2), (1, 3)), s(s.real(2, 5), (1, 9, 2), 1)]


class tensor_split_tensor(Composite):
    """`tensor_split` with the sections or indices in a tensor."""

    schema = (
        "tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, "
        "Tensor tensor_indices_or_sections, int dim=0) -> Tensor(a)[]"
    )

    def compose(self, tensor_indices_or_sections, dim):
        _has_dims(self)
        if tensor_indices_or_sections.dtype is not dt.int64:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
                f"{tensor_indices_or_sections.dtype.name.capitalize()}")
        if tensor_indices_or_sections.ndim > 1:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
                "one-dimensional tensor, but got a tensor with "
                f"{tensor_indices_or_sections.ndim} dims")
        where = tensor_indices_or_sections.tolist()
        if tensor_indices_or_sections.ndim == 0:
            return _tensor_split(self, where, dim)
        return _split_at(self, where, wrap_dim(dim, self.ndim))

    def samples(s):
        yield s(s.real(5, 2), s.tensor(3, dt.int64))
        yield s(s.real(5, 2), s.tensor([1, 3], dt.int64))


def _named_split(self, name: str, rank: int, dim: int, where):
    if self.ndim < rank:
        raise RuntimeError(
            f"torch.{name} requires a tensor with at least {rank} dimension, "
            f"but got a tensor with {self.ndim} dimensions!"
        )
    if not isinstance(where, int):
        return _split_at(self, where, dim)
    if where <= 0 or self.shape[dim] % where:
        raise RuntimeError(
            f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension "
            f"{self.shape[dim]} is not divisible by the split_size {where}!"
        )
    return _tensor_split(self, where, dim)


class hsplit_int(Composite):
    """Equal pieces along the second dim (the first of a vector)."""

    schema = "hsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]"

    def compose(self, sections):
        return _named_split(self, "hsplit", 1, 0 if self.ndim == 1 else 1, sections)

    samples = lambda s: [s(s.real(3, 4), 2), s(s.real(4), 2)]


class hsplit_array(Composite):
    """Pieces along the second dim between the given indices."""

    schema = "hsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]"

    def compose(self, indices):
        return _named_split(self, "hsplit", 1, 0 if self.ndim == 1 else 1, indices)

    samples = lambda s: [s(s.real(3, 4), (1, 3))]


class vsplit_int(Composite):
    """Equal pieces along the first dim."""

    schema = "vsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]"

    def compose(self, sections):
        return _named_split(self, "vsplit", 2, 0, sections)

    samples = lambda s: [s(s.real(4, 3), 2)]


class vsplit_array(Composite):
    """Pieces along the first dim between the given indices."""

    schema = "vsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]"

    def compose(self, indices):
        return _named_split(self, "vsplit", 2, 0, indices)

    samples = lambda s: [s(s.real(4, 3), (1, 3))]


class dsplit_int(Composite):
    """Equal pieces along the third dim."""

    schema = "dsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]"

    def compose(self, sections):
        return _named_split(self, "dsplit", 3, 2, sections)

    samples = lambda s: [s(s.real(1, 3, 4), 2)]


class dsplit_array(Composite):
    """Pieces along the third dim between the given indices."""

    schema = "dsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]"

    def compose(self, indices):
        return _named_split(self, "dsplit", 3, 2, indices)

    samples = lambda s: [s(s.real(1, 3, 4), (1, 3))]
