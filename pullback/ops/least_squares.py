"""Matrices that have no inverse: pseudo-inverse, rank and least squares.

Formulas are in `formulas/linalg.py`, kernels that NumPy lacks in `lapack.py`.  Read `solve.py` first.
"""

from __future__ import annotations

from ..array import dtype as dt
from ..array.dims import broadcast_shapes
from ..errors import DTypeError, ShapeError
from ..table.packets import ops
from .index import needs_data
from .kinds import (
    ComplexComposite,
    Matrices,
    MatricesComposite,
    PreciseMatrices,
    PreciseMatricesComposite,
)
from .lapack import (
    adjoint,
    check_float,
    check_matrix,
    check_square,
    converged,
    epsilon,
    fronts,
    singular,
    symmetric,
)

# ---------------------------------------------------------------------------------------------
# Pseudo-inverse and rank


def default_rtol(shape, dtype) -> float:
    """Relative size below which singular values count as zero."""
    return dt.finfo(dtype).eps * max(shape[-2:])


def _number(xp, value, like):
    """A tolerance as an array that broadcasts against singular values."""
    if value is None:
        return None
    return xp.asarray(value).astype(like.dtype)[..., None]


def _threshold(xp, sizes, shape, atol, rtol):
    """Singular values up to here count as zero."""
    atol, rtol = _number(xp, atol, sizes), _number(xp, rtol, sizes)
    if rtol is None:
        rtol = xp.asarray(epsilon(xp, sizes) * max(shape[-2:])).astype(sizes.dtype)
        if atol is not None:  # the default stands only where no absolute tolerance is given
            rtol = xp.where(atol > 0, 0, rtol)
    largest = xp.max(sizes, axis=-1, keepdims=True)
    bound = rtol * largest
    return bound if atol is None else xp.maximum(bound, atol)


def _pinv_shape(matrix, atol, rtol, hermitian):
    check_matrix("linalg.pinv", matrix)
    if hermitian:
        check_square("linalg.pinv", matrix)
    lead = broadcast_shapes(matrix.shape[:-2], *(t.shape for t in (atol, rtol) if t is not None))
    return (*lead, matrix.shape[-1], matrix.shape[-2])


class linalg_pinv_atol_rtol_tensor(Matrices):
    """Pseudo-inverse; singular values up to max(atol, rtol times the largest) count as zero."""

    schema = ("linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None,"
              " bool hermitian=False) -> Tensor")
    out = ("castable",)
    grad = {"self": "pinv_grad(grad, result, self)"}
    push = "pinv_push(self_t, result, self_p)"
    nondiff = ("atol", "rtol")

    def run(xp, self, atol, rtol, hermitian):
        shape = _pinv_shape(self, atol, rtol, hermitian)
        check_float("linalg.pinv", self)
        if self.size == 0:
            return xp.zeros(shape, dtype=self.dtype)
        if hermitian:
            values, vectors = converged("linalg.eigh", xp, xp.linalg.eigh, self)
            left, right, sizes = vectors, adjoint(xp, vectors), xp.abs(values)
        else:
            u, sizes, vh = singular("linalg.svd", xp, self, full_matrices=False)
            left, right, values = adjoint(xp, vh), adjoint(xp, u), sizes
        kept = sizes > _threshold(xp, sizes, self.shape, atol, rtol)
        inverses = xp.where(kept, 1 / xp.where(kept, values, 1), 0).astype(values.dtype)
        return xp.ascontiguousarray((left * inverses[..., None, :]) @ right)

    def shape(self, atol, rtol, hermitian):
        return _pinv_shape(self, atol, rtol, hermitian)

    def batch(n, batched, self, atol, rtol, hermitian):
        # tolerances get two more dims to line up with the matrices, and lose them again
        given = {i: t if i == 0 else t[..., None, None]
                 for i, t in enumerate((self, atol, rtol)) if t is not None}
        lined = fronts([batched[i] for i in given], *given.values())
        self, *rest = (t if batched[i] else t.unsqueeze(0) if i == 0 else t
                       for i, t in zip(given, lined, strict=True))
        limits = dict(zip(list(given)[1:], (t[..., 0, 0] for t in rest), strict=True))
        return pinv(self, limits.get(1), limits.get(2), hermitian)

    def samples(s):
        for shape in ((3, 3), (2, 4, 3), (2, 3, 4), (0, 3, 2), (3, 0)):
            yield s(s.real(*shape))
        yield s(s.real(3, 4).mT, rtol=s.tensor(1e-6, dt.float64))
        yield s(s.real(3, 4), rtol=s.tensor([1e-6, 1e-7], dt.float64))
        yield s(s.real(2, 3, 4), atol=s.tensor([1e-6, 1e-5], dt.float64))


def _limits(matrix, *tolerances):
    """Tolerances that are numbers, or None, as tensors."""
    dtype, device = matrix.dtype.to_real(), matrix.device
    return [None if t is None else ops.full((), t, dtype=dtype, device=device) for t in tolerances]


