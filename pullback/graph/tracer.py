"""`symbolic_trace`: run a function or a module on proxies, and get the graph of what it called.

Unlike `make_fx` nothing is computed: the graph has the user's own calls, modules among them.
`Tracer` decides which modules stay calls (`is_leaf_module`); `wrap` names functions that do.
Read `proxy.py` first.
"""

from __future__ import annotations

import builtins
import copy
import dataclasses
import enum
import functools
import inspect
import math
import operator
import sys
import warnings
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from .. import pytree
from ..array.dtype import DType as dtype
from ..core.handle import Tensor
from ..creation import _assert
from ..errors import module_of
from ..threads.blocks import tied_block
from ..threads.state import count
from .errors import NodeError, TraceError
from .graph import Graph
from .graph_module import GraphModule, for_users
from .node import Node, map_aggregate
from .printer import Trees
from .proxy import ParameterProxy, Proxy, TracerBase

_OWN = __package__.partition(".")[0]
_wrapped: dict[tuple[int, str], dict] = {}  # (identity of a namespace, name) -> that namespace
_wrapped_methods_to_patch: list[tuple[type, str]] = []  # methods whose calls with proxies are nodes


class PHBase:
    """Stands in `concrete_args` for what remains an input."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """A `PH` that says something of its input: `ph_key` becomes an attribute of the node."""

    def __init__(self, ph_key: str | None = None):
        self.ph_key = ph_key


def wrap(fn_or_name: str | Callable) -> Any:
    """Keep calls of a function of the calling module as they are, at its top level or decorated."""
    name = fn_or_name if isinstance(fn_or_name, str) else getattr(fn_or_name, "__name__", None)
    if not isinstance(name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or "
                           "string name")
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def _assert_is_none(value: Any, msg: str) -> None:
    """Refuse anything but None."""
    if value is not None:
        raise AssertionError(msg)


_assert_is_none.__module__ = f"{_OWN}.fx._symbolic_trace"  # as it prints
_tracing = 0  # how many programs are being run on proxies


def is_fx_tracing() -> bool:
    """Is a program being run on proxies?"""
    return _tracing > 0


is_fx_symbolic_tracing = is_fx_tracing


class ProxyableClassMeta(type):
    """Of classes whose construction from proxies is a node of the graph."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        found = proxies_in((args, kwargs))
        if not found:
            return super().__call__(*args, **kwargs)
        return found[0].tracer.create_proxy("call_function", cls, args, kwargs)


def annotate(val: Any, type: Any) -> Any:
    """A value, whose node has this type if it is a proxy."""
    if isinstance(val, Proxy):
        val.node.type = type
    return val


def proxies_in(value: Any) -> list[Proxy]:
    """All proxies in a tree of arguments."""
    found: list[Proxy] = []
    map_aggregate(value, lambda v: found.append(v) if isinstance(v, Proxy) else None)
    return found


def _noted(method: Callable, name: str) -> Callable:
    """A method whose calls with proxies among the arguments are calls in the graph, too."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = proxies_in((args, kwargs))
        if not found or isinstance(self, Proxy):
            return method(self, *args, **kwargs)
        return found[0].tracer.create_proxy("call_method", name, (self, *args), kwargs)

    return call


def _recorded(function: Callable, wrapped: bool = False) -> Callable:
    """The function, but for calls with proxies, which are recorded.

    Code that is printed of them says that they were `wrapped`.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        found = proxies_in((args, kwargs))
        if not found:
            return function(*args, **kwargs)
        made = found[0].tracer.create_proxy("call_function", function, args, kwargs)
        if wrapped:
            made.node.meta["is_wrapped"] = True
        return made

    return call


