"""Functions as graphs inside of a graph.

A branch or the body of a loop is run once on shapes, on a level of its own above all others.  What
it reaches from outside becomes one more operand of the operator, so that the graph is closed and
gradients flow to it.  Read next: `cond.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import errors
from ..array import dtype as dt
from ..array.fake import Fake
from ..core import tape
from ..core.events import CALLS_FUNCTION, HOOKED
from ..core.handle import Tensor, make
from ..core.overload import overload
from ..core.stack import bind
from ..graph.graph import Graph
from ..graph.graph_module import GraphModule
from ..graph.make_fx import Recorder, fake_of
from ..graph.node import Node
from ..graph.passes import eliminate_dead_code
from ..graph.sizes import SizeNodes
from ..graph.traits import viewed
from ..interp.box import map_tensors
from ..interp.operator_dispatch import Outer
from ..interp.trace import Trace, Traced
from ..interp.vmap import Batched
from ..memory.views import current
from ..pytree import tree_flatten
from ..table.effects import effect_of
from ..table.packets import ops
from ..threads.blocks import tied
from ..threads.state import state

operators: dict[str, HigherOrder] = {}
_NUMBER, _DETACH = overload("scalar_tensor"), overload("detach")


class HigherOrder:
    """An operator that takes functions, as graphs name it: `ops.higher_order.cond`."""

    namespace = "higher_order"

    def __init__(self, name: str, function: Callable, effect: str | None = None):
        self.__name__, self.function, self.effect = name, function, effect
        self.__module__ = "torch.ops.higher_order"
        operators[name] = self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def name(self) -> str:
        return self.__name__

    def __repr__(self) -> str:
        return self.__name__

    def __reduce__(self) -> tuple:
        return _operator, (self.__name__,)


def _operator(name: str) -> HigherOrder:
    return operators[name]


def visible(t: Tensor) -> str:
    """Can the value of a tensor be read? "value", "fake" (there is none), "hidden" in a capture,
    or "batched" (one per example)."""
    data = t._payload
    while not isinstance(data, (Traced, Batched)) and hasattr(data, "inner"):
        data = data.inner._payload
    if isinstance(data, Batched):
        return "batched"
    if isinstance(data, Traced):
        return "hidden"
    return "fake" if type(data) is Fake else "value"


def hidden(tensors: Sequence[Tensor]) -> bool:
    """Does a capture see operators on these tensors?"""
    return bool(state.mode) or any(visible(t) == "hidden" or visible(t) == "batched" and
                                   _below_batches(t) == "hidden" for t in tensors)


def _below_batches(t: Tensor) -> str:
    while hasattr(t._payload, "inner") and not isinstance(t._payload, Traced):
        t = t._payload.inner
    return visible(t)


def stand_in(t: Tensor) -> Tensor:
    """A tensor with the facts that another has on its own level, without data or history."""
    data = t._payload
    lowest = fake_of(t)._payload
    strides = tuple(data.strides)
    return make(Fake(tuple(data.shape), data.dtype, strides, lowest.device_name,
                     marks=lowest.marks))


def row_of(t: Tensor) -> Tensor:
    """A stand-in for the elements of a tensor along its first dim."""
    data = stand_in(t)._payload
    row = make(Fake(data.shape[1:], data.dtype, data.strides[1:], data.device_name))
    return row.requires_grad_(t.requires_grad)


def rows_of(t: Tensor, n: int) -> Tensor:
    """A stand-in for n such tensors, stacked."""
    data = t._payload
    return make(Fake((n, *data.shape), data.dtype, None, data.device_name))


class _Inner(Trace):
    """The level of one function; operators of it mean nothing to the levels below."""

    title = "a branch or loop body"
    joined = False  # inside of the `forward` of a function whose `backward` is its history?

    keeps_functions = False  # are custom functions nodes of its graph?

    def function_call(self, cls, args, run):
        """One node for a custom function, whose derivatives are not those of what it computes."""
        if not self.keeps_functions:
            return None
        recorder, graph = self.recorder, self.recorder.graph
        last = next(reversed(graph.nodes), None)
        out, ctx = run()
        parts = itertools.takewhile(lambda n: n is not last, reversed(graph.nodes))
        nodes = tuple(map_tensors(self.node, args))
        outside = set(recorder.operands.values()).difference(nodes)
        if not outside.isdisjoint(n for part in parts for n in part.all_input_nodes):
            recorder.note_not_followed(f"{cls.__name__} reads a tensor from outside")
            return out, ctx
        node = graph.call_function(cls.apply, nodes)
        node.meta["val"] = map_tensors(stand_in, out)
        recorder.place(node.meta)
        recorder.calls = True

        def result(t: Tensor, node: Node) -> Tensor:
            made = self.wrap(stand_in(t), node)
            if any(t is a for a in args):
                return made
            t._payload = made._payload  # the context knows its outputs by their handles
            return t

        if isinstance(out, Tensor):
            return result(out, node), ctx
        return tuple([result(t, recorder.pick(node, i, t)) if isinstance(t, Tensor) else t
                      for i, t in enumerate(out)]), ctx

    def rebound_to(self, handle, new):
        if self.recorder.unrecorded:
            self.recorder.note_not_followed("a tensor with a history is written without recording",
                                            handle._payload.node)
        return super().rebound_to(handle, new)

    def hooked(self, at, kind, hook):
        self.recorder.note_not_followed("a hook is registered")

    on = {**Trace.on, CALLS_FUNCTION: function_call, HOOKED: hooked}

    def _value(self, t: Tensor) -> Tensor:
        return t._payload.inner if self.mine(t) else stand_in(t)

    def below(self, ov, values):
        before = state.mode, state.random, state.fakes
        state.mode, state.random, state.fakes.creates = 0, 0, True
        try:
            return bind(ov, values)
        finally:
            state.mode, state.random, state.fakes = before


def refuse_wrapper(t: Tensor, what: str) -> None:
    """Graphs inside of graphs hold plain tensors: a wrapper is no value of theirs."""
    if isinstance(t._payload, Outer):
        raise errors.TransformError(errors.text(
            f"{what} is captured and reads a {t._payload.cls.__name__} ({errors.user_line(3)}): "
            "wrappers cannot be part of a graph inside of a graph",
            cure="pass the tensors inside of it as operands"))


class _Recorder(Recorder):
    """Tensors from outside are operands, but for constants of graphs that are captured again."""

    def __init__(self, extras: dict[Any, Tensor], again: bool):
        super().__init__(True)
        self.extras = extras  # by identity, those of other functions too; numbers by themselves
        self.again = again
        self.operands: dict[Any, Node] = {}
        self.level: Any = None
        self.calls = False  # are there custom functions in the graph?
        self.records = False  # are histories recorded where the function is called?
        # what gradients cannot follow: a node or None, why, where
        self.not_followed: list[tuple] = []

    def constant(self, t: Tensor) -> Node:
        refuse_wrapper(t, "a branch or loop body")
        held = self.again and t._edge is None and type(t._payload) is np.ndarray
        if held or id(t._payload) in self.level.own:
            return super().constant(t)
        node = self.operands.get(id(t))
        if node is None:
            self.extras.setdefault(id(t), t)
            node = self.operands[id(t)] = self.graph.placeholder("lifted")
            node.meta["val"] = stand_in(t)
        return node

    def note_not_followed(self, why: str, node: Node | None = None) -> None:
        """Note what gradients cannot follow, if there are any that come through a node."""
        self.not_followed.append((node, why, errors.place()))

    def call(self, ov, flat, out):
        if ov.is_random:  # another run draws other numbers
            self.note_not_followed(f"{ov.op.base_name} draws random numbers")
        return super().call(ov, flat, out)

    @property
    def unrecorded(self) -> bool:
        """Did the function itself switch recording off, for what it does now?"""
        return self.records and not (self.level.joined or state.record[self.level.level])

    def place(self, meta: dict) -> None:
        super().place(meta)
        if self.unrecorded:
            meta["unrecorded"] = True

    def number(self, value: Any) -> Node:
        """A number of the graph around this one, as an operand with one element."""
        key = value.node.raw
        if key not in self.extras:
            with below(self.level):
                made = ops.scalar_tensor(value, dtype=dt.int64)
            self.extras[key] = made
        if key not in self.operands:
            with self.graph.inserting_before(next(iter(self.graph.nodes), None)):
                node = self.operands[key] = self.graph.placeholder("lifted")
            node.meta.update(val=stand_in(self.extras[key]), number=value)
        return self.operands[key]


class Body:
    """A captured function: its graph, and how its results are put together."""

    def __init__(self, module: GraphModule, spec: Any, leaves: list):
        self.module, self.spec, self.leaves = module, spec, leaves

    @property
    def facts(self) -> list:
        """Shape and dtype of each tensor, other values as they are."""
        return [
            (tuple(v.shape), v.dtype) if isinstance(v, Tensor) else v for v in self.leaves
        ]


def capture(functions: Sequence[Callable], operands: Sequence[Sequence[Tensor]], what: str,
            returns: Sequence[Callable], like: Trace | None = None,
            ) -> tuple[list[Body], list[Tensor]]:
    """The graphs of functions of flat tensors, and the further operands that all of them take.

    `returns` says how each graph returns its results; `like` is the capture whose decompositions
    apply.
    """
    extras: dict[Any, Tensor] = {}
    for t in (t for given in operands for t in given):
        refuse_wrapper(t, what)
    traced = [_traced(f, values, extras, what, like) for f, values in zip(functions, operands)]
    bodies = []
    for kind, (recorder, inputs, spec, leaves, nodes) in zip(returns, traced):
        graph, copied = Graph(), {}
        for i, old in enumerate([*inputs, *(recorder.operands.get(k) for k in extras)]):
            new = graph.placeholder(f"arg{i}_1")
            if old is None:
                new.meta["val"] = stand_in(list(extras.values())[i - len(inputs)])
            else:
                copied[old] = new
                new.meta.update({k: v for k, v in old.meta.items() if k in ("val", "number")})
        live = _copy(recorder.graph, graph, copied)
        graph.output(kind([copied[n] for n in nodes]))
        if recorder.calls:  # what they did is not wanted beside them
            eliminate_dead_code(graph)
        module = GraphModule(recorder.constants, graph, "<lambda>")
        module.meta["not_followed"] = next(
            (why for node, *why in recorder.not_followed if node is None or node in live), None)
        module.meta["plain"] = not recorder.calls and (
            like is None or not (like.decompositions or like.keeps_composites))
        bodies.append(Body(module, spec, leaves))
    return bodies, list(extras.values())


def _copy(old: Graph, new: Graph, copied: dict[Node, Node]) -> set[Node]:
    """Copy nodes, with a `detach` in front of those that were not recorded (`no_grad`).

    Returns those through which gradients come to the inputs.
    """
    live, cuts = set(), {}

    def cut(node: Node) -> Node:
        if node not in live:
            return copied[node]
        if node not in cuts:
            cuts[node] = made = new.call_function(_DETACH, (copied[node],))
            made.meta.update(val=node.meta["val"], cut=True)
        return cuts[node]

    for node in old.nodes:
        stops = node.meta.pop("unrecorded", False)
        if node not in copied:
            copied[node] = new.node_copy(node, cut if stops else copied.__getitem__)
            stops = stops or node.target is _DETACH or live.isdisjoint(node.all_input_nodes)
        value = node.meta.get("val")
        if not stops and (not isinstance(value, Tensor) or floats([value])):
            live.add(node)
    return live


def _traced(function: Callable, operands: Sequence[Tensor], extras: dict, what: str, like):
    recorder = _Recorder(extras, like is not None)
    level = recorder.level = _Inner(recorder, True, like.decompositions if like else None)
    level.keeps_composites = like is not None and like.keeps_composites
    level.keeps_functions = like is None
    around = (getattr(getattr(i, "recorder", None), "sizes", None) for i in reversed(state.stack))
    outer = next(filter(None, around), None)  # the capture with symbolic sizes that this is part of
    if outer is not None:
        recorder.sizes = SizeNodes(recorder, outer.env, inner=True)
        recorder.sizes.checks = outer.checks
    keeping, state.observers.trace = state.observers.trace, None
    try:
        with level:
            recorder.records = like is None and state.record[level.level]
            handles = [
                level.wrap(stand_in(t), recorder.placeholder(f"arg{i}", stand_in(t)))
                for i, t in enumerate(operands)
            ]
            for t, h in zip(operands, handles):
                if recorder.records and t.requires_grad:
                    h._edge = tape.Origin(h)
                number = _number(t)
                if number is not None:
                    h._payload.node.meta["number"] = number
            boxes = [h._payload for h in handles]
            out = function(*handles)
            if level.rebound or any(h._payload is not b for h, b in zip(handles, boxes)):
                raise _not_a_graph(errors.text(
                    f"{what} writes to a tensor that it was given or that comes from outside "
                    f"({errors.user_line(2)}), and it is captured",
                    cure="compute a new tensor, or clone() before writing"))
            leaves, spec = tree_flatten(out)
            nodes: list[Node] = []
            for i, o in enumerate(leaves):
                if not isinstance(o, Tensor):
                    continue
                node = level.node(current(o))
                if node in nodes or viewed(node).op in ("placeholder", "get_attr"):
                    node = level.node(ops.clone(current(o)))  # results have memory of their own
                nodes.append(node)
                leaves[i] = node.meta["val"]
    finally:
        state.observers.trace = keeping
    inputs = [b.node for b in boxes]
    return recorder, inputs, spec, leaves, nodes


def _number(t: Tensor) -> Any:
    """The number that an operand stands for (`_Recorder.number`)."""
    node = t._payload.node if isinstance(t._payload, Traced) else None
    if node is not None and node.target is _NUMBER and isinstance(node.args[0], Node):
        return node.args[0].meta["val"]
    return None if node is None else node.meta.get("number")


def _not_a_graph(text: str) -> Exception:
    """The refusal of a branch or loop body; `compile` runs the whole as it is written."""
    capture = next((i for i in reversed(state.stack) if getattr(i, "adopts", False)), None)
    return errors.TransformError(text) if capture is None else capture.unfollowed(text)


def without_effects(module: GraphModule, but: Callable[[Node], bool] | None = None) -> GraphModule:
    """A graph without the calls that are there for their effects alone, `but` for some."""
    return without(module, lambda n: n.op == "call_function" and not n.users and effect_of(
        n.target) is not None and not (but is not None and but(n)))


def without(module: GraphModule, done: Callable[[Node], Any]) -> GraphModule:
    """A graph without some of its calls, whose first argument takes the place of their result."""
    if not any(map(done, module.graph.nodes)):
        return module
    graph, copied = Graph(), {}
    for node in module.graph.nodes:
        if not done(node):
            copied[node] = graph.node_copy(node, copied.__getitem__)
        elif node.users:
            copied[node] = copied[node.args[0]]
    new = GraphModule(module, graph)
    new.meta.update(module.meta)
    return new


def single(nodes: list) -> Node:
    """The way to return one result by itself."""
    return nodes[0]


def results_of(module: GraphModule) -> list[Tensor]:
    """Fake results of a graph."""
    return [fake_of(n.meta["val"]) for n in module.graph.output_node().args[0]]


class below:
    """The level below a capture, for the example values of a node."""

    def __init__(self, level: Trace):
        self.level = level

    def __enter__(self):
        self.before = state.mode, state.random, state.observers.trace
        state.mode, state.random = self.level.previous
        state.observers.trace = None

    @tied
    def __exit__(self, *exc):
        state.mode, state.random, state.observers.trace = self.before


def inner(level: Trace, t: Tensor) -> Tensor:
    """The example value of a tensor of a capture."""
    return make(level._value(t)._payload)


def floats(tensors: Sequence[Any]) -> list[int]:
    """The places of tensors that can have a derivative."""
    return [i for i, t in enumerate(tensors)
            if isinstance(t, Tensor) and (t.dtype.is_floating_point or t.dtype.is_complex)]


def with_those(values: Sequence[Any], places: Sequence[int], others: Sequence[Any]) -> list:
    """The values with others in some of their places."""
    new = list(values)
    for i, v in zip(places, others):
        new[i] = v
    return new
