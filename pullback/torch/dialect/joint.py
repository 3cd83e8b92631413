"""Joint graphs of PyTorch's dialect: what is saved, what a write through a view is, in which order.

The values are those that a capture has anyway; what is here are nodes that PyTorch's autograd adds
while it runs: copies of what is overwritten, detached results, views that are taken once more.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ...capture.subclasses import is_wrapper, rebuilt
from ...core.events import FOLLOWS, OVERWRITES, REFRESHES, SCATTERS, VIEWED, WROTE_VIEW
from ...core.handle import Tensor, make
from ...core.project import project
from ...memory.views import recording_set, replay, scatter
from ...table.packets import ops
from .calls import TorchDialect
from .convention import TorchConvention
from .view_writes import slices

if TYPE_CHECKING:
    from ...capture.capture import Capture

# statistics that PyTorch's formulas take as they are, without history
_STATISTICS = re.compile("native_(batch|layer)_norm|_native_batch_norm|_weight_norm|native_dropout"
                         "|_batch_norm").match


class JointDialect(TorchDialect):
    """The dialect of one capture of a joint graph."""

    def __init__(self, compositions: Mapping[str, Callable]):
        super().__init__(compositions)
        self.convention = TorchConvention()
        self._written: Tensor | None = None  # the view that was written last, by its place
        self._old: dict = {}  # what is about to be overwritten -> a copy for its pullback
        self.events = {
            OVERWRITES: self._overwrites, SCATTERS: self._scatters, WROTE_VIEW: self._wrote_view,
            REFRESHES: self._refreshes, VIEWED: self._viewed, FOLLOWS: self._follows}

    # values that are overwritten

    def _overwrites(self, level: Capture, ov: Any, flat: tuple, t: Tensor) -> None:
        """Copy a value that an operator is about to overwrite, where its pullback needs it."""
        rule = self.rule(ov)
        for (_, kind, name, _), guard in zip(rule.saves, rule.guards) if rule else ():
            needed = not guard or any(getattr(flat[rule.inputs[g]], "_edge", None) is not None
                                      for g in guard)
            if kind == "arg" and name == rule.schema.args[0].name and needed:
                with recording_set(level.level, False):
                    old = self._old[t._payload] = ops.clone(make(t._payload))
                    level.node(old).meta["partitioner_tag"] = "is_forward"

    def recorded(self, level: Capture, flat: tuple, out: Any) -> None:
        old = self._old.pop(flat[0]._payload, None) if self._old and flat else None
        node = getattr(out, "_edge", None)
        if old is not None and node is not None and node.saved:
            node.saved = tuple(old if isinstance(v, Tensor)
                               and v._payload is flat[0]._payload else v
                               for v in node.saved)

    # writes through views

    def _scatters(self, level: Capture, base: Tensor, chain: tuple, new: Tensor, by: Any):
        """The base after a write through a view by an operator, with a history of its own."""
        if not (level.mine(base) and level.mine(new)) or new._edge is None and base._edge is None:
            return None
        node = slices(base, chain, new, by, level.pull)
        if node is None:
            return None
        with recording_set(level.level, False):
            whole = scatter(make(base._payload), chain, make(new._payload))
        whole._edge = node
        return whole

    def _wrote_view(self, level: Capture, x: Tensor) -> None:
        # as often as PyTorch takes the view: the numbers of nodes show it
        with recording_set(level.level, False):
            replay(make(x._link.base._payload), x._link.chain)
        self._written = x if x._link.chain[0][0].name == "as_strided" else None

    def _refreshes(self, level: Capture) -> None:
        # the first look at another view after such a write takes it once more
        x, self._written = self._written, None
        if x is not None:
            with recording_set(level.level, False):
                replay(make(x._link.base._payload), x._link.chain)

    def _viewed(self, level: Capture, cell: Any) -> bool:
        """Is a view of this memory taken again when it is used first?  It was written, then."""
        reshapes = sum(len(v.steps) for v in level.memory.views.values() if v.handle._cell is cell)
        return cell.version > reshapes

    def _follows(self, level: Capture, value: Tensor) -> Tensor:
        """A detached alias is brought up to date by a node."""
        return level.detached(value)

    # the backward

    def pull(self, level: Capture, run: Callable, node: Any, grads: list, needs: list) -> list:
        recorder = level.recorder
        if level.joined:  # sums of what arrives belong to the node that sent the last one
            recorder.latest = node
        if node.saved and node.rule.saves:
            _detach_saved(level, node)
        results = run(node, grads, needs)
        before, recorder.pulled = recorder.pulled, node
        # all of them before the first is added to another: the order of PyTorch's graphs
        results = [
            project(g, meta[0], meta[1], node, i)
            if need and g is not None and meta is not None and (
                g._payload.shape != meta[0] or g._payload.dtype != meta[1])
            else g
            for i, (g, need, meta) in enumerate(zip(results, needs, node.metas))
        ]
        recorder.pulled = before
        return results


def _detach_saved(level: Capture, node: Any) -> None:
    """PyTorch detaches results that are saved, when they are saved and when they are used."""
    rule, saved = node.rule, list(node.saved)
    plain: list[int] = []

    def twice(values: list[Tensor]) -> list[Tensor]:
        return _detached_twice(level, values)

    for i, (name, kind, _, _) in enumerate(rule.saves):
        value = saved[i] if kind == "out" else None
        if value is None or not (level.mine(value) or is_wrapper(value)):
            continue
        number = rule.outputs.index(name)
        if rule.diff_outputs[number] and not (number and _STATISTICS(rule.overload.name)):
            if level.mine(value):
                plain.append(i)
                continue
            saved[i] = rebuilt(value, twice)
            saved[i]._cell = value._cell
    for i, again in zip(plain, twice([saved[i] for i in plain])):
        again._cell, saved[i] = saved[i]._cell, again
    node.saved = tuple(saved)


def _detached_twice(level: Capture, values: list[Tensor]) -> list[Tensor]:
    """The same values detached, behind the last of them in the graph, and again here."""
    recorder, nodes = level.recorder, [v._payload.node for v in values]
    if not nodes or any("kept" in n.meta for n in nodes):
        return values
    kept, point = [], max(nodes) if len(nodes) > 1 else nodes[0]
    while point.next.target is operator.getitem and point.next.args[0] is point.args[0]:
        point = point.next  # behind all results of the operator
    while point.next.meta.get("kept") and point.next.args[0].args[0] is point.args[0]:
        point = point.next
    for v in values:
        with recorder.graph.inserting_after(point):
            point = recorder.call(level.apart, (v._payload.node,), v._payload.inner)
        kept.append(point)
        point.meta["partitioner_tag"] = "is_forward"
    later = [recorder.call(level.apart, (k,), v._payload.inner) for k, v in zip(kept, values)]
    for n in (*kept, *later):
        n.meta["kept"] = True
    return [level.wrap(v._payload.inner, n) for v, n in zip(values, later)]
