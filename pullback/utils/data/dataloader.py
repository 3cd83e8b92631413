"""`DataLoader`: batches of a dataset, made here or in worker processes.

Random numbers are drawn as PyTorch's loader draws them: one for the workers' seeds when iteration
begins, then whatever the sampler takes.  Read next: `_utils/worker.py`, what workers do.
"""

from __future__ import annotations

import functools
import itertools
import math
import multiprocessing
import os
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import connection, context
from typing import Any, Generic, TypeVar

from ... import errors
from ...array.generator import Generator
from ._utils import transport, worker
from ._utils.collate import default_collate, default_convert
from ._utils.fetch import IterableFetcher, MapFetcher
from .dataset import Dataset, IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, draw_seed

_T_co = TypeVar("_T_co", covariant=True)
_collate_fn_t = Callable[[list], Any]
_worker_init_fn_t = Callable[[int], None]
_PATIENCE = 5.0  # seconds for a worker to end by itself
_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class _DatasetKind:
    Map, Iterable = 0, 1


class _Forever(Sampler):
    """The sampler of iterable datasets, which need no indices."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


def _check_workers(num_workers, timeout, prefetch_factor, persistent_workers) -> None:
    """Refuse options of processes that cannot be, or that need processes."""
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to "
                         "disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError("prefetch_factor option could only be specified in multiprocessing: "
                         "let num_workers > 0, or leave it out")
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_sampling(batch_size, shuffle, sampler, batch_sampler, drop_last) -> None:
    """Refuse options of samplers and batches that exclude each other."""
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError("batch_sampler option is mutually exclusive with batch_size, "
                             "shuffle, sampler, and drop_last")
    elif batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually "
                         "exclusive with drop_last")


class DataLoader(Generic[_T_co]):
    """Iterates over batches of a dataset.

    `num_workers` processes prepare batches in advance, `prefetch_factor` each.  They are started by
    the method that `multiprocessing_context` names, and again for every iteration unless
    `persistent_workers`.  `pin_memory` is accepted; there is nothing to pin.
    """

    _ready = False

    def __init__(
        self,
        dataset: Dataset[_T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler | Iterable | None = None,
        batch_sampler: Sampler[list] | Iterable[list] | None = None,
        num_workers: int = 0,
        collate_fn: Callable | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: str | context.BaseContext | None = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        iterable = isinstance(dataset, IterableDataset)
        if iterable:
            given = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
            for name, value in given.items():
                if value is not None:
                    raise ValueError("DataLoader with IterableDataset: expected unspecified "
                                     f"{name} option, but got {name}={value}")
        _check_sampling(batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size = None
        if sampler is None:
            if iterable:
                sampler = _Forever()
            else:
                sampler = (RandomSampler(dataset, generator=generator) if shuffle
                           else SequentialSampler(dataset))  # fmt: skip
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)

        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.sampler, self.batch_sampler, self.generator = sampler, batch_sampler, generator
        self.num_workers, self.timeout, self.worker_init_fn = num_workers, timeout, worker_init_fn
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.persistent_workers, self.in_order = persistent_workers, in_order
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.multiprocessing_context = self._context(multiprocessing_context)
        self._dataset_kind = _DatasetKind.Iterable if iterable else _DatasetKind.Map
        self.collate_fn = collate_fn or (default_collate if self._auto_collation
                                         else default_convert)  # fmt: skip
        self._iterator: _Workers | None = None
        self._announced: int | None = None  # the length that somebody was told
        self._ready = True
        self.check_worker_number_rationality()

    def _context(self, wanted) -> context.BaseContext | None:
        if wanted is None:
            return None
        if self.num_workers == 0:
            raise ValueError("multiprocessing_context can only be used with multi-process loading "
                             "(num_workers > 0), but got num_workers=0")
        if isinstance(wanted, str):
            methods = multiprocessing.get_all_start_methods()
            if wanted not in methods:
                raise ValueError("multiprocessing_context option should specify a valid start "
                                 f"method in {methods!r}, but got {wanted!r}")
            wanted = multiprocessing.get_context(wanted)
        if not isinstance(wanted, context.BaseContext):
            raise TypeError("multiprocessing_context option should be a valid context object or a "
                            f"string specifying the start method, but got {wanted!r}")
        return wanted

    def __setattr__(self, name: str, value) -> None:
        if self._ready and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is "
                             "initialized")
        super().__setattr__(name, value)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def _fetcher(self) -> Callable:
        kind = IterableFetcher if self._dataset_kind == _DatasetKind.Iterable else MapFetcher
        return functools.partial(kind, batched=self._auto_collation, collate_fn=self.collate_fn,
                                 drop_last=self.drop_last)  # fmt: skip

    def __iter__(self) -> _Batches:
        if not self.num_workers:
            return _Here(self)
        if not self.persistent_workers:
            return _Workers(self)
        if self._iterator is None or self._iterator.closed:
            self._iterator = _Workers(self)
        else:
            self._iterator.again(self)
        return self._iterator

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        length = self._announced = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else math.ceil(length / self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warn if there will be more workers than processors."""
        if hasattr(os, "sched_getaffinity"):
            processors = len(os.sched_getaffinity(0))
        else:
            processors = os.cpu_count() or 1
        if self.num_workers > processors:
            warnings.warn(f"This DataLoader will create {self.num_workers} worker processes in "
                          f"total, more than the {processors} processors that this program may "
                          "use. It may be slower than with fewer.", stacklevel=3)


