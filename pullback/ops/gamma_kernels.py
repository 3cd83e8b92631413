"""How gamma and beta distributed numbers move with the parameters of their distribution.

A number x drawn by inverting its distribution function, F(x; a) = u, has the derivative
dx/da = -(dF/da) / f, where f is the density (implicit reparametrisation; it does not matter how the
number was really drawn).  Both quotients are computed without forming F or f, which may underflow:
by power series at the ends and by integrals, relative to the density, in between.
"""

from __future__ import annotations

import math

from ..array.xp import special
from .special_kernels import _bell, _igamma_ratio

CHUNK = 512  # elements at a time, so that their integrands stay in cache
SMALL = 0.8  # power series of the gamma distribution up to here


def _nodes(xp, kind, wide: float, narrow: float):
    """Step and nodes of the integrals; fewer do for single precision."""
    step, low, high = (wide, -4, 14) if kind.itemsize == 8 else (narrow, -3, 8)
    return step, xp.asarray([k * step for k in range(round(low / step), round(high / step) + 1)])


def gamma_ratio(xp, a, x, order: int):
    """(d^order P(a, x) / da^order) / f(a, x), f being the density x^(a-1) exp(-x) / Gamma(a)."""
    a, x = xp.broadcast_arrays(a, x)
    shape, kind = a.shape, a.dtype
    a, x = (xp.reshape(v, (-1,)).astype(xp.float64) for v in (a, x))
    proper = (a > 0) & (x > 0) & (a < math.inf) & (x < math.inf)
    out = xp.where(x == 0, 0.0, xp.full_like(a, math.nan))
    near = xp.nonzero(proper & (x < SMALL))[0]
    far = xp.nonzero(proper & (x >= SMALL))[0]
    step, nodes = _nodes(xp, kind, 1 / 8, 1 / 5)
    for i in range(0, len(near), CHUNK):
        part = near[i : i + CHUNK]
        out[part] = _gamma_series(xp, a[part], x[part], order)
    for i in range(0, len(far), CHUNK):
        part = far[i : i + CHUNK]
        out[part] = _igamma_ratio(xp, a[part, None], x[part, None], nodes, order, step)
    return xp.reshape(out, shape).astype(kind)


def _gamma_series(xp, a, x, order: int):
    """For small x: P = sum over k of (-x)^k / k! times x^a / (Gamma(a) (a + k)).

    The logarithm of the last factor has the derivatives log x - psi(a+1) + (1/a - 1/(a+k)),
    -psi'(a+1) - (1/a^2 - 1/(a+k)^2) and so on, without the poles of psi(a) that would cancel.
    """
    first = xp.log(x) - special(xp).digamma(a + 1)
    total, power = 0.0, xp.ones_like(x)
    for k in range(24):
        terms = [first + k / (a * (a + k))]
        for j in range(2, order + 1):
            gap = 1 - (a / (a + k)) ** j  # a^j (1/a^j - 1/(a+k)^j)
            sign = (-1) ** (j - 1) * math.factorial(j - 1)
            terms.append(sign * (gap / a**j - _minus_polygamma(xp, j, a + 1)))
        total = total + power * _bell(terms[:order]) / (a + k)
        power = power * -x / (k + 1)
    return x * xp.exp(x) * total


def _minus_polygamma(xp, j: int, a):
    """psi^(j-1)(a) / ((-1)^(j-1) (j-1)!) = -zeta(j, a), with the sign changed twice."""
    return -special(xp).zeta(float(j), a)


# ---------------------------------------------------------------------------------------------
# Beta


def beta_slope(xp, x, a, total):
    """(dx/da) / (1 - x) of a beta distributed number x with parameters a and total - a."""
    x, a, total = xp.broadcast_arrays(x, a, total)
    shape, kind = x.shape, x.dtype
    x, a, total = (xp.reshape(v, (-1,)).astype(xp.float64) for v in (x, a, total))
    b = total - a
    proper = (a > 0) & (b > 0) & (x > 0) & (x < 1) & (total < math.inf)
    out = xp.where((a > 0) & (b > 0) & (x == 0), 0.0, xp.full_like(a, math.nan))
    low = proper & (x <= 0.5) & (b * x <= 0.5)
    high = proper & ~low & (1 - x <= 0.5) & (a * (1 - x) <= 0.5)
    step, nodes = _nodes(xp, kind, 1 / 12, 1 / 6)
    for chosen, part in ((low, _beta_low), (high, _beta_high), (proper & ~low & ~high, None)):
        places = xp.nonzero(chosen)[0]
        for i in range(0, len(places), CHUNK):
            p = places[i : i + CHUNK]
            out[p] = (part(xp, x[p], a[p], b[p]) if part is not None
                      else _beta_middle(xp, x[p, None], a[p, None], b[p, None], nodes, step))
    return xp.reshape(out, shape).astype(kind)


def _beta_low(xp, x, a, b):
    """Near 0: F = sum over k of c_k x^(a+k) / (B(a, b) (a + k)), c_k = (1-b) (2-b)...(k-b) / k!."""
    psi = special(xp).digamma
    first = xp.log(x) - (psi(a + 1) - psi(a + b))
    total, power = 0.0, xp.ones_like(x)
    for k in range(60):
        total = total + power * (first + k / (a * (a + k))) / (a + k)
        power = power * x * (k + 1 - b) / (k + 1)
    return -x * xp.exp(-b * xp.log1p(-x)) * total


