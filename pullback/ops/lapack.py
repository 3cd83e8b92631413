"""Checks and kernels that the entries of linear algebra share.

Kernels work on stacks of matrices.  NumPy's own functions take stacks; what only LAPACK has comes
from SciPy, one matrix at a time, and for arrays of another namespace (or many small matrices) from
a sweep that is written with array operations, or from the host.
Read next: `ops/linalg.py`, `ops/factor.py`, `ops/solve.py`, where these are used.
"""

from __future__ import annotations

import math

from numpy.linalg import LinAlgError as Failed  # CuPy raises it too

from ..array import dtype as dt
from ..array.dims import broadcast_shapes
from ..array.xp import linalg
from ..core.overload import overload
from ..errors import DTypeError, LinAlgError, RefusedValue, ShapeError, text
from ..table.packets import ops
from .kinds import PreciseMatrices

FLOATS = ("float32", "float64", "complex64", "complex128")

# ---------------------------------------------------------------------------------------------
# Checks; they take arrays or what shape rules see of them


def check_matrix(name, matrix, argument="A"):
    """At least two dims."""
    if matrix.ndim < 2:
        raise ShapeError(f"{name}: The input tensor {argument} must have at least 2 dimensions, "
                         f"got shape {list(matrix.shape)}")


def check_square(name, matrix, argument="A"):
    """A stack of square matrices."""
    check_matrix(name, matrix, argument)
    if matrix.shape[-1] != matrix.shape[-2]:
        raise ShapeError(f"{name}: {argument} must be batches of square matrices, but they are "
                         f"{matrix.shape[-2]} by {matrix.shape[-1]} matrices")


def check_float(name, *matrices):
    """Floating or complex numbers that LAPACK knows, all of one dtype."""
    for matrix in matrices:
        if dt.name_of(matrix.dtype) not in FLOATS:
            raise DTypeError(f"{name}: Expected a floating point or complex tensor as input. Got "
                             f"{matrix.dtype.name}")
        if dt.name_of(matrix.dtype) != dt.name_of(matrices[0].dtype):
            raise DTypeError(f"{name}: Expected tensors of one dtype, got "
                             f"{matrices[0].dtype.name} and {matrix.dtype.name}")


def check_system(name, matrix, right, left):
    """Shape of the solution of A X = B (or X A = B) with broadcast stacks."""
    check_square(name, matrix)
    check_matrix(name, right, "B")
    if matrix.shape[-1] != right.shape[-2 if left else -1]:
        raise ShapeError(f"{name}: Incompatible shapes of A and B for the equation "
                         f"{'AX = B' if left else 'XA = B'} ({matrix.shape[-2]}x{matrix.shape[-1]} "
                         f"and {right.shape[-2]}x{right.shape[-1]})")
    return broadcast_shapes(matrix.shape[:-2], right.shape[:-2]) + tuple(right.shape[-2:])


def failure(name, info, message):
    """Raise `message` for the first matrix of a stack whose `info` is not zero."""
    if not info.any():
        return
    first = next(i for i in positions(info.shape) if int(info[i]))
    where = f"(Batch element {first[0]}): " if first else ""
    raise LinAlgError(f"{name}: {where}{message.format(int(info[first]))}")


def converged(name, xp, function, *args, **kwargs):
    """The results of a function of `xp.linalg`, or our error where it fails."""
    try:
        return function(*args, **kwargs)
    except Failed:
        raise _not_converged(name, xp.isfinite(args[0]).all()) from None


def _not_converged(name, finite):
    reason = ("the input matrix is ill-conditioned or has too many repeated values" if finite
              else "the input matrix contained non-finite values")
    return LinAlgError(f"{name}: The algorithm failed to converge because {reason}.")


