"""Products of nested tensors with matrices and with each other.

A matrix for all parts multiplies the values.  What differs from part to part is multiplied in
groups of parts with similar lengths (`groups.py`), so that little of the work is on padding.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import errors
from ..core.handle import Tensor
from ..parts.rules import rule, shown
from ..table.packets import ops
from .groups import Rows, grouped, values_of
from .tensor import NestedTensor, packed


def unlike(name: str, a: Tensor, b: Tensor) -> Exception:
    return errors.ShapeError(errors.text(
        f"{name}(): not supported between inputs of shapes {tuple(a.shape)} and {tuple(b.shape)} "
        f"({errors.user_line(3)})", [shown(a), shown(b)],
        "a result may have one ragged dim; attention has scaled_dot_product_attention"))


@rule(NestedTensor, "linear")
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> NestedTensor:
    if not isinstance(x, NestedTensor) or isinstance(weight, NestedTensor):
        return NotImplemented
    if x.ragged_idx == x.ndim - 1:
        raise unlike("linear", x, weight)
    return x.with_values(ops.linear(x.values_part, weight, bias))


@rule(NestedTensor, "matmul", "bmm", "linalg_matmul")
def matmul(a: Tensor, b: Tensor) -> Tensor:
    if isinstance(a, NestedTensor) and not isinstance(b, NestedTensor):
        return with_dense(a, b)
    if isinstance(b, NestedTensor) and not isinstance(a, NestedTensor):
        if a.ndim < 2 or b.ndim < 3:
            raise unlike("matmul", a, b)
        return with_dense(b.mT, a.mT).mT
    return of_two(a, b)


def with_dense(a: NestedTensor, b: Tensor) -> Tensor:
    """A nested tensor times a dense one: one matrix (or vector), or a matrix for each part."""
    if b.ndim <= 2 and a.ragged_idx != a.ndim - 1 and a.ndim > 2:
        out = ops.matmul(a.values_part, b)
        return a.with_values(out)
    if b.ndim < 2 or b.ndim > a.ndim or a.ndim < 3:
        raise unlike("matmul", a, b)
    if a.ragged_idx == a.ndim - 1:  # the sum goes over the ragged dim: `b` is padded
        raise unlike("matmul", a, b)
    if b.ndim == a.ndim and b.shape[0] not in (1, a.count):
        raise unlike("matmul", a, b)
    if b.ndim < a.ndim or b.shape[0] == 1:
        whole = b if b.ndim < a.ndim else b[0]
        if a.ragged_idx == a.ndim - 2 or whole.ndim < 3:
            return a.with_values(ops.matmul(a.values_part, whole)) if (
                whole.ndim == 2 or a.ragged_idx == a.ndim - 2) else _each(a, b)
    return _each(a, b.expand(a.count, *b.shape[1:]) if b.ndim == a.ndim else
                 b.expand(a.count, *b.shape))


def _each(a: NestedTensor, b: Tensor) -> NestedTensor:
    """`a[i] @ b[i]`."""
    if a.ragged_idx != a.ndim - 2:
        raise unlike("matmul", a, b)
    return in_groups([packed(a)], [b], lambda x, y: ops.matmul(x, y))


def in_groups(nested: list[NestedTensor], dense: list[Tensor], function: Callable) -> NestedTensor:
    """A function of padded parts and of dense rows, whose result is ragged like the first."""
    first = nested[0]
    groups = grouped([t.about for t in nested], [t.longest for t in nested])
    rows = [Rows(t, k) for k, t in enumerate(nested)]
    found = [function(*[r.of(group) for r in rows], *[group.rows(d) for d in dense])
             for group in groups]
    return values_of(first, groups, found, first.ragged_idx)


def of_two(a: NestedTensor, b: NestedTensor) -> Tensor:
    """Two nested tensors: the sum goes over the ragged dim of both, or over a dense one."""
    n = a.ndim
    if b.ndim != n or n < 3 or a.count != b.count:
        raise unlike("matmul", a, b)
    left, right = a.ragged_idx - n, b.ragged_idx - n
    if (left, right) == (-1, -2):
        if a.shape[-1] != b.shape[-2]:
            raise unlike("matmul", a, b)
        a, b = packed(a), packed(b)
        groups = grouped([a.about, b.about], [a.longest, b.longest])
        x, y = Rows(a), Rows(b)
        return joined_rows(groups, [ops.matmul(x.of(g), y.of(g)) for g in groups])
    if left == right and left < -2 and a.shape[a.ragged_idx] == b.shape[b.ragged_idx]:
        from .elementwise import operands

        flat, first = operands("matmul", a, (a, b))
        return first.with_values(ops.matmul(*flat))
    raise unlike("matmul", a, b)


def joined_rows(groups: list, found: list[Tensor]) -> Tensor:
    """The rows of all groups in the order of the parts."""
    order = [i for g in groups for i in g.members or ()]
    if order == sorted(order):
        return found[0] if len(found) == 1 else ops.cat(found)
    return ops.cat(found).index_select(0, ops.argsort(ops.cat([g.index for g in groups])))