def _beta_high(xp, x, a, b):
    """Near 1: the same series of 1 - F in 1 - x, differentiated by the other parameter."""
    y = 1 - x
    first = _digamma_step(xp, a, b)
    total, power, slope = 0.0, xp.ones_like(x), xp.zeros_like(x)
    for k in range(60):
        total = total + (power * first + slope) / (b + k)
        slope = y * (slope * (k + 1 - a) - power) / (k + 1)
        power = power * y * (k + 1 - a) / (k + 1)
    return xp.exp((1 - a) * xp.log(x)) * total


def _digamma_step(xp, a, b):
    """psi(a + b) - psi(a), by its power series where b is small."""
    near = b < 0.1 * a
    small = xp.where(near, b, 0)
    series, power = 0.0, small
    for n in range(1, 18):
        series = series + power * special(xp).zeta(n + 1.0, a)
        power = -power * small
    psi = special(xp).digamma
    return xp.where(near, series, psi(a + b) - psi(a))


def _beta_middle(xp, x, a, b, s, step):
    """The integral of f(t) (log t - c), c = psi(a) - psi(a + b), on one side of x, over f(x).

    In the variable w = log(t / (1 - t)) the density is that of a bell, and its logarithm is
    concave.  As for the gamma distribution the side is chosen by the sign of the integrand.
    """
    c = -_digamma_step(xp, a, b)
    lower = xp.log(x) < c
    total = _beta_integral(xp, x, a, b, s, step, lower, lambda log_t, log_1_t: log_t - c)
    # dt = t (1 - t) dw; f(x) times x (1 - x) is the density in w
    return xp.where(lower[:, 0], -1.0, 1.0) * total * x[:, 0]


def _beta_integral(xp, x, a, b, s, step, lower, factor):
    """The integral over w of the density times a factor, below or above x, over that at x."""
    start = xp.log(x) - xp.log1p(-x)
    sign = xp.where(lower, -1.0, 1.0)
    slope, bend = xp.abs(a - (a + b) * x), xp.sqrt((a + b) * x * (1 - x))
    v = xp.exp(s - xp.exp(-s)) / (slope + bend)
    weight = v * (1 + xp.exp(-s)) * step
    w = start + sign * v
    # log t = -log(1 + exp(-w)), log(1 - t) = -log(1 + exp(w)), both exact at the ends
    log_t, log_1_t = -xp.logaddexp(0, -w), -xp.logaddexp(0, w)
    exponent = a * (log_t - xp.log(x)) + b * (log_1_t - xp.log1p(-x))
    return xp.sum(xp.exp(exponent) * factor(log_t, log_1_t) * weight, axis=1)


def beta_ratio(xp, x, a, b, i: int, j: int):
    """(d^(i+j) I_x(a, b) / da^i db^j) / f, f being the density x^(a-1) (1-x)^(b-1) / B(a, b)."""
    x, a, b = xp.broadcast_arrays(x, a, b)
    shape, kind = x.shape, x.dtype
    x, a, b = (xp.reshape(v, (-1,)).astype(xp.float64) for v in (x, a, b))
    proper = (a > 0) & (b > 0) & (x > 0) & (x < 1) & (a + b < math.inf)
    edge = (a > 0) & (b > 0) & ((x == 0) | (x == 1))
    out = xp.where(edge, 0.0, xp.full_like(a, math.nan))
    step, nodes = _nodes(xp, kind, 1 / 12, 1 / 6)
    places = xp.nonzero(proper)[0]
    for k in range(0, len(places), CHUNK):
        p = places[k : k + CHUNK]
        out[p] = _beta_ratio(xp, x[p, None], a[p, None], b[p, None], nodes, step, i, j)
    return xp.reshape(out, shape).astype(kind)


def _beta_ratio(xp, x, a, b, s, step, i: int, j: int):
    """The derivatives of f, over f, are polynomials in those of log f: integrate one of them.

    Over both sides of x the integral is 0, so the side with less mass will do.
    """
    lower = x * (a + b) < a

    def polygamma(n, z):
        if n == 0:
            return special(xp).digamma(z)
        size = float(math.factorial(n)) if n < 171 else math.inf  # beyond the largest float
        return (-1.0) ** (n + 1) * size * special(xp).zeta(n + 1.0, z)

    def factor(log_t, log_1_t):
        return beta_bell(log_t, log_1_t, a, b, i, j, polygamma)

    total = _beta_integral(xp, x, a, b, s, step, lower, factor)
    return xp.where(lower[:, 0], 1.0, -1.0) * total * x[:, 0] * (1 - x[:, 0])


def beta_bell(log_x, log_1_x, a, b, i: int, j: int, polygamma):
    """(d^(i+j) f / da^i db^j) / f of the beta density f: a complete Bell polynomial."""
    def cumulant(k, l):
        """The same derivative of log f."""
        value = polygamma(k + l - 1, a + b)
        if l == 0:
            value = value - polygamma(k - 1, a) + (log_x if k == 1 else 0.0)
        elif k == 0:
            value = value - polygamma(l - 1, b) + (log_1_x if l == 1 else 0.0)
        return value

    cumulants = {(k, l): cumulant(k, l)
                 for k in range(i + 1) for l in range(j + 1) if k or l}
    bell: dict = {(0, 0): 1.0}
    for p in range(i + 1):  # each from those before it: i * j of them, each computed once
        for q in range(j + 1):
            if p == q == 0:
                continue
            k, l = (p - 1, q) if p else (p, q - 1)  # differentiate f = f (log f)' the other times
            bell[p, q] = sum(math.comb(k, m) * math.comb(l, n) * cumulants[m + p - k, n + q - l]
                             * bell[k - m, l - n] for m in range(k + 1) for n in range(l + 1))
    return bell[i, j]
