"""Products with a sparse matrix, as operators on its parts: `sparse/` composes everything of them.

A matrix is given by the rows, the columns and the values of its entries, in any order, an entry as
often as one likes.  Both are linear in each of their numbers, and each is in the derivative of the
other, so all orders and modes follow, at the cost of the entries: never is there a dense matrix.
"""

from __future__ import annotations

import contextlib

import numpy as np
from scipy.sparse import _sparsetools

from ..core.op import Op
from ..errors import DTypeError, ShapeError
from ..table.packets import ops
from .matmul import is_half

BLOCK = 1 << 22  # numbers that are gathered at a time
LOOKUP = 6  # how much longer it takes to find a number than to multiply two
LARGE = 1 << 14  # multiplications that C does, where there is a library


class OfEntries(Op):
    """A product of entries, of which the places are integers."""

    promote = "keep"
    function = method = False
    complex = True
    cost = "heavy"
    intensive = True
    kept = "kernel"
    nondiff = ("rows", "cols")


def _check(name: str, places, size: int) -> None:
    """Refuse entries outside of a matrix: what comes next reads and writes memory by them."""
    if places.size and (int(places.min()) < 0 or int(places.max()) >= size):
        raise IndexError(f"{name}: an entry is at {int(places.min())} or {int(places.max())}, "
                         f"outside of the size {size}")


def _check_parts(name: str, entries: tuple, matrices: tuple) -> None:
    """Refuse parts of entries that are not of one length, and what is no matrix."""
    for array in entries:
        if len(array.shape) != 1 or array.shape != entries[0].shape:
            raise ShapeError(f"{name}: rows, columns and values must be of one length, got "
                             f"{[list(a.shape) for a in entries]}")
    for array in entries[:2]:
        if array.dtype.kind != "i":
            raise DTypeError(f"{name}: rows and columns must be integers, got {array.dtype}")
    for array in matrices:
        if len(array.shape) != 2:
            raise ShapeError(f"{name}: expected a matrix, got {list(array.shape)}")
    floats = (*entries[2:], *matrices)
    if any(a.dtype != floats[0].dtype for a in floats):
        raise DTypeError(f"{name}: expected one dtype, got {[str(a.dtype) for a in floats]}")


def _wide(array):
    """An array as the library takes it: of a dtype that it knows."""
    if is_half(array):
        return array.astype(np.float32)
    return array.astype(np.int64) if array.dtype == bool else array  # the sums are counts


def _loops(dtype):
    """The library that does it in C, None where there is none (yet), and a clock for the work."""
    from ..compile import sparse_loops

    return sparse_loops.library(dtype), sparse_loops


def _integers(places):
    return np.ascontiguousarray(places, np.int64)


def spread_products(xp, rows, cols, values, dense, size: int):
    """Sums of the rows of `dense` at `cols`, times `values`, at `rows`."""
    large = isinstance(dense, np.ndarray) and values.size * dense.shape[1] >= LARGE
    found, clock = _loops(dense.dtype) if large else (None, None)
    if found is not None and size:
        given = _integers(rows), _integers(cols), *map(np.ascontiguousarray, (values, dense))
        out = clock.spmm(found, *given, size)
        if out is not None:
            return out
    _check("_spmm", rows, size)
    _check("_spmm", cols, dense.shape[0])
    if type(dense).__module__.startswith("cupy") and dense.dtype.kind in "fc":
        from cupyx.scipy.sparse import coo_matrix

        shape = (size, dense.shape[0])
        return coo_matrix((values, (rows, cols)), shape=shape).tocsr() @ dense
    if not isinstance(dense, np.ndarray):
        kind = dense.dtype if dense.dtype.kind in "fc" else np.int64  # CuPy adds no narrow integers
        out = xp.zeros((size, dense.shape[1]), kind)
        xp.add.at(out, rows, (values[:, None] * dense[cols]).astype(kind, copy=False))
        return out.astype(dense.dtype, copy=False)
    if not values.size or not size or not dense.shape[1]:
        return np.zeros((size, dense.shape[1]), dense.dtype)
    rows, cols, values = _integers(rows), _integers(cols), np.ascontiguousarray(values)
    dense = np.ascontiguousarray(dense)
    with clock.timed() if clock else contextlib.nullcontext():
        out = np.zeros((size, dense.shape[1]), dense.dtype)
        _sparsetools.coo_matmat_dense(
            values.size, dense.shape[1], rows, cols, values, dense.ravel(), out.ravel())
    return out


