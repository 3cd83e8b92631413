"""What operators do to tensors that are made of others: compositions, found by operator and class.

A rule takes the arguments of the operator in the order of its schema.  It is written with
ordinary operators on parts and knows nothing of derivatives, levels or compilers.  A rule that
returns `NotImplemented` leaves the call to the next: the rules of a class, by full name
(`add.Tensor`) or by base name (`add`), those of the classes it inherits from, then `any_operator`
of the class.  Read next: `trees.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import errors
from ..core.handle import Tensor, tensors_in
from ..core.subclass_door import door
from ..threads.state import count_for_all
from . import layouts


def rule(cls: type, *names: str):
    """Decorate the rule of a class for operators, by their names in the table."""

    def decorate(function: Callable) -> Callable:
        for name in names:
            cls.rules[name] = function
        return function

    return decorate


def shown(t: Any) -> str:
    """A tensor in the state of a message."""
    return f"tensor: {t.dtype.name}{list(t.shape)}, layout={t.layout}"


def _composed(flat: tuple):
    """The first argument of a class that is made of parts, with precedence to heirs."""
    from .tensor import Parts

    found = None
    for t in tensors_in(flat):
        if type(t._payload) is Parts:
            owner = t._payload.owner()  # an internal handle of it has no parts
            t = t if owner is None else owner
            if found is None or type(t) is not type(found) and type(t).over(type(found)):
                found = t
    return found


def answer(ov, flat: tuple, suffix: str = ""):
    """What a class makes of an operator, NotImplemented if no argument is made of parts."""
    t = _composed(flat)
    asked_of = layouts.asked(ov.op.base_name, flat) if t is None else type(t)
    if asked_of is None:
        return NotImplemented
    full, base = f"{ov.name}", ov.op.base_name
    for cls in asked_of.__mro__:
        known = vars(cls).get("rules", {})
        for name in (full + suffix, base + suffix) if suffix else (full, base):
            function = known.get(name)
            if function is not None:
                out = function(*flat)
                if out is not NotImplemented:
                    return out if t is None else t.answered(ov, flat, out)
    if suffix or ov.is_composite:
        return NotImplemented
    out = NotImplemented if t is None else t.any_operator(ov, flat)
    if out is NotImplemented:
        raise errors.LayoutError(errors.text(
            f"{errors.public_name(base)}: there is no such operator on {asked_of.title} tensors "
            f"({errors.user_line(2)})", *[[shown(v) for v in tensors_in(flat)]], asked_of.cure))
    return out if t is None else t.answered(ov, flat, out)


_before: dict = {}


def operator(ov, flat: tuple):
    """The door's answer: first tensors that are made of parts, then classes and modes."""
    out = answer(ov, flat)
    return _before["operator"](ov, flat) if out is NotImplemented else out


def write(ov, flat: tuple):
    """`x.op_(...)`: a rule for it (`add_`), or the operator, whose result the tensor becomes."""
    t = _composed(flat)
    if t is None:
        return _before["write"](ov, flat)
    try:
        return _written(ov, flat, t)
    except errors.LayoutError as error:
        raise error.of(f"{ov.op.base_name}_") from None


def _written(ov, flat: tuple, t: Any) -> Any:
    x = flat[0]
    out = answer(ov, flat, "_")
    if out is NotImplemented:
        out = type(t).write_operator(ov, flat)
    if out is not NotImplemented:
        return out
    if not isinstance(x, type(t)):
        raise errors.LayoutError(errors.text(
            f"{ov.op.base_name}_: a dense tensor cannot be written with a {t.title} one in place "
            f"({errors.user_line(2)})", [shown(t)], "use the operator without underscore"))
    from ..core import stack

    new = stack.bind(ov, flat)
    x.write_all(new, ov.op.base_name)
    return x


def write_out(ov, flat: tuple, outs: list) -> bool:
    """`op(..., out=)`: the outputs become the results."""
    from .tensor import PartsTensor

    if _composed(flat) is None and not any(isinstance(o, PartsTensor) for o in outs):
        return _before["write_out"](ov, flat, outs)
    from ..core import stack

    new = stack.bind(ov, flat)
    for o, n in zip(outs, new if isinstance(new, (list, tuple)) else [new]):
        if isinstance(o, PartsTensor):
            o.write_all(n, ov.op.base_name)
        else:
            o.copy_(n)
    return True


def install() -> None:
    """The door asks here from now on."""
    if _before:
        return
    from ..interp import operator_dispatch  # noqa: F401  (opens the door before)

    for name, function in (("operator", operator), ("write", write), ("write_out", write_out)):
        _before[name] = getattr(door, name)
        setattr(door, name, function)
    door.composite = answer
    count_for_all("DISPATCHES", 1)
    count_for_all("PARTS", 1)


def of_tensors(flat: tuple) -> list[Tensor]:
    """All tensors among flat arguments."""
    return list(tensors_in(flat))
