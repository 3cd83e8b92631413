"""A graph as text: as Python source, as the list `str(graph)` shows, as a table.

The Python source comes in two forms from one walk. `Display` writes what people read and what
PyTorch prints (`torch.ops.aten.mul.Tensor`, `torch.float32`), with globals that make it run.
`Executable` writes what `GraphModule` runs: every callee and every constant that is not a plain
literal is bound to a global name, so a call costs one lookup. Typed and commented source is in
`readable.py`; read that next.
"""

import builtins
import enum
import math
import re
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from .. import pytree
from ..facade import for_torch
from ..parts import trees as parts
from ..table.packets import Packet
from ._pytree import tree_flatten_spec
from .naming import IN_PLACE_OPERATORS, OPERATORS, is_operator_overload
from .node import Node
from .readable import Annotations

if TYPE_CHECKING:
    from .graph import Graph


@dataclass(frozen=True)
class Trees:
    """How the parameters and the result of a graph are trees of its inputs and outputs."""

    names: tuple[str, ...]  # parameters of `forward`; the placeholders are the leaves of these
    in_spec: Any
    out_spec: Any
    composed: bool = False  # are tensors that are made of others taken apart, and put together?

    def leaves(self, args: Any) -> list:
        """The values of the placeholders."""
        return tree_flatten_spec(parts.opened(args) if self.composed else args, self.in_spec)

    def result(self, leaves: Any) -> Any:
        """What `forward` returns."""
        out = pytree.tree_unflatten(leaves, self.out_spec)
        return parts.closed(out) if self.composed else out


@dataclass
class PythonCode:
    """Source text of a function `forward`, and the globals it runs with."""

    src: str
    globals: dict[str, Any] = field(repr=False)
    wrapped: tuple[str, ...] = ()  # the globals that `fx.wrap` keeps as calls


def qualified_name(target: Any) -> str:
    """The dotted name people know a callable by: `operator.add`, `torch.ops.aten.mul.Tensor`."""
    if is_operator_overload(target):
        return f"torch.ops.{target}"
    module = getattr(target, "__module__", None) or "builtins"
    name = getattr(target, "__name__", None) or type(target).__name__
    root, _, rest = module.partition(".")
    if root == __name__.partition(".")[0]:
        parts = module.split(".")
        for end in range(1, len(parts) + 1):  # public above the file that defines it, if it is
            holder = sys.modules.get(".".join(parts[:end]))
            if holder is None:
                continue
            if vars(holder).get(name) is target or end == 1 and getattr(holder, name, 0) is target:
                shown = ".".join(("torch", *parts[1:end], name))
                return for_torch("library_calls").printed_name(shown)
        if isinstance(target, Packet):  # an operator that is no function of the package
            return f"torch.ops.{target}"
        return ".".join(filter(None, ("torch", rest, name)))
    return f"{'operator' if module == '_operator' else module}.{name}"


def type_name(annotation: Any) -> str:
    """How a type annotation is written."""
    origin = get_origin(annotation)
    if isinstance(origin, type) and type(annotation).__module__ != "typing":
        return f"{type_name(origin)}[{','.join(map(type_name, get_args(annotation)))}]"
    if isinstance(annotation, type):
        return qualified_name(annotation).removeprefix("builtins.")
    return str(annotation)


def written_type(annotation: Any) -> str:
    """How it is written in a graph's source, where types of `typing` are plain names."""
    parts = [written_type(part) for part in get_args(annotation)]
    if isinstance(annotation, types.UnionType):
        return "|".join(parts)
    if type(annotation).__module__ != "typing" or not parts:
        return type_name(annotation)
    named = "Union" if get_origin(annotation) is Union else annotation.__name__
    return f"typing_{named}[{','.join(parts)}]"


# The two forms ------------------------------------------------------------------------------------

# Keyword arguments whose string values are constants of the library: `torch.contiguous_format`.
_NAMED_CONSTANTS = ("memory_format", "layout")
_LITERALS = frozenset((int, str, bool, bytes, type(None), type(Ellipsis)))


_WRAP = "torch.fx._symbolic_trace.wrap"  # as PyTorch spells it


