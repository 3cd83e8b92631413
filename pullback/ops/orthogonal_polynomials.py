"""Orthogonal polynomials: Chebyshev, Hermite, Laguerre, Legendre.

PyTorch gives them no derivative; here they have derivatives of all orders in x.  Each has three
overloads: of tensors, at a number x, and of one degree n.
"""

from __future__ import annotations

from ..array import dtype as dt
from . import special_kernels as kernels
from .pointwise import DerivativeOfOrder, refuse
from .special import Special, first_with


class orthogonal_polynomial(DerivativeOfOrder):
    """Derivative of some order by x of the orthogonal polynomial of a kind and degree n."""

    schema = "_orthogonal_polynomial(Tensor x, Tensor n, str kind, int order) -> Tensor"
    scalars = ("n",)
    grad = {
        "x": "grad * _orthogonal_polynomial(x, n, kind, order + 1)",
        "n": "not_implemented('n', 'the degree of a polynomial is a whole number')",
    }

    def run(xp, x, n, kind, order):
        return kernels.orthogonal_polynomial(xp, x, n, kind, order)

    def samples(s):
        for kind in (*kernels.POLYNOMIALS, "shifted_chebyshev_t"):
            yield s(s.real(3, 5), s.tensor([0, 1, 2, 3, 6], dt.int64), kind, 1)
        yield s(s.values([-1.0, 0.0, 1.0]), 5, "chebyshev_u", 2)
        yield s(s.real(), 4, "legendre_p", 0)
        yield s(s.real(0, 3), s.int(3), "chebyshev_t", 1)


class Polynomial(Special):
    """An orthogonal polynomial; its kind is read off its name."""

    promotes = ("x", "n")
    ordered = False
    kept = "function"

    @classmethod
    def run(cls, xp, x, n):
        family = cls.base_name.removeprefix("special_")
        refuse(f"{family}_cpu", xp.asarray(x), "c")
        refuse(f"{family}_cpu", xp.asarray(n), "c")
        kind = family.replace("polynomial_", "")
        return kernels.orthogonal_polynomial(xp, xp.asarray(x), xp.asarray(n), kind, 0)

    def samples(s):
        yield s(s.real(3, 5), s.tensor([0, 1, 2, 3, 6], dt.int64))
        yield s(s.real(5, 3).T, s.tensor([[4], [0], [-1]], dt.int64))
        yield s(s.values([-1.0, 0.0, 1.0]), s.tensor(5, dt.int64))
        yield s(s.real(), s.tensor(3, dt.int64))
        yield s(s.real(0, 3), s.int(3))


_NO_SLOPE = "not_implemented('n', 'the degree of a polynomial is a whole number')"


class PolynomialAtNumber(Polynomial):
    """An orthogonal polynomial at a number x; there is no derivative by the degree."""

    grad = {"n": _NO_SLOPE}

    def samples(s):
        yield s(0.3, s.tensor([[0, 1, 2], [3, 5, -1]], dt.int64))
        yield s(1.5, s.tensor(4, dt.int64))


class PolynomialOfDegree(Polynomial):
    """An orthogonal polynomial of one degree n."""

    samples = first_with(4)


class special_chebyshev_polynomial_t(Polynomial):
    """Chebyshev polynomials of the first kind."""

    schema = "special_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor"
    grad = {"x": "grad * _orthogonal_polynomial(x, n, 'chebyshev_t', 1)", "n": _NO_SLOPE}


class special_chebyshev_polynomial_t_x_scalar(PolynomialAtNumber):
    """Chebyshev polynomials of the first kind at a number."""

    schema = "special_chebyshev_polynomial_t.x_scalar(Scalar x, Tensor n) -> Tensor"


class special_chebyshev_polynomial_t_n_scalar(PolynomialOfDegree):
    """Chebyshev polynomials of the first kind of one degree."""

    schema = "special_chebyshev_polynomial_t.n_scalar(Tensor x, Scalar n) -> Tensor"
    grad = {"x": "grad * _orthogonal_polynomial(x, n, 'chebyshev_t', 1)"}


class special_chebyshev_polynomial_u(Polynomial):
    """Chebyshev polynomials of the second kind."""

    schema = "special_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor"
    grad = {"x": "grad * _orthogonal_polynomial(x, n, 'chebyshev_u', 1)", "n": _NO_SLOPE}


class special_chebyshev_polynomial_u_x_scalar(PolynomialAtNumber):
    """Chebyshev polynomials of the second kind at a number."""

    schema = "special_chebyshev_polynomial_u.x_scalar(Scalar x, Tensor n) -> Tensor"


class special_chebyshev_polynomial_u_n_scalar(PolynomialOfDegree):
    """Chebyshev polynomials of the second kind of one degree."""

    schema = "special_chebyshev_polynomial_u.n_scalar(Tensor x, Scalar n) -> Tensor"
    grad = {"x": "grad * _orthogonal_polynomial(x, n, 'chebyshev_u', 1)"}


