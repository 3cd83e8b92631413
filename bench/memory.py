"""What `compile(memory=...)` takes, simulated and measured: `python -m bench.memory`.

Each row is a process of its own. Everything is compiled first; then the high-water mark of the
process (`VmHWM`) is set back, and forward and backward run once. Linux only.

`python -m bench.memory --models`: the models of `bench/cut.py`, eager and compiled with
`memory=1.0`, by `tracemalloc`, which counts the allocator of compiled functions, too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

LAYERS, ROWS, WIDTH = 12, 4096, 256


def network(torch):
    """A residual network, and its arguments."""
    F = torch.nn.functional

    def fn(x, *weights):
        for w in weights:
            x = x + torch.tanh(F.layer_norm(x, (WIDTH,)) @ w) @ w.T
        return x

    torch.manual_seed(0)
    args = [torch.randn(ROWS, WIDTH)]
    args += [torch.randn(WIDTH, 4 * WIDTH) * 0.05 for _ in range(LAYERS)]
    return fn, [a.requires_grad_() for a in args]


def status(name: str) -> int:
    """A line of the process's status, in bytes."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))


def child(memory) -> None:
    """Run one row and print it."""
    import pullback as torch

    fn, args = network(torch)
    said, way, run = None, "", fn
    if memory != "eager":
        run = torch.compile(fn, memory=memory, options={"fuse_backward": False})
        flat, spec = torch.utils._pytree.tree_flatten((tuple(args), {}))
        program = run.build(flat, spec)
        program.part("backward")
        report = program.report()
        way, said = report.way, report.phases and report.phases.peak
        run = lambda *args: program.run(list(args))
    seed = torch.ones(ROWS, WIDTH)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before, begun = status("VmRSS"), time.perf_counter()
    out = run(*args)
    grads = torch.autograd.grad(out, args, seed)
    seconds = time.perf_counter() - begun
    taken = status("VmHWM") - before
    total = sum(float(g.abs().sum()) for g in grads)
    print(json.dumps([said, taken, seconds, way, total]))


def traced(torch, function, args, calls: int = 2) -> tuple:
    """Bytes beyond the arguments in the worst moment of the last of some calls, and gradients."""
    import gc
    import tracemalloc

    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    wanted = [a for a in args if a.requires_grad]
    for _ in range(calls):
        out = grads = None
        tracemalloc.reset_peak()
        out = function(*args)
        grads = torch.autograd.grad(out, wanted, torch.ones_like(out))
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    return peak, grads


def both(torch, name: str, memory: float) -> tuple[int, int, object]:
    """Peaks of eager execution and of the compiled function, and its report."""
    from pullback.compile import native

    from .cut import MODELS

    function, args = MODELS[name](torch, torch.nn.functional)
    for _ in range(16):  # from the twelfth on operators are called by plan
        out = function(*args)
        torch.autograd.grad(out, [a for a in args if a.requires_grad], torch.ones_like(out))
    eager, _ = traced(torch, function, args)
    run = torch.compile(function, memory=memory)
    traced(torch, run, args)
    native.runtime().trim()
    return eager, traced(torch, run, args)[0], run.report()


def ours(name: str) -> list[int]:
    """Peaks: eager, compiled, compiled with as little as possible."""
    import pullback as torch

    eager, compiled, _ = both(torch, name, 1.0)
    return [eager, compiled, both(torch, name, 0.0)[1]]


def models() -> None:
    """Print a line for every model; fail if a compiled one takes more than eager execution."""
    import pullback as torch

    from .cut import MODELS

    above = []
    columns = f"{'simulated':>12}{'measured':>12}{'ratio':>8}"
    print(f"{'peak in bytes':26}{'eager:':>8}{columns}{'compiled:':>11}{columns}")
    for name in MODELS:
        eager, found, report = both(torch, name, 1.0)
        if found > eager:
            above.append(name)
        print(f"{name:34}{report.eager:12,}{eager:12,}{eager / report.eager:8.3f}{'':11}"
              f"{report.phases.peak:12,}{found:12,}{found / report.phases.peak:8.3f}", flush=True)
    if above:
        raise SystemExit("above eager execution: " + ", ".join(above))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--child")
    parser.add_argument("--models", action="store_true")
    options = parser.parse_args()
    if options.models:
        models()
        return
    if options.child:
        child(json.loads(options.child))
        return
    print(f"{'memory':12}{'simulated':>12}{'measured':>12}{'ratio':>8}{'s':>8}  way")
    for memory in ["eager", None, 1.0, "250MB", "200MB", 0.0]:
        command = [sys.executable, "-m", "bench.memory", "--child", json.dumps(memory)]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        said, taken, seconds, way, _ = json.loads(text)
        ratio = f"{taken / said:8.3f}" if said else f"{'':8}"
        simulated = f"{said / 1e6:10.1f}MB" if said else f"{'':12}"
        print(f"{memory!s:12}{simulated}{taken / 1e6:10.1f}MB{ratio}{seconds:8.2f}  {way}",
              flush=True)


if __name__ == "__main__":
    main()
