"""Numerical kernels of special functions that array libraries do not offer.

Most are members of a family that is closed under differentiation (Bessel functions of integer
order, derivatives of sin(x)/x, repeated integrals of erfc ...), so that each derivative is again
one accurate evaluation, at zero and at infinity too, instead of a difference of nearly equal
numbers.  The table entries are in `special.py`; the identities are written here, next to the code
that uses them.
"""

from __future__ import annotations

import functools
import math

from ..array.xp import special

# ---------------------------------------------------------------------------------------------
# sin(x) / x


def sinc_order(xp, x, order: int, normalized: bool):
    """The derivative of some order of sin(u) / u, or of sin(pi u) / (pi u).

    Near zero the power series; elsewhere u f' + f = cos(u) differentiated again and again:
    u f^(k) = sin(u + k pi / 2) - k f^(k-1).  Multiples of pi are taken out of pi u exactly.
    """
    rate = math.pi if normalized else 1.0
    u = x * rate
    waves = _waves(xp, x, normalized)
    limit = max(math.pi, order)
    near = xp.abs(u) < limit
    far = xp.where(near, limit, u)
    out = waves(0) / far
    for k in range(1, order + 1):
        out = (waves(k) - k * out) / far
    if order == 0:  # the quotient is exact near zero too
        out = xp.where(u == 0, 1, waves(0) / xp.where(u == 0, 1, u))
    else:
        out = xp.where(near, _sinc_series(xp, xp.where(near, u, 0), order, limit), out)
    return out * rate**order


def _waves(xp, x, normalized: bool):
    """k -> sin(u + k pi / 2), u = pi x or x."""
    sign = 1
    if normalized:
        whole = xp.rint(x.real)
        sign = 1 - 2 * xp.abs(xp.fmod(whole, 2))  # sin(pi (r + n)) = (-1)^n sin(pi r)
        x = (x - whole) * math.pi
    sine, cosine = sign * xp.sin(x), sign * xp.cos(x)
    return lambda k: (sine, cosine, -sine, -cosine)[k % 4]


def _sinc_series(xp, u, order: int, limit: float):
    """sum over m of (-1)^m u^(2m - order) / ((2m + 1) (2m - order)!)."""
    first = (order + 1) // 2
    square = u * u
    total = xp.zeros_like(u)
    for m in reversed(range(first, first + 12 + int(1.5 * limit))):
        total = total * square + (-1) ** m / ((2 * m + 1) * math.factorial(2 * m - order))
    return total * u if order % 2 else total


# ---------------------------------------------------------------------------------------------
# Bessel functions


def bessel_j(xp, x, n: int):
    """J_n(x): the power series up to max(n, 2), J_(k+1) = 2k/x J_k - J_(k-1) beyond."""
    if n < 2:
        return special(xp).j1(x) if n else special(xp).j0(x)
    near = xp.abs(x) < max(n, 2)
    far = xp.where(near, max(n, 2), x)
    upward = _upward(special(xp).j0(far), special(xp).j1(far), far, n, -1)
    return xp.where(near, _bessel_series(xp, xp.where(near, x, 0), n, -1), upward)


def bessel_y(xp, x, n: int):
    """Y_n(x) by Y_(k+1) = 2k/x Y_k - Y_(k-1), which is stable everywhere; -inf at 0."""
    if n < 2:
        return special(xp).y1(x) if n else special(xp).y0(x)
    pole = x == 0
    x = xp.where(pole, 1, x)
    return xp.where(pole, -math.inf, _upward(special(xp).y0(x), special(xp).y1(x), x, n, -1))


def bessel_i(xp, x, n: int, scaled: bool = False):
    """I_n(x), or exp(-|x|) I_n(x): a series of positive terms up to n^2, then upward recurrence."""
    if n < 2:
        return getattr(special(xp), f"i{n}e" if scaled else f"i{n}")(x)
    zero, one = (special(xp).i0e, special(xp).i1e) if scaled else (special(xp).i0, special(xp).i1)
    limit = max(n * n, 4)
    near = xp.abs(x) < limit
    far = xp.where(near, limit, x)
    upward = _upward(zero(far), one(far), -far, n, 1)  # I_(k+1) = I_(k-1) - 2k/x I_k
    small = xp.where(near, x, 0)
    series = _bessel_series(xp, small, n, 1)
    return xp.where(near, series * xp.exp(-xp.abs(small)) if scaled else series, upward)


