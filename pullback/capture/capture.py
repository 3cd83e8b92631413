"""Capture: run a function on fake tensors, the engine included, and get one joint graph without
mutation.

Tensors that the function reaches through closures or modules are *adopted*: while the capture runs,
their handles hold traced boxes like the inputs', so that they become inputs of the graph, take part
in autograd and may be written.  Read next: `joint.py`, the result; `cut/partition.py`, `run.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np

from .. import errors
from ..array.fake import Fake
from ..array.generator import Generator, default_generator
from ..array.lazy import ARRAYS, marks_of
from ..core import events, tape
from ..core.handle import Tensor, cell_of, make
from ..core.overload import overload
from ..cut.split import collector_paused
from ..graph.dialect import TABLE, Dialect
from ..graph.make_fx import Recorder, fake_of
from ..graph.traits import cost_of
from ..interp.box import map_flat
from ..interp.trace import Trace
from ..memory.links import Link, one_more
from ..python_state.module_tensors import Hooked, Snapshot
from ..python_state.own_arrays import own_tensors
from ..pytree import tree_flatten, tree_unflatten
from ..threads.blocks import exclusive_capture, restored_on_error, tied
from ..threads.state import state
from .custom_functions import Grafts
from .decisions import Decisions, below, drawn, sized_by_values, wanted
from .eager_forward import note_whole
from .effects.numbers import ReadNumber
from .finish import Ending
from .guards import Gradient, Read, contents
from .hooks import HooksInside, tables_of
from .inputs import StandIns
from .joint import Adopted, Joint, Sizes, input_edge
from .learnt_shapes import Learnt
from .memory import MemoryInside
from .results import retains
from .shared_inputs import Member
from .subclasses import Wrapped


class Postponed(Exception):
    """Raised in a capture by what must run once as it is before it can be captured."""


class Capture(Trace):
    """A trace that adopts the tensors it meets."""

    title = "a compiled function"
    adopts = True
    exports = False  # is the graph for other programs, which may call it with other shapes?
    postponed = Postponed

    def __init__(self, recorder, decompositions, decides: bool = False):
        super().__init__(recorder, True, decompositions)
        detach = overload("detach")
        self.apart = overload("alias") if self.decompositions.get(detach) else detach
        self.decides = decides  # may the function go by what it reads from tensors?
        self.decisions: Decisions | None = None
        self.adopted: list[Adopted] = []
        self.reads: list[Read] = []
        self.gradients: dict[int, Gradient] = {}  # by the identity of the tensor
        self.guards: list[Callable[[], bool]] = []
        self.numbers: list[ReadNumber] = []
        self.streams: dict[Generator, np.ndarray] = {}  # seeded inside: their states before
        self.first: dict[int, object] = {}  # what inputs held, by the identity of the handle
        self.starts: dict[int, object] = {}  # and their edges
        self.leaves: dict[int, bool] = {}  # of which it was asked: are they leaves?
        self.hooks, self.memory = HooksInside(self), MemoryInside(self)
        self.shared: dict[int, Member] = {}  # outside tensors that share memory with others
        self.learnt: Learnt | None = None  # about operators that have no fake
        self.functions: list[type] = []  # custom functions that were recorded
        self.grafts: Grafts | None = None  # calls and hooks with a backward of their own
        self.wholes: dict = {}  # what became of decompositions (`eager_forward.py`)
        self.joined = False  # are operators without a tape those of a history (a backward)?
        self.late = False  # is what is recorded the backward of the function?
        self.inputs: list[Tensor] = []  # when its backward is captured
        self.unrecorded_write = None  # where the user replaced values and not their history
        self._cuts: dict = {}
        self.diary = None  # of the memory that eager execution takes (`cut/eager_peak.py`)
        self.regions = 0  # parts of the function that a checkpoint asked to compute again

    def taken_apart(self, ov, flat, out):
        note_whole(self, ov, flat, out)

    @contextlib.contextmanager
    def region(self, wish="PREFER_RECOMPUTE"):
        """What is recorded inside gets a wish for the partitioner, unless it has one, and the
        number of the region.  Gives the list of these nodes, which grows.  A wish of ours, which
        is text, is not for draws."""
        recorder = self.recorder
        fresh: list = []
        before, recorder.fresh = recorder.fresh, fresh
        try:
            yield fresh
        finally:
            recorder.fresh = before
            if before is not None:
                before.extend(fresh)
            self.regions += 1
            for node in fresh:
                if wish.__class__ is str and cost_of(node.target) == "random":
                    continue
                node.meta.setdefault("recompute", wish)
                node.meta["ac_graph_id"] = self.regions

    def asks_leaf(self, t: Tensor) -> None:
        """The function goes by whether a tensor is a leaf."""
        start = self.starts.get(id(t))
        if start is not None and t._edge is start and self.convention.follows_python:
            self.leaves[id(t)] = isinstance(start, tape.Accumulate)

    def wrote_unrecorded(self, t: Tensor) -> None:
        """Values of a tensor were replaced and its history was not."""
        if t._edge is not None and not self.joined:
            self.unrecorded_write = self.unrecorded_write or errors.place()

    def cut(self, t: Tensor) -> Tensor:
        """The same value without history, marked in the graph: it may be differentiated again."""
        if t._edge is None or self.joined:
            return make(t._payload)
        node = t._payload.node
        found = self._cuts.get(node)
        if found is None:
            inner = t._payload.inner
            found = self.recorder.call(overload("detach"), (node,), inner)
            found.meta["cut"] = found.meta["silent"] = True  # no call of the user's
            self._cuts[node] = found
        return self.wrap(t._payload.inner, found)

    def follows(self, t: Tensor) -> Tensor:
        """A detached alias has the value of its source as it is."""
        return t

    def detached(self, t: Tensor) -> Tensor:
        """What the user's `detach()` gives: a node of its own."""
        node = self.recorder.call(self.apart, (t._payload.node,), t._payload.inner)
        if t._edge is not None and not self.joined:
            node.meta["cut"] = True
        return self.wrap(t._payload.inner, node)

    def called_function(self, cls, args: list, outs, before) -> None:
        """A custom function ran on tensors of the capture."""
        self.own_backwards().function(cls, args, outs, before)

    def own_backwards(self) -> Grafts:
        """What notes calls and hooks whose backward is the user's own code."""
        self.grafts = self.grafts or Grafts(self)
        return self.grafts

    def pull(self, node, grads, needs):
        self.hooks.sweeps = self.hooks.sweeps or not self.joined
        if self.grafts is None:
            return self.pull_alone(node, grads, needs)
        return self.grafts.pull(node, grads, needs)

    def pull_alone(self, node, grads, needs):
        """The same for any node of the tape."""
        return self.dialect.pull(self, super().pull, node, grads, needs)

    def record(self, ov, flat, out) -> None:
        super().record(ov, flat, out)
        self.dialect.recorded(self, flat, out)

    def _untracked(self, t: Tensor) -> Tensor:
        return self.cut(t) if t._edge is not None and self.mine(t) else t

    def was_read(self, t: Tensor) -> None:
        """The function looked at values of a tensor from outside."""
        self.reads.append(Read(t, contents(t._payload)))

    def known(self, node):
        found = super().known(node)
        if found is None and self.decides and wanted():
            found = self._decision(node)
        return found

    def _decision(self, node) -> Tensor | None:
        """The value of a node, which the program is for from here on."""
        self.decisions = self.decisions or Decisions(self.recorder)
        with below(self):
            return self.decisions.value(node)

    def recorded_effect(self, node) -> None:
        """It happens in the pass in which it was recorded, whatever it depends on."""
        node.meta["partitioner_tag"] = "must_be_in_backward" if self.late else "is_forward"

    def met_wrapper(self, t: Tensor) -> None:
        """A wrapper with a history comes from outside: the capture begins again with its parts."""
        raise Wrapped(t)

    def seeded(self, generator) -> None:
        """From here on its numbers are the same in every call: constants of the graph."""
        if generator not in self.streams:
            self.streams[generator] = generator.get_state()

    def restored(self, generator, saved) -> None:
        """The stream is taken back to a state from before (`fork_rng`), or set to another."""
        if self.streams is None:
            return  # the capture itself does that, at its end
        if generator in self.streams:
            if np.array_equal(self.streams[generator], saved):
                del self.streams[generator]
        elif any(getattr(n.target, "is_random", False) for n in self.recorder.graph.nodes):
            raise errors.DataDependentError(errors.text(
                "the captured function draws random numbers and then sets the state of a generator "
                f"({errors.user_line()})",
                cure="draw once and use the numbers twice, or seed inside of the function"))
        elif not np.array_equal(generator.get_state(), saved):
            self.seeded(generator)

    def decided(self, t: Tensor) -> Tensor | None:
        """The value of a tensor, as a decision."""
        if not self.mine(t):
            return t
        found = super().known(t._payload.node)
        return self._decision(t._payload.node) if found is None else found

    def constant(self, t: Tensor) -> Tensor:
        """A tensor with values that the graph may rely on."""
        return self.wrap(fake_of(t), self.recorder.constant(t))

    def made(self, t: Tensor) -> Tensor:
        """A tensor that the function makes from values."""
        return self.convention.made(self, t)

    def unfollowed(self, text: str, kind: type[Exception] = errors.TransformError) -> Exception:
        """A function that need not be a graph runs as it is written instead."""
        return self.convention.refusal(text, kind)

    def rebound_to(self, handle: Tensor, new: Tensor) -> bool:
        return super().rebound_to(handle, self.memory.written(handle, new))

    def _replaced(self, ov, replacement, flat):
        return self.memory.arranged(ov, flat, super()._replaced(ov, replacement, flat))

    on = {
        **Trace.on, events.FOLLOWS: follows, events.WROTE_UNRECORDED: wrote_unrecorded,
        events.ASKS_LEAF: asks_leaf, events.READ: was_read, events.MADE: made,
        events.SEEDS: seeded, events.RESTORES: restored,
        events.CALLED_FUNCTION: called_function, events.MET_WRAPPER: met_wrapper,
        # those of its parts
        events.RESHAPED: lambda level, *facts: level.memory.reshaped(*facts),
        events.TOOK_MEMORY: lambda level, *facts: level.memory.took_memory(*facts),
        events.TOOK_DATA: lambda level, *facts: level.memory.took_data(*facts),
        events.WROTE_UNCOUNTED: lambda level, *facts: level.memory.wrote_uncounted(*facts),
        events.UNPACKED: lambda level, *facts: level.memory.unpacked(*facts),
        events.HOOKED: lambda level, *facts: level.hooks.registered(*facts),
        events.HOOK_HANDLE: lambda level, *facts: level.hooks.keep_handle(*facts),
    }

    def wrap(self, value: Tensor, node) -> Tensor:
        if self.diary is None:
            return super().wrap(value, node)
        return make(self.diary.watched(self, value, node))

    def process(self, ov, flat):
        if self.diary is None or self.recorder.origin is not None:
            return self._processed(ov, flat)
        out = self._processed(ov, flat)
        self.diary.called(ov, flat, out)
        return out

    def _processed(self, ov, flat):
        if ov.op.ends_history and self.mine(flat[0]):
            return self.convention.detached(self, flat[0])
        if ov.is_view and ov.op.absolute and self.mine(flat[0]):
            return self.memory.strided(ov, flat, super().process)
        if not (state.record[self.level] or self.joined or self.recorder.origin):
            flat = map_flat(self._untracked, flat)
        if ov.custom and ov.lacks_fake and not self.exports and self.recorder.sizes is None:
            self.learnt = self.learnt or Learnt(self)
            out = self.learnt.called(ov, flat)
            if out is not None:
                return out
        if ov.is_random and self.streams:
            given = next((v for v in flat if type(v) is Generator), default_generator)
            if given in self.streams:
                return self._replaced(ov, lambda *flat: drawn(self, ov, flat), flat)
        try:
            return super().process(ov, flat)
        except errors.DataDependentError:
            if not self.decides:
                raise
            out = self._replaced(ov, lambda *flat: sized_by_values(self, ov, flat), flat)
            if out is None:
                raise
            return out

    def met_gradient(self, t: Tensor, replaced: bool) -> None:
        """The `.grad` of a tensor is about to be read or replaced."""
        if type(t._payload) in ARRAYS:
            self.note_gradient(t, t)
        gradient = self.gradients.get(id(t))
        if gradient is not None:
            gradient.matters = gradient.matters or not (replaced or gradient.replaced)
            gradient.replaced = gradient.replaced or replaced

    def note_gradient(self, t: Tensor, owner: Tensor | int) -> None:
        """Remember the `.grad` of a tensor as it was before."""
        if id(t) not in self.gradients:
            grad = None if t._record is None else t._record.grad
            self.gradients[id(t)] = Gradient(t, grad, owner)

    def guard(self, check: Callable[[], bool]) -> None:
        """The graph is right as long as this is so."""
        self.guards.append(check)

    def guard_tables(self, tables: list[dict]) -> None:
        """The graph is right as long as tables hold what they hold now, hooks for instance."""
        self.guard(Hooked(tables))

    def number(self, read: Callable[[], float]) -> Tensor:
        """A Python number that is an input of the graph: it is read again before every call."""
        array = np.array(read(), np.float64)
        t = make(array)
        self.numbers.append(ReadNumber(array, read))
        self.adopt(t)
        return t

    def original(self, t: Tensor):
        """What an adopted tensor held before; None if it was made inside."""
        return next((a.data for a in self.adopted if a.handle is t), None)

    def adopt(self, t: Tensor) -> None:
        """Make a tensor from outside an input of the graph."""
        data, edge, link, cell = t._payload, t._edge, t._link, t._cell
        if marks_of(data):
            raise self.unfollowed(errors.text(
                "a captured function uses a tensor from outside whose conjugation or negation is "
                f"put off: a graph takes memory as it is ({errors.user_line(2)})",
                f"tensor: {t.dtype.name}{list(t.shape)}",
                "give it t.resolve_conj().resolve_neg(), or take the conjugate inside"))
        came, hooks = tables_of(t), None if t._record is None else t._record.post_hooks
        if edge is not None or t._record is not None:
            self.note_gradient(t, t)
        box = self.wrap(fake_of(t), self.recorder.late_input(t))._payload
        member = self.shared.get(id(t))
        if member is None:
            t._payload, t._edge, t._link, t._cell = box, None, None, None
            self.first[id(t)] = box
            if edge is not None:
                t._edge = self.starts[id(t)] = input_edge(t, edge, data, self.hooks.came_to_input)
        else:
            made = member.handle(t)
            t._payload, t._edge = made._payload, made._edge
            t._link, t._cell = made._link, made._cell
            if made is member.root.input:  # written through views of it
                step = one_more(None, (overload("alias"), (), None))
                t._link = Link(made, step, False, None, cell_of(made).version)
                t._cell = made._cell
            box = None
        self.adopted.append(
            Adopted(t, data, edge, link, cell, box, t._edge, t._payload, retains(t), hooks))
        self.hooks.take(t, came)

    def __enter__(self):
        # hooks of saved tensors are for the run time
        self.packing, state.observers.saved_hooks = state.observers.saved_hooks, ()
        return super().__enter__()

    @tied
    def __exit__(self, *exc):
        state.observers.saved_hooks = self.packing
        self.give_back()
        Trace.__exit__(self, *exc)

    def give_back(self) -> None:
        """Let tensors from outside be what they were; a second time does nothing."""
        streams, self.streams = self.streams or {}, None
        for generator, before in streams.items():
            generator.set_state(before)
        for a in self.adopted:
            t = a.handle  # its writes count when the program runs
            t._payload, t._edge, t._link, t._cell = a.data, a.edge, a.link, a.cell
            if t._record is not None:
                t._record.retains, t._record.post_hooks = a.retains, a.hooks
        for g in self.gradients.values():
            if g.tensor._record is not None:
                g.tensor._record.grad = g.before


