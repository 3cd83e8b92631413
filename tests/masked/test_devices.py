"""Masked tensors on a second device (`second_device.py`): results are those of the CPU."""

import pytest

import pullback as torch
from tests.helpers import second_device as second

NAME = second.install()
X = torch.arange(12.0, dtype=torch.float64).reshape(4, 3).cos()
MASK = torch.tensor([[True, False, True], [False, False, True], [True, True, True],
                     [True, False, False]])
PROGRAMS = {
    "sum": lambda t: t.sum(1), "mean": lambda t: t.mean(0), "amax": lambda t: t.amax(1),
    "prod": lambda t: t.prod(1), "softmax": lambda t: t.softmax(1), "sin": lambda t: t.sin(),
    "add": lambda t: t + t, "select": lambda t: t[0], "filled": lambda t: t.to_tensor(0.5),
    "float": lambda t: t.float(), "argmax": lambda t: t.argmax(1),
}
REDUCTIONS = ["sum", "mean", "var", "prod", "amin", "logsumexp", "median", "argmin", "softmax",
              "cumsum", "cumprod"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_tensors(name):
    def program(x, mask):
        return PROGRAMS[name](torch.masked.masked_tensor(x, mask))

    second.same_there(program, X.clone().requires_grad_(), MASK, place=NAME)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_functions(name):
    second.same_there(lambda x, mask: getattr(torch.masked, name)(x, 1, mask=mask),
                      X.clone().requires_grad_(), MASK, place=NAME)


@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_sparse_masks(layout):
    def program(x, mask):
        x, mask = (getattr(t, "to_sparse" + "_csr" * (layout == "csr"))() for t in (x, mask))
        return torch.masked.sum(x, 1, keepdim=True, mask=mask).to_dense()

    second.same_there(program, X.clone(), MASK, place=NAME)


def test_the_mask_goes_with_the_data():
    x = torch.masked.masked_tensor(X, MASK)
    there = x.to(NAME)
    assert there.get_mask().device.type == there.get_data().device.type == NAME
    assert torch.equal(there.sum(1).get_data().cpu(), x.sum(1).get_data())
    second.same_there(lambda x, mask: torch.masked.masked_tensor(x.cpu(), mask.cpu()).to(x.device),
                      X.clone().requires_grad_(), MASK, place=NAME)
