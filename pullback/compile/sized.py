"""Native code for symbolic sizes: one library for all sizes that satisfy its guards.

The graph is lowered, scheduled and written once, with extents (`extent.py`) in the place of sizes.
What comes out is a *library*: an object file whose code reads sizes, strides and counts from a
table; a plan, kept as a function of the sizes; and guards, the answers that were decided by the
sizes at hand.  For the sizes of a call the first library that fits is taken: its plan is computed,
its table is filled in, buffers get places.  Where none fits another one is made, and where code
cannot be written for sizes in general (`NotGeneral`) it is written for each of them.
"""

from __future__ import annotations

import marshal
import math
import operator
import struct
from collections.abc import Callable, Iterable, Iterator
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from ..array.size import Symbolic
from ..capture.explain import note
from ..core.handle import Tensor
from ..graph.concrete import concrete, without_sizes
from ..graph.graph_module import GraphModule
from ..graph.node import Node, map_aggregate
from ..symbolic.env import ShapeEnv
from ..symbolic.expr import FUNCTIONS as INTEGERS
from ..symbolic.expr import Expr
from ..symbolic.number import FloatExpr
from . import cache, native, toolchain
from .backend import CompiledGraph, compile_graph, load
from .errors import CodeNotSound, CompileError, warn
from .expressions import held
from .extent import Domain
from .keys import graph_text, identity
from .memory import Buffer, Memory
from .number import ARITHMETIC, FUNCTIONS, Formula, NotGeneral, formula
from .unit import Unit, encoded

KEPT = 64  # sizes for which callables are kept
LIBRARIES = 8  # of one graph; then every size gets its own code

_SPACE = {"__builtins__": {"float": float, "str": str}, "float": float, **INTEGERS, **FUNCTIONS,
          **{name: f for name, f in vars(math).items() if name[0] != "_"}, "sym_float": float,
          "pow": pow, "neg": operator.neg, "abs": abs, "held": held}


class Library(NamedTuple):
    """Code for all sizes with the same answers; as it is kept on disk."""

    guards: tuple[tuple[str, str], ...]  # in words, and as Python source
    fits: CodeType  # of functions of the sizes
    plan: CodeType
    report: CodeType
    format: str  # of the table of numbers
    key: str | None  # of the object file


class Example:
    """What lowering knows of an array: its sizes are extents."""

    def __init__(self, t: Tensor, number: Callable):
        self.shape = tuple(map_aggregate(tuple(t._payload.shape), number))
        self.strides = tuple(map_aggregate(tuple(t.stride()), number))
        self.dtype = t.dtype

    def stride(self) -> tuple:
        """Strides in elements."""
        return self.strides


def general(module: GraphModule, domain: Domain) -> GraphModule:
    """A graph whose sizes are extents."""

    def number(v: Any) -> Any:
        if not isinstance(v, Symbolic):
            return v
        return _number(v.node.raw, domain)

    def example(t: Any) -> Any:
        if isinstance(t, (list, tuple)):
            return [example(v) for v in t]
        return Example(t, number) if isinstance(t, Tensor) else number(t)

    made = without_sizes(module, number, example)[0]
    made.general = True
    return made


def _number(raw: Any, domain: Domain) -> Any:
    """What stands for an expression of sizes, integer or float."""
    if isinstance(raw, Expr):
        return domain.extent(raw)
    if not isinstance(raw, FloatExpr):
        return raw
    if raw.symbol is not None and type(domain.values[raw.symbol]) is float:
        return Formula(domain, raw.symbol, domain.values[raw.symbol])
    args = [_number(a, domain) for a in raw.args]
    name = raw.function.__name__
    if raw.function in ARITHMETIC:
        return raw.function(*args)
    if name not in _SPACE:
        raise NotGeneral(f"{raw} is computed from sizes")
    return formula(raw.function, f"{name}({', '.join(['{}'] * len(args))})", *args)


def write(
    module: GraphModule, name: str, env: ShapeEnv, values: dict[str, int], tools: Any,
    code: Callable[[GraphModule], Unit]
) -> Library:
    """A library for sizes like these; `code` makes its text."""
    domain = Domain(env, values)
    unit = code(general(module, domain))
    guards = domain.guards()
    fits = " and ".join([source for _, source in guards]) or "True"
    numbers = tuple(domain.table)
    made = [
        compile(text, f"<{name} for sizes>", "eval")
        for text in (f"lambda {', '.join(values)}: {fits}",
                     domain.program(repr((unit.plan, numbers))), domain.program(repr(unit.report)))
    ]
    key = None
    if unit.source:
        key = cache.key(unit.source, *identity(tools))
        native.build_text(unit.source, key, f"{key}.so")
    kinds = "".join("d" if n.kind is float else "q" for n in numbers)
    domain.memo.clear()  # numbers of this library may be kept in caches for some time
    return Library(guards, *made, kinds, key)


