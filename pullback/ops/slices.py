"""Views of a part of a tensor (select, slice, diagonal, windows, strides), and aliases of all of it.

Read next: `shape.py`, the views that rearrange dimensions; `view_writes.py`, their adjoints.
"""

from __future__ import annotations

from .. import errors
from ..array import dtype as dt
from ..array import lazy
from ..array.dims import may_overlap, wrap_dim
from ..array.size import holds
from ..core.handle import Box
from ..core.op import Composite, View
from ..formulas.shape import places_from
from ..table.packets import ops
from .kinds import ComplexComposite, ComplexView
from .layout import (
    END,
    along,
    checked_select,
    checked_slice,
    diagonal_view,
    in_front,
    inner,
    laid_out,
    storage_view,
    strided,
    two_dims,
)


class select_int(ComplexView):
    """One index of one dim; the dim disappears."""

    schema = "select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)"
    native = "select"
    lower = "shape.select"
    core = True
    grad = {"self": "select_backward(grad, self.shape, dim, index)"}
    scatter = "select_scatter(base, new, dim, index)"

    def run(xp, self, dim, index):
        dim, index = checked_select(self.shape, dim, index)
        return self[along(dim, index)]

    def batch(n, batched, self, dim, index):
        dim, index = checked_select(self.shape[1:], dim, index)
        return self.select(dim + 1, index)

    def samples(s):
        yield s(s.real(3, 4), 0, 1)
        yield s(s.real(3, 4), -1, -1)
        yield s(s.real(3), 0, 2)
        yield s(s.real(2, 0, 3), 2, 0)


class slice_Tensor(ComplexView):
    """Every step-th index of one dim between two bounds."""

    schema = (
        "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, "
        "SymInt step=1) -> Tensor(a)"
    )
    native = "slice"
    noop = True
    lower = "shape.sliced"
    core = True
    method = function = False
    grad = {
        "self": "slice_backward(grad, self.shape, dim, 0 if start is None else start, "
        "9223372036854775807 if end is None else end, step)"
    }
    scatter = "slice_scatter(base, new, dim, start, end, step)"

    def run(xp, self, dim, start, end, step):
        dim, part, _ = checked_slice(self.shape, dim, start, end, step)
        return self[along(dim, part)]

    def batch(n, batched, self, dim, start, end, step):
        dim, part, _ = checked_slice(self.shape[1:], dim, start, end, step)
        return ops.slice(self, dim + 1, part.start, part.stop, step)

    def samples(s):
        yield s(s.real(5, 4))
        yield s(s.real(5, 4), 0, 1, 4)
        yield s(s.real(5, 4), -1, -3, END, 2)
        yield s(s.real(5, 4), 0, 4, 2)
        yield s(s.real(5, 4), 0, -100, 100, 3)


def _narrowed(shape, dim: int, start: int, length: int) -> tuple[int, int]:
    """The dim and the start of `narrow`, both counted from the front."""
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    dim = wrap_dim(dim, len(shape))
    size = shape[dim]
    if not (holds(-size <= start) and holds(start <= size)):
        raise IndexError(
            f"start out of range (expected to be in range of [{-size}, {size}], but got {start})"
        )
    start = start + size if start < 0 else start
    if not holds(start + length <= size):
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return dim, start


class narrow(ComplexComposite):
    """`length` indices of one dim from `start` on."""

    schema = "narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)"
    noop = True
    may_alias = True
    lower = "shape.narrow"

    def compose(self, dim, start, length):
        _, start = _narrowed(self.shape, dim, start, length)
        return ops.slice(self, dim, start, start + length, 1)

    def samples(s):
        yield s(s.real(5, 4), 0, 1, 3)
        yield s(s.real(5, 4), -1, -2, 2)
        yield s(s.real(5, 4), 0, 5, 0)


class narrow_Tensor(ComplexView):
    """`narrow` with the start in a 0-d integer tensor, whose value may not be known yet."""

    schema = "narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)"
    noop = True
    nondiff = ("start",)
    grad = {
        "self": "grad.new_zeros(self.shape).index_copy(dim, places_from(start, length, "
        "self.shape, dim), grad)"
    }
    push = "self_t.index_select(dim, places_from(start, length, self_p.shape, dim))"
    scatter = "base.index_copy(dim, places_from(start, length, base.shape, dim), new)"

    def run(xp, self, dim, start, length):
        if start.ndim or dt.of(start.dtype).category != 1:
            raise RuntimeError("start must be an 0-dim integral Tensor.")
        at = 0 if isinstance(start, Box) else int(start)  # a fake start: only the shape counts
        dim, at = _narrowed(self.shape, dim, at, length)
        return self[along(dim, slice(at, at + length))]

    def batch(n, batched, self, dim, start, length):
        dim = wrap_dim(dim, self.ndim - batched[0])
        if not batched[2]:
            return ops.narrow(self, dim + 1, start, length)
        self = in_front(self, batched[0], n)
        places = places_from(start.unsqueeze(1), length, self.shape, dim + 1)
        shape = [n if d == 0 else length if d == dim + 1 else 1 for d in range(self.ndim)]
        size = (*self.shape[: dim + 1], length, *self.shape[dim + 2 :])
        return self.gather(dim + 1, places.reshape(shape).expand(size))

    def decomp(self, dim, start, length):
        return ops.index_select(self, dim, places_from(start, length, self.shape, dim))

    def samples(s):
        yield s(s.real(5, 4), 0, s.tensor(1, dt.int64), 3)
        yield s(s.real(5, 4), -1, s.tensor(-2, dt.int64), 2)
        yield s(s.real(4, 5).T, 0, s.tensor(5, dt.int64), 0)


