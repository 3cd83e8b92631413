"""Sparse tensors: `Coo` (coordinates) and `Compressed` (CSR, CSC and their blocks, BSR, BSC).

The parts are integers, which say where the specified entries are, and *values*, one dense tensor
with all that is differentiable.  `entries()` gives any of the layouts as rows, columns and values
of one matrix; products and conversions are written on that.  Read next: `patterns.py`,
`elementwise.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from .. import errors
from ..array.layout import layout
from ..core.handle import Tensor
from ..parts import PartsTensor
from ..parts.layouts import offer
from ..parts.rules import shown
from ..table.packets import ops
from . import patterns
from .invariants import inside


class SparseTensor(PartsTensor):
    """A tensor of which only some entries are there."""

    title = "sparse"
    carrier = "values_part"
    rest: Any = None  # how derivatives reach what has no entry (`unspecified.py`)

    @classmethod
    def over(cls, other: type) -> bool:
        return issubclass(other, SparseTensor) and issubclass(cls, Coo)

    def any_operator(self, ov, flat: tuple):
        from .elementwise import on_values

        return on_values(self, ov, flat)

    def answered(self, ov, flat: tuple, out: Any) -> Any:
        for v in flat:
            if isinstance(v, SparseTensor) and (
                    v.rest is not None or v.values_part.requires_grad) or type(v) in (list, tuple):
                from .unspecified import passed_on

                return passed_on(out, ov, flat)
        return out

    def with_carrier(self, values: Tensor):
        if isinstance(values, PartsTensor):  # the gradient of all elements, not of entries alone
            return values.of(self)
        return super().with_carrier(values)

    def attributes(self) -> dict:
        found = super().attributes()
        for name in ("rest", "_full_grad"):
            found.pop(name, None)
        return found

    @property
    def grad(self):
        found, full = self.values_part.grad, self.__dict__.get("_full_grad")
        if found is not None and (full is not None or isinstance(found, PartsTensor)):
            new = self.with_carrier(found)  # from here on it is this tensor that can be written
            full = self.__dict__["_full_grad"] = new if full is None else full + new
            self.values_part.grad = None
        return PartsTensor.grad.fget(self) if full is None else full

    @grad.setter
    def grad(self, value) -> None:
        self.__dict__.pop("_full_grad", None)
        if value is not None and not has_entries_of(self.same_kind(value, "grad"), self):
            self.__dict__["_full_grad"], value = value, None
        PartsTensor.grad.fset(self, value)

    def carried(self, value, what: str, before: Tensor | None = None) -> Tensor:
        from .unspecified import as_carried

        return as_carried(self, value, what, before)

    def further_cotangents(self, g: Tensor) -> list[tuple]:
        from .unspecified import zeros_of

        if isinstance(g, SparseTensor) and has_entries_of(g, self):
            return []
        zeros = zeros_of(self)
        if zeros is None:
            return []
        return [(zeros, g.to_dense() if isinstance(g, SparseTensor) else g)]

    def write_all(self, new: Any, name: str) -> None:
        super().write_all(new, name)
        self.rest = None if self.is_leaf else new.rest

    def detach_(self):
        self.rest = None
        return super().detach_()

    @classmethod
    def write_operator(cls, ov, flat: tuple):
        from .inplace import write

        return write(ov, flat)

    def elements(self) -> Tensor:
        return self.to_dense()

    def entry_values(self) -> Tensor:
        """What the entries are, in one dim."""
        raise NotImplementedError

    def coordinates(self) -> tuple[Tensor, ...]:
        """Where they are."""
        raise NotImplementedError

    def with_entries(self, values: Tensor) -> SparseTensor:
        """Others in their places."""
        raise NotImplementedError

    @property
    def is_sparse(self) -> bool:
        return False

    def _nnz(self) -> int:
        raise NotImplementedError

    def of_each(self, dim: int, function: Callable[[Tensor, int], Tensor]):
        from .mapping import of_each

        return of_each(self, dim, function)

    def stride(self, dim: int | None = None):
        raise self._refused("Sparse CSR tensors do not have strides")

    def storage_offset(self) -> int:
        return 0

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return False

    def data_ptr(self) -> int:
        raise self._refused("Cannot access data pointer of Tensor that doesn't have storage")

    def untyped_storage(self):
        raise self._refused("Cannot access storage of a sparse tensor", errors.LayoutError)

    storage = share_memory_ = is_shared = untyped_storage

    @property
    def nbytes(self) -> int:
        raise self._refused("nbytes is not defined for sparse tensors",
                            cure="add those of the indices and the values")

    def _refused(self, said: str, kind: type = errors.RefusedValue,
                 cure: str = "ask .values()") -> Exception:
        return kind(errors.text(
            f"{said} ({errors.user_line(2)})", f"tensor: {self.dtype.name}{list(self.shape)}, "
            f"layout={self.layout}", cure))

    def _no_memory(self, *given, **named):
        raise self._refused("a sparse tensor has no memory of its own to show or to resize",
                            errors.LayoutError, "x.sparse_resize_(...), or act on .values()")

    set_ = is_set_to = resize = resize_as = _no_memory

    def resize_(self, *size: Any, memory_format: Any = None):
        """Become a matrix of more rows or columns; entries stay."""
        from .factories import resize_

        return resize_(self, size[0] if len(size) == 1 and not isinstance(size[0], int) else size)

    def numpy(self, *, force: bool = False):
        raise self._refused("can't convert Sparse layout tensor to numpy",
                            errors.ArgumentError, "x.to_dense().numpy()")

    __array__ = numpy

    def tolist(self):
        raise self._refused("tolist(): a sparse tensor is no list of its elements",
                            cure="x.to_dense().tolist()")

    def item(self):
        if self.numel() != 1:
            raise errors.ShapeError(errors.text(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar "
                f"({errors.user_line(1)})"))
        return self.to_dense().item()

    def type(self, dtype: Any = None, non_blocking: bool = False):
        if dtype is None:
            return super().type().replace("torch.", "torch.sparse.", 1)
        if isinstance(dtype, str):
            dtype = dtype.replace("torch.sparse.", "torch.", 1)
        return super().type(dtype, non_blocking)

    def zero_(self):
        """Lose all entries; a gradient, which somebody else holds, gets zeros."""
        from .factories import emptied

        if self.is_shown_grad or self.is_leaf and self.requires_grad:
            self.values_part.zero_()
        else:
            self.write_all(emptied(self), "zero")
        return self

    def __setitem__(self, key: Any, value: Any) -> None:
        raise self._refused(
            "Cannot assign to a sparse tensor: what it has entries for is decided when it is made",
            errors.ArgumentError, "add what is missing, x + y, choose by a mask, torch.where(mask, "
            "y, x), write x.values(), or assign to x.to_dense()")

    def __bool__(self) -> bool:
        return bool(self.to_dense())

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        from .printing import text

        said = "Parameter containing:\n" if getattr(self, "_is_param", False) else ""
        return said + text(self, tensor_contents)

    def __str__(self) -> str:
        return self.__repr__()

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """All elements, zeros where none is specified."""
        from .convert import to_dense

        return to_dense(self, dtype, masked_grad)


    def sparse_resize_(self, size: Any, sparse_dim: int, dense_dim: int):
        """Become a tensor of another size; entries stay."""
        from .factories import sparse_resize_

        return sparse_resize_(self, size, sparse_dim, dense_dim)

    def sparse_resize_and_clear_(self, size: Any, sparse_dim: int, dense_dim: int):
        """Become a tensor of another size without entries."""
        from .factories import sparse_resize_and_clear_

        return sparse_resize_and_clear_(self, size, sparse_dim, dense_dim)

    def resize_as_sparse_(self, the_template: Any):
        """Become a tensor of the size of another."""
        from .factories import resize_as_sparse_

        return resize_as_sparse_(self, the_template)

    resize_as_ = resize_as_sparse_

    def smm(self, mat: Tensor):
        """The product with a dense matrix, as a sparse one."""
        from .functions import smm

        return smm(self, mat)

    def sspaddmm(self, mat1: Any, mat2: Any, *old: Any, beta: Any = 1, alpha: Any = 1):
        """`beta * self + alpha * (mat1 @ mat2)`, sparse."""
        from .functions import sspaddmm

        if old:  # the numbers come first, after the tensor itself
            return sspaddmm(mat1, self, mat2, *old)
        return sspaddmm(self, mat1, mat2, beta=beta, alpha=alpha)

    def sparse_mask(self, mask: Any):
        """The elements at the entries of another tensor."""
        from .masked import sparse_mask

        return sparse_mask(self, mask)


class Coo(SparseTensor):
    """A tensor whose entries have coordinates: indices (sparse dims, entries), and values."""

    names = ("indices_part", "values_part")
    facts = ("coalesced",)
    own_layout = layout.known["sparse_coo"]

    @classmethod
    def make(cls, indices: Tensor, values: Tensor, shape: tuple, coalesced: bool) -> Coo:
        t = cls.bare()
        t.indices_part, t.values_part, t.coalesced = indices, values, coalesced
        t.take_form(tuple(shape), values._payload.dtype)
        return t

    def meta(self) -> tuple:
        return tuple(self._payload.shape), self.coalesced

    @classmethod
    def join(cls, parts: dict, meta: tuple) -> Coo:
        return cls.make(parts["indices_part"], parts["values_part"], *meta)

    def in_file(self) -> tuple:
        """What files say of it; PyTorch keeps no history of values with coordinates."""
        return self._indices(), self._values(), self.shape, self.coalesced

    def become(self, other: Coo) -> None:
        self.coalesced = other.coalesced
        super().become(other)

    @property
    def is_sparse(self) -> bool:
        return True

    def stride(self, dim: int | None = None):
        return (0,) * self.ndim if dim is None else 0  # as PyTorch says

    def sparse_dim(self) -> int:
        return self.indices_part.shape[0]

    def dense_dim(self) -> int:
        return self.values_part.ndim - 1

    def _nnz(self) -> int:
        return self.values_part.shape[0]

    def is_coalesced(self) -> bool:
        return self.coalesced

    def _coalesced_(self, coalesced: bool):
        self.coalesced = coalesced
        return self

    def _indices(self) -> Tensor:
        return self.indices_part.detach()

    def _values(self) -> Tensor:
        return self.values_part.detach()

    def indices(self) -> Tensor:
        self._only_coalesced("indices")
        return self.indices_part.detach()

    def values(self) -> Tensor:
        self._only_coalesced("values")
        return ops.alias(self.values_part)

    def _only_coalesced(self, name: str) -> None:
        if not self.coalesced:
            raise errors.RefusedValue(errors.text(
                f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first "
                f"({errors.user_line(2)})", f"tensor: {self.dtype.name}{list(self.shape)}",
                f"x.coalesce().{name}(), or x._{name}() for all that are there"))

    def coalesce(self) -> Coo:
        """The same with every place once, in order: entries of one place are added up."""
        if self.coalesced:
            return self
        from .unspecified import in_another_layout

        if self._nnz() < 2:
            out = Coo.make(self.indices_part, self.values_part, self.shape, True)
        else:
            found = patterns.distinct(self.indices_part, self.shape[:self.sparse_dim()])
            values = patterns.sums(self.values_part, found)
            out = Coo.make(found.indices, values, self.shape, True)
        return in_another_layout(out, self)

    def own_values(self) -> Tensor:
        if not self.coalesced:
            self.become(self.coalesce())
        return self.values_part

    def added_to(self, have: Tensor) -> Tensor:
        """The sum of a leaf's gradient and this one; a dense one is written at the entries."""
        if isinstance(have, SparseTensor) or have._edge is not None or not self.sparse_dim():
            return super().added_to(have)
        once = self.coalesce()
        at = tuple(once.indices_part.unbind(0))
        have[at] = have[at] + once.values_part  # writes those places, where `index_put_` copies all
        return have

    def entries(self) -> tuple[Tensor, Tensor, Tensor]:
        """(rows, columns, values) of a matrix."""
        inside(self.indices_part, self._payload.shape[:2])
        rows, cols = patterns.unbound(self.indices_part)
        return rows, cols, self.values_part

    def coordinates(self) -> tuple[Tensor, ...]:
        """Where the entries are: a tensor for each sparse dim."""
        return self.indices_part.unbind(0)

    def entry_values(self) -> Tensor:
        """What the entries are."""
        return self.values_part

    def with_entries(self, values: Tensor) -> Coo:
        """Other values in the places of `entries()`."""
        return self.with_carrier(values)


