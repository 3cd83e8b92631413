"""`Tensor`'s methods: facts, conversion, autograd front, operators.

The class itself is in `core/handle.py`.  Methods that are operators of the table are attached
from it; what stands here is only what the table cannot say.  Read next: `core/surface.py`.
"""

from __future__ import annotations

import math
import types
import warnings

import numpy as np

from . import errors
from .core import device as dev
from .core import dtype as dt
from .core import fast, hooks, left_out, legacy, surface
from .core.catalog import PUBLIC
from .core.data import make_tensor_data
from .core.dispatching import Outer, make_wrapper_subclass
from .core.fake import Fake
from .core.handle import INFERENCE, Box, Tensor, cell_of, make, meta_of
from .core.indexing import getitem, setitem
from .core.layout import STRIDED, is_arranged
from .core.memory import hold_size
from .core.op import aliases as op_aliases
from .core.op import families, overload_of
from .core.overriding import as_subclass, make_subclass, offer_methods
from .core.size import Size
from .core.stack import bind, lifted
from .core.state import fast as space
from .core.state import state
from .core.table import method_packet, ops
from .core.tape import Accumulate, Blind, Port, level_own
from .core.views import view_of

_ndarray = np.ndarray


def _up_to_date(t: Tensor) -> Tensor:
    if t._link is not None:
        surface.refresh(t)
    return t


def _shown(t: Tensor):
    """The present data of a handle; real memory is up to date by itself, whatever the history."""
    if t._link is not None and isinstance(t._data, Box):
        surface.refresh(t)
    return t._data


def concrete(t: Tensor, what: str) -> np.ndarray:
    """The array behind a handle; transforms that hide values refuse."""
    data = _shown(t)
    while isinstance(data, Box):
        if type(data) is Fake:
            raise errors.DataDependentError(
                errors.text(
                    f"{what} needs the values of a tensor, but only its shape is known here "
                    f"({errors.user_line(2)})",
                    f"tensor: {t.dtype.name}{list(t.shape)}",
                    [
                        "use where() instead of a Python condition",
                        "or compute this outside of the captured function",
                    ],
                )
            )
        t = data.concrete(t, what)
        data = t._data
    if state.mode:
        state.stack[state.mode].was_read(t)
    return data


# facts


def _shape(self) -> Size:
    return Size((self._data if self._link is None else _shown(self)).shape)


def _grad_fn(self):
    edge = _up_to_date(self)._edge
    if type(edge) is Port:
        return edge.node
    return None if isinstance(edge, Accumulate) else edge


def _requires_grad(self) -> bool:
    link = self._link
    if link is None:
        return self._edge is not None
    if isinstance(self._data, Box):
        surface.refresh(self)
        return self._edge is not None
    edge = self._edge
    return link.base._edge is not None or edge is not None and edge.__class__ is not Blind


def _set_requires_grad(self, value: bool = True):
    if value:
        if self._cell is INFERENCE and not state.inference:
            raise errors.InferenceTensor(
                errors.text(
                    "Setting requires_grad=True on inference tensor outside InferenceMode is not "
                    f"allowed ({errors.user_line(2)})",
                    cure="clone() it first",
                )
            )
        if self.dtype.category < 2:
            raise errors.DTypeError(
                errors.text(
                    "only Tensors of floating point and complex dtype can require gradients, not "
                    f"{self.dtype} "
                    f"({errors.user_line(2)})",
                    cure="convert with .float() first",
                )
            )
        if _up_to_date(self)._edge is None or self._edge.__class__ is Blind:
            top, link = state.stack[-1], self._link
            if top is not None and level_own(self._data) < top.level:
                if link is None or link.apart:  # an alias without history begins one of its own
                    self._link = None
                    top.begin_leaf(self)
            self._edge = Accumulate(self)
            if self._meta is not None and self._meta.hooks is not None:
                self._edge.hooks = {"tensor": self._meta.hooks}
    elif self._edge is not None and self._edge.__class__ is not Blind:
        if not isinstance(self._edge, Accumulate):
            raise _not_a_leaf()
        if self._edge.hooks is not None:  # they are the tensor's: back when it requires grad again
            meta_of(self).hooks = self._edge.hooks.get("tensor")
        self._edge = None


def _not_a_leaf() -> errors.NoGraph:
    return errors.NoGraph(
        errors.text(
            f"you can only change requires_grad flags of leaf variables ({errors.user_line(3)})",
            cure="use detach() to get a tensor without history",
        )
    )


