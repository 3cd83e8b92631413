"""Writes on diagonals become C: the rows that a diagonal crosses choose between it and the rest."""

import pytest

import pullback as torch


@pytest.mark.parametrize("shape, dims", [((3, 5), (0, 1)), ((5, 3), (0, 1)), ((2, 3, 4), (2, 0))])
def test_diagonals(shape, dims):
    torch.manual_seed(0)
    for offset in (-2, -1, 0, 1, 2):
        x = torch.randn(*shape)
        s = torch.randn(*x.diagonal(offset, *dims).shape)

        def f(x, s, offset=offset):
            y = x * 2
            y.diagonal(offset, *dims).mul_(s)
            return torch.diagonal_scatter(y, s, offset, *dims) + y

        compiled = torch.compile(f)
        results = []
        for g in (compiled, f):
            a, b = x.clone().requires_grad_(), s.clone().requires_grad_()
            out = g(a, b)
            out.exp().sum().backward()
            results.append((out, a.grad, b.grad))
        for one, two in zip(*results):
            assert torch.allclose(one, two, atol=1e-6)
        assert all(not part.report["externs"] for part in compiled.parts().values())
