"""`gradcheck` and `gradgradcheck`: they must pass right formulas and catch wrong ones.

Wrong derivatives are made with hooks and `detach`, so that no operator has to be broken for it.
"""

import warnings

import pytest

import pullback as torch
from pullback.autograd import gradcheck, gradgradcheck
from tests.helpers.own_entries import entry


def leaf(*shape, dtype=torch.float64):
    count = 1
    for n in shape:
        count *= n
    x = (torch.arange(count, dtype=torch.float64) * 0.37 + 0.2).reshape(shape)
    if dtype.is_complex:
        x = torch.view_as_complex(torch.stack([x, 0.5 - x], -1))
    return x.detach().clone().requires_grad_()


def scaled_gradient(factor):
    """x * x with the gradient of one factor multiplied."""
    def f(x):
        y = x * 1
        y.register_hook(lambda g: g * factor) if y.requires_grad else None
        return y * y
    return f


def hidden(x):
    """x^2 whose derivative forgets one factor."""
    return x * x.detach()


RIGHT = {
    "square": lambda x: x * x,
    "sum of products": lambda x: (x.sin() * x.exp()).sum(),
    "two outputs": lambda x: (x.tanh(), x.sum(0)),
    "matrix": lambda x: x @ x.T,
    "softmax": lambda x: x.softmax(-1),
    "in-place": lambda x: x.clone().mul_(x).add_(1),
    "writes": lambda x: torch.zeros(3, 2, dtype=x.dtype).index_put(
        (torch.tensor([0, 2, 0]),), x, accumulate=True),
    "view": lambda x: x.T[1:] * 2,
}


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("fast", [False, True], ids=["slow", "fast"])
def test_right(name, fast):
    x = leaf(3, 2)
    assert gradcheck(RIGHT[name], (x,), fast_mode=fast, check_forward_ad=True,
                     check_grad_dtypes=True)
    assert gradgradcheck(RIGHT[name], (x,), fast_mode=fast)


def test_batched_gradients():
    assert gradcheck(lambda x: x.sin() * x, leaf(3), check_batched_grad=True)


@pytest.mark.parametrize("fast", [False, True], ids=["slow", "fast"])
@pytest.mark.parametrize("wrong", [scaled_gradient(2.0), scaled_gradient(1.01), hidden,
                                   lambda x: (x * 1, hidden(x))],
                         ids=["doubled", "one percent", "forgotten", "second output"])
def test_wrong(wrong, fast):
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        gradcheck(wrong, leaf(3), fast_mode=fast)
    assert gradcheck(wrong, leaf(3), fast_mode=fast, raise_exception=False) is False


def test_wrong_forward_mode():
    """`hidden` forgets half of the derivative in forward mode too."""
    with pytest.raises(RuntimeError, match="forward"):
        gradcheck(hidden, leaf(3), check_backward_ad=False, check_forward_ad=True)
    with pytest.raises(RuntimeError, match="forward"):
        gradcheck(hidden, leaf(3), check_backward_ad=False, check_forward_ad=True, fast_mode=True)


def test_wrong_second_derivative():
    def f(x):
        return (x * x.detach() + x**3) / 2  # any first derivative, wrong second

    def first_order_only(x):
        y = x * x
        y.register_hook(lambda g: g.detach() * 1) if y.requires_grad else None
        return y

    assert gradcheck(first_order_only, leaf(3))
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        gradgradcheck(first_order_only, leaf(3))
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        gradgradcheck(f, leaf(3))


COMPLEX = {
    "square": lambda z: z * z,
    "conjugate": lambda z: z.conj() * z * 2j,
    "to real": lambda z: z.abs(),
    "from real": lambda z: z.real * z.imag,
    "exp": lambda z: z.exp(),
    "matrix": lambda z: z.reshape(2, 2) @ z.reshape(2, 2).mH,
}


@pytest.mark.parametrize("fast", [False, True], ids=["slow", "fast"])
@pytest.mark.parametrize("name", COMPLEX)
def test_complex(name, fast):
    z = leaf(4, dtype=torch.complex128)
    assert gradcheck(COMPLEX[name], z, fast_mode=fast, check_forward_ad=True)
    assert gradgradcheck(COMPLEX[name], z, fast_mode=fast)


