"""Functions of older programs at PyTorch's root: linear layers and recurrent cells whose weights in
8 bits or half precision are handed over one by one, and the search for the range of a few bits.

What PyTorch packs for its library is the matrix itself here.  Newer programs have
`ops.quantized.linear_prepack` and what takes its result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import errors
from ..array import dtype as dt
from ..core.handle import Tensor
from ..ops.integer_products import input_parameters
from ..table.packets import ops
from .construct import _make_per_tensor_quantized_tensor
from .named import functions
from .packed import LinearHalfParams, LinearPackedParamsBase
from .products import dynamic_linear, half_linear
from .recurrent import CellParamsBase, gru_step, lstm_step


def fbgemm_linear_quantize_weight(input: Tensor) -> tuple[Tensor, Tensor, float, int]:
    """(a matrix in 8 bits, the sums of its rows from the zero point on, scale, zero point)."""
    plain = input.detach()
    scale, zero = input_parameters(float(plain.min()), float(plain.max()), -128, 127)
    scale = float(np.float32(scale))
    integers = ops._quantized_integers(
        plain, ops.full((), scale, dtype=dt.float64), ops.full((), zero), -1, -128, 127, dt.int8)
    sums = integers.sum(1, dtype=dt.int32) - zero * integers.shape[1]
    return integers, sums, scale, zero


def fbgemm_pack_quantized_matrix(input: Tensor, K: int | None = None,
                                 N: int | None = None) -> Tensor:
    """A matrix in 8 bits for `fbgemm_linear_int8_weight`: a copy."""
    return input.clone()


def fbgemm_linear_int8_weight_fp32_activation(
    input: Tensor, weight: Tensor, packed: Tensor, col_offsets: Tensor, weight_scale: float,
    weight_zero_point: int, bias: Tensor,
) -> Tensor:
    """A linear layer with a weight in 8 bits, which rounds its input by itself."""
    whole = _make_per_tensor_quantized_tensor(weight, float(weight_scale), int(weight_zero_point))
    return dynamic_linear(input, LinearPackedParamsBase(whole, bias))


def fbgemm_linear_int8_weight(input: Tensor, weight: Tensor, packed: Tensor, col_offsets: Tensor,
                              weight_scale: float, weight_zero_point: int, bias: Tensor) -> Tensor:
    """The same under its older name."""
    return fbgemm_linear_int8_weight_fp32_activation(
        input, weight, packed, col_offsets, weight_scale, weight_zero_point, bias)


def fbgemm_pack_gemm_matrix_fp16(input: Tensor) -> Tensor:
    """A matrix in half precision for `fbgemm_linear_fp16_weight`."""
    return LinearHalfParams(input, None).weight()


def fbgemm_linear_fp16_weight_fp32_activation(input: Tensor, packed_weight: Tensor,
                                              bias: Tensor | None) -> Tensor:
    """A linear layer with a weight in half precision; products are in single precision."""
    return half_linear(input, LinearHalfParams(packed_weight, bias))


def fbgemm_linear_fp16_weight(input: Tensor, packed_weight: Tensor, bias: Tensor) -> Tensor:
    """The same under its older name."""
    return fbgemm_linear_fp16_weight_fp32_activation(input, packed_weight, bias)


def _gates(args: tuple) -> tuple[Tensor, Tensor]:
    """What input and state say to the gates of a cell."""
    (x, h, w_ih, w_hh, b_ih, b_hh, packed_ih, packed_hh, sums_ih, sums_hh, scale_ih, scale_hh,
     zero_ih, zero_hh) = args
    layer = fbgemm_linear_int8_weight_fp32_activation
    return (layer(x, w_ih, packed_ih, sums_ih, scale_ih, zero_ih, b_ih),
            layer(h, w_hh, packed_hh, sums_hh, scale_hh, zero_hh, b_hh))


def quantized_lstm_cell(input: Tensor, hx: Any, *weights: Any) -> tuple[Tensor, Tensor]:
    """(the next state, the next cell) of an LSTM with weights in 8 bits."""
    a, b = _gates((input, hx[0], *weights))
    return lstm_step(a + b, hx)


def quantized_gru_cell(input: Tensor, hx: Tensor, *weights: Any) -> Tensor:
    """The next state of a GRU with weights in 8 bits."""
    a, b = _gates((input, hx, *weights))
    return gru_step(a, b, hx)


def quantized_rnn_relu_cell(input: Tensor, hx: Tensor, *weights: Any) -> Tensor:
    """The next state of an RNN with weights in 8 bits and a rectifier."""
    a, b = _gates((input, hx, *weights))
    return (a + b).relu()


def quantized_rnn_tanh_cell(input: Tensor, hx: Tensor, *weights: Any) -> Tensor:
    """The next state of an RNN with weights in 8 bits and a hyperbolic tangent."""
    a, b = _gates((input, hx, *weights))
    return (a + b).tanh()


def _cell_params(w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor) -> CellParamsBase:
    """The weights of one direction of one layer, which are rounded to 8 bits here."""
    if w_ih.dtype is not dt.float32 or w_hh.dtype is not dt.float32:
        raise errors.DTypeError(errors.text(
            "make_quantized_cell_params: expected scalar type Float but found "
            f"{dt.title((w_hh if w_ih.dtype is dt.float32 else w_ih).dtype)} "
            f"({errors.user_line(2)})",
            cure="ops.quantized.make_quantized_cell_params_dynamic takes packed weights"))

    def packed(w: Tensor, b: Tensor) -> LinearPackedParamsBase:
        integers, _, scale, zero = fbgemm_linear_quantize_weight(w)
        return LinearPackedParamsBase(_make_per_tensor_quantized_tensor(integers, scale, zero), b)

    return CellParamsBase(packed(w_ih, b_ih), packed(w_hh, b_hh))


functions["make_quantized_cell_params"] = _cell_params


def best_range(numbers: np.ndarray, n_bins: int, ratio: float, bits: int) -> tuple[float, float]:
    """(lowest, highest) of the range in which few bits lose least.

    The range shrinks step by step at the end where that loses less; the first that is better than
    its two successors and all before it is kept, as long as `1 - ratio` of the range is left.
    """
    most = np.float32((1 << bits) - 1)
    low, high = numbers.min(), numbers.max()
    step = np.float32((high - low) / np.float32(n_bins))
    least = np.float32(n_bins * (1 - np.float32(ratio))) * step

    def loss(a: np.float32, b: np.float32) -> np.float32:
        scale = np.float32((b - a) / most)
        inverse = np.float32(1) / scale if scale else np.float32(1)
        level = np.clip(np.rint((numbers - a) * inverse), 0, most)
        off = numbers - (level * scale + a)
        return np.sqrt(np.sum(off * off, dtype=np.float32))

    kept, kept_loss = (low, high), loss(low, high)
    now, now_loss = kept, kept_loss
    while now[0] + least < now[1]:
        left, right = (now[0] + step, now[1]), (now[0], now[1] - step)
        of_left, of_right = loss(*left), loss(*right)
        if now_loss < of_left and now_loss < of_right and now_loss < kept_loss:
            kept, kept_loss = now, now_loss
        now, now_loss = (left, of_left) if of_left < of_right else (right, of_right)
    return float(kept[0]), float(kept[1])


def choose_qparams_optimized(input: Tensor, numel: int, n_bins: int, ratio: float,
                             bit_width: int) -> tuple[Tensor, Tensor]:
    """(highest, lowest) number of the range in which few bits lose least of a row of numbers."""
    row = np.asarray(input.detach().reshape(-1).numpy(force=True), np.float32)[:numel]
    low, high = best_range(row, n_bins, ratio, bit_width)
    return (ops.full((1,), high, dtype=dt.float32), ops.full((1,), low, dtype=dt.float32))
