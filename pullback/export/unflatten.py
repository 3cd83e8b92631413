"""`unflatten`: a program as modules again, in the hierarchy of the module that was exported.

Each module has a graph of the calls that were made inside of it, and its own parameters and
buffers, so that one can be replaced by another that takes and gives the same.  A module that was
called several times has a graph for each call: `name`, `name@1`, ...
"""

from __future__ import annotations

import contextlib
import operator
import threading
from collections.abc import Iterator
from typing import Any

from ..autograd.grad_mode import _set_grad_enabled, is_grad_enabled, set_grad_enabled
from ..graph.graph import Graph
from ..graph.graph_module import GraphModule
from ..graph.node import Node, map_arg
from ..graph.printer import Trees
from ..nn.module import Module
from ..nn.parameter import Parameter
from ..nn.traced import TracedModule
from ..pytree import tree_flatten_with_path, tree_unflatten, treespec_tuple
from ..table.packets import ops
from .graph_signature import ConstantArgument, InputKind, OutputKind
from .program import (
    CALLERS,
    ExportedProgram,
    ModuleCallSignature,
    _places,
    bound,
    grad_modes,
    install,
)


class _Calls(threading.local):
    grad = True  # the mode in which the outermost module was called


_calls = _Calls()


@contextlib.contextmanager
def _calling() -> Iterator[None]:
    """A call of a program, which leaves the grad mode as it was."""
    outer, _calls.grad = _calls.grad, is_grad_enabled()
    try:
        with set_grad_enabled(_calls.grad):
            yield
    finally:
        _calls.grad = outer


def grad_as_called() -> None:
    """Switch gradients to what they were when the program was called: at the end of a block."""
    _set_grad_enabled(_calls.grad)


class InterpreterModule(TracedModule):
    """A module of an unflattened program."""


class UnflattenedModule(Module):
    """A program whose modules can be reached, and replaced, by their names."""

    def __init__(self, export_module: ExportedProgram) -> None:
        super().__init__()
        program = export_module
        object.__setattr__(self, "_program", program)
        self.held: dict[str, str] = {}  # name of an input of the graph -> where it is
        self.named: dict[str, list[str]] = {}  # the same with all its names
        self.titles: set[str] = set()  # of the calls that have a module
        for spec in program.graph_signature.input_specs:
            if spec.kind is not InputKind.USER_INPUT:
                value = program.tensor(spec.target)
                if not isinstance(value, Parameter):
                    value = value.clone()
                install(self, spec.target, value, spec.persistent)
                self.held[spec.arg.name] = spec.target
                also = [name for name, t in program.aliases.items() if t == spec.target]
                self.named[spec.arg.name] = [spec.target, *also]
                for name in also:
                    install(self, name, value, spec.persistent)
        self.modes = grad_modes(program.graph.nodes)
        nodes = [n for n in program.graph.nodes if n.op not in ("placeholder", "output")]
        outputs, writes = list(program.graph.output_node().args[0]), _places(program)
        self.inner = _inner_writes(program)
        left = [i for i in range(len(outputs)) if outputs[i] not in self.inner]
        object.__setattr__(self, "_writes", [writes[i] for i in left if i < len(writes)])
        outputs = [outputs[i] for i in left]
        part = _Part(self, "", nodes)
        inputs = [n for n in program.graph.find_nodes(op="placeholder")
                  if n.name not in self.held]
        object.__setattr__(self, "_inner", part.module(inputs, outputs, always_tuple=True))
        _take_graphs(self, self, self.graph)

    @property
    def graph(self) -> Graph:
        """The graph of the outermost module."""
        return self._inner.graph

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the modules' graphs, and write what the program says is written."""
        program = self._program
        leaves = bound(program, args, kwargs)
        with _calling():
            out = self._inner.graph_of(self)(*leaves)
        paths = list(self.held.values())
        for number, value in zip(self._writes, out):
            kept = number < len(paths)
            target = _held(self, paths[number]) if kept else leaves[number - len(paths)]
            target.copy_(value)
        return tree_unflatten(list(out[len(self._writes):]), program.call_spec.out_spec)


