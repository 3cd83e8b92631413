"""`torch.ao.quantization`: layers with integers in the place of those with numbers.

`quantize_dynamic(model, {nn.Linear})` needs nothing else; `prepare`, some batches and `convert`
give a model that computes with integers throughout (`quantize.py`); `prepare_qat` trains one.
"""

import sys as _sys
import types as _types

from ...absent import getter as _getter
from ...facade import Facade as _Facade

_FILES = ("quantize", "fuse_modules", "qconfig", "fake_quantize", "observer", "stubs",
          "quantization_mappings", "qconfig_mapping", "fuser_method_mappings", "utils")
_absent = _getter(__name__)
_found = _Facade("torch.ao.quantization", " ".join(f"ao.quantization.{f}" for f in _FILES))


class _Package(_types.ModuleType):
    """This package: importing the file of a function's name does not hide the function."""

    def __setattr__(self, name: str, value: object) -> None:
        if name not in ("quantize", "fuse_modules"):
            super().__setattr__(name, value)


_sys.modules[__name__].__class__ = _Package


def __getattr__(name: str):
    import importlib

    if name == "__all__":
        return [n for n in dir(_found) if not n.startswith("_")]
    if (name in _FILES or name == "quantize_fx") and name not in ("quantize", "fuse_modules"):
        return importlib.import_module(f".{name}", __name__)
    if not name.startswith("__"):
        for file in _FILES:
            module = importlib.import_module(f".{file}", __name__)
            if hasattr(module, name):
                return getattr(module, name)
    return _absent(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_found)})
