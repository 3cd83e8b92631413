"""`cond`: a branch, decided by a value that a capture need not know."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from .. import errors
from ..core.handle import Tensor
from ..func.vmap import vmap
from ..interp.functionalize import Functionalize
from ..interp.trace import Trace
from ..pytree import tree_flatten, tree_unflatten
from ..symbolic.number import SymBool
from ..table.packets import ops
from ..threads.state import state
from .derivatives import asked, pull_back, push_forward, pushed_through, quiet, remember
from .nodes import OfGraphs, closed, emitted
from .subgraph import Body, HigherOrder, capture, floats, results_of, visible, with_those


def cond(
    pred: Tensor | bool | SymBool, true_fn: Callable, false_fn: Callable, operands: Any = ()
) -> Any:
    """`true_fn(*operands)` if `pred` holds, else `false_fn(*operands)`.

    In a captured function this is a node with both branches as graphs, one of which runs.  Under
    `vmap` over `pred` both are computed and `where` chooses: values, and gradients of each example.
    In either case they must give tensors of the same shapes and dtypes.  A question about sizes
    that vary stays one in graphs to keep.
    """
    pred = _decided(pred)
    if not isinstance(pred, (bool, int, float, Tensor, SymBool)):
        raise errors.RefusedValue(f"Expected pred to be bool or tensor, but got {pred!r}. "
                                  f"({errors.user_line(2)})")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise errors.RefusedValue("Expected pred to be bool or single-element tensor, but got "
                                  f"{list(pred.shape)} ({errors.user_line(2)})")
    if not callable(true_fn) or not callable(false_fn):
        raise errors.RefusedValue(f"Expect both branches to be callable ({errors.user_line(2)})")
    flat, spec = tree_flatten(operands)
    if not isinstance(operands, (tuple, list)) or not all(isinstance(t, Tensor) for t in flat):
        raise errors.RefusedValue(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only consists "
            f"of tensor leaves ({errors.user_line(2)})")
    seen = _visible(pred)
    if seen == "value":
        if not isinstance(pred, Tensor) and getattr(state.stack[state.mode], "exports", False):
            warnings.warn(
                "Pred is a Python constant. When used with torch.cond, it specializes on one of the"
                " branches: make it a tensor, or a question about sizes that vary, to keep both.",
                UserWarning, stacklevel=2)
        return true_fn(*operands) if pred else false_fn(*operands)
    if seen == "fake" or seen == "batched" and not any(state.record):
        return _both(pred, true_fn(*operands), false_fn(*operands))

    def on_leaves(function: Callable) -> Callable:
        return lambda *leaves: function(*tree_unflatten(list(leaves), spec))

    branches = on_leaves(true_fn), on_leaves(false_fn)
    bodies, extras = capture(branches, (flat, flat), "a branch of cond()", (tuple, tuple))
    one, two = bodies
    if one.spec != two.spec or one.facts != two.facts:
        raise _different(one.facts, two.facts)
    if seen == "batched" and not all(map(_says_all, bodies)):
        return _chosen(pred, *branches, flat)
    found = iter(_run(pred, one.module, two.module, (*flat, *extras)))
    out = [next(found) if isinstance(v, Tensor) else v for v in one.leaves]
    return tree_unflatten(out, one.spec)


def _decided(pred: Any) -> Any:
    """A question about sizes is answered here, with a guard, unless the graph is to keep it."""
    if not isinstance(pred, SymBool):
        return pred
    levels = [level for level in state.stack if isinstance(level, Trace)]
    if not levels or levels[-1].recorder.sizes is None or any(
            level.adopts and not getattr(level, "exports", False) for level in levels):
        return bool(pred)
    return pred


def _visible(pred: Any) -> str:
    if isinstance(pred, Tensor):
        return visible(pred)
    return "hidden" if isinstance(pred, SymBool) else "value"


def _different(one: list, two: list) -> Exception:
    return errors.TransformError(errors.text(
        f"the branches of cond() give different things ({errors.user_line(3)}), and which one "
        "runs is not known here", [f"true: {one}", f"false: {two}"],
        "let both give tensors of the same shapes and dtypes"))


def _both(pred: Tensor, one: Any, two: Any) -> Any:
    """The results of both branches, and which of them counts for each example."""
    left, spec = tree_flatten(one)
    right, other = tree_flatten(two)
    facts = [[(tuple(t.shape), t.dtype) if isinstance(t, Tensor) else t for t in side]
             for side in (left, right)]
    if spec != other or facts[0] != facts[1]:
        raise _different(*facts)
    if visible(pred) == "fake":
        return one
    flag = pred.reshape(())
    return tree_unflatten(
        [ops.where(flag, a, b) if isinstance(a, Tensor) else a for a, b in zip(left, right)], spec)


def _tracked(t: Tensor) -> bool:
    """Has a tensor a history, on any level?"""
    while t._edge is None and hasattr(t._payload, "inner"):
        t = t._payload.inner
    return t._edge is not None


def _says_all(body: Body) -> bool:
    """Does the graph of a branch have the derivatives of the branch, in both modes?"""
    module = body.module
    return not (module.meta["not_followed"] or any(n.meta.get("cut") for n in module.graph.nodes))


def _chosen(pred: Tensor, true_fn: Callable, false_fn: Callable, operands: Sequence) -> Any:
    """Both branches are computed; each example has the value and the gradients of its own."""
    flag = pred.reshape(())
    return _both(pred, true_fn(*_taking(flag, operands, True)),
                 false_fn(*_taking(flag, operands, False)))


def _taking(flag: Tensor, operands: Sequence[Tensor], side: bool) -> list[Tensor]:
    """Operands that send gradients on for those examples only which take a branch.

    Each example gets its own copy of a tensor that all share: sums over examples would contain
    what the branch gives for the others, and 0 times an infinite derivative is no number.
    """
    def masked(t: Tensor) -> Tensor:
        bare = t.detach()
        return ops.where(flag, t, bare) if side else ops.where(flag, bare, t)

    return [masked(t) if _tracked(t) else t for t in operands]


def _run(pred: Tensor | bool | SymBool, true_fn: Callable, false_fn: Callable,
         operands: Sequence[Tensor] = ()) -> tuple:
    """The operator on flat tensors: `ops.higher_order.cond`."""
    pred = _decided(pred)
    seen = _visible(pred)
    if seen == "value":
        return tuple((true_fn if pred else false_fn)(*operands))
    if seen != "hidden":
        return tuple(_chosen(pred, true_fn, false_fn, operands))
    return _Cond.apply(pred, (true_fn, false_fn), *operands)


operator = HigherOrder("cond", _run)


class _Cond(OfGraphs):
    """The operator where the value is hidden; derivatives and batches of it are such operators."""

    @staticmethod
    def forward(pred, branches, *operands):
        level = state.stack[state.mode]
        if isinstance(level, Functionalize):
            return level.handed_on(_run, pred, *branches, operands)
        if not isinstance(level, Trace):
            return _run(pred, *branches, operands)
        modules = closed(branches, (operands, operands), "a branch of cond()",
                         (tuple, tuple), level)
        return emitted(level, operator, ("true_graph", "false_graph"), modules, (*operands, pred),
                       lambda graphs, v: (v[-1], *graphs, tuple(v[:-1])),
                       lambda: results_of(modules[0]))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.pred, ctx.branches, *kept = inputs
        if isinstance(ctx.pred, Tensor):
            ctx.pred, kept = None, [ctx.pred, *kept]
        remember(ctx, kept, output)

    @staticmethod
    def backward(ctx, *grads):
        pred, operands = _saved(ctx)
        wanted = [i for i in floats(operands) if ctx.needs_input_grad[i + 2]]
        count, moving = len(operands), asked(ctx.moving, grads)

        def pulled(branch: Callable) -> Callable:
            return lambda *v: pull_back(branch, v[:count], wanted, moving, v[count:])

        found = operator(pred, *map(pulled, map(quiet, ctx.branches)),
                         (*operands, *[grads[i] for i in moving]))
        return None, None, *with_those([None] * count, wanted, found)

    @staticmethod
    def jvp(ctx, *tangents):
        pred, operands = _saved(ctx)
        places = [i for i in floats(operands) if tangents[i + 2] is not None]
        count, moving = len(operands), ctx.moving

        def pushed(branch: Callable) -> Callable:
            return lambda *v: push_forward(branch, v[:count], places, moving, v[count:])

        found = operator(pred, *map(pushed, map(pushed_through, ctx.branches)),
                         (*operands, *[tangents[i + 2] for i in places]))
        return tuple(with_those([None] * ctx.count, moving, found))

    @staticmethod
    def vmap(info, in_dims, pred, branches, *operands):
        dims = in_dims[2:]
        batched = [d is not None for d in dims]

        def mapped(branch: Callable) -> Callable:
            if not any(batched):
                return branch
            return vmap(branch, in_dims=dims, randomness=info.randomness)

        out = operator(pred, *map(mapped, branches), operands)
        return tuple(out), (0 if any(batched) else None,) * len(out)


def _saved(ctx: Any) -> tuple:
    kept = list(ctx.saved_tensors)
    return kept.pop(0) if ctx.pred is None else ctx.pred, kept
