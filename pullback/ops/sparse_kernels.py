"""What PyTorch has kernels of for sparse tensors alone: facts, gradients, projections, resizing.

`sparse/` does the work; an entry is what `torch.ops.aten` calls.  Parts of sparse tensors are in
`sparse_parts.py`, functions that programs call in `sparse_functions.py`.
"""

from __future__ import annotations

from ..core.op import Composite
from ..errors import LayoutError, text, user_line
from .aten_only import aten
from .sparse_parts import needs_sparse

# facts and changes --------------------------------------------------------------------------------


class OfEntries(Composite):
    """A method that sparse tensors have themselves: a dense one has no entries to ask about."""

    function = False
    of_parts = True

    @classmethod
    def compose(cls, self, *given):
        if not self.layout.name.startswith("sparse"):
            raise LayoutError(text(
                f"{cls.base_name}(): a dense tensor has no specified entries ({user_line(3)})",
                f"tensor: {self.dtype.name}{list(self.shape)}", "x.to_sparse() first"))
        return getattr(self, cls.base_name)(*given)


class _nnz(OfEntries):
    """How many entries are specified."""

    schema = "_nnz(Tensor self) -> int"


class _coalesced_(OfEntries):
    """Says of coordinates that they are in order, each once."""

    schema = "_coalesced_(Tensor(a!) self, bool coalesced) -> Tensor(a!)"


class resize_as_sparse_(OfEntries):
    """Becomes a tensor of the size of another."""

    schema = "resize_as_sparse_(Tensor(a!) self, Tensor the_template) -> Tensor(a!)"


class sparse_resize_(OfEntries):
    """Becomes a tensor of another size; entries stay."""

    schema = ("sparse_resize_(Tensor(a!) self, int[] size, int sparse_dim, int dense_dim)"
              " -> Tensor(a!)")


class sparse_resize_and_clear_(OfEntries):
    """Becomes a tensor of another size without entries."""

    schema = ("sparse_resize_and_clear_(Tensor(a!) self, int[] size, int sparse_dim, "
              "int dense_dim) -> Tensor(a!)")


class Dims(Composite):
    """How many dims of a kind there are: all dims of a dense tensor are dense ones."""

    function = False
    of_parts = True
    asked = ""  # the method that sparse tensors have

    @classmethod
    def compose(cls, self):
        if self.layout.name.startswith("sparse"):
            return getattr(self, cls.asked)()
        return self.ndim if cls.asked == "dense_dim" else 0


class sparse_dim(Dims):
    """How many dims have coordinates."""

    schema = "sparse_dim(Tensor self) -> int"
    asked = "sparse_dim"


class dense_dim(Dims):
    """How many dims an entry has."""

    schema = "dense_dim(Tensor self) -> int"
    asked = "dense_dim"


class _dimI(Dims):
    """How many dims have coordinates, by its first name."""

    schema = "_dimI(Tensor self) -> int"
    asked = "sparse_dim"


class _dimV(Dims):
    """How many dims an entry has, by its first name."""

    schema = "_dimV(Tensor self) -> int"
    asked = "dense_dim"


@aten("is_coalesced(Tensor self) -> bool", "Are coordinates in order, each once?", None,
      of_parts=True)
def is_coalesced(self):
    return self.is_coalesced()


@aten("copy_sparse_to_sparse_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
      "Becomes a copy of another sparse tensor.", None, of_parts=True)
def copy_sparse_to_sparse_(self, src, non_blocking):
    for t in (self, src):
        needs_sparse(t, "copy_sparse_to_sparse_")
    return self.copy_(src, non_blocking)


@aten("_sparse_coo_tensor_with_dims(int sparse_dim, int dense_dim, int[] size, *, "
      "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False)"
      " -> Tensor", "A tensor without entries, of which the kinds of dims are said.", None,
      of_parts=True)
def _sparse_coo_tensor_with_dims(sparse_dim, dense_dim, size, dtype, layout, device, pin_memory):
    from ..sparse.construct import sparse_coo_tensor

    out = sparse_coo_tensor(size=tuple(size), dtype=dtype, device=device)
    return out.sparse_resize_and_clear_(size, sparse_dim, dense_dim)


