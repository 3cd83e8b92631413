"""Backward graphs without some of their tangents: of outputs that no gradient has reached.

Zeros in their place would be multiplied by what the function computed, and zero times infinity is
no number. Eager never runs those nodes, so the graph is cut: what depends on absent tangents alone,
linearly, is absent; a sum is what is left of it; where both kinds meet in another operator, and
where an operator may not be linear, zeros stand for what is absent.
"""

from __future__ import annotations

import ast
import functools
import operator
from typing import Any

from ..array.size import is_symbolic
from ..core.overload import overload
from ..graph.graph import Graph
from ..graph.graph_module import GraphModule
from ..graph.node import Node
from ..graph.passes import eliminate_dead_code

_GRADIENTS = ("grad", "grad_output", "grad_out")
_FACTS = ("shape", "dtype", "ndim", "device")


@functools.cache
def _linear_names(ov: Any) -> dict[str, set[str]]:
    """Arguments that an operator is linear in, each with the other names in its gradient.

    A pointwise operator is linear in an argument if that gradient reads neither the argument nor
    the result.
    """
    op = ov.op
    found = {name: set(ov.schema.names) for name in (*op.linear, *op.multilinear)}
    for name, text in (op.grad or {}).items() if ov.kind == "pointwise" else ():
        reads = _values_in(text)
        if "grad" in reads and not reads & {name, "result"}:
            found[name] = reads
    found.update({name: set(ov.schema.names) for name in _GRADIENTS if name in ov.schema.names})
    return found


def _values_in(formula: str) -> set[str]:
    """The names in a formula of which it wants more than shape and dtype."""
    nodes = list(ast.walk(ast.parse(formula, mode="eval")))
    facts = {id(n.value) for n in nodes if isinstance(n, ast.Attribute) and n.attr in _FACTS}
    return {n.id for n in nodes if isinstance(n, ast.Name) and id(n) not in facts}


def _linear_in(node: Node, gone: set) -> bool:
    """Is a node zero if those of its inputs are?"""
    if node.target is operator.getitem:
        return True
    op, schema = getattr(node.target, "op", None), getattr(node.target, "schema", None)
    if op is None or schema is None:
        return False
    if getattr(node.target, "is_view", False):
        return True
    linear = _linear_names(node.target)
    for arg, value in zip(schema.args, node.args):
        if _met(value, gone) and not (arg.name in linear and all(
                other.name in linear[arg.name] or not isinstance(v, (int, float, complex))
                or v == 0 for other, v in zip(schema.args, node.args))):
            return False  # a number that the gradient does not read is added, or put in its place
    return not any(_met(v, gone) for v in node.kwargs.values())


def _met(value: Any, gone: set) -> bool:
    """Is one of these nodes in an argument?"""
    if isinstance(value, (list, tuple)):
        return any(_met(v, gone) for v in value)
    return isinstance(value, Node) and value in gone


def _rest(node: Node, gone: set) -> Node | None:
    """The summand that is left of a sum, if it is all that the sum would be."""
    if getattr(getattr(node.target, "op", None), "ufunc", None) != "add" or node.kwargs:
        return None
    left = [n for n in node.args if isinstance(n, Node) and n not in gone]
    if len(left) != 1 or len(node.args) != 2:
        return None
    one, all_ = left[0].meta.get("val"), node.meta.get("val")
    same = one is not None and one.dtype is all_.dtype and tuple(one.shape) == tuple(all_.shape)
    return left[0] if same else None


def without(module: GraphModule, absent: tuple[int, ...]) -> GraphModule:
    """A graph that does not read some of its tangents, which are its inputs still.

    Gradients that depend on those alone are None.  A graph with sizes that vary stays as it is
    where it would need zeros of such a size.
    """
    tangents = [n for n in module.graph.nodes
                if n.op == "placeholder" and n.name.startswith("tangents_")]
    if not absent or absent[-1] >= len(tangents):  # cut by somebody who names them otherwise
        return module
    gone, depends = {tangents[i] for i in absent}, set(tangents)
    graph, copied, zeros = Graph(), {}, {}

    def value(n: Node) -> Node:
        if n not in gone or n.op == "placeholder":
            return copied[n]
        if n not in zeros:
            like = n.meta["val"]
            zeros[n] = graph.call_function(
                overload("zeros"), (list(like.shape),),
                {"dtype": like.dtype, "device": like.device})
            zeros[n].meta["val"] = like
        return zeros[n]

    for node in module.graph.nodes:
        if node.op == "output":
            found = tuple([None if isinstance(n, Node) and n in gone else n for n in node.args[0]])
            made = graph.output(tuple([n if n is None else value(n) for n in found]))
            made.meta = dict(node.meta)
            continue
        inputs = [n for n in node.all_input_nodes if n in depends]
        if inputs and getattr(node.target, "kind", None) != "creation":  # it wants a shape only
            depends.add(node)
            lost = [n for n in inputs if n in gone]
            if lost and len(lost) == len(inputs) and _linear_in(node, gone):
                gone.add(node)
                continue
            rest = _rest(node, gone) if lost else None
            if rest is not None:
                copied[node] = copied[rest]
                continue
            if any(n.op != "placeholder" and is_symbolic(n.meta["val"].shape) for n in lost):
                return module
        copied[node] = graph.node_copy(node, value)
    eliminate_dead_code(graph)
    made = GraphModule(module, graph)
    made.absent = absent
    return made
