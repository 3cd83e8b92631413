"""What a write through a view needs (select_scatter ...), the adjoints of views, copies of views.

Read next: `shape.py` and `slices.py`, the views themselves.
"""

from __future__ import annotations

from ..array.dims import numel, wrap_dim
from ..core.op import Composite, Op, View
from ..core.overload import overload_of
from ..errors import ShapeError
from ..table.packets import ops
from . import layout, shape, slices, splits
from .kinds import Keeping, Moving
from .splits import clones

# --- what a write through a view needs ------------------------------------------------------------


class Written(Moving):
    """A copy of `self` with `src` in the place of a view."""

    memory_format = "self"
    linear = ("self", "src")
    shape = "tuple(self.shape)"


class select_scatter(Written):
    """A copy of `self` with `src` written where `select` reads."""

    schema = "select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor"
    writes_view = "select.int"
    lower = "shape.select_scatter"
    core = "apart"
    grad = {
        "self": "select_scatter(grad, grad.new_zeros(src.shape), dim, index)",
        "src": "grad.select(dim, index)",
    }

    def run(xp, self, src, dim, index):
        dim, index = layout.checked_select(self.shape, dim, index)
        out = self.copy("K")
        layout.same_size_as_slice(src, (*self.shape[:dim], *self.shape[dim + 1 :]))
        out[layout.along(dim, index)] = src
        return out

    def batch(n, batched, self, src, dim, index):
        self, src = layout.in_front(self, batched[0], n), layout.in_front(src, batched[1], n)
        dim, index = layout.checked_select(self.shape[1:], dim, index)
        return ops.select_scatter(self, src, dim + 1, index)

    def samples(s):
        yield s(s.real(3, 4), s.real(4), 0, 1)
        yield s(s.real(3, 4), s.real(3), -1, -2)
        yield s(s.real(3), s.real(), 0, 0)


class slice_scatter(Written):
    """A copy of `self` with `src` written where `slice` reads."""

    schema = (
        "slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, "
        "SymInt step=1) -> Tensor"
    )
    writes_view = "slice.Tensor"
    lower = "shape.slice_scatter"
    tags = ("view_copy",)
    core = True
    grad = {
        "self": "slice_scatter(grad, grad.new_zeros(src.shape), dim, start, end, step)",
        "src": "take_slice(grad, dim, start, end, step)",
    }

    def run(xp, self, src, dim, start, end, step):
        dim, part, size = layout.checked_slice(self.shape, dim, start, end, step)
        layout.same_size_as_slice(src, (*self.shape[:dim], size, *self.shape[dim + 1 :]))
        out = self.copy("K")
        out[layout.along(dim, part)] = src
        return out

    def batch(n, batched, self, src, dim, start, end, step):
        self, src = layout.in_front(self, batched[0], n), layout.in_front(src, batched[1], n)
        dim, part, _ = layout.checked_slice(self.shape[1:], dim, start, end, step)
        return ops.slice_scatter(self, src, dim + 1, part.start, part.stop, step)

    def samples(s):
        yield s(s.real(5, 4), s.real(2, 4), 0, 1, 3)
        yield s(s.real(5, 4), s.real(5, 2), -1, 0, layout.END, 2)
        yield s(s.real(5, 4), s.real(5, 4))


