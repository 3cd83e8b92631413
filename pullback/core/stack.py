"""Levels and `bind`, the whole dispatcher.

An operator goes to the highest level among its arguments (or the innermost mode that wants to see
everything), then the tape records a node if a handle of that level asks for one.  No interpreter
knows another by name.  Read next: `tape.py` (recording), `surface.py` (mutation), `interp/` (the
levels).
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping

import numpy as np

from .. import errors
from ..array.dims import broadcast_shapes
from ..array.evaluate import escaped, raw_of, run_raw, wrap_all
from ..array.fake import Fake, fake_like
from . import events
from .handle import INFERENCE, Box, Tensor, cell_of, is_buffer, make
from .state import count, fast, state, tied, turn, uncast
from .subclass_door import door

_ndarray = np.ndarray


class Interpreter:
    """One level of the stack; a subclass says what an operator means there."""

    compositions: Mapping = {}  # operators that are made of others on this level, by name
    adopts = False  # turns tensors from outside into its own when an operator meets them
    modal = False  # wants operators without boxed arguments too
    pull = None  # runs nodes of the tape, to know what the operators of their formulas are for
    random = False  # wants random operators
    owns_tape = False  # `no_grad` inside does not reach the levels below
    continues_tape = False  # its tape goes on in that below: one sweep runs through both
    counts_births = False  # wants to know which handles of lower levels are made while it runs
    leaves_values = False  # is a handle that outlives it the value below, or an error?
    title = "a transform"
    rebound: list | tuple = ()  # handles of lower levels that were bound to boxes of this one

    on: dict = {}  # kind of event (`events.py`) -> the method that it goes to

    def event(self, kind: str, *facts):
        """Tell this level of what happened beside operators; an answer, if it has one."""
        heard = self.on.get(kind)
        return None if heard is None else heard(self, *facts)

    def unfollowed(self, text: str, kind: type[Exception] = errors.TransformError) -> Exception:
        """The refusal of something done to memory that this level cannot follow."""
        return kind(text)

    def cut(self, t: Tensor) -> Tensor:
        """The same value without history."""
        return make(t._data)

    def __enter__(self):
        self.level = len(state.stack)
        self.alive = True
        self.rebound = []
        self.born: set[int] = set()  # identities of handles of lower levels that were made inside
        state.stack.append(self)
        state.record.append(True if self.owns_tape else state.record[-1])
        self.previous = state.mode, state.random
        if self.modal:
            state.mode = self.level
        if self.random:
            state.random = self.level
        if self.counts_births:
            count("BIRTHS", 1)
        count("ACTIVE", 1)
        return self

    @tied
    def __exit__(self, kind, value, trace):
        state.stack.pop()
        state.record.pop()
        state.mode, state.random = self.previous
        if self.counts_births:
            count("BIRTHS", -1)
        count("ACTIVE", -1)
        self.lost()

    def lost(self) -> None:
        """The level has ended: handles of lower levels get values of theirs back."""
        self.alive = False
        for ref, old in reversed(self.rebound):
            handle = ref()
            if handle is not None and type(handle._data) is not type(old):
                self.restore(handle, old)

    def process(self, ov, flat):
        """Interpret an operator."""
        raise NotImplementedError

    def compose(self, ov, flat):
        """Run a composite operator, or one of `compositions`, by the operators that it is made of.

        NotImplemented for the latter: it is one operator after all.
        """
        return ov.compose(*flat)

    def rule(self, ov):
        """The derivative by which an operator is recorded while this level sees everything."""
        return ov.rule

    def stored(self, value, like: Tensor) -> Tensor | None:
        """What stands for a number that fills a part of a tensor (`modal` only); None: itself."""

    def keeps_slice(self, size) -> bool:
        """Is a slice of all of a dim, of this size, an operator to this level (`modal` only)?"""
        return False

    def record(self, ov, flat, out) -> None:
        """Put an operator of this level on the tape."""
        tape.record(ov, flat, out, self.level)

    def rebound_to(self, handle, new) -> bool:
        """A handle of this level is overwritten; was its version moved on the way?"""
        handle._data = new._data
        return False

    def mine(self, value) -> bool:
        """Is this a handle of this level?"""
        if not isinstance(value, Tensor) or getattr(value._data, "interp", None) is not self:
            return False
        return not value._data.outer

    def restore(self, handle, old) -> None:
        """Give a handle of a lower level a value of that level back, when this level ends."""
        handle._data = old

    def note_rebinding(self, handle, old) -> None:
        """Remember a handle of a lower level that now holds a box of this level."""
        self.rebound.append((weakref.ref(handle), old))


def level_of(ov, t: Tensor) -> int:
    """The level that a handle belongs to."""
    data = t._data
    if type(data) is _ndarray or type(data) is Fake or not isinstance(data, Box):
        return 0
    interp = data.interp
    if interp is None:  # a wrapper
        return 0
    if interp.alive:
        level, stack = interp.level, state.stack
        if interp.adopts and not (level < len(stack) and stack[level] is interp):
            with turn():  # another thread captures, and gives it back
                pass
            return level_of(ov, t)
        return level
    if not interp.leaves_values:
        raise escaped(ov, data)
    outlive(t)
    return level_of(ov, t)


def outlived(t: Tensor) -> Tensor:
    """The handle, as its value below the levels that have ended where those leave values."""
    interp = getattr(t._data, "interp", None)
    while interp is not None and not interp.alive and interp.leaves_values:
        outlive(t)
        interp = getattr(t._data, "interp", None)
    return t


def outlive(t: Tensor) -> None:
    """Make a handle that outlived its level the one below: what it was to that level is over."""
    below = t._data.inner
    if is_buffer(below._data):
        t._cell = cell_of(below)
    t._data, t._edge, t._link = below._data, below._edge, below._link


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
            t._data.known = array.copy(), [True]
        if state.fakes.reals and isinstance(array, np.ndarray):
            t._data.real = array.copy()
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
        from ..table.packets import ops  # which needs this file

        return ops.lift_fresh(t)
    return found


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
    if not fast["ACTIVE"]:
        return compose(ov, flat) if ov.is_composite else bind_eager(ov, flat)
    policy = state.autocast
    if policy is not None and ov.op.autocast is not None:
        return policy.run(ov, flat)
    if ov.is_composite:
        return bind_composite(ov, flat)
    if fast["DISPATCHES"]:
        out = door.operator(ov, flat)
        if out is not NotImplemented:
            return out
    return bind_levelled(ov, flat)


def compose(ov, flat: tuple, level: int = 0):
    """A composite operator by its parts, as a level has them; errors in our words."""
    try:
        return state.stack[level].compose(ov, flat) if level else ov.compose(*flat)
    except Exception as error:
        shown = failure(ov, flat, error)
        if shown is error:
            raise
        raise shown from error


def bind_composite(ov, flat: tuple):
    """A composite operator where a transform is active: whole if a trace wants it so."""
    trace = state.observers.trace
    if trace is not None:
        for t in tensors_in(flat):
            if t._link is not None:  # its memory may have been written through another
                surface.refresh(t)
        out = trace.whole(ov, flat)
        if out is not NotImplemented:
            return out
    return compose(ov, flat, state.mode)


def bind_levelled(ov, flat: tuple):
    """An operator where a transform is active: on the highest level that it concerns."""
    level, tracked, space = meet(ov, flat)
    if level and ov.name in state.stack[level].compositions:
        out = state.stack[level].compose(ov, flat)
        if out is not NotImplemented:
            return out
    observers = state.observers
    if observers.cache is not None:
        out = observers.cache.run(ov, flat, level)
    else:
        out = interpret(ov, flat, level, space)
    recorded = tracked and state.record[level]
    if recorded:
        if level:
            state.stack[level].record(ov, flat, out)
        else:
            tape.record(ov, flat, out, 0)
        if observers.checkpoint is not None:
            observers.checkpoint.recorded(out, level)
    if state.inference and not level:
        surface.mark_inference(out)
    if ov.is_view:
        surface.link_views(ov, flat, out, level)
    if fast["BIRTHS"]:
        note_birth(out, level)
    if recorded and observers.saved_hooks:
        from .hooks import pack_saved

        pack_saved(out)
    return out


def meet(ov, flat: tuple) -> tuple:
    """(level, has a handle of it history?, NumPy if all arrays are its and there is one).

    One pass over the arguments; brings views up to date, and a capture adopts what it meets.
    """
    level = state.mode
    if ov.is_random and state.random > level:
        level = state.random
    tracked = False
    space = None if state.fakes.mode is None else False
    owner = state.stack[level] if level else None
    adopts = owner is not None and owner.adopts
    nearest = level - (owner is not None and owner.continues_tape)  # whose histories count
    for t in tensors_in(flat):
        if t._link is not None:
            if not ov.is_view or ~t._link.seen != t._cell.version or type(t._data) is _ndarray:
                surface.refresh(t)  # else PyTorch takes views of it as it is, and again later
            if adopts and ov.name != "detach":
                surface.refuse_left_behind(t, level)
        if adopts and type(t._data) is _ndarray:
            owner.adopt(t)
        if type(t._data) is _ndarray:
            own, space = 0, np if space is None else space
        else:
            own, space = level_of(ov, t), False
            if adopts and type(t._data) is _ndarray:  # a value that outlived its level
                owner.adopt(t)
                own = level_of(ov, t)
        if own > level:
            level, tracked, nearest = own, t._edge is not None, own
        elif nearest <= own and t._edge is not None:
            tracked = True
    return level, tracked, space or None


def bind_as_given(ov, flat: tuple):
    """`bind` past autocast, which does not reach in-place operators and `out=`."""
    if state.autocast is None:
        return bind(ov, flat)
    with uncast():
        return bind(ov, flat)


def interpret(ov, flat: tuple, level: int, space=None):
    """The value of an operator on a level, without history."""
    if level == 0:
        return evaluate(ov, flat, tuple([raw_of(v) for v in flat]), space)
    return state.stack[level].process(ov, flat)


def bind_eager(ov, flat: tuple):
    """`bind` where no transform is active in any thread: everything is at level 0.

    The steps of a call: refresh (`gather`), check, promote, kernel and wrap (`evaluate`), record,
    link.  `eager/steps.py` writes the same ones out for the kinds of calls that come often.
    """
    raw, tracked, space = gather(ov, flat)
    if space is None and fast["DISPATCHES"]:
        out = door.operator(ov, flat)
        if out is not NotImplemented:
            return out
    out = evaluate(ov, flat, raw, space)
    if tracked and (not fast["GRADOFF"] or state.record[0]):
        tape.record(ov, flat, out, 0)
    elif fast["GRADOFF"] and state.inference:
        surface.mark_inference(out)
    if ov.is_view:
        surface.link_views(ov, flat, out, 0)
    return out


def gather(ov, flat: tuple) -> tuple:
    """(raw arguments, does a handle have history?, NumPy if all arrays are its and there is one).

    One pass over the arguments; brings views up to date and refuses escaped boxes.
    """
    raw, tracked, space = [], False, None
    for v in flat:
        if isinstance(v, Tensor):
            if v._link is not None:
                surface.refresh(v)
            data = v._data
            if type(data) is _ndarray:
                space = np if space is None else space
            else:
                level_of(ov, v)
                data, space = v._data, False
            if v._edge is not None:
                tracked = True
            v = data
        elif type(v) is list or type(v) is tuple:
            items = []
            for t in v:
                if isinstance(t, Tensor):
                    if t._link is not None:
                        surface.refresh(t)
                    data = t._data
                    if type(data) is _ndarray:
                        space = np if space is None else space
                    else:
                        level_of(ov, t)
                        data, space = t._data, False
                    if t._edge is not None:
                        tracked = True
                    t = data
                items.append(t)
            v = items
        raw.append(v)
    return raw, tracked, space or None


def evaluate(ov, flat: tuple, raw, space=None):
    """The operator on raw arguments, as handles; errors of array libraries in our words."""
    try:
        out = run_raw(ov, raw, space)
    except Exception as error:
        shown = failure(ov, flat, error)
        if shown is error:
            raise
        raise shown from error
    return make(out) if type(out) is _ndarray else wrap_all(ov, out)


def failure(ov, flat: tuple, error: Exception) -> Exception:
    """What to raise when an operator failed: the error itself, or the same in our words."""
    if isinstance(error, errors.PullbackError):
        errors.located(error, facts(ov, flat))
        return error
    if isinstance(error, (NotImplementedError, MemoryError)) or ov.custom:
        return error  # of a custom operator: the user's own function, its errors are the user's
    if ov.is_composite and not isinstance(
        error, (RuntimeError, LookupError, TypeError, ValueError)
    ):
        return error
    return translated(ov, flat, error)


def translated(ov, flat: tuple, error: Exception) -> Exception:
    """An error of an array library or a kernel in our words, of PyTorch's type."""
    state = facts(ov, flat)
    if isinstance(error, ValueError) and not ov.is_composite:  # what NumPy raises for shapes
        text = str(error)
        if "broadcast" in text:
            text = unbroadcastable([t._data.shape for t in tensors_in(flat)]) or text
        return errors.named(errors.ShapeError, ov.op.base_name, text, state)
    return errors.translated(ov.op.base_name, error, state)


def unbroadcastable(shapes: list) -> str | None:
    """Why shapes do not broadcast, None if they do."""
    try:
        broadcast_shapes(*shapes)
    except RuntimeError as error:
        return str(error)
    return None


def facts(ov, flat: tuple) -> list[str]:
    """The tensors among the arguments, for the state part of a message."""
    return [
        f"{a.name}: {t.dtype.name}{list(t._data.shape)}"
        for a, v in zip(ov.schema.args, flat)
        for t in (v if type(v) in (list, tuple) else (v,))
        if isinstance(t, Tensor)
    ]


from . import surface, tape  # noqa: E402  (they need the names above)
