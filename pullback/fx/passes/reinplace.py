"""`reinplace`: writes in the place of new results, where nobody can tell.

`add(a, 1)` becomes `add_(a, 1)` if nobody reads `a`, or a view of its memory, afterwards, and if
that memory is no input of the graph.  A scatter whose source has been written through the same
view is nothing then, and goes.
"""

from __future__ import annotations

from typing import Any

from ...core.op import OpOverload
from ...core.table import ops
from ..graph_module import GraphModule
from ..node import Node
from ..traits import viewed
from .shape_prop import ShapeProp

# scatter -> the view that it writes through: same arguments, but for the source
_VIEWS = {"select_scatter": "select.int", "slice_scatter": "slice.Tensor",
          "diagonal_scatter": "diagonal.default", "as_strided_scatter": "as_strided.default"}


def reinplace(gm: GraphModule, *sample_args: Any) -> GraphModule:
    """Change the calls of a functional graph that may write into their first argument."""
    ShapeProp(gm).propagate(*sample_args)
    for node in list(gm.graph.nodes):
        if node.op != "call_function" or not isinstance(node.target, OpOverload) or not (
                node.args and isinstance(node.args[0], Node)):
            continue
        name, _, overload = node.target.name.partition(".")
        own, scattered = node.args[0], _VIEWS.get(name)
        if viewed(own).op in ("placeholder", "get_attr"):
            continue
        if scattered is not None:
            _drop_scatter(gm, node, scattered)
        elif not node.target.is_view and _same(own, node) and not _read_after(own, node, gm):
            written = _in_place(name, overload or "default")
            if written is not None:
                node.target = written
                for user in list(node.users):
                    user.replace_input_with(node, own)
    gm.recompile()
    return gm


def _in_place(name: str, overload: str) -> Any:
    """The overload that writes, if there is one."""
    try:
        return getattr(getattr(ops, f"{name}_"), overload)
    except AttributeError:
        return None


def _same(own: Node, result: Node) -> bool:
    a, b = own.meta.get("tensor_meta"), result.meta.get("tensor_meta")
    return (hasattr(a, "shape") and hasattr(b, "shape") and a.shape == b.shape
            and a.dtype == b.dtype and 0 not in [s for s, n in zip(a.stride, a.shape) if n > 1])


def _read_after(own: Node, node: Node, gm: GraphModule) -> bool:
    """Whether the memory of `own` is read after `node`, other than by a scatter that will go."""
    memory = viewed(own)
    for other in gm.graph.nodes:
        if other > node and any(viewed(source) is memory for source in other._inputs):
            scattered = _VIEWS.get(getattr(other.target, "name", "").partition(".")[0])
            if not (scattered and other.args[1] is node and _is_through(own, other, scattered)):
                return True
    return any(viewed(arg) is memory for arg in node._inputs if arg is not own)


def _is_through(view: Node, scatter: Node, name: str) -> bool:
    """Whether `view` is the region of memory that the scatter writes."""
    base, _, *where = scatter.args
    return (getattr(view.target, "name", None) == name and list(view.args[1:]) == where
            and view.args[0] is base and view.kwargs == scatter.kwargs)


def _drop_scatter(gm: GraphModule, node: Node, name: str) -> None:
    base, source = node.args[:2]
    if isinstance(source, Node) and _is_through(source, node, name):
        node.replace_all_uses_with(base)
        gm.graph.erase_node(node)
