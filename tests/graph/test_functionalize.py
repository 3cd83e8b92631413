"""`functionalize`: prints to PyTorch's letter, effects as in eager mode, every nesting."""

import json
from pathlib import Path

import pytest

import pullback as torch
from pullback import func
from pullback.func import functionalize
from pullback.fx.fake_mode import FakeTensorMode
from pullback.fx.make_fx import make_fx
from pullback.pytree import tree_leaves
from tests.helpers.functionalized_programs import programs
from tests.helpers.random_programs import make_program

RECORDED = json.loads((Path(__file__).parents[1] / "data/functionalized.json").read_text())
WAYS = ("mutations", "mutations_and_views")


@pytest.mark.parametrize("name", RECORDED)
def test_prints_as_recorded(name):
    program, remove = name.split()
    function, args = programs(torch)[program]
    graph = make_fx(functionalize(function, remove=remove))(*args)
    assert graph.code.strip() == RECORDED[name]


def more() -> dict:
    """Programs beyond those."""
    def turned(x):
        x.t_()
        x.add_(torch.tensor([1.0, 2.0]))
        return x + 1

    def shrunk(x):
        x.resize_(3)
        x.mul_(2)
        return x.sum()

    def grown(x):
        y = x.clone()
        y.resize_(2, 3)
        return y[0] + y[1, :1] * x[0, 0]

    def stolen(x):
        y = x * 2
        z = torch.zeros(2)
        z.set_(y[1])
        z.add_(1)
        return y

    def masked(x):
        x[x > 1] = 0.5
        x.diagonal().fill_(7)
        return x.view(-1).as_strided((2,), (2,)).add_(1)

    def twice(x):
        a, b = x[0], x.view(4)[1:]
        a.mul_(2)
        b.add_(a.sum())
        return a * b[:2]

    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    return {f.__name__: (f, (x,)) for f in (turned, shrunk, grown, stolen, masked, twice)}


def same(found, wanted):
    for a, b in zip(tree_leaves(found), tree_leaves(wanted), strict=True):
        assert a.shape == b.shape and torch.allclose(a, b)


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized:UserWarning")
@pytest.mark.parametrize("remove", WAYS)
@pytest.mark.parametrize("name", [*programs(torch), *more()])
def test_values_and_what_becomes_of_the_arguments(name, remove):
    function, args = {**programs(torch), **more()}[name]
    ways = [function, functionalize(function, remove=remove)]
    traced = make_fx(ways[1])(*[a.clone() for a in args])
    ways += [traced, make_fx(function)(*[a.clone() for a in args])]
    results = []
    for f in ways:
        given = [a.clone() for a in args]
        results.append((f(*given), given))
    for other in results[1:]:
        same(other, results[0])
    assert not any(n.target.name.partition(".")[0].endswith("_") for n in traced.graph.nodes
                   if n.op == "call_function" and hasattr(n.target, "name")
                   and n.target.name.partition(".")[0] not in ("copy_", "resize_", "as_strided_"))


@pytest.mark.parametrize("seed", [*range(0, 100, 20), 310, 410])
def test_random_programs(seed):
    for number in range(seed, seed + 20):
        function, start, text = make_program(number)
        if "again" in text:
            continue

        def fresh(start=start):
            return [t.detach().clone() for t in start()[1]]

        wanted = fresh()
        wanted = function(*wanted), wanted
        for remove in WAYS:
            pure = functionalize(function, remove=remove)
            for f in (pure, make_fx(pure)(*fresh())):
                found = fresh()
                same((f(*found), found), wanted)


def test_nestings():
    def f(x):
        y = x.clone()
        y[0].mul_(x[1])
        return y.sin_()

    x, t = torch.tensor([0.3, 0.5, 0.7]), torch.ones(3)
    rows = torch.stack([x, x * 2])
    for remove in WAYS:
        g = functionalize(f, remove=remove)
        same(func.jvp(g, (x,), (t,)), func.jvp(f, (x,), (t,)))
        same(functionalize(lambda x, t: func.jvp(f, (x,), (t,)), remove=remove)(x, t),
             func.jvp(f, (x,), (t,)))
        same(torch.vmap(g)(rows), torch.vmap(f)(rows))
        same(functionalize(torch.vmap(f), remove=remove)(rows), torch.vmap(f)(rows))
        slope = func.grad(lambda x: f(x).sum())
        same(func.grad(lambda x: g(x).sum())(x), slope(x))
        same(functionalize(slope, remove=remove)(x), slope(x))
        batched = torch.vmap(functionalize(lambda x, t: func.jvp(f, (x,), (t,)), remove=remove),
                             (0, None))
        same(batched(rows, t), torch.vmap(lambda x: func.jvp(f, (x,), (t,)))(rows))
        same(make_fx(batched)(rows, t)(rows, t), batched(rows, t))
    tracked = x.clone().requires_grad_()
    functionalize(f)(tracked).sum().backward()
    same(tracked.grad, func.grad(lambda x: f(x).sum())(x))
    with FakeTensorMode() as mode:
        out = functionalize(f)(mode.from_tensor(x))
    assert out.shape == (3,)


def test_a_tensor_from_outside_is_a_constant():
    held = torch.ones(2)

    def f(x):
        return held, held.view(2, 1) + x

    graph = make_fx(functionalize(f, remove="mutations_and_views"))(torch.zeros(2))
    assert "_tensor_constant0" in graph.code and "view_copy" not in graph.code
    same(graph(torch.ones(2)), (held, torch.full((2, 2), 2.0)))


def test_refusals():
    held = torch.ones(2)
    with pytest.raises(RuntimeError, match="non-functional tensor"):
        functionalize(lambda x: held.add_(x))(torch.ones(2))
    with pytest.raises(RuntimeError, match="view tensor to a larger size"):
        functionalize(lambda x: x[0].resize_(9))(torch.ones(2, 2))
    with pytest.raises(RuntimeError, match="more than one element"):
        functionalize(lambda x: x.expand(3, 2).add_(1))(torch.ones(2))
    with pytest.raises(RuntimeError, match="remove="):
        functionalize(lambda x: x, remove="views")
    assert held.tolist() == [1.0, 1.0]


def test_a_write_keeps_its_line():
    def f(x):
        x.mul_(2)
        return x + 1

    graph = make_fx(f)(torch.ones(2))
    (copy,) = [n for n in graph.graph.nodes if n.name == "copy_"]
    assert "in f" in copy.stack_trace and copy.is_impure()
    graph.graph.eliminate_dead_code()
    assert "copy_" in graph.code
