"""`weight_norm` by a hook: a weight as a direction and a length, computed before each call.

`nn/utils/parametrizations.py` has the newer form.
"""

from __future__ import annotations

import warnings

from ...core.handle import Tensor
from ...table.packets import ops
from ..module import Module
from ..parameter import Parameter


def hooks_of(module: Module, kind: type, name: str) -> list:
    """(key, hook) of the hooks of a kind that make one tensor of a module."""
    return [(key, hook) for key, hook in module._forward_pre_hooks.items()
            if isinstance(hook, kind) and hook.name == name]


class WeightNorm:
    """The hook: weight = g * v / norm of v."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """The weight from its length and direction."""
        return ops._weight_norm(getattr(module, f"{self.name}_v"),
                                getattr(module, f"{self.name}_g"), self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Take a weight apart and compute it before each call from now on."""
        warnings.warn("`torch.nn.utils.weight_norm` is deprecated in favor of "
                      "`torch.nn.utils.parametrizations.weight_norm`.", FutureWarning,
                      stacklevel=3)
        if hooks_of(module, WeightNorm, name):
            raise RuntimeError("Cannot register two weight_norm hooks on the same parameter "
                               f"{name}")
        hook, weight = WeightNorm(name, dim), getattr(module, name)
        length = Parameter(ops.norm_except_dim(weight, 2, hook.dim).data)
        del module._parameters[name]
        module.register_parameter(f"{name}_g", length)
        module.register_parameter(f"{name}_v", Parameter(weight.data))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[f"{self.name}_g"], module._parameters[f"{self.name}_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Module, inputs) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Module, name: str = "weight", dim: int = 0) -> Module:
    """Replace a weight by its length and its direction; `dim=None`: one length for all."""
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Undo `weight_norm`."""
    for key, hook in hooks_of(module, WeightNorm, name):
        hook.remove(module)
        del module._forward_pre_hooks[key]
        return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
