"""All layouts become all others: values, patterns, gradients, and what is refused."""

import itertools

import pytest

import pullback as torch
from pullback import func

MATRIX = torch.tensor([[1.0, 0, 2, 0], [0, 0, 3, 4], [0, 0, 0, 0], [5, 0, 0, 6]],
                      dtype=torch.float64)
LAYOUTS = ("coo", "csr", "csc", "bsr", "bsc")
PAIRS = list(itertools.product(LAYOUTS, LAYOUTS))
KINDS = {"plain": 0, "batch": 0, "dense": 1, "batchdense": 1}


def layout(name):
    return getattr(torch, f"sparse_{name}")


def dense(kind, scale=1.0):
    d = MATRIX * scale
    if kind.startswith("batch"):
        d = torch.stack([d, d.flip(0)])
    return torch.stack([d, d * 10], -1) if KINDS[kind] else d


def options(name, kind="plain"):
    more = {"blocksize": (2, 2)} if name[0] == "b" else {}
    if KINDS[kind]:
        more["dense_dim"] = 1
    return {"layout": layout(name), **more}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first, second", PAIRS)
def test_all_pairs(kind, first, second):
    d = dense(kind)
    x = d.to_sparse(**options(first, kind))
    assert x.layout is layout(first) and torch.equal(x.to_dense(), d)
    more = options(second)
    if first[0] == second[0] == "b":
        del more["blocksize"]
    y = x.to_sparse(**more)
    assert y.layout is layout(second) and y.shape == d.shape and torch.equal(y.to_dense(), d)
    assert y.dense_dim() == KINDS[kind]
    if first == second:
        assert y is x
    if second == "coo":
        assert y.is_coalesced() is (first in ("coo", "csr"))


@pytest.mark.parametrize("kind", ["plain", "batch", "dense"])
@pytest.mark.parametrize("first, second", PAIRS)
def test_derivatives_go_through(kind, first, second):
    d = dense(kind)
    weights = torch.arange(float(d.numel()), dtype=torch.float64).reshape(d.shape)

    def through(t):
        more = options(second)
        if first[0] == second[0] == "b":
            del more["blocksize"]
        return t.to_sparse(**options(first, kind)).to_sparse(**more).to_dense()

    leaf = d.clone().requires_grad_()
    (through(leaf) * weights).sum().backward()
    there = d.to_sparse(**options(first, kind))
    there = there.with_carrier(torch.ones_like(there.values_part)).to_dense() != 0
    assert torch.equal(leaf.grad, weights * there)
    out, tangent = func.jvp(through, (d,), (d,))
    assert torch.equal(out, d) and torch.equal(tangent, d)
    assert torch.equal(func.grad(lambda t: (through(t) ** 2).sum())(d), 2 * d)
    assert torch.equal(func.hessian(lambda v: (v * v).sum())(d[:1, :1]).sum(),
                       torch.tensor(2.0 * d[:1, :1].numel(), dtype=torch.float64))


