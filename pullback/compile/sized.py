"""Native code for symbolic sizes: one library for all sizes whose loops have the same structure.

For the sizes of a call the graph is lowered and written as C like any other, which takes
milliseconds; what takes long is the compiler.  So texts are compared: where two of them differ in
numbers alone, these numbers become variables of a common text (a *skeleton*), which is compiled
once.  A further size whose text fits loads that library again, with its own numbers.  Nothing is
guessed: a text that differs in anything else is compiled by itself.
"""

from __future__ import annotations

import ctypes
import re
import shutil
from collections.abc import Callable
from typing import Any

from ..aot.dynamic import concrete
from ..core.size import Symbolic
from ..fx.graph_module import GraphModule
from . import cache, native
from .errors import CompilerFailed

_NUMBER = re.compile(r"(?<![\w.])(\d+(?:\.\d*)?(?:e[+-]?\d+)?f?)(?![\w.])")
_COMMENT = re.compile(r"/\*.*?\*/", re.S)
_ALONE = re.compile(r"\b(k\w+)\(q, 0, (\d+)\);")  # a kernel that is too small for threads
_LIMIT = 1 << 31  # integers are 32 bits wide: vectors of small lanes are compared with them
KEPT = 64  # sizes for which callables are kept


class Skeleton:
    """A C text whose numbers may vary at some places."""

    def __init__(self, pieces: list[str], numbers: list[str]):
        self.pieces, self.numbers = pieces, numbers
        self.varying: list[int] = []  # positions among the numbers
        self.key: str | None = None  # of the compiled library
        self.refused = False  # does the compiler want constants somewhere?

    def source(self) -> str:
        """The common text."""
        names = {k: f"pb_n{i}" for i, k in enumerate(self.varying)}
        text = "".join(
            piece + names.get(k, number)
            for k, (piece, number) in enumerate(zip(self.pieces, [*self.numbers, ""]))
        )
        declared = "".join(f"static {_kind(self.numbers[k])} {n};\n" for k, n in names.items())
        given = " ".join(f"{n} = v[{i}];" for i, n in enumerate(names.values()))
        at = text.index("static const pb_api *pb;")
        return (f"{text[:at]}{declared}void pb_numbers(const double *v) {{ {given} }}\n"
                f"{text[at:]}")

    def build(self, *identity: str) -> None:
        """Compile the common text."""
        text = self.source()
        self.key = cache.key(text, *identity)
        native.build(cache.write(f"{self.key}.c", text.encode()), f"{self.key}.so")


def _kind(number: str) -> str:
    """The C type of a number."""
    if number.endswith("f"):
        return "float"
    return "double" if "." in number or "e" in number else "int32_t"


class Skeletons:
    """The texts of one graph for the sizes so far."""

    def __init__(self) -> None:
        self.known: list[Skeleton] = []

    def fit(self, text: str, *identity: str) -> tuple[str, list[float]] | None:
        """(library, its numbers) for a text; None if it has to be compiled by itself."""
        plain = _ALONE.sub(r"pb->parallel(\1, q, \2, \2);", _COMMENT.sub("", text))
        parts = _NUMBER.split(plain)
        pieces, numbers = parts[::2], parts[1::2]
        for s in self.known:
            if s.pieces != pieces or s.refused:
                continue
            new = [k for k, (a, b) in enumerate(zip(s.numbers, numbers)) if a != b]
            if any(_kind(s.numbers[k]) != _kind(numbers[k]) for k in new):
                continue
            if any(_kind(n) == "int32_t" and int(n) >= _LIMIT for n in (numbers[k] for k in new)):
                return None
            if not set(new) <= set(s.varying):
                s.varying = sorted({*s.varying, *new})
                try:
                    s.build(*identity)
                except CompilerFailed:
                    s.refused = True
                    return None
            if s.key is not None:
                return s.key, [float(numbers[k].rstrip("f")) for k in s.varying]
        self.known.append(Skeleton(pieces, numbers))
        return None


def library(key: str, numbers: list[float]) -> str:
    """A copy of a library that has its own numbers, to be loaded and forgotten."""
    copy = cache.working(".so")
    shutil.copyfile(cache.path(f"{key}.so"), copy)
    ctypes.CDLL(str(copy)).pb_numbers((ctypes.c_double * len(numbers))(*numbers))
    return str(copy)


class SizedGraph:
    """A compiled graph with symbolic sizes: call it with arrays, or take `at` for given sizes."""

    def __init__(self, module: GraphModule, name: str):
        self.module, self.name, self.skeletons = module, name, Skeletons()
        self.inputs = [n.meta["val"] for n in module.graph.nodes if n.op == "placeholder"]
        self.places: dict[str, tuple[int, int]] = {}  # symbol -> input and dim
        for i, value in enumerate(self.inputs):
            sizes = [value] if isinstance(value, Symbolic) else value.shape
            for d, n in enumerate(sizes):
                name = n.node.raw.symbol if isinstance(n, Symbolic) else None
                if name is not None:
                    self.places.setdefault(name, (i, d))
        self._made: dict[tuple, Callable] = {}

    def at(self, values: dict[str, int]) -> Callable:
        """The callable for given sizes."""
        key = tuple(values.items())
        found = self._made.get(key)
        if found is None:
            if len(self._made) >= KEPT:
                self._made.pop(next(iter(self._made)))
            found = self._made[key] = self._compiled(values)
        return found

    def _compiled(self, values: dict[str, int]) -> Callable:
        from .backend import compile_graph

        plain, kept = concrete(self.module, values)
        run = compile_graph(plain, self.name, self.skeletons)
        if len(kept) == len(self.inputs):
            return run
        return lambda *arrays: run(*[arrays[k] for k in kept])

    def __call__(self, *arrays: Any) -> tuple:
        values = {
            s: int(arrays[i]) if isinstance(self.inputs[i], Symbolic) else arrays[i].shape[d]
            for s, (i, d) in self.places.items()
        }
        return self.at(values)(*arrays)


def is_sized(module: GraphModule) -> bool:
    """Has a graph symbolic sizes?"""
    for node in module.graph.nodes:
        if node.op == "placeholder":
            value = node.meta.get("val")
            if isinstance(value, Symbolic) or getattr(
                    getattr(value, "_data", None), "symbolic", False):
                return True
    return False
