"""Derivatives where a textbook formula gives NaN, noise or the wrong one of several answers.

`CASES` holds points with the exact value, Jacobian and second derivative; each is asked in both
modes, in a batch, captured with all decompositions, and to second order in all four combinations
of modes.  Expected numbers are mathematics, or PyTorch 2.13's choice where mathematics leaves one
(ties, kinks).  What does not fit that form, such as refusals, follows below.
`test_linalg.py` and `test_special.py` have more of the same for their families.
"""

import cmath
import functools
import itertools
import math

import numpy as np
import pytest

import pullback as torch
from pullback import errors
from pullback.autograd import grad
from pullback.decomp import core_aten_decompositions
from pullback.func import jacfwd, jacrev, jvp, vmap
from pullback.nn import functional as F

inf, nan = math.inf, math.nan
ln2 = math.log(2)


def doubles(data):
    return torch.tensor(data, dtype=torch.float64)


def leaf(data, dtype=torch.float64):
    return torch.tensor(data, dtype=dtype, requires_grad=True)


def numbers(t):
    return t.detach().numpy()


def sparse(shape, entries=None):
    """An array of zeros with some other entries."""
    out = np.zeros(shape)
    for index, value in (entries or {}).items():
        out[index] = value
    return out


def both(shape, entries):
    """Second derivatives: each entry (..., i, j) at (..., j, i) too, for vectors."""
    return sparse(shape, {**{(*k[:-2], k[-1], k[-2]): v for k, v in entries.items()}, **entries})


CASES = {}


def case(name, f, x, value, jacobian, second=None, but=()):
    """Register a point; `but` names ways of asking that have no answer there, or another one."""
    assert name not in CASES
    CASES[name] = (f, x, value, jacobian, second, but)


FIRST = {
    "reverse": jacrev,
    "forward": jacfwd,
    "batched": lambda f: lambda x: vmap(jacrev(f))(beside_another(x))[1],
    "of a batch": lambda f: lambda x: of_a_batch(f, x),
    "captured": lambda f: lambda x: captured(jacrev(f), x),
}
SECOND = {
    "reverse over reverse": lambda f: jacrev(jacrev(f)),
    "forward over reverse": lambda f: jacfwd(jacrev(f)),
    "reverse over forward": lambda f: jacrev(jacfwd(f)),
    "forward over forward": lambda f: jacfwd(jacfwd(f)),
}


def beside_another(x):
    """A batch of two, whose second entry is the point."""
    return torch.stack([x * 0.5 + 0.1, x])


def of_a_batch(f, x):
    """The Jacobian of the batched function, for the second entry."""
    whole = jacrev(lambda batch: vmap(f)(batch)[1])(beside_another(x))
    return whole.select(whole.ndim - x.ndim - 1, 1)


def captured(f, x):
    """A function as a graph of core operators."""
    return torch.make_fx(f, core_aten_decompositions(), tracing_mode="fake",
                         _allow_non_fake_inputs=True)(x)(x)


def close(found, expected):
    np.testing.assert_allclose(numbers(found), expected, rtol=1e-9, atol=1e-12, equal_nan=True)


def asked(ways):
    for name, (f, x, value, jacobian, second, but) in CASES.items():
        expected = {"value": value, "first": jacobian, "second": second}[ways]
        if expected is None:
            continue
        table = {"value": {"plain": None}, "first": FIRST, "second": SECOND}[ways]
        for way, transform in table.items():
            if way not in but and ways not in but:
                yield pytest.param(f, x, transform, expected, id=f"{name}-{way}")


# ---------------------------------------------------------------------------------------------
# Products with zeros

case("prod, one zero", torch.prod, [2.0, 0, 3], 0, [0, 6, 0], [[0, 3, 0], [3, 0, 2], [0, 2, 0]])
case("prod, two zeros", torch.prod, [0.0, 0, 3], 0, [0, 0, 0], [[0, 3, 0], [3, 0, 0], [0, 0, 0]])
case("prod, three zeros", torch.prod, [0.0, 0, 0], 0, [0, 0, 0], sparse((3, 3)))
case("prod of one zero", torch.prod, 0.0, 0, 1, 0)
case("prod of nothing", torch.prod, [], 1, sparse((0,)))
case("prod along a dim", lambda x: x.prod(1), [[0.0, 2], [0, 0]], [0, 0],
     sparse((2, 2, 2), {(0, 0, 0): 2}),
     sparse((2, 2, 2, 2, 2), {(i, i, j, i, 1 - j): 1 for i in (0, 1) for j in (0, 1)}))
case("cumprod, one zero", lambda x: x.cumprod(0), [2.0, 0, 3], [2, 0, 0],
     [[1, 0, 0], [0, 2, 0], [0, 6, 0]],
     both((3, 3, 3), {(1, 0, 1): 1, (2, 0, 1): 3, (2, 1, 2): 2}))
case("cumprod, two zeros", lambda x: x.cumprod(0), [0.0, 0, 3], [0, 0, 0],
     sparse((3, 3), {(0, 0): 1}), both((3, 3, 3), {(1, 0, 1): 1, (2, 0, 1): 3}))
case("cumprod, last zero", lambda x: x.cumprod(-1), [[2.0, 0]], [[2, 0]],
     sparse((1, 2, 1, 2), {(0, 0, 0, 0): 1, (0, 1, 0, 1): 2}),
     sparse((1, 2, 1, 2, 1, 2), {(0, 1, 0, 0, 0, 1): 1, (0, 1, 0, 1, 0, 0): 1}))


def power(v):
    return torch.pow(v[0], v[1])


# ---------------------------------------------------------------------------------------------
# Powers

case("0 ** 0", power, [0.0, 0], 1, [0, 0], sparse((2, 2)))
case("0 ** 1", power, [0.0, 1], 0, [1, 0])
case("0 ** 2", power, [0.0, 2], 0, [0, 0], [[2, 0], [0, 0]])
case("0 ** 3", power, [0.0, 3], 0, [0, 0], sparse((2, 2)))
_one_at_a_time = ("forward",)  # tangents of zero times an infinite derivative would be NaN
case("0 ** 0.5", power, [0.0, 0.5], 0, [inf, 0], but=_one_at_a_time)
case("0 ** -1", power, [0.0, -1], inf, [-inf, -inf], but=_one_at_a_time)
case("2 ** 0", power, [2.0, 0], 1, [0, ln2], [[0, 0.5], [0.5, ln2**2]])
case("-2 ** 3", power, [-2.0, 3], -8, [12, nan], but=_one_at_a_time)
case("-2 ** 0.5", power, [-2.0, 0.5], nan, [nan, nan])
for _p, _value, _slope, _bend in [(0, 1, 0, 0), (1, 0, 1, 0), (2, 0, 0, 2), (3, 0, 0, 0),
                                  (0.0, 1, 0, 0), (1.5, 0, 0, inf), (0.5, 0, inf, -inf),
                                  (-1, inf, -inf, inf)]:
    case(f"0 ** number {_p!r}", functools.partial(lambda x, p: x**p, p=_p), 0.0, _value, _slope,
         _bend)
for _p, _value, _slope, _bend in [(0, 1, 0, 0), (2, 4, -4, 2), (3, -8, 12, -12),
                                  (-1, -0.5, -0.25, -0.25), (0.5, nan, nan, nan)]:
    case(f"-2 ** number {_p!r}", functools.partial(lambda x, p: x**p, p=_p), -2.0, _value, _slope,
         _bend)
