"""The names of PyTorch's capture that programs use: `reset`, `config`, `disable` and marks.

Of `config` these have an effect: with `capture_scalar_outputs`, or with
`capture_dynamic_output_shape_ops`, numbers and sizes that depend on data are symbols of compiled
graphs; `assume_static_by_default` and `automatic_dynamic_shapes` say what `dynamic=None` means, and
`specialize_int` that integers are no symbols.  The others are kept and change nothing.  The marks
return what they are given, see `compiler.py`.
"""

from __future__ import annotations

import contextlib
from typing import NamedTuple

from .. import errors
from ..compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
    set_stance,
    substitute_in_graph,
)
from ..core.handle import Tensor
from ..cut.settings import dynamo as config
from ..interp.operator_dispatch import piece

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "disallow_in_graph",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "mark_unbacked",
    "maybe_mark_dynamic",
    "optimize",
    "reset",
    "set_stance",
    "substitute_in_graph",
]


__path__: list[str] = []  # it has modules below it: `install.py`


def optimize(backend="native", *, nopython: bool = False, dynamic=None, disable: bool = False,
             **options):
    """A decorator that compiles, under its old name."""
    from ..compile.api import compile

    return compile(None, backend=backend, fullgraph=nopython, dynamic=dynamic, disable=disable)


def disallow_in_graph(fn):
    """The function itself."""
    return fn


def forbid_in_graph(fn):
    """The function itself."""
    return fn


def graph_break(msg: str = "") -> None:
    """Nothing: a function is captured whole."""


def mark_dynamic(t, index, *, hint_override: int | None = None, min: int | None = None,
                 max: int | None = None, specialize_on: list | None = None) -> None:
    """Say that `compile` must take a size as a symbol; an error if it cannot.

    `index` is a dim or several; `min` and `max` bound the sizes that will come.
    """
    for dim in _marked(t, index, "_dynamo_dynamic_indices"):
        limits = t.__dict__.setdefault("_dynamo_dynamic_range", set())
        limits -= {known for known in limits if known.dim == dim}
        if min is not None or max is not None:
            limits.add(_DimRange(dim, 2 if min is None or min < 2 else min, max))


class _DimRange(NamedTuple):
    """Between which bounds the sizes of a dim will lie."""

    dim: int
    min: int
    max: int | None


def maybe_mark_dynamic(t, index) -> None:
    """Ask `compile` to take a size as a symbol, if it can."""
    _marked(t, index, "_dynamo_weak_dynamic_indices")


def mark_unbacked(t, index, hint_override: int | None = None, strict: bool = False,
                  specialize_on: list | None = None) -> None:
    """Say that `compile` must take a size as a symbol whose value nothing depends on.

    0 and 1 are sizes like all others then; a function that has to know more of it is refused.
    """
    _marked(t, index, "_dynamo_unbacked_indices")


def mark_static_address(t, guard: bool = False) -> None:
    """The tensor itself: where its memory lies is never part of what is compiled."""
    if not isinstance(t, Tensor):
        raise TypeError(f"mark_static_address expects a tensor but received {type(t)}")
    t.__dict__["_dynamo_static_input_type"] = "guarded" if guard else "unguarded"


def mark_static(t, index=None) -> None:
    """Say that `compile` must not take a size (of all dims, if none is given) as a symbol."""
    if isinstance(t, Tensor):
        _marked(t, range(t.ndim) if index is None else index, "_dynamo_static_indices")


def _marked(t, index, name: str) -> list[int]:
    dims = [index] if isinstance(index, int) else list(index)
    for dim in dims:
        if not 0 <= dim < t.ndim:
            raise errors.DimError(
                f"a tensor with {t.ndim} dims has no dim {dim} to mark ({errors.user_line(3)})")
    t.__dict__.setdefault(name, set()).update(dims)
    if hasattr(type(t), "__tensor_flatten__"):  # of a wrapper: what is inside, too
        for attribute in t.__tensor_flatten__()[0]:
            inner = piece(t, attribute)
            if inner.ndim == t.ndim:
                _marked(inner, dims, name)
    return dims


def is_dynamo_supported() -> bool:
    """Can functions be captured here?"""
    return True


def is_inductor_supported() -> bool:
    """Is there a C compiler, so that graphs become native code?"""
    from ..compile.errors import CompilerNotFound
    from ..compile.toolchain import find

    try:
        find()
    except CompilerNotFound:
        return False
    return True


def check_if_dynamo_supported() -> None:
    """Nothing: functions can be captured on all systems and versions."""


check_if_inductor_supported = check_if_dynamo_supported


def is_compile_supported(device_type: str) -> bool:
    """Are functions compiled for this kind of device?"""
    return device_type == "cpu"


class TransformGetItemToIndex(contextlib.nullcontext):
    """Nothing: indexing by a 0-d tensor is an operator of its own here."""


def __getattr__(name: str):
    if name == "OptimizedModule":
        from ..nn.compiled import OptimizedModule

        return OptimizedModule
    if name in ("register_backend", "lookup_backend"):
        from ..compile import backends

        return getattr(backends, name)
    from ..facade import elsewhere

    return elsewhere(__name__, name)
