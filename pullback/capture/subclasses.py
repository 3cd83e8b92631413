"""Wrapper subclasses in compiled functions: graphs hold the plain tensors inside.

A call with wrappers becomes a call of another function, on the tensors inside: that function puts
wrappers together, runs the user's and takes wrappers apart again (`Inside`).  It is captured and
compiled like any other.  What connects the two sides is history: a `Joined` node says that a
wrapper was put together from tensors, a `Parted` node that tensors came out of one; both are used
inside of the capture and around the compiled call, so that gradients of wrappers are wrappers.

`Plan` says how a wrapper is put together.  Gradients that are wrappers are in
`wrapped_gradients.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from .. import errors
from ..array.size import Symbolic
from ..autograd.engine import node_of
from ..autograd.grad_mode import inference_mode, set_grad_enabled
from ..core.handle import Tensor, cell_of, make
from ..core.tape import Accumulate, Node, port
from ..errors import place
from ..graph.node import map_aggregate
from ..interp.operator_dispatch import Outer, again, piece
from ..memory.versions import bump
from ..memory.views import copy_slices, refresh, replay
from ..pytree import register_pytree_node, tree_leaves, tree_map, tree_unflatten
from ..table.packets import ops
from ..threads.state import sequence, state
from .dynamic_dims import names_of


class Wrapped(Exception):
    """A capture met wrappers: the call is to be desugared, with these from outside as inputs."""

    def __init__(self, *outside: Tensor):
        self.outside = outside


class Within(Exception):
    """Tensors inside of arguments are used by themselves, and have histories of their own."""

    def __init__(self, places: list[tuple]):
        self.places = places


class Shared(RuntimeError):
    """Wrappers with histories share memory that a compiled function writes."""


def is_wrapper(value: Any) -> bool:
    """Is it a tensor that can be taken apart?"""
    return isinstance(value, Tensor) and isinstance(value._payload, Outer)


# how wrappers are put together


@dataclass(eq=False)
class Plan:
    """How a wrapper is put together from plain tensors."""

    cls: type
    names: tuple[str, ...]
    meta: Any
    size: tuple[int, ...]
    stride: tuple[int, ...]
    inner: tuple[Plan | None, ...]  # of each attribute: a wrapper, too?
    tracked: bool = False
    leaf: bool = False
    held: tuple[bool, ...] = ()  # which attributes have histories of their own
    follows: str = ""  # the attribute that lies in memory as the wrapper says, if one does
    count: int = 0  # plain tensors in all

    def __post_init__(self) -> None:
        self.count = sum(1 if p is None else p.count for p in self.inner)

    def key(self, sized: bool) -> tuple:
        """What a graph depends on; sizes may be arguments of it (`sized`)."""
        try:
            hash(self.meta)
            meta = self.meta
        except TypeError:
            meta = repr(self.meta)
        inner = tuple([None if p is None else p.key(sized) for p in self.inner])
        own = (len(self.size), self.follows) if sized else (self.size, self.stride)
        return (self.cls, self.names, meta, *own, inner, self.tracked, self.leaf, self.held)

    def numbers(self) -> list:
        """Sizes and strides, those of wrappers inside first."""
        found = [n for p in self.inner if p is not None for n in p.numbers()]
        return [*found, *self.size, *self.stride]

    def symbols(self) -> list:
        """Sizes and strides that are not known yet."""
        return [n for n in self.numbers() if isinstance(n, Symbolic)]

    def sized(self, number: Callable[[Any], Any]) -> Plan:
        """With other sizes and strides: what a function says of each, in the order above."""
        inner = tuple([None if p is None else p.sized(number) for p in self.inner])
        size, stride = (tuple([number(n) for n in own]) for own in (self.size, self.stride))
        return replace(self, size=size, stride=stride, inner=inner)

    def like(self, other: Plan | None) -> Plan:
        """With the sizes of another of its kind, where its own are not known."""
        if other is None or not self.symbols():
            return self
        inner = tuple([None if p is None else p.like(q) for p, q in zip(self.inner, other.inner)])
        return replace(self, size=other.size, stride=other.stride, inner=inner)

    def within(self, other: Plan) -> Plan | None:
        """With the sizes of a wrapper of as many tensors; None if that holds others inside."""
        inner = [None if p is None or q is None else p.within(q)
                 for p, q in zip(self.inner, other.inner)]
        if len(self.inner) != len(other.inner) or any(
                (p is None) != (made is None) or (p is None) != (q is None)
                for p, q, made in zip(self.inner, other.inner, inner)):
            return None
        return replace(self, size=other.size, stride=other.stride, inner=tuple(inner),
                       tracked=other.tracked, leaf=other.leaf, held=other.held, follows="")

    def fits(self, other: Plan) -> bool:
        """Is it the same kind of wrapper, whatever its history?"""
        return (self.cls is other.cls and self.names == other.names and self.meta == other.meta
                and all((a is None) == (b is None) and (a is None or a.fits(b))
                        for a, b in zip(self.inner, other.inner)))

    def build(self, tensors: Iterator[Tensor]) -> Tensor:
        """The wrapper around the next tensors."""
        inner = {n: next(tensors) if p is None else p.build(tensors)
                 for n, p in zip(self.names, self.inner)}
        stride = inner[self.follows].stride() if self.follows else self.stride
        new = self.cls.__tensor_unflatten__(inner, self.meta, self.size, stride)
        new._edge = None
        return new


def plan_of(t: Tensor) -> Plan:
    """How a wrapper would be put together again."""
    t = again(t)
    if not hasattr(type(t), "__tensor_flatten__"):
        raise errors.TransformError(errors.text(
            f"a {type(t).__name__} cannot be compiled ({errors.user_line(2)}): it does not say "
            "how to take it apart", cure="define __tensor_flatten__ and __tensor_unflatten__"))
    names, meta = t.__tensor_flatten__()
    inner = tuple([plan_of(v) if is_wrapper(v := piece(t, n)) else None for n in names])
    size, stride = tuple(t.shape), tuple(t.stride())
    follows = [n for n in names if piece(t, n).shape == size and piece(t, n).stride() == stride]
    held = tuple([piece(t, n)._edge is not None for n in names])
    return Plan(type(t), tuple(names), meta, size, stride, inner, t.requires_grad,
                isinstance(t._edge, Accumulate), held, follows[0] if follows else "")


def parts_of(t: Tensor) -> list[Tensor]:
    """The plain tensors inside of a wrapper, in order."""
    t, found = again(t), []
    for name in t.__tensor_flatten__()[0]:
        value = piece(t, name)
        found += parts_of(value) if is_wrapper(value) else [value]
    return found


def rebuilt(t: Tensor, function: Callable[[list[Tensor]], list[Tensor]]) -> Tensor:
    """A tensor, or the tensors inside of a wrapper, replaced by what a function makes of them."""
    if not is_wrapper(t):
        return function([t])[0]
    return plan_of(t).build(iter(function(parts_of(t))))


# history


def _begin(node: Node, edges: tuple, metas: tuple) -> None:
    node.edges, node.metas, node.saved = edges, metas, ()
    node.hooks, node.stamp, node.level, node.seq = None, 0, 0, sequence()
    node.where = place()


class Joined(Node):
    """History of a wrapper that was put together from tensors: its gradient is taken apart."""

    __slots__ = ("missed", "note", "plan")

    class _Rule:
        name, saves = "WrapperBackward", ()

    rule = _Rule

    def __init__(self, tensors: list[Tensor], plan: Plan, note: Callable | None = None,
                 edges: list | None = None, missed: Callable | None = None):
        self.plan = plan
        self.note = note  # told the kind of gradient, where any will do
        self.missed = missed  # told the kind that came, where another was expected
        edges = [t._edge for t in tensors] if edges is None else edges
        metas = tuple([None if e is None else (t._payload.shape, t._payload.dtype)
                       for t, e in zip(tensors, edges)])
        _begin(self, tuple(edges), metas)

    def apply(self, grads: list, needs: list) -> list:
        if grads[0] is None:
            return [None] * len(self.edges)
        if self.note is None and grads[0]._edge is None:
            found = along(grads[0], self.plan)
            if found is not None:
                return [g if wanted else None for g, wanted in zip(found, needs)]
        grad = grads[0] if self.note is not None else tangent(grads[0], self.plan, self.missed)
        if self.note is not None and not self.note(grad):
            first = needs.index(True)  # of another kind: whole, by the way of one of the tensors
            return [grad if n == first else None for n in range(len(needs))]
        return [g if wanted else None for g, wanted in zip(opened(grad), needs)]


class JoinedLeaf(Accumulate):
    """The same for a leaf: it must not be written, and has no function that made it."""

    __slots__ = ("missed", "note", "plan")

    def __init__(self, t: Tensor, tensors: list[Tensor], plan: Plan, note: Callable, edges: list):
        super().__init__(t)
        made = Joined(tensors, plan, note, edges)
        self.plan, self.note, self.edges, self.metas = plan, note, made.edges, made.metas
        self.missed = None

    apply = Joined.apply


class Own(Accumulate):
    """History of a tensor inside of an argument, until it is known whether it is used."""

    __slots__ = ("place",)
    guarded = False


class Parted(Node):
    """History of the tensors inside of a wrapper: their gradients make one of its kind."""

    __slots__ = ("facts", "kinds", "number", "plan")

    class _Rule:
        name, saves = "InnerBackward", ()

    rule = _Rule

    def __init__(self, t: Tensor, parts: list[Tensor], plan: Plan, kinds: dict | None = None,
                 number: int = 0):
        self.plan = plan
        # which argument it is, and the kinds of arguments' gradients where they are others
        self.number, self.kinds = number, {} if kinds is None else kinds
        self.facts = [(tuple(p.shape), p.dtype) for p in parts]
        _begin(self, (t._edge,), ((t._payload.shape, t._payload.dtype),))

    @property
    def outputs(self) -> int:  # type: ignore[override]
        return len(self.facts)

    def apply(self, grads: list, needs: list) -> list:
        if all(g is None for g in grads):
            return [None]
        kind = self.kinds.get(self.number, self.plan)
        if kind is None:
            return [next(g for g in grads if g is not None)]
        kind = kind.like(self.plan)
        full = [ops.zeros(shape, dtype=dtype) if g is None else g
                for g, (shape, dtype) in zip(grads, self.facts)]
        return [closed(full, kind)]


def along(grad: Tensor, plan: Plan) -> list[Tensor] | None:
    """A gradient taken apart as a plan says, None if it is of another kind.

    Where the plan has a plain tensor the gradient may have a wrapper: that is for whoever gets it.
    """
    grad = again(grad)
    if type(grad) is not plan.cls:
        return None
    names, meta = grad.__tensor_flatten__()
    if tuple(names) != plan.names or meta != plan.meta:
        return None
    found: list[Tensor] = []
    for name, inner in zip(plan.names, plan.inner):
        value = piece(grad, name)
        parts = [value] if inner is None else along(value, inner)
        if parts is None:
            return None
        found += parts
    return found


def tangent(grad: Tensor, plan: Plan, missed: Callable | None = None) -> Tensor:
    """A gradient of a wrapper, as the kind of wrapper that the graph was made for.

    If it is another and cannot become one, that is an error; `missed` is told of it, so that the
    next call is captured for gradients of this kind.
    """
    seen = plan_of(grad) if is_wrapper(grad) else None
    if seen is not None and seen.fits(plan):
        return grad
    made = None
    if hasattr(grad, "__coerce_same_metadata_as_tangent__"):
        made = grad.__coerce_same_metadata_as_tangent__(plan.meta, plan.cls)
    if made is None or not is_wrapper(made) or not plan_of(made).fits(plan):
        learnt = missed is not None and seen is not None and missed(seen)
        raise _wrong_guess(plan.meta, plan.cls, None if seen is None else seen.meta, grad, learnt)
    return made


def plain_tangents(grads: list) -> list:
    """Gradients of plain outputs: wrappers must know how to become one."""
    out = []
    for g in grads:
        if is_wrapper(g):
            made = None
            if hasattr(g, "__coerce_same_metadata_as_tangent__"):
                made = again(g).__coerce_same_metadata_as_tangent__(None, Tensor)
            if made is None or is_wrapper(made):
                raise _wrong_guess(None, Tensor, plan_of(g).meta, g)
            g = made
        out.append(g)
    return out


def _wrong_guess(meta: Any, cls: type, seen: Any, grad: Tensor, learnt: bool = False,
                 ) -> RuntimeError:
    again_then = "call the compiled function again: it is compiled for gradients of this kind then"
    return RuntimeError(errors.text(
        "\nDuring the backward, we encountered a tensor subclass where we guessed its\n"
        "metadata incorrectly.\n",
        f"Expected: {meta} (type {cls}), got: {seen} (type {type(again(grad))}), "
        f"shape: {tuple(grad.shape)}",
        cure=[*([again_then] if learnt else []),
              "let the class define __coerce_tangent_metadata__, which says the kind of gradient "
              "to expect for an output, and __coerce_same_metadata_as_tangent__("
              "expected_metadata, expected_type), which makes a gradient one of that kind"]))


def size_nodes(plan: Plan) -> list:
    """The nodes of sizes that are not known yet, in the graph that is being recorded."""
    return [n.node.shape_env.recorder.node(n) for n in plan.symbols()]


# calls


class Flat:
    """A wrapper among the results of a captured function: its tensors, and how it came about."""

    def __init__(self, parts: list, plan: Plan, guess: Plan, source: tuple | None = None,
                 leaf: bool = False, number: int = 0):
        self.parts, self.plan = parts, plan
        self.guess = guess  # the kind of gradient that is expected for it
        # (argument, or `Base`, that it is or is a view of; the views; made in what mode)
        self.source = source
        self.leaf = leaf  # was it made to require grad?
        self.number = number  # of the wrappers among the results, which one it is


def _flattened(f: Flat) -> tuple[list, tuple]:
    """Tensors, then numbers that are not known yet: sizes, and those in the views of an input."""
    views: list = []
    if f.source is not None:
        map_aggregate(f.source[1], lambda v: views.append(v) if isinstance(v, Symbolic) else v)
    return [*f.parts, *f.plan.symbols(), *views], (f.plan, f.guess, f.source, f.leaf, f.number)


def _unflattened(leaves: Any, context: tuple) -> Flat:
    plan, guess, source, leaf, number = context
    leaves = list(leaves)
    numbers = iter(leaves[plan.count:])
    filled = lambda n: next(numbers) if isinstance(n, Symbolic) else n
    plan = plan.sized(filled)
    if source is not None:
        source = source[0], map_aggregate(source[1], filled), source[2]
    return Flat(leaves[: plan.count], plan, guess, source, leaf, number)


register_pytree_node(Flat, _flattened, _unflattened)


class Base(int):
    """The number of a wrapper made inside that several results show the memory of."""


class Based:
    """Results of which some show the memory of wrappers made inside, and these wrappers."""

    def __init__(self, results: Any, bases: list[Flat]):
        self.results, self.bases = results, bases


register_pytree_node(Based, lambda b: ([b.results, b.bases], None),
                     lambda children, _: Based(*children))


def _shared_bases(out: Any, numbers: dict) -> list[Tensor]:
    """The wrappers made inside whose memory more than one result shows."""
    shown: dict[int, list] = {}
    for y in [again(v) for v in tree_leaves(out) if is_wrapper(v)]:
        link = y._link
        base = y if link is None else link.base
        if id(base) not in numbers and (link is None or not link.apart):
            shown.setdefault(id(base), [base]).append(y)
    return [base for base, *views in shown.values() if len(views) > 1]


class Inside:
    """The user's function as one of the tensors inside of its arguments."""

    def __init__(self, function: Callable, plans: list[Plan | None], spec: Any,
                 outside: tuple[Tensor, ...], within: list[tuple], names: list[str], sized: bool,
                 expected: dict[int, Plan]):
        self.function, self.plans, self.spec, self.outside = function, plans, spec, outside
        self.expected = expected  # kinds of gradients of results, where another guess was wrong
        self.results = 0  # wrappers among the results, so far
        self.sized = sized  # are sizes and strides of wrappers arguments, too?
        self.within = within  # places inside of arguments that are inputs by themselves, too
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        if hasattr(function, "modules"):
            self.modules = function.modules
        # by argument: what kind their gradients are, None if they come as they are
        self.kinds: dict[int, Plan | None] = {}
        self.moves = [0] * len(plans)  # how often each wrapper is written
        self.sized_gradients: dict[int, list] = {}  # by argument: nodes of its gradient's sizes
        self.titles: list[str] = []  # what each inner argument is called
        self.spans: list[range] = []  # of each argument: its tensors, and the numbers behind them
        self.strides: dict[int, tuple] = {}  # place of a stride -> (its sizes, dim, plan)
        for n, p in enumerate(plans):
            title, start = names[n] if n < len(names) else f"input{n}", len(self.titles)
            self.titles += [title] if p is None else self._titled(title, p)
            self.spans.append(range(start, len(self.titles)))

    def _titled(self, title: str, plan: Plan) -> list[str]:
        """Names of the tensors of a wrapper, then of its numbers."""
        parts: list[str] = []
        numbers: list[tuple] = []

        def walk(own: str, p: Plan) -> None:
            for name, q in zip(p.names, p.inner):
                parts.append(f"{own}.{name}") if q is None else walk(f"{own}.{name}", q)
            numbers.append((own, p))

        walk(title, plan)
        names = list(parts)
        first = len(self.titles)
        for own, p in numbers if self.sized else ():
            at = first + len(names)
            rank = len(p.size)
            for d in range(rank):
                self.strides[at + rank + d] = range(at, at + rank), d, p
            names += [f"{own}.size({d})" for d in range(rank)]
            names += [f"{own}.stride({d})" for d in range(rank)]
        return names

    def following(self, tensors: list[int]) -> dict[int, tuple[int, int]]:
        """Place of a wrapper's size -> (tensor, dim) inside of it that has the same."""
        found = {}
        for places, _, plan in self.strides.values():
            title = self.titles[places[0]].rpartition(".")[0] if places else ""
            part = f"{title}.{plan.follows}"
            if plan.follows and part in self.titles:
                i = tensors.index(self.titles.index(part))
                found.update({p: (i, d) for d, p in enumerate(places)})
        return found

    def numbers(self) -> set[int]:
        """Places of sizes and strides among the inner arguments."""
        return {k for span, p in zip(self.spans, self.plans) if p is not None
                for k in span[p.count:]}

    def __call__(self, *inner: Any) -> Any:
        self.sized_gradients, self.results = {}, 0  # of this capture
        given, values, wrappers = iter(inner), [], {}
        known: dict = {}  # the same argument twice is one wrapper
        for n, plan in enumerate(self.plans):
            if plan is None:
                values.append(next(given))
                continue
            parts = [next(given) for _ in range(plan.count)]
            if self.sized:
                plan = plan.sized(lambda _: next(given))
            key = tuple(map(id, parts))
            if key not in known:
                known[key] = self._wrapper(n, plan, parts, wrappers)
            values.append(known[key])
        first = len(self.plans) - len(self.within)
        count = first - len(self.outside)
        inputs = dict(zip(self.within, values[first:]))
        for n, plan in enumerate(self.plans[:first]):
            if plan is not None:
                _mark(values[n], plan, (n,), inputs)
        restore = [_replaced(t, w) for t, w in zip(self.outside, values[count:first])]
        try:
            args, kwargs = tree_unflatten(values[:count], self.spec)
            out = self.function(*args, **kwargs)
        finally:
            for step in restore:
                step()
        used = _reached([*tree_leaves(out), *wrappers])
        if used:
            raise Within(used)
        numbers = {id(v): n for n, v in enumerate(values[:count])}
        bases = _shared_bases(out, numbers)
        numbers.update({id(b): Base(n) for n, b in enumerate(bases)})
        found = tree_map(lambda v: self._flat(v, numbers) if is_wrapper(v) else v, out)
        if bases:
            found = Based(found, [self._flat(b, {}) for b in bases])
        for w, (start, parts, edges, facts) in wrappers.items():
            self._finish(w, start, parts, edges, facts)
        self.moves = [cell_of(v).version if p is not None else 0
                      for v, p in zip(values, self.plans)]
        return found

    def refuse_shared(self, inputs: list[Tensor], groups: list, strided: bool) -> None:
        """Inputs that share memory with one that is written must not have histories; where graphs
        have them as places of it (`strided`) there must be none."""
        if strided or any(inputs[i]._edge is not None for group in groups for i in group):
            raise Shared(errors.text(
                "Encountered aliased inputs that are mutated in the graph, but at least one of "
                f"them is a tensor subclass. This is not supported today ({errors.user_line(2)})",
                cure="clone() one of them, or write outside of the compiled function"))

    def _wrapper(self, n: int, plan: Plan, parts: list[Tensor], wrappers: dict) -> Tensor:
        edges = [p._edge for p in parts]
        for p in parts:
            p._edge = None  # the tensors inside are beneath the tape
        new = plan.build(iter(parts))
        if any(e is not None for e in edges):
            given = parts, plan, lambda grad: self._note(n, plan, grad), edges
            new._edge = JoinedLeaf(new, *given) if plan.leaf else Joined(*given)
        wrappers[new] = new._edge, parts, edges, (tuple(new.shape), tuple(new.stride()))
        return new

    def _note(self, n: int, plan: Plan, grad: Tensor) -> bool:
        """Remember the kind of an argument's gradient; has it as many tensors inside?"""
        kind = plan_of(grad) if is_wrapper(grad) else None
        same = kind is not None and kind.count == plan.count
        self.kinds[n] = kind if same else None
        self.sized_gradients[n] = size_nodes(kind) if same else []
        return same

    def _finish(self, w: Tensor, start: Any, parts: list, edges: list, facts: tuple) -> None:
        """Inputs as a capture looks at them: their histories, and what is refused."""
        if (tuple(w.shape), tuple(w.stride())) != facts:
            raise RuntimeError(
                "Metadata mutations are currently not allowed on tensor subclasses: a "
                f"{type(w).__name__} of size {facts[0]} became one of {tuple(w.shape)} in place")
        if w._link is not None:
            refresh(w)
        if w._edge is start:
            for p, edge in zip(parts, edges):
                p._edge = edge
        else:
            _part(w, parts, plan_of(w))

    def _flat(self, y: Tensor, numbers: dict) -> Flat:
        """A result taken apart."""
        y = again(y)
        source, link = None, y._link
        if id(y) in numbers:
            source = numbers[id(y)], (), None
        elif link is not None and not link.apart and id(link.base) in numbers:
            refresh(y)
            source = numbers[id(link.base)], link.chain, link.hidden
        plan = guess = plan_of(y)
        parts = [make(p._payload) for p in parts_of(y)]
        leaf = source is None and type(y._edge) is Accumulate
        number, self.results = self.results, self.results + 1
        if source is None and y._edge is not None and not leaf:
            if hasattr(y, "__coerce_tangent_metadata__"):
                coerced = y.__coerce_tangent_metadata__()
                guess = plan_of(coerced) if is_wrapper(coerced) else plan
            if number in self.expected:
                guess = self.expected[number].within(plan) or guess
            _part(y, parts, guess)
        return Flat(parts, plan, guess, source, leaf, number)


