"""Derivatives, transforms and captures go through sparse tensors at the cost of their entries."""

import pytest

import pullback as torch
from pullback import func

AT = torch.tensor([[0, 2, 1, 0], [1, 0, 1, 1]])  # (0, 1) twice


def dense(values):
    return torch.zeros(3, 2, dtype=values.dtype).index_put(tuple(AT), values, accumulate=True)


def sparse(values):
    return torch.sparse_coo_tensor(AT, values, (3, 2))


@pytest.fixture
def operands():
    torch.manual_seed(0)
    return (torch.randn(4, dtype=torch.float64, requires_grad=True),
            torch.randn(2, 5, dtype=torch.float64, requires_grad=True))


def loss(matrix, other):
    return (matrix @ other).sin().sum()


def test_gradients_of_values_and_operands_are_those_of_dense_matrices(operands):
    for make in (sparse, lambda v: sparse(v).to_sparse_csr()):
        ours = torch.autograd.grad(loss(make(operands[0]), operands[1]), operands)
        theirs = torch.autograd.grad(loss(dense(operands[0]), operands[1]), operands)
        for a, b in zip(ours, theirs):
            assert torch.allclose(a, b)


def test_second_derivatives(operands):
    assert torch.autograd.gradgradcheck(lambda v, d: loss(sparse(v), d), operands)
    assert torch.autograd.gradcheck(lambda v, d: loss(sparse(v), d), operands,
                                    check_forward_ad=True)


def test_gradients_of_sparse_leaves_are_sparse(operands):
    leaf = torch.sparse_coo_tensor(AT, operands[0].detach(), (3, 2), requires_grad=True)
    loss(leaf.sin(), operands[1].detach()).backward()
    assert leaf.is_leaf and leaf.grad.layout is torch.sparse_coo
    assert leaf.grad._indices().tolist() == leaf.coalesce().indices().tolist() or (
        leaf.grad._nnz() == 4)
    loss(sparse(operands[0]).sin(), operands[1].detach()).backward()
    assert torch.allclose(leaf.grad._values(), operands[0].grad)


def test_transforms_take_sparse_arguments(operands):
    matrix, other = sparse(operands[0].detach()), operands[1].detach()
    found = func.grad(loss)(matrix, other)
    assert found.layout is torch.sparse_coo and found.shape == (3, 2)
    out, tangent = func.jvp(lambda m: m @ other, (matrix,), (matrix,))
    assert torch.allclose(out, tangent) and torch.allclose(out, matrix.to_dense() @ other)
    out, pull = func.vjp(lambda m: m @ other, matrix)
    assert pull(torch.ones_like(out))[0].layout is torch.sparse_coo
    each = func.vmap(lambda d: matrix @ d)(torch.stack([other, other * 2]))
    assert torch.allclose(each[1], each[0] * 2)


def test_compiled_functions_take_and_make_sparse_tensors(operands):
    matrix, other = sparse(operands[0].detach()), operands[1].detach()
    given = torch.compile(lambda m, d: (m @ d).relu().sum())
    made = torch.compile(lambda v, d: (sparse(v) @ d).relu().sum())
    for function, first in ((given, matrix), (made, operands[0].detach())):
        assert torch.allclose(function(first, other), (matrix @ other).relu().sum())
    values = operands[0].detach().requires_grad_()
    made(values, other).backward()
    wanted = operands[0].detach().requires_grad_()
    (dense(wanted) @ other).relu().sum().backward()
    assert torch.allclose(values.grad, wanted.grad)


def test_operators_that_do_not_keep_zeros_are_refused():
    with pytest.raises(NotImplementedError, match="would not stay zero") as caught:
        sparse(torch.ones(4)).cos()
    assert "test_derivatives.py" in str(caught.value)


