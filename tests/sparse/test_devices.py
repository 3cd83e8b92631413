"""Sparse tensors on a second device: results and gradients are those of the CPU, and are there.

The arrays of the stand-in (`second_device.py`) refuse NumPy's functions and arrays of the CPU, so a
new tensor that is made without a device, or a kernel that calls NumPy, is found.
"""

import pytest

import pullback as torch
from tests.helpers import second_device as second

NAME = second.install()
D = torch.float64
LAYOUTS = ["coo", "twice", "csr", "csc", "bsr", "bsc"]
FULL = torch.tensor([[4.0, 0, -2, 0, 0, 1], [0, 3, 0, 0, 0, 0], [0, 0, 2.5, 1, 0, 0],
                     [0, -1, 0, 5, 0, 0], [0, 0, 0, 0, 6, 0], [1, 0, 0, 0, -3, 2]], dtype=D)
DENSE = torch.arange(18.0, dtype=D).reshape(6, 3).sin()
SQUARE = torch.arange(36.0, dtype=D).reshape(6, 6).cos()


def sparse(layout, full=FULL, grad=True):
    """A matrix in a layout; `twice` has places that come twice, out of order."""
    if layout in ("bsr", "bsc"):
        x = getattr(full, f"to_sparse_{layout}")((2, 3))
    elif layout == "twice":
        x = full.to_sparse()
        order = torch.arange(x._nnz()).flip(0).repeat(2)
        x = torch.sparse_coo_tensor(x.indices()[:, order], x.values()[order], x.shape)
    else:
        x = full.to_sparse() if layout == "coo" else getattr(full, f"to_sparse_{layout}")()
    return x.requires_grad_(grad)


def same(program, *given):
    second.same_there(program, *given, place=NAME)


PROGRAMS = {
    "to_dense": lambda x: x.to_dense(),
    "to_coo": lambda x: x.to_sparse(layout=torch.sparse_coo),
    "to_csr": lambda x: x.to_sparse_csr(),
    "to_csc": lambda x: x.to_sparse_csc(),
    "to_bsr": lambda x: x.to_sparse(layout=torch.sparse_bsr, blocksize=(3, 2)),
    "to_bsc": lambda x: x.to_sparse(layout=torch.sparse_bsc, blocksize=(1, 2)),
    "clone": lambda x: x.clone(),
    "float": lambda x: x.float(),
    "facts": lambda x: (x._nnz(), tuple(x.shape), x.layout),
    "checked": lambda x: torch.sparse_compressed_tensor(
        *parts_of(x.to_sparse_csr()), layout=torch.sparse_csr, check_invariants=True),
    "coordinates": lambda x: torch.sparse_coo_tensor(
        x.to_sparse().coalesce().indices(), x.to_sparse().coalesce().values(), (6, 6),
        is_coalesced=True, check_invariants=True),
    # elementwise
    "sin": lambda x: x.sin(),
    "neg": lambda x: -x,
    "abs": lambda x: x.abs(),
    "times": lambda x: x * 3,
    "over": lambda x: x / 2,
    "x + x": lambda x: x + x,
    "x + other": lambda x: x + x.t().to_sparse(layout=torch.sparse_coo).to_sparse(
        layout=x.layout, blocksize=(2, 3) if x.layout in BLOCKS else None),
    "x * other": lambda x: (x.to_sparse() * x.t().to_sparse()).to_dense(),
    "pow": lambda x: x ** 2,
    "zeros_like": lambda x: torch.zeros_like(x.detach()).to_dense(),
    "equal": lambda x: (torch.equal(x, x.clone()), torch.allclose(x, x * 1)),
    # reductions
    "sum": lambda x: x.sum(),
    "sum 0": lambda x: x.to_sparse().sum(0).to_dense(),
    "sum 1": lambda x: x.to_sparse().sum(1).to_dense(),
    "sparse.sum": lambda x: torch.sparse.sum(x.to_sparse(), 1).to_dense(),
    "amax": lambda x: x.to_sparse().amax(1).to_dense(),
    "norm": lambda x: x.norm(),
    "softmax": lambda x: torch.sparse.softmax(x.to_sparse(), 1),
    "log_softmax": lambda x: torch.sparse.log_softmax(x.to_sparse(), 0),
    # shapes
    "t": lambda x: x.t(),
    "flip": lambda x: x.to_sparse().flip(0),
    "reshape": lambda x: x.to_sparse().reshape(4, 9),
    "unsqueeze": lambda x: x.to_sparse().unsqueeze(1),
    "expand": lambda x: x.to_sparse().expand(2, 6, 6),
    "repeat": lambda x: x.to_sparse().repeat(2, 1),
    "tril": lambda x: x.to_sparse().tril(),
    "diagonal": lambda x: x.to_sparse().diagonal().to_dense(),
    "cat 0": lambda x: torch.cat([x, x]).to_dense(),
    "cat 1": lambda x: torch.cat([x, x], 1).to_dense(),
    "stack": lambda x: torch.stack([x.to_sparse(), x.to_sparse()], 1),
    "kron": lambda x: torch.kron(x.to_sparse(), x.to_sparse()).to_dense(),
    # indexing
    "slice": lambda x: x[2:4].to_dense(),
    "columns": lambda x: x[:, 3:].to_dense(),
    "steps": lambda x: x.to_sparse()[::2].to_dense(),
    "select": lambda x: x[1].to_dense(),
    "element": lambda x: x[0, 2],
    "index_select": lambda x: x.index_select(0, at(x, 3, 0, 3)).to_dense(),
    "list": lambda x: x[at(x, 1, 5)].to_dense(),
    "numbers": lambda x: x[[1, 5]].to_dense(),
    "mask": lambda x: x[at(x, 1, 0, 0, 1, 1, 0) > 0].to_dense(),
    "gather": lambda x: x.gather(1, at(x, 0, 2, 4, 1, 3, 4).reshape(6, 1)),
    "take": lambda x: x.to_sparse().take(at(x, 0, 2, 35)),
}
BLOCKS = (torch.sparse_bsr, torch.sparse_bsc)


