"""Parameters that are wrapper subclasses, as functions of the plain tensors inside of them."""

from __future__ import annotations

import itertools

from ...capture.subclasses import closed, is_wrapper, parts_of, plan_of
from ...core.handle import Tensor
from ..module import Module
from .parametrize import register_parametrization

__all__ = ["UnwrapTensorSubclass", "unwrap_tensor_subclass_parameters"]


class UnwrapTensorSubclass(Module):
    """Puts a wrapper together from the tensors that were inside of it."""

    def forward(self, *tensors: Tensor) -> Tensor:
        return closed(list(tensors), self.plan)

    def right_inverse(self, tensor: Tensor) -> list[Tensor]:
        """The tensors inside, which are trained from now on."""
        self.plan = plan_of(tensor)
        return [t.detach() for t in parts_of(tensor)]


def unwrap_tensor_subclass_parameters(module: Module) -> Module:
    """Train the plain tensors inside of parameters and buffers that are wrappers, in all modules.

    The names stay: `module.weight` is put together from `module.parametrizations.weight` when it is
    asked for.
    """
    own = itertools.chain(module.named_parameters(recurse=False),
                          module.named_buffers(recurse=False))
    for name, tensor in list(own):
        if is_wrapper(tensor):
            register_parametrization(module, name, UnwrapTensorSubclass())
    for _, child in module.named_children():
        unwrap_tensor_subclass_parameters(child)
    return module
