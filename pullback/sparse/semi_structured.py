"""Matrices of which two of each four elements along a row may differ from zero.

Half of the numbers are kept, and for each its place among its four (`places_part`, 8 bits).  A
product puts the numbers back to their places and multiplies: half of the memory, and not of the
time.  Gradients are those of the numbers that are kept.
"""

from __future__ import annotations

from typing import Any

from .. import errors
from ..array import dtype as dt
from ..core.handle import Tensor
from ..parts import PartsTensor
from ..parts.rules import rule, shown
from ..table.packets import ops


class SparseSemiStructuredTensor(PartsTensor):
    """A matrix with two numbers in each group of four."""

    title = "semi-structured"
    names = ("packed", "places_part")
    carrier = "packed"

    @classmethod
    def make(cls, packed: Tensor, places: Tensor, transposed: bool = False):
        t = cls.bare()
        t.packed, t.places_part, t.transposed = packed, places, transposed
        rows, half = packed._payload.shape
        t.take_form((2 * half, rows) if transposed else (rows, 2 * half), packed._payload.dtype)
        return t

    def meta(self) -> bool:
        return self.transposed

    def become(self, other: PartsTensor) -> None:
        self.transposed = other.meta()
        super().become(other)

    @classmethod
    def join(cls, parts: dict, meta: bool) -> SparseSemiStructuredTensor:
        return cls.make(parts["packed"], parts["places_part"], meta)

    @classmethod
    def from_dense(cls, original_tensor: Tensor) -> SparseSemiStructuredTensor:
        """The matrix with the numbers of a dense one that are not zero."""
        return to_sparse_semi_structured(original_tensor)

    def values(self) -> Tensor:
        """The numbers that are kept, two for each group of four."""
        return ops.alias(self.packed)

    def indices(self) -> Tensor:
        """The place of each among its four."""
        return self.places_part.detach()

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """All elements."""
        rows, half = self.packed.shape
        first = ops.arange(half, device=self.packed.device).div(2, rounding_mode="floor") * 4
        zeros = ops.new_zeros(self.packed, [rows, 2 * half])
        dense = ops.scatter(zeros, 1, self.places_part.long() + first, self.packed)
        dense = dense.t() if self.transposed else dense
        return dense if dtype is None else dense.to(dtype)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"{type(self).__name__}(shape={self.shape})"

    __str__ = __repr__


def to_sparse_semi_structured(
    original_tensor: Tensor, transposed: bool = False,
) -> SparseSemiStructuredTensor:
    """Keep the two numbers of each four along a row that may differ from zero."""
    t = original_tensor
    if not isinstance(t, Tensor) or t.ndim != 2 or t.shape[1] % 4:
        raise errors.ShapeError(errors.text(
            "to_sparse_semi_structured: expected a matrix whose rows are a multiple of 4 long "
            f"({errors.user_line(2)})", shown(t) if isinstance(t, Tensor) else repr(type(t))))
    if t.dtype.is_complex or t.dtype is dt.bool_:
        raise errors.DTypeError(
            f"to_sparse_semi_structured: {t.dtype} is not a supported dtype "
            f"({errors.user_line(2)})")
    groups = t.reshape(t.shape[0], t.shape[1] // 4, 4)
    there = groups.detach() != 0
    if bool((there.sum(-1) > 2).any()):
        raise errors.RefusedValue(errors.text(
            "to_sparse_semi_structured: more than two of four neighbours differ from zero "
            f"({errors.user_line(2)})", shown(t),
            "set two of each four to zero first: those of smaller magnitude, for instance"))
    # numbers first, in order; then as many zeros as are missing
    places = there.logical_not().to(dt.int8).argsort(dim=-1, stable=True)[..., :2]
    places = ops.sort(places, -1)[0]
    packed = groups.gather(2, places).reshape(t.shape[0], t.shape[1] // 2)
    found = SparseSemiStructuredTensor.make(packed, places.reshape(packed.shape).to(dt.int8))
    return found.t() if transposed else found


def _dense(t: Any) -> Any:
    return t.to_dense() if isinstance(t, SparseSemiStructuredTensor) else t


@rule(SparseSemiStructuredTensor, "t")
def t(x: SparseSemiStructuredTensor):
    return type(x).make(x.packed, x.places_part, not x.transposed)


@rule(SparseSemiStructuredTensor, "transpose.int")
def transpose(x: SparseSemiStructuredTensor, dim0: int, dim1: int):
    return x if dim0 % 2 == dim1 % 2 else t(x)


@rule(SparseSemiStructuredTensor, "mm")
def mm(a: Any, b: Any):
    return ops.mm(_dense(a), _dense(b))


@rule(SparseSemiStructuredTensor, "addmm")
def addmm(c: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1):
    return ops.addmm(_dense(c), _dense(a), _dense(b), beta=beta, alpha=alpha)


@rule(SparseSemiStructuredTensor, "mv")
def mv(a: Any, x: Any):
    return ops.mv(_dense(a), x)


@rule(SparseSemiStructuredTensor, "clone")
def clone(x: SparseSemiStructuredTensor, *args: Any):
    return x.with_carrier(x.packed.clone())


@rule(SparseSemiStructuredTensor, "_to_copy")
def to_copy(x: SparseSemiStructuredTensor, dtype: Any = None, *rest: Any):
    return x.with_carrier(x.packed.clone() if dtype is None else x.packed.to(dtype))
