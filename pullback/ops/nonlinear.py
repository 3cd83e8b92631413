"""The activations of the table's core, each with its backward operator: sigmoid, relu, gelu ...

The backward operators keep eager backward at one kernel and are ordinary differentiable operators
themselves. Rarer activations are in `activation.py`.
"""

from __future__ import annotations

import math

from ..array import elementary
from ..core.op import Composite, Pointwise
from ..errors import DTypeError
from ..table.packets import ops
from .create import as_number, fill_number
from .kinds import FirstResult, InFunctional, PairOfEach
from .pointwise import (
    Backward,
    ComplexFunction,
    Function,
    PiecewiseBackward,
    backward_points,
    points,
    points_with,
    refuse,
)


class sigmoid(ComplexFunction):
    """1 / (1 + exp(-x)) of each element."""
    schema = "sigmoid(Tensor self) -> Tensor"
    lower = "pointwise.unary('sigmoid')"
    core = True
    run = elementary.sigmoid
    grad = {"self": "sigmoid_backward(grad, result)"}
    c = "sigmoid({self})"
    aliases = ("special_expit",)


class sigmoid_backward(Backward):
    """Gradient of sigmoid from the gradient of its output and the output."""
    schema = "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor"
    ahead = True
    lower = "composite.sigmoid_backward"
    run = "grad_output * ((1 - output) * output).conj()"
    grad = {
        "grad_output": "sigmoid_backward(grad, output.conj())",
        "output": "grad_output * ((1 - 2 * output) * grad).conj()",
    }
    # anti-holomorphic in `output`, like tanh_backward
    push = ("sigmoid_backward(grad_output_t, output_p)"
            " + grad_output_p * ((1 - 2 * output_p) * output_t).conj()")
    c = "{grad_output} * ((1 - {output}) * {output})"
    complex = True
    samples = backward_points(low=0.1, high=0.9)

    def decomp(grad_output, output):
        return grad_output * ((1 - output) * output).conj()


class logit(Function):
    """log(x / (1 - x)) of each element, first clamped to [eps, 1 - eps] if eps is given."""
    schema = "logit(Tensor self, float? eps=None) -> Tensor"
    grad = {"self": "logit_backward(grad, self, eps)"}
    aliases = ("special_logit",)

    def run(xp, self, eps):
        refuse("logit_cpu", self, "c")
        x = self if eps is None else xp.clip(self, eps, 1 - eps)
        return elementary.log(xp, x / (1 - x))

    def decomp(self, eps=None):
        x = self if eps is None else self.clamp(eps, 1 - eps)
        return (x / (1 - x)).log()

    def samples(s):
        yield s(s.real(3, 4, low=0.1, high=0.9))
        yield s(s.real(low=0.1, high=0.9), eps=0.01)
        yield s(s.values([-0.5, 0.1, 0.6, 1.5]), 0.2)
        yield s(s.real(0, 3))


class logit_backward(Backward):
    """Gradient of logit: grad / (x (1 - x)) inside the open range, 0 outside."""
    schema = "logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor"
    grad = {
        "grad_output": "logit_backward(grad, self, eps)",
        "self": "grad * logit_backward(grad_output, self, eps) * (2 * self - 1) / (self * (1 - self))",
    }

    def run(xp, grad_output, self, eps):
        slope = grad_output / (self * (1 - self))
        if eps is None:  # without clamping the function is not defined outside of [0, 1]
            return xp.where((self < 0) | (self > 1), math.nan, slope)
        return xp.where((self < eps) | (self > 1 - eps), 0, slope)

    def decomp(grad_output, self, eps=None):
        slope = grad_output / (self * (1 - self))
        low, high, outside = (0, 1, math.nan) if eps is None else (eps, 1 - eps, 0)
        return slope.masked_fill((self < low).logical_or(self > high), outside)

    def samples(s):
        yield s(s.real(3, 4), s.real(3, 4, low=0.1, high=0.9))
        yield s(s.real(), s.real(low=0.1, high=0.9), 0.01)


class Activation(InFunctional, Pointwise):
    """An activation that is offered under `nn.functional` alone."""

    method = function = False
    samples = points()


class CoreActivation(Activation):
    """One of PyTorch's core set that is taken apart ahead of autograd."""

    ahead = True
    core = True


