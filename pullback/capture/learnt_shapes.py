"""Operators of users that have no fake, in compiled functions: they are called as they are.

What shapes their results have is learnt from the arguments of the call that is captured: what the
operator needs is computed from them, and the operator runs on it once, beside the call itself.  A
warning says so.  A program whose operator gives another shape later stops with an error.
Read next: `decisions.py`, which computes the values.
"""

from __future__ import annotations

import numpy as np

from .. import errors
from ..core.handle import Tensor, make, tensors_in
from ..core.stack import bind
from ..graph.make_fx import fake_of
from ..interp.box import map_flat, map_tensors
from ..table.effects import effect_of
from .decisions import Decisions, below


class Learnt:
    """The values that one capture has needed to learn shapes."""

    def __init__(self, level):
        self.level = level
        self.values = Decisions(level.recorder, tangents=True)

    def called(self, ov, flat: tuple):
        """The results of an operator, without data; None where nobody has data for it, or where
        one more call would be seen."""
        level = self.level
        if effect_of(ov) is not None:
            return None
        nodes = {id(t): level.node(t) for t in tensors_in(flat)}
        with below(level):
            known = {key: self.values.known(node) for key, node in nodes.items()}
            if any(t is None or type(t._payload) is not np.ndarray for t in known.values()):
                return None
            found = bind(ov, map_flat(lambda t: make(known[id(t)]._payload), flat))
        errors.warn_once(f"no fake {ov}", (
            f"{ov} has no fake: the compiled function calls it as it is. The shapes of its results "
            f"({_shown(found)}) are those that it gave for the first arguments; to see them it was "
            f"called once more ({errors.user_line()}). Register one with register_fake."))
        out = level._recorded(ov, flat, map_tensors(fake_of, found))
        for t, value in zip(tensors_in(_listed(out)), tensors_in(_listed(found))):
            self.values.note(level.node(t), value)
        return out


def _listed(out) -> list:
    return [out] if isinstance(out, Tensor) else list(out)


def _shown(out) -> str:
    return ", ".join(f"{t.dtype.name}{list(t.shape)}" for t in tensors_in(_listed(out)))
