"""Formulas for single backends: the entries with which PyTorch tests its own mechanism.

They stand here and not in the table, because nobody calls them.  An entry's `dispatch` gives a
backend formulas of its own; the others use those of `Default`.
"""

import csv
import warnings
from pathlib import Path

import numpy as np
import pytest

import pullback as torch
from pullback import derivatives, func
from pullback.core.handle import make
from pullback.core.op import Composite, Op, View, families, registry
from pullback.core.overload import overload
from pullback.core.schema import Schema
from pullback.ops.view_writes import derive_copies
from pullback.table import derivative, expression
from tests.helpers import second_device as second

NAME = second.install()

CLASSIC = """
- name: _test_autograd_multiple_dispatch.fullcoverage(Tensor self) -> Tensor
  dispatch:
    Default:
      self: grad.expand(self.sym_sizes()) + 1
      result: auto_linear
    AutogradNestedTensor:
      self: grad.mul(grad)
    AutogradCUDA:
      self: grad.expand(self.sym_sizes()) * 2
"""


def warn_backwards(grad):
    """The gradient, with a warning."""
    warnings.warn("warn from a gradient formula", stacklevel=2)
    return grad


def define() -> None:
    """The operators; the formulas of the first are loaded from the text above."""

    class fullcoverage(Op):
        """A copy."""

        schema = "_test_autograd_multiple_dispatch.fullcoverage(Tensor self) -> Tensor"
        run = "self.copy()"
        shape = "tuple(self.shape)"

    class ntonly(Composite):
        """A copy; nested tensors have a formula of their own in PyTorch."""

        schema = "_test_autograd_multiple_dispatch.ntonly(Tensor self, bool b) -> Tensor"

        def compose(self, b):
            return self.clone()

    class _test_autograd_multiple_dispatch_view(View):
        """All elements in one dim."""

        schema = "_test_autograd_multiple_dispatch_view(Tensor(a) self) -> Tensor(a)"
        run = "self.reshape(-1)"
        scatter = "new.reshape(base.shape)"
        dispatch = {
            "Default": {"self": "grad.reshape(self.shape)"},
            "AutogradCUDA": {"self": "grad.reshape(self.shape) + 1"},
        }

    class _test_warn_in_autograd(Op):
        """A copy whose formula warns."""

        schema = "_test_warn_in_autograd(Tensor self) -> Tensor"
        run = "self.copy()"
        shape = "tuple(self.shape)"
        grad = {"self": "warn_backwards(grad)"}

    view = _test_autograd_multiple_dispatch_view
    derive_copies({"detached": view}, __name__)


@pytest.fixture(autouse=True)
def entries(tmp_path, monkeypatch):
    """The entries in the table, for the duration of a test."""
    monkeypatch.setitem(expression.BUILT_IN, "warn_backwards", warn_backwards)
    before = set(registry), set(families)
    define()
    path = tmp_path / "derivatives.yaml"
    path.write_text(CLASSIC, encoding="utf-8")
    derivatives.load(path)
    yield
    for name in set(registry) - before[0]:
        del registry[name]
    for name in set(families) - before[1]:
        del families[name]
        torch.ops.aten.__dict__.pop(name, None)


def backward(function, device: str | None = None):
    """The gradient of a function at ones, for the seed 1, 2, 3."""
    x, seed = torch.ones(3), torch.tensor([1.0, 2.0, 3.0])
    if device is not None:
        x, seed = (make(second.DeviceArray(np.array(t._payload))) for t in (x, seed))
    x.requires_grad_()
    out = function(x)
    (grad,) = torch.autograd.grad(out, x, seed)
    return grad.tolist()


def test_they_are_those_of_pytorch():
    with open(Path(__file__).parents[1] / "data" / "derivatives.tsv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    wanted = [r for r in rows if r["family"] == "test-only"]
    assert len(wanted) == 4
    for row in wanted:
        ours, schema = overload(row["op"]), Schema(row["schema"])
        assert [str(a) for a in ours.schema.args] == [str(a) for a in schema.args]
        keys = {part.partition("(")[0].strip() for part in row["dispatch_keys"].split("|")} - {"-"}
        found = set(derivative.derivatives_of(ours)) if not ours.is_composite else None
        assert found is None or found == keys | {derivative.DEFAULT}


def test_the_default_formula():
    call = torch.ops.aten._test_autograd_multiple_dispatch
    assert backward(call.fullcoverage) == [2, 3, 4]  # grad + 1
    assert backward(lambda x: call.ntonly(x, True)) == [1, 2, 3]
    _, tangent = func.jvp(call.fullcoverage, (torch.ones(3),), (torch.ones(3),))
    assert tangent.tolist() == [1, 1, 1]


def test_a_device_with_formulas_of_its_own(monkeypatch):
    call = torch.ops.aten._test_autograd_multiple_dispatch.fullcoverage
    assert backward(call, NAME) == [2, 3, 4]  # a device without a key uses the default
    monkeypatch.setitem(derivative.DEVICES, NAME, "AutogradCUDA")
    assert backward(call, NAME) == [2, 4, 6]
    assert backward(call) == [2, 3, 4]
    assert backward(torch.ops.aten._test_autograd_multiple_dispatch_view, NAME) == [2, 3, 4]


def test_views_and_their_copies():
    for name in ("", "_copy"):
        call = getattr(torch.ops.aten, f"_test_autograd_multiple_dispatch_view{name}")
        assert backward(call) == [1, 2, 3]
    x = torch.zeros(2, 2)
    torch.ops.aten._test_autograd_multiple_dispatch_view(x).fill_(1)
    assert x.tolist() == [[1, 1], [1, 1]]


def test_the_listing_keeps_the_keys():
    text = derivatives.dump(ops=["_test_autograd_multiple_dispatch.fullcoverage"])
    for part in ("  dispatch:", "    Default:", "    AutogradCUDA:", "    AutogradNestedTensor:"):
        assert part in text


def test_a_forward_formula_of_the_default_key_only(monkeypatch):
    monkeypatch.setitem(derivative.DEVICES, "cpu", "AutogradNestedTensor")
    call = torch.ops.aten._test_autograd_multiple_dispatch.fullcoverage
    assert backward(call) == [1, 4, 9]  # grad * grad


def test_a_warning_of_a_formula():
    with pytest.warns(UserWarning, match="warn from a gradient formula"):
        assert backward(torch.ops.aten._test_warn_in_autograd) == [1, 2, 3]
