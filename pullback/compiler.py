"""What surrounds `compile` in PyTorch: questions and marks.

A function is captured whole, so that there are no pieces to include or leave out: the marks that
steer PyTorch's compiler are accepted and return what they are given.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from . import errors
from .absent import getter as _getter
from .core.handle import Tensor
from .creation import from_numpy
from .pytree import tree_map
from .threads.blocks import restored_on_error, tied
from .threads.state import count, state

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "cache_info",
    "clear_cache",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "recompiles",
    "reset",
    "set_stance",
]


def compile(*args, **kwargs) -> Any:
    """`pullback.compile`."""
    from .compile.api import compile as run

    return run(*args, **kwargs)


def recompiles() -> list[str]:
    """Why compiled functions were captured again, the last one last."""
    from .capture.explain import history

    return list(history)


def cache_info() -> dict[str, Any]:
    """What the disk keeps of compiled programs: its folder, entries and bytes; and of this process
    how often a program was found there (`hits`), how often one had to be cut and lowered
    (`misses`), how many parts were kept (`saved`), how many programs cannot be (`bypasses`) and why
    (`reasons`).  `code` has the same for native code, by graph.
    """
    from .compile import cache
    from .graph.counters import counters

    counted = counters["aot_autograd"]
    names = {"hits": "hit", "misses": "miss", "saved": "saved", "bypasses": "bypass"}
    code = cache.info()
    return {**{k: code.pop(k) for k in ("folder", "entries", "bytes", "limit")},
            **{k: counted[f"autograd_cache_{v}"] for k, v in names.items()},
            "reasons": dict(counters["autograd_cache_bypass_reasons"]), "code": code}


def clear_cache() -> int:
    """Delete all that the disk keeps of compiled programs; returns how many files went.

    What this process has compiled stays as it is.
    """
    from .compile import cache

    return cache.clear()


def is_compiling() -> bool:
    """Is the program being captured?"""
    return state.mode > 0


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """Is the program being exported?"""
    return False


def disable(fn=None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function itself: inside of a captured function it is captured along."""
    return fn if fn is not None else functools.partial(disable, recursive=recursive, reason=reason)


def allow_in_graph(fn) -> Any:
    """The function itself."""
    return fn


def assume_constant_result(fn):
    """The function itself."""
    return fn


def nested_compile_region(fn=None, **options):
    """The function itself."""
    return fn if fn is not None else nested_compile_region


def substitute_in_graph(original_fn, **options):
    """The original stays; what replaces it for PyTorch's tracer is returned unchanged."""
    return lambda replacement: replacement


def wrap_numpy(fn):
    """A function of arrays as a function of tensors."""
    @functools.wraps(fn)
    def run(*args, **kwargs):
        args, kwargs = tree_map(lambda v: v.numpy() if isinstance(v, Tensor) else v, (args, kwargs))
        return tree_map(lambda v: from_numpy(v) if isinstance(v, np.ndarray) else v,
                        fn(*args, **kwargs))

    return run


def cudagraph_mark_step_begin() -> None:
    """Nothing: there are no CUDA graphs."""


def reset() -> None:
    """Nothing: what was compiled belongs to its function, and goes with it."""


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The names that `compile(backend=...)` takes, those for debugging if they are not excluded."""
    from .compile.backends import list_backends as found

    return found(exclude_tags)


_STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile")


class set_stance:
    """What compiled functions do from here on, or within the `with` block or decorated function.

    "force_eager" runs their Python, "eager_on_recompile" does so where something new would have to
    be compiled, "fail_on_recompile" refuses that.
    """

    def __init__(self, stance: str = "default", **options) -> None:
        if stance not in _STANCES:
            raise errors.RefusedValue(f"invalid torch.compile stance '{stance}'; known are "
                                      f"{', '.join(_STANCES)} ({errors.user_line(2)})")
        self.stance, self.before, self.inside = stance, state.switches.stance, False
        _set(stance)

    def __enter__(self) -> None:
        self.inside = True
        _set(self.stance)

    @tied
    def __exit__(self, *exc) -> None:
        _set(self.before)
        self.inside = False

    def lost(self) -> None:
        """What holds when the block begins is what the call has set already."""
        if self.inside:
            _set(self.before)

    def __call__(self, function):
        _set(self.before)

        @functools.wraps(function)
        def run(*args, **kwargs):
            with set_stance(self.stance):
                return function(*args, **kwargs)

        return run


def _set(stance: str) -> None:
    step = (stance != "default") - (state.switches.stance != "default")
    with restored_on_error():  # both or neither
        state.switches.stance = stance
        if step:
            count("ACTIVE", step)


__getattr__ = _getter(__name__)
