"""Tensors that are made of parts, as files have them: what is written of nested and masked ones.

PyTorch's files name functions that make such a tensor; those of nested tensors are here, too.
Nobody knows who wrote a file, so all integers are looked at, once all of the file is there
(`checking`).  Read next: `rebuild.py` for the table of names.
"""

from __future__ import annotations

import contextlib
import functools
import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

from ..array.layout import STRIDED
from ..core.handle import Tensor
from ..table.packets import ops
from .archive import refused
from .names import Name

OWN = ("_values", "_offsets", "_lengths", "_ragged_idx", "_metadata_cache", "_size", "_strides",
       "_dynamo_propagated_dynamic_indices")  # attributes that PyTorch's class makes by itself


# what is looked at later ------------------------------------------------------------------------


class _File(list):
    """What is to be checked once a file has been read."""

    late = False  # does the memory of its tensors come behind the pickle?


class _Files(threading.local):
    """The files that a thread reads."""

    def __init__(self):
        self.open: list[_File] = []


_files = _Files()


@contextlib.contextmanager
def checking() -> Iterator[_File]:
    """Look at the integers of tensors once all of a file is there: nobody knows who wrote them,
    so it does not matter whether the program wants checks."""
    found = _File()
    _files.open.append(found)
    try:
        yield found
    finally:
        _files.open.remove(found)
    for check in found:
        check()


def later(check: Callable[[], None]) -> None:
    """Have a check made when the file has been read."""
    if _files.open:
        _files.open[-1].append(check)


# nested tensors -----------------------------------------------------------------------------------


class Jagged:
    """What PyTorch's class of jagged tensors stands for in a file."""


class DimRange:
    """A mark of `mark_dynamic` in a file: a dim, its least and its largest size."""

    def __setstate__(self, state: Any) -> None:
        if type(state) is not list or len(state) != 3 or any(
                type(n) not in (int, type(None)) for n in state):
            raise refused("the range of a dim in the file is no three numbers")
        self.dim, low, self.max = state
        self.min = max(low or 2, 2)  # sizes 0 and 1 have programs of their own

    def __iter__(self) -> Iterator:
        return iter((self.dim, self.min, self.max))


def jagged(about: Any) -> Tensor:
    """`torch.nested._internal.nested_tensor._rebuild_njt`."""
    from ..nested.tensor import NestedTensor

    if type(about) is not dict:
        raise refused("a nested tensor of the file has no parts")
    values, offsets, lengths = (about.get(n) for n in ("values", "offsets", "lengths"))
    place = about.get("_ragged_idx", 1)
    integers = [offsets] if lengths is None else [offsets, lengths]
    if type(values) is not Tensor or any(type(t) is not Tensor for t in integers) or any(
            t.dtype.name not in ("int64", "int32") or t.ndim != 1 for t in integers):
        raise refused("a nested tensor of the file has no values or no offsets")
    if type(place) is not int or not 1 <= place <= values.ndim or not offsets.shape[0] or (
            lengths is not None and lengths.shape[0] != offsets.shape[0] - 1):
        raise refused("a nested tensor of the file has parts that do not fit")
    cache = about.get("_metadata_cache")
    longest = cache.get("max_seqlen") if type(cache) is dict else None
    known = type(longest) is Tensor and longest.ndim == 2 and not longest.numel()
    longest = ops.empty((longest.shape[0], 0)) if known else None  # without PyTorch's marks
    t = NestedTensor.make(values.detach(), offsets, lengths, place, longest)
    later(functools.partial(_check_jagged, t))
    return t.requires_grad_() if about.get("requires_grad") is True else t


def _check_jagged(t: Any) -> None:
    """Are all parts within the values?"""
    if t.offsets_part.device.type == "meta":
        return
    starts = t.offsets_part.tolist()
    ends = starts[1:] if t.lengths_part is None else [
        a + n for a, n in zip(starts, t.lengths_part.tolist())]
    size = t.values_part.shape[t.dense]
    if any(b < a for a, b in zip(starts, ends)) or min(starts) < 0 or max(
            ends, default=0) > size or starts != sorted(starts):
        raise refused(f"a nested tensor of the file has parts beyond its {size} values")
    longest = max([b - a for a, b in zip(starts, ends)], default=0)
    if t.longest_part is not None and t.longest_part.shape[0] < longest:
        raise refused("a nested tensor of the file has a part longer than its longest")


