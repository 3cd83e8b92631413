"""Common subexpression elimination: compute equal calls once.

Two calls are equal if target, arguments and keyword arguments are. Random draws and impure calls
are never merged, and nothing is merged across an impure call, which may have changed a value in
between. Read `fold.py` next.
"""

from collections.abc import Callable, Collection, Hashable, Iterator
from typing import TYPE_CHECKING, Any

from ..node import Node
from .redirect import Redirect

if TYPE_CHECKING:
    from ..graph import Graph


def _key(value: Any) -> Hashable:
    """A key that is equal only for arguments that mean the same.

    Python holds 1, 1.0 and True for equal, and 0.0 and -0.0, but operators do not.
    """
    if type(value) is Node:
        return value
    if isinstance(value, (tuple, list)):
        return (type(value), *[_key(item) for item in value])
    if isinstance(value, dict):
        return (dict, *[(name, _key(item)) for name, item in sorted(value.items())])
    if type(value) is slice:
        return (slice, _key(value.start), _key(value.stop), _key(value.step))
    if isinstance(value, (float, complex)):
        return (type(value), repr(value))
    return (type(value), value)


def repeats(graph: "Graph", banned: Collection = (),
            settle: Callable[[Node], None] | None = None) -> Iterator[tuple[Node, Node]]:
    """Calls that repeat an earlier one, each with that; a caller may replace them on the way.

    `banned`: operators, or families of them, whose calls are never merged.  Two values that are
    both returned stay two: a caller may write into one of them.  `settle` is called with each node
    before its arguments are looked at.
    """
    known: dict[Hashable, Node] = {}
    returned = {source for node in graph.find_nodes(op="output") for source in node._inputs}
    for node in graph.nodes:
        if settle is not None:
            settle(node)
        if node.op in ("placeholder", "output"):
            continue
        if node.is_impure(impure_random=False):
            known.clear()
            continue
        if node.is_impure() or node.op == "call_module":
            continue
        if banned and not {node.target, getattr(node.target, "overloadpacket", None)}.isdisjoint(
                banned):
            continue
        key = (node.op, node.target, _key(node.args), _key(node.kwargs))
        try:
            twin = known.setdefault(key, node)
        except TypeError:  # an argument without a hash: not comparable, so never equal
            continue
        if twin is node or (node in returned and twin in returned):
            continue
        if node in returned:
            returned.add(twin)
        yield node, twin


def eliminate_common_subexpressions(graph: "Graph", banned: Collection = ()) -> int:
    """Replace each call that repeats an earlier one; returns the number of nodes erased."""
    redirect = Redirect(graph)
    for node, twin in repeats(graph, banned, redirect.settle):
        redirect.drop(node, twin)
    return redirect.finish()


def fx_graph_cse(graph: "Graph") -> "Graph":
    """A copy of a graph in which equal calls are computed once."""
    from ..graph import Graph

    new: Graph = Graph()
    copies: dict[Node, Node] = {}
    for node in graph.nodes:
        copies[node] = new.node_copy(node, copies.__getitem__)
    eliminate_common_subexpressions(new)
    return new
