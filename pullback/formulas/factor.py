"""Derivative formulas of LU, QR, singular and eigenvalue decompositions.

All functions are batched over leading dims; A^H is the conjugate transpose of A, `s` and `l` are
singular values and eigenvalues, dX is the tangent of X.

Vectors of a decomposition are free up to a phase, and up to a rotation where values coincide.  A
loss must not depend on that freedom.  Where the values of all tensors are known, a dependence on
phases is refused with a message.  Equal values are the zero gaps of `_over_gap`: where the
loss does not notice the rotation the quotient 0/0 is 0, everywhere else the result is infinite.
Read `ops/factor.py` next, where these are used, and `formulas/linalg.py` for solvers.
"""

from __future__ import annotations

from .. import errors
from ..array.dtype import finfo
from ..table.packets import ops
from ..threads.state import in_passing
from .linalg import diagonal_of, identity_like, solve_tri

# ---------------------------------------------------------------------------------------------
# LU


def lu_factor_grad(grad, packed, pivots, pivot):
    """Gradient of A from that of the packed factors of A = P L U."""
    size = min(packed.shape[-2:])
    order, lower, upper = ops.lu_unpack(packed, pivots, True, pivot)
    return lu_grad(grad[..., :size], grad[..., :size, :], order if pivot else None, lower, upper)


def lu_factor_push(tangent, packed, pivots, pivot):
    """Tangent of the packed factors of A = P L U."""
    order, lower, upper = ops.lu_unpack(packed, pivots, True, pivot)
    return pack_lu(*lu_push(tangent, order if pivot else None, lower, upper), packed.shape)


def pack_lu(lower, upper, shape):
    """One matrix of `shape`: `lower` below the diagonal, `upper` from the diagonal on.

    Either may be None, which counts as zeros.
    """
    rows, columns = shape[-2:]
    parts = []
    if lower is not None:
        parts.append(ops.constant_pad_nd(lower.tril(-1), [0, columns - lower.shape[-1]]))
    if upper is not None:
        parts.append(ops.constant_pad_nd(upper.triu(), [0, 0, 0, rows - upper.shape[-2]]))
    return sum(parts[1:], parts[0])


def unpack_lu(packed, wanted):
    """Tangents of L and U from that of the packed factors; empty if they are not wanted."""
    if not wanted:
        return packed.new_zeros((0,)), packed.new_zeros((0,))
    size = min(packed.shape[-2:])
    return packed[..., :size].tril(-1), packed[..., :size, :].triu()


def lu_grad(grad_lower, grad_upper, order, lower, upper):
    """Gradient of A = P L U, which may be square, wide or tall; P is None without pivoting.

    With the square leading parts L1, U1 and M = L^H gL, N = gU U^H, projected on the strictly
    lower and the upper triangle: gA = P L1^-H (M + N) U1^-H where A is square; the rows below and
    the columns behind receive what the factors there leave over.
    """
    size = min(lower.shape[-2], upper.shape[-1])
    lower1, upper1 = lower[..., :size, :], upper[..., :size]
    if grad_lower is not None:
        grad_lower = grad_lower.tril(-1)
    if grad_upper is not None:
        grad_upper = grad_upper.triu()
    if lower.shape[-2] <= upper.shape[-1]:
        inner = _total(lower.mH @ grad_lower if grad_lower is not None else None,
                       -(grad_upper @ upper.mH) if grad_upper is not None else None)
        left = solve_tri(upper1.mH, inner.tril(-1), upper=False, left=False)
        left = ops.constant_pad_nd(left, [0, upper.shape[-1] - size])
        result = solve_tri(lower.mH, _total(left, grad_upper), upper=True, unit=True)
    else:
        inner = _total(grad_upper @ upper.mH if grad_upper is not None else None,
                       -(lower.mH @ grad_lower) if grad_lower is not None else None)
        top = solve_tri(lower1.mH, inner.triu(), upper=True, unit=True)
        top = ops.constant_pad_nd(top, [0, 0, 0, lower.shape[-2] - size])
        result = solve_tri(upper.mH, _total(top, grad_lower), upper=False, left=False)
    return result if order is None else order @ result


