"""Longer random programs, strides included, and what they have found."""

import pytest

import pullback as pb
from tests.helpers.oracle import check
from tests.helpers.random_programs import make_program

WAYS = [lambda f: f, lambda f: pb.compile(f, backend="numpy"),
        lambda f: pb.aot.aot_function(f, pb.aot.nop)]


@pytest.mark.parametrize("seed", range(0, 80, 8))
def test_program(seed):
    for number in range(seed, seed + 8):
        function, start, text = make_program(number, more=True)
        for way in ("numpy", "nop"):
            try:
                check(function, start, ways=(way,), orders=(1,))
            except AssertionError as error:
                raise AssertionError(f"{text}\n{error}") from error


def detached(x):
    v = x[1:]
    x.detach_()
    return v, x[:1], x * 2


def written_then_detached(x):
    x.mul_(2)
    x.detach_()
    return x + 1


def turned_then_detached(x):
    x.unsqueeze_(0)
    x.detach_()
    return x * 3


@pytest.mark.parametrize("wrap", WAYS)
@pytest.mark.parametrize("f", [detached, written_then_detached, turned_then_detached])
def test_inputs_detached_in_place(f, wrap):
    leaf = pb.ones(3, requires_grad=True)
    x = leaf * 1
    out = wrap(f)(x)
    assert not x.requires_grad and x.is_leaf
    if f is detached:
        assert [t.requires_grad for t in out] == [True, False, False]
        assert out[0]._base is x and out[1]._base is x
        out[0].sum().backward()
        assert leaf.grad.tolist() == [0, 1, 1]
    else:
        assert not out.requires_grad


@pytest.mark.parametrize("wrap", WAYS)
def test_gradient_of_a_write_through_view_then_turned(wrap):
    """The gradient of the base comes transposed: `view` of it must not be asked for."""
    def f(x):
        a = x * 1
        a.view(-1).mul_(2)
        a.t_()
        return (a * pb.arange(6.0).reshape(3, 2)).sum()

    x = pb.ones(2, 3, requires_grad=True)
    wrap(f)(x).backward()
    assert x.grad.tolist() == [[0, 4, 8], [2, 6, 10]]


@pytest.mark.parametrize("wrap", WAYS[:2])
def test_written_tensors_stay_where_they_are(wrap):
    def f(a, b):
        a = a.t().clone()
        a.add_(b)
        return a, a.t().view(-1)

    a, flat = wrap(f)(pb.arange(6.0).reshape(2, 3), pb.ones(3, 2))
    assert a.stride() == (1, 3) and flat.tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("wrap", WAYS)
def test_shapes_of_saved_values_may_be_overwritten(wrap):
    def f(x):
        return pb.ones_like(x) * x + pb.ones_like(x.t()).t()

    leaf = pb.ones(1, 3, requires_grad=True)
    x = leaf * 1
    out = wrap(f)(x)
    x.mul_(2)
    out.sum().backward()
    assert leaf.grad.tolist() == [[1, 1, 1]]


@pytest.mark.parametrize("wrap", WAYS)
def test_detached_aliases_that_get_a_history_share_memory(wrap):
    def f(x):
        d = x.detach()
        d[0] = x[0] * 2
        return d

    leaf = pb.ones(2, 3, requires_grad=True)
    x = leaf * 1
    d = wrap(f)(x)
    assert d.requires_grad and x[0].tolist() == [2, 2, 2]
    d.sum().backward()
    assert leaf.grad.tolist() == [[2, 2, 2], [0, 0, 0]]
    with pb.no_grad():
        d.zero_()
    assert x.tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("wrap", WAYS[:2])
def test_pieces_of_an_input_that_was_turned_and_written(wrap):
    def f(x):
        x.mul_(2)
        x.t_()
        x.add_(x)
        return x.unbind(0)[-1], x

    leaf = pb.ones(2, 3, requires_grad=True)
    piece, x = wrap(f)(leaf * 1)
    assert piece.grad_fn.name() == "UnbindBackward0" and piece._base is x
    piece.sum().backward()
    assert leaf.grad.tolist() == [[0, 0, 4], [0, 0, 4]]


def test_places_of_first_calls():
    """A call by the general way knows the user's line, too."""
    x = pb.ones(3, requires_grad=True) * 1
    out = pb.compile(lambda x: x.sin(), backend="numpy")(x)
    x.mul_(2)
    with pytest.raises(RuntimeError, match=r"test_longer_programs\.py:\d+\) needs `input 0`"):
        out.sum().backward()


def test_second_derivatives_read_inputs_again():
    """They run the forward once more: an input that was overwritten is refused, not misread."""
    def f(b):
        with pb.no_grad():
            h = b * 0.5
        return h * b

    leaf = pb.ones(3, requires_grad=True)
    b = leaf * 1
    out = pb.aot.aot_function(f, pb.aot.nop)(b)
    b.mul_(3)
    assert pb.autograd.grad(out.sum(), leaf, retain_graph=True)[0].tolist() == [0.5, 0.5, 0.5]
    with pytest.raises(RuntimeError, match=r"needs `input 0`, which was overwritten"):
        pb.autograd.grad(out.sum(), leaf, create_graph=True)
