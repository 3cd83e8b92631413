"""Operators of the user's own, registered by name: `custom_op`, `Library`, `register_*`.

A definition gives an overload that lives outside of the table: its kernel is the user's function,
its shape rule the registered fake.  A call goes through an `autograd.Function` made for it, whose
forward is the overload; that is what gives reverse and forward mode, `vmap`, capture and `compile`.
Operators that write arguments are made pure (they return the new values) wherever a transform is
watching, and the surface stores what they return.  Read next: `autograd/function.py`.
"""

from __future__ import annotations

import contextlib
import functools
import re
import typing
import warnings
import weakref

import numpy as np

from . import errors
from .autograd.function import Function
from .autograd.grad_mode import no_grad
from .core import device as dev
from .core import dtype as dt
from .core.effects import EffectType, register_effect
from .core.fake import Fake, fake_like
from .core.handle import Tensor, is_buffer, make
from .core.hints import infer_schema
from .core.op import Op, OpOverload, no_match
from .core.stack import bind, tensors_in
from .core.state import fast, state
from .core.surface import assign, mark_written, may_write
from .core.table import ops

__all__ = [
    "CustomOpDef",
    "Library",
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

definitions: dict[str, CustomOpDef] = {}  # "ns::name" -> definition


# overloads outside of the table


class CustomOverload(OpOverload):
    """The overload of a registered operator; calling it goes through its derivative."""

    custom = True

    def __init__(self, op, definition: CustomOpDef, variant: str = "default"):
        super().__init__(op)
        self.definition, self.variant = definition, variant

    def __repr__(self) -> str:
        return f"{self.definition._namespace}.{self.definition._name}.{self.variant}"

    def __reduce__(self):
        return _found, (self.definition._qualname, self.variant)

    def __call__(self, *args, **kwargs):
        if self.variant == "default":
            return self.definition(*args, **kwargs)
        flat = self.bind(args, kwargs)
        if flat is None:
            raise no_match(repr(self), [self], args, kwargs)
        return bind(self, flat)

    @property
    def namespace(self) -> str:
        return self.definition._namespace


def _found(name: str, variant: str) -> CustomOverload:
    made = definitions[name]
    return made._opoverload if variant == "default" else made._pure


class CustomOpDef:
    """An operator of the user's: call it, or register more about it."""

    def __init__(self, name: str, schema: str, function=None, device_types=None):
        self._namespace, _, self._name = name.partition("::")
        if not self._name or "::" in self._name:
            raise ValueError(
                f"the name of an operator is 'namespace::name', got {name!r} "
                f"({errors.user_line(2)})"
            )
        self._qualname = name
        if name in definitions:
            warnings.warn(
                f"the operator {name} was defined before; the new definition takes its place",
                stacklevel=3,
            )
        self.__name__ = self._name
        self._schema_text = schema
        self._kernels: dict = {}  # device type -> function; None: any device
        self._fake = self._backward = self._setup = self._jvp = self._vmap = None
        self._whole = None  # a function of operators, in place of all the rest
        self._autograd = None  # a function that calls the operator below autograd
        self._casts: dict = {}  # device type -> dtype that autocast gives its arguments
        self._disabled: set = set()  # device types whose kernels do not count for now
        self._make()
        if function is not None:
            functools.update_wrapper(self, function, updated=())
            self.register_kernel(device_types)(function)
        definitions[name] = self

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def _make(self) -> None:
        arguments, _, returns = self._schema_text.partition("->")
        arguments = arguments[arguments.index("(") :].strip()
        text = f"{self._name}{arguments} -> {returns.strip()}"
        self._opoverload = CustomOverload(self._entry(text), self)
        self.schema = self._opoverload.schema
        args = self.schema.args
        self._written = [i for i, a in enumerate(args) if a.alias and "!" in a.alias]
        self._count = len(self.schema.returns)
        self._list_out = self._count == 1 and self.schema.returns[0].is_list
        self._lists = any(a.is_list and a.is_tensor for a in args)
        self._keywords = self.schema.kw_only_from
        self._pure = self._opoverload
        if self._written:  # the pure form returns the new values too
            head = re.sub(r"\(a\d*!\)", "", text[: text.index("->")])
            new = ["Tensor[]" if args[i].is_list else "Tensor" for i in self._written]
            both = [*[r.type_text() for r in self.schema.returns], *new]
            tail = both[0] if len(both) == 1 else f"({', '.join(both)})"
            self._pure = CustomOverload(self._entry(f"{head}-> {tail}"), self, "functional")
        self._function = _function_for(self)

    # what the overload is made of

    def _entry(self, text: str) -> type[Op]:
        """An entry like those of the table, but not in it."""
        op = type(self._name, (Op,), {"evaluate": classmethod(self._evaluate)})
        op.schema, op.full_name, op.base_name = text, self._qualname, self._name
        op.promote, op.cost = "keep", "heavy"
        op.run, op.shape, op.dtype = self._run, self._shapes, self._dtypes
        op.method = op.function = False
        return op

    def _evaluate(self, cls, *raw):
        from .core.evaluate import run_raw

        return run_raw(self._pure, raw)

    def _kernel(self, raw) -> typing.Callable:
        found = self._kernels.get(None)
        if found is not None and len(self._kernels) == 1:
            return found
        own = {k: f for k, f in self._kernels.items() if k not in self._disabled}
        kinds = {dev.lookup(a)[0].partition(":")[0] for a in _arrays(raw) if is_buffer(a)}
        for kind in kinds:
            found = own.get(kind, found)
        if found is None:
            raise errors.DerivativeNotWritten(
                errors.text(
                    f"{self._qualname} has no kernel for {' and '.join(kinds) or 'any device'} "
                    f"({errors.user_line(2)})",
                    cure=f"register one with @{self._name}.register_kernel(device)",
                )
            )
        return found

    def _run(self, xp, *raw):
        """The user's function on handles around raw arrays; the results as arrays."""
        function = self._kernel(raw)
        written = self._written
        given = list(raw)
        for i in written:  # the pure form works on copies
            if given[i] is not None:
                given[i] = (
                    [a.copy() for a in given[i]] if type(given[i]) is list else (given[i].copy())
                )
        handles = [_handles(v) for v in given]
        out = self._call_user(function, handles)
        outs = self._checked(out, handles)
        new = [_raw(handles[i]) for i in written]
        values = [_raw(o) for o in outs] + new
        if self._list_out and not written:
            return values
        return values[0] if len(values) == 1 else tuple(values)

    def _call_user(self, function, flat):
        """A call with keyword-only arguments by name."""
        positional, rest = flat[: self._keywords], flat[self._keywords :]
        named = dict(zip(self.schema.names[self._keywords :], rest)) if rest else {}
        if True not in state.record:
            return function(*positional, **named)
        with no_grad():
            return function(*positional, **named)

    def _checked(self, out, handles: list) -> list:
        """The results as a list, if they are what the schema says and nobody else's memory."""
        returns = self.schema.returns
        if not returns:
            outs = [] if out is None else [out]
        elif self._list_out:
            outs = list(out)
        else:
            outs = list(out) if isinstance(out, (tuple, list)) else [out]
        if not self._list_out and len(outs) != len(returns):
            raise errors.ArgumentError(
                errors.text(
                    f"{self._qualname} returned {len(outs)} values, its schema says {len(returns)} "
                    f"({errors.user_line(2)})",
                    f"schema: {self._qualname}{self.schema.text[self.schema.text.index('(') :]}",
                )
            )
        inputs = [v for v in handles if isinstance(v, Tensor)]
        inputs += [t for v in handles if type(v) is list for t in v if isinstance(t, Tensor)]
        for i, o in enumerate(outs):
            if not isinstance(o, Tensor):
                continue
            for t in (*inputs, *outs[:i]):
                if isinstance(t, Tensor) and (o is t or _shares(o, t)):
                    raise errors.ViewWriteError(
                        errors.text(
                            f"{self._qualname}: output {i} is an input or shares memory with an "
                            f"input or another output ({errors.user_line(2)}); the output of a "
                            "custom operator must not be an input and may not alias any inputs",
                            f"output: {o.dtype.name}{list(o.shape)}",
                            "return a clone() of it",
                        )
                    )
        return outs

    def _faked(self, specs: tuple) -> list:
        """What the registered fake makes of tensors without data."""
        if self._fake is None:
            raise errors.DerivativeNotWritten(
                errors.text(
                    f"{self._qualname} has no fake: capture and compile need to know the shapes of "
                    f"its results ({errors.user_line(2)})",
                    cure=f"register one with @{self._name}.register_fake",
                )
            )
        given = [_fake_handles(s) for s in specs]
        before, state.fake = state.fake, True
        try:
            out = self._call_user(self._fake, given)
        finally:
            state.fake = before
        returns = self.schema.returns
        listed = self._list_out or len(returns) != 1
        outs = [] if out is None else list(out) if listed else [out]
        if not self._list_out and len(outs) != len(returns):
            raise errors.ArgumentError(
                f"the fake of {self._qualname} returned {len(outs)} values, the schema says "
                f"{len(returns)} ({errors.user_line(2)})"
            )
        return outs + [given[i] for i in self._written]

    def _shapes(self, *specs):
        found = [_shape(o) for o in self._faked(specs)]
        plain = self._list_out and not self._written
        return found if plain or len(found) != 1 else found[0]

    def _dtypes(self, *specs):
        found = [_dtype(o) for o in self._faked(specs)]
        plain = self._list_out and not self._written
        return found if plain or len(found) != 1 else found[0]

    # registration

    def register_kernel(self, device_types=None, func=None, /):
        """Register the function for one or more device types (None: all)."""

        def register(function):
            kinds = (
                [device_types]
                if device_types is None or isinstance(device_types, str)
                else (device_types)
            )
            for kind in kinds:
                self._kernels[kind] = function
            return function

        return register if func is None else register(func)

    def register_fake(self, fn, /):
        """Register what the operator makes of shapes and dtypes alone."""
        self._fake = fn
        return fn

    def register_autograd(self, backward, /, *, setup_context=None) -> None:
        """Register the gradient: `backward(ctx, *grads)` and what to remember for it."""
        if self._written:
            raise errors.TransformError(
                errors.text(
                    f"Cannot register autograd formula for operator {self._qualname} that mutates "
                    f"its arguments ({errors.user_line(2)})",
                    cure="register it for an operator that returns new tensors",
                )
            )
        self._backward, self._setup = backward, setup_context
        self._function = _function_for(self)

    def register_jvp(self, jvp, /) -> None:
        """Register the tangents: `jvp(ctx, *tangents)`; without it `backward` is transposed."""
        self._jvp = jvp
        self._function = _function_for(self)

    def register_vmap(self, func=None, /):
        """Register the operator on a batch: `func(info, in_dims, *args) -> (output, out_dims)`."""

        def register(function):
            self._vmap = function
            self._function = _function_for(self)
            return function

        return register if func is None else register(func)

    def register_effect(self, effect: EffectType | None) -> None:
        """Register that calls matter whether their results are used or not, and their order."""
        register_effect(self._opoverload, effect)

    def register_autocast(self, device_type: str, cast_inputs: dt.DType) -> None:
        """Register the dtype that floating arguments get under `autocast(device_type)`."""
        if not isinstance(device_type, str):
            raise ValueError(f"device_type must be a string, got {type(device_type).__name__}")
        if device_type not in ("cpu", "cuda"):
            raise ValueError(f"Unknown device type: {device_type}")
        self._casts[device_type] = cast_inputs

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True):
        """Within the block, the kernel of a device type counts or gives way to the general one."""
        if device_type not in self._kernels:
            warnings.warn(
                f"{self._qualname} has no kernel for {device_type} of its own: nothing to "
                f"{'enable' if enabled else 'disable'}",
                stacklevel=3,
            )
        before = set(self._disabled)
        (self._disabled.discard if enabled else self._disabled.add)(device_type)
        try:
            yield
        finally:
            self._disabled = before

    # calls

    def __call__(self, *args, **kwargs):
        flat = self.schema.bind(args, kwargs)
        if flat is None:
            raise no_match(self._qualname, [self], args, kwargs)
        if self._casts and state.autocast is not None:
            return self._call_cast(flat)
        return self._call_flat(flat)

    def _call_cast(self, flat: tuple):
        """A call under autocast: the arguments in the registered dtype, autocast off inside."""
        from .amp.autocast_mode import _converted, autocast, settings

        now = settings()
        for device, dtype in self._casts.items():
            if now.enabled[device]:
                with autocast(device, enabled=False):
                    return self._call_flat(_converted(flat, device, dtype))
        return self._call_flat(flat)

    def _call_flat(self, flat: tuple):
        if self._whole is not None:
            return self._call_composite(flat)
        if self._autograd is not None and _tracked(flat):
            positional, rest = flat[: self._keywords], flat[self._keywords :]
            return self._autograd(
                *positional, **dict(zip(self.schema.names[self._keywords :], rest))
            )
        return self._call(flat)

    def _call_composite(self, flat: tuple):
        positional, rest = flat[: self._keywords], flat[self._keywords :]
        return self._whole(*positional, **dict(zip(self.schema.names[self._keywords :], rest)))

    def _call(self, flat: tuple):
        if self._written:
            return self._call_writing(flat)
        if not self._lists:
            out = self._function.apply(*flat)
        else:
            widths, leaves = _flattened(self.schema, flat)
            out = self._function.apply(widths, *leaves)
        return list(out) if self._list_out else out if self._count else None

    def _call_writing(self, flat: tuple):
        targets = [flat[i] for i in self._written]
        for t in tensors_in(flat):
            if t._edge is not None and state.record[_level(t)]:
                raise errors.NotDifferentiable(
                    errors.text(
                        f"{self._qualname} writes its arguments and has no derivative, but one of "
                        f"them requires grad ({errors.user_line(2)})",
                        cure="call it under no_grad(), or pass x.detach()",
                    )
                )
        tensors = list(tensors_in(targets))
        for t in tensors:
            may_write(t, False, _level(t))
        if not fast["ACTIVE"] and all(is_buffer(t._data) for t in tensors_in(flat)):
            for t in tensors_in(flat):
                if t._link is not None:
                    t.shape  # noqa: B018  (brings a view up to date)
            handles = [_handles(_raw(v)) for v in flat]
            outs = self._checked(self._call_user(self._kernel(_raw(list(flat))), handles), handles)
            mark_written(*tensors)
            outs = [make(o._data) if isinstance(o, Tensor) else o for o in outs]
        else:
            out = bind(self._pure, flat)
            out = list(out) if isinstance(out, (tuple, list)) else [out]
            outs, new = out[: self._count], out[self._count :]
            for target, value in zip(targets, new):
                for t, v in zip(tensors_in((target,)), tensors_in((value,))):
                    assign(t, v)
        if not outs:
            return None
        return outs[0] if self._count == 1 else tuple(outs)


