"""Checkpoints: forget what a function saved for backward, and compute it again when needed.

The default form watches the tape: every node that the function records is emptied, and when the
engine asks one for its saved values the function runs again, the nodes of the second run are
matched with those of the first in order, and their values are handed over.  The run stops as soon
as the last node has its values.  The re-entrant form is one node that runs the function again and
sweeps through it.  Read next: `selective.py`, `../core/tape.py`, `../autograd/engine.py`.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import warnings
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from .. import errors
from ..amp.autocast_mode import present
from ..array.random import default_generator
from ..autograd import engine, gradients
from ..autograd.function import FunctionNode
from ..autograd.grad_mode import enable_grad, no_grad
from ..autograd.saved_values import pack_node
from ..core import tape
from ..core.handle import Tensor, keep, make
from ..memory.views import current, refresh
from ..parts.trees import of_leaves
from ..pytree import tree_flatten, tree_unflatten
from ..table.packets import ops
from ..threads.blocks import tied
from ..threads.state import count, state
from .selective import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    Hook,
    SelectiveCheckpointContext,
    Tagging,
    Traces,
    create_selective_checkpoint_contexts,
    facts_of,
    keep_random,
    shown,
)

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "GraphExecGroup",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

CheckpointError = errors.CheckpointError
_early_stop: bool | None = None
_debug: bool | None = None
_CHECKS = ("default", "none")


def noop_context_fn() -> tuple:
    """Two contexts that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool):
    """Within the block, checkpoints stop (or do not stop) recomputing at the last needed value."""
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None):
    """Within the block, all checkpoints are made with `debug=enabled`."""
    global _debug
    before, _debug = _debug, enabled
    try:
        yield
    finally:
        _debug = before


class _Groups(threading.local):
    current: GraphExecGroup | None = None


_groups = _Groups()


class GraphExecGroup:
    """A block of backward calls that share what checkpoints compute again.

    Each checkpointed function runs again at most once for all of them.  They must go through parts
    of the graph that do not overlap: to need a saved value twice is an error.
    """

    def __enter__(self) -> GraphExecGroup:
        if _groups.current is not None:
            raise errors.OrderError(errors.text(
                f"GraphExecGroup contexts cannot be nested ({errors.user_line()})",
                cure="end the one that is open, or let both parts be one group"))
        _groups.current = self
        return self

    def __exit__(self, *exc: object) -> None:
        _groups.current = None

    @classmethod
    def _get_current_group(cls) -> GraphExecGroup | None:
        """The group of this thread."""
        return _groups.current


# what a node saves, and where it goes


def _each(function, saved: tuple) -> tuple:
    """A function applied to all tensors among saved values; other values stay."""
    return tuple(
        [
            function(value)
            if isinstance(value, Tensor)
            else type(value)([function(v) if isinstance(v, Tensor) else v for v in value])
            if value.__class__ is list or value.__class__ is tuple
            else value
            for value in saved
        ]
    )


def _tensors(saved: tuple) -> list[Tensor]:
    found: list[Tensor] = []
    for value in saved:
        if isinstance(value, Tensor):
            found.append(value)
        elif value.__class__ is list or value.__class__ is tuple:
            found += [v for v in value if isinstance(v, Tensor)]
    return found


def _bare(t: Tensor) -> Tensor:
    """A saved tensor without its history."""
    bare = make(t._payload)
    bare._cell = t._cell
    return bare


class _Deferred:
    """In the place of a node's saved values: where to get them from."""

    __slots__ = ("__weakref__", "edges", "facts", "frame", "group", "name", "twin", "where")

    def __init__(self, frame: _Frame, node: tape.Node, tensors: list[Tensor]) -> None:
        self.frame, self.name, self.where = frame, node.name(), node.where
        self.edges = [t._edge for t in tensors]
        self.facts = facts_of(tensors) if frame.check == "default" else None
        self.twin = None  # (values, time) from the second run, until the node takes them
        self.group = None  # the group of sweeps that the node has taken them in

    def give(self, saved: tuple, stamp: int) -> None:
        """The values of the second run are there: with the history that they had in the first."""
        edges = iter(self.edges)

        def attached(t: Tensor) -> Tensor:
            edge = next(edges)
            if edge is None and t._edge is None:
                return t
            again = make(t._payload, edge)
            again._cell = t._cell
            return again

        self.twin = _each(attached, saved), stamp

    def take(self) -> tuple:
        """The values, and the time they were saved."""
        group = GraphExecGroup._get_current_group()
        if group is not None and self.group is not None and self.group() is group:
            raise CheckpointError(errors.text(
                f"{self.name} ({errors.describe_place(self.where)}): what it saved was unpacked "
                "already, by a backward of the same GraphExecGroup",
                f"checkpoint: {errors.describe_place(self.frame.where)}",
                ["let backward calls of a group go through parts of the graph that do not overlap",
                 "or end the group between them"]))
        self.group = None if group is None else weakref.ref(group)
        if self.twin is None:
            self.frame.recompute()
        found, self.twin = self.twin, None
        return found


