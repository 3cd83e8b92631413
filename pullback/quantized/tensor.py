"""`QuantizedTensor`: integers that stand for numbers, `scale * (integer - zero_point)`.

Integers have no derivatives.  A tensor that was made with `straight_through=True` has a further
part, the numbers it stands for with the history of those it was made of; every operator acts on
both.  Read next: `elementwise.py`, `exact.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import errors
from ..array import dtype as dt
from ..array.layout import qscheme as schemes
from ..core.handle import Tensor
from ..formulas.quantize import dequantized
from ..parts import PartsTensor, layouts
from ..parts.rules import shown
from ..table.packets import ops

AFFINE, CHANNELS = schemes.known["per_tensor_affine"], schemes.known["per_channel_affine"]
FLOATING = schemes.known["per_channel_affine_float_qparams"]


class QuantizedTensor(PartsTensor):
    """A tensor of integers with a scale and a zero point, or with one of each for every channel."""

    title = "quantised"
    names = ("int_part", "scale_part", "zero_part", "through_part")
    facts = ("kind", "axis", "packed_shape")
    carrier = "through_part"
    cure = "x.dequantize() first"

    @classmethod
    def make(cls, integers: Tensor, scale: Tensor, zero_point: Tensor, dtype: Any,
             axis: int = -1, through: Tensor | None = None, storage: tuple | None = None):
        """`axis`: of the channels, -1 without; `storage`: the shape of what is packed in bytes."""
        t = cls.bare()
        t.int_part, t.scale_part, t.zero_part, t.through_part = integers, scale, zero_point, through
        t.kind, t.axis, t.packed_shape = dtype, axis, storage
        t.take_form(tuple(integers.shape) if storage is None else storage, dtype)
        return t

    def meta(self) -> tuple:
        return self.kind, self.axis, self.packed_shape

    @classmethod
    def join(cls, parts: dict, meta: tuple) -> QuantizedTensor:
        kind, axis, storage = meta
        return cls.make(parts["int_part"], parts["scale_part"], parts["zero_part"], kind, axis,
                        parts.get("through_part"), storage)

    def like(self, integers: Tensor, through: Tensor | None = None,
             axis: int | None = None) -> QuantizedTensor:
        """Other integers with the same parameters."""
        packed = self.packed_shape if integers.shape == self.int_part.shape else None
        return QuantizedTensor.make(integers, self.scale_part, self.zero_part, self.kind,
                                    self.axis if axis is None else axis, through, packed)

    def placed(self, integers: Tensor, through: Tensor | None = None) -> QuantizedTensor:
        """The same tensor of integers on another device, to which its parameters go, too."""
        scale, zero = (t.to(integers.device) for t in (self.scale_part, self.zero_part))
        return QuantizedTensor.make(integers, scale, zero, self.kind, self.axis, through,
                                    self.packed_shape)

    def become(self, other: QuantizedTensor) -> None:
        self.kind, self.axis, self.packed_shape = other.kind, other.axis, other.packed_shape
        super().become(other)

    def write_all(self, new: Any, name: str) -> None:
        """Become the result of an operator: in the same memory, that views see it."""
        from .exact import fitted

        if isinstance(new, QuantizedTensor) and new.shape == self.shape and (
                new.kind is self.kind):
            if new.through_part is None and self.through_part is None:
                self.int_part.copy_(new.int_part)
                if self.axis < 0 <= new.axis or not same_parameters(self, new):
                    self.scale_part, self.zero_part, self.axis = (
                        new.scale_part, new.zero_part, new.axis)
                return
        elif isinstance(new, Tensor) and not isinstance(new, QuantizedTensor):
            new = fitted(self, new)
        super().write_all(new, name)

    def of_each(self, dim: int, function: Callable[[Tensor, int], Tensor]) -> QuantizedTensor:
        """Examples lie along a dim of the integers; their scale is one, or one for each of them."""
        out = function(self.int_part, dim)
        inner = out.ndim < self.int_part.ndim
        place = dim % (self.ndim + (not inner))
        if inner and place == self.axis:
            raise errors.MappingError(errors.text(
                f"vmap: dim {dim} of a quantised tensor has a scale for each index "
                f"({errors.user_line(4)})", shown(self), "map another dim, or x.dequantize()"))
        axis = self.axis
        if axis >= 0:
            axis = axis - (place < axis) if inner else axis + (place <= axis)
        through = None if self.through_part is None else function(self.through_part, dim)
        scale, zero_point = self.scale_part, self.zero_part
        if not inner and any(getattr(t._payload, "interp", None) is not None
                             for t in (scale, zero_point)):  # of an example: channels then
            if axis >= 0:
                raise errors.MappingError(errors.text(
                    f"vmap: scales of channels differ between examples ({errors.user_line(4)})",
                    shown(self), "return x.dequantize()"))
            scale, zero_point, axis = function(scale, 0), function(zero_point, 0), place
        return QuantizedTensor.make(out, scale, zero_point, self.kind, axis, through)

    def any_operator(self, ov, flat: tuple):
        from .elementwise import on_numbers

        return on_numbers(self, ov, flat)

    # autograd ---------------------------------------------------------------------------------

    @property
    def values_with_history(self) -> Tensor:
        return self.int_part if self.through_part is None else self.through_part

    def with_carrier(self, values: Tensor) -> QuantizedTensor:
        if self.through_part is None:
            return self.like(values)
        return self.like(self.int_part, values)

    def detach(self):
        return self.like(self.int_part.detach())

    data = PartsTensor.data.getter(lambda self: self.like(self.int_part.data))

    @property
    def grad(self):
        return self.values_with_history.grad

    @grad.setter
    def grad(self, value) -> None:
        self.values_with_history.grad = value

    def cotangent(self, g: Tensor) -> Tensor:
        return g

    def requires_grad_(self, requires_grad: bool = True):
        if requires_grad and self.through_part is None:
            raise errors.DTypeError(errors.text(
                "only Tensors of floating point dtype can require gradients "
                f"({errors.user_line(2)})", shown(self),
                "quantize_per_tensor(..., straight_through=True) keeps the history of its input"))
        return self

    # facts --------------------------------------------------------------------------------------

    @property
    def dtype(self):
        return self.kind

    @property
    def is_quantized(self) -> bool:
        return True

    def qscheme(self):
        """How it is scaled."""
        if self.axis < 0:
            return AFFINE
        return FLOATING if self.zero_part.dtype.is_floating_point else CHANNELS

    def int_repr(self) -> Tensor:
        """The integers."""
        return self.int_part.detach().clone()

    def q_scale(self) -> float:
        """The scale of all numbers."""
        self._one("q_scale")
        return float(self.scale_part)

    def q_zero_point(self) -> int:
        """The integer that stands for zero."""
        self._one("q_zero_point")
        return int(self.zero_part)

    def _one(self, name: str) -> None:
        if self.axis >= 0:
            raise errors.RefusedValue(errors.text(
                "Expected quantizer->qscheme() == kPerTensorAffine to be true, but got false: "
                f"{name}() of a tensor with a scale for every channel ({errors.user_line(3)})",
                shown(self), f"x.q_per_channel_{name[2:]}s()"))

    def _each(self, name: str) -> None:
        if self.axis < 0:
            raise errors.RefusedValue(errors.text(
                "Expected quantizer->qscheme() == kPerChannelAffine to be true, but got false: "
                f"{name}() of a tensor with one scale ({errors.user_line(3)})",
                shown(self), "x.q_scale(), x.q_zero_point()"))

    def q_per_channel_scales(self) -> Tensor:
        """The scale of every channel."""
        self._each("q_per_channel_scales")
        return self.scale_part.clone()

    def q_per_channel_zero_points(self) -> Tensor:
        """The integer that stands for zero in every channel."""
        self._each("q_per_channel_zero_points")
        return self.zero_part.clone()

    def q_per_channel_axis(self) -> int:
        """The dim of the channels."""
        self._each("q_per_channel_axis")
        return self.axis

    def dequantize(self) -> Tensor:
        """The numbers that the integers stand for."""
        if self.through_part is not None:
            return ops.alias(self.through_part)
        return dequantized(unpacked(self), self.scale_part, self.zero_part,
                           self.axis if self.axis >= 0 else None)

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        return self.dequantize()

    def stride(self, dim: int | None = None):
        if self.packed_shape is None:
            return self.int_part.stride() if dim is None else self.int_part.stride(dim)
        steps = [math.prod(self.packed_shape[d + 1:]) for d in range(self.ndim)]  # one by one
        return tuple(steps) if dim is None else steps[dim]

    def storage_offset(self) -> int:
        return self.int_part.storage_offset()

    def data_ptr(self) -> int:
        return self.int_part.data_ptr()

    def is_contiguous(self, memory_format: Any = None) -> bool:
        if memory_format is None:
            return self.int_part.is_contiguous()
        return self.int_part.is_contiguous(memory_format=memory_format)

    def element_size(self) -> int:
        return self.kind.itemsize

    @property
    def itemsize(self) -> int:
        return self.kind.itemsize

    @property
    def nbytes(self) -> int:
        return self.numel() * self.kind.itemsize

    def is_signed(self) -> bool:
        raise errors.DTypeError(
            f"isSignedType not supported for quantized types ({errors.user_line(2)})")

    def type(self, dtype: Any = None, non_blocking: bool = False, **kwargs: Any):
        if dtype is not None:
            return super().type(dtype, non_blocking, **kwargs)
        return f"torch.quantized.{_TITLES[self.kind.name]}Tensor"

    def untyped_storage(self):
        return self.int_part.untyped_storage()

    def storage(self):
        """The memory of the integers."""
        return self.int_part.storage()

    def set_(self, source: Any = None, storage_offset: int = 0, size: Any = None,
             stride: Any = None):
        """Show the memory of another tensor, with its parameters, or some memory with one's own."""
        if isinstance(source, QuantizedTensor):
            given = (source.int_part,) if size is None else (
                source.int_part, storage_offset, size, stride)
            held = source
        else:
            given, held = (source, storage_offset, size, stride)[:1 if size is None else 4], self
        if held.axis >= 0 and size is not None:
            raise errors.RefusedValue(errors.text(
                "set_(): the channels of a tensor with a scale for each would be elsewhere "
                f"({errors.user_line(2)})", shown(held), held.cure))
        self.become(held.like(ops.empty((0,), dtype=held.int_part.dtype).set_(*given)))
        return self

    def share_memory_(self):
        self.int_part.share_memory_()
        return self

    def is_shared(self) -> bool:
        return self.int_part.is_shared()

    def item(self) -> Any:
        return self.dequantize().item()

    def __bool__(self) -> bool:
        return bool(self.dequantize())

    def __float__(self) -> float:
        return float(self.dequantize())

    def __int__(self) -> int:
        return int(self.dequantize())

    def tolist(self) -> list:
        return self.dequantize().tolist()

    def numpy(self, *, force: bool = False) -> Any:
        raise errors.ArgumentError(errors.text(
            f"numpy(): Got unsupported ScalarType {_TITLES[self.kind.name]} "
            f"({errors.user_line(2)})", shown(self),
            "x.int_repr().numpy(), or x.dequantize().numpy()"))

    def backward(self, gradient: Any = None, *args: Any, **kwargs: Any) -> None:
        from ..autograd.gradients import backward

        backward(self, gradient, *args, **kwargs)

    def __getitem__(self, key: Any):
        from .exact import on_integers

        return on_integers(self, lambda t: t[key], f"x[{key!r}]")

    def __iter__(self):
        return iter([self[k] for k in range(self.shape[0])])

    def __setitem__(self, key: Any, value: Any) -> None:
        from .exact import fitted

        if isinstance(value, QuantizedTensor):
            value = value.dequantize()
        elif not isinstance(value, Tensor):
            value = ops.full((), float(value))
        if self.packed_shape is not None:
            raise errors.DTypeError(errors.text(
                f"x[{key!r}] = ...: integers of {self.dtype} share bytes ({errors.user_line(2)})",
                shown(self), "quantise the numbers again: x.dequantize() first"))
        if self.axis < 0:
            self.int_part[key] = fitted(self, value.detach()).int_part
        else:  # what is written has the scales of the channels that it comes to lie in
            numbers = ops.zeros(self.shape)
            numbers[key] = value.detach()
            there = ops.zeros(self.shape, dtype=dt.bool_)
            there[key] = True
            self.int_part.copy_(ops.where(there, fitted(self, numbers).int_part, self.int_part))
        if self.through_part is not None:
            numbers = self.through_part.clone()
            numbers[key] = value
            self.through_part = numbers

    def to(self, *args: Any, **kwargs: Any):
        """The same tensor: on another device, or with its dtype."""
        given = [*args, *kwargs.values()]
        asked = [v for v in given if isinstance(v, dt.DType)]
        if any(v is not self.kind for v in asked):
            raise errors.DTypeError(errors.text(
                f"to(): a quantised tensor cannot become {asked[0]} ({errors.user_line(2)})",
                shown(self), "x.dequantize(), or x.int_repr()"))
        rest = [v for v in args if v is not self.kind]
        named = {k: v for k, v in kwargs.items() if v is not self.kind}
        if not rest and not named:
            return self
        integers = self.int_part.to(*rest, **named)
        return self if integers is self.int_part else self.placed(
            integers, None if self.through_part is None else self.through_part.to(*rest, **named))

    def cpu(self, memory_format: Any = None):
        return self.to("cpu")

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        from .printing import text

        return text(self)

    def __str__(self) -> str:
        return self.__repr__()

    def __format__(self, spec: str) -> str:
        return format(repr(self) if self.ndim else self.item(), spec)


_TITLES = {"qint8": "QInt8", "quint8": "QUInt8", "qint32": "QInt32", "quint4x2": "QUInt4x2",
           "quint2x4": "QUInt2x4"}


layouts.classes.update(dict.fromkeys(dt.QUANTIZED, QuantizedTensor))


def same_parameters(a: QuantizedTensor, b: QuantizedTensor) -> bool:
    """Do the integers of two tensors stand for the same numbers?"""
    return a.kind is b.kind and a.axis == b.axis and a.scale_part.shape == b.scale_part.shape and (
        bool((a.scale_part == b.scale_part).all()) and bool((a.zero_part == b.zero_part).all()))


def unpacked(t: QuantizedTensor) -> Tensor:
    """The integers one by one: several of the narrow dtypes are in one byte, the lowest first."""
    if t.packed_shape is None:
        return t.int_part
    bits = 4 if t.kind.name == "quint4x2" else 2
    pieces = [(t.int_part >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    flat = ops.stack(pieces, -1).reshape(-1)
    return flat[:t.numel()].reshape(t.packed_shape)