def singular(name, xp, matrix, **options):
    """What `xp.linalg.svd` gives; NaN for a matrix with infinite values, an error for NaN.

    LAPACK must not see either: with an infinite value it may not come to an end.
    """
    finite = xp.isfinite(matrix).all(axis=(-2, -1))
    if finite.all():
        return converged(name, xp, xp.linalg.svd, matrix, **options)
    if xp.isnan(matrix).any():
        raise _not_converged(name, False)
    return singular_or_nan(name, xp, matrix, **options)


def singular_or_nan(name, xp, matrix, **options):
    """What `xp.linalg.svd` gives, and NaN for a matrix with values that are not finite."""
    finite = xp.isfinite(matrix).all(axis=(-2, -1))
    safe = xp.where(finite[..., None, None], matrix, xp.zeros_like(matrix))
    out = converged(name, xp, xp.linalg.svd, safe, **options)

    def marked(part):
        where = finite.reshape(finite.shape + (1,) * (part.ndim - finite.ndim))
        return xp.where(where, part, xp.full_like(part, math.nan))

    return tuple(marked(part) for part in out) if isinstance(out, tuple) else marked(out)


# ---------------------------------------------------------------------------------------------
# Stacks


def positions(lead):
    """All index tuples of a shape."""
    if not lead:
        return [()]
    return [(i, *rest) for i in range(lead[0]) for rest in positions(lead[1:])]


def spread(xp, a, b):
    """Two stacks of matrices with their leading dims broadcast."""
    lead = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return (xp.broadcast_to(a, lead + a.shape[-2:]), xp.broadcast_to(b, lead + b.shape[-2:]), lead)


def is_numpy(xp) -> bool:
    """Does SciPy take the arrays of this namespace?"""
    return xp.__name__ == "numpy"


def lapack(xp, name, *arrays):
    """The LAPACK function `name` for the dtype of the arrays."""
    return linalg(xp).get_lapack_funcs(name, arrays)


def on_host(kernel):
    """A kernel of NumPy arrays that takes those of any namespace, by way of the host."""
    def run(xp, *args):
        if is_numpy(xp):
            return kernel(xp, *args)
        import numpy as host
        moved = (xp.asnumpy(a) if hasattr(a, "strides") else a for a in args)
        return tuple(xp.asarray(r) for r in kernel(host, *moved))
    return run


def adjoint(xp, matrix):
    """Conjugate transpose."""
    return xp.conj(xp.swapaxes(matrix, -2, -1))


def epsilon(xp, array) -> float:
    """Relative spacing of the array's numbers."""
    return float(xp.finfo(array.dtype).eps)


# ---------------------------------------------------------------------------------------------
# Triangular systems


def _solve_one(xp, factor, right, upper, left, unit, adjoint):
    """Solve one triangular system with BLAS, which does not mind a zero on the diagonal."""
    trsm = linalg(xp).get_blas_funcs("trsm", (factor, right))
    # row-major matrices are handed over as their transposes: X A = B is A^T X^T = B^T
    if adjoint:
        factor = xp.conj(factor)
    out = trsm(1.0, factor.T, right.T, side=int(left), lower=int(upper), trans_a=int(adjoint),
               diag=int(unit))
    return out.T


def _solve_sweep(xp, factor, right, upper, unit):
    """Substitution, one row at a time, for A X = B of whole stacks."""
    out, size = right.copy(), factor.shape[-1]
    for row in range(size - 1, -1, -1) if upper else range(size):
        known = slice(row + 1, None) if upper else slice(None, row)
        done = factor[..., row, known][..., None, :] @ out[..., known, :]
        value = out[..., row, :] - done[..., 0, :]
        out[..., row, :] = value if unit else value / factor[..., row, row][..., None]
    return out