class _Deferring:
    """What nodes are whose saved values were dropped: they have them while they are used."""

    __slots__ = ()

    def apply(self, grads: list, needs: list) -> list:
        if self.saved.__class__ is not _Deferred:
            return super().apply(grads, needs)
        with _Holding(self):
            return super().apply(grads, needs)

    def unpack(self) -> list:
        if self.saved.__class__ is not _Deferred:
            return super().unpack()
        with _Holding(self):
            return super().unpack()

    def value_of(self, i: int):
        if self.saved.__class__ is not _Deferred:
            return super().value_of(i)
        with _Holding(self):
            return super().value_of(i)


class _Holding:
    """A node with its values for a moment."""

    __slots__ = ("before", "node")

    def __init__(self, node: tape.Node) -> None:
        self.node, self.before = node, (node.saved, node.stamp)

    def __enter__(self):
        _put(self.node, *self.node.saved.take())

    def __exit__(self, *exc):
        _put(self.node, *self.before)


def _put(node: tape.Node, saved, stamp: int) -> None:
    """Give a node other saved values; that of a custom function has a context that knows them."""
    node.saved, node.stamp = saved, stamp
    if isinstance(node, FunctionNode):
        node.ctx._kept = saved


@functools.cache
def _deferring(kind: type) -> type:
    return type(kind.__name__, (_Deferring, kind), {"__slots__": ()})


class _Watch:
    """Told of what is recorded on a level while it is entered."""

    note: Callable[[tape.Node, list[Tensor]], None]

    def __init__(self, interp) -> None:
        self.interp = interp

    @property
    def level(self) -> int:
        return 0 if self.interp is None else self.interp.level

    def __enter__(self):
        self.before, state.observers.checkpoint = state.observers.checkpoint, self
        # hooks from outside get the inputs only
        self.packing, state.observers.saved_hooks = state.observers.saved_hooks, ()
        self.last = tape.sequence()
        count("ACTIVE", 1)  # the fast path would not tell
        count("WATCHED", self.interp is None)  # unless it knows that this is all there is
        return self

    @tied
    def __exit__(self, *exc):
        state.observers.checkpoint, state.observers.saved_hooks = self.before, self.packing
        count("ACTIVE", -1)
        count("WATCHED", -(self.interp is None))

    def recorded(self, out, level: int) -> None:
        """An operator was recorded: its node is the youngest one of its results."""
        if level != self.level:
            return
        for t in out if isinstance(out, (list, tuple)) else (out,):
            edge = t._edge if isinstance(t, Tensor) else None
            node = edge.node if type(edge) is tape.Port else edge
            if node is not None and node.seq > self.last and node.level == level:
                self.last = node.seq
                self.noted(node)

    def noted(self, node: tape.Node) -> None:
        """A node of this level was made."""
        saved = node.saved
        if saved and saved.__class__ is tuple and not state.observers.saved_hooks:
            # hooks inside come first
            tensors = _tensors(saved)
            if tensors:
                self.note(node, tensors)


class _Inputs(tape.Node):
    """The tensors that a function was called with, saved like those of any other node.

    An outer checkpoint can thus forget the inputs of an inner one.
    """

    __slots__ = ()


def _holding(kind: type, name: str, tensors: list[Tensor], edges: tuple, level: int) -> tape.Node:
    """A node that saves tensors as they are; what packs or drops saved values may have them."""
    for t in tensors:
        if t._link is not None:
            refresh(t)
    saves = [(f"input{i}", "arg", None, None) for i in range(len(tensors))]
    rule = SimpleNamespace(name=name, saves=saves, saves_tensors=True)
    metas = tuple(
        [None if e is None else (t._payload.shape, t._payload.dtype)
         for e, t in zip(edges, tensors)]
    )
    saved = tuple([keep(t) for t in tensors])
    node = tape.make_node(kind, rule, edges, metas, saved, level)
    if state.observers.saved_hooks and tensors:
        pack_node(node, tensors)
    elif state.observers.checkpoint is not None and state.observers.checkpoint.level == level:
        state.observers.checkpoint.noted(node)
    return node


