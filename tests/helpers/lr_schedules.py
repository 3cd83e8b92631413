"""Learning rate schedules, and the rates that PyTorch 2.13 gives for them.

`python -m tests.helpers.lr_schedules` records them anew with an installed PyTorch.
"""

import json
import math
import warnings
from pathlib import Path

DATA = Path(__file__).parents[1] / "data" / "schedules.json"
EPOCHS = 100


def torch_of(module):
    """`torch` from one of its modules."""
    import importlib

    return importlib.import_module(module.__name__.partition(".")[0])


# name -> function from (torch.optim.lr_scheduler, optimizer) to a scheduler
SCHEDULES = {
    "lambda": lambda S, o: S.LambdaLR(o, [lambda t: 0.95**t, lambda t: 1 / (t + 1)]),
    "multiplicative": lambda S, o: S.MultiplicativeLR(o, lambda t: 0.9 + 0.01 * (t % 5)),
    "step": lambda S, o: S.StepLR(o, 7, 0.5),
    "multistep": lambda S, o: S.MultiStepLR(o, [3, 10, 10, 40], 0.3),
    "constant": lambda S, o: S.ConstantLR(o, 0.25, 8),
    "linear": lambda S, o: S.LinearLR(o, 0.1, 0.8, 20),
    "exponential": lambda S, o: S.ExponentialLR(o, 0.97),
    "polynomial": lambda S, o: S.PolynomialLR(o, 30, 2.0),
    "cosine": lambda S, o: S.CosineAnnealingLR(o, 12, 1e-3),
    "restarts": lambda S, o: S.CosineAnnealingWarmRestarts(o, 5, 2, 1e-3),
    "cyclic": lambda S, o: S.CyclicLR(o, 0.01, [0.2, 0.4], 6, 9),
    "cyclic2": lambda S, o: S.CyclicLR(o, 0.01, 0.2, 5, mode="triangular2"),
    "cyclic_range": lambda S, o: S.CyclicLR(o, 0.01, 0.2, 5, mode="exp_range", gamma=0.98),
    "cyclic_own": lambda S, o: S.CyclicLR(o, 0.01, 0.2, 5, scale_fn=lambda x: 1 / x,
                                          cycle_momentum=False),
    "one_cycle": lambda S, o: S.OneCycleLR(o, [0.3, 0.6], 105),
    "one_cycle3": lambda S, o: S.OneCycleLR(o, 0.3, epochs=11, steps_per_epoch=10, three_phase=True,
                                            anneal_strategy="linear"),
    "sequential": lambda S, o: S.SequentialLR(
        o, [S.ConstantLR(o, 0.1, 5), S.LinearLR(o, 0.5, 1.0, 10), S.ExponentialLR(o, 0.9)],
        [10, 25]),
    "chained": lambda S, o: S.ChainedScheduler(
        [S.LinearLR(o, 0.1, total_iters=10), S.StepLR(o, 15, 0.7), S.ExponentialLR(o, 0.99)]),
    "nested": lambda S, o: S.SequentialLR(
        o, [S.ChainedScheduler([S.LinearLR(o, 0.1, 1.0, 5), S.ExponentialLR(o, 0.98)]),
            S.CosineAnnealingLR(o, 20)], [12]),
    "plateau": lambda S, o: S.ReduceLROnPlateau(o, factor=0.5, patience=3, cooldown=2,
                                                min_lr=[1e-3, 1e-2]),
    "swa": lambda S, o: torch_of(S).optim.swa_utils.SWALR(o, [0.02, 0.3], 12),
    "swa_linear": lambda S, o: torch_of(S).optim.swa_utils.SWALR(o, 0.02, 5, "linear"),
    "plateau_max": lambda S, o: S.ReduceLROnPlateau(o, "max", patience=5, threshold=0.1,
                                                    threshold_mode="abs"),
}
CLOSED = ("step", "multistep", "constant", "linear", "exponential", "polynomial", "cosine",
          "restarts", "lambda")


def build(torch, name: str, lr=None):
    """(optimizer, scheduler)"""
    params = [torch.zeros(2, requires_grad=True) for _ in range(2)]
    rates = lr or (0.1, 0.05)
    groups = [{"params": [p], "lr": r} for p, r in zip(params, rates)]
    optimizer = (torch.optim.Adam if "one" in name else torch.optim.SGD)(
        groups, **({} if "one" in name else {"momentum": 0.9}))
    with warnings.catch_warnings():
        if name == "nested":  # it steps the inner ones twice, which is no order to be proud of
            warnings.simplefilter("ignore")
        return optimizer, SCHEDULES[name](torch.optim.lr_scheduler, optimizer)


def advance(scheduler, name: str, t: int) -> None:
    if "plateau" in name:
        scheduler.step(math.cos(t / 7) / (1 + t / 20))
    else:
        scheduler.step()


def rates(optimizer) -> list[float]:
    """The rates of the groups, and momentum."""
    group = optimizer.param_groups[0]
    momentum = group["betas"][0] if "betas" in group else group["momentum"]
    return [*[float(g["lr"]) for g in optimizer.param_groups], float(momentum)]


def run(torch, name: str, lr=None, epochs: int = EPOCHS) -> list:
    optimizer, scheduler = build(torch, name, lr)
    found = [rates(optimizer)]
    for t in range(epochs):
        optimizer.step()
        advance(scheduler, name, t)
        found.append(rates(optimizer))
    return found


def closed(torch, name: str) -> list:
    """The rates of single epochs."""
    optimizer, scheduler = build(torch, name)
    optimizer.step()
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for epoch in (3, 17, 10, 40):
            scheduler.step(epoch)
            found.append(rates(optimizer))
    return found


def keys(scheduler) -> list[str]:
    return sorted(scheduler.state_dict())


def record(torch) -> dict:
    some = [*range(13), 15, 16, 20, 24, 25, 26, 30, 31, 40, 41, 60, 99, 100]
    paths = {name: run(torch, name) for name in SCHEDULES}
    return {
        "some": some,
        "rates": {name: [path[t] for t in some] for name, path in paths.items()},
        "tensor": {name: run(torch, name, (torch.tensor(0.1), torch.tensor(0.05)))[-1]
                   for name in SCHEDULES},
        "closed": {name: closed(torch, name) for name in CLOSED},
        "keys": {name: keys(build(torch, name)[1]) for name in SCHEDULES},
    }


if __name__ == "__main__":
    import torch

    text = json.dumps(record(torch))
    DATA.write_text(text.replace('"], "', '"],\n"').replace("]], ", "]],\n") + "\n")
