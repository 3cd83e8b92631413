"""`GraphSignature`: what the inputs and outputs of an exported module are, by their names."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..graph.graph_module import GraphModule
from ..graph.node import Node
from ..pytree import TreeSpec


@dataclass
class BackwardSignature:
    """Of a graph with gradients: whose gradients its last outputs are."""

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


@dataclass
class GraphSignature:
    """Names of inputs and outputs, and what they stand for.

    Inputs are tokens of effects, parameters, buffers, then arguments; outputs are tokens, what is
    written (parameters, buffers, arguments), then results, then gradients.
    """

    parameters: list[str]
    buffers: list[str]
    user_inputs: list[str]
    user_outputs: list[str]
    inputs_to_parameters: dict[str, str]
    inputs_to_buffers: dict[str, str]
    buffers_to_mutate: dict[str, str]
    parameters_to_mutate: dict[str, str]
    user_inputs_to_mutate: dict[str, str]
    in_spec: TreeSpec
    out_spec: TreeSpec
    backward_signature: BackwardSignature | None = None
    input_tokens: list[str] = field(default_factory=list)
    output_tokens: list[str] = field(default_factory=list)


def describe(
    module: GraphModule, inputs: list[Node], parameters: list[str], buffers: list[str],
    written: list[int], results: int, gradients: dict[int, Node], in_spec: TreeSpec,
    out_spec: TreeSpec, loss: int | None, tokens: int = 0
) -> GraphSignature:
    """The signature of a finished graph, whose first inputs and outputs are `tokens`."""
    named = [n.name for n in inputs]
    owners = [*parameters, *buffers, *named[len(parameters) + len(buffers):]]
    first, second = len(parameters), len(parameters) + len(buffers)
    outputs = [getattr(n, "name", None) for n in module.graph.output_node().args[0]]
    incoming = [n.name for n in module.graph.find_nodes(op="placeholder")][:tokens]
    outgoing, outputs = outputs[:tokens], outputs[tokens:]

    def between(numbers, low: int, high: int) -> dict[str, str]:
        return {name: owners[i] for name, i in numbers if low <= i < high}

    mutated = list(zip(outputs, written))
    back = None
    if loss is not None:
        ends = [(n.name, i) for i, n in gradients.items()]
        back = BackwardSignature(
            between(ends, 0, second), between(ends, second, len(inputs)), outputs[loss])
    return GraphSignature(
        parameters=parameters,
        buffers=buffers,
        user_inputs=named[second:],
        user_outputs=outputs[len(written):len(written) + results],
        inputs_to_parameters=dict(zip(named, parameters)),
        inputs_to_buffers=dict(zip(named[first:], buffers)),
        buffers_to_mutate=between(mutated, first, second),
        parameters_to_mutate=between(mutated, 0, first),
        user_inputs_to_mutate=between(mutated, second, len(inputs)),
        in_spec=in_spec,
        out_spec=out_spec,
        backward_signature=back,
        input_tokens=incoming,
        output_tokens=outgoing,
    )
