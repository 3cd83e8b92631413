"""Parts of graphs by hand: PyTorch's names for it, and the backward cut once more.

A pipeline wants the gradients of inputs early, since another stage waits for them, and those of
weights when there is time: `split_backward` makes two graphs of a backward one. The functions with
an underscore are what programs import from `torch._functorch.partitioners` to do such things
themselves. Read `split.py` next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..graph.graph import Graph
from ..graph.graph_module import GraphModule
from ..graph.node import Node
from .partition import Partition
from .report import Report, row
from .split import PartitionError, ancestors, extract, is_number, is_of_backward

is_sym_node = is_number


def split_backward(backward: GraphModule, num_input_grads: int) -> Partition:
    """A backward graph as two: the first `num_input_grads` gradients, and the others.

    The first graph takes what the backward takes; it returns its gradients and then what the second
    one takes. Nothing is computed twice.
    """
    results = backward.graph.output_node().args[0]
    if not isinstance(results, (tuple, list)) or not 0 <= num_input_grads <= len(results):
        count = len(results) if isinstance(results, (tuple, list)) else 1
        raise PartitionError(
            f"split_backward(): the graph returns {count} gradients, so there are not "
            f"{num_input_grads} first ones")
    first, second, _, _ = _extract_fwd_bwd_outputs(backward, num_fwd_outputs=num_input_grads)
    early = ancestors([n for n in first if isinstance(n, Node)])
    late = ancestors([n for n in second if isinstance(n, Node)], stop=early)
    saved = [
        node
        for node in backward.graph.nodes
        if node in late and (node in early or node.op == "placeholder")
    ]
    tuples = [n for n in saved if isinstance(n.meta.get("val"), (tuple, list))]
    for node in tuples:  # their parts instead
        saved.remove(node)
        saved += [user for user in node.users if user in late and user not in saved]
    halves = _extract_fwd_bwd_modules(
        backward, saved, [], num_fwd_outputs=num_input_grads, omit_aot_autograd_runtime=True)
    return Partition(*halves, Report([row(n, "saved", "both parts need it") for n in saved]))


def _extract_fwd_bwd_outputs(module: GraphModule, *, num_fwd_outputs: int) -> tuple:
    """The first results and the others, and what each of them is."""
    output = module.graph.output_node()
    results = list(output.args[0])
    said = output.meta.get("desc") or [None] * len(results)
    count = num_fwd_outputs
    return results[:count], results[count:], list(said[:count]), list(said[count:])


def _extract_graph_with_inputs_outputs(
    joint_graph: Graph,
    inputs: Sequence[Node],
    outputs: Sequence[Any],
    outputs_descs: Sequence[Any] = (),
    subgraph: str | None = None,
    ignore_must_be_in_fw_bw: bool = False,
) -> Graph:
    """The part of a graph between given nodes, which become placeholders, and results."""
    return extract(joint_graph.nodes, list(inputs), tuple(outputs), (), list(outputs_descs))


def _extract_fwd_bwd_modules(
    joint_module: GraphModule,
    saved_values: Sequence[Node],
    saved_sym_nodes: Sequence[Node],
    saved_opaque_nodes: Sequence[Node] | None = None,
    *,
    num_fwd_outputs: int,
    static_lifetime_input_nodes: Any = None,
    ignore_must_be_in_fw_bw: bool = False,
    omit_aot_autograd_runtime: bool = False,
) -> tuple[GraphModule, GraphModule]:
    """The two graphs that have given values in between.

    The second one takes tangents as well, unless `omit_aot_autograd_runtime`.
    """
    first, second, said, more = _extract_fwd_bwd_outputs(
        joint_module, num_fwd_outputs=num_fwd_outputs)
    places = [n for n in joint_module.graph.nodes if n.op == "placeholder"]
    tangents = [n for n in places if is_of_backward(n) and not omit_aot_autograd_runtime]
    primals = [n for n in places if n not in tangents]
    saved = [*saved_values, *(saved_opaque_nodes or ()), *saved_sym_nodes]
    nodes = joint_module.graph
    forward = _extract_graph_with_inputs_outputs(
        nodes, primals, (*first, *saved), [*said, *[None] * len(saved)])
    backward = _extract_graph_with_inputs_outputs(nodes, [*saved, *tangents], second, more)
    return GraphModule(joint_module, forward), GraphModule(joint_module, backward)
