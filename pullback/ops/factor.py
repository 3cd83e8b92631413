"""Factorizations: the table entries of LU, QR, LDL, singular values, eigenvalues.

Formulas are in `formulas/factor.py`, kernels that NumPy lacks in `lapack.py`.  Vectors of singular
and eigenvalue decompositions are free up to a sign or phase: checks look at `invariant` functions
of the results.  Read next: `solve.py`.
"""

from __future__ import annotations

from ..array import dtype as dt
from ..errors import DTypeError, LinAlgError, ShapeError
from ..table.packets import ops
from .kinds import (
    ComplexComposite,
    ComplexFree,
    Keeping,
    Matrices,
    MatricesComposite,
    MatrixKernel,
    PreciseMatrices,
    PreciseMatricesComposite,
    Synonym,
)
from .lapack import (
    check_float,
    check_matrix,
    check_square,
    check_system,
    converged,
    eigenvalues,
    eigenvectors,
    factor_fronts,
    factor_ldl,
    factor_lu,
    factor_qr,
    failure,
    hermitian,
    named,
    permutation,
    regular,
    singular,
    solve_ldl,
    symmetric,
)

# ---------------------------------------------------------------------------------------------
# LU


def _lu_shapes(shape):
    """Shapes of P, L, U."""
    lead, (rows, columns) = tuple(shape[:-2]), shape[-2:]
    size = min(rows, columns)
    return [(*lead, rows, rows), (*lead, rows, size), (*lead, size, columns)]


def _unpacked(xp, packed):
    """L and U of packed factors."""
    rows, columns = packed.shape[-2:]
    size = min(rows, columns)
    lower = xp.tril(packed[..., :size], -1) + xp.eye(rows, size, dtype=packed.dtype)
    return lower, xp.triu(packed[..., :size, :])


def _permutation_matrix(xp, pivots, rows, dtype):
    """P of A = P L U."""
    order = permutation(xp, pivots, rows)
    return (order[..., None, :] == xp.arange(rows)[:, None]).astype(dtype)


def _matrices(s):
    """Square, wide and tall matrices, stacks and empty ones."""
    for shape in ((3, 3), (2, 3, 3), (3, 5), (5, 3), (2, 2, 3), (2, 3, 2), (0, 3, 3), (3, 0)):
        yield s.real(*shape)
    yield s.real(3, 4).mT


class linalg_lu_factor_ex(Matrices):
    """Packed factors of A = P L U, pivots, and the position of the first zero pivot (or 0)."""

    schema = ("linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False)"
              " -> (Tensor LU, Tensor pivots, Tensor info)")
    grad = {"A": "lu_factor_grad(grad, LU, pivots, pivot)"}
    push = {"LU": "lu_factor_push(A_t, LU, pivots, pivot)"}
    diff_outputs = (True, False, False)

    def run(xp, A, pivot, check_errors):
        check_matrix("torch.linalg.lu_factor", A)
        check_float("torch.linalg.lu_factor", A)
        factors, pivots, info = factor_lu(xp, A, pivot)
        if check_errors:
            failure("torch.linalg.lu_factor", info, "U[{0},{0}] is zero and using it on lu_solve "
                    "would result in a division by zero.\n  Fix: if that is meant, call "
                    "linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)")
        return factors, pivots, info

    def shape(A, pivot, check_errors):
        check_matrix("torch.linalg.lu_factor", A)
        lead = tuple(A.shape[:-2])
        return [tuple(A.shape), (*lead, min(A.shape[-2:])), lead]

    def dtype(A, pivot, check_errors):
        return [A.dtype, dt.int32, dt.int32]

    def samples(s):
        for a in _matrices(s):
            yield s(a)
        yield s(regular(s.real(3, 3)), pivot=False)
        yield s(s.real(3, 3), check_errors=True)


