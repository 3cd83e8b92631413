"""What operators do to the integers of a quantised tensor: moving, ordering and writing elements.

Nothing is rounded, and the parameters stay.  Where channels have scales of their own, these follow
their channels.  Read next: `elementwise.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import errors
from ..array import dtype as dt
from ..core.handle import Tensor
from ..parts.rules import rule, shown
from ..table.packets import ops
from .tensor import QuantizedTensor, same_parameters


def on_integers(t: QuantizedTensor, function: Callable, what: str) -> Any:
    """The results of a function that moves elements, on integers and on numbers with history."""
    if t.packed_shape is not None:
        raise errors.DTypeError(errors.text(
            f"{what}: integers of {t.dtype} share bytes ({errors.user_line(3)})", shown(t), t.cure))
    found = function(t.int_part)
    if t.axis >= 0:
        return _with_channels(t, function, found, what)
    through = None if t.through_part is None else function(t.through_part)
    return _each(t, found, through)


def _each(t: QuantizedTensor, found: Any, through: Any) -> Any:
    """Integers among results as quantised tensors; what has another dtype is left alone."""
    if isinstance(found, Tensor):
        return t.like(found, through) if found.dtype is t.int_part.dtype else found
    made = [_each(t, f, None if through is None else through[k]) for k, f in enumerate(found)]
    return type(found)(*made) if hasattr(found, "_fields") else type(found)(made)


def _with_channels(t: QuantizedTensor, function: Callable, found: Any, what: str) -> Any:
    """The same, with the parameters of those channels that are where they were put."""
    shape = [1] * t.ndim
    shape[t.axis] = -1
    channels = ops.arange(t.shape[t.axis], device=t.device).reshape(shape)
    where = function(channels.expand(t.shape).contiguous())
    through = None if t.through_part is None else function(t.through_part)
    if isinstance(found, Tensor):
        return _channelled(t, found, where, through, what)
    return type(found)([_channelled(t, f, w, None if through is None else through[k], what)
                        for k, (f, w) in enumerate(zip(found, where))])


def _channelled(t: QuantizedTensor, found: Tensor, where: Tensor, through: Any, what: str):
    flat = where.reshape(-1)
    if found.numel() and t.shape[t.axis] > 1 and bool((flat == flat[0]).all()):  # of one channel
        at = int(flat[0])
        return QuantizedTensor.make(found, t.scale_part[at], t.zero_part[at], t.kind, -1, through)
    for axis in range(found.ndim):
        first = where
        for d in range(found.ndim):
            if d != axis:
                first = first.narrow(d, 0, 1)
        if found.numel() and (where == first).all() and found.shape[axis] == t.shape[t.axis] or (
                bool((where == first).all()) and found.shape[axis] > 1):
            at = first.reshape(-1)
            return QuantizedTensor.make(found, t.scale_part[at], t.zero_part[at], t.kind, axis,
                                        through)
    raise errors.RefusedValue(errors.text(
        f"{what}: channels with different scales would lie in no dim of their own "
        f"({errors.user_line(4)})", shown(t), t.cure))


def ordered(t: QuantizedTensor, function: Callable, what: str) -> Any:
    """The results of a function that chooses elements by their order."""
    if t.axis >= 0 or t.packed_shape is not None:
        raise errors.RefusedValue(errors.text(
            f"{what}: integers of channels with different scales have no order "
            f"({errors.user_line(3)})", shown(t), t.cure))
    found = function(t.int_part)
    return _each(t, found, None if t.through_part is None else function(t.through_part))


def fitted(t: QuantizedTensor, numbers: Tensor) -> QuantizedTensor:
    """Numbers in the shape of a tensor, or a broadcast one, with its parameters."""
    from .construct import rounded

    return rounded(numbers.to(dt.float32), t.scale_part, t.zero_part, t.kind, t.axis,
                   t.through_part is not None)


@rule(QuantizedTensor, "equal")
def equal(a: Any, b: Any) -> bool:
    """Have two tensors the same parameters and integers?"""
    if not (isinstance(a, QuantizedTensor) and isinstance(b, QuantizedTensor)):
        return False
    return a.shape == b.shape and same_parameters(a, b) and ops.equal(a.int_part, b.int_part)


@rule(QuantizedTensor, "cat")
def cat(tensors: Any, dim: int = 0):
    """Integers side by side where parameters agree; else numbers, rounded as the first ones."""
    first = tensors[0]
    if not isinstance(first, QuantizedTensor) or first.axis >= 0 or not all(
            isinstance(t, QuantizedTensor) and t.through_part is None and same_parameters(first, t)
            for t in tensors):
        return NotImplemented
    return first.like(ops.cat([t.int_part for t in tensors], dim))


@rule(QuantizedTensor, "copy_")
def copy_(self: Any, src: Any, non_blocking: bool = False):
    """Writes numbers, or integers with their parameters, into a tensor."""
    if not isinstance(self, QuantizedTensor):
        raise errors.DTypeError(errors.text(
            "copy_: a tensor of plain numbers cannot take a quantised one "
            f"({errors.user_line(2)})", shown(self), "copy_(x.dequantize())"))
    if not isinstance(src, QuantizedTensor):
        if src.dtype is not dt.float32:
            raise errors.DTypeError(
                f"Quantized copy only works with kFloat as source Tensor, got {src.dtype} "
                f"({errors.user_line(2)})")
        new = fitted(self, src.expand(self.shape))
    else:
        if src.kind is not self.kind or (src.axis < 0) != (self.axis < 0):
            raise errors.DTypeError(errors.text(
                "Quantized Copy only works with same quantization scheme and dtype "
                f"({errors.user_line(2)})", f"{self.qscheme()}, {self.dtype} and "
                f"{src.qscheme()}, {src.dtype}"))
        new = src
        self.scale_part, self.zero_part, self.axis = src.scale_part, src.zero_part, src.axis
    self.int_part.copy_(new.int_part)
    self.through_part = new.through_part
    return self


@rule(QuantizedTensor, "_to_copy")
def to_copy(t: QuantizedTensor, dtype: Any = None, layout: Any = None, device: Any = None,
            *rest: Any):
    """A copy, on another device; there is none of another dtype."""
    if dtype is not None:
        raise errors.DTypeError(errors.text(
            f"to(): a quantised tensor cannot become {dtype} ({errors.user_line(2)})", shown(t),
            "x.dequantize(), or x.int_repr()"))
    through = None if t.through_part is None else t.through_part.to(device)
    return t.placed(t.int_part.to(device, copy=True), through)


@rule(QuantizedTensor, "empty")
def empty(size: Any, dtype: Any = None, layout: Any = None, device: Any = None,
          pin_memory: Any = None, memory_format: Any = None):
    """A tensor with scale 1 and zero point 0, which `copy_` or `set_` replace."""
    return _unscaled(ops.empty(size, dtype=dt.by_name(dtype.numbers), device=device,
                               memory_format=memory_format), dtype)


@rule(QuantizedTensor, "empty_strided")
def empty_strided(size: Any, stride: Any, dtype: Any = None, layout: Any = None,
                  device: Any = None, pin_memory: Any = None):
    """A tensor with given strides, scale 1 and zero point 0."""
    return _unscaled(ops.empty_strided(size, stride, dtype=dt.by_name(dtype.numbers),
                                       device=device), dtype)


def _unscaled(integers: Tensor, kind: dt.Quantized) -> QuantizedTensor:
    if kind.name.endswith(("x2", "x4")):
        raise errors.DTypeError(errors.text(
            f"empty(): integers of {kind} share bytes ({errors.user_line(4)})",
            cure="torch._empty_affine_quantized, torch.quantize_per_channel"))
    return QuantizedTensor.make(integers, ops.ones((), dtype=dt.float64),
                                ops.zeros((), dtype=dt.int64), kind)


@rule(QuantizedTensor, "empty_like")
def empty_like(t: Tensor, dtype: Any = None, layout: Any = None, device: Any = None,
               pin_memory: Any = None, memory_format: Any = None):
    """A tensor of the same shape, with the same parameters unless it is to have another dtype."""
    if not isinstance(t, QuantizedTensor):
        return empty(tuple(t.shape), dtype, device=device)
    if dtype is not None and dtype is not t.kind:
        return ops.empty_like(t.int_part, dtype=dtype, device=device, memory_format=memory_format)
    integers = ops.empty_like(t.int_part, device=device, memory_format=memory_format)
    return QuantizedTensor.make(integers, t.scale_part, t.zero_part, t.kind, t.axis,
                                storage=t.packed_shape)


@rule(QuantizedTensor, "view.dtype")
def view_dtype(t: QuantizedTensor, dtype: Any):
    """The integers, in the dtype that their bytes are to be read as."""
    return t if dtype is t.kind else t.int_part.view(dtype)


@rule(QuantizedTensor, "resize_")
def resize_(t: QuantizedTensor, size: Any, memory_format: Any = None):
    """Another shape in the same memory, which grows if it must."""
    if t.axis >= 0 or t.packed_shape is not None or t.requires_grad:
        raise errors.RefusedValue(errors.text(
            f"resize_: Can only resize quantized tensors with per-tensor schemes, without history "
            f"({errors.user_line(3)})", shown(t), "resize a clone() of x.dequantize().detach()"))
    t.int_part.resize_(tuple(size), memory_format=memory_format)
    t.through_part = None
    t.take_form(tuple(t.int_part.shape), t.kind)
    return t
