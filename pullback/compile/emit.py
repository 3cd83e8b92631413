"""Kernels to C: one function per loop nest, and one that finishes its reductions.

The text is meant to be read: names come from the graph, a comment says which nodes a kernel
computes, and every vector statement is one operation. Read `walks.py` first; `unit.py` puts the
functions together.
"""

from __future__ import annotations

import re

from . import sound
from .expressions import COMPARE, SCALAR, Operand, Writer, literal
from .ir import CTYPES, SLOW, Const, Ref, Value
from .kernel import Kernel
from .nest import Key, Nest
from .number import rounded_up, suffixed
from .schedule import HEAVY
from .walks import Walks

_LIMIT = {
    "f": ("(-PB_INF)", "PB_INF"),
    "d": ("(-(double)PB_INF)", "(double)PB_INF"),
    "i": ("INT32_MIN", "INT32_MAX"),
    "l": ("INT64_MIN", "INT64_MAX"),
}


def neutral(op: str, code: str) -> str:
    """What a reduction starts from."""
    if op in ("max", "min"):
        return _LIMIT[code][0 if op == "max" else 1]
    return literal({"sum": 0, "prod": 1, "any": 0, "all": 1}[op], code)


def combine(op: str, code: str, a: str, b: str, lanes: int) -> str:
    """One step of a reduction on vectors (lanes > 0) or numbers."""
    if op in ("sum", "any"):
        return f"{a} {'+' if op == 'sum' else '|'} {b}"
    if op in ("prod", "all"):
        return f"{a} {'*' if op == 'prod' else '&'} {b}"
    if lanes:
        return f"{op}_{code}{lanes}({a}, {b})"
    sign = ">" if op == "max" else "<"
    return f"({a} {sign} {b} || {a} != {a} ? {a} : {b})"


_FOLDS = {"sum": "hsum", "prod": "hprod", "max": "hmax", "min": "hmin", "any": "hor", "all": "hand"}


def _as_value(a: Operand) -> Operand:
    """What came out of an operation: it may be a number, but nobody can write it anew."""
    return Operand(a.text, a.code, a.vec) if a.literal else a


# What the C compiler could fuse with a sum that follows, where nobody else reads it: a value must
# not depend on who reads it, for others compute it again and compare (places of maxima). Those that
# no addition reads in their kernel are as they are: a register that is named so (PB_ROUNDED) would
# keep the C compiler from simplifying. Sums along rows are no such additions: lanes add in an order
# of their own in any case, and the kernel that makes the sum is the only one.
_ENDS_IN_PRODUCT = {"mul", "pow", "template", "fmod", "remainder", *SLOW}
_NO_ADDITION = {"mul", "recip", *COMPARE}
_SEEN_THROUGH = {  # the C compiler may find that these change nothing, or only a sign
    "neg", "abs", "copy", "cast", "where", "relu", "clampmin", "clampmax", "max", "min", "div",
    "gather"}

_taken = re.compile(  # names in every kernel, and words of C
    "p|c|u|r|i|lo|hi|begin|end|pb|auto|break|case|char|const|continue|default|do|double|else|enum|"
    "extern|float|for|goto|if|inline|int|long|register|restrict|return|short|signed|sizeof|static|"
    "struct|switch|typedef|union|unsigned|void|volatile|while").fullmatch


def _added(kernel: Kernel, fusible: set[Value]) -> set[Value]:
    """Values of a kernel that additions read, or may once the C compiler has simplified; those
    that are fusible (`rounding.py`) do not count."""
    todo = [r.source.value for r in kernel.roots if r.value not in fusible and r.how != "store"]
    todo += [a.value for v in kernel.inlined
             if v.op not in _NO_ADDITION | _SEEN_THROUGH and v not in fusible
             for a in v.args if isinstance(a, Ref)]
    found: set[Value] = set()
    while todo:
        v = todo.pop()
        if v in found:
            continue
        found.add(v)
        if v in kernel.inlined and v.op in _SEEN_THROUGH:
            todo += [a.value for a in v.args if isinstance(a, Ref)]
    return found


