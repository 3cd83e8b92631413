"""`NestedTensor`: a batch of tensors whose sizes differ in one dim, the ragged one.

Jagged layout: the parts lie one behind the other in `values`; offsets say where each begins.  The
batch is dim 0, and dim `d` of the tensor is dim `d - 1` of the values.  Parts may have gaps behind
them; then there are lengths as well.  All operators are compositions on the values with the
integers as data.  Read next: `ragged.py`, `elementwise.py`, `reductions.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .. import errors
from ..array.dims import wrap_dim
from ..array.layout import layout
from ..core.handle import Tensor
from ..parts import PartsTensor
from ..parts.rules import shown
from ..parts.writes import write_elements
from ..table.packets import ops
from .ragged import Lengths, Ragged, is_plain, lengths_of


class NestedTensor(PartsTensor):
    """A batch of tensors of different lengths, one behind the other."""

    title = "nested"
    names = ("values_part", "offsets_part", "lengths_part", "longest_part")
    facts = ("about", "ragged_idx")
    carrier = "values_part"
    own_layout = layout.known["jagged"]
    cure = "pad it first: x.to_padded_tensor(0.0), or take its parts: x.unbind()"

    @classmethod
    def make(cls, values: Tensor, offsets: Tensor, lengths: Tensor | None = None,
             ragged_idx: int = 1, longest: Tensor | None = None) -> NestedTensor:
        """`longest`: an empty tensor with as many rows as the largest length, if that is known."""
        t = cls.bare()
        t.values_part, t.offsets_part, t.lengths_part = values, offsets, lengths
        t.ragged_idx, t.longest_part = ragged_idx, longest
        t.about = lengths_of(offsets, lengths)
        sizes = list(values.shape)
        if lengths is None and not t.about.plain:
            t.about.found["total"] = sizes[ragged_idx - 1]
        sizes[ragged_idx - 1] = t.about.size
        t.take_form((offsets.shape[0] - 1, *sizes), values._payload.dtype)
        return t

    def meta(self) -> int:
        return self.ragged_idx

    @classmethod
    def join(cls, parts: dict, meta: int) -> NestedTensor:
        return cls.make(parts["values_part"], parts["offsets_part"], parts.get("lengths_part"),
                        meta, parts.get("longest_part"))

    def with_values(self, values: Tensor, ragged_idx: int | None = None) -> NestedTensor:
        """Other values with the same lengths."""
        return NestedTensor.make(values, self.offsets_part, self.lengths_part,
                                 self.ragged_idx if ragged_idx is None else ragged_idx,
                                 self.longest_part)

    with_carrier = with_values

    def become(self, other: NestedTensor) -> None:
        self.about, self.ragged_idx = other.about, other.ragged_idx
        super().become(other)

    def write_all(self, new: Any, name: str) -> None:
        if type(new) is type(self) and new.shape == self.shape and same_places(self, new):
            self.values_part.copy_(new.values_part)
        else:
            super().write_all(new, name)

    def opened_parts(self, names: tuple, seen: list) -> dict:
        """Tensors with the same lengths are opened to the same integers."""
        if "offsets_part" not in names:
            return super().opened_parts(names, seen)
        if self.longest_part is None and self.about.plain:
            self.longest_part = ops.empty((self.about.longest(), 0))
        parts = super().opened_parts(names, seen)
        for other in seen:
            if isinstance(other, NestedTensor) and other.about.alike(self.about) and (
                    same_places(self, other)):
                return parts | {n: getattr(other, n) for n in self.names[1:]
                                if getattr(other, n) is not None}
        seen.append(self)
        return parts

    def of_each(self, dim: int, function: Callable[[Tensor, int], Tensor]) -> NestedTensor:
        """Examples lie along a dense dim of the values; those of dim 0 are parts."""
        place = dim % (self.ndim + 1) if dim < 0 else dim
        out = function(self.values_part, place - 1) if place else None
        ragged = self.ragged_idx
        if out is None or out.ndim < self.values_part.ndim and place == ragged:
            raise errors.MappingError(errors.text(
                f"vmap: dim {dim} of a nested tensor has the parts, or is ragged "
                f"({errors.user_line(4)})", shown(self),
                "map the parts (in_dims=0) without nested results, or dense dims: out_dims=-1"))
        inner = out.ndim < self.values_part.ndim
        return self.with_values(out, ragged - (place < ragged) if inner else
                                ragged + (place <= ragged))

    @classmethod
    def write_operator(cls, ov, flat: tuple):
        return write_elements(ov, flat)

    def any_operator(self, ov, flat: tuple):
        from .elementwise import on_values

        return on_values(self, ov, flat)

    # facts --------------------------------------------------------------------------------------

    @property
    def is_nested(self) -> bool:
        return True

    @property
    def map_parts(self) -> Any:
        from .mapping import over_parts

        return over_parts

    @property
    def count(self) -> Any:
        """The number of parts; `len(x)` makes a fixed number of it where it is a symbol."""
        return self.about.count

    @property
    def dense(self) -> int:
        """The ragged dim of the values."""
        return self.ragged_idx - 1

    @property
    def _ragged_idx(self) -> int:
        return self.ragged_idx

    @property
    def _values(self) -> Tensor:
        return self.values_part

    @property
    def _offsets(self) -> Tensor:
        return self.offsets_part

    @property
    def _lengths(self) -> Tensor | None:
        return self.lengths_part

    def values(self) -> Tensor:
        """All parts, one behind the other."""
        return ops.alias(self.values_part)

    def offsets(self) -> Tensor:
        """Where each part begins in the values, and where the last one ends."""
        return self.offsets_part

    def lengths(self) -> Tensor | None:
        """The lengths of the parts, if there are gaps between them."""
        return self.lengths_part

    def longest(self) -> Any:
        """The largest length."""
        known = self.longest_part
        return self.about.longest() if known is None else known.shape[0]

    def _get_max_seqlen(self) -> Any:
        return self.longest()

    def _get_min_seqlen(self) -> Any:
        return self.about.shortest()

    _max_seqlen = property(_get_max_seqlen)
    _min_seqlen = property(_get_min_seqlen)
    _maybe_max_seqlen = property(_get_max_seqlen)
    _maybe_min_seqlen = property(_get_min_seqlen)

    def numel(self) -> Any:
        if self.lengths_part is None:
            return self.values_part.numel()
        total = sum(self.about.listed())
        for d, n in enumerate(self.values_part.shape):
            total = total if d == self.dense else total * n
        return total

    nelement = numel

    def __len__(self) -> int:
        return self.offsets_part.shape[0] - 1

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.unbind())

    def stride(self, dim: int | None = None):
        own = self.values_part.stride()
        strides = (self.about.size * own[self.dense], *own)
        return strides if dim is None else strides[dim]

    def storage_offset(self) -> int:
        return self.values_part.storage_offset()

    def data_ptr(self) -> int:
        return self.values_part.data_ptr()

    def untyped_storage(self) -> Any:
        return self.values_part.untyped_storage()

    def share_memory_(self) -> Tensor:
        for name in self.names:
            if getattr(self, name) is not None:
                getattr(self, name).share_memory_()
        return self

    def is_shared(self) -> bool:
        return self.values_part.is_shared()

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return self.lengths_part is None and self.ragged_idx == 1 and (
            self.values_part.is_contiguous())

    def contiguous(self, memory_format: Any = None) -> NestedTensor:
        """The same without gaps, and with the values in the order of their dims."""
        if self.is_contiguous():
            return self
        out = packed(self)
        return out.with_values(out.values_part.contiguous())

    def is_same_size(self, other: Any) -> bool:
        return isinstance(other, NestedTensor) and self.shape == other.shape

    def __bool__(self) -> bool:
        return bool(self._single())

    def item(self) -> Any:
        return self._single().item()

    def _single(self) -> Tensor:
        if self.values_part.numel() != 1:
            raise errors.RefusedValue(errors.text(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar "
                f"({errors.user_line(3)})", shown(self), "ask a part: x.unbind()[i]"))
        return self.values_part.reshape(())

    def tolist(self) -> list:
        return [part.tolist() for part in self.unbind()]

    def numpy(self, *, force: bool = False) -> Any:
        raise errors.RefusedValue(errors.text(
            f".numpy() is not supported for tensor subclasses ({errors.user_line(2)})",
            shown(self), "x.values().numpy(), or x.to_padded_tensor(0.0).numpy()"))

    def backward(self, gradient: Any = None, *args: Any, **kwargs: Any) -> None:
        from ..autograd.gradients import backward

        backward(self, gradient, *args, **kwargs)

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Tensor:
        """All parts as one dense tensor, with a number behind the shorter ones."""
        from .construct import to_padded

        return to_padded(self, padding, output_size)

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        raise errors.LayoutError(errors.text(
            f"to_dense(): parts of different lengths are no dense tensor ({errors.user_line(2)})",
            shown(self), self.cure))

    def __getitem__(self, key: Any):
        from .shapes import getitem

        return getitem(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        from .shapes import setitem

        setitem(self, key, value)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        history = ""
        if self.grad_fn is not None:
            history = f", grad_fn={self.grad_fn}"
        elif self.requires_grad:
            history = ", requires_grad=True"
        return (f"NestedTensor(size={tuple(self.shape)}, offsets={self.offsets_part}{history}, "
                f"contiguous={self.is_contiguous()})")

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)


def wrapped(t: NestedTensor, dim: int) -> int:
    """A dim from 0 on."""
    return wrap_dim(dim, t.ndim)


def same_places(a: NestedTensor, b: NestedTensor) -> bool:
    """Do two tensors with the same lengths keep their parts in the same places?"""
    x, y = a.about, b.about
    if x is y or x.given is None and y.given is None:
        return True
    if x.offsets is not y.offsets and not (
            is_plain(x.offsets) and is_plain(y.offsets)
            and bool((x.offsets == y.offsets).all())):
        return False
    return a.values_part.shape[a.dense] == b.values_part.shape[b.dense]


def packed(t: NestedTensor) -> NestedTensor:
    """The same tensor without gaps between the parts."""
    if t.lengths_part is None:
        return t
    values = t.values_part.index_select(t.dense, t.about.places())
    return NestedTensor.make(values, packed_offsets(t.about), None, t.ragged_idx, t.longest_part)


def packed_offsets(about: Lengths) -> Tensor:
    """The offsets of parts with these lengths without gaps; the raggedness stays the same."""
    if about.given is None:
        return about.offsets

    def find() -> Tensor:
        ends = about.given.cumsum(0)
        return ops.cat([ends.new_zeros(1), ends])

    found = about.once("packed", find)
    other = lengths_of(found)
    if other.root() is not about.root():
        other.like = about.root()
    return found




__all__ = ["NestedTensor", "Ragged", "packed", "same_places", "wrapped"]
