"""An effect: something that a captured function did besides computing values.

A graph has values and nothing else.  What a function did to its inputs, to generators, to hooks and
to Python objects is a list of effects beside the graph.  A program asks each of them three things:
does a call still fit (`fits`), what to do before the native call (`prepare`), and what to do again
after it (`replay`).  The other files of this folder have one kind of effect each; `order.py` says
in which order they are replayed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...core.handle import Tensor
from ...threads.state import fast

if TYPE_CHECKING:
    from ..joint import Joint
    from ..node import CompiledNode
    from ..run import Program


class Call:
    """One call of a program: what it was given, and what has become of the native results."""

    __slots__ = ("program", "tensors", "arrays", "arguments", "results", "made", "done", "node",
                 "fused", "packs", "random", "old", "_answers")

    def __init__(self, program: Program, tensors: list[Tensor], arrays: list,
                 arguments: list | tuple):
        self.program, self.tensors, self.arrays = program, tensors, arrays
        self.arguments = arguments  # the user's own
        self.results: tuple = ()  # of the native call, saved values included
        self.made: list[Tensor] = []  # the results of the graph as tensors
        self.done: dict = {}  # the user's results that have been made of them
        self.node: CompiledNode | None = None  # its history
        self.fused = self.packs = False  # are gradients computed with it, are saved values packed?
        self.random: Any = None  # the state of the generator before
        self.old: list[tuple] = []  # values of inputs before they are written
        self._answers: list | None = None

    def stamp(self) -> None:
        """Let the history not mind what the function itself has written."""
        if self.node is not None:
            self.node.stamp = fast["CLOCK"]

    def answers(self) -> list:
        """The user's results, one by one."""
        if self._answers is None:
            self._answers = self.program.answers(self)
        return self._answers


class Effect:
    """Something that a captured function did besides computing values."""

    __slots__ = ()

    # may gradients be computed in the forward call of a function that does this?
    fuses = True

    def fits(self, joint: Joint, arguments: list[Tensor]) -> bool:
        """Can it be done to the arguments of a call as it was when the function was captured?"""
        return True

    def prepare(self, call: Call) -> None:
        """What comes before the native call."""

    def replay(self, call: Call) -> None:
        """Do it again, after the native call."""

    def sized(self, of: Callable[[Any], Any]) -> Effect:
        """The same where sizes are known; `of` gives what is to be in a value's place."""
        return self
