"""Where values live: nothing overlaps while it is alive, blocks of calls are planned, and memory
that only makes graphs faster can be done without."""

import random
import tracemalloc

import numpy as np
import pytest

import pullback as torch
from pullback.compile import native
from pullback.compile.backend import compile_graph
from pullback.compile.memory import Buffer, Memory
from pullback.cut.split import tighten
from pullback.fx.experimental.proxy_tensor import make_fx
from pullback.nn import functional as F

LARGE = 64 << 10


def random_table(rng):
    """Inputs that are given away, outputs, and values between."""
    memory = Memory([Buffer("status", 0)])
    for number in range(rng.randint(0, 4)):
        memory.buffers.append(Buffer("input", rng.randint(1, 6) * LARGE // 2, None, number, -1,
                                     rng.randint(0, 9), gives=True))
    for _ in range(rng.randint(0, 4)):
        memory.buffers.append(Buffer("output", rng.randint(1, 6) * LARGE // 2, None, 0,
                                     rng.randint(0, 9), float("inf")))
    for _ in range(rng.randint(1, 14)):
        born = rng.randint(0, 9)
        memory.buffers.append(Buffer("work", rng.randint(1, 4000) * 50, born=born,
                                     dies=rng.randint(born, 9), spare=rng.random() < 0.3))
    return memory


def places(memory):
    """(piece of memory, first byte, last byte, born, dies) of every buffer."""
    for n, b in enumerate(memory.buffers):
        if b.kind == "input":
            yield ("input", b.at), 0, b.bytes, b.born, b.dies
        elif b.kind == "output":
            yield ("output", n), 0, b.bytes, b.born, b.dies
        elif b.kind == "work":
            assert b.at + b.bytes <= memory.workspace
            yield "workspace", b.at, b.at + b.bytes, b.born, b.dies
        elif b.kind in ("placed", "taken"):
            yield ("input", b.at), b.offset, b.offset + b.bytes, b.born, b.dies
        elif b.kind == "hosted":
            yield ("output", b.at), b.offset, b.offset + b.bytes, b.born, b.dies


@pytest.mark.parametrize("tight", [False, True])
def test_nothing_overlaps_while_it_is_alive(tight):
    kinds = set()
    for seed in range(300):
        memory = random_table(random.Random(seed))
        memory.pack(tight)
        kinds |= {b.kind for b in memory.buffers}
        found = list(places(memory))
        for i, (where, low, high, born, dies) in enumerate(found):
            for other, from_, to, other_born, other_dies in found[:i]:
                apart = high <= from_ or to <= low or dies < other_born or other_dies < born
                assert where != other or apart, (seed, where)
    assert kinds - {"none"} == {"status", "input", "output", "work", "placed", "taken", "hosted"}
    assert ("none" in kinds) == tight


def test_what_can_be_done_without_adds_nothing_to_tight_memory():
    for seed in range(200):
        tight, without = (random_table(random.Random(seed)) for _ in range(2))
        without.buffers = [b for b in without.buffers if not b.spare]
        tight.pack(tight=True)
        without.pack()
        assert tight.workspace == without.workspace


def compiled(function, args, tight=False):
    module = make_fx(function)(*args)
    if tight:
        tighten(module)
    return compile_graph(module, "measured")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_products_without_panels_are_the_same_to_the_bit(dtype):
    def function(a, b, c, bias):
        return a @ b, a @ c.T, b.T @ a.T, torch.addmm(bias, a, b), torch.stack([a, a]) @ b

    torch.manual_seed(0)
    shapes = (150, 700), (700, 211), (211, 700), (211,)
    args = [torch.randn(*s, dtype=dtype) for s in shapes]
    roomy, tight = (compiled(function, args, t) for t in (False, True))
    assert tight.plan["workspace"] < roomy.plan["workspace"]
    arrays = [a.numpy() for a in args]
    for ours, same, true in zip(tight(*arrays), roomy(*arrays), function(*args), strict=True):
        np.testing.assert_array_equal(ours, same)
        np.testing.assert_allclose(ours, true.numpy(), rtol=1e-3, atol=1e-3)


CONVOLUTIONS = [  # image, weight, stride, padding, dilation, groups
    ((3, 8, 17, 19), (20, 8, 3, 3), 1, 1, 1, 1),
    ((4, 12, 16, 16), (24, 6, 3, 3), 2, 1, 1, 2),
    ((2, 3, 32, 32), (16, 3, 8, 8), 8, 0, 1, 1),
    ((2, 40, 12, 12), (16, 40, 5, 5), 1, 4, 2, 1),
    ((9, 16, 12, 12), (16, 1, 3, 3), 1, 1, 1, 16),
    ((1, 70, 9, 9), (50, 70, 3, 3), 1, 1, 1, 1),
]


