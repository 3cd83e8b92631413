"""Run compiled code under the sanitizers of the C compiler.

    python tools/sanitize.py [memory] [threads] [-- arguments for pytest instead of our tests]

`memory` builds the runtime and all generated code with AddressSanitizer and
UndefinedBehaviorSanitizer, and runs the operators of the table and the tests of kernels and the
runtime; `threads` builds them with ThreadSanitizer and runs what uses the pool of threads. The
flags are part of the compiler's command (`PULLBACK_CC`), so nothing that was built with others is
found in the cache, which is a temporary one. Fails if a test fails, if a sanitizer has anything to
say, or if it does not notice a mistake that is made on purpose.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def tests(*names: str) -> list[str]:
    """Files of the compiler's tests."""
    return [f"tests/compile/test_{name}.py" for name in names]


@dataclass
class Kind:
    """One way to build and what to run then."""

    flags: str
    libraries: tuple[str, ...]  # to be loaded before Python
    options: dict[str, str]
    tests: list[str]
    mistake: str  # C text of a function `wrong`


KINDS = {
    "memory": Kind(
        "-g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fsanitize-recover=all",
        ("libasan.so", "libubsan.so", "libstdc++.so"),
        {
            "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=0:log_path={}/asan",
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=0:log_path={}/ubsan",
        },
        tests("table", "ops", "rows", "windows", "scans", "indirect", "diagonal", "bad_input",
              "odd_numbers", "memory", "runtime", "vmath", "generated", "same_kernel"),
        "#include <stdlib.h>\nint wrong(int n) { int *a = malloc(n); return a[n]; }",
    ),
    "threads": Kind(
        "-g1 -fno-omit-frame-pointer -fsanitize=thread",
        ("libtsan.so", "libstdc++.so"),
        {"TSAN_OPTIONS": "halt_on_error=0:report_signal_unsafe=0:log_path={}/tsan"},
        [*tests("runtime", "rows", "windows"),
         "--deselect", "tests/compile/test_runtime.py::test_fork"],
        "#include <pthread.h>\nstatic int x;\n"
        "static void *add(void *n) { for (int i = 0; i < 1000; i++) x++; return n; }\n"
        "int wrong(int n) { pthread_t t; pthread_create(&t, 0, add, 0); add(0);\n"
        "  return pthread_join(t, 0); }",
    ),
}  # fmt: skip

CALL = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).wrong(64)"


def library(compiler: list[str], name: str) -> str:
    """Where the compiler has a library."""
    asked = [*compiler, f"-print-file-name={name}"]
    path = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    if not os.path.isabs(path):
        sys.exit(f"{shlex.join(compiler)} has no {name}: install its sanitizers")
    return os.path.realpath(path)


class Runner:
    """Runs Python with everything compiled in one way."""

    def __init__(self, name: str, folder: str):
        self.name, self.kind, self.folder = name, KINDS[name], Path(folder, name)
        compiler = shlex.split(os.environ.get("PULLBACK_CC") or os.environ.get("CC") or "gcc")
        self.compiler = [*compiler, *self.kind.flags.split()]
        kept = self.folder / "cache"
        kept.mkdir(mode=0o700, parents=True)
        self.environment = {
            **os.environ,
            "PULLBACK_CC": shlex.join(self.compiler),
            "PULLBACK_CACHE_DIR": str(kept),
            "PYTHONMALLOC": "malloc",  # each object with guards of its own
            "LD_PRELOAD": " ".join(library(compiler, name) for name in self.kind.libraries),
        }
        # addresses where the sanitizer of threads expects them
        fixed = name == "threads" and shutil.which("setarch")
        self.python = [*(("setarch", os.uname().machine, "-R") if fixed else ()), sys.executable]

    def reports(self, what: str, *arguments: str) -> tuple[int, list[Path]]:
        """Exit status of Python, and what the sanitizers wrote."""
        logs = self.folder / what
        logs.mkdir()
        options = {k: v.format(logs) for k, v in self.kind.options.items()}
        done = subprocess.run(
            [*self.python, *arguments], cwd=ROOT, env=self.environment | options)
        return done.returncode, sorted(logs.iterdir())

    def notices(self) -> bool:
        """Is a mistake noticed at all?"""
        source, made = self.folder / "wrong.c", self.folder / "wrong.so"
        source.write_text(self.kind.mistake)
        flags = ["-O1", "-fPIC", "-shared", "-lpthread"]
        subprocess.run([*self.compiler, *flags, source, "-o", made], check=True)
        return bool(self.reports("mistake", "-c", CALL, str(made))[1])

    def run(self, chosen: list[str]) -> list[str]:
        """Run tests; what went wrong, in words."""
        if not self.notices():
            return [f"{self.name}: the sanitizer does not work here"]
        wanted = ["-m", "pytest", "-q", "-p", "no:cacheprovider", *(chosen or self.kind.tests)]
        print(f"== {self.name}: {shlex.join(wanted)}", flush=True)
        failed, reports = self.reports("tests", *wanted)
        for report in reports:
            print(f"-- {report.name}\n{report.read_text(errors='replace')[:6000]}")
        wrong = [f"{self.name}: tests failed"] if failed else []
        return wrong + ([f"{self.name}: {len(reports)} reports"] if reports else [])


def main() -> None:
    """See the module's text."""
    given = sys.argv[1:]
    cut = given.index("--") if "--" in given else len(given)
    names = given[:cut] or list(KINDS)
    if not set(names) <= set(KINDS):
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        wrong = [words for name in names for words in Runner(name, folder).run(given[cut + 1 :])]
    if wrong:
        sys.exit("; ".join(wrong))
    print("the sanitizers had nothing to say")


if __name__ == "__main__":
    main()
