"""The engine: `backward` and `grad` with every option, accumulation, hooks, lifetime of graphs."""

import gc
import threading
import weakref

import numpy as np
import pytest

import pullback as torch
from pullback import errors

grad = torch.autograd.grad


def leaf(*values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype, requires_grad=True)


# what backward does


def test_backward_of_a_scalar():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    assert (x * y).sum().backward() is None
    assert x.grad.tolist() == [3, 4] and y.grad.tolist() == [1, 2]
    assert x.grad.dtype is torch.float64 and not x.grad.requires_grad


def test_backward_with_a_gradient():
    x = leaf(1.0, 2.0)
    (x * x).backward(torch.tensor([10.0, 100.0], dtype=torch.float64))
    assert x.grad.tolist() == [20, 400]
    x.grad = None
    (x * x).backward(gradient=torch.tensor([1.0, 1.0]))  # converted to the output's dtype
    assert x.grad.dtype is torch.float64 and x.grad.tolist() == [2, 4]


def test_backward_of_several_tensors():
    x = leaf(2.0)
    torch.autograd.backward([x * 3, x * x], [torch.ones(1), 10 * torch.ones(1)])
    assert x.grad.tolist() == [43]
    x.grad = None
    torch.autograd.backward((x * 3).sum())
    assert x.grad.tolist() == [3]


def test_gradients_accumulate():
    x = leaf(2.0)
    for expected in (3, 6, 9):
        (x * 3).sum().backward()
        assert x.grad.tolist() == [expected]
    first = x.grad
    (x * 3).sum().backward()
    assert x.grad is first  # in place, as optimizers expect
    x.grad.zero_()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3]


def test_implicit_gradient_only_for_scalars():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        (x * 2).backward()
    (x * 2)[:1].backward()  # one element will do
    assert x.grad.tolist() == [2, 0]
    z = torch.ones(1, dtype=torch.complex128, requires_grad=True)
    with pytest.raises(RuntimeError, match="real scalar"):
        (z * 2).backward()


def test_gradient_of_wrong_shape():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="shape"):
        (x * 2).backward(torch.ones(3))
    with pytest.raises(RuntimeError, match="shape"):
        grad(x * 2, x, torch.ones(()))
    with pytest.raises(RuntimeError):
        grad([x * 2, x * 3], x, [torch.ones(2)])
    assert x.grad is None


def test_no_graph():
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.ones(1).backward()
    with pytest.raises(RuntimeError, match="does not require grad"):
        grad(torch.ones(1) * 2, leaf(1.0))
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="does not require grad"):
        x.detach().sum().backward()
    with torch.no_grad():
        y = (x * 2).sum()
    with pytest.raises(RuntimeError, match="does not require grad"):
        y.backward()


def test_backward_of_a_leaf():
    x = leaf(1.0)
    x.backward(torch.tensor([5.0], dtype=torch.float64))
    assert x.grad.tolist() == [5]
    assert grad(x, x, torch.full((1,), 7.0))[0].tolist() == [7]


# graphs


def test_shared_subgraph_runs_once():
    calls = []
    x = leaf(3.0)
    shared = x * x
    shared.register_hook(lambda g: calls.append(g.item()))
    (shared * 2 + shared * 5).sum().backward()
    assert calls == [7] and x.grad.tolist() == [42]


def test_diamond_of_diamonds():
    """2^60 paths, 60 nodes."""
    x = leaf(1.0)
    y = x
    for _ in range(60):
        y = y + y
    y.backward()
    assert x.grad.item() == 2.0**60


def test_same_tensor_twice():
    x = leaf(3.0)
    (x * x).backward()
    assert x.grad.tolist() == [6]
    x.grad = None
    torch.stack([x, x, x]).sum().backward()
    assert x.grad.tolist() == [3]


