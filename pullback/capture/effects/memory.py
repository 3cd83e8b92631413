"""Inputs that a captured function gave other memory, by `set_()`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...autograd.grad_mode import set_grad_enabled
from ...core.handle import cell_of
from .effect import Call, Effect
from .results import Output


@dataclass(slots=True)
class TakeMemory(Effect):
    """An input that took the memory of another tensor."""

    input: int
    source: Output
    writes: int  # how many there were to the input

    fuses = False

    def replay(self, call: Call) -> None:
        t, node = call.tensors[self.input], call.node
        old = t._edge
        with set_grad_enabled(False):
            t.set_(self.source.make(call))
        if node is not None:  # gradients arrive at leaves with the new memory
            new, owners = t._edge, call.program.joint.backward.grad_of
            node.edges = tuple([
                new if edge is old or k < len(owners) and owners[k] == self.input else edge
                for k, edge in enumerate(node.edges)])
        if self.writes:
            cell_of(t).version += self.writes

    def sized(self, of: Callable[[Any], Any]) -> Effect:
        return TakeMemory(self.input, of(self.source), self.writes)
