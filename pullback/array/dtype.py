"""Dtypes and the promotion rules.

A `DType` is a name around a NumPy dtype.  Promotion follows PyTorch: categories bool < integer <
floating < complex; tensors with dims decide first, 0-d tensors and then Python numbers only
matter if their category is higher.  Read next: `core/schema.py`.
"""

from __future__ import annotations

import functools
import math

import ml_dtypes
import numpy as np

from .. import errors
from .size import Symbolic, hinted


class DType:
    """An element type, e.g. `pullback.float32`."""

    __slots__ = (
        "category",
        "char",
        "is_complex",
        "is_floating_point",
        "is_signed",
        "itemsize",
        "kind",
        "name",
        "np",
    )

    def __init__(self, name: str, np_dtype, category: int):
        self.name = name
        self.np = np.dtype(np_dtype)
        self.itemsize = self.np.itemsize
        self.category = category  # 0 bool, 1 integer, 2 floating, 3 complex
        self.kind = "bifc"[category]  # as NumPy's, so that rules read both alike
        self.is_floating_point = category == 2
        self.is_complex = category == 3
        self.is_signed = not (name == "bool" or name.startswith("uint") or "e8m0" in name)

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self):
        return (by_name, (self.name,))

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    @property
    def is_inexact(self) -> bool:
        return self.category >= 2

    def to_real(self) -> DType:
        """The dtype of real and imaginary parts."""
        return _PARTS.get(self.name, self)

    def to_complex(self) -> DType:
        """The complex dtype with this precision; complex32 only if it is one already."""
        if self.is_complex:
            return self
        return complex128 if self.name == "float64" else complex64


class Unheld(DType):
    """A dtype that exists by name, for programs that compare with it: no tensor has it."""

    __slots__ = ()

    def __init__(self, name: str):
        self.name, self.kind, self.category = name, "V", -1
        self.is_floating_point = name.startswith("float")
        self.is_complex, self.itemsize = False, int(name.endswith(("16", "32"))) + 1
        self.is_signed = name.startswith(("float", "int", "qint"))

    @property
    def np(self):  # type: ignore[override]
        raise errors.NotInThisBuild(errors.text(
            f"tensors of dtype torch.{self.name} do not exist here ({errors.user_line(3)})",
            cure="use a dtype that NumPy or ml_dtypes know"))


class Quantized(Unheld):
    """The dtype of numbers that are integers times a scale (`quantized/`).

    A tensor of it is made of integers, and this is the name of the whole.
    """

    __slots__ = ("high", "low", "numbers")

    def __init__(self, name: str, numbers: str, low: int, high: int):
        super().__init__(name)
        self.itemsize = 4 if name == "qint32" else 1
        self.numbers, self.low, self.high = numbers, low, high  # the dtype of the integers

    @property
    def np(self):  # type: ignore[override]
        raise errors.RefusedValue(errors.text(
            f"Creation of quantized tensor requires quantized dtype like torch.quint8, and a scale "
            f"({errors.user_line(3)})", f"dtype: torch.{self.name}",
            "torch.quantize_per_tensor(x, scale, zero_point, dtype) makes one"))


QUANTIZED = (
    Quantized("qint8", "int8", -128, 127), Quantized("quint8", "uint8", 0, 255),
    Quantized("qint32", "int32", -(1 << 31), (1 << 31) - 1),
    Quantized("quint4x2", "uint8", 0, 15), Quantized("quint2x4", "uint8", 0, 3),
)  # fmt: skip
UNHELD = QUANTIZED + tuple(Unheld(name) for name in (
    "bits1x8", "bits2x4", "bits4x2", "bits8", "bits16", "float4_e2m1fn_x2",
    *(f"{kind}{n}" for kind in ("int", "uint") for n in range(1, 8)),
))  # fmt: skip
bool_ = DType("bool", np.bool_, 0)
uint8 = DType("uint8", np.uint8, 1)
int8 = DType("int8", np.int8, 1)
int16 = DType("int16", np.int16, 1)
int32 = DType("int32", np.int32, 1)
int64 = DType("int64", np.int64, 1)
float16 = DType("float16", np.float16, 2)
bfloat16 = DType("bfloat16", ml_dtypes.bfloat16, 2)
float32 = DType("float32", np.float32, 2)
float64 = DType("float64", np.float64, 2)
complex64 = DType("complex64", np.complex64, 3)
complex128 = DType("complex128", np.complex128, 3)
_PARTS = {"complex32": float16, "complex64": float32, "complex128": float64}

