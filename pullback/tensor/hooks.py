"""Hooks of tensors, nodes and modules: their tables and handles.

A node's `hooks` is None or a dictionary of tables: "tensor" (output number -> hooks of tensors),
"retain" (output number -> tensors that keep their gradient), "pre" and "post" (of the node).
Read next: `../autograd/run_hooks.py`, which calls them; `../autograd/graph.py`, what users see.
"""

from __future__ import annotations

import itertools
import weakref

from ..core.events import HOOK_HANDLE, HOOKED
from ..core.handle import Tensor, meta_of
from ..core.tape import Accumulate, Node, Port, tables_of
from ..threads.state import count, state

of_all_modules: list[dict] = []  # tables of hooks of every module (`../nn/module_hooks.py`)
of_all_steps: list[dict] = []  # and of every optimizer (`../optim/optimizer.py`)


class Table(dict):
    """Hooks in the order of their registration."""

    __slots__ = ("__weakref__", "at_leaf")
    at_leaf: bool


class RemovableHandle:
    """Removes a hook: by `remove()`, or at the end of a `with` block."""

    _numbers = itertools.count()

    def __init__(self, hooks_dict: dict, *, extra_dict=None):
        self.id = next(RemovableHandle._numbers)
        self._table = weakref.ref(hooks_dict)
        self._extra = [
            weakref.ref(d)
            for d in (extra_dict if isinstance(extra_dict, list) else [extra_dict])
            if d is not None
        ]

    def remove(self) -> None:
        """Take the hook away; a second time does nothing."""
        table = self._table()
        if table is not None and table.pop(self.id, None) is not None:
            if getattr(table, "at_leaf", False):
                count("LEAFHOOKS", -1)
        for ref in self._extra:
            extra = ref()
            if extra is not None:
                extra.pop(self.id, None)

    def __getstate__(self) -> tuple:  # copies go with the copies of the tables
        return self.id, self._table(), [ref() for ref in self._extra]

    def __setstate__(self, saved: tuple) -> None:
        self.id, table, extra = saved
        self._table = weakref.ref(Table() if table is None else table)
        self._extra = [weakref.ref(d) for d in extra if d is not None]
        # ids of another process stay unique here
        free = max(next(RemovableHandle._numbers), self.id + 1)
        RemovableHandle._numbers = itertools.count(free)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc) -> None:
        self.remove()


def add(tables: dict, key, hook, at_leaf: bool) -> RemovableHandle:
    """Put a hook into the table `tables[key]`.

    Hooks of leaves are counted: where there are any, a sweep finds out when a leaf is complete.
    """
    table = tables.get(key)
    if table is None:
        table = tables[key] = Table()
        table.at_leaf = at_leaf
    handle = RemovableHandle(table)
    table[handle.id] = hook
    if at_leaf:
        count("LEAFHOOKS", 1)
    return handle


def on_tensor(t: Tensor, hook) -> RemovableHandle:
    """`Tensor.register_hook`, for a tensor that requires grad."""
    interp = getattr(t._payload, "interp", None)
    heard = None if interp is None else interp.event(HOOKED, t, "tensor", hook)
    if isinstance(heard, Table):
        return _shown(interp, add({0: heard}, 0, hook, False))
    edge, hook = t._edge, hook if heard is None else heard
    node, number = (edge.node, edge.number) if type(edge) is Port else (edge, 0)
    by_output = tables_of(node).setdefault("tensor", {})
    return _shown(interp, add(by_output, number, hook, isinstance(node, Accumulate)))


def _shown(interp, handle: RemovableHandle) -> RemovableHandle:
    """Tell the level of a tensor of a handle that its function may keep."""
    if interp is not None:
        interp.event(HOOK_HANDLE, handle)
    return handle


def on_node(node: Node, kind: str, hook) -> RemovableHandle:
    """`Node.register_hook` ("post") and `Node.register_prehook` ("pre")."""
    if 0 < node.level < len(state.stack):
        heard = state.stack[node.level].event(HOOKED, node, kind, hook)
        hook = hook if heard is None else heard
    return add(tables_of(node), kind, hook, isinstance(node, Accumulate))


def on_accumulated(t: Tensor, hook) -> RemovableHandle:
    """`Tensor.register_post_accumulate_grad_hook`."""
    interp = getattr(t._payload, "interp", None)
    heard = None if interp is None else interp.event(HOOKED, t, "accumulated", hook)
    if heard is not None:
        return _shown(interp, add({0: heard}, 0, hook, False))
    meta = meta_of(t)
    tables = {} if meta.post_hooks is None else {0: meta.post_hooks}
    handle = add(tables, 0, hook, True)
    meta.post_hooks = tables[0]
    return handle


def hooks_as_now(module: object):
    """A function that gives a module and its submodules the hooks back that they have now."""
    kept = [(table, table.copy()) for inner in getattr(module, "modules", tuple)()
            for name, table in vars(inner).items()
            if name.startswith("_forward") and isinstance(table, dict)]

    def put_back() -> None:
        for table, before in kept:
            table.clear()
            table.update(before)

    return put_back
