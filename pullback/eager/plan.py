"""Plans: what a call of an operator comes to, written down as one function per kind of call.

A call is looked up by the types of its arguments.  When the same kind has come often enough, a
function is generated that does for it what `Packet.resolve`, `bind_eager`, `run_raw` and the
recorder do in general: arguments are unrolled, defaults filled in, and the tests whose outcome
the types tell are left out.  What the types do not tell (boxes, half precision, 0-d tensors in the
place of numbers, transforms) goes back to the general way.  Pointwise operators have an even
shorter one, see `fast.py`.  Read next: `recorder.py`.
"""

from __future__ import annotations

import numpy as np

from ..array import dtype as dt
from ..array.device import Device
from ..array.evaluate import _HALF, _arrays_only, _finish, in_rows, wrap, wrap_all
from ..array.generator import Generator
from ..core import stack, surface, tape
from ..core.handle import INFERENCE, Link, Tensor, one_more
from ..core.state import fast as space
from ..core.state import state
from . import recorder

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
_PROMOTING = ("default", "float", "real", "bool")


class _No(Exception):
    """This kind of call has no plan."""


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
    except _No:
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
    from ..core.schema import _NUMPY_NAMES

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
                raise _No  # a 0-d tensor may stand for a number
        for name, value in kwargs.items():
            if isinstance(value, Tensor) and name in schema.names:
                if not schema.args[schema.names.index(name)].is_tensor:
                    raise _No
        if other is ov:
            return


def _listed(made):
    """A list of results as a tuple; some composites give a single one."""
    return tuple(made) if type(made) is list else made


def _compiled(packet, ov, places: list, count: int, names: list):
    schema, rule = ov.schema, ov.op.promote
    own = {"ov": ov, "general": packet._general}
    given = [f"p{i}" for i in range(count)]
    again = ", ".join([*given, *(f"{n}={n}" for n in names)])
    general = f"return general({again})"
    head, tensors = [], []  # statements that make x0, x1, ...; positions of tensors
    lists = []
    for i, (spec, (text, value)) in enumerate(zip(schema.args, places)):
        head += _argument(i, spec, text, value, own, general, ov, tensors, lists)
    flat = f"({''.join(f'x{i}, ' for i in range(len(schema.args)))})"
    lines = [f"def plan({', '.join([*given, *names])}):", "    if ACTIVE:", f"        {general}"]
    lines += [f"    {line}" for line in head]
    if ov.is_composite:
        own["compose"] = ov.compose
        made = f"compose(*{flat})"
        if any(r.is_list and r.is_tensor for r in schema.returns):
            own["listed"], made = _listed, f"listed({made})"
        lines += _guarded(f"return {made}", flat)
    else:
        own["kernel"] = ov.kernel
        if packet._inplace:
            lines += _may_write(tensors, lists, general)
            if ov.op.fill is not None:
                own["fill"], own["filled"] = ov.op.fill, surface.filled
                raw = [f"a{i}" if i in tensors else f"x{i}" for i in range(len(schema.args))]
                lines += [*_guarded(f"done = filled(x0, fill, ({', '.join(raw)},))", flat),
                          "    if done:", "        return x0"]
        lines += _kernel(ov, rule, places, tensors, lists, general, own)
        if packet._inplace:
            lines += _written(general)
        else:
            lines += _result(ov, tensors, lists, flat, own)
    return recorder.compiled("plan", lines, own, f"plan of {ov.name}")


def _argument(i, spec, text, value, own, general, ov, tensors, lists) -> list[str]:
    """Statements that make `x<i>` of what was given."""
    x = f"x{i}"
    if text is None or value is None and text is not None:
        if text is not None and value is None and spec.is_list and spec.default == []:
            value = []
        elif text is not None and not (spec.optional or spec.is_list and spec.optional_items):
            raise _No
        if value is None or value.__class__ in (bool, int, str):
            return [f"{x} = {value!r}"]
        own[f"default{i}"] = value
        return [f"{x} = default{i}" if type(value) is not list else f"{x} = list(default{i})"]
    if spec.is_tensor and not spec.is_list:
        if isinstance(value, Tensor):
            tensors.append(i)
            return [
                f"{x} = {text}",
                f"if {x}._link is not None and {x}._link.seen != {x}._cell.version:",
                f"    refresh({x})",
                f"a{i} = {x}._data",
                f"if a{i}.__class__ is not ndarray:",
                f"    {general}",
            ]
        if spec.name in ov.op.scalars and type(value) in (int, float):
            return [f"{x} = {text}"]
        raise _No
    if spec.is_list:
        return _list_argument(i, spec, text, value, general, lists)
    if type(value) not in _PLAIN.get(spec.base, ()) or type(value) is complex and i in ov.numbers:
        raise _No
    return [f"{x} = {text}"]


