"""Gradients of a fused loss for seeds by which those for the seed 1 cannot be scaled."""

import pytest

import pullback as pb
from pullback.testing import assert_close

INF, NAN = float("inf"), float("nan")


def masked(x):
    return pb.nn.functional.relu(x).sum()


def steep(x):
    return x.sqrt().sum()


def chosen(x):
    return pb.where(x > 0, x.exp(), x.detach()).sum()


def drawn(x):
    return pb.nn.functional.dropout(x, 0.5).sum()


def gradient(function, x, seed, keep=False):
    x = x.clone().requires_grad_()
    pb.manual_seed(3)
    out = function(x)
    after = pb.get_rng_state()
    out.backward(pb.tensor(seed, dtype=out.dtype), retain_graph=keep)
    assert pb.equal(after, pb.get_rng_state())
    if keep:
        out.backward(pb.tensor(seed, dtype=out.dtype))
    return x.grad


@pytest.mark.parametrize("function", [masked, steep, chosen, drawn])
@pytest.mark.parametrize("seed", [INF, NAN, 0.0, 2.0, 1e38])
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_any_seed_gives_what_eager_gives(function, seed, backend):
    x = pb.tensor([-1.0, 0.0, 2.0, 0.25])
    compiled = pb.compile(function, backend=backend)
    for _ in range(3):
        assert_close(gradient(compiled, x, seed), gradient(function, x, seed), equal_nan=True)
    assert_close(gradient(compiled, x, seed, True), gradient(function, x, seed, True),
                 equal_nan=True)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_scaled_losses_of_half_precision_do_not_vanish(backend):
    def loss(x):
        return (x.half() * 1e-7).float().sum() * 1e-4

    x, compiled = pb.tensor([1.0, -2.0]), pb.compile(loss, backend=backend)
    for _ in range(3):
        found, wanted = gradient(compiled, x, 65536.0), gradient(loss, x, 65536.0)
        assert_close(found, wanted, rtol=1e-3, atol=0)
    assert wanted.abs().min() > 0


def test_an_input_that_was_overwritten_is_refused_as_in_eager():
    x = pb.tensor([1.0, 0.0], requires_grad=True)
    out = pb.compile(lambda x: (x * x).sum(), backend="numpy")(x)
    with pb.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified"):
        out.backward(pb.tensor(INF))
