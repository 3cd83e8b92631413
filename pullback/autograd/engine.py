"""The engine: ready nodes -> formula -> project into the input's space -> accumulate.

Nodes are numbered in order of creation and edges lead to older nodes, so taking the newest
pending node first is a topological order: no dependency counts, no recursion, any depth. Read
next: `grad_mode.py`, `../core/tape.py`.
"""

from __future__ import annotations

import itertools
import operator
import sys
import threading
import warnings
from _thread import _count as threads_running
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from .. import errors
from ..array import dtype as dt
from ..array.layout import copied_like
from ..core.dispatching import looked_at, shown
from ..core.handle import Tensor, is_buffer, make, meta_of
from ..core.hooks import run_accumulated_hooks, run_post_hooks, run_pre_hooks, run_tensor_hooks
from ..core.overriding import offer_functions
from ..core.project import project
from ..core.stack import outlived
from ..core.state import ALONE, fast, off, renewed, state
from ..core.surface import bump, refresh
from ..core.tape import Accumulate, Blind, Node, Origin, Port, level_own, port
from ..interp.vmap import Vmap
from ..table.packets import ops

_ndarray = np.ndarray


def edge_of(t: Tensor):
    """Where the gradient of a tensor goes, views brought up to date."""
    if t._link is not None:
        refresh(t)
    return t._edge


def node_of(edge):
    """The node that an edge leads to."""
    return edge.node if type(edge) is Port else edge


def reaching(roots: list, targets: set) -> set | None:
    """The nodes from which one of the targets can be reached; None where all of them are."""
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
    """Run the graph backwards; `targets` maps wanted edges' (node, output) to nothing yet.

    Returns the gradients captured at the targets.
    """
    task = state.task
    pending: dict = {}  # node -> gradient of its output, a list of them where it has several
    heap: list = []  # nodes with a gradient, but for the newest
    leaves: dict = {}  # where gradients end; they come last, whatever their number
    plus = _adder(not create and not fast["ACTIVE"])
    newest = None
    for edge, seed in zip(roots, seeds):
        newest = _send(pending, heap, leaves, plus, newest, edge, seed)
    captured: dict = {}
    wanted = None
    if targets is not None:
        wanted = reaching([*leaves, *pending], {node for node, _ in targets})
        if wanted is not None:
            task.wanted = wanted
    watch, blanks = WATCH, False
    if watch is None and state.mode:
        watch = state.stack[state.mode].pull
    add = _accumulate_locked if threads_running() else accumulate
    dispatched = fast["DISPATCHES"] and not state.mode and any(map(shown, seeds))
    if dispatched:
        from .dispatched_sweep import pull

        watch, add = watch or pull, _accumulate_dispatched
    due = _last_steps(list(pending), wanted) if dispatched or fast["LEAFHOOKS"] else None
    while True:
        node, newest = newest, None
        if heap and (node is None or -heap[0][0] > node.seq):
            found = heappop(heap)[1]
            if node is not None:
                heappush(heap, (-node.seq, node))
            node = found
        elif node is None:
            break
        task.node = node
        grads = pending.pop(node)
        if node.outputs == 1:
            grads = [grads]
        edges = node.edges
        if wanted is not None or targets is not None and not edges:
            if wanted is not None:
                if node not in wanted:
                    continue
                edges = tuple(
                    [e if e is not None and node_of(e) in wanted else None for e in edges]
                )
            ends = node.hooks is not None and all(e is None for e in edges)
            if ends:  # `backward(inputs=)` runs such a node, too; `grad()` reads what arrives
                (run_hooks if into_leaves else run_tensor_hooks)(node, grads)
            for number, g in enumerate(grads):
                if (node, number) in targets:
                    captured[node, number] = g
            if ends:
                continue
        if node.hooks is not None:
            run_hooks(node, grads)
        if None not in edges:
            if not edges:
                continue
            needs = (True,) * len(edges)
        else:
            needs = [e is not None for e in edges]
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
                if edge is not None and edge.__class__ is not Accumulate:
                    blanks = True
                    _undefined(pending, heap, edge)
                continue
            data = g._data
            if data.shape != meta[0] or data.dtype is not meta[1]:
                g = project(g, meta[0], meta[1], node, edges.index(edge))
            kind = edge.__class__
            if kind is Accumulate:
                have = leaves.get(edge)
                leaves[edge] = g if have is None else plus(have, g, edge)
            elif newest is None and kind is not Port and edge not in pending:
                pending[edge] = g
                newest = edge
            else:
                newest = _send(pending, heap, leaves, plus, newest, edge, g)
        results = g = data = have = None  # a leaf may take over a gradient that nobody else holds
        if not keep and node.saved:
            node.release()
        if due is not None and node in due:
            for leaf in due[node]:
                if leaf in leaves:
                    _arrive(leaf, [leaves.pop(leaf)], targets, captured, into_leaves, create)
    for node in list(leaves):
        if targets is None and into_leaves and node.hooks is None:
            task.node = node
            add(node, [leaves.pop(node)], create)
        else:
            _arrive(node, [leaves.pop(node)], targets, captured, into_leaves, create)
    return captured


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
    if first and not create and leaf._meta.grad is not None:
        grads = [make(leaf._meta.grad._data)]
    if leaf._meta.post_hooks:
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