class special_chebyshev_polynomial_v(Polynomial):
    """Chebyshev polynomials of the third kind."""

    schema = "special_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor"
    grad = {"x": "grad * _orthogonal_polynomial(x, n, 'chebyshev_v', 1)", "n": _NO_SLOPE}


class special_chebyshev_polynomial_v_x_scalar(PolynomialAtNumber):
    """Chebyshev polynomials of the third kind at a number."""

    schema = "special_chebyshev_polynomial_v.x_scalar(Scalar x, Tensor n) -> Tensor"


class special_chebyshev_polynomial_v_n_scalar(PolynomialOfDegree):
    """Chebyshev polynomials of the third kind of one degree."""

    schema = "special_chebyshev_polynomial_v.n_scalar(Tensor x, Scalar n) -> Tensor"
    grad = {"x": "grad * _orthogonal_polynomial(x, n, 'chebyshev_v', 1)"}


class special_chebyshev_polynomial_w(Polynomial):
    """Chebyshev polynomials of the fourth kind."""

    schema = "special_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor"
    grad = {"x": "grad * _orthogonal_polynomial(x, n, 'chebyshev_w', 1)", "n": _NO_SLOPE}


class special_chebyshev_polynomial_w_x_scalar(PolynomialAtNumber):
    """Chebyshev polynomials of the fourth kind at a number."""

    schema = "special_chebyshev_polynomial_w.x_scalar(Scalar x, Tensor n) -> Tensor"


class special_chebyshev_polynomial_w_n_scalar(PolynomialOfDegree):
    """Chebyshev polynomials of the fourth kind of one degree."""

    schema = "special_chebyshev_polynomial_w.n_scalar(Tensor x, Scalar n) -> Tensor"
    grad = {"x": "grad * _orthogonal_polynomial(x, n, 'chebyshev_w', 1)"}


class special_shifted_chebyshev_polynomial_t(Polynomial):
    """Chebyshev polynomials of the first kind, for [0, 1]."""

    schema = "special_shifted_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor"
    grad = {"x": "grad * _orthogonal_polynomial(x, n, 'shifted_chebyshev_t', 1)", "n": _NO_SLOPE}


class special_shifted_chebyshev_polynomial_t_x_scalar(PolynomialAtNumber):
    """Chebyshev polynomials of the first kind, for [0, 1] at a number."""

    schema = "special_shifted_chebyshev_polynomial_t.x_scalar(Scalar x, Tensor n) -> Tensor"


class special_shifted_chebyshev_polynomial_t_n_scalar(PolynomialOfDegree):
    """Chebyshev polynomials of the first kind, for [0, 1] of one degree."""

    schema = "special_shifted_chebyshev_polynomial_t.n_scalar(Tensor x, Scalar n) -> Tensor"
    grad = {"x": "grad * _orthogonal_polynomial(x, n, 'shifted_chebyshev_t', 1)"}


class special_shifted_chebyshev_polynomial_u(Polynomial):
    """Chebyshev polynomials of the second kind, for [0, 1]."""

    schema = "special_shifted_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor"
    grad = {"x": "grad * _orthogonal_polynomial(x, n, 'shifted_chebyshev_u', 1)", "n": _NO_SLOPE}


class special_shifted_chebyshev_polynomial_u_x_scalar(PolynomialAtNumber):
    """Chebyshev polynomials of the second kind, for [0, 1] at a number."""

    schema = "special_shifted_chebyshev_polynomial_u.x_scalar(Scalar x, Tensor n) -> Tensor"


class special_shifted_chebyshev_polynomial_u_n_scalar(PolynomialOfDegree):
    """Chebyshev polynomials of the second kind, for [0, 1] of one degree."""

    schema = "special_shifted_chebyshev_polynomial_u.n_scalar(Tensor x, Scalar n) -> Tensor"
    grad = {"x": "grad * _orthogonal_polynomial(x, n, 'shifted_chebyshev_u', 1)"}


class special_shifted_chebyshev_polynomial_v(Polynomial):
    """Chebyshev polynomials of the third kind, for [0, 1]."""

    schema = "special_shifted_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor"
    grad = {"x": "grad * _orthogonal_polynomial(x, n, 'shifted_chebyshev_v', 1)", "n": _NO_SLOPE}


class special_shifted_chebyshev_polynomial_v_x_scalar(PolynomialAtNumber):
    """Chebyshev polynomials of the third kind, for [0, 1] at a number."""

    schema = "special_shifted_chebyshev_polynomial_v.x_scalar(Scalar x, Tensor n) -> Tensor"


class special_shifted_chebyshev_polynomial_v_n_scalar(PolynomialOfDegree):
    """Chebyshev polynomials of the third kind, for [0, 1] of one degree."""

    schema = "special_shifted_chebyshev_polynomial_v.n_scalar(Tensor x, Scalar n) -> Tensor"
    grad = {"x": "grad * _orthogonal_polynomial(x, n, 'shifted_chebyshev_v', 1)"}


