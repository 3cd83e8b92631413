#!/usr/bin/env python3
"""Compare special functions and their derivatives with 50-digit arithmetic.

    python tools/accuracy.py                     # all functions, 60 points each
    python tools/accuracy.py --points 500 airy   # functions whose names contain "airy"

The error of a value y at x is |y - exact| divided by the larger of |exact| and |x exact'|: the
second only matters near a zero of the function, where the last bit of x alone changes more than
all digits of y.  Derivatives, by reverse mode, are measured in the same way.  Prints the worst
point of every function and, last, the worst of all; the exit status is 1 if it is above the limit.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import mpmath as mp
import numpy as np

import pullback as torch

LIMIT = 1e-13
DIGITS = 50


@dataclass
class Function:
    """A function under test: the operator, its exact value and slopes, and where to look."""

    name: str
    call: Callable  # of float64 tensors
    exact: Callable  # of mpmath numbers
    slopes: tuple  # partial derivatives; None: by mpmath's differences
    domains: tuple  # of each argument: (low, high), or (low, high, "log")

    def points(self, count: int) -> list[np.ndarray]:
        """The same points each time: evenly spread, each a little off."""
        random = np.random.default_rng(zlib.crc32(self.name.encode()))
        columns = []
        for domain in self.domains:
            u = random.permutation((np.arange(count) + random.uniform(0, 1, count)) / count)
            low, high = domain[:2]
            if len(domain) == 3:
                columns.append(np.exp(np.log(low) + u * (np.log(high) - np.log(low))))
            else:
                columns.append(low + u * (high - low))
        return columns

    def slope(self, i: int, at: list):
        """The partial derivative by argument i."""
        if self.slopes[i] is not None:
            return self.slopes[i](*at)
        return _difference(self.exact, i, at)


def _difference(function: Callable, i: int, at: list):
    """The partial derivative of an mpmath function."""
    order = tuple(int(k == i) for k in range(len(at)))
    return mp.diff(function, tuple(at), order) if len(at) > 1 else mp.diff(function, at[0])


@dataclass
class Error:
    """The worst point of a function."""

    name: str
    what: str  # "value" or "derivative by argument i"
    size: float
    at: tuple
    got: float
    exact: float

    def __str__(self) -> str:
        place = ", ".join(f"{v:.17g}" for v in self.at)
        return (
            f"{self.name:34} {self.what:14} {self.size:8.1e}  at ({place}): "
            f"{self.got:.17g}, exactly {self.exact:.17g}"
        )


def measure(function: Function, count: int) -> Iterator[Error]:
    """The worst errors of the value and of each derivative."""
    columns = function.points(count)
    tensors = [torch.tensor(c, requires_grad=True) for c in columns]
    value = function.call(*tensors)
    grads = torch.autograd.grad(value.sum(), tensors)
    exact = [[mp.mpf(float(v)) for v in row] for row in zip(*columns)]
    with mp.workdps(DIGITS):
        yield _worst(
            function.name,
            "value",
            value.detach().numpy(),
            exact,
            lambda at: function.exact(*at),
            lambda i, at: function.slope(i, at),
        )
        for i, g in enumerate(grads):
            yield _worst(
                function.name,
                "derivative" if len(grads) == 1 else f"derivative {i}",
                g.numpy(),
                exact,
                lambda at, i=i: function.slope(i, at),
                lambda j, at, i=i: _difference(lambda *a: function.slope(i, list(a)), j, at),
            )


def _worst(name: str, what: str, got: np.ndarray, points: list, exact, slope) -> Error:
    worst = Error(name, what, -1.0, (), 0.0, 0.0)
    for y, at in zip(got, points):
        wanted = exact(at)
        distance = abs(mp.mpf(float(y)) - wanted)
        size = distance / abs(wanted) if wanted else distance
        if size > LIMIT:  # perhaps a zero is near
            turn = sum(abs(x * slope(i, at)) for i, x in enumerate(at))
            size = distance / max(abs(wanted), turn)
        if not size <= worst.size:
            worst = Error(name, what, float(size), tuple(map(float, at)), float(y), float(wanted))
    return worst


# ---------------------------------------------------------------------------------------------
# The functions


def _pdf(x):
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def _cdf(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _quantile(p):
    start = float(torch.special.ndtri(torch.tensor(float(p), dtype=torch.float64)).item())
    return mp.findroot(lambda x: _cdf(x) - p, mp.mpf(start))


def _sinc_slope(rate):
    def slope(x):
        u = rate() * x
        if abs(u) < mp.mpf("1e-12"):
            return -rate() * u / 3
        with mp.extradps(30):
            return rate() * (mp.cos(u) - mp.sin(u) / u) / u

    return slope


def _one():
    return mp.mpf(1)


def _density(a, x):
    return x ** (a - 1) * mp.exp(-x) / mp.gamma(a)


def _gamma_slope(a, x):
    """Derivative of the lower incomplete gamma function by a: a difference in many digits."""
    step = mp.mpf("1e-20")
    with mp.workdps(110):
        if x < a:

            def side(t):
                return mp.gammainc(t, 0, x, True)
        else:

            def side(t):
                return -mp.gammainc(t, x, mp.inf, True)

        return (side(a + step) - side(a - step)) / (2 * step)


def _bessel(kind, n: int, scale=lambda x: mp.mpf(1), rate=lambda x: mp.mpf(0)):
    """(value, slope) of scale(x) f_n(x), where rate = scale'/scale."""

    def value(x):
        return mp.re(scale(x) * kind(n, x))

    def slope(x):
        first, second = {mp.besseli: (1, 1), mp.besselk: (-1, -1)}.get(kind, (1, -1))
        change = (first * kind(n - 1, x) + second * kind(n + 1, x)) / 2
        return mp.re(scale(x) * (rate(x) * kind(n, x) + change))

    return value, slope


