"""PyTorch's dialect of graphs.

An operator of the table may be one kernel here and several operators in PyTorch (`where` with a
number), or the other way round (`norm`), and a formula may be written for speed or for the sake of
higher derivatives.  Graphs that people read (`make_fx`, `aot_function`, `aot_export_*`) follow
PyTorch; eager mode and `compile` do not come here.  `calls.py` has operators and calls, `parts.py`
what operators are made of, `formulas.py` derivatives, `joint.py` what is particular to graphs with
a backward.  `graph/dialect.py` lists what a trace asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .calls import TorchDialect
from .joint import JointDialect
from .parts import EXPLICIT, PARTS, TRACED

_KINDS: dict[bool, Mapping[str, Callable]] = {
    False: {**PARTS, **EXPLICIT}, True: {**PARTS, **TRACED, **EXPLICIT}}


def dialect(kind: str, whole: bool = False) -> TorchDialect:
    """That of captures of a kind: "real", "fake", "symbolic" or "aot"; `whole` before dispatch.

    Where PyTorch dispatches in Python (symbolic sizes, AOT) more operators are taken apart.
    """
    made = JointDialect if kind == "aot" else TorchDialect
    return made(EXPLICIT if whole else _KINDS[kind in ("symbolic", "aot")])