@pytest.mark.parametrize("given", CONVOLUTIONS, ids=str)
def test_convolutions_take_what_is_planned(given):
    """All that is allocated while a graph runs are its results and its workspace."""
    image, weight, stride, padding, dilation, groups = given

    def function(x, w):
        return F.conv2d(x, w, None, stride, padding, dilation, groups)

    def gradients(x, w, g):
        return torch.ops.aten.convolution_backward(
            g, x, w, None, [stride] * 2, [padding] * 2, [dilation] * 2, False, [0, 0], groups,
            (True, True, False))[:2]

    torch.manual_seed(0)
    x, w = torch.randn(*image), torch.randn(*weight)
    g = torch.randn(*function(x, w).shape)
    for make, args in ((function, (x, w)), (gradients, (x, w, g))):
        run, arrays = compiled(make, args), [a.numpy() for a in args]
        assert not run.report["externs"]
        made = [np.array(a) for a in run(*arrays)]
        native.runtime().trim()
        tracemalloc.start()
        run(*arrays)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        results = sum(a.nbytes for a in made)
        workspace = run.plan["workspace"]  # it may be there from another graph
        assert peak <= 1.05 * (results + workspace) + 8192


def test_values_live_in_outputs_that_are_not_written_yet():
    def step(w1, w2, x):
        return ((torch.tanh(torch.tanh(x @ w1) @ w2)) ** 2).mean()

    torch.manual_seed(0)
    args = [(torch.randn(*s) * 0.1).requires_grad_() for s in ((256, 256), (256, 512), (256, 256))]
    run = torch.compile(step)
    ours = torch.autograd.grad(run(*args), args)
    for a, b in zip(ours, torch.autograd.grad(step(*args), args)):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-3, atol=1e-6)
    (part,) = run.parts().values()
    assert 7 in {buffer[0] for buffer in part.plan["buffers"]}
    assert part.report["reused_bytes"] > 0


def deep(x, *weights):
    for w in weights:
        x = torch.tanh(x @ w).exp() @ w
    return x


def test_symbolic_backwards_overwrite_what_only_they_have():
    run = torch.compile(deep, dynamic=True)
    torch.manual_seed(0)
    weights = [(torch.randn(192, 192) * 0.05).requires_grad_() for _ in range(3)]
    for rows in (160, 200, 96):
        args = [torch.randn(rows, 192, requires_grad=True), *weights]
        seed = torch.ones(rows, 192)
        ours = torch.autograd.grad(run(*args), args, seed)
        for a, b in zip(ours, torch.autograd.grad(deep(*args), args, seed)):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-3, atol=1e-4)
        *_, backward = (p for (_, name), p in run.parts().items() if name == "backward")
        assert backward.plan["room"]
        assert backward.report["reused_bytes"] > 0
        assert {buffer[0] for buffer in backward.plan["buffers"]} & {5, 6}


def test_outputs_that_host_little_are_made_late():
    """What keeps a small output early lies in a gap, or in a larger one that is there anyway."""
    size = 1 << 17
    memory = Memory([
        Buffer("output", 6 * size, born=10, dies=11),
        Buffer("output", size, born=9, dies=11),
        Buffer("work", 5 * size, born=0, dies=4),  # in the large one
        Buffer("work", size, born=8, dies=10),  # in nothing: the workspace
        Buffer("work", size // 4, born=8, dies=8),  # in the small one at first
    ])
    memory.pack(tight=True)
    assert memory.workspace == size
    assert memory.needed() == {0: 0, 1: 9}


def test_tight_graphs_give_their_workspace_back():
    def run(x, w):
        return torch.tanh(torch.tanh(x @ w) @ w).sum()

    args = [torch.randn(1024, 1024), torch.randn(1024, 1024)]
    frugal, plain = compiled(run, args, True), compiled(run, args)
    arrays = [a.numpy() for a in args]
    before = native.runtime().alloc_info()[0]
    frugal(*arrays)
    assert frugal.plan["workspace"] >= 4 << 20 and native.runtime().alloc_info()[0] <= before
    plain(*arrays)
    assert native.runtime().alloc_info()[0] >= plain.plan["workspace"]
