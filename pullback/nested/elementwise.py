"""Operators that act on nested tensors element by element: they act on the values.

Other operands have the same lengths, or are dense: then they are broadcast over the ragged dim, or
repeated by lengths, or, if their size there is the largest length, cut to the parts.
"""

from __future__ import annotations

from typing import Any

from .. import errors
from ..array.device import Device
from ..array.dims import wrap_dim
from ..core.handle import Tensor, tensors_in
from ..core.stack import bind
from ..parts.rules import rule, shown
from ..table.packets import ops
from .construct import from_padded
from .tensor import NestedTensor, packed, same_places

META = Device("meta")


def on_values(t: NestedTensor, ov, flat: tuple):
    """An elementwise operator; what makes a tensor like another."""
    if ov.kind == "pointwise":
        return elementwise(ov, flat)
    names = ov.schema.names
    if "reduction" in names:
        return loss(ov, flat)
    if "dim" in names or "dims" in names:
        return along_dense(t, ov, flat, names.index("dim" if "dim" in names else "dims"))
    alone = [v for v in tensors_in(flat) if v is not t]
    if not alone and flat[0] is t and ov.kind in ("creation", "random"):
        out = bind(ov, (t.values_part, *flat[1:]))
        if isinstance(out, Tensor) and out.shape == t.values_part.shape:
            return t.with_values(out)
        return out
    return NotImplemented


def loss(ov, flat: tuple) -> Any:
    """A loss of elements: their mean, their sum, or each."""
    given = [packed(v) if isinstance(v, NestedTensor) else v for v in flat]
    first = leading([v for v in given if isinstance(v, NestedTensor)])
    if any(v.ndim != first.ndim for v in tensors_in(given) if isinstance(v, NestedTensor)):
        return NotImplemented  # classes and their scores: `x.values()` is a batch of these
    flat, first = operands(ov.op.base_name, first, tuple(given))
    out = bind(ov, flat)
    return first.with_values(out) if isinstance(out, Tensor) and out.ndim else out


def along_dense(t: NestedTensor, ov, flat: tuple, place: int) -> Any:
    """An operator with a dim, or several, none of which is the batch or the ragged one."""
    given = flat[place]
    dims = [given] if isinstance(given, int) else list(given or ())
    chosen = [wrap_dim(d, t.ndim) for d in dims]
    if not chosen or 0 in chosen or t.ragged_idx in chosen:
        return NotImplemented
    if any(v.ndim != t.ndim for v in tensors_in(flat)):
        return NotImplemented
    inner = chosen[0] - 1 if isinstance(given, int) else [d - 1 for d in chosen]
    flat, first = operands(ov.op.base_name, t, flat)
    out = bind(ov, (*flat[:place], inner, *flat[place + 1:]))
    gone = sum(d < t.ragged_idx for d in chosen)

    def one(o: Tensor) -> NestedTensor:
        return first.with_values(o, t.ragged_idx - (gone if o.ndim < t.ndim - 1 else 0))

    if isinstance(out, Tensor):
        return one(out)
    made = [one(o) for o in out]
    return type(out)(*made) if hasattr(out, "_fields") else tuple(made)


def elementwise(ov, flat: tuple) -> Any:
    """An operator on values and on what other operands are there."""
    first = leading([v for v in tensors_in(flat) if isinstance(v, NestedTensor)])
    flat, first = operands(ov.op.base_name, first, flat)
    out = bind(ov, flat)
    return closed(first, out)


def closed(t: NestedTensor, out: Any) -> Any:
    """Results of an operator on values as nested tensors."""
    if isinstance(out, Tensor):
        return t.with_values(out)
    made = [t.with_values(o) for o in out]
    return type(out)(*made) if hasattr(out, "_fields") else tuple(made)


def leading(given: list[NestedTensor]) -> NestedTensor:
    """The tensor that others are fitted to: the first with the most dims."""
    return max(given, key=lambda v: v.ndim)


def operands(name: str, first: NestedTensor, flat: tuple) -> tuple[tuple, NestedTensor]:
    """Arguments with values, or what fits them, in the places of tensors."""
    given = [v for v in tensors_in(flat) if isinstance(v, NestedTensor)]
    for v in given:
        if v.ragged_idx - v.ndim != first.ragged_idx - first.ndim or v.ndim != first.ndim or (
                v.about is not first.about and v.shape[v.ragged_idx] != first.about.size):
            raise refused(name, first, v)
    if not all(same_places(first, v) for v in given):
        replaced = {id(v): packed(v) for v in given}
        first = replaced[id(first)]
        flat = tuple([replaced.get(id(v), v) for v in flat])

    def one(v: Any):
        if isinstance(v, NestedTensor):
            return v.values_part
        return fitted(name, first, v) if isinstance(v, Tensor) and v.ndim else v

    return tuple([one(v) for v in flat]), first


def refused(name: str, t: NestedTensor, other: Tensor) -> Exception:
    return errors.ShapeError(errors.text(
        f"cannot call binary pointwise function {name} with inputs of shapes {tuple(t.shape)} and "
        f"{tuple(other.shape)} ({errors.user_line(2)})", [shown(t), shown(other)],
        "the lengths of nested tensors must be equal; a dense one needs size 1, or the largest "
        "length, in the ragged dim"))


