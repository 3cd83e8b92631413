"""Runs the programs of `tracing_programs.py`, `running_programs.py`, `rewriting_programs.py` and
`library_programs.py`: each prints, an exception is written down by the names of its types.

`PYTHONPATH=. python FILE` with PyTorch gives what `tests/data/traced` keeps,
`python -m pullback run` ours.
"""

import contextlib
import io
import json
import warnings

import torch
from torch import nn

from tests.helpers.parts import parts_of

PROGRAMS = {}


def prog(function):
    PROGRAMS[function.__name__] = function
    return function


Parts = parts_of(nn)


class MyModule(Parts):
    def __init__(self):
        torch.manual_seed(0)
        super().__init__(param=nn.Parameter(torch.ones(3, 4)), linear=nn.Linear(4, 5))

    def forward(self, x):
        return self.linear(x + self.param).clamp(min=0.0, max=1.0)


def main():
    """What all programs print, as JSON."""
    warnings.simplefilter("ignore")
    found = {}
    for name, function in PROGRAMS.items():
        text, raised = io.StringIO(), None
        with contextlib.redirect_stdout(text):
            try:
                function()
            except Exception as error:
                raised = [c.__name__ for c in type(error).__mro__]
        found[name] = [text.getvalue(), raised]
    print(json.dumps(found, indent=0))
