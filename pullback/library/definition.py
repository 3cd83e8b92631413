"""`CustomOpDef`: an operator of the user's, outside of the table.

Its kernel is the user's function, its shape rule the registered fake; a call goes through the
`autograd.Function` that `overload_functions.py` makes for it.  Read next: `overload_functions.py`.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import re
import typing
import warnings

import numpy as np

from .. import errors
from ..array import device as dev
from ..array import dtype as dt
from ..array.evaluate import is_array
from ..array.fake import Fake, fake_like
from ..array.lazy import ARRAYS
from ..array.size import Symbolic
from ..autograd.grad_mode import no_grad
from ..core.handle import Tensor, cell_of, is_buffer, make, tensors_in
from ..core.op import Op, OpName
from ..core.overload import OpOverload
from ..core.stack import bind
from ..core.subclass_door import UNASKED
from ..interp import operator_dispatch
from ..interp.box import map_tensors
from ..interp.function_overrides import asked
from ..memory.assign import assign
from ..memory.versions import bump, mark_written
from ..memory.views import may_write
from ..table.arguments import no_match
from ..table.effects import EffectType, effect_of, register_effect
from ..table.tags import Tag
from ..threads.state import fast, state
from .fallback import through
from .overload_functions import flattened, function_for, rebuilt

_log = logging.getLogger("torch._library.custom_ops")  # where programs listen for it
definitions: dict[str, CustomOpDef] = {}  # "ns::name" -> definition


# overloads outside of the table


class _Name(OpName):
    """The name of an overload, with its namespace as it stands."""

    __slots__ = ()

    def __call__(self) -> str:
        return str(self)


class CustomOverload(OpOverload):
    """The overload of a registered operator; calling it goes through its derivative."""

    custom = True

    def __init__(self, op, definition: CustomOpDef, variant: str = "default"):
        super().__init__(op)
        self.definition, self.variant = definition, variant
        self.name = _Name(op.full_name)
        last = definition._overload or "default" if variant == "default" else variant
        self.__name__ = f"{definition._base}.{last}"

    def __repr__(self) -> str:
        return f"{self.definition._namespace}.{self.__name__}"

    @property
    def rules(self) -> dict:
        """What classes and modes do, where that was registered: class -> function."""
        return self.definition._rules

    @property
    def tags(self) -> list:
        """What was said of the operator when it was defined."""
        return list(self.definition._tags)

    @property
    def overloadpacket(self):
        """The operator with all of its overloads."""
        from .namespaces import packet

        return packet(self.definition._namespace, self.definition._base)

    @property
    def _overloadname(self) -> str:
        return self.definition._overload or "default"

    def __reduce__(self):
        return _found, (self.definition._qualname, self.variant)

    def __call__(self, *args, **kwargs):
        if self.variant == "default":
            return self.definition(*args, **kwargs)
        flat = self.bind(args, kwargs)
        if flat is None:
            raise no_match(repr(self), [self], args, kwargs, errors.CallMismatch)
        return bind(self, flat)

    def decompose(self, *args, **kwargs):
        """A call of an operator that is a function of others, by these; else NotImplemented."""
        flat, whole = self.bind(args, kwargs), self.definition._whole
        return NotImplemented if None in (flat, whole) else self.definition._named(whole, flat)

    namespace = property(lambda self: self.definition._namespace)

    @property
    def lacks_fake(self) -> bool:
        """Does nobody know its results without data?"""
        return self.definition.lacks_fake


_DEVICES = ("cpu", "cuda", "meta", "hip", "hpu", "ipu", "lazy", "maia", "mps", "mtia", "ve", "xla",
            "xpu", "privateuseone")


def known_device(kind: str | None) -> None:
    """Refuse the name of a device type that does not exist."""
    if kind is not None and kind not in _DEVICES:
        raise errors.DeviceError(errors.text(
            f"Expected one of {', '.join(_DEVICES)} device type at start of device string: {kind} "
            f"({errors.user_line(3)})", cure="give a device type, or None for any"))


def _found(name: str, variant: str) -> CustomOverload:
    made = definitions[name]
    return made._opoverload if variant == "default" else made._pure


class FakeImplCtx:
    """What a fake asks for sizes that depend on values."""

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None):
        """A size that the values decide; refused where every size of a graph is a number."""
        if any(isinstance(n, Symbolic) for n in (min, max)) or min < 0:
            raise errors.BadValue(errors.text(
                f"new_dynamic_size(min={min}, max={max}): the bounds are plain numbers, not of "
                f"type SymInt, and min is greater than or equal to 0 ({errors.user_line(2)})"))
        if state.fakes.sizes is not None:
            size = state.fakes.sizes.unbacked()
            if min or max is not None:
                most = state.fakes.sizes.symbols[str(size)].range[1]
                state.fakes.sizes.assume_range(str(size), min, most if max is None else max)
            return size
        raise errors.DataDependentError(errors.text(
            "a fake asks for a data-dependent shape, a size that only values decide "
            f"({errors.user_line(2)})",
            cure="keep the operator outside of the compiled function, or return a size that is "
            "always enough, and the number of elements that count"))

    create_unbacked_symint = new_dynamic_size


running_fake: FakeImplCtx | None = None  # while a fake runs


class CustomOpDef:
    """An operator of the user's: call it, or register more about it."""

    def __init__(self, name: str, schema: str, function=None, device_types=None, tags=()):
        self._namespace, _, self._name = name.partition("::")
        self._base, _, self._overload = self._name.partition(".")
        if not self._base or "::" in self._name:
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
        self._for_all = False  # is that one made of operators, so that it takes fakes, too?
        self._fake = self._backward = self._setup = self._jvp = self._vmap = None
        self._whole = None  # a function of operators, in place of all the rest
        self._autograd = None  # a function that calls the operator below autograd
        self._casts: dict = {}  # device type -> dtype that autocast gives its arguments
        self._cast_kernels: dict = {}  # device type -> function that is called under autocast
        self._rules: dict = {}  # class or mode -> what its __torch_dispatch__ is for the operator
        self._tags = (tags,) if isinstance(tags, Tag) else tuple(tags or ())
        self._disabled: set = set()  # device types whose kernels do not count for now
        self._low = function is None  # of a Library: what autograd does is the kernel's business
        self._make()
        if function is not None:
            functools.update_wrapper(self, function, updated=())
            self.register_kernel(device_types)(function)
        definitions[name] = self

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def _make(self) -> None:
        arguments, arrow, returns = self._schema_text.partition("->")
        if not arrow or "(" not in arguments:
            raise errors.SchemaError(errors.text(
                f"cannot read the schema of {self._qualname}: {self._schema_text!r} "
                f"({errors.user_line(2)})",
                cure='expected schema to look like "(Type argument, ...) -> Type"'))
        arguments = arguments[arguments.index("(") :].strip()
        text = f"{self._name}{arguments} -> {returns.strip()}"
        self._opoverload = CustomOverload(self._entry(text), self)
        self.schema = self._opoverload.schema
        args = self.schema.args
        self._written = [i for i, a in enumerate(args) if a.alias and "!" in a.alias]
        self._count = len(self.schema.returns)
        self._lists = any(a.is_list and a.is_tensor for a in args)
        self._lists_out = any(r.is_list and r.is_tensor for r in self.schema.returns)
        self._keywords = self.schema.kw_only_from
        self._pure = self._opoverload
        if self._written:  # the pure form returns the new values too
            head = re.sub(r"\(a\d*!\)", "", text[: text.index("->")])
            new = ["Tensor[]" if args[i].is_list else "Tensor" for i in self._written]
            both = [*[r.type_text() for r in self.schema.returns], *new]
            tail = both[0] if len(both) == 1 else f"({', '.join(both)})"
            self._pure = CustomOverload(self._entry(f"{head}-> {tail}"), self, "functional")
        self._function = function_for(self)

    # what the overload is made of

    def _entry(self, text: str) -> type[Op]:
        """An entry like those of the table, but not in it."""
        op = type(self._name, (Op,), {"evaluate": classmethod(self._evaluate)})
        op.schema, op.full_name, op.base_name = text, self._qualname, self._base
        op.promote, op.cost, op.memory_format = "keep", "heavy", "as made"
        op.run, op.fake = self._run, self._faked
        op.method = op.function = False
        return op

    def _evaluate(self, cls, *raw):
        from ..array.evaluate import run_raw

        return run_raw(self._pure, raw)

    def _own_kernel(self, raw) -> typing.Callable | None:
        """The function that was registered for the devices of some arguments, or for all."""
        found = self._kernels.get(None)
        if found is not None and len(self._kernels) == 1:
            return found
        own = {k: f for k, f in self._kernels.items() if k not in self._disabled}
        for kind in _devices(raw):
            found = own.get(kind, found)
        return found

    def _kernel(self, raw) -> typing.Callable:
        found = self._own_kernel(raw)
        if found is None:
            where = " and ".join(_devices(raw)) or "any device"
            raise errors.DerivativeNotWritten(
                errors.text(
                    f"Could not run '{self._qualname}' with arguments from the '{where.upper()}' "
                    f"backend: it has no kernel for {where} ({errors.user_line(2)})",
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
        if self._low:  # a kernel of a Library may return what it was given
            inputs = list(tensors_in(handles))
            outs = map_tensors(lambda o: o.clone() if any(_shares(o, t) for t in inputs) else o,
                               self._listed(out))
        else:
            outs = self._checked(out, handles)
        new = [_raw(handles[i]) for i in written]
        values = [_raw(o) for o in outs] + new
        return values[0] if len(values) == 1 else tuple(values)

    def _call_user(self, function, flat):
        """A call below the tape."""
        if True not in state.record:
            return self._named(function, flat)
        with no_grad():
            return self._named(function, flat)

    def _kernel_for(self, flat: tuple) -> typing.Callable:
        """The function that runs for some arguments."""
        return self._kernel(_raw(list(flat)))

    def _listed(self, out, whose: str = "") -> list:
        """One value for each result of the schema, if there are as many."""
        returns = self.schema.returns
        one = len(returns) == 1 and (returns[0].is_list or not isinstance(out, (tuple, list)))
        outs = [out] if one else [] if out is None else (
            list(out) if isinstance(out, (tuple, list)) else [out])
        if len(outs) != len(returns):
            raise errors.ArgumentError(
                errors.text(
                    f"{whose}{self._qualname} returned {len(outs)} values, its schema says "
                    f"{len(returns)} "
                    f"({errors.user_line(2)})",
                    f"schema: {self._qualname}{self.schema.text[self.schema.text.index('(') :]}",
                )
            )
        for i, (o, r) in enumerate(zip(outs, returns)):
            if r.is_list and isinstance(o, tuple):
                outs[i] = o = list(o)
            for t in o if r.is_list and type(o) is list else [o]:
                if r.is_tensor and not isinstance(t, Tensor) and not (
                        t is None and (r.optional or r.optional_items or self._low)):
                    raise errors.RefusedValue(errors.text(
                        f"{whose}{self._qualname}: output {i} must be a {r.type_text()}, got "
                        f"{type(t).__name__} ({errors.user_line(2)})", f"schema: {self.schema}",
                        "return what the schema says"))
        return outs

    def _checked(self, out, handles: list) -> list:
        """The same for results that must be nobody else's memory."""
        outs = self._listed(out)
        seen = list(tensors_in(handles))
        for i, o in enumerate(tensors_in(outs)):
            for t in seen:
                if o is t or _shares(o, t):
                    raise errors.ViewWriteError(
                        errors.text(
                            f"{self._qualname}: output {i} is an input or shares memory with an "
                            f"input or another output ({errors.user_line(2)}); the output of a "
                            "custom operator must not be an input and may not alias any inputs",
                            f"output: {o.dtype.name}{list(o.shape)}",
                            "return a clone() of it",
                        )
                    )
            seen.append(o)
        return outs

    @property
    def lacks_fake(self) -> bool:
        """Does nobody know its results without data?  Who only writes, or acts, has none."""
        if self._fake is not None or self._for_all and None in self._kernels:
            return False
        return bool(self.schema.returns) or not self._written and (
            effect_of(self._opoverload) is None)

    def _faked(self, *raw):
        """What the registered fake makes of arrays without data; who only writes needs none."""
        if self.lacks_fake:
            raise errors.DerivativeNotWritten(
                errors.text(
                    f"{self._opoverload} has no fake: capture and compile "
                    f"need to know the shapes of its results ({errors.user_line(2)})",
                    cure=f"register one with @{self._name}.register_fake",
                )
            )
        given = [_fake_handles(v) for v in raw]
        global running_fake
        before = state.fakes, state.observers
        state.fakes.creates, state.observers.trace = True, None
        outer, running_fake = running_fake, FakeImplCtx()
        fake = self._fake or (self._kernels.get(None) if self._for_all else None)
        try:
            out = None if fake is None else self._call_user(fake, given)
        finally:
            (state.fakes, state.observers), running_fake = before, outer
        found = [_facts(o) for o in (*self._listed(out, "the fake of "),
                                     *[given[i] for i in self._written])]
        return found[0] if len(found) == 1 else tuple(found)

    # registration

    def register_kernel(self, device_types=None, func=None, /):
        """Register the function for one or more device types (None: all)."""

        kinds = (
            [device_types]
            if device_types is None or isinstance(device_types, str)
            else list(device_types)
        )
        for kind in kinds:
            known_device(kind)

        def register(function):
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
        self._function = function_for(self)

    def register_jvp(self, jvp, /) -> None:
        """Register the tangents: `jvp(ctx, *tangents)`; without it `backward` is transposed."""
        self._jvp = jvp
        self._function = function_for(self)

    def register_vmap(self, func=None, /):
        """Register the operator on a batch: `func(info, in_dims, *args) -> (output, out_dims)`."""

        def register(function):
            self._vmap = function
            self._function = function_for(self)
            return function

        return register if func is None else register(func)

    def register_effect(self, effect: EffectType | None) -> None:
        """Register that calls matter whether their results are used or not, and their order."""
        register_effect(self._opoverload, effect)

    def register_torch_dispatch(self, torch_dispatch_class, fn=None, /):
        """Register what a class with `__torch_dispatch__`, or a mode, does for this operator:
        `fn(class or mode, func, types, args, kwargs)` (a decorator)."""
        if not isinstance(torch_dispatch_class, type):
            raise errors.ArgumentError(
                f"register_torch_dispatch: {torch_dispatch_class!r} is no class "
                f"({errors.user_line(2)})")

        def register(function):
            self._rules[torch_dispatch_class] = function
            return function

        return register if fn is None else register(fn)

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
        if device_type not in self._kernels or enabled is (device_type not in self._disabled):
            _log.warning(
                "%s.set_kernel_enabled(%r, %s) changes nothing: %s", self._qualname, device_type,
                enabled, f"it is already {'enabled' if enabled else 'disabled'}"
                if device_type in self._kernels
                else "no kernel was registered for this device type")
        before = set(self._disabled)
        (self._disabled.discard if enabled else self._disabled.add)(device_type)
        try:
            yield
        finally:
            self._disabled = before

    # calls

    def __call__(self, *args, **kwargs):
        if fast["OVERRIDES"]:
            answer = asked(lambda: self._opoverload, args, kwargs)
            if answer is not UNASKED:
                return answer
        flat = self.schema.bind(args, kwargs)
        if flat is None:
            raise no_match(self._qualname, [self], args, kwargs, errors.CallMismatch)
        if (self._casts or self._cast_kernels) and state.autocast is not None:
            return self._call_cast(flat)
        return self._call_flat(flat)

    def _call_cast(self, flat: tuple):
        """A call under autocast: the arguments in the registered dtype, autocast off inside."""
        from ..amp.autocast_mode import _converted, autocast, settings

        now = settings()
        for device, function in self._cast_kernels.items():
            if now.enabled[device]:
                with autocast(device, enabled=False):
                    return self._named(function, flat)
        for device, dtype in self._casts.items():
            if now.enabled[device]:
                with autocast(device, enabled=False):
                    return self._call_flat(_converted(flat, device, dtype))
        return self._call_flat(flat)

    def _call_flat(self, flat: tuple):
        if self._whole is not None and not (
                self._kernels and self._own_kernel(_raw(list(flat)))):
            return self._named(self._whole, flat)
        running = state.dispatch.in_autograd
        if self._autograd is not None and self not in running and not state.inference:
            state.dispatch.in_autograd = (*state.dispatch.in_autograd, self)
            try:
                return self._named(self._autograd, flat)
            finally:
                state.dispatch.in_autograd = state.dispatch.in_autograd[:-1]
        if self._low and self._backward is None and not fast["ACTIVE"] and all(
                is_buffer(t._payload) and not t._dispatched for t in tensors_in(flat)):
            return through(self, flat)
        return self._call(flat)

    def _named(self, function, flat: tuple):
        """A function of the user's on the arguments, as a call writes them."""
        if not self._low:
            positional, rest = flat[: self._keywords], flat[self._keywords :]
            return function(*positional, **dict(zip(self.schema.names[self._keywords :], rest)))
        args, kwargs = self.schema.as_called(flat)
        start = self._keywords
        kwargs |= {a.name: v for a, v in zip(self.schema.args[start:], flat[start:])
                   if not a.has_default}
        return function(*args, **kwargs)

    def _call(self, flat: tuple):
        if self._written:
            return self._call_writing(flat)
        if not (fast["ACTIVE"] or state.inference or _tracked(flat)):
            out = bind(self._pure, flat)  # nobody will ask for gradients
            return self._results([out] if self._count == 1 else out)
        return self._recorded(flat)

    def _recorded(self, flat: tuple):
        """A call with a history."""
        if self._lists:
            widths, leaves = flattened(self.schema.args, flat)
            flat = widths, *leaves
        out = self._function.apply(*flat)
        if self._lists_out:
            return self._results(rebuilt(out[-1], out))
        return self._results([out] if self._count == 1 else out)

    def _call_writing(self, flat: tuple):
        if not _tracked(flat):
            return self._results(self._write(flat))
        if _tracked([flat[i] for i in self._written]):
            raise errors.NotDifferentiable(
                errors.text(
                    f"{self._qualname} writes an argument that requires grad, and has no "
                    f"derivative ({errors.user_line(2)})",
                    cure="call it under no_grad(), or pass x.detach()",
                )
            )
        return self._recorded(flat)

    def _write(self, flat: tuple) -> list:
        """The results of a call that writes arguments."""
        targets = [flat[i] for i in self._written]
        tensors = list(tensors_in(targets))
        for t in tensors:
            may_write(t, False, _level(t))
        somebody = operator_dispatch.somebody(flat) if fast["DISPATCHES"] else None
        if somebody is not None:
            return self._written_by(somebody, flat, tensors)
        plain = not (fast["ACTIVE"] and (state.mode or state.fakes.mode))
        if plain and all(is_buffer(t._payload) for t in tensors_in(flat)):
            for t in tensors_in(flat):
                if t._link is not None:
                    t.shape  # noqa: B018  (brings a view up to date)
            handles = [_handles(_raw(v)) for v in flat]
            outs = self._checked(self._call_user(self._kernel(_raw(list(flat))), handles), handles)
            mark_written(*tensors)
            for t, h in zip(tensors, tensors_in([handles[i] for i in self._written])):
                for _ in range(h._cell.version if h._cell is not None else 0):
                    bump(t)  # once for the call, and for every write inside
            outs = map_tensors(lambda t: make(t._payload), outs)
        else:
            out = bind(self._pure, flat)
            out = [out] if len(self._pure.schema.returns) == 1 else out
            outs, new = out[: self._count], out[self._count :]
            for target, value in zip(targets, new):
                for t, v in zip(tensors_in((target,)), tensors_in((value,))):
                    assign(t, v)
        return outs

    def _written_by(self, somebody: tuple, flat: tuple, tensors: list) -> list:
        """The same where classes or modes answer for the operator, and write."""
        versions = [cell_of(t).version for t in tensors]
        args, kwargs = self.schema.as_called(tuple([operator_dispatch.proper(v) for v in flat]))
        out = operator_dispatch.called(self._opoverload, tuple(args), kwargs, *somebody)
        for t, version in zip(tensors, versions):
            if cell_of(t).version == version:
                bump(t)
        return self._listed(out)

    def _results(self, outs: list):
        """What a call returns: nothing, a value or several; lists are lists."""
        if not self._count:
            return None
        found = [list(o) if r.is_list and type(o) is tuple else o
                 for o, r in zip(outs, self.schema.returns)]
        return found[0] if self._count == 1 else tuple(found)


def _level(t: Tensor) -> int:
    interp = getattr(t._payload, "interp", None)
    return 0 if interp is None else interp.level


def _tracked(flat: tuple) -> bool:
    return any(t._edge is not None and state.record[_level(t)] for t in tensors_in(flat))


def _arrays(raw):
    for v in raw:
        if type(v) is list:
            yield from _arrays(v)
        elif hasattr(v, "dtype") and hasattr(v, "strides"):
            yield v


def _devices(raw) -> set[str]:
    found = {dev.lookup(a)[0].partition(":")[0] for a in _arrays(raw) if is_buffer(a)}
    return found or {v.type for v in raw if isinstance(v, dev.Device)}  # of one that makes tensors


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
    return value._payload if value._link is None else value.detach()._payload


def _fake_handles(value):
    """Handles without data around raw arrays."""
    if type(value) is list:
        return [_fake_handles(v) for v in value]
    if not is_array(value):
        return value
    return make(value if type(value) is Fake else fake_like(value))


def _facts(value):
    """What a fake returned, as arrays without data in memory of their own."""
    if type(value) in (list, tuple):
        return [_facts(v) for v in value]
    return fake_like(_raw(value)) if isinstance(value, Tensor) else value


def _shares(a: Tensor, b: Tensor) -> bool:
    one, two = a._payload, b._payload
    plain = type(one) in ARRAYS and type(two) in ARRAYS
    return plain and one.size > 0 and two.size > 0 and np.may_share_memory(one, two)
