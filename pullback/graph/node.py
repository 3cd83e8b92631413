"""`Node`: one step of a graph, and the walk over the values in its arguments.

A node knows its inputs and its users, and sits in its graph's doubly linked list. It is changed
through properties and methods only, which keep `users` true. Nodes are created by `Graph`: read
`graph.py` next.
"""

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from .immutable_collections import immutable_dict, immutable_list
from .traits import cost_of, is_pure

if TYPE_CHECKING:
    from .graph import Graph

_ATOMS = frozenset((int, float, bool, str, complex, type(None), type(Ellipsis)))


class Node:
    """One step: `op` says what kind, `target` what is called, `args` and `kwargs` with what.

    op             target                          value
    placeholder    parameter name                  the argument given (args: its default, if any)
    get_attr       dotted path in the module       that attribute
    call_function  a callable                      target(*args, **kwargs)
    call_method    a method name                   getattr(args[0], target)(*args[1:], **kwargs)
    call_module    dotted path in the module       that submodule called
    output         "output"                        args[0] is what the graph returns
    """

    __slots__ = (
        "__dict__",  # what passes put on it; made when that happens
        "graph",  # the graph it belongs to
        "name",  # unique in the graph; the variable in printed code
        "op",
        "target",
        "_args",
        "_kwargs",
        "_inputs",  # ordered set (dict) of the nodes in args and kwargs
        "users",  # ordered set (dict) of the nodes that have this one as input
        "type",  # type annotation, or None
        "meta",  # free-form facts: "val" (example value), "stack_trace", ...
        "_prev",
        "_next",
        "_rank",  # position in the list, once the graph has numbered its nodes
        "_erased",
        "__weakref__",
    )

    def __init__(self, graph: "Graph", name: str, op: str, target: Any, args: tuple, kwargs: dict,
                 type_expr: Any = None) -> None:  # fmt: skip
        if op == "call_function" and not callable(target):
            raise ValueError(f"the target of {op} must be a callable, not {target!r}")
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.type = type_expr
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._inputs = inputs = {}
        self._args = tuple([_freeze(arg, inputs) for arg in args])
        self._kwargs = _freeze(kwargs, inputs) if kwargs else _NO_KWARGS
        self._prev = self._next = self
        self._rank = 0
        self._erased = False
        for node in inputs:
            node.users[self] = None

    # The arguments ------------------------------------------------------------------------------

    @property
    def args(self) -> tuple:
        """Positional arguments; assign a new tuple to change them."""
        return self._args

    @args.setter
    def args(self, new: tuple) -> None:
        self._set_arguments(new, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """Keyword arguments; assign a new dictionary to change them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, new: dict[str, Any]) -> None:
        self._set_arguments(self._args, new)

    @property
    def all_input_nodes(self) -> list["Node"]:
        """Nodes this one reads, in order of appearance, each once."""
        return list(self._inputs)

    def _set_arguments(self, args: tuple, kwargs: dict[str, Any]) -> None:
        inputs: dict[Node, None] = {}
        self._args = tuple([_freeze(arg, inputs) for arg in args])
        self._kwargs = _freeze(kwargs, inputs) if kwargs else _NO_KWARGS
        for node in self._inputs:
            if node not in inputs:
                node.users.pop(self, None)
        for node in inputs:
            node.users[self] = None
        self._inputs = inputs

    def update_arg(self, idx: int, arg: Any) -> None:
        """Replace one positional argument."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Insert a positional argument before the one at `idx`."""
        if not 0 <= idx <= len(self._args):
            raise IndexError(f"insert_arg: index {idx} is not in 0..{len(self._args)}")
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Set one keyword argument."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input: "Node", new_input: "Node") -> None:
        """Read `new_input` wherever this node reads `old_input`."""
        self.replace_inputs({old_input: new_input})

    def replace_inputs(self, new: dict["Node", "Node"]) -> None:
        """Read other nodes in place of some, all at once."""
        if self.graph._owner is not None:
            for old in self._inputs:
                if old in new:
                    self._tell(old, new[old].name, self)

        def swap(node: Node) -> Node:
            return new.get(node, node)

        self._set_arguments(map_arg(self._args, swap), map_arg(self._kwargs, swap))

    def replace_all_uses_with(
        self,
        replace_with: "Node",
        delete_user_cb: Callable[["Node"], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list["Node"]:
        """Make every user read `replace_with` instead of this node; returns those users.

        `delete_user_cb` may refuse single users. `propagate_meta` also hands over this node's
        `meta`, for a replacement that has none of its own.
        """
        if propagate_meta:
            if replace_with.meta:
                raise ValueError(f"propagate_meta: {replace_with.name} has meta of its own")
            replace_with.meta.update(self.meta)
        if replace_with is self:
            return []
        changed = [user for user in self.users if delete_user_cb is None or delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    # The place in the list ----------------------------------------------------------------------

    @property
    def next(self) -> "Node":
        """The following node (the list is a ring: after the last comes the graph's root)."""
        return self._next

    @property
    def prev(self) -> "Node":
        """The preceding node."""
        return self._prev

    def prepend(self, x: "Node") -> None:
        """Move `x` to the place just before this node."""
        if x is not self:
            self.graph._move(x, self._prev if self._prev is not x else x._prev, self)

    def append(self, x: "Node") -> None:
        """Move `x` to the place just after this node."""
        if x is not self:
            self.graph._move(x, self, self._next if self._next is not x else x._next)

    def __lt__(self, other: "Node") -> bool:
        self.graph._rank_nodes()
        return self._rank < other._rank

    def __gt__(self, other: "Node") -> bool:
        return other < self

    def __le__(self, other: "Node") -> bool:
        return not other < self

    def __ge__(self, other: "Node") -> bool:
        return not self < other

    # Facts --------------------------------------------------------------------------------------

    @property
    def stack_trace(self) -> str | None:
        """The user's source lines this node came from, as Python prints a traceback."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """True if the node must stay even when nobody uses its result.

        Random draws count by default: dropping one would shift the random numbers of those after.
        """
        if self.op == "call_function":
            return not is_pure(self.target) or (impure_random and cost_of(self.target) == "random")
        if self.op == "call_method":
            return self.target.endswith("_") and not self.target.endswith("__")
        if self.op == "call_module":
            module = self.graph.owning_module
            return module is not None and getattr(
                fetch_attribute(module, self.target), "_is_impure", False
            )
        return self.op in ("placeholder", "output")

    def normalized_arguments(
        self, root: Any, arg_types: tuple | None = None,
        kwarg_types: dict[str, Any] | None = None, normalize_to_only_use_kwargs: bool = False,
    ) -> Any:
        """The arguments with defaults filled in, as `(args, kwargs)`; None if they fit nothing."""
        from .operator_schemas import normalize_function, normalize_module

        if self.op == "call_function":
            return normalize_function(self.target, self.args, self.kwargs, arg_types, kwarg_types,
                                      normalize_to_only_use_kwargs)
        if self.op == "call_module":
            return normalize_module(root, self.target, self.args, self.kwargs,
                                    normalize_to_only_use_kwargs)
        return None

    def _tell(self, old: "Node", new: str, user: "Node") -> None:
        for hook in getattr(self.graph.owning_module, "_replace_hooks", ()):
            hook(old=old, new=new, user=user)

    def _rename(self, candidate: str) -> None:
        """Take another name, made unique."""
        if candidate != self.name:
            name = self.graph._namespace.create_name(candidate)
            if self.graph._owner is not None:
                for user in self.users:
                    self._tell(self, name, user)
            self.name = name

    def format_node(self) -> str:
        """The node as a line of `str(graph)`."""
        from .printer import format_node  # the printer needs nodes, and only here the other way

        return format_node(self)

    def __deepcopy__(self, memo: dict) -> "Node":
        memo[id(self.graph)] = copy.deepcopy(self.graph, memo)  # which notes all of its nodes
        return memo[id(self)]

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot copy or pickle node {self.name} alone: do so with its graph")

    def __repr__(self) -> str:
        return self.name


_NO_KWARGS = immutable_dict()


def _freeze(value: Any, inputs: dict[Node, None]) -> Any:
    """A copy of an argument whose containers cannot be changed; collects its nodes in `inputs`."""
    kind = type(value)
    if kind is Node:
        inputs[value] = None
        return value
    if kind in _ATOMS:
        return value
    if isinstance(value, tuple):
        items = [_freeze(item, inputs) for item in value]
        return kind(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return immutable_list([_freeze(item, inputs) for item in value])
    if isinstance(value, dict):
        return immutable_dict({key: _freeze(item, inputs) for key, item in value.items()})
    if kind is slice:
        parts = (value.start, value.stop, value.step)
        return slice(*[_freeze(part, inputs) for part in parts])
    return value


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Rebuild an argument with `fn` applied to everything in it that is not a container."""
    kind = type(a)
    if kind is Node or kind in _ATOMS:
        return fn(a)
    if isinstance(a, tuple):
        items = [map_aggregate(item, fn) for item in a]
        return kind(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return [map_aggregate(item, fn) for item in a]
    if isinstance(a, dict):
        return {key: map_aggregate(item, fn) for key, item in a.items()}
    if kind is slice:
        parts = (a.start, a.stop, a.step)
        return slice(*[map_aggregate(part, fn) for part in parts])
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """Rebuild an argument with `fn` applied to every node in it."""
    return map_aggregate(a, lambda item: fn(item) if type(item) is Node else item)


def fetch_attribute(module: Any, path: str) -> Any:
    """The attribute at a dotted path, such as `layers.0.weight`."""
    value = module
    for part in path.split("."):
        value = getattr(value, part)
    return value


def _format_arg(arg: Any) -> str:
    """An argument as `str(graph)` shows it."""
    from .printer import brief

    return brief(arg)
