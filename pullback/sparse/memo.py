"""What was found from the integers of a pattern, kept with them until they are written.

Inside of transforms and captures nothing is kept: the integers are values there.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.handle import Tensor
from ..threads.blocks import outside

_known: dict[int, tuple] = {}  # id of an array -> (the array, weakly; what was found from it)


def kept(owner: Tensor, name: str, find: Callable[[], Any], *others: Tensor) -> Any:
    """What `find()` gives, found once for the integers of tensors until they are written."""
    arrays = [t._payload for t in (owner, *others)]
    if any(type(a) is not np.ndarray for a in arrays):
        return find()
    array, number = arrays[0], id(arrays[0])
    held = _known.get(number)
    if held is None or held[0]() is not array:
        tie = weakref.ref(array, functools.partial(_forget, _known, number))
        held = _known[number] = tie, {}
    versions = [t._version for t in (owner, *others)]
    known = held[1].get(name)
    if known is None or known[0] != versions or any(
            a is not b for a, b in zip(known[1], arrays[1:])):
        with outside():  # a capture would leave values of its graph in the memory of a pattern
            known = held[1][name] = versions, arrays[1:], find()
    return known[2]


def _forget(known: dict, number: int, _: Any) -> None:
    known.pop(number, None)


def kept_with(t: Any, name: str, find: Callable[[], Any]) -> Any:
    """The same of a compressed tensor: it is found from both of its integer parts."""
    block = tuple(t.values_part.shape[t.batch_dims + 1:t.batch_dims + 3]) if t.blocked else ()
    name = f"{name} {t.kind} {tuple(t._payload.shape)} {block}"
    return kept(t.plain_part, name, find, t.compressed_part)
