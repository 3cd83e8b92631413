"""Removal of views, copies and casts that change nothing, judged by the example values.

A `view` to the same shape, an `expand` to the same sizes, a `permute` in order or a cast to the
same dtype leave shape, dtype and strides as they were; then the input serves as well. Only
operators whose entries say so (`noop`) are considered, because some views (`conj`, `as_strided`)
may keep the layout and still mean other values.
"""

from typing import TYPE_CHECKING

from ..node import Node
from ..traits import is_tensor, is_write, same_layout, trait, viewed
from .redirect import Redirect

if TYPE_CHECKING:
    from ..graph import Graph


def _source(node: Node) -> Node | None:
    """The node's first input, if the node only passes it on."""
    if node.op != "call_function" or not trait(node.target, "noop") or not node.args:
        return None
    source = node.args[0]
    if type(source) is not Node:
        return None
    value, given = node.meta.get("val"), source.meta.get("val")
    if not is_tensor(value) or not is_tensor(given) or not same_layout(value, given):
        return None
    return source


def remove_noops(graph: "Graph") -> int:
    """Replace such nodes by their input; returns how many were.

    A node that is returned stays if its input comes from outside or is returned as well: then it is
    what keeps two results, or a result and an argument, apart. Copies of written values stay too,
    and the marks where a history ends ("cut"): the graph may be differentiated again.
    """
    returned = {source for node in graph.find_nodes(op="output") for source in node._inputs}
    returned |= {viewed(source) for source in returned}
    written = {viewed(s) for node in graph.nodes if is_write(node) for s in node._inputs}
    redirect = Redirect(graph)
    for node in graph.nodes:
        redirect.settle(node)
        source = None if "cut" in node.meta else _source(node)
        if source is None or viewed(source) in written or viewed(node) in written:
            continue
        if node in returned:
            if viewed(source) in returned or viewed(source).op in ("placeholder", "get_attr"):
                continue
            returned.add(source)
        redirect.drop(node, source)
    return redirect.finish()
