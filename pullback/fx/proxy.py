"""`Proxy`: a stand-in for a value that writes down what is done to it as graph nodes.

Operators, methods, attributes and indexing of a proxy each add a node. Used where new nodes are
easier to write as expressions than as `create_node` calls, and by `Transformer` (read
`interpreter.py` next).
"""

import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from ..core import overriding
from ..core.handle import Tensor
from . import traceback
from .errors import TraceError
from .graph import Graph
from .naming import OPERATORS
from .node import Node, map_aggregate


class GraphAppendingTracer:
    """Turns proxies into nodes at the insert point of one graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def create_arg(self, value: Any) -> Any:
        """An argument with every proxy in it replaced by its node."""
        return map_aggregate(value, lambda item: item.node if isinstance(item, Proxy) else item)

    def create_proxy(
        self,
        kind: str,
        target: Any,
        args: tuple = (),
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> "Proxy":
        """Add a node and return its stand-in."""
        args, kwargs = self.create_arg(args), self.create_arg(kwargs or {})
        return Proxy(self.create_node(kind, target, args, kwargs, name, type_expr), self)

    def create_node(self, kind: str, target: Any, args: tuple, kwargs: dict[str, Any],
                    name: str | None = None, type_expr: Any = None) -> Node:
        """Add a node."""
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        if traceback.current_meta:
            node.meta.update(traceback.noted())
        return node


_SLOTS = frozenset(("_cell", "_data", "_link", "_meta"))  # what tensors have


class Proxy:
    """Stands for the value of a node."""

    _edge = None  # operators ask their results for it

    def __init__(self, node: Node, tracer: GraphAppendingTracer | None = None) -> None:
        self.node = node
        self.tracer = tracer or GraphAppendingTracer(node.graph)
        if type(self.tracer) is GraphAppendingTracer:  # nobody watches functions meanwhile
            overriding.arm()

    def __getattr__(self, name: str) -> "Attribute":
        if name.startswith("__") or name in _SLOTS:
            raise AttributeError(name)  # somebody probing for a protocol, or for a tensor
        return Attribute(self, name)

    def __call__(self, *args: Any, **kwargs: Any) -> "Proxy":
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __bool__(self) -> bool:
        if hasattr(self.tracer, "to_bool"):
            return self.tracer.to_bool(self)
        raise TraceError(
            f"symbolically traced variables cannot be used as inputs to control flow: the truth "
            f"value of {self.node.name} is not known while tracing"
        )

    def __len__(self) -> NoReturn:
        raise TraceError(
            f"'len' is not supported in symbolic tracing by default: the length of "
            f"{self.node.name} is not known. If you want this call to be recorded, please call "
            "fx.wrap('len') at module scope"
        )

    def __index__(self) -> NoReturn:
        raise TypeError(f"{self.node.name} is a Proxy, whose value as an index is not known")

    def __contains__(self, item: Any) -> NoReturn:
        raise TraceError(f"what {self.node.name} contains is not known while tracing")

    def keys(self) -> Any:
        """The keys of a dictionary, as a method call."""
        return Attribute(self, "keys")()

    def __iter__(self) -> Iterator:
        if hasattr(self.tracer, "iter"):
            return self.tracer.iter(self)
        raise TraceError(f"Proxy object cannot be iterated: {self.node.name} has no known length")

    @classmethod
    def __torch_function__(
        cls, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> "Proxy":
        """Record a library function that was called with a proxy among its arguments."""
        found: list[Proxy] = []
        map_aggregate(
            (args, kwargs or {}), lambda v: found.append(v) if isinstance(v, Proxy) else None
        )
        name = _methods().get(function)
        if name is None:
            return found[0].tracer.create_proxy("call_function", function, args, kwargs)
        kwargs = None if kwargs == {"alpha": 1} else kwargs  # a default, handed on
        return found[0].tracer.create_proxy("call_method", name, args, kwargs)

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"


@functools.cache
def _methods() -> dict[Any, str]:
    """The methods of tensors, operators by their plain names."""
    names = {}
    for name, value in vars(Tensor).items():
        plain = name.strip("_") if name.startswith("__") else name
        if callable(value) and (name == plain or plain not in names.values()):
            names.setdefault(value, plain if hasattr(Tensor, plain) else name)
    return names


class Attribute(Proxy):
    """An attribute of a proxy: a method call if it is called next, otherwise a `getattr` node."""

    def __init__(self, root: Proxy, name: str) -> None:
        self.root = root
        self.tracer = root.tracer
        self._name = name
        self._node: Node | None = None

    @property
    def node(self) -> Node:
        if self._node is None:
            self._node = self.tracer.create_proxy(
                "call_function", getattr, (self.root, self._name)
            ).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self._name, (self.root, *args), kwargs)


def _define_operators() -> None:
    def define(method: str, function: Callable, reflected: bool = False) -> None:
        def apply(self: Proxy, *others: Any) -> Proxy:
            args = (*others, self) if reflected else (self, *others)
            return self.tracer.create_proxy("call_function", function, args)

        apply.__name__ = method
        setattr(Proxy, method, apply)

    comparisons_and_unary = {"eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "invert", "getitem"}
    for name in OPERATORS:
        function, plain = getattr(operator, name), name.strip("_")
        define(f"__{plain}__", function)
        if name not in comparisons_and_unary:
            define(f"__r{plain}__", function, reflected=True)


_define_operators()
