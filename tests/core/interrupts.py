"""Interrupts between any two instructions of the package."""

import sys

import pullback
from pullback.core.state import count, fast, off, state, tick

PACKAGE = pullback.__path__[0]
ENDS = ("__enter__", "__exit__", "__get__", "_leave", "_restore", "_tie", "snapshot")
COUNTERS = ("ACTIVE", "WATCHED", "DISPATCHES", "LEAFHOOKS")


def parts(model) -> list:
    """The hooks and the memory of modules."""
    return [{k: dict(v) if "hooks" in k else list(v) for k, v in vars(m).items()
             if isinstance(v, dict)} for m in model.modules()] + [
        (type(p._data), p._edge is None, p.requires_grad) for p in model.parameters()]


def condition(model=None) -> tuple:
    """What an interrupt must not change."""
    own = {k: v for k, v in vars(state).items() if k not in ("stack", "record", "casting")}
    own = {k: v for k, v in own.items() if v != getattr(type(state), k, object())}
    return (own, list(state.stack), list(state.record), {n: fast[n] for n in COUNTERS}, off.copy(),
            pullback.is_grad_enabled(), pullback.is_inference_mode_enabled(),
            pullback.is_autocast_enabled(), pullback.aot.config.to_dict(),
            parts(model) if model is not None else None)


class Steps:
    """Counts instructions of the package and raises at one of them."""

    def __init__(self, at=None):
        self.at, self.count = at, 0
        self.seen, self.near, self.last = set(), [], False

    def trace(self, frame, event, arg):
        if not frame.f_code.co_filename.startswith((PACKAGE, "<pullback")):
            return None
        if frame.f_code.co_name in ("_lost", "lost", "put_back", "interrupted"):
            return None  # the answer to one interrupt; nobody is safe from a second
        if frame.f_code.co_name == "__del__":
            return None  # Python itself ignores what is raised there
        if frame.f_code in (count.__code__, tick.__code__):
            return None  # a lock of Python's: it looks for signals before and after it only
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self.step

    def step(self, frame, event, arg):
        if event == "opcode":
            self.count += 1
            if self.count == self.at:
                raise KeyboardInterrupt
            if self.at is None:
                self.look(frame.f_code, frame.f_lasti)
        return self.step

    def look(self, code, place) -> None:
        """Note the instructions where blocks begin and end, and the one after these, once each."""
        inside = code.co_name in ENDS
        if (inside or self.last) and (code, place) not in self.seen:
            self.seen.add((code, place))
            self.near.append(self.count)
        self.last = inside


def run(work, at=None) -> int:
    """How many instructions ran; interrupted at one of them if that is given."""
    return traced(work, at).count


def traced(work, at=None) -> Steps:
    steps = Steps(at)
    before = sys.gettrace()
    sys.settrace(steps.trace)
    try:
        work()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return steps
