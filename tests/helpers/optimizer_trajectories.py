"""Steps of every optimizer with many options, and the numbers that PyTorch 2.13 gives for them.

`python -m tests.helpers.optimizer_trajectories` records them anew with an installed PyTorch.
"""

import itertools
import json
from pathlib import Path

import numpy as np

DATA = Path(__file__).parents[1] / "data" / "optim.json"
SHAPES = [(3, 4), (5,), ()]
STEPS = 50


def options(**choices) -> list[dict]:
    """All combinations."""
    return [dict(zip(choices, values)) for values in itertools.product(*choices.values())]


FLAG = (False, True)
DECAY = (0, 0.1)
CASES = {
    "SGD": [
        o
        for o in options(lr=[0.1], momentum=[0, 0.9], dampening=[0, 0.3], weight_decay=DECAY,
                         nesterov=FLAG, maximize=FLAG)
        if not o["nesterov"] or o["momentum"] and not o["dampening"]
    ],
    "Adam": options(lr=[0.01], amsgrad=FLAG, weight_decay=DECAY, maximize=FLAG,
                    decoupled_weight_decay=FLAG),
    "AdamW": options(lr=[0.01], betas=[(0.9, 0.999), (0.8, 0.95)], amsgrad=FLAG, maximize=FLAG),
    "Adamax": options(lr=[0.01], weight_decay=DECAY, maximize=FLAG),
    "NAdam": options(lr=[0.01], weight_decay=DECAY, maximize=FLAG, decoupled_weight_decay=FLAG),
    "RAdam": options(lr=[0.01], weight_decay=DECAY, maximize=FLAG, decoupled_weight_decay=FLAG),
    "RMSprop": options(lr=[0.01], weight_decay=DECAY, maximize=FLAG, momentum=[0, 0.9],
                       centered=FLAG),
    "Adagrad": options(lr=[0.1], weight_decay=DECAY, maximize=FLAG, lr_decay=[0, 0.1],
                       initial_accumulator_value=[0, 0.5]),
    "Adadelta": options(lr=[1.0], weight_decay=DECAY, maximize=FLAG, rho=[0.9, 0.5]),
    "ASGD": options(lr=[0.1], weight_decay=DECAY, maximize=FLAG, t0=[1e6, 10],
                    lambd=[1e-4, 0.01]),
    "Rprop": options(lr=[0.01], maximize=FLAG, etas=[(0.5, 1.2), (0.4, 1.4)],
                     step_sizes=[(1e-6, 50), (1e-3, 0.05)]),
    "Adafactor": options(lr=[0.01], weight_decay=DECAY, maximize=FLAG, d=[1.0, 2.0],
                         eps=[(None, 1e-3), (1e-4, 0.1)]),
}


def inputs(shape: tuple, number: int, dtype) -> tuple:
    """A parameter, and a function that gives its gradient at a step."""
    i = np.arange(int(np.prod(shape))).reshape(shape) + 10.0 * number
    start = np.cos(0.7 * i + 0.1)
    wave = lambda t: np.sin(1.3 * i + 0.37 * t * t) + 0.2 * np.cos(i)
    if np.dtype(dtype).kind == "c":
        return (start + 1j * np.sin(i)).astype(dtype), lambda t: (
            wave(t) + 1j * wave(t + 0.5)).astype(dtype)
    return np.asarray(start, dtype), lambda t: np.asarray(wave(t), dtype)


def train(torch, name: str, given: dict, dtype, steps: int = STEPS, leaves: bool = True,
          step=None) -> tuple:
    """(optimizer, parameters) after some steps."""
    pairs = [inputs(shape, k, dtype) for k, shape in enumerate(SHAPES)]
    params = [torch.from_numpy(np.array(start)) for start, _ in pairs]
    params = [p.requires_grad_() for p in params] if leaves else params
    optimizer = getattr(torch.optim, name)(params, **given)
    for t in range(steps):
        for p, (_, gradient) in zip(params, pairs):
            p.grad = torch.from_numpy(np.array(gradient(t)))
        (step or optimizer.step)()
    return optimizer, params


def summary(params: list) -> list[float]:
    """A few numbers that no mistake leaves as they are."""
    flat = np.concatenate([np.asarray(p.detach().numpy()).reshape(-1) for p in params])
    if flat.dtype.kind == "c":
        flat = flat.view(flat.real.dtype)
    return [float(flat @ np.cos(np.arange(flat.size))), float(flat[3]), float(flat[-1])]


def key(name: str, given: dict) -> str:
    return name + json.dumps(given)


def layout(torch, optimizer) -> dict:
    """The state_dict without the contents of tensors."""

    def facts(value):
        if isinstance(value, torch.Tensor):
            return [str(value.dtype), list(value.shape)]
        return list(value) if isinstance(value, tuple) else value

    saved = optimizer.state_dict()
    return {
        "state": {str(k): {n: facts(v) for n, v in values.items()}
                  for k, values in saved["state"].items()},
        "param_groups": [{k: facts(v) for k, v in g.items()} for g in saved["param_groups"]],
    }


def record(torch) -> dict:
    found: dict = {"trajectories": {}, "complex": {}, "layouts": {}, "reprs": {}}
    for name, cases in CASES.items():
        for given in cases:
            optimizer, params = train(torch, name, given, np.float64)
            found["trajectories"][key(name, given)] = summary(params)
        found["layouts"][name] = layout(torch, optimizer)
        found["reprs"][name] = repr(optimizer)
        if name != "Adafactor":
            given = cases[-1]
            found["complex"][key(name, given)] = summary(
                train(torch, name, given, np.complex128)[1])
    return found


if __name__ == "__main__":
    import torch

    lines = [f"{json.dumps(k)}: " + json.dumps(v) for k, v in record(torch).items()]
    DATA.write_text("{" + ",\n".join(lines) + "}\n")
