"""Saved values that a user packs and unpacks: by hooks in force, or by those of one value.

A node whose saved values are packed is of a class made here, so that all others know nothing of it.
Read next: `graph.py`, what users see.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import errors
from ..core.handle import Tensor, cell_of, make
from ..core.tape import Node, Port
from ..threads.blocks import tied
from ..threads.state import count, off, state


class _silent:
    """Nothing is recorded on the innermost level meanwhile."""

    def __enter__(self):
        self.before, state.record[-1] = state.record[-1], False
        off.add(self)

    @tied
    def __exit__(self, *exc):
        state.record[-1] = self.before
        off.discard(self)

    def lost(self) -> None:
        off.discard(self)


class Packed:
    """What a pack hook made of a saved tensor."""

    __slots__ = ("edge", "made", "opener")

    def __init__(self, t: Tensor, edge, pack, unpack):
        before = t._cell.version if t._cell is not None else 0
        with _silent():
            made = pack(t)
        if t._cell is not None and t._cell.version != before:
            raise errors.SavedValueModified(
                errors.text(
                    "A saved tensor pack hook is modifying its input in place "
                    f"({errors.describe_place(t._cell.where)})",
                    f"tensor: {t.dtype.name}{list(t.shape)}",
                    "clone() the tensor in the pack hook before writing",
                )
            )
        self.made, self.opener, self.edge = made, unpack, edge

    def open(self, edge) -> Tensor:
        """The tensor again, with the history that it had."""
        before = state.observers.saved_hooks
        try:
            t = self.opener(self.made)
        finally:  # a hook may have entered contexts that it cannot leave
            count("ACTIVE", len(before) - len(state.observers.saved_hooks))
            if state.observers.saved_hooks is not before:
                state.observers.saved_hooks = before
        if not isinstance(t, Tensor):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{type(t).__name__}"
            )
        return t if t._edge is edge else make(t._payload, edge)


def packed(t: Tensor, output: bool = False) -> Packed:
    """A saved tensor packed by the hooks that are in force ."""
    pack, unpack = state.observers.saved_hooks[-1]
    kept = Packed(t, None if output else t._edge, pack, unpack)
    if output and kept.made is t:  # no circle of node, saved value and output
        kept.made = make(t._payload)
    return kept


class Hooks(NamedTuple):
    """A pair of functions that pack and unpack saved tensors."""

    pack: Callable
    unpack: Callable

    def pack_saved(self, out: Any) -> None:
        """Pack what the node of an operator's result has saved."""
        pack_saved(out)


def pack_saved(out) -> None:
    """Pack what the node of an operator's result has saved, by the hooks that are in force."""
    outs = [o for o in (out if isinstance(out, (list, tuple)) else (out,)) if isinstance(o, Tensor)]
    for edge in {id(o._edge): o._edge for o in outs if o._edge is not None}.values():
        node = edge.node if type(edge) is Port else edge
        if node.saved and not isinstance(node, Opening) and getattr(node.rule, "saves", ()):
            pack_node(node, outs)


def pack_node(node: Node, outs: list[Tensor]) -> None:
    """Pack what a node has saved; `outs` are the results of its operator."""
    values = []
    for (_, kind, _, _), value in zip(node.rule.saves, node.saved):
        if kind == "arg" and isinstance(value, Tensor):
            value = packed(value)
        elif kind == "arg" and type(value) is list:
            value = [packed(v) if isinstance(v, Tensor) else v for v in value]
        elif kind == "out" and isinstance(value, Tensor):
            same = [o for o in outs if o._payload is value._payload]
            value = packed(same[0] if same else value, True)
        values.append(value)
    node.saved = tuple(values)
    node.__class__ = opening(node.__class__)


class Opening:
    """Mixed into the class of a node whose saved values are packed."""

    __slots__ = ()

    def value_of(self, i: int):
        value = self.saved[i]
        if type(value) is Packed:
            local, kind, _, _ = self.rule.saves[i]
            return value.open(self.edge_of(local) if kind == "out" else value.edge)
        found = super().value_of(i)  # checked
        if type(value) is list:
            return [v.open(v.edge) if type(v) is Packed else v for v in value]
        return found


@functools.cache
def opening(kind: type[Node]) -> type[Node]:
    """The class of nodes like these with packed values."""
    body: dict = {"__slots__": ()}
    if any(c.generated for c in kind.__mro__ if issubclass(c, Node)):
        body["apply"] = Node.apply  # that of the class knows how values are saved
    return type(kind.__name__, (Opening, kind), body)


class SavedTensor:
    """A saved value as it is kept: `node._raw_saved_self`."""

    def __init__(self, node: Node | None = None, index: int = 0):
        if node is None:
            raise errors.RefusedValue(errors.text(
                "Trying to create a SavedTensor object from Python is forbidden "
                f"({errors.user_line()})", cure="ask a node for one: node._raw_saved_self"))
        self._node, self._index = node, index

    def _held(self):
        """All that the node keeps, None if it was freed."""
        return self._node.saved

    def _keep(self, kept: Packed) -> None:
        node, i = self._node, self._index
        node.saved = (*node.saved[:i], kept, *node.saved[i + 1 :])
        if not isinstance(node, Opening):
            node.__class__ = opening(node.__class__)

    def register_hooks(self, pack_hook, unpack_hook) -> None:
        """Pack this saved value now, by hooks of its own."""
        if not callable(pack_hook) or not callable(unpack_hook):
            raise errors.ArgumentError(
                "register_hooks(): incompatible function arguments: both hooks must be callable "
                f"({errors.user_line()})")
        node, held = self._node, self._held()
        if held is None:
            raise errors.GraphFreed(
                errors.text(
                    "Calling register_hooks on a saved tensor after it has been freed: "
                    f"{node.name()} ({errors.describe_place(node.where)})",
                    cure="Specify retain_graph=True in the first backward() or grad()",
                )
            )
        value = held[self._index]
        if value is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor with value None is forbidden"
            )
        if type(value) is Packed:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. "
                "Hint: only one pair of hooks is allowed at a time."
            )
        shown = make(value._payload)
        shown._cell = cell_of(value)
        self._keep(Packed(shown, value._edge, pack_hook, unpack_hook))

    def __repr__(self) -> str:
        return f"<SavedTensor of {self._node.name()}>"


class _Item(SavedTensor):
    """One of a list of saved values."""

    def __init__(self, node: Node, index: int, place: int):
        super().__init__(node, index)
        self._place = place

    def _held(self):
        held = self._node.saved
        return None if held is None else {self._index: held[self._index][self._place]}

    def _keep(self, kept: Packed) -> None:
        items = list(self._node.saved[self._index])
        items[self._place] = kept
        super()._keep(items)


def raw_saved(node: Node, name: str) -> SavedTensor | tuple[SavedTensor, ...]:
    """The raw form of a saved tensor (or several), by its name in the formulas."""
    for i, (local, kind, _, _) in enumerate(node.rule.saves):
        if local == name and kind in ("arg", "out"):
            if node.saved is not None and type(node.saved[i]) is list:
                return tuple([_Item(node, i, k) for k in range(len(node.saved[i]))])
            return SavedTensor(node, i)
    raise AttributeError(f"{node.name()} saved no tensor '{name}'")
