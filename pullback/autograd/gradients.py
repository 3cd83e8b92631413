"""`backward()` and `grad()`, as users call them: seeds, roots and targets are checked here.

Read next: `engine.py`, which runs the sweep.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from .. import errors
from ..array import dtype as dt
from ..core.handle import Tensor, make
from ..core.project import project
from ..core.stack import outlived
from ..core.tape import Accumulate, Blind, Node, Port, level_own, port
from ..interp.operator_dispatch import looked_at
from ..interp.vmap import Vmap
from ..table.packets import ops
from ..tensor.overridable import asks_in as _asks_in
from ..tensor.overridable import taken_over as _taken_over
from ..threads.blocks import called_by
from ..threads.state import fast, state
from .engine import edge_of, in_numbers, run

_asks = _asks_in(globals())

_ndarray = np.ndarray


class GradientEdge(NamedTuple):
    """A place in a graph where a gradient arrives: an output of a node."""

    node: Node
    output_nr: int
    ownership_token: object = None  # keeps a leaf alive, and knows the shape


def seeds_for(outputs: list, gradients, what: str) -> list:
    """The gradients that start a sweep, checked."""
    if gradients is None or isinstance(gradients, Tensor):
        gradients = (
            [gradients] if len(outputs) == 1 or gradients is not None else [None] * len(outputs)
        )
    gradients = list(gradients)
    if len(gradients) != len(outputs):
        raise errors.GradientShapeError(
            f"got {len(outputs)} tensors and {len(gradients)} gradients"
        )
    seeds = []
    for out, g in zip(outputs, gradients):
        if out.__class__ is GradientEdge:
            out = _stand_in(out)
            if out is None:
                seeds.append(_given(g))
                continue
        elif out._edge is None:
            edge_of(out)
        seeds.append(_seed_for(out, g, what))
    return seeds


def _seed_for(out: Tensor, g: Tensor | None, what: str) -> Tensor:
    """The gradient that a sweep starts with at one output, checked; ones where none is given."""
    if g is None:
        if out.numel() != 1:
            raise errors.GradientShapeError(errors.text(
                f"grad can be implicitly created only for scalar outputs ({errors.user_line(3)})",
                f"the output has shape {list(out.shape)}",
                f"reduce it first, for instance out.sum().{what}(), or give the gradient"))
        if out.dtype.is_complex:
            raise errors.GradientShapeError(
                "grad can be implicitly created only for real scalar outputs but got "
                f"{out.dtype} ({errors.user_line(3)})")
        return _unit(out)
    if tuple(g.shape) != tuple(out.shape):
        raise errors.GradientShapeError(errors.text(
            f"Mismatch in shape: the gradient has shape {list(g.shape)} and the output has shape "
            f"{list(out.shape)} ({errors.user_line(3)})",
            cure="give a gradient of the output's shape"))
    if g.dtype.is_complex != out.dtype.is_complex:
        raise errors.GradientShapeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype "
            f"(gradient {g.dtype}, output {out.dtype}; {errors.user_line(3)})")
    return g if g.dtype is out.dtype else g.to(out.dtype)


def _stand_in(edge: GradientEdge) -> Tensor | None:
    """A tensor of the shape of those that an edge belongs to, None where that is not known."""
    leaf = edge.node.leaf() if isinstance(edge.node, Accumulate) else None
    if leaf is not None:
        return leaf
    token = edge.ownership_token
    if token is None:
        return None
    return make(np.broadcast_to(np.zeros((), token.dtype), token.shape))


def _given(g) -> Tensor:
    if g is None:
        raise errors.GradientShapeError(
            errors.text(
                "the gradient of a GradientEdge that was made by hand must be given "
                f"({errors.user_line(3)})",
                cure="pass it, or make the edge with get_gradient_edge(tensor)",
            )
        )
    return g


_UNITS: dict = {}  # 0-d ones per dtype: the seed of nearly every sweep


def _unit(out: Tensor) -> Tensor:
    """The gradient of an output with respect to itself."""
    data = out._payload
    if type(data) is not _ndarray or data.ndim or state.mode or (
            fast["ACTIVE"] and fast["DISPATCHES"] and looked_at()):
        with called_by(called_by.SEED):
            return ops.ones_like(out)
    if data.dtype not in _UNITS:
        _UNITS[data.dtype] = np.ones((), data.dtype)
    return make(_UNITS[data.dtype])


def _listed(value) -> list:
    return [value] if isinstance(value, (Tensor, GradientEdge)) else list(value)


def _roots(outputs: list) -> list:
    edges = []
    for i, out in enumerate(outputs):
        if out.__class__ is GradientEdge:
            edges.append(port(out.node, out.output_nr))
            continue
        edge = edge_of(outlived(out))
        if edge is None or edge.__class__ is Blind:
            raise errors.NoGraph(
                errors.text(
                    f"element {i} of tensors does not require grad and does not have a grad_fn "
                    f"({errors.user_line(2)})",
                    f"tensor: {out.dtype.name}{list(out.shape)}",
                    "call requires_grad_() on an input before computing, and compute outside of "
                    "no_grad",
                )
            )
        edges.append(edge)
    return edges


def backward(
    tensors,
    grad_tensors=None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables=None,
    inputs=None,
) -> None:
    """Accumulate the gradients of `tensors` into the leaves (or only into `inputs`).

    `grad_variables` is the old name of `grad_tensors`.
    """
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning,
                      stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both "
                               "passed to `backward()`. Please only use `grad_tensors`.")
        grad_tensors = grad_variables
    if fast["PARTS"]:
        tensors, inputs, grad_tensors, _ = _carriers(tensors, inputs, grad_tensors)
    outputs = _listed(tensors)
    roots = _roots(outputs)
    seeds = seeds_for(outputs, grad_tensors, "backward")
    if create_graph:
        _warn_of_cycles()
    keep = create_graph if retain_graph is None else retain_graph
    targets = None
    if inputs is not None:
        inputs = _listed(inputs)
        if not inputs:
            raise errors.NoGraph("'inputs' argument to backward cannot be empty.")
        targets = dict.fromkeys(_target(t) for t in inputs)
        for t in inputs:
            if isinstance(t, Tensor):
                t.retain_grad()
    run(_level(outputs), roots, seeds, targets, keep, True, create_graph)


def _warn_of_cycles() -> None:
    """Say once that a leaf and a gradient with a history hold each other."""
    errors.warn_once("cycles", "Using backward() with create_graph=True makes a reference cycle of "
                     "a parameter and its gradient: memory may stay until the garbage collector "
                     "runs. autograd.grad() makes none; else set .grad to None after use.")


def _level(outputs: list) -> int:
    """The level that a sweep from these outputs runs on."""
    level = state.mode
    for t in outputs:
        own = t.node.level if t.__class__ is GradientEdge else level_own(t._payload)
        level = own if own > level else level
    return level


def _target(t) -> tuple:
    if t.__class__ is GradientEdge:
        return t.node, t.output_nr
    edge = edge_of(t)
    if edge.__class__ is Blind:  # nothing leads there: unused
        return Blind(), 0
    if edge is None:
        raise errors.NoGraph(
            errors.text(
                f"One of the differentiated Tensors does not require grad ({errors.user_line(2)})",
                f"tensor: {t.dtype.name}{list(t.shape)}",
                "call requires_grad_() on it before computing",
            )
        )
    return (edge.node, edge.number) if type(edge) is Port else (edge, 0)


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple:
    """Gradients of `outputs` with respect to `inputs`, returned instead of accumulated.

    `only_inputs` is accepted for old programs; nothing is ever accumulated.
    """
    if _asks and (taken := _taken_over(grad, locals())):
        return taken[0]
    if fast["PARTS"]:
        outputs, inputs, grad_outputs, closed = _carriers(outputs, inputs, grad_outputs)
        if closed is not None:
            return closed(grad(
                outputs, inputs, grad_outputs, retain_graph, create_graph, only_inputs,
                allow_unused, is_grads_batched, materialize_grads))
    outputs, inputs = _listed(outputs), _listed(inputs)
    if not inputs:
        raise errors.NoGraph(
            errors.text(
                f"`inputs` argument to `grad()` cannot be empty ({errors.user_line(2)})",
                cure="name the tensors whose gradients are wanted",
            )
        )
    if is_grads_batched:
        return _batched_grad(
            outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused,
            materialize_grads)
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, "
            "but got: allow_unused=False."
        )
    roots = _roots(outputs)
    seeds = seeds_for(outputs, grad_outputs, "sum")
    keys = [_target(t) for t in inputs]
    keep = create_graph if retain_graph is None else retain_graph
    captured = run(
        _level(outputs), roots, seeds, dict.fromkeys(keys), keep, False, create_graph
    )
    return tuple([_result(t, captured.get(key), allow_unused, materialize_grads, create_graph)
                  for t, key in zip(inputs, keys)])


def _carriers(outputs, inputs, gradients) -> tuple:
    """Tensors that are made of others, as those that have their history (`parts/`)."""
    from ..parts.carriers import carriers

    return carriers(outputs, inputs, gradients)


def _result(t, g: Tensor | None, unused: bool | None, materialize: bool, create: bool):
    """What `grad()` returns for one input: its gradient; zeros or None where none arrived."""
    if t.__class__ is GradientEdge:
        t = _stand_in(t)
        if t is None:
            if g is None and materialize:
                raise errors.GradientShapeError(errors.text(
                    "materialize_grads cannot be used when the given input is a GradientEdge "
                    f"made by hand, which has no shape ({errors.user_line(3)})",
                    cure="pass the tensor, or get_gradient_edge(tensor)"))
            if g is None and not unused:
                raise _unused("a GradientEdge")
            return g
    if g is None and materialize:
        g = ops.zeros_like(t)
        return g.requires_grad_() if create else g
    if g is None:
        if not unused:
            raise _unused(f"{t.dtype.name}{list(t.shape)}")
        return None
    if g._payload.shape != t._payload.shape or g._payload.dtype != t._payload.dtype:
        g = project(g, t._payload.shape, t._payload.dtype)
    return in_numbers(g)


def _unused(what: str) -> errors.UnusedInput:
    return errors.UnusedInput(
        errors.text(
            "One of the differentiated Tensors appears to not have been used in the graph "
            f"({errors.user_line(3)})",
            f"tensor: {what}",
            "Set allow_unused=True if this is the desired behavior (its gradient is then None)",
        )
    )


def _batched_grad(
    outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize
):
    """Gradients for a batch of seeds at once: one sweep below a batching level."""
    seeds = _listed(grad_outputs) if grad_outputs is not None else []
    if not seeds or any(g is None for g in seeds):
        raise errors.GradientShapeError(
            errors.text(
                f"is_grads_batched=True needs all grad_outputs ({errors.user_line(3)})",
                cure="give one batch of gradients per output, the batch dimension first",
            )
        )
    keep = create_graph if retain_graph is None else retain_graph
    with Vmap(seeds[0].shape[0]) as level:
        batch = [level.wrap(g) for g in seeds]
        found = grad(
            outputs, inputs, batch, keep, create_graph,
            allow_unused=allow_unused, materialize_grads=materialize,
        )
        return tuple(None if g is None else level.stacked(g) for g in found)


def as_gradient(value, like: Tensor) -> Tensor:
    """Check a value that a user assigns to `.grad`."""
    if value is None:
        return None
    if not isinstance(value, Tensor):
        raise TypeError(
            f"assigned grad expected to be a Tensor or None but got {type(value).__name__}"
        )
    if value is like:
        raise errors.GradientShapeError(
            f"can't assign Variable as its own grad ({errors.user_line(2)})"
        )
    if tuple(value.shape) != tuple(like.shape):
        raise errors.GradientShapeError(
            f"assigned grad has data of a different size: {list(value.shape)} for a tensor of "
            "shape "
            f"{list(like.shape)} ({errors.user_line(2)})"
        )
    if value.dtype is not like.grad_dtype:
        raise errors.GradientShapeError(
            f"assigned grad has data of a different type: {value.dtype} for {like.grad_dtype} "
            f"({errors.user_line(2)})"
        )
    return value


def floating(dtype: dt.DType) -> bool:
    """Can a tensor of this dtype require grad?"""
    return dtype.category >= 2