def _level(t: Tensor) -> int:
    interp = getattr(t._data, "interp", None)
    return 0 if interp is None else interp.level


def _tracked(flat: tuple) -> bool:
    return any(t._edge is not None and state.record[_level(t)] for t in tensors_in(flat))


def _arrays(raw):
    for v in raw:
        if type(v) is list:
            yield from _arrays(v)
        elif hasattr(v, "dtype") and hasattr(v, "strides"):
            yield v


def _handles(value):
    """Handles around raw arrays."""
    if type(value) is list:
        return [_handles(v) for v in value]
    return make(value) if hasattr(value, "strides") and hasattr(value, "dtype") else value


def _raw(value):
    if type(value) in (list, tuple):
        return [_raw(v) for v in value]
    if not isinstance(value, Tensor):
        return value
    return value._data if value._link is None else value.detach()._data


def _fake_handles(spec):
    if type(spec) is list:
        return [_fake_handles(s) for s in spec]
    if not hasattr(spec, "fake"):
        return spec
    data = spec.fake
    return make(data if type(data) is Fake else fake_like(data))


def _shape(value):
    if type(value) in (list, tuple):
        return [_shape(v) for v in value]
    return tuple(value.shape) if isinstance(value, Tensor) else None


def _dtype(value):
    if type(value) in (list, tuple):
        return [_dtype(v) for v in value]
    return value.dtype if isinstance(value, Tensor) else None