def parts_of(x):
    return x.crow_indices(), x.col_indices(), x.values()


def at(x, *numbers):
    """Indices where a tensor is."""
    return torch.tensor(numbers, device=x.device)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_functions(name, layout):
    same(PROGRAMS[name], sparse(layout))


PRODUCTS = {
    "mm": lambda x, d, s: x @ d,
    "mm by a matrix": lambda x, d, s: d.t() @ x,
    "mv": lambda x, d, s: x @ d[:, 0],
    "addmm": lambda x, d, s: torch.addmm(d, x, d, beta=2.0),
    "sparse.mm": lambda x, d, s: torch.sparse.mm(x.to_sparse(), d),
    "sparse x sparse": lambda x, d, s: (x.to_sparse_csr() @ x.to_sparse_csr()).to_dense(),
    "coo x coo": lambda x, d, s: torch.sparse.mm(x.to_sparse(), x.to_sparse()).to_dense(),
    "sampled": lambda x, d, s: torch.sparse.sampled_addmm(x.to_sparse_csr(), d, d.t()),
    "mean": lambda x, d, s: torch.sparse.mm(x.to_sparse_csr(), d, "mean"),
    "amax": lambda x, d, s: torch.sparse.mm(x.to_sparse_csr(), d, "amax"),
    "mask": lambda x, d, s: s.sparse_mask(x.detach().to_sparse().coalesce()),
    "mul": lambda x, d, s: (x.to_sparse() * s),
    "add": lambda x, d, s: s + x,
    "spsolve": lambda x, d, s: torch.sparse.spsolve(x.to_sparse_csr(), d[:, 0]),
    "linear": lambda x, d, s: torch.nn.functional.linear(d.t(), x),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name, layout):
    dense, square = (v.clone().requires_grad_() for v in (DENSE, SQUARE))
    same(PRODUCTS[name], sparse(layout), dense, square)


