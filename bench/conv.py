"""Training steps of convolutional networks, compiled, beside PyTorch.

    python -m bench.conv [--against torch] [--rounds 15] [--threads 2]

runs the steps of both libraries in turn in one process (PyTorch eager: its convolutions are those
of `torch.compile`) and prints the median and the minimum of each, and the ratios.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import time
from collections.abc import Callable


def small(nn):
    """Three convolutions with batch normalisation and pools, 32×32 images."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(64, 10))  # fmt: skip


def strided(nn):
    """Strides instead of pools, and a transposed convolution, 64×64 images."""
    return nn.Sequential(
        nn.Conv2d(3, 24, 5, stride=2, padding=2), nn.SiLU(),
        nn.Conv2d(24, 48, 3, stride=2, padding=1), nn.SiLU(),
        nn.ConvTranspose2d(48, 24, 4, stride=2, padding=1), nn.SiLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10))  # fmt: skip


def separable(nn):
    """Convolutions of single channels and of single pixels, 32×32 images."""
    layers = [nn.Conv2d(3, 48, 3, padding=1), nn.ReLU()]
    for _ in range(3):
        layers += [nn.Conv2d(48, 48, 3, padding=1, groups=48), nn.ReLU(), nn.Conv2d(48, 48, 1),
                   nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 10))


def deep(nn):
    """Many channels, few pixels: 256 channels of 8×8."""
    return nn.Sequential(
        nn.Conv2d(3, 256, 3, padding=1), nn.ReLU(), nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(),
        nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(256, 10))  # fmt: skip


MODELS = {"small": (small, 32), "strided": (strided, 64), "separable": (separable, 32),
          "deep": (deep, 8)}


def step_of(torch, make: Callable, side: int, compiled: bool) -> Callable:
    """One step of training on the same numbers."""
    torch.manual_seed(0)
    model, F = make(torch.nn), torch.nn.functional
    rate = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(32, 3, side, side), torch.randint(0, 10, (32,))
    run = torch.compile(model) if compiled else model

    def step() -> float:
        rate.zero_grad()
        loss = F.cross_entropy(run(x), y)
        loss.backward()
        rate.step()
        return loss.item()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", help="another library with PyTorch's names")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    pb = importlib.import_module("pullback")
    pb.set_num_threads(args.threads)
    libraries = {"pullback": (pb, True)}
    if args.against:
        other = importlib.import_module(args.against)
        other.set_num_threads(args.threads)
        libraries[args.against] = (other, False)
    for name, (make, side) in MODELS.items():
        steps = {k: step_of(library, make, side, c) for k, (library, c) in libraries.items()}
        times: dict[str, list[float]] = {k: [] for k in steps}
        losses = {k: [step() for _ in range(3)][-1] for k, step in steps.items()}
        for _ in range(args.rounds):
            for k, step in steps.items():
                begin = time.perf_counter()
                step()
                times[k].append(1e3 * (time.perf_counter() - begin))
        text = ", ".join(f"{k} {statistics.median(t):.1f} / {min(t):.1f} ms"
                         for k, t in times.items())
        if args.against:
            a, b = times.values()
            text += f", ratio {statistics.median(a) / statistics.median(b):.2f} / " \
                    f"{min(a) / min(b):.2f}"
            first, second = losses.values()
            assert abs(first - second) < 1e-4 * abs(second), losses
        print(f"{name}: {text}")


if __name__ == "__main__":
    main()
