"""The values of a tensor: as Python numbers, arrays and text, and where Python writes them.

`METHODS` says under which names `attach` offers them.  Read next: `memory/reading.py`, through
which all of them see the values, and `printing.py`.
"""

from __future__ import annotations

import importlib
import math

import numpy as np

from .. import errors
from ..array import device as dev
from ..array import dtype as dt
from ..array.data import make_tensor_data
from ..array.fake import fake_like
from ..array.size import Size
from ..core.handle import Box, Tensor, make
from ..core.stack import outlived
from ..core.subclass_door import door
from ..core.tape import Accumulate
from ..memory.fresh import lifted
from ..memory.indexing import getitem, setitem
from ..memory.reading import concrete, shown, up_to_date
from ..memory.storages import hold_size
from ..memory.versions import mark_written
from ..table.packets import ops
from ..threads.state import fast, state
from . import legacy_types as legacy
from .overridable import asks_in, overridable, taken_over

_ndarray = np.ndarray
_asks = asks_in(globals())


def item(self: Tensor):
    """The only element as a Python number."""
    if _asks and (taken := taken_over(item, (self,))):
        return taken[0]
    if state.fakes.sizes is not None:
        found = state.fakes.sizes.item(self)
        if found is not None:
            return found
    if fast["DISPATCHES"]:
        found = door.item(self)
        if found is not NotImplemented:
            return found
    array = concrete(self, "item()")
    if array.size != 1:
        raise errors.ShapeError(errors.text(
            f"a Tensor with {array.size} elements cannot be converted to Scalar "
            f"({errors.user_line(2)})",
            cure="index one element first, or use tolist()"))
    value = array.reshape(()).item() if array.dtype != dt.bfloat16.np else float(array.reshape(()))
    return value


def tolist(self: Tensor):
    """Nested lists of Python numbers."""
    if _asks and (taken := taken_over(tolist, (self,))):
        return taken[0]
    if state.fakes.sizes is not None and isinstance(self._payload, Box):
        return [part.tolist() for part in self.unbind()] if self.ndim else item(self)
    array = concrete(self, "tolist()")
    return (array.astype(np.float32) if array.dtype == dt.bfloat16.np else array).tolist()


def _has_history(t: Tensor) -> bool:
    """Would an array of the values lose a derivative that is being kept, on whatever level?"""
    t = outlived(up_to_date(t))
    while True:
        box = t._payload
        interp = getattr(box, "interp", None)
        if t._edge is not None and state.record[0 if interp is None else interp.level]:
            return True
        if getattr(box, "tangent", None) is not None:
            return True
        if interp is None or not hasattr(box, "inner"):
            return False
        t = box.inner


def _refuse_marked(t: Tensor) -> None:
    """Refuse to share memory whose elements are meant otherwise than they stand there."""
    for is_put_off, word, cure in ((t.is_conj, "conjugate", "resolve_conj"),
                                   (t.is_neg, "negative", "resolve_neg")):
        if is_put_off():
            raise errors.RefusedValue(errors.text(
                f"Can't call numpy() on Tensor that has {word} bit set: its memory has other "
                f"numbers ({errors.user_line(3)})", cure=f"Use tensor.{cure}().numpy() instead"))


def numpy(self: Tensor, *, force: bool = False) -> np.ndarray:
    """The array itself, sharing memory."""
    if _asks and (taken := taken_over(numpy, locals())):
        return taken[0]
    if not force and _has_history(self):
        have = "requires grad" if self.requires_grad else "has a tangent"
        raise errors.NoGraph(errors.text(
            f"Can't call numpy() on Tensor that {have}. Use tensor.detach().numpy() instead. "
            f"({errors.user_line(2)})"))
    if type(self._payload) is not _ndarray and not force:
        _refuse_marked(self)
    array = concrete(self, "numpy()")
    hold_size(dev.owner(array))
    return array if type(array) is _ndarray else dev.namespace(self.device).asnumpy(array)


def __array__(self, dtype=None, copy=None):
    if _asks and (taken := taken_over(__array__, locals())):
        return taken[0]
    array = numpy(self)
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError("a copy is needed to convert the dtype")
        return array.astype(dtype)
    return array.copy() if copy else array


@overridable
def __array_wrap__(self, array, context=None, return_scalar: bool = False) -> Tensor:
    """What NumPy's functions give for a tensor: a tensor; truth values become uint8 (PyTorch's)."""
    array = np.asarray(array)
    return make(array.astype(np.uint8) if array.dtype.kind == "b" else array)


