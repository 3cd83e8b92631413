"""Iterations that solve systems: conjugate gradients, their stabilized form, minimal residuals.

A solver gets two linear functions, one that multiplies by the matrix and one by about its inverse.
It is a `while_loop`, so it runs on values, in captures and, under `vmap`, until the last example
has come to its end.  `linalg.py` gives it its derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..array import dtype as dt
from ..control.whiles import while_loop
from ..core.handle import Tensor
from ..table.packets import ops


class Settings(NamedTuple):
    """Where an iteration ends."""

    rtol: float
    atol: float
    maxiter: int
    restart: int


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a.conj() * b).sum()


def _length(v: Tensor) -> Tensor:
    return ops.linalg_vector_norm(v)


def _begun(a: Callable, b: Tensor, x0: Tensor, s: Settings) -> tuple[Tensor, Tensor, Tensor]:
    """(x, b - A x, the length of that at which x will do); the solution for b = 0 is there."""
    size = _length(b)
    x = ops.where(size == 0, 0, x0)
    return x, b - a(x), (size * s.rtol).clamp(min=s.atol)


def _number(like: Tensor, value: int = 0) -> Tensor:
    return ops.full((), value, dtype=dt.int64, device=like.device)


def cg(a: Callable, m: Callable, b: Tensor, x0: Tensor, s: Settings) -> tuple[Tensor, Tensor]:
    """Conjugate gradients (M. R. Hestenes, E. Stiefel, 1952)."""
    x, r, enough = _begun(a, b, x0, s)
    z = m(r)

    def goes_on(x, r, p, weight, count):
        return (_length(r) > enough) & (count < s.maxiter)

    def step(x, r, p, weight, count):
        q = a(p)
        far = weight / _dot(p, q)
        x, r = x + far * p, r - far * q
        z = m(r)
        after = _dot(r, z)
        return x, r, z + (after / weight) * p, after, count + 1

    x, r, _, _, count = while_loop(goes_on, step, (x, r, z, _dot(r, z), _number(b)))
    return x, ops.where(_length(r) <= enough, 0, count.clamp(min=1))


RHO, OMEGA = -10, -11  # what broke down, as SciPy says it


def bicgstab(a: Callable, m: Callable, b: Tensor, x0: Tensor,
             s: Settings) -> tuple[Tensor, Tensor]:
    """Stabilized biconjugate gradients (H. A. van der Vorst, 1992)."""
    x, r, enough = _begun(a, b, x0, s)
    shadow = r

    def goes_on(x, r, p, v, rho, count, broken):
        return (_length(r) > enough) & (count < s.maxiter) & (broken == 0)

    def step(x, r, p, v, rho, count, broken):
        product = _dot(shadow, v)
        far = ops.where(product == 0, 0, rho / product)
        half = r - far * v
        improved = m(half)
        t = a(improved)
        length = _dot(t, t)
        omega = ops.where(length == 0, 0, _dot(t, half) / length)
        x, r = x + far * m(p) + omega * improved, half - omega * t
        after = _dot(shadow, r)
        p = r + (after / rho) * (far / omega) * (p - omega * v)
        broken = ops.where(after == 0, RHO, ops.where(omega == 0, OMEGA, 0)).to(dt.int64)
        return x, r, p, a(m(p)), after, count + 1, broken

    x, r, _, _, _, count, broken = while_loop(
        goes_on, step, (x, r, r, a(m(r)), _dot(shadow, r), _number(b), _number(b)))
    why = ops.where(broken == 0, count.clamp(min=1), broken)
    return x, ops.where(_length(r) <= enough, 0, why)


def gmres(a: Callable, m: Callable, b: Tensor, x0: Tensor, s: Settings) -> tuple[Tensor, Tensor]:
    """Generalized minimal residuals (Y. Saad, M. H. Schultz, 1986).

    The inverse is on the right side, so the residual that is made small is the one of x.
    """
    x, r, enough = _begun(a, b, x0, s)
    steps = max(min(s.restart, b.shape[0]), 1)

    def goes_on(x, r, count):
        return (_length(r) > enough) & (count < s.maxiter)

    def cycle(x, r, count):
        basis, weights = _krylov(lambda v: a(m(v)), r, enough, steps)
        x = x + m(weights @ basis[:steps])
        return x, b - a(x), count + 1

    x, r, count = while_loop(goes_on, cycle, (x, r, _number(b)))
    return x, ops.where(_length(r) <= enough, 0, count.clamp(min=1))


def _krylov(a: Callable, r: Tensor, enough: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """(Orthonormal vectors that span r, A r, A A r, ..., the weights of their smallest residual).

    Rows and columns that are not there yet are zeros.
    """
    line = ops.arange(steps + 1, device=r.device)
    across = line[:steps]
    size = _length(r)
    first = line == 0
    right = ops.where(first, size, 0).to(r.dtype)
    basis = ops.where(first.unsqueeze(1), r / size, 0)
    products = ops.zeros((steps + 1, steps), dtype=r.dtype, device=r.device)

    def smallest(products, count):
        filled = ops.where(across < count, products,
                           (line.unsqueeze(1) == across + 1).to(r.dtype))
        q, triangle = ops.linalg_qr(filled)
        found = ops.linalg_solve_triangular(triangle, (q.mH @ right).unsqueeze(1), upper=True)
        return ops.where(found.isfinite(), found, 0).squeeze(1)  # what a singular matrix loses

    def goes_on(basis, products, count, rest):
        return (rest > enough) & (count < steps)

    def step(basis, products, count, rest):
        w = a(basis.index_select(0, count.reshape(1)).squeeze(0))
        before = _length(w)
        known = basis.conj() @ w
        w = w - known @ basis
        more = basis.conj() @ w  # once is not enough for all digits
        w = w - more @ basis
        left = _length(w)
        there = left > before * dt.finfo(r.dtype).eps
        new = ops.where(there, w / left, 0)
        column = known + more + ops.where((line == count + 1) & there, left, 0)
        products = ops.where(across == count, column.unsqueeze(1), products)
        basis = ops.where((line == count + 1).unsqueeze(1), new, basis)
        weights = smallest(products, count + 1)
        rest = ops.where(there, _length(right - products @ weights), 0)
        return basis, products, count + 1, rest

    basis, products, count, _ = while_loop(goes_on, step, (basis, products, _number(r), size))
    return basis, smallest(products, count)
