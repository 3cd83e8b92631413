"""Helpers around the library: data, checkpoints, pytrees; each is loaded when first used."""

import importlib

_MODULES = ("checkpoint", "pytree", "_pytree", "hooks", "data", "dlpack", "benchmark", "model_zoo",
            "tensorboard", "cpp_extension", "_foreach_utils")


def __getattr__(name: str):
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name == "swap_tensors":
        return importlib.import_module(".swapping", __name__).swap_tensors
    if name == "mobile_optimizer":
        from ..absent import modules

        return modules("utils.mobile_optimizer")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
