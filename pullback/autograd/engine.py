"""The engine: ready nodes -> formula -> project into the input's space -> accumulate.

Nodes are numbered in order of creation and edges lead to older nodes, so taking the newest
pending node first is a topological order: no dependency counts, no recursion, any depth. Read
next: `gradients.py` (what users call), `grad_mode.py`, `../core/tape.py`.
"""

from __future__ import annotations

import itertools
import operator
import sys
import threading
from _thread import _count as threads_running
from collections.abc import Callable
from heapq import heappop, heappush

import numpy as np

from ..array.layout import copied_like
from ..array.lazy import Lazy
from ..core.handle import Tensor, is_buffer, make, meta_of
from ..core.project import project
from ..core.tape import Accumulate, Origin, Port
from ..interp.operator_dispatch import shown
from ..memory.versions import bump
from ..memory.views import refresh
from ..table.packets import ops
from ..threads.state import ALONE, fast, off, renewed, state
from .run_hooks import run_accumulated_hooks, run_post_hooks, run_pre_hooks, run_tensor_hooks

_ndarray = np.ndarray


def edge_of(t: Tensor):
    """Where the gradient of a tensor goes, views brought up to date."""
    if t._link is not None:
        refresh(t)
    return t._edge


def node_of(edge):
    """The node that an edge leads to."""
    return edge.node if type(edge) is Port else edge


def leading_to(roots: list, targets: dict) -> set | None:
    """The nodes from which a target's can be reached; None where all of them are."""
    targets = {node for node, _ in targets}
    seen, todo = set(roots), list(roots)
    ends = set()
    while todo:
        for edge in todo.pop().edges:
            kind = edge.__class__
            if kind is Accumulate or kind is Origin:
                ends.add(edge)
            elif edge is not None:
                node = edge.node if kind is Port else edge
                if node not in seen:
                    seen.add(node)
                    todo.append(node)
    if ends and ends == targets:
        return None  # every leaf is wanted and nothing else, so every node leads to a target
    found = targets & (seen | ends)
    for node in sorted(seen, key=_number):
        for edge in node.edges:
            if edge is not None and (edge.node if edge.__class__ is Port else edge) in found:
                found.add(node)
                break
    return found


_number = operator.attrgetter("seq")
task_numbers = itertools.count()  # of sweeps that are asked for theirs


def sweep(
    roots: list, seeds: list, targets: dict | None, keep: bool, into_leaves: bool, create: bool
) -> dict:
    """Run the graph backwards; gradients that arrive at `targets`, (node, output), are returned."""
    task = state.task
    captured: dict = {}
    plus, blanks = _adder(not create and not fast["ACTIVE"]), False
    pending, heap, leaves, newest = _begun(roots, seeds, plus)
    wanted = task.wanted = None if targets is None else leading_to([*leaves, *pending], targets)
    watch, due = _watched(seeds, pending, wanted)
    while heap or newest is not None:
        node = newest
        if node is None or heap and -heap[0][0] > node.seq:
            node = heappop(heap)[1]
            if newest is not None:
                heappush(heap, (-newest.seq, newest))
        task.node, newest = node, None
        grads = pending.pop(node)
        if node.outputs == 1:
            grads = [grads]
        edges = node.edges
        if wanted is not None or targets is not None and not edges:
            edges = _at_target(node, grads, wanted, targets, captured, into_leaves)
            if edges is None:
                continue
        if node.hooks is not None:
            run_hooks(node, grads)
        needs = [e is not None for e in edges] if None in edges else (True,) * len(edges)
        if True not in needs:
            continue
        if blanks and all(g is None for g in grads):
            results = node.undefined(grads, needs)
        else:
            results = node.apply(grads, needs) if watch is None else watch(node, grads, needs)
        if node.hooks is not None and "post" in node.hooks:
            results = run_post_hooks(node, results, grads)
        for edge, g, meta in zip(edges, results, node.metas):
            if g is None or edge is None:
                blanks = edge is not None and _undefined(pending, heap, edge) or blanks
                continue
            data = g._payload
            if data.shape != meta[0] or data.dtype is not meta[1]:
                g = project(g, meta[0], meta[1], node, edges.index(edge))
            kind = edge.__class__
            if kind is Accumulate:
                have = leaves.get(edge)
                leaves[edge] = g if have is None else plus(have, g, edge)
            elif newest is None and kind is not Port and edge not in pending:
                pending[edge] = g  # most often: what made the only argument
                newest = edge
            else:
                newest = _send(pending, heap, leaves, plus, newest, edge, g)
        results = g = data = have = None  # a leaf may take over a gradient that nobody else holds
        if not keep and node.saved:
            node.release()
        if due is not None and node in due:
            _arrive_all(due[node], leaves, targets, captured, into_leaves, create)
    _arrive_all(list(leaves), leaves, targets, captured, into_leaves, create)
    return captured


