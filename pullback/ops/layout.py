"""Arithmetic of shapes, strides and places that the operators on shapes share.

No operators here: kernels, shape rules and batch rules of `shape.py`, `arrange.py`, `index.py` and
others call these.
"""

from __future__ import annotations

import numpy as np

from ..array import dtype as dt
from ..array.dims import check_geometry, slice_bounds, wrap_dim
from ..array.size import Symbolic, fits_a_size, holds
from ..core.handle import Box

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


def strided(xp, array, shape, strides):
    """A writable view with the given shape and byte strides, starting at the first element."""
    if xp.__name__ == "numpy" and array.dtype.kind in "fciub":  # ten times quicker
        if array.flags.c_contiguous:
            return xp.ndarray(shape, array.dtype, array, 0, strides)
        root = owner(array)
        if root.flags.c_contiguous and root.size * root.itemsize >= array.size * array.itemsize:
            start = _address(array) - _address(root)
            return xp.ndarray(shape, array.dtype, root.reshape(-1), start, strides)
    return laid_out(xp, array, shape, strides)


def laid_out(xp, array, shape, strides):
    """The same beyond the array's own elements: as far as its memory goes."""
    if array.dtype.kind == dt.FOREIGN:  # as_strided asks NumPy for the dtype by a name
        return laid_out(xp, array.view(xp.uint32), shape, strides).view(array.dtype)
    return xp.lib.stride_tricks.as_strided(array, shape, strides)


def overwritten(array: np.ndarray, values) -> bool:
    """Overwrite an array; False, and nothing done, where it cannot take the values."""
    try:
        np.copyto(array, values, casting="unsafe")
    except (TypeError, ValueError):
        return False
    return True


def convert(array, np_dtype, order="K"):
    """A copy in another dtype; the imaginary part is dropped silently."""
    if array.dtype.kind == dt.FOREIGN:
        array = array.astype(np.complex64)
    if array.dtype.kind == "c" and np_dtype.kind not in "cb" + dt.FOREIGN:
        array = array.real
    return dt.fitted(array, np_dtype).astype(np_dtype, order=order, copy=True)


def diagonal_size(rows: int, cols: int, offset: int) -> int:
    """Length of a diagonal of a matrix."""
    least, most = min, max
    if isinstance(rows, Symbolic) or isinstance(cols, Symbolic):  # without asking which it is
        from ..symbolic.number import sym_max as most
        from ..symbolic.number import sym_min as least
    return most(least(rows, cols - offset) if offset >= 0 else least(rows + offset, cols), 0)


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
    if isinstance(array, Box):  # which only asks
        return array.made(shape)
    strides = (*(array.strides[d] for d in rest), array.strides[dim1] + array.strides[dim2])
    return strided(xp, array, shape, strides)


def storage_view(xp, array, size, stride, storage_offset):
    """as_strided over the memory that `array` is a view of; strides and offset in elements."""
    check_geometry(size, stride, storage_offset)
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
        ghost = array.size and owned < spans or (owned == 1 and type(array.base).__name__ == "DummyArray")
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
    if not all(fits_a_size(s) for s in sizes):
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, "
            f"but got split_sizes={list(sizes)}"
        )
    if not holds(sum(sizes) == size):
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size "
            f"at dimension {dim}), but got split_sizes={list(sizes)}"
        )
    return list(sizes)


def cut(array, dim: int, sizes) -> list:
    """Views of the consecutive pieces along a dim."""
    parts, start = [], 0
    piece = getattr(array, "piece", None)  # of symbolic sizes: these fit, nothing is to be clamped
    for size in sizes:
        parts.append(array[along(dim, slice(start, start + size))] if piece is None else
                     piece(dim, start, size))
        start += size
    return parts


def cut_shapes(shape, dim: int, sizes) -> list:
    """Shapes of the consecutive pieces along a dim."""
    dim = wrap_dim(dim, len(shape))
    return [(*shape[:dim], size, *shape[dim + 1 :]) for size in sizes]


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
