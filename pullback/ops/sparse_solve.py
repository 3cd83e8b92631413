"""Systems with a sparse matrix, triangular ones, determinants, eigenvectors: operators on entries.

A matrix is square and given by the rows, the columns and the values of its entries, as in
`sparse_products.py`; entries of one place are added up.  `sparse/solve.py` composes the public
functions of these, their derivatives are in `formulas/sparse_solve.py`, what SciPy does for them in
`sparse_factors.py`.
"""

from __future__ import annotations

import numpy as np

from ..array import dtype as dt
from ..errors import LinAlgError, text, user_line
from ..table.packets import ops
from . import sparse_factors
from .lapack import check_float, named
from .sparse_products import OfEntries, _check, _check_parts, blocks, joined


def _check_system(name: str, rows, cols, values, b) -> None:
    _check_parts(name, (rows, cols, values), (b,))
    check_float(name, values)
    _check(name, rows, b.shape[0])
    _check(name, cols, b.shape[0])


def _on_host(xp, kernel, *arrays):
    """What SciPy finds, for arrays of a namespace that is not its own."""
    if not hasattr(xp, "asnumpy"):
        return kernel(*arrays)
    found = kernel(*[xp.asnumpy(a) for a in arrays])
    return tuple(map(xp.asarray, found)) if isinstance(found, tuple) else xp.asarray(found)


class SolvesEntries(OfEntries):
    """A system with the entries of a matrix: right sides beside each other are the columns of B."""

    def shape(rows, cols, values, b, *options):
        return tuple(b.shape)

    def dtype(rows, cols, values, b, *options):
        return b.dtype

    @classmethod
    def batch(cls, n, batched, rows, cols, values, b, *options):
        solve = getattr(ops, cls.base_name)
        if not any(batched[:3]):  # more columns
            size, width = b.shape[1:]
            out = solve(rows, cols, values, b.transpose(0, 1).reshape(size, n * width), *options)
            return out.reshape(size, n, width).transpose(0, 1)
        b = b if batched[3] else b.expand((n, *b.shape))
        size, width = b.shape[1:]
        rows, cols = [blocks(p, is_batched, n, size) for p, is_batched in zip((rows, cols), batched)]
        values = (values if batched[2] else values.expand((n, *values.shape))).reshape(-1)
        return solve(rows, cols, values, joined(b), *options).reshape(n, size, width)


PLACES = [0, 1, 2, 0, 2, 2], [0, 1, 2, 2, 1, 2]  # the last place twice


def _entries(s):
    """Rows, columns and values of a matrix that is far from singular."""
    rows, cols = [s.tensor(p, dt.int64) for p in PLACES]
    return rows, cols, s.real(6) + s.values([4, 5, 3, 0, 0, 3])


def _none(s):
    return s.tensor([], dt.int64), s.tensor([], dt.int64)


class _sparse_solve(SolvesEntries):
    """Solution X of A X = B with a sparse matrix."""

    schema = "_sparse_solve(Tensor rows, Tensor cols, Tensor values, Tensor b) -> Tensor"
    grad = {"values, b": "sparse_solve_grads(grad, rows, cols, values, result, grad_input_mask)"}
    push = "sparse_solve_push(rows, cols, values_p, values_t, b_t, result)"

    def run(xp, rows, cols, values, b):
        _check_system("torch.linalg.solve", rows, cols, values, b)

        def solve(*arrays):
            return sparse_factors.solved("torch.linalg.solve", *arrays)

        return _on_host(xp, solve, rows, cols, values, b)

    def samples(s):
        yield s(*_entries(s), s.real(3, 2))
        yield s(*_entries(s), s.real(3, 0))
        yield s(*_none(s), s.real(0), s.real(0, 2))


class _sparse_triangular_solve(SolvesEntries):
    """Solution X of A X = B by the entries of one triangle of a sparse matrix.

    With `unitriangular` the diagonal is one whatever the entries say.
    """

    schema = ("_sparse_triangular_solve(Tensor rows, Tensor cols, Tensor values, Tensor b, "
              "bool upper, bool unitriangular) -> Tensor")
    grad = {"values, b": ("sparse_triangular_grads(grad, rows, cols, values, result, upper, "
                          "unitriangular, grad_input_mask)")}
    push = ("sparse_triangular_push(rows, cols, values_p, values_t, b_t, result, upper, "
            "unitriangular)")

    def run(xp, rows, cols, values, b, upper, unitriangular):
        _check_system("linalg.solve_triangular", rows, cols, values, b)

        def solve(*arrays):
            return sparse_factors.solved_triangle(*arrays, upper, unitriangular)

        return _on_host(xp, solve, rows, cols, values, b)

    def samples(s):
        for upper in (False, True):
            for unitriangular in (False, True):
                yield s(*_entries(s), s.real(3, 2), upper, unitriangular)
        yield s(*_none(s), s.real(0), s.real(0, 2), True, False)


class EachByItself(OfEntries):
    """A function of the entries of matrices that are not blocks of one, in a batch."""

    @classmethod
    def batch(cls, n, batched, *flat):
        function = getattr(ops, cls.base_name)
        each = [function(*[v[k] if is_batched else v for v, is_batched in zip(flat, batched)])
                for k in range(n)]
        return named(cls.base_name, *[ops.stack(list(v)) for v in zip(*each)])


