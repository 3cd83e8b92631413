"""Helpers of those who write rules for functions under transforms (`_functorch.autograd_function`).

The rules themselves are in `../autograd/levels.py`, which needs none of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from .. import errors
from ..core.handle import Tensor
from ..table.packets import ops

enable_single_level_autograd_function = nullcontext  # `_SingleLevelFunction` is always allowed


class WrappedCtx:
    """A context that stands for another one: what is not its own is read from and put there."""

    _pt_reserved_attrs: tuple[str, ...] = ("_pt_reserved_attrs", "_pt_inner_ctx")

    def __init__(self, ctx: Any) -> None:
        if not isinstance(ctx, WrappedCtx):
            taken = [name for name in type(self)._pt_reserved_attrs if hasattr(ctx, name)]
            if taken:
                raise errors.TransformError(errors.text(
                    f"name collision: the context has an attribute {taken[0]!r} of its own, which "
                    f"{type(self).__name__} needs ({errors.user_line(2)})",
                    cure="give it another name"))
        object.__setattr__(self, "_pt_inner_ctx", ctx)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pt_inner_ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in type(self)._pt_reserved_attrs:
            object.__setattr__(self, name, value)
        else:
            setattr(self._pt_inner_ctx, name, value)


class CtxWithSavedTensors(WrappedCtx):
    """A context with other saved tensors, whatever they are."""

    _pt_reserved_attrs = ("_pt_new_saved_tensors", *WrappedCtx._pt_reserved_attrs)

    def __init__(self, ctx: Any, new_saved_tensors: Any) -> None:
        super().__init__(ctx)
        object.__setattr__(self, "_pt_new_saved_tensors", new_saved_tensors)

    @property
    def saved_tensors(self) -> Any:
        """What was given."""
        return self._pt_new_saved_tensors


def reductify_leaf(
    grad_input: Tensor | None, grad_input_bdim: int | None, input_bdim: int | None,
    batch_size: int, target_shape_without_bdim_to_reduce_to: Sequence[int] | None = None,
) -> Tensor | None:
    """A gradient with the hidden dimension where the input has it; summed where it has none.

    `target_shape_without_bdim_to_reduce_to`: the shape of one example of the input, if it was
    broadcast.
    """
    if grad_input is None:
        return None
    if grad_input_bdim is None and input_bdim is None:
        return grad_input
    if grad_input_bdim is None:
        grad_input = grad_input.unsqueeze(0).expand(batch_size, *grad_input.shape)
    else:
        grad_input = ops.movedim(grad_input, grad_input_bdim, 0)
    if input_bdim is None:
        return grad_input.sum(0)
    if target_shape_without_bdim_to_reduce_to is not None:
        shape = tuple(target_shape_without_bdim_to_reduce_to)
        extra = grad_input.ndim - 1 - len(shape)
        grad_input = grad_input.sum_to_size(batch_size, *(1,) * extra, *shape)
        grad_input = grad_input.reshape(batch_size, *shape)
    return ops.movedim(grad_input, 0, input_bdim)
