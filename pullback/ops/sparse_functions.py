"""Functions with sparse tensors under the names of PyTorch's operators.

`sparse/` does the work, by compositions of operators on parts, which the derivatives are of; an
entry is what `torch.ops.aten` calls.  Parts and conversions are in `sparse_parts.py`.
"""

from __future__ import annotations

from ..array import dtype as dt
from ..core.op import Composite
from ..table.packets import ops
from .sparse_parts import needs_sparse


class SparseFunction(Composite):
    """A function of which an argument is sparse."""

    method = function = False
    of_parts = True


class sparse_mask(SparseFunction):
    """The elements of a tensor at the entries of another."""

    schema = "sparse_mask(Tensor self, Tensor mask) -> Tensor"
    method = True

    def compose(self, mask):
        needs_sparse(mask, "sparse_mask: mask")
        from ..sparse.masked import sparse_mask as at

        return at(self, mask)


class _sparse_addmm(SparseFunction):
    """A matrix and the product of a sparse one and a dense one."""

    schema = ("_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, "
              "Scalar alpha=1) -> Tensor")

    def compose(self, mat1, mat2, beta, alpha):
        return ops.addmm(self, mat1, mat2, beta=beta, alpha=alpha)

    samples = lambda s: [s(s.real(2, 3), s.real(2, 4), s.real(4, 3), beta=2.0, alpha=0.5)]


class sparse_sampled_addmm(SparseFunction):
    """A product of dense matrices at the entries of a sparse one, which is added."""

    schema = ("sparse_sampled_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, "
              "Scalar alpha=1) -> Tensor")

    def compose(self, mat1, mat2, beta, alpha):
        needs_sparse(self, "sparse_sampled_addmm")
        from ..sparse.products import sampled_addmm

        return sampled_addmm(self, mat1, mat2, beta=beta, alpha=alpha)


class _sparse_sparse_matmul(SparseFunction):
    """The product of two sparse matrices."""

    schema = "_sparse_sparse_matmul(Tensor self, Tensor other) -> Tensor"

    def compose(self, other):
        for t in (self, other):
            needs_sparse(t, "_sparse_sparse_matmul")
        from ..sparse.products import sparse_sparse

        return sparse_sparse(self, other)


class _spsolve(SparseFunction):
    """The solution of a system with a sparse matrix."""

    schema = "_spsolve(Tensor A, Tensor B, *, bool left=True) -> Tensor"

    def compose(A, B, left):
        needs_sparse(A, "_spsolve")
        from ..sparse.solve import solve

        return solve(A, B, left)


class _spdiags(SparseFunction):
    """A sparse matrix from some of its diagonals."""

    schema = "_spdiags(Tensor diagonals, Tensor offsets, int[] shape, Layout? layout=None) -> Tensor"

    def compose(diagonals, offsets, shape, layout):
        from ..sparse.diagonals import made_of

        return made_of(diagonals, offsets, shape, layout)


class _sparse_mm_reduce_impl(SparseFunction):
    """Sums, means or extremes of products along rows.

    PyTorch's second result, which entry an extreme is of, is for its derivative; here it is empty.
    """

    schema = "_sparse_mm_reduce_impl(Tensor self, Tensor other, str reduce) -> (Tensor, Tensor)"

    def compose(self, other, reduce):
        needs_sparse(self, "_sparse_mm_reduce_impl")
        from ..sparse.weighted import mm_reduce

        return mm_reduce(self, other, reduce), ops.empty((0,), dtype=dt.int64)


class _sparse_sum(SparseFunction):
    """Sums over some dims: sparse as long as one of its sparse dims is left."""

    schema = "_sparse_sum.dim(Tensor self, int[1] dim) -> Tensor"

    def compose(self, dim):
        needs_sparse(self, "_sparse_sum")
        from ..sparse.reductions import total

        return total(self, dim)


class _sparse_sum_default(SparseFunction):
    """The sum of all elements."""

    schema = "_sparse_sum(Tensor self) -> Tensor"

    def compose(self):
        needs_sparse(self, "_sparse_sum")
        from ..sparse.reductions import total

        return total(self)


class _sparse_sum_dtype(SparseFunction):
    """The sum of all elements, as a dtype."""

    schema = "_sparse_sum.dtype(Tensor self, *, ScalarType dtype) -> Tensor"

    def compose(self, dtype):
        needs_sparse(self, "_sparse_sum")
        from ..sparse.reductions import total

        return total(self, dtype=dtype)


class _sparse_sum_dim_dtype(SparseFunction):
    """Sums over some dims, as a dtype."""

    schema = "_sparse_sum.dim_dtype(Tensor self, int[1] dim, *, ScalarType dtype) -> Tensor"

    def compose(self, dim, dtype):
        needs_sparse(self, "_sparse_sum")
        from ..sparse.reductions import total

        return total(self, dim, dtype=dtype)


def softmax_entries(name: str, log: bool) -> None:
    """The entries of a softmax over the specified entries along a dim."""

    def compose(self, dim, dtype):
        needs_sparse(self, name)
        from ..sparse.softmax import softmax_of

        return softmax_of(self, dim, dtype, log)

    def halves(self, dim, half_to_float):
        return compose(self, dim, dt.float32 if half_to_float else None)

    title = "Logarithm of the softmax" if log else "Softmax"
    for schema, composed in ((f"{name}(Tensor self, int dim, bool half_to_float) -> Tensor", halves),
                             (f"{name}.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
                              compose)):
        type(schema[: schema.index("(")], (SparseFunction,), {
            "__doc__": f"{title} of the specified entries along a dim.", "__module__": __name__,
            "schema": schema, "compose": staticmethod(composed)})


softmax_entries("_sparse_softmax", log=False)
softmax_entries("_sparse_log_softmax", log=True)
