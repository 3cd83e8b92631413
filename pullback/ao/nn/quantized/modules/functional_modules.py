"""Arithmetic of models as modules, so that its results can be observed and quantised."""

from __future__ import annotations

from typing import Any

from ..... import nn
from .....core.handle import Tensor
from .....quantized.operators import functions
from .....table.packets import ops
from .utils import Scaled, observed


def _refused() -> None:
    raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the "
                       "underlying operation")


class FXFloatFunctional(nn.Module):
    """Arithmetic without observers."""

    def forward(self, x: Tensor) -> Tensor:
        return _refused()

    def _seen(self, r: Tensor) -> Tensor:
        return r

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """x + y."""
        return self._seen(ops.add(x, y))

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """x + y, for a number."""
        return ops.add(x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """x * y."""
        return self._seen(ops.mul(x, y))

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """x * y, for a number."""
        return ops.mul(x, y)

    def cat(self, x: list[Tensor], dim: int = 0) -> Tensor:
        """Tensors side by side."""
        return self._seen(ops.cat(x, dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """x + y where that is positive, else 0."""
        return self._seen(ops.add(x, y).relu())

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """x @ y."""
        return self._seen(ops.matmul(x, y))


class FloatFunctional(FXFloatFunctional):
    """Arithmetic whose results an observer looks at."""

    def __init__(self):
        super().__init__()
        self.activation_post_process = nn.Identity()

    def _seen(self, r: Tensor) -> Tensor:
        return self.activation_post_process(r)


class QFunctional(Scaled):
    """Arithmetic from integers to integers."""

    def __init__(self):
        super().__init__()
        self.scale, self.zero_point = 1.0, 0
        self.activation_post_process = nn.Identity()

    def _get_name(self) -> str:
        return "QFunctional"

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}"

    def forward(self, x: Tensor) -> Tensor:
        return _refused()

    def _of(self, name: str, *given: Any) -> Tensor:
        out = functions[name](*given, self.scale, self.zero_point)
        return self.activation_post_process(out)

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """x + y."""
        return self._of("add", x, y)

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """x + y, for a number."""
        return functions["add_scalar"](x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """x * y."""
        return self._of("mul", x, y)

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """x * y, for a number."""
        return functions["mul_scalar"](x, y)

    def cat(self, x: list[Tensor], dim: int = 0) -> Tensor:
        """Tensors side by side."""
        return self._of("cat", x, dim)

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """x + y where that is positive, else 0."""
        return self._of("add_relu", x, y)

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """x @ y."""
        return self._of("matmul", x, y)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> QFunctional:
        """The module that stands for one with an observer."""
        if type(mod) is not FloatFunctional:
            raise AssertionError("QFunctional.from_float expects an instance of FloatFunctional, "
                                 f"got {type(mod).__name__}")
        new = QFunctional()
        new.scale, new.zero_point = observed(mod)
        return new
