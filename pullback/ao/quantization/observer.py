"""Observers: modules that let tensors through, and find the scale and zero point that fit them."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from typing import Any

from ... import errors
from ...array import dtype as dt
from ...array.layout import qscheme as schemes
from ...core.handle import Tensor
from ...creation import tensor
from ...nn import Module
from ...table.packets import ops
from .with_args import with_args as _with_args
from .with_args import with_callable_args as _with_callable_args

_AFFINE, _SYMMETRIC = schemes.known["per_tensor_affine"], schemes.known["per_tensor_symmetric"]
_EACH = schemes.known["per_channel_affine"]
_EACH_SYMMETRIC = schemes.known["per_channel_symmetric"]
_FLOATING = schemes.known["per_channel_affine_float_qparams"]
_EPS = float(dt.finfo(dt.float32).eps)
_QUINT8, _QINT8, _QUINT4 = (dt.by_name(n) for n in ("quint8", "qint8", "quint4x2"))


def is_per_tensor(scheme: Any) -> bool:
    """Is there one scale?"""
    return scheme in (_AFFINE, _SYMMETRIC)


def is_per_channel(scheme: Any) -> bool:
    """Is there a scale for every channel?"""
    return scheme in (_EACH, _EACH_SYMMETRIC, _FLOATING)


def integers_of(dtype: Any, reduce_range: bool) -> tuple[int, int]:
    """The lowest and highest integer of a dtype, of half the range if that is asked for."""
    limits = {"int8": (-128, 127), "uint8": (0, 255), "int32": (-(1 << 31), (1 << 31) - 1)}
    if isinstance(dtype, dt.Quantized):
        low, high = dtype.low, dtype.high
    elif dtype.name in limits:
        low, high = limits[dtype.name]
    else:
        info = dt.iinfo(dtype)
        low, high = info.min, info.max
    if reduce_range and dtype.itemsize == 1 and high - low == 255:
        low, high = low // 2, high // 2
    return low, high


class ObserverBase(Module):
    """A module that looks at what goes through it."""

    def __init__(self, dtype: Any, is_dynamic: bool = False):
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    with_args = classmethod(_with_args)
    with_callable_args = classmethod(_with_callable_args)

    def forward(self, x: Tensor) -> Tensor:
        return x

    def calculate_qparams(self, **kwargs: Any) -> Any:
        raise errors.RefusedValue(
            f"calculate_qparams should not be called for {type(self).__name__} "
            f"({errors.user_line(2)})")


class UniformQuantizationObserverBase(ObserverBase):
    """An observer of ranges: a scale and a zero point follow from the lowest and highest number."""

    _version = 3

    def __init__(self, dtype: Any = _QUINT8, qscheme: Any = _AFFINE, reduce_range: bool = False,
                 quant_min: int | None = None, quant_max: int | None = None,
                 factory_kwargs: Any = None, eps: float = _EPS, is_dynamic: bool = False,
                 **kwargs: Any):
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.qscheme, self.reduce_range = qscheme, reduce_range
        if reduce_range:
            warnings.warn("Please use quant_min and quant_max to specify the range for observers; "
                          "reduce_range will be deprecated.", stacklevel=2)
        self.register_buffer("eps", tensor([eps]))
        if not is_per_tensor(qscheme) and not is_per_channel(qscheme):
            raise AssertionError(f"observers work for affine and symmetric schemes, not {qscheme}")
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if self.has_customized_qrange:
            self._validate_qmin_qmax(quant_min, quant_max)
            half = 2 if reduce_range else 1
            self.quant_min, self.quant_max = quant_min // half, quant_max // half
        else:
            self.quant_min, self.quant_max = integers_of(dtype, reduce_range)

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict,
                              *rest: Any) -> None:
        if local_metadata.get("version") in (None, 1):
            state_dict[f"{prefix}eps"] = tensor([_EPS])
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def _validate_qmin_qmax(self, quant_min: int, quant_max: int) -> None:
        if not quant_min <= 0 <= quant_max:
            raise AssertionError("Used-specified quantization range must include 0.")
        if quant_min >= quant_max:
            raise AssertionError("qmin must be strictly less than qmax for user-specified "
                                 "quantization range.")

    def _calculate_qparams(self, min_val: Tensor, max_val: Tensor) -> tuple[Tensor, Tensor]:
        """(scales, zero points) that reach from the lowest to the highest number."""
        if not _seen(min_val, max_val):
            return tensor([1.0]), tensor([0])
        low, high = self.quant_min, self.quant_max
        zero = ops.zeros_like(min_val)
        below, above = ops.minimum(min_val, zero), ops.maximum(max_val, zero)
        points = ops.zeros(list(min_val.shape), dtype=dt.int64)
        if self.qscheme in (_SYMMETRIC, _EACH_SYMMETRIC):
            scale = ops.maximum(-below, above) / (float(high - low) / 2)
            scale = ops.maximum(scale, self.eps)
            if self.dtype.name in ("quint8", "uint8"):
                points = points + ((low + high) // 2 if self.has_customized_qrange else 128)
            elif self.dtype.name == "uint16":
                points = points + (1 << 15)
        elif self.qscheme is _FLOATING:
            scale = (max_val - min_val) / float(high - low)
            scale = ops.where(scale > self.eps, scale, ops.ones_like(scale))
            points = -1 * min_val / scale
        else:
            scale = ops.maximum((above - below) / float(high - low), self.eps)
            points = (low - (below / scale).round().to(dt.int32)).clamp(low, high)
        return scale.reshape(scale.shape or (1,)), points.reshape(points.shape or (1,))

    def reset_min_max_vals(self) -> None:
        raise errors.RefusedValue(
            f"{type(self).__name__} keeps no lowest and highest number ({errors.user_line(2)})")


_ObserverBase = UniformQuantizationObserverBase


def _seen(min_val: Tensor, max_val: Tensor) -> bool:
    """Has an observer seen anything?"""
    none = not min_val.numel() or not max_val.numel() or min_val.numel() == 1 and (
        float(min_val) == float("inf") and float(max_val) == float("-inf"))
    if none:
        warnings.warn("must run observer before calling calculate_qparams. "
                      "Returning default values.", stacklevel=3)
        return False
    if bool((min_val > max_val).any()):
        raise AssertionError(f"min {min_val} should be less than max {max_val}")
    return True


class MinMaxObserver(UniformQuantizationObserverBase):
    """An observer of the lowest and the highest number of all that it has seen."""

    min_val: Tensor
    max_val: Tensor

    def __init__(self, dtype: Any = _QUINT8, qscheme: Any = _AFFINE, reduce_range: bool = False,
                 quant_min: int | None = None, quant_max: int | None = None,
                 factory_kwargs: Any = None, eps: float = _EPS, is_dynamic: bool = False,
                 **kwargs: Any):
        if not is_per_tensor(qscheme):
            raise NotImplementedError(
                f"{type(self).__name__}'s qscheme only support torch.per_tensor_symmetric and "
                f"torch.per_tensor_affine, got {qscheme}")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps,
                         is_dynamic, **kwargs)
        self.register_buffer("min_val", tensor(float("inf")))
        self.register_buffer("max_val", tensor(float("-inf")))
        _not_reduced(self, _SYMMETRIC)

    def forward(self, x_orig: Tensor) -> Tensor:
        if x_orig.numel():
            low, high = ops.aminmax(x_orig.detach().to(self.min_val.dtype))
            self.min_val.copy_(ops.minimum(low, self.min_val))
            self.max_val.copy_(ops.maximum(high, self.max_val))
        return x_orig

    def calculate_qparams(self, **kwargs: Any) -> tuple[Tensor, Tensor]:
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def reset_min_max_vals(self) -> None:
        """Forget what was seen."""
        self.min_val.fill_(float("inf"))
        self.max_val.fill_(float("-inf"))


def _not_reduced(observer: UniformQuantizationObserverBase, scheme: Any) -> None:
    if observer.qscheme is scheme and observer.reduce_range and observer.dtype is _QUINT8:
        raise NotImplementedError("Cannot reduce range for symmetric quantization for quint8")


class MovingAverageMinMaxObserver(MinMaxObserver):
    """An observer of moving averages of the lowest and the highest number."""

    def __init__(self, averaging_constant: float = 0.01, dtype: Any = _QUINT8,
                 qscheme: Any = _AFFINE, reduce_range: bool = False, quant_min: int | None = None,
                 quant_max: int | None = None, eps: float = _EPS, is_dynamic: bool = False,
                 **kwargs: Any):
        if is_dynamic and averaging_constant != 1:
            raise NotImplementedError(
                "MovingAverageMinMaxObserver doesn't support dynamic quantization for averaging "
                f"constant of {averaging_constant}")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, None, eps, is_dynamic,
                         **kwargs)
        self.averaging_constant = averaging_constant

    def forward(self, x_orig: Tensor) -> Tensor:
        if x_orig.numel():
            low, high = ops.aminmax(x_orig.detach().to(self.min_val.dtype))
            if float(self.min_val) != float("inf") or float(self.max_val) != float("-inf"):
                low = self.min_val + self.averaging_constant * (low - self.min_val)
                high = self.max_val + self.averaging_constant * (high - self.max_val)
            self.min_val.copy_(low)
            self.max_val.copy_(high)
        return x_orig


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """An observer of the lowest and the highest number of every channel."""

    min_val: Tensor
    max_val: Tensor

    def __init__(self, ch_axis: int = 0, dtype: Any = _QUINT8, qscheme: Any = _EACH,
                 reduce_range: bool = False, quant_min: int | None = None,
                 quant_max: int | None = None, factory_kwargs: Any = None, eps: float = _EPS,
                 is_dynamic: bool = False, **kwargs: Any):
        if not is_per_channel(qscheme):
            raise NotImplementedError(
                f"{type(self).__name__}'s qscheme only support torch.per_channel_symmetric, "
                f"torch.per_channel_affine and torch.per_channel_affine_float_qparams, "
                f"got {qscheme}")
        if is_dynamic:
            raise NotImplementedError(
                f"{type(self).__name__} doesn't support dynamic quantization")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps,
                         is_dynamic, **kwargs)
        self.ch_axis = ch_axis
        self.register_buffer("min_val", tensor([]))
        self.register_buffer("max_val", tensor([]))
        _not_reduced(self, _EACH_SYMMETRIC)

    def _range(self, x: Tensor) -> tuple[Tensor, Tensor]:
        rows = x.detach().transpose(self.ch_axis, 0).to(self.min_val.dtype).flatten(1)
        return rows.amin(1), rows.amax(1)

    def _put(self, low: Tensor, high: Tensor) -> None:
        for held, new in ((self.min_val, low), (self.max_val, high)):
            held.resize_(new.shape)
            held.copy_(new)

    def forward(self, x_orig: Tensor) -> Tensor:
        return self._forward(x_orig)

    def _forward(self, x_orig: Tensor) -> Tensor:
        if x_orig.numel():
            low, high = self._range(x_orig)
            if self.min_val.numel() and self.max_val.numel():
                low, high = ops.minimum(low, self.min_val), ops.maximum(high, self.max_val)
            self._put(low, high)
        return x_orig

    def calculate_qparams(self, **kwargs: Any) -> tuple[Tensor, Tensor]:
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict,
                              strict: bool, missing_keys: list, unexpected_keys: list,
                              error_msgs: list) -> None:
        version = local_metadata.get("version")
        old = version is not None and version < 3
        for held, name in ((self.min_val, "min_val"), (self.max_val, "max_val")):
            key = f"{prefix}{name}s" if old else prefix + name
            if key in state_dict:
                held.resize_(state_dict[key].shape)
            elif strict:
                missing_keys.append(key)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys,
                                      unexpected_keys, error_msgs)

    def reset_min_max_vals(self) -> None:
        """Forget what was seen."""
        self.min_val, self.max_val = tensor([]), tensor([])


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """An observer of moving averages of the lowest and the highest number of every channel."""

    def __init__(self, averaging_constant: float = 0.01, ch_axis: int = 0, dtype: Any = _QUINT8,
                 qscheme: Any = _EACH, reduce_range: bool = False, quant_min: int | None = None,
                 quant_max: int | None = None, eps: float = _EPS, is_dynamic: bool = False,
                 **kwargs: Any):
        super().__init__(ch_axis, dtype, qscheme, reduce_range, quant_min, quant_max, None, eps,
                         is_dynamic, **kwargs)
        self.averaging_constant = averaging_constant

    def forward(self, x_orig: Tensor) -> Tensor:
        if x_orig.numel():
            low, high = self._range(x_orig)
            if self.min_val.numel() and self.max_val.numel():
                low = self.min_val + self.averaging_constant * (low - self.min_val)
                high = self.max_val + self.averaging_constant * (high - self.max_val)
            self._put(low, high)
        return x_orig


class FixedQParamsObserver(ObserverBase):
    """An observer with a scale and a zero point that are given."""

    def __init__(self, scale: float, zero_point: int, dtype: Any = _QUINT8, qscheme: Any = _AFFINE,
                 quant_min: int = 0, quant_max: int = 255, is_dynamic: bool = False, **kwargs: Any):
        if is_dynamic:
            raise NotImplementedError("FixedQParamsObserver doesn't support dynamic quantization")
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.quant_min, self.quant_max, self.qscheme = quant_min, quant_max, qscheme
        self.register_buffer("scale", tensor([scale], dtype=dt.float32))
        self.register_buffer("zero_point", tensor([zero_point], dtype=dt.int32))

    def calculate_qparams(self, **kwargs: Any) -> tuple[Tensor, Tensor]:
        return self.scale, self.zero_point


class PlaceholderObserver(ObserverBase):
    """An observer that only says what something shall become."""

    def __init__(self, dtype: Any = dt.float32, custom_op_name: str = "", compute_dtype: Any = None,
                 quant_min: int | None = None, quant_max: int | None = None, qscheme: Any = None,
                 eps: float | None = None, is_dynamic: bool = False):
        super().__init__(dtype=dtype, is_dynamic=is_dynamic or bool(compute_dtype))
        self.qscheme = _AFFINE if qscheme is None else qscheme
        self.quant_min, self.quant_max = quant_min, quant_max
        self.eps, self.custom_op = _EPS if eps is None else eps, custom_op_name
        if compute_dtype:
            warnings.warn("Please use `is_dynamic` instead of `compute_dtype`. `compute_dtype` "
                          "will be deprecated.", stacklevel=2)

    def extra_repr(self) -> str:
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"


class RecordingObserver(ObserverBase):
    """An observer that keeps all that it has seen."""

    def __init__(self, dtype: Any = _QUINT8):
        super().__init__(dtype=dtype)
        self.tensor_val: list = []

    def forward(self, x: Tensor) -> Tensor:
        self.tensor_val.append(x.clone())
        return x

    def get_tensor_value(self) -> list:
        """All that was seen."""
        return self.tensor_val


class NoopObserver(ObserverBase):
    """An observer that looks at nothing."""

    def __init__(self, dtype: Any = dt.float16, custom_op_name: str = ""):
        super().__init__(dtype=dtype)
        self.custom_op = custom_op_name


class ReuseInputObserver(ObserverBase):
    """An observer for results with the parameters of what they are made of."""

    def __init__(self):
        super().__init__(_QUINT8)


def _is_activation_post_process(module: Any) -> bool:
    from .fake_quantize import FakeQuantizeBase

    return isinstance(module, (ObserverBase, FakeQuantizeBase))


def get_observer_state_dict(mod: Module) -> OrderedDict:
    """What the observers of a model have seen."""
    whole = mod.state_dict()
    found = OrderedDict((k, v) for k, v in whole.items() if "activation_post_process" in k)
    found._metadata = whole._metadata
    return found


def load_observer_state_dict(mod: Module, obs_dict: dict) -> None:
    """Give the observers of a model what others have seen."""
    missing: list = []
    unexpected: list = []
    for name, module in mod.named_modules():
        if _is_activation_post_process(module):
            module._load_from_state_dict(obs_dict, f"{name}.", {}, False, missing, unexpected, [])
    for what, keys in (("Missing", missing), ("Unexpected", unexpected)):
        for key in keys:
            if "observer" in key or "activation_post_process" in key:
                raise errors.BadValue(
                    f"{what} keys for observer {key} in state_dict ({errors.user_line(2)})")


from .histogram import HistogramObserver  # noqa: E402  (an heir)

default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer = PlaceholderObserver
default_debug_observer = RecordingObserver
default_weight_observer = MinMaxObserver.with_args(dtype=_QINT8, qscheme=_SYMMETRIC)
_EVEN = {"dtype": _QINT8, "quant_min": -127, "quant_max": 127, "eps": 2**-12}
weight_observer_range_neg_127_to_127 = MinMaxObserver.with_args(qscheme=_SYMMETRIC, **_EVEN)
default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(
    dtype=_QINT8, qscheme=_EACH_SYMMETRIC)
per_channel_weight_observer_range_neg_127_to_127 = PerChannelMinMaxObserver.with_args(
    qscheme=_EACH_SYMMETRIC, **_EVEN)
default_dynamic_quant_observer = PlaceholderObserver.with_args(
    dtype=_QUINT8, quant_min=0, quant_max=255, is_dynamic=True)
default_float_qparams_observer = PerChannelMinMaxObserver.with_args(
    dtype=_QUINT8, qscheme=_FLOATING, ch_axis=0)
default_float_qparams_observer_4bit = PerChannelMinMaxObserver.with_args(
    dtype=_QUINT4, qscheme=_FLOATING, ch_axis=0)
default_fixed_qparams_range_neg1to1_observer = FixedQParamsObserver.with_args(
    scale=2.0 / 256.0, zero_point=128, dtype=_QUINT8, quant_min=0, quant_max=255)
default_fixed_qparams_range_0to1_observer = FixedQParamsObserver.with_args(
    scale=1.0 / 256.0, zero_point=0, dtype=_QUINT8, quant_min=0, quant_max=255)
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer
default_reuse_input_observer = ReuseInputObserver
