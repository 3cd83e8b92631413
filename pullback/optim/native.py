"""The programs of update rules as native code, where there is a C compiler.

A program's C text (`formula.py`) is built once per machine and kept in the disk cache.  The runtime
of compiled graphs calls it for all parameters at once, on its threads.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from .formula import Program


def compiled(program: Program) -> Callable | bool:
    """A function that runs the program on rows of arrays and returns the rows that it cannot take.

    False where nothing can be compiled.
    """
    from ..compile import cache, native, toolchain
    from ..compile.errors import CompileError

    source = program.source()
    try:
        name = "optim-" + cache.key(source, toolchain.find().identity)
        # every instruction rounds, as in NumPy
        path = native.build_text(source, name, name, ("-O3", "-ffp-contract=off"))
        library = ctypes.CDLL(str(path))
        cache.grown()
        update = native.runtime().update
    except (CompileError, OSError):
        return False
    f, d = (ctypes.cast(getattr(library, f"update_{k}"), ctypes.c_void_p).value for k in "fd")

    def run(rows: list[list], numbers: tuple) -> list[list]:
        left = update(f, d, rows, numbers)
        return [rows[i] for i in left]

    run.library = library  # its code must stay loaded
    return run
