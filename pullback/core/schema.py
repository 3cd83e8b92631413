"""Operator schemas: parse, print, and match calls against them.

The grammar is that of the classic operator registry:

    name.overload(Tensor(a!) self, int[2]? dim=None, *, ScalarType? dtype=None)
        -> (Tensor values, Tensor indices)

`bind` turns a Python call into the flat tuple of all arguments in schema order, or None if the call
does not match; everything behind the surface speaks in such flat tuples.  Read next: `op.py`.
"""

from __future__ import annotations

import numbers
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .. import errors
from ..array import dtype as dt
from ..array.device import Device
from ..array.layout import STRIDED
from ..array.size import Symbolic, is_symbolic
from .handle import Tensor

_TYPE = re.compile(r"(?P<base>[A-Za-z_]\w*)(\s*\((?P<alias>[^)]*)\))?(?P<tail>(\?|\[\d*\])*)"
                   r"(\s+(?P<name>[A-Za-z_]\w*))?$")
_HEAD = re.compile(r"\s*(?P<name>[\w:]+)(\.(?P<overload>\w+))?\s*"
                   r"\((?P<args>.*)\)\s*->\s*(?P<rets>.*)$", re.S)
_NAMED = {"None": None, "True": True, "False": False, "Mean": 1, "Sum": 2, "long": dt.int64,
          "contiguous_format": "contiguous_format", "strided": "strided"}
_DTYPES = {d.name: d for d in dt.ALL}
_KNOWN_TYPES = {"Tensor", "Scalar", "int", "SymInt", "SymBool", "float", "bool", "str",
                "ScalarType", "Layout", "Device", "DeviceIndex", "MemoryFormat",
                "Generator", "Dimname", "Storage", "Stream", "QScheme", "ConstQuantizerPtr"}


_SHOWN = {"Scalar": "number", "ScalarType": "int", "Layout": "int", "MemoryFormat": "int"}


class AliasInfo:
    """What a mark such as `(a! -> *)` says, under PyTorch's names."""

    def __init__(self, text: str):
        self.is_write = "!" in text
        before, _, after = text.replace("!", "").partition("->")
        self.before_set = {name.strip() for name in before.split("|")}
        self.after_set = {name.strip() for name in (after or before).split("|")}


@dataclass(slots=True)
class Argument:
    """One argument or return of an operator."""

    name: str  # "" for an unnamed return
    base: str  # "Tensor", "int", ... (SymInt is read as int)
    optional: bool = False  # the value may be None
    is_list: bool = False
    size: int | None = None  # int[2]: a single number is repeated to this length
    optional_items: bool = False  # Tensor?[]
    alias: str = ""  # "a", "a!", ...
    kwarg_only: bool = False
    default: object = None
    has_default: bool = False
    symbolic: bool = False  # was spelled SymInt
    default_text: str = ""  # the default as written: `Mean`, `'none'`, `2.`, `1` for int[2]

    @property
    def is_tensor(self) -> bool:
        return self.base == "Tensor"

    @property
    def is_write(self) -> bool:
        return "!" in self.alias

    # PyTorch's names

    @property
    def type(self) -> str:
        """The type in words of Python: "Optional[List[int]]"; numbers stand for settings."""
        text = _SHOWN.get(self.base, self.base)
        if self.optional_items:
            text = f"Optional[{text}]"
        text = f"List[{text}]" if self.is_list else text
        return f"Optional[{text}]" if self.optional else text

    @property
    def default_value(self) -> object:
        return self.default

    def has_default_value(self) -> bool:
        return self.has_default

    @property
    def alias_info(self) -> AliasInfo | None:
        """Whose memory it shares, None if nobody's."""
        return AliasInfo(self.alias) if self.alias else None

    def type_text(self) -> str:
        base = f"Sym{self.base.capitalize()}" if self.symbolic else self.base
        text = base + (f"({self.alias})" if self.alias else "")
        text += "?" if self.optional_items else ""
        if self.is_list:
            text += f"[{'' if self.size is None else self.size}]"
        return text + ("?" if self.optional else "")

    def __str__(self) -> str:
        text = self.type_text() + (f" {self.name}" if self.name else "")
        return text + (f"={self.default_text}" if self.has_default else "")

    def same_as(self, other: Argument) -> bool:
        """Equal but for how the default and symbolic integers are written."""
        return all(getattr(self, f) == getattr(other, f) for f in _MEANING)


