"""`assert_close`: are two structures of tensors and numbers close, and if not, where and how far.

Sequences and mappings are compared item by item, tensors by attributes first and then by value.
Also here: `make_tensor`, random test data.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from .. import errors
from ..array import dtype as dt
from ..core.handle import Tensor
from ..creation import as_tensor
from ..table.packets import ops

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

# dtype -> relative and absolute tolerance; all others are compared exactly
TOLERANCES = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7), "complex32": (1e-3, 1e-5), "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7)}
_NUMBERS = (int, float, complex, np.number)


def default_tolerances(*dtypes: dt.DType) -> tuple[float, float]:
    """The widest tolerances of some dtypes."""
    pairs = [TOLERANCES.get(d.name, (0.0, 0.0)) for d in dtypes]
    return max(p[0] for p in pairs), max(p[1] for p in pairs)


class _Comparison:
    """The options of one call, and what to do about a difference."""

    def __init__(self, rtol, atol, equal_nan: bool, checks: dict, msg):
        if (rtol is None) != (atol is None):
            raise errors.BadValue("rtol and atol must both be specified or both be unspecified, "
                                  f"got rtol={rtol} and atol={atol}.")
        self.rtol, self.atol, self.equal_nan = rtol, atol, equal_nan
        self.checks, self.msg = checks, msg

    def fail(self, text: str, path: tuple) -> None:
        if path:
            text += "\n\nThe failure occurred for item " + "".join(f"[{p!r}]" for p in path)
        if self.msg is not None:
            text = self.msg(text) if callable(self.msg) else str(self.msg)
        raise AssertionError(text)

    def tolerances(self, *dtypes: dt.DType) -> tuple[float, float]:
        return default_tolerances(*dtypes) if self.rtol is None else (self.rtol, self.atol)

    def any(self, actual, expected, path: tuple = ()) -> None:
        """Two values of whatever kind."""
        if isinstance(actual, str) or isinstance(expected, str):
            self.refuse(actual, expected, path)
        elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
            self.mappings(actual, expected, path)
        elif isinstance(actual, Sequence) and isinstance(expected, Sequence):
            if len(actual) != len(expected):
                self.fail("The length of the sequences mismatch: "
                          f"{len(actual)} != {len(expected)}", path)
            for i, (one, two) in enumerate(zip(actual, expected, strict=True)):
                self.any(one, two, (*path, i))
        elif actual is None or expected is None:
            if actual is not expected:
                self.fail(f"None mismatch: {actual} is not {expected}", path)
        elif isinstance(actual, (bool, np.bool_)) and isinstance(expected, (bool, np.bool_)):
            if bool(actual) is not bool(expected):
                self.fail(f"Booleans mismatch: {actual} is not {expected}", path)
        elif isinstance(actual, _NUMBERS) and isinstance(expected, _NUMBERS):
            self.numbers(actual, expected, path)
        else:
            self.tensors(actual, expected, path)

    def refuse(self, actual, expected, path: tuple) -> None:
        where = f" at item {''.join(f'[{p!r}]' for p in path)}" if path else ""
        raise errors.ArgumentError(
            f"No comparison pair was able to handle inputs of type {type(actual)} and "
            f"{type(expected)}{where}.")

    def mappings(self, actual: Mapping, expected: Mapping, path: tuple) -> None:
        missing, more = set(expected) - set(actual), set(actual) - set(expected)
        if missing or more:
            self.fail("The keys of the mappings do not match:\n"
                      f"Missing keys in the actual mapping: {sorted(missing, key=repr)}\n"
                      f"Additional keys in the actual mapping: {sorted(more, key=repr)}", path)
        for key in expected:
            self.any(actual[key], expected[key], (*path, key))

    def numbers(self, actual, expected, path: tuple) -> None:
        kinds = [type(v.item() if isinstance(v, np.generic) else v) for v in (actual, expected)]
        if self.checks["dtype"] and kinds[0] is not kinds[1]:
            self.fail(f"The (d)types do not match: {kinds[0]} != {kinds[1]}.", path)
        rtol, atol = self.tolerances(*(
            {int: dt.int64, float: dt.float64}.get(k, dt.complex128) for k in kinds))
        if actual == expected or self.equal_nan and cmath.isnan(actual) and cmath.isnan(expected):
            return
        away = abs(actual - expected)
        if math.isfinite(away) and cmath.isfinite(actual) and away <= atol + rtol * abs(expected):
            return
        exact = rtol == 0 == atol
        allowed = ["" if exact else f" (up to {t} allowed)" for t in (atol, rtol)]
        relative = away / abs(expected) if expected else math.inf
        self.fail(f"Scalars are not {'equal' if exact else 'close'}!\n\n"
                  f"Expected {expected} but got {actual}.\n"
                  f"Absolute difference: {away}{allowed[0]}\n"
                  f"Relative difference: {relative}{allowed[1]}", path)

    def tensors(self, actual, expected, path: tuple) -> None:
        related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
        if not related or isinstance(actual, _NUMBERS):
            self.refuse(actual, expected, path)
        try:
            a, e = as_tensor(actual), as_tensor(expected)
        except (TypeError, ValueError, RuntimeError):
            self.refuse(actual, expected, path)
        attributes = [("shape", True), ("layout", self.checks["layout"]),
                      ("device", self.checks["device"]), ("dtype", self.checks["dtype"])]
        for name, wanted in attributes:
            one, two = getattr(a, name), getattr(e, name)
            if wanted and one != two:
                self.fail(f"The values for attribute '{name}' do not match: {one} != {two}.", path)
        if self.checks["stride"] and a.stride() != e.stride():
            self.fail("The values for attribute 'stride()' do not match: "
                      f"{a.stride()} != {e.stride()}.", path)
        if a.device.type == "meta" or e.device.type == "meta":
            return
        rtol, atol = self.tolerances(a.dtype, e.dtype)
        self.values(a.detach(), e.detach().to(a.device), rtol, atol, path)

    def values(self, a: Tensor, e: Tensor, rtol: float, atol: float, path: tuple) -> None:
        a, e = _comparable(a, e)
        close = ops.isclose(a, e, rtol, atol, self.equal_nan)
        wrong = int(close.numel() - close.sum().item())
        if not wrong:
            return
        exact = rtol == 0 == atol
        word = "equal" if exact else "close"
        x, y, bad = (t.numpy(force=True) for t in (a, e, ~close))
        away = np.abs(x - y) if x.dtype.kind in "fc" else np.abs(x.astype(object) - y)
        away = np.where(bad, np.asarray(away, np.float64), 0.0)
        relative = np.where(bad, away / np.where(y == 0, np.nan, np.abs(y)), 0.0)
        relative = np.where(bad & (y == 0), np.where(away == 0, 0.0, np.inf), relative)
        if a.ndim == 0:
            return self.fail(
                f"Scalars are not {word}!\n\nExpected {y.item()} but got {x.item()}.\n"
                f"Absolute difference: {away.item()}{_allowed(atol, exact)}\n"
                f"Relative difference: {relative.item()}{_allowed(rtol, exact)}", path)
        lines = [f"Tensor-likes are not {word}!\n",
                 f"Mismatched elements: {wrong} / {a.numel()} ({wrong / a.numel():.1%})"]
        for name, found, limit in (("absolute", away, atol), ("relative", relative, rtol)):
            flat = np.where(np.isnan(found.ravel()), np.inf, found.ravel())  # NaN: furthest away
            place = tuple(int(i) for i in np.unravel_index(int(flat.argmax()), a.shape))
            worst = found[place]
            if name == "absolute" and x.dtype.kind in "biu":
                worst = int(worst)
            lines.append(f"Greatest {name} difference: {worst} at index {place}"
                         f"{_allowed(limit, exact)}")
        self.fail("\n".join(lines), path)


def _allowed(tolerance: float, exact: bool) -> str:
    return "" if exact else f" (up to {tolerance} allowed)"


def _comparable(a: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
    """Both in one dtype that isclose() computes in."""
    if a.dtype is not e.dtype:
        try:
            common = dt.promote_types(a.dtype, e.dtype)
        except RuntimeError:  # formats that do not promote
            common = dt.float64
        a, e = a.to(common), e.to(common)
    if a.dtype in dt.STORED:
        common = dt.float32 if a.dtype.is_floating_point else dt.int64
        a, e = a.to(common), e.to(common)
    if a.dtype.name == "complex32":
        a, e = a.to(dt.complex64), e.to(dt.complex64)
    return a, e


def assert_close(
    actual,
    expected,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise `AssertionError` unless `|actual - expected| <= atol + rtol · |expected|` everywhere.

    Takes tensors, arrays, numbers, and sequences and mappings of them. The tolerances depend on the
    dtype; the message says how many elements are wrong and where the worst ones are. `msg` replaces
    it, or is called with it.
    """
    if not allow_subclasses and type(actual) is not type(expected):
        raise errors.ArgumentError(f"{type(actual)} and {type(expected)} are not the same type")
    checks = {"device": check_device, "dtype": check_dtype, "layout": check_layout,
              "stride": check_stride}
    _Comparison(rtol, atol, equal_nan, checks, msg).any(actual, expected)


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan: bool = True,
                    msg: str = "") -> None:
    """`assert_close` under its old name: dtypes need not be the same."""
    actual, expected = as_tensor(actual), as_tensor(expected)
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True,
                 check_dtype=False, check_stride=False, msg=msg or None)


