"""`__torch_dispatch__`: modes that are asked for every operator, and helpers for wrappers.

A wrapper subclass is made with `Tensor._make_wrapper_subclass` and says in `__torch_dispatch__`
what an operator does to the tensors inside; `__tensor_flatten__` and `__tensor_unflatten__` take
it apart and put it together for `compile`.  `testing/two_tensor.py` is a whole one.  How it works
is in `interp/operator_dispatch.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from ..core.handle import Tensor, disabled
from ..interp import operator_dispatch
from ..interp.operator_dispatch import piece
from ..threads.asking import Undispatched
from ..threads.blocks import tied, tied_block
from ..threads.state import state

__all__ = ["TorchDispatchMode", "is_traceable_wrapper_subclass",
           "is_traceable_wrapper_subclass_type", "return_and_correct_aliasing",
           "transform_subclass"]


class TorchDispatchMode:
    """A block in which `__torch_dispatch__` of this object is asked for every operator.

    It is handed overloads of the table, below the tape.  While it answers it is not asked again:
    operators inside go to the mode outside of it, if there is one, and to the arguments.
    """

    def __init__(self, _dispatch_key: Any = None) -> None:
        pass

    def __torch_dispatch__(self, func: Callable, types: tuple, args: tuple = (),
                           kwargs: dict | None = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no __torch_dispatch__")

    def __enter__(self) -> TorchDispatchMode:
        operator_dispatch.enter(self)
        return self

    @tied
    def __exit__(self, *exc: Any) -> None:
        operator_dispatch.leave(self)

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchDispatchMode:
        """An old way to make one."""
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Is it part of a tracer?  None that users write is."""
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that lets every operator pass."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    """The innermost mode."""
    modes = _get_current_dispatch_mode_stack()
    return modes[-1] if modes else None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    """All modes, the outermost first."""
    return [mode for mode, _ in state.dispatch.operator_modes if not hasattr(mode, "hidden")]


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Is a mode active?"""
    modes = _get_current_dispatch_mode_stack()
    return any(include_infra_modes or not mode.is_infra_mode() for mode in modes)


is_in_any_mode_without_ignore_compile_internals = is_in_torch_dispatch_mode


def all_same_mode(modes: list) -> bool:
    """Are all of them one mode?"""
    return all(mode is modes[0] for mode in modes)


@tied_block
def _pop_mode_temporarily(mode_key: Any = None) -> Iterator[TorchDispatchMode]:
    """A block in which the innermost mode is not asked."""
    before = state.dispatch.operator_modes
    if not _get_current_dispatch_mode_stack():
        raise RuntimeError("no dispatch mode is active, so that none can be set aside")
    state.dispatch.operator_modes = before[:-1]
    try:
        yield before[-1][0]
    finally:
        state.dispatch.operator_modes = before


@tied_block
def _disable_current_modes() -> Iterator[list[TorchDispatchMode]]:
    """A block in which no mode is asked."""
    before = state.dispatch.operator_modes
    state.dispatch.operator_modes = ()
    try:
        yield [mode for mode, _ in before]
    finally:
        state.dispatch.operator_modes = before


no_dispatch = Undispatched

# wrappers


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Is it a tensor that can be taken apart, a wrapper with flatten and unflatten?"""
    return isinstance(t, Tensor) and is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Is it a class of such tensors?"""
    return (
        isinstance(t, type) and issubclass(t, Tensor) and t.__torch_dispatch__ is not disabled
        and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")
    )


def transform_subclass(t: Tensor, callback: Callable, outer_size=None, outer_stride=None) -> Tensor:
    """The same wrapper around `callback(name, inner)` in place of each tensor inside."""
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, piece(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    new = type(t).__tensor_unflatten__(inner, context, size, stride)
    if tuple(new.shape) != tuple(size):
        raise RuntimeError(f"{type(t).__name__}.__tensor_unflatten__ gave a tensor of size "
                           f"{tuple(new.shape)} where {tuple(size)} was asked for")
    if tuple(new.stride()) != tuple(stride):
        raise RuntimeError(f"{type(t).__name__}.__tensor_unflatten__ gave a tensor of strides "
                           f"{tuple(new.stride())} where {tuple(stride)} were asked for")
    return new


def return_and_correct_aliasing(func: Any, args: tuple, kwargs: dict, out: Any) -> Any:
    """What `__torch_dispatch__` of a wrapper returns, so that aliases are what the schema says.

    Where an operator writes an argument and returns it, the result is that argument itself.
    Results that are views of an argument are tied to it by the surface, which knows from the
    schema that they are; that the memory inside is shared is the business of the class.
    """
    schema = func.schema
    written = {a.alias: i for i, a in enumerate(schema.args) if a.is_write}
    returns = schema.returns
    if not written or not any(r.is_write for r in returns):
        return out
    given = {a.name: v for a, v in zip(schema.args, args)} | kwargs

    def actual(spec, value):
        if not spec.is_write:
            return value
        name = schema.args[written[spec.alias]].name
        return given.get(name, value)

    if len(returns) == 1:
        return actual(returns[0], out)
    return type(out)(actual(spec, value) for spec, value in zip(returns, out))


def enable_python_dispatcher() -> contextlib.AbstractContextManager[None]:
    """A block in which operators are dispatched in Python, where they always are here."""
    return contextlib.nullcontext()


no_python_dispatcher = enable_pre_dispatch = enable_python_dispatcher
