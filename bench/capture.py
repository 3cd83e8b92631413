"""What a capture costs: `python -m bench.capture`.

Capture with the engine inside, and the minimum cut, of a transformer block and of GPTs of growing
depth; forward and backward.  The targets: 0.25 s for the block, 2 s for twelve layers, linear in
depth.  Nothing is compiled here.
"""

from __future__ import annotations

import gc
import time

import pullback as torch
from pullback import nn
from pullback.capture.capture import capture
from pullback.cut.partition import min_cut_rematerialization_partition
from pullback.decomp import Everything
from pullback.nn import functional as F
from pullback.pytree import tree_flatten

WIDTH, HEADS, WORDS, LENGTH = 64, 4, 100, 16


class Block(nn.Module):
    """Attention and a two-layer network, with what goes around them."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.parts, self.joined = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        rows, length, width = x.shape
        parts = self.parts(self.before(x)).chunk(3, -1)
        q, k, v = (p.reshape(rows, length, HEADS, -1).transpose(1, 2) for p in parts)
        scores = (q @ k.transpose(-2, -1)) * (width // HEADS) ** -0.5
        seen = torch.ones(length, length, dtype=torch.bool).tril()
        weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
        x = x + self.joined((weights @ v).transpose(1, 2).reshape(rows, length, width))
        return x + self.down(F.gelu(self.up(self.after(x)), approximate="tanh"))


class GPT(nn.Module):
    """Blocks between an embedding and a loss."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, words, following):
        x = self.words(words) + self.places(torch.arange(words.shape[1]))
        scores = self.head(self.norm(self.blocks(x)))
        return F.cross_entropy(scores.reshape(-1, WORDS), following.reshape(-1))


def measure(function, *args, repeat: int = 3) -> tuple[int, float, float]:
    """(nodes of the joint graph, best seconds of the capture, best seconds of the cut)."""
    times = []
    for _ in range(repeat):
        gc.collect()
        flat, spec = tree_flatten((args, {}))
        start = time.process_time()
        joint = capture(function, flat, spec, Everything(set()))
        captured = time.process_time()
        min_cut_rematerialization_partition(joint.module, joint.forward_count)
        times.append((captured - start, time.process_time() - captured))
    nodes = len(joint.module.graph.nodes)
    return nodes, min(t[0] for t in times), min(t[1] for t in times)


def main() -> None:
    """Print a table."""
    words = torch.randint(0, WORDS, (2, LENGTH))
    cases = [("block", Block(), (torch.randn(2, LENGTH, WIDTH, requires_grad=True),))]
    cases += [(f"GPT, {n} layers", GPT(n), (words, words)) for n in (6, 12, 24, 48)]
    print(f"{'':16}{'nodes':>8}{'capture':>10}{'cut':>10}{'s':>8}{'per node':>12}")
    for name, module, args in cases:
        nodes, captured, cut = measure(module, *args)
        whole = captured + cut
        each = whole / nodes * 1e6
        print(f"{name:16}{nodes:8}{captured:10.3f}{cut:10.3f}{whole:8.3f}{each:9.0f} µs")


if __name__ == "__main__":
    main()