class _Batches:
    """One iteration over a loader."""

    def __init__(self, loader: DataLoader) -> None:
        self.dataset = loader.dataset
        self.make_fetcher = loader._fetcher()
        self.start(loader)
        self.base_seed = draw_seed(loader.generator)

    def start(self, loader: DataLoader) -> None:
        self.sampler = loader._index_sampler
        self.indices = iter(self.sampler)
        self.announced, self.given = loader._announced, 0

    def __iter__(self) -> _Batches:
        return self

    def __len__(self) -> int:
        return len(self.sampler)

    def __next__(self) -> Any:
        data = self.next_batch()
        self.given += 1
        if self.announced is not None and self.given > self.announced:
            warnings.warn(f"Length of IterableDataset {self.dataset} was reported to be "
                          f"{self.announced} (when accessing len(dataloader)), but {self.given} "
                          "samples have been fetched. With workers, each must read a part of its "
                          "own: see get_worker_info()", stacklevel=2)
        return data

    def next_batch(self) -> Any:
        raise NotImplementedError


class _Here(_Batches):
    """Batches made in this process."""

    def __init__(self, loader: DataLoader) -> None:
        if loader.timeout:
            raise AssertionError("timeout needs num_workers > 0")
        super().__init__(loader)
        self.fetcher = self.make_fetcher(self.dataset)

    def next_batch(self) -> Any:
        return self.fetcher.fetch(next(self.indices))


