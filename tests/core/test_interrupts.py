"""An interrupt between any two steps of the interpreter leaves the state as it was.

The n-th instruction that runs inside of the package raises KeyboardInterrupt, for every n or a
choice of them; afterwards the state of the thread and the counters are what they were before.
"""

import os
import sys

import pytest

import pullback as torch
from pullback import func
from pullback.core.state import count, fast, off, state, tick
from pullback.fx.make_fx import make_fx

PACKAGE = torch.__path__[0]
POINTS = int(os.environ.get("PULLBACK_INTERRUPTS", "20"))  # at least, of a program; more if short
COUNTERS = ("ACTIVE", "WATCHED", "DISPATCHES", "LEAFHOOKS")


def parts() -> list:
    """The hooks and the memory of the modules of the programs."""
    return [{k: dict(v) if "hooks" in k else list(v) for k, v in vars(m).items()
             if isinstance(v, dict)} for m in MODEL.modules()] + [
        (type(p._data), p._edge is None, p.requires_grad) for p in MODEL.parameters()]


def condition() -> tuple:
    """What an interrupt must not change."""
    own = {k: v for k, v in vars(state).items() if k not in ("stack", "record", "casting")}
    own = {k: v for k, v in own.items() if v != getattr(type(state), k, object())}
    return (own, list(state.stack), list(state.record), {n: fast[n] for n in COUNTERS}, off.copy(),
            torch.is_grad_enabled(), torch.is_inference_mode_enabled(),
            torch.is_autocast_enabled(), torch.aot.config.to_dict(), parts())


class Steps:
    """Counts instructions of the package and raises at one of them."""

    def __init__(self, at=None):
        self.at, self.count = at, 0

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
        return self.step


def run(work, at=None) -> int:
    """How many instructions ran; interrupted at one of them if that is given."""
    steps = Steps(at)
    before = sys.gettrace()
    sys.settrace(steps.trace)
    try:
        work()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return steps.count


def grad_off():
    with torch.no_grad(), torch.enable_grad():
        pass


def by_decorator():
    torch.no_grad()(lambda: None)()


def inference():
    with torch.inference_mode(), torch.inference_mode(False):
        pass


def suspended():
    def numbers():
        with torch.no_grad():
            yield 1

    with torch.no_grad():
        list(numbers())


def backward():
    x = torch.ones(2, requires_grad=True)
    (x * x).sum().backward()


def hooks():
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        pass


def device():
    with torch.device("meta"):
        pass


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


X = torch.ones(2)
WEIGHTS = [torch.ones(2, requires_grad=True) for _ in range(2)]
for w in WEIGHTS:
    w.grad = torch.ones(2)
SGD = torch.optim.SGD(WEIGHTS, lr=0.1, momentum=0.9)
MODEL = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
ADAM = torch.optim.Adam(WEIGHTS, lr=0.1)

PROGRAMS = {
    "no_grad": grad_off,
    "decorator": by_decorator,
    "inference_mode": inference,
    "generator": suspended,
    "backward": backward,
    "saved hooks": hooks,
    "device": device,
    "sgd": SGD.step,
    "adam": ADAM.step,
    "vmap": lambda: func.vmap(lambda x: x * 2)(X),
    "grad": lambda: func.grad(lambda x: (x * x).sum())(X),
    "vjp": lambda: func.vjp(lambda x: x * x, X)[1](X),
    "jvp": lambda: func.jvp(lambda x: x * x, (X,), (X,)),
    "hessian": lambda: func.hessian(lambda x: (x * x * x).sum())(X),
    "jacrev": lambda: func.jacrev(lambda x: x * x)(X),
    "functional": lambda: torch.autograd.functional.jvp(lambda x: x * x, X, X),
    "Function": lambda: Double.apply(WEIGHTS[0]),
    "checkpoint": lambda: torch.utils.checkpoint.checkpoint(
        lambda x: x.sin(), WEIGHTS[0], use_reentrant=False),
    "functionalize": lambda: func.functionalize(lambda x: x.clone().mul_(2))(X),
    "make_fx": lambda: make_fx(MODEL, record_module_stack=True)(X),
    "export": lambda: torch.export.export(MODEL, (X,)),
    "compile": lambda: torch.compile(MODEL, backend="numpy")(X),
}


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_interrupts_leave_the_state_as_it_was(name):
    work = PROGRAMS[name]
    for _ in range(30):
        work()  # everything is imported, and plans are made
    run(work)
    before, total = condition(), run(work)
    chosen = range(1, total + 1, max(1, total // max(POINTS, 150_000 // total)))
    broken = []
    for at in chosen:
        run(work, at)
        if condition() != before:
            broken.append((at, condition()))
            break
    assert total > 20 and not broken, (total, before, broken)
    work()


def test_blocks_by_hand_and_in_stacks():
    """`__enter__` and `__exit__` are called by others than `with`, too."""
    import contextlib

    switch = torch.no_grad()
    for _ in range(2):
        switch.__enter__()
        assert not torch.is_grad_enabled()
        switch.__enter__()
        switch.__exit__(None, None, None)
        assert not torch.is_grad_enabled()
        switch.__exit__(None, None, None)
        assert torch.is_grad_enabled() and hasattr(switch, "__exit__")
    with switch, switch:
        with switch:
            pass
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        stack.enter_context(torch.inference_mode())
        assert torch.is_inference_mode_enabled()
    assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
    assert callable(torch.no_grad().__exit__)


def test_blocks_that_end_out_of_order():
    def block():
        with torch.no_grad():
            yield torch.is_grad_enabled()

    first, second = block(), block()
    assert next(first) is False and next(second) is False
    first.close()
    second.close()
    torch.set_grad_enabled(True)
    assert torch.is_grad_enabled()
