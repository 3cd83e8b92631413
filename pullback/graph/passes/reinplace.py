"""`reinplace`: writes in the place of new results, where nobody can tell.

`add(a, 1)` becomes `add_(a, 1)` if nobody reads what was in `a`, or in a view of its memory,
afterwards, and if that memory is no input of the graph.  A scatter of what has been written into
the region that it stands for is nothing then, and goes; any other becomes a `copy_` into a view.
"""

from __future__ import annotations

import heapq
from typing import Any

from ...core.overload import OpOverload, overload
from ...table.packets import ops
from ..fake_mode import FakeTensorMode
from ..graph_module import GraphModule
from ..node import Node, map_arg
from ..traits import cost_of, trait
from .fake_tensor_prop import FakeTensorProp


def reinplace(gm: GraphModule, *sample_args: Any) -> GraphModule:
    """Change the calls of a functional graph that may write into their first argument."""
    mode = FakeTensorMode()
    FakeTensorProp(gm, mode).propagate(*sample_args)
    with mode:
        _Reinplacing(gm).run()
    gm.recompile()
    return gm


class _Reinplacing:
    """The walk over a graph: what each value looks like, and in whose memory it is."""

    def __init__(self, gm: GraphModule) -> None:
        self.graph = gm.graph
        self.nodes = list(gm.graph.nodes)
        self.place = {n: k for k, n in enumerate(self.nodes)}
        self.value = {n: n.meta.get("val") for n in self.nodes}
        self.memory: dict[Node, Node] = {}
        self.ahead = {n: dict(n.users) for n in self.nodes}  # the readers still to come
        self.read: dict[Node, dict[Node, None]] = {}  # memory -> its values that have such

    def run(self) -> None:
        for node in self.nodes:
            self._pass(node)
            self._visit(node)
            if self.ahead[node]:
                self.read.setdefault(self.memory[node], {})[node] = None

    def _pass(self, node: Node) -> None:
        """A node is where the walk is: it is no later reader any more."""
        for source in node._inputs:
            ahead = self.ahead[source]
            ahead.pop(node, None)
            if not ahead:
                self.read.get(self.memory[source], {}).pop(source, None)

    def _visit(self, node: Node) -> None:
        if _is_view(node):  # of what may be in another place by now
            self.value[node] = _again(node, self.value)
            self.memory[node] = self.memory[node.args[0]]
            return
        self.memory[node] = node
        if not isinstance(node.target, OpOverload) or not (
                node.args and isinstance(node.args[0], Node)):
            return
        own = node.args[0]
        if self.memory[own].op in ("placeholder", "get_attr"):
            return
        if _view_of(node) is not None:
            self._scatter(node, own, node.args[1])
        elif (list(node.args).count(own) == 1 and _same(self.value[own], self.value[node])
              and not self._is_read_after(node, own)):
            name, _, overload = node.target.name.partition(".")
            written = _in_place(name, overload or "default")
            if written is not None:
                node.target = written
                self._become(node, own)

    def _become(self, node: Node, own: Node) -> None:
        for user in list(node.users):
            user.replace_input_with(node, own)
        if self.ahead[node]:
            self.ahead[own].update(self.ahead[node])
            self.read.setdefault(self.memory[own], {})[own] = None
            self.ahead[node] = {}

    def _scatter(self, node: Node, base: Node, source: Any) -> None:
        if not isinstance(source, Node):
            return
        region = _region(_sliced(node, self.value[base]))
        through = self.memory[source] is self.memory[base] and (
            _region(self.value[source]) == region)
        if not through:
            if self._is_read_after(node, base):
                return
            with self.graph.inserting_before(node):
                view = self.graph.call_function(
                    _view_of(node), (base, *node.args[2:]), dict(node.kwargs))
                self.graph.call_function(ops.copy_.default, (view, source))
            self.memory[view], self.value[view] = self.memory[base], None
        self._become(node, base)
        self.graph.erase_node(node)

    def _is_read_after(self, node: Node, own: Node) -> bool:
        """Is what was in the memory of `own` read later, scatters that will go aside?"""
        memory = self.memory[own]
        own_region = _region(self.value[own])
        for arg in node._inputs:
            if arg is not own and self.memory[arg] is memory and (
                    _region(self.value[arg]) != own_region):
                return True
        written = {node: self.value[own]}  # what will be in that memory, and how it looks there
        old = dict(self.read.get(memory, {}))
        if any(not _is_view(n) and _view_of(n) is None for value in old for n in self.ahead[value]):
            return True
        todo = [self.place[n] for value in (node, *old) for n in self.ahead[value]]
        heapq.heapify(todo)
        seen = -1
        while todo:
            at = heapq.heappop(todo)
            if at == seen:  # reads several of them
                continue
            seen, later = at, self.nodes[at]
            source = later.args[0] if later.args else None
            if _is_view(later) and source in written:
                try:
                    written[later] = _again(later, written)
                except RuntimeError:  # what is a view of a new result may be none of that memory
                    return True
            elif _is_view(later) and source in old:
                old[later] = None
            elif any(n in old for n in later._inputs):
                if _view_of(later) is None or later.args[1] not in written or (
                        any(n in old for n in later._inputs if n is not source)):
                    return True
                base = self.value[source]
                if _region(_sliced(later, base)) != _region(written[later.args[1]]):
                    return True
                written[later] = base
            else:
                continue
            for user in later.users:
                heapq.heappush(todo, self.place[user])
        return False


def _is_view(node: Node) -> bool:
    return node.op == "call_function" and cost_of(node.target) == "view" and bool(
        node.args and isinstance(node.args[0], Node))


def _view_of(node: Node) -> Any:
    """The view that a scatter writes through, None for anything else."""
    name = trait(node.target, "writes_view")
    return None if name is None else overload(name)


def _again(node: Node, values: dict[Node, Any]) -> Any:
    """The result of a node on other values."""
    args, kwargs = map_arg((node.args, node.kwargs), lambda n: values.get(n, n.meta.get("val")))
    return node.target(*args, **kwargs)


def _sliced(scatter: Node, base: Any) -> Any:
    args, kwargs = map_arg((scatter.args[2:], scatter.kwargs), lambda n: n.meta["val"])
    return _view_of(scatter)(base, *args, **kwargs)


def _region(value: Any) -> tuple:
    return tuple(value.shape), tuple(value.stride()), value.storage_offset()


def _in_place(name: str, overload: str) -> Any:
    """The overload that writes, if there is one."""
    try:
        return getattr(getattr(ops, f"{name}_"), overload)
    except AttributeError:
        return None


def _same(own: Any, result: Any) -> bool:
    """Does a result fit where the argument is, which has a place for every number?"""
    return (hasattr(own, "shape") and hasattr(result, "shape") and own.shape == result.shape
            and own.dtype == result.dtype
            and 0 not in [s for s, n in zip(own.stride(), own.shape) if n > 1])
