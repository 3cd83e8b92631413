"""Graphs as data: build them, print them as Python, run them, rewrite them.

The interface is that of `torch.fx`. Nothing here knows tensors or operators: targets are callables
and example values are looked at by shape and dtype only. Read `node.py`, `graph.py`, `printer.py`,
`graph_module.py`, `interpreter.py` in this order; the rewrites are in `passes/`.
"""

from typing import TYPE_CHECKING, Any

from .codegen import CodeGen
from .errors import GraphError, LintError, TraceError
from .graph import Graph
from .immutable_collections import immutable_dict, immutable_list
from .interpreter import Interpreter, Transformer
from .node import Node, map_aggregate, map_arg
from .printer import PythonCode
from .proxy import GraphAppendingTracer, Proxy
from .tracer import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from .traits import has_side_effect

if TYPE_CHECKING:  # for editors and type checkers
    from ..nn.traced import TracedModule as GraphModule
    from .subgraph_rewriter import replace_pattern

__all__ = [
    "CodeGen",
    "Graph",
    "GraphAppendingTracer",
    "GraphError",
    "GraphModule",
    "Interpreter",
    "LintError",
    "PH",
    "Node",
    "Proxy",
    "ProxyableClassMeta",
    "PythonCode",
    "TraceError",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "immutable_dict",
    "immutable_list",
    "map_aggregate",
    "map_arg",
    "symbolic_trace",
    "wrap",
]

_LATER = ("subgraph_rewriter", "passes", "make_fx", "traceback", "operator_schemas")


def __getattr__(name: str) -> Any:
    if name == "GraphModule":
        from ..nn.traced import TracedModule

        return TracedModule
    if name == "replace_pattern":
        from .subgraph_rewriter import replace_pattern

        return replace_pattern
    if name in _LATER:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    from ..facade import elsewhere

    return elsewhere(__name__, name)