ALL = (
    bool_,
    uint8,
    int8,
    int16,
    int32,
    int64,
    float16,
    bfloat16,
    float32,
    float64,
    complex64,
    complex128,
)
FOREIGN = "W"  # the kind of complex32: NumPy does not know that it is complex
if hasattr(ml_dtypes, "complex32"):  # a format to store numbers in: nothing promotes to it
    complex32 = DType("complex32", ml_dtypes.complex32, 3)
    ALL = (*ALL, complex32)
_BY_NP = {d.np: d for d in ALL}
_BY_NAME = {d.name: d for d in ALL}
# Formats to keep and exchange numbers in: nothing promotes to them, few operators compute in them.
STORED = (
    *(DType(name, getattr(np, name), 1) for name in ("uint16", "uint32", "uint64")),
    *(DType(name, getattr(ml_dtypes, name), 2)
      for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
                   "float8_e8m0fnu") if hasattr(ml_dtypes, name)),
)
uint64 = STORED[2]
_BY_NP |= {d.np: d for d in STORED}
_BY_NAME |= {d.name: d for d in (*STORED, *UNHELD)}
_FROM_PYTHON = {float: float64, int: int64, bool: bool_, complex: complex128}

ALIASES = {
    "half": float16,
    "float": float32,
    "double": float64,
    "cfloat": complex64,
    "cdouble": complex128,
    "short": int16,
    "int": int32,
    "long": int64,
}

if "complex32" in _BY_NAME:
    ALIASES["chalf"] = _BY_NAME["complex32"]

_default = float32


def by_name(name: str) -> DType:
    """The dtype called `name`."""
    return _BY_NAME[name]


def of(np_dtype) -> DType:
    """The dtype that wraps a NumPy dtype."""
    found = _BY_NP.get(np_dtype)
    if found is None:
        found = _BY_NP.get(np.dtype(np_dtype).newbyteorder("="))
    if found is None:
        raise TypeError(
            f"pullback has no dtype for NumPy's {np_dtype}; supported are "
            + ", ".join(d.name for d in ALL)
        )
    return found


@functools.cache
def name_of(dtype) -> str:
    """The name of a dtype, NumPy's or ours; NumPy's makes it anew every time, which takes 2 µs."""
    return dtype.name


def holds(dtype: DType, number) -> bool:
    """Is a number in the range of a dtype? Those without a sign take negative integers, too."""
    if dtype.category == 3:
        part = dtype.to_real()
        return holds(part, number.real) and holds(part, number.imag)
    low, high = _range(dtype)
    if dtype.category == 2:
        return low <= number <= high or number != number or number in (math.inf, -math.inf)
    if isinstance(number, float):
        return bool((low if dtype.is_signed else 0) <= number <= float(high))
    return bool(low <= number <= high)


@functools.cache
def _range(dtype: DType) -> tuple:
    if dtype.category == 2:
        largest = finfo(dtype).max
        return -largest, largest
    info = np.iinfo(dtype.np)
    return info.min or -info.max, info.max


def fitted(array, np_dtype):
    """An array before it is converted: 8-bit formats take their largest number for larger ones, and
    those without a sign the absolute value.
    """
    if np_dtype.itemsize > 1 or np_dtype.kind != "V":
        return array
    if np_dtype.name == "float8_e4m3fn":
        return np.clip(array, -448, 448)
    return np.abs(array) if np_dtype.name == "float8_e8m0fnu" else array


def as_dtype(value) -> DType | None:
    """A DType from a DType, a Python type, a NumPy dtype or None."""
    if value is None or type(value) is DType:
        return value
    if value in _FROM_PYTHON:
        return _FROM_PYTHON[value]
    if isinstance(value, Unheld):
        return value.np  # refuses
    return of(np.dtype(value))


def of_number(kind: type) -> DType:
    """The dtype of a tensor made of such Python numbers, which is the default one of its kind."""
    if kind is float:
        return _default
    return _default.to_complex() if kind is complex else _FROM_PYTHON[kind]


def default() -> DType:
    """The dtype of new floating tensors."""
    return _default


def set_default(value) -> None:
    """Set the dtype of new floating tensors; it must be floating."""
    global _default
    value = as_dtype(value)
    if not value.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, not {value}")
    _default = value
    _result.cache_clear()


@functools.cache
def promote_types(a: DType, b: DType) -> DType:
    """The smallest dtype that holds both, by category first."""
    if a is b:
        return a
    if a in STORED or b in STORED:
        _check_stored(a, b)
    if a.category != b.category:
        low, high = (a, b) if a.category < b.category else (b, a)
        if high.is_complex and low.is_floating_point:
            wide = promote_types(high.to_real(), low)
            return high if wide is high.to_real() else wide.to_complex()
        return high
    if {a.name, b.name} == {"float16", "bfloat16"}:
        return float32
    if a.category == 1:
        small, large = sorted((a, b), key=lambda d: d.itemsize)
        if small.itemsize == large.itemsize or (large is uint8):
            return int16
        return large
    return max((a, b), key=lambda d: d.itemsize)


