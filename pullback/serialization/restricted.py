"""A pickle reader that runs no code but the functions it is given.

Pickle is a small stack language.  This machine knows the instructions that protocols 2 to 5 use
for plain data, looks names up in a table and nowhere else, and calls nothing but what the table
says may be called.  All that can go wrong becomes an `UnsafePickle`.  Read next: `rebuild.py` for
the table.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

from .. import errors

LONGEST_INT = 1 << 16  # bytes; nothing that a checkpoint holds comes near
KEY_PARTS, KEY_DEPTH = 10_000, 100  # of a dictionary's key: hashing walks over all of it

_SIZED = (str, bytes, bytearray, list, tuple, dict, set, frozenset, OrderedDict)
_FAULTS = (IndexError, KeyError, TypeError, ValueError, OverflowError, AttributeError,
           AssertionError, struct.error, RecursionError, EOFError)  # fmt: skip


class Table:
    """The names that a pickle may use: what they stand for and what may be called."""

    def __init__(self, names: dict[str, Any], calls: dict[int, Callable], classes: tuple = ()):
        self.names, self.calls = names, calls  # calls: id of a value -> what runs instead of it
        self.classes = classes  # the user's classes, of which objects may be made and filled


class Restricted:
    """Reads one pickle after another from a file that is `limit` bytes long."""

    def __init__(self, file, limit: int, table: Table, persistent: Callable, encoding="utf-8"):
        self.file, self.limit, self.table = file, limit, table
        self.persistent, self.encoding = persistent, encoding

    def load(self):
        """The value of the next pickle."""
        self.stack: list = []
        self.marks: list[list] = []
        self.memo: dict[int, Any] = {}
        self.work = 0
        read, run = self.file.read, _RUN
        try:
            while (code := read(1)) != b".":
                try:
                    step = run[code]
                except KeyError:
                    raise _damaged(f"instruction {code!r} has no place in a file of data"
                                   if code else "it ends too early") from None
                step(self)
            return self.stack.pop()
        except errors.PullbackError:
            raise
        except _FAULTS as error:
            raise _damaged(f"{type(error).__name__}: {error}") from error

    # what instructions are made of

    def take(self, count: int) -> bytes:
        if count < 0 or count > self.limit - self.file.tell():
            raise _damaged(f"{count} bytes are announced where the file has fewer")
        data = self.file.read(count)
        if len(data) != count:
            raise _damaged("it ends too early")
        return data

    def number(self, form: str) -> int:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def text(self, form: str, kind: str) -> None:
        data = self.take(self.number(form))
        if kind == "str":
            self.stack.append(data.decode("utf-8", "surrogatepass"))
        elif kind == "old" and self.encoding != "bytes":  # strings of Python 2
            self.stack.append(data.decode(self.encoding))
        else:
            self.stack.append(bytearray(data) if kind == "bytearray" else data)

    def line(self) -> str:
        data = self.file.readline(1024)
        if not data.endswith(b"\n"):
            raise _damaged("a name does not end")
        return data[:-1].decode("utf-8")

    def long(self, form: str) -> None:
        size = self.number(form)
        if size > LONGEST_INT:
            raise _damaged(f"it has an integer of {size} bytes")
        self.stack.append(int.from_bytes(self.take(size), "little", signed=True))

    def mark(self) -> None:
        self.marks.append(self.stack)
        self.stack = []

    def marked(self) -> list:
        items, self.stack = self.stack, self.marks.pop()
        return items

    def tuple(self, count: int) -> None:
        if len(self.stack) < count:
            raise _damaged("its stack is empty")
        self.stack[-count:] = [tuple(self.stack[-count:])]

    # containers

    def extend(self, items: list) -> None:
        target = self.stack[-1]
        if type(target) is not list:
            raise _damaged(f"it appends to a {type(target).__name__}")
        target.extend(items)

    def update(self, items: list) -> None:
        target = self.stack[-1]
        if type(target) not in (dict, OrderedDict, Counter) or len(items) % 2:
            raise _damaged(f"it sets items of a {type(target).__name__}")
        for key, value in zip(items[::2], items[1::2]):
            check_key(key)
            target[key] = value

    def add(self, items: list) -> None:
        target = self.stack[-1]
        if type(target) is not set:
            raise _damaged(f"it adds to a {type(target).__name__}")
        self.stack[-1].update(checked(items))

    # names and what is done with them

    def look_up(self, module: str, name: str) -> None:
        full = f"{module}.{name}"[:300]
        try:
            self.stack.append(self.table.names[full])
        except KeyError:
            raise errors.UnsafePickle(
                errors.text(
                    f"the file names {full}, which weights_only=True does not allow "
                    f"({errors.user_line(3)})",
                    "nothing of it was run",
                    [f"if you trust {full}: serialization.add_safe_globals([{name}])",
                     "if you trust whoever made the file, who can then run any code here: "
                     "load(..., weights_only=False)"],
                )
            ) from None

    def global_of_stack(self) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        if type(name) is not str or type(module) is not str:
            raise _damaged("a name is no text")
        self.look_up(module, name)

    def call(self) -> None:
        args, function = self.stack.pop(), self.stack.pop()
        if type(args) is not tuple:
            raise _damaged("arguments are no tuple")
        # one long value that is handed to many calls would be copied by each of them
        self.work += sum(len(arg) for arg in args if type(arg) in _SIZED)
        if self.work > 4 * self.limit + (1 << 20):
            raise _damaged("it makes far more than it holds")
        self.stack.append(self.callable(function)(*args))

    def callable(self, function) -> Callable:
        try:
            return self.table.calls[id(function)]
        except KeyError:
            what = getattr(function, "__qualname__", None) or type(function).__name__
            raise errors.UnsafePickle(
                errors.text(f"the file calls {what}, which weights_only=True does not allow "
                            f"({errors.user_line(4)})", "nothing of it was run",
                            "serialization.add_safe_globals([...]) if you trust it")
            ) from None

    def new(self, keywords: bool) -> None:
        options = self.stack.pop() if keywords else {}
        args, cls = self.stack.pop(), self.stack.pop()
        if type(args) is not tuple or type(options) is not dict:
            raise _damaged("arguments are no tuple")
        if (cls is OrderedDict or cls is Counter) and not args and not options:
            self.stack.append(cls())
            return
        self.callable(cls)
        if cls not in self.table.classes:
            raise _damaged("it makes an object without its constructor")
        self.stack.append(cls.__new__(cls, *args, **options))

    def build(self) -> None:
        state, target = self.stack.pop(), self.stack[-1]
        kind = type(target)
        if kind is OrderedDict:
            target.__dict__.update(_attributes(state))
        elif kind in self.table.classes:
            if hasattr(kind, "__setstate__"):
                target.__setstate__(state)
                return
            slots = None
            if type(state) is tuple and len(state) == 2:
                state, slots = state
            if state:
                target.__dict__.update(_attributes(state))
            for name, value in _attributes(slots or {}).items():
                setattr(target, name, value)
        else:
            raise errors.UnsafePickle(f"the file sets the state of a {kind.__name__}, which "
                                      "weights_only=True does not allow; nothing of it was run")


def _attributes(state) -> dict:
    if type(state) is not dict or any(type(key) is not str for key in state):
        raise _damaged("the state of an object is no dictionary of names")
    return state


def _damaged(why: str) -> errors.UnsafePickle:
    return errors.UnsafePickle(
        errors.text(f"the file's pickle is damaged or not one of plain data: {why} "
                    f"({errors.user_line(2)})", "nothing of it was run",
                    "get the file again; if it is right, load(..., weights_only=False) reads "
                    "pickles of every kind and runs the code that they ask for")
    )


def check_key(key) -> None:
    """Refuse keys that are expensive to hash: a small pickle can share one tuple many times."""
    if type(key) is not tuple:
        return
    parts, level = 0, [key]
    for _ in range(KEY_DEPTH):
        level = [item for part in level if type(part) is tuple for item in part]
        parts += len(level)
        if parts > KEY_PARTS:
            break
        if not level:
            return
    raise _damaged("a key of a dictionary is a tuple of absurd size")


def checked(keys) -> list:
    """Keys that can be hashed in good time."""
    keys = list(keys)
    for key in keys:
        check_key(key)
    return keys


def _put(vm: Restricted, number: int) -> None:
    vm.memo[number] = vm.stack[-1]


def _push(value) -> Callable:
    return lambda vm: vm.stack.append(value)


def _made(make: Callable) -> Callable:
    return lambda vm: vm.stack.append(make())


def _marked(make: Callable) -> Callable:
    def step(vm: Restricted) -> None:
        items = vm.marked()  # changes the stack: first
        vm.stack.append(make(items))

    return step


def _marked_dict(vm: Restricted) -> None:
    items = vm.marked()
    vm.stack.append({})
    vm.update(items)


def _set_item(vm: Restricted) -> None:
    value, key = vm.stack.pop(), vm.stack.pop()
    vm.update([key, value])


def _append(vm: Restricted) -> None:
    vm.extend([vm.stack.pop()])


_RUN: dict[bytes, Callable[[Restricted], Any]] = {
    b"\x80": lambda vm: vm.take(1),  # the protocol's number
    b"\x95": lambda vm: vm.take(8),  # a frame begins
    b"(": Restricted.mark,
    b"0": lambda vm: vm.stack.pop() if vm.stack else vm.marked(),
    b"1": lambda vm: vm.marked() and None,
    b"N": _push(None),
    b"\x88": _push(True),
    b"\x89": _push(False),
    b"J": lambda vm: vm.stack.append(vm.number("<i")),
    b"K": lambda vm: vm.stack.append(vm.number("<B")),
    b"M": lambda vm: vm.stack.append(vm.number("<H")),
    b"\x8a": lambda vm: vm.long("<B"),
    b"\x8b": lambda vm: vm.long("<I"),
    b"G": lambda vm: vm.stack.append(vm.number(">d")),
    b"X": lambda vm: vm.text("<I", "str"),
    b"\x8c": lambda vm: vm.text("<B", "str"),
    b"\x8d": lambda vm: vm.text("<Q", "str"),
    b"T": lambda vm: vm.text("<I", "old"),
    b"U": lambda vm: vm.text("<B", "old"),
    b"B": lambda vm: vm.text("<I", "bytes"),
    b"C": lambda vm: vm.text("<B", "bytes"),
    b"\x8e": lambda vm: vm.text("<Q", "bytes"),
    b"\x96": lambda vm: vm.text("<Q", "bytearray"),
    b")": _push(()),
    b"t": _marked(tuple),
    b"\x85": lambda vm: vm.tuple(1),
    b"\x86": lambda vm: vm.tuple(2),
    b"\x87": lambda vm: vm.tuple(3),
    b"]": _made(list),
    b"l": _marked(list),
    b"a": _append,
    b"e": lambda vm: vm.extend(vm.marked()),
    b"}": _made(dict),
    b"d": _marked_dict,
    b"s": _set_item,
    b"u": lambda vm: vm.update(vm.marked()),
    b"\x8f": _made(set),
    b"\x90": lambda vm: vm.add(vm.marked()),
    b"\x91": _marked(lambda items: frozenset(checked(items))),
    b"c": lambda vm: vm.look_up(vm.line(), vm.line()),
    b"\x93": Restricted.global_of_stack,
    b"R": Restricted.call,
    b"\x81": lambda vm: vm.new(False),
    b"\x92": lambda vm: vm.new(True),
    b"b": Restricted.build,
    b"q": lambda vm: _put(vm, vm.number("<B")),
    b"r": lambda vm: _put(vm, vm.number("<I")),
    b"\x94": lambda vm: _put(vm, len(vm.memo)),
    b"h": lambda vm: vm.stack.append(vm.memo[vm.number("<B")]),
    b"j": lambda vm: vm.stack.append(vm.memo[vm.number("<I")]),
    b"Q": lambda vm: vm.stack.append(vm.persistent(vm.stack.pop())),
}