def _assign_requires_grad(self, value: bool) -> None:
    if not isinstance(value, (bool, np.bool_)):
        raise errors.RefusedValue(
            f"requires_grad must be a bool, not {type(value).__name__} ({errors.user_line()})"
        )
    if _grad_fn(self) is not None:
        raise _not_a_leaf()
    _set_requires_grad(self, value)


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Start (or stop) collecting gradients for this leaf."""
    _set_requires_grad(self, requires_grad)
    return self


def _get_grad(self):
    if state.mode:
        _tell_of_grad(self, False)
    if self._meta is None:
        if self._edge is not None and not isinstance(self._edge, Accumulate):
            _warn_of_grad(self)
        return None
    if self._meta.grad is None and not self._meta.retains and _grad_fn(self) is not None:
        _warn_of_grad(self)
    return self._meta.grad


def _tell_of_grad(t: Tensor, replaced: bool) -> None:
    """Tell a capture that the gradient of a tensor is being read or replaced."""
    level = state.stack[state.mode]
    if level.adopts:
        level.met_gradient(t, replaced)


def _warn_of_grad(t: Tensor) -> None:
    warnings.warn(
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
        f"attribute won't be populated during autograd.backward() ({errors.user_line(3)}). "
        "Call .retain_grad() on it before that, or look at the leaf instead.",
        UserWarning,
        stacklevel=3,
    )


def _get_grad_dtype(self):
    """The dtype of the gradients that a leaf collects."""
    wanted = None if self._meta is None else self._meta.grad_dtype
    return dt.of(self._data.dtype if wanted is None else wanted)


def _set_grad_dtype(self, dtype) -> None:
    if _grad_fn(self) is not None:
        raise errors.NoGraph(
            errors.text(
                f"grad_dtype can only be set on leaf tensors ({errors.user_line(2)})",
                cure="set it on the leaf whose gradient is collected",
            )
        )
    meta = meta_of(self)
    if meta.grad is not None and meta.grad.dtype is not dt.as_dtype(dtype):
        raise errors.DTypeError(
            errors.text(
                f"the tensor has a gradient of dtype {meta.grad.dtype} already "
                f"({errors.user_line(2)})",
                cure="set .grad to None first",
            )
        )
    meta.grad_dtype = dt.as_dtype(dtype).np


def _version(self) -> int:
    """How often the memory was written; views share the count."""
    cell = self._cell
    if cell is INFERENCE:
        raise errors.InferenceTensor(
            f"Inference tensors do not track version counter ({errors.user_line(2)})"
        )
    return 0 if cell is None else cell.version


def _backward_hooks(self):
    """The hooks of a tensor by their numbers, None where there are none."""
    edge = self._edge
    node, number = (edge.node, edge.number) if type(edge) is Port else (edge, 0)
    tables = None if node is None or node.hooks is None else node.hooks.get("tensor")
    return (tables or {}).get(number) or None


def _set_grad(self, value):
    if state.mode:
        _tell_of_grad(self, True)
    if value is None:
        if self._meta is not None:
            self._meta.grad = None
        return
    from .autograd.engine import as_gradient

    meta_of(self).grad = as_gradient(value, self)


def _get_data(self) -> Tensor:
    """An alias without history; writes to it are not tracked by the version counter."""
    _meet(self)
    data = _shown(self)
    if isinstance(data, Outer) or getattr(getattr(data, "interp", None), "adopts", False):
        return ops.detach(self)
    return make(_primal(data))


def _meet(t: Tensor) -> None:
    """Let a capture know of a tensor from outside, as an operator on it would."""
    if state.mode and type(t._data) is _ndarray and state.stack[state.mode].adopts:
        state.stack[state.mode].adopt(t)


def _primal(data):
    """The data without a tangent of `forward_ad`."""
    own = getattr(data, "interp", None)
    return data.inner._data if own is not None and own.shares else data


def _set_data(self, value: Tensor) -> None:
    """Point the handle at other memory; history, base and version counter stay."""
    if not isinstance(value, Tensor):
        raise errors.ArgumentError(
            f"Variable data has to be a tensor, but got {type(value).__name__} "
            f"({errors.user_line()})"
        )
    _meet(self)
    _meet(value)
    old, data = self._data, _primal(_shown(value))
    leaf = isinstance(self._edge, Accumulate)
    if self._edge is not None and dt.of(data.dtype).category < 2:
        raise errors.DTypeError(
            errors.text(
                "data set to a tensor that requires gradients must be floating point or complex "
                f"dtype ({errors.user_line()})",
                f"tensor: {self.dtype.name}{list(self.shape)}, data: {value.dtype.name}",
                "set requires_grad to False first",
            )
        )
    other = data.shape != old.shape or data.dtype != old.dtype
    if old is not _primal(old) and old.shape == data.shape:  # a dual: its tangent stays
        data = type(old)(old.interp, make(data), old.tangent)
    if isinstance(data, Outer):
        data = data.taken_by(self)
    self._data = data
    interp = getattr(old, "interp", None)
    if interp is not None and interp.adopts:
        interp.moved.add(id(self))
    if leaf and other:  # gradients of the old shape go where they went; new ones arrive here
        hooked, self._edge = self._edge.hooks, Accumulate(self)
        self._edge.hooks = hooked


def _set_part(self, name: str, value) -> None:
    """`x.real = ...` and `x.imag = ...` write into the tensor."""
    if not isinstance(value, (Tensor, int, float, complex)):
        raise TypeError(f"can't assign a {type(value).__name__} to a {self.type()}")
    part = getattr(ops, name)(self)
    if isinstance(value, Tensor):
        part.copy_(value)
    else:
        part.fill_(value)


def _kept(name: str):
    """What `del tensor.name` does: it is refused."""

    def delete(self) -> None:
        raise errors.RefusedValue(errors.text(
            f"{name} of a tensor cannot be deleted ({errors.user_line()})",
            cure="delete the tensor, or assign another value"))

    return delete


def _device(self):
    data = self._data
    if type(data) is _ndarray:
        return dev.CPU
    while isinstance(data, Box) and not isinstance(data, Fake):
        data = data.inner._data
    return dev.Device(data.device_name) if isinstance(data, Fake) else dev.device_of(data)


def stride(self: Tensor, dim: int | None = None):
    """Steps between elements, counted in elements."""
    data = _shown(self)
    size = data.dtype.itemsize
    strides = tuple(s // size for s in data.strides)
    return strides if dim is None else strides[dim]


def storage_offset(self: Tensor) -> int:
    """Distance of the first element from the start of the memory, in elements."""
    data = _shown(self)
    if isinstance(data, Box):
        return getattr(data, "offset", 0) // data.dtype.itemsize
    return (dev.address(data) - dev.address(dev.owner(data))) // data.dtype.itemsize


def is_contiguous(self: Tensor, memory_format=None) -> bool:
    """Are the elements in row-major order without gaps?"""
    data = _shown(self)
    if type(data) is _ndarray and memory_format is None:
        return data.flags.c_contiguous
    return is_arranged(data, memory_format)


def data_ptr(self: Tensor) -> int:
    """Address of the first element."""
    return dev.address(concrete(self, "data_ptr()"))


def size(self: Tensor, dim: int | None = None):
    """The shape, or the size of one dimension."""
    if dim is None:
        return _shape(self)
    from .core.dims import wrap_dim

    return self._data.shape[wrap_dim(dim, self._data.ndim)]


def numel(self: Tensor) -> int:
    """Number of elements."""
    return self._data.size if type(self._data) is _ndarray else _shape(self).numel()


# values


def item(self: Tensor):
    """The only element as a Python number."""
    if state.sizes is not None:
        found = state.sizes.item(self)
        if found is not None:
            return found
    array = concrete(self, "item()")
    if array.size != 1:
        raise errors.ShapeError(
            errors.text(
                f"a Tensor with {array.size} elements cannot be converted to Scalar "
                f"({errors.user_line(2)})",
                cure="index one element first, or use tolist()",
            )
        )
    value = array.reshape(()).item() if array.dtype != dt.bfloat16.np else float(array.reshape(()))
    return value


def unique_consecutive(self: Tensor, return_inverse=False, return_counts=False, dim=None):
    """Values without immediate repetitions, and what else was asked for."""
    found = ops.unique_consecutive(self, return_inverse, return_counts, dim)
    wanted = (True, return_inverse, return_counts)
    out = tuple(f for f, asked in zip(found, wanted) if asked)
    return out if len(out) > 1 else out[0]


def tolist(self: Tensor):
    """Nested lists of Python numbers."""
    if state.sizes is not None and isinstance(self._data, Box):
        return [part.tolist() for part in self.unbind()] if self.ndim else item(self)
    array = concrete(self, "tolist()")
    return (array.astype(np.float32) if array.dtype == dt.bfloat16.np else array).tolist()


def _has_history(t: Tensor) -> bool:
    """Would an array of the values lose a derivative that is being kept, on whatever level?"""
    t = _up_to_date(t)
    while True:
        box = t._data
        interp = getattr(box, "interp", None)
        if t._edge is not None and state.record[0 if interp is None else interp.level]:
            return True
        if getattr(box, "tangent", None) is not None:
            return True
        if interp is None or not hasattr(box, "inner"):
            return False
        t = box.inner


def numpy(self: Tensor, *, force: bool = False) -> np.ndarray:
    """The array itself, sharing memory."""
    if not force and _has_history(self):
        raise errors.NoGraph(
            errors.text(
                "Can't call numpy() on Tensor that requires grad or has a tangent. Use "
                f"tensor.detach().numpy() instead. ({errors.user_line(2)})"
            )
        )
    array = concrete(self, "numpy()")
    hold_size(dev.owner(array))
    return array if type(array) is _ndarray else dev.namespace(self.device).asnumpy(array)


def __array__(self, dtype=None, copy=None):
    array = numpy(self)
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError("a copy is needed to convert the dtype")
        return array.astype(dtype)
    return array.copy() if copy else array


def __array_wrap__(self, array, context=None, return_scalar: bool = False) -> Tensor:
    """What NumPy's functions give for a tensor: a tensor; truth values become uint8 (PyTorch's)."""
    array = np.asarray(array)
    return make(array.astype(np.uint8) if array.dtype.kind == "b" else array)


def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    if self.requires_grad:
        raise BufferError(
            f"Can't export tensors that require gradient, use tensor.detach() "
            f"({errors.user_line(2)})"
        )
    asked = {"max_version": max_version, "dl_device": dl_device, "copy": copy, "stream": stream}
    given = {name: value for name, value in asked.items() if value is not None}
    from .core import dlpack

    return dlpack.export(concrete(self, "__dlpack__()"), given)


def __dlpack_device__(self):
    return concrete(self, "__dlpack_device__()").__dlpack_device__()


def __bool__(self) -> bool:
    array = concrete(self, "a Python condition (bool())")
    if array.size != 1:
        raise errors.ShapeError(
            errors.text(
                "Boolean value of Tensor with "
                f"{'no values' if not array.size else 'more than one value'} is "
                f"ambiguous ({errors.user_line(2)})",
                cure="use .any() or .all()",
            )
        )
    return bool(array.reshape(()))


def __index__(self) -> int:
    if self.dtype.category > 1 or self.numel() != 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(item(self))


def __repr__(self) -> str:
    data = _shown(self)
    if isinstance(data, Box):
        return (
            data.describe(self)
            if hasattr(data, "describe")
            else f"FakeTensor(..., size={tuple(self.shape)}, dtype={self.dtype})"
            if self.device.type != "meta"
            else f"tensor(..., device='meta', size={tuple(self.shape)}"
            + ("" if self.dtype is dt.default() else f", dtype={self.dtype}")
            + (", requires_grad=True)" if self.requires_grad else ")")
        )
    return repr_with(self)


def repr_with(self: Tensor, extra: tuple[str, ...] = ()) -> str:
    """How a tensor of values prints, with further remarks behind its own."""
    from .printing import tensor_repr

    array = concrete(self, "repr()")
    array = array if type(array) is _ndarray else dev.namespace(self.device).asnumpy(array)
    try:
        fn = _grad_fn(self)
        name = fn.name() if fn else None
    except errors.ViewWriteError:  # a view whose history a write to its base has made unknowable
        name = "Invalid"
    text = tensor_repr(
        array,
        self.dtype.name,
        requires_grad=_requires_grad(self) and name is None,
        grad_fn_name=name,
        device=str(self.device),
        default_dtype=dt.default().name,
        prefix=f"{type(self).__name__}(" if self._asked or self._dispatched else "tensor(",
        extra=extra,
    )
    return f"Parameter({text})" if getattr(self, "_is_param", False) else text


def __format__(self, spec: str) -> str:
    # a transform hides values: what was asked for in a format is still a number there
    if self.ndim == 0 and type(self) is Tensor and (spec or not isinstance(self._data, Box)):
        return format(item(self), spec)
    return object.__format__(self, spec)


def __len__(self) -> int:
    if self._data.ndim == 0:
        raise TypeError("len() of a 0-d tensor")
    return self._data.shape[0]


def __iter__(self):
    if self._data.ndim == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(ops.unbind(self, 0) if type(self) is Tensor else self.unbind(0))


def __contains__(self, value) -> bool:
    return bool((self == value).any())


def _stored(name: str):
    """A method that `storage.py` has, which is loaded when the first of them is called."""

    def method(self, *args, **kwargs):
        from . import storage

        return getattr(storage, name)(self, *args, **kwargs)

    method.__name__ = name
    return method


def _rebuild(cls, array, requires_grad, extra):
    new = object.__new__(cls)
    new._data = array
    new._edge = new._link = new._cell = new._meta = None
    if requires_grad:
        new._edge = Accumulate(new)
    new.__dict__.update(extra)
    return new


def __reduce_ex__(self, protocol):
    return _stored("reduce")(self)


def __new__(cls, *args, **kwargs):
    """`Tensor(data)` or `Tensor(2, 3)`: a float tensor (the old constructor)."""

    return _rebuild(cls, legacy.array_of(None, args, kwargs), False, {})


# autograd front

_run_backward = None  # the engine's, once it is there


def backward(
    self: Tensor, gradient=None, retain_graph=None, create_graph: bool = False, inputs=None
) -> None:
    """Accumulate the gradients of this tensor into the leaves."""
    global _run_backward
    if gradient is None and inputs is None and not create_graph:
        edge = self._edge
        if edge is not None and edge.at_once is not None and edge.at_once(self, retain_graph):
            return
    if _run_backward is None:
        from .autograd.engine import backward as _run_backward

    seeds = None if gradient is None else [gradient]
    _run_backward([self], seeds, retain_graph, create_graph, inputs=inputs)


def detach(self: Tensor) -> Tensor:
    """The same memory without history."""
    t = make(_shown(self))
    t._cell = cell_of(self)
    return t


def _detach(self: Tensor) -> Tensor:
    """The same memory without history."""
    if space["ACTIVE"] or self._data.__class__ is not _ndarray:
        return ops.detach(self)
    return detach(self)


def detach_(self: Tensor) -> Tensor:
    """Forget the history."""
    if self._link is not None and not self._link.apart:
        raise errors.ViewWriteError("Can't detach views in-place. Use detach() instead.")
    self._edge, self._data = None, _primal(self._data)
    return self


def register_hook(self: Tensor, hook) -> hooks.RemovableHandle:
    """Call `hook(grad)` when this tensor's gradient is computed; it may return another gradient."""
    if _up_to_date(self)._edge is None:
        raise errors.NoGraph(
            errors.text(
                "cannot register a hook on a tensor that doesn't require gradient "
                f"({errors.user_line(2)})",
                cure="call requires_grad_() on it before computing",
            )
        )
    return hooks.on_tensor(self, hook)


