"""The end of a capture: the function has run, what has it left?

`Ending` looks at each input for what the function did to it, at the user's results, then lets the
engine record the gradients of both.  It gives the captured program: the joint graph, and the
effects beside it (`effects/`).  Read next: `results.py`, `joint.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .. import errors
from ..array.fake import Fake, contiguous_strides
from ..array.layout import strides_order
from ..array.size import from_data
from ..autograd.gradients import grad as engine_grad
from ..core.handle import Tensor, is_wrapper_data, make
from ..core.tape import Accumulate
from ..cut.settings import config
from ..graph.make_fx import fake_of
from ..memory.views import recording_set, refresh
from ..parts import PartsTensor
from ..python_state.side_effects import flattened
from ..tensor.hooks import RemovableHandle
from ..threads.blocks import uncast
from .accumulation import CollectedGradients
from .eager_forward import forward_of
from .effects.attributes import SetAttributes
from .effects.effect import Effect
from .effects.generators import SetGenerator
from .effects.gradients import LeaveGradient
from .effects.histories import TakeHistory, UseUpHistory
from .effects.hooks import RegisterHook
from .effects.leaves import BeginLeaf, EndHistory, RetainGradient
from .effects.memory import TakeMemory
from .effects.metadata import ChangeMetadata
from .effects.order import in_order
from .effects.results import ReturnValue, ReturnView
from .effects.storages import GrowStorage, MoveToMoreMemory, ShrinkStorage
from .effects.views import EarlyDetachedView, EarlyView, SettleView
from .effects.writes import CountWrites, RefuseWrites, Write, WriteInputs
from .guards import AtStartOfMemory, SameLeaves
from .joint import Identity, Joint, RecordedBackward
from .results import Results, has_history, hooked, retains, root_of, used_up
from .subclasses import Wrapped
from .wrapped_gradients import spread

if TYPE_CHECKING:
    from .capture import Capture, CaptureRecorder


class Ending:
    """What a function that has just been captured has left.

    `handles` are its inputs, `boxes` what each of them was at the beginning: (what it held, its
    edge, what it showed); `held` is what it left in modules.
    """

    def __init__(self, level: Capture, recorder: CaptureRecorder, handles: list[Tensor],
                 boxes: list[tuple], out: Any, held: list):
        self.level, self.recorder, self.handles, self.boxes = level, recorder, handles, boxes
        self.leaves, out_spec = flattened(out)
        self.leaves += [leaf for _, values in held for leaf in values]
        _refuse(self.leaves)
        self.joint = Joint(out_spec)
        # where gradients of each input arrive; its handle may have been overwritten since
        self.starts = [_start(e) for _, e, _ in boxes]
        self.results = Results(level, handles, [o for o in self.leaves if isinstance(o, Tensor)])
        self.effects: list[Effect] = [SetAttributes([slot for slot, _ in held])] if held else []
        self.writes: list[Write] = []
        self.took: list[tuple] = []  # inputs that took the memory of others, by which views

    def program(self) -> Joint:
        """The captured program."""
        for i in range(len(self.handles)):
            self._input(i)
        self._outputs()
        self._state()
        swept = self._gradients()
        if self.writes:
            recorded = {*self.joint.backward.tangent_of, *swept}
            for w in self.writes:
                w.recorded = w.tracked and w.output in recorded
            self.effects += [RefuseWrites(self.writes), WriteInputs(self.writes)]
        self.joint.effects = in_order([*self.effects, *self.level.numbers])
        self._graph()
        return self.joint

    # inputs

    def _input(self, i: int) -> None:
        """What the function did to an input."""
        level, t, (box, start, _) = self.level, self.handles[i], self.boxes[i]
        if self.results.by_handle[id(t)] != i:  # the root of a group is an argument, too
            return
        if t._link is not None and (
                level.convention.refreshes_unused or box is not None or t._link.apart
                or id(t) in level.memory.views):
            with recording_set(level.level, False):
                refresh(t)
        if self._resized(i, t) or self._took_memory(i, t, box, start):
            return
        if start is None and isinstance(t._edge, Accumulate) and t._edge.leaf() is t:
            self.effects.append(BeginLeaf(i))
            self.starts[i] = t._edge
        view = level.memory.views.get(id(t))
        if view is not None:
            self.effects.append(ChangeMetadata(i, view.steps))
            box = view.box if box is not None else None
            if view.base is not t and box is not None:  # compare what has the memory
                box = t._payload if view.base._payload is box else view.base
        ended = start is not None and t._edge is None and (view is not None or t._link is None)
        if ended:
            self.effects.append(EndHistory(i))
        self._values(i, t, box, start, ended)

    def _resized(self, i: int, t: Tensor) -> bool:
        """Notes what became of its storage; has that been all?"""
        memory = self.level.memory
        size, taken = memory.sizes.get(id(t)), id(t) in memory.sets
        if size is not None:
            if taken or size < t.numel() * t._payload.dtype.itemsize:
                count = 0 if taken or t._cell is None else t._cell.version
                self.effects.append(ShrinkStorage(i, size, count))
                if not taken:
                    return True
            else:
                self.effects.append(GrowStorage(i, size))
        if id(t) in memory.enlarged:
            self.effects.append(MoveToMoreMemory(i))
        return False

    def _took_memory(self, i: int, t: Tensor, box: Any, start: Any) -> bool:
        """Has it other memory?  Then new values are those of the memory that it had."""
        level, results = self.level, self.results
        taken = level.memory.sets.get(id(t))
        if taken is None:
            return False
        old = taken[1]
        level.convention.took_memory(i, t._edge is not None and t._edge is not start)
        if root_of(t) is not old:
            self.took.append((i, t._link))
        if old._payload is not box and level.memory.sizes.get(id(t)) is None:
            self.writes.append(Write(i, len(results.nodes), False, old._cell.version))
            results.add(make(old._payload))
        return True

    def _values(self, i: int, t: Tensor, box: Any, start: Any, ended: bool) -> None:
        """What was written into it, and how often."""
        memory, results = self.level.memory, self.results
        view, link = memory.views.get(id(t)), t._link
        tracked = t._edge is not start and not isinstance(t._edge, Accumulate) and not ended
        if view is not None and id(view.base) in memory.stand_ins:
            link = view.base._link  # it was reshaped in place, and is a view of what it was
        apart = box is None and link is not None and link.apart
        if apart and link.writes:
            self.effects.append(CountWrites(i, link.writes))
        if box is None and not (tracked and apart):
            if tracked and hooked(t):
                self.effects.append(TakeHistory(i, results.add(t)))
            return  # what it holds follows from another input
        if t._payload is not box:
            if view is not None:
                tracked = t._edge is not None and t._edge is not start
            moved = id(t) in memory.moved
            count = 0 if apart else 1 - moved if t._cell is None else t._cell.version
            if count:  # changes of shape are counted when they are made again
                count -= results.reshapes(t)
            self.writes.append(Write(i, len(results.nodes), tracked, count, moved,
                                     memory.silent.get(t._cell, 0)))
            results.add(t if tracked else make(t._payload))
        elif t._cell is not None and t._cell.version > results.reshapes(t):
            self.effects.append(  # by views of it
                CountWrites(i, t._cell.version - results.reshapes(t)))
        if t._payload is box and view is not None and hooked(t):
            self.effects.append(TakeHistory(i, results.add(t)))

    # results

    def _outputs(self) -> None:
        """How each of the user's results is made."""
        level, results, joint, leaves = self.level, self.results, self.joint, self.leaves
        if level.convention.returns_views and not any(
                map(has_history, (*results.values, *results.outputs))):
            results.give_views()
        joint.outputs = [results.place(o) if isinstance(o, Tensor) else
                         results.handle(o) if isinstance(o, RemovableHandle) else
                         results.number(o) if from_data((o,), marked=False) else o for o in leaves]
        for i, link in self.took:
            of = results.place(link.base)
            self.effects.append(TakeMemory(
                i, ReturnView(of=of, chain=link.chain, apart=True), link.writes))
        early = [o for o in joint.outputs if isinstance(o, ReturnView) and o.early]
        if early:
            ended = any(isinstance(e, EndHistory) for e in self.effects)
            self.effects += [(EarlyView if o.tracked or not ended else EarlyDetachedView)(o)
                             for o in early]
            self.effects += map(SettleView, early)
        level.convention.returned(level, leaves, self.handles)

    def _state(self) -> None:
        """What else the function did, and what its program depends on."""
        level, joint, results = self.level, self.joint, self.results
        left = [g for g in level.gradients.values() if g.now is not g.before]
        if left:
            self.effects += LeaveGradient.of(level, results, left)
        joint.forward_count = len(results.nodes)
        if level.streams:
            self.effects += SetGenerator.of(level)
        if level.hooks.hooked:
            self.effects += RegisterHook.of(level.hooks, results.by_handle)
        if any(map(retains, self.handles)):
            self.effects += RetainGradient.of(level, self.handles)
        inputs = {id(a.handle) for a in level.adopted}
        guards = joint.guards.inputs
        guards += [g for g in level.gradients.values() if g not in left and g.concerns(inputs)]
        hooks = level.hooks.guard(results.by_handle)
        if hooks is not None:
            guards.append(hooks)
        if level.leaves:
            guards.append(SameLeaves(
                [(results.by_handle[t], leaf) for t, leaf in level.leaves.items()
                 if t in results.by_handle]))
        beginning = [i for i, t in enumerate(self.handles)
                     if level.first.get(id(t)) in level.memory.beginning]
        if beginning:
            guards.append(AtStartOfMemory(beginning))
        guards += level.reads
        joint.guards.python = level.guards
        level.hooks.leave_inputs()
        if not level.convention.shows_hooks:
            level.hooks.check_handles()

    # gradients

    def _gradients(self) -> list[int]:
        """Record the gradients of all inputs; gives the outputs whose history is used up."""
        level, joint, results = self.level, self.joint, self.results
        varying = [(k, v) for k, v in enumerate(results.values) if has_history(v)]
        swept = [k for k, v in varying if used_up(v)]
        varying = [(k, v) for k, v in varying if k not in swept]
        varying = level.convention.in_order(
            varying, [w.output for w in self.writes],
            [o.index for o in joint.outputs if isinstance(o, ReturnValue)])
        last = {s: i for i, s in enumerate(self.starts) if s is not None}  # roots come after
        chosen = [(i, self.starts[i]) for i in sorted(last.values())]
        if swept:
            self.effects.append(UseUpHistory(swept))
            joint.backward.grad_of = [i for i, _ in chosen]
        chosen += [(~o.index, results.values[o.index]._edge) for o in results.placed.values()
                   if isinstance(o, ReturnValue) and o.leaf]
        if varying and chosen:
            self._backward(varying, chosen)
        else:
            for node in self.recorder.graph.nodes:
                node.meta.pop("cut", None)
        return swept

    def _backward(self, varying: list[tuple], chosen: list[tuple]) -> None:
        """Let the engine record the backward, from tangents of outputs to inputs."""
        level, joint, results, handles = self.level, self.joint, self.results, self.handles
        tangents = [
            level.wrap(t, self.recorder.tangent(n + 1, t))
            for n, t in enumerate([make(_dense(fake_of(v)._payload)) for _, v in varying])
        ]
        joint.backward.tangent_of = [k for k, _ in varying]
        sources = [make(self.boxes[i][2] if i >= 0 else results.values[~i]._payload, s)
                   for i, s in chosen]
        before = [t._payload for t in handles], [t._payload for t in tangents]
        level.joined = level.late = True
        level.inputs = handles
        with contextlib.ExitStack() as modes:
            _autocast(modes)
            collected = None
            if level.grafts is not None:  # code of the user's may run, and sweep by itself
                collected = modes.enter_context(CollectedGradients(level, handles))
            grads = engine_grad([v for _, v in varying], sources, tangents, allow_unused=True)
            if collected is not None:
                grads = collected.added_to(grads, [i for i, _ in chosen])
        if any(map(_comes_apart, grads)):
            results.nodes += spread(level, joint.backward, chosen, grads)
        else:
            joint.backward.grad_of = [i for i, _ in chosen]
            results.nodes += [None if g is None else level.node(g) for g in grads]
        # what the backward wrote (a custom function's, for instance) comes after the gradients
        written = [(i, t) for i, (t, old) in enumerate(zip(handles, before[0]))
                   if t._payload is not old]
        written += [(~i, t) for i, (t, old) in enumerate(zip(tangents, before[1]))
                    if t._payload is not old]
        for number, t in written:
            if t._link is None:
                joint.backward.late.append((number, len(results.nodes) - joint.forward_count))
                results.nodes.append(level.node(t))

    def _graph(self) -> None:
        """The joint graph, and what the backward may need besides."""
        level, joint, recorder = self.level, self.joint, self.recorder
        level.convention.ended(level)
        if level.decisions is not None:
            joint.guards.decisions = level.decisions.module()
            joint.guards.answers = level.decisions.answers()
        grads = {id(g.before): g for g in level.gradients.values() if g.before is not None}
        # those that only the backward met, too
        joint.inputs.adopted = [grads.get(id(a.handle), a.handle) for a in level.adopted]
        joint.module = recorder.module(tuple(self.results.nodes), "joint")
        if joint.differentiable:
            joint.backward.ruled = level.grafts is not None and level.grafts.ruled
            joint.backward.recorded = self._recorded()

    def _recorded(self) -> RecordedBackward:
        """What gradients of gradients are made with, or why there are none."""
        level, joint = self.level, self.joint
        made, grafts = RecordedBackward(), level.grafts
        if grafts is not None:
            made.grafted = grafts.module(joint.module)
        if made.grafted is None and not joint.of(TakeMemory):  # there memory has another's history
            made.forward = forward_of(joint.module, joint.forward_count, level.wholes)
        if level.unrecorded_write is not None:
            made.refused = (
                "writes a tensor behind the tape's back: under no_grad(), or through detach() or "
                ".data", level.unrecorded_write,
                "write it outside of the compiled function, or do not compile it")
        elif grafts is not None and grafts.refused is not None:
            made.refused = (
                "registers a hook on a grad_fn", grafts.refused,
                "register the hook on the tensor, or do not compile the function")
        return made


def _is_wrapper(value: Any) -> bool:
    return isinstance(value, Tensor) and is_wrapper_data(value._payload)


def _comes_apart(value: Any) -> bool:
    return _is_wrapper(value) or isinstance(value, PartsTensor)


def _refuse(leaves: list) -> None:
    """Refuse results that no program can give."""
    if any(map(_is_wrapper, leaves)):
        raise Wrapped
    lazy = next((v for v in leaves if isinstance(v, Iterator)), None)
    if lazy is not None:
        raise errors.DataDependentError(errors.text(
            f"a captured function returned a {type(lazy).__name__}, which would run when the "
            f"capture is over ({errors.user_line()})", cure="return a list: list(...)"))


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
    steps = contiguous_strides(tuple([data.shape[d] for d in order]), data.dtype.itemsize)
    strides = tuple([steps[order.index(d)] for d in range(len(order))])
    return Fake(data.shape, data.dtype, strides, data.device_name)


def _start(edge: Any) -> Accumulate | None:
    """Where the gradient of an input arrives; None if it is sent on to that of another input."""
    if isinstance(edge, Identity):
        return edge.edges[0]
    return edge if isinstance(edge, Accumulate) else None