def _shares(a: Tensor, b: Tensor) -> bool:
    one, two = a._data, b._data
    plain = type(one) is np.ndarray and type(two) is np.ndarray
    return plain and one.size > 0 and two.size > 0 and np.may_share_memory(one, two)


def _flattened(schema, flat: tuple) -> tuple:
    """(length of each list of tensors or None, all arguments with those lists spread)."""
    widths, leaves = [], []
    for a, v in zip(schema.args, flat):
        if a.is_list and a.is_tensor and v is not None:
            widths.append(len(v))
            leaves += v
        else:
            widths.append(None)
            leaves.append(v)
    return tuple(widths), leaves


def _rebuilt(widths: tuple, leaves) -> tuple:
    items = iter(leaves)
    return tuple([next(items) if w is None else [next(items) for _ in range(w)] for w in widths])


def _spread(widths: tuple, values) -> list:
    """One value per leaf from one per argument; None stands for a whole list."""
    found = []
    for w, v in zip(widths, values):
        found += [v] if w is None else [None] * w if v is None else list(v)
    return found


def _function_for(op: CustomOpDef) -> type:
    """The `autograd.Function` that a call of an operator is."""
    lists = op._lists
    target = op._pure

    def split(inputs):
        """(positional, keyword-only as a dictionary) of the user's arguments."""
        args = _rebuilt(inputs[0], inputs[1:]) if lists else inputs
        return args[: op._keywords], dict(
            zip(op.schema.names[op._keywords :], args[op._keywords :])
        )

    def forward(*inputs):
        flat = _rebuilt(inputs[0], inputs[1:]) if lists else inputs
        out = bind(target, tuple(flat))
        return tuple(out) if isinstance(out, list) else out

    def setup(ctx, inputs, output):
        if lists:
            ctx._widths = inputs[0]
            ctx.needs_input_grad = _rebuilt(inputs[0], ctx.needs_input_grad[1:])
        if op._setup is None:
            return
        args, named = split(inputs)
        output = list(output) if op._list_out else output
        if named:
            op._setup(ctx=ctx, inputs=args, keyword_only_inputs=named, output=output)
        else:
            op._setup(ctx, args, output)

    def backward(ctx, *grads):
        if op._backward is None:
            raise errors.DerivativeNotWritten(
                errors.text(
                    f"Trying to backward through {op._namespace}.{op._name}.default but no "
                    "autograd formula was "
                    f"registered (called at {errors.describe_place(ctx._where())})",
                    cure=f"use {op._name}.register_autograd to add one",
                )
            )
        found = op._backward(ctx, list(grads)) if op._list_out else op._backward(ctx, *grads)
        found = tuple(found) if isinstance(found, tuple) else (found,)
        missing = op._keywords - len(found)
        if missing > 0 and not lists:
            return found
        found = (*found, *[None] * (len(op.schema.args) - len(found)))
        return (None, *_spread(ctx._widths, found)) if lists else found

    def jvp(ctx, *tangents):
        if lists:
            tangents = _rebuilt(ctx._widths, tangents[1:])
        found = op._jvp(ctx, *tangents)
        return tuple(found) if op._list_out else found

    def batch(info, in_dims, *inputs):
        if lists:
            args, dims = _rebuilt(inputs[0], inputs[1:]), _rebuilt(inputs[0], in_dims[1:])
        else:
            args, dims = inputs, in_dims
        if op._vmap is not None:
            named = dict(zip(op.schema.names[op._keywords :], args[op._keywords :]))
            out, out_dims = op._vmap(info, dims[: op._keywords], *args[: op._keywords], **named)
            return (tuple(out), out_dims) if op._list_out else (out, out_dims)
        return _looped(op, info.batch_size, dims, args)

    methods = {"forward": forward, "setup_context": setup, "backward": backward, "vmap": batch}
    if op._jvp is not None:
        methods["jvp"] = jvp
    made = type(Function)(
        f"{op._namespace}_{op._name}",
        (Function,),
        {k: staticmethod(v) for k, v in methods.items()},
    )
    made._registered = op
    return made


