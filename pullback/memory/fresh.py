"""Handles that come from no operator: those around arrays from outside, and those of Python values.

Read next: `../core/stack.py`, where levels are told of them.
"""

from __future__ import annotations

import numpy as np

from ..array.fake import Fake, fake_like
from ..core import events
from ..core.handle import INFERENCE, Tensor, make, tensors_in
from ..core.op import ops
from ..core.subclass_door import door
from ..threads.state import fast, state


def note_birth(out, level: int = 0) -> None:
    """Tell the levels above that handles of a lower level were made while they run.

    An identity is enough: a handle from outside lives all the while, so that none can be mistaken
    for it.
    """
    for t in tensors_in((out,)) if not isinstance(out, Tensor) else (out,):
        for interp in state.stack[level + 1 :]:
            if interp.counts_births:
                interp.born.add(id(t))


def fresh(array) -> Tensor:
    """A handle around an array from outside, announced to the transforms that run."""
    if state.fakes.mode is not None:
        t = make(fake_like(array))
        if array.size == 1 and not isinstance(array, Fake):
            t._payload.known = array.copy(), [True]
        if state.fakes.reals and isinstance(array, np.ndarray):
            t._payload.real = array.copy()
        return t
    t = make(array)
    if state.inference:
        t._cell = INFERENCE
    if fast["BIRTHS"]:
        note_birth(t)
    return t


def lifted(t: Tensor) -> Tensor:
    """A tensor that was just made from Python values, for the transform that sees everything."""
    if not state.mode:
        return door.lifted(t)
    found = state.stack[state.mode].event(events.MADE, t)
    if found is None:
        return ops.lift_fresh(t)
    return found
