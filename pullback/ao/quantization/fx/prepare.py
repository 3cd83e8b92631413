"""Observers in a graph: behind the calls that will compute with integers, and before them.

What was decided for each call is kept in `model.meta["quantization"]`, for `convert.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .... import errors, nn
from ....core.handle import Tensor
from ....graph import GraphModule, Node
from ....nn import functional as F
from ....table.packets import ops
from ..fake_quantize import FakeQuantize
from ..observer import FixedQParamsObserver, ReuseInputObserver
from ..qconfig import QConfigAny
from ..qconfig_mapping import QConfigMapping
from ..quantization_mappings import (
    get_default_dynamic_quant_module_mappings,
    get_default_qat_module_mappings,
    get_default_static_quant_module_mappings,
    get_embedding_qat_module_mappings,
)
from .custom_config import PrepareCustomConfig
from .fuse import is_relu
from .targets import FIXED, LAYER, OWN, SHARED, WEIGHTED, is_number, kind_of
from .tracing import Configurations, module_of

_STATIC, _DYNAMIC, _WEIGHT_ONLY = "static", "dynamic", "weight only"
_RECURRENT = (nn.LSTM, nn.GRU, nn.LSTMCell, nn.GRUCell, nn.RNNCell)
_TABLES = tuple({old for old in get_embedding_qat_module_mappings()
                 if old not in get_default_qat_module_mappings()})


class Planned(NamedTuple):
    """What was decided for a call."""

    kind: str
    way: str  # are its inputs rounded with scales that are known before?
    qconfig: Any
    relu: str | None = None  # the name of the call of a rectifier that belongs to it


def way_of(qconfig: Any) -> str | None:
    """How a configuration quantises; None: not at all."""
    activation, weight = qconfig.activation(), qconfig.weight()
    if isinstance(activation, ReuseInputObserver):
        return _STATIC
    name, of_weight = (getattr(getattr(o, "dtype", None), "name", "") for o in (activation, weight))
    if getattr(activation, "is_dynamic", False):
        return _DYNAMIC
    if name in ("quint8", "qint8"):
        return _STATIC
    return _WEIGHT_ONLY if name in ("float32", "") and of_weight.startswith("qu") else None


def fits(node: Node, kind: str, way: str, module: nn.Module | None, qconfig: Any) -> bool:
    """Is there a call with integers for this one, in this way?"""
    if kind != SHARED and isinstance(qconfig.activation(), ReuseInputObserver):
        return False  # it has a scale of its own
    if kind == LAYER:
        table = isinstance(module, _TABLES)
        if way == _WEIGHT_ONLY or table:
            return way == _WEIGHT_ONLY and table
        mapping = (get_default_dynamic_quant_module_mappings() if way == _DYNAMIC
                   else get_default_static_quant_module_mappings()
                   | get_default_qat_module_mappings())
        return type(module) in mapping
    if way == _DYNAMIC:
        return node.target is F.linear
    if kind == FIXED:
        made = qconfig.activation()
        inner = made.activation_post_process if isinstance(made, FakeQuantize) else made
        return isinstance(inner, FixedQParamsObserver)
    return way == _STATIC


def prepare(model: GraphModule, mapping: QConfigMapping, is_qat: bool,
            config: PrepareCustomConfig, example_inputs: Any = ()) -> GraphModule:
    """The same graph module with observers."""
    plan = _plan(model, mapping, _integers(model, example_inputs))
    if is_qat:
        _swap_for_training(model, plan)
    _Observing(model, plan, config).run()
    model.meta["quantization"] = plan
    model.graph.lint()
    model.recompile()
    return model


def _integers(model: GraphModule, example_inputs: Any) -> set[Node]:
    """Inputs that hold integers: numbers of rows, places."""
    inputs = [n for n in model.graph.nodes if n.op == "placeholder"]
    given = example_inputs if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    return {n for n, v in zip(inputs, given) if isinstance(v, Tensor) and not (
        v.is_floating_point() or v.is_quantized)}


def _plan(model: GraphModule, mapping: QConfigMapping,
          integers: set[Node]) -> dict[str, Planned]:
    configurations, plan, taken = Configurations(mapping, model), {}, set()
    for node in model.graph.nodes:
        kind = None if node.name in taken else kind_of(node, model)
        given = [n for n in node.all_input_nodes if not is_number(n)]
        if kind in (SHARED, OWN) and given and all(n in integers for n in given):
            integers.add(node)
            continue
        qconfig = configurations.of(node) if kind is not None else None
        if kind is None or qconfig is None:
            continue
        way = way_of(qconfig)
        if way is None or not fits(node, kind, way, module_of(node, model), qconfig):
            continue
        (user, *more) = node.users or [None]
        relu = kind in (OWN, WEIGHTED) and user is not None and not more and (
            is_relu(user, model) or kind == OWN and user.target is ops.relu)
        plan[node.name] = Planned(kind, way, qconfig, user.name if relu else None)
        if relu:
            taken.add(user.name)
    return plan


def _swap_for_training(model: GraphModule, plan: dict[str, Planned]) -> None:
    """Layers become those that round their weight."""
    for node in model.graph.nodes:
        planned, module = plan.get(node.name), module_of(node, model)
        if planned is None or module is None or planned.kind != LAYER:
            continue
        mapping = (get_embedding_qat_module_mappings() if planned.way == _WEIGHT_ONLY
                   else get_default_qat_module_mappings())
        if type(module) not in mapping or planned.way == _DYNAMIC:
            continue
        module.qconfig = planned.qconfig
        new = mapping[type(module)].from_float(module)
        parent, _, own = str(node.target).rpartition(".")
        setattr(model.get_submodule(parent), own, new)


class _Observing:
    """Puts observers into a graph module, call by call."""

    def __init__(self, model: GraphModule, plan: dict[str, Planned], config: PrepareCustomConfig):
        self.model, self.plan, self.config = model, plan, config
        self.graph = model.graph
        self.behind: dict[Node, Node] = {}  # call -> the observer of its results
        self.before: dict[tuple, Node] = {}  # value, way -> an observer for those who round it
        self.inputs = [n for n in self.graph.nodes if n.op == "placeholder"]

    def run(self) -> None:
        quantised = {self.inputs[i] for i in self.config.input_quantized_indexes}
        for node in list(self.graph.nodes):
            planned = self.plan.get(node.name)
            if planned is None:
                continue
            values = self._tensors(node, planned)
            if isinstance(planned.qconfig.activation(), ReuseInputObserver):
                values = [v for v in values if self._is_observer(v)]  # nothing is rounded for it
            for i, value in enumerate(values):
                if value in quantised:
                    self.before.setdefault((value, _STATIC), value)
                weight = planned.kind == WEIGHTED and i == 1
                new = self._weight(value, planned) if weight else self._observed(value, planned)
                node.replace_input_with(value, new)
            self._results(node, planned)
        outputs = next(n for n in self.graph.nodes if n.op == "output")
        for i in self.config.output_quantized_indexes:
            given = outputs.args[0] if isinstance(outputs.args[0], (tuple, list)) else outputs.args
            if not self._is_observer(given[i]):
                raise errors.RefusedValue(errors.text(
                    f"prepare_fx(): result {i} of the model is not that of a call that computes "
                    f"with integers ({errors.user_line(4)})", f"it is {given[i]}",
                    "leave it out of output_quantized_indexes"))
        self.model.meta["quantized results"] = tuple(self.config.output_quantized_indexes)
        self.model.meta["quantized inputs"] = tuple(n.name for n in quantised)

    def _tensors(self, node: Node, planned: Planned) -> list[Node]:
        """The values that a call rounds: inputs, and weights that are no part of a module."""
        if planned.way == _WEIGHT_ONLY or isinstance(module_of(node, self.model), _RECURRENT):
            return []
        if planned.kind == WEIGHTED:
            given = [node.args[0] if node.args else node.kwargs["input"],
                     node.args[1] if len(node.args) > 1 else node.kwargs["weight"]]
            return [v for v in given if isinstance(v, Node)]
        whole = planned.kind == OWN and node.target not in (
            F.layer_norm, F.instance_norm)  # of these the input alone
        given = node.all_input_nodes if whole or planned.kind == SHARED else (
            [node.args[0]] if node.args else node.all_input_nodes[:1])
        return [v for v in given if isinstance(v, Node) and not is_number(v)]

    def _is_observer(self, node: Any) -> bool:
        return isinstance(node, Node) and node in (*self.behind.values(), *self.before.values())

    def _observed(self, value: Node, planned: Planned) -> Node:
        if planned.way == _STATIC and self._is_observer(value):
            return value
        key = value, planned.way
        if key not in self.before:
            self.before[key] = self._insert(value, planned.qconfig.activation())
        return self.before[key]

    def _weight(self, value: Node, planned: Planned) -> Node:
        key = value, "weight"
        if key not in self.before:
            self.before[key] = self._insert(value, planned.qconfig.weight())
        return self.before[key]

    def _insert(self, value: Node, observer: nn.Module) -> Node:
        number = 0
        while hasattr(self.model, f"activation_post_process_{number}"):
            number += 1
        name = f"activation_post_process_{number}"
        self.model.add_submodule(name, observer.train(self.model.training))
        with self.graph.inserting_after(value):
            return self.graph.call_module(name, (value,))

    def _results(self, node: Node, planned: Planned) -> None:
        """An observer behind a call, or behind the rectifier that belongs to it."""
        if planned.way != _STATIC:
            return
        last = node if planned.relu is None else next(
            user for user in node.users if user.name == planned.relu)
        given = [v for v in node.all_input_nodes if not is_number(v)]
        if planned.kind == SHARED or planned.kind == OWN and len(given) == 1 and (
                len(node.args) == 2 and node.target not in (F.elu, F.leaky_relu)):  # and a number
            given = [v for v in given if self._is_observer(v)]
            if not given:
                return
            self._unite(given)
            observer = self.model.get_submodule(str(given[0].target)) if (
                given[0].op == "call_module") else planned.qconfig.activation()
        else:
            observer = planned.qconfig.activation()
        users = list(last.users)
        new = self.behind[node] = self._insert(last, observer)
        for user in users:
            user.replace_input_with(last, new)

    def _unite(self, given: list[Node]) -> None:
        """Give values that come to lie in one tensor one observer, but for known ranges."""
        first, *others = [v for v in given if v.op == "call_module"] or [None]
        if first is None:
            return
        kept = self.model.get_submodule(str(first.target))
        for other in others:
            old = self.model.get_submodule(str(other.target))
            if type(old) is not type(kept) or isinstance(old, FixedQParamsObserver):
                continue
            setattr(self.model, str(other.target), kept)


def as_mapping(given: Any) -> QConfigMapping:
    """A mapping out of one, or of a dictionary."""
    if isinstance(given, QConfigMapping):
        return given
    if isinstance(given, dict):
        return QConfigMapping.from_dict(given)
    raise TypeError(f"qconfig_mapping is a {type(given).__name__}; give a QConfigMapping "
                    f"({errors.user_line(3)})")


__all__ = ["Planned", "QConfigAny", "prepare"]
