"""The entry of the C backend: `compile_graph(graph_module, name)` gives a function of raw
arrays.

Steps: the graph's text is hashed; if the disk cache knows it, the plan and the object are loaded
and nothing else happens. Otherwise the graph is lowered (`lower.py`), scheduled (`schedule.py`),
written as C (`unit.py`) and compiled (`toolchain.py`). Without a compiler the graph runs on
NumPy (`interpret.py`), with one warning.
"""

from __future__ import annotations

import functools
import marshal
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from .. import errors
from ..array.size import Symbolic
from ..capture.build import interpreted
from ..cut.split import is_tight
from . import cache, native, toolchain
from .errors import (
    CacheUnusable,
    CodeNotSound,
    CompileError,
    CompilerFailed,
    CompilerNotFound,
    GraphNotSupported,
    GraphTooLarge,
    warn,
)
from .interpret import Interpreter, attribute, kernel_of, returns_one
from .keys import argument_text, graph_text, identity, lowered_by_others

if TYPE_CHECKING:
    from .schedule import Schedule
    from .unit import Unit

_CHECKS = {  # what a failed check raises
    "dim": errors.DimError, "shape": errors.ShapeError, "memory": MemoryError}

# From here on a C compiler would take minutes: nodes of a graph, and characters of kernels.
MOST_NODES, MOST_TEXT = 100_000, 4_000_000

_warned = False


class CompiledGraph:
    """A compiled graph: call it with one array per placeholder, get a tuple of outputs.

    `source_path` is the C file (None when nothing became C), `report` says what was fused into
    which kernel, which steps go through NumPy, and how much memory is used.
    """

    __slots__ = ("name", "report", "source_path", "plan", "call", "key", "__weakref__")

    def __init__(
        self, name: str, call: Callable, report: dict, source_path: str | None, plan: dict,
        key: str,
    ):
        self.name, self.call, self.report = name, call, report
        self.source_path, self.plan, self.key = source_path, plan, key

    def __call__(self, *arrays: np.ndarray) -> tuple:
        return self.call(*arrays)

    def consume(self, arrays: list) -> tuple:
        """The same for a list, which is emptied: arrays that nobody else has may be overwritten."""
        return self.call.consume(arrays)

    def __repr__(self) -> str:
        r = self.report
        return (
            f"<compiled graph {self.name}: {len(r['kernels'])} kernels, {len(r['calls'])} calls, "
            f"{len(r['externs'])} NumPy steps>"
        )

    @property
    def source(self) -> str:
        """The generated C."""
        if self.source_path is None:
            return ""
        with open(self.source_path) as file:
            return file.read()


def compile_graph(gm: object, name: str = "graph", code: Callable[[object], Unit] | None = None,
                  known: bool = True) -> Callable[..., tuple]:
    """Native code for a functional graph of core operators.

    The result takes raw NumPy arrays, one per placeholder, and returns a tuple of arrays.  Of a
    graph with symbolic sizes it is a `SizedGraph`, unless no input tells some of them: then
    operators run one by one.  `code` makes the C text of a graph; the disk may be asked for what it
    is if that is `known` to be the usual one.
    """
    code = code or functools.partial(graph_code, name=name)
    known = known and not lowered_by_others(gm)
    if is_sized(gm):
        from .sized import SizedGraph, has_unknown_sizes

        return interpreted(gm, name) if has_unknown_sizes(gm) else SizedGraph(gm, name, code, known)
    try:
        tools = toolchain.find()
        native.start_runtime()
    except (CompilerNotFound, CompilerFailed) as error:  # the runtime wants Python's headers, too
        _warn_once(error)
        return Interpreter(gm, name)
    except OSError as error:
        return _elsewhere(gm, name, code, known, CacheUnusable(cache.folder(), error), error)
    try:
        return _compile(gm, name, tools, code, known)
    except GraphTooLarge as error:
        warn(f"{error}\n  It runs on NumPy, operator by operator.")
        return Interpreter(gm, name)
    except (GraphNotSupported, _NoRuntime):
        return Interpreter(gm, name)
    except CodeNotSound as error:
        warn(f"{error}\n  This graph runs on NumPy, slower.")
        return Interpreter(gm, name)
    except CacheUnusable as error:
        return _elsewhere(gm, name, code, known, error, error.reason)
    except CompileError as error:
        errors.located(error)
        raise


def _elsewhere(gm: object, name: str, code: Callable, known: bool, error: CacheUnusable,
               reason: OSError) -> Callable:
    """The disk is full, say: once more in a temporary folder, else on NumPy."""
    if cache.retreat(reason):
        return compile_graph(gm, name, code, known)
    _warn_once(error)
    return Interpreter(gm, name)


def _warn_once(error: CompileError) -> None:
    global _warned
    if not _warned:
        _warned = True
        warn(f"{error}\n  Until then graphs run on NumPy, slower.")


class _NoRuntime(Exception):
    """The runtime cannot be built here."""


