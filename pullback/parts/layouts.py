"""Classes by the layouts that they have: `zeros(2, 3, layout=sparse_coo)` asks one for its rule.

Quantised tensors go by their dtypes: `empty(2, 3, dtype=quint8)`.

A package that has such classes registers them with `offer` when it is loaded; `prepare` loads it.
"""

from __future__ import annotations

import importlib
from typing import Any

from .. import errors
from ..array import dtype as dt
from ..array.layout import STRIDED, layout

_HOMES = {f"sparse_{kind}": "sparse" for kind in ("coo", "csr", "csc", "bsr", "bsc")} | {
    kind.name: "quantized" for kind in dt.QUANTIZED}
classes: dict[Any, type] = {}


def offer(cls: Any) -> None:
    """Operators that are asked for tensors with the layout of a class look at its rules."""
    classes[cls.own_layout] = cls


def prepare(value: Any) -> None:
    """Load what has a layout; refuse one that no class has.

    oneDNN's stands for the usual one, as in `to_mkldnn`."""
    if getattr(value, "name", "") == "_mkldnn":
        return
    home = _HOMES.get(getattr(value, "name", ""))
    if home is not None and value not in classes:
        importlib.import_module(f"..{home}", __package__)
    if value not in classes:
        raise errors.NotInThisBuild(errors.text(
            f"layout {value}: no function makes tensors with it ({errors.user_line(3)})",
            cure="leave the layout away"))
    from .rules import install

    install()


def asked(name: str, flat: tuple) -> type | None:
    """The class whose layout is an argument of a call, or whose dtype, if it has a rule."""
    for v in flat:
        if v.__class__ is layout and v is not STRIDED:
            return classes.get(v)
        if v.__class__ is dt.Quantized and v in classes and name in vars(classes[v])["rules"]:
            return classes[v]
    return None
