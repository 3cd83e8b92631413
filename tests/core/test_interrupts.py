"""An interrupt between any two steps of the interpreter leaves the state as it was.

The n-th instruction that runs inside of the package raises KeyboardInterrupt, for every n or a
choice of them; afterwards the state of the thread and the counters are what they were before.
"""

import ast
import io
import itertools
import os
import pathlib
import types

import pytest

import pullback as torch
from pullback import func
from pullback.autograd import forward_ad, grad_mode
from pullback.fx.fake_mode import FakeTensorMode
from pullback.fx.make_fx import make_fx
from pullback.overrides import TorchFunctionMode
from pullback.threads.blocks import tied, tied_block
from pullback.threads.state import state
from pullback.utils._python_dispatch import (
    BaseTorchDispatchMode,
    _disable_current_modes,
    _pop_mode_temporarily,
    no_dispatch,
)
from tests.helpers.custom_functions import custom_function
from tests.helpers.interrupts import PACKAGE, condition, run, same_again, traced  # noqa: F401

# an interrupt inside of a finalizer reaches nobody; Python says that it was ignored
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

POINTS = int(os.environ.get("PULLBACK_INTERRUPTS", "20"))  # at least, of a program; more if short


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


class Sub(torch.Tensor):
    pass


class Asked(TorchFunctionMode):
    def __torch_function__(self, function, kinds, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


def modes():
    with BaseTorchDispatchMode():
        X + X
        for block in (_pop_mode_temporarily, _disable_current_modes, no_dispatch):
            with block():
                X + X


def function_modes():
    with Asked():
        torch.add(X, X)


def autocast():
    with torch.autocast("cpu"):
        torch.mm(SQUARE, SQUARE)
        X.clone().add_(1)


def duals():
    with forward_ad.dual_level():
        forward_ad.unpack_dual(forward_ad.make_dual(X, X) * X)


def fakes():
    with FakeTensorMode():
        torch.ones(2) + 1


def packed():
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        (WEIGHTS[0] * WEIGHTS[0]).sum().backward()
    with torch.autograd.graph.disable_saved_tensors_hooks("no"):
        pass


def stale():
    base = WEIGHTS[0] * 1
    view = base[1:]
    base.mul_(2)
    return view.grad_fn


Double = custom_function("Double", lambda x: x * 2, lambda grad: grad * 2)


X = torch.ones(2)
SQUARE = torch.ones(2, 2)
SUB = torch.ones(2).as_subclass(Sub)
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
    "modes": modes,
    "function modes": function_modes,
    "autocast": autocast,
    "duals": duals,
    "fakes": fakes,
    "packed": packed,
    "stale view": stale,
    "subclass": lambda: SUB + SUB,
    "save": lambda: torch.save(MODEL.state_dict(), io.BytesIO()),
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


def damage(work) -> tuple[int, tuple | None]:
    """How many instructions there are, and the first after which the state is another.

    Those where blocks begin and end are tried, all of them in short programs, and some others.
    """
    for _ in range(30):
        work()  # everything is imported, and plans are made
    before, steps = condition(MODEL), traced(work)
    total = steps.count
    evenly = range(1, total + 1, max(1, total // max(POINTS, 75_000 // total)))
    near = steps.near[:: 1 + len(steps.near) // max(POINTS, 2_000_000 // total)]
    for at in sorted({*near, *evenly}):
        run(work, at)
        if condition(MODEL) != before:
            return total, (at, before, condition(MODEL))
    return total, None


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_interrupts_leave_the_state_as_it_was(name):
    total, broken = damage(PROGRAMS[name])
    assert total > 20 and broken is None, (total, broken)
    PROGRAMS[name]()


PLANTED = """
import contextlib
from pullback.threads.state import count, state

class plain_block:
    def __enter__(self):
        self.before, state.record[-1] = state.record[-1], False
    def __exit__(self, *exc):
        state.record[-1] = self.before

@contextlib.contextmanager
def plain_generator():
    before, state.record[-1] = state.record[-1], False
    try:
        yield
    finally:
        state.record[-1] = before

def by_class():
    with plain_block():
        pass

def by_generator():
    with plain_generator():
        pass

def by_finally():
    count("ACTIVE", 1)
    try:
        state.inference = not state.inference
        state.inference = not state.inference
    finally:
        count("ACTIVE", -1)
"""
_planted: dict = {}
exec(compile(PLANTED, "<pullback planted>", "exec"), _planted)


@pytest.mark.parametrize("name", ["by_class", "by_generator", "by_finally"])
def test_blocks_written_plainly_are_caught(name):
    """What the package would do without its mechanism is found by this search."""
    total, broken = damage(_planted[name])
    assert total > 10 and broken is not None


@pytest.mark.parametrize("name", ["vmap", "grad", "jvp", "saved hooks", "device"])
def test_blocks_that_are_not_tied_are_caught(name, monkeypatch):
    """Without the tie of `__exit__` to the life of its method, the same programs do damage."""
    monkeypatch.setattr(tied, "__get__", lambda self, block, owner=None: (
        self.function if block is None else types.MethodType(self.function, block)))
    assert damage(PROGRAMS[name])[1] is not None


@pytest.mark.parametrize("name", ["no_grad", "generator", "inference_mode"])
def test_switches_that_are_not_tied_are_caught(name, monkeypatch):
    monkeypatch.setattr(grad_mode._Leave, "__get__", lambda self, switch, owner=None: (
        grad_mode._leave if switch is None else types.MethodType(grad_mode._leave, switch)))
    assert damage(PROGRAMS[name])[1] is not None


def changes_state(node: ast.AST) -> bool:
    """Does code store in the state of the thread, or count?"""
    for n in ast.walk(node):
        if isinstance(n, (ast.Attribute, ast.Subscript)) and isinstance(n.ctx, ast.Store) and (
                ast.unparse(n.value).split(".")[0] == "state"):
            return True
        if isinstance(n, ast.Call) and ast.unparse(n.func) == "count":
            return True
    return False


# these see to it in other ways: by `interrupted`, by `__del__`; handles of hooks are no blocks of
# the thread, and `nans` is for debugging
OTHERS = {"GraphTask", "Enabled", "RemovableHandle", "nans"}


def test_every_block_that_changes_the_state_is_tied():
    """Classes with `__exit__` by `tied`, generators by `tied_block`."""
    plain = []
    for path in pathlib.Path(PACKAGE).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and node.name not in OTHERS:
                ends = [f for f in node.body if getattr(f, "name", "") == "__exit__"]
                way = "tied"
            elif isinstance(node, ast.FunctionDef):
                ends, way = [node], "tied_block"
                if not any("contextmanager" in ast.unparse(d) for d in node.decorator_list):
                    continue
            else:
                continue
            if changes_state(node) and any(
                    way not in map(ast.unparse, f.decorator_list) for f in ends):
                plain.append(f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}")
    assert not plain


def test_blocks_of_generators():
    """An interrupt before `try`, and one where the generator waits, are made good at once."""
    @tied_block
    def block(work=lambda: None):
        state.switches.watched += 1
        work()
        try:
            yield state.switches.watched
        finally:
            state.switches.watched -= 1

    def interrupt():
        raise KeyboardInterrupt

    with block() as inside, block() as deeper:
        assert (inside, deeper, state.switches.watched) == (1, 2, 2)
    with pytest.raises(KeyboardInterrupt), block(interrupt):
        pass
    assert state.switches.watched == 0
    left = block()
    leave, entered = left.__exit__, left.__enter__()
    del leave  # the frame that runs the block is gone
    assert (entered, state.switches.watched) == (1, 0)
    by_hand = block()
    assert by_hand.__enter__() == 1
    by_hand.__exit__(None, None, None)
    assert state.switches.watched == 0


def test_calls_by_hand_are_one_end():
    """A call lets go of a bound method before it begins: that is no block that was lost."""
    class Block:
        ends = losses = 0

        def __enter__(self):
            pass

        @tied
        def __exit__(self, *exc):
            self.ends += 1

        def lost(self):
            self.losses += 1

    block = Block()
    block.__exit__(None, None, None)
    assert (block.ends, block.losses) == (1, 0)


def test_an_interrupt_puts_back_what_is_inside():
    """A `finally` that has not run to its end is made good by the block around it."""
    with pytest.raises(KeyboardInterrupt), torch.device("cpu"):
        state.switches.watched = 1
        raise KeyboardInterrupt
    assert state.switches.watched == 0
    with pytest.raises(ValueError), torch.device("cpu"):
        state.switches.watched = 1
        raise ValueError
    # as it was left: exceptions of programs have come to all ends
    assert state.switches.watched == 1


def test_a_call_that_sets_grad_mode_is_done_or_not():
    """`set_grad_enabled` acts when it is called, `with` or not: nothing but the mode may differ."""
    def work():
        with torch.set_grad_enabled(False):
            pass

    for _ in range(3):
        work()
    torch.set_grad_enabled(True)
    before, total, seen = condition(MODEL), run(work), []
    for at in range(1, total + 1):
        run(work, at)
        seen.append(torch.is_grad_enabled())
        torch.set_grad_enabled(True)
        assert condition(MODEL) == before
    assert seen[0] is seen[-1] is True
    changes = sum(a != b for a, b in itertools.pairwise(seen))
    assert changes <= 2  # one stretch, from the effect of the call to the beginning of the block


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