def _mark(t: Tensor, plan: Plan, place: tuple, inputs: dict) -> None:
    """Give the tensors inside of an argument the histories that they have by themselves."""
    for name, inner, held in zip(plan.names, plan.inner, plan.held):
        value, own = piece(t, name), (*place, name)
        if own in inputs:
            value._edge = inputs[own]._edge
        elif held:
            value._edge = Own(value)
            value._edge.place = own
        if inner is not None:
            _mark(value, inner, own, inputs)


def _reached(values: list) -> list[tuple]:
    """The places inside of arguments that the histories of tensors lead to."""
    todo = [node_of(v._edge) for v in values if isinstance(v, Tensor) and v._edge is not None]
    seen, found = set(), []
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if type(node) is Own:
            found.append(node.place)
        todo += [node_of(e) for e in node.edges if e is not None]
    return sorted(set(found))


def _part(t: Tensor, parts: list[Tensor], plan: Plan, kinds: dict | None = None,
          number: int = 0) -> None:
    """Give the tensors inside of a wrapper the wrapper's history."""
    node = Parted(t, parts, plan, kinds, number) if t._edge is not None else None
    for n, p in enumerate(parts):
        tracked = node is not None and p.dtype.category >= 2
        p._edge = port(node, n) if tracked else None


def _bare(tensors: list[Tensor]) -> list[Tensor]:
    """Other handles of the same memory, without history."""
    found = []
    for t in tensors:
        new = make(t._payload)
        new._cell = cell_of(t)
        found.append(new)
    return found


