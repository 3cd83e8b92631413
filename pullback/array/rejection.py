"""Random numbers whose count of draws is itself random: gamma, Dirichlet, Poisson, binomial.

Each is the textbook method that PyTorch's CPU generator uses, number for number, so that a seeded
program draws the same: Marsaglia and Tsang (2000) for the gamma distribution, Hoermann's
transformed rejection (1993) for large Poisson and binomial numbers, products of uniforms and sums
of geometric numbers for small ones.  How many uniforms an element takes depends on their values, so
elements are made one after the other.  Distributions with a fixed count are in `random.py`.
"""

from __future__ import annotations

import math
import operator

import numpy as np

from .generator import Generator
from .random import _float64

__all__ = ["binomial", "dirichlet", "poisson", "standard_gamma"]


class Tap:
    """Uniforms one at a time, read ahead in blocks; what was not used goes back on `close`."""

    def __init__(self, gen: Generator, block: int):
        self.gen, self.block, self.taken = gen, max(block, 16), 0
        self.before = (gen._twister or gen._start()).state
        self.values = iter(())

    def uniform(self) -> float:
        """The next number in [0, 1)."""
        for value in self.values:
            return value
        self.values = iter(_float64(self.gen, self.block).tolist())
        self.taken += self.block
        return next(self.values)

    def normal(self) -> float:
        """The next standard normal number; every second one is left over from the one before."""
        gen = self.gen
        if gen.spare is not None:
            value, gen.spare = gen.spare, None
            return value
        angle = 2.0 * math.pi * self.uniform()
        radius = math.sqrt(-2.0 * math.log1p(-self.uniform()))
        gen.spare = radius * math.sin(angle)
        return radius * math.cos(angle)

    def close(self) -> None:
        """Leave the generator where the last number that was used ends."""
        self.gen._twister.state = self.before
        self.gen.draw64(self.taken - operator.length_hint(self.values))


def _each(gen: Generator, draw, shape, dtype, *parameters) -> np.ndarray:
    """An array of `draw(tap, *parameters of the element)`, in row-major order."""
    lists = [np.broadcast_to(p, shape).ravel().tolist() for p in parameters]
    with gen.lock:
        tap = Tap(gen, 4 * len(lists[0]))
        try:
            out = [draw(tap, *values) for values in zip(*lists, strict=True)]
        finally:
            tap.close()
    return np.array(out, dtype=np.float64).astype(dtype).reshape(shape)


# ---------------------------------------------------------------------------------------------
# Gamma


# constants that PyTorch writes in single precision
_THIRD, _SQUEEZE = float(np.float32(1 / 3)), float(np.float32(0.0331))


def _gamma(tap: Tap, alpha: float, power: float, d: float) -> float:
    """One gamma number of shape `alpha`: a cube of a normal number, accepted by its density.

    `power` is 1 / alpha, `d` is alpha - 1/3, or with one more if alpha is below 1: then the number
    is of shape alpha + 1 and is multiplied by a power of a uniform one.
    """
    scale = 1.0
    if alpha < 1.0:
        if alpha == 0.0:
            return 0.0
        scale = (1.0 - tap.uniform()) ** power if alpha > 0.0 else math.nan
    if not d > 0:  # a negative shape, or none: nothing can be drawn
        return math.nan
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = tap.normal()
        y = 1.0 + c * x
        while y <= 0:
            x = tap.normal()
            y = 1.0 + c * x
        v = y * y * y
        u = 1.0 - tap.uniform()
        square = x * x
        if u < 1.0 - _SQUEEZE * square * square:
            return scale * d * v
        if math.log(u) < 0.5 * square + d * (1.0 - v + math.log(v)):
            return scale * d * v


def _shapes(alpha: np.ndarray) -> tuple:
    """What `_gamma` wants to know about shapes, rounded to their own precision."""
    one, third = alpha.dtype.type(1), alpha.dtype.type(_THIRD)
    with np.errstate(divide="ignore"):
        return alpha, one / alpha, np.where(alpha < 1, alpha + one, alpha) - third


def standard_gamma(gen: Generator, alpha: np.ndarray) -> np.ndarray:
    """Gamma numbers of the given shapes; never below the smallest normal number."""
    drawn = _each(gen, _gamma, alpha.shape, np.float64, *_shapes(alpha)).astype(alpha.dtype)
    tiny = np.finfo(alpha.dtype).smallest_normal
    return np.where(drawn > tiny, drawn, tiny).astype(alpha.dtype)


def dirichlet(gen: Generator, alpha: np.ndarray) -> np.ndarray:
    """Points of the simplex in the last dim: gamma numbers divided by their sum."""
    drawn = _each(gen, _gamma, alpha.shape, np.float64, *_shapes(alpha.astype(np.float64)))
    drawn = np.maximum(drawn, np.finfo(np.float64).smallest_normal)
    total = _row_sums(drawn)[..., None] if alpha.ndim else drawn
    out = (drawn / total).astype(alpha.dtype)
    info = np.finfo(alpha.dtype)
    return np.minimum(np.maximum(out, info.smallest_normal), np.nextafter(
        alpha.dtype.type(1), alpha.dtype.type(0)))


