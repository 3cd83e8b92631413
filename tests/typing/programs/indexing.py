"""Every way to take a part of a tensor."""

import numpy as np

import pullback as torch
from pullback import Tensor

x = torch.arange(24.0).reshape(2, 3, 4)
i = torch.tensor([0, 1])
parts: list[Tensor] = [
    x[0], x[-1, 2], x[..., 0], x[:, None], x[:, 1:, ::2], x[i], x[i, i], x[x > 3], x[[0, 1]],
    x[np.array([0, 1])], x[0, torch.tensor(1)], x[:, i, ...], x[True], x[(0, slice(None))],
]  # fmt: skip
x[0, 0] = 1.0
x[x > 5] = 0
x[:, 1] = torch.zeros(4)
x[i] += 1
x[..., 0] *= 2
n: int = x.shape[0] * x.size(1)
rows, cols, depth = x.shape
flat = x.view(-1)
first, *rest = x.unbind(0)
a, b = x.split(1)
c, d = torch.chunk(x, 2, dim=0)
values, indices = x.max(dim=-1)
top = x.topk(2, dim=-1)
print(top.values.shape, top.indices.dtype, n, rows, cols, depth, flat, first, rest, a, b, c, d)
print(values, indices, [len(p.shape) for p in parts], x.gather(2, indices[..., None]))
print(float(flat[0]), int(flat[1]), bool(flat[2] > 0), flat.tolist(), x.numpy().sum())
for row in x:
    print(row.mean())
print(torch.where(x > 0, x, torch.zeros_like(x)), torch.where(x > 0)[0], x.nonzero(as_tuple=True))
