"""What the operators of the table about nested tensors do (`ops/nested_tensors.py`)."""

from __future__ import annotations

import math
from typing import Any

from ..core.handle import Tensor
from ..parts.rules import rule
from ..table.packets import ops
from . import construct
from .backward import matmul_backward, sum_backward
from .ragged import lengths_of
from .strided import StridedNested, _table, of_parts
from .strided_rules import from_buffer, from_mask, from_padded, is_left_aligned
from .tensor import NestedTensor

__all__ = [
    "from_buffer", "from_mask", "from_padded", "is_left_aligned", "matmul_backward", "sum_backward",
]


def dummy(like: Tensor) -> NestedTensor:
    return NestedTensor.make(like.new_zeros((0,)), ops.arange(2) * 0)


def from_jagged(values: Tensor, offsets: Tensor, lengths: Tensor | None, ragged_idx: int,
                longest: Tensor | None) -> NestedTensor:
    if longest is not None and longest.ndim != 2:
        longest = ops.empty((longest.shape[0], 0)) if longest.ndim else None
    return NestedTensor.make(ops.alias(values), offsets, lengths, ragged_idx, longest)


def from_padded_tensor(padded: Tensor, offsets: Tensor, ragged_idx: int, total: Any):
    about = lengths_of(offsets)
    if total is not None and not about.plain:
        about.found["total"] = total
    return construct.from_padded(padded, about, ragged_idx)


def from_list(parts: list, dtype: Any) -> StridedNested:
    return of_parts([p if dtype is None else p.to(dtype) for p in parts], dtype)


def from_example(padded: Tensor, example: Tensor) -> Tensor:
    if isinstance(example, StridedNested):
        return from_padded(padded, list(example.sizes))
    return construct.from_padded(padded, example.about, example.ragged_idx)


def contiguous_strides(sizes: Tensor) -> tuple[Tensor, Tensor]:
    rows = sizes.tolist()
    strides = [[math.prod(s[d + 1:]) for d in range(len(s))] for s in rows]
    ends = sizes.prod(1).cumsum(0)
    return _table(strides, sizes.shape[1]), ends - sizes.prod(1)


def softmax_with_shape(scores: Tensor, query: Tensor) -> Tensor:
    """Softmax of (batch, heads, longest, longest) over the keys that there are."""
    lengths = query.about.lengths if isinstance(query, NestedTensor) else (
        query._nested_tensor_size()[:, 0].to(scores.device))
    there = ops.arange(scores.shape[-1], device=scores.device) < lengths.reshape(-1, 1, 1, 1)
    kept = there & there.mT
    out = ops.softmax(scores.masked_fill(~there, -math.inf), -1)
    return out.masked_fill(~kept, 0.0)


rule(NestedTensor, "_nested_tensor_softmax_with_shape")(softmax_with_shape)
rule(StridedNested, "_nested_tensor_softmax_with_shape")(softmax_with_shape)


@rule(NestedTensor, "_nested_get_values", "values")
def values(t: NestedTensor) -> Tensor:
    return t.values()


@rule(StridedNested, "_nested_get_values", "values")
def buffer(t: StridedNested) -> Tensor:
    return t.values()


@rule(NestedTensor, "_nested_get_values_copy", "values_copy")
def values_copy(t: NestedTensor) -> Tensor:
    return t.values_part.clone()


@rule(StridedNested, "_nested_get_values_copy", "values_copy")
def buffer_copy(t: StridedNested) -> Tensor:
    return t.buffer_part.clone()


@rule(NestedTensor, "_nested_get_offsets")
def offsets(t: NestedTensor) -> Tensor:
    return t.offsets_part


@rule(NestedTensor, "_nested_get_lengths")
def lengths(t: NestedTensor) -> Tensor | None:
    return t.lengths_part


@rule(NestedTensor, "_nested_get_ragged_idx")
def ragged_idx(t: NestedTensor) -> int:
    return t.ragged_idx


@rule(NestedTensor, "_nested_get_max_seqlen")
def longest(t: NestedTensor) -> Tensor:
    return ops.empty((t.longest(), 0)) if t.longest_part is None else t.longest_part


@rule(NestedTensor, "_nested_get_min_seqlen")
def shortest(t: NestedTensor) -> Tensor:
    return ops.empty((t.about.shortest(), 0))


@rule(NestedTensor, "_nested_get_jagged_dummy")
def dummy_of(t: NestedTensor) -> NestedTensor:
    return dummy(t.values_part)


@rule(StridedNested, "_nested_tensor_size")
def sizes_table(t: StridedNested) -> Tensor:
    return t._nested_tensor_size()


@rule(StridedNested, "_nested_tensor_strides")
def strides_table(t: StridedNested) -> Tensor:
    return t._nested_tensor_strides()


@rule(StridedNested, "_nested_tensor_storage_offsets")
def starts_table(t: StridedNested) -> Tensor:
    return t._nested_tensor_storage_offsets()


@rule(NestedTensor, "_nested_from_padded_and_nested_example")
def like_jagged(padded: Tensor, example: NestedTensor) -> Tensor:
    return from_example(padded, example)


@rule(StridedNested, "_nested_from_padded_and_nested_example")
def like_strided(padded: Tensor, example: StridedNested) -> Tensor:
    return from_example(padded, example)


@rule(NestedTensor, "is_same_size")
def same_size(a: Tensor, b: Tensor) -> bool:
    return isinstance(a, NestedTensor) and a.is_same_size(b)


@rule(NestedTensor, "_is_all_true")
def all_true(t: NestedTensor) -> Tensor:
    return t.all()


@rule(NestedTensor, "_is_any_true")
def any_true(t: NestedTensor) -> Tensor:
    return t.any()


@rule(NestedTensor, "is_non_overlapping_and_dense")
def fills_memory(t: NestedTensor) -> bool:
    return False  # the strides of parts are no strides of the batch


@rule(StridedNested, "is_non_overlapping_and_dense")
def buffer_fills_memory(t: StridedNested) -> bool:
    return False
