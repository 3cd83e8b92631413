"""The engine under load: memory, threads, sweeps inside of sweeps, long graphs, errors."""

import gc
import threading
import tracemalloc
import weakref

import pytest

import pullback as torch
from pullback.autograd import backward, grad
from pullback.autograd.graph import register_multi_grad_hook
from pullback.threads.state import fast, state
from tests.helpers.garbage import uncollected


def leaf(*values):
    return torch.tensor(list(values) if len(values) > 1 else values[0], requires_grad=True)


# options


def test_backward_of_several():
    x, y = leaf(2.0), torch.ones(2, requires_grad=True)
    backward([x * x, y * 3], [None, torch.tensor([1.0, 2.0])])
    assert x.grad == 4 and y.grad.tolist() == [3, 6]
    with pytest.raises(RuntimeError, match="element 1 of tensors"):
        backward([x * x, torch.ones(())])
    with pytest.raises(RuntimeError, match="cannot be empty"):
        (x * x).backward(inputs=[])


def test_backward_inputs_leave_the_others_alone():
    x, y = leaf(2.0), leaf(3.0)
    (x * y).backward(inputs=[x])
    assert x.grad == 3 and y.grad is None
    (x * 2).backward(inputs=y)  # unused: nothing happens
    assert y.grad is None


def test_one_input_twice():
    x = leaf(1.0, 1.0)
    assert [g.tolist() for g in grad((x * 2).sum(), [x, x])] == [[2, 2], [2, 2]]


def test_output_is_input():
    x = leaf(1.0, 1.0)
    assert grad(x, x, torch.tensor([3.0, 4.0]))[0].tolist() == [3, 4]
    y = x * 2
    assert grad([y, y], y, [torch.ones(2), torch.ones(2)])[0].tolist() == [2, 2]


def test_materialized_zeros():
    x, y = leaf(1.0, 2.0), torch.ones(3, requires_grad=True)
    gx, gy = grad((x * 2).sum(), [x, y], materialize_grads=True)
    assert gx.tolist() == [2, 2] and gy.tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="allow_unused"):
        grad((x * 2).sum(), [x, y], allow_unused=False, materialize_grads=True)


def test_batched_gradients():
    x = leaf(1.0, 2.0, 3.0)
    y = x * x
    (jacobian,) = grad(y, x, torch.eye(3), is_grads_batched=True)
    assert jacobian.tolist() == [[2, 0, 0], [0, 4, 0], [0, 0, 6]]
    with pytest.raises(RuntimeError, match="second time"):
        grad(y, x, torch.eye(3), is_grads_batched=True)
    with pytest.raises(RuntimeError, match="needs all grad_outputs"):
        grad(x * x, x, is_grads_batched=True)
    (g,) = grad(x * x * x, x, torch.eye(3), is_grads_batched=True, create_graph=True)
    assert grad(g.sum(), x)[0].tolist() == [6, 12, 18]


def test_gradients_are_added_in_the_order_of_arrival():
    """In float32 the order shows: the newest term comes first."""
    x = leaf(1.0)
    small, big, minus = x * 1.0, x * 1e8, x * -1e8
    (small + big + minus).backward()
    assert x.grad == 1.0  # (-1e8 + 1e8) + 1
    x.grad = None
    minus, small, big = x * -1e8, x * 1.0, x * 1e8
    (small + big + minus).backward()
    assert x.grad == 0.0  # (1e8 + 1) - 1e8


# memory


def test_memory_is_freed_as_the_sweep_goes():
    size = 200_000
    x = torch.ones(size, requires_grad=True)
    y = x
    for _ in range(20):
        y = y.sin()
    loss = y.sum()
    del y
    tracemalloc.start()
    try:
        start = tracemalloc.get_traced_memory()[0]
        loss.backward()
        assert tracemalloc.get_traced_memory()[1] - start < 3.5 * size * 4
    finally:
        tracemalloc.stop()


