"""A program as text: what `save` writes and people read and compare.

    pullback program 1

    inputs
      %p_weight: f32[2, 3] = parameter "weight"
      %b_count: i64[] = buffer "count"
      %x: f32[5, 3] = argument
      %scale = value 2.0

    graph
      %linear: f32[5, 2] = aten.linear.default(%x, %p_weight)
      %mul: f32[5, 2] = aten.mul.Tensor(%linear, 2.0)
      %add: i64[] = aten.add.Tensor(%b_count, 1)

    writes
      %b_count = %add

    takes
      x = %x
      keyword scale = %scale

    gives
      {"out": %mul}

A tensor that modules share has all its names: `parameter "weight" also "head.weight"`.
Classes that pytree knows are taken apart: `registered "my.Point" "..." [%x, %y]`, with the text
that treespec_dumps has for the rest.
Values are names with `%`, operators are entries of the table, everything else is a literal.  Sizes
that vary have names, in a section of their own: `s7 = 16 from 2 to 64` says that s7 was 16 when the
program was exported, `u0 = data from 0` that data decides.  Graphs that `cond` and its kin call
stand in sections of their own, as in `graph true_graph_0`, and are referred to as `@true_graph_0`.
The same program gives the same bytes: no dates, no places in files.  `parse.py` reads it.
"""

from __future__ import annotations

import json
import math
import operator
from collections import OrderedDict
from typing import Any

from .. import errors
from ..array.device import Device
from ..array.dtype import DType
from ..array.layout import _Named
from ..control import HigherOrder
from ..core.handle import Tensor
from ..core.overload import OpOverload
from ..graph.graph_module import GraphModule
from ..graph.node import Node
from ..graph.readable import _ABBREVIATIONS
from ..graph.traits import is_pure
from ..pytree import TreeSpec, as_written
from ..symbolic.env import MOST, ShapeEnv
from ..symbolic.expr import Expr
from ..symbolic.number import SymBool, SymFloat, SymInt, sym_ite, sym_max, sym_min, sym_not
from .graph_signature import ConstantArgument, InputKind, InputSpec
from .program import ExportedProgram, grad_modes

VERSION = 1
TITLE = "pullback program"
KINDS = {InputKind.PARAMETER: "parameter", InputKind.BUFFER: "buffer",
         InputKind.CONSTANT_TENSOR: "constant"}
WORDS = {True: "true", False: "false", None: "none"}
SIZES = {  # functions of sizes
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.floordiv,
    "mod": operator.mod, "neg": operator.neg, "max": sym_max, "min": sym_min,
    "truediv": operator.truediv, "pow": operator.pow, "ite": sym_ite,
}
QUESTIONS = {  # about sizes, for branches
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq,
    "ne": operator.ne, "not": sym_not,
}
SIZE_NAMES = {function: name for name, function in (SIZES | QUESTIONS).items()}
CONTAINERS = {tuple: "()", list: "[]"}


def may_stand(ov: OpOverload) -> bool:
    """Can a file call an operator: one that computes, checks or prints?  Those of users must have
    been registered when it is loaded."""
    return is_pure(ov) or ov.op.kept == "effect"


def refused(what: str, cure: str = "") -> Exception:
    """The error for a program that a file cannot hold."""
    return errors.ExportError(errors.text(f"{what} ({errors.user_line(2)})", cure=cure))


def program_text(program: ExportedProgram) -> str:
    """The text of a program."""
    nodes = list(program.graph.nodes)
    placeholders = [n for n in nodes if n.op == "placeholder"]
    specs = program.graph_signature.input_specs
    sections = {
        "inputs": [_input(program, s, n) for s, n in zip(specs, placeholders)],
        **_inner_graphs(program.graph_module, ""),
        "graph": _statements(nodes),
        "writes": _writes(program),
        "takes": _takes(program),
        "gives": [_gives(program)],
    }
    if program.env is not None:
        sections = {"sizes": _sizes(program.env), **sections}
    text = [f"{TITLE} {VERSION}"]
    for title, lines in sections.items():
        if lines:
            text += ["", title, *[f"  {line}" for line in lines]]
    return "\n".join([*text, ""])


