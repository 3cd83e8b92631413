"""Modules of activations.

Most hold a few numbers and call the function of the same name.  `_Simple` makes such a class from
the names of its arguments: they are the attributes, the arguments of the function and the text that
`print` shows.
"""

from __future__ import annotations

import warnings

from ..core.handle import Tensor
from ..table.packets import ops
from . import functional as F
from . import init
from .module import Module
from .shared import Family, new


class _Simple(Family):
    """`function(input, *attributes)`, the attributes named by `fields`."""

    fields: tuple[str, ...] = ()
    shown = None  # fields that `print` shows; None: all

    def __init_subclass__(cls, *, fields: tuple[str, ...] | None = None, **kwargs) -> None:
        super().__init_subclass__(**kwargs)
        if fields is not None:
            cls.fields = fields

    def _keep(self, **values) -> None:
        super().__init__()
        for name, value in values.items():
            setattr(self, name, value)

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, *(getattr(self, name) for name in self.fields))

    def extra_repr(self) -> str:
        names = self.fields if self.shown is None else self.shown
        parts = [f"{n}={getattr(self, n)}" for n in names if n != "inplace"]
        return ", ".join(parts + ["inplace=True"] * bool(getattr(self, "inplace", False)))


class _InPlace(_Simple, fields=("inplace",)):
    """One that has no argument but whether to overwrite its input."""

    def __init__(self, inplace: bool = False) -> None:
        self._keep(inplace=inplace)


class _AlongDim(_Simple, fields=("dim",)):
    """One along a dim, which is chosen by the rank of the input if it is None."""

    def __init__(self, dim: int | None = None) -> None:
        self._keep(dim=dim)


class Threshold(_Simple, function=F.threshold, fields=("threshold", "value", "inplace")):
    """x where it exceeds the threshold, else `value`."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        self._keep(threshold=threshold, value=value, inplace=inplace)


class Hardtanh(_Simple, function=F.hardtanh, fields=("min_val", "max_val", "inplace")):
    """x cut off at `min_val` and `max_val`."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False,
                 min_value: float | None = None, max_value: float | None = None) -> None:
        for old in ("min_value", "max_value"):
            if locals()[old] is not None:
                warnings.warn(f"keyword argument `{old}` is deprecated and rename to "
                              f"`{old[:-2]}`", FutureWarning, stacklevel=2)
        min_val = min_val if min_value is None else min_value
        max_val = max_val if max_value is None else max_value
        if not max_val > min_val:
            raise AssertionError("max_val must be larger than min_val")
        self._keep(min_val=min_val, max_val=max_val, inplace=inplace)


class ReLU6(Hardtanh, shown=()):
    """min(max(x, 0), 6)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


class Hardsigmoid(_InPlace, function=F.hardsigmoid):
    """The sigmoid as three straight pieces."""


class Hardswish(_InPlace, function=F.hardswish):
    """x * hardsigmoid(x)."""


class Mish(_InPlace, function=F.mish):
    """x * tanh(softplus(x))."""


class SELU(_InPlace, function=F.selu):
    """The exponential unit whose scales keep mean and variance fixed."""


class CELU(_Simple, function=F.celu, fields=("alpha", "inplace")):
    """x, or alpha * (exp(x / alpha) - 1) where x is negative."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self._keep(alpha=alpha, inplace=inplace)


class GLU(_Simple, function=F.glu, fields=("dim",)):
    """First half times the sigmoid of the second half."""

    def __init__(self, dim: int = -1) -> None:
        self._keep(dim=dim)


class Hardshrink(_Simple, function=F.hardshrink, fields=("lambd",)):
    """x, or 0 where its absolute value is at most `lambd`."""

    def __init__(self, lambd: float = 0.5) -> None:
        self._keep(lambd=lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Hardshrink, function=F.softshrink):
    """x moved towards 0 by `lambd`."""


class Softsign(_Simple, function=F.softsign):
    """x / (1 + |x|)."""


class Tanhshrink(_Simple, function=F.tanhshrink):
    """x - tanh(x)."""


class LogSigmoid(_Simple, function=F.logsigmoid):
    """Logarithm of the sigmoid."""


class Softmin(_AlongDim, function=F.softmin):
    """Softmax of -x."""


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return F.softmax(input, -3)


class PReLU(Module):
    """x, times a learned slope where it is negative."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device=None,
                 dtype=None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = new((num_parameters,), device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The initial slope."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class RReLU(Module):
    """x, times a random (in training) or mean slope where it is negative."""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3,
                 inplace: bool = False) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" * self.inplace)


class ReLU(_InPlace):
    """max(x, 0)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, self.inplace)


class LeakyReLU(_Simple, fields=("negative_slope", "inplace")):
    """x, scaled by `negative_slope` where it is negative."""

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        self._keep(negative_slope=negative_slope, inplace=inplace)

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class ELU(_Simple, fields=("alpha", "inplace")):
    """x, or alpha * (exp(x) - 1) where x is negative."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self._keep(alpha=alpha, inplace=inplace)

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


class GELU(Module):
    """x times the normal distribution function of x."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class SiLU(_InPlace):
    """x * sigmoid(x)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Tanh(Module):
    """Hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        return ops.tanh(input)


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, input: Tensor) -> Tensor:
        return ops.sigmoid(input)


class Softplus(Module):
    """log(1 + exp(beta * x)) / beta."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Softmax(_AlongDim):
    """Exponentials divided by their sum along `dim`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(_AlongDim):
    """Logarithm of the softmax along `dim`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, _stacklevel=5)
