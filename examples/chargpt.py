"""A small transformer learns to write sonnets, letter by letter: first eagerly, then compiled.

The model is a plain function of a dict of parameters. The first run calls it as it is and asks for
gradients with `backward()`. The second compiles the function that computes the loss and all
gradients: one graph, one C file. Both see the same numbers, so their losses are the same.

    python examples/chargpt.py                    # or: make demo
    python examples/chargpt.py --steps 1000 --width 128
    python examples/chargpt.py --library torch    # the same program on PyTorch

Read `docs/guide.md` next.
"""

from __future__ import annotations

import argparse
import importlib
import math
import time
from pathlib import Path

from rich.console import Console
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

TEXT = Path(__file__).parent / "data" / "sonnets.txt"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--library", default="pullback", help="pullback or torch")
    parser.add_argument("--steps", type=int, default=300, help="training steps of each run")
    parser.add_argument("--batch", type=int, default=32, help="texts per step")
    parser.add_argument("--context", type=int, default=32, help="letters the model looks back")
    parser.add_argument("--width", type=int, default=64, help="size of the hidden state")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--rate", type=float, default=8e-3, help="learning rate")
    parser.add_argument("--seed", type=int, default=1609)
    parser.add_argument("--letters", type=int, default=280, help="length of the sample at the end")
    parser.add_argument("--patience", type=float, default=30.0, help="seconds for the eager run")
    parser.add_argument("--no-compile", action="store_true", help="only the eager run")
    return parser.parse_args()


args = arguments()
torch = importlib.import_module(args.library)
F = importlib.import_module(f"{args.library}.nn.functional")
console = Console(highlight=False)


# --- the text ----------------------------------------------------------------------------------

text = TEXT.read_text(encoding="utf-8")
letters = sorted(set(text))
number = {letter: i for i, letter in enumerate(letters)}
data = torch.tensor([number[letter] for letter in text])


def draw_batch():
    """Random pieces of the text, and the same pieces one letter on."""
    start = torch.randint(len(data) - args.context, (args.batch, 1))
    place = start + torch.arange(args.context)
    return data[place], data[place + 1]


# --- the model ---------------------------------------------------------------------------------


def make_parameters() -> dict:
    """Weights by name. Seeded, so both runs (and both libraries) start from the same numbers."""
    torch.manual_seed(args.seed)
    width = args.width
    params = {
        "letter": torch.randn(len(letters), width) * 0.1,
        "place": torch.randn(args.context, width) * 0.1,
        "out.scale": torch.ones(width),
        "out.shift": torch.zeros(width),
    }
    for i in range(args.layers):
        # What is added to the stream starts small, so that the first steps are calm.
        for name, rows, columns, scale in [
            ("attend", 3 * width, width, 1.0),
            ("merge", width, width, 0.3),
            ("up", 4 * width, width, 1.0),
            ("down", width, 4 * width, 0.3),
        ]:
            params[f"{i}.{name}.weight"] = torch.randn(rows, columns) * (scale / columns**0.5)
            params[f"{i}.{name}.bias"] = torch.zeros(rows)
        for norm in ("norm1", "norm2"):
            params[f"{i}.{norm}.scale"] = torch.ones(width)
            params[f"{i}.{norm}.shift"] = torch.zeros(width)
    return params


