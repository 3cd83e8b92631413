"""Samples for indices, put together."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from ..dataset import Subset, TensorDataset
from .collate import default_collate


class Exhausted(StopIteration):
    """An iterable dataset has no more samples; any other StopIteration is a fault."""


class MapFetcher:
    """Asks a dataset for samples by index."""

    def __init__(self, dataset, batched: bool, collate_fn: Callable, drop_last: bool) -> None:
        self.dataset, self.batched, self.collate_fn = dataset, batched, collate_fn

    def fetch(self, index) -> Any:
        """The batch of a list of indices, or the sample of one."""
        dataset = self.dataset
        if not self.batched:
            return self.collate_fn(dataset[index])
        if self.collate_fn is default_collate and (found := _rows(dataset, index)) is not None:
            return found
        several = getattr(dataset, "__getitems__", None)
        return self.collate_fn(several(index) if several else [dataset[i] for i in index])


def _rows(dataset, index: list) -> list | None:
    """The batch of tensors that are read whole rows at a time; None for any other dataset.

    The same as rows that are taken one by one and stacked, and the most common dataset.
    """
    while type(dataset) is Subset:
        dataset, index = dataset.dataset, [dataset.indices[i] for i in index]
    if type(dataset) is not TensorDataset or any(type(i) is not int for i in index):
        return None
    return [tensor[index] for tensor in dataset.tensors]


class IterableFetcher:
    """Takes samples from a dataset as they come; the indices only say how many."""

    def __init__(self, dataset, batched: bool, collate_fn: Callable, drop_last: bool) -> None:
        self.items = iter(dataset)
        self.batched, self.collate_fn, self.drop_last = batched, collate_fn, drop_last
        self.ended = False

    def fetch(self, index) -> Any:
        """The next batch, or the next sample."""
        count = len(index) if self.batched else 1
        data = [] if self.ended else list(itertools.islice(self.items, count))
        self.ended = len(data) < count
        if not data or (self.drop_last and self.ended):
            raise Exhausted
        return self.collate_fn(data if self.batched else data[0])
