"""Capture: run a function on fake tensors, the engine included, and get one joint graph without
mutation.

Tensors that the function reaches through closures or modules are *adopted*: while the capture runs,
their handles hold traced boxes like the inputs', so that they become inputs of the graph, take part
in autograd and may be written.  Read next: `partition.py`, `runtime.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .. import errors
from ..autograd.engine import grad as engine_grad
from ..autograd.engine import node_of
from ..core.generator import Generator, default_generator
from ..core.handle import Tensor, make, meta_of
from ..core.pytree import tree_flatten, tree_unflatten
from ..core.state import sequence, state
from ..core.surface import refresh
from ..core.tape import Accumulate, Node
from ..fx.graph_module import GraphModule
from ..fx.make_fx import Recorder, fake_of
from ..interp.trace import Trace
from .decisions import Decisions, below, contents, drawn, sized_by_values, users_own


class Postponed(Exception):
    """Raised in a capture by what must run once as it is before it can be captured."""


class Identity(Node):
    """History of an input that is not a leaf: it may be written, its gradient goes to the input."""

    __slots__ = ()

    class _Rule:
        name, saves = "InputBackward", ()

    def __init__(self, source: Accumulate, meta: tuple):
        self.edges, self.metas, self.saved, self.rule = (source,), (meta,), (), Identity._Rule
        self.hooks, self.where, self.stamp, self.level, self.seq = None, None, 0, 0, sequence()

    def apply(self, grads, needs):
        return [grads[0]]


class Capture(Trace):
    """A trace that adopts the tensors it meets."""

    title = "a compiled function"
    adopts = True

    def __init__(self, recorder, decompositions, decides: bool = False):
        super().__init__(recorder, True, decompositions)
        self.decisions = Decisions(recorder) if decides else None
        self.adopted: list[Adopted] = []
        self.reads: list[Read] = []
        self.gradients: dict[int, Gradient] = {}  # by the identity of the tensor
        self.guards: list[Callable[[], bool]] = []
        self.numbers: list[tuple[np.ndarray, Callable[[], float]]] = []
        self.streams: dict[Generator, np.ndarray] = {}  # seeded inside: their states before

    def was_read(self, t: Tensor) -> None:
        self.reads.append(Read(t, contents(t._data)))

    def known(self, node):
        found = super().known(node)
        if found is None and self.decisions is not None and users_own():
            with below(self):
                found = self.decisions.value(node)
        return found

    def seeded(self, generator) -> None:
        """From here on its numbers are the same in every call: constants of the graph."""
        if generator not in self.streams:
            self.streams[generator] = generator.get_state()

    def restored(self, generator, saved) -> None:
        if np.array_equal(self.streams.get(generator), saved):  # as `fork_rng` does
            del self.streams[generator]

    def decided(self, t: Tensor) -> Tensor | None:
        """The value of a tensor, as a decision."""
        if not self.mine(t):
            return t
        found = super().known(t._data.node)
        if found is None:
            with below(self):
                found = self.decisions.value(t._data.node)
        return found

    def constant(self, t: Tensor) -> Tensor:
        """A tensor with values that the graph may rely on."""
        return self.wrap(fake_of(t), self.recorder.constant(t))

    fresh = constant

    def process(self, ov, flat):
        if ov.is_random and self.streams:
            given = next((v for v in flat if type(v) is Generator), default_generator)
            if given in self.streams:
                return self._replaced(ov, lambda *flat: drawn(self, ov, flat), flat)
        try:
            return super().process(ov, flat)
        except errors.DataDependentError:
            if self.decisions is None:
                raise
            out = self._replaced(ov, lambda *flat: sized_by_values(self, ov, flat), flat)
            if out is None:
                raise
            return out

    def met_gradient(self, t: Tensor, replaced: bool) -> None:
        """The `.grad` of a tensor is about to be read or replaced."""
        if type(t._data) is np.ndarray:
            self.note_gradient(t, t)
        gradient = self.gradients.get(id(t))
        if gradient is not None:
            gradient.matters = gradient.matters or not (replaced or gradient.replaced)
            gradient.replaced = gradient.replaced or replaced

    def note_gradient(self, t: Tensor, owner: Tensor | int) -> None:
        """Remember the `.grad` of a tensor as it was before."""
        if id(t) not in self.gradients:
            self.gradients[id(t)] = Gradient(t, None if t._meta is None else t._meta.grad, owner)

    def guard(self, check: Callable[[], bool]) -> None:
        """The graph is right as long as this is so."""
        self.guards.append(check)

    def number(self, read: Callable[[], float]) -> Tensor:
        """A Python number that is an input of the graph: it is read again before every call."""
        array = np.array(read(), np.float64)
        t = make(array)
        self.numbers.append((array, read))
        self.adopt(t)
        return t

    def original(self, t: Tensor):
        """What an adopted tensor held before; None if it was made inside."""
        return next((a.data for a in self.adopted if a.handle is t), None)

    def adopt(self, t: Tensor) -> None:
        """Make a tensor from outside an input of the graph."""
        data, edge, link = t._data, t._edge, t._link
        if edge is not None or t._meta is not None:
            self.note_gradient(t, t)
        box = self.wrap(fake_of(t), self.recorder.late_input(t))._data
        t._data, t._edge, t._link = box, None, None
        if edge is not None and state.record[self.level]:
            t._edge = input_edge(t, edge, data)
        cell = t._cell
        version = None if cell is None else (cell.version, cell.stamps, cell.where)
        self.adopted.append(Adopted(t, data, edge, link, box, t._edge, version))

    def __exit__(self, *exc):
        streams, self.streams = self.streams, {}
        for generator, before in streams.items():
            generator.set_state(before)
        for a in self.adopted:
            a.handle._data, a.handle._edge, a.handle._link = a.data, a.edge, a.link
            if a.version is not None:  # writes count when the program runs
                cell = a.handle._cell
                cell.version, cell.stamps, cell.where = a.version
            else:
                a.handle._cell = None
        for g in self.gradients.values():
            if g.tensor._meta is not None:
                g.tensor._meta.grad = g.before
        return super().__exit__(*exc)


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
    box: object
    start: object  # its edge at the beginning of the capture
    version: tuple | None  # of its memory


def input_edge(t: Tensor, outer, data):
    """The edge of a graph input that requires grad; only a real leaf refuses writes."""
    leaf = Accumulate(t)
    return leaf if isinstance(outer, Accumulate) else Identity(leaf, (data.shape, data.dtype))


class CaptureRecorder(Recorder):
    """Names inputs `primals_N`; inputs may be added late."""

    def __init__(self):
        super().__init__(True)
        self.arrays: dict = {}  # the values of the inputs at hand
        self.inputs = 0
        self._last = None

    def input(self, value: Tensor):
        self.inputs += 1
        self._last = self.placeholder(f"primals_{self.inputs}", value)
        self.arrays[self._last] = value._data
        return self._last

    def late_input(self, value: Tensor):
        """An input found during the capture, placed behind the ones before it."""
        first = next(iter(self.graph.nodes), None)
        if first is None:
            return self.input(value)
        point = (
            self.graph.inserting_after(self._last)
            if self._last
            else self.graph.inserting_before(first)
        )
        with point:
            return self.input(value)

    def tangent(self, number: int, value: Tensor):
        """The gradient of an output, an input of the joint graph."""
        with self.graph.inserting_after(self._last):
            self._last = self.placeholder(f"tangents_{number}", value)
        return self._last


@dataclass
class Output:
    """What to return for one tensor output of the user's function."""

    kind: str  # "graph": a graph output; "input": an input itself; "alias": a view of an input
    index: int  # position among graph outputs, or of the input
    chain: tuple = ()  # views to replay on that input
    requires_grad: bool = False


