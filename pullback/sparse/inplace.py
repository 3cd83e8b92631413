"""In-place operators of sparse tensors, and of dense ones with sparse operands.

What acts on the values alone writes into their memory, so that `values()` that was asked before
shows it; with other results the tensor becomes the result.
"""

from __future__ import annotations

from typing import Any

from .. import errors
from ..array import dtype as dt
from ..core import surface
from ..core.handle import tensors_in
from ..core.stack import bind
from ..parts.rules import rule, shown
from ..threads.state import state
from .elementwise import keeps_zero, like
from .products import mm, mv
from .tensor import Coo, SparseTensor
from .unspecified import in_another_layout


def write(ov, flat: tuple):
    """`x.op_(...)` where `x` or an operand is sparse."""
    x = flat[0]
    if not isinstance(x, SparseTensor):
        if ov.kind != "pointwise":
            return NotImplemented
        return surface.inplace(ov, tuple([
            v.to_dense() if isinstance(v, SparseTensor) else v for v in flat]))
    if _by_values(ov, flat):
        values, rest = x.values_part, x.rest
        surface.inplace(ov, (values, *flat[1:]))
        if rest is not None:
            others = flat[1:]
            x.rest = rest._replace(find=lambda: bind(ov, (rest.find(), *others)))
        return x
    name = ov.op.base_name
    if ov.kind == "view":  # another shape
        x.write_all(bind(ov, flat), name)
        return x
    if ov.kind == "random":  # what is there, anew
        x.write_all(x.with_carrier(bind(ov, (x.values_part, *flat[1:]))), name)
        return x
    if state.record[state.mode]:  # the operator may keep values that are written then
        kept = x.with_carrier(x.values_part.clone())
        flat = (in_another_layout(kept, x), *flat[1:])
    x.write_all(fitted(x, bind(ov, flat), name), name)
    return x


def _by_values(ov, flat: tuple) -> bool:
    """Does an operator write the values of a tensor and nothing else?"""
    x = flat[0]
    if ov.kind != "pointwise" or ov.is_random or len(list(tensors_in(flat[1:]))) or (
            isinstance(x, Coo) and not x.coalesced and not x._nnz() < 2):
        return False
    link = x.values_part._link
    if link is not None and state.record[-1] and link.base.is_leaf and link.base.requires_grad:
        return False  # values that are to have a gradient keep their memory
    return keeps_zero(ov, flat)


def fitted(x: SparseTensor, new: Any, name: str) -> SparseTensor:
    """The result of an operator as what a tensor can become: of its shape, dtype and layout."""
    if not isinstance(new, SparseTensor):
        raise errors.LayoutError(errors.text(
            f"{name}_: the result would be dense ({errors.user_line(4)})", shown(x),
            f"use the operator without underscore, {name}()"))
    if tuple(new.shape) != tuple(x.shape):
        raise errors.ShapeError(errors.text(
            f"{name}_: output with shape {list(x.shape)} doesn't match the broadcast shape "
            f"{list(new.shape)} ({errors.user_line(4)})",
            cure=f"use the out-of-place {name}()"))
    if not dt.can_cast(new.dtype, x.dtype):
        raise errors.DTypeError(errors.text(
            f"{name}_: result type {new.dtype.name} can't be cast to the desired output type "
            f"{x.dtype.name} ({errors.user_line(4)})",
            cure=f"convert the tensor first, or use the out-of-place {name}()"))
    if new.dtype is not x.dtype:
        new = new.with_carrier(new.values_part.to(x.dtype))
    if type(new) is not type(x):
        from .convert import to_coo

        new = like(x, to_coo(new).coalesce())
    return new


def _written(name: str, full: str):
    """A rule for a product that is added to a dense tensor in place."""

    def written(c: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1):
        if isinstance(c, SparseTensor):
            return NotImplemented
        product = (mm if name == "addmm" else mv)(a, b)
        if isinstance(product, SparseTensor):
            product = product.to_dense()
        if beta == 0:
            return c.copy_(product * alpha)
        return (c if beta == 1 else c.mul_(beta)).add_(product, alpha=alpha)

    return rule(SparseTensor, full)(written)


_written("addmm", "addmm_")
_written("addmv", "addmv_")
