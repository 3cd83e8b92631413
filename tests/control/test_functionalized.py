"""Branches and loops inside of `functionalize`, and with symbolic sizes: nodes of the graph."""

import pytest

import pullback as pb
from pullback.control import cond, map, scan, while_loop
from pullback.control.loops import _stack_pytree, _unstack_pytree
from pullback.func import functionalize, grad
from pullback.fx.make_fx import make_fx


def branches(x):
    def other(t):
        t = t.clone()
        t.mul_(3)
        return t

    return cond(x.sum() > 0, lambda t: t.sin(), other, [x])


PROGRAMS = {
    "cond": branches,
    "map_impl": lambda x: map(lambda t, c: (t + c).mul_(2), x, x.sum()),
    "scan": lambda x: scan(lambda c, t: (c + t, (c * t).add_(1)), pb.ones(()), x)[1],
    "while_loop": lambda x: while_loop(
        lambda t: t.sum() < 9, lambda t: (t.abs().add_(1),), (x,))[0],
}


@pytest.mark.parametrize("mode", ["real", "symbolic"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_node_in_the_graph(name, mode):
    run = PROGRAMS[name]
    x = pb.tensor([0.5, 1.0, -0.25])
    assert pb.equal(functionalize(run)(x), run(x))
    for function in (run, functionalize(run)):
        made = make_fx(function, tracing_mode=mode)(x)
        names = [str(n.target) for n in made.graph.nodes if n.op == "call_function"]
        assert sum(name in n for n in names) == 1 and not any("stack" in n for n in names)
        for value in (x, -x, pb.arange(5.0) if mode == "symbolic" else 2 * x):
            assert pb.allclose(made(value), run(value))


def test_its_gradient():
    def loss(x):
        return branches(x).sum()

    x = pb.tensor([0.5, 1.0])
    made = make_fx(functionalize(grad(loss)))(x)
    assert pb.equal(made(x), x.cos()) and pb.equal(made(-x), pb.full((2,), 3.0))


def test_trees_in_steps():
    tree = {"a": pb.arange(6.0).reshape(3, 2), "b": [pb.arange(3.0)]}
    steps = _unstack_pytree(tree)
    assert len(steps) == 3 and pb.equal(steps[2]["a"], pb.tensor([4.0, 5.0]))
    again = _stack_pytree(steps)
    assert pb.equal(again["a"], tree["a"]) and pb.equal(again["b"][0], tree["b"][0])
    with pytest.raises(RuntimeError, match="leading dims"):
        _unstack_pytree([pb.ones(2), pb.ones(3)])
