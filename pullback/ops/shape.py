"""Views of a whole tensor in another shape: reshaping, transposing, expanding, squeezing.

Composites here never read data, so they work at every level. Derivatives that need more than a
line are in `formulas/shape.py`. Read next: `slices.py` (views of a part), `splits.py` (several
views at once), `view_writes.py` (their adjoints and copies), `arrange.py` (operators that move
elements).
"""

from __future__ import annotations

import math

import numpy as np

from .. import errors
from ..array import dtype as dt
from ..array.dims import (
    broadcast_shapes,
    expanded_shape,
    infer_size,
    numel,
    view_strides,
    wrap_dim,
    wrap_dims,
)
from ..core.handle import is_buffer
from ..core.op import Composite, View
from ..core.overload import overload_of
from ..table.packets import ops
from .arrange import clone
from .kinds import ComplexComposite, ComplexView, Free, Moving
from .layout import _address, inner, owner, pad_rank, permutation, strided


def shown_as(array, size: tuple):
    """An array in another shape without a copy; None if it cannot be, or its library cannot say."""
    try:
        return array.reshape(size, copy=False)
    except (ValueError, TypeError):  # TypeError: a library without that argument
        return None


def _has_view(array, size: tuple) -> bool:
    """Can an array be shown in another shape without a copy?"""
    try:
        array.reshape(size, copy=False)
    except ValueError:
        return False
    except TypeError:  # an array library without that argument
        return view_strides(array.shape, array.strides, size) is not None
    return True


class Reshaped(ComplexView):
    """The elements in their order, in another shape."""

    noop = True
    lower = "shape.view"
    grad = {"self": "grad.reshape(self.shape)"}
    push = "self_t.reshape(size)"  # the tangent may be laid out differently
    scatter = "new.reshape(base.shape)"


class view(Reshaped):
    """The same elements in another shape, without a copy."""

    schema = "view(Tensor(a) self, SymInt[] size) -> Tensor(a)"
    native = "view"
    wants_rows = True
    core = True

    def run(xp, self, size):
        rows = self.flags.c_contiguous
        if type(self) is np.ndarray and rows and (
                math.prod(size) == self.size and min(size, default=0) >= 0):
            return self.reshape(size)  # all sizes are there
        size = infer_size(size, self.size)
        # NumPy copies silently where no view exists
        if not rows and not _has_view(self, size):
            raise RuntimeError(
                "view size is not compatible with input tensor's size and stride (at least one "
                "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
            )
        return self.reshape(size)

    def batch(n, batched, self, size):
        return self.view((n, *infer_size(size, numel(self.shape[1:]))))

    def samples(s):
        yield s(s.real(3, 4), (2, 6))
        yield s(s.real(3, 4), (-1,))
        yield s(s.real(), (1, 1))
        yield s(s.real(0, 3), (3, 0))
        yield s(s.real(2, 3, 4).transpose(0, 2), (4, 3, 2, 1))


