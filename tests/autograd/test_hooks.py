"""Hooks of tensors and of nodes: order, replacement, removal, leaves, writes in place."""

import gc
import weakref

import pytest

import pullback as torch
from pullback.autograd import grad
from pullback.func import grad as func_grad
from pullback.func import vmap
from pullback.threads.state import fast
from pullback.utils.hooks import RemovableHandle


def leaf(*values):
    return torch.tensor(list(values) if len(values) > 1 else values[0], requires_grad=True)


# tensors


def test_hooks_run_in_order_and_replace():
    x = leaf(1.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(g.item()))
    (y * 3).backward()
    assert seen == [3, 30] and x.grad == 60


def test_handle():
    x = leaf(1.0)
    handle = x.register_hook(lambda g: g * 5)
    assert isinstance(handle, RemovableHandle) and isinstance(handle.id, int)
    with x.register_hook(lambda g: g * 7):
        (x * 1).backward()
    assert x.grad == 35
    handle.remove()
    handle.remove()  # a second time does nothing
    x.grad = None
    (x * 1).backward()
    assert x.grad == 1


def test_handles_have_different_numbers():
    x = leaf(1.0)
    first, second = x.register_hook(print), x.register_hook(print)
    assert first.id != second.id
    first.remove()
    second.remove()


def test_a_handle_does_not_keep_its_hook_alive():
    class Hook:
        def __call__(self, g):
            pass

    hook = Hook()
    ref = weakref.ref(hook)
    x = leaf(1.0)
    handle = (x * 2).register_hook(hook)
    del hook
    assert ref() is None
    handle.remove()


def test_hook_removed_while_running():
    x = leaf(1.0)
    calls = []

    def once(g):
        calls.append(g.item())
        handle.remove()

    handle = x.register_hook(once)
    (x * 2).backward()
    (x * 2).backward()
    assert calls == [2]


@pytest.mark.parametrize(
    ("hook", "kind", "text"),
    [
        (lambda g: g[:2], RuntimeError, "changed the size of value"),
        (lambda g: g.double(), RuntimeError, "changed the type of value"),
        (lambda g: 3, TypeError, "hook returned 'int'"),
    ],
)
def test_hook_must_return_a_gradient_like_it(hook, kind, text):
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    y.register_hook(hook)
    with pytest.raises(kind, match=text):
        y.sum().backward()


def test_no_hooks_without_grad():
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        torch.ones(1).register_hook(print)
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        torch.ones(1).register_post_accumulate_grad_hook(print)


def test_leaf_hooks_run_when_the_leaf_is_complete():
    """As PyTorch has it: b is done before the node below is run."""
    a, b = leaf(1.0), leaf(1.0)
    seen = []
    a.register_hook(lambda g: seen.append("a"))
    b.register_hook(lambda g: seen.append("b"))
    b.register_post_accumulate_grad_hook(lambda t: seen.append(("b has", t.grad.item())))
    m = a * 2
    m.register_hook(lambda g: seen.append("m"))
    n = m * b
    n.register_hook(lambda g: seen.append("n"))
    n.backward()
    assert seen == ["n", "b", ("b has", 2.0), "m", "a"]


def test_leaf_hook_sees_the_whole_sum_once():
    x = leaf(1.0)
    seen = []
    x.register_hook(lambda g: seen.append(g.item()))
    y = x * 2
    z = (y + x * 3) * x
    z.backward()
    assert seen == [10.0]  # z = 5 x^2


def test_leaf_hooks_survive_freezing():
    x = leaf(1.0)
    with x.register_hook(lambda g: g * 5):
        x.requires_grad_(False)
        x.requires_grad_(True)
        (x * 2).backward()
    assert x.grad == 10
    (x * 2).backward()
    assert x.grad == 12


def test_leaf_hooks_are_counted_while_they_exist():
    before = fast["LEAFHOOKS"]
    x = leaf(1.0)
    handles = [x.register_hook(print), x.register_post_accumulate_grad_hook(print)]
    assert fast["LEAFHOOKS"] == before + 2
    for h in handles:
        h.remove()
        h.remove()
    assert fast["LEAFHOOKS"] == before


