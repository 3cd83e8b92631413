"""Checks the budgets and rules that keep the package readable; part of `make lint`.

    python tools/house.py            says what is over its budget, exits 1 if anything is
    python tools/house.py --show     the figures themselves

`OVER` lists what is above a budget today, with its size: it may shrink, not grow, and a line that
has become untrue must go.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "pullback"

CORE_LINES = 2500
FUNCTION_LINES = 60
BIND_LINES = 50
FILE_LINES = 800
STATE_ATTRIBUTES = 12

# Over the budget: what, and how much
OVER: dict[str, int] = {"lines of core/": 5074}

# Words and calls that a room must not contain, with the reason
FORBIDDEN = [
    (("core", "interp", "autograd", "eager"), r"literal|spelling",
     "how graphs are printed is known to the dialect alone"),
    ((".",), r"\bf_locals\b", "the locals of another function are read"),
    ((".",), r"\bgc\.get_(objects|referrers)\b", "the heap is scanned"),
    ((".",), r"\.__code__ = ", "the code of a function is exchanged"),
]
# Places where a forbidden word is right: file -> why
EXCUSED = {
    "errors.py": "messages name the variables of the user's frame",
    "interp/function_overrides.py": "functions get other code when the first subclass is defined; "
                                    "a wrapper around each of them would cost every call",
    "memory/storages.py": "who shows a storage that is resized is found among all tensors; a list "
                          "kept for that would cost every view a tenth of a microsecond",
}


def parsed() -> Iterator[tuple[str, str, ast.Module]]:
    """All files of the package: path below it, text, tree."""
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        yield path.relative_to(PACKAGE).as_posix(), text, ast.parse(text)


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Functions and methods with their qualified names, those inside of functions included."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield prefix + node.name, node
            yield from functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")
        else:
            yield from functions(node, prefix)


def length(node: ast.FunctionDef) -> int:
    return node.end_lineno - node.lineno + 1


def is_entries(tree: ast.Module) -> bool:
    """Is this file a list of table entries: are its classes most of it?"""
    classes = sum(n.end_lineno - n.lineno + 1 for n in tree.body if isinstance(n, ast.ClassDef))
    return classes * 2 > (tree.body[-1].end_lineno if tree.body else 0)


def state_attributes(tree: ast.Module) -> set[str]:
    """Attributes of `State`, which every thread has its own of."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == "State":
            for inner in ast.walk(node):
                target = inner.targets[0] if isinstance(inner, ast.Assign) else (
                    inner.target if isinstance(inner, ast.AnnAssign) else None)
                if isinstance(target, ast.Attribute):
                    found.add(target.attr)
                elif isinstance(target, ast.Name) and inner in node.body:
                    found.add(target.id)
    return found


def figures() -> Iterator[tuple[str, int, int]]:
    """(what, its size, its budget) of everything that has a budget."""
    core = 0
    for file, text, tree in parsed():
        lines = text.count("\n")
        if file.startswith("core/"):
            core += lines
        if not (file.startswith("ops/") and is_entries(tree)):
            yield f"lines of {file}", lines, FILE_LINES
        if file == "core/state.py":
            yield "attributes of the thread's state", len(state_attributes(tree)), STATE_ATTRIBUTES
        for name, node in functions(tree):
            if file == "core/stack.py" and name == "bind":
                yield "lines of bind", length(node), BIND_LINES
            elif not file.startswith("ops/"):
                yield f"lines of {file}:{name}", length(node), FUNCTION_LINES
    yield "lines of core/", core, CORE_LINES


def words() -> Iterator[str]:
    """Places of words and calls that are forbidden there."""
    for file, text, _ in parsed():
        for rooms, pattern, why in FORBIDDEN:
            if rooms != (".",) and file.partition("/")[0] not in rooms or file in EXCUSED:
                continue
            for number, line in enumerate(text.splitlines(), 1):
                if re.search(pattern, line):
                    yield f"pullback/{file}:{number}: {line.strip()[:60]} ({why})"
        if Path(file).stem.endswith("_more"):
            yield f"pullback/{file}: say what is in it"


def main(arguments: list[str]) -> int:
    bad, over = list(words()), {}
    for what, size, budget in figures():
        if size > budget:
            over[what] = size
            if size > OVER.get(what, budget):
                bad.append(f"{what}: {size}, more than {OVER.get(what, budget)}")
    bad += [f"tools/house.py: {what} is {over.get(what, 'within its budget')}, no longer {size}"
            for what, size in OVER.items() if over.get(what, 0) < size]
    if "--show" in arguments:
        for what, size in sorted(over.items(), key=lambda item: -item[1]):
            print(f"{size:6} {what}")
    print("\n".join(bad) or f"house: over the budget, none of them grown: {over or 'nothing'}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
