"""Hooks of tensors that a captured function was given, and of those that it computes.

A hook that the function registers on an input gets all of the gradient of its tensor, what comes
from outside of the function, too: it is no part of the graph, every call registers it again.  A
sweep of the function's own (`backward()` inside) calls it meanwhile, and so it does the hooks that
inputs came with: these are traced, and the program is for just these hooks.  Hooks of what the
function computes are traced with its backward, unless code outside can remove them.  Read next:
`capture.py`, whose trace owns them.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from .. import errors
from ..core.handle import Tensor, meta_of
from ..core.tape import Accumulate, Port
from ..core.tape import tables_of as hook_tables
from ..python_state.side_effects import Effects
from ..tensor.hooks import RemovableHandle, Table
from ..threads.state import fast

if TYPE_CHECKING:
    from .capture import Capture


class InputHooks(Table):
    """Hooks of the stand-in of an input: its own, behind those in other tables."""

    __slots__ = ("others",)

    def __init__(self) -> None:
        super().__init__()
        self.others: list[Table] = []
        self.at_leaf = False

    def values(self) -> list:  # type: ignore[override]
        return [*[hook for table in self.others for hook in table.values()], *super().values()]

    def __bool__(self) -> bool:
        return bool(self.values())


class InputHooksCalled(Effects):
    """Inputs have hooks that the function's own sweeps call: capture it once more, with these."""

    def __init__(self, hooks: list):
        super().__init__("its own backward calls hooks of its inputs")
        self.hooks = hooks


def tables_of(t: Tensor) -> dict[str, Table]:
    """The tables of hooks that a gradient meets which arrives at a tensor, by kind."""
    edge = t._edge
    node, number = (edge.node, edge.number) if type(edge) is Port else (edge, 0)
    post = None if t._record is None else t._record.post_hooks
    found = {"accumulated": post} if post else {}
    if node is not None and node.hooks:
        tables = {"tensor": node.hooks.get("tensor", {}).get(number)}
        if isinstance(node, Accumulate):
            tables |= {kind: node.hooks.get(kind) for kind in ("pre", "post")}
        found |= {kind: table for kind, table in tables.items() if table}
    return found


def _numbers(tables: dict[str, Table]) -> tuple:
    """Hooks as numbers that no two of them share."""
    return tuple([(kind, *table) for kind, table in tables.items()])


class SameInputHooks:
    """The guard that inputs have the hooks that sweeps of the captured function call."""

    def __init__(self, hooks: list[tuple[int, tuple]], leaves: bool):
        self.hooks = hooks  # (input, numbers)
        self.none = leaves and not any(numbers for _, numbers in hooks)

    def fits(self, joint: Any, arguments: list[Tensor]) -> bool:
        if self.none and not fast["LEAFHOOKS"]:
            return True
        inputs = joint.inputs.of(arguments)
        return all(_numbers(tables_of(inputs[i])) == numbers for i, numbers in self.hooks)


