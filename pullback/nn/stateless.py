"""A module as a function of its parameters: `func.functional_call`, `func.stack_module_state`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from ..core.handle import Tensor
from ..table.packets import ops
from .module import Module


def _owner(module: Module, path: str) -> tuple[Module, str]:
    """The module that holds a tensor with a dotted name, and its last part."""
    where, _, name = path.rpartition(".")
    return module.get_submodule(where), name


def _tensors(module: Module) -> dict[str, Tensor]:
    return {**dict(module.named_parameters(remove_duplicate=False)),
            **dict(module.named_buffers(remove_duplicate=False))}


def _with_tied(module: Module, given: dict[str, Tensor]) -> dict[str, Tensor]:
    """The given tensors, also under the other names of those that the module shares."""
    groups: dict[int, list[str]] = {}
    for name, tensor in _tensors(module).items():
        groups.setdefault(id(tensor), []).append(name)
    full = dict(given)
    for names in groups.values():
        values = [given[name] for name in names if name in given]
        if len(names) > 1 and values:
            if any(value is not values[0] for value in values):
                raise ValueError(f"functional_call got multiple values for keys {sorted(names)}, "
                                 "which are tied. Consider using tie_weights=False")
            full.update(dict.fromkeys(names, values[0]))
    return full


def _put(module: Module, name: str, value):
    """Put a tensor in the place of another, past all checks; gives the other."""
    for table in (module._parameters, module._buffers):
        if name in table:
            old, table[name] = table[name], value
            return old
    old = module.__dict__.pop(name, None)
    if value is not None:  # an attribute that is no parameter, or one that was not there
        module.__dict__[name] = value
    return old


@contextlib.contextmanager
def replaced(module: Module, tensors: dict[str, Tensor], tie_weights: bool = False,
             strict: bool = False) -> Iterator[None]:
    """While this is open the module has other parameters and buffers.

    What the module puts into their places in between is afterwards in `tensors`.
    """
    full = _with_tied(module, tensors) if tie_weights else dict(tensors)
    if strict:
        own = _tensors(module)
        problems = [f"{word} key(s): {', '.join(map(repr, keys))}." for word, keys in (
            ("Unexpected", [k for k in full if k not in own]),
            ("Missing", [k for k in own if k not in full])) if keys]
        if problems:
            raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t"
                               + "\n\t".join(problems))
    before: list[tuple[str, Module, str, Tensor]] = []
    try:
        for path, value in full.items():
            if not isinstance(value, Tensor):
                raise TypeError(f"{value!r} is not an instance of torch.Tensor")
            place = _owner(module, path)
            before.append((path, *place, _put(*place, value)))
        yield
    finally:
        for path, owner, name, old in reversed(before):
            last = _put(owner, name, old)
            if path in tensors:
                tensors[path] = last


def functional_call(module: Module, parameter_and_buffer_dicts, args=None,
                    kwargs: dict | None = None, *, tie_weights: bool = True,
                    strict: bool = False) -> Any:
    """Call a module with the parameters and buffers of a dictionary (or several) for its own."""
    given = parameter_and_buffer_dicts
    if isinstance(given, Sequence):
        if not all(isinstance(part, dict) for part in given):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be "
                             "dictionaries")
        names = [name for part in given for name in part]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of "
                             "functional call is ambiguous")
        given = {name: value for part in given for name, value in part.items()}
    elif not isinstance(given, dict):
        raise ValueError("Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of "
                         f"dicts, but got {type(given)}")
    return _call(module, given, args, kwargs, tie_weights, strict)


def _call(module, given, args, kwargs, tie_weights, strict):
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with replaced(module, given, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Parameters and buffers of modules of one kind, stacked, for `vmap` over the modules."""
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same "
                           "training/eval mode.")
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(named: list[dict]) -> dict[str, Tensor]:
        return {name: _stacked([part[name] for part in named]) for name in named[0]}

    return (stacked([dict(model.named_parameters()) for model in models]),
            stacked([dict(model.named_buffers()) for model in models]))


def _stacked(tensors: list[Tensor]) -> Tensor:
    """A new leaf if the tensors are leaves that are trained."""
    if len({tensor.requires_grad for tensor in tensors}) > 1:
        raise RuntimeError("Expected parameters of one name to have the same .requires_grad, got "
                           f"{[tensor.requires_grad for tensor in tensors]}")
    if all(tensor.is_leaf for tensor in tensors):
        joined = ops.stack([tensor.detach() for tensor in tensors])
        return joined.requires_grad_(tensors[0].requires_grad)
    return ops.stack(tensors)


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Take the running statistics away from all batch normalisations of a module.

    They are written in forward passes, which `vmap` cannot do for each example.
    """
    from .normalisation import _BatchNorm

    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
