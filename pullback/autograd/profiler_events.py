"""What a profiler recorded: events, their sums, tables and trace files; see `profiler.py`."""

from __future__ import annotations

import gzip
import json
import os

from .. import errors

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg"]


class Interval:
    """Begin and end in microseconds."""

    def __init__(self, start: float, end: float):
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """The length."""
        return self.end - self.start


class _Timed:
    """What single events and sums have in common; times are in microseconds."""

    count: int
    cpu_time_total: float
    device_time = device_time_total = self_device_time_total = 0.0
    cuda_time = cuda_time_total = self_cuda_time_total = 0.0
    device_memory_usage = self_device_memory_usage = 0
    flops = None
    is_legacy = is_user_annotation = False

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / self.count if self.count else 0.0

    cpu_time_str = property(lambda self: duration(self.cpu_time))
    cpu_time_total_str = property(lambda self: duration(self.cpu_time_total))
    self_cpu_time_total_str = property(lambda self: duration(self.self_cpu_time_total))


class FunctionEvent(_Timed):
    """One run of an operator, a node or a named range."""

    __slots__ = ("children", "cpu_memory_usage", "cpu_parent", "end", "fwd_thread", "id",
                 "input_shapes", "name", "node_id", "sequence_nr", "stack", "start", "thread")
    count = 1

    def __init__(self, name: str, thread: int, parent: FunctionEvent | None = None, *,
                 id: int = 0, node_id: int = -1, start_us: float = 0, end_us: float = 0,
                 fwd_thread: int = 0):
        self.name, self.thread, self.cpu_parent = name, thread, parent
        self.id, self.node_id, self.fwd_thread = id, node_id, fwd_thread
        self.start, self.end = start_us * 1000, end_us * 1000  # nanoseconds
        self.input_shapes: list = []
        self.stack: list[str] = []
        self.sequence_nr = -1
        self.cpu_memory_usage = 0
        self.children: list[FunctionEvent] = []
        if parent is not None:
            parent.children.append(self)

    key = property(lambda self: self.name)
    cpu_children = property(lambda self: self.children)
    time_range = property(lambda self: Interval(self.start / 1000, self.end / 1000))

    @property
    def cpu_time_total(self) -> float:
        return (self.end - self.start) / 1000

    @property
    def self_cpu_time_total(self) -> float:
        return self.cpu_time_total - sum(c.cpu_time_total for c in self.children)

    @property
    def self_cpu_memory_usage(self) -> int:
        return self.cpu_memory_usage if not self.children else 0

    def __repr__(self) -> str:
        return f"<FunctionEvent {self.name} cpu_time={self.cpu_time_str}>"


class FunctionEventAvg(_Timed):
    """The sum of all events of a name (and of shapes, or of source lines)."""

    def __init__(self, first: FunctionEvent | None = None):
        self.key = None if first is None else first.key
        self.input_shapes = str((first and first.input_shapes) or "")
        self.stack = [] if first is None else first.stack
        self.count = self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0

    def add(self, event) -> FunctionEventAvg:
        """Add an event or another sum."""
        self.key = event.key if self.key is None else self.key
        inner, parent = False, getattr(event, "cpu_parent", None)
        while parent is not None and not inner:  # its time is in an event of the same name
            inner, parent = parent.name == event.key, parent.cpu_parent
        self.cpu_time_total += 0.0 if inner else event.cpu_time_total
        self.self_cpu_time_total += event.self_cpu_time_total
        self.cpu_memory_usage += event.cpu_memory_usage
        self.self_cpu_memory_usage += event.self_cpu_memory_usage
        self.count += event.count
        return self

    def __repr__(self) -> str:
        return (f"<FunctionEventAvg key={self.key} count={self.count} "
                f"self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str}>")


