"""A long run at constant memory: training steps with hooks, checkpoints and second derivatives.

    python -m bench.soak [steps]        (100,000 where no number is given)

Prints resident memory and the number of objects ten times on the way; exits non-zero if either
grew after the first tenth.
"""

from __future__ import annotations

import gc
import resource
import sys
import time

import pullback as torch
from pullback.utils.checkpoint import checkpoint

nn, graph = torch.nn, torch.autograd.graph


class Program:
    """A small network and everything that may be attached to it."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.first = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
        self.last = nn.Linear(8, 1)
        parameters = [*self.first.parameters(), *self.last.parameters()]
        self.optimizer = torch.optim.SGD(parameters, lr=1e-3)
        self.x, self.y = torch.randn(4, 8), torch.randn(4, 1)
        self.calls = 0
        for p in parameters:
            p.register_post_accumulate_grad_hook(self.count)

    def count(self, _) -> None:
        self.calls += 1

    def step(self, i: int) -> float:
        x = self.x.clone().requires_grad_()
        h = checkpoint(self.first, x, use_reentrant=i % 2 == 0)
        h.register_hook(lambda g: g * 1.0)
        with graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            out = self.last(h)
        out.grad_fn.register_hook(lambda inputs, outputs: None)
        loss = ((out - self.y) ** 2).mean()
        if i % 50 == 1:
            (g,) = torch.autograd.grad(loss, x, create_graph=True)
            loss = loss + (g * g).sum()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def resident() -> float:
    """Resident memory in MB."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize() / 2**20


def soak(steps: int) -> bool:
    """Run, report, and say whether memory stayed where it was."""
    program, begun, seen = Program(), time.perf_counter(), []
    for tenth in range(10):
        for i in range(steps // 10):
            loss = program.step(i)
        gc.collect()
        seen.append((resident(), len(gc.get_objects())))
        rate = (tenth + 1) * (steps // 10) / (time.perf_counter() - begun)
        print(
            f"{(tenth + 1) * (steps // 10):>8} steps  {seen[-1][0]:7.1f} MB  {seen[-1][1]:>7} "
            f"objects  loss {loss:.6f}  {rate:.0f} steps/s",
            flush=True,
        )
    memory, objects = seen[-1][0] - seen[0][0], seen[-1][1] - seen[0][1]
    print(f"after the first tenth: {memory:+.1f} MB, {objects:+d} objects")
    return memory < 1 and objects < 100


if __name__ == "__main__":
    sys.exit(not soak(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
