"""`Function.apply` with tensors that are made of parts: the tape sees the parts with the history.

The user's methods get and return whole tensors; the node is that of a function of their carriers.
"""

from __future__ import annotations

from typing import Any

from ..core.handle import Tensor
from ..parts.tensor import PartsTensor


def of_parts(args: tuple) -> bool:
    """Is one of the arguments made of parts, one of which may have a history?"""
    return any(_carrier(a) is not a for a in args)


def applied(cls: Any, plan: Any, args: tuple) -> Any:
    """The result of a function of tensors, some of which are made of parts."""
    from .function import Function

    call = _Call(cls, plan, args)
    methods = {"forward": staticmethod(call.forward), "backward": staticmethod(call.backward),
               "jvp": staticmethod(call.jvp), "generate_vmap_rule": cls.generate_vmap_rule,
               "__module__": cls.__module__, "__qualname__": cls.__qualname__}
    if plan.split:
        methods |= {"forward": staticmethod(call.plain), "setup_context": staticmethod(call.setup)}
    carried = type(cls)(cls.__name__, (Function,), methods)
    found = carried.apply(*[_carrier(a) for a in args])
    return call.whole(found)


def _carrier(value: Any) -> Any:
    if isinstance(value, PartsTensor) and getattr(value, value.carrier) is not None:
        return value.values_with_history
    return value


def _closed(whole: Any, carrier: Any) -> Any:
    """A tensor like another one around another carrier, None for None."""
    return carrier if carrier is None or _carrier(whole) is whole else whole.with_carrier(carrier)


class Shell:
    """A tensor without its carrier."""

    def __init__(self, whole: PartsTensor):
        self.parts = {n: getattr(whole, n) for n in whole.names if n != whole.carrier}
        self.cls, self.meta = type(whole), whole.meta()

    def close(self, carrier: Tensor | None) -> Any:
        """The tensor around a carrier."""
        if carrier is None:
            return None
        return self.cls.join(self.parts | {self.cls.carrier: carrier}, self.meta)


class _Call:
    """One call: which arguments and results are made of parts."""

    def __init__(self, cls: Any, plan: Any, args: tuple):
        self.cls, self.plan, self.args = cls, plan, args
        self.results: tuple = ()
        self.single = True

    def given(self, carriers: tuple) -> tuple:
        """The arguments as the user's methods take them."""
        return tuple([a if _carrier(a) is c else _closed(a, c)
                      for a, c in zip(self.args, carriers)])

    def taken(self, out: Any) -> Any:
        """The carriers of results."""
        self.single = not isinstance(out, (tuple, list))
        self.results = (out,) if self.single else tuple(out)
        return _carrier(out) if self.single else tuple(map(_carrier, out))

    def whole(self, found: Any) -> Any:
        """Results around carriers that have the history."""
        if self.single:
            return _closed(self.results[0], found)
        return tuple([_closed(r, f) for r, f in zip(self.results, found)])

    def forward(self, ctx: Any, *carriers: Any) -> Any:
        out = self.taken(self.cls.forward(ctx, *self.given(carriers)))
        self._marked(ctx)
        return out

    def plain(self, *carriers: Any) -> Any:
        return self.taken(self.cls.forward(*self.given(carriers)))

    def setup(self, ctx: Any, inputs: tuple, output: Any) -> None:
        self.cls.setup_context(ctx, self.given(inputs), self.whole(output))
        self._marked(ctx)

    def _marked(self, ctx: Any) -> None:
        """What was said of whole tensors is true of their carriers."""
        notes = ctx.__dict__
        for name in ("_dirty", "_non_differentiable"):
            if name in notes:
                notes[name] = tuple(map(_carrier, notes[name]))
        saved = notes.get("_to_save", ())
        if of_parts(saved):
            notes["_to_save"] = tuple(map(_carrier, saved))
            notes["_shells"] = [None if _carrier(t) is t else Shell(t) for t in saved]

    def backward(self, ctx: Any, *grads: Any) -> tuple:
        whole = [_closed(r, g) for r, g in zip(self.results, grads)]
        found = self.plan.backward(ctx, *whole)
        found = found if isinstance(found, (tuple, list)) else (found,)
        own = [*self.args, *[None] * (len(found) - len(self.args))]
        return tuple([a.cotangent(g) if _carrier(a) is not a and isinstance(g, Tensor) else g
                      for a, g in zip(own, found)])

    def jvp(self, ctx: Any, *tangents: Any) -> Any:
        out = self.cls.jvp(ctx, *[_closed(a, t) for a, t in zip(self.args, tangents)])
        return tuple(map(_carrier, out)) if isinstance(out, (tuple, list)) else _carrier(out)
