"""Refusals of what the entry points of ahead-of-time compilation are given, before anything runs.

Each says what was given in the user's words, with their line, and what is wanted instead.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from .. import errors

_COMPILER = "give a function of a graph module and example inputs that returns a callable: aot.nop"
_WANTED = {
    "fn": "give the function to compile",
    "fw_compiler": _COMPILER, "bw_compiler": _COMPILER, "inference_compiler": _COMPILER,
    "partition_fn": "give default_partition, min_cut_rematerialization_partition, or a function "
                    "of (joint, inputs, *, num_fwd_outputs) that returns two graph modules",
}


def _shown(value: Any) -> str:
    return f"{type(value).__name__} {value!r}"[:80]


def functions(entry: str, optional: dict[str, Any], **needed: Any) -> None:
    """Refuse what is no function among arguments of an entry point."""
    for name, value in (*needed.items(), *optional.items()):
        if not callable(value) and (name in needed or value is not None):
            raise errors.ArgumentError(errors.text(
                f"{entry}(): {name} must be a function, got {_shown(value)} "
                f"({errors.user_line(2)})", cure=_WANTED.get(name, "give a function")))


def later(entry: str, function: Any) -> None:
    """Refuse functions whose code runs when somebody awaits or iterates what they return."""
    code = getattr(function, "forward", function)
    called = getattr(type(code), "__call__", None)  # noqa: B004  (of an object)
    kind = next((name for name, test in _LATER.items() if test(code) or test(called)), None)
    if kind is not None:
        name = getattr(function, "__name__", type(function).__name__)
        raise errors.ArgumentError(errors.text(
            f"{entry}() cannot compile {name}, {kind}: calling it computes nothing, its code runs "
            f"later, piece by piece ({errors.user_line(2)})",
            cure="compile the function that computes, and call it from there: "
            "step = compile(compute), then `y = step(x)` between await or yield"))


_LATER = {"a coroutine function (async def)": inspect.iscoroutinefunction,
          "an asynchronous generator": inspect.isasyncgenfunction,
          "a generator (it has a yield)": inspect.isgeneratorfunction}


def table(entry: str, decompositions: Any) -> None:
    """Refuse decompositions that are no table."""
    if decompositions is not None and not isinstance(decompositions, Mapping):
        raise errors.ArgumentError(errors.text(
            f"{entry}(): decompositions must be a table of operators, got "
            f"{_shown(decompositions)} ({errors.user_line(2)})",
            cure="give a dict from operator to function, such as core_aten_decompositions()"))


def switch(entry: str, **given: Any) -> None:
    """Refuse options that are neither True nor False."""
    for name, value in given.items():
        if not isinstance(value, bool):
            raise errors.ArgumentError(errors.text(
                f"{entry}(): {name} must be True or False, got {_shown(value)} "
                f"({errors.user_line(2)})", cure=f"write {name}={bool(value)}"))


def module(entry: str, mod: Any) -> None:
    """Refuse what is no module."""
    if not hasattr(mod, "named_parameters"):
        raise errors.ArgumentError(errors.text(
            f"{entry}() wants an nn.Module, got {_shown(mod)} ({errors.user_line(2)})",
            cure="for a function use aot_function, or make it the forward of a module"))


def arguments(entry: str, args: Any) -> None:
    """Refuse what is no list of arguments: a tensor would be taken apart by its first dim."""
    if not isinstance(args, (tuple, list)):
        raise errors.ArgumentError(errors.text(
            f"{entry}(): args must be a tuple of arguments, got {_shown(args)} "
            f"({errors.user_line(2)})", cure="write (x,) for one argument"))


def graph(entry: str, joint: Any) -> None:
    """Refuse what is no graph module."""
    if not hasattr(joint, "graph"):
        raise errors.ArgumentError(errors.text(
            f"{entry}() cuts a joint graph, got {_shown(joint)} ({errors.user_line(2)})",
            cure="give the graph module that aot_function hands to partition_fn"))


def compiled(result: Any, compiler: Callable, part: str) -> Any:
    """What a compiler returned for a part of a program, if it can be called."""
    if callable(result):
        return result
    name = getattr(compiler, "__name__", type(compiler).__name__)
    raise errors.CompileError(errors.text(
        f"the compiler {name} returned {_shown(result)} for the {part} graph, which cannot be "
        f"called ({errors.user_line(2)})",
        cure="let it return a function of the graph's inputs, or the graph module itself"))


def halves(result: Any, partition: Callable) -> Any:
    """What a partitioner returned, if it is two graphs."""
    if isinstance(result, tuple) and len(result) >= 2 and all(
            hasattr(half, "graph") for half in result[:2]):
        return result
    name = getattr(partition, "__name__", type(partition).__name__)
    raise errors.CompileError(errors.text(
        f"the partitioner {name} returned {_shown(result)} ({errors.user_line(2)})",
        cure="let it return the graph modules of forward and backward, as default_partition does"))


def results(out: Any, count: int, part: str) -> Any:
    """What a compiled graph returned, if there are enough of them."""
    if isinstance(out, (tuple, list)) and len(out) >= count:
        return out
    got = f"{len(out)} of them" if isinstance(out, (tuple, list)) else _shown(out)
    raise errors.CompileError(errors.text(
        f"a compiled {part} graph returned {got}, its graph has {count} results "
        f"({errors.user_line(2)})",
        cure="let the compiled function return all results of the graph, as one tuple"))