for _p, _value, _slope in [(0.0, 1, 0), (2.0, 0, 0), (0.5, 0, 0), (-1.0, inf, -inf)]:
    case(f"number 0 ** {_p}", lambda x: torch.pow(0, x), _p, _value, _slope, 0 if _p >= 0 else None)
case("number -2 ** 2", lambda x: torch.pow(-2.0, x), 2.0, 4, nan)
case("float_power 0 ** 2", lambda v: torch.float_power(v[0], v[1]), [0.0, 2], 0, [0, 0],
     [[2, 0], [0, 0]])

# ---------------------------------------------------------------------------------------------
# Norms

for _p in (0, 0.5, 1, 1.5, 2, 3, inf, -inf):
    for _name, _f in {"norm": torch.norm, "vector_norm": torch.linalg.vector_norm}.items():
        _flat = sparse((3, 3)) if _p != 1.5 else None  # |x|^0.5 has no second derivative at 0
        case(f"{_name} {_p} at 0", functools.partial(lambda x, p, f: f(x, p), p=_p, f=_f),
             [0.0] * 3, 0, [0] * 3, _flat)
        case(f"{_name} {_p} of rows", functools.partial(lambda x, p, f: f(x, p, dim=1), p=_p, f=_f),
             [[0.0, 0], [0, 0]], [0, 0], sparse((2, 2, 2)))
_n3, _n15, _n05 = 91 ** (1 / 3), (3**1.5 + 8) ** (2 / 3), (3**0.5 + 2) ** 2
for _p, _value, _slope in [(0, 2, [0, 0, 0]), (1, 7, [0, 1, -1]), (2, 5, [0, 0.6, -0.8]),
                           (3, _n3, [0, 9 / _n3**2, -16 / _n3**2]), (inf, 4, [0, 0, -1]),
                           (-inf, 0, [0, 0, 0]),
                           (1.5, _n15, [0, (3 / _n15) ** 0.5, -(4 / _n15) ** 0.5]),
                           (0.5, _n05, [0, (_n05 / 3) ** 0.5, -(_n05 / 4) ** 0.5])]:
    case(f"norm {_p} with a zero entry", functools.partial(lambda x, p: torch.norm(x, p), p=_p),
         [0.0, 3, -4], _value, _slope)
case("norm 2 with a zero entry, twice", torch.linalg.vector_norm, [0.0, 3, -4], 5, [0, 0.6, -0.8],
     (np.eye(3) - np.outer([0, 0.6, -0.8], [0, 0.6, -0.8])) / 5)
case("norm inf, ties", lambda x: x.norm(inf), [2.0, -2, 1], 2, [0.5, -0.5, 0], sparse((3, 3)))
case("norm -inf, ties", lambda x: x.norm(-inf), [2.0, -2, 3], 2, [0.5, -0.5, 0], sparse((3, 3)))
case("norm of nothing", torch.linalg.vector_norm, [], 0, sparse((0,)))
for _p in ("fro", 1, -1, inf, -inf):
    case(f"matrix_norm {_p} at 0", functools.partial(lambda x, p: torch.linalg.matrix_norm(x, p),
         p=_p), [[0.0, 0], [0, 0]], 0, sparse((2, 2)), sparse((2, 2, 2, 2)))
case("matrix_norm 1, ties", lambda x: torch.linalg.matrix_norm(x, 1), [[1.0, -1], [1, 1]], 2,
     [[0.5, -0.5], [0.5, 0.5]], sparse((2, 2, 2, 2)))
case("matrix_norm inf, ties", lambda x: torch.linalg.matrix_norm(x, inf), [[1.0, -1], [1, 1]], 2,
     [[0.5, -0.5], [0.5, 0.5]], sparse((2, 2, 2, 2)))
case("matrix_norm nuc of rank 1", lambda x: torch.linalg.matrix_norm(x, "nuc"),
     [[1.0, 2], [2, 4]], 5, np.outer([1, 2], [1, 2]) / 5 + np.outer([2, -1], [2, -1]) / 5,
     but=("first",))  # one of the subgradients: either sign of the second term
case("cosine_similarity at 0", lambda x: F.cosine_similarity(x, doubles([3.0, 4]), dim=0),
     [0.0, 0], 0, [6e7, 8e7], sparse((2, 2)))
case("normalize at 0", lambda x: F.normalize(x, dim=0), [0.0, 0], [0, 0], 1e12 * np.eye(2),
     sparse((2, 2, 2)))
case("dist at 0", lambda v: torch.dist(v, doubles([1.0, 2])), [1.0, 2], 0, [0, 0], sparse((2, 2)))
case("cdist at 0", lambda v: torch.cdist(v, doubles([[1.0, 2]])), [[1.0, 2]], [[0]],
     sparse((1, 1, 1, 2)))
case("pairwise_distance at 0", lambda v: F.pairwise_distance(v, doubles([[1.0, 2]]), eps=0.0),
     [[1.0, 2]], [0], sparse((1, 1, 2)), sparse((1, 1, 2, 1, 2)))

# ---------------------------------------------------------------------------------------------
# Variance

_three = np.eye(3) - 1 / 3
case("var of equal elements", torch.var, [2.0, 2, 2], 0, [0, 0, 0], _three)
case("std of equal elements", torch.std, [2.0, 2, 2], 0, [0, 0, 0], sparse((3, 3)))
case("std of equal rows", lambda x: x.std(1), [[2.0, 2]], [0], sparse((1, 1, 2)),
     sparse((1, 1, 2, 1, 2)))
case("std_mean of equal elements", lambda x: torch.stack(torch.std_mean(x)), [2.0, 2], [0, 2],
     [[0, 0], [0.5, 0.5]], sparse((2, 2, 2)))
case("var of one element", torch.var, [3.0], nan, [nan])
case("var of one element, without correction", lambda x: x.var(correction=0), [3.0], 0, [0], [[0]])
case("std of one element", torch.std, [3.0], nan, [nan])
case("std of one element, without correction", lambda x: x.std(correction=0), [3.0], 0, [0], [[0]])
case("var with too large a correction", lambda x: x.var(0, correction=3), [1.0, 2], inf, [1, -1])

# ---------------------------------------------------------------------------------------------
# Sums of exponentials

_low = [-inf, -inf]
case("logsumexp of -inf", lambda x: x.logsumexp(0), _low, -inf, [nan, nan])
case("logsumexp with -inf", lambda x: x.logsumexp(0), [-inf, 1.0, 1.0], 1 + ln2, [0, 0.5, 0.5],
     both((3, 3), {(1, 1): 0.25, (2, 2): 0.25, (1, 2): -0.25}))
case("logsumexp with inf", lambda x: x.logsumexp(0), [inf, 1.0], inf, [nan, 0],
     but=("forward",))
case("logsumexp of large numbers", lambda x: x.logsumexp(0), [1000.0, 1000], 1000 + ln2, [0.5, 0.5])
case("softmax with -inf", lambda x: x.softmax(0), [-inf, 1.0, 1.0], [0, 0.5, 0.5],
     [[0, 0, 0], [0, 0.25, -0.25], [0, -0.25, 0.25]])
case("softmax of -inf", lambda x: x.softmax(0), _low, [nan, nan], sparse((2, 2)) + nan)
case("softmax of large numbers", lambda x: x.softmax(0), [1000.0, 1000], [0.5, 0.5],
     [[0.25, -0.25], [-0.25, 0.25]])