class Tracer(TracerBase):
    """Runs a program on proxies.  Override methods to change what becomes a node."""

    def __init__(
        self,
        autowrap_modules: tuple = (math,),
        autowrap_functions: tuple = (),
        param_shapes_constant: bool = False,
    ) -> None:
        self.graph = Graph()
        self.record_stack_traces = False  # set it on the tracer; that of a class does not count
        self.root: Any = None
        self.autowrap_modules, self.autowrap_functions = autowrap_modules, autowrap_functions
        self.param_shapes_constant = param_shapes_constant
        self.module_stack: dict[str, tuple] = {}
        self._paths: dict[int, str] = {}
        self._attributes: dict[int, str] = {}  # identity of a tensor attribute -> its path
        self.tensor_constants: dict[str, Any] = {}

    # What becomes a node --------------------------------------------------------------------------

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        """Whether calls of a module stay calls: yes for the layers of `nn`, containers aside."""
        own = module_of(type(m)).startswith((f"{_OWN}.nn", "torch.nn"))
        return own and type(m).__name__ not in ("Sequential", "ModuleList", "ModuleDict")

    def path_of_module(self, mod: Any) -> str:
        """The dotted path of a submodule of the root."""
        path = self._paths.get(id(mod))
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    def call_module(self, m: Any, forward: Callable, args: tuple, kwargs: dict) -> Any:
        """A module is called: one node, or what its `forward` does."""
        path = self.path_of_module(m)
        self.module_stack[path] = (path, type(m))
        try:
            if not self.is_leaf_module(m, path):
                return forward(*args, **kwargs)
            return self.create_proxy("call_module", path, args, kwargs)
        finally:
            self.module_stack.pop(path, None)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """A parameter (or buffer) of a module is read."""
        path = self._attributes.get(id(attr_val))
        if path is None or not isinstance(attr_val, Tensor):
            return attr_val
        if path not in parameter_proxy_cache:
            made = self.create_proxy("get_attr", path)
            if self.param_shapes_constant:
                made = ParameterProxy(self, made.node, path, attr_val)
            parameter_proxy_cache[path] = made
        return parameter_proxy_cache[path]

    def create_node(self, kind: str, target: Any, args: tuple, kwargs: dict,
                    name: str | None = None, type_expr: Any = None) -> Node:
        node = super().create_node(kind, target, args, kwargs, name, type_expr)
        if self.module_stack:
            node.meta["nn_module_stack"] = dict(self.module_stack)
        return node

    def create_arg(self, value: Any) -> Any:
        """An argument as it stands in a node: tensors and modules by their paths."""
        if isinstance(value, Proxy):
            return value.node
        if hasattr(value, "__fx_create_arg__"):  # an object that says how it is written
            return value.__fx_create_arg__(self)
        if isinstance(value, dict) and any(proxies_in(key) for key in value):
            raise TraceError("Keys for dictionaries used as an argument cannot contain a Node: a "
                             "graph has no place for them. Use keys that are known while tracing")
        if isinstance(value, Tensor):
            return self._constant(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            args = tuple([self.create_arg(item) for item in value])
            return self.create_node("call_function", type(value), args, {})
        if isinstance(value, (tuple, list)):
            return type(value)([self.create_arg(item) for item in value])
        if isinstance(value, dict):
            return {key: self.create_arg(item) for key, item in value.items()}
        if isinstance(value, slice):
            return slice(*map(self.create_arg, (value.start, value.stop, value.step)))
        if id(value) in self._paths and hasattr(value, "named_parameters"):
            return self.create_node("get_attr", self._paths[id(value)], (), {})
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {f.name: self.create_arg(getattr(value, f.name))
                      for f in dataclasses.fields(value)}
            return self.create_node("call_function", type(value), (), fields)
        if isinstance(value, range):
            return range(*[self.create_arg(n) for n in (value.start, value.stop, value.step)])
        if isinstance(type(value), ProxyableClassMeta):  # made before the trace began
            return self._held(f"_{type(value).__name__}_constant_", value)
        if type(value) is object or _is_users(type(value)):
            raise NotImplementedError(f"argument of type: {type(value)}")
        return value

    def get_fresh_qualname(self, prefix: str) -> str:
        """An attribute name that the root does not have yet."""
        number = 0
        while (path := f"{prefix}{number}") in self.tensor_constants or hasattr(self.root, path):
            number += 1
        return path

    def _constant(self, value: Tensor) -> Node:
        return self._held("_tensor_constant", value)

    def _held(self, prefix: str, value: Any) -> Node:
        path = self._attributes.get(id(value))
        if path is None:
            path = self.get_fresh_qualname(prefix)
            self.tensor_constants[path] = value
            self._attributes[id(value)] = path
        return self.create_node("get_attr", path, (), {})

    # Running --------------------------------------------------------------------------------------

    def __deepcopy__(self, memo: dict) -> Tracer:
        made = memo[id(self)] = type(self).__new__(type(self))
        kept = ("autowrap_modules", "autowrap_functions")  # modules of Python cannot be copied
        vars(made).update({k: v if k in kept else copy.deepcopy(v, memo)
                           for k, v in vars(self).items()})
        return made

    def trace(self, root: Any, concrete_args: dict[str, Any] | tuple | None = None) -> Graph:
        """Run a module or a function on proxies."""
        self.root, self.graph = root, Graph()
        if hasattr(root, "named_modules"):
            function = getattr(type(root), self.traced_func_name, None)
            if function is None:
                raise NodeError(
                    f"traced_func_name={self.traced_func_name!r} doesn't exist in "
                    f"{type(root).__name__}: name a method of the module")
            if isinstance(function, property):  # a graph's
                function = root.forward.__func__
            for path, module in root.named_modules():
                self._paths.setdefault(id(module), path)
                for name, value in [*vars(module).items(), *module._parameters.items(),
                                    *module._buffers.items()]:
                    if isinstance(value, Tensor):
                        self._attributes.setdefault(id(value), f"{path}.{name}".lstrip("."))
            first: list = [root]
        else:
            function, first = root, []
        code = getattr(inspect.unwrap(function), "__code__", None)
        if code is not None:
            self.graph.origin = f"{code.co_filename}:{code.co_firstlineno} in {code.co_name}"
        function, args = self._arguments(function, first, concrete_args)
        with self._patched(root):
            out = function(*first, *args)
            if self.graph.trees is not None:
                leaves, spec = pytree.tree_flatten(out)
                trees = self.graph.trees
                self.graph.trees = Trees(trees.names, trees.in_spec, spec)
                out = leaves
            kind = getattr(inspect.unwrap(function), "__annotations__", {}).get("return")
            self.create_node("output", "output", (self.create_arg(out),), {}, type_expr=kind)
        return self.graph

    def _arguments(self, function: Callable, first: list, concrete_args: Any) -> tuple:
        given, function = function, inspect.unwrap(function)
        parameters = list(inspect.signature(function).parameters.values())
        if first and parameters and parameters[0].kind is parameters[0].VAR_POSITIONAL:
            raise TraceError("``self`` argument cannot be part of *args expansion: name it")
        parameters = parameters[len(first):]
        starred = [p for p in parameters if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        parameters = [p for p in parameters if p not in starred] + starred
        if isinstance(concrete_args, tuple):
            if starred and starred[0].kind is starred[0].VAR_POSITIONAL:  # as many as are given
                count = len(parameters) - len(starred)
                rest = tuple(concrete_args[count:])
                concrete_args = (*concrete_args[:count], rest, *[{} for _ in starred[1:]])
            if len(concrete_args) != len(parameters):
                raise RuntimeError(
                    f"Tracing expected {len(parameters)} arguments but got {len(concrete_args)} "
                    "concrete arguments")
            concrete_args = {p.name: v for p, v in zip(parameters, concrete_args)}
        concrete = dict(concrete_args or {})
        args: list = []
        nested = any(not pytree.tree_is_leaf(v) for v in concrete.values())
        for p in parameters:
            if p.name in concrete:
                args.append(self._concrete(p, concrete[p.name]))
                continue
            stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
            default = () if p.default is p.empty else (p.default,)
            hint = None if p.annotation is p.empty else p.annotation
            name = f"_{p.name}" if stars else p.name
            node = self.create_node("placeholder", stars + p.name, default, {}, name, hint)
            args.append(self.proxy(node))
        if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.KEYWORD_ONLY) for p in parameters):
            return _by_position(function, len(first) + len(args)), args
        if nested:
            shapes = tuple(concrete.get(p.name, PH) for p in parameters)
            names = tuple(p.name for p in parameters)
            self.graph.trees = Trees(names, pytree.tree_flatten(shapes)[1], None)
        return given, args

    def _concrete(self, parameter: inspect.Parameter, value: Any) -> Any:
        """A fixed argument: its value stays in the graph, checked when the graph is called."""
        count = 0

        def leaf(item: Any) -> Any:
            nonlocal count
            count += 1
            spread = parameter.kind is parameter.VAR_POSITIONAL
            name = f"input_{count - 1}" if spread else f"{parameter.name}_{count}"
            default = () if parameter.default is parameter.empty else (parameter.default,)
            given = self.create_proxy("placeholder", name, default)
            if isinstance(item, PHBase):
                for name, note in vars(item).items():  # what a `PHWithMeta` says
                    if not hasattr(given.node, name):
                        setattr(given.node, name, note)
                return given
            text = (f"{parameter.name} has been specialized to have value {item} but got another "
                    "value")
            if item is None:
                self.create_proxy("call_function", _assert_is_none, (given, text))
            elif type(item) in (bool, int, float, complex, str, dtype):
                equal = self.create_proxy("call_function", operator.eq, (given, item))
                self.create_proxy("call_function", _assert, (equal, text))
            else:
                warnings.warn(f"Was not able to add assertion to guarantee correct input "
                              f"{parameter.name} to specialized function. It is up to the user to "
                              "make sure that your inputs match the inputs you specialized the "
                              "function with.", stacklevel=2)
            return item

        return pytree.tree_map(leaf, value)

    @tied_block
    def _patched(self, root: Any) -> Iterator[None]:
        """Calls of modules, reads of parameters and calls of functions are seen meanwhile."""
        global _tracing
        undo: list[tuple] = []
        _tracing += 1
        count("ACTIVE", 1)  # no shortcuts for kinds of calls that were seen before

        def put(holder: Any, name: str, value: Any) -> None:
            space = holder if isinstance(holder, dict) else vars(holder)
            undo.append((holder, name, space.get(name, undo)))
            _set(holder, name, value)

        cache: dict[str, Any] = {}
        base = next((c for c in type(root).__mro__ if c.__name__ == "Module"), None)
        if base is not None and hasattr(root, "named_modules"):
            tracer, read, plain = self, base.__getattr__, vars(base)["__call__"]

            def call(module: Any, *args: Any, **kwargs: Any) -> Any:
                calling = functools.partial(_plain_call, module)
                return tracer.call_module(module, calling, args, kwargs)

            def attribute(module: Any, name: str) -> Any:
                return tracer.getattr(name, read(module, name), cache)

            for cls in {base, *(c for m in root.modules() for c in type(m).__mro__)}:
                if vars(cls).get("__call__") is plain and issubclass(cls, base):
                    put(cls, "__call__", call)  # classes with a way of their own keep it
            put(base, "__getattr__", attribute)
        for cls, name in {(Tensor, "__getitem__"): 0, **dict.fromkeys(_wrapped_methods_to_patch)}:
            put(cls, name, _noted(getattr(cls, name), name))
        for (_, name), space in _wrapped.items():
            if name in space:
                put(space, name, _recorded(space[name], True))
            elif hasattr(builtins, name):
                put(space, name, _recorded(getattr(builtins, name), True))
        wanted = {id(function) for function in self.autowrap_functions}
        for module in self.autowrap_modules:
            names = [n for n, v in vars(module).items() if not n.startswith("_") and callable(v)]
            for name in names:
                wanted.add(id(getattr(module, name)))
                put(module, name, _recorded(getattr(module, name), True))
        for space in _spaces(root):
            for name, value in list(space.items()):
                if id(value) in wanted and not name.startswith("_"):
                    put(space, name, _recorded(value, True))
        for module in root.modules() if hasattr(root, "modules") else ():
            if isinstance(module, GraphModule):  # what was wrapped when it was traced still is
                space, names = module.wrapped_globals()
                for name in names:
                    put(space, name, _recorded(space[name], True))
        try:
            yield
        finally:
            _tracing -= 1
            count("ACTIVE", -1)
            for holder, name, value in reversed(undo):
                _set(holder, name, value, undo)


