"""C text of pointwise operations, for vectors and for single numbers.

Text is made from operands that know whether they are vectors; a single number among vectors is
widened only where C needs it. Read `runtime/vec.h` and `runtime/vmath.h` for the functions named
here.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import numpy

from .ir import NAMES, UNARY
from .number import Number

REGISTER = {"f": "vf", "d": "vd", "i": "vi", "l": "vl", "b": "vi", "u": "vi"}
SCALAR = {"f": "float", "d": "double", "i": "int32_t", "l": "int64_t", "b": "int", "u": "int"}

INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "iand": "&", "ior": "|", "ixor": "^"}
COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
CALLS = {*UNARY, "rint", "abs", "pow", "max", "min", "fmod", "remainder"}


class Operand(NamedTuple):
    """A C expression (a name or a literal), its element letter, and whether it is a vector."""

    text: str
    code: str
    vec: bool
    literal: bool = False


def wrapped(n: int, code: str) -> int:
    """An integer as the elements of a type hold it: too large a one loses its upper bits."""
    if code == "u":
        return n & 255
    half = 2**63 if code == "l" else 2**31
    return (n + half) % (2 * half) - half


def held(number: float | int | bool, code: str, source: str = "d") -> float | int | bool:
    """A number as the elements of a type hold it; `source` is the type that a real one has."""
    if code in "iul" and not isinstance(number, float):
        return wrapped(int(number), code)
    with numpy.errstate(all="ignore"):
        kind = NAMES[source] if isinstance(number, float) else None
        return numpy.asarray(number, kind).astype(NAMES[code]).item()


def literal(number: float | int | bool, code: str) -> str:
    """A number as C text of an element type."""
    if isinstance(number, Number):
        return number.c(code)
    x = held(number, code)
    if code == "b":
        return "1" if x else "0"
    if code in "fd":
        if math.isnan(x):
            return "PB_NAN"
        if math.isinf(x):
            return "PB_INF" if x > 0 else "(-PB_INF)"
        text = f"{numpy.float32(x)!s}" if code == "f" else repr(x)
        text += "" if any(c in text for c in ".en") else ".0"
        text += "f" if code == "f" else ""
        return f"({text})" if text.startswith("-") else text
    if x == -(2**63):
        return "(-INT64_C(9223372036854775807) - 1)"
    text = f"{x}LL" if code == "l" or x == -(2**31) else str(x)
    return f"({text})" if x < 0 else text


class Writer:
    """Expressions for one lane count."""

    def __init__(self, lanes: int):
        self.L = lanes

    def type_of(self, code: str, vec: bool) -> str:
        return f"{REGISTER[code]}{self.L}" if vec else SCALAR[code]

    def splat(self, a: Operand) -> str:
        """As a vector, whatever it was."""
        return a.text if a.vec else f"splat_{a.code}{self.L}({a.text})"

    def convert(self, a: Operand, to: str) -> Operand:
        """Another element type; literals are written anew by the caller."""
        if a.code == to:
            return a
        if not a.vec:
            if to == "b":
                return Operand(f"({a.text} != 0)", to, False)
            text = a.text
            if a.code in "fd" and to in "ilu":
                text = f"whole_{a.code}{'l' if to == 'l' else 'i'}({text})"
            byte = "(uint8_t)" if to == "u" else ""  # of vectors, too, the lowest bits
            return Operand(f"({SCALAR[to]}){byte}{text}", to, False)
        kind, x = f"{REGISTER[to]}{self.L}", a.text
        if to == "b":
            return Operand(self._mask(f"({x} != 0)", a.code), to, True)
        if a.code == "b":
            if to in "iu":
                return Operand(f"({x} & 1)", to, True)
            return Operand(f"__builtin_convertvector({x} & 1, {kind})", to, True)
        if to == "u":
            whole = x if a.code == "i" else f"__builtin_convertvector({x}, vi{self.L})"
            return Operand(f"({whole} & 255)", to, True)
        if a.code == "u" and to == "i":
            return Operand(x, to, True)
        return Operand(f"__builtin_convertvector({x}, {kind})", to, True)

    def _mask(self, text: str, code: str) -> str:
        return f"narrow{self.L}{text}" if code in "dl" else text

    def apply(self, op: str, ct: str, code: str, args: list[Operand], attrs: dict) -> Operand:
        """One operation; arguments have type `ct` already (conditions: b)."""
        vec = any(a.vec for a in args)
        if op == "template":
            return Operand(self._template(attrs["text"], ct, args, vec), code, vec)
        if op in ("copy", "cast"):
            return self.convert(args[0], code)
        if not vec:
            return Operand(self._scalar(op, ct, args), code, False)
        return Operand(self._vector(op, ct, args), code, True)

    # ---- vectors -------------------------------------------------------------------------------

    def _vector(self, op: str, t: str, args: list[Operand]) -> str:
        L, x = self.L, [a.text for a in args]
        wide = [self.splat(a) for a in args]
        if op in INFIX:
            text = f"{x[0]} {INFIX[op]} {x[1]}"
            return f"({text}) & 255" if t == "u" else text
        if op in COMPARE:
            return self._mask(f"({x[0]} {COMPARE[op]} {x[1]})", t)
        if op == "where":
            return f"sel_{'i' if t in 'bu' else t}{L}({wide[0]}, {wide[1]}, {wide[2]})"
        if op in ("and", "or", "xor"):
            return f"{wide[0]} {dict(zip(('and', 'or', 'xor'), '&|^'))[op]} {wide[1]}"
        if op in ("not", "inot"):
            return f"~{x[0]} & 255" if t == "u" else f"~{x[0]}"
        if op == "neg":
            return f"-{x[0]} & 255" if t == "u" else f"-{x[0]}"
        if op == "recip":
            return f"{literal(1, t)} / {x[0]}"
        letter = "i" if t == "u" else t
        if op == "relu":
            low = self._mask(f"({x[0]} <= 0)", t)
            return f"sel_{letter}{L}({low}, ({REGISTER[t]}{L}){{}}, {x[0]})"
        if op in ("clampmin", "clampmax"):
            sign = "<" if op == "clampmin" else ">"
            past = self._mask(f"({wide[0]} {sign} {x[1]})", t)
            return f"sel_{letter}{L}({past}, {wide[1]}, {wide[0]})"
        if op == "abs" and t in "ilu":
            return f"max_{letter}{L}({x[0]}, -{x[0]})"
        if op == "sign":
            up, down = self._mask(f"({x[0]} > 0)", t), self._mask(f"({x[0]} < 0)", t)
            return self.convert(Operand(f"({down} - {up})", "i", True), letter).text  # 0 of NaN
        if op in CALLS:
            return f"{op}_{letter}{L}({', '.join(wide)})"
        raise AssertionError(f"no C text for {op}")

    # ---- single numbers ------------------------------------------------------------------------

    def _scalar(self, op: str, t: str, args: list[Operand]) -> str:
        x = [a.text for a in args]
        if op in INFIX:
            text = f"{x[0]} {INFIX[op]} {x[1]}"
            return f"({text}) & 255" if t == "u" else text
        if op in COMPARE:
            return f"({x[0]} {COMPARE[op]} {x[1]})"
        if op == "where":
            return f"({x[0]} ? {x[1]} : {x[2]})"
        if op in ("and", "or", "xor"):
            return f"({x[0]} {dict(zip(('and', 'or', 'xor'), '&|^'))[op]} {x[1]})"
        if op == "not":
            return f"!{x[0]}"
        if op == "inot":
            return f"(~{x[0]} & 255)" if t == "u" else f"~{x[0]}"
        if op == "neg":
            return f"(-{x[0]} & 255)" if t == "u" else f"-{x[0]}"
        if op == "recip":
            return f"{literal(1, t)} / {x[0]}"
        if op == "relu":
            return f"({x[0]} <= 0 ? 0 : {x[0]})"
        if op == "clampmin":
            return f"({x[0]} < {x[1]} ? {x[1]} : {x[0]})"
        if op == "clampmax":
            return f"({x[0]} > {x[1]} ? {x[1]} : {x[0]})"
        if op == "abs" and t in "ilu":
            return f"({x[0]} < 0 ? -{x[0]} : {x[0]})"
        if op == "sign":
            return f"({SCALAR[t]})(({x[0]} > 0) - ({x[0]} < 0))"
        if op in ("max", "min"):
            sign = ">" if op == "max" else "<"
            return f"({x[0]} {sign} {x[1]} || {x[0]} != {x[0]} ? {x[0]} : {x[1]})"
        if op in CALLS:
            wide = ", ".join(f"splat_{t}{self.L}({a})" for a in x)
            return f"{op}_{t}{self.L}({wide})[0]"
        raise AssertionError(f"no C text for {op}")

    # ---- expressions of the operator table -----------------------------------------------------

    def _template(self, text: str, t: str, args: list[Operand], vec: bool) -> str:
        text = re.sub(
            r"(?<![\w.<])(\d+\.?\d*(?:[eE][-+]?\d+)?)(?![\w.>])",
            lambda m: literal(float(m.group(1)), t),
            text,
        )
        text = re.sub(r"\b([a-z]\w*)\(", lambda m: f"{m.group(1)}_{t}{self.L}(", text)
        for i, a in enumerate(args):
            text = text.replace(f"<{i}>", self.splat(a))
        return f"({text})" if vec else f"({text})[0]"
