"""`QConfig`: which observer a layer gets for its results, and which for its weight."""

from __future__ import annotations

import copy
import warnings
from collections import namedtuple
from typing import Any

from ...array import dtype as dt
from ...nn import Identity, Module
from .fake_quantize import (
    FakeQuantize,
    FusedMovingAvgObsFakeQuantize,
    default_dynamic_fake_quant,
    default_embedding_fake_quant,
    default_embedding_fake_quant_4bit,
    default_fake_quant,
    default_fused_act_fake_quant,
    default_fused_per_channel_wt_fake_quant,
    default_fused_wt_fake_quant,
    default_per_channel_weight_fake_quant,
    default_weight_fake_quant,
    fused_per_channel_wt_fake_quant_range_neg_127_to_127,
    fused_wt_fake_quant_range_neg_127_to_127,
)
from .observer import (
    _QINT8,
    HistogramObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    NoopObserver,
    PlaceholderObserver,
    default_debug_observer,
    default_dynamic_quant_observer,
    default_float_qparams_observer,
    default_float_qparams_observer_4bit,
    default_observer,
    default_per_channel_weight_observer,
    default_placeholder_observer,
    default_reuse_input_observer,
    default_weight_observer,
    per_channel_weight_observer_range_neg_127_to_127,
    weight_observer_range_neg_127_to_127,
)
from .with_args import Partial


def _refuse_instances(*given: Any) -> None:
    if any(isinstance(v, Module) for v in given):
        raise ValueError("QConfig received observer instance, please pass observer class instead. "
                         "Use MyObserver.with_args(x=1) to override arguments to constructor if "
                         "needed")


class QConfig(namedtuple("QConfig", ["activation", "weight"])):
    """Makers of observers, for the results and the weight of a layer."""

    __slots__ = ()

    def __new__(cls, activation: Any, weight: Any):
        _refuse_instances(activation, weight)
        return super().__new__(cls, activation, weight)


class QConfigDynamic(namedtuple("QConfigDynamic", ["activation", "weight"])):
    """Makers of observers for a layer that quantises its input by itself; `QConfig` does, too."""

    __slots__ = ()

    def __new__(cls, activation: Any = Identity, weight: Any = Identity):
        _refuse_instances(weight)
        warnings.warn("`QConfigDynamic` is going to be deprecated in PyTorch 1.12, please use "
                      "`QConfig` instead", FutureWarning, stacklevel=2)
        return super().__new__(cls, activation, weight)


QConfigAny = QConfig | None
_SIGNED = HistogramObserver.with_args(dtype=_QINT8, reduce_range=False, eps=2**-12)
_HALF = PlaceholderObserver.with_args(dtype=dt.float16)

default_qconfig = QConfig(default_observer, default_weight_observer)
default_debug_qconfig = QConfig(default_debug_observer, default_weight_observer)
default_per_channel_qconfig = QConfig(default_observer, default_per_channel_weight_observer)
default_dynamic_qconfig = QConfig(default_dynamic_quant_observer, default_weight_observer)
float16_dynamic_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=dt.float16, is_dynamic=True), _HALF)
float16_static_qconfig = QConfig(_HALF, _HALF)
per_channel_dynamic_qconfig = QConfig(
    default_dynamic_quant_observer, default_per_channel_weight_observer)
float_qparams_weight_only_qconfig = QConfig(
    default_placeholder_observer, default_float_qparams_observer)
float_qparams_weight_only_qconfig_4bit = QConfig(
    default_placeholder_observer, default_float_qparams_observer_4bit)
