"""The command line; `python tests/fuzz --help` says what there is."""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import stat
import sys
import tempfile
import warnings
from pathlib import Path


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="python tests/fuzz", description=(
        "Random programs from the operator table, run in many ways and compared with eager mode."))
    p.add_argument("--seeds", default="0:1000000000", help="A:B, which programs (default: all)")
    p.add_argument("--minutes", type=float, help="begin no portion after this time")
    p.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    p.add_argument("--modes", help="comma separated; default all, `torch` where it is installed")
    p.add_argument("--full", action="store_true", help="every mode for every program")
    p.add_argument("--portion", type=int, default=16, help="programs that a process gets at once")
    p.add_argument("--patience", type=float, default=120, help="seconds of silence that are a hang")
    p.add_argument("--shrink", type=float, default=20, help="seconds to make a failure small")
    p.add_argument("--report", help="file for findings, one JSON object per line")
    p.add_argument("--logs", default=str(Path(tempfile.gettempdir()) / "pullback-fuzz"))
    p.add_argument("--quiet", action="store_true", help="only the summary")
    p.add_argument("--cc", default="-O0", help="how the C compiler is to optimise, or `as it is`")
    p.add_argument("--textbook", action="store_true", help="the programs of textbook.py")
    p.add_argument("--show", type=int, help="print the program of a seed")
    p.add_argument("--replay", help="seeds, comma separated: judge them here, in all modes given")
    p.add_argument("--run", help="a file with a printed program: judge it, in all modes given")
    p.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    p.add_argument("--serve-torch", action="store_true", help=argparse.SUPPRESS)
    return p


def every_mode() -> list[str]:
    from . import theirs
    from .judge import OPTIONS
    from .modes import MODES

    return [*MODES, *OPTIONS, *(["torch"] if theirs.interpreter() else [])]


def quick_compiler(flag: str) -> None:
    """Native code is compared, not timed: a compiler that hurries."""
    import shutil

    if flag == "as it is" or os.environ.get("PULLBACK_CC") or not shutil.which("gcc"):
        return
    folder = Path(tempfile.gettempdir()) / f"pullback-fuzz-cc-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    script = folder / f"gcc{flag}"
    if not script.exists():
        own = script.with_suffix(f".{os.getpid()}")
        own.write_text(f'#!/bin/sh\nexec gcc "$@" {flag}\n')
        own.chmod(own.stat().st_mode | stat.S_IXUSR)
        own.replace(script)
    os.environ["PULLBACK_CC"] = str(script)


def main(arguments=None) -> int:
    settings = parser().parse_args(arguments)
    if settings.serve_torch:
        from . import theirs

        theirs.serve()
        return 0
    quick_compiler(settings.cc)
    settings.modes = settings.modes.split(",") if settings.modes else every_mode()
    unknown = [m for m in settings.modes if m not in every_mode()]
    if unknown:
        print(f"no such mode: {', '.join(unknown)}; there are {', '.join(every_mode())}")
        return 2
    if settings.show is not None:
        print(source(settings)(settings.show), end="")
        return 0
    if settings.worker:
        return work(settings)
    if settings.replay or settings.run:
        return replay(settings)
    settings.seeds = tuple(int(n) for n in settings.seeds.split(":"))
    if settings.textbook:
        from .textbook import COUNT

        settings.seeds = settings.seeds[0], min(COUNT, settings.seeds[1])
    from .runner import Run

    return Run(settings).run()


def source(settings):
    """What makes a program of a number."""
    if settings.textbook:
        from .textbook import program

        return program
    from .generate import generate

    return generate


def work(settings) -> int:
    """A worker: portions of seeds come in, places and findings go out."""
    from .judge import Judge

    warnings.simplefilter("ignore")
    faulthandler.enable()
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever programs print goes to the log

    def tell(message: dict) -> None:
        out.write(json.dumps(message) + "\n")
        out.flush()

    judge = Judge(settings.modes, tell, settings.shrink, settings.full, source(settings))
    for line in sys.stdin:
        begin, end, warm = json.loads(line)
        judge.counts, judge.times = {}, {}
        (judge.warm if warm else judge.run)(range(begin, end))
        tell({"done": end - begin, "counts": judge.counts, "times": judge.times})
    return 0


def replay(settings) -> int:
    """Seeds, or a program of a file, judged in this process in all modes."""
    from .judge import Judge, again
    from .program import read
    from .runner import shown

    warnings.simplefilter("ignore")
    if settings.run:
        program = read(Path(settings.run).read_text())
        bad = 0
        for mode in settings.modes:
            found = again(mode, program)
            print(f"{mode}: {found[0] + ', ' + found[1] if found else 'agrees'}")
            bad += found is not None
        return 1 if bad else 0
    found = []
    judge = Judge(settings.modes, lambda m: found.append(m["finding"]) if "finding" in m else None,
                  settings.shrink, True, source(settings))
    judge.run([int(s) for s in settings.replay.split(",")])
    print("\n".join(shown(f, settings.textbook) for f in found) or "agrees")
    return 1 if found else 0
