"""Quantised tensors, operators on them and quantised layers against PyTorch's own results.

Each case is an expression in which `torch` is this package.  `tests/data/quantized.json` holds what
PyTorch gives for it: integers and parameters, or numbers, or the type of the exception.  To record
it anew, run this file as a script where PyTorch is installed.
"""

import functools
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

DATA = Path(__file__).parents[1] / "data" / "quantized.json"
sys.path.insert(0, str(Path(__file__).parents[1] / "helpers" / "quantized"))
from models import MODELS, draw, pickled  # noqa: E402  (there is no package where PyTorch is)


def names(torch):
    """What the cases may say."""
    def r(seed, *shape, scale=1.0):
        return draw(torch, seed, *shape, scale=scale)

    def q(seed, *shape, s=0.05, z=10, dtype=torch.quint8):
        return torch.quantize_per_tensor(r(seed, *shape), s, z, dtype)

    def c(seed, *shape, axis=0, dtype=torch.qint8, zeros=True):
        n = shape[axis]
        scales = torch.arange(1, n + 1) * 0.013
        points = torch.zeros(n).long() if zeros else torch.arange(n)
        return torch.quantize_per_channel(r(seed, *shape), scales, points, axis, dtype)

    return {"torch": torch, "r": r, "q": q, "c": c, "F": torch.nn.functional, "nan": float("nan"),
            "inf": float("inf"), "t": torch.tensor, "Q": torch.ops.quantized}


def tensors():
    for dtype in ("qint8", "quint8", "qint32"):
        yield f"torch.quantize_per_tensor(r(0, 3, 40, scale=9), 0.1, 3, torch.{dtype})"
        yield f"torch.quantize_per_tensor(r(0, 3, 40), 1 / 3, 5, torch.{dtype})"
        yield f"torch.quantize_per_tensor(torch.arange(-9, 9) * 0.5 + 0.25, 0.5, 3, torch.{dtype})"
        yield f"torch.quantize_per_tensor(t([nan, inf, -inf, 1e30]), 0.1, 3, torch.{dtype})"
        yield f"c(1, 4, 5, dtype=torch.{dtype}, zeros=False)"
        yield f"c(1, 4, 5, axis=1, dtype=torch.{dtype}, zeros=False)"
        yield f"repr(q(1, 2, 3, dtype=torch.{dtype}))"
        yield f"repr(c(1, 2, 3, dtype=torch.{dtype}))"
        yield f"q(1, 3, 4, dtype=torch.{dtype}).dequantize()"
        yield f"c(1, 3, 4, dtype=torch.{dtype}).dequantize()"
        yield f"q(1, 3, 4, dtype=torch.{dtype}).type()"
        yield f"[torch.{dtype}.itemsize, q(1, 2, dtype=torch.{dtype}).element_size()]"
    yield "torch.quantize_per_tensor(r(0, 5), t(0.1), t(3), torch.quint8)"
    yield ("torch.quantize_per_tensor([r(0, 5), r(1, 2)], t([0.1, 0.2]), t([3, 4]), torch.quint8)")
    yield "torch.quantize_per_channel(r(0, 3, 4), t([.1, .2, .3]), t([.5, 1, 2]), 0, torch.quint8)"
    for dtype in ("qint8", "quint8"):
        for reduced in (False, True):
            for numbers in ("r(0, 30)", "r(0, 30).abs()", "-r(0, 30).abs()", "torch.zeros(3)",
                            "r(0, 9) * 1e-6", "r(0, 9).abs() * 1e-6", "r(0, 9) * 1e4"):
                yield (f"torch.quantize_per_tensor_dynamic({numbers}, torch.{dtype}, {reduced})")
    yield "torch._make_per_tensor_quantized_tensor(t([1, 2], dtype=torch.int8), 0.5, 1)"
    yield ("torch._make_per_channel_quantized_tensor(t([[1, 2]], dtype=torch.uint8), "
           "t([0.5, 0.25]), t([1, 2]), 1)")
    yield "torch._empty_affine_quantized([2, 3], scale=0.5, zero_point=2, dtype=torch.quint8).shape"
    yield "c(1, 2, 3).q_per_channel_scales()"
    yield "c(1, 2, 3).q_per_channel_zero_points()"
    yield "[c(1, 2, 3).q_per_channel_axis(), str(c(1, 2, 3).qscheme()), str(q(1, 2).qscheme())]"
    yield "[q(1, 2).q_scale(), q(1, 2).q_zero_point(), q(1, 2).is_quantized, q(1, 2).is_leaf]"
    yield from ("torch.rand(2).q_scale()", "torch.rand(2).int_repr()", "c(1, 2, 3).q_scale()",
                "torch.quantize_per_tensor(r(0, 3), 0.1, 300, torch.quint8)",
                "torch.quantize_per_tensor(r(0, 3).double(), 0.1, 3, torch.quint8)",
                "torch.quantize_per_tensor(r(0, 3), 0.1, 3, torch.int8)", "q(1, 3).sum()",
                "q(1, 2, 2) @ q(1, 2, 2)", "torch.zeros(2, dtype=torch.quint8)",
                "q(1, 3).requires_grad_()", "q(1, 3).to(torch.int8)", "q(1, 3).is_signed()",
                "torch.dequantize([q(1, 3), q(2, 3)])", "r(1, 3).dequantize()",
                "torch.q_scale(q(1, 3))", "torch.int_repr(q(1, 3))")


