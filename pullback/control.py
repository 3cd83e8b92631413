"""`cond`: a branch that may depend on values a transform does not show."""

from __future__ import annotations

from collections.abc import Callable

from . import errors
from .core.handle import Tensor
from .core.pytree import tree_flatten, tree_unflatten
from .core.table import ops

__all__ = ["cond"]


def cond(pred: Tensor | bool, true_fn: Callable, false_fn: Callable, operands=()):
    """`true_fn(*operands)` if `pred` holds, else `false_fn(*operands)`.

    Where the value of `pred` is hidden, under `vmap` and in captured functions, both branches are
    computed and `where` chooses: they must then give tensors of the same shapes and dtypes.
    """
    if not isinstance(pred, (bool, Tensor)):
        raise errors.RefusedValue(f"Expected pred to be bool or tensor, but got {pred!r}. "
                                  f"({errors.user_line(2)})")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise errors.RefusedValue(f"Expected pred to be bool or single-element tensor, but got "
                                  f"{list(pred.shape)} ({errors.user_line(2)})")
    if not callable(true_fn) or not callable(false_fn):
        raise errors.RefusedValue(f"Expect both branches to be callable ({errors.user_line(2)})")
    try:
        chosen = bool(pred)
    except errors.DataDependentError:
        return _both(pred, true_fn(*operands), false_fn(*operands))
    return true_fn(*operands) if chosen else false_fn(*operands)


def _both(pred: Tensor, one, two):
    left, spec = tree_flatten(one)
    right, other = tree_flatten(two)
    facts = [[(tuple(t.shape), t.dtype) if isinstance(t, Tensor) else type(t) for t in side]
             for side in (left, right)]
    if spec != other or facts[0] != facts[1]:
        raise errors.TransformError(errors.text(
            f"the branches of cond() give different things ({errors.user_line(3)}), and which one "
            "runs is not known here", [f"true: {facts[0]}", f"false: {facts[1]}"],
            "let both give tensors of the same shapes and dtypes"))
    flag = pred.reshape(())
    return tree_unflatten([ops.where(flag, a, b) for a, b in zip(left, right)], spec)
