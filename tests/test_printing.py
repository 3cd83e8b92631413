"""Printing tensors. The expected texts were recorded from PyTorch 2.13."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from pullback import printing
from pullback.printing import opaque_repr, set_printoptions, tensor_repr
from tests.helpers import texts

# expression, dtype, "r" requires grad or "g" has a grad_fn, print options, default dtype -> text
CASES = texts.read(Path(__file__).parent / "data/printed_tensors.txt")

NAMES = {"nan": np.nan, "inf": np.inf, "zeros": np.zeros, "arange": np.arange, "ones": np.ones}


@pytest.fixture(autouse=True)
def default_options():
    yield
    set_printoptions(profile="default")


@pytest.mark.parametrize("case", CASES)
def test_text_is_pytorchs(case):
    expression, dtype, flag, options, default = case.split(" | ")
    array = np.asarray(eval(expression, dict(NAMES)))
    array = array.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    if options:
        set_printoptions(**eval(f"dict({options})"))
    found = tensor_repr(
        array, dtype, requires_grad=bool(flag), default_dtype=default,
        grad_fn_name="MulBackward0" if flag == "g" else None)
    texts.check(case, {"text": found}, CASES[case])


def test_prefix_moves_the_columns():
    text = tensor_repr(np.eye(2, dtype=np.float32), "float32", prefix="Parameter(")
    assert text == "Parameter([[1., 0.],\n           [0., 1.]])"


def test_device_is_named_unless_it_is_the_cpu():
    array = np.ones(2, np.float32)
    assert tensor_repr(array, "float32", device="cuda:0") == "tensor([1., 1.], device='cuda:0')"


def test_tensors_without_values():
    assert opaque_repr((2, 3), "float32") == "tensor(..., device='meta', size=(2, 3))"
    assert opaque_repr((2,), "float64", grad_fn_name="MulBackward0") == (
        "tensor(..., device='meta', size=(2,), dtype=torch.float64,\n"
        "       grad_fn=<MulBackward0>)"
    )
    assert opaque_repr((), "int64", device="cpu", prefix="FakeTensor(") == (
        "FakeTensor(..., size=())"
    )


def test_options_stay_until_set_and_profiles_reset_them():
    set_printoptions(precision=2, linewidth=40)
    set_printoptions(edgeitems=1)
    assert printing.get_printoptions() == printing.PrintOptions(2, 1000, 1, 40, None)
    set_printoptions(profile="short")
    assert printing.get_printoptions() == printing.PrintOptions(2, 1000, 2, 80, None)
    with pytest.raises(ValueError, match="profile is 'tiny'"):
        set_printoptions(profile="tiny")
    assert printing.get_printoptions().edgeitems == 2


def test_huge_tensors_print_quickly_because_only_edges_are_looked_at():
    array = np.broadcast_to(np.float32(0.5), (10_000, 10_000, 100))
    assert tensor_repr(array, "float32").count("...") == 43
