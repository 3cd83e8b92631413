"""Run compiled code under the sanitizers of the C compiler.

    python tools/sanitize.py [memory] [threads] [--part NAME]... [--seeds A:B] [--jobs N]
                             [-- arguments for pytest instead of our tests]

`memory` builds the runtime and all generated code with AddressSanitizer and
UndefinedBehaviorSanitizer; `threads` builds them with ThreadSanitizer. Each runs in parts: `table`
(every operator), `kernels` (tests of the compiler and its runtime) and `fuzz` (programs of the
fuzzer, those of `--seeds`, in the modes that run native code); `threads` takes of these what uses
the pool of threads. Everything is built without optimisation, which takes a third of the time and
leaves nothing out that could be checked, into a temporary cache. Fails if a test fails, if a
sanitizer has anything to say, or if it does not notice mistakes that are made on purpose. The
fuzzer names the seed of what a sanitizer reports.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def tests(*names: str) -> list[str]:
    """Files of the compiler's tests."""
    return [f"tests/compile/test_{name}.py" for name in names]


CALL = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).wrong(64)"
# behind an array of the runtime's own allocator, which hands out more than it is asked for
BEHIND = """
import ctypes, sys
import pullback as pb
x = pb.compile(lambda x: x * 2)(pb.ones(20000)).numpy()
ctypes.string_at(x.ctypes.data + x.nbytes - 1, 2)
"""

# Beside the sanitizer of memory, that of undefined behaviour sets the other's file instead of its
# own, and writes to standard error, where nobody looks: sets it again, once both are there.
OWN_FILE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
__attribute__((constructor)) static void set(void) {
  const char *options = getenv("UBSAN_OPTIONS"), *key = "log_path=";
  const char *path = options ? strstr(options, key) : 0;
  void *library = dlopen(UBSAN, RTLD_LAZY | RTLD_NOLOAD);
  void (*call)(const char *) = library ? dlsym(library, "__sanitizer_set_report_path") : 0;
  if (call && path) call(path + strlen(key));
}
"""


@dataclass
class Kind:
    """One way to build and what to run then."""

    flags: str
    libraries: tuple[str, ...]  # to be loaded before Python
    options: dict[str, str]
    parts: dict[str, list[str]]  # arguments for pytest, or for the fuzzer
    seeds: str  # which programs of the fuzzer
    mistakes: tuple[str, ...]  # C texts of a function `wrong`, or a program in Python


KINDS = {
    "memory": Kind(
        # casts of numbers that do not fit are not among what `undefined` looks for
        "-fsanitize=address,undefined,float-cast-overflow -fsanitize-recover=all",
        ("libasan.so", "libubsan.so", "libstdc++.so"),
        {
            "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=0:suppress_equal_pcs=0:"
                            "detect_stack_use_after_return=0:log_path={}/asan",
            # the path comes last, see `OWN_FILE`
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=0:log_path={}/ubsan",
        },
        {
            "table": tests("table"),
            "kernels": [
                *tests("ops", "row_programs", "windows", "scans", "indirect", "diagonal",
                       "symbolic_native", "bad_input", "wrong_arguments", "odd_numbers", "memory",
                       "runtime", "vmath", "generated", "stored_and_read", "plan_checks"),
                "tests/capture/test_warm_calls.py", "tests/array/test_random_native.py",
                "tests/array/test_elementary.py",
                "tests/eager/test_native.py",
                "tests/optim/test_compiled.py", "tests/optim/test_trajectories.py"],
            # "numpy" tells which programs are captured whole: only they are compiled
            "fuzz": ["--modes", "numpy,native,native_losses,native_sizes,native_limit,"
                     "native_dynamic,threads"],
        },
        "0:720",  # with these, every mode has its turn
        ("#include <stdlib.h>\nint wrong(int n) { int *a = malloc(n); return a[n]; }",
         "int wrong(int n) { return n << n; }",
         "int wrong(int n) { int a[4] = {0}; return a[n]; }",
         "int wrong(int n) { return n / (n - 64); }",
         "int wrong(int n) { return (int)(n * 1e30); }",
         BEHIND),
    ),
    "threads": Kind(
        "-fsanitize=thread",
        ("libtsan.so", "libstdc++.so"),
        {"TSAN_OPTIONS": "halt_on_error=0:report_signal_unsafe=0:log_path={}/tsan"},
        {
            "kernels": [*tests("runtime", "row_programs", "windows"),
                        "--deselect", "tests/compile/test_runtime.py::test_fork"],
            "fuzz": ["--modes", "threads", "--full"],
        },
        "0:32",
        ("#include <pthread.h>\nstatic int x;\n"
         "static void *add(void *n) { for (int i = 0; i < 1000; i++) x++; return n; }\n"
         "int wrong(int n) { pthread_t t; pthread_create(&t, 0, add, 0); add(0);\n"
         "  return pthread_join(t, 0); }",),
    ),
}  # fmt: skip


def library(compiler: list[str], name: str) -> str:
    """Where the compiler has a library."""
    asked = [*compiler, f"-print-file-name={name}"]
    path = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    if not os.path.isabs(path):
        sys.exit(f"{shlex.join(compiler)} has no {name}: install its sanitizers")
    return os.path.realpath(path)


def shortened(text: str) -> str:
    """A report without the interpreter's part of each stack."""
    return "\n".join(line for line in text.splitlines()
                     if not (frame := re.match(r" +#(\d+) ", line)) or int(frame[1]) < 8)


