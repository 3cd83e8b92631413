"""How long graphs of thousands of nodes take to compile: `python -m bench.depth`.

A chain of pointwise operators, an unrolled recurrent network, a sum of many terms and a chain of
reads by index, each with about so many operators in the forward, are compiled with their gradients
and called once, in a process of its own without anything in the cache. Printed are the nodes of the
graph for forward and backward, seconds of the processor for capturing and cutting, lowering and
writing, the C compiler, all, and the largest size of the process in MB. A pass of more than linear
time would show.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile

SIZES = 1_000, 10_000
PASSES = {"lower": "pullback.compile.lower", "schedule": "pullback.compile.schedule",
          "make_unit": "pullback.compile.unit"}


def programs(torch, n: int) -> dict:
    """Name -> a function with about n operators, and its arguments."""

    def chain(x):
        for _ in range(n // 3):
            x = torch.sin(x) * 0.999 + 0.001
        return x.sum()

    def steps(h, w):
        for _ in range(n // 2):
            h = torch.tanh(h @ w)
        return h.sum()

    def terms(x):
        return sum(x * float(k) for k in range(n // 2)).sum()

    def reads(x, table):
        i = table
        for _ in range(n):
            i = table[i]
        return x[i].sum()

    torch.manual_seed(0)
    x = torch.randn(8, 8, requires_grad=True)
    w = (torch.randn(8, 8) * 0.2).requires_grad_()
    return {"chain": (chain, (x,)), "steps": (steps, (x, w)), "terms": (terms, (x,)),
            "reads": (reads, (x, torch.randperm(8)))}


def now() -> float:
    """Seconds of the processor, those of the C compiler included."""
    return sum(os.times()[:4])


def timed(spent: dict, kind: str, owner: object, name: str) -> None:
    """Add up the time of a function."""
    function = getattr(owner, name)

    def run(*args, **kwargs):
        begun = now()
        try:
            return function(*args, **kwargs)
        finally:
            spent[kind] += now() - begun

    setattr(owner, name, run)


def child(name: str, n: int) -> None:
    """Compile one program and print what it took."""
    import importlib

    import pullback as torch
    from pullback.compile import toolchain

    spent = {"writing": 0.0, "compiler": 0.0}
    function, args = programs(torch, n)[name]
    torch.compile(lambda a: a @ a)(args[0].detach())  # the runtime is there, and that for products
    for pass_, module in PASSES.items():
        timed(spent, "writing", importlib.import_module(module), pass_)
    timed(spent, "compiler", toolchain.Toolchain, "build")
    run = torch.compile(function)
    begun = now()
    loss = run(*args)
    loss.backward()
    total = now() - begun
    (program,) = run.programs.values()
    nodes = len(program.joint.module.graph.nodes)
    grad, args[0].grad = args[0].grad, None
    function(*args).backward()
    same = torch.allclose(grad, args[0].grad, rtol=1e-3, atol=1e-6)
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps([nodes, total - sum(spent.values()), *spent.values(), total, size, same]))


def main() -> None:
    """Print a line for every program and size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--child", nargs=2)
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES)
    options = parser.parse_args()
    if options.child:
        child(options.child[0], int(options.child[1]))
        return
    print(f"{'':10}{'operators':>10}{'nodes':>10}{'capture s':>11}{'write s':>9}{'C s':>8}"
          f"{'all s':>8}{'MB':>7}")
    for name in ("chain", "steps", "terms", "reads"):
        for n in options.sizes:
            with tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, "-m", "bench.depth", "--child", name, str(n)]
                text = subprocess.run(
                    command, capture_output=True, text=True, check=True,
                    env=dict(os.environ, PULLBACK_CACHE_DIR=folder)).stdout
            nodes, capture, write, compiler, total, size, same = json.loads(text)
            print(f"{name:10}{n:10,}{nodes:10,}{capture:11.1f}{write:9.1f}{compiler:8.1f}"
                  f"{total:8.1f}{size:7}{'' if same else '  differs from eager'}", flush=True)


if __name__ == "__main__":
    main()
