"""Native code for `aot_function`: compilers under PyTorch's names, and functions that use them.

What PyTorch hands to TorchScript goes to the C backend here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..array.size import Symbolic
from ..capture.compilers import SerializableCallable
from ..capture.entry import aot_function
from ..capture.modules import aot_module
from ..core.handle import make
from ..core.op import registry
from ..decomp import get_decompositions
from ..graph.graph_module import GraphModule
from ..graph.interpreter import Interpreter


def _decompositions() -> dict:
    from .. import ops

    names = {entry.base_name: None for entry in registry.values() if entry.ahead}
    return get_decompositions([getattr(ops.aten, name) for name in names])


def __getattr__(name: str) -> Any:
    if name == "default_decompositions":
        return _decompositions()
    if name == "pythonkey_decompose":
        from ..graph.isolated import decompose

        return decompose
    raise AttributeError(f"pullback.compile.ahead has no attribute '{name}'")


class NativeGraph(SerializableCallable):
    """A graph as native code, a function of its inputs; its bytes name the plan on disk."""

    def __init__(self, run: Callable) -> None:
        self.run = run

    def __call__(self, *args: Any) -> list:
        return [make(o) if hasattr(o, "dtype") else o
                for o in self.run(*[getattr(a, "_payload", a) for a in args])]

    @classmethod
    def serialize_compile_artifacts(cls, fn: NativeGraph) -> bytes:
        key = getattr(fn.run, "key", None)
        if not key:
            raise TypeError("the graph runs on NumPy, or for sizes that are symbols")
        return f"{key} {fn.run.name}".encode()

    @classmethod
    def deserialize_compile_artifacts(cls, data: bytes) -> Known:
        return Known(*data.decode().split(" ", 1))


class Known:
    """A native graph on disk."""

    def __init__(self, key: str, name: str) -> None:
        self.key, self.name = key, name

    def attached(self, module: GraphModule) -> NativeGraph | None:
        """The graph with the constants of the one that it follows from; None if it is not there."""
        from .backend import load_known

        run = load_known(self.key, self.name, module)
        return None if run is None else NativeGraph(run)


def ts_compile(module: GraphModule, example_inputs: Any = None) -> Callable:
    """A compiler: the graph as native code, a function of its inputs."""
    from .backend import compile_graph

    return NativeGraph(compile_graph(module, "ahead"))


def _identity() -> tuple | None:
    """The C compiler and the processor; None if there is none, and nothing to keep."""
    from . import toolchain
    from .errors import CompilerNotFound
    from .keys import identity

    try:
        return identity(toolchain.find())
    except (CompilerNotFound, OSError):
        return None


# What `aot_function` asks of compilers whose results it may keep.
ts_compile.output_code_ty = NativeGraph  # type: ignore[attr-defined]
ts_compile.uuid = _identity  # type: ignore[attr-defined]
simple_ts_compile = ts_compile


def nnc_jit(f: Callable) -> Callable:
    """A function compiled natively, forward and backward."""
    return aot_function(f, simple_ts_compile)


def memory_efficient_fusion(fn: Any, **kwargs: Any) -> Any:
    """A function or a module whose backward computes again what is cheap, compiled natively."""
    from ..cut.partition import min_cut_rematerialization_partition

    config = {
        "fw_compiler": ts_compile,
        "bw_compiler": ts_compile,
        "partition_fn": min_cut_rematerialization_partition,
        "decompositions": _decompositions(),
        **kwargs,
    }
    return (aot_module if hasattr(fn, "_modules") else aot_function)(fn, **config)


class DebugInterpreter(Interpreter):
    """Runs a graph node by node and checks what comes out against what was captured.

    Sizes of the inputs say what the symbols of the capture stand for.
    """

    def run(self, *args):
        self.symbols: dict[str, int] = {}
        return super().run(*args)

    def run_node(self, n):
        result = super().run_node(n)
        expected = n.meta.get("val")
        if hasattr(expected, "shape") and hasattr(result, "shape"):
            for what in ("dtype", "shape", "stride"):
                want, have = (_fact(getattr(t, what)) for t in (expected, result))
                if what == "dtype" or len(want) != len(have):
                    other = [] if want == have else [(want, have)]
                else:
                    pairs = [(self._value(w, h), h) for w, h, size in zip(want, have, result.shape)
                             if what == "shape" or size > 1]
                    other = [pair for pair in pairs if pair[0] != pair[1]]
                if other:
                    raise AssertionError(f"{n}: {what} is {have}, captured as {want}: "
                                         f"{other[0][0]} != {other[0][1]}")
        return result

    def _value(self, want, have: int) -> int:
        """A captured number; what a symbol is first compared with is its value."""
        if not isinstance(want, Symbolic):
            return want
        expr = want.node.expr
        if expr.symbol is not None:
            return self.symbols.setdefault(expr.symbol, have)
        known = expr.symbols() <= self.symbols.keys()
        return expr.value(self.symbols.__getitem__) if known else have


def _fact(fact):
    return fact() if callable(fact) else fact


def debug_nop(module: GraphModule, example_inputs: Any = None) -> Callable:
    """A compiler whose function checks every value against what was captured."""
    return DebugInterpreter(module).run


def debug_compile(module: GraphModule, example_inputs: Any = None) -> Callable:
    """A compiler that prints the graph, checks it on its inputs, and compiles it."""
    print(module.code)
    return ts_compile(module, example_inputs)
