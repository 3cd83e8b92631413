"""`ops.quantized`: the functions of `named.py` and its companions, as PyTorch calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..threads.state import fast

_OWN = __package__.partition(".")[0]


class Operator:
    """A function of `ops.quantized`, or an overload of one; `.default` is itself."""

    def __init__(self, name: str, function: Callable):
        self.__name__ = self.name = name
        self.__module__ = f"{_OWN}.ops.quantized"  # as graphs print it
        self.function = function
        self.__doc__ = function.__doc__

    @property
    def default(self) -> Operator:
        return self

    def overloads(self) -> list[str]:
        """The names of its overloads."""
        start = f"{self.name}."
        return ["default", *(n.removeprefix(start) for n in _known() if n.startswith(start))]

    def __getattr__(self, overload: str) -> Operator:
        function = None if overload.startswith("__") else _known().get(f"{self.name}.{overload}")
        if function is None:
            raise AttributeError(
                f"The underlying op of 'quantized.{self.name}' has no overload name '{overload}'")
        found = self.__dict__[overload] = Operator(f"{self.name}.{overload}", function)
        return found

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

        if name.startswith("__"):
            raise AttributeError(name)
        if name in _known():
            found = self.__dict__[name] = Operator(name, _known()[name])
            return found
        return getattr(namespace("quantized"), name)

    def __dir__(self) -> list[str]:
        return sorted(n for n in _known() if "." not in n)


def _known() -> dict[str, Callable]:
    """All functions, whose files are loaded when the first is asked for."""
    from . import embeddings, fbgemm, operators, recurrent

    return embeddings.functions | operators.functions | recurrent.functions | fbgemm.functions


quantized = Quantized()


def _named(name: str) -> Operator:
    base, _, overload = name.partition(".")
    found = getattr(quantized, base)
    return getattr(found, overload) if overload else found
