"""Numerical care in linear algebra: phases, equal values, rank, singular matrices, failures.

The table's own checks compare formulas with differences at generic matrices (`test_table.py`);
here are the points where a formula needs more than that.
"""

import itertools
import math

import numpy as np
import pytest

import pullback as pb
from pullback import errors
from pullback.autograd import grad
from pullback.linalg import LinAlgError

RANDOM = np.random.default_rng(7)


def real(*shape):
    return RANDOM.standard_normal(shape)


def complex_(*shape):
    return real(*shape) + 1j * real(*shape)


def tensor(array, track=False):
    return pb.from_numpy(np.array(array)).requires_grad_(track)


def orthogonal(size, make=real):
    return np.linalg.qr(make(size, size))[0]


def hermitian(values, make=real):
    """A matrix with these eigenvalues."""
    v = orthogonal(len(values), make)
    return (v * np.array(values)) @ v.conj().T


def gradient(loss, array):
    """Gradient of a real loss of a matrix."""
    x = tensor(array, track=True)
    return grad(loss(x), x)[0].detach().numpy()


def slope(loss, array, direction, step=1e-5):
    """Directional derivative by differences."""
    ends = [loss(tensor(array + factor * step * direction)).item() for factor in (1, -1, 2, -2)]
    return (8 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12 * step)


def inner(a, b):
    return float(np.sum(a.conj() * b).real)


def symmetrized(a):
    return (a + a.conj().T) / 2


# phases


PHASES = {
    "eigh": (lambda a: pb.linalg.eigh(a)[1], lambda: symmetrized(complex_(3, 3))),
    "svd": (lambda a: pb.linalg.svd(a, full_matrices=False)[0], lambda: complex_(3, 3)),
    "eig": (lambda a: pb.linalg.eig(a)[1], lambda: complex_(3, 3)),
    "eig of a real matrix": (lambda a: pb.linalg.eig(a)[1],
                             lambda: real(3, 3) + np.diag([1, 3, 9.0])),
}


@pytest.mark.parametrize("name", PHASES)
def test_a_loss_that_depends_on_phases_is_refused(name):
    vectors, make = PHASES[name]
    x = tensor(make(), track=True)
    weights = tensor(complex_(3, 3))
    with pytest.raises(RuntimeError, match=r"depends on the phase of (eigen|singular )vectors"):
        grad((vectors(x) * weights).real.sum(), x)
    with pytest.raises(errors.NotDifferentiable, match="Fix: use what no phase changes"):
        pb.func.grad(lambda a: (vectors(a) * weights).imag.sum())(x.detach())


@pytest.mark.parametrize("name", PHASES)
def test_a_loss_without_phases_has_a_derivative(name):
    vectors, make = PHASES[name]
    array, weights = make(), tensor(real(3, 3))
    direction = make() - make()
    loss = lambda a: (vectors(a).abs() * weights).sum()
    assert inner(gradient(loss, array), direction) == pytest.approx(
        slope(loss, array, direction), rel=1e-6)


def test_phases_are_not_looked_at_where_there_are_no_values():
    arrays = tensor(np.stack([symmetrized(complex_(3, 3)) for _ in range(2)]))
    weights = tensor(complex_(3, 3))
    loss = lambda a: (pb.linalg.eigh(a)[1] * weights).real.sum()
    assert pb.func.vmap(pb.func.grad(loss))(arrays).shape == (2, 3, 3)
    x = arrays[0].clone().requires_grad_()
    pb.compile(loss)(x).backward()
    assert x.grad.shape == (3, 3)


def test_both_factors_of_a_complex_svd_may_share_their_phase():
    array, weights, direction = complex_(3, 3), tensor(complex_(3, 3)), complex_(3, 3)

    def loss(a):
        u, _, vh = pb.linalg.svd(a)
        return ((u @ vh) * weights).real.sum()  # phases cancel, but neither factor is free of them
    assert inner(gradient(loss, array), direction) == pytest.approx(
        slope(loss, array, direction), rel=1e-6)


# equal values


