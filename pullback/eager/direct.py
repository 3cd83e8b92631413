"""Gradient formulas directly on arrays: `grad * other` -> `multiply(g, b, out=...)`.

A formula that is arithmetic over the gradient, saved tensors and numbers needs no handles in
between while nobody records or watches: the nodes of the fast path run this text instead, with
the same array functions in the same order, so the numbers are the same.  Read next: `fast.py`,
whose node classes contain it.
"""

from __future__ import annotations

import ast

import numpy as np

from ..core.op import families, overload_of

_ARITHMETIC = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
}

# NumPy 2.3 can be asked for arrays where it would return scalars; before, 0-d results are wrapped
ELLIPSIS_OUT = tuple(int(p) for p in np.__version__.split(".")[:2]) >= (2, 3)


class NotDirect(LookupError):
    """The formula needs handles."""


def array_call(function: str, operands: str) -> str:
    """Text that calls an array function for an array, 0-d ones included."""
    return (
        f"{function}({operands}, out=...)" if ELLIPSIS_OUT else f"asarray({function}({operands}))"
    )


class Direct:
    """Translates the formulas of one rule; `functions` collects the array functions they call."""

    def __init__(self, saves: list[tuple]):
        self.arrays = {
            local: f"a{i}" for i, (local, kind, _, _) in enumerate(saves) if kind in ("arg", "out")
        }
        self.values = {
            local: f"s{i}" for i, (local, kind, _, _) in enumerate(saves) if kind == "value"
        }
        self.functions: set[str] = set()

    def handle(self, tree: ast.AST) -> str:
        """Text for the gradient as a handle."""
        if isinstance(tree, ast.Name) and tree.id == "grad":
            return "g"
        if isinstance(tree, ast.IfExp):
            return (
                f"({self.handle(tree.body)} if {self.number(tree.test)} "
                f"else {self.handle(tree.orelse)})"
            )
        text, is_array = self.term(tree)
        if not is_array:
            raise NotDirect(ast.unparse(tree))
        return f"make({text})"

    def term(self, tree: ast.AST) -> tuple[str, bool]:
        """(text, is it an array?) of a subexpression."""
        if isinstance(tree, ast.Name) and tree.id == "grad":
            return "a", True
        if isinstance(tree, ast.Name) and tree.id in self.arrays:
            return self.arrays[tree.id], True
        if isinstance(tree, ast.BinOp) and type(tree.op) in _ARITHMETIC:
            left, one = self.term(tree.left)
            right, two = self.term(tree.right)
            if one or two:
                return self.call(_ARITHMETIC[type(tree.op)], f"{left}, {right}"), True
        elif isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
            inner, is_array = self.term(tree.operand)
            if is_array:
                return self.call("negative", inner), True
        elif isinstance(tree, ast.Call) and not tree.keywords:
            method = isinstance(tree.func, ast.Attribute)
            operands = [tree.func.value, *tree.args] if method else tree.args
            name = tree.func.attr if method else getattr(tree.func, "id", None)
            if len(operands) == 1 and (inner := self.term(operands[0]))[1]:
                return self.call(single(name), inner[0]), True
        return self.number(tree), False

    def number(self, tree: ast.AST) -> str:
        """Text of an expression over numbers alone."""
        for part in ast.walk(tree):
            if isinstance(part, ast.Name) and part.id not in self.values:
                raise NotDirect(ast.unparse(tree))
            if isinstance(part, (ast.Call, ast.Subscript, ast.Lambda)):
                raise NotDirect(ast.unparse(tree))
        return f"({ast.unparse(_Renamed(self.values).visit(tree))})"

    def call(self, function: str, operands: str) -> str:
        self.functions.add(function)
        return array_call(function, operands)


class _Renamed(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]):
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self.names[node.id], node.ctx)


def single(name: str | None) -> str:
    """The array function that a one-operand operator is."""
    from .fast import array_function

    for op in families.get(name, ())[:1]:
        overload = overload_of(op)
        names = [a.name for a in overload.schema.args if a.is_tensor]
        if op.kind == "pointwise" and op.promote in ("default", "float") and len(names) == 1:
            function = array_function(overload, names)
            if function is not None:
                return function
    raise NotDirect(str(name))
