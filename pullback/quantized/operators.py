"""The functions of `ops.quantized`, by their names there.

Most take numbers out of integers, compute in single precision, and round with the scale and zero
point that are given.  Read first: `products.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import errors
from ..array import dtype as dt
from ..core.handle import Tensor
from ..table.packets import ops
from . import packed, products
from .construct import rounded
from .tensor import QuantizedTensor

functions: dict[str, Callable] = {}


def named(*names: str):
    """Decorate a function of `ops.quantized`."""

    def decorate(function: Callable) -> Callable:
        functions.update(dict.fromkeys(names, function))
        return function

    return decorate


def to_integers(numbers: Tensor, scale: Any, zero_point: Any, kind: Any,
                through: bool = False) -> QuantizedTensor:
    """Numbers as a quantised tensor with a scale and a zero point."""
    step = scale if isinstance(scale, Tensor) else ops.full((), float(scale), dtype=dt.float64)
    zero = zero_point if isinstance(zero_point, Tensor) else ops.full((), int(zero_point))
    return rounded(numbers, step.reshape(()), zero.reshape(()), kind, straight_through=through)


def _through(*tensors: Any) -> bool:
    return any(isinstance(t, QuantizedTensor) and t.through_part is not None for t in tensors)


def computed(function: Callable, given: tuple, scale: Any, zero_point: Any) -> QuantizedTensor:
    """A function of the numbers of quantised tensors, rounded."""
    for t in given:
        products.one_scale(t, "operators")
    numbers = function(*[t.dequantize() for t in given])
    return to_integers(numbers, scale, zero_point, given[0].kind, _through(*given))


# ---------------------------------------------------------------------------------------------
# linear layers and convolutions

functions |= {
    "linear_prepack": packed.linear_weight,
    "linear_prepack_legacy": packed.linear_weight,
    "linear_prepack_fp16": packed.LinearHalfParams,
    "linear_prepack_fp16_legacy": packed.LinearHalfParams,
    "linear_unpack": packed.Packed.unpack,
    "linear_unpack_fp16": packed.Packed.unpack,
    "conv_unpack": packed.Packed.unpack,
    "embedding_bag_prepack": packed.embedding_weight,
    "embedding_bag_unpack": packed.Packed.unpack,
    "linear_dynamic": products.dynamic_linear,
    "linear_dynamic_fp16": products.half_linear,
    "matmul": products.matmul,
    "conv_prepack": packed.conv_weight(2),
}


@named("linear")
def linear(X: QuantizedTensor, W_prepack: Any, Y_scale_i: float, Y_zero_point_i: int):
    """A linear layer."""
    return products.linear(X, W_prepack, Y_scale_i, Y_zero_point_i)


@named("linear_relu")
def linear_relu(X: QuantizedTensor, W_prepack: Any, Y_scale_i: float, Y_zero_point_i: int):
    """A linear layer and a rectifier."""
    return products.linear(X, W_prepack, Y_scale_i, Y_zero_point_i, Y_zero_point_i)


def _after_linear(function: Callable):
    def operator(X: QuantizedTensor, W_prepack: Any, scale: float, zero_point: int, *rest: Any):
        weight, bias = W_prepack.unpack()
        return computed(lambda x: function(ops.linear(x, weight.dequantize(), bias), *rest), (X,),
                        scale, zero_point)

    return operator


functions["linear_leaky_relu"] = _after_linear(ops.leaky_relu)
functions["linear_tanh"] = _after_linear(ops.tanh)


@named("linear_dynamic", "linear_relu_dynamic", "linear_dynamic_fp16")
def _of_numbers(X: Tensor, W_prepack: Any, reduce_range: bool = False) -> Tensor:
    """A linear layer that rounds its input by itself."""
    return products.dynamic_linear(X, W_prepack, reduce_range)


@named("linear_relu_dynamic", "linear_relu_dynamic_fp16")
def linear_relu_dynamic(X: Tensor, W_prepack: Any, reduce_range: bool = False) -> Tensor:
    """A linear layer that rounds its input by itself, and a rectifier."""
    return products.dynamic_linear(X, W_prepack, reduce_range).relu()


def _conv(dims: int, relu: bool, transposed: bool = False, dynamic: bool = False):
    def operator(qx: QuantizedTensor, weight: Any, output_scale: float = 1.0,
                 output_zero_point: int = 0):
        if weight.weight().ndim != dims + 2 or weight.transpose() is not transposed:
            raise errors.ShapeError(
                f"conv{dims}d: the weight is for {'transposed ' * weight.transpose()}convolutions "
                f"over {weight.weight().ndim - 2} dims ({errors.user_line(2)})")
        return products.convolution(qx, weight, output_scale, output_zero_point,
                                    output_zero_point if relu else None)

    def by_itself(qx: Tensor, weight: Any, reduce_range: bool = False):
        from .construct import quantize_per_tensor_dynamic

        q = quantize_per_tensor_dynamic(qx, dt.by_name("quint8"), reduce_range,
                                        straight_through=True)
        return products._of_numbers(q.dequantize(), weight.weight().dequantize(), weight.bias(),
                                    weight)

    return by_itself if dynamic else operator


for _n in (1, 2, 3):
    functions |= {
        f"conv{_n}d_prepack": packed.conv_weight(_n),
        f"conv_transpose{_n}d_prepack": packed.conv_weight(_n, True),
        f"conv{_n}d": _conv(_n, False), f"conv{_n}d_relu": _conv(_n, True),
        f"conv_transpose{_n}d": _conv(_n, False, True),
        f"conv{_n}d_dynamic": _conv(_n, False, dynamic=True),
        f"conv_transpose{_n}d_dynamic": _conv(_n, False, True, True),
    }
    functions |= {f"conv{t}{_n}d_unpack": packed.Packed.unpack for t in ("", "_transpose")}
    for _what in ("stride", "padding", "output_padding", "dilation", "groups", "transpose"):
        for _t in ("", "_transpose"):
            functions[f"conv{_t}{_n}d_{_what}"] = getattr(packed.ConvPackedParamsBase, _what)


@named("conv2d_add")
def conv2d_add(qx: Any, qaccum: Any, weight: Any, output_scale: float, output_zero_point: int):
    """A convolution, and another tensor added."""
    return computed(lambda x, y: products._of_numbers(
        x, weight.weight().dequantize(), weight.bias(), weight) + y, (qx, qaccum), output_scale,
        output_zero_point)


@named("conv2d_add_relu")
def conv2d_add_relu(qx: Any, qaccum: Any, weight: Any, output_scale: float,
                    output_zero_point: int):
    """A convolution, another tensor added, and a rectifier."""
    return computed(lambda x, y: (products._of_numbers(
        x, weight.weight().dequantize(), weight.bias(), weight) + y).relu(), (qx, qaccum),
        output_scale, output_zero_point)


# ---------------------------------------------------------------------------------------------
# arithmetic


def _binary(function: Callable, relu: bool):
    def operator(qa: QuantizedTensor, qb: QuantizedTensor, scale: Any, zero_point: Any):
        if function is ops.mul and not _through(qa, qb):
            return products.product(qa, qb, float(scale), int(zero_point), relu)
        return computed(lambda a, b: function(a, b).relu() if relu else function(a, b), (qa, qb),
                        scale, zero_point)

    return operator


def _out(function: Callable, given: int):
    def operator(*args: Any, out: QuantizedTensor | None = None):
        args, out = (args[:-1], args[-1]) if out is None else (args, out)
        out.copy_(function(*args, out.scale_part, out.zero_part) if given else function(*args))
        return out

    return operator


for _name, _function in (("add", ops.add), ("mul", ops.mul)):
    for _ending, _relu in (("", False), ("_relu", True)):
        functions[f"{_name}{_ending}"] = _binary(_function, _relu)
        functions[f"{_name}{_ending}_out"] = _out(functions[f"{_name}{_ending}"], 2)


def _cut(relu: bool, q: QuantizedTensor) -> QuantizedTensor:
    return q.relu() if relu else q


def _add_scalar(relu: bool):
    def operator(qa: QuantizedTensor, b: Any) -> QuantizedTensor:
        scale, zero, kind = qa.q_scale(), qa.q_zero_point(), qa.kind
        shift = zero - round(float(b) / scale)
        span = kind.high - kind.low
        if kind.low <= shift <= kind.high:  # the integers stay
            zero_point = ops.full((), shift)
            out = QuantizedTensor.make(qa.int_part.clone(), qa.scale_part, zero_point, kind)
            if qa.through_part is not None:
                out.through_part = qa.through_part + float(b)
            return _cut(relu, out)
        low = shift < kind.low
        wide = ((kind.high - shift) if low else (shift - kind.low)) / span * scale
        numbers = (qa.int_part.to(dt.float32) - shift) * scale
        if qa.through_part is not None:
            numbers = qa.through_part + float(b)
        return _cut(relu, to_integers(numbers, wide, kind.low if low else kind.high, kind,
                                      _through(qa)))

    return operator


def _mul_scalar(relu: bool):
    def operator(qa: QuantizedTensor, b: Any) -> QuantizedTensor:
        b, kind = float(b), qa.kind
        if b > 0:
            integers, scale, zero = qa.int_part.clone(), qa.q_scale() * b, qa.q_zero_point()
        elif b < 0:
            top = kind.low + kind.high
            integers = (top - qa.int_part.to(dt.int64)).to(qa.int_part.dtype)
            scale, zero = -qa.q_scale() * b, top - qa.q_zero_point()
        else:
            integers, scale, zero = ops.zeros_like(qa.int_part), 1.0, 0
        out = QuantizedTensor.make(integers, ops.full((), scale, dtype=dt.float64),
                                   ops.full((), zero), kind)
        if qa.through_part is not None:
            out.through_part = qa.through_part * b
        return _cut(relu, out)

    return operator


for _ending, _relu in (("", False), ("_relu", True)):
    for _name, _make in (("add_scalar", _add_scalar), ("mul_scalar", _mul_scalar)):
        functions[f"{_name}{_ending}"] = _make(_relu)
        functions[f"{_name}{_ending}_out"] = _out(_make(_relu), 0)


def _cat(relu: bool):
    def operator(qx: Any, dim: int, scale: Any = None, zero_point: Any = None):
        first = qx[0]
        scale = first.q_scale() if scale is None else scale
        zero_point = first.q_zero_point() if zero_point is None else zero_point
        out = computed(lambda *ts: ops.cat(list(ts), dim), tuple(qx), scale, zero_point)
        return _cut(relu, out)

    return operator


for _ending, _relu in (("", False), ("_relu", True)):
    functions[f"cat{_ending}"] = _cat(_relu)


def _cat_out(relu: bool):
    def operator(qx: Any, dim: int, out: QuantizedTensor) -> QuantizedTensor:
        out.copy_(_cat(relu)(qx, dim, out.scale_part, out.zero_part))
        return out

    return operator


functions["cat_out"], functions["cat_relu_out"] = _cat_out(False), _cat_out(True)


# ---------------------------------------------------------------------------------------------
# activations and norms


@named("clamp")
def clamp(qx: QuantizedTensor, min: Any = None, max: Any = None) -> QuantizedTensor:
    """Numbers between two bounds."""
    return qx.clamp(min, max)


@named("relu6")
def relu6(qx: QuantizedTensor, inplace: bool = False) -> QuantizedTensor:
    """Numbers between 0 and 6."""
    out = qx.clamp(0, 6)
    return qx.copy_(out) if inplace else out


@named("leaky_relu")
def leaky_relu(qx: QuantizedTensor, negative_slope: Any, inplace: bool, output_scale: float,
               output_zero_point: int) -> QuantizedTensor:
    """Negative numbers times a slope."""
    return computed(lambda x: ops.leaky_relu(x, negative_slope), (qx,), output_scale,
                    output_zero_point)


@named("prelu")
def prelu(qx: QuantizedTensor, weight: QuantizedTensor, output_scale: float,
          output_zero_point: int) -> QuantizedTensor:
    """Negative numbers times slopes of channels."""
    return computed(ops.prelu, (qx, weight), output_scale, output_zero_point)


@named("threshold")
def threshold(qx: QuantizedTensor, threshold: Any, value: Any) -> QuantizedTensor:
    """Another number in the place of small ones."""
    return ops.threshold(qx, threshold, value)


@named("dropout")
def dropout(self: QuantizedTensor, output_scale: float, output_zero_point: int, p: Any = 0.5,
            training: bool = False) -> QuantizedTensor:
    """The same numbers; in training some are left out."""
    if not training:
        return self.clone()
    return computed(lambda x: ops.dropout(x, float(p), True), (self,), output_scale,
                    output_zero_point)


def _unary(function: Callable):
    def operator(qx: QuantizedTensor, output_scale: float, output_zero_point: int, *rest: Any):
        return computed(lambda x: function(x, *rest), (qx,), output_scale, output_zero_point)

    return operator


functions["sigmoid"], functions["tanh"] = _unary(ops.sigmoid), _unary(ops.tanh)
functions["hardswish"] = _unary(lambda x: x * (x + 3).clamp(0, 6) / 6)
functions["elu"] = _unary(
    lambda x, alpha=1, scale=1, input_scale=1: ops.elu(x, alpha, scale, input_scale))
functions["celu"] = _unary(lambda x, alpha=1: ops.celu(x, alpha))


@named("softmax")
def softmax(qx: QuantizedTensor, dim: int, output_scale: float, output_zero_point: int):
    """Shares along a dim."""
    return computed(lambda x: ops.softmax(x, dim), (qx,), output_scale, output_zero_point)


@named("layer_norm")
def layer_norm(input: QuantizedTensor, normalized_shape: Any, weight: Any, bias: Any, eps: float,
               output_scale: float, output_zero_point: int) -> QuantizedTensor:
    """Last dims with mean 0 and variance 1, times a weight."""
    shape = list(normalized_shape)
    return computed(lambda x: ops.layer_norm(x, shape, weight, bias, eps), (input,), output_scale,
                    output_zero_point)


@named("group_norm")
def group_norm(qx: QuantizedTensor, num_groups: int, weight: Any, bias: Any, eps: float,
               output_scale: float, output_zero_point: int) -> QuantizedTensor:
    """Groups of channels with mean 0 and variance 1, times a weight."""
    return computed(lambda x: ops.group_norm(x, num_groups, weight, bias, eps), (qx,), output_scale,
                    output_zero_point)


@named("instance_norm")
def instance_norm(input: QuantizedTensor, weight: Any, bias: Any, eps: float, output_scale: float,
                  output_zero_point: int) -> QuantizedTensor:
    """Channels of every example with mean 0 and variance 1, times a weight."""
    return computed(lambda x: ops.group_norm(x, x.shape[1], weight, bias, eps), (input,),
                    output_scale, output_zero_point)


def _batch_norm(relu: bool):
    def operator(qx: QuantizedTensor, weight: Any, bias: Any, mean: Tensor, var: Tensor,
                 eps: float, output_scale: float, output_zero_point: int):
        def numbers(x: Tensor) -> Tensor:
            by = (1 if weight is None else weight) / (var + eps).sqrt()
            shift = (0 if bias is None else bias) - mean * by
            shape = [1, -1] + [1] * (x.ndim - 2)
            out = x * by.reshape(shape) + shift.reshape(shape)
            return out.relu() if relu else out

        return computed(numbers, (qx,), output_scale, output_zero_point)

    return operator


for _kind in ("", "1d", "2d", "3d"):
    functions[f"batch_norm{_kind}"] = _batch_norm(False)
    functions[f"batch_norm{_kind}_relu"] = _batch_norm(True)


@named("max_pool1d")
def max_pool1d(qx: QuantizedTensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
               ceil_mode: bool = False) -> QuantizedTensor:
    """The largest number of every window."""
    return ops.max_pool1d(qx, kernel_size, stride, padding, dilation, ceil_mode)


@named("max_pool2d")
def max_pool2d(qx: QuantizedTensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
               ceil_mode: bool = False) -> QuantizedTensor:
    """The largest number of every window."""
    return ops.max_pool2d(qx, kernel_size, stride, padding, dilation, ceil_mode)
