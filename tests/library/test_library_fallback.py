"""Operators of a `Library` without a gradient, libraries that come and go, kernels of the table."""

import gc
import warnings

import numpy as np
import pytest

import pullback as torch
from pullback import _C, library
from pullback.library import _scoped_library
from tests.helpers.custom_functions import custom_function


@pytest.fixture
def lib():
    with _scoped_library("tests_fallback", "FRAGMENT") as made:
        yield made


@pytest.fixture(params=["warn", "nothing"])
def mode(request):
    before = _C._get_autograd_fallback_mode()
    _C._set_autograd_fallback_mode(request.param)
    yield request.param
    _C._set_autograd_fallback_mode(before)


OPS = torch.ops.tests_fallback
LEAF = lambda *values: torch.tensor(values, requires_grad=True)


def warned(mode, run):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        out = run()
    found = [w for w in seen if "an autograd kernel was not registered" in str(w.message)]
    assert bool(found) == (mode == "warn")
    return out


def test_a_kernel_of_operators_has_their_gradients(lib, mode):
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x.sin().sum(), "CPU")
    x = LEAF(0.0, 1.0)
    y = OPS.f(x)
    warned(mode, y.backward)
    assert torch.allclose(x.grad, x.detach().cos())
    with torch.no_grad():
        assert not OPS.f(x).requires_grad


def test_a_function_as_kernel(lib, mode):
    class Sine(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.tensor(np.sin(x.detach().numpy()))

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0].cos()

    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", Sine.apply, "CPU")
    x = LEAF(0.0, 1.0)
    warned(mode, OPS.f(x).sum().backward)
    assert torch.allclose(x.grad, x.detach().cos())


def test_a_kernel_that_leaves_the_library(lib, mode):
    lib.define("f(Tensor a, Tensor b, int c) -> Tensor")
    lib.impl("f", lambda a, b, c: torch.tensor(a.detach().numpy() + b.detach().numpy() + c), "CPU")
    b = LEAF(1.0)
    out = OPS.f(torch.ones(1), b, 1)
    assert out.requires_grad == (mode == "warn")
    if mode == "nothing":
        with pytest.raises(RuntimeError, match="does not require grad"):
            out.sum().backward()
    else:
        assert type(out.grad_fn).__name__.startswith("WarnNotImplemented")
        warned(mode, out.sum().backward)
    assert b.grad is None


def test_results_that_are_arguments(lib, mode):
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x, "CPU")
    x = LEAF(1.0, 2.0)
    assert OPS.f(x.detach()).tolist() == [1, 2]
    plain = torch.ones(2)
    assert OPS.f(plain) is plain
    warned(mode, OPS.f(x).sum().backward)
    assert x.grad.tolist() == [1, 1]


def test_writes(lib, mode):
    lib.define("f(Tensor(a!) x, Tensor(b!) y) -> (Tensor(a!), Tensor(b!))")

    def write(x, y):
        with torch.no_grad():
            x.sin_()
            y.cos_()
        return x, y

    lib.impl("f", write, "CPU")
    x = LEAF(1.0, 2.0)
    a, b = x.clone(), x.clone()
    OPS.f(a[0], b[1])
    assert np.allclose(a.detach(), [np.sin(1), 2]) and np.allclose(b.detach(), [1, np.cos(2)])
    warned(mode, lambda: a.sum().backward(retain_graph=True))
    # one that does not require grad stays so
    lib.define("g(Tensor(a!) x, Tensor y) -> ()")
    lib.impl("g", _added, "CPU")
    z = torch.ones(2)
    OPS.g(z, x)
    assert not z.requires_grad and z.tolist() == [2, 3]


def _added(x, y):
    x.detach().add_(y.detach())


def test_lists(lib, mode):
    lib.define("f(Tensor[] a) -> Tensor[]")

    def both(a):
        with torch.no_grad():
            return [a[0] + a[1], a[0] * a[1]]

    lib.impl("f", both, "CPU")
    x, y = LEAF(2.0), LEAF(3.0)
    total, product = OPS.f([x, y])
    assert (total.item(), product.item()) == (5, 6)
    if mode == "warn":
        found = warned(mode, lambda: torch.autograd.grad(total, (x, y), torch.ones(1),
                                                         allow_unused=True))
        assert found == (None, None)


def test_the_mode():
    assert _C._get_autograd_fallback_mode() == "warn"
    with pytest.raises(ValueError, match='set it to "warn" or "nothing"'):
        _C._set_autograd_fallback_mode("error")