def has_unknown_sizes(module: GraphModule) -> bool:
    """Are there sizes that no input tells, as of what `nonzero` finds, or `n` of a tensor of
    `1 + n // 3` rows that a branch is given?"""
    nodes = list(module.graph.nodes)
    known = {getattr(n.node.raw, "symbol", None)
            for node in nodes if node.op == "placeholder" for n in _sizes(node)}
    return any(s not in known or n.node.shape_env.symbols[s].hint is None
               for node in nodes for n in _sizes(node) for s in _symbols(n))


def _symbols(n: Symbolic) -> Iterable[str]:
    """The symbols that matter to a number, with what the capture relies on."""
    raw = n.node.raw
    return (n.node.shape_env.simplify(raw) if isinstance(raw, Expr) else raw).symbols()


def _sizes(node: Node) -> Iterator[Symbolic]:
    """The symbolic numbers that a node gives, as such or as sizes."""
    val = node.meta.get("val")
    for t in val if isinstance(val, (list, tuple)) else (val,):
        for n in (t,) if isinstance(t, Symbolic) else getattr(t, "shape", ()):
            if isinstance(n, Symbolic):
                yield n


class _Some:
    """A compiled graph that takes some of the arguments."""

    def __init__(self, run: Callable, kept: list[int]) -> None:
        self.run, self.kept = run, kept

    def __call__(self, *arrays: Any) -> tuple:
        return self.run(*[arrays[k] for k in self.kept])

    def consume(self, arrays: list) -> tuple:
        """The same for a list, which is emptied."""
        chosen = [arrays[k] for k in self.kept]
        arrays.clear()
        return self.run.consume(chosen)


class SizedGraph:
    """A compiled graph with symbolic sizes: call it with arrays, or take `at` for given sizes."""

    def __init__(self, module: GraphModule, name: str, code: Callable[[GraphModule], Unit],
                 known: bool = True):
        self.module, self.name = module, name
        self.code, self.known = code, known  # what makes C; may the disk be asked for its results?
        self.inputs = [n.meta["val"] for n in module.graph.nodes if n.op == "placeholder"]
        self.places: dict[str, tuple[int, int]] = {}  # symbol -> input and dim
        self.env: Any = None
        for i, value in enumerate(self.inputs):
            sizes = [value] if isinstance(value, Symbolic) else value.shape
            for d, n in enumerate(sizes):
                if isinstance(n, Symbolic):
                    self.env = n.node.shape_env
                    symbol = getattr(n.node.raw, "symbol", None)
                    if symbol is not None:
                        self.places.setdefault(symbol, (i, d))
        self.libraries: list[Library] | None = None  # None: not looked for on disk yet
        self.key = ""  # what they are kept under
        self.single = ""  # why every size needs its own code, if it does
        self.served: dict[Library, int] = {}  # library -> how many sizes of this process it serves
        self._functions: dict[Library, tuple] = {}
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
        kept = [i for i, v in enumerate(self.inputs) if not isinstance(v, Symbolic)]
        run = self._shared(values) or compile_graph(
            concrete(self.module, values)[0], self.name, self.code, self.known)
        if len(kept) == len(self.inputs):
            return run
        return _Some(run, kept)

    def _shared(self, values: dict[str, int]) -> Callable | None:
        """From a library for sizes in general; None if there can be none."""
        if self.single:
            return None
        try:
            tools = toolchain.find()
            native.start_runtime()
            made = self._from(self._library(values, tools), values)
            cache.grown()
            return made
        except (NotGeneral, CompileError, OSError) as error:  # for one size it may be said again
            if isinstance(error, CodeNotSound):
                warn(f"{error}\n  Each size gets code of its own.")
            self.single = (str(error) or type(error).__name__).splitlines()[0]
            note(f"{self.name} gets native code for each size: {self.single}")
            return None

    def _library(self, values: dict[str, int], tools: toolchain.Toolchain) -> Library:
        first = self.libraries is None
        if self.libraries is None:
            self.key = self._key(tools)
            self.libraries = _kept(self.key) if self.known else []
        sizes = tuple(values.values())
        for library in list(self.libraries):
            if not self._of(library)[0](*sizes):
                continue
            if library.key is not None and not cache.path(f"{library.key}.so").exists():
                self.libraries.remove(library)  # the cache was emptied meanwhile
                continue
            cache.count("hits" if first else "shared")
            cache.touch(f"{self.key}.sizes", f"{library.key}.so", f"{library.key}.c")
            return library
        if len(self.libraries) >= LIBRARIES:
            raise NotGeneral(f"sizes are of more than {LIBRARIES} kinds")
        if self.libraries:
            note(f"{self.name} gets another native library: {self._why_not(values)}")
        cache.count("misses")
        made = write(self.module, self.name, self.env, values, tools, self.code)
        self.libraries.append(made)
        if self.known:
            records = marshal.dumps([tuple(x) for x in self.libraries])
            cache.write_sealed(f"{self.key}.sizes", records)
        return made

    def _why_not(self, values: dict[str, int]) -> str:
        """The answers that libraries rely on and that these sizes do not give."""
        failed = [next(words for words, source in library.guards
                       if not eval(source, _SPACE, dict(values))) for library in self.libraries]
        where = ", ".join(f"{s} = {n}" for s, n in values.items())
        return f"{' and '.join(dict.fromkeys(failed))} do not hold for {where}"

    def _of(self, library: Library) -> tuple[Callable, Callable]:
        """Do sizes fit?  And the plan for sizes that do."""
        found = self._functions.get(library)
        if found is None:
            found = self._functions[library] = tuple(
                [eval(code, _SPACE) for code in (library.fits, library.plan)])
        return found

    def _from(self, library: Library, values: dict[str, int]) -> Callable:
        try:
            plan, numbers = self._of(library)[1](*values.values())
        except ZeroDivisionError as error:  # in what is needed for other sizes alone
            raise NotGeneral(f"a formula of sizes divides by zero for {values}") from error
        try:
            table = struct.pack(f"={library.format}", *numbers)
        except struct.error as error:
            raise NotGeneral(f"a number is too large: {error}") from error
        fill(plan, table)
        module = self.module
        if any(len(step) == 3 for step in plan["steps"]):  # through NumPy, with numbers
            module = concrete(module, values)[0]
        path = None if library.key is None else str(cache.path(f"{library.key}.so"))
        self.served[library] = self.served.get(library, 0) + 1
        call = load(module, self.name, plan, path)
        return SizedCall(self, call, library, values, plan)

    def _key(self, tools: toolchain.Toolchain) -> str:
        """The graph with all that its libraries depend on."""
        ranges = {s.name: s.range for s in self.env.symbols.values()}
        known = f"{ranges} {self.env.format_guards()} {list(self.places)}"
        return cache.key(
            graph_text(self.module), self.name, known, *identity(tools))

    def __call__(self, *arrays: Any) -> tuple:
        values = {
            s: arrays[i] if isinstance(self.inputs[i], Symbolic) else arrays[i].shape[d]
            for s, (i, d) in self.places.items()
        }
        return self.at(values)(*arrays)


