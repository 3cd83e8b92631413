"""Entries of the table that are about sparse tensors: what `torch.ops.aten` calls.

Every such entry has a row: the call, what it has to equal, and the inputs that PyTorch
differentiates it in.
"""

import pytest

import pullback as torch
from pullback import func
from pullback.core.op import registry
from pullback.table.packets import load_all

aten = torch.ops.aten
AT = torch.tensor([[0, 2, 1, 0], [1, 0, 1, 1]])  # (0, 1) twice
OTHER = torch.tensor([[0, 1, 2], [1, 1, 0]])
D = torch.float64


def coo(values):
    return torch.sparse_coo_tensor(AT, values, (3, 2))


def once(values):
    return torch.sparse_coo_tensor(OTHER, values[:3], (3, 2), is_coalesced=False).coalesce()


def csr(values):
    return once(values).to_sparse_csr()


def csc(values):
    return once(values).to_sparse_csc()


def full(values):
    return torch.stack([values, values * 2, values + 1])[:, :2]


def same(make, name):
    return lambda v: getattr(make(v), name)()


def whole(t):
    return t.to_dense() if t.layout is not torch.strided else t


def copied(name, make):
    return lambda v: (getattr(aten, name)(make(v)), getattr(make(v), name.removesuffix("_copy"))())


def converted(entry, method, *args, make=full, **kwargs):
    return lambda v: (getattr(aten, entry)(make(v), *args, **kwargs),
                      getattr(make(v), method)(*args, **kwargs))


def along_columns(v, function):
    """Of the entries of `once`: two in one column, one in the other."""
    two, one = function(v[:2], 0), function(v[2:3], 0)
    return torch.zeros(3, 2, dtype=D).index_put(tuple(OTHER), torch.cat([two, one]))


INTEGERS = {  # names of the integers of compressed layouts, and parts of `once` as such a tensor
    "csr": ("crow_col", [0, 1, 2, 3], [1, 1, 0]), "csc": ("ccol_row", [0, 1, 3], [2, 0, 1]),
    "bsr": ("crow_col", [0, 1], [0]), "bsc": ("ccol_row", [0, 1], [0]),
}


def compressed_rows(kind):
    """Rows of the entries that make tensors of a compressed layout."""
    names, *integers = INTEGERS[kind]
    integers = [torch.tensor(n) for n in integers]

    def parts(v):
        return *integers, v[:3] if kind[0] == "c" else full(v).reshape(1, 3, 2)

    def row(entry, *size):
        return lambda v: (entry(*parts(v), *size),
                          getattr(torch, f"sparse_{kind}_tensor")(*parts(v), (3, 2))), True

    made = getattr(aten, f"sparse_{kind}_tensor")
    unsafe = f"_sparse_{kind}_tensor_unsafe"
    method = f"to_sparse_{kind}"
    value = f"{names}_value"
    sizes = [(3, 2)] if kind[0] == "b" else []
    return {
        f"sparse_{kind}_tensor.{value}_size": row(getattr(made, f"{value}_size"), (3, 2)),
        f"sparse_{kind}_tensor.{value}": row(getattr(made, value)),
        unsafe: row(getattr(aten, unsafe), (3, 2)),
        method: (converted(method, method, *sizes), True),
    }


def smallest(make):
    """What a constructor of compressed tensors makes of the parts of `csr`."""
    return lambda v: (make(torch.tensor([0, 1, 2, 3]), torch.tensor([1, 1, 0]), v[:3]), csr(v))


FACTS = {"_nnz": (coo, 4), "sparse_dim": (coo, 2), "dense_dim": (coo, 0), "is_coalesced": (once, 1),
         "_dimI": (csr, 2), "_dimV": (csr, 0)}


def fact(name, make, wanted):
    return lambda v: (torch.tensor(int(getattr(aten, name)(make(v)))), torch.tensor(wanted)), False


