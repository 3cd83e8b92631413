"""Checks the budgets and rules that keep the package readable; part of `make lint`.

    python tools/house.py            says what is over its budget, exits 1 if anything is
    python tools/house.py --show     the figures themselves

`OVER` lists what is above a budget today, with its size: it may shrink, not grow, and a line that
has become untrue must go.
"""

from __future__ import annotations

import ast
import functools
import gc
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
OVER: dict[str, int] = {}

_FRAMES = r"_getframe|\bf_(back|globals)\b"

_TORCH = r"for_torch\(|\btorch\.install\b"

# Words and calls that a room must not contain, with the reason
FORBIDDEN = [
    (("core", "interp", "autograd", "eager"), r"literal|spelling",
     "how graphs are printed is known to the dialect alone"),
    ((".",), r"\bf_locals\b", "the locals of another function are read"),
    ((".",), r"\bgc\.get_(objects|referrers)\b", "the heap is scanned"),
    ((".",), r"\.__code__ = ", "the code of a function is exchanged"),
    ((".",), _FRAMES, "what a call does is decided by who calls"),
    ((".",), _TORCH, "a file of torch/ is loaded by its name: the import contract cannot see it"),
]
# Places where a forbidden word is right: pattern -> file -> why
EXCUSED = {
    r"\bf_locals\b": {"errors.py": "messages name the variables of the user's frame"},
    _FRAMES: {
        "capture/node.py": "the user's line of a call, for his backward",
        "compile/errors.py": "warnings are about the user's line",
        "eager/unroll.py": "the user's line of a write, for messages",
        "errors.py": "the user's line, for messages",
        "graph/make_fx.py": "notes of a node: the line of the derivative that runs",
        "graph/proxy.py": "a symbolic trace knows `a, b = proxy` and `assert` from the instruction",
        "graph/traceback.py": "the user's line of a node",
        "graph/tracer.py": "wrap() is about the module that calls it",
        "python_state/impure_calls.py": "what a profiler is shown: which call, and of whose code",
        # Python asks a number for its hash, class and text without saying why
        "symbolic/env.py": "symbolic numbers: user code gets a guard, a cache of ours must not",
    },
    _TORCH: {
        "__init__.py": "paths of PyTorch below the package",
        "export/archive.py": "files in PyTorch's format, where they are asked for",
        "facade.py": "the door itself",
        "graph/dialect.py": "the dialect that people ask for, by its kind",
        "graph/operator_schemas.py": "signatures of functions as PyTorch traces them",
        "graph/printer.py": "names that PyTorch prints",
        "graph/proxy.py": "functions as PyTorch traces them",
        "torch/install.py": "its own name",
    },
}
# Names of files and flags that a stranger must look up; files that may have one, and what it means
RETIRED_FILES = re.compile(
    "reaching|holding|outside|unseen|collected|placing|stowing|hooking|shares|calls|looking|seen|"
    "deep|wishes|older|kinds|parts|truth|plumbing")
RETIRED_FLAGS = re.compile("turn|intact|plainly|blurs|lent|takes_again|lies|alike|wide|told")
OLD_NAMES: dict[str, str] = {
    "parts/__init__.py": "a package: tensors that are made of parts",
    "ops/kinds.py": "kinds of entries, as the glossary has them",
    "torch/dialect/calls.py": "how a dialect writes calls",
    "torch/dialect/parts.py": "`parts(op)` of the dialect",
}
# Rooms where operators are named: the table, derivatives, what is said in PyTorch's words
NAMES_OPERATORS = ("ops", "table", "formulas", "decomp", "torch")
# Lists of words that are no knowledge about operators: what they are -> files
NO_OPERATORS = {
    "operations of the loop IR, which C has": "compile/blocks.py compile/builder.py "
    "compile/emit.py compile/expressions.py compile/ir.py compile/rounding.py "
    "compile/rules_pointwise.py "
    "compile/schedule.py",
    "functions of Python and methods that it calls": "array/consult.py "
    "graph/naming.py graph/proxy.py tensor/operators.py",
    "functions of sizes": "compile/sized.py export/text.py symbolic/guards.py symbolic/number.py",
    "instructions of an optimizer's formula": "optim/formula.py",
    "names that a module offers, and where from": "__init__.py array/dtype.py functional.py "
    "nn/__init__.py nn/init.py nn/modules/__init__.py overrides.py tensor/facts.py "
    "quantized/questions.py tensor/absent_methods.py "
    "tensor/history.py tensor/values.py",
    "values of an argument, and what each calls": "nn/functional/maps.py "
    "nn/functional/resampling.py",
    "words of messages": "errors.py",
}


