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
    """SciPy's linear algebra for an array namespace (NumPy only; others give their own `linalg`)."""
    if xp is np:
        import scipy.linalg
        return scipy.linalg
    return xp.linalg
