"""How much arithmetic a node of a graph is: for reports, and to price what is computed again.

Matrix products and convolutions count two per multiplication and addition, pointwise operators one
per element of the result, reductions one per element of the operand, views nothing.
"""

from __future__ import annotations

import operator
from math import prod
from typing import Any

from ..graph.node import Node
from ..graph.traits import _size, base_name, cost_of, is_tensor


def _shape(node: Any) -> list[int]:
    value = node.meta.get("val") if isinstance(node, Node) else None
    return [_size(n) for n in value.shape] if is_tensor(value) else []


def _elements(value: Any) -> int:
    if isinstance(value, (tuple, list)):
        return sum(map(_elements, value))
    return prod(map(_size, value.shape)) if is_tensor(value) else 0


def _product(first: int):
    def count(node: Node, out: int) -> int:
        return 2 * out * (_shape(node.args[first]) or [1])[-1]

    return count


def _convolution(node: Node, out: int) -> int:
    weight = _shape(node.args[1])
    transposed = len(node.args) > 6 and node.args[6]
    size = _elements(node.args[0].meta.get("val")) if transposed else out
    return 2 * size * prod(weight[1:])


def _convolution_backward(node: Node, out: int) -> int:
    grad, weight = node.args[0], _shape(node.args[2])
    wanted = node.args[-1] if isinstance(node.args[-1], (list, tuple)) else (True, True)
    return 2 * _elements(grad.meta.get("val")) * prod(weight[1:]) * sum(map(bool, wanted[:2]))


def _attention(products: int):
    """So many pairs of products, one over the features of keys, one over those of values."""

    def count(node: Node, out: int) -> int:
        first = len(node.args) > 5 and isinstance(node.args[5], Node)  # a gradient comes first
        query, key, value = (_shape(n) for n in node.args[first:first + 3])
        scores = prod(query[:-1]) * key[-2]
        return scores * products * (query[-1] + value[-1])

    return count


_COUNTS = {
    "mm": _product(0),
    "bmm": _product(0),
    "mv": _product(0),
    "dot": _product(0),
    "matmul": _product(0),
    "addmm": _product(1),
    "addmv": _product(1),
    "baddbmm": _product(1),
    "_scaled_dot_product_flash_attention_for_cpu": _attention(2),
    "_scaled_dot_product_flash_attention_for_cpu_backward": _attention(5),
    "convolution": _convolution,
    "convolution_backward": _convolution_backward,
}


def flops(node: Node) -> int:
    """Arithmetic operations of one node."""
    if node.op != "call_function" or node.target is operator.getitem:
        return 0
    cost, out = cost_of(node.target), _elements(node.meta.get("val"))
    if cost in ("view", "create"):
        return 0
    count = _COUNTS.get(base_name(node.target))
    if count is not None and out:
        return count(node, out)
    if cost == "reduce":
        return sum(_elements(source.meta.get("val")) for source in node.all_input_nodes)
    if cost == "heavy":
        return out + sum(_elements(source.meta.get("val")) for source in node.all_input_nodes)
    return out
