"""Modules that tests of `export` export, and a program after saving and loading."""

import io

import pullback as torch
from pullback import nn
from pullback.export import load, save
from tests.helpers.parts import parts_of


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(1, 3, 1), nn.BatchNorm2d(3)
        self.shift = torch.tensor([1.0, 2.0, 3.0])
        self.register_buffer("scale", torch.full((3,), 2.0), persistent=False)

    def forward(self, x, extra, *, k=None):
        x = self.bn(self.conv(x))
        with torch.no_grad():
            y = x * 2
        y.add_(1)
        return {
            "a": torch.relu(x) + extra["q"], "b": (y, k, None),
            "c": x.mean() + self.shift * self.scale}


def net():
    torch.manual_seed(0)
    return Net()


def arguments():
    return (torch.randn(1, 1, 3, 3), {"q": torch.ones(3)}), {"k": 2.0}


def leaves(out):
    return out["a"], out["b"][0], out["c"]


Parts = parts_of(nn)


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def again(program):
    file = io.BytesIO()
    save(program, file)
    return load(io.BytesIO(file.getvalue()))
