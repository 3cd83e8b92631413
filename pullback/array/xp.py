"""What array namespaces do not share: special functions and the always-array ufunc call."""

from __future__ import annotations

import functools
import math

import numpy as np


@functools.cache
def special(xp):
    """The special-function namespace that belongs to an array namespace."""
    if xp is np:
        import scipy.special

        return scipy.special
    if xp.__name__ == "cupy":
        import cupyx.scipy.special

        return _WithHost(xp, cupyx.scipy.special)
    return xp.special


class _WithHost:
    """Special functions of a device, by way of the host where the device has none (Airy)."""

    def __init__(self, xp, own):
        self.xp, self.own = xp, own

    def __getattr__(self, name: str):
        try:
            function = getattr(self.own, name)
        except AttributeError:
            function = _through_host(self.xp, getattr(special(np), name))
        setattr(self, name, function)
        return function


def _through_host(xp, function):
    def call(*args):
        out = function(*(xp.asnumpy(a) if hasattr(a, "strides") else a for a in args))
        return tuple(map(xp.asarray, out)) if isinstance(out, tuple) else xp.asarray(out)

    return call


@functools.cache
def linalg(xp):
    """SciPy's linear algebra for NumPy; another namespace's own `linalg`."""
    if xp is np:
        import scipy.linalg

        return scipy.linalg
    return xp.linalg


def sums(xp, x, axis, keepdims=True):
    """Sums along an axis; NumPy's method costs twice as much on small arrays, and warns of overflow
    in NumPy's name, where the package's silence does not reach.
    """
    if xp is np:
        return np.add.reduce(x, axis, None, None, keepdims)
    return x.sum(axis, keepdims=keepdims)


def maxima(xp, x, axis):
    """Maxima along an axis, which stays."""
    return np.maximum.reduce(x, axis, None, None, True) if xp is np else x.max(axis, keepdims=True)


def comparable(xp, array):
    """An array that sorts as numbers do, NaN last: formats that NumPy does not know (bfloat16) go
    by another order where there are NaN.
    """
    return array if array.dtype.kind in "biufc" else array.astype(xp.float32)


def picked(xp, x, places, axis: int):
    """Elements at places along an axis: `take_along_axis`, of vectors and matrices without it."""
    if x.ndim == 1:
        return x[places]
    if x.ndim == 2:
        if axis % 2:
            return x[xp.arange(x.shape[0])[:, None], places]
        return x[places, xp.arange(x.shape[1])]
    return xp.take_along_axis(x, places, axis)


def extremes(array) -> tuple:
    """Smallest and largest element; Python finds those of a few faster than NumPy does."""
    if array.size > 16:
        return array.min(), array.max()
    values = array.reshape(-1).tolist()
    return min(values), max(values)


def all_below(array, size: int) -> bool:
    """Are integers neither negative nor `size` or more?  No also means: look more closely."""
    return type(array) is np.ndarray and array.dtype == np.int64 and bool(
        np.maximum.reduce(array.view(np.uint64), None) < size)


def taken(xp, flat, places):
    """Elements of a vector at places that were checked: NumPy need not do it again."""
    return flat.take(places, None, None, "clip") if xp is np else xp.take(flat, places)


def spread(xp, array, shape: tuple):
    """`broadcast_to`, which NumPy does in Python."""
    return array if array.shape == shape else xp.broadcast_to(array, shape)


def accumulate_at(xp, name: str, target, places, values) -> None:
    """`xp.NAME.at(target, places, values)`, by way of the host where a namespace lacks it
    (CuPy: multiply).
    """
    if xp.__name__ == "cupy" and name in ("maximum", "minimum") and target.dtype.kind == "f":
        return _extreme_at(xp, name, target, places, values)
    try:
        getattr(xp, name).at(target, places, values)
    except (NotImplementedError, TypeError):
        if xp is np:
            raise
        host = xp.asnumpy(target)
        places = (
            tuple(xp.asnumpy(p) for p in places)
            if isinstance(places, tuple)
            else xp.asnumpy(places)
        )
        getattr(np, name).at(host, places, xp.asnumpy(values))
        target[...] = xp.asarray(host)


def running_maximum(xp, values):
    """The largest element so far along the last axis, where a namespace cannot do that itself
    (CuPy) by doubling: each step looks twice as far back.
    """
    if xp is np:
        return np.maximum.accumulate(values, axis=-1)
    step = 1
    while step < values.shape[-1]:
        late = xp.maximum(values[..., step:], values[..., :-step])
        values = xp.concatenate([values[..., :step], late], axis=-1)
        step *= 2
    return values


def _extreme_at(xp, name: str, target, places, values) -> None:
    """`maximum.at` and `minimum.at` by sorting: CuPy's own compare in single precision.

    Sorted by value and then, keeping that order, by place, the last of each place is the largest.
    """
    places = places if isinstance(places, tuple) else (places,)
    lead, rest = target.shape[: len(places)], math.prod(target.shape[len(places) :])
    where = xp.ravel_multi_index(xp.broadcast_arrays(*places), lead)
    where = where[..., None] * rest + xp.arange(rest)
    shape = where.shape[:-1] + target.shape[len(places) :]
    values = xp.broadcast_to(values, shape).reshape(-1)
    flat = target.reshape(-1)
    sign = 1 if name == "maximum" else -1
    order = xp.argsort(sign * values, kind="stable")
    order = order[xp.argsort(where.reshape(-1)[order], kind="stable")]
    where, values = where.reshape(-1)[order], values[order]
    last = xp.ones(where.shape, dtype=bool)
    last[:-1] = where[1:] != where[:-1]
    chosen = where[last]
    flat[chosen] = getattr(xp, name)(flat[chosen], values[last])
    target[...] = flat.reshape(target.shape)
