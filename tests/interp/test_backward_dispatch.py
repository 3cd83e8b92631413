"""What the tape does by itself is seen by dispatch modes, as in PyTorch 2.13.

`python -m tests.interp.test_backward_dispatch` records the operators of each program there, into
`tests/data/dispatched_backward.json`.
"""

import json
import sys
from pathlib import Path

from tests.helpers.custom_functions import custom_function

RECORDS = Path(__file__).parent.parent / "data" / "dispatched_backward.json"
if __name__ == "__main__":
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
else:
    import pytest

    import pullback as torch
    from pullback.utils._python_dispatch import TorchDispatchMode

F = torch.nn.functional


class Log(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


BASE = torch.autograd.Function
Square = custom_function("Square", lambda x: x * x, lambda g, x: 2 * g * x, "inputs", BASE)
Exp = custom_function("Exp", lambda x: x.exp(), lambda g, y: g * y, "result", BASE)


def step(x):
    (x * x).sum().backward()
    with torch.no_grad():
        x.sub_(x.grad * 0.1)


def hooked(t):
    t.register_hook(lambda g: g * 2)
    return t


PROGRAMS = {
    "mul": lambda x, y: (x * x).sum().backward(),
    "sin": lambda x, y: x.sin().sum().backward(),
    "exp": lambda x, y: x.exp().sum().backward(),
    "exp_twice": lambda x, y: x.exp().exp().sum().backward(),
    "tanh": lambda x, y: x.tanh().mean().backward(),
    "softmax": lambda x, y: x.softmax(-1).pow(2).sum().backward(),
    "matmul": lambda x, y: (x @ y.T).sum().backward(),
    "linear": lambda x, y: F.linear(x, y, y[:, 0]).sum().backward(),
    "relu": lambda x, y: x.relu().sum().backward(),
    "gelu": lambda x, y: F.gelu(x).sum().backward(),
    "layer_norm": lambda x, y: F.layer_norm(x, (3,), y[0], y[1]).sum().backward(),
    "mse": lambda x, y: F.mse_loss(x, y.detach()).backward(),
    "slice": lambda x, y: x[1:3].sum().backward(),
    "in_place": lambda x, y: (x * 2).add_(1).sum().backward(),
    "in_place_exp": lambda x, y: (x * 2).exp_().sum().backward(),
    "detach": lambda x, y: (x * x.detach()).sum().backward(),
    "given": lambda x, y: (x * 2).backward(y.detach()),
    "grad": lambda x, y: torch.autograd.grad((x**2).sum(), x),
    "second": lambda x, y: torch.autograd.grad(
        (x**3).sum(), x, create_graph=True)[0].sum().backward(),
    "collected": lambda x, y: [(x * k).sum().backward() for k in (2, 3)],
    "sums": lambda x, y: (x.sin() * x.sin() + x.sin()).sum().backward(),
    "div": lambda x, y: (x / y).sum().backward(),
    "broadcast": lambda x, y: (x * y[0]).sum().backward(),
    "max": lambda x, y: x.max(1).values.sum().backward(),
    "conv": lambda x, y: F.conv1d(x[None], y[None]).sum().backward(),
    "step": lambda x, y: step(x),
    "function": lambda x, y: Square.apply(x).sum().backward(),
    "function_of_its_result": lambda x, y: Exp.apply(x).sum().backward(),
    "factories": lambda x, y: (
        x + torch.zeros(2, 3) + torch.ones_like(x) + torch.arange(3)).sum().backward(),
    "item": lambda x, y: x.sum().item(),
    "condition": lambda x, y: x.sum() if x.max() > 0 else None,
    "list_as_index": lambda x, y: x[[0, 1]],
    "tensor": lambda x, y: (x * torch.tensor([1.0, 2.0, 3.0])).sum().backward(),
    "clone": lambda x, y: x.clone().sum().backward(),
    "loss": lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.detach()).backward(),
    "hook": lambda x, y: hooked(x * 2).sum().backward(),
    "cumsum": lambda x, y: x.cumsum(0).sum().backward(),
    "double": lambda x, y: x.double().sum().backward(),
    "embedding": lambda x, y: F.embedding(torch.arange(2), x).sum().backward(),
    "sqrt": lambda x, y: x.sqrt().sum().backward(),
    "silu": lambda x, y: F.silu(x).sum().backward(),
    "two_roots": lambda x, y: torch.autograd.backward([x.exp().sum(), (x * y).sum()]),
}


def operators(name):
    x = torch.tensor([[0.1, 0.3, 0.5], [0.2, 0.4, 0.6]], requires_grad=True)
    y = torch.tensor([[0.5, 0.7, 0.2], [0.8, 0.1, 0.3]], requires_grad=True)
    with Log() as log:
        PROGRAMS[name](x, y)
    return " ".join(s.removeprefix("aten.") for s in log.seen)


if __name__ == "__main__":
    lines = {name: operators(name) for name in PROGRAMS}
    RECORDS.write_text(json.dumps(lines, indent=1) + "\n")
    sys.exit()


@pytest.mark.parametrize("name", PROGRAMS)
def test_modes_see_what_the_tape_does(name):
    assert operators(name) == json.loads(RECORDS.read_text())[name]


def test_gradients_are_the_same_with_and_without_a_mode():
    for name, program in PROGRAMS.items():
        found = []
        for mode in (Log(), torch.enable_grad()):
            x = torch.tensor([[0.1, 0.3, 0.5], [0.2, 0.4, 0.6]], requires_grad=True)
            y = torch.tensor([[0.5, 0.7, 0.2], [0.8, 0.1, 0.3]], requires_grad=True)
            with mode:
                program(x, y)
            found.append([t.grad if t.grad is None else t.grad.tolist() for t in (x, y)])
        assert found[0] == found[1], name


def test_a_gradient_does_not_take_the_memory_of_another():
    given = torch.ones(2, 3)
    x, y = torch.ones(2, 3, requires_grad=True), torch.ones(3, 2, requires_grad=True)
    with Log():
        (x + y.view(2, 3)).backward(given)
    x.grad.zero_()
    assert given.eq(1).all() and y.grad.eq(1).all()
