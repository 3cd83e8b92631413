"""Tables of rows: `embedding` and its gradient, `one_hot`.

Bags of rows are in `embedding.py`.
"""

from __future__ import annotations

from ..array import dtype as dt
from ..array.dims import numel
from ..core.op import Composite, Op
from ..errors import DTypeError, ShapeError
from ..table.packets import ops
from .index import add_rows, in_range
from .kinds import InFunctional, Keeping
from .layout import in_front

# --- tables ---------------------------------------------------------------------------------------


def _check_places(indices, name: str, place: int) -> None:
    if dt.name_of(indices.dtype) not in ("int32", "int64"):
        raise DTypeError(f"Expected tensor for argument #{place} 'indices' to have one of the "
                         f"following scalar types: Long, Int; but got {indices.dtype} instead "
                         f"(while checking arguments for {name})")


class embedding(Keeping):
    """Rows of a table."""

    complex = None
    schema = (
        "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, "
        "bool scale_grad_by_freq=False, bool sparse=False) -> Tensor"
    )
    native = "embedding"
    lower = "index.embedding"
    core = True
    method = False
    linear = ("weight",)
    nondiff = ("indices",)
    cost = "cheap"
    shape = "(*indices.shape, weight.shape[1])"
    grad = {
        "weight": "embedding_dense_backward(grad, indices, weight.shape[0], padding_idx, "
        "scale_grad_by_freq) if not sparse else rows_grad(grad, indices, weight.shape[0], "
        "padding_idx, scale_grad_by_freq)"
    }

    def run(xp, weight, indices, padding_idx, scale_grad_by_freq, sparse):
        if weight.ndim != 2:
            raise RuntimeError("'weight' must be 2-D")
        _check_places(indices, "embedding", 1)
        if indices.size and (indices.min() < 0 or indices.max() >= weight.shape[0]):
            raise IndexError("index out of range in self")
        return xp.take(weight, indices, axis=0)

    def batch(n, batched, weight, indices, padding_idx, scale_grad_by_freq, sparse):
        if not batched[0]:
            return ops.embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)
        if batched[1]:
            rows = ops.arange(n, device=indices.device).view((n, *(1,) * (indices.ndim - 1)))
            out = ops.index(weight, [rows, indices])
        else:
            out = weight.index_select(1, indices.reshape((-1,)))
            out = out.reshape((n, *indices.shape, weight.shape[2]))
        if padding_idx >= 0:
            out = ops.where((indices == padding_idx).unsqueeze(-1), out.detach(), out)
        return out

    def samples(s):
        yield s(s.real(5, 3), s.int(4, high=5))
        yield s(s.real(5, 3), s.int(2, 3, high=5))
        yield s(s.real(5, 3), s.int(high=5))
        yield s(s.real(5, 3), s.int(0, high=5))


class embedding_dense_backward(Op):
    """Rows of a gradient added up by the row of the table that they came from."""

    complex = None
    schema = (
        "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, "
        "SymInt padding_idx, bool scale_grad_by_freq) -> Tensor"
    )
    native = "embedding_backward"
    lower = "index.embedding_backward"
    core = "apart"
    method = function = False
    linear = ("grad_output",)
    nondiff = ("indices",)
    cost = "reduce"
    shape = "(num_weights, grad_output.shape[-1])"
    grad = {"grad_output": "embedding_gather(grad, indices, padding_idx, scale_grad_by_freq)"}

    def run(xp, grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
        _check_places(indices, "embedding_backward", 2)
        width = grad_output.shape[-1]
        if tuple(grad_output.shape[:-1]) != tuple(indices.shape):
            raise ShapeError(
                f"embedding_backward: expected a row of the gradient for each index, got gradient "
                f"{list(grad_output.shape)} and indices {list(indices.shape)}")
        table = xp.zeros((num_weights, width), grad_output.dtype)  # refuses a negative size first
        index = in_range(xp, indices.reshape(-1), num_weights, 0, negative=False)
        rows = grad_output.reshape((-1, width))
        if padding_idx >= 0:
            kept = index != padding_idx
            index, rows = index[kept], rows[kept]
        if scale_grad_by_freq and index.size:
            rows = rows / xp.bincount(index, minlength=num_weights)[index][:, None]
            rows = rows.astype(grad_output.dtype)
        return add_rows(xp, table, index, rows)

    def batch(n, batched, grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
        grad_output = in_front(grad_output, batched[0], n)
        indices = in_front(indices, batched[1], n)
        # examples become separate stretches of one long table
        rows = indices.reshape((n, numel(indices.shape[1:])))
        start = ops.arange(n, device=indices.device).view((n, 1)) * num_weights
        if padding_idx >= 0:
            keep = (rows != padding_idx).unsqueeze(-1)
            grad_output = ops.where(keep.reshape((*indices.shape, 1)), grad_output, 0)
        places = (rows + start).reshape((-1,))
        width = grad_output.shape[-1]
        out = ops.embedding_dense_backward(
            grad_output.reshape((places.numel(), width)),
            places,
            n * num_weights,
            -1,
            scale_grad_by_freq,
        )
        return out.reshape((n, num_weights, width))

    def decomp(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
        width = grad_output.shape[-1]
        if scale_grad_by_freq:
            count = ops.new_zeros(indices, (num_weights,))
            count = ops.index_put(count, [indices], ops.ones_like(indices), True)
            grad_output = grad_output / ops.index(count, [indices]).unsqueeze(-1)
        if padding_idx >= 0:
            grad_output = ops.where((indices != padding_idx).unsqueeze(-1), grad_output, 0)
        zeros = ops.new_zeros(grad_output, (num_weights, width))
        return ops.index_put(zeros, [indices], grad_output, True)

    def samples(s):
        yield s(s.real(4, 3), s.int(4, high=5), 5, -1, False)
        yield s(s.real(2, 3, 3), s.int(2, 3, high=5), 5, 2, False)
        yield s(s.real(4, 3), s.int(4, high=2), 2, -1, True)


class one_hot(InFunctional, Composite):
    """A vector per class number: one at its place, zeros elsewhere."""

    schema = "one_hot(Tensor self, int num_classes=-1) -> Tensor"
    bad_index = RuntimeError
    lower = "index.one_hot"
    tags = ("dynamic_output_shape",)
    method = function = False

    def compose(self, num_classes):
        if self.dtype is not dt.int64:
            raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
        if num_classes == -1:
            if self.numel() == 0:
                raise RuntimeError("Can not infer total number of classes from empty tensor.")
            if int(self.min()) < 0:
                raise RuntimeError("Class values must be non-negative.")
            num_classes = int(self.max()) + 1
        if num_classes <= 0:
            raise RuntimeError("Class values must be smaller than num_classes." if self.numel() else
                               "Can not infer total number of classes from empty tensor.")
        zeros = self.new_zeros((*self.shape, num_classes))
        if self.numel() == 0:
            return zeros
        try:
            return ops.scatter(zeros, -1, self.unsqueeze(-1), 1)
        except RuntimeError as error:
            if "out of bounds" not in str(error):
                raise
            low = "index -" in str(error)
            raise RuntimeError(
                "Class values must be non-negative."
                if low
                else "Class values must be smaller than num_classes."
            ) from None

    samples = lambda s: [s(s.int(4, high=5), 5), s(s.int(2, 3, high=5))]