def register_post_accumulate_grad_hook(self: Tensor, hook) -> hooks.RemovableHandle:
    """Call `hook(tensor)` after a gradient was added to this leaf's `.grad`."""
    if self._edge is None:
        raise errors.NoGraph("cannot register a hook on a tensor that doesn't require gradient")
    if not isinstance(self._edge, Accumulate):
        raise errors.NoGraph("post accumulate grad hooks cannot be registered on non-leaf tensors")
    return hooks.on_accumulated(self, hook)


def retain_grad(self: Tensor) -> None:
    """Keep the gradient of this non-leaf in `.grad`."""
    edge = _up_to_date(self)._edge
    if edge is None:
        raise errors.NoGraph("can't retain_grad on Tensor that has requires_grad=False")
    if not isinstance(edge, Accumulate) and not meta_of(self).retains:
        hooks.retain(self)


# conversions that the table cannot spell


def cpu(self: Tensor) -> Tensor:
    """The tensor in main memory."""
    return self if self.device.type == "cpu" else self.to("cpu")


def cuda(self: Tensor, device=None) -> Tensor:
    """The tensor on the GPU."""
    return self.to("cuda" if device is None else device)


def type_(self: Tensor, dtype=None, non_blocking: bool = False):
    """The tensor converted to a dtype, or the name of its type."""
    if dtype is None:
        place = "" if self.device.type == "cpu" else f"{self.device.type}."
        return f"torch.{place}{legacy.name_of(self.dtype)}"
    return self.to(legacy.dtype_of(dtype))