_warned: set = set()


def _looped(op: CustomOpDef, size: int, dims: tuple, args: tuple) -> tuple:
    """An operator without batching rule: once per example."""
    if op._qualname not in _warned:
        _warned.add(op._qualname)
        warnings.warn(
            f"vmap: operator '{op._qualname}' has no batching rule; it runs once per example. "
            f"Register one with {op._name}.register_vmap to make it fast.",
            stacklevel=2,
        )

    def pick(value, dim, i):
        if type(value) is list:
            return [pick(v, d, i) for v, d in zip(value, dim)]
        return value if dim is None else ops.select(value, dim, i)

    def call(i):
        out = op._call(tuple([pick(v, d, i) for v, d in zip(args, dims)]))
        return tuple(out) if isinstance(out, list) else out

    outs = [call(i) for i in range(size)]
    if not isinstance(outs[0], tuple):
        return (ops.stack(outs, 0), 0) if isinstance(outs[0], Tensor) else (outs[0], None)
    made, places = [], []
    for parts in zip(*outs):
        tensor = isinstance(parts[0], Tensor)
        made.append(ops.stack(list(parts), 0) if tensor else parts[0])
        places.append(0 if tensor else None)
    return tuple(made), tuple(places)


# the public functions


def custom_op(name: str, fn=None, /, *, mutates_args, device_types=None, schema: str | None = None,
              tags=None):
    """Make an operator `namespace::name` of a function with type hints (a decorator).

    `mutates_args` names the tensors that the function writes; its results must be new tensors.
    """

    def make_it(function) -> CustomOpDef:
        text = schema
        if text is None:
            text = infer_schema(function, mutates_args=mutates_args)
        return CustomOpDef(name, text, function, device_types)

    return make_it if fn is None else make_it(fn)