class Display:
    """Names and constants spelled for people, to PyTorch's letter."""

    typed = True  # are annotations written?

    def __init__(self, taken: set[str], notes: Annotations) -> None:
        self._taken = taken  # node names: a global of the same name would be hidden
        self.notes = notes
        self.globals: dict[str, Any] = {"inf": math.inf, "nan": math.nan}
        self.wrapped: dict[str, None] = {}

    def callee(self, target: Callable) -> str:
        name = qualified_name(target)
        if name.startswith("torch."):
            self._bind_dotted(name, target)
            return name
        if getattr(builtins, name.removeprefix("builtins."), None) is target:
            return name.removeprefix("builtins.")
        return self._bind(name.replace("operator.", "_operator."), target)

    def operator(self, target: Callable) -> str | None:
        """Format string of a function of the `operator` module, if it has a symbol."""
        if getattr(target, "__module__", None) != "_operator":
            return None
        return OPERATORS.get(target.__name__) or IN_PLACE_OPERATORS.get(target.__name__)

    def constant(self, value: Any) -> str:
        if type(value) in _LITERALS or isinstance(value, (float, complex)):
            return repr(value)
        if isinstance(value, enum.Enum):
            cls = type(value)
            return f"{self._bind(cls.__name__, cls)}.{value.name}"
        text = str(value)
        if text.startswith("torch."):  # dtypes, layouts, memory formats
            self._bind_dotted(text, value)
            return text
        if is_operator_overload(value):
            return self.callee(value)
        text = repr(value)
        if text.startswith("device("):
            self.globals["device"] = type(value)
        return text

    def named_constant(self, value: str) -> str:
        self._bind_dotted(f"torch.{value}", value)
        return f"torch.{value}"

    def constructor(self, cls: type) -> str:
        return self._bind(qualified_name(cls), cls)

    def flatten(self, trees: Trees) -> str:
        """The function that takes trees of arguments apart."""
        function = (lambda args, _: trees.leaves(args)) if trees.composed else tree_flatten_spec
        self.globals["fx_pytree"] = SimpleNamespace(tree_flatten_spec=function)
        return "fx_pytree.tree_flatten_spec"

    def unflatten(self, trees: Trees) -> str:
        """The function that makes a tree of results."""
        function = (lambda out, _: trees.result(out)) if trees.composed else pytree.tree_unflatten
        self.globals["pytree"] = SimpleNamespace(tree_unflatten=function)
        return "pytree.tree_unflatten"

    def heading(self) -> str:
        """The lines above `def` that say which functions are to stay calls."""
        if self.wrapped:
            from .tracer import wrap  # the tracer needs this file

            self._bind_dotted(_WRAP, wrap)
        return "\n".join([f'{_WRAP}("{name}")' for name in self.wrapped])

    def _bind(self, name: str, value: Any) -> str:
        name = base = re.sub(r"\W", "_", name)
        number = 0
        while name in self._taken or self.globals.get(name, value) is not value:
            number += 1
            name = f"{base}_{number}"
        self.globals[name] = value
        return name

    def _bind_dotted(self, name: str, value: Any) -> None:
        """Make `torch.a.b` mean `value` without importing anything called torch."""
        *path, last = name.split(".")
        scope = self.globals.setdefault(path[0], SimpleNamespace())
        for part in path[1:]:
            if part not in scope.__dict__:
                setattr(scope, part, SimpleNamespace())
            scope = scope.__dict__[part]
        setattr(scope, last, value)


class Executable(Display):
    """Names and constants spelled for speed: one global per callee, none by attribute lookup."""

    typed = False

    def callee(self, target: Callable) -> str:
        return self._bind(qualified_name(target).removeprefix("torch.ops."), target)

    def heading(self) -> str:
        return ""

    def constant(self, value: Any) -> str:
        kind = type(value)
        if kind in _LITERALS or (kind is float and math.isfinite(value)):
            text = repr(value)
            return f"({text})" if text[0] == "-" else text  # (-1) ** x
        return self._bind(f"_constant_{kind.__name__}", value)

    named_constant = constant


# Statements ---------------------------------------------------------------------------------------


def format_argument(value: Any, display: Display) -> str:
    """An argument as a Python expression."""
    if type(value) is Node:
        return value.name
    if isinstance(value, tuple):
        items = [format_argument(item, display) for item in value]
        if hasattr(value, "_fields"):
            return f"{display.constructor(type(value))}({', '.join(items)})"
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    if isinstance(value, list):
        return f"[{', '.join([format_argument(item, display) for item in value])}]"
    if isinstance(value, dict):
        pairs = [f"{key!r}: {format_argument(item, display)}" for key, item in value.items()]
        return f"{{{', '.join(pairs)}}}"
    if type(value) is slice:
        parts = [format_argument(v, display) for v in (value.start, value.stop, value.step)]
        return f"slice({', '.join(parts)})"
    return display.notes.constant(display.constant(value))


