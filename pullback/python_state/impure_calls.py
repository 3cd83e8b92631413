"""Calls whose result or effect is another one each time: `print`, clocks, files, the environment.

A program would do them once, when it is captured.  A function whose code names one is watched while
it is captured, and refused right before the first such call.  Only the user's own calls count, not
those that libraries make on their own.
"""

from __future__ import annotations

import sys
import types
from typing import Any

from .. import errors
from .reachable import LIBRARIES, Reach

_BUILTINS = {"print", "input", "open", "breakpoint"}
_MODULES = {"_datetime", "_io", "_random", "_socket", "_warnings", "datetime", "io", "logging",
            "os", "pathlib", "posix", "secrets", "shutil", "socket", "subprocess", "tempfile",
            "time", "uuid"}
_IMPORTS = {"importlib", "_frozen_importlib", "_frozen_importlib_external"}
_HARMLESS = {"fspath", "fsdecode", "fsencode", "getLogger", "isEnabledFor", "getEffectiveLevel",
             "_filters_mutated"}


def _root(thing: Any) -> str:
    return (errors.module_of(thing) or errors.module_of(type(thing))).partition(".")[0]


def _is_impure(thing: Any) -> bool:
    if isinstance(thing, types.ModuleType):
        return thing.__name__ in _MODULES or thing.__name__ in ("sys", "warnings")
    return _root(thing) in _MODULES


class Watch:
    """Looks at the calls of the user's code, if it names one of these."""

    def __init__(self, reach: Reach):
        self.wanted = not _BUILTINS.isdisjoint(reach.called) or any(map(_is_impure, reach.known()))
        self.met = ""

    def __enter__(self) -> Watch:
        if self.wanted:
            self.before = sys.getprofile()
            sys.setprofile(self._see)
        return self

    def __exit__(self, kind: Any, *exc: Any) -> None:
        if self.wanted:
            sys.setprofile(self.before)
        if self.met and kind is None:  # the user's code has caught it
            raise errors.DataDependentError(self.met)

    def _see(self, frame: types.FrameType, event: str, arg: Any) -> None:
        if event == "c_call":
            owner = getattr(arg, "__self__", None)
            if isinstance(owner, types.ModuleType) or owner is None:
                if _root(arg) not in _MODULES and not (
                        owner is not None and owner.__name__ == "builtins"
                        and arg.__name__ in _BUILTINS):
                    return
            elif _root(owner) not in _MODULES:
                return
        elif event == "call" and frame.f_globals.get("__name__", "") in _MODULES:
            arg = frame.f_code
        else:
            return
        caller: types.FrameType | None = frame
        while caller is not None and _module(caller) in sys.stdlib_module_names:
            caller = caller.f_back  # the standard library does what it was asked for
        if caller is None or _module(caller) in LIBRARIES or _imports(frame):
            return
        name = getattr(arg, "__qualname__", None) or arg.co_qualname
        if name.rpartition(".")[2] in _HARMLESS:
            return
        self.met = f"it calls {name} (line {caller.f_lineno} of {caller.f_code.co_filename})"
        sys.setprofile(None)
        raise errors.DataDependentError(self.met)


def _imports(frame: types.FrameType | None) -> bool:
    """Does the user's code import something?  It is there the next time."""
    while frame is not None and _module(frame) != "pullback":
        if _module(frame) in _IMPORTS:
            return True
        frame = frame.f_back
    return False


def _module(frame: types.FrameType) -> str:
    name = (frame.f_globals.get("__name__") or "").partition(".")[0]
    return "" if name == "__main__" else name