def _spaces(root: Any) -> list[dict[str, Any]]:
    """The globals of the functions that a trace begins with: those of all modules, each once."""
    of = [type(m) for m in root.modules()] if hasattr(root, "modules") else [root]
    functions = [inspect.unwrap(getattr(f, "forward", f)) for f in of]
    found = {id(space): space for f in functions
             if isinstance(space := getattr(f, "__globals__", None), dict)}
    return [space for space in found.values() if space.get("__package__") != _OWN]


def _is_users(cls: type) -> bool:
    """Whether a class is one that a graph cannot write down: of the user, and no enumeration."""
    return module_of(cls) == "__main__" or not (
        module_of(cls).partition(".")[0] in (_OWN, "builtins", "enum", "numpy", "ml_dtypes")
        or issubclass(cls, (enum.Enum, FunctionType, type)))


def _by_position(function: FunctionType, count: int) -> FunctionType:
    """A function with `*args`, `**kwargs` and keyword-only parameters as ordinary ones.

    A proxy stands for all of `*args` then.
    """
    code = function.__code__
    flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    code = code.replace(co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0,
                        co_flags=flags)
    plain = FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)
    return plain


def _plain_call(module: Any, *args: Any, **kwargs: Any) -> Any:
    return type(module)._wrapped_call_impl(module, *args, **kwargs)


def _set(holder: Any, name: str, value: Any, missing: Any = None) -> None:
    if isinstance(holder, dict):
        if value is missing and missing is not None:
            holder.pop(name, None)
        else:
            holder[name] = value
    elif value is missing and missing is not None:
        delattr(holder, name)
    else:
        setattr(holder, name, value)


class RewritingTracer(Tracer):
    """A tracer that records `assert` statements."""

    trace_asserts = True


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | tuple | None = None) -> GraphModule:
    """The graph of what a module or function calls, as a module."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if hasattr(root, "named_modules") else root.__name__
    return _module(tracer, root, graph, name)


def _module(tracer: Tracer, root: Any, graph: Graph, name: str) -> GraphModule:
    if not hasattr(root, "named_modules"):
        return for_users(GraphModule(tracer.tensor_constants, graph, name))
    for path, value in tracer.tensor_constants.items():
        setattr(root, path, value)
    try:
        return GraphModule(root, graph, name)
    finally:
        for path in tracer.tensor_constants:
            delattr(root, path)
