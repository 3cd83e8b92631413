"""`testing.assert_close`, generators, einsum orders and printing. Messages are PyTorch 2.13's."""

import copy
import pickle

import numpy as np
import pytest

import pullback as torch
from pullback import functional, printing
from pullback.testing import assert_close, make_tensor

nan, inf = float("nan"), float("inf")


def t(*values, **options):
    return torch.tensor(values, **options)


WRONG = {
    "values": ((t(1.0, 2.0, 3.0), t(1.0, 2.5, 3.0)), {}, (
        "Tensor-likes are not close!\n\nMismatched elements: 1 / 3 (33.3%)\n"
        "Greatest absolute difference: 0.5 at index (1,) (up to 1e-05 allowed)\n"
        "Greatest relative difference: 0.2 at index (1,) (up to 1.3e-06 allowed)")),
    "integers": ((t(1, 2, 3), t(1, 2, 4)), {}, (
        "Tensor-likes are not equal!\n\nMismatched elements: 1 / 3 (33.3%)\n"
        "Greatest absolute difference: 1 at index (2,)\n"
        "Greatest relative difference: 0.25 at index (2,)")),
    "nan": ((t(1.0, nan), t(1.0, nan)), {}, "Greatest absolute difference: nan at index (1,)"),
    "infinity": ((t(1.0, inf), t(1.0, 2.0)), {}, "Greatest absolute difference: inf"),
    "zero": ((t(1.0), t(0.0)), {}, "Greatest relative difference: inf at index (0,)"),
    "shape": ((t(1.0), t(1.0, 2.0)), {}, "attribute 'shape' do not match: torch.Size([1]) !="),
    "dtype": ((t(1.0), t(1.0, dtype=torch.float64)), {}, "attribute 'dtype' do not match"),
    "stride": ((torch.ones(2, 3).T, torch.ones(3, 2)), {"check_stride": True},
               "attribute 'stride()' do not match: (1, 3) != (2, 1)."),
    "scalar": ((torch.tensor(1.0), torch.tensor(2.0)), {}, (
        "Scalars are not close!\n\nExpected 2.0 but got 1.0.\n"
        "Absolute difference: 1.0 (up to 1e-05 allowed)\n"
        "Relative difference: 0.5 (up to 1.3e-06 allowed)")),
    "numbers": ((1.0, 2.0), {}, "Expected 2.0 but got 1.0."),
    "number types": ((1, 1.0), {}, "(d)types do not match: <class 'int'> != <class 'float'>."),
    "booleans": ((True, False), {}, "Booleans mismatch: True is not False"),
    "none": ((None, 1), {}, "None mismatch: None is not 1"),
    "lengths": (([1], [1, 2]), {}, "The length of the sequences mismatch: 1 != 2"),
    "item": (({"a": [t(1.0), t(1.0)]}, {"a": [t(1.0), t(0.0)]}), {},
             "The failure occurred for item ['a'][1]"),
    "keys": (({"a": 1}, {"b": 1}), {}, (
        "The keys of the mappings do not match:\nMissing keys in the actual mapping: ['b']\n"
        "Additional keys in the actual mapping: ['a']")),
    "message": ((1, 2), {"msg": "mine"}, "mine"),
    "made message": ((1, 2), {"msg": lambda text: f"see: {text[:7]}"}, "see: Scalars"),
    "arrays": ((np.ones(2), np.zeros(2)), {}, "Mismatched elements: 2 / 2 (100.0%)"),
}


@pytest.mark.parametrize("name", WRONG)
def test_messages(name):
    (actual, expected), options, text = WRONG[name]
    with pytest.raises(AssertionError) as caught:
        assert_close(actual, expected, **options)
    assert text in str(caught.value)