def _getitem(self, key):
    try:
        return getitem(self, key)
    except errors.PullbackError:
        raise
    except (LookupError, TypeError, ValueError, RuntimeError) as error:
        raise errors.translated("x[...]", error, [_facts(self)]) from error


def _setitem(self, key, value):
    try:
        setitem(self, key, value)
    except errors.PullbackError:
        raise
    except (LookupError, TypeError, ValueError, RuntimeError) as error:
        raise errors.translated("x[...] = y", error, [_facts(self)]) from error


def _facts(t: Tensor) -> str:
    return f"x: {t.dtype.name}{list(t.shape)}"


def where(self: Tensor, condition: Tensor, other) -> Tensor:
    """This tensor where the condition holds, `other` elsewhere."""
    return ops.where(condition, self, other)


def zero_(self: Tensor) -> Tensor:
    """Fill with zeros in place."""
    return ops.zero_(self)


def _with_function(self: Tensor, name: str, function, *others: Tensor) -> Tensor:
    """Each element replaced by a Python function of it and of its counterparts, one by one."""
    if self.requires_grad or any(t.requires_grad for t in others):
        raise errors.NotDifferentiable(errors.text(
            f"Can't call {name}() on Variable that requires grad ({errors.user_line(2)})",
            cure=f"use var.detach().{name}() instead"))
    if dev.lookup(self._data) is None or self.device.type != "cpu":
        raise TypeError(f"{name} is only implemented on CPU tensors")
    columns = [np.broadcast_to(concrete(t, f"{name}()"), self._data.shape).ravel().tolist()
               for t in (self, *others)]
    values = [function(*row) for row in zip(*columns)]
    untracked_write(self, np.array(values, self._data.dtype).reshape(self._data.shape))
    return self


