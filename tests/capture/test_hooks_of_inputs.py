"""Hooks that tensors, optimizers and modules have when a compiled function differentiates inside.

Whenever they are registered and removed, the function does what it does without `compile`.
"""

import warnings

import numpy as np
import pytest

import pullback as pb
from pullback import nn
from pullback.nn.modules import module as global_hooks
from pullback.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

pytestmark = pytest.mark.filterwarnings("ignore:compile")


class Training:
    def __init__(self):
        pb.manual_seed(0)
        self.layer, self.scale = nn.Linear(3, 2), pb.randn(3, requires_grad=True)
        self.optimizer = pb.optim.SGD([*self.layer.parameters(), self.scale], lr=0.02)
        self.seen = []

    def step(self, x):
        self.optimizer.zero_grad()
        loss = self.layer(x * self.scale).square().sum()
        loss.backward()
        self.optimizer.step()
        return loss


def clamp(optimizer, args, kwargs):
    for group in optimizer.param_groups:
        for p in group["params"]:
            p.grad.clamp_(-0.1, 0.1)


def shrink(optimizer, args, kwargs):
    with pb.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                p.mul_(0.9)


def quarter(t):
    t.grad.mul_(0.25)


def accumulator(t):
    return t.expand_as(t).grad_fn.next_functions[0][0]


MASK = pb.tensor([0.5, 0.0, 1.0])
KINDS = {
    "tensor": lambda t: t.scale.register_hook(lambda g: g * MASK),
    "parameter": lambda t: t.layer.weight.register_hook(lambda g: g * 0.5),
    "tensor, seen": lambda t: t.scale.register_hook(lambda g: t.seen.append(g.shape)),
    "tensor, read": lambda t: t.scale.register_hook(lambda g: t.seen.append(float(g[0]) > 0)),
    "accumulated": lambda t: t.scale.register_post_accumulate_grad_hook(quarter),
    "accumulated, seen": lambda t: t.scale.register_post_accumulate_grad_hook(
        lambda p: t.seen.append(p.grad.shape)),
    "before steps": lambda t: t.optimizer.register_step_pre_hook(clamp),
    "after steps": lambda t: t.optimizer.register_step_post_hook(shrink),
    "after steps, seen": lambda t: t.optimizer.register_step_post_hook(
        lambda o, a, k: t.seen.append(1)),
    "before all steps": lambda t: register_optimizer_step_pre_hook(clamp),
    "after all steps": lambda t: register_optimizer_step_post_hook(shrink),
    "forward": lambda t: t.layer.register_forward_hook(lambda m, i, o: o * 1.5),
    "before forward": lambda t: t.layer.register_forward_pre_hook(lambda m, i: (i[0] * 1.5,)),
    "backward": lambda t: t.layer.register_full_backward_hook(
        lambda m, gi, go: tuple(g * 0.5 for g in gi)),
    "before backward": lambda t: t.layer.register_full_backward_pre_hook(
        lambda m, go: tuple(g * 0.5 for g in go)),
    "all forwards": lambda t: global_hooks.register_module_forward_hook(lambda m, i, o: o * 1.5),
    "all backwards": lambda t: global_hooks.register_module_full_backward_hook(
        lambda m, gi, go: tuple(g * 0.5 for g in gi)),
    "node, before": lambda t: accumulator(t.scale).register_prehook(lambda gs: (gs[0] * 0.5,)),
    "node, after": lambda t: accumulator(t.scale).register_hook(
        lambda gi, go: t.seen.append(2)),
    "several": lambda t: pb.autograd.graph.register_multi_grad_hook(
        [t.scale, t.layer.weight], lambda gs: t.seen.append(len(gs))),
}


def trained(kind, between, wrap):
    training = Training()
    step, out = wrap(training.step), []
    handle = None if between else KINDS[kind](training)
    for part in range(3):
        if part == 1 and between:
            handle = KINDS[kind](training)
        if part == 2:
            handle.remove()
        out += [step(pb.randn(4, 3)).item() for _ in range(2)]
    return out, training


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_of_a_whole_step(kind, between, fullgraph):
    if fullgraph and kind == "tensor, read":
        with pytest.raises(pb.errors.DataDependentError):
            trained(kind, between, lambda f: pb.compile(f, backend="numpy", fullgraph=True))
        return
    expected, plain = trained(kind, between, lambda f: f)
    found, mine = trained(
        kind, between, lambda f: pb.compile(f, backend="numpy", fullgraph=fullgraph))
    assert np.allclose(found, expected, rtol=1e-4)
    assert mine.seen == plain.seen


