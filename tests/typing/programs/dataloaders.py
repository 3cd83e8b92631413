"""Datasets, samplers and loaders."""

from collections.abc import Iterator

import pullback as torch
from pullback import Tensor
from pullback.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)


class Squares(Dataset[tuple[Tensor, Tensor]]):
    def __init__(self, n: int) -> None:
        self.x = torch.arange(n, dtype=torch.float32)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.x[index], self.x[index] ** 2


class Stream(IterableDataset[Tensor]):
    def __iter__(self) -> Iterator[Tensor]:
        for i in range(4):
            yield torch.full((2,), float(i))


def collate(rows: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    xs, ys = zip(*rows)
    return torch.stack(list(xs)), torch.stack(list(ys))


data = Squares(20)
train, test = random_split(data, [16, 4], generator=torch.Generator().manual_seed(1))
loader = DataLoader(train, batch_size=4, shuffle=True, num_workers=0, drop_last=True)
for x, y in loader:
    print(x.shape, y.mean().item())
own = DataLoader(data, batch_size=5, collate_fn=collate)
print(len(own), len(test), len(Subset(data, [1, 2])))
sampler = WeightedRandomSampler([0.1] * 20, num_samples=8)
for batch in DataLoader(TensorDataset(torch.ones(20, 2)), batch_size=4, sampler=sampler):
    print(batch[0].sum())
for row in DataLoader(Stream(), batch_size=2):
    print(row.shape)
