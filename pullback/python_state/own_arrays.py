"""Arrays that a captured function has made itself, with NumPy, and that nobody else holds.

A tensor from outside is an input of the graph and keeps what is written to it.  One around an array
that the function made (`from_numpy(np.zeros(3))`) is made anew in every call: the program gets a
copy of what it was.  Who holds an array is what CPython counts anyway.
"""

from __future__ import annotations

import sys

import numpy as np

from ..core.handle import Tensor, make
from ..threads.state import ALONE


class Copied:
    """An input that is a new tensor in every call, with the values that were met."""

    __slots__ = ("array",)
    place = None  # where others could be found

    def __init__(self, array: np.ndarray):
        self.array = array

    def found(self, arguments: list[Tensor]) -> Tensor:
        return make(self.array.copy(order="K"))


def own_tensors(level, leaves: list) -> dict[int, Copied]:
    """The adopted tensors that are the function's own, by identity."""
    arrays = level.recorder.arrays
    known = {id(a): a for a in arrays.values() if type(a) is np.ndarray}
    found = {}
    for adopted in level.adopted:
        data = adopted.data
        if type(data) is not np.ndarray or adopted.edge is not None or adopted.link is not None:
            continue
        handle = adopted.handle  # so far: this name and `adopted`
        holders = ALONE + 1 + (id(handle) in level.gradients)
        # in this list, and in what the function returns
        holders += sum([2 if o is handle else _views(o, handle) for o in leaves])
        if sys.getrefcount(handle) > holders:
            continue
        # one each for `adopted`, this name, and the tables of arrays
        if sys.getrefcount(data) > ALONE + 1 + 2 * (id(data) in known) or not _alone(data.base):
            continue
        found[id(handle)] = Copied(data)
    return found


def _views(o, handle: Tensor) -> bool:
    return isinstance(o, Tensor) and o._link is not None and o._link.base is handle


def _alone(base) -> bool:
    """Is memory held by one view of it only?"""
    while type(base) is np.ndarray:
        if sys.getrefcount(base) > ALONE + 1:  # the view and this name
            return False
        base = base.base
    return base is None
