"""Linear algebra: the table entries of Cholesky factors, triangular systems, norms, covariances.

Formulas are in `formulas/linalg.py`, kernels in `lapack.py`; `pullback.linalg` offers the public
names.  Read next: `factor.py` for other factorizations, `solve.py` for solvers and determinants.
"""

from __future__ import annotations

import math
import warnings

from ..array import dtype as dt
from ..array.dims import wrap_dim
from ..core.handle import Tensor
from ..errors import DataDependentError, DTypeError, ShapeError
from ..table.packets import ops
from ..threads.state import in_passing
from .kinds import (
    ComplexComposite,
    ComplexFree,
    Matrices,
    MatricesComposite,
    MatrixKernel,
    PreciseMatricesComposite,
)
from .lapack import (
    Failed,
    SquareWithInfo,
    adjoint,
    check_float,
    check_matrix,
    check_square,
    check_system,
    failure,
    fronts,
    hermitian,
    identity,
    lapack,
    on_host,
    positions,
    positive,
    regular,
    solve_triangular,
    triangular,
)

# ---------------------------------------------------------------------------------------------
# Cholesky


@on_host
def _cholesky_loop(xp, matrix):
    """Lower factors, one after another, and the failing minors; a failed factor is NaN."""
    info, out = xp.zeros(matrix.shape[:-2], dtype=xp.int32), xp.empty_like(matrix)
    potrf = lapack(xp, "potrf", matrix)
    for index in positions(matrix.shape[:-2]):
        out[index], info[index] = potrf(matrix[index], lower=1, clean=1)
    out[info != 0] = math.nan
    return out, info


def _cholesky_lower(xp, matrix):
    """Lower factors, and the order of the first leading minor that is not positive (or 0)."""
    try:
        return xp.linalg.cholesky(matrix), xp.zeros(matrix.shape[:-2], dtype=xp.int32)
    except Failed:
        return _cholesky_loop(xp, matrix)


class linalg_cholesky_ex(SquareWithInfo):
    """Triangular factor of a positive-definite matrix, and where the factorization failed."""

    schema = ("linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False)"
              " -> (Tensor L, Tensor info)")
    grad = {"self": "cholesky_grad(grad, L, upper)"}
    push = {"L": "cholesky_push(self_t, L, upper)"}
    structure = {"self": hermitian}

    def run(xp, self, upper, check_errors):
        check_square("linalg.cholesky", self)
        check_float("linalg.cholesky", self)
        factor, info = _cholesky_lower(xp, adjoint(xp, self) if upper else self)
        if check_errors:
            failure("linalg.cholesky", info, "The factorization could not be completed because "
                    "the input is not positive-definite (the leading minor of order {} is not "
                    "positive-definite).")
        return (adjoint(xp, factor) if upper else factor), info

    def samples(s):
        for shape in ((3, 3), (2, 3, 3), (1, 1), (0, 3, 3), (0, 0)):
            a = s.real(*shape)
            yield s(positive(a))
            yield s(positive(a), upper=True)


class linalg_cholesky(PreciseMatricesComposite):
    """Triangular factor of a positive-definite matrix."""

    schema = "linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor"
    out = ("exact",)
    structure = {"self": hermitian}

    def compose(self, upper):
        return ops.linalg_cholesky_ex(self, upper=upper, check_errors=True)[0]

    samples = lambda s: [s(positive(s.real(3, 3)))]


class cholesky(ComplexComposite):
    """Triangular factor of a positive-definite matrix (older name)."""

    schema = "cholesky(Tensor self, bool upper=False) -> Tensor"
    autocast = "float32"
    structure = {"self": hermitian}

    def compose(self, upper):
        return ops.linalg_cholesky_ex(self, upper=upper, check_errors=True)[0]

    samples = lambda s: [s(positive(s.real(3, 3))), s(positive(s.real(3, 3)), True)]


# ---------------------------------------------------------------------------------------------
# Triangular systems


