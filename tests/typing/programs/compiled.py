"""compile() as a function and as a decorator."""

import pullback as torch
from pullback import Tensor, nn


@torch.compile
def gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x**3)))


@torch.compile(fullgraph=True)
def norm(x: Tensor) -> Tensor:
    return x / x.norm(dim=-1, keepdim=True)


model = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
fast = torch.compile(model)
x = torch.randn(2, 4, requires_grad=True)
y = fast(norm(gelu(x)))
y.sum().backward()
step = torch.compile(lambda a, b: (a * b).sum(), dynamic=True)
print(step(x, x), gelu(x).shape)
