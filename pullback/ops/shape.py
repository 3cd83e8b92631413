"""Views, and the operators that only move elements: concatenate, repeat, flip, pad, cast.

View kernels return an array that shares memory with their input. Composites here never read data,
so they work at every level. Derivatives that need more than a line are in `formulas/shape.py`.
Read `index.py` next for selection by tensors.
"""

from __future__ import annotations

import itertools

import numpy as np

from ..core import dtype as dt
from ..core.device import transfer
from ..core.dims import (
    broadcast_shapes,
    expanded_shape,
    infer_size,
    numel,
    slice_bounds,
    view_strides,
    wrap_dim,
    wrap_dims,
)
from ..core.handle import Box
from ..core.op import Composite, Op, Pointwise, View, overload_of
from ..core.table import ops
from ..errors import BadValue
from ..formulas.shape import places_from

END = 2**63 - 1  # what PyTorch writes for "up to the end"


# --- arithmetic shared by kernels, shape rules and batch rules ------------------------------------


def inner(dim: int, batched) -> int:
    """Where dim `dim` of the logical tensor lies in a tensor batched in front."""
    return wrap_dim(dim, batched.ndim - 1) + 1


def in_front(x, is_batched: bool, n: int):
    """`x` with a batch dim of size n in front, made by expansion if it has none."""
    return x if is_batched else x.unsqueeze(0).expand((n, *x.shape))


def pad_rank(x, rank: int):
    """Insert dims of size 1 behind the batch dim until the logical rank is `rank`."""
    while x.ndim - 1 < rank:
        x = x.unsqueeze(1)
    return x


def layout(memory_format) -> str:
    """NumPy's letter for a memory format: K keeps the order of the strides."""
    if memory_format is None or str(memory_format).endswith("preserve_format"):
        return "K"
    return "C"


def strided(xp, array, shape, strides):
    """A writable view with the given shape and byte strides, starting at the first element."""
    if xp.__name__ == "numpy" and array.flags.c_contiguous and array.dtype.kind in "fciub":
        return xp.ndarray(shape, array.dtype, array, 0, strides)  # ten times quicker
    return laid_out(xp, array, shape, strides)


def laid_out(xp, array, shape, strides):
    """The same beyond the array's own elements: as far as its memory goes."""
    if array.dtype.kind == dt.FOREIGN:  # as_strided asks NumPy for the dtype by a name
        return laid_out(xp, array.view(xp.uint32), shape, strides).view(array.dtype)
    return xp.lib.stride_tricks.as_strided(array, shape, strides)


def convert(array, np_dtype, order="K"):
    """A copy in another dtype; the imaginary part is dropped silently."""
    if array.dtype.kind == dt.FOREIGN:
        array = array.astype(np.complex64)
    if array.dtype.kind == "c" and np_dtype.kind not in "cb" + dt.FOREIGN:
        array = array.real
    return array.astype(np_dtype, order=order, copy=True)


def diagonal_size(rows: int, cols: int, offset: int) -> int:
    """Length of a diagonal of a matrix."""
    return max(min(rows, cols - offset) if offset >= 0 else min(rows + offset, cols), 0)


def two_dims(dim1: int, dim2: int, ndim: int) -> tuple[int, int]:
    """Two different wrapped dims."""
    first, second = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return first, second


def checked_select(shape, dim: int, index: int) -> tuple[int, int]:
    """Wrapped dim and non-negative index of `select`."""
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, len(shape))
    if not -shape[dim] <= index < shape[dim]:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(shape)} "
            f"at dimension {dim}"
        )
    return dim, index + shape[dim] if index < 0 else index


def checked_slice(shape, dim: int, start, end, step: int) -> tuple[int, slice, int]:
    """Wrapped dim, Python slice, and resulting size of `slice`."""
    if not shape:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, len(shape))
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    start, end = slice_bounds(start, end, shape[dim])
    return dim, slice(start, end, step), (end - start + step - 1) // step


def along(dim: int, key) -> tuple:
    """Index expression with `key` at dim `dim`; the Ellipsis keeps 0-d results views."""
    return (slice(None),) * dim + (key, ...)


def diagonal_view(xp, array, offset: int, dim1: int, dim2: int):
    """The diagonal as a view, in a last dim."""
    dim1, dim2 = two_dims(dim1, dim2, array.ndim)
    size = diagonal_size(array.shape[dim1], array.shape[dim2], offset)
    if size:
        start = (
            along(dim2, slice(offset, None)) if offset >= 0 else along(dim1, slice(-offset, None))
        )
        array = array[start]
    rest = [d for d in range(array.ndim) if d not in (dim1, dim2)]
    shape = (*(array.shape[d] for d in rest), size)
    strides = (*(array.strides[d] for d in rest), array.strides[dim1] + array.strides[dim2])
    return strided(xp, array, shape, strides)


def storage_view(xp, array, size, stride, storage_offset):
    """as_strided over the memory that `array` is a view of; strides and offset in elements."""
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(s < 0 for s in stride):
        raise RuntimeError(
            "as_strided: Negative strides are not supported at the moment, "
            f"got strides: {list(stride)}"
        )
    if storage_offset is not None and storage_offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {storage_offset}")
    root = owner(array)
    item = array.itemsize
    here = (_address(array) - _address(root)) // item
    offset = here if storage_offset is None else storage_offset
    ghost = False  # a shape-only stand-in claims more memory than it owns
    if 0 not in size:
        needed = offset + 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
        owned = root.size * root.itemsize // item
        spans = (
            here
            + 1
            + sum((n - 1) * s // item for n, s in zip(array.shape, array.strides, strict=True))
        )
        ghost = owned < spans or (owned == 1 and type(array.base).__name__ == "DummyArray")
        if needed > owned and not ghost:
            raise RuntimeError(
                f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, "
                f"and itemsize {item} requiring a storage size of {needed * item} are out of "
                f"bounds for storage of size {owned * item}"
            )
    steps = tuple(s * item for s in stride)
    if offset == here or ghost:
        return laid_out(xp, array, tuple(size), steps)
    flat = root.ravel(order="K").view(array.dtype)
    return laid_out(xp, flat[offset:], tuple(size), steps)


def owner(array):
    """The array whose memory this one shows."""
    base = array.base
    while base is not None:  # as_strided puts a stand-in between an array and its base
        if isinstance(base, type(array)):
            array = base
        base = getattr(base, "base", None)
    return array


def _address(array) -> int:
    interface = getattr(array, "__cuda_array_interface__", None) or array.__array_interface__
    return interface["data"][0]


def same_size_as_slice(src, part) -> None:
    """Refuse a source that does not exactly fill the region it is written to."""
    if tuple(src.shape) != tuple(part):
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. "
            f"src size = {list(src.shape)}, slice size = {list(part)}"
        )


def split_pieces(size: int, step: int) -> list[int]:
    """Sizes of the pieces that `split` makes."""
    if step < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={step}")
    if step == 0:
        if size != 0:
            raise RuntimeError(
                f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}"
            )
        return [0]
    count = max((size + step - 1) // step, 1)
    return [step] * (count - 1) + [size - step * (count - 1)]


def checked_pieces(size: int, dim: int, sizes) -> list[int]:
    """The sizes given to `split_with_sizes`, if they fill the dim."""
    if any(s < 0 for s in sizes):
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, "
            f"but got split_sizes={list(sizes)}"
        )
    if sum(sizes) != size:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size "
            f"at dimension {dim}), but got split_sizes={list(sizes)}"
        )
    return list(sizes)


def cut(array, dim: int, sizes) -> list:
    """Views of the consecutive pieces along a dim."""
    parts, start = [], 0
    for size in sizes:
        parts.append(array[along(dim, slice(start, start + size))])
        start += size
    return parts


def needs_dims(ndim: int, what: str) -> None:
    """Refuse 0-d input of the split family."""
    if ndim == 0:
        raise RuntimeError(f"{what} expects at least a 1-dimensional tensor")


def permutation(dims, ndim: int) -> tuple[int, ...]:
    """Checked and wrapped argument of `permute`."""
    if len(dims) != ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the "
            "length of the desired ordering of dimensions i.e. "
            f"input.dim() = {ndim} is not equal to len(dims) = {len(dims)}"
        )
    wrapped = tuple(wrap_dim(d, ndim) for d in dims)
    if len(set(wrapped)) != ndim:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return wrapped


# --- views ----------------------------------------------------------------------------------------


class view(View):
    """The same elements in another shape, without a copy."""

    schema = "view(Tensor(a) self, SymInt[] size) -> Tensor(a)"
    complex = True
    grad = {"self": "grad.reshape(self.shape)"}
    push = "self_t.reshape(size)"  # the tangent may be laid out differently
    scatter = "new.reshape(base.shape)"

    def run(xp, self, size):
        size = infer_size(size, self.size)
        # NumPy copies silently where no view exists
        if not self.flags.c_contiguous and view_strides(self.shape, self.strides, size) is None:
            raise RuntimeError(
                "view size is not compatible with input tensor's size and stride (at least one "
                "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
            )
        return self.reshape(size)

    def batch(n, batched, self, size):
        return self.reshape((n, *infer_size(size, numel(self.shape[1:]))))

    def samples(s):
        yield s(s.real(3, 4), (2, 6))
        yield s(s.real(3, 4), (-1,))
        yield s(s.real(), (1, 1))
        yield s(s.real(0, 3), (3, 0))
        yield s(s.real(2, 3, 4).transpose(0, 2), (4, 3, 2, 1))


class view_dtype(View):
    """The same bytes read as another dtype."""

    schema = "view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)"
    promote = "keep"
    diff_outputs = (False,)
    scatter = "new.view(base.dtype)"

    def dtype(self, dtype):
        return dtype

    def run(xp, self, dtype):
        old, new = self.itemsize, dtype.itemsize
        if old != new:
            if self.ndim == 0:
                raise RuntimeError(
                    f"self.dim() cannot be 0 to view {self.dtype} as {dtype} "
                    "(different element sizes)"
                )
            if self.shape[-1] * old % new:
                raise RuntimeError(
                    f"self.size(-1) must be divisible by {new // old} to view {self.dtype} as "
                    f"{dtype} (different element sizes), but got {self.shape[-1]}"
                )
            if self.strides[-1] != old and self.shape[-1] > 1:
                raise RuntimeError(
                    f"self.stride(-1) must be 1 to view {self.dtype} as {dtype} "
                    f"(different element sizes), but got {self.strides[-1] // old}"
                )
        return self.view(dtype.np)

    def batch(n, batched, self, dtype):
        return self.view(dtype)

    def samples(s):
        yield s(s.int(2, 3), dt.float64)
        yield s(s.int(2, 4), dt.int32)


