"""Kernels in C in the place of those of entries, once there are some.

An entry names the kernel in C that does the same as its own (`Op.native`).  Until that is built
an overload has its own, which counts: where a program calls enough of them the library is looked
for, at a certain call, so that all its runs give the same bits.  On a machine that has none a
program that goes on and on has it built, in a thread that nobody waits for.  Then the kernels
change places, in overloads and in the functions that were generated for calls.  Without a
compiler all stays as it is.  `PULLBACK_EAGER_KERNELS` says otherwise: 0 never, 1 at once.
`compile/eager_kernels.py` builds and loads, `compile/runtime/eager.c` has the kernels.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ..threads.state import renewed as lock_of

LOOK, BUILD = 1 << 12, 1 << 16  # calls after which the library is looked for, and built
_LARGE = 4096  # elements that count as one more call

_maker: Callable | None = None  # makes a kernel in C from its name and the kernel of the table
_refused = False  # there will be none
_waiting: list[tuple[Any, Callable]] = []  # overloads, and their own kernels
_places: dict[str, list[Callable]] = {}  # overload -> functions that are told of another kernel
_lock = lock_of(threading.RLock())
_calls = 0
_next = LOOK  # calls at which something is to be done


def kernel_of(ov: Any, own: Callable) -> Callable:
    """The kernel of an overload: its own, or the one in C."""
    if ov.op.native is None or _refused:
        return own
    with _lock:
        if _maker is None and not _refused and os.environ.get("PULLBACK_EAGER_KERNELS") == "1":
            _begin(True)
        if _maker is not None:
            return _maker(ov.op.native, own)
        if _refused:
            return own
        _waiting.append((ov, own))
    return _counting(ov, own)


def _counting(ov: Any, own: Callable) -> Callable:
    """An overload's own kernel, as long as it has no other."""
    def kernel(*args):
        global _calls
        current = ov.__dict__.get("kernel", kernel)
        if current is not kernel:  # who has kept this function
            return current(*args)
        _calls += 1 + (args[1].size // _LARGE if type(args[1]) is np.ndarray else 0)
        if _calls >= _next:
            _due()
        return own(*args)

    return kernel


def _due() -> None:
    """Look for the library, or build it."""
    global _next
    with _lock:
        if _calls < _next:
            return
        building = _next > LOOK
        _next = float("inf") if building else BUILD
    if os.environ.get("PULLBACK_EAGER_KERNELS") == "0":
        put(None)
    elif building:
        threading.Thread(target=_begin, args=(True,), daemon=True).start()
    else:
        _begin(False)


def _begin(build: bool) -> None:
    from ..compile import eager_kernels
    from . import elementary

    found = eager_kernels.maker(build)
    if found is not None or build:
        put(found)
        eager_kernels.share_threads(build)
    if found is not None:
        elementary.bring(build)


def put(maker: Callable | None) -> None:
    """From now on kernels are what `maker(name, own)` makes; None: there are none."""
    global _maker, _refused
    with _lock:
        _maker, _refused = maker, maker is None
        for ov, own in _waiting:
            made = own if maker is None else maker(ov.op.native, own)
            ov.__dict__["kernel"] = made
            for tell in _places.pop(ov.name, ()):
                tell(made)
        _waiting.clear()


def renewed(ov: Any, tell: Callable) -> None:
    """A generated function calls the kernel of an overload: `tell` it when there is another."""
    with _lock:
        if any(waiting is ov for waiting, _ in _waiting):
            _places.setdefault(ov.name, []).append(tell)
        elif "kernel" in ov.__dict__:
            tell(ov.__dict__["kernel"])