def bessel_k(xp, x, n: int, scaled: bool = False):
    """K_n(x), or exp(x) K_n(x), by K_(k+1) = K_(k-1) + 2k/x K_k: positive terms."""
    if n < 2:
        return getattr(special(xp), f"k{n}e" if scaled else f"k{n}")(x)
    zero, one = (special(xp).k0e, special(xp).k1e) if scaled else (special(xp).k0, special(xp).k1)
    return xp.where(x == 0, math.inf, _upward(zero(x), one(x), xp.where(x == 0, 1, x), n, 1))


def _upward(zero, one, x, n: int, sign: int):
    """Order n from orders 0 and 1 by f_(k+1) = 2k/x f_k + sign f_(k-1)."""
    for k in range(1, n):
        zero, one = one, 2 * k / x * one + sign * zero
    return one


def _bessel_series(xp, x, n: int, sign: int):
    """(x/2)^n sum over k of (sign x^2/4)^k / (k! (n + k)!)."""
    half = x / 2
    square = sign * half * half
    total = xp.zeros_like(x)
    for k in reversed(range(14 + n + n * n)):
        total = 1 + total * square / ((k + 1) * (n + k + 1))
    return total * half**n / math.factorial(n)


FAR = 25.0  # from here on the asymptotic series of scaled Bessel functions has all digits


def scaled_bessel_i(xp, x, n: int, order: int):
    """The derivative of some order of exp(-|x|) I_n(x); at 0 the mean of both sides.

    For large x the asymptotic series is differentiated: no differences of nearly equal numbers.
    """
    size = xp.abs(x)
    near = _scaled_near(
        functools.partial(bessel_i, xp, xp.where(size < FAR, size, 0), scaled=True), n, order, -1
    )
    far = _scaled_far(xp, xp.where(size < FAR, FAR, size), n, order, -1) / math.sqrt(2 * math.pi)
    value = xp.where(size < FAR, near, far)
    if (n + order) % 2:
        value = value * xp.sign(x)
    return value


def scaled_bessel_k(xp, x, n: int, order: int):
    """The derivative of some order of exp(x) K_n(x)."""
    if order == 0:
        return bessel_k(xp, x, n, scaled=True)
    near = _scaled_near(
        functools.partial(bessel_k, xp, xp.where(x < FAR, x, 1), scaled=True), n, order, 1
    )
    far = _scaled_far(xp, xp.where(x < FAR, FAR, x), n, order, 1) * math.sqrt(math.pi / 2)
    value = xp.where(x < FAR, near, far)
    return xp.where(x == 0, (-1) ** order * math.inf, value)


def _scaled_near(member, n: int, order: int, sign: int):
    """Leibniz' rule for exp(sign x) f_n with f_n' = -sign (f_(n-1) + f_(n+1)) / 2."""
    weights: dict[int, float] = {}
    for j in range(order + 1):
        for i in range(j + 1):
            weight = math.comb(order, j) * sign ** (order - j) * (-sign / 2) ** j * math.comb(j, i)
            m = abs(n - j + 2 * i)
            weights[m] = weights.get(m, 0) + weight
    return sum(w * member(n=m) for m, w in weights.items() if w)


def _scaled_far(xp, x, n: int, order: int, sign: int):
    """The asymptotic series of sign^k a_k(n) x^(-k-1/2), differentiated term by term."""
    total, inverse = xp.zeros_like(x), 1 / x
    for k in reversed(range(30)):
        term = float(sign) ** k
        for j in range(1, k + 1):
            term *= (4 * n * n - (2 * j - 1) ** 2) / (8 * j)
        for i in range(order):
            term *= -(k + 0.5 + i)
        total = total * inverse + term
    return total * inverse**order / xp.sqrt(x)


# ---------------------------------------------------------------------------------------------
# The normal distribution


def erfcx_ratios(xp, x, n: int) -> list:
    """r_k = W_k / W_(k-1) for k up to n; W_k(x) = exp(x^2) i^k erfc(x), i^k the repeated integral.

    2k W_k = W_(k-2) - 2x W_(k-1), W_(-1) = 2/sqrt(pi), gives 2k r_k = 1 / r_(k-1) - 2x, which loses
    digits where x is large; there it is turned round: r_k = 1 / (2x + 2(k+1) r_(k+1)).
    """
    near = x < 1
    small, large = xp.where(near, x, 0), xp.where(near, 1, x)
    upward, downward = [], []
    inverse = 2 / math.sqrt(math.pi) / special(xp).erfcx(small)
    for k in range(1, n + 1):
        upward.append((inverse - 2 * small) / (2 * k))
        inverse = 1 / upward[-1]
    ratio = xp.zeros_like(x)
    for k in reversed(range(1, n + 180)):
        ratio = 1 / (2 * large + 2 * (k + 1) * ratio)
        if k <= n:
            downward.insert(0, ratio)
    return [xp.where(near, up, down) for up, down in zip(upward, downward)]


