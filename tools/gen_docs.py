"""Writes the generated pages of the documentation: docs/errors.md and docs/coverage.md.

Errors come from the docstrings of the exception classes, coverage from the operator table by way
of `coverage_cells.py`.

    python tools/gen_docs.py            # or: make docs
    python tools/gen_docs.py --check    # part of make lint
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
import textwrap

from generated import ROOT, main

sys.path.insert(0, str(ROOT))

from coverage_cells import COLUMNS

import pullback
from pullback.core.op import registry
from pullback.core.overload import overload_of
from pullback.errors import PullbackError

NOTE = "<!-- Made by tools/gen_docs.py; change what it reads, then run `make docs`. -->\n\n"


# --- errors ------------------------------------------------------------------------------------


def error_modules() -> list:
    """`pullback.errors` first, then the modules of that name inside the packages."""
    names = ["pullback.errors"]
    for package in pkgutil.iter_modules(pullback.__path__):
        if package.ispkg and (ROOT / "pullback" / package.name / "errors.py").exists():
            names.append(f"pullback.{package.name}.errors")
    return [importlib.import_module(name) for name in names]


def errors_page() -> str:
    text = [
        "# Errors\n\n" + NOTE + "Every refusal of Pullback has a class of its own. A message says "
        "first what happened and where in *your* program, then the state that led to it, then what "
        "to do. Each class also derives from the builtin exception that PyTorch raises in the same "
        "place, so existing `except` clauses keep working.\n"
    ]
    for module in error_modules():
        for name, cls in vars(module).items():
            mine = inspect.isclass(cls) and cls.__module__ == module.__name__
            if not mine or not issubclass(cls, Exception):
                continue
            bases = [b.__name__ for b in cls.__bases__ if b not in (Exception, PullbackError)]
            kind = f"\n\nAlso a `{'`, a `'.join(bases)}`." if bases else ""
            text.append(f"## {name}{kind}\n\n{prose(cls)}\n")
    return "\n".join(text)


def prose(cls: type) -> str:
    """A class's docstring as paragraphs, with causes and cures on lines of their own."""
    doc = inspect.cleandoc(cls.__doc__ or "")
    doc = re.sub(r"\s*\b(Cause|Cure|Fix):\s*", r"\n\n**\1.** ", doc)
    paragraphs = [" ".join(p.split()) for p in re.split(r"\n\s*\n", doc) if p.strip()]
    paragraphs = [re.sub(r"(\*\*\w+\.\*\* )(\w)", lambda m: m[1] + m[2].upper(), p)
                  for p in paragraphs]
    return "\n\n".join(textwrap.fill(p, 98, break_long_words=False) for p in paragraphs)


# --- coverage ----------------------------------------------------------------------------------

INTRODUCTION = """\
Each operator of the table, with what it offers. The cells are read off the table; an empty cell
means that there is none.

| column | cells |
| --- | --- |
| forward | *kernel*: a function over arrays; *composed*: a function over other operators, so that \
everything else follows from those |
| reverse | *formula* (*not x*: asking for the gradient of x is refused); *zero*: the derivative \
is zero everywhere; *composed* |
| second order | whether the formulas, and the functions they call, are made of differentiable \
operators; *none: f* where f is not |
| forward mode | *formula*; *linear*: the operator itself; *product rule*; *element-wise*: the \
gradient formulas; *transposed*: the pullback run backwards; *decomposed*, *composed* |
| vmap | *rule*, *element-wise*, *decomposed*, *composed*; *per example* draws of random numbers; \
*loop*: one example at a time; *no input* to batch |
| fake | shapes without values: *rule*, *broadcast*, the *kernel* of a view on a stand-in, \
*composed*; *needs data*: the shape depends on values |
| decomposition | *yes*: into simpler operators, *composed* |
| C | *rule*, *C text*: loops or calls in the generated file; *decomposed*, *composed* first; \
*NumPy step*: runs beside it |
| complex | takes complex numbers |
"""
LACKING = {"vmap": "loop", "fake": "needs data", "C": "NumPy step"}  # cells that do not count


def coverage_page() -> str:
    shown = {name: op for name, op in registry.items() if op.__module__.startswith("pullback.ops")}
    groups: dict[str, dict[str, list[str]]] = {}
    for name in sorted(shown):
        entry = overload_of(shown[name])
        cells = [describe(entry) for describe in COLUMNS.values()]
        groups.setdefault(shown[name].__module__.rpartition(".")[2], {})[name] = cells
    everything = {n: cells for rows in groups.values() for n, cells in rows.items()}
    text = [
        f"# Coverage\n\n{NOTE}The operator table has {len(shown)} operators, all of PyTorch's "
        f"derivative table among them.\n\n{INTRODUCTION}",
        f"## Summary\n\n{heading('file', 'operators')}",
    ]
    for family in sorted(groups):
        link = f"[{family}](#{family})"
        text[-1] += f"\n| {link} | {len(groups[family])} | {counts(groups[family])} |"
    text[-1] += f"\n| **all** | **{len(everything)}** | {counts(everything)} |\n"
    for family in sorted(groups):
        text.append(f"## {family}\n\n{heading('operator')}")
        for name, cells in groups[family].items():
            text[-1] += f"\n| `{name}` | {' | '.join(cells)} |"
        text[-1] += "\n"
    return "\n".join(text)


def heading(*first: str) -> str:
    names = [*first, *COLUMNS]
    return f"| {' | '.join(names)} |\n|{' --- |' * len(names)}"


def counts(rows: dict[str, list[str]]) -> str:
    """For each column in how many rows it has something."""
    numbers = []
    for i, column in enumerate(COLUMNS):
        cells = [cells[i] for cells in rows.values()]
        numbers.append(sum(bool(c) and c != LACKING.get(column) and not c.startswith("none:")
                           for c in cells))
    return " | ".join(map(str, numbers))


if __name__ == "__main__":
    pages = {"docs/errors.md": errors_page(), "docs/coverage.md": coverage_page()}
    sys.exit(main(__doc__.split("\n")[0], pages, "docs"))
