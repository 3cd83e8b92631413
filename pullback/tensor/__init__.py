"""`Tensor`'s methods: the class itself is bare (`core/handle.py`), this package attaches them.

What the operator table can say comes from there (`operators.py`); what it cannot stands in
`facts.py` (shape, memory), `values.py` (numbers, arrays, text) and `history.py` (autograd).
`pickling.py` is about copies and pickles.  Read next: `core/surface.py`.
"""

from __future__ import annotations

from types import FunctionType

from ..core.handle import Tensor
from ..table.catalog import PUBLIC
from . import absent_methods as left_out
from . import facts, history, layouts, nodes, operators, values  # nodes: attaches to `Node`
from .overridable import overridable_properties

_SHOWN = {"__pow__": "pow", "__ipow__": "pow_"}  # names that PyTorch gives some of them


def attach(cls=Tensor) -> None:
    """Give the handle its methods, those of the table before any of its files is loaded."""
    properties = facts.PROPERTIES | history.PROPERTIES | operators.PROPERTIES
    methods = facts.METHODS | history.METHODS | left_out.methods() | values.METHODS
    methods |= layouts.METHODS
    casts = {name: operators.cast_method(to) for name, to in operators.CASTS.items()}
    attached = properties | methods | operators.OPERATORS | casts
    for name, value in attached.items():
        setattr(cls, name, value)
        if type(value) is FunctionType and value.__name__ not in attached:
            value.__name__ = _SHOWN.get(name, name)  # by which handlers of functions know it
            value.__qualname__ = f"Tensor.{value.__name__}"
    for name, _, _, kinds in PUBLIC:
        for kind in kinds:
            _offer(cls, f"{name}_" if kind == "i" else name, kind == "p")
    overridable_properties(cls)


def attach_entry(op, cls=Tensor) -> None:
    """Offer a table entry as Tensor method(s)."""
    head = op.schema[op.schema.index("(") + 1 :]
    if not head.startswith("Tensor") or head.startswith("Tensor[") or op.base_name[:2] == "__":
        return
    for name in (op.base_name, *op.aliases):
        if op.method:
            _offer(cls, name, op.kind == "pointwise")
        if op.inplace and not name.endswith("_"):
            _offer(cls, f"{name}_", False)


def _offer(cls, name: str, pointwise: bool) -> None:
    if name not in cls.__dict__:
        made = operators.pointwise(name) if pointwise else operators.method_of(name)
        setattr(cls, name, made)