def _row_sums(x: np.ndarray) -> np.ndarray:
    """Sums over the last dim in PyTorch's order, because the last digit depends on it.

    Four vectors of four lanes run side by side; what they hold is put aside every 16 steps (or a
    higher power of two), and so are these sums in turn.  What is left over comes last.
    """
    size, vectors, steps = x.shape[-1], x.shape[-1] // 4, x.shape[-1] // 16
    lanes = x[..., : 16 * steps].reshape(*x.shape[:-1], steps, 16)
    power = max(4, max(steps - 1, 0).bit_length() // 4)
    levels = [np.zeros((*x.shape[:-1], 16)) for _ in range(4)]
    for i in range(steps):
        levels[0] = levels[0] + lanes[..., i, :]
        done = i + 1
        for j in range(1, 4):
            if done % (1 << j * power):
                break
            levels[j], levels[j - 1] = levels[j] + levels[j - 1], np.zeros_like(levels[0])
    four = sum(levels[1:], levels[0]).reshape(*x.shape[:-1], 4, 4)
    first = four[..., 0, :]
    for i in range(4 * steps, vectors):
        first = first + x[..., 4 * i : 4 * i + 4]
    for k in range(1, 4):
        first = first + four[..., k, :]
    total = np.zeros(x.shape[:-1])
    for k in range(4 * vectors, size):
        total = total + x[..., k]
    for k in range(4):
        total = total + first[..., k]
    return total


# ---------------------------------------------------------------------------------------------
# Poisson


def _poisson(tap: Tap, rate: float) -> float:
    """One Poisson number."""
    if not rate >= 0:
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    if rate >= 10:
        return rate if rate == math.inf else _poisson_large(tap, rate)
    if rate == 0:
        return 0.0
    limit, count, product = math.exp(-rate), 0, tap.uniform()
    while product > limit:
        product *= tap.uniform()
        count += 1
    return float(count)


def _poisson_large(tap: Tap, rate: float) -> float:
    """Transformed rejection with squeeze."""
    root, log_rate = math.sqrt(rate), math.log(rate)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    quick = 0.9277 - 3.6224 / (b - 2)
    while True:
        u = tap.uniform() - 0.5
        v = tap.uniform()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + rate + 0.43) if us else -1
        if us >= 0.07 and v <= quick:
            return float(k)
        if k < 0 or (us < 0.013 and v > us):
            continue
        left = math.log(v) + math.log(inverse) - math.log(a / (us * us) + b) if v else -math.inf
        if left <= -rate + k * log_rate - math.lgamma(k + 1):
            return float(k)


def poisson(gen: Generator, rate: np.ndarray) -> np.ndarray:
    """Poisson numbers of the given rates."""
    return _each(gen, _poisson, rate.shape, rate.dtype, rate.astype(np.float64))


# ---------------------------------------------------------------------------------------------
# Binomial


def _successes(tap: Tap, count: float, p: float) -> float:
    """Successes among few expected ones: waiting times until the trials are used up."""
    waited, found, log_q = 0.0, 0, math.log1p(-p)
    while True:
        u = tap.uniform()
        waited += math.ceil(math.log(u) / log_q) if u else math.inf
        if waited > count:
            return float(found)
        found += 1


_TAILS = (0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.0207906721037650,
          0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
          0.00925546218271273, 0.00833056343336287)


def _stirling_tail(k: float) -> float:
    """What Stirling's formula for log k! leaves out."""
    if k <= 9:
        return _TAILS[int(k)]
    square = (k + 1) * (k + 1)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)


def _binomial_large(tap: Tap, count: float, p: float) -> float:
    """Transformed rejection with squeeze."""
    deviation = math.sqrt(count * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = count * p + 0.5
    quick = 0.92 - 4.2 / b
    odds = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    m = math.floor((count + 1) * p)
    while True:
        u = tap.uniform() - 0.5
        v = tap.uniform()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + c) if us else -1
        if us >= 0.07 and v <= quick:
            return float(k)
        if k < 0 or k > count:
            continue
        left = math.log(v * alpha / (a / (us * us) + b)) if v else -math.inf
        bound = ((m + 0.5) * math.log((m + 1) / (odds * (count - m + 1)))
                 + (count + 1) * math.log((count - m + 1) / (count - k + 1))
                 + (k + 0.5) * math.log(odds * (count - k + 1) / (k + 1))
                 + _stirling_tail(m) + _stirling_tail(count - m)
                 - _stirling_tail(k) - _stirling_tail(count - k))
        if left <= bound:
            return float(k)


def _binomial(tap: Tap, count: float, p: float) -> float:
    """One binomial number."""
    if count != count or p != p:
        return math.nan
    if count <= 0 or p <= 0:
        return 0.0
    if p >= 1 or count == math.inf:
        return count
    if p <= 0.5:
        return (_binomial_large if count * p >= 10 else _successes)(tap, count, p)
    q = 1.0 - p
    return count - (_binomial_large if count * q >= 10 else _successes)(tap, count, q)


def binomial(gen: Generator, count: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Binomial numbers: successes of probability `p` among `count` trials."""
    shape = np.broadcast_shapes(count.shape, p.shape)
    return _each(gen, _binomial, shape, count.dtype, count, p)