@functools.cache
def parsed() -> list[tuple[str, str, ast.Module]]:
    """All files of the package: path below it, text, tree."""
    texts = [(path, path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))]
    return [(p.relative_to(PACKAGE).as_posix(), text, ast.parse(text)) for p, text in texts]


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Functions and methods with their qualified names, those inside of functions included."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield prefix + node.name, node
            yield from functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
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
        if file == "threads/state.py":
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
            if rooms != (".",) and file.partition("/")[0] not in rooms or (
                    file in EXCUSED.get(pattern, ())):
                continue
            for number, line in enumerate(text.splitlines(), 1):
                if re.search(pattern, line):
                    yield f"pullback/{file}:{number}: {line.strip()[:60]} ({why})"
        if Path(file).stem.endswith("_more"):
            yield f"pullback/{file}: say what is in it"


def retired_names() -> Iterator[str]:
    """Files and flags of the package with names that nobody can guess the meaning of."""
    found = set()
    for file, _, tree in parsed():
        path = Path(file)
        if RETIRED_FILES.fullmatch(path.parent.name if path.stem == "__init__" else path.stem):
            found.add(file)
            if file not in OLD_NAMES:
                yield f"pullback/{file}: a name that says nothing to a stranger"
        for node in ast.walk(tree):
            for name in attributes(node):
                if RETIRED_FLAGS.fullmatch(name):
                    yield f"pullback/{file}:{node.lineno}: `{name}` says nothing to a stranger"
    for file in sorted(OLD_NAMES.keys() - found):
        yield f"tools/house.py: pullback/{file} has another name now"


def attributes(node: ast.AST) -> list[str]:
    """What a statement makes an attribute of a class or of its instances."""
    if isinstance(node, ast.ClassDef):
        return [target.id for part in node.body for target in targets(part)
                if isinstance(target, ast.Name)]
    return [target.attr for target in targets(node) if isinstance(target, ast.Attribute)]


def targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return [n for target in node.targets for n in ast.walk(target)]
    return [node.target] if isinstance(node, ast.AnnAssign) else []


class Class:
    """A class of the package: what it has, and what its methods ask of the instance."""

    def __init__(self, file: str, node: ast.ClassDef, imported: dict[str, str]):
        self.file, self.name, self.line, self.heirs = file, node.name, node.lineno, []
        names = [base.id if isinstance(base, ast.Name) else "" for base in node.bases]
        self.bases = [(name, imported.get(name, file)) for name in names if name != "object"]
        self.above: list[Class | None] = []  # None: not of the package, or not known which
        self.has: set[str] = set()
        self.asks: set[str] = set()
        for part in node.body:
            if isinstance(part, ast.FunctionDef | ast.ClassDef):
                self.has.add(part.name)
            else:
                self.has |= {n.id for n in ast.walk(part) if isinstance(n, ast.Name)}
                self.has |= {n.value for n in ast.walk(part) if isinstance(n, ast.Constant)
                             and isinstance(n.value, str)}  # of `__slots__`
            if isinstance(part, ast.FunctionDef) and part.args.args:
                self._look(part, part.args.args[0].arg)

    def _look(self, method: ast.FunctionDef, me: str) -> None:
        for n in ast.walk(method):
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == me:
                if isinstance(n.ctx, ast.Store):
                    self.has.add(n.attr)
                elif not n.attr.startswith("__"):
                    self.asks.add(n.attr)

    def known(self) -> set[str] | None:
        """What an instance has without its heirs; None where a class above is not known."""
        above = [None if base is None else base.known() for base in self.above]
        return None if None in above else self.has.union(*above)

    def below(self) -> set[str]:
        """What its heirs add."""
        return set().union(*(heir.has | heir.below() for heir in self.heirs))


