"""Write `tests/data/printed/*.txt` with PyTorch: `python -m tests.helpers.record_printed`.

Only what prints equal is written; the rest is counted.  With names of entries, families or programs
as arguments nothing is written and their differences are shown.
"""

import difflib
import sys
from pathlib import Path

import numpy as np
import torch
from functorch.compile import aot_function, make_boxed_compiler
from torch.fx.experimental.proxy_tensor import make_fx

import pullback
import pullback.aot
from pullback.array import dtype as dt
from pullback.core.op import registry
from pullback.fx.make_fx import make_fx as our_make_fx
from pullback.testing import samples
from tests.helpers import aot_families, printed_programs, texts
from tests.helpers.printed_graphs import MODES, of_entry, of_family, of_program

OURS = pullback.aot.aot_function, pullback.aot.make_boxed_compiler


def converted(value):
    """A value of a sample as PyTorch takes it."""
    if isinstance(value, pullback.Tensor):
        return torch.from_numpy(np.array(samples.host(value), copy=True, order="K"))
    if isinstance(value, (list, tuple)):
        return type(value)(converted(v) for v in value)
    if isinstance(value, dt.DType) or type(value).__module__.startswith("pullback"):
        text = str(value)
        return getattr(torch, text.rpartition(".")[2], text)
    return value


def families(names):
    ours = aot_families.programs(pullback)
    for name, program in aot_families.programs(torch).items():
        if not names or name in names:
            yield (name, of_family(torch, aot_function, make_boxed_compiler, *program),
                   of_family(pullback, *OURS, *ours[name]))


def programs(names):
    ours = printed_programs.programs(pullback)
    for name, program in printed_programs.programs(torch).items():
        for mode in MODES if not names or name in names else ():
            yield (f"{name} {mode}", of_program(torch, make_fx, *program, mode),
                   of_program(pullback, our_make_fx, *ours[name], mode))


def entries(names):
    for name, op in registry.items():
        base, _, overload = name.partition(".")
        there = hasattr(getattr(torch.ops.aten, base, None), overload or "default")
        cases = samples.cases(op, dt.float32) if there and op.samples else []
        if cases and (not names or name in names):
            args, kwargs = cases[0].args, cases[0].kwargs
            theirs = of_entry(torch, make_fx, aot_function, make_boxed_compiler, name,
                              converted(args), {k: converted(v) for k, v in kwargs.items()})
            yield name, theirs, of_entry(pullback, our_make_fx, *OURS, name, args, kwargs)


def show(name, theirs, ours) -> None:
    for graph in theirs:
        lines = difflib.unified_diff(ours.get(graph, "").splitlines(), theirs[graph].splitlines(),
                                     "here", "PyTorch", lineterm="")
        print(f"== {name}: {graph}", *lines, sep="\n")


if __name__ == "__main__":
    chosen, found, counts = set(sys.argv[1:]), {}, {}
    for topic in (families, programs, entries):
        kept = found[topic.__name__] = {}
        for name, theirs, ours in topic(chosen):
            if chosen:
                show(name, theirs, ours)
            for graph, text in theirs.items() if "error" not in theirs else ():
                key = f"{topic.__name__}: {graph}"
                same, of = counts.get(key, (0, 0))
                counts[key] = same + (ours.get(graph) == text), of + 1
                if ours.get(graph) == text:
                    kept.setdefault(name, {})[graph] = text
    for key, (same, of) in counts.items():
        print(f"{key}: {same} of {of} equal")
    if not chosen:
        for topic, kept in found.items():
            texts.write(Path(__file__).parents[1] / f"data/printed/{topic}.txt", kept)
