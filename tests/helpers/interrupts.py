"""Interrupts between any two instructions of the package."""

import contextlib
import sys
import threading

import pytest

import pullback
from pullback.amp.autocast_mode import settings
from pullback.threads.blocks import put_back, snapshot
from pullback.threads.state import Group, fast, off, state

PACKAGE = pullback.__path__[0]
ENDS = ("__enter__", "__exit__", "__get__", "_leave", "_restore", "_tie", "snapshot")
COUNTERS = ("ACTIVE", "WATCHED", "DISPATCHES", "LEAFHOOKS", "BIRTHS")


@pytest.fixture(autouse=True)
def same_again():
    """The state after a test that damages it, on purpose or because it fails: others do not see."""
    before, had = snapshot(), off.copy()
    yield
    put_back(before)
    off.clear()
    off.update(had)


def parts(model) -> list:
    """The hooks and the memory of modules."""
    return [{k: dict(v) if "hooks" in k else list(v) for k, v in vars(m).items()
             if isinstance(v, dict)} for m in model.modules()] + [
        (type(p._payload), p._edge is None, p.requires_grad) for p in model.parameters()]


def condition(model=None) -> tuple:
    """What an interrupt must not change."""
    own = {k: v for k, v in vars(state).items() if k not in ("stack", "record")}
    groups = {k: own.pop(k) for k in list(own) if isinstance(own[k], Group)}
    own = {k: v for k, v in own.items() if v != getattr(type(state), k, object())}
    own |= {(k, n): v for k, group in groups.items() for n, v in vars(group).items()
            if n != "autocast_settings" and v != getattr(type(group), n)}
    return (own, list(state.stack), list(state.record), {n: fast[n] for n in COUNTERS}, off.copy(),
            pullback.is_grad_enabled(), pullback.is_inference_mode_enabled(),
            {k: v for k, v in vars(settings()).items() if k != "kept"},
            pullback.aot.config.to_dict(),
            parts(model) if model is not None else None)


class Steps:
    """Counts instructions of the package and raises at one of them."""

    def __init__(self, at=None):
        self.at, self.count = at, 0
        self.seen, self.near, self.last = set(), [], False

    def step(self, code, place) -> None:
        """One more instruction is about to run."""
        self.count += 1
        if self.count == self.at:
            raise KeyboardInterrupt
        if self.at is None:
            self.look(code, place)

    def look(self, code, place) -> None:
        """Note the instructions where blocks begin and end, and the one after these, once each."""
        inside = code.co_name in ENDS
        if (inside or self.last) and (code, place) not in self.seen:
            self.seen.add((code, place))
            self.near.append(self.count)
        self.last = inside


def followed(code) -> bool:
    """May an interrupt hit a function?"""
    if not code.co_filename.startswith((PACKAGE, "<pullback")):
        return False
    if code.co_name in ("_lost", "lost", "put_back", "interrupted"):
        return False  # the answer to one interrupt; nobody is safe from a second
    if code.co_name == "__del__":
        return False  # Python itself ignores what is raised there
    # Python looks for signals before and after it takes a lock or lets go of it, but not where the
    # block of one ends: here the lock would be held for ever
    return not {"lock", "_lock"} & set(code.co_names)


@contextlib.contextmanager
def tracing(function):
    """Calls are told to a function, as by `sys.settrace`."""
    before = sys.gettrace()
    sys.settrace(function)
    try:
        yield
    finally:
        sys.settrace(before)


def by_trace(steps: Steps, work) -> None:
    """Run a function, with all its instructions seen by `sys.settrace`."""
    def instruction(frame, event, arg):
        if event == "opcode":
            steps.step(frame.f_code, frame.f_lasti)
        return instruction

    def call(frame, event, arg):
        if not followed(frame.f_code):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return instruction

    with tracing(call):
        work()


def by_monitoring(steps: Steps, work) -> None:
    """The same by `sys.monitoring`: from Python 3.12 on, `sys.settrace` sees the instructions of a
    function from its second call on, or a later one, so that their number varies."""
    watch, tool, thread = sys.monitoring, 4, threading.get_ident()
    event = watch.events.INSTRUCTION

    def instruction(code, place):
        if not followed(code):
            return watch.DISABLE
        if threading.get_ident() == thread:
            try:
                steps.step(code, place)
            except KeyboardInterrupt:
                watch.set_events(tool, 0)
                raise

    watch.use_tool_id(tool, "interrupts")
    watch.register_callback(tool, event, instruction)
    watch.set_events(tool, event)
    try:
        work()
    finally:
        watch.set_events(tool, 0)
        watch.free_tool_id(tool)


def run(work, at=None) -> int:
    """How many instructions ran; interrupted at one of them if that is given."""
    return traced(work, at).count


def traced(work, at=None) -> Steps:
    steps = Steps(at)
    try:
        (by_trace if sys.version_info < (3, 12) else by_monitoring)(steps, work)
    except KeyboardInterrupt:
        pass
    return steps
