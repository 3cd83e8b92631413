"""Constructors of sparse tensors: forms of calls, sizes, and what they refuse.

Messages are those that PyTorch 2.13 gave; ours name the first offending entry besides.
"""

import pytest

import pullback as torch
from pullback.sparse import check_sparse_tensor_invariants

T = torch.tensor


def test_forms_of_calls_and_sizes():
    a = torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0])
    assert a.shape == (2, 2) and not a.is_coalesced() and a._nnz() == 2
    assert torch.sparse_coo_tensor((2, 3)).shape == (2, 3)
    assert torch.sparse_coo_tensor(size=(2, 3), dtype=torch.int64).dtype is torch.int64
    assert torch.sparse_coo_tensor([[2.0]], 3.0).to_dense().tolist() == [0, 0, 3]
    assert torch.sparse_coo_tensor(torch.zeros(2, 0), torch.zeros(0, 2)).shape == (0, 0, 2)
    assert torch.sparse_coo_tensor([[]], [], (2,)).is_coalesced()
    assert torch.sparse_coo_tensor([[1]], [1.0], is_coalesced=False).is_coalesced() is False
    narrow = torch.sparse_coo_tensor(T([[1]], dtype=torch.int32), [1.0])
    assert narrow._indices().dtype is torch.int64
    assert torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0]).shape == (2, 2)
    assert torch.sparse_csc_tensor([0, 1, 2], [0, 4], [1.0, 2.0]).shape == (5, 2)
    assert torch.sparse_bsc_tensor([0, 1], [1], [[[1.0, 2, 5], [3, 4, 6]]]).shape == (4, 3)
    assert torch.sparse_csr_tensor([[0, 1]] * 2, [[0], [1]], [[1.0], [2.0]]).shape == (2, 1, 2)
    assert torch.sparse_csr_tensor([0, 0, 0], [], [], (2, 2)).col_indices().dtype is torch.int64


def test_values_keep_their_history_and_leaves_are_leaves():
    values = torch.ones(2, requires_grad=True)
    for wanted in (False, True):
        t = torch.sparse_coo_tensor([[0, 1]], values, requires_grad=wanted)
        assert t.requires_grad and not t.is_leaf
    leaf = torch.sparse_csr_tensor([0, 1, 2], [0, 1], torch.ones(2), requires_grad=True)
    assert leaf.is_leaf and leaf.requires_grad
    assert torch.sparse_coo_tensor([[0, 1]], values, dtype=torch.float64).dtype is torch.float64


@pytest.mark.parametrize("at, values, size, said", [
    ([[0, 1], [1, 0]], 3.0, (2, 2), "same nnz, but got nnz from indices: 2, nnz from values: 1"),
    ([0, 1], [1.0, 2.0], None, r"indices must be sparse_dim x nnz, but got: \[2\]"),
    ([[0, -1]], [1.0, 2.0], None, "found negative index -1 for dim 0"),
    ([[0, 1]], [1.0, 2.0], (2, 3), "len.size. = 2, sparse_dim = 1, dense_dim = 0"),
    ([[0, 1]], [[1.0, 2.0]] * 2, (2, 3), r"incorrect size, expected \[2, 3\], got \[2, 2\]"),
])
def test_coordinates_that_do_not_fit(at, values, size, said):
    with pytest.raises(RuntimeError, match=said) as caught:
        torch.sparse_coo_tensor(at, values, size)
    assert "test_construct.py" in str(caught.value)


COO_NUMBERS = [
    ([[0, 5]], (2,), {}, "for dim 0, size is 2 but found index 5"),
    ([[0, -1]], (2,), {}, "found negative index -1 for dim 0"),
    ([[1, 0]], (2,), {"is_coalesced": True}, "cannot set is_coalesced to true"),
    ([[0, 0]], (2,), {"is_coalesced": True}, "cannot set is_coalesced to true"),
]


