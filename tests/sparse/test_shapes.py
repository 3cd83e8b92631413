"""Shapes of sparse tensors and tensors joined, against dense arithmetic in every layout."""

import pytest

import pullback as torch
from tests.helpers import sparse_cases as cases
from tests.helpers.sparse_layouts import COMPILED, KINDS, LAYOUTS, checked


def swapped(x):
    return x.permute(1, 0, *range(2, x.ndim))


SHAPES = {
    "transpose": lambda x: x.transpose(0, -1), "mT": lambda x: x.mT, "permute": swapped,
    "reversed": lambda x: x.permute(*reversed(range(x.ndim))),
    "movedim": lambda x: x.movedim(-1, 0),
    "in front": lambda x: x[None], "behind": lambda x: x.unsqueeze(-1),
    "between": lambda x: x.unsqueeze(-2), "squeeze": lambda x: x[None].unsqueeze(2).squeeze(),
    "squeeze one": lambda x: x[1:2, :1].squeeze(0), "squeeze two": lambda x: x[1:2, :1].squeeze(
        (0, 1)), "not squeezed": lambda x: x.squeeze(0),
    "reshape": lambda x: x.reshape(2, -1), "flatten": lambda x: x.flatten(),
    "apart": lambda x: x.reshape(2, -1, 3), "to the end": lambda x: x.unflatten(-1, (-1, 1)),
    "merged": lambda x: x.flatten(0, 1), "view": lambda x: x[None].view(x.shape),
    "expand": lambda x: x.expand(3, *x.shape), "wider": lambda x: x[:1].expand_as(x),
    "repeat": lambda x: x.repeat(*range(2, x.ndim + 2)),
    "tile": lambda x: x.tile(2, *(1,) * x.ndim),
    "flip": lambda x: x.flip(0, -1), "fliplr": lambda x: x.fliplr(),
    "roll": lambda x: x.roll((1, -2, 3), (0, 1, -1)), "roll all": lambda x: x.roll(5),
    "rot90": lambda x: x.rot90(1) + x.rot90(-1), "rot180": lambda x: x.rot90(2, (-2, -1)),
    "diag_embed": lambda x: x.diag_embed(-1), "diag_embed front": lambda x: x.diag_embed(
        1, 0, -1),
    "cat": lambda x: torch.cat([x, x * 2, x]), "cat rows": lambda x: torch.cat([x, x * 2], -2),
    "cat columns": lambda x: torch.cat([x * 2, x], -1), "hstack": lambda x: torch.hstack([x, x]),
    "cat of others": lambda x: torch.cat([x, x.flip(-1)], -1),
    "stack": lambda x: torch.stack([x, x * x]), "stack inside": lambda x: torch.stack([x, x], 1),
    "stack behind": lambda x: torch.stack([x, x * 3], -1),
    "stack of others": lambda x: torch.stack([x, x.flip(0)], -1),
    "kron": lambda x: torch.kron(x, x), "kron dense": lambda x: torch.kron(
        torch.tensor([1.0, 2.0]).to(x.dtype), x),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SHAPES)
def test_entries_get_other_coordinates(name, kind):
    checked(SHAPES, name, kind)


@pytest.mark.parametrize("name", ("permute", "reshape", "repeat", "roll", "cat", "stack"))
def test_compiled_programs(name):
    for layout in COMPILED:
        cases.compiled(cases.Row(SHAPES[name], LAYOUTS[layout]), cases.values())


@pytest.mark.parametrize("layout", ("csr", "csc", "batch_csr", "uncoalesced", "hybrid"))
def test_patterns_of_arguments_are_traced_where_no_count_depends_on_them(layout):
    x = LAYOUTS[layout](cases.values())
    for name in ("mT", "in front", "flip", "expand"):
        if name == "mT" and layout == "hybrid":
            continue
        function = torch.compile(lambda x, f=SHAPES[name]: f(x).to_dense() * 2, fullgraph=True)
        cases.close(function(x), SHAPES[name](x.to_dense()) * 2)


# name -> (layout -> layout of the result), coordinates where a layout is not named
KEPT = {
    "mT": {"csr": "csc", "csc": "csr", "bsr": "bsc", "bsc": "bsr", "batch_csr": "csc",
           "batch_bsc": "bsr"},
    "permute": {"csr": "csc", "csc": "csr", "bsr": "bsc", "bsc": "bsr", "hybrid_csr": "csc"},
    "in front": {k: k for k in ("csr", "csc", "bsr", "bsc", "batch_csr", "hybrid_csr",
                                "batch_bsc")},
    "between": {"hybrid_csr": "csr"}, "flatten": {},
    "reshape": {k: k for k in ("csr", "csc", "bsr", "bsc", "batch_csr", "batch_bsc",
                               "hybrid_csr")},
    "flip": {k: k for k in ("csr", "csc", "bsr", "bsc", "batch_csr", "hybrid_csr", "batch_bsc")},
    "repeat": {k: k for k in ("csr", "csc", "bsr", "bsc", "batch_csr", "hybrid_csr", "batch_bsc")},
    "cat rows": {k: k for k in ("csr", "csc", "bsr", "bsc", "batch_csr", "batch_bsc",
                                "hybrid_csr")},
    "stack": {k: k for k in ("csr", "csc", "bsr", "bsc", "batch_csr", "hybrid_csr", "batch_bsc")},
}


