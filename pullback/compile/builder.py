"""Makes values: pointwise results, reductions and calls, with the small simplifications that are
exact.

Used by the lowering rules (`rules_*.py`), which say what each operator of the graph becomes.
Read `lower.py` for how rules are found, `ir.py` for what values are.
"""

from __future__ import annotations

import operator
from math import prod

import numpy as np

from .expressions import held
from .ir import CODES, NAMES, SIZES, Call, Const, Ref, Value, contiguous, reshape
from .number import Number, formula, likely, real, single, varies, worded

Arg = "Ref | Const | float | int | bool"


class Unsupported(Exception):
    """A rule cannot take this call; it becomes a NumPy step."""


def broadcast(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The common shape, as NumPy broadcasts."""
    rank = max((len(s) for s in shapes), default=0)
    out = [1] * rank
    for shape in shapes:
        for i, n in enumerate(shape, rank - len(shape)):
            if n != 1:
                out[i] = n
    return tuple(out)


def expand(ref: Ref, shape: tuple[int, ...]) -> Ref:
    """Repeat single elements to a larger shape, with stride zero."""
    if ref.shape == shape:
        return ref
    pad = len(shape) - len(ref.shape)
    strides = (0,) * pad + tuple(
        # sizes that a guard says are equal may be different expressions: only one is repeated
        0 if n != m and n == 1 else s for n, m, s in zip(ref.shape, shape[pad:], ref.strides)
    )
    return Ref(ref.value, tuple(shape), ref.offset, strides)


def permute(ref: Ref, order: list[int]) -> Ref:
    """Dimensions in another order."""
    return Ref(
        ref.value,
        tuple(ref.shape[i] for i in order),
        ref.offset,
        tuple(ref.strides[i] for i in order),
    )


_EXPONENTIALS = ("exp", "swift_exp")
_FOLD = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
         "neg": operator.neg}


def _made_by(op: str, a: Ref | Const) -> bool:
    """Is an operand the result of an operation, and no number?"""
    return isinstance(a, Ref) and a.value.op == op


class Builder:
    """Collects the values of one graph; equal expressions become one value."""

    def __init__(self):
        self.values: list[Value] = []
        self.calls: list[Call] = []
        self.known: dict[tuple, Value] = {}
        self.name = "v"  # name of the graph node that is being lowered
        self.origin = "v"  # operator that the user called there
        self.bad_index: type = IndexError  # what it raises for an index out of range
        self.checks: list[tuple[str, str]] = []  # (kind of error, text), in the order of the graph
        self.used: dict[str, int] = {}

    def fresh_name(self) -> str:
        """The node's name; a number is added when one node makes several values."""
        n = self.used.get(self.name, 0)
        self.used[self.name] = n + 1
        return self.name if n == 0 else f"{self.name}_{n}v"

    def add(self, value: Value) -> Value:
        self.values.append(value)
        return value

    def check(self, size: int) -> int:
        """Number (from 1) of a new check of indices; the first of the graph to fail is raised."""
        kind = "dim" if self.bad_index is IndexError else "shape"
        what = worded(f"{self.origin}: index out of range for a dimension of size ", size)
        self.checks.append((kind, what))
        return len(self.checks)

    def dtype_of(self, example: object) -> str:
        """Letter for the dtype of a node's example value, or of an array."""
        return code_of(getattr(example.dtype, "np", example.dtype))

    def mark(self) -> tuple[int, ...]:
        """Where the builder stands, for `rewind`."""
        return len(self.values), len(self.calls), len(self.checks), len(self.known)

    def rewind(self, mark: tuple[int, ...]) -> None:
        """Forget everything that was made since."""
        values, calls, checks, known = mark
        del self.values[values:], self.calls[calls:], self.checks[checks:]
        while len(self.known) > known:
            self.known.popitem()

    # ---- pointwise -----------------------------------------------------------------------------

    def pointwise(
        self,
        op: str,
        *args: Arg,
        dtype: str,
        ct: str | None = None,
        shape: tuple | None = None,
        **attrs: object,
    ) -> Ref:
        """An elementwise operation; arguments are broadcast and converted to `ct` when emitted."""
        ct = ct or dtype
        if op == "exp" and self.origin != "exp":  # inside of a softmax, a derivative ...
            op = "swift_exp"
        refs = []
        for a in args:
            if isinstance(a, Ref) and a.value.op == "const" and op != "gather":
                a = Const(a.value.attrs["number"])
            refs.append(a if isinstance(a, (Ref, Const)) else Const(a))
        if shape is None:
            shape = broadcast([a.shape for a in args if isinstance(a, Ref)])
        folded = self._fold(op, refs, dtype, ct, shape) or self._softmax_again(op, refs)
        if folded is not None:
            return folded
        full = tuple(expand(a, shape) if isinstance(a, Ref) else a for a in refs)
        told = tuple(repr(a) if isinstance(a, Const) else a for a in full)  # 0.0 is not -0.0
        key = (op, dtype, ct, shape, told, tuple(sorted(attrs.items())))
        try:
            value = self.known.get(key)
        except TypeError:  # an attribute that cannot be hashed
            key = value = None
        if value is None:
            value = self.add(
                Value("pointwise", self.fresh_name(), shape, dtype, op, full, ct, attrs)
            )
            if key is not None:
                self.known[key] = value
        return value.ref()

    def _fold(self, op: str, args: list, dtype: str, ct: str, shape: tuple) -> Ref | None:
        """Exact simplifications: numbers among themselves, times one, a cast to the same type."""
        if op == "cast" and isinstance(args[0], Const):
            return self.full(shape, _as_element(args[0].number, dtype, ct), dtype)
        if op in _FOLD and all(isinstance(a, Const) for a in args):
            numbers = [_as_element(a.number, ct) for a in args]
            if op != "div" or ct in "fd" and numbers[1]:
                return self.full(shape, _FOLD[op](*numbers), dtype)
        if op in ("mul", "div") and dtype == ct:
            a, b = args
            if _is_one(b) and isinstance(a, Ref) and a.dtype == ct:
                return expand(a, shape)
            if (
                op == "mul"
                and _is_one(a)
                and isinstance(b, Ref)
                and b.dtype == ct
            ):
                return expand(b, shape)
        if op == "cast" and isinstance(args[0], Ref) and args[0].dtype == dtype:
            return expand(args[0], shape)
        return None

    def _softmax_again(self, op: str, args: list) -> Ref | None:
        """exp(d - log(sum(exp(d)))) with d = x - max(x): the exponentials are there already.

        Gradients of log_softmax ask for this. exp(d) is at most 1, so nothing can overflow.
        """
        if op not in _EXPONENTIALS or not _made_by("sub", args[0]) or not args[0].plain:
            return None
        d, log = args[0].value.args
        if not _made_by("log", log) or not _made_by("sub", d):
            return None
        total, top = log.value.args[0], d.value.args[1]
        if not _made_by("sum", total) or not _made_by("max", top):
            return None
        e = total.value.args[0].value
        if total.value.kind != "reduce" or e.op not in _EXPONENTIALS or e.args[0] != d:
            return None
        inverse = self.pointwise("recip", total, dtype=e.dtype)
        row = Ref(inverse.value, log.shape, log.offset, log.strides)
        return self.pointwise("mul", e.ref(), row, dtype=e.dtype)

    def full(self, shape: tuple[int, ...], number: float | int | bool, dtype: str) -> Ref:
        """The same number everywhere."""
        if dtype in NAMES:
            number = _as_element(number, dtype)
        key = ("const", tuple(shape), repr(number), dtype)
        value = self.known.get(key)
        if value is None:
            value = self.known[key] = self.add(
                Value(
                    "pointwise",
                    self.fresh_name(),
                    shape,
                    dtype,
                    "const",
                    (),
                    dtype,
                    {"number": number},
                )
            )
        return value.ref()

    def iota(
        self, shape: tuple, dim: int, dtype: str = "l", start: float = 0, step: float = 1
    ) -> Ref:
        """start + step * (position along one dimension)."""
        line = self.pointwise("iota", dtype=dtype, shape=(shape[dim],), start=start, step=step)
        strides = tuple(1 if i == dim else 0 for i in range(len(shape)))
        return Ref(line.value, tuple(shape), 0, strides)

    def cast(self, ref: Ref, dtype: str) -> Ref:
        return self.pointwise("cast", ref, dtype=dtype, ct=ref.dtype)

    def copy(self, ref: Ref) -> Ref:
        """The elements of a ref in order, as a value of their own."""
        if ref.plain:
            return Ref(ref.value, ref.shape, 0, contiguous(ref.shape))
        return self.pointwise("copy", ref, dtype=ref.dtype)

    # ---- shape ---------------------------------------------------------------------------------

    def reshape(self, ref: Ref, shape: tuple[int, ...]) -> Ref:
        """Another shape; copies when strides do not allow a view."""
        shape = tuple(shape)
        if -1 in shape:
            rest = prod(n for n in shape if n != -1)
            shape = tuple(prod(ref.shape) // rest if n == -1 else n for n in shape)
        if shape == ref.shape:
            return ref
        if ref.value.op == "const":
            return self.full(shape, ref.value.attrs["number"], ref.dtype)
        return reshape(ref, shape) or reshape(self.copy(ref), shape)

    def join(self, shape: tuple[int, ...], dtype: str, parts: list[tuple[Ref, int, tuple]]) -> Ref:
        """One array made of disjoint parts, each stored at an offset with strides."""
        args = tuple(ref for ref, _, _ in parts)
        places = tuple((offset, strides) for _, offset, strides in parts)
        return self.add(
            Value("join", self.fresh_name(), shape, dtype, "join", args, dtype, {"places": places})
        ).ref()

    def gather(self, base: Ref, index: list[tuple[Ref, int, int]], wrap: bool) -> Ref:
        """base[..., index, ...]: `base` has the result's shape, stride 0 where an index moves it.

        Each index comes with the stride and the size of the dimension that it selects from.
        """
        shape = base.shape
        if not all(n for _, _, n in index):
            raise Unsupported("a look into nothing: the kernel says so")
        refs = [expand(i, shape) for i, _, _ in index]
        made = self.pointwise(
            "gather",
            base,
            *refs,
            dtype=base.dtype,
            shape=shape,
            strides=tuple(s for _, s, _ in index),
            sizes=tuple(n for _, _, n in index),
            wrap=wrap,
        )
        if "checks" not in made.value.attrs:
            made.value.attrs["checks"] = tuple(self.check(n) for _, _, n in index)
        return made

    def bounded(self, index: Ref, size: int) -> Ref:
        """An index that is checked where it is computed: 0 <= index < size."""
        if index.value.op == "const":
            if not 0 <= index.value.attrs["number"] < size:
                raise Unsupported("an index out of range: its kernel says so")
            return index
        made = self.pointwise("bounded", index, dtype="l", size=size)
        if "check" not in made.value.attrs:
            made.value.attrs["check"] = self.check(size)
        return made

    # ---- reductions ----------------------------------------------------------------------------

    def reduce(
        self, op: str, ref: Ref, dims: list[int] | None, keepdim: bool, dtype: str | None = None
    ) -> Ref:
        """Reduce dimensions; `op` is sum, prod, max, min, any or all."""
        rank = len(ref.shape)
        dims = list(range(rank)) if not dims else sorted({d % rank if rank else 0 for d in dims})
        dims = [d for d in dims if d < rank]
        dtype = dtype or ref.dtype
        if dtype == "u":  # registers are wider: it wraps around in the end
            return self.cast(self.reduce(op, self.cast(ref, "i"), dims, keepdim, "i"), "u")
        if ref.dtype != dtype and op in ("sum", "prod"):
            ref = self.cast(ref, dtype)
        if ref.dtype != "b" and op in ("any", "all"):
            ref = self.pointwise("ne", ref, 0, dtype="b", ct=ref.dtype)
        kept = [d for d in range(rank) if d not in dims]
        shape = tuple(ref.shape[d] for d in kept)
        final = tuple(1 if d in dims else ref.shape[d] for d in range(rank)) if keepdim else shape
        count = prod(ref.shape[d] for d in dims)
        if count == 0 or prod(shape) == 0:
            return self.full(final, self._neutral(op, count, dtype), dtype)
        if ref.value.op == "const" and op == "sum":
            return self.full(final, ref.value.attrs["number"] * count, dtype)
        if count == 1:
            return self.reshape(self._from_zero(ref) if op == "sum" else ref, final)
        if op == "sum" and len(dims) == 1:
            picked = self._sum_of_one(ref, dims[0])
            if picked is not None:
                return self.reshape(self._from_zero(picked), final)
        out = self._reduce(op, ref, kept, dims, shape, dtype)
        return reshape(out.ref(), final)

    def _from_zero(self, ref: Ref) -> Ref:
        """A sum of one element: sums begin with 0.0, which makes 0.0 of -0.0."""
        return self.pointwise("add", ref, 0.0, dtype=ref.dtype) if ref.dtype in "fd" else ref

    def _sum_of_one(self, ref: Ref, dim: int) -> Ref | None:
        """The sum along a dimension in which at most one element is not zero: a scattered gradient.

        Recognised: `position == index ? x : 0`, where x and the index do not change along the
        dimension, and products of that with what does not change either.
        """
        v = ref.value
        if v.kind != "pointwise" or not ref.plain or ref.shape != v.shape or v.dtype not in "fd":
            return None

        def still(a: object) -> bool:
            return isinstance(a, Const) or a.strides[dim] == 0

        def drop(a: object) -> object:
            if isinstance(a, Const):
                return a
            return Ref(a.value, a.shape[:dim] + (1,) + a.shape[dim + 1 :], a.offset, a.strides)

        if v.op in ("mul", "div", "neg"):
            moving = [i for i, a in enumerate(v.args) if not still(a)]
            if (
                len(moving) != 1
                or (v.op == "div" and moving[0] != 0)
                or v.args[moving[0]].dtype != v.dtype
            ):
                return None
            part = self._sum_of_one(v.args[moving[0]], dim)
            if part is None:
                return None
            args = [part if i == moving[0] else drop(a) for i, a in enumerate(v.args)]
            return self.pointwise(v.op, *args, dtype=v.dtype, ct=v.ct)
        if v.op != "where" or v.args[2] != Const(0) or not still(v.args[1]):
            return None
        conditions = self._one_position(v.args[0], dim, v.shape)
        if conditions is None:
            return None
        index, others = conditions
        n = v.shape[dim]
        hit = self.pointwise(
            "and",
            self.pointwise("ge", drop(index), 0, dtype="b", ct="l"),
            self.pointwise("lt", drop(index), n, dtype="b", ct="l"),
            dtype="b",
        )
        for other in others:
            hit = self.pointwise("and", hit, drop(other), dtype="b")
        return self.pointwise("where", hit, drop(v.args[1]), 0, dtype=v.dtype)

    def _one_position(self, cond: object, dim: int, shape: tuple) -> tuple[Ref, list[Ref]] | None:
        """Index and further conditions when a condition is `position along dim == index`."""
        if (
            not isinstance(cond, Ref)
            or cond.shape != shape
            or not cond.plain
            or cond.value.shape != shape
        ):
            return None
        v = cond.value
        if v.op == "and":
            for a, other in (v.args, v.args[::-1]):
                found = self._one_position(a, dim, shape)
                if found and isinstance(other, Ref) and other.strides[dim] == 0:
                    return found[0], [*found[1], other]
            return None
        if v.op != "eq" or v.ct != "l" or any(isinstance(a, Const) for a in v.args):
            return None
        for place, index in (v.args, v.args[::-1]):
            line = all(
                s == (1 if d == dim else 0) for d, s in enumerate(place.strides) if shape[d] > 1
            )
            if (
                place.value.op == "iota"
                and line
                and place.offset == 0
                and index.strides[dim] == 0
                and place.value.attrs["start"] == 0
                and place.value.attrs["step"] == 1
            ):
                return index, []
        return None

    def _neutral(self, op: str, count: int, dtype: str) -> float:
        if count == 0 and op in ("max", "min"):
            raise Unsupported("max of nothing")
        return {"sum": 0, "prod": 1, "any": 0, "all": 1}.get(op, 0)

    def _reduce(
        self, op: str, ref: Ref, kept: list[int], dims: list[int], shape: tuple, dtype: str
    ) -> Value:
        """Put the loops in an order the emitter knows: see `how` in schedule.py."""
        outer = [d for d in kept if ref.shape[d] > 1]
        inner = [d for d in dims if ref.shape[d] > 1]
        count = prod(ref.shape[d] for d in inner)
        if not outer:
            how, order = "full", inner
        elif max(inner) > max(outer) and likely(count) <= 8 and (
                likely(ref.shape[outer[-1]]) >= 16):
            # rows too short for vectors: the vector runs along the last kept dimension instead
            how, order = "mid", outer[:-1] + inner + outer[-1:]
        elif max(inner) > max(outer) and _runs_along(ref, 12) == outer[-1]:
            # memory runs along a kept dimension: walk it there, and add up
            rest = outer[:-1]
            how, order = ("mid" if rest else "col"), rest + inner + outer[-1:]
        elif max(inner) > max(outer):
            how, order = "row", outer + inner
        elif max(inner) < min(outer):
            how, order = "col", inner + outer
        else:
            last = [d for d in outer if d > max(inner)]
            how, order = "mid", [d for d in outer if d not in last] + inner + last
        look = permute(ref, order)
        row = {"full": [], "row": inner, "col": outer}.get(how)
        row = order[order.index(inner[-1]) + 1 :] if row is None else row
        columns = prod(ref.shape[d] for d in row)
        # the same look may be reduced along other loops: sum(1) and sum(2) of a square matrix
        key = ("reduce", op, dtype, shape, look, how, columns, count)
        value = self.known.get(key)
        if value is None:
            attrs = {"how": how, "columns": columns, "count": count}
            value = self.known[key] = self.add(
                Value("reduce", self.fresh_name(), shape, dtype, op, (look,), ref.dtype, attrs)
            )
        return value

    # ---- calls ---------------------------------------------------------------------------------

    def call(
        self, kind: str, args: list[Ref], outs: list[tuple[tuple, str] | None], **attrs: object
    ) -> list:
        """A step outside the loops; returns a ref per output."""
        step = Call(kind, self.name, list(args), attrs)
        self.calls.append(step)
        refs = []
        for out in outs:
            if out is None:
                step.outs.append(None)
                refs.append(None)
                continue
            value = self.add(Value("call", self.fresh_name(), out[0], out[1], kind))
            value.call = step
            step.outs.append(value)
            refs.append(value.ref())
        return refs


def _is_one(a: object) -> bool:
    """Is an argument the number 1, whatever sizes there are?"""
    return isinstance(a, Const) and not varies(a.number) and a.number == 1


def _runs_along(ref: Ref, depth: int) -> int | None:
    """The dimension along which the arrays behind an expression lie in memory, by majority."""
    votes: dict[int, int] = {}
    seen: set[Ref] = set()

    def look(r: Ref, left: int) -> None:
        v = r.value
        if r in seen:
            return
        seen.add(r)
        if v.kind == "pointwise" and v.shape == r.shape and r.plain and left:
            for a in v.args:
                if isinstance(a, Ref) and v.op != "gather":
                    look(a, left - 1)
        elif v.kind != "pointwise" and 2 * likely(v.numel) > likely(prod(r.shape)):
            for d, (n, s) in enumerate(zip(r.shape, r.strides)):
                if n > 1 and s == 1:
                    votes[d] = votes.get(d, 0) + 1

    look(ref, depth)
    return max(votes, key=votes.get) if votes else None


def _as_element(number: float, dtype: str, source: str = "d") -> float:
    """A number as an element type holds it; `source` is the type that it has."""
    if not isinstance(number, Number):
        return held(number, dtype, source if source in "fd" else "d")
    if dtype in "fd":
        number = number if number.kind is float else real(number)
        return single(number) if dtype == "f" else number
    if dtype == "b" or number.kind is float:  # whole numbers are converted where they are used
        return formula(lambda n: held(n, dtype), f"held({{}}, {dtype!r})", number)
    return number


def code_of(dtype: object) -> str:
    """Letter of a NumPy dtype, or its name where only NumPy handles it."""
    name = getattr(dtype, "name", str(dtype))
    return CODES.get(name, name)


def numpy_name(code: str) -> str:
    return NAMES.get(code, code)


def item_size(code: str) -> int:
    """Bytes of an element."""
    if code == "bfloat16":  # which NumPy knows only by its class
        return 2
    return SIZES.get(code) or np.dtype(numpy_name(code)).itemsize
