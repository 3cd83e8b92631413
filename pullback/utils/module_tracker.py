"""`ModuleTracker`: which modules are running, in forward and in backward passes."""

from __future__ import annotations

import weakref
from typing import Any

from ..autograd.graph import register_multi_grad_hook
from ..core.handle import Tensor
from ..nn.module import Module
from ..nn.module_hooks import register_module_forward_hook, register_module_forward_pre_hook
from ..pytree import tree_leaves
from ..tensor.hooks import RemovableHandle

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """A block in which `parents` has the names of the modules that run, and "Global".

    A module that is called by nobody else is known by its class, those inside of it by their
    paths: "Net", "Net.layers.0".  In a backward pass a module runs from when the gradients of its
    results are there until those of its inputs are.
    """

    def __init__(self) -> None:
        self.parents: set[str] = {"Global"}
        self._names: weakref.WeakKeyDictionary[Module, str] = weakref.WeakKeyDictionary()
        self._hooks: list[RemovableHandle] = []
        self.is_bw = False

    def __enter__(self) -> ModuleTracker:
        self._hooks = [register_module_forward_pre_hook(self._before),
                       register_module_forward_hook(self._after, always_call=True)]
        return self

    def __exit__(self, *exc: Any) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        self.parents = {"Global"}

    def name_of(self, module: Module) -> str:
        """The name that a module is known by."""
        if module not in self._names:
            name = type(module).__name__
            for path, inside in module.named_modules():
                self._names.setdefault(inside, f"{name}.{path}" if path else name)
        return self._names[module]

    def _before(self, module: Module, args: Any) -> None:
        name = self.name_of(module)
        self.parents.add(name)
        tracked = _tracked(args)
        if tracked:
            self._hooks.append(register_multi_grad_hook(tracked, lambda grads: self._leave(name)))

    def _after(self, module: Module, args: Any, out: Any) -> None:
        name = self.name_of(module)
        self.parents.discard(name)
        tracked = _tracked(out)
        if tracked:
            self._hooks.append(register_multi_grad_hook(tracked, lambda grads: self._come(name)))

    def _come(self, name: str) -> None:
        self.is_bw = True
        self.parents.add(name)

    def _leave(self, name: str) -> None:
        self.parents.discard(name)
        self.is_bw = len(self.parents) > 1


def _tracked(tree: Any) -> list[Tensor]:
    return [t for t in tree_leaves(tree) if isinstance(t, Tensor) and t.requires_grad]
