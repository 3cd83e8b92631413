"""What pointwise operators of the graph become. Rules take the builder, the node's example
value, and the call's arguments with graph nodes replaced by refs. Read `expressions.py` for
the C text.
"""

from __future__ import annotations

import ctypes
import math
import re

from ..array.dtype import default, float64
from .builder import Builder, Unsupported, broadcast
from .expressions import wrapped
from .ir import UNARY, Ref
from .lower import dtype_code, shape_of
from .number import Number

_RANK = {"b": 0, "u": 1, "i": 2, "l": 3, "f": 4, "d": 5}
_KIND = {"b": 0, "u": 1, "i": 1, "l": 1, "f": 2, "d": 2}


def promoted(*args: object) -> str:
    """Common type of operands: dimensions count before scalars, tensors before Python numbers."""
    real = "d" if default() is float64 else "f"
    best = ["", "", ""]  # tensors with dims, 0-d tensors, numbers
    for a in args:
        if isinstance(a, Ref):
            slot, code = (0 if a.shape else 1), a.dtype
        else:
            whole = a.kind is int if isinstance(a, Number) else isinstance(a, int)
            slot, code = 2, "b" if isinstance(a, bool) else "l" if whole else real
        if not best[slot] or _RANK[code] > _RANK[best[slot]]:
            best[slot] = code
    out = ""
    for code in best:
        if code and (not out or _KIND[code] > _KIND[out]):
            out = code
    return out


def binary(op: str):
    def rule(b: Builder, ex: object, x: object, y: object, alpha: float = 1) -> Ref:
        t = dtype_code(ex)
        if t == "b":
            if op not in ("add", "mul") or alpha != 1:
                raise Unsupported(op)
            return b.pointwise("or" if op == "add" else "and", x, y, dtype="b")
        if alpha != 1:
            y = b.pointwise("mul", y, alpha, dtype=t) if isinstance(y, Ref) else y * alpha
        return b.pointwise(op, x, y, dtype=t, shape=shape_of(ex))

    return rule


def rsub(b: Builder, ex: object, x: object, y: object, alpha: float = 1) -> Ref:
    return binary("sub")(b, ex, y, x, alpha)


def div(b: Builder, ex: object, x: object, y: object, rounding_mode: str | None = None) -> Ref:
    t = dtype_code(ex)
    if t in "il" and type(y) is int and wrapped(y, t) > 0 and rounding_mode == "floor":
        q = b.pointwise("div", x, y, dtype=t)
        below = b.pointwise("gt", b.pointwise("mul", q, y, dtype=t), x, dtype="b", ct=t)
        return b.pointwise("where", below, b.pointwise("sub", q, 1, dtype=t), q, dtype=t)
    if t not in "fd":
        raise Unsupported("integer division")
    q = b.pointwise("div", x, y, dtype=t, shape=shape_of(ex))
    if rounding_mode is None:
        return q
    return _floored(b, x, y, q, t) if rounding_mode == "floor" else b.pointwise("trunc", q, dtype=t)


def _floored(b: Builder, x: object, y: object, q: Ref, t: str) -> Ref:
    """x // y as Python has it: from the remainder, for the quotient may be rounded past a number.

    The quotient itself where y is zero.
    """
    if not isinstance(y, (Ref, int, float)):
        raise Unsupported("a divisor that only a call tells")
    if t == "f" and not isinstance(y, Ref):
        y = ctypes.c_float(y).value  # zero may be what is left of it

    def made(op: str, *args: object, **kw: object) -> Ref:
        return b.pointwise(op, *args, **{"dtype": t, **kw})

    rest = made("fmod", x, y)
    whole = made("div", made("sub", x, rest), y)
    other = made("lt", made("mul", made("sign", rest), made("sign", y) if isinstance(y, Ref)
                            else (y > 0) - (y < 0)), 0, dtype="b", ct=t)
    whole = made("where", other, made("sub", whole, 1), whole)
    down = made("floor", whole)
    past = made("gt", made("sub", whole, down), 0.5, dtype="b", ct=t)
    down = made("where", past, made("add", down, 1), down)
    zero = made("eq", y, 0, dtype="b", ct=t) if isinstance(y, Ref) else y == 0
    if isinstance(zero, Ref):
        return made("where", zero, q, down)
    return q if zero else down


def compare(op: str):
    def rule(b: Builder, ex: object, x: object, y: object) -> Ref:
        ct = promoted(x, y)  # a bool in a vector is 0 or -1: not in the order of numbers
        return b.pointwise(op, x, y, dtype="b", ct="i" if ct == "b" else ct, shape=shape_of(ex))

    return rule