case("log_softmax with -inf", lambda x: x.log_softmax(0), [-inf, 1.0, 1.0], [-inf, -ln2, -ln2],
     [[1, -0.5, -0.5], [0, 0.5, -0.5], [0, -0.5, 0.5]])
case("log_softmax of -inf", lambda x: x.log_softmax(0), _low, [nan, nan], sparse((2, 2)) + nan)
case("safe softmax of -inf", lambda x: torch._safe_softmax(x, 0), _low, [0, 0], sparse((2, 2)),
     sparse((2, 2, 2)))
case("logcumsumexp with -inf", lambda x: x.logcumsumexp(0), [-inf, 1.0, 1.0], [-inf, 1, 1 + ln2],
     [[1, 0, 0], [0, 1, 0], [0, 0.5, 0.5]],
     both((3, 3, 3), {(2, 1, 1): 0.25, (2, 2, 2): 0.25, (2, 1, 2): -0.25}))
case("logcumsumexp of -inf", lambda x: x.logcumsumexp(0), [-inf, -inf, 1.0], [-inf, -inf, 1],
     [[1, 0, 0], [1, 0, 0], [0, 0, 1]], sparse((3, 3, 3)))
case("logcumsumexp with inf", lambda x: x.logcumsumexp(0), [1.0, inf, inf], [1, inf, inf],
     [[1, 0, 0], [0, 1, 0], [0, 1, 0]], sparse((3, 3, 3)))
case("cumsum with -inf", lambda x: x.cumsum(0), [-inf, 1.0], [-inf, -inf], [[1, 0], [1, 1]])


def log_of_sum(v):
    return torch.logaddexp(v[0], v[1])


case("logaddexp of large numbers", log_of_sum, [1000.0, 1000], 1000 + ln2, [0.5, 0.5],
     [[0.25, -0.25], [-0.25, 0.25]])
case("logaddexp of far numbers", log_of_sum, [1000.0, -1000], 1000, [1, 0], sparse((2, 2)))
case("logaddexp with -inf", log_of_sum, [-inf, 1.0], 1, [0, 1], sparse((2, 2)))
case("logaddexp of inf and -inf", log_of_sum, [inf, -inf], inf, [1, 0], sparse((2, 2)))
case("logaddexp2 with -inf", lambda v: torch.logaddexp2(v[0], v[1]), [-inf, 1.0], 1, [0, 1],
     sparse((2, 2)))

# ---------------------------------------------------------------------------------------------
# Masks

_mask = torch.tensor([True, False])
case("where picks", lambda x: torch.where(_mask, x, doubles([nan, 5.0])), [1.0, nan], [1, 5],
     [[1, 0], [0, 0]], sparse((2, 2, 2)))
case("where before the root", lambda x: torch.where(x > 0, torch.where(x > 0, x, 1.0).sqrt(), 0.0),
     [0.0, 4], [0, 2], [[0, 0], [0, 0.25]], sparse((2, 2, 2), {(1, 1, 1): -1 / 32}))
case("masked_fill", lambda x: x.masked_fill(_mask, 0.0), [nan, 2.0], [0, 2], [[0, 0], [0, 1]],
     sparse((2, 2, 2)))
case("nan_to_num", lambda x: torch.nan_to_num(x, 1.0, 2.0, 3.0), [nan, inf, -inf, 4], [1, 2, 3, 4],
     np.diag([0, 0, 0, 1]), sparse((4, 4, 4)))
case("nansum", torch.nansum, [nan, 1.0], 1, [0, 1], sparse((2, 2)))
case("nanmean", torch.nanmean, [nan, 1.0, 3.0], 2, [0, 0.5, 0.5], sparse((3, 3)))

# ---------------------------------------------------------------------------------------------
# Ends of domains: value, first and second derivative

_tiny = 1e-300
EDGES = {
    "sqrt": [(0.0, 0, inf, -inf), (-1.0, nan, nan, nan)],
    "rsqrt": [(0.0, inf, -inf, inf), (-1.0, nan, nan, nan)],
    "acos": [(1.0, 0, -inf, None), (-1.0, math.pi, -inf, None), (2.0, nan, nan, nan)],
    "asin": [(1.0, math.pi / 2, inf, None), (-1.0, -math.pi / 2, inf, None), (2.0, nan, nan, nan)],
    "acosh": [(1.0, 0, inf, None), (0.5, nan, nan, nan)],
    "atanh": [(1.0, inf, inf, None), (-1.0, -inf, inf, None)],
    "log": [(0.0, -inf, inf, -inf)],
    "log2": [(0.0, -inf, inf, None)],
    "log10": [(0.0, -inf, inf, None)],
    "log1p": [(-1.0, -inf, inf, -inf), (1e-20, 1e-20, 1, -1), (0.0, 0, 1, -1)],
    "expm1": [(1e-20, 1e-20, 1, 1), (0.0, 0, 1, 1), (-inf, -1, 0, 0)],
    "reciprocal": [(0.0, inf, -inf, inf)],
    "abs": [(0.0, 0, 0, 0), (-2.0, 2, -1, 0)],
    "sgn": [(0.0, 0, 0, 0)],
    "sign": [(0.0, 0, 0, 0)],
    "angle": [(0.0, 0, 0, 0), (-1.0, math.pi, 0, 0)],
    "frac": [(1.5, 0.5, 1, 0), (-1.5, -0.5, 1, 0), (2.0, 0, 1, 0)],
    "digamma": [(0.0, -inf, inf, None), (-1.0, nan, inf, None)],
    "lgamma": [(0.0, inf, -inf, None), (-1.0, inf, nan, None)],
    "erfinv": [(1.0, inf, inf, None), (-1.0, -inf, inf, None),
               (0.0, 0, math.sqrt(math.pi) / 2, 0)],
    "sinc": [(0.0, 1, 0, -math.pi**2 / 3), (1e-8, 1, -1e-8 * math.pi**2 / 3, -math.pi**2 / 3),
             (_tiny, 1, 0, -math.pi**2 / 3)],
    "tanh": [(1e3, 1, 0, 0), (-1e3, -1, 0, 0)],
    "sigmoid": [(1e3, 1, 0, 0), (-1e3, 0, 0, 0)],
    "asinh": [(1e-20, 1e-20, 1, None), (0.0, 0, 1, 0)],
    "logit": [(0.0, -inf, inf, None), (1.0, inf, inf, None)],
    "special.entr": [(0.0, 0, inf, None), (1.0, 0, -1, -1), (-1.0, -inf, nan, None)],
    "relu": [(0.0, 0, 0, 0)],
    "square": [(0.0, 0, 0, 2)],
}
for _name, _points in EDGES.items():
    for _at, *_expected in _points:
        case(f"{_name} at {_at}",
             functools.partial(lambda x, name: functools.reduce(getattr, name.split("."), torch)(x),
                               name=_name), _at, *_expected)
case("polygamma(1) at 0", lambda x: torch.polygamma(1, x), 0.0, inf, -inf)