def operators():
    for op in ("x.t()", "x.view(4, 3)", "x.reshape(-1)", "x[1]", "x[:, ::2]", "x[[1, 0]]",
               "x.clone()", "x.flip(0)", "x.transpose(0, 1).contiguous()", "x.unsqueeze(1)",
               "x.index_select(1, t([2, 0]))", "x.relu()", "F.relu(x)", "x.sigmoid()", "x.tanh()",
               "F.hardsigmoid(x)", "F.hardtanh(x, -0.5, 0.5)", "F.gelu(x)", "F.leaky_relu(x, 0.1)",
               "x.clamp(-0.5, 0.5)", "F.threshold(x, 0.5, 0.25)", "F.relu6(x)", "x.mean(1)",
               "x.max()", "x.min()", "x.sort(1)", "x.topk(2)", "x == x", "x > 0.3",
               "x != x.flip(0)", "x.max(1)", "x.view(1, 3, 4).unfold(2, 2, 1)",
               "F.pad(x[None], (1, 1))",
               "F.max_pool1d(x[None], 2)", "x.std(1)", "torch.cat([x, x], 1)", "torch.equal(x, x)",
               "x.view(1, 1, 3, 4).reshape(1, 3, 2, 2)", "x.masked_fill_(t([True] * 4), 0.5)",
               "x.fill_(0.7)", "torch.prelu(x, q(2, 1))", "x.stride()", "x.relu_()"):
        # PyTorch's functions with 32-bit integers between 0 and 1 overflow
        whole = "sort" not in op and "sigmoid" not in op and "tanh" not in op
        for dtype in ("quint8", "qint8", "qint32") if whole else ("quint8", "qint8"):
            yield f"(lambda x: {op})(q(3, 3, 4, dtype=torch.{dtype}))"
    for op in ("F.max_pool2d(x, 2)", "F.max_pool2d(x, 3, 2, 1)", "F.avg_pool2d(x, 2)",
               "F.avg_pool2d(x, 3, 2, 1)", "F.adaptive_avg_pool2d(x, 1)",
               "F.adaptive_avg_pool2d(x, (3, 2))", "F.interpolate(x, scale_factor=2)",
               "F.interpolate(x, (5, 7), mode='bilinear')", "F.channel_shuffle(x, 2)",
               "F.pad(x, (1, 1, 1, 1), mode='reflect')",
               "F.grid_sample(x, r(9, 2, 3, 3, 2) * 0.3)"):
        yield f"(lambda x: {op})(q(3, 2, 4, 6, 6))"
    for op in ("x.t()", "x[:, :2]", "x.index_select(0, t([2, 0]))", "x.clone()", "x.unsqueeze(0)",
               "torch.equal(x, x)", "x.view(3, 4, 1)"):
        yield f"(lambda x: {op})(c(3, 3, 4))"
    yield "q(1, 2, 3).copy_(r(2, 2, 3))"
    yield "q(1, 2, 3).copy_(q(2, 2, 3, s=0.1))"


