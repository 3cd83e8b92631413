"""Convolutions and maxima over windows in native code, against the NumPy kernels of eager mode."""

from __future__ import annotations

import random

import numpy as np
import pytest

import pullback as pb
from pullback.compile import native
from tests.helpers.compiled_checks import graphs_made

F = pb.nn.functional

# (rank, batch, groups, channels in and out of a group, sizes, kernel, stride, padding, dilation)
CONVOLUTIONS = [
    (2, 3, 1, 3, 17, (9, 33), (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 2, 1, 16, 33, (8, 8), (3, 3), (2, 2), (1, 1), (1, 1)),
    (2, 1, 2, 5, 14, (7, 19), (4, 2), (3, 2), (2, 0), (1, 2)),
    (2, 2, 6, 1, 1, (16, 5), (3, 3), (1, 1), (1, 1), (1, 1)),  # one channel at a time
    (2, 2, 1, 7, 5, (6, 4), (1, 1), (1, 1), (0, 0), (1, 1)),  # a matrix product
    (2, 2, 1, 7, 5, (6, 4), (1, 1), (2, 2), (0, 0), (1, 1)),
    (1, 7, 1, 2, 3, (40,), (4,), (3,), (2,), (2,)),
    (3, 2, 1, 3, 2, (3, 4, 5), (2, 3, 2), (1, 2, 1), (1, 1, 0), (1, 1, 2)),
    (2, 1, 1, 70, 3, (5, 5), (3, 3), (1, 1), (2, 2), (1, 1)),  # more than one block of the sum
]


def values(shape: tuple, dtype: object, seed: int = 0) -> pb.Tensor:
    return pb.tensor(np.random.default_rng(seed).normal(size=shape), dtype=dtype)


def compiled(f, *inputs):
    """Results and gradients, eager and compiled, and the NumPy steps that are left."""
    out = []
    with graphs_made() as graphs:
        for call in (f, pb.compile(f)):
            y = call(*inputs)
            v = values(tuple(y.shape), y.dtype, 5)
            out.append([y, *pb.autograd.grad(y, inputs, v)])
    return *out, [e["target"] for graph in graphs for e in graph.report["externs"]]


@pytest.mark.parametrize("transposed", [False, True], ids=["plain", "transposed"])
@pytest.mark.parametrize("dtype", [pb.float32, pb.float64], ids=["float", "double"])
@pytest.mark.parametrize("case", CONVOLUTIONS, ids=lambda c: "x".join(map(str, c[4:6])))
def test_convolutions_and_their_gradients_are_those_of_eager_mode(case, dtype, transposed):
    rank, n, groups, inner, outer, sizes, kernel, stride, padding, dilation = case
    first = (groups * inner, outer) if transposed else (groups * outer, inner)
    x = values((n, groups * inner, *sizes), dtype).requires_grad_()
    w = values((*first, *kernel), dtype, 1).requires_grad_()
    b = values((groups * outer,), dtype, 2).requires_grad_()
    numbers = (stride, padding, dilation, transposed, (0,) * rank, groups)

    def f(x, w, b):
        return pb.ops.aten.convolution(x, w, b, *numbers)

    want, got, steps = compiled(f, x, w, b)
    assert not steps
    tight = 1e-12 if dtype is pb.float64 else 2e-5
    for a, c in zip(want, got, strict=True):
        scale = float(a.detach().abs().max())
        assert float((a - c).detach().abs().max()) <= tight * scale


def test_permuted_images_and_gradients_are_taken():
    x = values((2, 6, 5, 3), pb.float64).permute(0, 3, 1, 2).requires_grad_()
    w = values((4, 3, 3, 3), pb.float64, 1).requires_grad_()
    want, got, steps = compiled(lambda x, w: F.conv2d(x, w, padding=1).permute(0, 2, 3, 1), x, w)
    assert not steps
    for a, c in zip(want, got, strict=True):
        np.testing.assert_allclose(c.detach().numpy(), a.detach().numpy(), rtol=1e-12, atol=1e-12)


def test_results_do_not_depend_on_the_number_of_threads():
    x = values((5, 8, 16, 16), pb.float32).requires_grad_()
    w = values((24, 8, 3, 3), pb.float32, 1).requires_grad_()
    f = pb.compile(lambda x, w: F.conv2d(x, w, padding=1, stride=2))
    found, before = [], native.get_num_threads()
    try:
        for threads in (1, 2, 3):
            native.set_num_threads(threads)
            y = f(x, w)
            found.append([y, *pb.autograd.grad(y, (x, w), pb.ones_like(y))])
    finally:
        native.set_num_threads(before)
    for others in found[1:]:
        assert all(pb.equal(a, b) for a, b in zip(found[0], others, strict=True))


def pools(count: int, seed: int):
    rng = random.Random(seed)
    while count:
        rank = rng.choice([2, 2, 3])
        kernel, stride, dilation = ([rng.randint(1, top) for _ in range(rank)] for top in (3, 3, 2))
        padding = [rng.randint(0, k // 2) for k in kernel]
        sizes = [rng.choice([1, 4, 7, 16, 40]) for _ in range(rank)]
        fits = all(n + 2 * p >= d * (k - 1) + 1
                   for n, p, d, k in zip(sizes, padding, dilation, kernel))
        if fits:
            count -= 1
            yield sizes, kernel, stride, padding, dilation, rng.random() < 0.5


@pytest.mark.parametrize("case", list(pools(14, 3)), ids=str)
def test_maxima_over_windows_with_ties_infinities_and_nan(case):
    sizes, *numbers = case
    x = pb.tensor(np.random.default_rng(0).integers(-3, 3, (2, 3, *sizes)), dtype=pb.float32)
    x.reshape(-1)[::7] = float("nan")
    x.reshape(-1)[1::5] = -float("inf")
    x.requires_grad_()
    pool = F.max_pool2d if len(sizes) == 2 else F.max_pool3d

    def both(x):
        return pool(x, *numbers, return_indices=True)

    want, got, _ = compiled(lambda x: both(x)[0], x)
    for a, c in zip(want, got, strict=True):
        np.testing.assert_array_equal(c.detach().numpy(), a.detach().numpy())
    assert pb.equal(pb.compile(both)(x)[1], both(x)[1])


def test_maxima_are_native():
    x = values((2, 3, 8, 8), pb.float32).requires_grad_()
    *_, steps = compiled(lambda x: F.max_pool2d(x.relu(), 3, 2, 1).sin(), x)
    assert not steps


def test_a_place_outside_of_the_plane_is_refused_and_nothing_is_written_there():
    g = values((1, 1, 2, 2), pb.float32)
    x = values((1, 1, 4, 4), pb.float32)
    where = pb.tensor([[[[0, 5], [10, 16]]]])
    f = pb.compile(lambda g, x, where: pb.ops.aten.max_pool2d_with_indices_backward(
        g, x, [2, 2], [2, 2], [0, 0], [1, 1], False, where))
    with pytest.raises(RuntimeError, match="index"):
        f(g, x, where)
    assert f(g, x, where.clamp(max=15)).shape == (1, 1, 4, 4)


def test_floor_division_of_integers_by_a_number():
    x = pb.tensor([-7, -6, -1, 0, 1, 5, 6, 7, 2**40 + 1, -(2**40) - 1])
    for by in (1, 2, 3, 7):
        f = pb.compile(lambda x, by=by: (x // by) + 0)
        assert f(x).tolist() == [n // by for n in x.tolist()]
