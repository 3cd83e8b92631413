"""Functions that ask their arguments first: `__torch_function__`, subclasses and modes.

Tensors of a class that takes part show `Marked` arrays, so that the test which the generated
functions make anyway (`is it an ndarray?`) sends them to the general way, where `asked` looks for
somebody to give the call to.  Functions that are written in Python (methods and properties that
are not in the table, `nn.functional`) ask in their first line, once there is such a class or a mode
(`tensor/overridable.py`): until then that line looks at a name of their module.  Read next:
`operator_dispatch.py`, the same protocol for operators.
"""

from __future__ import annotations

import inspect
import types
import warnings
from functools import partial

import numpy as np

from .. import errors
from ..core.handle import Tensor, disabled
from ..core.subclass_door import UNASKED, NobodyAnswers, door
from ..memory.storages import left, present
from ..tensor.overridable import ask_from_now_on, publics
from ..threads.asking import DisableTorchFunction, no_overrides
from ..threads.state import count, fast, state

_slot = Tensor._payload
_ndarray = np.ndarray


class Marked(np.ndarray):
    """The memory of a tensor whose class is to be asked before anything is done with it."""


# classes


def _shown(t: Tensor):
    data = present(t) if left else _slot.__get__(t)
    if data.__class__ is not _ndarray:
        return data
    cls = t.__class__
    asks = cls._asked and not state.dispatch.overrides_off
    if asks or (cls._dispatched and not state.dispatch.no_subclasses):
        return data.view(Marked)
    return data


_held = property(_shown, _slot.__set__)  # the memory, marked while the class is to be asked
Tensor._asked = Tensor._dispatched = False


def begin(cls: type) -> None:
    """A class of tensors that takes part has come into being."""
    own = getattr(cls.__torch_function__, "__func__", None)
    if cls.__torch_dispatch__ is not disabled and own is Tensor.__torch_function__.__func__:
        cls.__torch_function__ = disabled  # it takes part in operators, not in functions
    cls._asked = cls.__torch_function__ is not disabled
    cls._dispatched = cls.__torch_dispatch__ is not disabled
    if "_payload" not in cls.__dict__ and cls._payload is not _held:
        cls._payload = _held
    if cls._asked:
        ask_from_now_on()
    if cls._dispatched:
        count("DISPATCHES", 1)


def default(cls: type, function, kinds: tuple, args: tuple, kwargs: dict):
    """`Tensor.__torch_function__`: compute as for plain tensors, results become of the class."""
    if not all(issubclass(cls, kind) for kind in kinds):
        return NotImplemented
    with no_overrides():
        out = function(*args, **kwargs)
        return out if function in unconverted() else converted(out, cls)


def unconverted() -> set:
    """Functions whose results stay as they are: they hand out tensors that exist already."""
    return {Tensor._base.__get__, Tensor.grad.__get__, Tensor._grad.__get__}


def converted(value, cls: type):
    """A result with its tensors made members of a class."""
    if cls is Tensor:
        return value
    if isinstance(value, Tensor) and not isinstance(value, cls):
        return as_subclass(value, cls)
    if isinstance(value, (tuple, list)) and type(value).__module__ != "pullback.array.size":
        items = [converted(v, cls) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def as_subclass(self: Tensor, cls: type) -> Tensor:
    """The same tensor as a member of another class: shares memory and history."""
    _refuse_stranger(cls, "as_subclass")
    refuse_wrapper(cls, self)
    from ..table.packets import ops

    with DisableTorchFunction():  # no mode is asked about the change of class
        t = ops.alias(self)
    t.__class__ = cls
    return t


def make_subclass(
    cls: type, data: Tensor, require_grad: bool = False, *,
    dispatch_sizes_strides_policy: str | None = None, dispatch_device: bool = False,
    dispatch_layout: bool = False,
) -> Tensor:
    """A member of a class on the memory of a tensor, without its history."""
    _refuse_stranger(cls, "_make_subclass")
    refuse_wrapper(cls, data)
    from .operator_dispatch import shared

    new = shared(cls, data)
    if dispatch_sizes_strides_policy or dispatch_device or dispatch_layout:
        from .wrapper_subclass import ask_classes_for, asking_for

        asks = asking_for(dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)
        new.__dict__["_asks"] = asks
        ask_classes_for(asks)
    with no_overrides():
        return new.requires_grad_(True) if require_grad else new


def refuse_wrapper(cls: type, data: Tensor) -> None:
    """A wrapper has no memory that a tensor of another class could show."""
    from .operator_dispatch import Outer

    if isinstance(data, Tensor) and _slot.__get__(data).__class__ is Outer:
        raise RuntimeError(
            f"Creating a new Tensor of the subclass {cls.__name__} but its data is already "
            f"associated to a python object of type {type(data).__name__} "
            f"({errors.user_line(3)}): a wrapper has no memory of its own")


def _refuse_stranger(cls, name: str) -> None:
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"{name}(): cls must be a type that inherits from Tensor, got {cls!r}")


# calls


def takes_part(kind: type) -> bool:
    """Is a class to be asked before a function runs on a member of it?"""
    hook = getattr(kind, "__torch_function__", None)
    return hook is not None and hook is not disabled and kind is not Tensor


