"""What layers share: new parameters, and one number for each spatial dim."""

from __future__ import annotations

from collections.abc import Iterable

from ..table.packets import ops
from .parameter import Parameter


def new(shape, device, dtype) -> Parameter:
    """A parameter of a shape, not filled yet."""
    return Parameter(ops.empty(list(shape), device=device, dtype=dtype))


def sizes(value, rank: int) -> tuple:
    """One number for each spatial dim."""
    return tuple(value) if isinstance(value, Iterable) else (value,) * rank


def factory_kwargs(kwargs: dict | None) -> dict:
    """The arguments for functions that make tensors, from those of a layer.

    They are `device`, `dtype` and `memory_format`, given by name or together as `factory_kwargs`.
    """
    if kwargs is None:
        return {}
    names = {"device", "dtype", "memory_format"}
    if unknown := kwargs.keys() - names - {"factory_kwargs"}:
        raise TypeError(f"unexpected kwargs {unknown}")
    found = dict(kwargs.get("factory_kwargs", {}))
    if unknown := found.keys() - names:
        raise TypeError(f"unexpected kwargs {unknown} in factory_kwargs")
    for name in sorted(names & kwargs.keys()):
        if name in found:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        found[name] = kwargs[name]
    return found
