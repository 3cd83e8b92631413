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
    (lambda: vmap(I)(3), ValueError, "in_dim=0 for an input but the input is of type"),
    (lambda: vmap(I, in_dims=None)(B), ValueError, "expected `in_dims` to be int"),
    (lambda: vmap(I, in_dims=[0])(B), ValueError, "expected `in_dims` to be int"),
    (lambda: vmap(I, in_dims=(None,))(B), ValueError, "at least one Tensor"),
    (lambda: vmap(sum, in_dims=((0, 0),))([B, B]), ValueError, "not compatible"),
    (lambda: vmap(lambda a, b: a + b)(B, torch.ones(4, 3)), ValueError, "same size"),
    (lambda: vmap(I, out_dims=None)(B), ValueError, "BatchedTensor when out_dim is None"),
    (lambda: vmap(I, out_dims="0")(B), ValueError, "python collection of ints"),
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


def test_outputs_that_are_not_mapped():
    x = torch.arange(6.0).reshape(2, 3)
    out, text = vmap(lambda v: (v + 1, "as it is"), out_dims=(0, None))(x)
    assert torch.equal(out, x + 1) and text == "as it is"
    assert vmap(lambda v: None, out_dims=None)(x) is None
    assert torch.equal(vmap(I, out_dims=(1,))(x), x.T)
    parts = vmap(lambda v: {"a": v, "b": (v, "c")}, out_dims={"a": 1, "b": (0, None)},
                 chunk_size=1)(x)
    assert torch.equal(parts["a"], x.T) and parts["b"][1] == "c"


def test_an_input_written_in_place_is_the_output():
    x = torch.arange(6.0).reshape(2, 3)
    assert vmap(torch.Tensor.neg_)(x) is x and x[1, 2] == -5
    out = vmap(torch.Tensor.neg_, in_dims=1)(x)
    assert torch.equal(out, x.T)
    out.zero_()
    assert not x.any()
    out = vmap(lambda v: v.add_(1).view(3, 1))(x)
    x.mul_(2)
    assert torch.equal(out, x[..., None])
    nested = vmap(vmap(torch.Tensor.add_, in_dims=(0, None)), in_dims=(1, 0), out_dims=1)
    out = nested(x, torch.tensor([1.0, 2.0, 3.0]))
    x[0, 0] = 7
    assert out[0, 0] == 7 and torch.equal(out, x)


@pytest.mark.parametrize("draw, all_at_once", [
    (lambda v: torch.randn(20), lambda x: torch.randn(3, 20)),
    (lambda v: torch.randint(0, 9, (5,)), lambda x: torch.randint(0, 9, (3, 5))),
    (lambda v: torch.rand_like(v), lambda x: torch.rand_like(x)),
    (lambda v: torch.bernoulli(v), lambda x: torch.bernoulli(x)),
    (lambda v: torch.normal(v, 1.0), lambda x: torch.normal(x, 1.0)),
    (lambda v: torch.nn.functional.dropout(v), lambda x: torch.nn.functional.dropout(x)),
    (lambda v: v.clone().exponential_(), lambda x: x.clone().exponential_()),
])
def test_different_randomness_is_one_draw(draw, all_at_once):
    """PyTorch draws for all examples at once: the numbers are those of the batch."""
    x = torch.full((3, 18), 0.5)
    torch.manual_seed(3)
    mapped = vmap(draw, randomness="different")(x)
    torch.manual_seed(3)
    assert torch.equal(mapped, all_at_once(x))
    captured = torch.full((18,), 0.5)
    torch.manual_seed(3)
    mapped = vmap(lambda v: draw(captured), randomness="different")(x)
    torch.manual_seed(3)
    assert torch.equal(mapped, all_at_once(x))


def test_chunks_share_same_randomness():
    x = torch.zeros(4, 2)
    torch.manual_seed(0)
    out = vmap(lambda v: v + torch.rand(2), randomness="same", chunk_size=3)(x)
    assert (out == out[0]).all()
    torch.manual_seed(0)
    assert torch.equal(out[0], torch.rand(2))


def test_drawing_in_place():
    """Also where the tensor is not mapped itself: it is asked what randomness means first."""
    x = torch.zeros(3, 4)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(lambda v: v + torch.zeros(4).uniform_())(x)
    with pytest.raises(RuntimeError, match="outside of vmap"):
        outside = torch.zeros(4)
        vmap(lambda v: v + outside.uniform_(), randomness="different")(x)
    assert not outside.any()
    torch.manual_seed(1)
    out = vmap(lambda v: v.uniform_(), randomness="same")(x)
    assert out is x and (x == x[0]).all()
    torch.manual_seed(1)
    assert torch.equal(x[0], torch.zeros(4).uniform_())
    columns = torch.zeros(4, 3)
    out = vmap(lambda v: v.uniform_(), in_dims=1, randomness="same")(columns)
    assert torch.equal(out, columns.T) and (columns == columns[:, :1]).all() and columns.any()
