"""What has to be true of the parts of a sparse tensor, and who checks it when.

That the parts fit each other (`check_coo`, `check_compressed`) is asked of all tensors: it costs
nothing.  That integers lie inside of the tensor, in order (`check_numbers`), is asked by
constructors where somebody wants that (`check_sparse_tensor_invariants`), and in any case once per
pattern before something reads memory by them (`inside`, `inside_compressed`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import errors
from ..array.device import lookup
from ..core.handle import Tensor
from .memo import kept, kept_with

_NAMES = {  # layout -> names of its integers, and what they count
    "csr": ("crow_indices", "col_indices", "nrows", "ncols"),
    "csc": ("ccol_indices", "row_indices", "ncols", "nrows"),
    "bsr": ("crow_indices", "col_indices", "nrows", "ncols"),
    "bsc": ("ccol_indices", "row_indices", "ncols", "nrows"),
}
_KINDS = {"torch.int32": "Int", "torch.int64": "Long", "torch.int16": "Short",
          "torch.int8": "Char", "torch.uint8": "Byte", "torch.float32": "Float",
          "torch.float64": "Double", "torch.bool": "Bool"}


class check_sparse_tensor_invariants:
    """Constructors of sparse tensors check the numbers that they get, or not, from here on.

    A context (`with check_sparse_tensor_invariants(True):`), a decorator, or a switch for the
    program: `enable()`, `disable()`, `is_enabled()`.  The argument `check_invariants` of a
    constructor goes before.
    """

    _enabled: bool | None = None  # nobody has said

    @staticmethod
    def is_enabled() -> bool:
        """Do constructors check, if their call does not say?"""
        return bool(check_sparse_tensor_invariants._enabled)

    @staticmethod
    def enable() -> None:
        """Constructors check from now on."""
        check_sparse_tensor_invariants._enabled = True

    @staticmethod
    def disable() -> None:
        """Constructors check no more."""
        check_sparse_tensor_invariants._enabled = False

    def __init__(self, enable: bool = True):
        self.state = enable
        self._before: list = []

    def __enter__(self) -> None:
        if self._before:
            raise errors.RefusedValue(errors.text(
                "This context manager instance is already activated. Use a different context "
                f"manager instance for context nesting. ({errors.user_line(2)})"))
        self._before.append(check_sparse_tensor_invariants._enabled)
        check_sparse_tensor_invariants._enabled = self.state

    def __exit__(self, *exc_info: object) -> None:
        check_sparse_tensor_invariants._enabled = self._before.pop()

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def checked(*args, **kwargs):
            with type(self)(self.state):
                return function(*args, **kwargs)

        return checked


def wanted(check_invariants: bool | None) -> bool:
    """Does a constructor check the numbers?"""
    if check_invariants is None:
        return check_sparse_tensor_invariants.is_enabled()
    return check_invariants


def refuse(said: str, *facts: str) -> None:
    """Parts that do not fit."""
    raise errors.RefusedValue(errors.text(f"{said} ({errors.user_line(4)})", list(facts)))


# coordinates --------------------------------------------------------------------------------------


def check_coo(at: Tensor, values: Tensor, shape: tuple) -> None:
    """The indices, the values and the size of a tensor fit each other."""
    sparse, dense = at.shape[0], values.ndim - 1
    if len(shape) != sparse + dense:
        refuse("'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = "
               f"{len(shape)}, sparse_dim = {sparse}, dense_dim = {dense}")
    if any(n < 0 for n in shape):
        refuse(f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}")
    if tuple(values.shape[1:]) != tuple(shape[sparse:]):
        refuse(f"values has incorrect size, expected {[at.shape[1], *shape[sparse:]]}, got "
               f"{list(values.shape)}")


def _array(t: Tensor) -> Any:
    """The integers of a part where they are known; None inside of a transform."""
    return t._payload if hasattr(t._payload, "min") and hasattr(t._payload, "dtype") else None


def inside(at: Tensor, sizes: tuple) -> None:
    """Refuse coordinates outside of a tensor: what comes next reads memory by them."""
    kept(at, f"inside {tuple(sizes)}", lambda: _check_inside(at, sizes))


def _check_inside(at: Tensor, sizes: tuple) -> bool:
    array = _array(at)
    if array is None or not array.size:
        return True
    low, high = array.min(1).tolist(), array.max(1).tolist()
    for k, size in enumerate(sizes):
        if low[k] < 0:
            refuse(f"found negative index {low[k]} for dim {k}",
                   f"entry: {int(array[k].argmin())}")
        if high[k] >= size:
            refuse(f"size is inconsistent with indices: for dim {k}, size is {size} but found "
                   f"index {high[k]}", f"entry: {int(array[k].argmax())}")
    return True


def check_coalesced(at: Tensor, shape: tuple) -> None:
    """Refuse indices that are said to be in order, each once, and are not."""
    array = _array(at)
    if array is None or array.shape[1] < 2:
        return
    xp = lookup(array)[1]
    flat = xp.zeros(array.shape[1], np.int64)
    for row, size in zip(array, shape):
        flat = flat * size + row
    wrong = xp.flatnonzero(flat[1:] <= flat[:-1])
    if wrong.size:
        refuse("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor",
               f"entry {int(wrong[0]) + 1} is at {array[:, wrong[0] + 1].tolist()}, the one "
               f"before at {array[:, wrong[0]].tolist()}")


# compressed ---------------------------------------------------------------------------------------


def check_compressed(kind: str, compressed: Tensor, plain: Tensor, values: Tensor,
                     shape: tuple) -> None:
    """The integers, the values and the size of a tensor fit each other."""
    first, second, _, _ = _NAMES[kind]
    d, blocks = _check_ranks(kind, compressed, plain, values, shape)
    lead = [list(t.shape[:d]) for t in (compressed, plain, values)]
    if any(n != list(shape[:d]) for n in lead):
        refuse(f"all batch dimensions of {first} (={lead[0]}), {second} (={lead[1]}), and values "
               f"(={lead[2]}) must be equal to tensor batch dimensions (={list(shape[:d])})")
    if any(n < 0 for n in shape):
        refuse(f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}")
    sizes = []
    for k in range(2):
        block = values.shape[d + 1 + k] if blocks else 1
        if not block or shape[d + k] % block:
            refuse(f"tensor shape[{k}] (={shape[d + k]}) must be divisible with blocksize[{k}] "
                   f"(={block}) as defined by values shape")
        sizes.append(shape[d + k] // block)
    by_rows = kind in ("csr", "bsr")
    long = sizes[0 if by_rows else 1]
    if compressed.shape[-1] != long + 1:
        of = ("row" if by_rows else "column") + (" blocks" if blocks else "s")
        refuse(f"{first}.shape[-1] must be equal to the number of {of} + 1 (={long + 1}), but got "
               f"{compressed.shape[-1]}")
    if plain.shape[-1] != values.shape[d]:
        refuse(f"{second}.shape[-1] must be equal to nnz (={values.shape[d]}) as defined by "
               f"values.shape[{d}], but got {plain.shape[-1]}")
    dense = d + 1 + blocks
    if tuple(values.shape[dense:]) != tuple(shape[d + 2:]):
        refuse(f"values has incorrect size, expected {[*values.shape[:dense], *shape[d + 2:]]}, "
               f"got {list(values.shape)}")
    _check_dtypes(first, second, compressed, plain)


def _check_ranks(kind: str, compressed: Tensor, plain: Tensor, values: Tensor,
                 shape: tuple) -> tuple[int, int]:
    """(batch dims, block dims) of parts whose numbers of dims fit."""
    first, second, _, _ = _NAMES[kind]
    blocks, d = 2 if kind[0] == "b" else 0, compressed.ndim - 1
    if d < 0:
        refuse(f"{first} must have dimensionality >= 1 but got 0")
    if plain.ndim != d + 1:
        refuse(f"{first} and {second} dimensionalities must be equal but got {d + 1} and "
               f"{plain.ndim}, respectively")
    dense = values.ndim - d - blocks - 1
    if dense < 0:
        refuse("values must have dimensionality > sum of batch and block dimensionalities "
               f"(={d} + {blocks}) but got {values.ndim}")
    if len(shape) != d + 2 + dense:
        refuse("tensor dimensionality must be sum of batch, base, and dense dimensionalities "
               f"(={d} + 2 + {dense}) but got {len(shape)}")
    return d, blocks


def _check_dtypes(first: str, second: str, compressed: Tensor, plain: Tensor) -> None:
    one, other = (_KINDS.get(str(t.dtype), str(t.dtype)) for t in (compressed, plain))
    if one != other:
        refuse(f"{first} and {second} must have the same dtype, but got {one} and {other}, "
               "respectively")
    if one not in ("Int", "Long"):
        refuse(f"{first} and {second} dtype must be Int or Long, but got {one}")


def inside_compressed(t: Any) -> None:
    """Refuse integers of a compressed tensor by which memory cannot be read."""
    def find() -> bool:
        check_numbers(t, ordered=False)
        return True

    kept_with(t, "inside", find)


def in_order(t: Any) -> bool:
    """Are the entries of every row (or column) in order, and none twice?"""
    def find() -> bool:
        compressed, plain = _array(t.compressed_part), _array(t.plain_part)
        return compressed is None or plain is None or _disorder(compressed, plain) is None

    return kept_with(t, "in order", find)


def _disorder(compressed: Any, plain: Any) -> tuple | None:
    """The place of the first entry that does not come after the one before it in its row."""
    n = plain.shape[-1]
    if n < 2:
        return None
    xp = lookup(plain)[1]
    starts = xp.zeros((math.prod(plain.shape[:-1]), n + 1), bool)
    ends = xp.clip(compressed, 0, n).reshape(starts.shape[0], compressed.shape[-1])
    starts[xp.arange(starts.shape[0])[:, None], ends] = True
    starts = starts.reshape(*plain.shape[:-1], n + 1)
    wrong = xp.argwhere((plain[..., 1:] <= plain[..., :-1]) & ~starts[..., 1:n])
    return None if not wrong.size else (*wrong[0, :-1].tolist(), int(wrong[0, -1]) + 1)


def check_all(t: Any) -> None:
    """Refuse a tensor whose integers are not those of its layout."""
    if hasattr(t, "indices_part"):
        _check_inside(t.indices_part, t.shape[:t.sparse_dim()])
        if t.coalesced:
            check_coalesced(t.indices_part, t.shape)
    else:
        check_numbers(t)


def check_numbers(t: Any, ordered: bool = True) -> None:
    """Refuse integers that are not those of a matrix, and name the first that is not."""
    compressed, plain = _array(t.compressed_part), _array(t.plain_part)
    if compressed is None or plain is None:
        return  # inside of a transform: the kernels look
    xp = lookup(plain)[1]
    first, second, long, short = _NAMES[t.kind]
    d, n = t.batch_dims, plain.shape[-1]
    block = tuple(t.values_part.shape[d + 1:d + 3]) if t.blocked else (1, 1)
    size = t._payload.shape[d + 1] // block[1] if t.by_rows else t._payload.shape[d] // block[0]

    def hold(wrong: Any, said: str, of: Any) -> None:
        if wrong.any():
            at = tuple(xp.argwhere(wrong)[0].tolist())
            refuse(f"`{said}` is not satisfied.", f"first at {list(at)}: {of[at]}",
                   f"{short} = {size}, nnz = {n}")

    hold(compressed[..., :1] != 0, f"{first}[..., 0] == 0", compressed)
    hold(compressed[..., -1] != n, f"{first}[..., -1] == nnz", compressed[..., -1])
    steps = xp.diff(compressed, axis=-1)
    hold((steps < 0) | (steps > size),
         f"0 <= {first}[..., 1:] - {first}[..., :-1] <= {short}", steps)
    hold((plain < 0) | (plain >= size), f"0 <= {second} < {short}", plain)
    wrong = _disorder(compressed, plain) if ordered else None
    if wrong is not None:
        refuse(f"`{second}[..., {first}[..., i - 1]:{first}[..., i]] for all i = 1, ..., {long} "
               "are sorted and distinct along the last dimension values` is not satisfied.",
               f"first at {list(wrong)}: {plain[wrong]} after "
               f"{plain[(*wrong[:-1], wrong[-1] - 1)]}")
