"""Dtypes and promotion, against a table of what PyTorch 2.13 answers (`tests/data/promotion.json`).

The table has no complex32: nothing promotes to it here, and complex64 stands in its place.
"""

import copy
import json
import pathlib
import pickle

import numpy as np
import pytest

import pullback as torch
from pullback.array import dtype as dt

TABLE = json.loads((pathlib.Path(__file__).parents[1] / "data" / "promotion.json").read_text())
NAMES = TABLE["dtypes"]
NUMBERS = {"True": True, "3": 3, "2.5": 2.5, "1j": 1j}


def make(kind: str, name: str):
    """An operand: a tensor with dims, a 0-d tensor, or a Python number."""
    if kind == "number":
        return NUMBERS[name]
    return torch.ones((2,) if kind == "dims" else (), dtype=dt.by_name(name))


def differences(pairs) -> list:
    return [(what, got, expected) for what, got, expected in pairs if got != expected]


def test_all_dtypes_are_there():
    assert [d.name for d in dt.ALL if d.name != "complex32"] == NAMES
    for name in NAMES:
        assert getattr(torch, name) is dt.by_name(name)
        assert str(dt.by_name(name)) == f"torch.{name}"


def test_promote_types():
    assert not differences(
        ((a, b), torch.promote_types(dt.by_name(a), dt.by_name(b)).name, expected)
        for a in NAMES for b, expected in zip(NAMES, TABLE["promote_types"][a], strict=True))


def test_can_cast():
    assert not differences(
        ((a, b), torch.can_cast(dt.by_name(a), dt.by_name(b)), expected == "1")
        for a in NAMES for b, expected in zip(NAMES, TABLE["can_cast"][a], strict=True))


def operands(kinds):
    """Every pair of operands of two kinds: its dtypes, the operands, the dtype of a result."""
    first, second = kinds.split(",")
    for a, row in TABLE["result_type"][kinds].items():
        columns = row.items() if isinstance(row, dict) else zip(NAMES, row, strict=True)
        for b, expected in columns:
            yield (a, b), make(first, a), make(second, b), expected


@pytest.mark.parametrize("kinds", sorted(TABLE["result_type"]))
def test_result_type(kinds):
    first, second = kinds.split(",")
    found = []
    for dtypes, x, y, expected in operands(kinds):
        found.append((dtypes, torch.result_type(x, y).name, expected))
        if second == "number" and first != "number":
            found.append((("swapped", *dtypes), torch.result_type(y, x).name, expected))
    assert not differences(found)


@pytest.mark.parametrize("kinds", [k for k in sorted(TABLE["result_type"]) if "number,n" not in k])
def test_operators_follow_result_type(kinds):
    found = []
    for dtypes, x, y, expected in operands(kinds):
        found.append((dtypes, (x * y).dtype.name, expected))
        found.append(((*dtypes, "where"), torch.where(make("dims", "bool"), x, y).dtype.name,
                      expected))
    assert not differences(found)


@pytest.mark.parametrize("kind", ["dims", "zero"])
def test_default_dtype_decides_about_python_floats(kind):
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.get_default_dtype() is torch.float64
        assert not differences(
            ((a, b), torch.result_type(make(kind, a), NUMBERS[b]).name, expected)
            for a, row in TABLE["default_float64"][kind].items() for b, expected in row.items())
        assert torch.tensor(1.5).dtype is torch.float64
        assert torch.tensor(1.5j).dtype is torch.complex128
        assert torch.arange(3).sqrt().dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.tensor(1.5).dtype is torch.float32


def test_default_dtype_must_be_floating():
    with pytest.raises(TypeError, match="floating"):
        torch.set_default_dtype(torch.int64)
    assert torch.get_default_dtype() is torch.float32


CALLS = {
    "add 1": lambda x: x + 1, "add 1.5": lambda x: x + 1.5, "add True": lambda x: x + True,
    "div": lambda x: x / x, "div 2": lambda x: x / 2, "sqrt": lambda x: x.sqrt(),
    "sum": lambda x: x.sum(), "mean": lambda x: x.mean(), "prod": lambda x: x.prod(),
    "cumsum": lambda x: x.cumsum(0), "eq": lambda x: x == x, "abs": lambda x: x.abs(),
    "exp": lambda x: x.exp(), "neg": lambda x: -x, "pow 2": lambda x: x**2,
    "pow 0.5": lambda x: x**0.5, "rpow": lambda x: 2**x, "rdiv": lambda x: 1 / x,
    "where": lambda x: torch.where(x == x, x, 1.5),
    "where int": lambda x: torch.where(x == x, x, 1), "argmax": lambda x: x.argmax(),
    "any": lambda x: x.any(), "mul 1j": lambda x: x * 1j, "clamp": lambda x: x.clamp(0, 2),
    "clamp 1.5": lambda x: x.clamp(0, 1.5), "maximum": lambda x: torch.maximum(x, torch.ones(2)),
    "cat": lambda x: torch.cat([x, torch.ones(2, dtype=torch.int16)]),
    "stack f": lambda x: torch.stack([x, torch.ones(2)]), "var": lambda x: x.var(),
    "iadd 1.5": lambda x: x.clone().add_(1.5), "floordiv": lambda x: x // 2,
    "mod": lambda x: x % 2, "logical_not": lambda x: x.logical_not(), "sign": lambda x: x.sign(),
}


