"""Arithmetic between tensors, numbers and NumPy arrays; results as Python values."""

import numpy as np

import pullback as torch
from pullback import Tensor

x = torch.tensor([1.0, 2.0, 3.0])
n: float = x.sum().item()
m: int = int(x.argmax())
values: list[float] = x.tolist()
array: np.ndarray = x.numpy()
back: Tensor = torch.from_numpy(array)
sums: list[Tensor] = [
    x + 1, 1 + x, x - 1.5, 2 * x, x / 3, 1 / x, x // 2, x % 2, x**2, 2**x, -x, abs(x), x @ x,
    (x > 1) & (x < 3), (x > 1) | (x == 2), ~(x > 1), x != 2, x >= back,
]  # fmt: skip
x += 1
x *= torch.ones(3)
total = sum(sums[0])
largest = max(values)
text = f"{x.mean():.2f} {n:.1f} {m}"
print(np.asarray(x), np.sqrt(x.numpy()), total, largest, text, len(x), x.clone().detach().cpu())
if x.sum() > 0 and x.any():
    print("positive")
assert isinstance(x, torch.Tensor)
print(torch.cat([x, back]).reshape(2, -1).permute(1, 0).contiguous().expand(3, 2).shape, sorted(x))