def _is_named_constant(key: Any, value: Any) -> bool:
    return key in _NAMED_CONSTANTS and isinstance(value, str)


def _attribute_path(root: str, path: str) -> str:
    """`self.layers.weight`, with `getattr` for parts that are no identifiers."""
    text = root
    for part in path.split("."):
        text = f"{text}.{part}" if part.isidentifier() else f'getattr({text}, "{part}")'
    return text


def _call(node: Node, first: int, display: Display) -> str:
    items = [format_argument(arg, display) for arg in node.args[first:]]
    for key, arg in node.kwargs.items():
        if _is_named_constant(key, arg):
            items.append(f"{key} = {display.named_constant(arg)}")
        else:
            items.append(f"{key} = {format_argument(arg, display)}")
    return f"({', '.join(items)})"


def _function_call(node: Node, target_text: str, display: Display) -> str:
    symbol = None if node.kwargs else display.operator(node.target)
    if symbol is not None and symbol.count("{}") == len(node.args):
        items = [format_argument(arg, display) for arg in node.args]
        expression = symbol.format(*items)
        if node.target.__name__ in IN_PLACE_OPERATORS:
            return f"{expression};  {target_text} = {items[0]}"
        return f"{target_text} = {expression}"
    if node.target is getattr and len(node.args) == 2 and not node.kwargs:
        owner, name = node.args
        if isinstance(name, str) and name.isidentifier():
            return f"{target_text} = {format_argument(owner, display)}.{name}"
    callee = display.callee(node.target)
    if "is_wrapped" in node.meta:
        display.wrapped[callee] = None
    return f"{target_text} = {callee}{_call(node, 0, display)}"


def format_statement(node: Node, root: str, display: Display, annotation: str = "") -> str:
    """One node other than a placeholder as a Python statement."""
    if annotation == "" and node.type is not None and display.typed:
        annotation = f" : {written_type(node.type)}"
    left = f"{node.name}{annotation}"
    if node.op == "call_function":
        return _function_call(node, left, display)
    if node.op == "call_method":
        owner = format_argument(node.args[0], display)
        return f"{left} = {owner}.{node.target}{_call(node, 1, display)}"
    if node.op == "call_module":
        return f"{left} = {_attribute_path(root, node.target)}{_call(node, 0, display)}"
    if node.op == "get_attr":
        return f"{left} = {_attribute_path(root, node.target)}"
    return f"return {format_argument(node.args[0], display)}"


def last_uses(graph: "Graph") -> dict[Node, list[Node]]:
    """For each node, the nodes whose value nobody needs after it: its inputs, perhaps itself."""
    seen: set[Node] = set()
    freed: dict[Node, list[Node]] = {}
    for user in reversed(graph.nodes):
        dying = [node for node in user._inputs if node not in seen]
        seen.update(dying)
        if not user.users and user.op not in ("placeholder", "output"):
            dying.append(user)
        freed[user] = dying
    return freed


def _parameter(node: Node, display: Display, annotation: str) -> str:
    if annotation == "" and node.type is not None and display.typed:
        annotation = f" : {written_type(node.type)}"
    default = f" = {format_argument(node.args[0], display)}" if node.args else ""
    return f"{node.target}{annotation}{default}"


class _Text(str):
    """Source text that `repr` leaves as it is."""

    def __repr__(self) -> str:
        return str(self)


