"""`sparse.spdiags`: matrices from diagonals, as PyTorch makes them, and what it does not have:
derivatives and transforms."""

import pytest

import pullback as torch
from pullback import func
from tests.helpers import sparse_cases as cases
from tests.helpers.sparse_rows import d

DIAGONALS = torch.arange(1.0, 10).reshape(3, 3)
LAYOUTS = (None, torch.sparse_coo, torch.sparse_csr, torch.sparse_csc)

# offsets, shape -> rows, columns and values of PyTorch's, in its order
RECORDED = [
    ([0, -1, 1], (3, 3), [0, 1, 2, 1, 2, 0, 1], [0, 1, 2, 0, 1, 1, 2], [1, 2, 3, 4, 5, 8, 9]),
    ([0, -1, 1], (5, 3), [0, 1, 2, 1, 2, 3, 0, 1], [0, 1, 2, 0, 1, 2, 1, 2],
     [1, 2, 3, 4, 5, 6, 8, 9]),
    ([0, -1, 1], (3, 5), [0, 1, 2, 1, 2, 0, 1], [0, 1, 2, 0, 1, 1, 2], [1, 2, 3, 4, 5, 8, 9]),
    ([3, -1, 1], (3, 3), [1, 2, 0, 1], [0, 1, 1, 2], [4, 5, 8, 9]),
    ([-2, -1, 2], (5, 7), [2, 3, 4, 1, 2, 3, 0], [0, 1, 2, 0, 1, 2, 2], [1, 2, 3, 4, 5, 6, 9]),
    ([0, 1, -2], (2, 2), [0, 1, 0], [0, 1, 1], [1, 2, 5]),
    ([0, 1, 2], (0, 3), [], [], []),
    ([5, 1, 2], (0, 0), [], [], []),
]


@pytest.mark.parametrize("case", range(len(RECORDED)))
def test_entries(case):
    offsets, shape, rows, columns, values = RECORDED[case]
    x = torch.sparse.spdiags(DIAGONALS, torch.tensor(offsets), shape)
    assert x.shape == shape and x.is_coalesced() is (len(rows) < 2)
    assert x._indices().tolist() == [rows, columns] and x._values().tolist() == values


def test_layouts():
    for layout in LAYOUTS:
        x = torch.sparse.spdiags(DIAGONALS, torch.tensor([0, -1, 1]), (3, 3), layout=layout)
        assert x.layout is (layout or torch.sparse_coo)
        assert x.to_dense().tolist() == [[1, 8, 0], [4, 2, 9], [0, 5, 3]]
    x = torch.sparse.spdiags(DIAGONALS, torch.tensor([0, -1, 1]), (3, 3), torch.sparse_csr)
    assert x.crow_indices().tolist() == [0, 2, 5, 7]
    assert x.col_indices().tolist() == [0, 1, 0, 1, 2, 1, 2]
    assert x.values().tolist() == [1, 8, 4, 2, 9, 5, 3]


def test_vectors_numbers_and_dtypes():
    for offset in (torch.tensor(0), torch.tensor([0])):
        x = torch.sparse.spdiags(DIAGONALS[0], offset, (3, 3))
        assert x.to_dense().tolist() == [[1, 0, 0], [0, 2, 0], [0, 0, 3]]
    one = torch.sparse.spdiags(DIAGONALS[0], torch.tensor(-4), (5, 5))
    assert one._nnz() == 1 and one.is_coalesced() and one.to_dense()[4, 0] == 1
    for dtype in (torch.int64, torch.bool, torch.float16, torch.complex64):
        x = torch.sparse.spdiags(DIAGONALS.to(dtype), torch.tensor([0, 1, 2]), (3, 3))
        assert x.dtype is dtype and x._nnz() == 6
    none = torch.sparse.spdiags(torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64), (3, 3))
    assert none._nnz() == 0 and none.shape == (3, 3)


def test_columns_that_the_matrix_does_not_have():
    # PyTorch puts an entry into the third of two columns
    x = torch.sparse.spdiags(DIAGONALS, torch.tensor([0, -1, 1]), (4, 2))
    assert x.to_dense().tolist() == [[1, 8], [4, 2], [0, 5], [0, 0]]


