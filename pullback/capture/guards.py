"""What a captured function depends on: the signature of its arguments, and guards beside it.

`key_of` gives an argument's part of a signature.  What else a program is for is a guard: it asks
`fits` of the inputs of a call, or is a function without arguments.  Effects may have conditions of
their own (`effects/effect.py`).  Read next: `run.py`, which asks them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..array.device import address, owner
from ..core.handle import Tensor
from ..core.tape import Accumulate
from ..graph.graph_module import GraphModule
from ..memory.views import refresh

if TYPE_CHECKING:
    from .joint import Joint

_ndarray = np.ndarray


def key_of(value) -> tuple:
    """What the graph depends on, for one argument."""
    if isinstance(value, Tensor):
        if value._link is not None:
            refresh(value)
        data = value._payload
        flags = getattr(data, "flags", None)  # a tensor without data has none
        contiguous = value.is_contiguous() if flags is None else flags.c_contiguous
        # results lie as inputs do, and only some can be looked at in another shape
        return data.shape, data.dtype, value._edge is not None, contiguous or data.strides
    kind = type(value)
    if kind is slice:
        return kind, (value.start, value.stop, value.step)
    if kind is _ndarray:
        return kind, (value.shape, value.dtype)  # nothing is captured for them
    if kind is float and (not value or value != value):
        return kind, repr(value)  # zeros have signs, and any NaN is NaN
    try:
        hash(value)
    except TypeError:
        return kind, Same(value)
    return kind, value


class Same:
    """Something that has no hash, by its identity."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __repr__(self) -> str:
        return repr(self.value)


def aliases(tensors: list[Tensor]):
    """Which arguments are the same object; None if all differ."""
    ids = [id(t) for t in tensors]
    return None if len(set(ids)) == len(ids) else tuple(ids.index(i) for i in ids)


def contents(array) -> tuple:
    """Everything that Python can read from an array."""
    return array.shape, array.dtype, array.tobytes()


@dataclass
class Guards:
    """What a captured function depends on, beside the signature of its arguments."""

    inputs: list = field(default_factory=list)  # gradients, hooks, places, values of inputs
    python: list[Callable[[], bool]] = field(default_factory=list)  # what else must be as it was
    decisions: GraphModule | None = None  # computes what the user's conditions were told
    answers: list = field(default_factory=list)  # what that was

    def __iter__(self) -> Iterator:
        return iter([*self.inputs, *self.python, *filter(None, [self.decisions])])


@dataclass(slots=True)
class Read:
    """A tensor from outside whose values became part of the capture (`item()`, `tolist()`, `if`).

    The graph is right as long as they are the same.
    """

    tensor: Tensor
    was: tuple

    def fits(self, joint: Joint, arguments: list[Tensor]) -> bool:
        """Are they the same?"""
        return contents(self.tensor._payload) == self.was


@dataclass(slots=True)
class SameLeaves:
    """Inputs of which the function asked, or by whose kind it went: leaves, or with a history."""

    inputs: list[tuple[int, bool]]  # (input, is it a leaf?)

    def fits(self, joint: Joint, arguments: list[Tensor]) -> bool:
        """Are they of the same kinds?"""
        tensors = joint.inputs.of(arguments)
        return all(isinstance(tensors[i]._edge, Accumulate) is leaf for i, leaf in self.inputs)


@dataclass(slots=True, eq=False)
class Gradient:
    """The `.grad` of a tensor that a capture has met, which is to be there again or not at all."""

    tensor: Tensor
    before: Tensor | None
    owner: Tensor | int  # whose gradient it is when the program runs: a tensor, or an argument
    matters: bool = False  # was it read before it was replaced?
    replaced: bool = False

    @property
    def now(self) -> Tensor | None:
        """What is there at the end of the capture."""
        return None if self.tensor._record is None else self.tensor._record.grad

    def concerns(self, inputs: set[int]) -> bool:
        """Has the function read, replaced or written it?  `inputs` are tensors that it met."""
        now = self.now
        return (self.matters or self.replaced or now is not self.before
                or now is not None and id(now) in inputs)

    def found(self, arguments: list[Tensor]) -> Tensor | None:
        """The gradient that is there when the program runs."""
        meta = self.holder(arguments)._record
        return None if meta is None else meta.grad

    def holder(self, arguments: list[Tensor] | tuple) -> Tensor:
        """The tensor that has it, when the program runs."""
        return arguments[self.owner] if type(self.owner) is int else self.owner

    def fits(self, joint: Joint, arguments: list[Tensor]) -> bool:
        """Is there a gradient if and only if there was one?"""
        if self.replaced and not self.matters:
            return True
        return (self.found(arguments) is None) == (self.before is None)


@dataclass(slots=True)
class AtStartOfMemory:
    """Inputs whose first element must be the first of their memory."""

    inputs: list[int]

    def fits(self, joint: Joint, arguments: list[Tensor]) -> bool:
        """Do they begin where their memory does?"""
        tensors = joint.inputs.of(arguments)
        return all(begins(tensors[i]._payload) for i in self.inputs)


def begins(array: object) -> bool:
    """Is the first element of an array the first of its memory?"""
    return not isinstance(array, np.ndarray) or address(array) == address(owner(array))
