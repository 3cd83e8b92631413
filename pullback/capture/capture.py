"""Capture: run a function on fake tensors, the engine included, and get one joint graph without
mutation.

Tensors that the function reaches through closures or modules are *adopted*: while the capture runs,
their handles hold traced boxes like the inputs', so that they become inputs of the graph, take part
in autograd and may be written.  Read next: `joint.py`, the result; `cut/partition.py`, `run.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from weakref import WeakSet

import numpy as np

from .. import errors
from ..array import reals
from ..array.fake import Fake, contiguous_strides
from ..array.generator import Generator, default_generator
from ..array.layout import strides_order
from ..array.size import from_data
from ..autograd.gradients import grad as engine_grad
from ..core import events, tape
from ..core.handle import Link, Tensor, cell_of, make, meta_of, one_more
from ..core.hooks import RemovableHandle
from ..core.op import overload
from ..core.state import intact, state, tied, turn, uncast
from ..core.tape import Accumulate
from ..cut.settings import config
from ..cut.split import collector_paused
from ..graph.dialect import TABLE, standard
from ..graph.make_fx import Recorder, fake_of
from ..graph.traits import cost_of
from ..interp.box import map_tensors
from ..interp.trace import Trace
from ..memory.views import _recording, found_anew, link_detached, refresh
from ..python_state.module_tensors import Holding
from ..python_state.own_arrays import unseen
from ..python_state.side_effects import flattened
from ..pytree import tree_flatten, tree_unflatten
from .accumulation import Collected
from .custom_functions import Grafts
from .decisions import Decisions, below, contents, drawn, sized_by_values, wanted
from .forward_again import forward_of, note_whole
from .hooks import Hooking, check_handles, left, tables_of
from .joint import Adopted, Gradient, Identity, Joint, Mutation, Read, Reviewed, Sizes, input_edge
from .memory import Placing
from .results import Output, Results, assigned, has_history, hooked, retains, root_of, used_up
from .shared_inputs import Member
from .subclasses import Wrapped, is_wrapper, spread


class Postponed(Exception):
    """Raised in a capture by what must run once as it is before it can be captured."""


class Capture(Hooking, Placing, Trace):
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
        self.came, self.ears = {}, []
        self.handles: WeakSet[RemovableHandle] = WeakSet()
        self.views: dict[int, Reviewed] = {}  # by the identity of the handle
        self.sets: dict[int, tuple] = {}  # inputs that took other memory: (input, what it had)
        self.shared: dict[int, Member] = {}  # outside tensors that share memory with others
        self.functions: list[type] = []  # custom functions that were recorded
        self.grafts = Grafts(self)  # calls with a backward of their own
        self.wholes: dict = {}  # what became of decompositions (`forward_again.py`)
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
        self.blurred = None  # the user's place where values were replaced and a history was not
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
            self.blurred = self.blurred or tape.place()

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
        events.TOOK_DATA: Placing.took_data, events.FOLLOWS: follows,
        events.WROTE_UNRECORDED: wrote_unrecorded,
        events.WROTE_UNCOUNTED: Placing.wrote_uncounted,
        events.READ: was_read, events.MADE: made, events.UNPACKED: Placing.unpacked,
        events.SEEDS: seeded, events.RESTORES: restored,
        events.HOOKED: Hooking.hook_registered, events.HOOK_HANDLE: Hooking.keep_handle,
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
        self.listen(t, came)

    def __enter__(self):
        self.packing, state.packing = state.packing, ()  # they are for the run time
        return super().__enter__()

    @tied
    def __exit__(self, *exc):
        state.packing = self.packing
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
        if t._data.__class__ is Fake and state.faking is None:
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
    level.listens = hooks is not None
    level.speak(standard("aot", level.keeps_composites) if literal else TABLE)
    if watch:
        from ..cut.eager_peak import Diary

        level.diary = Diary()
    by_data: contextlib.AbstractContextManager = contextlib.nullcontext()
    if sizes is not None:
        from ..graph.sizes import SizeNodes, sized_by

        recorder.sizes = SizeNodes(recorder, sizes.env, inputs_only=True)
        recorder.sizes.checks = sizes.checks
        by_data = sized_by(recorder.sizes if sizes.data else None)
    tensors = [v for v in flat if isinstance(v, Tensor)]
    firsts = {id(v): i for i, v in reversed(list(enumerate(tensors)))}
    unique = list(range(len(tensors))) if distinct else sorted(firsts.values())
    holding = Holding(*((function, *flat, *(hooks or ())) if ordinary else ()),
                      tensors_only=not ordinary or literal and not decides)
    with turn(), intact(level.give_back, holding.before.put_back), holding, level, by_data:
        level.shared = shared or {}
        fakes = {i: fake_of(tensors[i]) for i in unique}
        if sizes is not None:
            fakes = {i: sizes.of(i, t) for i, t in fakes.items()}
            sizes.shapes = [fakes[firsts[id(t)]]._data.shape for t in tensors]
        if state.reals:
            for i, t in fakes.items():
                reals.beside(t, tensors[i])
        nodes = {i: recorder.input(tensors[i], fakes[i]) for i in unique}
        for root in roots:
            t = root.found(tensors)
            root.begin(t, level, recorder.input(t))
            level.first[id(root.input)] = root.input._data
            if root.whole is not None:  # its values come from memory that has no history
                level.wrote_unrecorded(root.input)
        handles, boxes, made = [], [], {}
        for i in unique:
            value = tensors[i]
            member = level.shared.get(id(value))
            if member is not None:
                t, box = member.handle(value), None
            else:
                t = level.wrap(fakes[i], nodes[i])
                box = level.first[id(t)] = t._data
                if value._edge is not None:
                    t._edge = level.starts[id(t)] = input_edge(
                        t, value._edge, box, level.collected)
            if value._meta is not None:
                meta_of(t).grad = value._meta.grad
            level.note_gradient(t, i)
            level.listen(t, tables_of(value))
            handles.append(t)
            boxes.append((box, t._edge, t._data))
            made[i] = t
        handles += [r.input for r in roots]
        boxes += [(None if r.whole else r.input._data, r.input._edge, r.input._data)
                  for r in roots]
        given = iter(range(len(tensors)) if distinct else [firsts[id(t)] for t in tensors])
        inputs = [made[next(given)] if isinstance(v, Tensor) else v for v in flat]
        if sizes is not None and sizes.numbers:
            inputs = [sizes.number(k, v) for k, v in enumerate(inputs)]
            for k in sizes.numbers:
                recorder.sizes.given(k, inputs[k])
        args, kwargs = tree_unflatten(inputs, spec)
        holding.refuse_arguments(flat)
        with holding.watched():
            out = function(*args, **kwargs)
            out = holding.taken(out, inputs, tree_flatten((args, kwargs))[0])
            held = holding.before.results()
            holding.refuse_attributes(out, held, level)
            own = unseen(level, tree_flatten(out)[0])
            if ordinary:
                level.overheard()
            handles += [a.handle for a in level.adopted]
            boxes += [(a.box, a.start, a.first) for a in level.adopted]
            joint = _finish(level, recorder, handles, boxes, out, held)
        holding.before.refuse(len(held))  # what its backward has done
    joint.module.diary = level.diary and level.diary.closed()
    joint.unique = None if len(unique) == len(tensors) else unique
    joint.roots = list(roots)
    joint.adopted = [own.get(id(t), t) for t in joint.adopted]
    holding.looked_up(joint)
    joint.members = {n for n, i in enumerate(unique) if id(tensors[i]) in (shared or {})}
    return joint


def _finish(level: Capture, recorder, handles, boxes, out, held: list) -> Joint:
    """Outputs, mutations and gradients of a function that has just been run; `held` is what it
    left in modules."""
    leaves, out_spec = flattened(out)
    leaves += [leaf for _, values in held for leaf in values]
    if any(map(is_wrapper, leaves)):
        raise Wrapped
    lazy = next((v for v in leaves if isinstance(v, Iterator)), None)
    if lazy is not None:
        raise errors.DataDependentError(errors.text(
            f"a captured function returned a {type(lazy).__name__}, which would run when the "
            f"capture is over ({errors.user_line()})", cure="return a list: list(...)"))
    joint = Joint(None, [], [], out_spec, [], 0, [], [], held=[slot for slot, _ in held])
    # where gradients of each input arrive; its handle may have been overwritten since
    starts = [_start(e) for _, e, _ in boxes]
    results = Results(level, handles, [o for o in leaves if isinstance(o, Tensor)])
    taken_from: list[tuple] = []
    for i, (t, (box, start, _)) in enumerate(zip(handles, boxes)):
        if results.by_handle[id(t)] != i:  # the root of a group is an argument, too
            continue
        if t._link is not None and not (  # PyTorch does not look at inputs that nobody used
                level.literal and box is None and not t._link.apart and id(t) not in level.views):
            with _recording(level.level, False):
                refresh(t)
        size = level.sizes.get(id(t))
        if size is not None:
            if id(t) in level.sets or size < t.numel() * t._data.dtype.itemsize:
                count = 0 if id(t) in level.sets or t._cell is None else t._cell.version
                joint.shrunk.append((i, size, count))
                if id(t) not in level.sets:
                    continue
            else:
                joint.grown.append((i, size))
        taken = level.sets.get(id(t))
        if id(t) in level.enlarged:
            joint.enlarged.append(i)
        if taken is not None:
            old = taken[1]
            if level.literal and t._edge is not None and t._edge is not start:
                raise AssertionError(errors.text(
                    f"input {i} took other memory by set_(), but the input has other mutations "
                    "that we cannot keep inside of the graph: it was written while autograd "
                    "recorded", cure="write it under no_grad(), or before set_()"))
            if root_of(t) is not old:
                taken_from.append((i, t._link))
            if old._data is not box and size is None:
                joint.mutated.append(Mutation(i, len(results.nodes), False, old._cell.version))
                results.add(make(old._data))
            continue
        if start is None and isinstance(t._edge, Accumulate) and t._edge.leaf() is t:
            joint.began.append(i)
            starts[i] = t._edge
        view = level.views.get(id(t))
        if view is not None:
            joint.reviewed.append((i, view.steps))
            box = view.box if box is not None else None
            if view.base is not t and box is not None:  # compare what has the memory
                box = t._data if view.base._data is box else view.base
        if start is not None and t._edge is None and (view is not None or t._link is None):
            joint.ended.append(i)
        tracked = t._edge is not start and not isinstance(t._edge, Accumulate) and (
            i not in joint.ended)
        link = t._link
        if view is not None and id(view.base) in level.stand_ins:
            link = view.base._link  # it was turned in place, and is a view of what it was
        apart = box is None and link is not None and link.apart
        if apart and link.writes:
            joint.bumped.append((i, link.writes))
        if box is None and not (tracked and apart):
            if tracked and hooked(t):
                joint.owned.append((i, results.add(t)))
            continue  # what it holds follows from another input
        if t._data is not box:
            if view is not None:
                tracked = t._edge is not None and t._edge is not start
            moved = id(t) in level.moved
            count = 0 if apart else 1 - moved if t._cell is None else t._cell.version
            if count:  # changes of shape are counted when they are made again
                count -= results.turns(t)
            joint.mutated.append(
                Mutation(i, len(results.nodes), tracked, count, moved,
                         level.silent.get(t._cell, 0)))
            results.add(t if tracked else make(t._data))
        elif t._cell is not None and t._cell.version > results.turns(t):
            joint.bumped.append((i, t._cell.version - results.turns(t)))  # by views of it
        if t._data is box and view is not None and hooked(t):
            joint.owned.append((i, results.add(t)))
    if level.literal and not any(has_history(t) for t in (*results.values, *results.outputs)):
        results.give_views()
    joint.outputs = [results.place(o) if isinstance(o, Tensor) else
                     results.number(o) if from_data((o,), marked=False) else o for o in leaves]
    for i, link in taken_from:
        of = results.place(link.base)
        joint.sets.append((i, Output("view", 0, of, link.chain, apart=True), link.writes))
    if level.literal:
        joint.leaves = [level.node(o) if isinstance(o, Tensor) else o for o in leaves]
        joint.ends = [level.node(t) for t in handles]
    joint.assigned = assigned(level, results.nodes, results.values)
    joint.forward_count = len(results.nodes)
    joint.streams = [(g, g.get_state()) for g in level.streams]
    joint.beginning = [
        i for i, t in enumerate(handles) if level.first.get(id(t)) in level.beginning]
    joint.reads, joint.guards, joint.numbers = level.reads, level.guards, level.numbers
    inputs = {id(a.handle) for a in level.adopted}
    joint.gradients = [g for g in level.gradients.values() if g.concerns(inputs)]
    joint.blurred, joint.writes = level.blurred, level.writes
    joint.hooked = left(level, results.by_handle)
    joint.heard = level.heard(results.by_handle)
    level.deafen()
    joint.handles = [k for k, o in enumerate(leaves) if isinstance(o, RemovableHandle)]
    if not level.literal:
        check_handles(level)
    kept = {id(a.handle) for a in level.adopted if a.retains}
    joint.retained = [i for i, t in enumerate(handles) if retains(t) and id(t) not in kept]
    varying = [(k, v) for k, v in enumerate(results.values) if has_history(v)]
    joint.swept = [k for k, v in varying if used_up(v)]
    varying = [(k, v) for k, v in varying if k not in joint.swept]
    if level.literal:
        varying = _in_order(varying, joint)
    last = {s: i for i, s in enumerate(starts) if s is not None}  # roots come after arguments
    chosen = [(i, starts[i]) for i in sorted(last.values())]
    if joint.swept:
        joint.grad_of = [i for i, _ in chosen]
    chosen += [(~o.index, results.values[o.index]._edge) for o in results.placed.values()
               if o.leaf and o.kind == "graph"]
    if varying and chosen:
        tangents = [
            level.wrap(t, recorder.tangent(n + 1, t))
            for n, t in enumerate([make(_dense(fake_of(v)._data)) for _, v in varying])
        ]
        joint.tangent_of = [k for k, _ in varying]
        sources = [make(boxes[i][2] if i >= 0 else results.values[~i]._data, s) for i, s in chosen]
        before = [t._data for t in handles], [t._data for t in tangents]
        level.joined = level.late = True
        level.inputs = handles
        with contextlib.ExitStack() as modes:
            _autocast(modes)
            collected = modes.enter_context(Collected(level, handles))
            grads = engine_grad([v for _, v in varying], sources, tangents, allow_unused=True)
            grads = collected.added_to(grads, [i for i, _ in chosen])
        results.nodes += spread(level, joint, chosen, grads)
        joint.differentiable = True
        _written_late(level, joint, results.nodes, zip(handles, before[0]),
                      zip(tangents, before[1]))
    else:
        for node in recorder.graph.nodes:
            node.meta.pop("cut", None)
    if recorder.sizes is not None:
        joint.shapes = [o._data.shape if isinstance(o, Tensor) else () for o in leaves]
        joint.leaves = recorder.sizes.of_forward(joint.leaves)
    if level.decisions is not None:
        joint.decisions, joint.answers = level.decisions.module(), level.decisions.answers()
    grads = {id(g.before): g for g in level.gradients.values() if g.before is not None}
    # those that only the backward met, too
    joint.adopted = [grads.get(id(a.handle), a.handle) for a in level.adopted]
    joint.module = recorder.module(tuple(results.nodes), "joint")
    if joint.differentiable:
        joint.grafted = level.grafts.module(joint.module)
        joint.grafts_refused, joint.ruled = level.grafts.refused, level.grafts.ruled
        if joint.grafted is None and not joint.sets:  # there memory has another's history
            joint.again = forward_of(joint.module, joint.forward_count, level.wholes)
    return joint


def _written_late(level, joint: Joint, nodes: list, inputs, tangents) -> None:
    """What the backward wrote (a custom function's, for instance): outputs after the gradients."""
    written = [(i, t) for i, (t, old) in enumerate(inputs) if t._data is not old]
    written += [(~i, t) for i, (t, old) in enumerate(tangents) if t._data is not old]
    for number, t in written:
        if t._link is None:
            joint.late.append((number, len(nodes) - joint.forward_count))
            nodes.append(level.node(t))


def _autocast(modes: contextlib.ExitStack) -> None:
    """The autocast of a backward: that of its forward, unless settings say otherwise."""
    wanted = config.backward_pass_autocast
    if wanted == "off":
        modes.enter_context(uncast())
    elif wanted != "same_as_forward":
        from ..amp import autocast

        for options in wanted:
            modes.enter_context(autocast(**options))


def _dense(data: Fake) -> Fake:
    """The layout that the gradient of an output is assumed to have: its own, without gaps."""
    if not all(type(s) is int for s in data.strides):
        return data  # symbolic sizes are not to be compared
    order = strides_order(data.shape, data.strides)
    if not config.guess_tangent_strides_as_outputs and order not in ((0, 2, 3, 1), (0, 2, 3, 4, 1)):
        order = None
    if order is None:
        return Fake(data.shape, data.dtype, None, data.device_name)
    lying = contiguous_strides(tuple([data.shape[d] for d in order]), data.dtype.itemsize)
    strides = tuple([lying[order.index(d)] for d in range(len(order))])
    return Fake(data.shape, data.dtype, strides, data.device_name)


def _in_order(varying: list[tuple], joint: Joint) -> list[tuple]:
    """Outputs with a history as PyTorch counts them: inputs that were written, then the user's,
    each time that one is returned, then what views of intermediates are made of.
    """
    values = dict(varying)
    order = [m.output for m in joint.mutated]
    order += [o.index for o in joint.outputs if type(o) is Output and o.kind == "graph"]
    order += [k for k in values if k not in order]
    return [(k, values[k]) for k in order if k in values]


def _start(edge):
    """Where the gradient of an input arrives; None if it is sent on to that of another input."""
    if isinstance(edge, Identity):
        return edge.edges[0]
    return edge if isinstance(edge, Accumulate) else None