class unsafe_view(Op):
    """`view` whose result counts as fresh memory."""

    schema = "_unsafe_view(Tensor self, SymInt[] size) -> Tensor"
    promote = "keep"
    method = False
    linear = ("self",)
    complex = True
    cost = "cheap"
    grad = {"self": "grad.reshape(self.shape)"}

    def run(xp, self, size):
        return self.reshape(infer_size(size, self.size)).copy()

    def shape(self, size):
        return infer_size(size, numel(self.shape))

    def batch(n, batched, self, size):
        return ops._unsafe_view(self, (n, *infer_size(size, numel(self.shape[1:]))))

    def decomp(self, size):
        return ops.view(self, size)

    def samples(s):
        yield s(s.real(3, 4), (2, -1))
        yield s(s.real(), (1,))


class reshape(Composite):
    """The same elements in another shape: a view if the strides allow it, else a copy."""

    schema = "reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)"
    complex = True

    def compose(self, shape):
        data = self._data
        if not (isinstance(data, np.ndarray) and data.flags.c_contiguous):
            size = infer_size(shape, self.numel())
            if view_strides(self.shape, self.stride(), size) is None:
                self = overload_of(clone).call(self, "contiguous_format")
        return overload_of(view).call(self, shape)

    def samples(s):
        yield s(s.real(3, 4), (2, 6))
        yield s(s.real(3, 4).T, (-1,))
        yield s(s.real(), (-1,))
        yield s(s.real(0, 3), (3, 0, 2))


class reshape_as(Composite):
    """`reshape` to the shape of another tensor."""

    schema = "reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)"
    function = False

    def compose(self, other):
        return self.reshape(other.shape)

    def samples(s):
        yield s(s.real(3, 4), s.real(2, 6))


class view_as(Composite):
    """`view` with the shape of another tensor."""

    schema = "view_as(Tensor(a) self, Tensor other) -> Tensor(a)"
    function = False

    def compose(self, other):
        return self.view(other.shape)

    def samples(s):
        yield s(s.real(3, 4), s.real(2, 6))


class flatten(Composite):
    """Merge the dims from start_dim to end_dim into one."""

    schema = "flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)"
    complex = True

    def compose(self, start_dim, end_dim):
        shape = tuple(self.shape)
        start, end = wrap_dim(start_dim, len(shape)), wrap_dim(end_dim, len(shape))
        if start > end:
            raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
        if not shape:
            return self.reshape((1,))
        if start == end:
            return self
        merged = numel(shape[start : end + 1])
        return overload_of(reshape).call(self, (*shape[:start], merged, *shape[end + 1 :]))

    def samples(s):
        yield s(s.real(2, 3, 4))
        yield s(s.real(2, 3, 4), 1)
        yield s(s.real(2, 3, 4).transpose(0, 1), 0, 1)
        yield s(s.real())


class unflatten(Composite):
    """Split one dim into several."""

    schema = "unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)"
    complex = True

    def compose(self, dim, sizes):
        dim = wrap_dim(dim, self.ndim, scalar_ok=False)
        if not sizes:
            raise RuntimeError("unflatten: sizes must be non-empty")
        try:
            parts = infer_size(sizes, self.shape[dim])
        except RuntimeError:
            raise RuntimeError(
                f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim "
                f"{dim} ({self.shape[dim]}) in the input tensor"
            ) from None
        return self.view((*self.shape[:dim], *parts, *self.shape[dim + 1 :]))

    def samples(s):
        yield s(s.real(3, 8), 1, (2, 4))
        yield s(s.real(3, 8).T, 0, (-1, 4))


class ravel(Composite):
    """All elements in one dim; a view if the tensor is contiguous."""

    schema = "ravel(Tensor(a) self) -> Tensor(a)"

    def compose(self):
        return self.contiguous().view((-1,))

    def samples(s):
        yield s(s.real(3, 4))
        yield s(s.real(3, 4).T)
        yield s(s.real())


class permute(View):
    """The dims in another order."""

    schema = "permute(Tensor(a) self, int[] dims) -> Tensor(a)"
    complex = True
    grad = {"self": "grad.permute(inverse_permutation(dims))"}
    scatter = "new.permute(inverse_permutation(dims))"

    def run(xp, self, dims):
        return self.transpose(permutation(dims, self.ndim))

    def batch(n, batched, self, dims):
        return self.permute((0, *(d + 1 for d in permutation(dims, self.ndim - 1))))

    def samples(s):
        yield s(s.real(2, 3, 4), (2, 0, 1))
        yield s(s.real(2, 3, 4), (-1, 1, -3))
        yield s(s.real(), ())
        yield s(s.real(0, 3), (1, 0))


class transpose_int(View):
    """Two dims exchanged."""

    schema = "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)"
    inplace = "default"
    complex = True
    grad = {"self": "grad.transpose(dim0, dim1)"}
    scatter = "new.transpose(dim0, dim1)"

    def run(xp, self, dim0, dim1):
        dim0, dim1 = wrap_dim(dim0, self.ndim), wrap_dim(dim1, self.ndim)
        return self.swapaxes(dim0, dim1) if self.ndim else self[...]

    def batch(n, batched, self, dim0, dim1):
        dim0, dim1 = inner(dim0, self), inner(dim1, self)
        return self.alias() if self.ndim == 1 else self.transpose(dim0, dim1)

    def decomp(self, dim0, dim1):
        order = list(range(self.ndim))
        if order:
            dim0, dim1 = wrap_dim(dim0, self.ndim), wrap_dim(dim1, self.ndim)
            order[dim0], order[dim1] = order[dim1], order[dim0]
        return ops.permute(self, order)

    def samples(s):
        yield s(s.real(2, 3, 4), 0, -1)
        yield s(s.real(2, 3), 1, 1)
        yield s(s.real(), 0, -1)


class t(View):
    """Transpose of a matrix; vectors and scalars stay as they are."""

    schema = "t(Tensor(a) self) -> Tensor(a)"
    inplace = True
    complex = True
    grad = {"self": "grad.t()"}
    scatter = "new.t()"

    def run(xp, self):
        if self.ndim > 2:
            raise RuntimeError(
                f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D"
            )
        return self.transpose()

    def batch(n, batched, self):
        return self.transpose(1, 2) if self.ndim == 3 else self.alias()

    def decomp(self):
        return ops.permute(self, list(range(self.ndim))[::-1])

    def samples(s):
        yield s(s.real(2, 3))
        yield s(s.real(3))
        yield s(s.real())


class numpy_T(Composite):
    """All dims reversed: the property `x.T`."""

    schema = "numpy_T(Tensor(a) self) -> Tensor(a)"
    method = False
    function = False

    def compose(self):
        return overload_of(permute).call(self, tuple(range(self.ndim))[::-1])

    def samples(s):
        yield s(s.real(2, 3, 4))


def _swap_last(self, name: str):
    if self.ndim == 1:
        raise RuntimeError(
            f"tensor.{name} is only supported on matrices or batches of matrices. Got 1-D tensor."
        )
    return overload_of(transpose_int).call(self, -2, -1) if self.ndim else self


class mT(Composite):
    """The last two dims exchanged: the property `x.mT`."""

    schema = "mT(Tensor(a) self) -> Tensor(a)"
    method = False
    function = False

    def compose(self):
        return _swap_last(self, "mT")

    def samples(s):
        yield s(s.real(2, 3, 4))


class mH(Composite):
    """Conjugate transpose of the last two dims: the property `x.mH`."""

    schema = "mH(Tensor(a) self) -> Tensor(a)"
    method = False
    function = False

    def compose(self):
        swapped = _swap_last(self, "mH")
        return swapped.conj() if self.is_complex() else swapped

    def samples(s):
        yield s(s.real(2, 3, 4))


class adjoint(Composite):
    """Conjugate transpose of the last two dims."""

    schema = "adjoint(Tensor(a) self) -> Tensor(a)"
    complex = True

    def compose(self):
        swapped = _swap_last(self, "adjoint()")
        return swapped.conj() if self.is_complex() else swapped

    def samples(s):
        yield s(s.real(2, 3, 4))
        yield s(s.real(3, 4))


class matrix_H(Composite):
    """Conjugate transpose of a matrix: the property `x.H`."""

    schema = "matrix_H(Tensor(a) self) -> Tensor(a)"
    method = False
    function = False

    def compose(self):
        if self.ndim not in (0, 2):
            hint = " For batches of matrices, consider using tensor.mH" if self.ndim > 2 else ""
            raise RuntimeError(
                "tensor.H is only supported on matrices (2-D tensors). "
                f"Got {self.ndim}-D tensor.{hint}"
            )
        swapped = self.transpose(0, 1) if self.ndim else self
        return swapped.conj() if self.is_complex() else swapped

    def samples(s):
        yield s(s.real(3, 4))


class swapaxes(Composite):
    """Another name of `transpose`."""

    schema = "swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)"

    def compose(self, axis0, axis1):
        return self.transpose(axis0, axis1)

    def samples(s):
        yield s(s.real(2, 3, 4), 0, 2)


class swapdims(Composite):
    """Another name of `transpose`."""

    schema = "swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)"

    def compose(self, dim0, dim1):
        return self.transpose(dim0, dim1)

    def samples(s):
        yield s(s.real(2, 3, 4), 0, 2)


def _move(self, source, destination):
    if len(source) != len(destination):
        raise RuntimeError(
            "movedim: Invalid source or destination dims: source "
            f"({list(source)} dims) should contain the same number of dims as destination "
            f"({list(destination)} dims)"
        )
    wrapped = []
    for name, dims in (("source", source), ("destination", destination)):
        wrapped.append([wrap_dim(d, self.ndim) for d in dims])
        if len(set(wrapped[-1])) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(dims)})")
    if self.ndim == 0:
        return self.alias()
    order = [d for d in range(self.ndim) if d not in wrapped[0]]
    for where, which in sorted(zip(wrapped[1], wrapped[0], strict=True)):
        order.insert(where, which)
    return self.permute(order)


class movedim_int(Composite):
    """One dim moved to another place."""

    schema = "movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)"
    complex = True

    def compose(self, source, destination):
        return _move(self, (source,), (destination,))

    def samples(s):
        yield s(s.real(2, 3, 4), 0, -1)
        yield s(s.real(), 0, 0)


