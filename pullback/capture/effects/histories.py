"""The history that a call of a captured function leaves: its node on the tape, and who has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.handle import cell_of
from ...core.tape import port
from ..node import generator_state
from ..saved_tensor_hooks import pack
from .effect import Call, Effect
from .results import give_history

if TYPE_CHECKING:
    from ..run import Program


@dataclass(slots=True)
class Record(Effect):
    """The node on the tape by which a call can be differentiated."""

    program: Program

    def prepare(self, call: Call) -> None:
        program = self.program
        call.random = generator_state() if program.random else None
        if program.kept:
            call.arrays = list(call.arrays)
            call.old = [(i, call.arrays[i].copy()) for i in program.kept]

    def replay(self, call: Call) -> None:
        program, made, count = self.program, call.made, self.program.count
        for k in program.inner:
            made[k].requires_grad_()
        if program.checked is None and not call.fused:
            program.look_at_saved()
        saved = call.results[count:]
        for i, array in call.old:
            call.arrays[i] = array
        if program.saved_copies and not call.fused:
            saved = list(saved)
            for k in program.saved_copies:
                saved[k - count] = saved[k - count].copy()
        if call.packs:
            saved = pack(program, saved, call.tensors)
        node = call.node = program.node(call.tensors, call.arrays, saved, call.fused)
        node.random = call.random
        if program.loose:
            node.shapes = [r.shape for r in call.results[:count]]
        if program.inner:
            node.edges += tuple([made[k]._edge for k in program.inner])
        node.cells = [cell_of(made[k]) for k in program.checked_outputs]
        tangents = program.joint.backward.tangent_of
        if len(tangents) == 1:
            made[tangents[0]]._edge = node
        else:
            for number, k in enumerate(tangents):
                made[k]._edge = port(node, number)


@dataclass(slots=True)
class UseUpHistory(Effect):
    """Results of the graph whose history a sweep inside of the function has used up."""

    outputs: list[int]

    def replay(self, call: Call) -> None:
        used = call.program.node(call.tensors, call.arrays, None, False)
        used.count = 1
        for k in self.outputs:
            call.made[k]._edge = used


@dataclass(slots=True)
class TakeHistory(Effect):
    """A view among the inputs with hooks: it gets the history of a result of the graph, in which
    these are."""

    input: int
    output: int

    def replay(self, call: Call) -> None:
        give_history(call.tensors[self.input], call.made[self.output])
