"""Constructors, checks and conversions of sparse tensors under the names of PyTorch's operators.

`sparse/` does the work; an entry is what `torch.ops.aten` calls.  The entries of a family differ in
the names of their integers and in whether they are told a size; so they are made from a list.
Parts of sparse tensors are in `sparse_parts.py`.
"""

from __future__ import annotations

from ..core.handle import is_composed
from ..errors import LayoutError, text, user_line
from ..table.packets import ops
from .aten_only import aten
from .sparse_parts import needs_sparse

OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory="
INTEGERS = {"csr": ("crow", "col"), "csc": ("ccol", "row"), "bsr": ("crow", "col"),
            "bsc": ("ccol", "row")}


def _entry(schema: str, title: str, compose) -> None:
    aten(schema, title, None, of_parts=True)(compose)


def _compressed(kind: str) -> None:
    """The entries that make or check tensors of one compressed layout."""
    first, second = INTEGERS[kind]
    own = f"{first}_indices, {second}_indices, values"
    parts = f"Tensor {first}_indices, Tensor {second}_indices, Tensor values"

    def make(compressed, plain, values, size, dtype, layout, device, pin_memory):
        from ..sparse import construct

        return getattr(construct, f"sparse_{kind}_tensor")(
            compressed, plain, values, size, dtype=dtype, layout=layout, device=device)

    def unsafe(compressed, plain, values, size, dtype, layout, device, pin_memory):
        from ..sparse import construct

        return getattr(construct, f"sparse_{kind}_tensor")(
            compressed, plain, values, size, dtype=dtype, layout=layout, device=device,
            check_invariants=False)

    def smallest(compressed, plain, values, dtype, layout, device, pin_memory):
        return make(compressed, plain, values, None, dtype, layout, device, pin_memory)

    def validate(compressed, plain, values, size, check_pinning):
        from ..sparse import construct

        getattr(construct, f"sparse_{kind}_tensor")(compressed, plain, values, size,
                                                    check_invariants=True)

    overload = f"sparse_{kind}_tensor.{first}_{second}_value"
    title = f"A matrix from {own}."
    _entry(f"{overload}_size({parts}, int[] size, *, {OPTIONS}False) -> Tensor", title, make)
    _entry(f"{overload}({parts}, *, {OPTIONS}False) -> Tensor", title, smallest)
    _entry(f"_sparse_{kind}_tensor_unsafe({parts}, int[] size, *, {OPTIONS}None) -> Tensor",
           f"A matrix from {own}, of which only the sizes are looked at.", unsafe)
    _entry(f"_validate_sparse_{kind}_tensor_args({parts}, int[] size, "
           "bool? check_pinning=None) -> ()", f"Refuses {own} that make no matrix.", validate)


for _kind in INTEGERS:
    _compressed(_kind)

COMPRESSED = "Tensor compressed_indices, Tensor plain_indices, Tensor values"


@aten(f"sparse_compressed_tensor.comp_plain_value({COMPRESSED}, *, {OPTIONS}False) -> Tensor",
      "A matrix from its rows, or columns, one behind the other.", None, of_parts=True)
def sparse_compressed_tensor(compressed_indices, plain_indices, values, dtype, layout, device,
                             pin_memory):
    from ..sparse.construct import sparse_compressed_tensor as make

    return make(compressed_indices, plain_indices, values, dtype=dtype, layout=layout,
                device=device)


@aten(f"sparse_compressed_tensor.comp_plain_value_size({COMPRESSED}, SymInt[] size, *, "
      f"{OPTIONS}False) -> Tensor", "A matrix from its rows, or columns, one behind the other.",
      None, of_parts=True)
def sparse_compressed_tensor_size(compressed_indices, plain_indices, values, size, dtype, layout,
                                  device, pin_memory):
    from ..sparse.construct import sparse_compressed_tensor as make

    return make(compressed_indices, plain_indices, values, size, dtype=dtype, layout=layout,
                device=device)


@aten(f"_sparse_compressed_tensor_unsafe({COMPRESSED}, SymInt[] size, *, {OPTIONS}None) -> Tensor",
      "A matrix from its rows, or columns, of which only the sizes are looked at.", None,
      of_parts=True)
def _sparse_compressed_tensor_unsafe(compressed_indices, plain_indices, values, size, dtype, layout,
                                     device, pin_memory):
    from ..sparse.construct import sparse_compressed_tensor as make

    return make(compressed_indices, plain_indices, values, size, dtype=dtype, layout=layout,
                device=device, check_invariants=False)


@aten(f"_validate_sparse_compressed_tensor_args({COMPRESSED}, int[] size, Layout layout, "
      "bool? check_pinning=None) -> ()", "Refuses parts that make no compressed matrix.", None,
      of_parts=True)
def _validate_sparse_compressed_tensor_args(compressed_indices, plain_indices, values, size, layout,
                                            check_pinning):
    from ..sparse.construct import sparse_compressed_tensor as make

    make(compressed_indices, plain_indices, values, size, layout=layout, check_invariants=True)


@aten(f"sparse_coo_tensor.indices(Tensor indices, Tensor values, *, {OPTIONS}None, "
      "bool? is_coalesced=None) -> Tensor", "A tensor from coordinates and values.", None,
      of_parts=True)
def sparse_coo_tensor_indices(indices, values, dtype, layout, device, pin_memory, is_coalesced):
    from ..sparse.construct import sparse_coo_tensor as make

    return make(indices, values, dtype=dtype, device=device, is_coalesced=is_coalesced)


@aten(f"sparse_coo_tensor.indices_size(Tensor indices, Tensor values, int[] size, *, {OPTIONS}None, "
      "bool? is_coalesced=None) -> Tensor", "A tensor from coordinates and values.", None,
      of_parts=True)