def _kept(key: str) -> list[Library]:
    """The libraries of a graph that are on disk, as far as they are whole."""
    data = cache.read_sealed(f"{key}.sizes")
    try:
        found = [Library(*x) for x in marshal.loads(data)] if data is not None else []
    except (ValueError, EOFError, TypeError):
        cache.discard(f"{key}.sizes")
        return []
    return [x for x in found if x.key is None or cache.intact(f"{x.key}.so")]


def fill(plan: dict, numbers: bytes) -> None:
    """Give a plan its table of numbers, and places to the buffers of its workspace."""
    table = np.frombuffer(numbers or bytes(8), np.int64)
    memory = Memory([
        Buffer(kind, size, None, at, born, dies, gives=gives, spare=spare)
        for (_, at, size, _, _), (kind, born, dies, gives, spare) in zip(
            plan["buffers"], plan["lives"])])
    memory.pack(plan["tight"])
    buffers = [encoded(b, old[3]) for b, old in zip(memory.buffers, plan["buffers"])]
    kind, at, _, spec, _ = buffers[plan["numbers"]]
    buffers[plan["numbers"]] = (kind, at, table.nbytes, spec, table)
    plan["buffers"], plan["workspace"] = tuple(buffers), memory.workspace
    plan["room"], plan["reused"] = memory.room(), memory.reused()
    plan["makes"] = memory.makes(*plan["stepped"]) if plan["stepped"] else ()


class SizedCall(CompiledGraph):
    """A compiled graph for one size, from a library for many."""

    __slots__ = ("graph", "library", "values")

    def __init__(
        self, graph: SizedGraph, call: Callable, library: Library, values: dict[str, int],
        plan: dict,
    ):
        self.name, self.call, self.plan = graph.name, call, plan
        self.graph, self.library, self.values = graph, library, values

    @property
    def source_path(self) -> str | None:  # type: ignore[override]
        """The C file of the library."""
        key = self.library.key
        return None if key is None else str(cache.path(f"{key}.c"))

    @property
    def report(self) -> dict:  # type: ignore[override]
        """What was fused into which kernel, how much memory is used at these sizes, and for which
        and how many sizes the library is."""
        made = eval(self.library.report, _SPACE)(*self.values.values())
        shared = {
            "number": list(self.graph.served).index(self.library),
            "sizes": self.graph.served[self.library],
            "guards": [words for words, _ in self.library.guards],
        }
        return made | {"workspace_bytes": self.plan["workspace"], "library": shared,
                       "reused_bytes": self.plan["reused"]}
