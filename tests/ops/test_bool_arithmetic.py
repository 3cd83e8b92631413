"""Arithmetic that bool tensors do not take part in, with PyTorch's exception type and advice."""

import operator

import pytest

import pullback as torch

MASK = torch.tensor([True, False])
OTHERS = {
    "number": 1,
    "float": 1.5,
    "integers": torch.tensor([1, 2]),
    "floats": torch.tensor([1.0, 2.0]),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("subtract", [operator.sub, torch.sub, torch.subtract, torch.rsub])
def test_subtraction_of_a_mask_is_refused(name, subtract):
    other = OTHERS[name]
    with pytest.raises(RuntimeError, match=r"with a bool tensor is not supported.*logical_not"):
        subtract(MASK, other)
    if isinstance(other, torch.Tensor):
        with pytest.raises(RuntimeError, match="with a bool tensor is not supported"):
            subtract(other, MASK)
    if subtract is operator.sub:
        with pytest.raises(RuntimeError, match="with a bool tensor is not supported"):
            subtract(other, MASK)


def test_subtraction_of_two_masks_is_refused():
    for call in (lambda: MASK - MASK, lambda: MASK - True, lambda: MASK.clone().sub_(MASK)):
        with pytest.raises(RuntimeError, match=r"two bool tensors is not supported.*logical_xor"):
            call()


def test_a_bool_number_counts_as_bool():
    for x in (torch.ones(2), torch.ones(2, dtype=torch.int64)):
        with pytest.raises(RuntimeError, match="with a bool tensor is not supported"):
            x - True


def test_negation_is_refused():
    for call in (lambda: -MASK, lambda: torch.neg(MASK), lambda: torch.negative(MASK),
                 lambda: MASK.clone().neg_()):
        with pytest.raises(RuntimeError, match=r"Negation.*on a bool tensor is not supported"):
            call()


def test_addcmul_is_refused():
    def call(x):
        return torch.addcmul(x, x, x, value=0.5)

    for f in (call, torch.compile(call), torch.func.vmap(call)):
        with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
            f(MASK)


def test_transforms_and_capture_refuse_too():
    for f in (lambda x: 1 - x, lambda x: -x):
        with pytest.raises(RuntimeError, match="bool tensor is not supported"):
            torch.func.vmap(f)(MASK)
        for mode in ("real", "fake"):
            with pytest.raises(RuntimeError, match="bool tensor is not supported"):
                torch.make_fx(f, tracing_mode=mode)(MASK)


def test_what_bools_may_do():
    assert (MASK + MASK).tolist() == [True, False] and (MASK * 2).tolist() == [2, 0]
    assert (1 + MASK).tolist() == [2, 1] and (~MASK).tolist() == [False, True]