class Compressed(SparseTensor):
    """A matrix, or a batch of them, whose rows (or columns) are one behind the other.

    Blocks: each entry is a small dense matrix.
    """

    names = ("compressed_part", "plain_part", "values_part")
    kind: ClassVar[str] = ""
    by_rows: ClassVar[bool] = True
    blocked: ClassVar[bool] = False

    @classmethod
    def make(cls, compressed: Tensor, plain: Tensor, values: Tensor, shape: tuple) -> Compressed:
        t = cls.bare()
        t.compressed_part, t.plain_part, t.values_part = compressed, plain, values
        t.take_form(tuple(shape), values._payload.dtype)
        return t

    def meta(self) -> tuple:
        return tuple(self._payload.shape)

    @classmethod
    def join(cls, parts: dict, meta: tuple) -> Compressed:
        return cls.make(parts["compressed_part"], parts["plain_part"], parts["values_part"], meta)

    def in_file(self) -> tuple:
        """What files say of it."""
        return self.compressed_part, self.plain_part, self.values_part, self.shape

    @property
    def batch_dims(self) -> int:
        return self.compressed_part.ndim - 1

    @property
    def is_sparse_csr(self) -> bool:
        return self.kind == "csr"

    def sparse_dim(self) -> int:
        return 2

    def dense_dim(self) -> int:
        return self.values_part.ndim - self.batch_dims - (3 if self.blocked else 1)

    def _nnz(self) -> int:
        return self.plain_part.shape[-1]

    def values(self) -> Tensor:
        return ops.alias(self.values_part)

    def _values(self) -> Tensor:
        return self.values_part.detach()

    def entries(self) -> tuple[Tensor, Tensor, Tensor]:
        """(rows, columns, values) of a matrix; the matrices of a batch are blocks of one, and the
        entries of a block stand for themselves."""
        rows, cols = patterns.places(self)
        return rows, cols, self.entry_values()

    def coordinates(self) -> tuple[Tensor, ...]:
        """Where the entries of `entries()` are: a tensor for each dim but the dense ones."""
        from .convert import to_coo

        return to_coo(self).coordinates()

    def entry_values(self) -> Tensor:
        """What the entries of `entries()` are."""
        values = self.values_part
        count = 1
        for n in values.shape[:values.ndim - self.dense_dim()]:
            count = count * n
        return values.reshape(count, *values.shape[values.ndim - self.dense_dim():])

    def with_entries(self, values: Tensor) -> Compressed:
        """Other values in the places of `entries()`."""
        own = self.values_part.shape
        return self.with_carrier(values.reshape(*own[:len(own) - self.dense_dim()],
                                                *values.shape[1:]))


