"""Linear layers with a weight in 8 bits, and what holds it."""

from __future__ import annotations

from typing import Any, ClassVar

from ..... import errors, nn
from .....array import dtype as dt
from .....core.handle import Tensor
from .....quantized import products
from .....quantized.construct import _empty_affine_quantized
from .....quantized.packed import LinearHalfParams, linear_weight
from .....table.packets import ops
from .utils import Scaled, Shown, WeightedQuantizedModule, _quantize_weight, refuse_other

_QINT8 = dt.by_name("qint8")


class LinearPackedParams(nn.Module):
    """What holds the weight and the bias of a linear layer."""

    _version = 3

    def __init__(self, dtype: Any = _QINT8):
        super().__init__()
        self.dtype = dtype
        self.set_weight_bias(_empty_weight(1, 1, dtype), None)

    def set_weight_bias(self, weight: Tensor, bias: Tensor | None) -> None:
        """Hold another weight and bias."""
        pack = LinearHalfParams if self.dtype is dt.float16 else linear_weight
        self._packed_params = pack(weight, bias)

    def _weight_bias(self) -> tuple[Tensor, Tensor | None]:
        return self._packed_params.unpack()

    def forward(self, x: Tensor) -> Tensor:
        return x

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}dtype"] = self.dtype
        destination[f"{prefix}_packed_params"] = self._weight_bias()

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict,
                              strict: bool, *rest: Any) -> None:
        version = local_metadata.get("version")
        old = version is None or version < 3
        self.dtype = _QINT8 if version is None or version < 2 else state_dict.pop(f"{prefix}dtype")
        if old:
            held = state_dict.pop(f"{prefix}weight"), state_dict.pop(f"{prefix}bias")
        else:
            held = state_dict.pop(f"{prefix}_packed_params")
        self.set_weight_bias(*held)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *rest)

    def __repr__(self) -> str:
        return repr(self._weight_bias())


def _empty_weight(outs: int, ins: int, dtype: Any) -> Tensor:
    if dtype is dt.float16:
        return ops.zeros([outs, ins])
    if dtype is not _QINT8:
        raise errors.DTypeError(
            f"Unsupported dtype specified for quantized Linear: {dtype} ({errors.user_line(4)})")
    return _empty_affine_quantized([outs, ins], scale=1.0, zero_point=0, dtype=_QINT8)


class Linear(Shown, Scaled, WeightedQuantizedModule):
    """A linear layer from integers to integers."""

    _version = 3
    _FLOAT_MODULE: ClassVar[Any] = (nn.Linear, nn.linear.NonDynamicallyQuantizableLinear)

    def __init__(self, in_features: int, out_features: int, bias_: bool = True,
                 dtype: Any = _QINT8):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self._packed_params = LinearPackedParams(dtype)
        self._packed_params.set_weight_bias(
            _empty_weight(out_features, in_features, dtype),
            ops.zeros(out_features) if bias_ else None)
        self.scale, self.zero_point = 1.0, 0

    def _get_name(self) -> str:
        return "QuantizedLinear"

    def extra_repr(self) -> str:
        return (f"in_features={self.in_features}, out_features={self.out_features}, "
                f"scale={self.scale}, zero_point={self.zero_point}, "
                f"qscheme={self.weight().qscheme()}")

    def forward(self, x: Tensor) -> Tensor:
        return products.linear(x, self._packed_params._packed_params, self.scale, self.zero_point)

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict,
                              *rest: Any) -> None:
        if local_metadata.get("version") in (None, 1):
            for name in ("weight", "bias"):
                state_dict[f"{prefix}_packed_params.{name}"] = state_dict.pop(prefix + name)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def _weight_bias(self) -> tuple[Tensor, Tensor | None]:
        return self._packed_params._weight_bias()

    def weight(self) -> Tensor:
        """The weight."""
        return self._weight_bias()[0]

    def bias(self) -> Tensor | None:
        """The bias, if there is one."""
        return self._weight_bias()[1]

    def set_weight_bias(self, w: Tensor, b: Tensor | None) -> None:
        """Hold another weight and bias."""
        self._packed_params.set_weight_bias(w, b)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Linear:
        mod, results, of_weight = cls._observers(mod)
        if not use_precomputed_fake_quant:
            of_weight(mod.weight)
        if of_weight.dtype is not _QINT8:
            raise AssertionError(
                f"Weight observer must have dtype torch.qint8, got {of_weight.dtype}")
        scale, zero_point = results.calculate_qparams()
        new = cls(mod.in_features, mod.out_features, dtype=of_weight.dtype)
        new.set_weight_bias(_quantize_weight(mod.weight.float(), of_weight), mod.bias)
        new.scale, new.zero_point = float(scale), int(zero_point)
        return new

    @classmethod
    def _observers(cls, mod: nn.Module) -> tuple:
        """(the layer itself, the observer of its results, the observer of its weight)."""
        if hasattr(mod, "weight_fake_quant"):
            if hasattr(mod, "bn"):
                bn = mod.bn
                mod.weight, mod.bias = nn.utils.fuse_linear_bn_weights(
                    mod.weight, mod.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight,
                    bn.bias)
            return mod, mod.activation_post_process, mod.weight_fake_quant
        refuse_other(cls, mod, cls._FLOAT_MODULE)
        results = mod.activation_post_process
        inner = mod[0] if isinstance(mod, nn.Sequential) else mod
        config = inner.qconfig if hasattr(inner, "qconfig") else mod.qconfig
        return inner, results, config.weight()
