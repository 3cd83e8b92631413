"""Compare trainings on PyTorch and on Pullback, eager and compiled: the losses must agree.

    python -m compat [NAME ...] [--torch PYTHON] [--pullback PYTHON] [--site DIR] [--markdown]

`--torch` is an interpreter that has PyTorch, `--pullback` one that has not; the packages are
installed without their dependencies in `--site`, or where the interpreters find them.  Exits
non-zero if a program fails or its losses differ by more than 1e-5 of their size.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path

LIMIT = 1e-5
TARGETS = ("torch", "pullback", "pullback-compile")


def losses(python: str, target: str, name: str, site: str | None, steps: int) -> list | str:
    """The losses of one run, or the last line of what went wrong."""
    path = [str(Path(__file__).parent.parent), *([site] if site else [])]
    run = subprocess.run(
        [python, "-W", "ignore", "-m", "compat.child", target, name, str(steps)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
    )
    for line in run.stdout.splitlines():
        if line.startswith("LOSSES "):
            return json.loads(line[len("LOSSES ") :])
    return (run.stderr.strip().splitlines() or ["no output"])[-1][:160]


def difference(got: list, wanted: list) -> float:
    """The largest difference of two trajectories, in units of their values."""
    return max(abs(g - w) / max(abs(w), 1e-3) for g, w in zip(got, wanted, strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--torch", default=sys.executable)
    parser.add_argument("--pullback", default=sys.executable)
    parser.add_argument("--site", default=None)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    failed = 0
    for name in options.names or listed():
        row, wanted = [], None
        for target in TARGETS:
            python = options.torch if target == "torch" else options.pullback
            begun = time.perf_counter()
            got = losses(python, target, name, options.site, options.steps)
            seconds = time.perf_counter() - begun
            if isinstance(got, str):
                row.append(f"{target}: {got}")
                failed += 1
            elif target == "torch":
                wanted = got
                row.append(f"{got[0]:.4f} to {got[-1]:.4f}")
            elif wanted is not None:
                worst = difference(got, wanted)
                failed += worst > LIMIT
                row.append(f"{worst:.1e}{' DIFFERS' if worst > LIMIT else ''} ({seconds:.0f} s)")
        print(f"| {name} | {' | '.join(row)} |" if options.markdown else f"{name:22}", end="")
        print("" if options.markdown else "  ".join(row), flush=True)
    return 1 if failed else 0


def listed() -> list[str]:
    """The names in `programs.py`, which cannot be imported without a `torch`."""
    lines = (Path(__file__).parent / "programs.py").read_text().splitlines()
    pairs = itertools.pairwise(lines)
    return [b.split("(")[0][len("def ") :] for a, b in pairs if a.startswith("@program")]


if __name__ == "__main__":
    sys.exit(main())