class _spmm(OfEntries):
    """Product of a sparse matrix, given by its entries, and a dense one."""

    lower = "entries.spmm"
    schema = "_spmm(Tensor rows, Tensor cols, Tensor values, Tensor dense, SymInt size) -> Tensor"
    multilinear = ("values", "dense")
    grad = {
        "values": "_sddmm(rows, cols, grad, dense.conj())",
        "dense": "_spmm(cols, rows, values.conj(), grad, dense.shape[0])",
    }

    def run(xp, rows, cols, values, dense, size):
        _check_parts("_spmm", (rows, cols, values), (dense,))
        dtype = dense.dtype
        return spread_products(xp, rows, cols, _wide(values), _wide(dense), size).astype(
            dtype, copy=False)

    def shape(rows, cols, values, dense, size):
        return (size, dense.shape[1])

    def dtype(rows, cols, values, dense, size):
        return dense.dtype

    def batch(n, batched, rows, cols, values, dense, size):
        if not any(batched[:3]):  # more columns
            width = dense.shape[2]
            folded = dense.transpose(0, 1).reshape(dense.shape[1], n * width)
            return ops._spmm(rows, cols, values, folded, size).reshape(size, n, width).transpose(0, 1)
        rows = blocks(rows, batched[0], n, size)
        cols = blocks(cols, batched[1], n, dense.shape[1] if batched[3] else 0)
        values = (values if batched[2] else values.expand((n, *values.shape))).reshape(-1)
        width = dense.shape[-1]
        dense = joined(dense) if batched[3] else dense
        return ops._spmm(rows, cols, values, dense, n * size).reshape(n, size, width)

    def samples(s):
        for rows, cols in (([0, 2, 2, 0], [1, 0, 2, 1]), ([], [])):
            at = s.values(rows).long(), s.values(cols).long()
            yield s(*at, s.real(len(rows)), s.real(3, 2), 4)
        yield s(s.values([1]).long(), s.values([0]).long(), s.real(1), s.real(2, 0), 2)


def blocks(places, is_batched: bool, n: int, step):
    """Places in the matrices of a batch as those in one matrix, of which they are the blocks."""
    each = places if is_batched else places.expand((n, *places.shape))
    if not (step.__class__ is int and step == 0):
        each = each + ops.arange(n, device=places.device).unsqueeze(1) * step
    return each.reshape(-1)


def joined(matrices):
    """The matrices of a batch, one below the other."""
    return matrices.reshape(matrices.shape[0] * matrices.shape[1], matrices.shape[2])