def arithmetic():
    for op in ("add", "mul", "add_relu", "mul_relu"):
        yield f"Q.{op}(q(1, 3, 4), q(2, 3, 4, s=0.04, z=100), 0.07, 50)"
        yield f"Q.{op}(q(1, 3, 4), q(2, 4, s=0.04, z=100), 0.07, 50)"
        yield (f"Q.{op}(q(1, 3, 4, dtype=torch.qint8), q(2, 3, 4, dtype=torch.qint8), 0.07, -5)")
    for number in ("0.3", "-0.3", "9.0", "-9.0", "0.0", "2"):
        for op in ("add_scalar", "mul_scalar", "add_scalar_relu", "mul_scalar_relu"):
            yield f"Q.{op}(q(1, 3, 4), {number})"
    yield "Q.cat([q(1, 2, 3), q(2, 2, 3, s=0.1)], 0, 0.08, 4)"
    yield "Q.cat([q(1, 2, 3), q(2, 2, 3, s=0.1)], 1, None, None)"
    yield "Q.cat_relu([q(1, 2, 3), q(2, 2, 3, s=0.1)], 0, 0.08, 4)"
    yield "Q.clamp(q(1, 3, 4), -0.5, 0.5)"
    yield "Q.relu6(q(1, 3, 4, s=0.2))"
    for op in ("sigmoid", "hardswish"):
        yield f"Q.{op}(q(1, 3, 4), 0.02, 5)"
    yield "Q.elu(q(1, 3, 4), 0.03, 30, 1.5, 1, 1)"
    yield "Q.celu(q(1, 3, 4), 0.03, 30, 1.5)"
    yield "Q.leaky_relu(q(1, 3, 4), 0.2, False, 0.03, 30)"
    yield "Q.softmax(q(1, 3, 4), 1, 1 / 256, 0)"
    yield "Q.threshold(q(1, 3, 4), 0.5, 0.25)"
    yield "Q.prelu(q(1, 3, 4), q(2, 1), 0.03, 30)"
    yield "Q.layer_norm(q(1, 3, 4), [4], r(2, 4), r(3, 4), 1e-5, 0.03, 60)"
    yield "Q.layer_norm(q(1, 3, 4), [4], None, None, 1e-5, 0.03, 60)"
    yield "Q.group_norm(q(1, 2, 4, 3, 3), 2, r(2, 4), r(3, 4), 1e-5, 0.03, 60)"
    yield "Q.instance_norm(q(1, 2, 4, 3, 3), r(2, 4), r(3, 4), 1e-5, 0.03, 60)"
    for name in ("batch_norm2d", "batch_norm2d_relu"):
        yield (f"Q.{name}(q(1, 2, 4, 3, 3), r(2, 4), r(3, 4), r(4, 4), r(5, 4).abs(), 1e-5, 0.05, "
               "60)")
    yield ("torch.quantized_batch_norm(q(1, 2, 4, 3, 3), r(2, 4), r(3, 4), r(4, 4), r(5, 4).abs(), "
           "1e-5, 0.05, 60)")
    yield "torch.quantized_max_pool2d(q(1, 1, 2, 4, 4), [2, 2])"
    yield "torch.quantized_max_pool1d(q(1, 1, 2, 4), 2)"
    yield "torch._choose_qparams_per_tensor(r(1, 9), True)"
    yield "Q.matmul(q(1, 3, 4), q(2, 4, 5), 0.1, 30)"
    yield "Q.max_pool2d(q(1, 1, 2, 4, 4), [2, 2], [2, 2], [0, 0], [1, 1], False)"
    for weight in ("torch.quantize_per_tensor(r(5, 8, 40), 0.02, 0, torch.qint8)", "c(5, 8, 40)",
                   "torch.quantize_per_tensor(r(5, 8, 40), 0.02, 4, torch.qint8)"):
        for bias in ("r(6, 8)", "None"):
            pack = f"Q.linear_prepack({weight}, {bias})"
            for name in ("linear", "linear_relu"):
                yield f"Q.{name}(q(1, 30, 40), {pack}, 0.2, 60)"
            yield f"Q.linear_dynamic(r(1, 30, 40), {pack})"
            yield f"Q.linear_dynamic(r(1, 30, 40), {pack}, True)"
            yield f"Q.linear_relu_dynamic(r(1, 30, 40), {pack}, True)"
    for n, size, more in ((1, "9", ""), (2, "6, 7", ""), (3, "4, 5, 3", ""), (2, "6, 7", "groups")):
        k = ", ".join(["3"] * n)
        ins = "2" if more else "4"
        for weight in (f"c(5, 6, {ins}, {k})",
                       f"torch.quantize_per_tensor(r(5, 6, {ins}, {k}), 0.02, 0, torch.qint8)"):
            for pad, stride in ((0, 1), (1, 2)):
                pack = (f"Q.conv{n}d_prepack({weight}, r(6, 6), {[stride] * n}, {[pad] * n}, "
                        f"{[1] * n}, {2 if more else 1})")
                for name in ("", "_relu"):
                    yield f"Q.conv{n}d{name}(q(1, 2, 4, {size}), {pack}, 0.2, 60)"
    for n, size in ((1, "5"), (2, "4, 3")):
        k = ", ".join(["3"] * n)
        weight = f"torch.quantize_per_tensor(r(5, 4, 3, {k}), 0.02, 0, torch.qint8)"
        pack = (f"Q.conv_transpose{n}d_prepack({weight}, r(6, 3), {[2] * n}, {[1] * n}, {[1] * n}, "
                f"{[1] * n}, 1)")
        yield f"Q.conv_transpose{n}d(q(1, 2, 4, {size}), {pack}, 0.2, 60)"


