"""Runs programs through modes and makes findings of what is not as in eager mode."""

from __future__ import annotations

import hashlib
import re
import time
import traceback
import warnings
from dataclasses import dataclass, field

import numpy as np

import pullback as pb
from pullback import errors

from . import natively, reports
from .compare import Refused
from .generate import generate
from .modes import MODES, REFUSALS, Case, underived
from .program import Program
from .shrink import shrunk


@dataclass
class Finding:
    """One failure: of which program, in which mode, what."""

    mode: str
    kind: str  # "wrong", "crash", "hang", "died"
    seed: int
    words: str
    text: str = ""
    operators: tuple = ()
    key: str = ""
    seeds: list = field(default_factory=list)

    def __post_init__(self):
        if not self.key:
            what = _plain(self.words) if self.kind == "crash" else " ".join(self.operators)
            self.key = f"{self.mode}|{self.kind}|{what}"


def _plain(words: str) -> str:
    """An error's words without numbers and names of this program."""
    words = re.sub(r"<fuzzed \d+>:\d+|modes\.py:\d+|\w+\.py:\d+", "", words.splitlines()[0])
    return re.sub(r"\d+|\bx_?\d*\b", "", words)[:100]


def outcome(mode: str, case: Case) -> tuple[str, str] | None:
    """(kind, words) of what a mode does otherwise; None if it agrees or says no as documented."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                words = MODES[mode][0](case) if mode in MODES else _native(mode, case)
            finally:
                reports.check()
    except REFUSALS:
        return None
    except Exception as error:
        if isinstance(error, Refused):
            error = error.__cause__
        if isinstance(error, REFUSALS) or case.error is not None and isinstance(
                error, (type(case.error), errors.PullbackError)):
            return None  # eager mode refuses this backward, too; where there are more reasons than
            # one, a capture may meet another of them first
        if underived(error, case.traits):  # in a mode that derives more than eager mode did
            return None
        return "crash", _told(error)
    return ("wrong", words) if words else None


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error)[:400]} [{_place(error)}]"


def _place(error: BaseException) -> str:
    """Where in the package an error came from."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/pullback/" in f.filename]
    if not frames:
        return "?"
    return f"{frames[-1].filename.rpartition('/pullback/')[2]}:{frames[-1].name}"


def _native(mode: str, case: Case) -> str | None:
    if mode == "torch":
        from . import theirs

        return theirs.check(case)
    if mode == "native_losses":
        return MODES["native_loss"][0](case)
    found = natively.batch([case], **OPTIONS[mode])
    return found[0][1] if found else None


def batch(mode: str, cases: list) -> list:
    """(case, words) of what is not right in a batched mode."""
    try:
        if mode == "native_losses":
            return natively.batch_of_losses(cases)
        return natively.batch(cases, **OPTIONS[mode])
    finally:
        reports.check()


# batched modes: options of compile, and how many batches of a hundred take it
OPTIONS = {"native": {}, "native_losses": None, "native_sizes": {"dynamic": True},
           "native_limit": {"memory": 0.0}, "warm": {}}
# how many portions of a hundred take it; `warm` ones come again in a new process, by the cache
SHARES = {"native": 60, "native_losses": 20, "native_sizes": 10, "native_limit": 5, "warm": 0}