def test_gradient_can_be_freed_in_a_post_accumulate_hook():
    """The step of an optimizer inside of backward."""
    x = leaf(1.0)

    def step(t):
        with torch.no_grad():
            t -= 0.1 * t.grad
        t.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 2).backward()
    assert x.grad is None and x.item() == pytest.approx(0.8)


def test_post_accumulate_hook_runs_for_backward_only():
    x = leaf(1.0)
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.item()))
    grad(x * 2, x)
    assert seen == []
    (x * 2).backward(inputs=[x])
    assert seen == [2]


def test_hooks_of_undefined_gradients_are_not_called():
    x = torch.ones(4, requires_grad=True)
    p, q = x.split(2)
    seen = []
    p.register_hook(lambda g: seen.append("p"))
    q.register_hook(lambda g: seen.append("q"))
    p.sum().backward()
    assert seen == ["p"] and x.grad.tolist() == [1, 1, 0, 0]


# gradients that stay


def test_retained_gradient_comes_after_all_hooks():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    (y * 3).backward()
    assert y.grad == 30 and y.retains_grad and x.grad == 60


def test_retained_gradient_is_a_copy():
    x = torch.ones(3, requires_grad=True)
    y = x + 1
    z = y + 1
    y.retain_grad()
    z.retain_grad()
    z.sum().backward()
    y.grad.mul_(7)
    assert z.grad.tolist() == [1, 1, 1] and x.grad.tolist() == [1, 1, 1]


def test_backward_with_inputs_retains():
    x = leaf(2.0)
    y = x * x
    (y * 3).backward(inputs=[y])
    assert y.grad == 3 and y.retains_grad and x.grad is None


def test_retained_gradient_follows_a_write():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.retain_grad()
    seen = []
    y.register_hook(lambda g: seen.append(("before", g.tolist())))
    y.mul_(5)
    y.register_hook(lambda g: seen.append(("after", g.tolist())))
    y.sum().backward()
    assert y.grad.tolist() == [1, 1]  # of what y is now
    assert seen == [("after", [1, 1]), ("before", [5, 5])]  # hooks stay where they were put
    assert x.grad.tolist() == [10, 10]


def test_retained_gradients_of_base_and_view_follow_a_write():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.retain_grad()
    v = y[0]
    v.retain_grad()
    v.mul_(5)
    (y.sum() + v).backward()
    assert y.grad.tolist() == [2, 1] and v.grad == 1 and x.grad.tolist() == [20, 2]


def test_retained_gradient_of_a_view_follows_a_write_to_its_base():
    x = leaf(1.0, 2.0)
    y = x * 2
    v = y[0]
    v.retain_grad()
    y.mul_(5)
    (y.sum() + v * 2).backward()
    assert v.grad == 2 and x.grad.tolist() == [30, 10]


@pytest.mark.parametrize("write, expected", [
    (lambda v: v.mul_(3), [3, 3, 1]), (lambda v: v[:1].mul_(3), [3, 1, 1]),
    (lambda v: v.mul_(v.sum()), [22, 22, 1])])  # 2 around the view, 2 * 10 through it
def test_hooks_of_a_view_have_no_part_in_what_is_written_to_it_later(write, expected):
    def f(x):
        base = x.clone()
        view = base[:2]
        view.register_hook(lambda g: g * 10)
        write(view)
        return base * 1

    for run in (f, torch.compile(f)):
        x = leaf(1.0, 1.0, 1.0)
        run(x).sum().backward()
        assert x.grad.tolist() == expected


def test_retained_gradient_follows_a_transposition_in_place():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = x * 2
    y.retain_grad()
    y.t_()
    (y * torch.arange(6.0).reshape(3, 2)).sum().backward()
    assert tuple(y.grad.shape) == (3, 2) and y.grad[2, 1] == 5


# nodes


def test_node_hooks():
    x = leaf(1.0)
    y = x * 2
    seen = []
    y.retain_grad()
    y.grad_fn.register_prehook(lambda g: (g[0] * 2,))
    y.register_hook(lambda g: seen.append(("tensor", g.item())))
    y.grad_fn.register_hook(
        lambda inputs, outputs: seen.append((len(inputs), inputs[0].item(), outputs[0].item()))
    )
    (y * 3).backward()
    assert seen == [("tensor", 3), (2, 12, 6)]
    assert y.grad == 3 and x.grad == 12  # kept before the node's own hooks


