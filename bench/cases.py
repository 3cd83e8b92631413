"""What is measured. A case is a generator function: it prepares, then yields `(row, function)`.

Each function is one unit of work; `__main__.py` times it. Cases that need to be timed in a process
of their own yield a program text instead of a function.
"""

from __future__ import annotations

from collections.abc import Iterator

CASES = []


def case(function):
    CASES.append(function)
    return function


@case
def startup() -> Iterator:
    """Import time over NumPy's."""
    yield "import numpy", "import numpy"
    yield "import pullback", "import pullback"


@case
def small_operators() -> Iterator:
    """Ten elements: what one call costs."""
    import numpy as np

    import pullback as torch

    a = np.ones(10, np.float32)
    x, y = torch.ones(10), torch.ones(10)
    w = torch.ones(10, requires_grad=True)
    yield "numpy multiply", lambda: np.multiply(a, a)
    yield "mul", lambda: x * y
    yield "mul, taped", lambda: w * y
    yield "sin", lambda: torch.sin(x)
    yield "sum", lambda: x.sum()
    yield "view and select", lambda: x.view(2, 5)[0]

    def chain():
        value = w
        for _ in range(20):
            value = value * y
        value.sum().backward()
        w.grad = None

    yield "20 mul forward and backward", chain


@case
def transforms() -> Iterator:
    """The price of a level."""
    import pullback as torch
    from pullback.func import grad, hessian, jvp, vmap

    x, rows, one = torch.ones(10), torch.ones(32, 10), torch.ones(10)

    def f(x):
        return (torch.sin(x) * x).sum()

    yield "grad", lambda: grad(f)(x)
    yield "grad of grad", lambda: grad(lambda x: grad(f)(x).sum())(x)
    yield "jvp", lambda: jvp(f, (x,), (one,))
    yield "vmap of grad", lambda: vmap(grad(f))(rows)
    yield "hessian", lambda: hessian(f)(x)


@case
def elementwise() -> Iterator:
    """A chain over four million elements, with its gradient."""
    import pullback as torch

    x = torch.linspace(-2, 2, 4_000_000)

    def f(x):
        return (torch.tanh(x * 1.5) * torch.exp(-x * x)).sum()

    yield "eager", lambda: torch.func.grad(f)(x)
    compiled = torch.compile(torch.func.grad(f))
    compiled(x)
    yield "compiled", lambda: compiled(x)


@case
def perceptron() -> Iterator:
    """A step of a small network, where calls cost more than arithmetic."""
    import pullback as torch

    torch.manual_seed(0)
    weights = [torch.randn(32, 32) / 6 for _ in range(3)]
    x = torch.randn(64, 32)

    def loss(weights, x):
        for w in weights:
            x = torch.tanh(x @ w)
        return (x * x).mean()

    step = torch.func.grad_and_value(loss)
    yield "eager", lambda: step(weights, x)
    compiled = torch.compile(step)
    compiled(weights, x)
    yield "compiled", lambda: compiled(weights, x)


COMPILE = """
import time, numpy, pullback as torch
x = torch.linspace(-2, 2, 1000)
begun = time.perf_counter()
torch.compile(torch.func.grad(lambda x: (torch.tanh(x * 1.5) * torch.exp(-x * x)).sum()))(x)
print(time.perf_counter() - begun)
"""


@case
def compile_latency() -> Iterator:
    """From the call to the first result, in a new process."""
    yield "elementwise, cold", (COMPILE, "cold")
    yield "elementwise, warm cache", (COMPILE, "warm")