class relu(InFunctional, Pointwise):
    """Each element, or 0 where it is negative."""
    schema = "relu(Tensor self) -> Tensor"
    lower = "pointwise.unary('relu', False)"
    core = True
    grad = {"self": "threshold_backward(grad, result, 0)"}
    c = "where({self} <= 0, 0, {self})"
    samples = points()

    def run(xp, self):
        if self.dtype.kind == "b":
            raise DTypeError("Boolean inputs not supported for relu")
        refuse("clamp_min_scalar_cpu", self, "c")
        return xp.maximum(self, 0)


class relu6(InFunctional, Composite):
    """Each element clamped to [0, 6]."""
    schema = "relu6(Tensor self) -> Tensor"
    tags = ("pointwise",)
    method = function = False
    inplace = True
    samples = points()

    def compose(self):
        return ops.hardtanh(self, 0, 6)


def _as_element(xp, array, number):
    """A number beside an array, in its dtype."""
    number = as_number(array, number) if array.dtype.kind in "iu" else number
    return xp.asarray(number, dtype=array.dtype)


class threshold(InFunctional, Pointwise):
    """Each element, or `value` where it does not exceed `threshold`."""
    schema = "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor"
    out = ("castable",)
    grad = {"self": "threshold_backward(grad, self, threshold)"}
    c = "where({self} <= {threshold}, {value}, {self})"
    method = False

    def check(self, threshold, value):
        for number in (threshold, value):
            as_number(self, number)

    def run(xp, self, threshold, value):
        low, value = (_as_element(xp, self, v) for v in (threshold, value))
        return xp.where(self <= low, value, self)

    def decomp(self, threshold, value):
        low = threshold if self.dtype.is_floating_point else fill_number(self.dtype, threshold)
        return self.masked_fill(self <= low, value)

    samples = lambda s: [s(s.real(3, 4), 0.01, 20.0), s(s.real(), 0, -1), s(s.real(0, 3), 0, 0)]


class threshold_backward(Backward):
    """The gradient where the value exceeds `threshold`, else 0."""
    schema = "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor"
    ahead = True
    lower = "composite.threshold_backward"
    run = "xp.where(self <= threshold, xp.asarray(0, dtype=grad_output.dtype), grad_output)"
    grad = {"grad_output": "threshold_backward(grad, self, threshold)"}
    constant = ("self",)
    c = "where({self} <= {threshold}, 0, {grad_output})"
    samples = backward_points(0.01)

    def decomp(grad_output, self, threshold):
        return grad_output.masked_fill(self <= threshold, 0)


class leaky_relu(CoreActivation):
    """Each element, times `negative_slope` where it is not positive."""
    schema = "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor"
    lower = "composite.leaky_relu"
    grad = {"self": "leaky_relu_backward(grad, self, negative_slope, False)"}
    c = "where({self} > 0, {self}, {self} * {negative_slope})"

    def run(xp, self, negative_slope):
        refuse("leaky_relu_cpu", self, "biuc")
        return xp.where(self > 0, self, self * negative_slope)

    def decomp(self, negative_slope=0.01):
        return ops.where(self > 0, self, self * negative_slope)

    def samples(s):
        yield s(s.real(3, 4))
        yield s(s.real(4, 3).T, 0.2)
        yield s(s.real(), -0.5)
        yield s(s.real(0, 3))


class leaky_relu_backward(PiecewiseBackward):
    """Gradient of leaky_relu from its input (or output, which has the same sign)."""
    schema = ("leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, "
              "bool self_is_result) -> Tensor")
    ahead = True
    run = "xp.where(self > 0, grad_output, grad_output * negative_slope)"
    grad = {"grad_output": "leaky_relu_backward(grad, self, negative_slope, self_is_result)"}
    c = "where({self} > 0, {grad_output}, {grad_output} * {negative_slope})"
    samples = backward_points(0.2, False)

    def decomp(grad_output, self, negative_slope, self_is_result):
        return ops.where(self > 0, grad_output, grad_output * negative_slope)


class elu(CoreActivation):
    """x where positive, else alpha (exp(x) - 1); both scaled."""
    schema = "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor"
    grad = {"self": "elu_backward(grad, alpha, scale, input_scale, False, self)"}
    c = ("where({self} > 0, {self} * {scale}, "
         "expm1({self} * {input_scale}) * ({alpha} * {scale}))")
    samples = points_with(1.5, 0.7, 1.2)

    def run(xp, self, alpha, scale, input_scale):
        refuse("elu_cpu", self, "biuc")
        low = elementary.expm1(xp, self * input_scale) * (alpha * scale)
        return xp.where(self > 0, self * scale, low)

    def decomp(self, alpha=1, scale=1, input_scale=1):
        low = (self * input_scale).expm1() * (alpha * scale)
        return ops.where(self > 0, self * scale, low)


