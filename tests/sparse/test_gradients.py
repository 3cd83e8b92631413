"""Gradients of tables are sparse where the call asks for it; numbers are PyTorch's."""

import pytest

import pullback as torch
from pullback import func
from pullback.nn import functional as F

AT = torch.tensor([[0, 2], [2, 1]])
OFFSETS = torch.tensor([0, 2, 2])
ROWS = torch.tensor([0, 2, 1, 3, 2])


def table():
    return torch.arange(12.0, dtype=torch.float64).reshape(4, 3).requires_grad_()


def entries(g):
    assert g.layout is torch.sparse_coo
    return g._indices().tolist(), g._values().tolist()


READS = {
    "embedding": lambda w, s: F.embedding(AT, w, sparse=s),
    "padded": lambda w, s: F.embedding(AT, w, padding_idx=1, sparse=s),
    "sums": lambda w, s: F.embedding_bag(ROWS, w, OFFSETS, mode="sum", sparse=s),
    "means": lambda w, s: F.embedding_bag(ROWS, w, OFFSETS, mode="mean", sparse=s, padding_idx=1),
    "weighted": lambda w, s: F.embedding_bag(
        ROWS, w, OFFSETS, mode="sum", sparse=s,
        per_sample_weights=torch.arange(1.0, 6.0, dtype=w.dtype)),
    "gather": lambda w, s: torch.gather(w, 1, torch.tensor([[0, 0], [2, 1]]), sparse_grad=s),
    "gather rows": lambda w, s: torch.gather(w, 0, torch.tensor([[1, 0, 1]]), sparse_grad=s),
    "nothing": lambda w, s: F.embedding(AT[:0], w, sparse=s),
    "of a product": lambda w, s: F.embedding(AT, w * 2, sparse=s),
}


def loss(name, sparse):
    return lambda w: (READS[name](w, sparse) * 0.3).sin().sum()


def whole(g):
    return g.to_dense() if g.layout is torch.sparse_coo else g


@pytest.mark.parametrize("name", READS)
def test_gradients_are_those_of_dense_ones(name):
    w = table()
    wanted, = torch.autograd.grad(loss(name, False)(w), w)
    second, = torch.autograd.grad(
        (torch.autograd.grad(loss(name, False)(w), w, create_graph=True)[0] ** 2).sum(), w)
    compiled = torch.compile(loss(name, True))
    for f in (loss(name, True), compiled, compiled):
        w.grad = None
        f(w).backward()
        assert w.grad.layout is torch.sparse_coo and torch.allclose(whole(w.grad), wanted)
        g, = torch.autograd.grad(f(w), w, create_graph=True)
        g, = torch.autograd.grad((whole(g) ** 2).sum(), w)
        assert torch.allclose(whole(g), second)
    plain = w.detach()
    g = func.grad(loss(name, True))(plain)
    assert g.layout is torch.sparse_coo and torch.allclose(whole(g), wanted)
    g = func.grad(lambda w: (whole(func.grad(loss(name, True))(w)) ** 2).sum())(plain)
    assert torch.allclose(whole(g), second)
    ones = torch.ones_like(plain)
    ours, theirs = (func.jvp(func.grad(loss(name, s)), (plain,), (ones,))[1] for s in (True, False))
    assert torch.allclose(whole(ours), theirs)


def test_entries_are_lookups_in_their_order():
    w = table().detach().float().requires_grad_()
    weight = torch.arange(12.0).reshape(2, 2, 3)
    (F.embedding(AT, w, padding_idx=1, sparse=True) * weight).sum().backward()
    assert entries(w.grad) == ([[0, 2, 2]], [[0, 1, 2], [3, 4, 5], [6, 7, 8]])
    w.grad = None
    bags = F.embedding_bag(ROWS, w, OFFSETS, mode="mean", sparse=True, padding_idx=1)
    (bags * torch.arange(1.0, 10.0).reshape(3, 3)).sum().backward()
    assert entries(w.grad) == ([[0, 2, 3, 2]], [[0.5, 1, 1.5], [0.5, 1, 1.5], [3.5, 4, 4.5],
                                                [3.5, 4, 4.5]])
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    found = torch.gather(x, 1, torch.tensor([[0, 0], [2, 1]]), sparse_grad=True)
    (found * torch.tensor([[1.0, 2], [3, 4]])).sum().backward()
    assert entries(x.grad) == ([[0, 0, 1, 1], [0, 0, 2, 1]], [1, 2, 3, 4])
    assert not x.grad.is_coalesced()
    number = torch.tensor(3.0, requires_grad=True)
    torch.gather(number, 0, torch.tensor([0]), sparse_grad=True).sum().backward()
    assert number.grad.shape == () and entries(number.grad) == ([], [1.0])


