"""`utils.mkldnn.to_mkldnn`, and `Tensor.to_mkldnn`: ordinary tensors and the same numbers."""

import copy
import pickle

import pytest

import pullback as torch
from pullback import errors
from pullback.utils import mkldnn


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, stride=2, padding=1, groups=1, bias=False),
        torch.nn.BatchNorm2d(8), torch.nn.PReLU(),
        torch.nn.Sequential(torch.nn.Conv2d(8, 8, 3, groups=2, dilation=2), torch.nn.ReLU()),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 5))


def test_a_network():
    plain, x = network(), torch.randn(2, 3, 16, 16)
    plain(x)  # running statistics
    plain.eval()
    wanted = plain(x)
    made = mkldnn.to_mkldnn(copy.deepcopy(plain))
    kinds = [type(m).__name__ for m in made.modules()]
    assert [k for k in kinds if k.startswith("Mkldnn")] == [
        "MkldnnConv2d", "MkldnnBatchNorm", "MkldnnPrelu", "MkldnnConv2d", "MkldnnLinear"]
    assert not list(made.parameters()) and made[0].weight.dtype is torch.float32
    assert torch.allclose(made(x), wanted, rtol=0, atol=1e-6)
    assert torch.allclose(torch.compile(made)(x), wanted, rtol=0, atol=1e-6)
    again = pickle.loads(pickle.dumps(made))
    assert torch.equal(again(x), made(x))
    leaf = x.clone().requires_grad_()
    grad, = torch.autograd.grad(made(leaf).sum(), leaf)
    grad_wanted, = torch.autograd.grad(plain(leaf).sum(), leaf)
    assert torch.allclose(grad, grad_wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("dims", [1, 3])
def test_other_convolutions(dims):
    conv = getattr(torch.nn, f"Conv{dims}d")(2, 4, 3, padding=1)
    x = torch.randn(2, 2, *[5] * dims)
    made = mkldnn.to_mkldnn(conv)
    assert type(made) is getattr(mkldnn, f"MkldnnConv{dims}d")
    assert torch.allclose(made(x), conv(x))


def test_half_precision_keeps_the_bias_in_float32():
    layer = torch.nn.Linear(4, 3)
    made = mkldnn.to_mkldnn(layer, torch.bfloat16)
    assert made.weight.dtype is torch.bfloat16 and made.bias.dtype is torch.float32
    x = torch.randn(2, 4)
    out = made(x.bfloat16())
    assert out.dtype is torch.bfloat16 and torch.allclose(out.float(), layer(x), atol=0.05)


def test_what_is_refused():
    norm, conv = torch.nn.BatchNorm2d(2), torch.nn.Conv2d(2, 2, 3, padding="same")
    for run, said in (
        (lambda: mkldnn.to_mkldnn(norm), "eval mode"),
        (lambda: mkldnn.to_mkldnn(torch.nn.BatchNorm2d(2, affine=False).eval()), "affine=True"),
        (lambda: mkldnn.to_mkldnn(conv), "padding"),
        (lambda: mkldnn.to_mkldnn(norm.eval(), torch.float64), "float, bfloat16, and half"),
    ):
        with pytest.raises(AssertionError, match=said) as caught:
            run()
        assert isinstance(caught.value, errors.LayerRefused)
        assert "test_mkldnn.py" in str(caught.value) and "Fix:" in str(caught.value)


def test_tensors_are_ordinary():
    x = torch.randn(2, 3, requires_grad=True)
    y = x.to_mkldnn()
    assert y.layout is torch.strided and not y.is_mkldnn and y.data_ptr() != x.data_ptr()
    assert torch.equal(y, x) and y.to_dense() is y
    half = x.to_mkldnn(torch.bfloat16)
    assert half.dtype is torch.bfloat16
    half.to_dense(torch.float32).sum().backward()
    assert x.grad.tolist() == [[1.0] * 3] * 2
    with pytest.raises(errors.DTypeError, match=r"dense_to_mkldnn expects float.*int32.*mkldnn.py"):
        torch.ones(2, dtype=torch.int32).to_mkldnn()
    assert torch.equal(torch._C._nn.mkldnn_linear(x, x), torch.nn.functional.linear(x, x))