def seldom():
    """Functions that few programs use."""
    for op in ("add", "mul"):
        yield f"Q.{op}(q(1, 3, 4), 0.3)"
        yield f"Q.{op}(-0.7, q(1, 3, 4))"
        yield f"Q.{op}_relu(q(1, 3, 4), -0.3)"
        yield f"Q.{op}_scalar.Tensor(q(1, 3, 4), t(0.5))"
        yield f"Q.{op}_out(q(1, 3, 4), q(2, 3, 4), q(3, 3, 4, s=0.1))"
        yield f"Q.{op}_scalar_out(q(1, 3, 4), 0.3, q(3, 3, 4, s=0.1))"
        yield f"Q.{op}(q(1, 3, 4), q(2, 3, 4, dtype=torch.qint8), 0.1, 3)"
    pack = "Q.linear_prepack(c(5, 8, 40), r(6, 8))"
    for relu in ("", "_relu"):
        name = f"linear_with_input_q_dq_qweight_dq{relu}_output_fp32"
        yield f"Q.{name}(r(1, 3, 40), 0.1, 20, {pack}).mul(1e3).round()"
    yield ("Q.linear_dynamic_fp16_unpacked_weight(r(1, 3, 40), r(5, 8, 40), r(6, 8))"
           ".mul(1e3).round()")
    yield ("Q.conv2d_unpack_sizes(Q.conv2d_prepack(c(5, 6, 4, 3, 2), r(6, 6), [1, 2], [0, 1], "
           "[1, 1], 1))")
    yield "Q.linear_unpack_fp16(Q.linear_prepack_fp16(r(5, 5, 4), r(6, 5)))"
    for name in ("byte", "4bit", "2bit"):
        low_high = "torch.stack([r(0, 3, 8).amin(1) - 0.1, r(0, 3, 8).amax(1) + 0.2], 1)"
        yield f"Q.embedding_bag_{name}_prepack_with_rowwise_min_max(r(0, 3, 8), {low_high})"
    for name in ("4bit", "2bit"):
        yield f"Q.embedding_bag_{name}_prepack(r(0, 3, 8), True)"
    for bits in (2, 4, 8):
        for n in (5, 16, 64):
            yield f"torch.choose_qparams_optimized(r({n}, {n}), {n}, 200, 0.16, {bits})"
    yield "torch.fbgemm_linear_quantize_weight(r(5, 6, 4))"
    weight = "torch.fbgemm_linear_quantize_weight(r({}, {}, {}))"
    yield (f"(lambda w: torch.fbgemm_linear_int8_weight(r(1, 3, 4), w[0], "
           "torch.fbgemm_pack_quantized_matrix(w[0]), *w[1:], r(6, 6)).mul(1e3).round())"
           f"({weight.format(5, 6, 4)})")
    yield ("torch.fbgemm_linear_fp16_weight_fp32_activation(r(1, 3, 4), "
           "torch.fbgemm_pack_gemm_matrix_fp16(r(5, 6, 4)), r(6, 6)).mul(1e3).round()")
    for name, rows, state in (("lstm", 8, "[r(7, 3, 2), r(8, 3, 2)]"), ("gru", 6, "r(7, 3, 2)"),
                              ("rnn_tanh", 2, "r(7, 3, 2)"), ("rnn_relu", 2, "r(7, 3, 2)")):
        yield (f"(lambda a, b: [o.mul(1e3).round() for o in torch.quantized_{name}_cell("
               f"r(1, 3, 4), {state}, a[0], b[0], r(9, {rows}), r(10, {rows}), "
               "torch.fbgemm_pack_quantized_matrix(a[0]), "
               "torch.fbgemm_pack_quantized_matrix(b[0]), a[1], b[1], a[2], b[2], a[3], b[3])])"
               f"({weight.format(5, rows, 4)}, {weight.format(6, rows, 2)})")
    for dtype in ("quint8", "qint8"):
        for op in ("F.avg_pool2d(x, 3, 2, 1, False, False)", "F.avg_pool2d(x, 2)",
                   "F.adaptive_avg_pool2d(x, (5, 4))",
                   "F.interpolate(x, (9, 17), mode='bilinear', align_corners=True)"):
            yield f"(lambda x: {op})(q(3, 3, 8, 13, 11, dtype=torch.{dtype}))"
        yield f"F.avg_pool3d(q(3, 2, 6, 7, 6, 5, dtype=torch.{dtype}), 2)"
    yield from ("q(1, 3, 4).resize_(2, 3)", "q(1, 3, 4).fill_(t(0.7))",
                "torch.empty_like(c(1, 3, 4)).q_per_channel_scales()",
                "F.embedding(t([2, 0]), q(1, 3, 4))", "Q.linear(q(1, 3, 5), " + pack + ", 0.1, 3)")