def _list_argument(i, spec, text, value, general, lists) -> list[str]:
    x = f"x{i}"
    if spec.base == "int":
        if isinstance(value, _Listed):
            if spec.size and spec.size > 1 and value.count == 1:
                raise _No
            return [f"{x} = {text}"]
        if type(value) is int and spec.size:
            return [f"{x} = [{text}] * {spec.size}"]
        empty = spec.default == []  # then it may be left out, so
        if type(value) not in (list, tuple) or not value and not empty:
            raise _No
        sized = spec.size is not None and spec.size > 1
        test = f"len({text}) != {spec.size}" if sized else f"not {text}"
        test = f"{test} or {{*map(type, {text})}} != INTS"
        return [
            f"if {text} and ({test}):" if empty else f"if {test}:",
            f"    {general}",
            f"{x} = list({text})",
        ]
    if spec.base == "Tensor" and type(value) in (list, tuple):
        lists.append(i)
        absent = [
            "    if v is None:",
            f"        {x}.append(None)",
            f"        a{i}.append(None)",
            "        continue",
        ]
        return [
            f"{x}, a{i}, tracked{i} = [], [], False",
            f"for v in {text}:",
            *(absent if spec.optional_items else ()),
            "    try:",
            "        if v._link is not None:",
            "            refresh(v)",
            "        a = v._data",
            "    except AttributeError:",
            f"        {general}",
            "    if a.__class__ is not ndarray:",
            f"        {general}",
            "    if v._edge is not None:",
            f"        tracked{i} = True",
            f"    {x}.append(v)",
            f"    a{i}.append(a)",
            f"if not {x}:",
            f"    {general}",
        ]
    raise _No


def _guarded(statement: str, flat: str) -> list[str]:
    """A statement whose errors are put into our words."""
    return [
        "    try:",
        f"        {statement}",
        "    except Exception as error:",
        f"        shown = failure(ov, {flat}, error)",
        "        if shown is error:",
        "            raise",
        "        raise shown from error",
    ]


def _kernel(ov, rule: str, places, tensors, lists, general, own) -> list[str]:
    """Statements that compute `r`."""
    schema = ov.schema
    values = [
        f"a{i}" if i in tensors or i in lists else f"x{i}" for i in range(len(schema.args))
    ]
    flat = f"({''.join(f'x{i}, ' for i in range(len(schema.args)))})"
    lines, dtype = [], None
    if not tensors and not lists:  # a creation operator: on the CPU, unless it says otherwise
        test = "state.fake"
        for i, spec in enumerate(schema.args):
            if spec.base == "Device" and places[i][0] is not None and places[i][1] is not None:
                test += f" or x{i}.type != 'cpu'"
        lines += [f"    if {test}:", f"        {general}"]
    alike = [i for i, _ in ov.alike if i in tensors]
    for i in alike[1:]:
        lines += [f"    if a{i}.dtype is not a{alike[0]}.dtype:", f"        {general}"]
    keeps = rule == "keep" or rule == "same" and ov.is_view
    if keeps and ov.real_only and tensors:
        lines += [f"    if a{tensors[0]}.dtype in COMPLEX:", f"        {general}"]
    if not keeps:
        promoting = [i for i in tensors if i in ov.promoted] if rule != "same" else []
        first = promoting[0] if promoting else tensors[0] if tensors else None
        if first is None or lists and rule in _PROMOTING and set(lists) & set(ov.promoted):
            if lists and rule in _PROMOTING:
                return _promoting_lists(ov, tensors, lists, general, values, flat, own)
            if rule != "same":
                raise _No
        if first is not None:
            lines.append(f"    d = a{first}.dtype")
        if rule == "same":
            if first is not None:
                lines += [f"    if d in {'ODD' if ov.real_only else 'HALF'}:", f"        {general}"]
                if ov.dtype_rule is None and len(schema.returns) == 1:
                    dtype = "d"
            elif lists:
                if schema.args[lists[0]].optional_items:
                    raise _No
                lines += [f"    if a{lists[0]}[0].dtype in HALF:", f"        {general}"]
        else:
            if ov.dtype_rule is not None:
                raise _No
            given = [places[i][1] for i in ov.promoted if i not in tensors]
            if rule in ("default", "bool") and not any(v is not None for v in given):
                test = "d not in REAL"  # one dtype is what it is
            else:  # whole numbers stay what they are beside whole numbers
                whole = rule in ("default", "bool") and all(type(v) is int for v in given)
                test = f"d is not F32 and d is not F64{' and d is not I64' if whole else ''}"
            lines += [f"    if {test}:", f"        {general}"]
            for i in tensors:
                if i in ov.promoted and i != first:
                    lines += [f"    if a{i}.dtype is not d:", f"        {general}"]
                elif i not in ov.promoted and i == first:
                    raise _No
            for i in ov.promoted:
                if i not in tensors and places[i][1] is not None:
                    if type(places[i][1]) not in (int, float):
                        raise _No
                    values[i] = f"asarray(x{i}, d)"
            if ov.check is not None:
                own["check"] = ov.check
                raw = [f"a{i}" if i in tensors or i in lists else f"x{i}"
                       for i in range(len(schema.args))]
                lines += _guarded(f"check({', '.join(raw)})", flat)
            dtype = "BOOL" if rule == "bool" else "d"
    lines += _guarded(f"r = kernel(np, {', '.join(values)})", flat)
    if dtype is None and _several(ov):
        pass  # each result is looked at when it is wrapped
    elif dtype is None:
        lines += ["    if r.__class__ is not ndarray:", "        r = arrays_only(np, r)"]
    elif len(schema.returns) == 1 and not schema.returns[0].is_list:
        lines += [
            f"    if r.__class__ is not ndarray or r.dtype is not {dtype}:",
            f"        r = finish(np, r, {dtype})",
        ]
    else:
        lines.append(f"    r = finish(np, r, {dtype})")
    return lines + _rows(ov)