def test_long_chain():
    """100,000 nodes: neither the sweep nor the release of the graph may recurse."""
    x = leaf(0.0)
    y = x
    for _ in range(50_000):
        y = y * 1.0
        y = y + 1.0
    y.backward()
    assert x.grad.tolist() == [1] and y.item() == 50_000
    del y
    y = x
    for _ in range(100_000):
        y = y + 1.0
    ref = weakref.ref(y.grad_fn)
    del y  # never swept
    gc.collect()
    assert ref() is None


def test_several_outputs_of_one_operator():
    x = torch.tensor([[3.0, 1.0, 2.0]], requires_grad=True)
    values, places = x.max(1)
    assert places.requires_grad is False and places.tolist() == [0]
    values.sum().backward()
    assert x.grad.tolist() == [[1, 0, 0]]
    b = (x * 2).unbind(1)[1]
    g, = grad((b * 5).sum(), x)  # the other outputs' gradients are undefined
    assert g.tolist() == [[0, 10, 0]]
    parts = (x * 2).split([1, 2], 1)
    g, = grad(parts[0].sum() + 3 * parts[1].sum(), x)
    assert g.tolist() == [[2, 6, 6]]


def test_integer_and_comparison_results_have_no_history():
    x = leaf(1.0, 2.0)
    assert not (x > 1).requires_grad and not x.argmax().requires_grad
    assert not x.long().requires_grad
    y = torch.where(x > 1, x * x, x)
    assert grad(y.sum(), x)[0].tolist() == [1, 4]


def test_projection_into_the_input():
    """Broadcasting is summed away, dtypes and real parts come back."""
    x = torch.ones(3, 1, requires_grad=True)
    y = torch.ones(4, dtype=torch.float64, requires_grad=True)
    z = torch.tensor(2.0, requires_grad=True)
    (x * y * z).sum().backward()
    assert x.grad.tolist() == [[8]] * 3 and x.grad.dtype is torch.float32
    assert y.grad.tolist() == [6] * 4 and y.grad.dtype is torch.float64
    assert z.grad.item() == 12 and z.grad.shape == ()
    r = leaf(2.0)
    c = torch.tensor([3 + 4j], dtype=torch.complex128, requires_grad=True)
    out = (r * c).abs().sum()
    gr, gc_ = grad(out, (r, c))
    assert gr.dtype is torch.float64 and gr.tolist() == [5]
    np.testing.assert_allclose(gc_.item(), 2 * (3 + 4j) / 5)


# options of grad


def test_grad_returns_and_leaves_grad_alone():
    x, y = leaf(2.0), leaf(3.0)
    gx, gy = grad((x * y).sum(), (x, y))
    assert (gx.item(), gy.item()) == (3, 2) and x.grad is None and y.grad is None
    single = grad((x * x).sum(), x)
    assert isinstance(single, tuple) and single[0].item() == 4


def test_grad_of_intermediates():
    x = leaf(2.0)
    y = x * x
    z = y * 3
    gx, gy, gz = grad(z.sum(), (x, y, z))
    assert (gx.item(), gy.item(), gz.item()) == (12, 3, 1)


def test_grad_stops_at_the_inputs():
    """Nodes beyond the wanted inputs are not run."""
    ran = []
    x = leaf(2.0)
    y = x * x
    y.grad_fn
    w = y * 1
    x.register_hook(lambda g: ran.append("x"))
    grad((w * 3).sum(), y)
    assert ran == []


def test_several_outputs():
    x = leaf(2.0)
    g, = grad([x * 3, x * x], x, [torch.tensor([1.0]), torch.tensor([10.0])])
    assert g.item() == 43
    g, = grad([(x * 3).sum(), (x * x).sum()], x)
    assert g.item() == 7