class _Frame(_Watch):
    """One call of a checkpointed function."""

    def __init__(self, interp, function, args, kwargs, options) -> None:
        super().__init__(interp)
        self.function = function
        leaves, self.structure = tree_flatten((args, kwargs))
        self.places = [i for i, v in enumerate(leaves) if isinstance(v, Tensor)]
        tensors = [leaves[i] for i in self.places]
        self.leaves = [None if isinstance(v, Tensor) else v for v in leaves]
        self.inputs = _holding(_Inputs, "CheckpointInputs", tensors, (), self.level)
        self.tracked = [t._edge is not None for t in tensors]
        self.where = errors.place()
        self.check, self.stop, self.context, self.trace = options
        self.rng = None
        self.items: list[weakref.ref] = []
        self.finished = False  # the function itself may ask for gradients while it runs

    def note(self, node: tape.Node, tensors: list[Tensor]) -> None:
        deferred = _Deferred(self, node, tensors)
        self.items.append(weakref.ref(deferred))
        _put(node, deferred, node.stamp)
        node.__class__ = _deferring(type(node))

    def arguments(self) -> tuple:
        """(args, kwargs) as they were, with histories that begin here."""
        leaves = list(self.leaves)
        for i, t, tracked in zip(self.places, self.inputs.unpack(), self.tracked):
            leaves[i] = fresh = _bare(t) if tracked else t
            if tracked:
                fresh._edge = tape.Origin(fresh)
        return tree_unflatten(leaves, self.structure)

    def recompute(self) -> None:
        """Run the function again and give every waiting node its values."""
        args, kwargs = self.arguments()
        level, second = self.level, _Second(self)
        record, state.record[level] = state.record[level], True
        outside = None if self.rng is None else default_generator.get_state()
        try:
            if self.rng is not None:
                default_generator.set_state(self.rng)
            with second, self.context:
                self.function(*args, **kwargs)
        except _Enough as enough:
            if enough.frame is not self:
                raise
        finally:
            state.record[level] = record
            if outside is not None:
                default_generator.set_state(outside)
        if second.count != len(self.items):
            raise self.mismatch(
                "trying to save more tensors during recomputation than during the original forward"
                if second.count > len(self.items) else
                "A different number of tensors was saved during the original forward and "
                "recomputation",
                [
                    f"operators that saved values during forward: {len(self.items)}",
                    f"during recomputation: {second.count}",
                    *self.first_missing(second.count),
                ],
            )

    def first_missing(self, number: int) -> list[str]:
        for ref in self.items[number:]:
            if ref() is not None:
                return [f"first without counterpart: {_called(ref())}"]
        return []

    def mismatch(self, what: str, facts: list[str]) -> CheckpointError:
        """The two runs differ."""
        cure = [
            "the function must compute the same when called again: no global state, no clock",
            "pass debug=True to see the operators of both runs",
        ]
        if self.trace is not None:
            facts = [*facts, *self.trace.lines()]
            cure.pop()
        return CheckpointError(
            errors.text(f"checkpoint ({errors.describe_place(self.where)}): {what}", facts, cure)
        )


def _called(item) -> str:
    return f"{item.name} ({errors.describe_place(item.where)})"


class _Enough(BaseException):
    """All values are there: leave the function."""

    def __init__(self, frame: _Frame) -> None:
        self.frame = frame


class _Second(_Watch):
    """Matches the nodes of the second run with those of the first."""

    def __init__(self, frame: _Frame) -> None:
        super().__init__(frame.interp)
        self.frame, self.count = frame, 0

    def note(self, node: tape.Node, tensors: list[Tensor]) -> None:
        frame, number = self.frame, self.count
        self.count += 1
        if number >= len(frame.items):
            return
        first = frame.items[number]()
        if first is not None:
            if frame.check == "default":
                self.compare(first, node, facts_of(tensors))
            first.give(node.saved, node.stamp)
        if (frame.stop or not frame.finished) and self.count == len(frame.items):
            raise _Enough(frame)

    def compare(self, first: _Deferred, node: tape.Node, facts: list[tuple]) -> None:
        if first.name != node.name():
            second = SimpleNamespace(name=node.name(), where=node.where)
            raise self.frame.mismatch(
                "Recomputation ran other operators than the forward pass",
                [f"forward: {_called(first)}", f"recomputation: {_called(second)}"],
            )
        if facts != first.facts:
            raise self.frame.mismatch(
                "Recomputed values for the following tensors have different metadata than during "
                "the forward pass",
                [
                    line
                    for i, (a, b) in enumerate(zip(first.facts, facts))
                    if a != b
                    for line in (
                        f"value {i} saved by {_called(first)}:",
                        f"saved metadata: {shown(a)}",
                        f"recomputed metadata: {shown(b)}",
                    )
                ],
            )


