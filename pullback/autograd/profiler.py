"""The profiler under its old name and interface; see `pullback/profiler.py`."""

from __future__ import annotations

import contextlib

from ..absent import getter
from .profiler_events import EventList, FunctionEvent, FunctionEventAvg

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "emit_nvtx", "profile"]


class profile:
    """Records what runs within the block; the table is asked of this object itself."""

    def __init__(self, enabled: bool = True, *, use_cuda: bool = False, use_device=None,
                 record_shapes: bool = False, with_flops: bool = False,
                 profile_memory: bool = False, with_stack: bool = False, **ignored):
        self.enabled = enabled
        self.options = record_shapes, profile_memory, with_stack
        self.function_events: EventList | None = None

    def __enter__(self) -> profile:
        if self.enabled:
            from ..profiler import Recorder

            self._recorder = Recorder(*self.options)
            self._recorder.start()
        return self

    def __exit__(self, *exc) -> None:
        if self.enabled:
            self.function_events = self._recorder.stop()

    def _found(self) -> EventList:
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self.function_events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                     **ignored) -> EventList:
        """Sums of events of the same name."""
        return self._found().key_averages(group_by_input_shape, group_by_stack_n)

    def total_average(self) -> FunctionEventAvg:
        """The sum of everything."""
        return self._found().total_average()

    def table(self, *args, **kwargs) -> str:
        """A table of the events, one per line."""
        return self._found().table(*args, **kwargs)

    def export_chrome_trace(self, path: str) -> None:
        """Write the events as a trace that browsers show."""
        self._found().export_chrome_trace(path)

    @property
    def self_cpu_time_total(self) -> float:
        return self._found().self_cpu_time_total

    def __str__(self) -> str:
        return self.table() if self.function_events is not None else "<unfinished profile>"


def _profiler_enabled() -> bool:
    """Does a profiler record?"""
    from ..profiler import _recorders

    return bool(_recorders)


@contextlib.contextmanager
def emit_nvtx(enabled: bool = True, record_shapes: bool = False):
    """Nothing: there is no NVIDIA profiler to tell."""
    yield


emit_itt = emit_nvtx


_left_out = getter(__name__)


def __getattr__(name: str):
    if name == "record_function":
        from ..profiler import record_function

        return record_function
    return _left_out(name)
