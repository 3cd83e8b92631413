"""Names, literals and brackets: one line of a program's text as values.

Nothing is looked up but names that the line's reader was given and the constants below; `parse.py`
says what lines mean.
"""

from __future__ import annotations

import json
import operator
import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..array import dtype as dt
from ..array.device import Device
from ..array.fake import Fake
from ..array.layout import layout, memory_format
from ..array.size import Symbolic
from ..core.handle import Tensor, make
from ..graph.graph import Graph
from ..graph.readable import _ABBREVIATIONS
from ..pytree import TreeSpec, as_read, register_pytree_node
from ..symbolic.env import COMPARE
from ..symbolic.number import sym_ite, sym_max, sym_min

DEEPEST = 50  # brackets in brackets
LONGEST_SIZE = 200  # terms of an expression for a size
_DTYPES = {short: name for name, short in _ABBREVIATIONS.items()}
_token = re.compile(r"""
    \s*(?: (?P<ref>%[A-Za-z_]\w{0,400}) | (?P<sub>@[A-Za-z_]\w{0,400})
    | (?P<number>-?(?:inf\b|nan\b|\d[\d_]{0,400}(?:\.\d{0,400})?(?:[eE][-+]?\d{1,4})?))
    | (?P<text>"(?:[^"\\\x00-\x1f]|\\.){0,100000}")
    | (?P<word>[A-Za-z_]\w{0,400}(?:\.[A-Za-z_]\w{0,400}){0,3})
    | (?P<mark>//|\*\*|[=!<>]=|[][(){}=:,+*<>-]) )""", re.VERBOSE | re.ASCII).match


class Refused(Exception):
    """What is wrong with a line."""


@dataclass
class Registered:
    """A container of a class that the user has registered, taken apart."""

    type: type
    context: Any
    children: list

    @staticmethod
    def restored(spec: TreeSpec) -> TreeSpec:
        """A structure with the classes in the place of these."""
        children = [Registered.restored(child) for child in spec.children()]
        if spec.type is Registered:
            return TreeSpec(*spec.context, children)
        return spec if spec.is_leaf() else TreeSpec(spec.type, spec.context, children)


register_pytree_node(Registered, lambda r: (r.children, (r.type, r.context)),
                     lambda children, context: Registered(*context, list(children)))


