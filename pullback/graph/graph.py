"""`Graph`: a program as a list of nodes, with the means to build, edit, copy and check it.

The interface is PyTorch's `torch.fx.Graph`. Nodes are kept in a doubly linked ring that begins and
ends at a root node, so insertion and erasure are O(1) and safe while iterating. A graph does not
run: `graph_module.py` and `interpreter.py` do that, and `printer.py` writes it as Python.
"""

import io
import pickle
import warnings
import weakref
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

from .codegen import CodeGen
from .errors import GraphError, LintError, NodeError
from .naming import Namespace, is_operator_overload, name_of_target, overload_name
from .node import Node, fetch_attribute, map_aggregate, map_arg
from .passes.dce import eliminate_dead_code
from .printer import PythonCode, Trees, format_graph, format_table, python_code

OPS = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output")
_NO_DEFAULT = object()
_NEXT, _PREVIOUS = attrgetter("_next"), attrgetter("_prev")


class NodeList:
    """The nodes of a graph in order; nodes may be erased or inserted while iterating."""

    __slots__ = ("_graph",)

    def __init__(self, graph: "Graph") -> None:
        self._graph = graph

    def __len__(self) -> int:
        return self._graph._count

    def __iter__(self) -> Iterator[Node]:
        return self._along(_NEXT)

    def __reversed__(self) -> Iterator[Node]:
        return self._along(_PREVIOUS)

    def _along(self, step: Callable[[Node], Node]) -> Iterator[Node]:
        root = self._graph._root
        node = step(root)
        while node is not root:
            if not node._erased:
                yield node
            node = step(node)


class InsertPoint:
    """Where new nodes go; as a context manager it restores the former place at the end."""

    def __init__(self, graph: "Graph", node: Node, after: bool) -> None:
        self._graph = graph
        self._former = graph._cursor, graph._cursor_after
        graph._cursor, graph._cursor_after = node, after

    def __enter__(self) -> "InsertPoint":
        return self

    def __exit__(self, *exception: Any) -> None:
        self._graph._cursor, self._graph._cursor_after = self._former


