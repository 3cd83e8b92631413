"""How much arithmetic a node of a graph is: for reports, and to price what is computed again.

Matrix products and convolutions count two per multiplication and addition, pointwise operators one
per element of the result, reductions one per element of the operand, views nothing.  Which function
here counts a library call is said by its entry (`flops`).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from math import prod
from typing import Any

from ..graph.node import Node
from ..graph.traits import _size, cost_of, is_tensor, trait


def _shape(node: Any) -> list[int]:
    value = node.meta.get("val") if isinstance(node, Node) else None
    return [_size(n) for n in value.shape] if is_tensor(value) else []


def _elements(value: Any) -> int:
    if isinstance(value, (tuple, list)):
        return sum(map(_elements, value))
    return prod(map(_size, value.shape)) if is_tensor(value) else 0


def product(first: int):
    def count(node: Node, out: int) -> int:
        return 2 * out * (_shape(node.args[first]) or [1])[-1]

    return count


def convolution(node: Node, out: int) -> int:
    weight = _shape(node.args[1])
    transposed = len(node.args) > 6 and node.args[6]
    size = _elements(node.args[0].meta.get("val")) if transposed else out
    return 2 * size * prod(weight[1:])


def convolution_backward(node: Node, out: int) -> int:
    grad, weight = node.args[0], _shape(node.args[2])
    wanted = node.args[-1] if isinstance(node.args[-1], (list, tuple)) else (True, True)
    return 2 * _elements(grad.meta.get("val")) * prod(weight[1:]) * sum(map(bool, wanted[:2]))


def attention(products: int):
    """So many pairs of products, one over the features of keys, one over those of values."""

    def count(node: Node, out: int) -> int:
        first = len(node.args) > 5 and isinstance(node.args[5], Node)  # a gradient comes first
        query, key, value = (_shape(n) for n in node.args[first:first + 3])
        scores = prod(query[:-1]) * key[-2]
        return scores * products * (query[-1] + value[-1])

    return count


@functools.cache
def _count(text: str) -> Callable[[Node, int], int]:
    """The function that an entry names: `convolution`, or one that is made: `product(0)`."""
    return eval(text, globals())


def flops(node: Node) -> int:
    """Arithmetic operations of one node."""
    if node.op != "call_function" or node.target is operator.getitem:
        return 0
    cost, out = cost_of(node.target), _elements(node.meta.get("val"))
    if cost in ("view", "create"):
        return 0
    count = trait(node.target, "flops")
    if count is not None and out:
        return _count(count)(node, out)
    if cost == "reduce":
        return sum(_elements(source.meta.get("val")) for source in node.all_input_nodes)
    if cost == "heavy":
        return out + sum(_elements(source.meta.get("val")) for source in node.all_input_nodes)
    return out
