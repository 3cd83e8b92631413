"""The functions of `ops.quantized` by their names, and what most of them do.

Most take numbers out of integers, compute in single precision, and round with the scale and zero
point that are given.  Read next: `operators.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..array import dtype as dt
from ..core.handle import Tensor
from ..table.packets import ops
from .construct import check_parameters, rounded
from .products import one_scale
from .tensor import QuantizedTensor

functions: dict[str, Callable] = {}


def named(*names: str):
    """Decorate a function of `ops.quantized`; `add.Scalar` is the name of an overload of `add`."""

    def decorate(function: Callable) -> Callable:
        functions.update(dict.fromkeys(names, function))
        return function

    return decorate


def to_integers(numbers: Tensor, scale: Any, zero_point: Any, kind: Any, name: str,
                through: bool = False) -> QuantizedTensor:
    """Numbers as a quantised tensor with a scale and a zero point."""
    step = scale if isinstance(scale, Tensor) else ops.full((), float(scale), dtype=dt.float64)
    zero = zero_point if isinstance(zero_point, Tensor) else ops.full((), int(zero_point))
    check_parameters(step, zero, kind, f"quantized::{name}")
    return rounded(numbers, step.reshape(()), zero.reshape(()), kind, straight_through=through)


def followed(*tensors: Any) -> bool:
    """Has one of some tensors numbers with a history?"""
    return any(isinstance(t, QuantizedTensor) and t.through_part is not None for t in tensors)


def computed(name: str, function: Callable, given: tuple, scale: Any,
             zero_point: Any) -> QuantizedTensor:
    """A function of the numbers of quantised tensors, rounded."""
    for t in given:
        one_scale(t, name)
    numbers = function(*[t.dequantize() for t in given])
    return to_integers(numbers, scale, zero_point, given[0].kind, name, followed(*given))
