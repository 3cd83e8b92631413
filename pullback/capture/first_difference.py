"""The first node of a captured graph whose value is wrong, for `compile(check=True)`.

Each compiled part of a program is run beside its graph, node by node on NumPy.  In the part that
differs, graphs that end at a node are compiled on their own: bisection finds the first one that is
wrong though its operands are right.  If all parts agree with their graphs, the capture is wrong:
then the operators of the function are watched, and the first one whose result is nowhere in the
graphs is named.  Read next: `check.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import errors
from ..autograd.grad_mode import no_grad
from ..core.handle import Tensor, make
from ..graph.graph import Graph
from ..graph.graph_module import GraphModule
from ..graph.interpreter import Interpreter
from ..graph.node import Node
from ..threads.blocks import uncast

if TYPE_CHECKING:
    from .check import Case

COMPILED = 32  # graphs that are compiled at most, to find a node


class Part(NamedTuple):
    """A compiled part of a program beside its graph."""

    name: str
    module: GraphModule
    arrays: list  # what it was given
    values: dict[Node, Any]  # what each node is, on NumPy
    wrong: list[Node]  # outputs that compiled code has otherwise


class _Kept(Interpreter):
    """Keeps the value of every node, as it was."""

    def __init__(self, module: GraphModule):
        super().__init__(module, garbage_collect_values=False)
        self.values: dict[Node, Any] = {}

    def run_node(self, n: Node) -> Any:
        value = super().run_node(n)
        if isinstance(value, Tensor):
            self.values[n] = value._payload.copy()
        elif not isinstance(value, (list, tuple)):
            self.values[n] = value
        return value


def interpreted_values(module: GraphModule, arrays: list) -> dict[Node, Any]:
    """All values of a graph, operator by operator."""
    run = _Kept(module)
    handles = [make(a.copy()) if isinstance(a, np.ndarray) else a for a in arrays]
    with no_grad(), uncast():
        run.run(*handles, enable_io_processing=False)
    return run.values


def first_difference(case: Case, call: Callable[[], Any]) -> list[str]:
    """What is known of the first node that differs, in lines of text."""
    if case.program.layout is not None:
        return []  # graphs of a user's compilers: these are to be asked
    try:
        parts = _parts(case)
        for part in parts:
            if part.wrong:
                return _found(case, part)
        return _captured(case, call, parts)
    except errors.PullbackError as error:
        return [f"the node could not be found: {str(error).splitlines()[0]}"]
    finally:
        case.memory.put_back()


def _parts(case: Case) -> list[Part]:
    """The parts of the program that have been compiled, up to the first that is wrong."""
    program, found = case.program, []
    makers = [n for n in ("fused", "forward") if n in program._made]
    for name in makers:
        module = program.graphs()[0] if name == "forward" else case.compiled.backend.seeded(
            program.joint.module)
        found.append(_compared(case, name, module, case.arrays))
        if found[-1].wrong:
            return found
    if "backward" in program._made and found[-1].name == "forward":
        forward, count = found[-1], program.count
        outputs = forward.module.graph.output_node().args[0]
        saved = {getattr(n, "name", None): forward.values[n] if isinstance(n, Node) else n
                 for n in outputs[count:]}
        drawn = np.random.default_rng(0)
        module, _ = _sized(case, program.graphs()[1])
        arrays = []
        for n in module.graph.find_nodes(op="placeholder"):
            val = n.meta["val"]
            arrays.append(saved[n.name] if n.name in saved else
                          drawn.standard_normal(val.shape).astype(val.dtype.np))
        found.append(_compared(case, "backward", module, arrays))
    return found


def _sized(case: Case, module: GraphModule) -> tuple[GraphModule, list[int] | None]:
    """A graph with numbers for its sizes, and which of its inputs are left."""
    if case.program.symbolic is None:
        return module, None
    from ..graph.concrete import concrete

    return concrete(module, case.program.values)


def _compared(case: Case, name: str, module: GraphModule, arrays: list) -> Part:
    module, kept = _sized(case, module)
    if kept is not None and len(arrays) != len(kept):
        arrays = [arrays[k] for k in kept]
    case.memory.put_back()
    values = interpreted_values(module, arrays)
    case.memory.put_back()
    symbolic = case.program.symbolic is not None
    run = case.program.part(name) if not (symbolic and name == "backward") else _compiled(
        case, module, name)
    outputs = module.graph.output_node().args[0]
    results = run(*[a.copy() if isinstance(a, np.ndarray) else a for a in arrays])
    wrong = [n for n, r in zip(outputs, results) if isinstance(n, Node)
             and isinstance(r, np.ndarray) and _differ(r, values[n])]
    return Part(name, module, arrays, values, wrong)


def _differ(mine: Any, theirs: Any) -> bool:
    from .check import _of_arrays

    return bool(_of_arrays(mine, theirs, None))


def _compiled(case: Case, module: GraphModule, name: str) -> Callable:
    backend = case.compiled.backend
    return (backend.backward if name == "backward" else backend.forward)(module, name)


def _ending_at(module: GraphModule, node: Node) -> tuple[GraphModule, list[Node]]:
    """The part of a graph that computes one node; and the nodes of it, in their order."""
    needed, todo = {node}, [node]
    while todo:
        fresh = [n for n in todo.pop().all_input_nodes if n not in needed]
        needed.update(fresh)
        todo += fresh
    graph, copied = Graph(), {}
    for n in module.graph.nodes:
        if n in needed or n.op == "placeholder":
            copied[n] = graph.node_copy(n, copied.__getitem__)
            copied[n].meta = {k: v for k, v in n.meta.items() if k != "donated"}
    graph.output((copied[node],))
    return GraphModule(module, graph), [n for n in module.graph.nodes if n in needed]


def _found(case: Case, part: Part) -> list[str]:
    """The first wrong node of a part, by compiling graphs that end there."""
    tried: dict[Node, bool] = {}

    def is_wrong(node: Node) -> bool:
        if node.op != "call_function" or not isinstance(part.values.get(node), np.ndarray):
            return False
        if node not in tried:
            if len(tried) >= COMPILED:
                return False
            case.memory.put_back()
            run = _compiled(case, _ending_at(part.module, node)[0], "check")
            (mine,) = run(*[a.copy() if isinstance(a, np.ndarray) else a for a in part.arrays])
            tried[node] = _differ(mine, part.values[node])
        return tried[node]

    node = next(filter(is_wrong, part.wrong), None)
    if node is None:
        node = part.wrong[0]
        return [f"first differing node: %{node.name} of the {part.name} graph, {_described(node)}; "
                "compiled alone it is right"]
    order = [n for n in _ending_at(part.module, node)[1] if n.op == "call_function"
             and isinstance(part.values.get(n), np.ndarray)]
    low, high = -1, len(order) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_wrong(order[middle]) else (middle, high)
    node = order[high]
    while (before := next(filter(is_wrong, node.all_input_nodes), None)) is not None:
        node = before
    return [f"first differing node: %{node.name} of the {part.name} graph, {_described(node)}"]


def _described(node: Node) -> str:
    val, place = node.meta.get("val"), (node.stack_trace or "").strip()
    facts = f" {val.dtype.name}{list(val.shape)}" if isinstance(val, Tensor) else ""
    given = ", ".join(f"%{n.name}" for n in node.all_input_nodes)
    return f"{node.target}({given}){facts}" + (f", from {place}" if place else "")


def _captured(case: Case, call: Callable[[], Any], parts: list[Part]) -> list[str]:
    """The first operator of the function whose result is in none of the graphs."""
    from ..utils._python_dispatch import TorchDispatchMode

    seen: list[tuple[str, np.ndarray]] = []

    class Watching(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            if isinstance(out, Tensor) and type(out._payload) is np.ndarray:
                seen.append((f"{func} {out.dtype.name}{list(out.shape)} ({errors.user_line()})",
                             out._payload.copy()))
            return out

    def watched() -> Any:
        with Watching():
            return call()

    case.run(watched)
    known = [v for part in parts for v in part.values.values() if isinstance(v, np.ndarray)]
    lines = ["compiled code agrees with the captured graph: the capture differs"]
    for told, value in seen:
        if not any(v.shape == value.shape and v.dtype == value.dtype and not _differ(v, value)
                   for v in known):
            return [*lines, f"first differing operator: {told}, whose result is not in the graph"]
    return lines