@overridable
def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    if self.requires_grad:
        raise BufferError(
            f"Can't export tensors that require gradient, use tensor.detach() "
            f"({errors.user_line(2)})"
        )
    for mark in ("conjugate" * self.is_conj(), "negative" * self.is_neg()):
        if mark:
            raise BufferError(
                f"Can't export tensors with the {mark} bit set, use tensor.resolve_conj() or "
                f"tensor.resolve_neg() ({errors.user_line(2)})")
    asked = {"max_version": max_version, "dl_device": dl_device, "copy": copy, "stream": stream}
    given = {name: value for name, value in asked.items() if value is not None}
    from ..array import dlpack

    return dlpack.export(concrete(self, "__dlpack__()"), given)


@overridable
def __dlpack_device__(self):
    return concrete(self, "__dlpack_device__()").__dlpack_device__()


def __bool__(self) -> bool:
    if _asks and (taken := taken_over(__bool__, (self,))):
        return taken[0]
    if fast["DISPATCHES"]:
        found = door.item(self)
        if found is not NotImplemented:
            return bool(found)
    if state.fakes.reals and self.numel() == 1:  # a symbolic number, which the data beside decide
        return bool(item(self))
    array = concrete(self, "a Python condition (bool())")
    if array.size != 1:
        raise errors.ShapeError(errors.text(
            "Boolean value of Tensor with "
            f"{'no values' if not array.size else 'more than one value'} is "
            f"ambiguous ({errors.user_line(2)})",
            cure="use .any() or .all()"))
    return bool(array.reshape(()))


def __index__(self) -> int:
    if _asks and (taken := taken_over(__index__, (self,))):
        return taken[0]
    if self.dtype.category > 1 or self.numel() != 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(item(self))


@overridable
def __repr__(self, *, tensor_contents: str | None = None) -> str:
    if tensor_contents is not None:
        return _repr_of(self, tensor_contents)
    data = shown(self)
    if isinstance(data, Box):
        return (
            data.describe(self)
            if hasattr(data, "describe")
            else ("tensor" if self.is_meta and data.mode is None else "FakeTensor")
            + ("(..., device='meta', " if self.is_meta else "(..., ")
            + f"size={tuple(self.shape)}"
            + ("" if self.dtype is dt.default() else f", dtype={self.dtype}")
            + (", requires_grad=True)" if self.requires_grad else ")")
        )
    return repr_with(self)


def _repr_of(self: Tensor, contents: str) -> str:
    """How a tensor prints whose class shows its values itself."""
    from ..printing import with_facts

    fn = self.grad_fn
    text = with_facts(
        contents, self.dtype.name, requires_grad=self.requires_grad,
        grad_fn_name=fn.name() if fn else None, device=str(self.device),
        default_dtype=dt.default().name, prefix=f"{type(self).__name__}(")
    return f"Parameter({text})" if getattr(self, "_is_param", False) else text


def repr_with(self: Tensor, extra: tuple[str, ...] = ()) -> str:
    """How a tensor of values prints, with further remarks behind its own."""
    from ..printing import tensor_repr

    array = concrete(self, "repr()")
    array = array if type(array) is _ndarray else dev.namespace(self.device).asnumpy(array)
    try:
        fn = self.grad_fn
        name = fn.name() if fn else None
    except errors.ViewWriteError:  # a view whose history a write to its base has made unknowable
        name = "Invalid"
    text = tensor_repr(
        array,
        self.dtype.name,
        requires_grad=self.requires_grad and name is None,
        grad_fn_name=name,
        device=str(self.device),
        default_dtype=dt.default().name,
        prefix=f"{type(self).__name__}(" if self._asked or self._dispatched else "tensor(",
        extra=extra,
    )
    return f"Parameter({text})" if getattr(self, "_is_param", False) else text


@overridable
def __format__(self, spec: str) -> str:
    # a transform hides values: what was asked for in a format is still a number there
    if self.ndim == 0 and type(self) is Tensor and (spec or not isinstance(self._payload, Box)):
        return format(item(self), spec)
    return object.__format__(self, spec)


def __len__(self) -> int:
    if _asks and (taken := taken_over(__len__, (self,))):
        return taken[0]
    if self._payload.ndim == 0:
        raise TypeError("len() of a 0-d tensor")
    return self._payload.shape[0]


def __iter__(self):
    if self._payload.ndim == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(ops.unbind(self, 0) if type(self) is Tensor else self.unbind(0))


@overridable
def __contains__(self, value) -> bool:
    return bool((self == value).any())


@overridable
def __reversed__(self) -> Tensor:
    return self.flip([0]) if self.ndim else self


