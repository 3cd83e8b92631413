"""Ahead of time: function -> joint graph -> forward and backward graphs -> callable with
eager's side effects.
"""

__all__ = ["aot_function", "make_boxed_compiler", "make_boxed_func", "nop"]


def __getattr__(name: str):
    if name in __all__:
        from . import api

        return getattr(api, name)
    raise AttributeError(f"pullback.aot has no attribute '{name}'")