def due(mode: str, seed: int, share: int) -> bool:
    """Is it this program's turn in a mode that takes only some of them?"""
    digest = hashlib.blake2b(f"{mode} {seed}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "little") % 100 < share


class Judge:
    """Runs seeds; `tell(message)` hears where it is, so that somebody can see a hang."""

    def __init__(self, modes: list[str], tell, seconds: float = 20.0, full: bool = False,
                 source=generate):
        self.modes, self.tell, self.seconds, self.full = modes, tell, seconds, full
        self.source = source  # a program of a seed
        self.known: dict[str, int] = {}
        self.counts: dict[str, int] = {}
        self.times: dict[str, float] = {}

    def run(self, seeds) -> None:
        """All programs of some seeds, then native code for them together."""
        cases = self.cases(seeds, self.modes)
        for mode in OPTIONS:
            if mode in self.modes and cases and (
                    self.full or due(mode, cases[0].program.seed, SHARES[mode])):
                self.together(mode, cases)

    def cases(self, seeds, modes: list[str]) -> list[Case]:
        """Programs that were captured whole, after a look at them in some modes."""
        found = [self.one(seed, modes) for seed in seeds]
        return [case for case in found if case is not None and case.whole]

    def warm(self, seeds) -> None:
        """Native code that another process has made."""
        self.together("warm", self.cases(seeds, ["numpy"]))

    def one(self, seed: int, modes: list[str]) -> Case | None:
        self.tell({"at": seed, "mode": "eager"})
        begun = time.perf_counter()
        program = self.source(seed)
        self._count("generate", begun)
        if not program.operators:
            return None
        begun = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                case = Case(program)
        except Exception as error:
            # steps were tried with other draws: `bernoulli` may refuse these
            if not (isinstance(error, errors.RefusedValue) and "random" in program.traits):
                self.report("eager", "crash", f"{type(error).__name__}: {error}", program)
            return None
        self._count("eager", begun)
        if case.error is not None and not underived(case.error, case.traits):
            self.report("eager", "crash", _told(case.error), program)
        for mode in modes:
            if mode in OPTIONS:
                continue
            if mode in MODES and not self.full and not due(mode, seed, MODES[mode][1]):
                continue
            self.tell({"at": seed, "mode": mode})
            begun = time.perf_counter()
            found = outcome(mode, case)
            self._count(mode, begun)
            if found:
                self.report(mode, *found, program)
        return case

    def _count(self, mode: str, begun: float, many: int = 1) -> None:
        self.counts[mode] = self.counts.get(mode, 0) + many
        self.times[mode] = self.times.get(mode, 0.0) + time.perf_counter() - begun

    def together(self, mode: str, cases: list) -> None:
        for k in range(0, len(cases), 16):
            part = cases[k:k + 16]
            self.tell({"at": part[0].program.seed, "mode": mode})
            begun = time.perf_counter()
            self._part(mode, part)
            self._count(mode, begun, len(part))

    def _part(self, mode: str, part: list) -> None:
        self.tell({"at": part[0].program.seed, "mode": mode})
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = batch(mode, part)
        except Exception as error:
            if len(part) == 1:
                found = outcome(mode, part[0])
                if not found and isinstance(error, reports.Reported):  # said once of each place
                    found = "crash", _told(error)
                if found:
                    self.report(mode, *found, part[0].program)
                return
            half = len(part) // 2
            before = sum(self.known.values())
            self._part(mode, part[:half])
            self._part(mode, part[half:])
            if before == sum(self.known.values()) and not isinstance(error, REFUSALS):
                self._only_together(mode, "crash", part, f"{type(error).__name__}: {error}")
            return
        for case, words in found:
            self.tell({"at": case.program.seed, "mode": mode})
            alone = outcome(mode, case)
            if alone:
                self.report(mode, *alone, case.program)
            elif mode != "native_losses":  # there a difference may be rounding of another one
                self._only_together(mode, "wrong", part, words)

    def _only_together(self, mode: str, kind: str, part: list, words: str) -> None:
        """Programs that are right one by one and wrong in one function."""
        def fails(programs):
            self.tell({"at": programs[0].seed, "mode": mode})
            cases = [case_of(p) for p in programs]
            try:
                return bool(batch(mode, cases))
            except Exception:
                return kind == "crash"

        programs = [c.program for c in part]
        end = time.monotonic() + self.seconds
        k = 0
        while k < len(programs) and time.monotonic() < end and len(programs) > 1:
            fewer = programs[:k] + programs[k + 1:]
            if fails(fewer):
                programs = fewer
            else:
                k += 1
        if not all(isinstance(p, Program) for p in programs):
            self.report(mode, kind, f"together only: {words}", programs[0],
                        [p.seed for p in programs])
            return
        merged = natively.joined(programs)
        self.report(mode, kind, f"together only: {words}", merged, [p.seed for p in programs])

    def report(self, mode: str, kind: str, words: str, program, seeds=()) -> None:
        """Shrinks a failure, unless it is well known, and tells it."""
        rough = f"{mode}|{kind}|{_plain(words) if kind == 'crash' else ''}"
        self.known[rough] = self.known.get(rough, 0) + 1
        small, said = program, words
        if kind == "wrong" or self.known[rough] <= 2:
            small = self.smaller(mode, kind, program, words)
            said = words if mode == "eager" else (again(mode, small) or ("", words))[1]
        finding = Finding(mode, kind, program.seed, said, str(small), small.operators,
                          seeds=list(seeds))
        self.known[finding.key] = self.known.get(finding.key, 0) + 1
        if self.known[finding.key] <= 3 or kind == "crash":
            self.tell({"finding": vars(finding) | {"operators": list(small.operators)}})

    def smaller(self, mode: str, kind: str, program, words: str):
        sort = _plain(words) if kind == "crash" else ""

        def fails(candidate):
            self.tell({"at": program.seed, "mode": mode, "shrinking": True})
            found = again(mode, candidate)
            return found is not None and found[0] == kind and (
                kind != "crash" or _plain(found[1])[:40] == sort[:40])

        if mode == "eager" or not isinstance(program, Program):
            return program
        return shrunk(program, fails, self.seconds)


def case_of(program) -> Case:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Case(program)


def again(mode: str, program) -> tuple[str, str] | None:
    """What a mode does otherwise with a program, run anew."""
    pb.manual_seed(0)
    return outcome(mode, case_of(program))
