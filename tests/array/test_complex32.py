"""complex32: a format to store complex numbers in, computed with as complex64."""

import numpy as np
import pytest

import pullback as torch
from pullback.array import dtype as dt
from pullback.autograd import grad

if not hasattr(torch, "complex32"):
    pytest.skip("ml_dtypes is too old", allow_module_level=True)


def sample(*shape):
    random = np.random.default_rng(1)
    values = random.normal(size=shape) + 1j * random.normal(size=shape)
    return torch.tensor(values, dtype=torch.complex64)


def close(half, full):
    assert half.shape == full.shape
    kept = half.to(torch.complex64 if half.dtype.is_complex else torch.float32)
    np.testing.assert_allclose(kept.numpy(), full.numpy(force=True), rtol=5e-3, atol=5e-3)


def test_conversion():
    x = sample(2, 3)
    assert x.chalf().dtype is torch.complex32 is torch.chalf
    assert x.chalf().chalf().element_size() == 4
    close(x.chalf(), x)
    close(x.chalf().T.to(torch.complex128).to(torch.complex64).T.chalf(), x)
    close(torch.ones(2).chalf(), torch.ones(2, dtype=torch.complex64))
    assert x.chalf().half().dtype is torch.float16
    assert x.chalf()[0, 0].item() == pytest.approx(x[0, 0].item(), abs=1e-2)
    assert "torch.complex32" in repr(x.chalf())


def test_parts():
    x = sample(2, 3)
    y = x.chalf()
    assert y.real.dtype is y.imag.dtype is y.abs().dtype is torch.float16
    close(y.real, x.real)
    close(y.T.imag, x.T.imag)
    close(y.angle(), x.angle())
    close(torch.view_as_complex(torch.view_as_real(y)), x)
    y.real.zero_()
    close(y, 1j * x.imag)


def test_arithmetic():
    x, y = sample(3), sample(3).flip(0)
    for function in (torch.add, torch.mul, torch.div, torch.sub):
        assert function(x.chalf(), y.chalf()).dtype is torch.complex32
        close(function(x.chalf(), y.chalf()), function(x, y))
    close(x.chalf().exp(), x.exp())
    close(x.chalf().conj(), x.conj())
    close(x.chalf().sum(), x.sum())
    close(torch.stack([x.chalf(), y.chalf()])[:, 1:], torch.stack([x, y])[:, 1:])


def test_promotion():
    """Nothing becomes complex32 that was not."""
    x = torch.ones(2, dtype=torch.complex32)
    for other, expected in (
        (torch.float16, "complex32"),
        (torch.int64, "complex32"),
        (torch.bfloat16, "complex64"),
        (torch.float32, "complex64"),
        (torch.float64, "complex128"),
        (torch.complex128, "complex128"),
    ):
        assert (x + torch.ones(2, dtype=other)).dtype.name == expected
        assert torch.promote_types(torch.complex32, other).name == expected
    assert (torch.ones(2, dtype=torch.float16) * 1j).dtype is torch.complex64
    assert torch.complex32.to_real() is torch.float16
    assert dt.as_dtype(torch.complex32.np) is torch.complex32


def test_gradient_of_the_conversion():
    x = sample(3).requires_grad_()
    seed = sample(3).flip(0)
    (g,) = grad(x.chalf(), [x], [seed.chalf()])
    assert g.dtype is torch.complex64
    close(g.chalf(), seed)


def test_gradients_are_conjugated():
    x, y = sample(3).requires_grad_(), sample(3).flip(0)
    half = x.detach().chalf().requires_grad_()
    for function in (lambda x, y: x * y, lambda x, y: (x * x / y).exp(), torch.dot):
        full = function(x, y)
        (g,) = grad(full, [x], [torch.ones_like(full)])
        out = function(half, y.chalf())
        (h,) = grad(out, [half], [torch.ones_like(out)])
        np.testing.assert_allclose(h.to(g.dtype).numpy(), g.numpy(), rtol=0.05, atol=0.05)


def test_captured():
    x = sample(2, 3)
    close(torch.compile(lambda x: x.chalf().T * 2)(x), x.T * 2)
    close(torch.vmap(lambda x: x.chalf())(x), x)


def test_captured_for_any_size():
    pairs = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).half().requires_grad_()
    out = torch.compile(lambda x: torch.view_as_real(torch.view_as_complex_copy(x)) * 2,
                        dynamic=True, backend="numpy")(pairs)
    assert out.tolist() == [[2, 4], [6, 8]]
    assert grad(out.sum(), pairs)[0].tolist() == [[2, 2], [2, 2]]