def _undefined(pending: dict, heap: list, edge) -> None:
    """A formula has no gradient for an input: what made it runs all the same, with None.

    Custom functions are told (and may take it for zeros), other nodes pass it on.
    """
    node = node_of(edge)
    if node.edges and node not in pending:
        pending[node] = None if node.outputs == 1 else [None] * node.outputs
        heappush(heap, (-node.seq, node))


def _adder(raw: bool):
    """The sum of two gradients on their way to one place.

    Arrays are added without ceremony where nobody watches, and from the third term on in place:
    the sum of the first two is the sweep's own.
    """
    own = set()

    def plus(have: Tensor, g: Tensor, where) -> Tensor:
        a, b = have._data, g._data
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
    if leaf is not None and leaf._meta is not None and leaf._meta.post_hooks:
        run_accumulated_hooks(leaf)


def _accumulate_dispatched(node: Accumulate, grads: list, create: bool) -> None:
    """The same by operators, where somebody looks at them."""
    from .dispatched_sweep import accumulate

    accumulate(node, grads, create)


def accumulate(node: Accumulate, grads: list, create: bool, hooks: bool = True) -> None:
    """Add a gradient to a leaf's `.grad`, then call its hooks."""
    leaf = node.leaf()
    g = grads.pop()
    if leaf is None or g is None:
        return
    array = leaf._data
    data = g._data
    meta = leaf._meta or meta_of(leaf)
    dtype = meta.grad_dtype or array.dtype
    if data.shape != array.shape or data.dtype is not dtype:
        g = project(g, array.shape, dtype, node, 0)
        data = g._data
    have = meta.grad
    if create:
        meta.grad = g if have is None else have + g
    elif have is None:
        # the array itself if nobody else holds it: two leaves must not share a gradient's memory
        real = data.__class__ is _ndarray or is_buffer(data)
        if real and (
            sys.getrefcount(g) > ALONE
            or sys.getrefcount(data) > ALONE + 1
            or g._link is not None
            or isinstance(data.base, type(data))
            or data.strides != array.strides
        ):
            g = make(copied_like(data, array if is_buffer(array) else data))
        elif not real and getattr(getattr(data, "interp", None), "shares", False):
            g = ops.detach(g)  # a tangent of `forward_ad` does not stay in a leaf
        meta.grad = g if g._edge is None else make(g._data)
    elif is_buffer(have._data) and is_buffer(data) and have._edge is None:
        bump(have)  # first: an interrupt between the two must not hide the write
        have._data += data
    else:
        meta.grad = have + g
    if hooks and meta.post_hooks:
        run_accumulated_hooks(leaf)