_MEANING = ("name", "base", "optional", "is_list", "size", "optional_items", "alias", "kwarg_only",
            "default", "has_default")


def _split(text: str) -> list[str]:
    """Split at commas that are outside of brackets and quotes."""
    parts, depth, start, quoted = [], 0, 0, False
    for i, c in enumerate(text):
        if c in "\"'":
            quoted = not quoted
        elif quoted:
            continue
        elif c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return parts + [last] if last else parts


def _default(text: str, is_list: bool):
    if text in _NAMED or text in _DTYPES:
        return _NAMED.get(text) if text in _NAMED else _DTYPES[text]
    if text[:1] in ("'", '"') and text[-1:] == text[0] and len(text) > 1:
        return text[1:-1]
    if text[:1] == "[" and text[-1:] == "]":
        return [_default(p, False) for p in _split(text[1:-1])]
    try:
        value = int(text)
    except ValueError:
        value = float(text)
    return [value] if is_list else value


def _argument(text: str, kwarg_only: bool, whole: str) -> Argument:
    declaration, eq, default = text.partition("=")
    match = _TYPE.match(declaration.strip())
    if not match or match["base"] not in _KNOWN_TYPES:
        raise errors.SchemaError(errors.text(
            f"cannot read the type of '{text}'", f"schema: {whole}",
            f"a type is one of {', '.join(sorted(_KNOWN_TYPES))}, with [], ? or (a!) behind it"))
    base, alias = match["base"], re.sub(r"\s*->\s*", " -> ", (match["alias"] or "").strip())
    arg = Argument(match["name"] or "", base, alias=alias, kwarg_only=kwarg_only)
    if base.startswith("Sym"):
        arg.base, arg.symbolic = base[len("Sym"):].lower(), True
    for token in re.findall(r"\?|\[\d*\]", match["tail"]):
        if token == "?":
            arg.optional = True
        else:
            arg.is_list, arg.optional_items, arg.optional = True, arg.optional, False
            arg.size = int(token[1:-1]) if len(token) > 2 else None
    if eq:
        arg.has_default, arg.default_text = True, default.strip()
        arg.default = _read_default(arg, whole)
    return arg


def _read_default(arg: Argument, whole: str):
    text = arg.default_text
    try:
        value = _default(text, arg.is_list and not text.startswith(("[", "None")))
    except ValueError:
        raise errors.SchemaError(errors.text(
            f"cannot read the default '{text}' of '{arg.name}'", f"schema: {whole}",
            f"a default is a number, a text in quotes, a list or {', '.join(_NAMED)}")) from None
    if arg.base == "Device" and isinstance(value, str):
        return Device(value)
    if arg.is_list and arg.size and isinstance(value, list) and len(value) == 1:
        return value * arg.size
    return value


def _same(value, default) -> bool:
    if isinstance(value, Symbolic) or type(value) in (list, tuple) and is_symbolic(value):
        return False
    if isinstance(value, (list, tuple)) and isinstance(default, (list, tuple)):
        return list(value) == list(default)
    return type(value) is type(default) and value == default or value is default


class Qualified:
    """A schema as PyTorch shows it: with the namespace of its operator, under its names."""

    def __init__(self, schema: Schema, namespace: str):
        self._schema, self._prefix = schema, f"{namespace}::" if namespace else ""
        self.name, self.overload_name = f"{self._prefix}{schema.name}", schema.overload
        self.arguments = schema.args

    @property
    def is_mutable(self) -> bool:
        return any(a.is_write for a in self._schema.args)

    def __getattr__(self, name: str):
        return getattr(self._schema, name)

    def __str__(self) -> str:
        return f"{self._prefix}{self._schema}"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Qualified) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


def parse_schema(text: str) -> Qualified:
    """A schema from its text, with or without a namespace, under PyTorch's names."""
    return Qualified(Schema(text), text.partition("(")[0].rpartition("::")[0].strip())


