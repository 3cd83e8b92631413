"""Special functions against mpmath, and what the kit cannot see: limits, poles, refusals."""

import importlib.util
import math
import pathlib
import sys

import mpmath as mp
import numpy as np
import pytest

import pullback as torch
from pullback import errors, special
from pullback.autograd import grad
from pullback.func import jacrev, jvp

_path = pathlib.Path(__file__).parents[2] / "tools" / "accuracy.py"
_spec = importlib.util.spec_from_file_location("accuracy", _path)
accuracy = sys.modules.setdefault("accuracy", importlib.util.module_from_spec(_spec))
_spec.loader.exec_module(accuracy)


def doubles(*values):
    return torch.tensor(values, dtype=torch.float64)


def derivatives(function, at: float, order: int) -> list[float]:
    """The value and the derivatives up to some order at a point."""
    x = torch.tensor(at, dtype=torch.float64, requires_grad=True)
    y, found = function(x), []
    for k in range(order + 1):
        found.append(y.item())
        if k < order:
            (y,) = grad(y, x, create_graph=True)
    return found


@pytest.mark.parametrize("function", accuracy.functions(), ids=lambda f: f.name)
def test_value_and_slope_to_13_digits(function):
    for error in accuracy.measure(function, 5):
        assert error.size <= accuracy.LIMIT, str(error)


def test_the_yardstick_sees_errors():
    wrong = accuracy._special("erf", lambda x: mp.erf(x) * (1 + mp.mpf("1e-12")), None, 0.5, 1)
    assert next(accuracy.measure(wrong, 4)).size > accuracy.LIMIT


# What the tool measures must be what the package offers
@pytest.mark.parametrize(
    "name",
    [n for n in dir(special) if n not in ("log_softmax", "logsumexp", "softmax", "round", "psi")],
)
def test_the_tool_covers(name):
    assert any(f.name.startswith(name) for f in accuracy.functions())


# Derivatives at zero: (operator, value and derivatives there)
AT_ZERO = {
    "sinc": [1, 0, -(math.pi**2) / 3, 0, math.pi**4 / 5],
    "spherical_bessel_j0": [1, 0, -1 / 3, 0, 1 / 5],
    "i0": [1, 0, 1 / 2, 0, 3 / 8],
    "modified_bessel_i0": [1, 0, 1 / 2, 0, 3 / 8],
    "i1": [0, 1 / 2, 0, 3 / 8, 0],
    "modified_bessel_i1": [0, 1 / 2, 0, 3 / 8, 0],
    "bessel_j0": [1, 0, -1 / 2, 0, 3 / 8],
    "bessel_j1": [0, 1 / 2, 0, -3 / 8, 0],
    "i1e": [0, 1 / 2],
    "i0e": [1, 0],  # the middle of the kink
}


@pytest.mark.parametrize("name", AT_ZERO)
def test_derivatives_at_zero(name):
    expected = AT_ZERO[name]
    assert derivatives(getattr(special, name), 0.0, len(expected) - 1) == pytest.approx(
        expected, rel=1e-14, abs=1e-15
    )


@pytest.mark.parametrize("name, at", [("sinc", 1e-7), ("i1", 1e-7), ("bessel_j1", 1e-7)])
def test_derivatives_close_to_zero(name, at):
    """Quotients of the textbook formulas have no digit left here in the second derivative."""
    exact = {
        "sinc": mp.sincpi,
        "i1": lambda x: mp.besseli(1, x),
        "bessel_j1": lambda x: mp.besselj(1, x),
    }[name]
    with mp.workdps(60):
        expected = [float(c * mp.factorial(k)) for k, c in enumerate(mp.taylor(exact, at, 3))]
    assert derivatives(getattr(special, name), at, 3) == pytest.approx(expected, rel=1e-12)


def test_scaled_functions_far_out():
    """exp(-x) I_0 and its like: differences would lose as many digits as x has."""
    for at in (1e3, 1e8):
        value, slope, bend = derivatives(special.i0e, at, 2)
        assert slope / value == pytest.approx(-1 / (2 * at), rel=1 / at)
        assert bend / value == pytest.approx(3 / (4 * at * at), rel=1 / at)
        value, slope = derivatives(special.scaled_modified_bessel_k1, at, 1)
        assert slope / value == pytest.approx(-1 / (2 * at), rel=1 / at)
        value, slope, bend = derivatives(special.erfcx, at, 2)
        assert slope / value == pytest.approx(-1 / at, rel=1 / at)
        assert bend / value == pytest.approx(2 / at**2, rel=1 / at)


def test_log_ndtr_far_out():
    assert derivatives(special.log_ndtr, -1e5, 3)[1:] == pytest.approx(
        [1e5 + 1e-5, -1 + 1e-10, -2e-15], rel=1e-9
    )
    assert derivatives(special.log_ndtr, 60.0, 2) == pytest.approx([0, 0, 0], abs=1e-300)


