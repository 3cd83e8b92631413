"""Activations and softmaxes."""

from __future__ import annotations

import warnings

from ...core.handle import Tensor
from ...table.packets import ops
from ...tensor.overridable import asks_in as _asks_in
from ...tensor.overridable import overridable as _overridable
from ...tensor.overridable import taken_over as _taken_over
from .arguments import _activation, _softmax_dim

_asks = _asks_in(globals())


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0)."""
    if _asks and (taken := _taken_over(relu, locals())):
        return taken[0]
    return ops.relu_(input) if inplace else ops.relu(input)


def relu_(input: Tensor) -> Tensor:
    """max(x, 0), in place."""
    if _asks and (taken := _taken_over(relu_, (input,))):
        return taken[0]
    return ops.relu_(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6)."""
    if _asks and (taken := _taken_over(relu6, locals())):
        return taken[0]
    return hardtanh(input, 0, 6, inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0,
             inplace: bool = False) -> Tensor:
    """x cut off at `min_val` and `max_val`."""
    if _asks and (taken := _taken_over(hardtanh, locals())):
        return taken[0]
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _activation("hardtanh", inplace, input, min_val, max_val)


@_overridable
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where it exceeds the threshold, else `value`."""
    return _activation("threshold", inplace, input, threshold, value)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x, scaled by `negative_slope` where it is negative."""
    if _asks and (taken := _taken_over(leaky_relu, locals())):
        return taken[0]
    return _activation("leaky_relu", inplace, input, negative_slope)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x, or alpha * (exp(x) - 1) where x is negative."""
    if _asks and (taken := _taken_over(elu, locals())):
        return taken[0]
    return _activation("elu", inplace, input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """The exponential unit whose scales keep mean and variance fixed."""
    if _asks and (taken := _taken_over(selu, locals())):
        return taken[0]
    return _activation("selu", inplace, input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x, or alpha * (exp(x / alpha) - 1) where x is negative."""
    if _asks and (taken := _taken_over(celu, locals())):
        return taken[0]
    return _activation("celu", inplace, input, alpha)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x, scaled by a learned slope where it is negative."""
    if _asks and (taken := _taken_over(prelu, (input, weight))):
        return taken[0]
    return ops.prelu(input, weight)


def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False,
          inplace: bool = False) -> Tensor:
    """x, scaled by a random (in training) or mean slope where it is negative."""
    if _asks and (taken := _taken_over(rrelu, locals())):
        return taken[0]
    return _activation("rrelu", inplace, input, lower, upper, training)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x times the normal distribution function of x."""
    if _asks and (taken := _taken_over(gelu, locals())):
        return taken[0]
    return ops.gelu(input, approximate=approximate)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x)."""
    if _asks and (taken := _taken_over(silu, locals())):
        return taken[0]
    return _activation("silu", inplace, input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x))."""
    if _asks and (taken := _taken_over(mish, locals())):
        return taken[0]
    return _activation("mish", inplace, input)


def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """log(1 + exp(beta * x)) / beta; x itself beyond the threshold."""
    if _asks and (taken := _taken_over(softplus, (input, beta, threshold))):
        return taken[0]
    return ops.softplus(input, beta, threshold)


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    if _asks and (taken := _taken_over(sigmoid, locals())):
        return taken[0]
    return ops.sigmoid(input)


def logsigmoid(input: Tensor) -> Tensor:
    """Logarithm of the sigmoid."""
    if _asks and (taken := _taken_over(logsigmoid, (input,))):
        return taken[0]
    return ops.log_sigmoid(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """The sigmoid as three straight pieces."""
    if _asks and (taken := _taken_over(hardsigmoid, locals())):
        return taken[0]
    return _activation("hardsigmoid", inplace, input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * hardsigmoid(x)."""
    if _asks and (taken := _taken_over(hardswish, locals())):
        return taken[0]
    return _activation("hardswish", inplace, input)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x, or 0 where its absolute value is at most `lambd`."""
    if _asks and (taken := _taken_over(hardshrink, (input, lambd))):
        return taken[0]
    return ops.hardshrink(input, lambd)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by `lambd`."""
    if _asks and (taken := _taken_over(softshrink, (input, lambd))):
        return taken[0]
    return ops.softshrink(input, lambd)


def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent."""
    if _asks and (taken := _taken_over(tanh, locals())):
        return taken[0]
    return ops.tanh(input)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    if _asks and (taken := _taken_over(tanhshrink, locals())):
        return taken[0]
    return input - ops.tanh(input)


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    if _asks and (taken := _taken_over(softsign, locals())):
        return taken[0]
    return input / (input.abs() + 1)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """First half times the sigmoid of the second half."""
    if _asks and (taken := _taken_over(glu, locals())):
        return taken[0]
    if input.ndim == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return ops.glu(input, dim)


def _writing(name: str, function):
    """The in-place form of an activation: `elu_(x)`."""
    def write(input: Tensor, *args, **kwargs) -> Tensor:
        return function(input, *args, inplace=True, **kwargs)
    write.__name__ = write.__qualname__ = name
    write.__doc__ = f"`{name[:-1]}`, in place."
    return _overridable(write)


elu_, selu_, celu_ = _writing("elu_", elu), _writing("selu_", selu), _writing("celu_", celu)
leaky_relu_, rrelu_ = _writing("leaky_relu_", leaky_relu), _writing("rrelu_", rrelu)
hardtanh_, threshold_ = _writing("hardtanh_", hardtanh), _writing("threshold_", threshold)


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype=None) -> Tensor:
    """Exponentials divided by their sum along `dim`."""
    if _asks and (taken := _taken_over(softmax, locals())):
        return taken[0]
    dim = _softmax_dim("softmax", input.ndim) if dim is None else dim
    if dtype is None:
        return ops._softmax(input, dim, False)
    return ops.softmax(input, dim, dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype=None) -> Tensor:
    """Softmax of -x."""
    if _asks and (taken := _taken_over(softmin, locals())):
        return taken[0]
    if dim is None:
        dim = _softmax_dim("softmin", input.ndim)
    return softmax(-input, dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype=None) -> Tensor:
    """Logarithm of the softmax along `dim`."""
    if _asks and (taken := _taken_over(log_softmax, locals())):
        return taken[0]
    dim = _softmax_dim("log_softmax", input.ndim) if dim is None else dim
    if dtype is None:
        return ops._log_softmax(input, dim, False)
    return ops.log_softmax(input, dim, dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10,
                   dim: int = -1) -> Tensor:
    """A random, differentiable near-choice among classes; `hard` gives a one with its gradient."""
    if _asks and (taken := _taken_over(gumbel_softmax, locals())):
        return taken[0]
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    blank = ops.empty_like(logits, memory_format="contiguous_format")
    noise = -ops.exponential_(blank).log()
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    choice = ops.zeros_like(logits).scatter(dim, soft.argmax(dim, keepdim=True), 1.0)
    return choice - soft.detach() + soft