def empty():
    return torch.sparse_coo_tensor(size=(1, 1), dtype=D)


def together(a, b):
    return torch.cat([whole(a).flatten(), whole(b).flatten()])


def gradients_of_largest(v):
    """Of the largest products along rows: each row of `csr` has one entry, in column 1, 1 and 0."""
    b, columns = MATRIX * v[3], torch.tensor([1, 1, 0])
    of_values = torch.zeros(3, 2, dtype=D).index_put(
        (torch.arange(3), columns), (WIDE * b[columns]).sum(1))
    return of_values, torch.zeros(2, 3, dtype=D).index_add(0, columns, WIDE * v[:3, None])


MATRIX = torch.tensor([[1.0, 2.0, 0.5], [-1.0, 0.25, 3.0]], dtype=D)
WIDE = torch.arange(9.0, dtype=D).reshape(3, 3)


def square(values):
    """A matrix that is not singular."""
    return full(values) @ MATRIX[:, :3] + 9 * torch.eye(3, dtype=D)


# entry -> (values -> (result, what it has to equal), is it differentiated?)
ROWS = {
    "_indices": (copied("_indices", coo), False), "indices": (copied("indices", once), False),
    "_values": (copied("_values", coo), False), "values": (copied("values", once), True),
    "crow_indices": (copied("crow_indices", csr), False),
    "col_indices": (copied("col_indices", csr), False),
    "ccol_indices": (copied("ccol_indices", csc), False),
    "row_indices": (copied("row_indices", csc), False),
    "_indices_copy": (copied("_indices_copy", coo), False),
    "indices_copy": (copied("indices_copy", once), False),
    "_values_copy": (copied("_values_copy", coo), False),
    "values_copy": (copied("values_copy", once), True),
    "crow_indices_copy": (copied("crow_indices_copy", csr), False),
    "col_indices_copy": (copied("col_indices_copy", csr), False),
    "ccol_indices_copy": (copied("ccol_indices_copy", csc), False),
    "row_indices_copy": (copied("row_indices_copy", csc), False),
    "_coalesce": (lambda v: (aten._coalesce(coo(v)), coo(v).coalesce()), True),
    "_to_dense": (converted("_to_dense", "to_dense", make=coo), True),
    "_to_sparse": (converted("_to_sparse", "to_sparse", layout=torch.sparse_csr), True),
    "_to_sparse.sparse_dim": (
        lambda v: (aten._to_sparse.sparse_dim(full(v), 1), full(v).to_sparse(1)), True),
    "_to_sparse_csr": (converted("_to_sparse_csr", "to_sparse_csr"), True),
    "_to_sparse_csc": (converted("_to_sparse_csc", "to_sparse_csc"), True),
    "_to_sparse_bsr": (converted("_to_sparse_bsr", "to_sparse_bsr", (3, 2)), True),
    "_to_sparse_bsc": (converted("_to_sparse_bsc", "to_sparse_bsc", (3, 2)), True),
    "sparse_compressed_tensor.comp_plain_value_size": (lambda v: (
        aten.sparse_compressed_tensor.comp_plain_value_size(
            torch.tensor([0, 1, 2, 3]), torch.tensor([1, 1, 0]), v[:3], (3, 2),
            layout=torch.sparse_csr), csr(v)), True),
    **{name: row for kind in INTEGERS for name, row in compressed_rows(kind).items()},
    "sparse_compressed_tensor.comp_plain_value": (smallest(
        lambda *parts: aten.sparse_compressed_tensor.comp_plain_value(
            *parts, layout=torch.sparse_csr)), True),
    "_sparse_compressed_tensor_unsafe": (smallest(
        lambda *parts: aten._sparse_compressed_tensor_unsafe(
            *parts, (3, 2), layout=torch.sparse_csr)), True),
    "sparse_coo_tensor.indices": (lambda v: (
        aten.sparse_coo_tensor.indices(AT, v), coo(v)), True),
    "sparse_coo_tensor.indices_size": (lambda v: (
        aten.sparse_coo_tensor.indices_size(AT, v, (3, 2)), coo(v)), True),
    "sparse_coo_tensor.size": (lambda v: (
        aten.sparse_coo_tensor.size((3, 2), dtype=D), torch.zeros(3, 2, dtype=D)), False),
    "_sparse_coo_tensor_unsafe": (lambda v: (
        aten._sparse_coo_tensor_unsafe(AT, v, (3, 2)), coo(v)), True),
    "to_dense": (converted("to_dense", "to_dense", make=coo), True),
    "to_dense_backward": (lambda v: (
        aten.to_dense_backward(full(v), once(v.detach())),
        full(v) * (once(v.detach()).to_dense() != 0)), True),
    "to_sparse": (converted("to_sparse", "to_sparse", layout=torch.sparse_csr), True),
    "to_sparse.sparse_dim": (
        lambda v: (aten.to_sparse.sparse_dim(full(v), 1), full(v).to_sparse(1)), True),
    "_sparse_mm": (lambda v: (aten._sparse_mm(coo(v), MATRIX), coo(v).to_dense() @ MATRIX), True),
    "_sparse_mm.reduce": (lambda v: (
        aten._sparse_mm.reduce(csr(v), MATRIX, "amax"), csr(v).to_dense() @ MATRIX), True),
    "smm": (lambda v: (aten.smm(coo(v), MATRIX), coo(v).to_dense() @ MATRIX), True),
    "sspaddmm": (lambda v: (
        aten.sspaddmm(WIDE.to_sparse(), coo(v), MATRIX, beta=2, alpha=0.5),
        WIDE * 2 + coo(v).to_dense() @ MATRIX * 0.5), True),
    "_sparse_coo_tensor_with_dims_and_tensors": (lambda v: (
        aten._sparse_coo_tensor_with_dims_and_tensors(2, 0, (3, 2), AT, v), coo(v)), True),
    "sparse_mask": (lambda v: (
        aten.sparse_mask(full(v), once(v.detach())), full(v) * (once(v.detach()).to_dense() != 0)),
        True),
    "_sparse_addmm": (lambda v: (
        aten._sparse_addmm(WIDE, coo(v), MATRIX, beta=2, alpha=0.5),
        WIDE * 2 + coo(v).to_dense() @ MATRIX * 0.5), True),
    "sparse_sampled_addmm": (lambda v: (
        aten.sparse_sampled_addmm(csr(v), full(v), MATRIX[:, :2], alpha=0.5),
        csr(v).to_dense() + (full(v) @ MATRIX[:, :2] * 0.5) * (csr(v.detach()).to_dense() != 0)),
        True),
    "_sparse_sparse_matmul": (lambda v: (
        aten._sparse_sparse_matmul(coo(v), MATRIX.to_sparse()), coo(v).to_dense() @ MATRIX), True),
    "_spsolve": (lambda v: (
        aten._spsolve(square(v).to_sparse_csr(), v[:3]), torch.linalg.solve(square(v), v[:3])),
        True),
    "_spdiags": (lambda v: (
        aten._spdiags(full(v)[:2], torch.tensor([0, -1]), (3, 2), layout=torch.sparse_csr),
        torch.diag_embed(full(v)[0])[[0, 1, 1]] * torch.tensor([[1], [1], [0]])
        + torch.diag_embed(full(v)[1])[[0, 0, 1]] * torch.tensor([[0], [1], [1]])), True),
    "_sparse_mm_reduce_impl": (lambda v: (
        aten._sparse_mm_reduce_impl(csr(v), MATRIX, "amax")[0],
        csr(v).to_dense() @ MATRIX), True),  # there is one entry in every row
    "_sparse_sum.dim": (lambda v: (
        aten._sparse_sum.dim(coo(v), [0]), coo(v).to_dense().sum(0)), True),
    "_sparse_sum": (lambda v: (aten._sparse_sum(coo(v)), coo(v).to_dense().sum()), True),
    "_sparse_sum.dtype": (lambda v: (
        aten._sparse_sum.dtype(coo(v), dtype=D), coo(v).to_dense().sum()), True),
    "_sparse_sum.dim_dtype": (lambda v: (
        aten._sparse_sum.dim_dtype(coo(v), [0], dtype=D), coo(v).to_dense().sum(0)), True),
    "_sparse_softmax.int": (lambda v: (
        aten._sparse_softmax.int(once(v), 0), along_columns(v, torch.softmax)), True),
    "_sparse_log_softmax.int": (lambda v: (
        aten._sparse_log_softmax.int(once(v), 0), along_columns(v, torch.log_softmax)), True),
    "_sparse_softmax": (lambda v: (
        aten._sparse_softmax(once(v), 0, False), along_columns(v, torch.softmax)), True),
    "_sparse_log_softmax": (lambda v: (
        aten._sparse_log_softmax(once(v), 0, False), along_columns(v, torch.log_softmax)), True),
    **{name: fact(name, *wanted) for name, wanted in FACTS.items()},
    "_coalesced_": (lambda v: (aten._coalesced_(once(v), True), once(v)), False),
    "copy_sparse_to_sparse_": (lambda v: (
        aten.copy_sparse_to_sparse_(once(v * 2), coo(v)), coo(v)), True),
    "resize_as_sparse_": (lambda v: (
        aten.resize_as_sparse_(empty(), once(v)), torch.zeros(3, 2)), False),
    "sparse_resize_": (lambda v: (
        aten.sparse_resize_(once(v), (4, 2), 2, 0),
        torch.cat([once(v).to_dense(), torch.zeros(1, 2, dtype=D)])), True),
    "sparse_resize_and_clear_": (lambda v: (
        aten.sparse_resize_and_clear_(once(v), (4, 2), 1, 1), torch.zeros(4, 2)), False),
    "_sparse_coo_tensor_with_dims": (lambda v: (
        aten._sparse_coo_tensor_with_dims(1, 1, (4, 2)), torch.zeros(4, 2)), False),
    "_sparse_broadcast_to": (lambda v: (
        aten._sparse_broadcast_to(coo(v), (2, 3, 2)), coo(v).to_dense().expand(2, 3, 2)), True),
    "hspmm": (lambda v: (aten.hspmm(coo(v), MATRIX), coo(v).to_dense() @ MATRIX), True),
    "_sparse_csr_sum.dim_dtype": (lambda v: (
        aten._sparse_csr_sum.dim_dtype(csr(v), [1], True), csr(v).to_dense().sum(1, True)), True),
    "_sparse_csr_prod.dim_dtype": (lambda v: (
        aten._sparse_csr_prod.dim_dtype(csr(v), [0], True),
        torch.stack([v[2], v[0] * v[1]]).reshape(1, 2)), True),
    "_sparse_mask_projection": (lambda v: (  # two entries of the mask are at (0, 1)
        aten._sparse_mask_projection(once(v), coo(v), True),
        torch.stack([v[0] * 0, v[0] * 2, v[1] * 0, v[1], v[2], v[2] * 0]).reshape(3, 2)), True),
    "_sparse_sum_backward": (lambda v: (
        aten._sparse_sum_backward(v[:3], once(v.detach()), [1]),
        v[:3, None] * (once(v.detach()).to_dense() != 0)), True),
    "_sparse_softmax_backward_data": (lambda v: (
        aten._sparse_softmax_backward_data(
            once(v), torch.sparse.softmax(once(v), 0), 0, once(v)),
        along_columns(v, lambda t, d: (p := t.softmax(d)) * (t - (t * p).sum(d)))), True),
    "_sparse_log_softmax_backward_data": (lambda v: (
        aten._sparse_log_softmax_backward_data(
            once(v), torch.sparse.log_softmax(once(v), 0), 0, once(v)),
        along_columns(v, lambda t, d: t - t.softmax(d) * t.sum(d))), True),
    "_sparse_mm_reduce_impl_backward": (lambda v: (
        together(*aten._sparse_mm_reduce_impl_backward(
            csr(v), WIDE, MATRIX * v[3], "amax", torch.empty(0), [True, True])),
        together(*gradients_of_largest(v))), True),
}


