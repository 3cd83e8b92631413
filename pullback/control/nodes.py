"""Nodes of a capture that hold graphs: calls of branches and loops whose values are hidden.

Read `subgraph.py` first; `cond.py` next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import errors
from ..autograd.function import Function
from ..core.handle import Tensor
from ..graph.graph_module import GraphModule
from ..graph.make_fx import fake_of
from ..graph.passes import eliminate_dead_code
from ..interp.trace import Trace
from ..symbolic.number import SymBool
from .subgraph import HigherOrder, _Inner, below, capture, inner


class OfGraphs(Function):
    """A call of functions where values are hidden; derivatives and batches of it are such calls."""

    _emits = _derived = True


def closed(functions: Sequence[Callable], operands: Sequence[Sequence[Tensor]], what: str,
           returns: Sequence[Callable], level: Trace) -> list[GraphModule]:
    """The graphs of functions that reach nothing from outside, for a node of a capture."""
    plain = all(isinstance(f, GraphModule) and f.meta.get("plain") for f in functions)
    if isinstance(level, _Inner) and level.keeps_functions:
        # a branch of a branch: they are differentiated together
        level.recorder.calls |= not plain
        plain = all(isinstance(f, GraphModule) for f in functions)
    if plain and not (level.decompositions or level.keeps_composites):
        return list(functions)  # type: ignore[arg-type]
    bodies, extras = capture(functions, operands, what, returns, level)
    if extras:
        raise errors.TransformError(errors.text(
            f"{what} meets tensors from outside in its derivative or batching rule",
            f"{len(extras)} tensors", "pass them as operands"))
    for function, body in zip(functions, bodies):
        if not isinstance(function, GraphModule):  # a derivative: not all of it is wanted
            eliminate_dead_code(body.module.graph)
    return [b.module for b in bodies]


def emitted(level: Trace, target: HigherOrder, titles: Sequence[str],
            modules: Sequence[GraphModule], operands: Sequence[Any], arguments: Callable,
            fakes: Callable[[], Sequence[Tensor]]) -> tuple:
    """A call of an operator as a node, and tensors for its results.

    `arguments` puts graphs and operands into the operator's order; `fakes` makes the results where
    there are no values to compute them of.
    """
    if level.fake:
        out = fakes()
    else:
        values = [inner(level, t) for t in operands]
        with below(level):
            out = target(*arguments(modules, values))
    nodes = [level.recorder.sizes.node(t) if isinstance(t, SymBool) else level.node(t)
             for t in operands]
    return _emit(level, target, titles, modules, lambda *graphs: arguments(graphs, nodes), out)


def _emit(level: Trace, target: HigherOrder, titles: Sequence[str],
          modules: Sequence[GraphModule], arguments: Callable, out: Sequence[Tensor]) -> tuple:
    """A node for an operator, and tensors for its results.

    `arguments` makes the node's arguments of the nodes of the modules.
    """
    recorder = level.recorder
    graph = recorder.graph
    nodes = []
    for title, module in zip(titles, modules):
        number = sum(name.rpartition("_")[0] == title for name in recorder.constants)
        recorder.constants[f"{title}_{number}"] = module
        nodes.append(graph.get_attr(f"{title}_{number}"))
        recorder.place(nodes[-1].meta)
    node = graph.call_function(target, arguments(*nodes))
    node.meta["val"] = [fake_of(o) for o in out]
    recorder.place(node.meta)
    return tuple(level.wrap(o, recorder.pick(node, i, o)) for i, o in enumerate(out))