def _runtime() -> object:
    try:
        return native.runtime()
    except CompilerFailed as error:
        _warn_once(error)
        raise _NoRuntime from error


def is_sized(module: object) -> bool:
    """Has a graph symbolic sizes?"""
    for node in module.graph.nodes:
        if node.op == "placeholder":
            value = node.meta.get("val")
            if isinstance(value, Symbolic) or getattr(
                    getattr(value, "_payload", None), "symbolic", False):
                return True
    return False


def schedule_graph(gm: object, name: str) -> Schedule:
    """The kernels and calls of a graph, in the order in which they run."""
    from .lower import lower  # a warm cache needs none of these
    from .schedule import schedule

    count = len(gm.graph.nodes)
    if count > MOST_NODES:
        raise GraphTooLarge(name, f"{count:,} nodes", f"{MOST_NODES:,} nodes")
    return schedule(lower(gm))


def graph_code(gm: object, name: str) -> Unit:
    """The C text and the plan of a graph, by the usual steps."""
    return emit_code(schedule_graph(gm, name), name)


def emit_code(kernels: Schedule, name: str) -> Unit:
    """The C text and the plan of kernels; products of matrices that they need are begun.

    That of a graph of extents (`sized.py`) is for all sizes.
    """
    from .memory import given_away
    from .unit import make_unit

    lowered = kernels.lowered
    gm, width = lowered.graph, toolchain.find().vector_bytes
    unit = make_unit(lowered, kernels, name, width, getattr(gm, "writes", None),
                     getattr(gm, "general", False), given_away(gm), is_tight(gm))
    if unit.length > MOST_TEXT:
        raise GraphTooLarge(
            name, f"{lowered.count:,} nodes, with kernels of {unit.length:,} characters,",
            f"{MOST_TEXT:,} characters")
    unit.plan["products"] = [
        kind
        for kind, letter in ("fs", "dd")
        if f"pb->{letter}gemm(" in unit.source or f"pb->{letter}conv(" in unit.source
    ] + ["sparse"] * ("pb_entries" in unit.source)
    for kind in unit.plan["products"]:
        native.start_product(kind)
    return unit


def load(gm: object, name: str, plan: dict, path: str | None) -> Callable:
    """The function of a plan."""
    runtime = _runtime()
    for kind in plan["products"]:
        native.product(kind)
    return _load(gm, name, plan, path, runtime)


def _compile(gm: object, name: str, tools: toolchain.Toolchain, code: Callable[[object], Unit],
             known: bool) -> CompiledGraph:
    unit = None if known else code(gm)
    text = graph_text(gm) if unit is None else f"{unit.source} {unit.plan}"
    key = cache.key(text, name, *identity(tools))
    for attempt in range(2):
        kept = _kept(key)
        cache.used(key, kept is not None)
        if kept is None:
            unit = unit or code(gm)
            plan, report = unit.plan, unit.report
            plan["externs"] = _externs(gm, plan)
            has_code = bool(unit.source)
            try:
                if has_code:
                    native.build_text(unit.source, key, f"{key}.so")
                cache.write_sealed(f"{key}.plan", marshal.dumps((plan, report, has_code)))
            except OSError as error:
                raise CacheUnusable(cache.folder(), error) from error
        else:
            plan, report, has_code = kept
        path = str(cache.path(f"{key}.so")) if has_code else None
        try:
            call = load(gm, name, plan, path)
        except OSError as error:
            for suffix in (".so", ".plan"):  # made for another machine: make it again, once
                cache.discard(key + suffix)
            if attempt:
                raise CompilerFailed(list(tools.command), str(error), f"{path[:-3]}.c") from error
            continue
        if kept is None:
            cache.grown()
        return CompiledGraph(
            name, call, report, str(cache.path(f"{key}.c")) if has_code else None, plan, key
        )
    raise AssertionError("unreachable")


def _externs(gm: object, plan: dict) -> dict[str, str]:
    """The steps on NumPy: the name of the node -> what is called with what, nodes without names."""
    wanted = {s[0] for s in plan["steps"] if len(s) == 3}
    return {n.name: _called(n) for n in gm.graph.nodes if n.name in wanted} if wanted else {}


def _called(node: object) -> str:
    nested = any(getattr(a, "op", None) == "get_attr" and "val" not in a.meta for a in node.args)
    empty = node.meta.get("val") is None
    text = argument_text([list(node.args), node.kwargs])
    return "" if nested else f"{node.target} {re.sub('%[A-Za-z0-9_]+', '%', text)} {empty}"


def load_known(key: str, name: str, gm: object) -> CompiledGraph | None:
    """A graph that was compiled before and follows from another one, `gm`, with its constants.

    None where it is not there, or has steps on NumPy that are no nodes of that graph.
    """
    kept = _kept(key)
    if kept is None:
        return None
    plan, report, has_code = kept
    here = _externs(gm, plan)
    if here != plan["externs"] or "" in here.values():
        return None
    if not all(hasattr(gm, path.partition(".")[0]) for path in plan["constants"]):
        return None
    try:
        call = load(gm, name, plan, str(cache.path(f"{key}.so")) if has_code else None)
    except (OSError, CompilerFailed, _NoRuntime):
        return None  # the way with the graph says what is wrong
    cache.used(key, True)
    source = str(cache.path(f"{key}.c")) if has_code else None
    return CompiledGraph(name, call, report, source, plan, key)


