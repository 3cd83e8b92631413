"""Values between the graph and the loops: what is computed, and how its elements are addressed.

A `Value` is an array that is defined but not necessarily stored: an input, a pointwise function
of other values, a reduction, or the result of a call (matrix product, NumPy kernel). Its
elements are numbered in row-major order. A `Ref` is a strided look at a value; views of the
graph are refs and cost nothing. An *access* is a ref seen from the loops of one kernel:
`(offset, stride of loop 0, ...)`, counted in elements of the value. Read `lower.py` next.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import count
from math import prod
from typing import NamedTuple

# one letter per element type in generated code
CODES = {"float32": "f", "float64": "d", "int32": "i", "int64": "l", "bool": "b", "uint8": "u"}
NAMES = {code: name for name, code in CODES.items()}
CTYPES = {
    "f": "float",
    "d": "double",
    "i": "int32_t",
    "l": "int64_t",
    "b": "uint8_t",
    "u": "uint8_t",
}
SIZES = {"f": 4, "d": 8, "i": 4, "l": 8, "b": 1, "u": 1}
# functions of one number that the vector library has: slow ones, and all; `swift_exp` is the `exp`
# in other operators, off by one unit in the last place instead of 0.6
SLOW = ("exp", "swift_exp", "exp2", "expm1", "log", "log2",
        "log10", "log1p", "tanh", "sigmoid", "erf", "sin", "cos", "tan")
UNARY = (*SLOW, "sqrt", "rsqrt", "floor", "ceil", "trunc")


@lru_cache(4096)
def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides in elements."""
    strides, run = [], 1
    for n in reversed(shape):
        strides.append(run)
        run *= n
    return tuple(reversed(strides))


def ceil_div(a: int, b: int) -> int:
    """a / b, rounded up."""
    return (a + b - 1) // b


class Ref(NamedTuple):
    """Elements of `value` seen with another shape."""

    value: Value
    shape: tuple[int, ...]
    offset: int
    strides: tuple[int, ...]

    @property
    def dtype(self) -> str:
        return self.value.dtype

    @property
    def plain(self) -> bool:
        """All elements of the value, in order."""
        return (
            self.offset == 0
            and prod(self.shape) == self.value.numel
            and same_strides(self.shape, self.strides, contiguous(self.shape))
        )


class Const(NamedTuple):
    """A Python number inside an expression."""

    number: float | int | bool


def same_strides(shape: tuple, a: tuple, b: tuple) -> bool:
    """Whether two stride tuples address a shape alike (strides of single elements do not count)."""
    return all(x == y or n <= 1 for n, x, y in zip(shape, a, b))


_ids = count()


class Value:
    """See the module's text. `kind` is input, pointwise, reduce or call."""

    __slots__ = (
        "kind",
        "name",
        "shape",
        "numel",
        "dtype",
        "op",
        "args",
        "ct",
        "attrs",
        "uid",
        "call",
    )

    def __init__(
        self,
        kind: str,
        name: str,
        shape: tuple[int, ...],
        dtype: str,
        op: str = "",
        args: tuple = (),
        ct: str = "",
        attrs: dict | None = None,
    ):
        self.kind = kind
        self.name = name
        self.shape = tuple(shape)
        self.numel = prod(self.shape)
        self.dtype = dtype  # letter of CODES, or a NumPy dtype's name for what only NumPy handles
        self.op = op  # pointwise: name in `expressions`; reduce: sum, max, ...
        self.args = args  # Refs and Consts; Refs of a pointwise value have its shape
        self.ct = ct or dtype  # type that the operation computes in
        self.attrs = attrs or {}
        self.uid = next(_ids)
        self.call: Call | None = None

    def ref(self) -> Ref:
        return Ref(self, self.shape, 0, contiguous(self.shape))

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name} {self.op} {self.dtype}{list(self.shape)}>"


