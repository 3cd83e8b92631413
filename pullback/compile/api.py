"""`compile`: the captured graphs of a function, made native.

The way of a function is `pipeline.py`, which is to be read next; this file only chooses its steps.
"""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable

from .. import errors
from ..capture import build
from ..capture.build import boxed_by, examples, interpreted, is_loss, with_unit_seed
from ..capture.compiled import Compiled
from ..cut import refusals
from ..cut.settings import code_generator
from ..decomp import Everything
from ..graph.graph_module import GraphModule
from ..threads.state import state
from .backends import AotAutograd, lookup_backend
from .pipeline import Pipeline


def _min_cut(module: GraphModule, count: int):
    from ..cut.partition import min_cut_rematerialization_partition

    return min_cut_rematerialization_partition(module, count)


def _limited(module: GraphModule, count: int, memory=None, planned: bool = True, fuse: bool = True):
    """The cut within a limit, for the sizes at hand."""
    from ..cut import eager_peak as eager
    from ..cut.partition import min_cut_rematerialization_partition
    from ..cut.simulate import Meter
    from .meter import Planned

    one = fuse and is_loss(module, count)
    return min_cut_rematerialization_partition(
        module, count, memory=memory, meter=Planned() if planned else Meter(),
        eager=eager.peak(diary) if (diary := getattr(module, "diary", None)) else None,
        fused=with_unit_seed(module) if one else None)


def _by_user(fn: Callable, module: GraphModule, count: int):
    """The cut that the user's partitioner makes."""
    found = fn(module, examples(module), compiler="inductor", num_fwd_outputs=count,
               static_lifetime_input_indices=None)
    refusals.halves(found, fn)
    return found


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
    decorator = functools.partial(
        compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode,
        options=options, disable=disable, memory=memory, check=check,
    )
    if model is None:
        return decorator
    _check_mode(mode, options)
    if disable:
        return model
    if state.mode and getattr(state.stack[state.mode], "exports", False):
        warnings.warn("torch.compile is ignored when called inside torch.export region",
                      stacklevel=2)
        return model
    fuse = _check_options(model, options, dynamic, check, fullgraph)
    backend = lookup_backend(backend or "native")
    undecided = None if fullgraph else _undecided
    if isinstance(backend, AotAutograd):
        made = backend.compiled(model, undecided, dynamic)
    else:
        made = Compiled(model, pipeline(backend, fuse, undecided, memory), dynamic)
    made.recompile = decorator
    made.checks = os.environ.get("PULLBACK_CHECK", "0") not in ("", "0") if check is None else check
    if hasattr(model, "_parameters"):  # a module
        from ..nn.compiled import OptimizedModule

        return OptimizedModule(model, made)
    return made


def pipeline(backend="native", fuse: bool = True, undecided: Callable | None = None,
             memory: int | float | str | None = None) -> Pipeline:
    """The steps for a backend: "native", "numpy" or a function of a graph and example inputs."""
    # native code knows whose parts refuse indices by another exception
    whole = ("values", "indices") if backend == "numpy" else ("values",)
    steps = Pipeline(
        decompositions=Everything(whole, True), simplify=build.simplify, partition=_min_cut,
        fuse=fuse, undecided=undecided, written=_as_written)
    if backend == "native":
        steps.loose = interpreted
    else:  # graphs are not taken apart any further
        steps.schedule = steps.emit = lambda graph, name: graph
        compiler = interpreted if backend == "numpy" else _compiler(backend)
        steps.load = lambda graph, name, code, known: compiler(code(graph), name)
    if memory is not None:
        from ..cut.budget import parse_memory, within
        from ..cut.simulate import Meter
        from .meter import Planned

        limit, native = parse_memory(memory), backend == "native"
        steps.partition = functools.partial(_limited, memory=limit, planned=native, fuse=fuse)
        steps.limited, steps.within = True, functools.partial(
            within, limit, Planned if native else Meter)
    own = code_generator.custom_partitioner_fn
    if own is not None:
        if memory is not None:
            raise errors.CompileError(errors.text(
                f"compile(): memory= is a limit for our own cut ({errors.user_line(2)})",
                f"_inductor.config.custom_partitioner_fn is {own!r}", "set one of them"))
        steps.partition, steps.fuse = functools.partial(_by_user, own), False
    if backend == "native":
        from .warm import recall

        steps.remember(functools.partial(
            recall, fuse=steps.fuse, flags=f"memory {memory}", partitioner=own))
    return steps


def _check_mode(mode, options) -> None:
    """Refuse modes that nobody knows."""
    if mode is not None and mode not in _MODES:
        raise errors.CompileError(errors.text(
            f"Unrecognized mode={mode}, should be one of: {_MODES} ({errors.user_line(1)})",
            cure="leave it out: they all do the same here"))
    if mode is not None and options:
        raise errors.CompileError(errors.text(
            "Either mode or options can be specified, but both can't be specified at the same "
            f"time. ({errors.user_line(1)})", cure="leave mode out"))


def _check_options(model, options, dynamic, check, fullgraph) -> bool:
    """Refuse options that nobody knows; may losses compute their gradients in the forward call?"""
    if not callable(model):
        raise errors.ArgumentError(errors.text(
            f"compile() wants a function, got {type(model).__name__} ({errors.user_line(1)})",
            cure="pass a function or a module, not what it returns"))
    refusals.later("compile", model)
    if options is not None and not isinstance(options, dict):
        raise errors.ArgumentError(errors.text(
            f"compile(): options must be a dict, got {type(options).__name__} "
            f"({errors.user_line(1)})", cure='write options={"fuse_backward": False}'))
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
            f"compile(): unknown options {unknown} ({errors.user_line(1)})",
            cure="known is 'fuse_backward', and accepted without effect are "
            f"{', '.join(sorted(_THEIRS))}"))
    return fuse


def _undecided(function, why: str) -> None:
    """A function goes on without being compiled."""
    _as_written(function, f"{why}.  `fullgraph=True` makes this an error")


def _as_written(function, why: str) -> None:
    from .errors import warn

    name = getattr(function, "__name__", type(function).__name__)
    warn(f"compile(): {name} runs operator by operator for arguments like these: {why}.")


def _compiler(backend):
    """A user's backend as a compiler of graphs."""
    if not callable(backend):
        raise errors.CompileError(errors.text(
            f"compile(): a backend is a name or a function, not {backend!r} "
            f"({errors.user_line(2)})", cure="backend='native', or a function of a graph module "
            "and example inputs that returns a callable"))

    def made_of(module, name):
        try:
            made = backend(module, examples(module))
        except Exception as error:
            from .errors import BackendCompilerFailed

            raise BackendCompilerFailed(backend, error) from error
        return refusals.compiled(made, backend, name)

    return lambda module, name: boxed_by(lambda graph: made_of(graph, name), module)