ACTIVATIONS = {
    F.gelu: [(1e3, 1e3, 1, 0), (-1e3, 0, 0, 0), (0.0, 0, 0.5, math.sqrt(2 / math.pi))],
    F.silu: [(1e3, 1e3, 1, 0), (-1e3, 0, 0, 0), (0.0, 0, 0.5, 0.5)],
    F.softplus: [(1e3, 1e3, 1, 0), (-1e3, 0, 0, 0), (0.0, ln2, 0.5, 0.25)],
    F.logsigmoid: [(1e3, 0, 0, 0), (-1e3, -1e3, 1, 0), (0.0, -ln2, 0.5, -0.25)],
    F.mish: [(1e3, 1e3, 1, 0), (-1e3, 0, 0, 0)],
    F.elu: [(1e3, 1e3, 1, 0), (-1e3, -1, 0, 0), (0.0, 0, 1, 0)],
    F.softsign: [(0.0, 0, 1, 0)],
    F.tanhshrink: [(1e3, 1e3 - 1, 1, 0), (0.0, 0, 0, 0)],
    F.hardtanh: [(1.0, 1, 0, 0), (-1.0, -1, 0, 0)],
    F.relu6: [(0.0, 0, 0, 0), (6.0, 6, 0, 0)],
    F.hardsigmoid: [(3.0, 1, 0, 0), (-3.0, 0, 0, 0)],
    F.hardshrink: [(0.5, 0, 0, 0)],
    F.softshrink: [(0.5, 0, 0, 0)],
    F.leaky_relu: [(0.0, 0, 0.01, 0)],
}
for _f, _points in ACTIVATIONS.items():
    for _at, *_expected in _points:
        case(f"{_f.__name__} at {_at}", _f, _at, *_expected)
case("tanh gelu at 1000", lambda x: F.gelu(x, approximate="tanh"), 1e3, 1e3, 1, 0)


def pair(name, f, at, value, slopes, second=None, but=()):
    case(f"{name} at {at}", lambda v: f(v[0], v[1]), list(at), value, slopes, second, but)


pair("atan2", torch.atan2, (0.0, 0.0), 0, [0, 0], sparse((2, 2)))
pair("atan2", torch.atan2, (0.0, -1.0), math.pi, [-1, 0], [[0, -1], [-1, 0]])
pair("hypot", torch.hypot, (0.0, 0.0), 0, [nan, nan])  # as PyTorch's
pair("hypot", torch.hypot, (3e200, 4e200), 5e200, [0.6, 0.8])
pair("copysign", torch.copysign, (0.0, -1.0), 0, [0, 0], sparse((2, 2)))
pair("copysign", torch.copysign, (2.0, -0.0), -2, [-1, 0], sparse((2, 2)))
pair("xlogy", torch.xlogy, (0.0, 0.0), 0, [0, nan], but=_one_at_a_time)
pair("xlogy", torch.xlogy, (0.0, -1.0), 0, [0, 0])
pair("xlogy", torch.xlogy, (0.0, nan), nan, [nan, nan])
pair("xlogy", torch.xlogy, (2.0, 0.0), -inf, [-inf, inf], but=_one_at_a_time)
pair("xlog1py", torch.special.xlog1py, (0.0, -2.0), 0, [0, 0])
pair("xlog1py", torch.special.xlog1py, (0.0, -1.0), 0, [0, nan], but=_one_at_a_time)
for _x, _y, _value in [(5.0, 3.0, 2), (-5.0, 3.0, -2), (5.0, -3.0, 2), (-5.0, -3.0, -2)]:
    pair("fmod", torch.fmod, (_x, _y), _value, [1, -math.trunc(_x / _y)], sparse((2, 2)))
for _x, _y, _value in [(5.0, 3.0, 2), (-5.0, 3.0, 1), (5.0, -3.0, -1), (-5.0, -3.0, -2),
                       (-6.0, 3.0, 0)]:
    pair("remainder", torch.remainder, (_x, _y), _value, [1, -math.floor(_x / _y)], sparse((2, 2)))
for _mode in ("floor", "trunc"):
    pair(f"div, {_mode}", functools.partial(torch.div, rounding_mode=_mode), (-7.0, 2.0),
         {"floor": -4, "trunc": -3}[_mode], [0, 0], sparse((2, 2)))
pair("floor_divide", torch.floor_divide, (-7.0, 2.0), -4, [0, 0], sparse((2, 2)))

# ---------------------------------------------------------------------------------------------
# Ties

_tied = [2.0, 5, 5, 1, 1]
for _f, _value, _slope in [(torch.max, 5, [0, 0.5, 0.5, 0, 0]), (torch.min, 1, [0, 0, 0, 0.5, 0.5]),
                           (torch.amax, 5, [0, 0.5, 0.5, 0, 0]),
                           (torch.amin, 1, [0, 0, 0, 0.5, 0.5]),
                           (torch.median, 2, [1, 0, 0, 0, 0]),
                           (torch.nanmedian, 2, [1, 0, 0, 0, 0])]:
    case(f"{_f.__name__}, ties", _f, _tied, _value, _slope, sparse((5, 5)))
case("median, equal neighbours", torch.median, [3.0, 1, 3], 3, [0.5, 0, 0.5], sparse((3, 3)))
case("max, NaN", torch.max, [1.0, nan, 3, nan], nan, [0, 0.5, 0, 0.5])
case("nanmedian, NaN", torch.nanmedian, [1.0, nan, 3, nan], 1, [1, 0, 0, 0])
case("aminmax, ties", lambda x: torch.stack(torch.aminmax(x)), _tied, [1, 5],
     [[0, 0, 0, 0.5, 0.5], [0, 0.5, 0.5, 0, 0]], sparse((2, 5, 5)))
case("max along a dim takes the first", lambda x: x.max(0).values, _tied, 5, [0, 1, 0, 0, 0])
case("amax along a dim shares", lambda x: x.amax(0), _tied, 5, [0, 0.5, 0.5, 0, 0])
case("cummax takes the last", lambda x: x.cummax(0).values, [5.0, 5], [5, 5], np.eye(2))
for _f in (torch.maximum, torch.minimum):
    pair(f"{_f.__name__}, ties", _f, (1.0, 1.0), 1, [0.5, 0.5], sparse((2, 2)))
    pair(f"{_f.__name__}, NaN", _f, (nan, 1.0), nan, [1, 1], sparse((2, 2)))
for _f in (torch.fmax, torch.fmin):
    pair(f"{_f.__name__}, ties", _f, (1.0, 1.0), 1, [1, 0], sparse((2, 2)))
    pair(f"{_f.__name__}, NaN", _f, (nan, 1.0), 1, [0, 1], sparse((2, 2)))

# ---------------------------------------------------------------------------------------------
# Clamping

case("clamp", lambda x: x.clamp(0, 1), [-1.0, 0, 0.5, 1, 2, nan], [0, 0, 0.5, 1, 1, nan],
     np.diag([0, 1, 1, 1, 0, 0]), sparse((6, 6, 6)))
case("clamp, min above max", lambda x: x.clamp(2, 1), [0.0, 1.5, 3], [1, 1, 1], sparse((3, 3)))


def clamped(v):
    return torch.clamp(v[0], v[1], v[2])


for _at, _value, _slope in [((-1.0, 0.0, 1.0), 0, [0, 1, 0]), ((0.0, 0.0, 1.0), 0, [1, 0, 0]),
                            ((0.5, 0.0, 1.0), 0.5, [1, 0, 0]), ((1.0, 0.0, 1.0), 1, [1, 0, 0]),
                            ((2.0, 0.0, 1.0), 1, [0, 0, 1]), ((nan, 0.0, 1.0), nan, [0, 0, 0]),
                            ((0.5, nan, 1.0), nan, [0, 0, 0]), ((0.5, 2.0, 1.0), 1, [0, 0, 1])]:
    case(f"clamp with bounds {_at}", clamped, list(_at), _value, _slope, sparse((3, 3)))
pair("clamp_min", torch.clamp_min, (0.0, 0.0), 0, [1, 0], sparse((2, 2)))
pair("clamp_max", torch.clamp_max, (0.0, 0.0), 0, [1, 0], sparse((2, 2)))

