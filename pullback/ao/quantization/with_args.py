"""`with_args`: a class with some of its arguments given, to be made later."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class Partial:
    """A maker of observers with some arguments given; `with_args` gives more."""

    def __init__(self, made: functools.partial):
        self.p = made
        self.callable_args: dict[str, Callable] = {}

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        later = {name: give() for name, give in self.callable_args.items() if name not in keywords}
        return self.p(*args, **(keywords | later))

    def __repr__(self) -> str:
        return repr(self.p) + repr(self.callable_args)

    def with_args(self, **kwargs: Any) -> Partial:
        """The same with more arguments given."""
        return with_args(self, **kwargs)

    def with_callable_args(self, **kwargs: Callable) -> Partial:
        """The same with arguments that functions give when something is made."""
        found = with_args(self)
        found.callable_args = {**self.callable_args, **kwargs}
        return found


def with_args(made: Any, **kwargs: Any) -> Partial:
    """A maker with arguments given."""
    return Partial(functools.partial(made, **kwargs))


def with_callable_args(made: Any, **kwargs: Callable) -> Partial:
    """A maker with arguments that functions give."""
    return Partial(functools.partial(made)).with_callable_args(**kwargs)