def _begun(roots: list, seeds: list, plus: Callable) -> tuple:
    """What waits when a sweep begins: (pending, heap, leaves, newest)."""
    pending: dict = {}  # node -> gradient of its output, a list of them where it has several
    heap: list = []  # nodes with a gradient, but for the newest
    leaves: dict = {}  # where gradients end; they come last, whatever their number
    newest = None
    for edge, seed in zip(roots, seeds):
        newest = _send(pending, heap, leaves, plus, newest, edge, seed)
    return pending, heap, leaves, newest


def _watched(seeds: list, pending: dict, wanted: set | None) -> tuple:
    """(Who runs nodes where somebody looks at them, node -> leaves that are complete after it)."""
    watch = WATCH
    if watch is None and state.mode:
        watch = state.stack[state.mode].pull
    dispatched = fast["DISPATCHES"] and not state.mode and any(map(shown, seeds))
    if dispatched:
        from .dispatched_sweep import pull

        watch = watch or pull
    due = _last_steps(list(pending), wanted) if dispatched or fast["LEAFHOOKS"] else None
    return watch, due


def _at_target(
    node, grads: list, wanted: set | None, targets: dict, captured: dict, into_leaves: bool
) -> tuple | None:
    """Keep gradients that are wanted; the edges to go on along, None where there is no more to do.
    """
    edges = node.edges
    if wanted is not None:
        if node not in wanted:
            return None
        edges = tuple([e if e is not None and node_of(e) in wanted else None for e in edges])
    ends = node.hooks is not None and all(e is None for e in edges)
    if ends:  # `backward(inputs=)` runs such a node, too; `grad()` reads what arrives
        (run_hooks if into_leaves else run_tensor_hooks)(node, grads)
    for number, g in enumerate(grads):
        if (node, number) in targets:
            captured[node, number] = g
    return None if ends else edges


def _arrive_all(
    nodes: list, leaves: dict, targets, captured: dict, into_leaves: bool, create: bool
) -> None:
    """Gradients of leaves are complete."""
    for node in nodes:
        if node in leaves:
            _arrive(node, [leaves.pop(node)], targets, captured, into_leaves, create)


def _arrive(node, grads: list, targets, captured: dict, into_leaves: bool, create: bool) -> None:
    """The whole gradient of a leaf is there."""
    state.task.node = node
    hooks = node.hooks
    if hooks is not None:
        run_tensor_hooks(node, grads)
    if targets is not None and (node, 0) in targets:
        captured[node, 0] = grads[0]
    if not into_leaves or targets is not None and (node, 0) not in targets:
        return
    add = _accumulate_locked if threads_running() else accumulate
    if fast["DISPATCHES"] and shown(grads[0]):
        add = _accumulate_dispatched
    if hooks is None:
        add(node, grads, create)
        return
    if "pre" in hooks:
        run_pre_hooks(node, grads)
    if "post" not in hooks or add is _accumulate_dispatched:
        add(node, list(grads), create)
    else:
        grads = _begin(node, grads, create)
    if "post" in hooks:
        run_post_hooks(node, (), grads)


def _begin(node: Accumulate, grads: list, create: bool) -> list:
    """Accumulate; what post hooks are shown is the first gradient itself, which `.grad` has now."""
    leaf = node.leaf()
    first = leaf is not None and meta_of(leaf).grad is None
    with _adding:
        accumulate(node, list(grads), create, False)
    if leaf is None:
        return grads
    if first and not create and leaf._record.grad is not None:
        grad = leaf._record.grad
        grads = [grad if grad._payload.__class__ is not _ndarray else make(grad._payload)]
    if leaf._record.post_hooks:
        run_accumulated_hooks(leaf)
    return grads