class narrow_copy(Composite):
    """A copy of `narrow`."""

    schema = "narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor"
    tags = ("view_copy",)

    def compose(self, dim, start, length):
        if dim >= self.ndim > 0:
            raise RuntimeError(f"Expected dim < {self.ndim} to be true, but got dim = {dim}.")
        return self.narrow(dim, start, length).clone(memory_format="contiguous_format")

    samples = lambda s: [s(s.real(5, 4), 0, 1, 3)]


class diagonal(ComplexView):
    """A diagonal of the matrices in two dims, as the last dim."""

    schema = "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)"
    lower = "shape.diagonal"
    core = True
    grad = {"self": "diagonal_backward(grad, self.shape, offset, dim1, dim2)"}
    scatter = "diagonal_scatter(base, new, offset, dim1, dim2)"
    run = diagonal_view

    def batch(n, batched, self, offset, dim1, dim2):
        dim1, dim2 = two_dims(dim1, dim2, self.ndim - 1)
        return self.diagonal(offset, dim1 + 1, dim2 + 1)

    def samples(s):
        yield s(s.real(3, 4))
        yield s(s.real(3, 4), 1)
        yield s(s.real(2, 3, 4), -1, -2, -1)
        yield s(s.real(2, 3, 4).transpose(0, 2), 0, 2, 0)
        yield s(s.real(3, 3), 7)


class linalg_diagonal(Composite):
    """`diagonal` of the last two dims."""

    schema = "linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)"
    method = function = False

    def compose(A, offset, dim1, dim2):
        return A.diagonal(offset, dim1, dim2)

    samples = lambda s: [s(s.real(2, 3, 4), offset=1)]


def _unfold_count(size: int, dimension: int, window: int, step: int) -> int:
    if window < 0:
        raise RuntimeError(f"size is {window} but must be >= 0")
    if window > size:
        raise RuntimeError(
            f"maximum size for tensor at dimension {dimension} is {size} but size is {window}"
        )
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    return (size - window) // step + 1


class unfold(ComplexView):
    """Sliding windows of one dim; the window becomes the last dim."""

    schema = "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)"
    lower = "shape.unfold"
    kept = "view"
    function = False
    grad = {"self": "unfold_backward(grad, self.shape, dimension, size, step)"}

    def run(xp, self, dimension, size, step):
        dim = wrap_dim(dimension, self.ndim)
        if self.ndim == 0:
            _unfold_count(1, dim, size, step)
            return strided(xp, self, (size,), (self.itemsize,))
        count = _unfold_count(self.shape[dim], dim, size, step)
        shape = (*self.shape[:dim], count, *self.shape[dim + 1 :], size)
        hop = self.strides[dim]
        strides = (*self.strides[:dim], hop * step, *self.strides[dim + 1 :], hop)
        return strided(xp, self, shape, strides)

    def batch(n, batched, self, dimension, size, step):
        dim = inner(dimension, self)
        if self.ndim == 1:
            return self.unsqueeze(1).unfold(1, size, step).squeeze(1)
        return self.unfold(dim, size, step)

    def repeats(shape, dimension, size, step):
        return size > step

    def samples(s):
        yield s(s.real(7), 0, 3, 1)
        yield s(s.real(7, 2), 0, 3, 2)
        yield s(s.real(2, 7).T, -2, 2, 3)
        yield s(s.real(), 0, 1, 1)


def _reach(size, stride) -> int:
    """How far behind its first element the last one of a tensor lies."""
    return sum((n - 1) * s for n, s in zip(size, stride, strict=True))


class as_strided(View):
    """The tensor's memory read with the given sizes, strides and offset."""

    schema = (
        "as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, "
        "SymInt? storage_offset=None) -> Tensor(a)"
    )
    absolute = True
    lower = "shape.as_strided"
    core = True
    inplace = True
    inplace_node = "AsStridedBackward1"
    grad = {
        "self": "as_strided_backward(grad, self.shape, self.stride(), self.storage_offset(), "
        "size, stride, storage_offset)"
    }
    push = (
        "as_strided_tangent(self_t, self_p.shape, self_p.stride(), self_p.storage_offset(), "
        "size, stride, storage_offset)"
    )
    scatter = "as_strided_scatter(base, new, size, stride, storage_offset)"
    run = storage_view

    def batch(n, batched, self, size, stride, storage_offset):
        if len(size) != len(stride):
            raise RuntimeError("size and stride must have the same length, got size "
                               f"{list(size)} and stride {list(stride)}")
        first, own = self.storage_offset(), self.stride()
        start = first if storage_offset is None else storage_offset
        if 0 not in size and (start < first or start + _reach(size, stride)
                              > first + _reach(self.shape[1:], own[1:])):
            raise RuntimeError(
                f"as_strided({list(size)}, {list(stride)}, {start}) can access memory outside of "
                "the example that it is called on. This is not supported inside of vmap")
        return self.as_strided((n, *size), (own[0], *stride), storage_offset)

    def repeats(shape, size, stride, storage_offset):
        return may_overlap(size, stride)

    def samples(s):
        yield s(s.real(12), (3, 2), (4, 1))
        yield s(s.real(3, 4), (2, 3), (1, 2), 2)
        yield s(s.real(3, 4), (5, 3), (1, 1), 1)
        yield s(s.real(4), (3, 4), (0, 1))


