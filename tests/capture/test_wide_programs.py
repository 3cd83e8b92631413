"""Random programs with more views, hooks, modes, modules and sizes; what they have found."""

import pytest

import pullback as pb
from tests.helpers.oracle import check
from tests.helpers.wide_programs import SIZES, make_program

WAYS = [lambda f: f, lambda f: pb.compile(f, backend="numpy"),
        lambda f: pb.aot.aot_function(f, pb.aot.nop),
        lambda f: pb.aot.aot_function(f, pb.aot.nop, keep_inference_input_mutations=True)]


@pytest.mark.parametrize(("way", "seed"), [
    *[("nop", seed) for seed in range(0, 40, 10)], *[("numpy", seed) for seed in range(40, 70, 10)],
    ("boxed", 70)])
def test_program(way, seed):
    for number in range(seed, seed + 10):
        function, start, text = make_program(number)
        try:
            check(function, start, ways=(way,), orders=(1,), sizes=SIZES)
        except AssertionError as error:
            raise AssertionError(f"{text}\n{error}") from error


@pytest.mark.parametrize("wrap", WAYS)
@pytest.mark.parametrize("view", [lambda x: x.unfold(-1, 2, 1),
                                  lambda x: x.as_strided((2, 2, 2), (3, 1, 1))])
def test_writes_where_neighbours_overlap(wrap, view):
    """Each element of the base has one new value, and counts once in its gradient."""
    def f(x, w):
        w.mul_(2)
        return x * 1, (view(x) * 1).sum()

    leaf = pb.arange(6.0).reshape(2, 3).requires_grad_()
    x = leaf * 1
    out, total = wrap(f)(x, view(x))
    assert out.tolist() == [[0, 2, 4], [6, 8, 10]]
    (out.sum() + total).backward()
    assert leaf.grad.tolist() == [[4, 6, 4], [4, 6, 4]]


@pytest.mark.parametrize("wrap", WAYS[:2])  # graphs of aot_function refuse it, as PyTorch's do
@pytest.mark.parametrize("view", [lambda x: x.unfold(0, 2, 1),
                                  lambda x: x.as_strided((2, 2), (1, 1))])
def test_writes_to_parts_of_overlapping_views(wrap, view):
    def f(x):
        w = view(x)
        w[:, 1:].add_(1)
        return w * 1

    leaf = pb.zeros(3, requires_grad=True)
    out = wrap(f)(leaf * 1)
    assert out.tolist() == [[0, 1], [1, 1]]
    out.sum().backward()
    assert leaf.grad.tolist() == [1, 2, 1]


@pytest.mark.parametrize("wrap", WAYS[:2])
def test_of_several_values_for_one_place_the_last_counts(wrap):
    def f(x, new):
        x.unfold(0, 2, 1).copy_(new)
        return x * 1

    new = pb.arange(4.0).reshape(2, 2).requires_grad_()
    out = wrap(f)(pb.zeros(3), new)
    assert out.tolist() == [0, 2, 3]
    (out * pb.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert new.grad.tolist() == [[1, 0], [10, 100]]


@pytest.mark.parametrize("wrap", WAYS)
def test_a_piece_that_was_left_behind_may_keep_its_gradient(wrap):
    def f(x, piece):
        x.mul_(2)
        with pb.no_grad():
            piece.retain_grad()
        return x * 1

    x = pb.ones(2, 3, requires_grad=True) * 1
    piece = x.unbind(0)[0]
    wrap(f)(x, piece)
    assert piece.retains_grad


@pytest.mark.parametrize("wrap", WAYS)
def test_views_of_a_piece_that_was_left_behind(wrap):
    def f(x, piece):
        view = piece.view_as(piece)
        x[:, 1:].mul_(2)
        return piece, view

    x = pb.ones(2, 3, requires_grad=True) * 1
    for t in wrap(f)(x, x.unbind(0)[1]):
        assert t.tolist() == [1, 2, 2]
        with pytest.raises(RuntimeError, match="modified inplace"):
            t.grad_fn


@pytest.mark.parametrize("wrap", WAYS[1:])
@pytest.mark.parametrize("read", [lambda b: b, lambda b: b.as_strided((3,), (1,)), lambda b: b[:]])
def test_writes_that_stay_in_a_graph_do_not_change_what_the_backward_reads(wrap, read):
    def f(x, buffer):
        y = x * read(buffer) + (read(buffer) * x).sin()
        buffer.mul_(2)
        return y

    x, buffer = pb.ones(3, requires_grad=True), pb.full((3,), 3.0)
    wrap(f)(x, buffer).sum().backward()
    assert buffer.tolist() == [6, 6, 6]
    assert pb.allclose(x.grad, 3 + 3 * pb.tensor(3.0).cos())


@pytest.mark.parametrize("wrap", WAYS)
def test_pieces_of_an_input_that_was_made_longer(wrap):
    def f(x):
        x[0].mul_(2)
        x.unsqueeze_(0)
        return x.split(1, 0)[0]

    leaf = pb.ones(2, 3, requires_grad=True)
    x = leaf * 1
    piece = wrap(f)(x)
    assert piece.shape == x.shape == (1, 2, 3) and piece._base is x
    piece.sum().backward()
    assert leaf.grad.tolist() == [[2, 2, 2], [1, 1, 1]]
