"""What has no entry has a gradient where the tensor stands for a dense one, or where one asks."""

import copy
import gc
import pickle
import weakref

import pytest

import pullback as torch
from pullback import func
from pullback.autograd import grad, gradcheck, gradgradcheck

D = torch.float64
WHOLE = torch.tensor([[1, 0, 2, 0], [0, 3, 0, 0], [0, 0, 0, 4], [5, 0, 0, 6]], dtype=D)
OTHER = torch.tensor([[0, 7, 0, 0], [0, 3, 0, 2], [1, 0, 0, 4], [5, 0, 0, 0]], dtype=D)
RIGHT = torch.arange(1.0, 13, dtype=D).reshape(4, 3) / 7
LEFT = RIGHT.flip(0).T.contiguous()
WEIGHT = torch.arange(1.0, 17, dtype=D).reshape(4, 4)

MAKE = {
    "coo": lambda x: x.to_sparse(),
    "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(),
    "bsr": lambda x: x.to_sparse_bsr((2, 2)),
    "bsc": lambda x: x.to_sparse_bsc((2, 2)),
}
OF_ALL = {  # functions of all elements of a matrix
    "right": lambda s: s @ RIGHT,
    "left": lambda s: LEFT @ s,
    "vector": lambda s: torch.mv(s, RIGHT[:, 0]),
    "added": lambda s: torch.addmm(WEIGHT[:, :3], s, RIGHT, beta=2, alpha=3),
    "linear": lambda s: torch.nn.functional.linear(LEFT, s),
    "batch": lambda s: torch.stack([LEFT, LEFT * 2]) @ s,
    "transposed": lambda s: s.t() @ RIGHT,
    "scaled": lambda s: (-s * 2 / 3) @ RIGHT,
    "weighted": lambda s: (s * WEIGHT) @ RIGHT,
    "function": lambda s: s.sin() @ RIGHT,
    "other layout": lambda s: s.to_sparse_csr() @ RIGHT,
    "sum": lambda s: s.sum(),
    "sums": lambda s: s.sum(1).to_dense(),
    "mean": lambda s: s.mean(),
    "twice": lambda s: (s + s) @ RIGHT,
    "beside dense": lambda s: s + WEIGHT,
    "rows": lambda s: s[1:] @ RIGHT,
    "joined": lambda s: torch.cat([s, s * 2]) @ RIGHT,
    "unbound": lambda s: sum(r.to_dense(masked_grad=False) for r in s.unbind(0)),
    "dense": lambda s: s.to_dense(masked_grad=False),
    "as another dtype": lambda s: s.to_dense(torch.complex128, masked_grad=False).real,
}
OF_ENTRIES = {
    "dense": lambda s: s.to_dense(),
    "product": lambda s: torch.sparse.mm(s, RIGHT),
    "added": lambda s: torch.sparse.addmm(WEIGHT[:, :3], s, RIGHT),
    "sums": lambda s: torch.sparse.sum(s, 1).to_dense(),
    "masked": lambda s: torch.masked.sum(s, 1).to_dense(),
    "values": lambda s: s.values(),
    "small": lambda s: torch.smm(s, RIGHT).to_dense(),
    "system": lambda s: torch.sparse.spsolve(s, RIGHT),
}


def leaf(layout="coo"):
    return MAKE[layout](WHOLE).detach().requires_grad_()


@pytest.mark.parametrize("name", OF_ALL)
def test_derivatives_of_dense_tensors_are_of_all_elements(name):
    for make in MAKE.values() if name in ("right", "left", "sums", "dense") else (
            MAKE["coo"], MAKE["csr"]):
        assert gradcheck(lambda x: OF_ALL[name](make(x)), (WHOLE.clone().requires_grad_(),),
                         check_forward_ad=name in ("right", "function", "sums"))


@pytest.mark.parametrize("name", OF_ENTRIES)
def test_functions_of_what_is_specified(name):
    for layout in ("coo", "csr"):
        x = WHOLE.clone().requires_grad_()
        (g,) = grad((OF_ENTRIES[name](MAKE[layout](x)) ** 2).sum(), x)
        assert ((g != 0) <= (WHOLE != 0)).all() and g.count_nonzero() > 3


