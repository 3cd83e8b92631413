"""The inputs of a capture: tensors without data that stand for the arguments of a call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..array import reals
from ..core.handle import Tensor, meta_of
from ..graph.make_fx import fake_of
from ..threads.state import state
from .hooks import tables_of
from .joint import Sizes, input_edge

if TYPE_CHECKING:
    from .capture import Capture
    from .shared_inputs import Root


class StandIns:
    """What stands for the arguments of a captured function.

    An argument that is given more than once is one input, unless all are to be `distinct`.  Memory
    that several share, a root, is an input behind them, of which they are views.
    """

    def __init__(self, level: Capture, flat: list, distinct: bool):
        self.level, self.flat, self.distinct = level, flat, distinct
        self.tensors = [v for v in flat if isinstance(v, Tensor)]
        self.firsts = {id(v): i for i, v in reversed(list(enumerate(self.tensors)))}
        count = len(self.tensors)
        self.unique = list(range(count)) if distinct else sorted(self.firsts.values())
        self.handles: list[Tensor] = []  # of arguments that differ, then of roots
        # (what it holds, None if that follows from another input; its edge; what it shows)
        self.boxes: list[tuple] = []

    def begin(self, sizes: Sizes | None, roots: Sequence[Root]) -> None:
        """Make them."""
        level, tensors, recorder = self.level, self.tensors, self.level.recorder
        fakes = {i: fake_of(tensors[i]) for i in self.unique}
        if sizes is not None:
            fakes = {i: sizes.of(i, t) for i, t in fakes.items()}
            sizes.shapes = [fakes[self.firsts[id(t)]]._payload.shape for t in tensors]
        if state.fakes.reals:
            for i, t in fakes.items():
                reals.beside(t, tensors[i])
        nodes = {i: recorder.input(tensors[i], fakes[i]) for i in self.unique}
        for root in roots:
            t = root.found(tensors)
            root.begin(t, level, recorder.input(t))
            level.first[id(root.input)] = root.input._payload
            if root.whole is not None:  # its values come from memory that has no history
                level.wrote_unrecorded(root.input)
        for i in self.unique:
            self._argument(i, fakes[i], nodes[i])
        self.handles += [r.input for r in roots]
        self.boxes += [(None if r.whole else r.input._payload, r.input._edge, r.input._payload)
                       for r in roots]

    def _argument(self, i: int, fake: Tensor, node) -> None:
        level, value = self.level, self.tensors[i]
        member = level.shared.get(id(value))
        if member is not None:
            t, box = member.handle(value), None
        else:
            t = level.wrap(fake, node)
            box = level.first[id(t)] = t._payload
            if value._edge is not None:
                t._edge = level.starts[id(t)] = input_edge(
                    t, value._edge, box, level.hooks.came_to_input)
        if value._record is not None:
            meta_of(t).grad = value._record.grad
        level.note_gradient(t, i)
        level.hooks.take(t, tables_of(value))
        self.handles.append(t)
        self.boxes.append((box, t._edge, t._payload))

    def arguments(self, sizes: Sizes | None) -> list:
        """What the function is called with, without structure."""
        made = dict(zip(self.unique, self.handles))
        numbers = (range(len(self.tensors)) if self.distinct
                   else [self.firsts[id(t)] for t in self.tensors])
        places = iter(numbers)
        found = [made[next(places)] if isinstance(v, Tensor) else v for v in self.flat]
        if sizes is not None and sizes.numbers:
            found = [sizes.number(k, v) for k, v in enumerate(found)]
            for k in sizes.numbers:
                self.level.recorder.sizes.given(k, found[k])
        return found

    def merged(self) -> list[int] | None:
        """The arguments that differ, None if all do."""
        return None if len(self.unique) == len(self.tensors) else self.unique
