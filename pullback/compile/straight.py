"""Small bodies of loops as straight code: a C variable for each element of each value.

States of a few numbers (a filter, an equation of motion) are no work for vectors, walks and
buffers: what costs there is each store and each load.  A body all of whose values have few elements
is written without any: what is carried stays in registers, what does not change from step to step
is computed in front of the loop.  Functions such as `exp` are computed for several elements at
once.  Read `loop_code.py` first.
"""

from __future__ import annotations

import itertools
import re
from math import prod
from typing import TYPE_CHECKING, Any

from .emit import _ENDS_IN_PRODUCT, _NO_ADDITION, combine, neutral
from .expressions import CALLS, REGISTER, SCALAR, Operand, Writer, literal
from .ir import CTYPES, SIZES, Const, Ref, Value
from .number import varies
from .rounding import fusible

if TYPE_CHECKING:
    from .loops import Body

_MOST = 16  # elements of a value
_ALL = 1500  # elements of all of them
_TOGETHER = CALLS | {"template"}


def fits(body: Body) -> bool:
    """Is a body small, and made of what can be written this way?"""
    lowered, order = body.lowered, body.schedule.order
    inputs = {lowered.inputs[k] for k, _ in body.read}
    sizes = [v.numel for v in (*order, *inputs)]
    if any(map(varies, sizes)) or not sizes or max(sizes) > _MOST or sum(sizes) > _ALL:
        return False
    if len(body.schedule.items) < 2:
        return False  # one kernel with vectors is as good
    return all(map(_is_plain, order))


def _is_plain(v: Value) -> bool:
    if v.dtype not in CTYPES or varies(*v.shape):
        return False
    if v.kind == "pointwise":
        return v.op not in ("gather", "bounded")
    if v.kind == "call":
        return v.call.kind == "gemm"
    return v.kind in ("input", "reduce", "join")


