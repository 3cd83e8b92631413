"""Runs hooks in a sweep: those of leaves, of tensors, of nodes before and after.

Read next: `../tensor/hooks.py`, where they are registered; `engine.py`, which calls them.
"""

from __future__ import annotations

from .. import errors
from ..core.handle import Tensor, meta_of
from ..core.tape import Node, Port


def run_accumulated_hooks(leaf: Tensor) -> None:
    """Hooks of a leaf whose `.grad` is complete."""
    for hook in list(leaf._record.post_hooks.values()):
        if hook(leaf) is not None:
            raise errors.RefusedValue(errors.text(
                "Tensor post accumulate grad hooks should return None.",
                f"hook: {_name(hook)}", "change .grad itself"))


def _name(hook) -> str:
    return getattr(hook, "__name__", type(hook).__name__)


def _checked(hook, new, old):
    """What a hook returned in place of a gradient."""
    if new is None:
        return old
    if not isinstance(new, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(new).__name__}'")
    if old is None:
        raise errors.GradientShapeError("can't replace a None gradient with a non-None value")
    if new._payload.shape != old._payload.shape:
        raise errors.GradientShapeError(
            errors.text(
                f"hook '{_name(hook)}' has changed the size of value",
                f"it got shape {list(old.shape)} and returned {list(new.shape)}",
                "return a gradient of the same shape, or None to leave it as it is",
            )
        )
    if new._payload.dtype != old._payload.dtype:
        raise errors.GradientShapeError(
            errors.text(
                f"hook '{_name(hook)}' has changed the type of value (was {old.dtype} got "
                f"{new.dtype})",
                cure="return a gradient of the same dtype, or None to leave it as it is",
            )
        )
    return new


def run_tensor_hooks(node: Node, grads: list) -> None:
    """Hooks of tensors; they may replace gradients. Those that keep a gradient come last."""
    tables = node.hooks
    for number, hooks in tables.get("tensor", {}).items():
        for hook in list(hooks.values()):
            if grads[number] is None:
                break
            grads[number] = _checked(hook, hook(grads[number]), grads[number])
    for number, keepers in tables.get("retain", {}).items():
        if grads[number] is not None:
            for ref in list(keepers):
                t = ref()
                if t is not None and _arrives(t, node, number):
                    _keep(t, grads[number])


def _arrives(t: Tensor, node: Node, number: int) -> bool:
    """Is this where the tensor's gradient goes, still?"""
    edge = t._edge
    return edge.node is node and edge.number == number if type(edge) is Port else edge is node


def _keep(t: Tensor, g: Tensor) -> None:
    meta = meta_of(t)
    if meta.grad is not None:
        meta.grad = meta.grad + g
    else:
        meta.grad = g if g._edge is not None else g.clone()


def run_pre_hooks(node: Node, grads: list) -> None:
    """Hooks of the node before it runs; they may replace the gradients of its outputs."""
    for hook in list(node.hooks.get("pre", {}).values()):
        new = hook(tuple(grads))
        if new is not None:
            grads[:] = _replaced(hook, new, grads)


def run_post_hooks(node: Node, results, grads):
    """Hooks of the node after it ran; they may replace the gradients of its inputs."""
    for hook in list(node.hooks.get("post", {}).values()):
        new = hook(tuple(results), tuple(grads))
        if new is not None:
            results = _replaced(hook, new, results)
    return results


def _replaced(hook, new, old) -> list:
    new = [new] if isinstance(new, Tensor) else list(new)
    if len(new) != len(old):
        raise errors.GradientShapeError(
            f"hook '{_name(hook)}' has returned an incorrect number of values (got {len(new)}, "
            f"but expected {len(old)})"
        )
    return [None if n is None else _checked(hook, n, o) for n, o in zip(new, old)]
