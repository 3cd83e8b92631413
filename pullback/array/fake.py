"""Arrays that have a shape, a dtype and strides, but no data.

They take the place of arrays at level 0: the kernel is replaced by the entry's shape rule.  View
kernels run on a *ghost*, a strided NumPy array over one element that is never read.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .. import errors
from ..core.handle import Box, Tensor
from ..threads.state import state
from . import device as dev
from . import dtype as dt
from .lazy import marks_of
from .size import Symbolic, SymbolicShape, is_symbolic


def contiguous_strides(shape: tuple, itemsize: int) -> tuple:
    """Byte strides of a C-contiguous array."""
    strides, step = [], itemsize
    for size in reversed(shape):
        strides.append(step)
        step = step * (size.clamped(1) if isinstance(size, Symbolic) else max(size, 1))
    return tuple(reversed(strides))


def setting(name: str) -> bool:
    """A switch of `aot.config` that is on by default, without loading that."""
    module = sys.modules.get(f"{__package__.partition('.')[0]}.cut.settings")
    return module is None or getattr(module.config, name)


def allowed(t: Tensor, name: str) -> None:
    """Refuse to tell the address of a tensor without data where the setting says so."""
    if not setting(name):
        raise errors.DataDependentError(errors.text(
            f"Cannot access data pointer of Tensor (e.g. FakeTensor) ({errors.user_line(2)})",
            f"tensor: {t.dtype.name}{list(t.shape)}",
            f"compute with the tensor instead, or set aot.config.{name} = True"))


def _are_sizes(shape: tuple) -> None:
    """Numbers that only the data decides are not negative from the moment they are sizes."""
    for n in shape:
        if isinstance(n, Symbolic) and n.hint is None:
            n.node.shape_env.is_size(n)


class Fake(Box):
    """The facts of an array without its data."""

    __slots__ = ("__weakref__", "base", "device_name", "dtype", "known", "marks", "mode", "offset",
                 "real", "shape", "strides")

    def __init__(
        self, shape, dtype: np.dtype, strides=None, device_name: str = "cpu", base=None, offset=0,
        marks=0,
    ):
        self.shape = shape = tuple(shape)
        for n in shape:
            if n.__class__ is not int and isinstance(n, Symbolic):
                self.shape = SymbolicShape(shape)
                _are_sizes(shape)
                break
        self.dtype = dtype
        self.strides = (
            contiguous_strides(self.shape, dtype.itemsize) if strides is None else strides
        )
        self.device_name = device_name
        self.base = base  # the fake whose memory this one shares
        self.offset = offset  # bytes from the start of that memory
        self.mode = state.fakes.mode  # the `FakeTensorMode` that it belongs to
        self.known = None  # in a mode: its one element, and [is it still known?] with its views
        self.real = None  # its data, where captures compute with them beside (`reals.py`)
        self.marks = marks  # are its elements conjugates or negatives of what is there (`lazy.py`)?

    @property
    def constant(self) -> np.ndarray | None:
        """Its value, where that is known."""
        return self.known[0] if self.known is not None and self.known[1][0] else None

    def write_constant(self, new: Fake) -> None:
        """It was written: its value, and that of all its views, is another one, or not known."""
        if self.known is not None:
            if new.constant is None or self.known[0] is None:
                self.known[1][0] = False
            else:
                np.copyto(self.known[0], new.constant, casting="unsafe")

    @property
    def symbolic(self) -> bool:
        """Has it a size that is not known yet?"""
        return is_symbolic(self.shape) or is_symbolic(self.strides)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    def ghost(self) -> np.ndarray:
        """A NumPy array with this geometry over one element; must never be read or written."""
        if self.dtype.kind == dt.FOREIGN:
            return as_strided(np.empty(1, np.uint32), self.shape, self.strides).view(self.dtype)
        return as_strided(np.empty(1, self.dtype), self.shape, self.strides)

    def view_of(self, ghost_in: np.ndarray, ghost_out: np.ndarray) -> Fake:
        """The fake of a view that a kernel made of this one's ghost."""
        start = ghost_in.__array_interface__["data"][0]
        offset = self.offset + ghost_out.__array_interface__["data"][0] - start
        root = self if self.base is None else self.base
        return Fake(
            ghost_out.shape, ghost_out.dtype, ghost_out.strides, self.device_name, root, offset
        )

    def copy(self) -> Fake:
        return Fake(self.shape, self.dtype, None, self.device_name)

    def __repr__(self) -> str:
        return f"Fake(shape={self.shape}, dtype={self.dtype})"


def fake_like(array) -> Fake:
    """The facts of a real array (or a fresh copy of a fake's facts)."""
    return Fake(array.shape, array.dtype, tuple(array.strides), device_name(array),
                marks=marks_of(array))


def device_name(array) -> str:
    """The device of a real or fake array."""
    return array.device_name if isinstance(array, Fake) else str(dev.device_of(array))


def is_fake(x) -> bool:
    """Is this a tensor, or an array, without data?"""
    return type(getattr(x, "_payload", x)) is Fake
