"""Look-ups in tables of 8-, 4- and 2-bit integers, for `ops.quantized`.

A row has a scale and a zero point in single precision, or, where several integers share a byte, in
half precision.  Tables may also be plain bytes, each row with its scale and its lowest number
behind the integers (`..._prepack`, `..._rowwise_offsets`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import errors
from ..array import dtype as dt
from ..core.handle import Tensor
from ..creation import tensor
from ..table.packets import ops
from .construct import together
from .packed import EmbeddingPackedParamsBase

functions: dict[str, Callable] = {}


def _numbers(integers: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """`integers * scale + shift` with one rounding."""
    wide = integers.to(dt.float64) * scale.to(dt.float64).unsqueeze(-1)
    return (wide + shift.to(dt.float64).unsqueeze(-1)).to(dt.float32)


def _looked_up(table: Any, indices: Tensor) -> Tensor:
    """Rows of a packed table as numbers."""
    if not isinstance(table, EmbeddingPackedParamsBase):
        raise errors.DTypeError(errors.text(
            f"embedding: expected a packed weight, got {type(table).__name__} "
            f"({errors.user_line(4)})", cure="ops.quantized.embedding_bag_prepack(weight)"))
    if indices.dtype not in (dt.int32, dt.int64):
        raise errors.DTypeError(
            f"Expect 32 or 64 bit indices, but found {indices.dtype} ({errors.user_line(4)})")
    weight = table.weight()
    flat = indices.reshape(-1)
    scale, zero = weight.scale_part[flat].to(dt.float32), weight.zero_part[flat].to(dt.float32)
    shift = -(scale * zero)
    if weight.packed_shape is not None:  # as it stands behind the integers in memory
        scale, shift = scale.to(dt.float16), shift.to(dt.float16)
    return _numbers(table.rows[flat], scale, shift).reshape(*indices.shape, weight.shape[1])


def _embedding(weight: Any, indices: Tensor, pruned_weights: bool = False) -> Tensor:
    """Rows of a table at some places."""
    return _looked_up(weight, indices)


functions |= {"embedding_byte": _embedding, "embedding_4bit": _embedding}


def _pooled(rows: Tensor, offsets: Tensor | None, mode: int, per_sample_weights: Tensor | None,
            include_last_offset: bool) -> Tensor:
    """Sums or means of rows that belong together."""
    given = offsets
    if rows.ndim == 3:
        count, each = rows.shape[:2]
        given = ops.arange(0, count * each, max(each, 1), device=rows.device)[:count]
        rows, include_last_offset = rows.reshape(-1, rows.shape[-1]), False
    if given is None:
        raise errors.ArgumentError(
            f"embedding_bag: offsets are needed for indices with one dim ({errors.user_line(4)})")
    weights = None if per_sample_weights is None or mode else per_sample_weights.reshape(-1)
    every = ops.arange(rows.shape[0], device=rows.device)
    return ops.embedding_bag(rows, every, given, False, mode, False, weights,
                             include_last_offset)[0]


def _bag(weight: Any, indices: Tensor, offsets: Tensor | None = None,
         scale_grad_by_freq: bool = False, mode: int = 0, pruned_weights: bool = False,
         per_sample_weights: Tensor | None = None,
         compressed_indices_mapping: Tensor | None = None,
         include_last_offset: bool = False) -> Tensor:
    """Sums of rows of a table at some places; `mode` 0 is the sum, as it is for all others."""
    rows = _looked_up(weight, indices)
    return _pooled(rows, offsets, 0, per_sample_weights, include_last_offset)


functions |= {"embedding_bag_byte": _bag, "embedding_bag_4bit": _bag}


def _packed_rows(bits: int, weight: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Numbers as rows of bytes; integers reach from the low to the high number of their row."""
    most = (1 << bits) - 1
    if bits == 8:
        scale = (high - low) / most
        level = ((weight - low) * (255.0 / (high - low + 1e-8))).round()
    else:
        low = low.to(dt.float16)
        scale = ((high - low.float()) / most).to(dt.float16)
        scale = ops.where(scale == 0, ops.ones_like(scale), scale)
        level = ((weight - low.float()) * (1.0 / scale.float())).round()
    tail = ops.cat([scale, low], -1).contiguous().view(dt.uint8)
    return ops.cat([together(level.clamp(0, most).to(dt.uint8), bits), tail], -1)