def lu_push(tangent, order, lower, upper):
    """Tangents of L and U: with M = L1^-1 P^T dA1 U1^-1, dL1 = L1 stril(M) and dU1 = triu(M) U1."""
    size = min(lower.shape[-2], upper.shape[-1])
    lower1, upper1 = lower[..., :size, :], upper[..., :size]
    change = tangent if order is None else order.mT @ tangent
    left = solve_tri(lower1, change[..., :size, :], upper=False, unit=True)
    middle = solve_tri(upper1, left[..., :size], upper=True, left=False)
    below, above = middle.tril(-1), middle.triu()
    lower_t, upper_t = lower1 @ below, above @ upper1
    if upper.shape[-1] > size:
        upper_t = ops.cat([upper_t, left[..., size:] - below @ upper[..., size:]], -1)
    if lower.shape[-2] > size:
        rest = solve_tri(upper, change[..., size:, :], upper=True, left=False)
        lower_t = ops.cat([lower_t, rest - lower[..., size:, :] @ above], -2)
    return lower_t, upper_t


def _total(first, second):
    """A sum in which None counts as zero."""
    if first is None or second is None:
        return second if first is None else first
    return first + second


# ---------------------------------------------------------------------------------------------
# QR


def _check_qr(mode, rows, columns):
    if mode == "r":
        raise errors.NotDifferentiable(errors.text(
            f"linalg_qr has no derivative with mode='r' ({errors.user_line(2)})",
            "the derivative of R needs Q", "use mode='reduced'"))
    if mode == "complete" and rows > columns:
        raise errors.NotDifferentiable(errors.text(
            f"linalg_qr has no derivative with mode='complete' for a matrix with more rows than "
            f"columns ({errors.user_line(2)})", f"the matrix is {rows} by {columns}: the last "
            "columns of Q are any basis of the complement", "use mode='reduced'"))


def qr_grad(grad_q, grad_r, q, r, mode, shape):
    """Gradient of A = Q R, with M = gR R^H - Q^H gQ.

    Tall: gA = (gQ + Q Y) R^-H, where Y is Hermitian with the upper triangle of M.  Wide, with
    R = (R1 R2): gA = (Q N R1^-H  0) + Q gR, where N is the lower triangle of M^H - M.
    """
    rows, columns = shape[-2:]
    _check_qr(mode, rows, columns)
    middle = _total(grad_r @ r.mH if grad_r is not None else None,
                    -(q.mH @ grad_q) if grad_q is not None else None)
    if rows >= columns:
        above = middle.triu(1)
        inner = above + above.mH + ops.diag_embed(ops.real(diagonal_of(middle)))
        left = _total(grad_q, q @ inner)
        return solve_tri(r.mH, left, upper=False, left=False)
    skew = (middle.mH - middle).tril()
    skew = skew - ops.diag_embed(diagonal_of(skew)) / 2  # M counts once there, not twice
    result = q @ solve_tri(r[..., :rows].mH, skew, upper=False, left=False)
    result = ops.constant_pad_nd(result, [0, columns - rows])
    return result if grad_r is None else result + q @ grad_r


def qr_push(tangent, q, r, mode):
    """Tangents of Q and R.

    W = Q^H dA1 R1^-1 is skew (Q^H dQ) plus upper triangular with a real diagonal (dR1 R1^-1).
    """
    rows, columns = tangent.shape[-2:]
    _check_qr(mode, rows, columns)
    size = min(rows, columns)
    scaled = solve_tri(r[..., :size], tangent[..., :size], upper=True, left=False)
    mixed = q.mH @ scaled
    both = mixed + mixed.mH
    above = both.triu(1) + ops.diag_embed(diagonal_of(both) / 2)
    q_t = scaled - q @ above
    if rows >= columns:
        return q_t, above @ r
    r_t = q.mH @ tangent - (mixed - above) @ r
    return q_t, r_t.triu()


# ---------------------------------------------------------------------------------------------
# What singular and eigenvalue decompositions share


def _check_vectors(name, has_vectors, state, instead):
    """Derivatives of values need the vectors too."""
    if not has_vectors:
        raise errors.NotDifferentiable(errors.text(
            f"{name} has no derivative without vectors ({errors.user_line(2)})", state,
            f"ask for vectors, or use {instead}"))


def _epsilon(tensor) -> float:
    return finfo(tensor.dtype).eps


