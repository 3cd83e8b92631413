"""The `__torch_function__` protocol for functions that users write.

A library's function asks `has_torch_function(args)` and hands the call to the arguments that define
`__torch_function__`.  The operators of this package do not ask: their arguments are tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

from .core.handle import Tensor

__all__ = [
    "get_overridable_functions",
    "handle_torch_function",
    "has_torch_function",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]


def _overriding(args: Iterable) -> list:
    """The arguments with a protocol of their own, a subclass before its base, each class once."""
    found: list = []
    for value in args:
        kind = type(value)
        if kind is Tensor or getattr(kind, "__torch_function__", None) in (None, _default):
            continue
        if any(type(v) is kind for v in found):
            continue
        place = next((i for i, v in enumerate(found) if issubclass(kind, type(v))), len(found))
        found.insert(place, value)
    return found


_default = getattr(Tensor, "__torch_function__", None)


def has_torch_function(relevant_args: Iterable) -> bool:
    """Does an argument take part in the protocol, other than as a plain tensor?"""
    return bool(_overriding(relevant_args))


def has_torch_function_unary(arg) -> bool:
    """`has_torch_function` of one argument."""
    return bool(_overriding((arg,)))


def has_torch_function_variadic(*args) -> bool:
    """`has_torch_function` of several."""
    return bool(_overriding(args))


def handle_torch_function(public_api: Callable, relevant_args: Iterable, *args, **kwargs):
    """Give a call to the first argument whose `__torch_function__` takes it."""
    overriding = _overriding(relevant_args)
    types = tuple(type(v) for v in overriding)
    for value in overriding:
        result = type(value).__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    raise TypeError(f"no implementation found for '{resolve_name(public_api)}' on types that "
                    f"implement __torch_function__: {list(types)}")


def wrap_torch_function(dispatcher: Callable) -> Callable:
    """Decorate a function so that it asks the arguments that `dispatcher` names."""

    def decorate(function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(value) -> bool:
    """Is it a tensor, or something that takes part in the protocol?"""
    return isinstance(value, Tensor) or hasattr(value, "__torch_function__")


def is_tensor_method_or_property(function: Callable) -> bool:
    """Is it a method of `Tensor`?"""
    name = getattr(function, "__name__", None)
    return name == "__get__" or any(value is function for value in vars(Tensor).values())


def resolve_name(function: Callable) -> str | None:
    """The name that people know a function by."""
    name = getattr(function, "__name__", None)
    return None if name is None else f"torch.{name}"


@functools.cache
def get_overridable_functions() -> dict:
    """The public functions by namespace."""
    import pullback

    own = {n: getattr(pullback, n) for n in dir(pullback) if not n.startswith("_")
           and n in pullback._operators}
    methods = [v for n, v in vars(Tensor).items() if callable(v)]
    return {pullback: list(own.values()), Tensor: methods}
