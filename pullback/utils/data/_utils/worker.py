"""A worker process: takes indices, gives batches, until there is nothing more to do."""

from __future__ import annotations

import dataclasses
import random
import sys
import traceback
from collections.abc import Callable
from multiprocessing import connection, parent_process
from typing import Any

import numpy as np

from ....array.generator import default_generator
from . import transport
from .fetch import Exhausted

TASK, AGAIN, END = range(3)  # what a worker is told: an index follows, begin anew, leave


@dataclasses.dataclass(frozen=True)
class WorkerInfo:
    """What a worker process knows about itself."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str = "multiprocessing"


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Number, seed and dataset of the worker process that asks; None in the main process."""
    return _info


class Failure:
    """An exception of a worker, with its traceback as text."""

    def __init__(self, error: BaseException, where: str) -> None:
        self.kind, self.where = type(error), where
        self.text = "".join(traceback.format_exception(error)).rstrip()

    def reraise(self) -> None:
        """Raise an exception of the same class that shows where it came from."""
        what = f"Caught {self.kind.__name__} {self.where}.\nOriginal {self.text}"
        if self.kind is KeyError:  # which shows its argument as repr() does, newlines and all
            what = type("Text", (str,), {"__repr__": str.__str__})(what)
        try:
            error = RuntimeError(what) if self.kind is StopIteration else self.kind(what)
        except Exception:  # wants other arguments
            raise RuntimeError(what) from None
        raise error


class Ended:
    """A worker's iterable dataset has no more samples."""


def seed_everything(base_seed: int, number: int) -> int:
    """Seed the generators of Python, NumPy and this package as PyTorch seeds a worker's."""
    seed = base_seed + number
    random.seed(seed)
    default_generator.manual_seed(seed)
    parts = [number, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    np.random.seed(np.random.SeedSequence(parts).generate_state(4))
    return seed


def _single_threaded() -> None:
    native = sys.modules.get(f"{__name__.partition('.')[0]}.compile.native")
    if native is not None and native._module is not None:  # the parent's threads are not here
        native.set_num_threads(1)


def run(
    number: int,
    count: int,
    tasks: connection.Connection,
    results: connection.Connection,
    dataset,
    make_fetcher: Callable,
    base_seed: int,
    init_fn: Callable | None,
) -> None:
    """What a worker process does."""
    global _info
    _single_threaded()
    seed = seed_everything(base_seed, number)
    _info = WorkerInfo(number, count, seed, dataset)
    where = f"in DataLoader worker process {number}"

    def fetcher():
        """Gives batches for indices; one that cannot be made gives the error."""
        try:
            if init_fn is not None and not ready:
                init_fn(number)
            return make_fetcher(dataset).fetch
        except Exception as error:
            failure = Failure(error, where)
            return lambda index: failure

    parent = parent_process()
    ready, ended = False, False
    try:
        fetch = fetcher()
        ready = True
        while tasks in connection.wait([tasks, parent.sentinel]):
            what, task, index = tasks.recv()
            if what == END:
                break
            if what == AGAIN:
                fetch, ended = fetcher(), False
            elif not ended:
                try:
                    value = fetch(index)
                except Exception as error:
                    ended = isinstance(error, Exhausted)
                    value = Ended() if ended else Failure(error, where)
                _send(results, task, value, where)
                del value  # its memory is the receiver's now
    except (KeyboardInterrupt, BrokenPipeError, ConnectionResetError, EOFError):
        pass  # the main process has heard it too, or is gone
    finally:
        results.close()
        tasks.close()


def _send(results: connection.Connection, task: int, value, where: str) -> None:
    try:
        transport.send(results, task, value)
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception as error:  # something that cannot be pickled
        failure = value if isinstance(value, Failure) else Failure(error, where)
        failure.kind = RuntimeError
        failure.text += "\n  Fix: samples and batches of a worker must be what pickle takes"
        transport.send(results, task, failure)