@dataclass
class Joint:
    """A captured function."""

    module: GraphModule  # joint graph: primals, tangents -> outputs, gradients
    adopted: list[Tensor | Gradient]  # what became inputs after the user's own
    outputs: list  # Output or a plain value, in the order of the user's flat outputs
    out_spec: object
    mutated: list[tuple[int, int, bool]]  # (input, graph output, tracked)
    forward_count: int  # graph outputs before the gradients
    tangent_of: list[int]  # graph output that each tangent belongs to
    grad_of: list[int]  # input that each gradient belongs to
    differentiable: bool = False
    reads: list[Read] = field(default_factory=list)  # values from outside that it depends on
    swept: list[int] = field(default_factory=list)  # graph outputs whose history was used up inside
    gradients: list[Gradient] = field(default_factory=list)  # that were there, or not
    assigned: list[tuple] = field(default_factory=list)  # (gradient, graph output, tensor or None)
    guards: list[Callable[[], bool]] = field(default_factory=list)  # what else must be as it was
    numbers: list[tuple] = field(default_factory=list)  # (array, function that says its value)
    decisions: GraphModule | None = None  # computes what the user's conditions were told
    answers: list = field(default_factory=list)  # what that was
    streams: list[tuple] = field(default_factory=list)  # generators, and how a call leaves them

    def found(self, arguments: list[Tensor]) -> list[Tensor]:
        """The tensors that the graph wants besides the arguments."""
        return [t.found(arguments) if type(t) is Gradient else t for t in self.adopted]


