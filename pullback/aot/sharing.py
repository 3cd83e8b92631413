"""Inputs that share memory: where one of them is written, the others must see it.

A graph has no memory, so a group of such inputs is captured as views of one *root*: the tensor that
all of them are views of, or, where autograd knows of none (a tensor and its `detach()`), all the
memory between their first and last byte. Inputs that are not written, or do not overlap, stay as
they are. Read next: `capture.py`, which makes the views.
"""

from __future__ import annotations

import numpy as np

from .. import errors
from ..core.handle import Tensor
from ..core.op import overload
from .capture import Member, Root

_WORK = 10_000  # candidates that NumPy may try before two inputs count as overlapping


def _owner(array: np.ndarray) -> int:
    """The identity of whatever holds the memory."""
    while type(array.base) is np.ndarray:
        array = array.base
    return id(array if array.base is None else array.base)


def _overlap(a: np.ndarray, b: np.ndarray) -> bool:
    if not np.may_share_memory(a, b):
        return False
    try:
        return np.shares_memory(a, b, max_work=_WORK)
    except np.exceptions.TooHardError:
        return True


def groups(arrays: list[np.ndarray], written: list[int]) -> list[list[int]]:
    """Inputs that overlap one that is written, by their numbers."""
    owners: dict[int, list[int]] = {}
    for i, array in enumerate(arrays):
        owners.setdefault(_owner(array), []).append(i)
    if len(owners) == len(arrays):
        return []
    group_of: dict[int, list[int]] = {}
    for i in written:
        for j in owners[_owner(arrays[i])]:
            if i != j and group_of.get(i, 0) is not group_of.get(j) and _overlap(
                    arrays[i], arrays[j]):
                merged = sorted({*group_of.get(i, [i]), *group_of.get(j, [j])})
                group_of.update(dict.fromkeys(merged, merged))
    return [g for i, g in sorted(group_of.items()) if g[0] == i]


def base_of(t: Tensor) -> Tensor:
    """The tensor that another one is a view of, or itself."""
    return t if t._link is None or t._link.apart else t._link.base


def pattern(tensors: list[Tensor], found: list[list[int]]) -> tuple:
    """What a graph for these groups depends on."""
    return tuple(tuple(_position(tensors, group, i) for i in group) for group in found)


def _bases(tensors: list[Tensor], group: list[int]) -> list[Tensor]:
    return list({id(base_of(tensors[i])): base_of(tensors[i]) for i in group}.values())


def _position(tensors: list[Tensor], group: list[int], i: int) -> tuple:
    t, bases = tensors[i], _bases(tensors, group)
    number = [b is base_of(t) for b in bases].index(True)
    views = () if base_of(t) is t else tuple(
        (ov.name, repr(rest), number) for ov, rest, number in t._link.chain)
    place = (base_of(t)._data.shape,) if len(bases) == 1 else _place(bases, base_of(t)._data)
    return i, number, place, base_of(t)._edge is not None, views


def _place(bases: list[Tensor], array: np.ndarray) -> tuple:
    """Size, stride and offset of a base in the memory of its group."""
    dtypes = {b._data.dtype for b in bases}
    if len(dtypes) > 1:
        raise errors.CompileError(
            "inputs of a compiled function share memory under different dtypes "
            f"({', '.join(sorted(map(str, dtypes)))}), and one of them is written\n"
            "  Fix: pass clone() of one of them"
        )
    low = min(np.lib.array_utils.byte_bounds(b._data)[0] for b in bases)
    size = array.itemsize
    offset = (np.lib.array_utils.byte_bounds(array)[0] - low) // size
    return tuple(array.shape), tuple([s // size for s in array.strides]), offset


def describe(
    tensors: list[Tensor], owners: list, found: list[list[int]], strided: bool = False
) -> tuple[list, dict]:
    """The roots of groups, and how their members follow from them: arguments of `capture`.

    `owners` says where the program will find each input: the number of an argument, or a tensor.
    With `strided` members are places in the memory of their root, as in PyTorch's graphs, not
    the views that they were made by.
    """
    roots, shared = [], {}
    for group in found:
        bases = _bases(tensors, group)
        first = {id(base_of(tensors[i])): owners[i] for i in reversed(group)}
        whole = Root(tuple(first[id(b)] for b in bases)) if len(bases) > 1 else None
        own = {
            id(b): Root((first[id(b)],), whole, _place(bases, b._data) if whole else ())
            for b in bases
        }
        roots += [whole, *own.values()] if whole else own.values()
        for i in group:
            t = tensors[i]
            link = None if base_of(t) is t else t._link
            chain, hidden = ((), None) if link is None else (link.chain, link.hidden)
            if strided:
                place = list(t.shape), list(t.stride()), t.storage_offset()
                chain = ((overload("as_strided"), place, None),)
            shared[id(t)] = Member(own[id(base_of(t))], chain, hidden)
    return roots, shared
