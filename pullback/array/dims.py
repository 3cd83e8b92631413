"""Arithmetic on dimensions and sizes: wrapping, broadcasting, inferring, strides.

Pure Python on integers; nothing here knows arrays or tensors. Errors have the types and the words
that PyTorch programs expect. Sizes may be symbolic integers, so nothing here converts them.
Read `memory/indexing.py` next for how `x[key]` becomes operator calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .size import Symbolic, from_data, holds, surely


def check_geometry(size: Sequence, stride: Sequence, offset: int | None) -> None:
    """Refuse what no view of memory can have; sizes that are not known yet pass."""
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(type(n) is int and n < 0 for n in size):
        raise RuntimeError(f"Trying to create tensor with negative dimension: {list(size)}")
    if any(type(s) is int and s < 0 for s in stride):
        raise RuntimeError(
            "as_strided: Negative strides are not supported at the moment, "
            f"got strides: {list(stride)}"
        )
    if type(offset) is int and offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")


def wrap_dim(dim: int, ndim: int, *, scalar_ok: bool = True) -> int:
    """The dimension `dim` of a tensor with `ndim` dims as a number from 0 to ndim - 1.

    A 0-d tensor counts as having one dim, unless `scalar_ok` is false.
    """
    if 0 <= dim < ndim:
        return dim
    if -ndim <= dim < 0:
        return dim + ndim
    if ndim == 0:
        if not scalar_ok:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        if dim in (0, -1):
            return 0
        ndim = 1
    raise IndexError(
        f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})"
    )


def for_each_dim(values: Sequence, rank: int) -> list | None:
    """A value for each of `rank` dims: those given, or the only one; None if neither fits."""
    if len(values) == 1:
        return list(values) * rank
    return list(values) if len(values) == rank else None


def wrap_dims(
    dims: int | Iterable[int] | None, ndim: int, *, empty_is_all: bool = True
) -> tuple[int, ...]:
    """Wrapped `dims`, refusing repeats. None means all dims, and so does () if `empty_is_all`."""
    if dims is None:
        return tuple(range(ndim))
    if isinstance(dims, int):
        dims = (dims,)
    wrapped = tuple(wrap_dim(d, ndim) for d in dims)
    if not wrapped and empty_is_all:
        return tuple(range(ndim))
    if len(set(wrapped)) != len(wrapped):
        twice = next(d for i, d in enumerate(wrapped) if d in wrapped[:i])
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    return wrapped if ndim else ()  # a 0-d tensor accepts dim 0 but has no dim to act on


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The common shape of `shapes` under broadcasting."""
    if len(shapes) == 1:
        return tuple(shapes[0])
    result: tuple[int, ...] = ()
    for shape in shapes:
        result = _broadcast_pair(result, tuple(shape))
    return result


