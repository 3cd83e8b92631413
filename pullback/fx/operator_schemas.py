"""Calls with their arguments by name: `normalize_function`, `normalize_module`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from ..core.table import Packet
from .node import fetch_attribute
from .tables import overloads


class ArgsKwargsPair(NamedTuple):
    """The arguments of a call."""

    args: tuple
    kwargs: dict[str, Any]


def _signatures(target: Any) -> list[inspect.Signature]:
    """All ways in which a callable takes its arguments."""
    if isinstance(target, Packet) or hasattr(target, "schema"):
        found = []
        for ov in overloads(target):
            kinds = inspect.Parameter
            found.append(inspect.Signature([
                kinds(
                    "input" if a.name == "self" and isinstance(target, Packet) else a.name,
                    kinds.KEYWORD_ONLY if a.kwarg_only else kinds.POSITIONAL_OR_KEYWORD,
                    default=a.default if a.has_default else kinds.empty)
                for a in ov.schema.args]))
        return found
    try:
        return [inspect.signature(target)]
    except (TypeError, ValueError):
        return []


def get_signature_for_torch_op(op: Callable, return_schemas: bool = False) -> Any:
    """The signatures of an operator, None for other callables."""
    if not (isinstance(op, Packet) or hasattr(op, "schema")):
        return (None, None) if return_schemas else None
    found = _signatures(op)
    return (found, [ov.schema for ov in overloads(op)]) if return_schemas else found


def _normalized(signatures: list, args: tuple, kwargs: dict, only: bool) -> ArgsKwargsPair | None:
    for signature in signatures:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            continue
        bound.apply_defaults()
        if only and not any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values()):
            named = {}
            for name, value in bound.arguments.items():
                if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                    named.update(value)
                else:
                    named[name] = value
            return ArgsKwargsPair((), named)
        return ArgsKwargsPair(bound.args, bound.kwargs)
    return None


def normalize_function(
    target: Callable, args: tuple, kwargs: dict[str, Any] | None = None,
    arg_types: tuple | None = None, kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a call with defaults filled in; None if it fits no signature."""
    return _normalized(_signatures(target), args, kwargs or {}, normalize_to_only_use_kwargs)


def normalize_module(
    root: Any, target: str, args: tuple, kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The same for the call of a submodule."""
    forward = fetch_attribute(root, target).forward
    return _normalized([inspect.signature(forward)], args, kwargs or {},
                       normalize_to_only_use_kwargs)
