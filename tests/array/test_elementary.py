"""Elementary functions of float32 in eager mode: rightly rounded, with and without C."""

import math
import threading

import numpy as np
import pytest
from scipy import special

import pullback as torch
from pullback.array import elementary

RANGES = {
    "exp": (-105, 90), "exp2": (-151, 129), "expm1": (-20, 90), "sigmoid": (-105, 20),
    "tanh": (-10, 10), "sinh": (-91, 91), "cosh": (-91, 91), "log": (0, 100), "log2": (0, 100),
    "log10": (0, 100), "log1p": (-1, 100), "sin": (-1e4, 1e4), "cos": (-1e4, 1e4),
    "tan": (-1e4, 1e4), "asin": (-1, 1), "acos": (-1, 1), "atan": (-50, 50), "asinh": (-1e3, 1e3),
    "acosh": (1, 1e3), "atanh": (-1, 1), "erf": (-4.5, 4.5),
}  # fmt: skip
OF_NUMPY = {"asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh,
            "acosh": np.arccosh, "atanh": np.arctanh, "sigmoid": special.expit, "erf": special.erf}
EDGES = np.array(
    [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 1e-45, -1e-45, 1e-38, -3e-39, 88.72,
     88.73, -87.4, -103.9, -104.1, 0.5, -0.5, 1e4, 1e5, -2e6, 3e7, 1e30, 3.4028235e38,
     -3.4028235e38],
    np.float32)


def wide(name: str, x: np.ndarray) -> np.ndarray:
    """The function in double precision."""
    with np.errstate(all="ignore"):
        return OF_NUMPY.get(name, getattr(np, name, None))(x.astype(np.float64))


def right(name: str, x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return wide(name, x).astype(np.float32)


def points(name: str, count: int) -> np.ndarray:
    """Numbers of a range, near zero and near one."""
    low, high = RANGES[name]
    rng = np.random.default_rng(0)
    near = rng.standard_normal(count)
    x = np.concatenate([rng.uniform(low, high, count), near, 1 + near * 1e-3,
                        near * 10.0 ** rng.uniform(-40, 0, count)])
    return x[(x >= low) & (x <= high)].astype(np.float32)


def ours(name: str, x: np.ndarray) -> np.ndarray:
    return getattr(torch, name)(torch.tensor(x)).numpy()


@pytest.fixture(params=["C", "NumPy"])
def way(request, monkeypatch):
    """The functions by the library, or as they are where there is none."""
    from pullback.compile import elementary_loops, toolchain
    from pullback.compile.errors import CompilerNotFound

    functions = {}
    if request.param == "C":
        try:
            toolchain.find()
        except CompilerNotFound:
            pytest.skip("no C compiler")
        assert elementary_loops._library.get(True) is not None
        functions = elementary_loops.functions
    monkeypatch.setattr(elementary_loops, "found", lambda build: functions)
    kept = {name: list(place) for name, place in elementary._made.items()}
    for name, place in elementary._made.items():
        place[:] = [functions[name]] if functions else []
    yield request.param
    for name, place in elementary._made.items():
        place[:] = kept[name]


@pytest.mark.parametrize("name", RANGES)
def test_rounding(way, name):
    x = points(name, 8000)
    want = wide(name, x)
    got = np.concatenate([ours(name, part) for part in np.array_split(x, 8)])
    with np.errstate(all="ignore"):
        rounded = want.astype(np.float32)
    finite = np.isfinite(rounded)
    error = (np.abs(got - want) / np.spacing(np.abs(rounded)))[finite]
    assert error.max() < 0.501
    assert (got != rounded)[finite].mean() < 1e-4
    np.testing.assert_array_equal(got[~finite], rounded[~finite])


@pytest.mark.parametrize("name", RANGES)
def test_edges(way, name):
    got, want = ours(name, EDGES), right(name, EDGES)
    np.testing.assert_array_equal(got, want)
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(want[known]))
    for x in EDGES:  # alone, too, and as a number of NumPy
        alone = getattr(torch, name)(torch.tensor(float(x))).numpy()
        assert alone.shape == ()
        np.testing.assert_array_equal(alone, right(name, x))
        np.testing.assert_array_equal(getattr(elementary, name)(np, x), right(name, x))


@pytest.mark.parametrize("name", ["exp", "log1p", "sin", "sigmoid", "erf"])
def test_memory(way, name):
    """Arrays that are not in rows, results in other memory, in place, nothing at all."""
    function = getattr(torch, name)
    x = np.linspace(0.01, 3, 720, dtype=np.float32).reshape(6, 10, 12)
    want = torch.tensor(right(name, x))
    t = torch.tensor(x)
    for turned in (lambda v: v.transpose(0, 2), lambda v: v[:, ::3, 1::2], lambda v: v.flip(1),
                   lambda v: v.permute(1, 0, 2)[2:], lambda v: v[0, 0].expand(3, 12)):
        got = function(turned(t))
        assert torch.equal(got, turned(want))
        assert got.stride() == torch.neg(turned(t)).stride()
    out = torch.empty(6, 10, 12)
    assert function(t, out=out) is out and torch.equal(out, want)
    apart = torch.zeros(12, 10, 6).transpose(0, 2)
    function(t, out=apart)
    assert torch.equal(apart, want)
    again = t.clone()
    assert getattr(again, name + "_")() is again and torch.equal(again, want)
    part = t.clone()
    getattr(part[:, 2:4], name + "_")()
    assert torch.equal(part[:, 2:4], want[:, 2:4]) and torch.equal(part[:, 4:], t[:, 4:])
    assert function(torch.empty(0, 3)).shape == (0, 3)
    for dtype in (torch.float64, torch.float16):  # others are what they were
        assert function(t.to(dtype)).dtype is dtype
    assert torch.allclose(function(t.double()), torch.tensor(wide(name, x)), rtol=1e-14)