def _over_gap(numerator, gap, near, settled):
    """numerator / gap; where the gap is closed, 0 if that is `settled`, else infinite."""
    closed = gap.abs() <= near
    harmless = closed & settled
    safe = ops.where(harmless, 1.0, ops.where(closed, 0.0, gap))
    return ops.where(harmless, 0.0, numerator / safe)


def _resolution(values):
    """Differences of values below this are rounding errors."""
    size = values.detach().abs().amax(-1, True)
    return (values.shape[-1] * _epsilon(values) * size)[..., None]


def _pairs(values, sign):
    """Matrix of v_j - v_i (or + for sign 1), with ones on a diagonal of zeros."""
    pairs = values[..., None, :] + sign * values[..., :, None]
    if sign > 0:
        return pairs
    return pairs + identity_like(pairs)


def _noise(weights):
    """Gradients below this, given the lengths of gradients of vectors, are rounding errors."""
    return 64 * weights.shape[-1] * _epsilon(weights) * weights.amax(-1, True)


def _lengths(*grads):
    """Length of each column, over several matrices of gradients."""
    squares = [g.detach().abs().square().sum(-2) for g in grads if g is not None]
    return sum(squares[1:], squares[0]).sqrt()


def _settled(numerator, weights, grad_values):
    """Pairs of vectors whose rotation into one another the loss does not notice.

    A vanishing numerator says so if the loss does not use the values.  If it does, the numerator
    may vanish because the values are equal, and its quotient by their gap has a limit that
    cannot be known here; then only pairs are settled of which neither vectors nor values are used.
    """
    noise = _noise(weights)
    quiet = numerator.detach().abs() <= noise[..., None]
    if grad_values is None:
        return quiet
    unused = (weights <= noise) & (grad_values.detach() == 0)
    return quiet & unused[..., :, None] & unused[..., None, :]


def _settled_columns(numerator, weights, grad_values):
    """Vectors whose motion out of their span the loss does not notice, in the same sense."""
    quiet = numerator.detach().abs() <= _noise(weights)[..., None]
    if grad_values is None:
        return quiet
    return quiet & (grad_values.detach() == 0)[..., None, :]


def _depends_on_something(t) -> bool:
    """Does a tensor vary, at any level of nested transforms?"""
    while True:
        if t._edge is not None or hasattr(t._payload, "tangent"):
            return True
        if not hasattr(t._payload, "inner"):
            return False
        t = t._payload.inner


def _wary(grad, values):
    """A gradient of values whose own derivative is infinite where values are equal.

    The gradient of values needs vectors; the derivative of that is a quotient of differences of
    gradients and of values.  If the gradient is a function of the values, 0/0 has a limit that
    cannot be known here.  A constant one cannot differ between values that are equal.
    """
    return grad + _kink(values) if _depends_on_something(grad) else grad


def _kink(values):
    """Zeros with an infinite derivative where values are equal."""
    fixed = values.detach()
    if fixed.numel() == 0:
        return values
    closed = (_pairs(fixed, -1).abs() <= _resolution(fixed)).any(-1)
    return ops.where(closed, ops.where(closed, values - fixed, 1.0).sqrt(), 0.0)


def _set_diagonal(matrix, values):
    """The matrix with another diagonal (zeros if None)."""
    eye = identity_like(matrix)
    off = ops.where(eye != 0, 0.0, matrix)
    return off if values is None else off + ops.diag_embed(values)


def _skew(matrix):
    return matrix - matrix.mH


@in_passing
def _depends(turn, weights) -> bool:
    """Is a derivative with respect to something arbitrary not zero?  False if that is not known.

    Only a look at values can tell; there are none in a batch, a trace or a compiled function.
    """
    if turn.numel() == 0:
        return False
    from ..memory.reading import concrete
    relative = 1e-2 if _epsilon(turn) > 1e-10 else 1e-5
    try:
        return bool(concrete((turn.detach().abs() > relative * weights).any(), "a check"))
    except errors.DataDependentError:
        return False


def _refuse_phases(name, turn, weights, what):
    """Raise if a loss depends on phases, given its derivatives with respect to them."""
    if _depends(turn, weights.amax(-1, True)):
        raise errors.NotDifferentiable(errors.text(
            f"{name}: the loss depends on the phase of {what}, which is arbitrary: there is no "
            f"derivative ({errors.user_line(2)})",
            f"largest derivative with respect to a phase: {turn.detach().abs().max().item():.3g}",
            ["use what no phase changes: abs(), products of a vector with its own conjugate",
             "or fix the phases, for instance by making the first component of each vector real"]))


