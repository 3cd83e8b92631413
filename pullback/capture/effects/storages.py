"""Storages that a captured function resized, before it used them or after."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.handle import cell_of
from ...memory.storages import owner_of, refuse_held
from ...memory.versions import mark_written
from .effect import Call, Effect


@dataclass(slots=True)
class MoveToMoreMemory(Effect):
    """An input that `resize_` moves to more memory: nobody else may hold the old one."""

    input: int

    def prepare(self, call: Call) -> None:
        refuse_held(owner_of(call.tensors[self.input]))


@dataclass(slots=True)
class GrowStorage(Effect):
    """A storage that gets the bytes which the function needs, before the native call."""

    input: int
    size: int

    fuses = False

    def prepare(self, call: Call) -> None:
        call.tensors[self.input].untyped_storage().resize_(self.size)
        call.arrays = [t._payload for t in call.tensors]


@dataclass(slots=True)
class ShrinkStorage(Effect):
    """A storage of which the function keeps some bytes, or none."""

    input: int
    size: int
    writes: int  # how many there were before

    fuses = False

    def replay(self, call: Call) -> None:
        t = call.tensors[self.input]
        t.untyped_storage().resize_(self.size)
        if self.writes:
            mark_written(t)
            cell_of(t).version += self.writes - 1
