"""Slices, indices and masks of sparse tensors against dense arithmetic in every layout."""

import pytest

import pullback as torch
from tests.helpers import sparse_cases as cases
from tests.helpers.sparse_layouts import COMPILED, KINDS, LAYOUTS, checked


def joined(pieces):
    """Several results as one."""
    return torch.cat([cases.whole(p).flatten() for p in pieces])


ROWS = torch.tensor([1, 0, 1])
WHERE, TURNED = torch.tensor([[0, 1], [1, -1]]), torch.tensor([[0, 1], [1, -1]]).t()
SLICES = {
    "rows": lambda x: x[1:2], "last rows": lambda x: x[-1:], "no rows": lambda x: x[1:1],
    "columns": lambda x: x[..., 1:], "both": lambda x: x[1:, 0:3], "steps": lambda x: x[::2, 1::2],
    "narrow": lambda x: x.narrow(1, 1, 2), "narrow_copy": lambda x: x.narrow_copy(-1, 0, 2),
    "row": lambda x: x[1], "column": lambda x: x[:, 2], "last dim": lambda x: x.select(-1, 0),
    "row and columns": lambda x: x[0, 1:], "one place": lambda x: x[1, 0],
    "end": lambda x: x[-1, -1],
    "select_copy": lambda x: torch.select_copy(x, 1, 1), "everything": lambda x: x[...],
    "numbers": lambda x: x[tuple(n - 1 for n in x.shape)], "new dim": lambda x: x[1, None, 1:3],
}
LISTS = {
    "list of rows": lambda x: x[ROWS], "list of columns": lambda x: x[:, ROWS],
    "last": lambda x: x[..., [-1, 0]], "index_select": lambda x: x.index_select(0, ROWS),
    "index_select columns": lambda x: x.index_select(1, ROWS),
    "index_select last": lambda x: x.index_select(-1, ROWS), "none": lambda x: x[ROWS[:0]],
    "matrix of rows": lambda x: x[WHERE], "pairs": lambda x: x[ROWS, WHERE[1, 0]],
    "places": lambda x: x[WHERE, TURNED], "apart": lambda x: x[None][ROWS * 0, :, ROWS],
    "mixed": lambda x: x[1:][[0], ROWS], "mask of rows": lambda x: x[torch.arange(len(x)) != 1],
    "mask": lambda x: x[torch.arange(x.numel()).reshape(x.shape) % 3 == 1],
    "front mask": lambda x: x[torch.arange(x.shape[0] * x.shape[1]).reshape(x.shape[:2]) % 3 == 1],
    "gather": lambda x: x.gather(1, torch.zeros(2, *x.shape[1:], dtype=torch.int64)),
    "take": lambda x: x.take(WHERE * 5), "masked_select": lambda x: x.masked_select(
        torch.arange(x.shape[-1]) % 2 == 0), "true": lambda x: x[True],
}
PIECES = {
    "unbind": lambda x: joined(x.unbind()), "columns": lambda x: joined(x.unbind(1)),
    "last": lambda x: joined(x.unbind(-1)), "iter": lambda x: joined(list(x)),
    "split": lambda x: joined(x.split(3, 1)), "sizes": lambda x: joined(x.split([1, 0, 3], 1)
        if x.shape[1] == 4 else x.split([2, 4], 1)),
    "chunk": lambda x: joined(x.chunk(2)), "tensor_split": lambda x: joined(x.tensor_split(3, -1)),
}
PARTS = {
    "diagonal": lambda x: x.diagonal(), "above": lambda x: x.diagonal(1, 0, -1),
    "below": lambda x: x.diagonal(-1, 1, 0), "none": lambda x: x.diagonal(9),
    "tril": lambda x: x.tril(), "triu": lambda x: x.triu(1), "less": lambda x: x.tril(-2),
}
TRACED = {"mask of rows", "mask", "front mask", "masked_select", "pairs", "apart", "true"}
ALL = {**SLICES, **LISTS, **{f"pieces {k}": f for k, f in PIECES.items()}, **PARTS}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ALL)
def test_parts_of_tensors(name, kind):
    if kind != "captured" or name not in TRACED:  # then the indices are values of the graph
        checked(ALL, name, kind)