def _source(graph: "Graph", root: str, display: Display) -> str:
    """Source text of `forward`, three blank lines in front as PyTorch has them."""
    notes = display.notes
    parameters: list[str] = []
    body: list[str] = []
    freed = last_uses(graph)
    returns = ""
    trees, flattened = graph.trees, []
    for node in graph.nodes:
        if node.op == "placeholder" and trees is not None:
            flattened.append(node)
            continue
        if node.op == "placeholder":
            text = _parameter(node, display, notes.type_of(node))
            parameters.append(notes.parameter(node, text))
            plain = node.target.lstrip("*")
            if plain != node.name:
                body.append(f"{node.name} = {plain}")
            continue
        if node.op == "output":
            if node.type is not None and display.typed:
                returns = f" -> {written_type(node.type)}"
            text = format_statement(node, root, display)
            if graph.codegen is not None:
                text = graph.codegen.generate_output(
                    _Text(text.removeprefix("return "))).rstrip()
            if trees is not None:
                leaves = text.removeprefix("return ")
                text = f"return {display.unflatten(trees)}({leaves}, {root}._out_spec)"
            written = notes.output(node, text, lambda value: format_argument(value, display))
            if trees is not None and len(written) > 1:
                written[0] = f"return {display.unflatten(trees)}(["
                written[-1] = f"], {root}._out_spec)"
            body += written
            continue
        body += notes.source_line(node)
        text = format_statement(node, root, display, notes.type_of(node))
        if freed[node]:
            names = " = ".join([each.name for each in freed[node]])
            text += ";  " + notes.dim(f"{names} = None")
        body.append(text)
    while body and not body[0]:
        del body[0]  # the blank line that separates a source comment from the code before it
    if trees is not None:
        parameters = list(trees.names)
        names = "".join([f"{node.name}, " for node in flattened]).rstrip()
        given = ", ".join(parameters)
        call = f"{display.flatten(trees)}([{given}], {root}._in_spec)"
        body[:0] = [*notes.leaves(flattened), f"{names} = {call}" if names else call]
        parameters = notes.trees(parameters)
    head = notes.signature(root, parameters, returns)
    if graph.codegen is not None:
        head = graph.codegen.gen_fn_def(list(parameters), returns).lstrip("\n")
        display.globals.setdefault("torch", sys.modules[__package__.partition(".")[0]])
        display.globals.update(graph.codegen.additional_globals())
    if graph.body_transformer is not None:
        changed = graph.body_transformer([f"{line}\n" for line in body])
        body = "".join(changed).splitlines()
    lines = "\n".join([f"    {line}" if line else "" for line in body or ["pass"]])
    return f"\n{display.heading()}\n\n{head}\n{lines}\n    "


def python_code(graph: "Graph", root_module: str = "self", **options: Any) -> PythonCode:
    """The graph as PyTorch prints it; options as in `Graph.python_code`."""
    display = Display({node.name for node in graph.nodes}, Annotations(**options))
    return PythonCode(_source(graph, root_module, display), display.globals)


def executable_code(graph: "Graph") -> PythonCode:
    """The graph as `GraphModule` runs it."""
    display = Executable({node.name for node in graph.nodes}, Annotations())
    return PythonCode(_source(graph, "self", display), display.globals, tuple(display.wrapped))


# Lists --------------------------------------------------------------------------------------------


def brief(value: Any) -> str:
    """An argument as `str(graph)` shows it: nodes with a percent sign, the rest by `str`."""
    if type(value) is Node:
        return f"%{value.name}"
    if isinstance(value, tuple):
        items = ", ".join([brief(item) for item in value])
        return f"({items},)" if len(value) == 1 else f"({items})"
    if isinstance(value, list):
        return f"[{', '.join([brief(item) for item in value])}]"
    if isinstance(value, dict):
        pairs = [
            f"{key}: {'torch.' if _is_named_constant(key, item) else ''}{brief(item)}"
            for key, item in value.items()
        ]
        return f"{{{', '.join(pairs)}}}"
    return str(value)


def format_node(node: Node) -> str:
    """One line of `str(graph)`."""
    if node.op == "output":
        return f"return {node.args[0]}"
    annotation = "" if node.type is None else f"{type_name(node.type)} "
    target = node.target if isinstance(node.target, str) else qualified_name(node.target)
    line = f"%{node.name} : {annotation}[num_users={len(node.users)}] = {node.op}[target={target}]"
    if node.op == "placeholder":
        return f"{line}(default={node.args[0]})" if node.args else line
    if node.op == "get_attr":
        return line
    return f"{line}(args = {brief(node.args)}, kwargs = {brief(node.kwargs)})"


def format_graph(graph: "Graph") -> str:
    """`str(graph)`."""
    return "\n    ".join(["graph():", *[format_node(node) for node in graph.nodes]])


def format_table(graph: "Graph") -> str:
    """The nodes as aligned columns."""
    rows = [("opcode", "name", "target", "args", "kwargs")]
    for node in graph.nodes:
        target = node.target if isinstance(node.target, str) else qualified_name(node.target)
        rows.append((node.op, node.name, target, str(node.args), str(node.kwargs)))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    rows.insert(1, tuple("-" * width for width in widths))
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows
    )
