"""Operators of the user's own, registered by name: `custom_op`, `Library`, `register_*`.

A definition gives an overload that lives outside of the table: its kernel is the user's function,
its shape rule the registered fake.  A call goes through an `autograd.Function` made for it, whose
forward is the overload; that is what gives reverse and forward mode, `vmap`, capture and `compile`.
Operators that write arguments are made pure (they return the new values) wherever a transform is
watching, and the surface stores what they return.  Read next: `definition.py`, `namespaces.py`.
"""

from __future__ import annotations

import warnings
from typing import Any

from .. import errors
from ..array import dtype as dt
from ..core.handle import tensors_in
from ..core.overload import OpOverload
from ..table.effects import EffectType, register_effect
from . import definition as _definitions
from .definition import CustomOpDef, FakeImplCtx, Tag, definitions, known_device
from .hints import infer_schema
from .namespaces import (
    Library,
    Namespace,
    Packet,
    define_operator,
    definition_of,
    fallthrough_kernel,
    implement,
    key_name,
    namespace,
)
from .namespaces import scoped_library as _scoped_library

__all__ = [
    "CustomOpDef",
    "FakeImplCtx",
    "Library",
    "Namespace",
    "Packet",
    "Tag",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "get_kernel",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_jvp",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]


def custom_op(name: str, fn=None, /, *, mutates_args, device_types=None, schema: str | None = None,
              tags=None) -> Any:
    """Make an operator `namespace::name` of a function with type hints (a decorator).

    `mutates_args` names the tensors that the function writes; its results must be new tensors.
    """

    def make_it(function) -> CustomOpDef:
        text = schema
        if text is None:
            text = infer_schema(function, mutates_args=mutates_args)
        made = CustomOpDef(name, text, function, device_types, tags)
        written = {made.schema.names[i] for i in made._written}
        if schema is not None and mutates_args != "unknown" and written != set(mutates_args):
            definitions.pop(name, None)
            raise errors.BadValue(errors.text(
                f"Attempted to create a custom op with mutates_args={mutates_args!r} and a schema "
                f"that says otherwise: the op mutates {written or '{}'} ({errors.user_line(3)})",
                f"schema: {made.schema}", "make both say the same"))
        return made

    return make_it if fn is None else make_it(fn)


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """Register the function of an operator for one or more device types."""
    return definition_of(op).register_kernel(device_types, func)


def register_fake(op, func=None, /, *, lib=None, _stacklevel: int = 1,
                  allow_override: bool = False):
    """Register what an operator makes of shapes and dtypes alone (a decorator)."""
    made = definition_of(op)
    return made.register_fake if func is None else made.register_fake(func)


def register_autograd(op, backward, /, *, setup_context=None, lib=None) -> None:
    """Register the gradient of an operator."""
    definition_of(op).register_autograd(backward, setup_context=setup_context)


def register_jvp(op, jvp, /) -> None:
    """Register the tangents of an operator."""
    definition_of(op).register_jvp(jvp)


def register_vmap(op, func=None, /, *, lib=None):
    """Register an operator on a batch (a decorator)."""
    return definition_of(op).register_vmap(func)


def register_autocast(op, device_type: str, cast_inputs: dt.DType, /, *, lib=None) -> None:
    """Register the dtype that an operator's floating arguments get under autocast."""
    definition_of(op).register_autocast(device_type, cast_inputs)


def _register_effectful_op(op, effect: EffectType | None, *, lib=None) -> None:
    """Register the effect of an operator: graphs keep its calls, in their order."""
    if not isinstance(op, (str, OpOverload, CustomOpDef)):
        raise ValueError(
            f"register_effectful_op({op}): got unexpected type for op: {type(op)} "
            f"({errors.user_line(2)})")
    register_effect(op, effect)


def impl_abstract(qualname, func=None, *, lib=None, _stacklevel: int = 1):
    """The old name of `register_fake`."""
    warnings.warn(
        "library.impl_abstract was renamed to library.register_fake", FutureWarning, stacklevel=2
    )
    return register_fake(qualname, func)


def get_kernel(op, dispatch_key: str = "cpu"):
    """The function that runs an operator on a device type."""
    made = definition_of(op)
    return made._kernels.get(dispatch_key.lower(), made._kernels.get(None))


_PARTS = {  # of `opcheck`: what `testing.check` calls them
    "test_schema": "pure", "test_autograd_registration": None, "test_faketensor": "fake",
    "test_aot_dispatch_dynamic": "compile", "test_aot_dispatch_static": "compile"}


def opcheck(op, args: tuple, kwargs: dict | None = None, *, test_utils: Any = tuple(_PARTS)[:4],
            raise_exception: bool = True, atol=None, rtol=None) -> dict:
    """Check an operator on sample arguments: "SUCCESS", or what was wrong, for each test.

    `testing.check` says more, and checks derivatives.
    """
    from ..testing.user import CheckFailed, check

    if not isinstance(op, (OpOverload, CustomOpDef)):
        raise errors.BadValue(errors.text(
            f"opcheck(op, ...): op must be instance of torch._ops.OpOverload or a custom operator, "
            f"got {type(op)} ({errors.user_line(2)})",
            cure="name an overload, torch.ops.mine.f.default, or give what custom_op returned"))
    wanted = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    if not set(wanted) <= set(_PARTS):
        raise errors.BadValue(errors.text(
            f"opcheck(op, ..., test_utils={wanted}): expected test_utils to be subset of "
            f"{tuple(_PARTS)} ({errors.user_line(2)})"))
    found = {}
    given = tensors_in([*args, *(kwargs or {}).values()])
    tracked = any(t.requires_grad for t in given)
    for name in wanted:
        if _PARTS[name] is None:
            wrong = _unregistered(op, args, kwargs or {})
        else:
            (row,) = check(op, args, kwargs, checks=[_PARTS[name]], raise_on_failure=False).rows
            # without a gradient it is right for arguments that want none
            fine = row.status in ("success", "skipped") or (
                row.status == "refused" and _PARTS[name] == "compile" and not tracked)
            wrong = None if fine else row.detail or row.what
        if wrong is None:
            found[name] = "SUCCESS"
            continue
        failure = CheckFailed(f"opcheck(op, ...): {name} failed with {wrong}")
        if raise_exception:
            raise failure
        found[name] = failure
    return found


def _unregistered(op, args: tuple, kwargs: dict) -> str | None:
    """What is wrong if a kernel makes a history where an operator should: it is lost in captures.

    Other operators have a gradient, or a refusal, by construction.
    """
    made = getattr(op, "definition", op)
    if not getattr(made, "_low", False) or made._autograd or made._backward or (
            made._whole and not made._kernels):
        return None
    from .fallback import autograd_fallback_mode, set_autograd_fallback_mode

    before = autograd_fallback_mode()
    set_autograd_fallback_mode("nothing")
    try:
        out = op(*args, **kwargs)
    finally:
        set_autograd_fallback_mode(before)
    if not any(t.requires_grad for t in tensors_in([out])):
        return None
    return (f"{made._qualname}: at least one output of this operator has requires_grad=True but "
            "the operator does not have an autograd kernel defined at an autograd key; register "
            "it with register_autograd, or impl(..., \"Autograd\")")


def get_ctx() -> FakeImplCtx | None:
    """The context of the fake that is running, None if none is."""
    return _definitions.running_fake


def triton_op(name: str, fn=None, /, *, mutates_args, schema: str | None = None):
    """An operator that is a function of others: captures look into it (a decorator).

    Kernels of Triton cannot be part of it here, see `wrap_triton`.
    """

    def make_it(function) -> CustomOpDef:
        made = custom_op(name, function, mutates_args=mutates_args, schema=schema)
        made._whole = function
        made._kernels.clear()
        return made

    return make_it if fn is None else make_it(fn)


def wrap_triton(triton_kernel, /):
    """Refused: kernels of Triton run on PyTorch's tensors only."""
    raise errors.NotInThisBuild(errors.text(
        f"kernels of Triton cannot be called ({errors.user_line(2)})",
        cure="write the operator with tensor operations, and compile it"))


def register_torch_dispatch(op, torch_dispatch_class, func=None, /, *, lib=None):
    """Register what a class with `__torch_dispatch__`, or a mode, does for an operator:
    `func(class or mode, func, types, args, kwargs)` (a decorator)."""
    return definition_of(op, "register_torch_dispatch").register_torch_dispatch(
        torch_dispatch_class, func)


def define(qualname, schema: str, alias_analysis: str = "", *, lib=None, tags: Any = ()):
    """Define an operator by its schema; `impl` gives it functions.

    The older form, `@define(library, "name(Tensor x) -> Tensor")`, decorates its function.
    """
    if isinstance(qualname, Library):
        name = qualname.define(schema, alias_analysis, tags=tags)
        return lambda function: qualname.impl(name, function) or function
    if not schema.lstrip().startswith("("):
        raise errors.BadValue(errors.text(
            f"define({qualname!r}, ...): expected schema to look like "
            f'"(Type argument, ...) -> Type", got {schema!r} ({errors.user_line(2)})',
            cure="leave the name of the operator away"))
    if lib is not None:
        lib._names.add(qualname.partition("::")[2])
    define_operator(qualname, schema, tags)
    return None


def impl(qualname, types, func=None, *, lib=None):
    """Register a function for the device types, or dispatch keys, `types` (a decorator)."""
    if isinstance(qualname, Library):  # impl(lib, "name", "CPU")
        return lambda function: qualname.impl(types, function, func or "") or function

    kinds = [types] if isinstance(types, str) else list(types)
    for kind in kinds:
        known_device(key_name(kind))

    def register(function):
        for kind in kinds:
            implement(qualname, function, kind)
        return function

    if func is None:
        return register
    register(func)
    return None