class movedim_intlist(Composite):
    """Several dims moved to other places."""

    schema = "movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)"

    def compose(self, source, destination):
        return _move(self, source, destination)

    def samples(s):
        yield s(s.real(2, 3, 4), (0, 1), (-1, 0))


class moveaxis_int(Composite):
    """Another name of `movedim`."""

    schema = "moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)"

    def compose(self, source, destination):
        return _move(self, (source,), (destination,))

    def samples(s):
        yield s(s.real(2, 3, 4), 0, -1)


class moveaxis_intlist(Composite):
    """Another name of `movedim`."""

    schema = "moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)"

    def compose(self, source, destination):
        return _move(self, source, destination)

    def samples(s):
        yield s(s.real(2, 3, 4), (0, 1), (-1, 0))


class expand(View):
    """Dims of size 1 repeated without a copy, and new dims in front."""

    schema = "expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)"
    complex = True
    function = False
    grad = {"self": "grad"}  # summed back by the projection

    def run(xp, self, size, implicit):
        shape = expanded_shape(self.shape, size)
        extra = len(shape) - self.ndim
        strides = (0,) * extra + tuple(
            old if have == want else 0
            for have, want, old in zip(self.shape, shape[extra:], self.strides, strict=True)
        )
        return strided(xp, self, shape, strides)

    def batch(n, batched, self, size, implicit):
        shape = expanded_shape(self.shape[1:], size)
        return pad_rank(self, len(shape)).expand((n, *shape))

    def samples(s):
        yield s(s.real(3, 1), (3, 4))
        yield s(s.real(3, 1), (2, -1, 4))
        yield s(s.real(), (2, 3))
        yield s(s.real(1, 3), (0, 3))
        yield s(s.real(3, 4).T, (2, 4, 3))


class expand_as(Composite):
    """`expand` to the shape of another tensor."""

    schema = "expand_as(Tensor(a) self, Tensor other) -> Tensor(a)"
    function = False

    def compose(self, other):
        return self.expand(other.shape)

    def samples(s):
        yield s(s.real(3, 1), s.real(2, 3, 4))


class broadcast_to(Composite):
    """Another name of `expand`."""

    schema = "broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)"

    def compose(self, size):
        return self.expand(size)

    def samples(s):
        yield s(s.real(3, 1), (2, 3, 4))


class broadcast_tensors(Composite):
    """All tensors expanded to their common shape."""

    schema = "broadcast_tensors(Tensor[] tensors) -> Tensor[]"
    method = False

    def compose(tensors):
        shape = broadcast_shapes(*(x.shape for x in tensors))
        return [x.expand(shape) for x in tensors]

    def samples(s):
        yield s([s.real(3, 1), s.real(2, 1, 4)])


def _unit_dims(shape, dims) -> tuple[int, ...]:
    return tuple(d for d in dims if shape[d] == 1)


class squeeze(View):
    """All dims of size 1 removed."""

    schema = "squeeze(Tensor(a) self) -> Tensor(a)"
    inplace = True
    complex = True
    grad = {"self": "unsqueeze_to(grad, None, self.shape)"}
    scatter = "new.reshape(base.shape)"

    def run(xp, self):
        return self.squeeze()

    def batch(n, batched, self):
        return self.squeeze(_unit_dims(self.shape, range(1, self.ndim)))

    def decomp(self):
        return ops.squeeze(self, _unit_dims(self.shape, range(self.ndim)))

    def samples(s):
        yield s(s.real(1, 3, 1))
        yield s(s.real(2, 3))
        yield s(s.real(1))
        yield s(s.real())


class squeeze_dim(View):
    """One dim removed if its size is 1."""

    schema = "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)"
    inplace = True
    complex = True
    grad = {"self": "unsqueeze_to(grad, (dim,), self.shape)"}
    scatter = "new.reshape(base.shape)"

    def run(xp, self, dim):
        dim = wrap_dim(dim, self.ndim)
        return self.squeeze(dim) if self.ndim and self.shape[dim] == 1 else self[...]

    def batch(n, batched, self, dim):
        dim = inner(dim, self)
        return self.squeeze(dim) if dim < self.ndim else self.alias()

    def decomp(self, dim):
        return ops.squeeze(self, (dim,))

    def samples(s):
        yield s(s.real(1, 3, 1), 0)
        yield s(s.real(1, 3, 1), -1)
        yield s(s.real(2, 3), 1)
        yield s(s.real(), 0)


class squeeze_dims(View):
    """The given dims removed where their size is 1."""

    schema = "squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)"
    inplace = True
    complex = True
    grad = {"self": "unsqueeze_to(grad, dim, self.shape)"}
    scatter = "new.reshape(base.shape)"

    def run(xp, self, dim):
        dims = wrap_dims(dim, self.ndim, empty_is_all=False)
        return self.squeeze(_unit_dims(self.shape, dims))

    def batch(n, batched, self, dim):
        dims = wrap_dims(dim, self.ndim - 1, empty_is_all=False)
        return self.squeeze(tuple(d + 1 for d in dims))

    def samples(s):
        yield s(s.real(1, 3, 1), (0, -1))
        yield s(s.real(1, 3, 1), (0, 1))
        yield s(s.real(1, 3), ())
        yield s(s.real(), (0,))


class unsqueeze(View):
    """A new dim of size 1."""

    schema = "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)"
    inplace = True
    complex = True
    grad = {"self": "grad.squeeze(dim)"}
    scatter = "new.squeeze(dim)"

    def run(xp, self, dim):
        return self[along(wrap_dim(dim, self.ndim + 1), None)]

    def batch(n, batched, self, dim):
        return self.unsqueeze(wrap_dim(dim, self.ndim) + 1)

    def samples(s):
        yield s(s.real(2, 3), 0)
        yield s(s.real(2, 3), -1)
        yield s(s.real(), 0)
        yield s(s.real(0, 3), 1)


class select_int(View):
    """One index of one dim; the dim disappears."""

    schema = "select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)"
    complex = True
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


class slice_Tensor(View):
    """Every step-th index of one dim between two bounds."""

    schema = (
        "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, "
        "SymInt step=1) -> Tensor(a)"
    )
    method = False
    function = False
    complex = True
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
    if not -size <= start <= size:
        raise IndexError(
            f"start out of range (expected to be in range of [{-size}, {size}], but got {start})"
        )
    start = start + size if start < 0 else start
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return dim, start


class narrow(Composite):
    """`length` indices of one dim from `start` on."""

    schema = "narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)"
    complex = True

    def compose(self, dim, start, length):
        dim, start = _narrowed(self.shape, dim, start, length)
        return ops.slice(self, dim, start, start + length, 1)

    def samples(s):
        yield s(s.real(5, 4), 0, 1, 3)
        yield s(s.real(5, 4), -1, -2, 2)
        yield s(s.real(5, 4), 0, 5, 0)


class narrow_Tensor(View):
    """`narrow` with the start in a 0-d integer tensor, whose value may not be known yet."""

    schema = "narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)"
    complex = True
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

    def compose(self, dim, start, length):
        if dim >= self.ndim > 0:
            raise RuntimeError(f"Expected dim < {self.ndim} to be true, but got dim = {dim}.")
        return self.narrow(dim, start, length).clone(memory_format="contiguous_format")

    def samples(s):
        yield s(s.real(5, 4), 0, 1, 3)


class diagonal(View):
    """A diagonal of the matrices in two dims, as the last dim."""

    schema = "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)"
    complex = True
    grad = {"self": "diagonal_backward(grad, self.shape, offset, dim1, dim2)"}
    scatter = "diagonal_scatter(base, new, offset, dim1, dim2)"

    def run(xp, self, offset, dim1, dim2):
        return diagonal_view(xp, self, offset, dim1, dim2)

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
    method = False
    function = False

    def compose(A, offset, dim1, dim2):
        return A.diagonal(offset, dim1, dim2)

    def samples(s):
        yield s(s.real(2, 3, 4), offset=1)


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


class unfold(View):
    """Sliding windows of one dim; the window becomes the last dim."""

    schema = "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)"
    function = False
    complex = True
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

    def samples(s):
        yield s(s.real(7), 0, 3, 1)
        yield s(s.real(7, 2), 0, 3, 2)
        yield s(s.real(2, 7).T, -2, 2, 3)
        yield s(s.real(), 0, 1, 1)


class as_strided(View):
    """The tensor's memory read with the given sizes, strides and offset."""

    schema = (
        "as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, "
        "SymInt? storage_offset=None) -> Tensor(a)"
    )
    inplace = True
    grad = {
        "self": "as_strided_backward(grad, self.shape, self.stride(), self.storage_offset(), "
        "size, stride, storage_offset)"
    }
    push = (
        "as_strided_tangent(self_t, self_p.shape, self_p.stride(), self_p.storage_offset(), "
        "size, stride, storage_offset)"
    )
    scatter = "as_strided_scatter(base, new, size, stride, storage_offset)"

    def run(xp, self, size, stride, storage_offset):
        return storage_view(xp, self, size, stride, storage_offset)

    def batch(n, batched, self, size, stride, storage_offset):
        return self.as_strided((n, *size), (self.stride()[0], *stride), storage_offset)

    def samples(s):
        yield s(s.real(12), (3, 2), (4, 1))
        yield s(s.real(3, 4), (2, 3), (1, 2), 2)
        yield s(s.real(3, 4), (5, 3), (1, 1), 1)
        yield s(s.real(4), (3, 4), (0, 1))


class detach(View):
    """The same memory without history."""

    schema = "detach(Tensor(a) self) -> Tensor(a)"
    complex = True
    diff_outputs = (False,)
    nondiff = ("self",)
    scatter = "new"
    run = "self[...]"

    def batch(n, batched, self):
        return self.detach()

    def decomp(self):
        return ops.alias(self)

    def samples(s):
        yield s(s.real(2, 3))


class alias(View):
    """The same tensor under another name."""

    schema = "alias(Tensor(a) self) -> Tensor(a)"
    complex = True
    grad = {"self": "grad"}
    scatter = "new"
    run = "self[...]"

    def batch(n, batched, self):
        return ops.alias(self)

    def samples(s):
        yield s(s.real(2, 3))
        yield s(s.real())


class split_Tensor(View):
    """Consecutive pieces of equal size; the last may be smaller."""

    schema = "split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]"
    complex = True
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

    def samples(s):
        yield s(s.real(5, 2), 2)
        yield s(s.real(2, 4), 2, -1)
        yield s(s.real(0, 2), 3)