def test_sums_and_products_of_patterns():
    a = sparse(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    b = torch.sparse_coo_tensor([[1, 2], [1, 1]], [10.0, 20.0], (3, 2))
    assert (a + b).to_dense().tolist() == (a.to_dense() + b.to_dense()).tolist()
    assert (a * b).to_dense().tolist() == (a.to_dense() * b.to_dense()).tolist()
    assert (a - b).layout is torch.sparse_coo
    assert (a * torch.tensor([[2.0], [3.0], [4.0]])).to_dense().tolist() == (
        a.to_dense() * torch.tensor([[2.0], [3.0], [4.0]])).tolist()


def test_what_is_found_of_a_pattern_outlives_captures_and_knows_both_integers():
    matrix = sparse(torch.ones(4)).coalesce().to_sparse_csr()
    other = torch.ones(2, 3)
    compiled = torch.compile(lambda d: matrix @ d + (matrix @ d), fullgraph=True)
    assert compiled(other).tolist() == (2 * (matrix @ other)).tolist()
    plain, values = torch.tensor([0, 1]), torch.ones(2)
    both = torch.sparse_csr_tensor(torch.tensor([0, 2, 2]), plain, values, (2, 2))
    each = torch.sparse_csr_tensor(torch.tensor([0, 1, 2]), plain, values, (2, 2))
    assert both.to_dense().tolist() == [[1, 1], [0, 0]]
    assert each.to_dense().tolist() == [[1, 0], [0, 1]]


class Holder(torch.nn.Module):
    def __init__(self, matrix):
        super().__init__()
        self.register_buffer("matrix", matrix)
        self.other = matrix

    def forward(self, d):
        return self.matrix @ d + self.other @ d


def test_compiled_programs_are_for_one_matrix_from_outside():
    first = sparse(torch.ones(4)).coalesce().to_sparse_csr()
    second = torch.tensor([[0.0, 0], [3, 0], [0, 5]]).to_sparse_csr()
    other, table, module = torch.eye(2), {"matrix": first}, Holder(first)
    compiled = torch.compile(lambda d: table["matrix"] @ d), torch.compile(module)
    for matrix in (first, second, first * 2):
        table["matrix"] = matrix
        assert compiled[0](other).tolist() == matrix.to_dense().tolist()
        module.matrix = matrix
        assert compiled[1](other).tolist() == module(other).tolist()
        module.other = matrix
        assert compiled[1](other).tolist() == (2 * matrix.to_dense()).tolist()


def test_patterns_of_one_graph_are_known_to_several_operators():
    """Also after the graph has them as inputs, and where they are constants of it."""
    outside = sparse(torch.ones(4)).coalesce()

    def function(values, matrix):
        x = matrix.with_carrier(values)
        y = torch.sparse.softmax(x.t(), 1).t() + x[:, :1].expand(3, 2)
        return (y * x + torch.cat([x[1:], x[:1]])).coalesce().to_dense()

    for make in (lambda v: outside, lambda v: sparse(torch.ones(4)).coalesce()):
        values = torch.tensor([1.0, 2.0, 3.0])
        compiled = torch.compile(lambda v, make=make: function(v, make(v)), fullgraph=True)
        assert torch.allclose(compiled(values), function(values, outside))


def test_integers_from_outside_are_looked_at_again():
    """A program is for the integers that it was made by: others, and written ones, are seen."""
    matrix = torch.eye(3).to_sparse_csr()
    held = {"rows": torch.tensor([0, 1]), "at": torch.tensor([[0, 1], [1, 0]])}
    other, values = torch.arange(9.0).reshape(3, 3), torch.tensor([2.0, 5.0])
    rows = torch.compile(lambda d: matrix[held["rows"]] @ d)
    made = torch.compile(
        lambda v: torch.sparse_coo_tensor(held["at"], v, (3, 3)).coalesce() @ other)

    def check():
        assert rows(other).tolist() == other[held["rows"]].tolist()
        full = torch.zeros(3, 3).index_put(tuple(held["at"]), values, accumulate=True)
        assert made(values).tolist() == (full @ other).tolist()

    check()
    held["rows"][0] = held["at"][0, 0] = 2
    check()
    held |= {"rows": torch.tensor([1, 0, 0]), "at": torch.tensor([[1, 2], [2, 2]])}
    check()
    held["rows"][0] = held["at"][0, 0] = 2
    check()
    matrix.col_indices()[0] = 2
    assert rows(other)[1].tolist() == other[2].tolist()
