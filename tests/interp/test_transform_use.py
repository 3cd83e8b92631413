"""Transforms used wrongly, and random numbers under `vmap`: what PyTorch 2.13 does."""

import pytest

import pullback as torch
from pullback import vmap
from pullback.func import grad, jacfwd, jacrev, jvp, stack_module_state, vjp

F = torch.nn.functional
X = torch.tensor([0.1, 0.2, 0.3])
B = torch.arange(6.0).reshape(2, 3)
I = lambda x: x


@pytest.mark.parametrize("call, kind, text", [
    (lambda: vmap(lambda x: 3.0)(B), ValueError, "got type <class 'float'>"),
    (lambda: vmap(lambda: X)(), ValueError, "got no inputs"),
    (lambda: vmap(I)(3), ValueError, "map a int"),
    (lambda: vmap(I, in_dims=None)(B), ValueError, "at least one Tensor"),
    (lambda: vmap(lambda a, b: a + b)(B, torch.ones(4, 3)), ValueError, "same size"),
    (lambda: vmap(I, out_dims=None)(B), ValueError, "out_dims=None"),
    (lambda: vmap(I, out_dims="0")(B), ValueError, "not compatible"),
    (lambda: vmap(lambda a: (a, a), out_dims=(0, 0, 0))(B), ValueError, "not compatible"),
    (lambda: vmap(I, in_dims=(0, 0))(B), ValueError, "not compatible with the structure"),
    (lambda: vmap(I, in_dims=2)(B), ValueError, "out of range"),
    (lambda: vmap(I, in_dims=-3)(B), ValueError, "out of range"),
    (lambda: vmap(I, out_dims=5)(B), IndexError, "Dimension out of range"),
    (lambda: vmap(I, chunk_size=0)(B), ValueError, "greater than 0"),
    (lambda: vmap(I, randomness="all")(B), RuntimeError, "'same' or 'different'"),
    (lambda: vmap(lambda a: torch.rand(2))(B), RuntimeError, "randomness error mode"),
    (lambda: vmap(lambda a: a.sum().item())(B), RuntimeError, "item"),
    (lambda: jacrev(I)(X.to(torch.complex64)), RuntimeError, "Expected all inputs to be real"),
    (lambda: jacfwd(lambda x: torch.complex(x, x))(X), RuntimeError, "all outputs to be real"),
    (lambda: jacrev(I, argnums=1)(X), RuntimeError, "but only 1 positional inputs"),
    (lambda: jacrev(I, argnums=(0, -1))(X), RuntimeError, "must be unique"),
    (lambda: jacrev(I, argnums=0.5)(X), RuntimeError, "must be int or Tuple"),
    (lambda: grad(torch.sum, argnums=("a",))(X), RuntimeError, "must be int"),
    (lambda: jacrev(I, argnums=())(X), RuntimeError, "must be non-empty"),
    (lambda: jacrev(I, chunk_size=0)(X), ValueError, "greater than 0"),
    (lambda: vjp(lambda x: (), X), RuntimeError, "non-empty output"),
    (lambda: vjp(lambda x: (x, x), X)[1](X), RuntimeError, "Expected pytree structure"),
    (lambda: jvp(lambda: X, (), ()), RuntimeError, "at least one Tensor"),
    (lambda: jvp(I, (3,), (3,)), RuntimeError, "only contain Tensors"),
    (lambda: jvp(lambda x: (), (X,), (X,)), RuntimeError, "non-empty output"),
    (lambda: stack_module_state([]), RuntimeError, "at least one model"),
])
def test_refusals(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


SHAPED = {
    "normal_": lambda a: a.clone().normal_(), "uniform_": lambda a: a.clone().uniform_(),
    "bernoulli_": lambda a: a.clone().bernoulli_(0.3), "rand_like": torch.rand_like,
    "randn_like": torch.randn_like, "randint_like": lambda a: torch.randint_like(a, 10),
    "dropout": lambda a: F.dropout(a), "exponential_": lambda a: a.clone().exponential_(),
    "gumbel": lambda a: F.gumbel_softmax(a), "rand": lambda a: torch.rand(3),
    "feature_dropout": lambda a: F.dropout1d(a[:, None])[:, 0],
}
VALUED = {
    "bernoulli": torch.bernoulli, "normal": lambda a: torch.normal(a, 1.0),
    "poisson": lambda a: torch.poisson(a * 5), "multinomial": lambda a: torch.multinomial(a, 3),
}
HALF = torch.full((3, 3), 0.5)


@pytest.mark.parametrize("name", [*SHAPED, *VALUED])
def test_the_same_numbers_for_all_examples(name):
    draw = (SHAPED | VALUED)[name]
    torch.manual_seed(0)
    found = vmap(draw, randomness="same")(HALF)
    torch.manual_seed(0)
    one = draw(HALF[0])
    assert all(torch.equal(row, one) for row in found)
    torch.manual_seed(0)
    draw(HALF[0])
    after = torch.rand(1)
    torch.manual_seed(0)
    vmap(draw, randomness="same")(HALF)
    assert torch.equal(torch.rand(1), after)  # one draw was made


@pytest.mark.parametrize("name", SHAPED)
def test_other_numbers_for_each_example(name):
    torch.manual_seed(3)
    found = vmap(SHAPED[name], randomness="different")(torch.full((2, 8), 0.5)
                                                       if name != "rand" else HALF)
    assert not torch.equal(found[0], found[1])


def test_the_same_numbers_in_a_compiled_function():
    f = torch.compile(vmap(lambda a: F.dropout(a), randomness="same"))
    torch.manual_seed(0)
    found = f(HALF)
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])