class _Workers(_Batches):
    """Batches made by worker processes."""

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        self.timeout, self.in_order = loader.timeout or None, loader.in_order
        self.persistent = loader.persistent_workers
        self.depth = loader.prefetch_factor
        self.count = loader.num_workers
        start = loader.multiprocessing_context or multiprocessing
        self.processes, self.tasks, self.results = [], [], []
        self._finish = weakref.finalize(self, _shut_down, os.getpid(), self.processes, self.tasks,
                                        self.results)  # fmt: skip
        for number in range(self.count):
            inbox, outbox = start.Pipe(duplex=False)
            mine, theirs = start.Pipe(duplex=True)  # a socket: it carries file descriptors
            process = start.Process(
                target=worker.run,
                args=(number, self.count, inbox, theirs, self.dataset, self.make_fetcher,
                      self.base_seed, loader.worker_init_fn),
                daemon=True,
            )  # fmt: skip
            process.start()
            inbox.close()  # only the worker holds these: when it dies the other end notices
            theirs.close()
            self.processes.append(process)
            self.tasks.append(outbox)
            self.results.append(mine)
        self.begin()

    @property
    def closed(self) -> bool:
        return not self._finish.alive

    def begin(self) -> None:
        self.active = [True] * self.count
        self.cycle = itertools.cycle(range(self.count))
        self.number = 0
        self.waiting: dict[int, int] = {}  # task -> worker, the oldest first
        self.refill()

    def again(self, loader: DataLoader) -> None:
        """Begin another iteration with the same processes."""
        while self.waiting:  # left over from an iteration that was not finished
            self.receive(next(iter(self.waiting.values())))
        self.start(loader)
        for who in range(self.count):
            self.tell(who, worker.AGAIN)
        self.begin()

    def tell(self, who: int, what: int, task: int = 0, index=None) -> None:
        try:
            self.tasks[who].send((what, task, index))
        except OSError:  # it is dead; what it had finished comes first, then this is noticed
            pass

    def refill(self) -> None:
        """Hand out indices as far ahead as was asked for."""
        while len(self.waiting) < max(self.depth, 1) * sum(self.active):
            try:
                index = next(self.indices)
            except StopIteration:
                return
            who = next(who for who in self.cycle if self.active[who])
            self.tell(who, worker.TASK, self.number, index)
            self.waiting[self.number] = who
            self.number += 1

    def next_batch(self) -> Any:
        while self.waiting:
            busy = list(self.waiting.values())
            value = self.receive(*busy[:1] if self.in_order else set(busy))
            self.refill()
            if isinstance(value, worker.Failure):
                value.reraise()
            if not isinstance(value, worker.Ended):
                return value
        if not self.persistent:
            self._finish()
        raise StopIteration

    def receive(self, *workers: int) -> Any:
        """An answer of one of these workers, to the oldest of its tasks."""
        places = {self.results[who]: who for who in workers}
        ends = [self.processes[who].sentinel for who in workers]
        found = connection.wait([*places, *ends], self.timeout)
        if not found:
            raise RuntimeError(f"DataLoader timed out after {self.timeout:g} seconds")
        place = next((place for place in found if place in places), None)
        if place is None:
            raise self.died()
        try:
            task, make = transport.receive(place)
        except (EOFError, OSError):
            raise self.died() from None
        who = self.waiting.pop(task)
        value = make()
        if isinstance(value, worker.Ended):  # it will not answer the others that it has
            self.active[who] = False
            self.waiting = {t: w for t, w in self.waiting.items() if w != who}
        return value

    def died(self) -> errors.WorkerError:
        """The error for workers that ended without being told to."""
        for process in self.processes:
            process.join(0.1)
        dead = [(p.pid, p.exitcode) for p in self.processes if p.exitcode is not None]
        self._finish()
        state = [f"process {pid}: exit code {code}"
                 + (f" (killed by signal {-code})" if code < 0 else "") for pid, code in dead]
        return errors.WorkerError(
            errors.text(
                f"DataLoader worker (pid(s) {', '.join(str(pid) for pid, _ in dead) or 'unknown'}) "
                f"exited unexpectedly ({errors.user_line(2)})",
                state,
                "run with num_workers=0 to see the error in this process; a worker that was killed "
                "may have run out of memory",
            )
        )

    def __reduce__(self):
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")


def _shut_down(owner: int, processes: list, tasks: list, results: list) -> None:
    """End the workers; those that do not listen are stopped."""
    if os.getpid() != owner:  # a copy of the iterator in a process that was forked
        return
    for outbox in tasks:
        try:
            outbox.send((worker.END, 0, None))
        except OSError:
            pass
        outbox.close()
    for pipe in results:
        pipe.close()  # a worker that is sending notices
    for process in processes:
        process.join(_PATIENCE)
        if process.is_alive():
            process.terminate()
            process.join()


# as PyTorch calls them
_BaseDataLoaderIter, _MultiProcessingDataLoaderIter = _Batches, _Workers
_SingleProcessDataLoaderIter = _Here