# ---------------------------------------------------------------------------------------------
# Losses


def loss(f, *rest, **options):
    return functools.partial(lambda x, f, rest, options: f(x, *rest, **options), f=f,
                             rest=[doubles(r) if isinstance(r, list) else r for r in rest],
                             options=options)


case("smooth_l1_loss, beta 0", loss(F.smooth_l1_loss, [0.0, 0], beta=0.0, reduction="sum"),
     [0.0, 2], 2, [0, 1], sparse((2, 2)))
case("smooth_l1_loss at its kink", loss(F.smooth_l1_loss, [0.0, 0], reduction="sum"), [1.0, -1], 1,
     [1, -1], sparse((2, 2)))
case("huber_loss at its kink", loss(F.huber_loss, [0.0, 0, 0], reduction="sum"), [1.0, -1, 0.5],
     1.125, [1, -1, 0.5], sparse((3, 3), {(2, 2): 1}))
case("l1_loss at 0", loss(F.l1_loss, [0.0, 2], reduction="sum"), [0.0, 1], 1, [0, -1],
     sparse((2, 2)))
case("kl_div, target 0", loss(F.kl_div, [0.0, 1], reduction="sum"), [-2.0, -1], 1, [0, -1],
     sparse((2, 2)))
case("binary_cross_entropy at 0 and 1",
     loss(F.binary_cross_entropy, [0.0, 1, 0, 1], reduction="sum"), [0.0, 0, 1, 1], 200,
     [0, -1e12, 1e12, 0], np.diag([0, 1e24, 1e24, 0]))
case("binary_cross_entropy, target",
     lambda t: F.binary_cross_entropy(doubles([0.0, 1, 0.5]), t, reduction="sum"), [0.5, 0.5, 0.5],
     100 + ln2, [100, -100, 0], sparse((3, 3)))
case("binary_cross_entropy_with_logits far out",
     loss(F.binary_cross_entropy_with_logits, [0.0, 1, 1, 0], reduction="sum"),
     [1e3, 1e3, -1e3, -1e3], 2e3, [1, 0, -1, 0], sparse((4, 4)))
case("binary_cross_entropy_with_logits at 0",
     loss(F.binary_cross_entropy_with_logits, [0.0, 1], reduction="sum"), [0.0, 0], 2 * ln2,
     [0.5, -0.5], np.eye(2) / 4)
case("soft_margin_loss far out", loss(F.soft_margin_loss, [1.0, 1, 1], reduction="sum"),
     [1e3, -1e3, 0], 1e3 + ln2, [0, -1, -0.5], np.diag([0, 0, 0.25]))
case("cross_entropy far out", lambda x: F.cross_entropy(x, torch.tensor([0])), [[1e3, -1e3]], 0,
     [[0, 0]], sparse((1, 2, 1, 2)))
case("cross_entropy, -inf elsewhere", lambda x: F.cross_entropy(x, torch.tensor([0])),
     [[1.0, -inf]], 0, [[0, 0]])
for _reduction, _value in {"mean": nan, "sum": 0, "none": [0, 0]}.items():
    _shape = (2, 2, 3) if _reduction == "none" else (2, 3)
    case(f"cross_entropy, everything ignored, {_reduction}",
         functools.partial(lambda x, r: F.cross_entropy(x, torch.tensor([-100, -100]), reduction=r),
                           r=_reduction), [[1.0, 2, 3], [4, 5, 6]], _value, sparse(_shape),
         but=("forward",) if _reduction == "mean" else ())
case("nll_loss, weights 0", lambda x: F.nll_loss(x, torch.tensor([0, 1]), doubles([0.0, 2]),
     reduction="mean"), [[1.0, 2], [3, 4]], -4, [[0, 0], [0, -1]], sparse((2, 2, 2, 2)))
case("batch_norm of equal elements", lambda x: F.batch_norm(x, None, None, training=True, eps=1.0),
     [[2.0], [2]], [[0], [0]], (np.eye(2) - 0.5).reshape(2, 1, 2, 1), sparse((2, 1, 2, 1, 2, 1)))
case("layer_norm of equal elements", lambda x: F.layer_norm(x, (2,), eps=1.0), [2.0, 2], [0, 0],
     np.eye(2) - 0.5, sparse((2, 2, 2)))
case("rms_norm at 0", lambda x: F.rms_norm(x, (2,), eps=1.0), [0.0, 0], [0, 0], np.eye(2),
     sparse((2, 2, 2)))

# ---------------------------------------------------------------------------------------------
# Indices that repeat


def index(*values):
    return torch.tensor(values, dtype=torch.int64)


case("index_put, accumulating", lambda v: torch.zeros(2, dtype=v.dtype).index_put(
     (index(0, 0, 1),), v, accumulate=True), [1.0, 2, 3], [3, 3], [[1, 1, 0], [0, 0, 1]],
     sparse((2, 3, 3)))
case("index, repeated", lambda x: x[index(0, 0)] ** 2, [3.0, 4], [9, 9], [[6, 0], [6, 0]],
     sparse((2, 2, 2), {(0, 0, 0): 2, (1, 0, 0): 2}))


def reduced(how, include, where=(0, 0, 1)):
    """The first two entries are reduced into, the others are sources."""
    return lambda v: v[:2].scatter_reduce(0, index(*where), v[2:], how, include_self=include)


case("scatter_reduce prod, one zero", reduced("prod", True), [2.0, 3, 0, 5, 7], [0, 21],
     [[0, 0, 10, 0, 0], [0, 7, 0, 0, 3]],
     both((2, 5, 5), {(0, 0, 2): 5, (0, 2, 3): 2, (1, 1, 4): 1}))
case("scatter_reduce prod, two zeros", reduced("prod", True), [2.0, 3, 0, 0, 7], [0, 21],
     [[0, 0, 0, 0, 0], [0, 7, 0, 0, 3]], both((2, 5, 5), {(0, 2, 3): 2, (1, 1, 4): 1}))
case("scatter_reduce prod without self", reduced("prod", False), [2.0, 3, 0, 5, 7], [0, 7],
     [[0, 0, 5, 0, 0], [0, 0, 0, 0, 1]], both((2, 5, 5), {(0, 2, 3): 1}))
case("scatter_reduce amax, ties", reduced("amax", True), [5.0, 3, 5, 5, 7], [5, 7],
     [[1 / 3, 0, 1 / 3, 1 / 3, 0], [0, 0, 0, 0, 1]], sparse((2, 5, 5)))
case("scatter_reduce amax without self, ties", reduced("amax", False), [5.0, 3, 5, 5, 7], [5, 7],
     [[0, 0, 0.5, 0.5, 0], [0, 0, 0, 0, 1]], sparse((2, 5, 5)))
case("scatter_reduce mean without self", reduced("mean", False, (0, 0, 0)), [5.0, 3, 1, 2, 6],
     [3, 3], [[0, 0, 1 / 3, 1 / 3, 1 / 3], [0, 1, 0, 0, 0]], sparse((2, 5, 5)))

# ---------------------------------------------------------------------------------------------
# Memory that overlaps

case("as_strided, overlapping", lambda x: x.as_strided((2, 2), (1, 1)) ** 2, [1.0, 2, 3],
     [[1, 4], [4, 9]], sparse((2, 2, 3), {(i, j, i + j): 2 * (i + j + 1)
                                          for i in (0, 1) for j in (0, 1)}),
     sparse((2, 2, 3, 3), {(i, j, i + j, i + j): 2 for i in (0, 1) for j in (0, 1)}))