def make_tensor(*shape, dtype, device=None, low=None, high=None, requires_grad: bool = False,
                noncontiguous: bool = False, exclude_zero: bool = False,
                memory_format=None) -> Tensor:
    """A tensor of random numbers in [low, high) for a test."""
    size = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    dtype = dt.as_dtype(dtype)
    if noncontiguous and memory_format is not None:
        raise errors.BadValue("The parameters `noncontiguous` and `memory_format` are mutually "
                              f"exclusive, but got {noncontiguous=} and {memory_format=}")
    bottom, top = {"bool": (0, 2), "uint8": (0, 10)}.get(
        dtype.name, (-9, 10) if dtype.category == 1 else (-9, 9))
    low, high = bottom if low is None else low, top if high is None else high
    if not low < high:
        raise errors.BadValue(f"make_tensor: `low` must be less than `high`, but got {low} >= "
                              f"{high}")
    drawn = (*size[:-1], 2 * size[-1]) if noncontiguous and size else size
    if dtype.category < 2:
        t = ops.randint(int(low), int(high), drawn, dtype=dt.int64, device=device).to(dtype)
    else:
        parts = [ops.rand(drawn, dtype=dt.float64, device=device) * (high - low) + low
                 for _ in range(1 + dtype.is_complex)]
        t = (ops.complex(*parts) if dtype.is_complex else parts[0]).to(dtype)
    if exclude_zero:
        least = 1 if dtype.category < 2 else max(dt.finfo(dtype).tiny, dt.finfo(dtype).eps)
        t = ops.where(t == 0, ops.full_like(t, least), t)
    if noncontiguous and size:
        t = t[..., ::2]
    if memory_format is not None:
        t = t.clone(memory_format=memory_format)
    return t.requires_grad_(requires_grad)
