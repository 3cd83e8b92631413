"""`while_loop` as an operator, and its derivatives of any order: several passes over its steps.

How many steps a loop makes is not known in a capture, so what its derivative needs of each step
cannot be values of the graph.  It stays inside of one operator, `while_loop_backward`, which makes
several *passes* over the same steps: the first is the loop itself, and counts them; the others go
down, up, down, ... and may read what was there at each step in all passes before.  The derivative
of k passes is such an operator of 2k passes, those k and one more for each, in reverse: pass
2k-1-j pulls back what pass j did.  Forward mode and batches need no further passes.
Read `loops.py` first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .. import errors
from ..core.handle import Tensor
from ..func.vmap import vmap
from ..interp.functionalize import Functionalize
from ..interp.trace import Trace
from ..pytree import tree_flatten, tree_unflatten
from ..table.packets import ops
from ..threads.state import state
from .derivatives import pull_back, push_forward, pushed_through, quiet
from .loops import _in_front, _same_carry
from .nodes import OfGraphs, closed, emitted
from .subgraph import HigherOrder, capture, floats, hidden, results_of, single, visible


def while_loop(cond_fn: Callable, body_fn: Callable, carried_inputs: Any) -> Any:
    """`while cond_fn(*carried): carried = body_fn(*carried)`, and what is carried in the end."""
    if not callable(cond_fn) or not callable(body_fn):
        raise errors.RefusedValue("Expect cond_fn and body_fn to be callable "
                                  f"({errors.user_line(2)})")
    if not isinstance(carried_inputs, (tuple, list)):
        raise errors.RefusedValue("Expect carried_inputs to be a tuple, got "
                                  f"{type(carried_inputs).__name__} ({errors.user_line(2)})")
    given, spec = tree_flatten(carried_inputs)
    tensors = [t for t in given if isinstance(t, Tensor)]
    other = next((v for v in given if not isinstance(v, (Tensor, int, float))), None)
    if other is not None:
        raise errors.RefusedValue(
            f"while_loop: what is carried are tensors and numbers, got {type(other).__name__} "
            f"({errors.user_line(2)})")
    if hidden(tensors):  # numbers change from step to step, too
        given = [t if isinstance(t, Tensor) else ops.full((), t) for t in given]

    def test(*leaves: Tensor) -> Any:
        return cond_fn(*tree_unflatten(list(leaves), spec))

    def body(*leaves: Tensor) -> tuple:
        out = body_fn(*tree_unflatten(list(leaves), spec))
        new, new_spec = tree_flatten(tuple(out) if isinstance(out, list) else out)
        if len(given) == 1 and isinstance(out, Tensor):
            new_spec = spec
        _same_carry("while_loop", given, tree_flatten(tuple(carried_inputs))[1], new, new_spec)
        return tuple(new)

    if not hidden(tensors):
        return tree_unflatten(list(_while(test, body, given)), spec)
    bodies, extras = capture([test, body], [given, given], "a function of while_loop()",
                             (single, tuple))
    test_facts = bodies[0].facts
    if len(test_facts) != 1 or test_facts[0][0] not in ((), (1,)):
        raise errors.RefusedValue("cond_fn must return a boolean scalar tensor, got "
                                  f"{test_facts} ({errors.user_line(2)})")
    out = _Passes.apply(tuple(b.module for b in bodies), Spec((len(given),), ((),)),
                        *given, *extras)
    return tree_unflatten(list(out), spec)


def _holds(flag: Any) -> bool:
    if isinstance(flag, Tensor) and flag.numel() != 1 or not isinstance(flag, (bool, Tensor)):
        shown = list(flag.shape) if isinstance(flag, Tensor) else type(flag).__name__
        raise errors.RefusedValue("cond_fn must return a boolean scalar tensor or a boolean, got "
                                  f"{shown} ({errors.user_line(3)})")
    return bool(flag)


def _while(test: Callable, body: Callable, carried: Sequence[Tensor],
           additional_inputs: Sequence[Tensor] = ()) -> tuple:
    carry = tuple(carried)
    if hidden([t for t in (*carry, *additional_inputs) if isinstance(t, Tensor)]):
        return _Passes.apply((test, body), Spec((len(carry),), ((),)), *carry, *additional_inputs)
    while True:
        flag = test(*carry, *additional_inputs)
        seen = visible(flag) if isinstance(flag, Tensor) else "value"
        if seen == "fake":
            return tuple(body(*carry, *additional_inputs))
        if seen == "batched":
            new = body(*carry, *additional_inputs)
            keep = flag.reshape(())
            if not _any(flag):
                return carry
            carry = tuple([ops.where(keep, a, b) for a, b in zip(new, carry)])
            continue
        if not _holds(flag):
            return carry
        carry = tuple(body(*carry, *additional_inputs))


def _any(flag: Tensor) -> bool:
    """Does a condition hold for one example at least?"""
    while hasattr(flag._payload, "inner"):
        flag = flag._payload.inner
    return bool(flag.any())


while_operator = HigherOrder("while_loop", _while)


# passes


@dataclass(frozen=True)
class Spec:
    """The layout of passes: `sizes`, how many tensors each carries; `notes`, for what each leaves
    at a step beside what it carries there: can it have a derivative?

    A step of pass k is a function of what the pass carries, of the *row* of each pass before it
    (what that carried into the step, then its notes), and of what all steps read.  It returns what
    is carried on, then the notes.
    """

    sizes: tuple[int, ...]
    notes: tuple[tuple[bool, ...], ...]

    def __len__(self) -> int:
        return len(self.sizes)

    def parts(self, operands: Sequence) -> tuple[list[list], list]:
        """What each pass carries, and what all steps read."""
        rest = iter(operands)
        states = [list(itertools.islice(rest, n)) for n in self.sizes]
        return states, list(rest)

    def row(self, values: Iterator, k: int) -> tuple[list, list]:
        """What a pass carried into a step and its notes, from rows one after another."""
        return (list(itertools.islice(values, self.sizes[k])),
                list(itertools.islice(values, len(self.notes[k]))))


def _run(functions: Sequence[Callable], states: Sequence[Sequence[Tensor]],
         read: Sequence[Tensor]) -> tuple:
    """All passes on values."""
    test, first, *later = functions
    rows: list[list] = []
    carry = list(states[0])
    while True:
        flag = test(*carry, *read)
        fake = isinstance(flag, Tensor) and visible(flag) == "fake"
        if not fake and not _holds(flag):
            break
        out = first(*carry, *read)
        rows.append([*carry, *out[len(carry):]])
        carry = list(out[:len(carry)])
        if fake:
            break
    finals = carry
    for k, step in enumerate(later, 1):
        carry = list(states[k])
        for row in rows if k % 2 == 0 else reversed(rows):
            out = step(*carry, *row, *read)
            row += [*carry, *out[len(carry):]]
            carry = list(out[:len(carry)])
        finals += carry
    return tuple(finals)


def _passes(*given: Any) -> tuple:
    """`while_loop_backward(cond, step, step, ..., carried, carried, ..., read)`."""
    functions = tuple([f for f in given if callable(f)])
    *states, read = given[len(functions):]
    if not hidden([t for s in (*states, read) for t in s]):
        return _run(functions, states, read)
    results = [floats(results_of(step)) for step in functions[1:]]  # of graphs
    counts = [len(step.graph.output_node().args[0]) for step in functions[1:]]
    notes = tuple([tuple([i in found for i in range(len(s), count)])
                   for s, found, count in zip(states, results, counts)])
    spec = Spec(tuple([len(s) for s in states]), notes)
    return _Passes.apply(functions, spec, *[t for s in (*states, read) for t in s])


passes_operator = HigherOrder("while_loop_backward", _passes)


def _called(functions: Sequence[Callable], spec: Spec, states: Sequence[Sequence[Tensor]],
            read: Sequence[Tensor]) -> tuple:
    """Passes of a known layout, hidden or not."""
    flat = [t for s in (*states, read) for t in s]
    if hidden(flat):
        return _Passes.apply(tuple(functions), spec, *flat)
    return _run(functions, states, read)


class _Passes(OfGraphs):
    """Passes in a capture."""

    @staticmethod
    def forward(functions, spec, *operands):
        level = state.stack[state.mode]
        states, read = spec.parts(operands)
        if isinstance(level, Functionalize):
            return level.handed_on(_passes, *functions, *states, read)
        if not isinstance(level, Trace):
            return _run(functions, states, read)
        what = "a function of while_loop()"
        test, *steps = functions
        modules = closed([test], [[*states[0], *read]], what, [single], level)
        rows: list[Tensor] = []
        out: list[Any] = []
        for step, carried in zip(steps, states):
            (module,) = closed([step], [[*carried, *rows, *read]], what, [tuple], level)
            modules.append(module)
            found = results_of(module)
            out += found[:len(carried)]
            rows += [*carried, *found[len(carried):]]
        loop = len(spec) == 1 and not spec.notes[0]
        target = while_operator if loop else passes_operator

        def arguments(graphs: Sequence, given: Sequence) -> tuple:
            carried, more = spec.parts(given)
            return *graphs, *map(tuple, carried), tuple(more)

        titles = ["while_loop_cond_graph", "while_loop_body_graph",
                  *["while_loop_back_graph"] * (len(spec) - 1)]
        return emitted(level, target, titles, modules, operands, arguments, lambda: out)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.functions, ctx.spec, *operands = inputs
        ctx.save_for_backward(*operands)
        ctx.save_for_forward(*operands)

    @staticmethod
    def backward(ctx, *grads):
        spec, (test, *steps) = ctx.spec, map(quiet, ctx.functions)
        states, read = spec.parts(ctx.saved_tensors)
        given, _ = spec.parts(grads)
        count, shared = len(spec), floats(read)
        moving = [floats(s) for s in states]
        zeros = [ops.zeros_like(read[i]) for i in shared]
        back = [_pulled(spec, steps, j, moving, shared) for j in reversed(range(count))]
        starts = [[*[given[j][i] for i in moving[j]], *zeros] for j in reversed(range(count))]
        # a pass that goes back notes gradients of the rows of all passes before the one it undoes
        noted = [sum(len(moving[i]) + sum(spec.notes[i]) for i in range(j))
                 for j in reversed(range(count))]
        wider = Spec((*spec.sizes, *map(len, starts)),
                     (*spec.notes, *[(True,) * n for n in noted]))
        out = _called((test, *steps, *back), wider, [*states, *starts], read)
        finals, _ = wider.parts(out)
        found: list = [None] * len(ctx.saved_tensors)
        sums = None
        for j, ended in zip(reversed(range(count)), finals[count:]):
            at = sum(spec.sizes[:j])
            for i, g in zip(moving[j], ended):
                found[at + i] = g
            part = ended[len(moving[j]):]
            sums = part if sums is None else [a + b for a, b in zip(sums, part)]
        at = sum(spec.sizes)
        for i, g in zip(shared, sums or ()):
            found[at + i] = g
        return None, None, *found

    @staticmethod
    def jvp(ctx, *tangents):
        spec, (test, *steps) = ctx.spec, map(pushed_through, ctx.functions)
        states, read = spec.parts(ctx.saved_tensors)
        moved, moved_read = spec.parts(
            [ops.zeros_like(v) if t is None else t
             for v, t in zip(ctx.saved_tensors, tangents[2:])])
        moving, shared = [floats(s) for s in states], floats(read)
        wider = Spec(tuple([n + len(m) for n, m in zip(spec.sizes, moving)]),
                     tuple([(*n, *[True] * sum(n)) for n in spec.notes]))
        pushed = [_pushed(spec, steps, k, moving, len(read), shared) for k in range(len(spec))]
        size, width = spec.sizes[0], len(read)

        def holds(*values):
            at = wider.sizes[0]
            return test(*values[:size], *values[at:at + width])

        starts = [[*s, *[t[i] for i in m]] for s, t, m in zip(states, moved, moving)]
        out = _called((holds, *pushed), wider, starts,
                      [*read, *[moved_read[i] for i in shared]])
        finals, _ = wider.parts(out)
        found: list = []
        for n, m, ended in zip(spec.sizes, moving, finals):
            row: list = [None] * n
            for i, t in zip(m, ended[n:]):
                row[i] = t
            found += row
        return tuple(found)

    @staticmethod
    def vmap(info, in_dims, functions, spec, *operands):
        (test, *steps), dims = functions, in_dims[2:]
        carried = sum(spec.sizes)
        moved = [ops.expand(ops.unsqueeze(t, 0), (info.batch_size, *t.shape))
                 if i < carried and d is None else _in_front(t, d, 0)
                 for i, (t, d) in enumerate(zip(operands, dims))]
        states, read = spec.parts(moved)
        rest = tuple([None if d is None else 0 for d in dims[carried:]])

        def mapped(function, count):
            return vmap(function, in_dims=((0,) * count + rest), randomness=info.randomness)

        flags = mapped(lambda *v: test(*v).reshape(()), spec.sizes[0])
        several = len(spec) > 1

        def chosen(keep, new, old):
            return [ops.where(keep.reshape((-1,) + (1,) * (b.ndim - 1)), a, b)
                    for a, b in zip(new, old)]

        def first(*v):  # examples that have ended stay as they are, and say so to later passes
            keep, n = flags(*v), spec.sizes[0]
            out = mapped(steps[0], n)(*v)
            return (*chosen(keep, out, v[:n]), *out[n:], *([keep] if several else []))

        def later(k):
            n = spec.sizes[k]
            place = n + spec.sizes[0] + len(spec.notes[0])  # of that word
            rows = sum(spec.sizes[:k]) + sum(map(len, spec.notes[:k]))

            def step(*v):
                keep, given = v[place], (*v[:place], *v[place + 1:])
                out = mapped(steps[k], n + rows)(*given)
                return (*chosen(keep, out, v[:n]), *out[n:])

            return step

        notes = ((*spec.notes[0], False), *spec.notes[1:]) if several else spec.notes
        out = _called((lambda *v: flags(*v).any(), first, *map(later, range(1, len(spec)))),
                      Spec(spec.sizes, notes), states, read)
        return tuple(out), (0,) * len(out)


def _pulled(spec: Spec, steps: Sequence[Callable], j: int, moving: list[list[int]],
            shared: list[int]) -> Callable:
    """A step of the pass that undoes pass j."""
    count, noted = len(spec), [[i for i, f in enumerate(n) if f] for n in spec.notes]
    width = len(moving[j])

    def step(*values: Tensor) -> tuple:
        rest = iter(values)
        grads = list(itertools.islice(rest, width))
        sums = list(itertools.islice(rest, len(shared)))
        rows = [spec.row(rest, k) for k in range(count)]
        after = _gradients_of_row(spec, rest, j, moving, noted, len(shared))
        read = list(rest)
        # what pass j was given at this step, and which of that can have a derivative
        known = [*rows[j][0], *[t for k in range(j) for part in rows[k] for t in part], *read]
        places, at = list(moving[j]), spec.sizes[j]
        before = len(places)
        for k in range(j):
            places += [at + i for i in moving[k]]
            at += spec.sizes[k]
            places += [at + i for i in noted[k]]
            at += len(spec.notes[k])
        inside = len(places) - before
        places += [at + i for i in shared]
        results, cotangents = list(moving[j]), grads
        if after is not None:
            results += [spec.sizes[j] + i for i in noted[j]]
            cotangents = [*grads, *after[width:]]
        found = pull_back(steps[j], known, places, results, cotangents)
        own = found[:before]
        if after is not None:
            own = [a + b for a, b in zip(own, after)]
        more = [a + b for a, b in zip(sums, found[before + inside:])]
        return (*own, *more, *found[before:before + inside])

    return step


def _gradients_of_row(spec: Spec, rest: Iterator, j: int, moving: list, noted: list,
                      shared: int) -> list | None:
    """Gradients of the row of pass j at a step, of what later passes did; None if there are none.

    Passes that undo later ones come first; each notes gradients of all rows before the one of the
    pass that it undoes.
    """
    total = None
    widths = [len(m) + len(n) for m, n in zip(moving, noted)]
    for undone in reversed(range(j + 1, len(spec))):
        for _ in range(len(moving[undone]) + shared):
            next(rest)  # what it carried
        parts = [list(itertools.islice(rest, widths[k])) for k in range(undone)]
        total = parts[j] if total is None else [a + b for a, b in zip(total, parts[j])]
    return total


def _pushed(spec: Spec, steps: Sequence[Callable], k: int, moving: list[list[int]], width: int,
            shared: list[int]) -> Callable:
    """A step of pass k with tangents: each group of values is followed by those of its tangents."""

    def step(*values: Tensor) -> tuple:
        rest = iter(values)
        known: list = []
        places: list[int] = []
        tangents: list = []

        def take(count: int, floating: Sequence[int]) -> None:
            places.extend([len(known) + i for i in floating])
            known.extend(itertools.islice(rest, count))
            tangents.extend(itertools.islice(rest, len(floating)))

        take(spec.sizes[k], moving[k])
        for i in range(k):
            take(spec.sizes[i], moving[i])
            take(len(spec.notes[i]), [n for n, f in enumerate(spec.notes[i]) if f])
        take(width, shared)
        out = steps[k](*known)
        n = spec.sizes[k]
        noted = [n + i for i, f in enumerate(spec.notes[k]) if f]
        found = push_forward(steps[k], known, places, [*moving[k], *noted], tangents)
        cut = len(moving[k])
        return (*out[:n], *found[:cut], *out[n:], *found[cut:])

    return step