class split_with_sizes(View):
    """Consecutive pieces of the given sizes."""

    schema = "split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]"
    complex = True
    grad = {"self": "split_with_sizes_backward(grads, self.shape, split_sizes, dim)"}

    def run(xp, self, split_sizes, dim):
        needs_dims(self.ndim, "split")
        dim = wrap_dim(dim, self.ndim)
        return cut(self, dim, checked_pieces(self.shape[dim], dim, split_sizes))

    def batch(n, batched, self, split_sizes, dim):
        needs_dims(self.ndim - 1, "split")
        return ops.split_with_sizes(self, split_sizes, inner(dim, self))

    def samples(s):
        yield s(s.real(5, 2), (1, 4))
        yield s(s.real(2, 4), (2, 0, 2), -1)


class split_sizes(Composite):
    """`split` with a list of sizes."""

    schema = "split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]"

    def compose(self, split_size, dim):
        return ops.split_with_sizes(self, split_size, dim)

    def samples(s):
        yield s(s.real(5, 2), (1, 4))


class chunk(Composite):
    """At most `chunks` pieces of equal size; the last may be smaller."""

    schema = "chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]"
    complex = True

    def compose(self, chunks, dim):
        needs_dims(self.ndim, "chunk")
        if chunks <= 0:
            raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
        size = self.shape[wrap_dim(dim, self.ndim)]
        step = (size + chunks - 1) // chunks
        if step == 0:  # an empty dim still gives the number of pieces asked for
            return ops.split_with_sizes(self, [0] * chunks, dim)
        return ops.split(self, step, dim)

    def samples(s):
        yield s(s.real(5, 2), 2)
        yield s(s.real(2, 6), 4, 1)
        yield s(s.real(0, 2), 3)


def _clones(parts) -> list:
    return [p.clone(memory_format="contiguous_format") for p in parts]


class unsafe_split_Tensor(Composite):
    """`split` into fresh tensors."""

    schema = "unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]"

    def compose(self, split_size, dim):
        return _clones(self.split(split_size, dim))

    def samples(s):
        yield s(s.real(5, 2), 2)


class unsafe_split_with_sizes(Composite):
    """`split_with_sizes` into fresh tensors."""

    schema = "unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]"

    def compose(self, split_sizes, dim):
        return _clones(self.split_with_sizes(split_sizes, dim))

    def samples(s):
        yield s(s.real(5, 2), (1, 4))


class unsafe_chunk(Composite):
    """`chunk` into fresh tensors."""

    schema = "unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]"

    def compose(self, chunks, dim):
        return _clones(self.chunk(chunks, dim))

    def samples(s):
        yield s(s.real(5, 2), 2)


class unbind_int(View):
    """One tensor per index of a dim."""

    schema = "unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]"
    complex = True
    grad = {"self": "unbind_backward(grads, self.shape, dim)"}

    def run(xp, self, dim):
        dim = wrap_dim(dim, self.ndim, scalar_ok=False)
        return [self[along(dim, i)] for i in range(self.shape[dim])]

    def batch(n, batched, self, dim):
        return self.unbind(wrap_dim(dim, self.ndim - 1, scalar_ok=False) + 1)

    def decomp(self, dim):
        return [ops.select(self, dim, i) for i in range(self.shape[dim])]

    def samples(s):
        yield s(s.real(3, 2))
        yield s(s.real(3, 2), -1)
        yield s(s.real(3))


def _split_at(self, bounds, dim):
    """Pieces between consecutive bounds, as `tensor_split` makes them."""
    edges = [0, *bounds, END]
    return [ops.slice(self, dim, a, b, 1) for a, b in itertools.pairwise(edges)]


def _tensor_split(self, sections: int, dim: int):
    if self.ndim == 0:
        raise RuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        )
    dim = wrap_dim(dim, self.ndim)
    if sections <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
    small, large = divmod(self.shape[dim], sections)
    sizes = [small + 1] * large + [small] * (sections - large)
    return ops.split_with_sizes(self, sizes, dim)


class tensor_split_sections(Composite):
    """Pieces as equal as possible."""

    schema = "tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]"

    def compose(self, sections, dim):
        return _tensor_split(self, sections, dim)

    def samples(s):
        yield s(s.real(5, 2), 3)
        yield s(s.real(2, 5), 3, -1)


class tensor_split_indices(Composite):
    """Pieces between the given indices."""

    schema = "tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]"

    def compose(self, indices, dim):
        return _split_at(self, indices, wrap_dim(dim, self.ndim, scalar_ok=False))

    def samples(s):
        yield s(s.real(5, 2), (1, 3))
        yield s(s.real(2, 5), (1, 9, 2), 1)


class tensor_split_tensor(Composite):
    """`tensor_split` with the sections or indices in a tensor."""

    schema = (
        "tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, "
        "Tensor tensor_indices_or_sections, int dim=0) -> Tensor(a)[]"
    )

    def compose(self, tensor_indices_or_sections, dim):
        where = tensor_indices_or_sections.tolist()
        if tensor_indices_or_sections.ndim == 0:
            return _tensor_split(self, where, dim)
        return _split_at(self, where, dim)

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

    def samples(s):
        yield s(s.real(3, 4), 2)
        yield s(s.real(4), 2)


class hsplit_array(Composite):
    """Pieces along the second dim between the given indices."""

    schema = "hsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]"

    def compose(self, indices):
        return _named_split(self, "hsplit", 1, 0 if self.ndim == 1 else 1, indices)

    def samples(s):
        yield s(s.real(3, 4), (1, 3))


class vsplit_int(Composite):
    """Equal pieces along the first dim."""

    schema = "vsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]"

    def compose(self, sections):
        return _named_split(self, "vsplit", 2, 0, sections)

    def samples(s):
        yield s(s.real(4, 3), 2)


class vsplit_array(Composite):
    """Pieces along the first dim between the given indices."""

    schema = "vsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]"

    def compose(self, indices):
        return _named_split(self, "vsplit", 2, 0, indices)

    def samples(s):
        yield s(s.real(4, 3), (1, 3))


class dsplit_int(Composite):
    """Equal pieces along the third dim."""

    schema = "dsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]"

    def compose(self, sections):
        return _named_split(self, "dsplit", 3, 2, sections)

    def samples(s):
        yield s(s.real(1, 3, 4), 2)


class dsplit_array(Composite):
    """Pieces along the third dim between the given indices."""

    schema = "dsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]"

    def compose(self, indices):
        return _named_split(self, "dsplit", 3, 2, indices)

    def samples(s):
        yield s(s.real(1, 3, 4), (1, 3))


class view_as_real(View):
    """A complex tensor as pairs of real numbers in a last dim."""

    schema = "view_as_real(Tensor(a) self) -> Tensor(a)"
    promote = "keep"
    grad = {"self": "view_as_complex(grad.contiguous())"}
    scatter = "view_as_complex(new.contiguous())"

    def dtype(self):
        return self.dtype.to_real()

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
    promote = "keep"
    grad = {"self": "view_as_real(grad.contiguous())"}
    push = "view_as_complex(self_t.contiguous())"
    scatter = "view_as_real(new)"

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
        return ops.view_as_complex(self)

    def samples(s):
        yield s(s.real(3, 2))
        yield s(s.real(2, 3, 2).transpose(0, 1))
        yield s(s.real(2))


# --- what a write through a view needs ------------------------------------------------------------


class select_scatter(Op):
    """A copy of `self` with `src` written where `select` reads."""

    schema = "select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor"
    promote = "keep"
    linear = ("self", "src")
    complex = True
    cost = "cheap"
    shape = "tuple(self.shape)"
    grad = {
        "self": "select_scatter(grad, grad.new_zeros(src.shape), dim, index)",
        "src": "grad.select(dim, index)",
    }

    def run(xp, self, src, dim, index):
        dim, index = checked_select(self.shape, dim, index)
        out = self.copy("K")
        same_size_as_slice(src, (*self.shape[:dim], *self.shape[dim + 1 :]))
        out[along(dim, index)] = src
        return out

    def batch(n, batched, self, src, dim, index):
        self, src = in_front(self, batched[0], n), in_front(src, batched[1], n)
        dim, index = checked_select(self.shape[1:], dim, index)
        return ops.select_scatter(self, src, dim + 1, index)

    def samples(s):
        yield s(s.real(3, 4), s.real(4), 0, 1)
        yield s(s.real(3, 4), s.real(3), -1, -2)
        yield s(s.real(3), s.real(), 0, 0)


class slice_scatter(Op):
    """A copy of `self` with `src` written where `slice` reads."""

    schema = (
        "slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, "
        "SymInt step=1) -> Tensor"
    )
    promote = "keep"
    linear = ("self", "src")
    complex = True
    cost = "cheap"
    shape = "tuple(self.shape)"
    grad = {
        "self": "slice_scatter(grad, grad.new_zeros(src.shape), dim, start, end, step)",
        "src": "take_slice(grad, dim, start, end, step)",
    }

    def run(xp, self, src, dim, start, end, step):
        dim, part, size = checked_slice(self.shape, dim, start, end, step)
        same_size_as_slice(src, (*self.shape[:dim], size, *self.shape[dim + 1 :]))
        out = self.copy("K")
        out[along(dim, part)] = src
        return out

    def batch(n, batched, self, src, dim, start, end, step):
        self, src = in_front(self, batched[0], n), in_front(src, batched[1], n)
        dim, part, _ = checked_slice(self.shape[1:], dim, start, end, step)
        return ops.slice_scatter(self, src, dim + 1, part.start, part.stop, step)

    def samples(s):
        yield s(s.real(5, 4), s.real(2, 4), 0, 1, 3)
        yield s(s.real(5, 4), s.real(5, 2), -1, 0, END, 2)
        yield s(s.real(5, 4), s.real(5, 4))


class diagonal_scatter(Op):
    """A copy of `self` with `src` written on a diagonal."""

    schema = (
        "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor"
    )
    promote = "keep"
    linear = ("self", "src")
    complex = True
    cost = "cheap"
    shape = "tuple(self.shape)"
    grad = {
        "self": "diagonal_scatter(grad, grad.new_zeros(src.shape), offset, dim1, dim2)",
        "src": "grad.diagonal(offset, dim1, dim2)",
    }

    def run(xp, self, src, offset, dim1, dim2):
        out = self.copy()
        place = diagonal_view(xp, out, offset, dim1, dim2)
        same_size_as_slice(src, place.shape)
        place[...] = src
        return out

    def batch(n, batched, self, src, offset, dim1, dim2):
        self, src = in_front(self, batched[0], n), in_front(src, batched[1], n)
        dim1, dim2 = two_dims(dim1, dim2, self.ndim - 1)
        return ops.diagonal_scatter(self, src, offset, dim1 + 1, dim2 + 1)

    def samples(s):
        yield s(s.real(3, 4), s.real(3))
        yield s(s.real(2, 3, 4), s.real(2, 2), -1, -2, -1)


