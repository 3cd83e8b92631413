"""Python's `multiprocessing` under PyTorch's name; tensors are copied between processes."""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403

from . import errors

__all__ = [
    *multiprocessing.__all__,
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
]

_STRATEGIES = {"file_descriptor", "file_system"}
_strategy = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """The names that `set_sharing_strategy` takes."""
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """What was set last; tensors are copied in any case."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Kept."""
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise errors.BadValue(f"unknown sharing strategy {new_strategy!r}; known are "
                              f"{sorted(_STRATEGIES)}")
    _strategy = new_strategy


def spawn(fn, args=(), nprocs: int = 1, join: bool = True, daemon: bool = False,
          start_method: str = "spawn"):
    """Run `fn(rank, *args)` in new processes; with `join`, wait and fail if one fails."""
    context = multiprocessing.get_context(start_method)
    processes = [context.Process(target=fn, args=(rank, *args), daemon=daemon)
                 for rank in range(nprocs)]
    for p in processes:
        p.start()
    if not join:
        return processes
    for p in processes:
        p.join()
    failed = [i for i, p in enumerate(processes) if p.exitcode]
    if failed:
        raise errors.RefusedValue(errors.text(
            f"process {failed[0]} terminated with exit code {processes[failed[0]].exitcode}",
            cure="its own traceback is above"))
    return None
