"""Checkpoints in functions whose graphs people see: both partitioners compute again what they ask.

Saved names and counts are those of PyTorch 2.13 on the same functions.
"""

import functools

import pytest

import pullback as torch
from pullback import aot
from pullback.aot import config
from pullback.autograd.graph import region_activation_memory_budget
from pullback.compile.backends import aot_autograd
from pullback.cut.partition import default_partition, min_cut_rematerialization_partition
from pullback.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)
from tests.helpers.compiler_graphs import keeping

PARTITIONERS = default_partition, min_cut_rematerialization_partition


def leaf():
    return torch.randn(4, 4, requires_grad=True)


def layer(x, w):
    return torch.sigmoid(x @ w)


def one(x, w):
    return checkpoint(layer, x.sin(), w, use_reentrant=True)


def two(x, w):
    x = checkpoint(layer, x.sin(), w, use_reentrant=False)
    return checkpoint(layer, x, w, use_reentrant=False)


def noisy(x, w):
    again = lambda x, w: torch.sigmoid(torch.rand_like(x) * w) * x
    return checkpoint(again, x.sin(), w, use_reentrant=False).sin()


def dropped(x, w):
    again = lambda x: torch.sigmoid(torch.dropout(torch.sigmoid(x), 0.5, True))
    return checkpoint(again, x, use_reentrant=False)


def graphs(function, partition, args):
    found = []
    keep = keeping(found)
    backend = aot_autograd(fw_compiler=keep, bw_compiler=keep, partition_fn=partition)
    run = torch.compile(function, backend=backend, fullgraph=True)
    torch.manual_seed(3)
    out = run(*args)
    ours = torch.autograd.grad(out.sum(), args, allow_unused=True)
    torch.manual_seed(3)
    theirs = torch.autograd.grad(function(*args).sum(), args, allow_unused=True)
    for a, b in zip(ours, theirs):
        assert (a is None) == (b is None) and (a is None or torch.allclose(a, b))
    return found


@pytest.mark.parametrize(("function", "default", "cut", "products"), [
    (one, ["primals_1", "primals_2", "sin"], ["primals_1", "primals_2", "sin"], (1, 3)),
    (two, ["primals_1", "primals_2", "sin", "sigmoid"],
     ["primals_1", "primals_2", "sin", "sigmoid"], (2, 5)),
    (noisy, ["primals_1", "primals_2", "sin", "getitem"],
     ["primals_1", "primals_2", "getitem"], (0, 0)),
    (dropped, ["primals_1", "getitem_1"], ["primals_1", "getitem_1"], (0, 0))])
def test_what_is_saved(function, default, cut, products):
    for partition, names in zip(PARTITIONERS, (default, cut)):
        forward, backward = graphs(function, partition, (leaf(), leaf()))
        saved = forward.graph.output_node().args[0][1:]
        assert [n.name for n in saved] == names
        counts = tuple(half.code.count("aten.mm.default") for half in (forward, backward))
        assert counts == products


@pytest.mark.parametrize("partition", PARTITIONERS)
@pytest.mark.parametrize(("function", "operator"), [
    (noisy, "rand_like"), (dropped, "native_dropout")])
def test_draws_are_made_again_from_their_state(function, operator, partition):
    forward, backward = graphs(function, partition, (leaf(), leaf()))
    assert f"higher_order.run_and_save_rng_state(torch.ops.aten.{operator}.default" in forward.code
    again = f"higher_order.run_with_rng_state(rng_state_output_0, torch.ops.aten.{operator}.default"
    assert again in backward.code
    if function is noisy:  # with what PyTorch's function adds to the call
        assert "aten.rand_like.default, sin, pin_memory = False)" in forward.code
    names = [n.name for n in backward.graph.nodes if n.op == "placeholder"]
    assert names[-2:] == ["rng_state_output_0", "tangents_1"]


@pytest.mark.parametrize("partition", PARTITIONERS)
def test_the_generator_is_left_alone_by_the_backward(partition):
    run = aot.aot_function(dropped, aot.nop, partition_fn=partition)
    out = run(leaf(), leaf())
    before = torch.get_rng_state()
    out.sum().backward()
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("partition", PARTITIONERS)
@pytest.mark.parametrize(("policy", "products"), [
    (CheckpointPolicy.MUST_SAVE, 2), (CheckpointPolicy.PREFER_RECOMPUTE, 3),
    (CheckpointPolicy.MUST_RECOMPUTE, 3)])
