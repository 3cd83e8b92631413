"""Derivatives of numbers drawn from distributions, with respect to the parameters of these.

A drawn number moves with its parameters so that its quantile stays (implicit reparametrisation).
The entries are in `ops/random.py`, what they compute in `ops/gamma_kernels.py`.
"""

from __future__ import annotations

import math

from ..core.table import ops


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