def _sizes(env: ShapeEnv) -> list[str]:
    """The sizes that vary, with the one that the program was exported with."""
    lines = []
    known = {name: e for name, e in env.replacements.items() if name in env.symbols}
    for s in env.symbols.values():
        low, high = s.range
        if s.name in known or not s.size_like and not isinstance(low, int):
            continue  # it is another one, or a number
        most = "" if high >= MOST else f" to {high}"
        here = "data" if s.hint is None else s.hint
        lines.append(f"{s.name} = {here} from {max(low, 0)}{most}")
    for guard in env.guards:
        op, left, right = guard.relation
        left, right = [e.replaced(known) if isinstance(e, Expr) else e for e in (left, right)]
        if left == right and op in ("==", ">=", "<="):
            continue
        if not isinstance(left, Expr) or not isinstance(right, Expr):
            if guard.assumed:
                continue  # the graph itself checks it
            raise refused(f"a condition on sizes is none of integers: {guard}")
        lines.append(f"require {left} {op} {right}")
    return lines


def _input(program: ExportedProgram, spec: InputSpec, node: Node) -> str:
    if isinstance(spec.arg, ConstantArgument):
        return f"%{node.name} = value {literal(spec.arg.value)}"
    if spec.kind is InputKind.USER_INPUT:
        return f"%{node.name}: {type_text(node.meta['val'])} = argument"
    value = program.tensor(spec.target)
    word = KINDS[spec.kind]
    if spec.kind is InputKind.PARAMETER and not value.requires_grad:
        word = f"frozen {word}"
    if spec.kind is InputKind.BUFFER and not spec.persistent:
        word = f"temporary {word}"
    named = [spec.target, *[name for name, t in program.aliases.items() if t == spec.target]]
    titles = " also ".join(map(json.dumps, named))
    return f"%{node.name}: {type_text(value)} = {word} {titles}"


def type_text(value: Any) -> str:
    """`f32[3, 4]`, or a list of such, for an example value."""
    if isinstance(value, Tensor):
        return f"{_ABBREVIATIONS[value.dtype.name]}[{', '.join(map(str, value.shape))}]"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(type_text, value))}]"
    if value is None:
        return "none"
    if isinstance(value, SymInt):
        return f"size {value}"
    if isinstance(value, (SymFloat, SymBool)):
        return value.node.pytype.__name__
    if type(value) in (int, float, bool):  # among several results, sizes for instance
        return type(value).__name__
    raise refused(f"a value of a program is a {type(value).__name__}: it can be no part of a file")


def _statements(nodes: list[Node]) -> list[str]:
    switches = grad_modes(nodes)
    return [_statement(n, switches) for n in nodes
            if n.op not in ("placeholder", "get_attr", "output")]


def _inner_graphs(module: GraphModule, path: str) -> dict[str, list[str]]:
    """The graphs that a graph calls, those that these call first."""
    out: dict[str, list[str]] = {}
    for name in dict.fromkeys(n.target for n in module.graph.find_nodes(op="get_attr")):
        inner = getattr(module, name)
        if not isinstance(inner, GraphModule):
            raise refused(f"the attribute {name} of a graph is no graph")
        out |= _inner_graphs(inner, f"{path}{name}.")
        nodes = list(inner.graph.nodes)
        takes = [f"takes %{n.name}: {type_text(n.meta['val'])}" for n in nodes
                 if n.op == "placeholder"]
        gives = literal(inner.graph.output_node().args[0])
        out[f"graph {path}{name}"] = [*takes, *_statements(nodes), f"gives {gives}"]
    return out


