"""What a capture does about memory: how values lie there, who wrote where, sizes of storages.

Values of a graph have no memory, but users see strides, versions and storages.  Read next:
`capture.py`, whose trace owns this.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

from .. import errors
from ..array.evaluate import channels_last, raw_of
from ..array.fake import Fake
from ..array.layout import is_arranged, memory_format
from ..array.lazy import CONJ, NEG, marks_of
from ..core.handle import Tensor, cell_of, make
from ..core.overload import overload
from ..interp.box import map_tensors
from ..memory.views import (
    describe,
    found_anew,
    link_detached,
    recording_set,
    refresh,
    shown_by_strides,
)
from ..table.packets import ops
from ..threads.state import state
from .guards import begins
from .joint import Reshaped
from .results import root_of

if TYPE_CHECKING:
    from .capture import Capture


def fills(data) -> bool:
    """Do the elements of a value fill their memory, in whatever order?"""
    run = data.dtype.itemsize
    for s, n in sorted((s, n) for s, n in zip(data.strides, data.shape) if n != 1):
        if s != run:
            return False
        run = run * n
    return True


class MemoryInside:
    """What one capture knows of the memory of its tensors; those of inputs by their identity."""

    def __init__(self, level: Capture):
        self.level = level
        self.views: dict[int, Reshaped] = {}  # tensors that changed their shape in place
        # what was an input before it changed its shape: (stand-in, input, changes before)
        self.stand_ins: dict[int, tuple] = {}
        self.sets: dict[int, tuple] = {}  # inputs that took other memory: (input, what it had)
        self.sizes: dict[int, int] = {}  # of storages that were resized, in bytes
        self.enlarged: set[int] = set()  # tensors that were given more memory by resize_
        self.moved: set[int] = set()  # tensors whose `.data` was replaced
        self.together: set[int] = set()  # those of them, and of their sources, that share memory
        self.silent: dict = {}  # writes that no version counts, by the cell that has it
        self.beginning: set = set()  # what inputs held that must begin where their memory does

    def reshaped(self, t: Tensor, step: tuple, new, base: Tensor) -> None:
        """`t_()` and the like on a tensor of the capture: a change of metadata."""
        if self.level.late and any(t is h or t._payload is h._payload for h in self.level.inputs):
            raise AssertionError(errors.text(
                "Found an input that had its metadata mutated in the backward of a compiled "
                f"function: {step[0].name} in place ({errors.user_line(2)})",
                cure="let the backward make a view, without the underscore"))
        if step[0].op.absolute:
            self.strided_in_place(t, *step[1])
        known = self.views.get(id(t))
        if known is None:
            known = self.views[id(t)] = Reshaped(t, t, [], self.level.first.get(id(t)))
        if base is not known.base:  # it has older views, and these are views of that now
            known.base = base
            if id(base) not in self.level.first:  # and it is not the root of several inputs
                before = [(ov, rest, None) for ov, rest, _ in known.steps]
                self.stand_ins[id(base)] = (base, t, before)
        known.steps.append((*step, state.record[self.level.level]))
        if base is t and known.box is t._payload:  # its values are those that it came with
            known.box = new

    def took_memory(self, t: Tensor, source: Tensor) -> None:
        """`t.set_(source)`: a detached alias from here on."""
        if source is t:
            cell_of(t).version += 1
            return
        if not self.level.mine(source):
            self.level.adopt(source)
        if source._link is not None:
            refresh(source)
        taken = set(self.sets)
        old = self.sets[id(t)][1] if id(t) in self.sets else None
        if old is None or any(o is old for o in (t, source)):
            old = found_anew(t)
            self.stand_ins[id(old)] = (old, t, [])
            self.sets[id(t)] = (t, old)
        else:
            found_anew(t)
        before = t._link.writes + 1 if id(t) in taken else 0
        link_detached(t, source)
        t._link.counts, t._link.writes = False, before  # the tensor keeps its own version
        t._link.silent = True
        t._payload = self.level.cut(source)._payload

    def took_data(self, t: Tensor, source: Tensor) -> None:
        """`t.data = source`: both look at the memory of an input from here on."""
        self.moved.add(id(t))
        root = root_of(source)
        if id(root) in self.level.first and root is not t:
            self.together |= {id(t), id(root)}

    def written(self, handle: Tensor, new: Tensor) -> Tensor:
        """What a tensor has from now on, for the new value that it gets."""
        if id(handle) in self.together:
            raise self.level.unfollowed(errors.text(
                "a captured function writes into memory that two tensors got by `x.data = y` "
                f"({errors.user_line(2)}), and only one of them would see it",
                f"tensor: {handle.dtype.name}{list(handle.shape)}",
                "use x.set_(y), or write before the assignment"))
        return self.level.convention.written(self.level, handle, new)

    def in_place_of(self, handle: Tensor, new: Tensor) -> Tensor:
        """A value that is written into a tensor lies in memory as that does."""
        level = self.level
        if not (level.mine(handle) and level.mine(new)):
            return new
        old, now = handle._payload.inner._payload, new._payload.inner._payload
        if type(old) is not Fake or type(now) is not Fake or old.strides == now.strides:
            return new
        if old.shape != now.shape or old.symbolic or 0 in old.strides or not old.size:
            return new
        copied = level.below(overload("copy"), (level._value(handle), level._value(new), False))
        if copied._payload.strides != old.strides:
            return new  # it has gaps
        flat = make(handle._payload), make(new._payload)
        return level._recorded(overload("copy"), (*flat, False), copied)

    def unpacked(self, t: Tensor) -> Tensor:
        """What a backward gets for a saved input: a write there is one to the input."""
        owner = next((h for h in self.level.inputs
                      if h._payload is t._payload and h._link is None), None)
        if owner is None or t._link is not None:
            return t
        alias = make(t._payload, t._edge)
        link_detached(alias, owner)
        return alias

    def resized(self, t: Tensor, size: int) -> None:
        """The memory of a tensor takes another size; values beyond it are gone, and show as 0."""
        extent = t.numel() * t._payload.dtype.itemsize
        if t._link is not None or id(t) not in self.level.first or 0 < size < extent:
            raise errors.TransformError(errors.text(
                f"a captured function gives the storage of a tensor {size} bytes "
                f"({errors.user_line(2)})",
                f"tensor: {t.dtype.name}{list(t.shape)}, {extent} bytes",
                "give an input that is no view of another tensor the bytes that it needs, or 0"))
        self.sizes[id(t)] = size
        if size < extent:
            with recording_set(self.level.level, False):
                t._payload = ops.zeros_like.default(make(t._payload))._payload

    def written_input(self, t: Tensor) -> bool:
        """Has an input other values than those that it came with?"""
        first = self.level.first
        return id(t) in first and first[id(t)] is not t._payload

    def placed(self, t: Tensor) -> Tensor:
        """Told that the function asks where in memory a tensor lies; gives the one that has all of
        that memory.  Values of the graph begin where their memory does: so must the input."""
        root = root_of(t)
        given = self._came_with(root)
        if given is None:
            return root
        if not begins(self.level.recorder.arrays[given.node]):
            raise self.level.unfollowed(errors.text(
                "a captured function looks at places in the memory of a larger tensor, of which it "
                f"is given a part ({errors.user_line(2)})", describe(root),
                "count from the start of the part: as_strided() without an offset, on a clone()"))
        self.beginning.add(given)
        return root

    def strided(self, ov, flat: tuple, run: Callable):
        """`as_strided`, of the memory that conjugates show, too."""
        out = self._strided(ov, flat, run)
        missing = marks_of(flat[0]._payload) ^ marks_of(out._payload)
        for mark, name in ((CONJ, "_conj"), (NEG, "_neg_view")):
            out = run(overload(name), (out,)) if missing & mark else out
        return out

    def _strided(self, ov, flat: tuple, run: Callable):
        """`as_strided` that counts from the first element of a value which has all of its memory:
        what else there is at run time may lie elsewhere.  `run` records an operator."""
        t, size, stride, start = flat
        as_given = self.level.convention.keeps_strides
        root, item = root_of(t), t._payload.dtype.itemsize
        given = self._came_with(root)
        if (t._link is not None or start is not None) and not (
                as_given and start is not None and root._payload is given):
            self.placed(t)  # else it is the memory of an input itself
        here = t._payload.offset // item
        absolute = here if start is None else start
        if given is not None and t.dtype is root.dtype:
            if not (fills(given) or as_given and root._payload.strides == given.strides):
                return self.level._replaced(ov, lambda *_: shown_by_strides(
                    self._value_of(root), make(given), (size, stride, absolute)), flat)
            self._refuse_beyond(root, size, stride, absolute)
        if as_given or t._link is None and start is None:
            out = run(ov, (self._value_of(t), *flat[1:]))
        elif t.dtype is root.dtype:
            out = run(ov, (self._value_of(root), size, stride, absolute))
        elif absolute == here:
            out = run(ov, (self._value_of(t), size, stride, None))
        else:
            raise self.level.unfollowed(errors.text(
                "a captured function looks at places in memory of another dtype "
                f"({errors.user_line(2)})", describe(t),
                "use as_strided() on the tensor that has the memory"))
        out._payload.inner._payload.offset = absolute * item  # its views may ask
        return out

    def _value_of(self, t: Tensor) -> Tensor:
        """The value of a tensor, without history where nothing is recorded."""
        level = self.level
        plain = not (state.record[level.level] or level.joined or level.recorder.origin)
        return level._untracked(t) if plain else make(t._payload)

    def strided_in_place(self, t: Tensor, size, stride, start=None) -> None:
        """Told of `as_strided_`, which gives a tensor other places of its memory."""
        if t._link is not None:
            raise self.level.unfollowed(errors.text(
                f"as_strided_() of a view in a captured function ({errors.user_line(2)})",
                describe(t), "use as_strided()"))
        if start is not None:
            self.placed(t)
        self._refuse_beyond(t, size, stride, start or 0)

    def _came_with(self, root: Tensor):
        """What an input held, of itself or of the stand-in for what it was; None: it is none."""
        owner = self.stand_ins[id(root)][1] if id(root) in self.stand_ins else root
        given = self.level.first.get(id(owner))
        return given if given is not None and given.node in self.level.recorder.arrays else None

    def _refuse_beyond(self, root: Tensor, size, stride, start) -> None:
        """Refuse places that an input does not show, but the memory that it is a part of."""
        given = self._came_with(root)
        if given is None or 0 in size or (
                self.level.convention.keeps_strides and root._payload.strides == given.strides):
            return
        reach = start + 1 + sum((n - 1) * s for n, s in zip(size, stride))
        if not fills(given) or prod(given.shape) < reach:
            raise self.level.unfollowed(errors.text(
                "a captured function looks at places in memory that its argument does not show "
                f"({errors.user_line(2)})", describe(root),
                "give it the tensor that has all of the memory"))

    def wrote_uncounted(self, t: Tensor) -> None:
        """Count a write through the `.data` of a tensor, which its version does not."""
        self.silent[cell_of(t)] = self.silent.get(cell_of(t), 0) + 1

    def arranged(self, ov, flat: tuple, out: Any) -> Any:
        """What the parts of an operator gave, in the memory format that it promises."""
        level = self.level
        if not level.convention.arranges(ov):
            return out
        raw = raw_of([map_tensors(level._value, v) for v in flat])
        lasts = {n: None if ov.in_rows else channels_last(raw, n) for n in (4, 5)}
        return map_tensors(lambda t: self._arranged(t, lasts.get(t.ndim)), out)

    def _arranged(self, t: Tensor, kind: str | None) -> Tensor:
        level = self.level
        data = t._payload.inner._payload if level.mine(t) else None
        if type(data) is not Fake or is_arranged(data, kind):
            return t
        clone, wanted = overload("clone"), memory_format.known[kind or "contiguous_format"]
        return level._recorded(clone, (t, wanted), level.below(clone, (level._value(t), wanted)))
