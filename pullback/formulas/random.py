"""Derivatives of numbers drawn from distributions, with respect to the parameters of these.

A drawn number moves with its parameters so that its quantile stays (implicit reparametrisation).
The entries are in `ops/random.py`, what they compute in `ops/gamma_kernels.py`.
"""

from __future__ import annotations

import math

from ..ops.gamma_kernels import beta_bell
from ..table.packets import ops


def gamma_log_derivatives(alpha, x, order):
    """(d^order f / d alpha^order) / f of the gamma density f: a complete Bell polynomial.

    log f has the derivatives log x - psi(alpha), -psi'(alpha), -psi''(alpha) and so on.
    """
    terms = [x.log() - alpha.digamma()]
    terms += [-ops.polygamma(j, alpha) for j in range(1, order)]
    values = [1.0]
    for m in range(order):
        values.append(sum(math.comb(m, i) * values[m - i] * terms[i] for i in range(m + 1)))
    return values[-1]


def _dirichlet_slopes(alpha, point):
    """(dx_i / d alpha_i) / (1 - x_i), in the last dim."""
    return ops._dirichlet_grad(point, alpha, alpha.sum(-1, True).expand(alpha.shape))


def dirichlet_pullback(grad, alpha, point):
    """dx_j / d alpha_i = (delta_ij - x_j) s_i with the slopes s."""
    inner = (point * grad).sum(-1, True) if grad.ndim else point * grad
    return _dirichlet_slopes(alpha, point) * (grad - inner)


def dirichlet_push(alpha, tangent, point):
    """The same the other way round: dx = s dalpha - x sum(s dalpha)."""
    moved = _dirichlet_slopes(alpha, point) * tangent
    return moved - point * (moved.sum(-1, True) if moved.ndim else moved)


def beta_derivatives(x, a, b, i, j):
    """(d^(i+j) f / da^i db^j) / f of the beta density f."""
    return beta_bell(x.log(), (-x).log1p(), a, b, i, j, ops.polygamma)


def dirichlet_slope_pullback(grad, x, a, total, slope):
    """Of D(x, a, total) = -R / (1 - x), R = (dF / da) / f of a beta distribution, b = total - a.

    dR/dx = (log f)_a - R (log f)_x, and dR/da = F_aa / f - R (log f)_a, alike for b.
    """
    b = total - a
    by_a, by_b = beta_derivatives(x, a, b, 1, 0), beta_derivatives(x, a, b, 0, 1)
    rest = 1 - x
    along_x = (slope - by_a) / rest - slope * ((a - 1) / x - (b - 1) / rest)
    along_a = -ops._beta_ratio(x, a, b, 2, 0) / rest - slope * by_a
    along_b = -ops._beta_ratio(x, a, b, 1, 1) / rest - slope * by_b
    return grad * along_x, grad * (along_a - along_b), grad * along_b
