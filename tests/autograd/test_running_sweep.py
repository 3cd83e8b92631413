"""What programs ask about a graph, about the sweep that runs, and what warnings they get."""

import gc
import warnings
import weakref

import pytest

import pullback as torch
from pullback.autograd.graph import GradientEdge, Node, get_gradient_edge
from tests.helpers.custom_functions import Square, custom_function

_C = torch._C


def leaf(*shape, value=1.0):
    return torch.full(shape, value, requires_grad=True)


def names(nodes):
    return [node.name().rpartition("::")[2] for node in nodes]


# sweeps


def test_a_hook_may_ask_for_the_order_of_the_nodes():
    orders = []
    a, b = leaf(), leaf()
    c, d = b.sin(), a.cos()
    out = c * d
    out.register_hook(lambda g: orders.append(_C._current_graph_task_execution_order()))
    met = []
    for t in (a, b, c, d, out):
        t.register_hook(lambda g, t=t: met.append(get_gradient_edge(t).node))
    out.backward(retain_graph=True)
    assert orders[0] == met
    assert names(met) == ["MulBackward0", "CosBackward0", "AccumulateGrad", "SinBackward0",
                          "AccumulateGrad"]
    torch.autograd.grad(out, b)
    assert names(orders[1]) == ["MulBackward0", "SinBackward0", "AccumulateGrad"]
    with pytest.raises(RuntimeError, match="only be called during the backward pass"):
        _C._current_graph_task_execution_order()


def test_a_hook_may_ask_which_sweep_and_which_node_it_is_in():
    seen = []
    x = leaf(2)
    y = x.exp()
    note = lambda g: seen.append((_C._current_graph_task_id(), _C._current_autograd_node()))
    x.register_hook(note)
    y.register_hook(note)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    (first, node), (same, end), (second, again), _ = seen
    assert first == same and second == first + 1 and node is again is y.grad_fn
    assert end is get_gradient_edge(x).node
    assert _C._current_graph_task_id() == -1 and _C._current_autograd_node() is None


def test_a_hook_may_ask_whether_a_node_will_run():
    a, other = leaf(2), leaf(2)
    b = a * other
    unused, c = b.cos(), b.exp()
    answers = []

    def ask(g):
        answers.append([_C._will_engine_execute_node(get_gradient_edge(t).node)
                        for t in (a, other, b, unused, c)])

    c.register_hook(ask)
    torch.autograd.backward(c.sum(), inputs=(a, b), retain_graph=True)
    c.sum().backward(retain_graph=True)
    assert answers == [[True, False, True, False, True], [True, True, True, False, True]]
    with pytest.raises(RuntimeError, match=r"currently running autograd\.grad"):
        torch.autograd.grad(c.sum(), a)
    with pytest.raises(RuntimeError, match="during the backward pass"):
        _C._will_engine_execute_node(c.grad_fn)
    with pytest.raises(RuntimeError, match="expects an grad_fn"):
        _C._will_engine_execute_node(c)


