"""Makers of quantised tensors, questions to them and functions of them, under the names of PyTorch's
operators.

`quantized/` does the work; an entry is what `torch.ops.aten` calls.  They are looked at in
`tests/quantized/`, as samples of the table are no quantised tensors.  Rounding to a grid without
such tensors is in `quantize.py`.
"""

from __future__ import annotations

from .aten_only import aten

OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
MEMORY = "MemoryFormat? memory_format=contiguous_format"
WINDOWS = "int[{0}] stride=[], int[{0}] padding=0, int[{0}] dilation=1, bool ceil_mode=False"


def _function(schema: str, text: str, file: str) -> None:
    """The entry of a function of the same name in a file of `quantized/`."""
    name = schema[: schema.index("(")].partition(".")[0]

    def compose(*args):
        from ..quantized import construct, fbgemm, functions

        files = {"construct": construct, "functions": functions, "fbgemm": fbgemm}
        return getattr(files[file], name)(*args)

    aten(schema, text, None, of_parts=True)(compose)


def _method(schema: str, text: str) -> None:
    """The entry of a method of quantised tensors."""
    name = schema[: schema.index("(")]
    aten(schema, text, None, of_parts=True)(lambda self: getattr(self, name)())


_function("quantize_per_tensor(Tensor self, float scale, int zero_point, ScalarType dtype) -> "
          "Tensor", "Numbers as integers, with one scale.", "construct")
_function("quantize_per_tensor.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, "
          "ScalarType dtype) -> Tensor", "Numbers as integers, with a scale in a tensor.",
          "construct")
_function("quantize_per_tensor.tensors(Tensor[] tensors, Tensor scales, Tensor zero_points, "
          "ScalarType dtype) -> Tensor[]", "Several tensors, each with its scale.", "construct")
_function("quantize_per_tensor_dynamic(Tensor self, ScalarType dtype, bool reduce_range) -> Tensor",
          "Numbers as integers, with a scale that just reaches from the lowest to the highest.",
          "construct")
_function("quantize_per_channel(Tensor self, Tensor scales, Tensor zero_points, int axis, "
          "ScalarType dtype) -> Tensor", "Numbers as integers, with a scale for every channel.",
          "construct")
_function("_make_per_tensor_quantized_tensor(Tensor self, float scale, int zero_point) -> Tensor",
          "A quantised tensor of integers.", "construct")
_function("_make_per_channel_quantized_tensor(Tensor self, Tensor scale, Tensor zero_point, "
          "int axis) -> Tensor", "A quantised tensor of integers, with a scale for every channel.",
          "construct")
_function("dequantize.tensors(Tensor[] tensors) -> Tensor[]",
          "The numbers of quantised tensors.", "construct")
_method("int_repr(Tensor self) -> Tensor", "The integers of a quantised tensor.")
_method("q_scale(Tensor self) -> float", "The scale of a quantised tensor.")
_method("q_zero_point(Tensor self) -> int", "The integer that stands for zero.")
_method("q_per_channel_scales(Tensor self) -> Tensor", "The scale of every channel.")
_method("q_per_channel_zero_points(Tensor self) -> Tensor",
        "The integer that stands for zero in every channel.")
_method("q_per_channel_axis(Tensor self) -> int", "The dim of the channels.")
_method("qscheme(Tensor self) -> QScheme", "How a tensor is scaled.")


@aten("dequantize.self(Tensor self) -> Tensor", "The numbers of a quantised tensor.", None,
      of_parts=True)
def dequantize(self):
    return self.dequantize()


@aten(f"_empty_affine_quantized(SymInt[] size, *, {OPTIONS}, float scale=1.0, int zero_point=0, "
      f"{MEMORY}) -> Tensor", "A quantised tensor of a shape, for others to write to.", None,
      of_parts=True)
def _empty_affine_quantized(size, dtype, layout, device, pin_memory, scale, zero_point,
                            memory_format):
    from ..quantized.construct import _empty_affine_quantized as make

    return make(size, scale=scale, zero_point=zero_point, dtype=dtype, device=device)


