"""Marks of sizes: what users say of them, and what compiled functions say of their results."""

import pytest

import pullback as torch
from pullback import _dynamo as dynamo
from pullback import errors
from pullback.aot import aot_function


def marks(values):
    """Dims that were symbols, of each tensor."""
    return [sorted(getattr(t, "_dynamo_propagated_dynamic_indices", ()))
            if isinstance(t, torch.Tensor) else t for t in values]


def several(x, y):
    return x * 2, x @ y, x.t(), (x * 3).view(-1), x.sum(), x, x.shape[0]


def inputs(grad, mark=None):
    x, y = torch.randn(4, 3, requires_grad=grad), torch.randn(3, 5, requires_grad=grad)
    if mark is not None:
        mark(x, 0)
    return x, y


@pytest.mark.parametrize("grad", [False, True])
def test_results_say_which_sizes_were_symbols(grad):  # lists are PyTorch's
    f = torch.compile(several, backend="numpy", dynamic=True)
    assert marks(f(*inputs(grad))) == [[0, 1], [0, 1], [0, 1], [0], [], [], 4]
    for mark in (dynamo.mark_dynamic, dynamo.maybe_mark_dynamic):
        given = inputs(grad, mark)
        f = torch.compile(several, backend="numpy")
        assert marks(f(*given)) == [[0], [0], [1], [0], [], [], 4] and marks(given) == [[], []]
    f = torch.compile(several, backend="numpy")
    assert marks(f(*inputs(grad))) == [[], [], [], [], [], [], 4]
    f = aot_function(several, lambda m, _: m, dynamic=True)
    assert marks(f(*inputs(grad))) == [[0, 1], [0, 1], [0, 1], [0], [], [0, 1], 4]


@pytest.mark.parametrize("grad", [False, True])
def test_every_call_says_so(grad):
    f = torch.compile(lambda x, y: x * 2 + y.sum(), backend="numpy", dynamic=True)
    for _ in range(3):
        assert marks([f(*inputs(grad))]) == [[0, 1]]


@pytest.mark.parametrize("dynamic", [True, None])
def test_saved_values_say_so_too(dynamic):
    f = torch.compile(lambda x, y: (x @ y).sin().cos(), backend="numpy", dynamic=dynamic)
    out = f(*inputs(True))
    saved = out.grad_fn.saved_tensors
    assert len(saved) == 3 and marks(saved) == [[0, 1] if dynamic else []] * 3
    out.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        out.grad_fn.saved_tensors


def test_the_next_function_takes_them_as_symbols():
    first = torch.compile(lambda x: x * 2, backend="numpy", dynamic=True)
    second = torch.compile(lambda x: x + 1, backend="numpy")
    for shape in ((4, 3), (6, 3), (6, 8)):
        second(first(torch.randn(*shape)))
    second(torch.randn(7, 7))
    (family,) = second.families.values()
    assert len(family.programs) == 1 and not second.recompiles
    never = torch.compile(lambda x: x + 1, backend="numpy", dynamic=False)
    never(first(torch.randn(4, 3)))
    assert not next(iter(never.families.values())).programs


@pytest.mark.parametrize("program", [
    lambda x: x * 2, lambda x: x.sum(0) * x.shape[0], lambda x: x + torch.ones(x.shape[0], 3),
    lambda x: x.view(-1), lambda x: x.reshape(x.shape[0] * 3), lambda x: x.softmax(1),
    lambda x: x @ torch.ones(3, 2), lambda x: torch.cat([x, x]), lambda x: x[1:],
    lambda x: x + x.sum(0), lambda x: x.t() @ x])
def test_a_size_that_nothing_depends_on(program):
    f = torch.compile(program, backend="numpy", fullgraph=True)
    for n in (4, 1, 0, 7):
        x = torch.ones(n, 3)
        dynamo.mark_unbacked(x, 0)
        assert torch.equal(f(x), program(x))
    assert not f.recompiles


def test_what_depends_on_such_a_size_is_refused():
    x = torch.ones(4, 3)
    dynamo.mark_unbacked(x, 0)
    for program in (lambda x: x * 2 if x.shape[0] > 4 else x, lambda x: [*range(x.shape[0])]):
        with pytest.raises(errors.GuardOnDataDependentSymNode, match="u0"):
            torch.compile(program, backend="numpy", fullgraph=True)(x)

    f = torch.compile(lambda x: (torch._check(x.shape[0] >= 1), x * 2)[1], backend="numpy")
    assert f(x).sum() == 24
    empty = torch.ones(0, 3)
    dynamo.mark_unbacked(empty, 0)
    with pytest.raises(RuntimeError, match="Expected cond to be True"):
        f(empty)


def test_what_marks_leave_on_tensors():
    x = torch.ones(3, 4)
    dynamo.mark_dynamic(x, [0, 1])
    dynamo.mark_dynamic(x, 1, min=2, max=8)
    assert x._dynamo_dynamic_indices == {0, 1}
    assert [tuple(r) for r in x._dynamo_dynamic_range] == [(1, 2, 8)]
    dynamo.mark_static(x)
    assert x._dynamo_static_indices == {0, 1}
    dynamo.maybe_mark_dynamic(x, (0,))
    assert x._dynamo_weak_dynamic_indices == {0}


def test_marked_sizes():
    def marked(n, **limits):
        x = torch.ones(n, 3)
        dynamo.mark_dynamic(x, 0, **limits)
        return x

    f = torch.compile(lambda x: x + torch.ones(x.shape[0], 3), backend="numpy")
    for n in (1, 5, 1, 0, 7):  # 0 and 1 have programs of their own
        f(marked(n))
    assert len(f.recompiles) == 2
    g = torch.compile(lambda x: x * 2, backend="numpy")
    with pytest.raises(errors.ConstraintViolationError, match=r"It is 12, .* at most 10"):
        g(marked(12, max=10))
    assert g(marked(9, max=10)).shape == (9, 3)
    with pytest.raises(errors.ConstraintViolationError, match="right for 4 only"):
        torch.compile(lambda x: x + torch.ones(4, 3), backend="numpy")(marked(4))


def test_sizes_that_do_not_fit_what_is_assumed_of_them():
    def marked(*shape):
        x = torch.ones(*shape)
        dynamo.mark_unbacked(x, 0)
        return x

    f = torch.compile(lambda x, y: (x + y) * 2, backend="numpy", dynamic=True)
    assert f(marked(4), marked(4)).tolist() == [4.0] * 4
    assert f(marked(6), marked(6)).tolist() == [4.0] * 6 and not f.recompiles
    for sizes in ((5, 3), (5, 1), (0, 4)):
        with pytest.raises(RuntimeError, match="do not fit"):
            f(*map(marked, sizes))
    assert f(marked(7), marked(7)).tolist() == [4.0] * 7