@pytest.mark.parametrize("fast", [False, True], ids=["slow", "fast"])
def test_wrong_conjugation(fast):
    def f(z):
        y = z * 1
        y.register_hook(lambda g: g.conj()) if y.requires_grad else None
        return y * y

    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        gradcheck(f, leaf(3, dtype=torch.complex128), fast_mode=fast)


def test_several_inputs_and_constants():
    x, y = leaf(2, 3), leaf(3)
    constant = torch.ones(2, 3, dtype=torch.float64)
    assert gradcheck(lambda a, b, c, n: a * b + c * n, (x, y, constant, 3))
    with pytest.raises(RuntimeError, match="input 1"):
        gradcheck(lambda a, b: a * b.detach() * b, (x, y))


def test_empty_and_scalar():
    assert gradcheck(lambda x: x * 2, leaf(0))
    assert gradcheck(lambda x: x * x, torch.tensor(2.0, dtype=torch.float64, requires_grad=True))


def test_not_reentrant():
    state = [0.0]

    def f(x):
        y = x * 1

        def grow(g):
            state[0] += 1e-4
            return g * (1 + state[0])

        y.register_hook(grow) if y.requires_grad else None
        return y

    with pytest.raises(RuntimeError):
        gradcheck(f, leaf(2), atol=1.0, rtol=1.0)


def test_no_gradient_where_there_is_one():
    with pytest.raises(RuntimeError, match="expected to be zero"):
        gradcheck(lambda x: x.detach() * 2, leaf(2))
    assert gradcheck(lambda x: torch.ones(2, dtype=torch.float64), leaf(2))


