"""Printing tensors. The expected texts were recorded from PyTorch 2.13."""

import ml_dtypes
import numpy as np
import pytest

from pullback import printing
from pullback.printing import opaque_repr, set_printoptions, tensor_repr

# expression, dtype, "r" requires grad or "g" has a grad_fn, print options, default dtype, text
# fmt: off
CASES = [
    ("3.0", "float32", "", "", "float32", "tensor(3.)"),
    ("-0.0", "float32", "", "", "float32", "tensor(-0.)"),
    ("1.5", "float32", "", "", "float32", "tensor(1.5000)"),
    ("nan", "float32", "", "", "float32", "tensor(nan)"),
    ("-inf", "float32", "", "", "float32", "tensor(-inf)"),
    ("1e-9", "float32", "", "", "float32", "tensor(1.0000e-09)"),
    ("123456789.0", "float32", "", "", "float32", "tensor(1.2346e+08)"),
    ("7", "int64", "", "", "float32", "tensor(7)"),
    ("True", "bool", "", "", "float32", "tensor(True)"),
    ("1+2j", "complex64", "", "", "float32", "tensor(1.+2.j)"),
    ("7", "int32", "", "", "float32", "tensor(7, dtype=torch.int32)"),
    ("[1.0, 2.0, 3.0]", "float32", "", "", "float32", "tensor([1., 2., 3.])"),
    ("[1.5, 2.0, -3.25]", "float32", "", "", "float32", "tensor([ 1.5000,  2.0000, -3.2500])"),
    ("[1.0, inf, nan]", "float32", "", "", "float32", "tensor([1., inf, nan])"),
    ("[0.1, nan, -inf]", "float32", "", "", "float32", "tensor([0.1000,    nan,   -inf])"),
    ("[0.0, 0.0]", "float32", "", "", "float32", "tensor([0., 0.])"),
    ("[1e-5, 1.0]", "float32", "", "", "float32", "tensor([1.0000e-05, 1.0000e+00])"),
    ("[1.0, 1001.0]", "float32", "", "", "float32", "tensor([1.0000e+00, 1.0010e+03])"),
    ("[1.0, 1000.0]", "float32", "", "", "float32", "tensor([   1., 1000.])"),
    ("[1e8, 1e9]", "float32", "", "", "float32", "tensor([1.0000e+08, 1.0000e+09])"),
    ("[99999.5, 1e3]", "float32", "", "", "float32", "tensor([99999.5000,  1000.0000])"),
    ("[0.00012, 0.5]", "float32", "", "", "float32", "tensor([1.2000e-04, 5.0000e-01])"),
    ("[1.0, 2.5]", "float64", "", "", "float32", "tensor([1.0000, 2.5000], dtype=torch.float64)"),
    ("[1.0, 2.5]", "float64", "", "", "float64", "tensor([1.0000, 2.5000])"),
    ("[1.0, 2.5]", "float32", "", "", "float64", "tensor([1.0000, 2.5000], dtype=torch.float32)"),
    ("[1.0, 2.5]", "float16", "", "", "float32", "tensor([1.0000, 2.5000], dtype=torch.float16)"),
    ("[1.0, 0.1]", "bfloat16", "", "", "float32",
     "tensor([1.0000, 0.1001], dtype=torch.bfloat16)"),
    ("[65504.0, 0.001]", "float16", "", "", "float32",
     "tensor([6.5504e+04, 1.0004e-03], dtype=torch.float16)"),
    ("[1, -20, 300]", "int64", "", "", "float32", "tensor([  1, -20, 300])"),
    ("[1, 20, 255]", "uint8", "", "", "float32", "tensor([  1,  20, 255], dtype=torch.uint8)"),
    ("[True, False]", "bool", "", "", "float32", "tensor([ True, False])"),
    ("[[True, False], [False, False]]", "bool", "", "", "float32",
     "tensor([[ True, False],\n"
     "        [False, False]])"),
    ("[1+2j, -3.5-0.25j]", "complex64", "", "", "float32",
     "tensor([ 1.0000+2.0000j, -3.5000-0.2500j])"),
    ("[1+2j, -3.5-0.25j]", "complex128", "", "", "float32",
     "tensor([ 1.0000+2.0000j, -3.5000-0.2500j], dtype=torch.complex128)"),
    ("[complex(nan, 1), complex(0, -inf)]", "complex64", "", "", "float32",
     "tensor([nan+1.j, 0.-infj])"),
    ("[1e-9+1j, 2e5-3j]", "complex64", "", "", "float32",
     "tensor([1.0000e-09+1.j, 2.0000e+05-3.j])"),
    ("zeros((0,))", "float32", "", "", "float32", "tensor([])"),
    ("zeros((0, 3))", "float32", "", "", "float32", "tensor([], size=(0, 3))"),
    ("zeros((2, 0, 3))", "int64", "", "", "float32",
     "tensor([], size=(2, 0, 3), dtype=torch.int64)"),
    ("zeros((0,))", "int64", "", "", "float32", "tensor([], dtype=torch.int64)"),
    ("zeros((0,))", "bool", "", "", "float32", "tensor([], dtype=torch.bool)"),
    ("zeros((0, 2))", "float64", "", "", "float32",
     "tensor([], size=(0, 2), dtype=torch.float64)"),
    ("zeros((0,))", "float32", "r", "", "float32", "tensor([], requires_grad=True)"),
    ("[[1.0, 2.0], [3.0, 4.0]]", "float32", "", "", "float32",
     "tensor([[1., 2.],\n"
     "        [3., 4.]])"),
    ("arange(8).reshape(2, 2, 2) / 4", "float32", "", "", "float32",
     "tensor([[[0.0000, 0.2500],\n"
     "         [0.5000, 0.7500]],\n"
     "\n"
     "        [[1.0000, 1.2500],\n"
     "         [1.5000, 1.7500]]])"),
    ("arange(16).reshape(2, 2, 2, 2)", "int64", "", "", "float32",
     "tensor([[[[ 0,  1],\n"
     "          [ 2,  3]],\n"
     "\n"
     "         [[ 4,  5],\n"
     "          [ 6,  7]]],\n"
     "\n"
     "\n"
     "        [[[ 8,  9],\n"
     "          [10, 11]],\n"
     "\n"
     "         [[12, 13],\n"
     "          [14, 15]]]])"),
    ("arange(30) / 7", "float32", "", "", "float32",
     "tensor([0.0000, 0.1429, 0.2857, 0.4286, 0.5714, 0.7143, 0.8571, 1.0000, 1.1429,\n"
     "        1.2857, 1.4286, 1.5714, 1.7143, 1.8571, 2.0000, 2.1429, 2.2857, 2.4286,\n"
     "        2.5714, 2.7143, 2.8571, 3.0000, 3.1429, 3.2857, 3.4286, 3.5714, 3.7143,\n"
     "        3.8571, 4.0000, 4.1429])"),
    ("arange(30)", "int64", "", "", "float32",
     "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
     "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])"),
    ("arange(24).reshape(2, 12) / 3", "float32", "", "", "float32",
     "tensor([[0.0000, 0.3333, 0.6667, 1.0000, 1.3333, 1.6667, 2.0000, 2.3333, 2.6667,\n"
     "         3.0000, 3.3333, 3.6667],\n"
     "        [4.0000, 4.3333, 4.6667, 5.0000, 5.3333, 5.6667, 6.0000, 6.3333, 6.6667,\n"
     "         7.0000, 7.3333, 7.6667]])"),
    ("arange(2000)", "int64", "", "", "float32",
     "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])"),
    ("arange(2000) / 8", "float32", "", "", "float32",
     "tensor([0.0000e+00, 1.2500e-01, 2.5000e-01,  ..., 2.4962e+02, 2.4975e+02,\n"
     "        2.4988e+02])"),
    ("arange(10000).reshape(100, 100)", "int64", "", "", "float32",
     "tensor([[   0,    1,    2,  ...,   97,   98,   99],\n"
     "        [ 100,  101,  102,  ...,  197,  198,  199],\n"
     "        [ 200,  201,  202,  ...,  297,  298,  299],\n"
     "        ...,\n"
     "        [9700, 9701, 9702,  ..., 9797, 9798, 9799],\n"
     "        [9800, 9801, 9802,  ..., 9897, 9898, 9899],\n"
     "        [9900, 9901, 9902,  ..., 9997, 9998, 9999]])"),
    ("arange(4096).reshape(2, 32, 64) / 2", "float32", "", "", "float32",
     "tensor([[[0.0000e+00, 5.0000e-01, 1.0000e+00,  ..., 3.0500e+01,\n"
     "          3.1000e+01, 3.1500e+01],\n"
     "         [3.2000e+01, 3.2500e+01, 3.3000e+01,  ..., 6.2500e+01,\n"
     "          6.3000e+01, 6.3500e+01],\n"
     "         [6.4000e+01, 6.4500e+01, 6.5000e+01,  ..., 9.4500e+01,\n"
     "          9.5000e+01, 9.5500e+01],\n"
     "         ...,\n"
     "         [9.2800e+02, 9.2850e+02, 9.2900e+02,  ..., 9.5850e+02,\n"
     "          9.5900e+02, 9.5950e+02],\n"
     "         [9.6000e+02, 9.6050e+02, 9.6100e+02,  ..., 9.9050e+02,\n"
     "          9.9100e+02, 9.9150e+02],\n"
     "         [9.9200e+02, 9.9250e+02, 9.9300e+02,  ..., 1.0225e+03,\n"
     "          1.0230e+03, 1.0235e+03]],\n"
     "\n"
     "        [[1.0240e+03, 1.0245e+03, 1.0250e+03,  ..., 1.0545e+03,\n"
     "          1.0550e+03, 1.0555e+03],\n"
     "         [1.0560e+03, 1.0565e+03, 1.0570e+03,  ..., 1.0865e+03,\n"
     "          1.0870e+03, 1.0875e+03],\n"
     "         [1.0880e+03, 1.0885e+03, 1.0890e+03,  ..., 1.1185e+03,\n"
     "          1.1190e+03, 1.1195e+03],\n"
     "         ...,\n"
     "         [1.9520e+03, 1.9525e+03, 1.9530e+03,  ..., 1.9825e+03,\n"
     "          1.9830e+03, 1.9835e+03],\n"
     "         [1.9840e+03, 1.9845e+03, 1.9850e+03,  ..., 2.0145e+03,\n"
     "          2.0150e+03, 2.0155e+03],\n"
     "         [2.0160e+03, 2.0165e+03, 2.0170e+03,  ..., 2.0465e+03,\n"
     "          2.0470e+03, 2.0475e+03]]])"),
    ("ones((1, 1, 3000))", "float32", "", "", "float32",
     "tensor([[[1., 1., 1.,  ..., 1., 1., 1.]]])"),
    ("ones((1001, 1))", "float32", "", "", "float32",
     "tensor([[1.],\n"
     "        [1.],\n"
     "        [1.],\n"
     "        ...,\n"
     "        [1.],\n"
     "        [1.],\n"
     "        [1.]])"),
    ("[1.0, 2.0]", "float32", "r", "", "float32", "tensor([1., 2.], requires_grad=True)"),
    ("[1.0, 2.0]", "float32", "g", "", "float32", "tensor([1., 2.], grad_fn=<MulBackward0>)"),
    ("3.0", "float32", "g", "", "float32", "tensor(3., grad_fn=<MulBackward0>)"),
    ("[1.0, 2.5]", "float64", "g", "", "float32",
     "tensor([1.0000, 2.5000], dtype=torch.float64, grad_fn=<MulBackward0>)"),
    ("arange(11) / 3", "float32", "g", "", "float32",
     "tensor([0.0000, 0.3333, 0.6667, 1.0000, 1.3333, 1.6667, 2.0000, 2.3333, 2.6667,\n"
     "        3.0000, 3.3333], grad_fn=<MulBackward0>)"),
    ("arange(11) / 3", "float64", "g", "", "float32",
     "tensor([0.0000, 0.3333, 0.6667, 1.0000, 1.3333, 1.6667, 2.0000, 2.3333, 2.6667,\n"
     "        3.0000, 3.3333], dtype=torch.float64, grad_fn=<MulBackward0>)"),
    ("arange(9) / 3", "float64", "r", "", "float32",
     "tensor([0.0000, 0.3333, 0.6667, 1.0000, 1.3333, 1.6667, 2.0000, 2.3333, 2.6667],\n"
     "       dtype=torch.float64, requires_grad=True)"),
    ("[[0.5, 0.25]]", "float64", "r", "", "float32",
     "tensor([[0.5000, 0.2500]], dtype=torch.float64, requires_grad=True)"),
    ("[3.14159265, 2.0]", "float32", "", "precision=2", "float32", "tensor([3.14, 2.00])"),
    ("[3.14159265, 2.0]", "float64", "", "precision=8", "float32",
     "tensor([3.14159265, 2.00000000], dtype=torch.float64)"),
    ("arange(10) / 4", "float32", "", "threshold=5", "float32",
     "tensor([0.0000, 0.2500, 0.5000,  ..., 1.7500, 2.0000, 2.2500])"),
    ("arange(10) / 4", "float32", "", "threshold=5, edgeitems=1", "float32",
     "tensor([0.0000,  ..., 2.2500])"),
    ("arange(10) / 4", "float32", "", "linewidth=30", "float32",
     "tensor([0.0000, 0.2500,\n"
     "        0.5000, 0.7500,\n"
     "        1.0000, 1.2500,\n"
     "        1.5000, 1.7500,\n"
     "        2.0000, 2.2500])"),
    ("[1.0, 2.0]", "float32", "", "sci_mode=True", "float32", "tensor([1.0000e+00, 2.0000e+00])"),
    ("[1e-6, 1.0]", "float32", "", "sci_mode=False", "float32", "tensor([0.0000, 1.0000])"),
    ("[1e-6, 1.0]", "float32", "g", "linewidth=20", "float32",
     "tensor([1.0000e-06,\n"
     "        1.0000e+00],\n"
     "       grad_fn=<MulBackward0>)"),
    ("arange(2000) / 8", "float32", "", "profile='short'", "float32",
     "tensor([0.00e+00, 1.25e-01,  ..., 2.50e+02, 2.50e+02])"),
    ("[1/3]", "float32", "", "profile='short'", "float32", "tensor([0.33])"),
    ("ones((3, 400))", "float32", "", "profile='full', threshold=7, edgeitems=2", "float32",
     "tensor([[1., 1.,  ..., 1., 1.],\n"
     "        [1., 1.,  ..., 1., 1.],\n"
     "        [1., 1.,  ..., 1., 1.]])"),
    ("[0.0, 1+1j]", "complex64", "g", "precision=1", "float32",
     "tensor([0.+0.j, 1.+1.j], grad_fn=<MulBackward0>)"),
]
# fmt: on

NAMES = {"nan": np.nan, "inf": np.inf, "zeros": np.zeros, "arange": np.arange, "ones": np.ones}


@pytest.fixture(autouse=True)
def default_options():
    yield
    set_printoptions(profile="default")


@pytest.mark.parametrize("expression, dtype, flag, options, default, text", CASES)
def test_text_is_pytorchs(expression, dtype, flag, options, default, text):
    array = np.asarray(eval(expression, dict(NAMES)))
    array = array.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    if options:
        set_printoptions(**eval(f"dict({options})"))
    assert text == tensor_repr(
        array,
        dtype,
        requires_grad=bool(flag),
        grad_fn_name="MulBackward0" if flag == "g" else None,
        default_dtype=default,
    )


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
