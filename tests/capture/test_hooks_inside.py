"""Hooks and gradients to be kept of tensors inside of a compiled function; what only its backward
meets; writes that eager code refuses.  All found by random programs."""

import warnings

import pytest

import pullback as pb
from pullback.compile.errors import CompileWarning
from pullback.errors import DataDependentError
from tests.helpers.custom_functions import custom_function

WAYS = [lambda f: f, lambda f: pb.compile(f, backend="numpy"),
        lambda f: pb.aot.aot_function(f, pb.aot.nop)]


@pytest.mark.parametrize("wrap", WAYS)
def test_a_hook_of_an_input_gets_all_of_its_gradient(wrap):
    seen = []

    def f(x):
        x.register_hook(lambda g: seen.append(g.tolist()) or g * 2)
        handle = x.register_hook(lambda g: g * 100)
        handle.remove()
        return x * 3

    compiled = wrap(f)
    for count in (1, 2):
        leaf = pb.ones(2, requires_grad=True)
        x = leaf * 1
        (compiled(x).sum() + (x * 4).sum()).backward()
        assert leaf.grad.tolist() == [14, 14] and seen == [[7, 7]] * count


def of_a_view(x, v):
    part = x[0]
    part.register_hook(lambda g: g * 2)
    return part * 3, part


def of_a_view_of_a_result(x, v):
    y = x * 2
    part = y[0]
    part.register_hook(lambda g: g * 2)
    return y, part


def of_a_view_that_is_written(x, v):
    part = x[0]
    part.mul_(2)
    part.register_hook(lambda g: g * 2)
    return x * 1, part


def of_an_input_whose_view_is_written(x, v):
    v.mul_(3)
    x.register_hook(lambda g: g * 2)
    return x * 1


def of_an_input_whose_base_is_written(x, v):
    x.mul_(2)
    v.register_hook(lambda g: g * 2)
    return x * 1, v * 3


def of_an_input_that_was_turned(x, v):
    x.unsqueeze_(0)
    x.register_hook(lambda g: g * 2)
    return x * 3


@pytest.mark.parametrize("wrap", WAYS[1:])
@pytest.mark.parametrize("f", [
    of_an_input_that_was_turned, of_a_view, of_a_view_of_a_result, of_a_view_that_is_written,
    of_an_input_whose_view_is_written, of_an_input_whose_base_is_written])
def test_hooks_of_views_get_gradients_from_outside(f, wrap):
    def gradient(f):
        leaf = pb.arange(6.0).reshape(2, 3).requires_grad_()
        x = leaf * 1
        v = x.view(6)
        out = f(x, v)
        ends = [*(out if isinstance(out, tuple) else [out]), x, v]
        return pb.autograd.grad(sum((t * t).sum() for t in ends), leaf)[0].tolist()

    assert gradient(wrap(f)) == gradient(f)


@pytest.mark.parametrize("wrap", WAYS)
def test_views_with_hooks_may_be_written_later(wrap):
    def f(x):
        v = x[0]
        v.register_hook(lambda g: g * 1)
        return v

    leaf = pb.ones(2, 2, requires_grad=True)
    x = leaf * 1
    v = wrap(f)(x)
    assert v._base is x
    v.mul_(3)
    assert x.tolist() == [[3, 3], [1, 1]]
    x.sum().backward()
    assert leaf.grad.tolist() == [[3, 3], [1, 1]]


@pytest.mark.parametrize("wrap", WAYS)
def test_a_hook_that_uses_a_result_of_the_function(wrap):
    def f(x):
        y = x.detach() * 5
        x.register_hook(lambda g: g * y)
        return x * 3

    x = pb.ones(2, requires_grad=True)
    wrap(f)(x).sum().backward()
    assert x.grad.tolist() == [15, 15]


@pytest.mark.parametrize("wrap", WAYS)
def test_hooks_after_accumulation(wrap):
    seen = []

    def f(x):
        x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.tolist()))
        return x * 3

    x = pb.ones(2, requires_grad=True)
    wrap(f)(x).sum().backward()
    assert seen == [[3, 3]]


@pytest.mark.parametrize("wrap", WAYS)
def test_gradients_that_are_kept(wrap):
    def f(x):
        x.retain_grad()
        y = x * 2
        y.retain_grad()
        return y, y[0]

    x = pb.ones(2, requires_grad=True) * 1
    y, part = wrap(f)(x)
    assert x.retains_grad and y.retains_grad and not part.retains_grad
    (y.sum() + part + x.sum()).backward()
    assert y.grad.tolist() == [2, 1] and x.grad.tolist() == [5, 3]


