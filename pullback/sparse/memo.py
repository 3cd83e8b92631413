"""What was found from the integers of a pattern, kept with them until they are written.

Integers that a transform or a capture makes are values of it, and nothing is kept with them.  Those
from outside of a capture are known in it, also once it has made them inputs of its graph; so are
constants of the graph.  Then they are for a moment what they were, or what they stand for, and the
program is for these numbers: a guard asks whether somebody has written them since (`Unwritten`).
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..array.device import lookup
from ..core.handle import Cell, Tensor
from ..threads.blocks import outside, tied_block
from ..threads.state import state

_CONSTANT = Cell()  # of a constant of a graph, which nobody can write
_known: dict[int, tuple] = {}  # id of an array -> (the array, weakly; what was found from it)


def kept(owner: Tensor, name: str, find: Callable[[], Any], *others: Tensor) -> Any:
    """What `find()` gives, found once for the integers of tensors until they are written."""
    arrays = [t._payload for t in (owner, *others)]
    if not all(map(_is_raw, arrays)):
        inputs = _inputs((owner, *others))
        if inputs is None:
            return find()
        with _as_outside(inputs):
            return kept(owner, name, find, *others)
    if state.mode:
        _rely_on((owner, *others))
    array, number = arrays[0], id(arrays[0])
    held = _known.get(number)
    if held is None or held[0]() is not array:
        tie = weakref.ref(array, functools.partial(_forget, _known, number))
        held = _known[number] = tie, {}
    versions = [t._version for t in (owner, *others)]
    known = held[1].get(name)
    if known is None or known[0] != versions or any(
            a is not b for a, b in zip(known[1], arrays[1:])):
        with outside(anything=True):  # a graph would leave its values in the memory of a pattern
            known = held[1][name] = versions, arrays[1:], find()
    return known[2]


def _is_raw(data: Any) -> bool:
    """Is a payload an array of a device, and not the value of a transform or a capture?"""
    return type(data) is np.ndarray or lookup(data) is not None and not isinstance(data, np.generic)


def _forget(known: dict, number: int, _: Any) -> None:
    known.pop(number, None)


def kept_with(t: Any, name: str, find: Callable[[], Any]) -> Any:
    """The same of a compressed tensor: it is found from both of its integer parts."""
    block = tuple(t.values_part.shape[t.batch_dims + 1:t.batch_dims + 3]) if t.blocked else ()
    name = f"{name} {t.kind} {tuple(t._payload.shape)} {block}"
    return kept(t.plain_part, name, find, t.compressed_part)


def are_known(*integers: Tensor) -> bool:
    """Are the numbers there to be looked at?  In transforms and captures they may not be."""
    return all(_is_raw(t._payload) for t in integers) or _inputs(integers) is not None


def known(find: Callable[[], Any], *integers: Tensor) -> Any:
    """What `find()` gives, found outside of a capture where integers are known, and not kept: for
    what an argument decides, as the bounds of a slice, of which there may be many."""
    inputs = _inputs(integers)
    if inputs is None:
        return find()
    with _as_outside(inputs):
        if state.mode:
            _rely_on(integers)
        with outside(anything=True):
            return find()


@dataclass(slots=True)
class Unwritten:
    """Integers from outside that a captured graph was made by: has nobody written them since?"""

    tensor: Tensor
    version: int

    def fits(self, joint: Any, arguments: list) -> bool:
        """Are they as they were?"""
        return self.tensor._version == self.version


def _rely_on(integers: Any) -> None:
    """Have the program that is being captured ask whether somebody has written integers."""
    level = next((v for v in state.stack if getattr(v, "adopts", False)), None)
    if level is not None:
        seen = {id(g.tensor) for g in level.reads}
        level.reads += [Unwritten(t, t._version) for t in integers
                        if id(t) not in seen and t._cell is not _CONSTANT]


def array_of(t: Tensor) -> Any:
    """The numbers of integers that are known, an array of their device."""
    (array,) = [given[1] for given in _inputs((t,)) or ()] or (t._payload,)
    return array


def _inputs(tensors: Any) -> list[tuple] | None:
    """(Tensor, what it holds outside of a capture) for those that have been met in one; None if
    the numbers of one are not known."""
    found = []
    for t in tensors:
        if not _is_raw(t._payload):
            given = _met(t) or _constant(t)
            if given is None or not _is_raw(given[1]):
                return None
            found.append(given)
    return found


def _met(t: Tensor) -> tuple | None:
    """A tensor from outside that a capture has made an input of its graph."""
    return next(((t, a.data, a.edge, a.link, a.cell) for level in state.stack
                 for a in getattr(level, "adopted", ())
                 if a.handle is t and a.first is t._payload), None)


def _constant(t: Tensor) -> tuple | None:
    """A value of a captured graph that does not depend on its inputs."""
    level = getattr(t._payload, "interp", None)
    if not getattr(level, "adopts", False):  # other graphs take no tensors from outside
        return None
    value = level.recorder.known(t._payload.node)
    return None if value is None else (t, value._payload, None, None, _CONSTANT)


@tied_block
def _as_outside(inputs: list):
    """Tensors that a capture has met are for a moment what they are outside of it."""
    now = [(t, t._payload, t._edge, t._link, t._cell) for t, *_ in inputs]
    try:
        for given in inputs:
            _hold(*given)
        yield
    finally:
        for given in now:
            _hold(*given)


def _hold(t: Tensor, data: Any, edge: Any, link: Any, cell: Any) -> None:
    t._payload, t._edge, t._link, t._cell = data, edge, link, cell
