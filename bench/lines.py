"""Tables whose lines fail a benchmark when they are above what they are measured against."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable


def show(header: str, lines: Iterable[tuple[str, str, bool]], than: str) -> None:
    """Print lines, given as name, text and whether it is above; fail if any is."""
    above = []
    print(header)
    for name, text, is_above in lines:
        above += [name] * is_above
        print(text, flush=True)
    if above:
        raise SystemExit(f"{than}: " + ", ".join(above))


def main(doc: str, known: Iterable[str], header: str, line: Callable[[str], tuple[str, bool]],
         than: str) -> None:
    """The table of the names in the command line, or of all; `line` has a name's text."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("names", nargs="*")
    names = parser.parse_args().names or list(known)
    show(header, ((name, *line(name)) for name in names), than)