def _kept(key: str) -> tuple | None:
    """Plan, report and whether there is an object, from the disk cache."""
    data = cache.read_sealed(f"{key}.plan")
    if data is None:
        return None
    try:
        plan, report, has_code = marshal.loads(data)
    except (ValueError, EOFError, TypeError):
        cache.discard(f"{key}.plan")
        return None
    if has_code and not cache.intact(f"{key}.so"):
        return None
    return plan, report, has_code


def _load(gm: object, name: str, plan: dict, path: str | None, runtime: object) -> Callable:
    nodes = {n.name: n for n in gm.graph.nodes} if any(len(s) == 3 for s in plan["steps"]) else {}
    orders = plan.get("orders", {})
    steps = tuple(
        (_in_order(kernel_of(nodes[s[0]], _graphs(gm, nodes[s[0]])), orders.get(s[0])), s[1], s[2])
        if len(s) == 3 else s
        for s in plan["steps"]
    )
    count = len(plan["inputs"]) - len(plan["constants"])
    conform = Conform(name, plan, count)
    buffers = list(plan["buffers"])
    for i, path_of in enumerate(plan["constants"], count):
        array = conform(i, _attribute(gm, path_of))
        buffers[1 + i] = (4, 0, buffers[1 + i][2], buffers[1 + i][3], array)
    outputs = tuple(
        (2, 0, 0, True, o[4], _constant(_attribute(gm, plan["constants"][o[1] - count]), o))
        if o[0] == 1 and o[1] >= count
        else o
        for o in plan["outputs"]
    )
    return runtime.make(
        name,
        path,
        plan["inputs"][:count],
        tuple(buffers),
        outputs,
        steps,
        plan["workspace"],
        tuple((_CHECKS[kind], text) for kind, text in plan["checks"]),
        conform,
        plan.get("written", ()),
        plan["frees"],
        plan["room"],
        plan["makes"],
        plan.get("tight", False),
    )


def _in_order(kernel: Callable, orders: tuple | None) -> Callable:
    """A kernel whose results, by their numbers, have their dims as they lie in memory."""
    if orders is None:
        return kernel

    def run(*arrays: np.ndarray) -> object:
        made = kernel(*arrays)
        if not isinstance(made, (tuple, list)):
            return made.transpose(orders[0][1])
        made = list(made)
        for k, order in orders:
            made[k] = made[k].transpose(order)
        return made

    return run


def _graphs(gm: object, node: object) -> dict:
    """The graphs among the arguments of a node, compiled."""
    found = {
        n: attribute(gm, n.target)
        for n in node.args
        if getattr(n, "op", None) == "get_attr" and "val" not in n.meta
    }
    return {n: (compile_graph(g, n.name), returns_one(g)) for n, g in found.items()}


def _attribute(gm: object, name: str) -> np.ndarray:
    value = attribute(gm, name)
    for inner in ("_payload", "data"):
        if not isinstance(value, np.ndarray) and hasattr(value, inner):
            value = getattr(value, inner)
    return np.asarray(value)


def _constant(array: np.ndarray, output: tuple) -> np.ndarray:
    """A constant, or the part of it that is an output."""
    _, _, offset, whole, (_, shape, strides), _ = output
    if whole:
        return array
    stored = np.ascontiguousarray(array)
    return np.ndarray(shape, stored.dtype, stored, offset, strides)


class Conform:
    """Makes an argument fit its plan when only its memory layout differs; refuses anything else."""

    def __init__(self, name: str, plan: dict, count: int):
        self.name, self.specs, self.names = name, plan["inputs"], plan["names"]

    def __call__(self, i: int, value: object) -> np.ndarray:
        number, shape, strides = self.specs[i]
        wanted = np.dtype(_NUMBERS[number]) if number in _NUMBERS else None
        if not isinstance(value, (np.ndarray, np.generic)):
            raise errors.ArgumentError(
                f"{self.name}: argument {self.names[i]} must be a NumPy array, "
                f"got {type(value).__name__}"
            )
        array = np.asarray(value)
        if wanted is not None and array.dtype != wanted:
            raise errors.ArgumentError(
                f"{self.name}: argument {self.names[i]} must be {wanted}, got {array.dtype}"
            )
        if array.shape != shape:
            raise errors.BadValue(
                f"{self.name}: argument {self.names[i]} must have shape {shape}, got {array.shape}"
            )
        order = sorted(range(array.ndim), key=lambda d: -strides[d])
        stored = np.array(array.transpose(order), dtype=wanted, order="C", copy=True)
        back = np.argsort(order) if order else []
        return stored.transpose(back)


_NUMBERS = {
    np.dtype(t).num: t
    for t in (
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "bool",
    )
}
