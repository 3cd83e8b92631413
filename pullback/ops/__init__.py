"""The operator table: one file per family.  `pullback.ops.aten.<name>.<overload>` gives an overload."""

from __future__ import annotations

from typing import Any

_WRITTEN = {  # Python's names of operators that write -> the names of the table
    "__iand__": "bitwise_and_",
    "__ior__": "bitwise_or_",
    "__ixor__": "bitwise_xor_",
    "__ilshift__": "__lshift___",
    "__irshift__": "__rshift___",
}


class _Aten:
    """Attribute access to the overload families."""

    def __getattr__(self, name: str):
        from ..table.packets import ops

        found = self.__dict__[name] = getattr(ops, _WRITTEN.get(name, name))
        return found

    def __repr__(self) -> str:
        return "<operators of the table>"


aten = _Aten()


def load_library(path: str) -> None:
    """Refuses: the binary extensions of other packages are made for PyTorch's memory layout."""
    from .. import errors

    raise errors.LibraryError(errors.text(
        f"the library {path} is made for PyTorch itself ({errors.user_line(2)})",
        cure=errors.LibraryError.cure))


def __getattr__(name: str) -> Any:
    """`ops.ns`: operators that were registered with `pullback.library`, or that take functions."""
    if name == "higher_order":
        from types import SimpleNamespace

        from ..control import operators

        return SimpleNamespace(**operators)
    if name == "prim":
        from ..interp.wrapper_subclass import prim

        return prim
    if name == "quantized":
        from ..quantized.namespace import quantized

        return quantized
    if not name.startswith("__"):
        from importlib.util import find_spec

        from ..library import definitions, namespace

        known = any(q.startswith(f"{name}::") for q in definitions)
        if known or find_spec(f"{__name__}.{name}") is None:  # not a file of the table
            globals()[name] = found = namespace(name)  # so that `del ops.ns` finds it
            return found
    raise AttributeError(f"module 'pullback.ops' has no attribute '{name}'")
