"""Sparse tensors from sizes or like others, copies, comparisons and changes of size."""

from __future__ import annotations

from typing import Any

from .. import errors
from ..array import dtype as dt
from ..array.layout import STRIDED, layout
from ..core.handle import Tensor
from ..parts.rules import rule, shown
from ..table.packets import ops
from . import patterns
from .construct import title
from .tensor import CLASSES, Compressed, Coo, SparseTensor
from .unspecified import in_another_layout

COO = layout.known["sparse_coo"]


def _refuse(said: str, *tensors: Any, cure: str = "") -> None:
    raise errors.RefusedValue(
        errors.text(f"{said} ({errors.user_line(3)})", [shown(t) for t in tensors], cure))


# from sizes ---------------------------------------------------------------------------------------


def without_entries(size: Any, dtype: Any, to: layout, device: Any = None, dense_dim: int = 0,
                    blocks: tuple | None = None, index: Any = dt.int64) -> SparseTensor:
    """A tensor of a size and a layout that has no entries."""
    shape, dtype = tuple(size), dtype or dt.default()
    if any(n < 0 for n in shape):
        raise errors.ShapeError(f"Trying to create tensor with negative dimension {min(shape)}: "
                                f"{list(shape)} ({errors.user_line(3)})")
    dense = shape[len(shape) - dense_dim:]
    if to is COO:
        at = ops.zeros((len(shape) - dense_dim, 0), dtype=dt.int64, device=device)
        return Coo.make(at, ops.zeros((0, *dense), dtype=dtype, device=device), shape, True)
    cls: Any = CLASSES[to]
    d = len(shape) - dense_dim - 2
    if d < 0:
        _refuse(f"a tensor with layout {to} has two dims at least, but got size {list(shape)}")
    if cls.blocked and blocks is None:
        _refuse("zeros_sparse_compressed expected sparse compressed (non-block) tensor layout but "
                f"got {title(to)}", cure="nobody says how large the blocks are: use sparse_csr")
    high, wide = blocks or (1, 1)
    long = shape[d] // high if cls.by_rows else shape[d + 1] // wide
    lead = shape[:d]
    return cls.make(ops.zeros((*lead, long + 1), dtype=index, device=device),
                    ops.zeros((*lead, 0), dtype=index, device=device),
                    ops.zeros((*lead, 0, *(blocks or ()), *dense), dtype=dtype, device=device),
                    shape)


def emptied(t: SparseTensor, dtype: Any = None, device: Any = None) -> SparseTensor:
    """The same without entries."""
    blocks = index = None
    if isinstance(t, Compressed):
        index = t.plain_part.dtype
        if t.blocked:
            blocks = tuple(t.values_part.shape[t.batch_dims + 1:t.batch_dims + 3])
    return without_entries(t.shape, dtype or t.dtype, t.own_layout, device or t.device,
                           t.dense_dim(), blocks, index)


@rule(SparseTensor, "zeros", "empty.memory_format")
def zeros(size: Any, dtype: Any = None, to: Any = None, device: Any = None, *rest: Any):
    return without_entries(size, dtype, to, device)


@rule(SparseTensor, "new_zeros", "new_empty")
def new_zeros(t: Tensor, size: Any, dtype: Any = None, to: Any = None, device: Any = None,
              pin_memory: Any = None):
    to = to or t.layout
    if to is STRIDED:
        return ops.zeros(size, dtype=dtype or t.dtype, device=device or t.device)
    return without_entries(size, dtype or t.dtype, to, device or t.device)


# like another -------------------------------------------------------------------------------------


@rule(SparseTensor, "zeros_like")
def zeros_like(t: Tensor, dtype: Any = None, to: Any = None, device: Any = None, *rest: Any):
    to, dtype, device = to or t.layout, dtype or t.dtype, device or t.device
    if to is STRIDED:
        return ops.zeros(t.shape, dtype=dtype, device=device)
    if isinstance(t, SparseTensor) and to is t.layout:
        return emptied(t, dtype, device)
    dense = t.dense_dim() if isinstance(t, SparseTensor) and to is not COO else 0
    return without_entries(t.shape, dtype, to, device, dense)


