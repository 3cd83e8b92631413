"""`GraphModule`: a graph that can be called, with the attributes its nodes refer to.

Calling it runs Python source generated from the graph, compiled once. The source is made when it is
first needed after construction or `recompile()`, so a graph that only travels through passes
and backends never pays for it. Read `printer.py` for the source, `interpreter.py` for the other
way to run a graph.
"""

import copy
import functools
import itertools
import linecache
import pickle
import textwrap
import weakref
from pathlib import Path
from types import MethodType
from typing import Any

from .. import errors
from .errors import GraphError
from .graph import Graph
from .hooks import LISTS, Hooked
from .node import fetch_attribute
from .printer import PythonCode, executable_code
from .readable import format_class

_serial = itertools.count()
_OWN = ("_graph", "_class_name", "_forward", "_wrapped", "_printed", "_source_name", "meta", *LISTS)


_FOLDER = """import pickle
from pathlib import Path

import pullback as torch
from pullback import device, inf, nan


class {name}(torch.nn.Module):
    def __init__(self):
        super().__init__()
        held = pickle.loads(Path(__file__).with_name("held.pkl").read_bytes())
        for key, value in held.items():
            setattr(self, key, value)

{body}
"""


class Container:
    """Holds attributes on the way to a dotted path such as `layers.0.weight`."""

    def __repr__(self) -> str:
        return "Module()"


