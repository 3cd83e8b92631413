"""Apply a rule to many parameters: by native code, by NumPy, or operator by operator on tensors.

Eager steps on plain arrays take the first two ways, which agree to the last bit: native code when a
step is large or the loop has run for a while (a compiler run costs more than a few small steps),
NumPy until then and where there is no compiler.  Everything else, that is differentiable steps,
captures, other devices, runs the rule on tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, compress

import numpy as np

from ..autograd.grad_mode import _Switch
from ..core.handle import Tensor
from ..memory.versions import mark_written
from ..table.packets import ops
from ..threads.state import state
from .formula import Options, Program, Slots, program_of

NATIVE = 100_000  # elements from which on native code is worth a compiler run at once
PATIENCE = 32  # smaller steps before it is
BLOCK = 32768  # elements per block: 128 KiB of float32, so that all operands of Adam fit into L2

_plain = {np.ndarray}
_NUMBERS = {float, int, bool, str, type(None)}
_REAL = {np.dtype(np.float32), np.dtype(np.float64)}


class Row:
    """One parameter: its gradient, the tensors of its state that are updated, its scalars."""

    __slots__ = ("buffers", "counters", "fresh", "grad", "param")

    def __init__(self, param: Tensor, grad: Tensor, buffers: list[Tensor],
                 counters: list[Tensor] | tuple = ()) -> None:
        self.param, self.grad, self.buffers, self.counters = param, grad, buffers, counters
        self.fresh = False  # True: the state holds nothing yet


class Counters:
    """The scalars of a parameter's state (step, ...) while a step computes with them.

    They are numbers, rounded like the tensors that hold them, or tensors where somebody wants to
    trace them; `scale` multiplies in the precision in which they are stored.
    """

    def __init__(self, names: tuple[str, ...], tensors: list[Tensor],
                 symbolic: tuple | None = ()) -> None:
        dtypes = {}
        for name, t in zip(names, tensors):
            if symbolic is None:  # in a capture: as precise as the numbers are elsewhere
                self.__dict__[name] = t.double()
            elif name in symbolic:
                self.__dict__[name] = t.clone()
            else:
                self.__dict__[name] = t._payload.item()
                dtypes[name] = t._payload.dtype.type
        self.__dict__["_round"] = dtypes

    def __setattr__(self, name: str, value) -> None:
        round_ = self._round.get(name)
        if round_ is not None:
            value = round_(value.item() if isinstance(value, Tensor) else value).item()
        self.__dict__[name] = value

    def scale(self, name: str, factor) -> None:
        """Multiply one of them."""
        value = self.__dict__[name]
        setattr(self, name, self._round.get(name, _same)(value) * factor)

    def store(self, name: str, t: Tensor) -> None:
        """Write one of them back."""
        value = self.__dict__[name]
        if isinstance(value, Tensor):
            t.copy_(value)
        else:
            t._payload[...] = value


def _same(value):
    return value


@dataclass(slots=True, frozen=True)
class Rule:
    """How one optimizer updates a parameter.

    `formula(p, g, state, options)` returns the new parameter and assigns to the state;
    `count(counters, options)` advances the scalars and returns more options, once per step.
    """

    formula: Callable
    counters: tuple[str, ...] = ("step",)
    count: Callable | None = None
    symbolic: tuple[str, ...] = ()  # scalars that stay tensors in differentiable steps
    elementwise: bool = True

    def advance(self, counters: Counters | None, options: dict) -> dict:
        """The options of a step, the scalars advanced."""
        if "step" in self.counters:
            counters.step = counters.step + 1
            options = {**options, "step": counters.step}
        if self.count is not None:
            options = {**options, **self.count(counters, Options(options))}
        return options


def apply(rule: Rule, names: tuple[str, ...], rows: list[Row], options: dict,
          differentiable: bool = False) -> None:
    """Update all parameters in place; `names` are those of the buffers."""
    captured = bool(state.mode)
    watched = state.dispatch.operator_modes or state.dispatch.function_modes  # modes see operators
    if not (captured or differentiable or watched) and rule.elementwise:
        rows = _eager(rule, names, rows, options)
    if rows:
        symbolic = None if captured else rule.symbolic if differentiable else ()
        with _Switch(differentiable):
            for row in rows:
                _on_tensors(rule, names, row, options, symbolic, differentiable)


# eager


def _eager(rule: Rule, names: tuple, rows: list[Row], options: dict) -> list[Row]:
    """Update what consists of NumPy arrays; returns the rest."""
    arrays = [[r.param._payload, r.grad._payload] for r in rows]
    if names:
        for row, own in zip(rows, arrays):
            own += [t._payload for t in row.buffers]
    rest: list[Row] = []
    if not _plain.issuperset(map(type, chain.from_iterable(arrays))):
        whole = [_plain.issuperset(map(type, a)) for a in arrays]
        rest = [row for row, plain in zip(rows, whole) if not plain]
        rows, arrays = list(compress(rows, whole)), list(compress(arrays, whole))
    if not _NUMBERS.issuperset(map(type, options.values())):
        options = {k: _number(v) for k, v in options.items()}
    keys: list = [row.fresh for row in rows]
    if rule.counters:
        keys = [(row.fresh, *[t._payload.item() for t in row.counters]) for row in rows]
    mark_written(*[row.param for row in rows])  # first: no interrupt hides a write
    for key in dict.fromkeys(keys):
        together, batch = arrays, rows
        if keys.count(key) < len(keys):
            chosen = [k == key for k in keys]
            together, batch = list(compress(arrays, chosen)), list(compress(rows, chosen))
        first = batch[0]
        counters = Counters(rule.counters, first.counters) if rule.counters else None
        given = rule.advance(counters, {**options, "fresh": first.fresh})
        program = program_of(rule.formula, names, given)
        _execute(program, together, program.numbers(given))
        for k, name in enumerate(rule.counters):
            value = getattr(counters, name)
            for row in batch:
                row.counters[k]._payload[...] = value
    return rest


def _number(value):
    """An option as a number; that of a tensor keeps its precision."""
    return value._payload.reshape(())[()] if isinstance(value, Tensor) else value


def _execute(program: Program, rows: list[list], numbers: tuple) -> None:
    """Run a program on rows of arrays."""
    kernel = program.native
    if kernel is None:
        program.runs += 1
        if program.runs > PATIENCE or sum([row[0].size for row in rows]) >= NATIVE:
            from . import native

            kernel = program.native = native.compiled(program)
    if kernel:
        rows = kernel(rows, numbers)
    for row in rows:
        _by_numpy(program, row, numbers)


def _by_numpy(program: Program, row: list, numbers: tuple) -> None:
    run, count = program.numpy
    dtype = row[0].dtype
    if dtype.kind == "c":
        row = [_pairs(a) for a in row]
    elif dtype not in _REAL or any(a.dtype != dtype for a in row):
        # short floats are rounded once, at the end
        wide = [a.astype(np.result_type(np.float32, *[b.dtype for b in row])) for a in row]
        _by_numpy(program, wide, numbers)
        for k in program.results:
            row[k][...] = wide[k]
        return
    for part in blocks(row):
        like = part[0]
        run(*part, numbers, [np.empty_like(like) for _ in range(count)])


def _pairs(array: np.ndarray) -> np.ndarray:
    """Complex numbers as pairs of real ones, in the same memory."""
    real = array.real.dtype
    return np.ndarray((*array.shape, 2), real, array, 0, (*array.strides, real.itemsize))


def blocks(arrays: list) -> Iterator[list]:
    """The same arrays in pieces of at most BLOCK elements, if their memory order agrees."""
    size = arrays[0].size
    if size <= BLOCK:
        yield arrays
        return
    if all(a.flags.c_contiguous for a in arrays):
        flat = [a.reshape(-1) for a in arrays]
    elif all(a.flags.f_contiguous for a in arrays):
        flat = [a.T.reshape(-1) for a in arrays]
    else:
        yield arrays
        return
    for start in range(0, size, BLOCK):
        yield [a[start:start + BLOCK] for a in flat]


# on tensors


def _on_tensors(rule: Rule, names: tuple, row: Row, options: dict, symbolic,
                differentiable: bool) -> None:
    counters = Counters(rule.counters, row.counters, symbolic)
    options = {k: v.squeeze() if isinstance(v, Tensor) and v.ndim else v
               for k, v in options.items()}
    given = rule.advance(counters, {**options, "fresh": row.fresh})
    values = [row.param, row.grad, *row.buffers]
    if row.param.is_complex():
        values = [ops.view_as_real(v.resolve_conj()) for v in values]
    p, _, *buffers = values
    if differentiable:  # the old values are needed to differentiate, and are overwritten below
        values = [v.clone() for v in values]
    slots = Slots(dict(zip(names, values[2:])))
    new = rule.formula(values[0], values[1], slots, Options(given))
    for name, buffer, old in zip(names, buffers, values[2:]):
        value = getattr(slots, name)
        if value is not old:
            buffer.copy_(value)
    p.copy_(new)
    if row.param.is_conj():
        row.param.copy_(ops.view_as_complex(p))
    for name, t in zip(rule.counters, row.counters):
        counters.store(name, t)