class linalg_solve_triangular(Matrices):
    """Solution of a triangular system."""

    schema = ("linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True,"
              " bool unitriangular=False) -> Tensor")
    grad = {"self, B": ("solve_triangular_grads(grad, self, result, upper, left, unitriangular,"
                        " grad_input_mask)")}
    push = "solve_triangular_push(self_p, self_t, B_t, result, upper, left, unitriangular)"

    def run(xp, self, B, upper, left, unitriangular):
        check_system("linalg.solve_triangular", self, B, left)
        check_float("linalg.solve_triangular", self, B)
        return solve_triangular(xp, self, B, upper, left, unitriangular)

    def shape(self, B, upper, left, unitriangular):
        return check_system("linalg.solve_triangular", self, B, left)

    def batch(n, batched, self, B, upper, left, unitriangular):
        a, b = fronts(batched[:2], self, B)
        return ops.linalg_solve_triangular(a, b, upper=upper, left=left,
                                           unitriangular=unitriangular)

    def samples(s):
        for upper in (False, True):
            for left in (False, True):
                shape = (3, 2) if left else (2, 3)
                a = positive(s.real(3, 3))
                yield s(a, s.real(*shape), upper=upper, left=left)
                yield s(a, s.real(*shape), upper=upper, left=left, unitriangular=True)
        yield s(positive(s.real(2, 3, 3)), s.real(3, 2), upper=False)
        yield s(positive(s.real(3, 3)), s.real(2, 3, 2), upper=True)


class cholesky_solve(MatrixKernel):
    """Solution of a system whose matrix is given by its Cholesky factor."""

    schema = "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor"
    autocast = "float32"
    out = ("castable",)
    structure = {"input2": triangular}
    grad = {"self, input2": "cholesky_solve_grads(grad, result, input2, upper, grad_input_mask)"}
    push = "cholesky_solve_push(self_t, input2_p, input2_t, result, upper)"
    cost = "heavy"

    def run(xp, self, input2, upper):
        check_system("cholesky_solve", input2, self, True)
        check_float("cholesky_solve", self, input2)
        half = solve_triangular(xp, input2, self, upper, True, False, adjoint=upper)
        return solve_triangular(xp, input2, half, upper, True, False, adjoint=not upper)

    def shape(self, input2, upper):
        return check_system("cholesky_solve", input2, self, True)

    def batch(n, batched, self, input2, upper):
        b, factor = fronts(batched[:2], self, input2)
        return ops.cholesky_solve(b, factor, upper)

    def samples(s):
        for upper in (False, True):
            for shape in ((3, 3), (2, 3, 3)):
                a = positive(s.real(*shape))
                yield s(s.real(3, 2), a.triu() if upper else a.tril(), upper)


class cholesky_inverse(ComplexComposite):
    """Inverse of a matrix that is given by its Cholesky factor."""

    schema = "cholesky_inverse(Tensor self, bool upper=False) -> Tensor"
    autocast = "float32"
    structure = {"self": triangular}

    def compose(self, upper):
        check_square("cholesky_inverse", self)
        return ops.cholesky_solve(identity(self), self, upper)

    samples = lambda s: [s(positive(s.real(3, 3)).tril()), s(positive(s.real(3, 3)).triu(), True)]


# ---------------------------------------------------------------------------------------------
# Norms and condition numbers


def _cast(name, tensor, dtype):
    """The tensor in the dtype that a norm is to be computed in."""
    if tensor.dtype.category < 2:
        raise DTypeError(f"{name}: Expected a floating point or complex tensor as input. Got "
                         f"{tensor.dtype.name}")
    if dtype is None:
        return tensor
    if dtype.category < 2 or dtype.is_complex != tensor.dtype.is_complex:
        kind = "complex" if tensor.dtype.is_complex else "real"
        raise DTypeError(f"{name}: dtype should be {kind} for {kind} inputs, but got {dtype.name}")
    return tensor.to(dtype)


def _two_dims(name, tensor, dim):
    """The two dims of a matrix, counted from the front."""
    check_matrix(name, tensor)
    if len(dim) != 2:
        raise ShapeError(f"{name}: dim must be a 2-tuple. Got {list(dim)}")
    rows, columns = (wrap_dim(d, tensor.ndim) for d in dim)
    if rows == columns:
        raise ShapeError(f"{name}: dims must be different. Got ({dim[0]}, {dim[1]})")
    return rows, columns


def _kept(result, dims, keepdim):
    """A result of reducing two dims, with these dims again if `keepdim`."""
    if keepdim:
        for d in sorted(dims):
            result = result.unsqueeze(d)
    return result


def _extreme(values, dim, largest):
    """Largest or smallest values over a dim, which is kept; nothing is at least 0."""
    if largest and values.shape[dim] == 0:
        return values.sum([dim], True)
    return values.amax([dim], True) if largest else values.amin([dim], True)


