"""In-place draws on tensors of any layout: captured, functionalized and traced as in eager.

With the same seed; numbers follow each other as the elements lie in memory.
"""

import pytest

import pullback as pb
from pullback.fx.make_fx import make_fx

DRAWS = {
    "normal_": lambda t: t.normal_(), "uniform_": lambda t: t.uniform_(-1, 1),
    "exponential_": lambda t: t.exponential_(), "random_": lambda t: t.random_(0, 50),
    "cauchy_": lambda t: t.cauchy_(), "geometric_": lambda t: t.geometric_(0.3),
    "log_normal_": lambda t: t.log_normal_(), "bernoulli_": lambda t: t.bernoulli_(0.5),
    "bernoulli_ of a tensor": lambda t: t.bernoulli_(pb.full(t.shape, 0.5)),
    "dropout_": lambda t: pb.dropout_(t, 0.5, True),
    "alpha_dropout_": lambda t: pb.alpha_dropout_(t, 0.5, True),
}
LAYOUTS = {
    "rows": lambda: pb.arange(12.0).reshape(3, 4), "turned": lambda: pb.arange(12.0).view(4, 3).t(),
    "gaps": lambda: pb.arange(24.0).reshape(3, 8)[:, ::2].t(),
    "moved": lambda: pb.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1),
}


def traced(mode: str):
    def way(f):
        def run(x):
            before = pb.get_rng_state()
            graph = make_fx(f, tracing_mode=mode)(x.clone())
            pb.set_rng_state(before)
            return graph(x)

        return run

    return way


WAYS = {
    "numpy": lambda f: pb.compile(f, backend="numpy"),
    "aot": lambda f: pb.aot.aot_function(f, pb.aot.nop), "functionalized": pb.func.functionalize,
    "traced": traced("real"), "fake": traced("fake"),
    "jvp": lambda f: lambda x: pb.func.jvp(f, (x,), (pb.ones_like(x),))[0],
}


def filled(draw, where: str):
    """A function that draws into its argument, into a result, or into views of one."""
    def f(x):
        b = x if where == "argument" else x * 1
        draw(b.transpose(0, -1) if where == "view" else b[1:] if where == "part" else b)
        return b * 1

    return f


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", DRAWS)
def test_as_in_eager(name, way):
    for layout, start in LAYOUTS.items():
        for where in ("argument", "result", "view", "part"):
            f, found = filled(DRAWS[name], where), []
            for run in (f, WAYS[way](f)):
                pb.manual_seed(3)
                x = start()
                found.append((run(x), x, pb.get_rng_state()))
            for a, b in zip(*found):
                assert pb.equal(a, b) or pb.allclose(a, b, rtol=1e-6), (layout, where)


def test_native_code():
    def part(x):
        b = x * 1
        b.t()[pb.tensor([-1])] = pb.zeros(1, 3)
        b.t().unflatten(0, (4, 1)).narrow(0, 0, 2).normal_()
        return b

    for f in (filled(DRAWS["bernoulli_"], "view"), part):
        outs = []
        for run in (f, pb.compile(f)):
            pb.manual_seed(3)
            outs.append(run(pb.ones(3, 4)))
        assert pb.allclose(*outs)


@pytest.mark.parametrize("name", ["dropout", "alpha_dropout"])
def test_dropout_in_place_draws_what_it_draws(name):
    outs = []
    for draw in (getattr(pb, name), getattr(pb, name + "_")):
        pb.manual_seed(0)
        outs.append(draw(pb.ones(4, 3).t(), 0.5, True))
    assert pb.equal(*outs)
