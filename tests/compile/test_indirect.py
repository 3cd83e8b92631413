"""Native loads through indices: those that are the same in all lanes of a vector, and others."""

from __future__ import annotations

import pytest

import pullback as torch


@pytest.mark.parametrize("function", [
    lambda i, a, b: (a[i].unsqueeze(-1) * torch.arange(8.0)).sum(0) + b[i].sum(0),
    lambda i, a, b: (b[i].sum(0) * 2).relu() + (a[i][..., None] * torch.arange(8.0)).sum(0),
    lambda i, a, b: torch.where(b[i] > a[i][..., None] - 1, b[i], a[i][..., None]).sum(0),
    lambda i, a, b: (b.t()[:, i].log() + a[i]).exp().sum(1),
    lambda i, a, b: (i[..., None] * 3 + torch.arange(8)).sum(0) + b[i].sum(0),
])  # fmt: skip
def test_as_eager(function):
    torch.manual_seed(0)
    args = torch.randint(0, 32, (2, 16)), torch.rand(32) + 1, torch.rand(32, 8) + 0.5
    assert torch.allclose(torch.compile(function)(*args), function(*args))


@pytest.mark.parametrize("function", [
    lambda i, x, b: (x + b).reshape(-1)[i],
    lambda i, x, b: ((x + b).reshape(-1)[i], x + b),
    lambda i, x, b: ((x + b).exp().reshape(-1)[i].reshape(3, 4).softmax(1), (x + b).exp().sum(1)),
])  # fmt: skip
def test_as_many_indices_as_elements(function):
    """What is read through them is stored by a kernel over as many elements: not by the same."""
    torch.manual_seed(0)
    args = torch.randperm(12), torch.randn(3, 4), torch.randn(4)
    torch.testing.assert_close(torch.compile(function)(*args), function(*args))