class elu_backward(Backward):
    """Gradient of elu from its input, or from its output if `is_result`."""
    schema = ("elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, "
              "bool is_result, Tensor self_or_result) -> Tensor")
    ahead = True
    tags = ()
    grad = {
        "grad_output": "elu_backward(grad, alpha, scale, input_scale, is_result, self_or_result)",
        "self_or_result":
            "elu_second(grad * grad_output, alpha, scale, input_scale, is_result, self_or_result)",
    }

    def run(xp, grad_output, alpha, scale, input_scale, is_result, self_or_result):
        x = self_or_result
        if is_result:
            low = (x + alpha * scale) * input_scale
        else:
            low = elementary.exp(xp, x * input_scale) * (input_scale * alpha * scale)
        return grad_output * xp.where(x > 0, scale, low)

    def decomp(grad_output, alpha, scale, input_scale, is_result, self_or_result):
        x = self_or_result
        if is_result:
            low = (x + alpha * scale) * input_scale
        else:
            low = (x * input_scale).exp() * (input_scale * alpha * scale)
        return ops.where(x > 0, grad_output * scale, grad_output * low)

    def samples(s):
        for shape in ((3, 4), ()):
            yield s(s.real(*shape), 1.5, 0.7, 1.2, False, s.real(*shape))
            yield s(s.real(*shape), 1.5, 0.7, 1.2, True, s.real(*shape, low=-0.9))


class hardtanh(CoreActivation):
    """Each element clamped to [min_val, max_val]."""
    schema = "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor"
    grad = {"self": "hardtanh_backward(grad, self, min_val, max_val)"}
    c = ("where({self} < {min_val}, {min_val}, "
         "where({self} > {max_val}, {max_val}, {self}))")
    samples = points_with(-0.5, 1.5)

    def check(self, min_val, max_val):
        for bound in (min_val, max_val):
            as_number(self, bound)

    def run(xp, self, min_val, max_val):
        if self.dtype.kind == "b":
            raise DTypeError("Bool inputs not supported for hardtanh")
        refuse("clamp_scalar_cpu", self, "c")
        if self.dtype.kind == "u" and min(min_val, max_val) < 0:
            raise DTypeError("cannot do hardtanh on an unsigned type with negative limits")
        low, high = (_as_element(xp, self, v) for v in (min_val, max_val))
        return xp.minimum(xp.maximum(self, low), high)

    def decomp(self, min_val=-1, max_val=1):
        return self.clamp(min_val, max_val)


class hardtanh_backward(PiecewiseBackward):
    """The gradient where the value lies strictly between the bounds, else 0."""
    schema = ("hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val)"
              " -> Tensor")
    ahead = True
    run = ("xp.where((self <= min_val) | (self >= max_val), "
           "xp.asarray(0, dtype=grad_output.dtype), grad_output)")
    grad = {"grad_output": "hardtanh_backward(grad, self, min_val, max_val)"}
    c = "where(({self} <= {min_val}) | ({self} >= {max_val}), 0, {grad_output})"
    samples = backward_points(-0.5, 1.5)

    def decomp(grad_output, self, min_val, max_val):
        return grad_output.masked_fill((self <= min_val).logical_or(self >= max_val), 0)


_INV_SQRT2 = math.sqrt(0.5)  # the nearest number, which 1 / sqrt(2) is not
_SQRT_2_OVER_PI = math.sqrt(2 / math.pi)


class gelu(Activation):
    """x times the normal distribution function of x, exact or by a tanh approximation."""
    schema = "gelu(Tensor self, *, str approximate=\"none\") -> Tensor"
    native = "gelu"
    lower = "composite.gelu"
    core = True
    grad = {"self": "gelu_backward(grad, self, approximate=approximate)"}

    def run(xp, self, approximate):
        refuse("GeluKernelImpl", self, "biuc")
        if _approximates(approximate):
            return 0.5 * self * (1 + elementary.tanh(
                xp, _SQRT_2_OVER_PI * (self + 0.044715 * self * self * self)))
        return 0.5 * self * (1 + elementary.erf(xp, self * _INV_SQRT2))

    def decomp(self, approximate="none"):
        if _approximates(approximate):
            inner = (self + self * self * self * 0.044715) * _SQRT_2_OVER_PI
            return self * 0.5 * (inner.tanh() + 1)
        return self * 0.5 * ((self * _INV_SQRT2).erf() + 1)

    def samples(s):
        for approximate in ("none", "tanh"):
            yield s(s.real(3, 4), approximate=approximate)
            yield s(s.real(4, 3).T, approximate=approximate)
            yield s(s.real(), approximate=approximate)
            yield s(s.real(0, 3), approximate=approximate)