def _getitem(self, key):
    if _asks and (taken := taken_over(_getitem, (self, key))):
        return taken[0]
    try:
        return getitem(self, key)
    except errors.PullbackError:
        raise
    except (LookupError, TypeError, ValueError, RuntimeError) as error:
        raise errors.translated("x[...]", error, [_facts(self)]) from error


def _setitem(self, key, value):
    if _asks and (taken := taken_over(_setitem, (self, key, value))):
        return taken[0]
    try:
        setitem(self, key, value)
    except errors.PullbackError:
        raise
    except (LookupError, TypeError, ValueError, RuntimeError) as error:
        raise errors.translated("x[...] = y", error, [_facts(self)]) from error


def _facts(t: Tensor) -> str:
    return f"x: {t.dtype.name}{list(t.shape)}"


def _with_function(self: Tensor, name: str, function, *others: Tensor) -> Tensor:
    """Each element replaced by a Python function of it and of its counterparts, one by one."""
    if self.requires_grad or any(t.requires_grad for t in others):
        raise errors.NotDifferentiable(errors.text(
            f"Can't call {name}() on Variable that requires grad ({errors.user_line(2)})",
            cure=f"use var.detach().{name}() instead"))
    if dev.lookup(self._payload) is None or self.device.type != "cpu":
        raise TypeError(f"{name} is only implemented on CPU tensors")
    columns = [np.broadcast_to(concrete(t, f"{name}()"), self._payload.shape).ravel().tolist()
               for t in (self, *others)]
    values = [function(*row) for row in zip(*columns)]
    untracked_write(self, np.array(values, self._payload.dtype).reshape(self._payload.shape))
    return self


@overridable
def apply_(self: Tensor, function) -> Tensor:
    """Replace each element by a Python function of it; slow."""
    return _with_function(self, "apply_", function)


@overridable
def map_(self: Tensor, tensor: Tensor, function) -> Tensor:
    """Replace each element by a Python function of it and an element of another tensor; slow."""
    return _with_function(self, "map_", function, tensor)


@overridable
def map2_(self: Tensor, x: Tensor, y: Tensor, function) -> Tensor:
    """Replace each element by a Python function of it and elements of two tensors; slow."""
    return _with_function(self, "map2_", function, x, y)


def untracked_write(self: Tensor, array) -> None:
    """Overwrite the array behind a handle and move its version."""
    mark_written(self)  # first: an interrupt between the two must not hide the write
    np.copyto(self._payload, array)


@overridable
def unique_consecutive(self: Tensor, return_inverse=False, return_counts=False, dim=None):
    """Values without immediate repetitions, and what else was asked for."""
    found = ops.unique_consecutive(self, return_inverse, return_counts, dim)
    wanted = (True, return_inverse, return_counts)
    out = tuple(f for f, asked in zip(found, wanted) if asked)
    return out if len(out) > 1 else out[0]


@overridable
def where(self: Tensor, condition: Tensor, other) -> Tensor:
    """This tensor where the condition holds, `other` elsewhere."""
    return ops.where(condition, self, other)


def zero_(self: Tensor) -> Tensor:
    """Fill with zeros in place."""
    if _asks and (taken := taken_over(zero_, (self,))):
        return taken[0]
    return ops.zero_(self)


def cpu(self: Tensor) -> Tensor:
    """The tensor in main memory."""
    if _asks and (taken := taken_over(cpu, (self,))):
        return taken[0]
    return self if self.device.type == "cpu" else self.to("cpu")


@overridable
def cuda(self: Tensor, device=None) -> Tensor:
    """The tensor on the GPU."""
    return self.to("cuda" if device is None else device)


@overridable
def type_(self: Tensor, dtype=None, non_blocking: bool = False):
    """The tensor converted to a dtype, or the name of its type."""
    if dtype is None:
        place = "" if self.device.type == "cpu" else f"{self.device.type}."
        return f"torch.{place}{legacy.name_of(self.dtype)}"
    return self.to(legacy.dtype_of(dtype))


@overridable
def resize(self: Tensor, *sizes) -> Tensor:
    """Another shape with the same number of elements."""
    if len(sizes) == 1 and isinstance(sizes[0], (list, tuple)):
        sizes = tuple(sizes[0])
    if math.prod(sizes) != self.numel():
        raise errors.ShapeError(
            f"requested resize to {'x'.join(map(str, sizes))} ({math.prod(sizes)} elements in "
            f"total), but the given tensor has {self.numel()} elements: resize() only changes the "
            "shape")
    return self.contiguous().view(sizes)


@overridable
def new_tensor(self: Tensor, data, *, dtype=None, device=None, requires_grad: bool = False):
    """A tensor of given values with the dtype and device of this one."""
    kind = dt.as_dtype(dtype) or self.dtype
    if isinstance(data, Tensor):
        made = data.detach().clone().to(kind)
    else:
        made = make(make_tensor_data(data, kind))
        made = lifted(made) if state.mode else made
    made = made.to(device or self.device)
    return made.requires_grad_(True) if requires_grad else made