def test_igamma_by_its_first_argument():
    a, x = 2.3, 1.7
    with mp.workdps(40):

        def p(a):
            return mp.gammainc(a, 0, x, regularized=True)

        expected = [float(mp.diff(p, a, k)) for k in (1, 2, 3)]
    found = derivatives(lambda t: torch.igamma(t, doubles(x)[0]), a, 3)[1:]
    assert found == pytest.approx(expected, rel=1e-11)
    found = derivatives(lambda t: torch.igammac(t, doubles(x)[0]), a, 3)[1:]
    assert found == pytest.approx([-v for v in expected], rel=1e-11)


def test_igamma_mixed_derivatives():
    """The Hessian of P(a, x), at a = 1 too, where 1 / Gamma(a - 1) vanishes."""
    for a, x in ((1.0, 0.8), (2.0, 3.0), (0.4, 0.1), (30.0, 33.0)):
        hessian = jacrev(jacrev(lambda v: torch.igamma(v[0], v[1])))(doubles(a, x))
        with mp.workdps(40):

            def p(a, x):
                return mp.gammainc(a, 0, x, regularized=True)

            expected = [
                [float(mp.diff(p, (a, x), order)) for order in row]
                for row in (((2, 0), (1, 1)), ((1, 1), (0, 2)))
            ]
        np.testing.assert_allclose(hessian.numpy(), expected, rtol=1e-9, atol=1e-13)


def test_igamma_edges():
    a = doubles(0.5, 1.0, 2.0, 3.0).requires_grad_()
    for x, slopes in ((0.0, [math.inf, 1, 0, 0]), (math.inf, [0, 0, 0, 0])):
        t = torch.full((4,), x, dtype=torch.float64, requires_grad=True)
        by_a, by_x = grad(torch.igamma(a, t).sum(), (a, t))
        assert by_a.tolist() == [0, 0, 0, 0] and by_x.tolist() == slopes
    second = derivatives(lambda t: torch.igamma(doubles(1.0)[0], t), 0.0, 3)
    assert second == [0, 1, -1, 1]  # P(1, x) = 1 - exp(-x)


def test_zeta_mixed_derivatives():
    hessian = jacrev(jacrev(lambda v: special.zeta(v[0], v[1])))(doubles(2.5, 0.7))
    with mp.workdps(40):
        s, q = mp.mpf(2.5), mp.mpf(0.7)
        cross = -mp.zeta(s + 1, q) - s * mp.zeta(s + 1, q, 1)
        expected = [[mp.zeta(s, q, 2), cross], [cross, s * (s + 1) * mp.zeta(s + 2, q)]]
    np.testing.assert_allclose(hessian.numpy(), np.array(expected, float), rtol=1e-12)
    assert special.zeta(torch.tensor([2.0]), 1).item() == pytest.approx(math.pi**2 / 6)


POLYNOMIALS = [n for n in dir(special) if "_polynomial_" in n]


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_have_slopes_at_the_ends(name):
    """No formula divides by 1 - x^2."""
    polynomial = getattr(special, name)
    x = doubles(-1.0, 0.0, 1.0).requires_grad_()
    (slope,) = grad(polynomial(x, 5).sum(), x, create_graph=True)
    (bend,) = grad(slope.sum(), x)
    powers = np.polynomial.Polynomial.fit(
        np.linspace(-1, 1, 41),
        polynomial(torch.linspace(-1, 1, 41, dtype=torch.float64), 5).numpy(),
        5,
        domain=[-1, 1],
    )
    points = np.array([-1.0, 0.0, 1.0])
    np.testing.assert_allclose(
        slope.detach().numpy(), powers.deriv(1)(points), rtol=1e-8, atol=1e-7
    )
    np.testing.assert_allclose(bend.numpy(), powers.deriv(2)(points), rtol=1e-8, atol=1e-6)


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_refuse_the_degree(name):
    polynomial = getattr(special, name)
    x, n = doubles(0.3).requires_grad_(), doubles(3.0).requires_grad_()
    y = polynomial(x, n)
    assert grad(y, x, torch.ones_like(y), retain_graph=True)[0].numel() == 1
    with pytest.raises(errors.DerivativeNotWritten, match="whole number"):
        grad(y, n, torch.ones_like(y))
    with pytest.raises(errors.DerivativeNotWritten, match="whole number"):
        grad(polynomial(0.3, n).sum(), n)
    with pytest.raises(errors.DerivativeNotWritten, match="whole number"):
        jvp(lambda d: polynomial(x.detach(), d), (n.detach(),), (torch.ones_like(n),))
    assert polynomial(x, -1).item() == 0 and polynomial(x, 0).item() == 1
    assert polynomial(doubles(0.3), doubles(2.7)).item() == polynomial(doubles(0.3), 2).item()
    assert torch.isnan(polynomial(doubles(math.nan), 2)).item()


