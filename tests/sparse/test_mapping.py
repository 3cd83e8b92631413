"""`vmap` over sparse tensors whose examples have patterns of their own."""

import pytest

import pullback as torch
from pullback import func

D = torch.float64
N = 4


def batch():
    """Four matrices with six entries each, in other places."""
    random = torch.Generator().manual_seed(1)
    out = torch.zeros(N, 15, dtype=D)
    for row in out:
        row[torch.randperm(15, generator=random)[:6]] = torch.randn(6, generator=random, dtype=D)
    return out.reshape(N, 3, 5)


WHOLE = batch()
SIDES = torch.arange(40.0, dtype=D).reshape(N, 5, 2).sin()
MAKE = {"coo": lambda x: x.to_sparse(), "csr": lambda x: x.to_sparse_csr(),
        "csc": lambda x: x.to_sparse_csc()}
ROWS = {
    "product": lambda s, b: s @ b,
    "product with one": lambda s, b: s @ SIDES[0],
    "from the left": lambda s, b: SIDES[0].T[:, :3] @ s,
    "vector": lambda s, b: s @ b[:, 0],
    "added": lambda s, b: torch.addmm(torch.ones(3, 2, dtype=D), s, b),
    "transposed": lambda s, b: s.t() @ SIDES[0, :3],
    "unary": lambda s, b: (-s * 2).sin(),
    "times dense": lambda s, b: s * b[:, 0],
    "plus dense": lambda s, b: s + b[:, 0],
    "twice": lambda s, b: s + s * 2,
    "squares": lambda s, b: s * s,
    "sum": lambda s, b: s.sum(),
    "sums": lambda s, b: s.sum(0),
    "means": lambda s, b: s.mean(1),
    "products": lambda s, b: s.prod(0),
    "largest": lambda s, b: s.amax(1),
    "norm": lambda s, b: s.norm(),
    "softmax": lambda s, b: torch.sparse.softmax(s, 1),
    "log_softmax": lambda s, b: torch.log_softmax(s, 0),
    "dense": lambda s, b: s.to_dense(),
    "values": lambda s, b: s.values(),
    "rows": lambda s, b: s.to_sparse_csr(),
    "coordinates": lambda s, b: s.to_sparse(),
    "a new dim": lambda s, b: s.unsqueeze(0),
    "sampled": lambda s, b: torch.sparse.sampled_addmm(s, b[:3], b.T),
}


def dense(t):
    return t if t.layout is torch.strided else t.to_dense()


@pytest.mark.parametrize("layout", MAKE)
@pytest.mark.parametrize("name", ROWS)
def test_operators(name, layout):
    f, make = ROWS[name], MAKE[layout]
    out = func.vmap(f)(make(WHOLE), SIDES)
    wanted = [f(make(x), b) for x, b in zip(WHOLE, SIDES)]
    assert torch.allclose(dense(out), torch.stack([dense(w) for w in wanted]))
    assert (out.layout is torch.strided) is (wanted[0].layout is torch.strided)


@pytest.mark.parametrize("layout", MAKE)
def test_derivatives_inside_and_outside(layout):
    def loss(s, b):
        return (s @ b).sin().sum()

    s = MAKE[layout](WHOLE)
    found = func.vmap(func.grad(loss))(s, SIDES)
    assert found.layout is s.layout and found.shape == s.shape
    for x, g, b in zip(WHOLE, dense(found), SIDES):
        assert torch.allclose(g, dense(func.grad(loss)(MAKE[layout](x), b)))
    out, tangent = func.vmap(lambda s, b: func.jvp(lambda s: (s @ b).sin(), (s,), (s,)))(s, SIDES)
    product = WHOLE @ SIDES
    assert torch.allclose(out, product.sin()) and torch.allclose(tangent, product.cos() * product)
    leaf = s.detach().requires_grad_()
    func.vmap(loss)(leaf, SIDES).sum().backward()
    assert torch.allclose(dense(leaf.grad), dense(found))


def test_two_patterns_for_each_example():
    other = WHOLE.flip(0) * 2
    product = func.vmap(lambda x, y: x * y)(WHOLE.to_sparse(), other.to_sparse())
    assert torch.equal(product.to_dense(), WHOLE * other)
    rows = func.vmap(lambda x, y: x * y)(WHOLE.to_sparse_csr(), other.to_sparse_csr())
    assert torch.equal(rows.to_dense(), WHOLE * other)
    total = func.vmap(lambda x, y: x - y)(WHOLE.to_sparse(), other.to_sparse())
    assert torch.allclose(total.to_dense(), WHOLE - other)


def test_where_examples_are():
    s = WHOLE.to_sparse()
    assert torch.equal(func.vmap(lambda x: x * 2, out_dims=1)(s).to_dense(),
                       2 * WHOLE.transpose(0, 1))
    swapped = WHOLE.transpose(0, 1).to_sparse()
    assert torch.equal(func.vmap(lambda x: x * 2, in_dims=1)(swapped).to_dense(), 2 * WHOLE)
    assert func.vmap(lambda x, b: x @ b, chunk_size=3)(s, SIDES).shape == (N, 3, 2)
    hybrid = WHOLE.permute(1, 2, 0).to_sparse(2)  # one pattern, examples along a dense dim
    assert torch.equal(func.vmap(lambda x: x.sin(), in_dims=2, out_dims=2)(hybrid).to_dense(),
                       WHOLE.permute(1, 2, 0).sin())
    rows = WHOLE.permute(1, 2, 0).to_sparse_csr(dense_dim=1)
    assert torch.equal(func.vmap(lambda x: x * 3, in_dims=2, out_dims=-1)(rows).to_dense(),
                       WHOLE.permute(1, 2, 0) * 3)
    blocks = torch.stack([torch.eye(4), torch.eye(4).flip(0)]).to_sparse_bsr((2, 2))
    assert torch.equal(func.vmap(lambda x: x @ torch.ones(4, 1))(blocks), torch.ones(2, 4, 1))
    two = torch.stack([WHOLE, WHOLE * 2]).to_sparse_csr()
    nested = func.vmap(func.vmap(lambda x, b: x @ b), (0, None))(two, SIDES)
    assert torch.allclose(nested, torch.stack([WHOLE, WHOLE * 2]) @ SIDES)
    compiled = torch.compile(func.vmap(lambda x, b: x @ b))
    assert torch.allclose(compiled(WHOLE.to_sparse_csr(), SIDES), WHOLE @ SIDES)


UNEVEN = torch.eye(3).expand(2, 3, 3).clone()
UNEVEN[1, 0, 0] = 0
REFUSED = {
    "other counts": (lambda: func.vmap(lambda x: x * 2)(UNEVEN.to_sparse()),
                     r"they have \[3, 2\]"),
    "rows of a matrix": (lambda: func.vmap(lambda x: x)(torch.eye(3).to_sparse_csr()),
                         "no examples"),
    "elements": (lambda: func.vmap(lambda x: x)(torch.ones(3).to_sparse()), "no dims"),
    "results of other sizes": (
        lambda: func.vmap(lambda x: x @ x.t())(WHOLE.to_sparse_csr()), "differs in size"),
    "parts of other sizes": (lambda: func.vmap(lambda x: x[1])(WHOLE.to_sparse()),
                             "a part of a sparse tensor: each example has a pattern of its own"),
    "counts inside": (lambda: func.vmap(func.vmap(lambda x: x * 2))(
        torch.ones(2, 2, 3, 3).to_sparse()), "not known inside"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    call, said = REFUSED[name]
    with pytest.raises((ValueError, RuntimeError), match=said):
        call()
