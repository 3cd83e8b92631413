"""Everything of one graph put together: the C file, and the plan that the runtime runs it by.

The plan is plain data (numbers, strings, tuples), so that it can be kept on disk beside the object:

    inputs    (NumPy type number, shape, byte strides) per argument
    written   numbers of the inputs whose memory takes an output, if there are any
    buffers   (kind, number or offset, bytes, (type, shape, None), None)
    outputs   (kind, buffer or input, byte offset, whole, (type, shape, strides), value)
    frees     per step, the buffers that nothing reads after it
    makes     per step, the outputs that it is the first to need; empty: all are made at once
    room      (input, bytes) of inputs that may be overwritten, and are
    steps     (symbol, release the GIL) or (node name, arguments, result buffers) for NumPy steps

Read `backend.py` next, and `runtime/function.c` for the other side.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from . import loop_code, sound
from .builder import item_size, numpy_name
from .emit import Emitter
from .emit_rows import FACTS, RowEmitter
from .inplace import place
from .ir import CTYPES, SIZES, SLOW, Const, Ref, ceil_div
from .kernel import Kernel
from .lower import Lowered
from .memory import Buffer, breaks, plan
from .number import both, choose, compared, declared, divides, largest, varies
from .rounding import fusible
from .schedule import CallItem, Schedule
from .segments import LONGEST, Group, Place, entries_of
from .sparse_loops import ALONE
from .toolchain import last_level_cache

_KINDS = {"input": 0, "output": 1, "work": 2, "extern": 3, "none": 3, "status": 2, "numbers": 4,
          "placed": 5, "taken": 6, "hosted": 7}
_THREADS_NS, _RELEASE_NS = 15e3, 20e3
_LONG_STAGE, _MANY_USES, _MANY_READS = 64, 128, 48
_COSTLY = re.compile(rf"\b({'|'.join(SLOW)})_([fd])(\d+)\(")
_READ = {"f": ("float", "f"), "d": ("double", "d"), "i": ("int32_t", "i"), "l": ("int64_t", "l"),
         "b": ("uint8_t", "i"), "u": ("uint8_t", "i")}  # code -> type in memory, register
_INDIRECT = re.compile(rf"\b(bounded|gather_([{''.join(_READ)}]))([2-9]|\d\d)\(")
_AS_IS = """\
#ifdef __clang__
#define PB_AS_IS __attribute__((noinline, optnone))
#else
#define PB_AS_IS __attribute__((noinline, optimize("O0")))
#endif

"""


@dataclass
class Unit:
    """A graph ready to be compiled and run."""

    source: str  # C text; empty when nothing is native
    plan: dict
    report: dict
    length: int  # characters of its kernels

    def __str__(self) -> str:
        return self.source


def type_number(code: str) -> int:
    if code == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16).num
    return np.dtype(numpy_name(code)).num


def encoded(b: Buffer, spec: tuple, value: object = None) -> tuple:
    """A buffer for the runtime."""
    inside = b.kind in ("placed", "hosted")
    return _KINDS[b.kind], b.at, b.offset if inside else b.bytes, spec, value


def spec_of(ref: Ref) -> tuple:
    """Type, shape and byte strides of a ref's elements."""
    size = item_size(ref.dtype)
    return type_number(ref.dtype), ref.shape, tuple(s * size for s in ref.strides)


def _double(x: float) -> str:
    """A number as C text where no header is included."""
    if math.isfinite(x):
        return repr(x)
    return '__builtin_nan("")' if x != x else f"{'-' if x < 0 else ''}__builtin_inf()"


def _in_parts(lines: list[str], most: int) -> Iterator[list[str]]:
    """Statements in pieces; one that is written on several lines stays in one."""
    part: list[str] = []
    depth = 0
    for line in lines:
        part.append(line)
        depth += line.count("{") - line.count("}")
        if len(part) >= most and not depth:
            yield part
            part = []
    if part:
        yield part


