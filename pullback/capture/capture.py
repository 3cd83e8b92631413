"""Capture: run a function on fake tensors, the engine included, and get one joint graph without
mutation.

Tensors that the function reaches through closures or modules are *adopted*: while the capture runs,
their handles hold traced boxes like the inputs', so that they become inputs of the graph, take part
in autograd and may be written.  Read next: `joint.py`, the result; `cut/partition.py`, `run.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from weakref import WeakSet

import numpy as np

from .. import errors
from ..array.fake import Fake
from ..array.generator import Generator, default_generator
from ..core import events, tape
from ..core.handle import Link, Tensor, cell_of, make, one_more
from ..core.hooks import RemovableHandle
from ..core.op import overload
from ..core.state import intact, state, tied, turn
from ..cut.settings import config
from ..cut.split import collector_paused
from ..graph.dialect import TABLE, standard
from ..graph.make_fx import Recorder, fake_of
from ..graph.traits import cost_of
from ..interp.box import map_tensors
from ..interp.trace import Trace
from ..memory.views import found_anew, link_detached, refresh
from ..python_state.module_tensors import Snapshot
from ..python_state.own_arrays import own_tensors
from ..pytree import tree_flatten, tree_unflatten
from .custom_functions import Grafts
from .decisions import Decisions, below, contents, drawn, sized_by_values, wanted
from .eager_forward import note_whole
from .effects.gradients import Gradient
from .finish import Ending
from .hooks import HookTracking, tables_of
from .inputs import StandIns
from .joint import Adopted, Joint, Read, Reviewed, Sizes, input_edge
from .memory import MemoryTracking
from .results import retains
from .shared_inputs import Member
from .subclasses import Wrapped


class Postponed(Exception):
    """Raised in a capture by what must run once as it is before it can be captured."""


class Capture(HookTracking, MemoryTracking, Trace):
    """A trace that adopts the tensors it meets."""

    title = "a compiled function"
    adopts = True

    def __init__(self, recorder, decompositions, decides: bool = False):
        super().__init__(recorder, True, decompositions)
        detach = overload("detach")
        self.apart = overload("alias") if self.decompositions.get(detach) else detach
        self.decisions = Decisions(recorder) if decides else None
        self.adopted: list[Adopted] = []
        self.reads: list[Read] = []
        self.gradients: dict[int, Gradient] = {}  # by the identity of the tensor
        self.guards: list[Callable[[], bool]] = []
        self.numbers: list[tuple[np.ndarray, Callable[[], float]]] = []
        self.streams: dict[Generator, np.ndarray] = {}  # seeded inside: their states before
        # what was an input before it changed its shape: (stand-in, input, changes before)
        self.stand_ins: dict[int, tuple] = {}
        self.first: dict[int, object] = {}  # what inputs held, by the identity of the handle
        self.starts: dict[int, object] = {}  # and their edges
        self.hooked: dict[tuple[int, str], dict] = {}  # (handle, kind) -> hooks of inputs
        self.given_hooks, self.input_hooks = {}, []
        self.handles: WeakSet[RemovableHandle] = WeakSet()
        self.views: dict[int, Reviewed] = {}  # by the identity of the handle
        self.sets: dict[int, tuple] = {}  # inputs that took other memory: (input, what it had)
        self.shared: dict[int, Member] = {}  # outside tensors that share memory with others
        self.functions: list[type] = []  # custom functions that were recorded
        self.grafts = Grafts(self)  # calls with a backward of their own
        self.wholes: dict = {}  # what became of decompositions (`eager_forward.py`)
        self.joined = False  # are operators without a tape those of a history (a backward)?
        self.late = False  # is what is recorded the backward of the function?
        self.moved: set[int] = set()  # handles whose `.data` was replaced
        self.together: set[int] = set()  # those of them, and of their sources, that share memory
        self.inputs: list[Tensor] = []  # when its backward is captured
        self.writes: list[tuple] = []  # nodes before and after each write; was it the backward's?
        self.sizes: dict[int, int] = {}  # of storages, in bytes, by tensor
        self.beginning: set = set()
        self.enlarged: set[int] = set()  # tensors that were given more memory by resize_
        self.silent: dict = {}  # writes that no version counts, by the cell that has it
        self.unrecorded_write = None  # where the user replaced values and not their history
        self.literal = False  # does the graph follow PyTorch's convention (`convention.py`)?
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

    def reshaped(self, t: Tensor, step: tuple, new, base: Tensor) -> None:
        """`t_()` and the like on a tensor of the capture: a change of metadata."""
        if self.late and any(t is h or t._data is h._data for h in self.inputs):
            raise AssertionError(errors.text(
                "Found an input that had its metadata mutated in the backward of a compiled "
                f"function: {step[0].name} in place ({errors.user_line(2)})",
                cure="let the backward make a view, without the underscore"))
        if step[0].name == "as_strided":
            self.strided_in_place(t, *step[1])
        known = self.views.get(id(t))
        if known is None:
            known = self.views[id(t)] = Reviewed(t, t, [], self.first.get(id(t)))
        if base is not known.base:  # it has older views, and these are views of that now
            known.base = base
            if id(base) not in self.first:  # and it is not the root of several inputs
                before = [(ov, rest, None) for ov, rest, _ in known.steps]
                self.stand_ins[id(base)] = (base, t, before)
        known.steps.append((*step, state.record[self.level]))
        if base is t and known.box is t._data:  # its values are those that it came with
            known.box = new

    def took_memory(self, t: Tensor, source: Tensor) -> None:
        """`t.set_(source)`: a detached alias from here on."""
        if source is t:
            cell_of(t).version += 1
            return
        if not self.mine(source):
            self.adopt(source)
        if source._link is not None:
            refresh(source)
        taken = set(self.sets)
        old = self.sets[id(t)][1] if id(t) in self.sets else None
        if old is None or any(o is old for o in (t, source)):
            old = found_anew(t)
            self.stand_ins[id(old)] = (old, t, [])
            self.sets[id(t)] = (t, old)
        else:
            found_anew(t)
        before = t._link.writes + 1 if id(t) in taken else 0
        link_detached(t, source)
        t._link.counts, t._link.writes = False, before  # the tensor keeps its own version
        t._link.silent = True
        t._data = self.cut(source)._data

    def wrote_unrecorded(self, t: Tensor) -> None:
        """Values of a tensor were replaced and its history was not."""
        if t._edge is not None and not self.joined:
            self.unrecorded_write = self.unrecorded_write or tape.place()

    def cut(self, t: Tensor) -> Tensor:
        """The same value without history, marked in the graph: it may be differentiated again."""
        if t._edge is None or self.joined:
            return make(t._data)
        node = t._data.node
        found = self._cuts.get(node)
        if found is None:
            inner = t._data.inner
            found = self.recorder.call(overload("detach"), (node,), inner)
            found.meta["cut"] = found.meta["silent"] = True  # no call of the user's
            self._cuts[node] = found
        return self.wrap(t._data.inner, found)

    def follows(self, t: Tensor) -> Tensor:
        """A detached alias has the value of its source as it is."""
        return t

    def detached(self, t: Tensor) -> Tensor:
        """What the user's `detach()` gives: a node of its own."""
        node = self.recorder.call(self.apart, (t._data.node,), t._data.inner)
        if t._edge is not None and not self.joined:
            node.meta["cut"] = True
        return self.wrap(t._data.inner, node)

    def called_function(self, cls, args: list, outs, before) -> None:
        """A custom function ran on tensors of the capture."""
        self.grafts.function(cls, args, outs, before)

    def pull(self, node, grads, needs):
        self.sweeps = self.sweeps or not self.joined
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
        self.reads.append(Read(t, contents(t._data)))

    def known(self, node):
        found = super().known(node)
        if found is None and self.decisions is not None and wanted():
            with below(self):
                found = self.decisions.value(node)
        return found

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
        found = super().known(t._data.node)
        if found is None:
            with below(self):
                found = self.decisions.value(t._data.node)
        return found

    def constant(self, t: Tensor) -> Tensor:
        """A tensor with values that the graph may rely on."""
        return self.wrap(fake_of(t), self.recorder.constant(t))

    def made(self, t: Tensor) -> Tensor:
        """A tensor that the function makes from values."""
        made = self.constant(t)
        if not self.literal:
            return made
        copy = overload("lift_fresh_copy")
        copy = overload("clone") if self.decompositions.get(copy) else copy
        node = self.recorder.call(copy, (made._data.node,), made)
        self.recorder.values[node] = t
        return self.wrap(made._data.inner, node)

    on = {
        **Trace.on, events.RESHAPED: reshaped, events.TOOK_MEMORY: took_memory,
        events.TOOK_DATA: MemoryTracking.took_data, events.FOLLOWS: follows,
        events.WROTE_UNRECORDED: wrote_unrecorded,
        events.WROTE_UNCOUNTED: MemoryTracking.wrote_uncounted,
        events.READ: was_read, events.MADE: made, events.UNPACKED: MemoryTracking.unpacked,
        events.SEEDS: seeded, events.RESTORES: restored,
        events.HOOKED: HookTracking.hook_registered, events.HOOK_HANDLE: HookTracking.keep_handle,
        events.CALLED_FUNCTION: called_function, events.MET_WRAPPER: met_wrapper,
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
        if ov.name == "detach" and self.mine(flat[0]):
            return self.detached(flat[0]) if self.literal else self.cut(flat[0])
        if ov.name == "as_strided" and self.mine(flat[0]):
            return self.strided(ov, flat)
        if not (state.record[self.level] or self.joined or self.recorder.origin):
            flat = tuple([map_tensors(self._untracked, v) for v in flat])
        if ov.is_random and config.functionalize_rng_ops:
            raise errors.CompileError(errors.text(
                f"{ov.op.base_name} cannot be functionalized: the CPU's generator has no state of "
                f"seed and offset ({errors.user_line()})",
                "config.functionalize_rng_ops is True",
                "set it to False: a seed gives the same numbers in eager and compiled code"))
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
        data, edge, link, cell = t._data, t._edge, t._link, t._cell
        came, hooks = tables_of(t), None if t._meta is None else t._meta.post_hooks
        if edge is not None or t._meta is not None:
            self.note_gradient(t, t)
        box = self.wrap(fake_of(t), self.recorder.late_input(t))._data
        member = self.shared.get(id(t))
        if member is None:
            t._data, t._edge, t._link, t._cell = box, None, None, None
            self.first[id(t)] = box
            if edge is not None:
                t._edge = self.starts[id(t)] = input_edge(t, edge, data, self.collected)
        else:
            made = member.handle(t)
            t._data, t._edge, t._link, t._cell = made._data, made._edge, made._link, made._cell
            if made is member.root.input:  # written through views of it
                step = one_more(None, (overload("alias"), (), None))
                t._link = Link(made, step, False, None, cell_of(made).version)
                t._cell = made._cell
            box = None
        self.adopted.append(
            Adopted(t, data, edge, link, cell, box, t._edge, t._data, retains(t), hooks))
        self.take_hooks(t, came)

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
            t._data, t._edge, t._link, t._cell = a.data, a.edge, a.link, a.cell
            if t._meta is not None:
                t._meta.retains, t._meta.post_hooks = a.retains, a.hooks
        for g in self.gradients.values():
            if g.tensor._meta is not None:
                g.tensor._meta.grad = g.before


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
        self.arrays[self._last] = value._data
        return self._last

    def constant(self, t: Tensor):
        if t._data.__class__ is Fake and state.fakes.mode is None:
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
    shared: dict | None = None, level: Capture | None = None, literal: bool = False,
    distinct: bool = False, sizes: Sizes | None = None, watch: bool = False,
    hooks: list | None = None
) -> Joint:
    """Trace a function of the given flat arguments into a joint graph.

    With `decides`, what the user's code reads from tensors is computed from these arguments.
    `roots` and `shared` (see `shared_inputs.py`) say which inputs share memory, where that matters.
    `level` is the trace to use, where it is not an ordinary one. With `literal` the graph is to be
    laid out as PyTorch does (`convention.py`), with `distinct` arguments that are the same tensor
    are inputs of their own. With `sizes` those of the arguments are symbols. With `watch` the
    module's `diary` says what eager execution has in memory (`cut/eager_peak.py`). `hooks` are
    those of inputs that sweeps of the function call, if it is known that they do (`hooks.py`).
    """
    ordinary = level is None
    level = level or Capture(CaptureRecorder(), decompositions, decides)
    recorder = level.recorder
    level.literal = literal
    level.traces_input_hooks = hooks is not None
    level.speak(standard("aot", level.keeps_composites) if literal else TABLE)
    if watch:
        from ..cut.eager_peak import Diary

        level.diary = Diary()
    by_data = _symbolic(recorder, sizes)
    inputs = StandIns(level, flat, distinct)
    snapshot = Snapshot(*((function, *flat, *(hooks or ())) if ordinary else ()),
                        tensors_only=not ordinary or literal and not decides)
    with turn(), intact(level.give_back, snapshot.before.put_back), snapshot, level, by_data:
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
            own = own_tensors(level, tree_flatten(out)[0])
            if ordinary:
                level.refuse_hooks_of_inputs()
            handles = [*inputs.handles, *[a.handle for a in level.adopted]]
            boxes = [*inputs.boxes, *[(a.box, a.start, a.first) for a in level.adopted]]
            joint = Ending(level, recorder, handles, boxes, out, held).program()
        snapshot.before.refuse(len(held))  # what its backward has done
    joint.module.diary = level.diary and level.diary.closed()
    joint.unique, joint.members, joint.roots = inputs.merged(), inputs.members(), list(roots)
    joint.adopted = [own.get(id(t), t) for t in joint.adopted]
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
