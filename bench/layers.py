"""The least memory of networks of equal layers: eager, checkpointed by hand, and compiled.

`python -m bench.layers` prints the peak of forward and backward in bytes beyond the arguments, by
`tracemalloc`: of eager execution, of `checkpoint` around every k layers with the best k, and of
`compile(memory=0.0)`, measured and simulated. It fails where a compiled function takes more than
either of the others.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

from . import lines

GROUPS = 1, 2, 3, 4, 5, 6, 8, 12


def dense(torch, x, w):
    """A layer of a perceptron."""
    return torch.tanh(x @ w)


def rectified(torch, x, w):
    """The same with the operator that saves a mask."""
    return torch.relu(x @ w)


def residual(torch, x, w):
    """A residual layer, twice as wide inside."""
    F = torch.nn.functional
    return x + F.gelu(F.layer_norm(x, x.shape[-1:]) @ w) @ w.t()


def attention(torch, x, w):
    """A layer of attention over 8 sequences."""
    F = torch.nn.functional
    q = (F.layer_norm(x, x.shape[-1:]) @ w).view(8, -1, w.shape[1])
    return x + (F.softmax(q @ q.transpose(1, 2), -1) @ q).reshape(-1, w.shape[1]) @ w.t()


# layer, how many, rows, columns, columns inside
NETWORKS = {
    "perceptron, 12 layers": (dense, 12, 1024, 128, 128),
    "perceptron, 30 layers": (dense, 30, 1024, 128, 128),
    "small, 12 layers": (dense, 12, 512, 64, 64),
    "rectified, 16 layers": (rectified, 16, 1024, 128, 128),
    "residual, 12 layers": (residual, 12, 1024, 128, 256),
    "attention, 8 layers": (attention, 8, 1024, 128, 128),
}


def network(torch, name: str) -> tuple[Callable, Callable, list]:
    """A network, the same with `checkpoint` around every k layers, and its arguments."""
    from pullback.utils.checkpoint import checkpoint

    layer, count, rows, wide, inside = NETWORKS[name]

    def run(x, *weights):
        for w in weights:
            x = layer(torch, x, w)
        return x

    def by_hand(k: int) -> Callable:
        def grouped(x, *weights):
            for n in range(0, len(weights), k):
                x = checkpoint(run, x, *weights[n : n + k], use_reentrant=False)
            return x
        return grouped

    torch.manual_seed(0)
    shapes = [(rows, wide)] + [(wide, inside)] * count
    args = [(torch.randn(*s) * (1.0 if n == 0 else 0.1)) for n, s in enumerate(shapes)]
    return run, by_hand, [a.requires_grad_() for a in args]


def peak(torch, function: Callable, args: list, warm: int = 2) -> int:
    """Bytes beyond the arguments in the worst moment of a call and its backward."""
    from pullback.compile import native

    wanted = [a for a in args if a.requires_grad]

    def once() -> None:
        out = function(*args)
        assert torch.autograd.grad(out, wanted, torch.ones_like(out))

    for _ in range(warm):
        once()
    native.runtime().trim()  # workspaces of compiled functions come back with the next call
    gc.collect()
    tracemalloc.start()
    try:
        once()
        tracemalloc.reset_peak()
        once()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def row(torch, name: str) -> tuple[int, int, int, int, object]:
    """Peaks: eager, by hand (and the best k), compiled; and the report of that."""
    run, by_hand, args = network(torch, name)
    eager = peak(torch, run, args, 13)  # from the twelfth on operators are called by plan
    groups = [k for k in GROUPS if k < NETWORKS[name][1]]
    best, k = min((peak(torch, by_hand(k), args, 13), k) for k in groups)
    least = torch.compile(run, memory=0.0)
    return eager, best, k, peak(torch, least, args), least.report()


HEADER = (f"{'peak in bytes':26}{'eager':>12}{'by hand':>12}{'k':>4}{'compiled':>12}"
          f"{'simulated':>12}  way")


def line(name: str) -> tuple[str, bool]:
    """The text for a network; does the compiled one take more than it must?"""
    import pullback as torch

    eager, hand, k, ours, report = row(torch, name)
    return (f"{name:26}{eager:12,}{hand:12,}{k:4}{ours:12,}{report.phases.peak:12,}  {report.way}",
            ours > min(eager, hand))


if __name__ == "__main__":
    lines.main(__doc__, NETWORKS, HEADER, line, "more than eager or checkpointed by hand")