def _approximates(approximate: str) -> bool:
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return approximate == "tanh"


class gelu_backward(Backward):
    """Gradient of gelu: grad (cdf(x) + x pdf(x)), or the derivative of the tanh form."""
    schema = ("gelu_backward(Tensor grad_output, Tensor self, *, str approximate=\"none\")"
              " -> Tensor")
    native = "gelu_backward"
    ahead = True
    lower = "composite.gelu_backward"
    grad = {
        "grad_output": "gelu_backward(grad, self, approximate=approximate)",
        "self": "gelu_second(grad * grad_output, self, approximate)",
    }

    def run(xp, grad_output, self, approximate):
        x = self
        if _approximates(approximate):
            t = elementary.tanh(xp, _SQRT_2_OVER_PI * (x + 0.044715 * x * x * x))
            slope = _SQRT_2_OVER_PI * (1 + 3 * 0.044715 * x * x)
            return grad_output * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope)
        cdf = 0.5 * (1 + elementary.erf(xp, x * _INV_SQRT2))
        pdf = elementary.exp(xp, -0.5 * x * x) * (1 / math.sqrt(2 * math.pi))
        return grad_output * (cdf + x * pdf)

    def decomp(grad_output, self, approximate="none"):
        x = self
        if _approximates(approximate):
            t = ((x + x * x * x * 0.044715) * _SQRT_2_OVER_PI).tanh()
            slope = (x * x * (3 * 0.044715) + 1) * _SQRT_2_OVER_PI
            return grad_output * ((t + 1) * 0.5 + x * 0.5 * (1 - t * t) * slope)
        cdf = ((x * _INV_SQRT2).erf() + 1) * 0.5
        pdf = (x * x * -0.5).exp() * (1 / math.sqrt(2 * math.pi))
        return grad_output * (cdf + x * pdf)

    def samples(s):
        for approximate in ("none", "tanh"):
            yield s(s.real(3, 4), s.real(3, 4), approximate=approximate)
            yield s(s.real(), s.real(), approximate=approximate)


class silu(Activation):
    """x sigmoid(x) of each element."""
    complex = None
    schema = "silu(Tensor self) -> Tensor"
    native = "silu"
    lower = "composite.silu"
    grad = {"self": "silu_backward(grad, self)"}
    c = "{self} * sigmoid({self})"

    def run(xp, self):
        refuse("silu_cpu", self, "biu")
        return self / (1 + elementary.exp(xp, -self))

    def decomp(self):
        return self * self.sigmoid()


class silu_backward(Backward):
    """Gradient of silu: grad s (1 + x (1 - s)), s = sigmoid(x)."""
    complex = None
    schema = "silu_backward(Tensor grad_output, Tensor self) -> Tensor"
    native = "silu_backward"
    ahead = True
    lower = "composite.silu_backward"
    grad = {
        "grad_output": "silu_backward(grad, self)",
        "self": "silu_second(grad * grad_output, self)",
    }
    c = "{grad_output} * (sigmoid({self}) * (1 + {self} * (1 - sigmoid({self}))))"
    samples = backward_points()

    def run(xp, grad_output, self):
        s = elementary.sigmoid(xp, self)
        return grad_output * (s * (1 + self * (1 - s)))

    def decomp(grad_output, self):
        s = self.sigmoid()
        return grad_output * (s * (self * (1 - s) + 1))


class mish(Activation):
    """x tanh(softplus(x)) of each element."""
    schema = "mish(Tensor self) -> Tensor"
    grad = {"self": "mish_backward(grad, self)"}
    c = "{self} * tanh(where({self} > 20, {self}, log1p(exp({self}))))"

    def run(xp, self):
        refuse("mish_cpu", self, "biuc")
        return self * elementary.tanh(xp, xp.logaddexp(self, xp.asarray(0, dtype=self.dtype)))

    def decomp(self):
        return self * ops.softplus(self).tanh()


