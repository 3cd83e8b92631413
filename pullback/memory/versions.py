"""Versions: who wrote memory, when and where.

Read next: `views.py`, which finds by them that a view is stale.
"""

from __future__ import annotations

from .. import errors
from ..core.handle import INFERENCE, Tensor, cell_of
from ..threads.state import tick


def bump(t: Tensor) -> None:
    """Note that the memory of a handle was written."""
    cell = cell_of(t)
    if cell is not INFERENCE:
        cell.stamps = (*cell.stamps[1 - cell.KEPT :], tick())
        cell.where = errors.place()
        cell.version += 1


def mark_written(*tensors: Tensor) -> None:
    """For code that wrote the tensors' arrays directly."""
    where, now, old, new = errors.place(), tick(), None, None
    for t in tensors:
        cell = t._cell or cell_of(t)
        if cell is INFERENCE:
            continue
        if cell.stamps is not old:  # what is written together has the same ones
            old = cell.stamps
            new = (*old[1 - cell.KEPT :], now)
        cell.stamps, cell.where = new, where
        cell.version += 1


def mark_inference(out) -> None:
    """Results of inference mode have no version of their own; views get that of their base."""
    for t in out if isinstance(out, (tuple, list)) else (out,):
        if isinstance(t, Tensor) and t._cell is None:
            t._cell = INFERENCE