class diagonal_scatter(Written):
    """A copy of `self` with `src` written on a diagonal."""

    schema = (
        "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor"
    )
    writes_view = "diagonal"
    trusts = "values"
    lower = "shape.diagonal_scatter"
    grad = {
        "self": "diagonal_scatter(grad, grad.new_zeros(src.shape), offset, dim1, dim2)",
        "src": "grad.diagonal(offset, dim1, dim2)",
    }

    def run(xp, self, src, offset, dim1, dim2):
        out = self.copy()
        place = layout.diagonal_view(xp, out, offset, dim1, dim2)
        layout.same_size_as_slice(src, place.shape)
        place[...] = src
        return out

    def decomp(self, src, offset, dim1, dim2):
        dim1, dim2 = layout.two_dims(dim1, dim2, self.ndim)
        if self.dtype != src.dtype or tuple(src.shape) != tuple(
            self.diagonal(offset, dim1, dim2).shape
        ):
            return NotImplemented  # the kernel says what is wrong
        rows, columns = self.shape[dim1], self.shape[dim2]
        row, column = (ops.arange(n, device=self.device) for n in (rows, columns))
        first, length = max(-offset, 0), src.shape[-1]
        # the diagonal as a column of the matrices, one element for each row
        padded = ops.constant_pad_nd(src, [first, rows - first - length]).unsqueeze(-1)
        on = row.unsqueeze(-1) + offset == column
        order = [d for d in range(self.ndim) if d not in (dim1, dim2)] + [dim1, dim2]
        back = [order.index(d) for d in range(self.ndim)]
        return ops.where(on, padded, self.permute(order)).permute(back)

    def batch(n, batched, self, src, offset, dim1, dim2):
        self, src = layout.in_front(self, batched[0], n), layout.in_front(src, batched[1], n)
        dim1, dim2 = layout.two_dims(dim1, dim2, self.ndim - 1)
        return ops.diagonal_scatter(self, src, offset, dim1 + 1, dim2 + 1)

    samples = lambda s: [s(s.real(3, 4), s.real(3)), s(s.real(2, 3, 4), s.real(2, 2), -1, -2, -1)]


class as_strided_scatter(Keeping):
    """A copy of `self` with `src` written where `as_strided` reads."""

    complex = None
    schema = (
        "as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, "
        "SymInt? storage_offset=None) -> Tensor"
    )
    absolute = True
    writes_view = "as_strided"
    kept = "view"
    memory_format = "self"
    linear = ("self", "src")
    cost = "cheap"
    shape = "tuple(self.shape)"
    grad = {
        "self": "as_strided_scatter(grad.contiguous(), grad.new_zeros(src.shape), size, stride, "
        "storage_offset)",
        "src": "in_own_memory(grad).as_strided(size, stride, storage_offset)",
    }

    def run(xp, self, src, size, stride, storage_offset):
        layout.same_size_as_slice(src, size)
        out = self.copy()
        place = layout.storage_view(xp, out, size, stride, storage_offset or 0)
        place[...] = src
        return out

    def batch(n, batched, self, src, size, stride, storage_offset):
        self, src = layout.in_front(self, batched[0], n), layout.in_front(src, batched[1], n)
        hop = numel(self.shape[1:])  # the kernel works on a row-major copy
        return ops.as_strided_scatter(self, src, (n, *size), (hop, *stride), storage_offset)

    def samples(s):
        yield s(s.real(3, 4), s.real(2, 2), (2, 2), (4, 1), 1)
        yield s(s.real(12), s.real(3), (3,), (2,))


# --- adjoints of views ----------------------------------------------------------------------------


class _Backward(Op):
    """The gradient of a view in zeros of the shape of its base."""

    promote = "keep"
    complex = True
    linear = ("grad_output",)
    method = function = False
    cost = "cheap"
    shape = "tuple(input_sizes)"


def _fits(grad_output, place: tuple) -> None:
    """A gradient is repeated to fill its place, but has no further dims."""
    if grad_output.ndim > len(place):
        raise ShapeError(f"output with shape {list(place)} doesn't match the broadcast shape "
                         f"{list(grad_output.shape)}")


def _is_repeated(grad_output, rank: int) -> bool:
    """May it be smaller than its place?  What writes it there as it is would refuse that."""
    return grad_output.ndim != rank or any(type(n) is int and n == 1 for n in grad_output.shape)


