"""Branches and loops as C text: one function each, with the statements of its bodies inside.

The function is given the table of the graph around it, `o`, and has a table `p` of its own for each
body: operands and results where they lie, values on the way in one piece of memory that is there
once for all steps.  What is carried from step to step has two places that change roles.  Kernels
that are called from here alone are written out by the C compiler, so that a small body becomes a
few instructions.  Read `loops.py` first.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any

from . import sound, straight
from .builder import item_size
from .ir import CTYPES, Call, Ref
from .number import declared, largest, likely, rounded_up, suffixed, varies

if TYPE_CHECKING:
    from .loops import Body
    from .unit import UnitWriter

_ALIGN = 64
_STEP_NS = 5.0
_STEPS = 10_000  # of a loop of which nobody knows how many it makes: other threads may go on
_PATIENCE_NS = 2e7  # how often a loop of unknown length asks for signals
_ENDS = "if (((pb_status *)o[0])->code) break;"
_LONG = 256  # statements from which on kernels are not written out where they are called


def write(outer: UnitWriter, call: Call, number: str) -> None:
    """The function of a branch or loop, and its call."""
    made = _KINDS[call.kind](outer, call, number)
    outer.functions.append(made.text())
    outer.stage.append(f"{made.name}(p); /* {call.name} */")
    outer.stage_cost += made.cost
    outer.calls.append({"name": call.name, "kind": call.kind, "shape": made.report})


class _Region:
    """A body with a table of buffers of its own, by the name of `table`."""

    def __init__(self, function: _Function, body: Body, table: str = "p"):
        self.function, self.body, self.table = function, body, table
        function.regions.append(self)
        place = next(n for n, b in enumerate(function.attrs["bodies"]) if b is body)
        self.writer = function.outer.inside(body.schedule, body.name, place)
        self.lines = self.writer.statements()
        self.memory = self.writer.memory
        slot, lowered = self.memory.slot, body.lowered
        self.inputs = {k: f"{table}[{slot[lowered.inputs[k]]}]" for k, _ in body.read}
        self.outputs = [None if ref is None else f"{table}[{slot[ref.value]}]"
                        for ref in lowered.outputs]
        self.sizes = [0 if ref is None else ref.value.numel * item_size(ref.dtype)
                      for ref in lowered.outputs]

    def begin(self) -> list[str]:
        """The table, with what stays where it is in all steps."""
        f, memory, t = self.function, self.memory, self.table
        lines = [f"void *{t}[{len(memory.buffers)}];"]
        start = f.room(memory.workspace) if memory.workspace else 0
        for n, b in enumerate(memory.buffers):
            if b.kind == "status":
                lines.append(f"{t}[{n}] = o[0];")
            elif b.kind == "numbers":
                lines.append(f"{t}[{n}] = o[{f.outer.numbers}];")
            elif b.kind == "work":
                at = f.place(b.bytes, b.spare) if self.writer.numbers else f.at(start + b.at)
                lines.append(f"{t}[{n}] = {at};")
            elif b.kind == "none":
                lines.append(f"{t}[{n}] = 0;")
        fixed = [(k, o) for k, o in self.body.read
                 if not o.row and not o.carried and o.kept is None]
        return lines + [f"{self.inputs[k]} = {f.address(o.ref)};" for k, o in fixed]

    def statements(self) -> list[str]:
        """What a step does once it knows where its operands and results are."""
        t, buffers = self.table, enumerate(self.memory.buffers)
        hosted = [f"{t}[{n}] = (char *){t}[{b.at}] + {b.offset};"
                  for n, b in buffers if b.kind == "hosted"]
        if t == "p":
            return hosted + self.lines
        return [*hosted, f"{{ void **p = {t};", *[f"  {x}" for x in self.lines], "}"]


class _Function:
    """The function of a branch or loop; `write` makes its lines."""

    title = ""

    def __init__(self, outer: UnitWriter, call: Call, number: str):
        self.outer, self.call, self.attrs = outer, call, call.attrs
        self.name = f"{self.title}_{number}"
        self.slot, self.used = outer.memory.temporary(0), 0
        self.cost = 0.0
        self.report: dict[str, Any] = {}
        self.regions: list[_Region] = []
        self.lines = self.write()
        outer.memory.buffers[self.slot].bytes = self.used

    def write(self) -> list[str]:
        """The statements; sets `cost` and `report`."""
        raise AssertionError(self.title)

    def room(self, size: int) -> int:
        """An offset in the function's piece of the workspace."""
        at = self.used
        self.used += rounded_up(size, _ALIGN)
        return at

    def at(self, offset: int) -> str:
        """An address in it."""
        return f"(char *)o[{self.slot}] + {offset}"

    def place(self, size: Any, spare: bool = False) -> str:
        """Memory for so many bytes; where sizes vary it is a buffer of the graph around."""
        if self.outer.numbers:
            return f"o[{self.outer.memory.temporary(size, spare)}]"
        return self.at(self.room(size))

    def address(self, ref: Ref) -> str:
        """Where an operand begins."""
        base, offset = f"o[{self.outer.memory.slot[ref.value]}]", ref.offset * item_size(ref.dtype)
        return f"(char *){base} + {offset}" if varies(offset) or offset else base

    def result(self, n: int) -> str | None:
        """Where a result of the whole lies."""
        out = self.call.outs[n]
        return None if out is None else f"o[{self.outer.memory.slot[out]}]"

    def text(self) -> str:
        """The C text."""
        text = "\n".join(self.lines)
        for region in self.regions:
            given = re.findall(rf"\b{region.table}\[(\d+)\] = ", text)
            sound.check_table(region.body.name, region.body.schedule, region.memory,
                              {int(n) for n in given})
        numbers = [line.replace("= p[", "= o[")
                   for line in declared(text, lambda: self.outer.numbers)]
        calls = sum(line.endswith("}") for line in self.lines)
        kind = "static PB_AS_IS void" if calls > _LONG else "static void"
        lines = "".join(f"  {line}\n" for line in [*numbers, *self.lines])
        names = ", ".join(body.name for body in self.attrs["bodies"])
        return f"/* {self.name}: {names} */\n{kind} {self.name}(void **o) {{\n{lines}}}\n"

    def carried(
        self, region: _Region, count: int, at: int = 0
    ) -> tuple[list[str], list[str], list[str]]:
        """What is carried has two places; what to do before all steps, after each, and at the end,
        when it becomes the results from number `at` on."""
        first, each, last = [], [], []
        for n in range(count):
            new, size = region.outputs[n], region.sizes[n]
            if new is None:
                continue
            now = region.inputs[n]
            given = self.address(region.body.operands[n].ref)
            first += [f"{now} = {self.place(size)};", f"{new} = {self.place(size)};",
                      f"__builtin_memcpy({now}, {given}, {size});"]
            each.append(f"{{ void *next = {new}; {new} = {now}; {now} = next; }}")
            if self.result(at + n) is not None:
                last.append(f"__builtin_memcpy({self.result(at + n)}, {now}, {size});")
        return first, each, last


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


