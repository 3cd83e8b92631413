"""Reads the text of a program (`text.py`) without running any of it.

Lines are names, literals and brackets (`reader.py`), nothing else.  Operators are looked up in the
table by name and their arguments compared with the schema; every name must be defined before it is
used, and once.  A file that breaks a rule is refused with its line.
"""

from __future__ import annotations

import re
from operator import getitem
from typing import Any

from .. import errors
from ..array.dtype import DType
from ..autograd.grad_mode import _set_grad_enabled
from ..control import HigherOrder
from ..control import operators as higher_order
from ..core.handle import Tensor
from ..core.overload import OpOverload, overload
from ..graph.graph import Graph
from ..graph.graph_module import GraphModule
from ..graph.node import Node
from ..library.definition import definitions
from ..pytree import tree_flatten
from ..symbolic.env import COMPARE, MOST, Guard, Relation, ShapeEnv, Symbol
from ..symbolic.expr import const, symbol
from ..symbolic.number import SymInt
from . import graph_signature as sig
from .program import CallSpec, placeholder
from .reader import Reader, Refused, Registered, alike
from .text import KINDS, QUESTIONS, SIZES, TITLE, VERSION, may_stand

LONGEST = 1 << 26  # characters of a program
_KINDS = {word: kind for kind, word in KINDS.items()}
_REACHES_OUT = {"from_file"}  # operators that would read what the user did not give


def _integer(reader: Reader) -> int:
    found = reader.value()
    if type(found) is not int or not 0 <= found < 1 << 48:
        raise Refused("a size is an integer")
    return found


def operator_named(name: str) -> OpOverload | HigherOrder:
    """An entry of the table that a file may call, or an operator that takes graphs."""
    space, _, rest = name.partition(".")
    if space == HigherOrder.namespace and rest in higher_order:
        return higher_order[rest]
    base, _, kind = rest.partition(".")
    full = base if kind in ("", "default") else f"{base}.{kind}"
    if space != "aten":
        return _registered(space, base, kind)
    if base in _REACHES_OUT or base.endswith("_"):
        raise Refused(f"{name} is no operator that a file may call")
    try:
        ov = overload(full)
    except (KeyError, AttributeError):
        raise Refused(f"the operator table has no {name}") from None
    if not isinstance(ov, OpOverload) or not may_stand(ov):
        raise Refused(f"{name} is no operator that a file may call")
    return ov


def _registered(space: str, base: str, kind: str) -> OpOverload:
    """An operator of the user's; `functional` is the pure form of one that writes."""
    pure = kind == "functional"
    full = base if pure or kind in ("", "default") else f"{base}.{kind}"
    found = definitions.get(f"{space}::{full}")
    ov = None if found is None else found._pure if pure else found._opoverload
    if ov is None or not may_stand(ov):
        why = "" if found is not None else ": nobody has registered it (do so before loading)"
        raise Refused(f"{space}.{full} is no operator that a file may call{why}")
    return ov