default_qat_qconfig = QConfig(default_fake_quant, default_weight_fake_quant)
default_dynamic_qat_qconfig = QConfig(default_dynamic_fake_quant, default_weight_fake_quant)
default_weight_only_qconfig = QConfig(Identity, default_weight_fake_quant)
default_activation_only_qconfig = QConfig(default_fake_quant, Identity)
default_qat_qconfig_v2 = QConfig(default_fused_act_fake_quant, default_fused_wt_fake_quant)
default_reuse_input_qconfig = QConfig(default_reuse_input_observer, NoopObserver)
default_symmetric_qnnpack_qconfig = QConfig(_SIGNED, weight_observer_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qconfig = QConfig(
    _SIGNED, per_channel_weight_observer_range_neg_127_to_127)
default_embedding_qat_qconfig = QConfig(
    NoopObserver.with_args(dtype=dt.float32), default_embedding_fake_quant)
default_embedding_qat_qconfig_4bit = QConfig(
    NoopObserver.with_args(dtype=dt.float32), default_embedding_fake_quant_4bit)
default_quint8_weight_qconfig = QConfig(HistogramObserver, MinMaxObserver)
_SIGNED_AVERAGE = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, dtype=_QINT8, eps=2**-12)
default_symmetric_qnnpack_qat_qconfig = QConfig(
    _SIGNED_AVERAGE, fused_wt_fake_quant_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qat_qconfig = QConfig(
    _SIGNED_AVERAGE, fused_per_channel_wt_fake_quant_range_neg_127_to_127)
_BACKENDS = ("fbgemm", "x86", "qnnpack", "onednn")


def _known(backend: str) -> None:
    if backend not in _BACKENDS:
        raise AssertionError(f"backend: {backend} not supported. backend must be one of "
                             f"{list(_BACKENDS)}")


def get_default_qconfig(backend: str = "x86", version: int = 0) -> QConfig:
    """The configuration for a model that is calibrated."""
    _known(backend)
    if version != 0:
        raise AssertionError(f"Version number: {version} in get_default_qconfig is not supported. "
                             "Version number must be 0")
    activation = HistogramObserver.with_args(reduce_range=backend in ("fbgemm", "x86"))
    weight = default_weight_observer if backend == "qnnpack" else (
        default_per_channel_weight_observer)
    return QConfig(activation=activation, weight=weight)


def get_default_qat_qconfig(backend: str = "x86", version: int | None = 1) -> QConfig:
    """The configuration for a model that is trained with rounding."""
    _known(backend)
    if version not in (0, 1, None):
        raise AssertionError(f"Version number: {version} in get_default_qat_qconfig is not "
                             "supported. Version number must be 0 or 1")
    cls = FakeQuantize if version == 0 else FusedMovingAvgObsFakeQuantize
    limits: dict = {"observer": MovingAverageMinMaxObserver, "quant_min": 0, "quant_max": 255}
    if backend != "onednn":
        limits["reduce_range"] = backend != "qnnpack"
    whole = default_weight_fake_quant if version == 0 else default_fused_wt_fake_quant
    each = (default_per_channel_weight_fake_quant if version == 0 else
            default_fused_per_channel_wt_fake_quant)
    return QConfig(cls.with_args(**limits), whole if backend == "qnnpack" else each)


def get_default_qconfig_dict(backend: str = "x86", version: int = 0) -> dict:
    """The same by name, for those who ask for a dictionary."""
    return {"": get_default_qconfig(backend, version)}


def get_default_qat_qconfig_dict(backend: str = "x86", version: int = 1) -> dict:
    """The same by name, for those who ask for a dictionary."""
    return {"": get_default_qat_qconfig(backend, version)}


def _same_maker(a: Any, b: Any) -> bool:
    if isinstance(a, Partial) and isinstance(b, Partial):
        return a.p.func is b.p.func and a.p.keywords == b.p.keywords and a.p.args == b.p.args
    return a == b


def qconfig_equals(q1: QConfigAny, q2: QConfigAny) -> bool:
    """Do two configurations make the same observers?"""
    if q1 is None or q2 is None:
        return q1 is q2
    return _same_maker(q1.activation, q2.activation) and _same_maker(q1.weight, q2.weight)


def _activation_is_memoryless(qconfig: QConfig) -> bool:
    """Does the observer of results look at the present input alone?"""
    made = qconfig.activation()
    observed = made.activation_post_process if isinstance(made, FakeQuantize) else made
    return getattr(observed, "averaging_constant", None) == 1


def _add_module_to_qconfig_obs_ctr(qconfig: QConfigAny, module: Module) -> QConfigAny:
    """The configuration of a module: makers may be copied with it."""
    return copy.copy(qconfig) if qconfig is not None else None


def _assert_valid_qconfig(qconfig: QConfigAny, mod: Module) -> None:
    from ...nn import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d

    if qconfig is None or not isinstance(
            mod, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) or qconfig.weight is None:
        return
    from .observer import PerChannelMinMaxObserver

    if isinstance(qconfig.weight(), PerChannelMinMaxObserver):
        raise AssertionError("Per channel weight observer is not supported yet for "
                             "ConvTranspose{n}d.")