class GraphModule(Hooked):
    """A callable made of a graph and of the attributes its `get_attr` and `call_module` mean.

    `root` supplies those attributes: a module (any object) or a dictionary from dotted paths.
    After changing the graph, call `recompile()`.
    """

    def __new__(cls, root: Any = None, *args: Any, **kwargs: Any) -> "GraphModule":
        chosen = getattr(root, "_graph_module_class", None)  # a module's graph is a module
        if cls is GraphModule and chosen is not None:
            return chosen().__new__(chosen(), root, *args, **kwargs)
        return super().__new__(cls)

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        self._class_name = class_name
        self._source_name: str | None = None
        self.meta: dict[str, Any] = {}
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                at = node.target
                self._install(at, root[at] if isinstance(root, dict) else fetch_attribute(root, at))
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The program; assigning another one recompiles."""
        return self._graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise GraphError(f"a GraphModule needs a Graph, not a {type(graph).__name__}")
        self._graph = graph
        graph.owning_module = self
        self._changed()

    @property
    def _in_spec(self) -> Any:
        """Structure of the arguments, where the graph was captured with trees."""
        return None if self._graph.trees is None else self._graph.trees.in_spec

    @property
    def _out_spec(self) -> Any:
        return None if self._graph.trees is None else self._graph.trees.out_spec

    # Running ------------------------------------------------------------------------------------

    def recompile(self) -> "Recompiled":
        """Take changes of the graph into account; the new source is made when it is asked for."""
        self._changed()
        return Recompiled(self)

    def _changed(self) -> None:
        self._forward = None
        self._printed: PythonCode | None = None

    def _compile(self) -> Any:
        code = executable_code(self._graph)
        self._forget_source()
        origin = self._graph.origin and f" from {self._graph.origin}"
        self._source_name = f"<graph {next(_serial)}>{origin}"
        # With the source in the line cache, tracebacks and debuggers show the line of the graph.
        lines = code.src.splitlines(keepends=True)
        linecache.cache[self._source_name] = (len(code.src), None, lines, self._source_name)
        errors.generated[self._source_name] = functools.partial(_origin, weakref.ref(self), {})
        exec(compile(code.src, self._source_name, "exec"), code.globals)
        self._forward = code.globals.pop("forward")
        self._wrapped = code.wrapped
        return self._forward

    def wrapped_globals(self) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The globals of the source, and the names of those that `fx.wrap` keeps as calls."""
        function = self._forward or self._compile()
        return function.__globals__, getattr(self, "_wrapped", ())

    def _forget_source(self) -> None:
        if self._source_name is not None:
            linecache.cache.pop(self._source_name, None)
            errors.generated.pop(self._source_name, None)

    def __del__(self) -> None:
        if linecache is not None and self.__dict__.get("_source_name"):
            self._forget_source()

    @property
    def forward(self) -> Any:
        """The graph as a bound method; assigning a function replaces it until `recompile()`."""
        return MethodType(self._forward or self._compile(), self)

    @forward.setter
    def forward(self, function: Any) -> None:
        self._forward = lambda _self, *args, **kwargs: function(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self._forward or self._compile()
        return function(self, *args, **kwargs)

    # Showing ------------------------------------------------------------------------------------

    @property
    def code(self) -> str:
        """Python source of the graph."""
        return self._python_code().src

    def _python_code(self) -> PythonCode:
        if self._printed is None:
            self._printed = self._graph.python_code("self")
        return self._printed

    @property
    def _code(self) -> str:
        return self.code

    def print_readable(self, print_output: bool = True, include_stride: bool = False,
                       include_device: bool = False, colored: bool = False, *,
                       expanded_def: bool = False) -> str:
        """Source with types and the user's lines as comments; returned, and printed by default.

        `expanded_def` puts each parameter, and each described result, on a line of its own.
        """
        text = self._readable(
            self._class_name,
            include_stride=include_stride,
            include_device=include_device,
            colored=colored,
            expanded_def=expanded_def,
        )
        if print_output:
            print(text)
        return text

    def _readable(self, name: str, **options: Any) -> str:
        forward = self._graph.python_code("self", verbose=True, **options).src
        options["expanded_def"] = False  # only the outermost signature is spread out
        nested = [
            child._readable(key, **options)
            for key, child in self.named_children()
            if isinstance(child, GraphModule)
        ]
        return format_class(name, forward, nested)

    def __repr__(self) -> str:
        children = [
            f"  ({key}): " + repr(child).replace("\n", "\n  ")
            for key, child in self.named_children()
        ]
        inside = "\n" + "\n".join(children) + "\n" if children else ""
        return f"{self._class_name}({inside})"

    def __str__(self) -> str:
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return f"{self!r}\n{self.code}\n{hint}"

    def _install(self, path: str, value: Any) -> None:
        """Put an attribute at a dotted path."""
        _set_attribute(self, path, value)

    # Attributes ---------------------------------------------------------------------------------

    def named_children(self) -> list[tuple[str, Any]]:
        """Submodules the graph calls or refers to, in order of first assignment."""
        called = {
            node.target.partition(".")[0] for node in self._graph.find_nodes(op="call_module")
        }
        return [
            (name, value)
            for name, value in self._attributes().items()
            if name in called or isinstance(value, (GraphModule, Container))
        ]

    def _held(self) -> dict[str, Any]:
        """Tensors and submodules by their names."""
        return self._attributes()

    def _attributes(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in _OWN}

    def get_submodule(self, target: str) -> Any:
        """The submodule at a dotted path; the module itself for the empty path."""
        return fetch_attribute(self, target) if target else self

    def add_submodule(self, target: str, module: Any) -> bool:
        """Install a submodule at a dotted path, with containers on the way where needed."""
        _set_attribute(self, target, module)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Take away the submodule at a dotted path; False if there is none."""
        path, _, name = target.rpartition(".")
        try:
            holder = self.get_submodule(path)
        except AttributeError:
            return False
        return self._parts_of(holder).pop(name, None) is not None

    def _parts_of(self, holder: Any) -> dict[str, Any]:
        """Where a part of this module keeps its submodules."""
        return vars(holder)

    def delete_all_unused_submodules(self) -> None:
        """Take away the submodules that the graph neither calls nor reads from."""
        used: set[str] = set()
        for node in self._graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used.update(".".join(parts[:i]) for i in range(1, len(parts) + 1))
                if node.op == "call_module":
                    inside = self._paths_below(self.get_submodule(node.target), node.target)
                    used.update(inside)
        for path in self._paths_below(self, ""):
            if path not in used:
                self.delete_submodule(path)

    def _paths_below(self, module: Any, path: str) -> list[str]:
        """The dotted paths of everything inside of a submodule."""
        children = getattr(module, "named_children", None)
        pairs = children() if children else [
            (n, v) for n, v in vars(module).items() if isinstance(v, (GraphModule, Container))]
        found = []
        for name, child in pairs:
            at = f"{path}.{name}".lstrip(".")
            found += [at, *self._paths_below(child, at)]
        return found

    def to_folder(self, folder: Any, module_name: str = "FxModule") -> None:
        """Write a Python package with the module as source, and what it holds as a pickle."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        (path / "held.pkl").write_bytes(pickle.dumps(self._held()))
        body = textwrap.indent(self.code.strip(), "    ")
        (path / "module.py").write_text(_FOLDER.format(name=module_name, body=body))
        (path / "__init__.py").write_text("from .module import *\n")

    # Copying ------------------------------------------------------------------------------------

    def __copy__(self) -> "GraphModule":
        return self._with(copy.deepcopy(self._graph), self._attributes())

    def __deepcopy__(self, memo: dict) -> "GraphModule":
        copied = self._with(copy.deepcopy(self._graph, memo), {})
        memo[id(self)] = copied  # before what may lead back to it
        copied.__dict__.update(copy.deepcopy(self._attributes(), memo))
        copied.meta = copy.deepcopy(self.meta, memo)
        copied.__dict__.update(self._hooks())
        for hook in self._deepcopy_hooks:
            hook(copied)
        return copied

    def _with(self, graph: Graph, attributes: dict[str, Any]) -> "GraphModule":
        return _rebuild(self._shared_class(), graph, attributes, self._class_name, dict(self.meta))

    def _shared_class(self) -> "type[GraphModule]":
        """The class without what is made for one module alone."""
        return getattr(type(self), "_shared", type(self))

    def __reduce__(self) -> tuple:
        # The source is left out: it is made again from the nodes.
        parts = (self._shared_class(), self._graph, self._attributes(), self._class_name, self.meta)
        return _rebuild, parts


class Recompiled:
    """What `recompile()` returns: `src` and `globals` of the new source."""

    def __init__(self, module: GraphModule):
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module._python_code(), name)


def for_users(module: GraphModule) -> GraphModule:
    """The same graph as a module of `nn`, which is what users know graphs as."""
    from . import GraphModule as TracedModule

    return TracedModule(module, module.graph, module._class_name)


def _origin(module: weakref.ref, known: dict, line: int) -> str | None:
    """The user's line behind a line of a graph's source."""
    owner = module()
    if owner is not None and not known:
        known.update({node.name: node.stack_trace for node in owner._graph.nodes})
    text = "" if owner is None else linecache.getline(owner._source_name, line)
    return known.get(text.strip().partition(" ")[0])


def _rebuild(
    cls: type[GraphModule], graph: Graph, attributes: dict, class_name: str, meta: dict
) -> GraphModule:
    module = cls.__new__(cls)
    module.__dict__.update(attributes)
    module.__dict__.update(_source_name=None, meta=meta)
    module._class_name = class_name
    module.graph = graph
    return module


def _set_attribute(module: Any, path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for part in parents:
        if not hasattr(module, part):
            setattr(module, part, Container())
        module = getattr(module, part)
    setattr(module, last, value)
