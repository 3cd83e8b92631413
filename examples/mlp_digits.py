"""A multi-layer perceptron reads handwritten digits: modules, data loader, compiled training step.

The whole step (forward, backward, clipping, optimizer) is compiled into one native call. The
learning rate is an input of it, so the schedule does not compile anything again. The progress bar
is rich's; it shows itself on a terminal only.

    python examples/mlp_digits.py [--quick]

    expected             full   --quick
    train loss         0.0211    1.3491
    test accuracy      0.9139    0.7583

Read `cnn_digits.py` next.
"""

import sys

from digits import load_digits
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

import pullback as torch
from pullback import nn
from pullback.utils.data import DataLoader, TensorDataset


def main(quick: bool) -> dict:
    torch.manual_seed(0)
    epochs = 2 if quick else 40
    images, labels, test_images, test_labels = load_digits()
    loader = DataLoader(TensorDataset(images, labels), batch_size=64, shuffle=True, drop_last=True)

    model = nn.Sequential(
        nn.Flatten(),
        nn.Linear(64, 128),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(128, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    steps = epochs * len(loader)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    criterion = nn.CrossEntropyLoss()

    @torch.compile
    def step(x, y):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    console = Console()
    progress = Progress(
        TextColumn("epoch {task.fields[epoch]:>2}  loss {task.fields[loss]:.4f}"),
        BarColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    loss = float("nan")
    with progress:
        task = progress.add_task("train", total=steps, epoch=0, loss=float("nan"))
        for epoch in range(epochs):
            total = 0.0
            for x, y in loader:
                total += step(x, y).item()
                schedule.step()
                progress.advance(task)
            loss = total / len(loader)
            progress.update(task, epoch=epoch + 1, loss=loss)

    model.eval()
    with torch.no_grad():
        right = model(test_images).argmax(dim=1) == test_labels
    return {"train loss": loss, "test accuracy": right.float().mean().item()}


if __name__ == "__main__":
    for name, value in main("--quick" in sys.argv).items():
        print(f"{name:<16}{value:>12.6g}")
