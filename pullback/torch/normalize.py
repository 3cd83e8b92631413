"""Graphs in one spelling: all arguments by name (`NormalizeArgs`), functions that have an operator
of Python as that (`NormalizeOperators`)."""

from __future__ import annotations

import operator
from typing import Any

from ..graph.graph_module import GraphModule
from ..graph.interpreter import Transformer
from ..graph.node import Node, map_arg
from ..graph.operator_schemas import normalize_function, normalize_module
from ..graph.proxy import Proxy

_OPERATORS = ("add", "sub", "mul", "floordiv", "mod", "eq", "ne", "lt", "le", "gt", "ge")
_SPELLED = {"sub": "sub", "floordiv": "floor_divide", "mod": "remainder"}


class NormalizeArgs(Transformer):
    """Calls whose schema is known get their arguments by name, with defaults."""

    def __init__(self, module: GraphModule, normalize_to_only_use_kwargs: bool = True) -> None:
        super().__init__(module)
        self.node_map: dict[Proxy, Node] = {}
        self.normalize_to_only_use_kwargs = normalize_to_only_use_kwargs

    def run_node(self, n: Node) -> Any:
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        found = None
        if n.op == "call_function" and getattr(n.target, "__module__", "") != "_operator":
            found = normalize_function(n.target, n.args, n.kwargs, None, None,
                                       self.normalize_to_only_use_kwargs)
        elif n.op == "call_module":
            found = normalize_module(self.module, n.target, n.args, n.kwargs,
                                     self.normalize_to_only_use_kwargs)
        if found is None:
            out = getattr(self, n.op)(n.target, args, kwargs)
        else:
            args, kwargs = map_arg(tuple(found), lambda node: self.env[node])
            out = self.tracer.create_proxy(n.op, n.target, args, kwargs)
        if isinstance(out, Proxy):
            self.node_map[out] = n
            if n.op != "output":
                out.node.meta, out.node.type = dict(n.meta), n.type
        return out


class NormalizeOperators(Transformer):
    """`torch.add(x, y)` becomes `x + y`."""

    def call_function(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        name = getattr(target, "__name__", "")
        own = getattr(target, "__module__", "").startswith(__name__.partition(".")[0])
        for plain in _OPERATORS:
            if own and name in (plain, f"{_SPELLED.get(plain, plain)}") and len(args) == 2 and (
                    not kwargs):
                target = getattr(operator, plain)
        return super().call_function(target, args, kwargs)
