"""Hooks: their tables and handles, and saved values that a user packs and unpacks.

A node's `hooks` is None or a dictionary of tables: "tensor" (output number -> hooks of tensors),
"retain" (output number -> tensors that keep their gradient), "pre" and "post" (of the node).  A
node whose saved values are packed is of a class made here, so that all others know nothing of it.
Read next: `../autograd/engine.py`, which calls hooks; `../autograd/graph.py`, what users see.
"""

from __future__ import annotations

import functools
import itertools
import weakref

from .. import errors
from .events import HOOK_HANDLE, HOOKED
from .handle import Tensor, cell_of, make, meta_of
from .state import count, off, state, tied
from .tape import Accumulate, Node, Port, freed, modified, port

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


def tables_of(node: Node) -> dict:
    """The hook tables of a node, made on demand."""
    if node.hooks is None:
        node.hooks = {}
    return node.hooks


def on_tensor(t: Tensor, hook) -> RemovableHandle:
    """`Tensor.register_hook`, for a tensor that requires grad."""
    interp = getattr(t._data, "interp", None)
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
    interp = getattr(t._data, "interp", None)
    heard = None if interp is None else interp.event(HOOKED, t, "accumulated", hook)
    if heard is not None:
        return _shown(interp, add({0: heard}, 0, hook, False))
    meta = meta_of(t)
    tables = {} if meta.post_hooks is None else {0: meta.post_hooks}
    handle = add(tables, 0, hook, True)
    meta.post_hooks = tables[0]
    return handle


def retain(t: Tensor) -> None:
    """Keep the gradient that arrives at the tensor's edge in its `.grad`."""
    edge = t._edge
    node, number = (edge.node, edge.number) if type(edge) is Port else (edge, 0)
    keepers = tables_of(node).setdefault("retain", {}).setdefault(number, [])
    if not any(ref() is t for ref in keepers):
        keepers.append(weakref.ref(t))
    meta_of(t).retains = True


def retain_again(t: Tensor) -> None:
    """Go along when a tensor that retains its gradient got another history by a write.

    The old place need not be told: a gradient is kept only where the tensor's edge leads.
    """
    if t._edge is not None and not isinstance(t._edge, Accumulate):
        retain(t)


# what a sweep calls


def run_accumulated_hooks(leaf: Tensor) -> None:
    """Hooks of a leaf whose `.grad` is complete."""
    for hook in list(leaf._meta.post_hooks.values()):
        if hook(leaf) is not None:
            raise errors.RefusedValue(errors.text(
                "Tensor post accumulate grad hooks should return None.",
                f"hook: {_name(hook)}", "change .grad itself"))


def _name(hook) -> str:
    return getattr(hook, "__name__", type(hook).__name__)


def _checked(hook, new, old):
    """What a hook returned in place of a gradient."""
    if new is None:
        return old
    if not isinstance(new, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(new).__name__}'")
    if old is None:
        raise errors.GradientShapeError("can't replace a None gradient with a non-None value")
    if new._data.shape != old._data.shape:
        raise errors.GradientShapeError(
            errors.text(
                f"hook '{_name(hook)}' has changed the size of value",
                f"it got shape {list(old.shape)} and returned {list(new.shape)}",
                "return a gradient of the same shape, or None to leave it as it is",
            )
        )
    if new._data.dtype != old._data.dtype:
        raise errors.GradientShapeError(
            errors.text(
                f"hook '{_name(hook)}' has changed the type of value (was {old.dtype} got "
                f"{new.dtype})",
                cure="return a gradient of the same dtype, or None to leave it as it is",
            )
        )
    return new


def run_tensor_hooks(node: Node, grads: list) -> None:
    """Hooks of tensors; they may replace gradients. Those that keep a gradient come last."""
    tables = node.hooks
    for number, hooks in tables.get("tensor", {}).items():
        for hook in list(hooks.values()):
            if grads[number] is None:
                break
            grads[number] = _checked(hook, hook(grads[number]), grads[number])
    for number, keepers in tables.get("retain", {}).items():
        if grads[number] is not None:
            for ref in list(keepers):
                t = ref()
                if t is not None and _arrives(t, node, number):
                    _keep(t, grads[number])


def _arrives(t: Tensor, node: Node, number: int) -> bool:
    """Is this where the tensor's gradient goes, still?"""
    edge = t._edge
    return edge.node is node and edge.number == number if type(edge) is Port else edge is node


def _keep(t: Tensor, g: Tensor) -> None:
    meta = meta_of(t)
    if meta.grad is not None:
        meta.grad = meta.grad + g
    else:
        meta.grad = g if g._edge is not None else g.clone()


def run_pre_hooks(node: Node, grads: list) -> None:
    """Hooks of the node before it runs; they may replace the gradients of its outputs."""
    for hook in list(node.hooks.get("pre", {}).values()):
        new = hook(tuple(grads))
        if new is not None:
            grads[:] = _replaced(hook, new, grads)


def run_post_hooks(node: Node, results, grads):
    """Hooks of the node after it ran; they may replace the gradients of its inputs."""
    for hook in list(node.hooks.get("post", {}).values()):
        new = hook(tuple(results), tuple(grads))
        if new is not None:
            results = _replaced(hook, new, results)
    return results


def _replaced(hook, new, old) -> list:
    new = [new] if isinstance(new, Tensor) else list(new)
    if len(new) != len(old):
        raise errors.GradientShapeError(
            f"hook '{_name(hook)}' has returned an incorrect number of values (got {len(new)}, "
            f"but expected {len(old)})"
        )
    return [None if n is None else _checked(hook, n, o) for n, o in zip(new, old)]


# saved values that are packed


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
        return t if t._edge is edge else make(t._data, edge)


def packed(t: Tensor, output: bool = False) -> Packed:
    """A saved tensor packed by the hooks that are in force ."""
    pack, unpack = state.observers.saved_hooks[-1]
    kept = Packed(t, None if output else t._edge, pack, unpack)
    if output and kept.made is t:  # no circle of node, saved value and output
        kept.made = make(t._data)
    return kept


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
            same = [o for o in outs if o._data is value._data]
            value = packed(same[0] if same else value, True)
        values.append(value)
    node.saved = tuple(values)
    node.__class__ = opening(node.__class__)


class Opening:
    """Mixed into the class of a node whose saved values are packed."""

    __slots__ = ()

    def value_of(self, i: int):
        """One saved value, unpacked or checked."""
        (local, kind, _, _), value = self.rule.saves[i], self.saved[i]
        edge = None
        if kind == "out":
            flags = self.rule.diff_outputs
            index = self.rule.outputs.index(local)
            edge = port(self, sum(flags[:index])) if flags[index] else None
        if type(value) is Packed:
            return value.open(edge if kind == "out" else value.edge)
        if type(value) is list and kind == "arg":
            return [v.open(v.edge) if type(v) is Packed else v for v in value]
        if kind in ("arg", "out") and isinstance(value, Tensor):
            cell = value._cell
            if cell is not None and cell.stamps and cell.stamps[-1] > self.stamp:
                raise modified(self, local, value)
            if kind == "out":
                again = make(value._data, edge)
                again._cell = cell
                return again
        return value

    def unpack(self) -> list:
        return [self.value_of(i) for i in range(len(self.saved))]

    def saved_value(self, name: str):
        if self.saved is None:
            raise freed(self)
        for i, (local, _, _, _) in enumerate(self.rule.saves):
            if local == name:
                value = self.value_of(i)
                return tuple(value) if type(value) is list else value
        raise AttributeError(f"{self.name()} saved no '{name}'")


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
        shown = make(value._data)
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


# of modules


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