def opened(t: Tensor, kinds: dict | None = None, number: int = 0) -> list[Tensor]:
    """The tensors inside of a wrapper, with its history if it has one."""
    if t._link is not None:
        refresh(t)
    parts = parts_of(t)
    if t._edge is not None:
        parts = _bare(parts)
        _part(t, parts, plan_of(t), kinds, number)
    return parts


def closed(parts: list[Tensor], plan: Plan, expected: Plan | None = None,
           missed: Callable | None = None) -> Tensor:
    """A wrapper around tensors, with their histories if they have any."""
    if all(p._edge is None for p in parts):
        return plan.build(iter(parts))
    level = state.stack[state.mode]
    for p in parts if level is not None and level.adopts else ():
        if not level.mine(p):
            level.adopt(p)  # else handles without its history would be met in its place
    new = plan.build(iter(_bare(parts)))
    new._edge = Joined(parts, expected or plan, missed=missed)
    return new


def _replaced(t: Tensor, new: Tensor) -> Callable[[], None]:
    """Let a wrapper from outside be another one for a while."""
    before = t._payload, t._edge, t._link, t._cell, dict(t.__dict__)
    t.__dict__.update(new.__dict__)
    t._payload, t._edge, t._link, t._cell = new._payload, new._edge, None, new._cell

    def step() -> None:
        new._edge, new._payload = t._edge, t._payload
        t.__dict__.clear()
        t._payload, t._edge, t._link, t._cell = before[:4]
        t.__dict__.update(before[4])

    return step


