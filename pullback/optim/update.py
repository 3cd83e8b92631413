"""The arithmetic of the optimizers on raw arrays, one pure function per group of parameters.

Each function takes lists of arrays (parameters, gradients, state) and plain numbers, and writes
parameters and state in place.  Large arrays are walked in blocks that stay in the cache, so that
the dozen array operations of an update cost one pass over memory.  `use` puts a native kernel in
a function's place.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator

import numpy as np

from ..core import device as dev

NATIVE = 100_000  # elements from which on native code is worth a compiler run

BLOCK = 32768  # elements per block: 128 KiB of float32, so that all operands of Adam fit into L2

_scratch: dict[np.dtype, np.ndarray] = {}
_native: dict[str, Callable] = {}


def use(name: str, function: Callable | None) -> None:
    """Run the update `name` ("sgd", "adam") by another function of the same signature.

    The function returns False for arrays that it does not take; None means the NumPy version.
    """
    _native[name] = _declined if function is None else function


def _native_for(name: str, params: list) -> Callable | None:
    """The native kernel of an update; looked for when the first large step comes."""
    if not _native and sum(p.size for p in params) >= NATIVE:
        from . import native
        if not native.install():
            _native["none"] = _declined
    return _native.get(name)


def _declined(*args) -> bool:
    return False


def scratch(like: np.ndarray) -> np.ndarray:
    """A temporary of the shape of `like`; one buffer per dtype is reused for small arrays."""
    size = like.size
    if type(like) is not np.ndarray or size > BLOCK:
        return dev.lookup(like)[1].empty_like(like) if type(like) is not np.ndarray else (
            np.empty_like(like))
    buffer = _scratch.get(like.dtype)
    if buffer is None:
        buffer = _scratch[like.dtype] = np.empty(BLOCK, like.dtype)
    return buffer[:size].reshape(like.shape)


def blocks(arrays: tuple) -> Iterator[tuple]:
    """The same arrays in pieces of at most BLOCK elements, if their memory order agrees."""
    first = arrays[0]
    if first.dtype.kind == "c":  # complex numbers are updated as pairs of real ones
        arrays = tuple(None if a is None else a.view(a.real.dtype) if a.flags.c_contiguous
                       else _pairs(a) for a in arrays)
        first = arrays[0]
    size = first.size
    if size <= BLOCK or type(first) is not np.ndarray:
        yield arrays
        return
    if all(a is None or a.flags.c_contiguous for a in arrays):
        flat = tuple(None if a is None else a.reshape(-1) for a in arrays)
    elif all(a is None or a.flags.f_contiguous for a in arrays):
        flat = tuple(None if a is None else a.T.reshape(-1) for a in arrays)
    else:
        yield arrays
        return
    for start in range(0, size, BLOCK):
        yield tuple(None if a is None else a[start:start + BLOCK] for a in flat)


def _pairs(array: np.ndarray) -> np.ndarray:
    if any(s == array.itemsize for s in array.strides):
        axis = array.strides.index(array.itemsize)
        return np.moveaxis(array, axis, -1).view(array.real.dtype)
    raise RuntimeError("optimizers need complex parameters to be stored without gaps; call "
                       ".contiguous() on them")


def _functions(array):
    return np if type(array) is np.ndarray else dev.lookup(array)[1]


def sgd(params: list, grads: list, buffers: list, fresh: list, *, lr: float, momentum: float,
        dampening: float, weight_decay: float, nesterov: bool, maximize: bool) -> None:
    """Stochastic gradient descent; `fresh[i]` says that buffer i holds nothing yet."""
    native = _native_for("sgd", params)
    if native is not None and native(params, grads, buffers, fresh, lr, momentum, dampening,
                                     weight_decay, nesterov, maximize) is not False:
        return
    if not momentum and not weight_decay:
        step = lr if maximize else -lr
        runtime = sys.modules.get("pullback.compile.native")  # there once something was compiled
        if runtime is not None and runtime.add_scaled(params, grads, step):
            return
        for p, g in zip(params, grads, strict=True):
            if p.size <= BLOCK:  # a small temporary costs less than looking for one
                p += g * step
                continue
            for p_, g_ in blocks((p, g)):
                t = scratch(p_)
                _functions(p_).multiply(g_, step, out=t)
                p_ += t
        return
    for p, g, buffer, new in zip(params, grads, buffers, fresh, strict=True):
        for part in blocks((p, g, buffer)):
            _sgd_block(_functions(p), *part, new, lr, momentum, dampening, weight_decay, nesterov,
                       maximize)


def _sgd_block(xp, p, g, buffer, new, lr, momentum, dampening, weight_decay, nesterov, maximize):
    t = scratch(p)
    if weight_decay:
        xp.multiply(p, weight_decay, out=t)
        (xp.subtract if maximize else xp.add)(t, g, out=t)
    elif maximize:
        xp.negative(g, out=t)
    else:
        xp.copyto(t, g)
    if momentum:
        if new:
            xp.copyto(buffer, t)
        else:
            xp.multiply(buffer, momentum, out=buffer)
            if dampening == 0:
                xp.add(buffer, t, out=buffer)
            else:
                xp.add(buffer, t * (1 - dampening), out=buffer)
        if nesterov:
            xp.add(t, buffer * momentum, out=t)
        else:
            xp.copyto(t, buffer)
    xp.multiply(t, lr, out=t)
    xp.subtract(p, t, out=p)


def adam(params: list, grads: list, averages: list, squares: list, maxima: list, steps: list, *,
         lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, decoupled: bool,
         maximize: bool) -> None:
    """Adam; `maxima[i]` is None without amsgrad, `decoupled` is AdamW's weight decay."""
    native = _native_for("adam", params)
    if native is not None and native(params, grads, averages, squares, maxima, steps, lr, beta1,
                                     beta2, eps, weight_decay, decoupled, maximize) is not False:
        return
    for p, g, m, v, top, step in zip(params, grads, averages, squares, maxima, steps, strict=True):
        root = math.sqrt(1 - beta2**step)
        # lr / c1 * m / (sqrt(v) / root + eps), with one multiplication less
        size, floor = lr / (1 - beta1**step) * root, eps * root
        for part in blocks((p, g, m, v, top)):
            _adam_block(_functions(p), *part, size, floor, lr, beta1, beta2, weight_decay,
                        decoupled, maximize)


def _adam_block(xp, p, g, m, v, top, size, floor, lr, beta1, beta2, weight_decay, decoupled,
                maximize):
    if maximize:
        g = xp.negative(g)
    if weight_decay:
        if decoupled:
            xp.multiply(p, 1 - lr * weight_decay, out=p)
        else:
            g = g + p * weight_decay
    t = scratch(p)
    xp.subtract(g, m, out=t)
    xp.multiply(t, 1 - beta1, out=t)
    xp.add(m, t, out=m)
    xp.multiply(g, g, out=t)
    xp.multiply(t, 1 - beta2, out=t)
    xp.multiply(v, beta2, out=v)
    xp.add(v, t, out=v)
    if top is not None:
        xp.maximum(top, v, out=top)
        v = top
    xp.sqrt(v, out=t)
    xp.add(t, floor, out=t)
    xp.divide(m, t, out=t)
    xp.multiply(t, size, out=t)
    xp.subtract(p, t, out=p)
