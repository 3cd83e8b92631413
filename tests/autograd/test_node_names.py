"""Names of nodes, which users see in `grad_fn`, are PyTorch's.

`data/node_names.json` holds the name that PyTorch 2.13 gives to the node of each entry of its
table: the operator in title case, "Backward" and a number among the entries of one name.
"""

import json
import pathlib

import pytest

import pullback as torch
from pullback.core.formula import Rule, node_name
from pullback.core.op import registry

RECORDED = json.loads((pathlib.Path(__file__).parents[1] / "data/node_names.json").read_text())


def inplace(name):
    base, dot, overload = name.partition(".")
    return f"{base}_{dot}{overload}"


SHARED = sorted(
    name
    for name, op in registry.items()
    if Rule.exists(op) and (name in RECORDED or inplace(name) in RECORDED)
)


def test_there_is_something_to_compare():
    assert len(SHARED) > 400


@pytest.mark.parametrize("name", SHARED)
def test_name(name):
    assert node_name(registry[name]) == RECORDED.get(name, RECORDED.get(inplace(name)))


EXPRESSIONS = {
    "x ** 2": "PowBackward0", "x ** y": "PowBackward1", "2 ** x": "PowBackward2",
    "x + y": "AddBackward0", "x + 1": "AddBackward0", "x - y": "SubBackward0",
    "1 - x": "RsubBackward1", "x * y": "MulBackward0", "x / y": "DivBackward0",
    "torch.div(x, y, rounding_mode='floor')": "DivBackward2", "x % 2": "RemainderBackward0",
    "x % y": "RemainderBackward1", "torch.fmod(x, 2)": "FmodBackward0",
    "x.max()": "MaxBackward1", "x.max(1)[0]": "MaxBackward0", "torch.max(x, y)": "MaximumBackward0",
    "x.sum()": "SumBackward0", "x.sum(1)": "SumBackward1", "x.mean()": "MeanBackward0",
    "x.mean(1)": "MeanBackward1", "x.prod()": "ProdBackward0", "x.prod(1)": "ProdBackward1",
    "x.norm()": "LinalgVectorNormBackward0", "x.std()": "StdBackward0", "x.var(1)": "VarBackward0",
    "x.clamp(0, 1)": "ClampBackward1", "x.clamp(y, y + 1)": "ClampBackward0",
    "x.clamp_min(0)": "ClampMinBackward0", "x.clamp_min(y)": "ClampMinBackward1",
    "torch.lerp(x, y, 0.5)": "LerpBackward0", "torch.lerp(x, y, x)": "LerpBackward1",
    "x.masked_fill(x > 0, 0.0)": "MaskedFillBackward0", "x.log1p()": "Log1PBackward0",
    "torch.where(x > 0, x, y)": "WhereBackward0", "torch.where(x > 0, x, 0.0)": "WhereBackward0",
    "x @ y": "MmBackward0", "x.T": "PermuteBackward0", "x[0]": "SelectBackward0",
    "x[:1]": "SliceBackward0", "x[[0, 1]]": "IndexBackward0", "x.view(4)": "ViewBackward0",
    "torch.nn.functional.max_pool2d(x[None], 2)": "MaxPool2DWithIndicesBackward0",
    "torch.nn.functional.conv1d(x[None], y[None])": "ConvolutionBackward0",
    "torch.fft.fft(x).real": "SelectBackward0", "torch.fft.fft(x).abs()": "AbsBackward0",
    "torch.special.xlog1py(x, y)": "SpecialXlog1PyBackward0",
    "x.clone().zero_()": "ZeroBackward0", "x.clone().pow_(2)": "PowBackward0",
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expression(text):
    x = torch.tensor([[0.1, 0.2], [0.3, 0.4]], requires_grad=True)
    y = torch.tensor([[0.5, 0.6], [0.7, 0.8]], requires_grad=True)
    found = eval(text, {"torch": torch, "x": x, "y": y}).grad_fn.name()
    assert found == EXPRESSIONS[text]


def test_saved_values_are_properties_of_the_class_of_nodes():
    """A `__getattr__` of the class would make every attribute of a node slow to read."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    node = (x * torch.tensor([3.0, 4.0])).grad_fn
    assert not hasattr(type(node), "__getattr__")
    assert {"_saved_other", "_raw_saved_other"} <= {*dir(node)}
    assert node._saved_other.tolist() == [3.0, 4.0] and node._saved_self is None
    assert x.sum().grad_fn._saved_self_sym_sizes == (2,) == x.sum().grad_fn._saved_self_sizes
    with pytest.raises(AttributeError, match="_saved_third"):
        node._saved_third