def erfcx_integral(xp, x, n: int):
    """W_n(x) = exp(x^2) i^n erfc(x); W_0 is erfcx."""
    value = special(xp).erfcx(x)
    for ratio in erfcx_ratios(xp, x, n):
        value = value * ratio
    return value


def normal_hazard(xp, x):
    """d log ndtr(x) = pdf(x) / ndtr(x) = sqrt(2/pi) / erfcx(-x / sqrt(2))."""
    return math.sqrt(2 / math.pi) / special(xp).erfcx(x * -math.sqrt(0.5))


# ---------------------------------------------------------------------------------------------
# Incomplete gamma functions


def _bell(terms: list) -> object:
    """The complete Bell polynomial: (exp g)^(m) = exp(g) B_m(g', g'' ...)."""
    values = [1.0]
    for m in range(len(terms)):
        values.append(sum(math.comb(m, i) * values[m - i] * terms[i] for i in range(m + 1)))
    return values[-1]


def _curvatures(xp, a, order: int) -> list:
    """-psi'(a), -psi''(a) ...: the higher derivatives of log(x^a / Gamma(a)) by a."""
    return [(-1.0) ** m * math.factorial(m) * special(xp).zeta(m + 1.0, a) for m in range(1, order)]


def _power_over_gamma(xp, a, x):
    """x^a exp(-x) / Gamma(a) for a > 0, without cancellation for large a.

    Stirling's formula: sqrt(a / 2 pi) exp(-a (m - log(1 + m))), m = (x - a) / a, with correction.
    """
    large = a >= 10
    big = xp.where(large, a, 10)
    m = xp.where(large, (x - big) / big, 0)
    correction, inverse = 0.0, 1 / (big * big)
    for c in (
        -3617 / 122400,
        1 / 156,
        -691 / 360360,
        1 / 1188,
        -1 / 1680,
        1 / 1260,
        -1 / 360,
        1 / 12,
    ):
        correction = correction * inverse + c
    stirling = xp.sqrt(big / (2 * math.pi)) * xp.exp(-big * _minus_log1p(xp, m) - correction / big)
    small = xp.where(large, 1, a)
    direct = x**small * xp.exp(-x) * special(xp).rgamma(small)
    return xp.where(large, stirling, direct)


def _minus_log1p(xp, m):
    """m - log(1 + m); near 0 by log(1 + m) = 2 artanh(r), r = m / (2 + m)."""
    near = xp.abs(m) < 0.4
    small = xp.where(near, m, 0)
    r = small / (2 + small)
    square, total = r * r, 0.0
    for k in reversed(range(1, 14)):
        total = total * square + 1 / (2 * k + 1)
    series = r * small - 2 * r * square * total  # m - 2r = r m
    return xp.where(near, series, m - xp.log1p(m))


LOWEST = -20


def gamma_density(xp, a, x, order: int):
    """The derivative of some order by a of f = x^(a-1) exp(-x) / Gamma(a), for any real a.

    For a <= 0 by f(a) = a/x f(a + 1), that is f^(m)(a) = (a f^(m)(a+1) + m f^(m-1)(a+1)) / x.
    Each derivative by x of a proper density asks for an a that is smaller by 1, so a few steps do.
    """
    a, x = xp.broadcast_arrays(a, x)
    a = xp.where(a < LOWEST, math.nan, a)
    low = a <= 0
    if bool(xp.any(low)):
        up, m = xp.where(low, a + 1, 1), order
        raised = gamma_density(xp, up, x, m) * a
        if m:
            raised = raised + m * gamma_density(xp, up, x, m - 1)
        lowered = xp.where((x == 0) & (raised == 0), 0, raised / x)  # 1 / Gamma(a) is 0 there
        return xp.where(low, lowered, gamma_density(xp, xp.where(low, 1, a), x, order))
    origin = x == 0
    inner = xp.where(origin, 1, x)
    value = _power_over_gamma(xp, a, inner) / inner
    slope = xp.log(inner) - special(xp).digamma(a)
    value = value * _bell([slope, *_curvatures(xp, a, order)][:order])
    diverging = (-1) ** order * math.inf
    edge = xp.where(a > 1, 0, xp.where((a == 1) & (order == 0), 1, diverging))
    value = xp.where(origin, edge, value)
    return xp.where(x < 0, math.nan, xp.where(x == math.inf, 0, value))