def test_saved_tensors_are_gone_before_older_nodes_run():
    x = torch.ones(3, requires_grad=True)
    kept, alive = [], []
    y = x
    for _ in range(4):
        factor = torch.full((3,), 2.0)
        kept.append(weakref.ref(factor))
        y = y * factor
        y.register_hook(lambda g: alive.append(sum(r() is not None for r in kept)))
    del factor
    loss = y.sum()
    del y
    loss.backward()
    assert alive == [4, 3, 2, 1] and not any(r() for r in kept)


def test_gradients_are_gone_before_older_nodes_run():
    x = torch.ones(3, requires_grad=True)
    seen, alive = [], []
    y = x
    for _ in range(5):
        y = y * 2

        def hook(g):
            alive.append(sum(r() is not None for r in seen))
            seen.append(weakref.ref(g))

        y.register_hook(hook)
    y.sum().backward()
    assert max(alive) <= 1


def test_no_circles_without_create_graph():
    gc.collect()
    with uncollected():
        x = torch.ones(3, requires_grad=True)
        y = (x.exp() * x).tanh().sum()
        ref = weakref.ref(y.grad_fn)
        y.backward()
        del y
        assert ref() is None
        (g,) = grad((x**3).sum(), x, create_graph=True)
        ref = weakref.ref(g.grad_fn)
        g.sum().backward()
        del g
        assert ref() is None


def test_create_graph_does_not_leak():
    """The circle of a leaf and its gradient is one that Python's collector sees."""
    refs = []
    for _ in range(5):
        x = torch.ones(3, requires_grad=True)
        (x**3).sum().backward(create_graph=True)
        refs += [weakref.ref(x), weakref.ref(x.grad), weakref.ref(x.grad.grad_fn)]
        del x
    gc.collect()
    assert not any(r() is not None for r in refs)


# errors


@pytest.fixture
def off():
    """The blocks without recording that there are; calls of set_grad_enabled count, too."""
    return fast["GRADOFF"].copy()


def test_an_error_leaves_gradients_alone_and_frees_the_graph(off):
    x, w = leaf(1.0), leaf(1.0)
    y = x * 2

    def fail(g):
        raise KeyError("stop")

    y.register_hook(fail)
    z = y * w
    ref = weakref.ref(z.grad_fn)
    with pytest.raises(KeyError, match="stop"):
        z.backward()
    assert x.grad is None
    del z, y
    gc.collect()
    assert ref() is None
    assert state.task is None and state.record == [True] and fast["GRADOFF"] == off
    (x * w).backward()
    assert x.grad == 1


def test_an_error_after_a_leaf_was_reached():
    """With hooks on leaves, what was complete before has arrived."""
    a, b = leaf(1.0), leaf(1.0)
    with b.register_hook(lambda g: None):
        m = a * 2
        m.register_hook(lambda g: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            (m * b).backward()
    assert b.grad == 2 and a.grad is None


# sweeps inside of sweeps


def test_backward_inside_of_a_hook():
    x, w = leaf(2.0), leaf(3.0)
    y = x * x

    def hook(g):
        with torch.enable_grad():
            (w * w * g.detach()).backward()
        assert not torch.is_grad_enabled()

    y.register_hook(hook)
    (y * 5).backward()
    assert x.grad == 20 and w.grad == 30


def test_backward_of_the_same_leaf_inside_of_a_hook():
    x = leaf(2.0)
    y = x * x

    def hook(g):
        with torch.enable_grad():
            (x * 100).backward()

    y.register_hook(hook)
    y.backward()
    assert x.grad == 104


def test_grad_inside_of_a_hook_with_create_graph():
    x = leaf(2.0)
    y = x * x * x

    def hook(g):
        (inner,) = grad(x * x, x, create_graph=True)
        return g * inner

    y.register_hook(hook)
    (g,) = grad(y, x, create_graph=True)  # 2x * 3x^2
    assert g == 48 and grad(g, x)[0] == 72


def test_many_sweeps_inside_of_one_another():
    depths = []

    def go(k):
        t = leaf(1.0)
        u = t * 2

        def hook(g):
            depths.append(state.task.depth)
            if k:
                with torch.enable_grad():
                    go(k - 1)

        u.register_hook(hook)
        u.backward()
        assert t.grad == 2

    go(300)
    assert depths == list(range(301)) and state.task is None


def test_an_error_many_sweeps_deep_arrives(off):
    def go(k):
        u = leaf(1.0) * 2

        def hook(g):
            if not k:
                raise KeyError("deep")
            with torch.enable_grad():
                go(k - 1)

        u.register_hook(hook)
        u.backward()

    with pytest.raises(KeyError, match="deep"):
        go(100)
    assert state.task is None and state.record == [True] and fast["GRADOFF"] == off


# threads


def in_threads(count, work):
    errors = []

    def guarded(k):
        try:
            work(k)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(k,)) for k in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert errors == []


