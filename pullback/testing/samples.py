"""Sample calls of operators: the table's `samples` run with a `Maker` for a dtype.

Values are deterministic and stay away from zero, so that derivative checks do not sit on kinks.
"""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass, field

import numpy as np

from ..array import device as dev
from ..array import dtype as dt
from ..array.lazy import resolved
from ..core.handle import Tensor, make
from ..core.overload import overload_of

DEVICE = os.environ.get("PULLBACK_TEST_DEVICE", "cpu")  # where sample tensors live


def place(array) -> Tensor:
    """A handle around a copy of a NumPy array on the device under test."""
    array = np.array(array)
    return make(array if DEVICE == "cpu" else dev.namespace(DEVICE).asarray(array))


def host(t: Tensor) -> np.ndarray:
    """The values of a handle as a NumPy array."""
    data = resolved(t.detach()._payload)
    return data if type(data) is np.ndarray else dev.lookup(data)[1].asnumpy(data)


@dataclass
class Case:
    """One call of an operator."""

    args: tuple
    kwargs: dict = field(default_factory=dict)
    label: str = ""


class Maker:
    """Makes tensors of the dtype under test; called with a call's arguments it makes a Case."""

    def __init__(self, seed: int, dtype: dt.DType):
        self.random = np.random.default_rng(seed)
        self.dtype = dtype

    def __call__(self, *args, **kwargs) -> Case:
        return Case(args, kwargs)

    def real(self, *shape: int, low: float = -2.0, high: float = 2.0, gap: float = 0.05) -> Tensor:
        """Floating (or complex) values between `low` and `high`, none within `gap` of zero."""
        values = self.random.uniform(low, high, shape)
        if low < 0 < high:
            values = np.where(np.abs(values) < gap, gap + values * values, values)
        if self.dtype.is_complex:
            values = values + 1j * self.random.uniform(-1, 1, shape)
        return place(np.asarray(values).astype(self.dtype.np))

    def values(self, data) -> Tensor:
        """Literal values in the dtype under test."""
        return place(np.asarray(data).astype(self.dtype.np))

    def int(self, *shape: int, low: int = 0, high: int = 10) -> Tensor:
        """int64 values in [low, high)."""
        return place(np.asarray(self.random.integers(low, high, shape), dtype=np.int64))

    def bool(self, *shape: int) -> Tensor:
        """Random truth values."""
        return place(np.asarray(self.random.integers(0, 2, shape), dtype=np.bool_))

    def tensor(self, data, dtype: dt.DType) -> Tensor:
        """Literal values of a given dtype."""
        return place(np.asarray(data).astype(dtype.np))


def cases(op, dtype: dt.DType = dt.float64) -> list[Case]:
    """The sample calls of a table entry."""
    if op.samples is None:
        return []
    maker = Maker(zlib.crc32(op.full_name.encode()), dtype)
    found = []
    for i, case in enumerate(op.samples(maker)):
        case.label = f"{op.full_name}#{i}"
        found.append(case)
    return found


def flat(op, case: Case) -> tuple:
    """The case's arguments in schema order."""
    bound = overload_of(op).bind(case.args, case.kwargs)
    if bound is None:
        raise TypeError(f"{case.label}: the sample does not fit {op.schema}")
    return bound


def leaves(out) -> list:
    """What is in results, those in lists among them."""
    if isinstance(out, (list, tuple)):
        return [leaf for item in out for leaf in leaves(item)]
    return [out]


def places(flat: tuple) -> list[tuple[int, int | None]]:
    """Where the tensors are among flat arguments; those in a list have a second number."""
    return [
        (i, j)
        for i, v in enumerate(flat)
        for j in (range(len(v)) if isinstance(v, list) else (None,))
        if isinstance(v if j is None else v[j], Tensor)
    ]


def replaced(flat: tuple, where: list[tuple[int, int | None]], tensors) -> tuple:
    """Flat arguments with other tensors at some places."""
    new = [list(v) if isinstance(v, list) else v for v in flat]
    for (i, j), t in zip(where, tensors):
        if j is None:
            new[i] = t
        else:
            new[i][j] = t
    return tuple(new)