class GraphTask:
    """A sweep that runs, for whoever asks about it, and the tape's state during it: recording
    only if the gradients are to be differentiated.
    """

    reached = callbacks = wanted = parent = number = saved = None
    node = None  # whose formula or hooks run
    depth = 0

    def __init__(
        self, level: int, create: bool, roots: list, targets: dict | None, into_leaves: bool,
        keep: bool,
    ):
        self.level, self.create, self.roots = level, create, roots
        self.targets = targets  # of (node, output): whose gradients are wanted, None for all leaves
        self.gives = not into_leaves  # are they returned, as by `grad()`?
        self.into_leaves = into_leaves and targets is None
        self.keep = keep  # may there be another sweep through the same nodes?

    def __enter__(self):
        parent, record = state.task, state.record
        if parent is not None:
            self.parent, self.depth = parent, parent.depth + 1
        level = self.level
        shared = level if level and state.stack[level].shares else 0
        self.saved = (level, record[level], shared - 1, record[shared - 1], state.into_leaves)
        state.task, state.into_leaves = self, self.into_leaves
        record[level] = self.create
        if shared:
            record[shared - 1] = self.create
        if not self.create:
            off.add(self)

    def __exit__(self, *exc):
        """Make the state what it was before; once more does no harm."""
        level, before, below, there, state.into_leaves = self.saved
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
        from .deep import elsewhere

        return elsewhere(task, sweep, (roots, seeds, targets, keep, into_leaves, create))
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


def seeds_for(outputs: list, gradients, what: str) -> list:
    """The gradients that start a sweep, checked."""
    if gradients is None or isinstance(gradients, Tensor):
        gradients = (
            [gradients] if len(outputs) == 1 or gradients is not None else [None] * len(outputs)
        )
    gradients = list(gradients)
    if len(gradients) != len(outputs):
        raise errors.GradientShapeError(
            f"got {len(outputs)} tensors and {len(gradients)} gradients"
        )
    seeds = []
    for out, g in zip(outputs, gradients):
        if out.__class__ is GradientEdge:
            out = _stand_in(out)
            if out is None:
                seeds.append(_given(g))
                continue
        elif out._edge is None:
            edge_of(out)
        if g is None:
            if out.numel() != 1:
                raise errors.GradientShapeError(
                    errors.text(
                        "grad can be implicitly created only for scalar outputs "
                        f"({errors.user_line(2)})",
                        f"the output has shape {list(out.shape)}",
                        f"reduce it first, for instance out.sum().{what}(), or give the gradient",
                    )
                )
            if out.dtype.is_complex:
                raise errors.GradientShapeError(
                    "grad can be implicitly created only for real scalar outputs but got "
                    f"{out.dtype} "
                    f"({errors.user_line(2)})"
                )
            g = _unit(out)
        elif tuple(g.shape) != tuple(out.shape):
            raise errors.GradientShapeError(
                errors.text(
                    f"Mismatch in shape: the gradient has shape {list(g.shape)} and the output "
                    "has shape "
                    f"{list(out.shape)} ({errors.user_line(2)})",
                    cure="give a gradient of the output's shape",
                )
            )
        elif g.dtype.is_complex != out.dtype.is_complex:
            raise errors.GradientShapeError(
                "For complex Tensors, both grad_output and output are required to have the same "
                "dtype "
                f"(gradient {g.dtype}, output {out.dtype}; {errors.user_line(2)})"
            )
        elif g.dtype is not out.dtype:
            g = g.to(out.dtype)
        seeds.append(g)
    return seeds


def _stand_in(edge: GradientEdge) -> Tensor | None:
    """A tensor of the shape of those that an edge belongs to, None where that is not known."""
    leaf = edge.node.leaf() if isinstance(edge.node, Accumulate) else None
    if leaf is not None:
        return leaf
    token = edge.ownership_token
    if token is None:
        return None
    return make(np.broadcast_to(np.zeros((), token.dtype), token.shape))


def _given(g) -> Tensor:
    if g is None:
        raise errors.GradientShapeError(
            errors.text(
                "the gradient of a GradientEdge that was made by hand must be given "
                f"({errors.user_line(3)})",
                cure="pass it, or make the edge with get_gradient_edge(tensor)",
            )
        )
    return g


_UNITS: dict = {}  # 0-d ones per dtype: the seed of nearly every sweep