@overridable
def _delitem(self, key) -> None:
    raise errors.ArgumentError(errors.text(
        f"Tensor does not support deleting items ({errors.user_line()})",
        cure="select the others: torch.cat([x[:i], x[i + 1:]])"))


@overridable
def new(self: Tensor, *args) -> Tensor:
    """An uninitialised tensor of the given sizes, or one of given values, in this dtype."""
    if len(args) == 1 and isinstance(args[0], Size):
        return self.new_empty(args[0])
    if len(args) == 1 and isinstance(args[0], Tensor):
        return make(legacy.array_of(self.dtype, args, {}))
    if len(args) == 1 and isinstance(args[0], (list, tuple, np.ndarray)):
        return new_tensor(self, args[0])
    return self.new_empty(args if args else (0,))


def _rebuild(cls, array, requires_grad, extra):
    new = object.__new__(cls)
    new._payload = array
    new._edge = new._link = new._cell = new._record = None
    if requires_grad:
        new._edge = Accumulate(new)
    new.__dict__.update(extra)
    return new


def __new__(cls, *args, **kwargs):
    """`Tensor(data)` or `Tensor(2, 3)`: a float tensor (the old constructor)."""
    array = None
    if len(args) == 1 and isinstance(args[0], Tensor):
        door.refuse_wrapper(cls, args[0])
        array = legacy.array_of(None, args, kwargs)
        if array is args[0]._payload or np.may_share_memory(array, args[0]._payload):  # a view
            return Tensor.as_subclass(args[0], cls)
    array = legacy.array_of(None, args, kwargs) if array is None else array
    return _rebuild(cls, array if state.fakes.mode is None else fake_like(array), False, {})


_PICKLING = "pullback.tensor.pickling"


def _stored(name: str, place: str = "pullback.storage"):
    """A method of another module, which is loaded when the first of them is called."""

    def method(self, *args, **kwargs):
        return getattr(importlib.import_module(place), name)(self, *args, **kwargs)

    method.__name__ = name
    return method


@overridable
def __reduce_ex__(self, protocol):
    return _stored("reduce", _PICKLING)(self)


METHODS = {
    "item": item,
    "tolist": tolist,
    "numpy": numpy,
    "to_numpy": lambda self: numpy(self),  # what matplotlib and others ask strangers for
    "__array__": __array__,
    "__array_wrap__": __array_wrap__,
    "__dlpack__": __dlpack__,
    "__dlpack_device__": __dlpack_device__,
    "__bool__": __bool__,
    "is_nonzero": __bool__,
    "__index__": __index__,
    "__int__": overridable(lambda self: int(item(self))),
    "__float__": overridable(lambda self: float(item(self))),
    "__complex__": overridable(lambda self: complex(item(self))),
    "__repr__": __repr__,
    "__format__": __format__,
    "__len__": __len__,
    "__iter__": __iter__,
    "__contains__": __contains__,
    "__reversed__": __reversed__,
    "__hash__": object.__hash__,
    "__getitem__": _getitem,
    "__setitem__": _setitem,
    "__delitem__": _delitem,
    "__new__": __new__,
    "new_tensor": new_tensor,
    "new": new,
    "apply_": apply_,
    "map_": map_,
    "map2_": map2_,
    # operators with the tensor in another place, with other defaults, or under other names
    "polygamma": overridable(lambda self, n: ops.polygamma(n, self)),
    "polygamma_": overridable(lambda self, n: self.copy_(ops.polygamma(n, self.clone()))),
    "unique_consecutive": unique_consecutive,
    "where": where,
    "zero_": zero_,
    "resize": resize,
    "resize_as": overridable(lambda self, tensor: resize(self, *tensor.shape)),
    "swapaxes_": overridable(lambda self, axis0, axis1: self.transpose_(axis0, axis1)),
    "swapdims_": overridable(lambda self, dim0, dim1: self.transpose_(dim0, dim1)),
    "cpu": cpu,
    "cuda": cuda,
    "type": type_,
    # what `storage.py` has
    "__deepcopy__": overridable(_stored("deepcopy", _PICKLING)),
    "__reduce_ex__": __reduce_ex__,
    "__setstate__": _stored("setstate", _PICKLING),
    **{name: overridable(_stored(name)) for name in (
        "untyped_storage", "storage", "storage_type", "share_memory_", "is_shared")},
    "set_": overridable(_stored("set_", "pullback.tensor.reseat")),
}