def test_unused_inputs():
    x, y = leaf(2.0), leaf(3.0)
    with pytest.raises(RuntimeError, match="not have been used in the graph"):
        grad((x * 2).sum(), (x, y))
    gx, gy = grad((x * 2).sum(), (x, y), allow_unused=True)
    assert gx.item() == 2 and gy is None
    gx, gy = grad((x * 2).sum(), (x, y), materialize_grads=True)
    assert gy.tolist() == [0] and gy.dtype is torch.float64
    with pytest.raises(ValueError, match="allow_unused"):
        grad((x * 2).sum(), y, allow_unused=False, materialize_grads=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        grad((x * 2).sum(), torch.ones(1))


def test_undefined_is_not_zero():
    x, y = leaf(1.0), leaf(1.0)
    z = x * 1
    out = torch.stack([z, y * 0]).sum()
    gx, gy = grad(out, (x, y), allow_unused=True)
    assert gx.item() == 1 and gy.tolist() == [0]
    detached = (z.detach() * y).sum()
    assert grad(detached, x, allow_unused=True) == (None,)
    assert grad((x.sign() * 3).sum(), x)[0].tolist() == [0]  # constant: zeros, not None


def test_retain_graph():
    x = leaf(3.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [18]
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    assert x.grad.tolist() == [18]


def test_freed_graph():
    x = leaf(3.0)
    y = x * x
    node = y.grad_fn
    assert node._saved_self is x
    y.backward()
    with pytest.raises(RuntimeError, match="second time") as caught:
        y.backward()
    assert "retain_graph=True" in str(caught.value)
    with pytest.raises(RuntimeError, match="second time"):
        node._saved_self
    z = x + 1  # addition saves nothing, so there is nothing to miss
    z.backward()
    z.backward()
    shared = x * x
    (shared * 1).backward()
    with pytest.raises(RuntimeError, match="second time"):
        (shared * 2).backward()


def test_create_graph():
    x = leaf(2.0)
    g, = grad((x**3).sum(), x, create_graph=True)
    assert g.requires_grad and g.item() == 12
    h, = grad(g.sum(), x, create_graph=True)
    t, = grad(h.sum(), x)
    assert h.item() == 12 and t.item() == 6 and not t.requires_grad
    plain, = grad((x**3).sum(), x)
    assert not plain.requires_grad


def test_double_backward_into_leaves():
    x, w = leaf(2.0), leaf(5.0)
    g, = grad((w * x * x).sum(), x, create_graph=True)  # 2 w x
    (g * g).sum().backward()  # 4 w^2 x^2
    assert x.grad.item() == 8 * 25 * 2 and w.grad.item() == 8 * 5 * 4


def test_backward_create_graph():
    x = leaf(3.0)
    (x**3).backward(create_graph=True)
    assert x.grad.requires_grad and x.grad.item() == 27
    g = x.grad
    x.grad = None
    g.backward()
    assert x.grad.item() == 18


def test_gradient_that_requires_grad():
    """d/dv of (J^T v) is J: forward mode by two reverse passes."""
    x, v = leaf(2.0, 3.0), leaf(1.0, 1.0)
    g, = grad(x * x, x, v, create_graph=True)
    assert grad(g, v, torch.tensor([10.0, 100.0]))[0].tolist() == [40, 600]


def test_inputs_of_backward():
    x, y = leaf(2.0), leaf(3.0)
    z = x * y
    (z * 2).backward(inputs=[x])
    assert x.grad.item() == 6 and y.grad is None
    z = x * y
    (z * 2).backward(inputs=(y, z))
    assert y.grad.item() == 4 and z.grad.item() == 2 and x.grad.item() == 6
    (x * y).backward(inputs=x)
    assert x.grad.item() == 9
    with pytest.raises(RuntimeError, match="cannot be empty"):
        (x * y).backward(inputs=[])


def test_batched_gradients():
    x = leaf(1.0, 2.0, 3.0)
    y = x * x
    rows, = grad(y, x, torch.eye(3, dtype=torch.float64), is_grads_batched=True)
    assert rows.tolist() == [[2, 0, 0], [0, 4, 0], [0, 0, 6]]


# memory


def test_leaves_do_not_share_gradients():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (x + y).backward(torch.ones(2))
    x.grad[0] = 100
    assert y.grad.tolist() == [1, 1]


def test_gradient_does_not_share_the_seed():
    x = leaf(1.0, 2.0)
    seed = torch.ones(2, dtype=torch.float64)
    (x + 0).backward(seed)
    seed[0] = 50
    assert x.grad.tolist() == [1, 1]
    x.grad[1] = 7
    assert seed.tolist() == [50, 1]
    y = leaf(1.0, 2.0)
    y.backward(seed)
    y.grad[0] = -1
    assert seed[0].item() == 50


def test_gradients_of_views_are_not_strided_views_of_each_other():
    x, y = leaf(1.0, 2.0), leaf(1.0, 2.0)
    torch.cat([x, y]).backward(torch.arange(4.0, dtype=torch.float64))
    assert x.grad.tolist() == [0, 1] and y.grad.tolist() == [2, 3]
    assert not np.shares_memory(x.grad.numpy(), y.grad.numpy())
    w = torch.ones(2, 3, requires_grad=True)
    w.T.backward(torch.arange(6.0).reshape(3, 2))
    assert w.grad.is_contiguous() and w.grad.tolist() == [[0, 2, 4], [1, 3, 5]]
    e = torch.ones(3, requires_grad=True)
    e.sum().backward()
    e.grad[0] = 5  # a sum's gradient is an expanded number: .grad must be real memory
    assert e.grad.tolist() == [5, 1, 1]


def test_saved_gradients_are_not_changed_by_accumulation():
    """A gradient that a hook kept must not change when more is accumulated."""
    kept = []
    x = leaf(1.0)
    x.register_hook(kept.append)
    (x * 2).sum().backward()
    (x * 3).sum().backward()
    assert [k.item() for k in kept] == [2, 3] and x.grad.item() == 5


def test_graph_is_released():
    x = leaf(1.0)
    y = x * 2
    big = y.exp()
    ref = weakref.ref(big.grad_fn)
    out = big.sum()
    out.backward()
    del big, y, out
    gc.collect()
    assert ref() is None


def test_gradients_in_a_cycle_are_collected():
    x = leaf(2.0)
    (x * x).backward(create_graph=True)
    ref = weakref.ref(x.grad.grad_fn)
    del x
    gc.collect()
    assert ref() is None


# versions


def test_version_error_names_both_lines():
    x = leaf(2.0)
    y = x * 1
    z = y * y  # saved here
    y.add_(1)  # written here
    with pytest.raises(RuntimeError) as caught:
        z.sum().backward()
    first = test_version_error_names_both_lines.__code__.co_firstlineno
    text = str(caught.value)
    assert f"test_engine.py:{first + 3}" in text and f"test_engine.py:{first + 4}" in text
    assert "`mul`" in text and "modified by an inplace operation" in text
    assert "is at version 1; expected version 0" in text
    assert x.grad is None


def test_failed_backward_leaves_gradients():
    x, y = leaf(2.0), leaf(1.0)
    x.grad = torch.ones(1, dtype=torch.float64)
    a = x * 1
    b = a * a
    a.zero_()
    with pytest.raises(RuntimeError):
        (b + y * 0).sum().backward()
    assert x.grad.tolist() == [1]
    assert torch.is_grad_enabled()
    assert (x * 2).requires_grad


# hooks


def test_tensor_hooks():
    x = leaf(2.0)
    seen = []
    y = x * 3
    handle = y.register_hook(lambda g: seen.append(("y", g.item())))
    y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: seen.append(("x", g.item())))
    (y * 2).backward()
    assert seen == [("y", 2), ("x", 60)] and x.grad.item() == 60
    handle.remove()
    (x * 3).backward()
    assert len(seen) == 3
    with pytest.raises(RuntimeError, match="require"):
        torch.ones(1).register_hook(print)


def test_hook_handle_is_a_context_manager():
    x = leaf(1.0)
    with x.register_hook(lambda g: g * 5):
        (x * 1).backward()
    (x * 1).backward()
    assert x.grad.item() == 6


def test_retain_grad():
    x = leaf(2.0)
    y = x * 3
    y.retain_grad()
    y.retain_grad()  # once is enough
    assert y.retains_grad and not x.retains_grad
    z = y * y
    z.backward(retain_graph=True)
    assert y.grad.item() == 12
    z.backward()
    assert y.grad.item() == 24
    w = x * 2
    assert not w.retains_grad
    w.backward()
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed"):
        assert w.grad is None
    with pytest.raises(RuntimeError, match="requires_grad=False"):
        torch.ones(1).retain_grad()


def test_a_gradient_with_a_history_and_its_leaf_are_warned_of_once(monkeypatch):
    monkeypatch.setattr(errors, "said", set())
    x = leaf(2.0)
    with pytest.warns(UserWarning, match="makes a reference cycle"):
        (x * x).backward(create_graph=True)
    (x * x).backward(create_graph=True)
    x.grad = None


def test_retain_grad_sees_other_hooks():
    x = leaf(2.0)
    y = x * 3
    y.register_hook(lambda g: g * 2)
    y.retain_grad()
    y.backward()
    assert y.grad.item() == 2


def test_post_accumulate_hook():
    x = leaf(2.0)
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append((t is x, t.grad.item())))
    (x * 3).backward()
    (x * 3).backward()
    assert seen == [(True, 3), (True, 6)]
    with pytest.raises(RuntimeError, match="non-leaf"):
        (x * 2).register_post_accumulate_grad_hook(print)