def _on_entries(name: str, position: int):
    """An operator that makes a tensor like another: here, like its values."""

    def like(t: Tensor, *given: Any):
        given = list(given) + [None] * (position + 3 - len(given))
        to, given[position + 1] = given[position + 1], None
        device = given[position + 2]
        if to is STRIDED:
            dense = ops.empty(t.shape, dtype=t.dtype, device=t.device)
            return getattr(ops, name)(dense, *given[:position], dtype=given[position],
                                      device=device)
        if not isinstance(t, SparseTensor) or to not in (None, t.layout):
            _refuse(f"{name} with different sparse layout is not supported (self is "
                    f"{title(t.layout)} but you requested {title(to)})", t,
                    cure=f"convert first: {name}(x.to_sparse(layout={to}))")
        out = getattr(ops, name)(t.values_part.detach(), *given[:position], dtype=given[position])
        return moved(t.with_carrier(out), device)

    return like


for _name, _position in (("ones_like", 0), ("full_like", 1), ("rand_like", 0), ("randn_like", 0)):
    rule(SparseTensor, _name)(_on_entries(_name, _position))


@rule(SparseTensor, "empty_like")
def empty_like(t: Tensor, dtype: Any = None, to: Any = None, device: Any = None, *rest: Any):
    if to is not STRIDED and isinstance(t, Compressed) and to in (None, t.layout):
        values = ops.zeros_like(t.values_part.detach(), dtype=dtype)
        return moved(t.with_carrier(values), device)
    return zeros_like(t, dtype, to, device)


# copies -------------------------------------------------------------------------------------------


@rule(SparseTensor, "clone")
def clone(t: SparseTensor, memory_format: Any = None):
    return t.with_carrier(t.values_part.clone())


def moved(t: SparseTensor, device: Any) -> SparseTensor:
    """A tensor on a device."""
    if device is None or t.device == device:
        return t
    if str(device) == "meta":  # how many entries there are is a fact about data
        return emptied(t, device=device)
    return type(t).join({n: getattr(t, n).to(device) for n in t.names}, t.meta())


@rule(SparseTensor, "_to_copy")
def to_copy(t: Tensor, dtype: Any = None, to: Any = None, device: Any = None, *rest: Any):
    if isinstance(t, SparseTensor):
        t = t.with_carrier(ops._to_copy(t.values_part, dtype=dtype))
    elif dtype is not None:
        t = t.to(dtype)
    return moved(converted(t, to), device)


def converted(t: Tensor, to: Any):
    """A tensor in a layout, if one is given."""
    from .convert import convert

    return t if to is None else convert(t, to)


@rule(SparseTensor, "to.device")
def to_device(t: SparseTensor, device: Any, dtype: Any = None, *rest: Any):
    return to_copy(t, dtype, None, device) if str(device) == "meta" != str(t.device) else (
        NotImplemented)


@rule(SparseTensor, "to.dtype_layout")
def to_layout(t: Tensor, dtype: Any = None, to: Any = None, device: Any = None,
              pin_memory: Any = None, non_blocking: Any = None, copy: bool = False, *rest: Any):
    if to is not None and to is not t.layout:
        out = converted(t, to)
        return out if dtype is None and device is None else out.to(device=device, dtype=dtype)
    if device is not None and str(device) == "meta":
        return to_copy(t, dtype, None, device)
    changes = dtype not in (None, t.dtype) or device not in (None, t.device)
    return to_copy(t, dtype, None, device) if changes or copy else t


@rule(SparseTensor, "contiguous", "resolve_conj", "resolve_neg")
def itself(t: SparseTensor, *rest: Any):
    return t


