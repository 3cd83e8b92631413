"""Softmax of sparse tensors over what is specified: sparse dims by segments, dense ones as ever.

The largest entry of a segment is subtracted, which changes nothing and has no gradient.
"""

from __future__ import annotations

from typing import Any

from .. import errors
from ..array.dims import wrap_dim
from ..core.handle import Tensor
from ..parts.rules import rule, shown
from ..table.packets import ops
from . import patterns
from .elementwise import as_coo, coalesced, sparse_values
from .tensor import SparseTensor


def softmax_of(t: SparseTensor, dim: int, dtype: Any = None, log: bool = False) -> SparseTensor:
    """The softmax, or its logarithm, over one dim: what is not specified takes no part."""
    t = coalesced(t)
    d = wrap_dim(dim, t.ndim)
    values = t.entry_values()
    values = values if dtype is None else values.to(dtype)
    coordinates = t.coordinates()
    if d >= len(coordinates):
        function = ops.log_softmax if log else ops.softmax
        return t.with_entries(function(values, d - len(coordinates) + 1))
    if not values.dtype.is_inexact:
        raise errors.DTypeError(
            f'"softmax" not implemented for {values.dtype.name} ({errors.user_line(3)})')
    at, count = _segments(t, coordinates, d)
    out = values - _largest(values.detach(), at, count)[at]
    zeros = ops.zeros((count, *values.shape[1:]), dtype=values.dtype, device=values.device)
    powers = out.exp()
    sums = zeros.index_add(0, at, powers)
    return t.with_entries(out - sums.log()[at] if log else powers / sums[at])


def softmax_backward(grad: SparseTensor, output: SparseTensor, dim: int,
                     log: bool = False) -> SparseTensor:
    """The gradient of a softmax, or of its logarithm, from its result."""
    d = wrap_dim(dim, output.ndim)
    out, coordinates = output.entry_values(), output.coordinates()
    g = sparse_values(as_coo(grad), output)
    if d >= len(coordinates):
        d = d - len(coordinates) + 1
        return output.with_entries(g - out.exp() * g.sum(d, True) if log
                                   else out * (g - (g * out).sum(d, True)))
    at, count = _segments(output, coordinates, d)
    zeros = ops.zeros((count, *out.shape[1:]), dtype=out.dtype, device=out.device)
    if log:
        return output.with_entries(g - out.exp() * zeros.index_add(0, at, g)[at])
    return output.with_entries(out * (g - zeros.index_add(0, at, g * out)[at]))


def _segments(t: SparseTensor, coordinates: tuple, dim: int) -> tuple[Tensor, int]:
    """(Entry -> number of the line along a dim that it is on, how many lines there are)."""
    others = [d for d in range(len(coordinates)) if d != dim]
    if not others:
        return ops.zeros(t.entry_values().shape[0], dtype=coordinates[0].dtype,
                         device=coordinates[0].device), 1
    sizes = tuple([t.shape[d] for d in others])
    if len(others) == 1:
        return coordinates[others[0]], sizes[0]
    others_at = ops.stack([coordinates[d] for d in others])
    every = patterns.is_of_each(others_at)
    found = (patterns.all_places if every else patterns.distinct)(others_at, sizes)
    return found.inverse, found.indices.shape[1]


def _largest(values: Tensor, at: Tensor, count: int) -> Tensor:
    zeros = ops.zeros((count, *values.shape[1:]), dtype=values.dtype, device=values.device)
    return zeros.index_reduce(0, at, values, "amax", include_self=False)


@rule(SparseTensor, "softmax.int")
def _softmax(t: SparseTensor, dim: int, dtype: Any = None):
    return softmax_of(t, dim, dtype)


@rule(SparseTensor, "log_softmax.int")
def _log_softmax(t: SparseTensor, dim: int, dtype: Any = None):
    return softmax_of(t, dim, dtype, True)


def _asked(name: str, log: bool):
    def function(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
        if not isinstance(input, SparseTensor):
            raise errors.LayoutError(errors.text(
                f"sparse.{name}: expected a sparse tensor ({errors.user_line(2)})", shown(input),
                f"torch.{name}(x, dim)"))
        return softmax_of(input, dim, dtype, log)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The {name} over the specified elements along a dim."
    return function


softmax, log_softmax = _asked("softmax", False), _asked("log_softmax", True)
