"""Operator schemas: parse, print, and match calls against them.

The grammar is that of the classic operator registry:

    name.overload(Tensor(a!) self, int[2]? dim=None, *, ScalarType? dtype=None)
        -> (Tensor values, Tensor indices)

`bind` turns a Python call into the flat tuple of all arguments in schema order, or None if the call
does not match; everything behind the surface speaks in such flat tuples.  Read next: `op.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .. import errors
from ..array import dtype as dt
from ..array.device import Device
from ..array.size import Symbolic, is_symbolic
from ..table.arguments import NO, convert, is_int
from .handle import Tensor

# Texts, which `re` compiles when they are used first: a twentieth of the time of `import pullback`.
_TYPE = (r"(?P<base>[A-Za-z_]\w*)(\s*\((?P<alias>[^)]*)\))?(?P<tail>(\?|\[\d*\])*)"
         r"(\s+(?P<name>[A-Za-z_]\w*))?$")
_HEAD = (r"(?s)\s*(?P<name>[\w:]+)(\.(?P<overload>\w+))?\s*"
         r"\((?P<args>.*)\)\s*->\s*(?P<rets>.*)$")
_NAMED = {"None": None, "True": True, "False": False, "Mean": 1, "Sum": 2, "long": dt.int64,
          "contiguous_format": "contiguous_format", "strided": "strided"}
_DTYPES = {d.name: d for d in dt.ALL}
_KNOWN_TYPES = {"Tensor", "Scalar", "int", "SymInt", "SymBool", "float", "bool", "str",
                "ScalarType", "Layout", "Device", "DeviceIndex", "MemoryFormat",
                "Generator", "Dimname", "Storage", "Stream", "QScheme", "ConstQuantizerPtr"}


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
    match = re.match(_TYPE, declaration.strip())
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


_NUMPY_NAMES = {"input": "self", "x": "self", "a": "self", "x1": "self", "x2": "other",
                "axis": "dim", "keepdims": "keepdim"}  # other names that calls may use


class Schema:
    """A parsed schema."""

    __slots__ = ("args", "defaults", "kw_only_from", "name", "names", "overload", "returns",
                 "tails", "tensor_positions", "text", "varargs")

    def __init__(self, text: str):
        match = re.match(_HEAD, text)
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
            if rest and ({*map(type, rest)} == {int} or all(map(is_int, rest))):
                args = (*args[:first], rest)
        count = len(args)
        if not kwargs:  # the usual call, without ceremony
            if count > self.kw_only_from or self.tails[count] is None:
                return None
            values = []
            for spec, value in zip(self.args, args):
                if spec.base != "Tensor" or spec.is_list or not isinstance(value, Tensor):
                    value = convert(spec, value, spec.name in scalars)
                    if value is NO:
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
            if self.varargs and spec.is_list and is_int(value):
                value = (value,)
            value = convert(spec, value, spec.name in scalars)
            if value is NO:
                return None
            values.append(value)
        return tuple(values) if used == len(kwargs) else None