@pytest.mark.parametrize("name", ["exp", "tanh", "sin"])
def test_size_makes_no_difference(way, name):
    """An array that threads share, or that is widened in blocks, has the elements of its parts."""
    x = np.random.default_rng(1).standard_normal((2, elementary.SHARED + 77)).astype(np.float32)
    whole = ours(name, x)
    parts = np.concatenate([ours(name, p) for p in np.array_split(x.reshape(-1), 100)])
    if way == "NumPy" and name == "sin":  # NumPy's own, which is 20 times as fast
        error = np.abs(whole.reshape(-1) - wide(name, x.reshape(-1)))
        assert (error <= 1.5 * np.spacing(np.abs(parts))).all()
    else:
        np.testing.assert_array_equal(whole.reshape(-1), parts)


def test_exp_into_its_array(way):
    for shape in ((40,), (3, elementary.SHARED)):
        x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        for given in (x.copy(), np.asfortranarray(x), x.astype(np.float64)):
            want = right("exp", given) if given.dtype == np.float32 else np.exp(given)
            assert elementary.exp_into(np, given) is given
            assert np.allclose(given, want, rtol=1.2e-7, atol=0) and (given != want).mean() < 1e-4


def test_nothing_is_said_of_infinities(way):
    """The C functions leave no marks that NumPy would warn of, or stop at."""
    if way != "C":
        pytest.skip("NumPy says what NumPy says")
    with np.errstate(all="raise"):
        for name in RANGES:
            ours(name, EDGES)


@pytest.mark.parametrize("way", ["NumPy"], indirect=True)
def test_when_the_library_is_looked_for(way, monkeypatch):
    """At the first large array, and now and then where there are many small ones."""
    from pullback.compile import elementary_loops

    asked = []
    monkeypatch.setattr(elementary_loops, "found", lambda build: asked.append(build) or {})
    monkeypatch.setattr(elementary, "_calls", 0)
    small, large = np.ones(3, np.float32), np.ones(elementary._BLOCK, np.float32)
    for _ in range(elementary._FIRST - 1):
        elementary.exp(np, small)
    assert asked == []
    elementary.exp(np, small)
    assert asked == [False]
    elementary.exp(np, large)
    assert asked == [False, False]
    monkeypatch.setattr(elementary, "_calls", elementary._OFTEN + elementary._FIRST - 1)
    elementary.exp(np, small)
    for thread in threading.enumerate():
        if thread.name.startswith("elementary"):
            thread.join()
    assert sorted(asked) == [False, False, False, True]  # built beside the program


def test_parts_of_other_operators(way):
    x = torch.tensor(np.random.default_rng(2).integers(-600, 600, (30, 40)) / np.float32(64))
    y = x.double()  # their differences are exact
    functional = torch.nn.functional
    for function, units in ((lambda v: torch.softmax(v, 1), 3), (functional.silu, 2),
                            (functional.logsigmoid, 3), (lambda v: torch.logsumexp(v, 1), 2)):
        got, want = function(x).numpy(), function(y).numpy()
        kept = np.abs(want) > 1e-37
        unit = np.spacing(np.abs(want).astype(np.float32))
        assert (np.abs(got - want) / unit)[kept].max() < units
    got = functional.gelu(x).numpy()
    assert np.abs(got - functional.gelu(y).numpy()).max() < 1e-6


# Sine position encodings of PyTorch 2.13: (position, column) -> sine, cosine
ENCODINGS = {
    (1, 0): (0.8414709568023682, 0.5403023362159729),
    (17, 3): (0.4325166344642639, -0.9016259908676147),
    (255, 20): (-0.9964906573295593, 0.08370416611433029),
    (300, 5): (-0.6583673357963562, 0.7526967525482178),
    (511, 1): (0.28400543332099915, -0.9588226675987244),
    (511, 2): (-0.9093910455703735, -0.4159422218799591),
    (511, 100): (0.9896723031997681, 0.1433480829000473),
    (511, 255): (0.052947189658880234, 0.9985973238945007),
}


def encodings(positions: int, width: int):
    rates = torch.exp(torch.arange(0, width, 2) * -(math.log(10000.0) / width))
    angles = torch.arange(float(positions))[:, None] * rates
    return torch.sin(angles), torch.cos(angles)


def test_position_encodings(way):
    """Each step is rounded once.  PyTorch's rates may be the numbers beside the right ones."""
    columns = np.arange(0, 512, 2, dtype=np.float32)
    rates = right("exp", columns * np.float32(-(math.log(10000.0) / 512)))
    angles = np.arange(512, dtype=np.float32)[:, None] * rates
    sines, cosines = encodings(512, 512)
    if way == "NumPy":  # large sines are NumPy's
        assert np.abs(sines.numpy() - right("sin", angles)).max() < 1.2e-7
        assert np.abs(cosines.numpy() - right("cos", angles)).max() < 1.2e-7
    else:
        np.testing.assert_array_equal(sines.numpy(), right("sin", angles))
        np.testing.assert_array_equal(cosines.numpy(), right("cos", angles))
    for (i, j), (sine, cosine) in ENCODINGS.items():
        assert abs(float(sines[i, j]) - sine) < i * 2.0**-24 + 2.0**-23
        assert abs(float(cosines[i, j]) - cosine) < i * 2.0**-24 + 2.0**-23
