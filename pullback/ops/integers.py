"""Arithmetic of quantised tensors on their parts: `quantized/` composes everything of these.

Rounding to integers, products of small integers, and the linear layer that quantises its input by
itself.  The first two have no derivatives; the last has that of the layer with the weight that the
integers stand for.
"""

from __future__ import annotations

import numpy as np

from ..array import dtype as dt
from ..core.op import Op
from ..errors import DTypeError, RefusedValue, ShapeError
from ..table.packets import ops
from .integer_products import dynamic_linear, input_parameters, integer_products, rounded

STRAIGHT_THROUGH = ("pullback", "second_order", "pushforward")  # not slopes of rounded values


class OfIntegers(Op):
    """An operator whose result is integers."""

    promote = "keep"
    function = method = False
    kept = "kernel"


class _quantized_integers(OfIntegers):
    """The integers that stand for numbers: `self / scale + zero_point`, rounded and cut off."""

    schema = ("_quantized_integers(Tensor self, Tensor scale, Tensor zero_point, int axis,"
              " int low, int high, ScalarType dtype) -> Tensor")
    memory_format = "channels"
    nondiff = ("self", "scale", "zero_point")

    def run(xp, self, scale, zero_point, axis, low, high, dtype):
        return rounded(xp, self, scale, zero_point, axis, low, high).astype(dtype.np)

    def shape(self, scale, zero_point, axis, low, high, dtype):
        return tuple(self.shape)

    def dtype(self, scale, zero_point, axis, low, high, dtype):
        return dtype

    def batch(n, batched, self, scale, zero_point, axis, low, high, dtype):
        if not any(batched[1:3]):
            axis = axis if axis < 0 else axis + 1
            return ops._quantized_integers(self, scale, zero_point, axis, low, high, dtype)
        return each(ops._quantized_integers, n, batched, self, scale, zero_point, axis, low, high,
                    dtype)

    def samples(s):
        one = s.values([0.1])[0].float(), s.values([3])[0].long()
        yield s(s.real(3, 4).float(), *one, -1, 0, 255, dt.uint8)
        yield s(s.real(3, 4).float(), s.values([0.1, 0.2, 0.3]).float(),
                s.values([3, 0, 1]).long(), 0, -128, 127, dt.int8)
        yield s(s.real(0, 4).float(), *one, -1, 0, 255, dt.uint8)


def each(function, n: int, batched, *args):
    """The results of a function for every element of a batch."""
    def of(k):
        return function(*[a.select(0, k) if b else a for a, b in zip(args, batched)],
                        *args[len(batched):])

    return ops.stack([of(k) for k in range(n)])


class _input_parameters(OfIntegers):
    """The scale and zero point with which integers just reach all numbers."""

    schema = "_input_parameters(Tensor self, int least, int most) -> (Tensor, Tensor)"
    nondiff = ("self",)
    cost = "reduce"

    def run(xp, self, least, most):
        low, high = (float(self.min()), float(self.max())) if self.size else (0.0, 0.0)
        scale, zero_point = input_parameters(low, high, least, most)
        return xp.asarray(scale, dtype=xp.float64), xp.asarray(zero_point, dtype=xp.int64)

    def shape(self, least, most):
        return [(), ()]

    def dtype(self, least, most):
        return [dt.float64, dt.int64]

    def batch(n, batched, self, least, most):
        each_one = [ops._input_parameters(self.select(0, k), least, most) for k in range(n)]
        return tuple([ops.stack(parts) for parts in zip(*each_one)])

    def samples(s):
        yield s(s.real(3, 4).float(), 0, 255)
        yield s(s.real(2).float(), -128, 127)


class _integer_products(OfIntegers):
    """`self @ other.T` of matrices of 8-bit integers, summed in int32."""

    schema = "_integer_products(Tensor self, Tensor other) -> Tensor"
    nondiff = ("self", "other")
    cost = "heavy"
    intensive = True

    def run(xp, self, other):
        for a in (self, other):
            if a.ndim != 2 or a.dtype.kind not in "iu" or a.dtype.itemsize != 1:
                raise DTypeError("_integer_products: expected matrices of 8-bit integers, got "
                                 f"{a.dtype}{list(a.shape)}")
        if self.shape[1] != other.shape[1]:
            raise ShapeError(f"_integer_products: rows have {self.shape[1]} and {other.shape[1]} "
                             "elements")
        return integer_products(xp, self, other)

    def shape(self, other):
        return (self.shape[0], other.shape[0])

    def dtype(self, other):
        return dt.int32

    def batch(n, batched, self, other):
        if not batched[1]:
            return ops._integer_products(self.reshape(-1, self.shape[2]), other).reshape(
                n, self.shape[1], other.shape[0])
        return each(ops._integer_products, n, batched, self, other)

    def samples(s):
        yield s(s.values([[1, 2, 3], [4, 250, 6]]).to(dt.uint8),
                s.values([[1, -2, 3], [4, 5, -128]]).to(dt.int8))
        yield s(s.values([[1, -2, 3]]).to(dt.int8), s.values([[1, -2, 3]]).to(dt.int8))


class _linear_of_integers(Op):
    """A linear layer whose weight is 8-bit integers, and whose input is rounded to such for it.

    The lowest and highest number of the input give its scale; `batch` leading dims have one each.
    """

    schema = ("_linear_of_integers(Tensor input, Tensor weight, Tensor scale, Tensor zero_point,"
              " Tensor? bias, bool reduce_range, int batch=0) -> Tensor")
    promote = "keep"
    function = method = False
    kept = "kernel"
    cost = "heavy"
    intensive = True
    nondiff = ("weight", "scale", "zero_point")
    grad = {
        "input": "grad.matmul(dequantized(weight, scale, zero_point, 0))",
        "bias": "grad.sum(list(range(grad.ndim - 1))) if grad.ndim > 1 else grad",
    }
    push = "integer_linear_push(input_t, weight, scale, zero_point, bias_t)"
    unchecked = STRAIGHT_THROUGH

    def run(xp, input, weight, scale, zero_point, bias, reduce_range, batch):
        if input.dtype != np.float32:
            raise RefusedValue("linear_dynamic: expected the input to be Float, got "
                               f"{input.dtype}")
        if not input.ndim or input.shape[-1] != weight.shape[1]:
            raise ShapeError(f"linear_dynamic: the input has shape {list(input.shape)}, and the "
                             f"weight {list(weight.shape)}")
        return dynamic_linear(xp, input, weight, scale, zero_point, bias, reduce_range, batch)

    def shape(input, weight, scale, zero_point, bias, reduce_range, batch):
        return (*input.shape[:-1], weight.shape[0])

    def dtype(input, weight, scale, zero_point, bias, reduce_range, batch):
        return dt.float32

    def batch(n, batched, input, weight, scale, zero_point, bias, reduce_range, batch=0):
        if any(batched[1:]):
            return each(ops._linear_of_integers, n, batched, input, weight, scale, zero_point,
                        bias, reduce_range, batch)
        return ops._linear_of_integers(input, weight, scale, zero_point, bias, reduce_range,
                                       batch + 1)

    def samples(s):
        weight = s.values([[1, 20, -30], [4, -50, 127]]).to(dt.int8)
        scale = s.values([0.02]).float(), s.values([0]).long()
        yield s(s.real(4, 3).float(), weight, *scale, s.real(2).float(), True)
        yield s(s.real(2, 4, 3).float(), weight, s.values([0.02, 0.03]).float(),
                s.values([0, 2]).long(), None, False)
        yield s(s.real(0, 3).float(), weight, *scale, None, True)
