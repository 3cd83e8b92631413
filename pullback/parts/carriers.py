"""Backward through tensors that are made of parts: their carriers stand for them.

`autograd.grad` and `backward` come here once there is such a tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..pytree import tree_leaves, tree_map
from ..table.packets import ops
from .tensor import PartsTensor


def _one(value: Any) -> Any:
    return value.values_with_history if isinstance(value, PartsTensor) else value


def _each(values: Any) -> Any:
    return [_one(v) for v in values] if isinstance(values, (list, tuple)) else _one(values)


def carriers(outputs: Any, inputs: Any, gradients: Any) -> tuple:
    """(outputs, inputs, their gradients) with carriers in the places of tensors of parts, and what
    puts gradients together again; that is None where there is no such tensor."""
    if not any(isinstance(v, PartsTensor) for v in tree_leaves((outputs, inputs, gradients))):
        return outputs, inputs, gradients, None
    listed = [outputs] if not isinstance(outputs, (list, tuple)) else list(outputs)
    if gradients is not None:
        given = [gradients] if not isinstance(gradients, (list, tuple)) else list(gradients)
        gradients = [_cotangent(out, g) for out, g in zip(listed, given)]
        further = [pair for out, g in zip(listed, given) if isinstance(out, PartsTensor)
                   and g is not None for pair in out.further_cotangents(g)]
        listed = [*listed, *[t for t, _ in further]]
        gradients += [g for _, g in further]
    asked = [inputs] if not isinstance(inputs, (list, tuple)) else list(inputs)

    def closed(found: tuple) -> tuple:
        return tuple([t.with_carrier(g) if isinstance(t, PartsTensor) and g is not None else g
                      for t, g in zip(asked, found)])

    return [_one(v) for v in listed], _each(inputs), gradients, closed


def _cotangent(out: Any, g: Any) -> Any:
    if not isinstance(out, PartsTensor) or g is None:
        return _one(g)
    return out.cotangent(g)


def on_carriers(function: Callable, inputs: Any) -> tuple[Callable, tuple]:
    """A function of the carriers of tensors that are made of parts, and these in their places.

    So checks of derivatives change the elements that there are, and look at those of results.
    """
    given = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)

    def inside(*carried):
        # a view: of a leaf itself, sparse, there may be gradients of what it has no entries for
        whole = [t.with_carrier(ops.alias(c)) if isinstance(t, PartsTensor) else c
                 for t, c in zip(given, carried)]
        return function(*whole)

    return inside, tuple(map(_one, given))


def shown_elements(tree: Any) -> Any:
    """A tree with dense tensors in the places of those that are made of parts: their elements."""
    return tree_map(lambda v: v.elements() if isinstance(v, PartsTensor) else v, tree)