class Reader:
    """The tokens of one line."""

    def __init__(self, line: str):
        self.tokens: list[tuple[str, str]] = []
        self.place, position, text = 0, 0, line.strip()
        while position < len(text):
            found = _token(text, position)
            if found is None:
                raise Refused(f"cannot read {text[position:position + 20]!r}")
            self.tokens.append((found.lastgroup, found[found.lastgroup]))
            position = found.end()
        self.nodes: dict[str, Any] = {}
        self.graph: Graph | None = None  # the graph whose line it is
        self.children: dict[str, Any] = {}  # graphs that it may call
        self.sizes: dict[str, Any] = {}  # sizes that vary
        self.operators: Callable | None = None  # those that it may name
        self.depth = 0

    def peek(self) -> tuple[str, str]:
        """The next token, without taking it."""
        return self.tokens[self.place] if self.place < len(self.tokens) else ("end", "")

    def take(self, kind: str, what: str | None = None) -> str:
        """The next token, which must be of a kind."""
        found, text = self.peek()
        if found != kind or what is not None and text != what:
            raise Refused(f"expected {what or kind}, found {text!r}" if text else
                          f"the line ends where {what or kind} should be")
        self.place += 1
        return text

    def maybe(self, kind: str, what: str) -> bool:
        """Take a token if it is the next one."""
        if self.peek() == (kind, what):
            self.place += 1
            return True
        return False

    def end(self) -> None:
        """Nothing may follow."""
        if self.place < len(self.tokens):
            raise Refused(f"{self.peek()[1]!r} is too much")

    def string(self) -> str:
        """A quoted text."""
        try:
            return json.loads(self.take("text"))
        except ValueError as error:
            raise Refused(f"cannot read the text: {error}") from None

    def reference(self) -> Any:
        """A value by its name."""
        name = self.take("ref")[1:]
        if name not in self.nodes:
            raise Refused(f"%{name} is not defined above")
        return self.nodes[name]

    def value(self) -> Any:
        """A literal, a name, or a nest of these."""
        kind, text = self.peek()
        if kind == "ref":
            return self.reference()
        if kind == "sub":
            return self._subgraph()
        if kind == "number":
            self.place += 1
            return _number(text)
        if kind == "text":
            return self.string()
        if kind == "word":
            return self._word()
        return self._nest()

    def _subgraph(self) -> Any:
        name = self.take("sub")[1:]
        if self.graph is None or name not in self.children:
            raise Refused(f"there is no graph @{name} above")
        return self.graph.get_attr(name)

    def _word(self) -> Any:
        text = self.take("word")
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        space, _, name = text.partition(".")
        if space in _SPACES and name in _SPACES[space]:
            return _SPACES[space][name]
        if text in ("complex", "device"):
            self.take("mark", "(")
            if text == "device":
                made = _device(self.string())
            else:
                real = _real(self.value())
                self.take("mark", ",")
                made = complex(real, _real(self.value()))
            self.take("mark", ")")
            return made
        if text == "registered":
            return self._registered()
        if text == "operator" and self.operators is not None:
            return self.operators(self.take("word"))
        if text == "ordered" and self.peek() == ("mark", "{"):
            return OrderedDict(self._nest())
        raise Refused(f"unknown word {text!r}")

    def _registered(self) -> Registered:
        """The rest of `registered "name" "context" [leaves]`: a class that pytree knows."""
        name, context = self.string(), self.value()
        try:
            known = as_read(name, context)
        except (ValueError, TypeError, LookupError) as error:
            raise Refused(f"{context!r:.40} is no structure of {name!r}: {error}") from None
        if known is None:
            raise Refused(f"nobody has registered the class {name!r}: do so before the file is "
                          "loaded (register_dataclass, serialized_type_name)")
        children = self.value()
        if not isinstance(children, list):
            raise Refused(f"the parts of {name!r} stand in brackets")
        return Registered(*known, children)

    def _nest(self) -> Any:
        opened = self.peek()[1]
        if opened not in _CLOSING:
            raise Refused(f"expected a value, found {opened!r}" if opened else
                          "the line ends where a value should be")
        self.place += 1
        self.depth += 1
        if self.depth > DEEPEST:
            raise Refused("too many brackets in brackets")
        closed, items, single = _CLOSING[opened], [], False
        keys: list = []
        while not self.maybe("mark", closed):
            if items and not single:
                self.take("mark", ",")
                if self.maybe("mark", closed):
                    single = True
                    break
            if opened == "{":
                keys.append(self._key(keys))
            items.append(self.value())
        self.depth -= 1
        if single and not (opened == "(" and len(items) == 1):
            raise Refused("a comma without a value")
        if opened == "(" and len(items) == 1 and not single:
            raise Refused("a tuple of one value is written (value,)")
        return dict(zip(keys, items)) if opened == "{" else list(items) if opened == "[" else (
            tuple(items))

    def _key(self, known: list) -> Any:
        key = self.value()
        if type(key) not in (str, int, float, bool, type(None)) or key in known:
            raise Refused(f"{key!r:.40} is no key, or comes twice")
        self.take("mark", ":")
        return key

    def type(self) -> Any:
        """`f32[3, 4]`, a list of such, or none: an example value."""
        if self.maybe("word", "none"):
            return None
        if self.maybe("word", "size"):
            return self.size()
        if self.maybe("mark", "["):
            out = []
            while not self.maybe("mark", "]"):
                if out:
                    self.take("mark", ",")
                out.append(self.type())
            return out
        name = self.take("word")
        if name in _NUMBERS and self.peek() != ("mark", "["):
            return _NUMBERS[name]
        if name not in _DTYPES:
            raise Refused(f"unknown dtype {name!r}")
        self.take("mark", "[")
        shape: list = []
        while not self.maybe("mark", "]"):
            if shape:
                self.take("mark", ",")
            shape.append(self.size())
        if len(shape) > 64:
            raise Refused("a tensor of too many dims")
        return make(Fake(tuple(shape), dt.by_name(_DTYPES[name]).np))

    def size(self) -> Any:
        """A size: a number, or an expression in sizes that vary."""
        found = self._sum()
        if type(found) is int and not 0 <= found < 1 << 48:
            raise Refused(f"{found} is no size")
        return found

    def _sum(self) -> Any:
        return self._joined(self._product, {"+": operator.add, "-": operator.sub})

    def _product(self) -> Any:
        return self._joined(self._factor, {"*": operator.mul, "//": _divided})

    def _joined(self, part: Callable[[], Any], marks: dict[str, Callable]) -> Any:
        total = part()
        while (found := self.peek())[0] == "mark" and found[1] in marks:
            total = _short(marks[self.take("mark")](total, part()))
        return total

    def _factor(self) -> Any:
        self.depth += 1
        if self.depth > DEEPEST:
            raise Refused("too many brackets in brackets")
        kind, text = self.peek()
        if self.maybe("mark", "-"):
            found = -self._factor()
        elif self.maybe("mark", "("):
            found = self._sum()
            self.take("mark", ")")
        elif kind == "number":
            self.place += 1
            found = _number(text)
        else:
            found = self._named_size()
        if self.maybe("mark", "**"):
            power = _number(self.take("number"))
            if type(power) is not int or not 0 < power < 16:
                raise Refused("a power of a size")
            base = found
            for _ in range(power - 1):
                found = _short(found * base)
        if type(found) is float or type(found) is int and abs(found) > 1 << 62:
            raise Refused("a size is an integer")
        self.depth -= 1
        return found

    def _named_size(self) -> Any:
        name = self.take("word")
        if name in self.sizes:
            return self.sizes[name]
        if name == "Piecewise":
            return self._choice()
        if name not in _FUNCTIONS:
            raise Refused(f"unknown size {name!r}")
        self.take("mark", "(")
        parts = [self._sum()]
        while self.maybe("mark", ","):
            parts.append(self._sum())
        self.take("mark", ")")
        if len(parts) < 2 or len(parts) > 20 or name == "Mod" and len(parts) > 2:
            raise Refused(f"{name} of {len(parts)} sizes")
        found = parts[0]
        for part in parts[1:]:
            found = _FUNCTIONS[name](found, part)
        return found


    def _choice(self) -> Any:
        """The rest of `Piecewise((a, question), (b, True))`."""
        self._marks("((")
        chosen = self._sum()
        self._marks(",")
        asked = self._question()
        self._marks("),(")
        other = self._sum()
        self._marks(",")
        self.take("word", "True")
        self._marks("))")
        return sym_ite(asked, chosen, other)

    def _question(self) -> Any:
        """`Eq(a, b)`, `Ne(a, b)` or `a >= b`."""
        named = {"Eq": "==", "Ne": "!="}.get(self.peek()[1])
        if named is not None:
            self.place += 1
            self._marks("(")
        left = self._sum()
        op = self.take("mark") if named is None else named
        if named is not None:
            self._marks(",")
        right = self._sum()
        if op not in COMPARE:
            raise Refused(f"{op!r} compares no sizes")
        if named is not None:
            self._marks(")")
        return COMPARE[op](left, right)

    def _marks(self, marks: str) -> None:
        for mark in marks:
            self.take("mark", mark)


