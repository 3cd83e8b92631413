"""Exceptions of the compiler, each with its cure. Read `toolchain.py` next."""

from __future__ import annotations


class CompileError(RuntimeError):
    """Base of everything that can go wrong between a graph and its native code."""


class CompilerNotFound(CompileError):
    """No working C compiler was found.

    Compiled graphs fall back to NumPy, which is correct but slower. Install `gcc` or `clang`, point
    `PULLBACK_CC` at one, or `pip install ziglang`, which brings a C compiler as a wheel.
    """

    def __init__(self, tried: list[tuple[str, str]]):
        lines = (
            "\n".join(f"    {command}: {why}" for command, why in tried) or "    (nothing on PATH)"
        )
        super().__init__(
            "no working C compiler was found\n"
            f"  tried:\n{lines}\n"
            "  Fix: install gcc or clang, set PULLBACK_CC to a compiler, or `pip install ziglang`."
        )
        self.tried = tried


class CompilerFailed(CompileError):
    """The C compiler refused a generated file: a bug in the generator, or a broken compiler."""

    def __init__(self, command: list[str], output: str, source: str):
        errors = [line for line in output.splitlines() if "error" in line] or output.splitlines()
        shown = "\n".join(f"    {line}" for line in errors[:6])
        super().__init__(
            f"the C compiler failed on {source}\n"
            f"  command: {' '.join(command)}\n"
            f"  first errors:\n{shown}\n"
            "  Fix: try another compiler with PULLBACK_CC=clang (or gcc); if this one compiles a "
            "plain C file, please report the source file named above."
        )
        self.command, self.output, self.source = command, output, source


class GraphNotSupported(CompileError):
    """A graph holds something that neither the emitter nor a NumPy kernel can run."""
