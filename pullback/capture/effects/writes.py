"""Inputs that a captured function wrote, itself or through views, and how often."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...autograd.grad_mode import set_grad_enabled
from ...core.handle import INFERENCE, Tensor, cell_of
from ...memory.assign import assign
from ...memory.versions import mark_written
from ...memory.views import may_write
from .effect import Call, Effect


@dataclass(slots=True)
class Write:
    """An input that was written."""

    input: int
    output: int  # the graph output with its values
    tracked: bool  # has it a new history?
    count: int  # how many writes; 0 if another input counts them, that has the memory
    moved: bool = False  # does its handle look at other memory now (`x.data = y`)?
    silent: int = 0  # of the writes, those through `.data`, which no version counts
    recorded: bool = False  # is its new history that of the program?

    def put(self, call: Call) -> Tensor | None:
        """Write the new values; gives the tensor if its version is still to be counted."""
        t, new = call.tensors[self.input], call.made[self.output]
        if self.moved:
            _move(t, new._payload, call)
            if self.count:
                mark_written(t)
            if not self.tracked:
                return None
        if not self.count:
            t._edge = new._edge
        elif self.tracked:
            with set_grad_enabled(True):
                assign(t, new)
        else:
            if new._payload is not t._payload:  # not written in place
                np.copyto(t._payload, new._payload)
            if t._link is not None:
                t._link.seen = -1
            if self.count > self.silent:
                return t
        return None


def _move(t: Tensor, data, call: Call) -> None:
    """Let a handle look at other memory: an input's, or its own if a backward needs the value."""
    own = call.node is not None and all(data is not other._payload for other in call.tensors)
    t._payload = data.copy() if own else data


@dataclass(slots=True)
class RefuseWrites(Effect):
    """What must not be written, views of leaves and memory that others share, before all else."""

    writes: list[Write]

    def prepare(self, call: Call) -> None:
        for w in self.writes:
            if w.recorded:
                with set_grad_enabled(True):
                    may_write(call.tensors[w.input], True, 0)


@dataclass(slots=True)
class WriteInputs(Effect):
    """The inputs that the function wrote: all of them at once, for they count as one write."""

    writes: list[Write]

    fuses = False

    def replay(self, call: Call) -> None:
        uncounted = [t for w in self.writes if (t := w.put(call)) is not None]
        if uncounted:
            mark_written(*uncounted)
        for w in self.writes:
            if w.count - w.silent > 1:
                cell = cell_of(call.tensors[w.input])
                if cell is not INFERENCE:
                    cell.version += w.count - w.silent - 1
        call.stamp()


@dataclass(slots=True)
class CountWrites(Effect):
    """Versions of an input that were counted by writes to views of it."""

    input: int
    count: int

    def replay(self, call: Call) -> None:
        t = call.tensors[self.input]
        mark_written(t)
        if t._cell is not INFERENCE:
            t._cell.version += self.count - 1
        call.stamp()