REFUSED = [
    ((DIAGONALS, [0, 1], (3, 3)), r"Number of diagonals \(3\) does not match the number of offs"),
    ((DIAGONALS, [0, 1, 1], (3, 3)), "Offset tensor contains duplicate values"),
    ((DIAGONALS, [0, 1, 2], (3, 3, 3)), "Output shape must be 2d"),
    ((DIAGONALS[None], [0], (3, 3)), "Diagonals must be vector or matrix"),
    ((torch.tensor(3.0), [0], (3, 3)), "Diagonals must be vector or matrix"),
    ((DIAGONALS, [[0, 1, 2]], (3, 3)), "Offsets must be scalar or vector"),
    ((DIAGONALS, [0.0, 1, 2], (3, 3)), "Offset Tensor must have dtype Long but got Float"),
    ((DIAGONALS, [0, 1, 2], (3, 3), torch.strided), r"Only output layouts \(.*got Strided"),
    ((DIAGONALS, [0, 1, 2], (3, 3), torch.sparse_bsr), r"Only output layouts \(.*got SparseBsr"),
    ((DIAGONALS, [7, -9, 0], (3, 3)), "negative dimension"),
    ((DIAGONALS[:1, :2], [3], (5, 5)), "negative dimension"),
    ((DIAGONALS, [0, 1, 2], (-3, 3)), "negative dimension"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_refusals(case):
    (diagonals, offsets, *rest), said = REFUSED[case]
    with pytest.raises(RuntimeError, match=said):
        torch.sparse.spdiags(diagonals, torch.tensor(offsets), *rest)


def test_arguments_of_other_kinds():
    with pytest.raises(TypeError):
        torch.sparse.spdiags(DIAGONALS, [0, 1, 2], (3, 3))
    with pytest.raises(TypeError):
        torch.sparse.spdiags(DIAGONALS)
    with pytest.raises(NotImplementedError, match="dense tensor"):
        torch.sparse.spdiags(DIAGONALS.to_sparse(), torch.tensor([0, 1, 2]), (3, 3))


OFFSETS = torch.tensor([0, -1, 2])


def dense(v):
    """The same by indexing; two numbers are in no matrix."""
    v = v.reshape(3, 4)
    rows, columns = [0, 1, 2, 1, 2, 0, 1], [0, 1, 2, 0, 1, 2, 3]
    which = torch.tensor([0, 1, 2, 4, 5, 10, 11])
    return torch.zeros(3, 4, dtype=v.dtype).index_put(
        (torch.tensor(rows), torch.tensor(columns)), v.reshape(12)[which])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_derivatives_and_transforms(layout):
    def ours(v):
        x = torch.sparse.spdiags(v.reshape(3, 4), OFFSETS, (3, 4), layout)
        return (x * x).to_dense() if x.layout is not torch.sparse_coo else x.to_dense().square()

    def theirs(v):
        return dense(v).square()

    for v in (d(12), torch.complex(d(12), d(12).flip(0))):
        leaf = v.requires_grad_()
        found, wanted = [torch.autograd.grad(cases.loss(f(leaf)), leaf, create_graph=True)[0]
                         for f in (ours, theirs)]
        cases.close(found, wanted)
        found, wanted = [torch.autograd.grad(cases.loss(g), leaf)[0] for g in (found, wanted)]
        cases.close(found, wanted)
    v = d(12)
    for one, other in zip(func.jvp(ours, (v,), (v.sin(),)), func.jvp(theirs, (v,), (v.sin(),))):
        cases.close(one, other)
    several = torch.stack([v, v * 2, v - 1])
    cases.close(func.vmap(ours)(several), func.vmap(theirs)(several))
    leaf = v.clone().requires_grad_()
    out = torch.compile(ours)(leaf)
    cases.close(out.detach(), theirs(v))
    cases.close(torch.autograd.grad(cases.loss(out), leaf)[0], func.grad(
        lambda v: cases.loss(theirs(v)))(v))
