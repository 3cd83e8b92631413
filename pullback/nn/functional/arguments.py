"""Words and flags among the arguments of the functions, as operators take them."""

from __future__ import annotations

import warnings

from ...core.handle import Tensor
from ...table.packets import ops

_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def reduction_code(reduction: str, size_average: bool | None = None,
                   reduce: bool | None = None) -> int:
    """0, 1 or 2 for "none", "mean" or "sum"; the legacy flags win if they are given."""
    if size_average is not None or reduce is not None:
        reduction = _legacy_reduction(size_average, reduce)
    try:
        return _REDUCTIONS[reduction]
    except KeyError:
        raise ValueError(f"{reduction} is not a valid value for reduction") from None


def _legacy_reduction(size_average: bool | None, reduce: bool | None) -> str:
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    word = "none" if not reduce else "mean" if size_average else "sum"
    warnings.warn("size_average and reduce args will be deprecated, please use "
                  f"reduction='{word}' instead.", stacklevel=4)
    return word


def _softmax_dim(name: str, ndim: int) -> int:
    """The dim of old programs that give none."""
    warnings.warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to "
                  "include dim=X as an argument.", stacklevel=3)
    return 0 if ndim in (0, 1, 3) else 1


def _activation(name: str, inplace: bool, input: Tensor, *args) -> Tensor:
    """An operator of the table, or its in-place variant."""
    return getattr(ops, f"{name}_" if inplace else name)(input, *args)


def _sequence(value, rank: int) -> list:
    """One entry for each spatial dim."""
    return list(value) if isinstance(value, (list, tuple)) else [value] * rank
