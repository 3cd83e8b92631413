"""Which layer stands for which in a quantised model."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ... import nn
from ...nn import functional as F
from ...quantized.namespace import quantized
from ..nn import intrinsic as nni
from ..nn import qat as nnqat
from ..nn import quantized as nnq
from ..nn.intrinsic import qat as nniqat
from ..nn.intrinsic import quantized as nniq
from ..nn.intrinsic.quantized import dynamic as nniqd
from ..nn.qat import dynamic as nnqatd
from ..nn.quantized import dynamic as nnqd
from .fake_quantize import (
    default_fixed_qparams_range_0to1_fake_quant,
    default_fixed_qparams_range_neg1to1_fake_quant,
)
from .stubs import DeQuantStub, QuantStub

_SAME = ("BatchNorm2d", "BatchNorm3d", "Dropout", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d",
         "ConvTranspose2d", "ConvTranspose3d", "ELU", "Embedding", "EmbeddingBag", "GroupNorm",
         "Hardswish", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm",
         "LeakyReLU", "Linear", "ReLU6", "PReLU")
_FUSED = ("BNReLU2d", "BNReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "ConvAdd2d",
          "ConvAddReLU2d", "LinearReLU", "LinearLeakyReLU", "LinearTanh")
_TRAINED = ("ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d", "ConvBnReLU2d", "ConvBnReLU3d",
            "ConvReLU2d", "ConvReLU3d", "LinearReLU", "LinearBn1d")
_PLAIN_LINEAR = nn.linear.NonDynamicallyQuantizableLinear


def _without_norm(name: str) -> Any:
    """What a layer with a norm behind it becomes: the norm goes into the weight."""
    name = name.replace("Bn1d", "1d").replace("BnReLU", "ReLU").replace("Bn", "")
    if name == "Linear1d":
        name = "Linear"
    return getattr(nniq, name, None) or getattr(nnq, name)


DEFAULT_STATIC_QUANT_MODULE_MAPPINGS: dict[Callable, Any] = {
    QuantStub: nnq.Quantize, DeQuantStub: nnq.DeQuantize,
    **{getattr(nn, n): getattr(nnq, n) for n in _SAME},
    _PLAIN_LINEAR: nnq.Linear, nnq.FloatFunctional: nnq.QFunctional,
    **{getattr(nni, n): getattr(nniq, n) for n in _FUSED},
    **{getattr(nniqat, n): _without_norm(n) for n in _TRAINED},
    nnqat.Linear: nnq.Linear, nnqat.Conv1d: nnq.Conv1d, nnqat.Conv2d: nnq.Conv2d,
    nnqat.Conv3d: nnq.Conv3d,
}
DEFAULT_QAT_MODULE_MAPPINGS: dict[Callable, Any] = {
    nn.Conv2d: nnqat.Conv2d, nn.Conv3d: nnqat.Conv3d, nn.Linear: nnqat.Linear,
    _PLAIN_LINEAR: nnqat.Linear,
    **{getattr(nni, n): getattr(nniqat, n) for n in _TRAINED},
}
DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS: dict[Callable, Any] = {
    nn.GRUCell: nnqd.GRUCell, nn.Linear: nnqd.Linear, nnqatd.Linear: nnqd.Linear,
    _PLAIN_LINEAR: nnqd.Linear, nn.LSTM: nnqd.LSTM, nn.GRU: nnqd.GRU, nn.LSTMCell: nnqd.LSTMCell,
    nn.RNNCell: nnqd.RNNCell, nni.LinearReLU: nniqd.LinearReLU, nn.EmbeddingBag: nnq.EmbeddingBag,
    nn.Embedding: nnq.Embedding,
}
DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS: dict[Any, Callable] = {
    F.elu: quantized.elu, F.hardswish: quantized.hardswish,
    F.instance_norm: quantized.instance_norm, F.layer_norm: quantized.layer_norm,
    F.leaky_relu: quantized.leaky_relu, F.dropout: quantized.dropout}
DEFAULT_MODULE_TO_ACT_POST_PROCESS: dict[Callable, Callable] = {
    nn.Hardsigmoid: default_fixed_qparams_range_0to1_fake_quant,
    nn.Sigmoid: default_fixed_qparams_range_0to1_fake_quant,
    nn.Softmax: default_fixed_qparams_range_0to1_fake_quant,
    nn.Tanh: default_fixed_qparams_range_neg1to1_fake_quant,
}


def no_observer_set() -> set:
    """Layers written out in parts: their results are those of the last part, which has one."""
    from ..nn import quantizable

    return {quantizable.LSTM, quantizable.MultiheadAttention}


def get_default_static_quant_module_mappings() -> dict:
    """Layers and those that stand for them after calibration."""
    return copy.copy(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS)


def get_embedding_static_quant_module_mappings() -> dict:
    """The same with embeddings that were trained with rounding."""
    return DEFAULT_STATIC_QUANT_MODULE_MAPPINGS | {
        nnqat.EmbeddingBag: nnq.EmbeddingBag, nnqat.Embedding: nnq.Embedding}


def get_default_qat_module_mappings() -> dict:
    """Layers and those that stand for them in training with rounding."""
    return copy.copy(DEFAULT_QAT_MODULE_MAPPINGS)


def get_embedding_qat_module_mappings() -> dict:
    """The same with embeddings."""
    return DEFAULT_QAT_MODULE_MAPPINGS | {
        nn.EmbeddingBag: nnqat.EmbeddingBag, nn.Embedding: nnqat.Embedding}


def get_default_dynamic_quant_module_mappings() -> dict:
    """Layers and those that stand for them and quantise their input by themselves."""
    return DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS


def _of(mapping: dict, more: dict | None, cls: Any) -> Any:
    found = (mapping | (more or {})).get(cls)
    if found is None:
        raise AssertionError(f"Floating point module class {cls} does not have a corresponding "
                             "quantized module class")
    return found


def get_static_quant_module_class(
    float_module_class: Callable, additional_static_quant_mapping: dict | None = None,
    is_reference: bool = False,
) -> Any:
    """What stands for a class of layers after calibration."""
    return _of(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, additional_static_quant_mapping,
               float_module_class)


def get_dynamic_quant_module_class(
    float_module_class: Callable, additional_dynamic_quant_mapping: dict | None = None,
) -> Any:
    """What stands for a class of layers and quantises its input by itself."""
    return _of(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS, additional_dynamic_quant_mapping,
               float_module_class)


def get_default_qconfig_propagation_list() -> set:
    """Classes of modules that observers are put behind."""
    return {*DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, *DEFAULT_QAT_MODULE_MAPPINGS,
            *DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS, nn.Sequential}


def get_default_compare_output_module_list() -> set:
    """Classes of modules whose results are worth comparing."""
    maps = (DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, DEFAULT_QAT_MODULE_MAPPINGS,
            DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS)
    return {cls for m in maps for pair in m.items() for cls in pair} | {nn.Sequential}


def get_default_float_to_quantized_operator_mappings() -> dict:
    """Functions and those that stand for them."""
    return copy.copy(DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS)


def get_quantized_operator(float_op: Any) -> Callable:
    """What stands for a function."""
    found = DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS.get(float_op)
    if found is None:
        raise AssertionError(f"Operator {float_op} does not have corresponding quantized op")
    return found


def _get_special_act_post_process(module: nn.Module) -> Any:
    return DEFAULT_MODULE_TO_ACT_POST_PROCESS.get(type(module))


def _has_special_act_post_process(module: nn.Module) -> bool:
    return module.training and type(module) in DEFAULT_MODULE_TO_ACT_POST_PROCESS