def apply_(self: Tensor, function) -> Tensor:
    """Replace each element by a Python function of it; slow."""
    return _with_function(self, "apply_", function)


def map_(self: Tensor, tensor: Tensor, function) -> Tensor:
    """Replace each element by a Python function of it and an element of another tensor; slow."""
    return _with_function(self, "map_", function, tensor)


def map2_(self: Tensor, x: Tensor, y: Tensor, function) -> Tensor:
    """Replace each element by a Python function of it and elements of two tensors; slow."""
    return _with_function(self, "map2_", function, x, y)


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


def new(self: Tensor, *args) -> Tensor:
    """An uninitialised tensor of the given sizes, or one of given values, in this dtype."""
    if len(args) == 1 and isinstance(args[0], (list, tuple, np.ndarray)):
        return new_tensor(self, args[0])
    return self.new_empty(args if args else (0,))


def dim_order(self: Tensor, *, ambiguity_check: bool = False) -> tuple[int, ...]:
    """The dims from the outermost in memory to the innermost."""
    strides = self.stride()
    sizes = self.shape
    return tuple(sorted(range(self.ndim), key=lambda d: (-strides[d], sizes[d] == 1 and d)))


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


def __reversed__(self) -> Tensor:
    return self.flip([0]) if self.ndim else self


def untracked_write(self: Tensor, array) -> None:
    """Overwrite the array behind a handle and move its version."""
    np.copyto(self._data, array)
    surface.mark_written(self)


# operators


def _binary(name: str, public: str | None = None):
    """An operator method of the general path; `public` is the method that users know it by."""
    plans: dict = {}

    def method(self, other, **rest):
        nonlocal plans
        try:
            plan = plans.get((type(self), type(other)))
            if plan is not None and not rest:
                return plan(self, other)
            packet = method_packet(name, public or name)
            plans = packet._plans
            return packet(self, other, **rest)
        except TypeError:
            if isinstance(other, (Tensor, int, float, complex, np.generic, bool, list)):
                raise
            return NotImplemented

    return method