@aten("_empty_per_channel_affine_quantized(SymInt[] size, *, Tensor scales, Tensor zero_points, "
      f"int axis, {OPTIONS}, {MEMORY}) -> Tensor",
      "A quantised tensor of a shape with a scale for every channel, for others to write to.", None,
      of_parts=True)
def _empty_per_channel_affine_quantized(size, scales, zero_points, axis, dtype, layout, device,
                                        pin_memory, memory_format):
    from ..quantized.construct import _empty_per_channel_affine_quantized as make

    return make(size, scales=scales, zero_points=zero_points, axis=axis, dtype=dtype, device=device)


@aten(f"empty_quantized(int[] size, Tensor qtensor, *, {OPTIONS}, "
      "MemoryFormat? memory_format=None) -> Tensor",
      "A quantised tensor of a shape with the parameters of another, for others to write to.", None,
      of_parts=True)
def empty_quantized(size, qtensor, dtype, layout, device, pin_memory, memory_format):
    from ..quantized.construct import empty_quantized as make

    return make(size, qtensor, dtype=dtype)


# ---------------------------------------------------------------------------------------------
# Functions

_function("quantized_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor mean, "
          "Tensor var, float eps, float output_scale, int output_zero_point) -> Tensor",
          "Channels moved and scaled by what was learnt.", "functions")
for _dims in (1, 2, 3):
    _function(f"quantized_max_pool{_dims}d(Tensor self, int[{_dims}] kernel_size, "
              f"{WINDOWS.format(_dims)}) -> Tensor", "The largest number of every window.",
              "functions")
_function("_choose_qparams_per_tensor(Tensor self, bool reduce_range=False) -> (float, int)",
          "The scale and zero point that just reach from the lowest to the highest number.",
          "functions")
_function("choose_qparams_optimized(Tensor input, int numel, int n_bins, float ratio, "
          "int bit_width) -> (Tensor, Tensor)",
          "The ends of the range in which few bits lose least.", "fbgemm")
_function("fbgemm_linear_quantize_weight(Tensor input) -> (Tensor, Tensor, float, int)",
          "A matrix in 8 bits, the sums of its rows, scale and zero point.", "fbgemm")
_function("fbgemm_pack_quantized_matrix(Tensor input) -> Tensor", "A matrix in 8 bits.", "fbgemm")
_function("fbgemm_pack_quantized_matrix.KN(Tensor input, int K, int N) -> Tensor",
          "A matrix in 8 bits.", "fbgemm")
_function("fbgemm_pack_gemm_matrix_fp16(Tensor input) -> Tensor", "A matrix in half precision.",
          "fbgemm")
for _ending, _bias in (("", "Tensor"), ("_fp32_activation", "Tensor?")):
    _function("fbgemm_linear_int8_weight" + _ending + "(Tensor input, Tensor weight, Tensor packed, "
              "Tensor col_offsets, Scalar weight_scale, Scalar weight_zero_point, Tensor bias) -> "
              "Tensor", "A linear layer with a weight in 8 bits.", "fbgemm")
    _function(f"fbgemm_linear_fp16_weight{_ending}(Tensor input, Tensor packed_weight, "
              f"{_bias} bias) -> Tensor", "A linear layer with a weight in half precision.",
              "fbgemm")
for _kind, _state, _result in (("lstm", "Tensor[]", "(Tensor, Tensor)"), ("gru", "Tensor", "Tensor"),
                               ("rnn_relu", "Tensor", "Tensor"), ("rnn_tanh", "Tensor", "Tensor")):
    _function(f"quantized_{_kind}_cell(Tensor input, {_state} hx, Tensor w_ih, Tensor w_hh, "
              "Tensor b_ih, Tensor b_hh, Tensor packed_ih, Tensor packed_hh, "
              "Tensor col_offsets_ih, Tensor col_offsets_hh, Scalar scale_ih, Scalar scale_hh, "
              f"Scalar zero_point_ih, Scalar zero_point_hh) -> {_result}",
              "A recurrent cell with weights in 8 bits.", "fbgemm")
