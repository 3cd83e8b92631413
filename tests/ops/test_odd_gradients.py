"""Gradients where values are NaN, infinite, equal or zero are PyTorch's, in eager and graphs."""

import numpy as np
import pytest

import pullback as pb
from pullback.fx.make_fx import make_fx
from pullback.nn import functional as F

NAN, INF = float("nan"), float("inf")

# name: (function, inputs, gradient of the result, gradients); the numbers are PyTorch's
CASES = {
    "amax": (lambda x: x.amax(1), [[[NAN, 1.0], [1.0, 2.0], [3.0, 3.0]]], 1.0,
             [[[NAN, NAN], [0.0, 1.0], [0.5, 0.5]]]),
    "amin": (lambda x: x.amin(0, True), [[[NAN, 1.0], [1.0, 2.0]]], 1.0,
             [[[NAN, 1.0], [NAN, 0.0]]]),
    "aminmax": (lambda x: pb.aminmax(x, dim=0)[1], [[NAN, 1.0]], 1.0, [[NAN, NAN]]),
    "max of all": (lambda x: x.max(), [[NAN, 1.0, NAN, INF]], 1.0, [[0.5, 0.0, 0.5, 0.0]]),
    "median of all": (lambda x: x.median(), [[NAN, 1.0, NAN]], 1.0, [[0.5, 0.0, 0.5]]),
    "nanmedian of all": (lambda x: x.nanmedian(), [[NAN, 1.0, NAN]], 1.0, [[0.0, 1.0, 0.0]]),
    "root of no spread": (lambda x: x.std(0).sqrt(), [[0.3, 0.3]], 1.0, [[0.0, 0.0]]),
    "root of no cubes": (lambda x: x.norm(3).sqrt(), [[0.0, 0.0]], 1.0, [[0.0, 0.0]]),
    "variance without freedom": (lambda x: x.var(0, correction=3), [[1.0, 2.0]], 1.0,
                                 [[1.0, -1.0]]),
    "xlogy": (lambda x, y: x.xlogy(y)[:2], [[1.0, -2.0, -1.0, 0.0], [1.0, -2.0, -1.0, -1.0]], 1.0,
              [[0.0, NAN, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]]),
    "xlogy of a number": (lambda x: x.xlogy(-1.0)[:1], [[0.0, 2.0]], 1.0, [[0.0, 0.0]]),
    "xlog1py": (lambda x, y: pb.special.xlog1py(x, y)[:1], [[1.0, 1.0], [0.0, -3.0]], 1.0,
                [[0.0, 0.0], [1.0, 0.0]]),
    "copysign": (lambda x: x.copysign(-1.0), [[NAN, INF, 0.0, 2.0]], 1.0, [[NAN, NAN, 0.0, -1.0]]),
    "power of nothing": (lambda x, p: x.pow(p), [[NAN, 0.0, 2.0], [0.0, 0.0, 0.0]], 1.0,
                         [[0.0, 0.0, 0.0], [NAN, 0.0, np.log(2.0)]]),
    "nansum": (lambda x: x.nansum(0), [[NAN, 1.0]], INF, [[NAN, INF]]),
}


def gradients(function, slope, *values):
    leaves = [v.detach().requires_grad_() for v in values]
    out = function(*leaves)
    return pb.autograd.grad(out, leaves, pb.full_like(out, slope))


@pytest.mark.parametrize("way", ["eager", "real", "symbolic"])
@pytest.mark.parametrize("name", CASES)
def test_gradients_at_odd_values(name, way):
    function, values, slope, wanted = CASES[name]
    given = [pb.tensor(v, dtype=pb.float64) for v in values]

    def run(*given):
        return gradients(function, slope, *given)

    with np.errstate(all="ignore"):
        if way != "eager":
            run = make_fx(run, None, way)(*given)
        for got, want in zip(run(*given), wanted, strict=True):
            np.testing.assert_allclose(got.numpy(), np.array(want), rtol=1e-12)


def test_further_derivatives_of_xlogy_are_finite_at_zero():
    x, y = (pb.tensor([0.0, 2.0], dtype=pb.float64, requires_grad=True) for _ in range(2))
    with np.errstate(all="ignore"):
        (first,) = pb.autograd.grad(x.xlogy(y).sum(), x, create_graph=True)
        second = pb.autograd.grad(first.sum(), y)[0]
    assert second.tolist() == [0.0, 0.5]


def test_complex_numbers_have_no_xlogy():
    z = pb.tensor([1 + 1j])
    for call in (lambda: pb.xlogy(z, z), lambda: pb.ops.aten.xlogy.Scalar_Self(1.5, z)):
        with pytest.raises(NotImplementedError, match=r"xlogy.*ComplexFloat"):
            call()


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
def test_dropout_draws_in_graphs_what_it_draws_in_eager(p):
    from pullback.aot import nop
    from pullback.capture.entry import aot_function

    def f(x):
        pb.dropout(x, p, True)
        return pb.rand_like(x)

    x = pb.ones(3)
    pb.manual_seed(3)
    wanted = f(x)
    pb.manual_seed(3)
    assert aot_function(f, nop)(x).tolist() == wanted.tolist()


@pytest.mark.parametrize("name", ["mse_loss", "smooth_l1_loss", "huber_loss"])
def test_complex_numbers_have_no_such_losses(name):
    z = pb.tensor([1 + 1j])
    with pytest.raises(NotImplementedError, match="not implemented for 'ComplexFloat'"):
        getattr(pb.nn.functional, name)(z, z)


def test_gradients_and_grids_of_the_same_dtype():
    z = pb.tensor([1 + 1j])
    with pytest.raises(NotImplementedError, match="hardswish_backward"):
        pb.ops.aten.hardswish_backward(z, pb.ones(1))
    with pytest.raises(RuntimeError, match=r"dtype|scalar type"):
        pb.ops.aten._grid_sampler_2d_cpu_fallback(
            pb.ones(1, 2, 3, 4).half(), pb.zeros(1, 2, 2, 2), 0, 0, False)


def test_curvature_of_huber_at_the_bend_is_that_outside():
    x = pb.tensor([0.0, 1.0, -1.0, 0.5, 2.0], requires_grad=True)
    loss = pb.nn.functional.huber_loss(x, pb.zeros(5), reduction="sum")
    slope, = pb.autograd.grad(loss, x, create_graph=True)
    curvature, = pb.autograd.grad(slope.sum(), x)
    assert curvature.tolist() == [1.0, 0.0, 0.0, 1.0, 0.0]


@pytest.mark.parametrize("backend", ["eager", "numpy", "native"])
def test_margins_of_nan_count_nothing(backend):
    x = pb.tensor([[float("nan"), 1.0, 0.5], [2.0, float("nan"), 1.5]])
    losses = (lambda x: F.multi_margin_loss(x, pb.tensor([1, 0]), reduction="none"),
              lambda x: F.multilabel_margin_loss(x, pb.tensor([[1, -1, 0], [0, -1, 0]]),
                                                 reduction="none"))
    for loss in losses:
        run = loss if backend == "eager" else pb.compile(loss, backend=backend)
        leaf = x.clone().requires_grad_()
        out = run(leaf)
        out.sum().backward()
        assert pb.allclose(out, pb.tensor([0.5, 0.5]) / 3)
        assert pb.allclose(leaf.grad, pb.tensor([[0.0, -1.0, 1.0], [-1.0, 0.0, 1.0]]) / 3)