def _may_write(tensors: list, lists: list, general: str) -> list[str]:
    """Statements that leave every write that is recorded or might be refused to the general way."""
    if 0 not in tensors:
        raise _No
    tracked = [f"x{i}._edge is not None" for i in tensors] + [f"tracked{i}" for i in lists]
    tracked.append("k is not None and (k.__class__ is not Link or k.base._edge is not None)")
    return [
        "    k = x0._link",
        f"    if ({' or '.join(tracked)}) and (not GRADOFF or state.record[0]):",
        f"        {general}",
        "    if 0 in a0.strides or x0._cell is INFERENCE:",
        f"        {general}",
    ]


def _written(general: str) -> list[str]:
    """Statements that put `r` into the first argument."""
    return [
        "    if r.shape != a0.shape or r.dtype is not a0.dtype:",
        f"        {general}",
        "    bump(x0)",  # first: an interrupt between the two must not hide the write
        "    try:",
        "        copyto(a0, r)",
        "    except ValueError:",  # memory that must not be written
        f"        {general}",
        "    return x0",
    ]


def _promoting_lists(ov, tensors, lists, general, values, flat, own) -> list[str]:
    """`cat` and the like: all of one floating dtype, or the general way."""
    if ov.dtype_rule is not None or ov.op.promote == "bool" or len(lists) != 1 or tensors:
        raise _No
    (i,) = lists
    if ov.schema.args[i].optional_items:
        raise _No
    lines = [
        f"    d = a{i}[0].dtype",
        "    if d is not F32 and d is not F64:",
        f"        {general}",
        f"    for a in a{i}:",
        "        if a.dtype is not d:",
        f"            {general}",
    ]
    if ov.check is not None:
        own["check"] = ov.check
        lines += _guarded(f"check({', '.join(values)})", flat)
    lines += _guarded(f"r = kernel(np, {', '.join(values)})", flat)
    return [*lines, "    r = finish(np, r, d)", *_rows(ov)]


def _rows(ov) -> list[str]:
    """Statements that put a result into row-major order, where the operator promises it."""
    if not ov.in_rows:
        return []
    returns = ov.schema.returns
    if len(returns) == 1 and not returns[0].is_list:
        return ["    if r.ndim > 1 and not r.flags.c_contiguous:", "        r = r.copy()"]
    return ["    r = in_rows(r)"]


