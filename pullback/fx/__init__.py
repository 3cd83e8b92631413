"""Graphs as data: build them, print them as Python, run them, rewrite them.

The interface is that of `torch.fx`. Nothing here knows tensors or operators: targets are callables
and example values are looked at by shape and dtype only. Read `node.py`, `graph.py`, `printer.py`,
`graph_module.py`, `interpreter.py` in this order; the rewrites are in `passes/`.
"""

from .errors import GraphError, LintError, TraceError
from .graph import Graph
from .graph_module import GraphModule
from .immutable_collections import immutable_dict, immutable_list
from .interpreter import Interpreter, Transformer
from .node import Node, map_aggregate, map_arg
from .printer import PythonCode
from .proxy import GraphAppendingTracer, Proxy
from .traits import has_side_effect, wrap

__all__ = [
    "Graph",
    "GraphAppendingTracer",
    "GraphError",
    "GraphModule",
    "Interpreter",
    "LintError",
    "Node",
    "Proxy",
    "PythonCode",
    "TraceError",
    "Transformer",
    "has_side_effect",
    "immutable_dict",
    "immutable_list",
    "map_aggregate",
    "map_arg",
    "wrap",
]
