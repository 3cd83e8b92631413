"""Transforms against their inverses and Jacobians, constraints against values in and outside."""

import copy
import math
import pickle

import numpy as np
import pytest

import pullback as torch
from pullback import distributions as D
from pullback.distributions import biject_to, constraints, transform_to
from pullback.func import jacrev


def T(v):
    return torch.tensor(v, dtype=torch.float64)


TRANSFORMS = {  # and the shape of one event
    "exp": (D.ExpTransform(), ()),
    "sigmoid": (D.SigmoidTransform(), ()),
    "tanh": (D.TanhTransform(), ()),
    "softplus": (D.SoftplusTransform(), ()),
    "power": (D.PowerTransform(T(1.7)), ()),
    "negative power": (D.PowerTransform(T(-0.5)), ()),
    "affine": (D.AffineTransform(T(0.3), T(-2.0)), ()),
    "affine of numbers": (D.AffineTransform(1, 3.0), ()),
    "affine of vectors": (D.AffineTransform(T([1.0, 2.0, 3.0]), T([2.0, -1.0, 0.5]), event_dim=1),
                          (3,)),
    "one scale for a vector": (D.AffineTransform(0.0, T(2.0), event_dim=1), (3,)),
    "cdf": (D.CumulativeDistributionTransform(D.Normal(T(0.2), T(1.3))), ()),
    "independent": (D.IndependentTransform(D.ExpTransform(), 2), (2, 2)),
    "reshape": (D.ReshapeTransform((4,), (2, 2)), (4,)),
    "compose": (D.ComposeTransform([D.AffineTransform(T(0.1), T(2.0)), D.TanhTransform(),
                                    D.SoftplusTransform()]), ()),
    "identity": (D.identity_transform, ()),
    "compose to vectors": (D.ComposeTransform([D.TanhTransform(), D.StickBreakingTransform()]),
                           (3,)),
    "stick": (D.StickBreakingTransform(), (3,)),
    "corr": (D.CorrCholeskyTransform(), (6,)),
    "stack": (D.StackTransform([D.ExpTransform(), D.TanhTransform()], dim=-1), (2,)),
    "cat": (D.CatTransform([D.ExpTransform(), D.TanhTransform()], dim=-1, lengths=[1, 2]), (3,)),
    "cat of vectors": (D.CatTransform(
        [D.IndependentTransform(D.ExpTransform(), 1),
         D.IndependentTransform(D.TanhTransform(), 1)], dim=-1, lengths=[1, 2]), (3,)),
}
ONE_WAY = {
    "softmax": (D.SoftmaxTransform(), (3,)),
    "lower": (D.LowerCholeskyTransform(), (3, 3)),
    "definite": (D.PositiveDefiniteTransform(), (3, 3)),
    "abs": (D.AbsTransform(), ()),
}


def inputs(transform, event, batch=()):
    torch.manual_seed(4)
    x = torch.randn((*batch, *event), dtype=torch.float64)
    return x.abs() + 0.1 if transform.domain is constraints.positive else x


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("inverted", [False, True])
def test_bijections(name, inverted):
    transform, event = TRANSFORMS[name]
    x = inputs(transform, event, (2,))
    if inverted:
        x, transform = transform(x), transform.inv
        event = x.shape[1:]
    y = transform(x)
    assert transform.bijective
    assert transform.domain.check(x).all() and transform.codomain.check(y).all()
    assert torch.allclose(transform.inv(y), x, rtol=1e-7)
    assert tuple(transform.forward_shape(x.shape)) == tuple(y.shape)
    assert tuple(transform.inverse_shape(y.shape)) == tuple(x.shape)
    assert transform.inv.inv is transform
    # the determinant
    one = x[0].detach()
    jacobian = jacrev(transform)(one).reshape((y[0].numel(), one.numel()))
    if name in ("stick", "compose to vectors", "corr"):  # as many free coordinates as numbers
        jacobian = free(jacobian, name, inverted, one, y[0])
    expected = torch.linalg.slogdet(jacobian).logabsdet
    got = transform.log_abs_det_jacobian(x, y)[0].sum()
    assert float(got) == pytest.approx(float(expected), rel=1e-8, abs=1e-10)


