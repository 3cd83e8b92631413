"""Attention, embeddings, a mask, a loss over a vocabulary."""

import math

import pullback as torch
import pullback.nn as nn
import pullback.nn.functional as F


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.register_buffer("mask", torch.tril(torch.ones(16, 16)).bool(), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, c = x.shape
        q, k, v = self.qkv(x).split(c, dim=2)
        q = q.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        k = k.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        v = v.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        scores = scores.masked_fill(~self.mask[:t, :t], float("-inf"))
        y = F.softmax(scores, dim=-1) @ v
        fast = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out((y + 0 * fast).transpose(1, 2).contiguous().view(b, t, c))


class Model(nn.Module):
    def __init__(self, vocabulary: int = 11, width: int = 8) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(16, width)
        self.blocks = nn.Sequential(*[Attention(width, 2) for _ in range(2)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(
        self, ids: torch.Tensor, targets: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        x = self.tokens(ids) + self.places(torch.arange(ids.size(1), device=ids.device))
        logits = self.head(self.norm(self.blocks(x)))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss

    @torch.no_grad()
    def generate(self, ids: torch.Tensor, n: int) -> torch.Tensor:
        for _ in range(n):
            logits, _ = self(ids[:, -16:])
            probabilities = F.softmax(logits[:, -1, :], dim=-1)
            ids = torch.cat((ids, torch.multinomial(probabilities, num_samples=1)), dim=1)
        return ids


model = Model()
ids = torch.randint(0, 11, (2, 6))
logits, loss = model(ids, ids)
assert loss is not None
loss.backward()
print(model.generate(ids, 2).tolist())
