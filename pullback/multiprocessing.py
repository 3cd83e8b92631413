"""Python's `multiprocessing` under PyTorch's name: processes share the memory of tensors.

A tensor that is an argument of a process, or goes through a queue, a pipe or a pool, is not copied:
its memory moves to where it can be shared, and the other side shows the same.  That holds for
the queues of Python's own module, too; read `memory/sending.py` for how.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import multiprocessing.reduction
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing import *  # noqa: F403
from typing import Any

from . import errors
from .errors import ProcessExitedException, ProcessRaisedException
from .memory import sending

__all__ = [
    *multiprocessing.__all__,
    "ProcessContext",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]

__path__: list[str] = []  # PyTorch has modules below it: `torch/install.py`
_STRATEGIES = {"file_descriptor", "file_system"}
_strategy = "file_descriptor"


def init_reductions() -> None:
    """Let picklers of `multiprocessing` share memory: they do."""
    sending.register(multiprocessing.reduction)


def get_all_sharing_strategies() -> set[str]:
    """The names that `set_sharing_strategy` takes."""
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """What was set last; descriptors are sent in any case."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Kept: memory has no name under either strategy, so that nothing can be left over."""
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise errors.BadValue(f"unknown sharing strategy {new_strategy!r}; known are "
                              f"{sorted(_STRATEGIES)}")
    _strategy = new_strategy


def _run(fn: Callable, rank: int, args: tuple, notes: str) -> None:
    """What each process does: call the function, and leave word of what it raises."""
    try:
        fn(rank, *args)
    except KeyboardInterrupt:
        pass  # the parent got it, too
    except Exception:
        with open(notes, "w") as file:
            file.write(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """Processes that `start_processes` has started."""

    def __init__(self, processes: list, notes: list[str]):
        self.processes, self.error_files = processes, notes
        self.sentinels = {p.sentinel: i for i, p in enumerate(processes)}

    def pids(self) -> list[int]:
        """The numbers of the processes."""
        return [int(p.pid) for p in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait for a process to end: have all ended?  If one failed, end the others and raise."""
        if not self.sentinels:
            return True
        ready = multiprocessing.connection.wait(list(self.sentinels), timeout)
        failed = None
        for sentinel in ready:
            i = self.sentinels.pop(sentinel)
            self.processes[i].join()
            if self.processes[i].exitcode != 0 and failed is None:
                failed = i
        if failed is None:
            if not self.sentinels:
                self._tidy()
            return not self.sentinels
        self._end_others(grace_period)
        raise self._error(failed)

    def _end_others(self, grace: float | None) -> None:
        end = time.monotonic() + (grace or 0)
        for p in self.processes:
            p.join(max(0, end - time.monotonic()))
        for p in self.processes:
            if p.is_alive():
                p.terminate()
        end = time.monotonic() + 30
        for p in self.processes:
            p.join(max(0, end - time.monotonic()))
            if p.is_alive():
                p.kill()
                p.join()

    def _tidy(self) -> None:
        for name in self.error_files:
            if os.path.exists(name):
                os.unlink(name)

    def _error(self, i: int) -> Exception:
        process, notes = self.processes[i], self.error_files[i]
        told = ""
        if os.path.getsize(notes):
            with open(notes) as file:
                told = file.read()
        self._tidy()
        if told:
            return ProcessRaisedException(
                f"\n\n-- Process {i} terminated with the following error:\n{told}", i, process.pid)
        code, name = process.exitcode, None
        if code < 0:
            name = signal.Signals(-code).name
        how = f"exit code {code}" if name is None else f"signal {name}"
        return ProcessExitedException(f"process {i} terminated with {how}", i, process.pid, code,
                                      name)


class SpawnContext(ProcessContext):
    """Processes that `spawn` has started."""


def start_processes(fn: Callable, args: Sequence = (), nprocs: int = 1, join: bool = True,
                    daemon: bool = False, start_method: str = "spawn") -> ProcessContext | None:
    """Run `fn(rank, *args)` in new processes; with `join`, wait, and raise if one fails."""
    context = multiprocessing.get_context(start_method)
    processes, notes = [], []
    for rank in range(nprocs):
        file, name = tempfile.mkstemp(prefix="pullback-process-", suffix=".txt")
        os.close(file)
        notes.append(name)
        process = context.Process(target=_run, args=(fn, rank, tuple(args), name), daemon=daemon)
        process.start()
        processes.append(process)
    kind = SpawnContext if start_method == "spawn" else ProcessContext
    started = kind(processes, notes)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(fn: Callable, args: Sequence = (), nprocs: int = 1, join: bool = True,
          daemon: bool = False, start_method: str = "spawn") -> ProcessContext | None:
    """Run `fn(rank, *args)` in new processes that are spawned."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)


def __getattr__(name: str) -> Any:
    from .facade import elsewhere

    return elsewhere(__name__, name)