def free(jacobian, name, inverted, x, y):
    """The rows (or columns) of coordinates that determine the others."""
    if name == "corr":
        lower = torch.tril(torch.ones(4, 4), -1).reshape(-1) == 1
        if not inverted:
            return jacobian[lower]
        # what the function does off its domain does not matter: invert the square Jacobian
        back = jacrev(TRANSFORMS[name][0])(y).reshape(16, 6)
        return torch.linalg.inv(back[lower])
    if not inverted:
        return jacobian[:-1]
    return torch.linalg.inv(jacrev(TRANSFORMS[name][0])(y)[:-1])


@pytest.mark.parametrize("name", ONE_WAY)
def test_transforms_without_determinant(name):
    transform, event = ONE_WAY[name]
    x = inputs(transform, event, (2,))
    y = transform(x)
    assert not transform.bijective
    assert transform.codomain.check(y).all()
    assert torch.allclose(transform(transform.inv(y)), y)
    assert tuple(transform.forward_shape(x.shape)) == tuple(y.shape)
    with pytest.raises(NotImplementedError, match="no Jacobian determinant"):
        transform.log_abs_det_jacobian(x, y)


@pytest.mark.parametrize("name", ["exp", "sigmoid", "tanh", "softplus", "affine", "power"])
def test_sign_and_second_derivatives(name):
    transform, event = TRANSFORMS[name]
    x = inputs(transform, event, (3,)).requires_grad_()
    slope = torch.autograd.grad(transform(x).sum(), x)[0]
    assert (torch.sign(slope) == transform.sign).all()
    assert torch.autograd.gradcheck(transform, (x,))
    assert torch.autograd.gradcheck(lambda x: transform.log_abs_det_jacobian(x, transform(x)), (x,))


def test_saturation_stays_inside():
    x = torch.tensor([-1e4, 1e4])
    assert D.SigmoidTransform().codomain.check(D.SigmoidTransform()(x)).all()
    y = D.StickBreakingTransform()(torch.tensor([1e3, -1e3, 0.0]))
    assert torch.isfinite(D.StickBreakingTransform().inv(y)).all()
    assert torch.isfinite(D.TanhTransform().log_abs_det_jacobian(x, x)).all()


def test_cache():
    transform = D.ExpTransform(cache_size=1)
    x = torch.randn(3)
    y = transform(x)
    assert transform(x) is y and transform.inv(y) is x
    assert transform.with_cache(1) is transform
    assert D.ExpTransform()(x) is not D.ExpTransform()(x)
    for kind, arguments in ((D.AffineTransform, (1.0, 2.0)), (D.PowerTransform, (T(2.0),)),
                            (D.ComposeTransform, ([D.ExpTransform()],)),
                            (D.IndependentTransform, (D.ExpTransform(), 1)),
                            (D.ReshapeTransform, ((3,), (3, 1))),
                            (D.StackTransform, ([D.ExpTransform()],)),
                            (D.CatTransform, ([D.ExpTransform()],)),
                            (D.CumulativeDistributionTransform, (D.Normal(0.0, 1.0),))):
        made = kind(*arguments).with_cache()
        assert made._cache_size == 1 and type(made) is kind
        assert made.inv.with_cache(0)._cache_size == 0
    with pytest.raises(ValueError, match="cache_size must be 0 or 1"):
        D.ExpTransform(cache_size=2)


def test_equality():
    assert D.ExpTransform() == D.ExpTransform() != D.TanhTransform()
    assert D.ExpTransform().inv == D.ExpTransform().inv != D.ExpTransform()
    assert D.AffineTransform(0, 1) == D.AffineTransform(T(0.0), 1.0) != D.AffineTransform(0, 2)
    assert D.PowerTransform(T(2.0)) == D.PowerTransform(T(2.0)) != D.PowerTransform(T(3.0))
    assert D.ComposeTransform([D.ExpTransform()]) == D.ComposeTransform([D.ExpTransform()])
    assert D.ComposeTransform([D.ExpTransform()]) != D.ComposeTransform([])


