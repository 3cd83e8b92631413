"""Old names that programs still use: `Variable`, the engine's callbacks, its thread switch.

Read next: `engine.py`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

from .. import errors
from ..core.handle import Tensor
from ..threads.state import state

__all__ = ["Variable", "is_multithreading_enabled", "set_multithreading_enabled"]


class _Engine:
    """What programs ask of the engine directly."""

    @staticmethod
    def queue_callback(callback: Callable[[], None]) -> None:
        """Call a function at the end of the backward that runs."""
        if state.task is None:
            raise errors.NoGraph(
                errors.text(
                    "a callback can be queued only while a backward runs "
                    f"({errors.user_line(2)})",
                    cure="queue it from a hook or a custom backward",
                )
            )
        state.task.at_end(callback)


class _VariableMeta(type):
    def __instancecheck__(cls, value) -> bool:
        return isinstance(value, Tensor)


class Variable(metaclass=_VariableMeta):
    """A tensor; the name is from when only variables had gradients."""

    _execution_engine = _Engine()

    def __new__(cls, data: Tensor, requires_grad: bool = False, volatile: bool = False) -> Tensor:
        made = data.detach()
        return made.requires_grad_() if requires_grad else made


class _Kept(threading.local):
    many = True


_kept = _Kept()


class set_multithreading_enabled(contextlib.AbstractContextManager):
    """Kept: a backward runs in the thread that asks for it, whatever the switch says."""

    def __init__(self, mode: bool) -> None:
        self.mode, self.before = bool(mode), _kept.many
        _kept.many = self.mode

    def __exit__(self, *exc) -> None:
        _kept.many = self.before


def is_multithreading_enabled() -> bool:
    """What was asked of `set_multithreading_enabled`."""
    return _kept.many


