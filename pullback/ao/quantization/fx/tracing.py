"""The graph of a model that is quantised, and the configuration of each of its calls."""

from __future__ import annotations

import re
from typing import Any

from .... import nn
from ....graph import Graph, GraphModule, Node
from ....graph.tracer import Tracer
from ...nn.intrinsic import _FusedModule
from ...nn.quantized import FloatFunctional, FXFloatFunctional
from ..qconfig import QConfigAny
from ..qconfig_mapping import QConfigMapping
from .custom_config import PrepareCustomConfig


class QuantizationTracer(Tracer):
    """A tracer to whom layers of `ao.nn`, and what users name, are calls as well."""

    def __init__(self, skipped_module_names: list[str], skipped_module_classes: list[type]):
        super().__init__()
        self.skipped_module_names = skipped_module_names
        self.skipped_module_classes = skipped_module_classes

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        ours = type(m).__module__.startswith((f"{_OWN}.ao.nn", "torch.ao.nn")) and not isinstance(
            m, nn.Sequential)
        return (super().is_leaf_module(m, module_qualified_name) or isinstance(m, _FusedModule)
                or ours and not isinstance(m, FXFloatFunctional)
                or module_qualified_name in self.skipped_module_names
                or type(m) in self.skipped_module_classes)


_OWN = __package__.partition(".")[0]


def traced(model: nn.Module, config: PrepareCustomConfig) -> GraphModule:
    """The graph module of a model; one that is a graph module keeps its graph's form."""
    _plain_functionals(model)
    tracer = QuantizationTracer(config.non_traceable_module_names,
                                config.non_traceable_module_classes)
    graph: Graph = tracer.trace(model)
    new = GraphModule(model, graph)
    new.train(model.training)
    return new


def keep_attributes(new: GraphModule, old: nn.Module, names: list[str]) -> None:
    """Give a graph module attributes of the model that it was made of."""
    kept = {name: getattr(old, name) for name in names if hasattr(old, name)}
    for name, value in kept.items():
        setattr(new, name, value)


def _plain_functionals(model: nn.Module) -> None:
    """Sums and products of eager quantisation become plain ones."""
    for name, child in list(model.named_children()):
        if isinstance(child, FloatFunctional):
            model._modules[name] = FXFloatFunctional()
        else:
            _plain_functionals(child)


def module_of(node: Node, model: nn.Module) -> nn.Module | None:
    """The module that a node calls."""
    return model.get_submodule(str(node.target)) if node.op == "call_module" else None


def scope_of(node: Node) -> str:
    """The path of the module in which a function is called, or of the module that is called."""
    if node.op == "call_module":
        return str(node.target)
    return next(reversed(node.meta.get("nn_module_stack", {"": None})), "")


class Configurations:
    """Which configuration each call of a graph has."""

    def __init__(self, mapping: QConfigMapping, model: nn.Module):
        self.mapping, self.model = mapping, model
        self.counts: dict[tuple, int] = {}

    def of(self, node: Node) -> QConfigAny:
        """The configuration of a call: by place, by name, by class or function, or of all."""
        mapping, scope, kinds = self.mapping, scope_of(node), self.kinds(node)
        parent = scope.rpartition(".")[0] if node.op == "call_module" else scope
        for kind in kinds:
            count = self.counts[parent, kind] = self.counts.get((parent, kind), -1) + 1
            known = mapping.module_name_object_type_order_qconfigs
            if (parent, kind, count) in known:
                return known[parent, kind, count]
        path = scope
        while path:
            if path in mapping.module_name_qconfigs:
                return mapping.module_name_qconfigs[path]
            path = path.rpartition(".")[0]
        for pattern, qconfig in mapping.module_name_regex_qconfigs.items():
            if re.match(pattern, scope):
                return qconfig
        for kind in kinds:
            if kind in mapping.object_type_qconfigs:
                return mapping.object_type_qconfigs[kind]
        for _, kind in reversed(node.meta.get("nn_module_stack", {}).values()):
            if kind in mapping.object_type_qconfigs:  # of a module around it
                return mapping.object_type_qconfigs[kind]
        return mapping.global_qconfig

    def kinds(self, node: Node) -> list:
        """What users may name a call by: its function, or the class of its module and of the
        layers that it was made of."""
        module = module_of(node, self.model)
        if module is None:
            return [node.target]
        layers = list(module) if isinstance(module, _FusedModule) else []
        return [type(module), *(type(layer) for layer in layers[:1])]