def test_needs_a_differentiable_input_in_double_precision():
    with pytest.raises(ValueError, match="require gradient"):
        gradcheck(lambda x: x, torch.ones(2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gradcheck(lambda x: x * 2, leaf(2, dtype=torch.float64).float().detach().requires_grad_(),
                  atol=1e-1, eps=1e-2)
    assert any("double precision" in str(w.message) for w in caught)


def test_inputs_are_left_alone():
    x = leaf(3)
    before = x.tolist()
    gradcheck(lambda t: t * t, x)
    assert x.tolist() == before and x.grad is None and x._version == 0


# what `check_undefined_grad` and `check_batched_forward_grad` look at


def add_one(gradient):
    """A hook that makes something of nothing."""
    return gradient + 1


def affine_gradient(x):
    y = x * 1
    if y.requires_grad:
        y.register_hook(add_one)
    return y * 1


def test_gradients_of_nothing_must_be_nothing():
    with pytest.raises(RuntimeError, match="undefined or zero"):
        gradcheck(affine_gradient, leaf(3), eps=1e-6, atol=2, rtol=2)
    assert gradcheck(affine_gradient, leaf(3), eps=1e-6, atol=2, rtol=2, check_undefined_grad=False)
    assert gradcheck(affine_gradient, leaf(3), eps=1e-6, atol=2, rtol=2,
                     raise_exception=False) is False


@pytest.fixture
def forgetful():
    """A tensor twice, by a formula that takes both gradients for granted."""
    with entry("test_pair(Tensor self) -> (Tensor, Tensor)", shape="[self.shape, self.shape]",
               run=lambda xp, self: (self.copy(), self.copy()),
               grad={"self": "grads[0] + grads[1]"}) as pair:
        yield pair


def test_formulas_must_do_without_some_gradients(forgetful):
    both = lambda x: forgetful(x * 1)
    with pytest.raises(RuntimeError, match=r"handle undefined output grads.*1 of 2"):
        gradcheck(lambda x: tuple(both(x)), leaf(3), check_backward_ad=True)
    used = lambda x: sum(both(x))
    assert gradcheck(used, leaf(3))


def test_batched_forward_mode():
    assert gradcheck(lambda x: (x.sin() * x, x.sum()), leaf(3), check_forward_ad=True,
                     check_batched_forward_grad=True)
    z = leaf(2, dtype=torch.complex128)
    assert gradcheck(lambda z: z * z, z, check_forward_ad=True, check_batched_forward_grad=True)


def test_batched_forward_mode_is_looked_at():
    """A function that behaves otherwise in a batch."""
    from pullback.interp.vmap import Vmap
    from pullback.threads.state import state

    def f(x):
        batched = any(isinstance(level, Vmap) for level in state.stack)
        return x * 2 if batched else x

    with pytest.raises(RuntimeError, match="batched forward-mode"):
        gradcheck(f, leaf(3), check_forward_ad=True, check_batched_forward_grad=True)
    assert gradcheck(f, leaf(3), check_forward_ad=True)


def test_checks_that_need_a_mode():
    for options in (dict(check_batched_forward_grad=True),
                    dict(check_backward_ad=False),
                    dict(check_backward_ad=False, check_forward_ad=True, check_batched_grad=True)):
        with pytest.raises(AssertionError, match="to be True"):
            gradcheck(lambda x: x, leaf(3), **options)


def cubic(x, y):
    return (x.pow(3) * y).sum(1)


@pytest.mark.parametrize("fast", [False, True], ids=["slow", "fast"])
def test_forward_over_reverse_of_several_inputs(fast):
    x, y = leaf(2, 3), leaf(3)
    assert gradgradcheck(cubic, (x, y), check_fwd_over_rev=True, fast_mode=fast)
    assert gradgradcheck(cubic, (x, y), check_fwd_over_rev=True, check_rev_over_rev=False,
                         check_undefined_grad=False, fast_mode=fast)
    z = leaf(2, dtype=torch.complex128)
    assert gradgradcheck(lambda z: z * z.conj() * z, z, check_fwd_over_rev=True, fast_mode=fast)


def test_all_options_together():
    x, y = leaf(2, 3), leaf(3)
    for fast in (False, True):
        assert gradcheck(cubic, (x, y), check_forward_ad=True, check_batched_grad=True,
                         check_batched_forward_grad=True, check_grad_dtypes=True,
                         check_undefined_grad=True, nondet_tol=1e-9, masked=True,
                         fast_mode=fast)
    assert gradgradcheck(cubic, (x, y), gen_non_contig_grad_outputs=True,
                         check_batched_grad=True, check_grad_dtypes=True)


def test_tensors_in_lists():
    x, y = leaf(3), leaf(3)
    assert gradcheck(lambda ts: torch.stack(ts).sin(), ([x, y],), check_forward_ad=True)
    assert gradgradcheck(lambda ts: torch.stack(ts).sin(), ([x, y],))


def test_report_names_the_worst_entry():
    with pytest.raises(RuntimeError, match=r"d output\[1, 2\] / d input\[1, 2\]") as caught:
        gradcheck(hidden, leaf(2, 3))
    with pytest.raises(RuntimeError, match=r"d output\[1\]\.(real|imag) / d input\[1\]"):
        gradcheck(hidden, leaf(2, dtype=torch.complex128))
    assert "numerical" in str(caught.value)
    with pytest.raises(RuntimeError, match="worst entry"):
        gradcheck(hidden, leaf(2, 3), fast_mode=True)


def test_refusals():
    x = leaf(3)
    with pytest.raises(ValueError, match="at least one input"):
        gradcheck(torch.sin, x.detach(), raise_exception=False)
    with pytest.raises(RuntimeError, match="stride 0"):
        gradcheck(torch.sin, x[:1].expand(3))
    with pytest.raises(AssertionError, match="same shape"):
        gradcheck(lambda x: x[:1] if float(x[0]) > 0.2 else x, x)
    with pytest.raises(AssertionError, match="at least one"):
        gradgradcheck(torch.sin, x, check_rev_over_rev=False)
    with pytest.raises(AssertionError, match="check_undefined_grad"):
        gradgradcheck(torch.sin, x, check_rev_over_rev=False, check_fwd_over_rev=True)


def test_wrappers_have_values():
    from pullback.testing.logging_tensor import LoggingTensor

    x = LoggingTensor(torch.tensor([0.5, 1.5], dtype=torch.float64)).requires_grad_()
    assert gradcheck(torch.sin, (x,))
