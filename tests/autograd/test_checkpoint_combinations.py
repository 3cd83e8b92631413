"""Checkpoints with everything else: functions, hooks, transforms, policies, the fast path."""

import functools
import gc
import threading
import warnings
import weakref

import numpy as np
import pytest

import pullback as torch
from pullback.autograd import Function
from pullback.autograd.graph import register_multi_grad_hook, saved_tensors_hooks
from pullback.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from pullback.fx.make_fx import make_fx
from pullback.utils.checkpoint import (
    CheckpointError,
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
    set_checkpoint_early_stop,
)
from tests.helpers.custom_functions import custom_function, saving

again = functools.partial(checkpoint, use_reentrant=False)
aten = torch.ops.aten


def leaf(*shape, seed=0):
    values = np.random.default_rng(seed).normal(size=shape)
    return torch.tensor(values, requires_grad=True)


def same(a, b):
    a, b = (t.detach().numpy(force=True) for t in (a, b))
    assert np.allclose(a, b, rtol=1e-12, atol=1e-12)


class Cube(Function):
    """Everything from one context; tensors that `forward` made are saved as well."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        square = x * x
        return x * square, square

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output[1])
        ctx.save_for_forward(inputs[0], output[1])

    @staticmethod
    def backward(ctx, g, h):
        x, square = ctx.saved_tensors
        return 2 * g * square + g * x * x + 2 * h * x

    @staticmethod
    def jvp(ctx, t):
        x, square = ctx.saved_tensors
        return 3 * t * square, 2 * t * x


Exp = custom_function("Exp", torch.exp, lambda g, y: g * y, saves="result")


def custom(x):
    return (Cube.apply(x.sin())[0] * x).tanh().sum()


def plainly(x):
    return (x.sin().pow(3) * x).tanh().sum()


# custom functions


def test_what_functions_save_is_dropped():
    alive = []

    class Keeping(Function):
        @staticmethod
        def forward(ctx, x):
            made = x.cos()
            alive.append(weakref.ref(made._payload))
            ctx.save_for_backward(x, made, None)
            return x.sin()

        @staticmethod
        def backward(ctx, g):
            _, made, nothing = ctx.saved_tensors
            assert nothing is None
            return g * made

    x = leaf(5)
    calls = []

    def f(x):
        calls.append(1)
        return Keeping.apply(x * 2).sum()

    out = again(f, x)
    gc.collect()
    assert alive[0]() is None
    out.backward()
    assert len(calls) == 2
    same(x.grad, 2 * (2 * x).cos())
    with pytest.raises(RuntimeError, match="second time"):
        out.backward()


def test_functions_in_the_second_run():
    seen = []

    def f(x):
        seen.append("start")
        y = Exp.apply(x.sin())
        seen.append("after")
        return y

    x = leaf(3)
    out = again(f, x)
    out.sum().backward(retain_graph=True)
    assert seen == ["start", "after", "start"]  # the second run ends with the function's values
    out.sum().backward()
    assert seen.count("start") == 3
    same(x.grad, 2 * x.cos() * x.sin().exp())
    assert out.grad_fn.name() == type(out.grad_fn).__name__ == "ExpBackward"


def test_saved_tensors_may_be_read_more_than_once():
    calls = []

    class Twice(saving(lambda x: x * x)):
        @staticmethod
        def backward(ctx, g):
            return ctx.saved_tensors[0] * g + g * ctx.saved_tensors[0]

    def f(x):
        calls.append(1)
        return Twice.apply(x)

    x = leaf(3)
    out = again(f, x)
    assert out.grad_fn.saved_tensors[0] is not None  # computed for this once
    assert len(calls) == 2
    out.sum().backward()
    assert len(calls) == 3
    same(x.grad, 2 * x)


def test_functions_are_compared():
    runs = []

    def shapes(x):
        runs.append(1)
        return Exp.apply(torch.cat([x, x]) if len(runs) > 1 else x).sum()

    with pytest.raises(CheckpointError, match="different metadata") as caught:
        again(shapes, leaf(3)).backward()
    assert "ExpBackward" in str(caught.value)
    runs.clear()

    def kinds(x):
        runs.append(1)
        return x.exp().sum() if len(runs) > 1 else Exp.apply(x).sum()

    with pytest.raises(CheckpointError, match="other operators"):
        again(kinds, leaf(3)).backward()


def test_writes_to_what_a_function_saved():
    def f(x):
        z = Exp.apply(x * 2)
        z.mul_(2)
        return z.sum()

    x = leaf(3)
    again(f, x).backward()  # the second run ends before the write
    same(x.grad, 4 * (2 * x).exp())
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        again(f, leaf(3), early_stop=False).backward()


def test_functions_that_write():
    class Double(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.mark_dirty(x)
            ctx.save_for_backward(y)
            return x.mul_(y)

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0], None

    def f(x):
        y = x.sin()
        Double.apply(y[1:], torch.full((2,), 3.0, dtype=torch.float64))
        return y.exp().sum()

    x, y = leaf(3), leaf(3)
    again(f, x).backward()
    f(y).backward()
    same(x.grad, y.grad)


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("early_stop", [False, True])
def test_nested_functions(reentrant, early_stop):
    def inner(x):
        return Exp.apply(Cube.apply(x)[0].sin())

    def outer(x):
        return checkpoint(inner, x.cos(), use_reentrant=reentrant).tanh()

    def whole(x):
        return inner(x.cos()).tanh()

    x, y = leaf(4), leaf(4)
    with set_checkpoint_early_stop(early_stop):
        out = again(outer, x)
    out.sum().backward()
    whole(y).sum().backward()
    same(x.grad, y.grad)
    (g,) = torch.autograd.grad(again(outer, x).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(whole(y).sum(), y, create_graph=True)
    same(torch.autograd.grad(g.sum(), x)[0], torch.autograd.grad(h.sum(), y)[0])


def test_checkpoint_inside_of_a_function():
    class Inner(Function):
        @staticmethod
        def forward(ctx, x):
            with torch.enable_grad():
                x = x.detach().requires_grad_()
                y = again(lambda z: Exp.apply(z.sin()), x)
                (ctx.slope,) = torch.autograd.grad(y.sum(), x)
            return y.detach()

        @staticmethod
        def backward(ctx, g):
            return g * ctx.slope

    x = leaf(3)
    again(lambda x: Inner.apply(x).cos().sum(), x).backward()
    y = leaf(3)
    y.sin().exp().cos().sum().backward()
    same(x.grad, y.grad)


def test_registered_operators():
    from pullback import library

    @library.custom_op("checkpoints::swish", mutates_args=())
    def swish(x: torch.Tensor) -> torch.Tensor:
        return x * x.sigmoid()

    swish.register_autograd(
        lambda ctx, g: g * (ctx.s * (1 + ctx.saved_tensors[0] * (1 - ctx.s))),
        setup_context=lambda ctx, inputs, output: (
            ctx.save_for_backward(inputs[0]),
            setattr(ctx, "s", inputs[0].sigmoid()),
        ),
    )
    x, y = leaf(3), leaf(3)
    out = again(lambda x: swish(x.sin()).exp(), x)
    out.sum().backward()
    (y.sin() * y.sin().sigmoid()).exp().sum().backward()
    same(x.grad, y.grad)


# policies


@pytest.mark.parametrize("policy", list(CheckpointPolicy))
def test_policies(policy):
    ran, asked = [], []

    class Counted(Function):
        @staticmethod
        def forward(ctx, x):
            ran.append(1)
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0].exp()

    def choose(ctx, op, *args, **kwargs):
        asked.append(ctx.is_recompute)
        return policy if op is aten.exp.default else CheckpointPolicy.PREFER_RECOMPUTE

    contexts = functools.partial(create_selective_checkpoint_contexts, choose)
    x, y = leaf(3), leaf(3)
    again(lambda x: Counted.apply(x.sin()).cos().sum(), x, context_fn=contexts).backward()
    y.sin().exp().cos().sum().backward()
    same(x.grad, y.grad)
    assert len(ran) == 2 and not all(asked)


def test_mutated_cache_entries():
    def f(x):
        y = x.sin()
        z = y.cos().exp()
        y.mul_(2)
        return (z * 2).sum()

    contexts = functools.partial(create_selective_checkpoint_contexts, [aten.sin.default])
    with set_checkpoint_early_stop(False), pytest.raises(RuntimeError, match="has been mutated"):
        again(f, leaf(3), context_fn=contexts).backward()


# transforms, with every option

TRANSFORMS = {
    "grad": grad,
    "grad of grad": lambda f: grad(lambda x: grad(f)(x).pow(2).sum()),
    "vjp": lambda f: lambda x: vjp(f, x)[1](torch.tensor(2.0, dtype=torch.float64))[0],
    "jvp": lambda f: lambda x: jvp(f, (x,), (torch.ones_like(x),))[1],
    "jacrev": lambda f: jacrev(lambda x: x * f(x)),
    "jacfwd": lambda f: jacfwd(lambda x: x * f(x)),
    "hessian": hessian,
    "vmap": lambda f: lambda x: vmap(f)(x.expand(2, *x.shape) * 1.5),
    "vmap of grad": lambda f: lambda x: vmap(grad(f))(x.expand(2, *x.shape) * 1.5),
    "grad of vmap": lambda f: grad(lambda x: vmap(f)(x.expand(2, *x.shape)).sum()),
    "vmap of hessian": lambda f: lambda x: vmap(hessian(f))(x.expand(2, *x.shape) * 1.5),
    "jvp of grad": lambda f: lambda x: jvp(grad(f), (x,), (torch.ones_like(x),))[1],
    "capture": lambda f: lambda x: make_fx(grad(f))(x)(x),
    "capture of vmap": lambda f: lambda x: make_fx(vmap(grad(f)))(x[None])(x[None]),
}
OPTIONS = {
    "plain": {},
    "reentrant": {"use_reentrant": True},
    "unchecked": {"determinism_check": "none"},
    "debug": {"debug": True},
    "to the end": {"early_stop": False},
    "no rng": {"preserve_rng_state": False},
    "selective": {
        "context_fn": functools.partial(create_selective_checkpoint_contexts, [aten.sin.default])
    },
}


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name, option):
    transform, x = TRANSFORMS[name], leaf(3).detach()
    options = {"use_reentrant": False, **OPTIONS[option]}
    inner = functools.partial(checkpoint, custom, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(transform(inner)(x), transform(plainly)(x))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_nested_checkpoints_under_transforms(name):
    def layers(x):
        y = again(lambda x, k: again(lambda z: Cube.apply(z)[0], x.sin()) * k, x, k=x)
        return y.tanh().sum()

    transform, x = TRANSFORMS[name], leaf(3).detach()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(transform(lambda x: again(layers, x))(x), transform(plainly)(x))


@pytest.mark.parametrize("reentrant", [False, True])
def test_random_numbers_under_transforms(reentrant):
    def f(x):
        return torch.nn.functional.dropout(x.sin(), 0.5).exp().sum()

    x = torch.linspace(0.1, 1.0, 20, dtype=torch.float64)

    def masked(run, transform):
        torch.manual_seed(7)
        found = transform(run)(x)
        return found, torch.rand(1).item()

    inner = functools.partial(checkpoint, f, use_reentrant=reentrant)
    for transform in (
        grad,
        lambda f: lambda x: vmap(grad(f), randomness="different")(x[None] * 1.0),
        lambda f: lambda x: vmap(grad(f), randomness="same")(torch.stack([x, x])),
        lambda f: lambda x: jvp(f, (x,), (torch.ones_like(x),))[1],
    ):
        (a, after), (b, later) = masked(inner, transform), masked(f, transform)
        same(a, b)
        assert after == later


def test_under_a_transform_values_are_dropped_too():
    alive = []

    def layer(x):
        y = x.exp()
        inner = y._payload
        while hasattr(inner, "inner"):
            inner = inner.inner._payload
        alive.append(weakref.ref(inner))
        return y.sin()

    def f(x):
        y = again(layer, x)
        gc.collect()
        alive[:] = [r() is None for r in alive]
        return y.sum()

    grad(f)(leaf(3).detach())
    assert alive[0] is True


def test_dual_levels():
    import pullback.autograd.forward_ad as fw

    x, t = leaf(3), torch.ones(3, dtype=torch.float64)
    with fw.dual_level():
        out = again(custom, fw.make_dual(x, t))
        same(fw.unpack_dual(out).tangent, jvp(plainly, (x.detach(),), (t,))[1])
        (g,) = torch.autograd.grad(out, x)
        same(g, grad(plainly)(x.detach()))
        same(fw.unpack_dual(g).tangent, hessian(plainly)(x.detach()) @ t)


@pytest.mark.parametrize("function", [custom, lambda x: again(custom, x.sin()).exp()])
def test_compiled(function):
    x, y = leaf(4), leaf(4)
    out = torch.compile(lambda x: again(function, x))(x)
    out.backward()
    function(y).backward()
    same(x.grad, y.grad)


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: torch.compile(grad(f)),
        lambda f: torch.compile(hessian(f)),
        lambda f: lambda x: torch.compile(vmap(grad(f)))(x[None])[0],
        lambda f: hessian(torch.compile(f)),
        lambda f: grad(lambda x: again(torch.compile(f), x)),
        lambda f: grad(lambda x: checkpoint(torch.compile(f), x, use_reentrant=True)),
    ],
)
def test_compiled_in_all_orders(transform):
    x = leaf(3).detach()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = transform(lambda x: again(custom, x))(x)
    same(found, (hessian if found.ndim == 2 else grad)(plainly)(x))


@pytest.mark.parametrize("policy", list(CheckpointPolicy))
def test_policies_in_captures(policy):
    contexts = functools.partial(
        create_selective_checkpoint_contexts, lambda ctx, op, *args, **kwargs: policy
    )
    x, y = leaf(4), leaf(4)
    torch.compile(lambda x: again(custom, x, context_fn=contexts))(x).backward()
    plainly(y).backward()
    same(x.grad, y.grad)


# hooks


def test_saved_tensors_hooks_outside_get_the_inputs():
    seen = []

    def hooks():
        return saved_tensors_hooks(
            lambda t: (seen.append("pack"), t)[1], lambda t: (seen.append("unpack"), t)[1]
        )

    x, y = leaf(3), leaf(3)
    with hooks():
        out = again(lambda x: x.sin().exp().sum(), x)
    out.backward()
    assert seen == ["pack", "unpack"]
    y.sin().exp().sum().backward()
    same(x.grad, y.grad)
    seen.clear()

    def inside(x):
        with hooks():
            z = x.sin()
        return z.exp().sum()

    x.grad = None
    again(inside, x).backward()  # what is packed inside is the hooks' in both runs
    assert seen.count("unpack") == 1 and seen[0] == "pack"
    same(x.grad, y.grad)
    x.grad = None
    with hooks():
        checkpoint(lambda x: x.sin().exp().sum(), x, use_reentrant=True).backward()
    same(x.grad, y.grad)


def test_hooks_inside_under_func_grad():
    seen = []

    def layer(x):
        y = x.sin()
        y.register_hook(lambda g: seen.append("hook") or g * 2)
        y.retain_grad()
        return y.exp()

    def f(x):
        y = again(layer, x)
        y.retain_grad()
        register_multi_grad_hook((x, y), lambda grads: seen.append(len(grads)))
        out = y.sum()
        return out

    x = leaf(3).detach()
    same(grad(f)(x), 2 * x.cos() * x.sin().exp())
    assert seen.count("hook") == 1 and seen.count(2) == 1


# the fast path


def test_errors_name_the_users_line():
    def f(x):
        y = x * 2
        return y.exp().sum()

    x = leaf(3)
    out = again(f, x)
    node = out.grad_fn.next_functions[0][0]
    while node.name() != "MulBackward0":
        node = node.next_functions[0][0]
    code, _ = node.where
    assert code.co_name == "f"
    out.backward()
    with pytest.raises(RuntimeError, match=r"test_checkpoint_combinations\.py"):
        out.backward()


def test_numbers_and_broadcasts():
    w = leaf(1)

    def f(x):
        y = 2 * x + 1 - x / 3
        return ((y * w) ** 2 + (x > 0) * y).sum()

    x, y = leaf(2, 3), leaf(2, 3)
    again(f, x).backward()
    found, w.grad = w.grad, None
    f(y).backward()
    same(x.grad, y.grad)
    same(found, w.grad)


def test_other_threads_take_no_part():
    stop, wrong = threading.Event(), []

    def elsewhere():
        while not stop.is_set():
            x = leaf(4)
            y = (x.sin() * x).exp().sum()
            if type(y.grad_fn.next_functions[0][0].saved).__name__ == "_Deferred":
                wrong.append(1)
            y.backward()
            expected = grad(lambda x: (x.sin() * x).exp().sum())(x.detach())
            if not np.allclose(x.grad.numpy(), expected):
                wrong.append(2)

    threads = [threading.Thread(target=elsewhere) for _ in range(2)]
    for t in threads:
        t.start()
    try:
        for _ in range(40):
            x, y = leaf(4), leaf(4)
            again(lambda x: (x.sin() * x).exp().sum(), x).backward()
            (y.sin() * y).exp().sum().backward()
            same(x.grad, y.grad)
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert not wrong


def test_backward_in_another_thread():
    x, y = leaf(4), leaf(4)
    out = again(custom, x)
    thread = threading.Thread(target=out.backward)
    thread.start()
    thread.join()
    plainly(y).backward()
    same(x.grad, y.grad)


def test_states_of_devices():
    from pullback.utils import checkpoint as module

    devices, states = module.get_device_states(leaf(2))
    module.set_device_states(devices, states)
    assert module.DefaultDeviceType.get_device_type() == "cuda"
