"""Matrix products beyond the table's own checks: errors, half precision, einsum."""

import numpy as np
import pytest

import pullback as pb
from pullback.functional import einsum, tensordot
from pullback.table.packets import ops


def tensor(*shape, seed=0, dtype=np.float64):
    return pb.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


@pytest.mark.parametrize("call", [
    lambda: ops.mm(tensor(2, 3), tensor(4, 5)),
    lambda: ops.bmm(tensor(2, 3, 4), tensor(3, 4, 5)),
    lambda: ops.mv(tensor(2, 3), tensor(4)),
    lambda: ops.dot(tensor(2), tensor(3)),
    lambda: ops.addmm(tensor(7), tensor(2, 3), tensor(3, 4)),
    lambda: ops.matmul(tensor(2, 3, 4), tensor(5, 4, 2)),
    lambda: ops.matmul(tensor(), tensor(2)),
    lambda: ops.linear(tensor(2, 3), tensor(5, 4)),
])
def test_shape_mismatch_is_a_runtime_error(call):
    with pytest.raises(RuntimeError):
        call()


def test_messages_name_both_operands():
    with pytest.raises(RuntimeError, match=r"cannot be multiplied \(2x3 and 4x5\)"):
        ops.mm(tensor(2, 3), tensor(4, 5))
    with pytest.raises(RuntimeError, match="float != double"):
        ops.mm(tensor(2, 3, dtype=np.float32), tensor(3, 2))


def test_beta_zero_ignores_nan():
    base = pb.from_numpy(np.full((2, 2), np.nan))
    out = ops.addmm(base, tensor(2, 3), tensor(3, 2), beta=0)
    assert np.isfinite(out.numpy()).all()


def test_half_precision_accumulates_in_float32():
    ones = pb.from_numpy(np.ones((1, 4096), np.float16))
    # in float16 the running sum would stop at 2048
    assert ops.mm(ones, ones.t()).item() == 4096


def test_integers_multiply_exactly():
    a = pb.from_numpy(np.arange(6).reshape(2, 3))
    assert ops.mm(a, a.t()).tolist() == [[5, 14], [14, 50]]


def test_weight_gradient_is_contiguous():
    weight = tensor(5, 4).requires_grad_()
    ops.linear(tensor(3, 4), weight, tensor(5)).sum().backward()
    assert weight.grad.is_contiguous()


EQUATIONS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ii", (3, 3)), ("ii->i", (3, 3)),
    ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)), ("ij->", (2, 3)),
    ("i,j,k->kij", (2,), (3,), (4,)),
    ("ijk,jl,ik->l", (2, 3, 4), (3, 5), (2, 4)), ("b...i,b...i->b", (2, 3, 4), (2, 3, 4)),
    ("aab,b->a", (3, 3, 2), (2,)), (",i->i", (), (3,)),
]


@pytest.mark.parametrize("case", EQUATIONS, ids=lambda c: c[0])
def test_einsum_agrees_with_numpy(case):
    equation, *shapes = case
    operands = [tensor(*shape, seed=i) for i, shape in enumerate(shapes)]
    summed = "b...i,b...i->b" in equation  # NumPy wants the ellipsis in the output
    arrays = [t.numpy() for t in operands]
    expected = (arrays[0] * arrays[1]).sum((1, 2)) if summed else np.einsum(equation, *arrays)
    np.testing.assert_allclose(einsum(equation, *operands).numpy(), expected)


def test_einsum_with_lists_of_numbers():
    a, b = tensor(2, 3), tensor(3, 4)
    np.testing.assert_allclose(einsum(a, [0, 1], b, [1, 2], [0, 2]).numpy(), a.numpy() @ b.numpy())


@pytest.mark.parametrize("equation", ["ij,jk->iik", "ij,jk->il", "i1,jk", "ij", "ij,jk,kl"])
def test_einsum_refuses(equation):
    with pytest.raises(RuntimeError):
        einsum(equation, tensor(2, 3), tensor(3, 4))


def test_tensordot_takes_a_number_or_lists():
    a, b = tensor(2, 3, 4), tensor(3, 4, 5)
    expected = np.tensordot(a.numpy(), b.numpy(), 2)
    np.testing.assert_allclose(tensordot(a, b).numpy(), expected)
    np.testing.assert_allclose(tensordot(a, b, dims=([1, 2], [0, 1])).numpy(), expected)


def test_outer_products_of_narrow_vectors_are_wide_under_vmap():
    rng = np.random.default_rng(0)
    a, u, v = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 3)), rng.normal(size=(2, 4))
    a, u, v = (pb.from_numpy(x.astype(d)) for x, d in ((a, "f8"), (u, "f4"), (v, "f4")))
    found = pb.func.vmap(pb.addr)(a, u, v)
    assert pb.equal(found, pb.stack([pb.addr(*each) for each in zip(a, u, v)]))