class Graph:
    """An ordered list of nodes: placeholders, calls, and one output at the end."""

    def __init__(self, owning_module: Any = None, tracer_cls: type | None = None,
                 tracer_extras: dict[str, Any] | None = None) -> None:
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._namespace = Namespace()
        self._names: dict[Any, str] = {}  # target -> the name its nodes ask for
        self._is_users = False  # new calls of overloads are `add_tensor`, in captures `add`
        self._root = Node(self, "", "root", "", (), {})
        self._count = 0
        self._ranked = True  # whether the ranks of the nodes grow along the list
        self._cursor, self._cursor_after = self._root, False
        self.shows_lines = True  # does the commented source say where nodes come from?
        self.trees: Trees | None = None  # where `forward` takes and returns trees
        self.origin = ""  # "FILE:LINE in NAME" of the program that was traced
        self.codegen: CodeGen | None = None  # where its source is to be another than usual
        self.body_transformer: Callable[[list[str]], list[str]] | None = None
        self._owner: weakref.ref | None = None
        self.owning_module = owning_module

    @property
    def nodes(self) -> NodeList:
        """The nodes in order: iterable, reversible, with a length."""
        return NodeList(self)

    @property
    def owning_module(self) -> Any:
        """The module whose attributes `get_attr` and `call_module` nodes mean, if there is one."""
        return None if self._owner is None else self._owner()

    @owning_module.setter
    def owning_module(self, module: Any) -> None:
        # Weak, so that dropping the module frees its tensors without waiting for the collector.
        self._owner = None if module is None else weakref.ref(module)

    def _hand_over(self) -> None:
        """From now on a user writes it: names of new nodes have the overloads that they call."""
        if not self._is_users:
            self._is_users = True
            self._names.clear()

    # Building -----------------------------------------------------------------------------------

    def create_node(
        self,
        op: str,
        target: Any,
        args: tuple | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node of any kind at the insert point; the name asked for is made unique."""
        if op not in OPS:
            raise NodeError(f"create_node: unknown op {op!r}; one of {', '.join(OPS)}")
        if (op == "call_function") is isinstance(target, str) or (
            op == "call_function" and not callable(target)
        ):
            expected = "a callable" if op == "call_function" else "a string"
            raise ValueError(f"create_node: the target of {op} must be {expected}, not {target!r}")
        if name is None:
            name = self._names.get(target)
            if name is None:
                by_overload = self._is_users and is_operator_overload(target)
                name = overload_name(target) if by_overload else name_of_target(target)
                self._names[target] = name
        name = self._namespace.create_name(name)
        node = Node(self, name, op, target, args or (), kwargs or {}, type_expr)
        if self._cursor_after:
            self._link(node, self._cursor, self._cursor._next)
        else:
            self._link(node, self._cursor._prev, self._cursor)
        self._count += 1
        if self._owner is not None:
            self._tell("_create_node_hooks", node)
        return node

    def _tell(self, hooks: str, node: Node) -> None:
        """Call the hooks of the module that owns this graph."""
        for hook in getattr(self.owning_module, hooks, ()):
            hook(node)

    def placeholder(
        self, name: str, type_expr: Any = None, default_value: Any = _NO_DEFAULT
    ) -> Node:
        """Add a parameter of the graph."""
        args = () if default_value is _NO_DEFAULT else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add a read of an attribute of the owning module, given by its dotted path."""
        self._wanted("get_attr", qualified_name)
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_function(self, the_function: Callable, args: tuple | None = None,
                      kwargs: dict[str, Any] | None = None, type_expr: Any = None,
                      name: str | None = None) -> Node:
        """Add a call of an operator or any Python callable."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def call_method(self, method_name: str, args: tuple | None = None,
                    kwargs: dict[str, Any] | None = None, type_expr: Any = None) -> Node:
        """Add a method call on the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_module(self, module_name: str, args: tuple | None = None,
                    kwargs: dict[str, Any] | None = None, type_expr: Any = None) -> Node:
        """Add a call of a submodule of the owning module, given by its dotted path."""
        self._wanted("call_module", module_name)
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def _wanted(self, op: str, path: str) -> None:
        """Warn of a path at which the owning module has nothing (yet)."""
        module = self.owning_module
        if module is not None:
            try:
                fetch_attribute(module, path)
            except AttributeError:
                warnings.warn(f"Attempted to insert a {op} Node with no underlying reference in "
                              f"the owning GraphModule: {path!r}. Add it before the graph runs",
                              stacklevel=3)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Add the node that says what the graph returns."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    # Editing ------------------------------------------------------------------------------------

    def inserting_before(self, n: Node | None = None) -> InsertPoint:
        """Put new nodes before `n` (at the very beginning for None); use with `with`."""
        return self.inserting_after(self._root) if n is None else self._insert_at(n, False)

    def inserting_after(self, n: Node | None = None) -> InsertPoint:
        """Put each new node right after `n` (at the very end for None); use with `with`."""
        return self.inserting_before(self._root) if n is None else self._insert_at(n, True)

    def _insert_at(self, n: Node, after: bool) -> InsertPoint:
        if n.graph is not self:
            raise GraphError(f"cannot insert next to {n.name}: it belongs to another graph")
        return InsertPoint(self, n, after)

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node nobody uses any more."""
        if to_erase.users:
            raise GraphError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in "
                f"the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise GraphError(f"cannot erase {to_erase}: it belongs to another graph")
        if to_erase._erased:
            return
        if self._cursor is to_erase:
            self._cursor = to_erase._prev if self._cursor_after else to_erase._next
        to_erase._set_arguments((), {})
        # Its own links stay, so that an iteration standing on it can go on.
        to_erase._prev._next, to_erase._next._prev = to_erase._next, to_erase._prev
        to_erase._erased = True
        self._count -= 1
        if self._owner is not None:
            self._tell("_erase_node_hooks", to_erase)

    def _move(self, node: Node, prev: Node, following: Node) -> None:
        if node.graph is not self:
            raise NodeError(f"Attempting to move a Node into a different Graph: {node.name}")
        node._prev._next, node._next._prev = node._next, node._prev
        self._link(node, prev, following)

    def _link(self, node: Node, prev: Node, following: Node) -> None:
        prev._next = following._prev = node
        node._prev, node._next = prev, following
        if following is self._root:
            node._rank = prev._rank + 1
        else:
            self._ranked = False

    def _rank_nodes(self) -> None:
        """Number the nodes again, after insertions in the middle, for comparisons of order."""
        if not self._ranked:
            for position, node in enumerate(self.nodes, 1):
                node._rank = position
            self._ranked = True

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erase nodes whose result is unused and that have no effect; True if any was."""
        return eliminate_dead_code(self, is_impure_node) > 0

    # Copying ------------------------------------------------------------------------------------

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda n: n) -> Node:
        """Add a copy of a node of another graph; `arg_transform` maps its inputs to ours."""
        args = map_arg(node.args, arg_transform)
        kwargs = map_arg(node.kwargs, arg_transform)
        copy = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        copy.meta = dict(node.meta)
        return copy

    def graph_copy(
        self, g: "Graph", val_map: dict[Node, Any], return_output_node: bool = False
    ) -> Any:
        """Add copies of all nodes of `g` but its output, and return what that output means here.

        Nodes already in `val_map` are not copied but read from it; it receives all the others.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                value = map_arg(node.args[0], val_map.__getitem__)
                return (value, node) if return_output_node else value
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def __deepcopy__(self, memo: dict | None = None) -> "Graph":
        copy = Graph(tracer_cls=self._tracer_cls, tracer_extras=self._tracer_extras)
        copy.trees, copy.codegen, copy.origin = self.trees, self.codegen, self.origin
        copy.body_transformer = self.body_transformer
        mapping: dict[Node, Any] = {}
        found = copy.graph_copy(self, mapping, return_output_node=True)
        if found is not None:
            value, node = found
            mapping[node] = copy.create_node("output", node.target, (value,), type_expr=node.type)
            mapping[node].meta = dict(node.meta)
        if memo is not None:
            memo.update((id(old), new) for old, new in mapping.items())
        return copy

    def __reduce__(self) -> tuple:
        index = {node: _Reference(position) for position, node in enumerate(self.nodes)}
        records = [
            (
                node.name,
                node.op,
                node.target,
                map_arg(node.args, index.__getitem__),
                map_arg(node.kwargs, index.__getitem__),
                node.type,
                _storable(node.meta),
            )
            for node in self.nodes
        ]
        return _rebuild, (records, self.trees)

    # Looking ------------------------------------------------------------------------------------

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """All nodes of a kind, and of a target if one is given, in order."""
        return [
            node
            for node in self.nodes
            if node.op == op and (target is None or node.target == target)
        ]

    def last(self) -> Node:
        """The newest node; the root of the list where there is none."""
        return self._root._prev

    def output_node(self) -> Node:
        """The node that says what the graph returns."""
        last = self._root._prev
        if last.op != "output":
            raise GraphError("this graph has no output yet")
        return last

    def lint(self) -> None:
        """Raise `LintError` if the graph is not well formed."""
        seen: dict[Node, None] = {}
        names: set[str] = set()
        module = self.owning_module
        for node in self.nodes:
            if node.graph is not self:
                raise LintError(f"Node '{node}' does not belong to this Graph!")
            if node.name in names:
                raise LintError(f"Node redefined name {node.name}!")
            for source in node._inputs:
                self._lint_input(node, source, seen)
            if node.op == "output" and node._next is not self._root:
                raise LintError(f"Node '{node._next}' comes after the output\n{self}")
            if module is not None and node.op in ("get_attr", "call_module"):
                try:
                    fetch_attribute(module, node.target)
                except AttributeError as error:
                    raise LintError(
                        f"Node {node} target {node.target} references nonexistent attribute "
                        f"{node.target.rpartition('.')[2]} of {node.target.rpartition('.')[0]}"
                    ) from error
            seen[node] = None
            names.add(node.name)

    def _lint_input(self, node: Node, source: Node, seen: dict[Node, None]) -> None:
        if source.graph is not self:
            raise LintError(
                f"Argument '{source}' of Node '{node}' does not belong to this Graph, but was "
                "used as an argument! If you are copying nodes from another graph, make sure to "
                f"use ``arg_transform`` on node_copy() to remap values\n{self}"
            )
        if source not in seen:
            raise LintError(
                f"Argument '{source}' of Node '{node}' was used before it has been defined! "
                f"Please check that Nodes in the graph are topologically ordered\n{self}"
            )
        if node not in source.users:
            raise LintError(f"Node '{node}' reads '{source}', which does not know it as a user")

    def python_code(self, root_module: str = "self", *, verbose: bool = False,
                    include_stride: bool = False, include_device: bool = False,
                    colored: bool = False, expanded_def: bool = False) -> PythonCode:
        """The graph as source text of a function `forward`, with the globals it needs.

        `verbose` adds types and the user's source lines; see `GraphModule.print_readable`.
        """
        return python_code(
            self,
            root_module,
            verbose=verbose,
            include_stride=include_stride,
            include_device=include_device,
            colored=colored,
            expanded_def=expanded_def,
        )

    def set_codegen(self, codegen: CodeGen) -> None:
        """Write the source in another way from now on; parameters are the placeholders again."""
        self.codegen, self.trees = codegen, None

    def on_generate_code(self, make_transformer: Callable) -> "Transforming":
        """Change the lines of the body whenever source is made.

        `make_transformer` gets the transformer of before (or None) and returns a function from
        lines to lines.  As a context manager the former one comes back at the end.
        """
        former = self.body_transformer
        self.body_transformer = make_transformer(former)
        return Transforming(self, former)

    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders, from the arguments of a call."""
        if self.codegen is not None:
            return self.codegen.process_inputs(*args)
        return args if self.trees is None else self.trees.leaves(args)

    def process_outputs(self, out: Any) -> Any:
        """What a call returns, from the value of the output node."""
        if self.codegen is not None:
            return self.codegen.process_outputs(out)
        return out if self.trees is None else self.trees.result(out)

    def print_tabular(self) -> None:
        """Print the nodes as a table."""
        print(format_table(self))

    def __str__(self) -> str:
        return format_graph(self)


