"""Random programs that reach further than `random_programs.py`: more kinds of views and writes,
hooks, grad modes, autocast, a module with a buffer and a parameter, arguments of several sizes.

As there, steps that eager refuses are left out, so that all programs run.  `start(size)` makes
leaves and arguments, and gives the module a new buffer.
"""

import random

import pullback as pb
from tests.helpers import random_programs as programs
from tests.helpers.random_programs import MATHS, MORE_MATHS, PAIRS, VIEWS, WRITES

SIZES = ((2, 3), (3, 4))  # (rows, columns) of all arguments

WIDE_VIEWS = {
    **VIEWS,
    "windows": lambda v: v.unfold(-1, 2, 1),
    "apart windows": lambda v: v.unfold(0, 1, 2),
    "diagonal": lambda v: v.diagonal(),
    "wider": lambda v: v.unsqueeze(0).expand(2, *v.shape),
    "moved": lambda v: v.movedim(0, -1),
    "half": lambda v: v.chunk(2, -1)[0],
    "narrow": lambda v: v.narrow(0, 1, 1),
    "every second": lambda v: v[..., ::2],
    "places": lambda v: v.as_strided((2, 2), (2, 1), v.storage_offset() // v.is_contiguous()),
    "squeezed": lambda v: v.unsqueeze(1).squeeze(1),
    "as is": lambda v: v.view_as(v),
    "parts": lambda v: v.split(1, 0)[0],
    "number": lambda v: v.view(-1)[1],
}
WIDE_WRITES = {
    **WRITES,
    "scale": lambda v: v.mul_(v.detach() + 1),
    "square": lambda v: v.mul_(v),
    "clamp": lambda v: v.clamp_(-0.5, 0.5),
    "zero": lambda v: v.zero_(),
    "mask": lambda v: v.masked_fill_(v.detach() > 0, 2.0),
    "rows": lambda v: v.index_add_(0, pb.tensor([0]), pb.ones_like(v[:1])),
    "swap": lambda v: v.transpose_(0, -1),
    "shorter": lambda v: v.squeeze_(0),
    "diagonal write": lambda v: v.diagonal().mul_(2),
    "tail write": lambda v: v[..., 1:].add_(1),
    "window write": lambda v: v.unfold(-1, 2, 2).mul_(3),
    "piece write": lambda v: v.narrow(0, 0, 1).sin_(),
    "cut write": lambda v: v.detach().mul_(2),
}
WIDE_MATHS = {
    **MATHS, **MORE_MATHS,
    "squares": lambda v: v * v,
    "sum": lambda v: v.sum(0),
    "exp": lambda v: v.exp(),
    "largest": lambda v: v.max(0)[0],
    "windows sum": lambda v: v.unfold(-1, 2, 1).sum(-1),
    "product": lambda v: v @ v.mT,
}
WIDE_PAIRS = {
    **PAIRS,
    "tail": lambda v, w: v[..., 1:].copy_(w[..., 1:]),
    "mul_": lambda v, w: v.mul_(w),
    "addcmul_": lambda v, w: v.addcmul_(w, w, value=0.5),
    "outer": lambda v, w: v @ w.mT,
}
HOOKS = {
    "hook": lambda v: v.register_hook(lambda g: g * 2),
    "retain": lambda v: v.retain_grad(),
}
CHANGES_SHAPE = ("turn", "longer", "swap", "shorter")
MADE = ("mul", "outer")  # pairs whose result is a new value
KINDS = ["plain", "inner", "inner", "again", *(f"of {v}" for v in WIDE_VIEWS if v != "number")]


class Holder(pb.nn.Module):
    """A module with a buffer and a parameter."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", pb.zeros(3, dtype=pb.float64))
        self.weight = pb.nn.Parameter(pb.arange(3.0, dtype=pb.float64))

    def reset(self) -> None:
        self.count = pb.arange(3.0, dtype=pb.float64) * 0.25


HELD = {
    "count": lambda m, v: m.count.add_(1),
    "count and add": lambda m, v: v + m.count[0] * m.weight[1],
    "average": lambda m, v: m.count.mul_(0.5).add_(v.detach().reshape(-1)[:3]),
    "weigh": lambda m, v: v * m.weight[2] + m.count.sum(),
    "part of count": lambda m, v: m.count[1:].mul_(m.count[:2] + 1),
}


def _step(values: list, held: Holder, step: tuple, choosing: bool) -> None:
    name, i, j, mode = step
    v, w = values[i % len(values)], values[j % len(values)]
    if choosing and name in CHANGES_SHAPE:  # views of it would have to be told
        arrays = [o.detach().numpy() for o in values if o is not v]
        if mode or any(programs.np.shares_memory(v.detach().numpy(), a) for a in arrays):
            raise ValueError("has views")
    if choosing and name in ("zero", "fill") and 0 in v.stride():
        raise ValueError("captures refuse what shows an element twice, as PyTorch's do")
    if choosing and name in HOOKS and not v.requires_grad:
        raise ValueError("nothing to hook")
    with pb.set_grad_enabled(mode != "silent"), pb.autocast("cpu", pb.bfloat16, mode == "cast"):
        if name in WIDE_VIEWS:
            values.append(WIDE_VIEWS[name](v))
        elif name in WIDE_MATHS:
            values.append(WIDE_MATHS[name](v))
        elif name in WIDE_WRITES:
            WIDE_WRITES[name](v)
        elif name in HOOKS:
            HOOKS[name](v)
        elif name in HELD:
            out = HELD[name](held, v)
            if out is not held.count and out._base is not held.count:
                values.append(out)
        else:
            out = WIDE_PAIRS[name](v, w)
            if name in MADE:
                values.append(out)


def make_program(seed: int) -> tuple:
    """(function, starts for several sizes, text) of the program with a number."""
    rng = random.Random(f"wide {seed}")
    kinds = [rng.choice(["plain", "inner", "inner", "leaf"])]
    kinds += [rng.choice(KINDS) for _ in range(rng.choice([0, 1, 1, 2]))]
    held = Holder()
    start, steps, picks = programs.start_of(kinds, WIDE_VIEWS, held), [], []
    names = [*WIDE_VIEWS, *WIDE_WRITES, *WIDE_WRITES, *WIDE_MATHS, *WIDE_PAIRS, *HOOKS, *HELD]

    def function(*args, choosing=False):
        values = list(args)
        for step in steps:
            _step(values, held, step, choosing)
        return [values[k % len(values)] for k in picks]

    for _ in range(rng.choice([3, 4, 6, 8])):
        mode = rng.choice(["", "", "", "", "", "", "silent", "cast"])
        steps.append((rng.choice(names), rng.randrange(12), rng.randrange(12), mode))
        try:
            for size in SIZES:
                function(*start(size)[1], choosing=True)
        except (RuntimeError, ValueError, IndexError, TypeError, ZeroDivisionError):
            steps.pop()
    picks += [rng.randrange(12) for _ in range(rng.choice([1, 2, 3]))]
    return function, start, f"seed {seed}: {kinds} {steps} -> {picks}"