def test_nodes_that_fail_or_end():
    x = leaf(2)
    bad = _C._functions.DelayedError("not today", 1)(x)
    with pytest.raises(RuntimeError, match="not today"):
        (bad * 2).sum().backward()
    given = []

    class Takes(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            given.append(g)
            return g

    _C._functions.UndefinedGrad()(Takes.apply(x)).sum().backward()
    assert given == [None] and x.grad is None
    for kind in (_C._functions.DelayedError, _C._functions.AccumulateGrad,
                 torch.autograd.function.BackwardCFunction):
        assert issubclass(kind, Node)


# nodes


def test_nodes_know_the_gradients_that_arrive():
    x = leaf(2, 3)
    about = (x * 2).sum(0).grad_fn._input_metadata[0]
    assert about.shape == (3,) and about.dtype is torch.float32 and about.device.type == "cpu"
    assert not about.is_nested_tensor and x.exp().grad_fn.requires_grad
    first, second = torch.var_mean(x, 0)
    assert second.grad_fn._input_metadata[1].shape == first.grad_fn._input_metadata[0].shape == (3,)
    with pytest.raises(TypeError, match="expected 1 arguments, got 2 instead"):
        x.exp().grad_fn(x, x)


def test_saved_tensors_of_functions_take_hooks():
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = leaf(2, value=3.0)
    y = Scale.apply(x)
    kept, nothing = y.grad_fn._raw_saved_tensors
    assert isinstance(kept, _C._autograd.SavedTensor)
    with pytest.raises(RuntimeError, match="None is forbidden"):
        nothing.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        kept.register_hooks(1, 1)
    kept.register_hooks(lambda t: t * 2, lambda t: t)
    with pytest.raises(RuntimeError, match="already been set"):
        kept.register_hooks(lambda t: t, lambda t: t)
    y.sum().backward()
    assert x.grad.tolist() == [6, 6]
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        y.grad_fn._raw_saved_tensors


def test_edges_made_by_hand_have_no_shape():
    x, y = leaf(2).clone(), leaf(2).clone()
    edge = GradientEdge(y.grad_fn, y.output_nr)
    ask = lambda **o: torch.autograd.grad(x.sum(), (x, edge), allow_unused=True, **o)
    assert ask()[1] is None
    with pytest.raises(RuntimeError, match="materialize_grads cannot be used"):
        ask(materialize_grads=True)


def test_missing_gradients_that_are_zeros_can_be_differentiated():
    x, a = leaf(), leaf()
    first = torch.autograd.grad(x * a, x, create_graph=True)
    second = torch.autograd.grad(first, x, create_graph=True, materialize_grads=True)
    assert second[0].item() == 0
    assert torch.autograd.grad(second, x, materialize_grads=True)[0].item() == 0


def test_graphs_of_replaced_memory_lead_elsewhere():
    x = leaf(2)
    edge, out = get_gradient_edge(x), x.clone()
    with torch.no_grad():
        x.set_(torch.zeros(2))
    with pytest.raises(RuntimeError, match="not have been used in the graph"):
        torch.autograd.grad(out.sum(), x, retain_graph=True)
    assert torch.autograd.grad(out.sum(), edge)[0].tolist() == [1, 1]


def test_what_cannot_be_deleted():
    x = leaf(2)
    del x.grad
    for name in ("data", "requires_grad", "_grad_fn", "_backward_hooks"):
        with pytest.raises(RuntimeError, match="cannot be deleted"):
            delattr(x, name)


# warnings


def warned(run):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run()
    return [str(w.message) for w in found]


def test_backward_with_create_graph_warns_of_the_cycle():
    torch.set_warn_always(True)
    try:
        x = leaf(2)
        assert "create_graph=True" in warned(
            lambda: (x * x).sum().backward(create_graph=True))[0]
        assert warned(lambda: torch.autograd.grad((x * x).sum(), x, create_graph=True)) == []
    finally:
        torch.set_warn_always(False)
        x.grad = None


def test_anomalies_warn_of_the_operation_and_of_what_led_there(capsys):
    Inner = custom_function("Inner", torch.clone, lambda g: g * float("nan"))

    Outer = custom_function("Outer", torch.clone, lambda g, x: Inner.apply(g * x), saves="inputs")

    def run():
        with torch.autograd.detect_anomaly():
            x = leaf(2)
            (g,) = torch.autograd.grad(Outer.apply(x).sum(), x, create_graph=True)
            with pytest.raises(RuntimeError, match="'InnerBackward' returned nan values in its 0"):
                g.sum().backward()

    begun, inner, outer = warned(run)
    assert "Anomaly Detection has been enabled" in begun
    assert "Error detected in InnerBackward" in inner and "Inner.apply" in inner
    assert "induced by OuterBackward" in outer and "Outer.apply" in outer
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="Error detected")
        warnings.filterwarnings("ignore", message="Anomaly|Previous")
        run()
    assert "Error detected in InnerBackward" in capsys.readouterr().err


def test_decorating_a_class_with_a_grad_mode_warns():
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):
        @torch.no_grad()
        class Made:
            def __init__(self):
                self.recording = torch.is_grad_enabled()

    assert Made().recording is False and torch.is_grad_enabled()


# messages