class linalg_lu_factor(MatricesComposite):
    """Packed factors of A = P L U and pivots; refuses singular matrices."""

    schema = "linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)"
    out = ("exact",)

    def compose(A, pivot):
        factors, pivots, _ = ops.linalg_lu_factor_ex(A, pivot=pivot, check_errors=True)
        return named("linalg_lu_factor", factors, pivots)

    samples = lambda s: [s(s.real(3, 3)), s(s.real(2, 4, 3))]


class _lu_with_info(ComplexFree):
    """Packed factors of A = P L U, pivots and info (older name)."""

    schema = ("_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True)"
              " -> (Tensor LU, Tensor pivots, Tensor info)")
    autocast = "float32"

    def compose(self, pivot, check_errors):
        return named("_lu_with_info", *ops.linalg_lu_factor_ex(
            self, pivot=pivot, check_errors=check_errors))

    samples = lambda s: [s(s.real(3, 3))]


class lu(ComplexComposite):
    """Packed factors of A = P L U, pivots, and info if that is asked for (older name)."""

    # the schema language has no way to say that the third result is optional
    schema = ("lu(Tensor A, bool pivot=True, bool get_infos=False)"
              " -> (Tensor LU, Tensor pivots, Tensor infos)")

    def compose(A, pivot, get_infos):
        out = ops.linalg_lu_factor_ex(A, pivot=pivot, check_errors=not get_infos)
        return tuple(out) if get_infos else tuple(out[:2])

    samples = lambda s: [s(s.real(3, 3)), s(s.real(2, 4, 3), get_infos=True)]


class linalg_lu(Matrices):
    """A = P L U with a permutation matrix P, L with ones on its diagonal, U upper triangular."""

    schema = "linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)"
    grad = {"A": "lu_grad(grad_L, grad_U, P if pivot else None, L, U)"}
    push = {"L, U": "lu_push(A_t, P if pivot else None, L, U)"}
    diff_outputs = (False, True, True)

    def run(xp, A, pivot):
        check_matrix("linalg.lu", A)
        check_float("linalg.lu", A)
        packed, pivots, _ = factor_lu(xp, A, pivot)
        if pivot:
            order = _permutation_matrix(xp, pivots, A.shape[-2], A.dtype)
        else:
            order = xp.zeros((0,), dtype=A.dtype)
        return order, *_unpacked(xp, packed)

    def shape(A, pivot):
        check_matrix("linalg.lu", A)
        shapes = _lu_shapes(A.shape)
        return shapes if pivot else [(0,), *shapes[1:]]

    def samples(s):
        for a in _matrices(s):
            yield s(a)
        yield s(regular(s.real(3, 3)), pivot=False)


def _check_pivots(packed, pivots):
    check_matrix("torch.lu_unpack", packed, "LU_data")
    if dt.name_of(pivots.dtype) != "int32":
        raise DTypeError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of "
                         f"torch.int32 dtype, got {pivots.dtype.name}")
    if tuple(pivots.shape) != (*packed.shape[:-2], min(packed.shape[-2:])):
        raise ShapeError("torch.lu_unpack: LU_data and LU_pivots do not belong together: shapes "
                         f"{list(packed.shape)} and {list(pivots.shape)}")