def test_node_post_hook_replaces():
    x = leaf(1.0)
    y = x * 2
    with y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 10, None)):
        y.backward(retain_graph=True)
    assert x.grad == 20
    y.backward()
    assert x.grad == 22


@pytest.mark.parametrize(
    ("hook", "text"),
    [
        (lambda gi, go: gi + gi, "incorrect number of values"),
        (lambda gi, go: (gi[0], go[0]), "None gradient"),
    ],
)
def test_node_post_hook_must_fit(hook, text):
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    y.grad_fn.register_hook(hook)
    with pytest.raises(RuntimeError, match=text):
        y.sum().backward()


def test_hooks_of_the_accumulating_node():
    a = leaf(1.0)
    node = (a * 2).grad_fn.next_functions[0][0]
    seen = []
    handles = [
        node.register_hook(lambda gi, go: seen.append(("post", gi, go[0].item(), a.grad.item()))),
        node.register_prehook(lambda g: seen.append(("pre", g[0].item()))),
        a.register_post_accumulate_grad_hook(lambda t: seen.append("accumulated")),
        a.register_hook(lambda g: seen.append("tensor")),
    ]
    (a * 3).backward()
    assert seen == ["tensor", ("pre", 3), "accumulated", ("post", (), 3, 3)]
    seen.clear()
    assert grad(a * 3, a)[0] == 3 and seen == ["tensor"]
    for h in handles:
        h.remove()


def test_node_hooks_do_not_run_where_the_node_does_not():
    x = leaf(1.0)
    y = x * 2
    seen = []
    y.grad_fn.register_prehook(lambda g: seen.append("pre"))
    y.grad_fn.register_hook(lambda gi, go: seen.append("post"))
    y.register_hook(lambda g: seen.append("tensor"))
    x.register_hook(lambda g: seen.append("x"))
    grad(y * 3, y)
    assert seen == ["tensor"]


def test_prehook_gets_undefined_gradients_too():
    x = torch.ones(4, requires_grad=True)
    p, q = x.split(2)
    seen = []
    p.grad_fn.register_prehook(lambda g: seen.append([v is None for v in g]))
    q.sum().backward()
    assert seen == [[True, False]]


def test_captured_gradients_and_hooks():
    """What PyTorch does: after the hooks where the sweep ends, before them where it goes on."""
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    z = y * 3
    assert [g.item() for g in grad(z, [y], retain_graph=True)] == [30]
    assert [g.item() for g in grad(z, [y, x])] == [3, 60]


# elsewhere


def test_hooks_inside_of_transforms():
    seen = []

    def f(x):
        y = x * 2
        y.register_hook(lambda g: seen.append(g.shape) or g * 10)
        return (y * y).sum()

    x = torch.tensor([1.0, 2.0])
    assert func_grad(f)(x).tolist() == [80, 160]
    assert vmap(func_grad(f))(torch.ones(3, 2)).tolist() == [[80, 80]] * 3
    assert all(tuple(s) == (2,) for s in seen)


def test_hooks_with_create_graph():
    x = leaf(3.0)
    y = x * x
    y.register_hook(lambda g: g * x)
    (g,) = grad(y * 2, x, create_graph=True)  # 2 * x * 2x = 4 x^2
    assert g == 36 and grad(g, x)[0] == 24


def test_hooks_are_recorded_only_with_create_graph():
    x = leaf(1.0)
    modes = []
    y = x * 2
    y.register_hook(lambda g: modes.append(torch.is_grad_enabled()))
    y.backward(retain_graph=True)
    y.backward(create_graph=True)
    assert modes == [False, True]


def test_nodes_are_freed_with_their_hooks():
    x = leaf(1.0)
    y = x * 2
    y.register_hook(y.add)  # a circle: y -> node -> hook -> y
    ref = weakref.ref(y.grad_fn)
    del y
    gc.collect()
    assert ref() is None
