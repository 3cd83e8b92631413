"""What a capture gives: the joint graph, and beside it what the function did to its inputs.

`Joint` has it all; the records before it say what was read, written and adopted.  Read
next: `capture.py`, which makes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ..array.device import address, owner
from ..core.handle import Tensor
from ..core.state import sequence
from ..core.tape import Accumulate, Node
from ..graph.graph import Graph
from ..graph.graph_module import GraphModule
from .decisions import contents
from .effects.effect import Effect
from .effects.writes import Write, WriteInputs

if TYPE_CHECKING:
    from .shared_inputs import Root

_E = TypeVar("_E", bound=Effect)


class Identity(Node):
    """History of an input that is not a leaf: it may be written, its gradient goes to the input."""

    __slots__ = ()

    class _Rule:
        name, saves = "InputBackward", ()

    def __init__(self, source: Node, meta: tuple):
        self.edges, self.metas, self.saved, self.rule = (source,), (meta,), (), Identity._Rule
        self.hooks, self.where, self.stamp, self.level, self.seq = None, None, 0, 0, sequence()

    def apply(self, grads, needs):
        return [grads[0]]


def input_edge(t: Tensor, outer, data, collected: Callable):
    """The edge of a graph input that requires grad; only a real leaf refuses writes, and of others
    `collected` is called when a sweep would go on behind them."""
    leaf = Accumulate(t)
    if isinstance(outer, Accumulate):
        return leaf
    leaf.hooks = {"post": {0: collected}}
    return Identity(leaf, (data.shape, data.dtype))


@dataclass(slots=True)
class Read:
    """A tensor from outside whose values became part of the capture (`item()`, `tolist()`, `if`).

    The graph is right as long as they are the same.
    """

    tensor: Tensor
    was: tuple

    def fits(self, joint: Joint, arguments: list[Tensor]) -> bool:
        """Are they the same?"""
        return contents(self.tensor._data) == self.was


@dataclass(slots=True)
class Begins:
    """Inputs whose first element must be the first of their memory."""

    inputs: list[int]

    def fits(self, joint: Joint, arguments: list[Tensor]) -> bool:
        """Do they begin where their memory does?"""
        tensors = joint.inputs(arguments)
        return all(begins(tensors[i]._data) for i in self.inputs)


def begins(array: object) -> bool:
    """Is the first element of an array the first of its memory?"""
    return not isinstance(array, np.ndarray) or address(array) == address(owner(array))


@dataclass(slots=True)
class Adopted:
    """A tensor from outside during a capture: what it was, and what stands for it."""

    handle: Tensor
    data: object
    edge: object
    link: object
    cell: object
    box: object  # None if it follows from another input
    start: object  # its edge at the beginning of the capture
    first: object  # what it held then
    retains: bool  # did it keep its gradient before?
    hooks: object  # those that wait for its gradient to be complete


@dataclass(slots=True)
class Reviewed:
    """A tensor whose shape was changed in place, by `t_()` and the like."""

    handle: Tensor
    base: Tensor  # itself, or what its older views are views of
    steps: list[tuple]  # the views that it became, and whether these were recorded
    box: object  # what it holds if nothing was written


class Sizes:
    """The sizes of the arguments of a capture, and numbers among these, as symbols where wanted."""

    checks = False  # does the graph check what the function says about its data?
    data = False  # are sizes and numbers that depend on data symbols, too?

    def __init__(self, wanted: list[list], names: list[str], env=None, sources: list | None = None,
                 numbers: dict[int, tuple] | None = None, special: bool = False):
        from ..symbolic.env import ShapeEnv

        self.env = ShapeEnv() if env is None else env
        self.wanted, self.names = wanted, names
        self.sources = names if sources is None else sources  # what symbols are called after
        # position among all arguments -> (source, is it to be a symbol?)
        self.numbers, self.special = numbers or {}, special
        self.sizes: set[int] = set()  # those that are sizes or strides of a wrapper
        self.strides: dict[int, tuple] = {}  # and strides, which may follow from sizes
        self.made: dict = {}  # position -> what it has become
        self.shapes: list[tuple] = []  # of all tensor arguments, when the capture has begun

    def of(self, i: int, t: Tensor) -> Tensor:
        """The fake of an argument."""
        from ..graph.sizes import symbolic_input

        return symbolic_input(self.env, t, self.sources[i], i, self.wanted[i])

    def number(self, k: int, value):
        """An argument that is no tensor."""
        known = self.numbers.get(k)
        if known is None:
            return value
        from ..symbolic.env import Source

        source, wanted = known
        if not isinstance(value, (int, float)):
            pass  # a symbol from outside
        elif k in self.strides:
            value = self._stride(k, value)
        elif wanted:
            value = self.env.number(
                value, Source(source, k), special=self.special or k in self.sizes)
        self.shapes.append((value,))
        self.made[k] = value
        return value

    def _stride(self, k: int, value):
        """A stride of a wrapper, by its sizes where it follows from them."""
        from ..symbolic.views import following_strides

        places, dim, plan = self.strides[k]
        return following_strides(plan.size, plan.stride, [self.made[p] for p in places])[dim]


@dataclass
class Joint:
    """A captured function: a graph, its inputs, its effects and its guards."""

    out_spec: object
    # the graph: primals, tangents -> outputs, gradients
    module: GraphModule = None  # type: ignore[assignment]
    forward_count: int = 0  # graph outputs before the gradients
    tangent_of: list[int] = field(default_factory=list)  # graph output that each tangent belongs to
    grad_of: list[int] = field(default_factory=list)  # input that each gradient belongs to
    differentiable: bool = False
    # inputs: the arguments, then what the function found
    adopted: list = field(default_factory=list)  # tensors, their gradients, or places of tensors
    places: list | tuple | None = None  # where modules hold them, if they hold all; None: ask
    unique: list[int] | None = None  # the arguments that differ, None if all do
    roots: list[Root] = field(default_factory=list)  # memory that inputs share
    numbers: list[tuple] = field(default_factory=list)  # (array, function that says its value)
    # results and effects
    outputs: list = field(default_factory=list)  # Output or a plain value, in the user's flat order
    effects: list[Effect] = field(default_factory=list)  # in the order in which they are replayed
    late: list[tuple] = field(default_factory=list)  # (input or ~tangent, output) of the backward
    # guards
    input_guards: list = field(default_factory=list)  # gradients, hooks, places, values of inputs
    guards: list[Callable[[], bool]] = field(default_factory=list)  # what else must be as it was
    outside: Callable[[], bool] | None = None  # are variables with plain values as they were?
    decisions: GraphModule | None = None  # computes what the user's conditions were told
    answers: list = field(default_factory=list)  # what that was
    # gradients that are made by the user's own code, or make wrappers
    ruled: bool = False  # does the user's own code, in hooks or Functions, make gradients?
    wrapped: dict = field(default_factory=dict)  # gradients of which several make one wrapper
    sized_wrappers: dict = field(default_factory=dict)  # nodes of the sizes of those in `wrapped`
    # for gradients of gradients (`custom_functions.py`): the graph with custom functions and hooks
    # in it, where a hook was registered that it cannot have, where a tensor was written without
    # its history, and the forward as eager code runs it (`eager_forward.py`)
    grafted: GraphModule | None = None
    grafts_refused: tuple | None = None
    unrecorded_write: tuple | None = None
    eager_forward: Graph | None = None
    shapes: list = field(default_factory=list)  # of the user's flat outputs, with symbolic sizes
    # for PyTorch's convention (`convention.py`)
    leaves: list = field(default_factory=list)  # the user's flat outputs: nodes and plain values
    ends: list = field(default_factory=list)  # the node of each input, at the end
    members: set[int] = field(default_factory=set)  # inputs that follow from a root
    writes: list[tuple] = field(default_factory=list)  # nodes before and after (`mutations.py`)

    def __str__(self) -> str:
        """The graph as code, then effects, results and guards, one per line."""
        guards = [*self.input_guards, *self.guards, self.outside, self.decisions]
        lines = [
            self.module.code.strip(),
            *[f"# effect: {e}" for e in self.effects],
            *[f"# returns: {o}" for o in self.outputs],
            *[f"# guard: {g}" for g in guards if g is not None],
        ]
        return "\n".join(lines)

    def of(self, kind: type[_E]) -> list[_E]:
        """The effects of one kind."""
        return [e for e in self.effects if type(e) is kind]

    @property
    def mutated(self) -> list[Write]:
        """The inputs that the function wrote."""
        return [w for e in self.of(WriteInputs) for w in e.writes]

    def inputs(self, arguments: list[Tensor]) -> list[Tensor]:
        """The tensors that the graph wants."""
        own = arguments if self.unique is None else [arguments[i] for i in self.unique]
        return [*own, *self.found(arguments)]

    def found(self, arguments: list[Tensor]) -> list[Tensor]:
        """The tensors that the graph wants besides the arguments."""
        if self.places is None:
            self.places = not self.roots and [getattr(t, "place", None) for t in self.adopted]
            in_dicts = self.places and all(p and isinstance(p[0], dict) for p in self.places)
            self.places = self.places if in_dicts else ()
        if self.places:  # all of them are held by modules
            return [table.get(name) for table, name in self.places]
        return [r.found(arguments) for r in self.roots] + [
            t if isinstance(t, Tensor) else t.found(arguments) for t in self.adopted
        ]