def read(w, *rows):
    F.embedding(torch.tensor(rows), w, sparse=True).sum().backward()


def test_gradients_add_up():
    w = torch.zeros(100, 1, requires_grad=True)
    read(w, 5, 3, 5)
    first = w.grad
    read(w, 1)
    assert w.grad is first and w.grad._nnz() == 4  # one behind the other
    assert w.grad.coalesce().values().flatten().tolist() == [1, 1, 2]
    (w * 1).sum().backward()
    assert w.grad.layout is torch.strided and w.grad.sum() == 104  # dense from here on
    first = w.grad
    read(w, 5, 5)
    assert w.grad is first and w.grad[5] == 5
    w.grad = None
    (F.embedding(AT, w, sparse=True).sum() + (w * 2).sum()).backward()  # a tied weight
    assert w.grad.layout is torch.strided and w.grad.sum() == 204
    w.grad = None
    read(w, 7)
    assert w.grad.is_coalesced()


def test_zero_grad_leaves_no_entries():
    module = torch.nn.Embedding(5, 2, sparse=True)
    module(torch.tensor([1, 1])).sum().backward()
    kept = module.weight.grad
    module.zero_grad(set_to_none=False)
    assert module.weight.grad is kept and kept._nnz() == 0 and kept.shape == (5, 2)
    module(torch.tensor([3])).sum().backward()
    assert kept.to_dense()[3].tolist() == [1, 1]


def test_memory_of_gradients_is_their_own():
    w, seed = table(), torch.ones(2, 2, 3, dtype=torch.float64)
    F.embedding(AT, w, sparse=True).backward(seed)
    w.grad._values().mul_(2)
    assert seed.unique().tolist() == [1]


def test_hooks_see_and_replace_sparse_gradients():
    w, seen = table(), []

    def double(g):
        seen.append((g.layout, g._nnz()))
        return g * 2

    handle = w.register_hook(double)
    w.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad._nnz()))
    read(w, 0, 2, 2)
    assert seen == [(torch.sparse_coo, 3), 3] and w.grad._values().unique().tolist() == [2]
    handle.remove()


def test_frequencies_do_not_go_with_sparse_gradients():
    w = table()
    for call in (lambda: F.embedding(AT, w, sparse=True, scale_grad_by_freq=True),
                 lambda: F.embedding_bag(ROWS, w, OFFSETS, mode="sum", sparse=True,
                                         scale_grad_by_freq=True)):
        with pytest.raises(RuntimeError, match="scale_grad_by_freq not supported with sparse"):
            call().sum().backward()
    assert w.grad is None


def test_below_vmap_gradients_are_dense():
    w = table().detach()
    each = func.vmap(func.grad(lambda w, at: F.embedding(at, w, sparse=True).pow(2).sum()),
                     (None, 0))(w, AT)
    dense = func.vmap(func.grad(lambda w, at: F.embedding(at, w).pow(2).sum()), (None, 0))(w, AT)
    assert torch.equal(each, dense)


def test_compiled_programs_for_any_number_of_lookups():
    w = table()
    compiled = torch.compile(lambda w, at: F.embedding(at, w, sparse=True).pow(2).sum(),
                             dynamic=True)
    for n in (3, 5, 8):
        at = torch.arange(n) % 4
        w.grad = None
        compiled(w, at).backward()
        wanted, = torch.autograd.grad(F.embedding(at, w).pow(2).sum(), w)
        assert w.grad._nnz() == n and torch.equal(w.grad.to_dense(), wanted)


def test_writing_at_places_keeps_the_rest():
    w = torch.nn.Parameter(torch.zeros(4, 2))
    with torch.no_grad():
        w[torch.tensor([1, 3])] = torch.ones(2, 2)
        w.index_put_((torch.tensor([0, 1]),), w[torch.tensor([1, 0])])
        turned = w.t()
        turned[:, torch.tensor([2])] = turned[:, torch.tensor([3])] * 2
    assert w.tolist() == [[1, 1], [0, 0], [2, 2], [1, 1]]
    with pytest.raises(IndexError, match="out of"), torch.no_grad():
        w[torch.tensor([0, 4])] = torch.full((2, 2), 9.0)
    assert w.max() == 2  # nothing was written