def test_of_a_whole_step_that_is_native():
    expected, _ = trained("tensor", True, lambda f: f)
    found, _ = trained("tensor", True, lambda f: pb.compile(f, check=True))
    assert np.allclose(found, expected, rtol=1e-4)


# functions of (x, w), and hooks of w


def registered_inside(x, w):
    w.register_hook(lambda g: g * 3)
    loss = (x * w).square().sum()
    loss.backward()
    return loss


def removed_inside(x, w):
    handle = w.register_hook(lambda g: g * 3)
    loss = (x * w).square().sum()
    loss.backward()
    handle.remove()
    return loss


def accumulated_inside(x, w):
    w.register_post_accumulate_grad_hook(quarter)
    loss = (x * w).square().sum()
    loss.backward()
    return loss


def gradient_inside(x, w):
    return pb.autograd.grad((x * w).square().sum(), w)[0].sum()


def gradient_of_a_gradient(x, w):
    g, = pb.autograd.grad((x * w).square().sum(), w, create_graph=True)
    return (g * g).sum()


def into_one(x, w):
    loss = (x * w).square().sum()
    loss.backward(inputs=[w])
    return loss


def without_sweep(x, w):
    return (x * w).square().sum()


def added(t):
    t.grad.add_(1.0)


class Counts:
    n = 0

    def __call__(self, g):
        self.n += 1
        return g * self.n


HOOKS = {
    "none": lambda w: None,
    "tensor": lambda w: w.register_hook(lambda g: g * 2),
    "accumulated": lambda w: w.register_post_accumulate_grad_hook(added),
    "both": lambda w: (w.register_hook(lambda g: g * 2),
                       w.register_post_accumulate_grad_hook(added)),
    "counting": lambda w: w.register_hook(Counts()),
}


def played(f, hook, wrap):
    pb.manual_seed(0)
    w, out = pb.randn(3, requires_grad=True), []
    run = wrap(f)
    HOOKS[hook](w)
    for _ in range(4):
        loss = run(pb.randn(2, 3), w)
        if f in (gradient_of_a_gradient, without_sweep):
            loss.backward()
        out += [loss.item(), *([] if w.grad is None else w.grad.tolist())]
    return out


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("f", [registered_inside, removed_inside, accumulated_inside, into_one,
                               gradient_inside, gradient_of_a_gradient, without_sweep])
def test_of_an_argument(f, hook):
    expected = played(f, hook, lambda f: f)
    found = played(f, hook, lambda f: pb.compile(f, backend="numpy"))
    assert np.allclose(found, expected, rtol=1e-4)


def test_hooks_that_only_others_call_cost_no_capture():
    f = pb.compile(without_sweep, backend="numpy")
    w = pb.ones(3, requires_grad=True)
    for _ in range(3):
        handle = w.register_hook(lambda g: g * 2)
        f(pb.ones(2, 3), w).backward()
        handle.remove()
    assert len(f.programs) == 1 and f.recompiles == []


def test_what_a_hook_reads_may_change():
    factor = {"k": 1.0}
    w = pb.ones(2, requires_grad=True)
    w.register_hook(lambda g: g * factor["k"])

    def step(x):
        w.grad = None
        (w * x).sum().backward()
        return w.grad.clone()

    f = pb.compile(step, backend="numpy")
    for k in (1.0, 2.0, 2.0, 3.0):
        factor["k"] = k
        assert f(pb.ones(2)).tolist() == [k, k]


@pytest.mark.parametrize("fullgraph", [False, True])
def test_a_backward_that_goes_on_behind_an_argument(fullgraph):
    def f(x):
        loss = (x * 2).square().sum()
        loss.backward()
        return loss

    def gradient(f):
        w = pb.ones(3, requires_grad=True)
        w.register_hook(lambda g: g * 2)
        for _ in range(4):
            f(w * 3)
        return w.grad.tolist()

    assert gradient(pb.compile(f, backend="numpy", fullgraph=fullgraph)) == gradient(f)


def test_it_is_said_that_a_function_runs_as_written():
    seen = []
    w = pb.ones(2, requires_grad=True)
    w.register_hook(seen.append)

    def step(x):
        (w * x).sum().backward()

    f = pb.compile(step, backend="numpy", fullgraph=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(4):
            f(pb.ones(2))
    assert len(seen) == 4
    assert "step runs operator by operator" in str(caught[-1].message)


def test_sweeps_over_inputs_without_history_leave_the_short_way_open():
    f = pb.compile(lambda x: pb.func.grad(lambda a: (a.sin() * a).sum())(x), backend="numpy")
    x = pb.arange(3.0)
    for _ in range(3):
        f(x)
    assert f._last is not None and not f._last.program.joint.guards.inputs
