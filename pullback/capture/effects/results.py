"""How the user's results are made when a program runs: an output of the graph, an input itself, a
view of either, a number, the handle of a hook.

`Results` (`capture/results.py`) decides which of them a result is, at the end of a capture.  What
belongs together (a tensor and its views) is made from the same tensor, once per call.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...array.size import Size
from ...autograd.function import Opaque
from ...autograd.grad_mode import inference_mode, set_grad_enabled
from ...core.handle import Tensor, cell_of, make
from ...graph.node import map_aggregate
from ...memory.links import one_more
from ...memory.views import replay

if TYPE_CHECKING:
    from .effect import Call


@dataclass(eq=False)
class Output:
    """What to return for one of the user's results that is not a constant."""

    kind = ""

    def make(self, call: Call) -> Any:
        """The result of a call, the same each time that it is asked for."""
        found = call.done.get(self)
        if found is None:
            found = call.done[self] = self._made(call)
        return found

    def _made(self, call: Call) -> Any:
        raise NotImplementedError

    def sized(self, of: Callable[[Any], Any]) -> Output:
        """The same where sizes are known."""
        return self


@dataclass(eq=False)
class ReturnInput(Output):
    """An input itself."""

    kind = "input"

    index: int

    def _made(self, call: Call) -> Tensor:
        return call.tensors[self.index]


@dataclass(eq=False)
class ReturnNumber(Output):
    """A number or a size that depends on data: an output of the graph, not as a tensor."""

    kind = "number"

    index: int

    def _made(self, call: Call) -> Any:
        value = call.made[self.index]
        return value.item() if not value.ndim else Size(value.tolist())


@dataclass(eq=False)
class ReturnHandle(Output):
    """The handle of a hook: each call gives another one, of the hook that it registered."""

    kind = "handle"

    handle: Any

    def _made(self, call: Call) -> Any:
        return copy(self.handle)


@dataclass(eq=False)
class _Made(Output):
    """A tensor that the function made, as it left it."""

    leaf: bool = False  # made a leaf that requires grad inside
    retains: bool = False  # was it told to keep its gradient?
    cls: type = Tensor  # what the user's function made of it: a parameter, for instance

    def _finished(self, t: Tensor) -> Tensor:
        if self.leaf:
            t.requires_grad_()
        if self.retains and t._edge is not None:
            t.retain_grad()
        if self.cls is not Tensor:
            t.__class__ = self.cls
        return t


@dataclass(eq=False)
class ReturnValue(_Made):
    """An output of the graph."""

    kind = "graph"

    index: int = 0
    # (input, views, one of several?): whose memory it shows, by a function of the user's
    opaque: tuple | None = None
    # (output or input, views): the memory of a detached alias with a history
    shares: tuple[Output, tuple] | None = None
    piece: tuple | None = None  # (input or None, views): one of several results of a view

    @property
    def plain(self) -> bool:
        """Is it given as it comes from the native call?"""
        return not (self.leaf or self.opaque or self.piece or self.shares or self.retains) and (
            self.cls is Tensor)

    def _made(self, call: Call) -> Tensor:
        t = call.made[self.index]
        if self.opaque is not None:
            number, chain, multi = self.opaque
            base, steps = call.tensors[number], None
            t._payload, t._cell = replay(make(base._payload), chain)._payload, cell_of(base)
            for step in chain:
                steps = one_more(steps, step)
            t._link = Opaque(base, steps, multi, None, t._cell.version)
        elif self.shares is not None:
            base = self.shares[0].make(call)
            t._payload = replay(make(base._payload), self.shares[1])._payload
            t._cell = cell_of(base)
        elif self.piece is not None:
            number, chain = self.piece
            if number is not None:  # of the user's own tensor
                with set_grad_enabled(False):
                    shown = replay(call.tensors[number], chain)
                shown._edge, shown._link.multi, t = t._edge, True, shown
            if t._link is not None:
                t._link.hidden = None  # gradients come to it as to an output of a function
        elif t._link is not None and t._link.hidden and t._edge is not None:
            t._link = None  # a view in the graph, beside pieces of the same; it has its own
        return self._finished(t)

    def sized(self, of: Callable[[Any], Any]) -> Output:
        if self.opaque is self.shares is self.piece is None:
            return self
        return replace(
            self, piece=self.piece and (self.piece[0], of(self.piece[1])),
            shares=self.shares and (of(self.shares[0]), of(self.shares[1])),
            opaque=self.opaque and (self.opaque[0], of(self.opaque[1]), self.opaque[2]))


@dataclass(eq=False)
class ReturnView(_Made):
    """A view of another result or of an input, made again for what can be done to it later."""

    kind = "view"

    of: Output | None = None
    chain: tuple = ()  # views to replay on that one
    computed: bool = False  # are numbers among them outputs, too, since they depend on data?
    hidden: str | None = None  # were they made while nothing was recorded?
    half: bool = False  # all of them but the last one
    early: bool = False  # to be made before the input changes its shape or loses its history
    tracked: bool = False  # does it have a history?
    apart: bool = False  # a detached alias
    writes: int | None = None  # of an alias by `.data`, which has a version of its own
    multi: bool = False  # one of several results of a view, by its place in memory
    stale: bool = False  # its base was written since, and it is none of the views that may follow
    late: bool = False  # a view of what was written, which nothing else in the function used
    own: int | None = None  # the graph output whose history it has: its hooks are in the graph

    def _made(self, call: Call) -> Tensor:
        base, chain = self.of.make(call), self.chain
        if self.computed:
            chain = map_aggregate(
                chain, lambda v: v.make(call) if isinstance(v, Output) else v)
        with self._mode():
            t = replay(base, chain[:-1] if self.half else chain)
        if self.half:
            t = replay(t, chain[-1:])
        if self.apart:
            t = t.detach() if self.writes is None else make(t._payload)
            if self.writes:
                cell_of(t).version = self.writes
        if self.own is not None:
            give_history(t, call.made[self.own])
        if self.multi and t._link is not None:
            t._link.multi = True
        if self.stale:
            t._link.seen, t._link.multi = -1, t._link.multi or not t._link.hidden
        return self._finished(t)

    def _mode(self):
        """The mode in which the views were made."""
        if self.hidden == "inference":
            return inference_mode()
        return set_grad_enabled(not (self.hidden or self.apart))

    def sized(self, of: Callable[[Any], Any]) -> Output:
        return replace(self, of=of(self.of), chain=of(self.chain))


def give_history(t: Tensor, result: Tensor) -> None:
    """Let gradients of a view come to the graph as to a result of it, where its hooks are."""
    if result._edge is not None:
        t._edge = result._edge
        if t._link is not None:
            t._link.seen = cell_of(t).version
