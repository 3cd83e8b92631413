"""Helpers around the library: data, checkpoints, pytrees; each is loaded when first used."""

import importlib

_MODULES = ("checkpoint", "pytree", "_pytree", "hooks", "data", "dlpack", "benchmark", "model_zoo",
            "tensorboard", "cpp_extension", "_foreach_utils", "weak", "deterministic")


def __getattr__(name: str):
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name == "swap_tensors":
        return importlib.import_module(".swapping", __name__).swap_tensors
    if name == "mobile_optimizer":
        from ..absent import modules

        return modules("utils.mobile_optimizer")
    from ..core.facade import elsewhere

    return elsewhere(__name__, name)


def set_module(obj, mod) -> None:
    """Say where an object is to be imported from, if `mod` names a module."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod
