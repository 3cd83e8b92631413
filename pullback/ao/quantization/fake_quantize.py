"""Modules that round as integers would, for training: `FakeQuantize` and its family."""

from __future__ import annotations

from typing import Any

from ...array import dtype as dt
from ...core.handle import Tensor
from ...creation import tensor
from ...nn import Module
from ...table.packets import ops
from .observer import (
    _AFFINE,
    _EACH_SYMMETRIC,
    _EVEN,
    _FLOATING,
    _QINT8,
    _QUINT4,
    _QUINT8,
    _SYMMETRIC,
    FixedQParamsObserver,
    HistogramObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
    integers_of,
    is_per_channel,
    is_per_tensor,
)
from .with_args import with_args as _with_args


class FakeQuantizeBase(Module):
    """A module that rounds what goes through it, and may be told not to."""

    fake_quant_enabled: Tensor
    observer_enabled: Tensor
    activation_post_process: Module  # what observes

    def __init__(self):
        super().__init__()
        self.register_buffer("fake_quant_enabled", tensor([1], dtype=dt.uint8))
        self.register_buffer("observer_enabled", tensor([1], dtype=dt.uint8))

    with_args = classmethod(_with_args)

    def calculate_qparams(self, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """(scales, zero points)."""
        return self.activation_post_process.calculate_qparams()

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Round from now on."""
        self.fake_quant_enabled[0] = int(enabled)

    def disable_fake_quant(self) -> None:
        """Round no longer."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        """Look at what goes through from now on."""
        self.observer_enabled[0] = int(enabled)

    def disable_observer(self) -> None:
        """Keep the scale as it is."""
        self.enable_observer(False)


class FakeQuantize(FakeQuantizeBase):
    """Observes, and rounds to what integers with the observed scale would stand for."""

    scale: Tensor
    zero_point: Tensor

    def __init__(self, observer: Any = MovingAverageMinMaxObserver, quant_min: int | None = None,
                 quant_max: int | None = None, is_dynamic: bool = False, **observer_kwargs: Any):
        super().__init__()
        if quant_min is not None and quant_max is not None:
            if quant_min > quant_max:
                raise AssertionError("quant_min must be less than or equal to quant_max")
            given = getattr(getattr(observer, "p", None), "keywords", {})
            dtype = given.get("dtype", observer_kwargs.get("dtype", _QUINT8))
            low, high = integers_of(dtype, False)
            if low > quant_min:
                raise AssertionError("quant_min out of bound")
            if quant_max > high:
                raise AssertionError("quant_max out of bound")
            observer_kwargs |= {"quant_min": quant_min, "quant_max": quant_max}
        observer_kwargs["is_dynamic"] = is_dynamic
        self.activation_post_process = observed = observer(**observer_kwargs)
        self.quant_min, self.quant_max = observed.quant_min, observed.quant_max
        self.is_dynamic, self.dtype = observed.is_dynamic, observed.dtype
        self.qscheme = observed.qscheme
        self.register_buffer("scale", tensor([1.0], dtype=dt.float32))
        whole = dt.float32 if self.qscheme is _FLOATING else dt.int32
        self.register_buffer("zero_point", tensor([0], dtype=whole))
        self.ch_axis = getattr(observed, "ch_axis", -1)
        if not is_per_channel(self.qscheme) and not is_per_tensor(self.qscheme):
            raise AssertionError("Only per channel and per tensor quantization are supported in "
                                 f"fake quantize got qscheme: {self.qscheme}")
        self.is_per_channel = is_per_channel(self.qscheme)

    def forward(self, X: Tensor) -> Tensor:
        observed = self.activation_post_process
        if int(self.observer_enabled[0]) == 1:
            observed(X.detach())
            for held, new in zip((self.scale, self.zero_point), self.calculate_qparams()):
                if held.shape != new.shape:
                    held.resize_(new.shape)
                held.copy_(new)
        if int(self.fake_quant_enabled[0]) != 1:
            return X
        if self.is_per_channel:
            return ops.fake_quantize_per_channel_affine(
                X, self.scale, self.zero_point, self.ch_axis, observed.quant_min,
                observed.quant_max)
        return ops.fake_quantize_per_tensor_affine(
            X, self.scale, self.zero_point, observed.quant_min, observed.quant_max)

    def extra_repr(self) -> str:
        observed = self.activation_post_process
        return (f"fake_quant_enabled={self.fake_quant_enabled}, "
                f"observer_enabled={self.observer_enabled}, quant_min={observed.quant_min}, "
                f"quant_max={observed.quant_max}, dtype={self.dtype}, qscheme={self.qscheme}, "
                f"ch_axis={self.ch_axis}, scale={self.scale}, zero_point={self.zero_point}")

    def _load_from_state_dict(self, state_dict: dict, prefix: str, *rest: Any) -> None:
        for held, name in ((self.scale, "scale"), (self.zero_point, "zero_point")):
            if prefix + name in state_dict:
                held.resize_(state_dict[prefix + name].shape)
        super()._load_from_state_dict(state_dict, prefix, *rest)


class FixedQParamsFakeQuantize(FakeQuantize):
    """Rounds with a scale and a zero point that are given."""

    def __init__(self, observer: Any):
        super().__init__(observer=observer)
        if type(self.activation_post_process) is not FixedQParamsObserver:
            raise AssertionError(
                f"{type(self).__name__}'s observer must be a {FixedQParamsObserver.__name__}")
        self._observer_ctr = observer
        self.scale = self.activation_post_process.scale
        self.zero_point = self.activation_post_process.zero_point

    def calculate_qparams(self, **kwargs: Any) -> tuple[Tensor, Tensor]:
        return self.scale, self.zero_point

    def extra_repr(self) -> str:
        observed = self.activation_post_process
        return (f"fake_quant_enabled={self.fake_quant_enabled}, "
                f"observer_enabled={self.observer_enabled}, scale={self.scale}, "
                f"zero_point={self.zero_point}, dtype={self.dtype}, "
                f"quant_min={observed.quant_min}, quant_max={observed.quant_max}, "
                f"qscheme={self.qscheme}")


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """Observes moving averages and rounds, in one operator."""

    def __init__(self, observer: Any = MovingAverageMinMaxObserver, quant_min: int = 0,
                 quant_max: int = 255, **observer_kwargs: Any):
        super().__init__(observer, quant_min, quant_max, **observer_kwargs)
        if not isinstance(self.activation_post_process, (
                MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver)):
            raise AssertionError("Fused observer+fake_quant module only works with "
                                 "MovingAverageMinMaxObserver")
        self.register_buffer("fake_quant_enabled", tensor([1]))
        self.register_buffer("observer_enabled", tensor([1]))
        self.is_symmetric_quant = self.qscheme in (_SYMMETRIC, _EACH_SYMMETRIC)

    def extra_repr(self) -> str:
        observed = self.activation_post_process
        return (f"fake_quant_enabled={self.fake_quant_enabled}, "
                f"observer_enabled={self.observer_enabled}, scale={self.scale}, "
                f"zero_point={self.zero_point}, dtype={self.dtype}, "
                f"quant_min={observed.quant_min}, quant_max={observed.quant_max}, "
                f"qscheme={self.qscheme}, reduce_range={observed.reduce_range}")

    def _widen(self, channels: int) -> None:
        """Room for one number for every channel, where there was none yet."""
        observed = self.activation_post_process
        if observed.min_val.numel() != channels:
            observed.min_val.resize_(channels).fill_(float("inf"))
            observed.max_val.resize_(channels).fill_(float("-inf"))
        if self.scale.numel() != channels:
            self.scale.resize_(channels).fill_(1.0)
            self.zero_point.resize_(channels).fill_(0)

    def forward(self, X: Tensor) -> Tensor:
        observed = self.activation_post_process
        if self.is_per_channel:
            self._widen(X.shape[self.ch_axis])
        return ops.fused_moving_avg_obs_fake_quant(
            X, self.observer_enabled, self.fake_quant_enabled, observed.min_val, observed.max_val,
            self.scale, self.zero_point, observed.averaging_constant, observed.quant_min,
            observed.quant_max, self.ch_axis, self.is_per_channel, self.is_symmetric_quant)


_AVERAGE, _AVERAGES = MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver
_WHOLE = {"quant_min": 0, "quant_max": 255}
_WEIGHT = {"quant_min": -128, "quant_max": 127, "dtype": _QINT8}

default_fake_quant = FakeQuantize.with_args(
    observer=_AVERAGE, dtype=_QUINT8, qscheme=_AFFINE, reduce_range=True, **_WHOLE)
default_weight_fake_quant = FakeQuantize.with_args(
    observer=_AVERAGE, qscheme=_SYMMETRIC, reduce_range=False, **_WEIGHT)
default_dynamic_fake_quant = FakeQuantize.with_args(
    observer=_AVERAGE, is_dynamic=True, dtype=_QUINT8, averaging_constant=1, **_WHOLE)
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_neg1to1_observer)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_0to1_observer)
default_symmetric_fixed_qparams_fake_quant = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    observer=_AVERAGES, qscheme=_EACH_SYMMETRIC, reduce_range=False, ch_axis=0, **_WEIGHT)
default_embedding_fake_quant = FakeQuantize.with_args(
    observer=_AVERAGES, qscheme=_FLOATING, dtype=_QUINT8, ch_axis=0, averaging_constant=1, **_WHOLE)
default_embedding_fake_quant_4bit = FakeQuantize.with_args(
    observer=_AVERAGES, qscheme=_FLOATING, ch_axis=0, dtype=_QUINT4, averaging_constant=1)
default_histogram_fake_quant = FakeQuantize.with_args(
    observer=HistogramObserver, dtype=_QUINT8, qscheme=_AFFINE, reduce_range=True, **_WHOLE)
default_fused_act_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=_AVERAGE, dtype=_QUINT8, **_WHOLE)
default_fused_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=_AVERAGE, qscheme=_SYMMETRIC, **_WEIGHT)
default_fused_per_channel_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=_AVERAGES, qscheme=_EACH_SYMMETRIC, **_WEIGHT)
fused_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    observer=_AVERAGE, qscheme=_SYMMETRIC, **_EVEN)
fused_per_channel_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    observer=_AVERAGES, qscheme=_EACH_SYMMETRIC, **_EVEN)


def _telling(name: str, doc: str):
    def function(mod: Module) -> None:
        if isinstance(mod, FakeQuantizeBase):
            getattr(mod, name)()

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc} For `model.apply`."
    return function


disable_fake_quant = _telling("disable_fake_quant", "A module rounds no longer.")
enable_fake_quant = _telling("enable_fake_quant", "A module rounds from now on.")
disable_observer = _telling("disable_observer", "A module keeps its scale.")
enable_observer = _telling("enable_observer", "A module looks at numbers from now on.")