def _apart(kernels: str) -> str:
    """Functions for what kernels compute very often: written out at each place it would take a
    compiler minutes."""
    text = ""
    for (op, code, lanes), count in sorted(Counter(_COSTLY.findall(kernels)).items()):
        if count > _MANY_USES:
            kind = f"v{code}{lanes}"
            text += _function(f"{op}_{code}{lanes}", kind, f"{kind} x")
    for (op, code, lanes), count in sorted(Counter(_INDIRECT.findall(kernels)).items()):
        if count > _MANY_READS:
            kind = f"v{_READ[code][1] if code else 'l'}{lanes}"
            taken = f"const {_READ[code][0]} *from, vl{lanes} at, int n" if code else (
                f"vl{lanes} at, int64_t size, int wrap, int n, pb_status *status, int64_t number")
            text += _function(f"{op}{lanes}", kind, taken)
    return text


def _function(name: str, kind: str, taken: str) -> str:
    """A function of the runtime that is not written out where it is called."""
    given = ", ".join(re.findall(r"(\w+)(?:,|$)", taken))
    return (f"static __attribute__((noinline)) {kind} pb_{name}({taken}) {{\n"
            f"  return {name}({given});\n}}\n#define {name} pb_{name}\n")


class UnitWriter:
    """Writes the C text item by item and collects the plan's steps."""

    def __init__(
        self, schedule: Schedule, name: str, vector_bytes: int, writes: dict[int, int],
        sized: bool, given: Collection[int], tight: bool,
    ):
        self.schedule, self.name, self.vector_bytes = schedule, name, vector_bytes
        self.inplace = place(schedule, writes) if writes else {}
        self.memory, self.tight = plan(schedule, vector_bytes, self.inplace, given), tight
        self.written = {self.memory.slot[v] for v in self.inplace.values()}
        self.numbers = len(self.memory.buffers) if sized else 0  # place of those of the sizes
        if sized:
            self.memory.buffers.append(Buffer("numbers", 0))
        self.functions: list[str] = []
        self.stage: list[str] = []
        self.stage_cost = 0.0
        self.stages: list[str] = []
        self.steps: list[tuple] = []
        self.orders: dict[str, tuple] = {}  # how results of NumPy steps lie in memory
        self.step_of: list[int] = []  # per item
        self.lanes: set[int] = set()
        self.kernels: list[dict] = []
        self.calls: list[dict] = []
        calls = [i.call for i in schedule.items if isinstance(i, CallItem)]
        self.read = {ref.value for call in calls for ref in call.args}
        self.read |= {v for i in schedule.items if isinstance(i, Kernel) for v, _ in i.loads}
        self.known: dict[str, str] = {}  # text without names -> function
        self.prefix = ""  # of numbers of kernels inside of others
        self.fusible = fusible(schedule.order)
        self.late = breaks(self.memory) if tight and not self.inplace else set()
        apart = bool(self.inplace) or tight  # then their items may be in different steps
        self.answers: dict[Group, int] = {}  # where it is found out what they suppose
        self.groups = {g.first: g for g in schedule.groups if not apart and g.whole}

    def write(self) -> Unit:
        sealed = not self.written  # from then on, inputs are overwritten
        ends = {group.last for group in self.groups.values()}
        for n, item in enumerate(self.schedule.items):
            self.memory.now = n
            if not sealed and isinstance(item, Kernel) and any(
                r.value in self.inplace for r in item.roots
            ):
                self._close_stage()  # so that checks that failed are noticed before
                sealed = True
            if n in self.late or isinstance(item, CallItem) and item.call.kind == "python":
                self._close_stage()
            self.step_of.append(len(self.steps))
            if n in self.groups:
                self._begin_group(self.groups[n])
            if isinstance(item, CallItem) and item.call.kind == "python":
                self._python(item)
            else:
                self._native(item, n)
            if n in ends:
                self.stage.append("}")
        self._close_stage()
        sound.check_steps(self.name, self.schedule, self.memory, self.inplace)
        if not self.numbers:  # else when the sizes are known
            self.memory.pack(self.tight)
        length = sum(map(len, self.functions))
        return Unit(self._source(), self._plan(), self._report(), length)

    def inside(self, schedule: Schedule, name: str, place: int) -> UnitWriter:
        """A writer for a graph inside of this one (`loop_code.py`), one of several of an item: its
        functions stand among those of the unit, its statements and buffers are its own."""
        other = UnitWriter(
            schedule, name, self.vector_bytes, {}, bool(self.numbers), (), False)
        other.functions, other.lanes, other.known = self.functions, self.lanes, self.known
        other.kernels, other.calls = self.kernels, self.calls
        other.prefix = f"{self.prefix}{self.memory.now}_{place}_"
        return other

    def statements(self) -> list[str]:
        """All items of a graph inside of another as statements."""
        for n, item in enumerate(self.schedule.items):
            self.memory.now = n
            self._native(item, n)
        sound.check_steps(self.name, self.schedule, self.memory, {})
        if not self.numbers:
            self.memory.pack()
        return self.stage

    # ---- items --------------------------------------------------------------------------------

    def _native(self, item: Kernel | CallItem, number: int) -> None:
        if isinstance(item, Kernel):
            self._kernel(item, f"{self.prefix}{number}")
        elif "bodies" in item.call.attrs:
            loop_code.write(self, item.call, f"{self.prefix}{number}")
        else:
            self._native_call(item)

    def _kernel(self, kernel: Kernel, number: str) -> None:
        if kernel.total == 0:
            return
        e = Emitter(
            kernel,
            number,
            self.memory.slot,
            self.vector_bytes,
            self.memory.temporary,
            self._streamed(kernel),
            self.written,
            self.numbers,
            self.fusible,
        )
        self.lanes.add(e.L)
        known = e.anonymous()
        name = self.known.setdefault(known, e.name)
        if name == e.name:
            self.functions.append(e.text)
        cost, chunks = e.nest.cost(), e.nest.chunks
        self.stage_cost += cost
        table = ", ".join(f"p[{slot}]" for slot in e.local)
        threads = both(compared(cost, ">", _THREADS_NS), compared(chunks, ">", 1))
        if threads is False:
            call = f"{name}(q, 0, {chunks});"
        else:
            grain = choose(threads, largest(1, chunks // 64), chunks)
            call = f"pb->parallel({name}, q, {chunks}, {grain});"
        if e.finish:
            call += f" {name}_finish(q);"
        made = ", ".join(r.value.name for r in kernel.roots)
        self.stage.append(f"{{ /* {made} */ void *q[] = {{{table}}}; {call} }}")
        bytes = sum({v: v.numel * SIZES[v.dtype] for v, _ in kernel.loads}.values())
        bytes += sum(r.value.numel * SIZES[r.value.dtype] for r in kernel.roots)
        columns = e.nest.middle + e.nest.inner
        self.kernels.append(self._described(e, name, e.nest.outer, columns) | {"bytes": bytes})

    def _described(self, e: Emitter, function: str, rows: list, columns: list) -> dict:
        """A kernel in the report."""
        return {
            "name": e.name,
            "function": function,
            "nodes": e.nodes,
            "rows": rows,
            "columns": columns,
            "lanes": e.L,
            "passes": 1 + max(e.nest.root_pass(r) for r in e.kernel.roots),
            "loads": [v.name for v in dict.fromkeys(v for v, _ in e.kernel.loads)],
            "results": [f"{r.how} {r.value.name}" for r in e.kernel.roots],
        }

    def _begin_group(self, group: Group) -> None:
        """The walk over rows that does the work of items, if their entries are in order; the items
        themselves are what is done else."""
        told = next((g for g in self.answers if group.asks <= g.asks), None)
        if told is None:
            told, last = group, max([g.last for g in self.groups.values() if g.asks <= group.asks])
            self.answers[group] = self.memory.temporary((group.rows + 2) * 8, last=last)
            self._look(group, self.answers[group])
        starts = self.answers[told]
        self.stage += [f"if (((int64_t *)p[{starts}])[{group.rows} + 1]) {{",
                       f"  int64_t facts[] = {{{group.rows}, {group.count}}};"]
        cost = entries_of(group) * 0.05
        for kernel in group.kernels:
            e = self._emitted(group, kernel, starts)
            self.lanes.add(e.L)
            self.functions.append(e.text)
            table = ", ".join("facts" if slot == FACTS else f"p[{slot}]" for slot in e.local)
            chunks = ceil_div(group.rows, e.nest.per_chunk)
            run = f"pb->parallel({e.name}, q, {chunks}, 1);"
            if cost < _THREADS_NS and not varies(group.count, group.rows):
                run = f"{e.name}(q, 0, {chunks});"
            self.stage.append(f"  {{ void *q[] = {{{table}}}; {run} }}")
            self.kernels.append(self._described(e, e.name, [group.rows], ["entries"]) | {
                "instead": [name for item in group.items for name in item.makes]})
        self.stage.append("} else {")
        self.stage_cost += cost

    def _look(self, group: Group, starts: int) -> None:
        """Find out where rows begin, and behind that, whether all is as it is supposed to be."""
        index, count = self._place(group.index), group.count
        asked = [f"pb->starts({index}, {count}, {group.rows}, p[{starts}], {LONGEST})"]
        asked += [f"pb->same({index}, {self._place(other)}, {count})" for other in group.same]
        asked += [f"pb->inside({self._place(other)}, {count}, {size})"
                  for other, size in group.inside]
        self.stage.append(f"((int64_t *)p[{starts}])[{group.rows} + 1] = {' && '.join(asked)};")

    def _place(self, place: Place) -> str:
        value, at = place
        return f"(int64_t *)p[{self.memory.slot[value]}]" + (f" + {at}" if at else "")

    def _emitted(self, group: Group, kernel: Kernel, starts: int) -> RowEmitter:
        slot = dict(self.memory.slot)
        slot |= {new: self.memory.slot[old] for new, old in group.slots.items()
                 if old in self.memory.slot}
        return RowEmitter(
            group, kernel, starts, FACTS, group.first, slot, self.vector_bytes,
            self.memory.temporary, {}, self.written, self.numbers, self.fusible)

    def _streamed(self, kernel: Kernel) -> dict:
        """Outputs that leave past the caches: together larger than the last one, and not read here;
        each with True, or a number that says so for the sizes of a call.

        Rows must begin on whole vectors; the runtime's own arrays do.
        """
        lanes = self.vector_bytes // 4
        found = {
            r.value for r in kernel.roots
            if r.how == "store" and r.level == "vec" and r.place is None and r.value.dtype == "f"
            and self.memory.buffers[self.memory.slot[r.value]].kind == "output"
            and r.value not in self.read and divides(lanes, kernel.dims[-1])
        }
        large = compared(sum(v.numel * 4 for v in found), ">", last_level_cache())
        flags = {v: both(large, compared(v.numel * 4, ">=", 1 << 20)) for v in found}
        return {v: flag for v, flag in flags.items() if flag is not False}

    def _address(self, ref: Ref) -> str:
        at = f" + {ref.offset}" if ref.offset else ""
        return f"({CTYPES[ref.dtype]} *)p[{self.memory.slot[ref.value]}]{at}"

    def _native_call(self, item: CallItem) -> None:
        call, out = item.call, item.call.outs[0]
        if out.numel == 0:
            return
        self.calls.append(
            {
                "name": call.name,
                "kind": call.kind,
                "shape": {k: call.attrs[k] for k in ("batch", "m", "n", "k") if k in call.attrs},
            }
        )
        if call.kind == "gemm":
            self._gemm(call, out)
        elif call.kind == "conv":
            self._conv(call, out)
        elif call.kind.endswith("_windows"):
            self._windows(call, out)
        elif call.kind == "scan":
            self._scan(call, out)
        elif call.kind in ("spmm", "sddmm"):
            self._entries(call, out)
        elif call.kind == "scatter_extreme":
            self._extreme(call, out)
        else:
            self._scatter(call, out)

    def _gemm(self, call: object, out: object) -> None:
        a = call.attrs
        fields = [f".{k} = {v}" for k, v in a.items() if k != "alpha"] + [
            f".alpha = {_double(a['alpha'])}"
        ]
        fields += [
            f".a = {self._address(call.args[0])}",
            f".b = {self._address(call.args[1])}",
            f".c = p[{self.memory.slot[out]}]",
        ]
        if len(call.args) > 2:
            fields.append(f".bias = {self._address(call.args[2])}")
        if call in self.memory.panels:
            fields.append(f".space = p[{self.memory.panels[call]}]")
        fn = "sgemm" if out.dtype == "f" else "dgemm"
        self.stage.append(
            f"{{ /* {call.name} */ pb_gemm g = {{{', '.join(fields)}}}; pb->{fn}(&g); }}"
        )
        self.stage_cost += (
            a["batch"] * a["m"] * a["n"] * a["k"] * (0.015 if out.dtype == "f" else 0.03)
        )

    def _fields(self, attrs: dict, refs: dict[str, Ref]) -> list[str]:
        """Numbers and addresses of a struct of the runtime."""
        return [
            f".{k} = {{{', '.join(map(str, v))}}}" if isinstance(v, tuple) else f".{k} = {v}"
            for k, v in attrs.items()
        ] + [f".{k} = {self._address(r)}" for k, r in refs.items()]

    def _conv(self, call: object, out: object) -> None:
        a = dict(call.attrs)
        refs = dict(zip(a.pop("names"), call.args))
        refs[("map", "x", "weight")[a["what"]]] = out.ref()
        fn = "sconv" if out.dtype == "f" else "dconv"
        slot = self.memory.panels[call]
        space = [f".space = p[{slot}]", f".room = {self.memory.buffers[slot].bytes}"]
        fields = ", ".join(self._fields(a, refs) + space)
        self.stage.append(f"{{ /* {call.name} */ pb_conv c = {{{fields}}}; pb->{fn}(&c); }}")
        work = prod(a["counts"]) * prod(a["kernel"]) * a["n"] * a["groups"]
        self.stage_cost += work * a["inner"] * a["outer"] * (0.02 if out.dtype == "f" else 0.04)

    def _windows(self, call: object, out: object) -> None:
        places = call.args[1] if len(call.args) > 1 else call.outs[1].ref()
        refs = {"x": call.args[0], "out": out.ref(), "where": places}
        fields = ", ".join([*self._fields(call.attrs, refs), ".status = p[0]"])
        self.stage.append(
            f"{{ /* {call.name} */ pb_windows w = {{{fields}}}; "
            f"pb->{call.kind}_{out.dtype}(&w); }}"
        )
        self.stage_cost += largest(out.numel, places.value.numel * prod(call.attrs["kernel"]))

    def _scan(self, call: object, out: object) -> None:
        a = call.attrs
        sizes = f"{a['outer']}, {a['n']}, {a['inner']}, {a['product']}"
        self.stage.append(
            f"/* {call.name} */ pb->scan_{out.dtype}(p[{self.memory.slot[out]}], "
            f"{self._address(call.args[0])}, {sizes});"
        )
        self.stage_cost += out.numel

    def _entries(self, call: object, out: object) -> None:
        """A product with the entries of a sparse matrix; both kinds say which one is outside."""
        names = ("rows", "cols", *(("values", "x") if call.kind == "spmm" else ("x", "y")))
        given = {k: call.attrs[k] for k in ("count", "width", "size", "depth")}
        given |= {"alone": ALONE, "wrap": call.attrs.get("wrap", 0)}
        fields = ", ".join(self._fields(given, {**dict(zip(names, call.args)), "out": out.ref()}))
        rows, cols = call.attrs["check"], call.attrs["check_cols"]
        self.stage += [
            f"{{ /* {call.name} */ pb_entries j = {{{fields}}};",
            f"  int64_t bad = pb->{call.kind}_{out.dtype}(&j);",
            f"  if (bad > 0) pb->bad_index(p[0], {rows}, j.rows[bad - 1]);",
            f"  if (bad < 0) pb->bad_index(p[0], {cols}, j.cols[-bad - 1]); }}",
        ]
        self.stage_cost += call.attrs["count"] * call.attrs["width"] * 0.05

    def _extreme(self, call: object, out: object) -> None:
        a, (where, what, start) = call.attrs, [self._address(r) for r in call.args]
        slot, size = self.memory.slot[out], out.numel * SIZES[out.dtype]
        self.stage += [
            f"__builtin_memcpy(p[{slot}], {start}, {size});",
            f"{{ /* {call.name} */",
            f"  int64_t bad = pb->scatter_extreme_{out.dtype}(p[{slot}], {a['rows']}, {where},",
            f"                              {what}, {a['n']}, {a['highest']}, {a['own']});",
            f"  if (bad) pb->bad_index(p[0], {a['check']}, ({where})[bad - 1]); }}",
        ]
        self.stage_cost += a["n"]

    def _scatter(self, call: object, out: object) -> None:
        a, t = call.attrs, out.dtype
        slot, size = self.memory.slot[out], out.numel * SIZES[t]
        if len(call.args) > 2:
            self.stage.append(
                f"__builtin_memcpy(p[{slot}], {self._address(call.args[2])}, {size});"
            )
        else:
            self.stage.append(f"__builtin_memset(p[{slot}], 0, {size});")
        where, what = self._address(call.args[0]), self._address(call.args[1])
        self.stage += [
            f"{{ /* {call.name} */",
            f"  int64_t bad = pb->scatter_rows_{t}(p[{slot}], {a['rows']}, {a['width']}, {where},",
            f"                                     {what}, {a['n']}, {a['skip']}LL, {a['wrap']});",
            "  if (bad)",
            f"    pb->bad_index(p[0], {a['check']}, ((const int64_t *){where})[bad - 1]); }}",
        ]
        self.stage_cost += a["n"] * a["width"] * 0.3

    def _python(self, item: CallItem) -> None:
        call, slot = item.call, self.memory.slot
        args = tuple((slot[r.value], r.offset * item_size(r.dtype), spec_of(r)) for r in call.args)
        results = tuple(-1 if v is None else slot[v] for v in call.outs)
        self.steps.append((call.attrs["node"], args, results))
        if "orders" in call.attrs:
            self.orders[call.attrs["node"]] = tuple(call.attrs["orders"].items())

    def _close_stage(self) -> None:
        if not self.stage:
            return
        symbol = f"pb_stage_{len(self.stages)}"
        numbers = declared("\n".join(self.stage), lambda: self.numbers)
        calls = self.stage if len(self.stage) <= _LONG_STAGE else self._parts(symbol, numbers)
        body = "".join(f"  {line}\n" for line in numbers + calls)
        self.stages.append(f"void {symbol}(void **p) {{\n{body}}}\n")
        self.steps.append((symbol, compared(self.stage_cost, ">", _RELEASE_NS)))
        self.stage, self.stage_cost = [], 0.0

    def _parts(self, symbol: str, numbers: list[str]) -> list[str]:
        """A long stage as functions that it calls, which the compiler takes as they are: its time
        for one function grows faster than the function, and there is nothing to improve in calls.
        """
        calls = []
        for n, part in enumerate(_in_parts(self.stage, _LONG_STAGE)):
            body = "".join(f"  {line}\n" for line in numbers + part)
            self.stages.append(f"static PB_AS_IS void {symbol}_{n}(void **p) {{\n{body}}}\n")
            calls.append(f"{symbol}_{n}(p);")
        return calls

    # ---- results ------------------------------------------------------------------------------

    def _source(self) -> str:
        if not self.stages:
            return ""
        lines = [
            f"/* {self.name}: generated from a graph of {self.schedule.lowered.count} nodes.",
            " * Buffers:",
        ]
        for n, b in enumerate(self.memory.buffers[1:], 1):
            what = (
                f"{b.value.name} {numpy_name(b.value.dtype)}{list(b.value.shape)}"
                if b.value
                else "what depends on sizes" if b.kind == "numbers" else "partial sums"
            )
            lines.append(f" *   p[{n}] {b.kind} {what}")
        text = "\n".join(lines) + ' */\n#include "pb.h"\n'
        for lanes in sorted(self.lanes):
            text += f'#undef PB_L\n#define PB_L {lanes}\n#include "vec.h"\n#include "vmath.h"\n'
        text += "\nstatic const pb_api *pb;\nvoid pb_bind(const pb_api *api) { pb = api; }\n\n"
        kernels = "\n".join(self.functions)
        text += _apart(kernels)
        if any("PB_AS_IS" in stage for stage in (*self.stages, *self.functions)):
            text += _AS_IS
        return text + kernels + "\n" + "\n".join(self.stages)

    def _buffer(self, b: Buffer) -> tuple:
        if b.value is None or b.kind not in ("output", "extern", "taken"):
            spec = (type_number("u"), (), None)
        else:
            spec = (type_number(b.value.dtype), self._shape(b), None)
        return encoded(b, spec)

    def _frees(self) -> tuple:
        """Per step, what ends with it: results of NumPy steps, and inputs."""
        ends: list[list[int]] = [[] for _ in self.steps]
        for n, b in enumerate(self.memory.buffers):
            if b.kind in ("input", "extern") and b.dies < len(self.step_of) and self.steps:
                step = self.step_of[int(max(b.dies, 0))]
                if step < len(ends):
                    ends[step].append(n)
        for number, last in self.memory.ends().items():
            if last < len(self.step_of) and self.step_of[int(last)] < len(ends):
                ends[self.step_of[int(last)]].append(len(self.memory.buffers) + number)
        return tuple(map(tuple, ends))

    def _makes(self) -> tuple:
        """Per step, the outputs that it makes, unless all are made at the beginning."""
        if not self.late or not self.steps or self.numbers:  # of the latter see `sized.py`
            return ()
        return self.memory.makes(self.step_of, len(self.steps))

    def _shape(self, b: Buffer) -> tuple:
        """Shape of an output's array: that of the first output that shows it whole.

        What a Python step returns has the shape of the step's own result.
        """
        if b.kind == "extern":
            return b.value.shape
        for ref in self.schedule.lowered.outputs:
            if isinstance(ref, Ref) and ref.value is b.value and ref.plain:
                return ref.shape
        return b.value.shape

    def _output(self, out: object, n: int) -> tuple:
        none = (type_number("u"), (), None)
        if not isinstance(out, Ref):
            return 2, 0, 0, True, none, out.number if isinstance(out, Const) else out
        slot = self.memory.slot[out.value]
        b = self.memory.buffers[slot]
        if out.value in self.inplace:
            return 1, b.at, 0, True, spec_of(out), None
        offset = out.offset * item_size(out.dtype)
        if b.kind == "input":
            whole = self.schedule.lowered.input_refs[b.at] == out
            return 1, b.at, offset, whole, spec_of(out), None
        return 0, slot, offset, out.plain and out.shape == self._shape(b), spec_of(out), None

    def _plan(self) -> dict:
        lowered = self.schedule.lowered
        places = tuple(sorted(self.memory.buffers[n].at for n in self.written))
        written = {"written": places} if places else {}
        if self.orders:
            written["orders"] = self.orders
        if self.tight:
            written["tight"] = True
        return written | {
            "inputs": tuple(spec_of(r) for r in lowered.input_refs),
            "names": tuple(v.name for v in lowered.inputs),
            "constants": tuple(lowered.constants),
            "buffers": tuple(self._buffer(b) for b in self.memory.buffers),
            "outputs": tuple(self._output(r, n) for n, r in enumerate(lowered.outputs)),
            "workspace": self.memory.workspace,
            "steps": tuple(self.steps),
            "frees": self._frees(),
            "room": self.memory.room(),
            "makes": self._makes(),
            "checks": tuple(lowered.builder.checks),
        } | self._sizes()

    def _sizes(self) -> dict:
        """What `sized.py` needs to fill in a plan: the place of numbers, and who lives how long."""
        if not self.numbers:
            return {}
        lives = tuple((b.kind, b.born, b.dies, b.gives, b.spare) for b in self.memory.buffers)
        steps = (tuple(self.step_of), len(self.steps)) if self.late and self.steps else ()
        return {"numbers": self.numbers, "lives": lives, "tight": self.tight, "stepped": steps}

    def _report(self) -> dict:
        why = self.schedule.lowered.why
        externs = [
            i.call
            for i in self.schedule.items
            if isinstance(i, CallItem) and i.call.kind == "python"
        ]
        kinds = {
            k: sum(b.bytes for b in self.memory.buffers if b.kind == k)
            for k in ("input", "output", "work", "placed", "taken", "hosted")
        }
        return {
            "kernels": self.kernels,
            "calls": self.calls,
            "externs": [{"name": c.attrs["node"], "target": c.attrs["target"]} | (
                {"why": why[c.attrs["node"]]} if c.attrs["node"] in why else {}) for c in externs],
            "buffers": len(self.memory.buffers) - 1,
            "workspace_bytes": self.memory.workspace,
            "unshared_bytes": kinds["work"] + kinds["placed"] + kinds["hosted"],
            "reused_bytes": self.memory.reused(),
            "input_bytes": kinds["input"],
            "output_bytes": kinds["output"] + kinds["taken"],
            "nodes": self.schedule.lowered.count,
            "inplace": len(self.inplace),
        }


def make_unit(
    lowered: Lowered,
    schedule: Schedule,
    name: str,
    vector_bytes: int,
    writes: dict[int, int] | None = None,
    sized: bool = False,
    given: Collection[int] = (),
    tight: bool = False,
) -> Unit:
    """The C text and plan of a scheduled graph; `writes`: output -> input that it is to replace;
    `sized`: some numbers in it depend on sizes; `given`: inputs that may be overwritten; `tight`:
    without memory that only makes it faster."""
    name = re.sub(r"\W", "_", name)
    return UnitWriter(schedule, name, vector_bytes, writes or {}, sized, given, tight).write()
