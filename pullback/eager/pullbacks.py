"""Pullbacks written out for one operator: `apply` of its nodes, on arrays where nobody looks.

A formula calls operators and helper functions.  While a sweep records nothing and no transform is
active, it may as well call their kernels: `grad.bmm(other)` becomes `bmm(np, grad, other)`.  The
statements of the pullback are the same, methods become functions, and every name in them means an
array function: a function of NumPy, a kernel of the table, or a helper that is marked `on_arrays`.
Formulas with other names keep their handles, and so do all others where somebody looks.
Read `steps.py` first.
"""

from __future__ import annotations

import ast
import re

import numpy as np

from ..array.dims import infer_size
from ..core import tape
from ..core.op import families
from ..core.overload import overload_of
from ..table.derivative import DEFAULT
from ..table.expression import BUILTINS, helper
from .fast import ELLIPSIS_OUT
from .steps import array_function
from .unroll import indented, unrolled


class _NotRaw(Exception):
    """The formula needs handles."""


def _reshape(array, *shape):
    return array.reshape(infer_size(shape if len(shape) != 1 else shape[0], array.size))


TWINS = {  # of what is no helper function
    "reshape": _reshape,
    "is_grad_enabled": lambda: False,
    "conjugate": lambda number: number.conjugate(),
}


def _function(name: str):
    """The array function that a name in a formula means."""
    if name in TWINS:
        return TWINS[name]
    twin = getattr(helper(name), "on_arrays", None)
    if twin is not None:
        return twin
    found = [overload_of(op) for op in families.get(name, ())]
    if len(found) != 1 or found[0].is_composite or found[0].is_random or found[0].custom:
        raise _NotRaw(name)
    if len(found[0].schema.args) == 1 and found[0].kind == "pointwise":
        direct = array_function(found[0], found[0].schema.names)
        if direct is not None and found[0].op.promote in ("default", "float"):
            return getattr(np, direct)
    return _kernel(found[0])


def _kernel(ov):
    """An operator's kernel with its defaults filled in."""
    rule, schema = ov.op.promote, ov.schema
    if any(a.is_list and a.is_tensor for a in schema.args):
        raise _NotRaw(ov.name)
    defaults = tuple([a.default if a.has_default else None for a in schema.args])
    if rule in ("keep", "same"):
        return lambda *args: ov.kernel(np, *args, *defaults[len(args):])
    if rule != "default" or ov.kind != "pointwise" or ov.dtype_rule is not None:
        raise _NotRaw(ov.name)
    numbers = [i for i in ov.promoted if not schema.args[i].is_tensor]

    def run(first, *rest):
        values = [first, *rest, *defaults[1 + len(rest):]]
        for i in numbers:
            values[i] = np.asarray(values[i], first.dtype)
        return ov.kernel(np, *values)

    return run


_ARITHMETIC = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide",
               ast.USub: "negative"}


class _OnArrays(ast.NodeTransformer):
    """Statements of a pullback, on arrays: `x.f(y)` is `f(x, y)`, variables have other names."""

    def __init__(self, rule, several: bool):
        self.functions: dict = {}  # constants of the statements
        self.space = rule.space.keys() - BUILTINS
        self.names = {local: f"a{i}" if kind in ("arg", "out") else f"s{i}"
                      for i, (local, kind, _, _) in enumerate(rule.saves)}
        self.names |= {"grads": "given"} if several else {"grad": "a"}

    def visit_Call(self, node: ast.Call):
        if node.keywords:
            raise _NotRaw(ast.unparse(node))
        function, args = node.func, node.args
        if isinstance(function, ast.Attribute):
            function, args = self.function(function.attr), [function.value, *args]
        else:
            function = self.visit(function)
        return ast.Call(function, [self.visit(a) for a in args], [])

    def visit_BinOp(self, node: ast.BinOp):
        return self.arithmetic(node, _ARITHMETIC.get(type(node.op)), (node.left, node.right))

    def visit_UnaryOp(self, node: ast.UnaryOp):
        return self.arithmetic(node, _ARITHMETIC.get(type(node.op)), (node.operand,))

    def arithmetic(self, node: ast.expr, function: str | None, operands: tuple):
        """Arithmetic on arrays has arrays for results, not numbers, also without dimensions."""
        array = any(self.is_array(operand) for operand in operands)
        node = self.generic_visit(node)
        if function is None or not array or not ELLIPSIS_OUT:
            return node
        function = f"np_{function}"  # not the operator of that name
        self.functions[function] = getattr(np, function[3:])
        operands = (node.left, node.right) if len(operands) == 2 else (node.operand,)
        out = ast.keyword("out", ast.Constant(...))
        return ast.Call(ast.Name(f"${function}", ast.Load()), list(operands), [out])

    def is_array(self, node: ast.expr) -> bool:
        """Is this an array for sure, and no number of the formula's?"""
        if isinstance(node, ast.BinOp):
            return self.is_array(node.left) or self.is_array(node.right)
        if isinstance(node, ast.UnaryOp):
            return self.is_array(node.operand)
        return isinstance(node, ast.Name) and self.names.get(node.id) == "a"

    def visit_Attribute(self, node: ast.Attribute):
        raise _NotRaw(node.attr)  # a fact that was not saved

    def visit_Name(self, node: ast.Name):
        if node.id in self.space and node.id not in self.names:
            return self.function(node.id)
        return ast.Name(self.names.get(node.id, node.id), node.ctx)

    def function(self, name: str) -> ast.Name:
        self.functions[name] = _function(name)
        return ast.Name(f"${name}", ast.Load())


