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
from .shared import new


class _Simple(Module):
    """`function(input, *attributes)`, the attributes named by `fields`."""

    function = None
    fields: tuple[str, ...] = ()
    shown: tuple[str, ...] | None = None  # fields that `print` shows; None: all

    def _keep(self, **values) -> None:
        super().__init__()
        for name, value in values.items():
            setattr(self, name, value)

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, *(getattr(self, name) for name in self.fields))

    def extra_repr(self) -> str:
        names = self.fields if self.shown is None else self.shown
        parts = [f"{n}={getattr(self, n)}" for n in names if n != "inplace"]
        return ", ".join(parts + ["inplace=True"] * (getattr(self, "inplace", False) is True))


class Threshold(_Simple):
    """x where it exceeds the threshold, else `value`."""

    function, fields = staticmethod(F.threshold), ("threshold", "value", "inplace")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        self._keep(threshold=threshold, value=value, inplace=inplace)


class Hardtanh(_Simple):
    """x cut off at `min_val` and `max_val`."""

    function, fields = staticmethod(F.hardtanh), ("min_val", "max_val", "inplace")

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


class ReLU6(Hardtanh):
    """min(max(x, 0), 6)."""

    shown = ()

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


class Hardsigmoid(_Simple):
    """The sigmoid as three straight pieces."""

    function, fields = staticmethod(F.hardsigmoid), ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        self._keep(inplace=inplace)


class Hardswish(_Simple):
    """x * hardsigmoid(x)."""

    function, fields = staticmethod(F.hardswish), ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        self._keep(inplace=inplace)


class Mish(_Simple):
    """x * tanh(softplus(x))."""

    function, fields = staticmethod(F.mish), ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        self._keep(inplace=inplace)


class SELU(_Simple):
    """The exponential unit whose scales keep mean and variance fixed."""

    function, fields = staticmethod(F.selu), ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        self._keep(inplace=inplace)


class CELU(_Simple):
    """x, or alpha * (exp(x / alpha) - 1) where x is negative."""

    function, fields = staticmethod(F.celu), ("alpha", "inplace")

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self._keep(alpha=alpha, inplace=inplace)


class GLU(_Simple):
    """First half times the sigmoid of the second half."""

    function, fields = staticmethod(F.glu), ("dim",)

    def __init__(self, dim: int = -1) -> None:
        self._keep(dim=dim)


class Hardshrink(_Simple):
    """x, or 0 where its absolute value is at most `lambd`."""

    function, fields = staticmethod(F.hardshrink), ("lambd",)

    def __init__(self, lambd: float = 0.5) -> None:
        self._keep(lambd=lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Hardshrink):
    """x moved towards 0 by `lambd`."""

    function = staticmethod(F.softshrink)


class Softsign(_Simple):
    """x / (1 + |x|)."""

    function = staticmethod(F.softsign)


class Tanhshrink(_Simple):
    """x - tanh(x)."""

    function = staticmethod(F.tanhshrink)


class LogSigmoid(_Simple):
    """Logarithm of the sigmoid."""

    function = staticmethod(F.logsigmoid)


class Softmin(_Simple):
    """Softmax of -x."""

    function, fields = staticmethod(F.softmin), ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        self._keep(dim=dim)


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


class ReLU(Module):
    """max(x, 0)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, self.inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class LeakyReLU(Module):
    """x, scaled by `negative_slope` where it is negative."""

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class ELU(Module):
    """x, or alpha * (exp(x) - 1) where x is negative."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class GELU(Module):
    """x times the normal distribution function of x."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class SiLU(Module):
    """x * sigmoid(x)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


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


class Softmax(Module):
    """Exponentials divided by their sum along `dim`."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, _stacklevel=5)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(Module):
    """Logarithm of the softmax along `dim`."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, _stacklevel=5)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"