@pytest.mark.parametrize("name", KEPT)
def test_layouts_of_results(name):
    for layout, make in LAYOUTS.items():
        out = SHAPES[name](make(cases.values()))
        wanted = KEPT[name].get(layout, "coo").removeprefix("batch_").removeprefix("hybrid_")
        assert str(out.layout) == f"torch.sparse_{wanted}", (layout, out.layout)


def test_blocks_keep_their_size_where_it_divides():
    x = cases.bsr(cases.values())
    for out, size in ((x.mT, (3, 2)), (x.flip(0), (2, 3)), (x.roll(3, 1), (2, 3)),
                      (x.roll(1, 0), (1, 3)), (torch.cat([x, x], 1), (2, 3)),
                      (x.reshape(8, 3), (2, 3)), (x.reshape(3, 8), (1, 1))):
        assert tuple(out.values().shape[1:]) == size, (out.shape, out.values().shape)


def test_views_share_integers_and_values():
    x = cases.csr(cases.values())
    for y in (x.t(), x[None], x[...], x.squeeze(0)):
        assert y.values()._payload.base is x.values()._payload.base or (
            y.values().data_ptr() == x.values().data_ptr())
    assert x.t().ccol_indices().data_ptr() == x.crow_indices().data_ptr()


def test_other_shapes_in_place():
    x = cases.coo(cases.values())
    y = x.squeeze(0)
    before = x.to_dense()
    assert y.t_() is y and y.unsqueeze_(0) is y and y.transpose_(0, 1) is y and y.squeeze_(1) is y
    assert x.shape == (4, 6) and y.shape == (6, 4)
    cases.close(y.to_dense(), before.t())
    with pytest.raises(NotImplementedError, match="the result would be a Csc"):
        cases.csr(cases.values()).t_()


def test_order_is_known_where_it_stays():
    x, y = cases.coo(cases.values()), cases.uncoalesced(cases.values())
    for out in (x[None], x.reshape(2, 12), x.expand(3, 4, 6), torch.cat([x, x]), x.repeat(2, 1)):
        assert out.is_coalesced()
        flat = [0] * out._nnz()
        for row, size in zip(out.indices(), out.shape):
            flat = [n * size + int(i) for n, i in zip(flat, row)]
        assert flat == sorted(set(flat))
    for out in (x.flip(0), x.t(), y[None], y.reshape(2, 12)):
        assert not out.is_coalesced()


def test_refusals_name_the_cure():
    x, y = cases.csr(cases.values()), torch.ones(4, 6, dtype=torch.float64)
    h = cases.hybrid(cases.values())
    for call, kind, said in (
            (lambda: torch.cat([x, y]), NotImplementedError, "position 1 is dense"),
            (lambda: torch.cat([x, x.t()]), RuntimeError, "must match except in dimension 0"),
            (lambda: torch.stack([x, x.t()]), RuntimeError, "to be equal size"),
            (lambda: torch.cat([h, h.to_dense().to_sparse()]), RuntimeError, "sparse dims"),
            (lambda: h.t(), RuntimeError, "<= 2 dimensions"),
            (lambda: x.permute(0), RuntimeError, "does not match"),
            (lambda: x.reshape(5, 5), RuntimeError, "invalid for input of size"),
            (lambda: x.expand(4, 7), RuntimeError, "must match the existing size"),
            (lambda: x.repeat(2), RuntimeError, "can not be smaller"),
            (lambda: torch.view_as_complex(x), NotImplementedError, "has to be a dense one")):
        with pytest.raises(kind, match=said):
            call()


def test_complex_numbers_as_pairs():
    for layout, make in LAYOUTS.items():
        v = cases.values(torch.complex128)
        x = make(v)
        pairs = torch.view_as_real(x)
        assert pairs.layout is x.layout and pairs.dense_dim() == x.dense_dim() + 1, layout
        cases.close(pairs.to_dense(), torch.view_as_real(x.to_dense()))
        cases.close(torch.view_as_complex(pairs).to_dense(), x.to_dense())
        cases.close(x.imag.to_dense(), x.to_dense().imag)
        cases.close(x.real.to_dense(), x.to_dense().real)
        for part in ("real", "imag"):
            inputs = [v.clone().requires_grad_() for _ in range(2)]
            cases.loss(getattr(make(inputs[0]), part).to_dense()).backward()
            cases.loss(getattr(cases.dense_of(make)(inputs[1]), part)).backward()
            cases.close(inputs[0].grad, inputs[1].grad)


def test_sizes_of_zero_and_one():
    for shape in ((0, 3), (3, 0), (1, 1), (1,), ()):
        x = torch.zeros(shape, dtype=torch.float64).to_sparse()
        for function in (lambda x: x.flatten(), lambda x: x.unsqueeze(0), lambda x: x.squeeze(),
                         lambda x: torch.stack([x, x], -1), lambda x: x.expand(2, *x.shape),
                         lambda x: x.repeat(2, *(1,) * x.ndim), lambda x: x.flip(range(x.ndim)),
                         lambda x: torch.kron(x, x), lambda x: x.reshape((1, *x.shape, 1)),
                         lambda x: x.permute(tuple(reversed(range(x.ndim))))):
            cases.close(cases.whole(function(x)), function(x.to_dense()))
    bools = torch.tensor([[True, False], [True, True]])
    for function in (lambda x: x.t(), lambda x: x.roll(1, 0), lambda x: torch.cat([x, x]),
                     lambda x: torch.stack([x, x])):
        cases.close(function(bools.to_sparse_csr()).to_dense(), function(bools))