def test_copies():
    transform = D.ComposeTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0)])
    transform.inv  # a weak reference that a copy leaves out
    for again in (copy.deepcopy(transform), pickle.loads(pickle.dumps(transform))):
        assert again == transform and again.inv.inv is again


def test_refusals():
    with pytest.raises(ValueError, match="different numbers of elements"):
        D.ReshapeTransform((2,), (3,))
    with pytest.raises(ValueError, match="last dims"):
        D.ReshapeTransform((2,), (2, 1)).forward_shape((3,))
    with pytest.raises(ValueError, match="different event dims"):
        D.ReshapeTransform((2,), (2, 1)).event_dim
    with pytest.raises(ValueError, match="too few dims"):
        D.IndependentTransform(D.ExpTransform(), 2)(torch.ones(1))
    with pytest.raises(ValueError, match="fill no triangle"):
        D.CorrCholeskyTransform().forward_shape((2,))
    with pytest.raises(ValueError, match="not square"):
        D.CorrCholeskyTransform().inverse_shape((2, 3))
    with pytest.raises(AssertionError, match="needs transforms"):
        D.StackTransform([3])
    with pytest.raises(AssertionError, match="one slice"):
        D.StackTransform([D.ExpTransform()])(torch.ones(2))
    with pytest.raises(NotImplementedError, match="no one sign"):
        D.AbsTransform().sign


# --- constraints ----------------------------------------------------------------------------------

NAN, INF = math.nan, math.inf
CHECKS = [
    (constraints.real, [0.0, -INF, NAN], [True, True, False]),
    (constraints.boolean, [0.0, 1.0, 0.5, NAN], [True, True, False, False]),
    (constraints.positive, [1.0, 0.0, -1.0, NAN], [True, False, False, False]),
    (constraints.nonnegative, [1.0, 0.0, -1.0, NAN], [True, True, False, False]),
    (constraints.greater_than(2.0), [2.0, 2.5], [False, True]),
    (constraints.greater_than_eq(2.0), [2.0, 1.5], [True, False]),
    (constraints.less_than(2.0), [2.0, 1.5], [False, True]),
    (constraints.unit_interval, [0.0, 1.0, 1.1, NAN], [True, True, False, False]),
    (constraints.interval(1.0, 2.0), [0.5, 2.0], [False, True]),
    (constraints.half_open_interval(1.0, 2.0), [1.0, 2.0], [True, False]),
    (constraints.nonnegative_integer, [0.0, 1.0, 1.5, -1.0], [True, True, False, False]),
    (constraints.positive_integer, [0.0, 1.0], [False, True]),
    (constraints.integer_interval(1, 3), [0.0, 1.0, 2.5, 3.0, 4.0],
     [False, True, False, True, False]),
    (constraints.simplex, [[0.5, 0.5], [0.5, 0.6], [-0.5, 1.5]], [True, False, False]),
    (constraints.one_hot, [[0.0, 1.0], [1.0, 1.0], [0.5, 0.5]], [True, False, False]),
    (constraints.multinomial(3), [[1.0, 2.0], [2.0, 2.0], [-1.0, 1.0]], [True, False, False]),
    (constraints.real_vector, [[0.0, 1.0], [0.0, NAN]], [True, False]),
    (constraints.independent(constraints.positive, 1), [[1.0, 1.0], [1.0, -1.0]], [True, False]),
    (constraints.lower_triangular, [[[1.0, 0.0], [2.0, 0.0]], [[1.0, 1.0], [2.0, 1.0]]],
     [True, False]),
    (constraints.lower_cholesky, [[[1.0, 0.0], [2.0, 1.0]], [[1.0, 0.0], [2.0, 0.0]]],
     [True, False]),
    (constraints.corr_cholesky, [[[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0], [0.6, 0.9]]],
     [True, False]),
    (constraints.symmetric, [[[1.0, 2.0], [2.0, 1.0]], [[1.0, 2.0], [3.0, 1.0]]], [True, False]),
    (constraints.positive_definite,
     [[[2.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.0], [1.0, 1.0]],
      [[NAN, 0.0], [0.0, 1.0]]], [True, False, False, False]),
    (constraints.positive_semidefinite,
     [[[1.0, 0.0], [0.0, 0.0]], [[1.0, 2.0], [2.0, 1.0]]], [True, False]),
    (constraints.square, [[[1.0, 2.0]]], [False]),
    (constraints.symmetric, [[[1.0, 2.0]]], [False]),
    (constraints.positive_definite, [[[1.0, 2.0]]], [False]),
    (constraints.cat([constraints.positive, constraints.real], lengths=[1, 2]), [0.0, 0.0, -1.0],
     [False, True, True]),
    (constraints.stack([constraints.positive, constraints.real]), [0.0, 0.0], [False, True]),
    (constraints.MixtureSameFamilyConstraint(constraints.positive), [1.0, -1.0], [True, False]),
]