def test_what_is_close():
    assert_close(t(1.0, nan), t(1.0, nan), equal_nan=True)
    assert_close(t(1.0), t(1.0, dtype=torch.float64), check_dtype=False)
    assert_close([1.0, {"a": None}], [1.0 + 1e-9, {"a": None}])
    assert_close(t(1.0), t(1.0 + 5e-6))
    assert_close(t(1.0, requires_grad=True), torch.nn.Parameter(t(1.0)))
    assert_close(t(inf), t(inf))
    assert_close(t(1.0, dtype=torch.bfloat16), t(1.01, dtype=torch.bfloat16))
    for bad in (lambda: assert_close(t(1.0), [1.0]), lambda: assert_close("a", "a"),
                lambda: assert_close(torch.tensor(1.0), 1.0)):
        with pytest.raises(TypeError, match="No comparison pair"):
            bad()
    with pytest.raises(ValueError, match="rtol"):
        assert_close(t(1.0), t(1.0), rtol=0.1)


@pytest.mark.parametrize("name", ["float32", "complex64", "int64", "bool", "uint8"])
def test_data_for_tests(name):
    d = getattr(torch, name)
    x = make_tensor(4, 5, dtype=d, low=0, high=2, noncontiguous=True, exclude_zero=True)
    assert x.dtype is d and x.shape == (4, 5) and not x.is_contiguous()
    assert (x != 0).all() and (name == "bool" or (x.abs() < 3).all())


# generators


def test_states_are_tensors_that_can_be_kept():
    g = torch.Generator()
    g.manual_seed(3)
    state = g.get_state()
    assert isinstance(state, torch.Tensor) and state.dtype is torch.uint8 and state.numel() == 5056
    first = torch.rand(3, generator=g)
    g.set_state(state)
    assert torch.equal(first, torch.rand(3, generator=g))
    for other in (copy.deepcopy(g), pickle.loads(pickle.dumps(g)), g.clone_state()):
        assert torch.equal(torch.rand(3, generator=other), torch.rand(3, generator=g.clone_state()))
    assert g.device == torch.device("cpu") and g.initial_seed() == 3


def test_forked_generators():
    torch.manual_seed(0)
    expected = torch.rand(2)
    torch.manual_seed(0)
    with torch.random.fork_rng():
        torch.rand(100)
    torch.random.fork_rng()(lambda: torch.rand(100))()
    assert torch.equal(torch.rand(2), expected)
    with torch.random.fork_rng(enabled=False):
        torch.manual_seed(0)
    assert torch.equal(torch.rand(2), expected)
    for bad in (lambda: torch.random.fork_rng(devices=[0]),
                lambda: torch.random.fork_rng(device_type="nope")):
        with pytest.raises(RuntimeError):
            bad()


# einsum


def test_products_of_many_matrices_go_the_cheap_way():
    a, b, c = torch.randn(2, 50), torch.randn(50, 50), torch.randn(50, 1)
    assert functional._path("ij,jk,kl->il", [a, b, c]) == [1, 2, 0, 1]
    expected = a.double() @ b.double() @ c.double()
    for enabled in (True, False):
        for strategy in ("auto", "greedy", "optimal"):
            with torch.backends.opt_einsum.flags(enabled=enabled, strategy=strategy):
                out = torch.einsum("ij,jk,kl->il", a, b, c)
            assert torch.allclose(out.double(), expected, atol=1e-4)
    with torch.backends.opt_einsum.flags(enabled=False):
        assert functional._path("ij,jk,kl->il", [a, b, c]) is None
    with torch.backends.opt_einsum.flags(strategy="best"), pytest.raises(ValueError, match="best"):
        torch.einsum("ij,jk,kl->il", a, b, c)
    with pytest.raises((RuntimeError, ValueError)):
        torch.einsum("ij,jk,kl->il", a, a, c)


def test_printing_otherwise_for_a_while():
    x = t(1.23456)
    with printing.printoptions(precision=2):
        assert repr(x) == "tensor([1.23])"
    assert repr(x) == "tensor([1.2346])"
