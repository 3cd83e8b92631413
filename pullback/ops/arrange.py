"""Operators that copy, convert or move elements: clone, cast, repeat, flip, pad.

Derivatives that need more than a line are in `formulas/shape.py`. Read next: `joined.py` (cat,
stack), `triangles.py`, `index.py` (selection by tensors).
"""

from __future__ import annotations

from ..array import dtype as dt
from ..array.device import transfer
from ..array.dims import expanded_shape, wrap_dim, wrap_dims
from ..array.layout import (
    CONSTANTS,
    arranged,
    is_arranged,
    suggest_memory_format,
    wants_channels_last,
)
from ..array.size import fits_a_size
from ..core.op import Composite, Pointwise
from ..core.overload import overload_of
from ..errors import NotInThisBuild
from ..table.packets import ops
from ..threads.state import state
from .create import as_number
from .kinds import ComplexComposite, Free, Keeping, Moving
from .layout import convert, in_front, overwritten, pad_rank

# --- copies ---------------------------------------------------------------------------------------


class clone(Pointwise):
    """A copy in memory of its own."""

    schema = "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor"
    noop = True
    lower = "pointwise.copy"
    core = True
    promote = "same"
    inplace = False
    complex = True
    grad = {"self": "grad"}
    push = "clone(self_t, memory_format=memory_format)"  # laid out like the result
    c = "{self}"

    def run(xp, self, memory_format):
        return arranged(self, memory_format)

    samples = lambda s: [s(s.real(3, 4)), s(s.real(3, 4).T), s(s.real()), s(s.real(0, 3))]


class contiguous(Composite):
    """The tensor itself if it is row-major, else a row-major copy."""

    schema = (
        "contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)"
    )
    noop = True
    lower = "pointwise.copy"
    function = False

    def compose(self, memory_format):
        if self.is_contiguous(memory_format):
            return self
        return overload_of(clone).call(self, memory_format)

    samples = lambda s: [s(s.real(3, 4)), s(s.real(3, 4).T)]


class to_copy(Pointwise):
    """A copy in another dtype or on another device."""

    schema = (
        "_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None, bool non_blocking=False, "
        "MemoryFormat? memory_format=None) -> Tensor"
    )
    noop = True
    lower = "pointwise.to"
    tags = ()
    core = True
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
        out = convert(arranged(self, None) if 0 in self.strides else self, target)
        if memory_format is not None and (1 in out.shape or not is_arranged(out, memory_format)):
            out = arranged(out, memory_format)  # strides of dims of size 1 tell the format, too
        return out if device is None else transfer(out, device)

    def batch(n, batched, self, dtype, layout, device, pin_memory, non_blocking, memory_format):
        last = wants_channels_last(memory_format, self.ndim - 1)
        if last:  # of each example
            self, memory_format = self.movedim(2, -1), CONSTANTS["contiguous_format"]
        out = ops._to_copy(self, dtype=dtype, device=device, memory_format=memory_format)
        return out.movedim(-1, 2) if last else out

    samples = lambda s: [s(s.real(3, 4)), s(s.real(3, 4).T), s(s.real())]


def converted(self, dtype, device, copy: bool, memory_format=None, said=None):
    """The tensor itself if nothing changes, else a converted copy.

    `said` are arguments that a conversion to another dtype is to have although they change nothing.
    """
    changes = {}
    if dtype is not None and dtype is not self.dtype:
        changes = {"dtype": dtype, **(said or {})}
    if device is not None and device != self.device:
        if device.type == "meta":  # the facts alone
            return ops.empty_strided(self.shape, self.stride(), dtype=dtype or self.dtype,
                                     device=device)
        if self.device.type == "meta":
            raise NotInThisBuild(
                "Cannot copy out of meta tensor; no data!\n  Fix: make the tensor anew with "
                "empty_like(x, device=...), a module with to_empty(device=...)")
        changes["device"] = device
    if (memory_format is not None and not str(memory_format).endswith("preserve_format")
            and suggest_memory_format(self) is not CONSTANTS[str(memory_format)[6:]]):
        changes["memory_format"] = memory_format
    return ops._to_copy(self, **changes) if changes or copy else self


