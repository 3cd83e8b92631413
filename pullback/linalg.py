"""`pullback.linalg`: the operators of the table whose names begin with `linalg_`.

What the schema language cannot say, or what draws random numbers, stands here as a function.
"""

from __future__ import annotations

import sys

from .core.handle import Tensor, is_composed
from .errors import ArgumentError, BadValue, LinAlgError, ShapeError  # noqa: F401  LinAlgError is offered
from .facade import Shelf
from .table.packets import ops
from .table.prefixed import module_of
from .tensor.overridable import asks_in as _asks_in
from .tensor.overridable import taken_over as _taken_over

_asks = _asks_in(globals())

def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None):
    """The largest `q` singular values of A - M with their vectors U and V, by random projection.

    Good where the others are small; `niter` steps of subspace iteration make it better
    (N. Halko, P. G. Martinsson, J. A. Tropp, Finding structure with randomness, 2009).
    """
    if _asks and (taken := _taken_over(svd_lowrank, locals())):
        return taken[0]
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    matrix = A if M is None else A - M.expand(A.shape)
    rows, columns = matrix.shape[-2:]
    turned = rows < columns  # the random projection is of the shorter side
    matrix = matrix.mH if turned else matrix
    basis = _span(matrix, q, niter)
    u, s, vh = ops.linalg_svd(basis.mH @ matrix, full_matrices=False)
    u, v = basis @ u, vh.mH
    return (v, s, u) if turned else (u, s, v)


def _span(matrix: Tensor, q: int, niter: int) -> Tensor:
    """Orthonormal vectors that nearly span the columns of a matrix."""
    start = ops.randn((matrix.shape[-1], q), dtype=matrix.dtype, device=matrix.device)
    basis = ops.linalg_qr(matrix @ start)[0]
    for _ in range(niter):
        basis = ops.linalg_qr(matrix.mH @ basis)[0]
        basis = ops.linalg_qr(matrix @ basis)[0]
    return basis


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2):
    """Principal components of the rows of A: `svd_lowrank` of A less the mean of its rows."""
    if _asks and (taken := _taken_over(pca_lowrank, locals())):
        return taken[0]
    rows, columns = A.shape[-2:]
    q = min(6, rows, columns) if q is None else q
    if not 0 <= q <= min(rows, columns):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than "
                         f"min(m, n)={min(rows, columns)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if A.dtype.category < 2:
        raise ValueError(f"input must be of floating point or complex type, but got {A.dtype}")
    return svd_lowrank(A - A.mean(-2, True) if center else A, q, niter)


def lobpcg(A: Tensor, k: int | None = None, B: Tensor | None = None, X: Tensor | None = None,
           n: int | None = None, iK: Tensor | None = None, niter: int | None = None,
           tol: float | None = None, largest: bool | None = None, method: str | None = None,
           tracker=None, ortho_iparams=None, ortho_fparams=None, ortho_bparams=None):
    """The `k` largest (or smallest) eigenvalues of a symmetric matrix with their vectors; with B
    those of A x = λ B x, where x.T B x = 1.

    Found from the whole decomposition, not by iteration: exact, differentiable, and what would
    steer or watch an iteration has nothing to do.  Of a sparse matrix, whose gradient lies on its
    entries, they are found by SciPy.
    """
    if _asks and (taken := _taken_over(lobpcg, locals())):
        return taken[0]
    rows = A.shape[-1]
    k = k if k is not None else X.shape[-1] if X is not None else 1
    if A.ndim < 2 or A.shape[-2] != rows:
        raise ShapeError(f"lobpcg: A must be square, got {list(A.shape)}")
    if k < 1:
        raise BadValue(f"lobpcg: k must be positive, got {k}")
    if rows < 3 * k:
        raise BadValue(f"LOBPCG algorithm is not applicable when the number of A rows (={rows}) is "
                       f"smaller than 3 x the number of requested eigenpairs (={k})")
    if tracker is not None:
        raise ArgumentError("lobpcg: there are no iterations here for a tracker to see")
    if is_composed(A):
        from .sparse.solve import eigenpairs  # loaded for a program that has sparse tensors

        return eigenpairs(A, B, k, largest is None or largest)
    if B is not None and is_composed(B):
        B = B.to_dense()
    lower = None if B is None else ops.linalg_cholesky(B)
    matrix = A
    if lower is not None:  # C = L⁻¹ A L⁻ᵀ has the same eigenvalues
        half = ops.linalg_solve_triangular(lower, A, upper=False)
        matrix = ops.linalg_solve_triangular(lower, half.mT, upper=False).mT
    values, vectors = ops.linalg_eigh((matrix + matrix.mH) / 2)  # of all its entries
    if largest is None or largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    values, vectors = values[..., :k], vectors[..., :k]
    if lower is not None:
        vectors = ops.linalg_solve_triangular(lower.mT, vectors, upper=True)
    return values, vectors


__getattr__, __dir__ = module_of("linalg", globals(),
                                 ("LinAlgError", "lobpcg", "pca_lowrank", "svd_lowrank"))
sys.modules[__name__].__class__ = Shelf


