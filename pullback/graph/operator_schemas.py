"""Calls with their arguments by name: `normalize_function`, `normalize_module`."""

from __future__ import annotations

import inspect
import keyword
import types
from collections.abc import Callable
from typing import Any, NamedTuple, Union, get_args, get_origin

from ..array.dtype import DType
from ..facade import for_torch
from ..table.packets import Packet
from .errors import MutableOperation
from .node import fetch_attribute
from .tables import overloads


class ArgsKwargsPair(NamedTuple):
    """The arguments of a call."""

    args: tuple
    kwargs: dict[str, Any]


def _signatures(target: Any) -> list[inspect.Signature]:
    """All ways in which a callable takes its arguments."""
    form = for_torch("library_calls").recorded_signature(target)
    if form is not None:
        return [form]
    if isinstance(target, Packet) or hasattr(target, "schema"):
        found = []
        for ov in overloads(target):
            kinds, taken = inspect.Parameter, {a.name for a in ov.schema.args}
            found.append(inspect.Signature([
                kinds(
                    "input" if a.name == "self" and "input" not in taken else
                    f"{a.name}_" if keyword.iskeyword(a.name) else a.name,
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


def check_for_mutable_operation(target: Any, args: tuple, kwargs: dict[str, Any]) -> None:
    """Refuse a call that writes into its arguments: an in-place operator, or one with `out=`."""
    if not isinstance(target, Packet):
        return
    into = "out" if kwargs.get("out") is not None else None
    if into or target._inplace:
        raise MutableOperation(
            f"Tried to trace mutable operation aten::{target.name}{f'.{into}' if into else ''}: "
            "what it writes would not be seen in the graph. Use the operator that returns its "
            "result instead")


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
        count = len(args)  # what was given by position stays there
        rest = bound.args[count:]
        names = [n for n, p in signature.parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
        return ArgsKwargsPair(
            bound.args[:count], {**dict(zip(names[count:], rest)), **bound.kwargs})
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


def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Whether an argument of one type fits a parameter of another."""
    if signature_type is argument_type:
        return True
    outer, parts = get_origin(signature_type), get_args(signature_type)
    if outer is Union or isinstance(signature_type, types.UnionType):
        return argument_type in parts or any(type_matches(p, argument_type) for p in parts)
    if outer is list and get_origin(argument_type) in (list, tuple):
        return type_matches(parts[0], get_args(argument_type)[0])
    if outer is list and parts[0] is argument_type:
        return True  # one number for a list of them
    if outer is list or not isinstance(signature_type, type):
        return False
    if signature_type is int and argument_type is DType:  # schemas call a dtype a number
        return True
    return isinstance(argument_type, type) and issubclass(argument_type, signature_type)


def create_type_hint(x: Any) -> Any:
    """Types in a list or tuple as the type of such a list or tuple."""
    if not isinstance(x, (list, tuple)):
        return x
    if not x:
        return list[Any] if isinstance(x, list) else tuple[Any, ...]
    common = next((t for t in x if all(isinstance(o, type) and issubclass(o, t) for o in x)), Any)
    return list[common] if isinstance(x, list) else tuple[common, ...]  # type: ignore[valid-type]
