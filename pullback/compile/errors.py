"""Exceptions of the compiler, each with its cure. Read `toolchain.py` next."""

from __future__ import annotations

from .. import errors
from ..errors import CompileError, UserError

__all__ = [
    "CacheBypassed",
    "CacheUnusable",
    "CodeNotSound",
    "CompileError",
    "CompileWarning",
    "CompilerFailed",
    "CompilerNotFound",
    "CutDiffers",
    "GraphNotSupported",
    "GraphTooLarge",
    "UserError",
]


class CompileWarning(UserWarning):
    """Compiled functions work, but not as they could: no compiler, or a cache that is not kept."""


def warn(text: str) -> None:
    """Warn at the user's line."""
    errors.warn(text, CompileWarning)


class CompilerNotFound(CompileError):
    """No working C compiler was found.

    Compiled graphs fall back to NumPy, which is correct but slower. Install `gcc` or `clang`, point
    `PULLBACK_CC` at one, or `pip install ziglang`, which brings a C compiler as a wheel.
    """

    def __init__(self, tried: list[tuple[str, str]]):
        lines = [f"  {command}: {why}" for command, why in tried] or ["  (nothing on PATH)"]
        super().__init__(
            errors.text(
                "no working C compiler was found",
                ["tried:", *lines],
                "install gcc or clang, set PULLBACK_CC to a compiler, or `pip install ziglang`.",
            )
        )
        self.tried = tried


class CompilerFailed(CompileError):
    """The C compiler refused a generated file, or made something that cannot be loaded.

    Cause: a broken compiler, or a bug in the generator. Cure: try another compiler with
    `PULLBACK_CC`; the message names the generated file and the command.
    """

    def __init__(self, command: list[str], output: str, source: str):
        lines = [line for line in output.splitlines() if "error" in line] or output.splitlines()
        super().__init__(
            errors.text(
                f"the C compiler failed on {source}",
                [
                    f"command: {' '.join(command)}",
                    "first errors:",
                    *(f"  {line}" for line in lines[:6] or ["(it said nothing)"]),
                ],
                "try another compiler with PULLBACK_CC=clang (or gcc); if this one compiles a "
                "plain C file, please report the source file named above.",
            )
        )
        self.command, self.output, self.source = command, output, source


class CacheBypassed(CompileError):
    """A program cannot be kept on disk, though `aot.config.strict_autograd_cache` asks for it.

    Cause: the message names it: an object or a function that a new process could not recognise, a
    compiler that gives no bytes, settings that are functions. Cure: remove the cause, or set
    `strict_autograd_cache` to False: then such programs are compiled anew by every process.
    """


class CutDiffers(CompileError):
    """A forward graph from the disk and the backward that was made now do not belong together.

    Cause: a joint graph that was cut in two ways for the same key, which is a bug. The entry has
    been deleted: the next process cuts again.
    """

    def __init__(self) -> None:
        super().__init__(errors.text(
            "the forward of a compiled function came from the disk, and its graph was now cut in "
            f"another way ({errors.user_line()})",
            cure="run the program again (the entry has been deleted), and report this as a bug"))


class CacheUnusable(CompileError):
    """A compiled graph could not be stored.

    Cause: the disk is full, or the cache folder lost its permissions while the program ran, and the
    temporary folder cannot be written either: a warning says so and graphs run on NumPy. Cure: make
    room, or set `PULLBACK_CACHE_DIR` to a writable folder; nothing half-written stays behind.
    """

    def __init__(self, folder: object, error: OSError):
        self.reason = error
        super().__init__(
            errors.text(
                f"a compiled graph could not be stored in {folder}",
                f"reason: {error.strerror or error}",
                "make room there, or set PULLBACK_CACHE_DIR to a writable folder.",
            )
        )


class CodeNotSound(CompileError):
    """Code that was written for a graph would have read memory that holds something else.

    Cause: a bug of the compiler, which checks its own plans before any code is built. A warning
    says so and the graph runs on NumPy: correct, but slower. Cure: please report the function and
    the warning.
    """

    def __init__(self, name: str, why: str):
        super().__init__(
            errors.text(
                f"the code written for {name} is not sound",
                f"{why} (a bug of the compiler, found before the code was run)",
                "please report the function and this message.",
            )
        )


class BackendCompilerFailed(CompileError):
    """A backend that the user gave to `compile` raised an exception.

    That exception is `inner_exception`, and the cause of this one.
    """

    def __init__(self, backend: object, error: Exception):
        self.backend_name = getattr(backend, "__name__", type(backend).__name__)
        self.inner_exception = error
        super().__init__(errors.text(
            f"backend={self.backend_name!r} raised:\n{type(error).__name__}: {error}",
            cure="correct the backend; what it was given is in the traceback above"))


# PyTorch's names of what its capture raises (`torch._dynamo.exc`)
TorchDynamoException = TorchRuntimeError = errors.PullbackError
Unsupported = errors.DataDependentError
RecompileError = CompileError


class GraphNotSupported(CompileError):
    """A graph holds something that neither the emitter nor a NumPy kernel can run.

    Cause: for instance an input that is no array. `compile` runs such a graph operator by operator.
    """


class GraphTooLarge(GraphNotSupported):
    """A graph would take a C compiler many minutes.

    Cause: a loop of Python was unrolled thousands of times. A warning says so, and the graph runs
    operator by operator. Cure: write the loop as `scan`, whose body is compiled once, or compile
    the body alone.
    """

    def __init__(self, name: str, found: str, limit: str):
        super().__init__(errors.text(
            f"{name}: a graph of {found} is too large for native code",
            f"limit: {limit}",
            "write a loop that was unrolled as control.scan, which compiles its body once, or "
            "compile the body alone"))

