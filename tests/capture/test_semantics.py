"""After a compiled call everything is as after the eager one: the cases of PyTorch's AOT tests.

`oracle.py` says what is compared. Each case is a function and how its inputs are made: `inner` are
results that require grad, `leaf` are leaves, `plain` neither.
"""

import pytest

import pullback as pb
from pullback import errors
from tests.helpers.custom_functions import custom_function, writing
from tests.helpers.oracle import check
from tests.helpers.oracle_inputs import inner, leaf, plain, related, values

CASES = {}


def case(start, name=None, **options):
    def keep(function):
        CASES[name or function.__name__] = (function, start, options)
        return function

    return keep


# mutation of inputs: data


@case(inner((2, 3)))
def written(a):
    a.mul_(2)
    return a + 1


@case(plain((2, 3)))
def written_twice(a):
    a.mul_(2)
    a.add_(1)
    return a + 1


@case(inner((2, 3)))
def written_and_returned(a):
    a.mul_(2)
    return a


@case(inner((2, 3), (2, 3)))
def two_written(a, b):
    a.mul_(b.detach() + 1)
    b.add_(1)
    return a.t()[0], b


@case(inner((2, 3)))
def written_item(a):
    a[0] = a[1] * 2
    return a[0], a.sum()


@case(leaf((2, 3)))
def leaf_written_without_tape(a):
    with pb.no_grad():
        a.mul_(2)
    return a * 3


@case(leaf((2, 3)))
def written_through_detached(a):
    a.detach().mul_(2)
    return a * 3


@case(leaf((2, 3)))
def detached_before_the_write_sees_it(a):
    d = a.detach()
    with pb.no_grad():
        a.mul_(2)
    return d + 1, d


@case(related(lambda b: values(4, 3), lambda b: b))
def requires_grad_now(a, b):
    a.add_(b)
    return a * 2


@case(plain((2, 3), (2, 3)))
def out_is_an_input(a, b):
    return pb.sin(a, out=b)


@case(related(lambda b: b.t()))
def written_transposed(a):
    a.mul_(2)
    return a.t(), a * 2


@case(related(lambda b: b[:, 1:2]))
def written_strided(a):
    a.mul_(2)
    return a[0]


# mutation of inputs: shape


@case(plain((2, 3)), "turned_plain")
@case(inner((2, 3)))
def turned(a):
    a.t_()
    return a * 2


@case(inner((2, 3)))
def turned_and_written(a):
    a.t_()
    a.mul_(2)
    return a * 2


@case(inner((2, 3)))
def written_and_turned(a):
    a.mul_(2)
    a.t_()
    return a * 2


@case(plain((2, 3)))
def turned_in_steps(a):
    a.unsqueeze_(0)
    a.squeeze_(0)
    a.transpose_(0, 1)
    return a[0]


@case(plain((2, 3)))
def view_before_the_turn(a):
    v = a[0]
    a.t_()
    return v, a[0]


@case(inner((2, 3)))
def all_kinds_of_aliases(a):
    a.transpose_(0, 1)
    b = a * 2
    return a.unsqueeze(0), b.t().view(-1), b[0]


# outputs that alias inputs


@case(inner((2, 3)))
def views_of_input(a):
    return a.t(), a[0], a.unsqueeze(0)


@case(leaf((2, 3)))
def leaf_and_view(a):
    return a.view(-1), a


@case(inner((2, 3)))
def written_then_viewed(a):
    a.mul_(2)
    return a.view(-1)


@case(inner((2, 3)))
def pieces_of_input(a):
    return a.unbind(0)


@case(inner((2, 3)))
def pieces_and_view_of_input(a):
    return (*a.unbind(0), a.view(-1))


@case(inner((2, 3)))
def same_output_twice(a):
    return {"a": a, "b": a, "c": [a * 2, None, 3]}


@case(leaf((2, 3)))
def detached_output(a):
    return a.detach(), a * 1


@case(inner((2, 3)))
def view_without_tape(a):
    with pb.no_grad():
        return a.view(-1)


# outputs that alias intermediates


