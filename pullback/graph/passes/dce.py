"""Dead code elimination: erase nodes whose result nobody uses and that do nothing else.

Read `cse.py` next.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..graph import Graph
    from ..node import Node


def eliminate_dead_code(graph: "Graph", is_impure: "Callable[[Node], bool] | None" = None) -> int:
    """Erase unused pure nodes; `is_impure` may decide otherwise than `Node.is_impure`.

    One sweep from the end suffices: a node's users are judged before the node itself.
    """
    erased = 0
    for node in reversed(graph.nodes):
        if node.users or node.op in ("placeholder", "output"):
            continue
        if not (node.is_impure() if is_impure is None else is_impure(node)):
            graph.erase_node(node)
            erased += 1
    return erased
