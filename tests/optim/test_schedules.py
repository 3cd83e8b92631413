"""Learning rate schedulers give PyTorch's rates."""

import copy
import json
import warnings

import numpy as np
import pytest

import pullback as pb
from pullback.optim import lr_scheduler
from tests.helpers import lr_schedules as schedules
from tests.helpers.lr_schedules import CLOSED, SCHEDULES, advance, build, closed, keys, rates, run

RECORDED = json.loads(schedules.DATA.read_text())
close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-15)


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("name", SCHEDULES)
def test_rates(name):
    path = run(pb, name)
    close([path[t] for t in RECORDED["some"]], RECORDED["rates"][name])


@pytest.mark.parametrize("name", SCHEDULES)
def test_rates_that_are_tensors_stay_the_same_tensors(name):
    given = (pb.tensor(0.1), pb.tensor(0.05))
    path = run(pb, name, given)
    np.testing.assert_allclose(path[-1], RECORDED["tensor"][name], rtol=1e-5)
    np.testing.assert_allclose([g.item() for g in given], path[-1][:2])


@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms(name):
    close(closed(pb, name), RECORDED["closed"][name])


@pytest.mark.parametrize("name", SCHEDULES)
def test_state_dict(name):
    optimizer, scheduler = build(pb, name)
    assert keys(scheduler) == RECORDED["keys"][name]
    for t in range(13):
        optimizer.step()
        advance(scheduler, name, t)
    other, fresh = build(pb, name)
    fresh.load_state_dict(copy.deepcopy(scheduler.state_dict()))
    other.load_state_dict(optimizer.state_dict())
    for t in range(13, 30):
        for o, s in ((optimizer, scheduler), (other, fresh)):
            o.step()
            advance(s, name, t)
        close(rates(optimizer), rates(other))
    assert fresh.get_last_lr() == scheduler.get_last_lr()


def some_optimizer(**more):
    return pb.optim.SGD([pb.zeros(2, requires_grad=True)], lr=0.1, **more)


def test_warnings_about_the_order_of_steps():
    optimizer = some_optimizer()
    scheduler = lr_scheduler.StepLR(optimizer, 3)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        scheduler.step()
    optimizer = some_optimizer()
    scheduler = lr_scheduler.StepLR(optimizer, 3)
    optimizer.step = lambda: None
    with pytest.warns(UserWarning, match="overridden"):
        scheduler.step()
    optimizer = some_optimizer()
    scheduler = lr_scheduler.StepLR(optimizer, 3)
    optimizer.step()
    scheduler.step()
    with pytest.warns(UserWarning, match="epoch parameter"):
        scheduler.step(2)
    with pytest.warns(UserWarning, match="get_last_lr"):
        scheduler.get_lr()


def test_resuming_wants_the_first_rates():
    optimizer = some_optimizer()
    with pytest.raises(KeyError, match="initial_lr"):
        lr_scheduler.StepLR(optimizer, 3, last_epoch=4)
    optimizer.param_groups[0]["initial_lr"] = 0.4
    assert lr_scheduler.CosineAnnealingLR(optimizer, 10, last_epoch=4).base_lrs == [0.4]


def test_own_schedulers():
    class Halves(lr_scheduler._LRScheduler):
        def get_lr(self):
            return [lr / 2**self.last_epoch for lr in self.base_lrs]

    optimizer = some_optimizer()
    scheduler = Halves(optimizer)
    for _ in range(3):
        optimizer.step()
        scheduler.step()
    assert scheduler.get_last_lr() == [0.1 / 8]
    assert isinstance(scheduler, lr_scheduler.LRScheduler)


def test_functions_with_attributes_are_saved():
    class Decay:
        def __init__(self, rate):
            self.rate = rate

        def __call__(self, t):
            return self.rate**t

    saved = lr_scheduler.LambdaLR(some_optimizer(), Decay(0.5)).state_dict()
    assert saved["lr_lambdas"] == [{"rate": 0.5}]
    other = lr_scheduler.LambdaLR(some_optimizer(), Decay(0.9))
    other.load_state_dict(saved)
    assert other.lr_lambdas[0].rate == 0.5 and saved["lr_lambdas"] == [{"rate": 0.5}]
    assert lr_scheduler.LambdaLR(some_optimizer(), lambda t: 1).state_dict()["lr_lambdas"] == [None]


@pytest.mark.parametrize("make, error", [
    (lambda o: lr_scheduler.StepLR(1, 3), TypeError),
    (lambda o: lr_scheduler.StepLR(o, 3, verbose=True), TypeError),
    (lambda o: lr_scheduler.LambdaLR(o, [len, len]), ValueError),
    (lambda o: lr_scheduler.MultiplicativeLR(o, 0.5), TypeError),
    (lambda o: lr_scheduler.ConstantLR(o, 2.0), ValueError),
    (lambda o: lr_scheduler.LinearLR(o, 0.0), ValueError),
    (lambda o: lr_scheduler.CyclicLR(o, [0.1, 0.2], 0.3), ValueError),
    (lambda o: lr_scheduler.CyclicLR(o, 0.1, 0.3, mode="other"), ValueError),
    (lambda o: lr_scheduler.OneCycleLR(o, 0.1), ValueError),
    (lambda o: lr_scheduler.OneCycleLR(o, 0.1, 10, pct_start=2.0), ValueError),
    (lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 0), ValueError),
    (lambda o: lr_scheduler.ReduceLROnPlateau(o, factor=1.0), ValueError),
    (lambda o: lr_scheduler.ReduceLROnPlateau(o, "other"), ValueError),
    (lambda o: lr_scheduler.SequentialLR(o, [], []), ValueError),
    (lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.StepLR(o, 3)], [2]), ValueError),
    (lambda o: lr_scheduler.ChainedScheduler([lr_scheduler.ReduceLROnPlateau(o)]), ValueError),
    (lambda o: lr_scheduler.ChainedScheduler(
        [lr_scheduler.StepLR(o, 3), lr_scheduler.StepLR(some_optimizer(), 3)]), ValueError),
    (lambda o: lr_scheduler.CyclicLR(pb.optim.Adagrad([pb.zeros(2, requires_grad=True)]), 0.1, 1),
     ValueError),
])
def test_bad_arguments(make, error):
    with pytest.raises(error):
        make(some_optimizer())


def test_more_steps_than_one_cycle_has():
    optimizer = some_optimizer(momentum=0.9)
    scheduler = lr_scheduler.OneCycleLR(optimizer, 0.1, 3)
    optimizer.step()
    for _ in range(3):
        scheduler.step()
    with pytest.raises(ValueError, match="Tried to step"):
        scheduler.step()


@pytest.mark.torch
def test_the_records_are_what_pytorch_gives():
    import torch

    found = json.loads(json.dumps(schedules.record(torch)))
    assert found["keys"] == RECORDED["keys"] and found["some"] == RECORDED["some"]
    for part in ("rates", "tensor", "closed"):
        for name, values in found[part].items():
            close(values, RECORDED[part][name])