CHECKS = {  # entries that refuse parts and give nothing: parts that fit, parts that do not
    **{f"_validate_sparse_{kind}_tensor_args": (
        [torch.tensor(n) for n in integers],
        [torch.ones(3) if kind[0] == "c" else torch.ones(1, 3, 2), (3, 2)])
       for kind, (_, *integers) in INTEGERS.items()},
    "_validate_sparse_compressed_tensor_args": (
        [torch.tensor([0, 1, 2, 3]), torch.tensor([1, 1, 0])],
        [torch.ones(3), (3, 2), torch.sparse_csr]),
    "_validate_sparse_coo_tensor_args": ([AT], [torch.ones(4), (3, 2)]),
}


@pytest.mark.parametrize("name", CHECKS)
def test_checks_of_parts(name):
    integers, others = CHECKS[name]
    assert getattr(aten, name)(*integers, *others) is None
    with pytest.raises(RuntimeError):
        getattr(aten, name)(*[n + 5 for n in integers], *others)


def test_every_entry_has_a_row():
    load_all()
    assert {*ROWS, *CHECKS} == {name for name, op in registry.items()
                         if op.of_parts and ".sparse_" in op.__module__}


@pytest.fixture
def values():
    return torch.tensor([1.5, -2.0, 0.75, 3.0], dtype=D)