def _last_steps(roots: list, wanted: set | None) -> dict:
    """Node -> leaves that are complete when it has run: the oldest node that leads to each.

    Only wanted where leaves have hooks; else leaves come after everything, which costs nothing.
    """
    oldest: dict = {}
    seen, todo = set(roots), list(roots)
    while todo:
        node = todo.pop()
        for edge in node.edges:
            if edge is None:
                continue
            kind = edge.__class__
            if kind is Accumulate:
                have = oldest.get(edge)
                if have is None or node.seq < have.seq:
                    oldest[edge] = node
                continue
            after = edge.node if kind is Port else edge
            if after not in seen and (wanted is None or after in wanted):
                seen.add(after)
                todo.append(after)
    return {
        node: [e for e in dict.fromkeys(node.edges) if oldest.get(e) is node]
        for node in oldest.values()
    }


def _send(pending: dict, heap: list, leaves: dict, plus, newest, edge, g: Tensor):
    """Add a gradient to what waits at the end of an edge; returns the newest node that waits."""
    if edge.__class__ is Accumulate:
        have = leaves.get(edge)
        leaves[edge] = g if have is None else plus(have, g, edge)
        return newest
    node, number = (edge.node, edge.number) if edge.__class__ is Port else (edge, 0)
    new = node not in pending
    if node.outputs == 1:
        have = pending.get(node)
        pending[node] = g if have is None else plus(have, g, node)
    else:
        slots = pending.setdefault(node, [None] * node.outputs)
        have = slots[number]
        slots[number] = g if have is None else plus(have, g, (node, number))
    if not new:
        return newest
    if newest is None:
        return node
    if node.seq < newest.seq:
        heappush(heap, (-node.seq, node))
        return newest
    heappush(heap, (-newest.seq, newest))
    return node


def _undefined(pending: dict, heap: list, edge) -> bool:
    """A formula has no gradient for an input: what made it runs all the same, with None.

    Custom functions are told (and may take it for zeros), other nodes pass it on.
    """
    if edge.__class__ is Accumulate:
        return False
    node = node_of(edge)
    if node.edges and node not in pending:
        pending[node] = None if node.outputs == 1 else [None] * node.outputs
        heappush(heap, (-node.seq, node))
    return True


def _adder(raw: bool):
    """The sum of two gradients on their way to one place.

    Arrays are added without ceremony where nobody watches, and from the third term on in place:
    the sum of the first two is the sweep's own.
    """
    own = set()

    def plus(have: Tensor, g: Tensor, where) -> Tensor:
        a, b = have._payload, g._payload
        if not raw or a.__class__ is not _ndarray or b.__class__ is not _ndarray:
            return have + g
        if where in own:
            np.add(a, b, a)
            return have
        own.add(where)
        return make(np.add(a, b, np.empty(a.shape, a.dtype)))

    return plus


def run_hooks(node, grads: list) -> None:
    """Hooks of tensors, then of the node, before it runs; they may replace gradients."""
    run_tensor_hooks(node, grads)
    if "pre" in node.hooks:
        run_pre_hooks(node, grads)


_adding = renewed(threading.RLock())


def _accumulate_locked(node: Accumulate, grads: list, create: bool) -> None:
    """The same where there are threads: two sweeps may reach one leaf."""
    with _adding:
        accumulate(node, grads, create, False)
    leaf = node.leaf()
    if leaf is not None and leaf._record is not None and leaf._record.post_hooks:
        run_accumulated_hooks(leaf)


def _accumulate_dispatched(node: Accumulate, grads: list, create: bool) -> None:
    """The same by operators, where somebody looks at them."""
    from .dispatched_sweep import accumulate

    accumulate(node, grads, create)


def in_numbers(g: Tensor) -> Tensor:
    """A gradient for the user to read: no conjugate that is put off."""
    return ops.clone(g) if isinstance(g._payload, Lazy) else g


