"""The path of every optimizer is PyTorch's, in every form in which a step can run."""

import json

import numpy as np
import pytest

import pullback as pb
from pullback.optim import formula, update
from tests.helpers import optimizer_trajectories as trajectories
from tests.helpers.optimizer_trajectories import CASES, key, layout, summary, train

RECORDED = json.loads(trajectories.DATA.read_text())
ALL = [(name, given) for name, cases in CASES.items() for given in cases]
LAST = [(name, cases[-1]) for name, cases in CASES.items()]
ELEMENTWISE = [(name, given) for name, given in ALL if name != "Adafactor"]
named = lambda cases: pytest.mark.parametrize("name, given", cases, ids=[key(*c) for c in cases])


@pytest.fixture(params=["numpy", "native"])
def kernel(request, monkeypatch):
    monkeypatch.setattr(update, "PATIENCE", -1 if request.param == "native" else 10**9)
    monkeypatch.setattr(formula, "_programs", {})
    return request.param


@named(ALL)
def test_the_trajectory_of_pytorch(name, given):
    expected = RECORDED["trajectories"][key(name, given)]
    _, params = train(pb, name, given, np.float64)
    np.testing.assert_allclose(summary(params), expected, rtol=1e-12, atol=1e-12)
    _, params = train(pb, name, given, np.float32)
    np.testing.assert_allclose(summary(params), expected, rtol=2e-5, atol=2e-6)


@named([c for c in LAST if c[0] != "Adafactor"])
def test_complex_parameters(name, given, kernel):
    _, params = train(pb, name, given, np.complex128)
    expected = RECORDED["complex"][key(name, given)]
    np.testing.assert_allclose(summary(params), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@named([c for c in LAST if c[0] != "Adafactor"])
def test_native_and_numpy_agree_to_the_last_bit(name, given, dtype, monkeypatch):
    found = []
    for patience in (-1, 10**9):
        monkeypatch.setattr(update, "PATIENCE", patience)
        monkeypatch.setattr(formula, "_programs", {})
        found.append(train(pb, name, given, dtype, 10)[1])
        program = next(iter(formula._programs.values()))
        assert bool(program.native) == (patience < 0)
    for a, b in zip(*found):
        assert np.array_equal(a.detach().numpy(), b.detach().numpy())


@named([c for c in ELEMENTWISE if c[1].get("weight_decay") != 0][::3])
def test_differentiable_steps_take_the_same_path(name, given):
    _, params = train(pb, name, given, np.float64, 10)
    _, others = train(pb, name, {**given, "differentiable": True}, np.float64, 10, leaves=False)
    for a, b in zip(params, others):
        # Adam's scalars are of single precision then, as PyTorch's are
        np.testing.assert_allclose(a.detach().numpy(), b.numpy(), atol=1e-5)


@named(LAST)
def test_a_learning_rate_may_be_a_tensor(name, given):
    lr = pb.tensor(given["lr"], dtype=pb.float64)
    expected = train(pb, name, given, np.float64, 10)[1]
    for a, b in zip(expected, train(pb, name, {**given, "lr": lr}, np.float64, 10)[1]):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-12)


@named(LAST)
def test_state_dict_and_repr_are_those_of_pytorch(name, given):
    optimizer, _ = train(pb, name, given, np.float64)
    assert json.loads(json.dumps(layout(pb, optimizer))) == RECORDED["layouts"][name]
    assert repr(optimizer) == RECORDED["reprs"][name]


@named(LAST)
def test_a_step_after_loading_is_the_step_without(name, given):
    optimizer, params = train(pb, name, given, np.float64, 3)
    copies = [p.detach().clone().requires_grad_() for p in params]
    other = getattr(pb.optim, name)(copies)
    other.load_state_dict(optimizer.state_dict())
    assert other.param_groups[0]["lr"] == given["lr"]
    for p, q in zip(params, copies):
        p.grad, q.grad = pb.ones_like(p.detach()), pb.ones_like(p.detach())
    optimizer.step()
    other.step()
    for p, q in zip(params, copies):
        # loaded scalars but for the step take the parameter's dtype, as in PyTorch
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-7)


@named([c for c in LAST if c[0] != "Adafactor"])
@pytest.mark.parametrize("order", ["C", "F", "gaps"])
def test_memory_order(name, given, order, kernel, monkeypatch):
    """Large arrays are walked in blocks where memory order allows; the values do not depend on
    it."""
    monkeypatch.setattr(update, "BLOCK", 64)
    start = np.cos(np.arange(600.0)).reshape(20, 30)
    found = []
    for arrange in ("C", order):
        def place(array):
            if arrange == "gaps":
                wide = np.zeros((20, 60))
                wide[:, ::2] = array
                return pb.from_numpy(wide)[:, ::2]
            return pb.from_numpy(np.array(array, order=arrange))
        p = place(start).detach().requires_grad_()
        optimizer = getattr(pb.optim, name)([p], **given)
        for t in range(3):
            p.grad = place(np.sin(t + np.arange(600.0)).reshape(20, 30))
            optimizer.step()
        found.append(p.detach().numpy())
    assert np.array_equal(*found)


@named([c for c in LAST if c[0] != "Adafactor"])
@pytest.mark.parametrize("dtype", [pb.bfloat16, pb.float16])
def test_short_floats(name, given, dtype):
    """They are computed in single precision and rounded at the end of each step."""
    found = []
    for kind in (dtype, pb.float32):
        p = pb.cos(pb.arange(12.0)).to(kind).requires_grad_()
        optimizer = getattr(pb.optim, name)([p], **given)
        for t in range(3):
            p.grad = pb.sin(t + pb.arange(12.0)).to(dtype).to(kind)
            optimizer.step()
        assert p.dtype is kind
        found.append(p.detach().float().numpy())
    np.testing.assert_allclose(*found, atol=0.03)


@pytest.mark.torch
def test_the_records_are_what_pytorch_gives():
    import torch

    found = json.loads(json.dumps(trajectories.record(torch)))
    for part in ("layouts", "reprs"):
        assert found[part] == RECORDED[part]
    for part in ("trajectories", "complex"):
        assert found[part].keys() == RECORDED[part].keys()
        for k, values in found[part].items():
            np.testing.assert_allclose(values, RECORDED[part][k], rtol=1e-12, atol=1e-12)
