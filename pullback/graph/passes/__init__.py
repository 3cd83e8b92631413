"""Rewrites of a graph. Each takes a `Graph`, changes it, and returns the number of changes.

Read `dce.py` first; it is the shortest.
"""

from typing import Any

from .cse import eliminate_common_subexpressions
from .dce import eliminate_dead_code
from .fold import fold_constants
from .noop import remove_noops

__all__ = [
    "eliminate_common_subexpressions",
    "eliminate_dead_code",
    "fold_constants",
    "remove_noops",
]


def __getattr__(name: str) -> Any:
    from ...facade import elsewhere

    return elsewhere(__name__, name)