@case(inner((2, 3)))
def one_view(a):
    return (a * 2).view(-1)


@case(inner((2, 3)))
def two_views(a):
    b = a * 2
    return b.view(-1), b.t()


@case(inner((2, 3)))
def base_and_views(a):
    b = a * 2
    return b, b.t(), b[0], b


@case(inner((2, 3)))
def detached_and_base(a):
    b = a * 2
    return b.detach(), b


@case(inner((2, 3)))
def detached_view_and_view(a):
    b = (a * 2).t()
    return b.detach(), b


@case(inner((2, 3)))
def pieces(a):
    return (a * 2).unbind(0)


@case(inner((2, 3)))
def pieces_and_view(a):
    b = a * 2
    return (*b.unbind(0), b.view(-1), b.t())  # PyTorch's graphs give one view beside pieces apart


@case(inner((2, 3)))
def view_without_tape_and_base(a):
    b = a * 2
    with pb.no_grad():
        v = b.view(-1)
    return b, v


@case(inner((2, 3)))
def turned_intermediate(a):
    b = a * 2
    b.t_()
    return b, b[0]


@case(inner((2, 3)))
def copy_of_input_viewed(a):
    return a.clone()[0], a.clone().t()


@case(inner((2, 3)))
def equal_computations(a):
    return a * 2, a * 2


@case(inner((2, 3)))
def constants(a):
    return a, pb.ones(2), pb.tensor(3.0)


# inputs that alias inputs


@case(related(lambda b: b, lambda b: b))
def same_input_twice(a, b):
    a.mul_(2)
    return a + b


@case(related(lambda b: b, lambda b: b))
def same_input_twice_unwritten(a, b):
    return a * b


@case(related(lambda b: b, lambda b: b[0]))
def base_written(a, b):
    a.mul_(2)
    return b + 1


@case(related(lambda b: b, lambda b: b[0]))
def view_written(a, b):
    b.mul_(2)
    return a + 1, b.view(-1)


@case(related(lambda b: b, lambda b: b[0]))
def both_written(a, b):
    b.mul_(2)
    a.add_(1)
    b.sin_()
    return a * b


@case(related(lambda b: b, lambda b: b[0]))
def related_unwritten(a, b):
    return a * b, a.view(-1), b[0]


@case(related(lambda b: b[:3], lambda b: b[1:]))
def overlapping(a, b):
    a.mul_(2)
    return b + 1


@case(related(lambda b: b[:2], lambda b: b[2:]))
def disjoint(a, b):
    a.mul_(2)
    b.add_(1)
    return b + 1


@case(related(lambda b: b[:2], lambda b: b[2:4], lambda b: b[3:6], lambda b: b[6:8],
              lambda b: b[7:], lambda b: b[2], shape=(9, 2)))
def overlapping_pairs_beside_another(a, b, c, d, e, unwritten):
    a.mul_(2)
    b.add_(1)
    d.mul_(3)
    return c + 1, e * a[0], unwritten


@case(related(lambda b: b.view(-1), lambda b: b.t(), lambda b: b))
def three_related(a, b, c):
    a.mul_(2)
    return b + 1, b.t(), c


@case(related(lambda b: b, lambda b: b.detach(), tracked=False))
def input_and_detached(a, b):
    a.mul_(2)
    return b + 1, a


@case(related(lambda b: b, lambda b: b.detach()), orders=(1,))
def tracked_input_and_detached(a, b):
    b.mul_(2)
    return a * 3


@case(related(lambda b: b, lambda b: b.t()))
def one_turned_one_written(a, b):
    a.mul_(2)
    return b * 1


# requires_grad


@case(plain((2, 3)), orders=(1,))
def leaf_made_inside(a):
    b = (a * 2).requires_grad_()
    return b, b * 2


@case(plain((2, 3)))
def input_made_a_leaf(a):
    return a.requires_grad_() * 2


@case(plain((2, 3)))
def view_made_a_leaf(a):
    return (a * 2).view(-1).requires_grad_()


@case(inner((2, 3)))
def partly_without_tape(a):
    with pb.no_grad():
        b = a * 2
    return b, a * 3


