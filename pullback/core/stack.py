"""Levels and `bind`, the whole dispatcher.

An operator goes to the highest level among its arguments (or the innermost mode that wants to see
everything), then the tape records a node if a handle of that level asks for one.  No interpreter knows
another by name.  Read next: `tape.py` (recording), `surface.py` (mutation), `interp/` (the levels).
"""

from __future__ import annotations

import weakref

import numpy as np

from .. import errors
from .evaluate import escaped, evaluate
from .fake import Fake
from .handle import Box, Tensor
from .state import count, state

_ndarray = np.ndarray


class Interpreter:
    """One level of the stack; a subclass says what an operator means there."""

    adopts = False  # turns tensors from outside into its own when an operator meets them
    modal = False  # wants operators without boxed arguments too
    random = False  # wants random operators
    owns_tape = False  # `no_grad` inside does not reach the levels below
    counts_births = False  # wants to know which handles of lower levels are made while it runs
    title = "a transform"

    def __enter__(self):
        self.level = len(state.stack)
        self.alive = True
        self.rebound: list = []  # handles of lower levels that were bound to boxes of this one
        self.born: set[int] = set()  # identities of handles of lower levels that were made inside
        state.stack.append(self)
        state.record.append(True if self.owns_tape else state.record[-1])
        self.previous = state.mode, state.random
        if self.modal:
            state.mode = self.level
        if self.random:
            state.random = self.level
        state.births += self.counts_births
        count("ACTIVE", 1)
        return self

    def __exit__(self, kind, value, trace):
        state.stack.pop()
        state.record.pop()
        state.mode, state.random = self.previous
        state.births -= self.counts_births
        self.alive = False
        count("ACTIVE", -1)
        for ref, old in reversed(self.rebound):
            handle = ref()
            if handle is not None and type(handle._data) is not type(old):
                self.restore(handle, old)

    def process(self, ov, flat):
        """Interpret an operator."""
        raise NotImplementedError

    def mine(self, value) -> bool:
        """Is this a handle of this level?"""
        return isinstance(value, Tensor) and getattr(value._data, "interp", None) is self

    def restore(self, handle, old) -> None:
        """Give a handle of a lower level a value of that level back, when this level ends."""
        handle._data = old

    def note_rebinding(self, handle, old) -> None:
        """Remember a handle of a lower level that now holds a box of this level."""
        self.rebound.append((weakref.ref(handle), old))


def level_of(ov, data) -> int:
    """The level that a handle's data belongs to."""
    if type(data) is _ndarray or type(data) is Fake or not isinstance(data, Box):
        return 0
    interp = data.interp
    if not interp.alive:
        raise escaped(ov, data)
    return interp.level


def note_birth(out, level: int = 0) -> None:
    """Tell the levels above that handles of a lower level were made while they run.

    An identity is enough: a handle from outside lives all the while, so that none can be mistaken for it.
    """
    for t in tensors_in((out,)) if not isinstance(out, Tensor) else (out,):
        for interp in state.stack[level + 1:]:
            if interp.counts_births:
                interp.born.add(id(t))


def tensors_in(flat):
    """All handles among flat arguments, those in lists included."""
    for v in flat:
        if isinstance(v, Tensor):
            yield v
        elif type(v) is list or type(v) is tuple:
            for item in v:
                if isinstance(item, Tensor):
                    yield item


def bind(ov, flat: tuple):
    """Interpret an operator on flat arguments, and record it if a handle asks."""
    if ov.is_composite:
        return ov.compose(*flat)
    level = state.mode
    if ov.is_random and state.random > level:
        level = state.random
    tracked = False
    owner = state.stack[level] if level else None
    adopts = owner is not None and owner.adopts
    for t in tensors_in(flat):
        if t._link is not None:
            surface.refresh(t)
        data = t._data
        if adopts and type(data) is _ndarray:
            owner.adopt(t)
            data = t._data
        own = 0 if type(data) is _ndarray else level_of(ov, data)
        if own > level:
            level, tracked = own, t._edge is not None
        elif own == level and t._edge is not None:
            tracked = True
    if level == 0:
        try:
            out = evaluate(ov, flat)
        except (errors.PullbackError, NotImplementedError):
            raise
        except Exception as error:
            raise translated(ov, flat, error) from error
    else:
        out = state.stack[level].process(ov, flat)
    if tracked and state.record[level]:
        tape.record(ov, flat, out, level)
    if ov.is_view:
        surface.link_views(ov, flat, out, level)
    if state.births:
        note_birth(out, level)
    return out


def translated(ov, flat: tuple, error: Exception) -> Exception:
    """An array library's exception in our words, of PyTorch's type."""
    shapes = [f"{a.name}: {_facts(v)}" for a, v in zip(ov.schema.args, flat) if isinstance(v, Tensor)]
    line, name = errors.user_line(2), ov.op.base_name
    text = str(error)
    if isinstance(error, (IndexError, TypeError)) and not isinstance(error, np.exceptions.AxisError):
        return type(error)(errors.text(f"{name} ({line}): {text}", shapes))
    if isinstance(error, np.exceptions.AxisError):
        return errors.DimError(errors.text(f"{name} ({line}): Dimension out of range: {text}", shapes))
    if "broadcast" in text:
        return errors.ShapeError(errors.text(
            f"{name} ({line}): the shapes cannot be broadcast together", shapes,
            "sizes must be equal or 1, counted from the last dimension"))
    if isinstance(error, (MemoryError, KeyboardInterrupt, RuntimeError)):
        return error
    return errors.ShapeError(errors.text(f"{name} ({line}): {text}", shapes))


def _facts(t: Tensor) -> str:
    return f"{t.dtype.name}{list(t._data.shape)}"


from . import surface, tape  # noqa: E402  (they need the names above)