def _reflected(name: str, public: str):
    """An operator method for `number + tensor`; called by hand it wants a tensor first."""
    plain = _binary(name, public)

    def method(self, other, **rest):
        if not isinstance(self, Tensor):
            raise TypeError(f"reflected {name}: the first operand must be a Tensor, not "
                            f"{type(self).__name__}")
        return plain(self, other, **rest)

    return method


def install_fast(cls, dunder: str, base: str, overload: str) -> None:
    """Give a dunder method that becomes its generated fast version on the first call."""
    slow = _binary(base) if overload else _method(base)

    def first(self, *rest):
        if space["ACTIVE"] != space["WATCHED"]:  # a transform takes the long way anyhow
            return slow(self, *rest)
        family = {op.full_name: op for op in families[base]}
        entry = overload_of(family[f"{base}.{overload}" if overload else base])
        made = fast.compile_fast(entry, slow, "operator") or slow
        if made is not slow or not overload:
            setattr(cls, dunder, made)
        else:
            setattr(cls, dunder, slow)
        return getattr(cls, dunder)(self, *rest)

    first.__name__ = dunder
    setattr(cls, dunder, first)


REFLECTED = {
    "__radd__": "add",
    "__rmul__": "mul",
    "__rsub__": "rsub",
    "__rand__": "bitwise_and",
    "__ror__": "bitwise_or",
    "__rxor__": "bitwise_xor",
}
PLAIN = {
    "__floordiv__": "floor_divide",
    "__mod__": "remainder",
    "__matmul__": "matmul",
    "__and__": "bitwise_and",
    "__or__": "bitwise_or",
    "__xor__": "bitwise_xor",
    "__lshift__": "bitwise_left_shift",
    "__rshift__": "bitwise_right_shift",
    "__eq__": "eq",
    "__ne__": "ne",
    "__lt__": "lt",
    "__le__": "le",
    "__gt__": "gt",
    "__ge__": "ge",
}
INPLACE = {
    "__iadd__": "add_",
    "__isub__": "sub_",
    "__imul__": "mul_",
    "__itruediv__": "div_",
    "__ifloordiv__": "floor_divide_",
    "__imod__": "remainder_",
    "__ipow__": "pow_",
    "__iand__": "bitwise_and_",
    "__ior__": "bitwise_or_",
    "__ixor__": "bitwise_xor_",
    "__ilshift__": "bitwise_left_shift_",
    "__irshift__": "bitwise_right_shift_",
}


def _swapped(name: str):
    def method(self, other):
        try:
            return getattr(ops, name)(other, self)
        except errors.ArgumentError:
            return NotImplemented

    return method


# methods of operators that users know by the operator, not by the name of the method
_KNOWN_BY_OPERATOR = (
    "__rsub__", "__floordiv__", "__pow__", "__ipow__", "__and__", "__or__", "__xor__",
    "__lshift__", "__rshift__", "__eq__",
)  # fmt: skip
# and those that are written in Python: they ask like all other methods of that kind
_WRITTEN = (
    "__rtruediv__", "__rpow__", "__rmatmul__", "__rlshift__", "__rrshift__", "__rfloordiv__",
    "__rmod__", "__invert__",
)  # fmt: skip


def _known_as(dunder: str, name: str) -> str:
    return dunder if dunder in _KNOWN_BY_OPERATOR else name


def _as_operand(value, like: Tensor) -> Tensor:
    return value if isinstance(value, Tensor) else make(np.asarray(value, dtype=like._data.dtype))


def _equality(name: str, public: str):
    def method(self, other):
        if isinstance(other, _ndarray):
            other = make(other)
        try:
            return method_packet(name, public)(self, other)
        except TypeError:
            if isinstance(other, (Tensor, int, float, complex, np.generic)):
                raise
            return NotImplemented  # neither is: Python says that they are not the same

    return method


# methods that ask nobody: they make tensors, or are what subclasses themselves are made of
_UNASKING = ("__new__", "__hash__", "__iter__", "__setstate__", "as_subclass", "_make_subclass",
             "_make_wrapper_subclass", "to_numpy")
_ELSEWHERE = ("ipu", "maia", "mkldnn", "mps", "mtia", "nested", "sparse_csr", "vulkan", "xla",
              "xpu")