def _inner_writes(program: ExportedProgram) -> dict[Any, tuple[str, str]]:
    """New values of buffers that a module writes itself -> its call, the buffer.

    These are modules that are called as they were, once: others may take their place.  Nobody else
    may need the value, and all of the call must stand together.
    """
    results = list(program.graph.output_node().args[0])
    found: dict[Any, tuple[str, str]] = {}
    for spec, node in zip(program.graph_signature.output_specs, results):
        titles = [t for t in program.calls if f"{t}@1" not in program.calls
                  and spec.target is not None and spec.target.startswith(f"{t}.")
                  and isinstance(node, Node) and t in _stack(node)]
        if spec.kind is not OutputKind.BUFFER_MUTATION or not titles or results.count(node) > 1:
            continue
        title = max(titles, key=len)
        calls = [title in _stack(n) for n in program.graph.nodes if n.op == "call_function"]
        last = len(calls) - calls[::-1].index(True)
        together = all(calls[calls.index(True):last])
        if together and all(u.op == "output" or title in _stack(u) for u in node.users):
            found[node] = title, spec.target
    return found


def _held(module: Module, path: str) -> Any:
    value: Any = module
    for part in path.split("."):
        value = getattr(value, part)
    return value


class _Root:
    """The graph of the outermost module, run on what the module has now."""

    def __init__(self, graph: Graph):
        self.graph = graph

    def graph_of(self, module: Module) -> Any:
        from ..graph.interpreter import Interpreter

        return Interpreter(module, graph=self.graph).run


class _Part:
    """The nodes of one call of a module."""

    def __init__(self, root: UnflattenedModule, title: str, nodes: list[Node]):
        self.root, self.title, self.nodes = root, title, nodes
        self.path = title.partition("@")[0]

    def steps(self) -> list[Any]:
        """Nodes of its own and calls of modules inside, in order."""
        found: list[Any] = []
        for node in self.nodes:
            running = _stack(node)
            below = running.index(self.title) + 1 if self.title else 0
            child = running[below] if len(running) > below else None
            if child is None:
                found.append(node)
            elif found and isinstance(found[-1], _Part) and found[-1].title == child:
                found[-1].nodes.append(node)
            else:
                found.append(_Part(self.root, child, [node]))
        return found

    def module(self, inputs: list[Node | None], outputs: list, always_tuple: bool = False) -> Any:
        """The graph of this call as a module; the outermost has none of its own."""
        graph, values = Graph(), {}
        for i, node in enumerate(inputs):
            made = graph.placeholder(f"leaf_{i}" if node is None else node.name)
            if node is not None:
                values[node] = made
                made.meta = dict(node.meta)

        def value(node: Node) -> Node:
            if node not in values:  # a parameter or a buffer
                values[node] = graph.get_attr(self.own_name(node))
                values[node].meta = dict(node.meta)
            return values[node]

        steps = self.steps()
        for step in steps:
            if isinstance(step, Node) and self.root.modes.get(step, (None,))[0] is CALLERS:
                values[step] = graph.call_function(grad_as_called)
            elif isinstance(step, Node):
                values[step] = graph.node_copy(step, value)
            else:
                self._call(step, graph, values, value, outputs)
        for node, (title, buffer) in self.root.inner.items():
            if title == self.title:
                place = graph.get_attr(buffer.removeprefix(f"{self.path}."))
                graph.call_function(ops.copy_.default, (place, values[node]))
        results = [map_arg(o, value) for o in outputs]
        single = len(results) == 1 and not always_tuple
        graph.output(results[0] if single else tuple(results))
        if not self.path:
            return _Root(graph)
        return graph

    def _call(self, part: _Part, graph: Graph, values: dict, value: Any, outputs: list) -> None:
        """Make a module of a part, and call it."""
        inside = set(part.nodes)
        given = dict.fromkeys(
            s for n in part.nodes for s in n.all_input_nodes
            if s not in inside and not part.owns(s))
        gone = {n for o in outputs for n in _nodes(o)}
        results = [n for n in part.nodes if n not in self.root.inner and (
            n in gone or any(u not in inside for u in n.users))]
        known = part.signature(list(given), results)
        inner = part.module(list(given), results) if known is None else part.kept(known)
        name, number = part.title, 0
        while name in self.root.titles:  # calls of it that others interrupt
            number += 1
            name = f"{part.path}@{number}"
        self.root.titles.add(name)
        _install(self.root, name, part.path, inner)
        local = name.removeprefix(f"{self.path}.") if self.path else name
        if known is not None:
            self._call_as_it_was(known, local, graph, values, value)
            return
        call = graph.call_module(local, tuple([value(n) for n in given]))
        call.meta["val"] = tuple([n.meta.get("val") for n in results])
        for i, node in enumerate(results):
            values[node] = call if len(results) == 1 else graph.call_function(
                operator.getitem, (call, i))
            values[node].meta = dict(node.meta)

    def signature(self, given: list[Node], results: list[Node]) -> _Known | None:
        """How the module was called, where that is wanted and says all that the call does."""
        program = self.root._program
        kept = program.calls.get(self.title)
        if kept is None:
            return None
        nodes = {n.name: n for n in program.graph.nodes}
        known = _Known(*[[a.value if isinstance(a, ConstantArgument) else nodes.get(a.name)
                          for a in side] for side in (kept.inputs, kept.outputs)], kept)
        whole = set(given) <= set(known.inputs) and set(results) <= set(known.outputs)
        return known if whole and known.paths is not None else None

    def kept(self, known: _Known) -> Graph:
        """The graph with the arguments and results that the module had."""
        leaves = [n if isinstance(n, Node) else None for n in known.inputs]
        graph = self.module(leaves, known.outputs, always_tuple=True)
        args, kwargs = known.call.in_spec.children_specs
        names = known.call.forward_arg_names or []
        parts = [*args.children_specs, *kwargs.children_specs]
        graph.trees = Trees(tuple(names), treespec_tuple(parts), known.call.out_spec)
        return graph

    def _call_as_it_was(self, known: _Known, local: str, graph: Graph, values: dict,
                        value: Any) -> None:
        leaves = [value(n) if isinstance(n, Node) else n for n in known.inputs]
        args, kwargs = tree_unflatten(leaves, known.call.in_spec)
        call = graph.call_module(local, args, kwargs)
        for node, path in zip(known.outputs, known.paths or ()):
            if not isinstance(node, Node) or node in values:
                continue
            picked = call
            for key in path:
                picked = graph.call_function(operator.getitem, (picked, key))
            values[node] = picked

    def owns(self, node: Node) -> bool:
        """Whether an input of the program is a parameter or a buffer of this module."""
        return self.own_name(node) is not None

    def own_name(self, node: Node) -> str | None:
        """What this module calls a parameter or a buffer of the program; None if it is not its."""
        front = f"{self.path}." if self.path else ""
        names = self.root.named.get(node.name, ()) if node.op == "placeholder" else ()
        return next((n.removeprefix(front) for n in names if n.startswith(front)), None)


