"""Reads the text of a program (`text.py`) without running any of it.

A reader of one line at a time: names, literals, brackets, nothing else.  Operators are looked up in
the table by name and their arguments compared with the schema; every name must be defined before it
is used, and once.  A file that breaks a rule is refused with its line.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from operator import getitem
from typing import Any

from .. import errors
from ..autograd.grad_mode import _set_grad_enabled
from ..core import dtype as dt
from ..core.device import Device
from ..core.fake import Fake
from ..core.handle import Tensor, make
from ..core.layout import layout, memory_format
from ..core.op import OpOverload, overload
from ..core.pytree import tree_flatten
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..fx.readable import _ABBREVIATIONS
from ..fx.traits import is_pure
from .graph_signature import (
    Argument,
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from .program import CallSpec, placeholder
from .text import KINDS, TITLE, VERSION

LONGEST = 1 << 26  # characters of a program
DEEPEST = 50  # brackets in brackets
_DTYPES = {short: name for name, short in _ABBREVIATIONS.items()}
_KINDS = {word: kind for kind, word in KINDS.items()}
_REACHES_OUT = {"from_file"}  # operators that would read what the user did not give
_token = re.compile(r"""
    \s*(?: (?P<ref>%[A-Za-z_]\w{0,400})
    | (?P<number>-?(?:inf\b|nan\b|\d[\d_]{0,400}(?:\.\d{0,400})?(?:[eE][-+]?\d{1,4})?))
    | (?P<text>"(?:[^"\\\x00-\x1f]|\\.){0,100000}")
    | (?P<word>[A-Za-z_]\w{0,400}(?:\.[A-Za-z_]\w{0,400}){0,3})
    | (?P<mark>[][(){}=:,]) )""", re.VERBOSE | re.ASCII).match


class Refused(Exception):
    """What is wrong with a line."""


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
        if kind == "number":
            self.place += 1
            return _number(text)
        if kind == "text":
            return self.string()
        if kind == "word":
            return self._word()
        return self._nest()

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
        if text == "ordered" and self.peek() == ("mark", "{"):
            return OrderedDict(self._nest())
        raise Refused(f"unknown word {text!r}")

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
        shape = self.value()
        if type(shape) is not list or any(type(n) is not int or not 0 <= n < 1 << 48
                                          for n in shape) or len(shape) > 64:
            raise Refused("a shape is a list of sizes")
        return make(Fake(tuple(shape), dt.by_name(_DTYPES[name]).np))


_NUMBERS = {"int": 0, "float": 0.0, "bool": False}
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_CONSTANTS = {"true": True, "false": False, "none": None, "inf": float("inf"),
              "nan": float("nan")}
_SPACES: dict[str, Any] = {
    "dtype": {d.name: d for d in (*dt.ALL, *dt.STORED)}, "layout": layout.known,
    "memory_format": memory_format.known}


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


def operator_named(name: str) -> OpOverload:
    """An entry of the table that a file may call."""
    space, _, rest = name.partition(".")
    base, _, kind = rest.partition(".")
    full = base if kind in ("", "default") else f"{base}.{kind}"
    if space != "aten" or base in _REACHES_OUT or base.endswith("_"):
        raise Refused(f"{name} is no operator that a file may call")
    try:
        ov = overload(full)
    except (KeyError, AttributeError):
        raise Refused(f"the operator table has no {name}") from None
    if not isinstance(ov, OpOverload) or ov.custom or not is_pure(ov):
        raise Refused(f"{name} is no operator that a file may call")
    return ov


class Parsed:
    """A program that was read, without its weights."""

    def __init__(self, text: str):
        self.graph, self.nodes = Graph(), {}
        self.signature = ExportGraphSignature()
        self.tensors: list[tuple[InputSpec, Tensor, bool]] = []  # held: spec, facts, frozen
        self.leaves: list[Any] = []  # the nodes of arguments, in order
        self.names: list[str] = []
        self.positional: list[Any] = []
        self.keywords: dict[str, Any] = {}
        self.results: list[Any] = []
        self.written: list[tuple[Node, Node]] = []
        self.gives: list[Any] = []
        self.mode, self.modes = True, []  # gradients: now, and before each switch
        self.line = 0
        try:
            self._read(text)
        except Refused as error:
            raise _refused(f"line {self.line} of the program: {error}") from None
        except RecursionError:
            raise _refused(f"line {self.line} of the program is too deep") from None

    def _read(self, text: str) -> None:
        lines = text.split("\n")
        title, _, version = lines[0].rpartition(" ")
        self.line = 1
        if title != TITLE or not re.fullmatch(r"\d{1,6}", version):
            raise Refused("this is not the text of a program")
        if int(version) != VERSION:
            raise Refused(f"the program has version {version}, this library reads {VERSION}; "
                          "export it again, or load it with the library that wrote it")
        section, seen = None, []
        for self.line, line in enumerate(lines[1:], 2):
            if not line.strip():
                continue
            if line[0] != " ":
                if line not in _SECTIONS or line in seen or seen and (
                        _SECTIONS.index(line) < _SECTIONS.index(seen[-1])):
                    raise Refused(f"unexpected section {line[:20]!r}")
                section = line
                seen.append(line)
                continue
            if section is None:
                raise Refused("a line before the first section")
            reader = Reader(line)
            reader.nodes = self.nodes
            getattr(self, f"_in_{section}")(reader)
            reader.end()
        if not self.gives:
            raise Refused("the text ends before it says what the program gives")
        self._finish()

    # --- sections ---------------------------------------------------------------------------------

    def _define(self, reader: Reader) -> str:
        name = reader.take("ref")[1:]
        if name in self.nodes:
            raise Refused(f"%{name} is defined twice")
        return name

    def _in_inputs(self, reader: Reader) -> None:
        name = self._define(reader)
        val = reader.type() if reader.maybe("mark", ":") else None
        reader.take("mark", "=")
        words = [reader.take("word")]
        while words[-1] in ("frozen", "temporary"):
            words.append(reader.take("word"))
        *extra, word = words
        node = self._node("placeholder", name, name, val)
        if word == "value" and val is None and not extra:
            constant = reader.value()
            if type(constant) not in (int, float, bool, str, type(None)):
                raise Refused("a value is a number, a text or none")
            arg: Argument = ConstantArgument(name, constant)
            spec = InputSpec(InputKind.USER_INPUT, arg, None)
            self.leaves.append(node)
        elif not isinstance(val, Tensor):
            raise Refused("an input needs a type")
        elif word == "argument" and not extra:
            spec = InputSpec(InputKind.USER_INPUT, TensorArgument(name), None)
            self.leaves.append(node)
        elif word in _KINDS and extra in ([], _EXTRAS.get(word)):
            kind = _KINDS[word]
            persistent = None if kind is not InputKind.BUFFER else not extra
            spec = InputSpec(kind, TensorArgument(name), _path(reader.string()), persistent)
            if any(s.target == spec.target for s, _, _ in self.tensors):
                raise Refused(f"{spec.target!r} is an input twice")
            if self.leaves:
                raise Refused("parameters, buffers and constants come before arguments")
            self.tensors.append((spec, val, bool(extra)))
        else:
            raise Refused(f"unknown kind of input {' '.join(words)!r}")
        self.signature.input_specs.append(spec)

    def _in_graph(self, reader: Reader) -> None:
        if reader.maybe("word", "grad"):
            mode = reader.take("word")
            if mode not in ("on", "off", "back"):
                raise Refused("grad is on, off or back")
            switch = self.graph.call_function(_set_grad_enabled, (mode != "off",))
            if mode == "back":
                if not self.modes:
                    raise Refused("grad is back where it was, and was not switched")
                switch.args = (self.modes.pop(),)
                switch.meta["leaves"] = True
            else:
                self.modes.append(self.mode)
            self.mode = switch.args[0]
            return
        name = self._define(reader)
        reader.take("mark", ":")
        val = reader.type()
        reader.take("mark", "=")
        if reader.peek()[0] == "ref":
            source = reader.reference()
            reader.take("mark", "[")
            index = reader.value()
            reader.take("mark", "]")
            several = source.meta.get("val")
            if type(index) is not int or not isinstance(several, list) or not (
                    0 <= index < len(several)) or not alike(several[index], val):
                raise Refused(f"%{source.name}[{index!r:.20}] is not such a value")
            self._node("call_function", name, getitem, val, (source, index))
            return
        ov = operator_named(reader.take("word"))
        args, kwargs = self._arguments(reader)
        self._check_call(ov, args, kwargs)
        self._node("call_function", name, ov, val, tuple(args), kwargs)

    def _arguments(self, reader: Reader) -> tuple[list, dict[str, Any]]:
        args: list = []
        kwargs: dict[str, Any] = {}
        reader.take("mark", "(")
        while not reader.maybe("mark", ")"):
            if args or kwargs:
                reader.take("mark", ",")
            kind, text = reader.peek()
            follows = reader.tokens[reader.place + 1:reader.place + 2]
            if kind == "word" and follows == [("mark", "=")]:
                reader.place += 2
                if text in kwargs:
                    raise Refused(f"{text} is given twice")
                kwargs[text] = reader.value()
            elif kwargs:
                raise Refused("an argument without a name behind one with a name")
            else:
                args.append(reader.value())
        return args, kwargs

    def _check_call(self, ov: OpOverload, args: list, kwargs: dict[str, Any]) -> None:
        def example(value: Any) -> Any:
            if isinstance(value, Node):
                val = value.meta.get("val")
                if not isinstance(val, Tensor):
                    raise Refused(f"%{value.name} is no tensor")
                return val
            return [example(v) for v in value] if isinstance(value, (list, tuple)) else value

        try:
            flat = ov.bind(tuple([example(a) for a in args]),
                           {k: example(v) for k, v in kwargs.items()})
        except Refused:
            raise
        except Exception as error:
            raise Refused(f"{ov} does not take these arguments: {error}") from None
        if flat is None:
            raise Refused(f"{ov} does not take these arguments: {ov.schema}")

    def _in_writes(self, reader: Reader) -> None:
        target = reader.reference()
        reader.take("mark", "=")
        value = reader.reference()
        if target.op != "placeholder" or not isinstance(target.meta.get("val"), Tensor):
            raise Refused(f"%{target.name} is no input that can be written")
        if any(target is known for known, _ in self.written) or not alike(
                target.meta["val"], value.meta.get("val")):
            raise Refused(f"%{target.name} cannot become %{value.name}")
        self.written.append((target, value))

    def _in_takes(self, reader: Reader) -> None:
        keyword = reader.maybe("word", "keyword")
        name = reader.take("word")
        if not name.isidentifier() or name in self.names:
            raise Refused(f"{name!r} is no name of an argument, or comes twice")
        if self.keywords and not keyword:
            raise Refused("a positional argument behind one by keyword")
        reader.take("mark", "=")
        self.names.append(name)
        value = reader.value()
        if keyword:
            self.keywords[name] = value
        else:
            self.positional.append(value)

    def _in_gives(self, reader: Reader) -> None:
        if self.gives:
            raise Refused("the program gives one nest of values")
        self.gives.append(reader.value())

    def _node(self, op: str, name: str, target: Any, val: Any, args: tuple = (),
              kwargs: dict[str, Any] | None = None) -> Node:
        if op == "placeholder":
            node = placeholder(self.graph, name)
        else:
            node = self.graph.create_node(op, target, args, kwargs or {}, name)
        if node.name != name or name == "self":
            raise Refused(f"%{name} cannot be a name")
        if val is not None:
            node.meta["val"] = val
        self.nodes[name] = node
        return node

    # --- the whole --------------------------------------------------------------------------------

    def _finish(self) -> None:
        taken, self.in_spec = tree_flatten((tuple(self.positional), self.keywords))
        if taken != self.leaves:
            raise Refused("what the program takes are not its arguments, in their order")
        results, self.out_spec = tree_flatten(self.gives[0])
        for value in results:
            if isinstance(value, Node) and not isinstance(value.meta.get("val"), Tensor):
                raise Refused(f"%{value.name} is given, and is no tensor")
        specs = {s.arg.name: s for s in self.signature.input_specs}
        for target, value in self.written:
            spec = specs[target.name]
            kind = {InputKind.PARAMETER: OutputKind.PARAMETER_MUTATION,
                    InputKind.BUFFER: OutputKind.BUFFER_MUTATION,
                    InputKind.USER_INPUT: OutputKind.USER_INPUT_MUTATION}.get(spec.kind)
            if kind is None:
                raise Refused(f"%{target.name} is a constant, and is written")
            self._result(kind, value, target.name if spec.target is None else spec.target)
        for value in results:
            self._result(OutputKind.USER_OUTPUT, value, None)
        self.graph.output((*[v for _, v in self.written], *results))
        self.module = GraphModule({}, self.graph, "GraphModule")

    def _result(self, kind: OutputKind, value: Any, target: str | None) -> None:
        arg: Argument = TensorArgument(value.name) if isinstance(value, Node) else (
            ConstantArgument("", value))
        self.signature.output_specs.append(OutputSpec(kind, arg, target))

    @property
    def call_spec(self) -> CallSpec:
        """Structures of arguments and results."""
        return CallSpec(self.in_spec, self.out_spec)


_SECTIONS = ["inputs", "graph", "writes", "takes", "gives"]
_EXTRAS = {"parameter": ["frozen"], "buffer": ["temporary"]}


def alike(one: Any, other: Any) -> bool:
    """Have two example values the same dtype and shape?"""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.dtype is other.dtype and tuple(one.shape) == tuple(other.shape)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(alike, one, other))
    return type(one) is type(other) and (one is None or type(one) in (int, float, bool))


def _path(text: str) -> str:
    """A name of a tensor in a module."""
    parts = text.split(".")
    if len(text) > 1000 or not all(re.fullmatch(r"\w+", p) and not p.startswith("__")
                                   for p in parts):
        raise Refused(f"{text[:40]!r} is no name of a parameter or buffer")
    return text


def _refused(what: str) -> Exception:
    return errors.FileFormatError(errors.text(
        f"{what} ({errors.user_line(2)})", cure="get the file again from where it came"))


def parse(text: str) -> Parsed:
    """Read a program."""
    if len(text) > LONGEST:
        raise _refused("the text of the program is too long")
    return Parsed(text)