class as_strided_scatter(Op):
    """A copy of `self` with `src` written where `as_strided` reads."""

    schema = (
        "as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, "
        "SymInt? storage_offset=None) -> Tensor"
    )
    promote = "keep"
    linear = ("self", "src")
    cost = "cheap"
    shape = "tuple(self.shape)"
    grad = {
        "self": "as_strided_scatter(grad.contiguous(), grad.new_zeros(src.shape), size, stride, "
        "storage_offset)",
        "src": "grad.contiguous().as_strided(size, stride, storage_offset)",
    }

    def run(xp, self, src, size, stride, storage_offset):
        out = self.copy()
        place = storage_view(xp, out, size, stride, storage_offset or 0)
        same_size_as_slice(src, size)
        place[...] = src
        return out

    def batch(n, batched, self, src, size, stride, storage_offset):
        self, src = in_front(self, batched[0], n), in_front(src, batched[1], n)
        hop = numel(self.shape[1:])  # the kernel works on a row-major copy
        return ops.as_strided_scatter(self, src, (n, *size), (hop, *stride), storage_offset)

    def samples(s):
        yield s(s.real(3, 4), s.real(2, 2), (2, 2), (4, 1), 1)
        yield s(s.real(12), s.real(3), (3,), (2,))


# --- adjoints of views ----------------------------------------------------------------------------


class select_backward(Op):
    """Zeros with the gradient of `select` in its place."""

    schema = (
        "select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor"
    )
    promote = "keep"
    linear = ("grad_output",)
    method = False
    function = False
    complex = True
    cost = "cheap"
    shape = "tuple(input_sizes)"
    grad = {"grad_output": "grad.select(dim, index)"}

    def run(xp, grad_output, input_sizes, dim, index):
        dim, index = checked_select(tuple(input_sizes), dim, index)
        out = xp.zeros(tuple(input_sizes), grad_output.dtype)
        out[along(dim, index)] = grad_output
        return out

    def batch(n, batched, grad_output, input_sizes, dim, index):
        dim = wrap_dim(dim, len(input_sizes)) + 1
        return ops.select_backward(grad_output, (n, *input_sizes), dim, index)

    def decomp(grad_output, input_sizes, dim, index):
        zeros = ops.new_zeros(grad_output, input_sizes)
        return ops.select_scatter(zeros, grad_output, dim, index)

    def samples(s):
        yield s(s.real(4), (3, 4), 0, 1)
        yield s(s.real(3), (3, 4), -1, -1)


class slice_backward(Op):
    """Zeros with the gradient of `slice` in its place."""

    schema = (
        "slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, "
        "SymInt end, SymInt step) -> Tensor"
    )
    promote = "keep"
    linear = ("grad_output",)
    method = False
    function = False
    complex = True
    cost = "cheap"
    shape = "tuple(input_sizes)"
    grad = {"grad_output": "take_slice(grad, dim, start, end, step)"}

    def run(xp, grad_output, input_sizes, dim, start, end, step):
        dim, part, _ = checked_slice(tuple(input_sizes), dim, start, end, step)
        out = xp.zeros(tuple(input_sizes), grad_output.dtype)
        out[along(dim, part)] = grad_output
        return out

    def batch(n, batched, grad_output, input_sizes, dim, start, end, step):
        dim = wrap_dim(dim, len(input_sizes)) + 1
        return ops.slice_backward(grad_output, (n, *input_sizes), dim, start, end, step)

    def decomp(grad_output, input_sizes, dim, start, end, step):
        zeros = ops.new_zeros(grad_output, input_sizes)
        return ops.slice_scatter(zeros, grad_output, dim, start, end, step)

    def samples(s):
        yield s(s.real(2, 4), (5, 4), 0, 1, 3, 1)
        yield s(s.real(5, 2), (5, 4), -1, 0, END, 2)


class diagonal_backward(Op):
    """Zeros with the gradient of `diagonal` in its place."""

    schema = (
        "diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, "
        "int dim2) -> Tensor"
    )
    promote = "keep"
    linear = ("grad_output",)
    method = False
    function = False
    complex = True
    cost = "cheap"
    shape = "tuple(input_sizes)"
    grad = {"grad_output": "grad.diagonal(offset, dim1, dim2)"}

    def run(xp, grad_output, input_sizes, offset, dim1, dim2):
        out = xp.zeros(tuple(input_sizes), grad_output.dtype)
        diagonal_view(xp, out, offset, dim1, dim2)[...] = grad_output
        return out

    def batch(n, batched, grad_output, input_sizes, offset, dim1, dim2):
        dim1, dim2 = two_dims(dim1, dim2, len(input_sizes))
        return ops.diagonal_backward(grad_output, (n, *input_sizes), offset, dim1 + 1, dim2 + 1)

    def decomp(grad_output, input_sizes, offset, dim1, dim2):
        zeros = ops.new_zeros(grad_output, input_sizes)
        return ops.diagonal_scatter(zeros, grad_output, offset, dim1, dim2)

    def samples(s):
        yield s(s.real(3), (3, 4), 0, 0, 1)
        yield s(s.real(2, 2), (2, 3, 4), -1, -2, -1)


class unfold_backward(Op):
    """Overlapping windows added back into the dim that they were cut from."""

    schema = (
        "unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step)"
        " -> Tensor"
    )
    linear = ("grad_in",)
    method = False
    function = False
    complex = True
    shape = "tuple(input_sizes)"
    grad = {"grad_in": "grad.unfold(dim, size, step)"}

    def run(xp, grad_in, input_sizes, dim, size, step):
        out = xp.zeros(tuple(input_sizes), grad_in.dtype)
        if not input_sizes:
            out[...] = grad_in.sum(-1)
            return out
        dim = wrap_dim(dim, len(input_sizes))
        reach = (grad_in.shape[dim] - 1) * step + 1
        # one addition per place in the window, or per window, whichever are fewer
        if size <= grad_in.shape[dim] or step < 1:
            for k in range(size):
                out[along(dim, slice(k, k + reach, step))] += grad_in[..., k]
        else:
            for w in range(grad_in.shape[dim]):
                window = xp.moveaxis(grad_in[along(dim, w)], -1, dim)
                out[along(dim, slice(w * step, w * step + size))] += window
        return out

    def batch(n, batched, grad_in, input_sizes, dim, size, step):
        if not input_sizes:
            return grad_in.sum(-1)
        dim = wrap_dim(dim, len(input_sizes)) + 1
        return ops.unfold_backward(grad_in, (n, *input_sizes), dim, size, step)

    def decomp(grad_in, input_sizes, dim, size, step):
        if not input_sizes:
            return grad_in.sum(-1)
        dim = wrap_dim(dim, len(input_sizes))
        place = ops.arange(input_sizes[dim], device=grad_in.device).unfold(0, size, step)
        index = [None] * dim + [place.reshape((-1,))]
        windows = ops.movedim(grad_in, -1, dim + 1).flatten(dim, dim + 1)
        return ops.index_put(ops.new_zeros(grad_in, input_sizes), index, windows, True)

    def samples(s):
        yield s(s.real(5, 3), (7,), 0, 3, 1)
        yield s(s.real(2, 3, 3), (2, 7), 1, 3, 2)
        yield s(s.real(2, 2, 5), (7, 2), 0, 5, 2)


# --- copies ---------------------------------------------------------------------------------------


class clone(Pointwise):
    """A copy in memory of its own."""

    schema = "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor"
    promote = "same"
    inplace = False
    complex = True
    grad = {"self": "grad"}
    push = "clone(self_t, memory_format=memory_format)"  # laid out like the result
    c = "{self}"

    def run(xp, self, memory_format):
        return self.copy(layout(memory_format))

    def samples(s):
        yield s(s.real(3, 4))
        yield s(s.real(3, 4).T)
        yield s(s.real())
        yield s(s.real(0, 3))


class contiguous(Composite):
    """The tensor itself if it is row-major, else a row-major copy."""

    schema = (
        "contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)"
    )
    function = False

    def compose(self, memory_format):
        if self.is_contiguous():
            return self
        return overload_of(clone).call(self, "contiguous_format")

    def samples(s):
        yield s(s.real(3, 4))
        yield s(s.real(3, 4).T)


class to_copy(Pointwise):
    """A copy in another dtype or on another device."""

    schema = (
        "_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None, bool non_blocking=False, "
        "MemoryFormat? memory_format=None) -> Tensor"
    )
    promote = "keep"
    inplace = False
    method = False
    complex = True
    grad = {"self": "grad.to(self.device)"}  # cast back by the projection
    push = "_to_copy(self_t, dtype=result.dtype, device=device, memory_format=memory_format)"
    c = "{self}"

    def dtype(self, dtype, layout, device, pin_memory, non_blocking, memory_format):
        return dtype or self.dtype

    def run(xp, self, dtype, layout, device, pin_memory, non_blocking, memory_format):
        target = self.dtype if dtype is None else dtype.np
        order = "C" if str(memory_format).endswith("contiguous_format") else "K"
        out = convert(self, target, order)
        return out if device is None else transfer(out, device)

    def samples(s):
        yield s(s.real(3, 4))
        yield s(s.real(3, 4).T)
        yield s(s.real())


def _to(self, dtype, device, copy: bool, memory_format=None):
    """The tensor itself if nothing changes, else a converted copy."""
    changes = {}
    if dtype is not None and dtype is not self.dtype:
        changes["dtype"] = dtype
    if device is not None and device != self.device:
        changes["device"] = device
    if memory_format is not None and not str(memory_format).endswith("preserve_format"):
        changes["memory_format"] = memory_format
    return ops._to_copy(self, **changes) if changes or copy else self


class to_other(Composite):
    """Conversion to the dtype and device of another tensor."""

    schema = (
        "to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, "
        "MemoryFormat? memory_format=None) -> Tensor(a)"
    )
    function = False

    def compose(self, other, non_blocking, copy, memory_format):
        return _to(self, other.dtype, other.device, copy, memory_format)

    def samples(s):
        yield s(s.real(3, 4), s.tensor(0, dt.complex128))