def test_sums_of_many_threads():
    shared = torch.zeros(2000, requires_grad=True)  # long enough for NumPy to release the lock
    single = torch.zeros((), requires_grad=True)

    def work(k):
        for _ in range(1000):
            ((shared * (k + 1.0)).sum() + single).backward()

    in_threads(8, work)
    assert shared.grad.min() == shared.grad.max() == 36_000 and single.grad == 8000


def test_threads_share_a_graph():
    x = torch.ones(100, requires_grad=True)
    y = (x.exp() * x).sum()
    in_threads(8, lambda k: [y.backward(retain_graph=True) for _ in range(50)])
    assert torch.allclose(x.grad, 400 * 2 * torch.ones(100).exp(), rtol=1e-4)


def test_grad_modes_are_those_of_the_thread(off):
    x = torch.ones(3, requires_grad=True)
    barrier = threading.Barrier(4)

    def work(k):
        for i in range(100):
            barrier.wait()
            with torch.set_grad_enabled(bool((k + i) % 2)):
                assert (x * 2).requires_grad == bool((k + i) % 2)
                assert x.sum().requires_grad == bool((k + i) % 2)
            assert (x * 2).requires_grad

    in_threads(4, work)
    assert fast["GRADOFF"] == off


def test_transforms_in_one_thread_backward_in_another():
    x = torch.ones(5, requires_grad=True)

    def work(k):
        for _ in range(30):
            if k % 2:
                (x * 2).sum().backward()
            else:
                assert torch.func.grad(lambda v: (v * v).sum())(torch.ones(2)).tolist() == [2, 2]

    in_threads(4, work)
    assert x.grad.tolist() == [120] * 5


def test_multi_grad_hooks_in_threads():
    a, b = leaf(1.0), leaf(1.0)
    seen = []
    with register_multi_grad_hook((a, b), lambda gs: seen.append([g.item() for g in gs])):
        in_threads(4, lambda k: [(a * b * (k + 1.0)).backward() for _ in range(20)])
    assert sorted(map(tuple, seen)) == [(k, k) for k in (1, 2, 3, 4) for _ in range(20)]


# long graphs


def test_a_long_graph_is_freed_without_recursion():
    x = leaf(1.0)
    double = lambda y: torch.stack([y, y]).sum()
    for step in (lambda y: y + 1, lambda y: y * y, lambda y: y.sin(), double):
        y = step(x)
        ref = weakref.ref(y.grad_fn)
        for _ in range(20_000):
            y = step(y)
        del y
        assert ref() is None


@pytest.mark.slow
def test_hundreds_of_thousands_of_nodes():
    x = leaf(1.0)
    y = x
    for _ in range(300_000):
        y = y + 1
    ref = weakref.ref(y.grad_fn)
    y.backward()
    assert x.grad == 1
    del y
    assert ref() is None


@pytest.mark.slow
def test_many_nodes_to_an_inner_tensor():
    x = leaf(1.0)
    middle = x * 2
    y = middle
    for _ in range(100_000):
        y = y + 1
    with x.register_hook(lambda g: g * 3):
        assert [g.item() for g in grad(y, [middle, x])] == [1, 6]
