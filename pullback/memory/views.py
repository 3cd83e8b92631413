"""Views: how they follow from their bases, how they keep up with writes, what must not be written.

A view has a link to its base.  When the memory was written since, the view's history is made anew
on its next use: as strides of the base where memory is real, by replaying the view operators
inside of transforms.  A write through a view gives the base a node that sends the gradient of the
overwritten part to what was written.  Read next: `assign.py`, which does the writing.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from .. import errors
from ..array import device as dev
from ..array.evaluate import run_raw
from ..array.layout import strides_order
from ..array.lazy import ARRAYS, CONJ, NEG, marks_of, turns
from ..array.size import Symbolic
from ..core import events, tape
from ..core.handle import INFERENCE, Tensor, cell_of, is_buffer, make, tensors_in
from ..core.op import ops
from ..threads.blocks import tied, tied_block
from ..threads.state import state
from .fresh import lifted
from .links import Link, one_more

_FEW = 3  # so many steps are replayed in a backward; longer chains become places of the base


def link_views(ov, flat: tuple, out, level: int) -> None:
    """Tie the outputs of a view operator to the base whose memory they share."""
    source = flat[0]
    many = isinstance(out, (list, tuple))
    if ov.op.marks is not None and not many and _is_copy(source._payload, out._payload):
        return
    cell = cell_of(source)
    if cell is INFERENCE and is_buffer(source._payload):
        for t in out if many else (out,):
            t._cell, t._edge = cell, None  # whatever mode this is
        return
    if ov.op.diff_outputs == (False,):
        out._cell = cell  # an alias that has nothing to do with derivatives
        if len(state.stack) > 1:  # a transform may write to it, or to its source
            link_detached(out, source, None if ov.op.ends_history else (ov, flat[1:], None))
        return
    link = source._link
    if link is None or link.apart:
        kind, base, steps, multi, hidden = Link, source, None, many, None
    else:
        kind, base, steps, hidden = link.__class__, link.base, link.steps, link.hidden
        multi = many or link.multi
    rest = flat[1:]
    if level and ov.op.nondiff:  # a place in a tensor, which may be written since
        rest = tuple([make(v._payload) if isinstance(v, Tensor) else v for v in rest])
    if steps is not None and ov.op.absolute:
        # it names places of the memory, whatever view it is called on
        rest = (*rest[:2], out.storage_offset() if rest[2] is None else rest[2])
        of_base = source._payload.dtype == base._payload.dtype and (
            marks_of(source._payload) == marks_of(base._payload))
        if of_base and not hidden:
            steps = None
    if not state.record[level]:
        hidden = "inference" if state.inference else "no_grad"
        if source._edge is not None and (level == 0 or state.stack[level].adopts):
            for t in out if many else (out,):
                t._edge = tape.Blind()
    for i, t in enumerate(out if many else (out,)):
        t._cell = cell
        step = one_more(steps, (ov, rest, i if many else None))
        if state.switches.replay_views:  # its history is to be made by all of its steps
            step = (*step[:3], step[2], step[4])
        t._link = kind(base, step, multi, hidden, cell.version)
        if steps is not None:
            t._link.of = link.of  # the base may have another layout since
        if level and not (multi or hidden) and state.stack[level].event(events.VIEWED, cell):
            t._link.seen = ~cell.version  # PyTorch takes such a view anew when it is used first


def _is_copy(source, shown) -> bool:
    """Is this not a view after all, but numbers of a device that has no marks?"""
    return is_buffer(source) and is_buffer(shown) and dev.owner(source) is not dev.owner(shown)


class Detached(Link):
    """How a detached alias in a transform or a capture follows its source: values only.

    As long as both look at the same array there is nothing to follow.
    """

    __slots__ = ("counts", "silent", "writes")
    apart = True

    def __init__(self, *args):
        super().__init__(*args)
        self.counts = True  # do writes move the version of the source? Not those through `.data`
        self.writes = 0  # those that do not
        self.silent = False  # is it the memory of an input that took it by `set_`?

    def stale(self, t: Tensor) -> None:
        """The values were written through another alias."""
        self.seen = t._cell.version
        if is_buffer(t._payload) and is_buffer(self.base._payload):
            return
        level = tape.level_own(t._payload)
        with _captures_left(level), recording_set(level, False):
            again = replay(make(self.base._payload), self.chain)
            interp = again._payload.interp
            interp.event(events.WROTE_UNRECORDED, t)  # its history is of what it was
            found = again if self.silent else interp.event(events.FOLLOWS, again)
            if found is None:  # tangents end, and gradients of graphs
                found = ops.detach(again)
            t._payload = found._payload


def link_detached(t: Tensor, source: Tensor, step: tuple | None = None) -> None:
    """Tie a detached alias to its source where no memory is shared: writes are passed on.

    `step` is the view that it is, where it is not just the same.
    """
    link = source._link
    base, steps = (source, None) if link is None else (link.base, link.steps)
    if link is not None and not link.apart and base._link is not None:  # of a detached alias
        base, steps = base._link.base, base._link.steps
        for inner in link.chain:
            steps = one_more(steps, inner)
    steps = steps if step is None else one_more(steps, step)
    t._cell = cell_of(source)
    t._link = Detached(base, steps, False, None, t._cell.version)


def replay(t: Tensor, chain: tuple) -> Tensor:
    """Apply a chain of view operators."""
    for ov, rest, number in chain:
        t = ov.interpret((t, *rest))
        if number is not None:
            t = t[number]
        if t._link is not None:
            t._link.seen = t._cell.version
    return t


def in_own_memory(out, flat: tuple):
    """Results of an operator that is no view: copies of those that are an argument, show memory
    of one, or that of another result.
    """
    if not isinstance(out, (Tensor, list, tuple)):
        return out
    held = [root(t)._payload for t in tensors_in(flat)]

    def own(t):
        if not isinstance(t, Tensor):
            return t
        data = root(t)._payload
        if any(data is h or _overlap(data, h) for h in held):
            return ops.clone(t)
        held.append(data)
        return t

    if isinstance(out, Tensor):
        return own(out)
    made = [own(t) for t in out]
    return type(out)(*made) if hasattr(out, "_fields") else type(out)(made)


def root(t: Tensor) -> Tensor:
    """The tensor whose memory a view shows, be it a detached alias or not."""
    while t._link is not None:
        t = t._link.base
    return t


def _overlap(a, b) -> bool:
    return type(a) in ARRAYS and type(b) in ARRAYS and np.may_share_memory(a, b)


# keeping up with the base


def refresh(t: Tensor) -> None:
    """Bring a view up to date with its base."""
    link = t._link
    version = t._cell.version
    if link.seen == version:
        return
    if link.__class__ is not Link:
        link.stale(t)  # an output of a custom function: its history cannot be made again
        return
    base = link.base
    if is_buffer(t._payload) and is_buffer(base._payload):
        if base._edge is None and (t._edge is None or isinstance(t._edge, tape.Accumulate)):
            link.seen = version
            return  # a view that was made a leaf stays one
        if link.multi or link.hidden:
            if state.record[0]:
                _refuse(t, link, "its base or another view of its base has been modified inplace")
            return  # nobody asks for the history
        link.seen = version
        t._edge = _history(t, link, base)
    else:
        level = tape.level_own(base._payload)
        if level and state.stack[level].adopts and _left_behind(t, level):
            with _captures_left(level), recording_set(level, False):
                follow(t, replay(make(base._payload), link.chain))
            return  # its history must not be asked for any more
        if level and link.seen != -1:
            state.stack[level].event(events.REFRESHES)
        link.seen = version
        recording = recording_set(level, False) if link.hidden else _recording_below(level)
        with _captures_left(level), recording:
            again = replay(base, link.chain)
        t._edge = again._edge
        follow(t, again)
    if t._record is not None and t._record.retains:
        tape.retain_again(t)


def _left_behind(t: Tensor, level: int) -> bool:
    """Has a view in a capture that must not be used after writes seen one?"""
    link = t._link
    if not (link.multi or link.hidden) or link.apart or link.seen == t._cell.version:
        return False
    untracked = link.base._edge is None and (
        t._edge is None or isinstance(t._edge, tape.Accumulate))
    return not untracked and not unnoticed(t, level)


def unnoticed(t: Tensor, level: int) -> bool:
    """Were writes to the memory of a view in a capture such that its version does not count them,
    by the `.data` of another tensor?"""
    own = t._link.base._link
    return t._cell in state.stack[level].memory.silent and not (
        own is not None and own.apart and own.writes)


def refuse_left_behind(t: Tensor, level: int) -> None:
    """Refuse such a view as an argument of an operator that may be recorded."""
    if state.record[level] and _left_behind(t, level):
        _refuse(t, t._link, "its base or another view of its base has been modified inplace")


def _history(t: Tensor, link: Link, base: Tensor):
    """The edge of a view of real memory: strides of the base, or of its view in another dtype."""
    _, _, count, cast, _ = link.steps
    if cast:
        with _captures_left(0), recording_set(0):
            base = replay(_in_old_layout(link, base), link.chain[:cast])
        if cast == count:
            return base._edge
    if base._edge is None:  # the base was detached since: gradients end there
        base = make(base._payload, tape.Blind())
    again = make(t._payload)
    tape.record(_as_strided(), (base, *_geometry(t)), again, 0)
    return again._edge


def _in_old_layout(link: Link, base: Tensor) -> Tensor:
    """A base as it lay when its view was made, where it has changed its shape in place since."""
    if link.of is base._payload or not is_buffer(link.of) or base._edge is None:
        return base
    before = make(link.of)
    tape.record(_as_strided(), (base, *_geometry(before)), before, 0)
    return before


def unhooked(t: Tensor):
    """The edge of a tensor that is about to be written; of a view, around hooks up to its base.

    They belong to the old value of the view; PyTorch's node for writes goes around it, too.
    """
    link, edge = t._link, t._edge
    if edge is None or link.__class__ is not Link:
        return edge
    base, at = link.base, edge
    # one by strides is of the memory, not of the view it was taken of; who scatters sees to it
    around = link.steps[4][0].op.absolute and events.SCATTERS not in getattr(
        getattr(t._payload, "interp", None), "on", ())
    for _ in range(link.steps[2]):
        node = at.node if type(at) is tape.Port else at
        if not around and (at is base._edge or not node.edges):
            break
        if around or node.hooks or node.hides_hooks:
            if is_buffer(t._payload) and is_buffer(base._payload):
                return _history(t, link, base)
            return replay(make(base._payload, base._edge), link.chain)._edge
        at = node.edges[0]
    return edge


def _geometry(t: Tensor) -> tuple:
    """Sizes, strides and offset of a tensor in its memory, in elements."""
    data = t._payload
    item = data.dtype.itemsize
    start = (dev.address(data) - dev.address(dev.owner(data))) // item
    return data.shape, tuple([s // item for s in data.strides]), start


@functools.cache
def _as_strided():
    return ops.as_strided.default


def view_of(view: Tensor, new_base: Tensor, symint_visitor_fn=None, tensor_visitor_fn=None):
    """The view that another base would have; None where that base is laid out otherwise.

    The functions may replace the numbers and the tensors that the view was made with.
    """
    link = view._link
    if link is None:
        return None
    own = link.base
    both = is_buffer(new_base._payload) and is_buffer(own._payload)
    if new_base.dtype is not own.dtype or both and _geometry(new_base) != _geometry(own):
        return None
    return view_of_any(view, new_base, symint_visitor_fn, tensor_visitor_fn)


def view_of_any(view: Tensor, new_base: Tensor, symint_visitor_fn=None, tensor_visitor_fn=None):
    """The same, whatever the base is like."""
    chain = view._link.chain
    if symint_visitor_fn is not None or tensor_visitor_fn is not None:
        def visited(value):
            if isinstance(value, (list, tuple)):
                return type(value)(visited(v) for v in value)
            if isinstance(value, Tensor):
                return value if tensor_visitor_fn is None else tensor_visitor_fn(value)
            number = isinstance(value, int) and not isinstance(value, bool)
            return symint_visitor_fn(value) if number and symint_visitor_fn is not None else value

        chain = [(ov, _but_dims(ov, rest, visited), number) for ov, rest, number in chain]
    return replay(new_base, chain)


def _but_dims(ov, rest: tuple, visited) -> tuple:
    """Sizes, strides and indices are visited; dims are not sizes."""
    sizes = [a.symbolic for a in ov.schema.args[1:]]
    return tuple(visited(v) if size or isinstance(v, Tensor) else v
                 for v, size in zip(rest, sizes))


def base_of_view(view: Tensor, new_view: Tensor) -> Tensor:
    """A base such that `new_view` is to it what `view` is to its own, as a view of `new_view`."""
    base = view._link.base
    if base.dtype is not new_view.dtype:
        new_view = ops.view_as_real(new_view) if new_view.dtype.is_complex else (
            ops.view_as_complex(new_view))
    return ops.as_strided(new_view, list(base.shape), list(base.stride()), base.storage_offset())


def found_anew(x: Tensor) -> Tensor:
    """A stand-in for a base in a transform or a capture that changes its layout: the views that it
    had there are views of this."""
    base = make(x._payload, x._edge)
    base._cell = x._cell
    for link in list(getattr(x._cell, "links", ())):
        if link.base is x:
            link.base = base
    return base


def follow(view: Tensor, new: Tensor) -> None:
    """A view takes other data, because its base did; levels that ask are told."""
    interp = getattr(new._payload, "interp", None)
    if interp is not None and interp.continues_tape and is_buffer(view._payload):
        interp.note_rebinding(view, view._payload)
    view._payload = new._payload


def current(t: Tensor) -> Tensor:
    """A handle with the present value and history of another, safe from later rebinding."""
    if t._link is not None:
        refresh(t)
    return make(t._payload, t._edge)


class recording_set:
    """Switch the tape of one level on for a moment."""

    def __init__(self, level: int, on: bool = True):
        self.level, self.on = level, on

    def __enter__(self):
        self.before = state.record[self.level]
        state.record[self.level] = self.on

    @tied
    def __exit__(self, *exc):
        state.record[self.level] = self.before


@tied_block
def _captures_left(level: int):
    """Leave the captures above a level for a moment: a view that is made again, be it that one of
    them asks first, is of the level of its base."""
    before = state.mode, state.random
    while state.mode > level:
        state.mode, state.random = state.stack[state.mode].previous
    try:
        yield
    finally:
        state.mode, state.random = before


@tied_block
def _recording_below(level: int):
    """Switch the tapes of a level and of those below it on for a moment: a view that is made again
    has the histories of its base, whatever mode the program is in by now."""
    before = state.record[: level + 1]
    state.record[: level + 1] = [True] * (level + 1)
    try:
        yield
    finally:
        state.record[: level + 1] = before


# writing through views


@functools.cache
def _scatter(ov):
    """Compiled `scatter` formula of a view: (base, new, *rest) -> new base."""
    import ast

    from ..core.formula import lookup

    text = ov.op.scatter
    names = [a.name for a in ov.schema.args[1:]]
    space = {"__name__": "pullback.generated"}
    for node in ast.walk(ast.parse(text, mode="eval")):
        if isinstance(node, ast.Name) and node.id not in ("base", "new", *names):
            found = lookup(node.id)
            if found is not None:
                space[node.id] = found
    source = f"lambda {', '.join(['base', 'new', *names])}: {text}"
    return eval(compile(source, f"<pullback scatter of {ov.name}>", "eval"), space)


def scatter(base: Tensor, chain: tuple, new: Tensor) -> Tensor:
    """The base with `new` in the place of the view that `chain` describes."""
    values = [base]
    for k, step in enumerate(chain):
        if _repeats_elements(values[-1], step):  # only what is written counts, not its neighbours
            return _scatter_by_position(chain[k:], values[-1], new) if k == 0 else scatter(
                base, chain[:k], _scatter_by_position(chain[k:], values[-1], new))
        if k < len(chain) - 1:
            values.append(_shown(values[-1], step))
    for (ov, rest, number), value in zip(reversed(chain), reversed(values)):
        if number is not None:
            new = _scatter_piece(ov, rest, number, value, new)
        elif ov.op.absolute and not value.is_contiguous():
            new = _put(value, _places_by_strides(value, rest), new)
        elif ov.op.scatter is None:
            new = _scatter_by_position(((ov, rest, number),), value, new)
        else:
            new = _scatter(ov)(value, new, *rest)
    return new


def laid_like(base: Tensor, new: Tensor) -> Tensor:
    """The new value of a tensor that was written, such that it has the views that it had before.

    Operators choose the layout of their results; memory that is written keeps its own, and what
    its elements mean.
    """
    if marks_of(base._payload) != marks_of(new._payload):
        new = _meant_like(base, new)
    old, now = base._payload, new._payload
    if old.strides == now.strides or _joined(old) <= _joined(now):
        return new
    owner = getattr(now, "interp", None)
    found = None if owner is None else owner.event(events.RELAYS, old, new)
    if found is not None:
        return found
    order = strides_order(old.shape, old.strides)
    if order is None:
        return ops.clone(new, memory_format="contiguous_format")
    lying = ops.clone(ops.permute(new, order), memory_format="contiguous_format")
    return ops.permute(lying, sorted(range(len(order)), key=order.__getitem__))


def _meant_like(base: Tensor, new: Tensor) -> Tensor:
    """The same values, put off where those of the base are."""
    if marks_of(new._payload):
        new = ops.clone(new)
    if marks_of(base._payload) & CONJ:
        new = ops._conj(ops.conj_physical(new))
    return ops._neg_view(ops.neg(new)) if marks_of(base._payload) & NEG else new


def _joined(data) -> set:
    """The pairs of dims that a view can make one of: an index of one is a turn of the other."""
    dims = [(d, n, s) for d, (n, s) in enumerate(zip(data.shape, data.strides)) if n != 1]
    return {(d, e) for d, n, s in dims for e, m, t in dims if d != e and s == t * m}


def _shown(t: Tensor, step: tuple) -> Tensor:
    """The values that a view operator shows, of a tensor that may lie otherwise in memory."""
    ov, rest, number = step
    if ov.op.wants_rows:
        t = t.contiguous()
    t = ov.interpret((t, *rest))
    return t if number is None else t[number]


def _repeats_elements(t: Tensor, step: tuple) -> bool:
    """Does a view show an element more than once?"""
    repeats = step[0].op.repeats
    return repeats is not None and repeats(tuple(t.shape), *step[1])


def _fixed(value):
    """An argument of a view without symbols."""
    if isinstance(value, (list, tuple)):
        return type(value)([_fixed(v) for v in value])
    return int(value) if isinstance(value, Symbolic) else value


def _scatter_by_position(chain, base, new):
    """Write through views without scatter formula: ask them where their elements come from."""
    shape = tuple([int(n) for n in base.shape])  # of symbols: for these sizes alone
    places = np.arange(math.prod(shape)).reshape(shape)
    for k, (ov, rest, number) in enumerate(chain):
        if k == 0 and ov.op.absolute:  # of a tensor that may have gaps
            places = _places_by_strides(base, rest).reshape([int(n) for n in rest[0]])
            continue
        if turns(ov):  # no other place, but other numbers
            new = _scatter(ov)(base, new)
            continue
        places = run_raw(ov, (places, *map(_fixed, rest)))
        places = places if number is None else places[number]
        owner = getattr(base._payload, "interp", None)
        windows = ov.op.repeats is not None and not (ov.op.covers or ov.op.absolute)
        if windows and owner is not None and events.VIEWED in owner.on and (
                _last(places.reshape(-1)) is not None):
            raise errors.ViewWriteError(errors.text(
                f"while executing {ov.name}, functionalization encountered a tensor being mutated "
                f"that has internal overlap ({errors.user_line(2)}): what it would be is not "
                "defined", f"shape {list(places.shape)} of {list(shape)}",
                "clone() it before it is written"))
    return _put(base, places.reshape(-1), new)


def shown_by_strides(value: Tensor, base: Tensor, rest: tuple) -> Tensor:
    """What `as_strided` shows of a tensor with gaps, by a value that has its elements without."""
    size = [int(n) for n in rest[0]]
    places = np.unravel_index(_places_by_strides(base, rest).reshape(size), tuple(base.shape))
    return ops.index(value, [lifted(make(i)) for i in places])


def _put(base: Tensor, places: np.ndarray, new: Tensor) -> Tensor:
    """The base with elements in the places of some of its own; of several for one the last."""
    def numbers(found: np.ndarray) -> Tensor:
        made = lifted(make(found))  # a constant of whoever captures this
        return made if base.device.type == "cpu" else made.to(base.device)

    shape, given = tuple([int(n) for n in new.shape]), new
    last = _last(places)
    if last is None:
        places = places.reshape(shape)
    else:
        places, given = places[last], ops.index(new, list(map(numbers, np.unravel_index(
            last, shape))))
    shape = tuple([int(n) for n in base.shape])
    if not shape:
        return ops.reshape(given, ()) if places.size else ops.clone(base)
    index = [numbers(i) for i in np.unravel_index(places, shape)]
    return ops.index_put(base, index, given)  # no view: it may be returned


def _last(places: np.ndarray) -> np.ndarray | None:
    """Where each place is met last; None if all are met once."""
    found, last = np.unique(places[::-1], return_index=True)
    return None if len(found) == len(places) else len(places) - 1 - last


def _places_by_strides(base: Tensor, rest: tuple) -> np.ndarray:
    """The numbers, among the elements of a tensor with gaps, of those that `as_strided` shows."""
    size, stride, offset = map(_fixed, rest)
    start = _fixed(base.storage_offset())
    own = _cells(_fixed(tuple(base.shape)), _fixed(tuple(base.stride())), start)
    shown = _cells(tuple(size), tuple(stride), start if offset is None else offset)
    number = {cell: k for k, cell in enumerate(own.tolist())}
    found = [number.get(cell, -1) for cell in shown.tolist()]
    if min(found, default=0) < 0:
        text = errors.text(
            "a write by as_strided() into memory that its tensor does not show cannot be "
            f"followed inside of a transform or a captured function ({errors.user_line(2)})",
            describe(base), "call as_strided() on the tensor that has all of the memory")
        interp = getattr(base._payload, "interp", None)
        raise errors.ViewWriteError(text) if interp is None else interp.unfollowed(text)
    return np.array(found, np.int64)


def _scatter_piece(ov, rest, number, base, new):
    """Write one of several views made by one call (split, unbind): refill the dim."""
    if ov.op.scatter_piece is not None:
        return ov.op.scatter_piece(base, new, number, *rest)
    pieces = list(ov.interpret((base, *rest)))
    pieces[number] = new
    return ops.cat(pieces, rest[-1] if rest else 0)


def _places(base: Tensor, view: Tensor) -> np.ndarray | None:
    """The number, among the base's elements, of each element of a view of the same memory."""
    if not (base._payload.dtype == view._payload.dtype and is_buffer(base._payload)):
        return None
    (shape, strides, start), (size, stride, offset) = _geometry(base), _geometry(view)
    if 0 in shape or 0 in size:
        return np.zeros(math.prod(size), np.int64) if 0 in size else None
    low = min(start, offset)
    own, shown = _cells(shape, strides, start - low), _cells(size, stride, offset - low)
    number = np.full(max(own.max(), shown.max()) + 1, -1)
    number[own] = np.arange(own.size)
    found = number[shown]
    return None if (found < 0).any() else found


