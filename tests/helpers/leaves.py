"""Double tensors of given values, with and without gradients, and how they are compared."""

import numpy as np

import pullback as torch

grad = torch.autograd.grad


def leaf(*values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def plain(*values):
    return torch.tensor(values, dtype=torch.float64)


def close(t, expected):
    assert np.allclose(t.detach().numpy(), expected, rtol=1e-10, atol=1e-12)