def entry_products(xp, rows, cols, x, y):
    """The dot product of a row of `x` and one of `y` for every entry, a block of them at a time."""
    clock = None
    if isinstance(x, np.ndarray) and rows.size * x.shape[1] >= LARGE:
        found, clock = _loops(x.dtype)
        if found is not None:
            out = clock.sddmm(found, _integers(rows), _integers(cols), np.ascontiguousarray(x),
                              np.ascontiguousarray(y))
            if out is not None:
                return out
    _check("_sddmm", rows, x.shape[0])
    _check("_sddmm", cols, y.shape[0])
    with clock.timed() if clock else contextlib.nullcontext():
        out = xp.empty(rows.shape, x.dtype)
        step = max(1, BLOCK // max(1, x.shape[1]))
        for k in range(0, rows.size, step):
            part = slice(k, k + step)
            out[part] = xp.einsum("ek,ek->e", x[rows[part]], y[cols[part]])
    return out


class _sddmm(OfEntries):
    """Entries of the product of a dense matrix and the transpose of another, at given places."""

    lower = "entries.sddmm"
    schema = "_sddmm(Tensor rows, Tensor cols, Tensor x, Tensor y) -> Tensor"
    multilinear = ("x", "y")
    grad = {
        "x": "_spmm(rows, cols, grad, y.conj(), x.shape[0])",
        "y": "_spmm(cols, rows, grad, x.conj(), y.shape[0])",
    }

    def run(xp, rows, cols, x, y):
        _check_parts("_sddmm", (rows, cols), (x, y))
        if x.shape[1] != y.shape[1]:
            raise ShapeError(f"_sddmm: rows have {x.shape[1]} and {y.shape[1]} elements")
        return entry_products(xp, rows, cols, _wide(x), _wide(y)).astype(x.dtype, copy=False)

    def shape(rows, cols, x, y):
        return (rows.shape[0],)

    def dtype(rows, cols, x, y):
        return x.dtype

    def batch(n, batched, rows, cols, x, y):
        rows = blocks(rows, batched[0], n, x.shape[1] if batched[2] else 0)
        cols = blocks(cols, batched[1], n, y.shape[1] if batched[3] else 0)
        x = joined(x) if batched[2] else x
        y = joined(y) if batched[3] else y
        return ops._sddmm(rows, cols, x, y).reshape(n, rows.shape[0] // n)

    def samples(s):
        for rows, cols in (([0, 2, 2, 0], [1, 0, 2, 1]), ([], [])):
            at = s.values(rows).long(), s.values(cols).long()
            yield s(*at, s.real(3, 2), s.real(3, 2))
        yield s(s.values([1]).long(), s.values([0]).long(), s.real(2, 0), s.real(2, 0))


def matrix_of(rows, cols, values, shape):
    """A sparse matrix of the library, its rows in order."""
    from scipy.sparse import csr_array

    return csr_array((values, (rows, cols)), shape=shape)


def blocks_of_rows(a, b, limit: int = BLOCK):
    """Ranges of rows of `a` that meet at most about so many entries of `b`."""
    lengths = np.diff(b.indptr)
    meets = np.concatenate([[0], np.cumsum(lengths[a.indices])])[a.indptr]
    start = 0
    while start < a.shape[0]:
        end = int(np.searchsorted(meets, meets[start] + limit, side="right")) - 1
        end = min(max(end, start + 1), a.shape[0])
        yield start, end
        start = end


class _spspmm(OfEntries):
    """Entries of the product of two sparse matrices, at given places.

    `rows_a`, `cols_a`, `a` and `rows_b`, `cols_b`, `b` are those of the matrices, of which the
    sizes are (m, k) and (k, n).
    """

    schema = ("_spspmm(Tensor rows_a, Tensor cols_a, Tensor a, Tensor rows_b, Tensor cols_b, "
              "Tensor b, Tensor rows, Tensor cols, SymInt m, SymInt k, SymInt n) -> Tensor")
    multilinear = ("a", "b")
    nondiff = ("rows_a", "cols_a", "rows_b", "cols_b", "rows", "cols")
    grad = {
        "a": "_spspmm(rows, cols, grad, cols_b, rows_b, b.conj(), rows_a, cols_a, m, n, k)",
        "b": "_spspmm(cols_a, rows_a, a.conj(), rows, cols, grad, rows_b, cols_b, k, m, n)",
    }

    def run(xp, rows_a, cols_a, a, rows_b, cols_b, b, rows, cols, m, k, n):
        _check_parts("_spspmm", (rows_a, cols_a, a), ())
        _check_parts("_spspmm", (rows_b, cols_b, b), ())
        _check_parts("_spspmm", (rows, cols), ())
        for places, size in ((rows_a, m), (cols_a, k), (rows_b, k), (cols_b, n), (rows, m),
                             (cols, n)):
            _check("_spspmm", places, size)
        if hasattr(xp, "asnumpy"):  # SciPy multiplies on the host
            at = [xp.asnumpy(v) for v in (rows_a, cols_a, a, rows_b, cols_b, b, rows, cols)]
            return xp.asarray(_spspmm.run(np, *at, m, k, n))
        out = np.zeros(rows.shape, _wide(a).dtype)
        if rows.size and a.size and b.size:
            left = matrix_of(rows_a, cols_a, _wide(a), (m, k))
            right = matrix_of(rows_b, cols_b, _wide(b), (k, n))
            out = product_at(left, right, rows, cols)
        return out.astype(a.dtype, copy=False)

    def shape(rows_a, cols_a, a, rows_b, cols_b, b, rows, cols, m, k, n):
        return (rows.shape[0],)

    def dtype(rows_a, cols_a, a, rows_b, cols_b, b, rows, cols, m, k, n):
        return a.dtype

    def batch(count, batched, rows_a, cols_a, a, rows_b, cols_b, b, rows, cols, m, k, n):
        each = [blocks(places, batched[i], count, size) for i, places, size in (
            (0, rows_a, m), (1, cols_a, k), (3, rows_b, k), (4, cols_b, n), (6, rows, m),
            (7, cols, n))]
        a, b = [(v if batched[i] else v.expand((count, *v.shape))).reshape(-1)
                for i, v in ((2, a), (5, b))]
        out = ops._spspmm(each[0], each[1], a, each[2], each[3], b, each[4], each[5], count * m,
                          count * k, count * n)
        return out.reshape(count, out.shape[0] // count)

    def samples(s):
        for rows, cols in (([0, 2, 2, 0], [1, 0, 2, 1]), ([], [])):
            at = s.values(rows).long(), s.values(cols).long()
            yield s(*at, s.real(len(rows)), at[1], at[0], s.real(len(rows)), *at, 3, 3, 3)


def product_at(left, right, rows, cols):
    """Entries of a product of two sparse matrices, by the shortest of three ways.

    One multiplies rows, and picks the entries; the others go through the row (or the column) of
    each entry in one matrix, and look up what it meets in the other.
    """
    turned = right.T.tocsr()
    ways = (int(np.diff(right.indptr)[left.indices].sum()),
            LOOKUP * int(np.diff(left.indptr)[rows].sum()),
            LOOKUP * int(np.diff(turned.indptr)[cols].sum()))
    if ways[1] == min(ways) < ways[0]:
        return looked_up(left, right, rows, cols)
    if ways[2] == min(ways) < ways[0]:
        return looked_up(turned, left.T.tocsr(), cols, rows)
    out = np.zeros(rows.shape, left.dtype)
    order = np.argsort(rows, kind="stable")
    ends = np.searchsorted(rows[order], np.arange(left.shape[0] + 1))
    for start, end in blocks_of_rows(left, right):
        some = order[ends[start]:ends[end]]
        if some.size:
            out[some] = at_places(left[start:end] @ right, rows[some] - start, cols[some])
    return out


def looked_up(left, right, rows, cols):
    """The same, looking up what the rows of `left` meet in `right`, some entries at a time."""
    keys, values, width = keys_of(right), right.data, right.shape[1]
    lengths, starts = np.diff(left.indptr)[rows], left.indptr[rows].astype(np.int64)
    ends = np.cumsum(lengths)
    out, done, limit = np.zeros(rows.shape, left.dtype), 0, BLOCK >> 3  # in some eight arrays
    while done < rows.size:
        before = ends[done] - lengths[done]
        end = max(int(np.searchsorted(ends, before + limit, side="right")), done + 1)
        some, count = slice(done, end), lengths[done:end]
        first = ends[some] - count - before
        at = np.arange(ends[end - 1] - before) + np.repeat(starts[some] - first, count)
        found = found_in(keys, values, left.indices[at].astype(np.int64) * width
                         + np.repeat(cols[some], count))
        full = count > 0
        if found.size:
            out[some][full] = np.add.reduceat(left.data[at] * found, first[full])
        done = end
    return out


def keys_of(matrix):
    """The places of the entries of a sparse matrix as numbers, in order."""
    matrix.sort_indices()
    rows = np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr))
    return rows * matrix.shape[1] + matrix.indices


def found_in(keys, values, wanted):
    """The values at some numbers, zero where there is none."""
    if not keys.size:
        return np.zeros(wanted.shape, values.dtype)
    at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    return np.where(keys[at] == wanted, values[at], 0)


def at_places(product, rows, cols):
    """The entries of a sparse matrix at some places, zero where there is none."""
    ours, wanted = keys_of(product), rows.astype(np.int64) * product.shape[1] + cols
    if ours.shape == wanted.shape and (ours == wanted).all():  # the product asked its own places
        return product.data
    return found_in(ours, product.data, wanted)