def fitted(name: str, t: NestedTensor, x: Tensor) -> Tensor:
    """A dense operand as the values see it."""
    missing = t.ndim - x.ndim
    place = t.ragged_idx - missing
    if missing < 0:
        raise refused(name, t, x)
    if place < 0 or x.shape[place] == 1:
        if missing:
            return x
        if x.shape[0] == 1:
            return x.squeeze(0)
        if x.shape[0] == t.count:
            return repeated(t, x.squeeze(t.ragged_idx))
    elif place > 0 and x.shape[place] == t.longest() and (
            missing or x.shape[0] in (1, t.count)):
        whole = x.expand(t.count, *x.shape[-(t.ndim - 1):])
        return spread(t, from_padded(whole, t.about, t.ragged_idx))
    raise refused(name, t, x)


def repeated(t: NestedTensor, x: Tensor) -> Tensor:
    """One slice for each part (batch, *dense dims) as many times as the part is long."""
    out = x.index_select(0, t.about.numbers(t.values_part.shape[t.dense]))
    return out.movedim(0, t.dense) if t.dense else out


def spread(t: NestedTensor, new: NestedTensor) -> Tensor:
    """Values without gaps, in the places of those of a tensor that may have some."""
    if t.lengths_part is None:
        return new.values_part
    shape = list(new.values_part.shape)
    shape[t.dense] = t.values_part.shape[t.dense]
    return new.values_part.new_zeros(shape).index_copy(t.dense, t.about.places(), new.values_part)


@rule(NestedTensor, "clone")
def clone(t: NestedTensor, memory_format: Any = None) -> NestedTensor:
    if str(memory_format) == "torch.contiguous_format":
        t = packed(t)
    return t.with_values(t.values_part.clone(memory_format=memory_format))


@rule(NestedTensor, "_to_copy")
def to_copy(t: NestedTensor, dtype: Any = None, layout: Any = None, device: Any = None,
            pin_memory: Any = None, non_blocking: bool = False, memory_format: Any = None):
    """A copy; the integers are where the values are, and stand for the lengths that they had."""
    values = ops._to_copy(t.values_part, dtype=dtype, layout=layout, device=device,
                          pin_memory=pin_memory, non_blocking=non_blocking,
                          memory_format=memory_format)
    if values.device in (t.offsets_part.device, META):  # lengths of nothing are known, too
        return t.with_values(values)
    offsets = t.offsets_part.to(values.device)
    lengths = None if t.lengths_part is None else t.lengths_part.to(values.device)
    out = NestedTensor.make(values, offsets, lengths, t.ragged_idx, t.longest_part)
    if out.about.root() is not t.about.root():
        out.about.like = t.about.root()
    return out


@rule(NestedTensor, "alias")
def alias(t: NestedTensor) -> NestedTensor:
    return t.with_values(ops.alias(t.values_part))


@rule(NestedTensor, "detach")
def detach(t: NestedTensor) -> NestedTensor:
    return t.with_values(t.values_part.detach())


@rule(NestedTensor, "contiguous")
def contiguous(t: NestedTensor, memory_format: Any = None) -> NestedTensor:
    return t.contiguous()


@rule(NestedTensor, "copy_")
def copy_(t: Any, source: Any, non_blocking: bool = False) -> Any:
    if not isinstance(source, NestedTensor) or not isinstance(t, NestedTensor) or (
            source.shape != t.shape):
        if isinstance(t, NestedTensor) and not isinstance(source, NestedTensor) and (
                source.ndim <= t.ndim):
            t.values_part.copy_(fitted("copy_", t, source) if source.ndim else source)
            return t
        raise errors.ShapeError(errors.text(
            f"copy_ only supports Nested tensors that have same size and offsets "
            f"({errors.user_line(2)})", [shown(t), shown(source)]))
    if same_places(t, source):
        t.values_part.copy_(source.values_part)
    else:
        t.values_part.copy_(spread(t, packed(source)))
    return t


@rule(NestedTensor, "equal")
def equal(a: Any, b: Any) -> bool:
    if not (isinstance(a, NestedTensor) and isinstance(b, NestedTensor)) or a.shape != b.shape:
        return False
    return ops.equal(packed(a).values_part, packed(b).values_part)


@rule(NestedTensor, "allclose")
def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False):
    if not (isinstance(a, NestedTensor) and isinstance(b, NestedTensor)) or a.shape != b.shape:
        raise refused("allclose", *((a, b) if isinstance(a, NestedTensor) else (b, a)))
    return ops.allclose(packed(a).values_part, packed(b).values_part, rtol, atol, equal_nan)


@rule(NestedTensor, "frexp.Tensor")
def frexp(t: NestedTensor) -> Any:
    return closed(t, ops.frexp(t.values_part))


@rule(NestedTensor, "repeat")
def repeat(t: NestedTensor, repeats: Any) -> NestedTensor:
    if len(repeats) != t.ndim or repeats[0] != 1 or repeats[t.ragged_idx] != 1:
        raise refused("repeat", t, t)
    return t.with_values(t.values_part.repeat(list(repeats[1:])))


@rule(NestedTensor, "one_hot")
def one_hot(t: NestedTensor, num_classes: int = -1) -> NestedTensor:
    return t.with_values(ops.one_hot(t.values_part, num_classes))


@rule(NestedTensor, "aminmax")
def aminmax(t: NestedTensor, dim: Any = None, keepdim: bool = False) -> Any:
    if dim is None:
        return ops.aminmax(packed(t).values_part)
    from .. import return_types

    return return_types.aminmax(t.amin(dim, keepdim), t.amax(dim, keepdim))


@rule(NestedTensor, "dropout")
def dropout(t: NestedTensor, p: float, train: bool) -> NestedTensor:
    return t.with_values(ops.dropout(t.values_part, p, train))


@rule(NestedTensor, "native_dropout")
def native_dropout(t: NestedTensor, p: float, train: bool | None = None) -> tuple:
    out, mask = ops.native_dropout(t.values_part, p, train)
    return t.with_values(out), t.with_values(mask)
