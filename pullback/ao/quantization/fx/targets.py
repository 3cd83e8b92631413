"""What becomes of the calls of a graph that is quantised.

A *layer* is replaced by one that computes with integers; its results get an observer.  An *own*
call has results with an observer of their own, those of a *fixed* one lie in a known range.  A
*shared* call moves or chooses elements: results have the observer of what goes in.  All others
stay as they are, with numbers.
"""

from __future__ import annotations

import operator
from typing import Any

from .... import nn
from ....graph import Node
from ....nn import functional as F
from ....table.packets import ops
from ..quantization_mappings import (
    get_default_dynamic_quant_module_mappings,
    get_default_qat_module_mappings,
    get_default_static_quant_module_mappings,
)
from ..stubs import DeQuantStub, QuantStub
from .tracing import module_of

LAYER, OWN, FIXED, SHARED, WEIGHTED = "layer", "own", "fixed", "shared", "weighted"
SIZE = "size"  # no tensor
known: dict[Any, str] = {}  # class, function or name of a method -> kind


def _are(kind: str, *targets: Any) -> None:
    known.update(dict.fromkeys(targets, kind))


_are(LAYER, *get_default_static_quant_module_mappings(), *get_default_qat_module_mappings(),
     *get_default_dynamic_quant_module_mappings())
for _stub in (QuantStub, DeQuantStub):
    del known[_stub]
_are(WEIGHTED, F.linear, F.conv1d, F.conv2d, F.conv3d)
_are(OWN, operator.add, operator.mul, operator.iadd, operator.imul, ops.add, ops.mul, ops.matmul,
     F.layer_norm, F.instance_norm, F.hardswish, F.elu, F.leaky_relu)
_are(FIXED, nn.Sigmoid, nn.Tanh, nn.Hardsigmoid, nn.Softmax, ops.sigmoid, ops.tanh, F.sigmoid,
     F.tanh, F.hardsigmoid, "sigmoid", "sigmoid_", "tanh", "tanh_", "hardsigmoid", "hardsigmoid_")
_are(SHARED, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d, nn.AvgPool1d,
     nn.AvgPool2d, nn.AvgPool3d, nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.Hardtanh,
     nn.Identity, nn.PixelShuffle, nn.PixelUnshuffle, nn.ReLU, nn.ReLU6, nn.Flatten,
     F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d, F.avg_pool1d,
     F.avg_pool2d, F.avg_pool3d, F.max_pool1d, F.max_pool2d, F.max_pool3d, F.dropout, F.hardtanh,
     F.interpolate, F.pixel_shuffle, F.pixel_unshuffle, F.relu, F.relu_, F.relu6, ops.relu,
     ops.cat, ops.clamp, ops.flatten, ops.mean, ops.permute, ops.repeat_interleave, ops.reshape,
     ops.squeeze, ops.transpose, ops.unsqueeze, ops.max_pool1d, ops.max_pool2d, ops.max_pool3d,
     ops.avg_pool1d, ops.adaptive_avg_pool1d,
     "clamp", "contiguous", "detach", "mean", "permute", "relu", "relu_", "repeat",
     "repeat_interleave", "reshape", "squeeze", "squeeze_", "transpose", "unsqueeze", "unsqueeze_",
     "view")  # fmt: skip


_are(SIZE, "size", "dim", "numel")


def kind_of(node: Node, model: nn.Module) -> str | None:
    """What becomes of a call; None: nothing."""
    if node.op == "call_module":
        return known.get(type(module_of(node, model)))
    if node.op not in ("call_function", "call_method"):
        return None
    try:
        found = known.get(node.target)
    except TypeError:  # a target that cannot be looked up
        return None
    return None if found is None or found == SIZE or is_number(node) else found


def is_number(value: Any) -> bool:
    """Is a value of the graph no tensor: a size, or what follows from sizes?"""
    if not isinstance(value, Node):
        return True
    if value.op == "call_method" and known.get(value.target) == SIZE:
        return True
    if value.op == "call_function" and value.target is getattr:
        return value.args[1] in ("shape", "ndim", "dtype", "device")
    given = value.all_input_nodes
    return value.op in ("call_function", "call_method") and bool(given) and all(
        map(is_number, given))