case("as_strided, stride 0", lambda x: x.as_strided((2, 2), (0, 1), 1), [1.0, 2, 3],
     [[2, 3], [2, 3]], sparse((2, 2, 3), {(i, j, j + 1): 1 for i in (0, 1) for j in (0, 1)}),
     sparse((2, 2, 3, 3)))
case("as_strided of an expanded tensor", lambda x: x.expand(3, 2).as_strided((1,), (1,)),
     [1.0, 2], [1], [[1, 0]])
case("unfold, overlapping", lambda x: x.unfold(0, 2, 1) ** 2, [1.0, 2, 3], [[1, 4], [4, 9]],
     sparse((2, 2, 3), {(i, j, i + j): 2 * (i + j + 1) for i in (0, 1) for j in (0, 1)}))

# ---------------------------------------------------------------------------------------------
# Determinants of singular matrices

_singular = np.array([[1.0, 2], [2, 4]])
_signs = sparse((2, 2, 2, 2), {(i, j, 1 - i, 1 - j): (-1) ** (i + j)
                               for i in (0, 1) for j in (0, 1)})
case("det of rank 1 of 2", torch.linalg.det, _singular.tolist(), 0, [[4, -2], [-2, 1]], _signs)
case("det of the zero matrix", torch.linalg.det, [[0.0, 0], [0, 0]], 0, sparse((2, 2)), _signs)


def levi_civita(matrix):
    """Second derivatives of the determinant of a 3 by 3 matrix: its entries, with signs."""
    out = np.zeros((3,) * 4)
    for rows in itertools.permutations(range(3)):
        for columns in itertools.permutations(range(3)):
            sign = np.linalg.det(np.eye(3)[list(rows)]) * np.linalg.det(np.eye(3)[list(columns)])
            (i, k, m), (j, l, n) = rows, columns
            out[i, j, k, l] += round(sign) * matrix[m][n]
    return out


def cofactors(matrix):
    return np.einsum("ijkl,kl->ij", levi_civita(matrix), np.asarray(matrix)) / 2


for _rank, _matrix in {2: [[1.0, 2, 3], [4, 5, 6], [5, 7, 9]],
                       1: [[1.0, 2, 3], [2, 4, 6], [3, 6, 9]], 0: [[0.0] * 3] * 3}.items():
    case(f"det of rank {_rank} of 3", torch.linalg.det, _matrix, 0, cofactors(_matrix),
         levi_civita(_matrix))

# ---------------------------------------------------------------------------------------------
# Nothing to work on

case("convolution of an empty batch",
     lambda w: F.conv1d(torch.zeros(0, 2, 4, dtype=w.dtype), w).sum(), [[[1.0, 2], [3, 4]]], 0,
     sparse((1, 2, 2)), sparse((1, 2, 2, 1, 2, 2)))
case("mean of nothing", torch.mean, [], nan, sparse((0,)))

# ---------------------------------------------------------------------------------------------
# Attention

_open = torch.tensor([[True, False], [False, False]])


def attention(q):
    keys = doubles([[1.0, 0], [0, 1]])
    return F.scaled_dot_product_attention(q, keys, keys, attn_mask=_open)


case("attention, a row with everything masked", attention, [[1.0, 2], [3, 4]], [[1, 0], [0, 0]],
     sparse((2, 2, 2, 2)), sparse((2, 2, 2, 2, 2, 2)))


@pytest.mark.parametrize("f, x, _, expected", [*asked("value")])
def test_value(f, x, _, expected):
    close(f(doubles(x)), expected)
    close(captured(f, doubles(x)), expected)
    close(vmap(f)(beside_another(doubles(x)))[1], expected)


@pytest.mark.parametrize("f, x, transform, expected", [*asked("first")])
def test_first_derivative(f, x, transform, expected):
    close(transform(f)(doubles(x)), expected)


@pytest.mark.parametrize("f, x, transform, expected", [*asked("second")])
def test_second_derivative(f, x, transform, expected):
    close(transform(f)(doubles(x)), expected)


def test_every_case_is_asked_something():
    """A case whose every question is left out would pass whatever the operators do."""
    for name, (*_, jacobian, second, but) in CASES.items():
        assert {"value", "first", "second"} - set(but), name
        assert jacobian is not None or second is not None, name


# ---------------------------------------------------------------------------------------------
# Complex numbers


def real_gradients(f, x):
    """Gradients of Re f and Im f, summed over the outputs, in reverse and in forward mode."""
    z = torch.tensor(x, dtype=torch.complex128, requires_grad=True)
    reverse = [numbers(grad(part(f(z)).sum(), z)[0]) for part in (torch.real, torch.imag)]
    forward = [np.zeros_like(r) for r in reverse]
    for place in np.ndindex(*z.shape):
        for unit in (1, 1j):
            tangent = np.zeros(z.shape, complex)
            tangent[place] = unit
            moved = jvp(f, (z.detach(),), (torch.from_numpy(tangent),))[1].sum().item()
            forward[0][place] += unit * moved.real
            forward[1][place] += unit * moved.imag
    return reverse, forward


@pytest.mark.parametrize("x, partial", [
    ([2j, 0, 3], [0, 6j, 0]), ([0, 0, 3j], [0, 0, 0]), ([1 + 1j, 2, 0], [0, 0, 2 + 2j])])
def test_complex_products_with_zeros(x, partial):
    """With the derivative d of a holomorphic f, Re f has the gradient conj(d), Im f i conj(d)."""
    slope = np.conj(np.array(partial, dtype=complex))
    for found in real_gradients(torch.prod, x):
        np.testing.assert_allclose(found, [slope, 1j * slope], atol=1e-14)
    below = np.array([[np.prod(np.delete(x[: k + 1], i)) if i <= k else 0 for i in range(3)]
                      for k in range(3)]).sum(0).conj()
    for found in real_gradients(lambda z: z.cumprod(0), x):
        np.testing.assert_allclose(found, [below, 1j * below], atol=1e-14)


@pytest.mark.parametrize("f", [torch.abs, torch.sgn, torch.angle, torch.linalg.vector_norm])
def test_complex_zero_has_the_gradient_zero(f):
    z = torch.zeros(2, dtype=torch.complex128, requires_grad=True)
    (first,) = grad(torch.view_as_real(f(z) + 0j).sum(), z, create_graph=True)
    assert (first == 0).all()
    (second,) = grad(torch.view_as_real(first).sum(), z, allow_unused=True, materialize_grads=True)
    assert (second == 0).all()
    moved = jvp(f, (z.detach(),), (torch.ones_like(z),))[1]
    assert (moved == 0).all()


def test_complex_powers_of_zero():
    for exponent, slope in [(0, 0), (1, 1), (2, 0)]:
        for found in real_gradients(lambda z, p=exponent: z**p, [0]):
            np.testing.assert_allclose(found, [[slope], [1j * slope]])
    base = torch.zeros(2, dtype=torch.complex128, requires_grad=True)
    exponent = torch.tensor([0j, 2], requires_grad=True)
    found = grad(torch.view_as_real(base**exponent).sum(), [base, exponent])
    assert all((g == 0).all() for g in found)


# ---------------------------------------------------------------------------------------------
# Decompositions: right, or visibly not


def spectral(function):
    """function(A) of a symmetric matrix by its eigenvalues, as a program."""
    def f(a):
        values, vectors = torch.linalg.eigh(a)
        return (vectors * function(values)) @ vectors.mT
    return f


