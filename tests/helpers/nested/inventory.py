"""The inventory of nested tensors as programs: how each of its rows is run.

A row has the name of cases that `test_parts.py` runs, or a case of its own, or a check
(`programs.py`).  `overloads.py` has the operators that are called by their names in the table.
"""

from __future__ import annotations

from typing import Any

import pullback as torch
import pullback.nn.functional as F
from pullback.nn.attention.flex_attention import create_block_mask, flex_attention

from . import facts
from .cases import LENGTHS, POINTWISE
from .overloads import OVERLOADS
from .programs import Program, check, in_table, known, run

aten = torch.ops.aten
JAGGED, STRIDED, BOTH = ("jagged",), ("strided",), ("jagged", "strided")
OFFSETS = torch.tensor([0, *LENGTHS]).cumsum(0)
THERE = torch.arange(4) < torch.tensor(LENGTHS).unsqueeze(1)  # in padded rows
DIMS = ("over a dense dim", "over the ragged dim", "of transposed")


def everywhere(name: str, *more: str) -> Program:
    """A reduction, or what has one result for each element, over all kinds of dims."""
    return known(*[f"{name} {d}" for d in DIMS], *more)


def tables(x: Any) -> tuple:
    return x._nested_tensor_size(), x._nested_tensor_strides(), x._nested_tensor_storage_offsets()


def heads(x: Any) -> Any:
    """(batch, heads, length, width), padded, from (batch, length, heads * width)."""
    padded = x.sin().to_padded_tensor(0.0)
    return padded.unflatten(-1, (2, 2)).transpose(1, 2)


def documents(x: Any) -> Any:
    """Attention among the elements of each part, by a mask over all elements."""
    values = x.values().unsqueeze(0)
    total = values.shape[2]
    part = torch.searchsorted(x.offsets(), torch.arange(total), right=True)
    mask = create_block_mask(lambda b, h, q, k: part[q] == part[k], None, None, total, total)
    out = flex_attention(values, values.sin(), values.cos(), block_mask=mask)
    return torch.nested.nested_tensor_from_jagged(out.squeeze(0), x.offsets(), jagged_dim=2)


def views(x: Any, w: Any) -> Any:
    """A nested tensor of views of one matrix, beside another."""
    parts = [w[:2], w.T[:4], w[3:, :].flip(0), w[1:4]]
    made = torch.nested.as_nested_tensor(parts, layout=x.layout)
    return made * x if x.layout is torch.strided else (
        torch.nested.nested_tensor_from_jagged(made.values(), x.offsets()) * x)


def some_of(function: Any) -> Any:
    """One of several results: the others have no gradient."""
    return lambda x: function(x)[1].sin()