def solve_triangular(xp, factor, right, upper, left=True, unit=False, adjoint=False):
    """Triangular systems of broadcast stacks; `adjoint` solves with the conjugate transpose."""
    factor, right, lead = spread(xp, factor, right)
    if right.size == 0:
        return xp.zeros(right.shape, dtype=right.dtype)
    if not is_numpy(xp) or math.prod(lead) > 4 * factor.shape[-1]:
        if adjoint:
            factor, upper = xp.conj(xp.swapaxes(factor, -2, -1)), not upper
        if left:
            return _solve_sweep(xp, factor, right, upper, unit)
        factor, right = xp.swapaxes(factor, -2, -1), xp.swapaxes(right, -2, -1)
        flipped = _solve_sweep(xp, factor, right, not upper, unit)
        return xp.ascontiguousarray(xp.swapaxes(flipped, -2, -1))
    out = xp.empty(right.shape, dtype=right.dtype)
    for index in positions(lead):
        out[index] = _solve_one(xp, factor[index], right[index], upper, left, unit, adjoint)
    return out


# ---------------------------------------------------------------------------------------------
# LU


def _pivot_size(xp, column):
    """What LAPACK compares to choose a pivot."""
    if column.dtype.kind == "c":
        return xp.abs(column.real) + xp.abs(column.imag)
    return xp.abs(column)


def _lu_sweep(xp, matrix, pivot):
    """LU factors of a whole stack, column by column."""
    lead, (rows, columns) = matrix.shape[:-2], matrix.shape[-2:]
    a = matrix.reshape((-1, rows, columns)).copy()
    steps, each = min(rows, columns), xp.arange(a.shape[0])
    pivots = xp.zeros((a.shape[0], steps), dtype=xp.int32)
    for j in range(steps):
        chosen = each * 0 + j
        if pivot:
            chosen = xp.argmax(_pivot_size(xp, a[:, j:, j]), axis=1) + j
            rest = a[each, chosen].copy()
            a[each, chosen] = a[:, j].copy()
            a[:, j] = rest
        pivots[:, j] = chosen + 1
        diagonal = a[:, j, j][:, None]
        if pivot:  # a pivot of zero has nothing but zeros below
            diagonal = xp.where(diagonal == 0, xp.ones_like(diagonal), diagonal)
        factor = a[:, j + 1:, j] / diagonal
        a[:, j + 1:, j] = factor
        a[:, j + 1:, j + 1:] -= factor[:, :, None] * a[:, j:j + 1, j + 1:]
    return a.reshape(matrix.shape), pivots.reshape((*lead, steps))


def _lu_loop(xp, matrix):
    """LU factors by LAPACK, one matrix after another."""
    lead, steps = matrix.shape[:-2], min(matrix.shape[-2:])
    factors = xp.empty(matrix.shape, dtype=matrix.dtype)
    pivots = xp.empty((*lead, steps), dtype=xp.int32)
    getrf = lapack(xp, "getrf", matrix)
    for index in positions(lead):
        factors[index], pivots[index], _ = getrf(matrix[index])
    return factors, pivots + 1


def factor_lu(xp, matrix, pivot=True):
    """Packed LU factors, pivots counted from 1, the position of the first zero pivot (or 0)."""
    lead, steps = matrix.shape[:-2], min(matrix.shape[-2:])
    if steps == 0:
        pivots = xp.zeros((*lead, 0), dtype=xp.int32)
        return matrix.copy(), pivots, xp.zeros(lead, dtype=xp.int32)
    few = math.prod(lead) <= 4 * steps
    # with infinite values LAPACK's factors may be any numbers; those of the sweep are inf or NaN
    if is_numpy(xp) and few and pivot and xp.isfinite(matrix).all():
        factors, pivots = _lu_loop(xp, matrix)
    else:
        factors, pivots = _lu_sweep(xp, matrix, pivot)
    zero = xp.diagonal(factors, axis1=-2, axis2=-1) == 0
    info = xp.where(zero.any(axis=-1), xp.argmax(zero, axis=-1) + 1, 0)
    return factors, pivots, xp.asarray(info).astype(xp.int32)


