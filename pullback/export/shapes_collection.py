"""Which sizes vary, said of tensors instead of places (`ShapesCollection`), or shown by examples
(`AdditionalInputs`).  Both become the nests that `dynamic_shapes.py` reads.
"""

from __future__ import annotations

import inspect
from typing import Any

from .. import errors
from ..core.handle import Tensor
from ..nn.module import Module
from ..pytree import tree_flatten, tree_map, tree_unflatten
from .dynamic_shapes import Dim


def combined(mod: Any, args: tuple, kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """The arguments by the names of the parameters that take them."""
    mod = mod.module() if hasattr(mod, "graph_signature") else mod
    function = mod.forward if isinstance(mod, Module) else mod
    return dict(inspect.signature(function).bind(*args, **(kwargs or {})).arguments)


class ShapesCollection:
    """Dynamic shapes of tensors: `shapes[x] = {0: Dim("n")}` or `shapes[x][0] = Dim("n")`."""

    def __init__(self) -> None:
        self._shapes: dict[int, tuple[Tensor, Any]] = {}

    def __setitem__(self, t: Any, shape: Any) -> None:
        if not isinstance(t, Tensor):
            raise AssertionError(f"Cannot assign shape to non-tensor type {type(t)}")
        held = self._shapes.setdefault(id(t), (t, shape))[1]
        if held != shape:
            raise AssertionError(
                f"Shapes assigned to input do not match: expected {held}, got {shape}")

    def __getitem__(self, t: Tensor) -> Any:
        return self._shapes.setdefault(id(t), (t, {}))[1]

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(self, m: Any, args: tuple, kwargs: dict[str, Any] | None = None) -> dict:
        """The shapes in the structure of the arguments."""
        found: set[int] = set()

        def shape_of(value: Any) -> Any:
            if id(value) not in self._shapes:
                return None
            found.add(id(value))
            return self._shapes[id(value)][1]

        out = tree_map(shape_of, combined(m, args, kwargs))
        if found != set(self._shapes):
            raise ValueError(errors.text(
                f"Some tensors that were assigned shapes were not found in args "
                f"({errors.user_line(2)})",
                cure="pass the very tensors, in containers that pytree knows"))
        return out


class AdditionalInputs:
    """Further arguments of a program: sizes that differ among them vary."""

    def __init__(self) -> None:
        self._examples: list[tuple[tuple, dict[str, Any] | None]] = []

    def add(self, args: tuple, kwargs: dict[str, Any] | None = None) -> None:
        """Add the arguments of one call."""
        if type(args) is not tuple:
            raise AssertionError(f"Representative args {args} must be a tuple")
        if kwargs is not None and type(kwargs) is not dict:
            raise AssertionError(f"Representative kwargs {kwargs} must be None or a dict")
        self._examples.append((args, kwargs))

    def dynamic_shapes(self, m: Any, args: tuple, kwargs: dict[str, Any] | None = None) -> dict:
        """What varies, in the structure of the arguments."""
        calls = [tree_flatten(combined(m, *call)) for call in ((args, kwargs), *self._examples)]
        leaves, spec = calls[0]
        others = [found for found, _ in calls[1:]]
        dims = [self._dims(*values) for values in zip(leaves, *others, strict=True)]
        return tree_unflatten(dims, spec)

    def _dims(self, value: Any, *others: Any) -> Any:
        if any(type(value) is not type(o) for o in others):
            raise ValueError("The following inputs were found to have differing types, so they "
                             f"cannot be marked as dynamic: {(value, *others)}.")
        if not isinstance(value, Tensor):
            if any(o != value for o in others):
                raise ValueError("The following inputs were found to have differing values, but "
                                 f"they cannot be marked as dynamic: {(value, *others)}.")
            return None
        if any(o.ndim != value.ndim for o in others):
            raise ValueError(f"an argument has shape {list(value.shape)}, and "
                             f"{[list(o.shape) for o in others]} elsewhere: the number of dims "
                             "cannot vary")
        return tuple([None if all(o.shape[d] == n for o in others) else Dim.DYNAMIC
                      for d, n in enumerate(value.shape)])

    def verify(self, ep: Any) -> None:
        """Refuse a program that is not for all of them."""
        module = ep.module()
        for args, kwargs in self._examples:
            module.check(*args, **(kwargs or {}))
