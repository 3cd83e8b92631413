"""Composites that only the operator namespace has: pullbacks under PyTorch's names, questions about
tensors and dtypes.

They are names for what other operators do, so that a capture never sees them.  Nothing here is
offered as function or method: the package has those names already, or PyTorch does not offer them.
"""

from __future__ import annotations

import operator

from ..array import dtype as dt
from ..core.op import Composite
from ..errors import ShapeError
from ..formulas.linalg import matrix_exp_change
from ..formulas.reduce import cumprod_pullback
from ..formulas.sparse_gradients import bags_grad, gathered_grad, rows_grad
from ..table.packets import ops


def aten(schema: str, text: str, sample, unchecked: tuple = (), **more):
    """Decorator: the entry of a composite without a public function; `sample` is a call of it."""

    def entry(compose):
        name = schema[: schema.index("(")]
        body = {"__doc__": text, "__module__": compose.__module__, "schema": schema,
                "compose": staticmethod(compose), "method": False, "function": False,
                "unchecked": unchecked,
                "samples": sample and staticmethod(lambda s: iter([sample(s)])), **more}
        return type(name.replace(".", "_"), (Composite,), body)

    return entry


def attribute(schema: str, text: str) -> None:
    """The entry of a question that an attribute of the same name answers."""
    ask = operator.attrgetter(schema[: schema.index("(")])
    aten(schema, text, lambda s: s(s.real(2)))(lambda self: ask(self))


# ---------------------------------------------------------------------------------------------
# Pullbacks


def _zeros(grad, sizes):
    return ops.zeros(sizes, dtype=grad.dtype, device=grad.device)


@aten("gather_backward(Tensor grad, Tensor self, int dim, Tensor index, bool sparse_grad) -> Tensor",
      "Adds each element to where `gather` took it from.",
      lambda s: s(s.real(2, 3), s.real(4, 3), 0, s.int(2, 3, high=4), False))
def gather_backward(grad, self, dim, index, sparse_grad):
    if sparse_grad:
        return gathered_grad(grad, self.shape, dim, index)
    return _zeros(grad, self.shape).scatter_add(dim, index, grad)


@aten("_gather_sparse_backward(Tensor self, int dim, Tensor index, Tensor grad) -> Tensor",
      "Gradient of what `gather` takes elements of, with an entry for each.", None, of_parts=True)
def _gather_sparse_backward(self, dim, index, grad):
    return gathered_grad(grad, self.shape, dim, index)


@aten("embedding_sparse_backward(Tensor grad, Tensor indices, SymInt num_weights, "
      "SymInt padding_idx, bool scale_grad_by_freq) -> Tensor",
      "Gradient of the table of `embedding`, with an entry for each lookup.", None, of_parts=True)
def embedding_sparse_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq):
    return rows_grad(grad, indices, num_weights, padding_idx, scale_grad_by_freq)


@aten("_embedding_bag_sparse_backward(Tensor grad, Tensor indices, Tensor offsets, "
      "Tensor offset2bag, Tensor bag_size, SymInt num_weights, bool scale_grad_by_freq, int mode, "
      "Tensor? per_sample_weights, int padding_idx=-1) -> Tensor",
      "Gradient of the table of an embedding bag, with an entry for each lookup.", None,
      of_parts=True)
def _embedding_bag_sparse_backward(grad, indices, offsets, offset2bag, bag_size, num_weights,
                                   scale_grad_by_freq, mode, per_sample_weights, padding_idx):
    return bags_grad(grad, indices, offset2bag, bag_size, bag_size, num_weights,
                     scale_grad_by_freq, mode, per_sample_weights, padding_idx)


@aten("index_select_backward(Tensor grad, SymInt[] self_sizes, int dim, Tensor index) -> Tensor",
      "Adds each slice to where `index_select` took it from.",
      lambda s: s(s.real(2, 3), (4, 3), 0, s.int(2, high=4)))
def index_select_backward(grad, self_sizes, dim, index):
    return _zeros(grad, self_sizes).index_add(dim, index, grad)


@aten("masked_select_backward(Tensor grad, Tensor input, Tensor mask) -> Tensor",
      "Puts elements back to where a mask took them from.",
      lambda s: s(s.real(2), s.real(3), s.tensor([1, 0, 1], dt.bool_)))
