"""Gradients that are wrappers, or made of parts as sparse ones are, in compiled functions.

Such a gradient leaves the graph as several results for one input (`spread`), whatever the input is,
and is put together again after the call (`gathered`).  Read `subclasses.py` first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ..array.size import Symbolic
from ..core.handle import Tensor
from ..parts import PartsTensor
from ..pytree import tree_leaves, tree_map
from .subclasses import closed, is_wrapper, parts_of, plan_of, size_nodes


@dataclass(eq=False)
class PartsPlan:
    """How a tensor that is made of others, a sparse gradient, is put together."""

    cls: type[PartsTensor]
    names: tuple[str, ...]
    meta: Any

    @property
    def count(self) -> int:
        return len(self.names)

    def symbols(self) -> list:
        """Sizes that are not known yet."""
        return [n for n in tree_leaves(self.meta) if isinstance(n, Symbolic)]

    def sized(self, number: Callable[[Any], Any]) -> PartsPlan:
        """With other sizes: what a function says of each."""
        known = lambda n: number(n) if isinstance(n, Symbolic) else n
        return replace(self, meta=tree_map(known, self.meta))

    def build(self, tensors: Iterator[Tensor]) -> PartsTensor:
        """The tensor that has the next tensors as parts."""
        return self.cls.join({name: next(tensors) for name in self.names}, self.meta)


def spread(level: Any, backward: Any, chosen: list, grads: list) -> list:
    """Nodes of the gradients, several for one that is a wrapper; `backward.grad_of` says of whom.
    """
    nodes: list = []
    backward.grad_of = []
    for (i, _), g in zip(chosen, grads):
        parts, plan = [g], None
        if isinstance(g, PartsTensor):
            plan = PartsPlan(type(g), g.names, g.meta())
            parts = [getattr(g, name) for name in g.names]
        elif g is not None and is_wrapper(g):
            parts, plan = parts_of(g), plan_of(g)
        if plan is not None:
            backward.wrapped[len(backward.grad_of)] = plan
            backward.wrapper_sizes[len(backward.grad_of)] = size_nodes(plan)
        backward.grad_of += [i] * len(parts)
        nodes += [None if p is None else level.node(p) for p in parts]
    return nodes


def gathered(wrapped: dict, grads: list) -> list:
    """Gradients of which some make one wrapper: that is the first's, the others have none."""
    out = list(grads)
    for k, plan in wrapped.items():
        parts = grads[k : k + plan.count]
        if not isinstance(plan, PartsPlan):
            out[k] = closed(parts, plan)
        elif not isinstance(parts[0], PartsTensor):  # else operator by operator, so it is one
            out[k] = plan.build(iter(parts))
        out[k + 1 : k + plan.count] = [None] * (plan.count - 1)
    return out
