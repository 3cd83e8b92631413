"""Operators with a Python function per transform: `HigherOrderOperator` of PyTorch's `_ops`.

A call goes to the function that was registered for the innermost transform, with that level as its
first argument; `level.lower()` is a block in which the call means the next one outside.  Below all
transforms the function for the mode that is active, or for the device, is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .. import errors
from ..func.inside import TransformType, kind_of
from ..interp.interpreter import Interpreter
from ..library.dispatch_keys import DispatchKey as Key
from ..threads.blocks import tied_block
from ..threads.state import state

_BELOW = (Key.AutogradCPU, Key.Autograd, Key.CPU, Key.CompositeExplicitAutograd,
          Key.CompositeImplicitAutograd)


class Level:
    """A level of a transform, as a rule gets it."""

    def __init__(self, interp: Interpreter, kind: TransformType) -> None:
        self._interp, self._kind = interp, kind
        self._record = list(state.record)  # which levels record, where the operator was called

    def key(self) -> TransformType:
        """Which transform it is."""
        return self._kind

    def level(self) -> int:
        """Its number; the outermost has 1."""
        return self._interp.level

    def batch_size(self) -> int:
        """How many examples `vmap` runs over."""
        return self._interp.size

    def randomness(self) -> str:
        """How `vmap` draws random numbers."""
        return self._interp.randomness

    @tied_block
    def lower(self) -> Iterator[None]:
        """A block in which this level is not there for operators of this kind and random ones."""
        level = self._interp.level
        before = state.dispatch.lowered, state.random, list(state.record)
        state.dispatch.lowered = len(state.stack), level
        if state.random == level:
            state.random = self._interp.previous[1]
        state.record[:level] = self._record[:level]
        try:
            yield
        finally:
            state.dispatch.lowered, state.random, state.record[:] = before


def _innermost() -> tuple[Interpreter, TransformType] | None:
    """The innermost transform that `lower()` has not taken out of the way."""
    depth, seen = state.dispatch.lowered
    for number in range(len(state.stack) - 1, 0, -1):
        if seen <= number < depth:
            continue
        kind = kind_of(state.stack[number])
        if kind is not None:
            return state.stack[number], kind
    return None


class HigherOrderOperator:
    """An operator whose rules, one per transform, mode or device, are Python functions."""

    def __init__(self, name: str, *, cacheable: bool = False) -> None:
        if type(self) is HigherOrderOperator:
            raise errors.TransformError(
                "HigherOrderOperator is to be subclassed, with a __call__ that names the arguments "
                f"({errors.user_line()})")
        self._name = self.__name__ = name
        self._ns = self.namespace = "higher_order"
        self.py_kernels: dict[Any, Callable] = {}

    def py_impl(self, k: Any) -> Callable[[Callable], Callable]:
        """Register the function for a transform, a mode's class, or a dispatch key."""
        if k in self.py_kernels:
            raise errors.TransformError(f"{self._name} has a rule for {k} already "
                                        f"({errors.user_line()})")

        def register(function: Callable) -> Callable:
            self.py_kernels[k] = function
            return function

        return register

    def fallthrough(self, key: Any) -> None:
        """Say that a dispatch key is to be passed over: it is where it has no function."""

    def name(self) -> str:
        """What it is called."""
        return self._name

    def __repr__(self) -> str:
        return self._name

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        found = _innermost()
        if found is not None:
            rule = self.py_kernels.get(found[1])
            if rule is None:
                raise NotImplementedError(errors.text(
                    f"the operator {self._name!r} has no rule for {found[1].name.lower()} "
                    f"({errors.user_line(2)})",
                    cure=f"register one: @{self._name}.py_impl(TransformType.{found[1].name})"))
            return rule(Level(*found), *args, **kwargs)
        for mode, _ in reversed(state.dispatch.operator_modes):
            rule = self.py_kernels.get(type(mode))
            if rule is not None:
                return rule(mode, *args, **kwargs)
        for key in _BELOW:
            if key in self.py_kernels:
                return self.py_kernels[key](*args, **kwargs)
        raise NotImplementedError(errors.text(
            f"the operator {self._name!r} has no function for the device or the mode of this call "
            f"({errors.user_line(2)})", f"there is one for {list(self.py_kernels) or 'nothing'}"))