@pytest.mark.parametrize("name", ("rows", "column", "one place", "list of rows", "tril"))
def test_compiled_programs(name):
    for layout in COMPILED:
        cases.compiled(cases.Row(ALL[name], LAYOUTS[layout]), cases.values())


def test_programs_cut_patterns_from_outside_when_they_are_captured():
    x, d = cases.csr(cases.values()), torch.ones(6, 2, dtype=torch.float64)
    for name in ("rows", "columns", "steps", "list of rows", "tril"):
        y = ALL[name](x)
        function = torch.compile(lambda d, f=ALL[name]: f(x) @ d[:f(x).shape[1]], fullgraph=True)
        cases.close(function(d), y.to_dense() @ d[:y.shape[1]])


SAME = ("csr", "csc", "bsr", "bsc", "hybrid_csr")
KEPT = {  # layouts that results have; coordinates where none is named
    "rows": {k: k for k in (*SAME, "batch_csr", "batch_bsc")}, "both": {k: k for k in SAME},
    "steps": {k: k for k in SAME}, "row": {"batch_csr": "csr", "batch_bsc": "bsc"},
    "column": {"batch_csr": "csr", "batch_bsc": "bsc"}, "list of columns": {k: k for k in SAME},
    "list of rows": {k: k for k in (*SAME, "batch_csr", "batch_bsc")}, "matrix of rows": {
        "batch_csr": "csr", "batch_bsc": "bsc"}, "diagonal": {
        "batch_csr": "csr", "batch_bsc": "bsc", "hybrid_csr": "csr"}, "tril": {
        k: k for k in ("csr", "csc", "bsr", "bsc", "batch_csr", "batch_bsc")},
}


@pytest.mark.parametrize("name", KEPT)
def test_layouts_of_results(name):
    for layout, make in LAYOUTS.items():
        out = ALL[name](make(cases.values()))
        wanted = KEPT[name].get(layout, "coo").removeprefix("batch_").removeprefix("hybrid_")
        if name == "matrix of rows" and layout.startswith("batch"):
            assert out.ndim == 4
        else:
            assert str(out.layout) == f"torch.sparse_{wanted}", (layout, out.layout)


def test_full_indices_are_dense():
    for layout, make in LAYOUTS.items():
        x = make(cases.values())
        for out, wanted in ((x[(1,) * x.ndim], 0), (x[(ROWS,) * x.ndim], 1),
                            (x[(0,) * (x.ndim - x.dense_dim())], x.dense_dim())):
            assert out.layout is torch.strided and out.ndim == wanted, layout
    assert cases.csr(cases.values())[0, 1].item() == float(cases.values()[0])


def test_rows_are_cut_out_by_their_pointers():
    """A million rows: nothing of the others is read, sorted or copied."""
    n = 1_000_000
    ones = torch.ones(n, dtype=torch.float64)
    for make in (torch.sparse_csr_tensor, torch.sparse_csc_tensor):
        x = make(torch.arange(n + 1), torch.arange(n), ones, (n, n))
        dim = 0 if make is torch.sparse_csr_tensor else 1
        y = x.narrow(dim, 500, 3)
        assert y.values().data_ptr() == x.values().data_ptr() + 500 * 8
        assert y._nnz() == 3 and y.layout is x.layout
        assert x.select(dim, 7)._indices().tolist() == [[7]]
        assert [r._nnz() for r in y.unbind(dim)] == [1, 1, 1]
    leaf = x.detach().requires_grad_()
    (leaf.narrow(1, 5, 2).values() * 3).sum().backward()
    assert float(leaf.grad.values().sum()) == 6


def test_blocks_are_cut_into_smaller_ones_where_bounds_are_inside():
    x = cases.bsr(cases.values())
    for out, size in ((x[2:], (2, 3)), (x[1:3], (1, 3)), (x[:, 3:], (2, 3)), (x[:, 2:4], (2, 1)),
                      (x[:, ::2], (2, 1)), (x[[0, 2]], (1, 3)), (x.tril(), (2, 3))):
        assert tuple(out.values().shape[1:]) == size, (out.shape, out.values().shape)