@pytest.mark.parametrize("make", [real, complex_])
def test_eigenspaces_of_equal_eigenvalues_have_a_derivative(make):
    array = hermitian([1, 1, 1, 4, 4], make)
    weights, direction = tensor(symmetrized(make(5, 5))), symmetrized(make(5, 5))

    def loss(a):
        v = pb.linalg.eigh(a)[1][:, :3]
        return ((v @ v.mH) * weights).real.sum()
    assert inner(gradient(loss, array), direction) == pytest.approx(
        slope(loss, array, direction), rel=1e-5)


def test_exactly_equal_eigenvalues_that_are_not_used():
    array = np.diag([1.0, 1.0, 1.0, 5.0])
    weights = tensor(real(4))

    def loss(a):
        values, vectors = pb.linalg.eigh(a)
        return values[3] + (vectors[:, 3] ** 2 * weights).sum()
    direction = symmetrized(real(4, 4))
    assert inner(gradient(loss, array), direction) == pytest.approx(
        slope(loss, array, direction), rel=1e-6)


def test_matrix_functions_at_equal_eigenvalues_are_not_silently_wrong():
    # the derivative needs the limit of a quotient 0/0 that the formula cannot know
    def loss(a):
        values, vectors = pb.linalg.eigh(a)
        return ((vectors * values.exp()) @ vectors.mT).sum()
    assert np.isnan(gradient(loss, np.eye(3))).any()


@pytest.mark.parametrize("shape", [(5, 4), (4, 5), (4, 4)])
@pytest.mark.parametrize("make", [real, complex_])
def test_truncated_svd_of_a_matrix_of_low_rank(shape, make):
    left, right = orthogonal(shape[0], make)[:, :2], orthogonal(shape[1], make)[:, :2]
    array = (left * [3.0, 1.0]) @ right.conj().T
    weights, direction = tensor(make(*shape)), make(*shape)

    def loss(a):
        u, s, vh = pb.linalg.svd(a, full_matrices=False)
        return (((u[:, :2] * s[:2].to(u.dtype)) @ vh[:2]) * weights).real.sum()
    assert inner(gradient(loss, array), direction) == pytest.approx(
        slope(loss, array, direction), rel=1e-5)


def test_exact_zeros_among_singular_values_that_are_not_used():
    array = np.zeros((4, 3))
    array[0, 0] = 2.0
    loss = lambda a: pb.linalg.svd(a, full_matrices=False)[0][:, 0].square()[1:].sum()
    assert np.isfinite(gradient(loss, array)).all()


def test_equal_singular_values_and_the_polar_factor():
    array = orthogonal(3) * 2.0
    weights, direction = tensor(real(3, 3)), real(3, 3)

    def loss(a):
        u, _, vh = pb.linalg.svd(a)
        return ((u @ vh) * weights).sum()
    assert inner(gradient(loss, array), direction) == pytest.approx(
        slope(loss, array, direction), rel=1e-6)


def test_forward_mode_at_equal_eigenvalues_with_a_tangent_of_zero():
    eye = tensor(np.eye(3))
    moved = pb.func.jvp(pb.linalg.eigh, (eye,), (pb.zeros_like(eye),))[1]
    assert all((t == 0).all() for t in moved)


# the complement that full_matrices=True adds


@pytest.mark.parametrize("make", [real, complex_])
@pytest.mark.parametrize("shape", [(5, 2), (2, 5)])
def test_the_projector_on_the_complement_has_a_derivative(make, shape):
    array, direction = make(*shape), make(*shape)
    weights = tensor(make(5, 5))

    def loss(a):
        u, _, vh = pb.linalg.svd(a)
        rest = u[:, 2:] if shape[0] > 2 else vh.mH[:, 2:]
        return ((rest @ rest.mH) * weights).real.sum()
    assert inner(gradient(loss, array), direction) == pytest.approx(
        slope(loss, array, direction), rel=1e-6)
    moved = pb.func.jvp(loss, (tensor(array),), (tensor(direction),))[1].item()
    assert moved == pytest.approx(slope(loss, array, direction), rel=1e-6)


