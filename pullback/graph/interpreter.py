"""Running a graph node by node: `Interpreter`, and `Transformer`, which runs it into a new graph.

Subclass one and override the method of a node kind to observe, replace or rewrite nodes. Slower
than calling the `GraphModule`; values are dropped after their last use just as there.
"""

from collections.abc import Iterator
from typing import Any

from . import traceback
from .errors import GraphError
from .graph import Graph
from .graph_module import GraphModule
from .naming import is_operator_overload, overload_name
from .node import Node, fetch_attribute, map_arg
from .printer import last_uses
from .proxy import GraphAppendingTracer, Proxy


class Interpreter:
    """Executes the nodes of a module's graph in order, one method per kind of node."""

    def __init__(
        self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module = module
        self.graph = graph if graph is not None else module.graph
        self.garbage_collect_values = garbage_collect_values
        self.env: dict[Node, Any] = {}
        self.args_iter: Iterator[Any] = iter(())
        self._freed = last_uses(self.graph) if garbage_collect_values else {}

    def run(
        self,
        *args: Any,
        initial_env: dict[Node, Any] | None = None,
        enable_io_processing: bool = True,
    ) -> Any:
        """Execute the graph; nodes in `initial_env` are not run, their values are taken from it.

        Trees of arguments are taken apart, and results put together, unless told not to.
        """
        if enable_io_processing and args:
            args = tuple(self.graph.process_inputs(*args))
        return self._execute(dict(initial_env or {}), iter(args), enable_io_processing)

    def _execute(
        self, env: dict[Node, Any], args: Iterator[Any], enable_io_processing: bool
    ) -> Any:
        self.env, self.args_iter = env, args
        try:
            for node in self.graph.nodes:
                if node in self.env:
                    continue
                value = self._run_with_context(node)
                if node.op == "output":
                    return self.graph.process_outputs(value) if enable_io_processing else value
                self.env[node] = value
                for dead in self._freed.get(node, ()):
                    self.env.pop(dead, None)
        finally:
            self.env = {}
            self.args_iter = iter(())
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Like `run`, but takes over a list of arguments and empties it, so each can be freed."""
        placeholders = self.graph.find_nodes(op="placeholder")
        if len(args_list) != len(placeholders):
            raise GraphError(f"expected {len(placeholders)} arguments, got {len(args_list)}")
        left = args_list[::-1]
        args_list.clear()

        def given() -> Iterator[Any]:
            while left:
                yield left.pop()

        return self._execute({}, given(), True)

    def _run_with_context(self, node: Node) -> Any:
        try:
            return self.run_node(node)
        except Exception as error:
            if hasattr(error, "add_note"):
                error.add_note(f"While executing {node.format_node()}")
                if node.stack_trace:
                    error.add_note(f"Original traceback:\n{node.stack_trace}")
            raise

    def run_node(self, n: Node) -> Any:
        """Execute one node on the values of its inputs."""
        with traceback.set_current_meta(n, f"Interpreter_{type(self).__name__}"):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    # One method per kind of node ----------------------------------------------------------------

    def placeholder(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The next argument given to `run`, or the default."""
        if target.startswith("*"):
            return list(self.args_iter)
        for value in self.args_iter:
            return value
        if args:
            return args[0]
        raise GraphError(
            f"Expected positional argument for parameter {target}, but one was not passed in!"
        )

    def get_attr(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """An attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of a call."""
        return target(*args, **kwargs)

    def call_method(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of a method call on the first argument."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of calling a submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What the graph returns."""
        return args[0]

    # Values -------------------------------------------------------------------------------------

    def fetch_attr(self, target: str) -> Any:
        """The attribute of the module at a dotted path."""
        return fetch_attribute(self.module, target)

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple, dict[str, Any]]:
        """A node's arguments with values in the place of nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """An argument of `n` with values in the place of nodes."""

        def load(node: Node) -> Any:
            if node not in self.env:
                raise GraphError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose "
                    "such issues"
                )
            return self.env[node]

        return map_arg(args, load)


class Transformer(Interpreter):
    """Runs a graph on proxies, so that what each method does becomes a node of a new graph.

    Override methods to change calls, then call `transform()`.
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.trees = module.graph.trees
        self.new_graph.codegen = module.graph.codegen
        self.tracer = GraphAppendingTracer(self.new_graph)

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        if isinstance(result, Proxy) and not result.node.meta:
            result.node.meta = dict(n.meta)
        return result

    def placeholder(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Proxy:
        return self.tracer.create_proxy("placeholder", target, args)

    def get_attr(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Proxy:
        return self.tracer.create_proxy("get_attr", target)

    def call_function(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        name = overload_name(target) if is_operator_overload(target) else None
        return self.tracer.create_proxy("call_function", target, args, kwargs, name)

    def call_method(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def call_module(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The module of the new graph."""
        self.new_graph.trees = self.graph.trees
        result = self.run(enable_io_processing=False)
        if result is not None:
            self.new_graph.output(self.tracer.create_arg(result))
        return GraphModule(self.module, self.new_graph)
