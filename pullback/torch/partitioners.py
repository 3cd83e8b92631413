"""Parts of PyTorch's partitioners that programs and tests call by themselves.

`_find_infinite_capacity_path` says why a cut is infinite, with the path; our own partitioner does
so in the message of `PartitionError`.  `_is_primal`, `_is_tangent` and so on sort the inputs of a
joint graph.  `quantize_activation_fw` and `_bw` save marked values of a
forward in eight bits; `capture/offload.py` does so for whole programs, by the setting.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

import pullback

from .. import errors
from ..capture.offload import quantising_options
from ..cut.split import is_of_backward
from ..graph.counters import counters
from ..graph.graph import Graph
from ..graph.node import Node
from ..graph.traits import is_tensor
from ..table.packets import ops

INT_INF = int(1e6)
MARK = "saved_for_quantization"


def _find_infinite_capacity_path(nx_graph: Mapping) -> list[tuple[str, str, str]] | None:
    """The shortest way from "source" to "sink" over edges that cannot be cut, with the reasons.

    The graph is one of networkx, or a mapping of the same form: node -> neighbour -> facts of the
    edge, of which `capacity` and `reason` count.  None if there is no such way.
    """
    came: dict[str, str | None] = {"source": None}
    queue = deque(("source",))
    while queue and "sink" not in came:
        tail = queue.popleft()
        edges = nx_graph[tail] if tail in nx_graph else {}  # noqa: SIM401  networkx has no `get`
        for head, edge in edges.items():
            if head not in came and edge.get("capacity", 0) in (math.inf, INT_INF):
                came[head] = tail
                queue.append(head)
    if "sink" not in came:
        return None
    path, head = [], "sink"
    while (tail := came[head]) is not None:
        path.append((tail, head, nx_graph[tail][head].get("reason", "unknown")))
        head = tail
    return path[::-1]


# inputs of joint graphs, by their names


def _is_fwd_seed_offset(node: Node) -> bool:
    """Is it the seed or the base offset of draws of the forward?"""
    return node.op == "placeholder" and node.name.startswith(("fwd_seed", "fwd_base_offset"))


def _is_bwd_seed_offset(node: Node) -> bool:
    """The same for draws of the backward."""
    return node.op == "placeholder" and is_of_backward(node) and not _is_tangent(node)


def _is_tangent(node: Node) -> bool:
    return node.op == "placeholder" and "tangents" in node.name


def _is_primal(node: Node) -> bool:
    return node.op == "placeholder" and not (is_of_backward(node) or _is_fwd_seed_offset(node))


# saved values in eight bits


def _called(graph: Graph, target: Any, *args: Any, **kwargs: Any) -> Node:
    """A node with its value, which is computed from those of its arguments."""
    node = graph.call_function(target, args, kwargs)
    values = [a.meta["val"] if isinstance(a, Node) else a for a in args]
    node.meta["val"] = target(*values, **kwargs)
    return node


def _scale(graph: Graph, node: Node, kind: Any) -> Node:
    largest = _called(graph, ops.amax.default, _called(graph, ops.abs.default, node), [-1], True)
    wide = _called(graph, ops._to_copy.default, largest, dtype=pullback.float64)
    above = _called(graph, ops.clamp_min.default, wide, 1e-12)
    share = _called(graph, ops.mul.Tensor, _called(graph, ops.reciprocal.default, above),
                    pullback.finfo(kind).max)
    return _called(graph, ops._to_copy.default, share, dtype=pullback.float32)


def _narrow(graph: Graph, node: Node, scale: Node | None, kind: Any) -> Node:
    if scale is not None:
        limits = pullback.finfo(kind)
        wide = _called(graph, ops._to_copy.default, node, dtype=pullback.float32)
        node = _called(graph, ops.mul.Tensor, wide, scale)
        node = _called(graph, ops.clamp_min.default, node, limits.min)
        node = _called(graph, ops.clamp_max.default, node, limits.max)
    return _called(graph, ops._to_copy.default, node, dtype=kind)


def quantize_activation_fw(graph: Graph, num_fwd_outputs: int = 0) -> None:
    """Let a forward graph return what `meta["saved_for_quantization"]` marks in eight bits.

    The user's results, the first `num_fwd_outputs`, stay; what is saved twice is two values; with
    scaling, the scales follow the tensors.  Dtype and scaling are those of the setting
    `_inductor.config.post_grad_fusion_options["activation_quantization_aten_pass"]`.
    """
    options = quantising_options()
    output = graph.output_node()
    results, scales = list(output.args[0]), []
    with graph.inserting_before(output):
        for i, node in enumerate(results):
            if i < num_fwd_outputs or not isinstance(node, Node) or not node.meta.get(MARK):
                continue
            scale = _scale(graph, node, options["quant_type"]) if options["use_scaling"] else None
            results[i] = _narrow(graph, node, scale, options["quant_type"])
            results[i].name = f"fp8_quant_pos_{i}_{node.name}"
            if scale is not None:
                scale.name = f"fp8_scale_pos_{i}_{node.name}"
                scales.append(scale)
    place = next((i for i, n in enumerate(results) if i >= num_fwd_outputs and isinstance(n, Node)
                  and not is_tensor(n.meta.get("val"))), len(results))
    results[place:place] = scales
    output.args = (tuple(results),)
    graph.lint()
    counters["inductor"]["activation_quantization_fwd_aten_pass"] += 1


def quantize_activation_bw(graph: Graph) -> None:
    """Let a backward graph compute with marked inputs in the dtype that they had: each is made
    wide again once, by the scale that comes in beside it if there is one."""
    scaling = quantising_options()["use_scaling"]
    inputs = [n for n in graph.nodes if n.op == "placeholder"]
    names = {n.name: n for n in inputs}
    for node in inputs:
        if not node.meta.pop(MARK, False):
            continue
        own, users = node.meta.pop("dequant_type"), list(node.users)
        scale = names.get(node.name.replace("fp8_quant_", "fp8_scale_")) if scaling else None
        if scaling and scale is None:
            raise errors.CompileError(errors.text(
                f"quantize_activation_bw: {node.name} comes without its scale "
                f"({errors.user_line()})", f"inputs: {', '.join(names)}",
                "give the backward the scales that quantize_activation_fw has added"))
        with graph.inserting_after(inputs[-1]):
            wide = _called(graph, ops._to_copy.default, node,
                           dtype=own if scale is None else pullback.float32)
        if scale is not None:
            with graph.inserting_after(wide):
                wide = _called(graph, ops.div.Tensor, wide, scale)
            with graph.inserting_after(wide):
                wide = _called(graph, ops._to_copy.default, wide, dtype=own)
        for user in users:
            user.replace_input_with(node, wide)
    graph.lint()
    counters["inductor"]["activation_quantization_bwd_aten_pass"] += 1