def has_entries_of(g: Tensor, t: SparseTensor) -> bool:
    """Has a gradient a value for each entry of a tensor, in the same order?"""
    from .elementwise import same_pattern

    return isinstance(g, SparseTensor) and same_pattern(g, t)


def _other(t: SparseTensor, name: str, wanted: str) -> Exception:
    from .construct import title

    return errors.RefusedValue(errors.text(
        f"{name} expected {wanted} tensor layout but got {title(t.layout)} "
        f"({errors.user_line(2)})", shown(t), "convert it first: x.to_sparse(layout=...)"))


def _by_rows(name: str):
    def method(self) -> Tensor:
        if not self.by_rows:
            raise _other(self, name, "sparse row compressed")
        return (self.compressed_part if name == "crow_indices" else self.plain_part).detach()

    return method


def _by_columns(name: str):
    def method(self) -> Tensor:
        if self.by_rows:
            raise _other(self, name, "sparse column compressed")
        return (self.compressed_part if name == "ccol_indices" else self.plain_part).detach()

    return method


def _refusing(name: str, wanted: str):
    def method(self):
        raise _other(self, name, wanted)

    return method


for _name in ("indices", "coalesce"):
    setattr(Compressed, _name, _refusing(_name, "sparse coordinate"))
for _name in ("_indices", "is_coalesced"):
    setattr(Compressed, _name, _refusing(_name, "sparse coordinate"))
