"""Parts of sparse tensors and conversions of their layouts, under the names of PyTorch's operators.

`sparse/` does the work; an entry is what `torch.ops.aten` calls.  They are looked at in
`tests/sparse/test_entries.py`, as samples of the table are dense.  Functions with such tensors are
in `sparse_functions.py`, constructors in `sparse_construct.py`.
"""

from __future__ import annotations

from ..core.handle import is_composed
from ..core.op import Composite
from ..errors import LayoutError, RefusedValue, text, user_line


def needs_sparse(t, name: str) -> None:
    """Refuse a dense tensor."""
    if not is_composed(t):
        raise LayoutError(text(
            f"{name} expected a sparse tensor but got one with layout {t.layout} ({user_line(2)})",
            f"tensor: {t.dtype.name}{list(t.shape)}", "x.to_sparse() first"))


def part_of(t, name: str, wanted: str):
    """What the method of that name gives, if a tensor is sparse."""
    if not is_composed(t):
        raise RefusedValue(text(
            f"{name} expected {wanted} tensor layout but got Strided ({user_line(2)})",
            f"tensor: {t.dtype.name}{list(t.shape)}", "a dense tensor is its own values"))
    return getattr(t, name)()


class Part(Composite):
    """A part of a sparse tensor: what the method of that name gives."""

    function = False
    of_parts = True
    wanted = "sparse"  # the layout, in messages

    @classmethod
    def compose(cls, self):
        return part_of(self, cls.base_name, cls.wanted)


class PartCopy(Composite):
    """A copy of a part of a sparse tensor."""

    method = False
    of_parts = True
    wanted = "sparse"

    @classmethod
    def compose(cls, self):
        return part_of(self, cls.base_name.removesuffix("_copy"), cls.wanted).clone()


class _indices(Part):
    """Coordinates, in order or not."""

    schema = "_indices(Tensor(a) self) -> Tensor(a)"


class indices(Part):
    """Coordinates of a coalesced tensor."""

    schema = "indices(Tensor(a) self) -> Tensor(a)"
    wanted = "sparse coordinate"


class _values(Part):
    """Values without history, for places that are in order or not."""

    schema = "_values(Tensor(a) self) -> Tensor(a)"


class values(Part):
    """Values, with their history."""

    schema = "values(Tensor(a) self) -> Tensor(a)"


class crow_indices(Part):
    """Where each row begins."""

    schema = "crow_indices(Tensor(a) self) -> Tensor(a)"
    wanted = "sparse row compressed"


class col_indices(Part):
    """The columns of entries that lie row by row."""

    schema = "col_indices(Tensor(a) self) -> Tensor(a)"
    wanted = "sparse row compressed"


class ccol_indices(Part):
    """Where each column begins."""

    schema = "ccol_indices(Tensor(a) self) -> Tensor(a)"
    wanted = "sparse column compressed"


class row_indices(Part):
    """The rows of entries that lie column by column."""

    schema = "row_indices(Tensor(a) self) -> Tensor(a)"
    wanted = "sparse column compressed"


class _coalesce(Part):
    """Each place once, in order."""

    schema = "_coalesce(Tensor self) -> Tensor"
    method = False

    def compose(self):
        needs_sparse(self, "_coalesce")
        return self.coalesce()


class _indices_copy(PartCopy):
    """A copy of the coordinates."""

    schema = "_indices_copy(Tensor self) -> Tensor"


class indices_copy(PartCopy):
    """A copy of the coordinates of a coalesced tensor."""

    schema = "indices_copy(Tensor self) -> Tensor"
    wanted = "sparse coordinate"


class _values_copy(PartCopy):
    """A copy of the values, without history."""

    schema = "_values_copy(Tensor self) -> Tensor"


class values_copy(PartCopy):
    """A copy of the values."""

    schema = "values_copy(Tensor self) -> Tensor"


class crow_indices_copy(PartCopy):
    """A copy of where each row begins."""

    schema = "crow_indices_copy(Tensor self) -> Tensor"
    wanted = "sparse row compressed"


class col_indices_copy(PartCopy):
    """A copy of the columns of entries."""

    schema = "col_indices_copy(Tensor self) -> Tensor"
    wanted = "sparse row compressed"


class ccol_indices_copy(PartCopy):
    """A copy of where each column begins."""

    schema = "ccol_indices_copy(Tensor self) -> Tensor"
    wanted = "sparse column compressed"


class row_indices_copy(PartCopy):
    """A copy of the rows of entries."""

    schema = "row_indices_copy(Tensor self) -> Tensor"
    wanted = "sparse column compressed"


# ---------------------------------------------------------------------------------------------
# Layouts


class Conversion(Composite):
    """The same tensor in another layout."""

    method = function = False
    of_parts = True


class _to_dense(Conversion):
    """All elements."""

    schema = "_to_dense(Tensor self, ScalarType? dtype=None, bool? masked_grad=None) -> Tensor"

    def compose(self, dtype, masked_grad):
        return self.to_dense(dtype, masked_grad=masked_grad)

    samples = lambda s: [s(s.real(2, 3))]


class _to_sparse(Conversion):
    """A sparse layout."""

    schema = ("_to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, "
              "int? dense_dim=None) -> Tensor")

    def compose(self, layout, blocksize, dense_dim):
        return self.to_sparse(layout=layout, blocksize=blocksize, dense_dim=dense_dim)


class _to_sparse_sparse_dim(Conversion):
    """Coordinates in the first dims."""

    schema = "_to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor"

    def compose(self, sparse_dim):
        return self.to_sparse(sparse_dim)


class _to_sparse_csr(Conversion):
    """Rows one behind the other."""

    schema = "_to_sparse_csr(Tensor self, int? dense_dim=None) -> Tensor"

    def compose(self, dense_dim):
        return self.to_sparse_csr(dense_dim)


class _to_sparse_csc(Conversion):
    """Columns one behind the other."""

    schema = "_to_sparse_csc(Tensor self, int? dense_dim=None) -> Tensor"

    def compose(self, dense_dim):
        return self.to_sparse_csc(dense_dim)


class _to_sparse_bsr(Conversion):
    """Rows of blocks one behind the other."""

    schema = "_to_sparse_bsr(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor"

    def compose(self, blocksize, dense_dim):
        return self.to_sparse_bsr(blocksize, dense_dim)


class _to_sparse_bsc(Conversion):
    """Columns of blocks one behind the other."""

    schema = "_to_sparse_bsc(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor"

    def compose(self, blocksize, dense_dim):
        return self.to_sparse_bsc(blocksize, dense_dim)