class to_dtype(Composite):
    """Conversion to a dtype."""

    schema = (
        "to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, "
        "MemoryFormat? memory_format=None) -> Tensor(a)"
    )
    function = False

    def compose(self, dtype, non_blocking, copy, memory_format):
        return _to(self, dtype, None, copy, memory_format)

    def samples(s):
        yield s(s.real(3, 4), dt.complex128)
        yield s(s.real(3, 4), dt.int64)


class to_device(Composite):
    """Conversion to a device and optionally a dtype."""

    schema = (
        "to.device(Tensor(a) self, Device device, ScalarType? dtype=None, bool non_blocking=False, "
        "bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)"
    )
    function = False

    def compose(self, device, dtype, non_blocking, copy, memory_format):
        return _to(self, dtype, device, copy, memory_format)

    def samples(s):
        yield s(s.real(3, 4), "cpu")
        yield s(s.real(3, 4), "cpu", dt.complex128)


class to_dtype_layout(Composite):
    """Conversion by keywords."""

    schema = (
        "to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None, bool non_blocking=False, bool copy=False, "
        "MemoryFormat? memory_format=None) -> Tensor(a)"
    )
    function = False

    def compose(self, dtype, layout, device, pin_memory, non_blocking, copy, memory_format):
        return _to(self, dtype, device, copy, memory_format)

    def samples(s):
        yield s(s.real(3, 4), dtype=dt.float64, copy=True)


class type_as(Composite):
    """Conversion to the dtype of another tensor."""

    schema = "type_as(Tensor self, Tensor other) -> Tensor"
    function = False

    def compose(self, other):
        return _to(self, other.dtype, other.device, False)

    def samples(s):
        yield s(s.real(3, 4), s.tensor(0, dt.complex128))


# Tensor properties, by the operator that each stands for.
PROPERTIES = {"T": "numpy_T", "mT": "mT", "mH": "mH", "H": "matrix_H"}

class copy(Op):
    """`src` broadcast to the shape, and cast to the dtype, of `self`."""

    schema = "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor"
    promote = "keep"
    function = False
    method = False
    inplace = True
    complex = True
    linear = ("src",)
    constant = ("self",)
    cost = "cheap"
    shape = "tuple(self.shape)"
    grad = {"src": "grad"}

    def run(xp, self, src, non_blocking):
        shape = expanded_shape(src.shape, self.shape)
        out = xp.empty(shape, self.dtype)
        if src.dtype.kind == "c" and self.dtype.kind not in "cb":
            src = src.real
        out[...] = src
        return out

    def batch(n, batched, self, src, non_blocking):
        self = in_front(self, batched[0], n)
        if batched[1]:
            src = pad_rank(src, self.ndim - 1)
        return ops.copy(self, src)

    def samples(s):
        yield s(s.real(3, 4), s.real(3, 4))
        yield s(s.real(3, 4), s.real(4))
        yield s(s.real(3, 4), s.real())


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


class cat(Op):
    """Tensors joined along a dim."""

    schema = "cat(Tensor[] tensors, int dim=0) -> Tensor"
    method = False
    promote = "keep"
    complex = True
    linear = ("tensors",)
    out = ("apart", "castable")
    cost = "cheap"
    grad = {"tensors": "cat_backward(grad, tensors.shape, dim)"}

    def dtype(tensors, dim):
        return dt.result_type(tensors)

    def run(xp, tensors, dim):
        cat_shape(tensors, dim)
        return xp.concatenate(unified(tensors, cat_parts(tensors)), axis=dim)

    def shape(tensors, dim):
        return cat_shape(tensors, dim)

    def batch(n, batched, tensors, dim):
        flags = batched[0]
        parts = [
            in_front(x, b, n)
            for x, b in zip(tensors, flags, strict=True)
            if tuple(x.shape[1:] if b else x.shape) != (0,)
        ]
        if not parts:
            return in_front(tensors[0], flags[0], n)
        if parts[0].ndim == 1:
            raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
        return ops.cat(parts, inner(dim, parts[0]))

    def samples(s):
        yield s([s.real(2, 3), s.real(4, 3)])
        yield s([s.real(2, 3), s.real(2, 1), s.real(2, 0)], -1)
        yield s([s.real(0), s.real(2, 3)], 1)
        yield s([s.real(3)])


class concat(Composite):
    """Another name of `cat`."""

    schema = "concat(Tensor[] tensors, int dim=0) -> Tensor"
    method = False

    def compose(tensors, dim):
        return ops.cat(tensors, dim)

    def samples(s):
        yield s([s.real(2, 3), s.real(4, 3)])


class concatenate(Composite):
    """Another name of `cat`."""

    schema = "concatenate(Tensor[] tensors, int dim=0) -> Tensor"
    method = False

    def compose(tensors, dim):
        return ops.cat(tensors, dim)

    def samples(s):
        yield s([s.real(2, 3), s.real(2, 1)], 1)


def stack_shape(tensors, dim: int) -> tuple[int, ...]:
    """The shape of `stack`, after checking its arguments."""
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = tuple(tensors[0].shape)
    for i, x in enumerate(tensors):
        if tuple(x.shape) != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 "
                f"and {list(x.shape)} at entry {i}"
            )
    dim = wrap_dim(dim, len(first) + 1)
    return (*first[:dim], len(tensors), *first[dim:])


class stack(Op):
    """Tensors of one shape joined along a new dim."""

    schema = "stack(Tensor[] tensors, int dim=0) -> Tensor"
    out = ("castable",)
    method = False
    promote = "keep"
    complex = True
    linear = ("tensors",)
    cost = "cheap"
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


class hstack(Composite):
    """Tensors joined along the second dim (the first of vectors)."""

    schema = "hstack(Tensor[] tensors) -> Tensor"
    method = False

    def compose(tensors):
        if not tensors:
            raise RuntimeError("hstack expects a non-empty TensorList")
        parts = ops.atleast_1d(tensors)
        return ops.cat(parts, 0 if parts[0].ndim == 1 else 1)

    def samples(s):
        yield s([s.real(2), s.real(3)])
        yield s([s.real(2, 3), s.real(2, 1)])
        yield s([s.real(), s.real()])


class vstack(Composite):
    """Tensors joined along the first dim, vectors as rows."""

    schema = "vstack(Tensor[] tensors) -> Tensor"
    method = False

    def compose(tensors):
        if not tensors:
            raise RuntimeError("vstack expects a non-empty TensorList")
        return ops.cat(ops.atleast_2d(tensors), 0)

    def samples(s):
        yield s([s.real(3), s.real(2, 3)])


class row_stack(Composite):
    """Another name of `vstack`."""

    schema = "row_stack(Tensor[] tensors) -> Tensor"
    method = False

    def compose(tensors):
        return ops.vstack(tensors)

    def samples(s):
        yield s([s.real(3), s.real(2, 3)])


class dstack(Composite):
    """Tensors joined along the third dim."""

    schema = "dstack(Tensor[] tensors) -> Tensor"
    method = False

    def compose(tensors):
        if not tensors:
            raise RuntimeError("dstack expects a non-empty TensorList")
        return ops.cat(ops.atleast_3d(tensors), 2)

    def samples(s):
        yield s([s.real(2, 3), s.real(2, 3)])
        yield s([s.real(3), s.real(3)])


class column_stack(Composite):
    """Tensors joined along the second dim, vectors as columns."""

    schema = "column_stack(Tensor[] tensors) -> Tensor"
    method = False

    def compose(tensors):
        if not tensors:
            raise RuntimeError("column_stack expects a non-empty TensorList")
        return ops.hstack([x.reshape((x.numel(), 1)) if x.ndim <= 1 else x for x in tensors])

    def samples(s):
        yield s([s.real(3), s.real(3, 2)])


def repeated_shape(shape, repeats) -> tuple[int, ...]:
    """The shape of `repeat`."""
    extra = len(repeats) - len(shape)
    if extra < 0:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions "
            "of tensor"
        )
    result = tuple(r * n for r, n in zip(repeats, (1,) * extra + tuple(shape), strict=True))
    for r, size in zip(repeats, result, strict=True):
        if r < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {size}: {list(result)}"
            )
    return result


class repeat(Op):
    """The whole tensor repeated along each dim."""

    schema = "repeat(Tensor self, SymInt[] repeats) -> Tensor"
    promote = "keep"
    function = False
    complex = True
    linear = ("self",)
    cost = "cheap"
    grad = {"self": "repeat_backward(grad, repeats, self.shape)"}

    def run(xp, self, repeats):
        repeated_shape(self.shape, repeats)
        return xp.tile(self, tuple(repeats)) if len(repeats) else self.copy()

    def shape(self, repeats):
        return repeated_shape(self.shape, repeats)

    def batch(n, batched, self, repeats):
        repeated_shape(self.shape[1:], repeats)
        return pad_rank(self, len(repeats)).repeat((1, *repeats))

    def samples(s):
        yield s(s.real(2, 3), (2, 1))
        yield s(s.real(2, 3), (2, 1, 3))
        yield s(s.real(), (3,))
        yield s(s.real(2), (0,))


class tile(Composite):
    """`repeat` with missing repeats taken as 1."""

    schema = "tile(Tensor self, SymInt[] dims) -> Tensor"

    def compose(self, dims):
        return self.repeat((1,) * (self.ndim - len(dims)) + tuple(dims))

    def samples(s):
        yield s(s.real(2, 3), (2,))
        yield s(s.real(2, 3), (2, 1, 2))


class flip(Op):
    """The order of the elements reversed along dims."""

    schema = "flip(Tensor self, int[] dims) -> Tensor"
    promote = "keep"
    complex = True
    linear = ("self",)
    cost = "cheap"
    shape = "tuple(self.shape)"
    grad = {"self": "grad.flip(dims)"}

    def run(xp, self, dims):
        dims = wrap_dims(dims, self.ndim, empty_is_all=False)
        key = tuple(slice(None, None, -1 if d in dims else None) for d in range(self.ndim))
        return self[(*key, ...)].copy()

    def batch(n, batched, self, dims):
        return self.flip(tuple(d + 1 for d in wrap_dims(dims, self.ndim - 1, empty_is_all=False)))

    def samples(s):
        yield s(s.real(2, 3), (0,))
        yield s(s.real(2, 3), (0, -1))
        yield s(s.real(2, 3), ())
        yield s(s.real(), (0,))


class fliplr(Composite):
    """Columns in reverse order."""

    schema = "fliplr(Tensor self) -> Tensor"

    def compose(self):
        if self.ndim < 2:
            raise RuntimeError("Input must be >= 2-d.")
        return self.flip((1,))

    def samples(s):
        yield s(s.real(2, 3))