class detach(ComplexView):
    """The same memory without history."""

    schema = "detach(Tensor(a) self) -> Tensor(a)"
    ends_history = True
    ahead = True
    noop = True
    lower = "shape.same"
    diff_outputs = (False,)
    nondiff = ("self",)
    scatter = "new"
    run = "self[...]"

    def batch(n, batched, self):
        return self.detach()

    def decomp(self):
        return ops.alias(self)

    samples = lambda s: [s(s.real(2, 3))]


class alias(ComplexView):
    """The same tensor under another name."""

    schema = "alias(Tensor(a) self) -> Tensor(a)"
    noop = True
    lower = "shape.same"
    core = True
    grad = {"self": "grad"}
    scatter = "new"
    run = "self[...]"

    def batch(n, batched, self):
        return ops.alias(self)

    samples = lambda s: [s(s.real(2, 3)), s(s.real())]


class view_as_real(View):
    """A complex tensor as pairs of real numbers in a last dim."""

    schema = "view_as_real(Tensor(a) self) -> Tensor(a)"
    kept = "view"
    promote = "keep"
    grad = {"self": "view_as_complex(grad.contiguous())"}
    push = "view_as_real(self_t.resolve_conj())"
    scatter = "view_as_complex(new.contiguous())"

    def dtype(self):
        return self.dtype.to_real()

    def marks(before):
        if before & lazy.CONJ:
            raise errors.RefusedValue(errors.text(
                "view_as_real doesn't work on unresolved conjugated tensors "
                f"({errors.user_line(2)}): imaginary parts are negatives of what is in memory",
                cure="resolve_conj() makes a copy that it shows; x.real and x.imag are views"))
        return before

    def run(xp, self):
        dtype = dt.of(self.dtype)
        if not dtype.is_complex:
            raise RuntimeError("view_as_real is only supported for complex tensors")
        half, part = self.itemsize // 2, dtype.to_real().np
        pair = [("real", part), ("imag", part)]
        # a strided view of the first halves
        real = self.real if self.dtype.kind == "c" else self.view(pair)["real"]
        return laid_out(xp, real, (*self.shape, 2), (*self.strides, half))

    def batch(n, batched, self):
        return ops.view_as_real(self)

    def samples(s):
        yield s(ops.view_as_complex(s.real(3, 2)))
        yield s(ops.view_as_complex(s.real(2, 3, 2)).T)


def _pair_dtype(part):
    """The (NumPy) dtype of complex numbers with parts of this one; None if there is none."""
    return next((d.np for d in dt.ALL if d.is_complex and d.to_real().np == part), None)


class view_as_complex(View):
    """Pairs of real numbers in the last dim as complex numbers."""

    schema = "view_as_complex(Tensor(a) self) -> Tensor(a)"
    autocast = "float32"
    kept = "view"
    promote = "keep"
    grad = {"self": "view_as_real(grad.contiguous().resolve_conj())"}
    push = "view_as_complex(self_t.contiguous())"
    scatter = "view_as_real(new.resolve_conj())"

    def dtype(self):
        return dt.of(_pair_dtype(self.dtype.np))

    def run(xp, self):
        if _pair_dtype(self.dtype) is None:
            raise RuntimeError(
                "view_as_complex is only supported for float and double tensors, "
                f"but got a tensor of scalar type: {self.dtype}"
            )
        if self.ndim == 0:
            raise RuntimeError("Input tensor must have one or more dimensions")
        if self.shape[-1] != 2:
            raise RuntimeError("Tensor must have a last dimension of size 2")
        if 0 in self.shape:  # no elements, so any strides will do
            return xp.empty(self.shape[:-1], _pair_dtype(self.dtype))
        if self.strides[-1] != self.itemsize:
            raise RuntimeError("Tensor must have a last dimension with stride 1")
        if any(s % (2 * self.itemsize) for s in self.strides[:-1]):
            raise RuntimeError(
                "Tensor must have a stride divisible by 2 for all but last dimension"
            )
        return self.view(_pair_dtype(self.dtype))[..., 0]

    def batch(n, batched, self):
        if self.ndim == 1:
            raise RuntimeError("Input tensor must have one or more dimensions")
        return ops.view_as_complex(self)

    samples = lambda s: [s(s.real(3, 2)), s(s.real(2, 3, 2).transpose(0, 1)), s(s.real(2))]
