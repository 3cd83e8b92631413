"""Checkpoints: the same values and gradients as without, less memory, clear errors."""

import functools
import gc
import warnings
import weakref

import numpy as np
import pytest

import pullback as torch
from pullback.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from pullback.fx.make_fx import make_fx
from pullback.utils.checkpoint import (
    CheckpointError,
    CheckpointPolicy,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)

again = functools.partial(checkpoint, use_reentrant=False)


def leaf(*shape, seed=0):
    values = np.random.default_rng(seed).normal(size=shape)
    return torch.tensor(values, requires_grad=True)


def block(x, w):
    y = torch.tanh(x @ w)
    z = y.clone()
    z.mul_(2.0)
    z[0] = y[1]
    return (z.sin() * y).exp()


def gradients(run, *leaves):
    out = run(*leaves)
    out.sum().backward()
    found = [t.grad for t in leaves]
    for t in leaves:
        t.grad = None
    return out.detach(), found


def same(a, b):
    assert np.allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("reentrant", [False, True])
def test_values_and_gradients(reentrant):
    x, w = leaf(3, 3), leaf(3, 3, seed=1)
    expected, wanted = gradients(block, x, w)
    out, found = gradients(lambda x, w: checkpoint(block, x, w, use_reentrant=reentrant), x, w)
    same(out, expected)
    for a, b in zip(found, wanted):
        same(a, b)


@pytest.mark.parametrize("reentrant", [False, True])
def test_closure_parameters(reentrant):
    x, w = leaf(3, 3), leaf(3, 3, seed=1)
    _, wanted = gradients(block, x, w)
    _, found = gradients(
        lambda x, w: checkpoint(lambda x: block(x, w), x, use_reentrant=reentrant), x, w
    )
    for a, b in zip(found, wanted):
        same(a, b)


def test_closure_alone_needs_no_input():
    w = leaf(3, 3)
    again(lambda x: (x @ w).sin(), torch.ones(2, 3, dtype=torch.float64)).sum().backward()
    same(w.grad, torch.cos(w.sum(0)).detach().expand(3, 3) * 2)


@pytest.mark.parametrize("reentrant", [False, True])
def test_second_derivatives(reentrant):
    x = leaf(4)

    def f(x):
        return (x.sin() * x.exp()).pow(2)

    def second(run):
        (g,) = torch.autograd.grad(run(x).sum(), x, create_graph=True)
        return torch.autograd.grad((g * g).sum(), x)[0]

    same(second(lambda x: checkpoint(f, x, use_reentrant=reentrant)), second(f))


def test_grad_of_inputs_through_the_reentrant_form():
    x = leaf(3)
    (g,) = torch.autograd.grad(checkpoint(torch.sin, x, use_reentrant=True).sum(), x)
    same(g, torch.cos(x))
    assert x.grad is None


def test_retain_graph_recomputes_again():
    x, runs = leaf(3), []

    def f(x):
        runs.append(1)
        return x.sin().exp()

    out = again(f, x).sum()
    out.backward(retain_graph=True)
    first = x.grad.clone()
    out.backward()
    same(x.grad, first * 2)
    assert len(runs) == 3
    with pytest.raises(RuntimeError, match="second time"):
        out.backward()


def test_nothing_is_kept_in_between():
    alive = []

    x = leaf(1000)

    def f(x):
        y = x.sin()
        alive.append(weakref.ref(y._payload))
        z = y.exp()
        alive.append(weakref.ref(z._payload))
        return z.cos()

    out = again(f, x)
    gc.collect()
    assert [r() is None for r in alive] == [True, True]
    out.sum().backward()
    del out
    gc.collect()
    assert all(r() is None for r in alive)


def test_stops_early():
    x, reached = leaf(3), []

    def f(x):
        y = x.sin().exp()
        reached.append(1)
        return y + 1

    again(f, x).sum().backward()
    assert len(reached) == 1
    with set_checkpoint_early_stop(False):
        again(f, x).sum().backward()
    assert len(reached) == 3
    again(f, x, early_stop=False).sum().backward()
    assert len(reached) == 5


def test_nested():
    x, w = leaf(3, 3), leaf(3, 3, seed=1)
    calls = []

    def inner(x):
        calls.append("inner")
        return torch.tanh(x @ w).exp()

    def outer(x):
        calls.append("outer")
        return again(inner, again(inner, x.sin())).cos()

    def plain(x):
        return inner(inner(x.sin())).cos()

    _, wanted = gradients(lambda x, w: plain(x), x, w)
    calls.clear()
    _, found = gradients(lambda x, w: again(outer, x), x, w)
    for a, b in zip(found, wanted):
        same(a, b)
    assert calls.count("outer") <= 4
    _, found = gradients(lambda x, w: again(lambda x: again(outer, x), x), x, w)
    for a, b in zip(found, wanted):
        same(a, b)


