"""Small questions about schemes, ranges and modules."""

from __future__ import annotations

from typing import Any

from ...core.handle import Tensor
from ...nn import Module
from .observer import integers_of, is_per_channel, is_per_tensor


def get_combined_dict(default_dict: dict, additional_dict: dict) -> dict:
    """Two dictionaries as one; the second decides."""
    return default_dict | additional_dict


def calculate_qmin_qmax(quant_min: Any, quant_max: Any, has_customized_qrange: bool, dtype: Any,
                        reduce_range: bool) -> tuple[int, int]:
    """The lowest and highest integer: those that are given, or those of a dtype."""
    return (quant_min, quant_max) if has_customized_qrange else integers_of(dtype, reduce_range)


def check_min_max_valid(min_val: Tensor, max_val: Tensor) -> bool:
    """Has an observer seen anything?"""
    from .observer import _seen

    return _seen(min_val, max_val)


def activation_is_statically_quantized(qconfig: Any) -> bool:
    """Are results quantised with a scale that is known before?"""
    made = qconfig.activation()
    return getattr(made.dtype, "name", "") in ("quint8", "qint8", "qint32", "float16") and (
        not getattr(made, "is_dynamic", False))


def weight_dtype(qconfig: Any) -> Any:
    """What a weight becomes."""
    return qconfig.weight().dtype


def weight_is_quantized(qconfig: Any) -> bool:
    """Does a weight become anything else than it is?"""
    return weight_dtype(qconfig).name in ("quint8", "qint8", "float16", "quint4x2", "uint8", "int8")


def has_no_children_ignoring_parametrizations(module: Module) -> bool:
    """Is a module one without others in it?"""
    names = [name for name, _ in module.named_children()]
    return not names or names == ["parametrizations"]


def get_qparam_dict(observer: Any) -> dict:
    """Scheme, dtype and parameters that an observer has found."""
    scale, zero_point = observer.calculate_qparams()
    found = {"qscheme": observer.qscheme, "dtype": observer.dtype, "scale": scale,
             "zero_point": zero_point, "quant_min": observer.quant_min,
             "quant_max": observer.quant_max}
    if hasattr(observer, "ch_axis"):
        found["axis"] = observer.ch_axis
    return found


__all__ = [
    "activation_is_statically_quantized", "calculate_qmin_qmax", "check_min_max_valid",
    "get_combined_dict", "get_qparam_dict", "has_no_children_ignoring_parametrizations",
    "is_per_channel", "is_per_tensor", "weight_dtype", "weight_is_quantized",
]
