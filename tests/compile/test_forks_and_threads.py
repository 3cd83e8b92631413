"""Processes that are forked while other threads compute, and many threads at once.

Nothing here may wait for ever: children are ended by an alarm, and threads are joined with a limit.
"""

import multiprocessing
import os
import signal
import threading

import numpy as np
import pytest

import pullback as torch
from pullback import func
from pullback.array.generator import default_generator
from pullback.compile import native
from pullback.table import catalog

LIMIT = 60  # seconds
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def child(work) -> int:
    """How a forked process ends that does some work: 0 if that was true, 1 if not, or a signal."""
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(LIMIT)
        code = 3
        try:
            code = 0 if work() else 1
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1]


def together(*works) -> None:
    """Run functions in threads, and raise what they raise."""
    wrong, begin = [], threading.Barrier(len(works))

    def run(work):
        try:
            begin.wait(LIMIT)
            work()
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=run, args=(w,), daemon=True) for w in works]
    for t in threads:
        t.start()
    for t in threads:
        t.join(LIMIT)
    assert not any(t.is_alive() for t in threads), "a thread waits for ever"
    if wrong:
        raise wrong[0]


def network():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))


X = torch.linspace(-1, 1, 32).reshape(4, 8)


@forks
def test_a_fork_with_a_running_pool():
    x = torch.linspace(0, 1, 200_000)
    f = torch.compile(lambda x: (x.exp() * 2).sin() + 1)
    before = native.get_num_threads()
    native.set_num_threads(2)
    try:
        want = f(x)
        assert child(lambda: all(torch.equal(f(x), want) for _ in range(3))) == 0
        assert torch.equal(f(x), want)
    finally:
        native.set_num_threads(before)


@forks
def test_a_child_compiles_the_same_function_anew():
    model = network()
    want = model(X).detach()
    made = torch.compile(model)
    made(X)
    fresh = torch.compile(lambda x: model(x) * 3)

    def work():
        made(X).sum().backward()
        return torch.allclose(made(X), want) and torch.allclose(fresh(X), want * 3)

    assert child(work) == 0
    assert all(p.grad is None for p in model.parameters())
    work()


@forks
def test_a_fork_while_another_thread_captures():
    """The child's parameters are numbers, not what the other thread's capture had put there."""
    model, inside, forked = network(), threading.Event(), threading.Event()
    want = model(X).detach()

    def slow(x):
        out = model(x)
        inside.set()
        forked.wait(0.3)  # the fork has to wait for the capture
        return out * 2

    t = threading.Thread(target=lambda: torch.compile(slow)(X), daemon=True)
    t.start()
    assert inside.wait(LIMIT)
    code = child(lambda: torch.equal(model(X).detach(), want)
                 and torch.allclose(torch.compile(lambda x: model(x) * 2)(X), want * 2))
    forked.set()
    t.join(LIMIT)
    assert not t.is_alive() and code == 0
    assert torch.equal(model(X).detach(), want)


LOCKS = {"generator": lambda: default_generator.lock, "catalog": lambda: catalog._sorting,
         "gradients": lambda: torch.autograd.engine._adding}


@forks
@pytest.mark.parametrize("name", list(LOCKS))
def test_locks_of_other_threads_end_with_them(name):
    lock, held, done = LOCKS[name](), threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            done.wait(LIMIT)

    t = threading.Thread(target=hold, daemon=True)
    t.start()
    assert held.wait(LIMIT)
    code = child(lambda: lock.acquire(timeout=1) and torch.rand(2).shape == (2,))
    done.set()
    t.join(LIMIT)
    assert code == 0


def _in_a_process(queue, function, x):
    queue.put(float(torch.compile(function)(x).sum()))


def _cube(x):
    return x * x * x


@forks
def test_processes_of_multiprocessing():
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    want = float(torch.compile(_cube)(X).sum())
    children = [context.Process(target=_in_a_process, args=(queue, _cube, X)) for _ in range(3)]
    for p in children:
        p.start()
    try:
        assert [queue.get(timeout=LIMIT) for _ in children] == [want] * 3
    finally:
        for p in children:
            p.join(LIMIT)
            p.kill()
    assert [p.exitcode for p in children] == [0, 0, 0]


def test_threads_compile_one_function():
    model = network()
    want = model(X).detach().numpy()
    f = torch.compile(lambda x: model(x))

    def work():
        for _ in range(5):
            np.testing.assert_allclose(f(X).detach().numpy(), want, rtol=1e-5, atol=1e-6)

    together(*[work] * 8)


def test_threads_compile_functions_of_their_own():
    model = network()
    want = model(X).detach().numpy()

    def work(k):
        f = torch.compile(lambda x: model(x) * float(k))
        for _ in range(3):
            np.testing.assert_allclose(f(X).detach().numpy(), want * k, rtol=1e-5, atol=1e-5)

    together(*[lambda k=k: work(k) for k in range(8)])


def test_threads_have_grad_modes_of_their_own():
    w = torch.ones(3, requires_grad=True)
    f = torch.compile(lambda x: (x * w).exp())
    x = torch.linspace(0, 1, 3)

    def without():
        for _ in range(10):
            with torch.no_grad():
                assert not f(x).requires_grad and not torch.is_grad_enabled()

    def inference():
        for _ in range(10):
            with torch.inference_mode():
                assert f(x).is_inference()

    def within():
        for _ in range(10):
            y = f(x)
            assert y.requires_grad and torch.is_grad_enabled()
            (g,) = torch.autograd.grad(y.sum(), w)
            np.testing.assert_allclose(g.numpy(), (x * x.exp()).numpy(), rtol=1e-5)

    together(without, within, inference, within, without, within, inference, within)


def test_transforms_beside_training():
    def transforms():
        for _ in range(10):
            got = func.vmap(func.grad(lambda x: (x ** 3).sum()))(X)
            np.testing.assert_allclose(got.numpy(), 3 * X.numpy() ** 2, rtol=1e-5)

    def training():
        model = torch.nn.Linear(8, 1, bias=False)
        with torch.no_grad():
            model.weight.zero_()
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
        target = X.sum(1, keepdim=True)
        for _ in range(20):
            optimiser.zero_grad()
            ((model(X) - target) ** 2).mean().backward()
            optimiser.step()
        results.append(model.weight.detach().numpy().copy())

    results: list = []
    training()
    together(transforms, training, transforms, training, transforms, training)
    assert len(results) == 4
    for r in results[1:]:
        np.testing.assert_array_equal(r, results[0])


def test_the_number_of_threads_changes_under_calls():
    x = torch.linspace(-1, 1, 120_000)
    f = torch.compile(lambda x: (x.exp() * 2).sin().sum() + x)
    want, before = f(x), native.get_num_threads()

    def calls():
        for _ in range(20):
            assert torch.equal(f(x), want)

    def changes():
        for k in range(60):
            native.set_num_threads(1 + k % 3)

    try:
        together(calls, changes, calls)
    finally:
        native.set_num_threads(before)