for _name in ("crow_indices", "col_indices"):
    setattr(Coo, _name, _refusing(_name, "sparse row compressed"))
for _name in ("ccol_indices", "row_indices"):
    setattr(Coo, _name, _refusing(_name, "sparse column compressed"))
for _name in ("crow_indices", "col_indices"):
    setattr(Compressed, _name, _by_rows(_name))
for _name in ("ccol_indices", "row_indices"):
    setattr(Compressed, _name, _by_columns(_name))


class Csr(Compressed):
    """A matrix whose rows are one behind the other."""

    kind, own_layout = "csr", layout.known["sparse_csr"]


class Csc(Compressed):
    """A matrix whose columns are one behind the other."""

    kind, by_rows, own_layout = "csc", False, layout.known["sparse_csc"]


class Bsr(Compressed):
    """A matrix of blocks, whose rows of blocks are one behind the other."""

    kind, blocked, own_layout = "bsr", True, layout.known["sparse_bsr"]


class Bsc(Compressed):
    """A matrix of blocks, whose columns of blocks are one behind the other."""

    kind, blocked, by_rows, own_layout = "bsc", True, False, layout.known["sparse_bsc"]


CLASSES = {c.own_layout: c for c in (Coo, Csr, Csc, Bsr, Bsc)}
for _cls in CLASSES.values():
    offer(_cls)
