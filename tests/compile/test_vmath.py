"""Vector math against mpmath and NumPy: error bounds in ulp, and special values."""

import ctypes
import platform

import numpy as np
import pytest

from pullback.compile import cache, native, toolchain

ONE = [
    "exp",
    "swift_exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "tanh",
    "sigmoid",
    "erf",
    "sin",
    "cos",
    "tan",
    "sqrt",
    "rsqrt",
    "sinh",
    "cosh",
    "asinh",
    "acosh",
    "atanh",
    "atan",
    "asin",
    "acos",
]
TYPES = {"f": ("float", np.float32), "d": ("double", np.float64)}

# worst error in units in the last place, float32 and float64
BOUNDS = {
    "exp": (0.6, 2),
    "swift_exp": (1.1, 2),
    "exp2": (0.6, 2),
    "expm1": (0.75, 3),
    "log": (0.65, 2),
    "log2": (0.7, 3),
    "log10": (0.65, 3),
    "log1p": (0.65, 3),
    "tanh": (2.5, 4),
    "sigmoid": (3, 4),
    "erf": (3, 4),
    "sin": (0.75, 2),
    "cos": (0.75, 2),
    "tan": (0.85, 4),
    "sqrt": (0.51, 0.51),
    "rsqrt": (1.5, 1.5),
    "sinh": (1.7, 4),
    "cosh": (1.1, 4),
    "asinh": (4, 4),
    "acosh": (4, 4),
    "atanh": (4, 4),
    "atan": (0.76, 4),
    "asin": (0.65, 4),
    "acos": (0.65, 4),
}
RANGES = {
    "exp": (-87, 88),
    "swift_exp": (-103, 88),
    "exp2": (-125, 127.9),
    "expm1": (-30, 88),
    "log": (1e-30, 1e30),
    "log2": (1e-30, 1e30),
    "log10": (1e-30, 1e30),
    "log1p": (-0.999, 1e10),
    "tanh": (-9, 9),
    "sigmoid": (-80, 80),
    "erf": (-4.5, 4.5),
    "sin": (-300, 300),
    "cos": (-300, 300),
    "tan": (-300, 300),
    "sqrt": (0, 1e30),
    "rsqrt": (1e-30, 1e30),
    "sinh": (-88, 88),
    "cosh": (-88, 88),
    "asinh": (-1e+10, 1e+10),
    "acosh": (1, 1e+10),
    "atanh": (-0.9999, 0.9999),
    "atan": (-100, 100),
    "asin": (-1, 1),
    "acos": (-1, 1),
}


@pytest.fixture(scope="module")
def lib():
    return _library()


