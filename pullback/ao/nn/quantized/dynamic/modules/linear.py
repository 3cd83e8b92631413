"""The linear layer that rounds its input by itself: numbers in, numbers out.

Gradients go to the input, through the numbers that the weight stands for, and to the bias.
"""

from __future__ import annotations

from typing import Any

from ...... import nn
from ......array import dtype as dt
from ......core.handle import Tensor
from ......quantized.products import dynamic_linear
from ...modules import linear as quantized
from ...modules.utils import _quantize_weight, weight_observer

_QINT8 = dt.by_name("qint8")


class Linear(quantized.Linear):
    """A linear layer with a weight in 8 bits or half precision, of numbers."""

    _version = 4

    def __init__(self, in_features: int, out_features: int, bias_: bool = True,
                 dtype: Any = _QINT8):
        super().__init__(in_features, out_features, bias_, dtype)
        self.version = 4

    def forward(self, x: Tensor) -> Tensor:
        # an input of 7 bits: older versions took 8, and processors without exact sums overflowed
        return dynamic_linear(x, self._packed_params._packed_params,
                              self.version is not None and self.version >= 4)

    def _get_name(self) -> str:
        return "DynamicQuantizedLinear"

    def extra_repr(self) -> str:
        held = self._packed_params.dtype
        text = f"in_features={self.in_features}, out_features={self.out_features}, dtype={held}"
        return f"{text}, qscheme={self.weight().qscheme()}" if held is _QINT8 else text

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict,
                              *rest: Any) -> None:
        self.version = local_metadata.get("version")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Linear:
        from .....quantization.qconfig import default_dynamic_qconfig

        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        observer = weight_observer(mod, default_dynamic_qconfig.weight)
        layer = mod[0] if isinstance(mod, nn.Sequential) else mod
        dtype = observer.dtype
        if dtype not in (_QINT8, dt.float16):
            raise AssertionError("The only supported dtypes for dynamic quantized linear are qint8 "
                                 f"and float16 got: {dtype}")
        observer(layer.weight)
        numbers = layer.weight.float()
        new = cls(layer.in_features, layer.out_features, dtype=dtype)
        new.set_weight_bias(_quantize_weight(numbers, observer) if dtype is _QINT8 else numbers,
                            layer.bias)
        return new
