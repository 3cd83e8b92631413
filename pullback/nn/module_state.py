"""Saving and loading the state of modules: the part of `Module` that is about `state_dict`.

A state dict is flat: dotted names to tensors, and in its `_metadata` the version of every module.
Each module writes and reads only its own entries, so that a layer can say what its state is
(`_save_to_state_dict`, `_load_from_state_dict`), and old formats can be translated on the way.
"""

from __future__ import annotations

import itertools
import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping

from ..autograd.grad_mode import no_grad
from ..core.handle import Tensor
from ..tensor.hooks import RemovableHandle
from .module_hooks import WithModule, _add
from .parameter import Parameter, is_lazy

_EXTRA = "_extra_state"  # the key under which a module's extra state is kept


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What did not fit when a state was loaded."""

    __slots__ = ()

    def __repr__(self) -> str:
        return super().__repr__() if any(self) else "<All keys matched successfully>"

    __str__ = __repr__


class Stateful:
    """The part of `Module` that is about saving and loading."""

    _version: int = 1
    _parameters: dict
    _buffers: dict
    _non_persistent_buffers_set: set
    _modules: dict
    _state_dict_hooks: OrderedDict
    _state_dict_pre_hooks: OrderedDict
    _load_state_dict_pre_hooks: OrderedDict
    _load_state_dict_post_hooks: OrderedDict

    # hooks

    def _register_state_dict_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, metadata)`; it may return another dictionary."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError("Cannot register the same function as the state dict post hook "
                               "that was previously registered via register_state_dict_post_hook")
        return _add(self._state_dict_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, metadata)` when the state has been collected."""
        hook._from_public_api = True  # such hooks must not return anything
        return _add(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before the state is collected."""
        return _add(self._state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook: Callable,
                                           with_module: bool = False) -> RemovableHandle:
        """Call `hook` with the arguments of `_load_from_state_dict`, after the module if asked."""
        hook = WithModule(hook, self) if with_module else hook
        return _add(self._load_state_dict_pre_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)`
        before the module's own entries are read.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after loading; it may change the two lists."""
        return _add(self._load_state_dict_post_hooks, hook)

    # saving

    def get_extra_state(self):
        """What belongs to the state besides tensors; a class that defines this has it saved."""
        raise RuntimeError(f"{type(self).__name__} has no extra state: get_extra_state() is for "
                           "classes that define it")

    def set_extra_state(self, state) -> None:
        """Take back what `get_extra_state` gave."""
        raise RuntimeError(f"{type(self).__name__} has no extra state: set_extra_state() is for "
                           "classes that define it")

    def _own_state(self) -> dict[str, Tensor]:
        """Parameters and persistent buffers of this module alone."""
        hidden = self._non_persistent_buffers_set
        buffers = ((name, buffer) for name, buffer in self._buffers.items() if name not in hidden)
        return {name: tensor for name, tensor in itertools.chain(self._parameters.items(), buffers)
                if tensor is not None}

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        """Write this module's own entries."""
        for name, tensor in self._own_state().items():
            destination[prefix + name] = (
                tensor if keep_vars or is_lazy(tensor) else tensor.detach())
        if type(self).get_extra_state is not Stateful.get_extra_state:
            destination[prefix + _EXTRA] = self.get_extra_state()

    def state_dict(self, *args, destination: dict | None = None, prefix: str = "",
                   keep_vars: bool = False) -> dict:
        """Parameters and persistent buffers of all modules by their dotted names."""
        if args:
            warnings.warn("state_dict(): positional arguments are deprecated, use destination=, "
                          "prefix= and keep_vars=", FutureWarning, stacklevel=2)
            given = dict(zip(("destination", "prefix", "keep_vars"), args))
            destination = given.get("destination") if destination is None else destination
            prefix = prefix or given.get("prefix", "")
            keep_vars = keep_vars or given.get("keep_vars", False)
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.",
                                  keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            new = hook(self, destination, prefix, metadata)
            if new is not None and getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            destination = destination if new is None else new
        return destination

    # loading

    def load_state_dict(self, state_dict: Mapping, strict: bool = True,
                        assign: bool = False) -> _IncompatibleKeys:
        """Copy parameters and buffers from a dictionary made by `state_dict`.

        With `assign` the tensors themselves take the places of those of the module.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)  # hooks may change it
        if metadata is not None:
            state_dict._metadata = metadata
        keys = _IncompatibleKeys([], [])
        errors: list[str] = []

        def load(module: Stateful, entries: dict, prefix: str) -> None:
            local = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                local["assign_to_params_buffers"] = assign
            module._load_from_state_dict(entries, prefix, local, True, *keys, errors)
            for name, child in module._modules.items():
                if child is not None:
                    below = f"{prefix}{name}."
                    load(child, {k: v for k, v in entries.items() if k.startswith(below)}, below)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, keys) is not None:
                    raise AssertionError("Hooks registered with "
                                         "``register_load_state_dict_post_hook`` are not expected "
                                         "to return new values; change the lists in place.")

        load(self, state_dict, "")
        if strict:
            for what, names in (("Unexpected", keys.unexpected_keys),
                                ("Missing", keys.missing_keys)):
                if names:
                    listed = ", ".join(f'"{name}"' for name in names)
                    errors.insert(0, f"{what} key(s) in state_dict: {listed}. ")
        if errors:
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t"
                               + "\n\t".join(errors))
        return keys

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict,
                              strict: bool, missing_keys: list, unexpected_keys: list,
                              error_msgs: list) -> None:
        """Read this module's own entries, and note what did not fit."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                 error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        own = self._own_state()
        for name, tensor in own.items():
            key = prefix + name
            if key in state_dict:
                problem = self._load_entry(name, tensor, key, state_dict[key], assign)
                if problem:
                    error_msgs.append(problem)
            elif strict:
                missing_keys.append(key)
        extra = prefix + _EXTRA
        if type(self).set_extra_state is not Stateful.set_extra_state:
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if not strict:
            return
        for key in state_dict:
            if key.startswith(prefix) and key != extra:
                name, dot, _ = key[len(prefix):].partition(".")
                if name not in (self._modules if dot else own):
                    unexpected_keys.append(key)

    def _load_entry(self, name: str, tensor: Tensor, key: str, value, assign: bool) -> str | None:
        """Copy or put one value in the place of a tensor; what is wrong with it, if anything."""
        if not isinstance(value, Tensor):
            return (f'While copying the parameter named "{key}", expected torch.Tensor or '
                    f"Tensor-like object from checkpoint but received {type(value)}")
        if not is_lazy(tensor):
            if tensor.ndim == 0 and tuple(value.shape) == (1,):
                value = value[0]  # very old checkpoints
            if value.shape != tensor.shape:
                return (f"size mismatch for {key}: copying a param with shape {value.shape} from "
                        f"checkpoint, the shape in current model is {tensor.shape}.")
            if tensor.is_meta and not value.is_meta and not assign:
                warnings.warn(f"for {key}: copying from a non-meta parameter in the checkpoint to "
                              "a meta parameter in the current model, which is a no-op. (Did you "
                              "mean to pass `assign=True`?)", stacklevel=5)
                return None
        try:
            with no_grad():
                if not assign:
                    tensor.copy_(value)
                    return None
                if isinstance(tensor, Parameter):
                    if isinstance(value, Parameter):
                        value.requires_grad_(tensor.requires_grad)
                    else:
                        value = Parameter(value, tensor.requires_grad)
                setattr(self, name, value)
        except Exception as error:
            return (f'While copying the parameter named "{key}", whose dimensions in the model are '
                    f"{tensor.size()} and whose dimensions in the checkpoint are {value.size()}, "
                    f"an exception occurred : {error.args}.")
        return None
