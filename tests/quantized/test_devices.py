"""Quantised tensors on a second device (`second_device.py`): results are those of the CPU."""

import pytest

import pullback as torch
from tests.helpers import second_device as second

NAME = second.install()
X = torch.arange(12.0).reshape(4, 3).sin()


def whole(x):
    return torch.quantize_per_tensor(x, 0.1, 2, torch.qint8)


def channels(x):
    scales = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64, device=x.device)
    zeros = torch.tensor([0, 1, 2], device=x.device)
    return torch.quantize_per_channel(x, scales, zeros, 1, torch.qint8)


def bytewise(x):
    scales = torch.full((4,), 0.2, dtype=torch.float64, device=x.device)
    return torch.quantize_per_channel(x, scales, scales.long(), 0, torch.quint4x2)


def written(q, value):
    q[1] = value
    return q


EACH = {
    "numbers": lambda q: q.dequantize(), "integers": lambda q: q.int_repr(),
    "clone": lambda q: q.clone(), "select": lambda q: q[1], "slice": lambda q: q[:, 1:],
    "t": lambda q: q.t(), "list": lambda q: q[[0, 2]], "equal": lambda q: torch.equal(q, q.clone()),
    "float": lambda q: q.dequantize().double(),
}
WHOLE = {
    "relu": lambda q: q.relu(), "cat": lambda q: torch.cat([q, q]), "max": lambda q: q.max(),
    "reshape": lambda q: q.reshape(3, 4), "write": lambda q: written(q.clone(), 1.0),
    "add": lambda q: torch.ops.quantized.add(q, q, 0.2, 0),
    "add_scalar": lambda q: torch.ops.quantized.add_scalar(q, 0.2),
    "mul_scalar": lambda q: torch.ops.quantized.mul_scalar(q, 0.2),
    "empty": lambda q: torch.empty_quantized((4, 3), q).copy_(q),
    "affine": lambda q: torch._empty_affine_quantized(
        (4, 3), scale=0.1, zero_point=0, dtype=torch.qint8, device=q.device).copy_(q),
}


@pytest.mark.parametrize("make", [whole, channels])
@pytest.mark.parametrize("name", EACH)
def test_functions(name, make):
    second.same_there(lambda x: EACH[name](make(x)), X, place=NAME)


@pytest.mark.parametrize("name", WHOLE)
def test_one_scale(name):
    second.same_there(lambda x: WHOLE[name](whole(x)), X, place=NAME)


@pytest.mark.parametrize("make", [whole, channels, bytewise])
def test_parameters_go_with_the_integers(make):
    q = make(X)
    there = q.to(NAME)
    assert there.device.type == NAME and there.shape == q.shape and there.dtype is q.dtype
    assert torch.equal(there.dequantize().cpu(), q.dequantize())
    assert torch.equal(there.to("cpu").dequantize(), q.dequantize())
    if make is not whole:
        assert there.q_per_channel_scales().device.type == NAME
