"""Averages of weights against the same averages taken by hand."""

import copy

import numpy as np
import pytest

import pullback as pb
from pullback import nn
from pullback.optim import swa_utils
from pullback.optim.swa_utils import AveragedModel, update_bn


def model():
    pb.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


def walk(net, averaged, steps=5):
    """Change the weights and add them to the average; returns all the weights there were."""
    seen = []
    for t in range(steps):
        with pb.no_grad():
            for k, p in enumerate(net.parameters()):
                p.add_(pb.cos(pb.arange(float(p.numel())) + t + k).view_as(p))
            net[1].running_mean.add_(t)
        averaged.update_parameters(net)
        seen.append([p.detach().clone() for p in net.parameters()])
    return seen


def ema(seen, decay):
    value = seen[0]
    for later in seen[1:]:
        value = [decay * a + (1 - decay) * b for a, b in zip(value, later)]
    return value


def mean(seen):
    return [sum(values) / len(values) for values in zip(*seen)]


FUNCTIONS = {
    "default": ({}, mean),
    "swa": ({"avg_fn": swa_utils.get_swa_avg_fn()}, mean),
    "swa_multi": ({"multi_avg_fn": swa_utils.get_swa_multi_avg_fn()}, mean),
    "ema": ({"avg_fn": swa_utils.get_ema_avg_fn(0.9)}, lambda s: ema(s, 0.9)),
    "ema_multi": ({"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.9)}, lambda s: ema(s, 0.9)),
    "own": ({"avg_fn": lambda a, b, n: pb.maximum(a, b)},
            lambda s: [pb.stack(list(v)).amax(0) for v in zip(*s)]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_averages(name):
    given, by_hand = FUNCTIONS[name]
    net = model()
    averaged = AveragedModel(net, **given)
    expected = by_hand(walk(net, averaged))
    for a, b in zip(averaged.parameters(), expected, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.numpy(), rtol=1e-5, atol=1e-6)
    assert averaged.n_averaged.item() == 5
    assert pb.equal(averaged.module[1].running_mean, net[1].running_mean)


@pytest.mark.parametrize("given", [{}, {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.5)}])
def test_buffers_may_be_averaged_too(given):
    net = model()
    averaged = AveragedModel(net, use_buffers=True, **given)
    walk(net, averaged, 3)  # running means 0, 1, 3
    expected = 4 / 3 if not given else (0 * 0.5 + 1 * 0.5) * 0.5 + 3 * 0.5
    np.testing.assert_allclose(averaged.module[1].running_mean.numpy(), expected, rtol=1e-6)


def test_the_average_is_a_model_of_its_own():
    net = model()
    averaged = AveragedModel(net)
    averaged.update_parameters(net)
    x = pb.ones(2, 3)
    net.eval(), averaged.eval()
    assert pb.equal(averaged(x), net(x))
    assert set(averaged.state_dict()) == {
        "n_averaged", *[f"module.{k}" for k in net.state_dict()]}
    other = AveragedModel(model())
    other.load_state_dict(averaged.state_dict())
    assert other.n_averaged.item() == 1
    again = copy.deepcopy(averaged)
    again.update_parameters(net)
    assert (again.n_averaged.item(), averaged.n_averaged.item()) == (2, 1)
    with pytest.raises(AssertionError):
        AveragedModel(net, avg_fn=max, multi_avg_fn=max)
    with pytest.raises(ValueError, match="decay"):
        swa_utils.get_ema_avg_fn(1.5)


def test_statistics_anew():
    net = nn.Sequential(nn.BatchNorm1d(2)).eval()
    batches = [pb.tensor([[0.0, 2.0], [2.0, 4.0]]), (pb.tensor([[4.0, 0.0], [6.0, 8.0]]), "label")]
    net[0].running_mean.fill_(100)
    update_bn(batches, net)
    np.testing.assert_allclose(net[0].running_mean.numpy(), [3.0, 3.5])
    np.testing.assert_allclose(net[0].running_var.numpy(), [2.0, 17.0])
    assert net[0].momentum == 0.1 and not net.training
