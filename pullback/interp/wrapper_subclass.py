"""Wrappers come into being: `Tensor._make_wrapper_subclass`, and facts that their classes tell.

A wrapper says by itself what size, strides, device and layout it has.  Where it was made with one
of the `dispatch_` arguments its class is asked instead, each time, by an operator:
`aten.sym_size`, `aten.sym_stride`, `prim.device`, ...  Only the properties that programs read ask;
the tape and the kernels go by what the wrapper was made with.  Read first: `operator_dispatch.py`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

from .. import errors
from ..array import device as dev
from ..array import dtype as dt
from ..array.dims import wrap_dim
from ..array.layout import STRIDED
from ..array.size import Size, Symbolic, whole
from ..core.handle import Cell, Tensor, disabled
from ..core.overload import overload
from ..core.subclass_door import UNASKED
from ..tensor.overridable import ask_from_now_on
from ..threads.asking import no_overrides
from ..threads.state import state
from .function_overrides import tellers
from .operator_dispatch import FACTS, Outer, called

_new = object.__new__
_POLICIES = {None: frozenset(), "strides": frozenset({"strides"}),
             "sizes": frozenset({"sizes", "strides"})}


class _Fact:
    """`prim.device.default` and `prim.layout.default`: what a class is asked about its tensors."""

    namespace = "prim"

    def __init__(self, name: str):
        self.__name__, self.own = f"{name}.default", name

    def __call__(self, t: Tensor):
        return getattr(t, self.own)

    def __repr__(self) -> str:
        return f"prim.{self.own}.default"


prim = SimpleNamespace(**{
    name: SimpleNamespace(default=_Fact(name)) for name in ("device", "layout")})
for _packet in vars(prim).values():
    _packet.default.overloadpacket = _packet


def make_wrapper_subclass(
    cls: type, size, strides=None, storage_offset=None, memory_format=None, dtype=None,
    layout=STRIDED, device=None, pin_memory: bool = False, requires_grad: bool = False,
    dispatch_sizes_strides_policy: str | None = None, dispatch_device: bool = False,
    dispatch_layout: bool = False, _extra_dispatch_keys=None, storage_size=None,
) -> Tensor:
    """A tensor of a subclass that has a size, a dtype and a device, but no memory."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(
            f"_make_wrapper_subclass(): cls must be a type that inherits from Tensor, got {cls!r}")
    if cls.__torch_dispatch__ is disabled:
        raise TypeError(
            f"{cls.__name__} must define __torch_dispatch__: otherwise no operator would know what "
            f"to do with its tensors ({errors.user_line(2)})")
    told = asking_for(dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)
    shape = _checked(size, strides, storage_offset)
    kind = (dt.as_dtype(dtype) or dt.default()).np
    steps = None if strides is None else tuple([whole(s) * kind.itemsize for s in strides])
    place = dev.chosen(None if device is None else dev.Device(device))
    box = Outer(shape, kind, steps, "cpu" if place is None else str(place), None,
                (storage_offset or 0) * kind.itemsize)
    new = _new(cls)
    box.cls, box.attributes, box.cell = cls, new.__dict__, Cell()
    box.born = state.stack[state.mode]  # the trace that it belongs to
    box.owner, box.layout = weakref.ref(new), layout
    box.asks = told
    ask_classes_for(told | {"layout"} if layout is not STRIDED else told)
    new._payload, new._cell = box, box.cell
    new._edge = new._link = new._record = None
    with no_overrides():
        return new.requires_grad_(True) if requires_grad else new


def asking_for(policy: str | None, device: bool, layout: bool) -> frozenset:
    """The facts that a class is asked for, by the `dispatch_` arguments."""
    if policy not in _POLICIES:
        raise ValueError(f"Unknown sizes_strides_policy: {policy}; expected 'strides' or "
                         f"'sizes' ({errors.user_line(3)})")
    named = {"device": device, "layout": layout}
    return _POLICIES[policy] | {name for name, wanted in named.items() if wanted}


