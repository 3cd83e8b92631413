"""Programs of views and writes whose every fact was recorded from PyTorch 2.13.

A program is a list of steps, `mode|v3,v1: x.copy_(y)`: in which grad mode, what stands for x and y
(`v1*1`: a copy, where both share memory), the expression, and whether it raises RuntimeError or
another error of PyTorch's.  Behind them stand shape, version, requires_grad, is_leaf, node, number
of the base and retains_grad of every variable after the last step.
"""

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import pullback as torch
from tests.helpers.custom_functions import custom_function, dirtying

PROGRAMS = json.loads((Path(__file__).parents[1] / "data/view_programs.json").read_text())
MODES = {"grad": torch.enable_grad, "no": torch.no_grad, "inf": torch.inference_mode}
STEP = re.compile(r"v(\d+)(?:,v(\d+)(\*1)?)?: (.*)")


Same = custom_function("Same", lambda x: x, lambda g: g * 2)


class View(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view(x.shape) if x.dim() == 0 else x[:1]

    @staticmethod
    def backward(ctx, g):
        return g.sum()


Dirty = dirtying("Dirty", 2)


def leaf(shape, requires_grad, is_complex):
    values = (np.arange(int(np.prod(shape))) + 1.0).reshape(shape) / 8
    if is_complex:
        values = values + 1j * values / 3
    dtype = torch.complex128 if is_complex else torch.float64
    made = torch.tensor(values.tolist(), dtype=dtype)
    return made.requires_grad_() if requires_grad else made


def run(step, variables):
    """One step; what it makes becomes further variables."""
    found = STEP.match(step)
    if found is None:
        variables.append(eval(step, {"leaf": leaf}))
        return
    first, second, copied, code = found.groups()
    names = {"x": variables[int(first)], "lib": torch}
    if second is not None:
        y = variables[int(second)]
        names["y"] = y * 1 if copied else y
    if code.endswith(".apply"):
        names |= {"Same": Same, "View": View, "Dirty": Dirty}
        code += "(x)"
    if code == "x.data=y":
        names["x"].data = names["y"]
        return
    made = eval(code, names)
    if "_(" in code or "__setitem__" in code or "out=" in code or code == "x.retain_grad()":
        return
    variables.extend(made if isinstance(made, (list, tuple)) else [made])


def facts(t, variables):
    if t.is_inference():
        return ["inference"]
    try:
        node, is_leaf = t.grad_fn, t.is_leaf
    except RuntimeError:
        return ["refused", t.requires_grad, t._version]
    base = t._base
    number = next((i for i, v in enumerate(variables) if v is base), "other")
    return [list(t.shape), t._version, t.requires_grad, is_leaf,
            None if node is None else node.name().rpartition("::")[2],
            None if base is None else number,
            t.retains_grad]  # fmt: skip


@pytest.mark.parametrize("start", range(0, len(PROGRAMS), 10))
def test_as_recorded(start):
    for program, expected in PROGRAMS[start : start + 10]:
        variables = []
        for line in program:
            mode, step, *raises = line.split("|")
            with MODES[mode](), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if raises:
                    with pytest.raises((RuntimeError, TypeError, ValueError, IndexError)):
                        run(step, variables)
                else:
                    run(step, variables)
        for i, t in enumerate(variables):
            assert facts(t, variables) == expected[i], (program, i)