def rebuilt(a):
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    return (u * s) @ vh


WEIGHTS = np.arange(16.0).reshape(4, 4)


def right_or_not_finite(f, matrix, expected):
    """The gradient of a weighted sum of f in both modes; True if any was right."""
    shape = np.shape(matrix)
    weights = doubles(WEIGHTS[: shape[0], : shape[1]].tolist())
    x = doubles(np.asarray(matrix).tolist())
    total = lambda a: (f(a) * weights).sum()
    found = [numbers(jacrev(total)(x)), numbers(jacfwd(total)(x))]
    good = [np.allclose(g, expected, atol=1e-8) for g in found]
    for g, right in zip(found, good):
        assert right or not np.isfinite(g).all(), g
    return any(good)


@pytest.mark.parametrize("diagonal", [[1, 1, 1], [0, 0, 3], [0, 0, 0], [1, 1, 3], [1, 2, 3]],
                         ids=str)
def test_matrix_functions_by_eigenvalues_are_right_or_not_finite(diagonal):
    """At equal eigenvalues the derivative of f(A) is a limit that the vectors do not show."""
    a = np.diag(np.array(diagonal, dtype=float))
    w = WEIGHTS[:3, :3]
    symmetric = lambda m: (m + m.T) / 2
    distinct = len(set(diagonal)) == 3
    assert right_or_not_finite(spectral(lambda v: v), a, symmetric(w)) or not distinct
    assert right_or_not_finite(spectral(lambda v: v * v), a, symmetric(a @ w + w @ a)) \
        or not distinct


def test_the_matrix_logarithm_at_the_identity_is_not_silently_wrong():
    """All eigenvalues of the logarithm are 0, so no vector seems to be used."""
    w = WEIGHTS[:3, :3]
    assert not right_or_not_finite(spectral(torch.log), np.eye(3), (w + w.T) / 2)


@pytest.mark.parametrize("rank", range(4))
@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (3, 4)])
def test_a_rebuilt_matrix_has_the_derivative_one(shape, rank):
    a = np.zeros(shape)
    for i in range(rank):
        a[i, i] = 3 - i
    assert right_or_not_finite(rebuilt, a, WEIGHTS[: shape[0], : shape[1]]) or rank < 3


VALUES = {  # of matrices whose sum of squared values is the sum of squared entries
    "eigvalsh": (torch.linalg.eigvalsh, lambda u: u + u.T),
    "svdvals": (torch.linalg.svdvals, lambda u: 2 * u),
    "eigvals": (torch.linalg.eigvals, lambda u: 2 * u.T),
}


@pytest.mark.parametrize("ways", SECOND)
@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("diagonal", [[2.0, 2, 2], [3.0, 0, 0], [3.0, 2, 1]], ids=str)
def test_second_derivatives_of_equal_values_are_right_or_not_finite(name, diagonal, ways):
    """tr(A^2) by its eigenvalues: what mixes equal ones does not show in the vectors."""
    values, expected = VALUES[name]
    total = lambda a: torch.real((values(a) ** 2).sum())
    u = WEIGHTS[:3, :3]
    a = doubles(np.diag(diagonal).tolist())
    found = np.einsum("ij,ijkl->kl", u, numbers(SECOND[ways](total)(a)))
    right = np.allclose(found, expected(u))
    assert right or (not np.isfinite(found).all() and len(set(diagonal)) < 3)


def test_the_nuclear_norm_of_an_orthogonal_matrix_has_a_second_derivative():
    """Its gradient, U V^H, is smooth although all singular values are equal."""
    x = leaf([[1.0, -1], [1, 1]])
    (first,) = grad(torch.linalg.matrix_norm(x, "nuc"), x, create_graph=True)
    (second,) = grad(first[0, 0], x)
    np.testing.assert_allclose(numbers(first), numbers(x) / math.sqrt(2))
    # (I - A A^T / |A|^2 ...) / (s1 + s2), projected on what turns A: its skew part
    np.testing.assert_allclose(numbers(second), np.array([[1, 1], [-1, 1]]) * math.sqrt(2) / 8,
                               atol=1e-12)


def slope_of(f, array, direction, step=1e-5):
    ends = [f(torch.from_numpy(array + k * step * direction)).item() for k in (1, -1, 2, -2)]
    return (8 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12 * step)


RANDOM = np.random.default_rng(11)


def generic(shape, complex_):
    real = RANDOM.standard_normal(shape)
    return real + 1j * RANDOM.standard_normal(shape) if complex_ else real


def check_slope(f, array):
    """A real function of a matrix: both modes against differences."""
    direction = generic(array.shape, np.iscomplexobj(array))
    x = torch.from_numpy(array).requires_grad_()
    g = numbers(grad(f(x), x)[0])
    expected = slope_of(f, array, direction)
    assert np.sum(g.conj() * direction).real == pytest.approx(expected, rel=1e-6, abs=1e-9)
    moved = jvp(f, (torch.from_numpy(array),), (torch.from_numpy(direction),))[1]
    assert moved.item() == pytest.approx(expected, rel=1e-6, abs=1e-9)


def weighted(*outputs):
    """A real number that depends on all entries of the outputs, and on no phase."""
    total = 0
    for k, o in enumerate(outputs):
        weights = torch.arange(1, 1 + math.prod(o.shape), dtype=torch.float64).reshape(o.shape)
        total = total + (torch.real(o) * (weights + k)).sum()
        if o.is_complex():
            total = total + (torch.imag(o) * weights.flip(0)).sum()
    return total


SHAPES = [(3, 3), (4, 2), (2, 4)]


@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_qr(shape, mode, complex_):
    a = generic(shape, complex_)
    f = lambda x: weighted(*torch.linalg.qr(x, mode=mode))
    if mode == "complete" and shape[0] > shape[1]:  # the last columns of Q are arbitrary
        x = torch.from_numpy(a).requires_grad_()
        with pytest.raises(RuntimeError, match="more rows than"):
            grad(f(x), x)
        with pytest.raises(RuntimeError, match="more rows than"):
            jvp(f, (x.detach(),), (torch.ones_like(x),))
    else:
        check_slope(f, a)


@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_lu(shape, complex_):
    a = generic(shape, complex_)
    check_slope(lambda x: weighted(*torch.linalg.lu(x)[1:]), a)
    check_slope(lambda x: weighted(torch.linalg.lu_factor(x)[0]), a)


def test_slogdet_of_a_singular_matrix():
    x = leaf([[1.0, 2], [2, 4]])
    sign, size = torch.linalg.slogdet(x)
    assert sign.item() == 0 and size.item() == -inf
    assert not torch.isfinite(grad(size, x)[0]).any()


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (4, 4)])
def test_pinv_and_lstsq_of_low_rank(shape):
    """The derivative along changes that keep the rank."""
    left, right = generic((shape[0], 2), False), generic((2, shape[1]), False)
    d_left, d_right = generic(left.shape, False), generic(right.shape, False)
    b = torch.from_numpy(generic((shape[0], 2), False))
    for f in (lambda a: weighted(torch.linalg.pinv(a, rtol=1e-8)),
              lambda a: weighted(torch.linalg.lstsq(a, b, rcond=1e-8, driver="gelsd")[0])):
        x = torch.from_numpy(left @ right).requires_grad_()
        g = numbers(grad(f(x), x)[0])
        along = lambda t: torch.from_numpy((left + t * d_left) @ (right + t * d_right))
        step = 1e-6
        expected = (f(along(step)).item() - f(along(-step)).item()) / (2 * step)
        change = d_left @ right + left @ d_right
        assert np.sum(g * change) == pytest.approx(expected, rel=1e-5)
        moved = jvp(f, (x.detach(),), (torch.from_numpy(change),))[1].item()
        assert moved == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name, vectors", [
    ("eigh", lambda a: torch.linalg.eigh(a)[1]), ("svd", lambda a: torch.linalg.svd(a)[0]),
    ("eig", lambda a: torch.linalg.eig(a)[1])])