class lu_unpack(Keeping):
    """P, L and U of packed factors and pivots; what is not asked for is empty."""

    schema = ("lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True,"
              " bool unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)")
    kept = "matrix"
    grad = {"LU_data": "pack_lu(grad_L, grad_U, LU_data.shape) if unpack_data else None"}
    push = {"L, U": "unpack_lu(LU_data_t, unpack_data)"}
    nondiff = ("LU_pivots",)
    diff_outputs = (False, True, True)
    method = False
    complex = True

    def run(xp, LU_data, LU_pivots, unpack_data, unpack_pivots):
        check_float("torch.lu_unpack", LU_data)
        if unpack_pivots:
            _check_pivots(LU_data, LU_pivots)
        nothing = xp.zeros((0,), dtype=LU_data.dtype)
        lower, upper = _unpacked(xp, LU_data) if unpack_data else (nothing, nothing.copy())
        order = nothing.copy()
        if unpack_pivots:
            order = _permutation_matrix(xp, LU_pivots, LU_data.shape[-2], LU_data.dtype)
        return order, lower, upper

    def shape(LU_data, LU_pivots, unpack_data, unpack_pivots):
        if unpack_pivots:
            _check_pivots(LU_data, LU_pivots)
        order, lower, upper = _lu_shapes(LU_data.shape)
        data = [lower, upper] if unpack_data else [(0,), (0,)]
        return [order if unpack_pivots else (0,), *data]

    def batch(n, batched, LU_data, LU_pivots, unpack_data, unpack_pivots):
        packed = LU_data if batched[0] else LU_data.expand((n, *LU_data.shape))
        pivots = LU_pivots if batched[1] else LU_pivots.expand((n, *LU_pivots.shape))
        out = ops.lu_unpack(packed, pivots, unpack_data, unpack_pivots)
        return type(out)(*(o if o.ndim > 1 else o.new_zeros((n, 0)) for o in out))

    def samples(s):
        for shape in ((3, 3), (2, 3, 5), (5, 3), (0, 3, 3)):
            packed = s.real(*shape)
            _, pivots = ops.linalg_lu_factor(s.real(*shape))
            yield s(packed, pivots)
        yield s(packed, pivots, True, False)
        yield s(packed, pivots, False)


# ---------------------------------------------------------------------------------------------
# LDL

SINGULAR_D = ("The factorization could not be completed because the input is singular (D[{0},{0}] "
              "is zero).")


class linalg_ldl_factor_ex(Matrices):
    """Packed factors of a symmetric or Hermitian A = L D L^T (L D L^H), pivots, info."""

    # The factors switch between 1 by 1 and 2 by 2 blocks: nobody has written their derivative, and
    # asking for it is refused.
    schema = ("linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False)"
              " -> (Tensor LD, Tensor pivots, Tensor info)")

    def run(xp, self, hermitian, check_errors):
        check_square("torch.linalg.ldl_factor_ex", self)
        check_float("torch.linalg.ldl_factor_ex", self)
        factors, pivots, info = factor_ldl(xp, self, hermitian)
        if check_errors:
            failure("torch.linalg.ldl_factor_ex", info, SINGULAR_D)
        return factors, pivots, info

    def shape(self, hermitian, check_errors):
        check_square("torch.linalg.ldl_factor_ex", self)
        return [tuple(self.shape), tuple(self.shape[:-1]), tuple(self.shape[:-2])]

    def dtype(self, hermitian, check_errors):
        return [self.dtype, dt.int32, dt.int32]

    def samples(s):
        for shape in ((3, 3), (2, 4, 4), (0, 3, 3), (0, 0)):
            yield s(symmetric(s.real(*shape)), hermitian=True)
        yield s(symmetric(s.real(3, 3)).real.to(s.dtype))


class linalg_ldl_factor(Matrices):
    """Packed factors of a symmetric or Hermitian A = L D L^T (L D L^H) and pivots."""

    schema = ("linalg_ldl_factor(Tensor self, *, bool hermitian=False)"
              " -> (Tensor LD, Tensor pivots)")

    def run(xp, self, hermitian):
        check_square("torch.linalg.ldl_factor", self)
        check_float("torch.linalg.ldl_factor", self)
        factors, pivots, info = factor_ldl(xp, self, hermitian)
        failure("torch.linalg.ldl_factor", info, SINGULAR_D)
        return factors, pivots

    def shape(self, hermitian):
        check_square("torch.linalg.ldl_factor", self)
        return [tuple(self.shape), tuple(self.shape[:-1])]

    def dtype(self, hermitian):
        return [self.dtype, dt.int32]

    def samples(s):
        yield s(symmetric(s.real(3, 3)), hermitian=True)
        yield s(symmetric(s.real(2, 4, 4)).real.to(s.dtype))


