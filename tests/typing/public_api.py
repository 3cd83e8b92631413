"""Ordinary user code for the type checker: `make lint` checks it, nothing runs it.

A line fails if the generated stubs lose a name, an argument or a result type.
"""

from typing import assert_type

import pullback as torch
from pullback import Tensor

x: Tensor = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
y = torch.tensor([1.0, 2.0])

assert_type(x.mul(2), Tensor)
assert_type(x.mul_(x), Tensor)
assert_type(torch.add(x, 1.5, alpha=2), Tensor)
assert_type(x * 2 + 1, Tensor)
assert_type(2 / x, Tensor)
assert_type(x @ x.t(), Tensor)
assert_type(x[0, :2], Tensor)
assert_type(x.sum(dim=(0, 1), keepdim=True), Tensor)
assert_type(x.max(1).values, Tensor)
assert_type(x.view(2, -1), Tensor)
assert_type(x.permute(1, 0), Tensor)
assert_type(torch.cat([x, x], dim=1), Tensor)
assert_type(x.split(2), list[Tensor])
assert_type(torch.where(x > 0, x, 0.0), Tensor)
assert_type(torch.softmax(x, dim=-1), Tensor)
assert_type(x.grad, Tensor | None)
assert_type(x.ndim, int)
assert_type(len(x), int)
assert_type(float(x.sum()), float)

torch.manual_seed(0)
x.sum().backward()
with torch.no_grad():
    x.zero_()
for row in x:
    assert_type(row, Tensor)