def test_inner_inputs_are_forgotten_too():
    x, middle = leaf(10), []

    def outer(x):
        y = x.sin()
        middle.append(weakref.ref(y._payload))
        return again(lambda y: y.exp().exp(), y)

    out = again(outer, x)
    gc.collect()
    assert middle[0]() is None
    out.sum().backward()
    s = torch.sin(x)
    same(x.grad, torch.cos(x) * torch.exp(s) * torch.exp(torch.exp(s)))


@pytest.mark.parametrize("reentrant", [False, True])
def test_random_numbers_are_the_same(reentrant):
    x = torch.ones(100, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(3)
    out = checkpoint(
        lambda x: torch.nn.functional.dropout(x.sin(), 0.5).exp(), x, use_reentrant=reentrant
    )
    after = torch.rand(3)
    out.sum().backward()
    dropped = out.detach() == 1
    assert ((x.grad == 0) == dropped).all()
    torch.manual_seed(3)
    torch.nn.functional.dropout(x.sin(), 0.5)
    same(after, torch.rand(3))


def test_structures_and_keywords():
    x, y = leaf(3), leaf(3, seed=1)

    def f(pair, *, scale, extra):
        return pair[0].sin() * scale, pair[1] * extra["k"].exp(), "text"

    a, b, text = again(f, (x, y), scale=3.0, extra={"k": x})
    assert text == "text"
    (a + b).sum().backward()
    same(x.grad, 3 * torch.cos(x) + y * torch.exp(x))
    same(y.grad, torch.exp(x))


def test_under_no_grad_it_is_a_call():
    x = leaf(3)
    with torch.no_grad():
        assert not again(torch.sin, x).requires_grad
    assert not again(torch.sin, x.detach()).requires_grad


def test_gradient_hooks_run_once():
    x, seen = leaf(3), []

    def f(x):
        y = x.sin()
        if y.requires_grad:
            y.register_hook(lambda g: seen.append(g) or g * 2)
        return y.exp()

    again(f, x).sum().backward()
    assert len(seen) == 1
    same(x.grad, 2 * torch.cos(x) * torch.exp(torch.sin(x)))


@pytest.mark.parametrize("early_stop", [False, True])
def test_gradients_inside_of_the_function(early_stop):
    x = leaf(4)

    def f(x):
        y = x.sin().exp().sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        return (g * g).sum() + y

    _, (wanted,) = gradients(f, x)
    _, (found,) = gradients(lambda x: again(f, x, early_stop=early_stop), x)
    same(found, wanted)


def test_modules():
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8), torch.nn.Dropout(0.3)
    )
    x = torch.randn(5, 4)

    def run(call):
        torch.manual_seed(1)
        call(x).pow(2).sum().backward()
        found = [p.grad for p in net.parameters()]
        net.zero_grad()
        return found

    wanted = run(net)
    for call in (
        lambda x: again(net, x),
        lambda x: checkpoint_sequential(net, 2, x, use_reentrant=False),
    ):
        for a, b in zip(run(call), wanted):
            same(a, b)


# differences between the runs


def test_other_operators_are_named():
    x, flag = leaf(3), [True]

    def f(x):
        y = x.sin() if flag[0] else x.exp()
        return y * y

    out = again(f, x)
    flag[0] = False
    with pytest.raises(CheckpointError, match=r"SinBackward0(.|\n)*ExpBackward0") as caught:
        out.sum().backward()
    assert "test_checkpoint.py:" in str(caught.value).splitlines()[0]


def test_other_shapes():
    x, size = leaf(4), [4]
    out = again(lambda x: (x[: size[0]] * x[: size[0]]).sum(), x)
    size[0] = 3
    with pytest.raises(CheckpointError, match="different metadata"):
        out.backward()


def test_fewer_operators():
    x, flag = leaf(4), [True]
    out = again(lambda x: x.sin().exp() if flag[0] else x.sin(), x)
    flag[0] = False
    with pytest.raises(CheckpointError, match="different number of tensors"):
        out.sum().backward()


def test_debug_lists_operators():
    x, flag = leaf(4), [True]
    with set_checkpoint_debug_enabled(True):
        out = again(lambda x: x.sin().exp() if flag[0] else x.cos().exp(), x)
    flag[0] = False
    with pytest.raises(CheckpointError, match="executed during recomputation") as caught:
        out.sum().backward()
    assert "aten.sin" in str(caught.value)
    assert "aten.cos" in str(caught.value)


def test_inputs_written_in_between():
    x = leaf(3)
    y = x * 1
    out = again(lambda y: y.sin().exp(), y)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_views_written_in_between():
    x = leaf(3)
    y = x * 1
    out = again(lambda y: y.sin().exp(), y[1:])
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_arguments_are_checked():
    x = leaf(3)
    with pytest.raises(ValueError, match="determinism_check"):
        again(torch.sin, x, determinism_check="other")
    with pytest.raises(ValueError, match="Unexpected keyword"):
        checkpoint(torch.sin, x, use_reentrant=True, scale=1)
    with pytest.raises(ValueError, match="context_fn"):
        checkpoint(torch.sin, x, use_reentrant=True, debug=True)
    with pytest.warns(UserWarning, match="use_reentrant"):
        checkpoint(torch.sin, x)
    with pytest.warns(UserWarning, match="None of the inputs"):
        checkpoint(torch.sin, x.detach(), use_reentrant=True)


