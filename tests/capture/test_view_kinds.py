"""Views that a tensor says the start of, views with hooks, views of complex numbers, and `set_`.

Captured functions against eager, in all that a user can see.
"""

import pytest

import pullback as pb
from tests.helpers import oracle


def narrow_by_data(x, y):
    start = (y.detach()[0, 0] > 0).long()
    part = x.narrow(0, start, 1)
    start.zero_()
    return part


def narrow_of_a_result(x, y):
    c = x * 2
    return c, c.narrow(0, (y.detach()[0, 0] > 0).long(), 1)


def narrow_and_write(x, y):
    part = x.narrow(0, pb.tensor(1), 1)
    part.mul_(y[0])
    return part, x


def hooked_view(x, y):
    row = x[0]
    row.register_hook(lambda g: g * 3)
    return row


def hooked_view_written_before(x, y):
    flat = x.view(-1)
    flat.register_hook(lambda g: g * 3)
    flat.mul_(2)
    return flat, x


def hooked_view_of_what_is_written(x, y):
    row = x[0]
    row.register_hook(lambda g: g * 3)
    x.mul_(y)
    return (row * 2).sum(), x


def hooks_of_views_of_views(x, y):
    turned = x.t()
    turned.register_hook(lambda g: g * 3)
    row = turned[0]
    row.register_hook(lambda g: g + 1)
    return row * y[0], turned


def hooked_piece(x, y):
    piece = x.unbind(0)[1]
    piece.register_hook(lambda g: g * 3)
    return piece * y[0]


def complex_unsqueezed(x, y):
    c = pb.complex(x, y)
    c.unsqueeze_(0)
    parts = pb.view_as_real(c)
    parts.mul_(2)
    return c, parts


def real_part_from_before_a_turn(x, y):
    c = pb.complex(x, y)
    real = c.real
    c.t_()
    real.mul_(2)
    return c, real


def parts_of_what_was_turned(x, y):
    c = pb.complex(x, y)
    row = c[0]
    c.unsqueeze_(1)
    c.real.mul_(x[0])
    return c, row, c.conj(), c.imag


def parts_of_a_detached_alias_resized(x, y):
    c = pb.complex(x, y).detach()
    parts = pb.view_as_real(c)
    c.resize_(4)
    c.real.add_(1)
    return c, parts


def imaginary_part_from_before_a_resize(x, y):
    c = pb.complex(x, y).detach()
    imaginary = c.imag
    c.resize_(2)
    imaginary.add_(1)
    return c, imaginary


def set_and_written(x, y):
    with pb.no_grad():
        x.set_(y.detach())
        x.add_(1)
    return x * 2, y * 1


def source_of_set_written(x, y):
    c, d = x.detach().clone(), y.detach().clone()
    c.set_(d)
    d.add_(1)
    c[0] = 7.0
    return c, d


def view_from_before_set(x, y):
    c = x.detach().clone()
    row = c[0]
    c.set_(y.detach().t())
    c.mul_(2)
    row.add_(1)
    return c, row, y


FUNCTIONS = [
    narrow_by_data, narrow_of_a_result, narrow_and_write, hooked_view, hooked_view_written_before,
    hooked_view_of_what_is_written, hooks_of_views_of_views, hooked_piece, complex_unsqueezed,
    real_part_from_before_a_turn, parts_of_what_was_turned, parts_of_a_detached_alias_resized,
    imaginary_part_from_before_a_resize, set_and_written, source_of_set_written,
    view_from_before_set]
# what graphs that are shown refuse, as PyTorch's do
REFUSED = (parts_of_a_detached_alias_resized, imaginary_part_from_before_a_resize,
           view_from_before_set)


def start(tracked: bool = True):
    x = pb.tensor([[1.0, -2.0], [0.5, 3.0]], dtype=pb.float64, requires_grad=tracked)
    y = pb.tensor([[2.0, 0.25], [-1.0, 1.5]], dtype=pb.float64, requires_grad=tracked)
    return [x, y], [x * 1, y * 1]


start.held = None
by_name = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)


@pytest.mark.filterwarnings("ignore")
@by_name
def test_compiled(function):
    oracle.check(function, start, ways=("numpy",), bases=False)


@by_name
def test_graphs_that_are_shown(function):
    if function in REFUSED:
        with pytest.raises(pb.errors.TransformError):
            pb.aot.aot_function(function, pb.aot.nop)(*start()[1])
    else:
        oracle.check(function, start, ways=("nop",), bases=False)


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
@pytest.mark.parametrize("function", [f for f in FUNCTIONS if "hook" not in f.__name__],
                         ids=lambda f: f.__name__)
def test_functionalized(function, remove):
    found = []
    for run in (function, pb.func.functionalize(function, remove=remove)):
        args = start(tracked=False)[1]
        out = run(*args)
        found.append([*(out if isinstance(out, tuple) else (out,)), *args])
    for eager, other in zip(*found):
        assert eager.shape == other.shape and pb.equal(eager, other)