def _matrix_norm(self, ord, dim, keepdim, dtype):
    name = "linalg.matrix_norm"
    rows, columns = _two_dims(name, self, dim)
    tensor = _cast(name, self, dtype)
    if ord == "fro":
        return ops.linalg_vector_norm(tensor, 2, [rows, columns], keepdim)
    if ord == "nuc" or abs(ord) == 2:
        values = ops.linalg_svdvals(tensor.movedim([rows, columns], [-2, -1]))
        if ord == "nuc":
            return _kept(values.sum(-1), (rows, columns), keepdim)
        return _kept(_extreme(values, -1, ord > 0).squeeze(-1), (rows, columns), keepdim)
    summed, compared = (rows, columns) if abs(ord) == 1 else (columns, rows)
    result = _extreme(tensor.abs().sum(summed, True), compared, ord > 0)
    return result if keepdim else result.squeeze([rows, columns])


class linalg_matrix_norm(MatricesComposite):
    """Norm of a matrix as a linear map (1, 2, inf), or the smallest stretch (-1, -2, -inf)."""

    schema = ("linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False,"
              " *, ScalarType? dtype=None) -> Tensor")
    out = ("exact",)

    def compose(self, ord, dim, keepdim, dtype):
        if isinstance(ord, complex) or abs(ord) not in (1, 2, math.inf):
            raise ShapeError(f"linalg.matrix_norm: Order {ord} not supported.")
        return _matrix_norm(self, ord, dim, keepdim, dtype)

    def samples(s):
        for order in (1, -1, 2, -2, math.inf, -math.inf):
            yield s(s.real(3, 4), order)
            yield s(s.real(2, 4, 3), order, [0, -1], True)


