"""Functions that are told when nodes of a module's graph are made, erased or replaced.

`GraphModule` derives from `Hooked`.  A graph that no module owns is not watched.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

LISTS = ("_create_node_hooks", "_erase_node_hooks", "_replace_hooks", "_deepcopy_hooks")


class Hooked:
    """Lists of such functions, empty until one is registered."""

    _create_node_hooks: list[Callable] = []
    _erase_node_hooks: list[Callable] = []
    _replace_hooks: list[Callable] = []  # called by name: old, new (a name), user
    _deepcopy_hooks: list[Callable] = []

    def _hook_on(self, kind: str, hook: Callable) -> None:
        if not callable(hook):
            raise AssertionError(f"a hook must be callable, not a {type(hook).__name__}")
        self.__dict__[kind] = [*getattr(self, kind), hook]

    def _hook_off(self, kind: str, hook: Callable) -> None:
        held = list(getattr(self, kind))
        if hook not in held:
            raise ValueError(f"{hook} is not among the hooks that were registered: {held}")
        held.remove(hook)
        self.__dict__[kind] = held

    @contextlib.contextmanager
    def _set_replace_hook(self, f: Callable) -> Iterator[None]:
        """A replacement hook for the length of a block."""
        self._hook_on("_replace_hooks", f)
        try:
            yield
        finally:
            self._hook_off("_replace_hooks", f)

    def _hooks(self) -> dict[str, Any]:
        """The lists that are not empty, for a copy."""
        return {kind: list(held) for kind in LISTS if (held := getattr(self, kind))}


def _define(kind: str, method: str) -> None:
    def register(self: Hooked, f: Callable) -> None:
        self._hook_on(kind, f)

    def unregister(self: Hooked, f: Callable) -> None:
        self._hook_off(kind, f)

    setattr(Hooked, f"_register_{method}_hook", register)
    setattr(Hooked, f"_unregister_{method}_hook", unregister)


for _kind, _method in zip(LISTS, ("create_node", "erase_node", "replace_node", "deepcopy")):
    _define(_kind, _method)