def _on_arrays(rule, several: bool) -> tuple[list[str], dict]:
    """Statements that compute `g0`, `g1`, ... of a rule on arrays, and their constants."""
    if set(rule.parts) != {DEFAULT} or rule.parts[DEFAULT].constant:
        raise _NotRaw(rule.name)
    rule.backward_real  # noqa: B018  (fills `space`)
    translator = _OnArrays(rule, several)
    (function,) = ast.parse(rule.source(DEFAULT, False)).body
    *statements, _ = function.body[1 if rule.saves else 0:]  # the first takes `saved` apart
    if not several and not rule.own_grad:
        statements = statements[1:]  # the next is `grad = grads[0]`
    made = [ast.fix_missing_locations(translator.visit(s)) for s in statements]
    lines = [line for s in made for line in ast.unparse(s).splitlines()]
    if several:
        lines.insert(0, "given = [None if g is None else g._payload for g in grads]")
    else:
        lines = [line.replace(" and a is not None", "") for line in lines]  # it is not
    return lines, translator.functions


_ALONE = re.compile(r"^(g\d+) = None\nif (needs\[\d+\]):\n    \1 = (.+)$", re.MULTILINE)


def _makes_array(value: str) -> bool:
    """Is this arithmetic that makes an array, also of no dimensions?"""
    call = ast.parse(value.replace("$", ""), mode="eval").body
    return isinstance(call, ast.Call) and any(k.arg == "out" for k in call.keywords)


def _handles(lines: list[str], count: int) -> tuple[list[str], str]:
    """The statements, with handles for gradients of one expression; then what is returned."""
    text, made = "\n".join(lines), set()

    def of_one(found: re.Match) -> str:
        name, needed, value = found.groups()
        if len(re.findall(rf"\b{name}\b", text)) > 2:
            return found.group()  # another gradient is made of it
        first, _, other = value.removeprefix("a if ").partition(" else ")
        if _makes_array(value):  # `make`, written out
            body = [f"{name} = new(Tensor)", f"{name}._payload = {value}",
                    f"{name}._edge = {name}._link = {name}._cell = {name}._record = None"]
        elif value == "a":
            body = [f"{name} = g"]
        elif value.startswith("a if ") and other and _makes_array(other):
            body = [f"{name} = g if {first} else make({other})"]
        else:
            return found.group()
        made.add(name)
        return "\n".join([f"{name} = None", f"if {needed}:", *indented(body)])

    lines = _ALONE.sub(of_one, text).splitlines()
    return lines, "".join(
        f"{g}, " if g in made else f"None if {g} is None else g if {g} is a else "
        f"make({g} if {g}.__class__ is ndarray else arrays_only(np, {g})), "
        for g in [f"g{i}" for i in range(count)])


def apply_of(rule, several: bool):
    """`Node.apply` for the nodes of a rule: on arrays, on handles, or as for all nodes (None)."""
    if any(kind == "arg" and rule.arguments[name].is_list for _, kind, name, _ in rule.saves):
        return None
    try:
        arrays, own = _on_arrays(rule, several)
    except (_NotRaw, LookupError, SyntaxError):
        arrays, own = [], {}
    own |= {"_general": tape.Node.apply, "_pull": rule.backward_real}
    general = "    return $_general(self, grads, needs)"
    metas = [f"m{i}" for i in range(len(rule.inputs))]
    arrays, results = _handles(arrays, len(metas))
    of_arrays = any(kind in ("arg", "out") for _, kind, _, _ in rule.saves)
    saved = "".join(f"s{i}, " for i in range(len(rule.saves)))
    lines = [
        "saved = self.saved",
        "if saved is None:",
        "    raise freed(self)",
        "g = grads[0]",
        "if g is None:",
        general,
        "a = g._payload",
        "d = a.dtype",
        "if d is not F32 and d is not F64:",
        general,
        *([f"({', '.join(metas)},) = self.metas",  # dtypes meet as those of tensors do
           f"if {' or '.join(f'{m} is not None and {m}[1] is not d' for m in metas)}:",
           general] if of_arrays or several else ()),
        "plain = GRADOFF and not ACTIVE and a.__class__ is ndarray and not state.record[0]",
        *([f"({saved}) = saved"] if saved else ()),
    ]
    again = []  # handles with their history, for formulas on handles
    for i, (local, kind, name, _) in enumerate(rule.saves):
        there = f"isinstance(s{i}, Tensor)" if name in rule.op.scalars else f"s{i} is not None"
        if kind in ("arg", "out"):
            lines += _unmodified(i, local, there)
        if kind == "arg":
            again += [f"if {there} and s{i}._edge is None:", f"    s{i} = as_saved(self, s{i})"]
        elif kind == "out":
            edge = "self" if rule.diff_outputs[rule.outputs.index(local)] else "None"
            again += [f"if {there}:", f"    c, s{i} = s{i}._cell, make(a{i}, {edge})",
                      f"    s{i}._cell = c"]
    if arrays:
        lines += ["if plain:", *indented([
            "try:",
            *indented(arrays),
            f"    return ({results})",
            "except Exception:",  # whatever it is: the general way says it
            general,
        ])]
    lines += [general[4:]] if several else [*again, f"return $_pull(({saved}), grads, needs)"]
    title = f"backward of {rule.op.full_name}"
    return unrolled(title, "apply(self, grads, needs)", lines, own)


def _unmodified(i: int, local: str, there: str) -> list[str]:
    """Refuse a saved tensor that was written since, and take its array."""
    return [
        f"if {there}:",
        f"    c = s{i}._cell",
        "    if c is not None and c.stamps and c.stamps[-1] > self.stamp:",
        f"        raise modified(self, {local!r}, s{i})",
        f"    a{i} = s{i}._payload",
        f"    if a{i}.__class__ is not ndarray:",
        "        plain = False",
        "else:",
        f"    a{i} = s{i}",
    ]