def test_a_loss_that_depends_on_the_basis_of_the_complement_is_refused():
    x, weights = tensor(real(5, 2), track=True), tensor(real(5, 5))
    with pytest.raises(RuntimeError, match="further left singular vectors"):
        grad((pb.linalg.svd(x)[0] * weights).sum(), x)


# QR and LU


@pytest.mark.parametrize("shape, mode", [((3, 3), "r"), ((2, 4), "r"), ((4, 2), "complete")])
def test_qr_refuses_derivatives_that_it_cannot_know(shape, mode):
    x = tensor(real(*shape), track=True)
    _, r = pb.linalg.qr(x, mode)
    with pytest.raises(RuntimeError, match="mode='reduced'"):
        r.sum().backward()
    with pytest.raises(RuntimeError, match="linalg_qr has no derivative"):
        pb.func.jvp(lambda a: pb.linalg.qr(a, mode)[1], (x.detach(),), (x.detach(),))


@pytest.mark.parametrize("shape", [(3, 3), (3, 5), (2, 3, 5), (5, 3)])
@pytest.mark.parametrize("make", [real, complex_])
@pytest.mark.parametrize("function", [pb.linalg.qr, lambda a: pb.linalg.lu(a)[1:],
                                      lambda a: pb.linalg.lu_factor(a)[:1]])
def test_factors_multiply_to_the_moved_matrix(function, make, shape):
    """In forward mode, d(Q R) = dA; in reverse, the gradient of sum(Q R weights) is the weights."""
    x, direction, weights = (tensor(make(*shape)) for _ in range(3))

    def product(a):
        out = function(a)
        if len(out) == 2:
            p = pb.linalg.lu(a.detach())[0] if function is not pb.linalg.qr else None
            return out[0] @ out[1] if p is None else p @ out[0] @ out[1]
        p, lower, upper = pb.lu_unpack(out[0], pb.linalg.lu_factor(a.detach())[1])
        return p @ lower @ upper
    moved = pb.func.jvp(product, (x,), (direction,))[1]
    np.testing.assert_allclose(moved.numpy(), direction.numpy(), atol=1e-9)
    pulled = pb.func.vjp(product, x)[1](weights)[0]
    np.testing.assert_allclose(pulled.numpy(), weights.numpy(), atol=1e-9)


def test_reflections_with_a_factor_of_zero():
    # LAPACK leaves the last reflection of a real square matrix out: tau is 0
    array = real(3, 3)
    packed, tau = pb.geqrf(tensor(array))
    assert tau[-1] == 0
    q = pb.linalg.householder_product(packed, tau)
    np.testing.assert_allclose(q.numpy(), np.linalg.qr(array)[0], atol=1e-12)
    other = real(2, 3)
    out = pb.ormqr(packed, tau, tensor(other), left=False, transpose=True)
    np.testing.assert_allclose(out.numpy(), other @ q.numpy().T, atol=1e-12)


def test_derivatives_that_nobody_wrote_are_refused():
    x = tensor(hermitian([1, 2, 3]), track=True)
    for out in (pb.linalg.ldl_factor(x)[0], pb.geqrf(x)[0]):
        with pytest.raises(NotImplementedError):
            out.sum().backward()
    factors, pivots = pb.linalg.ldl_factor(x.detach())
    with pytest.raises(RuntimeError, match="not differentiable with respect to argument 'LD'"):
        pb.linalg.ldl_solve(factors.requires_grad_(), pivots, pb.ones(3, 1, dtype=pb.float64))


# determinants of singular matrices


def leibniz(a):
    """The determinant as a polynomial of the elements."""
    size, total = a.shape[-1], 0
    for order in itertools.permutations(range(size)):
        swaps = sum(order[i] > order[j] for i in range(size) for j in range(i + 1, size))
        term = (-1) ** swaps
        for i, j in enumerate(order):
            term = term * a[..., i, j]
        total = total + term
    return total


SINGULAR = {
    "2x2 zero": np.zeros((2, 2)),
    "3x3 zero": np.zeros((3, 3)),
    "rank 1 of 3": np.outer([1.0, 2.0, 3.0], [2.0, -1.0, 1.0]),
    "rank 2 of 3": np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]]),
    "zero row": np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [1.0, 0.0, 1.0]]),
    "rank 2 of 4": real(4, 2) @ real(2, 4),
    "rank 3 of 4": real(4, 3) @ real(3, 4),
    "equal singular values": np.eye(3),
    "regular": real(4, 4),
}


