"""Kernels of elementary functions: float32 results are those of double precision, rounded once.

NumPy's own functions of float32 arrays are off by up to three units in the last place.  C computes
wide and rounds on the way, about as fast (`compile/elementary_loops.py`), where there is a compiler
and there was enough work for it.  Before that, and without one, NumPy computes in double precision;
that is slower, and too slow for sines of large arrays: these are NumPy's own (1.5 units).

`elementary.exp(xp, x)` is a kernel itself and a part of others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from .xp import special

_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
_ndarray = np.ndarray
_BLOCK = 8192  # elements that are widened at a time
SHARED = 1 << 18  # elements that more than one thread computes
_SLOW = 1 << 14  # elements of which NumPy does not compute sines in double precision
_FIRST, _OFTEN = 64, 1 << 16  # calls with small arrays before the library is looked for, and again
_made: dict[str, list[np.ufunc]] = {}  # the functions in C: none, or one
_calls = 0  # with small arrays, while there are none


def _small_call() -> bool:
    """Count a call with a small array: is it time to look for the library?"""
    global _calls
    _calls += 1
    return _calls % _OFTEN == _FIRST


def _through_double(formula: Callable, x: np.ndarray) -> np.ndarray:
    """A formula over arrays in double precision, rounded to float32."""
    if not x.flags.c_contiguous:  # the result lies as that of a ufunc does
        return formula(np.positive(x, dtype=_F64)).astype(_F32)
    if x.size <= _BLOCK:
        return formula(x.astype(_F64)).astype(_F32)
    out = np.empty(x.shape, _F32)
    given, rounded = x.reshape(-1), out.reshape(-1)
    for k in range(0, x.size, _BLOCK):
        rounded[k:k + _BLOCK] = formula(given[k:k + _BLOCK].astype(_F64))
    return out


def bring(build: bool) -> dict[str, np.ufunc]:
    """Take the functions in C: those of the library, if it is there, was worth it, or is to be."""
    from ..compile import elementary_loops as loops

    made = loops.found(build)
    for known, place in _made.items():
        place[:] = [made[known]] if made else []
    return made


def _without(name: str, formula: Callable | None, plain: Callable, x: np.ndarray) -> np.ndarray:
    """What there is before the library, and in its place."""
    if x.size < _BLOCK and not _small_call():
        return plain(np, x) if formula is None else _through_double(formula, x)
    from ..compile import elementary_loops as loops

    if x.size < _BLOCK and _calls > _OFTEN:  # it is built beside the program
        threading.Thread(
            target=bring, args=(True,), name="elementary", daemon=True).start()
    made = bring(False)
    if made:
        return made[name](x)
    with loops.timed():
        if formula is None or formula in _SLOWLY and x.size >= _SLOW:
            return plain(np, x)
        return _through_double(formula, x)


def _function(name: str, formula: Callable | None, plain: Callable) -> Callable:
    """A kernel: by C, by `formula` of doubles, or `plain` of other dtypes and namespaces."""

    made = _made[name] = []

    def run(xp, self):
        if self.__class__ is not _ndarray or self.dtype is not _F32:
            if self.__class__ is not np.float32:
                return plain(xp, self)
            self = np.asarray(self)
        if not made:
            return _without(name, formula, plain, self)
        if self.size < SHARED or not self.flags.c_contiguous:
            return made[0](self)
        from ..compile import elementary_loops

        return elementary_loops.shared(made[0], self, np.empty_like(self))

    run.__name__ = run.__qualname__ = name
    run.__doc__ = f"The kernel of {name}."
    run.made = made  # for functions of calls that come often
    return run


def _by_numpy(name: str, of_numpy: str = "") -> Callable:
    """The kernel of a function that array namespaces have."""
    own = of_numpy or name

    def plain(xp, x):
        return getattr(xp, own)(x)

    return _function(name, getattr(np, own), plain)


def _sigmoid(xp, x):
    return xp.reciprocal(xp.exp(-x) + 1)


def _erf(xp, x):
    return special(xp).erf(x)


def _sigmoid_of_doubles(x):
    return np.reciprocal(np.exp(-x) + 1)


def exp_into(xp, x):
    """`exp` of an array, written into it."""
    if xp is not np or x.dtype is not _F32:
        return xp.exp(x, out=x)
    if not exp.made or x.__class__ is not _ndarray:
        x[...] = exp(xp, x)
        return x
    if x.size < SHARED or not x.flags.c_contiguous:
        return exp.made[0](x, x)
    from ..compile import elementary_loops

    return elementary_loops.shared(exp.made[0], x, x)


_SLOWLY = (np.sin, np.cos)  # NumPy has no vectors for these in double precision

exp = _by_numpy("exp")
exp2 = _by_numpy("exp2")
expm1 = _by_numpy("expm1")
log = _by_numpy("log")
log2 = _by_numpy("log2")
log10 = _by_numpy("log10")
log1p = _by_numpy("log1p")
sin = _by_numpy("sin")
cos = _by_numpy("cos")
tan = _by_numpy("tan")
asin = _by_numpy("asin", "arcsin")
acos = _by_numpy("acos", "arccos")
atan = _by_numpy("atan", "arctan")
sinh = _by_numpy("sinh")
cosh = _by_numpy("cosh")
tanh = _by_numpy("tanh")
asinh = _by_numpy("asinh", "arcsinh")
acosh = _by_numpy("acosh", "arccosh")
atanh = _by_numpy("atanh", "arctanh")
sigmoid = _function("sigmoid", _sigmoid_of_doubles, _sigmoid)
erf = _function("erf", None, _erf)  # SciPy's is right by itself
