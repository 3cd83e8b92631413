"""PyTorch's settings about what a backward may compute again change the cut as they do there.

The lists are what `pullback` saves; `theirs` are the bytes of what PyTorch 2.13 saves beyond inputs
(views of inputs not counted), for the same function with the setting as it is and changed.
"""

import pytest

import pullback as torch
from pullback import aot
from pullback.aot import config
from pullback.cut.partition import min_cut_rematerialization_partition
from pullback.library import custom_op
from tests.helpers.compiler_graphs import keeping

SIZE = 16 * 16 * 4


def ones(*shape):
    return torch.full(shape, 0.5).requires_grad_()


def graphs(function, *args, **settings):
    found = []
    keep = keeping(found)
    run = aot.aot_function(
        function, keep, keep, partition_fn=min_cut_rematerialization_partition)
    with config.patch(**settings):
        out = run(*args)
        out.sum().backward()
    return found


def saved(function, *args, **settings):
    """Names of what is saved beyond the first result, and bytes of what is no input or a view."""
    nodes = graphs(function, *args, **settings)[0].graph.output_node().args[0][1:]
    new = [n for n in nodes if torch.fx.traits.viewed(n).op != "placeholder"]
    return [n.name for n in nodes], sum(torch.fx.traits.nbytes(n.meta["val"]) for n in new)


def scaled(times):
    def function(x):
        for _ in range(times):
            x = x * 1.01
        return x.sin()

    return function


def apart(x, w, c):
    a = x.cos()
    b = a + (a @ w).sin()  # reads `a` again, behind a product
    return b @ c + b.sin()


def transformed(x):
    return torch.fft.rfft(x).abs()


def sliced(x):
    return x[:2].sin()