def accumulate(node: Accumulate, grads: list, create: bool, hooks: bool = True) -> None:
    """Add a gradient to a leaf's `.grad`, then call its hooks."""
    leaf = node.leaf()
    g = grads.pop()
    if leaf is None or g is None:
        return
    array = leaf._payload
    data = g._payload
    meta = leaf._record or meta_of(leaf)
    dtype = meta.grad_dtype or array.dtype
    if data.shape != array.shape or data.dtype is not dtype:
        g = project(g, array.shape, dtype, node, 0)
        data = g._payload
    have = meta.grad
    if create:
        meta.grad = in_numbers(g) if have is None else have + g
    elif have is None:
        # the array itself if nobody else holds it: two leaves must not share a gradient's memory
        real = data.__class__ is _ndarray or is_buffer(data)
        if real and (
            sys.getrefcount(g) > ALONE
            or sys.getrefcount(data) > ALONE + 1
            or g._link is not None
            or isinstance(data.base, (type(data), _ndarray))
            or data.strides != array.strides
        ):
            g = make(copied_like(data, array if is_buffer(array) else data))
        elif not real and data.composed:
            g = data.kept(g)
        elif not real and getattr(getattr(data, "interp", None), "continues_tape", False):
            g = ops.detach(g)  # a tangent of `forward_ad` does not stay in a leaf
        meta.grad = g if g._edge is None else make(g._payload)
    elif is_buffer(have._payload) and is_buffer(data) and have._edge is None:
        bump(have)  # first: an interrupt between the two must not hide the write
        have._payload += data
    elif not is_buffer(data) and data.composed:
        meta.grad = data.added(have, g)
    else:
        meta.grad = have + g
    if hooks and meta.post_hooks:
        run_accumulated_hooks(leaf)


class GraphTask:
    """A sweep that runs, for whoever asks about it, and the tape's state during it: recording
    only if the gradients are to be differentiated.
    """

    reached = callbacks = wanted = parent = number = saved = None
    depth = 0

    def __init__(
        self, level: int, create: bool, roots: list, targets: dict | None, into_leaves: bool,
        keep: bool,
    ):
        self.level, self.create, self.roots = level, create, roots
        self.targets = targets  # of (node, output): whose gradients are wanted, None for all leaves
        self.gives = not into_leaves  # are they returned, as by `grad()`?
        self.into_leaves = into_leaves and targets is None
        self.node = None  # whose formula or hooks run
        self.keep = keep  # may there be another sweep through the same nodes?

    def __enter__(self):
        parent, record = state.task, state.record
        if parent is not None:
            self.parent, self.depth = parent, parent.depth + 1
        level = self.level
        shared = level if level and state.stack[level].continues_tape else 0
        self.saved = (level, record[level], shared - 1, record[shared - 1])
        state.task = self
        record[level] = self.create
        if shared:
            record[shared - 1] = self.create
        if not self.create:
            off.add(self)

    def __exit__(self, *exc):
        """Make the state what it was before; once more does no harm."""
        level, before, below, there = self.saved
        record, state.task = state.record, self.parent
        record[level] = before
        if below >= 0:
            record[below] = there
        off.discard(self)

    def interrupted(self) -> None:
        """An exception may have come before the last step of `__enter__` or `__exit__`."""
        if self.saved is not None:
            self.__exit__()

    def at_end(self, callback) -> None:
        """Call a function when the sweep is through."""
        if self.callbacks is None:
            self.callbacks = []
        self.callbacks.append(callback)

    def runs(self, node) -> bool:
        """Will this sweep come to a node (or has it)?"""
        if self.wanted is not None and node not in self.wanted:
            return False
        if self.reached is None:
            found = {node_of(e) for e in self.roots}
            todo = list(found)
            while todo:
                for edge in todo.pop().edges:
                    after = node_of(edge)
                    if after is not None and after not in found:
                        found.add(after)
                        todo.append(after)
            self.reached = found
        return node in self.reached


WATCH = None  # looks at every node that runs, where something does: (node, grads, needs) -> results
_THREAD_EVERY = 30  # so many sweeps inside of one another, then a thread of its own: Python's stack


def run(
    level: int, roots: list, seeds: list, targets: dict | None, keep: bool, into_leaves: bool,
    create: bool,
) -> dict:
    """A sweep at a level."""
    task, parent = GraphTask(level, create, roots, targets, into_leaves, keep), state.task
    if parent is not None and parent.depth % _THREAD_EVERY == _THREAD_EVERY - 1:
        from .nested_sweeps import in_new_thread

        return in_new_thread(task, sweep, (roots, seeds, targets, keep, into_leaves, create))
    try:
        with task:
            captured = sweep(roots, seeds, targets, keep, into_leaves, create)
            if task.callbacks is not None:
                for callback in task.callbacks:
                    callback()
    except BaseException:
        task.interrupted()
        raise
    return captured