def classes() -> list[Class]:
    """All classes, each with those above and below it."""
    found: list[Class] = []
    for file, _, tree in parsed():
        imported = {alias.asname or alias.name: (node.module or "").rpartition(".")[2]
                    for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
                    for alias in node.names}
        found += [Class(file, node, imported) for node in ast.walk(tree)
                  if isinstance(node, ast.ClassDef)]
    by_name: dict[str, list[Class]] = {}
    for c in found:
        by_name.setdefault(c.name, []).append(c)
    for c in found:
        for name, home in c.bases:
            fits = [b for b in by_name.get(name, ()) if b is not c and home in (
                b.file, Path(b.file).stem, Path(b.file).parent.name)]
            c.above.append(fits[0] if len(fits) == 1 else None)
            if len(fits) == 1:
                fits[0].heirs.append(c)
    return found


def set_by_heirs() -> Iterator[str]:
    """Classes that ask for attributes which only a class below them has, and do not declare it."""
    for c in classes():
        known = c.known() if c.heirs else None
        names = [] if known is None else sorted((c.asks & c.below()) - known)
        if names:
            yield (f"pullback/{c.file}:{c.line}: {c.name} asks for {', '.join(names)}, which only "
                   "its heirs have; declare it")


def operator_names() -> set[str]:
    """The operators of the table, without their overloads, as the generated list has them."""
    tree = ast.parse((PACKAGE / "table/names.py").read_text())
    (names,) = (node.value for node in tree.body if isinstance(node, ast.Assign))
    tokens = " ".join(ast.literal_eval(names).values()).split()
    return {token.partition(":")[0].rpartition("=")[2] for token in tokens}


def word_lists(tree: ast.Module) -> Iterator[tuple[int, list[str]]]:
    """Strings that are listed in a program: line, and those of one literal."""
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Assign)
               and any(getattr(t, "id", None) == "__all__" for t in node.targets)}
    for node in ast.walk(tree):
        lists: list = []
        if isinstance(node, ast.Dict):
            lists = [node.keys, node.values]
        elif isinstance(node, (ast.Set, ast.Tuple, ast.List)) and id(node) not in skipped:
            lists = [node.elts]
        for items in lists:
            yield node.lineno, [item.value for item in items if isinstance(
                item, ast.Constant) and isinstance(item.value, str)]
        if isinstance(node, ast.Call) and getattr(node.func, "attr", None) == "split" and (
                isinstance(node.func.value, ast.Constant)):
            yield node.lineno, str(node.func.value.value).split()


def listed_operators() -> Iterator[str]:
    """Literals outside of the table that list three or more operators: an entry should say it."""
    known = operator_names()
    excused = {file for files in NO_OPERATORS.values() for file in files.split()}
    found = set()
    for file, _, tree in parsed():
        if file.partition("/")[0] in NAMES_OPERATORS:
            continue
        for line, words in word_lists(tree):
            names = [word for word in words if word.partition(".")[0] in known]
            if len(names) < 3:
                continue
            found.add(file)
            if file not in excused:
                yield (f"pullback/{file}:{line}: lists operators ({', '.join(names[:3])}...); "
                       "what is known of them is an attribute of their entries")
    for file in sorted(excused - found):
        yield f"tools/house.py: pullback/{file} lists no operators any more"


def main(arguments: list[str]) -> int:
    gc.disable()  # trees of the whole package, and nothing to collect
    bad, over = [*words(), *retired_names(), *set_by_heirs(), *listed_operators()], {}
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