@rule(SparseTensor, "copy_")
def copy_(t: Tensor, other: Tensor, non_blocking: bool = False):
    if not isinstance(t, SparseTensor) or not isinstance(other, SparseTensor):
        _refuse("copy_() between dense and sparse Tensors is not implemented! Found self type = "
                f"{t.type()} and src type = {other.type()}", t, other, cure="x.to_dense() first")
    if type(t) is not type(other):
        _refuse("copy_: copy of sparse compressed tensors having different layouts is not "
                f"supported. self layout is {title(t.layout)} and src layout is "
                f"{title(other.layout)}", t, other, cure="src.to_sparse(layout=x.layout)")
    if isinstance(t, Coo) and t._nnz() and (t.sparse_dim(), t.dense_dim()) != (
            other.sparse_dim(), other.dense_dim()):
        _refuse(f"changing the number of dense dimensions (from {t.dense_dim()} to "
                f"{other.dense_dim()}) on a non-empty sparse tensor is not supported", t, other,
                cure="x.sparse_resize_and_clear_(...) first")
    if isinstance(t, Compressed) and t.shape != other.shape:
        _refuse("copy_: only sparse compressed tensors with the same shape are supported",
                t, other)
    if other is not t:
        new = other.with_carrier(ops._to_copy(other.values_part, dtype=t.dtype))
        t.write_all(in_another_layout(new, other), "copy")
    return t


@rule(SparseTensor, "fill_")
def fill_(t: SparseTensor, value: Any):
    """Every entry becomes a number."""
    t.write_all(t.with_carrier(ops.fill(t.values_part, value)), "fill")
    return t


def _add_in_place(name: str):
    """Entries of one pattern are added in place, in order or not: the leaf stays one."""

    def write(t: Tensor, other: Any, alpha: Any = 1):
        from .elementwise import same_pattern

        if not (isinstance(t, SparseTensor) and isinstance(other, SparseTensor)
                and same_pattern(t, other)):
            return NotImplemented
        out = getattr(ops, name)(t.values_part, other.values_part, alpha=alpha)
        t.write_all(t.with_carrier(out), name)
        return t

    return write


for _name in ("add", "sub"):
    rule(SparseTensor, f"{_name}_")(_add_in_place(_name))


# comparisons --------------------------------------------------------------------------------------