class HooksInside:
    """The hooks of one capture: those that inputs came with, and those that it registers."""

    def __init__(self, level: Capture):
        self.level = level
        self.sweeps = False  # has the function run a sweep of its own?
        self.reaches_outside = False  # has one of them come to an input that is no leaf?
        self.traced = False  # do stand-ins have the hooks of what they stand for?
        self.called: list[InputHooks] = []  # by sweeps of the function, of inputs
        self.given: dict[int, dict[str, Table]] = {}  # of inputs that require grad, by identity
        # (handle, kind) -> those that the function registers on inputs
        self.hooked: dict[tuple[int, str], Table] = {}
        # of all hooks; those that the function keeps stay in it
        self.handles: WeakSet[RemovableHandle] = WeakSet()

    def registered(self, at, kind: str, hook):
        """Where the hook of an input is kept, or what is registered of one that is traced."""
        if kind in ("pre", "post"):
            return self.level.own_backwards().node_hook(at, kind, hook)
        table = self.hooks_of(at, kind, hook)
        if table is not None or kind != "tensor":
            return table
        return self.level.own_backwards().hook(at, hook)

    def keep_handle(self, handle: RemovableHandle) -> None:
        """The function may keep the handle of a hook, and return it."""
        self.handles.add(handle)

    def hooks_of(self, t: Tensor, kind: str, hook) -> Table | None:
        """Where hooks of an input are kept; None for a tensor of the function's own, or a hook that
        uses one: that is traced."""
        start = self.level.starts.get(id(t))
        if start is None or t._edge is not start or any(map(self._inner, _reached(hook))):
            return None
        table = self.hooked.get((id(t), kind))
        if table is None:
            table = self.hooked[id(t), kind] = Table()
            self._hooks_at(t, kind).others.append(table)
        return table

    def _hooks_at(self, t: Tensor, kind: str) -> InputHooks:
        """The hooks of a stand-in, as the sweeps of the function find them."""
        if kind == "accumulated":
            meta = meta_of(t)
            meta.post_hooks = found = self._behind(meta.post_hooks)
            return found
        node, number = (t._edge.node, t._edge.number) if type(t._edge) is Port else (t._edge, 0)
        tables, key = hook_tables(node), kind
        if kind == "tensor":
            tables, key = tables.setdefault("tensor", {}), number
        tables[key] = found = self._behind(tables.get(key))
        return found

    def _behind(self, table: Table | None) -> InputHooks:
        if isinstance(table, InputHooks):
            return table
        hooks = InputHooks()
        hooks.others += [table] if table else []
        self.called.append(hooks)
        return hooks

    def take(self, t: Tensor, came: dict[str, Table]) -> None:
        """An input has come, with hooks."""
        if t._edge is not None:
            self.given[id(t)] = came
        if not self.traced or t._edge is None:
            if t._record is not None:
                t._record.post_hooks = None  # until it is known what they do
            return
        for kind, table in came.items():
            if kind != "accumulated" or t._record is None or t._record.post_hooks is not table:
                self._hooks_at(t, kind).others.append(table)

    def came_to_input(self, gradients: tuple, given: tuple) -> None:
        """A gradient has come to an input with a history outside of the function."""
        self.reaches_outside = self.reaches_outside or not self.level.joined

    def refuse_of_inputs(self) -> None:
        """Refuse a capture whose sweeps should have gone on behind inputs, or should have called
        the hooks of these."""
        if self.reaches_outside:
            raise Effects("its backward goes on through the history of an argument, outside of it")
        hooks = [hook for tables in self.given.values() for table in tables.values()
                 for hook in table.values()]
        if self.sweeps and hooks and not self.traced:
            raise InputHooksCalled(hooks)

    def guard(self, numbers: dict[int, int]) -> SameInputHooks | None:
        """The hooks that the program is for; None if it calls none. `numbers` are the inputs'."""
        if not self.sweeps:
            return None
        found = [(numbers[t], _numbers(tables))
                 for t, tables in self.given.items() if t in numbers]
        leaves = all(isinstance(self.level.starts.get(t), Accumulate) for t in self.given)
        return SameInputHooks(found, leaves) if found else None

    def leave_inputs(self) -> None:
        """The function is over: whoever differentiates it calls the hooks of its inputs."""
        for hooks in self.called:
            hooks.others = []

    def _inner(self, value) -> bool:
        return isinstance(value, Tensor) and self.level.mine(value) and not any(
            a.handle is value for a in self.level.adopted)

    def check_handles(self) -> None:
        """Refuse to trace a hook that code outside of the function can remove."""
        tables = list(self.hooked.values())
        for handle in self.handles:
            table = handle._table()
            if table is not None and handle.id in table and not any(table is t for t in tables):
                raise errors.DataDependentError(errors.text(
                    "a captured function keeps the handle of a hook of a tensor that it computes "
                    f"({errors.user_line()}), by which the hook could be removed later",
                    cure="remove the hook inside of the function, or do not keep its handle"))


def _reached(hook) -> list:
    """What a function holds: in its closure, in its defaults, in what it is bound to."""
    if isinstance(hook, functools.partial):
        return [*hook.args, *hook.keywords.values(), *_reached(hook.func)]
    cells = getattr(hook, "__closure__", None) or ()
    held = [c.cell_contents for c in cells if c != type(c)()]
    return [*held, *(getattr(hook, "__defaults__", None) or ()), getattr(hook, "__self__", None)]
