"""`fx.GraphModule` as users see it: a module to make and to derive from; proxies on their own."""

from __future__ import annotations

import pullback as pb
from pullback import fx


def doubled(class_=fx.GraphModule, root=None):
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(pb.mul, (x, graph.get_attr("scale"))))
    return class_({"scale": pb.nn.Parameter(pb.tensor(2.0))} if root is None else root, graph)


def test_graphs_are_modules():
    module = pb.nn.Module()
    module.add_module("inner", doubled())
    assert [n for n, _ in module.named_parameters()] == ["inner.scale"]
    assert module.inner(pb.ones(2)).tolist() == [2, 2]
    assert issubclass(fx.GraphModule, pb.nn.Module)
    module.inner(pb.ones(2)).sum().backward()
    assert module.inner.scale.grad.item() == 2


def test_classes_derived_from_them():
    class Square(fx.GraphModule):
        def __init__(self, power):
            super().__init__(self, fx.Graph())
            x = fx.Proxy(self.graph.placeholder("x", pb.Tensor))
            out = x.new_zeros(x.shape)
            out.copy_(x**power)
            self.graph.output(out.node, pb.Tensor)
            self.recompile()

    module = pb.nn.Sequential(Square(2), Square(3))
    assert module(pb.tensor([2.0])).tolist() == [64]
    assert isinstance(module[0], fx.GraphModule) and isinstance(module[0], pb.nn.Module)
    assert not isinstance(doubled(), Square)


def test_graphs_of_the_library_pass_for_them():
    traced = fx.make_fx.make_fx(lambda x: x + 1)(pb.ones(2))
    assert isinstance(traced, fx.GraphModule)
    assert not isinstance(pb.nn.Linear(1, 1), fx.GraphModule)


def test_functions_are_recorded_for_proxies_without_a_trace():
    graph = fx.Graph()
    x, y = (fx.Proxy(graph.placeholder(n)) for n in "xy")
    pb._assert(x.ndim == 2, "matrices only")
    a, b = x[..., :1], pb.broadcast_tensors(x, y)[1]
    graph.output(pb.einsum("ij,ij->i", [a, b]).node)
    calls = [(n.target, len(n.args)) for n in graph.nodes if n.op == "call_function"]
    assert (pb.broadcast_tensors, 2) in calls and (pb._assert, 2) in calls
    assert (pb.einsum, 3) in calls  # operands one by one, however they were given
    module = fx.GraphModule({}, graph)
    assert module(pb.ones(2, 1), pb.arange(2.0)[:, None]).tolist() == [0, 1]


def test_passes_may_put_attributes_on_nodes():
    node = fx.Graph().placeholder("x")
    node.chain = 3
    assert node.chain == 3