class linalg_ldl_solve(Matrices):
    """Solutions of symmetric or Hermitian systems given by their packed LDL factors."""

    schema = ("linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False)"
              " -> Tensor")
    grad = {"B": ("linalg_ldl_solve(LD, pivots, grad, hermitian=True) if hermitian else"
                  " linalg_ldl_solve(LD, pivots, grad.conj()).conj()")}
    linear = ("B",)
    nondiff = ("pivots",)

    def run(xp, LD, pivots, B, hermitian):
        _check_ldl(LD, pivots, B)
        check_float("torch.linalg.ldl_solve", LD, B)
        return solve_ldl(xp, LD, pivots, B, hermitian)[0]

    def shape(LD, pivots, B, hermitian):
        return _check_ldl(LD, pivots, B)

    def batch(n, batched, LD, pivots, B, hermitian):
        factors, pivots, right = factor_fronts(n, batched, LD, pivots, B)
        return ops.linalg_ldl_solve(factors, pivots, right, hermitian=hermitian)

    def samples(s):
        for shape, right in (((3, 3), (3, 2)), ((2, 3, 3), (3, 2)), ((3, 3), (2, 3, 1))):
            factors, pivots = ops.linalg_ldl_factor(symmetric(s.real(*shape)), hermitian=True)
            yield s(factors, pivots, s.real(*right), hermitian=True)
        factors, pivots = ops.linalg_ldl_factor(symmetric(s.real(3, 3)))
        yield s(factors, pivots, s.real(3, 2))


def _check_ldl(factors, pivots, right):
    name = "torch.linalg.ldl_solve"
    if tuple(pivots.shape) != tuple(factors.shape[:-1]):
        raise ShapeError(f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got "
                         f"shapes {list(factors.shape)} and {list(pivots.shape)}")
    return check_system(name, factors, right, True)


# ---------------------------------------------------------------------------------------------
# QR


def _check_mode(mode):
    if mode not in ("reduced", "complete", "r"):
        raise ShapeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' "
                         "(default), 'r', or 'complete'")


class linalg_qr(PreciseMatrices):
    """A = Q R with orthonormal columns of Q and an upper triangular R."""

    schema = "linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)"
    grad = {"A": "qr_grad(grad_Q, grad_R, Q, R, mode, A.shape)"}
    push = {"Q, R": "qr_push(A_t, Q, R, mode)"}

    def run(xp, A, mode):
        check_matrix("linalg.qr", A)
        check_float("linalg.qr", A)
        _check_mode(mode)
        if mode == "r":
            return xp.zeros((0,), dtype=A.dtype), xp.linalg.qr(A, mode="r")
        return tuple(xp.linalg.qr(A, mode=mode))

    def shape(A, mode):
        check_matrix("linalg.qr", A)
        _check_mode(mode)
        lead, (rows, columns) = tuple(A.shape[:-2]), A.shape[-2:]
        size = rows if mode == "complete" else min(rows, columns)
        q = (0,) if mode == "r" else (*lead, rows, size)
        return [q, (*lead, size, columns)]

    def samples(s):
        def firm(a):  # R's diagonal has the signs of LAPACK's pivots: they must not be near zero
            return a + 3 * ops.eye(*a.shape[-2:], dtype=a.dtype, device=a.device)

        for a in _matrices(s):
            yield s(firm(a))
        yield s(regular(s.real(3, 3)), "complete")
        yield s(firm(s.real(2, 3, 5)), "complete")


class qr(ComplexComposite):
    """A = Q R with orthonormal columns of Q and an upper triangular R (older name)."""

    schema = "qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)"
    autocast = "float32"

    def compose(self, some):
        return named("qr", *ops.linalg_qr(self, "reduced" if some else "complete"))

    samples = lambda s: [s(s.real(4, 3)), s(s.real(3, 4), False)]


