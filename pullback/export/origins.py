"""Where the nodes of a program come from: modules that were running, functions that were called.

`meta["nn_module_stack"]` and `meta["torch_fn"]`, which `unflatten` and `graph/passes/sources.py`
read.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from ..core.handle import Tensor
from ..graph import traceback
from ..memory.views import current
from ..nn.module import Module
from ..overrides import TorchFunctionMode
from ..pytree import tree_flatten


class _Functions(TorchFunctionMode):
    """Notes the outermost function of the library that runs: `("linear_1", "function.linear")`."""

    def __init__(self, notes: dict[str, Any]):
        super().__init__()
        self.notes, self.calls = notes, {}

    def __torch_function__(self, func: Any, types: Any, args: tuple = (),
                           kwargs: dict | None = None) -> Any:
        if traceback.has_preserved_node_meta():  # a program runs, whose nodes know better
            return func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        number = self.calls[name] = self.calls.get(name, 0) + 1
        self.notes["torch_fn"] = f"{name}_{number}", f"{type(func).__name__}.{name}"
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self.notes.pop("torch_fn", None)


@contextlib.contextmanager
def noted(mod: Module, kept: dict[str, list]) -> Iterator[None]:
    """Note on each node which submodules are running, in which of their calls (`name@1`), and
    which function was called.

    `kept` gets the arguments and results of the calls of those that are named in it.
    """
    wanted = set(kept)
    kept.clear()
    stack: dict[str, tuple] = {}
    calls: dict[str, int] = {}
    notes, handles = traceback.get_current_meta(), []

    def enter(path: str) -> Callable:
        def hook(module: Any, args: tuple, kwargs: dict) -> None:
            number = calls[path] = calls.get(path, -1) + 1
            title = path if number == 0 else f"{path}@{number}"
            kind = type(module)
            stack[title] = (title, f"{kind.__module__}.{kind.__qualname__}")
            notes["nn_module_stack"] = dict(stack)
            if path in wanted:
                names = argument_names(module, args, kwargs)
                kept[title] = [names, *as_nodes((args, kwargs))]

        return hook

    def leave(path: str) -> Callable:
        def hook(module: Any, args: tuple, out: Any) -> None:
            running = [title for title in stack if title.partition("@")[0] == path]
            stack.pop(running[-1], None)
            if path in wanted and len(kept[running[-1]]) == 3:
                kept[running[-1]] += as_nodes(out)
            notes["nn_module_stack"] = dict(stack)

        return hook

    for path, module in mod.named_modules():
        handles.append(
            module.register_forward_pre_hook(enter(path), prepend=True, with_kwargs=True))
        handles.append(module.register_forward_hook(leave(path), always_call=True))
    try:
        with _Functions(notes):
            yield
    finally:
        for handle in handles:
            handle.remove()
        notes.pop("nn_module_stack", None)


def as_nodes(tree: Any) -> tuple[list, Any]:
    """The leaves of a tree with nodes in the place of tensors, and its structure."""
    leaves, spec = tree_flatten(tree)
    boxes = [current(v)._payload if isinstance(v, Tensor) else v for v in leaves]
    return [getattr(b, "node", None) if isinstance(v, Tensor) else v
            for b, v in zip(boxes, leaves)], spec


def argument_names(mod: Module, args: tuple, kwargs: dict[str, Any]) -> list[str]:
    """What the module calls its arguments."""
    names: list[str] = []
    try:
        parameters = list(inspect.signature(mod.forward).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    for p in parameters:
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and len(names) < len(args):
            names.append(p.name)
        elif p.kind is p.VAR_POSITIONAL:
            names += [f"{p.name}_{i}" for i in range(len(args) - len(names))]
    names += [f"arg_{i}" for i in range(len(names), len(args))]
    return [*names, *kwargs]