def _result(ov, tensors, lists, flat: str, own: dict) -> list[str]:
    """Statements that wrap `r`, give it its history and return it."""
    returns = ov.schema.returns
    single = len(returns) == 1 and not returns[0].is_list and returns[0].is_tensor
    if single:
        lines = [
            "    t = new(Tensor)",
            "    t._data = r",
            "    t._link = t._cell = t._meta = t._edge = None",
        ]
    elif _several(ov):
        outs = recorder.outputs(ov)
        arrays = [f"r{i}" for i in range(len(outs))]
        lines = [f"    {', '.join(arrays)} = r"]
        lines += [
            f"    {t} = make({r}) if {r}.__class__ is ndarray else wrap(arrays_only(np, {r}))"
            for t, r in zip(outs, arrays)
        ]
        own["results"] = ov.result_class
        lines.append(f"    t = {'results' if ov.result_class else ''}({', '.join(outs)})")
    else:
        lines = ["    t = wrap_all(ov, r)"]
    tracked = [f"x{i}._edge is not None" for i in tensors] + [f"tracked{i}" for i in lists]
    lines += [
        "    if GRADOFF and not state.record[0]:",
        "        if state.inference:",
        "            mark_inference(t)",
    ]
    if tracked and not (ov.rule is None and ov.never_differentiable):
        lines.append(f"    elif {' or '.join(tracked)}:")
        if ov.rule is not None and recorder.is_simple(ov, ov.rule) and any(ov.rule.diff_outputs):
            if not single and not _several(ov):
                lines.append(f"        {', '.join(recorder.outputs(ov))} = t")
            own |= recorder.names_for(ov, ov.rule, tape)
            lines += [f"        {line}" for line in recorder.statements(ov, ov.rule, 3, tensors)]
        else:
            own["record"] = tape.record
            lines.append(f"        record(ov, {flat}, t, 0)")
    if ov.is_view:
        lines += _linked(ov, single, flat)
    return [*lines, "    return t"]


def _several(ov) -> bool:
    """Does the operator return several tensors, none of them in a list?"""
    returns = ov.schema.returns
    return len(returns) > 1 and all(r.is_tensor and not r.is_list for r in returns)


def _linked(ov, single: bool, flat: str) -> list[str]:
    """Statements that tie a view to its base, as `link_views` does in general."""
    general = f"link_views(ov, {flat}, t, 0)"
    if not single or ov.name == "as_strided" or ov.op.diff_outputs == (False,):
        return [f"    {general}"]
    rest = "".join(f"x{i}, " for i in range(1, len(ov.schema.args)))
    step = f"(ov, ({rest}), None)"
    return [
        "    c, l = x0._cell, x0._link",
        "    if REPLAYS or c is INFERENCE or GRADOFF and state.inference or (",
        "        l is not None and l.__class__ is not Link):",
        f"        {general}",
        "        return t",
        "    if c is None:",
        "        c = cell_of(x0)",
        "    k = new(Link)",
        "    if l is None:",
        "        k.base, k.of, k.multi, k.hidden = x0, a0, False, None",
        f"        k.steps = one_more(None, {step})",
        "    else:",
        "        k.base, k.of, k.multi, k.hidden = l.base, l.of, l.multi, l.hidden",
        f"        k.steps = one_more(l.steps, {step})",
        "    if GRADOFF and not state.record[0]:",
        '        k.hidden = "no_grad"',
        "        if x0._edge is not None:",
        "            t._edge = Blind()",
        "    k.seen = c.version",
        "    t._cell, t._link = c, k",
    ]


_COMPLEX = {np.dtype(np.complex64), np.dtype(np.complex128)}
space.update(
    F32=np.dtype(np.float32),
    F64=np.dtype(np.float64),
    I64=np.dtype(np.int64),
    REAL={np.dtype(c) for c in "fdlihbB?"},
    BOOL=np.dtype(np.bool_),
    HALF=_HALF,
    COMPLEX=_COMPLEX,
    ODD={*_HALF, *_COMPLEX},
    INTS={int},
    INFERENCE=INFERENCE,
    Tensor=Tensor,
    ndarray=np.ndarray,
    np=np,
    asarray=np.asarray,
    arrays_only=_arrays_only,
    Blind=tape.Blind,
    Link=Link,
    one_more=one_more,
    bump=surface.bump,
    copyto=np.copyto,
    finish=_finish,
    in_rows=in_rows,
    failure=stack.failure,
    link_views=surface.link_views,
    mark_inference=surface.mark_inference,
    new=object.__new__,
    refresh=surface.refresh,
    state=state,
    wrap=wrap,
    wrap_all=wrap_all,
)
