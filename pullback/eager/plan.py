"""Plans: what a call of an operator comes to, written down as one function per kind of call.

A call is looked up by the types of its arguments.  When the same kind has come often enough, a
function is generated that does for it what `Packet.resolve`, `bind_eager`, `run_raw` and the
recorder do in general: arguments are unrolled, defaults filled in, and the tests whose outcome
the types tell are left out.  What the types do not tell (boxes, half precision, 0-d tensors in the
place of numbers, transforms) goes back to the general way.  Pointwise operators have an even
shorter one, see `fast.py`.  Read `steps.py` first.
"""

from __future__ import annotations

from ..array import dtype as dt
from ..array.device import Device
from ..array.generator import Generator
from ..core.handle import Tensor
from ..core.schema import _NUMPY_NAMES
from . import steps
from .steps import Call, NoPlan
from .unroll import unrolled

_PLAIN = {  # schema type -> types of values that it takes as they are
    "int": {int},
    "float": {int, float, bool},
    "Scalar": {int, float, bool, complex},
    "bool": {bool},
    "str": {str},
    "ScalarType": {dt.DType},
    "Device": {Device},
    "Generator": {Generator},
    "MemoryFormat": {str},
}


def make_plan(packet, args: tuple, kwargs: dict):
    """The function for all calls of the same kind as this one, or None."""
    if "out" in kwargs or "requires_grad" in kwargs:
        return None
    ov, _ = packet.resolve(args, kwargs)
    if ov.custom or packet._inplace and (ov.is_composite or ov.is_view):
        return None
    try:
        given = _places(ov, args, kwargs)
        _fits(packet, ov, args, kwargs)
        return _compiled(packet, ov, given, len(args), list(kwargs))
    except NoPlan:
        return None


def _places(ov, args: tuple, kwargs: dict) -> list:
    """Per schema argument (expression, value given or None for a default, does it come as is?)."""
    schema = ov.schema
    names = [f"p{i}" for i in range(len(args))]
    values = list(args)
    if schema.varargs:
        first = 1 if schema.args[0].is_tensor else 0
        rest = args[first:]
        if rest and {*map(type, rest)} == {int}:
            names[first:] = [f"[{', '.join(names[first:])}]"]
            values[first:] = [_Listed(len(rest))]
    named = {k if k in schema.names else _NUMPY_NAMES.get(k, k): k for k in kwargs}
    places = []
    for i, spec in enumerate(schema.args):
        if i < len(names):
            places.append((names[i], values[i]))
        elif spec.name in named:
            places.append((named[spec.name], kwargs[named[spec.name]]))
        else:
            places.append((None, spec.default if spec.has_default else None))
    return places


class _Listed:
    """Stands for several integers given one by one."""

    def __init__(self, count: int):
        self.count = count


def _fits(packet, ov, args: tuple, kwargs: dict) -> None:
    """Refuse calls whose overload depends on more than the types of the arguments."""
    for other in packet.entries():
        schema = other.schema
        for i, value in enumerate(args):
            spec = schema.args[i] if i < len(schema.args) else None
            if spec is not None and isinstance(value, Tensor) and not spec.is_tensor:
                raise NoPlan  # a 0-d tensor may stand for a number
        for name, value in kwargs.items():
            if isinstance(value, Tensor) and name in schema.names:
                if not schema.args[schema.names.index(name)].is_tensor:
                    raise NoPlan
        if other is ov:
            return


def _listed(made):
    """A list of results as a tuple; some composites give a single one."""
    return tuple(made) if type(made) is list else made


def _compiled(packet, ov, places: list, count: int, names: list):
    given = [f"p{i}" for i in range(count)]
    again = ", ".join([*given, *(f"{n}={n}" for n in names)])
    call = Call(ov, f"return $general({again})")
    call.own["general"] = packet._general
    lines = call.leave("ACTIVE")
    for i, (text, value) in enumerate(places):
        lines += _argument(call, i, text, value)
    if ov.is_composite:
        call.own["compose"], made = ov.compose, f"$compose(*{call.flat})"
        if any(r.is_list and r.is_tensor for r in ov.schema.returns):
            call.own["listed"], made = _listed, f"$listed({made})"
        lines += call.guarded(f"return {made}")
    else:
        kinds = [value for _, value in places]
        devices = [i for i, spec in enumerate(ov.schema.args)
                   if spec.base == "Device" and isinstance(kinds[i], Device)]
        lines += steps.may_write(call) if packet._inplace else []
        lines += steps.same_dtype(call, devices)
        lines += steps.promote(call, kinds)
        lines += steps.kernel(call)
        if packet._inplace:
            lines += steps.write(call)
        else:
            lines += [*steps.wrap(call), *steps.record(call), *steps.link(call), "return t"]
    return unrolled(f"plan of {ov.name}", f"plan({', '.join([*given, *names])})", lines, call.own)


def _argument(call: Call, i: int, text: str | None, value) -> list[str]:
    """Statements that make `x<i>` of what was given."""
    x, spec = call.x[i], call.ov.schema.args[i]
    if text is None or value is None:
        if text is not None and spec.is_list and spec.default == []:
            value = []
        elif text is not None and not (spec.optional or spec.is_list and spec.optional_items):
            raise NoPlan
        if value is None or value.__class__ in (bool, int, str):
            return [f"{x} = {value!r}"]
        call.own[f"default{i}"] = value
        return [f"{x} = list($default{i})" if type(value) is list else f"{x} = $default{i}"]
    if spec.is_list:
        return _list_argument(call, i, text, value)
    if spec.is_tensor:
        if isinstance(value, Tensor):
            call.tensors.append(i)
            call.values[i] = f"a{i}"
            return [f"{x} = {text}", *steps.refresh(call, i)]
        if spec.name not in call.ov.op.scalars or type(value) not in (int, float):
            raise NoPlan
        call.numbers[i] = value
    elif type(value) not in _PLAIN.get(spec.base, ()) or (
            type(value) is complex and i in call.ov.numbers):
        raise NoPlan
    return [f"{x} = {text}"]


def _list_argument(call: Call, i: int, text: str, value) -> list[str]:
    x, spec = call.x[i], call.ov.schema.args[i]
    if spec.base == "int":
        if isinstance(value, _Listed):
            if spec.size and spec.size > 1 and value.count == 1:
                raise NoPlan
            return [f"{x} = {text}"]
        if type(value) is int and spec.size:
            return [f"{x} = [{text}] * {spec.size}"]
        empty = spec.default == []  # then it may be left out, so
        if type(value) not in (list, tuple) or not value and not empty:
            raise NoPlan
        sized = spec.size is not None and spec.size > 1
        test = f"len({text}) != {spec.size}" if sized else f"not {text}"
        test = f"{test} or {{*map(type, {text})}} != INTS"
        return [*call.leave(f"{text} and ({test})" if empty else test), f"{x} = list({text})"]
    if spec.base == "Tensor" and type(value) in (list, tuple):
        call.lists.append(i)
        call.values[i] = f"a{i}"
        return steps.refresh_list(call, i, text)
    raise NoPlan
