"""`compile`: the captured graphs of a function, made native.

Capturing and running are `capture/`'s, cutting is `cut/`'s; this file only chooses the backend.
Read `backend.py` next.
"""

from __future__ import annotations

import functools
import os
import warnings

from .. import errors
from ..capture.compiled import (
    Backend,
    Compiled,
    boxed_by,
    examples,
    interpreted,
    is_loss,
    with_unit_seed,
)
from ..core.state import state
from ..cut import refusals
from ..decomp import Everything
from ..graph.graph_module import GraphModule
from .backends import AotAutograd, lookup_backend


def native(module: GraphModule, name: str):
    """The default backend: C, or NumPy where there is no compiler."""
    from .backend import compile_graph

    return compile_graph(module, name)


def _min_cut(module: GraphModule, count: int):
    from ..cut.partition import min_cut_rematerialization_partition

    return min_cut_rematerialization_partition(module, count)


def _limited(module: GraphModule, count: int, memory=None, planned: bool = True, fuse: bool = True):
    """The cut within a limit, for the sizes at hand."""
    from ..cut import eager_peak as eager
    from ..cut.partition import min_cut_rematerialization_partition
    from ..cut.simulate import Meter
    from .memory import Planned

    one = fuse and is_loss(module, count)
    return min_cut_rematerialization_partition(
        module, count, memory=memory, meter=Planned() if planned else Meter(),
        eager=eager.peak(diary) if (diary := getattr(module, "diary", None)) else None,
        fused=with_unit_seed(module) if one else None)


# PyTorch's ways to tune its own backends: accepted, there is nothing here to tune
_MODES = ["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"]
_THEIRS = {"epilogue_fusion", "max_autotune", "fallback_random", "shape_padding",
           "graph_partition", "guard_filter_fn", "trace.enabled", "trace.graph_diagram",
           "triton.cudagraphs"}


def compile(
    model=None,
    *,
    fullgraph: bool = False,
    dynamic=None,
    backend="native",
    mode=None,
    options=None,
    disable: bool = False,
    memory: int | float | str | None = None,
    check: bool | None = None,
):
    """Compile a function: one native call per pass, differentiable to any order.

    `backend` is "native" (C), "numpy" (the captured graph on NumPy) or a function from a
    GraphModule and example inputs to a callable.  What the function reads from tensors (`if`,
    `item()`, `x[mask]`) is part of what a program fits and is checked before every call; with
    `fullgraph` such a function is refused.  `options={"fuse_backward": False}` always keeps
    forward and backward apart.  `mode` is accepted.  With `dynamic=True` sizes of tensors are
    symbols: one capture serves all sizes that satisfy its guards.  With `dynamic=None` a size
    becomes a symbol when a second value of it is seen; with `dynamic=False` never.

    `memory` ("500MB", bytes) limits what forward and backward need at once beyond the arguments;
    what does not fit is computed again in the backward, and never more than eager execution would
    need, if that is possible.  A float from 0 to 1 asks for something between the least possible
    and what it takes without a limit.  With symbolic sizes the way is chosen for those at hand, and
    again for sizes for which it would take too much.

    With `check` the first two calls of every program are compared with the function as it is
    written: results, gradients, what is written and assigned.  A difference is a `CheckFailed`
    that names the first node that differs.  The environment variable `PULLBACK_CHECK=1` says so
    for all compiled functions of a process that do not say otherwise.
    """
    again = functools.partial(
        compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode,
        options=options, disable=disable, memory=memory, check=check,
    )
    if model is None:
        return again
    if mode is not None and mode not in _MODES:
        raise errors.CompileError(errors.text(
            f"Unrecognized mode={mode}, should be one of: {_MODES} ({errors.user_line()})",
            cure="leave it out: they all do the same here"))
    if mode is not None and options:
        raise errors.CompileError(errors.text(
            "Either mode or options can be specified, but both can't be specified at the same "
            f"time. ({errors.user_line()})", cure="leave mode out"))
    if disable:
        return model
    if state.mode and getattr(state.stack[state.mode], "exports", False):
        warnings.warn("torch.compile is ignored when called inside torch.export region",
                      stacklevel=2)
        return model
    if not callable(model):
        raise errors.ArgumentError(errors.text(
            f"compile() wants a function, got {type(model).__name__} ({errors.user_line()})",
            cure="pass a function or a module, not what it returns"))
    refusals.later("compile", model)
    if options is not None and not isinstance(options, dict):
        raise errors.ArgumentError(errors.text(
            f"compile(): options must be a dict, got {type(options).__name__} "
            f"({errors.user_line()})", cure='write options={"fuse_backward": False}'))
    if dynamic is not None:
        refusals.switch("compile", dynamic=dynamic)
    if check is not None:
        refusals.switch("compile", check=check)
    refusals.switch("compile", fullgraph=fullgraph)
    options = dict(options or {})
    fuse = options.pop("fuse_backward", True)
    unknown = sorted(set(options) - _THEIRS)
    if unknown:
        raise errors.ArgumentError(errors.text(
            f"compile(): unknown options {unknown} ({errors.user_line()})",
            cure="known is 'fuse_backward', and accepted without effect are "
            f"{', '.join(sorted(_THEIRS))}"))
    backend, cut = lookup_backend(backend or "native"), _min_cut
    if memory is not None:
        from ..cut.budget import parse_memory, within
        from ..cut.simulate import Meter
        from .memory import Planned

        limit = parse_memory(memory)
        cut = functools.partial(_limited, memory=limit, planned=backend == "native", fuse=fuse)
        keeps = functools.partial(within, limit, Planned if backend == "native" else Meter)
    undecided = None if fullgraph else _undecided
    if isinstance(backend, AotAutograd):
        made = backend.compiled(model, undecided, dynamic)
    else:
        forward, backward = _backend(backend)
        # native code knows whose parts refuse indices by another exception
        whole = ("values", "indices") if backend == "numpy" else ("values",)
        parts = Backend(
            forward, backward, cut, Everything(whole, True), fuse, undecided, memory is not None,
            within=None if memory is None else keeps,
            written=_as_written
        )
        if backend == "native":
            from .warm import recall

            parts.loose = interpreted
            parts.recall = functools.partial(recall, fuse=fuse, flags=f"memory {memory}")
        made = Compiled(model, parts, dynamic)
    made.again = again
    made.checks = os.environ.get("PULLBACK_CHECK", "0") not in ("", "0") if check is None else check
    if hasattr(model, "_parameters"):  # a module
        from ..nn.compiled import OptimizedModule

        return OptimizedModule(model, made)
    return made


def _undecided(function, why: str) -> None:
    """A function goes on without being compiled."""
    _as_written(function, f"{why}.  `fullgraph=True` makes this an error")


def _as_written(function, why: str) -> None:
    from .errors import warn

    name = getattr(function, "__name__", type(function).__name__)
    warn(f"compile(): {name} runs operator by operator for arguments like these: {why}.")


def _backend(backend):
    if backend == "native":
        return native, native
    if backend == "numpy":
        return interpreted, interpreted
    if not callable(backend):
        raise errors.CompileError(errors.text(
            f"compile(): a backend is a name or a function, not {backend!r} "
            f"({errors.user_line()})", cure="backend='native', or a function of a graph module and "
            "example inputs that returns a callable"))

    def made_of(module, name):
        try:
            made = backend(module, examples(module))
        except Exception as error:
            from .errors import BackendCompilerFailed

            raise BackendCompilerFailed(backend, error) from error
        return refusals.compiled(made, backend, name)

    def run(module, name):
        return boxed_by(lambda graph: made_of(graph, name), module)

    return run, run
