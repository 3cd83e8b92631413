"""Runs the benchmarks: `python -m bench [case ...]`, or `make bench ARGS="small_operators"`.

Each row is the smallest of many repeats, since everything that disturbs a measurement makes it
slower. Comparisons with other libraries are made elsewhere; these numbers are for comparing
ourselves with ourselves. `--json FILE` writes them down, `--against FILE` shows the ratio to those.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import timeit
from pathlib import Path

from rich.console import Console
from rich.table import Table

from .cases import CASES


def seconds_of(function, budget: float) -> float:
    """Seconds per call: the best of repeats that together take about `budget`."""
    function()
    timer = timeit.Timer(function)
    number, spent = 1, timer.timeit(1)
    while spent < budget / 20 and number < 10_000_000:
        number *= 2
        spent = timer.timeit(number)
    repeat = max(3, min(20, int(budget / max(spent, 1e-9))))
    return min(timer.repeat(repeat, number)) / number


def seconds_in_new_process(program: str, cache: str | None, repeat: int) -> float:
    """Seconds that a program needs to run, or that it prints; the best of some."""
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, [os.getcwd(), *sys.path[1:]])))
    command = "import time; b = time.perf_counter()\n{}\nprint(time.perf_counter() - b)"
    text = program if cache else command.format(program)
    times = []
    with tempfile.TemporaryDirectory() as warm:
        for i in range(repeat + (cache == "warm")):
            with tempfile.TemporaryDirectory() as cold:
                env["PULLBACK_CACHE_DIR"] = warm if cache == "warm" else cold
                done = subprocess.run(
                    [sys.executable, "-c", text], env=env, text=True, capture_output=True
                )
            if done.returncode:
                raise RuntimeError(done.stderr.strip().splitlines()[-1])
            if cache != "warm" or i > 0:
                times.append(float(done.stdout.split()[-1]))
    return min(times)


def measure(work, budget: float) -> float:
    if isinstance(work, str):
        return seconds_in_new_process(work, None, 5)
    if isinstance(work, tuple):
        return seconds_in_new_process(*work, 3)
    return seconds_of(work, budget)


def text_of(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1 or unit == "µs":
            return f"{seconds * scale:.3g} {unit}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.split("\n")[0])
    parser.add_argument("cases", nargs="*", help=", ".join(c.__name__ for c in CASES))
    parser.add_argument("--seconds", type=float, default=0.4, help="time spent on each row")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    parser.add_argument("--against", type=Path, help="an earlier --json file")
    args = parser.parse_args()
    unknown = set(args.cases) - {c.__name__ for c in CASES}
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    before = json.loads(args.against.read_text()) if args.against else {}
    found, failed, console = {}, 0, Console()
    for function in CASES:
        if args.cases and function.__name__ not in args.cases:
            continue
        table = Table("", "best", *(["before"] if before else []), box=None, padding=(0, 2))
        try:
            for row, work in function():
                name = f"{function.__name__}: {row}"
                found[name] = measure(work, args.seconds)
                ratio = [f"{found[name] / before[name]:.2f} x"] if name in before else []
                table.add_row(row, text_of(found[name]), *ratio)
        except Exception as error:
            failed += 1
            table.add_row("failed", f"{type(error).__name__}: {error}")
        console.print(f"[bold]{function.__name__}[/bold]  {function.__doc__}")
        console.print(table)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
