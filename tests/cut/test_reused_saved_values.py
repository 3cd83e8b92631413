"""Saved values that only the backward has: overwritten by it, and never where somebody looks."""

import gc
import re
import weakref

import numpy as np
import pytest

import pullback as torch
from tests.helpers.garbage import uncollected

SIZE = 256  # arrays of a quarter of a megabyte: they come from the allocator of the runtime


def deep(x, *weights):
    for w in weights:
        x = torch.tanh(x @ w).exp() @ w
    return x


def arguments():
    torch.manual_seed(0)
    return [(torch.randn(SIZE, SIZE) * 0.05).requires_grad_() for _ in range(4)]


@pytest.fixture(params=["native", "numpy"])
def compiled(request):
    return torch.compile(deep, backend=request.param)


def program_of(run):
    (program,) = run.programs.values()
    return program


def close(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-3, atol=1e-4)


def test_gradients_are_eagers_with_and_without_another_backward(compiled):
    args = arguments()
    seed = torch.randn(SIZE, SIZE)
    expected = torch.autograd.grad(deep(*args), args, seed)
    for _ in range(2):
        out = compiled(*args)
        close(torch.autograd.grad(out, args, seed, retain_graph=True), expected)
        close(torch.autograd.grad(out, args, seed), expected)
        with pytest.raises(RuntimeError, match="second time"):
            torch.autograd.grad(out, args, seed)


def test_which_values_are_given_away(compiled):
    compiled(*arguments())
    program = program_of(compiled)
    forward, backward = program.graphs()
    saved = forward.graph.output_node().args[0][program.count:]
    donated = program.bw_donated_idxs
    assert donated == [k for k, n in enumerate(saved) if n.op == "call_function"]
    assert donated
    marks = [n.name for n in backward.graph.nodes if n.meta.get("donated")]
    assert marks == [saved[k].name for k in donated]


def test_results_and_inputs_are_not_given_away():
    def function(x):
        y = x.exp()
        return y, y.sin()

    run = torch.aot.aot_function(function, torch.aot.nop,
                                 partition_fn=torch.aot.partition.default_partition)
    run(torch.randn(3, requires_grad=True))
    assert program_of(run).bw_donated_idxs == []


def test_memory_is_reused():
    run = torch.compile(deep)
    args = arguments()
    torch.autograd.grad(run(*args), args, torch.ones(SIZE, SIZE))
    plan = run.parts()[0, "backward"].plan
    assert plan["room"]
    assert {buffer[0] for buffer in plan["buffers"]} & {5, 6}


def test_what_somebody_has_is_left_alone():
    run = torch.compile(deep)
    args = arguments()
    out = run(*args)
    saved = [a for a in out.grad_fn.saved if a.nbytes == SIZE * SIZE * 4]
    before = [a.copy() for a in saved]
    grads = torch.autograd.grad(out, args, torch.ones(SIZE, SIZE))
    for a, b in zip(saved, before, strict=True):
        np.testing.assert_array_equal(a, b)
    close(grads, torch.autograd.grad(deep(*args), args, torch.ones(SIZE, SIZE)))


def test_gradients_do_not_share_memory():
    run = torch.compile(deep)
    args = arguments()
    grads = [g.numpy() for g in torch.autograd.grad(run(*args), args, torch.ones(SIZE, SIZE))]
    for i, a in enumerate(grads):
        for b in grads[:i]:
            assert not np.shares_memory(a, b)


def test_nothing_waits_for_the_garbage_collector(compiled):
    args = arguments()
    torch.autograd.grad(compiled(*args), args, torch.ones(SIZE, SIZE))  # compiles
    gc.collect()
    with uncollected():
        out = compiled(*args)
        saved = [weakref.ref(a) for a in out.grad_fn.saved]
        own = [weakref.ref(a._payload) for a in args]
        node = weakref.ref(out.grad_fn)
        grads = torch.autograd.grad(out, args, torch.ones(SIZE, SIZE))
        kept = {id(r()) for r in own}
        assert all(r() is None or id(r()) in kept for r in saved)
        del out
        assert node() is None
        assert len(grads) == len(args)


def test_sums_of_products_add_up_in_place():
    def unrolled(x, w):
        h = x
        for _ in range(6):
            h = torch.tanh(h @ w)
        return h

    run = torch.compile(unrolled)
    x, w = arguments()[:2]
    seed = torch.ones(SIZE, SIZE)
    ours = torch.autograd.grad(run(x, w), [x, w], seed)
    close(ours, torch.autograd.grad(unrolled(x, w), [x, w], seed))
    source = run.parts()[0, "backward"].source
    assert len(re.findall(r"\.c = (p\[\d+\]), \.bias = \(float \*\)\1", source)) == 5
