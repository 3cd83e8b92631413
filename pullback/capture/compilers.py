"""The smallest compilers, which return the graph as it is, boxed or printed; and what says that
the results of a compiler can be kept as bytes."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..cut import refusals
from ..graph.graph_module import GraphModule


class SerializableCallable(ABC):
    """A compiled graph that can be kept as bytes and made of them by another process."""

    @classmethod
    @abstractmethod
    def serialize_compile_artifacts(cls, fn: Any) -> bytes:
        """The bytes of a compiled graph."""

    @classmethod
    @abstractmethod
    def deserialize_compile_artifacts(cls, data: bytes) -> Any:
        """A compiled graph from its bytes."""


class SerializableAOTDispatchCompiler:
    """A compiler whose results are of one class, which makes bytes of them and them of bytes.

    `aot_function` keeps these on disk (see `SerializableCallable`): another process that captures
    the same graph does not call the compiler.  A `uuid` says which compiler this is, as text or as
    a function that gives it; without one it is told by its code and the files that it is from.
    """

    def __init__(self, output_code_ty: type, compiler_fn: Callable, uuid: Any = None):
        refusals.functions("SerializableAOTDispatchCompiler", {}, compiler_fn=compiler_fn)
        self.output_code_ty, self.compiler_fn = output_code_ty, compiler_fn
        if uuid is not None:
            self.uuid = uuid if callable(uuid) else lambda: uuid

    def __repr__(self) -> str:
        return f"<compiler {self.compiler_fn!r} that gives {self.output_code_ty.__name__}>"

    def __call__(self, gm: GraphModule, example_inputs: Any) -> Any:
        return self.compiler_fn(gm, example_inputs)


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
