"""`__torch_function__`: classes and modes that answer for the functions of this package.

Every function, method and property asks the classes of its arguments first, where one of them
takes part; `interp/function_overrides.py` says how that costs nothing where none does.  A
`TorchFunctionMode` is asked for all calls in a block.  A library's own functions ask with
`has_torch_function` and hand calls over with `handle_torch_function`.
"""

from __future__ import annotations

import functools
import inspect
import keyword
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any

from .core.handle import Tensor
from .core.op import families
from .interp import function_overrides
from .interp.function_overrides import answered, members, takes_part
from .table.packets import Packet
from .tensor.overridable import ask_from_now_on, asks_itself
from .threads.asking import DisableTorchFunction, DisableTorchFunctionSubclass, Enabled
from .threads.blocks import tied, tied_block
from .threads.state import count, state

__all__ = [
    "BaseTorchFunctionMode", "DisableTorchFunction", "DisableTorchFunctionSubclass",
    "TorchFunctionMode", "enable_reentrant_dispatch", "get_default_nowrap_functions",
    "get_ignored_functions", "get_overridable_functions", "get_testing_overrides",
    "handle_torch_function", "has_torch_function", "is_tensor_like",
    "is_tensor_method_or_property", "redispatch_function", "resolve_name", "wrap_torch_function",
]  # fmt: skip


# modes


