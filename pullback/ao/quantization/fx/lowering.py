"""Calls between roundings compute with integers: layers are replaced, others take integers.

A call of which all inputs are numbers of quantised tensors, and whose results are rounded, takes
the quantised tensors instead.  What has no form for integers stays between the two.
"""

from __future__ import annotations

import operator
from collections import Counter
from typing import Any

from .... import nn
from ....core.handle import Tensor
from ....graph import GraphModule, Node
from ....nn import functional as F
from ....quantized.construct import quantize_per_tensor_dynamic
from ....quantized.namespace import quantized
from ....table.packets import ops
from ...nn import quantized as nnq
from ...nn.intrinsic import quantized as nniq
from ...nn.intrinsic.quantized import dynamic as nniqd
from ...nn.quantized import dynamic as nnqd
from ...nn.quantized.modules.utils import _quantize_weight
from ..fake_quantize import FakeQuantize
from ..quantization_mappings import (
    get_default_dynamic_quant_module_mappings,
    get_embedding_static_quant_module_mappings,
)
from ..quantize import swap_module
from .prepare import _DYNAMIC, _STATIC, Planned
from .targets import FIXED, LAYER, OWN, SHARED, WEIGHTED, is_number
from .tracing import module_of

_ADDS = (operator.add, operator.iadd, ops.add)
_MULTIPLIES = (operator.mul, operator.imul, ops.mul)


class Lowering:
    """One graph module whose calls are replaced."""

    def __init__(self, model: GraphModule, plan: dict[str, Planned],
                 observers: dict[Node, nn.Module]):
        self.model, self.graph, self.plan, self.observers = model, model.graph, plan, observers
        self.calls = Counter(str(n.target) for n in self.graph.nodes if n.op == "call_module")

    def run(self) -> None:
        for node in list(self.graph.nodes):
            planned = self.plan.get(node.name)
            if planned is not None:
                self._lower(node, planned)
            elif node.op in ("call_method", "call_function") and is_number(node):
                self._take_integers(node)  # sizes need no numbers

    def _lower(self, node: Node, planned: Planned) -> None:
        if planned.kind == LAYER and planned.way != _STATIC:
            self._swap(node, planned, get_default_dynamic_quant_module_mappings())
            return
        if planned.way == _DYNAMIC:
            self._functional(node, planned, None)
            return
        rounded = self._rounded(node, planned)
        if rounded is None:
            return
        if planned.kind == LAYER:
            self._layer(node, planned, rounded)
        elif planned.kind == WEIGHTED:
            self._functional(node, planned, rounded)
        elif planned.kind == OWN:
            self._binary(node, planned, rounded)
        elif planned.kind == SHARED or planned.kind == FIXED and self._direct(node):
            self._same(node, rounded, planned.kind == SHARED)

    # what is around a call ------------------------------------------------------------------------

    def _rounded(self, node: Node, planned: Planned) -> Node | None:
        """The call that rounds the results, if nobody else takes them."""
        last = node
        if planned.relu is not None:
            (last,) = node.users
        users = list(last.users)
        found = users[0] if len(users) == 1 else None
        return found if found in self.observers else None

    def _integers(self, value: Any) -> Node | None:
        """The quantised tensor that a value is the numbers of."""
        known = isinstance(value, Node) and value.op == "call_method" and (
            value.target == "dequantize")
        return value.args[0] if known else None

    def _take_integers(self, node: Node) -> None:
        for value in node.all_input_nodes:
            found = self._integers(value)
            if found is not None:
                node.replace_input_with(value, found)

    def _become(self, rounded: Node, new: Node, keeps_scale: bool = True) -> None:
        """What rounded results is the call itself."""
        if keeps_scale:
            self.observers[new] = self.observers[rounded]
        rounded.replace_all_uses_with(new)
        self.graph.erase_node(rounded)

    def _replace(self, node: Node, planned: Planned, rounded: Node, new: Node,
                 keeps_scale: bool = True) -> None:
        self._become(rounded, new, keeps_scale)
        if planned.relu is not None:
            self.graph.erase_node(next(u for u in node.users if u.name == planned.relu))
        self.graph.erase_node(node)

    def _put(self, node: Node, module: nn.Module) -> None:
        """Another module for a call; one that is called elsewhere as well gets a new place."""
        target = str(node.target)
        self.calls[target] -= 1
        if self.calls[target]:
            node.target = f"{target}_{self.calls[target]}"
        self.model.add_submodule(str(node.target), module)

    # kinds of calls -------------------------------------------------------------------------------

    def _swap(self, node: Node, planned: Planned, mapping: dict) -> None:
        """A layer that takes numbers, and rounds them by itself if it has to."""
        module = module_of(node, self.model)
        module.qconfig = planned.qconfig
        self._put(node, swap_module(module, mapping | _EMBEDDINGS))
        if planned.way == _DYNAMIC:
            for value in node.all_input_nodes:
                self._before(node, value)

    def _before(self, node: Node, value: Node) -> None:
        """Give a call that rounds by itself the value that was to be rounded for it."""
        rounded = self._integers(value)
        if rounded is not None and (
                rounded.target is quantize_per_tensor_dynamic or rounded.target == "to"):
            node.replace_input_with(value, rounded.args[0])

    def _layer(self, node: Node, planned: Planned, rounded: Node) -> None:
        if any(self._integers(v) is None for v in node.all_input_nodes):
            return
        module = module_of(node, self.model)
        module.qconfig = planned.qconfig
        module.activation_post_process = self.observers[rounded]
        self._put(node, swap_module(module, _static()))
        self._take_integers(node)
        self._become(rounded, node, not isinstance(module, nn.Dropout))  # has its input's scale

    def _same(self, node: Node, rounded: Node, shared: bool) -> None:
        """The call itself, on integers: results have the same scale, or that of their range."""
        given = [v for v in node.all_input_nodes if not is_number(v)]
        taken = [self._integers(v) for v in given]
        known = [self.observers.get(v) for v in taken if v is not None]
        alike = all(o is self.observers[rounded] for o in known)
        lost = any(o is None for o in known)  # the scale of a sum or product with a number
        if len(known) < len(given) or shared and not alike and (len(given) > 1 or not lost):
            return  # results would have another scale
        module = module_of(node, self.model)
        if shared and module is not None and type(module) in _static():
            self._put(node, _static()[type(module)].from_float(module))
        self._take_integers(node)
        self._become(rounded, node, alike or not shared)

    def _direct(self, node: Node) -> bool:
        return type(module_of(node, self.model)) is not nn.Softmax

    def _binary(self, node: Node, planned: Planned, rounded: Node) -> None:
        """A sum or a product, of two tensors or of one and a number."""
        name = "add" if node.target in _ADDS else "mul" if node.target in _MULTIPLIES else None
        if name is None or len(node.args) != 2 or node.kwargs:
            return
        given = [self._integers(v) for v in node.args]
        if any(g is None and isinstance(v, Node) for g, v in zip(given, node.args)):
            return
        operands = tuple(v if g is None else g for g, v in zip(given, node.args))
        called = getattr(quantized, f"{name}_relu" if planned.relu else name)
        scale = tuple(rounded.args[1:3]) if None not in given else ()
        with self.graph.inserting_before(rounded):
            new = self.graph.call_function(called, (*operands, *scale))
        self._replace(node, planned, rounded, new, bool(scale))

    def _functional(self, node: Node, planned: Planned, rounded: Node | None) -> None:
        """A function with a weight that is a parameter: a layer that holds it."""
        given = _arguments(node)
        weight, bias = self._integers(given["weight"]), given.get("bias")
        held = weight.args[0] if weight is not None else None
        parameters = all(v is None or isinstance(v, Node) and v.op == "get_attr"
                         for v in (held, bias))
        dynamic = rounded is None
        taken = self._integers(given["input"])
        if held is None or not parameters or taken is None or dynamic and (
                node.target is not F.linear):
            return
        observer: Any = self.observers[weight]
        if observer.dtype.name != "qint8":
            return  # half precision: rounded, and no integers
        numbers = _attribute(self.model, held)
        if not isinstance(observer, FakeQuantize):
            observer(numbers)
        integers = _quantize_weight(numbers.float(), observer)
        new = _linear(integers, planned, dynamic) if node.target is F.linear else _convolution(
            node.target, integers, given, planned)
        offset = None if bias is None else _attribute(self.model, bias)
        new.set_weight_bias(integers, offset)
        if not dynamic:
            scale, zero_point = self.observers[rounded].calculate_qparams()
            new.scale, new.zero_point = float(scale), int(zero_point)
        number = 0
        while hasattr(self.model, f"_{node.name}_{number}"):
            number += 1
        name = f"_{node.name}_{number}"
        self.model.add_submodule(name, new)
        last = node if rounded is None else rounded
        with self.graph.inserting_before(last):
            plain = taken.args[0] if dynamic else taken
            call = self.graph.call_module(name, (plain,))
        if rounded is not None:
            self._replace(node, planned, rounded, call)
            return
        last = node if planned.relu is None else next(iter(node.users))
        last.replace_all_uses_with(call)
        for gone in (last, node) if last is not node else (node,):
            self.graph.erase_node(gone)