class select_backward(_Backward):
    """Zeros with the gradient of `select` in its place."""

    schema = (
        "select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor"
    )
    lower = "shape.select_backward"
    grad = {"grad_output": "grad.select(dim, index)"}

    def run(xp, grad_output, input_sizes, dim, index):
        dim, index = layout.checked_select(tuple(input_sizes), dim, index)
        out = xp.zeros(tuple(input_sizes), grad_output.dtype)
        _fits(grad_output, out.shape[:dim] + out.shape[dim + 1 :])
        out[layout.along(dim, index)] = grad_output
        return out

    def batch(n, batched, grad_output, input_sizes, dim, index):
        dim = wrap_dim(dim, len(input_sizes)) + 1
        return ops.select_backward(grad_output, (n, *input_sizes), dim, index)

    def decomp(grad_output, input_sizes, dim, index):
        zeros = ops.new_zeros(grad_output, input_sizes)
        if _is_repeated(grad_output, len(input_sizes) - 1):
            grad_output = grad_output.expand(zeros.select(dim, index).shape)
        return ops.select_scatter(zeros, grad_output, dim, index)

    samples = lambda s: [s(s.real(4), (3, 4), 0, 1), s(s.real(3), (3, 4), -1, -1)]


class slice_backward(_Backward):
    """Zeros with the gradient of `slice` in its place."""

    schema = (
        "slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, "
        "SymInt end, SymInt step) -> Tensor"
    )
    lower = "shape.slice_backward"
    grad = {"grad_output": "take_slice(grad, dim, start, end, step)"}

    def run(xp, grad_output, input_sizes, dim, start, end, step):
        dim, part, _ = layout.checked_slice(tuple(input_sizes), dim, start, end, step)
        out = xp.zeros(tuple(input_sizes), grad_output.dtype)
        _fits(grad_output, out.shape)
        out[layout.along(dim, part)] = grad_output
        return out

    def batch(n, batched, grad_output, input_sizes, dim, start, end, step):
        dim = wrap_dim(dim, len(input_sizes)) + 1
        return ops.slice_backward(grad_output, (n, *input_sizes), dim, start, end, step)

    def decomp(grad_output, input_sizes, dim, start, end, step):
        zeros = ops.new_zeros(grad_output, input_sizes)
        if _is_repeated(grad_output, len(input_sizes)):
            grad_output = grad_output.expand(ops.slice(zeros, dim, start, end, step).shape)
        return ops.slice_scatter(zeros, grad_output, dim, start, end, step)

    def samples(s):
        yield s(s.real(2, 4), (5, 4), 0, 1, 3, 1)
        yield s(s.real(5, 2), (5, 4), -1, 0, layout.END, 2)


class diagonal_backward(_Backward):
    """Zeros with the gradient of `diagonal` in its place."""

    schema = (
        "diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, "
        "int dim2) -> Tensor"
    )
    lower = "shape.diagonal_backward"
    grad = {"grad_output": "grad.diagonal(offset, dim1, dim2)"}

    def run(xp, grad_output, input_sizes, offset, dim1, dim2):
        out = xp.zeros(tuple(input_sizes), grad_output.dtype)
        place = layout.diagonal_view(xp, out, offset, dim1, dim2)
        _fits(grad_output, place.shape)
        place[...] = grad_output
        return out

    def batch(n, batched, grad_output, input_sizes, offset, dim1, dim2):
        dim1, dim2 = layout.two_dims(dim1, dim2, len(input_sizes))
        return ops.diagonal_backward(grad_output, (n, *input_sizes), offset, dim1 + 1, dim2 + 1)

    def decomp(grad_output, input_sizes, offset, dim1, dim2):
        zeros = ops.new_zeros(grad_output, input_sizes)
        if _is_repeated(grad_output, len(input_sizes) - 1):
            grad_output = grad_output.expand(zeros.diagonal(offset, dim1, dim2).shape)
        return ops.diagonal_scatter(zeros, grad_output, offset, dim1, dim2)

    samples = lambda s: [s(s.real(3), (3, 4), 0, 0, 1), s(s.real(2, 2), (2, 3, 4), -1, -2, -1)]


