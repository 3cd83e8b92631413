"""Kernels over rows that differ in length (`segments.py`) to C.

The text is that of any kernel (`emit.py`) but for where a row begins and ends, which a table says,
and for products with sparse matrices, of which a row is done before or after the walks over it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .emit import Emitter
from .expressions import Operand
from .ir import Value
from .nest import Nest
from .number import varies
from .segments import LONGEST, NotTogether, place

if TYPE_CHECKING:
    from .kernel import Kernel
    from .segments import Group

FACTS = -1  # in the place of a buffer: how many rows and entries there are
_PER_CHUNK = 32  # rows


class RowNest(Nest):
    """Loops of which the inner one is as long as a row."""

    longest = LONGEST

    def _chunks(self) -> None:
        """Some rows each."""
        self.block, self.blocks = 0, 1
        self.units, self.per_chunk = self.outer[0], _PER_CHUNK
        self.chunks = 0  # as many as there are rows for: the caller knows


class RowEmitter(Emitter):
    """C text of a kernel over rows; the table has the beginnings of rows and two sizes as well."""

    nest_class = RowNest

    def __init__(self, group: Group, kernel: Kernel, starts: int, facts: int, *given: Any):
        self.group, self.starts, self.facts = group, starts, facts
        self.known: set[str] = set()  # names of indices that have been looked at
        super().__init__(kernel, *given)

    def _write(self) -> str:
        self.name = f"rows{self.name[1:]}"
        begins = self.pointer(self.starts, "l", "pb_starts", True)
        facts = self.pointer(self.facts, "l", "pb_facts", True)
        self.once += [f"const int64_t pb_n_rows = {facts}[0], pb_count = {facts}[1];"]
        self.row_begin += [
            f"const int64_t pb_lo = {begins}[r], pb_n_length = {begins}[r + 1] - pb_lo;"]
        for call, leaf in self.group.before.get(self.kernel, ()):
            self._before(call, leaf)
        for call, made in self.group.after.get(self.kernel, ()):
            self._after(call, made)
        rows, length = self.nest.sizes
        return super()._write().replace(f"{rows!r} rows of {length!r}", "rows of entries", 1)

    def _before(self, call: Any, leaf: Value) -> None:
        """The products of a row at its entries, as they are needed."""
        access = next(a for v, a in self.kernel.loads if v is leaf)
        to, t = self._row_pointer(leaf, access, False), leaf.dtype
        x, y = [self.value_pointer(ref.value, True) for ref in call.args[2:]]
        cols = self._cols(call)
        width = call.attrs["width"]
        self.row.append(f"pb->dots_{t}({to}, {x} + r * {width}, {cols} + pb_lo, pb_n_length, "
                        f"pb_count - pb_lo, {y}, {width});")

    def _after(self, call: Any, made: Value) -> None:
        """The sum of rows of a matrix, with the numbers that have been stored."""
        root = next(r for r in self.kernel.roots if r.value is made and r.how == "store")
        values, t = self._row_pointer(made, root.target, False), made.dtype
        cols, dense = self._cols(call), self.value_pointer(call.args[3].value, True)
        out, width = self.value_pointer(call.outs[0], False), call.attrs["width"]
        self.row_end.append(
            f"pb->row_{t}({out} + r * {width}, {values}, {cols} + pb_lo, pb_n_length, "
            f"pb_count - pb_lo, {dense}, {width});")

    def _cols(self, call: Any) -> str:
        value, at = place(call.args[1])
        name = self.value_pointer(value, True)
        return f"{name} + {at}" if at else name

    def _terms(self, access: tuple, level: int) -> list[str]:
        strides = self.nest.strides(access)
        if not varies(strides[0]):
            return super()._terms(access, level)
        step = strides[1]
        if not strides[0] == self.nest.sizes[1] * step:
            raise NotTogether
        rest = super()._terms((access[0], 0, *access[2:]), level)
        return [*rest, "pb_lo" if step == 1 else f"pb_lo * {step}"]

    def _bounded(self, a: Operand, size: int, wrap: bool, check: int) -> Operand:
        return a if a.text in self.known else super()._bounded(a, size, wrap, check)

    def _load(self, v: Value, access: tuple, level: int) -> Operand:
        wide = level == 2 and self._wide(access)[0]
        if not wide or not all(at.text in self.known for at, _ in wide):
            return super()._load(v, access, level)
        width, self.width = self.width, self.L  # what is behind the last index is 0, and there
        try:
            return super()._load(v, access, level)
        finally:
            self.width = width

    def _compute(self, key: tuple, level: int) -> Operand:
        made = super()._compute(key, level)
        if (key[0], key[1][0]) in self.group.checked:
            self.known.add(made.text)
        return made