class Runner:
    """Runs Python with everything compiled in one way."""

    def __init__(self, name: str, folder: str, settings: argparse.Namespace):
        self.name, self.kind, self.folder = name, KINDS[name], Path(folder, name)
        self.settings = settings
        self.kept = self.folder / "cache"
        self.kept.mkdir(mode=0o700, parents=True)
        compiler = shlex.split(os.environ.get("PULLBACK_CC") or os.environ.get("CC") or "gcc")
        loaded = [library(compiler, name) for name in self.kind.libraries]
        if "libubsan.so" in self.kind.libraries:
            loaded.append(self.own_file(compiler, loaded[1]))
        self.environment = {
            **os.environ,
            "PULLBACK_CC": str(self.compiler(compiler)),
            "PULLBACK_CACHE_DIR": str(self.kept),
            "PYTHONMALLOC": "malloc",  # each object with guards of its own
            "OPENBLAS_NUM_THREADS": "1",  # NumPy's own threads wait in ways that nobody sees
            "LD_PRELOAD": " ".join(loaded),
        }
        # addresses where the sanitizer of threads expects them
        fixed = name == "threads" and shutil.which("setarch")
        self.python = [*(("setarch", os.uname().machine, "-R") if fixed else ()), sys.executable]

    def compiler(self, command: list[str]) -> Path:
        """A command that compiles our way, whatever it is told of optimisation; and that is not
        itself watched."""
        script = self.folder / "cc"
        flags = f"-g1 -fno-omit-frame-pointer {self.kind.flags}"
        script.write_text(
            f'#!/bin/sh\nunset LD_PRELOAD\nexec {shlex.join(command)} {flags} "$@" -O0\n')
        script.chmod(0o700)
        return script

    def own_file(self, command: list[str], sanitizer: str) -> str:
        """A library that sends the reports of undefined behaviour to their file."""
        source, made = self.folder / "own_file.c", self.folder / "own_file.so"
        source.write_text(OWN_FILE)
        flags = ["-shared", "-fPIC", f'-DUBSAN="{sanitizer}"', source, "-o", made, "-ldl"]
        subprocess.run([*command, *flags], check=True)
        return str(made)

    def reports(self, what: str, *arguments: str) -> tuple[int, list[Path]]:
        """Exit status of Python, and what the sanitizers wrote."""
        logs = self.folder / what
        logs.mkdir()
        options = {k: v.format(logs) for k, v in self.kind.options.items()}
        done = subprocess.run(
            [*self.python, *arguments], cwd=ROOT, env=self.environment | options)
        return done.returncode, sorted(logs.iterdir())

    def unnoticed(self) -> list[str]:
        """Mistakes that nobody notices."""
        source, made, missed = self.folder / "wrong.c", self.folder / "wrong.so", []
        for number, text in enumerate(self.kind.mistakes):
            called = ["-c", text]
            if "import" not in text:
                source.write_text(text)
                flags = ["-w", "-fPIC", "-shared", "-lpthread"]
                compiler = self.environment["PULLBACK_CC"]
                subprocess.run([compiler, *flags, source, "-o", made], check=True)
                called = ["-c", CALL, str(made)]
            if not self.reports(f"mistake-{number}", *called)[1]:
                missed.append(text)
        return missed

    def arguments(self, part: str, chosen: list[str]) -> list[str]:
        """What Python is to run."""
        jobs = self.settings.jobs
        if part == "fuzz":
            seeds = self.settings.seeds or self.kind.seeds
            return ["tests/fuzz", *chosen, "--seeds", seeds, "--jobs", str(jobs),
                    "--patience", "1200", "--logs", str(self.folder / "workers")]
        many = ["-n", str(jobs), "--dist", "worksteal"] if jobs > 1 else []
        return ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not torch", *many, *chosen]

    def libraries(self) -> int:
        """How many libraries have been built."""
        return sum(path.is_file() and path.open("rb").read(4) == b"\x7fELF"
                   for path in self.kept.glob("*/*"))

    def run(self, chosen: list[str]) -> list[str]:
        """Run the parts; what went wrong, in words."""
        if missed := self.unnoticed():
            return [f"{self.name}: the sanitizer does not notice {text}" for text in missed]
        parts = {"chosen": chosen} if chosen else self.kind.parts
        wrong = []
        for part, what in parts.items():
            if self.settings.part and part not in self.settings.part and not chosen:
                continue
            wanted, begun, before = self.arguments(part, what), time.monotonic(), self.libraries()
            print(f"== {self.name}, {part}: {shlex.join(wanted)}", flush=True)
            failed, reports = self.reports(part, *wanted)
            for report in reports:
                print(f"-- {report.name}\n{shortened(report.read_text(errors='replace'))[:20000]}")
            wrong += [f"{self.name}, {part}: failed"] if failed else []
            wrong += [f"{self.name}, {part}: {len(reports)} reports"] if reports else []
            built = self.libraries() - before
            wrong += [] if built else [f"{self.name}, {part}: nothing was compiled"]
            print(f"== {self.name}, {part}: {built} libraries, "
                  f"{len(reports)} reports, {time.monotonic() - begun:.0f} s", flush=True)
        return wrong


def main() -> None:
    """See the module's text."""
    given = sys.argv[1:]
    cut = given.index("--") if "--" in given else len(given)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="memory, threads")
    parser.add_argument("--part", action="append", choices=list(KINDS["memory"].parts))
    parser.add_argument("--seeds", help="A:B, which programs of the fuzzer")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    settings = parser.parse_args(given[:cut])
    if not set(settings.kinds) <= set(KINDS):
        parser.error(f"there are {' and '.join(KINDS)}")
    with tempfile.TemporaryDirectory() as folder:
        wrong = [words for name in settings.kinds or KINDS
                 for words in Runner(name, folder, settings).run(given[cut + 1 :])]
    if wrong:
        sys.exit("; ".join(wrong))
    print("the sanitizers had nothing to say")


if __name__ == "__main__":
    main()
