"""Tensors that modules hold: a captured function may find others there when it runs, or put some.

A parameter or buffer that a function met is an input of its graph.  It is looked up by its name
before every call, so that one that was replaced meanwhile (`module.weight = ...`) is used.  What
the function itself assigns (`self.cache = ...`) is a result of the graph, and every call assigns
it.  Variables are looked up in the same way (`variables.py`).  Read next: `capture/capture.py`.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.handle import Tensor, is_composed
from ..errors import module_of
from ..pytree import tree_flatten
from ..tensor.hooks import of_all_modules, of_all_steps
from . import objects
from .impure_calls import Watch
from .reachable import HOOKS, PLAIN, Reach, Variable
from .side_effects import Before, Effects, Slot, same_items
from .variables import Facts, Outside, asks_facts, same_now, variables

_TABLES = ("_parameters", "_buffers")
_PLAIN = {bool, int, float, str, type(None)}

if TYPE_CHECKING:
    from ..capture.joint import Joint


def roots_of(*starts: Any) -> list:
    """The modules that a function is, is a method of, or reaches by a variable."""
    return Reach(starts).modules


class ModuleTree:
    """The parts of modules, as a part of signatures: asked before every call."""

    def __init__(self, roots: list):
        self.roots, self.generation = roots, 0
        self._look()

    def _look(self) -> None:
        self.states = [vars(m) for m in {
            id(m): m for root in self.roots for m in root.modules()}.values()]
        self.tables = [s["_modules"] for s in self.states]
        self.inner = [list(t.values()) for t in self.tables]

    def modes(self) -> tuple:
        """A number that changes with the parts, and which of them are in training."""
        if [list(t.values()) for t in self.tables] != self.inner:
            self.generation += 1
            self._look()
        return (self.generation, *[s["training"] for s in self.states])


class Snapshot:
    """What modules and variables held before a capture; leaving it puts everything back."""

    def __init__(self, *starts: Any, tensors_only: bool = False):
        self.reach = reach = Reach(
            (*starts, *[f for t in (*of_all_modules, *of_all_steps) for f in t.values()]))
        self.modules = list({id(m): m for root in reach.modules for m in root.modules()}.values())
        self.compared, self.named = variables(reach) if reach.variables else ([], [])
        self.tables = [(t, dict(t)) for m in self.modules for t in (
            *[vars(m)[n] for n in _TABLES], vars(m))]
        self.before = Before(reach, [t for t, _ in self.tables], tensors_only)

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, kind: type | None, error: Any, trace: Any) -> None:
        before = self.before
        failed = isinstance(error, Exception) and not isinstance(error, Effects)
        changed = failed and (before.touched() or before.changed())
        before.put_back()
        if before.tensors_only or not failed:
            return
        if changed or not module_of(type(error)).startswith("pullback."):
            # if it is the user's it comes again, then with all that the function does before
            raise Effects(f"it fails while it is captured ({type(error).__name__})") from error

    def watched(self) -> Any:
        """A block for the function to run in."""
        if self.before.tensors_only:
            return contextlib.nullcontext()
        if why := self.reach.refused():
            raise Effects(why)
        if any(hasattr(t, "materialize") for table, _ in self.tables for t in table.values()):
            raise Effects("its parameters get their shapes when it runs")
        return Watch(self.reach)

    def refuse_arguments(self, flat: list) -> None:
        """Refuse arguments that nothing can stand for."""
        if self.before.tensors_only:
            return
        if any(isinstance(v, np.ndarray) for v in flat):
            raise Effects("there are arrays of NumPy among its arguments, which are no tensors")
        named = self.reach.attributes | self.reach.set
        if any(not named.isdisjoint(vars(v)) for v in flat if isinstance(v, Tensor)):
            raise Effects("it uses attributes that tensors among its arguments have got")

    def refuse_attributes(self, out: Any, held: list, level: Any) -> None:
        """Refuse tensors that the function has made, given attributes, and left to somebody."""
        if self.before.tensors_only:
            return
        left = [*tree_flatten(out)[0], *[leaf for _, leaves in held for leaf in leaves]]
        if any(isinstance(t, Tensor) and level.mine(t) and level.original(t) is None
               and not self.reach.set.isdisjoint(vars(t)) for t in left):
            raise Effects("it gives attributes to a tensor that it has made")

    def taken(self, out: Any, given: list, now: list) -> Any:
        """What the function returned, if a program can do what it did; `given` are its arguments
        before, `now` after."""
        if self.before.tensors_only:
            return out
        self.before.refuse()
        if not same_items(now, given) or any(
                not self.reach.set.isdisjoint(vars(t)) for t in given if isinstance(t, Tensor)):
            raise Effects("it changes lists, tables or objects among its arguments")
        if all(isinstance(v, Tensor) or v.__class__ in PLAIN for v in tree_flatten(out)[0]):
            return out
        return objects.results(out, self.reach, given)

    def slots(self) -> dict[int, list[Slot | Variable]]:
        """Where each tensor was, by its identity."""
        found: dict[int, list[Slot | Variable]] = {}
        for table, before in self.tables:
            for name, value in before.items():
                if isinstance(value, Tensor):
                    found.setdefault(id(value), []).append(Slot(table, name))
        named: dict[int, list] = {}
        for variable, value in self.named:
            if variable.found([]) is value:
                named.setdefault(id(value), []).append(variable)
        return named | found

    def looked_up(self, joint: Joint) -> None:
        """Have inputs of a program that modules hold looked up by their names when it runs; numbers
        and texts that they hold must be the same then, but for those that the function counts."""
        slots, guards = self.slots(), joint.guards.python
        fixed = {id(g.tensor) for g in (*joint.guards.inputs, *joint.effects)
                 if hasattr(g, "tensor")}
        plain = [(table, name, v) for table, before in self.tables[2::3]
                 for name, v in before.items()
                 if _is_plain(v) and not self.reach.only_counted(name)]
        if plain:
            guards.append(Same([p[:2] for p in plain], [p[2] for p in plain]))
        if self.modules:
            guards.append(Hooked(
                [vars(m)[name] for m in self.modules for name in HOOKS] + of_all_modules))
        guards += [functools.partial(_holds, [Slot(table, name)], v)
                   for table, before in self.tables for name, v in before.items()
                   if isinstance(v, Tensor) and is_composed(v)]
        compared = [(v, value) for v, value in self.compared if same_now(value, v.found([]))]
        if asks_facts(self.reach):  # of tensors that are no inputs, since only facts are used
            inputs = set(map(id, joint.inputs.adopted))
            compared += [(v, Facts(t)) for v, t in self.named
                         if id(t) not in inputs and v.found([]) is t]
        if compared:
            guards.insert(0, Outside(compared))
        adopted = joint.inputs.adopted
        for t in [g.tensor for g in joint.guards.inputs if hasattr(g, "tensor")]:
            if id(t) in slots and not any(t is a for a in adopted):  # read, and no input
                guards.append(functools.partial(_holds, slots[id(t)], t))
        for k, t in enumerate(adopted):
            places = slots.get(id(t)) if isinstance(t, Tensor) else None
            if places is None:
                continue
            if id(t) in fixed:  # more is known of this very tensor
                guards.append(functools.partial(_holds, places, t))
                continue
            adopted[k] = places[0]
            if len(places) > 1:  # tied
                guards.append(functools.partial(_tied, places))


class Same:
    """Do places in modules hold equal values?"""

    __slots__ = ("at", "values")

    def __init__(self, at: list[tuple[dict, str]], values: list):
        self.at, self.values = at, values

    def __call__(self) -> bool:
        return [table.get(name) for table, name in self.at] == self.values

    def places(self, known: set) -> tuple[list[tuple], None]:
        """What holds while the same objects are there (`capture/fast_guards.py`)."""
        return self.at, None


class Hooked:
    """Are the hooks in tables of modules those that were there?"""

    __slots__ = ("numbers", "tables")

    def __init__(self, tables: list[dict]):
        self.tables, self.numbers = tables, list(map(list, tables))

    def __call__(self) -> bool:
        return list(map(list, self.tables)) == self.numbers

    def places(self, known: set) -> tuple[list, None]:
        """Nothing but the tables (`capture/fast_guards.py`)."""
        return [], None


def _is_plain(value: Any) -> bool:
    return value.__class__ in _PLAIN or value.__class__ is tuple and all(map(_is_plain, value))


def _holds(places: list[Slot | Variable], t: Tensor) -> bool:
    return all(p.found([]) is t for p in places)


def _tied(places: list[Slot | Variable]) -> bool:
    return _holds(places, places[0].found([]))