_NUMBERS = {"int": 0, "float": 0.0, "bool": False}
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_CONSTANTS = {"true": True, "false": False, "none": None, "inf": float("inf"),
              "nan": float("nan")}
_SPACES: dict[str, Any] = {
    "dtype": {d.name: d for d in (*dt.ALL, *dt.STORED)}, "layout": layout.known,
    "memory_format": memory_format.known}


def _short(value: Any) -> Any:
    """An expression, unless it is longer than any that describes a size."""
    if isinstance(value, Symbolic) and len(value.node.raw.terms) > LONGEST_SIZE:
        raise Refused("an expression for a size is too long")
    return value


def _divided(a: Any, b: Any) -> Any:
    if type(b) is int and b <= 0:
        raise Refused("a size divided by nothing")
    return a // b


def _remainder(a: Any, b: Any) -> Any:
    if type(b) is int and b <= 0:
        raise Refused("a size divided by nothing")
    return a % b


_FUNCTIONS = {"Max": sym_max, "Min": sym_min, "Mod": _remainder}


def _number(text: str) -> int | float:
    try:
        return int(text) if re.fullmatch(r"-?\d+", text) else float(text)
    except ValueError:
        raise Refused(f"cannot read the number {text[:20]!r}") from None


def _real(value: Any) -> float:
    if type(value) not in (int, float):
        raise Refused("a part of a complex number is a number")
    return float(value)


def _device(name: str) -> Device:
    try:
        return Device(name)
    except Exception as error:
        raise Refused(f"unknown device {name[:40]!r}") from error


def _same_size(a: Any, b: Any) -> bool:
    """Are two sizes the same number, or the same expression?"""
    if isinstance(a, Symbolic) and isinstance(b, Symbolic):
        return a.node.expr == b.node.expr
    return type(a) is type(b) and a == b


def alike(one: Any, other: Any) -> bool:
    """Have two example values the same dtype and shape?"""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.dtype is other.dtype and len(one.shape) == len(other.shape) and all(
            map(_same_size, one.shape, other.shape))
    if isinstance(one, Symbolic) or isinstance(other, Symbolic):
        return _same_size(one, other)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(alike, one, other))
    return type(one) is type(other) and (one is None or type(one) in (int, float, bool))