@pytest.mark.parametrize("name", ["csr", "csc", "bsr", "bsc"])
def test_second_order_of_values(name):
    at = MATRIX.to_sparse()

    def f(values):
        x = at.with_carrier(values)
        return x.to_sparse(**options(name)).to_dense().sin()

    values = at.values().clone().requires_grad_()
    assert torch.autograd.gradcheck(f, (values,), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(f, (values,))


def test_compiled_programs_convert():
    at = torch.tensor([[0, 2, 1, 0], [1, 0, 1, 1]])
    values = torch.tensor([1.0, 2.0, 3.0, 4.0])

    def f(v):
        return torch.sparse_coo_tensor(at, v, (3, 2)).to_sparse_csr().to_dense() * 2

    assert torch.equal(torch.compile(f)(values), f(values))


@pytest.mark.parametrize("first, second", [
    p for p in PAIRS if p[1][0] != "b" or p[0][0] == "b"])  # how many blocks there are, is data
def test_one_graph_converts_what_it_is_given(first, second):
    x = MATRIX.to_sparse(**options(first))
    more = {} if second[0] == "b" else options(second)
    call = torch.compile(lambda t: t.to_sparse(**{"layout": layout(second), **more}).to_dense() * 2,
                         fullgraph=True)
    assert torch.equal(call(x), MATRIX * 2) and torch.equal(call(x * 3), MATRIX * 6)


@pytest.mark.parametrize("name", LAYOUTS)
def test_one_pattern_with_many_values(name):
    at, many = MATRIX.to_sparse(), torch.randn(3, 6, dtype=torch.float64)

    def f(values):
        return at.with_carrier(values).to_sparse(**options(name)).to_dense()

    assert torch.equal(func.vmap(f)(many), torch.stack([f(v) for v in many]))
    assert torch.equal(func.jacrev(f)(many[0]), func.jacfwd(f)(many[0]))


def test_integers_keep_their_dtype_and_zeros_stay():
    narrow = torch.sparse_csr_tensor(
        torch.tensor([0, 1, 2], dtype=torch.int32), torch.tensor([1, 0], dtype=torch.int32),
        torch.tensor([0.0, 2.0]), (2, 2))
    assert narrow.to_sparse_csc().row_indices().dtype is torch.int32
    assert narrow.to_sparse_csc()._nnz() == 2 and narrow.to_sparse()._nnz() == 2
    assert torch.tensor([0.0, -0.0, float("nan")]).to_sparse()._nnz() == 1
    assert MATRIX.to_sparse_bsr(2).to_sparse_csr()._nnz() == 16
    assert MATRIX.to_sparse_bsr((2, 2)).to_sparse_bsr((4, 4))._nnz() == 1


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("name", LAYOUTS)
def test_empty_sizes(shape, name):
    more = {"blocksize": (1, 1)} if name[0] == "b" else {}
    x = torch.zeros(shape).to_sparse(layout=layout(name), **more)
    assert x._nnz() == 0 and x.to_dense().shape == shape
    for other in LAYOUTS:
        more = {"blocksize": (1, 1)} if other[0] == "b" else {}
        assert x.to_sparse(layout=layout(other), **more).to_dense().shape == shape


def test_numbers_and_truth_values():
    assert torch.tensor(3.0).to_sparse().to_dense() == 3
    assert torch.tensor(0.0).to_sparse()._nnz() == 0
    twice = torch.sparse_coo_tensor([[0, 0], [0, 0]], [True, True], (2, 2))
    assert twice.to_dense().tolist() == [[True, False], [False, False]]
    assert twice.coalesce().values().tolist() == [True]
    x = torch.sparse_coo_tensor([[0, 0], [0, 0]], [1.0, 2.0], (2, 2))
    assert x.to_dense(torch.float64).dtype is torch.float64 and x.to_dense()[0, 0] == 3
    assert x.to_sparse_csr()._nnz() == 1 and x.to_sparse() is x


REFUSED = [
    (lambda a: a.to_sparse(0), "sparse_dim argument must be in >0 when self.dim"),
    (lambda a: a.to_sparse(3), r"must be in \[0,2\] range, but 3 is given"),
    (lambda a: a.to_sparse().to_sparse(1), "with sparse_dim argument !=self.sparse_dim"),
    (lambda a: a.to_sparse_csr(1), r"dense_to_sparse_csr: dense_dim .* \[0,0\] range, but 1"),
    (lambda a: a.to_sparse().to_sparse_csr(1), "with dense_dim argument given is not supported"),
    (lambda a: a.to_sparse_bsr((3, 3)), r"size \(4,4\) must be divisible by given blocksize \(3"),
    (lambda a: a.to_sparse_bsr((2,)), "blocksize needs to be a tuple of size 2, but got 1"),
    (lambda a: a.to_sparse_bsr((0, 1)), r"blocksize needs to be positive, but got \[0, 1\]"),
    (lambda a: a.to_sparse(layout=torch.sparse_csr, blocksize=(2, 2)),
     "from Strided to SparseCsr with blocksize argument given"),
    (lambda a: a.to_sparse(layout=torch.sparse_bsr), "to SparseBsr without blocksize"),
    (lambda a: torch.stack([a, a * 0]).to_sparse_csr(), "same number of specified elements"),
    (lambda a: torch.ones(0, 2, 2).to_sparse_csr(), "product of batch dimensions to be non-zero"),
    (lambda a: a[0].to_sparse_csr(), "two dims at least"),
]


@pytest.mark.parametrize("call, said", REFUSED)
def test_refusals(call, said):
    with pytest.raises(RuntimeError, match=said) as caught:
        call(MATRIX)
    assert "test_convert.py" in str(caught.value)


ASKED = [
    (lambda a: a.to_sparse_csr().is_coalesced(), "is_coalesced expected sparse coordinate tensor "
     "layout but got SparseCsr"),
    (lambda a: a.to_sparse_csr().indices(), "indices expected .* but got SparseCsr"),
    (lambda a: a.to_sparse().crow_indices(), "row compressed tensor layout but got Sparse "),
    (lambda a: a.to_sparse_csr().ccol_indices(), "column compressed .* but got SparseCsr"),
    (lambda a: a.to_sparse_csr().stride(), "do not have strides"),
    (lambda a: a.to_sparse().data_ptr(), "data pointer of Tensor that doesn't have storage"),
    (lambda a: a.to_sparse().item(), "a Tensor with 16 elements cannot be converted to Scalar"),
    (lambda a: a.to_sparse().nbytes, "nbytes is not defined for sparse tensors"),
    (lambda a: a.to_sparse().set_(), "no memory of its own"),
    (lambda a: a.to_sparse().resize_(2, 2), "no memory of its own"),
]


@pytest.mark.parametrize("call, said", ASKED)
def test_questions_that_other_layouts_answer(call, said):
    with pytest.raises(RuntimeError, match=said):
        call(MATRIX)


def test_answers():
    x = MATRIX.to_sparse()
    assert x.stride() == (0, 0) and x.type() == "torch.sparse.DoubleTensor"
    assert torch.typename(x) == "torch.sparse.DoubleTensor" and x.is_contiguous() is False
    assert torch.sparse_coo_tensor([[0]], [3.0], (1,)).item() == 3
    with pytest.raises(TypeError, match="can't convert Sparse layout tensor to numpy"):
        x.numpy()
    assert x.to(x.dtype) is x and x.to("cpu") is x and x.to(torch.float64, copy=True) is not x
    assert x.to(torch.float32).dtype is torch.float32
    assert x.type("torch.sparse.FloatTensor").dtype is torch.float32
    assert x.to(layout=torch.sparse_csr).layout is torch.sparse_csr
    assert MATRIX.to(layout=torch.sparse_csc).layout is torch.sparse_csc
    assert x.to("meta").shape == (4, 4) and x.to("meta").is_meta