def test_poles():
    zero = doubles(0.0)
    assert special.bessel_y0(zero).item() == special.bessel_y1(zero).item() == -math.inf
    assert derivatives(special.bessel_y0, 0.0, 1)[1] == math.inf
    for name in (
        "modified_bessel_k0",
        "modified_bessel_k1",
        "scaled_modified_bessel_k0",
        "scaled_modified_bessel_k1",
    ):
        assert derivatives(getattr(special, name), 0.0, 2) == [math.inf, -math.inf, math.inf]
    assert derivatives(special.ndtri, 0.0, 1) == [-math.inf, math.inf]
    assert derivatives(special.entr, 0.0, 1) == [0, math.inf]
    assert torch.isnan(special.zeta(doubles(0.5), doubles(1.0))).item()
    assert special.zeta(doubles(1.0), doubles(1.0)).item() == math.inf


def test_integers_and_half():
    for name in ("i0", "bessel_j1", "sinc", "ndtr", "erfcx"):
        function = getattr(special, name)
        assert function(torch.tensor([1, 2])).dtype is torch.float32
        half = function(torch.tensor([0.5], dtype=torch.bfloat16))
        assert half.dtype is torch.bfloat16
        assert half.item() == pytest.approx(function(doubles(0.5)).item(), rel=1e-2)
        if name != "sinc":  # which takes complex numbers
            with pytest.raises(NotImplementedError):
                function(torch.tensor([1j]))


def test_xlog1py_where_it_is_not_used():
    x, y = doubles(0.0, 0.0, 2.0).requires_grad_(), doubles(-1.0, -3.0, 1.0).requires_grad_()
    z = special.xlog1py(x, y)
    assert z.tolist() == pytest.approx([0, 0, 2 * math.log(2)])
    assert grad(z.sum(), x)[0].tolist() == pytest.approx([0, 0, math.log(2)])
    assert special.xlog1py(x.detach(), -1).tolist() == [0, 0, -math.inf]
    assert grad(special.xlog1py(x, -1).sum(), x)[0].tolist() == [0, 0, -math.inf]


# ---------------------------------------------------------------------------------------------
# Scans


def test_logcumsumexp_does_not_overflow():
    x = doubles(1000.0, 1001.0, -1000.0, 1002.0).requires_grad_()
    y = torch.logcumsumexp(x, 0)
    with mp.workdps(30):
        expected = [mp.log(sum(mp.exp(v) for v in x.tolist()[: k + 1])) for k in range(4)]
    assert y.tolist() == pytest.approx([float(v) for v in expected], rel=1e-15)
    (g,) = grad(y.sum(), x, create_graph=True)
    assert g.sum().item() == pytest.approx(4) and torch.isfinite(g).all().item()
    assert torch.isfinite(grad(g[0], x)[0]).all().item()


def test_logcumsumexp_with_infinities():
    x = doubles(-math.inf, -math.inf, 0.0, 1.0).requires_grad_()
    y = torch.logcumsumexp(x, 0)
    assert y.tolist()[:3] == [-math.inf, -math.inf, 0]
    (g,) = grad(y[2:].sum(), x)
    assert g.tolist() == pytest.approx([0, 0, 1 + 1 / (1 + math.e), math.e / (1 + math.e)])
    with pytest.raises(NotImplementedError):
        torch.logcumsumexp(torch.tensor([1, 2]), 0)


def test_cummax_ties_and_nan():
    nan = math.nan
    values, indices = torch.cummax(doubles(1.0, 3.0, 3.0, nan, 2.0, nan, 5.0), 0)
    assert values.tolist()[:3] == [1, 3, 3] and all(math.isnan(v) for v in values.tolist()[3:])
    assert indices.tolist() == [0, 1, 2, 3, 3, 5, 5]
    values, indices = torch.cummin(doubles(1.0, 3.0, 1.0, -1.0, -1.0), 0)
    assert values.tolist() == [1, 1, 1, -1, -1] and indices.tolist() == [0, 0, 2, 3, 4]
    x = doubles(1.0, 3.0, 2.0, 3.0).requires_grad_()
    result = torch.cummax(x, 0)
    assert result._fields == ("values", "indices")
    assert grad(result.values.sum(), x)[0].tolist() == [1, 2, 0, 1]
    assert torch.cummax(torch.tensor(3), 0).values.item() == 3
    with pytest.raises(IndexError):
        torch.cummax(x, 1)


# ---------------------------------------------------------------------------------------------
# Parts of numbers