def test_what_kernels_are_given(lib):
    seen = []
    lib.define("f(Tensor x, int k=3, *, int m=4) -> Tensor")
    lib.impl("f", lambda *a, **k: seen.append((a[1:], k)) or a[0], "CPU")
    x = torch.ones(1)
    OPS.f(x), OPS.f(x, 3, m=5), OPS.f(x, 7)
    assert seen == [((), {}), ((), {"m": 5}), ((7,), {})]
    lib.define("kw(Tensor x, *, Tensor? y) -> Tensor")
    lib.impl("kw", lambda x, *, y: x if y is None else x + y, "CPU")
    assert OPS.kw(x, y=None).item() == 1 and OPS.kw(x, y=x).item() == 2
    lib.define("none(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match=r"Could not run 'tests_fallback::none'.*'CPU'"):
        OPS.none(x)
    for text, body in (("h(Tensor x) -> (Tensor, Tensor)", lambda x: x),
                       ("i(Tensor x) -> Tensor", lambda x: 3)):
        lib.define(text)
        lib.impl(text[0], body, "CPU")
        with pytest.raises((RuntimeError, TypeError), match=r"schema"):
            getattr(OPS, text[0])(x)


def test_which_function_runs(lib):
    calls = []
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x + 1)  # a function of operators
    assert OPS.f(torch.zeros(1)).item() == 1
    lib.impl("f", lambda x: x + 2, "CPU")
    assert OPS.f(torch.zeros(1)).item() == 2

    def for_autograd(x):
        calls.append(1)
        with _C._AutoDispatchBelowAutograd():
            return OPS.f(x)

    lib.impl("f", for_autograd, "Autograd")  # it is asked whether a gradient is or not
    assert OPS.f(torch.zeros(1)).item() == 2 and len(calls) == 1
    with torch.inference_mode():
        OPS.f(torch.zeros(1))
    assert len(calls) == 1


def test_functions_go_with_their_library(lib):
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x + 1)
    other = library.Library("tests_fallback", "IMPL", "CPU")
    with pytest.raises(RuntimeError, match="inconsistent with the dispatch key"):
        other.impl("f", lambda x: x, "Meta")
    other.impl("f", lambda x: x + 2)
    assert OPS.f(torch.zeros(1)).item() == 2
    del other
    gc.collect()
    assert OPS.f(torch.zeros(1)).item() == 1
    with pytest.raises(ValueError, match="reserved namespace"):
        library.Library("prim", "FRAGMENT")
    with pytest.raises(RuntimeError, match="Invalid alias_analysis"):
        lib.define("g(Tensor x) -> Tensor", "GUESS")
    assert hasattr(torch.ops, "tests_gone")
    del torch.ops.tests_gone
    assert hasattr(torch.ops, "tests_gone")


def test_other_kernels_for_the_table():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with _scoped_library("aten", "IMPL") as lib:
        lib.impl("aten::sum", lambda x, **kwargs: x.clone(), "CPU")
        assert torch.sum(x.detach()).tolist() == [1, 2]
        with _scoped_library("aten", "IMPL", "CPU") as inner:
            inner.impl(torch.ops.aten.exp.default, lambda x: x * 10)
            y = torch.exp(x)
            assert y.tolist() == [10, 20]
            y.backward(torch.ones(2))  # the derivative is that of the operator
            assert x.grad.tolist() == [10, 20]
        assert torch.allclose(torch.exp(x), torch.tensor([np.e, np.e**2]).float())
        assert not torch.utils._python_dispatch._get_current_dispatch_mode_stack()
        with pytest.raises(RuntimeError, match="does not exist"):
            lib.impl("no_such_operator", lambda x: x, "CPU")
        with pytest.raises(NotImplementedError, match="dispatch key autograd"):
            lib.impl("neg", lambda x: x, "Autograd")
        with pytest.raises(RuntimeError, match="does not match namespace"):
            lib.impl("mine::neg", lambda x: x, "CPU")
    assert torch.sum(x.detach()).item() == 3


def test_opcheck_sees_who_makes_the_history(lib):
    Half = custom_function("Half", torch.clone, lambda grad: grad * 0.5)
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", Half.apply, "CPU")
    lib.impl("f", torch.empty_like, "Meta")
    with pytest.raises(AssertionError, match="does not have an autograd kernel"):
        library.opcheck(OPS.f.default, (LEAF(1.0),), test_utils="test_autograd_registration")
    assert library.opcheck(OPS.f.default, (torch.ones(1),),
                           test_utils="test_autograd_registration") == {
        "test_autograd_registration": "SUCCESS"}
    for name, body, text in (
            ("g", lambda x: x.sin_().clone(), "Argument x is not defined as mutable but was"),
            ("h", lambda x: x.view_as(x), "Argument x is not defined to alias output")):
        lib.define(f"{name}(Tensor x) -> Tensor")
        lib.impl(name, body, "CPU")
        with pytest.raises((AssertionError, RuntimeError), match=text):
            library.opcheck(getattr(OPS, name).default, (torch.ones(2),), test_utils="test_schema")


def test_below_the_tape_as_long_as_it_lives():
    x = LEAF(1.0)
    guard = _C._AutoDispatchBelowAutograd()
    assert not (x * 2).requires_grad
    del guard
    assert (x * 2).requires_grad