def _unit(out: Tensor) -> Tensor:
    """The gradient of an output with respect to itself."""
    data = out._data
    if type(data) is not _ndarray or data.ndim or state.mode or (
            fast["ACTIVE"] and fast["DISPATCHES"] and looked_at()):
        return ops.ones_like(out)
    if data.dtype not in _UNITS:
        _UNITS[data.dtype] = np.ones((), data.dtype)
    return make(_UNITS[data.dtype])


class GradientEdge(NamedTuple):
    """A place in a graph where a gradient arrives: an output of a node."""

    node: Node
    output_nr: int
    ownership_token: object = None  # keeps a leaf alive, and knows the shape


def _listed(value) -> list:
    return [value] if isinstance(value, (Tensor, GradientEdge)) else list(value)


def _roots(outputs: list) -> list:
    edges = []
    for i, out in enumerate(outputs):
        if out.__class__ is GradientEdge:
            edges.append(port(out.node, out.output_nr))
            continue
        edge = edge_of(outlived(out))
        if edge is None or edge.__class__ is Blind:
            raise errors.NoGraph(
                errors.text(
                    f"element {i} of tensors does not require grad and does not have a grad_fn "
                    f"({errors.user_line(2)})",
                    f"tensor: {out.dtype.name}{list(out.shape)}",
                    "call requires_grad_() on an input before computing, and compute outside of "
                    "no_grad",
                )
            )
        edges.append(edge)
    return edges


def backward(
    tensors,
    grad_tensors=None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables=None,
    inputs=None,
) -> None:
    """Accumulate the gradients of `tensors` into the leaves (or only into `inputs`).

    `grad_variables` is the old name of `grad_tensors`.
    """
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning,
                      stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both "
                               "passed to `backward()`. Please only use `grad_tensors`.")
        grad_tensors = grad_variables
    outputs = _listed(tensors)
    roots = _roots(outputs)
    seeds = seeds_for(outputs, grad_tensors, "backward")
    if create_graph:
        _warn_of_cycles()
    keep = create_graph if retain_graph is None else retain_graph
    targets = None
    if inputs is not None:
        inputs = _listed(inputs)
        if not inputs:
            raise errors.NoGraph("'inputs' argument to backward cannot be empty.")
        targets = dict.fromkeys(_target(t) for t in inputs)
        for t in inputs:
            if isinstance(t, Tensor):
                t.retain_grad()
    run(_level(outputs), roots, seeds, targets, keep, True, create_graph)


def _warn_of_cycles() -> None:
    """Say once that a leaf and a gradient with a history hold each other."""
    from ..switches import is_warn_always_enabled

    global _warned
    if not _warned or is_warn_always_enabled():
        _warned = True
        warnings.warn("Using backward() with create_graph=True makes a reference cycle of a "
                      "parameter and its gradient: memory may stay until the garbage collector "
                      "runs. autograd.grad() makes none; else set .grad to None after use.",
                      UserWarning, stacklevel=4)


_warned = False


def _level(outputs: list) -> int:
    """The level that a sweep from these outputs runs on."""
    level = state.mode
    for t in outputs:
        own = t.node.level if t.__class__ is GradientEdge else level_own(t._data)
        level = own if own > level else level
    return level