class Body:
    """A graph while its lines are read: the program's own, or one that it calls."""

    def __init__(self, sizes: dict[str, Any] | None = None) -> None:
        self.graph, self.nodes = Graph(), {}
        self.children: dict[str, GraphModule] = {}
        self.sizes = {} if sizes is None else sizes
        self.mode, self.modes = True, []  # gradients: now, and before each switch
        self.gives: list[Any] = []

    def reader(self, line: str) -> Reader:
        """The reader of a line of this graph."""
        made = Reader(line)
        made.nodes, made.graph, made.children = self.nodes, self.graph, self.children
        made.sizes, made.operators = self.sizes, operator_named
        return made

    def define(self, reader: Reader) -> str:
        name = reader.take("ref")[1:]
        if name in self.nodes:
            raise Refused(f"%{name} is defined twice")
        return name

    def node(self, op: str, name: str, target: Any, val: Any, args: tuple = (),
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

    def statement(self, reader: Reader) -> None:
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
        name = self.define(reader)
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
            self.node("call_function", name, getitem, val, (source, index))
            return
        title = reader.take("word")
        if title.startswith("size."):
            self._size_of(title[5:], name, val, reader)
            return
        ov = operator_named(title)
        args, kwargs = self._arguments(reader)
        if isinstance(ov, OpOverload):
            self._check_call(ov, args, kwargs)
        else:
            self._check_form(ov, args, kwargs, val)
        self.node("call_function", name, ov, val, tuple(args), kwargs)

    def _size_of(self, function: str, name: str, val: Any, reader: Reader) -> None:
        """A number that is computed of others."""
        known = SIZES | QUESTIONS
        if function not in known:
            raise Refused(f"size.{function} is no function of sizes")
        args, kwargs = self._arguments(reader)
        given = [a.meta.get("val") if isinstance(a, Node) else a for a in args]
        if kwargs or len(args) != _ARITY.get(function, 2) or not all(
                isinstance(v, (int, float, SymInt)) for v in (*given, val)) or (
                (type(val) is bool) is not (function in QUESTIONS)):
            raise Refused(f"size.{function} does not take these arguments")
        self.node("call_function", name, known[function], val, tuple(args))

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
                if not isinstance(val, (Tensor, SymInt)) and type(val) not in (int, float, bool):
                    raise Refused(f"{value.name} is no tensor")
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

    def _check_form(self, operator: HigherOrder, args: list, kwargs: dict, val: Any) -> None:
        """Tensors, graphs and lists of tensors stand where the operator wants them."""
        def kind(value: Any) -> str:
            if isinstance(value, Node):
                val = value.meta.get("val")
                if value.op == "get_attr":
                    return "graph"
                return "tensor" if isinstance(val, Tensor) else "truth" if type(val) is bool else ""
            several = isinstance(value, (list, tuple)) and all(kind(v) == "tensor" for v in value)
            return "tensors" if several else ""

        if operator.name() == "out_dtype":
            if kwargs or len(args) < 2 or not isinstance(args[0], OpOverload) or not isinstance(
                    args[1], DType) or not isinstance(val, Tensor):
                raise Refused(f"{operator} does not take these arguments")
            self._check_call(args[0], args[2:], {})
            return
        form = [kind(a) for a in args]
        if form[:1] == ["truth"] and operator.name() == "cond":
            form[0] = "tensor"
        if kwargs or form != _FORMS.get(operator.name()) or not isinstance(val, list):
            raise Refused(f"{operator} does not take these arguments")
        given = sum(len(a) for a in args if isinstance(a, (list, tuple)))
        for node in args:
            if isinstance(node, Node) and node.op == "get_attr":
                inputs = self.children[node.target].graph.find_nodes(op="placeholder")
                if len(inputs) != given:
                    raise Refused(f"@{node.target} takes {len(inputs)} tensors, {given} are given")

    def inner(self, reader: Reader) -> None:
        """A line of a graph that another one calls: inputs, statements, results."""
        if self.gives:
            raise Refused("a line behind the results of a graph")
        if reader.maybe("word", "takes"):
            name = self.define(reader)
            reader.take("mark", ":")
            self.node("placeholder", name, name, reader.type())
        elif reader.maybe("word", "gives"):
            value = reader.value()
            if not isinstance(value, (tuple, list, Node)):
                raise Refused("a graph gives a tensor, or several")
            self.gives.append(value)
        else:
            self.statement(reader)

    def module(self, result: Any) -> GraphModule:
        """The graph as a module."""
        self.graph.output(result)
        return GraphModule(self.children, self.graph, "GraphModule")


class Parsed:
    """A program that was read, without its weights."""

    def __init__(self, text: str):
        self.sizes: dict[str, Any] = {}
        self.env: ShapeEnv | None = None
        self.body = Body(self.sizes)
        self.nodes = self.body.nodes
        self.inner: dict[str, Body] = {}  # graphs that others call, by their paths
        self.signature = sig.ExportGraphSignature()
        self.tensors: list[tuple[sig.InputSpec, Tensor, bool]] = []  # held: spec, facts, frozen
        self.targets: dict[str, str] = {}  # names of these -> the one in the signature
        self.leaves: list[Any] = []  # the nodes of arguments, in order
        self.names: list[str] = []
        self.positional: list[Any] = []
        self.keywords: dict[str, Any] = {}
        self.results: list[Any] = []
        self.written: list[tuple[Node, Node]] = []
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
        read, last = None, -1
        for self.line, line in enumerate(lines[1:], 2):
            if not line.strip():
                continue
            if line[0] == " ":
                if read is None:
                    raise Refused("a line before the first section")
                body, step = read
                reader = body.reader(line)
                step(reader)
                reader.end()
            elif line.startswith("graph ") and last < _SECTIONS.index("graph"):
                inner = self._inner(line[6:])
                read = inner, inner.inner
            elif line in _SECTIONS and _SECTIONS.index(line) > last:
                last = _SECTIONS.index(line)
                if line == "graph":
                    self._attach("", self.body)
                steps = {"graph": self.body.statement}
                read = self.body, steps.get(line) or getattr(self, f"_in_{line}")
            else:
                raise Refused(f"unexpected section {line[:20]!r}")
        if not self.body.gives:
            raise Refused("the text ends before it says what the program gives")
        self._finish()

    def _inner(self, path: str) -> Body:
        """A graph that another one calls; those that it calls itself stand above."""
        names = path.split(".")  # these become attributes of modules
        if len(names) > 20 or path in self.inner or not all(
                re.fullmatch(r"[a-z]\w{0,60}_graph_\d{1,6}", name, re.ASCII) for name in names):
            raise Refused(f"{path[:40]!r} is no name of a graph, or comes twice")
        body = self.inner[path] = Body(self.sizes)
        self._attach(f"{path}.", body)
        return body

    def _attach(self, prefix: str, body: Body) -> None:
        """Give a graph those below its path."""
        for path in list(self.inner):
            name = path.removeprefix(prefix)
            if path.startswith(prefix) and name and "." not in name:
                below = self.inner.pop(path)
                if not below.gives:
                    raise Refused(f"the graph {path} gives nothing")
                body.children[name] = below.module(below.gives[0])

    # --- sections ---------------------------------------------------------------------------------

    def _in_sizes(self, reader: Reader) -> None:
        if self.env is None:
            self.env = ShapeEnv(duck_shape=False)
        if reader.maybe("word", "require"):
            left = reader._sum()
            op = reader.take("mark")
            right = reader._sum()
            if op not in COMPARE:
                raise Refused(f"{op!r} compares nothing")
            sides = [v.node.raw if isinstance(v, SymInt) else const(v) for v in (left, right)]
            self.env.guards.append(Guard(Relation(op, *sides), "the program's text", "as it says"))
            return
        name = reader.take("word")
        if not re.fullmatch(r"[su]\d{1,6}", name) or name in self.sizes:
            raise Refused(f"{name!r} is no name of a size, or comes twice")
        reader.take("mark", "=")
        hint = None if name[0] == "u" and reader.maybe("word", "data") else _integer(reader)
        reader.take("word", "from")
        low = _integer(reader)
        high = _integer(reader) if reader.maybe("word", "to") else MOST
        if low > high or hint is not None and not low <= hint <= high:
            raise Refused(f"{name} was {hint}, which is not from {low} to {high}")
        self.env.symbols[name] = Symbol(name, hint, (low, high), where="the program's text")
        self.sizes[name] = SymInt.of(self.env, symbol(name), hint)

    def _in_inputs(self, reader: Reader) -> None:
        name = self.body.define(reader)
        val = reader.type() if reader.maybe("mark", ":") else None
        reader.take("mark", "=")
        words = [reader.take("word")]
        while words[-1] in ("frozen", "temporary"):
            words.append(reader.take("word"))
        *extra, word = words
        node = self.body.node("placeholder", name, name, val)
        if word == "value" and val is None and not extra:
            constant = reader.value()
            if type(constant) not in (int, float, bool, str, type(None)):
                raise Refused("a value is a number, a text or none")
            arg: sig.Argument = sig.ConstantArgument(name, constant)
            spec = sig.InputSpec(sig.InputKind.USER_INPUT, arg, None)
            self.leaves.append(node)
        elif not isinstance(val, Tensor):
            raise Refused("an input needs a type")
        elif word == "argument" and not extra:
            spec = sig.InputSpec(sig.InputKind.USER_INPUT, sig.TensorArgument(name), None)
            self.leaves.append(node)
        elif word in _KINDS and extra in ([], _EXTRAS.get(word)):
            kind = _KINDS[word]
            persistent = None if kind is not sig.InputKind.BUFFER else not extra
            spec = sig.InputSpec(kind, sig.TensorArgument(name), _path(reader.string()), persistent)
            self._call(spec.target, spec.target)
            while reader.maybe("word", "also"):
                self._call(_path(reader.string()), spec.target)
            if self.leaves:
                raise Refused("parameters, buffers and constants come before arguments")
            self.tensors.append((spec, val, bool(extra)))
        else:
            raise Refused(f"unknown kind of input {' '.join(words)!r}")
        self.signature.input_specs.append(spec)

    def _call(self, name: str, target: str) -> None:
        """A tensor gets a name."""
        if name in self.targets:
            raise Refused(f"{name!r} is an input twice")
        self.targets[name] = target

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
        if self.body.gives:
            raise Refused("the program gives one nest of values")
        self.body.gives.append(reader.value())

    # --- the whole --------------------------------------------------------------------------------

    def _finish(self) -> None:
        taken, self.in_spec = tree_flatten((tuple(self.positional), self.keywords))
        self.in_spec = Registered.restored(self.in_spec)
        if taken != self.leaves:
            raise Refused("what the program takes are not its arguments, in their order")
        results, spec = tree_flatten(self.body.gives[0])
        self.out_spec = Registered.restored(spec)
        for value in results:
            if isinstance(value, Node) and not isinstance(
                    value.meta.get("val"), (Tensor, SymInt, int, float)):
                raise Refused(f"%{value.name} is given, and is no tensor")
        specs = {s.arg.name: s for s in self.signature.input_specs}
        for target, value in self.written:
            spec = specs[target.name]
            kind = {sig.InputKind.PARAMETER: sig.OutputKind.PARAMETER_MUTATION,
                    sig.InputKind.BUFFER: sig.OutputKind.BUFFER_MUTATION,
                    sig.InputKind.USER_INPUT: sig.OutputKind.USER_INPUT_MUTATION}.get(spec.kind)
            if kind is None:
                raise Refused(f"%{target.name} is a constant, and is written")
            self._result(kind, value, target.name if spec.target is None else spec.target)
        for value in results:
            self._result(sig.OutputKind.USER_OUTPUT, value, None)
        if self.inner:
            raise Refused(f"nobody calls the graph {next(iter(self.inner))}")
        self.module = self.body.module((*[v for _, v in self.written], *results))

    def _result(self, kind: sig.OutputKind, value: Any, target: str | None) -> None:
        arg: sig.Argument = sig.ConstantArgument("", value)
        if isinstance(value, Node):
            number = not isinstance(value.meta.get("val"), Tensor)
            arg = sig.SymIntArgument(value.name) if number else sig.TensorArgument(value.name)
        self.signature.output_specs.append(sig.OutputSpec(kind, arg, target))

    @property
    def call_spec(self) -> CallSpec:
        """Structures of arguments and results."""
        return CallSpec(self.in_spec, self.out_spec)


_ARITY = {"neg": 1, "not": 1, "ite": 3}  # of functions of sizes, where they do not take two
_FORMS = {  # what operators that take graphs are called with
    "cond": ["tensor", "graph", "graph", "tensors"],
    "map_impl": ["graph", "tensors", "tensors"],
    "scan": ["graph", "tensors", "tensors", "tensors"],
    "while_loop": ["graph", "graph", "tensors", "tensors"],
}
_SECTIONS = ["sizes", "inputs", "graph", "writes", "takes", "gives"]
_EXTRAS = {"parameter": ["frozen"], "buffer": ["temporary"]}


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
