"""`TracedModule`: a graph that is a module, with the parameters and layers that its nodes refer to.

It is what users know as `fx.GraphModule`, to make one or to derive from it.  The plain graphs that
this library makes for itself (`graph/graph_module.py`) pass for its instances.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ..core.handle import Tensor
from ..graph.graph import Graph
from ..graph.graph_module import GraphModule
from .module import Module
from .parameter import Parameter


class _Kind(type):
    """Every graph that can be called passes for an instance."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, GraphModule) if cls is TracedModule else (
            super().__instancecheck__(instance))

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, GraphModule) if cls is TracedModule else (
            super().__subclasscheck__(other))


_lazy = False  # is `_LazyGraphModule` the class of new modules?


class TracedModule(GraphModule, Module, metaclass=_Kind):
    """A graph with the parameters and layers of a module; each has a class of its own.

    That class is called what `class_name` says: `type(module).__name__` is the name of the program.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> TracedModule:
        cls = cls.__dict__.get("_shared", cls)
        if _lazy and cls is TracedModule:
            cls = _LazyGraphModule
        own = _Kind(cls.__name__, (cls,), {
            "_shared": cls, "__module__": cls.__module__, "__doc__": cls.__doc__})
        return object.__new__(own)

    @property
    def _class_name(self) -> str:
        return type(self).__name__

    @_class_name.setter
    def _class_name(self, name: str) -> None:
        type(self).__name__ = name

    def __init__(self, root: Module, graph: Graph, class_name: str = "GraphModule") -> None:
        Module.__init__(self)
        self.training = getattr(root, "training", True)
        GraphModule.__init__(self, root, graph, class_name)
        graph._hand_over()

    __call__ = Module.__call__
    __repr__ = Module.__repr__
    named_children = Module.named_children
    get_submodule = Module.get_submodule

    def _get_name(self) -> str:
        return self._class_name

    def _install(self, path: str, value: Any) -> None:
        *parents, last = path.split(".")
        holder: Any = self
        for part in parents:
            if not hasattr(holder, part):
                setattr(holder, part, Module())
            holder = getattr(holder, part)
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            if last not in holder._buffers:
                holder.register_buffer(last, value)
        elif type(value) is GraphModule:  # a branch or the body of a loop
            setattr(holder, last, TracedModule(value, value.graph, value._class_name))
        else:
            setattr(holder, last, value)

    def _held(self) -> dict[str, Any]:
        return {**self._parameters, **self._buffers, **self._modules}

    def add_submodule(self, target: str, m: Module) -> bool:
        """Install a submodule at a dotted path."""
        self._install(target, m)
        return True

    def _parts_of(self, holder: Module) -> dict[str, Any]:
        return holder._modules

    def delete_all_unused_submodules(self) -> None:
        """Take away the submodules that no node refers to."""
        used = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used.update(".".join(parts[: i + 1]) for i in range(len(parts)))
                if node.op == "call_module":
                    inside = self.get_submodule(node.target)
                    used.update(f"{node.target}.{n}" for n, _ in inside.named_modules())
        for path in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(path)


class _LazyGraphModule(TracedModule):
    """A graph module that says whether its source has been made; all of them wait with that."""

    @classmethod
    def from_graphmodule(cls, gm: GraphModule) -> _LazyGraphModule:
        """The same graph as such a module."""
        return gm if isinstance(gm, cls) else cls(gm, gm.graph, gm._class_name)

    @staticmethod
    def force_recompile(gm: GraphModule) -> None:
        """Make the source now."""
        if isinstance(gm, _LazyGraphModule):
            gm.real_recompile()

    def real_recompile(self) -> None:
        """Make the source, if it has not been made."""
        if self._needs_recompile():
            self._compile()

    def _needs_recompile(self) -> bool:
        return self._forward is None and self._printed is None


@contextlib.contextmanager
def _use_lazy_graph_module(should_use: bool) -> Iterator[None]:
    """Whether new graph modules are `_LazyGraphModule`s meanwhile."""
    global _lazy
    before, _lazy = _lazy, should_use
    try:
        yield
    finally:
        _lazy = before


def _make_graph_module(*args: Any, graph_module_cls: type | None = None,
                       **kwargs: Any) -> GraphModule:
    """A graph module, lazy if that is what is wanted now, or of a given class."""
    if graph_module_cls is None:
        return TracedModule(*args, **kwargs)
    with _use_lazy_graph_module(False):
        return graph_module_cls(*args, **kwargs)