def _cells(size: tuple, stride: tuple, offset: int) -> np.ndarray:
    cells = np.full((1,) * len(size), offset)
    for dim, (n, step) in enumerate(zip(size, stride)):
        cells = cells + (np.arange(n) * step).reshape((-1,) + (1,) * (len(size) - 1 - dim))
    return np.broadcast_to(cells, size).reshape(-1)


# refusals


before_writes: list = []  # functions that are told of every tensor that is about to be written


def may_write(x: Tensor, tracked: bool, level: int, same: bool = False) -> None:
    """Refuse writes that would lose history or give one element two values."""
    data = x._payload
    if before_writes:
        for told in before_writes:
            told(x)
    if x._cell is INFERENCE and not state.inference:
        raise errors.InferenceTensor(
            errors.text(
                "Inplace update to inference tensor outside InferenceMode is not allowed "
                f"({errors.user_line(2)})",
                describe(x),
                "clone() it to get a normal tensor before writing",
            )
        )
    if not same and _repeats(data):
        raise errors.ViewWriteError(
            errors.text(
                "unsupported operation: more than one element of the written-to tensor refers to "
                "a single memory "
                f"location ({errors.user_line(2)})",
                f"shape {list(data.shape)}, strides {list(x.stride())}",
                "clone() the tensor before performing the operation",
            )
        )
    if not state.record[level]:
        return
    link = x._link if x._link is None or not x._link.apart else None
    if isinstance(x._edge, tape.Accumulate) and x._edge.guarded:  # be it a view or not
        raise errors.LeafWriteError(
            errors.text(
                f"a leaf Variable that requires grad is being used in an in-place operation "
                f"({errors.user_line(2)})",
                describe(x),
                ["run the update under no_grad()", "or compute on x.clone()"],
            )
        )
    if link is None:
        return
    base_tracked = link.base._edge is not None
    if not (tracked or base_tracked):
        return
    if link.__class__ is not Link:
        link.refuse(x, "is being modified inplace")
    if link.multi or link.hidden:
        _refuse(x, link, "is being modified inplace")
    leaf = isinstance(link.base._edge, tape.Accumulate) and link.base._edge.guarded
    if leaf or x._edge is not None and not base_tracked:  # then the leaf is itself a view
        raise errors.LeafWriteError(
            errors.text(
                "a view of a leaf Variable that requires grad is being used in an in-place "
                "operation "
                f"({errors.user_line(2)})",
                describe(x),
                "run the update under no_grad()",
            )
        )


