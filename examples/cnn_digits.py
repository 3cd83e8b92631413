"""A small convolutional network reads digits that are turned and shifted at random.

Convolution, batch normalisation and pooling; images are changed on the fly by `affine_grid` and
`grid_sample`, so every epoch sees new ones. The learning rate makes one cycle; a moving average of
the weights is what is tested.

    python examples/cnn_digits.py [--quick]

    expected             full   --quick
    train loss         0.5776    1.4497
    test accuracy      0.9917    0.8056

Read `vae_digits.py` next.
"""

import math
import sys

from digits import load_digits

import pullback as torch
import pullback.nn.functional as F
from pullback import nn
from pullback.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel_size=3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


def make_model() -> nn.Module:
    return nn.Sequential(
        Block(1, 16),
        Block(16, 32),
        nn.MaxPool2d(2),  # 4 x 4 from here on
        Block(32, 32),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(32 * 4, 10),
    )


def augment(x, degrees: float = 12.0, shift: float = 0.12):
    """Each image turned and moved by its own random amount."""
    angle = (torch.rand(len(x)) * 2 - 1) * math.radians(degrees)
    move = (torch.rand(len(x), 2) * 2 - 1) * shift
    cos, sin = angle.cos(), angle.sin()
    rows = [cos, -sin, move[:, 0], sin, cos, move[:, 1]]
    theta = torch.stack(rows, dim=1).reshape(-1, 2, 3)
    return F.grid_sample(x, F.affine_grid(theta, x.shape, align_corners=False), align_corners=False)


def main(quick: bool) -> dict:
    torch.manual_seed(0)
    epochs, size = (1, 64) if quick else (15, 64)
    images, labels, test_images, test_labels = load_digits()
    model = make_model()
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.98))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=0.1, total_steps=epochs * (len(images) // size)
    )

    mean = float("nan")
    for _ in range(epochs):
        total = 0.0
        batches = torch.randperm(len(images)).split(size)[: len(images) // size]
        for batch in batches:
            scores = model(augment(images[batch]))
            loss = F.cross_entropy(scores, labels[batch], label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            average.update_parameters(model)
            total += loss.item()
        mean = total / len(batches)

    update_bn(images.split(size), average)  # averaged weights need statistics of their own
    average.eval()
    with torch.no_grad():
        right = average(test_images).argmax(dim=1) == test_labels
    return {"train loss": mean, "test accuracy": right.float().mean().item()}


if __name__ == "__main__":
    for name, value in main("--quick" in sys.argv).items():
        print(f"{name:<16}{value:>12.6g}")
