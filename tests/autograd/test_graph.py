"""`autograd.graph`: nodes, edges, saved tensors that are packed, hooks of several tensors."""

import threading
import weakref

import pytest

import pullback as torch
from pullback.autograd import backward, grad
from pullback.autograd.graph import (
    GradientEdge,
    Node,
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    get_gradient_edge,
    increment_version,
    register_multi_grad_hook,
    save_on_cpu,
    saved_tensors_hooks,
)
from pullback.memory import views
from pullback.threads.state import fast, state
from tests.helpers.garbage import uncollected


def leaf(*values):
    return torch.tensor(list(values) if len(values) > 1 else values[0], requires_grad=True)


# nodes


def test_nodes_show_themselves():
    x = torch.ones(2, 3, requires_grad=True)
    y = x.sum(1, keepdim=True)
    node = y.grad_fn
    assert isinstance(node, Node) and node.name() == "SumBackward1"
    assert node._saved_dim == (1,) and node._saved_keepdim is True
    assert tuple(node._saved_self_sym_sizes) == (2, 3)
    assert {"_saved_dim", "_saved_keepdim", "_saved_self_sym_sizes"} <= set(dir(node))
    (below, number), = node.next_functions
    assert below.name() == "torch::autograd::AccumulateGrad" and below.variable is x and number == 0
    node.metadata["mine"] = 1
    assert y.grad_fn.metadata == {"mine": 1}
    assert node._sequence_nr() < (y * 2).grad_fn._sequence_nr()
    with pytest.raises(AttributeError):
        node._saved_other
    with pytest.raises(AttributeError):
        node.nothing


def test_views_have_the_nodes_of_their_operators():
    x = torch.ones(2, 3, requires_grad=True)
    z = (x * 1).view(3, 2).t()
    assert z.grad_fn.name() == "TBackward0"
    assert z.grad_fn.next_functions[0][0].name() == "ViewBackward0"
    y = x * 2
    v = y[0]
    before = v.grad_fn
    y.mul_(3)
    assert v.grad_fn is not before and v.grad_fn.name() == "AsStridedBackward0"
    v.mul_(2)
    assert y.grad_fn.name() == "torch::autograd::CopySlices"


def test_saved_values():
    x = leaf(1.0, 2.0)
    y = x * x
    z = y.exp()
    assert y.grad_fn._saved_self is x and y.grad_fn._saved_other is x
    again = z.grad_fn._saved_result
    assert again is not z and again.grad_fn is z.grad_fn and again.tolist() == z.tolist()
    z.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.grad_fn._saved_self
    assert (x * 2).grad_fn._saved_self is None  # nobody needs it


def test_raw_saved_tensors():
    x = leaf(1.0, 1.0)
    y = x * x
    raw = y.grad_fn._raw_saved_self
    shown = []
    raw.register_hooks(lambda t: shown.append(t.requires_grad) or 7, lambda kept: x * 10)
    y.grad_fn._raw_saved_other.register_hooks(lambda t: t * 3, lambda t: t)
    assert shown == [False]
    assert y.grad_fn._saved_self.tolist() == [10, 10] and y.grad_fn._saved_self.is_leaf
    with pytest.raises(RuntimeError, match="already been set"):
        raw.register_hooks(lambda t: t, lambda t: t)
    y.sum().backward()
    assert x.grad.tolist() == [13, 13]
    with pytest.raises(RuntimeError, match="freed"):
        raw.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="value None"):
        (x * 2).grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)


# edges


def test_gradient_edges():
    x = leaf(2.0)
    y = x * x
    z = y * 3
    edge = get_gradient_edge(y)
    assert edge.node is y.grad_fn and edge.output_nr == 0
    assert get_gradient_edge(x).node.name() == "torch::autograd::AccumulateGrad"
    assert grad(z, [edge], retain_graph=True)[0] == 3
    assert grad([edge], [x], retain_graph=True)[0] == 4
    assert grad(edge, x, torch.tensor(2.0), retain_graph=True)[0] == 8
    backward([edge], inputs=[get_gradient_edge(x)], retain_graph=True)
    assert x.grad == 4
    backward([z], inputs=[edge])
    assert not y.retains_grad and x.grad == 4
    with pytest.raises(RuntimeError, match="does not require gradients"):
        get_gradient_edge(torch.ones(1))


def test_gradient_edge_of_one_of_several_outputs():
    x = torch.arange(4.0, requires_grad=True)
    p, q = (x * x).split(2)
    edge = get_gradient_edge(q)
    assert edge.output_nr == 1
    assert grad(q.sum() * 2 + p.sum(), edge)[0].tolist() == [2, 2]