def _broadcast_pair(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    if len(a) == len(b) and a == b:
        return a
    rank = max(len(a), len(b))
    long_a = (1,) * (rank - len(a)) + a
    long_b = (1,) * (rank - len(b)) + b
    out = []
    for dim, (m, n) in enumerate(zip(long_a, long_b, strict=True)):
        if n.__class__ is int and n == 1:  # symbolic sizes are not asked where it does not matter
            out.append(m)
        elif m.__class__ is int and m == 1:
            out.append(n)
        elif m == n or n == 1:
            out.append(m)
        elif m == 1:
            out.append(n)
        else:
            raise RuntimeError(
                f"The size of tensor a ({m}) must match the size of tensor b ({n}) "
                f"at non-singleton dimension {dim}"
            )
    return tuple(out)


def numel(shape: Iterable[int]) -> int:
    """Number of elements of a tensor of this shape."""
    count = 1
    for size in shape:
        count = count * size
    return count


def infer_size(size: Iterable[int], count: int) -> tuple[int, ...]:
    """`size` with its single -1 replaced so that it holds `count` elements."""
    size = tuple(size)
    known, hole = 1, None
    for i, n in enumerate(size):
        if n == -1:
            if hole is not None:
                raise RuntimeError("only one dimension can be inferred")
            hole = i
        elif n < 0:
            raise RuntimeError(f"invalid shape dimension {n} at index {i} of shape {list(size)}")
        else:
            known = known * n
    if hole is None:
        same = known == count
        if same is True or holds(same):  # if only the data knows: the operator looks when it runs
            return size
    elif known == 0:
        if count == 0:
            raise RuntimeError(
                f"cannot reshape tensor of 0 elements into shape {list(size)} because the "
                "unspecified dimension size -1 can be any value and is ambiguous"
            )
    elif count % known == 0:
        return (*size[:hole], count // known, *size[hole + 1 :])
    raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {count}")


def expanded_shape(shape: Sequence[int], size: Sequence[int]) -> tuple[int, ...]:
    """The shape that `expand(size)` gives a tensor of `shape`: -1 keeps a size."""
    extra = len(size) - len(shape)
    if extra < 0:
        raise RuntimeError(
            f"expand: the number of sizes provided ({len(size)}) must be greater or equal to the "
            f"number of dimensions in the tensor ({len(shape)})"
        )
    out = []
    for dim, wanted in enumerate(size):
        have = shape[dim - extra] if dim >= extra else None
        if wanted == -1:
            if have is None:
                raise RuntimeError(
                    "The expanded size of the tensor (-1) isn't allowed in a leading, "
                    f"non-existing dimension {dim}"
                )
            out.append(have)
        elif wanted >= 0 and (have is None or have == wanted or have == 1):
            out.append(wanted)
        else:
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted}) must match the existing size ({have}) "
                f"at non-singleton dimension {dim}.  Target sizes: {list(size)}.  "
                f"Tensor sizes: {list(shape)}"
            )
    return tuple(out)


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements, of a row-major tensor of this shape."""
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step = step * (size.clamped(1) if isinstance(size, Symbolic) else max(size, 1))
    return tuple(reversed(strides))


def view_strides(
    shape: Sequence[int], strides: Sequence[int], size: Sequence[int]
) -> tuple[int, ...] | None:
    """Strides that show a tensor of `shape` and `strides` as `size` without a copy, if any exist.

    `size` must hold as many elements as `shape`. Dims of the old shape that are adjacent in memory
    form runs; every new dim must lie inside one run.
    """
    if numel(shape) == 0:
        if tuple(shape) == tuple(size):
            return tuple(strides)
        return contiguous_strides(size)
    runs = []  # (elements, innermost stride), innermost run first
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        if n == 1:
            continue
        if runs and stride == runs[-1][0] * runs[-1][1]:
            runs[-1] = (runs[-1][0] * n, runs[-1][1])
        else:
            runs.append((n, stride))
    new = []
    run = 0
    left, step = runs[0] if runs else (1, 1)
    for n in reversed(size):
        if n == 1:
            new.append(step)
            continue
        if left == 1:
            run += 1
            left, step = runs[run]
        rest = left % n
        if rest != 0 if type(rest) is int else not surely(rest == 0):
            return None
        new.append(step)
        step, left = step * n, left // n
    return tuple(reversed(new))


def may_overlap(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether two elements of this geometry might share memory (false alarms are possible)."""
    dims = sorted((s, n) for n, s in zip(shape, strides, strict=True) if n > 1)
    reach = 0
    for stride, n in dims:
        if stride <= reach:
            return True
        reach += (n - 1) * stride
    return False


def slice_bounds(start: int | None, end: int | None, size: int) -> tuple[int, int]:
    """The bounds of a slice, clamped into [0, size] as PyTorch and Python do."""
    start = 0 if start is None else start
    end = size if end is None else end
    if start < 0:
        start = start + size
    if end < 0:
        end = end + size
    low, high = min, max
    if type(size) is not int or type(end) is not int or type(start) is not int:
        if from_data((start, end, size)):
            from ..symbolic.number import sym_max as high
            from ..symbolic.number import sym_min as low
    start = low(high(start, 0), size)
    end = low(high(end, start), size)
    return start, end
