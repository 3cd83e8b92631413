"""Where time goes: `profile` records operators, backward nodes and named ranges.

    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
        with record_function("forward"):
            loss = model(x).sum()
        loss.backward()
    print(prof.key_averages().table(sort_by="self_cpu_time_total"))
    prof.export_chrome_trace("trace.json")

While a block records, the functions that the dispatcher calls are replaced by ones that read the
clock, and the fast path is left; outside of blocks nothing is there.  What is recorded and how it
is added up is in `autograd/profiler_events.py`.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from enum import Enum, IntEnum

from . import errors, library
from .absent import getter as _getter
from .autograd.anomaly_mode import Watcher, unwatch, watch
from .autograd.profiler_events import EventList, FunctionEvent
from .capture.run import Program
from .core import stack, surface
from .core.handle import Tensor
from .core.tape import Accumulate, Port
from .table import lists as foreach
from .table import packets as table
from .threads.state import count, renewed

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerActivity(IntEnum):
    """What to record; there is only the CPU here."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(Enum):
    """What a profiler does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """The CPU."""
    return {ProfilerActivity.CPU}


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0,
             skip_first_wait: int = 0) -> Callable[[int], ProfilerAction]:
    """Cycles of steps: `wait` of them nothing, `warmup`, then `active` ones that are recorded."""
    for name, value in {"wait": wait, "warmup": warmup, "repeat": repeat,
                        "skip_first": skip_first}.items():
        if value < 0:
            raise errors.BadValue(f"schedule(): {name} must not be negative, got {value}")
    if active < 1:
        raise errors.BadValue(f"schedule(): active must be positive, got {active}")

    def action(step: int) -> ProfilerAction:
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        cycle = wait + warmup + active
        if skip_first_wait:  # the first cycle does not wait
            step += wait
        if repeat and step >= repeat * cycle:
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        last = place == cycle - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return action


# recording


class _Thread(threading.local):
    """The ranges that are open in a thread, innermost last."""

    def __init__(self) -> None:
        self.open: list[FunctionEvent] = []
        self.made: tuple | None = None  # the last operator and its result, which gets a node next

    def number(self) -> None:
        """Give the event of the last operator the number of its node."""
        (event, ref), self.made = self.made, None
        edge = getattr(ref(), "_edge", None)
        if edge is not None and not isinstance(edge, Accumulate):
            event.sequence_nr = (edge.node if isinstance(edge, Port) else edge).seq
            _made_in[event.sequence_nr] = event.thread


_thread = _Thread()
_lock = renewed(threading.Lock())
_recorders: list[Recorder] = []
_plain: dict = {}
_made_in: dict[int, int] = {}  # number of a node -> the thread of its operator


def _enter(name: str, args: Iterable = (), node=None) -> FunctionEvent:
    if _thread.made is not None:
        _thread.number()
    event = FunctionEvent(name, threading.get_ident(), _thread.open[-1] if _thread.open else None)
    for recorder in _recorders:
        if recorder.shapes:
            event.input_shapes = [list(a._payload.shape) if isinstance(a, Tensor) else
                                  list(a.shape) if hasattr(a, "shape") else [] for a in args]
        if recorder.stacks:
            event.stack = [errors.user_line(3)]
    event.sequence_nr = -1 if node is None else node.seq
    _thread.open.append(event)
    event.start = time.perf_counter_ns()
    return event


def _leave(event: FunctionEvent, out=None) -> None:
    event.end = time.perf_counter_ns()
    opened = _thread.open
    while opened and opened.pop() is not event:
        pass
    if out is not None and any(r.memory for r in _recorders):
        made = out if isinstance(out, (tuple, list)) else (out,)
        event.cpu_memory_usage = sum(
            getattr(getattr(o, "_payload", o), "nbytes", 0) for o in made if o is not None)
    for recorder in _recorders:
        recorder.events.append(event)


def _bind(ov, flat: tuple):
    event = _enter(f"aten::{ov.op.base_name}", flat)
    out = None
    try:
        out = _plain["bind"](ov, flat)
        first = out[0] if isinstance(out, (tuple, list)) and out else out
        if isinstance(first, Tensor):
            _thread.made = event, weakref.ref(first)
        return out
    finally:
        _leave(event, None if ov.is_view else out)


def _run_inplace(ov, raw, xp=None):
    event = _enter(f"aten::{ov.op.base_name}_", raw)
    try:
        return _plain["run_raw"](ov, raw, xp)
    finally:
        _leave(event)


def _run_compiled(program, arguments):
    event = _enter("CompiledFunction", arguments)
    try:
        return _plain["run"](program, arguments)
    finally:
        _leave(event)


class _Nodes(Watcher):
    """Ranges around the nodes of a sweep."""

    def before(self, node, grads: list) -> None:
        given, name = [g for g in grads if g is not None], node.name()
        for title in (f"autograd::engine::evaluate_function: {name}", name):
            event = _enter(title, given, node)
            event.fwd_thread = _made_in.get(node.seq, event.thread)

    def done(self) -> None:
        _leave(_thread.open[-1])
        _leave(_thread.open[-1])


_nodes = _Nodes()


def _hook(on: bool) -> None:
    if on:
        _plain.update(bind=stack.bind, run_raw=stack.run_raw, run=Program.run)
    stack.bind = table.bind = foreach.bind = library.bind = _bind if on else _plain["bind"]
    surface.run_raw = foreach.run_raw = _run_inplace if on else _plain["run_raw"]
    Program.run = _run_compiled if on else _plain["run"]
    (watch if on else unwatch)(_nodes)


class Recorder:
    """Collects events while it is on."""

    def __init__(self, shapes: bool = False, memory: bool = False, stacks: bool = False) -> None:
        self.shapes, self.memory, self.stacks = shapes, memory, stacks
        self.events: list[FunctionEvent] = []

    def start(self) -> None:
        """Begin to record."""
        with _lock:
            if not _recorders:
                _hook(True)
            _recorders.append(self)
        count("ACTIVE", 1)  # off the fast path, which calls kernels itself
        self.begun = time.perf_counter_ns()

    def stop(self) -> EventList:
        """End; returns what was recorded."""
        self.ended = time.perf_counter_ns()
        if _thread.made is not None:
            _thread.number()
        count("ACTIVE", -1)
        with _lock:
            _recorders.remove(self)
            if not _recorders:
                _hook(False)
                _made_in.clear()
        return EventList(sorted(self.events, key=lambda e: e.start), self.begun, self.ended)


class record_function(contextlib.ContextDecorator):
    """A named range, as a context manager or decorator; costs nothing to speak of while off."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self.event: FunctionEvent | None = None

    def __enter__(self) -> record_function:
        self.event = _enter(self.name) if _recorders else None
        return self

    def __exit__(self, *exc) -> None:
        if self.event is not None and _recorders:
            _leave(self.event)
        self.event = None

    def _recreate_cm(self) -> record_function:  # each call of a decorated function is a range
        return record_function(self.name, self.args)


