"""Custom functions and hooks inside of a captured function, for graphs that are differentiated.

A double backward runs the joint graph on handles, so that the tape records its operators.  That is
the history that eager code has, but for two things: the history of a custom function is its
`backward`, not that of the operators in its `forward`, and hooks change the gradients of what they
are registered on, in every sweep.  A `Graft` remembers what of the graph is the backward of such a
call; `grafted` makes the graph to be differentiated, in which the results of the call are those of
a function with that part of the graph as its backward; `with_histories` does the rest for graphs
in PyTorch's form.  Read next: `differentiable_backward` in `run.py`, which runs it.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import errors
from ..autograd.function import Function
from ..autograd.grad_mode import no_grad
from ..core.handle import Tensor, make
from ..core.overload import OpOverload, overload
from ..errors import place
from ..graph.graph import Graph
from ..graph.graph_module import GraphModule
from ..graph.node import Node, fetch_attribute, map_arg
from ..table.packets import ops

_FACTOR = 64  # beyond bounds that gradients are clipped to
_SLACK = 1e-2  # of half precision; what is not linear differs by more


@dataclass
class Graft:
    """A call with a backward of its own, in terms of nodes of a joint graph."""

    what: str  # for messages
    where: tuple  # the user's place
    inputs: list[Node]
    outputs: list[Node | None]  # None: no tensor, or none that is differentiated
    inner: list[Node] = field(default_factory=list)  # what the forward recorded
    grads: list[Node | None] | None = None  # what came to its backward, once it has run
    results: list[Node | None] = field(default_factory=list)  # what went out
    steps: list[Node] = field(default_factory=list)  # what it recorded
    broken: bool = False  # did something else change gradients on the way?
    derived: bool = False  # is it known to be linear in the gradients?
    done: set = field(default_factory=set)

    def ran(self, part: Any, given: list, sent: list, steps: list[Node]) -> None:
        """A part of its backward (a hook, or the function's own) has run; the first time counts."""
        if part in self.done:
            return
        self.done.add(part)
        if self.grads is None:
            self.grads = given
        elif given != self.results:
            self.broken = True
        self.results = sent
        self.steps += steps

    def refuse(self, why: str) -> errors.NotDifferentiable:
        return errors.NotDifferentiable(errors.text(
            f"gradients of gradients do not go through {self.what} inside of a compiled function "
            f"({errors.describe_place(self.where)})", why,
            "do not compile the function whose gradient is differentiated"))


def _needed(graft: Graft) -> tuple[list[Node], list[Node]]:
    """The steps of a backward that its results are made of, and the other values they use."""
    mine, known = set(graft.steps), {g for g in graft.grads or () if g is not None}
    wanted: dict[Node, None] = {}
    others: dict[Node, None] = {}
    todo = [r for r in graft.results if r is not None]
    while todo:
        node = todo.pop()
        if node in known or node in wanted or node in others:
            continue
        if node in mine and node.op == "call_function":
            wanted[node] = None
            todo += node.all_input_nodes
        else:
            others[node] = None
    return [n for n in graft.steps if n in wanted], list(others)


class _Grafted(Function):
    """Values that are given, with a part of a joint graph as their backward."""

    @staticmethod
    def forward(ctx: Any, call: Call, others: list, values: tuple, *inputs: Tensor) -> tuple:
        ctx.call, ctx.others = call, others
        ctx.set_materialize_grads(False)
        outputs = tuple([v.view_as(v) for v in values])
        ctx.save_for_backward(*inputs, *outputs)
        return outputs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple:
        return None, None, None, *ctx.call.backward(ctx.saved_tensors, ctx.others, grads)


class Call:
    """What stands in a grafted graph in place of a custom function or a hook."""

    def __init__(self, graft: Graft, places: dict[Node, int], module: GraphModule):
        self.graft, self.__name__ = graft, "graft"
        self.checked = False  # is its backward known to be linear?
        self.live = [o for o in graft.outputs if o is not None]
        self.steps, needed = _needed(graft)
        known = {*graft.inputs, *self.live}
        self.constants = {n: fetch_attribute(module, n.target) for n in needed
                          if n.op == "get_attr"}
        self.others = [n for n in needed if n not in known and n not in self.constants]
        end = max(places[o] for o in self.live)
        self.early = all(places[n] <= end for n in self.others)
        came = [g for g in graft.grads or () if g is not None]
        self.distinct = len(set(came)) == len(came)

    def __call__(self, inputs: list, values: list, others: list) -> tuple:
        return _Grafted.apply(self, others, tuple([v.detach() for v in values]), *inputs)

    def backward(self, saved: tuple, others: list, grads: tuple) -> list:
        graft = self.graft
        if graft.grads is None or graft.broken or not self.early or not self.distinct:
            raise graft.refuse("its backward was not captured on its own")
        count = len(graft.inputs)
        known: dict[Node, Any] = {**self.constants, **dict(zip(self.others, others))}
        known.update(zip(graft.inputs, saved[:count]))
        known.update(zip(self.live, saved[count:]))
        given = iter(zip(grads, saved[count:]))
        for out, came in zip(graft.outputs, graft.grads):
            if out is None:
                continue
            grad, like = next(given)
            if came is not None:
                known[came] = like.new_zeros(like.shape) if grad is None else grad
            elif grad is not None:
                raise graft.refuse("it got a gradient that its captured backward has not seen")
        if not self.checked and not self._is_linear(known):
            raise graft.refuse("its backward is not linear in the gradient, whose parts come to a "
                               "compiled function one by one")
        self.checked = True
        return self._run(known)

    def _run(self, known: dict[Node, Any]) -> list:
        known = dict(known)
        for node in self.steps:
            args = map_arg(node.args, known.__getitem__)
            known[node] = node.target(*args, **map_arg(node.kwargs, known.__getitem__))
        return [None if r is None else known[r] for r in self.graft.results]

    def _is_linear(self, known: dict[Node, Any]) -> bool:
        """Are sums and multiples of gradients sent on as such?  Asked for two gradients.

        In eager code all parts of a gradient meet before a hook or a backward gets them.  Here
        those that come through the graph and those that come through its gradient do not.
        """
        came = [g for g in self.graft.grads or () if g is not None]
        random = np.random.default_rng(0)

        def like(t: Tensor) -> Tensor:
            return make(random.normal(size=tuple(t.shape))).to(t)

        def sent(grads: list) -> list:
            return self._run({**known, **dict(zip(came, grads))})

        with no_grad(), np.errstate(all="ignore"):
            one, two = ([like(known[g]) for g in came] for _ in range(2))
            apart = zip(sent(one), sent(two))
            together = sent([_FACTOR * a - b for a, b in zip(one, two)])
            return all(t is None or ops.allclose(
                _FACTOR * a - b, t, _SLACK, _SLACK * float((_FACTOR * a).abs().sum() + 1e-30), True)
                for (a, b), t in zip(apart, together))


class Grafts:
    """The custom functions and hooks that a capture meets."""

    def __init__(self, level: Any):
        self.level = level
        self.functions: dict[Any, Graft] = {}  # by the node of the tape
        self.tensors: dict[Node, Graft] = {}  # with hooks
        self.refused: tuple | None = None  # the user's place of a hook on a node of the tape
        self.hooks = False  # are there hooks on nodes of the tape?

    @property
    def ruled(self) -> bool:
        """Does code of the user run when the function is differentiated: hooks, or a backward?

        Such code need not be linear: gradients for one seed are not those for another, scaled.
        """
        return bool(self.tensors or self.refused or self.hooks) or not all(
            graft.derived for graft in self.functions.values())

    def function(self, cls: type[Function], args: list, outs: Any, before: Node) -> None:
        """A custom function was called, after the node `before`."""
        outs = outs if isinstance(outs, tuple) else (outs,)
        edges = [getattr(o, "_edge", None) for o in outs]
        node = next((getattr(e, "node", e) for e in edges if e is not None), None)
        if node is None:
            return
        of = self.level.node
        graft = Graft(cls.__name__, node.where, list(map(of, args)),
                      [None if e is None else of(o) for o, e in zip(outs, edges)],
                      derived=cls._derived)
        graft.inner = _since(before)
        self.functions[node] = graft

    def hook(self, t: Tensor, hook: Callable) -> Callable:
        """A hook of a tensor that the function computed, which tells what it records."""
        node = self.level.node(t)
        graft = self.tensors.setdefault(node, Graft("a hook", place(), [node], [node]))

        @functools.wraps(hook)
        def noted(grad: Tensor) -> Tensor | None:
            before, given = self._now([grad])
            found = hook(grad)
            graft.ran(noted, given, self._now([grad if found is None else found])[1],
                      _since(before))
            return found

        return noted

    def node_hook(self, node: Any, kind: str, hook: Callable) -> Callable:
        """The same for a hook of a node of the tape."""
        self.hooks = True
        graft = self.functions.get(node)
        if graft is None:
            self.refused = self.refused or place()
            return hook

        @functools.wraps(hook)
        def noted(grads: tuple, *rest: tuple) -> Any:
            before, given = self._now(grads)
            found = hook(grads, *rest)
            sent = self._now(grads if found is None else found)[1]
            graft.ran(noted, given, sent, _since(before))
            return found

        return noted

    def pull(self, node: Any, grads: list, needs: list) -> list:
        """A node of the tape sends gradients on."""
        graft = self.functions.get(node)
        if graft is None:
            return self.level.pull_alone(node, grads, needs)
        before, given = self._now(grads)
        found = self.level.pull_alone(node, grads, needs)
        graft.ran(node, given, self._now(found)[1], _since(before))
        return found

    def _now(self, grads: Any) -> tuple[Node, list]:
        """The newest node, and those of gradients."""
        grads = grads if isinstance(grads, (list, tuple)) else [grads]
        given = [self.level.node(g) if isinstance(g, Tensor) else None for g in grads]
        return self.level.recorder.graph.last(), given

    def module(self, module: GraphModule) -> GraphModule | None:
        """The joint graph to be differentiated; None if the graph itself will do."""
        grafts = [*self.functions.values(), *self.tensors.values()]
        return grafted(module, grafts) if grafts else None


def _since(before: Node) -> list[Node]:
    """The nodes behind another, to the end of the graph."""
    found, node = [], before._next
    while node is not before.graph._root:
        found.append(node)
        node = node._next
    return found


def grafted(module: GraphModule, grafts: list[Graft]) -> GraphModule:
    """A joint graph to be differentiated, in which calls have their own backward.

    What a custom function computes inside has no history, as in eager code.
    """
    places = {node: i for i, node in enumerate(module.graph.nodes)}
    after: dict[Node, list[Call]] = {}
    inside: dict[Node, int] = {}
    for number, graft in enumerate(grafts):  # of a tensor with hooks it is the last
        call = Call(graft, places, module)
        after.setdefault(max(call.live, key=places.__getitem__), []).append(call)
        inside.update(dict.fromkeys(graft.inner, number))
    graph, copied, bare = Graph(), {}, {}

    def detached(node: Node) -> Node:
        if node in inside or not isinstance(node.meta.get("val"), Tensor):
            return copied[node]
        if node not in bare:
            bare[node] = graph.call_function(overload("detach"), (copied[node],))
        return bare[node]

    for node in module.graph.nodes:
        copied[node] = graph.node_copy(node, detached if node in inside else copied.__getitem__)
        for call in after.get(node, ()):
            _insert(graph, call, copied)
    return GraphModule(module, graph)


def _insert(graph: Graph, call: Call, copied: dict[Node, Node]) -> None:
    of: Callable = copied.__getitem__
    others = [of(n) if n in copied else None for n in call.others]
    made = graph.call_function(call, (list(map(of, call.graft.inputs)),
                                      list(map(of, call.live)), others))
    for k, out in enumerate(call.live):
        copied[out] = graph.call_function(operator.getitem, (made, k))


def with_histories(module: GraphModule) -> GraphModule:
    """A joint graph to be differentiated: results that PyTorch's graphs save detached (a
    convention of these graphs, not the end of a history) are used as they are, and so are those
    that its formulas use though they have no derivative. Who else uses these gets no history.
    Fused kernels of formulas are taken apart, since their parts have derivatives."""
    graph, copied, changed = Graph(), {}, False
    sources: dict[Node, tuple] = {}  # operator and number that give such a result its history
    tracked: dict[Node, Node] = {}

    def read(reader: Node, node: Node) -> Node:
        if node not in sources or not _of_its_formula(reader, node):
            return copied[node]
        if node not in tracked:
            by, place = sources[node]
            source = graph.call_function(by, copied[node.args[0]].args[:1])
            tracked[node] = graph.call_function(operator.getitem, (source, place))
        return tracked[node]

    for node in module.graph.nodes:
        if node.meta.get("kept"):
            copied[node], changed = copied[node.args[0]], True
            continue
        new = copied[node] = graph.node_copy(node, functools.partial(read, node))
        if node.meta.get("cut"):  # `alias` by a decomposition
            new.target, changed = overload("detach"), True
        if _only_parts(node):
            new.target, changed = _by_parts(node.target), True
        found = _tracked(node)
        if found is not None:
            sources[node] = found
    return GraphModule(module, graph) if changed or tracked else module


def _only_parts(node: Node) -> bool:
    """Is it a formula's call of an operator that has no derivative, though its parts have?"""
    return isinstance(node.target, OpOverload) and bool(node.meta.get("autograd_backward")) and (
        not node.target.is_composite and node.target.rule is None
        and node.target.decomposition is not None)


def _by_parts(ov: OpOverload) -> Callable:
    """An operator as a function of others."""

    @functools.wraps(ov.decomposition)
    def parts(*args: Any, **kwargs: Any) -> Any:
        return ov.decomposition(*ov.bind(args, kwargs))

    return parts


def _of_its_formula(reader: Node, node: Node) -> bool:
    """Does the derivative of what gave a result read it, not a call of the user's or the derivative
    of such a call?"""
    called = {n.meta.get("seq_nr") for n in node.users if not n.meta.get("autograd_backward")}
    return bool(reader.meta.get("autograd_backward")) and reader.meta.get("seq_nr") not in called


def _tracked(node: Node) -> tuple | None:
    """(operator, number) that gives a result with a history which has none; None for others."""
    source = node.args[0] if node.target is operator.getitem and node.args else None
    op = getattr(getattr(source, "target", None), "op", None)
    if op is None or not op.tracked_by:
        return None
    name = source.target.schema.returns[node.args[1]].name
    if name not in op.tracked_by:
        return None
    found = overload(op.tracked_by[name])
    return found, [r.name for r in found.schema.returns].index(name)