BATCH = torch.stack([FULL, FULL.t() * 2, FULL - FULL.tril()])
BATCHED = {
    "to_dense": lambda x, d: x.to_dense(),
    "bmm": lambda x, d: torch.bmm(x, d.expand(3, 6, 3)),
    "sum": lambda x, d: x.sum(0).to_dense(),
    "softmax": lambda x, d: torch.sparse.softmax(x, 2),
    "dense entries": lambda x, d: x.to_dense().to_sparse(2).sum(1).to_dense(),
    "select": lambda x, d: x[1].to_dense(),
    "permute": lambda x, d: x.permute(2, 0, 1).to_dense(),
}


@pytest.mark.parametrize("name", BATCHED)
def test_more_dims(name):
    same(BATCHED[name], BATCH.to_sparse().requires_grad_(), DENSE.clone().requires_grad_())


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr", "bsc"])
def test_batches_of_rows(layout):
    full = torch.stack([FULL, FULL * 2])
    size = ((2, 3),) if layout[0] == "b" else ()
    x = getattr(full, f"to_sparse_{layout}")(*size).requires_grad_()
    for function in (lambda x: x.to_dense(), lambda x: x.to_sparse(layout=torch.sparse_coo),
                     lambda x: x[1].to_dense(), lambda x: x.sin(), lambda x: x.transpose(1, 2)):
        same(function, x)


MAKES = {
    "empty": lambda d: torch.zeros(3, 4, dtype=D, layout=torch.sparse_csr, device=d.device) * 2,
    "from nothing": lambda d: torch.sparse_coo_tensor(size=(3, 4), device=d.device),
    "spdiags": lambda d: torch.sparse.spdiags(d, torch.tensor([0, 2, -1]), (6, 6)).to_dense(),
    "numbers here": lambda d: torch.sparse_coo_tensor([[0, 2, 2]], d[:3], (6, 3)),
    "indices here": lambda d: torch.sparse_csr_tensor(
        torch.tensor([0, 1, 3]), torch.tensor([0, 0, 2]), d[:3, 0]),
    "integers": lambda d: (d * 4).to(torch.int8).to_sparse() @ (d * 4).to(torch.int8).t(),
    "resized": lambda d: d.to_sparse(1).sparse_resize_((8, 4), 1, 1).to_dense(),
    "written": lambda d: d.to_sparse().add_(d.to_sparse()).mul_(2).to_dense(),
    "moved": lambda d: d.cpu().to_sparse_csr().to(d.device),
}


@pytest.mark.parametrize("name", MAKES)
def test_constructors(name):
    same(MAKES[name], DENSE.t() if name == "spdiags" else DENSE)


def test_integers_that_are_wrong_are_refused():
    values = torch.ones(2, dtype=D).to(NAME)
    for rows, cols in (([0, 3, 2], [0, 1]), ([0, 1, 2], [0, 7])):
        x = torch.sparse_csr_tensor(torch.tensor(rows).to(NAME), torch.tensor(cols).to(NAME),
                                    values, (2, 3), check_invariants=False)
        with pytest.raises(RuntimeError, match="is not satisfied"):
            x.to_dense()
    x = torch.sparse_coo_tensor(torch.tensor([[0, 5]]).to(NAME), values, (3,),
                                check_invariants=False)
    with pytest.raises(RuntimeError, match="index 5"):
        x.to_dense()
    with pytest.raises(RuntimeError, match="uncoalesced"):
        torch.sparse_coo_tensor(torch.tensor([[1, 1]]).to(NAME), values, (3,), is_coalesced=True,
                                check_invariants=True)
    with pytest.raises(IndexError):
        sparse("coo", grad=False).to(NAME).index_select(0, torch.tensor([9]).to(NAME))


def test_what_is_found_from_a_pattern_is_kept_with_it():
    x = sparse("csr", grad=False).to(NAME)
    coo = x.to_sparse(layout=torch.sparse_coo)
    assert x.sin().to_sparse(layout=torch.sparse_coo).indices_part is coo.indices_part
    x.col_indices()[0] = 1  # written: nothing that was found before is true
    assert x.to_dense()[0, 1] == 4 and x.to_dense()[0, 0] == 0
