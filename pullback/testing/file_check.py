"""`FileCheck`: what a text must contain, in which order.

Each check looks behind the place that the one before has found; those that must not be found are
looked for between their neighbours.  `run` does all of them, or raises with the check that failed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from .. import errors


class _Check(NamedTuple):
    kind: str
    text: str
    count: int = 1


class _Failed(Exception):
    pass


def _adds(kind: str, says: str) -> Callable[[FileCheck, str], FileCheck]:
    """The method that adds a check of a kind."""

    def check(self: FileCheck, text: str) -> FileCheck:
        return self._add(kind, text)

    check.__name__ = "check" if kind == "check" else f"check_{kind}"
    check.__qualname__, check.__doc__ = f"FileCheck.{check.__name__}", says
    return check


class FileCheck:
    """Checks of a text: `FileCheck().check("a").check_next("b").run(text)`."""

    def __init__(self) -> None:
        self._checks: list[_Check] = []

    def _add(self, kind: str, text: str, count: int = 1) -> FileCheck:
        self._checks.append(_Check(kind, text, count))
        return self

    check = _adds("check", "It comes somewhere behind.")
    check_regex = _adds("regex", "A match of a regular expression comes somewhere behind.")
    check_next = _adds("next", "It is in the next line.")
    check_same = _adds("same", "It comes behind in the same line.")
    check_not = _adds("not", "It does not come before what the next check finds.")
    check_dag = _adds("dag", "It comes behind; neighbours of this kind may come in any order.")
    check_source_highlighted = _adds(
        "source_highlighted",
        "It comes behind, and all of it is underlined by tildes in the line below.")

    def check_count(self, text: str, count: int, exactly: bool = False) -> FileCheck:
        """It comes that often behind; not once more if `exactly`."""
        self._add("count", text, count)
        return self._add("not", text) if exactly else self

    def run(self, test_file: str) -> None:
        """Do all checks on a text."""
        at, begin, forbidden = 0, 0, []
        checks = list(self._checks)
        while checks:
            one = checks.pop(0)
            if one.kind == "not":
                forbidden.append(one)
                continue
            found = [one]
            while one.kind == "dag" and checks and checks[0].kind == "dag":
                found.append(checks.pop(0))
            try:
                spans = [_FINDERS[c.kind](test_file, at, c) for c in found]
                _absent(test_file, begin, min(s[0] for s in spans), forbidden)
            except _Failed as failed:
                raise _refusal(str(failed), test_file, at) from None
            at = begin = max(s[1] for s in spans)
            forbidden = []
        try:
            _absent(test_file, begin, len(test_file), forbidden)
        except _Failed as failed:
            raise _refusal(str(failed), test_file, at) from None


def _refusal(what: str, text: str, at: int) -> Exception:
    lines = text[at:].splitlines()[:12]
    return errors.RefusedValue(errors.text(
        f"{what} ({errors.user_line(3)})", "searched from here:\n" + "\n".join(lines)))


def _absent(text: str, low: int, high: int, forbidden: list[_Check]) -> None:
    for one in forbidden:
        if one.text in text[low:high]:
            raise _Failed(f"Expected to not find {one.text!r} but found it")


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _find(text: str, low: int, high: int, what: str, where: str = "") -> tuple[int, int]:
    found = text.find(what, low, high)
    if found < 0:
        raise _Failed(f"Expected to find {what!r}{where} but did not find it")
    return found, found + len(what)


def _behind(text: str, at: int, one: _Check) -> tuple[int, int]:
    return _find(text, at, len(text), one.text)


def _same(text: str, at: int, one: _Check) -> tuple[int, int]:
    return _find(text, at, _end_of_line(text, at), one.text, " in the same line")


def _next(text: str, at: int, one: _Check) -> tuple[int, int]:
    start = _end_of_line(text, at) + 1
    return _find(text, start, _end_of_line(text, start), one.text, " in the next line")


def _often(text: str, at: int, one: _Check) -> tuple[int, int]:
    first, end = -1, at
    for done in range(one.count):
        place, end = _find(text, end, len(text), one.text, f" {one.count} times ({done} found)")
        first = place if first < 0 else first
    return first, end


def _regex(text: str, at: int, one: _Check) -> tuple[int, int]:
    found = re.compile(one.text).search(text, at)
    if found is None:
        raise _Failed(f"Expected to find a match of {one.text!r} but did not find it")
    return found.span()


def _highlighted(text: str, at: int, one: _Check) -> tuple[int, int]:
    low, high = _behind(text, at, one)
    column = low - (text.rfind("\n", 0, low) + 1)
    start = _end_of_line(text, high) + 1
    below = text[start:_end_of_line(text, start)]
    if below[column:column + len(one.text)] != "~" * len(one.text):
        raise _Failed(f"Expected {one.text!r} to be highlighted but it is not")
    return low, start + len(below)


_FINDERS: dict[str, Callable[[str, int, _Check], tuple[int, int]]] = {
    "check": _behind, "dag": _behind, "same": _same, "next": _next, "count": _often,
    "regex": _regex, "source_highlighted": _highlighted}
