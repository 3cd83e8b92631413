"""Lists and dictionaries that refuse changes: the containers inside `Node.args` and `Node.kwargs`.

A node must know when its inputs change, or `users` would go stale; so its containers can be
replaced (`node.args = ...`) but never edited in place. They print, compare and pickle as the
built-in ones and are hashable when their elements are. Read `node.py` next.
"""

from typing import Any, NoReturn

from ..pytree import register_pytree_node


class Immutable(TypeError, NotImplementedError):
    """A container of a node's arguments was to be changed."""


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise Immutable(
        f"'{type(self).__name__}' object does not support mutation: it belongs to the arguments "
        "of a graph node.\n  Fix: make a changed copy and assign it: `node.args = new_args`."
    )


def _forbid(cls: type, *names: str) -> None:
    for name in names:
        setattr(cls, name, _refuse)


class immutable_list(list):
    """A list that cannot be changed; hashable if its elements are."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> tuple:
        return immutable_list, (list(self),)


class immutable_dict(dict):
    """A dictionary that cannot be changed; hashable if its values are."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple:
        return immutable_dict, (dict(self),)


_forbid(
    immutable_list,
    *("__delitem__", "__iadd__", "__imul__", "__setitem__", "append", "clear", "extend"),
    *("insert", "pop", "remove", "reverse", "sort"),
)
_forbid(
    immutable_dict,
    *("__delitem__", "__ior__", "__setitem__", "clear", "pop", "popitem", "setdefault", "update"),
)
register_pytree_node(
    immutable_list, lambda items: (list(items), None), lambda items, _: immutable_list(items))
register_pytree_node(
    immutable_dict, lambda d: (list(d.values()), list(d)),
    lambda values, keys: immutable_dict(zip(keys, values)))
