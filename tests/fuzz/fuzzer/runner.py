"""Many processes that judge seeds, and one that watches them: for hangs, deaths and findings."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parents[1]
WARM = 40  # one portion of so many comes again: a new process pays for all first uses


class Worker:
    """A process that judges seeds, one portion at a time."""

    def __init__(self, number: int, options: list[str], folder: Path):
        self.number, self.log = number, folder / f"worker-{number}.log"
        env = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
               "PYTHONHASHSEED": "0"}
        self.process = subprocess.Popen(
            [sys.executable, str(HERE), "--worker", *options], env=env, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=open(self.log, "w"))  # noqa: SIM115  (the process has it)
        self.portion, self.place, self.heard = None, {}, time.monotonic()
        self.rest = b""  # the beginning of a line

    def messages(self) -> list:
        """All that it has said since; None at the end. A reader with a buffer would keep some."""
        read = os.read(self.process.stdout.fileno(), 1 << 16)
        *lines, self.rest = (self.rest + read).split(b"\n")
        return [json.loads(line) for line in lines] if read else [None]

    def give(self, portion: tuple[int, int], warm: bool = False) -> None:
        self.portion, self.warm, self.heard = portion, warm, time.monotonic()
        self.process.stdin.write(json.dumps([*portion, warm]) + "\n")
        self.process.stdin.flush()

    def end(self) -> str:
        """Ends the process; returns the last lines that it wrote."""
        self.process.kill()
        self.process.wait()
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-25:])


class Run:
    """All of a run: portions of seeds to give, and what was found."""

    def __init__(self, settings):
        self.settings = settings
        self.folder = Path(settings.logs)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.options = ["--modes", ",".join(settings.modes), "--shrink", str(settings.shrink)]
        self.options += ["--full"] if settings.full else []
        self.options += ["--textbook"] if settings.textbook else []
        self.begun = time.monotonic()
        self.next, self.done, self.counts, self.times = settings.seeds[0], 0, {}, {}
        self.findings: dict[str, dict] = {}
        self.selector = selectors.DefaultSelector()
        self.report = open(settings.report, "a") if settings.report else None  # noqa: SIM115

    def portion(self) -> tuple[int, int] | None:
        last = self.settings.seeds[1]
        over = self.settings.minutes and (
            time.monotonic() - self.begun > 60 * self.settings.minutes)
        if over or self.next >= last:
            return None
        begin, self.next = self.next, min(self.next + self.settings.portion, last)
        return begin, self.next

    def start(self, number: int, portion, warm: bool = False) -> None:
        worker = Worker(number, self.options, self.folder)
        self.selector.register(worker.process.stdout, selectors.EVENT_READ, worker)
        worker.give(portion, warm)

    def again(self, worker: Worker) -> bool:
        """Is it this portion's turn to run once more, in a new process with a warm cache?"""
        wanted = "warm" in self.settings.modes and "native" in self.settings.modes
        return wanted and not worker.warm and worker.portion[0] // self.settings.portion % WARM == 0

    def run(self) -> int:
        for number in range(self.settings.jobs):
            portion = self.portion()
            if portion:
                self.start(number, portion)
        try:
            self.watch()
        except KeyboardInterrupt:  # what was found until now
            for key in list(self.selector.get_map().values()):
                self.drop(key.data)
        return self.summary()

    def watch(self) -> None:
        while self.selector.get_map():
            for key, _ in self.selector.select(timeout=5):
                for message in key.data.messages():
                    self.heard(key.data, message)
            for key in list(self.selector.get_map().values()):
                if time.monotonic() - key.data.heard > self.settings.patience:
                    self.lost(key.data, "hang")

    def heard(self, worker: Worker, message) -> None:
        worker.heard = time.monotonic()
        if message is None:
            self.lost(worker, "died")
        elif "at" in message:
            worker.place = message
        elif "finding" in message:
            self.found(message["finding"])
        elif "done" in message:
            self.done += 0 if worker.warm else message["done"]
            for total, part in ((self.counts, message["counts"]), (self.times, message["times"])):
                for mode, n in part.items():
                    total[mode] = total.get(mode, 0) + n
            if self.again(worker):
                self.drop(worker)
                self.start(worker.number, worker.portion, True)
                return
            portion = self.portion()
            if portion:
                worker.give(portion)
            else:
                self.drop(worker)

    def drop(self, worker: Worker) -> str:
        self.selector.unregister(worker.process.stdout)
        return worker.end()

    def lost(self, worker: Worker, kind: str) -> None:
        """A process hangs or is gone: what it was at is a finding; another goes on behind it."""
        last = self.drop(worker)
        at, mode = worker.place.get("at", -1), worker.place.get("mode", "?")
        self.found({"mode": mode, "kind": kind, "seed": at, "key": f"{mode}|{kind}|{at}",
                    "words": last, "text": "", "operators": [], "seeds": []})
        begin, end = worker.portion
        rest = (max(at + 1, begin + 1), end if not worker.warm else begin)
        portion = rest if rest[0] < rest[1] else self.portion()
        if portion:
            self.start(worker.number, portion)

    def found(self, finding: dict) -> None:
        known = self.findings.get(finding["key"])
        if known:
            known["times"] += 1
            return
        self.findings[finding["key"]] = finding | {"times": 1}
        if self.report:
            self.report.write(json.dumps(finding) + "\n")
            self.report.flush()
        if not self.settings.quiet:
            print(shown(finding, self.settings.textbook), flush=True)

    def summary(self) -> int:
        hours = (time.monotonic() - self.begun) * self.settings.jobs / 3600
        print(f"\n{self.done} programs in {time.monotonic() - self.begun:.0f} s, {hours:.2f} "
              f"process hours, seeds {self.settings.seeds[0]}:{self.next}")
        for mode, n in sorted(self.counts.items()):
            print(f"  {mode:18} {n:8}  {1000 * self.times[mode] / n:7.1f} ms each")
        kinds: dict[str, int] = {}
        for f in self.findings.values():
            kinds[f["kind"]] = kinds.get(f["kind"], 0) + 1
        words = ", ".join(f"{n} {k}" for k, n in sorted(kinds.items()))
        print(f"{len(self.findings)} findings{': ' + words if words else ''}")
        return 1 if self.findings else 0


def shown(finding: dict, book: bool = False) -> str:
    """A finding for people: what, the program, how to see it again."""
    seeds = ",".join(map(str, finding["seeds"])) or finding["seed"]
    return (f"--- {finding['mode']}, {finding['kind']}: {finding['words']}\n{finding['text']}"
            f"# again: python tests/fuzz{' --textbook' if book else ''}"
            f" --replay {seeds} --modes {finding['mode']}\n")