def _refuse(x: Tensor, link: Link, what: str):
    """Refuse a write to a view that must not be written, or its use after the base was."""
    if link.multi and not link.hidden:
        ov, _, number = link.steps[1]
        name = "".join(part.capitalize() for part in ov.op.base_name.split("_"))
        raise errors.ViewWriteError(
            errors.text(
                f"Output {number or 0} of {name} is a view and {what} "
                f"({errors.user_line(3)}). This view is the output of a function that returns "
                "multiple views. Such functions do not allow the output views to be modified "
                "inplace",
                describe(x),
                ["index the base instead, or clone() the piece",
                 "or use the out-of-place operator"],
            )
        )
    where = "with grad mode enabled" if link.hidden == "no_grad" else "in normal mode"
    mode = link.hidden if link.hidden == "no_grad" else "inference"
    kind = "A view was" if x._edge is None or isinstance(x._edge, tape.Accumulate) else (
        f"Output {errors.output_of(x)} is a view of a view which was")
    block = f"{link.hidden}{'' if mode == 'no_grad' else '_mode'}"
    raise errors.ViewWriteError(
        errors.text(
            f"{kind} created in {mode} mode and {what} {where} ({errors.user_line(3)}); both must "
            f"be inside the {block} block, or both outside",
            describe(x),
            f"make the view outside of {block}, or write inside of it too",
        )
    )