@pytest.mark.parametrize("name", SINGULAR)
@pytest.mark.parametrize("phase", [1, 1j])
def test_determinants_to_second_order(name, phase):
    array = SINGULAR[name] if phase == 1 else SINGULAR[name] * np.exp(0.3j)
    direction, weights = ((real, complex_)[phase != 1](*array.shape) for _ in range(2))

    def orders(function):
        x = tensor(array, track=True)
        out = function(x)
        out = out if phase == 1 else (out * (2 + 1j)).real
        first = grad(out, x, create_graph=True)[0]
        second = grad((first * tensor(weights)).sum().real, x)[0]
        pushed = pb.func.jvp(function, (x.detach(),), (tensor(direction),))[1]
        both = pb.func.jvp(pb.func.grad(lambda a: function(a).real if phase != 1 else function(a)),
                           (x.detach(),), (tensor(direction),))[1]
        unwatched = gradient(lambda a: function(a).real if phase != 1 else function(a), array)
        return [t.detach().numpy() if hasattr(t, "detach") else t
                for t in (first, second, pushed, both, unwatched)]
    for got, expected in zip(orders(pb.linalg.det), orders(leibniz), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-9)


def test_determinants_of_a_mixed_stack():
    arrays = tensor(np.stack([SINGULAR[n] for n in ("3x3 zero", "rank 1 of 3", "rank 2 of 3",
                                                   "equal singular values")]))
    for function in (pb.func.hessian, lambda f: pb.func.jacfwd(pb.func.jacfwd(f))):
        got = pb.func.vmap(function(pb.linalg.det))(arrays)
        expected = pb.func.vmap(function(leibniz))(arrays)
        np.testing.assert_allclose(got.numpy(), expected.numpy(), atol=1e-9)


def test_compiled_determinants_of_singular_matrices():
    x = tensor(SINGULAR["rank 2 of 3"], track=True)
    pb.compile(pb.linalg.det)(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), gradient(leibniz, x.detach().numpy()), atol=1e-12)


def test_determinant_of_a_number():
    x = tensor([[0.0]], track=True)
    assert grad(pb.linalg.det(x), x)[0].item() == 1
    assert pb.func.hessian(pb.linalg.det)(x.detach()).item() == 0


def test_third_derivative_at_equal_singular_values():
    third = pb.func.jacfwd(pb.func.hessian(pb.linalg.det))(tensor(np.eye(3)))
    expected = pb.func.jacfwd(pb.func.hessian(leibniz))(tensor(np.eye(3)))
    np.testing.assert_allclose(third.numpy(), expected.numpy(), atol=1e-9)


def test_logdet_signs():
    assert math.isnan(pb.logdet(tensor(-np.eye(3))).item())
    assert pb.logdet(tensor(-np.eye(3) + 0j)).item() == pytest.approx(1j * math.pi)
    assert pb.logdet(tensor(np.zeros((2, 2)))).item() == -math.inf
    sign, logabs = pb.linalg.slogdet(tensor(np.zeros((2, 2))))
    assert sign.item() == 0 and logabs.item() == -math.inf
    assert pb.linalg.slogdet(tensor(1e-300 * np.eye(4)))[1].item() == pytest.approx(
        4 * math.log(1e-300))


# factorizations that are used again


def test_reused_factors_do_not_cut_the_history():
    """The LU factors of the forward pass serve backward only where nobody differentiates that."""
    array, right = real(3, 3) + 3 * np.eye(3), real(3, 2)
    solve = lambda a: (pb.linalg.solve(a, tensor(right)) ** 2).sum()
    by_inverse = lambda a: ((pb.linalg.inv(a) @ tensor(right)) ** 2).sum()
    logarithm = lambda a: pb.linalg.slogdet(a)[1] ** 2
    by_det = lambda a: pb.linalg.det(a).abs().log() ** 2
    for function, reference in ((solve, by_inverse), (logarithm, by_det)):
        for transform in (pb.func.hessian, lambda f: pb.func.jacrev(pb.func.jacrev(f)),
                          lambda f: pb.func.jacfwd(pb.func.jacfwd(f))):
            np.testing.assert_allclose(transform(function)(tensor(array)).numpy(),
                                       transform(reference)(tensor(array)).numpy(), rtol=1e-8)
        np.testing.assert_allclose(gradient(function, array), gradient(reference, array), rtol=1e-9)