class flipud(Composite):
    """Rows in reverse order."""

    schema = "flipud(Tensor self) -> Tensor"

    def compose(self):
        if self.ndim < 1:
            raise RuntimeError("Input must be >= 1-d.")
        return self.flip((0,))

    def samples(s):
        yield s(s.real(2, 3))


def checked_roll(shifts, dims, ndim: int) -> tuple[int, ...]:
    """Wrapped dims of `roll`; () stands for the flattened tensor."""
    if not len(shifts):
        raise RuntimeError("`shifts` required")
    if not len(dims) and len(shifts) == 1:
        return ()
    if len(shifts) != len(dims):
        raise RuntimeError(
            f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}"
        )
    return tuple(wrap_dim(d, ndim, scalar_ok=False) for d in dims)


class roll(Op):
    """Elements moved along dims; what leaves at one end enters at the other."""

    schema = "roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor"
    promote = "keep"
    complex = True
    linear = ("self",)
    cost = "cheap"
    shape = "tuple(self.shape)"
    grad = {"self": "grad.roll([-k for k in reversed(shifts)], list(reversed(dims)))"}

    def run(xp, self, shifts, dims):
        dims = checked_roll(shifts, dims, self.ndim)
        if not dims:
            return xp.roll(self, shifts[0])
        return xp.roll(self, tuple(shifts), dims)

    def batch(n, batched, self, shifts, dims):
        dims = checked_roll(shifts, dims, self.ndim - 1)
        if not dims:
            return (
                self.reshape((n, -1 if self.numel() else 0)).roll(shifts, (1,)).reshape(self.shape)
            )
        return self.roll(shifts, tuple(d + 1 for d in dims))

    def decomp(self, shifts, dims):
        dims = checked_roll(shifts, dims, self.ndim)
        if self.numel() == 0:
            return ops.clone(self)
        if not dims:
            return ops.view(ops.roll(ops.reshape(self, (-1,)), shifts, (0,)), self.shape)
        for shift, dim in zip(shifts, dims, strict=True):
            size = self.shape[dim]
            start = (size - shift % size) % size
            if start:
                head, tail = ops.slice(self, dim, 0, start), ops.slice(self, dim, start)
                self = ops.cat([tail, head], dim)
        return self

    def samples(s):
        yield s(s.real(2, 3), (1,))
        yield s(s.real(2, 3), (1,), (1,))
        yield s(s.real(2, 3), (4, -2), (-1, 0))
        yield s(s.real(), (1,))
        yield s(s.real(0, 3), (1,), (0,))


def checked_rot90(dims, ndim: int) -> tuple[int, int]:
    """The two wrapped dims of `rot90`."""
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    first, second = wrap_dim(dims[0], ndim), wrap_dim(dims[1], ndim)
    if first == second:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        )
    return first, second


class rot90(Op):
    """Rotation by multiples of 90 degrees in the plane of two dims."""

    schema = "rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor"
    promote = "keep"
    complex = True
    linear = ("self",)
    cost = "cheap"
    grad = {"self": "grad.rot90(-k, dims)"}

    def run(xp, self, k, dims):
        return xp.rot90(self, k, checked_rot90(dims, self.ndim)).copy()

    def shape(self, k, dims):
        a, b = checked_rot90(dims, self.ndim)
        out = list(self.shape)
        if k % 2:
            out[a], out[b] = out[b], out[a]
        return tuple(out)

    def batch(n, batched, self, k, dims):
        a, b = checked_rot90(dims, self.ndim - 1)
        return self.rot90(k, (a + 1, b + 1))

    def decomp(self, k, dims):
        a, b = checked_rot90(dims, self.ndim)
        k %= 4
        if k == 0:
            return ops.clone(self)
        if k == 2:
            return ops.flip(self, (a, b))
        return ops.transpose(ops.flip(self, (b if k == 1 else a,)), a, b)

    def samples(s):
        yield s(s.real(2, 3))
        yield s(s.real(2, 3), -1)
        yield s(s.real(2, 3, 4), 2, (0, 2))
        yield s(s.real(2, 3), 0)


def _triangle_mask(self, diagonal: int, lower: bool):
    rows = ops.arange(self.shape[-2], device=self.device).unsqueeze(-1)
    cols = ops.arange(self.shape[-1], device=self.device)
    return cols - rows <= diagonal if lower else cols - rows >= diagonal


def _matrix_only(ndim: int, name: str) -> None:
    if ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")


class tril(Op):
    """The lower triangle of matrices, zero elsewhere."""

    schema = "tril(Tensor self, SymInt diagonal=0) -> Tensor"
    promote = "keep"
    complex = True
    inplace = True
    linear = ("self",)
    cost = "cheap"
    shape = "tuple(self.shape)"
    grad = {"self": "grad.tril(diagonal)"}

    def run(xp, self, diagonal):
        _matrix_only(self.ndim, "tril")
        return xp.tril(self, diagonal)

    def batch(n, batched, self, diagonal):
        _matrix_only(self.ndim - 1, "tril")
        return self.tril(diagonal)

    def decomp(self, diagonal):
        return ops.where(_triangle_mask(self, diagonal, True), self, ops.new_zeros(self, ()))

    def samples(s):
        yield s(s.real(3, 4))
        yield s(s.real(2, 3, 3), -1)
        yield s(s.real(3, 4).T, 1)


class triu(Op):
    """The upper triangle of matrices, zero elsewhere."""

    schema = "triu(Tensor self, SymInt diagonal=0) -> Tensor"
    promote = "keep"
    complex = True
    inplace = True
    linear = ("self",)
    cost = "cheap"
    shape = "tuple(self.shape)"
    grad = {"self": "grad.triu(diagonal)"}

    def run(xp, self, diagonal):
        _matrix_only(self.ndim, "triu")
        return xp.triu(self, diagonal)

    def batch(n, batched, self, diagonal):
        _matrix_only(self.ndim - 1, "triu")
        return self.triu(diagonal)

    def decomp(self, diagonal):
        return ops.where(_triangle_mask(self, diagonal, False), self, ops.new_zeros(self, ()))

    def samples(s):
        yield s(s.real(3, 4))
        yield s(s.real(2, 3, 3), -1)
        yield s(s.real(3, 4).T, 1)


def embedded_shape(shape, offset: int, dim1: int, dim2: int):
    """Shape of `diag_embed`, and its two wrapped dims."""
    if not shape:
        wrap_dim(dim1, 0), wrap_dim(dim2, 0)
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    dim1, dim2 = two_dims(dim1, dim2, len(shape) + 1)
    side = shape[-1] + abs(offset)
    out = list(shape[:-1])
    for dim in sorted((dim1, dim2)):
        out.insert(dim, side)
    return tuple(out), dim1, dim2


class diag_embed(Op):
    """Matrices with the last dim on a diagonal, zero elsewhere."""

    schema = "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor"
    promote = "keep"
    complex = True
    linear = ("self",)
    cost = "cheap"
    grad = {"self": "grad.diagonal(offset, dim1, dim2)"}

    def run(xp, self, offset, dim1, dim2):
        shape, dim1, dim2 = embedded_shape(self.shape, offset, dim1, dim2)
        out = xp.zeros(shape, self.dtype)
        diagonal_view(xp, out, offset, dim1, dim2)[...] = self
        return out

    def shape(self, offset, dim1, dim2):
        return embedded_shape(tuple(self.shape), offset, dim1, dim2)[0]

    def batch(n, batched, self, offset, dim1, dim2):
        _, dim1, dim2 = embedded_shape(tuple(self.shape[1:]), offset, dim1, dim2)
        return self.diag_embed(offset, dim1 + 1, dim2 + 1)

    def decomp(self, offset, dim1, dim2):
        shape, dim1, dim2 = embedded_shape(tuple(self.shape), offset, dim1, dim2)
        zeros = ops.new_zeros(self, shape)
        return ops.diagonal_scatter(zeros, self, offset, dim1, dim2)

    def samples(s):
        yield s(s.real(3))
        yield s(s.real(2, 3), 1)
        yield s(s.real(2, 3), -1, 0, 2)


class diag(Composite):
    """A matrix from its diagonal, or the diagonal of a matrix."""

    schema = "diag(Tensor self, int diagonal=0) -> Tensor"
    out = ("exact",)

    def compose(self, diagonal):
        if self.ndim == 1:
            return self.diag_embed(diagonal)
        if self.ndim == 2:
            return self.diagonal(diagonal).clone(memory_format="contiguous_format")
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {self.ndim}D")

    def samples(s):
        yield s(s.real(3))
        yield s(s.real(3), 1)
        yield s(s.real(3, 4), -1)


class diagflat(Composite):
    """A matrix with all elements on its diagonal."""

    schema = "diagflat(Tensor self, int offset=0) -> Tensor"

    def compose(self, offset):
        return self.reshape((-1,)).diag_embed(offset)

    def samples(s):
        yield s(s.real(2, 3))
        yield s(s.real(3), 1)


def _along(self, dim):
    """The tensor and dim that repeat_interleave works on: without dim, the flattened tensor."""
    if dim is None:
        return self.flatten(), 0
    return (self if self.ndim else self.unsqueeze(0)), wrap_dim(dim, self.ndim)


class repeat_interleave_self_int(Composite):
    """Each element repeated the same number of times."""

    schema = (
        "repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, "
        "SymInt? output_size=None) -> Tensor"
    )
    complex = True

    def compose(self, repeats, dim, output_size):
        self, dim = _along(self, dim)
        if repeats < 0:
            raise RuntimeError("Repeats must be non-negative")
        shape = self.shape
        wide = self.unsqueeze(dim + 1).expand((*shape[: dim + 1], repeats, *shape[dim + 1 :]))
        copied = wide.clone(memory_format="contiguous_format")
        return copied.view((*shape[:dim], shape[dim] * repeats, *shape[dim + 1 :]))

    def samples(s):
        yield s(s.real(2, 3), 2)
        yield s(s.real(2, 3), 3, -1)
        yield s(s.real(), 2)
        yield s(s.real(2, 3), 0, 1)