class Straight:
    """The statements of a body: `once`, before all steps, and `step`."""

    def __init__(self, body: Body, vector_bytes: int, taken: itertools.count):
        self.body, self.lanes, self.numbers = body, vector_bytes // 8, taken
        self.writer = Writer(self.lanes)
        self.once: list[str] = []
        self.step: list[str] = []
        self.lines = self.step  # those being written
        self.names: dict[Value, list[str]] = {}
        self.steady: set[Value] = set()  # the same in all steps
        self.rounded = self._rounded()

    def _rounded(self) -> set[Value]:
        """Products that are rounded before an addition reads them: see `emit.py`."""
        order = self.body.schedule.order
        fused = fusible(order)
        return {a.value for v in order
                if v.kind != "call" and v.op not in _NO_ADDITION and v not in fused
                for a in v.args if isinstance(a, Ref) and a.value.op in _ENDS_IN_PRODUCT
                and a.value.kind == "pointwise" and a.value.dtype in "fd"}

    def name(self, base: str) -> str:
        """A C variable."""
        return f"{re.sub(r'[^A-Za-z0-9_]', '_', base)}_e{next(self.numbers)}"

    def input(self, k: int, address: str, steady: bool) -> list[str]:
        """Loads of an operand, which is at an address; returns the statements."""
        v = self.body.lowered.inputs[k]
        at, kind = self.name(v.name), SCALAR[v.dtype]
        lines = [f"const {CTYPES[v.dtype]} *{at} = (const void *)({address});"]
        names = self.names[v] = [self.name(v.name) for _ in range(v.numel)]
        test = " != 0" if v.dtype == "b" else ""
        lines += [f"{kind} {x} = {at}[{i}]{test};" for i, x in enumerate(names)]
        if steady:
            self.steady.add(v)
        return lines

    def compute(self) -> None:
        """All values, in the order of the graph."""
        for v in self.body.schedule.order:
            if v.kind == "input" or v in self.names or v.op == "const":
                continue
            refs = v.call.args if v.call is not None else v.args
            still = all(a.value in self.steady or a.value.op == "const"
                        for a in refs if isinstance(a, Ref))
            if still:
                self.steady.add(v)
            self.lines = self.once if still else self.step
            if v.kind == "pointwise" and v.op == "iota":
                start, step = v.attrs["start"], v.attrs["step"]
                self._keep(v, [literal(start + step * i, v.dtype) for i in range(v.numel)])
            elif v.kind == "pointwise":
                self._pointwise(v)
            elif v.kind == "reduce":
                self._reduce(v)
            elif v.kind == "join":
                self._join(v)
            else:
                self._product(v)

    def result(self, ref: Ref, address: str) -> list[str]:
        """Stores of a result."""
        at, t = self.name(ref.value.name), ref.dtype
        test = " != 0" if t == "b" else ""
        return [f"{CTYPES[t]} *{at} = (void *)({address});",
                *[f"{at}[{i}] = {x}{test};" for i, x in enumerate(self.elements(ref))]]

    # ---- elements -----------------------------------------------------------------------------

    def elements(self, ref: Ref, code: str | None = None) -> list[str]:
        """The elements that a ref shows, in order; numbers are written as `code`."""
        if ref.value.op == "const":
            return [literal(ref.value.attrs["number"], code or ref.dtype)] * prod(ref.shape)
        names = self.names[ref.value]
        return [names[ref.offset + sum(i * s for i, s in zip(index, ref.strides))]
                for index in itertools.product(*map(range, ref.shape))]

    def _keep(self, v: Value, texts: list[str], rounded: bool = False) -> None:
        names = self.names[v] = [self.name(v.name) for _ in texts]
        self.lines += [f"{SCALAR[v.dtype]} {x} = {text};" for x, text in zip(names, texts)]
        if rounded:
            self.lines += [f"PB_ROUNDED({x});" for x in names]

    def _pointwise(self, v: Value) -> None:
        columns: list[list[Operand]] = []
        for n, a in enumerate(v.args):
            t = "b" if v.op == "where" and n == 0 else v.ct
            if isinstance(a, Const) or a.value.op == "const":
                number = a.number if isinstance(a, Const) else a.value.attrs["number"]
                code = t if isinstance(a, Const) or v.op not in ("cast", "copy") else a.dtype
                columns.append([Operand(literal(number, code), code, False, True)] * v.numel)
                continue
            found = [Operand(x, a.dtype, False) for x in self.elements(a)]
            if v.op not in ("cast", "copy"):
                found = [self.writer.convert(x, t) for x in found]
            columns.append(found)
        rounded = v in self.rounded
        if v.numel > 1 and v.op in _TOGETHER and v.ct == v.dtype and v.dtype in "fd":
            self._together(v, columns)
            return
        self._keep(v, [self.writer.apply(v.op, v.ct, v.dtype, list(args), v.attrs).text
                       for args in zip(*columns)], rounded)

    def _together(self, v: Value, columns: list[list[Operand]]) -> None:
        """A function that is computed for a vector of elements at once."""
        kind, texts = f"{REGISTER[v.dtype]}{self.lanes}", []
        for first in range(0, v.numel, self.lanes):
            args = []
            for column in columns:
                part = column[first:first + self.lanes]
                if part[0].literal:
                    args.append(part[0])
                    continue
                name = self.name(v.name)
                filled = [*part, *part[-1:] * (self.lanes - len(part))]
                self.lines.append(f"{kind} {name} = {{{', '.join(x.text for x in filled)}}};")
                args.append(Operand(name, v.dtype, True))
            made = self.writer.apply(v.op, v.ct, v.dtype, args, v.attrs)
            name = self.name(v.name)
            self.lines.append(f"{kind} {name} = {self.writer.splat(made)};")
            texts += [f"{name}[{i}]" for i in range(min(self.lanes, v.numel - first))]
        self._keep(v, texts, v in self.rounded)

    def _reduce(self, v: Value) -> None:
        """Elements are added in the order in which they stand."""
        (look,), a = v.args, v.attrs
        given = [self.writer.convert(Operand(x, look.dtype, False), v.dtype).text
                 for x in self.elements(look)]
        texts = []
        for o in range(v.numel):
            if a["how"] == "full":
                part = given
            elif a["how"] == "row":
                part = given[o * a["columns"]:(o + 1) * a["columns"]]
            else:  # col is mid with nothing in front
                front, column = divmod(o, a["columns"])
                part = given[front * a["count"] * a["columns"] + column:][
                    :a["count"] * a["columns"]:a["columns"]]
            total = part[0] if part else neutral(v.op, v.dtype)
            for x in part[1:]:
                name = self.name(v.name)
                self.lines.append(
                    f"{SCALAR[v.dtype]} {name} = {combine(v.op, v.dtype, total, x, 0)};")
                total = name
            texts.append(total)
        self._keep(v, texts)

    def _join(self, v: Value) -> None:
        texts: list[str] = [""] * v.numel
        for ref, (offset, strides) in zip(v.args, v.attrs["places"]):
            places = [offset + sum(i * s for i, s in zip(index, strides))
                      for index in itertools.product(*map(range, ref.shape))]
            given = [self.writer.convert(Operand(x, ref.dtype, False), v.dtype).text
                     for x in self.elements(ref)]
            for place, x in zip(places, given):
                texts[place] = x
        self._keep(v, texts)

    def _product(self, v: Value) -> None:
        """A product of matrices."""
        call, a = v.call, v.call.attrs
        left, right = call.args[:2]
        texts = [""] * v.numel

        def at(ref: Ref, place: int) -> str:
            if ref.value.op == "const":
                return literal(ref.value.attrs["number"], ref.dtype)
            return self.names[ref.value][ref.offset + place]

        for b, m, n in itertools.product(range(a["batch"]), range(a["m"]), range(a["n"])):
            terms = [f"{at(left, b * a['ab'] + m * a['am'] + k * a['ak'])} * "
                     f"{at(right, b * a['bb'] + k * a['bk'] + n * a['bn'])}"
                     for k in range(a["k"])]
            total = " + ".join(terms) or literal(0, v.dtype)
            if a["alpha"] != 1:
                total = f"{literal(a['alpha'], v.dtype)} * ({total})"
            if len(call.args) > 2:
                place = b * a["sb"] + m * a["sm"] + n * a["sn"]
                total = f"{at(call.args[2], place)} + {total}"
            texts[b * a["cb"] + m * a["cm"] + n] = total
        self._keep(v, texts)


def bytes_of(ref: Ref) -> Any:
    """Bytes of a value."""
    return ref.value.numel * SIZES[ref.dtype]