def members(values) -> list:
    """The values to be asked: one of each class, those of a subclass before those of its base."""
    found: list = []
    for value in values:
        kind = value.__class__
        if kind is Tensor:
            continue
        if kind is list or kind is tuple:
            new = members(value)
        else:
            new = [value] if takes_part(type(value)) else ()
        for v in new:
            kinds = [type(f) for f in found]
            if type(v) not in kinds:
                place = next((i for i, k in enumerate(kinds) if issubclass(type(v), k)), len(found))
                found.insert(place, v)
    return found


def asked(public, args: tuple, kwargs: dict):
    """What somebody else makes of a call, `UNASKED` if all arguments are plain.

    `public` gives the function that users know.
    """
    if state.dispatch.overrides_off == 2:
        return UNASKED
    given = () if state.dispatch.overrides_off else members(
        (*args, *kwargs.values()) if kwargs else args)
    if not given and not state.dispatch.function_modes:
        return UNASKED
    return answered(public(), given, args, kwargs)


def answered(public, given, args: tuple, kwargs: dict):
    """Ask the innermost mode, then the arguments."""
    kinds = tuple([type(v) for v in given])
    modes = state.dispatch.function_modes
    if modes and state.dispatch.overrides_off < 2:
        state.dispatch.function_modes = modes[:-1]
        try:
            out = method_of(modes[-1], "__torch_function__")(public, kinds, args, kwargs)
        finally:
            state.dispatch.function_modes = modes
        if out is not NotImplemented:
            return out
    for value in given:
        hook = value.__torch_function__
        if getattr(hook, "__self__", None) is value:
            _warn_of_method(public)
        out = hook(public, kinds, args, kwargs)
        if out is not NotImplemented:
            return out
    by = f" nor in mode {type(modes[-1]).__name__}" if modes else ""
    raise NobodyAnswers(
        f"no implementation found for '{_named(public)}' on types that implement "
        f"__torch_function__: {list(kinds)}{by}")


def method_of(mode, name: str):
    """The method of a mode that answers for others."""
    method = getattr(mode, name)
    if getattr(method, "__self__", None) is type(mode):
        raise RuntimeError(
            f"{type(mode).__name__}.{name} as a classmethod is not supported, please "
            f"make it a plain method ({errors.user_line(4)})")
    return method


def _warn_of_method(public) -> None:
    kind = DeprecationWarning if isinstance(public, types.FunctionType) else UserWarning
    warnings.warn("Defining your `__torch_function__` as a plain method is deprecated, make it a "
                  "classmethod", kind, stacklevel=4)


def _named(public) -> str:
    """A function's name in a message."""
    name = getattr(public, "__qualname__", None) or getattr(public, "__name__", str(public))
    module = getattr(public, "__module__", None) or ""
    return f"torch.{name}" if module.startswith("pullback") else name


# functions that are written in Python


# functions that tell a fact -> how a class is asked for it (`wrapper_subclass.py`)
tellers: dict = {}
quiet: set[type] = {Tensor, int, float, bool, str, type(None), slice}  # take no part


def taken_over(function, given, named=None) -> tuple:
    """What somebody else makes of a call of such a function: (answer,), or ()."""
    dispatch = state.dispatch
    if dispatch.declines is function:  # `redispatch_function`
        dispatch.declines = False
        return ()
    values = given.values() if type(given) is dict else given
    if not fast["ACTIVE"] and not named and quiet.issuperset([v.__class__ for v in values]):
        return ()  # no mode, and nobody who could take part
    args, kwargs = as_called(function, given) if type(given) is dict else (
        _without_defaults(function, given), named or {})
    public = publics.get(function)
    answer = asked(public or partial(_itself, function), args, kwargs)
    if answer is UNASKED and function in tellers:
        answer = tellers[function](*args, **kwargs)
    return () if answer is UNASKED else (answer,)


def _itself(function):
    return function


def as_called(function: types.FunctionType, given: dict) -> tuple[tuple, dict]:
    """Positional arguments and keywords of a call, from the values of all parameters.

    Those with a default are keywords, and left out where they have it.
    """
    code, defaults = function.__code__, function.__defaults__ or ()
    names, plain = code.co_varnames, code.co_argcount
    needed, end = plain - len(defaults), plain + code.co_kwonlyargcount
    known = dict(zip(names[needed:plain], defaults)) | (function.__kwdefaults__ or {})
    args = [given[n] for n in names[:needed]]
    if code.co_flags & inspect.CO_VARARGS:
        args += given[names[end]]
    kwargs = {n: given[n] for n in names[needed:end]
              if n not in known or given[n] is not known[n]}
    return tuple(args), kwargs


def _without_defaults(function: types.FunctionType, args: tuple) -> tuple:
    """Positional arguments up to the last one that is not the default."""
    defaults = function.__defaults__
    if defaults and len(args) == function.__code__.co_argcount:
        for default in reversed(defaults):
            if args[-1] is not default:
                break
            args = args[:-1]
    return args


Tensor.as_subclass, Tensor._make_subclass = as_subclass, staticmethod(make_subclass)
door.class_made, door.inherited, door.taken_over = begin, default, taken_over
door.ask_from_now_on = ask_from_now_on
door.asked, door.answered, door.members = asked, answered, members
door.refuse_wrapper = refuse_wrapper