def unary(op: str, floats: bool = True):
    def rule(b: Builder, ex: object, x: Ref) -> Ref:
        t = dtype_code(ex)
        if floats and t not in "fd":
            if op in ("floor", "ceil", "trunc", "rint"):
                return x if x.dtype == t else b.cast(x, t)
            raise Unsupported(op)
        if t == "b":
            raise Unsupported(op)
        return b.pointwise(op, x, dtype=t)

    return rule


def logical(op: str):
    def rule(b: Builder, ex: object, x: object, y: object = None) -> Ref:
        parts = [truth(b, a) for a in ((x,) if y is None else (x, y))]
        return b.pointwise(op, *parts, dtype="b", shape=shape_of(ex))

    return rule


def truth(b: Builder, a: object) -> object:
    """An argument as a bool."""
    if not isinstance(a, Ref):
        return bool(a)
    return a if a.dtype == "b" else b.pointwise("ne", a, 0, dtype="b", ct=a.dtype)


def bitwise(op: str):
    def rule(b: Builder, ex: object, *args: object) -> Ref:
        t = dtype_code(ex)
        if t in "fd":
            raise Unsupported("bits of real numbers: the kernel says so")
        name = op if t == "b" else {"and": "iand", "or": "ior", "xor": "ixor", "not": "inot"}[op]
        return b.pointwise(name, *args, dtype=t, shape=shape_of(ex))

    return rule


def where(b: Builder, ex: object, c: Ref, x: object, y: object) -> Ref:
    return b.pointwise("where", truth(b, c), x, y, dtype=dtype_code(ex), shape=shape_of(ex))


def masked_fill(b: Builder, ex: object, x: Ref, mask: Ref, value: object) -> Ref:
    return where(b, ex, mask, value, x)


def clamp(
    b: Builder, ex: object, x: Ref, low: object = None, high: object = None, **kw: object
) -> Ref:
    low, high = kw.get("min", low), kw.get("max", high)
    t, out = dtype_code(ex), x
    if t == "b":
        raise Unsupported("bounds of bools")
    for bound, op, of_tensor in ((low, "clampmin", "max"), (high, "clampmax", "min")):
        if bound is not None:  # a bound that is NaN makes NaN, and so may the elements of a tensor
            op = of_tensor if isinstance(bound, Ref) else "add" if bound != bound else op
            out = b.pointwise(op, out, bound, dtype=t, shape=shape_of(ex))
    return out


def clamp_min(b: Builder, ex: object, x: Ref, low: object) -> Ref:
    return clamp(b, ex, x, low)


def clamp_max(b: Builder, ex: object, x: Ref, high: object) -> Ref:
    return clamp(b, ex, x, None, high)


def power(b: Builder, x: Ref, n: float, t: str) -> Ref:
    """x**n for a number n, by multiplication and roots where that is exact enough."""

    def times(p: object, q: object) -> Ref:
        return b.pointwise("mul", p, q, dtype=t)

    if n == 0:
        return b.full(x.shape, 1.0 if t in "fd" else 1, t)
    if 1 <= abs(n) <= 8 and n == int(n) and (n > 0 or t in "fd"):
        bits, out, base = int(abs(n)), None, x if x.dtype == t else b.cast(x, t)
        while bits:
            if bits & 1:
                out = base if out is None else times(out, base)
            bits >>= 1
            if bits:
                base = times(base, base)
        out = b.pointwise("recip", out, dtype=t) if n < 0 else out
        return out
    if t not in "fd":
        raise Unsupported("integer power")
    if n in (0.5, -0.5):
        return b.pointwise("sqrt" if n > 0 else "rsqrt", x, dtype=t)
    if abs(n) < 8 and 2 * n == int(2 * n):  # x^k sqrt(x); of -inf there is a power, but no root
        root = b.pointwise("sqrt", x, dtype=t)
        least = b.pointwise("eq", x, -math.inf, dtype="b", ct=t)
        root = b.pointwise("where", least, math.inf, root, dtype=t)
        out = b.pointwise("abs", times(power(b, x, int(abs(n)), t), root), dtype=t)
        return out if n > 0 else b.pointwise("recip", out, dtype=t)
    return b.pointwise("pow", x, n, dtype=t)


def pow(b: Builder, ex: object, x: object, n: object) -> Ref:
    t = dtype_code(ex)
    if isinstance(x, Ref) and isinstance(n, (int, float)):
        return power(b, x, n, t)
    if t not in "fd":
        raise Unsupported("integer power")
    if isinstance(x, (int, float)) and x == 2:
        return b.pointwise("exp2", n, dtype=t, shape=shape_of(ex))
    return b.pointwise("pow", x, n, dtype=t, shape=shape_of(ex))


def copy(b: Builder, ex: object, x: Ref, *args: object, **kw: object) -> Ref:
    return x  # values never change; outputs that must not share memory are copied in the end


