"""Joint graphs for the tests of the partitioners, built from the stand-ins of `fake_ops.py`."""

import operator

import numpy as np

from pullback.fx import Graph, GraphModule
from tests.helpers.fake_ops import Example, aten


class Joint:
    """A joint graph under construction: each step gets its example value from its shape."""

    def __init__(self, primals=1, tangents=1, shape=(4, 4)):
        self.graph = Graph()
        self.shape = shape
        self.primals = [self.parameter(f"primals_{k + 1}") for k in range(primals)]
        self.tangents = [self.parameter(f"tangents_{k + 1}") for k in range(tangents)]
        self.attributes = {}

    def parameter(self, name):
        node = self.graph.placeholder(name)
        node.meta["val"] = Example(self.shape)
        return node

    def __call__(self, name, *args, shape=None, strides=None, value=None, **kwargs):
        packet, _, overload = name.partition(".")
        node = self.graph.call_function(
            getattr(getattr(aten, packet), overload or "default"), args, kwargs
        )
        node.meta["val"] = Example(shape or self.shape, strides=strides) if value is None else value
        return node

    def getitem(self, node, index):
        part = self.graph.call_function(operator.getitem, (node, index))
        part.meta["val"] = node.meta["val"][index]
        return part

    def times_derivative(self, grad, node):
        """grad * -sin(node), the gradient of cos at node."""
        return self("mul.Tensor", grad, self("neg", self("sin", node)))

    def finish(self, forward, backward):
        self.graph.output((*forward, *backward))
        self.graph.lint()
        self.count = len(forward)
        return GraphModule(self.attributes, self.graph)


def saved_names(partition, count):
    results = partition.forward.graph.output_node().args[0]
    names = [node.name for node in results[count:]]
    parameters = [n.name for n in partition.backward.graph.find_nodes(op="placeholder")]
    assert sorted(parameters[: len(names)]) == sorted(names)  # a backward takes sizes first
    assert all(name.startswith("tangents") for name in parameters[len(names) :])
    assert sorted(names) == sorted(row.name for row in partition.report.saved)
    return names


def cos_chain(length=3):
    joint = Joint()
    values = [joint.primals[0]]
    for _ in range(length):
        values.append(joint("cos", values[-1]))
    grad = joint.tangents[0]
    for value in reversed(values[:-1]):
        grad = joint.times_derivative(grad, value)
    return joint.finish([values[-1]], [grad])


def run_both(module, partition, arguments, primals, count, effect=lambda: None):
    """Results of the joint graph, and of the forward and then the backward."""
    effect()
    together = module(*[np.array(a) for a in arguments])
    effect()
    forward, backward = partition
    results = forward(*[np.array(a) for a in arguments[:primals]])
    saved = sorted(results[count:], key=lambda value: not isinstance(value, int))
    gradients = backward(*saved, *arguments[primals:])
    return together, (*results[:count], *gradients)