class _sparse_slogdet(EachByItself):
    """Sign (or phase) and logarithm of the absolute value of the determinant of a sparse matrix."""

    schema = ("_sparse_slogdet(Tensor rows, Tensor cols, Tensor values, SymInt size)"
              " -> (Tensor sign, Tensor logabsdet)")
    grad = {"values": ("sparse_slogdet_grad(grad_sign, grad_logabsdet, rows, cols, values, size, "
                       "sign)")}
    push = {"sign, logabsdet": "sparse_slogdet_push(rows, cols, values_p, values_t, size, sign)"}
    diff_outputs = (True, True)

    def run(xp, rows, cols, values, size):
        _check_parts("linalg.slogdet", (rows, cols, values), ())
        check_float("linalg.slogdet", values)
        for places in (rows, cols):
            _check("linalg.slogdet", places, size)
        return _on_host(xp, lambda *arrays: sparse_factors.log_determinant(*arrays, size),
                        rows, cols, values)

    def shape(rows, cols, values, size):
        return [(), ()]

    def dtype(rows, cols, values, size):
        return [values.dtype, values.dtype.to_real()]

    def samples(s):
        yield s(*_entries(s), 3)
        yield s(*_none(s), s.real(0), 0)


WHOLE = 512  # rows of a matrix up to which all its eigenvectors are found


def _dense(rows, cols, values, size):
    """The Hermitian part of a matrix."""
    out = np.zeros((size, size), values.dtype)
    np.add.at(out, (rows, cols), values)
    return (out + out.conj().T) / 2


def _sparse(rows, cols, values, size):
    """The same for a large one."""
    from scipy.sparse import csc_array

    out = csc_array((values, (rows, cols)), shape=(size, size))
    return ((out + out.conj().T) / 2).tocsc()


def _is_identity(rows, cols, values, size) -> bool:
    line = np.arange(size)
    return (values.size == size and np.array_equal(rows, line) and np.array_equal(cols, line)
            and bool((values == 1).all()))


def eigenpairs(matrix: tuple, other: tuple, size: int, k: int, largest: bool) -> tuple:
    """The k largest or smallest eigenvalues of A v = l B v, and their vectors."""
    from scipy.linalg import LinAlgError as Failed
    from scipy.linalg import eigh
    from scipy.sparse.linalg import ArpackNoConvergence, eigsh

    plain = _is_identity(*other, size)
    try:
        if size <= WHOLE or k >= size - 1:
            numbers, vectors = eigh(_dense(*matrix, size),
                                    None if plain else _dense(*other, size))
            numbers, vectors = (numbers[-k:], vectors[:, -k:]) if largest else (
                numbers[:k], vectors[:, :k])
        else:
            start = np.random.default_rng(0).uniform(0.5, 1.5, size).astype(matrix[2].dtype)
            numbers, vectors = eigsh(
                _sparse(*matrix, size), k, None if plain else _sparse(*other, size),
                which="LA" if largest else "SA", v0=start, ncv=min(size, max(4 * k, 40)))
            order = np.argsort(numbers)
            numbers, vectors = numbers[order], vectors[:, order]
    except (ArpackNoConvergence, Failed) as error:
        raise LinAlgError(text(
            f"lobpcg: the eigenvalues were not found ({user_line(2)}): {error}",
            f"matrix: {matrix[2].dtype}[{size}, {size}], k={k}",
            "see that B is positive definite; ask for fewer, or of a smaller matrix")) from None
    if largest:
        numbers, vectors = numbers[::-1], vectors[:, ::-1]
    kind = matrix[2].dtype
    return np.array(numbers, kind.type(0).real.dtype), np.array(vectors, kind, order="C")


def _up_to_phase(numbers, vectors):
    """What does not depend on the signs of eigenvectors."""
    return numbers, vectors.unsqueeze(0) * vectors.conj().unsqueeze(1)


class _sparse_eigh(EachByItself):
    """Some of the largest or smallest eigenvalues of A v = l B v, where v^H B v = 1, with vectors.

    A and B are the Hermitian parts of two sparse matrices, and B is positive definite.
    """

    schema = ("_sparse_eigh(Tensor rows, Tensor cols, Tensor values, Tensor rows_b, Tensor cols_b, "
              "Tensor values_b, SymInt size, int k, bool largest)"
              " -> (Tensor numbers, Tensor vectors)")
    nondiff = ("rows", "cols", "rows_b", "cols_b")
    grad = {"values, values_b": (
        "sparse_eigh_grads(grad_numbers, grad_vectors, rows, cols, values, rows_b, cols_b, "
        "values_b, numbers, vectors, grad_input_mask)")}
    push = {"numbers, vectors": (
        "sparse_eigh_push(rows, cols, values_p, values_t, rows_b, cols_b, values_b_p, values_b_t, "
        "numbers, vectors)")}
    diff_outputs = (True, True)
    invariant = _up_to_phase

    def run(xp, rows, cols, values, rows_b, cols_b, values_b, size, k, largest):
        _check_parts("lobpcg", (rows, cols, values), ())
        _check_parts("lobpcg", (rows_b, cols_b, values_b), ())
        check_float("lobpcg", values, values_b)
        for places in (rows, cols, rows_b, cols_b):
            _check("lobpcg", places, size)
        return _on_host(xp, lambda *a: eigenpairs(a[:3], a[3:], size, k, largest),
                        rows, cols, values, rows_b, cols_b, values_b)

    def shape(rows, cols, values, rows_b, cols_b, values_b, size, k, largest):
        return [(k,), (size, k)]

    def dtype(rows, cols, values, rows_b, cols_b, values_b, size, k, largest):
        return [values.dtype.to_real(), values.dtype]

    def samples(s):
        line = s.tensor([0, 1, 2], dt.int64)
        one, other = s.values([1.0, 1, 1]), s.values([2.0, 3, 4])
        for largest in (True, False):
            yield s(*_entries(s), line, line, one, 3, 2, largest)
            yield s(*_entries(s), line, line, other + 0.1 * s.real(3), 3, 1, largest)
