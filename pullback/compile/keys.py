"""What compiled code and captured programs are kept under: texts, and all that they depend on.

A key must change whenever anything does that the kept thing was made from; a stale one is a wrong
number.  So a key has the text of a graph, what entries of operators say that are not this
package's, the source of this package by sizes and times, the versions of Python and NumPy, the
compiler and the processor.  What cannot be said as text (an object that only this process has) is
`NoKey`, with the reason; whoever meets it does without the disk.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..array.dtype import default
from ..graph.traits import trait
from ..table.effects import effect_of
from . import cache, native
from .interpret import attribute

if TYPE_CHECKING:
    from .toolchain import Toolchain

OWN = __package__.partition(".")[0]
_ENTRIES = (f"{OWN}.ops.", f"{OWN}.core.")  # modules of the table and of its kinds
_PLAIN = (str, bytes, int, float, complex, bool, type(None))


class NoKey(Exception):
    """Something that a kept program depends on cannot be said as text; the message says what."""


def graph_text(gm: Any) -> str:
    """The graph as text, with everything that the generated code depends on."""
    lines = [str(getattr(gm, "writes", ""))]
    foreign: dict = {}
    for node in gm.graph.nodes:
        meta = node.meta
        lines.append(
            f"{node.op} {node.name} {node.target} {argument_text(node.args)} "
            f"{argument_text(node.kwargs)} {_example(meta.get('val'))} {meta.get('origin', '')}"
            f"{'' if effect_of(node.target) is None else ' effect'}"
            f"{' given away' * bool(meta.get('donated'))}"
            f"{' tight' * bool(meta.get('tight'))}"
            f"{meta.get('saved', '')}"
        )
        if node.op == "get_attr" and "val" not in meta:
            lines.append(graph_text(attribute(gm, node.target)))
        entry = getattr(node.target, "op", None)
        if isinstance(entry, type) and not entry.__module__.startswith(_ENTRIES):
            foreign[entry] = None
    lines += map(entry_text, foreign)
    return "\n".join(lines)


def entry_text(entry: type) -> str:
    """What an entry from outside of the package says: code is made by it, and it may change."""
    said = [f"{k} = {_said(v)}" for cls in entry.__mro__ if not cls.__module__.startswith(_ENTRIES)
            for k, v in sorted(vars(cls).items()) if not k.startswith("__")]
    return f"entry {entry.__name__}\n" + "\n".join(said)


def _said(value: Any) -> str:
    """An attribute of an entry, as far as it is plain; functions by their code."""
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_said, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_said(k)}: {_said(v)}' for k, v in value.items())}}}"
    value = getattr(value, "__func__", value)
    if isinstance(value, types.FunctionType):
        return code_text(value.__code__)
    return getattr(value, "__qualname__", type(value).__qualname__)


def code_text(code: types.CodeType) -> str:
    """What a Python function does, without the lines at which it stands."""
    inner = [code_text(c) if isinstance(c, types.CodeType) else
             repr(sorted(map(repr, c)) if isinstance(c, frozenset) else c) for c in code.co_consts]
    return cache.key(code.co_code, *inner, code.co_names, code.co_varnames, code.co_freevars,
                     code.co_flags)


def function_text(function: Any) -> str:
    """A function of the user's, such as a compiler, as text: what it says of itself by `uuid()`, or
    its code, what it holds, and the file that it is from."""
    told = uuid_of(function)
    if told is not None:
        return f"{getattr(function, '__module__', '')} {told!r}"
    if isinstance(function, functools.partial):
        held = [*function.args, *function.keywords.values()]
        return f"partial {list(function.keywords)} {_held(function, [function.func, *held])}"
    inner = getattr(function, "compiler_fn", None)
    if inner is not None:
        return f"compiler {function_text(inner)}"
    if not isinstance(function, types.FunctionType):
        raise NoKey(f"{function!r} is no plain function and has no uuid()")
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    held = [*cells, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    return (f"{function.__qualname__} {code_text(function.__code__)} {_held(function, held)} "
            f"{_file_text(function)}")


def uuid_of(function: Any) -> Any:
    """What a function of the user's says that it is (`torch/custom_graph_pass.py`); None if it has
    no `uuid`.  One that gives None does not want to be kept."""
    said = getattr(function, "uuid", None)
    if not callable(said) or isinstance(function, type):
        return None
    told = said()
    if told is None:
        raise NoKey(f"uuid() of {_name(function)} is None")
    return told


def _name(function: Any) -> str:
    return getattr(function, "__qualname__", None) or repr(function)


def _held(function: Any, values: list) -> str:
    """What a function holds: plain data, functions and classes."""
    found = []
    for value in values:
        if isinstance(value, (types.FunctionType, functools.partial)):
            found.append(function_text(value))
        elif isinstance(value, type):
            found.append(type_text(value))
        elif isinstance(value, _PLAIN) or isinstance(value, tuple) and all(
                isinstance(v, _PLAIN) for v in value):
            found.append(repr(value))
        else:
            name = getattr(function, "__qualname__", "partial")
            raise NoKey(f"{name} holds a {type(value).__name__} and has no uuid()")
    return str(found)


def type_text(cls: type) -> str:
    """A class by its name and the file that it is from."""
    return f"{cls.__qualname__} {_file_text(cls)}"


def _file_text(thing: Any) -> str:
    """The file that a function or a class is from, by size and time; this package is one."""
    name = thing.__module__
    if name.partition(".")[0] == OWN:
        return name
    path = getattr(sys.modules.get(name), "__file__", None)
    if path is None:
        raise NoKey(f"{thing.__qualname__} comes from no file and has no uuid()")
    facts = os.stat(path)
    return f"{name} {facts.st_size} {facts.st_mtime_ns}"


def lowered_by_others(gm: Any) -> str:
    """The name of an operator in a graph that a function from outside of the package lowers, ""
    if there is none: its code depends on whatever that function calls."""
    for graph in _graphs(gm):
        for node in graph.nodes:
            rule = trait(node.target, "lower")
            if callable(rule) and not rule.__module__.startswith(f"{OWN}."):
                return str(node.target)
    return ""


def _graphs(gm: Any) -> Iterator[Any]:
    """The graph of a module, and those that it holds."""
    yield gm.graph
    for node in gm.graph.nodes:
        if node.op == "get_attr" and "val" not in node.meta:
            inner = attribute(gm, node.target)
            if hasattr(inner, "graph"):
                yield from _graphs(inner)


def argument_text(value: Any) -> str:
    """Arguments of a node as text."""
    if isinstance(value, (list, tuple)):
        return "[" + ",".join([argument_text(v) for v in value]) + "]"
    if isinstance(value, dict):
        return "{" + ",".join([f"{k}:{argument_text(v)}" for k, v in value.items()]) + "}"
    if hasattr(value, "op") and hasattr(value, "meta"):
        return f"%{value.name}"
    if isinstance(value, np.ndarray):  # `repr` leaves out the middle of large ones
        held = value.tolist() if value.dtype.hasobject else value.tobytes()
        return f"array {value.dtype} {value.shape} {cache.key(held)}"
    return repr(value)


def _example(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "(" + ",".join([_example(v) for v in value]) + ")"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        strides = tuple(value.stride()) if hasattr(value, "stride") else ""
        return f"{value.dtype}{tuple(value.shape)}{strides}"
    return repr(value)


def identity(tools: Toolchain) -> tuple[str, ...]:
    """What compiled code depends on beside its graph."""
    return native.runtime_text(), tools.identity, cache.python_abi(), *versions()


def versions() -> tuple[str, ...]:
    """What graphs and their cuts depend on, whatever becomes of them."""
    return default().name, sys.version, np.__version__, package_stamp()


@functools.cache
def package_stamp() -> str:
    """The version and the source of this package, by sizes and times: entries, formulas and passes
    decide on graphs and on the code that is made of them."""
    from .. import __version__

    found: list[str] = []
    todo = [str(Path(__file__).parents[1])]
    start = len(todo[0])
    while todo:
        with os.scandir(todo.pop()) as entries:
            for e in entries:
                if e.name.endswith((".py", ".c", ".h")):
                    facts = e.stat()
                    found.append(f"{e.path[start:]} {facts.st_size} {facts.st_mtime_ns}")
                elif e.name != "__pycache__" and e.is_dir():
                    todo.append(e.path)
    found.sort()
    return hashlib.sha256("\n".join([__version__, *found]).encode()).hexdigest()
