"""Random numbers: PyTorch's CPU stream, so that a seeded program draws the same numbers.

The stream is the 32-bit Mersenne twister.  Agreement needs more than the same twister: each
distribution must take exactly as many draws as PyTorch's takes, in the same order, and do the same
arithmetic on them.  Those facts are the content of this file, one function per distribution.

Everything here works on NumPy arrays and knows nothing of tensors: functions take the generator,
the shape, the parameters and a NumPy dtype.  The operators on top are in `ops/random.py`.

Note: exactness.  Results equal PyTorch's bit for bit on x86 processors with AVX2; on others PyTorch
itself has different last digits in float32 normals, and we do not follow.  PyTorch computes several
distributions in double precision with the C library's `log` and its kin.  NumPy's vector versions
of those differ in the last bit, so they serve only where the result is rounded further anyway.

Note: many numbers.  Uniforms and normals in float32, zeros and ones for dropout, and permutations
are made by C where a library has been compiled (`compile/fills.py`): the same, many times as fast.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence

import numpy as np

from .generator import Generator, default_generator
from .layout import memory_order, ordered

__all__ = [
    "Generator", "bernoulli", "cauchy", "default_generator", "exponential", "geometric",
    "log_normal", "multinomial", "normal", "randint", "random", "randperm", "uniform",
]  # fmt: skip

_LOAD, _BUILD = 1 << 15, 1 << 22  # after so many numbers C is loaded if it is there, or compiled
_CALL, _NORMAL = 512, 8  # a call, and a normal, count as so many
_drawn = 0  # numbers that NumPy has drawn and C would have drawn
_CHUNK = 1 << 13  # draws handled at a time, so that intermediate arrays stay in cache
_BLOCK = 16  # from this many elements on, normals are made in blocks of this many
_HUGE = 0xFFFFFFFF // 20  # permutations from this length on are made from 64-bit draws
_F32, _F64, _I64 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int64)
_BOOL = np.dtype(bool)
# Constants as 0-d arrays: with small arrays NumPy combines them faster than Python numbers.
_LOW24, _LOW53 = np.array((1 << 24) - 1, np.uint64), np.array((1 << 53) - 1, np.uint64)
_ULP24, _ULP53 = np.array(2.0**-24, _F32), np.array(2.0**-53)

# ---------------------------------------------------------------------- from bits to real numbers


def _by_c(name: str, gen: Generator, shape: Sequence[int], out, *numbers: float, dtype=_F32):
    """An array filled by C, None if there is none or it is not worth it."""
    global _drawn
    count = math.prod(shape)
    if count < _BLOCK:
        return None
    if Generator.by_c is None:
        before, _drawn = _drawn, _drawn + _CALL + count * (_NORMAL if name == "normal" else 1)
        if not (before < _LOAD <= _drawn or before < _BUILD <= _drawn):
            return None
    from ..compile.fills import library

    functions = library(build=_drawn >= _BUILD)
    if functions is None:
        return None
    with gen.lock:
        if not gen.address():
            return None
        out = np.empty(shape, dtype) if out is None else out
        getattr(functions, f"pb_random_{name}")(gen.address(), out.ctypes.data, count, *numbers)
    return out


def _float32(gen: Generator, count: int) -> np.ndarray:
    """Uniforms in [0, 1) of 24 bits, one draw each."""
    return _in_unit_interval(gen.draw32(count), _LOW24, _ULP24)


def _float64(gen: Generator, count: int) -> np.ndarray:
    """Uniforms in [0, 1) of 53 bits, two draws each."""
    return _in_unit_interval(gen.draw64(count), _LOW53, _ULP53)


def _in_unit_interval(bits: np.ndarray, low: np.ndarray, ulp: np.ndarray) -> np.ndarray:
    """The low bits as fractions, in the dtype of their unit in the last place."""
    bits &= low
    out = bits.astype(ulp.dtype)
    out *= ulp
    return out


def _fill(gen: Generator, shape: Sequence[int], dtype, make: Callable, out=None) -> np.ndarray:
    """An array of what `make(gen, count)` gives for one cache-sized piece after another."""
    count = math.prod(shape)
    with gen.lock:
        if count <= _CHUNK and out is None:
            return _narrow(make(gen, count), dtype).reshape(shape)
        out = np.empty(count, dtype) if out is None else out.reshape(-1)
        for start in range(0, count, _CHUNK):
            stop = min(start + _CHUNK, count)
            out[start:stop] = _narrow(make(gen, stop - start), out.dtype)
    return out.reshape(shape)


def _narrow(x: np.ndarray, dtype) -> np.ndarray:
    """`x` converted to `dtype`, from float64 to 16 bits in two steps (that can round twice)."""
    if x.dtype == dtype:
        return x
    dtype = np.dtype(dtype)
    if dtype.itemsize == 2 and x.dtype == _F64:
        x = x.astype(_F32)
    return x.astype(dtype)


def _scale(x: np.ndarray, factor: float, offset: float) -> np.ndarray:
    """`x * factor + offset` rounded once, as by a fused multiply-add."""
    if factor == 1 and offset == 0:
        return x
    if x.dtype == _F32:
        return _fma32(x, float(np.float32(factor)), float(np.float32(offset)))
    product = x * factor
    if offset == 0 or not (abs(factor) < 1e290 and math.isfinite(offset)):
        return product + offset
    # What the product and the sum lose in rounding are doubles as well: find them, add them back.
    x_high, factor_high = _upper_half(x), _upper_half(factor)
    x_low, factor_low = x - x_high, factor - factor_high
    lost = x_high * factor_high - product
    lost += x_high * factor_low
    lost += x_low * factor_high
    lost += x_low * factor_low
    total = product + offset
    added = total - product
    lost += (product - (total - added)) + (offset - added)
    return total + lost


def _upper_half(x):
    """The upper half of the digits of a double: products of halves are exact."""
    spread = x * 134217729.0  # 2**27 + 1
    return spread - (spread - x)


def _fma32(a, b, c) -> np.ndarray:
    """`a * b + c` of float32 values rounded once: in float64 the product is exact."""
    product = a.astype(_F64)
    product *= b
    return _rounded_sum(product, c)


def _rounded_sum(x: np.ndarray, y) -> np.ndarray:
    """`x + y` of doubles in float32, rounded once.

    The sum in float64 is rounded too, which matters where it then lies halfway between two float32:
    one in 2**29. Small arrays are not looked at, it would take longer than to draw them.
    """
    total = x + y
    if total.size >= _CHUNK // 8:
        halfway = (total.view(np.int64) & 0x1FFFFFFF) == 0x10000000
        if halfway.any():
            part = total - x
            lost = (x - (total - part)) + (y - part)
            toward = np.copysign(np.inf, lost)
            total = np.where(halfway & (lost != 0), np.nextafter(total, toward), total)
    return total.astype(_F32)


def _libm(name: str, x: np.ndarray, dtype) -> np.ndarray:
    """A function of doubles, the C library's own if the result stays in float64."""
    if dtype != _F64:
        return getattr(np, name)(x)
    if name == "log" and "scipy.special" in sys.modules:  # if loaded: a fast loop around the same
        return sys.modules["scipy.special"].xlogy(1.0, x)
    try:
        values = map(getattr(math, name), x.ravel().tolist())
        return np.fromiter(values, _F64, x.size).reshape(x.shape)
    except OverflowError:  # the math module refuses what NumPy answers with an infinity
        return getattr(np, name)(x)