# the function


def _recording_level():
    """(may values be dropped here?, the interpreter on whose level nodes are made).

    Not under transforms whose tape is that of a level below: the function could not run again
    after they ended.  Nothing is dropped there, and the result is the same.
    """
    top = state.stack[-1]
    if top is None or top.owns_tape or top.modal or top.continues_tape:
        return state.record[-1], top
    return False, None


def _check_reentrant(kwargs: dict, context_fn: Callable, debug: bool) -> None:
    """Refuse what the re-entrant form does not take."""
    if kwargs:
        raise errors.BadValue(
            errors.text(
                f"Unexpected keyword arguments: {', '.join(kwargs)} ({errors.user_line()})",
                cure="pass use_reentrant=False, which takes them",
            )
        )
    if context_fn is not noop_context_fn or debug:
        raise errors.BadValue(
            errors.text(
                "Passing `context_fn` or `debug` is only supported when use_reentrant=False "
                f"({errors.user_line()})"
            )
        )


def _captured(interp, forward, function: Callable, args: tuple, kwargs: dict) -> Any:
    """The call where a graph is captured: its nodes are marked, and the cut decides."""
    with Tagging(interp, getattr(forward, "policy", None)):
        if isinstance(forward, Hook):
            return function(*args, **kwargs)
        with forward:
            return function(*args, **kwargs)


def checkpoint(
    function: Callable,
    *args,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs,
) -> Any:
    """Call a function; what it saves for backward is dropped and computed again when needed."""
    if use_reentrant is None:
        use_reentrant = _reentrant("checkpoint")
    preserve = kwargs.pop("preserve_rng_state", True)
    plain = of_leaves(function, args, kwargs)
    if plain is not None:
        inside, leaves, finish = plain
        return finish(checkpoint(
            inside, *leaves, use_reentrant=use_reentrant, context_fn=context_fn,
            determinism_check=determinism_check, debug=debug, early_stop=early_stop,
            preserve_rng_state=preserve))
    function = present()(function)  # both runs in the dtypes of this one
    if use_reentrant:
        _check_reentrant(kwargs, context_fn, debug)
        if len(state.stack) == 1:
            return CheckpointFunction.apply(function, preserve, *args)
    if determinism_check not in _CHECKS:
        raise errors.BadValue(
            f"determinism_check should be one of {list(_CHECKS)}, but got {determinism_check} "
            f"({errors.user_line()})"
        )
    trace = None
    if debug if _debug is None else _debug:
        if context_fn is not noop_context_fn:
            raise errors.BadValue(
                f"debug=True is incompatible with non-default context_fn ({errors.user_line()})"
            )
        trace = Traces()
    possible, interp = _recording_level()
    if not possible:
        return function(*args, **kwargs)
    if hasattr(interp, "region"):
        return _captured(interp, context_fn()[0], function, args, kwargs)
    forward, second = context_fn() if trace is None else trace.runs
    if state.mode and context_fn is noop_context_fn and trace is None:
        forward, second = create_selective_checkpoint_contexts(keep_random)
    stop = early_stop if _early_stop is None else _early_stop
    frame = _Frame(interp, function, args, kwargs, (determinism_check, stop, second, trace))
    if preserve:
        frame.rng = default_generator.get_state()
    with frame, forward:
        out = function(*args, **kwargs)
    frame.finished = True
    return out


# the re-entrant form


class _Again(tape.Node):
    """A function that ran without being recorded; backward runs it again, recorded."""

    __slots__ = ("arguments", "function", "places", "rng")

    def apply(self, grads, needs) -> list:
        if self.saved is None:
            raise errors.freed(self)
        args, inputs = list(self.arguments), []
        create = state.record[0]
        for i, t, edge in zip(self.places, self.unpack(), self.edges):
            if create and edge is not None:
                with enable_grad():
                    fresh = ops.view_as(t, t)  # a place of its own on the tape
            else:
                fresh = _bare(t)
                if edge is not None:
                    fresh._edge = tape.Accumulate(fresh)
            args[i] = fresh
            inputs.append(fresh)
        outside = default_generator.get_state()
        try:
            if self.rng is not None:
                default_generator.set_state(self.rng)
            with enable_grad():
                out = self.function(*args)
        finally:
            if self.rng is not None:
                default_generator.set_state(outside)
        pairs = [
            (o, g) for o, g in zip(_differentiable(out), grads) if g is not None and o.requires_grad
        ]
        if not pairs:
            raise errors.NoGraph(
                errors.text(
                    "none of output has requires_grad=True, this checkpoint() is not necessary "
                    f"({errors.describe_place(self.where)})"
                )
            )
        outs, seeds = [o for o, _ in pairs], [g for _, g in pairs]
        wanted = [t for t, e in zip(inputs, self.edges) if e is not None]
        task = state.task
        if task is not None and not task.into_leaves:  # autograd.grad: nothing but the inputs
            found = iter(gradients.grad(
                outs, wanted, seeds, create_graph=create, allow_unused=True))
        else:
            for t in wanted:
                t.retain_grad()
            gradients.backward(outs, seeds, create_graph=create)
            found = iter([t.grad for t in wanted])
        return [None if e is None else next(found) for e in self.edges]


