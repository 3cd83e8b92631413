"""The settings of PyTorch's code generator that programs assign: kept, all but two without effect.

What the generator here can be told is said to `compile()` itself, see `compile/api.py`.
"""

from __future__ import annotations

from ..cut.settings import code_generator as config

__all__ = ["config", "list_mode_options", "list_options"]

__path__: list[str] = []  # it has modules below it: `install.py`


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict:
    """What a mode of `compile()` changes: nothing."""
    modes: dict[str, dict] = {
        "default": {}, "reduce-overhead": {}, "max-autotune": {}, "max-autotune-no-cudagraphs": {}}
    return modes[mode] if mode else modes


def __getattr__(name: str):
    if name == "decompositions":  # `_inductor.decomposition`: what it takes apart before lowering
        from ..decomp import core_aten_decompositions

        return core_aten_decompositions()
    from ..facade import elsewhere

    return elsewhere(__name__, name)


def list_options() -> list[str]:
    """The names of all settings."""
    return sorted(config.to_dict())
