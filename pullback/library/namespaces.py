"""Libraries and namespaces: `Library("mine", "DEF")`, `ops.mine.name`.

A library defines operators by their schemas and gives them functions for dispatch keys; they live
as long as it does.  Read first: `definition.py`.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Iterator
from typing import Any

from .. import errors
from ..core.overload import OpOverload
from ..core.subclass_door import UNASKED
from ..interp.function_overrides import asked
from ..memory.storage_calls import found as memory_call
from ..table.arguments import no_match
from ..table.derived_overloads import Derived
from ..table.effects import EffectType, register_effect
from ..threads.state import fast
from .definition import CustomOpDef, CustomOverload, definitions, known_device

_whole_namespaces: set = set()  # of which there is a Library of the kind DEF
_pending: dict[str, list] = {}  # functions for operators that are not defined yet


def definition_of(op: Any, what: str = "register") -> CustomOpDef:
    """The definition of an operator, given as an object or by its name."""
    if isinstance(op, CustomOpDef):
        return op
    if isinstance(op, (CustomOverload, Packet)):
        return op.definition
    if not isinstance(op, str):
        raise errors.BadValue(errors.text(
            f"{what}({op!r}): got unexpected type for op: {type(op)} ({errors.user_line(3)})",
            cure="give the name of a registered operator, or the operator itself"))
    found = definitions.get(op.removesuffix(".default"))
    if found is None:
        raise errors.UnknownOperator(errors.text(
            f"operator {op} does not exist ({errors.user_line(3)})",
            cure=errors.UnknownOperator.cure))
    return found


def fallthrough_kernel(*args: Any, **kwargs: Any) -> None:
    """Registered for a dispatch key, leaves it to the next one; not to be called."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def define_operator(qualname: str, schema: str, tags: Any = ()) -> None:
    """A new operator; functions that were registered for it before are its."""
    if qualname in definitions:
        raise errors.TransformError(errors.text(
            f"Tried to register an operator ({qualname}) with the same name and overload name "
            f"multiple times ({errors.user_line(3)})",
            cure="give it another name, or drop the Library that defined it"))
    made = CustomOpDef(qualname, schema, tags=tags)
    for function, key in _pending.pop(qualname, ()):
        _registered(made, function, key)


_EVERY = ("", "default", "compositeexplicitautograd", "compositeexplicitautogradnonfunctional",
          "backendselect")
_NEVER = ("functionalize", "python", "adinplaceorview", "functorchbatched", "conjugate", "negative",
          "zerotensor", "pythontlssnapshot", "functorchbatcheddecomposition", "predispatch")


def implement(qualname: str, function: Any, key: str) -> None:
    """Register a function under the name of a dispatch key, for an operator that may come later."""
    _check_key(function, key)
    made = definitions.get(qualname)
    if made is None:
        _pending.setdefault(qualname, []).append((function, key))
    else:
        _registered(made, function, key)


def key_name(key: str) -> str | None:
    """What is left to check of a dispatch key: a device type; None for keys without one."""
    name = key.lower()
    for prefix in ("autograd", "autocast"):
        if name.startswith(prefix):
            name = name[len(prefix):]
    return None if name in _EVERY or name == "compositeimplicitautograd" else name


def _check_key(function: Any, key: str) -> None:
    name = key_name(key)
    if name is None:
        return
    if name in _NEVER:
        if function is not fallthrough_kernel:
            raise errors.NotInThisBuild(errors.text(
                f"functions for the dispatch key {key} are never called here "
                f"({errors.user_line(4)})",
                cure="register a kernel, a fake, a gradient or a batching rule instead"))
        return
    try:
        known_device("privateuseone" if name.startswith("privateuse") else name)
    except errors.DeviceError as error:
        raise errors.RefusedValue(errors.text(
            f"could not parse dispatch key: {key} ({errors.user_line(4)})",
            cure="CPU, CUDA, Meta, Autograd, AutocastCPU, CompositeExplicitAutograd, "
            "CompositeImplicitAutograd, ...")) from error


def _place(op: CustomOpDef, key: str) -> tuple[dict, Any]:
    """Where the function for a dispatch key is kept: a dictionary and a name in it."""
    key = key.lower()
    if key in _EVERY:
        return op._kernels, None
    for prefix, name in (("compositeimplicitautograd", "_whole"), ("meta", "_fake"),
                         ("autograd", "_autograd")):
        if key.startswith(prefix):
            return vars(op), name
    if key.startswith("autocast"):
        return op._cast_kernels, key.removeprefix("autocast")
    return op._kernels, key