class view_dtype(View):
    """The same bytes read as another dtype."""

    schema = "view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)"
    noop = True
    kept = "view"
    promote = "keep"
    diff_outputs = (False,)
    scatter = "new.view(base.dtype)"

    def dtype(self, dtype):
        return dtype

    def marks(before):
        if before:
            raise errors.DTypeError(errors.text(
                "torch.Tensor.view is not supported for conjugates and negatives that are put off "
                f"when converting to a different dtype ({errors.user_line(2)})",
                cure="call resolve_conj() or resolve_neg() first"))
        return before

    def run(xp, self, dtype):
        old, new = self.itemsize, dtype.itemsize
        if old != new:
            if self.ndim == 0:
                raise RuntimeError(
                    f"self.dim() cannot be 0 to view {self.dtype} as {dtype} "
                    "(different element sizes)"
                )
            if self.shape[-1] * old % new:
                raise RuntimeError(
                    f"self.size(-1) must be divisible by {new // old} to view {self.dtype} as "
                    f"{dtype} (different element sizes), but got {self.shape[-1]}"
                )
            if self.size == 0:  # NumPy's strides of nothing are zeros
                return xp.ndarray((*self.shape[:-1], self.shape[-1] * old // new), dtype.np, self)
            if self.strides[-1] != old and self.shape[-1] > 1:
                raise RuntimeError(
                    f"self.stride(-1) must be 1 to view {self.dtype} as {dtype} "
                    f"(different element sizes), but got {self.strides[-1] // old}"
                )
            _fits_in(xp, self, dtype, new // old)
        return self.view(dtype.np)

    def batch(n, batched, self, dtype):
        return self.view(dtype)

    samples = lambda s: [s(s.int(2, 3), dt.float64), s(s.int(2, 4), dt.int32)]


def _fits_in(xp, array, dtype, ratio: int) -> None:
    """Refuse memory that does not begin, or go on, at places of the larger element."""
    if ratio < 2 or xp.__name__ != "numpy":
        return
    size = array.dtype.itemsize
    steps = {"storage_offset()": (_address(array) - _address(owner(array))) // size}
    steps |= {f"stride({d})": s // size for d, s in enumerate(array.strides[:-1])}
    for what, number in steps.items():
        if number % ratio:
            raise RuntimeError(
                f"self.{what} must be divisible by {ratio} to view {array.dtype} as {dtype} "
                f"(different element sizes), but got {number}")


class unsafe_view(Moving):
    """`view` whose result counts as fresh memory."""

    schema = "_unsafe_view(Tensor self, SymInt[] size) -> Tensor"
    noop = True
    may_alias = True
    lower = "shape.view"
    unchecked = ("pure",)  # the result is memory of the input, that is the point
    method = False
    linear = ("self",)
    grad = {"self": "grad.reshape(self.shape)"}

    def run(xp, self, size):
        return self.reshape(infer_size(size, self.size))  # the memory of `self`, as in PyTorch

    def shape(self, size):
        return infer_size(size, numel(self.shape))

    def batch(n, batched, self, size):
        return ops._unsafe_view(self, (n, *infer_size(size, numel(self.shape[1:]))))

    def decomp(self, size):
        return ops.view(self, size)

    samples = lambda s: [s(s.real(3, 4), (2, -1)), s(s.real(), (1,))]


class reshape(ComplexComposite):
    """The same elements in another shape: a view if the strides allow it, else a copy."""

    schema = "reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)"
    noop = True
    may_alias = True
    lower = "shape.view"

    def compose(self, shape):
        data = self._payload
        if not (isinstance(data, np.ndarray) and data.flags.c_contiguous):
            size = infer_size(shape, self.numel())
            if type(data) is np.ndarray and (made := shown_as(data, size)) is not None:
                steps = tuple([step // data.itemsize for step in made.strides])
            elif is_buffer(data) and not _has_view(data, size):
                steps = None
            else:
                steps = view_strides(self.shape, self.stride(), size)
            if steps is None:
                self = overload_of(clone).call(self, "contiguous_format")
            if steps is None and is_buffer(data):  # a copy is no view of anything
                return ops._unsafe_view(self, list(size))
            if is_buffer(data):  # graphs know `view` only
                return ops._reshape_alias(self, size, steps)
            if steps is None:
                out = overload_of(view).call(self, shape)
                out._link = out._cell = None  # nobody else has the copy
                return out
        return overload_of(view).call(self, shape)

    def samples(s):
        yield s(s.real(3, 4), (2, 6))
        yield s(s.real(3, 4).T, (-1,))
        yield s(s.real(), (-1,))
        yield s(s.real(0, 3), (3, 0, 2))


class reshape_as(Composite):
    """`reshape` to the shape of another tensor."""

    schema = "reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)"
    function = False

    def compose(self, other):
        return self.reshape(other.shape)

    samples = lambda s: [s(s.real(3, 4), s.real(2, 6))]


class view_as(Composite):
    """`view` with the shape of another tensor."""

    schema = "view_as(Tensor(a) self, Tensor other) -> Tensor(a)"
    noop = True
    function = False

    def compose(self, other):
        return self.view(other.shape)

    samples = lambda s: [s(s.real(3, 4), s.real(2, 6))]


class flatten(ComplexComposite):
    """Merge the dims from start_dim to end_dim into one."""

    schema = "flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)"
    noop = True
    may_alias = True
    lower = "shape.view"

    def compose(self, start_dim, end_dim):
        shape = tuple(self.shape)
        start, end = wrap_dim(start_dim, len(shape)), wrap_dim(end_dim, len(shape))
        if start > end:
            raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
        if not shape:
            return self.reshape((1,))
        if start == end:
            return self
        merged = numel(shape[start : end + 1])
        return overload_of(reshape).call(self, (*shape[:start], merged, *shape[end + 1 :]))

    def samples(s):
        yield s(s.real(2, 3, 4))
        yield s(s.real(2, 3, 4), 1)
        yield s(s.real(2, 3, 4).transpose(0, 1), 0, 1)
        yield s(s.real())


class unflatten(ComplexComposite):
    """Split one dim into several."""

    schema = "unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)"
    noop = True
    may_alias = True
    lower = "shape.view"

    def compose(self, dim, sizes):
        dim = wrap_dim(dim, self.ndim, scalar_ok=False)
        if not sizes:
            raise RuntimeError("unflatten: sizes must be non-empty")
        try:
            parts = infer_size(sizes, self.shape[dim])
        except RuntimeError:
            raise RuntimeError(
                f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim "
                f"{dim} ({self.shape[dim]}) in the input tensor"
            ) from None
        return self.view((*self.shape[:dim], *parts, *self.shape[dim + 1 :]))

    samples = lambda s: [s(s.real(3, 8), 1, (2, 4)), s(s.real(3, 8).T, 0, (-1, 4))]


class ravel(Composite):
    """All elements in one dim; a view if the tensor is contiguous."""

    schema = "ravel(Tensor(a) self) -> Tensor(a)"
    lower = "shape.view"

    def compose(self):
        return self.contiguous().view((-1,))

    samples = lambda s: [s(s.real(3, 4)), s(s.real(3, 4).T), s(s.real())]


class permute(ComplexView):
    """The dims in another order."""

    schema = "permute(Tensor(a) self, int[] dims) -> Tensor(a)"
    noop = True
    lower = "shape.permuted"
    core = True
    grad = {"self": "grad.permute(inverse_permutation(dims))"}
    scatter = "new.permute(inverse_permutation(dims))"

    def run(xp, self, dims):
        return self.transpose(permutation(dims, self.ndim))

    def batch(n, batched, self, dims):
        return self.permute((0, *(d + 1 for d in permutation(dims, self.ndim - 1))))

    def samples(s):
        yield s(s.real(2, 3, 4), (2, 0, 1))
        yield s(s.real(2, 3, 4), (-1, 1, -3))
        yield s(s.real(), ())
        yield s(s.real(0, 3), (1, 0))


class transpose_int(ComplexView):
    """Two dims exchanged."""

    schema = "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)"
    noop = True
    lower = "shape.transpose"
    inplace = "default"
    inplace_node = "TransposeBackward1"
    grad = {"self": "grad.transpose(dim0, dim1)"}
    scatter = "new.transpose(dim0, dim1)"

    def run(xp, self, dim0, dim1):
        dim0, dim1 = wrap_dim(dim0, self.ndim), wrap_dim(dim1, self.ndim)
        return self.swapaxes(dim0, dim1) if self.ndim else self[...]

    def batch(n, batched, self, dim0, dim1):
        dim0, dim1 = inner(dim0, self), inner(dim1, self)
        return self if self.ndim == 1 else self.transpose(dim0, dim1)

    def decomp(self, dim0, dim1):
        order = list(range(self.ndim))
        if order:
            dim0, dim1 = wrap_dim(dim0, self.ndim), wrap_dim(dim1, self.ndim)
            order[dim0], order[dim1] = order[dim1], order[dim0]
        return ops.permute(self, order)

    samples = lambda s: [s(s.real(2, 3, 4), 0, -1), s(s.real(2, 3), 1, 1), s(s.real(), 0, -1)]


class t(ComplexView):
    """Transpose of a matrix; vectors and scalars stay as they are."""

    schema = "t(Tensor(a) self) -> Tensor(a)"
    noop = True
    lower = "shape.t"
    inplace = True
    inplace_node = "TBackward1"
    grad = {"self": "grad.t()"}
    scatter = "new.t()"

    def run(xp, self):
        if self.ndim > 2:
            raise RuntimeError(
                f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D"
            )
        return self.transpose()

    def batch(n, batched, self):
        return self.transpose(1, 2) if self.ndim == 3 else self.alias()

    def decomp(self):
        return ops.permute(self, list(range(self.ndim))[::-1])

    samples = lambda s: [s(s.real(2, 3)), s(s.real(3)), s(s.real())]


class numpy_T(Composite):
    """All dims reversed: the property `x.T`."""

    schema = "numpy_T(Tensor(a) self) -> Tensor(a)"
    may_alias = True
    lower = "shape.t"
    method = function = False

    def compose(self):
        return overload_of(permute).call(self, tuple(range(self.ndim))[::-1])

    samples = lambda s: [s(s.real(2, 3, 4))]


def _swap_last(self, name: str):
    if self.ndim == 1:
        raise RuntimeError(
            f"tensor.{name} is only supported on matrices or batches of matrices. Got 1-D tensor."
        )
    return overload_of(transpose_int).call(self, -2, -1) if self.ndim else self


class mT(Composite):
    """The last two dims exchanged: the property `x.mT`."""

    schema = "mT(Tensor(a) self) -> Tensor(a)"
    may_alias = True
    lower = "shape.mT"
    method = function = False

    def compose(self):
        return _swap_last(self, "mT")

    samples = lambda s: [s(s.real(2, 3, 4))]


class mH(Composite):
    """Conjugate transpose of the last two dims: the property `x.mH`."""

    schema = "mH(Tensor(a) self) -> Tensor(a)"
    method = function = False

    def compose(self):
        swapped = _swap_last(self, "mH")
        return swapped.conj() if self.is_complex() else swapped

    samples = lambda s: [s(s.real(2, 3, 4))]


class adjoint(ComplexComposite):
    """Conjugate transpose of the last two dims."""

    schema = "adjoint(Tensor(a) self) -> Tensor(a)"

    def compose(self):
        swapped = _swap_last(self, "adjoint()")
        return swapped.conj() if self.is_complex() else swapped

    samples = lambda s: [s(s.real(2, 3, 4)), s(s.real(3, 4))]


class matrix_H(Composite):
    """Conjugate transpose of a matrix: the property `x.H`."""

    schema = "matrix_H(Tensor(a) self) -> Tensor(a)"
    method = function = False

    def compose(self):
        if self.ndim not in (0, 2):
            hint = " For batches of matrices, consider using tensor.mH" if self.ndim > 2 else ""
            raise RuntimeError(
                "tensor.H is only supported on matrices (2-D tensors). "
                f"Got {self.ndim}-D tensor.{hint}"
            )
        swapped = self.transpose(0, 1) if self.ndim else self
        return swapped.conj() if self.is_complex() else swapped

    samples = lambda s: [s(s.real(3, 4))]


class swapaxes(Composite):
    """Another name of `transpose`."""

    schema = "swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)"
    noop = True

    def compose(self, axis0, axis1):
        return self.transpose(axis0, axis1)

    samples = lambda s: [s(s.real(2, 3, 4), 0, 2)]


class swapdims(Composite):
    """Another name of `transpose`."""

    schema = "swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)"

    def compose(self, dim0, dim1):
        return self.transpose(dim0, dim1)

    samples = lambda s: [s(s.real(2, 3, 4), 0, 2)]


def _move(self, source, destination):
    if len(source) != len(destination):
        raise RuntimeError(
            "movedim: Invalid source or destination dims: source "
            f"({list(source)} dims) should contain the same number of dims as destination "
            f"({list(destination)} dims)"
        )
    wrapped = []
    for name, dims in (("source", source), ("destination", destination)):
        wrapped.append([wrap_dim(d, self.ndim) for d in dims])
        if len(set(wrapped[-1])) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(dims)})")
    if self.ndim == 0:
        return self.alias()
    order = [d for d in range(self.ndim) if d not in wrapped[0]]
    for where, which in sorted(zip(wrapped[1], wrapped[0], strict=True)):
        order.insert(where, which)
    return self.permute(order)


class movedim_int(ComplexComposite):
    """One dim moved to another place."""

    schema = "movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)"
    noop = True

    def compose(self, source, destination):
        return _move(self, (source,), (destination,))

    samples = lambda s: [s(s.real(2, 3, 4), 0, -1), s(s.real(), 0, 0)]


class movedim_intlist(Composite):
    """Several dims moved to other places."""

    schema = "movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)"
    noop = True
    compose = _move

    samples = lambda s: [s(s.real(2, 3, 4), (0, 1), (-1, 0))]


class moveaxis_int(Composite):
    """Another name of `movedim`."""

    schema = "moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)"

    def compose(self, source, destination):
        return _move(self, (source,), (destination,))

    samples = lambda s: [s(s.real(2, 3, 4), 0, -1)]


class moveaxis_intlist(Composite):
    """Another name of `movedim`."""

    schema = "moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)"
    compose = _move

    samples = lambda s: [s(s.real(2, 3, 4), (0, 1), (-1, 0))]


class expand(ComplexView):
    """Dims of size 1 repeated without a copy, and new dims in front."""

    schema = "expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)"
    native = "expand"
    covers = True
    noop = True
    lower = "shape.expanded"
    core = True
    function = False
    grad = {"self": "grad"}  # summed back by the projection
    scatter = "new.reshape(base.shape)"  # what repeats nothing: else positions say where

    def run(xp, self, size, implicit):
        shape = expanded_shape(self.shape, size)
        extra = len(shape) - self.ndim
        strides = [
            old if have == want else 0
            for have, want, old in zip(self.shape, shape[extra:], self.strides, strict=True)
        ]
        for i in reversed(range(extra)):  # new dims of size 1 lie as `unsqueeze` makes them
            beside = shape[i + 1] * strides[0] if strides else 0
            strides.insert(0, beside if shape[i] == 1 else 0)
        return strided(xp, self, shape, tuple(strides))

    def batch(n, batched, self, size, implicit):
        shape = expanded_shape(self.shape[1:], size)
        return pad_rank(self, len(shape)).expand((n, *shape))

    def repeats(shape, size, implicit):
        extra = len(size) - len(shape)
        return any(n != 1 for n in size[:extra]) or any(
            n not in (-1, have) for n, have in zip(size[extra:], shape))

    def samples(s):
        yield s(s.real(3, 1), (3, 4))
        yield s(s.real(3, 1), (2, -1, 4))
        yield s(s.real(), (2, 3))
        yield s(s.real(1, 3), (0, 3))
        yield s(s.real(3, 4).T, (2, 4, 3))


class expand_as(Composite):
    """`expand` to the shape of another tensor."""

    schema = "expand_as(Tensor(a) self, Tensor other) -> Tensor(a)"
    noop = True
    function = False

    def compose(self, other):
        return self.expand(other.shape)

    samples = lambda s: [s(s.real(3, 1), s.real(2, 3, 4))]


class broadcast_to(Composite):
    """Another name of `expand`."""

    schema = "broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)"
    lower = "shape.expanded"

    def compose(self, size):
        return self.expand(size)

    samples = lambda s: [s(s.real(3, 1), (2, 3, 4))]


class broadcast_tensors(Free):
    """All tensors expanded to their common shape."""

    schema = "broadcast_tensors(Tensor[] tensors) -> Tensor[]"

    def compose(tensors):
        shape = broadcast_shapes(*(x.shape for x in tensors))
        return [x if tuple(x.shape) == tuple(shape) else x.expand(shape) for x in tensors]

    samples = lambda s: [s([s.real(3, 1), s.real(2, 1, 4)])]


def _unit_dims(shape, dims) -> tuple[int, ...]:
    return tuple(d for d in dims if shape[d] == 1)


class squeeze(ComplexView):
    """All dims of size 1 removed."""

    schema = "squeeze(Tensor(a) self) -> Tensor(a)"
    noop = True
    lower = "shape.view"
    inplace = True
    inplace_node = "SqueezeBackward3"
    grad = {"self": "unsqueeze_to(grad, None, self.shape)"}
    scatter = "new.reshape(base.shape)"

    def run(xp, self):
        return self.squeeze()

    def batch(n, batched, self):
        return self.squeeze(_unit_dims(self.shape, range(1, self.ndim)))

    def decomp(self):
        return ops.squeeze(self, _unit_dims(self.shape, range(self.ndim)))

    samples = lambda s: [s(s.real(1, 3, 1)), s(s.real(2, 3)), s(s.real(1)), s(s.real())]


class squeeze_dim(ComplexView):
    """One dim removed if its size is 1."""

    schema = "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)"
    noop = True
    lower = "shape.view"
    core = "apart"
    inplace = True
    inplace_node = "SqueezeBackward4"
    grad = {"self": "unsqueeze_to(grad, (dim,), self.shape)"}
    scatter = "new.reshape(base.shape)"

    def run(xp, self, dim):
        dim = wrap_dim(dim, self.ndim)
        return self.squeeze(dim) if self.ndim and self.shape[dim] == 1 else self[...]

    def batch(n, batched, self, dim):
        dim = inner(dim, self)
        return self.squeeze(dim) if dim < self.ndim else self.alias()

    def decomp(self, dim):
        return ops.squeeze(self, (dim,))

    def samples(s):
        yield s(s.real(1, 3, 1), 0)
        yield s(s.real(1, 3, 1), -1)
        yield s(s.real(2, 3), 1)
        yield s(s.real(), 0)


class squeeze_dims(ComplexView):
    """The given dims removed where their size is 1."""

    schema = "squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)"
    noop = True
    lower = "shape.view"
    core = True
    inplace = True
    inplace_node = "SqueezeBackward5"
    grad = {"self": "unsqueeze_to(grad, dim, self.shape)"}
    scatter = "new.reshape(base.shape)"

    def run(xp, self, dim):
        dims = wrap_dims(dim, self.ndim, empty_is_all=False)
        return self.squeeze(_unit_dims(self.shape, dims))

    def batch(n, batched, self, dim):
        dims = wrap_dims(dim, self.ndim - 1, empty_is_all=False)
        return self.squeeze(tuple(d + 1 for d in dims))

    def samples(s):
        yield s(s.real(1, 3, 1), (0, -1))
        yield s(s.real(1, 3, 1), (0, 1))
        yield s(s.real(1, 3), ())
        yield s(s.real(), (0,))


class unsqueeze(ComplexView):
    """A new dim of size 1."""

    schema = "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)"
    native = "unsqueeze"
    lower = "shape.view"
    core = True
    inplace = True
    inplace_node = "UnsqueezeBackward1"
    grad = {"self": "grad.squeeze(dim)"}
    scatter = "new.squeeze(dim)"

    def run(xp, self, dim):
        dim = wrap_dim(dim, self.ndim + 1)
        step = self.itemsize if dim == self.ndim else self.shape[dim] * self.strides[dim]
        sizes, steps = self.shape, self.strides  # NumPy's own new dims have stride 0
        return strided(xp, self, (*sizes[:dim], 1, *sizes[dim:]),
                       (*steps[:dim], step, *steps[dim:]))

    def batch(n, batched, self, dim):
        return self.unsqueeze(wrap_dim(dim, self.ndim) + 1)

    def samples(s):
        yield s(s.real(2, 3), 0)
        yield s(s.real(2, 3), -1)
        yield s(s.real(), 0)
        yield s(s.real(0, 3), 1)
