"""Errors of kernels and array libraries are said in our words when an operator has failed.

Read next: `../errors.py`.
"""

from __future__ import annotations

from .. import errors
from ..core.handle import Tensor, tensors_in
from .dims import broadcast_shapes


def failure(ov, flat: tuple, error: Exception) -> Exception:
    """What to raise when an operator failed: the error itself, or the same in our words."""
    if isinstance(error, errors.PullbackError):
        errors.located(error, facts(ov, flat))
        if ov.is_composite and isinstance(error, errors.LayoutError):
            error.of(ov.op.base_name)
        return error
    if isinstance(error, (NotImplementedError, MemoryError)) or ov.custom:
        return error  # of a custom operator: the user's own function, its errors are the user's
    if ov.is_composite and not isinstance(
        error, (RuntimeError, LookupError, TypeError, ValueError)
    ):
        return error
    return translated(ov, flat, error)


def translated(ov, flat: tuple, error: Exception) -> Exception:
    """An error of an array library or a kernel in our words, of PyTorch's type."""
    state = facts(ov, flat)
    if isinstance(error, ValueError) and not ov.is_composite:  # what NumPy raises for shapes
        text = str(error)
        if "broadcast" in text:
            text = unbroadcastable([t._payload.shape for t in tensors_in(flat)]) or text
        return errors.named(errors.ShapeError, ov.op.base_name, text, state)
    return errors.translated(ov.op.base_name, error, state)


def unbroadcastable(shapes: list) -> str | None:
    """Why shapes do not broadcast, None if they do."""
    try:
        broadcast_shapes(*shapes)
    except RuntimeError as error:
        return str(error)
    return None


def facts(ov, flat: tuple) -> list[str]:
    """The tensors among the arguments, for the state part of a message."""
    return [
        f"{a.name}: {t.dtype.name}{list(t._payload.shape)}"
        for a, v in zip(ov.schema.args, flat)
        for t in (v if type(v) in (list, tuple) else (v,))
        if isinstance(t, Tensor)
    ]