TABLE = {
    "_nested_from_padded": [
        run(lambda x: aten._nested_from_padded.default(x.sin().to_padded_tensor(0.0),
                                                       torch.tensor([[n, 3] for n in LENGTHS])),
            lambda p, i: p.sin(), layouts=BOTH),
        run(lambda x: aten._nested_from_padded.default(
            heads(x), torch.tensor([[n, 4] for n in LENGTHS]), True), lambda p, i: p.sin(),
            shape=(-1, 4), layouts=BOTH)],
    "_nested_from_padded_tensor": OVERLOADS["_nested_from_padded_tensor.default"],
    "_nested_get_values": OVERLOADS["_nested_get_values.default"],
    "_nested_get_values_copy": run(lambda x: aten._nested_get_values_copy.default(x).sin(),
                                   whole=lambda parts: torch.cat(list(parts)).sin()),
    "_nested_tensor_from_mask": run(
        lambda x: aten._nested_tensor_from_mask.default(x.to_padded_tensor(0.0).sin(), THERE),
        lambda p, i: p.sin(), breaks=True, layouts=BOTH),
    "_nested_tensor_from_tensor_list": run(
        lambda x: aten._nested_tensor_from_tensor_list.default([p.sin() for p in x.unbind()]),
        lambda p, i: p.sin(), layouts=STRIDED),
    "_nested_view_from_buffer": run(
        lambda x: aten._nested_view_from_buffer.default(x.values().sin(), *tables(x)),
        lambda p, i: p.sin(), layouts=STRIDED),
    "_nested_view_from_buffer_copy": run(
        lambda x: aten._nested_view_from_buffer_copy.default(x.values().sin(), *tables(x)),
        lambda p, i: p.sin(), layouts=STRIDED),
    "_nested_view_from_jagged": OVERLOADS["_nested_view_from_jagged.default"],
    "_nested_view_from_jagged_copy": run(
        lambda x: aten._nested_view_from_jagged_copy.default(x.values().sin(), x.offsets(), x),
        lambda p, i: p.sin()),
    "to_padded_tensor": known("padded", layouts=BOTH),
}
VARIANTS = {
    "_test_autograd_multiple_dispatch.fullcoverage": check(facts.own_formula, BOTH),
    "_test_autograd_multiple_dispatch.ntonly": check(facts.own_formula_of_composite, BOTH),
    "chunk": run(lambda x: aten.chunk.default(x, 2, -1), layouts=BOTH),
    "mean": run(lambda x: x * aten.mean.default(x), whole=lambda parts: [
        p * torch.cat(list(parts)).mean() for p in parts], layouts=BOTH),
    "select.int": [known("view select", layouts=BOTH),
                   run(lambda x: aten.select.int(x, 0, -2).sin(),
                       whole=lambda parts: parts[-2].sin(), counts=True, layouts=BOTH)],
    "split_with_sizes": run(lambda x: aten.split_with_sizes.default(x, [1, 2], -1), layouts=BOTH),
    "squeeze.dim": run(lambda x: aten.squeeze.dim(x.unsqueeze(-2), -2).sin(), layouts=BOTH),
    "squeeze.dims": run(lambda x: aten.squeeze.dims(x.unsqueeze(-1).unsqueeze(-1), [-1, -2]).sin(),
                        layouts=BOTH),
    "sum": run(lambda x: x * aten.sum.default(x), whole=lambda parts: [
        p * torch.cat(list(parts)).sum() for p in parts], layouts=BOTH),
    "sum.dim_IntList": known("sum over a dense dim", "keepdim over a dense dim", layouts=BOTH),
    "unbind.int": run(lambda x: [p.sin() for p in aten.unbind.int(x)],
                      whole=lambda parts: [p.sin() for p in parts], counts=True, layouts=BOTH),
    "values": run(lambda x: aten.values.default(x).sin().sum(),
                  whole=lambda parts: torch.cat(list(parts)).sin().sum(), layouts=BOTH),
    "view": [known("view with -1", layouts=BOTH), known("view with the ragged size")],
}
FORMULAS = {
    "_nested_from_padded_backward": TABLE["_nested_from_padded"],
    "_nested_split_with_sizes_backward": [
        run(some_of(lambda x: x.split_with_sizes([1, 2], -1)), layouts=BOTH),
        run(some_of(lambda x: x.split_with_sizes([1, 3], 0)), counts=True, layouts=BOTH,
            whole=lambda parts: [p.sin() for p in parts[1:]])],
    "chunk_backward_nested": [
        run(some_of(lambda x: x.chunk(3, -1)), layouts=BOTH),
        run(some_of(lambda x: x.chunk(2)), counts=True, layouts=BOTH,
            whole=lambda parts: [p.sin() for p in parts[2:]])],
    "masked_fill_backward": check(in_table("masked_fill.Tensor")),
    "unbind_backward_nested": run(some_of(lambda x: x.unbind()), layouts=STRIDED,
                                  whole=lambda parts: parts[1].sin()),
    "unbind_backward_nested_jagged": run(some_of(lambda x: x.unbind()), counts=True,
                                         whole=lambda parts: parts[1].sin()),
}
CARE = {
    "_masked_softmax": [check(in_table("_masked_softmax")), run(
        lambda x: aten._masked_softmax.default(
            x.mT.to_padded_tensor(0.0), ~THERE.unsqueeze(1).expand(4, 3, 4), -1, 1),
        lambda p, i: F.pad(p.T.softmax(-1), (0, 4 - len(p))))],
    "masked_fill.Scalar": [check(in_table("masked_fill.Scalar")), known("masked_fill")],
    "masked_fill.Tensor": [check(in_table("masked_fill.Tensor")), run(
        lambda x, v: aten.masked_fill.Tensor(x, x < 0, v.sum()), layouts=BOTH,
        extra=((1,),))],
    "masked_scatter": check(in_table("masked_scatter")),
    "masked_scatter_backward": check(in_table("masked_scatter_backward")),
    "masked_select": [known("masked_select"), *[
        run(lambda x: aten.masked_select.default(x, torch.tensor([True, False, True])),
            lambda p, i: p[:, ::2].flatten(), counts=layout == JAGGED,
            breaks=layout == STRIDED, layouts=layout) for layout in (JAGGED, STRIDED)]],
    "native_layer_norm": run(
        lambda x, w, b: aten.native_layer_norm.default(x, [3], w, b, 1e-5)[0],
        lambda p, i, w, b: F.layer_norm(p, (3,), w, b), extra=((3,), (3,)), layouts=BOTH),
    "native_dropout": [run(lambda x: aten.native_dropout.default(x, 0.0, True)[0],
                           lambda p, i: p * 1, layouts=BOTH), check(facts.dropout)],
    "linear": [known("linear", layouts=BOTH), *[
        run(lambda x, w, kind=kind: aten.linear.default(x, facts.sparse(w, kind)),
            lambda p, i, w: F.linear(p, facts.pattern(w)), extra=((4, 3),), shape=(-1, 3))
        for kind in ("coo", "csr", "csc")]],
}
ROWS = {
    "pointwise operators": known(*POINTWISE, "vector for all", "once for all", "padded operand"),
    "var": everywhere("var", "var over ragged and dense"),
    "std": everywhere("std", "std over ragged and dense"),
    "var_mean": everywhere("var_mean", "var_mean over ragged and dense"),
    "logsumexp": everywhere("logsumexp", "logsumexp over ragged and dense"),
    "cumsum": everywhere("cumsum"),
    "cumprod": everywhere("cumprod"),
    "sort": everywhere("sort"),
    "topk": known("topk"),
    "rms_norm": known("rms_norm"),
    "group_norm over parts": known("group_norm", "group_norm 4d"),
    "scaled_dot_product_attention": known(
        "attention", "causal attention", "attention to dense keys", "attention of dense queries",
        "attention to other lengths", "attention with a bias",
        "causal attention to other lengths", "attention to other lengths with a bias"),
    "flex attention mask": run(documents, lambda p, i: F.scaled_dot_product_attention(
        p, p.sin(), p.cos()), shape=(2, -1, 3)),
    "to_padded_tensor of transposed": run(
        lambda x: x.transpose(1, 2).to_padded_tensor(0.5),
        lambda p, i: F.pad(p.T, (0, 4 - len(p)), value=0.5)),
    "from list of views": run(views, lambda p, i, w: (
        w[:2], w.T[:4], w[3:].flip(0), w[1:4])[i] * p, extra=((4, 4),), shape=(-1, 4),
        layouts=BOTH),
    "softmax over the ragged dim": known("softmax over the ragged dim", "softmax of transposed"),
    "mean over the ragged dim": known("mean over the ragged dim", "mean of transposed"),
    "prod over the ragged dim": known("prod over the ragged dim", "prod of transposed"),
    "n * w with w of shape (batch, 1, 1), backward": run(
        lambda x, w: x * w, lambda p, i, w: p * w[i], extra=((4, 1, 1),)),
    "matmul to a dense result, backward": known("matmul contracted"),
    "binary on equal offsets of different objects": [run(
        lambda x, w: x * torch.nested.nested_tensor_from_jagged(w, OFFSETS),
        lambda p, i, w: p * w.split(list(LENGTHS))[i], extra=((10, 3),), breaks=True),
        check(facts.equal_offsets)],
}
PROGRAMS = TABLE | VARIANTS | FORMULAS | CARE | {
    f"jagged {name}": program for name, program in (OVERLOADS | ROWS).items()}
