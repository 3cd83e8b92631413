"""Modules whose exported programs PyTorch has written to `tests/data/pt2`.

`python -m tests.helpers.pt2_programs` with PyTorch writes the files, and what the programs gave.
"""

import importlib
import sys
from collections import OrderedDict
from pathlib import Path

import numpy as np

DATA = Path(__file__).parents[1] / "data" / "pt2"


def inputs(torch, name):
    """Arguments of a program, the same numbers everywhere."""
    rng = np.random.default_rng(sum(map(ord, name)))

    def real(*shape):
        return torch.tensor(rng.standard_normal(shape).astype(np.float32))

    return {
        "buffers": lambda: ((real(4, 3), 3.0), {}),
        "tied": lambda: ((torch.tensor([[1, 2], [9, 0]]),), {"scale": 3.0}),
        "trees": lambda: (({"a": real(4, 3)}, (real(4, 2), real(2, 2))), {}),
        "conv": lambda: ((real(2, 3, 6, 6),), {}),
        "branches": lambda: ((real(3),), {}),
        "loops": lambda: ((real(4, 2), torch.tensor(3)), {}),
        "sizes": lambda: ((real(3, 2), real(3, 4)), {}),
        "narrow": lambda: ((real(2, 3).bfloat16(),), {}),
        "halves": lambda: ((real(6), real(3, 2)), {}),
    }[name]()


def modules(torch):
    """Name -> (module, dynamic shapes, is it decomposed before it is saved?)"""
    nn, F = torch.nn, torch.nn.functional

    class Buffers(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 2)
            self.register_buffer("count", torch.ones(2))
            self.register_buffer("other", torch.zeros(2), persistent=False)

        def forward(self, x, y=2.0, *, k=None):
            self.count.add_(1)
            out = self.linear(x).relu() * y + self.count + self.other + torch.tensor([1.0, 2.0])
            return {"out": out, "rows": x.shape[0]}

    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(10, 4)
            self.head = nn.Linear(4, 10, bias=False)
            self.head.weight = self.embedding.weight

        def forward(self, i, *, scale=2.0):
            return self.head(self.embedding(i)) * scale

    class Trees(nn.Module):
        def forward(self, d, pair):
            values, places = torch.topk(d["a"], 2)
            a, b = pair
            parts = torch.split(a, 2, dim=0)
            more = {
                "picked": d["a"][torch.tensor([0, 1]), :1], "wide": a.to(torch.float64),
                "numbers": torch.arange(3), "zeros": torch.zeros_like(b, dtype=torch.int32),
                "far": a.masked_fill(a > 0, float("-inf")),
            }
            return [values, places, parts[0] + b, parts[1]], more

    class Conv(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3, padding=1).to(memory_format=torch.channels_last)
            self.norm = nn.BatchNorm2d(4)

        def forward(self, x):
            return F.max_pool2d(F.relu(self.norm(self.conv(x))), 2).mean((2, 3))

    class Branches(nn.Module):
        def forward(self, x):
            with torch.no_grad():
                y = x * 2
            return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,)) + y

    class Sizes(nn.Module):
        def forward(self, x, y):
            return torch.cat([x, y, x], 1).reshape(x.shape[0], -1) + x.shape[0]

    class Loops(nn.Module):
        def forward(self, x, n):
            higher = importlib.import_module(f"{torch.__name__}._higher_order_ops")
            sums, steps = higher.scan(lambda c, row: (c + row, c * row), x[0], x)
            rows = higher.map(lambda row, y: row.sin() + y, x, sums)
            count, out = higher.while_loop(
                lambda i, y: i < n, lambda i, y: (i + 1, y * 2),
                (torch.zeros((), dtype=torch.int64), sums))
            chosen = torch.cond(x.shape[0] > 3, lambda x: x.sum(0), lambda x: x.prod(0), (x,))
            return steps, rows, count, out, chosen

    class Halves(nn.Module):
        def forward(self, x, y):
            return OrderedDict(half=x[: x.shape[0] // 2].sin(), odd=x[1::2], pairs=x.view(-1, 2),
                               size=y.size(), cut=x[1:-1])

    dim = getattr(torch.export, "Dim", None)
    return {
        "buffers": (Buffers(), {"x": {0: dim("batch", min=2, max=100)}, "y": None}, False),
        "tied": (Tied(), None, False),
        "trees": (Trees(), None, False),
        "conv": (Conv(), None, True),
        "branches": (Branches(), None, False),
        "loops": (Loops(), {"x": {0: dim("rows", min=2)}, "n": None}, False),
        "sizes": (Sizes(), {"x": {0: dim.AUTO}, "y": {0: dim.AUTO, 1: dim.AUTO}}, False),
        "narrow": (nn.Linear(3, 2).bfloat16(), None, False),
        "halves": (Halves(), {"x": {0: 2 * dim("n", min=2)}, "y": {0: dim("m")}}, False),
    }


def record():
    import torch
    from torch.utils import _pytree as pytree

    DATA.mkdir(exist_ok=True)
    torch.manual_seed(0)
    wanted = sys.argv[1:]  # all by default
    found = dict(np.load(DATA / "expected.npz")) if wanted else {}
    for name, (module, dims, decomposed) in modules(torch).items():
        if wanted and name not in wanted:
            continue
        args, kwargs = inputs(torch, name)
        program = torch.export.export(module, args, kwargs, dynamic_shapes=dims)
        if decomposed:
            program = program.run_decompositions()
        for part in program.graph_module.modules():
            for node in getattr(part, "graph", torch.fx.Graph()).nodes:
                node.meta.pop("stack_trace", None)  # where this machine has its files
        torch.export.save(program, str(DATA / f"{name}.pt2"))
        results = pytree.tree_leaves(program.module()(*args, **kwargs))
        for i, value in enumerate(results):
            value = value.detach().to(torch.float64) if torch.is_tensor(value) else value
            found[f"{name}.{i}"] = np.asarray(value)
    np.savez_compressed(DATA / "expected.npz", **found)


if __name__ == "__main__":
    record()