def test_many_small_matrices_take_another_way():
    """Stacks that are swept column by column give what LAPACK gives."""
    for make in (real, complex_):
        arrays, right = make(40, 3, 3), make(40, 3, 2)
        arrays[0] = [[0, 1, 2], [1, 0, 3], [4, 5, 0]]  # needs pivots
        got, one = pb.linalg.lu_factor(tensor(arrays)), pb.linalg.lu_factor(tensor(arrays[0]))
        np.testing.assert_allclose(got[0][0].numpy(), one[0].numpy(), rtol=1e-12)
        assert got[1][0].tolist() == one[1].tolist()
        for left in (True, False):
            b = right if left else np.swapaxes(right, 1, 2)
            x = pb.linalg.solve(tensor(arrays), tensor(b), left=left).numpy()
            np.testing.assert_allclose(arrays @ x if left else x @ arrays, b, atol=1e-9)
        arrays = arrays + 5 * np.eye(3)
        for upper in (True, False):
            t = pb.linalg.solve_triangular(tensor(arrays), tensor(right), upper=upper).numpy()
            triangle = np.triu(arrays) if upper else np.tril(arrays)
            np.testing.assert_allclose(triangle @ t, right, atol=1e-9)


# rank


@pytest.mark.parametrize("shape", [(5, 4), (4, 5), (4, 4)])
def test_pseudo_inverse_at_constant_rank(shape):
    left, right = real(shape[0], 2), real(2, shape[1])
    array = left @ right
    change_left, change_right = real(*left.shape), real(*right.shape)
    weights = tensor(real(shape[1], shape[0]))
    direction = change_left @ right + left @ change_right  # tangent to the matrices of rank 2
    loss = lambda a: (pb.linalg.pinv(a, rtol=1e-8) * weights).sum()
    curve = lambda t: loss(tensor((left + t * change_left) @ (right + t * change_right))).item()
    step = 1e-5
    expected = (curve(step) - curve(-step)) / (2 * step)
    assert inner(gradient(loss, array), direction) == pytest.approx(expected, rel=1e-5)
    moved = pb.func.jvp(loss, (tensor(array),), (tensor(direction),))[1]
    assert moved.item() == pytest.approx(expected, rel=1e-5)


def test_tolerances_of_the_pseudo_inverse():
    array = tensor(np.diag([4.0, 1.0, 0.1]))
    kept = lambda p: (p.diagonal() != 0).sum().item()
    assert kept(pb.linalg.pinv(array)) == 3
    assert kept(pb.linalg.pinv(array, atol=0.5)) == 2
    assert kept(pb.linalg.pinv(array, rtol=0.5)) == 1
    assert kept(pb.linalg.pinv(array, atol=0.5, rtol=0.5)) == 1
    assert kept(pb.linalg.pinv(array, 0.1)) == 2
    assert kept(pb.linalg.pinv(-array, hermitian=True, atol=0.5)) == 2
    # an absolute tolerance switches the default relative one off
    tiny = tensor(np.diag([1.0, 1e-16]))
    assert kept(pb.linalg.pinv(tiny)) == 1 and kept(pb.linalg.pinv(tiny, atol=1e-30)) == 2
    assert pb.linalg.matrix_rank(tiny).item() == 1
    assert pb.linalg.matrix_rank(tiny, atol=1e-30).item() == 2
    assert pb.linalg.matrix_rank(tensor(np.zeros((2, 3, 0)))).tolist() == [0, 0]


