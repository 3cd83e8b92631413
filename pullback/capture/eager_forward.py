"""The forward graph of a captured function, as eager code would run it once more.

Gradients of gradients are those of eager code: the forward runs on handles, so that the tape
records its operators, and an ordinary sweep follows.  A capture takes operators apart, and parts
have other derivatives where the whole is not smooth (a norm at 0 is the square root of 0): in this
graph they stand as they were called.  Functions with rules of their own go another way
(`custom_functions.py`).
Read next: `differentiable_backward` in `run.py`.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

from ..array.size import is_symbolic
from ..autograd.gradients import _level
from ..autograd.gradients import grad as sweep
from ..core.handle import Tensor
from ..graph.graph import Graph
from ..graph.graph_module import GraphModule
from ..graph.node import Node, map_arg
from ..interp.box import map_tensors
from ..threads.state import state


class Call(NamedTuple):
    """A call of an operator in terms of nodes."""

    ov: Any
    args: tuple
    kwargs: dict
    given: set[Node]


def note_whole(level: Any, ov: Any, flat: tuple, out: Any) -> None:
    """A capture has decomposed a call: remember the operator of each result."""
    results = out if isinstance(out, (list, tuple)) else (out,)
    args, kwargs = ov.schema.as_called(flat)
    if ov.is_random or is_symbolic(args) or is_symbolic(kwargs.values()):
        return
    found = [level.node(t) if isinstance(t, Tensor) and level.mine(t) else None for t in results]
    called = tuple(map_tensors(level.node, args)), dict(
        zip(kwargs, map_tensors(level.node, tuple(kwargs.values()))))
    given: set[Node] = set()
    map_arg(called, given.add)
    call = Call(ov, *called, given)
    level.wholes.update({
        node: (call, k if results is out else None)
        for k, node in enumerate(found) if node is not None and node not in given})


def forward_of(module: GraphModule, count: int, wholes: dict) -> Graph:
    """The part of a joint graph that computes its outputs, by whole operators."""
    graph: Graph = Graph()
    copied: dict[Node, Node] = {}
    calls: dict[int, Node] = {}
    results = module.graph.output_node().args[0][:count]
    # what nobody reads moves the generator, too: later draws are to be the same
    draws = [n for n in module.graph.nodes if getattr(n.target, "is_random", False)
             and not n.meta.get("autograd_backward")]
    needed = _needed((results, draws), wholes)
    for node in module.graph.nodes:
        if node in needed or node.op == "placeholder":
            call, place = wholes.get(node, (None, None))
            copied[node] = (graph.node_copy(node, copied.__getitem__) if call is None else
                            _whole(graph, copied, calls, call, place))
    graph.output(tuple(map_arg(results, copied.__getitem__)))
    return graph


def _needed(results: tuple, wholes: dict) -> set[Node]:
    """What the results are computed from."""
    todo: list[Node] = []
    map_arg(results, todo.append)
    found = set(todo)
    while todo:
        node = todo.pop()
        call, _ = wholes.get(node, (None, None))
        fresh = [n for n in (node.all_input_nodes if call is None else call.given)
                 if n not in found]
        found.update(fresh)
        todo += fresh
    return found


def _whole(graph: Graph, copied: dict, calls: dict, call: Call, place: int | None) -> Node:
    """The call of an operator, or one of its results."""
    made = calls.get(id(call))
    if made is None:
        args, kwargs = map_arg((call.args, call.kwargs), copied.__getitem__)
        made = calls[id(call)] = graph.call_function(call.ov, args, kwargs)
    return made if place is None else graph.call_function(operator.getitem, (made, place))


def pulled_back(made: tuple, inputs: list[Tensor], backward: Any, grads: list) -> list:
    """The gradients of inputs, with history where it is recorded, for those of outputs."""
    came = [(made[k], g) for g, k in zip(grads, backward.tangent_of)
            if g is not None and made[k].requires_grad]
    wanted = [inputs[i] for i in backward.grad_of]
    tracked = [t for t in wanted if t.requires_grad]
    if not (came and tracked):
        return [None] * len(wanted)
    outputs, seeds = map(list, zip(*came))
    recorded = state.record[_level(outputs)]  # of the sweep that asks, not of transforms above it
    found = iter(sweep(outputs, tracked, seeds, create_graph=recorded, allow_unused=True))
    return [next(found) if t.requires_grad else None for t in wanted]
