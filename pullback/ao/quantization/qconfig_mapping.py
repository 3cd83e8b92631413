"""`QConfigMapping`: configurations by class and by name of modules."""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Any

from ... import nn
from ...nn import functional as F
from ...table.packets import ops
from .fake_quantize import FixedQParamsFakeQuantize, default_weight_fake_quant
from .observer import (
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
    default_placeholder_observer,
    default_weight_observer,
)
from .qconfig import (
    QConfig,
    QConfigAny,
    default_quint8_weight_qconfig,
    default_reuse_input_qconfig,
    get_default_qat_qconfig,
    get_default_qconfig,
)

# Results that lie between 0 and 1, or between -1 and 1, need no observer.
_FIXED = {**dict.fromkeys((nn.Hardsigmoid, F.hardsigmoid, "hardsigmoid", "hardsigmoid_", nn.Sigmoid,
                           ops.sigmoid, "sigmoid", "sigmoid_", nn.Softmax),
                          default_fixed_qparams_range_0to1_observer),
          **dict.fromkeys((nn.Tanh, ops.tanh, "tanh", "tanh_"),
                          default_fixed_qparams_range_neg1to1_observer)}


class QConfigMapping:
    """One configuration for all, others for classes, names and patterns of names."""

    def __init__(self):
        self.global_qconfig: QConfigAny = None
        self.object_type_qconfigs: OrderedDict = OrderedDict()
        self.module_name_regex_qconfigs: OrderedDict = OrderedDict()
        self.module_name_qconfigs: OrderedDict = OrderedDict()
        self.module_name_object_type_order_qconfigs: OrderedDict = OrderedDict()

    def __repr__(self) -> str:
        lines = ["QConfigMapping (", " global_qconfig", f"  {self.global_qconfig}"]
        for name in ("object_type", "module_name_regex", "module_name",
                     "module_name_object_type_order"):
            found = getattr(self, f"{name}_qconfigs")
            lines += [f" {name}_qconfigs"]
            lines += [f"  {key}: {config}" for key, config in found.items()] or ["  OrderedDict()"]
        return "\n".join([*lines, ")"])

    def set_global(self, global_qconfig: QConfigAny) -> QConfigMapping:
        """The configuration of all modules that have no other."""
        self.global_qconfig = global_qconfig
        return self

    def set_object_type(self, object_type: Any, qconfig: QConfigAny) -> QConfigMapping:
        """The configuration of a class."""
        self.object_type_qconfigs[object_type] = qconfig
        return self

    def set_module_name_regex(self, module_name_regex: str, qconfig: QConfigAny) -> QConfigMapping:
        """The configuration of modules whose names fit a pattern."""
        self.module_name_regex_qconfigs[module_name_regex] = qconfig
        return self

    def set_module_name(self, module_name: str, qconfig: QConfigAny) -> QConfigMapping:
        """The configuration of one module."""
        self.module_name_qconfigs[module_name] = qconfig
        return self

    def set_module_name_object_type_order(
        self, module_name: str, object_type: Any, index: int, qconfig: QConfigAny,
    ) -> QConfigMapping:
        """The configuration of one of several calls of a class or function in one module."""
        self.module_name_object_type_order_qconfigs[module_name, object_type, index] = qconfig
        return self

    def of(self, name: str, kind: type) -> QConfigAny:
        """The configuration of a module."""
        if name in self.module_name_qconfigs:
            return self.module_name_qconfigs[name]
        for pattern, qconfig in self.module_name_regex_qconfigs.items():
            if re.match(pattern, name):
                return qconfig
        return self.object_type_qconfigs.get(kind, self.global_qconfig)

    def to_dict(self) -> dict[str, Any]:
        """The same as a dictionary."""
        return {"": self.global_qconfig, "object_type": list(self.object_type_qconfigs.items()),
                "module_name_regex": list(self.module_name_regex_qconfigs.items()),
                "module_name": list(self.module_name_qconfigs.items()),
                "module_name_object_type_order": [
                    (*key, qconfig) for key, qconfig in
                    self.module_name_object_type_order_qconfigs.items()]}

    @classmethod
    def from_dict(cls, qconfig_dict: dict[str, Any]) -> QConfigMapping:
        """The mapping that a dictionary describes."""
        new = cls().set_global(qconfig_dict.get(""))
        for kind, qconfig in qconfig_dict.get("object_type", ()):
            new.set_object_type(kind, qconfig)
        for pattern, qconfig in qconfig_dict.get("module_name_regex", ()):
            new.set_module_name_regex(pattern, qconfig)
        for name, qconfig in qconfig_dict.get("module_name", ()):
            new.set_module_name(name, qconfig)
        for given in qconfig_dict.get("module_name_object_type_order", ()):
            new.set_module_name_object_type_order(*given)
        return new


def _with_defaults(config: QConfig, training: bool) -> QConfigMapping:
    """A configuration for all, but for those layers and functions that need another."""
    found = QConfigMapping().set_global(config).set_object_type(
        "reshape", default_reuse_input_qconfig)
    weight = default_weight_fake_quant if training else default_weight_observer
    for kind in (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d,
                 ops.conv_transpose1d, ops.conv_transpose2d, ops.conv_transpose3d):
        found.set_object_type(kind, QConfig(activation=config.activation, weight=weight))
    for kind in (F.layer_norm, nn.LayerNorm):
        found.set_object_type(kind, QConfig(activation=config.activation,
                                            weight=default_placeholder_observer))
    found.set_object_type(nn.PReLU, default_quint8_weight_qconfig)
    for kind, observer in _FIXED.items():
        made = FixedQParamsFakeQuantize.with_args(observer=observer) if training else observer
        found.set_object_type(kind, QConfig(activation=made, weight=weight))
    return found


def get_default_qconfig_mapping(backend: str = "x86", version: int = 0) -> QConfigMapping:
    """The configuration for a model that is calibrated."""
    return _with_defaults(get_default_qconfig(backend, version), False)


def get_default_qat_qconfig_mapping(backend: str = "x86", version: int = 1) -> QConfigMapping:
    """The configuration for a model that is trained with rounding."""
    return _with_defaults(get_default_qat_qconfig(backend, version), True)