def _parts(shape: Sequence[int], dtype) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and dtype of the real numbers that an array of perhaps complex numbers consists of."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        return (math.prod(shape), 2), np.dtype(f"f{dtype.itemsize // 2}")
    return shape, dtype


# ------------------------------------------------------------------------------ uniform and normal


def uniform(gen: Generator, shape: Sequence[int], dtype, low: float = 0.0, high: float = 1.0,
            out: np.ndarray | None = None):
    """Real numbers evenly spread over [low, high); `out`: a contiguous array to be filled."""
    if not low <= high:
        raise RuntimeError("uniform_ expects to return a [from, to) range, "
                           f"but found from={low:g} > to={high:g}")
    real_shape, real = _parts(shape, dtype)
    source, kind = (_float64, np.float64) if real == _F64 else (_float32, np.float32)
    make = source
    factor, offset = 1.0, 0.0
    if low != 0 or high != 1:
        low, high = kind(low), kind(high)
        factor, offset = float(high - low), float(low)
        make = lambda gen, count: _scale(source(gen, count), factor, offset)
    if real == _F32 and real_shape is shape:
        done = _by_c("uniform", gen, shape, out, factor, offset)
        if done is not None:
            return done
    out = _fill(gen, real_shape, real, make, out)
    if real.itemsize == 2:
        out[out == real.type(high)] = low  # rounding to 16 bits can reach the excluded end
    return out if real is dtype else out.view(dtype).reshape(shape)


def normal(gen: Generator, shape: Sequence[int], dtype, mean: float = 0.0, std: float = 1.0,
           out: np.ndarray | None = None, blocks: bool = True):
    """Normally distributed numbers (complex: `mean` for both parts, `std` for both together).

    `out`: a contiguous array to be filled. Without `blocks` they are made pair by pair whatever
    their number is, as for memory that is not contiguous.
    """
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    real_shape, real = _parts(shape, dtype)
    if real_shape is not shape:
        std /= math.sqrt(2)
    elif real == _F32 and blocks:
        done = _by_c("normal", gen, shape, out, std, mean)
        if done is not None:
            return done
    count = math.prod(real_shape)
    blocks = blocks and count >= _BLOCK
    with gen.lock:
        if not blocks:
            drawn = _narrow(_scale(_pairs(gen, count), std, mean), real)
        else:
            flat = np.empty(count, real) if out is None else out.reshape(-1)
            drawn = _blocks(gen, flat, mean, std)
    if out is not None and not blocks:
        out.reshape(-1)[:] = drawn
    return drawn.view(dtype).reshape(shape)


def _pairs(gen: Generator, count: int) -> np.ndarray:
    """Standard normals in double precision; an odd one out is kept for the next call."""
    out = np.empty(count + 1)
    first = 0
    if count and gen.spare is not None:
        out[0], gen.spare, first = gen.spare, None, 1
    u = _float64(gen, (count - first + 1) // 2 * 2)
    if u.size:
        radius = np.sqrt(-2.0 * _libm("log1p", -u[1::2], _F64))
        angle = 2.0 * math.pi * u[0::2]
        stop = first + u.size
        out[first:stop:2] = radius * np.cos(angle)
        out[first + 1 : stop : 2] = radius * np.sin(angle)
        if stop > count:
            gen.spare = float(out[count])
    return out[:count]


def _blocks(gen: Generator, out: np.ndarray, mean: float, std: float) -> np.ndarray:
    """Normals by blocks of 16; the last block of a ragged array is laid over its end."""
    count, dtype = out.size, out.dtype
    source, polar = (_float64, _polar64) if dtype == _F64 else (_float32, _polar32)
    whole, rest = count - count % _BLOCK, count % _BLOCK
    for start in range(0, whole, _CHUNK):
        stop = min(start + _CHUNK, whole)
        u = source(gen, stop - start)
        if rest and stop == whole:
            if dtype.itemsize > 2:
                source(gen, rest)  # drawn for the ragged end, but then replaced by fresh ones
            u = np.append(u, source(gen, _BLOCK))
        z = _scale(polar(u.reshape(-1, 2, _BLOCK // 2)), std, mean)
        out[start:stop] = z[: stop - start]
        if rest and stop == whole:
            out[-_BLOCK:] = z[-_BLOCK:]
    return out


def _polar64(u: np.ndarray) -> np.ndarray:
    """Standard normals by Box and Muller: `u` is blocks x (radius, angle) x 8."""
    radius = np.sqrt(-2.0 * _libm("log", 1.0 - u[:, 0], _F64))
    angle = 2.0 * math.pi * u[:, 1]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)


def _polar32(u: np.ndarray) -> np.ndarray:
    """The same in single precision."""
    radius = np.sqrt(np.float32(-2) * _log32(np.float32(1) - u[:, 0]))
    sin, cos = _sincos32(np.float32(2 * math.pi) * u[:, 1])
    return np.stack([radius * cos, radius * sin], axis=1).reshape(-1)


# Note: float32 logarithm, sine and cosine.  For normals PyTorch uses the classic polynomials of the
# Cephes library, with fused multiply-adds.  Their last digit is not always right, and to agree we
# have to be wrong in the same places.


def _singles(*values: float) -> list[np.ndarray]:
    return [np.array(value, _F32).astype(_F64) for value in values]


_LOG = _singles(7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1,
                1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1,
                3.3333331174e-1)  # fmt: skip
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_SIN = _singles(-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COS = _singles(2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_PI_4 = sum(_singles(0.78515625, 2.4187564849853515625e-4, 3.77489497744594108e-8))


def _horner(coefficients: list[np.ndarray], x: np.ndarray) -> np.ndarray:
    """A polynomial at `x` (float32 values held in float64), rounded to float32 at each step."""
    first, second, *others = coefficients
    y = _rounded_sum(x * first, second)
    for coefficient in others:
        y = _fma32(y, x, coefficient)
    return y


def _log32(x: np.ndarray) -> np.ndarray:
    """Logarithm of numbers in (0, 1]."""
    root = 0x3F3504F3  # the bits of sqrt(1/2): write x as 2**e * m with m in [sqrt(1/2), sqrt(2))
    bits = x.view(np.int32) - root
    e = (bits >> 23).astype(_F32)
    m = ((bits & 0x7FFFFF) + root).view(_F32) - np.float32(1)
    square = m * m
    y = _horner(_LOG, m.astype(_F64)) * m
    y = _fma32(y, square, e * _LN2_LOW)
    y -= np.float32(0.5) * square
    y += m
    y += e * _LN2_HIGH
    return y


def _sincos32(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sine and cosine of angles in [0, 2 pi]."""
    octant = ((x * np.float32(4 / math.pi)).astype(np.int32) + 1) & ~1
    x = (x - octant * _PI_4).astype(_F32)
    square = x * x
    square64 = square.astype(_F64)
    cos = _horner(_COS, square64) * square
    cos = _fma32(cos, square64, np.float32(-0.5) * square) + np.float32(1)
    sin = _horner(_SIN, square64) * square
    sin = _fma32(sin, x, x)
    swap = (octant & 2) != 0
    sin, cos = np.where(swap, cos, sin), np.where(swap, sin, cos)
    sin.view(np.int32)[...] ^= (octant & 4) << 29  # flips the sign bit
    cos.view(np.int32)[...] ^= (octant + 2 & 4) << 29
    return sin, cos


# ------------------------------------------------------------------------- other real distributions


@np.errstate(over="ignore")
def exponential(gen: Generator, shape: Sequence[int], dtype, rate: float = 1.0) -> np.ndarray:
    """Waiting times with mean `1 / rate`."""
    if not rate > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={rate:g}")
    return _fill(gen, shape, dtype, lambda gen, count: (
        -1.0 / rate * _libm("log1p", -_float64(gen, count), dtype)))


@np.errstate(over="ignore")
def log_normal(gen: Generator, shape: Sequence[int], dtype, mean: float = 1.0, std: float = 2.0):
    """Exponentials of normally distributed numbers."""
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    return _fill(gen, shape, dtype, lambda gen, count: (
        _libm("exp", _scale(_pairs(gen, count), std, mean), dtype)))


@np.errstate(over="ignore")
def cauchy(gen: Generator, shape: Sequence[int], dtype, median: float = 0.0, sigma: float = 1.0):
    """Cauchy distributed numbers."""
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    return _fill(gen, shape, dtype, lambda gen, count: _scale(
        _libm("tan", math.pi * (_float64(gen, count) - 0.5), dtype), sigma, median))


def geometric(gen: Generator, shape: Sequence[int], dtype, p: float) -> np.ndarray:
    """How many trials it takes up to the first success."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    return _fill(gen, shape, dtype, lambda gen, count: (
        np.ceil(np.log(_float64(gen, count)) / math.log1p(-p))))


# --------------------------------------------------------------------------- integers and choices


def randint(gen: Generator, shape: Sequence[int], low: int, high: int, dtype=np.int64):
    """Integers from `low` up to but not including `high`."""
    if low >= high:
        raise RuntimeError("random_ expects 'from' to be less than 'to', "
                           f"but got from={low} >= to={high}")
    dtype = np.dtype(dtype)
    if dtype.kind not in "biu":
        low, high = _representable(low, high, dtype)
    width = high - low
    if width == 1 << 64:
        return _fill(gen, shape, dtype, lambda gen, count: gen.draw64(count).view(np.int64))

    def make(gen: Generator, count: int) -> np.ndarray:
        bits = gen.draw32(count) if width < 1 << 28 else gen.draw64(count)
        bits %= width
        return bits.view(np.int64) + low

    return _fill(gen, shape, dtype, make)


def _representable(low: int, high: int, dtype: np.dtype) -> tuple[int, int]:
    """Bounds moved inwards if rounding to a floating point dtype would carry values past them."""
    digits = _digits(dtype)
    first, last = int(dtype.type(low + 1)), int(dtype.type(high - 1))
    if first < low:
        low = first + (1 << abs(low + 1).bit_length() - digits)
    if last >= high:
        high = last - (1 << abs(high - 1).bit_length() - digits)
    return low, high


def _digits(dtype: np.dtype) -> int:
    """Binary digits of a floating point dtype, the leading one included."""
    return {8: 53, 4: 24}.get(dtype.itemsize) or (11 if dtype == np.float16 else 8)


def random(gen: Generator, shape: Sequence[int], dtype) -> np.ndarray:
    """Integers from 0 to the largest of `dtype` (floats: as far as all integers are exact)."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        limit = 2
    else:
        limit = np.iinfo(dtype).max + 1 if dtype.kind in "iu" else (1 << _digits(dtype)) + 1
    draw = Generator.draw64 if dtype.itemsize == 8 else Generator.draw32
    return _fill(gen, shape, dtype, lambda gen, count: draw(gen, count) % limit)


def randperm(gen: Generator, n: int, dtype=np.int64) -> np.ndarray:
    """The integers below `n` in random order."""
    if n < _HUGE:
        done = _by_c("order", gen, (n,), None, dtype=_I64)
        if done is not None:
            return _narrow(done, dtype)
    place = np.arange(n)
    if n >= _HUGE:  # swaps of i with a place up to i: in reverse and mirrored, the swaps of below
        with gen.lock:
            partner = gen.draw64(n) % (place + 1).view(np.uint64)
        mirrored = _swapped(place, n - 1 - partner.view(np.int64)[::-1])
        out = np.empty(n, dtype)
        out[n - 1 - mirrored[::-1]] = place
        return out
    with gen.lock:
        bits = gen.draw32(max(n - 1, 0))
    bits %= np.arange(n, 1, -1, dtype=np.uint64)
    partner = place.copy()
    partner[:-1] += bits.view(np.int64)
    if n > 4096:
        return _swapped(place, partner).astype(dtype)
    out = place.tolist()
    for i, j in enumerate(partner.tolist()):
        out[i], out[j] = out[j], out[i]
    return np.array(out, dtype)


def _swapped(place: np.ndarray, partner: np.ndarray) -> np.ndarray:
    """What becomes of 0, 1, 2... if for each i in turn i and `partner[i] >= i` change places.

    Step i takes what lies at j = partner[i] and leaves there what lay at i.  What lies at j was
    left by the step before i with the same partner, or has lain there from the start; what lay at i
    was left by the last step with partner i, which took it there from its own place, and so on.
    """
    shift = len(place).bit_length()
    keys = np.sort((partner << shift) | place)  # steps with the same partner side by side, in order
    step, target = keys & ((1 << shift) - 1), keys >> shift
    same = target[1:] == target[:-1]
    before = np.full_like(place, -1)  # the step before with the same partner
    before[step[1:][same]] = step[:-1][same]
    last = np.append(~same, True)
    step, target = step[last], target[last]
    source = place.copy()  # whose place the number that lies at i came from
    source[target] = np.where(step == target, before[target], step)
    source = np.where(source < 0, place, source)
    while True:
        further = source[source]
        if np.array_equal(further, source):
            return np.where(before < 0, partner, source[before])
        source = further


def bernoulli(gen: Generator, p: float | np.ndarray, shape: Sequence[int], dtype) -> np.ndarray:
    """Ones with probability `p`, else zeros.  An array `p` is broadcast to `shape`."""
    if not isinstance(p, np.ndarray):
        if not 0 <= p <= 1:
            raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
        name, kind = ("chances", _F32) if dtype == _F32 else ("chances_bytes", _BOOL)
        done = _by_c(name, gen, shape, None, math.ceil(p * 2.0**53), dtype=kind)
        if done is not None:
            return _narrow(done, dtype)
        return _fill(gen, shape, dtype, lambda gen, count: _float64(gen, count) < p)
    if not ((p >= 0) & (p <= 1)).all():
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false: "
                           "probabilities must lie in [0, 1]")
    source, work = (_float64, _F64) if p.dtype == _F64 else (_float32, _F32)
    return (_fill(gen, shape, work, source) < p).astype(dtype)


@np.errstate(divide="ignore", over="ignore")
def multinomial(gen: Generator, weights: np.ndarray, samples: int, replacement: bool = False):
    """Indices into the last dimension, drawn with probabilities in proportion to `weights`."""
    if weights.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    size = weights.shape[-1]
    if samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if samples > size and not replacement:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples "
                           "without replacement")
    wide = weights.astype(_F64 if weights.dtype == _F64 else _F32, copy=False)
    if not (np.isfinite(wide) & (wide >= 0)).all():
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if not (wide.sum(-1) > 0).all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    if replacement and samples > 1:
        shape = (*weights.shape[:-1], samples)
        u = _fill(gen, shape, _F64, _float64).reshape(-1, samples)
        steps = np.cumsum(wide.reshape(-1, size), axis=1)
        steps /= steps[:, -1:]
        rows = [np.searchsorted(edges, points) for edges, points in zip(steps, u, strict=True)]
        return np.array(rows, np.int64).reshape(shape)
    # A race: each index arrives after an exponential time, the sooner the heavier it is.
    draw = lambda shape: exponential(gen, shape, weights.dtype)
    speed = weights / ordered(draw, weights.shape, memory_order(weights))
    if samples == 1:
        return speed.argmax(-1, keepdims=True)
    return np.argsort(-speed, axis=-1, kind="stable")[..., :samples].copy()
