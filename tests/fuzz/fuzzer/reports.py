"""What the C compiler's sanitizers have written about this process since it was last asked.

`tools/sanitize.py` runs the fuzzer with all native code built under them. They go on after a
mistake and write to the file that `log_path` in their options names; whatever is new there is a
failure of what has just run.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

_OPTIONS = "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"
_seen: dict[Path, int] = {}


class Reported(Exception):
    """A sanitizer has something to say."""


def check() -> None:
    """Raise `Reported` if there is anything new; costs nothing where no sanitizer is set up."""
    new = ""
    for option in _OPTIONS:
        for start in re.findall(r"log_path=([^:]+)", os.environ.get(option, "")):
            path = Path(f"{start}.{os.getpid()}")
            if path.exists():
                text = path.read_bytes()
                new += text[_seen.get(path, 0):].decode(errors="replace")
                _seen[path] = len(text)
    if new:
        raise Reported(summary(new))


def summary(text: str) -> str:
    """What was wrong first, and where in our code."""
    lines = [line.strip() for line in text.splitlines()]
    what = next((line for line in lines
                 if re.search(r"ERROR: |WARNING: |runtime error: ", line)), lines[0])
    what = re.sub(r"==\d+==|\S*/| on address .*| \(pid=\d+\)", "", what)
    frames = [line for line in lines if re.search(r"^#\d+ .*\.[ch]:\d+$", line)]
    ours = [re.sub(r"^#\d+ 0x\w+ |^#\d+ |\S*/", "", line) for line in frames
            if "/runtime/" in line or re.search(r"/[0-9a-f]{40}\.c:", line)]
    return "\n".join([what, *ours[:4]])
