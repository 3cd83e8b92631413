"""`TracingContext`: what is known of the graph that a compiler is given at the moment.

Of PyTorch's context, what programs read while their backward is compiled: which of its saved inputs
it may overwrite (`fw_metadata.bw_donated_idxs`).  `with tracing(TracingContext(fake_mode))` makes
one that is there outside of compilers, too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

from .. import errors
from ..cut.settings import donated_inputs, get_aot_compilation_context

__all__ = ["TracingContext", "tracing"]

_entered: ContextVar[TracingContext | None] = ContextVar("tracing", default=None)


class TracingContext:
    """The compilation that runs, with the mode of its tensors without data if there is one."""

    def __init__(self, fake_mode: Any = None) -> None:
        self.fake_mode = fake_mode

    @property
    def fw_metadata(self) -> SimpleNamespace:
        """What is known of the forward."""
        return SimpleNamespace(bw_donated_idxs=donated_inputs())

    @staticmethod
    def try_get() -> TracingContext | None:
        """That of `tracing`, or of the graph that is being compiled; else None."""
        found = _entered.get()
        if found is None and get_aot_compilation_context()[0]:
            found = TracingContext()
        return found

    @staticmethod
    def get() -> TracingContext:
        """The same, but there must be one."""
        found = TracingContext.try_get()
        if found is None:
            raise errors.OrderError(errors.text(
                f"TracingContext.get() must be called within an ongoing trace "
                f"({errors.user_line()})", cure="ask inside of a compiler, or use try_get()"))
        return found


@contextlib.contextmanager
def tracing(context: TracingContext | None) -> Iterator[TracingContext | None]:
    """Let a context be the one that is found."""
    token = _entered.set(context)
    try:
        yield context
    finally:
        _entered.reset(token)