def test_policies(policy, products, partition):
    def choose(context, op, *args, **kwargs):
        return policy if op is torch.ops.aten.mm.default else CheckpointPolicy.PREFER_RECOMPUTE

    contexts = functools.partial(create_selective_checkpoint_contexts, choose)
    function = lambda x, w: checkpoint(
        layer, x.sin(), w, use_reentrant=False, context_fn=contexts).cos()
    forward, backward = graphs(function, partition, (leaf(), leaf()))
    assert forward.code.count("aten.mm.default") == 1
    assert backward.code.count("aten.mm.default") == products
    assert backward.code.count("aten.sigmoid.default") == 1  # of the value, not of its gradient


@pytest.mark.parametrize("partition", PARTITIONERS)
def test_a_write_after_a_checkpoint(partition):
    """A plain function cannot compute from what is overwritten; a graph has the value before."""
    def function(x, w, buffer):
        y = checkpoint(layer, x, buffer, use_reentrant=False)
        buffer.add_(1)
        return y * w

    x, w, buffer = leaf(), leaf(), torch.ones(4, 4)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        function(x, w, buffer.clone()).sum().backward()
    expected = torch.autograd.grad((layer(x, buffer) * w).sum(), (x, w))
    run = aot.aot_function(function, aot.nop, partition_fn=partition)
    ours = torch.autograd.grad(run(x, w, buffer).sum(), (x, w))
    for a, b in zip(ours, expected):
        assert torch.allclose(a, b)
    assert torch.equal(buffer, torch.full((4, 4), 2.0))


def test_native_code_draws_several_values_again():
    run = torch.compile(dropped, options={"fuse_backward": False})
    args = leaf(), leaf()
    torch.manual_seed(5)
    ours = torch.autograd.grad(run(*args).sum(), args[:1])[0]
    torch.manual_seed(5)
    assert torch.allclose(ours, torch.autograd.grad(dropped(*args).sum(), args[:1])[0])


# Budgets of regions -------------------------------------------------------------------------------


def products(x, *weights):
    for w in weights:
        x = (x @ w).cos()
    return x


def saved_within(function, partition=min_cut_rematerialization_partition):
    found = []
    backend = aot_autograd(
        fw_compiler=lambda module, _: (found.append(module), module)[1], partition_fn=partition)
    torch.compile(function, backend=backend)(*[leaf() for _ in range(6)])
    names = [n.name for n in found[0].graph.output_node().args[0][1:]]
    return [name for name in names if not name.startswith("primals")]


@pytest.mark.parametrize(("budget", "kept"), [
    (1.0, 9), (0.5, 4), (0.25, 2), (0.0, 0), (1, 9)])
def test_a_budget_for_a_function(budget, kept):
    def function(*args):
        with region_activation_memory_budget(budget):
            return products(*args)

    with config.patch(activation_memory_budget=0.75):  # is for others
        assert len(saved_within(function)) == kept


def test_a_budget_is_for_a_whole_graph():
    def partly(*args):
        with region_activation_memory_budget(0.5):
            x = products(*args)
        return x.sin()

    def twice(*args):
        with region_activation_memory_budget(0.5):
            x = products(*args)
        with region_activation_memory_budget(0.25):
            return x.sin()

    with pytest.raises(RuntimeError, match=r"must cover the entire forward .* 1 operators .* sin"):
        saved_within(partly)
    with pytest.raises(RuntimeError, match=r"conflicting budgets .*\[0.25, 0.5\]"):
        saved_within(twice)


@pytest.mark.parametrize(("budget", "error", "text"), [
    (True, TypeError, "expects a float, got bool"), ("x", TypeError, "expects a float, got str"),
    (1.5, ValueError, r"must be in \[0, 1\], got 1.5"), (0.5, RuntimeError, "eager mode")])
def test_no_budget(budget, error, text):
    with pytest.raises(error, match=text):
        region_activation_memory_budget(budget)


def test_a_table_that_is_made_when_needed():
    found = []
    backend = aot_autograd(
        fw_compiler=lambda module, _: (found.append(module), module)[1],
        decompositions=lambda: {torch.ops.aten.silu.default: lambda x: x * torch.sigmoid(x)})
    torch.compile(torch.nn.functional.silu, backend=backend)(torch.ones(3))
    assert "aten.sigmoid.default" in found[0].code and "silu" not in found[0].code
