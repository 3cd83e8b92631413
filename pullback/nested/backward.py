"""Gradients that are operators by themselves: programs may call them with nested tensors.

No derivative needs them: those of compositions on values follow by themselves.
"""

from __future__ import annotations

from typing import Any

from ..array.dims import wrap_dim, wrap_dims
from ..core.handle import Tensor
from ..parts.rules import rule
from ..table.packets import ops
from .ragged import Ragged
from .strided import StridedNested, of_parts, parts_of
from .strided_rules import last
from .tensor import NestedTensor, packed, wrapped


def matmul_backward(grad: Tensor, a: Tensor, b: Tensor, mask: Any) -> tuple:
    """The gradients of `a @ b`, as far as they are wanted."""
    if isinstance(b, NestedTensor) and a.ndim == 2 and not isinstance(a, NestedTensor):
        second, first = matmul_backward(grad.mT, b.mT, a.mT, list(mask)[::-1])
        return first if first is None else first.mT, second if second is None else second.mT
    left, right = a.unsqueeze(0) if a.ndim == 1 else a, b.unsqueeze(-1) if b.ndim == 1 else b
    grad = grad.unsqueeze(-1) if b.ndim == 1 else grad
    grad = grad.unsqueeze(-2) if a.ndim == 1 else grad
    first = second = None
    if mask[0]:
        first = reduced_to(ops.matmul(grad, right.mH), left).reshape(a.shape)
    if mask[1] and isinstance(a, NestedTensor) and right.ndim == 2:  # one matrix for all rows
        rows, seeds = [packed(t).values_part.flatten(0, -2) for t in (a, grad)]
        second = ops.matmul(rows.mH, seeds).reshape(b.shape)
    elif mask[1]:
        second = reduced_to(ops.matmul(left.mH, grad), right).reshape(b.shape)
    return first, second


def reduced_to(x: Tensor, like: Tensor) -> Tensor:
    """A gradient summed over the dims along which an operand was repeated."""
    if isinstance(x, NestedTensor) or isinstance(like, NestedTensor):
        return x
    return x if x.shape == like.shape else ops.sum_to_size(x, like.shape)


@rule(NestedTensor, "matmul_backward")
def nested_matmul_backward(grad: Tensor, a: Tensor, b: Tensor, mask: Any) -> tuple:
    return matmul_backward(grad, a, b, mask)


@rule(StridedNested, "matmul_backward")
def strided_matmul_backward(grad: Tensor, a: Tensor, b: Tensor, mask: Any) -> tuple:
    """Those of each part; what all parts have in common gets the sum."""
    columns = [columns_of(t, grad) for t in (grad, a, b)]
    found = zip(*[matmul_backward(*row, mask) for row in zip(*columns)])

    def one(t: Tensor, grads: tuple) -> Any:
        if grads[0] is None:
            return None
        if isinstance(t, StridedNested):
            return of_parts(grads, grad.dtype)
        rows = ops.stack(list(grads))
        return rows if t.ndim == grad.ndim and t.shape[0] == len(grad) else rows.sum(
            0, keepdim=t.ndim == grad.ndim)

    return tuple([one(t, grads) for t, grads in zip((a, b), found)])


def columns_of(t: Tensor, like: StridedNested) -> list:
    """What each part of a nested tensor meets of an operand."""
    if isinstance(t, StridedNested):
        return parts_of(t)
    if t.ndim < like.ndim:
        return [t] * len(like)
    return [t[i if t.shape[0] > 1 else 0] for i in range(len(like))]


@rule(NestedTensor, "linear_backward")
def linear_backward(t: NestedTensor, grad: NestedTensor, weight: Tensor, output_mask: Any) -> tuple:
    x, g = packed(t), packed(grad)
    first, *rest = ops.linear_backward(x.values_part, g.values_part, weight, output_mask)
    return None if first is None else x.with_values(first), *rest


@rule(StridedNested, "linear_backward")
def strided_linear_backward(t: StridedNested, grad: StridedNested, weight: Tensor,
                            output_mask: Any) -> tuple:
    x, g = t.buffer_part.unflatten(0, (-1, *last(t))), grad.buffer_part.unflatten(
        0, (-1, *last(grad)))
    first, *rest = ops.linear_backward(x, g, weight, output_mask)
    return None if first is None else t.with_carrier(first.reshape(-1)), *rest


@rule(NestedTensor, "native_layer_norm_backward")
def native_layer_norm_backward(grad: NestedTensor, t: NestedTensor, *args: Any) -> tuple:
    first, *rest = ops.native_layer_norm_backward(grad.values_part, t.values_part, *args)
    return None if first is None else t.with_values(first), *rest


