"""What a capture does about memory: how values lie there, who wrote where, sizes of storages.

Values of a graph have no memory, but users see strides, versions and storages.  Read next:
`capture.py`, whose trace this is a part of.
"""

from __future__ import annotations

from math import prod
from typing import Any

from .. import errors
from ..array.evaluate import channels_last, raw_of
from ..array.fake import Fake
from ..array.layout import is_arranged, memory_format
from ..core.handle import Tensor, cell_of, make
from ..core.op import overload
from ..core.state import state
from ..interp.box import map_tensors
from ..memory.views import _recording, describe, link_detached, shown_by_strides
from ..table.packets import ops
from .joint import begins
from .results import root_of


def fills(data) -> bool:
    """Do the elements of a value fill their memory, in whatever order?"""
    run = data.dtype.itemsize
    for s, n in sorted((s, n) for s, n in zip(data.strides, data.shape) if n != 1):
        if s != run:
            return False
        run = run * n
    return True


class MemoryTracking:
    """The part of a capture that looks after memory."""

    literal: bool  # does the graph follow PyTorch's convention?
    late: bool  # is what is recorded the backward of the function?
    level: int
    inputs: list[Tensor]
    first: dict[int, object]
    moved: set[int]  # handles whose `.data` was replaced
    together: set[int]  # handles of tensors that have the memory of an input by `.data`
    shared: dict[int, Any]
    writes: list[tuple]
    sizes: dict[int, int]
    sets: dict[int, tuple]
    stand_ins: dict[int, tuple]
    beginning: set[object]  # what inputs held that must begin where their memory does
    recorder: Any
    silent: dict
    mine: Any
    below: Any
    _value: Any
    _recorded: Any
    _untracked: Any
    joined: bool

    def unfollowed(self, text: str, kind: type[Exception] = errors.TransformError) -> Exception:
        """A function that need not be a graph runs as it is written instead."""
        return (kind if self.literal else errors.DataDependentError)(text)

    def took_data(self, t: Tensor, source: Tensor) -> None:
        """`t.data = source`: both look at the memory of an input from here on."""
        self.moved.add(id(t))
        root = root_of(source)
        if id(root) in self.first and root is not t:
            self.together |= {id(t), id(root)}

    def rebound_to(self, handle: Tensor, new: Tensor) -> bool:
        if id(handle) in self.together:
            raise self.unfollowed(errors.text(
                "a captured function writes into memory that two tensors got by `x.data = y` "
                f"({errors.user_line(2)}), and only one of them would see it",
                f"tensor: {handle.dtype.name}{list(handle.shape)}",
                "use x.set_(y), or write before the assignment"))
        if self.literal and any(old is handle and root_of(t) is not old
                                for t, old in self.sets.values()):
            raise errors.TransformError(errors.text(
                "cannot mutate tensors with frozen storage: this tensor shows memory that an input "
                f"had before set_() gave it other memory ({errors.user_line(2)})",
                f"tensor: {handle.dtype.name}{list(handle.shape)}",
                "write before set_(), or through the input"))
        if self.literal and self.mine(handle) and self.mine(new):
            if any(m.root.input is handle for m in self.shared.values()):
                new = self._in_place_of(handle, new)  # inputs are places of it, by strides
            self.writes.append((handle._data.node, new._data.node, self.late))
        elif self.mine(handle) and self.mine(new):
            new = self._in_place_of(handle, new)
        return super().rebound_to(handle, new)

    def _in_place_of(self, handle: Tensor, new: Tensor) -> Tensor:
        """A value that is written into a tensor lies in memory as that does."""
        old, now = handle._data.inner._data, new._data.inner._data
        if type(old) is not Fake or type(now) is not Fake or old.strides == now.strides:
            return new
        if old.shape != now.shape or old.symbolic or 0 in old.strides or not old.size:
            return new
        copied = self.below(overload("copy"), (self._value(handle), self._value(new), False))
        if copied._data.strides != old.strides:
            return new  # it has gaps
        flat = make(handle._data), make(new._data)
        return self._recorded(overload("copy"), (*flat, False), copied)

    def unpacked(self, t: Tensor) -> Tensor:
        """What a backward gets for a saved input: a write there is one to the input."""
        owner = next((h for h in self.inputs if h._data is t._data and h._link is None), None)
        if owner is None or t._link is not None:
            return t
        alias = make(t._data, t._edge)
        link_detached(alias, owner)
        return alias

    def resized(self, t: Tensor, size: int) -> None:
        """The memory of a tensor takes another size; values beyond it are gone, and show as 0."""
        extent = t.numel() * t._data.dtype.itemsize
        if t._link is not None or id(t) not in self.first or 0 < size < extent:
            raise errors.TransformError(errors.text(
                f"a captured function gives the storage of a tensor {size} bytes "
                f"({errors.user_line(2)})",
                f"tensor: {t.dtype.name}{list(t.shape)}, {extent} bytes",
                "give an input that is no view of another tensor the bytes that it needs, or 0"))
        self.sizes[id(t)] = size
        if size < extent:
            with _recording(self.level, False):
                t._data = ops.zeros_like(make(t._data))._data

    def written_input(self, t: Tensor) -> bool:
        """Has an input other values than those that it came with?"""
        return id(t) in self.first and self.first[id(t)] is not t._data

    def placed(self, t: Tensor) -> Tensor:
        """Told that the function asks where in memory a tensor lies; gives the one that has all of
        that memory.  Values of the graph begin where their memory does: so must the input."""
        root = root_of(t)
        given = self._came_with(root)
        if given is None:
            return root
        if not begins(self.recorder.arrays[given.node]):
            raise self.unfollowed(errors.text(
                "a captured function looks at places in the memory of a larger tensor, of which it "
                f"is given a part ({errors.user_line(2)})", describe(root),
                "count from the start of the part: as_strided() without an offset, on a clone()"))
        self.beginning.add(given)
        return root

    def strided(self, ov, flat: tuple):
        """`as_strided` that counts from the first element of a value which has all of its memory:
        what else there is at run time may lie elsewhere."""
        t, size, stride, start = flat
        root, item = root_of(t), t._data.dtype.itemsize
        given = self._came_with(root)
        if (t._link is not None or start is not None) and not (
                self.literal and start is not None and root._data is given):
            self.placed(t)  # else it is the memory of an input itself
        here = t._data.offset // item
        absolute = here if start is None else start
        if given is not None and t.dtype is root.dtype:
            if not (fills(given) or self.literal and root._data.strides == given.strides):
                return self._replaced(ov, lambda *_: shown_by_strides(
                    self._seen(root), make(given), (size, stride, absolute)), flat)
            self._refuse_beyond(root, size, stride, absolute)
        if self.literal or t._link is None and start is None:
            out = super().process(ov, (self._seen(t), *flat[1:]))
        elif t.dtype is root.dtype:
            out = super().process(ov, (self._seen(root), size, stride, absolute))
        elif absolute == here:
            out = super().process(ov, (self._seen(t), size, stride, None))
        else:
            raise self.unfollowed(errors.text(
                "a captured function looks at places in memory of another dtype "
                f"({errors.user_line(2)})", describe(t),
                "use as_strided() on the tensor that has the memory"))
        out._data.inner._data.offset = absolute * item  # its views may ask
        return out

    def _seen(self, t: Tensor) -> Tensor:
        """The value of a tensor, without history where nothing is recorded."""
        plain = not (state.record[self.level] or self.joined or self.recorder.origin)
        return self._untracked(t) if plain else make(t._data)

    def strided_in_place(self, t: Tensor, size, stride, start=None) -> None:
        """Told of `as_strided_`, which gives a tensor other places of its memory."""
        if t._link is not None:
            raise self.unfollowed(errors.text(
                f"as_strided_() of a view in a captured function ({errors.user_line(2)})",
                describe(t), "use as_strided()"))
        if start is not None:
            self.placed(t)
        self._refuse_beyond(t, size, stride, start or 0)

    def _came_with(self, root: Tensor):
        """What an input held, of itself or of the stand-in for what it was; None: it is none."""
        owner = self.stand_ins[id(root)][1] if id(root) in self.stand_ins else root
        given = self.first.get(id(owner))
        return given if given is not None and given.node in self.recorder.arrays else None

    def _refuse_beyond(self, root: Tensor, size, stride, start) -> None:
        """Refuse places that an input does not show, but the memory that it is a part of."""
        given = self._came_with(root)
        if given is None or 0 in size or self.literal and root._data.strides == given.strides:
            return
        reach = start + 1 + sum((n - 1) * s for n, s in zip(size, stride))
        if not fills(given) or prod(given.shape) < reach:
            raise self.unfollowed(errors.text(
                "a captured function looks at places in memory that its argument does not show "
                f"({errors.user_line(2)})", describe(root),
                "give it the tensor that has all of the memory"))

    def wrote_uncounted(self, t: Tensor) -> None:
        """Count a write through the `.data` of a tensor, which its version does not."""
        self.silent[cell_of(t)] = self.silent.get(cell_of(t), 0) + 1

    def _replaced(self, ov, replacement, flat):
        out = super()._replaced(ov, replacement, flat)
        if (self.literal if ov.in_rows else ov.op.lies != "channels"):
            return out
        raw = raw_of([map_tensors(self._value, v) for v in flat])
        lasts = {n: None if ov.in_rows else channels_last(raw, n) for n in (4, 5)}
        return map_tensors(lambda t: self._lying(t, lasts.get(t.ndim)), out)

    def _lying(self, t: Tensor, kind: str | None) -> Tensor:
        """A result in the memory format that its operator promises, whatever its parts give."""
        data = t._data.inner._data if self.mine(t) else None
        if type(data) is not Fake or is_arranged(data, kind):
            return t
        clone, wanted = overload("clone"), memory_format.known[kind or "contiguous_format"]
        return self._recorded(clone, (t, wanted), self.below(clone, (self._value(t), wanted)))