def test_batches_keep_their_places_below_a_diagonal():
    x = cases.batch_csr(cases.values())
    y = x.tril()
    assert y._nnz() == x._nnz() and y.col_indices().tolist() == x.col_indices().tolist()


def test_integers_stay_narrow():
    x = cases.csr(cases.values())
    x = torch.sparse_csr_tensor(x.crow_indices().int(), x.col_indices().int(), x.values(), (4, 6))
    for out in (x[1:3], x[ROWS], x[:, 1:4], x[::2], x.triu(), x.flip(0), x[None],
                torch.cat([x, x])):
        assert out.crow_indices().dtype is torch.int32 and out.col_indices().dtype is torch.int32


def test_masks_that_are_sparse():
    for make in cases.MATRICES.values():
        x = make(cases.values())
        for t in (x, x.to_dense()):
            cases.close(t[x > 0.5], x.to_dense()[x.to_dense() > 0.5])
            cases.close(t.masked_select(x > 0.5), x.to_dense()[x.to_dense() > 0.5])
        assert x.nonzero().tolist() == x.to_dense().nonzero().tolist()


def test_bools_and_integers():
    for x in (torch.tensor([[True, False], [True, True]]), torch.tensor([[3, 0], [-1, 2]])):
        for s in (x.to_sparse(), x.to_sparse_csr(), torch.cat([x.to_sparse(1), x.to_sparse(1)])):
            t = s.to_dense()
            for function in (lambda t: t[1], lambda t: t[0, 1], lambda t: t[:, 0],
                             lambda t: t[ROWS, ROWS], lambda t: t[1:], lambda t: t.tril()):
                cases.close(cases.whole(function(s)), function(t))
    twice = torch.sparse_coo_tensor([[1, 1]], torch.tensor([True, True]), (3,))
    assert twice[1].item() is True and twice[0].item() is False


def test_patterns_that_are_not_in_order():
    """Constructors do not look: columns in any order, and entries that are there twice."""
    x = torch.sparse_csr_tensor(torch.tensor([0, 3, 4]), torch.tensor([2, 0, 2, 1]),
                                torch.tensor([1.0, 2.0, 4.0, 8.0]), (2, 3))
    wanted = torch.tensor([[2.0, 0, 5], [0, 8, 0]])
    cases.close(x.to_dense(), wanted)
    for function in (lambda t: t[0:1], lambda t: t[0], lambda t: t[0, 2], lambda t: t[:, 1:],
                     lambda t: t[ROWS], lambda t: t.flip(1), lambda t: t.tril(),
                     lambda t: t.reshape(3, 2), lambda t: torch.cat([t, t]),
                     lambda t: torch.stack(list(t)), lambda t: t[ROWS, ROWS], lambda t: t.mT):
        cases.close(cases.whole(function(x)), function(wanted))


def test_refusals():
    x = cases.csr(cases.values())
    for call, kind, said in (
            (lambda: x[4], IndexError, "out of"), (lambda: x[0, 6], IndexError, "out of"),
            (lambda: x[[4]], IndexError, "index 4 for a dim of size 4"),
            (lambda: x[[0], [-7]], IndexError, "index -7 for a dim of size 6"),
            (lambda: x[torch.ones(3, dtype=torch.bool)], IndexError, "shape of the mask"),
            (lambda: x.index_select(0, torch.tensor([-1])), IndexError, "index -1"),
            (lambda: x.select(0, 9), IndexError, "out of range"),
            (lambda: x.narrow(0, 3, 2), RuntimeError, "exceeds dimension size"),
            (lambda: x.split([1, 1]), RuntimeError, "to sum exactly to 4"),
            (lambda: x.diagonal(0, 1, 1), RuntimeError, "cannot be identical"),
            (lambda: x[0].tril(), RuntimeError, "at least 2 dimensions"),
            (lambda: x.gather(0, torch.full((4, 6), 4)), IndexError, "gather"),
            (lambda: x.__setitem__(0, 1.0), TypeError, "Cannot assign to a sparse tensor")):
        with pytest.raises(kind, match=said):
            call()
    with pytest.raises(TypeError, match=r"torch\.where\(mask, y, x\)"):
        x[x > 0] = 1.0
