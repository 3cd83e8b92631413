"""Inputs that share memory: where one of them is written, the others must see it.

A graph has no memory, so a group of such inputs is captured as views of one *root*: the tensor that
all of them are views of, or, where autograd knows of none (a tensor and its `detach()`), all the
memory between their first and last byte. Inputs that are not written, or do not overlap, stay as
they are. Read next: `capture.py`, which makes the views.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .. import errors
from ..array.device import owner
from ..core.handle import Tensor, cell_of, make
from ..core.overload import overload
from ..core.tape import Accumulate
from ..graph.make_fx import fake_of
from ..memory.links import one_more
from ..memory.views import Detached, _repeats, recording_set, refresh, replay
from ..threads.state import state
from .joint import input_edge
from .results import root_of

if TYPE_CHECKING:
    from .capture import Capture

_WORK = 10_000  # candidates that NumPy may try before two inputs count as overlapping


@dataclass(slots=True)
class Root:
    """Memory that several inputs share; it is an input of the graph, they are views of it."""

    owners: tuple  # who has the memory: numbers of arguments, or tensors
    whole: Root | None = None  # the memory of the group, where it has more than one base
    place: tuple = ()  # size, stride and offset there
    counts: bool = True  # do all that have the memory count versions together (not by `.data`)?
    input: Tensor | None = None  # the handle in the capture

    def found(self, arguments: list[Tensor]) -> Tensor:
        """The tensor that the program gets: the base of the owners, or the memory of several."""
        bases = [root_of(arguments[o] if type(o) is int else o) for o in self.owners]
        if len(bases) == 1:
            return bases[0]
        t = make(span([b._payload for b in bases]))
        t._cell = cell_of(bases[0])
        return t

    def begin(self, t: Tensor, level: Capture, node) -> None:
        """Make the handle."""
        if self.whole is None:
            self.input = level.wrap(fake_of(t), node)
        else:
            base, step = self.whole.input, (overload("as_strided"), self.place, None)
            with recording_set(level.level, False):
                self.input = make(replay(make(base._payload), (step,))._payload)
            self.input._cell = cell_of(base)
            steps, version = one_more(None, step), self.input._cell.version
            self.input._link = Detached(base, steps, False, None, version)
            self.input._link.counts = self.counts
        if t._edge is not None:
            self.input._edge = input_edge(
                self.input, t._edge, t._payload, level.hooks.came_to_input)


@dataclass(slots=True)
class Member:
    """How an input that shares memory follows from its root."""

    root: Root
    chain: tuple  # views of the base
    hidden: str | None  # were they made while nothing was recorded?
    multi: bool = False  # is it one of several results of a view, by its place in memory?

    def handle(self, t: Tensor) -> Tensor:
        """What stands for the tensor in the capture."""
        base = self.root.input
        if base._link is not None:
            refresh(base)  # it may have been written before this tensor was met
        if not self.chain:
            return base
        level = base._payload.interp.level
        with recording_set(level, state.record[level] and not self.hidden):
            made = replay(base, self.chain)
        if self.multi:
            made._link.multi = True
        if isinstance(t._edge, Accumulate):  # nothing is behind it
            made._edge = input_edge(made, t._edge, t._payload, id)
        return made


def span(arrays: list[np.ndarray]) -> np.ndarray:
    """The memory from the first to the last element of arrays that share it, as one row."""
    bounds = [np.lib.array_utils.byte_bounds(a) for a in arrays]
    low, high = min(b[0] for b in bounds), max(b[1] for b in bounds)
    first = arrays[[b[0] for b in bounds].index(low)]
    size = first.itemsize
    return np.lib.stride_tricks.as_strided(first, ((high - low) // size,), (size,))


def _owner(array: np.ndarray) -> int:
    """The identity of whatever holds the memory."""
    array = owner(array)
    return id(array if array.base is None else array.base)


def _overlap(a: np.ndarray, b: np.ndarray) -> bool:
    if not np.may_share_memory(a, b):
        return False
    try:
        return np.shares_memory(a, b, max_work=_WORK)
    except np.exceptions.TooHardError:
        return True


def groups(arrays: list[np.ndarray], written: list[int]) -> list[list[int]]:
    """Inputs that overlap one that is written (or itself), by their numbers.

    What else is written in the same memory is with them.
    """
    owners: dict[int, list[int]] = {}
    for i, array in enumerate(arrays):
        owners.setdefault(_owner(array), []).append(i)
    if len(owners) == len(arrays) and not any(_repeats(arrays[i]) for i in written):
        return []
    group_of: dict[int, list[int]] = {i: [i] for i in written if _repeats(arrays[i])}
    for i in written:
        for j in owners[_owner(arrays[i])]:
            if i != j and group_of.get(i, 0) is not group_of.get(j) and _overlap(
                    arrays[i], arrays[j]):
                merged = sorted({*group_of.get(i, [i]), *group_of.get(j, [j])})
                group_of.update(dict.fromkeys(merged, merged))
    for memory in owners.values():  # a root is written as a whole: one for all that is written
        if any(i in group_of for i in memory):
            merged = [i for i in memory if i in group_of or i in written]
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
    place = (base_of(t)._payload.shape,) if len(bases) == 1 else _place(bases, base_of(t)._payload)
    together = len(bases) == 1 or _count_together(bases)
    return i, number, place, base_of(t)._edge is not None, views, together


def _count_together(bases: list[Tensor]) -> bool:
    """Do tensors of the same memory have one version, as by `detach()` but not by `.data`?"""
    return all(cell_of(b) is cell_of(bases[0]) for b in bases)


def _place(bases: list[Tensor], array: np.ndarray) -> tuple:
    """Size, stride and offset of a base in the memory of its group."""
    dtypes = {b._payload.dtype for b in bases}
    if len(dtypes) > 1:
        raise errors.CompileError(
            "inputs of a compiled function share memory under different dtypes "
            f"({', '.join(sorted(map(str, dtypes)))}), and one of them is written\n"
            "  Fix: pass clone() of one of them"
        )
    low = min(np.lib.array_utils.byte_bounds(b._payload)[0] for b in bases)
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
            id(b): Root((first[id(b)],), whole, _place(bases, b._payload) if whole else (),
                        _count_together(bases))
            for b in bases
        }
        roots += [whole, *own.values()] if whole else own.values()
        for i in group:
            t = tensors[i]
            link = None if base_of(t) is t else t._link
            chain, hidden = ((), None) if link is None else (link.chain, link.hidden)
            multi = False
            if strided and whole is None and t.dtype is base_of(t).dtype and (
                    base_of(t).is_contiguous() and not _repeats(t._payload)):
                place = list(t.shape), list(t.stride()), t.storage_offset()
                chain = ((overload("as_strided"), place, None),)
                multi = link is not None and link.multi
            shared[id(t)] = Member(own[id(base_of(t))], chain, hidden, multi)
    return roots, shared


def refuse_mixed_bases(tensors: list[Tensor], found: list[list[int]], names: list[str],
                       recorded: bool) -> None:
    """Refuse groups of inputs that PyTorch has no one base for; captures here need none.

    With `recorded`, in a program with gradients, they are to be views of one tensor that autograd
    knows of.
    """
    def shown(group: list[int]) -> str:
        return " and ".join(f"input {i} ({names[i]})" if i < len(names) else f"input {i}"
                            for i in group)

    for group in found:
        members = [tensors[i] for i in group]
        apart = [pair for pair in itertools.pairwise(group)
                 if not _views_of_one(*[tensors[i] for i in pair])]
        with_base = [i for i in group if tensors[i]._base is not None]
        without = [i for i in group if tensors[i]._base is None]
        roots = {id(tensors[i]._base) for i in with_base}
        if recorded and apart:
            what = (f"{shown(apart[0])} share storage but are not differentiable views of each "
                    "other")
        elif len({t.dtype for t in members}) > 1:
            raise _refused("input mutations on views with different dtypes", shown(group))
        elif len(roots) > 1:
            what = ("Aliased inputs share storage but have different autograd ._base tensors: "
                    f"{shown(with_base)} have ._base fields that point to different tensors")
        elif roots and any(id(tensors[i]) not in roots for i in without):
            what = ("Aliased inputs share storage but have mixed autograd ._base states: "
                    f"{shown(with_base)} have ._base set, while {shown(without)} have ._base=None")
        else:
            continue
        raise _refused("non-differentiable view input mutations", what)


def _views_of_one(a: Tensor, b: Tensor) -> bool:
    """Are two tensors the same, or is one a view that autograd knows of the other's memory?"""
    one, two = a._base, b._base
    return a is b or one is not None and one is two or one is b or two is a


def _refused(kind: str, what: str) -> Exception:
    return errors.AliasedInputs(errors.text(
        f"aot_autograd() does not yet handle {kind}. {what} ({errors.user_line()})",
        "aot.config.strict_input_aliases is True: what PyTorch refuses is an error",
        "clone one of the inputs, or set it to False"))
