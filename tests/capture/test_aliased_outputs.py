"""Outputs that show the same memory, whatever they are: views, pieces, detached aliases with and
without a history, views that were left behind by a write.
"""

import pytest

import pullback as pb
from pullback import no_grad
from tests.helpers import oracle


def start():
    x = pb.tensor([[1.0, -2.0], [0.5, 3.0]], dtype=pb.float64, requires_grad=True)
    y = pb.tensor([[2.0, 0.25], [-1.0, 1.5]], dtype=pb.float64, requires_grad=True)
    return [x, y], [x * 1, y * 1]


start.held = None


def detached_and_written(x, y):
    v = (x * 1).reshape(-1)
    alias = v.detach()
    alias.mul_(y.reshape(-1))
    return v, alias


def detached_part_and_written(x, y):
    b = x * 1
    alias = b.detach()[1:]
    alias.mul_(y[1:])
    return b, alias


def twice_detached_and_written(x, y):
    b = x * 1
    first, second = b.detach(), b.detach()[0]
    first.mul_(y)
    second.add_(y[0])
    return first, second


def detached_of_a_piece(x, y):
    piece = (x * 1).unbind(0)[0]
    alias = piece.detach()
    alias.mul_(y[0])
    return piece, alias


def piece_left_behind(x, y):
    b = x * 1
    v, piece = b.view(-1), b.chunk(2)[-1]
    b.mul_(y)
    return v, piece


def pieces_of_which_one_is_left_behind(x, y):
    b = x * 1
    piece = b.chunk(2)[-1]
    b.mul_(y)
    return b.unbind(0)[0], piece


def hidden_beside_a_piece(x, y):
    b = x * y
    with no_grad():
        v = b[1:]
    return v, b.unbind(0)[1]


def detached_beside_pieces(x, y):
    b = x * y
    return (b.detach(), *b.unbind(0))


def strides_of_a_piece(x, y):
    return x.chunk(2)[-1].as_strided((2,), (1,), 2)


def detached_and_written_without_history(x, y):
    b = x.detach() * 1
    alias = b.detach().view(-1)
    alias[0] = 7.0
    with no_grad():
        return alias, b.view(4)


def of_the_same_dtype(x, y):
    v = (x * 1).view(x.dtype)
    return v, v.view(-1)[None]


def hidden_and_written(x, y):
    b = x * 1
    with no_grad():
        v = b.unsqueeze(0)
        v += 1
    return v


def part_of_what_was_turned(x, y):
    b = x * 1
    row = b[0]
    b.t_()
    return b, b[1], row


def imaginary_part_of_what_was_turned(x, y):
    b = pb.complex(x, y)
    row = b[0]
    b.t_()
    return b, b.imag, row


def piece_from_before_a_turn(x, y):
    v = x[:, None, 0]
    v.transpose_(0, -1)
    x.squeeze_()
    return v.unsqueeze(1).unbind(0)[0]


def turned_view_of_an_argument(x, y):
    v = x[...]
    row = v.reshape(-1)
    v.unsqueeze_(0)
    return row * v.sum()


def alias_of_the_same_value(x, y):
    b = x.detach().clone()
    alias = b.detach()
    alias.fill_(2.5)
    return b, alias


def turned_while_nothing_is_recorded(x, y):
    b = x.clone()
    with no_grad():
        b.unsqueeze_(0)
    return b * b.sum()


def base_of_a_tracked_alias(x, y):
    b = x.detach().clone()
    alias = b.detach()
    alias.mul_(y)
    return alias * b.sum()


def tracked_alias_whose_base_is_written(x, y):
    b = x.detach().clone()
    alias = b.detach()
    alias.mul_(y)
    b.add_(1)
    return alias * b.sum()


def view_of_what_was_detached_in_place(x, y):
    b = x * 1
    v = b.view(-1)
    b.detach_()
    return b, v[None]


def used_after_it_was_detached(x, y):
    b = x * 1
    v = b[...]
    b.detach_()
    return v * b.sum()


def strides_of_a_hidden_view(x, y):
    c = x * y.sum()
    with no_grad():
        v = c.view(-1)
    return v.as_strided((2,), (1,), 0)


def windows_filled(x, y):
    b = (x * 1).t().contiguous().t()
    b.unfold(0, 2, 2).fill_(y[0, 0])
    return b


