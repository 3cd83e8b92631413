"""Layers of a graph that follow one another become one: `fuse_fx`, and before observers come."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .... import nn
from ....graph import GraphModule, Node
from ....nn import functional as F
from ..fuser_method_mappings import _DEFAULT_OP_LIST_TO_FUSER_METHOD, fuse_convtranspose_bn
from .tracing import module_of


def fuse(model: GraphModule, is_qat: bool) -> GraphModule:
    """The same graph module with fewer calls."""
    calls = Counter(str(n.target) for n in model.graph.nodes if n.op == "call_module")
    gone: set[Node] = set()
    for node in reversed(list(model.graph.nodes)):
        chain = None if node in gone else _chain(node, model, calls, is_qat)
        if chain is not None:
            _replace(chain, model, is_qat)
            gone.update(chain)
    model.graph.lint()
    model.recompile()
    return model


def is_relu(node: Node, model: nn.Module) -> bool:
    """Is a call a rectifier, of which a layer before it can take care?"""
    if node.op == "call_module":
        return type(module_of(node, model)) is nn.ReLU
    return node.op == "call_function" and node.target is F.relu


def _kind(node: Node, model: nn.Module, calls: Counter) -> Any:
    """The class of a layer that is called once; a rectifier may be a function."""
    if node.op == "call_module":
        return type(module_of(node, model)) if calls[str(node.target)] == 1 else None
    return nn.ReLU if is_relu(node, model) else None


def _chain(node: Node, model: nn.Module, calls: Counter, is_qat: bool) -> list[Node] | None:
    """The longest row of calls that ends with this one and can be one."""
    chain, kinds, found = [node], [_kind(node, model, calls)], None
    while kinds[0] is not None and len(chain) < 3:
        before = chain[0].args[0] if chain[0].args else None
        if not isinstance(before, Node) or before.op != "call_module" or len(before.users) > 1:
            break
        chain.insert(0, before)
        kinds.insert(0, _kind(before, model, calls))
        known = _DEFAULT_OP_LIST_TO_FUSER_METHOD.get(tuple(kinds))
        if known is not None and not (is_qat and known is fuse_convtranspose_bn):
            found = list(chain)
    return found


def _replace(chain: list[Node], model: GraphModule, is_qat: bool) -> None:
    layers = [module_of(n, model) or nn.ReLU().train(model.training) for n in chain]
    together = _DEFAULT_OP_LIST_TO_FUSER_METHOD[tuple(map(type, layers))]
    fused = together(is_qat, *layers)
    first, last = chain[0], chain[-1]
    parent, _, own = str(first.target).rpartition(".")
    setattr(model.get_submodule(parent), own, fused.train(model.training))
    last.replace_all_uses_with(first)
    for node in reversed(chain[1:]):
        model.graph.erase_node(node)
        if node.op == "call_module":
            model.delete_submodule(str(node.target))
