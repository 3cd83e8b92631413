"""Formula text as syntax trees: which values it names, which facts of tensors, what it calls.

A bare name stands for the value itself; `x.shape`, `x.dtype`, `x.ndim`, `x.numel()`, `x.device`
stand for that fact alone.  Nothing here knows of saving.  Read next: `formula_text.py`.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import math
import re
from dataclasses import dataclass

import numpy as np

from .. import errors
from ..core.handle import Tensor, make
from ..threads.state import fast, recording, state

FACTS = {"shape", "dtype", "ndim", "device", "is_complex_dtype"}
CALLED_FACTS = {"numel", "stride", "storage_offset", "dim", "is_complex", "is_floating_point"}
PLAIN_SIZES = {"size", "sizes", "strides", "sym_size", "sym_sizes", "sym_strides", "sym_numel"}
BUILTINS = {"len", "range", "tuple", "list", "max", "min", "sum", "abs", "int", "float", "bool",
            "None", "True", "False", "math", "isinstance", "zip", "enumerate", "any", "all",
            "reversed", "sorted", "complex", "round", "slice", "Ellipsis"}
# What generated functions find beside what they name: nothing that reaches outside.
SPACE = {"__name__": "pullback.generated", "math": math, "__builtins__": {
    name: getattr(builtins, name) for name in (*BUILTINS, "next") if hasattr(builtins, name)}}


def parse(text: str, entry: str) -> ast.Expression:
    """The syntax tree of a formula; `entry` is quoted if it cannot be read."""
    try:
        tree = ast.parse(f"({text.strip()}\n)", mode="eval")
        if _depth(tree) > DEEPEST:
            raise RecursionError
        return tree
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        why = getattr(error, "msg", None) or "it is nested too deeply" if isinstance(
            error, (SyntaxError, RecursionError, MemoryError)) else str(error)
        raise errors.FormulaError(errors.text(
            f"cannot read the formula {text[:200]!r}: {why}", f"entry: {entry}",
            "a formula is one Python expression")) from None


def _depth(tree: ast.AST) -> int:
    """How many levels of syntax there are."""
    depth, level = 0, [tree]
    while level:
        depth, level = depth + 1, [c for node in level for c in ast.iter_child_nodes(node)]
    return depth


def names_in(tree: ast.AST) -> set[str]:
    """The names that an expression uses, without those of its comprehensions inside of these."""
    if isinstance(tree, ast.Name):
        return {tree.id}
    inner = [names_in(child) for child in ast.iter_child_nodes(tree)]
    if not isinstance(tree, _SCOPES):
        return set().union(*inner)
    first = names_in(tree.generators[0].iter)  # taken before the names of the comprehension are
    return first | (set().union(*inner) - _targets(tree))


def _targets(scope: ast.AST) -> set[str]:
    """The names that a comprehension binds."""
    return {n.id for g in scope.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}


_SCOPES = (ast.ListComp, ast.GeneratorExp)
DEEPEST = 200  # levels of syntax in one formula

# The language of formulas.
SYNTAX = (
    ast.Expression, ast.Name, ast.Load, ast.Store, ast.Constant, ast.Call, ast.keyword,
    ast.Starred, ast.Attribute, ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.IfExp,
    ast.ListComp, ast.GeneratorExp, ast.comprehension, ast.BinOp, ast.UnaryOp, ast.BoolOp,
    ast.Compare, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)
CONSTANTS = (int, float, complex, bool, str, type(None), type(...))
ATTRIBUTES = frozenset(FACTS | CALLED_FACTS | PLAIN_SIZES | {
    "conj", "conjugate", "real", "imag", "T", "H", "mT", "mH", "to", "scalar_type"})


def foreign(tree: ast.AST) -> str:
    """What in an expression is not of the language of formulas, in words; "" if all of it is.

    Names are looked up elsewhere: each must be an argument, an output or a function that formulas
    may call.  So a formula computes on tensors and numbers, and reaches nothing else.
    """
    for node in ast.walk(tree):
        if not isinstance(node, SYNTAX) or getattr(node, "is_async", 0):
            return f"{type(node).__name__} in {ast.unparse(node)[:80]!r}"
        if isinstance(node, ast.Constant) and type(node.value) not in CONSTANTS:
            return f"the constant {node.value!r}"
        if isinstance(node, ast.Attribute) and not _is_known(node):
            return f"the attribute '{node.attr}'"
        if isinstance(node, ast.Call) and not isinstance(node.func, (ast.Name, ast.Attribute)):
            return f"a call of {ast.unparse(node.func)[:80]!r}"
        if isinstance(node, _SCOPES) and (hidden := _targets(node) & names_in(tree)):
            return f"'{min(hidden)}' for two things"
        if isinstance(node, ast.Name) and node.id.startswith("_") and lookup(node.id) is None:
            return f"the name '{node.id}'"
    return ""


def _is_known(node: ast.Attribute) -> bool:
    """Is an attribute a fact of tensors, an operator that writes nothing, or of `math`?"""
    from ..core.op import families

    if isinstance(node.value, ast.Name) and node.value.id == "math":
        return not node.attr.startswith("_") and hasattr(math, node.attr)
    return node.attr in ATTRIBUTES or node.attr in families and not node.attr.endswith("_")


def root_call(tree: ast.Expression) -> str | None:
    """The function that an expression is a call of, by name."""
    body = tree.body
    is_call = isinstance(body, ast.Call) and isinstance(body.func, ast.Name)
    return body.func.id if is_call else None


class Scan(ast.NodeTransformer):
    """Replaces facts of tensors by local names, and collects what a formula uses."""

    def __init__(self, tensors: set[str], conjugate: bool):
        self.tensors, self.conjugate = tensors, conjugate
        self.names: set[str] = set()  # bare names, those of functions included
        self.facts: set[tuple[str, str]] = set()  # (tensor, "shape" or "numel()")
        self.plain: list[str] = []  # ways to read sizes that would keep the whole tensor
        self.optional: dict[str, ast.AST] = {}  # wrap_opt_if(name, condition)

    def visit_Call(self, node: ast.Call):
        func = node.func
        if isinstance(func, ast.Name) and func.id == "wrap_opt_if" and len(node.args) == 2:
            return self._optional(*node.args)
        if not isinstance(func, ast.Attribute):
            return self.generic_visit(node)
        owner = func.value.id if isinstance(func.value, ast.Name) else None
        if func.attr in PLAIN_SIZES and (func.attr != "size" or self._is_tensor(owner)):
            self.plain.append(ast.unparse(node))
        elif func.attr == "stride" and self._is_tensor(owner):
            whole = self._fact(owner, "stride()")
            if not node.args:
                return whole
            return ast.Subscript(whole, self.visit(node.args[0]), ast.Load())
        elif func.attr in CALLED_FACTS and owner in self.tensors and not node.args:
            return self._fact(owner, func.attr + "()")
        if func.attr == "conj" and not node.args:
            inner = self.visit(func.value)
            return ast.Call(ast.Name("_conj", ast.Load()), [inner], []) if self.conjugate else inner
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute):
        owner = node.value.id if isinstance(node.value, ast.Name) else None
        if owner in self.tensors and node.attr in FACTS:
            return self._fact(owner, node.attr)
        if node.attr == "mH" and not self.conjugate:
            return ast.Attribute(self.visit(node.value), "mT", ast.Load())
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name):
        self.names.add(node.id)
        return node

    def _is_tensor(self, name: str | None) -> bool:
        return name is not None and (name in self.tensors or name.partition("_")[0] == "grad")

    def _fact(self, tensor: str, attribute: str) -> ast.Name:
        self.facts.add((tensor, attribute))
        return ast.Name(fact_name(tensor, attribute), ast.Load())

    def _optional(self, value: ast.AST, condition: ast.AST) -> ast.IfExp:
        """`wrap_opt_if(x, condition)`: x is needed, and kept, only if the mask says so."""
        if isinstance(value, ast.Name) and value.id in self.tensors:
            self.optional[value.id] = condition
        else:
            value = self.visit(value)
        return ast.IfExp(self.visit(condition), value, ast.Constant(None))


def fact_name(tensor: str, attribute: str) -> str:
    """Local variable that holds a fact of a tensor."""
    return f"{tensor}__{attribute.rstrip('()')}"


def fact_value(tensor, attribute: str):
    """The fact of a tensor that a formula asked for; None of an absent tensor."""
    if tensor is None:
        return None
    if isinstance(tensor, (list, tuple)):
        return [fact_value(t, attribute) for t in tensor]
    if not hasattr(tensor, "_edge"):  # a Python number in a tensor's place
        return {"shape": (), "ndim": 0, "dim()": 0, "numel()": 1}.get(attribute)
    if attribute.endswith("()"):
        return getattr(tensor, attribute[:-2])()
    return getattr(tensor, attribute)


def conj_value(value):
    """The conjugate of a tensor or a Python number."""
    if not hasattr(value, "_edge"):
        return value.conjugate()
    data = value._payload
    if fast["ACTIVE"]:
        seen = state.dispatch.operator_modes or type(value) is not Tensor or any(
            hasattr(level, "recorder") for level in state.stack)
        return value.conj() if seen else value.conj_physical()
    if recording() or type(data) is not np.ndarray or data.dtype.kind != "c":
        return value.conj()
    return make(np.asarray(np.conjugate(data)))  # nobody sees it: no need to put it off


# what formulas may call


@functools.cache
def helpers() -> dict[str, str]:
    """Public functions of `pullback.formulas` -> the file that has them.

    Read from the text: a process that needs three formulas should not import them all.
    """
    import pkgutil

    found = {}
    package = importlib.import_module("pullback.formulas")
    for info in pkgutil.iter_modules(package.__path__):
        text = pkgutil.get_data("pullback.formulas", f"{info.name}.py")
        for name in re.findall(rb"^def ([A-Za-z]\w*)\(", text, re.MULTILINE):
            found[name.decode()] = info.name
    return found


def helper(name: str):
    """A public function of `pullback.formulas`, or None."""
    file = helpers().get(name)
    return file and getattr(importlib.import_module(f"pullback.formulas.{file}"), name)


def not_implemented(name: str, reason: str = ""):
    """The formula of a derivative that nobody wrote: raises when the gradient is asked for."""
    raise errors.DerivativeNotWritten(errors.text(
        f"the derivative for '{name}' is not implemented ({errors.user_line(2)})", reason,
        "detach() the input, or give the operator's table entry a formula"))


BUILT_IN = {"not_implemented": not_implemented, "is_grad_enabled": recording}


def lookup(name: str):
    """A function that formulas may call: a helper or an operator; None if there is none."""
    found = BUILT_IN.get(name) or helper(name)
    if found is not None:
        return found
    from ..core.op import families, ops
    return getattr(ops, name) if name in families or name in ops else None


class Ordered(ast.NodeTransformer):
    """Makes operands be evaluated from the right to the left, receivers of methods first.

    That is how PyTorch's compiled formulas run, and captured graphs show the order.  Operands that
    have to come earlier than Python would take them become statements of their own.
    """

    def __init__(self):
        self.statements: list[ast.Assign] = []

    def generic_visit(self, node: ast.AST) -> ast.AST:
        return node  # what may not run at all (conditions, comprehensions) stays as it is

    def visit_Expression(self, node: ast.Expression):
        node.body = self.visit(node.body)
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp):
        node.operand = self.visit(node.operand)
        return node

    def visit_Attribute(self, node: ast.Attribute):
        node.value = self.visit(node.value)
        return node

    def visit_BinOp(self, node: ast.BinOp):
        node.left, node.right = self._backwards([node.left, node.right])
        return node

    def visit_Compare(self, node: ast.Compare):
        if len(node.comparators) == 1:
            node.left, node.comparators[0] = self._backwards([node.left, node.comparators[0]])
        return node

    def visit_Call(self, node: ast.Call):
        values = [*node.args, *[k.value for k in node.keywords]]
        if any(isinstance(v, ast.Starred) for v in values):
            return node
        if isinstance(node.func, ast.Attribute):
            owner = self.visit(node.func.value)
            if _works(owner) and sum(map(_works, values)) > 1:
                owner = self._first(owner)
            node.func.value = owner
        values = self._backwards(values)
        node.args = values[: len(node.args)]
        for keyword, value in zip(node.keywords, values[len(node.args) :]):
            keyword.value = value
        return node

    def _backwards(self, nodes: list) -> list:
        nodes = list(nodes)
        for i in reversed(range(len(nodes))):
            nodes[i] = self.visit(nodes[i])
            if _works(nodes[i]) and any(map(_works, nodes[:i])):
                nodes[i] = self._first(nodes[i])
        return nodes

    def _first(self, node: ast.AST) -> ast.Name:
        name = f"_{len(self.statements)}"
        self.statements.append(ast.Assign([ast.Name(name, ast.Store())], node))
        return ast.Name(name, ast.Load())


def _works(node: ast.AST) -> bool:
    """Does an expression compute anything?"""
    return any(isinstance(n, (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare))
               for n in ast.walk(node))


@dataclass(slots=True)
class Formula:
    """One gradient formula."""

    names: tuple[str, ...]  # the inputs whose gradients it gives
    text: str
    tree: ast.Expression  # as written
    scan: Scan  # what it uses

    def code(self, conjugate: bool) -> str:
        """The expression with facts as local names, with or without its conjugations."""
        return ast.unparse(self._local(conjugate))

    def statement(self, targets: str, conjugate: bool) -> str:
        """One line that computes it, operands in PyTorch's order."""
        order = Ordered()
        tree = ast.fix_missing_locations(order.visit(self._local(conjugate)))
        before = [ast.unparse(ast.fix_missing_locations(s)) for s in order.statements]
        return "; ".join([*before, f"{targets} = {ast.unparse(tree)}"])

    def _local(self, conjugate: bool) -> ast.Expression:
        tree = Scan(self.scan.tensors, conjugate).visit(parse(self.text, ""))
        return ast.fix_missing_locations(tree)

    def uses(self) -> set[str]:
        """Bare names, those bound inside the formula excepted."""
        return self.scan.names & names_in(self.tree)
