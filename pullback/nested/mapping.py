"""`vmap` over the parts of a nested tensor, whose lengths differ: one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import errors
from ..core.handle import Tensor
from ..pytree import tree_flatten, tree_unflatten
from ..table.packets import ops


def over_parts(function: Callable, flat: list, dims: list, spec: Any, kwargs: dict,
               places: Callable) -> Any:
    """The results of a function of each part (and of the slices of dense arguments) together:
    stacked where they have one shape, otherwise a nested tensor."""
    size = next(len(v) for v, d in zip(flat, dims) if d is not None)
    columns = [v.unbind(d) if d is not None else [v] * size for v, d in zip(flat, dims)]
    found, out_spec, out = [], None, None
    for row in zip(*columns):
        out = function(*tree_unflatten(list(row), spec), **kwargs)
        leaves, out_spec = tree_flatten(out)
        found.append(leaves)
    return tree_unflatten([_together(list(column), place)
                           for column, place in zip(zip(*found), places(out))], out_spec)


def _together(results: list[Tensor], place: Any) -> Any:
    if place is None or not isinstance(results[0], Tensor):
        return results[0]
    if all(r.shape == results[0].shape for r in results):
        return ops.stack(results, place)
    if place:
        raise errors.MappingError(errors.text(
            f"vmap: results of different sizes are put together along dim 0, not {place} "
            f"({errors.user_line(5)})", f"sizes: {[list(r.shape) for r in results]}",
            "leave out_dims away"))
    from .construct import jagged_of

    return jagged_of(results, "vmap")