class Schema:
    """A parsed schema."""

    __slots__ = ("args", "defaults", "kw_only_from", "name", "names", "overload", "returns",
                 "tails", "tensor_positions", "text", "varargs")

    def __init__(self, text: str):
        match = _HEAD.match(text)
        if not match:
            raise errors.SchemaError(errors.text(
                f"cannot read the operator schema '{text}'",
                cure="write name.overload(Type argument, ...) -> Type"))
        self.text = text
        self.name, self.overload = match["name"].split("::")[-1], match["overload"] or ""
        self.args: list[Argument] = []
        kwarg_only = False
        for part in _split(match["args"]):
            if part == "*":
                kwarg_only = True
            else:
                self.args.append(_argument(part, kwarg_only, text))
        returns = match["rets"].strip()
        if returns.startswith("(") and returns.endswith(")"):
            returns = returns[1:-1]
        self.returns = [_argument(part, False, text) for part in _split(returns)]
        self.names = [a.name for a in self.args]
        if "" in self.names:
            raise errors.SchemaError(errors.text(
                f"argument {self.names.index('') + 1} has no name", f"schema: {text}",
                "write Type name"))
        if len(set(self.names)) != len(self.names):
            raise errors.SchemaError(errors.text(
                "the schema names an argument twice", f"schema: {text}", "rename one of them"))
        self.kw_only_from = sum(not a.kwarg_only for a in self.args)
        self.tensor_positions = [i for i, a in enumerate(self.args) if a.is_tensor]
        positional = self.args[:self.kw_only_from]
        rest = positional[1:] if positional and positional[0].is_tensor else positional
        # x.view(2, 3): a lone integer list takes all positional numbers
        self.tails = self._tails()
        self.varargs = len(rest) == 1 and rest[0].is_list and rest[0].base == "int"

    @property
    def full_name(self) -> str:
        return f"{self.name}.{self.overload}" if self.overload else self.name

    def __str__(self) -> str:
        parts = [str(a) for a in self.args]
        if self.kw_only_from < len(self.args):
            parts.insert(self.kw_only_from, "*")
        rets = ", ".join(str(r) for r in self.returns)
        if len(self.returns) != 1:
            rets = f"({rets})"
        return f"{self.full_name}({', '.join(parts)}) -> {rets}"

    def _tails(self) -> list[tuple | None]:
        """Per number of given arguments the values of the others, None if one is required."""
        tails: list = [()]
        for spec in reversed(self.args):
            there = spec.has_default or (spec.optional and spec.kwarg_only)
            tail = tails[-1]
            tails.append((spec.default, *tail) if there and tail is not None else None)
        return tails[::-1]

    def as_called(self, flat: tuple) -> tuple[list, dict]:
        """The arguments of a call as a user would write them: what the defaults say is left out."""
        specs, split = self.args, self.kw_only_from
        args = list(flat[:split])
        while (
            args
            and specs[len(args) - 1].has_default
            and _same(args[-1], specs[len(args) - 1].default)
        ):
            args.pop()
        kwargs = {
            s.name: v
            for s, v in zip(specs[split:], flat[split:])
            if not (s.has_default and _same(v, s.default)) and not (v is None and s.optional)
        }
        return args, kwargs

    def bind(self, args: tuple, kwargs: dict, scalars: tuple = ()) -> tuple | None:
        """All arguments in schema order, or None if the call does not match."""
        if self.varargs:
            first = 1 if self.args[0].is_tensor else 0
            rest = args[first:]
            if rest and ({*map(type, rest)} == {int} or all(map(_is_int, rest))):
                args = (*args[:first], rest)
        count = len(args)
        if not kwargs:  # the usual call, without ceremony
            if count > self.kw_only_from or self.tails[count] is None:
                return None
            values = []
            for spec, value in zip(self.args, args):
                if spec.base != "Tensor" or spec.is_list or not isinstance(value, Tensor):
                    value = _convert(spec, value, spec.name in scalars)
                    if value is _NO:
                        return None
                values.append(value)
            return (*values, *self.tails[count])
        kwargs = {k if k in self.names else _NUMPY_NAMES.get(k, k): v for k, v in kwargs.items()}
        if count > self.kw_only_from:
            return None
        for name in kwargs:  # first, because conversions may have to look at values
            if name not in self.names:
                return None
        values, used = [], 0
        for i, spec in enumerate(self.args):
            if i < count:
                value = args[i]
                if spec.name in kwargs:
                    return None
            elif spec.name in kwargs:
                value = kwargs[spec.name]
                used += 1
            elif spec.has_default:
                values.append(spec.default)
                continue
            elif spec.optional and spec.kwarg_only:
                values.append(None)
                continue
            else:
                return None
            if self.varargs and spec.is_list and _is_int(value):
                value = (value,)
            value = _convert(spec, value, spec.name in scalars)
            if value is _NO:
                return None
            values.append(value)
        return tuple(values) if used == len(kwargs) else None