class linalg_pinv_atol_rtol_float(MatricesComposite):
    """Pseudo-inverse with tolerances that are numbers."""

    schema = ("linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None,"
              " bool hermitian=False) -> Tensor")

    def compose(self, atol, rtol, hermitian):
        return pinv(self, *_limits(self, atol, rtol), hermitian)

    samples = lambda s: [s(s.real(4, 3), rtol=1e-10), s(s.real(3, 4), atol=1e-10)]


def pinv(self, atol, rtol, hermitian):
    """The overload of `linalg_pinv` that has formulas."""
    return ops.linalg_pinv.atol_rtol_tensor(self, atol=atol, rtol=rtol, hermitian=hermitian)


class linalg_pinv_default(MatricesComposite):
    """Pseudo-inverse; singular values up to `rcond` times the largest count as zero."""

    schema = "linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor"

    def compose(self, rcond, hermitian):
        return ops.linalg_pinv.atol_rtol_float(self, atol=0.0, rtol=rcond, hermitian=hermitian)

    samples = lambda s: [s(s.real(4, 3), 1e-10)]


class linalg_pinv_rcond_tensor(MatricesComposite):
    """Pseudo-inverse; singular values up to `rcond` times the largest count as zero."""

    schema = "linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor"
    writing = "out_rcond_tensor"

    def compose(self, rcond, hermitian):
        return pinv(self, ops.zeros_like(rcond), rcond, hermitian)

    samples = lambda s: [s(s.real(2, 4, 3), s.tensor([1e-10, 1e-9], dt.float64))]


class pinverse(ComplexComposite):
    """Pseudo-inverse (older name)."""

    schema = "pinverse(Tensor self, float rcond=1e-15) -> Tensor"
    autocast = "float32"

    def compose(self, rcond):
        return ops.linalg_pinv.atol_rtol_float(self, atol=0.0, rtol=rcond, hermitian=False)

    samples = lambda s: [s(s.real(4, 3))]


def _rank(self, atol, rtol, hermitian):
    """Number of singular values above the tolerances, which are tensors or None."""
    name = "torch.linalg.matrix_rank"
    check_matrix(name, self, "input")
    for limit in (atol, rtol):
        if limit is not None and limit.is_complex():
            raise DTypeError(f"{name}: tolerances of complex type are not supported.")
    if 0 in self.shape[-2:]:
        return ops.zeros(tuple(self.shape[:-2]), dtype=dt.int64, device=self.device)
    sizes = ops.linalg_eigvalsh(self).abs() if hermitian else ops.linalg_svdvals(self)
    if rtol is None:
        rtol = ops.full((), default_rtol(self.shape, self.dtype), dtype=sizes.dtype,
                        device=self.device)
        if atol is not None:
            rtol = ops.where(atol > 0, 0.0, rtol)
    bound = rtol * sizes.amax(-1)
    if atol is not None:
        bound = ops.maximum(*ops.broadcast_tensors([atol.to(bound.dtype), bound]))
    return (sizes > bound[..., None]).sum(-1)


class linalg_matrix_rank_atol_rtol_float(PreciseMatricesComposite):
    """Rank of a matrix: how many singular values are above the tolerances."""

    schema = ("linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None,"
              " float? rtol=None, bool hermitian=False) -> Tensor")

    def compose(self, atol, rtol, hermitian):
        return _rank(self, *_limits(self, atol, rtol), hermitian)

    def samples(s):
        yield s(s.real(3, 4))
        yield s(s.real(3, 1) @ s.real(1, 3), atol=1e-8)
        yield s(symmetric(s.real(2, 3, 3)), hermitian=True)


class linalg_matrix_rank_atol_rtol_tensor(PreciseMatricesComposite):
    """Rank of a matrix: how many singular values are above the tolerances."""

    schema = ("linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None,"
              " Tensor? rtol=None, bool hermitian=False) -> Tensor")
    compose = _rank

    def samples(s):
        yield s(s.real(2, 3, 4), atol=s.tensor([1e-8, 1.0], dt.float64))
        yield s(s.real(3, 4), rtol=s.tensor([1e-8, 0.5], dt.float64))


class linalg_matrix_rank(PreciseMatricesComposite):
    """Rank of a matrix: how many singular values are above `tol`."""

    schema = "linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor"

    def compose(self, tol, hermitian):
        return ops.linalg_matrix_rank.atol_rtol_float(self, atol=tol, rtol=0.0,
                                                      hermitian=hermitian)

    samples = lambda s: [s(s.real(3, 4), 1.0)]


class linalg_matrix_rank_tol_tensor(PreciseMatricesComposite):
    """Rank of a matrix: how many singular values are above `tol`."""

    schema = ("linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False)"
              " -> Tensor")
    writing = "out_tol_tensor"

    def compose(input, tol, hermitian):
        return _rank(input, tol, ops.zeros_like(tol), hermitian)

    samples = lambda s: [s(s.real(2, 3, 4), s.tensor([1e-8, 1.0], dt.float64))]


