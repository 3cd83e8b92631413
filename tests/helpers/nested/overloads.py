"""Operators of jagged tensors by their names in the table, with nested arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback as torch
import pullback.nn.functional as F

from . import facts
from .cases import LENGTHS
from .programs import all_of, call, check, fact, flag, known, like, ragged, run, written

aten = torch.ops.aten
BOTH = ("jagged", "strided")


def _graded(function: Callable) -> Callable:
    """An operator of a gradient and a tensor."""
    return lambda x: function(x.cos(), x)


def _joined(parts: Any) -> Any:
    return torch.cat(list(parts))


WEIGHT, BIAS = ((5, 3),), ((5, 3), (5,))
PLACES = [torch.tensor([0, 1]), torch.tensor([1, 3])]  # (parts, places in them)


def put(p: Any, i: int, values: Any) -> Any:
    """What `index_put` at `PLACES` does to a part."""
    place = {0: 1, 1: 3}.get(i)
    if place is None:
        return p * 1
    return torch.index_put(p, [torch.tensor([place])], values[i:i + 1])


def linear_backward(x: Any, w: Any) -> Any:
    grad = F.linear(x, w).sin()
    first, second, third = aten.linear_backward.default(x, grad, w, [True, True, True])
    return [first, second, third]


def linear_backward_of(parts: Any, w: Any) -> Any:
    rows = _joined(parts)
    grad = F.linear(rows, w).sin()
    return [[F.linear(p, w).sin() @ w for p in parts], grad.T @ rows, grad.sum(0)]


def matmul_backward(x: Any, w: Any) -> Any:
    return list(aten.matmul_backward.default(torch.matmul(x, w).sin(), x, w, [True, True]))


def matmul_backward_of(parts: Any, w: Any) -> Any:
    grads = [(p @ w).sin() for p in parts]
    return [[g @ w.T for g in grads], sum(p.T @ g for p, g in zip(parts, grads))]


def matmul_backward_each(parts: Any, w: Any) -> Any:
    grads = [(p @ m).sin() for p, m in zip(parts, w)]
    return [[g @ m.T for g, m in zip(grads, w)],
            torch.stack([p.T @ g for p, g in zip(parts, grads)])]


def layer_norm_backward(x: Any, w: Any, b: Any) -> Any:
    _, mean, spread = aten.native_layer_norm.default(x, [3], w, b, 1e-5)
    return list(aten.native_layer_norm_backward.default(
        x.sin(), x, [3], mean, spread, w, b, [True, True, True]))


def layer_norm_backward_of(parts: Any, w: Any, b: Any) -> Any:
    first, *rest = layer_norm_backward(_joined(parts), w, b)
    return [list(first.split(list(LENGTHS))), *rest]


def embedding_backward(x: Any) -> Any:
    places = (x[..., 0] > 0).long()
    return aten.embedding_dense_backward.default(x.sin(), places, 3, -1, False)


def selected_backward(x: Any) -> Any:
    """The gradient of the largest of each row, by the operator."""
    values, places = x.max(2)
    sizes = x.shape if x.layout is torch.jagged else [len(x), -1, 3]
    return aten.value_selecting_reduction_backward.default(values.sin(), 2, places, sizes, False)


def selected_backward_of(p: Any, i: int) -> Any:
    values, places = p.max(1)
    return aten.value_selecting_reduction_backward.default(
        values.sin(), 1, places, p.shape, False)


OVERLOADS = {
    "_is_all_true.default": flag(lambda x: aten._is_all_true.default(x > -9),
                                 whole=lambda parts: (_joined(parts) > -9).all()),
    "_is_any_true.default": flag(lambda x: aten._is_any_true.default(x > 9),
                                 whole=lambda parts: (_joined(parts) > 9).any()),
    "_log_softmax.default": call(lambda x: aten._log_softmax.default(x, 1, False),
                                 lambda p, i: p.log_softmax(0), "log_softmax over the ragged dim",
                                 "log_softmax over a dense dim", "log_softmax of transposed"),
    "_nested_from_padded_tensor.default": run(
        lambda x: aten._nested_from_padded_tensor.default(
            x.sin().to_padded_tensor(0.0), x.offsets(), x), lambda p, i: p.sin()),
    "_nested_get_jagged_dummy.default": check(facts.dummy),
    "_nested_get_lengths.default": check(facts.lengths),
    "_nested_get_max_seqlen.default": fact(
        lambda x: aten._nested_get_max_seqlen.default(x).shape[0], 4),
    "_nested_get_min_seqlen.default": check(facts.shortest),
    "_nested_get_offsets.default": fact(lambda x: aten._nested_get_offsets.default(x).sum(), 25),
    "_nested_get_ragged_idx.default": fact(
        lambda x: 5 * aten._nested_get_ragged_idx.default(x), 5),
    "_nested_get_values.default": run(lambda x: aten._nested_get_values.default(x).sin(),
                                      whole=lambda parts: _joined(parts).sin()),
    "_nested_select_backward.default": [
        run(lambda x, g: x.sin() + aten._nested_select_backward.default(g, x, 0, 1),
            lambda p, i, g: p.sin() + g if i == 1 else p.sin(), extra=((4, 3),), layouts=BOTH),
        run(lambda x, g: x.sin() + aten._nested_select_backward.default(g, x, 1, -1),
            lambda p, i, g: p.sin() + F.pad(g[i:i + 1], (0, 0, len(p) - 1, 0)), extra=((4, 3),)),
        run(lambda x: aten._nested_select_backward.default(x.sum(-1).sin(), x, -1, 1),
            lambda p, i: F.pad(p.sum(-1).sin().unsqueeze(-1), (1, 1)), layouts=BOTH)],
    "_nested_view_from_jagged.default": run(
        lambda x: aten._nested_view_from_jagged.default(x.values().sin(), x.offsets(), x),
        lambda p, i: p.sin()),
    "_pin_memory.default": run(lambda x: aten._pin_memory.default(x).sin(), lambda p, i: p.sin()),
    "_softmax.default": call(lambda x: aten._softmax.default(x, 1, False),
                             lambda p, i: p.softmax(0), "softmax over the ragged dim",
                             "softmax over a dense dim", "softmax of transposed"),
    "_softmax_backward_data.default": run(
        lambda x: aten._softmax_backward_data.default(x.sin(), x.softmax(1), 1, x.dtype),
        lambda p, i: aten._softmax_backward_data.default(p.sin(), p.softmax(0), 0, p.dtype),
        layouts=BOTH),
    "_to_copy.default": run(lambda x: aten._to_copy.default(x, dtype=torch.complex128),
                            lambda p, i: p.to(torch.complex128)),
    "_unsafe_view.default": run(lambda x: aten._unsafe_view.default(x, [4, x.size(1), 3, 1]).sin(),
                                lambda p, i: p.unsqueeze(-1).sin()),
    "all.default": flag(lambda x: aten.all.default(x > -1),
                        whole=lambda parts: (_joined(parts) > -1).all()),
    "all.dim": flag(lambda x: aten.all.dim(x > -1, 1), lambda p, i: (p > -1).all(0)),
    "all.dims": flag(lambda x: aten.all.dims(x > -1, [1, 2]), lambda p, i: (p > -1).all()),
    "amax.default": ragged(aten.amax.default, "amax over the ragged dim"),
    "amin.default": ragged(aten.amin.default, "amin over the ragged dim"),
    "any.default": flag(lambda x: aten.any.default(x > 1),
                        whole=lambda parts: (_joined(parts) > 1).any()),
    "any.dim": flag(lambda x: aten.any.dim(x > 1, 1), lambda p, i: (p > 1).any(0)),
    "any.dims": flag(lambda x: aten.any.dims(x > 1, [1, 2]), lambda p, i: (p > 1).any()),
    "argmax.default": flag(lambda x: aten.argmax.default(x, 1), lambda p, i: p.argmax(0)),
    "argmin.default": flag(lambda x: aten.argmin.default(x, 1), lambda p, i: p.argmin(0)),
    "bmm.default": call(aten.bmm.default, lambda p, i, w: p @ w[i], "matmul each",
                        "matmul from the left", "matmul contracted", extra=((4, 3, 5),)),
    "broadcast_tensors.default": run(
        lambda x, w: aten.broadcast_tensors.default([x, w]),
        lambda p, i, w: (p, w.expand(p.shape)), extra=((3,),)),
    "broadcast_to.default": run(lambda x: aten.broadcast_to.default(x[..., :1], x.shape).sin(),
                                lambda p, i: p[..., :1].expand(p.shape).sin()),
    "cat.default": call(lambda x: aten.cat.default([x, x * 2], 2),
                        lambda p, i: torch.cat([p, p * 2], 1), "view cat", "joined parts"),
    "chunk.default": run(lambda x: aten.chunk.default(x, 2, -1)),
    "clone.default": call(aten.clone.default, lambda p, i: p * 1, "clone"),
    "convolution.default": call(
        lambda x, w, b: aten.convolution.default(x, w, b, [1], [1], [1], False, [0], 1),
        lambda p, i, w, b: F.conv1d(p[None], w, b, padding=1)[0], "conv1d", "conv1d with steps",
        shape=(2, -1), extra=((5, 2, 3), (5,))),
    "copy_.default": run(lambda x: aten.copy_.default(x * 2, x.sin())),
    "detach.default": run(lambda x: x * aten.detach.default(x)),
    "dim.default": fact(aten.dim.default, 3),
    "elu_backward.default": run(_graded(
        lambda g, x: aten.elu_backward.default(g, 1.0, 1.0, 1.0, False, x))),
    "embedding.default": run(
        lambda x, w: aten.embedding.default(w, (x > 0).long()) * x.unsqueeze(-1),
        extra=((2, 4),)),
    "embedding_dense_backward.default": run(
        embedding_backward, whole=lambda parts: embedding_backward(_joined(parts))),
    "empty_like.default": check(facts.empty),
    "expand.default": run(lambda x: aten.expand.default(x[..., :1], x.shape).sin(),
                          lambda p, i: p[..., :1].expand(p.shape).sin()),
    "expand_as.default": run(lambda x, w: aten.expand_as.default(w, x) * x,
                             lambda p, i, w: w * p, extra=((3,),)),
    "fill.Scalar": like(lambda x: aten.fill.Scalar(x, 2.0)),
    "fill_.Scalar": written(lambda x: aten.fill_.Scalar(x, 2.0)),
    "frexp.Tensor": call(lambda x: aten.frexp.Tensor(x.detach())[0] * x,
                         lambda p, i: torch.frexp(p.detach())[0] * p, "view frexp"),
    "full_like.default": like(lambda x: aten.full_like.default(x, 2.0)),
    "hardshrink_backward.default": run(_graded(
        lambda g, x: aten.hardshrink_backward.default(g, x, 0.5))),
    "hardsigmoid_backward.default": run(_graded(aten.hardsigmoid_backward.default)),
    "hardtanh_backward.default": run(_graded(
        lambda g, x: aten.hardtanh_backward.default(g, x, -0.5, 0.5))),
    "index_put.default": run(lambda x, v: aten.index_put.default(x, PLACES, v), put,
                             extra=((2, 3),)),
    "index_put_.default": run(lambda x, v: aten.index_put_.default(x * 1, PLACES, v), put,
                              extra=((2, 3),)),
    "is_contiguous.default": fact(lambda x: 2 + aten.is_contiguous.default(x), 3),
    "is_contiguous.memory_format": fact(lambda x: 2 + aten.is_contiguous.memory_format(
        x, torch.contiguous_format), 3),
    "is_non_overlapping_and_dense.default": fact(
        lambda x: 2 + aten.is_non_overlapping_and_dense.default(x), 2),
    "is_pinned.default": fact(lambda x: 2 + aten.is_pinned.default(x), 2),
    "is_same_size.default": fact(lambda x: 2 + aten.is_same_size.default(x, x.sin()), 3),
    "linear.default": call(aten.linear.default, lambda p, i, w, b: F.linear(p, w, b), "linear",
                           extra=BIAS),
    "linear_backward.default": run(
        linear_backward, whole=linear_backward_of, extra=WEIGHT, layouts=BOTH),
    "masked_select.default": known("masked_select"),
    "matmul.default": call(aten.matmul.default, lambda p, i, w: p @ w, "matmul", "matmul vector",
                           "matmul heads", "matmul inner", extra=((3, 5),)),
    "matmul_backward.default": [
        run(matmul_backward, whole=matmul_backward_of, extra=((3, 5),), layouts=BOTH),
        run(matmul_backward, whole=matmul_backward_each, extra=((4, 3, 5),), layouts=BOTH)],
    "max.default": all_of(aten.max.default),
    "max.dim": ragged(lambda x, d: aten.max.dim(x, d)[0], "max over the ragged dim"),
    "mean.default": all_of(aten.mean.default),
    "mean.dim": ragged(lambda x, d: aten.mean.dim(x, [d]), "mean over the ragged dim"),
    "min.default": all_of(aten.min.default),
    "min.dim": ragged(lambda x, d: aten.min.dim(x, d)[0], "min over the ragged dim"),
    "narrow.default": call(lambda x: aten.narrow.default(x, 2, 1, 2),
                           lambda p, i: p.narrow(1, 1, 2), "view narrow"),
    "native_dropout.default": [run(lambda x: aten.native_dropout.default(x, 0.0, True)[0],
                                   lambda p, i: p * 1), check(facts.dropout)],
    "native_dropout_backward.default": run(_graded(
        lambda g, x: aten.native_dropout_backward.default(g, x.detach() > 0, 2.0))),
    "native_layer_norm.default": call(
        lambda x, w, b: aten.native_layer_norm.default(x, [3], w, b, 1e-5)[0],
        lambda p, i, w, b: F.layer_norm(p, (3,), w, b), "layer_norm", extra=((3,), (3,))),
    "native_layer_norm_backward.default": run(
        layer_norm_backward, whole=layer_norm_backward_of, extra=((3,), (3,)), layouts=BOTH),
    "new_empty.default": check(facts.new_empty),
    "new_ones.default": run(lambda x: x.sin() + aten.new_ones.default(x, x.shape),
                            lambda p, i: p.sin() + 1),
    "new_zeros.default": run(lambda x: x.sin() + aten.new_zeros.default(x, x.shape),
                             lambda p, i: p.sin()),
    "numel.default": fact(aten.numel.default, 30),
    "ones_like.default": like(aten.ones_like.default),
    "permute.default": call(lambda x: aten.permute.default(x, [0, 2, 1]).sin(),
                            lambda p, i: p.T.sin(), "view permute", "view transpose"),
    "prim.layout.default": fact(
        lambda x: 2 + (torch.ops.prim.layout.default(x) is torch.jagged), 3),
    "prod.default": all_of(aten.prod.default),
    "prod.dim_int": ragged(aten.prod.dim_int, "prod over the ragged dim"),
    "rand_like.default": check(facts.random(aten.rand_like.default)),
    "randint_like.default": check(facts.random(lambda x: aten.randint_like.default(x, 5), 5)),
    "randint_like.low_dtype": check(facts.random(
        lambda x: aten.randint_like.low_dtype(x, 2, 7), 7)),
    "randn_like.default": check(facts.random(aten.randn_like.default)),
    "record_stream.default": check(facts.stream),
    "select.int": [call(lambda x: aten.select.int(x, 2, 1), lambda p, i: p[:, 1], "view select",
                        "first of each", "last of each"),
                   run(lambda x: aten.select.int(x, 0, 1).sin(), counts=True,
                       whole=lambda parts: parts[1].sin())],
    "size.default": fact(lambda x: len(aten.size.default(x)), 3),
    "slice.Tensor": call(lambda x: aten.slice.Tensor(x, 2, 1, 3), lambda p, i: p[:, 1:],
                         "view slice", "beginnings", "endings"),
    "softplus_backward.default": run(_graded(
        lambda g, x: aten.softplus_backward.default(g, x, 1.0, 20.0))),
    "softshrink_backward.default": run(_graded(
        lambda g, x: aten.softshrink_backward.default(g, x, 0.5))),
    "split.Tensor": run(lambda x: aten.split.Tensor(x, 2, -1)),
    "split_with_sizes.default": run(lambda x: aten.split_with_sizes.default(x, [1, 2], -1)),
    "squeeze.dim": call(lambda x: aten.squeeze.dim(x.unsqueeze(-1), 3), lambda p, i: p * 1,
                        "view squeeze"),
    "stack.default": call(lambda x: aten.stack.default([x, x.sin()], 3),
                          lambda p, i: torch.stack([p, p.sin()], 2), "view stack"),
    "sum.default": all_of(aten.sum.default),
    "sum.dim_IntList": ragged(lambda x, d: aten.sum.dim_IntList(x, [d]),
                              "sum over the ragged dim"),
    "sym_is_contiguous.default": fact(lambda x: 2 + aten.sym_is_contiguous.default(x), 3),
    "sym_numel.default": fact(aten.sym_numel.default, 30),
    "sym_size.default": fact(lambda x: aten.sym_size.default(x)[2], 3),
    "sym_storage_offset.default": fact(lambda x: 2 + aten.sym_storage_offset.default(x), 2),
    "sym_stride.default": fact(lambda x: aten.sym_stride.default(x)[1], 3),
    "to.dtype": run(lambda x: aten.to.dtype(x, torch.complex128),
                    lambda p, i: p.to(torch.complex128)),
    "to_padded_tensor.default": call(
        lambda x: aten.to_padded_tensor.default(x, 0.5),
        lambda p, i: F.pad(p, (0, 0, 0, 4 - len(p)), value=0.5), "padded"),
    "transpose.int": call(lambda x: aten.transpose.int(x, 1, 2), lambda p, i: p.T,
                          "view transpose"),
    "unbind.int": [run(lambda x: [p.sin() for p in aten.unbind.int(x)], counts=True,
                       whole=lambda parts: [p.sin() for p in parts]),
                   run(lambda x: aten.unbind.int(x, -1))],
    "unsqueeze.default": call(lambda x: aten.unsqueeze.default(x, 1), lambda p, i: p[None],
                              "view unsqueeze"),
    "value_selecting_reduction_backward.default": run(
        selected_backward, selected_backward_of, layouts=BOTH),
    "values.default": run(lambda x: aten.values.default(x).sin(),
                          whole=lambda parts: _joined(parts).sin()),
    "view.default": call(lambda x: aten.view.default(x, [4, -1, 3, 1]),
                         lambda p, i: p.unsqueeze(-1), "view with the ragged size", "view with -1"),
    "where.self": call(lambda x: aten.where.self(x > 0, x, -2 * x),
                       lambda p, i: torch.where(p > 0, p, -2 * p), "where"),
    "zero_.default": written(aten.zero_.default),
    "zeros_like.default": like(aten.zeros_like.default),
}