class geqrf(MatrixKernel):
    """R of A = Q R with the Householder vectors of Q below its diagonal, and their factors."""

    # `linalg_qr` has a derivative; that of the packed form is refused, as in PyTorch
    schema = "geqrf(Tensor self) -> (Tensor a, Tensor tau)"
    autocast = "float32"
    out = ("castable",)

    def run(xp, self):
        check_matrix("torch.geqrf", self)
        check_float("torch.geqrf", self)
        return factor_qr(xp, self)

    def shape(self):
        check_matrix("torch.geqrf", self)
        return [tuple(self.shape), (*self.shape[:-2], min(self.shape[-2:]))]

    def samples(s):
        for a in _matrices(s):
            yield s(a)


def _reflect(reflectors, tau, other, adjoint=False):
    """H_1 H_2 ... H_k X (or its adjoint) for H_i = 1 - tau_i v_i v_i^H.

    The product is 1 - V T V^H with an upper triangular T = (1 + D N)^-1 D, where D = diag(tau) and
    N is the part of V^H V above the diagonal.
    """
    count = tau.shape[-1]
    vectors = reflectors[..., :count]
    vectors = vectors.tril(-1) + ops.eye(*vectors.shape[-2:], dtype=vectors.dtype,
                                         device=vectors.device)
    middle = tau[..., :, None] * (vectors.mH @ vectors).triu(1)
    inner = vectors.mH @ other
    if adjoint:
        inner = ops.linalg_solve_triangular(middle.mH, inner, upper=False, unitriangular=True)
        return other - vectors @ (tau.conj()[..., :, None] * inner)
    inner = tau[..., :, None] * inner
    return other - vectors @ ops.linalg_solve_triangular(middle, inner, upper=True,
                                                         unitriangular=True)


def _check_reflectors(name, reflectors, tau):
    check_matrix(name, reflectors, "input")
    if tau.shape[-1] > reflectors.shape[-1]:
        raise ShapeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    if tuple(tau.shape[:-1]) != tuple(reflectors.shape[:-2]):
        raise ShapeError(f"{name}: Expected batch dimensions of tau to be equal to those of input, "
                         f"got shapes {list(tau.shape)} and {list(reflectors.shape)}")
    check_float(name, reflectors, tau)


class linalg_householder_product(PreciseMatricesComposite):
    """The first columns of a product of Householder reflections."""

    schema = "linalg_householder_product(Tensor input, Tensor tau) -> Tensor"

    def compose(input, tau):
        name = "torch.linalg.householder_product"
        _check_reflectors(name, input, tau)
        rows, columns = input.shape[-2:]
        if rows < columns:
            raise ShapeError(f"{name}: input.shape[-2] must be greater than or equal to "
                             "input.shape[-1]")
        eye = ops.eye(rows, columns, dtype=input.dtype, device=input.device)
        return _reflect(input, tau, eye)

    def samples(s):
        for shape, count in (((4, 3), 3), ((2, 4, 3), 2), ((3, 3), 3), ((0, 3, 2), 2)):
            yield s(s.real(*shape), s.real(*shape[:-2], count))


class orgqr(Synonym):
    """The first columns of a product of Householder reflections (older name)."""

    schema = "orgqr(Tensor self, Tensor input2) -> Tensor"
    autocast = "float32"
    complex = True
    same_as = "linalg_householder_product"
    samples = lambda s: [s(s.real(4, 3), s.real(3))]


class ormqr(ComplexComposite):
    """A matrix multiplied from the left or right by a product of Householder reflections."""

    schema = ("ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True,"
              " bool transpose=False) -> Tensor")
    autocast = "float32"

    def compose(self, input2, input3, left, transpose):
        _check_reflectors("torch.ormqr", self, input2)
        check_matrix("torch.ormqr", input3, "other")
        check_float("torch.ormqr", self, input3)
        side = -2 if left else -1
        if input3.shape[side] != self.shape[-2]:
            raise ShapeError(f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2], "
                             f"got {input3.shape[side]} and {self.shape[-2]}")
        if tuple(input3.shape[:-2]) != tuple(self.shape[:-2]):
            raise ShapeError("torch.ormqr: Expected batch dimensions of other to be equal to those "
                             f"of input, got shapes {list(input3.shape)} and {list(self.shape)}")
        if left:
            return _reflect(self, input2, input3, transpose)
        return _reflect(self, input2, input3.mH, not transpose).mH.contiguous()

    def samples(s):
        for left in (True, False):
            for transpose in (False, True):
                other = (4, 2) if left else (2, 4)
                yield s(s.real(4, 3), s.real(3), s.real(*other), left, transpose)
        yield s(s.real(2, 4, 3), s.real(2, 2), s.real(2, 4, 1))