def _refuse_rotations(name, inner, weights, what):
    """Raise if a loss depends on the basis B of a complement, given B^H gB."""
    if _depends(_skew(inner), weights.amax(-1, True)[..., None]):
        raise errors.NotDifferentiable(errors.text(
            f"{name}: the loss depends on the choice of the further {what} that full_matrices=True "
            f"adds, which is arbitrary: there is no derivative ({errors.user_line(2)})",
            cure="use full_matrices=False, or only the projector on these vectors"))


# ---------------------------------------------------------------------------------------------
# Singular values


def svd_grad(grad_u, grad_s, grad_vh, u, s, vh, full, has_vectors, matrix=None):
    """Gradient of A = U S V^H; of the values alone it computes the vectors itself, from A.

    With a = skew(U^H gU), b = skew(V^H gV): gA = U (C + diag(gs)) V^H, where
    C_ij = ((a + b)_ij / (s_j - s_i) + (a - b)_ij / (s_j + s_i)) / 2, and a (b) leaves over what
    moves U (V) out of its span: (I - U U^H) gU S^-1 V^H and U S^-1 gV^H (I - V V^H).
    """
    size = s.shape[-1]
    if not has_vectors and matrix is not None:
        return ops.zeros_like(matrix) if grad_s is None else svdvals_grad(grad_s, matrix)
    _check_vectors("_linalg_svd", has_vectors, "compute_uv is False", "linalg.svdvals")
    grad_v = None if grad_vh is None else grad_vh.mH
    v = vh.mH
    if full:
        u, grad_u = _thin(u, grad_u, size, "left singular vectors")
        v, grad_v = _thin(v, grad_v, size, "right singular vectors")
    if grad_u is None and grad_v is None:
        return (u * grad_s[..., None, :].to(u.dtype)) @ v.mH
    if size == 0:
        return u @ v.mH
    inner_u = None if grad_u is None else u.mH @ grad_u
    inner_v = None if grad_v is None else v.mH @ grad_v
    a = _skew(inner_u) if grad_u is not None else None
    b = _skew(inner_v) if grad_v is not None else None
    plus, minus = _total(a, b), _total(a, None if b is None else -b)
    weights, near = _lengths(grad_u, grad_v), _resolution(s)
    if u.dtype.is_complex:
        _refuse_phases("linalg_svd", ops.imag(diagonal_of(plus)), weights, "singular vectors")
    still = _settled(plus, weights, grad_s)
    core = _set_diagonal(_over_gap(plus, _pairs(s, -1), near, still), None)
    still = _settled(minus, weights, grad_s) | _quiet_diagonal(minus)
    core = (core + _over_gap(minus, _pairs(s, 1), near, still)) / 2
    if grad_s is not None:
        core = core + ops.diag_embed(grad_s.to(core.dtype))
    result = core @ v.mH
    if grad_u is not None and u.shape[-2] > size:
        out = grad_u - u @ inner_u
        out = _over_gap(out, s[..., None, :], near, _settled_columns(out, weights, grad_s))
        result = u @ result + out @ v.mH
    else:
        result = u @ result
    if grad_v is not None and v.shape[-2] > size:
        out = grad_v - v @ inner_v
        out = _over_gap(out, s[..., None, :], near, _settled_columns(out, weights, grad_s))
        result = result + u @ out.mH
    return result


def _thin(vectors, grad, size, what):
    """The vectors that belong to singular values, and their gradient.

    The others, B, span the complement of these, U: a loss may depend on their span, which turns
    with U by dB = -U (B^H dU)^H, but not on the basis.
    """
    first = vectors[..., :size]
    if grad is None or vectors.shape[-1] == size:
        return first, grad
    rest, grad_rest = vectors[..., size:], grad[..., size:]
    _refuse_rotations("linalg_svd", rest.mH @ grad_rest, _lengths(grad_rest), what)
    return first, grad[..., :size] - rest @ (grad_rest.mH @ first)