class CaptureRecorder(Recorder):
    """Names inputs `primals_N`; inputs may be added late."""

    def __init__(self):
        super().__init__(True)
        self.arrays: dict = {}  # the values of the inputs at hand
        self.inputs = 0
        self._last = self._tangent = None

    def input(self, value: Tensor, example: Tensor | None = None):
        self.inputs += 1
        self._last = self.placeholder(f"primals_{self.inputs}", value, example)
        self.arrays[self._last] = value._payload
        return self._last

    def constant(self, t: Tensor):
        if t._payload.__class__ is Fake and state.fakes.mode is None:
            raise AssertionError(errors.text(
                "Unexpected fake tensor: a captured function has met a tensor without data that "
                f"is none of its arguments ({errors.user_line(2)})",
                f"tensor: {t.dtype.name}{list(t.shape)}", "make it an argument"))
        return super().constant(t)

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
        with self.graph.inserting_after(self._tangent or self._last):
            self._tangent = self.placeholder(f"tangents_{number}", value)
        return self._tangent


@collector_paused()
def capture(
    function, flat: list, spec, decompositions: dict, decides: bool = False, roots=(),
    shared: dict | None = None, level: Capture | None = None, dialect: Dialect = TABLE,
    distinct: bool = False, sizes: Sizes | None = None, watch: bool = False,
    hooks: list | None = None
) -> Joint:
    """Trace a function of the given flat arguments into a joint graph.

    With `decides`, what the user's code reads from tensors is computed from these arguments.
    `roots` and `shared` (see `shared_inputs.py`) say which inputs share memory, where that matters.
    `level` is the trace to use, where it is not an ordinary one; `dialect` says what its graph is
    to look like. With `distinct` arguments that are the same tensor are inputs of their own. With
    `sizes` those of the arguments are symbols. With `watch` the module's `diary` says what eager
    execution has in memory (`cut/eager_peak.py`). `hooks` are those of inputs that sweeps of the
    function call, if it is known that they do (`hooks.py`).
    """
    ordinary = level is None
    level = level or Capture(CaptureRecorder(), decompositions, decides)
    recorder = level.recorder
    level.hooks.traced = hooks is not None
    level.speak(dialect)
    if watch:
        from ..cut.eager_peak import Diary

        level.diary = Diary()
    by_data = _symbolic(recorder, sizes)
    inputs = StandIns(level, flat, distinct)
    snapshot = Snapshot(*((function, *flat, *(hooks or ())) if ordinary else ()),
                        tensors_only=not (ordinary and dialect.convention.follows_python))
    with (exclusive_capture(), restored_on_error(level.give_back, snapshot.before.put_back),
          snapshot, level, by_data):
        level.shared = shared or {}
        inputs.begin(sizes, roots)
        given = inputs.arguments(sizes)
        args, kwargs = tree_unflatten(given, spec)
        snapshot.refuse_arguments(flat)
        with snapshot.watched():
            out = function(*args, **kwargs)
            out = snapshot.taken(out, given, tree_flatten((args, kwargs))[0])
            held = snapshot.before.results()
            snapshot.refuse_attributes(out, held, level)
            own = own_tensors(level, tree_flatten(out)[0]) if level.adopted else {}
            if ordinary:
                level.hooks.refuse_of_inputs()
            handles = [*inputs.handles, *[a.handle for a in level.adopted]]
            boxes = [*inputs.boxes, *[(a.box, a.start, a.first) for a in level.adopted]]
            ending = Ending(level, recorder, handles, boxes, out, held)
            joint = ending.program()
        snapshot.before.refuse(len(held))  # what its backward has done
    joint.module.diary = level.diary and level.diary.closed()
    joint.inputs.unique, joint.inputs.roots = inputs.merged(), list(roots)
    joint.inputs.adopted = [own.get(id(t), t) for t in joint.inputs.adopted]
    if sizes is not None:
        sizes.returned = [o._payload.shape if isinstance(o, Tensor) else () for o in ending.leaves]
    snapshot.looked_up(joint)
    return joint


def _symbolic(recorder: CaptureRecorder, sizes: Sizes | None) -> contextlib.AbstractContextManager:
    """Let a recorder have nodes for symbolic sizes; a block in which those by data are symbols."""
    if sizes is None:
        return contextlib.nullcontext()
    from ..graph.sizes import SizeNodes, sized_by

    recorder.sizes = SizeNodes(recorder, sizes.env, inputs_only=True)
    recorder.sizes.checks = sizes.checks
    return sized_by(recorder.sizes if sizes.data else None)
