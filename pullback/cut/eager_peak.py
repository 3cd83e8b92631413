"""How much memory eager execution takes, written down while a function is captured.

A capture runs the function, and the engine behind it, on tensors without data. Their memory comes
and goes as that of real tensors does: what the tape keeps, what Python still holds, what a formula
makes on the way. A `Diary` notes when each array begins and ends, and which operator ran; `peak`
goes through it with numbers for the sizes. What kernels take inside is measured, by running those
that may matter once on zeros. Read `budget.py` next.
"""

from __future__ import annotations

import tracemalloc
import weakref
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ..array.evaluate import run_raw
from ..array.random import default_generator
from ..array.size import hinted
from ..core.handle import Tensor
from ..graph.node import Node, map_arg
from ..graph.traits import nbytes, owner
from ..interp.box import map_tensors
from ..interp.trace import Traced

CALL = 640  # bytes of Python objects that an operator on the tape leaves
ARRAY = 112  # bytes of an array beside its data
INSIDE = 8  # no kernel takes more than so many times its operands and results


class Memory:
    """The memory of one array of a capture; views of it hold it, too."""

    __slots__ = ("__weakref__", "diary", "number")

    def __init__(self, diary: Diary) -> None:
        self.diary, self.number = diary, None

    def __del__(self) -> None:
        if self.number is not None:
            self.diary.events.append((self.number, None))


class Watched(Traced):
    """A traced value that holds its memory."""

    __slots__ = ("memory",)


class Diary:
    """What happened, in order: (number of an array, its facts or None at its end), or a call."""

    def __init__(self) -> None:
        self.events: list[tuple] = []
        self.known: weakref.WeakValueDictionary[Node, Memory] = weakref.WeakValueDictionary()
        self.count = 0

    def memory(self, node: Node) -> Memory | None:
        """The memory that a new value of a node holds."""
        root = owner(node)
        given = root.op == "placeholder" and "tangents" in root.name
        if root.op in ("placeholder", "get_attr") and not given:
            return None
        found = self.known.get(root)
        if found is None:
            found = self.known[root] = Memory(self)
            if given:
                self._begins(found, node)
        return found

    def watched(self, level: Any, value: Tensor, node: Node) -> Watched:
        """The box of a value."""
        box = Watched(level, value, node)
        box.memory = self.memory(node)
        return box

    def called(self, ov: Any, flat: tuple, out: Any) -> None:
        """An operator of the function, or of a formula, is through."""
        self.events.append((ov, map_tensors(_seen, flat)))
        for t in out if isinstance(out, (list, tuple)) else (out,):
            memory = getattr(getattr(t, "_payload", None), "memory", None)
            if memory is not None and memory.number is None:
                self._begins(memory, t._payload.node)

    def _begins(self, memory: Memory, node: Node) -> None:
        memory.number = self.count
        self.count += 1
        self.events.append((memory.number, _seen(owner(node).meta["val"])))

    def closed(self) -> list[tuple]:
        """The events until now; what happens to values of the capture later does not matter."""
        return list(self.events)


class Array:
    """An array as far as it is known: shape, dtype and strides, maybe symbolic."""

    __slots__ = ("dtype", "shape", "strides")

    def __init__(self, shape: tuple, dtype: np.dtype, strides: tuple) -> None:
        self.shape, self.dtype, self.strides = shape, dtype, strides

    def numbers(self, number: Callable) -> Array:
        """The same with numbers."""
        return Array(tuple(number(self.shape)), self.dtype, tuple(number(self.strides)))

    def bytes(self, number: Callable = hinted) -> int:
        """What its elements take."""
        return prod(number(self.shape)) * self.dtype.itemsize

    def __repr__(self) -> str:
        return f"{self.dtype.str}{self.shape}{self.strides}"

    def zeros(self) -> np.ndarray:
        """Such an array; its pages are not in memory until they are written."""
        if 0 in self.strides or not prod(self.shape):
            return np.broadcast_to(np.zeros((), self.dtype), self.shape)
        order = sorted(range(len(self.shape)), key=lambda d: -self.strides[d])
        whole = np.zeros([self.shape[d] for d in order], self.dtype)
        return whole.transpose(np.argsort(order)) if order else whole


def _seen(t: Tensor) -> Array:
    data = t._payload
    while isinstance(data, Traced):
        data = data.inner._payload
    return Array(data.shape, data.dtype, data.strides)


def _total(operands: Any) -> int:
    found: list[int] = []
    _operands(operands, lambda array: found.append(array.bytes()))
    return sum(found)


def _operands(value: Any, function: Callable) -> Any:
    """A function applied to all arrays in arguments."""
    if isinstance(value, Array):
        return function(value)
    if isinstance(value, (list, tuple)):
        return tuple([_operands(v, function) for v in value])
    return value


def peak(diary: list[tuple], number: Callable = hinted) -> int:
    """Bytes beyond the arguments when there are most.

    `number` turns symbolic sizes, and tuples of them, into numbers: into the captured ones.
    """
    sizes: dict[int, int] = {}
    now = most = 0
    calls: list[tuple[int, Any, tuple]] = []  # (bytes beside the call's own, operator, operands)
    for what, fact in diary:
        if type(what) is not int:
            now += CALL
            calls.append((now, what, fact))
        elif fact is None:
            now -= sizes.pop(what)
        else:
            sizes[what] = fact.bytes(number) + ARRAY
            now += sizes[what]
            most = max(most, now)
    # kernels run before their results are there: what they take inside is counted with these
    for held, ov, flat in sorted(calls, key=lambda call: -call[0]):
        operands = _operands(flat, lambda o: o.numbers(number))
        if held + INSIDE * _total(operands) > most:
            most = max(most, held + inside(ov, number(operands)))
    return most


_inside: dict[tuple, int] = {}
_ran: set = set()  # operators that were measured


def inside(ov: Any, flat: tuple) -> int:
    """Bytes that a kernel takes while it runs, its results among them."""
    if ov.is_view or ov.custom:
        return 0
    key = ov, repr(flat)
    if key not in _inside:
        arrays = _operands(flat, Array.zeros)
        state = default_generator.get_state() if ov.is_random else None
        ours = not tracemalloc.is_tracing()
        if ours:
            tracemalloc.start()
        try:
            for _ in range(1 if ov in _ran else 2):  # the first time it may import something
                tracemalloc.reset_peak()
                before = tracemalloc.get_traced_memory()[0]
                with np.errstate(all="ignore"):
                    made = run_raw(ov, arrays, np)
                _inside[key] = tracemalloc.get_traced_memory()[1] - before
                del made
            _ran.add(ov)
        except Exception:  # zeros are not for it: an index of something empty, say
            _inside[key] = 0
        finally:
            if ours:
                tracemalloc.stop()
            if state is not None:
                default_generator.set_state(state)
    return _inside[key]


def inside_of(node: Node) -> int:
    """The same for a node of a graph."""
    ov, schema = node.target, getattr(node.target, "schema", None)
    if not hasattr(ov, "is_random") or schema is None or not all(
            isinstance(n.meta.get("val"), Tensor) for n in node.all_input_nodes):
        return nbytes(node.meta.get("val"))
    flat = list(node.args)
    flat += [node.kwargs.get(a.name, a.default) for a in schema.args[len(node.args):]]
    seen = map_arg(flat, lambda n: _seen(n.meta["val"]).numbers(hinted))
    return inside(ov, hinted(tuple(seen)))
