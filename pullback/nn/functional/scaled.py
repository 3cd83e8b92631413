"""Products of matrices in eight bits and less, which only the libraries of vendors provide."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from ...array import dtype as dt
from ...core.handle import Tensor
from ...errors import NotInThisBuild, text, user_line
from ...tensor.overridable import asks_in as _asks_in
from ...tensor.overridable import taken_over as _taken_over

_asks = _asks_in(globals())

__all__ = ["ScalingType", "SwizzleType", "scaled_grouped_mm", "scaled_mm"]


class ScalingType(IntEnum):
    """How many elements share a scale."""

    TensorWise, RowWise, BlockWise1x16, BlockWise1x32, BlockWise1x128, BlockWise128x128 = range(6)


class SwizzleType(IntEnum):
    """How scales lie in memory."""

    NO_SWIZZLE, SWIZZLE_32_4_4 = range(2)


def _refuse(name: str, instead: str) -> NotInThisBuild:
    return NotInThisBuild(text(
        f"{name} ({user_line(3)}): it runs on the matrix units of one vendor's GPUs and is not "
        "part of this package", [], f"multiply the scales in and use {instead}"))


def scaled_mm(mat_a: Tensor, mat_b: Tensor, scale_a, scale_recipe_a, scale_b, scale_recipe_b,
              swizzle_a=None, swizzle_b=None, bias: Tensor | None = None,
              output_dtype: Any = dt.bfloat16, contraction_dim: Any = (),
              use_fast_accum: bool = False) -> Tensor:
    """Refused: a matrix product in eight bits or less with scales."""
    if _asks and (taken := _taken_over(scaled_mm, locals())):
        return taken[0]
    raise _refuse("scaled_mm", "mm")


def scaled_grouped_mm(mat_a: Tensor, mat_b: Tensor, scale_a, scale_recipe_a, scale_b,
                      scale_recipe_b, swizzle_a=None, swizzle_b=None, bias: Tensor | None = None,
                      offs: Tensor | None = None, output_dtype: Any = dt.bfloat16,
                      contraction_dim: Any = (),
                      use_fast_accum: bool = False) -> Tensor:
    """Refused: matrix products of groups in eight bits or less with scales."""
    if _asks and (taken := _taken_over(scaled_grouped_mm, locals())):
        return taken[0]
    raise _refuse("scaled_grouped_mm", "grouped_mm")