def test_gradient_edge_outlives_its_tensor():
    x = leaf(3.0)
    y = x * x
    edge = get_gradient_edge(y)
    ref = weakref.ref(y)
    z = y * 2
    del y
    assert ref() is None
    assert grad(z, edge)[0] == 2


def test_gradient_edge_made_by_hand():
    x = leaf(2.0)
    y = x * x
    edge = GradientEdge(y.grad_fn, 0)
    assert grad(y * 3, edge, retain_graph=True)[0] == 3
    with pytest.raises(RuntimeError, match="must be given"):
        grad(edge, x, retain_graph=True)
    assert grad(edge, x, torch.tensor(1.0))[0] == 4
    other = GradientEdge((x * 2).grad_fn, 0)
    with pytest.raises(RuntimeError, match="not have been used"):
        grad(x * 3, other)
    assert grad(x * 3, other, allow_unused=True) == (None,)


# saved tensors


def test_saved_tensors_hooks():
    x = leaf(5.0, 4.0)
    seen = []

    def pack(t):
        seen.append((t is x, t.requires_grad, t.grad_fn is not None, torch.is_grad_enabled()))
        return len(seen), t

    def unpack(kept):
        seen.append(kept[0])
        return kept[1]

    with saved_tensors_hooks(pack, unpack):
        y = x * x
        z = y.exp()
    assert seen == [(True, True, False, False)] * 2 + [(False, True, True, False)]
    seen.clear()
    z.sum().backward()
    assert sorted(seen) == [1, 2, 3]
    assert torch.allclose(x.grad, 2 * x.detach() * (x.detach() ** 2).exp())


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (x.sin() * x).sum(),
        lambda x: torch.cat([x, x * x]).prod(),
        lambda x: torch.stack([x, x.exp()]).logsumexp(0).sum(),
        lambda x: (x.reshape(2, 2) @ x.reshape(2, 2)).sum(),
        lambda x: x.clone().mul_(x).sigmoid_().sum(),
        lambda x: torch.nn.functional.softmax(x, 0).max(),
        lambda x: torch.linalg.svd(x.reshape(2, 2))[1].sum(),
        lambda x: x[torch.tensor([0, 0, 2])].pow(3).sum(),
    ],
)
def test_gradients_are_those_without_hooks(f):
    x = torch.tensor([0.5, 1.5, -0.7, 2.0], dtype=torch.float64, requires_grad=True)
    (expected,) = grad(f(x), x)
    calls = []
    with saved_tensors_hooks(lambda t: calls.append(1) or t.numpy(force=True).copy(),
                             lambda a: torch.from_numpy(a)):
        out = f(x)
    assert calls
    assert torch.equal(grad(out, x)[0], expected)


def test_second_derivatives_through_packed_values():
    x = leaf(2.0)
    with saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        y = x.exp() * x * x
    (g,) = grad(y, x, create_graph=True)
    (h,) = grad(g, x)
    e = torch.tensor(2.0).exp()
    assert torch.allclose(g, e * (4 + 4)) and torch.allclose(h, e * (4 + 8 + 2))


def test_innermost_hooks_act():
    x = leaf(1.0)
    seen = []

    def hooks(name):
        return saved_tensors_hooks(lambda t: seen.append(name) or t, lambda t: t)

    with hooks("outer"):
        with hooks("inner"):
            x * x
        x.exp()
    x * x
    assert seen == ["inner", "inner", "outer"]


def test_saved_tensors_hooks_as_decorator():
    seen = []

    @saved_tensors_hooks(lambda t: seen.append(1) or t, lambda t: t)
    def f(x):
        return x * x

    x = leaf(3.0)
    f(x).backward()
    assert len(seen) == 2 and x.grad == 6


def test_pack_hook_must_not_write():
    x = torch.ones(2, requires_grad=True)
    with (
        pytest.raises(RuntimeError, match="modifying its input in place"),
        saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t),
    ):
        x * x.detach()


def test_unpack_hook_must_return_a_tensor():
    x = leaf(1.0)
    with saved_tensors_hooks(lambda t: 1, lambda kept: kept):
        y = x * x
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor"):
        y.backward()


def test_packed_values_have_no_versions():
    x = torch.ones(2, requires_grad=True)
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        c = torch.ones(2)
        y = x * c
    c.mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_hooks_are_those_of_the_thread():
    x = leaf(1.0)
    seen = []
    with saved_tensors_hooks(lambda t: seen.append(1) or t, lambda t: t):
        thread = threading.Thread(target=lambda: (x * x).backward())
        thread.start()
        thread.join()
    assert seen == [] and x.grad == 2
    assert state.observers.saved_hooks == () and fast["ACTIVE"] == 0


