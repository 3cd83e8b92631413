"""`fuse_modules`: layers that follow one another become one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ... import nn
from .fuser_method_mappings import fuse_conv_bn, fuse_conv_bn_relu, get_fuser_method


def fuse_known_modules(mod_list: list, is_qat: bool,
                       additional_fuser_method_mapping: dict | None = None) -> list:
    """Layers as one in the place of the first, and identities in those of the others."""
    fuse = get_fuser_method(tuple(map(type, mod_list)), additional_fuser_method_mapping)
    first, last = mod_list[0], mod_list[-1]
    before, behind = list(first._forward_pre_hooks.values()), list(last._forward_hooks.values())
    first._forward_pre_hooks.clear()
    last._forward_hooks.clear()
    fused = fuse(is_qat, *mod_list)
    for hook in before:
        fused.register_forward_pre_hook(hook)
    for hook in behind:
        fused.register_forward_hook(hook)
    rest = [nn.Identity() for _ in mod_list[1:]]
    for identity in rest:
        identity.training = first.training
    return [fused, *rest]


def _fuse(model: nn.Module, names: Any, is_qat: bool, fuser_func: Callable, more: dict) -> None:
    found = fuser_func([model.get_submodule(name) for name in names], is_qat, more)
    for name, new in zip(names, found):
        parent, _, own = name.rpartition(".")
        setattr(model.get_submodule(parent), own, new)


def _fuse_modules(model: nn.Module, modules_to_fuse: Any, is_qat: bool, inplace: bool = False,
                  fuser_func: Callable = fuse_known_modules,
                  fuse_custom_config_dict: dict | None = None) -> nn.Module:
    more = (fuse_custom_config_dict or {}).get("additional_fuser_method_mapping", {})
    model = model if inplace else copy.deepcopy(model)
    one = all(isinstance(name, str) for name in modules_to_fuse)
    for names in [modules_to_fuse] if one else modules_to_fuse:
        _fuse(model, names, is_qat, fuser_func, more)
    return model


def fuse_modules(model: nn.Module, modules_to_fuse: Any, inplace: bool = False,
                 fuser_func: Callable = fuse_known_modules,
                 fuse_custom_config_dict: dict | None = None) -> nn.Module:
    """A model some of whose layers are taken together, named in a list or in lists of them."""
    return _fuse_modules(model, modules_to_fuse, False, inplace, fuser_func,
                         fuse_custom_config_dict)


def fuse_modules_qat(model: nn.Module, modules_to_fuse: Any, inplace: bool = False,
                     fuser_func: Callable = fuse_known_modules,
                     fuse_custom_config_dict: dict | None = None) -> nn.Module:
    """The same for training: norms stay norms."""
    return _fuse_modules(model, modules_to_fuse, True, inplace, fuser_func,
                         fuse_custom_config_dict)


__all__ = ["fuse_conv_bn", "fuse_conv_bn_relu", "fuse_known_modules", "fuse_modules",
           "fuse_modules_qat"]
