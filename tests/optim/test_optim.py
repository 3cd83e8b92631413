"""Optimizers against the textbook, one element at a time."""

import itertools
import math

import numpy as np
import pytest

import pullback as pb
from pullback import optim
from pullback.optim import update


def pair(shape=(3, 4), dtype=np.float64, seed=0):
    random = np.random.default_rng(seed)
    start = random.standard_normal(shape).astype(dtype)
    return pb.from_numpy(start.copy()).requires_grad_(), start, random


def run(optimizer, param, random, steps=4):
    grads = []
    for _ in range(steps):
        grads.append(random.standard_normal(param.shape).astype(param.detach().numpy().dtype))
        param.grad = pb.from_numpy(grads[-1].copy())
        optimizer.step()
    return grads


@pytest.mark.parametrize("momentum, nesterov, decay, maximize",
                         [c for c in itertools.product((0, 0.9), (False, True), (0, 0.1),
                                                       (False, True)) if c[0] or not c[1]])
def test_sgd(momentum, nesterov, decay, maximize):
    param, p, random = pair()
    grads = run(optim.SGD([param], lr=0.1, momentum=momentum, nesterov=nesterov,
                          weight_decay=decay, maximize=maximize), param, random)
    buffer = None
    for g in grads:
        d = (-g if maximize else g) + decay * p
        if momentum:
            buffer = d if buffer is None else momentum * buffer + d
            d = d + momentum * buffer if nesterov else buffer
        p = p - 0.1 * d
    np.testing.assert_allclose(param.detach().numpy(), p)


def adam_by_hand(p, grads, lr, decay, decoupled, amsgrad, maximize):
    m, v, top = np.zeros_like(p), np.zeros_like(p), np.zeros_like(p)
    for t, g in enumerate(grads, 1):
        g = -g if maximize else g
        if decoupled:
            p = p - lr * decay * p
        else:
            g = g + decay * p
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        top = np.maximum(top, v)
        used = top if amsgrad else v
        denominator = np.sqrt(used) / math.sqrt(1 - 0.999**t) + 1e-8
        p = p - lr / (1 - 0.9**t) * m / denominator
    return p


@pytest.mark.parametrize("name", ["Adam", "AdamW"])
@pytest.mark.parametrize("decay, amsgrad, maximize",
                         list(itertools.product((0, 0.1), (False, True), (False, True))))
def test_adam(name, decay, amsgrad, maximize):
    param, p, random = pair()
    optimizer = getattr(optim, name)([param], lr=0.01, weight_decay=decay, amsgrad=amsgrad,
                                     maximize=maximize)
    grads = run(optimizer, param, random)
    expected = adam_by_hand(p, grads, 0.01, decay, name == "AdamW", amsgrad, maximize)
    np.testing.assert_allclose(param.detach().numpy(), expected)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kernel", ["numpy", "native"])
def test_large_arrays_are_walked_in_blocks(order, kernel, monkeypatch):
    monkeypatch.setattr(update, "NATIVE", 0 if kernel == "native" else 10**12)
    monkeypatch.setattr(update, "_native", {})
    random = np.random.default_rng(0)
    start = np.asarray(random.standard_normal((700, 300)), order=order)
    param = pb.from_numpy(start.copy(order="K")).requires_grad_()
    grads = run(optim.Adam([param], lr=0.01, weight_decay=0.1), param, random, 2)
    expected = adam_by_hand(start, grads, 0.01, 0.1, False, False, False)
    # the update is rearranged: equal to rounding of values near 1
    np.testing.assert_allclose(param.detach().numpy(), expected, rtol=1e-12, atol=1e-14)


def test_groups_and_missing_gradients():
    a, b, c = (pair(seed=i)[0] for i in range(3))
    optimizer = optim.SGD([{"params": [a], "lr": 1.0}, {"params": [b, c]}], lr=0.1)
    before = [t.detach().numpy().copy() for t in (a, b, c)]
    a.grad, b.grad = pb.ones_like(a.detach()), pb.ones_like(b.detach())
    optimizer.step()
    moved = [x - t.detach().numpy() for x, t in zip(before, (a, b, c))]
    np.testing.assert_allclose([m.mean() for m in moved], [1.0, 0.1, 0.0])


def test_state_round_trip():
    param, _, random = pair()
    one = optim.Adam([param], lr=0.01)
    run(one, param, random, 3)
    other = pb.from_numpy(param.detach().numpy().copy()).requires_grad_()
    two = optim.Adam([other], lr=0.5)
    two.load_state_dict(one.state_dict())
    g = random.standard_normal(param.shape)
    for p, optimizer in ((param, one), (other, two)):
        p.grad = pb.from_numpy(g.copy())
        optimizer.step()
    np.testing.assert_array_equal(param.detach().numpy(), other.detach().numpy())
    assert two.param_groups[0]["lr"] == 0.01


def test_closure_and_zero_grad():
    param, _, _ = pair()
    optimizer = optim.SGD([param], lr=0.1, fused=True)

    def closure():
        optimizer.zero_grad()
        loss = (param * param).sum()
        loss.backward()
        return loss

    first = optimizer.step(closure).item()
    assert optimizer.step(closure).item() < first
    optimizer.zero_grad(set_to_none=False)
    assert not param.grad.numpy().any()
    optimizer.zero_grad()
    assert param.grad is None


def test_a_step_counts_as_a_write():
    param, _, _ = pair()
    loss = (param * param).sum()
    param.grad = pb.ones_like(param.detach())
    optim.SGD([param], lr=0.1).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("make", [
    lambda p: optim.SGD([p], lr=-1.0),
    lambda p: optim.SGD([p], lr=0.1, nesterov=True),
    lambda p: optim.Adam([p], betas=(1.0, 0.9)),
    lambda p: optim.Adam([]),
    lambda p: optim.SGD([p * 2], lr=0.1),
    lambda p: optim.SGD([{"params": [p]}, {"params": [p]}], lr=0.1),
])
def test_bad_arguments(make):
    with pytest.raises(ValueError):
        make(pair()[0])
