"""`_foreach_<name>`: an operator of the table on each tensor of a list, derived from its entry.

`derive` makes the table entry of a list operator, which names the operator that it repeats and has
arguments of its own.  How they become the arguments of the calls follows from the two schemas: an
argument goes to that of its name, else to that in its place, and the types say the rest (`_TYPES`).
Since the elements are ordinary calls, derivatives, transforms and capture need nothing here.
`ops/foreach.py` lists all entries.  Read next: `core/surface.py`, for what a write is.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np

from .. import errors
from ..array import dtype as dt
from ..array.evaluate import is_array, run_raw
from ..array.failures import translated
from ..array.fake import Fake
from ..core.handle import Tensor, is_buffer, tensors_in
from ..core.op import Composite, Op, registry
from ..core.overload import OpOverload, overload_of
from ..core.stack import bind, level_of
from ..core.surface import check_result
from ..core.surface import inplace as write
from ..memory.assign import store
from ..memory.versions import mark_written
from ..memory.views import may_write, refresh
from ..threads.state import fast, state

__all__ = ["Foreach", "derive", "inplace"]


class Foreach(Composite):
    """A list operator."""

    over = ""  # full name of the entry that is called for each element
    method = False

    @classmethod
    def samples(cls, s):
        """A sample call, made of sample calls of the operator that is repeated."""
        return plan_of(overload_of(cls)).samples(s)


def derive(
    over: str,
    overload: str,
    arguments: str,
    *,
    name: str | None = None,
    inplace: bool = True,
    returns: str = "Tensor[]",
) -> type[Op]:
    """The entry of the list operator that calls the operator `over` for each element."""
    base = registry[over]
    full = f"_foreach_{name or base.base_name}" + (f".{overload}" if overload else "")

    def compose(*flat):
        plan = plan_of(overload_of(entry))
        return [bind(plan.base, row) for row in plan.rows(flat)]

    body = {
        "__doc__": f"`{over}` for each element of a list.",
        "__module__": "pullback.ops.foreach",
        "schema": f"{full}({arguments}) -> {returns}",
        "over": over,
        "inplace": inplace,
        "complex": base.complex,
        "compose": compose,
    }
    entry = type(full.replace(".", "_"), (Foreach,), body)
    return entry


class Plan:
    """How the arguments of a list operator become the arguments of the calls."""

    def __init__(self, ov: OpOverload):
        self.ov, self.base = ov, overload_of(registry[ov.op.over])
        theirs = self.base.schema
        self.places = [
            theirs.names.index(a.name) if a.name in theirs.names else i
            for i, a in enumerate(ov.schema.args)
        ]
        self.columns = [
            _TYPES.get((a.base, a.is_list, theirs.args[k].base), Plan.shared)
            for a, k in zip(ov.schema.args, self.places)
        ]
        self.main = next(i for i, a in enumerate(ov.schema.args) if a.is_tensor and a.is_list)

    def rows(self, flat: tuple) -> list[tuple]:
        """The flat arguments of the calls."""
        tensors = flat[self.main]
        if not tensors:
            raise self._wrong("Tensor list must have at least one tensor", "pass no empty list")
        table: list = [itertools.repeat(a.default) for a in self.base.schema.args]
        for value, place, column in zip(flat, self.places, self.columns):
            column(self, table, place, value, tensors)
        return list(zip(*table))

    def _wrong(self, what: str, cure: str = "pass one for each tensor") -> errors.ShapeError:
        return errors.named(
            errors.ShapeError, self.ov.op.base_name, what, [f"operator: {self.ov.schema}"], cure
        )

    # columns of the table of calls: one value per element, or one for all

    def shared(self, table, place, value, tensors):
        """The same value for all elements."""
        table[place] = itertools.repeat(value)

    def each(self, table, place, value, tensors):
        """One tensor of a list per element."""
        self._one_each(table, place, value, tensors,
                       "Tensor lists must have the same number of tensors")

    def numbers(self, table, place, value, tensors):
        """One number of a list per element."""
        self._one_each(table, place, value, tensors,
                       "Tensor list must have same number of elements as scalar list")

    def _one_each(self, table, place, value, tensors, rule: str):
        if len(value) != len(tensors):
            raise self._wrong(f"{rule}, got {len(tensors)} and {len(value)}")
        table[place] = value

    def one_tensor(self, table, place, value, tensors):
        """A tensor for all elements, which stands for a number."""
        if value.ndim:
            raise self._wrong(
                f"scalar tensor expected to be 0 dim but it has {value.ndim} dimensions and "
                f"{value.numel()} elements",
                "pass a number, or an element of the tensor",
            )
        table[place] = itertools.repeat(value)

    def as_tensors(self, table, place, value, tensors):
        """Numbers where the operator takes tensors: they promote like numbers."""
        if not isinstance(value, list):
            value = [value] * len(tensors)
        self.numbers(table, place, value, tensors)
        table[place] = [
            _ops().full((), v, dtype=dt.result_type([t._payload, v]), device=t.device)
            for t, v in zip(tensors, value)
        ]

    def packed(self, table, place, value, tensors):
        """The elements of a tensor where the operator takes numbers.

        The number is a factor of the argument behind the first, and becomes a part of it where its
        value is not known or somebody wants its derivative.
        """
        if value.ndim != 1:
            raise self._wrong(
                f"Expected packed scalar Tensor to be of dimension 1. Got {value.ndim} instead"
            )
        if len(value) != len(tensors):
            raise self._wrong(
                f"Expected length of scalars to match input of length {len(tensors)} but got "
                f"{len(value)} instead"
            )
        if value.dtype.is_complex and not all(t.dtype.is_complex for t in tensors):
            raise self._wrong("value cannot be converted to a real type without overflow")
        if is_buffer(value._payload) and value._edge is None and not state.mode:
            table[place] = value.tolist()
        else:
            table[1] = [t * (v.to(t.dtype) if t.dtype.category >= v.dtype.category else v)
                        for t, v in zip(table[1], _ops().unbind(value))]

    def samples(self, s):
        """A sample call, made of sample calls of the operator."""
        cases = itertools.chain(plain_cases(self.base, s), plain_cases(self.base, s))
        table = list(zip(*itertools.islice(cases, 2)))
        args = []
        for a, place, column in zip(self.ov.schema.args, self.places, self.columns):
            values = table[place]
            if column is Plan.as_tensors:
                values = (0.35, -0.45)
            elif column is Plan.one_tensor:
                values = (s.values(1.25),)
            elif column is Plan.packed:
                values = (s.values([0.5, 1.5]),)
            args.append(list(values) if a.is_list else values[0])
        given = self.ov.schema.kw_only_from
        yield s(*args[:given], **dict(zip(self.ov.schema.names[given:], args[given:])))


_TYPES = {  # (type of the argument, is it a list?, type that the operator takes); else: shared
    ("Tensor", True, "Tensor"): Plan.each,
    ("Scalar", True, "Scalar"): Plan.numbers,
    ("Tensor", False, "Tensor"): Plan.one_tensor,
    ("Scalar", False, "Tensor"): Plan.as_tensors,
    ("Scalar", True, "Tensor"): Plan.as_tensors,
    ("Tensor", False, "Scalar"): Plan.packed,
}
plan_of = functools.cache(Plan)


def _ops():
    from ..core.op import ops

    return ops


def plain_cases(base: OpOverload, s):
    """The flat arguments of the samples of an operator."""
    for case in base.op.samples(s):
        yield base.bind(case.args, case.kwargs)


# writes


def inplace(ov: OpOverload, flat: tuple) -> list[Tensor]:
    """`_foreach_<name>_`: the in-place operator for each element, once all are known to fit."""
    plan = plan_of(ov)
    rows = plan.rows(flat)
    simple = [_check(plan.base, row) for row in rows]
    if not fast["ACTIVE"] and all(simple) and _plain(plan.base, rows):
        mark_written(*[row[0] for row in rows])  # first: no interrupt hides a write
        for row in rows:
            new = plan.base.kernel(np, *[v._payload if isinstance(v, Tensor) else v for v in row])
            store(row[0]._payload, new)
        return flat[0]
    for row in rows:
        write(plan.base, row)
    return flat[0]


def _plain(base: OpOverload, rows: list[tuple]) -> bool:
    """Can the kernel be called as it is: no widening, no record, memory of the CPU?"""
    first = rows[0][0]._payload
    return (base.op.promote == "default" and base.op.fill is None and base.dtype_rule is None
            and base.check is None and type(first) is np.ndarray and first.dtype.itemsize > 2
            and not (state.record[0] and any(t._edge is not None for row in rows
                                             for t in tensors_in(row))))


def _check(base: OpOverload, row: tuple) -> bool:
    """Refuse what a write of one element would refuse; says whether nothing can go wrong."""
    x = row[0]
    if x._link is not None:
        refresh(x)
    tracked = any(t._edge is not None for t in tensors_in(row))
    may_write(x, tracked, level_of(base, x), base.op.uniform)
    if _alike(base, row):
        return True
    raw = [v._payload if isinstance(v, Tensor) else v for v in row]
    if not all(is_buffer(t._payload) for t in tensors_in(row)):  # shapes are enough, and unseen
        raw = [Fake(v.shape, v.dtype) if is_array(v) else v for v in raw]
    try:
        new = run_raw(base, raw)
    except (errors.PullbackError, NotImplementedError, MemoryError):
        raise
    except Exception as error:
        raise translated(base, row, error) from error
    check_result(base, x, new.shape, dt.of(new.dtype))
    return False


def _alike(base: OpOverload, row: tuple) -> bool:
    """Are all arrays floating and of one kind and dtype, and of one shape or numbers?"""
    first = row[0]._payload
    if base.kind != "pointwise" or dt.of(first.dtype).category != 2:
        return False
    for v in row:
        if isinstance(v, Tensor):
            data = v._payload
            if (
                type(data) is not type(first)
                or data.dtype != first.dtype
                or data.shape and data.shape != first.shape
            ):
                return False
        elif isinstance(v, complex):
            return False
    return True
