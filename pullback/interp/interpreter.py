"""`Interpreter`: one level of the stack; a subclass says what an operator means there.

Read next: `lift.py`, the smallest one; `../core/stack.py`, which sends operators to levels.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping

from .. import errors
from ..core import tape
from ..core.handle import Tensor, make
from ..threads.blocks import tied
from ..threads.state import count, state


class Interpreter:
    """One level of the stack; a subclass says what an operator means there."""

    compositions: Mapping = {}  # operators that are made of others on this level, by name
    adopts = False  # turns tensors from outside into its own when an operator meets them
    modal = False  # wants operators without boxed arguments too
    pull = None  # runs nodes of the tape, to know what the operators of their formulas are for
    random = False  # wants random operators
    maps = False  # does a tensor of it stand for those of many examples?
    owns_tape = False  # `no_grad` inside does not reach the levels below
    continues_tape = False  # its tape goes on in that below: one sweep runs through both
    counts_births = False  # wants to know which handles of lower levels are made while it runs
    leaves_values = False  # is a handle that outlives it the value below, or an error?
    title = "a transform"
    rebound: list | tuple = ()  # handles of lower levels that were bound to boxes of this one

    on: dict = {}  # kind of event (`events.py`) -> the method that it goes to

    def event(self, kind: str, *facts):
        """Tell this level of what happened beside operators; an answer, if it has one."""
        heard = self.on.get(kind)
        return None if heard is None else heard(self, *facts)

    def unfollowed(self, text: str, kind: type[Exception] = errors.TransformError) -> Exception:
        """The refusal of something done to memory that this level cannot follow."""
        return kind(text)

    def cut(self, t: Tensor) -> Tensor:
        """The same value without history."""
        return make(t._payload)

    def __enter__(self):
        self.level = len(state.stack)
        self.alive = True
        self.rebound = []
        self.born: set[int] = set()  # identities of handles of lower levels that were made inside
        state.stack.append(self)
        state.record.append(True if self.owns_tape else state.record[-1])
        self.previous = state.mode, state.random
        if self.modal:
            state.mode = self.level
        if self.random:
            state.random = self.level
        if self.counts_births:
            count("BIRTHS", 1)
        count("ACTIVE", 1)
        return self

    @tied
    def __exit__(self, kind, value, trace):
        state.stack.pop()
        state.record.pop()
        state.mode, state.random = self.previous
        if self.counts_births:
            count("BIRTHS", -1)
        count("ACTIVE", -1)
        self.lost()

    def lost(self) -> None:
        """The level has ended: handles of lower levels get values of theirs back."""
        self.alive = False
        for ref, old in reversed(self.rebound):
            handle = ref()
            if handle is not None and type(handle._payload) is not type(old):
                self.restore(handle, old)

    def process(self, ov, flat):
        """Interpret an operator."""
        raise NotImplementedError

    def compose(self, ov, flat):
        """Run a composite operator, or one of `compositions`, by the operators that it is made of.

        NotImplemented for the latter: it is one operator after all.
        """
        return ov.compose(*flat)

    def rule(self, ov):
        """The derivative by which an operator is recorded while this level sees everything."""
        return ov.rule

    def stored(self, value, like: Tensor) -> Tensor | None:
        """What stands for a number that fills a part of a tensor (`modal` only); None: itself."""

    def keeps_slice(self, size) -> bool:
        """Is a slice of all of a dim, of this size, an operator to this level (`modal` only)?"""
        return False

    def record(self, ov, flat, out) -> None:
        """Put an operator of this level on the tape."""
        tape.record(ov, flat, out, self.level)

    def rebound_to(self, handle, new) -> bool:
        """A handle of this level is overwritten; was its version moved on the way?"""
        handle._payload = new._payload
        return False

    def mine(self, value) -> bool:
        """Is this a handle of this level?"""
        if not isinstance(value, Tensor) or getattr(value._payload, "interp", None) is not self:
            return False
        return not value._payload.outer

    def restore(self, handle, old) -> None:
        """Give a handle of a lower level a value of that level back, when this level ends."""
        handle._payload = old

    def note_rebinding(self, handle, old) -> None:
        """Remember a handle of a lower level that now holds a box of this level."""
        self.rebound.append((weakref.ref(handle), old))
