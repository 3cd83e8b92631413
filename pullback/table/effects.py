"""Which operators do more than compute: those with a registered effect.

Graphs keep calls of them, in their order, and never make them twice.  Passes ask through
`graph/traits.py`; graphs that follow PyTorch's convention say it by tokens
(`capture/effect_tokens.py`).  Read next: `../graph/traits.py`.
"""

from __future__ import annotations

import enum
from typing import Any

from .. import errors
from .catalog import registry


class EffectType(enum.Enum):
    """Kinds of effects; calls of one kind happen in the order in which they stand."""

    ORDERED = "Ordered"


# what was registered, over what operators say of themselves (`effect`): operators of the table by
# their full name, others with their namespace
_effects: dict[str, EffectType | None] = {}
_KINDS = {kind.name.lower(): kind for kind in EffectType}


def _name(op: Any) -> str:
    if isinstance(op, str):
        return op.removeprefix("aten::").removesuffix(".default")
    entry = getattr(op, "op", None)
    if entry is not None:
        return entry.full_name
    name = getattr(op, "_qualname", None)
    if name is None and getattr(op, "namespace", None) == "higher_order":
        name = f"higher_order::{op.name()}"
    if name is None:
        raise errors.BadValue(errors.text(
            f"{op!r} is no operator ({errors.user_line(2)})",
            cure="give its name, 'namespace::name', or an overload: torch.ops.my.op.default"))
    return name


def effect_of(target: Any) -> EffectType | None:
    """The effect of what a graph calls, None if it has none."""
    entry = getattr(target, "op", None)
    if entry is None:
        if getattr(target, "namespace", None) != "higher_order":
            return None
        entry, name = target, f"higher_order::{target.__name__}"
    else:
        name = getattr(entry, "full_name", "")
    if name in _effects:
        return _effects[name]
    return _KINDS.get(getattr(entry, "effect", None))


class Registration:
    """A registered effect; `destroy` takes it back."""

    def __init__(self, name: str):
        self._name = name

    def destroy(self) -> None:
        """The operator has the effect that it had by itself."""
        _effects.pop(self._name, None)


def register_effect(op: Any, effect: EffectType | None) -> Registration:
    """Say which effect an operator has (None: none)."""
    if effect is not None and not isinstance(effect, EffectType):
        raise errors.ArgumentError(errors.text(
            f"the effect of an operator is an EffectType or None, got {effect!r} "
            f"({errors.user_line(2)})"))
    name = _name(op)
    _effects[name] = effect
    return Registration(name)


def get_effect(op: Any) -> EffectType | None:
    """The effect of an operator, given as an object or by its name."""
    name = _name(op)
    if not isinstance(op, str) or name in _effects:
        return _effects[name] if name in _effects else effect_of(op)
    return _KINDS.get(getattr(registry.get(name), "effect", None))
