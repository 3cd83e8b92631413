"""What symbolic sizes cost: `python -m bench.sizes`.

For some training steps: how often the C compiler runs for six sizes, what a new size costs once
there is a library, what a call costs when two sizes alternate, and how fast the library for all
sizes is beside the one for a single size, at the same size (interleaved, the best of many, on one
thread).
"""

from __future__ import annotations

import sys
import time

import pullback as torch
from pullback import nn
from pullback.compile import cache, native
from pullback.nn import functional as F

from .capture import Block


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(256, 512), nn.Linear(512, 512), nn.Linear(512, 10)

    def forward(self, x, target):
        return F.cross_entropy(self.c(F.gelu(self.b(F.relu(self.a(x))))), target)


class Attention(Block):
    def forward(self, x):
        return super().forward(x).pow(2).mean()


class Losses(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(1000)

    def forward(self, x, target):
        return F.cross_entropy(self.norm(x), target) + x.softmax(-1).pow(2).sum()


class Pixels(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3), nn.Linear(8, 10)

    def forward(self, x, target):
        return F.cross_entropy(self.c(F.relu(self.b(F.relu(self.a(x)))).mean((2, 3))), target)


class Elements(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w, self.b = nn.Parameter(torch.randn(2048)), nn.Parameter(torch.randn(2048))

    def forward(self, x):
        return (F.gelu(x * self.w + self.b) * x.tanh()).sum()


def _labelled(n: int, *shape: int) -> tuple:
    return torch.randn(n, *shape), torch.randint(0, 10, (n,))


# module, its inputs for a size, sizes
CASES: dict = {
    "mlp": (Perceptron, lambda n: _labelled(n, 256), (64, 7, 33, 512, 2, 100)),
    "transformer block": (
        Attention, lambda n: (torch.randn(*n, 64),),
        ((4, 48), (2, 33), (3, 7), (8, 128), (5, 16), (2, 2))),
    "losses": (Losses, lambda n: _labelled(n, 1000), (256, 7, 33, 4096, 2, 64)),
    "convolutions": (Pixels, lambda n: _labelled(n, 3, 16, 16), (8, 2, 7, 16, 3, 12)),
    "elementwise": (Elements, lambda n: (torch.randn(n, 2048),), (64, 7, 33, 1000, 2, 2047)),
}


def step(f, module, args) -> None:
    """One forward and backward."""
    f(*args).backward()
    for p in module.parameters():
        p.grad = None


def timed(function, *args) -> float:
    begin = time.perf_counter()
    function(*args)
    return time.perf_counter() - begin


def best(steps: list, budget: float) -> list[float]:
    """Seconds of each of some steps, run in turn: the best of many."""
    found = [float("inf")] * len(steps)
    end = time.perf_counter() + budget
    while time.perf_counter() < end:
        for i, s in enumerate(steps):
            found[i] = min(found[i], timed(s))
    return found


def main(names: list[str], budget: float = 4.0) -> None:
    torch.set_num_threads(1)  # two would be at the mercy of whatever else runs
    compiled = []
    build = native.build

    def counted(source, name, extra=()):
        if not name.startswith(("runtime", "product")) and not cache.intact(name):
            compiled.append(name)
        return build(source, name, extra)

    native.build = counted
    for name in names or CASES:
        kind, inputs, sizes = CASES[name]
        module = kind()
        general = torch.compile(module, dynamic=True)
        examples = [inputs(n) for n in sizes]
        step(general, module, examples[0])
        first = len(compiled)
        news = [timed(step, general, module, args) for args in examples[1:]]
        print(f"{name}: compiled {first} for the first size, {len(compiled) - first} for five "
              f"more; a new size takes {1e3 * min(news):.1f} to {1e3 * max(news):.1f} ms")
        compiled.clear()
        for args in (examples[0], examples[1], max(examples, key=lambda a: a[0].numel())):
            single = torch.compile(module, dynamic=False)
            step(single, module, args)
            step(general, module, args)
            one, many = best([lambda: step(single, module, args),
                              lambda: step(general, module, args)], budget)
            shapes = " ".join(str(tuple(a.shape)) for a in args)
            print(f"  {shapes}: one size {1e3 * one:.3f} ms, all sizes {1e3 * many:.3f} ms "
                  f"({many / one:.2f} x)")
        compiled.clear()
    alternating(budget)


def alternating(budget: float) -> None:
    """Calls whose sizes alternate beside calls of one size."""
    f = torch.compile(lambda x, w: (x * w).sin().sum(), dynamic=True)
    a, b, w = torch.randn(8, 16), torch.randn(9, 16), torch.randn(16)
    for x in (a, b, a, b):
        f(x, w)
    same, other = best([lambda: [f(a, w) for _ in range(100)],
                        lambda: [f(x, w) for _ in range(50) for x in (a, b)]], budget)
    print(f"calls: {1e4 * same:.2f} us with one size, {1e4 * other:.2f} us with two in turn")


if __name__ == "__main__":
    main(sys.argv[1:])
