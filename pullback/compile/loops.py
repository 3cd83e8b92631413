"""Branches and loops of a graph that become C: their bodies are lowered into the same unit.

`map` and `scan` become a `for`, `while_loop` a `while`, `cond` an `if`.  The body, which is a
graph, is lowered and scheduled like any other, with the memory layouts that its operands have; a
step of a loop reads a row of an array where that lies and writes a row of a result into its place.
What C cannot run as a whole (a body with a NumPy step) stays one step of Python, as before, and the
report of the graph says why.  Read `loop_code.py` next for the text.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from ..graph.concrete import without_sizes
from .builder import Builder, Unsupported
from .errors import GraphNotSupported
from .interpret import attribute
from .ir import CTYPES, Ref, Value, contiguous
from .lower import Lowered, dense, dtype_code, lower, shape_of
from .schedule import Schedule, reachable, schedule


@dataclass
class Operand:
    """What a body is given: elements that all steps read, or the row of a step."""

    ref: Ref  # of the whole array
    row: bool = False
    carried: bool = False  # changes from step to step: it is copied to memory of the loop's own
    kept: tuple[int, int] | None = None  # what a pass left at each step: its number, and which

    @property
    def shape(self) -> tuple:
        return self.ref.shape[1:] if self.row else self.ref.shape

    @property
    def strides(self) -> tuple:
        """Of the elements of a step, as the body sees them."""
        if self.carried:
            return contiguous(self.ref.shape)
        return self.ref.strides[1:] if self.row else self.ref.strides


@dataclass
class Body:
    """A graph inside of the graph, ready to be written."""

    name: str
    lowered: Lowered
    schedule: Schedule
    operands: list[Operand]  # one per input
    carries: bool  # does it give the values that the next step is given?

    @property
    def read(self) -> list[tuple[int, Operand]]:
        """What the body makes use of, with the numbers of the inputs."""
        there, made = set(self.schedule.order), self.lowered.outputs
        return [(k, o) for k, (o, v) in enumerate(zip(self.operands, self.lowered.inputs))
                if v in there or self.carries and o.carried and made[k] is not None]


def lowered(b: Builder, out: Lowered, node: Any, args: list) -> list | None:
    """The results of a call of a branch or loop as values; None where it stays a step of Python."""
    make = _MAKERS.get(str(node.target))
    if make is None or node.kwargs:
        return None
    mark, count, constants = b.mark(), len(out.inputs), len(out.constants)
    try:
        return make(_Maker(b, out, node), *args)
    except (Unsupported, GraphNotSupported) as error:
        out.why[node.name] = str(error)
        b.rewind(mark)
        del out.inputs[count:], out.input_refs[count:], out.constants[constants:]
        return None


class _Maker:
    """The lowering of one call."""

    def __init__(self, b: Builder, out: Lowered, node: Any):
        self.b, self.out, self.node = b, out, node
        self.used = _used(node)
        self.checked = False  # may a step fail?

    def operand(self, given: Any, row: bool = False, carried: bool = False) -> Operand:
        """An operand whose elements lie densely, else a copy of it."""
        if not isinstance(given, Ref) or given.dtype not in CTYPES:
            raise Unsupported("an operand that C has no type for")
        while row and given.plain and given.shape == given.value.shape and (
                given.value.kind == "pointwise" and given.value.op == "copy"):
            look = given.value.args[0]  # rows in another order are read as they lie
            if not isinstance(look, Ref) or look.value.op == "const" or (
                    not dense(look.shape[1:], look.strides[1:])):
                break
            given = look
        found = Operand(given, row, carried)
        plain = given.plain if carried else dense(found.shape, found.strides)
        return found if plain else Operand(self.b.copy(given), row, carried)

    def body(self, place: Any, operands: list[Operand], wanted: Callable | None = None,
             carries: bool = True) -> Body:
        """The graph that a node stands for, lowered for operands; `wanted` says which results."""
        gm = attribute(self.out.graph, place.target)
        numbers = getattr(self.out.graph, "numbers", None)
        if numbers is not None:
            gm = without_sizes(gm, *numbers)[0]
        checks = len(self.b.checks)
        inside = lower(gm, self.b.checks, [o.strides for o in operands])
        if inside.externs or inside.kept:
            steps = sorted({str(n.target) for n in inside.externs.values()})
            raise Unsupported(f"{place.name} has steps that C has not: {', '.join(steps)}")
        given = [*operands, *[self.constant(place, path, ref) for path, ref in zip(
            inside.constants, inside.input_refs[len(operands):])]]
        if [(o.shape, o.ref.dtype) for o in given] != [
                (ref.shape, ref.dtype) for ref in inside.input_refs]:
            raise Unsupported("a body for other operands")
        kept = range(len(inside.outputs)) if wanted is None else wanted(inside)
        inside.outputs = _own_results(inside, kept)
        self.checked |= len(self.b.checks) > checks
        return Body(place.name, inside, schedule(inside), given, carries)

    def constant(self, place: Any, path: str, ref: Ref) -> Operand:
        """A tensor that a body holds, as one that the graph around it holds."""
        b, out = self.b, self.out
        value = b.add(Value("input", b.fresh_name(), ref.shape, ref.dtype))
        out.inputs.append(value)
        out.input_refs.append(value.ref())
        out.constants.append(f"{place.target}.{path}")
        return Operand(value.ref())

    def call(self, kind: str, bodies: list[Body], beside: Sequence[Operand] = (),
             **attrs: Any) -> list:
        """One call for the whole, with results for those that somebody reads."""
        wanted = [(shape_of(e), dtype_code(e)) if i in self.used else None
                  for i, e in enumerate(self.node.meta["val"])]
        if self.checked:
            attrs.setdefault("check", 0)
        refs = [o.ref for body in bodies for _, o in body.read if o.kept is None]
        refs += [o.ref for o in beside]
        return self.b.call(kind, list(dict.fromkeys(refs)), wanted, bodies=bodies,
                           beside=tuple(beside), **attrs)


def _own_results(inside: Lowered, kept: Collection[int]) -> list:
    """Results that have memory of their own, in order: a copy of what has not; None for those that
    are not wanted."""
    found: list = []
    taken: set[Value] = set()
    for n, ref in enumerate(inside.outputs):
        if n not in kept:
            found.append(None)
            continue
        if not isinstance(ref, Ref) or ref.dtype not in CTYPES:
            raise Unsupported("a result that C has no type for")
        if not ref.plain or ref.value.kind == "input" or ref.value in taken:
            b = inside.builder
            ref = b.add(Value("pointwise", b.fresh_name(), ref.shape, ref.dtype, "copy",
                              (ref,))).ref()
        taken.add(ref.value)
        found.append(ref)
    return found


def _used(node: Any) -> set[int]:
    """The numbers of the results that somebody reads."""
    if all(user.target is operator.getitem for user in node.users):
        return {user.args[1] % len(node.meta["val"]) for user in node.users if user.users}
    return set(range(len(node.meta["val"])))


def _followed(inside: Lowered, used: set[int], carried: int) -> set[int]:
    """The results of a step that matter: those that are used, and what is carried on for them."""
    places = {v: n for n, v in enumerate(inside.inputs[:carried])}
    outputs, kept = inside.outputs, set(used)
    while True:
        inside.outputs = [outputs[n] for n in sorted(kept)]
        more = {places[v] for v in reachable(inside) if v in places} - kept
        if not more:
            inside.outputs = outputs
            return kept
        kept |= more


def _for(make: _Maker, place: Any, carried: list, xs: list, read: list) -> list:
    """A loop over rows."""
    operands = [make.operand(c, carried=True) for c in carried]
    operands += [make.operand(x, row=True) for x in xs] + [make.operand(r) for r in read]
    body = make.body(
        place, operands, lambda inside: _followed(inside, make.used, len(carried)))
    steps = operands[len(carried)].ref.shape[0]
    return make.call("for", [body], steps=steps, carried=len(carried))


def _scan(make: _Maker, place: Any, init: list, xs: list, read: list) -> list:
    return _for(make, place, list(init), list(xs), list(read))


def _map(make: _Maker, place: Any, xs: list, read: list) -> list:
    return _for(make, place, [], list(xs), list(read))


def _cond(make: _Maker, flag: Any, one: Any, other: Any, read: list) -> list:
    operands, pred = [make.operand(v) for v in read], make.operand(flag)
    bodies = [make.body(place, operands, lambda inside: make.used) for place in (one, other)]
    return make.call("if", bodies, [pred])


def _while(make: _Maker, test: Any, step: Any, carried: list, read: list) -> list:
    operands = [make.operand(c, carried=True) for c in carried]
    operands += [make.operand(r) for r in read]
    bodies = [make.body(test, operands, carries=False), make.body(step, operands)]
    return make.call("while", bodies, carried=len(carried))


def _passes(make: _Maker, *given: Any) -> list:
    """Passes over the steps of a loop (`control/whiles.py`): each reads what those before it left
    at a step, which is kept in rows that grow with the number of steps."""
    count = sum(hasattr(v, "op") for v in given)
    (test, *steps), (*states, read) = given[:count], given[count:]
    more = [make.operand(r) for r in read]
    rows: list[Operand] = []
    bodies: list[Body] = []
    for k, (step, carried) in enumerate(zip(steps, states)):
        operands = [make.operand(c, carried=True) for c in carried]
        if not k:
            bodies.append(make.body(test, [*operands, *more], carries=False))
        body = make.body(step, [*operands, *rows, *more])
        bodies.append(body)
        left = [*[o.ref for o in operands], *body.lowered.outputs[len(operands):]]
        rows += [Operand(Value("input", "row", ref.shape, ref.dtype).ref(), kept=(k, n))
                 for n, ref in enumerate(left)]
    make.b.checks.append(("memory", f"{make.b.origin}: no memory for all its steps"))
    return make.call("passes", bodies, sizes=tuple(map(len, states)), check=len(make.b.checks))


_MAKERS = {"scan": _scan, "map_impl": _map, "cond": _cond, "while_loop": _while,
           "while_loop_backward": _passes}