def _repeats(data) -> bool:
    """Is an element of memory met more than once, because a dim was expanded?"""
    return (
        data.size > 1
        and 0 in data.strides
        and any(s == 0 and n > 1 for s, n in zip(data.strides, data.shape))
    )


def describe(x: Tensor) -> str:
    """The tensor's dtype and shape, for the state part of a message."""
    return f"tensor: {x.dtype.name}{list(x._payload.shape)}"


class CopySlices(tape.Node):
    """History of a base after a write through a view: the pullback of the scatter."""

    __slots__ = ("chain", "marks", "places", "size")

    class _Rule:
        name, saves = "torch::autograd::CopySlices", ()

    def apply(self, grads, needs):
        grad = grads[0]
        if grad is None:
            return [None, None]
        if self.places is not None:
            return self._by_places(grad, needs, ops)
        piece = functools.reduce(_shown, self.chain, grad)
        first = scatter(grad, self.chain, ops.zeros_like(piece)) if needs[0] else None
        return [first, piece if needs[1] else None]

    def _by_places(self, grad, needs, ops):
        index = make(self.places)
        index = index if grad.device.type == "cpu" else index.to(grad.device)
        flat = grad.reshape((-1,))
        first = ops.index_fill(flat, 0, index, 0).reshape(grad.shape) if needs[0] else None
        second = flat.index_select(0, index) if needs[1] else None
        last = _last(self.places) if needs[1] else None
        if last is not None:  # what was overwritten by its neighbour has no part in it
            shown = np.zeros(len(self.places), bool)
            shown[last] = True
            second = ops.masked_fill(second, make(~shown).to(grad.device), 0)
        second = second.conj() if needs[1] and self.marks & CONJ else second
        second = -second if needs[1] and self.marks & NEG else second
        return [first, None if second is None else second.reshape(self.size)]


def copy_slices(base: Tensor, view: Tensor, new: Tensor) -> CopySlices:
    """The node of a base whose view was overwritten by `new`."""
    metas = [None if t._edge is None else (t._payload.shape, t._payload.dtype) for t in (base, new)]
    node = tape.make_node(
        CopySlices, CopySlices._Rule, (base._edge, new._edge), tuple(metas), (), 0
    )
    link = view._link
    node.chain, node.places, node.size = (), None, tuple(view._payload.shape)
    chain = link.chain if link.steps[2] <= _FEW else ()
    moved = link.of is not base._payload and is_buffer(base._payload)
    if not chain or moved or any(  # a gradient lies in memory otherwise than what it belongs to
            ov.op.scatter is None or ov.op.absolute for ov, _, _ in chain):
        node.places = _places(base, view)
        node.marks = marks_of(base._payload) ^ marks_of(view._payload)
    if node.places is None:
        node.chain = link.chain
    return node