def test_two_sparse_operands():
    given = [t[1:4, 1:4].clone().requires_grad_() for t in (WHOLE, OTHER)]
    right = RIGHT[:3, :2]
    for make in (MAKE["coo"], MAKE["csr"]):
        for f in (lambda a, b: (a @ b) @ right, lambda a, b: (a * b) @ right,
                  lambda a, b: (a - 2 * b).to_dense(masked_grad=False)):
            def both(x, y, f=f, make=make):
                return f(make(x), make(y))

            assert gradcheck(both, given)
    given = [t[1:3, 1:3].clone().requires_grad_() for t in (WHOLE, OTHER)]
    assert gradgradcheck(lambda x, y: (x.to_sparse() @ y.to_sparse()) @ right[:2], given)
    assert gradgradcheck(lambda x, y: (x.to_sparse() * y.to_sparse()) @ right[:2], given)


def test_transforms_and_programs():
    def f(x, b):
        return (x.to_sparse() @ b).sin().sum()

    def dense(x, b):
        return (x @ b).sin().sum()

    wanted = func.grad(dense)(WHOLE, RIGHT)
    assert torch.allclose(func.grad(f)(WHOLE, RIGHT), wanted)
    assert torch.allclose(func.hessian(f)(WHOLE, RIGHT), func.hessian(dense)(WHOLE, RIGHT))
    both = torch.stack([RIGHT, RIGHT * 2])
    assert torch.allclose(func.vmap(func.grad(f), (None, 0))(WHOLE, both),
                          func.vmap(func.grad(dense), (None, 0))(WHOLE, both))
    ones = torch.ones_like(WHOLE)
    assert torch.allclose(func.jvp(lambda x: x.to_sparse() @ RIGHT, (WHOLE,), (ones,))[1],
                          ones @ RIGHT)
    x = WHOLE.clone().requires_grad_()
    torch.utils.checkpoint.checkpoint(f, x, RIGHT, use_reentrant=False).backward()
    assert torch.allclose(x.grad, wanted)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        x.grad = None
        torch.compile(f, fullgraph=True)(x, RIGHT).backward()
    assert torch.allclose(x.grad, wanted)


def test_writing_keeps_the_history():
    x = WHOLE.clone().requires_grad_()
    s = x.to_sparse()
    s.mul_(2)
    (g,) = grad((s @ RIGHT).sum(), x)
    assert torch.allclose(g, 2 * RIGHT.sum(1).expand(4, 4))
    assert not (x.to_sparse().detach() @ RIGHT).requires_grad
    with torch.no_grad():
        s = x.to_sparse()
    assert not (s @ RIGHT).requires_grad


def test_seeds_of_any_pattern():
    x = WHOLE.clone().requires_grad_()
    eye = torch.eye(4, dtype=D)
    for seed in (WEIGHT, eye.to_sparse(), x.detach().to_sparse()):
        (g,) = grad(x.to_sparse(), x, seed)
        assert torch.equal(g, seed if seed is WEIGHT else seed.to_dense())
    v = torch.ones(6, dtype=D, requires_grad=True)
    at = WHOLE.to_sparse().indices()
    out = torch.sparse_coo_tensor(at, v, (4, 4), is_coalesced=True)
    (g,) = grad(out, v, torch.sparse_coo_tensor(at.flip(0), torch.arange(1.0, 7, dtype=D), (4, 4)))
    assert g.tolist() == [1, 0, 3, 0, 0, 6]  # of other places, of which there are as many