@rule(StridedNested, "native_layer_norm_backward")
def strided_layer_norm_backward(grad: StridedNested, t: StridedNested, normalized_shape: Any,
                                mean: Tensor, rstd: Tensor, *args: Any) -> tuple:
    x, g = [v.buffer_part.unflatten(0, (-1, *normalized_shape)) for v in (t, grad)]
    each = (-1, *[1] * len(normalized_shape))
    first, *rest = ops.native_layer_norm_backward(
        g, x, normalized_shape, mean.reshape(each), rstd.reshape(each), *args)
    return None if first is None else t.with_carrier(first.reshape(-1)), *rest


@rule(NestedTensor, "embedding_dense_backward")
def embedding_dense_backward(grad: NestedTensor, indices: NestedTensor, *args: Any) -> Tensor:
    return ops.embedding_dense_backward(packed(grad).values_part, packed(indices).values_part,
                                        *args)


@rule(NestedTensor, "_softmax_backward_data")
@rule(StridedNested, "_softmax_backward_data")
def softmax_backward(grad: Tensor, output: Tensor, dim: int, dtype: Any) -> Any:
    product = grad * output
    return (product - output * product.sum(dim, keepdim=True)).to(dtype)


@rule(NestedTensor, "_log_softmax_backward_data")
@rule(StridedNested, "_log_softmax_backward_data")
def log_softmax_backward(grad: Tensor, output: Tensor, dim: int, dtype: Any) -> Any:
    return (grad - output.exp() * grad.sum(dim, keepdim=True)).to(dtype)


@rule(NestedTensor, "value_selecting_reduction_backward")
def value_selecting_reduction_backward(grad: NestedTensor, dim: int, indices: NestedTensor,
                                       sizes: Any, keepdim: bool) -> NestedTensor:
    """The gradient of `max(dim)` and the like over a dense dim: it goes to what was chosen."""
    d, ragged = wrap_dim(dim, len(sizes)), next(
        k for k, n in enumerate(sizes) if isinstance(n, Ragged))
    own = list(sizes[1:])
    own[ragged - 1] = grad.values_part.shape[grad.dense]
    return grad.with_values(ops.value_selecting_reduction_backward(
        grad.values_part, d - 1, indices.values_part, own, keepdim), ragged)


@rule(StridedNested, "value_selecting_reduction_backward")
def strided_selecting_backward(grad: StridedNested, dim: int, indices: StridedNested, sizes: Any,
                               keepdim: bool) -> StridedNested:
    d = wrap_dim(dim, len(sizes))
    rows = []
    for g, places in zip(parts_of(grad), parts_of(indices)):
        size = list(g.shape)
        size[d - 1:d - 1 + keepdim] = [sizes[d]]
        rows.append(ops.value_selecting_reduction_backward(g, d - 1, places, size, keepdim))
    return of_parts(rows, grad.dtype)


def sum_backward(grad: Tensor, t: Tensor, dim: Any, keepdim: bool) -> Tensor:
    """The gradient of a sum over dims: the same for all that was added."""
    if not keepdim:
        for d in sorted(wrap_dims(dim, t.ndim)):
            grad = grad.unsqueeze(d)
    return ops.zeros_like(t, dtype=grad.dtype) + grad


rule(NestedTensor, "_nested_sum_backward")(sum_backward)
rule(StridedNested, "_nested_sum_backward")(sum_backward)


@rule(NestedTensor, "_nested_select_backward")
def select_backward(grad: Tensor, t: NestedTensor, dim: int, index: Any) -> NestedTensor:
    d = wrapped(t, dim)
    zeros = ops.zeros_like(t.values_part, dtype=grad.dtype)
    if d not in (0, t.ragged_idx):
        return t.with_values(ops.select_scatter(zeros, grad.values_part, d - 1, index))
    about = t.about
    if d:  # the element at a place of every part
        places = about.starts + index if index >= 0 else about.starts + about.lengths + index
        return t.with_values(zeros.index_copy(t.dense, places, grad.movedim(0, t.dense)))
    chosen = ops.arange(grad.shape[t.dense], device=grad.device) + about.starts[index]
    return t.with_values(zeros.index_copy(t.dense, chosen, grad))


@rule(StridedNested, "_nested_select_backward")
def strided_select_backward(grad: Tensor, t: StridedNested, dim: int, index: Any) -> StridedNested:
    d = wrap_dim(dim, t.ndim)
    if d:
        rows = zip(parts_of(t), parts_of(grad))
        return of_parts([ops.select_backward(g, p.shape, d - 1, index) for p, g in rows])
    chosen = index % len(t)
    return of_parts([grad if i == chosen else ops.zeros_like(p)
                     for i, p in enumerate(parts_of(t))])