class _Known:
    """A call of a module: its arguments and results as values of the program."""

    def __init__(self, inputs: list, outputs: list, call: ModuleCallSignature):
        self.inputs, self.outputs, self.call = inputs, outputs, call

    @property
    def paths(self) -> list[list] | None:
        """The way to each result; None if it leads through classes."""
        spec = self.call.out_spec
        found = tree_flatten_with_path(tree_unflatten([0] * spec.num_leaves, spec))[0]
        steps = [[getattr(key, key.__match_args__[0]) for key in path] for path, _ in found]
        plain = all(type(key).__name__ in ("SequenceKey", "MappingKey")
                    for path, _ in found for key in path)
        return steps if plain else None


def _nodes(value: Any) -> list[Node]:
    found: list[Node] = []
    map_arg(value, found.append)
    return found


def _stack(node: Node) -> list[str]:
    """The paths of the modules that were running, from the outermost."""
    return [path for path in node.meta.get("nn_module_stack") or {} if path]


def _install(root: Module, name: str, path: str, graph: Graph) -> None:
    """Put a module with a graph where the module was that has its parameters."""
    holder: Any = root
    *parents, last = name.split(".")
    for part in parents:
        if part not in holder._modules:
            holder.add_module(part, Module())
        holder = holder._modules[part]
    owner = _at(root, path)
    _take_graphs(root, owner, graph)
    made = InterpreterModule(owner, graph)
    made._modules.update(owner._modules)  # the graph's way to a tensor is through them
    made._parameters.update(owner._parameters)
    made._buffers.update(owner._buffers)
    made._non_persistent_buffers_set |= owner._non_persistent_buffers_set
    holder._modules[last] = made


def _take_graphs(root: Any, owner: Module, graph: Graph) -> None:
    """Give a module the branches and bodies of loops that its graph calls."""
    for node in graph.find_nodes(op="get_attr"):
        found = getattr(root._program.graph_module, node.target, None) if (
            "." not in node.target) else None
        if isinstance(found, GraphModule):
            owner.__dict__[node.target] = found


def _at(root: Module, path: str) -> Module:
    module: Any = root
    for part in path.split("."):
        module = module._modules.get(part) or Module()
    return module


def unflatten(module: ExportedProgram, flat_args_adapter: Any = None) -> UnflattenedModule:
    """A program as modules, in the hierarchy of the one that was exported.

    `flat_args_adapter` is accepted; arguments are those of the export.  Programs from files have
    one module: files do not keep the hierarchy.
    """
    return UnflattenedModule(module)


__all__ = ["InterpreterModule", "UnflattenedModule", "unflatten"]