# the profiler


def _always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


class profile:
    """Records what runs within the block, or in the steps that `schedule` chooses."""

    def __init__(self, *, activities: Iterable[ProfilerActivity] | None = None,
                 schedule: Callable[[int], ProfilerAction] | None = None,
                 on_trace_ready: Callable[[profile], None] | None = None,
                 record_shapes: bool = False, profile_memory: bool = False,
                 with_stack: bool = False, with_flops: bool = False, with_modules: bool = False,
                 experimental_config=None, execution_trace_observer=None, acc_events: bool = False,
                 use_cuda: bool | None = None, custom_trace_id_callback=None) -> None:
        wanted = set(activities) if activities else {ProfilerActivity.CPU}
        if not wanted <= set(ProfilerActivity):
            raise errors.BadValue(f"profile(): activities must be ProfilerActivity, got {wanted}")
        self.activities = wanted
        self.schedule = schedule or _always
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.options = record_shapes, profile_memory, with_stack
        self.acc_events = acc_events
        self.step_num = 0
        self.current_action = ProfilerAction.NONE
        self.metadata: dict = {}
        self._recorder: Recorder | None = None
        self._events: EventList | None = None
        self._step: record_function | None = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc) -> None:
        self.stop()

    def start(self) -> None:
        """Begin with the first step."""
        self.current_action = self.schedule(self.step_num)
        self._act(ProfilerAction.NONE, self.current_action)
        self._begin_step()

    def stop(self) -> None:
        """End, whatever step it is."""
        self._end_step()
        self._act(self.current_action, ProfilerAction.NONE)
        self.current_action = ProfilerAction.NONE

    def step(self) -> None:
        """The next step of the program begins."""
        self._end_step()
        before, self.step_num = self.current_action, self.step_num + 1
        self.current_action = self.schedule(self.step_num)
        self._act(before, self.current_action)
        self._begin_step()

    def _begin_step(self) -> None:
        if self.record_steps:
            self._step = record_function(f"ProfilerStep#{self.step_num}").__enter__()

    def _end_step(self) -> None:
        if self._step is not None:
            self._step.__exit__(None, None, None)
            self._step = None

    def _act(self, before: ProfilerAction, now: ProfilerAction) -> None:
        recording = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        ended = before in recording and (
            now not in recording or before is ProfilerAction.RECORD_AND_SAVE)
        if ended:
            found = self._recorder.stop()
            self._recorder = None
            self._events = self._events + found if self.acc_events and self._events else found
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
        if now in recording and self._recorder is None:
            self._recorder = Recorder(*self.options)
            self._recorder.start()

    def events(self) -> EventList:
        """What was recorded last."""
        if self._events is None:
            raise errors.OrderError(errors.text(
                f"the profiler has recorded nothing yet ({errors.user_line(2)})",
                cure="ask after the `with` block, or after the steps that the schedule records"))
        return self._events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False) -> EventList:
        """Sums of events of the same name."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def export_chrome_trace(self, path: str) -> None:
        """Write a file for chrome://tracing or Perfetto; `.gz` compresses it."""
        self.events().export_chrome_trace(path, self.metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write one line per source line and its time, for flame graphs."""
        self.events().export_stacks(path, metric)

    def add_metadata(self, key: str, value: str) -> None:
        """Put a text into the trace file."""
        self.metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Put a value in JSON into the trace file."""
        self.metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None,
                              use_gzip: bool = False) -> Callable[[profile], None]:
    """For `on_trace_ready`: writes each trace into a folder."""
    os.makedirs(dir_name, exist_ok=True)

    def write(prof: profile) -> None:
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return write


def kineto_available() -> bool:
    """False: this profiler is another one."""
    return False


_left_out = _getter(__name__)


def __getattr__(name: str):
    if name == "itt":
        from .absent import Facts, always, nothing

        return Facts("profiler.itt", "Marks for Intel's profiler: nobody reads them.", {
            "is_available": always(False), "mark": nothing, "range_push": nothing,
            "range_pop": nothing, "range": lambda *a, **k: contextlib.nullcontext()})
    return _left_out(name)