CASES = {  # function, arguments, setting, what is saved before and after, PyTorch's bytes likewise
    "ban_recompute_reductions": (
        lambda x: x.exp() / x.exp().sum(1, keepdim=True), [(8, 64)], False,
        ["primals_1", "sum_1"], ["primals_1"], (2080, 2048)),
    "ban_recompute_materialized_backward": (
        lambda x, w: x.cos() @ w, [(16, 16)] * 2, False,
        ["primals_1", "primals_2", "cos"], ["primals_1", "primals_2"], (SIZE, 0)),
    "ban_recompute_long_fusible_chains": (
        lambda x: scaled(140)(x) + x.sin(), [(16, 16)], False,
        ["primals_1", "mul_139"], ["primals_1"], (SIZE, 0)),
    "ban_recompute_used_far_apart": (
        apart, [(16, 16)] * 3, False,
        ["primals_1", "primals_2", "primals_3", "cos", "mm", "add"],
        ["primals_1", "primals_2", "primals_3", "cos", "mm"], (3 * SIZE, 2 * SIZE)),
    "ban_recompute_not_in_allowlist": (
        transformed, [(16, 16)], False, ["_fft_r2c"], ["primals_1"],
        (1152, 0)),  # together with ban_recompute_materialized_backward
    "aggressive_recomputation": (
        transformed, [(16, 16)], True, ["_fft_r2c"], ["primals_1"], (1152, 0)),
    "max_dist_from_bw": (
        scaled(6), [(16, 16)], 2, ["primals_1"], ["mul_5"], (0, SIZE)),
    "recompute_views": (
        lambda x, w: x[:2] @ w, [(16, 16)] * 2, True,
        ["primals_2", "slice_1"], ["primals_1", "primals_2"], (0, 0)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_setting_changes_what_is_saved(name):
    function, shapes, value, before, after, theirs = CASES[name]
    args = [ones(*shape) for shape in shapes]
    if name == "ban_recompute_used_far_apart":
        args[2] = args[2].detach()
    (kept, first), (changed, second) = (
        saved(function, *args, **settings) for settings in ({}, {name: value}))
    assert (kept, changed) == (before, after)
    assert (first > second) == (theirs[0] > theirs[1])
    assert (first < second) == (theirs[0] < theirs[1])


def test_gradients_do_not_change():
    x, w, c = (torch.randn(16, 16, requires_grad=True) for _ in range(3))
    expected = torch.autograd.grad(apart(x, w, c).sum(), (x, w))
    settings = {"aggressive_recomputation": True}, {"recompute_views": True}, {"cse": False}
    for patch in (*settings, {"max_dist_from_bw": 1, "ban_recompute_reductions": False}):
        with config.patch(**patch):
            run = aot.aot_function(
                apart, aot.nop, partition_fn=min_cut_rematerialization_partition)
            ours = torch.autograd.grad(run(x, w, c).sum(), (x, w))
        for a, b in zip(ours, expected):
            assert torch.allclose(a, b)


def test_results_of_operators_with_several_are_no_views():
    def several(x):
        a, b = torch.nn.functional.dropout(x.cos(), 0.5).chunk(2)
        return torch.nn.functional.layer_norm(a, (3,)) * b

    gradients = []
    for views in (False, True):
        torch.manual_seed(0)
        x = torch.arange(12.0).view(4, 3).requires_grad_()
        graphs(several, x, recompute_views=views)
        gradients.append(x.grad)
    assert torch.equal(*gradients)


def test_every_product_is_kept_however_aggressive():
    names, _ = saved(lambda x, w: ((x @ w).sin() @ w).sin(), ones(16, 16), ones(16, 16),
                     aggressive_recomputation=True)
    assert {"mm", "mm_1"} <= set(names)


def test_operators_of_others():
    @custom_op("rules::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.register_fake(torch.empty_like)
    twice.register_autograd(lambda ctx, grad: grad * 2)
    function, x = lambda x: twice(x).sin() * x.sin(), ones(16, 16)
    assert saved(function, x)[0] == ["primals_1", "twice"]
    lifted = {"ban_recompute_not_in_allowlist": False}
    assert saved(function, x, **lifted)[0] == ["primals_1"]
    assert saved(function, x, **lifted, is_non_builtin_to_include=True)[0] == ["primals_1", "twice"]


def test_what_is_computed_twice_is_computed_once():
    function = lambda x: x.cos() * x.cos() + x.cos().exp()
    counts = []
    for once in (True, False):
        forward, _ = graphs(function, ones(4, 4), cse=once)
        counts.append(forward.code.count("aten.cos.default"))
    assert counts == [1, 3]  # as PyTorch
    forward, _ = graphs(lambda x: torch.rand_like(x) * torch.rand_like(x) * x, ones(4, 4))
    assert forward.code.count("aten.rand_like.default") == 2


def test_parameters_are_free_to_save():
    def cut(**more):
        found = []

        def partition(module, inputs, **given):
            made = min_cut_rematerialization_partition(module, inputs, **given, **more)
            found.extend(row.name for row in made.report.saved)
            return made

        aot.aot_function(sliced, aot.nop, partition_fn=partition)(ones(64, 8)).sum().backward()
        return found

    assert cut() == ["slice_1"]  # a part of the input is less to read than all of it
    assert cut(static_lifetime_input_indices=[0]) == ["primals_1"]
    with config.patch(treat_parameters_as_free_to_save=False):
        assert cut(static_lifetime_input_indices=[0]) == ["slice_1"]


def test_without_donations():
    def donated():
        _, backward = graphs(lambda x, w: x.cos() @ w, ones(8, 8), ones(8, 8))
        return [n.name for n in backward.graph.nodes if n.meta.get("donated")]

    assert donated() == ["cos"]
    with config.patch(donated_buffer=False):
        assert not donated()


@pytest.mark.parametrize(("name", "value"), [
    ("max_dist_from_bw", -1), ("activation_memory_budget_solver", "best"),
    ("activation_memory_budget_runtime_estimator", "guess"), ("recompute_views", 1.5),
    ("memory_budget_pareto_dir", 3)])
def test_values_that_no_rule_takes(name, value):
    with pytest.raises(ValueError, match=f"{name} cannot be"):
        setattr(config, name, value)
