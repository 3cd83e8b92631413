"""`compile`, step by step: from a function and its arguments to a program of native code.

    decompose   an operator           what takes it apart, or None: it is asked while capturing
    capture     a function            a captured program: joint graph, inputs, effects, guards
    simplify    the joint graph       the same without repetitions, no-ops and dead code
    partition   the joint graph       forward and backward graph
    schedule    a graph               kernels and calls in the order in which they run
    emit        kernels and calls     C, and the plan of its memory
    run         all of them           a program, which is called with tensors

Every value can be printed, and every step is a field of `Pipeline` (what takes operators apart is
`decompositions`): `replace(pipeline, emit=...)` is another compiler, for all sizes.
`Pipeline.program` has the calls, those for single graphs are in `native`; `compile` (`api.py`) only
chooses the steps.  Read next: `capture/capture.py`, `cut/partition.py`, `schedule.py`, `unit.py`,
`capture/run.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..capture.build import Backend, Request, program_of
from ..capture.capture import capture
from ..graph.graph_module import GraphModule

if TYPE_CHECKING:
    from ..capture.joint import Joint
    from ..capture.run import Program
    from .schedule import Schedule
    from .unit import Unit


class Lazy:
    """The value of a step that runs when somebody first wants it."""

    def __init__(self, step: Callable, *given: Any):
        self.step, self.given = step, given

    def __call__(self) -> Any:
        if not hasattr(self, "value"):
            self.value = self.step(*[v() if isinstance(v, Lazy) else v for v in self.given])
        return self.value

    def __str__(self) -> str:
        return str(self())


def captured(function: Callable, request: Request, table: Any, steps: Pipeline) -> Joint:
    """What a function does with arguments, on tensors without data."""
    decides = steps.undecided is not None and not (request.sizes and request.sizes.data)
    return capture(
        function, request.flat, request.spec, table, decides, request.roots, request.shared,
        sizes=request.sizes, watch=steps.limited, hooks=request.hooks)


def scheduled(graph: GraphModule, name: str) -> Schedule:
    """The kernels of a graph."""
    from .backend import schedule_graph

    return schedule_graph(graph, name)


def emitted(kernels: Schedule, name: str) -> Unit:
    """The C text of kernels."""
    from .backend import emit_code

    return emit_code(kernels, name)


def loaded(graph: GraphModule, name: str, code: Callable[[GraphModule], Unit],
           known: bool) -> Callable:
    """A graph as native code, made by the steps before; from the disk if that may know it."""
    from .backend import compile_graph

    return compile_graph(graph, name, code, known)


@dataclass(kw_only=True)
class Pipeline(Backend):
    """The steps of `compile`, each a function that can be replaced by another."""

    decompositions: Any
    partition: Callable
    capture: Callable = captured
    schedule: Callable = scheduled
    emit: Callable = emitted
    load: Callable = loaded  # what makes a callable of a graph and its code
    run: Callable = program_of
    forward: Callable = None  # type: ignore[assignment]  # both are `native`, if nothing is given
    backward: Callable = None  # type: ignore[assignment]
    recalled: tuple = ()  # the steps of the programs that the disk knows (`recall`)

    def __post_init__(self) -> None:
        for name in ("forward", "backward"):  # after a replacement, with the steps of this one
            given = getattr(self, name)
            if given is None or getattr(given, "__func__", None) is Pipeline.native:
                setattr(self, name, self.native)

    def program(self, function: Callable, request: Request) -> Program:
        """A program for calls with arguments like these.

        Steps after the capture run when their results are first needed: a program that the disk
        knows is neither simplified nor cut, and a backward is compiled when it first runs.
        """
        table = self.decompositions
        program = self.capture(function, request, table, self)
        joint = Lazy(self.simplify, program.module)
        halves = Lazy(self.partition, joint, program.forward_count)
        steps = replace(self, simplify=lambda module: joint(),
                        partition=lambda module, count: halves())
        known = None
        if request.sizes is not None:
            joint()  # its symbols are known from the simplified graph
        elif self.recall is not None:
            known = self.recall(program, self.recalled == self.steps())
        return self.run(program, request, steps, known)

    def native(self, graph: GraphModule, name: str) -> Callable:
        """One graph of a program as a function of arrays."""

        def code(graph: GraphModule) -> Unit:  # asked again for other sizes
            kernels = self.schedule(graph, name)
            return self.emit(kernels, name)

        own = self.schedule is scheduled and self.emit is emitted
        return self.load(graph, name, code, own)

    def steps(self) -> tuple:
        """What makes native code of a captured program."""
        return self.simplify, self.partition, self.schedule, self.emit, self.load

    def remember(self, recall: Callable) -> None:
        """Ask the disk about programs; it is told whether the steps are those of now."""
        self.recall, self.recalled = recall, self.steps()