@pytest.mark.parametrize("name", NAMES)
def test_result_dtypes_of_operators(name):
    found = []
    for call, expected in TABLE["operators"][name].items():
        try:
            got = CALLS[call](torch.ones(2, dtype=dt.by_name(name))).dtype.name
        except (RuntimeError, TypeError):
            got = "error"
        found.append((call, got, expected))
    assert not differences(found)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_half_precision_computes_in_float32(name):
    """Partial sums beyond the range and the resolution of the dtype survive."""
    x = torch.full((4096,), 1.0, dtype=dt.by_name(name))
    assert x.sum().item() == 4096.0
    assert x.sum().dtype.name == name
    tall = torch.full((300,), 300.0, dtype=dt.by_name(name))
    assert tall.mean().item() == 300.0
    assert abs((x / 3).float().numpy() - 1 / 3).max() < 2e-3


def test_of_numpy_and_python_types():
    assert dt.of(np.dtype(">f4")) is torch.float32
    assert dt.as_dtype(float) is torch.float64
    assert dt.as_dtype(int) is torch.int64
    assert dt.as_dtype(bool) is torch.bool
    assert dt.as_dtype(complex) is torch.complex128
    assert dt.as_dtype(np.float64) is torch.float64
    assert dt.as_dtype(None) is None
    with pytest.raises(TypeError, match="no dtype"):
        dt.of(np.dtype("U3"))


def test_facts():
    assert torch.float is torch.float32 and torch.double is torch.float64
    assert torch.half is torch.float16 and torch.long is torch.int64 and torch.int is torch.int32
    assert torch.bfloat16.itemsize == 2 and torch.complex128.itemsize == 16
    assert torch.float16.is_floating_point and not torch.complex64.is_floating_point
    assert torch.complex64.is_complex and torch.int8.is_signed and not torch.uint8.is_signed
    assert torch.complex64.to_real() is torch.float32
    assert torch.float64.to_complex() is torch.complex128
    assert pickle.loads(pickle.dumps(torch.bfloat16)) is torch.bfloat16
    assert copy.deepcopy(torch.int8) is torch.int8


def test_finfo_and_iinfo():
    assert torch.finfo(torch.float32).eps == 2.0**-23
    assert torch.finfo(torch.bfloat16).eps == 2.0**-7
    assert torch.finfo(torch.float16).max == 65504.0
    assert torch.finfo(torch.complex128).bits == 64
    assert torch.finfo().dtype == "float32"
    assert (torch.iinfo(torch.int8).min, torch.iinfo(torch.int8).max) == (-128, 127)
    with pytest.raises(TypeError):
        torch.finfo(torch.int32)
    with pytest.raises(TypeError):
        torch.iinfo(torch.float32)


def test_limits_take_python_types_and_print_their_facts():
    assert repr(torch.finfo(float)) == (
        "finfo(resolution=1e-15, min=-1.79769e+308, max=1.79769e+308, eps=2.22045e-16, "
        "smallest_normal=2.22507e-308, tiny=2.22507e-308, dtype=float64)")
    assert str(torch.iinfo(int)) == "iinfo(min=-9.22337e+18, max=9.22337e+18, dtype=int64)"
    assert repr(torch.iinfo(torch.int8)) == "iinfo(min=-128, max=127, dtype=int8)"
    assert torch.finfo(complex) == torch.finfo(torch.float64) != torch.finfo(torch.float32)
    assert torch.finfo(type=torch.float16).eps == 2.0**-10
    for call in (lambda: torch.iinfo(bool), lambda: torch.finfo(int), lambda: torch.iinfo(float)):
        with pytest.raises(TypeError, match=r"requires|supported"):
            call()
    with pytest.raises(TypeError, match=r"finfo\(\): argument 'type' \(position 1\) must be torch"):
        torch.finfo("float32")


def test_promotion_takes_python_types():
    assert torch.promote_types(float, torch.int32) is torch.float64
    assert torch.promote_types(torch.float16, int) is torch.float16
    assert torch.promote_types(bool, complex) is torch.complex128
    assert not torch.can_cast(float, torch.int32) and torch.can_cast(torch.int8, float)
    with pytest.raises(TypeError, match=r"'type1' \(position 1\) must be torch.dtype, not str"):
        torch.promote_types("float32", torch.int32)
