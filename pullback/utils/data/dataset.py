"""Datasets: what can be asked for a sample, and what gives samples one after the other."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from ...array import random
from ...array.generator import Generator, default_generator
from ...core.handle import Tensor

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class Dataset(Generic[_T_co]):
    """Samples by index: subclasses define `__getitem__`, and `__len__` where samplers ask for it.

    A subclass may define `__getitems__`, which takes a list of indices and gives a list of samples.
    """

    def __getitem__(self, index) -> _T_co:
        raise NotImplementedError(f"{type(self).__name__}, a Dataset, should define __getitem__")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[_T_co], Iterable[_T_co]):
    """Samples in the order in which they come: subclasses define `__iter__`.

    Every worker process iterates over a copy; `get_worker_info()` tells a copy which part is its.
    """

    def __add__(self, other: Dataset) -> ChainDataset:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Rows of tensors that belong together."""

    def __init__(self, *tensors: Tensor) -> None:
        if any(t.size(0) != tensors[0].size(0) for t in tensors):
            sizes = [t.size(0) for t in tensors]
            raise AssertionError(f"Size mismatch between tensors: the first dimensions are {sizes}")
        self.tensors = tensors

    def __getitem__(self, index) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


def _samples(dataset, indices: list) -> list:
    """Several samples, at once where the dataset can."""
    several = getattr(dataset, "__getitems__", None)
    if not callable(several):
        return [dataset[i] for i in indices]
    found = several(indices)
    if len(found) != len(indices):
        raise ValueError("Nested dataset's output size mismatch. "
                         f"Expected {len(indices)}, got {len(found)}")
    return found


class StackDataset(Dataset):
    """Datasets side by side: a sample is a tuple, or a dictionary, of one sample of each."""

    def __init__(self, *args: Dataset, **kwargs: Dataset) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError("give datasets by position (samples are tuples) or by name (samples "
                             "are dictionaries), at least one, and not both")
        self.datasets = args or kwargs
        lengths = [len(dataset) for dataset in args or kwargs.values()]
        if any(length != lengths[0] for length in lengths):
            raise ValueError(f"Size mismatch between datasets: their lengths are {lengths}")
        self._length = lengths[0]

    def __getitem__(self, index) -> Any:
        return self.__getitems__([index], lambda dataset, indices: [dataset[indices[0]]])[0]

    def __getitems__(self, indices: list, samples=_samples) -> list:
        if isinstance(self.datasets, dict):
            columns = [samples(dataset, indices) for dataset in self.datasets.values()]
            return [dict(zip(self.datasets, row)) for row in zip(*columns)]
        return list(zip(*(samples(dataset, indices) for dataset in self.datasets)))

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[_T_co]):
    """Datasets one behind the other."""

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset; "
                                 "ChainDataset does")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence) -> list[int]:
        """Where each dataset ends."""
        return list(itertools.accumulate(map(len, sequence)))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> _T_co:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, idx)
        return self.datasets[which][idx - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset):
    """Iterable datasets one after the other."""

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        self.datasets = datasets

    def _checked(self) -> Iterator[IterableDataset]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self):
        for dataset in self._checked():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._checked())


class Subset(Dataset[_T_co]):
    """Some samples of a dataset."""

    def __init__(self, dataset: Dataset[_T_co], indices: Sequence[int]) -> None:
        own = type(self)
        if own.__getitem__ is not Subset.__getitem__ and own.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{own.__name__} overrides __getitem__ but not __getitems__, which DataLoader calls"
                "\n  Fix: def __getitems__(self, indices): return [self[i] for i in indices]"
            )
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, idx) -> Any:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list[_T_co]:
        return _samples(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[_T],
    lengths: Sequence[int | float],
    generator: Generator | None = default_generator,
) -> list[Subset[_T]]:
    """Parts of a dataset that do not overlap, of given lengths or of fractions that sum to 1."""
    size = len(dataset)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for i, fraction in enumerate(lengths):
            if not 0 <= fraction <= 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        parts = [math.floor(size * fraction) for fraction in lengths]
        for i in range(size - sum(parts)):  # what rounding left over goes to the first ones
            parts[i % len(parts)] += 1
        for i in (i for i, part in enumerate(parts) if part == 0):
            warnings.warn(f"Length of split at index {i} is 0. This might result in an empty "
                          "dataset.", stacklevel=2)
        lengths = parts
    if sum(lengths) != size:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset! "
                         f"{sum(lengths)} and {size}")
    order = random.randperm(generator or default_generator, size).tolist()
    ends = list(itertools.accumulate(lengths))
    return [Subset(dataset, order[end - n : end]) for n, end in zip(lengths, ends)]