@pytest.mark.parametrize("wrap", WAYS)
@pytest.mark.parametrize("kind", ["of a leaf", "a piece", "without grad"])
def test_views_that_must_not_be_written(wrap, kind):
    leaf = pb.ones(2, 3, requires_grad=True)
    x = leaf.view(6) if kind == "of a leaf" else (leaf * 1).unbind(0)[0]
    if kind == "without grad":
        base = leaf * 1
        with pb.no_grad():
            x = base[0]

    def f(x):
        x.mul_(2)
        return x.sin()

    with pytest.raises(RuntimeError, match=r"inplace|in-place"):
        wrap(f)(x)
    assert (x == 1).all()
    with pb.no_grad():
        assert wrap(f)(x).shape == x.shape
        assert (x == 2).all()


@pytest.mark.parametrize("wrap", WAYS)
def test_tensors_that_only_a_backward_meets(wrap):
    weight = pb.tensor([2.0, 3.0])

    Weighted = custom_function("Weighted", lambda x: x * 2, lambda grad: grad * weight)
    x = pb.ones(2, requires_grad=True)
    wrap(lambda x: Weighted.apply(x) * 5)(x).sum().backward()
    assert x.grad.tolist() == [10, 15]


@pytest.mark.parametrize("wrap", WAYS)
def test_second_derivatives_by_results(wrap):
    """norm and exp save their results: those have histories, too."""
    x = pb.tensor([0.0, 1.0, 2.0], dtype=pb.float64, requires_grad=True)
    out = wrap(lambda x: (x * x).norm() + x.exp().sum())(x)
    (grad,) = pb.autograd.grad(out, x, create_graph=True)
    (second,) = pb.autograd.grad(grad.sum(), x)
    y = pb.tensor([0.0, 1.0, 2.0], dtype=pb.float64)
    full = pb.func.hessian(lambda x: (x * x).norm() + x.exp().sum())(y)
    assert pb.allclose(second, full.sum(0))


@pytest.mark.parametrize("wrap", WAYS)
def test_versions_after_set(wrap):
    def f(a, b):
        a.set_(b)
        a.mul_(2)
        a[0] = 5
        b.add_(1)
        return a * 1

    a, b = pb.zeros(2), pb.ones(2)
    assert wrap(f)(a, b).tolist() == [6, 3]
    assert (a._version, b._version) == (3, 1)
    assert a.tolist() == b.tolist() == [6, 3] and a.data_ptr() == b.data_ptr()


@pytest.mark.parametrize("wrap", WAYS)
def test_memory_given_up(wrap):
    def f(x):
        y = x * 2
        x.set_()
        return y

    x = pb.ones(3)
    assert wrap(f)(x).tolist() == [2, 2, 2]
    assert x.shape == (0,) and x.stride() == (1,) and x._version == 1


@pytest.mark.parametrize("wrap", WAYS)
def test_versions_by_views_that_change_their_shape(wrap):
    def f(x):
        part = x[:1]
        part.t_()
        x.set_(x)
        return part * 2

    x = pb.ones(2, 3)
    assert wrap(f)(x).shape == (3, 1)
    assert x._version == 2 and x.shape == (2, 3)


@pytest.mark.parametrize("wrap", WAYS[:2])
@pytest.mark.parametrize("computed", [False, True])
def test_handles_that_leave_the_function_remove_their_hook(wrap, computed):
    kept = {}

    def f(x):
        y = x * 1 if computed else x
        kept["other"] = y.register_hook(lambda g: g * 5)
        handle = y.register_hook(lambda g: g * 2)
        return y * 3, handle, handle

    compiled = wrap(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CompileWarning)
        calls = []
        for _ in range(3):
            x = pb.ones(2, requires_grad=True)
            calls.append((x, *compiled(x)))
    assert all(first is second for *_, first, second in calls)
    calls[0][2].remove()
    calls[2][2].remove()
    kept["other"].remove()  # that of the last call
    for _, y, *_ in calls:
        y.sum().backward()
    assert [x.grad[0].item() for x, *_ in calls] == [15, 30, 3]


def test_hooks_whose_handle_leaves_the_function_are_not_traced():
    def f(x):
        y = x * 2
        return y, y.register_hook(lambda g: g)

    with pytest.raises(DataDependentError, match="keeps the handle of a hook"):
        pb.compile(f, fullgraph=True)(pb.ones(2, requires_grad=True))
