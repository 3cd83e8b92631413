"""Functional tensors by hand: `FunctionalTensorMode`, and the switches that PyTorch has below it.

Each is the level of `functionalize`, opened and closed by the program itself.  A functional tensor
outlives its block: its value is asked for on the level that it belongs to, which is opened again
for the moment.  Read next: `functionalize.py`, `../interp/functionalize.py`.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable
from typing import Any

from .. import errors
from ..core.handle import Tensor, cell_of, disabled, make
from ..graph.fake_mode import Asking
from ..interp.functionalize import Functional, Functionalize
from ..memory.views import current
from ..pytree import tree_map
from ..threads.blocks import tied
from ..threads.state import state


class FunctionalTensor(Tensor, metaclass=Asking):
    """A tensor of a `FunctionalTensorMode`: writes to it write no memory."""

    _has = staticmethod(lambda instance: _is_functional_tensor(instance))
    __torch_function__ = disabled

    def __new__(cls, *args: Any, **kwargs: Any) -> Tensor:
        raise TypeError("make functional tensors with FunctionalTensor.to_functional(t), inside of "
                        "a FunctionalTensorMode()")

    @staticmethod
    def to_functional(x: Tensor) -> Tensor:
        """The functional tensor of a tensor."""
        if not _open():
            raise errors.TransformError(errors.text(
                f"to_functional() was called outside of any FunctionalTensorMode "
                f"({errors.user_line()})", cure="call it inside of `with FunctionalTensorMode():`"))
        return _to_functional_tensor(x)

    @property
    def elem(self) -> Tensor:
        """The same value as a tensor of no class, for `_from_functional_tensor`."""
        with _inside(self):
            return make(current(self)._payload)

    def from_functional(self) -> Tensor:
        """The value that it has now."""
        return _from_functional_tensor(self)


class _Level(Functionalize):
    """A level whose tensors are `FunctionalTensor`s."""

    def wrap(self, t: Tensor) -> Tensor:
        new = object.__new__(FunctionalTensor)
        new._payload, new._edge = Functional(self, t), None
        new._link = new._cell = new._record = None
        if t.requires_grad and not self.previous[0]:
            new.requires_grad_(True)
        return new


class FunctionalTensorMode:
    """A block in which tensors that are made, and those of `to_functional`, are functional."""

    def __init__(self, pre_dispatch: bool = False, export: bool = False,
                 _allow_token_discovery: bool = False) -> None:
        self.pre_dispatch, self.export = pre_dispatch, export
        self._levels: list[Functionalize] = []

    def __enter__(self) -> FunctionalTensorMode:
        self._levels.append(_Level(False).__enter__())
        return self

    @tied
    def __exit__(self, *exc: Any) -> None:
        self._levels[-1].__exit__(*exc)
        self._levels.pop()

    def lost(self) -> None:
        """Levels that are left are over."""
        while self._levels and self._levels[-1] not in state.stack:
            self._levels.pop().lost()


def dispatch_functionalize(func: Callable, mode: FunctionalTensorMode | None = None) -> Callable:
    """The function without writes; what it writes into its arguments is not done to them."""

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with FunctionalTensorMode() if mode is None else mode:
            lifted = tree_map(_on(FunctionalTensor.to_functional), (args, kwargs))
            return tree_map(_on(_from_functional_tensor), func(*lifted[0], **lifted[1]))

    return wrapped


def _on(function: Callable) -> Callable:
    return lambda value: function(value) if isinstance(value, Tensor) else value


class _Switches(threading.local):
    def __init__(self) -> None:
        self.waiting: Functionalize | None = None  # has tensors already, not entered yet
        self.entered: list[Functionalize] = []


_switches = _Switches()


def _open() -> Functionalize | None:
    """The innermost level of this kind."""
    return next((lv for lv in reversed(state.stack) if isinstance(lv, Functionalize)), None)


def _inside(t: Tensor) -> Any:
    """A block in which the level of a functional tensor is on the stack."""
    level = t._payload.interp
    return contextlib.nullcontext() if level in state.stack else level


def _to_functional_tensor(t: Tensor, mirror_autograd_meta: bool = False) -> Tensor:
    """A functional tensor, of the level that is open or the one that is opened next."""
    level = _open() or _switches.waiting
    if level is None:
        level = _switches.waiting = Functionalize(False)
        level.level, level.alive = len(state.stack), True
    new = level.wrap(t)
    if mirror_autograd_meta and t.requires_grad:
        new.requires_grad_(True)
    return new


def _is_functional_tensor(t: Any) -> bool:
    """Is it a tensor of such a level?"""
    return isinstance(getattr(t, "_payload", None), Functional)


def _enable_functionalization(*, reapply_views: bool = False) -> None:
    """Begin such a level; views become copies unless `reapply_views`."""
    level = _switches.waiting or Functionalize(False)
    _switches.waiting, level.copies_views = None, not reapply_views
    _switches.entered.append(level.__enter__())


def _disable_functionalization() -> None:
    """End the level that `_enable_functionalization` began."""
    _switches.entered.pop().__exit__(None, None, None)


def _sync(t: Tensor) -> None:
    """Bring a functional tensor up to date with what was written through its aliases."""
    _must_be_functional("_sync", t)
    with _inside(t):
        current(t)


def _freeze_functional_tensor(t: Tensor) -> None:
    """From now on writes to a functional tensor, and to what shares its memory, are refused."""
    _must_be_functional("_freeze_functional_tensor", t)
    t._payload.interp.frozen.append(cell_of(t))


def _must_be_functional(caller: str, t: Any) -> None:
    if not _is_functional_tensor(t):
        raise errors.RefusedValue(f"{caller}() takes functional tensors ({errors.user_line(2)})")


def _from_functional_tensor(t: Tensor) -> Tensor:
    """The value of a functional tensor, one level below; others as they are."""
    if not _is_functional_tensor(t):
        return t
    with _inside(t):
        return current(t)._payload.inner
