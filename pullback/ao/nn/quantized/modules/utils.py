"""What quantised layers have in common: a weight in integers, and the scale of their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..... import nn
from .....array import dtype as dt
from .....core.handle import Tensor
from .....creation import tensor
from .....quantized.construct import quantize_per_channel, quantize_per_tensor


class WeightedQuantizedModule(nn.Module):
    """A layer with a weight in integers."""

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        """The layer that stands for one with numbers, of which there are observers."""
        raise NotImplementedError


class Scaled(nn.Module):
    """A module whose results have a scale and a zero point; both are in its state."""

    scale: Any
    zero_point: Any

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}scale"] = tensor(self.scale)
        destination[f"{prefix}zero_point"] = tensor(self.zero_point)

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict,
                              strict: bool, *rest: Any) -> None:
        self.scale = float(state_dict.pop(f"{prefix}scale"))
        self.zero_point = int(state_dict.pop(f"{prefix}zero_point"))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *rest)


class Shown:
    """A module that prints in one line, without the one that holds its weight."""

    _get_name: Callable[[], str]
    extra_repr: Callable[[], str]

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"


def _quantize_weight(float_wt: Tensor, observer: Any) -> Tensor:
    """A weight as integers, with the parameters that an observer has found."""
    scale, zero_point = observer.calculate_qparams()
    plain, dtype, scheme = float_wt.detach(), observer.dtype, observer.qscheme.name
    if scheme.startswith("per_tensor"):
        return quantize_per_tensor(plain, float(scale), int(zero_point), dtype)
    if scheme == "per_channel_affine_float_qparams":
        return quantize_per_channel(plain, scale.to(dt.float32), zero_point.to(dt.float32),
                                    observer.ch_axis, dtype)
    return quantize_per_channel(plain, scale.to(dt.float64), zero_point.to(dt.int64),
                                observer.ch_axis, dtype)


def observed(mod: nn.Module) -> tuple[float, int]:
    """The scale and zero point of the results of a layer that was observed."""
    if not hasattr(mod, "activation_post_process"):
        raise AssertionError(
            f"Module {type(mod).__name__} must have activation_post_process attribute")
    scale, zero_point = mod.activation_post_process.calculate_qparams()
    return float(scale), int(zero_point)


def refuse_other(cls: type, mod: nn.Module, known: Any) -> None:
    """Refuse to make a quantised layer of one of another class, or of one without configuration."""
    known = known if isinstance(known, (list, tuple)) else (known,)
    if type(mod) not in known:
        names = ", ".join(k.__name__ for k in known)
        raise AssertionError(f"nnq.{cls.__name__}.from_float only works for {names}, but got: "
                             f"{type(mod).__name__}")
    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")


def weight_observer(mod: nn.Module, default: Any) -> Any:
    """The observer of a weight, as a layer is configured."""
    if getattr(mod, "qconfig", None) is not None and mod.qconfig.weight is not None:
        return mod.qconfig.weight()
    return default()