def permutation(xp, pivots, rows):
    """Row `i` of P^T A is row `permutation[i]` of A, where A = P L U."""
    lead, steps = pivots.shape[:-1], pivots.shape[-1]
    count = math.prod(lead)
    if count <= 4:
        orders = [_exchanged(each, rows) for each in pivots.reshape((count, steps)).tolist()]
        return xp.asarray(orders, dtype=xp.int64).reshape((*lead, rows))
    flat = pivots.reshape((count, steps)).astype(xp.int64) - 1
    each = xp.arange(count)
    order = xp.broadcast_to(xp.arange(rows), (count, rows)).copy()
    for j in range(steps):
        chosen = order[each, flat[:, j]].copy()
        order[each, flat[:, j]] = order[:, j].copy()
        order[:, j] = chosen
    return order.reshape((*lead, rows))


def _exchanged(pivots, rows):
    order = list(range(rows))
    for j, chosen in enumerate(pivots):
        order[j], order[chosen - 1] = order[chosen - 1], order[j]
    return order


def permutation_sign(xp, pivots):
    """Determinant of P: -1 for each exchange of rows."""
    exchanges = (pivots != xp.arange(1, pivots.shape[-1] + 1)).sum(axis=-1)
    return 1 - 2 * (exchanges % 2)


def solve_lu(xp, factors, pivots, right, left=True, adjoint=False):
    """Solve with A = P L U given by its packed factors (with A^H if `adjoint`)."""
    if not left:  # X A = B is A^H X^H = B^H
        right = xp.conj(xp.swapaxes(right, -2, -1))
        flipped = solve_lu(xp, factors, pivots, right, True, not adjoint)
        return xp.ascontiguousarray(xp.conj(xp.swapaxes(flipped, -2, -1)))
    order = permutation(xp, pivots, factors.shape[-1])
    if not adjoint:
        right = _rows(xp, right, order)
        half = solve_triangular(xp, factors, right, False, unit=True)
        return solve_triangular(xp, factors, half, True)
    half = solve_triangular(xp, factors, right, True, adjoint=True)
    half = solve_triangular(xp, factors, half, False, unit=True, adjoint=True)
    return _rows(xp, half, xp.argsort(order, axis=-1))


def _rows(xp, matrix, order):
    """Rows of a stack taken in the order that each matrix has of its own."""
    lead = broadcast_shapes(matrix.shape[:-2], order.shape[:-1])
    matrix = xp.broadcast_to(matrix, lead + matrix.shape[-2:])
    order = xp.broadcast_to(order, lead + order.shape[-1:])
    return xp.take_along_axis(matrix, order[..., None], axis=-2)


# ---------------------------------------------------------------------------------------------
# Symmetric indefinite factors, eigenvalues of general matrices, Householder vectors


def _kind(matrix, hermitian):
    return "he" if hermitian and matrix.dtype.kind == "c" else "sy"


@on_host
def factor_ldl(xp, matrix, hermitian):
    """Packed L D L^T (or L D L^H) factors of LAPACK's lower form, pivots, info."""
    lead, size = matrix.shape[:-2], matrix.shape[-1]
    factors, pivots = xp.zeros_like(matrix), xp.zeros((*lead, size), dtype=xp.int32)
    info = xp.zeros(lead, dtype=xp.int32)
    if matrix.size == 0:
        return factors, pivots, info
    kind = _kind(matrix, hermitian)
    length = int(lapack(xp, f"{kind}trf_lwork", matrix)(size, lower=1)[0].real)
    factorize = lapack(xp, f"{kind}trf", matrix)
    for index in positions(lead):
        packed, pivots[index], info[index] = factorize(matrix[index], lower=1, lwork=length)
        factors[index] = xp.tril(packed)
    return factors, pivots, info