def test_views_that_must_not_be_written_are_named():
    x = leaf(2).clone()
    with pytest.raises(RuntimeError, match="Output 1 of Unbind is a view and is being modified"):
        x.unbind()[1].mul_(2)
    with torch.no_grad():
        y = torch.zeros(2).view(2)
    z = y.requires_grad_().view(2)
    with pytest.raises(RuntimeError, match=r"a view of a view .* is being .* inside the no_grad"):
        z.mul_(2)

    Same = custom_function("Same", lambda x: x.view_as(x), lambda g: g)

    with pytest.raises(RuntimeError, match=r"Output 0 of Same is a view .*custom Function"):
        Same.apply(x).mul_(2)


def test_an_overwritten_value_is_named_by_what_made_it():
    x = leaf(2)
    y = x + 1
    z = y ** 2
    y += 1
    with pytest.raises(RuntimeError, match=r"output 0 of Add, is at version 1; expected version 0"):
        z.sum().backward()


def test_the_module_gradcheck_is_the_function_too():
    import importlib

    module = importlib.import_module("pullback.autograd.gradcheck")
    assert issubclass(module.GradcheckError, RuntimeError)
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(torch.exp, (x,)) and module.gradcheck(torch.exp, (x,))


def test_gradcheck_compares_shapes_of_both_sides():
    x = torch.ones(1, dtype=torch.float64, requires_grad=True)
    for fast in (True, False):
        with pytest.raises(AssertionError, match="same shape when inputs are perturbed"):
            torch.autograd.gradcheck(
                lambda t: torch.cat([t, t]) if bool((t >= 1).all()) else t, (x,), fast_mode=fast)


# what hooks and checks may rely on


def test_post_hooks_of_a_leaf_see_the_gradient_that_it_took_over():
    x = leaf(3)
    node = get_gradient_edge(x).node
    x.register_hook(lambda g: g - 2)
    node.register_prehook(lambda gs: (gs[0] / 5,))
    def shift(t):
        t.grad.add_(0.5)

    x.register_post_accumulate_grad_hook(shift)

    def last(given, grads):
        x.grad = grads[0] * 10

    node.register_hook(last)
    x.sum().backward()
    torch.testing.assert_close(x.grad, torch.full((3,), 3.0))  # ((1 - 2) / 5 + 0.5) * 10


def test_backward_into_a_result_runs_the_hooks_of_its_node():
    log = []
    a = leaf()
    b = a.clone()
    b.grad_fn.register_prehook(lambda gs: log.append("node") or (gs[0] * 2,))
    b.register_hook(lambda g: log.append("tensor") or g * 3)
    b.sum().backward(inputs=(b,), retain_graph=True)
    assert log == ["tensor", "node"] and b.grad.item() == 3 and a.grad is None
    log.clear()
    torch.autograd.grad(b.sum(), b)
    assert log == ["tensor"]


def test_gradcheck_moves_its_inputs_where_they_are():
    x = torch.rand(3, dtype=torch.float64, requires_grad=True)
    before = x.tolist()
    asked = []

    def of_the_outer_one(ignored):
        asked.append(x.requires_grad and torch.is_grad_enabled())
        return x * x

    assert torch.autograd.gradcheck(of_the_outer_one, (x,))
    assert all(asked) and x.tolist() == before and x._version == 0


def test_copies_of_saved_tensors_are_shared_and_let_go():
    with torch.autograd.graph.allow_mutation_on_saved_tensors() as context:
        a = leaf(2).clone()
        outs = [(a**2).sum() for _ in range(3)]
        a.sin_()
        assert len(list(context.cloned.items())) == 1
        del outs
        assert not context.cloned


def test_powers_of_negative_numbers_with_complex_exponents():
    for base in (-torch.ones(2, dtype=torch.float64), -2.5):
        p = torch.tensor([0.3 + 0.2j, -1.1 + 0.5j], dtype=torch.complex128, requires_grad=True)
        assert torch.autograd.gradcheck(lambda t, base=base: torch.pow(base, t), (p,),
                                        check_forward_ad=True)


def test_new_takes_sizes_and_tensors():
    x = torch.ones(2, dtype=torch.float64)
    assert x.new(x.view(1, 2).shape).shape == (1, 2) and x.new(torch.Size([])).shape == ()
    assert x.new(x).tolist() == [1, 1] and x.new([3, 4]).tolist() == [3, 4]
    with pytest.raises(TypeError):
        x.new(torch.ones(2))


