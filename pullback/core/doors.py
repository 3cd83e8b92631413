"""Doors: the places where the core calls what is built on it.

Each function imports the room behind it when it is first called; the import contract lists these
imports, and no other of the core leads upwards.  Without `eager/` every call would go the general
way.  `subclass_door.py` is a door of another kind: who is behind it puts himself there.
"""

from __future__ import annotations


def packet(name: str):
    """The overloads of an operator's name, as one callable."""
    from ..table.packets import found

    return found(name)


def each_inplace(ov, flat: tuple):
    """An in-place operator on each tensor of a list."""
    from ..table.lists import inplace

    return inplace(ov, flat)


def plan(packet, args: tuple, kwargs: dict):
    """A function for calls of this kind, None where there is nothing to gain."""
    from ..eager.plan import make_plan

    return make_plan(packet, args, kwargs)


def renew(ov) -> None:
    """The formulas of an overload have changed: functions that were written of them go."""
    from ..eager.fast import renew

    renew(ov)


def recorder(ov, rule):
    """A function that puts calls on the tape, None where there is nothing to gain."""
    from ..eager.steps import recorder

    return recorder(ov, rule)


def pullback(rule, several: bool):
    """`Node.apply` for nodes of a rule, None where there is nothing to gain."""
    from ..eager.pullbacks import apply_of

    return apply_of(rule, several)
