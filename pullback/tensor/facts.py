"""Facts of a tensor: shape, dtype, device, and how it lies in memory.

`PROPERTIES` and `METHODS` say under which names `attach` offers them.
"""

from __future__ import annotations

import numpy as np

from ..array import device as dev
from ..array import dtype as dt
from ..array.dims import wrap_dim
from ..array.fake import Fake, allowed, contiguous_strides
from ..array.layout import STRIDED, is_arranged
from ..array.lazy import CONJ, NEG, Lazy, marks_of
from ..array.size import Size, Symbolic, is_symbolic
from ..core.handle import INFERENCE, Box, Tensor, make
from ..memory.reading import concrete, shown
from ..memory.views import base_of_view, view_of, view_of_any
from ..threads.state import state
from .overridable import asks_in, fact, overridable, taken_over

_ndarray = np.ndarray
_asks = asks_in(globals())


def _shape(self) -> Size:
    if _asks and (taken := taken_over(_shape, (self,))):
        return taken[0]
    return Size((self._payload if self._link is None else shown(self)).shape)


def _dtype(self) -> dt.DType:
    if _asks and (taken := taken_over(_dtype, (self,))):
        return taken[0]
    return dt.of(self._payload.dtype)


def _ndim(self) -> int:
    if _asks and (taken := taken_over(_ndim, (self,))):
        return taken[0]
    return self._payload.ndim


def _dim(self) -> int:
    """Number of dimensions."""
    if _asks and (taken := taken_over(_dim, (self,))):
        return taken[0]
    return self._payload.ndim


def _device(self):
    if _asks and (taken := taken_over(_device, (self,))):
        return taken[0]
    data = self._payload
    if type(data) is _ndarray:
        return dev.CPU
    while isinstance(data, Box) and not isinstance(data, Fake):
        data = data.inner._payload
    return dev.Device(data.device_name) if isinstance(data, Fake) else dev.device_of(data)