class repeat_interleave_self_Tensor(Composite):
    """Each element repeated as often as a tensor says."""

    schema = (
        "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, "
        "SymInt? output_size=None) -> Tensor"
    )

    def compose(self, repeats, dim, output_size):
        self, dim = _along(self, dim)
        size = self.shape[dim]
        if repeats.ndim == 0 or (repeats.ndim == 1 and repeats.shape[0] == 1):
            repeats = repeats.reshape((1,)).expand((size,))
        elif repeats.ndim != 1:
            raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
        elif repeats.shape[0] != size:
            raise RuntimeError(
                "repeats must have the same size as input along dim, but got "
                f"repeats.size(0) = {repeats.shape[0]} and input.size({dim}) = {size}"
            )
        return self.index_select(dim, ops.repeat_interleave(repeats, output_size=output_size))

    def samples(s):
        yield s(s.real(3, 2), s.int(3, low=0, high=4), 0)
        yield s(s.real(2, 2), s.int(1, low=1, high=3))


class repeat_interleave_Tensor(Op):
    """The index of each entry, as often as the entry says."""

    schema = "repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor"
    promote = "keep"
    method = False

    def run(xp, repeats, output_size):
        if repeats.ndim != 1:
            raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
        if repeats.dtype.kind != "i":
            raise NotImplementedError(f"repeat_interleave is not implemented for {repeats.dtype}")
        if repeats.size and repeats.min() < 0:
            raise RuntimeError("repeats can not be negative")
        index = xp.repeat(xp.arange(repeats.shape[0], dtype=repeats.dtype), repeats)
        if output_size is not None and index.shape[0] != output_size:
            raise RuntimeError("allocated size does not match required size")
        return index

    def shape(repeats, output_size):
        if output_size is not None:
            return (output_size,)
        from ..errors import DataDependentError

        raise DataDependentError(
            "repeat_interleave: the size of the result is the sum of `repeats`, which is not known "
            "here. Fix: pass output_size."
        )

    def samples(s):
        yield s(s.int(4, low=0, high=3))


def padded_shape(shape, pad) -> tuple[int, ...]:
    """The shape of `constant_pad_nd`."""
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * len(shape):
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. "
            f"Pad length is {len(pad)} while the input has {len(shape)} dimensions."
        )
    out = list(shape)
    for i in range(len(pad) // 2):
        dim = len(shape) - 1 - i
        out[dim] = out[dim] + pad[2 * i] + pad[2 * i + 1]
        if out[dim] < 0:
            raise RuntimeError(
                f"The input size {shape[dim]}, plus negative padding {pad[2 * i]} and "
                f"{pad[2 * i + 1]} resulted in a negative output size, which is invalid. "
                f"Check dimension {dim} of your input."
            )
    return tuple(out)


class constant_pad_nd(Op):
    """A constant border around the last dims; negative widths cut off."""

    schema = "constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor"
    promote = "keep"
    method = False
    complex = True
    cost = "cheap"
    grad = {"self": "constant_pad_nd(grad, [-p for p in pad], 0)"}
    push = "constant_pad_nd(self_t, pad, 0)"

    def run(xp, self, pad, value):
        shape = padded_shape(self.shape, pad)
        if self.dtype.kind in "iu":
            value = int(value)
        out = xp.full(shape, value, self.dtype)
        source, target = [slice(None)] * self.ndim, [slice(None)] * self.ndim
        for i in range(len(pad) // 2):
            dim, before, after = self.ndim - 1 - i, pad[2 * i], pad[2 * i + 1]
            low, high = max(-before, 0), self.shape[dim] - max(-after, 0)
            if high <= low:
                return out
            source[dim] = slice(low, high)
            target[dim] = slice(max(before, 0), max(before, 0) + high - low)
        out[(*target, ...)] = self[(*source, ...)]
        return out

    def shape(self, pad, value):
        return padded_shape(tuple(self.shape), pad)

    def batch(n, batched, self, pad, value):
        padded_shape(tuple(self.shape[1:]), pad)
        return ops.constant_pad_nd(self, pad, value)

    def samples(s):
        yield s(s.real(2, 3), (1, 2))
        yield s(s.real(2, 3), (1, -1, 0, 2), 1.5)
        yield s(s.real(2, 3), (-1, -1))
        yield s(s.real(), ())
        yield s(s.real(2, 0), (1, 1))


def _grid(tensors, indexing: str):
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(
            f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}'
        )
    for x in tensors:
        if x.ndim > 1:
            raise RuntimeError(
                "torch.meshgrid: Expected 0D or 1D tensor in the tensor list "
                f"but got a tensor of shape {list(x.shape)}"
            )
        if x.dtype is not tensors[0].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    swap = indexing == "xy" and len(tensors) >= 2
    flat = [x.reshape((-1,)) for x in tensors]
    if swap:
        flat[0], flat[1] = flat[1], flat[0]
    shape = tuple(x.shape[0] for x in flat)
    grids = []
    for i, x in enumerate(flat):
        sizes = [1] * len(shape)
        sizes[i] = shape[i]
        grids.append(x.view(sizes).expand(shape))
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return grids


class meshgrid_indexing(Composite):
    """Coordinate grids from coordinate vectors."""

    schema = "meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]"
    method = False

    def compose(tensors, indexing):
        return _grid(tensors, indexing)

    def samples(s):
        yield s([s.real(2), s.real(3)], indexing="ij")
        yield s([s.real(2), s.real(3), s.real()], indexing="xy")


class meshgrid(Composite):
    """Coordinate grids from coordinate vectors, matrix indexing."""

    schema = "meshgrid(Tensor[] tensors) -> Tensor[]"
    method = False

    def compose(tensors):
        return _grid(tensors, "ij")

    def samples(s):
        yield s([s.real(2), s.real(3)])


def _at_least(x, rank: int):
    if rank == 3 and x.ndim == 2:
        return x.unsqueeze(-1)
    if rank == 3 and x.ndim == 1:
        return x.unsqueeze(0).unsqueeze(-1)
    while x.ndim < rank:
        x = x.unsqueeze(0)
    return x


class atleast_1d(Composite):
    """A 0-d tensor as a vector."""

    schema = "atleast_1d(Tensor self) -> Tensor"
    method = False

    def compose(self):
        return _at_least(self, 1)

    def samples(s):
        yield s(s.real())


class atleast_1d_Sequence(Composite):
    """0-d tensors as vectors."""

    schema = "atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]"
    method = False

    def compose(tensors):
        return [_at_least(x, 1) for x in tensors]

    def samples(s):
        yield s([s.real(), s.real(2)])


class atleast_2d(Composite):
    """A scalar or vector as a matrix of one row."""

    schema = "atleast_2d(Tensor self) -> Tensor"
    method = False

    def compose(self):
        return _at_least(self, 2)

    def samples(s):
        yield s(s.real(3))


class atleast_2d_Sequence(Composite):
    """Scalars and vectors as matrices of one row."""

    schema = "atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]"
    method = False

    def compose(tensors):
        return [_at_least(x, 2) for x in tensors]

    def samples(s):
        yield s([s.real(), s.real(2)])


class atleast_3d(Composite):
    """A tensor with at least three dims."""

    schema = "atleast_3d(Tensor self) -> Tensor"
    method = False

    def compose(self):
        return _at_least(self, 3)

    def samples(s):
        yield s(s.real(3))
        yield s(s.real(3, 4))


class atleast_3d_Sequence(Composite):
    """Tensors with at least three dims."""

    schema = "atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]"
    method = False

    def compose(tensors):
        return [_at_least(x, 3) for x in tensors]

    def samples(s):
        yield s([s.real(), s.real(2, 3)])


class block_diag(Composite):
    """A matrix with the given matrices on its diagonal."""

    schema = "block_diag(Tensor[] tensors) -> Tensor"
    method = False

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

    def samples(s):
        yield s([s.real(2, 3), s.real(2), s.real()])


class cartesian_prod(Composite):
    """All combinations of the elements of vectors, as rows."""

    schema = "cartesian_prod(Tensor[] tensors) -> Tensor"
    method = False

    def compose(tensors):
        for x in tensors:
            if x.ndim != 1:
                raise RuntimeError(f"Expect a 1D vector, but got shape {list(x.shape)}")
        if len(tensors) == 1:
            return tensors[0]
        return ops.stack([g.flatten() for g in _grid(tensors, "ij")], 1)

    def samples(s):
        yield s([s.real(2), s.real(3)])


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

    def samples(s):
        yield s(s.real(4))
        yield s(s.real(3), 3, True)


class _chunk_cat(Composite):
    """Tensors cut into chunks along a dim, filled up with zeros; all first chunks, all second..."""

    schema = "_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor"
    complex = True
    method = False

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
    if len({tuple(x.shape[:dim]) for x in tensors}) > 1:
        raise RuntimeError("_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors")
    return dim


class resolve_conj(Composite):
    """The tensor itself: conjugation is never put off here."""

    schema = "resolve_conj(Tensor(a) self) -> Tensor(a)"
    complex = True

    def compose(self):
        return self

    def samples(s):
        yield s(s.real(2, 3))


class resolve_neg(Composite):
    """The tensor itself: negation is never put off here."""

    schema = "resolve_neg(Tensor(a) self) -> Tensor(a)"
    complex = True

    def compose(self):
        return self

    def samples(s):
        yield s(s.real(2, 3))


class resize_as_(Composite):
    """`resize_` to the shape of another tensor."""

    schema = (
        "resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None)"
        " -> Tensor(a!)"
    )

    def compose(self, the_template, memory_format):
        return self.resize_(tuple(the_template.shape), memory_format=memory_format)

    def samples(s):
        yield s(s.int(2, 3), s.int(4))
        yield s(s.int(2, 3), s.int(3, 2))


# --- copies of views ------------------------------------------------------------------------------


def derive_copies(space: dict) -> None:
    """For each view operator `name` of a file, the composite `name_copy`: the view, then a clone."""
    for entry in [e for e in space.values() if isinstance(e, type) and issubclass(e, View)]:
        if "schema" not in vars(entry) or entry in (detach, narrow_Tensor):
            continue
        text = entry.schema.replace("Tensor(a -> *)", "Tensor").replace("Tensor(a)", "Tensor")
        name, rest = text[: len(entry.base_name)], text[len(entry.base_name) :]
        body = {
            "__doc__": f"A copy of what `{name}` shows.",
            "__module__": space["__name__"],
            "schema": f"{name}_copy{rest}",
            "compose": _copying(entry),
            "samples": vars(entry).get("samples"),
            "complex": entry.complex,
            "method": False,
        }
        type(f"{entry.__name__}_copy", (Composite,), body)


def _copying(entry):
    def compose(*args):
        shown = overload_of(entry).call(*args)
        return _clones(shown) if isinstance(shown, (list, tuple)) else _clones([shown])[0]

    return compose


derive_copies(globals())