def _statement(node: Node, switches: dict[Node, tuple]) -> str:
    if node in switches:
        mode, back = switches[node]
        return f"grad {'back' if back else 'on' if mode else 'off'}"
    name = f"%{node.name}: {type_text(node.meta.get('val'))}"
    if node.target is operator.getitem:
        return f"{name} = {literal(node.args[0])}[{literal(node.args[1])}]"
    ov = node.target
    if ov in SIZE_NAMES:
        title = f"size.{SIZE_NAMES[ov]}"
    elif isinstance(ov, HigherOrder):
        title = f"{ov.namespace}.{ov}"
    elif isinstance(ov, OpOverload) and may_stand(ov):
        title = str(ov)
    else:
        raise refused(
            f"{node.name} calls {ov}, which is no operator of the table: whoever loads the file "
            "would not have it", "write it in operators of the table before it is exported")
    args = [literal(a) for a in node.args]
    args += [f"{key}={literal(value)}" for key, value in node.kwargs.items()]
    return f"{name} = {title}({', '.join(args)})"


def literal(value: Any) -> str:
    """A value as it is written; the inverse of `reader.Reader.value`."""
    if isinstance(value, Node):
        return f"@{value.target}" if value.op == "get_attr" else f"%{value.name}"
    if value is None or type(value) is bool:
        return WORDS[value]
    if type(value) is int:
        return repr(value)
    if isinstance(value, float):
        return number(value)
    if isinstance(value, complex):
        return f"complex({number(value.real)}, {number(value.imag)})"
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, DType):
        return f"dtype.{value.name}"
    if isinstance(value, _Named):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, OpOverload) and may_stand(value):
        return f"operator {value}"
    if isinstance(value, Device):
        return f"device({json.dumps(str(value))})"
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    raise refused(f"a program has a {type(value).__name__} in it ({value!r:.60}): a file holds "
                  "numbers, texts, tensors and lists of these")


def number(value: float) -> str:
    """A float that comes back as it was."""
    return repr(float(value)) if math.isfinite(value) else str(float(value))


def _writes(program: ExportedProgram) -> list[str]:
    signature = program.graph_signature
    names = {s.target: s.arg.name for s in signature.input_specs if s.target is not None}
    return [f"%{names.get(s.target, s.target)} = %{s.arg.name}" for s in signature.written]


def _takes(program: ExportedProgram) -> list[str]:
    specs = program.graph_signature.input_specs
    leaves = iter([f"%{s.arg.name}" for s in specs if s.kind is InputKind.USER_INPUT])
    positional, keywords = program.call_spec.in_spec.children()
    count = positional.num_children
    lines = [f"{name} = {tree_text(child, leaves)}"
             for name, child in zip(program.arg_names, positional.children())]
    return lines + [f"keyword {name} = {tree_text(child, leaves)}"
                    for name, child in zip(program.arg_names[count:], keywords.children())]


def _gives(program: ExportedProgram) -> str:
    written = len(program.graph_signature.written)
    outputs = program.graph.output_node().args[0][written:]
    return tree_text(program.call_spec.out_spec, iter([literal(v) for v in outputs]))


def tree_text(spec: TreeSpec, leaves: Any) -> str:
    """A structure with its leaves in place."""
    if spec.is_leaf():
        return next(leaves)
    inside = [tree_text(child, leaves) for child in spec.children()]
    if spec.type in (dict, OrderedDict):
        keys = [literal(key) for key in spec.context]
        text = "{" + ", ".join([f"{k}: {v}" for k, v in zip(keys, inside)]) + "}"
        return text if spec.type is dict else f"ordered{text}"
    named, context = as_written(spec)
    if named is not None:
        return f"registered {json.dumps(named)} {literal(context)} [{', '.join(inside)}]"
    if spec.type not in CONTAINERS:
        name = getattr(spec.context, "__name__", getattr(spec.type, "__name__", spec.type))
        raise refused(
            f"a {name} among the arguments or results: whoever loads the file may not have that "
            "class", "use tuples, lists and dictionaries, or register it with serialized_type_name")
    opened, closed = CONTAINERS[spec.type]
    comma = "," if spec.type is tuple and len(inside) == 1 else ""
    return f"{opened}{', '.join(inside)}{comma}{closed}"
