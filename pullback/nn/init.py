"""Ways to fill parameters before training, with PyTorch's names and random stream.

All write in place, without recording, and return the tensor.
"""

from __future__ import annotations

import functools
import math
import warnings

from ..autograd.grad_mode import no_grad
from ..core.handle import Tensor
from ..table.packets import ops

_OLD = ("uniform", "normal", "constant", "eye", "dirac", "xavier_uniform", "xavier_normal",
        "kaiming_uniform", "kaiming_normal", "orthogonal", "sparse")
__all__ = ["calculate_gain", "constant_", "dirac_", "eye_", "kaiming_normal_", "kaiming_uniform_",
           "normal_", "ones_", "orthogonal_", "sparse_", "trunc_normal_", "uniform_",
           "xavier_normal_", "xavier_uniform_", "zeros_", *_OLD]

_PLAIN = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
          "conv_transpose3d", "sigmoid")
_GAINS = {**dict.fromkeys(_PLAIN, 1), "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which weights before this activation are scaled up."""
    if nonlinearity == "leaky_relu":
        if param is None:
            param = 0.01
        elif isinstance(param, bool) or not isinstance(param, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + param**2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """Numbers of inputs and outputs that one element of a weight connects."""
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 "
                         "dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    """Fan in or fan out, as the mode says."""
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator=None) -> Tensor:
    """Uniform numbers between a and b."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator=None) -> Tensor:
    """Normal numbers."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0,
                  b: float = 2.0, generator=None) -> Tensor:
    """Normal numbers from within [a, b].

    Where the interval holds enough of the distribution, numbers outside are drawn anew; else
    uniform numbers are kept with the probability that the density says.
    """
    if tensor.is_meta:
        return tensor
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn("mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The "
                      "distribution of values may be incorrect.", stacklevel=2)
    below = [math.erf((x - mean) / std / math.sqrt(2.0)) / 2 for x in (a, b)]
    with no_grad():
        if below[1] - below[0] > 0.3:
            return tensor.copy_(_redrawn(tensor, mean, std, a, b, generator))
        return tensor.copy_(_accepted(tensor, mean, std, a, b, generator))


def _redrawn(tensor: Tensor, mean, std, a, b, generator) -> Tensor:
    low, high = (tensor.new_tensor(bound, device="cpu").item() for bound in (a, b))
    result = tensor.normal_(mean, std, generator=generator)
    while True:
        outside = (result < low) | (result > high)
        if not outside.any():
            return result
        fresh = ops.empty_like(result).normal_(mean, std, generator=generator)
        result = ops.where(outside, fresh, result)


def _accepted(tensor: Tensor, mean, std, a, b, generator) -> Tensor:
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2  # logarithm of the largest density
    pending, result = None, None
    while pending is None or pending.any():
        fresh = ops.empty_like(tensor).uniform_(a, b, generator=generator)
        density = fresh.sub(mean).div_(std).pow_(2).mul_(-0.5).sub_(peak)
        refused = ops.empty_like(tensor).uniform_(generator=generator).log_().gt(density)
        result = fresh if pending is None else ops.where(pending, fresh, result)
        pending = refused if pending is None else pending & refused
    return result


def constant_(tensor: Tensor, val: float) -> Tensor:
    """One value everywhere."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros."""
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        return tensor.copy_(ops.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """The kernel of a convolution that hands its input on, as many channels as there are."""
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    outs, ins, *field = tensor.shape
    if outs % groups:
        raise ValueError("dim 0 must be divisible by groups")
    if tensor.is_meta:
        return tensor
    middle = tuple(size // 2 for size in field)
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(outs // groups, ins)):
                tensor[(group * (outs // groups) + channel, channel, *middle)] = 1
    return tensor


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator=None) -> Tensor:
    """Uniform numbers whose variance suits the mean of fan in and fan out."""
    bound = math.sqrt(3.0) * _xavier(tensor, gain)
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator=None) -> Tensor:
    """Normal numbers whose variance suits the mean of fan in and fan out."""
    return normal_(tensor, 0.0, _xavier(tensor, gain), generator)


def _xavier(tensor: Tensor, gain: float) -> float:
    return gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))


def kaiming_uniform_(tensor: Tensor, a: float = 0, mode: str = "fan_in",
                     nonlinearity: str = "leaky_relu", generator=None) -> Tensor:
    """Uniform numbers that keep the variance through rectifiers."""
    std = _kaiming(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor: Tensor, a: float = 0, mode: str = "fan_in",
                    nonlinearity: str = "leaky_relu", generator=None) -> Tensor:
    """Normal numbers that keep the variance through rectifiers."""
    std = _kaiming(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0.0, std, generator)


def _kaiming(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    """The standard deviation, None if there is nothing to fill."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def orthogonal_(tensor: Tensor, gain: float = 1, generator=None) -> Tensor:
    """A random matrix with orthonormal rows or columns; further dims count as columns."""
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0 or tensor.is_meta:
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    with no_grad():
        flat = tensor.new_empty((rows, columns)).normal_(0, 1, generator=generator)
        q, r = ops.linalg_qr(flat.t() if rows < columns else flat)
        q = q * r.diagonal().sign()  # else the signs that the factorisation prefers show
        tensor.copy_((q.t() if rows < columns else q).reshape(tensor.shape))
        return tensor.mul_(gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator=None) -> Tensor:
    """Normal numbers, but this share of each column, at random places, is zero."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    if tensor.is_meta:
        return tensor
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[ops.randperm(rows)[:zeros], column] = 0
    return tensor


def _deprecated(function):
    """The same function under its old name, which had no underscore at its end."""
    old = function.__name__[:-1]

    @functools.wraps(function)
    def renamed(*args, **kwargs):
        warnings.warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{old}_`.",
                      FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    renamed.__name__ = old
    return renamed


for _name in _OLD:
    globals()[_name] = _deprecated(globals()[f"{_name}_"])
