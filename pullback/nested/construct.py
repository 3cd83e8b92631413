"""Constructors of nested tensors, and the way to dense tensors and back."""

from __future__ import annotations

from typing import Any

from .. import errors
from ..array.layout import layout as layouts
from ..core.handle import Tensor
from ..parts.rules import rule, shown
from ..table.packets import ops
from .ragged import Lengths, Ragged, lengths_of, summed
from .strided import of_parts
from .tensor import NestedTensor, packed

JAGGED, STRIDED = layouts.known["jagged"], layouts.known["strided"]


def nested_tensor(tensor_list: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
                  requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """A nested leaf with copies of the parts, which are tensors or lists of numbers."""
    from ..autograd.grad_mode import no_grad

    parts = _parts(tensor_list, "nested_tensor", dtype, device, layout)
    with no_grad():
        out = _joined([p.detach().clone() for p in parts], layout, "nested_tensor", dtype, device)
    return out.requires_grad_() if requires_grad else out


def as_nested_tensor(ts: Any, dtype: Any = None, device: Any = None, layout: Any = None) -> Tensor:
    """A nested tensor of parts, to which derivatives go."""
    if isinstance(ts, Tensor) and getattr(ts, "is_nested", False):
        if layout is not None and ts.layout is not layout:
            raise errors.RefusedValue(errors.text(
                f"Converting between nested tensor layouts is not supported "
                f"({errors.user_line(2)})", shown(ts),
                "as_nested_tensor(list(x.unbind()), layout=...)"))
        return ts.to(dtype=dtype) if dtype is not None and ts.dtype != dtype else ts
    if isinstance(ts, Tensor) and ts.ndim < 1:
        raise errors.RefusedValue(f"as_nested_tensor(): Expected tensor argument to have dim() > 0 "
                                  f"({errors.user_line(2)})")
    if isinstance(ts, Tensor) and layout is JAGGED:
        if dtype is not None:
            ts = ts.to(dtype)
        size, length = ts.shape[0], ts.shape[1] if ts.ndim > 1 else 1
        offsets = ops.arange(size + 1, device=ts.device) * length
        return NestedTensor.make(ts.flatten(0, 1) if ts.ndim > 1 else ts, offsets, None, 1,
                                 ops.empty((length, 0)))
    return _joined(_parts(ts, "as_nested_tensor", dtype, device, layout), layout,
                   "as_nested_tensor", dtype, device)


def _parts(given: Any, name: str, dtype: Any, device: Any, layout: Any) -> list[Tensor]:
    if not isinstance(given, (list, tuple)) and not (
            isinstance(given, Tensor) and name == "as_nested_tensor"):
        raise TypeError(errors.text(
            f"{name}(): Expected first argument to be a tensor or a list / tuple of tensors, got "
            f"{type(given).__name__} ({errors.user_line(3)})",
            cure="give the parts in a list"))
    from ..creation import as_tensor

    parts = [p if isinstance(p, Tensor) else as_tensor(p, dtype=dtype, device=device)
             for p in (given.unbind(0) if isinstance(given, Tensor) else given)]
    if dtype is not None or device is not None:
        parts = [p.to(device=device, dtype=dtype or p.dtype) for p in parts]
    if layout in (None, STRIDED):  # all become what the first is
        parts = [p.to(parts[0].dtype) for p in parts]
    if any(p.dtype != parts[0].dtype for p in parts):
        raise errors.DTypeError(errors.text(
            f"{name}(): expected all parts to have the same dtype ({errors.user_line(3)})",
            f"dtypes: {[str(p.dtype) for p in parts]}", "cast them, or give dtype="))
    if any(p.device != parts[0].device for p in parts):
        raise errors.DeviceError(errors.text(
            f"{name}(): all parts must be on the same device ({errors.user_line(3)})",
            f"devices: {[str(p.device) for p in parts]}", "move them, or give device="))
    return parts


def _joined(parts: list[Tensor], layout: Any, name: str, dtype: Any, device: Any) -> Tensor:
    if layout in (None, STRIDED):
        return of_parts(parts, dtype)
    if layout is not JAGGED:
        raise errors.RefusedValue(errors.text(
            f"Specified layout is unsupported for nested tensors: {layout} "
            f"({errors.user_line(3)})", cure="layout=torch.jagged, or torch.strided"))
    return jagged_of(parts, name, dtype, device)


def jagged_of(parts: list[Tensor], name: str, dtype: Any = None, device: Any = None):
    """Parts that differ in one dim, one behind the other."""
    if not parts:
        raise errors.RefusedValue(errors.text(
            f"Cannot create a nested tensor from an empty list of tensors ({errors.user_line(4)})",
            cure="give at least one part"))
    ndim = parts[0].ndim
    if any(p.ndim != ndim for p in parts) or not ndim:
        raise errors.RefusedValue(errors.text(
            "When constructing a nested tensor, all tensors in list must have the same number of "
            f"dimensions, and at least one ({errors.user_line(4)})",
            f"dims: {[p.ndim for p in parts]}"))
    differing = [d for d in range(ndim) if any(p.shape[d] != parts[0].shape[d] for p in parts)]
    if len(differing) > 1:
        raise errors.RefusedValue(errors.text(
            "Cannot represent given tensor list as a nested tensor with the jagged layout. Note "
            "that the jagged layout only represents shapes of the form "
            f"(B, *_0, D_0, D_1, ..., D_N) with one ragged dim ({errors.user_line(4)})",
            f"shapes: {[list(p.shape) for p in parts]}", "layout=torch.strided"))
    d = differing[0] if differing else 0
    sizes = [p.shape[d] for p in parts]
    offsets = [0]
    for n in sizes:
        offsets.append(offsets[-1] + n)
    values = ops.cat(parts, d)
    out = NestedTensor.make(values, _integers(offsets, values.device), None, d + 1)
    out.about.found.setdefault("listed", sizes)
    return out


def _integers(numbers: list, device: Any) -> Tensor:
    from ..creation import tensor

    return tensor(numbers, device=device)


def nested_tensor_from_jagged(values: Tensor, offsets: Tensor | None = None,
                              lengths: Tensor | None = None, jagged_dim: int | None = None,
                              min_seqlen: int | None = None,
                              max_seqlen: int | None = None) -> Tensor:
    """A nested tensor around values: a view, to which derivatives go."""
    if offsets is None and lengths is None:
        raise errors.RefusedValue(
            "nested_tensor_from_jagged(): At least one of offsets or lengths is required. "
            f"({errors.user_line(2)})")
    for what, given in (("values", values), ("offsets", offsets), ("lengths", lengths)):
        if given is not None and not isinstance(given, Tensor):
            raise TypeError(f"nested_tensor_from_jagged(): {what} must be a tensor, got "
                            f"{type(given).__name__} ({errors.user_line(2)})")
        if given is not None and given.device != values.device:
            raise AssertionError(errors.text(
                f"values and {what} must be on the same device, but got values.device="
                f"{values.device} and {what}.device={given.device} ({errors.user_line(2)})",
                cure=f"{what}.to(values.device)"))
    if offsets is None:
        offsets, lengths = summed(lengths), None
    dim = 1 if jagged_dim is None else jagged_dim
    if not 1 <= dim <= values.ndim:
        raise errors.RefusedValue(
            f"nested_tensor_from_jagged(): jagged_dim must be between 1 and {values.ndim}, got "
            f"{dim} ({errors.user_line(2)})")
    if offsets.ndim != 1 or not offsets.shape[0] or offsets.dtype.is_floating_point:
        raise errors.ShapeError(
            f"nested_tensor_from_jagged(): offsets must be a vector of integers, one more than "
            f"there are parts, got {shown(offsets)} ({errors.user_line(2)})")
    longest = None if max_seqlen is None else ops.empty((max_seqlen, 0))
    return NestedTensor.make(ops.alias(values), offsets, lengths, dim, longest)


def nested_tensor_from_padded_tensor(padded: Tensor, offsets: Tensor, *, jagged_dim: int = 1,
                                     min_seqlen: int | None = None,
                                     max_seqlen: int | None = None) -> Tensor:
    """The parts of a padded tensor, without the padding."""
    return from_padded(padded, lengths_of(offsets), jagged_dim)


def from_padded(padded: Tensor, about: Lengths, ragged_idx: int = 1) -> NestedTensor:
    """The beginnings of rows that have these lengths."""
    from .tensor import packed_offsets

    offsets = packed_offsets(about)
    own = lengths_of(offsets)
    total = own.once("total", lambda: offsets[-1].item())
    rows, places = own.numbers(total), own.positions(total)
    moved = padded.movedim(ragged_idx, 1) if ragged_idx != 1 else padded
    values = moved[rows, places]
    return NestedTensor.make(values.movedim(0, ragged_idx - 1) if ragged_idx != 1 else values,
                             offsets, None, ragged_idx, ops.empty((padded.shape[ragged_idx], 0))
                             if not about.plain else None)


def padded_values(t: NestedTensor, padding: Any, longest: Any) -> Tensor:
    """(batch, longest, *dense dims): a number behind the shorter parts, and longer ones cut off."""
    t = packed(t)
    values = t.values_part.movedim(t.dense, 0) if t.dense else t.values_part
    total = values.shape[0]
    rows, places = t.about.numbers(total), t.about.positions(total)
    out = ops.full((t.count, longest, *values.shape[1:]), padding, dtype=values.dtype,
                   device=values.device)
    return out.index_put((rows, places), values)


def to_padded(t: NestedTensor, padding: Any, output_size: Any = None) -> Tensor:
    """A dense tensor with the parts in its rows."""
    given = None if output_size is None else output_size[t.ragged_idx]
    longest = t.longest()
    if given is not None and t.about.plain and given < longest:
        lengths = t.about.lengths.clamp(max=given)
        t = NestedTensor.make(t.values_part, t.offsets_part, lengths, t.ragged_idx)
    out = padded_values(t, padding, longest if given is None else given)
    out = out.movedim(1, t.ragged_idx) if t.ragged_idx != 1 else out
    if output_size is None:
        return out
    if len(output_size) != out.ndim:
        raise errors.ShapeError(
            f"to_padded_tensor(): output_size has {len(output_size)} sizes, the tensor {out.ndim} "
            f"dims ({errors.user_line(3)})")
    return _fitted(out, output_size, padding)


def _fitted(out: Tensor, size: Any, padding: Any) -> Tensor:
    """More padding, where a size says so."""
    for d, n in enumerate(size):
        if d and n > out.shape[d]:
            more = [*out.shape[:d], n - out.shape[d], *out.shape[d + 1:]]
            out = ops.cat([out, ops.full(more, padding, dtype=out.dtype, device=out.device)], d)
    return out


def to_padded_tensor(input: Tensor, padding: float, output_size: Any = None, out: Any = None):
    """`input.to_padded_tensor(padding, output_size)`."""
    found = input.to_padded_tensor(padding, output_size)
    return found if out is None else out.copy_(found)


def narrow(tensor: Tensor, dim: int, start: Any, length: Any, layout: Any = STRIDED) -> Tensor:
    """The part of each row of a dense tensor that begins at a place of its own."""
    if dim != 1:
        raise errors.RefusedValue(f"narrow(): Nested tensor narrow only supports dim=1 "
                                  f"({errors.user_line(2)})")
    size, width = tensor.shape[0], tensor.shape[1]

    def numbers(given: Any) -> Tensor:
        if isinstance(given, Tensor):
            return given
        return ops.full((size,), given, dtype=ops.arange(0).dtype, device=tensor.device)

    if layout is not JAGGED:
        return _joined([row.narrow(0, int(a), int(n)) for row, a, n in zip(
            tensor.unbind(0), numbers(start).tolist(), numbers(length).tolist())], layout,
            "narrow", None, None)
    starts, lengths = numbers(start), numbers(length)
    for what, given in (("start", starts), ("length", lengths)):
        if given.ndim > 1 or given.ndim and given.shape[0] not in (1, size):
            raise errors.ShapeError(errors.text(
                f"narrow(): {what} must broadcast to tensor.shape[0] ({errors.user_line(2)})",
                [shown(tensor), shown(given)]))
        if given.device != tensor.device:
            raise errors.DeviceError(errors.text(
                f"narrow(): {what} is on {given.device}, not on the device of the tensor, "
                f"{tensor.device} ({errors.user_line(2)})", cure=f"{what}.to(tensor.device)"))
    begins = ops.arange(size, device=tensor.device) * width + starts
    lengths = lengths.expand(size).to(begins.dtype)
    end = begins[-1:] + lengths[-1:] if size else begins.new_zeros(1)
    values = tensor.flatten(0, 1)
    if isinstance(start, int) and isinstance(length, int) and start == 0 and length == width:
        return NestedTensor.make(values, ops.cat([begins, end]))
    return NestedTensor.make(values, ops.cat([begins, end]), lengths)


def masked_select(tensor: Tensor, mask: Tensor) -> NestedTensor:
    """The elements of each row that a mask keeps."""
    if tensor.layout is not STRIDED:
        raise errors.RefusedValue(
            "torch.nested.masked_select requires a strided tensor, given "
            f"{tensor.layout} ({errors.user_line(2)})")
    if mask.layout is not STRIDED:
        raise errors.RefusedValue(
            f"torch.nested.masked_select requires a strided mask, given {mask.layout} "
            f"({errors.user_line(2)})")
    tensor, mask = ops.broadcast_tensors([tensor, mask])
    counts = mask.reshape(mask.shape[0], -1).sum(1)
    return NestedTensor.make(tensor.masked_select(mask), summed(counts))


@rule(NestedTensor, "to_padded_tensor")
def _padded(t: NestedTensor, padding: float, output_size: Any = None) -> Tensor:
    return to_padded(t, padding, output_size)


@rule(NestedTensor, "new_empty", "new_zeros")
def new_zeros(t: NestedTensor, size: Any, dtype: Any = None, layout: Any = None,
              device: Any = None, pin_memory: Any = None) -> Tensor:
    return _of_size(t, size, 0, dtype, device)


@rule(NestedTensor, "new_ones")
def new_ones(t: NestedTensor, size: Any, dtype: Any = None, layout: Any = None,
             device: Any = None, pin_memory: Any = None) -> Tensor:
    return _of_size(t, size, 1, dtype, device)


@rule(NestedTensor, "new_full")
def new_full(t: NestedTensor, size: Any, fill_value: Any, dtype: Any = None, layout: Any = None,
             device: Any = None, pin_memory: Any = None) -> Tensor:
    return _of_size(t, size, fill_value, dtype, device)


def _of_size(t: NestedTensor, size: Any, value: Any, dtype: Any, device: Any) -> Tensor:
    """One number everywhere, with the ragged size of a tensor; without it, the result is dense."""
    own, place = list(size), next(
        (d for d, n in enumerate(size) if isinstance(n, Ragged)), None)
    if place is None:
        return NotImplemented
    if not place or own[0] != t.count or own[place] != t.about.size:
        raise errors.ShapeError(errors.text(
            f"no tensor of the size {own} can be made like this one ({errors.user_line(4)})",
            shown(t), "keep the batch dim, and take the ragged size from it: x.size(dim)"))
    t = packed(t)
    own[place] = t.values_part.shape[t.dense]
    values = ops.new_full(t.values_part, own[1:], value, dtype=dtype, device=device)
    return NestedTensor.make(values, t.offsets_part, None, place, t.longest_part)
