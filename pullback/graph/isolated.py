"""Captures inside of captures, and other names of `torch.fx.experimental.proxy_tensor`.

`get_isolated_graphmodule` captures a function without telling the captures that are running;
`disable_proxy_modes_tracing` is that silence by itself.  Read `make_fx.py` first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from ..interp.trace import Trace, Traced
from ..pytree import tree_flatten, tree_unflatten
from ..threads.blocks import tied_block
from ..threads.state import state
from .fake_mode import unset_fake_temporarily
from .graph import Graph
from .graph_module import GraphModule
from .interpreter import Interpreter
from .make_fx import get_proxy_mode, make_fx
from .tables import normalized

get_innermost_proxy_mode = get_proxy_mode
maybe_disable_fake_tensor_mode = unset_fake_temporarily


@tied_block
def disable_proxy_modes_tracing() -> Iterator[None]:
    """Operators on tensors that belong to no capture are not recorded meanwhile."""
    before = state.mode, state.random, state.observers, state.fakes
    state.mode, state.random, state.observers.trace = 0, 0, None
    state.fakes.creates = state.fakes.mode is not None
    try:
        yield
    finally:
        state.mode, state.random, state.observers, state.fakes = before


def wrapper_and_args_for_make_fx(func: Callable, args: tuple, kwargs: dict[str, Any],
                                 ) -> tuple[Callable, list]:
    """A function of one list, and the list: `make_fx` takes no keyword arguments."""
    flat, spec = tree_flatten((args, kwargs))

    def wrapped(flat_args):
        given, named = tree_unflatten(flat_args, spec)
        return func(*given, **named)

    return wrapped, flat


def get_isolated_graphmodule(
    func: Callable, args: tuple, kwargs: dict[str, Any], tracing_mode: str = "real",
    decomposition_table: dict | None = None,
) -> GraphModule:
    """The graph of a call, captured apart from whatever is being captured already."""
    wrapped, flat = wrapper_and_args_for_make_fx(func, args, kwargs)
    flat = [example_of(v) for v in flat]
    with disable_proxy_modes_tracing():
        return make_fx(wrapped, decomposition_table, tracing_mode)(flat)


def example_of(value: Any) -> Any:
    """The example value of a tensor of a capture."""
    while isinstance(getattr(value, "_payload", None), Traced):
        value = value._payload.inner
    return value


def dispatch_trace(root: Callable, tracer: Any = None, concrete_args: tuple = ()) -> GraphModule:
    """The graph of a function on example arguments."""
    return make_fx(root)(*concrete_args)


@contextlib.contextmanager
def decompose(decomposition_table: dict | None) -> Iterator[dict]:
    """Operators of a running capture are taken apart by this table, too, meanwhile."""
    level = get_proxy_mode()
    table = normalized(decomposition_table)
    if not isinstance(level, Trace):
        yield table
        return
    before, level.decompositions = level.decompositions, {**level.decompositions, **table}
    try:
        yield level.decompositions
    finally:
        level.decompositions = before


class DecompositionInterpreter(Interpreter):
    """Runs a graph with some of its operators taken apart: into `new_graph`, or under `make_fx`."""

    def __init__(self, module: Any, new_graph: Graph | None = None,
                 decomposition_table: dict | None = None, **kwargs: Any) -> None:
        super().__init__(module, **kwargs)
        self.decomposition_table, self.new_graph = normalized(decomposition_table), new_graph

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """What the graph gives; the nodes that did it are in `new_graph` then."""
        if self.new_graph is None:
            return super().run(*args, **kwargs)
        made = make_fx(super().run)(*args)
        self.new_graph.output(self.new_graph.graph_copy(made.graph, {}))
        return made(*args)

    def call_function(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        found = self.decomposition_table.get(target)
        if found is None:
            return super().call_function(target, args, kwargs)
        return found(*target.bind(args, kwargs))


def selective_decompose(joint_gm: GraphModule, *args: Any, decomposition: dict,
                        should_decompose: Callable, trace_joint_graph: bool = False,
                        ) -> GraphModule:
    """A graph with those nodes taken apart that `should_decompose` says."""
    table = normalized(decomposition)

    class Chosen(Interpreter):
        def run_node(self, n: Any) -> Any:
            if n.op == "call_function" and n.target in table and should_decompose(n):
                given, named = self.fetch_args_kwargs_from_env(n)
                return table[n.target](*n.target.bind(given, named))
            return super().run_node(n)

    return make_fx(Chosen(joint_gm).run)(*args)


__all__ = ["DecompositionInterpreter", "decompose", "disable_proxy_modes_tracing",
           "dispatch_trace", "get_innermost_proxy_mode", "get_isolated_graphmodule",
           "maybe_disable_fake_tensor_mode", "selective_decompose", "wrapper_and_args_for_make_fx"]