def masked_select_backward(grad, input, mask):
    return ops.zeros_like(input.expand_as(mask)).masked_scatter(mask, grad)


@aten("value_selecting_reduction_backward(Tensor grad, int dim, Tensor indices, SymInt[] sizes, "
      "bool keepdim) -> Tensor", "Puts elements back to where a reduction picked them.",
      lambda s: s(s.real(2), 1, s.int(2, high=3), (2, 3), False))
def value_selecting_reduction_backward(grad, dim, indices, sizes, keepdim):
    if not keepdim and len(sizes):
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return _zeros(grad, sizes).scatter(dim, indices, grad)


@aten("cummaxmin_backward(Tensor grad, Tensor input, Tensor indices, int dim) -> Tensor",
      "Adds each element to where a running extremum was found.",
      lambda s: s(s.real(2, 3), s.real(2, 3), s.int(2, 3, high=3), 1))
def cummaxmin_backward(grad, input, indices, dim):
    return ops.zeros_like(input) if not input.numel() else (
        ops.zeros_like(input).scatter_add(dim, indices, grad))


@aten("cumprod_backward(Tensor grad, Tensor input, int dim, Tensor output) -> Tensor",
      "Pullback of `cumprod`, zeros among the factors included.",
      lambda s: s(s.real(2, 3), s.real(2, 3), 1, s.real(2, 3)))
def cumprod_backward(grad, input, dim, output):
    return cumprod_pullback(grad, input, dim)


@aten("matrix_exp_backward(Tensor self, Tensor grad) -> Tensor", "Pullback of `matrix_exp`.",
      lambda s: s(s.real(3, 3), s.real(3, 3)))
def matrix_exp_backward(self, grad):
    return matrix_exp_change(self.mH, grad)


@aten("trace_backward(Tensor grad, SymInt[] sizes) -> Tensor",
      "A number on the diagonal of a matrix of zeros.",
      lambda s: s(s.real(), (3, 4)))
def trace_backward(grad, sizes):
    if len(sizes) != 2:
        raise ShapeError("expected matrix input")
    return ops.where(ops.eye(*sizes, dtype=dt.bool_, device=grad.device), grad, 0)


@aten("_batch_norm_impl_index_backward(int impl_index, Tensor input, Tensor grad_output, "
      "Tensor? weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, "
      "Tensor? save_var_transform, bool train, float eps, bool[3] output_mask, "
      "Tensor reservedSpace) -> (Tensor, Tensor, Tensor)", "Pullback of batch normalization.",
      lambda s: s(0, s.real(4, 3), s.real(4, 3), s.real(3), None, None, s.real(3),
               s.real(3, low=0.5), True, 1e-5, [True, True, True], s.real(0)))
def _batch_norm_impl_index_backward(
    impl_index, input, grad_output, weight, running_mean, running_var, save_mean,
    save_var_transform, train, eps, output_mask, reservedSpace,
):
    return ops.native_batch_norm_backward(
        grad_output, input, weight, running_mean, running_var, save_mean, save_var_transform,
        train, eps, output_mask)


# ---------------------------------------------------------------------------------------------
# Whole tensors


@aten("flatten_dense_tensors(Tensor[] tensors) -> Tensor", "All elements in one vector.",
      lambda s: s([s.real(2, 3), s.real(4)]))
def flatten_dense_tensors(tensors):
    return ops.cat([t.reshape(-1) for t in tensors])


@aten("unflatten_dense_tensors(Tensor flat, Tensor[] tensors) -> Tensor[]",
      "Parts of a vector with the shapes of tensors.",
      lambda s: s(s.real(10), [s.real(2, 3), s.real(4)]))
def unflatten_dense_tensors(flat, tensors):
    parts = ops.split_with_sizes(flat, [t.numel() for t in tensors])
    return [part.view(t.shape) for part, t in zip(parts, tensors)]


@aten("_reshape_from_tensor(Tensor self, Tensor shape) -> Tensor",
      "`reshape` to sizes that a tensor gives.",
      lambda s: s(s.real(2, 3), s.tensor([3, 2], dt.int64)))