class to_other(Composite):
    """Conversion to the dtype and device of another tensor."""

    schema = (
        "to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, "
        "MemoryFormat? memory_format=None) -> Tensor(a)"
    )
    noop = True
    lower = "pointwise.to"
    function = False

    def compose(self, other, non_blocking, copy, memory_format):
        return converted(self, other.dtype, other.device, copy, memory_format)

    samples = lambda s: [s(s.real(3, 4), s.tensor(0, dt.complex128))]


class to_dtype(Composite):
    """Conversion to a dtype."""

    schema = (
        "to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, "
        "MemoryFormat? memory_format=None) -> Tensor(a)"
    )
    noop = True
    lower = "pointwise.to"
    function = False

    def compose(self, dtype, non_blocking, copy, memory_format):
        return converted(self, dtype, None, copy, memory_format)

    samples = lambda s: [s(s.real(3, 4), dt.complex128), s(s.real(3, 4), dt.int64)]


class to_device(Composite):
    """Conversion to a device and optionally a dtype."""

    schema = (
        "to.device(Tensor(a) self, Device device, ScalarType? dtype=None, bool non_blocking=False, "
        "bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)"
    )
    noop = True
    lower = "pointwise.to"
    function = False

    def compose(self, device, dtype, non_blocking, copy, memory_format):
        return converted(self, dtype, device, copy, memory_format)

    samples = lambda s: [s(s.real(3, 4), "cpu"), s(s.real(3, 4), "cpu", dt.complex128)]


class to_dtype_layout(Composite):
    """Conversion by keywords."""

    schema = (
        "to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None, bool non_blocking=False, bool copy=False, "
        "MemoryFormat? memory_format=None) -> Tensor(a)"
    )
    noop = True
    lower = "pointwise.to"
    function = False

    def compose(self, dtype, layout, device, pin_memory, non_blocking, copy, memory_format):
        return converted(self, dtype, device, copy, memory_format)

    samples = lambda s: [s(s.real(3, 4), dtype=dt.float64, copy=True)]


class type_as(Composite):
    """Conversion to the dtype of another tensor."""

    schema = "type_as(Tensor self, Tensor other) -> Tensor"
    noop = True
    function = False

    def compose(self, other):
        return converted(self, other.dtype, other.device, False)

    samples = lambda s: [s(s.real(3, 4), s.tensor(0, dt.complex128))]


# Tensor properties, by the operator that each stands for.
PROPERTIES = {"T": "numpy_T", "mT": "mT", "mH": "mH", "H": "matrix_H"}

class copy(Moving):
    """`src` broadcast to the shape, and cast to the dtype, of `self`."""

    schema = "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor"
    core = True
    memory_format = "self"
    elsewhere = {"src": "any"}
    inplace_node = "CopyBackwards"
    method = function = False
    inplace = True
    linear = ("src",)
    constant = ("self",)
    shape = "tuple(self.shape)"
    grad = {"src": "grad.to(src.device)"}

    def run(xp, self, src, non_blocking):
        shape = expanded_shape(src.shape, self.shape)
        out = xp.empty(shape, self.dtype)
        if src.dtype.kind == "c" and self.dtype.kind not in ("c", "b", dt.FOREIGN):
            src = src.real
        out[...] = src
        return out

    def fill(self, src, non_blocking):
        return src.dtype == self.dtype and src.ndim <= self.ndim and overwritten(self, src)

    def decomp(self, src, non_blocking):
        if src.is_complex() and not self.is_complex():
            src = ops.real(src) if self.dtype is not dt.bool_ else src
        src = src if src.dtype is self.dtype else ops._to_copy(src, dtype=self.dtype)
        return ops.clone(ops.expand(src, self.shape))

    def batch(n, batched, self, src, non_blocking):
        self = in_front(self, batched[0], n)
        if batched[1]:
            src = pad_rank(src, self.ndim - 1)
        return ops.copy(self, src)

    def samples(s):
        yield s(s.real(3, 4), s.real(3, 4))
        yield s(s.real(3, 4), s.real(4))
        yield s(s.real(3, 4), s.real())


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