@pytest.mark.parametrize("case", range(len(CHECKS)))
def test_constraints(case):
    constraint, value, expected = CHECKS[case]
    assert constraint.check(T(value)).tolist() == expected


def test_constraint_facts():
    assert repr(constraints.real_vector) == "IndependentConstraint(Real(), 1)"
    assert repr(constraints.interval(1, 2)) == "Interval(lower_bound=1, upper_bound=2)"
    assert constraints.real_vector.event_dim == 1 and constraints.boolean.is_discrete
    assert constraints.is_dependent(constraints.dependent)
    assert constraints.is_dependent(D.Uniform.support)
    assert not constraints.is_dependent(D.Uniform(0.0, 1.0).support)
    assert D.Uniform.support.event_dim == 0
    with pytest.raises(NotImplementedError, match="depends on the instance"):
        constraints.dependent.event_dim
    with pytest.raises(ValueError, match="cannot be checked"):
        constraints.dependent.check(torch.ones(1))
    with pytest.raises(ValueError, match="at least 2 dims"):
        constraints.independent(constraints.real, 2).check(torch.ones(1))


INTO = [constraints.real, constraints.positive, constraints.nonnegative,
        constraints.greater_than(1.0), constraints.less_than(-2.0), constraints.unit_interval,
        constraints.interval(T([1.0, 2.0]), T(5.0)), constraints.half_open_interval(0.0, 3.0),
        constraints.simplex, constraints.real_vector, constraints.corr_cholesky,
        constraints.independent(constraints.positive, 1),
        constraints.cat([constraints.positive, constraints.unit_interval], -1, [2, 4]),
        constraints.stack([constraints.positive] * 6, -1)]


@pytest.mark.parametrize("which", range(len(INTO)))
@pytest.mark.parametrize("table", [biject_to, transform_to])
def test_into_a_region(which, table):
    constraint = INTO[which]
    transform = table(constraint)
    torch.manual_seed(0)
    x = torch.randn((5, 6) if transform.domain.event_dim or which > 11 else (5, 2),
                    dtype=torch.float64)
    y = transform(x)
    assert constraint.check(y).all()
    back = transform(transform.inv(y))
    assert torch.allclose(back, y)
    assert table is transform_to or transform.bijective


def test_matrices_are_reached():
    for constraint in (constraints.lower_cholesky, constraints.positive_definite,
                       constraints.positive_semidefinite):
        y = transform_to(constraint)(torch.randn(3, 3, dtype=torch.float64))
        assert constraint.check(y)
        with pytest.raises(NotImplementedError, match="no transform is registered"):
            biject_to(constraint)


def test_registering():
    class Even(constraints.Constraint):
        pass

    @transform_to.register(Even)
    def even(constraint):
        return D.AffineTransform(0, 2)

    assert np.isclose(float(transform_to(Even())(T(3.0))), 6.0)
    with pytest.raises(TypeError, match="type of constraints"):
        transform_to.register(3, even)