def test_least_squares_of_deficient_rank():
    array, right = real(5, 2) @ real(2, 3), real(5, 2)
    out = pb.linalg.lstsq(tensor(array), tensor(right), driver="gelsd")
    assert out.rank.item() == 2 and out.singular_values.shape == (3,)
    assert out.residuals.shape == (0,)  # as LAPACK: only for full rank
    np.testing.assert_allclose(out.solution.numpy(), np.linalg.pinv(array) @ right, atol=1e-10)
    # a direction that keeps the rank
    direction = array @ real(3, 3) + real(5, 5) @ array
    weights = tensor(real(3, 2))
    loss = lambda a: (pb.linalg.lstsq(a, tensor(right), rcond=1e-8).solution * weights).sum()
    moved = pb.func.jvp(loss, (tensor(array),), (tensor(direction),))[1].item()
    assert inner(gradient(loss, array), direction) == pytest.approx(moved, rel=1e-8)


@pytest.mark.parametrize("driver", ["gelsd", "gelss", "gelsy"])
def test_least_squares_of_deficient_rank_compiled(driver):
    """Whether there are residuals is a matter of the data."""
    compiled = pb.compile(lambda a, b: tuple(pb.linalg.lstsq(a, b, driver=driver)))
    right = tensor(real(5, 2))
    for array in (real(5, 2) @ real(2, 3), real(5, 3)):
        found = compiled(tensor(array), right)
        for got, want in zip(found, pb.linalg.lstsq(tensor(array), right, driver=driver)):
            assert got.shape == want.shape
            np.testing.assert_allclose(got.numpy(), want.numpy())


def test_residuals_of_least_squares():
    array, right = real(5, 3), real(5, 2)
    x, b = tensor(array, track=True), tensor(right, track=True)
    out = pb.linalg.lstsq(x, b, driver="gels")
    expected = ((x @ out.solution - b) ** 2).sum(0)
    np.testing.assert_allclose(out.residuals.detach().numpy(), expected.detach().numpy())
    wanted = grad(expected.sum(), (x, b), retain_graph=True)
    for got, want in zip(grad(out.residuals.sum(), (x, b)), wanted, strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), atol=1e-10)
    assert pb.linalg.lstsq(x, b).residuals.shape == (0,)


# the matrix exponential


