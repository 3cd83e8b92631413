"""`StridedNested`: a batch of tensors of any sizes, which lie one behind the other in a buffer.

The sizes of the parts are facts, not data: what depends on them is decided before anything runs.
Elementwise functions and those of the last dim act on the buffer; others go from part to part.
Read `tensor.py` for the layout that serves new lengths with one compiled program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from .. import errors
from ..array.dims import wrap_dim
from ..array.layout import STRIDED
from ..array.size import Symbolic
from ..core.handle import Tensor, tensors_in
from ..core.stack import bind
from ..parts import PartsTensor
from ..parts.rules import shown
from ..parts.writes import write_elements
from ..table.packets import ops


class Irregular(Symbolic):
    """The size of a dim that parts do not have in common, in a shape."""

    __slots__ = ("sizes",)
    hint = 2
    is_ragged = True

    def __init__(self, sizes: tuple):
        self.sizes = sizes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Irregular) and self.sizes == other.sizes

    def __hash__(self) -> int:
        return hash(self.sizes)

    def __mul__(self, other: Any) -> Irregular:
        return self

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return "irregular"


class StridedNested(PartsTensor):
    """A batch of tensors of any sizes."""

    title = "nested"
    names = ("buffer_part",)
    facts = ("sizes",)
    carrier = "buffer_part"
    own_layout = STRIDED
    cure = "pad it first: x.to_padded_tensor(0.0), or take its parts: x.unbind()"

    @classmethod
    def make(cls, buffer: Tensor, sizes: tuple[tuple[int, ...], ...]) -> StridedNested:
        t = cls.bare()
        t.buffer_part, t.sizes = buffer, sizes
        common = [column[0] if len(set(column)) == 1 else Irregular(column)
                  for column in zip(*sizes)]
        t.take_form((len(sizes), *common), buffer._payload.dtype)
        return t

    def meta(self) -> tuple:
        return self.sizes

    @classmethod
    def join(cls, parts: dict, meta: tuple) -> StridedNested:
        return cls.make(parts["buffer_part"], meta)

    def become(self, other: StridedNested) -> None:
        self.sizes = other.sizes
        super().become(other)

    def write_all(self, new: Any, name: str) -> None:
        if type(new) is type(self) and new.sizes == self.sizes:
            self.buffer_part.copy_(new.buffer_part)
        else:
            super().write_all(new, name)

    @classmethod
    def write_operator(cls, ov, flat: tuple):
        return write_elements(ov, flat)

    def any_operator(self, ov, flat: tuple):
        if ov.kind == "pointwise" or "reduction" in ov.schema.names:
            return elementwise(ov, flat)
        if flat[0] is self and ov.kind in ("creation", "random") and not any(
                v is not self for v in tensors_in(flat)):
            out = bind(ov, (self.buffer_part, *flat[1:]))
            return self.with_carrier(out) if isinstance(out, Tensor) and (
                out.shape == self.buffer_part.shape) else out
        return by_parts(self, ov, flat)

    @property
    def is_nested(self) -> bool:
        return True

    @property
    def map_parts(self) -> Any:
        from .mapping import over_parts

        return over_parts

    def size(self, dim: int | None = None) -> Any:
        if dim is None:
            return self.shape
        found = self.shape[wrap_dim(dim, self.ndim)]
        if isinstance(found, Irregular):
            raise errors.RefusedValue(errors.text(
                f"Given dimension {dim} is irregular and does not have a size. "
                f"({errors.user_line(2)})", shown(self), "ask the parts: x.unbind()"))
        return found

    def numel(self) -> Any:
        return self.buffer_part.numel()

    nelement = numel

    def __len__(self) -> int:
        return len(self.sizes)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.unbind())

    def values(self) -> Tensor:
        """All elements, part after part."""
        return ops.alias(self.buffer_part)

    def stride(self, dim: int | None = None) -> Any:
        raise errors.RefusedValue(errors.text(
            f"stride(): each part has its own ({errors.user_line(2)})", shown(self),
            "x._nested_tensor_strides()"))

    def storage_offset(self) -> int:
        return self.buffer_part.storage_offset()

    def data_ptr(self) -> int:
        return self.buffer_part.data_ptr()

    def untyped_storage(self) -> Any:
        return self.buffer_part.untyped_storage()

    def share_memory_(self) -> Tensor:
        for name in self.names:
            if getattr(self, name) is not None:
                getattr(self, name).share_memory_()
        return self

    def is_shared(self) -> bool:
        return self.buffer_part.is_shared()

    def _nested_tensor_size(self) -> Tensor:
        return _table([list(s) for s in self.sizes], self.ndim - 1)

    def _nested_tensor_strides(self) -> Tensor:
        return _table([[math.prod(s[d + 1:]) for d in range(len(s))] for s in self.sizes],
                      self.ndim - 1)

    def _nested_tensor_storage_offsets(self) -> Tensor:
        from ..creation import tensor

        starts, at = [], 0
        for size in self.sizes:
            starts.append(at)
            at += math.prod(size)
        return tensor(starts, dtype=ops.arange(0).dtype)

    def contiguous(self, memory_format: Any = None) -> StridedNested:
        return self

    def is_same_size(self, other: Any) -> bool:
        return isinstance(other, StridedNested) and self.sizes == other.sizes

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Tensor:
        """All parts as one dense tensor, with a number behind the shorter ones."""
        from .strided_rules import to_padded

        return to_padded(self, padding, output_size)

    def tolist(self) -> list:
        return [p.tolist() for p in self.unbind()]

    def item(self) -> Any:
        if self.numel() != 1:
            raise errors.RefusedValue(errors.text(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar "
                f"({errors.user_line(2)})", shown(self), "ask a part: x.unbind()[i]"))
        return self.buffer_part.item()

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise errors.RefusedValue(errors.text(
                "Boolean value of Tensor with more than one value is ambiguous "
                f"({errors.user_line(2)})", shown(self), "x.values().any() or .all()"))
        return bool(self.buffer_part)

    def numpy(self, *, force: bool = False) -> Any:
        raise errors.RefusedValue(errors.text(
            f"numpy(): parts of different sizes are no array ({errors.user_line(2)})",
            shown(self), "x.values().numpy(), or x.to_padded_tensor(0.0).numpy()"))

    def __getitem__(self, key: Any) -> Tensor:
        from .shapes import getitem

        return getitem(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        place = self[key]
        place.copy_(value) if isinstance(value, Tensor) else place.fill_(value)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        from ..autograd.grad_mode import no_grad

        with no_grad():
            parts = parts_of(self.detach())
        if self.requires_grad:
            parts = [p.requires_grad_() for p in parts]
        inner = ",\n".join(["  " + "\n  ".join(repr(p).split("\n")) for p in parts])
        history = ""
        if self.grad_fn is not None:
            history = f", grad_fn=<{self.grad_fn.name()}>"
        elif self.requires_grad:
            history = ", requires_grad=True"
        return f"nested_tensor([\n{inner}\n]{history})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)


def _table(rows: list, width: int) -> Tensor:
    from ..creation import tensor

    integers = ops.arange(0).dtype
    return tensor(rows, dtype=integers) if rows else ops.zeros((0, width), dtype=integers)


def of_parts(parts: Any, dtype: Any = None) -> StridedNested:
    """The nested tensor of parts, to which derivatives go."""
    parts = list(parts)
    if not parts:
        return StridedNested.make(ops.zeros((0,), dtype=dtype), ())
    for i, p in enumerate(parts):
        if p.ndim != parts[0].ndim:
            raise errors.RefusedValue(errors.text(
                "All Tensors given to nested_tensor must have the same dimension. Found dimension "
                f"{p.ndim} for Tensor at index {i} and dimension {parts[0].ndim} for Tensor at "
                f"index 0. ({errors.user_line(4)})", f"shapes: {[list(p.shape) for p in parts]}"))
    return StridedNested.make(ops.cat([p.reshape(-1) for p in parts]),
                              tuple([tuple(p.shape) for p in parts]))


def parts_of(t: StridedNested) -> list[Tensor]:
    """Views of the parts."""
    pieces = t.buffer_part.split_with_sizes([math.prod(s) for s in t.sizes])
    return [p.view(s) for p, s in zip(pieces, t.sizes)]


def each(t: StridedNested, function: Callable[[Tensor], Any]) -> Any:
    """A function of each part; with several results several nested tensors."""
    found = [function(p) for p in parts_of(t)]
    if not found or isinstance(found[0], Tensor):
        return of_parts(found, t.dtype)
    made = [of_parts(column) for column in zip(*found)]
    kind = type(found[0])
    return kind(*made) if hasattr(kind, "_fields") else tuple(made)


def elementwise(ov, flat: tuple) -> Any:
    """An operator on buffers, or on parts where a dense operand is broadcast to them."""
    given = [v for v in tensors_in(flat) if isinstance(v, StridedNested)]
    first = given[0]
    dense = [v for v in tensors_in(flat) if not isinstance(v, StridedNested) and v.ndim]
    if any(v.sizes != first.sizes for v in given) and not _broadcast(given):
        raise errors.ShapeError(errors.text(
            f"{ov.op.base_name} does not support broadcasting when given a NestedTensor "
            f"({errors.user_line(2)})", [shown(v) for v in given],
            "parts of both must have sizes that broadcast"))
    if not dense and all(v.sizes == first.sizes for v in given):
        out = bind(ov, tuple([v.buffer_part if isinstance(v, StridedNested) else v for v in flat]))
        if isinstance(out, Tensor):  # a loss may be a mean or a sum
            return first.with_carrier(out) if out.shape == first.buffer_part.shape else out
        made = [first.with_carrier(o) for o in out]
        return type(out)(*made) if hasattr(out, "_fields") else tuple(made)
    for v in dense:
        if v.ndim > first.ndim or v.ndim == first.ndim and v.shape[0] not in (1, len(first)):
            raise errors.ShapeError(errors.text(
                f"{ov.op.base_name}: a dense operand must broadcast to each part "
                f"({errors.user_line(2)})", [shown(first), shown(v)]))
    columns = [_column(v, first) for v in flat]
    found = [bind(ov, tuple([c[i] if isinstance(c, _Parts) else c for c in columns]))
             for i in range(len(first))]
    return of_parts(found)


def by_parts(t: StridedNested, ov, flat: tuple) -> Any:
    """An operator with a dim, or several, of one nested tensor: it goes from part to part."""
    names = ov.schema.names
    place = next((names.index(n) for n in ("dim", "dims") if n in names), None)
    if place is None or flat[0] is not t or any(
            isinstance(v, StridedNested) for v in tensors_in(flat[1:])):
        return NotImplemented
    given, ndim = flat[place], t.ndim
    dims = [given] if isinstance(given, int) else list(given or ())
    chosen = [wrap_dim(d, ndim) for d in dims]
    keeps = "keepdim" in names and flat[names.index("keepdim")]
    if (not dims or len(set(chosen)) == ndim) and ov.kind == "reduction" and not keeps:
        return bind(ov, (t.buffer_part, *flat[1:place], None if not dims else [0],
                         *flat[place + 1:]))
    if 0 in chosen or not dims:
        raise errors.RefusedValue(errors.text(
            f"{ov.op.base_name}(): not supported on dim 0 of a nested tensor "
            f"({errors.user_line(3)})", shown(t), t.cure))
    inner = chosen[0] - 1 if isinstance(given, int) else [d - 1 for d in chosen]
    return each(t, lambda p: bind(ov, (p, *flat[1:place], inner, *flat[place + 1:])))


def _broadcast(given: list) -> bool:
    """Do the sizes of all parts broadcast?"""
    if any(len(v) != len(given[0]) or v.ndim != given[0].ndim for v in given):
        return False
    return all(len({n for n in column if n != 1}) <= 1
               for sizes in zip(*[v.sizes for v in given]) for column in zip(*sizes))


class _Parts(list):
    """An argument for each part."""


def _column(v: Any, first: StridedNested) -> Any:
    if isinstance(v, StridedNested):
        return _Parts(parts_of(v))
    if isinstance(v, Tensor) and v.ndim == first.ndim:
        return _Parts([v[i if v.shape[0] > 1 else 0] for i in range(len(first))])
    return v