def _target(t) -> tuple:
    if t.__class__ is GradientEdge:
        return t.node, t.output_nr
    edge = edge_of(t)
    if edge.__class__ is Blind:  # nothing leads there: unused
        return Blind(), 0
    if edge is None:
        raise errors.NoGraph(
            errors.text(
                f"One of the differentiated Tensors does not require grad ({errors.user_line(2)})",
                f"tensor: {t.dtype.name}{list(t.shape)}",
                "call requires_grad_() on it before computing",
            )
        )
    return (edge.node, edge.number) if type(edge) is Port else (edge, 0)


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple:
    """Gradients of `outputs` with respect to `inputs`, returned instead of accumulated.

    `only_inputs` is accepted for old programs; nothing is ever accumulated.
    """
    outputs, inputs = _listed(outputs), _listed(inputs)
    if not inputs:
        raise errors.NoGraph(
            errors.text(
                f"`inputs` argument to `grad()` cannot be empty ({errors.user_line(2)})",
                cure="name the tensors whose gradients are wanted",
            )
        )
    if is_grads_batched:
        return _batched_grad(
            outputs,
            inputs,
            grad_outputs,
            retain_graph,
            create_graph,
            allow_unused,
            materialize_grads,
        )
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, "
            "but got: allow_unused=False."
        )
    roots = _roots(outputs)
    seeds = seeds_for(outputs, grad_outputs, "sum")
    keys = [_target(t) for t in inputs]
    keep = create_graph if retain_graph is None else retain_graph
    captured = run(
        _level(outputs), roots, seeds, dict.fromkeys(keys), keep, False, create_graph
    )
    results = []
    for t, key in zip(inputs, keys):
        g = captured.get(key)
        if t.__class__ is GradientEdge:
            t = _stand_in(t)
            if t is None:
                if g is None and materialize_grads:
                    raise errors.GradientShapeError(errors.text(
                        "materialize_grads cannot be used when the given input is a GradientEdge "
                        f"made by hand, which has no shape ({errors.user_line(1)})",
                        cure="pass the tensor, or get_gradient_edge(tensor)"))
                if g is None and not allow_unused:
                    raise _unused("a GradientEdge")
                results.append(g)
                continue
        if g is None and materialize_grads:
            g = ops.zeros_like(t)
            if create_graph:
                g.requires_grad_()
        elif g is None and not allow_unused:
            raise _unused(f"{t.dtype.name}{list(t.shape)}")
        elif g is not None and (g._data.shape != t._data.shape or g._data.dtype != t._data.dtype):
            g = project(g, t._data.shape, t._data.dtype)
        results.append(g)
    return tuple(results)


def _unused(what: str) -> errors.UnusedInput:
    return errors.UnusedInput(
        errors.text(
            "One of the differentiated Tensors appears to not have been used in the graph "
            f"({errors.user_line(3)})",
            f"tensor: {what}",
            "Set allow_unused=True if this is the desired behavior (its gradient is then None)",
        )
    )


def _batched_grad(
    outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize
):
    """Gradients for a batch of seeds at once: one sweep below a batching level."""
    seeds = _listed(grad_outputs) if grad_outputs is not None else []
    if not seeds or any(g is None for g in seeds):
        raise errors.GradientShapeError(
            errors.text(
                f"is_grads_batched=True needs all grad_outputs ({errors.user_line(3)})",
                cure="give one batch of gradients per output, the batch dimension first",
            )
        )
    keep = create_graph if retain_graph is None else retain_graph
    with Vmap(seeds[0].shape[0]) as level:
        batch = [level.wrap(g) for g in seeds]
        found = grad(
            outputs, inputs, batch, keep, create_graph,
            allow_unused=allow_unused, materialize_grads=materialize,
        )
        return tuple(None if g is None else level.stacked(g) for g in found)


def as_gradient(value, like: Tensor) -> Tensor:
    """Check a value that a user assigns to `.grad`."""
    if value is None:
        return None
    if not isinstance(value, Tensor):
        raise TypeError(
            f"assigned grad expected to be a Tensor or None but got {type(value).__name__}"
        )
    if value is like:
        raise errors.GradientShapeError(
            f"can't assign Variable as its own grad ({errors.user_line(2)})"
        )
    if tuple(value.shape) != tuple(like.shape):
        raise errors.GradientShapeError(
            f"assigned grad has data of a different size: {list(value.shape)} for a tensor of "
            "shape "
            f"{list(like.shape)} ({errors.user_line(2)})"
        )
    if value.dtype is not like.grad_dtype:
        raise errors.GradientShapeError(
            f"assigned grad has data of a different type: {value.dtype} for {like.grad_dtype} "
            f"({errors.user_line(2)})"
        )
    return value


def floating(dtype: dt.DType) -> bool:
    """Can a tensor of this dtype require grad?"""
    return dtype.category >= 2


offer_functions(grad)
