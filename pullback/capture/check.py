"""`compile(f, check=True)`: the first calls of every program are compared with the function itself.

Before such a call the function runs as it is written, then the program, each on the state of the
call; everything that they change (memory, histories, gradients, hooks, random numbers, Python) is
put back, and the call goes on as without a check.  Compared are results, gradients of the inputs,
what was written, what was assigned, and which results show memory of inputs.  Where something
differs, `first_difference.py` looks for the first node that does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import errors
from ..array import device as dev
from ..array import dtype as dt
from ..array.generator import Generator, default_generator
from ..autograd.engine import edge_of
from ..autograd.gradients import grad as engine_grad
from ..core.handle import Tensor, make
from ..core.tape import Port
from ..python_state.module_tensors import Snapshot
from ..python_state.reachable import PLAIN
from ..python_state.side_effects import Before
from ..pytree import tree_flatten
from ..tensor.hooks import Table
from ..threads.blocks import restored_on_error
from ..threads.state import count
from .effects.generators import SetGenerator
from .effects.numbers import ReadNumber

if TYPE_CHECKING:
    from .compiled import Compiled
    from .run import Program

# how far numbers may be apart: relative to them and to the largest of their tensor, and at all
_ALLOWED = {"float64": (1e-9, 1e-11), "float32": (1e-4, 1e-5), "float16": (1e-2, 1e-3),
            "bfloat16": (5e-2, 1e-2)}
_ROUGH = 0.5, 0.1  # of even fewer bits
_SHAKEN = 32  # so many times what the last bits of the inputs change is still called rounding


class Memory:
    """All that a call may change, as it is now; `put_back` makes it so again."""

    def __init__(self, handles: Iterable[Tensor], before: Before, generators: list[Generator]):
        self.before = before
        self.handles = list(_together(handles))
        self.drawn = [(g, g.get_state()) for g in generators]
        self.slots: list[tuple[Any, str, Any]] = []
        self.hooks: list[tuple[Table, dict]] = []
        self.arrays: dict[int, tuple] = {}
        for t in self.handles:
            self._note(t)

    def _note(self, t: Tensor) -> None:
        own = [("_cell", t._cell), ("_payload", t._payload), ("_edge", t._edge), ("_link", t._link),
               ("_record", t._record), ("__class__", t.__class__), ("__dict__", dict(t.__dict__))]
        self.slots += [(t, name, value) for name, value in own]
        for part in (t._cell, t._link, t._record):
            if part is not None:
                self.slots += [(part, name, getattr(part, name)) for name in _fields(part)]
        node = t._edge.node if type(t._edge) is Port else t._edge
        if node is not None:
            self.slots.append((node, "hooks", node.hooks))
            for kind, tables in (node.hooks or {}).items():
                found = tables.values() if kind == "tensor" else (
                    [tables] if isinstance(tables, Table) else [])
                self.hooks += [(table, dict(table)) for table in found]
        if t._record is not None and t._record.post_hooks is not None:
            self.hooks.append((t._record.post_hooks, dict(t._record.post_hooks)))
        if type(t._payload) is np.ndarray:
            owner = dev.owner(t._payload)
            if id(owner) not in self.arrays:
                self.arrays[id(owner)] = owner, owner.copy("K")

    def put_back(self) -> None:
        self.before.put_back()
        for table, hooks in self._tables_now():
            for key in [k for k in table if k not in hooks]:
                del table[key]
                if getattr(table, "at_leaf", False):
                    count("LEAFHOOKS", -1)
        for thing, name, value in self.slots:
            if getattr(thing, name) is not value:
                setattr(thing, name, value)
        for owner, values in self.arrays.values():
            if owner.flags.writeable:
                np.copyto(owner, values)
        for generator, drawn in self.drawn:
            generator.set_state(drawn)

    def _tables_now(self) -> list[tuple[Table, dict]]:
        """Tables of hooks with what was in them; those that came since were empty."""
        known = {id(table) for table, _ in self.hooks}
        found = list(self.hooks)
        for t in self.handles:
            node = t._edge.node if type(t._edge) is Port else t._edge
            tables = list((getattr(node, "hooks", None) or {}).get("tensor", {}).values())
            if t._record is not None and t._record.post_hooks is not None:
                tables.append(t._record.post_hooks)
            found += [(table, {}) for table in tables if id(table) not in known]
        return found


def _fields(part: Any) -> list[str]:
    return [name for base in type(part).__mro__ for name in vars(base).get("__slots__", ())
            if hasattr(part, name)]


def _together(handles: Iterable[Tensor]) -> Iterable[Tensor]:
    """Tensors, their gradients, and what they are views of; each once."""
    todo, seen = list(handles), set()
    while todo:
        t = todo.pop(0)
        if t is None or id(t) in seen:
            continue
        seen.add(id(t))
        yield t
        todo += [None if t._record is None else t._record.grad, None if t._link is None
                 else t._link.base]


@dataclass
class Outcome:
    """What one run has done."""

    error: Exception | None = None
    values: dict[str, Any] = field(default_factory=dict)  # by what they are, in words
    gradients: dict[str, Any] = field(default_factory=dict)
    refused: Exception | None = None  # why there are none: saved values were overwritten
    shares: dict[str, Any] = field(default_factory=dict)  # results -> inputs whose memory they show


class Case:
    """One call, to be run in two ways."""

    def __init__(self, compiled: Compiled, program: Program, flat: list, tensors: list):
        self.compiled, self.program, self.tensors = compiled, program, tensors
        self.inputs = program.joint.inputs.of(tensors)
        hooks = [hook for t in self.inputs for hook in _hooks_of(t)]
        snapshot = Snapshot(compiled.function, *flat, *hooks)
        held = [t for table, _ in snapshot.tables for t in table.values() if isinstance(t, Tensor)]
        numbers = {id(e.array) for e in program.joint.of(ReadNumber)}  # of optimizers: no tensors
        self.given = list({id(t): t for t in (*tensors, *self.inputs)
                           if id(t._payload) not in numbers}.values())
        generators = [default_generator, *[v for v in flat if isinstance(v, Generator)],
                      *[e.generator for e in program.joint.of(SetGenerator)]]
        self.memory = Memory([*self.given, *held, *[t for _, t in snapshot.named]],
                             snapshot.before, list(dict.fromkeys(generators)))
        self.arrays = [t._payload.copy() for t in self.inputs]
        # what comes to a view may come to its base at once
        roots = [t._link.base if t._link is not None and not t._link.apart
                 and t._link.base._edge is not None else t for t in self.given]
        self.sources = list({id(edge): make(t._payload, edge) for t in roots
                             if (edge := edge_of(t)) is not None}.values())

    def run(self, call: Callable[[], Any]) -> Outcome:
        """What a call gives and leaves behind; everything is put back."""
        found = Outcome()
        try:
            with restored_on_error():
                self._look(found, call())
        except Exception as error:
            found.error = error
        finally:
            self.memory.put_back()
        return found

    def _look(self, found: Outcome, out: Any) -> None:
        leaves = tree_flatten(out)[0]
        changed = self.memory.before.changed()
        named = {f"result {k}" if len(leaves) > 1 else "the result": v
                 for k, v in enumerate(leaves)}
        for slot, _, now in changed:
            for k, v in enumerate(tree_flatten(now)[0]):
                named.setdefault(f"{slot.name} outside of it" + (f", item {k}" if k else ""), v)
        names = {id(t): f"input {k}" for k, t in enumerate(self.given)}
        for name, v in named.items():
            if isinstance(v, Tensor):
                found.shares[name] = [k for k, t in enumerate(self.given) if np.may_share_memory(
                    v._payload, t._payload)] if v.numel() else None
        for t in self.memory.handles:
            name = names.get(id(t))
            if name is not None:
                named[f"what {name} holds"] = t
                named[f"the gradient in {name}"] = None if t._record is None else t._record.grad
        found.values = {name: _kept(v) for name, v in named.items()}
        self._differentiate(found, [v for name, v in named.items() if isinstance(v, Tensor)
                                    and not name.startswith("the gradient in")])

    def _differentiate(self, found: Outcome, tensors: list[Tensor]) -> None:
        ends = {id(s._edge) for s in self.sources}
        outs = list({id(edge): t for t in tensors if (edge := edge_of(t)) is not None
                     and id(edge) not in ends and t.dtype.category >= 2}.values())
        if not (outs and self.sources) or not self.program.joint.differentiable:
            return
        drawn = np.random.default_rng(0)
        seeds = [make(_seed(drawn, t)) for t in outs]
        try:
            grads = engine_grad(outs, self.sources, seeds, retain_graph=True, allow_unused=True)
        except errors.PullbackError as error:
            found.refused = error
            return
        found.gradients = {f"the gradient of input {k} that requires grad": _kept(g)
                           for k, g in enumerate(grads)}


def _seed(drawn: np.random.Generator, t: Tensor) -> np.ndarray:
    """A gradient for a result: 1 for a loss, which is the usual one."""
    if not t.ndim:
        return np.ones((), t._payload.dtype)
    return drawn.standard_normal(t._payload.shape).astype(t._payload.dtype)


def _hooks_of(t: Tensor) -> list:
    node = t._edge.node if type(t._edge) is Port else t._edge
    tables = list((getattr(node, "hooks", None) or {}).get("tensor", {}).values())
    if t._record is not None and t._record.post_hooks:
        tables.append(t._record.post_hooks)
    return [hook for table in tables for hook in table.values()]


def _kept(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value if value.__class__ in PLAIN else None
    return edge_of(value) is not None, value.detach()._payload.copy()


def difference(mine: Any, theirs: Any, shaken: Any = None) -> str:
    """How a value differs from what it should be, in words; empty if it does not."""
    if type(theirs) is not tuple or type(mine) is not tuple:
        if type(theirs) is type(mine) is float:
            return _of_arrays(np.array(mine), np.array(theirs), None)
        same = type(theirs) is type(mine) and (theirs == mine or theirs != theirs)
        return "" if same else f"eager has {_shown(theirs)}, compiled {_shown(mine)}"
    if mine[0] != theirs[0]:
        return f"eager requires_grad={theirs[0]}, compiled requires_grad={mine[0]}"
    return _of_arrays(mine[1], theirs[1], shaken[1] if type(shaken) is tuple else None)


def _shown(value: Any) -> str:
    return f"a tensor of shape {list(value[1].shape)}" if type(value) is tuple else repr(value)


def _of_arrays(mine: np.ndarray, theirs: np.ndarray, shaken: np.ndarray | None) -> str:
    for fact in ("shape", "dtype"):
        if getattr(mine, fact) != getattr(theirs, fact):
            return f"eager has {fact} {getattr(theirs, fact)}, compiled {getattr(mine, fact)}"
    wrong, apart = _wrong(mine, theirs, shaken)
    if not wrong.any():
        return ""
    worst = np.unravel_index(np.argmax(np.where(wrong, apart, -1)), wrong.shape)
    where = "" if not wrong.ndim else f" at {[int(k) for k in worst]}"
    return (f"eager has {theirs[worst]!s}, compiled {mine[worst]!s}{where}; "
            f"{int(wrong.sum())} of {wrong.size} elements differ")


def _wrong(mine: np.ndarray, theirs: np.ndarray, shaken: np.ndarray | None) -> tuple:
    """Which elements are further apart than rounding explains, and how far all are."""
    if theirs.dtype.kind in "biu":
        wrong = mine != theirs
        if shaken is not None and shaken.shape == theirs.shape:
            wrong &= shaken == theirs
        return wrong, np.ones(wrong.shape)
    wide = np.complex128 if theirs.dtype.kind == "c" else np.float64
    name = {"complex64": "float32", "complex128": "float64"}.get(
        theirs.dtype.name, theirs.dtype.name)
    relative, absolute = _ALLOWED.get(name, _ROUGH)
    a, b = mine.astype(wide), theirs.astype(wide)
    with np.errstate(all="ignore"):
        finite = np.isfinite(a) & np.isfinite(b)
        size = np.abs(b)
        largest = np.max(size, initial=0.0, where=np.isfinite(b))
        allowed = absolute + relative * (size + largest)
        if shaken is not None and shaken.shape == b.shape:
            moved = np.abs(shaken.astype(wide) - b)
            allowed = np.where(np.isfinite(moved), allowed + _SHAKEN * moved, np.inf)
        apart = np.abs(a - b)
        same = (a == b) | np.isnan(a) & np.isnan(b) | np.isinf(allowed)
        return ~np.where(finite, apart <= allowed, same), np.where(finite, apart, np.inf)


def check(compiled: Compiled, program: Program, flat: list, tensors: list, args, kwargs) -> None:
    """Compare a program with its function on the arguments of a call."""
    program.compared += 1
    case = Case(compiled, program, flat, tensors)
    eager = case.run(lambda: compiled.function(*args, **kwargs))
    waiting = program.waiting
    native = case.run(lambda: program.run(tensors))
    program.waiting = waiting  # the check is no call
    what, how = _first(eager, native, None)
    if how and eager.error is None and native.error is None:
        shaken = _shaken(case, lambda: compiled.function(*args, **kwargs))
        what, how = _first(eager, native, shaken)
    if not how:
        return
    if native.error is not None:
        raise native.error
    from .first_difference import first_difference

    name = getattr(compiled.function, "__name__", type(compiled.function).__name__)
    raise errors.CheckFailed(errors.text(
        f"compiled {name} differs from eager in {what} ({errors.user_line(2)})",
        [how, *first_difference(case, lambda: compiled.function(*args, **kwargs))],
        ['compile(backend="numpy"), or leave the function uncompiled, until this is mended',
         "report it with the function, the arguments and this message"]))


def _first(eager: Outcome, native: Outcome, shaken: Outcome | None) -> tuple[str, str]:
    """What differs first, and how."""
    if native.error is not None or eager.error is not None:
        if eager.error is not None and native.error is not None:
            return "", ""  # the call raises it
        if native.error is not None:
            return "its exception", f"compiled code raises {native.error!r}"
        return "its exception", f"eager raises {eager.error!r}, compiled code does not"
    found = _compared(native.values, eager.values, shaken and shaken.values)
    if not found[1] and eager.refused is None:  # compiled code may be able to do what eager refuses
        if native.refused is not None and not isinstance(native.refused, errors.GraphFreed):
            return "its gradients", f"compiled code raises {native.refused!r}"
        found = _compared(native.gradients, eager.gradients, shaken and shaken.gradients)
    if found[1]:
        return found
    for name, shares in eager.shares.items():
        if native.shares.get(name) != shares:
            return f"the memory of {name}", (
                f"eager shows memory of inputs {shares}, compiled of {native.shares.get(name)}")
    return "", ""


def _compared(mine: dict, theirs: dict, shaken: dict | None) -> tuple[str, str]:
    for name in [*theirs, *[n for n in mine if n not in theirs]]:
        how = difference(mine.get(name), theirs.get(name), (shaken or {}).get(name))
        if how:
            return name, how
    return "", ""


def _shaken(case: Case, call: Callable[[], Any]) -> Outcome:
    """The same on inputs that differ in their last bits: how much rounding can matter."""
    drawn = np.random.default_rng(1)
    for t in case.inputs:
        data = t._payload
        if dt.of(data.dtype).category < 2 or not data.flags.writeable:
            continue
        eps = np.finfo(data.real.dtype).eps if data.dtype.kind in "fc" else 2.0 ** -8
        with np.errstate(all="ignore"):
            np.copyto(data, (data * (1 + eps * drawn.choice((-1.0, 1.0), data.shape))).astype(
                data.dtype))
    return case.run(call)

