"""Observers of a graph become calls that round and give numbers again.

What is rounded before and behind a call is then computed with integers where that is possible
(`lowering.py`); without that the graph is a *reference*: it says in numbers what integers would do.
"""

from __future__ import annotations

import copy
from typing import Any

from .... import errors, nn
from ....array import dtype as dt
from ....creation import as_tensor
from ....graph import GraphModule, Node
from ....quantized import construct
from ...nn.intrinsic import _FusedModule
from ...nn.quantized.reference import referenced
from ..fake_quantize import FakeQuantize
from ..observer import _is_activation_post_process
from ..qconfig_mapping import QConfigMapping
from .lowering import Lowering
from .targets import LAYER
from .tracing import Configurations, module_of, scope_of


def convert(observed: GraphModule, is_reference: bool, mapping: QConfigMapping | None,
            remove_qconfig: bool = True) -> GraphModule:
    """A graph module with integers, or one that says in numbers what they would do."""
    if "quantization" not in observed.meta:
        raise errors.RefusedValue(errors.text(
            f"convert_fx(): the model has no observers ({errors.user_line(3)})",
            f"it is a {type(observed).__name__}", "prepare_fx(model, mapping, inputs) first"))
    model = copy.deepcopy(observed).eval()
    model.meta = dict(model.meta)
    plan = model.meta.pop("quantization")
    if mapping is not None:
        _leave_out(model, plan, mapping)
    rounds = _Rounding(model)
    rounds.run()
    if is_reference:
        _to_references(model, plan)
    else:
        Lowering(model, plan, rounds.observers).run()
    _give_integers(model, model.meta.pop("quantized results", ()))
    model.graph.eliminate_dead_code()
    for target in dict.fromkeys(rounds.targets):  # some are one observer under several names
        model.delete_submodule(target)
    model.delete_all_unused_submodules()
    model.requires_grad_(False)  # what is rounded has no derivatives
    if remove_qconfig:
        for module in model.modules():
            module.__dict__.pop("qconfig", None)
    model.graph.lint()
    model.recompile()
    return model


def _leave_out(model: GraphModule, plan: dict, mapping: QConfigMapping) -> None:
    """Calls that a new mapping has nothing for stay as they are."""
    configurations = Configurations(mapping, model)
    for node in list(model.graph.nodes):
        if node.name not in plan or configurations.of(node) is not None:
            continue
        relu = plan.pop(node.name).relu
        last = node if relu is None else next(u for u in node.users if u.name == relu)
        for user in list(last.users):
            if _is_activation_post_process(module_of(user, model)):
                user.replace_all_uses_with(last)
                model.graph.erase_node(user)


class _Rounding:
    """Makes calls that round out of observers."""

    def __init__(self, model: GraphModule):
        self.model, self.graph = model, model.graph
        self.observers: dict[Node, nn.Module] = {}  # call that rounds -> what knows its scale
        self.targets: list[str] = []  # where observers were

    def run(self) -> None:
        for node in list(self.graph.nodes):
            module = module_of(node, self.model)
            if _is_activation_post_process(module):
                self._replace(node, module)
            elif node.name in self.model.meta.get("quantized inputs", ()):
                self._numbers(node)
        self.model.meta.pop("quantized inputs", None)

    def _replace(self, node: Node, observer: Any) -> None:
        value, dtype = node.args[0], getattr(observer, "dtype", None)
        self.targets.append(str(node.target))
        if getattr(dtype, "name", "") not in ("quint8", "qint8", "qint32", "float16"):
            node.replace_all_uses_with(value)
            self.graph.erase_node(node)
            return
        with self.graph.inserting_before(node):
            if dtype is dt.float16:
                rounded = self.graph.call_method("to", (value, dtype))
            elif getattr(observer, "is_dynamic", False):
                rounded = self.graph.call_function(construct.quantize_per_tensor_dynamic, (
                    value, dtype, True))  # as dynamic layers do
            else:
                rounded = self._static(value, node, observer)
        self.observers[rounded] = observer
        users = list(node.users)
        numbers = self._after(rounded)
        for user in users:
            user.replace_input_with(node, numbers)
        self.graph.erase_node(node)

    def _after(self, rounded: Node) -> Node:
        with self.graph.inserting_after(rounded):
            return self.graph.call_method("dequantize", (rounded,))

    def _numbers(self, node: Node) -> None:
        users = list(node.users)
        numbers = self._after(node)
        for user in users:
            user.replace_input_with(node, numbers)

    def _static(self, value: Node, node: Node, observer: Any) -> Node:
        """The call that rounds with the scale that was found."""
        scale, zero_point = observer.calculate_qparams()
        prefix = self._prefix(value, node)
        if observer.qscheme.name.startswith("per_channel"):
            given = [self._attribute(f"{prefix}_{what}", t)
                     for what, t in (("scale", scale), ("zero_point", zero_point))]
            return self.graph.call_function(construct.quantize_per_channel, (
                value, *given, observer.ch_axis, observer.dtype))
        given = [self._attribute(f"{prefix}_{what}", as_tensor(t).reshape(()))
                 for what, t in (("scale", scale), ("zero_point", zero_point))]
        return self.graph.call_function(
            construct.quantize_per_tensor, (value, *given, observer.dtype))

    def _prefix(self, value: Node, node: Node) -> str:
        """Whose results are rounded, or whose input, in the name of a scale."""
        if value.op == "call_module":
            return str(value.target).replace(".", "_")
        user = next(iter(node.users), None)
        if value.op == "placeholder" and user is not None and user.op == "call_module":
            return f"{user.target}_input".replace(".", "_")
        return scope_of(value).replace(".", "_")

    def _attribute(self, prefix: str, value: Any) -> Node:
        number = 0
        while hasattr(self.model, f"{prefix}_{number}"):
            number += 1
        self.model.register_buffer(f"{prefix}_{number}", value.detach().clone())
        return self.graph.get_attr(f"{prefix}_{number}")


def _to_references(model: GraphModule, plan: dict) -> None:
    """Layers with a weight that is rounded become ones that say so."""
    for node in model.graph.nodes:
        planned, module = plan.get(node.name), module_of(node, model)
        if planned is None or module is None or planned.kind != LAYER:
            continue
        observer = getattr(module, "weight_fake_quant", None)
        if isinstance(observer, FakeQuantize):
            module = module.to_float()
        inner = module[0] if isinstance(module, _FusedModule) else module
        new = referenced(inner, observer or planned.qconfig.weight(), observer is None)
        if new is None:
            continue
        if isinstance(module, _FusedModule):
            module[0] = new
            new = module
        parent, _, own = str(node.target).rpartition(".")
        setattr(model.get_submodule(parent), own, new)


def _give_integers(model: GraphModule, indexes: tuple) -> None:
    """Results that are to be quantised tensors."""
    output = next(n for n in model.graph.nodes if n.op == "output")
    whole = output.args[0]
    several = isinstance(whole, (tuple, list))
    given = list(whole) if several else [whole]
    for i in indexes:
        given[i] = given[i].args[0]
    if indexes:
        output.args = (type(whole)(given) if several else given[0],)