class special_shifted_chebyshev_polynomial_w(Polynomial):
    """Chebyshev polynomials of the fourth kind, for [0, 1]."""

    schema = "special_shifted_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor"
    grad = {"x": "grad * _orthogonal_polynomial(x, n, 'shifted_chebyshev_w', 1)", "n": _NO_SLOPE}


class special_shifted_chebyshev_polynomial_w_x_scalar(PolynomialAtNumber):
    """Chebyshev polynomials of the fourth kind, for [0, 1] at a number."""

    schema = "special_shifted_chebyshev_polynomial_w.x_scalar(Scalar x, Tensor n) -> Tensor"


class special_shifted_chebyshev_polynomial_w_n_scalar(PolynomialOfDegree):
    """Chebyshev polynomials of the fourth kind, for [0, 1] of one degree."""

    schema = "special_shifted_chebyshev_polynomial_w.n_scalar(Tensor x, Scalar n) -> Tensor"
    grad = {"x": "grad * _orthogonal_polynomial(x, n, 'shifted_chebyshev_w', 1)"}


class special_hermite_polynomial_h(Polynomial):
    """Hermite polynomials of the physicists."""

    schema = "special_hermite_polynomial_h(Tensor x, Tensor n) -> Tensor"
    grad = {"x": "grad * _orthogonal_polynomial(x, n, 'hermite_h', 1)", "n": _NO_SLOPE}


class special_hermite_polynomial_h_x_scalar(PolynomialAtNumber):
    """Hermite polynomials of the physicists at a number."""

    schema = "special_hermite_polynomial_h.x_scalar(Scalar x, Tensor n) -> Tensor"


class special_hermite_polynomial_h_n_scalar(PolynomialOfDegree):
    """Hermite polynomials of the physicists of one degree."""

    schema = "special_hermite_polynomial_h.n_scalar(Tensor x, Scalar n) -> Tensor"
    grad = {"x": "grad * _orthogonal_polynomial(x, n, 'hermite_h', 1)"}


class special_hermite_polynomial_he(Polynomial):
    """Hermite polynomials of probability theory."""

    schema = "special_hermite_polynomial_he(Tensor x, Tensor n) -> Tensor"
    grad = {"x": "grad * _orthogonal_polynomial(x, n, 'hermite_he', 1)", "n": _NO_SLOPE}


class special_hermite_polynomial_he_x_scalar(PolynomialAtNumber):
    """Hermite polynomials of probability theory at a number."""

    schema = "special_hermite_polynomial_he.x_scalar(Scalar x, Tensor n) -> Tensor"


class special_hermite_polynomial_he_n_scalar(PolynomialOfDegree):
    """Hermite polynomials of probability theory of one degree."""

    schema = "special_hermite_polynomial_he.n_scalar(Tensor x, Scalar n) -> Tensor"
    grad = {"x": "grad * _orthogonal_polynomial(x, n, 'hermite_he', 1)"}


class special_laguerre_polynomial_l(Polynomial):
    """Laguerre polynomials."""

    schema = "special_laguerre_polynomial_l(Tensor x, Tensor n) -> Tensor"
    grad = {"x": "grad * _orthogonal_polynomial(x, n, 'laguerre_l', 1)", "n": _NO_SLOPE}


class special_laguerre_polynomial_l_x_scalar(PolynomialAtNumber):
    """Laguerre polynomials at a number."""

    schema = "special_laguerre_polynomial_l.x_scalar(Scalar x, Tensor n) -> Tensor"


class special_laguerre_polynomial_l_n_scalar(PolynomialOfDegree):
    """Laguerre polynomials of one degree."""

    schema = "special_laguerre_polynomial_l.n_scalar(Tensor x, Scalar n) -> Tensor"
    grad = {"x": "grad * _orthogonal_polynomial(x, n, 'laguerre_l', 1)"}


class special_legendre_polynomial_p(Polynomial):
    """Legendre polynomials."""

    schema = "special_legendre_polynomial_p(Tensor x, Tensor n) -> Tensor"
    grad = {"x": "grad * _orthogonal_polynomial(x, n, 'legendre_p', 1)", "n": _NO_SLOPE}


class special_legendre_polynomial_p_x_scalar(PolynomialAtNumber):
    """Legendre polynomials at a number."""

    schema = "special_legendre_polynomial_p.x_scalar(Scalar x, Tensor n) -> Tensor"


class special_legendre_polynomial_p_n_scalar(PolynomialOfDegree):
    """Legendre polynomials of one degree."""

    schema = "special_legendre_polynomial_p.n_scalar(Tensor x, Scalar n) -> Tensor"
    grad = {"x": "grad * _orthogonal_polynomial(x, n, 'legendre_p', 1)"}
