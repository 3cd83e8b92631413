"""Peaks of forward and backward beside PyTorch's and JAX's: `python -m bench.peaks [names]`.

Bytes beyond the arguments in the worst moment, gradients and result among them. Pullback:
`tracemalloc`, as in `bench/memory.py`. PyTorch, eager and `torch.compile`: what its profiler says
of allocations. JAX, `jit` and `jit` of a `checkpoint`: results and temporaries of XLA's plan, of
the same function (its captured graph, `bench/as_jax.py`). PyTorch is asked if it is installed here,
JAX if `--jax` names a Python that has it.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import subprocess
import sys

from .cut import MODELS
from .memory import ours

COLUMNS = "eager", "compiled", "least", "torch", "torch.compile", "jit", "checkpoint"


def of_torch(name: str) -> list[int]:
    """Eager, compiled."""
    import torch

    function, args = MODELS[name](torch, importlib.import_module("torch.nn.functional"))
    wanted = [a for a in args if a.requires_grad]

    def step(run):
        out = run(*args)
        return torch.autograd.grad(out, wanted, torch.ones_like(out))

    found = []
    for run in (function, torch.compile(function)):
        for _ in range(2):
            step(run)
        with torch.profiler.profile(profile_memory=True) as profiler:
            step(run)
        events = profiler.profiler.kineto_results.events()
        changes = [(e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]"]
        now = most = 0
        for _, change in sorted(changes, key=lambda c: c[0]):
            now += change
            most = max(most, now)
        found.append(most)
    torch._dynamo.reset()
    return found


def of_jax(name: str) -> list[int]:
    """With and without a checkpoint around everything."""
    import jax

    import pullback as torch
    from pullback.decomp import core_aten_decompositions
    from pullback.fx.experimental.proxy_tensor import make_fx

    from .as_jax import function

    own, args = MODELS[name](torch, torch.nn.functional)
    run = function(make_fx(own, decomposition_table=core_aten_decompositions())(*args))
    arrays = [jax.numpy.asarray(a.detach().numpy()) for a in args]
    places = [k for k, a in enumerate(args) if a.requires_grad]
    found = []
    for form in (run, jax.checkpoint(run)):

        def step(*arrays, form=form):
            def part(*some):
                given = list(arrays)
                for k, a in zip(places, some):
                    given[k] = a
                return form(*given)

            out, pull = jax.vjp(part, *[arrays[k] for k in places])
            return out, pull(jax.numpy.ones_like(out))

        plan = jax.jit(step).lower(*arrays).compile().memory_analysis()
        found.append(plan.temp_size_in_bytes + plan.output_size_in_bytes)
        if form is run:  # the same function?
            mine = own(*args).detach().numpy()
            if name != "dropout_mlp" and abs(form(*arrays) - mine).max() > 1e-3:
                raise SystemExit(f"{name}: JAX computes something else")
    return found


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jax", metavar="PYTHON", help="with JAX, NumPy, SciPy and ml_dtypes")
    parser.add_argument("--without-torch", action="store_true")
    parser.add_argument("--jax-child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.names or list(MODELS)
    if options.jax_child:
        for name in names:
            print(json.dumps(of_jax(name)), flush=True)
        return
    has_torch = not options.without_torch and importlib.util.find_spec("torch") is not None
    print(f"{'peak in bytes':24}" + "".join(f"{c:>14}" for c in COLUMNS))
    for name in names:
        found: list = ours(name)
        found += of_torch(name) if has_torch else [None] * 2
        if options.jax:
            command = [options.jax, "-m", "bench.peaks", "--jax-child", name]
            text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
            found += json.loads(text)
        else:
            found += [None] * 2
        print(f"{name:24}" + "".join(f"{n:14,}" if n is not None else f"{'-':>14}" for n in found),
              flush=True)


if __name__ == "__main__":
    sys.exit(main())
