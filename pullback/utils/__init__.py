"""Helpers around the library: data, checkpoints, pytrees; each is loaded when first used."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for editors and type checkers
    from . import checkpoint as checkpoint
    from . import data as data
    from . import pytree as pytree
    from .swapping import swap_tensors as swap_tensors

_MODULES = ("checkpoint", "pytree", "_pytree", "hooks", "data", "dlpack", "benchmark", "model_zoo",
            "tensorboard", "cpp_extension", "_foreach_utils", "weak", "deterministic",
            "mkldnn")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name == "swap_tensors":
        return importlib.import_module(".swapping", __name__).swap_tensors
    if name == "mobile_optimizer":
        from ..absent import modules

        return modules("utils.mobile_optimizer")
    from ..facade import elsewhere

    return elsewhere(__name__, name)


def set_module(obj, mod) -> None:
    """Say where an object is to be imported from, if `mod` names a module."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod
