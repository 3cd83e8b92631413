"""A GPT in the layout of nanoGPT: what it costs to make one, and checkpoints both ways.

    python -m bench.gpt [--against torch] [--repeat 5] [--threads 1] [--checkpoints]

makes the model of 124 million parameters in turn with both libraries and prints the best and the
median time of each. With `--checkpoints` it also writes a state dict with each library, reads it
with the other, and compares.
"""

from __future__ import annotations

import argparse
import importlib
import math
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Size:
    vocabulary: int = 50257
    context: int = 1024
    layers: int = 12
    heads: int = 12
    width: int = 768
    bias: bool = True


GPT2 = Size()
SMALL = Size(vocabulary=101, context=16, layers=2, heads=2, width=32)


def make_gpt(torch, size: Size = GPT2):
    """The model, with the modules, names and first numbers of nanoGPT, from a library."""
    nn, F = torch.nn, torch.nn.functional

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.c_attn = nn.Linear(size.width, 3 * size.width, bias=size.bias)
            self.c_proj = nn.Linear(size.width, size.width, bias=size.bias)

        def forward(self, x):
            batch, length, width = x.shape
            parts = self.c_attn(x).split(width, dim=2)
            shape = batch, length, size.heads, width // size.heads
            q, k, v = (part.view(shape).transpose(1, 2) for part in parts)
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.c_proj(mixed.transpose(1, 2).contiguous().view(batch, length, width))

    class MLP(nn.Module):
        def __init__(self):
            super().__init__()
            self.c_fc = nn.Linear(size.width, 4 * size.width, bias=size.bias)
            self.gelu = nn.GELU()
            self.c_proj = nn.Linear(4 * size.width, size.width, bias=size.bias)

        def forward(self, x):
            return self.c_proj(self.gelu(self.c_fc(x)))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1 = nn.LayerNorm(size.width, bias=size.bias)
            self.attn = Attention()
            self.ln_2 = nn.LayerNorm(size.width, bias=size.bias)
            self.mlp = MLP()

        def forward(self, x):
            x = x + self.attn(self.ln_1(x))
            return x + self.mlp(self.ln_2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.transformer = nn.ModuleDict(
                dict(
                    wte=nn.Embedding(size.vocabulary, size.width),
                    wpe=nn.Embedding(size.context, size.width),
                    h=nn.ModuleList([Block() for _ in range(size.layers)]),
                    ln_f=nn.LayerNorm(size.width, bias=size.bias),
                )
            )
            self.lm_head = nn.Linear(size.width, size.vocabulary, bias=False)
            self.transformer.wte.weight = self.lm_head.weight
            self.apply(self.start)
            for name, p in self.named_parameters():
                if name.endswith("c_proj.weight"):
                    nn.init.normal_(p, mean=0.0, std=0.02 / math.sqrt(2 * size.layers))

        @staticmethod
        def start(module):
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, mean=0.0, std=0.02)
                if getattr(module, "bias", None) is not None:
                    nn.init.zeros_(module.bias)

        def forward(self, tokens):
            places = torch.arange(tokens.shape[1])
            x = self.transformer.wte(tokens) + self.transformer.wpe(places)
            for block in self.transformer.h:
                x = block(x)
            return self.lm_head(self.transformer.ln_f(x))

    return GPT()


def numbers(torch, size: Size, seed: int = 0):
    """A seeded model; the same seed gives the same numbers in every library."""
    torch.manual_seed(seed)
    return make_gpt(torch, size)


def handed_over(writer, reader, size: Size, folder: Path):
    """A model of `writer`, and one of `reader` that has its state dict from a file."""
    file = folder / f"{writer.__name__}.pt"
    source, target = numbers(writer, size), numbers(reader, size, seed=1)
    writer.save(source.state_dict(), file)
    target.load_state_dict(reader.load(file), strict=True)
    return source, target


def apart(a, b) -> float:
    """The largest difference of two models' parameters, by name."""
    pairs = zip(a.state_dict().items(), b.state_dict().items(), strict=True)
    worst = 0.0
    for (name, x), (other, y) in pairs:
        if name != other or tuple(x.shape) != tuple(y.shape):
            raise ValueError(f"{name} {tuple(x.shape)} is not {other} {tuple(y.shape)}")
        worst = max(worst, float(abs(x.detach().numpy() - y.detach().numpy()).max()))
    return worst


def construction_times(libraries: list, size: Size, repeat: int) -> dict[str, list[float]]:
    """Seconds to make the model, the libraries in turn so that all meet the same weather."""
    times = {library.__name__: [] for library in libraries}
    for _ in range(repeat):
        for library in libraries:
            begun = time.perf_counter()
            model = make_gpt(library, size)
            times[library.__name__].append(time.perf_counter() - begun)
            del model
    return times


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.gpt", description=__doc__.split("\n")[0])
    parser.add_argument("--against", default="torch", help="the other library")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", type=int, help="threads of both libraries")
    parser.add_argument("--checkpoints", action="store_true", help="hand state dicts over, too")
    args = parser.parse_args()
    libraries = [importlib.import_module(name) for name in ("pullback", args.against)]
    for library in libraries:
        make_gpt(library, SMALL)  # imports and first calls are not what is measured
        if args.threads:
            library.set_num_threads(args.threads)
    times = construction_times(libraries, Size(), args.repeat)
    for name, seconds in times.items():
        print(f"{name:<10} best {min(seconds):.3f} s, median {statistics.median(seconds):.3f} s")
    ours, theirs = (min(seconds) for seconds in times.values())
    print(f"ratio      {ours / theirs:.2f}")
    if args.checkpoints:
        with tempfile.TemporaryDirectory() as folder:
            for writer, reader in (libraries, libraries[::-1]):
                source, target = handed_over(writer, reader, Size(), Path(folder))
                count = sum(p.numel() for p in target.parameters())
                print(
                    f"{writer.__name__} to {reader.__name__}: {count:,} parameters, "
                    f"largest difference {apart(source, target)}"
                )


if __name__ == "__main__":
    main()
