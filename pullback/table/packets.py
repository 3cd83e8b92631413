"""The table as callables: `ops.mul(x, y)` finds the overload and runs it.

`ops` resolves any public operator name, in-place names included, lazily.  A `Packet` is the family
of overloads under one name.  Read next: `core/stack.py` for what a call does.
"""

from __future__ import annotations

from ..core import doors
from ..core.handle import Tensor
from ..core.op import _watchers as watchers
from ..core.op import aliases, families, ops, registry
from ..core.overload import OFTEN, OpOverload, overload_of
from ..core.stack import bind
from ..core.subclass_door import UNASKED, door
from ..core.surface import inplace
from ..errors import ArgumentError, DataDependentError, module_of, place, user_line
from ..memory.out import write_out
from ..memory.storage_calls import found as storage_call
from ..threads.state import calling, fast
from .arguments import no_match
from .catalog import load, load_all
from .derived_overloads import (
    InplaceOverload,
    OutOverload,
    inplace_overload,
    overload_name,
    writing_overloads,
)

__all__ = ["Packet", "load_all", "method_packet", "ops", "registry"]


class Strangers(Exception):
    """Arguments that are no tensors take part in a call."""


class Packet:
    """All overloads of one name; calling it picks the first that fits."""

    def __init__(self, name: str, base: str, inplace: bool, method: str | None = None):
        self.name = self.__name__ = self.__qualname__ = name
        self._method = method  # of Tensor, if it is not the function of the package
        self._base = base
        self._inplace = inplace
        self._overloads: list[OpOverload] = []
        self._count = -1
        self._fast = None  # generated on the first call; False where there is nothing to gain
        self._plans: dict = {}  # kind of call -> the function that does it
        self._seen: dict = {}  # kind of call -> how often it came without a plan

    def __repr__(self) -> str:
        return f"aten.{self.name}"

    def __reduce__(self):
        return (getattr, (ops, self.name))

    def __deepcopy__(self, memo):
        return self

    @property
    def __doc__(self):
        return self.entries()[0].op.__doc__

    def entries(self) -> list[OpOverload]:
        """The overloads in order; follows later additions to the table."""
        family = families[self._base]
        if len(family) != self._count:
            count = len(family)
            self._overloads = [overload_of(op) for op in family if op.inplace or not self._inplace]
            self._count = count  # last: other threads look at it first
        return self._overloads

    @property
    def _qualified_op_name(self) -> str:
        return f"aten::{self.name}"

    def overloads(self) -> list[str]:
        name = inplace_overload if self._inplace else overload_name
        return [name(o) for o in self.entries()]

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        for o, own in zip(self.entries(), self.overloads()):
            if own == name:
                return InplaceOverload(o) if self._inplace else o
        writing = [] if self._inplace else writing_overloads(self.entries(), name)
        if writing:
            return OutOverload(self.name, name, writing)
        raise AttributeError(
            f"operator '{self.name}' has no overload '{name}'; it has "
            + ", ".join(self.overloads())
        )

    def resolve(self, args: tuple, kwargs: dict) -> tuple[OpOverload, tuple]:
        """The first overload that takes the call, with its flat arguments."""
        if fast["ACTIVE"]:
            before, calling.in_passing = calling.in_passing, True
            try:
                found, hidden = self._find(args, kwargs)
            finally:
                calling.in_passing = before
        else:
            found, hidden = self._find(args, kwargs)
        if found is not None:
            return found
        old = self._old_call(args, kwargs)
        if old is not None:
            return old
        for o in hidden:  # only with the numbers that tensors hold
            flat = o.bind(args, kwargs)
            if flat is not None:
                return o, flat
        if not fast["OVERRIDES"] and door.members((*args, *kwargs.values())):
            raise Strangers
        raise no_match(self.name, self._overloads, args, kwargs)

    def _old_call(self, args: tuple, kwargs: dict) -> tuple | None:
        """The same for calls whose arguments are in an order that was usual once."""
        if self.name not in (self._base, f"{self._base}_"):  # `subtract` is not as old as `sub`
            return None
        from .legacy import find_legacy

        return find_legacy(self._overloads, self._method is not None, args, kwargs)

    def _find(self, args: tuple, kwargs: dict) -> tuple:
        """The overload without a look at values, or those that want numbers of tensors."""
        hidden = []
        for o in self.entries():
            try:
                flat = o.bind(args, kwargs)
            except DataDependentError:  # it wants a number; another may take the tensor
                hidden.append(o)
                continue
            if flat is not None:
                return (o, flat), None
        return None, hidden

    def __call__(self, *args, **kwargs):
        if not kwargs:
            if self._fast:
                out = self._fast(*args)
                try:
                    edge = out._edge
                except AttributeError:  # an argument has answered, with something else
                    return out
                if edge is not None:
                    edge.where = place()  # the fast path took this frame for the user's
                return out
            plan = self._plans.get((*map(type, args),))
            if plan is not None:
                return plan(*args)
            if self._fast is None and fast["ACTIVE"] == fast["WATCHED"]:
                self._fast = False
                if not self._inplace and families[self._base][0].kind == "pointwise":
                    from ..eager.fast import family

                    self._fast = family(self, self._planned) or False
        return self._planned(*args, **kwargs)

    def _planned(self, *args, **kwargs):
        """By the plan of this kind of call, or in general; often enough, and it gets a plan."""
        kind = (
            (*map(type, args), *kwargs, *map(type, kwargs.values()))
            if kwargs
            else (*map(type, args),)
        )
        plan = self._plans.get(kind)
        if plan is not None:
            return plan(*args, **kwargs)
        result = self._general(*args, **kwargs)
        seen = self._seen[kind] = self._seen.get(kind, 0) + 1
        # not for numbers that tensors hold, nor for an old order
        if seen == OFTEN and not fast["ACTIVE"] and self._find(args, kwargs)[0]:
            plan = doors.plan(self, args, kwargs)
            if plan is not None:
                self._plans[kind] = plan
        return result

    def forget(self) -> None:
        """Drop what was generated, because the entries or their formulas have changed."""
        self._fast = None
        self._plans.clear()
        self._seen.clear()

    def _public(self):
        """What users call."""
        return self if self._method is None else getattr(Tensor, self._method)

    def _as_written(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """Arguments without the defaults that generated functions pass on."""
        if families[self._base][0].kind != "pointwise":
            return args, kwargs
        specs = self.entries()[0].schema.args
        defaults = {s.name: s.default for s in specs if s.has_default}
        kwargs = {k: v for k, v in kwargs.items()
                  if k not in defaults or type(v) is not type(defaults[k]) or v != defaults[k]}
        while 1 < len(args) <= len(specs) and specs[len(args) - 1].has_default:
            value, given = specs[len(args) - 1].default, args[-1]
            if type(value) is not type(given) or value != given:
                break
            args = args[:-1]
        return args, kwargs

    def _general(self, *args, **kwargs):
        if fast["OVERRIDES"]:
            answer = door.asked(self._public, *self._as_written(args, kwargs))
            if answer is not UNASKED:
                return answer
        out = kwargs.pop("out", None) if kwargs else None
        requires_grad = kwargs.pop("requires_grad", None) if kwargs else None
        try:
            chosen, flat = self.resolve(args, kwargs)
        except Strangers:
            given = door.members((*args, *kwargs.values()))
            if not all(module_of(type(v)).startswith("pullback.") for v in given):
                door.ask_from_now_on()  # our own (a symbolic trace's) see to the rest themselves
            return door.answered(self._public(), given, args, kwargs)
        if requires_grad is not None and "pin_memory" not in chosen.schema.names:
            self._refuse("requires_grad")  # no argument of those that make tensors
        if self._inplace:
            if out is not None:
                self._refuse("out")
            return inplace(chosen, flat)
        if out is not None:
            return write_out(chosen, flat, out)
        result = bind(chosen, flat)
        if requires_grad:
            result.requires_grad_(True)
        if type(result) is list and not (result and type(result[0]) is int):
            return tuple(result)
        return result

    def _refuse(self, name: str):
        raise ArgumentError(f"{self.__name__}() got an unexpected keyword argument '{name}' "
                            f"({user_line(3)})")


def found(name: str) -> Packet:
    """The packet of an operator's name."""
    base, inplace = name, False
    if name not in families and name not in aliases and name.endswith("_"):
        base, inplace = name[:-1], True
    base = aliases.get(base, base)
    load(base)  # all of the family
    if base not in families and not name.startswith("__"):
        load_all()  # an entry that `names.py` does not list yet
    if base not in families or (inplace and not any(op.inplace for op in families[base])):
        call = storage_call("aten", name)
        if call is None:
            raise AttributeError(f"the operator table has no '{name}'")
        return call
    packet = vars(ops)[name] = Packet(name, base, inplace)
    return packet


_methods: dict[tuple[str, str], Packet] = {}


def method_packet(name: str, public: str) -> Packet:
    """The overloads that a method of Tensor calls; `public` is the method that users know."""
    found = _methods.get((name, public))
    if found is None:
        own = getattr(ops, name)
        found = _methods[name, public] = Packet(own.name, own._base, own._inplace, public)
    return found


def packets_of(base: str) -> list[Packet]:
    """All packets that stand for the overloads of a name."""
    return [p for p in (*vars(ops).values(), *_methods.values()) if p._base == base]


def _entry_added(op) -> None:
    for packet in packets_of(op.base_name):
        packet.forget()


watchers.append(_entry_added)
