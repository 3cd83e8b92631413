"""Compare trainings on PyTorch and on Pullback, eager and compiled: the losses must agree.

    python -m compat [NAME ...] [--torch PYTHON] [--pullback PYTHON] [--site DIR] [--markdown]

`--torch` is an interpreter that has PyTorch, `--pullback` one that has not; the packages are
installed without their dependencies in `--site`, or where the interpreters find them: `make compat`
arranges that.  A run passes if its losses differ from PyTorch's by at most 1e-5 of their size; the
compiled one must also have been compiled: a handful of captures, no call that ran eagerly and no
graph that ran on NumPy.  Exits non-zero if a run does not pass.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

LIMIT = 1e-5
CAPTURES = 4  # of 20 steps: more, and it is compiling that is measured
TARGETS = ("torch", "pullback", "pullback-compile")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
HEAD = (
    "| program | loss | eager | compiled | captures | ms: PyTorch | eager | compiled |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- |"
)


@dataclass
class Outcome:
    """One run of a program: its losses, or what went wrong."""

    error: str | None = None
    losses: tuple = ()
    seconds: float = 0.0
    captures: int = 0
    eagerly: int = 0
    on_numpy: int = 0

    def difference(self, wanted: Outcome) -> float:
        """The largest difference of two trajectories, in units of their values."""
        pairs = zip(self.losses, wanted.losses, strict=True)
        found = [abs(g - w) / max(abs(w), 1e-3) for g, w in pairs]
        return max(found) if all(map(math.isfinite, found)) else math.inf

    def fault(self, wanted: Outcome) -> str | None:
        """Why this run does not pass."""
        if self.error or wanted.error:
            return self.error or "nothing to compare with"
        if not self.difference(wanted) <= LIMIT:
            return f"differs by {self.difference(wanted):.1e}"
        if self.eagerly or self.on_numpy or self.captures > CAPTURES:
            return (f"{self.captures} captures, {self.eagerly} eager calls, "
                    f"{self.on_numpy} graphs on NumPy")
        return None

    def verdict(self, wanted: Outcome) -> str:
        """For the table."""
        return self.fault(wanted) or f"{self.difference(wanted):.1e}"


def run(python: str, target: str, name: str, site: str | None, steps: int) -> Outcome:
    """Train once, in a process of its own."""
    path = [str(Path(__file__).parent.parent), *([site] if site else [])]
    done = subprocess.run(
        [python, "-W", "ignore", "-m", "compat.child", target, name, str(steps)],
        env=os.environ | ONE_THREAD | {"PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
    )
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return Outcome(**json.loads(line[len("RESULT ") :]))
    return Outcome(f"{target}: " + (done.stderr.strip().splitlines() or ["no output"])[-1][:160])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--torch", default=sys.executable)
    parser.add_argument("--pullback", default=sys.executable)
    parser.add_argument("--site", default=None)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    unknown = set(options.names) - set(listed())
    if unknown:
        parser.error(f"no programs of these names: {', '.join(sorted(unknown))}")
    if options.markdown:
        print(HEAD)
    passed, names = [0, 0], options.names or list(listed())
    for name in names:
        found = [
            run(options.torch if target == "torch" else options.pullback, target, name,
                options.site, options.steps)
            for target in TARGETS
        ]
        print(row(f"{listed()[name]}: {name}", *found, options.markdown), flush=True)
        passed = [n + (o.fault(found[0]) is None) for n, o in zip(passed, found[1:])]
    print(f"\n{passed[0]} of {len(names)} agree eagerly, {passed[1]} compiled", file=sys.stderr)
    return 0 if min(passed) == len(names) else 1


def row(name: str, torch: Outcome, eager: Outcome, compiled: Outcome, markdown: bool) -> str:
    """One line of the table."""
    losses = torch.error or f"{torch.losses[0]:.4g} → {torch.losses[-1]:.4g}"
    times = [f"{o.seconds * 1e3:.3g}" for o in (torch, eager, compiled)]
    cells = [name, losses, eager.verdict(torch), compiled.verdict(torch), str(compiled.captures)]
    if markdown:
        return f"| {' | '.join([*cells, *times])} |"
    widths = 42, 20, 8, 8, 2, 6, 6, 6
    return "  ".join(c.ljust(w) for c, w in zip([*cells, *times], widths))


def listed() -> dict[str, str]:
    """Name and package of what is in `programs.py`; that wants a `torch` to be imported."""
    text = (Path(__file__).parent / "programs.py").read_text()
    return {name: package for package, name in re.findall(r'@program\("(.+)"\)\ndef (\w+)', text)}


if __name__ == "__main__":
    sys.exit(main())
