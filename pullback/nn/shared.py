"""What layers share: new parameters, and one number for each spatial dim."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..table.packets import ops
from .module import Module
from .parameter import Parameter


def new(shape, device, dtype) -> Parameter:
    """A parameter of a shape, not filled yet."""
    return Parameter(ops.empty(list(shape), device=device, dtype=dtype))


def sizes(value, rank: int) -> tuple:
    """One number for each spatial dim."""
    return tuple(value) if isinstance(value, Iterable) else (value,) * rank


class Family(Module):
    """A layer of a family; what sets it apart is said with the class: `Conv2d(_Conv, rank=2)`.

    `function` is what the layer calls, `rank` the number of its spatial dims, `shown` names the
    arguments in its printed form. What a class does not say it has from its base.
    """

    function: Callable
    rank: int
    shown: tuple[str, ...] | None = ()

    def __init_subclass__(cls, *, function: Callable | None = None, rank: int | None = None,
                          shown: tuple[str, ...] | None = None, **kwargs) -> None:
        super().__init_subclass__(**kwargs)
        if function is not None:
            cls.function = staticmethod(function)
        if rank is not None:
            cls.rank = rank
        if shown is not None:
            cls.shown = shown

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)}" for name in self.shown)


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