_EMBEDDINGS = {kind: new for kind, new in get_embedding_static_quant_module_mappings().items()
               if new in (nnq.Embedding, nnq.EmbeddingBag)}


def _static() -> dict:
    return get_embedding_static_quant_module_mappings()


def _attribute(model: nn.Module, node: Node) -> Tensor:
    path, _, name = str(node.target).rpartition(".")
    return getattr(model.get_submodule(path), name)


def _arguments(node: Node) -> dict[str, Any]:
    names = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
    return dict(zip(names, node.args)) | node.kwargs


def _linear(weight: Tensor, planned: Planned, dynamic: bool) -> Any:
    places = (nnqd, nniqd) if dynamic else (nnq, nniq)
    cls = places[1].LinearReLU if planned.relu else places[0].Linear
    return cls(weight.shape[1], weight.shape[0], dtype=weight.dtype)


def _convolution(function: Any, weight: Tensor, given: dict, planned: Planned) -> Any:
    dims = weight.ndim - 2
    cls = getattr(nniq if planned.relu else nnq, f"Conv{'ReLU' if planned.relu else ''}{dims}d")
    groups = given.get("groups", 1)
    return cls(weight.shape[1] * groups, weight.shape[0], tuple(weight.shape[2:]),
               stride=given.get("stride", 1), padding=given.get("padding", 0),
               dilation=given.get("dilation", 1), groups=groups)
