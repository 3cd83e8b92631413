"""The smallest compilers: they return the graph as it is, boxed or printed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

from ..cut import refusals
from ..graph.graph_module import GraphModule


def nop(module: GraphModule, example_inputs=None) -> GraphModule:
    """A compiler that does nothing."""
    return module


def make_boxed_func(function: Callable) -> Callable:
    """A function that takes one list of arguments."""
    refusals.functions("make_boxed_func", {}, function=function)

    def run(args):
        return function(*args)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def make_boxed_compiler(compiler: Callable) -> Callable:
    """A compiler whose results take one list of arguments."""
    refusals.functions("make_boxed_compiler", {}, compiler=compiler)

    @functools.wraps(compiler)
    def run(module, example_inputs):
        return make_boxed_func(compiler(module, example_inputs))

    return run


def boxed_nop_preserve_node_meta(module: GraphModule, example_inputs=None) -> Callable:
    """A compiler that runs the graph node by node, so that errors name the user's lines."""
    from ..graph.interpreter import Interpreter

    def run(args):
        return Interpreter(module).boxed_run(args)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def draw_graph(
    traced: GraphModule, fname: str, figname: str = "fx_graph", clear_meta: bool = True,
    prog: str | None = None, parse_stack_trace: bool = False, dot_graph_shape: str | None = None,
) -> None:
    """Write the picture of a graph to a file, as text for Graphviz: `dot -Tsvg name.dot`.

    The file is called `fname` with ".dot" in the place of another ending.  With `clear_meta` shapes
    and dtypes are left out.
    """
    from ..graph.passes.graph_drawer import FxGraphDrawer

    kept = [(node, node.meta) for node in traced.graph.nodes]
    try:
        if clear_meta:
            for node in traced.graph.nodes:
                node.meta = {}
        drawer = FxGraphDrawer(traced, figname, parse_stack_trace=parse_stack_trace,
                               dot_graph_shape=dot_graph_shape)
    finally:
        for node, meta in kept:
            node.meta = meta
    drawer.get_main_dot_graph().write(Path(fname).with_suffix(".dot"))


def draw_graph_compile(name: str) -> Callable:
    """A compiler that draws its graph into a file."""
    def run(module: GraphModule, example_inputs=None) -> GraphModule:
        draw_graph(module, name)
        return module

    return make_boxed_compiler(run)


def print_compile(module: GraphModule, example_inputs=None) -> GraphModule:
    """A compiler that prints the code of the graph."""
    print(module.code)
    return module