def _check_windows(grad_in, sizes, dim: int, size: int, step: int) -> None:
    """The gradient of `unfold` has its windows in `dim` and their elements in a last dim."""
    if step <= 0 or size < 0:
        raise RuntimeError(f"size is {size} and step is {step}: expected size >= 0, step > 0")
    dim, whole = wrap_dim(dim, len(sizes)), tuple(sizes) or (1,)
    count = (whole[dim] - size) // step + 1
    expected = (*whole[:dim], count, *whole[dim + 1 :], size)
    if tuple(grad_in.shape) != (expected if sizes else (size,)):
        raise RuntimeError(f"expected a gradient of shape {list(expected)}, got "
                           f"{list(grad_in.shape)}")


class unfold_backward(Op):
    """Overlapping windows added back into the dim that they were cut from."""

    schema = (
        "unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step)"
        " -> Tensor"
    )
    linear = ("grad_in",)
    method = function = False
    complex = True
    shape = "tuple(input_sizes)"
    grad = {"grad_in": "grad.unfold(dim, size, step)"}

    def run(xp, grad_in, input_sizes, dim, size, step):
        _check_windows(grad_in, input_sizes, dim, size, step)
        out = xp.zeros(tuple(input_sizes), grad_in.dtype)
        if not input_sizes:
            out[...] = grad_in.sum(-1)
            return out
        dim = wrap_dim(dim, len(input_sizes))
        reach = (grad_in.shape[dim] - 1) * step + 1
        # one addition per place in the window, or per window, whichever are fewer
        if size <= grad_in.shape[dim] or step < 1:
            for k in range(size):
                out[layout.along(dim, slice(k, k + reach, step))] += grad_in[..., k]
        else:
            for w in range(grad_in.shape[dim]):
                window = xp.moveaxis(grad_in[layout.along(dim, w)], -1, dim)
                out[layout.along(dim, slice(w * step, w * step + size))] += window
        return out

    def batch(n, batched, grad_in, input_sizes, dim, size, step):
        if not input_sizes:
            return grad_in.sum(-1)
        dim = wrap_dim(dim, len(input_sizes)) + 1
        return ops.unfold_backward(grad_in, (n, *input_sizes), dim, size, step)

    def decomp(grad_in, input_sizes, dim, size, step):
        if not input_sizes:
            return grad_in.sum(-1)
        dim = wrap_dim(dim, len(input_sizes))
        place = ops.arange(input_sizes[dim], device=grad_in.device).unfold(0, size, step)
        index = [None] * dim + [place.reshape((-1,))]
        windows = ops.movedim(grad_in, -1, dim + 1).flatten(dim, dim + 1)
        return ops.index_put(ops.new_zeros(grad_in, input_sizes), index, windows, True)

    def samples(s):
        yield s(s.real(5, 3), (7,), 0, 3, 1)
        yield s(s.real(2, 3, 3), (2, 7), 1, 3, 2)
        yield s(s.real(2, 2, 5), (7, 2), 0, 5, 2)


# --- copies of views ------------------------------------------------------------------------------


def derive_copies(space: dict, module: str) -> None:
    """For each view operator `name` of a file, the composite `name_copy`: the view, then a clone."""
    for entry in [e for e in space.values() if isinstance(e, type) and issubclass(e, View)]:
        if "schema" not in vars(entry) or entry in (slices.detach, slices.narrow_Tensor):
            continue
        text = entry.schema.replace("Tensor(a -> *)", "Tensor").replace("Tensor(a)", "Tensor")
        name, rest = text[: len(entry.base_name)], text[len(entry.base_name) :]
        body = {
            "__doc__": f"A copy of what `{name}` shows.",
            "__module__": module,
            "schema": f"{name}_copy{rest}",
            "tags": ("view_copy",),
            "absolute": entry.absolute,
            "lower": entry.lower,
            "compose": _copying(entry),
            "samples": vars(entry).get("samples"),
            "complex": entry.complex,
            "method": False,
        }
        type(f"{entry.__name__}_copy", (Composite,), body)


def _copying(entry):
    def compose(*args):
        shown = overload_of(entry).call(*args)
        return clones(shown) if isinstance(shown, (list, tuple)) else clones([shown])[0]

    return compose


for _file in (shape, slices, splits):
    derive_copies(vars(_file), __name__)