def _definition(op) -> CustomOpDef:
    if isinstance(op, CustomOpDef):
        return op
    if isinstance(op, (CustomOverload, Packet)):
        return op.definition
    if op not in definitions:
        raise errors.ArgumentError(
            errors.text(
                f"there is no operator {op!r} ({errors.user_line(2)})",
                cure="define it first, with custom_op or Library(...).define",
            )
        )
    return definitions[op]


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """Register the function of an operator for one or more device types."""
    return _definition(op).register_kernel(device_types, func)


def register_fake(op, func=None, /, *, lib=None, _stacklevel: int = 1,
                  allow_override: bool = False):
    """Register what an operator makes of shapes and dtypes alone (a decorator)."""
    made = _definition(op)
    return made.register_fake if func is None else made.register_fake(func)


def register_autograd(op, backward, /, *, setup_context=None, lib=None) -> None:
    """Register the gradient of an operator."""
    _definition(op).register_autograd(backward, setup_context=setup_context)


def register_jvp(op, jvp, /) -> None:
    """Register the tangents of an operator."""
    _definition(op).register_jvp(jvp)


def register_vmap(op, func=None, /, *, lib=None):
    """Register an operator on a batch (a decorator)."""
    return _definition(op).register_vmap(func)


def register_autocast(op, device_type: str, cast_inputs: dt.DType, /, *, lib=None) -> None:
    """Register the dtype that an operator's floating arguments get under autocast."""
    _definition(op).register_autocast(device_type, cast_inputs)


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