def view_of_an_alias_that_was_turned(x, y):
    return alias_is_turned(x, x.detach())


def hidden_strides(x, y):
    b = x * y
    with no_grad():
        v = b.view(-1).as_strided((2,), (1,), 0)
    return v * b.sum()


@pytest.mark.parametrize("way", ["nop", "mincut", "numpy"])
@pytest.mark.parametrize("function", [
    detached_and_written, detached_part_and_written, twice_detached_and_written,
    detached_of_a_piece, piece_left_behind, pieces_of_which_one_is_left_behind,
    hidden_beside_a_piece, detached_beside_pieces, strides_of_a_piece,
    detached_and_written_without_history, of_the_same_dtype, hidden_and_written,
    part_of_what_was_turned, imaginary_part_of_what_was_turned, piece_from_before_a_turn,
    turned_view_of_an_argument, alias_of_the_same_value, turned_while_nothing_is_recorded,
    base_of_a_tracked_alias, tracked_alias_whose_base_is_written, strides_of_a_hidden_view,
    hidden_strides, windows_filled, view_of_an_alias_that_was_turned], ids=lambda f: f.__name__)
def test_outputs_of_the_same_memory(function, way):
    oracle.check(function, start, ways=(way,), bases=False)


@pytest.mark.parametrize("way", ["nop", "mincut", "numpy"])
@pytest.mark.parametrize("function", [view_of_what_was_detached_in_place,
                                      used_after_it_was_detached], ids=lambda f: f.__name__)
def test_views_of_what_was_detached_in_place(function, way):
    """They keep their history; eager refuses to write them then."""
    oracle.check(function, start, ways=(way,), bases=False, writes=(False,))


def start_with_an_alias():
    x = pb.tensor([[1.0, -2.0, 0.25], [0.5, 3.0, -1.5]], dtype=pb.float64, requires_grad=True)
    t = x * 1
    return [x], [t, t.detach()]


start_with_an_alias.held = None


def alias_is_turned(x, alias):
    row = alias[0]
    alias.t_()
    alias[0].mul_(10)
    row.add_(1)
    return row, alias


def source_is_turned(x, alias):
    row = x[0]
    x.t_()
    alias.mul_(3)
    x[0].mul_(10)
    return row * 2, x


def source_is_turned_and_its_older_view_written(x, alias):
    row = x[0]
    x.t_()
    row.mul_(x.sum().detach())
    return alias, row


def alias_is_turned_and_gets_a_history(x, alias):
    row = alias[0]
    alias.t_()
    row.mul_(x[1])
    return row, alias[0]


def both_are_turned(x, alias):
    alias.t_()
    row = x[0]
    x.unsqueeze_(0)
    alias.mul_(2)
    x.mul_(2)
    return row, alias, x[0]


def source_is_turned_and_copied(x, alias):
    x.squeeze_()
    alias.mul_(2)
    x[..., 1:] = 0.25
    x *= 2
    alias.copy_(x)
    return alias, alias.chunk(2, -1)[1]


@pytest.mark.parametrize("way", ["nop", "mincut", "numpy"])
@pytest.mark.parametrize("function", [
    alias_is_turned, source_is_turned, source_is_turned_and_its_older_view_written,
    alias_is_turned_and_gets_a_history, both_are_turned, source_is_turned_and_copied,
], ids=lambda f: f.__name__)
def test_arguments_of_one_memory_that_are_turned(function, way):
    """What was a view of one before keeps its shape, and what is written goes to both."""
    oracle.check(function, start_with_an_alias, ways=(way,), bases=False, writes=(False,))


def start_with_a_view_and_an_alias():
    [x], [t, alias] = start_with_an_alias()
    return [x], [t[:, 1:], alias]


start_with_a_view_and_an_alias.held = None


def view_is_turned_and_copied(x, alias):
    x.t_()
    x.mul_(2)
    alias[:, 1:].copy_(x.t())
    return alias, x[0]


@pytest.mark.parametrize("way", ["nop", "mincut", "numpy"])
@pytest.mark.parametrize("function", [
    pytest.param(source_is_turned, id="view_is_turned"),
    pytest.param(view_is_turned_and_copied, id="view_is_turned_and_copied")])
def test_views_of_one_memory_that_are_turned(function, way):
    oracle.check(function, start_with_a_view_and_an_alias, ways=(way,), bases=False,
                 writes=(False,))