def on_both(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The values of two tensors of one size wherever one of them has an entry."""
    from .elementwise import as_coo, same_pattern
    from .masked import sparse_mask

    if not (isinstance(a, SparseTensor) and isinstance(b, SparseTensor)):
        return tuple(t.to_dense() if isinstance(t, SparseTensor) else t for t in (a, b))
    x, y = as_coo(a).coalesce(), as_coo(b).coalesce()
    if same_pattern(x, y):
        return x.values_part, y.values_part
    if x.sparse_dim() != y.sparse_dim():
        return a.to_dense(), b.to_dense()
    at = ops.cat([x.indices_part, y.indices_part], 1)
    found = patterns.distinct(at, tuple(x.shape[:x.sparse_dim()])).indices
    values = ops.empty((found.shape[1], *x.values_part.shape[1:]), device=x.device)
    wide = Coo.make(found, values, x.shape, True)
    return sparse_mask(x, wide).values_part, sparse_mask(y, wide).values_part


@rule(SparseTensor, "equal")
def equal(a: Tensor, b: Tensor) -> bool:
    return tuple(a.shape) == tuple(b.shape) and ops.equal(*on_both(a, b))


@rule(SparseTensor, "allclose")
def allclose(a: Tensor, b: Tensor, rtol: float = 1e-5, atol: float = 1e-8,
             equal_nan: bool = False) -> bool:
    if tuple(a.shape) != tuple(b.shape):
        _refuse("allclose: sparse tensors of different sizes cannot be compared", a, b)
    return ops.allclose(*on_both(a, b), rtol, atol, equal_nan)


# changes of size ----------------------------------------------------------------------------------


def sparse_resize_(t: Coo, size: Any, sparse_dim: int, dense_dim: int) -> Coo:
    """Become a tensor of another size: entries stay, where there are some dims only grow."""
    size = _checked(t, size, sparse_dim, dense_dim)
    own = (t.sparse_dim(), t.dense_dim())
    if not t._nnz():
        return sparse_resize_and_clear_(t, size, sparse_dim, dense_dim)
    cure = "x.sparse_resize_and_clear_(...) for a tensor without entries"
    for k, kind in enumerate(("sparse", "dense")):
        if own[k] != (sparse_dim, dense_dim)[k]:
            _refuse(f"changing the number of {kind} dimensions (from {own[k]} to "
                    f"{(sparse_dim, dense_dim)[k]}) on a non-empty sparse tensor is not supported",
                    t, cure=cure)
    for kind, old, new in (("sparse", t.shape[:sparse_dim], size[:sparse_dim]),
                           ("dense", t.shape[sparse_dim:], size[sparse_dim:])):
        if any(a > b for a, b in zip(old, new)):
            _refuse(f"shrinking the size of {kind} dimensions (from {list(old)} to {list(new)}) on "
                    "a non-empty sparse tensor is not supported", t, cure=cure)
    values = t.values_part
    for k, n in enumerate(size[sparse_dim:]):
        more = n - values.shape[k + 1]
        if more:
            wide = (*values.shape[:k + 1], more, *values.shape[k + 2:])
            zeros = ops.zeros(wide, dtype=values.dtype, device=values.device)
            values = ops.cat([values, zeros], k + 1)
    t.write_all(Coo.make(t.indices_part, values, size, t.coalesced), "sparse_resize")
    return t


def sparse_resize_and_clear_(t: Coo, size: Any, sparse_dim: int, dense_dim: int) -> Coo:
    """Become a tensor of another size without entries."""
    size = _checked(t, size, sparse_dim, dense_dim)
    t.write_all(without_entries(size, t.dtype, COO, t.device, dense_dim),
                "sparse_resize_and_clear")
    return t


def _checked(t: Any, size: Any, sparse_dim: int, dense_dim: int) -> tuple:
    if not isinstance(t, Coo):
        raise errors.LayoutError(errors.text(
            f"sparse_resize_ expected sparse coordinate tensor layout but got {title(t.layout)} "
            f"({errors.user_line(3)})", shown(t), "x.to_sparse() first"))
    size = tuple(int(n) for n in size)
    if sparse_dim + dense_dim != len(size):
        _refuse(f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, "
                f"sparse_dim = {sparse_dim}, dense_dim = {dense_dim}", t)
    return size


@rule(SparseTensor, "resize_")
def resize_(t: SparseTensor, size: Any, memory_format: Any = None) -> SparseTensor:
    """Become a tensor of rows, or of columns, with more of them; entries stay."""
    if not isinstance(t, Compressed):
        return t._no_memory()
    size, d = tuple(int(n) for n in size), t.batch_dims
    if len(size) != t.ndim or (*size[:d], *size[d + 2:]) != (*t.shape[:d], *t.shape[d + 2:]) or any(
            n < m for n, m in zip(size, t.shape)):
        _refuse(f"resize_: a sparse {t.kind.upper()} tensor can get more rows and columns, and "
                f"nothing else: from {list(t.shape)} to {list(size)}", t, cure="x[:rows, :columns] "
                "for less, x.reshape(...) for another shape")
    blocks = t.values_part.shape[d + 1:d + 3] if t.blocked else (1, 1)
    if any(n % b for n, b in zip(size[d:], blocks)):
        _refuse(f"resize_: {list(size[d:d + 2])} is not divisible by the blocks, {list(blocks)}", t)
    long = 0 if t.by_rows else 1
    more = size[d + long] // blocks[long] + 1 - t.compressed_part.shape[-1]
    last = t.compressed_part[..., -1:]
    wide = ops.cat([t.compressed_part, last.expand(*last.shape[:-1], more)], -1)
    t.write_all(t.make(wide, t.plain_part, t.values_part, size), "resize")
    return t


def resize_as_sparse_(t: Tensor, other: SparseTensor) -> Tensor:
    """Become a tensor of the size, and the kinds of dims, of another."""
    if isinstance(t, Coo) and isinstance(other, Coo):
        return sparse_resize_(t, other.shape, other.sparse_dim(), other.dense_dim())
    if type(t) is not type(other) or not isinstance(t, SparseTensor):
        _refuse(f"resize_as_sparse_: self and other must have the same layout, but got "
                f"{title(t.layout)} and {title(other.layout)}", t, other)
    t.write_all(other.with_carrier(ops.zeros_like(other.values_part.detach(), dtype=t.dtype)),
                "resize_as_sparse")
    return t

