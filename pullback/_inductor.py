"""The settings of PyTorch's code generator that programs assign: kept, all but one without effect.

What the generator here can be told is said to `compile()` itself, see `compile/api.py`.
"""

from __future__ import annotations

from .settings import Settings

__all__ = ["config", "list_mode_options", "list_options"]

__path__: list[str] = []  # it has modules below it: `as_torch.py`

config = Settings(
    "_inductor.config", "Settings of PyTorch's code generator, kept.",
    max_autotune=False, max_autotune_gemm=False, coordinate_descent_tuning=False,
    epilogue_fusion=True, fx_graph_cache=True, force_disable_caches=False, freezing=False,
    post_grad_fusion_options={},  # one of them acts: capture/offload.py
    cpp_wrapper=False, debug=False, shape_padding=True, fallback_random=False,
    triton=Settings("_inductor.config.triton", "Kept.", cudagraphs=False, unique_kernel_names=True),
    cpp=Settings("_inductor.config.cpp", "Kept.", threads=-1, simdlen=None),
    trace=Settings("_inductor.config.trace", "Kept.", enabled=False))


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict:
    """What a mode of `compile()` changes: nothing."""
    modes: dict[str, dict] = {
        "default": {}, "reduce-overhead": {}, "max-autotune": {}, "max-autotune-no-cudagraphs": {}}
    return modes[mode] if mode else modes


def __getattr__(name: str):
    if name == "decompositions":  # `_inductor.decomposition`: what it takes apart before lowering
        from .decomp import core_aten_decompositions

        return core_aten_decompositions()
    from .core.facade import elsewhere

    return elsewhere(__name__, name)


def list_options() -> list[str]:
    """The names of all settings."""
    return sorted(config.to_dict())