def stride(self: Tensor, dim: int | None = None):
    """Steps between elements, counted in elements."""
    if _asks and (taken := taken_over(stride, (self, dim))):
        return taken[0]
    data = shown(self)
    size = data.dtype.itemsize
    strides = tuple([s // size for s in data.strides])
    numbers = type(data) is _ndarray or not is_symbolic(data.shape)
    if numbers and not any(strides) and 0 in data.shape:
        # NumPy counts no steps where there are no elements
        strides = contiguous_strides(tuple([n or 1 for n in data.shape]), 1)
    return strides if dim is None else strides[dim]


class _OfFake:
    """What a fake tensor knows beside its facts; other tensors have no such attribute, and those of
    a subclass may have one of their own by that name."""

    def __init__(self, name: str, read):
        self.name, self.read = name, read

    def __get__(self, t: Tensor | None, cls: type):
        if t is None:
            return self
        data = shown(t)
        if type(data) is not Fake:
            raise AttributeError(f"'{cls.__name__}' object has no attribute '{self.name}'")
        return self.read(t, data)


@overridable
def _dir(self: Tensor) -> list[str]:
    """The names that this tensor has: those of fakes only if it is one."""
    fake = type(self._payload) is Fake
    return [n for n in object.__dir__(self) if fake or n not in _OF_FAKES]


_OF_FAKES = {
    "constant": lambda t, data: None if data.constant is None else make(data.constant),
    "fake_device": lambda t, data: data.mode and t.device,
    "fake_mode": lambda t, data: data.mode,
}


def storage_offset(self: Tensor) -> int:
    """Distance of the first element from the start of the memory, in elements."""
    if _asks and (taken := taken_over(storage_offset, (self,))):
        return taken[0]
    data = shown(self)
    if isinstance(data, Box):
        interp = getattr(data, "interp", None)
        if interp is not None and interp.adopts:
            interp.memory.placed(self)  # an input may be given as a part of its memory
        return getattr(data, "offset", 0) // data.dtype.itemsize
    return (dev.address(data) - dev.address(dev.owner(data))) // data.dtype.itemsize


def is_contiguous(self: Tensor, memory_format=None) -> bool:
    """Are the elements in row-major order without gaps?"""
    if _asks and (taken := taken_over(is_contiguous, locals())):
        return taken[0]
    data = shown(self)
    if type(data) is _ndarray and memory_format is None:
        return data.flags.c_contiguous
    return is_arranged(data, memory_format)


def data_ptr(self: Tensor) -> int:
    """Address of the first element; 0 of a tensor without data, unless that is not allowed."""
    if _asks and (taken := taken_over(data_ptr, (self,))):
        return taken[0]
    if type(self._payload) is Fake:
        allowed(self, "fake_tensor_allow_unsafe_data_ptr_access")
        return 0
    data = concrete(self, "data_ptr()")
    return dev.address(self._payload if isinstance(self._payload, Lazy) else data)


def size(self: Tensor, dim: int | None = None):
    """The shape, or the size of one dimension."""
    if _asks and (taken := taken_over(size, (self, dim))):
        return taken[0]
    if dim is None:
        return _shape(self)

    return self._payload.shape[wrap_dim(dim, self._payload.ndim)]


def numel(self: Tensor) -> int:
    """Number of elements."""
    if _asks and (taken := taken_over(numel, (self,))):
        return taken[0]
    if type(self._payload) is _ndarray:
        return self._payload.size
    count = _shape(self).numel()
    sizes = state.fakes.sizes
    if isinstance(count, Symbolic) and sizes is not None and sizes.recorder is not None:
        return sizes.recorder.counted(self, count)
    return count


def _number(device) -> int:
    """Of a device; -1 where there is but one."""
    return -1 if device.type in ("cpu", "meta") else device.index or 0


@overridable
def dim_order(self: Tensor, *, ambiguity_check: bool = False) -> tuple[int, ...]:
    """The dims from the outermost in memory to the innermost."""
    strides = self.stride()
    sizes = self.shape
    return tuple(sorted(range(self.ndim), key=lambda d: (-strides[d], sizes[d] == 1 and d)))


@overridable
def is_conj(self: Tensor) -> bool:
    """Is the conjugation of the elements put off?"""
    return bool(marks_of(self._payload) & CONJ)


@overridable
def is_neg(self: Tensor) -> bool:
    """Is the negation of the elements put off?"""
    return bool(marks_of(self._payload) & NEG)


_ELSEWHERE = ("ipu", "maia", "mkldnn", "mps", "mtia", "nested", "sparse_csr", "vulkan", "xla",
              "xpu")


PROPERTIES = {
    "shape": property(_shape),
    "dtype": property(_dtype),
    "ndim": property(_ndim),
    "device": property(_device),
    "itemsize": property(fact(lambda t: t._payload.dtype.itemsize)),
    "nbytes": property(fact(lambda t: t.numel() * t._payload.dtype.itemsize)),
    "_base": property(fact(lambda t: None if t._link is None or t._link.apart else t._link.base)),
    "layout": property(fact(lambda t: STRIDED)),
    "is_cuda": property(fact(lambda t: t.device.type == "cuda")),
    "is_sparse": property(fact(lambda t: False)),
    "is_quantized": property(fact(lambda t: False)),
    **{name: _OfFake(name, read) for name, read in _OF_FAKES.items()},
    "is_meta": property(fact(lambda t: t.device.type == "meta")),
    "is_cpu": property(fact(lambda t: t.device.type == "cpu")),
    **{f"is_{kind}": property(fact(lambda t: False)) for kind in _ELSEWHERE},
}
METHODS = {
    "__dir__": _dir,
    "stride": stride,
    "storage_offset": storage_offset,
    "is_contiguous": is_contiguous,
    "data_ptr": data_ptr,
    "const_data_ptr": data_ptr,
    "size": size,
    "numel": numel,
    "nelement": numel,
    "dim": _dim,
    "ndimension": _dim,
    "dim_order": dim_order,
    "is_pinned": overridable(lambda self, device=None: False),
    "pin_memory": lambda self, device=None: self,  # no device could read it by itself
    "_is_view": overridable(lambda self: self._link is not None and not self._link.apart),
    "_view_func": overridable(view_of),
    "_view_func_unsafe": overridable(view_of_any),
    "_rev_view_func_unsafe": overridable(base_of_view),
    "element_size": overridable(lambda self: self._payload.dtype.itemsize),
    "is_floating_point": overridable(lambda self: self.dtype.is_floating_point),
    "is_complex": overridable(lambda self: self.dtype.is_complex),
    "is_signed": overridable(lambda self: self.dtype.is_signed),
    "get_device": overridable(lambda self: _number(self.device)),
    "is_conj": is_conj,
    "is_neg": is_neg,
    "is_inference": overridable(lambda self: self._cell is INFERENCE),
}