def test_output_that_is_packed_as_it_is_makes_no_circle():
    x = torch.ones(2, requires_grad=True)
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x.exp()
    ref = weakref.ref(y.grad_fn)
    with uncollected():
        del y
        assert ref() is None


def test_saved_tensors_hooks_inside_of_func_grad():
    seen = []

    def f(x):
        with saved_tensors_hooks(lambda t: seen.append(1) or t, lambda t: t):
            return (x * x * x).sum()

    assert torch.func.grad(f)(torch.tensor([1.0, 2.0])).tolist() == [3, 12]
    assert seen


def test_save_on_cpu():
    x = torch.arange(3.0, requires_grad=True)
    with save_on_cpu(pin_memory=True):
        y = (x * x).sum()
    y.backward()
    assert x.grad.tolist() == [0, 2, 4]


def test_disable_saved_tensors_hooks():
    with (
        disable_saved_tensors_hooks("not here"),
        pytest.raises(RuntimeError, match="not here"),
        save_on_cpu(),
    ):
        pass
    with save_on_cpu(), pytest.raises(RuntimeError, match="no"), disable_saved_tensors_hooks("no"):
        pass
    with save_on_cpu():
        pass


def test_increment_version():
    x = torch.ones(2)
    w = torch.ones(2, requires_grad=True)
    y = w * x
    increment_version(x)
    increment_version([x, x])
    assert x._version == 3
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_allow_mutation_on_saved_tensors():
    with allow_mutation_on_saved_tensors() as context:
        a = torch.full((2, 3), 3.0, requires_grad=True)
        b = a.clone()
        out = (b**2).sum()
        b.sin_()
        assert len(context.cloned) == 1
        out.backward()
        assert a.grad.tolist() == [[6.0] * 3] * 2
        assert not context.cloned
        c = (a.detach() * 2).requires_grad_(False)
        d = a * c
        e = a * c[0]  # a view of the same memory
        c.zero_()
        a.grad = None
        (d.sum() + e.sum()).backward()
        assert a.grad.tolist() == [[12.0] * 3] * 2
    assert not views.before_writes


def test_mutation_copies_only_what_is_written():
    with allow_mutation_on_saved_tensors() as context:
        a = torch.ones(3, requires_grad=True)
        (a * a.detach().clone()).sum().backward()
        assert not context.cloned


# several tensors


def test_multi_grad_hook_all():
    a, b, c, d = (leaf(1.0) for _ in range(4))
    seen = []
    handle = register_multi_grad_hook(
        (a, b, c, d), lambda gs: seen.append([None if g is None else g.item() for g in gs])
    )
    (a * b * 2).backward()
    (a * b * c * d).backward()
    assert seen == [[2, 2, None, None], [1, 1, 1, 1]]
    handle.remove()
    (a * b).backward()
    assert len(seen) == 2


def test_multi_grad_hook_any():
    a, b, c = (leaf(1.0) for _ in range(3))
    seen = []
    with register_multi_grad_hook((a, b, c), lambda g: seen.append(g.item()), mode="any"):
        (a * b).backward()
        (b * 3).backward()
    assert seen == [1, 3]
    with pytest.raises(ValueError, match="mode"):
        register_multi_grad_hook((a,), print, mode="some")


def test_multi_grad_hook_knows_what_runs():
    a, b = leaf(1.0), leaf(1.0)
    y = a * 2
    seen = []
    register_multi_grad_hook(
        (y, a, b), lambda gs: seen.append([None if g is None else g.item() for g in gs])
    )
    (y * 3).backward(inputs=[a], retain_graph=True)
    grad(y * 3, y)
    assert seen == [[3, 6, None], [3, None, None]]


def test_multi_grad_hook_of_an_output_without_gradient():
    x = torch.ones(4, requires_grad=True)
    p, q = x.split(2)
    seen = []
    register_multi_grad_hook((p, q, x), lambda gs: seen.append([g is None for g in gs]))
    p.sum().backward()
    assert seen == [[False, True, False]]


def test_contexts_that_an_unpack_hook_enters_end_with_it():
    def unpack(t):
        saved_tensors_hooks(lambda t: seen.append(t), lambda t: t).__enter__()
        return t

    seen, active = [], fast["ACTIVE"]
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with saved_tensors_hooks(lambda t: t, unpack):
        y = x.sin().sum()
    y.backward()
    (x * x).sum().backward()
    assert not seen and fast["ACTIVE"] == active