def test_exponential_of_matrices_of_very_different_size_in_one_stack():
    arrays = np.stack([1e-9 * real(3, 3), 30 * symmetrized(real(3, 3))])
    got = pb.linalg.matrix_exp(tensor(arrays)).numpy()
    series = np.eye(3) + arrays[0] + arrays[0] @ arrays[0] / 2
    np.testing.assert_allclose(got[0] - np.eye(3), series - np.eye(3), rtol=1e-6, atol=1e-15)
    values, vectors = np.linalg.eigh(arrays[1])
    exact = (vectors * np.exp(values)) @ vectors.T
    np.testing.assert_allclose(got[1], exact, rtol=1e-10, atol=1e-12 * np.abs(exact).max())


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_exponential_in_both_modes_whatever_the_size_of_gradients(scale):
    array, weights = real(3, 3), real(3, 3)
    values, vectors = np.linalg.eigh(symmetrized(array))
    gaps = values[:, None] - values
    with np.errstate(all="ignore"):  # quotients of differences, on the diagonal their limit
        quotient = (np.exp(values)[:, None] - np.exp(values)) / gaps
    quotient = np.where(gaps == 0, np.exp(values), quotient)
    exact = vectors @ (quotient * (vectors.T @ weights @ vectors)) @ vectors.T
    x = tensor(symmetrized(array), track=True)
    pulled = grad(pb.linalg.matrix_exp(x), x, tensor(scale * weights))[0].numpy() / scale
    moved = pb.func.jvp(pb.linalg.matrix_exp, (x.detach(),), (tensor(scale * weights),))[1].numpy()
    np.testing.assert_allclose(pulled, exact, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(moved / scale, exact, rtol=1e-11, atol=1e-12)


# failures


@pytest.mark.parametrize("call, message", [
    (lambda a: pb.linalg.inv(a), "singular"),
    (lambda a: pb.inverse(a), "singular"),
    (lambda a: pb.linalg.solve(a, pb.ones(3, dtype=pb.float64)), "singular"),
    (lambda a: pb.linalg.lu_factor(a), r"U\[2,2\] is zero"),
    (lambda a: pb.linalg.cholesky(a), "not positive-definite"),
    (lambda a: pb.linalg.tensorinv(a.reshape(3, 3), 1), "singular"),
    (lambda a: pb.linalg.svd(a * math.nan), "non-finite"),
    (lambda a: pb.linalg.eigvals(a * math.inf), "infs or NaNs"),
])
def test_failures_are_linear_algebra_errors(call, message):
    singular = tensor(np.diag([1.0, 0.0, 2.0]))
    with pytest.raises(LinAlgError, match=message):
        call(singular)
    assert issubclass(LinAlgError, RuntimeError) and LinAlgError is errors.LinAlgError


@pytest.mark.parametrize("value, call", [
    (math.inf, lambda a: pb.linalg.svd(a)[0]),
    (math.inf, lambda a: pb.linalg.svd(a).S),
    (math.inf, pb.linalg.svdvals),
    (math.inf, pb.linalg.pinv),
    (math.inf, lambda a: pb.linalg.lstsq(a, a, driver="gelsd").solution),
    (math.inf, lambda a: pb.linalg.norm(a, "nuc", (-2, -1))),
    (math.inf, lambda a: pb.func.grad(lambda t: pb.linalg.det(t).sum())(a)),
    (math.nan, lambda a: pb.func.grad(lambda t: pb.linalg.det(t).sum())(a)),
])
def test_singular_values_of_what_is_not_finite_come_to_an_end(value, call):
    """LAPACK went round and round with an infinite value; others of the stack are unharmed."""
    good = np.random.default_rng(0).normal(size=(3, 3))
    bad = good.copy()
    bad[0, 0] = value
    out, alone = call(tensor(np.stack([bad, good]))), call(tensor(good))
    assert bool(out[0].isnan().all())
    assert pb.allclose(out[1], alone)


def test_determinants_with_infinite_values_are_right_or_nan():
    """Factors of LAPACK made +inf of a determinant that goes to -inf."""
    matrix = np.array([[-0.85, 1.8, -0.34], [1.9, -np.inf, 1.33], [-1.08, 1.73, -0.57]])
    assert math.isnan(pb.linalg.det(tensor(matrix))) and math.isnan(pb.logdet(tensor(matrix)))
    plain = tensor(np.diag([-math.inf, 1.0]))
    sign, size = pb.linalg.slogdet(plain)
    assert (float(sign), float(size), float(pb.linalg.det(plain))) == (-1, math.inf, -math.inf)


@pytest.mark.parametrize("call", [
    pb.linalg.svdvals, pb.linalg.pinv, lambda a: pb.linalg.pinv(a, hermitian=True),
    lambda a: pb.linalg.lstsq(a, a), pb.linalg.matrix_rank])
def test_singular_values_of_nan_are_refused(call):
    with pytest.raises(LinAlgError, match="non-finite"):
        call(tensor(np.full((3, 3), math.nan)))


def test_failures_name_the_matrix_of_a_stack():
    stack = tensor(np.stack([np.eye(2), np.zeros((2, 2))]))
    with pytest.raises(LinAlgError, match=r"\(Batch element 1\)"):
        pb.linalg.inv(stack)


def test_operators_that_report_instead():
    singular = tensor(np.stack([np.eye(3), np.diag([1.0, 0.0, 2.0])]))
    assert pb.linalg.inv_ex(singular).info.tolist() == [0, 2]
    result, info = pb.linalg.solve_ex(singular, pb.ones(2, 3, dtype=pb.float64))
    assert info.tolist() == [0, 2] and result[0].tolist() == [1, 1, 1]
    assert pb.linalg.lu_factor_ex(singular).info.tolist() == [0, 2]
    assert pb.linalg.cholesky_ex(singular).info.tolist() == [0, 2]
    assert pb.linalg.cond(singular, 1).tolist() == [1, math.inf]
    assert pb.linalg.cond(singular, "nuc").tolist() == [9, math.inf]


@pytest.mark.parametrize("call", [
    lambda: pb.linalg.det(tensor(real(2, 3))),
    lambda: pb.linalg.det(pb.ones(2, 2, dtype=pb.int64)),
    lambda: pb.linalg.solve(tensor(real(2, 2)), tensor(real(3, 1))),
    lambda: pb.linalg.solve(tensor(real(2, 2)), tensor(real(2, 1)).to(pb.float32)),
    lambda: pb.linalg.eigh(tensor(real(2, 2)), "X"),
    lambda: pb.linalg.qr(tensor(real(2, 2)), "thin"),
    lambda: pb.linalg.lstsq(tensor(real(3, 2)), tensor(real(2, 3, 2))),
    lambda: pb.linalg.matrix_norm(tensor(real(2, 2)), 3),
    lambda: pb.linalg.matrix_norm(tensor(real(2, 2)), dim=(0, 0)),
    lambda: pb.linalg.norm(tensor(real(2, 2, 2)), 2),
    lambda: pb.linalg.householder_product(tensor(real(2, 3)), tensor(real(2))),
])
def test_wrong_arguments_are_runtime_errors(call):
    with pytest.raises(RuntimeError):
        call()


# low rank by random projection


def test_low_rank_decompositions():
    array = real(7, 3) @ real(3, 5)
    pb.manual_seed(0)
    u, s, v = pb.svd_lowrank(tensor(array), q=3)
    np.testing.assert_allclose((u * s) @ v.mT, array, atol=1e-10)
    _, s, _ = pb.pca_lowrank(tensor(array), q=3)
    np.testing.assert_allclose(s, np.linalg.svd(array - array.mean(0))[1][:3], atol=1e-10)
    with pytest.raises(ValueError):
        pb.pca_lowrank(tensor(array), q=9)


@pytest.mark.parametrize("shape", [(60, 4), (4, 60), (2, 9, 5)])
def test_random_projections_are_drawn_for_the_shorter_side(shape):
    pb.manual_seed(3)
    x = pb.randn(*shape)
    state = pb.get_rng_state()
    s = pb.svd_lowrank(x, q=2)[1]
    after = pb.rand(1)
    pb.set_rng_state(state)
    pb.randn(min(shape[-2:]), 2)
    assert pb.equal(pb.rand(1), after)
    assert s.shape == (*shape[:-2], 2)
    full = pb.svd_lowrank(x, q=min(shape[-2:]))[1]
    assert pb.allclose(full, pb.linalg.svdvals(x), atol=1e-4)


@pytest.mark.parametrize("pivots", [[0, 2, 3], [1, 2, 4], [-9, -9, 3], [-2, 2, 3], [1, 2, -3]])
def test_pivots_of_nothing_are_refused(pivots):
    """LAPACK would exchange rows outside of the matrix."""
    factors, right = pb.eye(3), pb.ones(3, 2)
    with pytest.raises(errors.RefusedValue, match="not the pivots of a factorization"):
        pb.linalg.ldl_solve(factors, pb.tensor(pivots, dtype=pb.int32), right)


@pytest.mark.parametrize("indefinite", [False, True])
def test_pivots_of_a_factorization_are_taken(indefinite):
    random = np.random.default_rng(0)
    a = random.normal(size=(4, 5, 5))
    a = a + a.swapaxes(-1, -2) if indefinite else a @ a.swapaxes(-1, -2) + np.eye(5)
    if indefinite:
        a[:, range(5), range(5)] = 0  # blocks of two rows
    factors, pivots = pb.linalg.ldl_factor(pb.tensor(a))
    assert bool((pivots < 0).any()) == indefinite
    right = pb.ones(5, 2, dtype=pb.float64)
    np.testing.assert_allclose(a @ pb.linalg.ldl_solve(factors, pivots, right).numpy(),
                               np.ones((4, 5, 2)), atol=1e-10)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_adjugates_are_of_what_has_determinants(dtype):
    x = pb.ones(1, 1, dtype=getattr(pb, dtype))
    for function in (pb.linalg.det, pb.ops.aten._linalg_adjugate.default):
        for run in (function, pb.compile(function, backend="numpy")):
            with pytest.raises(RuntimeError, match="Expected a floating point"):
                run(x)
