"""Trace: record every operator in a graph while running it on example values.

The example may be real or fake.  The recorder is whoever builds the graph (`graph/make_fx.py`);
this file only knows its three calls: `call`, `pick` and `constant`.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from .. import errors
from ..array import dtype as dt
from ..array.consult import consult
from ..array.evaluate import promoted, raw_of, rounded, run_raw, shape_of, spec
from ..array.failures import failure, translated
from ..array.size import Symbolic, from_data, hinted
from ..core.events import MADE, RESHAPES
from ..core.handle import Tensor, is_composed, make, tensors_in
from ..core.stack import bind, level_of
from ..memory.views import root
from ..table.effects import effect_of
from ..table.packets import ops
from ..threads.blocks import tied
from ..threads.state import state
from .box import Wrapped, map_flat, map_tensors
from .interpreter import Interpreter


class Traced(Wrapped):
    """An example value (`inner`) and the graph node that stands for it."""

    __slots__ = ("node",)

    def __init__(self, interp, inner, node):
        self.interp, self.inner, self.node = interp, inner, node

    def concrete(self, handle, what: str):
        constant = self.interp.known(self.node)
        if constant is not None:
            return constant
        if self.interp.reads_examples:
            return self.inner
        raise errors.DataDependentError(
            errors.text(
                f"{what} needs the value of a tensor, which is data-dependent, "
                f"while the function is being captured ({errors.user_line(3)})",
                f"tensor: {handle.dtype.name}{list(handle.shape)}",
                [
                    "use where() or cond() instead of a Python condition",
                    "or keep the decision outside of the captured function",
                ],
            )
        )

    def describe(self, handle) -> str:
        return f"TracedTensor({self.node}, shape={tuple(self.shape)}, dtype={handle.dtype})"


_PROBED: set = set()  # (operator, dtypes) that were accepted, or with shapes: not refused
_SMALL = 16  # sizes up to this stay as they are in a probe
_HALVES = {dt.float16.np, dt.bfloat16.np}
_PROMOTING = ("default", "float", "bool", "real")
_PROBE_LIMIT = 1 << 16  # elements of a probe with all sizes as they are


def refuse_dtypes(ov, flat: tuple) -> None:
    """Refuse what the kernel refuses: neither fakes nor decompositions look at dtypes closely.

    The kernel runs once on ones for each unusual choice of dtypes, on small tensors: equal sizes
    stay equal.  If the operator does not like their shapes it gets the real ones, unless these are
    large.  Only objections to dtypes count.
    """
    tensors = list(tensors_in(flat))
    dtypes = tuple([t._payload.dtype for t in tensors])
    values = {d.char for d in dtypes} - {"l", "?"}  # int64 and bool are indices and masks
    unusual = _is_unusual(ov, flat)
    if not dtypes or not unusual and ov.op.grad and (values == {"f"} or values == {"d"}):
        return  # what has a derivative takes floats
    key = (ov, dtypes, unusual)
    if key in _PROBED or ov.is_random or ov.is_view or ov.custom:
        return
    shapes = [hinted(t._payload.shape) for t in tensors]
    again = (key, *map(tuple, shapes))
    if again in _PROBED:
        return
    objection = _objection(ov, flat, _few)
    large = sum(map(math.prod, shapes)) > _PROBE_LIMIT
    if objection is not None and not _about_dtypes(objection) and not large:
        objection = _objection(ov, flat, _ones)
    if objection is None:
        _PROBED.add(key)
    elif _about_dtypes(objection):
        raise objection
    else:
        _PROBED.add(again)


@functools.cache
def _differentiable(ov) -> tuple[int, ...]:
    """Places of the arguments that are differentiated, and hence floats as a rule."""
    named = {n.strip() for key in ov.op.grad for n in key.split(",")}
    return tuple(i for i, a in enumerate(ov.schema.args) if a.name in named)


def _is_unusual(ov, flat: tuple) -> bool:
    """Complex numbers, or integers and truth values for what is differentiated."""
    for i in _differentiable(ov):
        if isinstance(flat[i], Tensor) and flat[i]._payload.dtype.char in "l?":
            return True
    return any(type(v) is complex for v in flat)


def _is_mixed(ov, flat: tuple) -> bool:
    """Are operands of several dtypes or of a rare one, beside indices and masks?"""
    kinds = {t._payload.dtype.char for t in tensors_in(flat)} - {"l", "?"}
    return len(kinds) > 1 or not kinds <= {"f", "d"} or _is_unusual(ov, flat)


def _in_one_dtype(ov, flat: tuple) -> tuple:
    """The arguments promoted as for the kernel: parts would promote what each of them meets."""
    dtypes = {t._payload.dtype for t in tensors_in(flat)}
    whole = ov.op.promote == "float" and any(d.kind in "biu" for d in dtypes)
    half = not _HALVES.isdisjoint(dtypes)
    if ov.op.promote not in _PROMOTING or len(dtypes) < 2 and not whole and not half:
        return flat
    common, values = promoted(ov, raw_of(list(hinted(flat))))[0], list(flat)
    if common.np in _HALVES:  # numbers beside half precision are rounded as the kernel's are
        for i in {*ov.promoted, *ov.rounds} - {*ov.unrounded}:
            if type(flat[i]) in (int, float):
                values[i] = rounded(flat[i], common.np)
    for i in ov.promoted:
        values[i] = map_tensors(
            lambda t: t if t.dtype is common else ops._to_copy(t, dtype=common), values[i])
    return tuple(values)


@functools.cache
def _computes(ov) -> bool:
    """Does the kernel compute in float32 what has half precision?

    Others show or move elements, or are products, whose operands are not to be twice as large.
    """
    return not ov.is_view and (
        ov.op.cost == "reduce" or ov.op.promote != "keep" and ov.op.cost != "heavy")


def _widened(flat: tuple) -> tuple:
    """The arguments in float32 instead of half precision."""
    if not any(t._payload.dtype in _HALVES for t in tensors_in(flat)):
        return flat
    return tuple([map_tensors(
        lambda t: ops._to_copy(t, dtype=dt.float32) if t._payload.dtype in _HALVES else t, v)
        for v in flat])


def _narrowed(out, wanted):
    """Results in half precision again, where they are to have it."""
    if isinstance(out, (list, tuple)):
        made = list(map(_narrowed, out, wanted))
        return type(out)(*made) if hasattr(out, "_fields") else type(out)(made)
    if not isinstance(out, Tensor) or wanted.dtype.np not in _HALVES:
        return out
    return out.to(wanted.dtype)


def _dtypes(out) -> list:
    return [t.dtype for t in tensors_in(out if isinstance(out, (list, tuple)) else (out,))]


def _objection(ov, flat: tuple, ones) -> Exception | None:
    """What the kernel says to tensors of ones."""
    try:
        run_raw(ov, tuple([map_tensors(ones, hinted(v)) for v in flat]), np)
    except errors.PullbackError as error:
        errors.located(error)
        return error
    except NotImplementedError as error:
        return error
    except Exception as error:
        return translated(ov, flat, error)
    return None


def _about_dtypes(error: Exception) -> bool:
    return isinstance(error, (errors.DTypeError, errors.ArgumentError, NotImplementedError))


def _ones(t: Tensor):
    return np.broadcast_to(np.ones((), t._payload.dtype), hinted(t._payload.shape))


def _few(t: Tensor):
    """The same with large sizes made small."""
    shape = [n if n <= _SMALL else _SMALL + n % _SMALL for n in hinted(t._payload.shape)]
    return np.broadcast_to(np.ones((), t._payload.dtype), shape)


def refuse_as_whole(ov, flat: tuple, raw: list) -> None:
    """Refuse what kernel and shape rule refuse: a decomposition has no checks of its own."""
    try:
        consult(ov, raw)
        if state.fakes.sizes is not None:
            shape_of(ov, [spec(v) for v in raw])  # what holds for symbols holds for other sizes
    except errors.DataDependentError:
        return  # the parts may know another way
    except Exception as error:
        shown = failure(ov, flat, error)
        if shown is error:
            raise
        raise shown from error


_FOLDED = 1024  # elements of constants up to which the results on them are known, too


class Trace(Interpreter):
    """Records what is called; sees operators without traced arguments too."""

    modal = True
    random = True
    title = "a captured function"

    reads_examples = False  # may the function look at values?  They become part of the graph
    keeps_composites = False
    keeps_copies = False  # are `select_copy` and the like nodes, as in PyTorch?

    def __init__(self, recorder, fake: bool = False, decompositions: dict | None = None):
        self.recorder, self.fake = recorder, fake
        self.decompositions = decompositions or {}
        self.careful = getattr(decompositions, "careful", False)
        self.own: dict = {}  # arrays of tensors that the function itself made from values
        self._creating: tuple = None, None  # `state.fakes` as it is, and where factories make fakes
        self.speak(recorder.dialect)

    def speak(self, dialect) -> None:
        """Record in a dialect (`graph/dialect.py`)."""
        self.dialect = self.recorder.dialect = dialect
        self.convention = dialect.convention
        self.compositions = dialect.compositions
        self.on = {**type(self).on, **dialect.events}

    def compose(self, ov, flat):
        own = self.compositions.get(ov.name)
        composing = self.recorder.composing
        composing.append(None if ov.custom else ov)  # what a custom one calls is the user's
        try:
            out = NotImplemented if own is None else own(*flat)
            return ov.compose(*flat) if out is NotImplemented and ov.is_composite else out
        finally:
            composing.pop()

    def _decomposed(self, replacement, flat):
        """Run a decomposition; what one of the user calls is no part of operators around it."""
        if not getattr(replacement, "of_user", False):
            return replacement(*flat)
        composing = self.recorder.composing
        composing.append(None)
        try:
            return replacement(*flat)
        finally:
            composing.pop()

    def rule(self, ov):
        return self.dialect.rule(ov)

    def stored(self, value, like: Tensor) -> Tensor | None:
        return self.dialect.stored(value, like)

    def keeps_slice(self, size) -> bool:
        return self.dialect.keeps_slice(size)

    def made(self, t: Tensor) -> Tensor | None:
        """A tensor that was just made from Python values, as one of the graph."""
        self.own[id(t._payload)] = t._payload
        return ops.lift_fresh_copy(t) if self.keeps_copies else None

    def reshapes(self, t: Tensor) -> None:
        """Refuse another shape in place for a tensor with data from outside."""
        held = next((old for ref, old in self.rebound if ref() is t), t._payload)
        if self.fake and not self.adopts and isinstance(held, np.ndarray) and (
                id(held) not in self.own):
            raise errors.TransformError(errors.text(
                "Can't call metadata mutating ops on non-Fake Tensor inputs: a tensor with data "
                f"gets another shape in place ({errors.user_line(2)})",
                f"tensor: {t.dtype.name}{list(t.shape)}, from outside of the function",
                "pass it as an argument, or give a view of it the other shape"))

    on = {MADE: made, RESHAPES: reshapes}

    def __enter__(self):
        self.keeping = state.observers.trace
        if self.keeps_composites or self.keeps_copies or self.dialect.keeps_whole:
            state.observers.trace = self
        return super().__enter__()

    @tied
    def __exit__(self, kind, value, trace):
        state.observers.trace = self.keeping
        Interpreter.__exit__(self, kind, value, trace)

    def switched(self, mode: bool, leaves: bool) -> None:
        """Recording of histories was switched by the function, not by an operator inside of it."""
        if self.keeps_composites and self.recorder.origin is None and self.recorder.pulled is None:
            self.recorder.switched(mode, leaves)

    def pull(self, node, grads, needs):
        """A node of the tape is about to send gradients on: it explains what is recorded."""
        recorder = self.recorder
        before, recorder.pulled = recorder.pulled, node
        try:
            return node.apply(grads, needs)
        finally:
            recorder.pulled = before

    def record(self, ov, flat, out) -> None:
        super().record(ov, flat, out)
        for t in out if isinstance(out, (list, tuple)) else (out,):
            edge = t._edge if isinstance(t, Tensor) and self.mine(t) else None
            node = getattr(edge, "node", edge)  # of several outputs
            if node is not None:
                self.recorder.taped(t._payload.node, node.seq)

    def whole(self, ov, flat):
        """A composite operator as one node; NotImplemented where its parts are needed.

        They are for gradients, where the result is a view of an argument: writes go through it,
        or made of parts itself, and where the operator writes: statistics, for instance.
        """
        one = self.dialect.whole(ov)
        if not (one or self.keeps_composites):
            return NotImplemented
        if any((a.is_write or a.name.startswith("running_")) and v is not None
               for a, v in zip(ov.schema.args, flat)):
            return NotImplemented
        tensors = list(tensors_in(flat))
        if state.mode != self.level or any(level_of(ov, t) > self.level for t in tensors):
            return NotImplemented
        replacement = self.decompositions.get(ov)
        if replacement is not None:
            return self._decomposed(replacement, flat)
        tracked = state.record[self.level] and any(t._edge is not None for t in tensors)
        if tracked and not (one and self.dialect.rule(ov) is not None):
            return NotImplemented
        values = map_flat(self._value, flat)
        state.observers.trace = None
        try:
            out = self.below(ov, values)
        finally:
            state.observers.trace = self
        made = list(tensors_in(out if isinstance(out, (list, tuple)) else (out,)))
        shared = {id(root(t)._payload) for t in tensors_in(values)}
        if not made or any(is_composed(t) or id(root(t)._payload) in shared for t in made):
            return NotImplemented
        found = self._recorded(ov, flat, out)
        if tracked:
            self.record(ov, flat, found)
        return found

    def wrap(self, value: Tensor, node) -> Tensor:
        return make(Traced(self, value, node))

    def known(self, node):
        """The value of a node that does not depend on inputs, if the recorder kept it."""
        return self.recorder.known(node)

    def node(self, t: Tensor):
        """The graph node of a handle; a tensor from outside becomes a constant of the graph."""
        return t._payload.node if self.mine(t) else self.recorder.constant(t)

    def process(self, ov, flat):
        refuse_dtypes(ov, flat)
        replacement = self.decompositions.get(ov)
        if ov.op.trusts is True and self.careful and self.recorder.pulled is None:
            replacement = None  # called by the user, there was no forward
        if replacement is not None and self.careful and state.fakes.sizes is not None and from_data(
                [t._payload.shape for t in tensors_in(flat)], marked=False):
            replacement = None  # it would take sizes for neither 0 nor 1
        if replacement is not None:
            out = self._replaced(ov, replacement, flat)
            if out is not NotImplemented:
                return out
        values = map_flat(self._value, flat)
        out = self.below(ov, values)
        if not ov.schema.returns:  # called for what it does
            self.recorded_effect(
                self.recorder.call(ov, map_flat(self.node, flat), None))
            return None
        if not isinstance(out, (Tensor, list, tuple)):
            if isinstance(out, Symbolic) and out.hint is None:
                node = self.recorder.call(ov, map_flat(self.node, flat), out)
                self.recorder.sizes.defined(out, node)
            return out  # a Python value of an operator such as `equal`
        return self._recorded(ov, flat, out)

    def _recorded(self, ov, flat, out):
        """What the function gets for an operator: its example value, with a node of its own."""
        nodes = map_flat(self.node, flat)
        node = self.recorder.call(ov, nodes, out)
        if effect_of(ov) is not None:
            self.recorded_effect(node)
        value = self._folded(ov, flat, nodes)
        if isinstance(out, Tensor):
            if value is not None:
                self.recorder.values[node] = value
            return self.wrap(out, node)
        picked = self._picked(node, out)
        if value is not None:
            for p, v in zip(picked, value):
                if isinstance(v, Tensor):
                    self.recorder.values[p._payload.node] = v
        return type(out)(*picked) if hasattr(out, "_fields") else type(out)(picked)

    def _picked(self, node, out) -> list:
        """The results of a node, each of them with a node of its own; lists may be among them."""
        found = []
        for i, o in enumerate(out):
            if isinstance(o, Tensor):
                o = self.wrap(o, self.recorder.pick(node, i, o))
            elif type(o) in (list, tuple) and any(isinstance(t, Tensor) for t in o):
                o = self._picked(self.recorder.pick(node, i, o), o)
            elif isinstance(o, Symbolic) and o.hint is None:  # a number that only the data decides
                self.recorder.pick(node, i, o)
            found.append(o)
        return found

    def recorded_effect(self, node) -> None:
        """Told of a call that is there for what it does."""

    def _folded(self, ov, flat, nodes):
        """The value of an operator on constants, which the function may look at; else None."""
        recorder, tensors = self.recorder, False
        for t in tensors_in(flat):
            if recorder.known(self.node(t)) is None:
                return None
            tensors = True
        if not tensors or ov.is_random or effect_of(ov) is not None:
            return None
        values = map_tensors(lambda t: recorder.known(self.node(t)), flat)
        if sum(t.numel() for t in tensors_in(values)) > _FOLDED:
            return None
        before = state.mode, state.random, state.fakes, state.observers
        state.mode, state.random = self.previous
        state.fakes.creates, state.observers.trace = False, None
        try:
            return bind(ov, values)
        finally:
            state.mode, state.random, state.fakes, state.observers = before

    def _replaced(self, ov, replacement, flat):
        """A decomposition without history: the operator itself goes on the tape, by its own
        formulas.
        """
        if replacement is ov.decomposition:
            refuse_as_whole(ov, flat, [raw_of(map_tensors(self._value, v)) for v in flat])
            given = _in_one_dtype(ov, flat)
            if self.careful and _computes(ov):
                given = _widened(given)
        else:
            given = flat
        recorder, before = self.recorder, state.record[self.level]
        origin, state.record[self.level] = recorder.origin, False
        if origin is None:
            recorder.origin = ov  # the operator that the user called: errors are to be its own
        try:
            out = self._decomposed(replacement, given)
        except Exception as error:  # found by the parts: the user knows the whole
            if replacement is not ov.decomposition:
                raise
            if _about_dtypes(error):
                return NotImplemented  # the kernel has not refused them
            shown = failure(ov, flat, error)
            if shown is error:
                raise
            raise shown from error
        finally:
            recorder.origin, state.record[self.level] = origin, before
        if replacement is ov.decomposition and (given is not flat or _is_mixed(ov, flat)):
            wanted = self.below(ov, map_flat(self._value, flat))
            if given is not flat:
                out = _narrowed(out, wanted)
            if _dtypes(wanted) != _dtypes(out):
                return NotImplemented  # the parts promote in another way
        # an input that came back unchanged is another handle now: the tape will write on it, and
        # that a result looks at an intermediate is nobody's business
        out = map_tensors(lambda t: make(t._payload), out)
        self.taken_apart(ov, flat, out)
        return out

    def taken_apart(self, ov, flat, out) -> None:
        """Told of a decomposition."""

    def _value(self, t: Tensor) -> Tensor:
        value = t._payload.inner if self.mine(t) else t
        return make(value._payload) if value._edge is not None else value

    def below(self, ov, values):
        """Run on the example values, one level down."""
        before = state.mode, state.random, state.fakes
        state.mode, state.random = self.previous
        if self.fake and not before[2].creates:
            if self._creating[0] is not before[2]:  # made once: setting an attribute copies
                state.fakes.creates = True
                self._creating = before[2], state.fakes
            state.fakes = self._creating[1]
        try:
            return bind(ov, values)
        finally:
            state.mode, state.random, state.fakes = before
