"""Programs over rows: normalise two tensors, combine them by row, a nonlinearity, a sum.

Each takes several walks over a row, and values of one walk are needed in another. Programs of one
batch have inputs of their own, so that each gets kernels of its own while they share one compile.
"""

from itertools import product

import numpy as np
import pytest

import pullback as torch
import pullback.nn.functional as F

NORMALISE = {
    "normalize": lambda x, d: F.normalize(x, dim=d),
    "softmax": lambda x, d: F.softmax(x, d),
    "log_softmax": lambda x, d: F.log_softmax(x, d),
    "standard": lambda x, d: (x - x.mean(d, keepdim=True)) / (x.std(d, keepdim=True) + 0.1),
    "shift": lambda x, d: x - x.amax(d, keepdim=True),
    "share": lambda x, d: x / x.abs().sum(d, keepdim=True),
}
COMBINE = {
    "dot": lambda a, b, d: (a * b).sum(d),
    "cosine": lambda a, b, d: F.cosine_similarity(a, b, dim=d),
    "distance": lambda a, b, d: ((a - b).square().sum(d) + 1e-3).sqrt(),
    "largest": lambda a, b, d: (a.exp() * b).amax(d),
    "logsumexp": lambda a, b, d: torch.logsumexp(a * b + b, d),
    "divergence": lambda a, b, d: (a.sigmoid() * (a.exp() - b.tanh())).mean(d),
}
AFTER = {
    "relu": lambda x: F.relu(x),
    "sigmoid": lambda x: x.sigmoid(),
    "softplus": lambda x: F.softplus(x),
    "margin": lambda x: (0.5 + x - x.mean()).clamp(min=0),
}
WHO = ((True, False), (False, True), (True, True))
SHAPES = {-1: (5, 19), 0: (19, 5)}
ALL = list(product(NORMALISE, COMBINE, AFTER, SHAPES, WHO))


def program(normalise, combine, after, d, who):
    def f(a, b):
        a, b = NORMALISE[normalise](a, d), NORMALISE[normalise](b, d)
        return AFTER[after](COMBINE[combine](a, b, d)).sum()

    return f


def inputs(number, d, who):
    g = np.random.default_rng(number)
    return [torch.tensor(g.standard_normal(SHAPES[d]).astype("float32"), requires_grad=tracked)
            for tracked in who]


def check(chosen):
    """The sum of some programs and the gradients of each, compiled and eager.

    A loss of one number is compiled together with its gradients; these need what walks handed on.
    """
    programs = [program(*c) for c in chosen]

    def loss(*xs):
        return sum(f(*xs[2 * i: 2 * i + 2]) for i, f in enumerate(programs))

    found = []
    for run in (loss, torch.compile(loss, fullgraph=True)):
        xs = [x for i, c in enumerate(chosen) for x in inputs(i, c[3], c[4])]
        value = run(*xs)
        value.backward()
        found.append((value, [x.grad for x in xs]))
    (want, grads), (value, others) = found
    torch.testing.assert_close(value, want, rtol=1e-4, atol=1e-4, msg=lambda m: f"{chosen}: {m}")
    for i, (x, y) in enumerate(zip(grads, others)):
        words = f"{chosen[i // 2]}, gradient {i % 2}"
        assert (x is None) == (y is None), words
        if x is not None:
            torch.testing.assert_close(
                y, x, rtol=2e-3, atol=2e-4, msg=lambda m, w=words: f"{w}: {m}")


@pytest.mark.parametrize("part", range(2))
def test_programs_over_rows(part):
    check(ALL[part * 37 :: 2 * 37])


def test_triplets_by_cosine():
    def loss(anchor, near, far):
        near, far = F.cosine_similarity(anchor, near), F.cosine_similarity(anchor, far)
        return F.relu(far - near + 0.3).sum()

    found = []
    for run in (loss, torch.compile(loss, fullgraph=True)):
        xs = [x for n in (1, 2) for x in inputs(n, -1, (True, n == 1))][:3]
        value = run(*xs)
        value.backward()
        found.append([value, *(x.grad for x in xs)])
    torch.testing.assert_close(found[1], found[0])


# Where a maximum is, is found by comparing with it; what is compared is computed more than once, by
# loops that go on with it in different ways, and must be the same to the last bit.
PLACES = {
    "used beside": lambda a, b, c: (a * b + c).amax(-1).sum() + ((a * b).exp() * c).sum(),
    "both ways": lambda a, b, c: (
        (a * b + c).max(0).values.sum() + (a * b + c).amin(1).sum() + ((a * b).tanh() * c).sum()),
    "of a row's sum": lambda a, b, c: ((a * b + c).amax(-1) * (a * b).sum(-1)).sum(),
    "of logarithms": lambda a, b, c: (F.log_softmax(a, -1).exp() * F.log_softmax(b, -1)).amax(-1),
    "of a function": lambda a, b, c: ((a.sigmoid() + c).amax(-1) * (a.sigmoid() * b).sum(-1)).sum(),
}


@pytest.mark.parametrize("name", PLACES)
def test_places_of_maxima(name):
    f = PLACES[name]
    found = []
    for run in (f, torch.compile(f, fullgraph=True)):
        g = np.random.default_rng(1)
        xs = [torch.tensor(g.standard_normal((64, 37)).astype("float32"), requires_grad=True)
              for _ in range(3)]
        run(*xs).sum().backward()
        found.append([x.grad for x in xs])
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("f", [
    lambda a, b: (torch.stack([a, -a]) * b).sum(0),  # two products that cancel
    lambda a, b: ((a * b) * (a * b) - (b * a) * (b * a)).sqrt(),
    lambda a, b: (a * b - (a * b).amax(-1, keepdim=True)).amax(-1),
])
def test_products_that_cancel(f):
    g = np.random.default_rng(2)
    a, b = (torch.tensor(g.standard_normal((64, 37)).astype("float32")) for _ in range(2))
    compiled = torch.compile(f, fullgraph=True)(a, b)
    assert (compiled == f(a, b)).all() and not compiled.any()


SEEN_THROUGH = {  # what a product may pass on its way to an addition
    "a quotient by one": lambda x: x / 1, "its sign": lambda x: -x,
    "where": lambda x: torch.where(x == x, x, 0.0), "a bound": lambda x: x.clamp(-1e30),
    "the larger": lambda x: torch.maximum(x, torch.full((), -1e30)),
}


@pytest.mark.parametrize("name", SEEN_THROUGH)
def test_products_are_rounded_before_additions(name):
    def f(a, b):
        x = a * b
        return SEEN_THROUGH[name](x) + a.abs(), SEEN_THROUGH[name](x * x) - b

    g = np.random.default_rng(3)
    a, b = (torch.tensor(g.standard_normal((64, 37)).astype("float32")) for _ in range(2))
    for got, want in zip(torch.compile(f, fullgraph=True)(a, b), f(a, b)):
        assert (got == want).all()
