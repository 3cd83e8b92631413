"""Modules of one's own: parameters, buffers, children, typed forward."""

import math

import pullback as torch
from pullback import Tensor, nn


class Norm(nn.Module):
    running: Tensor

    def __init__(self, features: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running", torch.zeros(features))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(dim=-1, keepdim=True)
        var = x.var(dim=-1, unbiased=False, keepdim=True)
        if self.training:
            self.running = 0.9 * self.running + 0.1 * mean.mean().detach()
        return (x - mean) / torch.sqrt(var + self.eps) * self.weight + self.bias


class Block(nn.Module):
    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.heads = nn.ModuleDict({"a": nn.Linear(width, 1), "b": nn.Linear(width, 2)})
        self.norm = Norm(width)
        self.scale = 1 / math.sqrt(width)
        self.reset()

    def reset(self) -> None:
        for layer in self.layers:
            if isinstance(layer, nn.Linear):
                nn.init.xavier_uniform_(layer.weight)
                nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor, head: str = "a") -> tuple[Tensor, Tensor]:
        for layer in self.layers:
            x = x + torch.relu(layer(x)) * self.scale
        x = self.norm(x)
        return x, self.heads[head](x)


block = Block(8, 2)
hidden, out = block(torch.randn(3, 8))
print(sum(p.numel() for p in block.parameters() if p.requires_grad), out.shape)
for name, parameter in block.named_parameters():
    print(name, tuple(parameter.shape), parameter.requires_grad)
state = block.state_dict()
block.load_state_dict(state)
block.norm.weight.data.fill_(2.0)
block.norm.weight.requires_grad_(False)
block.apply(lambda m: None)
double: Block = block.double()
handle = block.register_forward_hook(lambda module, args, output: None)
handle.remove()