def svd_push(tangent, u, s, vh, full, has_vectors, matrix):
    """Tangents of U, S and V^H; of the values alone it computes the vectors itself, from A.

    With P = U^H dA V: ds = Re diag(P), and the rotations of U and V are half the sum and half the
    difference of (P + P^H)_ij / (s_j - s_i) and (P - P^H)_ij / (s_j + s_i).
    """
    if not has_vectors:
        return ops.zeros_like(u), svdvals_push(tangent, matrix), ops.zeros_like(vh)
    size = s.shape[-1]
    whole_u, whole_v = u, vh.mH
    u, v = whole_u[..., :size], whole_v[..., :size]
    if size == 0:
        return ops.zeros_like(whole_u), ops.zeros_like(s), ops.zeros_like(vh)
    change = tangent @ v
    inner = u.mH @ change
    s_t = ops.real(diagonal_of(inner))
    near, still = _resolution(s), _at_rest(tangent)
    both = inner + inner.mH
    turn = _set_diagonal(_over_gap(both, _pairs(s, -1), near, still), None)
    spread = _over_gap(_skew(inner), _pairs(s, 1), near, _quiet_diagonal(inner) | still)
    u_t, v_t = u @ (turn + spread) / 2, v @ (turn - spread) / 2
    if u.shape[-2] > size:
        u_t = u_t + _over_gap(change - u @ inner, s[..., None, :], near, still)
    if v.shape[-2] > size:
        back = tangent.mH @ u
        v_t = v_t + _over_gap(back - v @ inner.mH, s[..., None, :], near, still)
    if full:
        u_t, v_t = _whole(whole_u, u_t, size), _whole(whole_v, v_t, size)
    return u_t, s_t, v_t.mH


def _whole(vectors, moved, size):
    """The tangent of all vectors: the further ones stay orthogonal to the first `size`."""
    if vectors.shape[-1] == size:
        return moved
    first, rest = vectors[..., :size], vectors[..., size:]
    return ops.cat([moved, -(first @ (moved.mH @ rest))], -1)


def _at_rest(tangent):
    """Is a matrix of tangents zero?  Then nothing moves, whatever the gaps."""
    return (tangent.detach() == 0).flatten(-2).all(-1)[..., None, None]


def _quiet_diagonal(matrix):
    """The diagonal, for real matrices: a skew one has zeros there, whatever divides them."""
    eye = identity_like(matrix)
    return (eye == 2) if matrix.dtype.is_complex else (eye != 0)


def svdvals_grad(grad, matrix):
    """Gradient of singular values: U diag(g) V^H."""
    u, s, vh = ops._linalg_svd(matrix)
    return (u * _wary(grad, s)[..., None, :].to(u.dtype)) @ vh


def svdvals_push(tangent, matrix):
    """Tangent of singular values: Re diag(U^H dA V)."""
    u, s, vh = ops._linalg_svd(matrix)
    moved = (u.conj() * (tangent @ vh.mH)).sum(-2)
    return ops.real(moved) + _kink(s)  # see `_wary`: what becomes of the tangent is not known


# ---------------------------------------------------------------------------------------------
# Eigenvalues


def eigh_grad(grad_values, grad_vectors, values, vectors, has_vectors, matrix=None, uplo="L"):
    """Gradient of a Hermitian A = V diag(l) V^H; of the values alone it computes V itself, from A.

    gA = V (K + diag(gl)) V^H with K_ij = skew(V^H gV)_ij / (2 (l_j - l_i)).
    """
    if not has_vectors and matrix is not None:
        return (ops.zeros_like(matrix) if grad_values is None
                else eigvalsh_grad(grad_values, matrix, uplo))
    _check_vectors("_linalg_eigh", has_vectors, "compute_v is False", "linalg.eigvalsh")
    if grad_vectors is None:
        return (vectors * grad_values[..., None, :].to(vectors.dtype)) @ vectors.mH
    if values.shape[-1] == 0:
        return vectors @ vectors.mH
    turn = _skew(vectors.mH @ grad_vectors)
    weights = _lengths(grad_vectors)
    if vectors.dtype.is_complex:
        _refuse_phases("linalg_eigh", ops.imag(diagonal_of(turn)), weights, "eigenvectors")
    settled = _settled(turn, weights, grad_values)
    inner = _over_gap(turn / 2, _pairs(values, -1), _resolution(values), settled)
    diagonal = None if grad_values is None else grad_values.to(inner.dtype)
    return vectors @ _set_diagonal(inner, diagonal) @ vectors.mH