@pytest.mark.parametrize("at, size, more, said", COO_NUMBERS)
def test_coordinates_outside_are_refused_where_that_is_asked_for(at, size, more, said):
    with pytest.raises(RuntimeError, match=said):
        torch.sparse_coo_tensor(at, torch.ones(2), size, check_invariants=True, **more)
    with check_sparse_tensor_invariants(), pytest.raises(RuntimeError, match=said):
        torch.sparse_coo_tensor(at, torch.ones(2), size, **more)
    torch.sparse_coo_tensor(at, torch.ones(2), size, **more)
    with check_sparse_tensor_invariants():
        torch.sparse_coo_tensor(at, torch.ones(2), size, check_invariants=False, **more)


@pytest.mark.parametrize("at", [[[0, 5], [0, 0]], [[0, -1], [0, 0]]])
def test_unchecked_coordinates_are_refused_before_memory_is_read(at):
    t = torch.sparse_coo_tensor(at, torch.ones(2), (2, 2))
    for use in (lambda: t.to_dense(), lambda: t @ torch.ones(2, 2), lambda: t.coalesce(),
                lambda: t.to_sparse_csr()):
        with pytest.raises(RuntimeError, match=r"negative index|inconsistent with indices"):
            use()


COMPRESSED = [
    ("csr", 3, [0, 1], [1.0, 2.0], (2, 2), "crow_indices must have dimensionality >= 1 but got 0"),
    ("csr", [0, 1, 2], 3, [1.0, 2.0], (2, 2), "dimensionalities must be equal but got 1 and 0"),
    ("csr", [0, 1, 2], [0, 1], 3.0, (2, 2), r"values must have .* \(=0 \+ 0\) but got 0"),
    ("csr", [0, 1, 2], [0, 1], [1.0, 2.0], (2,), r"\(=0 \+ 2 \+ 0\) but got 1"),
    ("csr", [[0, 1, 2]], [[0, 1]], [[1.0, 2.0]], (2, 2, 2),
     r"equal to tensor batch dimensions \(=\[2\]\)"),
    ("csr", [0, 1, 2], [0, 1], [1.0, 2.0], (3, 2),
     r"crow_indices.shape\[-1\] must be equal to the number of rows \+ 1 \(=4\), but got 3"),
    ("csr", [0, 1, 2], [0, 1], [1.0, 2.0, 3.0], (2, 2),
     r"col_indices.shape\[-1\] must be equal to nnz \(=3\)"),
    ("csr", [0, 1, 2], T([0, 1], dtype=torch.int32), [1.0, 2.0], (2, 2),
     "must have the same dtype, but got Long and Int"),
    ("csr", T([0, 1, 2], dtype=torch.int16), T([0, 1], dtype=torch.int16), [1.0, 2.0], (2, 2),
     "dtype must be Int or Long, but got Short"),
    ("csr", [0, 1, 2], [0, 1], [[1.0, 2.0]] * 2, (2, 2, 3), "values has incorrect size"),
    ("bsr", [0, 1], [0], [[[1.0, 2.0], [3.0, 4.0]]], (3, 2),
     r"tensor shape\[0\] \(=3\) must be divisible with blocksize\[0\] \(=2\)"),
    ("bsc", [0, 1, 1], [0], [[[1.0, 2.0], [3.0, 4.0]]], (2, 2),
     r"ccol_indices.shape\[-1\] must be equal to the number of column blocks \+ 1 \(=2\)"),
]
NUMBERS = [
    ("csr", [1, 1, 2], [0, 1], [1.0, 2.0], (2, 2), r"`crow_indices\[..., 0\] == 0` is not"),
    ("csr", [0, 1, 3], [0, 1], [1.0, 2.0], (2, 2), r"`crow_indices\[..., -1\] == nnz` is not"),
    ("csr", [0, 2, 1, 2], [0, 1], [1.0, 2.0], (3, 2), r"`0 <= crow_indices\[..., 1:\] - .* <= nc"),
    ("csr", [0, 3, 3], [0, 1, 1], [1.0, 2.0, 3.0], (2, 2), r"<= ncols` is not satisfied"),
    ("csr", [0, 1, 2], [0, 2], [1.0, 2.0], (2, 2), "`0 <= col_indices < ncols` is not satisfied"),
    ("csc", [0, 1, 2], [0, -1], [1.0, 2.0], (2, 2), "`0 <= row_indices < nrows` is not satisfied"),
    ("bsr", [0, 1], [1], [[[1.0, 2.0], [3.0, 4.0]]], (2, 2), "`0 <= col_indices < ncols` is not"),
]
ORDER = [
    ("csr", [0, 2, 2], [1, 0], [1.0, 2.0], (2, 2), r"sorted and distinct .*first at \[1\]: 0 "),
    ("csc", [0, 2, 2], [1, 1], [1.0, 2.0], (2, 2), r"sorted and distinct .*first at \[1\]: 1 "),
]


