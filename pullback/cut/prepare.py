"""What is done to a joint graph before it is cut, in a copy of it.

- *Common subexpressions*: what is computed twice is computed once (`config.cse`).
- *Narrow*: values that need less memory than they have get a small form, from which all readers get
  them back; the cut may then save the small one. A drawn mask of zeros and ones is a byte per
  element, the place of a maximum is a byte per window.
- *Draws that a checkpoint wants again*: a draw becomes a function of the generator's state before
  it. The forward draws as ever; if the backward is to draw again, the state is what is saved.

Read `recompute.py` next.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import prod
from operator import getitem
from typing import Any

from ..array import dtype as dt
from ..array.generator import Generator
from ..array.random import default_generator
from ..array.size import is_symbolic
from ..core.handle import Tensor, make
from ..graph.graph import Graph
from ..graph.graph_module import GraphModule
from ..graph.node import Node
from ..graph.passes.cse import eliminate_common_subexpressions, repeats
from ..graph.traits import cost_of, trait
from ..table.packets import ops
from ..threads.blocks import uncast
from .settings import config
from .split import is_number, is_of_backward, policy


class target:
    """A Python function as a target whose text is the same in every process."""

    def __init__(self, function: Callable) -> None:
        functools.update_wrapper(self, function)
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return self.__name__


@target
def get_rng_state() -> Tensor:
    """The state of the default generator, as a tensor of its own."""
    return default_generator.get_state()


def drawn(op: Callable, args: tuple, kwargs: dict) -> Any:
    """What an operator draws for arrays or tensors."""
    handles = [a if isinstance(a, Tensor) or not hasattr(a, "dtype") else make(a) for a in args]
    with uncast():
        return op(*handles, **kwargs)


@target
def draw_from(state: Any, op: Callable, *args: Any, **kwargs: Any) -> Any:
    """What `op` draws from a state of the generator, which is left behind the draw."""
    default_generator.set_state(state if isinstance(state, Tensor) else make(state))
    return drawn(op, args, kwargs)


@target
def run_with_rng_state(state: Any, op: Callable, *args: Any, **kwargs: Any) -> Any:
    """What `op` drew from a state of the generator, which is not changed."""
    present = default_generator.get_state()
    try:
        return draw_from(state, op, *args, **kwargs)
    finally:
        default_generator.set_state(present)


@target
def run_and_save_rng_state(op: Callable, *args: Any, **kwargs: Any) -> tuple:
    """The state of the generator, and what `op` draws."""
    return get_rng_state(), drawn(op, args, kwargs)


for _step in (run_with_rng_state, run_and_save_rng_state):  # as they print in PyTorch
    _step.__module__ = "torch.ops.higher_order"


def prepared(module: GraphModule) -> GraphModule:
    """The module, or a copy of it with what is said above."""
    return _with(module, _rule, config.cse and next(repeats(module.graph), None) is not None)


def with_states(module: GraphModule) -> GraphModule:
    """The same, but of all that only draws that a checkpoint wants again."""
    return _with(module, lambda node: _from_state if _drawn_again(node) else None, False)


def _with(module: GraphModule, rule: Callable, twice: bool) -> GraphModule:
    if not twice and not any(rule(n) is not None for n in module.graph.nodes):
        return module
    graph, copies = Graph(), {}
    for node in module.graph.nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    if twice:
        eliminate_common_subexpressions(graph)
    for node in [n for n in graph.nodes if rule(n) is not None]:
        rule(node)(graph, node)
    return GraphModule(module, graph)


def draws_of_graph(graph: Graph) -> list[Node]:
    """The calls in a graph that draw from the generator that all share."""
    return [n for n in graph.nodes if n.op == "call_function" and cost_of(n.target) == "random"
            and not any(isinstance(v, Generator) for v in (*n.args, *n.kwargs.values()))]


def _drawn_again(node: Node) -> bool:
    return (node.op == "call_function" and cost_of(node.target) == "random"
            and policy(node).endswith("RECOMPUTE"))


def _rule(node: Node) -> Callable | None:
    if node.op != "call_function":
        return None
    if _drawn_again(node):
        return _from_state
    narrow = trait(node.target, "narrow")
    return None if narrow is None else globals()[narrow]


def _after(graph: Graph, node: Node, function: Callable, *inputs: Node) -> Node:
    """The nodes of a function of given nodes, behind another; its result."""
    from ..decomp import Everything
    from ..graph.make_fx import make_fx

    values = [n.meta["val"] for n in inputs]
    traced = make_fx(function, Everything(), "fake")(*values).graph
    places = [n for n in traced.nodes if n.op == "placeholder"]
    mapping: dict = dict(zip(places, inputs))
    with graph.inserting_after(node):
        last = node
        for step in traced.nodes:
            if step.op == "output":
                return mapping[step.args[0]]
            if step not in mapping:
                with graph.inserting_after(last):
                    last = mapping[step] = graph.node_copy(step, mapping.__getitem__)
                last.meta["stack_trace"] = node.meta.get("stack_trace")
    raise AssertionError("a graph without output")


def _replace(graph: Graph, node: Node, small: Callable, wide: Callable) -> None:
    """Let all readers of a node read `wide(small(node))`."""
    readers = list(node.users)
    form = _after(graph, node, small, node)
    form.meta["narrow"] = node.name
    again = _after(graph, form, wide, form)
    for user in readers:
        user.replace_input_with(node, again)


def mask(graph: Graph, node: Node) -> None:
    """Drawn zeros and ones, as booleans."""
    value = node.meta.get("val")
    if not isinstance(value, Tensor) or value.dtype.itemsize == 1:
        return
    kind = value.dtype
    _replace(graph, node, lambda t: t.to(dt.bool_), lambda t: t.to(kind))


def _misses(count: int, stride: int, padding: int, dilation: int, size: int) -> bool:
    """Do steps of some window begin in the padding and jump over all elements?"""
    lows = (i * stride - padding for i in range(count))
    return any(low < 0 and low % dilation >= size for low in lows)


def offsets(graph: Graph, node: Node) -> None:
    """Places in the plane of each window's maximum, as places in the window."""
    if policy(node) or len(node.args) == 1 or not all(type(n) is int for n in (
            *node.args[0].meta["val"].shape, *node.meta["val"][1].shape)):
        return
    picked = next((n for n in node.users if n.args[1:] == (1,)), None)
    if picked is None:
        return
    names = ("kernel_size", "stride", "padding", "dilation")
    given = dict(zip(names, node.args[1:])) | {k: v for k, v in node.kwargs.items() if k in names}
    sizes = {k: [*v] * 2 if len(v) == 1 else v for k, v in (
        (k, v if isinstance(v, (list, tuple)) else [v]) for k, v in given.items()) if v}
    kernel = sizes["kernel_size"]
    stride = sizes.get("stride", kernel)
    padding, dilation = sizes.get("padding", [0, 0]), sizes.get("dilation", [1, 1])
    if prod(kernel) > 255:
        return
    width = node.args[0].meta["val"].shape[-1]
    rows, columns = picked.meta["val"].shape[-2:]
    if is_symbolic((width, rows, columns)):
        return  # the graph of the forms would be for these sizes
    places = (rows, columns), stride, padding, dilation, node.args[0].meta["val"].shape[-2:]
    if any(_misses(*dim) for dim in zip(*places)):
        return  # the place of nothing is in no window

    def corners() -> tuple:
        """Where each window begins."""
        return tuple(
            ops.arange(-p, n * s - p, s) for n, s, p in zip((rows, columns), stride, padding))

    def steps(distance: Tensor, by: int) -> Tensor:
        return distance if by == 1 else ops.floor_divide(distance, by)

    def small(places: Tensor) -> Tensor:
        first, left = corners()
        row = ops.floor_divide(places, width)
        down = steps(row - first.unsqueeze(1), dilation[0])
        across = steps(places - row * width - left, dilation[1])
        return (down * kernel[1] + across).to(dt.uint8)

    def wide(offsets: Tensor) -> Tensor:
        first, left = corners()
        offsets = offsets.to(dt.int64)
        down = ops.floor_divide(offsets, kernel[1])
        across = offsets - down * kernel[1]
        if dilation[0] * dilation[1] != 1:
            down, across = down * dilation[0], across * dilation[1]
        return (down + first.unsqueeze(1)) * width + across + left

    _replace(graph, picked, small, wide)