def _registered(op: CustomOpDef, function: Any, key: str) -> None:
    if function is not fallthrough_kernel and key.lower() not in _NEVER:
        space, name = _place(op, key)
        space[name] = function
        if name is None:
            op._for_all = key.lower().startswith("compositeexplicitautograd")


def _withdrawn(qualname: str, function: Any, key: str) -> None:
    """Take back a registration."""
    waiting = _pending.get(qualname, [])
    if (function, key) in waiting:
        waiting.remove((function, key))
    op = definitions.get(qualname)
    if op is not None and key.lower() not in _NEVER:
        space, name = _place(op, key)
        if space.get(name) is function:
            if space is vars(op):
                space[name] = None
            else:
                del space[name]


class _Hold:
    """Lives as long as a library; what it registered goes with it."""


class Library:
    """Operators of one namespace: `Library("mine", "DEF")`, then `define` and `impl`."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = ""):
        if kind not in ("DEF", "IMPL", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in ("prim", "aten") and kind in ("DEF", "FRAGMENT"):
            raise ValueError(
                f"{ns} is a reserved namespace. Please try creating a library with another name."
            )
        if kind == "DEF" and ns in _whole_namespaces:
            raise errors.TransformError(errors.text(
                f"Only a single TORCH_LIBRARY can be used to register the namespace {ns} "
                f"({errors.user_line(2)})", cure=f'add to it with Library("{ns}", "FRAGMENT")'))
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._names: set = set()
        self._functions: list = []
        if kind == "DEF":
            _whole_namespaces.add(ns)
        # operators and functions live as long as the library that they came from
        self.m = _Hold()
        self._destroy = weakref.finalize(
            self.m, _undefine, ns, kind, self._names, self._functions)

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an operator: `define("name(Tensor x) -> Tensor")`; returns its name.

        `name.overload` is one more overload of the operator.
        """
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis} "
                               f"({errors.user_line(2)})")
        if self.kind == "IMPL":
            raise errors.TransformError(
                f"a library of kind IMPL cannot define operators ({errors.user_line(2)})"
            )
        name = schema.partition("(")[0].strip()
        define_operator(f"{self.ns}::{name}", schema, tags)
        self._names.add(name)
        return name.partition(".")[0]

    def impl(self, op_name: Any, fn: Any, dispatch_key: str = "", *, with_keyset: bool = False,
             allow_override: bool = True) -> None:
        """Give an operator a function for a dispatch key ("CPU", "Meta", "Autograd", ...).

        With `with_keyset` the function gets the name of the key before the arguments.
        """
        if not callable(fn):
            raise TypeError(
                f"Input function is required to be a callable but found type {type(fn)}"
            )
        if self.dispatch_key and dispatch_key not in ("", self.dispatch_key):
            raise errors.RefusedValue(errors.text(
                f"the dispatch key {dispatch_key} is inconsistent with the dispatch key of the "
                f"library ({errors.user_line(2)})", f"{self!r}", "use another library for it"))
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        name = self._qualified(op_name, "impl")
        function = functools.partial(fn, key) if with_keyset else fn
        if self.ns == "aten":
            from .replaced import replace

            self._functions.append(replace(name.removeprefix("aten::"), function, key))
            return
        implement(name, function, key)
        self._functions.append(functools.partial(_withdrawn, name, function, key))

    def _qualified(self, op_name: Any, what: str) -> str:
        """The name of an operator of this library, with its namespace."""
        if isinstance(op_name, (CustomOverload, CustomOpDef, Packet)):
            op_name = definition_of(op_name)._qualname
        elif isinstance(op_name, (OpOverload, Derived)):
            op_name = f"aten::{op_name!r}".replace("aten.", "", 1)
        if not isinstance(op_name, str):
            raise errors.RefusedValue(errors.text(
                f"{what} should be passed either a name or an OpOverload object as the first "
                f"argument, got {op_name!r} ({errors.user_line(3)})"))
        space, _, name = op_name.rpartition("::")
        if space not in ("", self.ns):
            raise errors.RefusedValue(errors.text(
                f"{what}({op_name!r}): the namespace of the operator name does not match namespace "
                f"{self.ns} of the library ({errors.user_line(3)})",
                cure=f'use Library("{space}", "IMPL")'))
        return f"{self.ns}::{name.removesuffix('.default')}"

    def fallback(self, fn: Any, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Refused: a function for all operators of a dispatch key."""
        raise errors.NotInThisBuild(errors.text(
            f"there are no functions for all operators of a dispatch key ({errors.user_line(2)})",
            cure="a dispatch mode (torch.utils._python_dispatch) sees all operators"))

    def _register_fake(self, op_name: Any, fn: Any, _stacklevel: int = 1, *,
                       allow_override: bool = True) -> None:
        definition_of(self._qualified(op_name, "register_fake")).register_fake(fn)

    def _register_torch_dispatch_rule(self, op_name: Any, torch_dispatch_class: type,
                                      fn: Any) -> None:
        definition_of(self._qualified(op_name, "register_torch_dispatch")).register_torch_dispatch(
            torch_dispatch_class, fn)

    def _register_effectful_op(self, op_name: Any, effect: EffectType | None) -> None:
        register_effect(self._qualified(op_name, "register_effectful_op"), effect)


@contextlib.contextmanager
def scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    """A library whose operators are gone after the block."""
    made = Library(*args, **kwargs)
    try:
        yield made
    finally:
        made._destroy()


def _undefine(ns: str, kind: str, names: set, functions: list) -> None:
    for withdraw in functions:
        withdraw()
    for name in names:
        definitions.pop(f"{ns}::{name}", None)
        register_effect(f"{ns}::{name}", None)
    if kind == "DEF":
        _whole_namespaces.discard(ns)


class Packet:
    """`ops.ns.name`: the operator; `.default` and the like are its overloads."""

    def __init__(self, namespace: str, name: str):
        self._namespace, self.__name__ = namespace, name

    def __reduce__(self) -> tuple:
        return packet, (self._namespace, self.__name__)  # found by its name: copies are itself

    def _all(self) -> dict[str, CustomOpDef]:
        """Overload -> definition, in the order in which they were defined."""
        whole = f"{self._namespace}::{self.__name__}"
        return {d._overload or "default": d for q, d in definitions.items()
                if q == whole or q.startswith(f"{whole}.")}

    @property
    def _qualified_op_name(self) -> str:
        return f"{self._namespace}::{self.__name__}"

    @property
    def definition(self) -> CustomOpDef:
        """The definition of the first overload."""
        return next(iter(self._all().values()))

    @property
    def functional(self) -> CustomOverload:
        """The overload that returns what the operator writes."""
        return self.definition._pure

    def __getattr__(self, name: str) -> CustomOverload:
        found = None if name.startswith("__") else self._all().get(name)
        if found is None:
            raise AttributeError(
                f"The underlying op of '{self!r}' has no overload name '{name}'")
        return found._opoverload

    def __repr__(self) -> str:
        return f"{self._namespace}.{self.__name__}"

    def __deepcopy__(self, memo: dict) -> Packet:
        return self  # a name for what is registered

    def __copy__(self) -> Packet:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if fast["OVERRIDES"]:
            answer = asked(lambda: self, args, kwargs)
            if answer is not UNASKED:
                return answer
        found = list(self._all().values())
        if len(found) == 1:
            return found[0](*args, **kwargs)
        for made in found:
            flat = made.schema.bind(args, kwargs)
            if flat is not None:
                return made(*args, **kwargs)
        raise no_match(repr(self), found, args, kwargs, errors.CallMismatch)

    def overloads(self) -> list[str]:
        return list(self._all())


@functools.cache
def packet(namespace: str, name: str) -> Packet:
    """The one object behind `ops.namespace.name`."""
    return Packet(namespace, name)


class Namespace:
    """`ops.ns`: the operators that were registered under one name."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Packet:
        whole = f"{self._name}::{name}"
        if not any(q == whole or q.startswith(f"{whole}.") for q in definitions):
            call = memory_call(self._name, name)
            if call is not None:
                return call
            raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")
        return packet(self._name, name)

    def __reduce__(self) -> tuple:
        return namespace, (self._name,)

    def __repr__(self) -> str:
        return f"<operators of the namespace {self._name}>"


@functools.cache
def namespace(name: str) -> Namespace:
    """The one object behind `ops.name`."""
    return Namespace(name)