class repeat(Moving):
    """The whole tensor repeated along each dim."""

    schema = "repeat(Tensor self, SymInt[] repeats) -> Tensor"
    lower = "shape.repeat"
    core = True
    function = False
    linear = ("self",)
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

    samples = lambda s: [s(s.real(2, 3), (2,)), s(s.real(2, 3), (2, 1, 2))]


class flip(Moving):
    """The order of the elements reversed along dims."""

    schema = "flip(Tensor self, int[] dims) -> Tensor"
    lower = "shape.flip"
    core = True
    memory_format = "self"
    linear = ("self",)
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

    samples = lambda s: [s(s.real(2, 3))]


class flipud(Composite):
    """Rows in reverse order."""

    schema = "flipud(Tensor self) -> Tensor"

    def compose(self):
        if self.ndim < 1:
            raise RuntimeError("Input must be >= 1-d.")
        return self.flip((0,))

    samples = lambda s: [s(s.real(2, 3))]


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


class roll(Moving):
    """Elements moved along dims; what leaves at one end enters at the other."""

    schema = "roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor"
    linear = ("self",)
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


class rot90(Moving):
    """Rotation by multiples of 90 degrees in the plane of two dims."""

    schema = "rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor"
    linear = ("self",)
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


def _along(self, dim):
    """The tensor and dim that repeat_interleave works on: without dim, the flattened tensor."""
    if dim is None:
        return self.flatten(), 0
    return (self if self.ndim else self.unsqueeze(0)), wrap_dim(dim, self.ndim)


class repeat_interleave_self_int(ComplexComposite):
    """Each element repeated the same number of times."""

    schema = (
        "repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, "
        "SymInt? output_size=None) -> Tensor"
    )

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


class repeat_interleave_Tensor(Keeping):
    """The index of each entry, as often as the entry says."""

    schema = "repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor"
    kept = "values"
    tags = ("dynamic_output_shape",)
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
            if not fits_a_size(output_size):
                raise RuntimeError("allocated size does not match required size")
            return (output_size,)
        if state.fakes.sizes is not None:
            return (state.fakes.sizes.unbacked(),)
        from ..errors import DynamicOutputShapeException

        raise DynamicOutputShapeException(
            "repeat_interleave: the size of the result is the sum of `repeats`, which is not known "
            "here. Fix: pass output_size."
        )

    def batch(n, batched, repeats, output_size):
        if repeats.ndim != 2 or not n or not repeats.shape[1] or bool((repeats < 0).any()):
            each = [ops.repeat_interleave(r, output_size=output_size) for r in repeats.unbind(0)]
            return ops.stack(each) if n else repeats
        ends = repeats.cumsum(1)
        size = int(ends[0, -1]) if output_size is None else output_size
        if bool((ends[:, -1] != size).any()):
            raise RuntimeError("repeat_interleave: examples have results of different sizes")
        places = ops.arange(size, dtype=ends.dtype).expand((n, size)).contiguous()
        return ops.searchsorted(ends, places, right=True).to(repeats.dtype)

    samples = lambda s: [s(s.int(4, low=0, high=3)), s(s.int(0)), s(s.int(3, low=2, high=3))]


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


class constant_pad_nd(Moving):
    """A constant border around the last dims; negative widths cut off."""

    schema = "constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor"
    lower = "shape.pad"
    core = True
    memory_format = "channels"
    method = False
    grad = {"self": "constant_pad_nd(grad, [-p for p in pad], 0)"}
    push = "constant_pad_nd(self_t, pad, 0)"

    def run(xp, self, pad, value):
        shape = padded_shape(self.shape, pad)
        out = xp.full(shape, as_number(self, value), self.dtype)
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
    flat = list(tensors)
    if swap:
        flat[0], flat[1] = flat[1], flat[0]
    shape = tuple(x.numel() for x in flat)
    grids = []
    for i, x in enumerate(flat):
        sizes = [1] * len(shape)
        sizes[i] = -1
        grids.append(x.view(sizes).expand(shape))
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return grids