def fallthrough_kernel(*args, **kwargs):
    """Registered for a dispatch key, leaves it to the next one; not to be called."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def get_kernel(op, dispatch_key: str = "cpu"):
    """The function that runs an operator on a device type."""
    made = _definition(op)
    return made._kernels.get(dispatch_key.lower(), made._kernels.get(None))


def opcheck(op, args: tuple, kwargs: dict | None = None, *, raise_exception: bool = True) -> dict:
    """Check an operator on sample arguments; returns a word per property."""
    from .testing.user import check

    report = check(op, args, kwargs, raise_on_failure=raise_exception)
    return {row.name: row.status.upper() for row in report.rows}


class FakeImplCtx:
    """What a fake asks for sizes that depend on values; there are none here."""

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None):
        """Refused: every size of a captured graph is a number."""
        raise errors.DataDependentError(errors.text(
            f"a fake asks for a size that depends on values ({errors.user_line(2)})",
            cure="keep the operator outside of the compiled function, or return a size that is "
            "always enough, and the number of elements that count"))

    create_unbacked_symint = new_dynamic_size


def get_ctx() -> FakeImplCtx:
    """The context of the fake that is running."""
    return FakeImplCtx()


def triton_op(name: str, fn=None, /, *, mutates_args, schema: str | None = None):
    """An operator that is a function of others: captures look into it (a decorator).

    Kernels of Triton cannot be part of it here, see `wrap_triton`.
    """

    def make_it(function) -> CustomOpDef:
        made = custom_op(name, function, mutates_args=mutates_args, schema=schema)
        made._whole = function
        return made

    return make_it if fn is None else make_it(fn)


def wrap_triton(triton_kernel, /):
    """Refused: kernels of Triton run on PyTorch's tensors only."""
    raise errors.NotInThisBuild(errors.text(
        f"kernels of Triton cannot be called ({errors.user_line(2)})",
        cure="write the operator with tensor operations, and compile it"))


def register_torch_dispatch(op, torch_dispatch_class, func=None, /, *, lib=None):
    """Refused: tensors have no `__torch_dispatch__`."""
    raise errors.NotInThisBuild(errors.text(
        f"rules for classes with __torch_dispatch__ are never asked ({errors.user_line(2)})",
        cure="register_kernel and register_fake say what the operator does"))


