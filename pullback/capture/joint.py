"""What a capture gives: the joint graph, and beside it what the function did to its inputs.

`Joint` has it all; the records before it say what was read, written and adopted.  Read
next: `capture.py`, which makes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..core.handle import Tensor
from ..core.state import sequence
from ..core.tape import Accumulate, Node
from ..graph.graph import Graph
from ..graph.graph_module import GraphModule
from .decisions import contents

if TYPE_CHECKING:
    from .hooks import Listeners
    from .shared_inputs import Root


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

    @property
    def same(self) -> bool:
        return contents(self.tensor._data) == self.was


@dataclass(slots=True)
class Gradient:
    """The `.grad` of a tensor that a capture has met."""

    tensor: Tensor
    before: Tensor | None
    owner: Tensor | int  # whose gradient it is when the program runs: a tensor, or an argument
    matters: bool = False  # was it read before it was replaced?
    replaced: bool = False

    def concerns(self, inputs: set[int]) -> bool:
        """Has the function read, replaced or written it?  `inputs` are tensors that it met."""
        now = None if self.tensor._meta is None else self.tensor._meta.grad
        return (self.matters or self.replaced or now is not self.before
                or now is not None and id(now) in inputs)

    def found(self, arguments: list[Tensor]) -> Tensor | None:
        """The gradient that is there when the program runs."""
        meta = self.holder(arguments)._meta
        return None if meta is None else meta.grad

    def holder(self, arguments: list[Tensor]) -> Tensor:
        """The tensor that has it, when the program runs."""
        return arguments[self.owner] if type(self.owner) is int else self.owner

    def fits(self, arguments: list[Tensor]) -> bool:
        """Is there a gradient if and only if there was one?"""
        if self.replaced and not self.matters:
            return True
        return (self.found(arguments) is None) == (self.before is None)


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


@dataclass(slots=True)
class Mutation:
    """An input that was written."""

    input: int
    output: int  # the graph output with its values
    tracked: bool  # has it a new history?
    count: int  # how many writes; 0 if another input counts them, that has the memory
    moved: bool = False  # does its handle look at other memory now (`x.data = y`)?
    silent: int = 0  # of the writes, those through `.data`, which no version counts


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
    """A captured function."""

    module: GraphModule  # joint graph: primals, tangents -> outputs, gradients
    adopted: list[Tensor | Gradient]  # what became inputs after the user's own
    outputs: list  # Output or a plain value, in the order of the user's flat outputs
    out_spec: object
    mutated: list[Mutation]
    forward_count: int  # graph outputs before the gradients
    tangent_of: list[int]  # graph output that each tangent belongs to
    grad_of: list[int]  # input that each gradient belongs to
    differentiable: bool = False
    ruled: bool = False  # does the user's own code, in hooks or Functions, make gradients?
    held: list = field(default_factory=list)  # places in modules of the last outputs
    places: list | tuple | None = None  # where modules hold them, if they hold all; None: ask
    reads: list[Read] = field(default_factory=list)  # values from outside that it depends on
    swept: list[int] = field(default_factory=list)  # graph outputs whose history was used up inside
    gradients: list[Gradient] = field(default_factory=list)  # that were there, or not
    assigned: list[tuple] = field(default_factory=list)  # (gradient, graph output, tensor or None)
    guards: list[Callable[[], bool]] = field(default_factory=list)  # what else must be as it was
    outside: Callable[[], bool] | None = None  # are variables with plain values as they were?
    numbers: list[tuple] = field(default_factory=list)  # (array, function that says its value)
    decisions: GraphModule | None = None  # computes what the user's conditions were told
    answers: list = field(default_factory=list)  # what that was
    streams: list[tuple] = field(default_factory=list)  # generators, and how a call leaves them
    unique: list[int] | None = None  # the arguments that differ, None if all do
    roots: list[Root] = field(default_factory=list)  # memory that inputs share
    reviewed: list[tuple] = field(default_factory=list)  # (input, views that it became)
    sets: list[tuple] = field(default_factory=list)  # (input, output with its memory, writes)
    beginning: list[int] = field(default_factory=list)  # inputs at the start of their memory
    enlarged: list[int] = field(default_factory=list)  # inputs that resize_ moves to more memory
    grown: list[tuple] = field(default_factory=list)  # (input, bytes that its storage gets before)
    shrunk: list[tuple] = field(default_factory=list)  # (input, bytes that it keeps, writes before)
    began: list[int] = field(default_factory=list)  # inputs that were made to require grad
    ended: list[int] = field(default_factory=list)  # inputs that were detached in place
    bumped: list[tuple] = field(default_factory=list)  # (input, versions that no write explains)
    hooked: list[tuple] = field(default_factory=list)  # (input, kind, hook, handle) (`hooks.py`)
    heard: Listeners | None = None  # hooks of inputs that the function's own sweeps called
    handles: list[int] = field(default_factory=list)  # which outputs are handles of hooks
    owned: list[tuple] = field(default_factory=list)  # (input, output whose history it gets)
    retained: list[int] = field(default_factory=list)  # inputs that were told to keep gradients
    blurred: tuple | None = None  # where a tensor was written without its history
    # for gradients of gradients (`custom_functions.py`): the graph with custom functions and hooks
    # in it, and where a hook was registered that it cannot have
    grafted: GraphModule | None = None
    grafts_refused: tuple | None = None
    again: Graph | None = None  # the forward as eager code runs it (`forward_again.py`)
    wrapped: dict = field(default_factory=dict)  # gradients of which several make one wrapper
    late: list[tuple] = field(default_factory=list)  # (input or ~tangent, output) of the backward
    shapes: list = field(default_factory=list)  # of the user's flat outputs, with symbolic sizes
    sized_wrappers: dict = field(default_factory=dict)  # nodes of the sizes of those in `wrapped`
    # for PyTorch's convention (`convention.py`)
    leaves: list = field(default_factory=list)  # the user's flat outputs: nodes and plain values
    ends: list = field(default_factory=list)  # the node of each input, at the end
    members: set[int] = field(default_factory=set)  # inputs that follow from a root
    writes: list[tuple] = field(default_factory=list)  # nodes before and after (`mutations.py`)

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