def attention(params: dict, layer: str, x):
    """Every place looks back at the places before it."""
    batch, length, width = x.shape
    qkv = F.linear(x, params[layer + "attend.weight"], params[layer + "attend.bias"])
    qkv = qkv.reshape(batch, length, 3, args.heads, width // args.heads).permute(2, 0, 3, 1, 4)
    q, k, v = qkv[0], qkv[1], qkv[2]
    scores = q @ k.transpose(-2, -1) / math.sqrt(width // args.heads)
    future = torch.triu(torch.ones(length, length), diagonal=1) > 0
    weights = F.softmax(scores.masked_fill(future, -math.inf), dim=-1)
    mixed = (weights @ v).transpose(1, 2).reshape(batch, length, width)
    return F.linear(mixed, params[layer + "merge.weight"], params[layer + "merge.bias"])


def norm(params: dict, name: str, x):
    return F.layer_norm(x, (x.shape[-1],), params[name + "scale"], params[name + "shift"])


def forward(params: dict, letters_in):
    """Scores of the next letter at each place."""
    length = letters_in.shape[1]
    x = F.embedding(letters_in, params["letter"]) + params["place"][:length]
    for i in range(args.layers):
        layer = f"{i}."
        x = x + attention(params, layer, norm(params, layer + "norm1.", x))
        h = norm(params, layer + "norm2.", x)
        h = F.gelu(F.linear(h, params[layer + "up.weight"], params[layer + "up.bias"]))
        x = x + F.linear(h, params[layer + "down.weight"], params[layer + "down.bias"])
    return norm(params, "out.", x) @ params["letter"].t()


def loss(params: dict, letters_in, letters_out):
    scores = forward(params, letters_in)
    return F.cross_entropy(scores.reshape(-1, len(letters)), letters_out.reshape(-1))


# --- two ways to a gradient --------------------------------------------------------------------


def eager_step(params: dict, x, y):
    """Run the function, then walk the tape back."""
    value = loss(params, x, y)
    value.backward()
    return value


value_and_gradients = torch.compile(torch.func.grad_and_value(loss))


def compiled_step(params: dict, x, y):
    """Loss and gradients in one native call."""
    bare = {name: p.detach() for name, p in params.items()}
    gradients, value = value_and_gradients(bare, x, y)
    for name, gradient in gradients.items():
        params[name].grad = gradient
    return value


# --- training ----------------------------------------------------------------------------------


def train(title: str, step, progress: Progress, patience: float = math.inf):
    """Train from the common start until all steps are done or patience ends.

    Returns parameters, losses, and the seconds of the first and of all other steps.
    """
    params = make_parameters()
    for p in params.values():
        p.requires_grad_()
    optimizer = torch.optim.AdamW(list(params.values()), lr=args.rate, betas=(0.9, 0.95))
    task = progress.add_task(title, total=args.steps, loss=math.nan, speed=0.0)
    losses, first, begun = [], 0.0, time.perf_counter()
    for i in range(args.steps):
        warm, left = min(1.0, (i + 1) / 20), 1 - i / args.steps
        optimizer.param_groups[0]["lr"] = args.rate * warm * (0.1 + 0.9 * left)
        x, y = draw_batch()
        optimizer.zero_grad()
        value = step(params, x, y)
        optimizer.step()
        losses.append(value.item())
        if i == 0:
            first = time.perf_counter() - begun
            begun = time.perf_counter()
        speed = i / max(time.perf_counter() - begun, 1e-9)
        progress.update(task, advance=1, loss=losses[-1], speed=speed)
        if time.perf_counter() - begun > patience:
            break
    return params, losses, first, time.perf_counter() - begun


def write(params: dict, start: str, count: int) -> str:
    """Let the model continue a text."""
    words = [number[letter] for letter in start]
    with torch.no_grad():
        for _ in range(count):
            scores = forward(params, torch.tensor([words[-args.context :]]))[0, -1]
            chances = F.softmax(scores / 0.8, dim=-1)
            drawn = (chances.cumsum(0) < torch.rand(())).sum()
            words.append(min(int(drawn), len(letters) - 1))
    return "".join(letters[w] for w in words)


def source_files(compiled) -> list[str]:
    """Where the generated C of a compiled function is; empty if it runs without (or on PyTorch)."""
    return compiled.source_paths() if hasattr(compiled, "source_paths") else []


def show(runs: dict) -> None:
    """The losses of all runs side by side, and their speed."""
    table = Table("step", *(f"loss, {title}" for title in runs), box=None, padding=(0, 3))
    for i in sorted({0, *range(49, args.steps, 50), args.steps - 1}):
        values = [losses[i] if i < len(losses) else None for _, losses, _, _ in runs.values()]
        table.add_row(str(i + 1), *("-" if v is None else f"{v:.4f}" for v in values))
    rates = [(len(losses) - 1) / max(seconds, 1e-9) for _, losses, _, seconds in runs.values()]
    table.add_row()
    table.add_row("steps/s", *(f"{rate:.1f}" for rate in rates))
    table.add_row("first step", *(f"{first:.2f} s" for _, _, first, _ in runs.values()))
    console.print(table)
    if len(runs) == 2:
        eager, compiled = (losses for _, losses, _, _ in runs.values())
        apart = max(abs(a - b) for a, b in zip(eager, compiled, strict=False))
        if len(eager) < len(compiled):
            console.print(f"\nThe eager run was stopped after {len(eager)} steps (--patience).")
        console.print(f"\nLargest difference of the losses: {apart:.1e}")
        console.print(f"Compiled is {rates[1] / rates[0]:.1f} times as fast.")


def main() -> None:
    params = make_parameters()
    count = sum(p.numel() for p in params.values())
    console.print(
        f"{len(text):,} letters of Shakespeare, {count:,} parameters, "
        f"{args.steps} steps of {args.batch} x {args.context} letters, {args.library}\n"
    )
    steps = {"eager": eager_step} | ({} if args.no_compile else {"compiled": compiled_step})
    columns = (
        TextColumn("{task.description:<9}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.3f}  {task.fields[speed]:6.1f} steps/s"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        runs = {}
        for title, step in steps.items():
            patience = args.patience if title == "eager" and len(steps) > 1 else math.inf
            runs[title] = train(title, step, progress, patience)
    console.print()
    show(runs)
    if not args.no_compile:
        for path in source_files(value_and_gradients):
            console.print(f"Generated C: {path}", soft_wrap=True)
    trained = list(runs.values())[-1][0]
    sample = write(trained, "Shall I compare thee to ", args.letters)
    console.print(Panel(sample, title="the model writes", width=72))


if __name__ == "__main__":
    main()
