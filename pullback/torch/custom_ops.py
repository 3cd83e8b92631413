"""The older way to register operators, `torch._custom_ops`: a prototype, then its parts by name.

Gradients are two functions: what to save, `save(inputs, output)`, and
`backward(ctx, saved, *grads)`, which gives them by the names of the arguments.  New programs use
`library.custom_op`.
"""

from __future__ import annotations

import collections
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from .. import errors
from ..core.handle import Tensor, tensors_in
from ..library.definition import CustomOpDef, FakeImplCtx, definitions
from ..library.hints import infer_schema
from ..library.namespaces import definition_of
from ..pytree import tree_flatten, tree_unflatten
from ..table.effects import register_effect

__all__ = ["custom_op", "get_ctx", "impl", "impl_abstract", "impl_backward",
           "impl_save_for_backward"]


def custom_op(qualname: str, func_or_schema: Callable | str | None = None) -> Any:
    """Define an operator by a schema, or by a function with type hints (a decorator)."""
    name = qualname.partition("::")[2]
    if "." in name:
        raise errors.BadValue(errors.text(
            f"custom_op({qualname!r}): overload names are not supported ({errors.user_line(2)})",
            cure="define an operator of its own for each overload"))

    def make(function: Callable) -> Callable:
        if not inspect.isfunction(function) or function.__name__ != name:
            raise errors.BadValue(errors.text(
                f"custom_op({qualname!r}): expected a function to have name {name!r}, got "
                f"{function!r} ({errors.user_line(3)})"))
        _defined(qualname, infer_schema(function, mutates_args=()))
        return function

    if isinstance(func_or_schema, str):
        return _defined(qualname, func_or_schema)
    return make if func_or_schema is None else make(func_or_schema)


def _defined(qualname: str, schema: str) -> None:
    if qualname in definitions:
        raise errors.TransformError(errors.text(
            f"the operator {qualname} cannot be defined multiple times ({errors.user_line(3)})"))
    made = CustomOpDef(qualname, schema)
    made._low = False
    if made._written or not made._count or any(r.alias for r in made.schema.returns):
        del definitions[qualname]
        raise errors.BadValue(errors.text(
            f"custom_op({qualname!r}) only supports functional operators, which write no argument "
            f"and return something new ({errors.user_line(3)})", f"schema: {made.schema}",
            "use library.custom_op(..., mutates_args=...)"))


def _once(made: CustomOpDef, place: str, what: str) -> None:
    if place in made.__dict__.get("_older", {}):
        raise errors.TransformError(errors.text(
            f"{made._qualname} already has {what} ({errors.user_line(4)})"))
    made.__dict__.setdefault("_older", {})


def _registering(qualname: str, func: Callable | None, place: str, what: str,
                 then: Callable[[CustomOpDef, Callable], None]) -> Any:
    made = definition_of(qualname)

    def register(function: Callable) -> Callable:
        _once(made, place, what)
        made._older[place] = function
        then(made, function)
        return function

    return register if func is None else register(func)


def impl(qualname: str, *, device_types: str | Sequence[str] = ("cpu", "cuda"),
         func: Callable | None = None) -> Any:
    """Register the function for some device types (a decorator)."""
    kinds = [device_types] if isinstance(device_types, str) else list(device_types)
    return _registering(qualname, func, f"impl {' '.join(kinds)}", "an impl for these devices",
                        lambda made, f: made.register_kernel(kinds, f))


def impl_abstract(qualname: str, *, func: Callable | None = None) -> Any:
    """Register what the operator makes of shapes and dtypes alone (a decorator)."""
    return _registering(qualname, func, "fake", "an abstract impl",
                        lambda made, f: made.register_fake(f))


def impl_save_for_backward(qualname: str, *, func: Callable | None = None) -> Any:
    """Register what is saved: `func(inputs, output)`; `inputs` has the names of the arguments."""
    return _registering(qualname, func, "save", "a save_for_backward", _differentiable)


def impl_backward(qualname: str, output_differentiability: list[bool] | None = None, *,
                  func: Callable | None = None) -> Any:
    """Register the gradient: `func(ctx, saved, *grads)` gives a dict, argument -> gradient."""
    flags, made = output_differentiability, definition_of(qualname)
    if flags is not None and (not isinstance(flags, (list, tuple)) or len(flags) != made._count):
        raise errors.RefusedValue(errors.text(
            f"impl_backward({qualname!r}): output_differentiability is a list of bool, one for "
            f"each of {made._count} outputs, got {flags!r} ({errors.user_line(2)})"))
    made.__dict__["_varies"] = flags
    return _registering(qualname, func, "backward", "a backward", _differentiable)


def _differentiable(made: CustomOpDef, function: Callable) -> None:
    parts = made._older
    if "save" not in parts or "backward" not in parts:
        return  # the other one comes later
    names = made.schema.names
    Inputs = collections.namedtuple(f"{made._base}_args", names)
    differentiable = [a.name for a in made.schema.args if a.is_tensor]

    def setup(ctx: Any, inputs: tuple, output: Any) -> None:
        leaves, ctx._spec = tree_flatten(parts["save"](Inputs(*inputs), output))
        ctx._leaves = [None if isinstance(v, Tensor) else v for v in leaves]
        ctx._places = [i for i, v in enumerate(leaves) if isinstance(v, Tensor)]
        ctx.save_for_backward(*[leaves[i] for i in ctx._places])
        outs = output if made._count > 1 else (output,)
        fixed = [o for o, varies in zip(outs, made._varies or ()) if not varies]
        ctx.mark_non_differentiable(*tensors_in(fixed))

    def backward(ctx: Any, *grads: Any) -> tuple:
        leaves = list(ctx._leaves)
        for i, t in zip(ctx._places, ctx.saved_tensors):
            leaves[i] = t
        found = parts["backward"](ctx, tree_unflatten(leaves, ctx._spec), *grads)
        if not isinstance(found, dict) or set(found) != set(differentiable):
            keys = set(found) if isinstance(found, dict) else type(found).__name__
            raise errors.RefusedValue(errors.text(
                f"the backward of {made._qualname} has to return a dict; it is to have keys "
                f"{set(differentiable)}, got {keys}"))
        return tuple([found.get(n) for n in names])

    made.register_autograd(backward, setup_context=setup)


def get_ctx() -> FakeImplCtx | None:
    """The context of the fake that is running, None if none is."""
    from ..library import get_ctx

    return get_ctx()


def _destroy(qualname: str) -> None:
    """Forget an operator."""
    definitions.pop(qualname, None)
    register_effect(qualname, None)