# ---------------------------------------------------------------------------------------------
# Singular values


def _check_driver(driver):
    if driver is not None:
        raise ShapeError("torch.linalg.svd: keyword argument `driver=` is only supported on CUDA "
                         "inputs with cuSOLVER backend.")


def _svd_invariant(U, S, Vh):
    """What no phase changes: projectors with different weights, and U V^H."""
    size = S.shape[-1]
    weights = ops.arange(1, size + 1, dtype=S.dtype, device=S.device).to(U.dtype)
    u, vh = U[..., :size], Vh[..., :size, :]
    weighted = u * weights
    return S, weighted @ vh, weighted @ u.mH, (vh.mH * weights) @ vh


class _linalg_svd(MatrixKernel):
    """A = U diag(S) V^H, the singular values in descending order."""

    schema = ("_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *,"
              " str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)")
    grad = {"A": "svd_grad(grad_U, grad_S, grad_Vh, U, S, Vh, full_matrices, compute_uv, A)"}
    push = {"U, S, Vh": "svd_push(A_t, U, S, Vh, full_matrices, compute_uv, A_p)"}
    invariant = _svd_invariant
    method = False

    def run(xp, A, full_matrices, compute_uv, driver):
        check_matrix("linalg.svd", A)
        check_float("linalg.svd", A)
        _check_driver(driver)
        out = singular("linalg.svd", xp, A, full_matrices=full_matrices, compute_uv=compute_uv)
        if compute_uv:
            return tuple(out)
        nothing = xp.zeros((0,), dtype=A.dtype)
        return nothing, out, nothing.copy()

    def shape(A, full_matrices, compute_uv, driver):
        check_matrix("linalg.svd", A)
        lead, (rows, columns) = tuple(A.shape[:-2]), A.shape[-2:]
        size = min(rows, columns)
        if not compute_uv:
            return [(0,), (*lead, size), (0,)]
        first, last = (rows, columns) if full_matrices else (size, size)
        return [(*lead, rows, first), (*lead, size), (*lead, last, columns)]

    def dtype(A, full_matrices, compute_uv, driver):
        return [A.dtype, A.dtype.to_real(), A.dtype]

    def samples(s):
        for a in _matrices(s):
            yield s(a)
        yield s(s.real(2, 5, 3), True)
        yield s(s.real(3, 4), True)


class linalg_svd(PreciseMatricesComposite):
    """A = U diag(S) V^H, the singular values in descending order."""

    schema = ("linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None)"
              " -> (Tensor U, Tensor S, Tensor Vh)")
    out = ("exact",)
    invariant = _svd_invariant

    def compose(A, full_matrices, driver):
        return named("linalg_svd", *ops._linalg_svd(A, full_matrices, True, driver=driver))

    samples = lambda s: [s(s.real(3, 4)), s(s.real(4, 3), full_matrices=False)]


class svd(ComplexComposite):
    """A = U diag(S) V^H, the singular values in descending order; gives V (older name)."""

    schema = ("svd(Tensor self, bool some=True, bool compute_uv=True)"
              " -> (Tensor U, Tensor S, Tensor V)")
    autocast = "float32"
    invariant = lambda U, S, V: _svd_invariant(U, S, V.mH)

    def compose(self, some, compute_uv):
        check_matrix("linalg.svd", self)
        if compute_uv:
            u, s, vh = ops._linalg_svd(self, not some)
            return named("svd", u, s, vh.mH)
        lead, (rows, columns) = tuple(self.shape[:-2]), self.shape[-2:]
        return named("svd", self.new_zeros((*lead, rows, rows)), ops.linalg_svdvals(self),
                     self.new_zeros((*lead, columns, columns)))

    samples = lambda s: [s(s.real(3, 4)), s(s.real(4, 3), False)]


