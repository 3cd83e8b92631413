"""Writes the generated pages of the documentation: docs/errors.md and docs/coverage.md.

Errors come from the docstrings of the exception classes, coverage from the operator table.

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
from collections import Counter

from generated import ROOT, main

sys.path.insert(0, str(ROOT))

import pullback
from pullback.compile.lower import rules
from pullback.core.op import registry
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


def gradient(op) -> str:
    if op.kind == "composite":
        return "composed"
    if op.grad:
        return "formula"
    if op.constant:
        return "constant"
    return ""


def forward(op) -> str:
    if op.kind == "composite":
        return "composed"
    if op.push is not None:
        return "formula"
    if op.linear or op.multilinear or (op.grad and op.kind in ("pointwise", "view")):
        return "derived"
    return "transposed" if op.grad else "constant" if op.constant else ""


def batching(op) -> str:
    if op.kind == "composite":
        return "composed"
    if op.batch is not None:
        return "rule"
    return "derived" if op.kind in ("pointwise", "reduction", "view", "creation") else "loop"


def native(op) -> str:
    if op.kind == "composite":
        return "composed"
    if op.full_name in lowering or op.base_name in lowering:
        return "rule"
    if op.c is not None:
        return "C text"
    return "decomposed" if op.decomp is not None else "NumPy step"


lowering = rules()
COLUMNS = {
    "gradient": gradient,
    "forward mode": forward,
    "vmap": batching,
    "C": native,
    "complex": lambda op: "yes" if op.complex else "",
    "tested by samples": lambda op: "yes" if op.samples is not None else "",
}


def coverage_page() -> str:
    shown = {name: op for name, op in registry.items() if op.__module__.startswith("pullback.ops")}
    families: dict[str, list[str]] = {}
    for name, op in shown.items():
        families.setdefault(op.__module__.rpartition(".")[2], []).append(name)
    kinds = Counter(op.kind for op in shown.values())
    parts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    text = [
        f"# Coverage\n\n{NOTE}The operator table has {len(shown)} entries: {parts}.\n\n"
        "*formula*: written in the entry. *derived*: follows from the kind of the operator. "
        "*composed*: the operator is a function over other operators. *transposed*: the pullback "
        "run backwards. *loop*: one example at a time. *constant*: the derivative is zero. In the "
        "column C: *rule* and *C text* become loops or calls in the generated file, *decomposed* "
        "operators are taken apart first, a *NumPy step* runs beside it.\n"
    ]
    for family in sorted(families):
        text.append(f"## {family}\n\n| operator | kind | {' | '.join(COLUMNS)} |")
        text[-1] += f"\n| --- | --- |{' --- |' * len(COLUMNS)}"
        for name in sorted(families[family]):
            op = shown[name]
            cells = " | ".join(describe(op) for describe in COLUMNS.values())
            text[-1] += f"\n| `{name}` | {op.kind} | {cells} |"
        text[-1] += "\n"
    return "\n".join(text)


if __name__ == "__main__":
    pages = {"docs/errors.md": errors_page(), "docs/coverage.md": coverage_page()}
    sys.exit(main(__doc__.split("\n")[0], pages, "docs"))