def sparse_coo_tensor_indices_size(indices, values, size, dtype, layout, device, pin_memory,
                                   is_coalesced):
    from ..sparse.construct import sparse_coo_tensor as make

    return make(indices, values, size, dtype=dtype, device=device, is_coalesced=is_coalesced)


@aten(f"sparse_coo_tensor.size(int[] size, *, {OPTIONS}False) -> Tensor",
      "A tensor with coordinates, without entries.", None, of_parts=True)
def sparse_coo_tensor_size(size, dtype, layout, device, pin_memory):
    from ..sparse.construct import sparse_coo_tensor as make

    return make(size=size, dtype=dtype, device=device)


@aten(f"_sparse_coo_tensor_unsafe(Tensor indices, Tensor values, SymInt[] size, *, {OPTIONS}None, "
      "bool? is_coalesced=None) -> Tensor",
      "A tensor from coordinates and values, of which only the sizes are looked at.", None,
      of_parts=True)
def _sparse_coo_tensor_unsafe(indices, values, size, dtype, layout, device, pin_memory,
                              is_coalesced):
    from ..sparse.construct import sparse_coo_tensor as make

    return make(indices, values, size, dtype=dtype, device=device, is_coalesced=is_coalesced,
                check_invariants=False)


@aten("_sparse_coo_tensor_with_dims_and_tensors(int sparse_dim, int dense_dim, SymInt[] size, "
      f"Tensor indices, Tensor values, *, {OPTIONS}False, bool? is_coalesced=None) -> Tensor",
      "A tensor from coordinates and values, of which the kinds of dims are said.", None,
      of_parts=True)
def _sparse_coo_tensor_with_dims_and_tensors(sparse_dim, dense_dim, size, indices, values, dtype,
                                             layout, device, pin_memory, is_coalesced):
    from ..sparse.construct import sparse_coo_tensor as make

    out = make(indices, values, size, dtype=dtype, device=device, is_coalesced=is_coalesced)
    if (out.sparse_dim(), out.dense_dim()) != (sparse_dim, dense_dim):
        raise LayoutError(text(
            f"_sparse_coo_tensor_with_dims_and_tensors: the parts have {out.sparse_dim()} "
            f"sparse and {out.dense_dim()} dense dims, not {sparse_dim} and {dense_dim} "
            f"({user_line(2)})"))
    return out


@aten("_validate_sparse_coo_tensor_args(Tensor indices, Tensor values, int[] size, "
      "bool? is_coalesced=None, bool? check_pinning=None) -> ()",
      "Refuses coordinates and values that make no tensor.", None, of_parts=True)
def _validate_sparse_coo_tensor_args(indices, values, size, is_coalesced, check_pinning):
    from ..sparse.construct import sparse_coo_tensor as make

    make(indices, values, size, is_coalesced=is_coalesced, check_invariants=True)


# ---------------------------------------------------------------------------------------------
# Layouts


@aten("to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor",
      "All elements.", lambda s: s(s.real(2, 3)), of_parts=True)
def to_dense(self, dtype, masked_grad):
    return self.to_dense(dtype, masked_grad=masked_grad)


@aten("to_dense_backward(Tensor grad, Tensor input, bool? masked_grad=None) -> Tensor",
      "Brings the gradient of all elements to the entries of a tensor.",
      lambda s: s(s.real(2, 3), s.real(2, 3)), of_parts=True)
def to_dense_backward(grad, input, masked_grad):
    if not is_composed(input) or masked_grad is False:
        return grad
    from ..sparse.masked import sparse_mask

    return sparse_mask(grad, input)


@aten("to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, "
      "int? dense_dim=None) -> Tensor", "A sparse layout.", None, of_parts=True)
def to_sparse(self, layout, blocksize, dense_dim):
    return self.to_sparse(layout=layout, blocksize=blocksize, dense_dim=dense_dim)


@aten("to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor",
      "Coordinates in the first dims.", None, of_parts=True)
def to_sparse_sparse_dim(self, sparse_dim):
    return self.to_sparse(sparse_dim)


for _kind in INTEGERS:
    _blocks = "int[2] blocksize, " if _kind[0] == "b" else ""
    _entry(f"to_sparse_{_kind}(Tensor self, {_blocks}int? dense_dim=None) -> Tensor",
           f"The layout sparse_{_kind}.",
           lambda self, *how, _name=f"to_sparse_{_kind}": getattr(self, _name)(*how))


# ---------------------------------------------------------------------------------------------
# Products under older names


@aten("_sparse_mm(Tensor sparse, Tensor dense) -> Tensor", "A sparse matrix times another.",
      lambda s: s(s.real(2, 3), s.real(3, 2)), of_parts=True)
def _sparse_mm(sparse, dense):
    return ops.mm(sparse, dense)


@aten("_sparse_mm.reduce(Tensor sparse, Tensor dense, str reduce) -> Tensor",
      "Sums, means or extremes of the products of rows.", None, of_parts=True)
def _sparse_mm_reduce(sparse, dense, reduce):
    from ..sparse.functions import mm

    return mm(sparse, dense, reduce)


@aten("smm(Tensor self, Tensor mat2) -> Tensor", "A sparse matrix times a dense one, sparse.", None,
      of_parts=True)
def smm(self, mat2):
    needs_sparse(self, "smm")
    return self.smm(mat2)


@aten("sspaddmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) "
      "-> Tensor", "A sparse matrix and a product, sparse.", None, of_parts=True)
def sspaddmm(self, mat1, mat2, beta, alpha):
    needs_sparse(self, "sspaddmm")
    return self.sspaddmm(mat1, mat2, beta=beta, alpha=alpha)
