"""Functions that ask their arguments first: `__torch_function__`, subclasses and modes.

Tensors of a class that takes part show `Marked` arrays, so that the test which the generated
functions make anyway (`is it an ndarray?`) sends them to the general way, where `asked` looks for
somebody to give the call to.  Functions that are written in Python (methods and properties that
are not in the table, `nn.functional`) ask nobody until the first such class, or the first mode,
comes into being: then `arm` exchanges their code, in place, for code that asks.  Programs without
subclasses pay nothing.  Read next: `operator_dispatch.py`, the same
protocol for operators; `core/subclass_door.py`, how the core gets here.
"""

from __future__ import annotations

import sys
import types
import warnings
from functools import cache

import numpy as np

from .. import errors
from ..core.handle import Tensor, disabled
from ..core.state import count, fast, state
from ..core.subclass_door import (
    UNASKED,
    DisableTorchFunction,
    NobodyAnswers,
    door,
    no_overrides,
    waiting,
)

_slot, _meta_slot = Tensor._data, Tensor._meta
_ndarray = np.ndarray


class Marked(np.ndarray):
    """The memory of a tensor whose class is to be asked before anything is done with it."""


# classes


_OWN = __package__.partition(".")[0]


def _inside() -> bool:
    """Is it this package that asks for an attribute?"""
    return sys._getframe(2).f_globals.get("__name__", _OWN).partition(".")[0] == _OWN


def _shown(t: Tensor):
    cls = t.__class__
    if cls._named and not _inside() and "_data" in t.__dict__:
        return t.__dict__["_data"]
    data = _slot.__get__(t)
    if data.__class__ is not _ndarray:
        return data
    asks = cls._asked and not state.dispatch.overrides_off
    if asks or (cls._dispatched and not state.dispatch.no_subclasses):
        return data.view(Marked)
    return data


def _shown_meta(t: Tensor):
    if t.__class__._named and not _inside() and "_meta" in t.__dict__:
        return t.__dict__["_meta"]
    return _meta_slot.__get__(t)


def _guarded(slot, shown) -> property:
    """A slot whose name a class may use for itself: it and this package see different values."""

    def put(t: Tensor, value) -> None:
        if _inside():
            slot.__set__(t, value)
        else:
            type(t)._named = True  # from now on its members are looked at closely
            t.__dict__[slot.__name__] = value

    return property(shown, put)


_held = _guarded(_slot, _shown)  # the memory, marked while the class is to be asked
_held_meta = _guarded(_meta_slot, _shown_meta)
Tensor._asked = Tensor._dispatched = Tensor._named = False


def begin(cls: type) -> None:
    """A class of tensors that takes part has come into being."""
    own = getattr(cls.__torch_function__, "__func__", None)
    if cls.__torch_dispatch__ is not disabled and own is Tensor.__torch_function__.__func__:
        cls.__torch_function__ = disabled  # it takes part in operators, not in functions
    cls._asked = cls.__torch_function__ is not disabled
    cls._dispatched = cls.__torch_dispatch__ is not disabled
    if "_data" not in cls.__dict__ and cls._data is _slot:
        cls._data, cls._meta = _held, _held_meta
    if cls._asked:
        arm()
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


# code that asks


def arm() -> None:
    """From now on functions that are written in Python ask their arguments."""
    fast["OVERRIDES"] = 1
    for announced in waiting:
        _exchange(*announced)
    waiting.clear()


class _Entry:
    """What stands in the exchanged code of a function."""

    __slots__ = ("fast", "function", "modes_only", "plain", "public", "quiet")

    def __init__(self, public, plain: types.FunctionType, modes_only: bool, function):
        self.public, self.plain, self.modes_only = public, plain, modes_only
        self.function = function
        self.quiet, self.fast = quiet, fast

    def run(self, args: tuple, kwargs: dict):
        if not fast["ACTIVE"] and (self.modes_only or not kwargs and quiet.issuperset(
                [a.__class__ for a in args])):
            return self.plain(*args, **kwargs)  # no mode, and nobody who could take part
        answer = asked(self.public, args, kwargs)
        if answer is UNASKED and self.function in tellers:
            answer = tellers[self.function](*args, **kwargs)
        return self.plain(*args, **kwargs) if answer is UNASKED else answer


# functions that tell a fact -> how a class is asked for it (`wrapper_subclass.py`)
tellers: dict = {}
quiet: set[type] = {Tensor, int, float, bool, str, type(None), slice}  # take no part


def _asking(*args, **kwargs):
    return "entry".run(args, kwargs)  # the text is replaced by an entry


def _asking_one(t):
    entry = "entry"
    if t.__class__ in entry.quiet and not entry.fast["ACTIVE"]:
        return entry.plain(t)
    return entry.run((t,), {})


_BODIES = {
    _asking: """
        def made(*args, **kwargs):
            if 0: {0}
            return "entry".run(args, kwargs)
        return made
""",
    _asking_one: """
        def made(t):
            if 0: {0}
            entry = "entry"
            if t.__class__ in entry.quiet and not entry.fast["ACTIVE"]:
                return entry.plain(t)
            return entry.run((t,), {{}})
        return made
"""}


@cache
def _asking_code(asking: types.FunctionType, free: int) -> types.CodeType:
    """The code of such a function with as many variables from outside as what it stands for has.

    Code that only says that it has some crashes whoever looks at the variables of its frames.
    """
    if not free:
        return asking.__code__
    names = ", ".join([f"_free{i}" for i in range(free)])
    space: dict = {}
    exec(f"def outer({names}):{_BODIES[asking].format(names)}", space)
    return space["outer"](*[None] * free).__code__


def _exchange(public, function: types.FunctionType, modes_only: bool = False) -> None:
    """Give a function other code: it asks, and what it was runs if nobody takes part."""
    if "_asks" in function.__dict__:
        return
    code = function.__code__
    plain = types.FunctionType(code, function.__globals__, function.__name__,
                               function.__defaults__, function.__closure__)
    plain.__kwdefaults__ = function.__kwdefaults__
    one = code.co_argcount == 1 and not code.co_flags & 0x0C and not code.co_kwonlyargcount
    asking = _asking_code(_asking_one if one and not function.__defaults__ else _asking,
                          len(code.co_freevars))
    consts = tuple([_Entry(public, plain, modes_only, function) if c == "entry" else c
                    for c in asking.co_consts])
    function.__defaults__ = function.__kwdefaults__ = None
    function.__code__ = asking.replace(
        co_consts=consts, co_name=code.co_name,
        co_filename=code.co_filename, co_firstlineno=code.co_firstlineno)
    function.__wrapped__, function._asks = plain, True


Tensor.as_subclass, Tensor._make_subclass = as_subclass, staticmethod(make_subclass)
door.class_made, door.inherited, door.arm = begin, default, arm
door.asked, door.answered, door.members = asked, answered, members
door.refuse_wrapper = refuse_wrapper