class linalg_svdvals(PreciseMatrices):
    """Singular values in descending order; the vectors are computed only for derivatives."""

    schema = "linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor"
    kept = None
    grad = {"A": "svdvals_grad(grad, A)"}
    push = "svdvals_push(A_t, A_p)"

    def run(xp, A, driver):
        check_matrix("linalg.svd", A)
        check_float("linalg.svd", A)
        _check_driver(driver)
        return singular("linalg.svd", xp, A, compute_uv=False)

    def decomp(A, driver):
        return ops._linalg_svd(A, False, False, driver=driver)[1]

    def shape(A, driver):
        check_matrix("linalg.svd", A)
        return (*A.shape[:-2], min(A.shape[-2:]))

    def dtype(A, driver):
        return A.dtype.to_real()

    def samples(s):
        for a in _matrices(s):
            yield s(a)


# ---------------------------------------------------------------------------------------------
# Eigenvalues of Hermitian matrices


def _check_triangle(name, matrix, uplo):
    check_square(name, matrix)
    if uplo.upper() not in ("L", "U"):
        raise ShapeError(f"Expected UPLO argument to be 'L' or 'U', but got {uplo}")


def _eigh_invariant(values, vectors):
    """What no phase changes: eigenvalues, and projectors with different weights."""
    weights = ops.arange(1, values.shape[-1] + 1, dtype=values.dtype, device=values.device)
    return values, (vectors * weights.to(vectors.dtype)) @ vectors.mH


def _hermitians(s):
    for shape in ((3, 3), (2, 4, 4), (1, 1), (0, 3, 3), (0, 0)):
        yield symmetric(s.real(*shape))


class _linalg_eigh(MatrixKernel):
    """Eigenvalues in ascending order and eigenvectors of a Hermitian matrix.

    Only one triangle is read, 'L' or 'U'; derivatives are those of the whole Hermitian matrix.
    """

    schema = ("_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True)"
              " -> (Tensor eigenvalues, Tensor eigenvectors)")
    grad = {"A": ("eigh_grad(grad_eigenvalues, grad_eigenvectors, eigenvalues, eigenvectors,"
                  " compute_v, A, UPLO)")}
    push = {"eigenvalues, eigenvectors": ("eigh_push(A_t, eigenvalues, eigenvectors, compute_v,"
                                          " A_p, UPLO)")}
    structure = {"A": hermitian}
    invariant = _eigh_invariant
    method = False

    def run(xp, A, UPLO, compute_v):
        _check_triangle("linalg.eigh", A, UPLO)
        check_float("linalg.eigh", A)
        if compute_v:
            return tuple(converged("linalg.eigh", xp, xp.linalg.eigh, A, UPLO=UPLO.upper()))
        values = converged("linalg.eigh", xp, xp.linalg.eigvalsh, A, UPLO=UPLO.upper())
        return values, xp.zeros((0,), dtype=A.dtype)

    def shape(A, UPLO, compute_v):
        _check_triangle("linalg.eigh", A, UPLO)
        return [tuple(A.shape[:-1]), tuple(A.shape) if compute_v else (0,)]

    def dtype(A, UPLO, compute_v):
        return [A.dtype.to_real(), A.dtype]

    def samples(s):
        for a in _hermitians(s):
            yield s(a)
        yield s(symmetric(s.real(3, 3)), "U")


class linalg_eigh(PreciseMatricesComposite):
    """Eigenvalues in ascending order and eigenvectors of a Hermitian matrix."""

    schema = ("linalg_eigh(Tensor self, str UPLO=\"L\")"
              " -> (Tensor eigenvalues, Tensor eigenvectors)")
    writing = "eigvals"
    out = ("exact",)
    structure = {"self": hermitian}
    invariant = _eigh_invariant

    def compose(self, UPLO):
        return named("linalg_eigh", *ops._linalg_eigh(self, UPLO))

    samples = lambda s: [s(symmetric(s.real(3, 3)))]