def _differentiable(out) -> list[Tensor]:
    outs = out if isinstance(out, (list, tuple)) else (out,)
    return [o for o in outs if isinstance(o, Tensor) and o.dtype.category >= 2]


@functools.cache
def _again(outputs: int, kind: type) -> type:
    return type("CheckpointFunctionBackward", (kind,), {"__slots__": (), "outputs": outputs})


class CheckpointFunction:
    """The re-entrant form: one node for the whole function."""

    @staticmethod
    def apply(function: Callable, preserve_rng_state: bool, *args):
        """Call the function without recording; its node computes it again."""
        check_backward_validity(args)
        rng = default_generator.get_state() if preserve_rng_state else None
        places = [i for i, v in enumerate(args) if isinstance(v, Tensor)]
        tensors = [args[i] for i in places]
        edges = tuple([engine.edge_of(t) for t in tensors])
        tracked = state.record[0] and any(e is not None for e in edges)
        if tracked:
            name = "CheckpointFunctionBackward"
            node = _holding(_Again, name, tensors, edges, 0)
        with no_grad():
            out = function(*args)
        outs = _differentiable(out)
        if not tracked or not outs:
            return out
        node.__class__ = _again(len(outs), type(node))
        node.function, node.places, node.rng = function, places, rng
        node.arguments = [None if isinstance(v, Tensor) else v for v in args]
        node.seq = tape.sequence()  # younger than what the function made
        ports = iter([tape.port(node, i) for i in range(len(outs))])

        def attached(o):
            if not (isinstance(o, Tensor) and o.dtype.category >= 2):
                return o
            t = make(current(o)._payload, next(ports))
            t._cell = o._cell
            return t

        if isinstance(out, Tensor):
            result = attached(out)
        else:
            made = [attached(o) for o in out]
            result = type(out)(*made) if hasattr(out, "_fields") else type(out)(made)
        return result


def get_device_states(*args) -> tuple[list, list]:
    """(devices, states) of the generators of the arguments' devices: none, there is one for all."""
    return [], []


def set_device_states(devices: list, states: list, *, device_type: str | None = None) -> None:
    """Set what `get_device_states` returned."""


class DefaultDeviceType:
    """The kind of device whose generators count where tensors of several kinds are given."""

    _kind = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Choose it."""
        DefaultDeviceType._kind = device

    @staticmethod
    def get_device_type() -> str:
        """Its name."""
        return DefaultDeviceType._kind


def detach_variable(inputs: tuple) -> tuple:
    """Copies of the tensors without history that require grad as the originals do."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            f"{type(inputs).__name__}"
        )
    return tuple(
        [v.detach().requires_grad_(v.requires_grad) if isinstance(v, Tensor) else v for v in inputs]
    )


def check_backward_validity(inputs) -> None:
    """Warn where no input requires grad: the re-entrant form then gives no gradients."""
    if not any(isinstance(v, Tensor) and v.requires_grad for v in inputs):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=4
        )


def _reentrant(name: str) -> bool:
    """The form that is taken where the user does not say which: with a warning, the re-entrant."""
    warnings.warn(
        f"utils.{name}: the use_reentrant parameter should be passed explicitly; it is taken to "
        "be True now, and use_reentrant=False is recommended.", stacklevel=3)
    return True


def checkpoint_sequential(
    functions, segments: int, input, use_reentrant: bool | None = None, **kwargs
) -> Any:
    """Run functions one after the other, in segments that are checkpoints (but for the last)."""
    if use_reentrant is None:
        use_reentrant = _reentrant("checkpoint_sequential")
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise errors.BadValue(
            f"Unexpected keyword arguments: {', '.join(kwargs)} ({errors.user_line()})"
        )
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)

    def run(start: int, end: int):
        def forward(value):
            for step in steps[start:end]:
                value = step(value)
            return value

        return forward

    size = len(steps) // segments
    end = 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        input = checkpoint(
            run(start, end), input, use_reentrant=use_reentrant, preserve_rng_state=preserve
        )
    return run(end, len(steps))(input)