class linalg_matrix_norm_str_ord(MatricesComposite):
    """Norm of a matrix by name: "fro", the 2-norm of its elements, or "nuc", the sum of its
    singular values."""

    schema = ("linalg_matrix_norm.str_ord(Tensor self, str ord=\"fro\", int[] dim=[-2, -1],"
              " bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
    out = ("exact",)

    def compose(self, ord, dim, keepdim, dtype):
        if ord not in ("fro", "nuc"):
            raise ShapeError(f"linalg.matrix_norm: Order {ord} not supported.")
        return _matrix_norm(self, ord, dim, keepdim, dtype)

    def samples(s):
        for order in ("fro", "nuc"):
            yield s(s.real(3, 4), order)
            yield s(s.real(2, 4, 3), order, [-1, 0], True)


class linalg_norm(MatricesComposite):
    """Norm of a vector or of a matrix, depending on how many dims are given."""

    schema = ("linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *,"
              " ScalarType? dtype=None) -> Tensor")
    out = ("exact",)

    def compose(self, ord, dim, keepdim, dtype):
        if dim is not None and len(dim) not in (1, 2):
            raise ShapeError("linalg.norm: If dim is specified, it must be of length 1 or 2. Got "
                             f"{list(dim)}")
        if ord is None:
            return ops.linalg_vector_norm(self, 2, dim, keepdim, dtype=dtype)
        if dim is None and self.ndim not in (1, 2):
            raise ShapeError("linalg.norm: If dim is not specified but ord is, the input must be "
                             f"1D or 2D. Got {self.ndim}D.")
        if len(dim) == 2 if dim is not None else self.ndim == 2:
            return ops.linalg_matrix_norm(self, ord, dim or [0, 1], keepdim, dtype=dtype)
        return ops.linalg_vector_norm(self, ord, dim, keepdim, dtype=dtype)

    def samples(s):
        yield s(s.real(3, 4))
        yield s(s.real(3, 4), 1)
        yield s(s.real(3, 4), 3, 1)
        yield s(s.real(4), 1)
        yield s(s.real(2, 3, 4), -2, [0, 2], True)


class linalg_norm_ord_str(MatricesComposite):
    """Norm of a matrix by name: "fro" or "nuc"."""

    schema = ("linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *,"
              " ScalarType? dtype=None) -> Tensor")
    out = ("exact",)

    def compose(self, ord, dim, keepdim, dtype):
        if dim is None:
            if self.ndim != 2:
                raise ShapeError(f"linalg.norm: The input tensor A must have 2 dimensions for ord="
                                 f"'{ord}' without dim. Got {self.ndim}D.")
            dim = [0, 1]
        if len(dim) not in (1, 2):
            raise ShapeError("linalg.norm: If dim is specified, it must be of length 1 or 2. Got "
                             f"{list(dim)}")
        return ops.linalg_matrix_norm(self, ord, dim, keepdim, dtype=dtype)

    samples = lambda s: [s(s.real(3, 4), "fro"), s(s.real(2, 3, 4), "nuc", [1, 2])]


class nuclear_norm(ComplexFree):
    """Sum of the singular values of a matrix."""

    schema = "nuclear_norm(Tensor self, bool keepdim=False) -> Tensor"

    def compose(self, keepdim):
        return ops.linalg_matrix_norm(self, "nuc", [-2, -1], keepdim)

    samples = lambda s: [s(s.real(3, 4))]


class nuclear_norm_dim(ComplexFree):
    """Sum of the singular values of the matrices in two dims."""

    schema = "nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor"

    def compose(self, dim, keepdim):
        return ops.linalg_matrix_norm(self, "nuc", dim, keepdim)

    samples = lambda s: [s(s.real(2, 3, 4), [0, 2])]


class frobenius_norm_dim(ComplexFree):
    """2-norm of the elements over some dims."""

    schema = "frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor"

    def compose(self, dim, keepdim):
        if len(dim) > 2:
            raise ShapeError(f"frobenius_norm: Expected at most 2 dimensions, but got {len(dim)}")
        return ops.linalg_vector_norm(self, 2, dim or None, keepdim)

    samples = lambda s: [s(s.real(2, 3, 4), [0, 2])]


def _cond(self, p):
    name = "linalg.cond"
    check_matrix(name, self)
    if p is None or p in (2, -2):
        if 0 in self.shape[-2:]:
            return self.new_zeros(tuple(self.shape[:-2]), dtype=self.dtype.to_real())
        values = ops.linalg_svdvals(self)
        first, last = values[..., 0], values[..., -1]
        return last / first if p == -2 else first / last
    if p not in ("fro", "nuc", 1, -1, math.inf, -math.inf):
        raise ShapeError(f"{name}: Order {p} not supported.")
    if self.shape[-1] != self.shape[-2]:
        raise ShapeError(f"{name} only supports square matrices or batches of square matrices for "
                         f"p={p}. Got shape {list(self.shape)}")
    if 0 in self.shape[-2:]:
        return self.new_zeros(tuple(self.shape[:-2]), dtype=self.dtype.to_real())
    inverse, info = ops.linalg_inv_ex(self)
    singular = info > 0
    inverse = ops.where(singular[..., None, None], 0.0, inverse)
    product = ops.linalg_matrix_norm(self, p) * ops.linalg_matrix_norm(inverse, p)
    return ops.where(singular, math.inf, product)


class linalg_cond(PreciseMatricesComposite):
    """Condition number in a norm; infinite for singular matrices."""

    schema = "linalg_cond(Tensor self, Scalar? p=None) -> Tensor"
    compose = _cond

    def samples(s):
        yield s(s.real(2, 4, 3))
        for order in (1, -1, -2, math.inf, -math.inf):
            yield s(regular(s.real(3, 3)), order)


class linalg_cond_p_str(PreciseMatricesComposite):
    """Condition number in the "fro" or "nuc" norm."""

    schema = "linalg_cond.p_str(Tensor self, str p) -> Tensor"
    compose = _cond

    samples = lambda s: [s(regular(s.real(3, 3)), "fro"), s(regular(s.real(3, 3)), "nuc")]


# ---------------------------------------------------------------------------------------------
# Matrices made of vectors and of samples


class linalg_vander(MatricesComposite):
    """Vandermonde matrix: row i holds the powers 0 ... N - 1 of x_i."""

    schema = "linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor"

    def compose(x, N):
        x = ops.atleast_1d(x)
        count = x.shape[-1] if N is None else N
        if count <= 1:
            raise ShapeError("N must be greater than 1.")
        powers = ops.cumprod(x[..., None].expand((*x.shape, count - 1)), -1)
        return ops.cat([ops.ones_like(powers[..., :1]), powers], -1)

    samples = lambda s: [s(s.real(3)), s(s.real(2, 3), N=4)]


class vander(ComplexFree):
    """Vandermonde matrix of a vector, the highest power first unless `increasing`."""

    schema = "vander(Tensor x, int? N=None, bool increasing=False) -> Tensor"

    def compose(x, N, increasing):
        if x.ndim != 1:
            raise ShapeError("x must be a one-dimensional tensor.")
        count = x.shape[0] if N is None else N
        if count < 0:
            raise ShapeError("N must be non-negative.")
        dtype = x.dtype if x.dtype.category >= 2 else dt.int64
        columns = [ops.ones_like(x, dtype=dtype)]
        if count > 1:
            powers = ops.cumprod(x[:, None].expand((x.shape[0], count - 1)), 1)
            matrix = ops.cat([columns[0][:, None], powers], 1)
        else:
            matrix = columns[0][:, None][:, :count]
        return matrix if increasing else matrix.flip([1])

    samples = lambda s: [s(s.real(3)), s(s.real(3), 5, True)]


def _check_weights(weights, name, count, floating):
    if weights.ndim > 1:
        raise ShapeError(f"cov(): expected {name} to have one or fewer dimensions but got "
                         f"{name} with {weights.ndim} dimensions")
    if weights.dtype.is_floating_point != floating or weights.dtype.category not in (1, 2):
        kind = "floating point" if floating else "integral"
        raise DTypeError(f"cov(): expected {name} to have {kind} dtype but got {name} with "
                         f"{weights.dtype.name} dtype")
    if weights.numel() != count:
        raise ShapeError(f"cov(): expected {name} to have the same numel as there are observations "
                         f"in the input but got {weights.numel()} != {count}")
    if _known(lambda: (weights < 0).any()):
        raise ShapeError(f"cov(): {name} cannot be negative")


@in_passing
def _known(condition) -> bool:
    """A condition on values; False where they are hidden (batched, traced)."""
    try:
        return bool(condition())
    except DataDependentError:
        return False


class cov(ComplexComposite):
    """Covariances of variables (rows) over observations (columns), which may be weighted."""

    schema = ("cov(Tensor self, *, int correction=1, Tensor? fweights=None,"
              " Tensor? aweights=None) -> Tensor")

    def compose(self, correction, fweights, aweights):
        if self.ndim > 2:
            raise ShapeError("cov(): expected input to have two or fewer dimensions but got an "
                             f"input with {self.ndim} dimensions")
        if self.dtype is dt.bool_:
            raise DTypeError("cov(): bool dtype is not supported for input")
        rows = self if self.ndim == 2 else self.reshape([1, -1])
        count = rows.shape[1]
        weights = None
        if fweights is not None:
            _check_weights(fweights, "fweights", count, False)
            weights = fweights
        if aweights is not None:
            _check_weights(aweights, "aweights", count, True)
            weights = aweights if weights is None else weights * aweights
        total = count if weights is None else weights.sum()
        if weights is not None and _known(lambda: total == 0):
            raise RuntimeError("cov(): weights sum to zero, can't be normalized")
        mean = (rows if weights is None else rows * weights).sum(1, True) / total
        freedom = total - correction
        if aweights is not None and correction != 0:
            freedom = total - correction * (weights * aweights).sum() / total
        if _known(lambda: freedom <= 0):
            warnings.warn("cov(): degrees of freedom is <= 0. Correction should be strictly less "
                          "than the number of observations.", stacklevel=2)
        freedom = max(freedom, 0) if weights is None else freedom.clamp_min(0)
        rows = rows - mean
        product = rows @ (rows if weights is None else rows * weights).mH
        if not isinstance(freedom, Tensor):  # zero divides tensors, but not numbers
            freedom = ops.full((), float(freedom), dtype=product.dtype, device=product.device)
        return (product / freedom).squeeze()

    def samples(s):
        yield s(s.real(3, 4))
        yield s(s.real(4))
        yield s(s.real(3, 4), correction=0)
        yield s(s.real(2, 3), fweights=s.tensor([1, 3, 2], dt.int64))
        yield s(s.real(2, 3), aweights=s.tensor([0.5, 0.2, 0.8], dt.float64))
        yield s(s.real(2, 3), correction=2, fweights=s.tensor([1, 3, 2], dt.int64),
                aweights=s.tensor([0.5, 0.2, 0.8], dt.float64))


class corrcoef(ComplexComposite):
    """Correlations of variables (rows) over observations (columns)."""

    schema = "corrcoef(Tensor self) -> Tensor"

    def compose(self):
        if self.ndim > 2:
            raise ShapeError("corrcoef(): expected input to have two or fewer dimensions but got "
                             f"an input with {self.ndim} dimensions")
        table = ops.cov(self)
        if table.ndim == 0:
            return table / table
        spread = ops.real(table.diagonal()).sqrt()
        table = table / spread[:, None] / spread[None, :]
        if table.is_complex():
            return ops.view_as_complex(ops.view_as_real(table).clamp(-1, 1))
        return table.clamp(-1, 1)

    samples = lambda s: [s(s.real(2, 5)), s(s.real(4))]