class Emitter:
    """C text of one kernel. `slot` maps values to places in the table of buffers."""

    nest_class = Nest

    def __init__(
        self,
        kernel: Kernel,
        number: str,
        slot: dict[Value, int],
        vector_bytes: int,
        temporary,
        stream: dict[Value, bool],
        written: set[int] = frozenset(),
        numbers: int = 0,
        fusible: set[Value] = frozenset(),
    ):
        self.kernel, self.nest, self.slot = kernel, self.nest_class(kernel, vector_bytes), slot
        self.writer = Writer(self.nest.lanes)
        self.L = self.nest.lanes
        self.temporary = temporary  # bytes -> slot
        self.stream = stream
        self.written = written  # slots of inputs that are overwritten: one pointer for both
        self.numbers = numbers  # slot of those that depend on sizes
        self.used: set[str] = set()
        self.pointers: dict[int, str] = {}
        self.local: dict[int, int] = {0: 0}  # place in the graph's table -> place in the kernel's
        self.pointer_lines: list[str] = []
        self.once: list[str] = []  # before everything
        self.row: list[str] = []  # once per row, in front of the walk being written
        self.row_begin: list[str] = []  # of rows that differ: where they are,
        self.row_end: list[str] = []  # and what comes after all walks
        self.body: list[str] = []  # inside the walk
        self.chunk_start: list[str] = []
        self.chunk_end: list[str] = []
        self.finish: list[str] = []
        self.cache: list[dict] = [{}, {}, {}]  # by level; the last is cleared for every walk
        self.row_pointers: dict = {}
        self.walks = Walks(kernel, self.nest)
        kept = [key for keys in self.walks.stores for key in keys]
        self.scratch: dict[Key, str] = {key: self.fresh(f"{key[0].name}_row") for key in kept}
        self.walk = 0  # number of the one being written
        self.trace: list[tuple] = []  # what walks hand on, in the order of the text: see `sound.py`
        self.width = 0  # lanes of the body being written
        self.folded: dict[Value, str] = {}
        self.flops_weight = 0
        self.added = _added(kernel, fusible)
        names = [v.name for v in kernel.inlined if v.op not in ("const", "iota")]
        names += [r.value.name for r in kernel.roots]
        self.nodes = list(dict.fromkeys(re.sub(r"_\d+v$", "", n) for n in names))
        self.name = f"k{number}_" + "_".join(r.value.name for r in kernel.roots[:3])[:48]
        self.text = self._write()
        sound.check_walks(self.name, self.trace)

    def anonymous(self) -> str:
        """The text without names of the graph: kernels that agree in it are one function."""
        seen: dict[str, str] = {}

        def rename(m: re.Match) -> str:
            name = m.group()
            if name not in self.used and name not in (self.name, f"{self.name}_finish"):
                return name
            return seen.setdefault(name, f"n{len(seen)}")

        return re.sub(r"\b[A-Za-z_]\w*\b", rename, self.text[self.text.index("*/") :])

    # ---- names --------------------------------------------------------------------------------

    def fresh(self, base: str) -> str:
        base = re.sub(r"\W", "_", base)
        if base[:1].isdigit() or _taken(base):
            base = "v_" + base
        name, n = base, 1
        while name in self.used:
            n += 1
            name = f"{base}_{n}"
        self.used.add(name)
        return name

    def place(self, slot: int) -> int:
        """Number of a buffer among those that this kernel is given."""
        return self.local.setdefault(slot, len(self.local))

    def pointer(self, slot: int, code: str, name: str, const: bool) -> str:
        if slot not in self.pointers:
            name = self.pointers[slot] = self.fresh(name)
            kind = ("const " if const else "") + CTYPES[code]
            self.pointer_lines.append(f"{kind} *restrict {name} = p[{self.place(slot)}];")
        return self.pointers[slot]

    def value_pointer(self, v: Value, const: bool) -> str:
        const = const and self.slot[v] not in self.written
        return self.pointer(self.slot[v], v.dtype, v.name, const)

    def _define(self, level: int, base: str, a: Operand, rounded: bool = False) -> Operand:
        """Give an expression a name in the scope of its level; `rounded`: it is rounded here."""
        if re.fullmatch(r"\w+", a.text):
            return a
        name = self.fresh(base)
        lines = (self.once, self.row, self.body)[level]
        lines.append(f"{self.writer.type_of(a.code, a.vec)} {name} = {a.text};")
        if rounded:
            lines.append(f"PB_ROUNDED({name});")
        return Operand(name, a.code, a.vec)

    # ---- addresses -----------------------------------------------------------------------------

    def _terms(self, access: tuple, level: int) -> list[str]:
        """Offset, outer loops and indirect parts up to a level."""
        nest = self.nest
        strides, terms = nest.strides(access), []
        if access[0]:
            terms.append(str(access[0]))
        for j in range(nest.outer_count):
            if strides[j]:
                terms.append(f"o{j} * {strides[j]}" if strides[j] != 1 else f"o{j}")
        for i, s in nest.virtual(access):
            if nest.level(self.kernel.virtual[i][:2]) <= level:
                at = self._index(i).text
                terms.append(f"{at} * {s}" if s != 1 else at)
        return terms

    def _row_pointer(self, v: Value, access: tuple, const: bool) -> str:
        """Where a value's part for this row begins."""
        const = const and self.slot[v] not in self.written
        base = self.value_pointer(v, const)
        terms = self._terms(access, 1)
        if not terms:
            return base
        key = (self.slot[v], tuple(terms), const)
        if key not in self.row_pointers:
            name = self.fresh(f"{base}_r")
            kind = ("const " if const else "") + CTYPES[v.dtype]
            self.row.append(f"{kind} *restrict {name} = {base} + {' + '.join(terms)};")
            self.row_pointers[key] = name
        return self.row_pointers[key]

    def _inner_terms(self, access: tuple) -> tuple[list[str], int]:
        """Loops inside the row but the last, and the stride of the last."""
        nest = self.nest
        strides, terms = nest.strides(access), []
        for j in range(nest.outer_count, len(nest.sizes) - 1):
            if strides[j]:
                terms.append(f"j{j} * {strides[j]}" if strides[j] != 1 else f"j{j}")
        return terms, strides[-1]

    def _wide(self, access: tuple) -> tuple[list[tuple], list[tuple]]:
        """Indirect parts known inside of the row: those that differ between lanes, and others."""
        inside = [
            (self._index(i), s)
            for i, s in self.nest.virtual(access)
            if self.nest.level(self.kernel.virtual[i][:2]) == 2
        ]
        return [p for p in inside if p[0].vec], [p for p in inside if not p[0].vec]

    def _index(self, i: int) -> Operand:
        """A checked index, named in the scope of its level."""
        v, access, size, wrap = self.kernel.virtual[i]
        key = ("index", i)
        level = self.nest.level((v, access))
        if key in self.cache[level]:
            return self.cache[level][key]
        a = self.writer.convert(self.value((v, access)), "l")
        at = self._bounded(a, size, wrap, self.kernel.checks[self.kernel.virtual[i]])
        self.cache[level][key] = self._define(level, f"at_{v.name}", at)
        return self.cache[level][key]

    def _bounded(self, a: Operand, size: int, wrap: bool, check: int) -> Operand:
        if a.vec:
            text = f"bounded{self.L}({a.text}, {size}, {int(wrap)}, {self.width}, p[0], {check})"
        else:
            text = f"bounded1({a.text}, {size}, {int(wrap)}, p[0], {check})"
        return Operand(text, "l", a.vec)

    # ---- values --------------------------------------------------------------------------------

    def value(self, key: Key) -> Operand:
        """A name for a value, computing it in its scope when it is not there yet."""
        v = key[0]
        if v in self.kernel.own:
            self.trace.append(("use", v, 0, self.walk))
            return Operand(self.folded[v], v.dtype, False)
        if v.op == "const" and key not in self.kernel.loads:
            return Operand(literal(v.attrs["number"], v.dtype), v.dtype, False, True)
        level = self.nest.level(key)
        found = self.cache[level].get(key)
        if found is None:
            self._prepare(key)
            found = self.cache[level][key]
        return found

    def _prepare(self, key: Key) -> None:
        """Compute a value after all that it is made of, so that no expression is deep to follow."""
        todo: list[tuple[Key, bool]] = [(key, False)]
        while todo:
            key, ready = todo.pop()
            level = self.nest.level(key)
            if key in self.cache[level]:
                continue
            if ready:
                self.cache[level][key] = self._compute(key, level)
            else:
                todo.append((key, True))
                todo += [(k, False) for k in reversed(self._made_of(key, level))]

    def _made_of(self, key: Key, level: int) -> list[Key]:
        """The values that computing one asks for, but for those that always have a name."""
        if key in self.walks.loads[self.walk]:
            return []
        keys = self.nest.needs(key)
        if level == 2 and self.nest.narrow(key):
            keys = [k for k in keys if self.nest.level(k) < 2]
        return [k for k in keys if k[0] not in self.kernel.own
                and (k[0].op != "const" or k in self.kernel.loads)]

    def _compute(self, key: Key, level: int) -> Operand:
        v, access = key
        if key in self.walks.loads[self.walk]:
            self.trace.append(("load", key, self.width, self.walk))
            kept = "i" if v.dtype in "bu" else v.dtype
            text = f"load_{kept}{self.L}({self.scratch[key]} + {self._scratch_at()})"
            return self._define(2, v.name, Operand(text, v.dtype, True))
        if key in self.kernel.loads:
            return self._define(level, v.name, self._load(v, access, level))
        if v.op == "iota":
            return self._define(level, v.name, self._iota(v, access, level, v.dtype))
        if v.op == "gather":
            return _as_value(self.value(self.nest.args(key)[0]))
        if v.op == "bounded":
            index = self.writer.convert(self.value(self.nest.args(key)[0]), "l")
            bounded = self._bounded(index, v.attrs["size"], False, v.attrs["check"])
            return self._define(level, v.name, bounded)
        out = self._operation(key)
        if level == 2:
            self.flops_weight += 8 if v.op in HEAVY else 1
        rounded = v.op in _ENDS_IN_PRODUCT and out.code in "fd" and v in self.added
        return self._define(level, v.name, out, rounded)

    def _operation(self, key: Key) -> Operand:
        v, _ = key
        narrow = self.nest.narrow(key) and self.nest.level(key) == 2
        args, keys = [], iter(self.nest.args(key))
        for n, a in enumerate(v.args):
            t = "b" if v.op == "where" and n == 0 else v.ct
            if isinstance(a, Const):
                t = "i" if narrow else t
                args.append(Operand(literal(a.number, t), t, False, True))
                continue
            inner = next(keys)
            if narrow:
                args.append(self._narrowed(inner))
                continue
            got = self.value(inner)
            if got.literal and got.code != t:
                got = Operand(literal(inner[0].attrs["number"], t), t, False, True)
            args.append(got if v.op in ("cast", "copy") else self.writer.convert(got, t))
        return _as_value(
            self.writer.apply(v.op, "i" if narrow else v.ct, v.dtype, args, v.attrs))

    def _narrowed(self, key: Key) -> Operand:
        v, access = key
        if self.nest.level(key) == 2:
            found = self.cache[2].get(("narrow", key))
            if found is None:
                found = self.cache[2]["narrow", key] = self._define(
                    2, v.name, self._iota(v, access, 2, "i")
                )
            return found
        a = self.value(key)
        found = self.cache[1].get(("narrow", key))
        if found is None:
            x = a.text
            text = f"(int32_t)({x} > INT32_MAX ? INT32_MAX : {x} < INT32_MIN ? INT32_MIN : {x})"
            found = self.cache[1]["narrow", key] = self._define(
                1, v.name, Operand(text, "i", False)
            )
        return found

    def _load(self, v: Value, access: tuple, level: int) -> Operand:
        if level < 2:
            terms = self._terms(access, 1)
            text = f"{self.value_pointer(v, True)}[{' + '.join(terms) or '0'}]"
            return Operand(f"({text} != 0)" if v.dtype == "b" else text, v.dtype, False)
        base = self._row_pointer(v, access, True)
        terms, stride = self._inner_terms(access)
        wide, same = self._wide(access)
        terms += [f"{at.text} * {s}" for at, s in same]
        n, t, L = self.width, v.dtype, self.L
        if wide:
            parts = [f"{at.text} * {suffixed(s)}" for at, s in wide] + [f"({x})" for x in terms]
            if stride:
                parts.append(f"(lanes_l{L}() + i) * {suffixed(stride)}")
            return Operand(f"gather_{t}{L}({base}, {' + '.join(parts)}, {n})", t, True)
        if stride == 0:
            at = " + ".join(terms) or "0"
            text = f"{base}[{at}]"
            return Operand(f"({text} != 0)" if t == "b" else text, t, False)
        if stride == 1:
            at = " + ".join([base, *terms, "i"])
            return Operand(f"load_{t}{L}({at})" if n == L else f"loadn_{t}{L}({at}, {n})", t, True)
        at = " + ".join([base, *terms, f"i * {stride}"])
        return Operand(f"strided_{t}{L}({at}, {stride}, {n})", t, True)

    def _iota(self, v: Value, access: tuple, level: int, code: str) -> Operand:
        """start + step * position."""
        terms = self._terms(access, level)
        step, start = v.attrs["step"], v.attrs["start"]
        kind = SCALAR[code]
        if level < 2:
            place = Operand(f"({kind})({' + '.join(terms) or '0'})", code, False)
            return self._affine(place, start, step, code)
        inner, stride = self._inner_terms(access)
        wide, _ = self._wide(access)
        terms = [t for t in terms if not any(at.text in t for at, _ in wide)]
        if stride:
            inner.append(f"i * {stride}")
        text = f"splat_{code}{self.L}(({kind})({' + '.join(terms + inner) or '0'}))"
        if stride:
            lanes = self.writer.convert(Operand(f"lanes{self.L}()", "i", True), code).text
            text += f" + {lanes} * {literal(stride, code)}"
        for at, s in wide:
            place = Operand(f"({at.text} * {suffixed(s)})", "l", True)
            text += " + " + self.writer.convert(place, code).text
        return self._affine(Operand(f"({text})", code, True), start, step, code)

    def _affine(self, place: Operand, start: float, step: float, code: str) -> Operand:
        text = place.text
        if step != 1:
            text = f"{text} * {literal(step, code)}"
        if start:
            text = f"{text} + {literal(start, code)}"
        return Operand(f"({text})", code, place.vec)

    # ---- scratch -------------------------------------------------------------------------------

    def _scratch_at(self) -> str:
        nest, terms = self.nest, []
        step = rounded_up(nest.inner[-1], self.L)
        first = nest.outer_count + nest.mid_count
        for j in range(len(nest.sizes) - 2, first - 1, -1):
            terms.append(f"j{j} * {step}")
            step *= nest.sizes[j]
        return " + ".join([*terms[::-1], "i"])

    # ---- writing -------------------------------------------------------------------------------

    def _write(self) -> str:
        from .emit_loops import write_kernel

        return write_kernel(self)
