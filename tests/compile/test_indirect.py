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