def _check_exchanges(xp, pivots) -> None:
    """Refuse pivots that are none: LAPACK would exchange rows outside of the matrix.

    A row k is exchanged with row `pivots[k]`; two negative ones that are equal belong to a block
    of two rows, of which the second one is exchanged.
    """
    n = pivots.shape[-1]
    inside = (pivots != 0) & (abs(pivots) <= n)
    negative = pivots < 0
    paired = ~negative
    for k in range(n - 1):  # blocks do not overlap
        first = negative[..., k] & ~paired[..., k] & (pivots[..., k] == pivots[..., k + 1])
        paired[..., k] |= first
        paired[..., k + 1] |= first
    if not (inside & paired).all():
        raise RefusedValue(text(
            "torch.linalg.ldl_solve: these are not the pivots of a factorization",
            f"pivots: {pivots.tolist()} for matrices of {n} rows",
            "give LD and pivots as torch.linalg.ldl_factor returned them"))


@on_host
def solve_ldl(xp, factors, pivots, right, hermitian):
    """Solutions of symmetric (Hermitian) systems given by their packed factors."""
    factors, right, lead = spread(xp, factors, right)
    pivots = xp.broadcast_to(pivots, lead + pivots.shape[-1:])
    out = xp.zeros(right.shape, dtype=right.dtype)
    _check_exchanges(xp, pivots)
    if out.size:
        solve = lapack(xp, f"{_kind(factors, hermitian)}trs", factors, right)
        for index in positions(lead):
            out[index] = solve(factors[index], pivots[index], right[index], lower=1)[0]
    return (out,)


@on_host
def eigenvalues(xp, name, matrix):
    """Eigenvalues of general matrices, which not every namespace has."""
    return (_complex(xp, converged(name, xp, xp.linalg.eigvals, matrix)),)


@on_host
def eigenvectors(xp, name, matrix):
    """Eigenvalues and eigenvectors of general matrices."""
    return tuple(_complex(xp, part) for part in converged(name, xp, xp.linalg.eig, matrix))


def _complex(xp, array):
    """LAPACK's results are real if they can be; ours are always complex."""
    if array.dtype.kind == "c":
        return array
    return array.astype(xp.complex64 if array.dtype.itemsize == 4 else xp.complex128)


@on_host
def factor_qr(xp, matrix):
    """R and the Householder vectors below it, and their factors."""
    lead, (rows, columns) = matrix.shape[:-2], matrix.shape[-2:]
    packed = xp.zeros(matrix.shape, dtype=matrix.dtype)
    factors = xp.zeros((*lead, min(rows, columns)), dtype=matrix.dtype)
    if matrix.size == 0:
        return packed, factors
    factorize = lapack(xp, "geqrf", matrix)
    for index in positions(lead):
        packed[index], factors[index], _, _ = factorize(matrix[index])
    return packed, factors


# ---------------------------------------------------------------------------------------------
# Matrix exponential

# Degrees of Padé approximants, and the 1-norms up to which they are good to double precision
# (N. J. Higham, The scaling and squaring method for the matrix exponential revisited, 2005)
_PADE = {3: 1.495585217958292e-2, 5: 2.539398330063230e-1, 7: 9.504178996162932e-1,
         9: 2.097847961257068, 13: 5.371920351148152}


