"""Small random programs of views, writes and aliases, for comparing eager with compiled.

A program is a list of steps on a growing list of tensors, chosen by a seeded generator; steps that
eager refuses are left out, so that all programs run.
"""

import random

import numpy as np

import pullback as pb

VIEWS = {
    "t": lambda v: v.t(),
    "first": lambda v: v[0],
    "part": lambda v: v[..., 1:],
    "row": lambda v: v.unsqueeze(0),
    "piece": lambda v: v.unbind(0)[-1],
    "flat": lambda v: v.reshape(-1),
    "apart": lambda v: v.detach(),
}
WRITES = {
    "double": lambda v: v.mul_(2),
    "sin": lambda v: v.sin_(),
    "turn": lambda v: v.t_(),
    "longer": lambda v: v.unsqueeze_(0),
    "fill": lambda v: v.fill_(0.5),
    "item": lambda v: v.__setitem__(0, 1.5),
}
MATHS = {"cos": lambda v: v.cos(), "half": lambda v: v * 0.5, "copy": lambda v: v.clone()}
PAIRS = {
    "add_": lambda v, w: v.add_(w),
    "copy_": lambda v, w: v.copy_(w),
    "mul": lambda v, w: v * w,
    "put": lambda v, w: v.__setitem__(0, w[0]),
}

# in longer programs only: what else can be done to a tensor
MORE_WRITES = {
    "data": lambda v: v.data.mul_(3),
    "data item": lambda v: v.data.__setitem__(0, 2.5),
    "cut": lambda v: v.detach_(),
    "flat write": lambda v: v.view(-1).add_(1),
    "diagonal": lambda v: v.diagonal().mul_(2),
    "swap": lambda v: v.transpose_(0, 1),
}
MORE_MATHS = {
    "turned sum": lambda v: v.t() + 1,
    "sums": lambda v: v.cumsum(0),
    "like": lambda v: pb.ones_like(v) * v,
    "joined": lambda v: pb.cat([v, v]),
}
MORE_PAIRS = {"out": lambda v, w: pb.neg(w, out=v)}
CHANGES_SHAPE = ("turn", "longer", "swap", "cut")


def _step(values: list, step: tuple, choosing: bool = False) -> None:
    name, i, j, silent = step
    v, w = values[i % len(values)], values[j % len(values)]
    if choosing and name in CHANGES_SHAPE:  # views of it would have to be told
        arrays = [o.detach().numpy() for o in values if o is not v]
        if silent or any(np.shares_memory(v.detach().numpy(), a) for a in arrays):
            raise ValueError("has views")
    if choosing and name.startswith("data") and v.requires_grad:
        raise ValueError("a graph keeps values, eager code keeps memory")
    if choosing and (name == "out" and v.shape != w.shape or name == "cut" and v._base is not None):
        raise ValueError("would change a shape, or a view")
    with pb.set_grad_enabled(not silent):
        for table in (VIEWS, MATHS, MORE_MATHS):
            if name in table:
                values.append(table[name](v))
        for table in (WRITES, MORE_WRITES):
            if name in table:
                table[name](v)
        if name in MORE_PAIRS:
            with pb.no_grad():
                MORE_PAIRS[name](v, w)
        if name in PAIRS:
            out = PAIRS[name](v, w)
            if name == "mul":
                values.append(out)


def start_of(kinds: list, views: dict = VIEWS, held=None) -> callable:
    """A function that makes leaves and arguments, the same ones every time."""

    def start(size=(2, 3)):
        leaves, args = [], []
        if held is not None:
            leaves.append(held.weight)
            held.reset()
        for number, kind in enumerate(kinds):
            count = size[0] * size[1]
            t = (pb.arange(float(count)).double() * (0.3 + number) - 0.7).reshape(size).clone()
            if kind in ("leaf", "inner"):
                t.requires_grad_()
                leaves.append(t)
            if kind == "inner":
                t = t * 1
            if kind.startswith("of ") and args:
                t = views[kind[3:]](args[0])
            if kind == "again" and args:
                t = args[0]
            args.append(t)
        return leaves, args

    start.held = held
    return start


def make_program(seed: int, more: bool = False) -> tuple:
    """(function, start, text) of the program with a number; with `more`, a longer one."""
    rng = random.Random(seed)
    kinds = [rng.choice(["plain", "inner", "inner", "leaf"])]
    kinds += [rng.choice(["plain", "inner", "again", *(f"of {v}" for v in VIEWS)])
              for _ in range(rng.choice([0, 1, 1, 2]))]
    start, steps = start_of(kinds), []
    names = [*VIEWS, *WRITES, *WRITES, *MATHS, *PAIRS]
    names += [*MORE_WRITES, *MORE_MATHS, *MORE_PAIRS] if more else []

    def function(*args, choosing=False):
        values = list(args)
        for step in steps:
            _step(values, step, choosing)
        return [values[k % len(values)] for k in picks]

    picks: list = []
    for _ in range(rng.choice([4, 6, 8] if more else [2, 3, 4, 6])):
        steps.append((rng.choice(names), rng.randrange(12), rng.randrange(12), rng.random() < 0.15))
        try:
            function(*start()[1], choosing=True)
        except (RuntimeError, ValueError, IndexError, TypeError):
            steps.pop()
    picks += [rng.randrange(12) for _ in range(rng.choice([1, 2, 3]))]
    return function, start, f"seed {seed}: {kinds} {steps} -> {picks}"
