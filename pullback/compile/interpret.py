"""Graphs on NumPy: the fallback without a compiler, and the NumPy steps inside compiled graphs."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

from .. import errors
from ..array.evaluate import run_raw
from ..array.lazy import resolved
from ..autograd.grad_mode import no_grad
from ..core.handle import make


def _is_node(value: object) -> bool:
    return hasattr(value, "op") and hasattr(value, "meta") and hasattr(value, "target")


def _map(value: object, fn: Callable) -> object:
    """Replace graph nodes inside nested arguments."""
    if isinstance(value, (list, tuple)):
        return [_map(v, fn) for v in value]
    return fn(value) if _is_node(value) else value


def attribute(gm: object, path: str) -> object:
    """What a `get_attr` node means."""
    for part in path.split("."):
        gm = getattr(gm, part)
    return gm


def flat_arguments(target: object, args: list, kwargs: dict) -> list:
    """Arguments in schema order, defaults filled in."""
    schema = getattr(target, "schema", None)
    if schema is None or not hasattr(schema, "args"):
        return [*args, *kwargs.values()]
    out = []
    for i, a in enumerate(schema.args):
        out.append(args[i] if i < len(args) else kwargs.get(a.name, a.default))
    return out


def evaluate(target: object, args: list, kwargs: dict) -> object:
    """Run an operator's NumPy kernel on raw arrays."""
    if target is operator.getitem:
        return args[0][args[1]]
    op = getattr(target, "op", None)
    if op is None:  # a Python function may work on arrays or on tensors
        if getattr(target, "namespace", None) == "higher_order" and target.__name__ != "print":
            target = on_arrays(target)
        out = target(*args, **kwargs)
        return getattr(out, "_payload", out)
    try:
        return resolved(run_raw(target, flat_arguments(target, args, kwargs)))
    except (errors.PullbackError, NotImplementedError, MemoryError):
        raise
    except Exception as error:  # as eager execution says it
        kind = errors.ShapeError if isinstance(error, ValueError) else None
        name = getattr(op, "base_name", str(target))
        raise (
            errors.named(kind, name, str(error)) if kind else errors.translated(name, error)
        ) from error


def kernel_of(node: object, graphs: dict | None = None) -> Callable:
    """A function of the node's arrays, in the order in which they stand among its arguments.

    `graphs` has the functions of arrays that nodes of branches and loop bodies stand for.
    """
    target, args, kwargs = node.target, node.args, node.kwargs
    graphs = graphs or {}
    nothing = node.meta.get("val") is None  # it is called for what it does
    if graphs:
        target = on_arrays(target)
    custom = getattr(target, "custom", False)
    # it fitted where it was captured; the arrays of a step may lie otherwise
    reshapes = str(target) in ("aten.view.default", "aten._unsafe_view.default")

    def run(*arrays: np.ndarray) -> object:
        stream = iter(arrays)

        def take(n: object) -> object:
            return graphs[n] if n in graphs else next(stream)

        filled = _map(list(args), take)
        if reshapes and not filled[0].flags.c_contiguous:
            filled[0] = filled[0].copy("C")
        named = {k: _map(v, take) for k, v in kwargs.items()}
        out = evaluate(target, filled, named)
        if custom:
            _refuse_other_results(node, out)
        return np.empty(0, np.float32) if nothing else out

    return run


def _refuse_other_results(node: object, out: object) -> None:
    """Refuse results of an operator of the user's that are not as its fake, or its first call,
    has them: memory was laid out for those."""
    value = node.meta.get("val")
    many = isinstance(value, (tuple, list))
    given = list(out) if isinstance(out, (tuple, list)) else [out]
    if many and len(given) != len(value):
        raise _other_results(node, f"{len(given)} results", len(value))
    for example, array in zip(value if many else [value], given):
        if not isinstance(array, np.ndarray) or not hasattr(example, "shape"):
            continue
        shape = tuple(example.shape)
        if all(type(n) is int for n in shape) and shape != array.shape:
            raise _other_results(node, f"shape {list(array.shape)}", list(shape))


def _other_results(node: object, got: str, expected: object) -> Exception:
    return errors.MetadataMismatchError(errors.text(
        f"{node.target} returned {got} in a compiled function that was made for {expected} "
        f"({errors.user_line()})",
        ["expected is what its fake says, or what its first call gave if it has none",
         f"called at {(node.stack_trace or 'an unknown line').strip()}"],
        "register a fake that says the shape for all arguments; a size that values decide "
        "is get_ctx().new_dynamic_size(), or keep the operator outside"))


def on_arrays(target: Callable) -> Callable:
    """An operator that takes functions, `cond` for instance, as one of arrays."""

    def wrapped(value: object) -> object:
        if isinstance(value, (np.ndarray, np.generic)):
            return make(np.asarray(value))
        if isinstance(value, list):
            return [wrapped(v) for v in value]
        return _on_tensors(*value) if isinstance(value, tuple) else value

    def run(*args: object) -> tuple:
        with no_grad():
            out = target(*[wrapped(a) for a in args])
        return tuple([t._payload for t in out])

    return run


def _on_tensors(function: Callable, one: bool) -> Callable:
    """A compiled graph as a function of tensors, which returns a tuple or one."""

    def run(*tensors: object) -> object:
        out = [make(a) for a in function(*[t._payload for t in tensors])]
        return out[0] if one else tuple(out)

    return run


def returns_one(gm: object) -> bool:
    """Does a graph return one result by itself?"""
    return _is_node(gm.graph.output_node().args[0])


class Interpreter:
    """A graph run node by node; has the interface of a compiled graph."""

    def __init__(self, gm: object, name: str):
        self.gm, self.name = gm, name
        self.source_path, self.plan = None, {}
        nodes = list(gm.graph.nodes)
        self.report = {
            "kernels": [],
            "calls": [],
            "nodes": len(nodes),
            "buffers": 0,
            "workspace_bytes": 0,
            "externs": [
                {"name": n.name, "target": str(n.target)} for n in nodes if n.op == "call_function"
            ],
        }
        last = {source: node for node in nodes for source in node.all_input_nodes}
        self._ends: dict = {}  # node -> what nothing reads after it
        for source, node in last.items():
            self._ends.setdefault(node, []).append(source)

    def __call__(self, *arrays: np.ndarray) -> tuple:
        return self.consume(list(arrays))

    def consume(self, arrays: list) -> tuple:
        """The same for a list, which is emptied: what nobody else has ends with its last reader."""
        env: dict = {}
        arrays.reverse()
        for node in self.gm.graph.nodes:
            if node.op == "placeholder":
                env[node] = arrays.pop()
            elif node.op == "get_attr":
                value = attribute(self.gm, node.target)
                if hasattr(value, "graph"):
                    value = Interpreter(value, node.name), returns_one(value)
                env[node] = getattr(value, "_payload", value)
            elif node.op == "output":
                return tuple(self._outputs(_map(node.args[0], env.__getitem__)))
            else:
                args = _map(list(node.args), env.__getitem__)
                kwargs = {k: _map(v, env.__getitem__) for k, v in node.kwargs.items()}
                env[node] = evaluate(node.target, args, kwargs)
                for used in self._ends.get(node, ()):
                    del env[used]  # let go of what nothing reads any more
        raise ValueError("the graph has no output")

    def _outputs(self, value: object) -> list:
        if isinstance(value, (list, tuple)):
            return [x for v in value for x in self._outputs(v)]
        return [np.asarray(value) if isinstance(value, np.generic) else value]
