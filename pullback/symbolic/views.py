"""View kernels on symbolic sizes: a stand-in for an array that knows shape, strides and offset.

`Ghost` has those methods of a NumPy array that view kernels use, `GHOSTS` those functions of the
array namespace; so the kernels of the operator table run on symbolic sizes as they are.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from ..array import dtype as dt
from ..array.dims import check_geometry, contiguous_strides, slice_bounds, view_strides
from ..array.fake import Fake


class Ghost:
    """The geometry of an array."""

    def __init__(self, shape: Any, dtype: np.dtype, strides: tuple, offset: Any = 0):
        self.shape, self.dtype, self.strides, self.offset = tuple(shape), dtype, strides, offset

    ndim = property(lambda self: len(self.shape))
    itemsize = property(lambda self: self.dtype.itemsize)

    @property
    def size(self) -> Any:
        count: Any = 1
        for n in self.shape:
            count = count * n
        return count

    @property
    def flags(self) -> SimpleNamespace:
        own = tuple([s * self.itemsize for s in contiguous_strides(self.shape)])
        same = all(n == 1 or s == t for n, s, t in zip(self.shape, self.strides, own))
        return SimpleNamespace(c_contiguous=same)

    def reshape(self, size: Any) -> Ghost:
        steps = tuple([s // self.itemsize for s in self.strides])
        if self.flags.c_contiguous:
            found = contiguous_strides(size)
        else:
            found = view_strides(self.shape, steps, tuple(size))
        if found is None:
            raise ValueError("no view of this shape")
        return Ghost(size, self.dtype, tuple([s * self.itemsize for s in found]), self.offset)

    def transpose(self, order: Any = None) -> Ghost:
        order = range(self.ndim)[::-1] if order is None else order
        return Ghost([self.shape[d] for d in order], self.dtype,
                     tuple([self.strides[d] for d in order]), self.offset)

    def swapaxes(self, a: int, b: int) -> Ghost:
        order = list(range(self.ndim))
        order[a], order[b] = order[b], order[a]
        return self.transpose(order)

    def squeeze(self, dims: Any = None) -> Ghost:
        if dims is None:
            dims = [d for d, n in enumerate(self.shape) if n == 1]
        dims = (dims,) if isinstance(dims, int) else dims
        keep = [d for d in range(self.ndim) if d not in dims]
        return self.transpose(keep)

    def view(self, dtype: Any) -> Ghost:
        new = np.dtype(dtype)
        old, size = self.itemsize, new.itemsize
        if old == size:
            return Ghost(self.shape, new, self.strides, self.offset)
        shape = (*self.shape[:-1], self.shape[-1] * old // size)
        return Ghost(shape, new, (*self.strides[:-1], size), self.offset)

    @property
    def real(self) -> Ghost:
        return Ghost(self.shape, dt.of(self.dtype).to_real().np, self.strides, self.offset)

    def __getitem__(self, key: Any) -> Ghost:
        if isinstance(key, str):  # a part of each element: NumPy has no complex32
            part, start = self.dtype.fields[key]
            return Ghost(self.shape, part, self.strides, self.offset + start)
        key = key if isinstance(key, tuple) else (key,)
        used = sum(k is not Ellipsis for k in key)
        if Ellipsis in key:
            at = key.index(Ellipsis)
            key = (*key[:at], *[slice(None)] * (self.ndim - used), *key[at + 1:])
        shape, strides, offset = [], [], self.offset
        for k, n, s in zip(key, self.shape, self.strides):
            if isinstance(k, slice):
                if k.start is None and k.stop is None:
                    start, count, step = 0, n, k.step or 1
                else:
                    step = k.step or 1
                    start, end = slice_bounds(k.start, k.stop, n)
                    count = end - start
                shape.append(count if step == 1 else (count + step - 1) // step)
                strides.append(s * step)
                offset = offset + start * s
            else:
                offset = offset + k * s
        rest = len(key)
        return Ghost((*shape, *self.shape[rest:]), self.dtype,
                     (*strides, *self.strides[rest:]), offset)

    def piece(self, dim: int, start: Any, size: Any) -> Ghost:
        """A slice that is known to be inside."""
        shape = (*self.shape[:dim], size, *self.shape[dim:][1:])
        return Ghost(shape, self.dtype, self.strides, self.offset + start * self.strides[dim])


def _as_strided(ghost: Ghost, shape: Any, strides: Any) -> Ghost:
    return Ghost(shape, ghost.dtype, tuple(strides), ghost.offset)


GHOSTS = SimpleNamespace(
    __name__="ghosts",
    uint32=np.uint32,
    lib=SimpleNamespace(stride_tricks=SimpleNamespace(as_strided=_as_strided)),
    empty=lambda shape, dtype: Ghost(
        shape, np.dtype(dtype),
        tuple([s * np.dtype(dtype).itemsize for s in contiguous_strides(shape)])),
)


def _storage_view(ghost: Ghost, size: Any, stride: Any, offset: Any) -> Ghost:
    """`as_strided`: strides and offset in elements of the memory, whatever the view."""
    check_geometry(size, stride, offset)
    item = ghost.itemsize
    start = ghost.offset if offset is None else offset * item
    return Ghost(size, ghost.dtype, tuple([s * item for s in stride]), start)


def view(ov: Any, source: Fake, rest: tuple) -> Any:
    """The fake(s) that a view operator makes of one with symbolic sizes, or `as_strided` of any."""
    ghost = Ghost(source.shape, source.dtype, source.strides, source.offset)
    if ov.op.absolute:
        out = _storage_view(ghost, *rest)
    else:
        out = ov.kernel(GHOSTS, ghost, *rest)
    root = source if source.base is None else source.base

    def made(g: Ghost) -> Fake:
        return Fake(g.shape, g.dtype, g.strides, source.device_name, root, g.offset)

    return [made(g) for g in out] if type(out) in (list, tuple) else made(out)


def following_strides(sizes: tuple, strides: tuple, shape: list, item: int = 1) -> tuple:
    """Strides with symbols in them, where they follow from the sizes of the dims inside."""
    order = sorted(range(len(shape)), key=lambda d: (strides[d], -d))
    found: dict[int, Any] = {}
    known: dict[int, Any] = {item: item}  # stride -> the same as an expression
    for d in order:
        step = strides[d]
        found[d] = known.get(step, step)
        known.setdefault(step * max(sizes[d], 1), found[d] * shape[d])
    return tuple([found[d] for d in range(len(shape))])
