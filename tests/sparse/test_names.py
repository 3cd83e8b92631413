"""Refusals name what the program called; names of `torch.sparse` and of tensors are there."""

import pytest

import pullback as torch

F = torch.nn.functional
MATRIX = torch.eye(3).to_sparse()
REFUSED = {  # the name in the message -> the call
    "linalg.det": lambda s: torch.linalg.det(s),
    "linalg.inv": lambda s: torch.linalg.inv(s),
    "linalg.solve_ex": lambda s: torch.linalg.solve_ex(s, torch.eye(3)),
    "linalg.svd": lambda s: torch.linalg.svd(s),
    "linalg.eigh": lambda s: torch.linalg.eigh(s),
    "linalg.cond": lambda s: torch.linalg.cond(s),
    "det": lambda s: s.det(),
    "inverse": lambda s: s.inverse(),
    "cdist": lambda s: torch.cdist(s, s),
    "unique": lambda s: torch.unique(s),
    "argsort": lambda s: torch.argsort(s),
    "fft.fft": lambda s: torch.fft.fft(s),
    "fft.irfft2": lambda s: torch.fft.irfft2(s),
    "special.ndtr": lambda s: torch.special.ndtr(s),
    "conv1d": lambda s: torch.conv1d(s, torch.ones(3, 3, 1)),
    "cos": lambda s: s.cos(),
    "cos_": lambda s: s.clone().cos_(),
    "threshold_": lambda s: torch.threshold_(s.clone(), 1.0, 2.0),
    "softmax": lambda s: F.softmax(s, 1),
    "layer_norm": lambda s: torch.layer_norm(s, (3,)),
    "cross_entropy_loss": lambda s: F.cross_entropy(s, torch.tensor([0, 1, 2]),
                                                    label_smoothing=0.1),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_the_function(name):
    with pytest.raises(NotImplementedError) as raised:
        REFUSED[name](MATRIX)
    first = str(raised.value).splitlines()[0]
    assert first.startswith(f"{name}: ") and "test_names.py:" in first


def test_names_of_the_package():
    names = ["addmm", "check_sparse_tensor_invariants", "mm", "sum", "softmax", "log_softmax",
             "as_sparse_gradcheck", "SparseSemiStructuredTensor", "to_sparse_semi_structured",
             "SparseSemiStructuredTensorCUTLASS", "SparseSemiStructuredTensorCUSPARSELT",
             "spdiags", "spsolve", "sampled_addmm"]
    assert [n for n in names if not hasattr(torch.sparse, n)] == []
    assert {*torch.sparse.__all__} <= {*dir(torch.sparse)}


def test_put_is_an_operator_on_all_tensors():
    at = torch.tensor([0])
    with pytest.raises(NotImplementedError, match=r"^put: there is no such operator"):
        MATRIX.put(at, torch.ones(1))
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    with pytest.raises(NotImplementedError, match=r"^put: "):
        nested.put(at, torch.ones(1))


def test_sums_of_a_sparse_matrix_and_a_dense_product():
    a, b = torch.arange(6.0).reshape(3, 2), torch.ones(2, 3)
    assert torch.equal(torch.addmm(MATRIX, a, b), torch.eye(3) + a @ b)
    assert torch.equal(torch.addmv(torch.ones(3).to_sparse(), a, b[:, 0]), 1 + a @ b[:, 0])
    with pytest.raises(NotImplementedError, match="sparse matrix to multiply by"):
        torch.sspaddmm(MATRIX, a, b)


def test_values_that_are_views_are_detached():
    x = torch.eye(3).to_sparse_csr()
    leaf = torch.ones(3, requires_grad=True)
    y = torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), leaf * 2, (3, 3))
    for t in (x, y):
        assert t.detach_() is t and not t.requires_grad
    assert not (y @ torch.eye(3)).requires_grad


DEPENDING = {  # what makes patterns whose size depends on numbers
    "to_sparse": lambda x, s: x.to_sparse() @ x,
    "each once": lambda x, s: torch.sparse_coo_tensor(s.indices(), s.values(), (3, 3)).coalesce(
        ).values(),
    "product": lambda x, s: (s @ s).to_dense(),
    "each once, of a sum": lambda x, s: (s + (s * 2).t()).to_dense(),
    "each once, of lines": lambda x, s: torch.sparse.sum(s, 0).to_dense(),
}


@pytest.mark.parametrize("name", DEPENDING)
def test_captures_of_patterns_that_depend_on_numbers(name):
    x = torch.tensor([[4.0, 0, 1], [0, 3, 0], [1, 0, 5]])
    given, f = (x, x.to_sparse()), DEPENDING[name]
    with pytest.raises(torch.errors.DataDependentError) as raised:
        torch.compile(f, fullgraph=True)(*given)
    said = str(raised.value)
    assert "how many entries" in said and "capture_dynamic_output_shape_ops" in said
    assert name.split(",")[0] in said and "fullgraph=True away" in said
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        assert torch.equal(torch.compile(f, fullgraph=True)(*given), f(*given))
