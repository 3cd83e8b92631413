"""The smallest compilers: they return the graph as it is, boxed or printed."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ..fx.graph_module import GraphModule
from . import refusals


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
    from ..fx.interpreter import Interpreter

    def run(args):
        return Interpreter(module).boxed_run(args)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def print_compile(module: GraphModule, example_inputs=None) -> GraphModule:
    """A compiler that prints the code of the graph."""
    print(module.code)
    return module
