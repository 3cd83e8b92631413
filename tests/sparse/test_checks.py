"""`gradcheck` of sparse tensors, functions of `masked`, dropout."""

import pytest

import pullback as torch
from pullback.autograd import gradcheck, gradgradcheck
from pullback.nn import functional as F
from tests.helpers import sparse_cases as cases
from tests.helpers.sparse_rows import d

FUNCTIONS = {
    "dense": lambda x: x.to_dense(), "entries": lambda x: x.sin() * 2, "sum": lambda x: x.sum(),
    "product": lambda x: x @ d(x.shape[-1], 3), "softmax": lambda x: torch.sparse.softmax(x, 1),
}


@pytest.mark.parametrize("masked", (None, True, False))
@pytest.mark.parametrize("layout", cases.ALL)
def test_gradcheck_changes_what_is_specified(layout, masked):
    x = cases.ALL[layout](cases.values()).detach().requires_grad_()
    for name, function in FUNCTIONS.items():
        if name == "product" and layout in ("hybrid", *cases.BATCHES):
            continue
        assert gradcheck(function, (x,), masked=masked, check_forward_ad=masked is True)
        assert torch.sparse.as_sparse_gradcheck(gradcheck)(function, x, masked=bool(masked))
        assert gradgradcheck(function, (x,), fast_mode=True)


def test_gradcheck_finds_wrong_gradients_of_sparse_tensors():
    x = cases.coo(cases.values()).requires_grad_()
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        gradcheck(lambda x: x.detach() * x, (x,))
    dense = (d(2, 3)).requires_grad_()
    assert gradcheck(lambda y: y.to_sparse_csr() * 2, (dense,))


REDUCED = {
    "sum": lambda v, t: (v * t).sum(1), "prod": lambda v, t: torch.where(t, v, 1).prod(1),
    "amax": lambda v, t: torch.where(t, v, -torch.inf).amax(1),
    "amin": lambda v, t: torch.where(t, v, torch.inf).amin(1),
    "mean": lambda v, t: (v * t).sum(1) / t.sum(1),
}


@pytest.mark.parametrize("layout", ("coo", "uncoalesced", "csr", "csc"))
@pytest.mark.parametrize("name", REDUCED)
def test_masked_functions_count_what_is_specified(name, layout):
    x = cases.MATRICES[layout](cases.values())
    there = x.to_dense() != 0
    chosen = d(4, 6) > 0.9
    for mask, kept in ((None, there), (chosen, chosen & there),
                       (chosen.to_sparse(), chosen & there)):
        out = getattr(torch.masked, name)(x, 1, mask=mask)
        wanted = torch.where(kept.any(1), REDUCED[name](x.to_dense(), kept), 0)
        assert out.layout is torch.sparse_coo and torch.allclose(out.to_dense(), wanted)
        kept_dims = getattr(torch.masked, name)(x, 1, keepdim=True, mask=mask)
        assert torch.allclose(kept_dims.to_dense(), wanted.unsqueeze(1))
    assert torch.masked.sum(x).sparse_dim() == 0
    assert torch.allclose(torch.masked.norm(x, 2.0).to_dense(), x.to_dense().norm())


def test_masked_statistics_and_softmax_of_entries():
    v = torch.tensor([1.0, 2, 4, 8], requires_grad=True)
    x = torch.sparse_coo_tensor([[0, 0, 0, 1], [0, 1, 2, 2]], v, (2, 3))
    assert torch.allclose(torch.masked.var(x, 1).to_dense()[0], v[:3].var())
    std = torch.masked.std(x, 1, unbiased=False)
    assert torch.allclose(std.to_dense()[0], v[:3].std(correction=0))
    assert torch.allclose(torch.masked.softmax(x, 1).coalesce().values()[:3], v[:3].softmax(0))
    torch.masked.mean(x, 1).to_dense().sum().backward()
    assert torch.allclose(v.grad, torch.tensor([1 / 3, 1 / 3, 1 / 3, 1]))


def test_dropout_is_of_entries():
    torch.manual_seed(0)
    v = torch.ones(400, requires_grad=True)
    x = torch.sparse_coo_tensor(torch.arange(400).reshape(1, -1), v, (1000,))
    out = F.dropout(x, 0.5)
    values = out.coalesce().values()
    assert out._nnz() == 400 and set(values.tolist()) == {0.0, 2.0}
    values.sum().backward()
    assert v.grad.tolist() == values.tolist()
    assert F.dropout(x, 0.5, False) is x
    kept, mask = torch.native_dropout(x, 0.5, True)
    assert mask.dtype is torch.bool and torch.equal(kept._values(), mask._values() * 2.0)