def _library(*flags):
    width = toolchain.find().vector_bytes
    text = '#include "pb.h"\n'
    for lanes in (width // 8, width // 4):
        text += f'#undef PB_L\n#define PB_L {lanes}\n#include "vec.h"\n#include "vmath.h"\n'
    for t, (kind, _) in TYPES.items():
        lanes = width // (4 if t == "f" else 8)
        loop = f"for (int64_t i = 0; i < n; i += {lanes}) store_{t}{lanes}(y + i, "
        one, two = f"load_{t}{lanes}(x + i)", f"load_{t}{lanes}(e + i)"
        for fn in ONE:
            text += f"void {fn}_{t}({kind} *x, {kind} *y, int64_t n) {{\n"
            text += f"  {loop}{fn}_{t}{lanes}({one})); }}\n"
        for fn in ("pow", "atan2", "fmod", "remainder"):
            text += f"void {fn}_{t}({kind} *x, {kind} *e, {kind} *y, int64_t n) {{\n"
            text += f"  {loop}{fn}_{t}{lanes}({one}, {two})); }}\n"
    name = "test-vmath-" + cache.key(
        text, native.runtime_text(), toolchain.find().identity, *flags)
    path = native.build(cache.write(name + ".c", text.encode()), name + ".so", flags)
    return ctypes.CDLL(str(path))


def apply(lib, fn, t, *arrays):
    n = arrays[0].size
    pad = -n % 16
    arrays = [np.ascontiguousarray(np.pad(a, (0, pad), constant_values=1)) for a in arrays]
    out = np.empty(n + pad, TYPES[t][1])
    with np.errstate(all="ignore"):
        lib[f"{fn}_{t}"](
            *[a.ctypes.data_as(ctypes.c_void_p) for a in (*arrays, out)], ctypes.c_int64(n + pad)
        )
    return out[:n]


def points(fn, dtype, count=20000):
    lo, hi = RANGES[fn]
    rng = np.random.default_rng(1)
    spread = rng.uniform(lo, hi, count)
    if lo > 0:
        spread = np.exp(rng.uniform(np.log(lo), np.log(hi), count))
    near = rng.standard_normal(count) * 0.5
    tiny = near * 10.0 ** rng.uniform(-8, 0, count)
    x = np.concatenate([spread, near, tiny, 1 + near * 1e-3])
    return x[(x >= lo) & (x <= hi)].astype(dtype)


@pytest.mark.parametrize("fn", ONE)
def test_float32_ulp(lib, fn):
    x = points(fn, np.float32)
    wide = x.astype(np.float64)
    want = reference(fn, wide)
    got = apply(lib, fn, "f", x)
    with np.errstate(all="ignore"):
        ulp = np.spacing(np.abs(want).astype(np.float32)).astype(np.float64)
    worst = np.max(np.abs(got - want) / ulp)
    features = toolchain.find().features.split()
    fused = "__FMA__" in features or platform.machine() in ("aarch64", "arm64")
    assert worst <= BOUNDS[fn][0] * (1 if fused else 2), worst  # what a product loses is not known


def reference(fn, x):
    from scipy import special

    table = {"swift_exp": np.exp, "sigmoid": special.expit, "erf": special.erf,
             "rsqrt": lambda v: 1 / np.sqrt(v)}
    with np.errstate(all="ignore"):
        return table.get(fn, getattr(np, fn, None))(x)


@pytest.mark.parametrize("fn", ONE)
def test_float64_ulp(lib, fn):
    mpmath = pytest.importorskip("mpmath")
    x = points(fn, np.float64, 400)
    got = apply(lib, fn, "d", x)
    one = mpmath.mpf(1)
    exact = {
        "sigmoid": lambda v: one / (1 + mpmath.exp(-v)),
        "rsqrt": lambda v: one / mpmath.sqrt(v),
        "swift_exp": mpmath.exp,
        "exp2": lambda v: mpmath.mpf(2) ** v,
        "log2": lambda v: mpmath.log(v, 2),
    }
    f = exact.get(fn) or getattr(mpmath, fn)
    worst = 0.0
    with mpmath.workdps(40):
        for a, g in zip(x, got):
            want = f(mpmath.mpf(float(a)))
            worst = max(
                worst, float(abs(mpmath.mpf(float(g)) - want)) / np.spacing(abs(float(want)))
            )
    assert worst <= BOUNDS[fn][1], worst


@pytest.mark.parametrize("t", ["f", "d"])
@pytest.mark.parametrize("fn", ONE)
def test_special_values(lib, fn, t):
    dtype = TYPES[t][1]
    x = np.array(
        [
            0.0,
            -0.0,
            np.inf,
            -np.inf,
            np.nan,
            1.0,
            -1.0,
            np.finfo(dtype).tiny,
            np.finfo(dtype).max,
            -np.finfo(dtype).max,
            np.finfo(dtype).smallest_subnormal,
            1e4,
            -1e4,
            1e6,
            3e7,
        ],
        dtype,
    )
    got, want = apply(lib, fn, t, x), reference(fn, x.astype(np.float64)).astype(dtype)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=np.finfo(dtype).smallest_subnormal)
    if fn not in ("rsqrt",):
        zero = want == 0
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))