def _check_stored(a: DType, b: DType) -> None:
    """Formats to store numbers in meet no others, but integers a number of a higher category."""
    for kind, names in ((1, "uint16, uint32, uint64 types"), (2, "Float8 Types")):
        mine = [d in STORED and d.category == kind for d in (a, b)]
        if any(mine) and (kind == 2 or max(a.category, b.category) == 1):
            raise RuntimeError(f"Promotion for {names} is not supported, attempted to promote "
                               f"{a.name} and {b.name}")


def of_scalar(value) -> DType:
    """The dtype that a Python number stands for."""
    if isinstance(value, (bool, np.bool_)):
        return bool_
    if isinstance(value, Symbolic):
        value = hinted(value)
    if isinstance(value, (int, np.integer)):
        return int64
    if isinstance(value, (float, np.floating)):
        return _default
    return _default.to_complex()


def _combine(high: DType | None, low: DType | None) -> DType | None:
    if high is None or low is None:
        return high or low
    if high.category >= low.category and high.category > 0:
        return high
    if high.is_floating_point and low.is_complex:
        return high.to_complex()
    return promote_types(high, low)


@functools.lru_cache(maxsize=4096)
def _result(dims: tuple, zeros: tuple, numbers: tuple) -> DType:
    def fold(group):
        return functools.reduce(promote_types, group) if group else None

    return _combine(fold(dims), _combine(fold(zeros), fold(numbers)))


def result_type(values) -> DType:
    """Promoted dtype of tensors (anything with `dtype` and `ndim`) and Python numbers."""
    dims, zeros, numbers = [], [], []
    for v in values:
        if v is None:
            continue
        d = getattr(v, "dtype", None)
        if d is None or isinstance(v, np.generic):
            numbers.append(of_scalar(v))
        else:
            (dims if v.ndim else zeros).append(d if type(d) is DType else of(d))
    return _result(tuple(dims), tuple(zeros), tuple(numbers))


def can_cast(source: DType, target: DType) -> bool:
    """Whether an in-place result of `source` may be stored in `target` (category does not drop)."""
    return source.category <= target.category or (source.category == 1 and target.category == 1)


def wanted(value, where: str) -> DType:
    """A dtype that a function was given, as such or as Python's float, int, bool or complex."""
    if type(value) is DType or value in (bool, int, float, complex):
        return as_dtype(value)
    if isinstance(value, Unheld):
        return value.np  # refuses
    raise TypeError(f"{where} must be torch.dtype, not "
                    f"{value.__name__ if isinstance(value, type) else type(value).__name__}")


class _Limits:
    """What `finfo` and `iinfo` have in common: they are compared and printed by their facts."""

    printed: tuple[str, ...] = ()
    dtype: str  # by name
    __hash__ = None

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.dtype == self.dtype

    def __repr__(self) -> str:
        facts = [f"{name}={getattr(self, name):g}" for name in self.printed]
        return f"{type(self).__name__}({', '.join(facts)}, dtype={self.dtype})"


class finfo(_Limits):
    """Limits of a floating dtype."""

    printed = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")

    def __init__(self, type: DType | None = None):
        dtype = default() if type is None else wanted(type, "finfo(): argument 'type' (position 1)")
        if dtype.category < 2:
            raise TypeError(f"finfo() requires a floating point dtype, got {dtype}; use iinfo()")
        real = dtype.to_real()
        info = ml_dtypes.finfo(real.np)
        self.dtype, self.bits = real.name, info.bits
        self.eps, self.max, self.min = float(info.eps), float(info.max), float(info.min)
        self.tiny = self.smallest_normal = float(info.smallest_normal)
        self.resolution = float(info.resolution)


class iinfo(_Limits):
    """Limits of an integer dtype."""

    printed = ("min", "max")

    def __init__(self, type: DType):
        dtype = wanted(type, "iinfo(): argument 'type' (position 1)")
        if dtype.category != 1:
            raise TypeError(f"iinfo() requires an integer dtype, got {dtype}; use finfo()")
        info = np.iinfo(dtype.np)
        self.dtype, self.bits, self.max, self.min = (
            dtype.name,
            info.bits,
            int(info.max),
            int(info.min),
        )


_TITLES = {
    "bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int",
    "int64": "Long", "float16": "Half", "bfloat16": "BFloat16", "float32": "Float",
    "float64": "Double", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
}


def title(dtype) -> str:
    """PyTorch's word for a dtype in its messages: 'Long' for int64."""
    return _TITLES.get(dtype.name, str(dtype))