class _For(_Function):
    """Steps over the rows of arrays."""

    title = "steps"

    def write(self) -> list[str]:
        steps, count = self.attrs["steps"], self.attrs["carried"]
        if straight.fits(self.attrs["bodies"][0]):
            return self.straight(steps, count)
        region = _Region(self, self.attrs["bodies"][0])
        start = region.begin()
        first, each, last = self.carried(region, count)
        rows = []
        for k, o in region.body.read:
            if o.row:
                stride = o.ref.strides[0] * item_size(o.ref.dtype)
                rows.append(f"{region.inputs[k]} = {self.address(o.ref)} + t * {suffixed(stride)};")
        for n, slot in enumerate(region.outputs[count:], count):
            if slot is not None:
                size = suffixed(region.sizes[n])
                rows.append(f"{slot} = (char *){self.result(n)} + t * {size};")
        self.cost = steps * (region.writer.stage_cost + _STEP_NS)
        self.report = {"steps": steps}
        if any(c.call is not None and "bodies" in c.call.attrs for c in region.body.schedule.order):
            each.append(_ENDS)  # a loop inside may have been interrupted
        return [*start, *first, f"for (int64_t t = 0; t < {steps}; t++) {{",
                *_indented([*rows, *region.statements(), *each]), "}", *last]


    def straight(self, steps: Any, count: int) -> list[str]:
        """The same for a body of a few numbers, without buffers."""
        body = self.attrs["bodies"][0]
        code = straight.Straight(body, self.outer.vector_bytes, itertools.count())
        self.outer.lanes.add(code.lanes)
        lines, rows, each, last = [], [], [], []
        for k, o in body.read:
            if o.row:
                stride = o.ref.strides[0] * item_size(o.ref.dtype)
                address = f"{self.address(o.ref)} + t * {suffixed(stride)}"
                rows += code.input(k, address, False)
            else:
                lines += code.input(k, self.address(o.ref), not o.carried)
        code.compute()
        for n, ref in enumerate(body.lowered.outputs):
            if ref is None:
                continue
            if n < count:
                old = code.names[body.lowered.inputs[n]]
                each += [f"{x} = {y};" for x, y in zip(old, code.elements(ref))]
                if self.result(n) is not None:
                    last += code.result(body.lowered.inputs[n].ref(), self.result(n))
            else:
                size = suffixed(straight.bytes_of(ref))
                code.step += code.result(ref, f"(char *){self.result(n)} + t * {size}")
        self.cost = steps * (len(code.step) + _STEP_NS)
        self.report = {"steps": steps}
        return [*lines, *code.once, f"for (int64_t t = 0; t < {steps}; t++) {{",
                *_indented([*rows, *code.step, *each]), "}", *last]