def test_a_loss_that_depends_on_a_phase_is_refused(name, vectors):
    a = generic((3, 3), True)
    x = torch.from_numpy(a + a.conj().T + np.diag([0, 5, 10])).requires_grad_()
    with pytest.raises(errors.NotDifferentiable, match="phase"):
        grad((vectors(x).imag * doubles(WEIGHTS[:3, :3].tolist())).sum(), x)


# ---------------------------------------------------------------------------------------------
# Convolution and attention without operands


@pytest.mark.parametrize("x_shape, w_shape", [
    ((0, 2, 4), (3, 2, 2)), ((2, 0, 4), (3, 0, 2)), ((0, 2, 4, 4), (3, 2, 2, 2))])
def test_convolution_of_nothing(x_shape, w_shape):
    convolve = {3: F.conv1d, 4: F.conv2d}[len(x_shape)]
    x = torch.ones(x_shape, dtype=torch.float64, requires_grad=True)
    w = torch.ones(w_shape, dtype=torch.float64, requires_grad=True)
    out = convolve(x, w)
    first = grad((out * out).sum(), [x, w], create_graph=True)
    second = grad(sum(g.sum() for g in first), [x, w], allow_unused=True, materialize_grads=True)
    for t, g, h in zip((x, w), first, second):
        assert t.shape == g.shape == h.shape and (g == 0).all() and (h == 0).all()
    moved = jvp(convolve, (x.detach(), w.detach()), (torch.ones_like(x), torch.ones_like(w)))[1]
    assert moved.shape == out.shape and (moved == 0).all()
    stacks = [torch.stack([t.detach()] * 2) for t in (x, w)]
    bias = torch.ones(2, 3, dtype=torch.float64)
    assert vmap(convolve)(*stacks, bias).shape == (2, *convolve(x, w, bias[0]).shape)


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_attention_with_nothing_to_see(kind):
    q, k, v = (torch.from_numpy(generic((1, 3, 2), False)).requires_grad_() for _ in range(3))
    mask = torch.tensor([[True, False, True], [False, False, False], [True, True, True]])
    if kind == "float":
        mask = torch.where(mask, 0.0, -inf).double()
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert (out[0, 1] == 0).all() and torch.isfinite(out).all()
    first = grad(out.square().sum(), [q, k, v], create_graph=True)
    second = grad(sum(g.square().sum() for g in first), [q, k, v])
    assert all(torch.isfinite(g).all() for g in (*first, *second))
    assert (first[0][0, 1] == 0).all()
    alone = F.scaled_dot_product_attention(q[:, 2:], k, v)
    np.testing.assert_allclose(numbers(out[:, 2:]), numbers(alone))


# ---------------------------------------------------------------------------------------------
# Which of several


def test_choices_along_a_dim_follow_the_index():
    x = leaf([[1.0, 3, 3], [2, 2, 2], [5, 1, 5]])
    for f in (lambda a: a.max(1), lambda a: a.min(1), lambda a: a.median(1), lambda a: a.mode(1),
              lambda a: a.nanmedian(1), lambda a: a.kthvalue(2, 1), lambda a: a.sort(1),
              lambda a: a.topk(2, 1), lambda a: a.cummax(1), lambda a: a.cummin(1)):
        values, places = f(x)
        places = places if places.ndim == 2 else places[:, None]
        (g,) = grad(values.sum(), x)
        expected = np.zeros((3, 3))
        for row, row_places in enumerate(places.tolist()):
            for place in row_places:
                expected[row, place] += 1
        np.testing.assert_array_equal(numbers(g), expected)


def test_angle_of_a_negative_number_has_no_slope():
    assert cmath.phase(-1) == torch.angle(doubles(-1.0)).item()
    x = leaf(-1.0)
    assert grad(torch.angle(x), x)[0].item() == 0


WHOLE = {"bool": [True, False, True], "uint8": [1, 200, 0], "int8": [1, -100, 0]}
BESIDE = {
    "pow": lambda x, k: x ** k,
    "logaddexp": torch.logaddexp,
    "logaddexp2": torch.logaddexp2,
    "atan2": torch.atan2,
    "atan2 of whole numbers": lambda x, k: torch.atan2(k, x),
    "igamma": lambda x, k: torch.igamma(k, x),
    "lerp": lambda x, k: torch.lerp(x, 2 * x, k[1]),
}


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize("dtype", WHOLE)
def test_derivatives_beside_whole_numbers_are_computed_in_the_common_dtype(name, dtype):
    """-k, k * k and k - 1 wrap in narrow dtypes, and truth values have neither."""
    f, k = BESIDE[name], torch.tensor(WHOLE[dtype], dtype=getattr(torch, dtype))
    x = torch.tensor([20.0, 1.5, 30.0], dtype=torch.float64)

    def found(k):
        total = lambda x: (f(x, k) * x).sum()
        first = torch.func.grad(total)
        compiled = torch.compile(f, backend="numpy")
        leaf = x.clone().requires_grad_()
        out = [first(x), torch.func.jvp(lambda x: f(x, k), (x,), (x,))[1],
               torch.func.jvp(first, (x,), (x,))[1],
               torch.autograd.grad(compiled(leaf, k).sum(), leaf)[0]]
        return [t.detach().numpy() for t in out]

    for mine, wanted in zip(found(k), found(k.double()), strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-12)


def test_interpolation_by_weights_of_another_dtype():
    """One weight for all takes part in promotion, as in PyTorch; others are refused."""
    x = torch.tensor([20.0, 1.5])
    assert torch.lerp(x, 2 * x, torch.tensor(200, dtype=torch.uint8)).tolist() == [4020.0, 301.5]
    half = torch.lerp(x.half(), 2 * x.half(), torch.tensor(0.5, dtype=torch.float64))
    assert half.dtype == torch.float16 and half.tolist() == [30.0, 2.25]
    assert torch.lerp(x, 2 * x, torch.tensor(1j)).tolist() == [20 + 20j, 1.5 + 1.5j]
    for weight in (torch.tensor([1, 2], dtype=torch.uint8), x.double(), x.half()):
        with pytest.raises(RuntimeError, match="float32 for `weight` but got dtype"):
            torch.lerp(x, 2 * x, weight)


def test_gradients_of_logistic_margins_keep_small_numbers():
    """-t / (1 + exp(t x)) is exp(-t x) far out, also where it is computed by smaller operators."""
    x, t = doubles([[40.0, 60.0], [-50.0, 45.0]]), doubles([[1.0, 1.0], [-1.0, 1.0]])
    want = -t / (1 + torch.exp(x * t))
    backward = functools.partial(torch.ops.aten.soft_margin_loss_backward, reduction=0)
    one = torch.ones_like(x)
    for found in (backward(one, x, t), vmap(backward)(one, x, t),
                  vmap(vmap(backward))(one, x, t)):
        np.testing.assert_allclose(found.numpy(), want.numpy(), rtol=1e-14)