def _ranges(bits: int, weight: Tensor, low: Tensor, high: Tensor, optimized: bool, nbins: int,
            ratio: float) -> tuple[Tensor, Tensor]:
    """The lowest and highest numbers of rows, or the ends of ranges in which less is lost."""
    if not optimized:
        return low, high
    from .fbgemm import best_range

    rows = weight.detach().reshape(-1, weight.shape[-1]).numpy(force=True)
    found = [best_range(row, nbins, ratio, bits) for row in rows]
    return tuple(tensor([r[k] for r in found]).reshape(low.shape) for k in (0, 1))


def _prepack(bits: int) -> Callable:
    """The function that packs numbers into rows of bytes."""

    def pack(weight: Tensor, optimized_qparams: bool = False, nbins: int = 200,
             ratio: float = 0.16) -> Tensor:
        low, high = weight.amin(-1, True), weight.amax(-1, True)
        return _packed_rows(bits, weight, *_ranges(
            bits, weight, low, high, optimized_qparams, nbins, ratio))

    return pack


def _prepack_between(bits: int) -> Callable:
    """The same, with a column of lowest and one of highest numbers that are known already."""

    def pack(weight: Tensor, rowwise_min_max: Tensor, optimized_qparams: bool = False,
             nbins: int = 200, ratio: float = 0.16) -> Tensor:
        shape = (weight.shape[0], 2)
        if weight.ndim != 2 or tuple(rowwise_min_max.shape) != shape:
            raise errors.ShapeError(
                f"embedding_bag_prepack_with_rowwise_min_max: expected {list(shape)} lowest and "
                f"highest numbers of the rows of a matrix, got {list(rowwise_min_max.shape)} "
                f"({errors.user_line(2)})")
        low, high = rowwise_min_max[:, :1], rowwise_min_max[:, 1:]
        return _packed_rows(bits, weight, *_ranges(
            bits, weight, low, high, optimized_qparams, nbins, ratio))

    return pack


def _apart(table: Tensor, bits: int) -> tuple[Tensor, Tensor, Tensor]:
    """(integers, scales, lowest numbers) of rows of bytes."""
    width = 8 if bits == 8 else 4
    tail = table[..., -width:].contiguous().view(dt.float32 if bits == 8 else dt.float16)
    body = table[..., :-width]
    pieces = [(body >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    integers = ops.stack(pieces, -1).reshape(*table.shape[:-1], -1)
    return integers, tail[..., 0], tail[..., 1]


def _unpack(bits: int) -> Callable:
    def unpack(weight: Tensor) -> Tensor:
        return _numbers(*_apart(weight, bits))

    return unpack


def _rowwise(bits: int) -> Callable:
    def bag(weight: Tensor, indices: Tensor, offsets: Tensor | None = None,
            scale_grad_by_freq: bool = False, mode: int = 0, pruned_weights: bool = False,
            per_sample_weights: Tensor | None = None,
            compressed_indices_mapping: Tensor | None = None,
            include_last_offset: bool = False) -> Tensor:
        rows = _numbers(*_apart(weight[indices.reshape(-1)], bits))
        rows = rows.reshape(*indices.shape, rows.shape[-1])
        return _pooled(rows, offsets, mode, per_sample_weights, include_last_offset)

    return bag


for _bits, _name in ((8, "byte"), (4, "4bit"), (2, "2bit")):
    functions |= {f"embedding_bag_{_name}_prepack": _prepack(_bits),
                  f"embedding_bag_{_name}_prepack_with_rowwise_min_max": _prepack_between(_bits),
                  f"embedding_bag_{_name}_unpack": _unpack(_bits),
                  f"embedding_bag_{_name}_rowwise_offsets": _rowwise(_bits)}