def test_switches_that_are_kept():
    assert torch.autograd.is_multithreading_enabled()
    with torch.autograd.set_multithreading_enabled(False):
        assert not torch.autograd.is_multithreading_enabled()
    assert torch.autograd.is_multithreading_enabled()
    with torch.autograd._force_original_view_tracking(True):
        assert torch.autograd.is_view_replay_enabled()
    assert not torch.autograd.is_view_replay_enabled()
    with pytest.raises(RuntimeError, match="from Python is forbidden"):
        torch.autograd.SavedTensor()


@pytest.mark.parametrize("view", [
    lambda x: x.select(1, 2), lambda x: x[1:, ::2], lambda x: x.t().unsqueeze(-1),
    lambda x: x.split(1)[1], lambda x: x.diagonal()], ids=["select", "slice", "t", "split", "diag"])
def test_views_are_made_of_other_bases_and_bases_of_views(view):
    base = torch.arange(12.0).view(3, 4).clone()
    out, other = view(base), torch.full((3, 4), 2.0)
    again = out._view_func(other)
    assert again.shape == out.shape and again._base is other and again.stride() == out.stride()
    assert out._view_func(torch.ones(4, 3)) is None
    assert out._view_func_unsafe(other).equal(again)
    found = out._rev_view_func_unsafe(out.detach())
    assert found.equal(base) and found.data_ptr() == base.data_ptr() and found._is_view()


def test_numbers_of_a_view_may_be_replaced():
    base = torch.arange(60.0).view(3, 4, 5).clone()
    view = base.select(1, 2)
    again = view._view_func(base, symint_visitor_fn=lambda n: n + 1)
    assert again.equal(base.select(1, 3)) and view._view_func(base).equal(view)


def test_inference_tensors_outside_and_inside_of_the_mode():
    with torch.inference_mode():
        x = torch.ones(1, 2, 3, requires_grad=True)
        x.resize_(1, 2)
        assert x.is_inference() and x.requires_grad and x.shape == (1, 2)
    out = x.view(-1)
    assert out.is_inference() and not out.requires_grad and not out._is_view() and out.is_leaf


def test_duals_share_the_memory_of_their_primal():
    from pullback.autograd import forward_ad as fw

    x = torch.ones(2)
    assert fw._current_level == -1
    with fw.dual_level():
        dual = fw.make_dual(x, torch.ones(2))
        assert fw._current_level == 0
        assert dual.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


def test_checkpoints_save_the_same_object():
    seen = []

    class Keeps(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(y)
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            seen.extend(ctx.saved_tensors)
            return g, None

    y = torch.ones(())
    torch.utils.checkpoint.checkpoint(Keeps.apply, leaf(), y, use_reentrant=False).backward()
    assert seen[0] is y


def test_lists_of_saved_tensors_are_tuples_and_take_hooks():
    a = torch.ones(2, 2, requires_grad=True)
    places = torch.tensor([0, 1])
    node = a[:, places].grad_fn
    assert node._saved_indices[0] is None and node._saved_indices[1].equal(places)
    none, raw = node._raw_saved_indices
    raw.register_hooks(lambda t: t, lambda t: t.flip(0))
    with pytest.raises(RuntimeError, match="None is forbidden"):
        none.register_hooks(lambda t: t, lambda t: t)
    assert node(torch.tensor([[1.0, 2.0], [3.0, 4.0]])).tolist() == [[2, 1], [4, 3]]


def test_saved_tensors_that_were_detached_in_place_have_their_history():
    """PyTorch refuses; without it second derivatives would lose a term."""
    for square in (lambda a: a * a, lambda a: a.pow(2), Square.apply):
        x = torch.tensor([2.0, 3.0], requires_grad=True)
        a = x * x
        y = square(a)
        a.detach_()
        assert a.is_leaf and not a.requires_grad
        (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
        assert first.tolist() == [32, 108] and second.tolist() == [48, 108]
        made = weakref.ref(y.grad_fn)
        del y, first
        gc.collect()
        assert made() is None  # and the history goes with the graph