def _pade(xp, a, degree):
    """Numerator's even and odd part at the matrices `a`; the denominator is their difference."""
    f = math.factorial
    b = [f(2 * degree - k) * f(degree) / (f(2 * degree) * f(degree - k) * f(k))
         for k in range(degree + 1)]
    powers = [xp.eye(a.shape[-1], dtype=a.dtype), a @ a]  # even ones
    while len(powers) <= min(degree // 2, 3):
        powers.append(powers[-1] @ powers[1])
    if degree < 13:
        powers += [powers[2] @ powers[2]] if degree == 9 else []
        even = sum(b[2 * k] * power for k, power in enumerate(powers))
        odd = sum(b[2 * k + 1] * power for k, power in enumerate(powers))
        return even, a @ odd
    even, odd = ((powers[3] @ sum(b[6 + first + 2 * k] * powers[k] for k in (1, 2, 3))
                  + sum(b[first + 2 * k] * powers[k] for k in range(4))) for first in (0, 1))
    return even, a @ odd


def expm(xp, matrix):
    """Exponentials of a stack by scaling, a Padé approximant, and squaring."""
    if matrix.size == 0:
        return matrix.copy()
    norm = xp.abs(matrix).sum(axis=-2).max(axis=-1)
    norm = xp.where(xp.isfinite(norm), norm, 0)  # an exponential of NaN is NaN anyhow
    largest = float(norm.max())
    degree = next((d for d, bound in _PADE.items() if largest <= bound), 13)
    halvings = xp.ceil(xp.log2(xp.maximum(norm / _PADE[13], 1)))
    scaled = (matrix / (2.0 ** halvings)[..., None, None]).astype(matrix.dtype)
    even, odd = _pade(xp, scaled, degree)
    result = xp.linalg.solve(even - odd, even + odd)
    for step in range(int(halvings.max())):
        result = xp.where((step < halvings)[..., None, None], result @ result, result)
    return result.astype(matrix.dtype)


# ---------------------------------------------------------------------------------------------
# What entries have in common


def fronts(batched, *tensors):
    """Operands with their batch dims in front, lined up for broadcasting their leading dims."""
    rank = max(t.ndim - b for t, b in zip(tensors, batched, strict=True))
    return [_front(t, b, rank) for t, b in zip(tensors, batched, strict=True)]


def _front(tensor, batched, rank):
    if not batched or tensor.ndim > rank:
        return tensor
    return tensor.reshape(tensor.shape[:1] + (1,) * (rank + 1 - tensor.ndim) + tensor.shape[1:])


def factor_fronts(n, batched, factors, pivots, right):
    """Packed factors, their pivots and a right-hand side, as `fronts` gives them.

    Factors and pivots have the same leading dims, so that both are batched if one is.
    """
    if batched[0] != batched[1]:
        factors = factors if batched[0] else factors.expand((n, *factors.shape))
        pivots = pivots if batched[1] else pivots.expand((n, *pivots.shape))
    factors, right = fronts((batched[0] or batched[1], batched[2]), factors, right)
    return factors, pivots.reshape(factors.shape[:-1]), right


def named(operator, *values):
    """The named tuple that an operator with several results returns."""
    return overload(operator).result_class(*values)


def identity(matrix):
    """The identity of a square tensor's size, dtype and device."""
    return ops.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)


# Samples, and the projections of directions that checks perturb them with: derivatives are given
# for matrices of a structure, such as gradients of a Hermitian matrix or of a triangular factor.


def positive(matrix):
    """A well-conditioned positive-definite matrix made of any square one."""
    return matrix @ matrix.mH + 2 * matrix.shape[-1] * identity(matrix)


def regular(matrix):
    """A well-conditioned matrix with distinct singular values and eigenvalues."""
    steps = ops.arange(1, matrix.shape[-1] + 1, dtype=matrix.dtype, device=matrix.device)
    return matrix + ops.diag_embed(2 * steps)


def symmetric(matrix):
    """The Hermitian part of a matrix."""
    return (matrix + matrix.mH) / 2


def hermitian(array, args):
    """The Hermitian part of a direction."""
    return (array + array.swapaxes(-2, -1).conj()) / 2


def triangular(array, args):
    """The triangle of a direction that the operator reads; its last argument is `upper`."""
    rows, columns = array.shape[-2:]
    mask = [[(j >= i) if args[-1] else (j <= i) for j in range(columns)] for i in range(rows)]
    return array * mask


class SquareWithInfo(PreciseMatrices):
    """A matrix for each square one, and info: not zero where there is none."""

    diff_outputs = (True, False)

    @classmethod
    def shape(cls, matrix, *rest):
        check_square(cls.base_name.removesuffix("_ex").replace("_", ".", 1), matrix)
        return [tuple(matrix.shape), tuple(matrix.shape[:-2])]

    def dtype(matrix, *rest):
        return [matrix.dtype, dt.int32]
