"""What `compile(memory=...)` takes, simulated and measured: `python -m bench.memory`.

Each row is a process of its own. Everything is compiled first; then the high-water mark of the
process (`VmHWM`) is set back, and forward and backward run once. Linux only.
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
        run = lambda *args: program.run(list(args), [a._data for a in args])
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


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--child")
    options = parser.parse_args()
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
