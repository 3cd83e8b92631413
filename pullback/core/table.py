"""The table as callables: `ops.mul(x, y)` finds the overload and runs it.

`ops` resolves any public operator name, in-place names included, lazily.  A `Packet` is the family
of overloads under one name.  Read next: `stack.py` for what a call does.
"""

from __future__ import annotations

from ..errors import ArgumentError, DataDependentError, user_line
from . import surface
from .catalog import load_all
from .handle import Tensor
from .op import OpOverload, aliases, families, no_match, overload_of, registry
from .op import _watchers as watchers
from .stack import bind
from .state import fast
from .tape import place

OFTEN = 12  # calls of a kind until it gets a plan, whose making costs as much as hundreds

__all__ = ["Packet", "load_all", "ops", "registry"]


class Handed(Exception):
    """A call was answered by an argument that is no tensor but knows what to do with it."""

    def __init__(self, result):
        self.result = result


def _handed(packet: Packet, args: tuple, kwargs: dict):
    """What an argument's `__torch_function__` makes of a call that no overload takes."""
    given = (*args, *kwargs.values())
    for value in [v for a in given for v in (a if type(a) in (list, tuple) else [a])]:
        hook = getattr(type(value), "__torch_function__", None)
        if hook is not None and not isinstance(value, Tensor):
            result = hook(packet, (type(value),), args, kwargs)
            if result is not NotImplemented:
                return result
    return NotImplemented


class Packet:
    """All overloads of one name; calling it picks the first that fits."""

    def __init__(self, name: str, base: str, inplace: bool):
        self.name = self.__name__ = self.__qualname__ = name
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
            self._count = len(family)
            self._overloads = [overload_of(op) for op in family if op.inplace or not self._inplace]
        return self._overloads

    def overloads(self) -> list[str]:
        name = surface.inplace_overload if self._inplace else surface.overload_name
        return [name(o) for o in self.entries()]

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        for o, own in zip(self.entries(), self.overloads()):
            if own == name:
                return surface.InplaceOverload(o) if self._inplace else o
        writing = [] if self._inplace else surface.writing_overloads(self.entries(), name)
        if writing:
            return surface.OutOverload(self.name, name, writing)
        raise AttributeError(
            f"operator '{self.name}' has no overload '{name}'; it has "
            + ", ".join(self.overloads())
        )

    def resolve(self, args: tuple, kwargs: dict) -> tuple[OpOverload, tuple]:
        """The first overload that takes the call, with its flat arguments."""
        hidden = None
        for o in self.entries():
            try:
                flat = o.bind(args, kwargs)
            except DataDependentError as error:  # it wants a number; another may take the tensor
                hidden = hidden or error
                continue
            if flat is not None:
                return o, flat
        handed = _handed(self, args, kwargs) if hidden is None else NotImplemented
        if handed is not NotImplemented:
            raise Handed(handed)
        raise hidden or no_match(self.name, self._overloads, args, kwargs)

    def __call__(self, *args, **kwargs):
        kind = (
            (*map(type, args), *kwargs, *map(type, kwargs.values()))
            if kwargs
            else (*map(type, args),)
        )
        plan = self._plans.get(kind)
        if plan is not None:
            return plan(*args, **kwargs)
        if not kwargs:
            if self._fast:
                out = self._fast(*args)
                if out._edge is not None:
                    out._edge.where = place()  # the fast path took this frame for the user's
                return out
            if self._fast is None and fast["ACTIVE"] == fast["WATCHED"]:
                self._fast = False
                if not self._inplace and families[self._base][0].kind == "pointwise":
                    from .fast import family

                    self._fast = family(self, self._general) or False
        result = self._general(*args, **kwargs)
        seen = self._seen[kind] = self._seen.get(kind, 0) + 1
        if seen == OFTEN and not fast["ACTIVE"]:
            from .plan import make_plan

            plan = make_plan(self, args, kwargs)
            if plan is not None:
                self._plans[kind] = plan
        return result

    def forget(self) -> None:
        """Drop what was generated, because the entries or their formulas have changed."""
        self._fast = None
        self._plans.clear()
        self._seen.clear()

    def _general(self, *args, **kwargs):
        out = kwargs.pop("out", None) if kwargs else None
        requires_grad = kwargs.pop("requires_grad", None) if kwargs else None
        try:
            chosen, flat = self.resolve(args, kwargs)
        except Handed as handed:
            return handed.result
        if requires_grad is not None and "pin_memory" not in chosen.schema.names:
            self._refuse("requires_grad")  # no argument of those that make tensors
        if self._inplace:
            if out is not None:
                self._refuse("out")
            return surface.inplace(chosen, flat)
        if out is not None:
            return surface.write_out(chosen, flat, out)
        result = bind(chosen, flat)
        if requires_grad:
            result.requires_grad_(True)
        return result


    def _refuse(self, name: str):
        raise ArgumentError(f"{self.__name__}() got an unexpected keyword argument '{name}' "
                            f"({user_line(3)})")


class _Ops:
    """Attribute access to every operator of the table."""

    def __getattr__(self, name: str) -> Packet:
        base, inplace = name, False
        if name not in families and name not in aliases and name.endswith("_"):
            base, inplace = name[:-1], True
        base = aliases.get(base, base)
        if base not in families and not name.startswith("__"):
            load_all()  # an entry that `names.py` does not list yet
        if base not in families or (inplace and not any(op.inplace for op in families[base])):
            raise AttributeError(f"the operator table has no '{name}'")
        packet = Packet(name, base, inplace)
        self.__dict__[name] = packet
        return packet

    def __reduce__(self) -> str:
        return "ops"  # the one that is there, not a copy with what it has found

    def __contains__(self, name: str) -> bool:
        try:
            getattr(self, name)
        except AttributeError:
            return False
        return True

    def __dir__(self):
        return sorted(families)


ops = _Ops()


def _entry_added(op) -> None:
    for packet in vars(ops).values():
        if packet._base == op.base_name:
            packet.forget()


watchers.append(_entry_added)
