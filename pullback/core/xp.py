"""What array namespaces do not share: special functions and the always-array ufunc call."""

from __future__ import annotations

import functools

import numpy as np


@functools.cache
def special(xp):
    """The special-function namespace that belongs to an array namespace."""
    if xp is np:
        import scipy.special

        return scipy.special
    if xp.__name__ == "cupy":
        import cupyx.scipy.special

        return cupyx.scipy.special
    return xp.special


@functools.cache
def linalg(xp):
    """SciPy's linear algebra for NumPy; another namespace's own `linalg`."""
    if xp is np:
        import scipy.linalg

        return scipy.linalg
    return xp.linalg


def accumulate_at(xp, name: str, target, places, values) -> None:
    """`xp.NAME.at(target, places, values)`, by way of the host where a namespace lacks it
    (CuPy: multiply).
    """
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
