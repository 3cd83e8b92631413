"""Derivatives of functions that are graphs: what the rules of branches and loops share.

Read `subgraph.py` first; `cond.py` next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import errors
from ..core.handle import Tensor
from ..func.grad import jvp, vjp
from ..graph.graph_module import GraphModule
from ..table.packets import ops
from .subgraph import _not_a_graph, floats, with_those, without, without_effects


def remember(ctx: Any, operands: Sequence[Any], output: Sequence[Any]) -> None:
    """Keep operands for both modes, and which results have gradients."""
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*operands)
    ctx.save_for_forward(*operands)
    ctx.moving, ctx.count = floats(output), len(output)


def quiet(function: Callable) -> Callable:
    """A captured function to differentiate: what it does by calls for nobody has been done."""
    if not isinstance(function, GraphModule):
        return function
    if function.meta.get("not_followed"):
        why, at = function.meta["not_followed"]
        raise _not_a_graph(errors.text(
            f"{why} ({errors.describe_place(at)}) in a captured branch or loop body: its graph has "
            "no gradient for that", cure="write to a clone(); give a function all that it reads"))
    return without_effects(function)


def pushed_through(function: Callable) -> Callable:
    """The same for forward mode, which `no_grad` does not stop."""
    if not isinstance(function, GraphModule):
        return function
    return without(quiet(function), lambda n: n.meta.get("cut"))


def asked(moving: list[int], grads: Sequence) -> list[int]:
    """Results that have a gradient: zeros for others would meet infinite slopes, and give NaN."""
    return [i for i in moving if grads[i] is not None]


def pull_back(function: Callable, values: Sequence[Tensor], wanted: list[int], moving: list[int],
          grads: Sequence[Tensor]) -> tuple:
    """Gradients of some operands of a function of flat tensors."""
    if not moving:
        return tuple([ops.zeros_like(values[i]) for i in wanted])

    def varying(*chosen: Tensor) -> tuple:
        out = function(*with_those(values, wanted, chosen))
        return tuple([out[i] for i in moving])

    _, pull = vjp(varying, *[values[i] for i in wanted])
    return pull(tuple(grads))


def push_forward(function: Callable, values: Sequence[Tensor], places: list[int], moving: list[int],
          tangents: Sequence[Tensor]) -> tuple:
    """Tangents of the results of a function of flat tensors."""
    if not (places and moving):
        out = function(*values) if moving else ()
        return tuple([ops.zeros_like(out[i]) for i in moving])

    def varying(*chosen: Tensor) -> tuple:
        out = function(*with_those(values, places, chosen))
        return tuple([out[i] for i in moving])

    return jvp(varying, tuple([values[i] for i in places]), tuple(tangents))[1]