def _reshape_from_tensor(self, shape):
    if shape.ndim != 1:
        raise ShapeError("shape must be a vector of sizes")
    return self.reshape(shape.tolist())


@aten("_to_cpu(Tensor[] tensors) -> Tensor[]", "Tensors in the memory of the host.",
      lambda s: s([s.real(2)]))
def _to_cpu(tensors):
    return [t.cpu() for t in tensors]


@aten("chalf(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
      "Complex numbers of two half-precision parts.", None)  # tests/array/test_complex32.py
def chalf(self, memory_format):
    return self.chalf()


@aten("data(Tensor self) -> Tensor", "The same elements without history.",
      lambda s: s(s.real(2)), ("pullback", "pushforward", "second_order"))
def data(self):
    return self.detach()


# ---------------------------------------------------------------------------------------------
# Questions


@aten("item(Tensor self) -> Scalar", "The only element as a Python number.",
      lambda s: s(s.real()), tags=("data_dependent_output",))
def item(self):
    return self.item()


@aten("is_nonzero(Tensor self) -> bool", "Whether the only element differs from zero.",
      lambda s: s(s.real()))
def is_nonzero(self):
    return bool(self)


@aten("is_complex(Tensor self) -> bool", "Whether the elements are complex numbers.",
      lambda s: s(s.real(2)))
def is_complex(self):
    return self.dtype.is_complex


@aten("is_floating_point(Tensor self) -> bool", "Whether the elements are real floating numbers.",
      lambda s: s(s.real(2)))
def is_floating_point(self):
    return self.dtype.is_floating_point


@aten("get_device(Tensor self) -> int", "The number of the tensor's device.",
      lambda s: s(s.real(2)))
def get_device(self):
    return self.get_device()


@aten("size(Tensor self) -> int[]", "The sizes of all dims.",
      lambda s: s(s.real(2, 3)))
def size(self):
    return list(self.shape)


@aten("size.int(Tensor self, int dim) -> int", "One size.",
      lambda s: s(s.real(2, 3), -1))
def size_int(self, dim):
    return self.size(dim)


@aten("stride.int(Tensor self, int dim) -> int", "One stride.",
      lambda s: s(s.real(2, 3), 0))
def stride_int(self, dim):
    return self.stride(dim)


attribute("is_leaf(Tensor self) -> bool",
          "Whether no operator made the tensor, as far as autograd goes.")
attribute("retains_grad(Tensor self) -> bool",
          "Whether a tensor that is no leaf keeps its gradient.")
attribute("output_nr(Tensor self) -> int", "Which output of its operator the tensor is.")
attribute("_version(Tensor self) -> int", "How often the tensor's memory was written.")


@aten("result_type.Tensor(Tensor tensor, Tensor other) -> ScalarType", "The dtype of a sum.",
      lambda s: s(s.real(2), s.int(2)))
def result_type(tensor, other):
    return dt.result_type((tensor, other))


@aten("result_type.Scalar(Tensor tensor, Scalar other) -> ScalarType", "The dtype of a sum.",
      lambda s: s(s.int(2), 1.5))
def result_type_scalar(tensor, other):
    return dt.result_type((tensor, other))


@aten("result_type.Scalar_Tensor(Scalar scalar, Tensor tensor) -> ScalarType",
      "The dtype of a sum.",
      lambda s: s(1.5, s.int(2)))
def result_type_scalar_tensor(scalar, tensor):
    return dt.result_type((scalar, tensor))


@aten("result_type.Scalar_Scalar(Scalar scalar1, Scalar scalar2) -> ScalarType",
      "The dtype of a sum.",
      lambda s: s(1, 1.5))
def result_type_scalars(scalar1, scalar2):
    return dt.result_type((scalar1, scalar2))


@aten("promote_types(ScalarType type1, ScalarType type2) -> ScalarType",
      "The smallest dtype that holds two others.",
      lambda s: s(dt.int32, dt.float16))
def promote_types(type1, type2):
    return dt.promote_types(type1, type2)


@aten("can_cast(ScalarType from_, ScalarType to) -> bool",
      "Whether numbers of a dtype may become those of another.",
      lambda s: s(dt.int32, dt.float16))
def can_cast(from_, to):
    return dt.can_cast(from_, to)