STEP = 1 / 12
NODES = range(-48, 168)
CHUNK = 4096


def igamma_order(xp, a, x, order: int):
    """The derivative of some order by a of the incomplete gamma function P(a, x), a > 0, x >= 0.

    It is the integral of the derivative of the density f(a, t), from 0 to x or, with the other
    sign, from x to infinity, because the whole integral is constant.  The side is chosen so that
    log t - psi(a), the factor of the first derivative, does not change its sign.  Both sides are
    integrated by the trapezoidal rule after a substitution that makes the ends vanish doubly
    exponentially.
    """
    a, x = xp.broadcast_arrays(a, x)
    shape, kind = a.shape, a.dtype
    a, x = (xp.reshape(v, (-1, 1)).astype(xp.float64) for v in (a, x))
    proper = (a > 0) & (x > 0) & (x < math.inf) & (a < math.inf)
    a, inner = xp.where(proper, a, 1), xp.where(proper, x, 1)
    s = xp.asarray([k * STEP for k in NODES])
    parts = [
        _igamma_part(xp, a[i : i + CHUNK], inner[i : i + CHUNK], s, order)
        for i in range(0, len(a), CHUNK)
    ]
    value = xp.concatenate(parts) if parts else xp.zeros_like(a[:, 0])
    fixed = (x == 0) | (x == math.inf)
    value = xp.where(proper[:, 0], value, xp.where(fixed[:, 0], 0.0, math.nan))
    return xp.reshape(value, shape).astype(kind)


def _igamma_part(xp, a, x, s, order: int):
    """The integral for a column of arguments and a row of nodes."""
    return _igamma_ratio(xp, a, x, s, order) * _power_over_gamma(xp, a, x)[:, 0] / x[:, 0]


def _igamma_ratio(xp, a, x, s, order: int, step: float = STEP):
    """The integral divided by the density at x."""
    psi = special(xp).digamma(a)
    lower = xp.log(x) < psi
    scale = xp.where(
        lower, 1 / (xp.abs(a - x) + xp.sqrt(x) + a), x / (xp.abs(x - a) + 1 + xp.sqrt(x))
    )
    v = scale * xp.exp(s - xp.exp(-s))
    weight = v * (1 + xp.exp(-s)) * step  # dv
    # below: t = x exp(-v), f dt = (x^a exp(-x) / Gamma(a)) exp(x (1 - exp(-v)) - a v) dv
    # above: t = x + v,     f dt = (x^a exp(-x) / Gamma(a)) exp((a - 1) log(1 + v/x) - v) dv / x
    shift = xp.where(lower, -v, xp.log1p(v / x))
    exponent = xp.where(lower, -x * xp.expm1(xp.where(lower, -v, 0)) - a * v, (a - 1) * shift - v)
    factor = _bell([xp.log(x) - psi + shift, *_curvatures(xp, a, order)][:order])
    total = xp.sum(xp.exp(exponent) * factor * weight, axis=1)
    return xp.where(lower[:, 0], total * x[:, 0], -total)


# ---------------------------------------------------------------------------------------------
# Hurwitz zeta function

_BERNOULLI = (
    1 / 6,
    -1 / 30,
    1 / 42,
    -1 / 30,
    5 / 66,
    -691 / 2730,
    7 / 6,
    -3617 / 510,
    43867 / 798,
    -174611 / 330,
)
DIRECT = 12  # terms that are summed before the Euler-Maclaurin formula takes over


