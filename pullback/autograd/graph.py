"""The graph as users may look into it: nodes, edges, hooks of several tensors, saved tensors.

Read next: `../tensor/hooks.py`, where hooks are kept; `engine.py`, which calls them.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .. import errors
from ..core.handle import Tensor, cell_of, is_buffer, make
from ..core.tape import Node, Port
from ..memory.versions import bump
from ..memory.views import before_writes
from ..tensor.hooks import RemovableHandle
from ..threads.blocks import tied, tied_block
from ..threads.state import count, renewed, state
from .engine import edge_of
from .gradients import GradientEdge
from .saved_values import Hooks, SavedTensor

__all__ = [
    "GradientEdge",
    "Node",
    "SavedTensor",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "region_activation_memory_budget",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


# regions of compiled functions


def region_activation_memory_budget(budget: float) -> contextlib.AbstractContextManager[None]:
    """In a compiled function: `activation_memory_budget` for all of its forward.

    From 0 (nothing is saved but inputs) to 1 (what costs least), instead of what
    `aot.config.activation_memory_budget` says. A graph has one budget, so the region is the whole
    function.
    """
    from ..compiler import is_compiling
    from ..graph import traceback

    name = "region_activation_memory_budget()"
    if isinstance(budget, bool) or not isinstance(budget, (int, float)):
        raise errors.ArgumentError(
            f"{name}: expects a float, got {type(budget).__name__} ({errors.user_line(2)})")
    if not 0 <= budget <= 1:
        raise errors.BadValue(errors.text(
            f"{name}: must be in [0, 1], got {budget} ({errors.user_line(2)})",
            cure="0 saves nothing but inputs, 1 what costs least"))
    if not is_compiling():
        raise errors.TransformError(errors.text(
            f"{name} has no effect in eager mode ({errors.user_line(2)})",
            cure="use it inside of a compiled function: a plain one saves what its formulas name"))
    return traceback.annotate({traceback.MEMORY_BUDGET: float(budget)})


# edges


class _Space(NamedTuple):
    """Shape and dtype of the gradients that arrive somewhere."""

    shape: tuple
    dtype: Any


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The place where the gradient of a tensor arrives.

    `backward` and `grad` take it instead of the tensor, whose memory can then be given up.
    """
    edge = edge_of(tensor)
    if edge is None:
        raise errors.NoGraph(
            errors.text(
                "It is not possible to get the gradient edge for a Tensor that does not require "
                f"gradients ({errors.user_line(2)})",
                cure="call requires_grad_() on it before computing",
            )
        )
    if type(edge) is Port:
        space = _Space(tensor._payload.shape, tensor._payload.dtype)
        return GradientEdge(edge.node, edge.number, space)
    leaf = edge if edge.edges == () and hasattr(edge, "variable") else None
    token = tensor if leaf is not None else _Space(tensor._payload.shape, tensor._payload.dtype)
    return GradientEdge(edge, 0, token)


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Note that tensors were written by code that autograd did not see."""
    tensors = (tensor,) if isinstance(tensor, Tensor) else tensor
    if not isinstance(tensors, Iterable):
        raise errors.RefusedValue(
            f"increment_version wants a tensor or several, not {type(tensor).__name__} "
            f"({errors.user_line()})"
        )
    for t in tensors:
        bump(t)


def _unsafe_set_version_counter(tensors: tuple, versions: tuple) -> None:
    """Set the version counters of tensors: a write that this undoes is not noticed any more."""
    if len(tensors) != len(versions):
        raise errors.RefusedValue(
            f"{len(tensors)} tensors, but {len(versions)} versions ({errors.user_line()})"
        )
    for t, version in zip(tensors, versions):
        if version < 0:
            raise errors.RefusedValue(
                f"Cannot set a version_counter to a value below 0: {version} "
                f"({errors.user_line()})"
            )
        cell = cell_of(t)
        undone = max(cell.version - version, 0)
        if undone:
            cell.stamps = cell.stamps[: max(len(cell.stamps) - undone, 0)]
        cell.version = version


class _unsafe_preserve_version_counter:
    """Writes inside of the block do not count: the caller vouches for the gradients."""

    def __init__(self, tensors: Tensor | tuple) -> None:
        self.tensors = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
        self.versions = tuple([t._version for t in self.tensors])

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc) -> None:
        _unsafe_set_version_counter(self.tensors, self.versions)


# saved tensors


class saved_tensors_hooks(contextlib.ContextDecorator):
    """Keep what `pack_hook(tensor)` returns instead of each tensor saved for backward.

    `unpack_hook` makes the tensor of it again when a gradient needs it.  Of nested pairs the
    innermost acts.  Works as decorator too.
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> None:
        if state.observers.hooks_refused is not None:
            raise RuntimeError(state.observers.hooks_refused)
        pair = Hooks(self.pack_hook, self.unpack_hook)
        state.observers.saved_hooks = (*state.observers.saved_hooks, pair)
        count("ACTIVE", 1)  # off the fast path, which saves without asking

    @tied
    def __exit__(self, *exc) -> None:
        state.observers.saved_hooks = state.observers.saved_hooks[:-1]
        count("ACTIVE", -1)

    def _recreate_cm(self) -> saved_tensors_hooks:  # each call of a decorated function has a block
        return saved_tensors_hooks(self.pack_hook, self.unpack_hook)


