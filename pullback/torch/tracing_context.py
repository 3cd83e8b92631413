"""`TracingContext`: what is known of the graph that a compiler is given at the moment.

Of PyTorch's context, what programs read while their backward is compiled: which of its saved inputs
it may overwrite (`fw_metadata.bw_donated_idxs`).
"""

from __future__ import annotations

from types import SimpleNamespace

from .. import errors
from ..cut.settings import donated_inputs, get_aot_compilation_context

__all__ = ["TracingContext"]


class TracingContext:
    """The compilation that runs."""

    def __init__(self) -> None:
        self.fw_metadata = SimpleNamespace(bw_donated_idxs=donated_inputs())

    @staticmethod
    def try_get() -> TracingContext | None:
        """The context of the graph that is being compiled, None outside of compilers."""
        return TracingContext() if get_aot_compilation_context()[0] else None

    @staticmethod
    def get() -> TracingContext:
        """The same, but there must be one."""
        found = TracingContext.try_get()
        if found is None:
            raise errors.OrderError(errors.text(
                f"TracingContext.get() must be called within an ongoing trace "
                f"({errors.user_line()})", cure="ask inside of a compiler, or use try_get()"))
        return found
