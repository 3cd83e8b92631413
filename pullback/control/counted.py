"""`fori_loop` and `switch`: a loop over whole numbers, and one of several branches.

Both are said with the operators of this package: `scan` where the bounds are known, `while_loop`
where tensors have them, `cond` for each half of the branches.  Read `loops.py` first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import errors
from ..core.handle import Tensor
from ..pytree import tree_flatten
from ..table.packets import ops
from .cond import cond
from .loops import scan
from .subgraph import hidden
from .whiles import while_loop


def fori_loop(lower: int | Tensor, upper: int | Tensor, body: Callable, init: Any) -> Any:
    """`for i in range(lower, upper): init = body(i, init)`, and what that is in the end.

    `i` is a tensor without dims. With bounds that are tensors the number of steps is unknown to a
    capture: the loop is a `while_loop` there.
    """
    if not callable(body):
        raise errors.RefusedValue(
            f"fori_loop: the body must be callable, got {type(body).__name__} "
            f"({errors.user_line(2)})")
    bounds = [b for b in (lower, upper) if isinstance(b, Tensor)]
    leaves = [t for t in tree_flatten(init)[0] if isinstance(t, Tensor)]
    if bounds and hidden([*bounds, *leaves]):
        first = lower if isinstance(lower, Tensor) else ops.full((), lower, dtype=upper.dtype)

        def step(i: Tensor, carry: Any) -> tuple:
            return i + 1, body(i, carry)

        return while_loop(lambda i, carry: i < upper, step, (first.clone(), init))[1]
    begin, end = (int(b) for b in (lower, upper))
    if end <= begin:
        return init
    numbers = ops.arange(begin, end)
    if hidden(leaves):
        return scan(lambda carry, i: (body(i, carry), ()), init, numbers)[0]
    for i in range(end - begin):
        init = body(numbers[i], init)
    return init


def switch(index: int | Tensor, branches: Sequence[Callable], *operands: Any) -> Any:
    """`branches[index](*operands)`, the first or last branch where the index is too small or large.
    """
    branches = list(branches)
    if not branches or not all(map(callable, branches)):
        raise errors.RefusedValue(
            f"switch: the branches must be one or more functions ({errors.user_line(2)})")
    if isinstance(index, Tensor) and index.numel() != 1:
        raise errors.RefusedValue(
            f"switch: the index must be a number or a tensor of one, got {list(index.shape)} "
            f"({errors.user_line(2)})")
    if not isinstance(index, Tensor):
        return branches[min(max(index, 0), len(branches) - 1)](*operands)

    def chosen(first: int, last: int) -> Callable:
        if last - first == 1:
            return branches[first]
        middle = (first + last) // 2
        one, other = chosen(first, middle), chosen(middle, last)
        return lambda *given: cond(index < middle, one, other, given)

    return chosen(0, len(branches))(*operands)