def test_frexp_and_ldexp():
    x = doubles(0.3, -5.0, 0.0, math.inf, 2.0**-1060).requires_grad_()
    mantissa, exponent = torch.frexp(x)
    assert exponent.dtype is torch.int32
    assert torch.ldexp(mantissa, exponent).tolist() == x.tolist()
    assert grad(mantissa[:2].sum(), x)[0].tolist()[:2] == [2.0, 0.125]
    (tiny,) = grad(torch.ldexp(x, torch.full((5,), -1000)).sum(), x)
    assert tiny[0].item() == 2.0**-1000
    assert torch.ldexp(doubles(2.0**-1070), torch.tensor([1080])).item() == 1024  # 2^1080 is inf
    assert torch.ldexp(doubles(1.0), doubles(0.5)).item() == pytest.approx(math.sqrt(2))
    assert torch.ldexp(doubles(1.0), doubles(math.inf)).item() == math.inf
    with pytest.raises(RuntimeError):
        torch.frexp(torch.tensor([1]))


def test_nextafter_in_half_precision():
    one, two = (torch.tensor([v], dtype=torch.float16) for v in (1.0, 2.0))
    assert torch.nextafter(one, two).item() == 1 + 2.0**-10
    bone, btwo = (torch.tensor([v], dtype=torch.bfloat16) for v in (1.0, 2.0))
    assert torch.nextafter(bone, btwo).item() == 1 + 2.0**-7
    x, y = doubles(1.0, 2.0).requires_grad_(), doubles(2.0, 2.0).requires_grad_()
    g, h = grad(torch.nextafter(x, y).sum(), (x, y))
    assert g.tolist() == [1, 0] and h.tolist() == [0, 0]


def test_integer_divisors():
    assert torch.gcd(torch.tensor([12, -8, 0]), torch.tensor([8, 0, 0])).tolist() == [4, 8, 0]
    assert torch.lcm(torch.tensor([4, -6, 0]), torch.tensor([6, 4, 0])).tolist() == [12, 12, 0]
    for function in (torch.gcd, torch.lcm):
        with pytest.raises(NotImplementedError):
            function(torch.tensor([1.0]), torch.tensor([2.0]))


def test_polar_of_negative_and_zero_radius():
    """The direction is that of the angle, also where the radius has no sign or the wrong one."""
    radius, angle = doubles(0.0, -2.0).requires_grad_(), doubles(0.3, 0.4).requires_grad_()
    z = torch.polar(radius, angle)
    (g,) = grad(torch.view_as_real(z)[:, 0].sum(), radius)
    assert g.tolist() == pytest.approx([math.cos(0.3), math.cos(0.4)])
    with pytest.raises(RuntimeError):
        torch.polar(torch.tensor([1.0]), doubles(1.0))
    with pytest.raises(RuntimeError):
        torch.complex(torch.tensor([1]), torch.tensor([1]))


def test_float_power_is_double():
    assert torch.float_power(torch.tensor([2]), 3).dtype is torch.float64
    assert torch.float_power(2, torch.tensor([2])).dtype is torch.float64
    assert torch.float_power(torch.tensor([2.0]), 1j).dtype is torch.complex128


def test_sinc_is_zero_at_integers():
    assert torch.sinc(doubles(1.0, -3.0, 1e6)).tolist() == [0, 0, 0]


def test_compiled_function_that_gives_one_complex_number():
    """Its gradients are not those of the seed 1, scaled."""
    values = doubles(0.7, -0.4)

    def function(v):
        return torch.polar(v[0], v[1]) * 2

    found = []
    for f in (function, torch.compile(function)):
        x = values.clone().requires_grad_()
        found.append(grad(f(x), x, torch.tensor(0.3 - 1.1j, dtype=torch.complex128))[0].tolist())
    assert found[0] == pytest.approx(found[1])


def test_polygamma_as_method():
    x = doubles(1.5, 2.5).requires_grad_()
    y = x * 1
    assert x.polygamma(1).tolist() == special.polygamma(1, x).tolist()
    assert y.polygamma_(1) is y
    assert grad(y.sum(), x)[0].tolist() == pytest.approx(special.polygamma(2, x).tolist())


def test_large_degrees_of_polynomials_that_overflow_take_no_time():
    """Each degree is a step of a recurrence; behind the overflow all are NaN."""
    degrees = torch.tensor([1.0, 3.0, 1e8], dtype=torch.float64)
    assert torch.special.chebyshev_polynomial_t(2.0, degrees).tolist()[:2] == [2.0, 26.0]
    assert torch.special.chebyshev_polynomial_t(2.0, degrees)[2].isnan()
    assert torch.special.hermite_polynomial_h(0.5, degrees)[2].isnan()