def _from_state(graph: Graph, node: Node) -> None:
    with graph.inserting_before(node):
        before = graph.call_function(get_rng_state, ())
        before.meta["val"] = _state_example()
    node.target, node.args = draw_from, (before, node.target, *node.args)


@functools.cache
def _state_example() -> Tensor:
    from ..graph.make_fx import fake_of

    return fake_of(get_rng_state())


def settle_draws(forward: GraphModule, backward: GraphModule) -> None:
    """The forward draws as the user wrote it, the backward leaves the generator as it is."""
    for node in [n for n in forward.graph.nodes if n.target is draw_from]:
        before, target, *args = node.args
        node.target, node.args = target, tuple(args)
        if not before.users:
            forward.graph.erase_node(before)
    for node in backward.graph.nodes:
        if node.target is draw_from:
            node.target = run_with_rng_state
    forward.recompile()
    backward.recompile()


def spell_draws(forward: GraphModule, backward: GraphModule, count: int) -> None:
    """Draws that are made again as PyTorch's graphs have them, states behind all saved tensors."""
    states = [n for n in forward.graph.nodes if n.target is get_rng_state]
    for number, state in enumerate(states):
        name, draw = state.name, state.next
        with forward.graph.inserting_before(draw):
            both = forward.graph.call_function(
                run_and_save_rng_state, (draw.target, *draw.args), draw.kwargs)
            both.meta["val"] = state.meta["val"], draw.meta["val"]
            first, second = (forward.graph.call_function(getitem, (both, k)) for k in (0, 1))
        for new, old in ((first, state), (second, draw)):
            new.meta = dict(old.meta)
            old.replace_all_uses_with(new)
        forward.graph.erase_node(draw)
        forward.graph.erase_node(state)
        output = forward.graph.output_node()
        results, saved = output.args[0][:count], list(output.args[0][count:])
        if first not in saved:
            continue
        saved.remove(first)
        at = next((k for k, n in enumerate(saved) if is_number(n)), len(saved))
        output.args = ((*results, *saved[:at], first, *saved[at:]),)
        places = [n for n in backward.graph.nodes if n.op == "placeholder"]
        old = next(n for n in places if n.name == name)
        before = next((n for n in places if is_of_backward(n)), places[-1].next)
        with backward.graph.inserting_before(before):
            new = backward.graph.placeholder(f"rng_state_output_{number}")
        new.meta = dict(old.meta)
        old.replace_all_uses_with(new)
        backward.graph.erase_node(old)
    for node in [n for n in backward.graph.nodes if n.target is run_with_rng_state]:
        with backward.graph.inserting_before(node):
            again = backward.graph.call_function(run_with_rng_state, node.args, node.kwargs)
        again.meta = dict(node.meta)
        node.replace_all_uses_with(again)
        backward.graph.erase_node(node)
    if states:
        forward.recompile()
        backward.recompile()