class Call:
    """A step that is not a loop nest: a matrix product, a scatter, or a NumPy kernel."""

    __slots__ = ("kind", "name", "args", "outs", "attrs")

    def __init__(self, kind: str, name: str, args: list[Ref], attrs: dict):
        self.kind, self.name, self.args, self.attrs = kind, name, args, attrs
        self.outs: list[Value | None] = []


class Split(Exception):
    """A loop must be split for an access to stay affine: loop `dim` into (.., inner)."""

    def __init__(self, dim: int, inner: int):
        self.dim, self.inner = dim, inner


def compose(
    access: tuple, sizes: list[int], shape: tuple, offset: int, strides: tuple
) -> tuple | None:
    """The access to a ref's value, given the access to the value the ref belongs to.

    `access` addresses a row-major array of `shape` from loops of `sizes`; a ref of that shape with
    `offset` and `strides` looks at another value. None when the result is not affine.
    """
    inner = contiguous(shape)
    if offset == 0 and strides == inner:
        return access
    reach, left, out = [], access[0], [offset]
    for k, step in enumerate(inner):
        position, left = divmod(left, step) if step else (0, left)
        reach.append(position)
        out[0] += position * strides[k]
    low = list(reach)
    for j, s in enumerate(access[1:]):
        if s == 0 or sizes[j] == 1:
            out.append(0)
            continue
        k = len(shape) - 1
        while k >= 0 and not (shape[k] > 1 and inner[k] <= abs(s) < inner[k] * shape[k]):
            k -= 1
        if k < 0 or s % inner[k]:
            return None
        step = s // inner[k]
        if step < 0:  # backwards
            low[k] += step * (sizes[j] - 1)
            if low[k] < 0:
                return None
            out.append(step * strides[k])
            continue
        far = reach[k] + step * (sizes[j] - 1)
        if far < shape[k]:
            reach[k] = far
            out.append(step * strides[k])
            continue
        part = shape[k] // step
        if shape[k] % step or part <= 1 or sizes[j] % part or part == sizes[j]:
            return None
        raise Split(j, part)
    return tuple(out)


def _at_hand(n: int) -> int:
    """A size, or what it typically is: whatever it is, only multiples will be taken."""
    return n if type(n) is int else n.hint


def multiple(n: int, m: int) -> bool:
    """Is n a multiple of m, whatever sizes there are?"""
    rest = n % m
    return type(rest) is int and rest == 0


def refine(a: list[int], b: list[int]) -> list[int] | None:
    """The coarsest loops that both factorisations of one size are made of, or None."""
    points: set[int] = set()
    for sizes in (a, b):
        run = 1
        for n in reversed(sizes):
            run *= n
            points.add(run)
    out, last = [], 1
    for p in sorted(points, key=_at_hand):
        if not multiple(p, last):
            return None
        if p != last:
            out.append(p // last)
        last = p
    return out[::-1] or [1]


def reshape(ref: Ref, shape: tuple[int, ...]) -> Ref | None:
    """The same elements under another shape without moving them, or None if that is impossible."""
    if ref.plain:
        return Ref(ref.value, shape, 0, contiguous(shape))
    old = [(n, s) for n, s in zip(ref.shape, ref.strides) if n != 1]
    strides, k = [], 0
    want = list(shape)
    i = 0
    while i < len(want):
        if want[i] == 1:
            strides.append(0)
            i += 1
            continue
        if k >= len(old):
            return None
        # gather new dims until they cover whole old dims
        have, take, j, m = old[k][0], want[i], i, k
        while have != take:
            if have < take:
                m += 1
                if m >= len(old) or old[m - 1][1] != old[m][1] * old[m][0]:
                    return None
                have *= old[m][0]
            else:
                j += 1
                if j >= len(want):
                    return None
                take *= want[j]
        step = old[m][1]
        group = []
        for n in reversed(want[i : j + 1]):
            group.append(step)
            step *= n
        strides += group[::-1]
        i, k = j + 1, m + 1
    return Ref(ref.value, tuple(shape), ref.offset, tuple(strides))