def _falling(x):
    return mp.exp(-abs(x))


def _special(name: str, exact, slope, *domain, call=None) -> Function:
    return Function(name, call or getattr(torch.special, name), exact, (slope,), (domain,))


def _gammas() -> Iterator[Function]:
    s = torch.special
    yield _special("gammaln", lambda x: mp.log(abs(mp.gamma(x))), lambda x: mp.psi(0, x), -6, 30)
    yield _special("digamma", lambda x: mp.psi(0, x), lambda x: mp.psi(1, x), -6, 30)
    for n in (1, 2, 3):
        yield _special(
            f"polygamma({n})",
            lambda x, n=n: mp.psi(n, x),
            lambda x, n=n: mp.psi(n + 1, x),
            0.01,
            30,
            call=lambda x, n=n: s.polygamma(n, x),
        )
    yield _special(
        "multigammaln(3)",
        lambda x: (
            sum(mp.loggamma(x - mp.mpf(i) / 2) for i in range(3)) + mp.mpf(3) / 2 * mp.log(mp.pi)
        ),
        lambda x: sum(mp.psi(0, x - mp.mpf(i) / 2) for i in range(3)),
        1.01,
        30,
        call=lambda x: s.multigammaln(x, 3),
    )
    for domain in ((0.02, 3), (3, 60)):
        label = f"a in {domain}"
        yield Function(
            f"gammainc, {label}",
            s.gammainc,
            lambda a, x: mp.gammainc(a, 0, x, True),
            (_gamma_slope, _density),
            (domain, (0.05, 1.5 * domain[1])),
        )
        yield Function(
            f"gammaincc, {label}",
            s.gammaincc,
            lambda a, x: mp.gammainc(a, x, mp.inf, True),
            (lambda a, x: -_gamma_slope(a, x), lambda a, x: -_density(a, x)),
            (domain, (0.05, 1.5 * domain[1])),
        )
    yield Function(
        "zeta",
        s.zeta,
        mp.zeta,
        (lambda x, q: mp.zeta(x, q, 1), lambda x, q: -x * mp.zeta(x + 1, q)),
        ((1.05, 12), (0.05, 20)),
    )


def _normal() -> Iterator[Function]:
    root = mp.sqrt(mp.pi)
    yield _special("erf", mp.erf, lambda x: 2 / root * mp.exp(-x * x), -4, 4)
    yield _special("erfc", mp.erfc, lambda x: -2 / root * mp.exp(-x * x), -4, 8)
    yield _special(
        "erfcx",
        lambda x: mp.exp(x * x) * mp.erfc(x),
        lambda x: 2 * x * mp.exp(x * x) * mp.erfc(x) - 2 / mp.sqrt(mp.pi),
        -4,
        60,
    )
    yield _special(
        "erfinv", mp.erfinv, lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(mp.erfinv(x) ** 2), -0.999, 0.999
    )
    yield _special("ndtr", _cdf, _pdf, -12, 6)
    yield _special("log_ndtr", lambda x: mp.log(_cdf(x)), lambda x: _pdf(x) / _cdf(x), -60, 8)
    yield _special("ndtri", _quantile, lambda p: 1 / _pdf(_quantile(p)), 1e-10, 1)
    yield _special("entr", lambda x: -x * mp.log(x), lambda x: -mp.log(x) - 1, 1e-3, 20)


def _bessels() -> Iterator[Function]:
    for n in (0, 1):
        yield _special(f"bessel_j{n}", *_bessel(mp.besselj, n), -30, 30)
        yield _special(f"bessel_y{n}", *_bessel(mp.bessely, n), 0.01, 30)
        yield _special(f"i{n}", *_bessel(mp.besseli, n), -30, 30)
        yield _special(f"modified_bessel_i{n}", *_bessel(mp.besseli, n), -30, 30)
        yield _special(f"i{n}e", *_bessel(mp.besseli, n, _falling, lambda x: -mp.sign(x)), -60, 60)
        yield _special(f"modified_bessel_k{n}", *_bessel(mp.besselk, n), 0.01, 30)
        yield _special(
            f"scaled_modified_bessel_k{n}",
            *_bessel(mp.besselk, n, mp.exp, lambda x: _one()),
            0.01,
            60,
        )
    yield _special("airy_ai", mp.airyai, lambda x: mp.airyai(x, derivative=1), -15, 15)
    yield _special("sinc", mp.sincpi, _sinc_slope(lambda: +mp.pi), -6, 6)
    yield _special(
        "sinc, small",
        mp.sincpi,
        _sinc_slope(lambda: +mp.pi),
        1e-9,
        0.5,
        "log",
        call=torch.special.sinc,
    )
    yield _special("spherical_bessel_j0", mp.sinc, _sinc_slope(_one), -20, 20)


