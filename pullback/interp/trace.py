"""Trace: record every operator in a graph while running it on example values.

The example may be real or fake.  The recorder is whoever builds the graph (`fx/make_fx.py`); this
file only knows its three calls: `call`, `pick` and `constant`.
"""

from __future__ import annotations

import math

import numpy as np

from .. import errors
from ..core.evaluate import run_raw
from ..core.handle import Tensor, make
from ..core.stack import Interpreter, bind, tensors_in, translated
from ..core.state import state
from .box import Wrapped, map_tensors


class Traced(Wrapped):
    """An example value (`inner`) and the graph node that stands for it."""

    __slots__ = ("node",)

    def __init__(self, interp, inner, node):
        self.interp, self.inner, self.node = interp, inner, node

    def concrete(self, handle, what: str):
        constant = self.interp.known(self.node)
        if constant is not None:
            return constant
        raise errors.DataDependentError(
            errors.text(
                f"{what} needs the value of a tensor while the function is being captured "
                f"({errors.user_line(3)})",
                f"tensor: {handle.dtype.name}{list(handle.shape)}",
                [
                    "use where() instead of a Python condition",
                    "or keep the decision outside of the captured function",
                ],
            )
        )

    def describe(self, handle) -> str:
        return f"TracedTensor({self.node}, shape={tuple(self.shape)}, dtype={handle.dtype})"


_PROBED: set = set()  # (operator, dtypes) that were accepted
_SMALL = 16  # sizes up to this stay as they are in a probe
_PROBE_LIMIT = 1 << 16  # elements of a probe with all sizes as they are


def refuse_dtypes(ov, flat: tuple) -> None:
    """Refuse what the kernel refuses: neither fakes nor decompositions look at dtypes closely.

    The kernel runs once on ones for each unusual choice of dtypes, on small tensors: equal sizes
    stay equal.  If the operator does not like their shapes it gets the real ones, unless these are
    large.  Only objections to dtypes count.
    """
    tensors = list(tensors_in(flat))
    dtypes = tuple([t._data.dtype for t in tensors])
    values = {d.char for d in dtypes} - {"l", "?"}  # int64 and bool are indices and masks
    if not dtypes or values == {"f"} or values == {"d"}:
        return
    key = (ov, dtypes)
    if key in _PROBED or ov.is_random or ov.is_view or ov.custom:
        return
    objection = _objection(ov, flat, _few)
    large = sum(math.prod(t._data.shape) for t in tensors) > _PROBE_LIMIT
    if objection is not None and not _about_dtypes(objection) and not large:
        objection = _objection(ov, flat, _ones)
    if objection is None:
        _PROBED.add(key)
    elif _about_dtypes(objection):
        raise objection


def _objection(ov, flat: tuple, ones) -> Exception | None:
    """What the kernel says to tensors of ones."""
    try:
        run_raw(ov, tuple([map_tensors(ones, v) for v in flat]), np)
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
    return np.broadcast_to(np.ones((), t._data.dtype), t._data.shape)


def _few(t: Tensor):
    """The same with large sizes made small."""
    shape = [n if n <= _SMALL else _SMALL + n % _SMALL for n in t._data.shape]
    return np.broadcast_to(np.ones((), t._data.dtype), shape)


class Trace(Interpreter):
    """Records what is called; sees operators without traced arguments too."""

    modal = True
    random = True
    title = "a captured function"

    def __init__(self, recorder, fake: bool = False, decompositions: dict | None = None):
        self.recorder, self.fake = recorder, fake
        self.decompositions = decompositions or {}

    def wrap(self, value: Tensor, node) -> Tensor:
        return make(Traced(self, value, node))

    def known(self, node):
        """The value of a node that does not depend on inputs, if the recorder kept it."""
        return self.recorder.known(node)

    def node(self, t: Tensor):
        """The graph node of a handle; a tensor from outside becomes a constant of the graph."""
        return t._data.node if self.mine(t) else self.recorder.constant(t)

    def process(self, ov, flat):
        refuse_dtypes(ov, flat)
        replacement = self.decompositions.get(ov)
        if replacement is not None:
            out = self._replaced(ov, replacement, flat)
            if out is not NotImplemented:
                return out
        values = tuple(map_tensors(self._value, v) for v in flat)
        out = self.below(ov, values)
        if not isinstance(out, (Tensor, list, tuple)):
            return out  # a Python value of an operator such as `equal`
        node = self.recorder.call(ov, tuple(map_tensors(self.node, v) for v in flat), out)
        if isinstance(out, Tensor):
            return self.wrap(out, node)
        picked = [
            self.wrap(o, self.recorder.pick(node, i, o)) if isinstance(o, Tensor) else o
            for i, o in enumerate(out)
        ]
        return type(out)(*picked) if hasattr(out, "_fields") else type(out)(picked)

    def _replaced(self, ov, replacement, flat):
        """A decomposition without history: the operator itself goes on the tape, by its own
        formulas.
        """
        recorder, before = self.recorder, state.record[self.level]
        origin, state.record[self.level] = recorder.origin, False
        if origin is None:
            recorder.origin = ov  # the operator that the user called: errors are to be its own
        try:
            out = replacement(*flat)
        finally:
            recorder.origin, state.record[self.level] = origin, before
        # an input that came back unchanged is another handle now: the tape will write on it
        given = {id(t) for t in tensors_in(flat)}
        return map_tensors(lambda t: make(t._data) if id(t) in given else t, out)

    def _value(self, t: Tensor) -> Tensor:
        value = t._data.inner if self.mine(t) else t
        return make(value._data) if value._edge is not None else value

    def below(self, ov, values):
        """Run on the example values, one level down."""
        before = state.mode, state.random, state.fake
        state.mode, state.random = self.previous
        state.fake = state.fake or self.fake
        try:
            return bind(ov, values)
        finally:
            state.mode, state.random, state.fake = before
