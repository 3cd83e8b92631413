"""Sparse tensors in all layouts beside the same ones as dense arithmetic.

An operator is a function of a sparse tensor and dense ones, and the same of dense tensors alone;
a check compares the two by one kind of derivative, transform or capture.  The carrier of all
derivatives is the values.  Tests are products of rows: operators, layouts and checks.
"""

from __future__ import annotations

import functools

import pullback as torch
from pullback import func

ROWS, COLUMNS = 4, 6
ENTRIES = [(0, 1), (0, 4), (1, 0), (3, 1), (3, 2), (3, 5)]  # row 2 and column 3 have none


def _coo(values, shape=(ROWS, COLUMNS), at=ENTRIES, coalesced=True):
    places = torch.tensor(at).t() if at else torch.zeros(2, 0, dtype=torch.int64)
    return torch.sparse_coo_tensor(places, values, (*shape, *values.shape[1:]),
                                   is_coalesced=coalesced)


TWICE = [(3, 2), (0, 1), (0, 1), (1, 0), (3, 2), (2, 5)]


def coo(values):
    return _coo(values)


def uncoalesced(values):
    """Entries out of order, two places twice."""
    return _coo(values, at=TWICE, coalesced=False)


def hybrid(values):
    """Entries that are vectors."""
    return _coo(torch.stack([values, values * values, 1 - values], 1))


def csr(values):
    return torch.sparse_csr_tensor(
        torch.tensor([0, 2, 3, 3, 6]), torch.tensor([1, 4, 0, 1, 2, 5]), values, (ROWS, COLUMNS))


def csc(values):
    return torch.sparse_csc_tensor(
        torch.tensor([0, 1, 3, 4, 4, 5, 6]), torch.tensor([1, 0, 3, 3, 0, 3]), values,
        (ROWS, COLUMNS))


def bsr(values):
    """Blocks of 2 x 3: one in the first row of blocks, two in the second."""
    blocks = torch.stack([values, values.flip(0), values + 1]).reshape(3, 2, 3)
    return torch.sparse_bsr_tensor(
        torch.tensor([0, 1, 3]), torch.tensor([1, 0, 1]), blocks, (ROWS, COLUMNS))


def bsc(values):
    blocks = torch.stack([values, values.flip(0), values + 1]).reshape(3, 2, 3)
    return torch.sparse_bsc_tensor(
        torch.tensor([0, 1, 3]), torch.tensor([1, 0, 1]), blocks, (ROWS, COLUMNS))


def batch_csr(values):
    """Two matrices with other entries, of one number."""
    pointers = torch.tensor([[0, 2, 3, 3, 6], [0, 0, 2, 4, 6]])
    columns = torch.tensor([[1, 4, 0, 1, 2, 5], [0, 3, 1, 5, 2, 4]])
    return torch.sparse_csr_tensor(pointers, columns, torch.stack([values, values * 2]),
                                   (2, ROWS, COLUMNS))


def batch_coo(values):
    places = torch.tensor([(0, 0, 1), (0, 3, 5), (1, 0, 0), (1, 1, 2), (1, 3, 3), (1, 3, 4)]).t()
    return torch.sparse_coo_tensor(places, values, (2, ROWS, COLUMNS), is_coalesced=True)


def empty_coo(values):
    """No entries, whatever the values."""
    return _coo(values[:0], at=[])


MATRICES = {"coo": coo, "uncoalesced": uncoalesced, "csr": csr, "csc": csc, "bsr": bsr,
            "bsc": bsc}
BATCHES = {"batch_csr": batch_csr, "batch_coo": batch_coo}
ALL = {**MATRICES, "hybrid": hybrid, **BATCHES, "empty": empty_coo}


def whole(t):
    """The elements of a result, whatever its layout."""
    return t if t.layout is torch.strided else t.to_dense()


def dense_of(make):
    """A layout's function of values as one that makes a dense tensor, by indexing alone."""
    constant, linear, quadratic = _basis(make)

    def dense(values):
        return (constant + torch.tensordot(values, linear.to(values.dtype), 1)
                + torch.tensordot(values * values, quadratic.to(values.dtype), 1))

    return dense


@functools.cache
def _basis(make):
    """A tensor that is a polynomial of degree two in each value: its coefficients."""
    def at(i, x):
        v = torch.zeros(6, dtype=torch.float64)
        if i is not None:
            v[i] = x
        return make(v).to_dense()

    zero = at(None, 0)
    plus = torch.stack([at(i, 1.0) - zero for i in range(6)])
    minus = torch.stack([at(i, -1.0) - zero for i in range(6)])
    return zero, (plus - minus) / 2, (plus + minus) / 2


def values(dtype=torch.float64, seed=0):
    """Values, one of them zero, away from kinks."""
    torch.manual_seed(seed)
    v = torch.rand(6, dtype=torch.float64) + 0.3
    v = v * torch.tensor([1.0, -1, 1, 1, -1, 1], dtype=torch.float64)
    if dtype is torch.complex128:
        return torch.complex(v, v.flip(0) * 0.5)
    return v.to(dtype)


