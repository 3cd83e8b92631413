"""The PyTorch release whose behaviour this package follows, under PyTorch's names for it.

`pullback.__version__` is this package's own; while it stands in for `torch` (`torch/install.py`)
programs that ask for a minimum version see this one.
"""

from __future__ import annotations

import re

__all__ = ["TorchVersion", "cuda", "debug", "git_version", "hip", "xpu"]


class TorchVersion(str):
    """A version that compares by its numbers, with strings and with tuples."""

    __slots__ = ()

    def _key(self, other: object) -> tuple | None:
        if isinstance(other, str):
            return _parsed(other)
        if isinstance(other, (tuple, list)):
            return _parsed(".".join(map(str, other)))
        return None

    def _compare(self, other: object, decide):
        key = self._key(other)
        return NotImplemented if key is None else decide(_parsed(self), key)

    def __eq__(self, other):
        return self._compare(other, lambda a, b: a == b)

    def __ne__(self, other):
        return self._compare(other, lambda a, b: a != b)

    def __lt__(self, other):
        return self._compare(other, lambda a, b: a < b)

    def __le__(self, other):
        return self._compare(other, lambda a, b: a <= b)

    def __gt__(self, other):
        return self._compare(other, lambda a, b: a > b)

    def __ge__(self, other):
        return self._compare(other, lambda a, b: a >= b)

    __hash__ = str.__hash__


def _parsed(text: str) -> tuple:
    """Numbers without trailing zeros, then pre-release before release, then what is built on it."""
    public, _, local = text.strip().lstrip("v").partition("+")
    match = re.match(r"\d+(?:\.\d+)*", public)
    numbers = [int(n) for n in match[0].split(".")] if match else []
    while numbers and not numbers[-1]:
        numbers.pop()
    rest = public[match.end() if match else 0 :].lstrip(".-_")
    stage = 0 if not rest else 1 if rest.startswith("post") else -2 if rest[:3] == "dev" else -1
    return tuple(numbers), stage, rest, local


__version__ = TorchVersion("2.13.0")
cuda = hip = xpu = git_version = None
debug = False