@case(inner((2, 3)))
def constant_factor(a):
    return a * a.detach()


@case(inner((2, 3)))
def integers(a):
    return a > 1, a.argmax(), a * 1, a.shape[0]


@case(inner((2, 3)))
def gradient_inside(a):
    (g,) = pb.autograd.grad((a * a).sum(), a, create_graph=True)
    return g * 2


# random numbers and custom functions


@case(inner((2, 3)))
def random_numbers(a):
    return pb.nn.functional.dropout(a, 0.5) * pb.rand(3) * a


# not the derivative, so that one can tell
Square = custom_function("Square", lambda x: x * x, lambda grad, x: 3 * x * grad, saves="inputs")


@case(inner((2, 3)))
def custom(a):
    return Square.apply(a)


WritesSaved = writing("WritesSaved", pb.no_grad()(lambda y: y.mul_(2)))


@case(related(lambda b: b, lambda b: values(4, 3)), writes=(False,))
def written_in_backward(a, y):
    return WritesSaved.apply(a, y)


WritesGradient = custom_function("WritesGradient", pb.clone, lambda grad: grad.mul_(2).clone())


@case(inner((2, 3)), writes=(False,), orders=(1,))
def gradient_written_in_backward(a):
    return WritesGradient.apply(a)


@pytest.mark.parametrize("way", ["nop", "boxed", "numpy"])
@pytest.mark.parametrize("name", CASES)
def test_as_eager(name, way):
    function, start, options = CASES[name]
    check(function, start, ways=(way,), **options)


@pytest.mark.parametrize("part", range(4))
def test_as_eager_without_functionalization(part):
    for name in sorted(CASES)[part::4]:
        function, start, options = CASES[name]
        check(function, start, ways=("writing",), **{"orders": (1,), **options})


NATIVE = [
    "written", "written_twice", "turned_and_written", "views_of_input", "pieces_and_view",
    "base_and_views", "detached_and_base", "copy_of_input_viewed", "equal_computations",
    "constants", "both_written", "overlapping", "input_and_detached", "random_numbers", "custom",
    "written_in_backward",
]


@pytest.mark.cc
@pytest.mark.parametrize("name", NATIVE)
def test_as_eager_native(name):
    function, start, options = CASES[name]
    check(function, start, ways=("native",), **options)


def test_saved_output_overwritten():
    x = values(3).requires_grad_()
    y = pb.aot.aot_function(pb.tanh, pb.aot.nop)(x)
    y.mul_(2)
    with pytest.raises(errors.SavedValueModified, match="output 0"):
        y.sum().backward()


def test_saved_input_overwritten():
    x = values(3).requires_grad_() * 1
    y = pb.aot.aot_function(pb.sin, pb.aot.nop)(x)
    x.mul_(2)
    with pytest.raises(errors.SavedValueModified, match="input 0"):
        y.sum().backward()


def test_third_derivative():
    x = values(4).requires_grad_()
    compiled = pb.compile(lambda t: (t.sin() * t).sum(), backend="numpy")
    found = []
    for f in (compiled, lambda t: (t.sin() * t).sum()):
        g = f(x)
        for _ in range(3):
            (g,) = pb.autograd.grad(g.sum(), x, create_graph=True)
        found.append(g)
    assert pb.allclose(*found)


def test_written_behind_the_tape_is_refused_for_second_derivatives():
    def f(a):
        with pb.no_grad():
            a.mul_(2)
        return (a * a).sum()

    leaf = values(3).requires_grad_()
    out = pb.aot.aot_function(f, pb.aot.nop)(leaf * 1)
    with pytest.raises(errors.NotDifferentiable, match=r"no_grad.*test_semantics\.py"):
        pb.autograd.grad(out, leaf, create_graph=True)


def test_memory_shared_under_two_dtypes_is_refused():
    memory = values(4)
    other = pb.from_numpy(memory.numpy().view("int64"))
    f = pb.aot.aot_function(lambda a, b: (a.mul_(2), b + 1)[1], pb.aot.nop)
    with pytest.raises(errors.CompileError, match="different dtypes"):
        f(memory, other)