_NO = object()
_NUMPY_NAMES = {"input": "self", "x": "self", "a": "self", "x1": "self", "x2": "other",
                "axis": "dim", "keepdims": "keepdim"}  # other names that calls may use


def _is_int(value) -> bool:
    if isinstance(value, (int, np.integer)):
        return not isinstance(value, (bool, np.bool_))
    if isinstance(value, Symbolic):
        return hasattr(value, "clamped")
    return isinstance(value, Tensor) and value.ndim == 0 and value.dtype.category == 1


def _convert(spec: Argument, value, number_ok: bool):
    """The value as the argument's type, or `_NO`."""
    if value is None:
        if spec.is_list and spec.has_default and spec.default == []:
            return []  # max_pool2d(x, 2, None): no stride given
        if spec.optional or spec.base == "Device":  # no device: where the tensor is
            return None
        return None if spec.is_list and spec.optional_items else _NO
    if spec.is_list:
        return _convert_list(spec, value)
    if spec.symbolic and isinstance(value, Tensor) and _is_int(value):
        value = value.item()
    if isinstance(value, Symbolic):
        return _convert_symbolic(spec, value, number_ok)
    return _convert_one(spec.base, value, number_ok)


def _convert_symbolic(spec: Argument, value, number_ok: bool = False):
    """A size that is not known yet: where the schema wants plain numbers it is specialised."""
    if spec.base == "bool":
        return bool(value)
    if spec.base not in ("int", "Scalar", "float") and not (number_ok and spec.is_tensor):
        return _NO
    if spec.base == "int":
        if not _is_int(value):
            return _NO
        return value if spec.symbolic else int(value)
    return value


def _convert_list(spec: Argument, value):
    base = spec.base
    if spec.optional_items and isinstance(value, Tensor) and value.ndim:
        value = list(value)  # `ops.aten.index(x, indices)`: one index for each dimension
    if isinstance(value, (list, tuple)):
        plain = base == "int" and {*map(type, value)} <= {int}
        items = list(value) if plain else []
        for item in () if plain else value:
            if base == "int" and isinstance(item, Tensor) and _is_int(item):
                item = item.item()
            if isinstance(item, Symbolic):
                item = _convert_symbolic(spec, item)
            else:
                item = None if item is None and spec.optional_items else _convert_one(
                    base, item, False)
            if item is _NO:
                return _NO
            items.append(item)
        if base == "int" and spec.size and len(items) == 1 and spec.size > 1:
            items = items * spec.size
        return items
    if base == "int" and _is_int(value) and spec.size:
        one = _convert_symbolic(spec, value) if isinstance(value, Symbolic) else int(value)
        return [one] * spec.size
    if base == "Tensor" and hasattr(value, "__iter__") and not isinstance(value, Tensor) or (
            isinstance(value, Sequence) and not isinstance(value, (str, bytes))):
        return _convert_list(spec, list(value))
    return _NO


def _convert_one(base: str, value, number_ok: bool):
    if base == "Tensor":
        if isinstance(value, Tensor):
            return value
        if number_ok and isinstance(value, numbers.Number):
            return value.item() if isinstance(value, np.generic) else value
        return _NO
    if base == "int":
        return int(value) if _is_int(value) else _NO
    if base == "Scalar" or base == "float":
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, numbers.Number):
            return _NO if base == "float" and isinstance(value, complex) else value
        if isinstance(value, Tensor) and value.ndim == 0 and not value.requires_grad:
            return value.item()
        return _NO
    if base == "bool":
        return bool(value) if isinstance(value, (bool, np.bool_)) else _NO
    if base == "str":
        return value if isinstance(value, str) else _NO
    if base == "ScalarType":
        try:
            return dt.as_dtype(value)
        except TypeError:
            return _NO
    if base == "Layout" and value is not STRIDED and value != "strided":
        raise errors.NotInThisBuild(errors.text(
            f"layout {value}: tensors are strided only ({errors.user_line(2)})",
            cure="leave the layout away"))
    if base == "Device":
        if isinstance(value, Device):
            return value
        return Device(value) if isinstance(value, (str, int)) else _NO
    return value