class meshgrid_indexing(Free):
    """Coordinate grids from coordinate vectors."""

    schema = "meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]"
    compose = _grid

    def samples(s):
        yield s([s.real(2), s.real(3)], indexing="ij")
        yield s([s.real(2), s.real(3), s.real()], indexing="xy")


class meshgrid(Free):
    """Coordinate grids from coordinate vectors, matrix indexing."""

    schema = "meshgrid(Tensor[] tensors) -> Tensor[]"

    def compose(tensors):
        return _grid(tensors, "ij")

    samples = lambda s: [s([s.real(2), s.real(3)])]


def _at_least(x, rank: int):
    if rank == 3 and x.ndim == 2:
        return x.unsqueeze(-1)
    if rank == 3 and x.ndim == 1:
        return x.unsqueeze(0).unsqueeze(-1)
    while x.ndim < rank:
        x = x.unsqueeze(0)
    return x


class AtLeast(Free):
    """A tensor with at least `rank` dims, itself if it has them."""

    tags = ("maybe_aliasing_or_mutating",)
    rank = 0

    @classmethod
    def compose(cls, self):
        return _at_least(self, cls.rank)


class EachAtLeast(Free):
    """Tensors with at least `rank` dims."""

    rank = 0

    @classmethod
    def compose(cls, tensors):
        return [_at_least(x, cls.rank) for x in tensors]


class atleast_1d(AtLeast):
    """A 0-d tensor as a vector."""

    schema = "atleast_1d(Tensor self) -> Tensor"
    rank = 1
    samples = lambda s: [s(s.real())]


class atleast_1d_Sequence(EachAtLeast):
    """0-d tensors as vectors."""

    schema = "atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]"
    rank = 1
    samples = lambda s: [s([s.real(), s.real(2)])]


class atleast_2d(AtLeast):
    """A scalar or vector as a matrix of one row."""

    schema = "atleast_2d(Tensor self) -> Tensor"
    rank = 2
    samples = lambda s: [s(s.real(3))]


class atleast_2d_Sequence(EachAtLeast):
    """Scalars and vectors as matrices of one row."""

    schema = "atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]"
    rank = 2
    samples = lambda s: [s([s.real(), s.real(2)])]


class atleast_3d(AtLeast):
    """A tensor with at least three dims."""

    schema = "atleast_3d(Tensor self) -> Tensor"
    rank = 3
    samples = lambda s: [s(s.real(3)), s(s.real(3, 4))]


class atleast_3d_Sequence(EachAtLeast):
    """Tensors with at least three dims."""

    schema = "atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]"
    rank = 3
    samples = lambda s: [s([s.real(), s.real(2, 3)])]


class resolve_conj(ComplexComposite):
    """The tensor itself, or a copy of one whose conjugation is put off."""

    schema = "resolve_conj(Tensor(a) self) -> Tensor(a)"

    def compose(self):
        return self.clone() if self.is_conj() else self

    samples = lambda s: [s(s.real(2, 3))]


class resolve_neg(ComplexComposite):
    """The tensor itself, or a copy of one whose negation is put off."""

    schema = "resolve_neg(Tensor(a) self) -> Tensor(a)"

    def compose(self):
        return self.clone() if self.is_neg() else self

    samples = lambda s: [s(s.real(2, 3))]


class resize_as_(Composite):
    """`resize_` to the shape of another tensor."""

    schema = (
        "resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None)"
        " -> Tensor(a!)"
    )
    unchecked = ("vmap",)  # what is in further memory is not set
    tags = ("inplace_view",)

    def compose(self, the_template, memory_format):
        return self.resize_(tuple(the_template.shape), memory_format=memory_format)

    samples = lambda s: [s(s.int(2, 3), s.int(4)), s(s.int(2, 3), s.int(3, 2))]
