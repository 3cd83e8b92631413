"""Values that a kernel stores and also reads elsewhere: another kernel reads them."""

import pullback as torch


def test_triangles_of_a_wide_factor():
    def f(x):
        return torch.linalg.qr(x)[1].sin().sum() + torch.linalg.qr(x)[0].sin().sum()

    x = (torch.arange(12.0, dtype=torch.float64).reshape(3, 4) * 1.7).sin().requires_grad_()
    expected, = torch.autograd.grad(f(x), x)
    found, = torch.autograd.grad(torch.compile(f)(x), x)
    torch.testing.assert_close(found, expected)
