"""`Timer`: how long a statement takes, measured in blocks until it is known well enough."""

from __future__ import annotations

import dataclasses
import statistics
import sys
import timeit
from collections.abc import Callable
from typing import Any

from .. import creation
from ..absent import getter as _getter

OWN = __package__.partition(".")[0]
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


@dataclasses.dataclass
class Measurement:
    """Times of blocks of `number_per_run` runs."""

    number_per_run: int
    raw_times: list[float]
    title: str = ""
    num_threads: int = 1

    @property
    def times(self) -> list[float]:
        """Seconds of one run, for each block."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def mean(self) -> float:
        """Seconds of one run on average."""
        return statistics.fmean(self.times)

    @property
    def median(self) -> float:
        """Seconds of one run in the middle block."""
        return statistics.median(self.times)

    @property
    def iqr(self) -> float:
        """From the first to the third quartile."""
        times = self.times
        if len(times) < 2:
            return 0.0
        first, _, third = statistics.quantiles(times, n=4, method="inclusive")
        return third - first

    def __repr__(self) -> str:
        scale, unit = next((u for u in _UNITS if self.median >= u[0]), _UNITS[-1])
        lines = [f"<Measurement of {self.title}>", f"  Median: {self.median / scale:.2f} {unit}"]
        if len(self.raw_times) > 1:
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit}")
        count, threads = len(self.raw_times), self.num_threads
        lines.append(f"  {count} measurement{'s' * (count > 1)}, {self.number_per_run} runs per "
                     f"measurement, {threads} thread{'s' * (threads > 1)}")
        return "\n".join(lines)


class Timer:
    """Measures a statement, on one thread unless told otherwise."""

    def __init__(
        self,
        stmt: str | Callable = "pass",
        setup: str | Callable = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timeit.default_timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
    ):
        if global_setup:
            raise ValueError("global_setup is for C++ statements, which Timer does not take")
        known = {"torch": sys.modules[OWN], **(globals or {})}
        self.timer = timeit.Timer(stmt, setup, timer, known)
        name = stmt if isinstance(stmt, str) else getattr(stmt, "__name__", "a function")
        self.title = ": ".join(part for part in (label or name, sub_label, description) if part)
        self.num_threads = num_threads

    def _run(self, number: int) -> float:
        before = creation.get_num_threads()
        creation.set_num_threads(self.num_threads)
        try:
            return self.timer.timeit(number)
        finally:
            creation.set_num_threads(before)

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self.title, self.num_threads)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """One block of `number` runs, after a hundredth of that to warm up."""
        self._run(max(number // 100, 1))
        return self._measured(number, [self._run(number)])

    def blocked_autorange(
        self, callback: Callable[[int, float], None] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Blocks long enough for the clock, until `min_run_time` seconds are over."""
        number = 1
        while (taken := self._run(number)) < min_run_time / 1000:
            number *= 10
        times: list[float] = []
        while sum(times) < min_run_time:
            taken = self._run(number)
            times.append(taken)
            if callback is not None:
                callback(number, taken)
        return self._measured(number, times)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], None] | None = None,
    ) -> Measurement:
        """Blocks until the spread is below `threshold` of the median, or time is over."""
        found = self.blocked_autorange(callback, min_run_time)
        while found.iqr > threshold * found.median and sum(found.raw_times) < max_run_time:
            taken = self._run(found.number_per_run)
            found.raw_times.append(taken)
            if callback is not None:
                callback(found.number_per_run, taken)
        return found


__getattr__ = _getter(__name__)
