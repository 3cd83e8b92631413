"""`make_fx`: run a function once and keep what it did as a graph.

`Recorder` turns operator calls into graph nodes; `Trace` (in `interp/`) calls it.  `aot/capture.py`
builds joint graphs with the same recorder.
"""

from __future__ import annotations

import functools
import inspect
import operator
import sys

from .. import errors
from ..core.fake import Fake, fake_like
from ..core.handle import Tensor, make
from ..core.pytree import tree_flatten, tree_unflatten
from ..core.state import state
from ..core.tape import Accumulate
from ..interp.trace import Trace
from .graph import Graph
from .graph_module import GraphModule
from .tables import as_called, normalized


def fake_of(t: Tensor) -> Tensor:
    """A handle with the facts of another, without data or history."""
    data = t._data
    while not isinstance(data, Fake) and hasattr(data, "inner"):
        data = data.inner._data
    return make(fake_like(data))


def source_line() -> str | None:
    """The user's line as it stands in a traceback."""
    frame = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(errors._INTERNAL):
            return f'  File "{code.co_filename}", line {frame.f_lineno}, in {code.co_name}'
        frame = frame.f_back
    return None


class Recorder:
    """Builds a graph from operator calls."""

    def __init__(self, fake: bool):
        self.graph = Graph()
        self.constants: dict[str, Tensor] = {}
        self._nodes: dict[int, tuple] = {}  # id of an outside handle -> (handle, node)
        self.fake = fake
        self.origin = None  # the operator whose decomposition is being recorded

    def placeholder(self, name: str, value: Tensor):
        node = self.graph.placeholder(name)
        node.meta["val"] = fake_of(value)
        return node

    def call(self, ov, flat: tuple, out):
        """The node of an operator call; trailing defaults are left out."""
        args, kwargs = as_called(ov, flat)
        args = [list(v) if isinstance(v, tuple) else v for v in args]  # sizes print as lists
        node = self.graph.call_function(ov, tuple(args), kwargs)
        node.meta["val"] = (
            fake_of(out)
            if isinstance(out, Tensor)
            else [fake_of(o) if isinstance(o, Tensor) else o for o in out]
        )
        node.meta["stack_trace"] = source_line()
        if self.origin is not None:
            node.meta["origin"] = self.origin
        return node

    def pick(self, node, i: int, out):
        picked = self.graph.call_function(operator.getitem, (node, i))
        picked.meta["val"] = fake_of(out)
        return picked

    def constant(self, t: Tensor):
        """The node of a tensor from outside."""
        found = self._nodes.get(id(t))
        if found is None:
            name = f"_tensor_constant{len(self.constants)}"
            self.constants[name] = make(t._data)
            node = self.graph.get_attr(name)
            node.meta["val"] = fake_of(t)
            found = self._nodes[id(t)] = (t, node)
        return found[1]

    def known(self, node):
        """The value of a constant node, if it is one."""
        return self.constants.get(node.target) if node.op == "get_attr" else None

    def module(self, result, name: str = "GraphModule") -> GraphModule:
        """Finish the graph with its output."""
        self.graph.output(result)
        return GraphModule(self.constants, self.graph, name)


def _names(function, count: int) -> list[str]:
    """Parameter names of a function for its first `count` arguments."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [names[i] if i < len(names) else f"arg{i}" for i in range(count)]


def make_fx(
    f,
    decomposition_table: dict | None = None,
    tracing_mode: str = "real",
    *,
    pre_dispatch: bool = False,
    _allow_non_fake_inputs: bool = False,
):
    """A function that runs `f` on example inputs and returns the graph of what it did."""
    if tracing_mode not in ("real", "fake"):
        raise ValueError(f"tracing_mode must be 'real' or 'fake', got {tracing_mode!r}")

    @functools.wraps(f)
    def traced(*args) -> GraphModule:
        flat, spec = tree_flatten(args)
        recorder = Recorder(tracing_mode == "fake")
        table = normalized(decomposition_table)
        with Trace(recorder, recorder.fake, table) as level:
            inputs = []
            names = _names(f, len(args))
            simple = len(flat) == len(args)
            for i, value in enumerate(flat):
                name = f"{names[i]}_1" if simple else f"arg{i}_1"
                if not isinstance(value, Tensor):
                    recorder.graph.placeholder(name)
                    inputs.append(value)
                    continue
                example = fake_of(value) if recorder.fake else make(value._data)
                t = level.wrap(example, recorder.placeholder(name, value))
                if value.requires_grad:
                    t._edge = Accumulate(t)
                inputs.append(t)
            out = f(*tree_unflatten(inputs, spec))
            leaves, out_spec = tree_flatten(out)
            nodes = [level.node(_current(o)) if isinstance(o, Tensor) else o for o in leaves]
        module = recorder.module(
            tree_unflatten(nodes, out_spec), getattr(f, "__name__", "GraphModule")
        )
        module.graph.eliminate_dead_code()
        module.recompile()
        return module

    return traced


def get_proxy_mode():
    """The capture that runs, None if none does."""
    return state.stack[state.mode] if state.mode else None


def _current(t: Tensor) -> Tensor:
    if t._link is not None:
        from ..core.surface import refresh

        refresh(t)
    return t
