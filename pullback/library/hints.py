"""Schemas from type hints: how `library.custom_op` reads the signature of a function.

Read next: `core/schema.py`, which reads what is made here.
"""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing

from .. import errors
from ..array import dtype as dt
from ..array.device import Device
from ..core.handle import Tensor

_PLAIN = {
    Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    dt.DType: "ScalarType",
    Device: "Device",
}
_SEQUENCES = (list, tuple, collections.abc.Sequence)


def _type_text(hint, name: str, function) -> str:
    """The schema type of a parameter's type hint."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        rest = [a for a in inner if a is not type(None)]
        optional = len(rest) < len(inner)
        if set(rest) == {int, float, bool} or set(rest) == {int, float, bool, complex}:
            return "Scalar?" if optional else "Scalar"
        if len(rest) == 1 and optional:
            return _type_text(rest[0], name, function) + "?"
    if origin in _SEQUENCES and inner:
        item = inner[0]
        if origin is not tuple or len(inner) == 2 and inner[1] is Ellipsis:
            text = _type_text(item, name, function)
            if not text.endswith("]"):  # lists of lists have no schema
                return text + "[]"
    raise ValueError(
        errors.text(
            f"infer_schema(func): Parameter {name} has unsupported type {hint} "
            f"({function.__module__}.{function.__qualname__})",
            cure="a type is Tensor, int, float, bool, str, number, dtype, device, or a sequence or "
            "Optional of these",
        )
    )


def _default_text(value) -> str:
    if value is None or isinstance(value, (bool, int, float)):
        return str(value)
    if isinstance(value, (str, Device)):
        return f'"{value}"'
    if isinstance(value, dt.DType):
        return value.name
    raise ValueError(
        f"infer_schema(func): the default {value!r} is of a type that a schema cannot have"
    )


def infer_schema(prototype_function, /, *, mutates_args, op_name: str | None = None,
                 tags=None) -> str:
    """The schema of a function from its type hints, as text."""
    signature = inspect.signature(prototype_function)
    try:
        hints = typing.get_type_hints(prototype_function)
    except NameError as error:
        raise ValueError(
            f"infer_schema(func): cannot read the type hints of "
            f"{prototype_function.__qualname__}: {error}"
        ) from None
    parts, keyword_only = [], False
    unknown = mutates_args == "unknown"
    if isinstance(mutates_args, str) and not unknown:
        raise ValueError(
            "mutates_args must either be a sequence of the names of the arguments that are mutated "
            "or the string 'unknown'."
        )
    strangers = set() if unknown else {*mutates_args} - {*signature.parameters}
    if strangers:
        raise ValueError(
            f"infer_schema(func): {strangers} in mutates_args were not found among the parameters "
            f"({', '.join(signature.parameters)})"
        )
    for i, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ValueError(
                "infer_schema(func): the function must have a fixed number of parameters, got "
                f"{'*' * (1 + (parameter.kind is parameter.VAR_KEYWORD))}{name}"
            )
        if name not in hints:
            raise ValueError(f"infer_schema(func): Parameter {name} must have a type annotation.")
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            parts.append("*")
        text = _type_text(hints[name], name, prototype_function)
        written = text.startswith("Tensor") if unknown else name in mutates_args
        if written:
            if not text.startswith("Tensor"):
                raise ValueError(
                    f"infer_schema(func): Parameter {name} is in mutates_args but is no Tensor"
                )
            text = f"Tensor(a{i}!){text[len('Tensor') :]}"
        default = parameter.default
        tail = "" if default is parameter.empty else f"={_default_text(default)}"
        parts.append(f"{text} {name}{tail}")
    returns = _returns_text(hints.get("return", inspect.Signature.empty), prototype_function)
    return f"{op_name or ''}({', '.join(parts)}) -> {returns}"


def _returns_text(hint, function) -> str:
    if hint is inspect.Signature.empty:
        raise ValueError(
            "infer_schema(func): No return type annotation was provided. Please add one.")
    if hint in (None, type(None)):
        return "()"
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple and not (len(inner) == 2 and inner[1] is Ellipsis):
        items = [_type_text(a, "return", function) for a in inner]
        return items[0] if len(items) == 1 else f"({', '.join(items)})"
    found = _type_text(hint, "return", function)
    if found.endswith("?") or origin is tuple:
        raise ValueError(
            f"infer_schema(func): Return has unsupported type {hint} "
            f"({function.__module__}.{function.__qualname__})")
    return found