def attach(cls=Tensor) -> None:
    """Give the handle its methods."""
    facts = {
        "shape": property(_shape),
        "dtype": property(lambda t: dt.of(t._data.dtype)),
        "ndim": property(lambda t: t._data.ndim),
        "device": property(_device),
        "requires_grad": property(_requires_grad, _assign_requires_grad, _kept("requires_grad")),
        "is_leaf": property(lambda t: _grad_fn(t) is None),
        "grad_fn": property(_grad_fn),
        "grad": property(_get_grad, _set_grad, lambda t: _set_grad(t, None)),
        "_grad": property(_get_grad, _set_grad, lambda t: _set_grad(t, None)),
        "data": property(_get_data, _set_data, _kept("data")),
        "itemsize": property(lambda t: t._data.dtype.itemsize),
        "nbytes": property(lambda t: t.numel() * t._data.dtype.itemsize),
        "grad_dtype": property(_get_grad_dtype, _set_grad_dtype),
        "_version": property(_version),
        "_backward_hooks": property(_backward_hooks),
        "_base": property(
            lambda t: None if t._link is None or t._link.apart else t._link.base
        ),
        "layout": property(lambda t: STRIDED),
        "is_cuda": property(lambda t: t.device.type == "cuda"),
        "is_sparse": property(lambda t: False),
        "is_quantized": property(lambda t: False),
        "is_meta": property(lambda t: t.device.type == "meta"),
        "is_cpu": property(lambda t: t.device.type == "cpu"),
        **{f"is_{kind}": property(lambda t: False) for kind in _ELSEWHERE},
        "names": property(lambda t: (None,) * t.ndim),
        "output_nr": property(lambda t: t._edge.number if type(t._edge) is Port else 0),
        "retains_grad": property(lambda t: t._meta is not None and t._meta.retains),
        "name": property(lambda t: None if t._meta is None else t._meta.name),
    }
    for name, op in (
        ("T", "numpy_T"),
        ("mT", "mT"),
        ("mH", "mH"),
        ("H", "matrix_H"),
        ("real", "real"),
        ("imag", "imag"),
    ):
        write = (lambda t, value, op=op: _set_part(t, op, value)) if op == name else None
        facts[name] = property(lambda t, op=op: getattr(ops, op)(t), write)
    for name, value in facts.items():
        setattr(cls, name, value)
    own = {
        # the tensor is the second argument of these operators
        "polygamma": lambda self, n: ops.polygamma(n, self),
        "polygamma_": lambda self, n: self.copy_(ops.polygamma(n, self.clone())),
        "unique_consecutive": unique_consecutive,
        "requires_grad_": requires_grad_,
        "stride": stride,
        "storage_offset": storage_offset,
        "is_contiguous": is_contiguous,
        "data_ptr": data_ptr,
        "size": size,
        "numel": numel,
        "nelement": numel,
        "dim": lambda self: self._data.ndim,
        "ndimension": lambda self: self._data.ndim,
        "item": item,
        "tolist": tolist,
        "numpy": numpy,
        "to_numpy": lambda self: numpy(self),  # what matplotlib and others ask strangers for
        "__array__": __array__,
        "__array_wrap__": __array_wrap__,
        "__dlpack__": __dlpack__,
        "__dlpack_device__": __dlpack_device__,
        "__bool__": __bool__,
        "__index__": __index__,
        "__int__": lambda self: int(item(self)),
        "__float__": lambda self: float(item(self)),
        "__complex__": lambda self: complex(item(self)),
        "__repr__": __repr__,
        "__format__": __format__,
        "__len__": __len__,
        "__iter__": __iter__,
        "__contains__": __contains__,
        "__deepcopy__": _stored("deepcopy"),
        "__reduce_ex__": __reduce_ex__,
        "__setstate__": _stored("setstate"),
        "untyped_storage": _stored("untyped_storage"),
        "storage": _stored("storage"),
        "storage_type": _stored("storage_type"),
        "set_": _stored("set_"),
        "share_memory_": _stored("share_memory_"),
        "is_shared": _stored("is_shared"),
        "__new__": __new__,
        "backward": backward,
        "detach": _detach,
        "detach_": detach_,
        "register_hook": register_hook,
        "retain_grad": retain_grad,
        "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook,
        "cpu": cpu,
        "cuda": cuda,
        "type": type_,
        **left_out.methods(),
        "__getitem__": _getitem,
        "__setitem__": _setitem,
        "zero_": zero_,
        "apply_": apply_,
        "map_": map_,
        "map2_": map2_,
        "new_tensor": new_tensor,
        "new": new,
        "dim_order": dim_order,
        "resize": resize,
        "resize_as": lambda self, tensor: resize(self, *tensor.shape),
        "swapaxes_": lambda self, axis0, axis1: self.transpose_(axis0, axis1),
        "swapdims_": lambda self, dim0, dim1: self.transpose_(dim0, dim1),
        "is_nonzero": __bool__,
        "is_pinned": lambda self, device=None: False,
        "pin_memory": lambda self, device=None: self,  # no device could read it by itself
        "_is_view": lambda self: self._link is not None and not self._link.apart,
        "_view_func": view_of,
        "const_data_ptr": data_ptr,
        "__reversed__": __reversed__,
        "where": where,
        "element_size": lambda self: self._data.dtype.itemsize,
        "is_floating_point": lambda self: self.dtype.is_floating_point,
        "is_complex": lambda self: self.dtype.is_complex,
        "is_signed": lambda self: self.dtype.is_signed,
        "get_device": lambda self: -1 if self.device.type == "cpu" else self.device.index or 0,
        "resolve_conj": lambda self: self,
        "resolve_neg": lambda self: self,
        "is_conj": lambda self: False,
        "is_neg": lambda self: False,
        "is_inference": lambda self: self._cell is INFERENCE,
        "__hash__": object.__hash__,
        "as_subclass": as_subclass,
        "_make_subclass": staticmethod(make_subclass),
        "_make_wrapper_subclass": staticmethod(make_wrapper_subclass),
    }
    for name, value in own.items():
        setattr(cls, name, value)
    for dunder, name in REFLECTED.items():
        setattr(cls, dunder, _reflected(name, _known_as(dunder, name)))
    for dunder, name in PLAIN.items():
        maker = _equality if name in ("eq", "ne") else _binary
        setattr(cls, dunder, maker(name, _known_as(dunder, name)))
    for dunder, name in INPLACE.items():
        setattr(cls, dunder, _binary(name, _known_as(dunder, name)))
    cls.__rtruediv__ = lambda self, other: self.reciprocal() * other
    cls.__rtruediv__.__name__ = "__rtruediv__"
    cls.__rdiv__ = cls.__rtruediv__
    cls.__rpow__ = _swapped("pow")
    cls.__rmatmul__ = _swapped("matmul")
    cls.__rlshift__ = _swapped("bitwise_left_shift")
    cls.__rrshift__ = _swapped("bitwise_right_shift")
    cls.__rfloordiv__ = lambda self, other: ops.floor_divide(_as_operand(other, self), self)
    cls.__rmod__ = lambda self, other: ops.remainder(_as_operand(other, self), self)
    cls.__invert__ = lambda self: ops.bitwise_not(self)
    cls.__pos__ = _method("positive")
    cls.__abs__ = _method("abs")
    for dunder, base, overload in (
        ("__add__", "add", "Tensor"),
        ("__sub__", "sub", "Tensor"),
        ("__mul__", "mul", "Tensor"),
        ("__truediv__", "div", "Tensor"),
        ("__neg__", "neg", ""),
    ):
        install_fast(cls, dunder, base, overload)
    cls.__pow__ = _binary("pow", "__pow__")
    offer_methods([*facts, *(n for n in own if n not in _UNASKING), *_WRITTEN])