CASES = [*tensors(), *operators(), *arithmetic(), *seldom()]


def shown(torch, value):
    """A value as JSON knows it."""
    if isinstance(value, torch.Tensor):
        kind = str(value.dtype).removeprefix("torch.")
        if not value.is_quantized:
            return {"dtype": kind, "shape": list(value.shape), "values": _listed(value)}
        out = {"dtype": kind, "shape": list(value.shape), "values": _listed(value.int_repr())}
        if "channel" in str(value.qscheme()):
            return out | {"scale": _listed(value.q_per_channel_scales()),
                          "zero": _listed(value.q_per_channel_zero_points()),
                          "axis": value.q_per_channel_axis()}
        return out | {"scale": value.q_scale(), "zero": value.q_zero_point()}
    if isinstance(value, (list, tuple)):
        return [shown(torch, v) for v in value]
    return value


def _listed(value):
    return [repr(v) for v in value.detach().reshape(-1).tolist()]


def result(torch, case):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return shown(torch, eval(case, names(torch)))
    except Exception as error:
        return {"raises": True} if not isinstance(error, SyntaxError) else {"broken": str(error)}


@functools.cache
def recorded():
    return json.loads(DATA.read_text())


# Where more is given than PyTorch does: operators that it refuses for want of a kernel.
GIVEN = ("qint32", ".unfold(", "x.reshape", "F.pad(", "c(3, 3, 4)", "masked_fill_", "prelu",
         "max(1)", "gelu", "x.std(1)", "grid_sample", "reflect", "channel_shuffle", "equal(x, x)",
         "x.t()", "Q.")


def _near(ours, theirs, units=1, least=0.0):
    """Are results the same, but for units of the last place of numbers?"""
    if isinstance(theirs, dict) and "values" in theirs:
        same = {k: ours.get(k) for k in theirs if k != "values"} == {
            k: v for k, v in theirs.items() if k != "values"}
        if ours["values"] == theirs["values"]:
            return same
        a, b = (np.array([float(v) for v in x["values"]]) for x in (ours, theirs))
        return same and a.shape == b.shape and theirs["dtype"] == "float32" and bool(
            (np.abs(a - b) <= units * np.spacing(np.abs(b).astype(np.float32)) + least).all())
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(
            _near(a, b, units, least) for a, b in zip(ours, theirs))
    return ours == theirs


@pytest.mark.parametrize("case", CASES)
def test_recorded(case):
    import pullback as torch

    theirs = recorded()[case]
    ours = result(torch, case)
    if theirs == {"raises": True}:
        if ours != theirs:
            assert any(mark in case for mark in GIVEN), ours
        return
    assert _near(json.loads(json.dumps(ours)), theirs), (ours, theirs)


def modelled(torch, model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return shown(torch, model(torch))


# Sums in another order, and functions of the C library; elsewhere nothing but the last place.
# Scales that differ in the last place may move results of a network by one step of the last scale.
TOLERANCES = {"recurrent": (1, 2e-7), "cells": (1, 2e-7), "embeddings": (1, 2e-7),
              "layers": (1, 2e-6), "static": (1, 0.05), "trained": (1, 0.05), "fake": (1, 2e-7),
              "written_out": (1, 0.05)}


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
def test_models(model):
    import pullback as torch

    theirs = recorded()[f"model {model.__name__}"]
    ours = json.loads(json.dumps(modelled(torch, model)))
    assert len(ours) == len(theirs)
    for k, (a, b) in enumerate(zip(ours, theirs)):
        assert _near(a, b, *TOLERANCES.get(model.__name__, ())), (k, a, b)


if __name__ == "__main__":
    import torch

    found = {c: result(torch, c) for c in CASES}
    found |= {f"model {m.__name__}": modelled(torch, m) for m in MODELS}
    if sys.argv[1:] == ["--new"]:  # what is recorded already stays
        found |= recorded()
    DATA.write_text(json.dumps(found, indent=0) + "\n")
    torch.save(pickled(torch), DATA.with_name("quantized_models.pt"))
