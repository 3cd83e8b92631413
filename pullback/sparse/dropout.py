"""Dropout of sparse tensors: of what is specified."""

from __future__ import annotations

from typing import Any

from ..parts.rules import rule
from ..table.packets import ops
from .elementwise import coalesced
from .tensor import SparseTensor


@rule(SparseTensor, "dropout")
def dropout(t: SparseTensor, p: float, train: bool):
    if not train or p == 0:
        return t
    t = coalesced(t)
    return t.with_carrier(ops.dropout(t.values_part, p, True))


@rule(SparseTensor, "native_dropout")
def native_dropout(t: SparseTensor, p: float, train: Any = None):
    t = coalesced(t)
    out, mask = ops.native_dropout(t.values_part, p, train)
    return t.with_carrier(out), t.with_carrier(mask)
