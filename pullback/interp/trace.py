"""Trace: record every operator in a graph while running it on example values.

The example may be real or fake.  The recorder is whoever builds the graph (`fx/make_fx.py`); this file only knows
its three calls: `call`, `pick` and `constant`.
"""

from __future__ import annotations

from .. import errors
from ..core.handle import Tensor, make
from ..core.stack import Interpreter, bind
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
        raise errors.DataDependentError(errors.text(
            f"{what} needs the value of a tensor while the function is being captured "
            f"({errors.user_line(3)})", f"tensor: {handle.dtype.name}{list(handle.shape)}",
            ["use where() instead of a Python condition", "or keep the decision outside of the captured function"]))

    def describe(self, handle) -> str:
        return f"TracedTensor({self.node}, shape={tuple(self.shape)}, dtype={handle.dtype})"


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
        replacement = self.decompositions.get(ov)
        if replacement is not None:
            out = replacement(*flat)
            if out is not NotImplemented:
                return out
        values = tuple(map_tensors(self._value, v) for v in flat)
        out = self.below(ov, values)
        if not isinstance(out, (Tensor, list, tuple)):
            return out  # a Python value of an operator such as `equal`
        node = self.recorder.call(ov, tuple(map_tensors(self.node, v) for v in flat), out)
        if isinstance(out, Tensor):
            return self.wrap(out, node)
        picked = [self.wrap(o, self.recorder.pick(node, i, o)) if isinstance(o, Tensor) else o
                  for i, o in enumerate(out)]
        return type(out)(*picked) if hasattr(out, "_fields") else type(out)(picked)

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