def _make(kind, *args, **kwargs):
    compressed, plain, values, size = args
    return torch.sparse_compressed_tensor(
        T(compressed) if not isinstance(compressed, torch.Tensor) else compressed,
        T(plain) if not isinstance(plain, torch.Tensor) else plain, T(values), size,
        layout=getattr(torch, f"sparse_{kind}"), **kwargs)


@pytest.mark.parametrize("case", COMPRESSED)
def test_compressed_parts_that_do_not_fit_are_always_refused(case):
    for checks in (True, False, None):
        with pytest.raises(RuntimeError, match=case[-1]):
            _make(*case[:-1], check_invariants=checks)


@pytest.mark.parametrize("case", NUMBERS + ORDER)
def test_compressed_numbers_are_refused_where_that_is_asked_for(case):
    with pytest.raises(RuntimeError, match="(?s)" + case[-1]) as caught:
        _make(*case[:-1], check_invariants=True)
    assert "first at" in str(caught.value)
    t = _make(*case[:-1])
    if case in NUMBERS:
        with pytest.raises(RuntimeError, match=case[-1]):
            t.to_dense()


def test_entries_out_of_order_are_a_matrix_nevertheless():
    t = torch.sparse_csr_tensor([0, 2, 4], [1, 0, 1, 1], [1.0, 2.0, 3.0, 4.0], (2, 2))
    assert t.to_dense().tolist() == [[2, 1], [0, 7]]
    assert t.to_sparse().is_coalesced() is False
    assert t.to_sparse_csc().values().tolist() == [2, 1, 7]


def test_one_array_of_columns_may_belong_to_two_patterns():
    cols, values = T([0, 1]), T([1.0, 2.0])
    a = torch.sparse_csr_tensor(T([0, 1, 2]), cols, values, (2, 2))
    b = torch.sparse_csr_tensor(T([0, 2, 2]), cols, values, (2, 2))
    assert a.to_dense().tolist() == [[1, 0], [0, 2]]
    assert b.to_dense().tolist() == [[1, 2], [0, 0]]


def test_the_switch_is_a_context_a_decorator_and_a_setting():
    switch = check_sparse_tensor_invariants
    assert torch.sparse.check_sparse_tensor_invariants is switch and not switch.is_enabled()

    @switch()
    def inside():
        return switch.is_enabled()

    assert inside() and inside() and not switch.is_enabled()
    with switch():
        with switch(False):
            assert not switch.is_enabled()
        assert switch.is_enabled()
    one = switch()
    with one, pytest.raises(RuntimeError, match="already activated"), one:
        pass
    try:
        switch.enable()
        assert switch.is_enabled()
        switch.disable()
        assert not switch.is_enabled()
    finally:
        switch._enabled = None


def test_layouts_that_do_not_fit_the_name():
    with pytest.raises(RuntimeError, match="layout must be SparseCsr but got SparseCsc"):
        torch.sparse_csr_tensor([0, 1], [0], [1.0], layout=torch.sparse_csc)
    for layout, name in ((None, "none"), (torch.sparse_coo, "Sparse"), (torch.strided, "Strided")):
        with pytest.raises(RuntimeError, match=f"compressed tensor layout but got {name}"):
            torch.sparse_compressed_tensor(T([0, 1]), T([0]), T([1.0]), layout=layout)
    for call in (torch.sparse_coo_tensor, lambda: torch.sparse_coo_tensor(T([[0]])),
                 lambda: torch.sparse_coo_tensor([[0]], [1.0], 2),
                 lambda: torch.sparse_coo_tensor([[0]], [1.0], (2,), dtype="x")):
        with pytest.raises(TypeError):
            call()