class Transforming:
    """What `on_generate_code` returns: the end of a `with` block undoes it."""

    def __init__(self, graph: Graph, former: Any) -> None:
        self._graph, self._former = graph, former

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: Any) -> None:
        self._graph.body_transformer = self._former


class _Reference:
    """Stands for "node number so-and-so" in a pickled graph."""

    __slots__ = ("position",)

    def __init__(self, position: int) -> None:
        self.position = position

    def __reduce__(self) -> tuple:
        return _Reference, (self.position,)


class _MetaPickler(pickle.Pickler):
    """Refuses graphs: a size knows the one that it is a node of, which would be pickled again."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Graph):
            raise pickle.PicklingError("a graph inside of its own notes")
        return NotImplemented


def _storable(meta: dict[str, Any]) -> dict[str, Any]:
    """The entries of `meta` that can be pickled; the others only help people, not the program."""

    def pickles(value: Any) -> bool:
        try:
            _MetaPickler(io.BytesIO()).dump(value)
        except Exception:
            return False
        return True

    return meta if pickles(meta) else {key: val for key, val in meta.items() if pickles(val)}


def _rebuild(records: list[tuple], trees: Trees | None = None) -> Graph:
    """Unpickle: the graph whose nodes are described by the records."""
    graph = Graph()
    graph.trees = trees
    nodes: list[Node] = []

    def resolve(value: Any) -> Any:
        return nodes[value.position] if type(value) is _Reference else value

    for name, op, target, args, kwargs, type_expr, meta in records:
        args, kwargs = map_aggregate(args, resolve), map_aggregate(kwargs, resolve)
        node = graph.create_node(op, target, args, kwargs, name, type_expr)
        node.meta.update(meta)
        nodes.append(node)
    return graph