def _method(name: str):
    packet, plans = None, {}

    def call(self, *args, **kwargs):
        nonlocal packet, plans
        if not kwargs:
            plan = plans.get((type(self), *map(type, args)))
            if plan is not None:
                return plan(self, *args)
        if packet is None:
            packet = method_packet(name, name)
            plans = packet._plans
        return packet(self, *args, **kwargs)

    call.__name__ = name
    call.__qualname__ = f"Tensor.{name}"
    return call


# Tensor methods named after dtypes. They are no table entries, because an operator called `float`
# would hide Python's own in formulas.
CASTS = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "int": "int32",
    "long": "int64",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
    "bool": "bool",
    **({"chalf": "complex32"} if "chalf" in dt.ALIASES else {}),
    "cfloat": "complex64",
    "cdouble": "complex128",
}


def _cast_method(dtype_name: str):
    """The Tensor method that converts to the named dtype."""
    target = dt.by_name(dtype_name)

    def method(self, memory_format=None):
        if memory_format is None and self.dtype is target:
            return self
        return ops.to(self, target, memory_format=memory_format)

    method.__doc__ = f"Conversion to {target}; the tensor itself if it has that dtype already."
    return method


def attach_listed(cls=Tensor) -> None:
    """Offer the operators of the table as Tensor methods, before any of its files is loaded."""
    for name, _, _, kinds in PUBLIC:
        for kind in kinds:
            full = f"{name}_" if kind == "i" else name
            if full not in cls.__dict__:
                setattr(cls, full, (_fast_unary(cls, full) if kind == "p" else _method(full)))
    for name, target in CASTS.items():
        setattr(cls, name, _cast_method(target))
    offer_methods(CASTS)


def attach_entry(op, cls=Tensor) -> None:
    """Offer a table entry as Tensor method(s)."""
    head = op.schema[op.schema.index("(") + 1 :]
    if not head.startswith("Tensor") or head.startswith("Tensor[") or op.base_name[:2] == "__":
        return
    for name in (op.base_name, *op.aliases):
        if name not in cls.__dict__ and op.method:
            setattr(cls, name, _fast_unary(cls, name) if op.kind == "pointwise" else _method(name))
        if op.inplace and f"{name}_" not in cls.__dict__ and not name.endswith("_"):
            setattr(cls, f"{name}_", _method(f"{name}_"))


def _fast_unary(cls, name: str):
    """A unary pointwise method that becomes its generated fast version on the first call."""
    first = types.FunctionType(_first.__code__, space, name)
    first.__kwdefaults__ = {"_name": name}
    first.__qualname__ = f"Tensor.{name}"
    return first


def _first(self, *args, _name=None, **kwargs):
    return first_call(_name, self, args, kwargs)  # noqa: F821  (in the generated namespace)


def _first_call(name: str, self, args: tuple, kwargs: dict):
    slow = fast.method_of(method_packet(name, name))
    if space["ACTIVE"] != space["WATCHED"]:
        return slow(self, *args, **kwargs)
    made, family = None, families[op_aliases.get(name, name)]
    if len(family) == 1:
        entry = overload_of(family[0])
        if len(entry.schema.args) == 1:
            made = fast.compile_fast(entry, slow, f"method_{name}")
    function = vars(Tensor)[name]
    fast.become(function, made or slow)  # it stays the object that users have
    return function(self, *args, **kwargs)


space["first_call"] = _first_call


__all__ = ["Tensor", "attach", "attach_entry", "bind", "concrete", "detach", "space", "state"]
