"""Padding with the tensor's own elements: reflected, repeated at the border, or wrapped around.

Along one dim, each such padding lists which element comes at each place.  The list consists of a
few runs that go up, down or stay at one element (`runs`), so that a kernel is a few slice copies
and its adjoint a few slice additions.  Padding with a constant is in `ops/arrange.py`.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from ..array.size import is_symbolic
from ..core.op import Op
from ..errors import ShapeError
from ..table.packets import ops
from .batching import fold, fold_planes, of_overload
from .kinds import ComplexComposite
from .pool_kernels import along

# ---------------------------------------------------------------------------------------------
# One dim


class Run(NamedTuple):
    """`length` places from `target` on that take elements from `source` on, `step` apart."""

    target: int
    source: int
    step: int  # 1, -1 or 0
    length: int

    @property
    def to(self) -> slice:
        """The places."""
        return slice(self.target, self.target + self.length)

    @property
    def elements(self) -> slice:
        """The elements; a single one if all places repeat it."""
        if self.step == 0:
            return slice(self.source, self.source + 1)
        end = self.source + self.step * self.length
        return slice(self.source, None if end < 0 else end, self.step)


def _reflected(i: int, n: int) -> int:
    """The mirror image of place i inside n elements; the border itself is not repeated."""
    i = abs(i)
    return i if i < n else 2 * (n - 1) - i


PLACES = {
    "reflect": _reflected,
    "replicate": lambda i, n: min(max(i, 0), n - 1),
    "circular": lambda i, n: i % n,
}


def runs(mode: str, size: int, before: int, after: int) -> tuple[Run, ...]:
    """Which elements of a dim of `size` its padded version shows."""
    if not is_symbolic((size, before, after)):
        return _runs(mode, size, before, after)
    if before < 0 or after < 0 or mode != "replicate" and (before >= size or after >= size):
        return _runs(mode, int(size), int(before), int(after))
    first, step, last = {
        "reflect": (before, -1, size - 2), "replicate": (0, 0, size - 1),
        "circular": (size - before, 1, 0),
    }[mode]
    parts = (Run(0, first, step, before), Run(before, 0, 1, size),
             Run(before + size, last, step, after))
    return tuple([r for r in parts if r.length != 0])


@functools.lru_cache(256)
def _runs(mode: str, size: int, before: int, after: int) -> tuple[Run, ...]:
    places = [PLACES[mode](i, size) for i in range(-before, size + after)]
    found, start = [], 0
    while start < len(places):
        end, step = start + 1, 1
        if end < len(places) and abs(places[end] - places[start]) <= 1:
            step = places[end] - places[start]
            while end < len(places) and places[end] - places[end - 1] == step:
                end += 1
        found.append(Run(start, places[start], step, end - start))
        start = end
    return tuple(found)


def sizes_of(padding: list[int]) -> list[tuple[int, int]]:
    """(before, after) of each padded dim, in the order of the dims."""
    return [(padding[i], padding[i + 1]) for i in range(len(padding) - 2, -1, -2)]


def _pad_kernel(xp, self, padding, mode: str):
    """Slice copies along each padded dim."""
    pairs = sizes_of(padding)
    out = self
    for i, (before, after) in enumerate(pairs):
        if before == after == 0:
            continue
        axis = self.ndim - len(pairs) + i
        source = out
        size = source.shape[axis]
        shape = (*source.shape[:axis], size + before + after, *source.shape[axis + 1:])
        out = xp.empty(shape, self.dtype)
        for run in runs(mode, size, before, after):
            out[along(axis, run.to)] = source[along(axis, run.elements)]
    return self.copy() if out is self else out


def _unpad_kernel(xp, grad, shape, padding, mode: str):
    """The adjoint: slice additions."""
    pairs = sizes_of(padding)
    out = grad
    for i, (before, after) in enumerate(pairs):
        if before == after == 0:
            continue
        axis = grad.ndim - len(pairs) + i
        source, size = out, shape[axis]
        out = xp.zeros((*source.shape[:axis], size, *source.shape[axis + 1:]), grad.dtype)
        for run in runs(mode, size, before, after):
            piece = source[along(axis, run.to)]
            if run.step == 0:
                piece = piece.sum(axis=axis, keepdims=True)
            out[along(axis, run.elements)] += piece
    return grad.copy() if out is grad else out


def padded(self, padding: list[int], mode: str):
    """The padding of tensors, in terms of slices."""
    pairs = sizes_of(padding)
    for i, (before, after) in enumerate(pairs):
        if before == after == 0:
            continue
        dim = self.ndim - len(pairs) + i
        pieces = [_piece(self, dim, run) for run in runs(mode, self.shape[dim], before, after)]
        self = ops.cat(pieces, dim)
    return self


def _piece(self, dim: int, run: Run):
    if run.step == 0:
        shape = (*self.shape[:dim], run.length, *self.shape[dim + 1:])
        return self.narrow(dim, run.source, 1).expand(shape)
    if run.step > 0:
        return self.narrow(dim, run.source, run.length)
    return self.narrow(dim, run.source - run.length + 1, run.length).flip([dim])


def unpadded(grad, shape, padding: list[int], mode: str):
    """The adjoint of `padded`: each piece goes back to where it came from."""
    pairs = sizes_of(padding)
    for i, (before, after) in enumerate(pairs):
        if before == after == 0:
            continue
        dim = grad.ndim - len(pairs) + i
        total = None
        for run in runs(mode, shape[dim], before, after):
            piece = grad.narrow(dim, run.target, run.length)
            first, length = run.source, run.length
            if run.step == 0:
                piece, length = piece.sum(dim, True), 1
            elif run.step < 0:
                piece, first = piece.flip([dim]), run.source - run.length + 1
            border = [0, 0] * (grad.ndim - 1 - dim) + [first, shape[dim] - first - length]
            piece = ops.constant_pad_nd(piece, border)
            total = piece if total is None else total + piece
        grad = total
    return grad


# ---------------------------------------------------------------------------------------------
# Reflection and replication


def _padded_shape(op: type[Padding], shape, padding: list[int]) -> tuple:
    """The shape after padding."""
    name, rank, reflects = op.base_name, op.dims, op.mode == "reflect"
    if len(padding) != 2 * rank:
        raise ShapeError(f"{name}: padding size is expected to be {2 * rank}, but got "
                         f"{len(padding)}")
    if len(shape) not in (rank + 1, rank + 2) or 0 in shape[len(shape) - rank - 1:]:
        raise ShapeError(f"{name}: Expected {rank + 1}D or {rank + 2}D (batch mode) tensor with "
                         "possibly 0 batch size and other non-zero dimensions for input, but got: "
                         f"{list(shape)}")
    out = list(shape)
    for i, (before, after) in enumerate(sizes_of(padding)):
        dim = len(shape) - rank + i
        if reflects and max(before, after) >= shape[dim]:
            raise ShapeError(f"{name}: Padding size should be less than the corresponding input "
                             f"dimension, but got: padding ({before}, {after}) at dimension {dim} "
                             f"of input {list(shape)}")
        out[dim] = shape[dim] + before + after
    made = out[len(shape) - rank:]
    if max(made) < 1 or min(made) < 0:  # PyTorch asks only that they are not empty all together
        raise ShapeError(f"{name}: input {list(shape)} is too small, calculated output size: "
                         f"{made} for padding {list(padding)}")
    return tuple(out)


class Padding(Op):
    """The last `dims` dims extended by their own elements; negative widths cut off."""

    dims: int
    mode: str  # which elements: see `PLACES`
    linear = ("self",)
    complex = True
    cost = "cheap"
    method = function = False
    batch = fold_planes

    @classmethod
    def run(cls, xp, self, padding):
        _padded_shape(cls, self.shape, padding)
        return _pad_kernel(xp, self, padding, cls.mode)

    @classmethod
    def shape(cls, self, padding):
        return _padded_shape(cls, self.shape, padding)

    @classmethod
    def decomp(cls, self, padding):
        _padded_shape(cls, self.shape, padding)
        return padded(self, padding, cls.mode) if any(padding) else self.clone()

    @classmethod
    def samples(cls, s):
        dims = cls.dims
        sizes, widths = (4, 3, 5)[-dims:], [1, 2, 2, 1, 3, 0][:2 * dims]
        yield s(s.real(2, 3, *sizes), widths)
        yield s(s.real(3, *sizes), widths[::-1])
        yield s(s.real(3, *sizes), [2, -1, -1, 0, 1, -2][:2 * dims])
        yield s(s.real(3, *sizes), [0] * 2 * dims)
        yield s(s.real(0, 2, *sizes), widths)
        yield s(s.real(*sizes, 2).movedim(-1, 0), widths)


class PaddingBackward(Op):
    """Gradient of the padding `of`: what was repeated is added up."""

    of: type[Padding]
    same_dtype = ("grad_output", "self")
    linear = ("grad_output",)
    constant = ("self",)
    complex = True
    cost = "cheap"
    method = function = False

    @of_overload
    def batch(ov, n, batched, *flat):
        return fold(ov, [ov.op.of.dims + 1] * 2, n, batched, flat)

    @classmethod
    def run(cls, xp, grad_output, self, padding):
        cls.shape(grad_output, self, padding)
        return _unpad_kernel(xp, grad_output, self.shape, padding, cls.of.mode)

    @classmethod
    def shape(cls, grad_output, self, padding):
        expected = _padded_shape(cls.of, self.shape, padding)
        if tuple(grad_output.shape) != expected:
            raise ShapeError(f"{cls.base_name}: expected a gradient of shape {list(expected)}, got "
                             f"{list(grad_output.shape)}")
        return tuple(self.shape)

    @classmethod
    def decomp(cls, grad_output, self, padding):
        if not any(padding):
            return grad_output.clone()
        return unpadded(grad_output, self.shape, padding, cls.of.mode)

    @classmethod
    def samples(cls, s):
        for case in cls.of.samples(s):
            x, widths = case.args
            yield s(s.real(*_padded_shape(cls.of, x.shape, list(widths))), x, widths)


class reflection_pad1d(Padding):
    """The last dim extended by its mirrored border; negative widths cut off."""

    mode, dims = "reflect", 1
    schema = "reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor"
    autocast = "float32"
    core = "apart"
    grad = {"self": "reflection_pad1d_backward(grad, self, padding)"}


class reflection_pad1d_backward(PaddingBackward):
    """Gradient of `reflection_pad1d`: what was mirrored is added up."""

    of = reflection_pad1d
    schema = ("reflection_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding)"
              " -> Tensor")
    grad = {"grad_output": "reflection_pad1d(grad, padding)"}


class reflection_pad2d(Padding):
    """The last two dims extended by their mirrored border; negative widths cut off."""

    mode, dims = "reflect", 2
    schema = "reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor"
    autocast = "float32"
    core = "apart"
    grad = {"self": "reflection_pad2d_backward(grad, self, padding)"}


class reflection_pad2d_backward(PaddingBackward):
    """Gradient of `reflection_pad2d`: what was mirrored is added up."""

    of = reflection_pad2d
    schema = ("reflection_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding)"
              " -> Tensor")
    grad = {"grad_output": "reflection_pad2d(grad, padding)"}


class reflection_pad3d(Padding):
    """The last three dims extended by their mirrored border; negative widths cut off."""

    mode, dims = "reflect", 3
    schema = "reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor"
    core = "apart"
    grad = {"self": "reflection_pad3d_backward(grad, self, padding)"}


class reflection_pad3d_backward(PaddingBackward):
    """Gradient of `reflection_pad3d`: what was mirrored is added up."""

    of = reflection_pad3d
    schema = ("reflection_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding)"
              " -> Tensor")
    grad = {"grad_output": "reflection_pad3d(grad, padding)"}


class replication_pad1d(Padding):
    """The last dim extended by its repeated border; negative widths cut off."""

    mode, dims = "replicate", 1
    schema = "replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor"
    autocast = "float32"
    grad = {"self": "replication_pad1d_backward(grad, self, padding)"}


class replication_pad1d_backward(PaddingBackward):
    """Gradient of `replication_pad1d`: what was repeated is added up."""

    of = replication_pad1d
    schema = ("replication_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding)"
              " -> Tensor")
    grad = {"grad_output": "replication_pad1d(grad, padding)"}


class replication_pad2d(Padding):
    """The last two dims extended by their repeated border; negative widths cut off."""

    mode, dims = "replicate", 2
    schema = "replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor"
    autocast = "float32"
    core = "apart"
    grad = {"self": "replication_pad2d_backward(grad, self, padding)"}


class replication_pad2d_backward(PaddingBackward):
    """Gradient of `replication_pad2d`: what was repeated is added up."""

    of = replication_pad2d
    schema = ("replication_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding)"
              " -> Tensor")
    grad = {"grad_output": "replication_pad2d(grad, padding)"}


class replication_pad3d(Padding):
    """The last three dims extended by their repeated border; negative widths cut off."""

    mode, dims = "replicate", 3
    schema = "replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor"
    autocast = "float32"
    core = "apart"
    grad = {"self": "replication_pad3d_backward(grad, self, padding)"}


class replication_pad3d_backward(PaddingBackward):
    """Gradient of `replication_pad3d`: what was repeated is added up."""

    of = replication_pad3d
    schema = ("replication_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding)"
              " -> Tensor")
    grad = {"grad_output": "replication_pad3d(grad, padding)"}


# ---------------------------------------------------------------------------------------------
# All modes


class _pad_circular(ComplexComposite):
    """The last dims extended by their other end, as if they were circles."""

    schema = "_pad_circular(Tensor self, SymInt[] pad) -> Tensor"
    method = function = False

    def compose(self, pad):
        rank = len(pad) // 2
        if len(pad) % 2 or self.ndim not in (rank + 1, rank + 2):
            raise ShapeError(f"Invalid padding size, expected {rank + 1}D or {rank + 2}D input for "
                             f"{len(pad)} widths, but got {self.ndim}D")
        for i, (before, after) in enumerate(sizes_of(pad)):
            size = self.shape[self.ndim - rank + i]
            kept = size + min(before, 0) + min(after, 0)
            if kept < 0 or kept == 0 < max(before, after):
                raise ShapeError("Negative padding value is resulting in an empty dimension: "
                                 f"({before}, {after}) for a dim of size {size}")
            if max(before, after) > kept:
                raise ShapeError("Padding value causes wrapping around more than once: "
                                 f"({before}, {after}) for a dim of size {size}")
        # what is cut off does not come round again at the other end
        cut = [min(width, 0) for width in pad]
        self = ops.constant_pad_nd(self, cut) if any(cut) else self
        pad = [max(width, 0) for width in pad]
        return padded(self, pad, "circular") if any(pad) else self.clone()

    def samples(s):
        yield s(s.real(2, 3, 4), (1, 2))
        yield s(s.real(2, 3, 4), (3, 1, 0, 2))
        yield s(s.real(2, 3, 4), (-1, 1, 2, -1))


PADDING_MODES = ("reflect", "replicate", "circular", "constant")


class _pad_enum(ComplexComposite):
    """`pad` with the mode as a number."""

    schema = "_pad_enum(Tensor self, SymInt[] pad, int mode, float? value=None) -> Tensor"
    method = function = False

    def compose(self, pad, mode, value):
        if len(pad) % 2:
            raise ShapeError(f"Padding length must be divisible by 2, got {len(pad)} widths")
        if len(pad) > 2 * self.ndim:
            raise ShapeError(f"Padding length should be less than or equal to two times the input "
                             f"dimension but got padding length {len(pad)} and input of dimension "
                             f"{self.ndim}")
        word = PADDING_MODES[mode]
        if word == "constant":
            return ops.constant_pad_nd(self, pad, 0.0 if value is None else value)
        if value is not None and value != 0:
            raise ShapeError(f"Padding mode \"{word}\" doesn't take in value argument")
        rank = len(pad) // 2
        if rank in (1, 2, 3) and self.ndim in (rank + 1, rank + 2):
            if word == "circular":
                return ops._pad_circular(self, pad)
            family = "reflection" if word == "reflect" else "replication"
            return getattr(ops, f"{family}_pad{rank}d")(self, pad)
        raise NotImplementedError("Only 2D, 3D, 4D, 5D padding with non-constant padding are "
                                  "supported for now")

    def samples(s):
        for mode in range(4):
            yield s(s.real(2, 3, 4), (1, 2), mode)
            yield s(s.real(2, 3, 4), (1, 1, 0, 2), mode)


class pad(ComplexComposite):
    """The last dims extended; `pad` lists (before, after) from the last dim on."""

    schema = ('pad(Tensor self, SymInt[] pad, str mode="constant", float? value=None) -> Tensor')
    method = function = False

    def compose(self, pad, mode, value):
        if mode not in PADDING_MODES:
            raise NotImplementedError(f"Unrecognised padding mode {mode}; there are "
                                      + ", ".join(PADDING_MODES))
        return ops._pad_enum(self, pad, PADDING_MODES.index(mode), value)

    def samples(s):
        yield s(s.real(2, 3, 4), (1, 2))
        yield s(s.real(2, 3, 4), (1, 2), "constant", 2.5)
        for mode in PADDING_MODES:
            yield s(s.real(2, 3, 4), (1, 1, 0, 2), mode)
