"""Modules as functions of their tensors by position; `functional_call` takes them by name.

`make_functional` and its kin are from the time of the separate package `functorch`, where programs
still find them; `functorch.py` has its names.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from .. import errors
from ..core.handle import Tensor
from ..nn.module import Module
from ..nn.stateless import replaced
from ..table.packets import ops

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble",
    "functional_init", "functional_init_with_buffers", "make_functional",
    "make_functional_with_buffers",
]


def _names(listed: Callable) -> dict[str, list[str]]:
    """First name of each tensor -> all of its names, in the order of the module."""
    groups: dict[int, list[str]] = {}
    for name, tensor in listed(remove_duplicate=False):
        groups.setdefault(id(tensor), []).append(name)
    return {names[0]: names for names in groups.values()}


class _Stateless(Module):
    """A module whose tensors come with each call, one tuple per kind."""

    def __init__(self, model: Module, *kinds: dict[str, list[str]]) -> None:
        super().__init__()
        self.stateless_model, self._kinds = model, kinds
        self.param_names = tuple(kinds[0])
        self.names_map = {name: names for kind in kinds for name, names in kind.items()}

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        count, given = len(self._kinds), {}
        for kind, tensors in zip(self._kinds, args):
            values = tuple(tensors)
            if len(values) != len(kind):
                raise errors.ArgumentError(
                    f"the function of {type(self.stateless_model).__name__} takes {len(kind)} "
                    f"tensors here, got {len(values)} ({errors.user_line(2)})")
            given.update({name: value for names, value in zip(kind.values(), values)
                          for name in names})
        with replaced(self.stateless_model, given):
            return self.stateless_model(*args[count:], **kwargs)


class FunctionalModule(_Stateless):
    """What `make_functional` returns: called with parameters and inputs."""


class FunctionalModuleWithBuffers(_Stateless):
    """What `make_functional_with_buffers` returns: called with parameters, buffers and inputs."""

    def __init__(self, model: Module, *kinds: dict[str, list[str]]) -> None:
        super().__init__(model, *kinds)
        self.buffer_names = tuple(kinds[1])


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple:
    """`model` as a function of its parameters, and these: copies, in a tuple."""
    if next(model.buffers(), None) is not None:
        raise errors.TransformError(errors.text(
            f"make_functional(model): `model` has buffers ({errors.user_line()})",
            cure="use make_functional_with_buffers(model)"))
    model, params, _ = _parted(model, disable_autograd_tracking)
    return FunctionalModule(model, _names(model.named_parameters)), params


def make_functional_with_buffers(model: Module, disable_autograd_tracking: bool = False) -> tuple:
    """`model` as a function of its parameters and buffers, and both: copies, in tuples."""
    model, params, buffers = _parted(model, disable_autograd_tracking)
    made = FunctionalModuleWithBuffers(
        model, _names(model.named_parameters), _names(model.named_buffers))
    return made, params, buffers


def _parted(model: Module, untracked: bool) -> tuple[Module, tuple, tuple]:
    model = copy.deepcopy(model)
    params = tuple(model.parameters())
    for p in params if untracked else ():
        p.requires_grad_(False)
    return model, params, tuple(model.buffers())


def combine_state_for_ensemble(models: Sequence[Module]) -> tuple:
    """One function for modules of one kind, their stacked parameters and their stacked buffers."""
    refused = (
        "Expected at least one model, got 0" if not models else
        "Expected all models to have the same training/eval mode"
        if len({model.training for model in models}) > 1 else
        "Expected all models to be of the same class"
        if any(type(model) is not type(models[0]) for model in models) else None)
    if refused:
        raise errors.TransformError(
            f"combine_state_for_ensemble: {refused} ({errors.user_line()})")
    made, params, buffers = zip(*map(make_functional_with_buffers, models))
    return made[0], _stacked(params), _stacked(buffers)


def _stacked(states: Sequence[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    return tuple(ops.stack([t.detach() for t in same], 0) for same in zip(*states))


def _fresh(model_class: type, ensemble_shape: Sequence[int], device: Any) -> Callable:
    if len(ensemble_shape) > 1:
        raise errors.BadValue(
            f"ensemble_shape has {len(ensemble_shape)} elements, at most one is possible "
            f"({errors.user_line(2)})")

    def wrapped(*args: Any, **kwargs: Any) -> tuple:
        if ensemble_shape and ensemble_shape[0] <= 0:
            raise errors.BadValue(
                f"num_models {ensemble_shape[0]} should be > 0 ({errors.user_line(2)})")
        count = ensemble_shape[0] if ensemble_shape else 1
        parts = [make_functional_with_buffers(model_class(*args, **kwargs).to(device))
                 for _ in range(count)]
        made, params, buffers = zip(*parts)
        if not ensemble_shape:
            return made[0], params[0], buffers[0]
        return made[0], _stacked(params), _stacked(buffers)

    return wrapped


def functional_init(model_class: type, ensemble_shape: Sequence[int] = (),
                    device: Any = "cpu") -> Callable:
    """Like `model_class`, but it makes `(weights, function, names)`, for several models at once."""
    make = functional_init_with_buffers(model_class, ensemble_shape, device)

    def wrapped(*args: Any, **kwargs: Any) -> tuple:
        params, buffers, run, names, _ = make(*args, **kwargs)
        if buffers:
            raise errors.TransformError(errors.text(
                f"functional_init: {model_class.__name__} has buffers ({errors.user_line()})",
                cure="use functional_init_with_buffers"))
        return params, lambda weights, data: run(weights, (), data), names

    return wrapped


def functional_init_with_buffers(model_class: type, ensemble_shape: Sequence[int] = (),
                                 device: Any = "cpu") -> Callable:
    """`functional_init` for modules with buffers: two more results, and one more argument."""
    make = _fresh(model_class, ensemble_shape, device)

    def wrapped(*args: Any, **kwargs: Any) -> tuple:
        made, params, buffers = make(*args, **kwargs)
        return (params, buffers, lambda weights, buffers, data: made(weights, buffers, *data),
                made.param_names, made.buffer_names)

    return wrapped
