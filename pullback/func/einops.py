"""`functorch.einops.rearrange`: reshape and permute by a pattern of axis names."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from .. import errors
from ..core.handle import Tensor
from ..table.packets import ops

__all__ = ["rearrange"]
_TOKEN = re.compile(r"\s*(\.\.\.|[()]|[^\W\d]\w*|1(?!\w)|\S+)")


def rearrange(tensor: Tensor | Sequence[Tensor], pattern: str, **axes_lengths: int) -> Tensor:
    """`tensor` with its axes as the right side of the pattern has them.

    `rearrange(images, "b (h k) w c -> b h w (c k)", k=2)`: names are axes, brackets axes that are
    one axis of the tensor, `...` all others, 1 an axis of that size.  A list of tensors is stacked.
    """
    if not isinstance(tensor, Tensor):
        tensor = ops.stack(list(tensor), 0)
    sides = pattern.split("->")
    if len(sides) != 2:
        raise _refused(pattern, "it must contain a single '->'")
    left, right = (_parsed(side, pattern) for side in sides)
    names, wanted = ({n for group in side for n in group} for side in (left, right))
    if "..." in wanted - names:
        raise _refused(pattern, "'...' is on its right side only")
    if any("..." in group and type(group) is tuple for group in left):
        raise _refused(pattern, "'...' is in brackets on its left side")
    if names != wanted:
        raise _refused(pattern, f"these axes are on one side only: {sorted(names ^ wanted)}")
    for name, length in axes_lengths.items():
        if name not in names:
            raise _refused(pattern, f"it has no axis {name!r}, which a length is given for")
        if not isinstance(length, int):
            raise errors.ArgumentError(
                f"rearrange: axis lengths must be integers, got {type(length).__name__} for "
                f"{name!r} ({errors.user_line()})")
    sizes, others = _measured(tensor, pattern, left, axes_lengths)

    def spread(group: Sequence[str]) -> list[str]:
        return [m for n in group for m in (others if n == "..." else [n])]

    order = [n for group in left for n in spread(group)]
    target = [n for group in right for n in spread(group)]
    parts = ops.permute(ops.reshape(tensor, [sizes[n] for n in order]),
                        [order.index(n) for n in target])
    shape: list[int] = []
    for group in right:
        found = [sizes[n] for n in spread(group)]
        shape += [math.prod(found)] if type(group) is tuple else found
    return ops.reshape(parts, shape)


def _refused(pattern: str, why: str) -> Exception:
    return errors.BadValue(errors.text(
        f"rearrange cannot use the pattern {pattern!r} ({errors.user_line(3)})", why))


def _parsed(side: str, pattern: str) -> list:
    """Axes in order: a list of one name each, or a tuple of names for brackets; 1 is no name."""
    groups: list = []
    inside: list[str] | None = None
    seen: set[str] = set()
    for token in _TOKEN.findall(side):
        if token == "(" and inside is None:
            inside = []
        elif token == ")" and inside is not None:
            groups.append(tuple(inside))
            inside = None
        elif token == "1":
            if inside is None:
                groups.append(())
        elif token in seen:
            raise _refused(pattern, f"{token!r} is twice on one side")
        elif token == "..." or (token.isidentifier() and token.strip("_") == token):
            seen.add(token)
            if inside is None:
                groups.append([token])
            else:
                inside.append(token)
        else:
            raise _refused(pattern, f"{token!r} is no axis, or a bracket too much")
    if inside is not None:
        raise _refused(pattern, "a bracket is not closed")
    return groups


def _measured(tensor: Tensor, pattern: str, left: list, given: dict[str, int]) -> tuple:
    """The size of each axis, and names for those that `...` stands for."""
    count = tensor.ndim - sum(group != ["..."] for group in left)
    if count < 0 or (count and ["..."] not in left):
        raise _refused(pattern, f"its left side has {len(left)} axes, the tensor {tensor.ndim}")
    others = [f"...{i}" for i in range(count)]
    sizes, dims = dict(given), list(tensor.shape)
    for group in left:
        if group == ["..."]:
            sizes.update(zip(others, dims[:count]))
            dims = dims[count:]
            continue
        size = dims.pop(0)
        open_ones = [n for n in group if n not in sizes]
        known = math.prod(sizes[n] for n in group if n in sizes)
        if len(open_ones) > 1:
            raise _refused(pattern, f"the sizes of {open_ones} do not follow from the shape")
        if open_ones and known and size % known == 0:
            sizes[open_ones[0]] = size // known
        elif open_ones or known != size:
            raise _refused(pattern, f"an axis of size {size} is no {' times '.join(group) or 1} "
                                    f"of {[sizes[n] for n in group if n in sizes]}")
    return sizes, others
