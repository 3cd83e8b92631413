"""`Parameter` and `Buffer`: tensors that a Module recognises when they are assigned to it.

`UninitializedParameter` and `UninitializedBuffer` have no shape yet: lazy modules (`nn/lazy.py`)
give them one when they see their first input.
"""

from __future__ import annotations

from .. import errors
from ..core.handle import Tensor, disabled, is_composed
from ..interp.function_overrides import make_subclass, quiet
from ..table.packets import ops

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter",
           "UninitializedTensorMixin", "is_lazy"]


class _ParameterType(type(Tensor)):  # type: ignore[misc]
    def __instancecheck__(cls, instance) -> bool:
        """Tensors of other classes can be parameters, too: they have a mark."""
        return super().__instancecheck__(instance) or (
            cls is Parameter and isinstance(instance, Tensor)
            and getattr(instance, "_is_param", False))


class Parameter(Tensor, metaclass=_ParameterType):
    """A tensor that a Module lists among its parameters; it requires grad by default.

    A tensor of a subclass stays one: it gets a mark, which `isinstance` looks at.
    """

    __torch_function__ = disabled

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True):
        data = ops.empty([0]) if data is None else data
        if type(data)._asked or type(data)._dispatched or is_composed(data):
            new = data.detach().requires_grad_(requires_grad)
            if type(new) is not type(data):
                raise RuntimeError(
                    f"a Parameter of a {type(data).__name__} requires that detach() returns an "
                    f"instance of the same type, but it gave a {type(new).__name__} "
                    f"({errors.user_line(2)})")
            new._is_param = True
            return new
        return make_subclass(cls, data, requires_grad)

    def __deepcopy__(self, memo: dict):
        """Another parameter with the same values; neither gradient nor hooks are copied."""
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.data.clone(), self.requires_grad)
        return memo[id(self)]

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()



quiet.add(Parameter)


class _BufferType(type):
    def __instancecheck__(cls, instance) -> bool:
        return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferType):
    """A tensor that a Module lists among its buffers: an ordinary one, with a mark."""

    __torch_function__ = disabled

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True):
        data = ops.empty([0]) if data is None else data
        new = data.detach().requires_grad_(data.requires_grad)
        new.persistent, new._is_buffer = persistent, True
        return new


# Tensors that have no shape yet


def _allowed(name: str):
    """A method of Tensor for the placeholder, which answers with a placeholder again."""

    def method(self, *args, **kwargs):
        changed = getattr(self._placeholder(), name)(*args, **kwargs)
        if not isinstance(changed, Tensor):
            return changed
        new = object.__new__(type(self))
        _slot.__set__(new, changed._payload)
        new._edge = new._link = new._cell = new._record = None
        return new.requires_grad_(self.requires_grad)

    return method


_slot = Tensor._payload


class UninitializedTensorMixin:
    """What has a dtype and a device, but no shape and no values."""

    __slots__ = ()
    cls_to_become: type

    @property
    def _payload(self):
        raise ValueError("Attempted to use an uninitialized parameter. This error happens when "
                         "you are using a `LazyModule` or explicitly manipulating "
                         f"`torch.nn.parameter.{type(self).__name__}` objects. When using "
                         "LazyModules call `forward` with a dummy batch to initialize the "
                         "parameters before calling torch functions")

    @property
    def shape(self):
        raise RuntimeError("Can't access the shape of an uninitialized parameter or buffer. This "
                           "error usually happens in `load_state_dict` when trying to load an "
                           "uninitialized parameter into an initialized one. Call `forward` to "
                           "initialize the parameters before accessing their attributes.")

    def _placeholder(self) -> Tensor:
        """An empty tensor of the dtype and on the device."""
        t = object.__new__(Tensor)
        t._payload = _slot.__get__(self)
        t._edge = t._link = t._cell = t._record = None
        return t

    @property
    def data(self):
        """The placeholder; anything put in its place gives it its dtype and device."""
        return self._placeholder()

    @data.setter
    def data(self, value: Tensor) -> None:
        _slot.__set__(self, _slot.__get__(value))

    dtype = property(lambda self: self._placeholder().dtype)
    device = property(lambda self: self._placeholder().device)
    is_meta = property(lambda self: self._placeholder().is_meta)

    to, cpu, cuda = _allowed("to"), _allowed("cpu"), _allowed("cuda")
    half, float, double = _allowed("half"), _allowed("float"), _allowed("double")
    bfloat16, char, short = _allowed("bfloat16"), _allowed("char"), _allowed("short")
    int, long = _allowed("int"), _allowed("long")
    is_floating_point, is_complex = _allowed("is_floating_point"), _allowed("is_complex")

    def materialize(self, shape, device=None, dtype=None) -> None:
        """Become an ordinary parameter or buffer of this shape, with arbitrary values."""
        held = self._placeholder()
        new = ops.empty(list(shape), device=held.device if device is None else device,
                        dtype=held.dtype if dtype is None else dtype)
        _slot.__set__(self, new._payload)
        self.__class__ = self.cls_to_become

    def share_memory_(self):
        raise RuntimeError("Can't share memory on an uninitialized parameter or buffer. Call "
                           "`forward` to initialize the parameters before calling "
                           "`module.share_memory()`.")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


    def __reduce_ex__(self, protocol):
        return type(self), (self.requires_grad, str(self.device), self.dtype)

    def __deepcopy__(self, memo: dict):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.device, self.dtype)
        return memo[id(self)]


def _unshaped(cls, requires_grad: bool, device, dtype):
    new = object.__new__(cls)
    _slot.__set__(new, ops.empty([0], device=device, dtype=dtype)._payload)
    new._edge = new._link = new._cell = new._record = None
    return new.requires_grad_(True) if requires_grad else new


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter that has no shape yet."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device=None, dtype=None):
        return _unshaped(cls, requires_grad, device, dtype)


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer that has no shape yet."""

    __torch_function__ = disabled
    cls_to_become = Tensor
    persistent = True

    def __new__(cls, requires_grad: bool = False, device=None, dtype=None,
                persistent: bool = True):
        new = _unshaped(cls, requires_grad, device, dtype)
        new.persistent, new._is_buffer = persistent, True
        return new


def is_lazy(param) -> bool:
    """Has this tensor no shape yet?"""
    return isinstance(param, UninitializedTensorMixin)