def strided(buffer: Any, sizes: Any, strides: Any, starts: Any) -> Tensor:
    """`torch._utils._rebuild_nested_tensor`: a buffer, and what each part of it shows."""
    from ..nested.strided import StridedNested, of_parts

    tables = (sizes, strides, starts)
    if type(buffer) is not Tensor or buffer.ndim > 1 or any(
            type(t) is not Tensor or t.dtype.name != "int64" and t.numel() for t in tables):
        raise refused("a nested tensor of the file has no buffer or no sizes")
    if _files.open and _files.open[-1].late:
        raise refused("the file has a nested tensor whose sizes come too late to be read: it is "
                      "in the format before zip files", "save it again in the usual format")
    own, steps, first = (t.tolist() for t in tables)
    if not own and sizes.ndim in (1, 2):  # no parts
        found = StridedNested.make(buffer.detach().reshape(-1)[:0], ())
    elif sizes.ndim != 2 or strides.shape != sizes.shape or starts.shape != sizes.shape[:1]:
        raise refused("a nested tensor of the file has tables that do not fit")
    else:
        _check_parts(own, steps, first, buffer.shape[0])
        plain = buffer.detach()
        if _in_order(own, steps, first, plain.shape[0]):
            found = StridedNested.make(plain, tuple([tuple(s) for s in own]))
        else:
            found = of_parts([ops.as_strided(plain, *about) for about in zip(own, steps, first)])
    return found.requires_grad_() if buffer.requires_grad else found


def _check_parts(sizes: list, strides: list, starts: list, size: int) -> None:
    total = 0
    for own, steps, start in zip(sizes, strides, starts):
        if len(own) > 64 or min((*own, *steps, start)) < 0:
            raise refused("a nested tensor of the file has impossible sizes")
        count = math.prod(own)
        total += count
        last = start + sum((n - 1) * s for n, s in zip(own, steps)) if count else 0
        if total > size or count and last >= size:
            raise refused(f"a nested tensor of the file has parts beyond its {size} values")


def _in_order(sizes: list, strides: list, starts: list, size: int) -> bool:
    """Do the parts lie one behind the other, each of them row-major?"""
    at = 0
    for own, steps, start in zip(sizes, strides, starts):
        if start != at or list(steps) != [math.prod(own[d + 1:]) for d in range(len(own))]:
            return False
        at += math.prod(own)
    return at == size


# masked tensors -----------------------------------------------------------------------------------


def masked(kind: Any, layout: Any, state: dict, requires_grad: bool) -> Tensor:
    """A wrapper of PyTorch's around data and a mask."""
    data, mask = state.pop("_masked_data", None), state.pop("_masked_mask", None)
    state.pop("_masked_layout", None)
    if not isinstance(data, Tensor) or not isinstance(mask, Tensor) or (
            data.shape != mask.shape or data.dtype.name == "bool" or mask.dtype.name != "bool"):
        raise refused("a masked tensor of the file has no data or no mask of its shape")
    found = kind.make(*(t if t.layout is STRIDED else t.to_dense() for t in (data.detach(), mask)),
                      str(layout).removeprefix("torch."))
    return found.requires_grad_(requires_grad)


# what is written ----------------------------------------------------------------------------------

_SPARSE = Name("torch._utils", "_rebuild_sparse_tensor")
STRIDED_NESTED = Name("torch._utils", "_rebuild_nested_tensor")
_JAGGED, _JAGGED_CLASS = (Name("torch.nested._internal.nested_tensor", name)
                          for name in ("_rebuild_njt", "NestedTensor"))
_WRAPPER = Name("torch._utils", "_rebuild_wrapper_subclass")
_MASKED = Name("torch.masked.maskedtensor.core", "MaskedTensor")


def written(t: Any) -> tuple[Name, tuple, Name | None, dict] | None:
    """The function that makes a tensor again, its arguments, the class of PyTorch's, attributes."""
    attributes = t.attributes()
    if hasattr(t, "in_file"):
        return _SPARSE, (t.layout, t.in_file()), None, attributes
    if t.title == "masked":
        parts = {"_masked_data": t.get_data().detach(), "_masked_mask": t.get_mask()}
        about = (t.dtype, tuple(t.shape), tuple(t.stride()), 0, t.layout, t.device)
        return (_WRAPPER, (_MASKED, *about, t.requires_grad), _MASKED, parts | attributes)
    if not t.is_nested:
        return None
    if t.layout is STRIDED:
        args = (t.buffer_part.detach().requires_grad_(t.requires_grad), t._nested_tensor_size(),
                t._nested_tensor_strides(), t._nested_tensor_storage_offsets())
        return STRIDED_NESTED, args, None, attributes
    made = {"values": t.values_part.detach(), "offsets": t.offsets_part,
            "lengths": t.lengths_part, "_ragged_idx": t.ragged_idx,
            "_metadata_cache": {} if t.longest_part is None else {"max_seqlen": t.longest_part},
            "requires_grad": t.requires_grad}
    return _JAGGED, (made,), _JAGGED_CLASS, attributes


def check_sparse(t: Any) -> None:
    """Are the integers of a sparse tensor what they have to be?"""
    from ..sparse import invariants

    try:
        invariants.check_all(t)
    except RuntimeError as error:
        raise refused(f"a sparse tensor of the file is damaged: {error}") from error
