"""The backward of a fused loss goes straight into the leaves; nobody can tell it from a sweep."""

import numpy as np
import pytest

import pullback as pb
from pullback import errors
from tests.helpers.custom_functions import custom_function


def loss(x, w):
    return (x * w).sin().sum()


def leaves():
    return [(pb.arange(4.0) / (i + 2)).requires_grad_() for i in range(2)]


def ready():
    """A compiled loss that has run a few times, so that calls take the short way."""
    compiled = pb.compile(loss, backend="numpy")
    for _ in range(3):
        compiled(*leaves()).backward()
    return compiled


def eager_gradients():
    x, w = leaves()
    loss(x, w).backward()
    return x.grad.numpy(), w.grad.numpy()


def test_gradients_arrive_and_add_up():
    compiled, (x, w) = ready(), leaves()
    for n in (1, 2, 3):
        compiled(x, w).backward()
        for t, g in zip((x, w), eager_gradients()):
            np.testing.assert_allclose(t.grad.numpy(), n * g, rtol=1e-6)
    assert not np.shares_memory(x.grad.numpy(), w.grad.numpy())


def test_second_backward_is_refused_unless_kept():
    compiled, (x, w) = ready(), leaves()
    out = compiled(x, w)
    out.backward()
    with pytest.raises(errors.GraphFreed):
        out.backward()
    out = compiled(x, w)
    out.backward(retain_graph=True)
    first = x.grad
    out.backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * eager_gradients()[0], rtol=1e-6)
    assert x.grad is first


def test_kept_gradients_are_not_the_leaves_memory():
    compiled, (x, w) = ready(), leaves()
    out = compiled(x, w)
    out.backward(retain_graph=True)
    x.grad.zero_()
    out.backward()
    np.testing.assert_allclose(x.grad.numpy(), eager_gradients()[0], rtol=1e-6)


@pytest.mark.parametrize("put", [
    lambda t, seen: t.register_hook(lambda g: seen.append(1)),
    lambda t, seen: t.register_post_accumulate_grad_hook(lambda t: seen.append(1)),
])
def test_hooks_of_leaves_run(put):
    compiled, (x, w) = ready(), leaves()
    seen = []
    put(x, seen)
    compiled(x, w).backward()
    assert seen == [1]


def test_hooks_of_the_loss_run():
    compiled, (x, w) = ready(), leaves()
    out = compiled(x, w)
    out.register_hook(lambda g: g * 2)
    out.backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * eager_gradients()[0], rtol=1e-6)


def test_inputs_that_are_no_leaves():
    compiled, (x, w) = ready(), leaves()
    compiled(x * 2, w).backward()
    y, v = leaves()
    loss(y * 2, v).backward()
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-6)


def test_gradients_of_gradients():
    compiled, (x, w) = ready(), leaves()
    compiled(x, w).backward(create_graph=True)
    found = pb.autograd.grad(x.grad.sum(), w)[0]
    y, v = leaves()
    (g,) = pb.autograd.grad(loss(y, v), y, create_graph=True)
    np.testing.assert_allclose(
        found.detach().numpy(), pb.autograd.grad(g.sum(), v)[0].numpy(), rtol=1e-6)


def test_calls_without_a_backward_split_in_the_end():
    compiled, (x, w) = ready(), leaves()
    outs = [compiled(x, w) for _ in range(6)]
    outs[-1].backward()
    np.testing.assert_allclose(x.grad.numpy(), eager_gradients()[0], rtol=1e-6)
    (program,) = compiled.programs.values()
    assert not program.fuse


def test_errors_name_the_users_line():
    x = pb.ones(3, requires_grad=True)
    compiled = pb.compile(lambda x: x.tanh(), backend="numpy")
    for _ in range(3):
        compiled(x).sum().backward()
    y = compiled(x)
    y.mul_(2)
    with pytest.raises(errors.SavedValueModified, match=r"test_fused_backward\.py"):
        y.sum().backward()


def test_calls_with_fewer_checks_still_look_at_shapes():
    compiled = pb.compile(lambda x: x * 2, backend="numpy")
    for _ in range(3):
        assert compiled(pb.ones(3)).tolist() == [2.0] * 3
    assert compiled(pb.ones(2)).tolist() == [2.0] * 2
    assert compiled(pb.ones(3, dtype=pb.float64)).dtype is pb.float64
    assert compiled(pb.ones(3, requires_grad=True)).requires_grad


@pytest.mark.parametrize("narrow", (pb.bfloat16, pb.float16, pb.float32))
def test_gradients_of_narrow_leaves_for_a_wide_seed(narrow):
    x = pb.tensor([1.0, 2.0], dtype=narrow, requires_grad=True)
    compiled = pb.compile(lambda x: (x.double() ** 2).sum(), backend="numpy")
    for _ in range(3):
        x.grad = None
        (compiled(x) * 0.5).backward()
        assert x.grad.dtype is narrow and x.grad.tolist() == [1.0, 2.0]


Clipped = custom_function("Clipped", lambda x: x * 2, lambda g: g.clamp(-1, 1))


@pb.library.custom_op("at_once::clipped", mutates_args=())
def clipped(x: pb.Tensor) -> pb.Tensor:
    return x * 2


clipped.register_fake(pb.empty_like)
clipped.register_autograd(lambda ctx, g: g.clamp(-1, 1))


def hooked(x):
    y = x * 2
    y.register_hook(lambda g: g.clamp(-1, 1) / 2)
    return y


@pytest.mark.parametrize("rule", (Clipped.apply, clipped, hooked))
def test_gradients_by_rules_of_the_user_need_not_scale_with_the_seed(rule):
    compiled = pb.compile(lambda x: rule(x).sum(), backend="numpy")
    for seed in (1.0, 3.0, 0.5):
        x = pb.ones(3, requires_grad=True)
        (compiled(x) * seed).backward()
        assert x.grad.tolist() == [min(seed, 1.0)] * 3