# functions ----------------------------------------------------------------------------------------


class _sparse_broadcast_to(Composite):
    """Copies of a sparse tensor along dims of size one, and along new ones in front."""

    schema = "_sparse_broadcast_to(Tensor(a) self, int[] size) -> Tensor(a)"
    method = False
    of_parts = True

    def compose(self, size):
        needs_sparse(self, "_sparse_broadcast_to")
        return self.expand(size)


@aten("hspmm(Tensor mat1, Tensor mat2) -> Tensor",
      "A sparse matrix times a dense one, with one sparse dim.", None, of_parts=True)
def hspmm(mat1, mat2):
    needs_sparse(mat1, "hspmm")
    from ..sparse.functions import hspmm as product

    return product(mat1, mat2)


class ReducedRows(Composite):
    """A reduction of what is specified in a matrix, over some dims."""

    method = False
    of_parts = True
    reduced: str

    @classmethod
    def compose(cls, self, dim, keepdim, dtype):
        needs_sparse(self, cls.base_name)
        from ..sparse import reductions

        return getattr(reductions, cls.reduced)(self, dim, keepdim, dtype, True)


class _sparse_csr_sum(ReducedRows):
    """Sums of what is specified."""

    schema = ("_sparse_csr_sum.dim_dtype(Tensor self, int[1] dim, bool keepdim=False, *, "
              "ScalarType? dtype=None) -> Tensor")
    reduced = "total"


class _sparse_csr_prod(ReducedRows):
    """Products of what is specified."""

    schema = ("_sparse_csr_prod.dim_dtype(Tensor self, int[1] dim, bool keepdim=False, *, "
              "ScalarType? dtype=None) -> Tensor")
    reduced = "product"


class _sparse_mask_projection(Composite):
    """The entries of a tensor at which a mask has one as well, zeros for the others.

    `accumulate_matches` multiplies by how many the mask has there.
    """

    schema = ("_sparse_mask_projection(Tensor self, Tensor mask, bool accumulate_matches=False)"
              " -> Tensor")
    function = False
    of_parts = True

    def compose(self, mask, accumulate_matches):
        for t in (self, mask):
            needs_sparse(t, "_sparse_mask_projection")
        from ..sparse.masked import projected

        return projected(self, mask, accumulate_matches)


# gradients ----------------------------------------------------------------------------------------


@aten("_sparse_sum_backward(Tensor grad, Tensor self, int[] dim) -> Tensor",
      "Brings the gradient of sums to the entries of a sparse tensor.", None, of_parts=True)
def _sparse_sum_backward(grad, self, dim):
    needs_sparse(self, "_sparse_sum_backward")
    from ..array.dims import wrap_dims
    from ..sparse.masked import sparse_mask

    for d in sorted(wrap_dims(tuple(dim), self.ndim)):
        grad = grad.unsqueeze(d)
    return sparse_mask(grad.expand(self.shape), self)


def _softmax_backward(name: str, log: bool) -> None:
    def compose(grad_output, output, dim, self):
        needs_sparse(output, name)
        from ..sparse.softmax import softmax_backward

        return softmax_backward(grad_output, output, dim, log)

    aten(f"{name}(Tensor grad_output, Tensor output, int dim, Tensor self) -> Tensor",
         "Brings the gradient of a softmax to the specified entries.", None,
         of_parts=True)(compose)


_softmax_backward("_sparse_softmax_backward_data", log=False)
_softmax_backward("_sparse_log_softmax_backward_data", log=True)


@aten("_sparse_mm_reduce_impl_backward(Tensor self, Tensor grad_out, Tensor weight, str reduce, "
      "Tensor arg_out, bool[2] output_mask) -> (Tensor, Tensor)",
      "Gradients of sums, means or extremes of products along rows.", None, of_parts=True)
def _sparse_mm_reduce_impl_backward(self, grad_out, weight, reduce, arg_out, output_mask):
    needs_sparse(self, "_sparse_mm_reduce_impl_backward")
    from ..sparse.weighted import mm_reduce_backward

    found = mm_reduce_backward(self, grad_out, weight, reduce)
    return tuple([g if wanted else None for g, wanted in zip(found, output_mask)])
