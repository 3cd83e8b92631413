"""`Proxy`: a stand-in for a value that writes down what is done to it as graph nodes.

Operators, methods, attributes and indexing of a proxy each add a node. Used where new nodes are
easier to write as expressions than as `create_node` calls, and by `Transformer` (read
`interpreter.py` next).
"""

import copy
import dis
import functools
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from ..core.handle import Tensor
from ..core.overload import OpOverload
from ..creation import _assert
from ..facade import for_torch
from ..table.derived_overloads import InplaceOverload, OutOverload
from ..tensor.overridable import ask_from_now_on
from . import traceback
from .errors import TraceError
from .graph import Graph
from .naming import OPERATORS, overload_name
from .node import Node, map_aggregate
from .operator_schemas import check_for_mutable_operation


class TracerBase:
    """Turns proxies into nodes of a graph: what every tracer can do, and its switches."""

    graph: Graph
    record_stack_traces = False  # nodes know the lines of the user's program
    check_mutable_operations = False  # operators that write are refused
    trace_asserts = False  # `assert proxy` becomes a call of `torch._assert`
    proxy_buffer_attributes = False
    traced_func_name = "forward"  # the method of a module that is traced

    def create_arg(self, value: Any) -> Any:
        """An argument with every proxy in it replaced by its node."""

        def leaf(item: Any) -> Any:
            if isinstance(item, Proxy):
                return item.node
            own = getattr(item, "__fx_create_arg__", None)  # an object that says how it is written
            return item if own is None else own(self)

        return map_aggregate(value, leaf)

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
        return self.proxy(self.create_node(kind, target, args, kwargs, name, type_expr))

    def proxy(self, node: Node) -> "Proxy":
        """The stand-in of a node."""
        return Proxy(node, self)

    def create_node(self, kind: str, target: Any, args: tuple, kwargs: dict[str, Any],
                    name: str | None = None, type_expr: Any = None) -> Node:
        """Add a node."""
        if kind == "call_function" and self.check_mutable_operations:
            check_for_mutable_operation(target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        if traceback.current_meta:
            node.meta.update(traceback.noted())
        if self.record_stack_traces and not node.stack_trace:
            node.stack_trace = traceback.source_line()
        return node

    def to_bool(self, obj: "Proxy") -> bool:
        """A proxy is used as a condition."""
        raise TraceError(
            "symbolically traced variables cannot be used as inputs to control flow: the truth "
            f"value of {obj.node.name} is not known while tracing"
        )

    def iter(self, obj: "Proxy") -> Iterator:
        """A proxy is iterated over; unpacking `a, b = proxy` is possible, its length is seen."""
        frame = sys._getframe(2)
        for step in dis.get_instructions(frame.f_code):
            if step.offset == frame.f_lasti and step.opname == "UNPACK_SEQUENCE":
                return iter([obj[i] for i in range(step.argval)])
        raise TraceError(
            f"Proxy object cannot be iterated: {obj.node.name} has no known length. This can be "
            "attempted when the Proxy is used in a loop or as a *args or **kwargs function argument"
        )

    def keys(self, obj: "Proxy") -> Any:
        """The keys of a proxy, for `**proxy`: not known, unless overridden."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Writes at the insert point of a graph that is there already."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


def _asserted() -> str | None:
    """The message, if the truth of a proxy is asked for by the `assert` of the caller's caller."""
    frame = sys._getframe(2)
    steps = [s for s in dis.get_instructions(frame.f_code)
             if s.opname not in ("NOP", "CACHE", "NOT_TAKEN")]
    at = next(i for i, step in enumerate(steps) if step.offset == frame.f_lasti)
    at += steps[at].opname in ("TO_BOOL", "COMPARE_OP")  # from 3.13 on, comparisons ask as well
    jump, then, message = [*steps[at : at + 3], None, None][:3]
    if jump is None or then is None or "IF_TRUE" not in jump.opname or (
            "AssertionError" not in then.argrepr and then.opname != "LOAD_ASSERTION_ERROR"):
        return None
    return message.argval if message and message.opname == "LOAD_CONST" else ""


_SLOTS = frozenset(("_cell", "_payload", "_link", "_record"))  # what tensors have


class Proxy:
    """Stands for the value of a node."""

    _edge = None  # operators ask their results for it

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.node = node
        self.tracer = tracer or GraphAppendingTracer(node.graph)
        ask_from_now_on()
        _watch_overloads()

    def __getattr__(self, name: str) -> "Attribute":
        if name.startswith("__") or name in _SLOTS:
            raise AttributeError(name)  # somebody probing for a protocol, or for a tensor
        return Attribute(self, name)

    def __call__(self, *args: Any, **kwargs: Any) -> "Proxy":
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and (message := _asserted()) is not None:
            self.tracer.create_proxy("call_function", _assert, (self, message))
            return True
        return self.tracer.to_bool(self)

    def __len__(self) -> NoReturn:
        raise TraceError(
            f"'len' is not supported in symbolic tracing by default: the length of "
            f"{self.node.name} is not known. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    def keys(self) -> Any:
        """The keys of a dictionary: a method call, unless the tracer knows them."""
        return self.tracer.keys(self)

    def __iter__(self) -> Iterator:
        return self.tracer.iter(self)

    @classmethod
    def __torch_function__(
        cls, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> "Proxy":
        """Record a library function that was called with a proxy among its arguments."""
        found: list[Proxy] = []
        map_aggregate(
            (args, kwargs or {}), lambda v: found.append(v) if isinstance(v, Proxy) else None
        )
        name = _method_name(function)
        if name is None:
            form = for_torch("library_calls").recorded_form(function, args, kwargs or {})
            return found[0].tracer.create_proxy(*form)
        kwargs = None if kwargs == {"alpha": 1} else kwargs  # a default, handed on
        return found[0].tracer.create_proxy("call_method", name, args, kwargs)

    def __deepcopy__(self, memo: dict) -> "Proxy":
        made = memo[id(self)] = type(self).__new__(type(self))
        vars(made).update({k: copy.deepcopy(v, memo) for k, v in vars(self).items()})
        return made

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"


@functools.cache
def _watch_overloads() -> None:
    """From now on overloads of operators (`ops.aten.add.Tensor`) are recorded, too.

    So are operators that users have registered, with or without an overload.
    """
    from ..library.definition import CustomOpDef, CustomOverload
    from ..library.namespaces import Packet

    def watched(call: Callable) -> Callable:
        def apply(self: Any, *args: Any, **kwargs: Any) -> Any:
            given = [*args, *kwargs.values()]
            for value in given:
                if isinstance(value, (list, tuple)):
                    given += value
                elif isinstance(value, Proxy):
                    called = self._opoverload if isinstance(self, CustomOpDef) else self
                    name = None if called.__class__ is Packet else overload_name(called)
                    return value.tracer.create_proxy("call_function", called, args, kwargs, name)
            return call(self, *args, **kwargs)

        return apply

    for kind in (OpOverload, InplaceOverload, OutOverload, Packet, CustomOverload,
                 CustomOpDef):
        kind.__call__ = watched(kind.__call__)  # type: ignore[method-assign]


@functools.cache
def _methods() -> dict[Any, str]:
    """The methods of tensors, operators by their plain names."""
    names = {}
    for name, value in vars(Tensor).items():
        plain = name.strip("_") if name.startswith("__") else name
        if callable(value) and (name == plain or plain not in names.values()):
            names.setdefault(value, plain if plain in vars(Tensor) else name)
    return names


def _method_name(function) -> str | None:
    """The name of a method of tensors, also of one that was written just now."""
    name = getattr(function, "__name__", "")
    return name if vars(Tensor).get(name) is function and name[0] != "_" else (
        _methods().get(function))


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


class ParameterProxy(Proxy):
    """Of a parameter whose sizes are constants of the graph."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Tensor) -> None:
        super().__init__(node, tracer)
        self.param, self.name = param, name

    shape = property(lambda self: self.param.shape)
    ndim = property(lambda self: self.param.ndim)

    def size(self, *args: Any) -> Any:
        return self.param.size(*args)

    def dim(self) -> int:
        return self.param.dim()

    def numel(self) -> int:
        return self.param.numel()

    nelement = numel

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"


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
    define("__abs__", operator.abs)


_define_operators()