def to(b: Builder, ex: object, x: Ref, *args: object, **kw: object) -> Ref:
    t = dtype_code(ex)
    return b.cast(x, t) if x.dtype != t else x


def fill(number: object):
    def rule(b: Builder, ex: object, *args: object, **kw: object) -> Ref:
        value = number
        if number == "full":
            value = kw["fill_value"] if "fill_value" in kw else args[1]
        elif number == "scalar":
            value = args[0]
        if isinstance(value, Ref):
            raise Unsupported("fill from a tensor")
        return b.full(shape_of(ex), value, dtype_code(ex))

    return rule


def fill_tensor(b: Builder, ex: object, x: Ref, value: object) -> Ref:
    if isinstance(value, Ref):
        return b.pointwise("copy", b.reshape(value, ()), dtype=dtype_code(ex), shape=shape_of(ex))
    return b.full(shape_of(ex), value, dtype_code(ex))


def arange(b: Builder, ex: object, *args: object, **kw: object) -> Ref:
    start = kw.get("start", args[0] if len(args) > 1 else 0)
    step = kw.get("step", args[2] if len(args) > 2 else 1)
    t = dtype_code(ex)
    if t not in "ilfd" or (t in "il" and not all(isinstance(v, int) for v in (start, step))):
        raise Unsupported("arange of this type")
    if t == "f" and not all(float(v).is_integer() for v in (start, step)):
        return b.cast(b.iota(shape_of(ex), 0, "d", start, step), t)  # eager counts in float64 too
    return b.iota(shape_of(ex), 0, t, start, step)


def lerp(b: Builder, ex: object, x: Ref, y: Ref, w: object) -> Ref:
    t = dtype_code(ex)
    d = b.pointwise("sub", y, x, dtype=t)
    return b.pointwise("add", x, b.pointwise("mul", d, w, dtype=t), dtype=t)


def addc(op: str):
    def rule(b: Builder, ex: object, x: Ref, p: Ref, q: Ref, value: float = 1) -> Ref:
        t = dtype_code(ex)
        v = b.pointwise(op, p, q, dtype=t)
        return b.pointwise("add", x, b.pointwise("mul", v, value, dtype=t), dtype=t)

    return rule


def from_template(
    b: Builder, target: object, template: str, ex: object, args: list, kwargs: dict
) -> Ref | None:
    """An operator's own C expression (`op.c`), where it only needs arrays and numbers."""
    names = [a.name for a in target.schema.args]
    given = {**dict(zip(names, args)), **kwargs}
    wanted = list(dict.fromkeys(re.findall(r"\{(\w+)\}", template)))
    values = []
    for a in target.schema.args:
        if a.name in wanted and a.name not in given:
            given[a.name] = a.default
    for name in wanted:
        v = given.get(name)
        if not isinstance(v, (Ref, int, float)) or "?" in template:
            return None
        values.append(v)
    if set(given) - set(wanted) and any(
        isinstance(given[n], Ref) for n in set(given) - set(wanted)
    ):
        return None
    t, shape = dtype_code(ex), shape_of(ex)
    if t not in "fd" or any(isinstance(v, Ref) and v.dtype not in "fdil" for v in values):
        return None
    if broadcast([v.shape for v in values if isinstance(v, Ref)]) != shape:
        return None
    if not known_template(template):
        return None
    for i, name in enumerate(wanted):
        template = template.replace("{" + name + "}", f"<{i}>")
    return b.pointwise("template", *values, dtype=t, shape=shape, text=template)


def isinf(b: Builder, ex: object, x: Ref) -> Ref:
    if x.dtype not in "fd":
        return b.full(x.shape, False, "b")
    size = b.pointwise("abs", x, dtype=x.dtype)
    return b.pointwise("eq", size, float("inf"), dtype="b", ct=x.dtype)


def isnan(b: Builder, ex: object, x: Ref) -> Ref:
    return b.pointwise("ne", x, x, dtype="b", ct=x.dtype)


def modulo(op: str):
    def rule(b: Builder, ex: object, x: object, y: object) -> Ref:
        t = dtype_code(ex)
        if t not in "fd":
            raise Unsupported("remainders of whole numbers")
        return b.pointwise(op, x, y, dtype=t, shape=shape_of(ex))

    return rule


_FUNCTIONS = {
    *UNARY, "sinh", "cosh", "asinh", "acosh", "atanh", "atan", "asin", "acos", "atan2", "abs",
    "rint", "pow", "max", "min",
}


def known_template(template: str) -> bool:
    """Whether an expression uses only the functions of vmath.h."""
    bare = re.sub(r"\{\w+\}", "", template)
    return all(name in _FUNCTIONS for name in re.findall(r"[A-Za-z_]\w*", bare))