def _polynomials() -> Iterator[Function]:
    def third(n, x):
        return (mp.chebyu(n, x) - mp.chebyu(n - 1, x)) if n else _one()

    def fourth(n, x):
        return (mp.chebyu(n, x) + mp.chebyu(n - 1, x)) if n else _one()

    families = {
        "chebyshev_polynomial_t": mp.chebyt,
        "chebyshev_polynomial_u": mp.chebyu,
        "chebyshev_polynomial_v": third,
        "chebyshev_polynomial_w": fourth,
        "hermite_polynomial_h": mp.hermite,
        "hermite_polynomial_he": lambda n, x: (
            mp.mpf(2) ** (-mp.mpf(n) / 2) * mp.hermite(n, x / mp.sqrt(2))
        ),
        "laguerre_polynomial_l": lambda n, x: mp.laguerre(n, 0, x),
        "legendre_polynomial_p": mp.legendre,
    }
    for name, exact in families.items():
        for n in (1, 4, 11):
            yield _special(
                f"{name}({n})",
                lambda x, n=n, f=exact: f(n, x),
                None,
                -1.2,
                1.2,
                call=lambda x, n=n, f=name: getattr(torch.special, f)(x, n),
            )
            if "chebyshev" in name:
                yield _special(
                    f"shifted_{name}({n})",
                    lambda x, n=n, f=exact: f(n, 2 * x - 1),
                    None,
                    -0.1,
                    1.1,
                    call=lambda x, n=n, f=f"shifted_{name}": getattr(torch.special, f)(x, n),
                )


def _elementary() -> Iterator[Function]:
    s = torch.special
    yield _special("exp2", lambda x: mp.mpf(2) ** x, lambda x: mp.log(2) * mp.mpf(2) ** x, -20, 20)
    yield _special("expm1", mp.expm1, mp.exp, -5, 5)
    yield _special(
        "expit",
        lambda x: 1 / (1 + mp.exp(-x)),
        lambda x: 1 / (mp.exp(x / 2) + mp.exp(-x / 2)) ** 2,
        -15,
        6,
    )
    yield _special("log1p", lambda x: mp.log(1 + x), lambda x: 1 / (1 + x), -0.9, 20)
    yield _special(
        "logit", lambda p: mp.log(p / (1 - p)), lambda p: 1 / (p * (1 - p)), 0.001, 0.999
    )
    yield Function(
        "xlogy",
        s.xlogy,
        lambda x, y: x * mp.log(y),
        (lambda x, y: mp.log(y), lambda x, y: x / y),
        ((-3, 3), (0.01, 5)),
    )
    yield Function(
        "xlog1py",
        s.xlog1py,
        lambda x, y: x * mp.log(1 + y),
        (lambda x, y: mp.log(1 + y), lambda x, y: x / (1 + y)),
        ((-3, 3), (-0.9, 5)),
    )
    yield Function(
        "logaddexp2",
        torch.logaddexp2,
        lambda x, y: mp.log(mp.mpf(2) ** x + mp.mpf(2) ** y, 2),
        (lambda x, y: 1 / (1 + mp.mpf(2) ** (y - x)), lambda x, y: 1 / (1 + mp.mpf(2) ** (x - y))),
        ((-20, 20), (-20, 20)),
    )


def functions() -> list[Function]:
    """All functions that are compared."""
    groups = (_gammas, _normal, _bessels, _polynomials, _elementary)
    with mp.workdps(DIGITS):
        return [f for group in groups for f in group()]


def main(arguments: list[str] | None = None) -> int:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("names", nargs="*", help="only functions whose names contain one of these")
    parser.add_argument("--points", type=int, default=60, help="points of each (default: 60)")
    options = parser.parse_args(arguments)
    chosen = [
        f for f in functions() if not options.names or any(n in f.name for n in options.names)
    ]
    found = []
    for function in chosen:
        for error in measure(function, options.points):
            found.append(error)
            print(error, flush=True)
    if not found:
        print("no function has such a name")
        return 2
    worst = max(found, key=lambda e: (e.size != e.size, e.size))
    above = sum(not e.size <= LIMIT for e in found)
    print(
        f"\n{len(chosen)} functions, {len(found)} comparisons, {above} above {LIMIT:g}; the worst:"
    )
    print(worst)
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