def _checked(size, strides, storage_offset) -> tuple:
    if isinstance(size, (int, str)) or not hasattr(size, "__iter__"):
        raise TypeError(
            "_make_wrapper_subclass(): argument 'size' must be a tuple of ints, not "
            f"{type(size).__name__} ({errors.user_line(3)})")
    shape = tuple(size)
    if any(not isinstance(n, Symbolic) and n < 0 for n in shape):
        raise errors.ShapeError(
            f"_make_wrapper_subclass(): sizes must not be negative, got {list(shape)} "
            f"({errors.user_line(3)})")
    if strides is None and storage_offset is not None:
        raise errors.RefusedValue(
            "_make_wrapper_subclass(): setting storage offset without stride not supported "
            f"({errors.user_line(3)})")
    if strides is not None and len(tuple(strides)) != len(shape):
        raise errors.ShapeError(
            f"_make_wrapper_subclass(): dimensionality of sizes ({len(shape)}) must match "
            f"dimensionality of strides ({len(tuple(strides))}) ({errors.user_line(3)})")
    return shape


# facts that classes tell


def _told(t: Tensor, op, *args):
    FACTS.add(op)
    return called(op, (t, *args), {}, [t], None)


def _sizes(t: Tensor, op: str, own):
    """The numbers of an operator; None stands for what the wrapper was made with."""
    found = _told(t, overload(op))
    return own if found is None else tuple(found)


def _size(t: Tensor, dim: int | None = None):
    if dim is None:
        return Size(_sizes(t, "sym_size", t._payload.shape))
    count = _told(t, overload("dim"))
    return _sizes(t, "sym_size", t._payload.shape)[wrap_dim(dim, count)]


def _stride(t: Tensor, dim: int | None = None):
    own = tuple([s // t._payload.dtype.itemsize for s in t._payload.strides])
    found = _sizes(t, "sym_stride", own)
    return found if dim is None else found[dim]


def _is_contiguous(t: Tensor, memory_format=None) -> bool:
    if memory_format is None:
        return _told(t, overload("is_contiguous"))
    return _told(t, overload("is_contiguous.memory_format"), memory_format)


def _device(t: Tensor):
    return _told(t, prim.device.default)


def _dim(t: Tensor) -> int:
    return _told(t, overload("dim"))


def _numel(t: Tensor) -> int:
    return _told(t, overload("sym_numel"))


def _layout(t: Tensor):
    box = t._payload
    if box.__class__ is Outer and "layout" not in box.asks:
        return box.layout
    return _told(t, prim.layout.default)


# what is asked about -> (name, is it a property?, function)
_TELLS = {
    "sizes": (("shape", True, _size), ("size", False, _size), ("dim", False, _dim),
              ("ndim", True, _dim), ("ndimension", False, _dim), ("numel", False, _numel),
              ("nelement", False, _numel), ("__len__", False, lambda t: _size(t, 0)),
              ("storage_offset", False, lambda t: _told(t, overload("sym_storage_offset")))),
    "strides": (("stride", False, _stride), ("is_contiguous", False, _is_contiguous)),
    "device": (("device", True, _device),),
    "layout": (("layout", True, _layout),),
}


def ask_classes_for(asks: frozenset) -> None:
    """From now on functions that tell these facts ask the class, where a tensor wants that."""
    if not asks:
        return
    ask_from_now_on()
    for kind in asks:
        for name, is_property, ask in _TELLS[kind]:
            known = Tensor.__dict__[name]
            tellers[known.fget if is_property else known] = partial(_tell, kind, ask)


def _tell(kind: str, ask: Callable, t: Tensor, *args, **kwargs):
    data = t._payload
    if data.__class__ is Outer:
        asked = not state.mode and (kind in data.asks or kind == "layout")
    else:
        asked = kind in t.__dict__.get("_asks", ()) and not (
            state.mode or state.dispatch.no_subclasses)
    return ask(t, *args, **kwargs) if asked else UNASKED


Tensor._make_wrapper_subclass = staticmethod(make_wrapper_subclass)