def _define(qualname: str, schema: str) -> None:
    if qualname in definitions:
        raise errors.TransformError(errors.text(
            f"Tried to register an operator ({qualname}) with the same name and overload name "
            f"multiple times ({errors.user_line(3)})",
            cure="give it another name, or drop the Library that defined it"))
    CustomOpDef(qualname, schema)


def define(qualname: str, schema: str, *, lib=None, tags=()) -> None:
    """Define an operator by its schema; `impl` gives it functions."""
    _define(qualname, schema)


def impl(qualname, types, func=None, *, lib=None):
    """Register a function for the device types `types` (a decorator)."""
    if isinstance(qualname, Library):  # impl(lib, "name", "CPU")
        return lambda function: qualname.impl(types, function, func or "") or function

    def register(function):
        for kind in [types] if isinstance(types, str) else types:
            _implement(_definition(qualname), function, kind)
        return function

    return register if func is None else register(func)


_EVERY = ("", "default", "compositeexplicitautograd", "backendselect")


def _implement(op: CustomOpDef, function, key: str) -> None:
    """Register a function under the name of a dispatch key."""
    key = key.lower()
    if function is fallthrough_kernel:
        return
    if key in _EVERY:
        op._kernels[None] = function
    elif key == "compositeimplicitautograd":
        op._whole = function
    elif key == "meta":
        op._fake = function
    elif key.startswith("autograd"):
        op._autograd = function
    else:
        op._kernels[key] = function


class Library:
    """Operators of one namespace: `Library("mine", "DEF")`, then `define` and `impl`."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = ""):
        if kind not in ("DEF", "IMPL", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in ("prim", "prims", "aten") and kind == "DEF":
            raise ValueError(
                f"{ns} is a reserved namespace. Please try creating a library with another name."
            )
        if kind == "DEF" and ns in _whole_namespaces:
            raise errors.TransformError(errors.text(
                f"Only a single TORCH_LIBRARY can be used to register the namespace {ns} "
                f"({errors.user_line(2)})", cure=f'add to it with Library("{ns}", "FRAGMENT")'))
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._names: set = set()
        if kind == "DEF":
            _whole_namespaces.add(ns)
        # operators live as long as the library that defined them
        self._destroy = weakref.finalize(self, _undefine, ns, kind, self._names)

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags=()) -> str:
        """Define an operator: `define("name(Tensor x) -> Tensor")`; returns its name."""
        if self.kind == "IMPL":
            raise errors.TransformError(
                f"a library of kind IMPL cannot define operators ({errors.user_line(2)})"
            )
        name = schema[: schema.index("(")].strip()
        _define(f"{self.ns}::{name}", schema)
        self._names.add(name)
        return name

    def impl(self, op_name, fn, dispatch_key: str = "", *, with_keyset: bool = False,
             allow_override: bool = False) -> None:
        """Give an operator a function for a dispatch key ("CPU", "Meta", "Autograd", ...)."""
        if not callable(fn):
            raise TypeError(
                f"Input function is required to be a callable but found type {type(fn)}"
            )
        name = op_name if isinstance(op_name, str) else _definition(op_name)._name
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        _implement(_definition(f"{self.ns}::{name.split('::')[-1]}"), fn, key)

_whole_namespaces: set = set()  # of which there is a Library of the kind DEF


def _undefine(ns: str, kind: str, names: set) -> None:
    for name in names:
        definitions.pop(f"{ns}::{name}", None)
        register_effect(f"{ns}::{name}", None)
    if kind == "DEF":
        _whole_namespaces.discard(ns)


class Packet:
    """`ops.ns.name`: the operator; `.default` is its overload."""

    def __init__(self, definition: CustomOpDef):
        self.definition = definition
        self.default, self.functional = definition._opoverload, definition._pure
        self.__name__ = definition._name

    def __repr__(self) -> str:
        return f"{self.definition._namespace}.{self.definition._name}"

    def __call__(self, *args, **kwargs):
        return self.definition(*args, **kwargs)

    def overloads(self) -> list[str]:
        return ["default"]


class Namespace:
    """`ops.ns`: the operators that were registered under one name."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Packet:
        found = definitions.get(f"{self._name}::{name}")
        if found is None:
            raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")
        return Packet(found)

    def __repr__(self) -> str:
        return f"<operators of the namespace {self._name}>"