def capture(function, flat: list, spec, decompositions: dict, decides: bool = False) -> Joint:
    """Trace a function of the given flat arguments into a joint graph.

    With `decides`, what the user's code reads from tensors is computed from these arguments.
    """
    recorder = CaptureRecorder()
    level = Capture(recorder, decompositions, decides)
    with level:
        handles, boxes, inputs = [], [], []
        for value in flat:
            if not isinstance(value, Tensor):
                inputs.append(value)
                continue
            t = level.wrap(fake_of(value), recorder.input(value))
            if value._edge is not None and state.record[level.level]:
                t._edge = input_edge(t, value._edge, value._data)
            if value._meta is not None:
                meta_of(t).grad = value._meta.grad
            level.note_gradient(t, len(handles))
            handles.append(t)
            boxes.append((t._data, t._edge))
            inputs.append(t)
        args, kwargs = tree_unflatten(inputs, spec)
        out = function(*args, **kwargs)
        handles += [a.handle for a in level.adopted]
        boxes += [(a.box, a.start) for a in level.adopted]
        return _finish(level, recorder, handles, boxes, out)


def _finish(level: Capture, recorder, handles, boxes, out) -> Joint:
    """Outputs, mutations and gradients of a function that has just been run."""
    leaves, out_spec = tree_flatten(out)
    # where gradients of each input arrive; its handle may have been overwritten since
    starts = [e.edges[0] if isinstance(e, Identity) else e for _, e in boxes]
    graph_outputs, values, outputs, mutated = [], [], [], []
    by_handle = {id(t): i for i, t in enumerate(handles)}
    for i, (t, (box, start)) in enumerate(zip(handles, boxes)):
        if t._data is not box:
            # a leaf that was written while nothing was recorded is a leaf still
            tracked = t._edge is not None and not (t._edge is start and t._edge is starts[i])
            mutated.append((i, len(graph_outputs), tracked))
            graph_outputs.append(level.node(t))
            values.append(t if tracked else make(t._data))
    for o in leaves:
        outputs.append(_describe(level, o, by_handle, graph_outputs, values))
    assigned = _assigned(level, graph_outputs, values)
    grads = {id(g.before): g for g in level.gradients.values() if g.before is not None}
    joint = Joint(
        None,
        [grads.get(id(a.handle), a.handle) for a in level.adopted],
        outputs,
        out_spec,
        mutated,
        len(graph_outputs),
        [],
        [],
    )
    joint.streams = [(g, g.get_state()) for g in level.streams]
    joint.reads, joint.guards, joint.numbers = level.reads, level.guards, level.numbers
    joint.gradients, joint.assigned = list(level.gradients.values()), assigned
    varying = [(k, v) for k, v in enumerate(values) if v._edge is not None]
    joint.swept = [k for k, v in varying if _used_up(v)]
    varying = [(k, v) for k, v in varying if k not in joint.swept]
    chosen = [(i, s) for i, s in enumerate(starts) if s is not None]
    if joint.swept:
        joint.grad_of = [i for i, _ in chosen]
    if varying and chosen:
        tangents = [
            level.wrap(fake_of(v), recorder.tangent(n + 1, v)) for n, (_, v) in enumerate(varying)
        ]
        joint.tangent_of = [k for k, _ in varying]
        sources = [make(boxes[i][0], s) for i, s in chosen]
        grads = engine_grad([v for _, v in varying], sources, tangents, allow_unused=True)
        joint.grad_of = [i for i, _ in chosen]
        graph_outputs += [None if g is None else level.node(g) for g in grads]
        joint.differentiable = True
    if level.decisions is not None:
        joint.decisions, joint.answers = level.decisions.module(), level.decisions.answers()
    joint.module = recorder.module(tuple(graph_outputs), "joint")
    return joint


def _assigned(level, graph_outputs: list, values: list) -> list[tuple]:
    """The gradients that the function has left in tensors' `.grad`, as outputs of the graph."""
    out = []
    for g in level.gradients.values():
        now = None if g.tensor._meta is None else g.tensor._meta.grad
        if now is g.before:
            continue
        if now is not None and level.mine(now):
            out.append((g, len(graph_outputs), None))
            graph_outputs.append(level.node(now))
            values.append(make(now._data))
        else:
            out.append((g, None, now))
    return out


def _used_up(t: Tensor) -> bool:
    """Has a sweep inside of the function used up the history of an output?"""
    todo, seen = [node_of(t._edge)], set()
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.saved is None:
            return True
        todo += [node_of(e) for e in node.edges]
    return False


def _describe(level, o, by_handle, graph_outputs, values):
    if not isinstance(o, Tensor):
        return o
    if o._link is not None:
        refresh(o)
    if id(o) in by_handle:
        return Output("input", by_handle[id(o)])
    link = o._link
    if link is not None and id(link.base) in by_handle and not link.multi and _replays(link.chain):
        return Output("alias", by_handle[id(link.base)], link.chain)
    node = level.node(o)
    for k, v in enumerate(values):
        if v is o:
            return Output("graph", k, (), o._edge is not None)
    graph_outputs.append(node)
    values.append(o)
    return Output("graph", len(graph_outputs) - 1, (), o._edge is not None)


def _replays(chain: tuple) -> bool:
    """Can the views be made again outside of the graph?  Not if a tensor of it says where."""
    return not any(isinstance(a, Tensor) for _, rest, _ in chain for a in rest)
