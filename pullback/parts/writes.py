"""Elementwise operators in place on tensors that are made of parts: the result has to fit.

`sparse/inplace.py` has what is particular to patterns.
"""

from __future__ import annotations

from typing import Any

from ..core.stack import bind
from ..core.surface import check_result
from .tensor import PartsTensor


def write_elements(ov, flat: tuple) -> Any:
    """`x.op_(...)`: NotImplemented for operators that are not elementwise, or if `x` is dense."""
    x = flat[0]
    if ov.kind != "pointwise" or not isinstance(x, PartsTensor):
        return NotImplemented
    new = bind(ov, flat)
    if isinstance(new, PartsTensor):
        check_result(ov, x, new.shape, new.dtype)
        if new.dtype is not x.dtype:
            new = new.with_carrier(new.values_with_history.to(x.dtype))
    x.write_all(new, ov.op.base_name)
    return x
