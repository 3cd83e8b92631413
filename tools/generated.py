"""What the generators share: write a file, or with `--check` say whether it is in step.

Read `gen_stubs.py` and `gen_docs.py`, which use it.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main(description: str, files: dict[str, str], target: str) -> int:
    """Write or compare `files` (path in the repository -> text); returns the exit status."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if out of step")
    check = parser.parse_args().check
    stale = []
    for name, text in files.items():
        path = ROOT / name
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        if old == text:
            continue
        stale.append(name)
        if check:
            changes = difflib.unified_diff(old.split("\n"), text.split("\n"), name, "new", n=1)
            for line in list(changes)[:20]:
                print(line.rstrip())
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    if check and stale:
        print(f"out of step: {', '.join(stale)}\n  Fix: make {target}", file=sys.stderr)
        return 1
    return 0
