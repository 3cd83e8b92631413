"""Eager calls on small tensors: `python -m bench.small [torch]`, once for each library.

Microseconds of a call on one thread, the least of 25 windows of 2 ms.  `PULLBACK_EAGER_KERNELS=1`
waits for the kernels in C at the first call instead of building them beside the program.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from typing import Any


def calls(torch: Any) -> dict[str, Callable]:
    """What is timed, by its name."""
    nn, functional = torch.nn, torch.nn.functional
    x, w, y = torch.randn(8, 16), torch.randn(16), torch.randint(0, 16, (8,))
    leaf = torch.randn(8, 16, requires_grad=True)
    texts, image = torch.randn(2, 8, 16), torch.randn(1, 3, 8, 8)
    linear, norm, lstm = nn.Linear(16, 16), nn.LayerNorm(16), nn.LSTM(16, 16, batch_first=True)
    heads, conv = nn.MultiheadAttention(16, 2, batch_first=True), nn.Conv2d(3, 8, 3, padding=1)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)

    def both(forward: Callable) -> Callable:
        return lambda: forward().sum().backward()

    return {
        "x + x": lambda: x + x,
        "x.exp()": lambda: x.exp(),
        "x.sum()": lambda: x.sum(),
        "x.mean(-1)": lambda: x.mean(-1),
        "x.view(4, 32)": lambda: x.view(4, 32),
        "x[2:5]": lambda: x[2:5],
        "x @ x.t()": lambda: x @ x.t(),
        "torch.cat([x, x])": lambda: torch.cat([x, x]),
        "x.gather(1, i)": lambda: x.gather(1, y[:, None]),
        "torch.where(x > 0, x, x)": lambda: torch.where(x > 0, x, x),
        "torch.randn(8, 16)": lambda: torch.randn(8, 16),
        "F.softmax": lambda: functional.softmax(x, -1),
        "F.layer_norm": lambda: functional.layer_norm(x, (16,), w, w),
        "F.gelu": lambda: functional.gelu(x),
        "F.cross_entropy": lambda: functional.cross_entropy(x, y),
        "F.max_pool2d": lambda: functional.max_pool2d(image, 2),
        "nn.Linear": lambda: linear(x),
        "nn.LayerNorm": lambda: norm(x),
        "nn.Conv2d": lambda: conv(image),
        "nn.LSTM, 8 steps": lambda: lstm(texts),
        "nn.MultiheadAttention": lambda: heads(texts, texts, texts),
        "nn.TransformerEncoderLayer": lambda: layer(texts),
        "layer_norm, both ways": both(lambda: functional.layer_norm(leaf, (16,), w, w)),
        "cross_entropy, both ways": both(lambda: functional.cross_entropy(leaf, y)),
        "nn.LSTM, both ways": both(lambda: lstm(texts)[0]),
        "nn.TransformerEncoderLayer, both ways": both(lambda: layer(texts)),
    }


def least(call: Callable) -> float:
    """Seconds of a call."""
    for _ in range(40):
        call()
    begun = time.perf_counter()
    call()
    count = max(3, int(2e-3 / (time.perf_counter() - begun)))
    best = float("inf")
    for _ in range(25):
        begun = time.perf_counter()
        for _ in range(count):
            call()
        best = min(best, (time.perf_counter() - begun) / count)
    return best


def main() -> None:
    torch = importlib.import_module(sys.argv[1] if len(sys.argv) > 1 else "pullback")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for name, call in calls(torch).items():
        print(f"{name:40s} {least(call) * 1e6:8.2f} us", flush=True)


if __name__ == "__main__":
    main()