def weights(like, seed):
    torch.manual_seed(seed)
    return torch.randn(like.shape, dtype=like.dtype)


def loss(out):
    """A number that depends on all elements in different ways."""
    out = out * weights(out.detach(), 3)
    total = (out * out.conj()).sum() + out.sum()
    return total.real if total.is_complex() else total


def close(a, b):
    assert a.shape == b.shape and a.dtype is b.dtype, (a.shape, b.shape, a.dtype, b.dtype)
    assert torch.allclose(a, b, equal_nan=True), (a - b).abs().max()


class Row:
    """A function of a sparse tensor and dense ones, and what it is in dense arithmetic."""

    def __init__(self, sparse, make, operands=(), dense=None):
        self.sparse, self.make, self.operands = sparse, make, operands
        self.dense = dense or sparse
        _basis(make)  # once, and not below a transform

    def ours(self, v, *operands):
        return whole(self.sparse(self.make(v), *operands))

    def theirs(self, v, *operands):
        return whole(self.dense(dense_of(self.make)(v), *operands))


def forward(row, v):
    close(row.ours(v, *row.operands), row.theirs(v, *row.operands))


def _gradients(function, inputs, order):
    inputs = [t.detach().requires_grad_() for t in inputs]
    found = torch.autograd.grad(loss(function(*inputs)), inputs, create_graph=order > 1,
                                materialize_grads=True)
    if order == 1:
        return found
    total = sum(loss(g) for g in found)
    if not total.requires_grad:
        return found
    return torch.autograd.grad(total, inputs, materialize_grads=True)


def _compare(row, v, order):
    inputs = (v, *row.operands)
    for a, b in zip(_gradients(row.ours, inputs, order), _gradients(row.theirs, inputs, order)):
        close(a, b)


def backward(row, v):
    _compare(row, v, 1)


def second(row, v):
    _compare(row, v, 2)


def complex_backward(row, v):
    row = Row(row.sparse, row.make, tuple([torch.complex(d, d.flip(0)) for d in row.operands]),
              row.dense)
    _compare(row, values(torch.complex128), 1)


def jvp(row, v):
    inputs = (v, *row.operands)
    tangents = tuple([weights(t, i + 5) for i, t in enumerate(inputs)])
    for a, b in zip(func.jvp(row.ours, inputs, tangents), func.jvp(row.theirs, inputs, tangents)):
        close(a, b)


def vmap_values(row, v):
    several, nones = torch.stack([v, v * 2, v - 3]), (None,) * len(row.operands)
    found = func.vmap(row.ours, (0, *nones))(several, *row.operands)
    for one, out in zip(several, found):
        close(out, row.theirs(one, *row.operands))


def vmap_dense(row, v):
    for k in range(len(row.operands)):
        dims = tuple([0 if i == k else None for i in range(len(row.operands))])
        given = list(row.operands)
        given[k] = torch.stack([given[k], given[k] * 2, given[k] - 1])
        found = func.vmap(row.ours, (None, *dims))(v, *given)
        for j, one in enumerate(given[k]):
            operands = [one if i == k else d for i, d in enumerate(row.operands)]
            close(found[j], row.theirs(v, *operands))


def functional(row, v):
    """`func.grad` with respect to the sparse tensor itself."""
    t = row.make(v)
    found = func.grad(lambda m: loss(whole(row.sparse(m, *row.operands))))(t)
    assert found.layout is t.layout and found.shape == t.shape
    leaf = t.detach().requires_grad_()
    loss(whole(row.sparse(leaf, *row.operands))).backward()
    assert leaf.grad.layout is t.layout
    close(found._values(), leaf.grad._values())


def compiled(row, v):
    inputs = [t.detach().requires_grad_() for t in (v, *row.operands)]
    out = torch.compile(row.ours)(*inputs)
    close(out.detach(), row.theirs(v, *row.operands))
    found = torch.autograd.grad(loss(out), inputs, materialize_grads=True)
    for a, b in zip(found, _gradients(row.theirs, (v, *row.operands), 1)):
        close(a, b)


def captured(row, v, gradients=True, fullgraph=True):
    """One graph of the values, where the integers are known outside of it."""
    pattern = row.make(v)

    def function(v, *operands):
        t = row.make(v)
        if t.layout is not torch.strided:
            t = pattern.with_carrier(t.values_with_history)
        return whole(row.sparse(t, *operands))

    inputs = [t.detach().requires_grad_() for t in (v, *row.operands)]
    out = torch.compile(function, fullgraph=fullgraph, backend="aot_eager")(*inputs)
    wanted = row.theirs(*inputs)
    close(out.detach(), wanted.detach())
    if gradients and wanted.requires_grad:
        found = torch.autograd.grad(loss(out), inputs, materialize_grads=True)
        for a, b in zip(found, _gradients(row.theirs, inputs, 1)):
            close(a, b)


CHECKS = {f.__name__: f for f in (
    forward, backward, second, complex_backward, jvp, vmap_values, vmap_dense, functional,
    compiled, captured)}