class TorchFunctionMode:
    """A block in which `__torch_function__` of this object is asked for every call.

    While it answers it is not asked again: calls inside go to the mode outside of it, if there is
    one, and to the arguments.
    """

    def __torch_function__(self, func: Callable, types: tuple, args: tuple = (),
                           kwargs: dict | None = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no __torch_function__")

    def __enter__(self) -> TorchFunctionMode:
        ask_from_now_on()
        state.dispatch.function_modes = (*state.dispatch.function_modes, self)
        count("ACTIVE", 1)
        return self

    @tied
    def __exit__(self, *exc: Any) -> None:
        state.dispatch.function_modes = state.dispatch.function_modes[:-1]
        count("ACTIVE", -1)

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchFunctionMode:
        """An old way to make one."""
        warnings.warn("`Mode.push()` is no longer necessary and can be replaced with just "
                      "`with Mode()`", stacklevel=2)
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that lets every call pass."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _get_current_function_mode() -> TorchFunctionMode | None:
    """The innermost mode."""
    return state.dispatch.function_modes[-1] if state.dispatch.function_modes else None


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    """All modes, the outermost first."""
    return list(state.dispatch.function_modes)


@tied_block
def _pop_mode_temporarily() -> Iterator[TorchFunctionMode]:
    """A block in which the innermost mode is not asked."""
    before = state.dispatch.function_modes
    if not before:
        raise RuntimeError("no function mode is active, so that none can be set aside")
    state.dispatch.function_modes = before[:-1]
    try:
        yield before[-1]
    finally:
        state.dispatch.function_modes = before


_enable_torch_function = Enabled


@tied_block
def enable_reentrant_dispatch() -> Iterator[None]:
    """Inside of `__torch_dispatch__`: functions ask and operators are recorded again."""
    record, no_overrides = state.record[:], state.dispatch.overrides_off
    state.record[:] = [True] * len(record)
    state.dispatch.overrides_off = 0
    try:
        yield
    finally:
        state.record[:], state.dispatch.overrides_off = record, no_overrides


# functions that users write


def has_torch_function(relevant_args: Iterable) -> bool:
    """Is somebody to be asked, an argument that takes part or a mode?"""
    if state.dispatch.declines is True:
        state.dispatch.declines = False
        return False
    if not isinstance(relevant_args, Iterable):
        raise TypeError("expected a sequence of arguments to ask, got "
                        f"{type(relevant_args).__name__}")
    if state.dispatch.overrides_off == 2:
        return False
    dispatch = state.dispatch
    return bool(dispatch.function_modes
                or not dispatch.overrides_off and members(tuple(relevant_args)))


def has_torch_function_unary(arg: Any) -> bool:
    """`has_torch_function` of one argument."""
    return has_torch_function((arg,))


def has_torch_function_variadic(*args: Any) -> bool:
    """`has_torch_function` of several."""
    return has_torch_function(args)


def handle_torch_function(public_api: Callable, relevant_args: Iterable, *args: Any,
                          **kwargs: Any) -> Any:
    """Give a call to the mode, or to the first argument whose `__torch_function__` takes it."""
    given = () if state.dispatch.overrides_off else members(tuple(relevant_args))
    return answered(public_api, given, args, kwargs)


def redispatch_function(func: Callable, types: tuple, args: tuple = (),
                        kwargs: dict | None = None) -> Any:
    """From within `__torch_function__`: run a function without asking again for this one call.

    Functions that it calls ask as ever.
    """
    kwargs = kwargs or {}
    own = asks_itself(func)
    if own or isinstance(func, FunctionType) and not func.__module__.startswith("pullback"):
        state.dispatch.declines = func if own else True
        try:
            return func(*args, **kwargs)
        finally:
            state.dispatch.declines = False
    with DisableTorchFunctionSubclass():
        return func(*args, **kwargs)


def wrap_torch_function(dispatcher: Callable) -> Callable:
    """Decorate a function so that it asks the arguments that `dispatcher` names."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


# questions


def is_tensor_like(inp: Any) -> bool:
    """Is it a tensor, or something that takes part in the protocol?"""
    return isinstance(inp, Tensor) or takes_part(type(inp))


def get_default_nowrap_functions() -> set[Callable]:
    """Functions whose results a subclass gets as they are."""
    return function_overrides.unconverted()


def is_tensor_method_or_property(func: Callable) -> bool:
    """Is it a method of `Tensor`, or the hook of one of its properties?"""
    return func in _index() and _index()[func].startswith("torch.Tensor.")


def resolve_name(f: Callable) -> str | None:
    """The name that people know a function by."""
    if isinstance(f, str):
        return f
    try:
        found = _index().get(f)
    except TypeError:
        return None
    if found is None and repr(f).startswith("aten."):
        return repr(f)
    return found


@functools.cache
def get_ignored_functions() -> set[Callable]:
    """Functions that ask nobody: they make tensors from other things, or change switches."""
    import pullback

    names = ("typename is_tensor tensor as_tensor set_default_dtype get_default_dtype manual_seed "
             "can_cast promote_types")
    factories = {getattr(pullback, n) for n in dir(pullback) if _makes(n)}
    return {getattr(pullback, n) for n in names.split()} | factories | {
        Tensor.__new__, Tensor.as_subclass, Tensor.__torch_dispatch__}


def _makes(name: str) -> bool:
    """Is it an operator without tensors among its arguments, which nobody can be asked by?"""
    import pullback

    if name.startswith("_") or name not in pullback._operators:
        return False
    found = getattr(pullback, name)
    return isinstance(found, Packet) and _there(found) and not any(
        a.is_tensor for entry in found.entries() for a in entry.schema.args)


def _there(function: Any) -> bool:
    """Is it no operator that was taken out of the table again?"""
    return not isinstance(function, Packet) or function._base in families


@functools.cache
def get_overridable_functions() -> dict[Any, list[Callable]]:
    """The functions that ask, by the module or class that has them."""
    found: dict[Any, list[Callable]] = {}
    for place, _, function in _offered():
        found.setdefault(place, []).append(function)
    return found


@functools.cache
def get_testing_overrides() -> dict[Callable, Callable]:
    """A function with the same arguments for every one that can be overridden, to test one's own;
    it returns -1."""
    return {function: _like(function) for _, _, function in _offered()}


def _like(function: Callable) -> Callable:
    """A function with the signature of another."""

    def override(*args: Any, **kwargs: Any) -> int:
        return -1

    override.__signature__ = _signature(function)  # type: ignore[attr-defined]
    return override


def _signature(function: Callable) -> inspect.Signature:
    kind = inspect.Parameter
    if isinstance(function, Packet):
        schema = function.entries()[0].schema
        found = [kind(f"{a.name}_" if keyword.iskeyword(a.name) else a.name,
                      kind.POSITIONAL_OR_KEYWORD if i < schema.kw_only_from
                      else kind.KEYWORD_ONLY, default=a.default if a.has_default else kind.empty)
                 for i, a in enumerate(schema.args)]
        return inspect.Signature(found)
    if isinstance(function, FunctionType):
        found = list(inspect.signature(function).parameters.values())
        return inspect.Signature([p.replace(annotation=kind.empty) for p in found])
    return inspect.Signature([kind("self", kind.POSITIONAL_ONLY)])  # the hook of a property


@functools.cache
def _index() -> dict[Callable, str]:
    found: dict[Callable, str] = {}
    for _, name, function in _candidates():  # of several names that which the function has itself
        own = f".{getattr(function, '__name__', '')}"
        if function not in found or name.endswith(own) and not found[function].endswith(own):
            found[function] = name
    return found


def _offered() -> Iterator[tuple[Any, str, Callable]]:
    """(module or class, name, function) of everything that asks."""
    ignored = get_ignored_functions()
    for found in _candidates():
        if found[2] not in ignored:
            yield found


def _candidates() -> Iterator[tuple[Any, str, Callable]]:
    """The same, and those that ask nobody."""
    import pullback
    from pullback import creation, functional, linalg
    from pullback.nn import functional as F

    for name in dir(Tensor):
        value = getattr(Tensor, name)
        if type(value) is property:
            for hook in ("__get__", "__set__", "__delete__"):
                yield Tensor, f"torch.Tensor.{name}.{hook}", getattr(value, hook)
        elif type(value) is types.FunctionType and value not in _UNASKED:
            yield Tensor, f"torch.Tensor.{name}", value
    for module, title in ((functional, "torch.functional"), (linalg, "torch.linalg"),
                          (F, "torch.nn.functional")):
        for name, value in vars(module).items():
            own = type(value) is types.FunctionType and value.__module__.startswith(module.__name__)
            if name[0] != "_" and (own or isinstance(value, Packet)):
                yield module, f"{title}.{name}", value
    for name in dir(pullback):
        if not name.startswith("_") and name in pullback._operators and callable(
                getattr(pullback, name)) and _there(getattr(pullback, name)):
            yield pullback, f"torch.{name}", getattr(pullback, name)
    for name in ("numel", "is_floating_point", "is_complex", "is_nonzero", "result_type",
                 "broadcast_tensors", "get_device", "detach_"):
        yield pullback, f"torch.{name}", getattr(creation, name)


_UNASKED = {Tensor.as_subclass, Tensor._make_subclass, Tensor._make_wrapper_subclass}
