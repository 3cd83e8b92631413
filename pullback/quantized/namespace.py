"""`ops.quantized`: the functions of `operators.py` and its companions, as PyTorch calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..threads.state import fast


class Operator:
    """A function of `ops.quantized`; `.default` is itself."""

    def __init__(self, name: str, function: Callable):
        self.__name__ = self.name = name
        self.function = function
        self.__doc__ = function.__doc__

    @property
    def default(self) -> Operator:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if fast["OVERRIDES"]:
            from ..core.subclass_door import UNASKED, door

            answer = door.asked(lambda: self, args, kwargs)
            if answer is not UNASKED:
                return answer
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='quantized.{self.name}')>"

    def __reduce__(self) -> tuple:
        return _named, (self.name,)

    def __deepcopy__(self, memo: dict) -> Operator:
        return self


class Quantized:
    """The namespace; names that programs have registered in it are found, too."""

    __name__ = "quantized"

    def __getattr__(self, name: str) -> Any:
        from ..library import namespace
        from . import embeddings, operators, recurrent

        if name.startswith("__"):
            raise AttributeError(name)
        for place in (operators, embeddings, recurrent):
            if name in place.functions:
                found = Operator(name, place.functions[name])
                self.__dict__[name] = found
                return found
        return getattr(namespace("quantized"), name)

    def __dir__(self) -> list[str]:
        from . import embeddings, operators, recurrent

        return sorted({*operators.functions, *embeddings.functions, *recurrent.functions})


quantized = Quantized()


def _named(name: str) -> Operator:
    return getattr(quantized, name)
