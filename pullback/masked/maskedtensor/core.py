"""`MaskedTensor`: data, and a mask that says which of its elements are there.

The data is an ordinary tensor and has the history; where the mask is False it is never looked at:
what an operator makes of it there is left out of every result, and no gradient goes there, whatever
number is there (`seen`).  Nothing writes a mask, so that tensors may share it.  What operators do
is in `rules.py`, printing in `printing.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ... import errors
from ...array import dtype as dt
from ...array.layout import STRIDED, layout
from ...core.handle import Tensor
from ...parts import PartsTensor
from ...table.packets import ops

LAYOUTS = ("strided", "sparse_coo", "sparse_csr")


class MaskedTensor(PartsTensor):
    """A tensor of which some elements are left out."""

    title = "masked"
    names = ("data_part", "mask_part")
    facts = ("shown_as",)
    carrier = "data_part"
    cure: ClassVar[str] = "x.to_tensor(fill) is a plain tensor; x.get_data() and x.get_mask() too"

    def __new__(cls, data: Any = None, mask: Any = None, requires_grad: bool = False):
        if not isinstance(data, Tensor):
            raise TypeError("data must be a Tensor")
        if not isinstance(mask, Tensor):
            raise TypeError("mask must be a Tensor")
        return masked_tensor(data, mask, requires_grad)

    @classmethod
    def make(cls, data: Tensor, mask: Tensor, shown_as: str = "strided") -> MaskedTensor:
        t = cls.bare()
        t.data_part, t.mask_part, t.shown_as = data, mask, _possible(shown_as, data.ndim)
        t.take_form(tuple(data._payload.shape), data._payload.dtype)
        return t

    def meta(self) -> str:
        return self.shown_as

    @classmethod
    def join(cls, parts: dict, meta: str) -> MaskedTensor:
        return cls.make(parts["data_part"], parts["mask_part"], meta)

    def of_each(self, dim: int, function: Callable[[Tensor, int], Tensor]) -> MaskedTensor:
        return type(self).make(function(self.data_part, dim), function(self.mask_part, dim))

    @classmethod
    def over(cls, other: type) -> bool:
        return not issubclass(other, MaskedTensor)

    def any_operator(self, ov, flat: tuple):
        from .rules import answer

        return answer(ov, flat)

    @classmethod
    def write_operator(cls, ov, flat: tuple):
        from ...parts.writes import write_elements

        return write_elements(ov, flat)

    def cotangent(self, g: Tensor) -> Tensor:
        """A gradient of this tensor as one of its data: nothing where the mask is False."""
        g = g.data_part if isinstance(g, MaskedTensor) else g
        return ops.where(self.mask_part, g, 0).to(self.dtype)

    # parts ------------------------------------------------------------------------------------

    def seen(self) -> Tensor:
        """The data, of which gradients only reach what is there."""
        return behind(self.data_part, self.mask_part)

    def get_data(self) -> Tensor:
        """All numbers, those that are left out as well."""
        return in_layout(self.seen(), self.mask_part, self.shown_as)

    def get_mask(self) -> Tensor:
        """True where an element is there."""
        return in_layout(self.mask_part, self.mask_part, self.shown_as)

    def to_tensor(self, value: Any) -> Tensor:
        """The elements that are there, and a number in the place of the others."""
        return ops.where(self.mask_part, self.data_part, value).to(self.dtype)

    def shown(self, shown_as: str) -> MaskedTensor:
        """The same in another layout."""
        return type(self).make(self.data_part, self.mask_part, shown_as)

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> MaskedTensor:
        """The same with data and mask that are dense."""
        return self.shown("strided")

    def to_sparse_coo(self) -> MaskedTensor:
        """The same whose data and mask have coordinates for what is there."""
        return self.shown("sparse_coo")

    def to_sparse(self, *args: Any, layout: Any = None, **kwargs: Any) -> MaskedTensor:
        """The same whose data and mask are sparse."""
        kind = "sparse_coo" if layout is None else str(layout).removeprefix("torch.")
        if kind not in LAYOUTS:
            raise errors.LayoutError(errors.text(
                f"to_sparse: a masked tensor has no layout {kind} ({errors.user_line(2)})",
                cure=f"it has one of {', '.join(LAYOUTS)}"))
        return self.shown(kind)

    def to_sparse_csr(self, dense_dim: int | None = None) -> MaskedTensor:
        """The same whose data and mask have compressed rows."""
        if self.ndim != 2:
            raise errors.ShapeError(
                f"to_sparse_csr: expected a matrix, got {list(self.shape)} ({errors.user_line(2)})")
        return self.shown("sparse_csr")

    # facts ------------------------------------------------------------------------------------

    @property
    def layout(self) -> Any:
        return layout.known[self.shown_as]

    def is_sparse_coo(self) -> bool:
        return self.shown_as == "sparse_coo"

    def is_sparse_csr(self) -> bool:
        return self.shown_as == "sparse_csr"

    @property
    def is_sparse(self) -> bool:
        return self.is_sparse_coo()

    def stride(self, dim: int | None = None):
        return self.data_part.stride() if dim is None else self.data_part.stride(dim)

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return self.data_part.is_contiguous()

    def item(self) -> Any:
        """The only element, which must be there."""
        if not bool(self.mask_part):
            raise ValueError("item: expected a mask that is True: the element is left out "
                             f"({errors.user_line(2)})")
        return self.data_part.item()

    def __bool__(self) -> bool:
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def numpy(self, *args: Any, **kwargs: Any):
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def tolist(self):
        raise RuntimeError(
            f".tolist() is not supported for tensor subclasses, got {type(self).__name__}")

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        from .printing import text

        return text(self)

    __str__ = __repr__


def _possible(shown_as: str, ndim: int) -> str:
    """A layout for so many dims: only matrices have compressed rows, and a number is dense."""
    if shown_as == "sparse_csr" and ndim != 2:
        shown_as = "sparse_coo"
    return shown_as if ndim else "strided"


def behind(t: Tensor, mask: Tensor) -> Tensor:
    """A tensor, of which gradients only reach what a mask shows: NaN does not go where it is not.
    """
    return ops.where(mask, t, t.detach()) if t.requires_grad else t


def in_layout(t: Tensor, mask: Tensor, shown_as: str) -> Tensor:
    """A dense tensor as users see it: sparse with the entries that are there."""
    if shown_as == "strided":
        return t
    from ...sparse.tensor import Coo

    there = mask.detach().nonzero()
    out = Coo.make(there.t(), t[tuple(there.unbind(1))], t.shape, True)
    return out if shown_as == "sparse_coo" else out.to_sparse_csr()


# how they are made


def _checked(data: Any, mask: Any) -> tuple[Tensor, Tensor, str]:
    """Data and mask, dense, and the layout that both had."""
    if not isinstance(data, Tensor) or isinstance(data, MaskedTensor):
        raise TypeError("data must be a Tensor")
    if not isinstance(mask, Tensor) or isinstance(mask, MaskedTensor):
        raise TypeError("mask must be a Tensor")
    if data.layout is not mask.layout:
        raise TypeError("data and mask must have the same layout.")
    kind = str(data.layout).removeprefix("torch.")
    if kind not in LAYOUTS:
        raise TypeError(f"data layout of {data.layout} is not supported.")
    if mask.dtype is not dt.bool_:
        raise TypeError("mask must have dtype bool.")
    if data.dtype.is_complex:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    if data.ndim != mask.ndim:
        raise ValueError("data.dim() must equal mask.dim()")
    if data.shape != mask.shape:
        raise ValueError("data.size() must equal mask.size()")
    if data.layout is STRIDED:
        return data, mask, kind
    return data.to_dense(), mask.to_dense(), kind


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
    """A masked tensor around a copy of data, without its history."""
    data, mask, kind = _checked(data, mask)
    out = MaskedTensor.make(data.detach().clone(), mask.detach().clone(), kind)
    return out.requires_grad_(True) if requires_grad else out


def as_masked_tensor(data: Any, mask: Any) -> MaskedTensor:
    """A masked tensor around data as it is, with its history."""
    data, mask, kind = _checked(data, mask)
    return MaskedTensor.make(behind(data, mask) if data.requires_grad else data, mask, kind)


def is_masked_tensor(obj: Any, /) -> bool:
    """Is a value a masked tensor?"""
    return isinstance(obj, MaskedTensor)
