"""Samplers: the order in which a dataset is read.

Each draws what PyTorch's draws from the generator, so that a seeded program reads its data in the
same order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Generic, TypeVar

import numpy as np

from ... import creation
from ...array import dtype as dt
from ...array import random
from ...array.generator import Generator, default_generator

_T_co = TypeVar("_T_co", covariant=True)


def draw_seed(generator: Generator | None = None) -> int:
    """A seed for another generator, from this one."""
    return int(random.random(generator or default_generator, (), np.int64))


def _positive(name: str, value) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


class Sampler(Generic[_T_co]):
    """Base of all samplers; subclasses define `__iter__` and should define `__len__`."""

    def __iter__(self) -> Iterator[_T_co]:
        raise NotImplementedError(f"{type(self).__name__}, a Sampler, should define __iter__")


class SequentialSampler(Sampler[int]):
    """0, 1, 2..."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """All indices in random order, or random indices with replacement."""

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source, self.replacement = data_source, replacement
        self._num_samples, self.generator = num_samples, generator
        if not isinstance(replacement, bool):
            raise TypeError("replacement should be a boolean value, but got "
                            f"replacement={replacement}")
        _positive("num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """How many indices there will be."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, count = len(self.data_source), self.num_samples
        generator = self.generator or Generator().manual_seed(draw_seed())
        if self.replacement:
            for size in [32] * (count // 32) + [count % 32]:
                yield from random.randint(generator, (size,), 0, n).tolist()
        else:  # PyTorch draws an order for the rest, even if there is none
            for size in [n] * (count // n) + [count % n]:
                yield from random.randperm(generator, n)[:size].tolist()

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        order = random.randperm(self.generator or default_generator, len(self.indices))
        for i in order.tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with probabilities in proportion to weights."""

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        _positive("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError("replacement should be a boolean value, but got "
                             f"replacement={replacement}")
        self.weights = creation.as_tensor(weights, dtype=dt.float64)
        if self.weights.ndim != 1:
            raise ValueError("weights should be a 1d sequence but given weights have shape "
                             f"{tuple(self.weights.shape)}")
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        yield from random.multinomial(
            self.generator or default_generator,
            self.weights.detach().cpu().numpy(), self.num_samples, self.replacement,
        ).tolist()  # fmt: skip

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of what another sampler gives."""

    def __init__(self, sampler: Sampler[int] | Iterable[int], batch_size: int,
                 drop_last: bool) -> None:
        _positive("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        whole, rest = divmod(len(self.sampler), self.batch_size)
        return whole + bool(rest and not self.drop_last)
