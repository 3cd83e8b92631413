"""Backward graphs: operands in PyTorch's order, arithmetic with numbers by its overload."""

import ast

import pytest

import pullback as torch
from pullback.aot import aot_function
from pullback.table.expression import Ordered, parse


@pytest.mark.parametrize("text, expected", [
    ("a * b", "a * b"),
    ("-a * (b / c)", "_0 = b / c; -a * _0"),
    ("f(a + 1, b + 1)", "_0 = b + 1; f(a + 1, _0)"),
    ("f(a + 1, b, k=c + 1)", "_0 = c + 1; f(a + 1, b, k=_0)"),
    ("g(a).f(b + 1, c + 1)", "_0 = g(a); _1 = c + 1; _0.f(b + 1, _1)"),
    ("g(a) == -b", "_0 = -b; g(a) == _0"),
    ("f(*a, -b)", "f(*a, -b)"),
    ("-a * -b if c else -a / -b", "-a * -b if c else -a / -b"),  # only one of them may run
])
def test_operands_run_from_the_right(text, expected):
    order = Ordered()
    tree = ast.fix_missing_locations(order.visit(parse(text, "")))
    lines = [ast.unparse(ast.fix_missing_locations(s)) for s in order.statements]
    assert "; ".join([*lines, ast.unparse(tree)]) == expected


def operators(f, *args):
    """The operators of a backward graph."""
    seen = []

    def backward(module, inputs):
        seen.extend(str(n.target).removeprefix("aten.") for n in module.graph.nodes
                    if n.op == "call_function")
        return module

    aot_function(f, lambda module, inputs: module, backward)(*args).sum().backward()
    return seen


@pytest.mark.parametrize("f, expected", [
    (lambda x: x / (x + 2), ["div.Tensor", "div.Tensor", "neg.default", "mul.Tensor", "div.Tensor",
                             "add.Tensor"]),
    (lambda x: x.rsqrt(), ["detach.default", "pow.Tensor_Scalar", "mul.Scalar", "mul.Tensor"]),
    (lambda x: x.mean(), ["expand.default", "div.Scalar"]),
    (lambda x: x * 3, ["mul.Tensor"]),  # the number stood in the place of a tensor
    (lambda x: x**2, ["pow.Tensor_Scalar", "mul.Scalar", "mul.Tensor"]),
])
def test_backward_graphs(f, expected):
    assert operators(f, torch.rand(3, requires_grad=True)) == expected