class save_on_cpu(saved_tensors_hooks):
    """Keep what is saved for backward in main memory, and bring it back when it is needed."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(t: Tensor) -> tuple:
            return t.device, t.detach().cpu() if t.device.type != "cpu" else t.detach().clone()

        def unpack(kept: tuple) -> Tensor:
            device, t = kept
            return t if t.device == device else t.to(device)

        super().__init__(pack, unpack)


@tied_block
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Refuse `saved_tensors_hooks` inside, with a message."""
    if state.observers.saved_hooks:
        raise RuntimeError(error_message)
    before = state.observers.hooks_refused
    state.observers.hooks_refused = error_message
    try:
        yield
    finally:
        state.observers.hooks_refused = before


class _Kept:
    """A saved tensor that must keep its value: the tensor itself until somebody writes to it."""

    __slots__ = ("__weakref__", "tensor")

    def __init__(self, tensor: Tensor):
        self.tensor = tensor


class _Mutations:
    """What `allow_mutation_on_saved_tensors` knows: the tensors saved per piece of memory."""

    def __init__(self) -> None:
        self.kept: dict[int, list] = {}  # identity of the version cell -> references to `_Kept`
        self.cells: dict[int, Any] = {}  # keeps the cells alive, and with them their identities
        self.cloned: Any = weakref.WeakKeyDictionary()  # what was copied because of a write

    def pack(self, t: Tensor) -> _Kept:
        shown = make(t._payload)
        cell = shown._cell = cell_of(t)
        self.cells[id(cell)] = cell
        others = self.kept.setdefault(id(cell), [])
        for kept in (ref() for ref in others):
            if kept is not None and kept.tensor._payload is shown._payload:
                return kept  # saved before, and not written since
        kept = _Kept(shown)
        others.append(weakref.ref(kept))
        return kept

    def unpack(self, kept: _Kept) -> Tensor:
        if self not in _watchers.contexts:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in "
                "which the graph was originally recorded."
            )
        return kept.tensor

    def before_write(self, t: Tensor) -> None:
        cell = t._cell
        if cell is None or not is_buffer(t._payload):
            return
        for ref in self.kept.pop(id(cell), ()):
            kept = ref()
            if kept is not None:
                kept.tensor = make(kept.tensor._payload.copy())
                self.cloned[kept] = kept.tensor

    def clear(self) -> None:
        self.kept.clear()
        self.cells.clear()
        self.cloned.clear()


class _Watchers(threading.local):
    contexts: tuple = ()


_watchers = _Watchers()
_watching = renewed(threading.Lock())
_count = 0


def _before_write(x: Tensor) -> None:
    for context in _watchers.contexts:
        context.before_write(x)


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_Mutations]:
    """Let tensors that were saved for backward be overwritten: they are copied before that.

    Backward must run inside, too.
    """
    global _count
    context = _Mutations()
    with _watching:
        _count += 1
        if _count == 1:
            before_writes.append(_before_write)
    _watchers.contexts = (*_watchers.contexts, context)
    try:
        with saved_tensors_hooks(context.pack, context.unpack):
            yield context
    finally:
        _watchers.contexts = _watchers.contexts[:-1]
        context.clear()
        with _watching:
            _count -= 1
            if not _count:
                before_writes.remove(_before_write)


# hooks of several tensors


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable, *, mode: str = "all"
) -> RemovableHandle:
    """Call a hook once per backward for several tensors.

    With mode "all": `fn(grads)` when the gradients of all tensors that take part are there, None
    for the others.  With mode "any": `fn(grad)` with the first of them.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors = list(tensors)
    tasks: Any = weakref.WeakKeyDictionary()  # sweep -> what has arrived
    guard = renewed(threading.Lock())
    ends = [_node(t) for t in tensors]

    def hook_all(index: int, g: Tensor) -> None:
        task = state.task
        with guard:
            if task not in tasks:
                tasks[task] = [sum(task.runs(n) for n in ends), 0, [None] * len(tensors)]
                task.at_end(finish)
            record = tasks[task]
            record[1] += 1
            record[2][index] = g
            complete = record[1] == record[0]
        if complete:
            finish()

    def finish() -> None:
        """Called at the end, too: a node may run without a gradient for one of its outputs."""
        record = tasks.get(state.task)
        if record is not None and record[2] is not None:
            grads, record[2] = record[2], None
            fn(grads)

    def hook_any(index: int, g: Tensor) -> None:
        with guard:
            first = state.task not in tasks
            tasks[state.task] = True
        if first:
            fn(g)

    chosen = hook_all if mode == "all" else hook_any
    handles = [t.register_hook(functools.partial(chosen, i)) for i, t in enumerate(tensors)]
    return _Several(handles)


def _node(t: Tensor) -> Node:
    edge = edge_of(t)
    return edge.node if type(edge) is Port else edge


class _Several(RemovableHandle):
    """One handle for the hooks of several tensors."""

    def __init__(self, handles: list) -> None:
        self.id = next(RemovableHandle._numbers)
        self.handles = tuple(handles)

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()


