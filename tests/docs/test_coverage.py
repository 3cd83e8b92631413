"""The cells of docs/coverage.md say what is true."""

import importlib
import sys
from pathlib import Path

import pytest

import pullback as torch
from pullback import errors
from pullback.core.op import Composite, Op, families, registry
from pullback.core.overload import overload, overload_of

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture(scope="module")
def tool():
    sys.path.insert(0, str(TOOLS))
    try:
        yield importlib.import_module("coverage_cells")
    finally:
        sys.path.remove(str(TOOLS))


@pytest.fixture
def defined():
    """Defines entries, and takes them out of the table again."""
    before = set(registry)

    def define(name: str, kind=Op, **attributes):
        body = {"schema": f"{name}(Tensor self) -> Tensor", **attributes}
        return overload_of(type(name, (kind,), body))

    yield define
    for name in set(registry) - before:
        del registry[name], families[name]


COPY = {"run": "self.copy()", "shape": "tuple(self.shape)", "method": False, "function": False}


def row(tool, name: str) -> dict[str, str]:
    return {column: cell(overload(name)) for column, cell in tool.COLUMNS.items()}


def test_known_rows(tool):
    assert list(row(tool, "tanh").values()) == [
        "kernel", "formula", "formula", "element-wise", "element-wise", "broadcast", "", "rule",
        "yes",
    ]
    assert row(tool, "softmax.int")["reverse"] == "composed"
    assert row(tool, "argsort")["reverse"] == row(tool, "argsort")["forward mode"] == ""
    assert row(tool, "round")["second order"] == "zero"
    assert row(tool, "nonzero")["fake"] == "needs data"
    assert row(tool, "mm")["forward mode"] == "product rule"
    assert row(tool, "select.int")["forward mode"] == "linear"
    assert row(tool, "rand")["vmap"] == "per example"
    assert row(tool, "zeros")["vmap"] == "no input"
    cell = row(tool, "special_hermite_polynomial_h")["reverse"]
    assert cell == "formula, not n"


def test_an_operator_without_derivative_in_a_formula_is_found(tool, defined):
    direct = defined("_direct", grad={"self": "grad * geqrf(self)[0]"}, **COPY)
    assert tool.second_order(direct) == "none: geqrf" and tool.batching(direct) == "loop"
    x = torch.eye(2, dtype=torch.float64).requires_grad_()
    (first,) = torch.autograd.grad(direct.call(x).sum(), x, create_graph=True)
    with pytest.raises(errors.DerivativeNotWritten, match="geqrf"):
        torch.autograd.grad(first.sum(), x)


def test_it_is_found_behind_a_composite_too(tool, defined):
    defined("_behind", Composite, compose=lambda self: self.geqrf()[0], method=False)
    through = defined("_through", grad={"self": "grad * _behind(self)"}, **COPY)
    assert tool.second_order(through) == "none: geqrf"


def test_masks_and_indices_stop_nothing(tool, defined):
    masked = defined("_masked", grad={"self": "where(self > 0, grad, 0).take(self.argsort())"},
                     **COPY)
    assert tool.second_order(masked) == "formula"


def test_formulas_are_followed_into_their_functions(tool):
    rule = overload("prod.dim_int").rule
    assert "cumprod" in tool.operators_of_formula(rule, rule.all_formulas()[0])
    assert "native_layer_norm_backward" in set().union(*(
        tool.operators_of_formula(overload("native_layer_norm").rule, f)
        for f in overload("native_layer_norm").rule.all_formulas()))
