"""Linear layers, convolutions and arithmetic of `ops.quantized`, by their names there.

Read first: `products.py`, which has the sums of integers.  Read next: `activations.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import errors
from ..array import dtype as dt
from ..core.handle import Tensor
from ..parts.rules import shown
from ..table.packets import ops
from . import activations, packed, products
from .construct import recorded
from .named import computed, followed, functions, named, to_integers
from .tensor import QuantizedTensor

_MORE = activations  # loaded for what it adds to the functions

# ---------------------------------------------------------------------------------------------
# linear layers and convolutions

functions |= {
    "linear_prepack": packed.linear_weight,
    "linear_prepack_legacy": packed.linear_weight,
    "linear_prepack_fp16": packed.LinearHalfParams,
    "linear_prepack_fp16_legacy": packed.LinearHalfParams,
    "embedding_bag_prepack": packed.embedding_weight,
    "linear_dynamic": products.dynamic_linear,
    "matmul": products.matmul,
    "conv_prepack": packed.conv_weight(2),
}


@named("linear_unpack", "linear_unpack_fp16", "linear_unpack.legacy", "linear_unpack_fp16.legacy",
       "embedding_bag_unpack")
def _unpacked(W_prepack: Any) -> Any:
    """What was packed: a weight and a bias, or the rows of an embedding."""
    return W_prepack.unpack()


@named("linear")
def linear(X: QuantizedTensor, W_prepack: Any, Y_scale_i: float, Y_zero_point_i: int):
    """A linear layer."""
    return products.linear(X, W_prepack, Y_scale_i, Y_zero_point_i)


@named("linear_relu")
def linear_relu(X: QuantizedTensor, W_prepack: Any, Y_scale_i: float, Y_zero_point_i: int):
    """A linear layer and a rectifier."""
    return products.linear(X, W_prepack, Y_scale_i, Y_zero_point_i, Y_zero_point_i)


def _after_linear(name: str, X: QuantizedTensor, W_prepack: Any, scale: float, zero_point: int,
                  function: Callable) -> QuantizedTensor:
    weight, bias = W_prepack.unpack()
    return computed(name, lambda x: function(ops.linear(x, weight.dequantize(), bias)), (X,),
                    scale, zero_point)


@named("linear_leaky_relu")
def linear_leaky_relu(X: QuantizedTensor, W_prepack: Any, Y_scale_i: float, Y_zero_point_i: int,
                      negative_slope: float):
    """A linear layer, and negative results times a slope."""
    return _after_linear("linear_leaky_relu", X, W_prepack, Y_scale_i, Y_zero_point_i,
                         lambda y: ops.leaky_relu(y, negative_slope))


@named("linear_tanh")
def linear_tanh(X: QuantizedTensor, W_prepack: Any, Y_scale_i: float, Y_zero_point_i: int):
    """A linear layer and the hyperbolic tangent."""
    return _after_linear("linear_tanh", X, W_prepack, Y_scale_i, Y_zero_point_i, ops.tanh)


@named("linear_dynamic_fp16")
def linear_dynamic_fp16(X: Tensor, W_prepack: Any) -> Tensor:
    """A linear layer with a weight in half precision."""
    return products.dynamic_linear(X, W_prepack)


@named("linear_dynamic_fp16_unpacked_weight")
def linear_dynamic_fp16_unpacked_weight(X: Tensor, weight: Tensor, bias: Any = None) -> Tensor:
    """A linear layer whose weight is rounded to half precision."""
    return products.half_linear(X, packed.LinearHalfParams(weight, bias))


@named("linear_relu_dynamic", "linear_relu_dynamic_fp16")
def linear_relu_dynamic(X: Tensor, W_prepack: Any, reduce_range: bool = False) -> Tensor:
    """A linear layer that rounds its input by itself, and a rectifier."""
    return products.dynamic_linear(X, W_prepack, reduce_range).relu()


@named("linear_with_input_q_dq_qweight_dq_output_fp32")
def linear_of_rounded(X: Tensor, X_scale: float, X_zero_point: int, W_prepack: Any) -> Tensor:
    """A linear layer of an input that is rounded with a given scale; numbers in, numbers out."""
    name = "linear_with_input_q_dq_qweight_dq_output_fp32"
    q = to_integers(X, X_scale, X_zero_point, dt.by_name("quint8"), name, recorded(X))
    weight, bias = W_prepack.unpack()
    return ops.linear(q.dequantize(), weight.dequantize(), bias)


@named("linear_with_input_q_dq_qweight_dq_relu_output_fp32")
def linear_relu_of_rounded(X: Tensor, X_scale: float, X_zero_point: int, W_prepack: Any) -> Tensor:
    """The same and a rectifier."""
    return linear_of_rounded(X, X_scale, X_zero_point, W_prepack).relu()


def _fitting(packed_weight: Any, dims: int, transposed: bool) -> None:
    """Refuse the weight of another kind of convolutions."""
    if not isinstance(packed_weight, packed.ConvPackedParamsBase):
        raise errors.DTypeError(errors.text(
            f"quantized::conv{dims}d: expected a packed weight, got {type(packed_weight).__name__} "
            f"({errors.user_line(3)})", cure=f"ops.quantized.conv{dims}d_prepack(weight, ...)"))
    if packed_weight.weight().ndim != dims + 2 or packed_weight.transpose() is not transposed:
        raise errors.ShapeError(
            f"quantized::conv{dims}d: the weight is for "
            f"{'transposed ' * packed_weight.transpose()}convolutions over "
            f"{packed_weight.weight().ndim - 2} dims ({errors.user_line(3)})")


def _conv(dims: int, relu: bool, transposed: bool = False):
    """Convolutions from integers to integers.

    Programs of old give stride, padding, dilation and groups as well; the weight's own count.
    """

    def operator(qx: QuantizedTensor, packed_weight: Any, *given: Any, output_scale: float = 1.0,
                 output_zero_point: int = 0):
        _fitting(packed_weight, dims, transposed)
        given = given[4:] if len(given) > 2 else given
        scale = given[0] if given else output_scale
        zero_point = given[1] if len(given) > 1 else output_zero_point
        return products.convolution(qx, packed_weight, scale, zero_point,
                                    zero_point if relu else None)

    return operator


def _dynamic_conv(dims: int, transposed: bool):
    def operator(qx: Tensor, packed_weight: Any, reduce_range: bool = False) -> Tensor:
        """A convolution that rounds its input by itself; numbers in, numbers out."""
        from .construct import quantize_per_tensor_dynamic

        _fitting(packed_weight, dims, transposed)
        q = quantize_per_tensor_dynamic(qx, dt.by_name("quint8"), reduce_range,
                                        straight_through=recorded(qx))
        return products.of_numbers(q.dequantize(), packed_weight.weight().dequantize(),
                                   packed_weight.bias(), packed_weight)

    return operator


@named("conv_unpack", *(f"conv{t}{n}d_unpack" for t in ("", "_transpose") for n in (1, 2, 3)))
def _unpacked_conv(packed_weights: Any) -> tuple[Tensor, Tensor | None]:
    """(weight, bias)."""
    return packed_weights.unpack()


for _n in (1, 2, 3):
    functions |= {
        f"conv{_n}d_prepack": packed.conv_weight(_n),
        f"conv_transpose{_n}d_prepack": packed.conv_weight(_n, True),
        f"conv{_n}d": _conv(_n, False), f"conv{_n}d_relu": _conv(_n, True),
        f"conv{_n}d.new": _conv(_n, False), f"conv{_n}d_relu.new": _conv(_n, True),
        f"conv_transpose{_n}d": _conv(_n, False, True),
        f"conv{_n}d_dynamic": _dynamic_conv(_n, False),
        f"conv_transpose{_n}d_dynamic": _dynamic_conv(_n, True),
    }
    for _what in ("stride", "padding", "output_padding", "dilation", "groups", "transpose"):
        for _t in ("", "_transpose"):
            functions[f"conv{_t}{_n}d_{_what}"] = getattr(packed.ConvPackedParamsBase, _what)


@named("conv2d_unpack_sizes")
def conv2d_unpack_sizes(packed_weights: Any) -> tuple:
    """(shape of the weight, of the bias, stride, padding, dilation, groups)."""
    weight, bias = packed_weights.unpack()
    return (list(weight.shape), None if bias is None else list(bias.shape),
            packed_weights.stride(), packed_weights.padding(), packed_weights.dilation(),
            packed_weights.groups())


def _conv_and(name: str, qx: Any, qaccum: Any, packed_weight: Any, scale: float, zero_point: int,
              relu: bool) -> QuantizedTensor:
    def numbers(x: Tensor, y: Tensor) -> Tensor:
        out = products.of_numbers(x, packed_weight.weight().dequantize(), packed_weight.bias(),
                                  packed_weight) + y
        return out.relu() if relu else out

    _fitting(packed_weight, 2, False)
    return computed(name, numbers, (qx, qaccum), scale, zero_point)


@named("conv2d_add")
def conv2d_add(qx: Any, qaccum: Any, packed_weight: Any, output_scale: float,
               output_zero_point: int):
    """A convolution, and another tensor added."""
    return _conv_and("conv2d_add", qx, qaccum, packed_weight, output_scale, output_zero_point,
                     False)


@named("conv2d_add_relu")
def conv2d_add_relu(qx: Any, qaccum: Any, packed_weight: Any, output_scale: float,
                    output_zero_point: int):
    """A convolution, another tensor added, and a rectifier."""
    return _conv_and("conv2d_add_relu", qx, qaccum, packed_weight, output_scale,
                     output_zero_point, True)


# ---------------------------------------------------------------------------------------------
# arithmetic


def _same_kind(name: str, *tensors: Any) -> None:
    """Refuse operands that are not quantised with one scale, or to different dtypes."""
    for t in tensors:
        products.one_scale(t, name)
    if len({t.kind.name for t in tensors}) > 1:
        raise errors.DTypeError(errors.text(
            f"quantized::{name}: {name[:3].capitalize()} operands should have same data type. "
            f"({errors.user_line(4)})", [shown(t) for t in tensors],
            "quantise both to the same dtype"))


def _binary(name: str, function: Callable, relu: bool):
    """Sums or products of two tensors, of a tensor and a number, into a new tensor or `out`."""
    whole = f"{name}{'_relu' * relu}"

    def of_tensors(qa: QuantizedTensor, qb: QuantizedTensor, scale: Any, zero_point: Any):
        _same_kind(whole, qa, qb)
        if function is ops.mul and not followed(qa, qb):
            return products.product(qa, qb, float(scale), int(zero_point), relu)
        return computed(whole, lambda a, b: function(a, b).relu() if relu else function(a, b),
                        (qa, qb), scale, zero_point)

    def operator(qa: Any, qb: Any, scale: Any = None, zero_point: Any = None, *, out: Any = None):
        if isinstance(scale, QuantizedTensor):
            out, scale = scale, None
        if not isinstance(qa, QuantizedTensor) and isinstance(qb, QuantizedTensor):
            qa, qb = qb, qa
        if isinstance(qa, QuantizedTensor) and not isinstance(qb, Tensor):
            found = functions[f"{name}_scalar{'_relu' * relu}"](qa, qb)
            return found if out is None else out.copy_(found)
        if out is not None:
            return out.copy_(of_tensors(qa, qb, out.scale_part, out.zero_part))
        if scale is None or zero_point is None:
            raise errors.ArgumentError(errors.text(
                f"quantized::{whole}() is missing value for argument "
                f"'{'scale' if scale is None else 'zero_point'}' ({errors.user_line(2)})",
                cure=f"ops.quantized.{whole}(qa, qb, scale, zero_point)"))
        return of_tensors(qa, qb, scale, zero_point)

    return operator


def _into(function: Callable):
    """An operator that writes its result into the last argument."""

    def operator(*args: Any, out: QuantizedTensor | None = None):
        args, out = (args[:-1], args[-1]) if out is None else (args, out)
        return out.copy_(function(*args))

    return operator


for _name, _function in (("add", ops.add), ("mul", ops.mul)):
    for _ending, _relu in (("", False), ("_relu", True)):
        _made = _binary(_name, _function, _relu)
        functions[f"{_name}{_ending}_out"] = _made
        for _overload in ("", ".Scalar", ".Scalar2", ".Scalar_out", ".out"):
            functions[f"{_name}{_ending}{_overload}"] = _made


def _cut(relu: bool, q: QuantizedTensor) -> QuantizedTensor:
    return q.relu() if relu else q


def _add_scalar(relu: bool):
    def operator(qa: QuantizedTensor, b: Any) -> QuantizedTensor:
        products.one_scale(qa, "add_scalar")
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
                                      "add_scalar", followed(qa)))

    return operator


def _mul_scalar(relu: bool):
    def operator(qa: QuantizedTensor, b: Any) -> QuantizedTensor:
        products.one_scale(qa, "mul_scalar")
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
        for _overload in ("", ".Tensor"):
            functions[f"{_name}{_ending}{_overload}"] = _make(_relu)
            functions[f"{_name}{_ending}_out{_overload}"] = _into(_make(_relu))


def _cat(relu: bool):
    def operator(qx: Any, dim: int, scale: Any = None, zero_point: Any = None):
        first = qx[0]
        _same_kind("cat", *qx)
        scale = first.q_scale() if scale is None else scale
        zero_point = first.q_zero_point() if zero_point is None else zero_point
        out = computed("cat", lambda *ts: ops.cat(list(ts), dim), tuple(qx), scale, zero_point)
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