class EventList(list):
    """Events in the order in which they began, or sums of them."""

    def __init__(self, events=(), begun: int = 0, ended: int = 0):
        super().__init__(events)
        self.begun, self.ended = begun, ended

    def __add__(self, other: EventList) -> EventList:
        return EventList([*self, *other], self.begun, other.ended)

    def __str__(self) -> str:
        return self.table()

    def _populate_cpu_children(self) -> None:
        """Find the parents of events that came without: the shortest range around each.

        Of ranges that overlap the later one is the parent of what follows.
        """
        for thread in dict.fromkeys(e.thread for e in self):
            open_: list[FunctionEvent] = []
            for e in sorted((e for e in self if e.thread == thread),
                            key=lambda e: (e.start, -e.end)):
                while open_ and (e.start >= open_[-1].end or e.end > open_[-1].end):
                    open_.pop()
                if open_:
                    e.cpu_parent = open_[-1]
                    open_[-1].children.append(e)
                open_.append(e)

    @property
    def self_cpu_time_total(self) -> float:
        return sum(e.self_cpu_time_total for e in self)

    def key_averages(self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0,
                     **ignored) -> EventList:
        """Sums of events of the same name, and of the same shapes or source lines if asked."""
        sums: dict = {}
        for event in self:
            key = (event.key, str(event.input_shapes) if group_by_input_shapes else "",
                   tuple(event.stack[:group_by_stack_n]))
            if key not in sums:
                sums[key] = FunctionEventAvg(event)
            sums[key].add(event)
        for (_, shapes, _), total in sums.items():
            total.input_shapes = shapes
        return EventList(sums.values(), self.begun, self.ended)

    def total_average(self) -> FunctionEventAvg:
        """The sum of everything."""
        whole = FunctionEventAvg(FunctionEvent("Total", 0, None))
        for event in self:
            whole.add(event)
        return whole

    def table(self, sort_by: str | None = None, row_limit: int = 100,
              max_src_column_width: int = 75, max_name_column_width: int = 55,
              max_shapes_column_width: int = 80, header: str | None = None,
              top_level_events_only: bool = False, **ignored) -> str:
        """A table for reading; `sort_by` is the name of an attribute such as "cpu_time_total"."""
        rows = list(self)
        if top_level_events_only:
            rows = [e for e in rows if getattr(e, "cpu_parent", None) is None]
        if sort_by is not None:
            if rows and not hasattr(rows[0], sort_by):
                raise errors.BadValue(f"table(): there is no {sort_by!r} to sort by")
            rows.sort(key=lambda e: getattr(e, sort_by), reverse=True)
        whole = self.self_cpu_time_total or 1.0
        titles = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
        memory = any(e.cpu_memory_usage for e in rows)
        shapes, stacks = any(e.input_shapes for e in rows), any(e.stack for e in rows)
        titles += ["CPU Mem", "Self CPU Mem"] if memory else []
        titles += ["# of Calls"]
        titles += ["Input Shapes"] if shapes else []
        titles += ["Source Location"] if stacks else []
        lines = []
        for e in rows[: row_limit if row_limit >= 0 else None]:
            line = [_cut(e.key, max_name_column_width), f"{e.self_cpu_time_total / whole:.2%}",
                    e.self_cpu_time_total_str, f"{e.cpu_time_total / whole:.2%}",
                    e.cpu_time_total_str, e.cpu_time_str]
            line += [size(e.cpu_memory_usage), size(e.self_cpu_memory_usage)] if memory else []
            line += [str(e.count)]
            line += [_cut(str(e.input_shapes), max_shapes_column_width)] if shapes else []
            line += [_cut(e.stack[0] if e.stack else "", max_src_column_width)] if stacks else []
            lines.append(line)
        widths = [max(len(row[i]) for row in [titles, *lines]) for i in range(len(titles))]
        rule = "  ".join("-" * w for w in widths)
        text = [rule, "  ".join(t.rjust(w) for t, w in zip(titles, widths)), rule]
        text += ["  ".join(c.rjust(w) for c, w in zip(row, widths)) for row in lines]
        text += [rule, f"Self CPU time total: {duration(self.self_cpu_time_total)}", ""]
        return "\n".join([header, *text] if header else text)

    def export_chrome_trace(self, path: str, metadata: dict | None = None) -> None:
        """Write the events as a trace that browsers show; `.gz` compresses it."""
        process = os.getpid()
        events = [{
            "ph": "X", "cat": "cpu_op" if "::" in e.name else "user_annotation", "name": e.name,
            "pid": process, "tid": e.thread, "ts": e.start / 1000, "dur": (e.end - e.start) / 1000,
            "args": {"Input Dims": e.input_shapes, "Sequence number": e.sequence_nr,
                     "Call stack": ";".join(e.stack)}} for e in self]
        trace = {"schemaVersion": 1, "traceEvents": events, **(metadata or {})}
        with (gzip.open(path, "wt") if str(path).endswith(".gz") else open(path, "w")) as file:
            json.dump(trace, file)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write one line per source line and its time in microseconds, for flame graphs."""
        sums: dict[str, float] = {}
        for e in self:
            if e.stack:
                name = ";".join([*reversed(e.stack), e.key]).replace(" ", "_")
                sums[name] = sums.get(name, 0.0) + getattr(e, metric)
        with open(path, "w") as file:
            file.writelines(f"{name} {int(value)}\n" for name, value in sums.items())


def duration(microseconds: float) -> str:
    """A time with its unit."""
    for unit, name in ((1e6, "s"), (1e3, "ms")):
        if microseconds >= unit:
            return f"{microseconds / unit:.3f}{name}"
    return f"{microseconds:.3f}us"


def size(count: int) -> str:
    """A number of bytes with its unit."""
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if abs(count) >= unit:
            return f"{count / unit:.2f} {name}"
    return f"{count} B"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width or width < 4 else text[: width - 3] + "..."
