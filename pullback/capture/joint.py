"""What a capture gives: the joint graph, and beside it what the function did to its inputs.

`Joint` has it all; the records before it say what its parts are.  Read next: `capture.py`, which
makes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from ..core.handle import Tensor
from ..core.tape import Accumulate, Node
from ..graph.graph import Graph
from ..graph.graph_module import GraphModule
from ..threads.state import sequence
from .effects.effect import Effect
from .effects.writes import Write, WriteInputs
from .guards import Guards

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


def input_edge(t: Tensor, outer, data, on_arrival: Callable):
    """The edge of a graph input that requires grad; only a real leaf refuses writes, and of others
    `on_arrival` is called when a sweep would go on behind them."""
    leaf = Accumulate(t)
    if isinstance(outer, Accumulate):
        return leaf
    leaf.hooks = {"post": {0: on_arrival}}
    return Identity(leaf, (data.shape, data.dtype))


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
class Reshaped:
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
        self.returned: list[tuple] = []  # those of the user's flat results, at its end

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
class Inputs:
    """The inputs of a joint graph: arguments, memory that several share, then what was found."""

    unique: list[int] | None = None  # the arguments that differ, None if all do
    roots: list[Root] = field(default_factory=list)  # memory that inputs share
    adopted: list = field(default_factory=list)  # tensors, their gradients, or places of tensors
    _places: list | tuple | None = None  # where modules hold these, if they hold all; None: ask

    def of(self, arguments: list[Tensor]) -> list[Tensor]:
        """The tensors that the graph wants."""
        own = arguments if self.unique is None else [arguments[i] for i in self.unique]
        return [*own, *self.found(arguments)]

    def found(self, arguments: list[Tensor]) -> list[Tensor]:
        """The tensors that the graph wants besides the arguments."""
        if self._places is None:
            places = not self.roots and [getattr(t, "place", None) for t in self.adopted]
            in_dicts = places and all(p and isinstance(p[0], dict) for p in places)
            self._places = places if in_dicts else ()
        if self._places:  # all of them are held by modules
            return [table.get(name) for table, name in self._places]
        return [r.found(arguments) for r in self.roots] + [
            t if isinstance(t, Tensor) else t.found(arguments) for t in self.adopted
        ]


@dataclass
class RecordedBackward:
    """What a backward that is recorded itself runs, for gradients of gradients."""

    forward: Graph | None = None  # as eager code runs it (`eager_forward.py`)
    # the joint graph with custom functions and hooks in it (`custom_functions.py`)
    grafted: GraphModule | None = None
    refused: tuple | None = None  # why it must not run: (what the function does, where, the cure)


@dataclass
class Backward:
    """The second half of a joint graph: whose tangents it takes, whose gradients it gives."""

    tangent_of: list[int] = field(default_factory=list)  # graph output that each tangent belongs to
    grad_of: list[int] = field(default_factory=list)  # input that each gradient belongs to
    late: list[tuple] = field(default_factory=list)  # what it writes: (input or ~tangent, output)
    ruled: bool = False  # does the user's own code, in hooks or Functions, make gradients?
    wrapped: dict = field(default_factory=dict)  # gradients of which several make one wrapper
    wrapper_sizes: dict = field(default_factory=dict)  # nodes of the sizes of those
    recorded: RecordedBackward = field(default_factory=RecordedBackward)


@dataclass
class Joint:
    """A captured function: a graph, its inputs, its effects and its guards."""

    out_spec: object
    # primals, tangents -> outputs, gradients
    module: GraphModule = None  # type: ignore[assignment]
    forward_count: int = 0  # graph outputs before the gradients
    inputs: Inputs = field(default_factory=Inputs)
    outputs: list = field(default_factory=list)  # Output or a plain value, in the user's flat order
    backward: Backward = field(default_factory=Backward)
    effects: list[Effect] = field(default_factory=list)  # in the order in which they are replayed
    guards: Guards = field(default_factory=Guards)

    def __str__(self) -> str:
        """The graph as code, then effects, results and guards, one per line."""
        lines = [
            self.module.code.strip(),
            *[f"# effect: {e}" for e in self.effects],
            *[f"# returns: {o}" for o in self.outputs],
            *[f"# guard: {g}" for g in self.guards],
        ]
        return "\n".join(lines)

    @property
    def differentiable(self) -> bool:
        """Has it a backward?"""
        return bool(self.backward.tangent_of)

    def of(self, kind: type[_E]) -> list[_E]:
        """The effects of one kind."""
        return [e for e in self.effects if type(e) is kind]

    @property
    def mutated(self) -> list[Write]:
        """The inputs that the function wrote."""
        return [w for e in self.of(WriteInputs) for w in e.writes]
