"""The part of a dataset that one of several programs reads."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...array import random
from ...array.generator import Generator
from .dataset import Dataset
from .sampler import Sampler


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th index, beginning at `rank`, of an order that all programs share."""

    def __init__(
        self,
        dataset: Dataset,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            raise RuntimeError("Requires distributed package to be available: there is no process "
                               "group here\n  Fix: DistributedSampler(data, num_replicas=..., "
                               "rank=...)")
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval "
                             f"[0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last, self.epoch = shuffle, seed, drop_last, 0
        size = len(dataset)
        self.num_samples = size // num_replicas if drop_last else math.ceil(size / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        size = len(self.dataset)
        if self.shuffle:
            generator = Generator().manual_seed(self.seed + self.epoch)
            order = random.randperm(generator, size).tolist()
        else:
            order = list(range(size))
        if size and self.total_size > size:  # all programs read equally much: begin again
            order *= math.ceil(self.total_size / size)
        order = order[: self.total_size]
        return iter(order[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose another order; all programs must choose the same."""
        self.epoch = epoch