# selective


def test_selective():
    x, w = leaf(3, 3), leaf(3, 3, seed=1)
    _, wanted = gradients(block, x, w)
    runs = []

    def policy(ctx, op, *args, **kwargs):
        runs.append((ctx.is_recompute, str(op)))
        keep = op is torch.ops.aten.mm.default
        return CheckpointPolicy.MUST_SAVE if keep else CheckpointPolicy.PREFER_RECOMPUTE

    contexts = functools.partial(create_selective_checkpoint_contexts, policy)
    _, found = gradients(lambda x, w: again(block, x, w, context_fn=contexts), x, w)
    for a, b in zip(found, wanted):
        same(a, b)
    assert runs
    contexts = functools.partial(create_selective_checkpoint_contexts, [torch.ops.aten.mm.default])
    _, found = gradients(lambda x, w: again(block, x, w, context_fn=contexts), x, w)
    for a, b in zip(found, wanted):
        same(a, b)
    with pytest.raises(ValueError, match="OpOverload"):
        create_selective_checkpoint_contexts([torch.ops.aten.mm])


# sequences


@pytest.mark.parametrize("reentrant", [False, True])
def test_sequential(reentrant):
    x = leaf(4)
    steps = [torch.sin, torch.exp, torch.tanh, torch.cos, torch.sin]

    def plain(x):
        for step in steps:
            x = step(x)
        return x

    _, (wanted,) = gradients(plain, x)
    for segments in (1, 2, 3, 5):
        _, (found,) = gradients(
            lambda x: checkpoint_sequential(steps, segments, x, use_reentrant=reentrant), x
        )
        same(found, wanted)


# transforms


def f(x):
    return (x.sin() * x.exp()).tanh().pow(2).sum()


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize(
    "transform",
    [
        grad,
        lambda f: grad(lambda x: grad(f)(x).pow(2).sum()),
        lambda f: lambda x: vjp(f, x)[1](torch.tensor(2.0, dtype=torch.float64))[0],
        lambda f: lambda x: jvp(f, (x,), (torch.ones_like(x),))[1],
        lambda f: vmap(grad(f)),
        lambda f: lambda x: vmap(lambda y: f(y) * f(x))(x),
        lambda f: grad(lambda x: vmap(f)(x).sum()),
        lambda f: jacrev(lambda x: x * f(x)),
        lambda f: jacfwd(lambda x: x * f(x)),
        hessian,
        lambda f: jacrev(grad(f)),
        lambda f: vmap(hessian(f)),
        lambda f: lambda x: make_fx(grad(f))(x)(x),
        lambda f: lambda x: make_fx(vmap(grad(f)))(x)(x),
    ],
)
def test_transforms(transform, reentrant):
    x = leaf(2, 3).detach()
    inner = functools.partial(checkpoint, f, use_reentrant=reentrant)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(transform(inner)(x), transform(f)(x))


def test_compile():
    x, w = leaf(3, 3), leaf(3, 3, seed=1)
    _, wanted = gradients(block, x, w)
    compiled = torch.compile(lambda x, w: again(block, x, w))
    _, found = gradients(compiled, x, w)
    for a, b in zip(found, wanted):
        same(a, b)


def test_dropout_in_a_capture():
    x = torch.ones(50, dtype=torch.float64, requires_grad=True)
    run = torch.compile(
        lambda x: again(lambda x: torch.nn.functional.dropout(x.sin(), 0.5).exp(), x)
    )
    out = run(x)
    out.sum().backward()
    assert ((x.grad == 0) == (out.detach() == 1)).all()


# memory over time


def _train(steps):
    import tracemalloc

    w = leaf(16, 16)
    x = torch.tensor(np.random.default_rng(1).normal(size=(8, 16)))
    seen, sizes = [0], []
    w.register_hook(lambda g: seen.__setitem__(0, seen[0] + 1))

    def layer(x):
        y = torch.tanh(x @ w)
        if y.requires_grad:
            y.register_hook(lambda g: g * 1.0)
        return torch.nn.functional.dropout(y, 0.1)

    tracemalloc.start()
    try:
        for step in range(steps):
            y = again(layer, x)
            y = again(lambda y: again(layer, y), y)
            y = checkpoint(layer, y, use_reentrant=True)
            y.pow(2).mean().backward()
            with torch.no_grad():
                w.sub_(w.grad, alpha=0.01)
            w.grad = None
            if step >= steps // 2:
                sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert seen[0] >= steps
    assert max(sizes) - min(sizes) < 60_000, (min(sizes), max(sizes))


def test_memory_stays_constant():
    gc.collect()
    _train(12)


@pytest.mark.slow
def test_memory_stays_constant_for_long():
    gc.collect()
    _train(120)
