"""`CompiledNode`: the history of what a compiled function gives.

One node stands for the whole call.  Its backward is that of the program (`run.py`): the compiled
backward graph, the gradients that came with a fused loss, or the joint graph operator by operator
where the backward is recorded itself.
"""

from __future__ import annotations

import sys

import numpy as np

from .. import errors
from ..autograd import engine
from ..autograd.engine import accumulate, threads_running
from ..core.handle import Tensor, make
from ..core.tape import Accumulate, Node
from ..errors import freed
from ..threads.state import fast, state
from .saved_tensor_hooks import PackedValues


class CompiledNode(Node):
    """History of a compiled function's outputs."""

    __slots__ = ("arrays", "cells", "count", "fused", "program", "random", "shapes", "tensors")

    class _Rule:
        name, saves = "CompiledFunctionBackward", ()

    rule = _Rule
    hides_hooks = True

    @property
    def outputs(self) -> int:
        return self.count

    def apply(self, grads, needs):
        if self.saved is None:
            raise freed(self)
        program = self.program
        if state.record[0]:
            return program.differentiable_backward(self, grads)
        if self.fused:
            return program.scaled(self, grads)
        return program.backward(self, grads)

    def release(self) -> None:
        self.saved = self.tensors = self.arrays = self.cells = None

    @property
    def saved_tensors(self) -> tuple[Tensor, ...]:
        """What the backward will read, with marks where sizes are symbols."""
        if self.saved is None:
            raise freed(self)
        values = self.saved.open() if self.saved.__class__ is PackedValues else self.saved
        made = [make(v) if isinstance(v, np.ndarray) else None for v in values]
        if self.program.symbolic is not None and not self.fused:
            for t, dims in zip(made, self.program.symbolic.saved_marks()):
                if t is not None and dims:
                    mark_propagated(t, dims)
        return tuple([t for t in made if t is not None])

    def at_once(self, out: Tensor, keep) -> bool:
        """The backward of a loss whose gradients are there, into leaves: no sweep is needed."""
        if (
            not self.fused
            or self.saved is None
            or self.hooks is not None
            or out._record is not None
            or out._link is not None
            or fast["ACTIVE"]
            or fast["LEAFHOOKS"]
            or engine.WATCH is not None
            or threads_running()
        ):
            return False
        edges = self.edges
        for edge in edges:
            if edge.__class__ is not Accumulate or edge.hooks is not None:
                return False
            leaf = edge.leaf()
            if leaf is None or leaf._record is not None and leaf._record.post_hooks:
                return False
        self.program.waiting = 0
        gradients = [make(g) if g is not None else None for g in reversed(self.saved)]
        if not keep:
            self.release()
        for edge in edges:
            accumulate(edge, gradients, False, False)
        return True


CompiledNode.__name__ = CompiledNode.__qualname__ = "CompiledFunctionBackward"


def mark_propagated(t: Tensor, dims: frozenset) -> None:
    """Say of a result that sizes of it were symbols, for functions that get it next."""
    known = t.__dict__.get(_PROPAGATED)
    t.__dict__[_PROPAGATED] = set(dims) if known is None else known | dims


_PROPAGATED = "_dynamo_propagated_dynamic_indices"


def users_place(depth: int) -> tuple:
    """Where the call was written; modules, and the general way, are between."""
    frame = sys._getframe(depth + 1)
    while frame.f_back is not None and not errors.is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_code, frame.f_lasti


def generator_state():
    """The state of the default generator, to draw the same numbers once more."""
    from ..array.random import default_generator

    return default_generator.get_state()


class same_random_numbers:
    """Draw from a given state, and go on from the present one afterwards."""

    def __init__(self, given):
        self.given = given

    def __enter__(self):
        if self.given is not None:
            from ..array.random import default_generator

            self.present = default_generator.get_state()
            default_generator.set_state(self.given)

    def __exit__(self, *exc):
        if self.given is not None:
            from ..array.random import default_generator

            default_generator.set_state(self.present)