def zeta_order(xp, s, q, order: int):
    """The derivative of some order by s of zeta(s, q): the sum of (-log t)^order t^(-s), t = q + k.

    Euler-Maclaurin: a few terms, then the integral of the rest, half a term and odd derivatives of
    f(t) = t^(-s) P(log t).  A derivative of such a function is t^(-s-1) (P' - s P)(log t).
    """
    if order == 0:
        return special(xp).zeta(s, q)
    s, q = xp.broadcast_arrays(s, q)
    proper = (s > 1) & (q > 0)
    s, q = xp.where(proper, s, 2), xp.where(proper, q, 1)
    total = xp.zeros_like(s)
    for k in range(DIRECT):
        total = total + (-xp.log(q + k)) ** order * (q + k) ** -s
    t = q + DIRECT
    log, power = xp.log(t), t**-s
    integral = 0.0  # of u^order exp((1 - s) u) from log t on, without its factor t^(1-s), by parts
    for m in range(order + 1):
        integral = (log**m + m * integral) / (s - 1)
    total = total + (-1) ** order * integral * power * t + (-log) ** order * power / 2
    coefficients = [xp.zeros_like(s) for _ in range(order)] + [xp.full_like(s, (-1.0) ** order)]
    for r in range(1, 2 * len(_BERNOULLI)):
        raised = [(m + 1) * c for m, c in enumerate(coefficients[1:])] + [xp.zeros_like(s)]
        coefficients = [d - (s + r - 1) * c for d, c in zip(raised, coefficients)]
        power = power / t
        if r % 2:
            number = _BERNOULLI[r // 2] / math.factorial(r + 1)
            total = total - number * power * sum(c * log**m for m, c in enumerate(coefficients))
    return xp.where(proper, total, math.nan)


# ---------------------------------------------------------------------------------------------
# Orthogonal polynomials: p_1 = c x + d and p_(m+1) = (A_m x + B_m) p_m - C_m p_(m-1)

POLYNOMIALS = {
    "chebyshev_t": ((1, 0), lambda m: (2, 0, 1)),
    "chebyshev_u": ((2, 0), lambda m: (2, 0, 1)),
    "chebyshev_v": ((2, -1), lambda m: (2, 0, 1)),
    "chebyshev_w": ((2, 1), lambda m: (2, 0, 1)),
    "hermite_h": ((2, 0), lambda m: (2, 0, 2 * m)),
    "hermite_he": ((1, 0), lambda m: (1, 0, m)),
    "laguerre_l": ((-1, 1), lambda m: (-1 / (m + 1), (2 * m + 1) / (m + 1), m / (m + 1))),
    "legendre_p": ((1, 0), lambda m: ((2 * m + 1) / (m + 1), 0, m / (m + 1))),
}


def orthogonal_polynomial(xp, x, n, kind: str, order: int):
    """The derivative of some order by x of the polynomial of degree n; 0 where n is negative.

    All orders up to the wanted one climb the recurrence together: its derivative is a recurrence,
    p_(m+1)^(k) = (A x + B) p_m^(k) + k A p_m^(k-1) - C p_(m-1)^(k), nowhere singular.
    """
    x, n = xp.broadcast_arrays(x, n)
    scale = 1
    if kind.startswith("shifted_"):
        kind, x, scale = kind[len("shifted_") :], 2 * x - 1, 2**order
    degree = xp.trunc(xp.where(xp.isfinite(n), n, -1))
    (slope, offset), coefficients = POLYNOMIALS[kind]
    one, zero = xp.ones_like(x), xp.zeros_like(x)
    before = [one] + [zero] * order
    now = ([slope * x + offset, slope * one] + [zero] * order)[: order + 1]
    out = xp.where(degree == 0, before[order], zero)
    for m in range(1, int(xp.max(degree)) + 1 if degree.size else 0):
        if m % 64 == 0 and xp.all(xp.isnan(now[order]) | (degree < m)):
            # overflow has made NaN of all that are left, whatever their degree: may be 1e9
            out = xp.where(degree < m, out, now[order])
            break
        out = xp.where(degree == m, now[order], out)
        a, b, c = coefficients(m)
        factor = a * x + b
        after = [
            factor * now[k] + (k * a * now[k - 1] if k else 0) - c * before[k]
            for k in range(order + 1)
        ]
        before, now = now, after
    return out * scale


# ---------------------------------------------------------------------------------------------
# Scans by doubling: after step s every place holds the combination of 2s places


def scan(xp, arrays: tuple, axis: int, combine):
    """Running combinations along an axis; `combine(left, right)` is of tuples of arrays."""
    size = arrays[0].shape[axis]
    step = 1
    while step < size:
        first, left, right = (
            tuple(v[_part(axis, i, j)] for v in arrays)
            for i, j in ((0, step), (0, size - step), (step, size))
        )
        arrays = tuple(
            xp.concatenate([f, c], axis=axis) for f, c in zip(first, combine(left, right))
        )
        step *= 2
    return arrays


def _part(axis: int, start: int, stop: int) -> tuple:
    return (slice(None),) * axis + (slice(start, stop),)
