"""Backends of `compile` by name, and backends made of compilers for `aot_function`.

`register_backend` gives a function of (graph module, example inputs) a name.  `aot_autograd` makes
a backend of compilers for forward and backward graphs, under PyTorch's calling convention.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import errors
from ..capture.compilers import make_boxed_func, nop
from ..capture.entry import AotFunction, aot_function
from ..capture.modules import aot_module_simplified

OWN = ("native", "numpy")  # what `compile` knows by itself, and under PyTorch's names
# PyTorch's backends for debugging run the same graphs operator by operator
_DEBUG = ("eager", "aot_eager", "eager_noexcept", "pre_dispatch_eager",
          "aot_eager_default_partitioner", "aot_eager_decomp_partition",
          "aot_eager_decomp_partition_with_mode")
_THEIRS = {"inductor": "native"} | dict.fromkeys(_DEBUG, "numpy")
_registered: dict[str, Callable] = {}


class Own(str):
    """The name of a backend that `compile` knows by itself; it can be called as those of users."""

    def __call__(self, module: Callable, example_inputs: Any, **options: Any) -> Callable:
        from .api import compile

        return compile(module, backend=str(self))


class AotAutograd:
    """A backend that differentiates first: `compile(f, backend=aot_autograd(fw_compiler=...))`."""

    def __init__(self, **options: Any):
        self._options = options

    @property
    def options(self) -> dict[str, Any]:
        """What it was made with; a function of no arguments makes the table when it is needed."""
        table = self._options.get("decompositions")
        if callable(table):
            self._options["decompositions"] = table()
        return self._options

    def __call__(self, module: Any, example_inputs: Any, **kwargs: Any) -> Callable:
        """A graph module compiled at once."""
        return aot_module_simplified(module, example_inputs, **{**self.options, **kwargs})

    def compiled(self, function: Callable, undecided: Callable | None, dynamic: Any) -> AotFunction:
        """A function compiled by call, as `compile` does."""
        made = aot_function(function, **self.options, dynamic=bool(dynamic))
        made.backend.undecided = undecided
        return made


def aot_autograd(**options: Any) -> AotAutograd:
    """A backend of `compile` from compilers: arguments are those of `aot_module_simplified`."""
    options.setdefault("fw_compiler", nop)
    return AotAutograd(**options)


def compile_fx(
    model_: Any, example_inputs_: Any, inner_compile: Callable | None = None,
    config_patches: dict | None = None, decompositions: dict | None = None,
) -> Callable:
    """What PyTorch's default backend does; `inner_compile` gets the forward and backward graphs."""
    if inner_compile is None and decompositions is None:
        return Own("native")(model_, example_inputs_)
    made = aot_autograd(fw_compiler=inner_compile or compile_fx_inner,
                        decompositions=decompositions)
    return made(model_, example_inputs_)


def compile_fx_inner(gm: Any, example_inputs: Any, **options: Any) -> Callable:
    """A forward or backward graph as a function of one list, which it empties."""
    return make_boxed_func(Own("native")(gm, example_inputs))


def register_backend(
    compiler_fn: Callable | None = None, name: str | None = None, tags: Any = ()
) -> Callable:
    """Give a backend a name for `compile(backend=name)`; a decorator, too."""
    if compiler_fn is None:
        return functools.partial(register_backend, name=name, tags=tags)
    _registered[name or compiler_fn.__name__] = compiler_fn
    return compiler_fn


def lookup_backend(compiler_fn: Any) -> Any:
    """The backend of a name, a function of a graph module and example inputs."""
    if not isinstance(compiler_fn, str):
        return compiler_fn
    if compiler_fn in _registered:
        return _registered[compiler_fn]
    found = _THEIRS.get(compiler_fn, compiler_fn)
    if found not in OWN:
        raise errors.CompileError(errors.text(
            f"compile(): unknown backend {compiler_fn!r} ({errors.user_line(2)})",
            cure=f"use {', '.join(map(repr, list_backends(())))}, register_backend, or a function"))
    return Own(found)


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The names that `compile(backend=...)` takes, those for debugging if they are not excluded."""
    hidden = _DEBUG if "debug" in (exclude_tags or ()) else ()
    return sorted({*OWN, *_THEIRS, *_registered}.difference(hidden))