def test_hook_may_stop_the_sweep_by_raising():
    x = leaf(2.0)

    def refuse(g):
        raise ValueError("enough")

    y = x * 2
    y.register_hook(refuse)
    with pytest.raises(ValueError, match="enough"):
        (y * 1).backward()
    assert x.grad is None and torch.is_grad_enabled()


# nodes


def test_nodes_are_readable():
    x, y = leaf(2.0), leaf(3.0)
    z = x * y
    node = z.grad_fn
    assert node.name() == "MulBackward0" and "MulBackward0" in repr(node)
    (left, i), (right, j) = node.next_functions
    assert left.variable is x and right.variable is y and (i, j) == (0, 0)
    assert left.name().endswith("AccumulateGrad")
    assert node._saved_self is x and node._saved_other is y
    assert (z + 1).grad_fn.next_functions[0][0] is node
    only = (x.detach() * y).grad_fn
    assert only.next_functions[0][0] is None


def test_only_needed_values_are_saved():
    x, c = leaf(2.0), torch.ones(1, dtype=torch.float64)
    node = (x * c).grad_fn
    assert node._saved_other is c and node._saved_self is None
    assert not hasattr((x + c).grad_fn, "_saved_self")


# threads


def test_grad_mode_is_thread_local():
    inside, results = threading.Event(), {}
    leave = threading.Event()
    x = leaf(1.0)

    def other():
        with torch.no_grad():
            results["off"] = (x * 2).requires_grad
            inside.set()
            leave.wait(10)
        results["after"] = (x * 2).requires_grad

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(10)
    assert torch.is_grad_enabled() and (x * 2).requires_grad and x.exp().requires_grad
    leave.set()
    thread.join()
    assert results == {"off": False, "after": True}


def test_backward_in_threads():
    results = {}

    def work(n):
        x = leaf(float(n))
        y = x
        for _ in range(50):
            y = y * 1.0 + x
        y.backward()
        results[n] = x.grad.item()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == dict.fromkeys(range(8), 51.0)


def test_new_threads_start_with_recording_on():
    found = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: found.append((leaf(1.0) * 2).requires_grad))
        thread.start()
        thread.join()
    assert found == [True]
