"""`config.functionalize_rng_ops`: draws of `aot_function` are functions of a seed and an offset."""

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback import aot, errors
from pullback.aot import aot_function, aot_module, make_boxed_func
from pullback.aot.partition import default_partition, min_cut_rematerialization_partition
from pullback.capture.seeded_draws import mixed
from pullback.utils.checkpoint import checkpoint

PARTITIONS = {"default": default_partition, "min cut": min_cut_rematerialization_partition}


@pytest.fixture(autouse=True)
def setting():
    with aot.config.patch(functionalize_rng_ops=True):
        yield


class Seen(list):
    """A compiler that keeps the graphs."""

    def __call__(self, module, inputs):
        assert len(inputs) == len(module.graph.find_nodes(op="placeholder"))
        self.append(module)
        return make_boxed_func(module)

    def inputs(self, i):
        return [n.name for n in self[i].graph.find_nodes(op="placeholder")]

    def draws(self, i):
        return [n.args[2] for n in self[i].graph.nodes if "seed_and_offset" in str(n.target)]


@pytest.mark.parametrize("cut", PARTITIONS)
def test_graphs_take_a_seed_and_an_offset_and_return_the_next(cut):
    def f(x):
        return F.dropout(x.sin(), 0.5) + torch.rand_like(x)

    seen = Seen()
    compiled = aot_function(f, seen, partition_fn=PARTITIONS[cut])
    x = torch.ones(64, requires_grad=True)
    y = compiled(x)
    y.sum().backward()
    assert seen.inputs(0) == ["primals_1", "fwd_seed_1", "fwd_base_offset_1"]
    assert seen.inputs(1)[-3:] == ["tangents_1", "bwd_seed_1", "bwd_base_offset_1"]
    aten = torch.ops.aten
    assert seen.draws(0) == [aten.native_dropout.default, aten.rand_like.default]
    assert seen.draws(1) == []
    assert "add_2 = torch.ops.aten.add.Tensor(fwd_base_offset_1, 2)" in seen[0].code
    assert seen[1].graph.output_node().args[0][-1].name == "bwd_base_offset_1"
    kept = x.grad != 0
    assert 10 < kept.sum() < 54 and torch.allclose(x.grad[kept], 2 * torch.ones(64).cos()[kept])
    assert bool(((y > 1.6) == kept).all())


def test_the_generator_decides():
    compiled = aot_function(lambda: (torch.rand(3), torch.randperm(5)), Seen())
    torch.manual_seed(3)
    state = torch.get_rng_state()
    first, second = compiled(), compiled()
    assert not torch.equal(first[0], second[0])
    torch.set_rng_state(state)
    assert all(map(torch.equal, compiled(), first))
    torch.manual_seed(3)
    assert all(map(torch.equal, compiled(), first)) and sorted(first[1]) == [0, 1, 2, 3, 4]
    plain = aot_function(lambda x: x * 2, Seen())
    state = torch.get_rng_state()
    plain(torch.ones(2))
    assert torch.equal(torch.get_rng_state(), state)  # who draws nothing takes nothing


@pytest.mark.parametrize("cut", PARTITIONS)
def test_checkpoints_draw_again_from_the_same_seed(cut):
    def layer(x):
        return F.dropout(x.sin(), 0.5).cos()

    seen = Seen()
    compiled = aot_function(lambda x: checkpoint(layer, x, use_reentrant=False), seen,
                            partition_fn=PARTITIONS[cut])
    x = torch.ones(40, requires_grad=True)
    y = compiled(x)
    torch.rand(7)  # what others draw meanwhile does not matter
    y.sum().backward()
    assert seen.inputs(1)[:3] == ["primals_1", "fwd_seed_1", "fwd_base_offset_1"]
    assert seen.draws(0) == seen.draws(1) == [torch.ops.aten.native_dropout.default]
    assert torch.equal(x.grad != 0, y != 1)


def test_a_backward_draws_by_a_seed_of_its_own():
    class Noisy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g + torch.rand_like(g)

    seen, grads = Seen(), []
    compiled = aot_function(Noisy.apply, seen)
    x = torch.ones(5, requires_grad=True)
    for _ in range(2):
        torch.manual_seed(1)
        x.grad = None
        compiled(x).sum().backward()
        grads.append(x.grad)
    assert seen.draws(0) == [] and seen.draws(1) == [torch.ops.aten.rand_like.default]
    assert torch.equal(*grads) and bool(((grads[0] > 1) & (grads[0] < 2)).all())


def test_sizes_modules_and_generators_of_the_program():
    own = torch.Generator().manual_seed(0)
    compiled = aot_function(
        lambda x: x + torch.rand(3, generator=own) + F.dropout(x), Seen(), dynamic=True)
    expected = torch.rand(3, generator=torch.Generator().manual_seed(0))
    out = compiled(torch.zeros(3))
    assert torch.equal(out, expected)
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 2))
    step = aot_module(net, Seen())
    losses = []
    for _ in range(2):
        torch.manual_seed(5)
        net.zero_grad()
        out = step(torch.ones(3, 4))
        out.sum().backward()
        losses.append([out.tolist(), net[0].weight.grad.tolist()])
    assert losses[0] == losses[1]


def test_gradients_of_gradients_are_refused():
    x = torch.ones(3, requires_grad=True)
    compiled = aot_function(lambda x: F.dropout(x.exp()), Seen())
    with pytest.raises(errors.NotDifferentiable, match="functionalize_rng_ops"):
        torch.autograd.grad(compiled(x).sum(), x, create_graph=True)


def test_places_have_nothing_in_common():
    seeds = {mixed(seed, offset) for seed in range(30) for offset in range(30)}
    assert len(seeds) == 900 and all(0 <= s < 1 << 64 for s in seeds)
