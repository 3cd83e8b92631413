"""`QConfigMapping`: configurations by class and by name of modules."""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Any

from .qconfig import QConfigAny, get_default_qat_qconfig, get_default_qconfig


class QConfigMapping:
    """One configuration for all, others for classes, names and patterns of names."""

    def __init__(self):
        self.global_qconfig: QConfigAny = None
        self.object_type_qconfigs: OrderedDict = OrderedDict()
        self.module_name_regex_qconfigs: OrderedDict = OrderedDict()
        self.module_name_qconfigs: OrderedDict = OrderedDict()

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
                "module_name": list(self.module_name_qconfigs.items())}

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
        return new


def get_default_qconfig_mapping(backend: str = "x86", version: int = 0) -> QConfigMapping:
    """The configuration for a model that is calibrated."""
    return QConfigMapping().set_global(get_default_qconfig(backend, version))


def get_default_qat_qconfig_mapping(backend: str = "x86", version: int = 1) -> QConfigMapping:
    """The configuration for a model that is trained with rounding."""
    return QConfigMapping().set_global(get_default_qat_qconfig(backend, version))
