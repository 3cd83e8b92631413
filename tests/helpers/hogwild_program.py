"""Two processes train one model without locks, each with an optimiser of its own."""

import pullback as torch
from pullback import multiprocessing as mp
from pullback import nn


def train(rank, model, x, y):
    torch.manual_seed(rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(60):
        rows = torch.randint(0, len(x), (16,))
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x[rows]), y[rows]).backward()
        optimizer.step()


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(64, 3)
    y = x @ torch.tensor([[1.0], [-2.0], [0.5]]) + 0.3
    model = nn.Linear(3, 1).share_memory()
    before = nn.functional.mse_loss(model(x), y).item()
    mp.spawn(train, args=(model, x, y), nprocs=2)
    after = nn.functional.mse_loss(model(x), y).item()
    assert after < 0.05 * before, (before, after)
    print("done")
