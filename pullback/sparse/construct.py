"""Constructors of sparse tensors: `sparse_coo_tensor`, `sparse_csr_tensor` and their family.

Parts that do not fit are refused always, integers outside of the tensor where that is asked for
(`invariants.py`), and else when something is computed with them.
"""

from __future__ import annotations

from typing import Any

from .. import errors
from ..array import dtype as dt
from ..array.layout import layout as layouts
from ..core.handle import Tensor
from ..creation import tensor
from ..table.packets import ops
from . import invariants
from .memo import known
from .tensor import CLASSES, Coo, SparseTensor

NAMES = {"strided": "Strided", "sparse_coo": "Sparse", "sparse_csr": "SparseCsr",
         "sparse_csc": "SparseCsc", "sparse_bsr": "SparseBsr", "sparse_bsc": "SparseBsc",
         "_mkldnn": "Mkldnn", "jagged": "Jagged"}


def title(layout: Any) -> str:
    """A layout as messages call it."""
    return NAMES.get(str(layout).removeprefix("torch."), str(layout))


def _values(values: Any, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    """Values of their own handle: as a leaf, or with the history that the given ones have."""
    if not isinstance(values, Tensor):
        out = tensor(values, dtype=dtype, device=device)
    else:
        out = values if dtype is None or values.dtype is dtype else values.to(dtype)
        out = out if device is None else out.to(device)
        if not out.requires_grad and requires_grad:
            out = out.detach()
        elif out is values:
            out = ops.alias(out)
    return out.requires_grad_(True) if requires_grad and out.is_leaf else out


def _integers(given: Any, name: str, device: Any) -> Tensor:
    if isinstance(given, Tensor):
        if given.requires_grad:
            raise errors.RefusedValue(errors.text(
                f"{name} must not require grad: integers have no derivative "
                f"({errors.user_line(3)})", f"{name}: {given.dtype.name}{list(given.shape)}",
                f"{name}.detach()"))
        if device is None or given.device == device:
            return known(given.detach, given)
        return known(lambda: given.detach().to(device), given)
    found = tensor(given, device=device)
    return found if found.numel() else found.to(dt.int64)  # `[]` says no dtype


def _place(device: Any, values: Any) -> Any:
    """The device of integers: that of the values, if nobody says; those of `meta` are numbers."""
    if device is not None or not isinstance(values, Tensor) or values.device.type == "meta":
        return device
    return values.device


def _wrong_call(name: str, takes: str, *given: Any) -> Exception:
    kinds = ", ".join(type(v).__name__ for v in given if v is not None)
    return errors.ArgumentError(errors.text(
        f"{name}() received an invalid combination of arguments - got ({kinds}) "
        f"({errors.user_line(3)})", cure=f"call {name}({takes})"))


def _shape(size: Any, name: str) -> tuple:
    try:
        return tuple([int(n) if type(n) is not int and not hasattr(n, "node") else n
                      for n in size])
    except (TypeError, ValueError):
        raise _wrong_call(name, "indices, values, size=(2, 3)", size) from None


def _dtype(dtype: Any, name: str) -> Any:
    try:
        return dt.as_dtype(dtype)
    except TypeError:
        raise _wrong_call(name, "..., dtype=torch.float32", dtype) from None


def sparse_coo_tensor(
    indices: Any = None, values: Any = None, size: Any = None, *, dtype: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
    check_invariants: bool | None = None, is_coalesced: bool | None = None,
) -> Tensor:
    """A sparse tensor from the coordinates and the values of its entries.

    Called with a size alone, it has no entries.
    """
    dtype = _dtype(dtype, "sparse_coo_tensor")
    if values is None:
        if (indices is None) == (size is None) or isinstance(indices, Tensor):
            raise _wrong_call("sparse_coo_tensor", "indices, values), (indices, values, size) or "
                              "(size", indices, size)
        shape = _shape(size if indices is None else indices, "sparse_coo_tensor")
        at = ops.zeros((len(shape), 0), dtype=dt.int64, device=device)
        held = ops.zeros(0, dtype=dtype or dt.default(), device=device)
        return Coo.make(at, held.requires_grad_(requires_grad), shape, True)
    at = _integers(indices, "indices", _place(device, values))
    if at.dtype is not dt.int64:
        at = known(lambda given=at: given.to(dt.int64), at)
    if at.ndim != 2:
        raise errors.ShapeError(
            f"indices must be sparse_dim x nnz, but got: {list(at.shape)} ({errors.user_line(2)})")
    held = _values(values, dtype, device, requires_grad)
    held = held if held.ndim else held.reshape(1)
    if held.shape[0] != at.shape[1]:
        raise errors.ShapeError(
            "indices and values must have same nnz, but got nnz from indices: "
            f"{at.shape[1]}, nnz from values: {held.shape[0]} ({errors.user_line(2)})")
    shape = _size_coo(at, held) if size is None else _shape(size, "sparse_coo_tensor")
    invariants.check_coo(at, held, shape)
    if invariants.wanted(check_invariants):
        invariants.inside(at, shape[:at.shape[0]])
        if is_coalesced:
            invariants.check_coalesced(at, shape)
    if is_coalesced is None:
        is_coalesced = type(at.shape[1]) is int and at.shape[1] < 2
    return Coo.make(at, held, shape, is_coalesced)


def _size_coo(at: Tensor, values: Tensor) -> tuple:
    """The smallest size that has all entries."""
    if not at.shape[1]:
        return (*[0] * at.shape[0], *values.shape[1:])
    low, high = known(lambda: (at.amin(1).tolist(), at.amax(1).tolist()), at)
    for k, n in enumerate(low):
        if n < 0:
            raise errors.RefusedValue(
                f"found negative index {n} for dim {k} ({errors.user_line(3)})")
    return (*[n + 1 for n in high], *values.shape[1:])


def sparse_compressed_tensor(
    compressed_indices, plain_indices, values, size=None, *, dtype=None, layout=None, device=None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> Tensor:
    """A sparse matrix whose rows or columns, or blocks of these, are one behind the other."""
    if layout not in CLASSES or CLASSES[layout] is Coo:
        raise errors.RefusedValue(
            "sparse_compressed_tensor expected sparse compressed tensor layout but got "
            f"{'none' if layout is None else title(layout)} ({errors.user_line(2)})")
    return _compressed(CLASSES[layout], compressed_indices, plain_indices, values, size,
                       _dtype(dtype, "sparse_compressed_tensor"), device, requires_grad,
                       check_invariants)


def _compressed(cls: Any, compressed_indices: Any, plain_indices: Any, values: Any, size: Any,
                dtype: Any, device: Any, requires_grad: bool, check_invariants: bool | None):
    first, second = invariants._NAMES[cls.kind][:2]
    place = _place(device, values)
    compressed = _integers(compressed_indices, first, place)
    plain = _integers(plain_indices, second, place)
    held = _values(values, dtype, device, requires_grad)
    if not isinstance(plain_indices, Tensor) and not plain.numel():
        plain = plain.to(compressed.dtype)
    if size is None:
        invariants._check_ranks(cls.kind, compressed, plain, held,
                                (0,) * (held.ndim + 1 - 2 * cls.blocked))
        shape = _size_compressed(cls, compressed, plain, held)
    else:
        shape = _shape(size, f"sparse_{cls.kind}_tensor")
    invariants.check_compressed(cls.kind, compressed, plain, held, shape)
    t = cls.make(compressed, plain, held, shape)
    if invariants.wanted(check_invariants):
        invariants.check_numbers(t)
    return t


def _size_compressed(cls: Any, compressed: Tensor, plain: Tensor, values: Tensor) -> tuple:
    d = compressed.ndim - 1
    high, wide = values.shape[d + 1:d + 3] if cls.blocked else (1, 1)
    long = compressed.shape[-1] - 1
    short = known(lambda: int(plain.max()), plain) + 1 if plain.numel() else 0
    n, m = (long * high, short * wide) if cls.by_rows else (short * high, long * wide)
    return (*compressed.shape[:-1], n, m, *values.shape[d + (3 if cls.blocked else 1):])


def _named(kind: str, compressed: Any, plain: Any, values: Any, size: Any, dtype: Any, layout: Any,
           device: Any, requires_grad: bool, check_invariants: bool | None) -> Tensor:
    own = layouts.known[f"sparse_{kind}"]
    if layout is not None and layout is not own:
        raise errors.RefusedValue(f"sparse_{kind}_tensor: layout must be {title(own)} but got "
                                  f"{title(layout)} ({errors.user_line(3)})")
    return _compressed(CLASSES[own], compressed, plain, values, size,
                       _dtype(dtype, f"sparse_{kind}_tensor"), device, requires_grad,
                       check_invariants)


def sparse_csr_tensor(
    crow_indices, col_indices, values, size=None, *, dtype=None, layout=None, device=None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> Tensor:
    """A sparse matrix, or a batch of them, whose rows are one behind the other."""
    return _named("csr", crow_indices, col_indices, values, size, dtype, layout, device,
                  requires_grad, check_invariants)


def sparse_csc_tensor(
    ccol_indices, row_indices, values, size=None, *, dtype=None, layout=None, device=None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> Tensor:
    """A sparse matrix, or a batch of them, whose columns are one behind the other."""
    return _named("csc", ccol_indices, row_indices, values, size, dtype, layout, device,
                  requires_grad, check_invariants)


def sparse_bsr_tensor(
    crow_indices, col_indices, values, size=None, *, dtype=None, layout=None, device=None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> Tensor:
    """A sparse matrix of blocks, whose rows of blocks are one behind the other."""
    return _named("bsr", crow_indices, col_indices, values, size, dtype, layout, device,
                  requires_grad, check_invariants)


def sparse_bsc_tensor(
    ccol_indices, row_indices, values, size=None, *, dtype=None, layout=None, device=None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> Tensor:
    """A sparse matrix of blocks, whose columns of blocks are one behind the other."""
    return _named("bsc", ccol_indices, row_indices, values, size, dtype, layout, device,
                  requires_grad, check_invariants)


def is_sparse_tensor(value: Any) -> bool:
    """Has a tensor one of the sparse layouts?"""
    return isinstance(value, SparseTensor)