@pytest.mark.parametrize("flags", [(), ("-ffp-contract=off",)])
def test_tanh_ends_at_one(flags):
    """Exactly, whether products and sums are fused or not: 1 - t * t is 0 there."""
    x = np.array([9.02, 9.5, 20, 1e30, np.inf], np.float32)
    library = _library(*flags)
    below = np.linspace(7.5, 9, 20_000, dtype=np.float32)
    error = np.abs(apply(library, "tanh", "f", below) - np.tanh(below.astype(np.float64)))
    assert error.max() < 1.6 * 2.0**-24
    assert apply(library, "tanh", "f", np.concatenate([x, -x])).tolist() == [1.0] * 5 + [-1.0] * 5


@pytest.mark.parametrize("fn, first", [("sin", 2), ("cos", 1)])
def test_zeros_far_out(lib, fn, first):
    """Beside multiples of pi / 2 results are small, and right in their own last places."""
    x = (np.arange(first, 5200, 2) * (np.pi / 2)).astype(np.float32)
    want = reference(fn, x.astype(np.float64))
    error = np.abs(apply(lib, fn, "f", x) - want) / np.spacing(np.abs(want).astype(np.float32))
    assert error.max() < 0.75


@pytest.mark.parametrize("t", ["f", "d"])
def test_pow(lib, t):
    dtype = TYPES[t][1]
    rng = np.random.default_rng(0)
    x = np.exp(rng.uniform(-20, 20, 5000)).astype(dtype)
    y = rng.uniform(-3, 3, 5000).astype(dtype)
    want = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    got = apply(lib, "pow", t, x, y)
    assert np.max(np.abs(got - want) / np.spacing(want.astype(dtype))) <= 1.5
    edge = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 3.0, -3.0]
    a, b = (m.ravel() for m in np.meshgrid(np.array(edge, dtype), np.array(edge, dtype)))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(apply(lib, "pow", t, a, b), np.power(a, b), rtol=1e-6)


@pytest.mark.parametrize("fn", ["atan2", "fmod", "remainder"])
def test_functions_of_two_numbers(lib, fn):
    edge = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 3.0, -2.5, 1e-30, -1e30]
    rng = np.random.default_rng(0)
    for t, (_, dtype) in TYPES.items():
        a, b = (np.concatenate([g.ravel(), rng.normal(size=3000)]).astype(dtype)
                for g in np.meshgrid(edge, edge))
        reference = {"atan2": np.arctan2, "fmod": np.fmod, "remainder": np.remainder}[fn]
        with np.errstate(all="ignore"):
            want = reference(a, b)
        got = apply(lib, fn, t, a, b)
        np.testing.assert_allclose(got, want, rtol=4 * np.finfo(dtype).eps, atol=0)
        known = ~np.isnan(want)
        assert (np.signbit(got) == np.signbit(want))[known].all()


@pytest.mark.parametrize("flags", [(), ("-ffp-contract=off",)])
def test_tanh_is_odd_and_within_one(flags):
    x = np.concatenate([points("tanh", np.float32), np.linspace(8, 10, 20_000, dtype=np.float32)])
    library = _library(*flags)
    y = apply(library, "tanh", "f", x)
    assert np.abs(y).max() == 1
    np.testing.assert_array_equal(apply(library, "tanh", "f", -x), -y)


@pytest.mark.parametrize("t, lo, hi", [("f", -105, 90), ("d", -748, 711)])
def test_ends_of_exp(lib, t, lo, hi):
    """Subnormal results are rounded once, what is too large is infinite."""
    dtype = TYPES[t][1]
    x = np.concatenate([np.linspace(lo, lo + 20, 5000), np.linspace(hi - 5, hi, 5000)])
    x, largest = x.astype(dtype), np.longdouble(np.finfo(dtype).max)
    with np.errstate(all="ignore"):
        want, got = np.exp(x.astype(np.longdouble)), apply(lib, "exp", t, x)
        error = np.abs(got - want)
    finite = want < largest
    assert (error[finite] <= 1.5 * np.spacing(want[finite].astype(dtype))).all()
    assert np.isinf(got[want > largest * np.longdouble(1.001)]).all()