# ---------------------------------------------------------------------------------------------
# Least squares

DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def _lstsq_shapes(matrix, right, driver, full_rank=True):
    """Shapes of the solution, the residuals, the rank and the singular values.

    What LAPACK's drivers do not give is empty: see PyTorch's documentation.
    """
    name, driver = "torch.linalg.lstsq", "gelsy" if driver is None else driver
    check_matrix(name, matrix, "input")
    if driver not in DRIVERS:
        raise ShapeError(f"{name}: parameter `driver` should be one of ({', '.join(DRIVERS)})")
    if right.ndim < 1 or not 0 <= matrix.ndim - right.ndim <= 1:
        raise ShapeError(f"{name}: input.dim() must be greater or equal to other.dim() and "
                         "(input.dim() - other.dim()) <= 1, got shapes "
                         f"{list(matrix.shape)} and {list(right.shape)}")
    vector = right.ndim == matrix.ndim - 1
    columns = (*right.shape, 1) if vector else tuple(right.shape)
    rows, size = matrix.shape[-2:]
    if columns[-2] != rows:
        raise ShapeError(f"{name}: input.size(-2) should match other.size({-1 if vector else -2}), "
                         f"got shapes {list(matrix.shape)} and {list(right.shape)}")
    own = tuple(matrix.shape[:-2])
    lead = broadcast_shapes(own, columns[:-2])
    solution = (*lead, size) if vector else (*lead, size, columns[-1])
    over = rows > size and driver != "gelsy" and full_rank
    return [solution, (*lead, columns[-1]) if over else (0,), (0,) if driver == "gels" else own,
            (*own, min(rows, size)) if driver in ("gelsd", "gelss") else (0,)]


class linalg_lstsq(PreciseMatrices):
    """Solution of least norm of the least-squares problem |A X - B|, with its residuals."""

    schema = ("linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> "
              "(Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)")
    tags = ("dynamic_output_shape",)
    out = ("castable",)
    grad = {"self, b": ("lstsq_grads(grads[0], grads[1], self, b, solution, rcond,"
                        " grad_input_mask)")}
    push = {"solution, residuals": ("lstsq_push(self_p, self_t, b_p, b_t, solution, residuals,"
                                    " rcond)")}
    diff_outputs = (True, True, False, False)

    def run(xp, self, b, rcond, driver):
        shapes = _lstsq_shapes(self, b, driver)
        check_float("torch.linalg.lstsq", self, b)
        right = b[..., None] if b.ndim == self.ndim - 1 else b
        u, s, vh = singular("torch.linalg.lstsq", xp, self, full_matrices=False)
        if s.shape[-1]:
            limit = epsilon(xp, s) * max(self.shape[-2:]) if rcond is None else rcond
            kept = s > limit * xp.max(s, axis=-1, keepdims=True)
        else:
            kept = xp.zeros(s.shape, dtype=bool)
        rank = kept.sum(axis=-1)
        inverses = xp.where(kept, 1 / xp.where(kept, s, 1), 0).astype(s.dtype)
        solution = adjoint(xp, vh) @ (inverses[..., :, None] * (adjoint(xp, u) @ right))
        full = bool((rank == self.shape[-1]).all())
        shapes = _lstsq_shapes(self, b, driver, full or driver == "gels")
        residuals = xp.zeros(shapes[1], dtype=s.dtype)
        if residuals.size:
            residuals = (xp.abs(self @ solution - right) ** 2).sum(axis=-2)
        rank = xp.asarray(rank).astype(xp.int64)
        return (solution.reshape(shapes[0]), residuals,
                rank if shapes[2] != (0,) else xp.zeros((0,), dtype=xp.int64),
                s if shapes[3] != (0,) else xp.zeros((0,), dtype=s.dtype))

    def shape(self, b, rcond, driver):
        shapes = _lstsq_shapes(self, b, driver)
        if shapes[1] != (0,) and driver != "gels":  # empty, unless all matrices have full rank
            raise needs_data("torch.linalg.lstsq with its residuals")
        return shapes

    def dtype(self, b, rcond, driver):
        real = self.dtype.to_real()
        return [self.dtype, real, dt.int64, real]

    def batch(n, batched, self, b, rcond, driver):
        matrix = self if batched[0] else self.expand((n, *self.shape))
        right = b if batched[1] else b.expand((n, *b.shape))
        out = ops.linalg_lstsq(matrix, right, rcond, driver=driver)
        return type(out)(*(o.new_zeros((n, 0)) if tuple(o.shape) == (0,) else o for o in out))

    def samples(s):
        for matrix, right in (((4, 3), (4, 2)), ((3, 4), (3, 2)), ((2, 4, 3), (2, 4)),
                              ((3, 3), (3,)), ((2, 3, 2), (2, 3, 1))):
            for driver in ("gelsd", "gels", None):
                yield s(s.real(*matrix), s.real(*right), driver=driver)
        yield s(s.real(1, 4, 3), s.real(2, 4, 1), driver="gelss")