@pytest.mark.parametrize("layout", MAKE)
def test_leaves_get_what_they_are_asked_for(layout):
    x = leaf(layout)
    (g,) = grad(x.to_dense(masked_grad=False), x, WEIGHT)
    assert g.layout is x.layout and torch.equal(g.to_dense(), WEIGHT)
    (g,) = grad((x * 2).to_dense(masked_grad=False), x, WEIGHT)
    assert torch.equal(g.to_dense(), 2 * WEIGHT)
    for masked in (None, True):
        (g,) = grad(x.to_dense(masked_grad=masked), x, WEIGHT)
        assert g._nnz() == x._nnz()
    x.to_dense().backward(WEIGHT)
    x.to_dense(masked_grad=False).backward(WEIGHT)
    x.to_dense(masked_grad=False).backward(WEIGHT)
    there = x.to_dense() != 0
    if layout[0] == "b":
        there = torch.ones_like(there)
    assert x.grad.layout is x.layout
    assert torch.equal(x.grad.to_dense(), WEIGHT * 2 + WEIGHT * there)
    x.to_dense().backward(WEIGHT)
    assert torch.equal(x.grad.to_dense(), WEIGHT * 2 + WEIGHT * there * 2)
    assert copy.deepcopy(x).requires_grad
    assert pickle.loads(pickle.dumps(x.detach())).layout is x.layout
    x.grad.zero_()
    x.to_dense(masked_grad=False).backward(WEIGHT)
    assert torch.equal(x.grad.to_dense(), WEIGHT)
    x.grad = None
    assert x.grad is None
    x.to_dense().backward(WEIGHT)
    assert x.grad._nnz() == x._nnz()


def test_leaves_of_other_functions_have_gradients_on_their_entries():
    for f in (lambda x: x @ RIGHT, lambda x: x.sum(), lambda x: x + WEIGHT, lambda x: x @ x):
        x = leaf()
        out = f(x)
        (g,) = grad(out.to_dense().sum() if out.layout is torch.sparse_coo else out.sum(), x)
        assert g.layout is torch.sparse_coo and g._nnz() == 6


def test_hooks_of_leaves_see_all_of_it():
    x, seen = leaf(), []
    x.register_hook(lambda g: seen.append(g._nnz()))
    handle = x.register_hook(lambda g: g * 3)
    x.to_dense(masked_grad=False).backward(WEIGHT)
    assert seen == [16] and torch.equal(x.grad.to_dense(), 3 * WEIGHT)
    handle.remove()
    x = leaf()
    (g,) = grad((x.to_dense(masked_grad=False) ** 3).sum(), x, create_graph=True)
    (second,) = grad(g.to_dense().sum(), x)
    assert torch.equal(second.to_dense(), 6 * WHOLE)


def test_a_gradient_of_another_pattern_can_be_given():
    x = leaf()
    x.grad = OTHER.to_sparse()
    x.to_dense().backward(WEIGHT)
    assert torch.equal(x.grad.to_dense(), OTHER + WEIGHT * (WHOLE != 0))


def test_captures_say_that_they_do_not_know_it():
    def f(s):
        return s.to_dense(masked_grad=False).sum()

    with pytest.raises(RuntimeError, match="on its entries"):
        torch.compile(f, fullgraph=True)(leaf())
    x = leaf()
    with pytest.warns(UserWarning, match="on its entries"):
        torch.compile(f)(x).backward()
    assert x.grad._nnz() == 16
    g = func.grad(f)(x.detach())  # a transform's gradient has the argument's pattern
    assert g._nnz() == 6


def test_checks_change_what_is_specified():
    for masked in (False, True):
        for f in (lambda s: s.to_dense(masked_grad=masked), lambda s: s @ RIGHT):
            assert gradcheck(f, (leaf(),), masked=masked)


def test_nothing_holds_itself():
    gc.collect()
    gc.disable()
    try:
        x = WHOLE.clone().requires_grad_()
        s = x.to_sparse()
        given = weakref.ref(s), weakref.ref(s.mul(2).neg_()), weakref.ref(x)
        (s @ RIGHT).sum().backward()
        y = leaf()
        given += weakref.ref(y),
        y.to_dense(masked_grad=False).sum().backward()
        del s, x, y
        assert [r() for r in given] == [None] * 4
    finally:
        gc.enable()
