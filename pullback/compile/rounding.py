"""Which sums may be fused with the products in them, so that both are rounded once.

Numbers of compiled code are those of eager code: a product that a sum reads is rounded where it
stands.  Behind a sum over a dimension, or a function such as `exp`, they differ in their last bits
in any case.  There the C compiler may fuse, unless a question follows that a last bit can answer
otherwise (which of two is larger, where a maximum is, which whole number is next, the square root
of a difference that should be zero), for the forward and the backward must answer it alike.  Read
`emit.py` next.
"""

from __future__ import annotations

from collections.abc import Iterable

from .ir import SLOW, Const, Ref, Value

_ROUNDED_OTHERWISE = {*SLOW, "pow"}
_SMOOTH = {"add", "sub", "mul", "neg", "copy", "cast", "exp", "swift_exp", "expm1", "tanh",
           "sigmoid", "erf", "sin", "cos", "div", "gather"}


def fusible(values: Iterable[Value]) -> set[Value]:
    """Those values, given in the order of their computation, that sums may be fused for."""
    order = list(values)
    asked: set[Value] = set()
    for v in reversed(order):
        for k, a in enumerate(_refs(v)):
            if v in asked or _asks(v, k):
                asked.add(a.value)
    inexact: set[Value] = set()
    for v in order:
        if _begins(v) or any(a.value in inexact for a in _refs(v)):
            inexact.add(v)
    return inexact - asked


def _refs(v: Value) -> list[Ref]:
    args = v.call.args if v.call is not None else v.args
    return [a for a in args if not isinstance(a, Const)]


def _begins(v: Value) -> bool:
    """Is a value rounded otherwise than NumPy's, whatever it is made of?"""
    if v.kind == "reduce":
        return v.op in ("sum", "prod") and v.dtype in "fd"
    return v.kind == "pointwise" and v.op in _ROUNDED_OTHERWISE


def _asks(v: Value, k: int) -> bool:
    """Can a last bit of the k-th value that it reads change a value by more than a last bit?"""
    if v.kind in ("reduce", "join"):
        return v.kind == "reduce" and v.op != "sum"
    if v.kind != "pointwise" or v.op not in _SMOOTH or v.dtype not in "fd":
        return True
    return v.op == "div" and not (k == 0 and isinstance(v.args[0], Ref))