class linalg_eigvalsh(PreciseMatrices):
    """Eigenvalues of a Hermitian matrix; the vectors are computed only for derivatives."""

    schema = "linalg_eigvalsh(Tensor self, str UPLO=\"L\") -> Tensor"
    kept = None
    grad = {"self": "eigvalsh_grad(grad, self, UPLO)"}
    push = "eigvalsh_push(self_t, self_p, UPLO)"
    structure = {"self": hermitian}

    def run(xp, self, UPLO):
        _check_triangle("linalg.eigh", self, UPLO)
        check_float("linalg.eigh", self)
        return converged("linalg.eigh", xp, xp.linalg.eigvalsh, self, UPLO=UPLO.upper())

    def decomp(self, UPLO):
        return ops._linalg_eigh(self, UPLO, False)[0]

    def shape(self, UPLO):
        _check_triangle("linalg.eigh", self, UPLO)
        return tuple(self.shape[:-1])

    def dtype(self, UPLO):
        return self.dtype.to_real()

    def samples(s):
        for a in _hermitians(s):
            yield s(a)
        yield s(symmetric(s.real(3, 3)), "U")


# ---------------------------------------------------------------------------------------------
# Eigenvalues of general matrices


def _check_eig(xp, name, matrix):
    check_square(name, matrix)
    check_float(name, matrix)
    if not xp.isfinite(matrix).all():
        raise LinAlgError(f"{name}: input tensor should not contain infs or NaNs.")


def _complex_of(dtype):
    return dtype if dtype.is_complex else dt.complex64 if dtype is dt.float32 else dt.complex128


def _eig_invariant(values, vectors):
    return values, vectors.abs()


class linalg_eig(PreciseMatrices):
    """Eigenvalues and eigenvectors, of unit length, of a general matrix."""

    schema = "linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)"
    out = ("castable",)
    grad = {"self": "eig_grad(grad_eigenvalues, grad_eigenvectors, eigenvalues, eigenvectors)"}
    push = {"eigenvalues, eigenvectors": "eig_push(self_t, eigenvalues, eigenvectors)"}
    invariant = _eig_invariant

    def run(xp, self):
        _check_eig(xp, "torch.linalg.eig", self)
        return eigenvectors(xp, "torch.linalg.eig", self)

    def shape(self):
        check_square("torch.linalg.eig", self)
        return [tuple(self.shape[:-1]), tuple(self.shape)]

    def dtype(self):
        return [_complex_of(self.dtype)] * 2

    def samples(s):
        for shape in ((3, 3), (2, 4, 4), (1, 1), (0, 3, 3)):
            yield s(regular(s.real(*shape)))
        yield s(s.real(3, 3).mT)


class linalg_eigvals(PreciseMatrices):
    """Eigenvalues of a general matrix; the vectors are computed only for derivatives."""

    schema = "linalg_eigvals(Tensor self) -> Tensor"
    out = ("castable",)
    grad = {"self": "eigvals_grad(grad, self)"}
    push = "eigvals_push(self_t, self_p)"

    def run(xp, self):
        _check_eig(xp, "torch.linalg.eigvals", self)
        return eigenvalues(xp, "torch.linalg.eigvals", self)[0]

    def shape(self):
        check_square("torch.linalg.eigvals", self)
        return tuple(self.shape[:-1])

    def dtype(self):
        return _complex_of(self.dtype)

    def samples(s):
        for shape in ((3, 3), (2, 4, 4), (0, 3, 3)):
            yield s(regular(s.real(*shape)))


class _linalg_eigvals(Synonym):
    """Eigenvalues of a general matrix (internal name)."""

    schema = "_linalg_eigvals(Tensor self) -> Tensor"
    method = False
    complex = True
    same_as = "linalg_eigvals"
    samples = lambda s: [s(regular(s.real(3, 3)))]