def eigh_push(tangent, values, vectors, has_vectors, matrix, uplo):
    """Tangents of eigenvalues and eigenvectors: with E = V^H dA V, dl = diag(E), and
    dV = V K with K_ij = E_ij / (l_j - l_i).  Only the Hermitian part of dA counts."""
    if not has_vectors:
        return eigvalsh_push(tangent, matrix, uplo), ops.zeros_like(vectors)
    if values.shape[-1] == 0:
        return ops.zeros_like(values), ops.zeros_like(vectors)
    inner = vectors.mH @ ((tangent + tangent.mH) / 2) @ vectors
    moved = diagonal_of(inner)
    turn = _over_gap(inner, _pairs(values, -1), _resolution(values), _at_rest(tangent))
    return ops.real(moved), vectors @ _set_diagonal(turn, None)


def eigvalsh_grad(grad, matrix, uplo):
    """Gradient of the eigenvalues of a Hermitian matrix: V diag(g) V^H."""
    values, vectors = ops._linalg_eigh(matrix, uplo)
    return (vectors * _wary(grad, values)[..., None, :].to(vectors.dtype)) @ vectors.mH


def eigvalsh_push(tangent, matrix, uplo):
    """Tangent of the eigenvalues of a Hermitian matrix: diag(V^H dA V)."""
    values, vectors = ops._linalg_eigh(matrix, uplo)
    moved = (vectors.conj() * (tangent @ vectors)).sum(-2)
    return ops.real(moved) + _kink(values)  # see `_wary`


def eig_grad(grad_values, grad_vectors, values, vectors):
    """Gradient of A = V diag(l) V^-1 with columns of unit length.

    With N = V^H gV, gA = V^-H (K + diag(gl)) V^H and
    K_ij = (N - V^H V diag(Re diag N))_ij / conj(l_j - l_i).
    """
    if grad_vectors is None:
        scaled = grad_values[..., :, None] * vectors.mH
        return ops.linalg_solve_ex(vectors.mH, scaled)[0]
    if values.shape[-1] == 0:
        return vectors @ vectors.mH
    inner = vectors.mH @ grad_vectors
    weights = _lengths(grad_vectors)
    _refuse_phases("linalg_eig", ops.imag(diagonal_of(inner)), weights, "eigenvectors")
    growth = ops.real(diagonal_of(inner)).to(inner.dtype)
    turn = inner - (vectors.mH @ vectors) * growth[..., None, :]
    settled = _settled(turn, weights, grad_values)
    core = _over_gap(turn, _pairs(values, -1).conj(), _resolution(values), settled)
    core = _set_diagonal(core, grad_values)
    return ops.linalg_solve_ex(vectors.mH, core @ vectors.mH)[0]


def eig_push(tangent, values, vectors):
    """Tangents of eigenvalues and eigenvectors of a general matrix.

    With E = V^-1 dA V: dl = diag(E), dV = V K with K_ij = E_ij / (l_j - l_i), and the part of
    each column along itself is removed, because its length stays 1.
    """
    if values.shape[-1] == 0:
        return ops.zeros_like(values), ops.zeros_like(vectors)
    tangent = tangent.to(vectors.dtype)
    inner = ops.linalg_solve_ex(vectors, tangent @ vectors)[0]
    turn = _over_gap(inner, _pairs(values, -1), _resolution(values), _at_rest(tangent))
    moved = vectors @ _set_diagonal(turn, None)
    growth = ops.real((vectors.conj() * moved).sum(-2, True)).to(moved.dtype)
    return diagonal_of(inner), moved - vectors * growth


def eigvals_grad(grad, matrix):
    """Gradient of the eigenvalues of a general matrix: V^-H diag(g) V^H."""
    values, vectors = ops.linalg_eig(matrix)
    return eig_grad(_wary(grad, values), None, values, vectors)


def eigvals_push(tangent, matrix):
    """Tangent of the eigenvalues of a general matrix: diag(V^-1 dA V)."""
    values, vectors = ops.linalg_eig(matrix)
    moved = ops.linalg_solve_ex(vectors, tangent.to(vectors.dtype) @ vectors)[0]
    return diagonal_of(moved) + _kink(values)  # see `_wary`