@pytest.mark.parametrize("name", ROWS)
def test_calls(name, values):
    ours, wanted = ROWS[name][0](values)
    assert torch.allclose(whole(ours).to(D), whole(wanted).to(D))


@pytest.mark.parametrize("name", [n for n, (_, differentiated) in ROWS.items() if differentiated])
def test_derivatives(name, values):
    def f(v):
        return whole(ROWS[name][0](v)[0])

    leaf = values.clone().requires_grad_()
    assert torch.autograd.gradcheck(f, (leaf,), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(f, (leaf,))
    (one,) = torch.autograd.grad(whole(ROWS[name][0](leaf)[0]).sin().sum(), leaf)
    (other,) = torch.autograd.grad(whole(ROWS[name][0](leaf)[1]).sin().sum(), leaf)
    assert torch.allclose(one, other)
    assert torch.allclose(func.grad(lambda v: f(v).sin().sum())(values), one)


PARTS = ["indices", "values", "crow_indices", "col_indices", "ccol_indices", "row_indices"]


@pytest.mark.parametrize("name", PARTS)
def test_dense_tensors_have_no_parts(name):
    for call in (getattr(aten, name), getattr(aten, f"{name}_copy"),
                 getattr(torch, f"{name}_copy")):
        with pytest.raises(RuntimeError, match=f"{name} expected sparse.*got Strided"):
            call(torch.ones(2))
    for call in (aten._indices, torch.Tensor._values):
        with pytest.raises(RuntimeError, match="expected sparse tensor layout but got Strided"):
            call(torch.ones(2))
    with pytest.raises(NotImplementedError, match=r"expected a sparse tensor .*torch.strided"):
        aten._coalesce(torch.ones(2))
    with pytest.raises(NotImplementedError, match=r"dense tensor has no specified entries"):
        torch.ones(2)._nnz()


def test_compiled_programs_call_them(values):
    def f(v):
        return aten.values(coo(v).coalesce()) * 2, torch.values_copy(csr(v))

    for a, b in zip(torch.compile(f)(values), f(values)):
        assert torch.equal(a, b)