class _While(_Function):
    """Steps until a condition no longer holds."""

    title = "steps"

    def write(self) -> list[str]:
        test, step = [_Region(self, body, table)
                      for body, table in zip(self.attrs["bodies"], ("p_test", "p_step"))]
        start = [*test.begin(), *step.begin()]
        first, each, last = self.carried(step, self.attrs["carried"])
        self.cost = _STEPS * (test.writer.stage_cost + step.writer.stage_cost + _STEP_NS)
        return [*start, *first, *self.place_of_flag(test), "int64_t count = 0;", "for (;;) {",
                *_indented([*self.ask(test, step), *step.statements(), *each, *self.ends()]), "}",
                *last]

    def ends(self) -> list[str]:
        """The end of a step: some steps ask whether the user wants to end it all."""
        each = max(likely(self.cost) / _STEPS, 1.0)
        often = 1 << min(20, int(_PATIENCE_NS / each).bit_length())
        return [f"if (!(++count & {often - 1}) && pb->interrupted()) "
                "((pb_status *)o[0])->code = -1;", _ENDS]

    def place_of_flag(self, test: _Region) -> list[str]:
        """Memory for what the condition gives."""
        return [f"{test.outputs[0]} = {self.place(test.sizes[0])};"]

    def ask(self, test: _Region, step: _Region) -> list[str]:
        """The condition, and the end where it does not hold."""
        asked = [f"{test.inputs[k]} = {step.inputs[k]};" for k, o in test.body.read if o.carried]
        kind = CTYPES[test.body.lowered.outputs[0].dtype]
        return [*asked, *test.statements(), f"if (!*({kind} *){test.outputs[0]}) break;"]


class _Passes(_While):
    """Steps until a condition no longer holds, then several times over the same steps, back and
    forth, each pass with what those before it left in the row of a step."""

    def write(self) -> list[str]:
        sizes, bodies = self.attrs["sizes"], self.attrs["bodies"]
        test, *passes = [_Region(self, body, f"p_{n}") for n, body in enumerate(bodies)]
        self.cost = _STEPS * sum(r.writer.stage_cost + _STEP_NS for r in (test, *passes))
        wanted = {o.kept for body in bodies for _, o in body.read if o.kept is not None}
        places: dict[tuple[int, int], Any] = {}  # pass and number -> offset in a row
        row = 0
        for k, (count, region) in enumerate(zip(sizes, passes)):
            for n in range(len(region.outputs)):
                if (k, n) in wanted or n >= count:
                    places[k, n] = row
                    row = rounded_up(row + region.sizes[n], 8)
        row = largest(row, 8)
        lines = ["char *rows = 0;", "int64_t count = 0, room = 0;", *test.begin(),
                 *self.place_of_flag(test)]
        at = 0
        for k, (count, region) in enumerate(zip(sizes, passes)):
            first, each, last = self.carried(region, count, at)
            at += count
            lines += [*region.begin(), *first]
            inside = self._row(region, k, count, places)
            if k:
                back = "int64_t t = count; t-- > 0;" if k % 2 else "int64_t t = 0; t < count; t++"
                head = [f"for ({back}) {{", f"  char *row = rows + t * {suffixed(row)};"]
            else:
                head = ["for (;;) {", *_indented([*self.ask(test, region), *self._room(row)])]
                each = [*each, *self.ends()]
            lines += [*head, *_indented([*inside, *region.statements(), *each]), "}", *last]
        return [*lines, "__builtin_free(rows);"]

    def _room(self, row: Any) -> list[str]:
        """Room for one more row."""
        return ["if (count == room) {",
                "  room = room ? 2 * room : 32;",
                f"  char *more = __builtin_realloc(rows, room * {suffixed(row)});",
                "  if (!more) {",
                f"    pb->bad_index(o[0], {self.attrs['check']}, count);",
                "    break;",
                "  }",
                "  rows = more;",
                "}",
                f"char *row = rows + count * {suffixed(row)};"]

    def _row(self, region: _Region, k: int, count: int, places: dict) -> list[str]:
        """What a pass reads in the row of a step, and what it leaves there."""
        lines = [f"{region.inputs[i]} = row + {places[o.kept]};"
                 for i, o in region.body.read if o.kept is not None]
        for n, slot in enumerate(region.outputs):
            if n >= count:
                lines.append(f"{slot} = row + {places[k, n]};")
            elif (k, n) in places:
                lines.append(f"__builtin_memcpy(row + {places[k, n]}, {region.inputs[n]}, "
                             f"{region.sizes[n]});")
        return lines


class _If(_Function):
    """One of two bodies."""

    title = "branch"

    def write(self) -> list[str]:
        (flag,) = self.attrs["beside"]
        lines = [f"if (*({CTYPES[flag.ref.dtype]} *)({self.address(flag.ref)})) {{"]
        used, most = self.used, 0
        for n, body in enumerate(self.attrs["bodies"]):
            self.used = used  # they need memory one or the other
            region = _Region(self, body, ("p_yes", "p_no")[n])
            places = [f"{slot} = {self.result(k)};"
                      for k, slot in enumerate(region.outputs) if slot is not None]
            lines += _indented([*region.begin(), *places, *region.statements()])
            lines.append("}" if n else "} else {")
            most = max(most, self.used)
            self.cost = largest(self.cost, region.writer.stage_cost)
        self.used = most
        return lines


_KINDS = {"for": _For, "while": _While, "passes": _Passes, "if": _If}
