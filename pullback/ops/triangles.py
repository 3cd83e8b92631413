"""Triangles and diagonals of matrices: tril, triu, diag_embed, diag."""

from __future__ import annotations

from ..array.dims import wrap_dim
from ..core.op import Composite
from ..table.packets import ops
from .kinds import Moving
from .layout import diagonal_view, two_dims


def _triangle_mask(self, diagonal: int, lower: bool):
    rows = ops.arange(self.shape[-2], device=self.device).unsqueeze(-1)
    cols = ops.arange(self.shape[-1], device=self.device)
    return cols - rows <= diagonal if lower else cols - rows >= diagonal


def _matrix_only(ndim: int, name: str) -> None:
    if ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")


def _triangle(name: str, below: bool):
    """Kernel, batching rule and decomposition of `tril` and `triu`."""

    def run(xp, self, diagonal):
        _matrix_only(self.ndim, name)
        return getattr(xp, name)(self, diagonal)

    def batch(n, batched, self, diagonal):
        _matrix_only(self.ndim - 1, name)
        return getattr(self, name)(diagonal)

    def decomp(self, diagonal):
        return ops.where(_triangle_mask(self, diagonal, below), self, ops.new_zeros(self, ()))

    return run, batch, decomp


class _Triangle(Moving):
    inplace = True
    linear = ("self",)
    shape = "tuple(self.shape)"
    samples = lambda s: [s(s.real(3, 4)), s(s.real(2, 3, 3), -1), s(s.real(3, 4).T, 1)]


class tril(_Triangle):
    """The lower triangle of matrices, zero elsewhere."""

    schema = "tril(Tensor self, SymInt diagonal=0) -> Tensor"
    lower = "index.triangle(False)"
    grad = {"self": "grad.tril(diagonal)"}
    run, batch, decomp = _triangle("tril", True)


class triu(_Triangle):
    """The upper triangle of matrices, zero elsewhere."""

    schema = "triu(Tensor self, SymInt diagonal=0) -> Tensor"
    lower = "index.triangle(True)"
    grad = {"self": "grad.triu(diagonal)"}
    run, batch, decomp = _triangle("triu", False)


def embedded_shape(shape, offset: int, dim1: int, dim2: int):
    """Shape of `diag_embed`, and its two wrapped dims."""
    if not shape:
        wrap_dim(dim1, 0), wrap_dim(dim2, 0)
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    dim1, dim2 = two_dims(dim1, dim2, len(shape) + 1)
    side = shape[-1] + abs(offset)
    out = list(shape[:-1])
    for dim in sorted((dim1, dim2)):
        out.insert(dim, side)
    return tuple(out), dim1, dim2


class diag_embed(Moving):
    """Matrices with the last dim on a diagonal, zero elsewhere."""

    schema = "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor"
    linear = ("self",)
    grad = {"self": "grad.diagonal(offset, dim1, dim2)"}

    def run(xp, self, offset, dim1, dim2):
        shape, dim1, dim2 = embedded_shape(self.shape, offset, dim1, dim2)
        out = xp.zeros(shape, self.dtype)
        diagonal_view(xp, out, offset, dim1, dim2)[...] = self
        return out

    def shape(self, offset, dim1, dim2):
        return embedded_shape(tuple(self.shape), offset, dim1, dim2)[0]

    def batch(n, batched, self, offset, dim1, dim2):
        _, dim1, dim2 = embedded_shape(tuple(self.shape[1:]), offset, dim1, dim2)
        return self.diag_embed(offset, dim1 + 1, dim2 + 1)

    def decomp(self, offset, dim1, dim2):
        shape, dim1, dim2 = embedded_shape(tuple(self.shape), offset, dim1, dim2)
        zeros = ops.new_zeros(self, shape)
        return ops.diagonal_scatter(zeros, self, offset, dim1, dim2)

    samples = lambda s: [s(s.real(3)), s(s.real(2, 3), 1), s(s.real(2, 3), -1, 0, 2)]


class diag(Composite):
    """A matrix from its diagonal, or the diagonal of a matrix."""

    schema = "diag(Tensor self, int diagonal=0) -> Tensor"
    out = ("exact",)

    def compose(self, diagonal):
        if self.ndim == 1:
            return self.diag_embed(diagonal)
        if self.ndim == 2:
            return self.diagonal(diagonal).clone(memory_format="contiguous_format")
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {self.ndim}D")

    samples = lambda s: [s(s.real(3)), s(s.real(3), 1), s(s.real(3, 4), -1)]


class diagflat(Composite):
    """A matrix with all elements on its diagonal."""

    schema = "diagflat(Tensor self, int offset=0) -> Tensor"

    def compose(self, offset):
        return self.reshape((-1,)).diag_embed(offset)

    samples = lambda s: [s(s.real(2, 3)), s(s.real(3), 1)]