class mish_backward(Backward):
    """Gradient of mish: grad (t + x s (1 - t^2)), t = tanh(softplus(x)), s = sigmoid(x)."""
    schema = "mish_backward(Tensor grad_output, Tensor self) -> Tensor"
    tags = ()
    grad = {
        "grad_output": "mish_backward(grad, self)",
        "self": "mish_second(grad * grad_output, self)",
    }
    samples = backward_points()

    def run(xp, grad_output, self):
        t = elementary.tanh(xp, xp.logaddexp(self, xp.asarray(0, dtype=self.dtype)))
        s = elementary.sigmoid(xp, self)
        return grad_output * (t + self * s * (1 - t * t))

    def decomp(grad_output, self):
        t = ops.softplus(self).tanh()
        return grad_output * (t + self * self.sigmoid() * (1 - t * t))


class softplus(Activation):
    """log(1 + exp(beta x)) / beta of each element; x itself above the threshold."""
    schema = "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor"
    lower = "composite.softplus"
    grad = {"self": "softplus_backward(grad, self, beta, threshold)"}
    c = ("where({self} * {beta} > {threshold}, {self}, log1p(exp({self} * {beta})) / {beta})")

    def run(xp, self, beta, threshold):
        refuse("softplus_cpu", self, "biuc")
        scaled = self * beta
        return xp.where(
            scaled > threshold, self, elementary.log1p(xp, elementary.exp(xp, scaled)) / beta)

    def decomp(self, beta=1, threshold=20):
        scaled = self * beta
        return ops.where(scaled > threshold, self, scaled.exp().log1p() / beta)

    def samples(s):
        yield s(s.real(3, 4))
        yield s(s.real(4, 3).T, 2, 1.5)
        yield s(s.real(), beta=0.5)
        yield s(s.real(0, 3))


class softplus_backward(Backward):
    """Gradient of softplus: grad sigmoid(beta x), the gradient itself above the threshold."""
    schema = ("softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold)"
              " -> Tensor")
    lower = "composite.softplus_backward"
    tags = ()
    grad = {
        "grad_output": "softplus_backward(grad, self, beta, threshold)",
        "self": "softplus_second(grad * grad_output, self, beta, threshold)",
    }
    c = "where({self} * {beta} > {threshold}, {grad_output}, {grad_output} * sigmoid({self} * {beta}))"
    samples = backward_points(2, 1.5)

    def run(xp, grad_output, self, beta, threshold):
        scaled = self * beta
        return xp.where(scaled > threshold, grad_output, grad_output / (elementary.exp(xp, -scaled) + 1))

    def decomp(grad_output, self, beta, threshold):
        scaled = self * beta
        return ops.where(scaled > threshold, grad_output, grad_output * scaled.sigmoid())


class log_sigmoid(InFunctional, FirstResult):
    """log(sigmoid(x)) of each element, without overflow."""
    schema = "log_sigmoid(Tensor self) -> Tensor"
    method = function = False
    aliases = ("logsigmoid",)
    samples = points()
    first_of = "log_sigmoid_forward"


class log_sigmoid_forward(PairOfEach):
    """log(sigmoid(x)) and exp(-|x|), which its gradient needs."""
    schema = "log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)"
    grad = {"self": "log_sigmoid_backward(grad, self, buffer)"}
    push = {"output": "log_sigmoid_backward(self_t, self_p, buffer)"}
    dtype = "[self.dtype, self.dtype]"
    method = function = False
    samples = points()

    def run(xp, self):
        refuse("log_sigmoid_cpu", self, "biuc")
        buffer = elementary.exp(xp, -xp.abs(self))
        return xp.minimum(self, 0) - elementary.log1p(xp, buffer), buffer

    def batch(n, batched, self):
        return ops.log_sigmoid_forward(self)

    def decomp(self):
        buffer = (-self.abs()).exp()
        return self.clamp(max=0) - buffer.log1p(), buffer


class log_sigmoid_backward(Backward):
    """Gradient of log_sigmoid: grad sigmoid(-x)."""
    schema = "log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor"
    tags = ()
    same_dtype = ("grad_output", "self", "buffer")
    run = "grad_output / (xp.exp(self) + xp.ones_like(buffer))"  # the buffer's value is not needed
    grad = {
        "grad_output": "log_sigmoid_backward(grad, self, buffer)",
        "self": "-grad * grad_output * self.sigmoid() * (1 - self.sigmoid())",
    }
    c = "{grad_output} * sigmoid(-{self})"

    def decomp(grad_output, self, buffer):
        out = grad_output * (-self).sigmoid()
        return out if buffer.ndim <= out.ndim else out.expand(buffer.shape)

    def samples(s):
        for shape in ((3, 4), (), (0, 3)):
            x = s.real(*shape)
            yield s(s.real(*shape), x, (-x.abs()).exp().detach())
