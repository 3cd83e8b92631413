"""Parameters as one long vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from ...core.handle import Tensor
from ...table.packets import ops


def _on_one_device(parameters: Iterable[Tensor]) -> list[Tensor]:
    parameters = list(parameters)
    if len({param.device for param in parameters}) > 1:
        raise TypeError("Found two parameters on different devices, this is currently not "
                        "supported.")
    return parameters


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of the parameters, one after the other."""
    return ops.cat([param.view([-1]) for param in _on_one_device(parameters)])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Make parameters views of the pieces of a vector."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    start = 0
    for param in _on_one_device(parameters):
        param.data = vec[start:start + param.numel()].view(param.shape).data
        start += param.numel()