def desugared(compiled: Any, flat: list, spec: Any, met: Wrapped | None = None) -> Any:
    """A call with wrappers; NotImplemented if there are none."""
    if isinstance(compiled.function, Inside):
        if met is not None:
            raise met
        return NotImplemented
    known = compiled.__dict__.setdefault("inside", {})
    if met is not None:
        known["outside"] = (*known.get("outside", ()), *met.outside)
    if "outside" not in known and not any(map(is_wrapper, flat)):
        return NotImplemented
    while True:
        try:
            return _called(compiled, known, flat, spec)
        except Within as found:
            known["within"] = [*known.get("within", ()), *found.places]
        except Shared:
            if compiled.backend.undecided is None:
                raise
            args, kwargs = tree_unflatten(flat, spec)  # as it was written
            return compiled.function(*args, **kwargs)
        except Wrapped as found:
            known["outside"] = (*known.get("outside", ()), *found.outside)


def _called(compiled: Any, known: dict, flat: list, spec: Any) -> Any:
    outside = known.get("outside", ())
    values = [*flat, *outside]
    within = []
    for n, *names in known.get("within", ()):
        found = functools.reduce(lambda t, name: getattr(t, name, None), names, values[n])
        if isinstance(found, Tensor) and found._edge is not None:
            within.append((n, *names))
            values.append(found)
    plans = [plan_of(v) if is_wrapper(v) else None for v in values]
    sized = compiled.dynamic is not False
    key = (spec, tuple([None if p is None else p.key(sized) for p in plans]),
           tuple(map(id, outside)), tuple(within))
    expected = known.setdefault("expected", {}).setdefault(key, {})
    key = (*key, tuple([(n, p.key(sized)) for n, p in sorted(expected.items())]))
    inner = known.get(key)
    if inner is None:
        names = names_of(compiled.function, *tree_unflatten(flat, spec))
        function = Inside(compiled.function, plans, spec, outside, within, names, sized,
                          dict(expected))
        inner = known[key] = compiled.like(function)
    arguments, wrappers, known_parts = [], [], {}
    for n, (v, plan) in enumerate(zip(values, plans)):
        if plan is None:
            arguments.append(v)
            continue
        if id(v) not in known_parts:
            known_parts[id(v)] = parts = opened(v, inner.function.kinds, n)
            wrappers.append((v, plan, parts, [p._edge for p in parts]))
        arguments += known_parts[id(v)]
        if sized:
            arguments += plan.numbers()
    out = inner(*arguments)
    compiled.programs.update({(key, *k): p for k, p in inner.programs.items()})
    for v, plan, parts, edges in wrappers:
        if [p._edge for p in parts] != edges:
            _rewritten(v, Joined(parts, plan))
    moved = {id(v): (v, n) for v, n in zip(values, inner.function.moves) if n}
    for v, n in moved.values():
        for _ in range(n):
            bump(v)
    bases: list[Tensor] = []
    if isinstance(out, Based):
        bases, out = [_closed(f, values, bases, expected) for f in out.bases], out.results
    return tree_map(lambda f: _closed(f, values, bases, expected), out,
                    is_leaf=lambda f: isinstance(f, Flat))


def _rewritten(t: Tensor, edge: Node) -> None:
    """Give a wrapper that was written its new history, through its base if it is a view."""
    link = t._link
    if link is None or link.apart:
        t._edge = edge
        return
    link.base._edge = copy_slices(link.base, t, make(t._payload, edge))
    link.seen = -1


def _closed(found: Any, values: list, bases: list, expected: dict) -> Any:
    """A result put together; one that is an argument, a base, or a view of one is made of that.

    `expected` takes the kind of a gradient that came instead of the one that was guessed.
    """
    if not isinstance(found, Flat):
        return found
    if found.source is not None:
        number, chain, hidden = found.source
        with inference_mode(hidden == "inference"), set_grad_enabled(
                hidden is None and state.record[0]):
            return replay((bases if type(number) is Base else values)[number], chain)

    def missed(kind: Plan) -> bool:
        if kind.within(found.plan) is None:
            return False
        expected[found.number] = kind
        return True

    new = closed(found.parts, found.plan, found.guess, missed)
    return new.requires_grad_() if found.leaf else new
