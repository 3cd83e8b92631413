"""Tensors in one row and back, parts of complex tensors, names that packages import."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.utils.flat import _flatten_dense_tensors, _unflatten_dense_tensors


def test_there_and_back():
    tensors = [torch.arange(6.0).reshape(2, 3).t(), torch.ones(4), torch.empty(0)]
    flat = _flatten_dense_tensors(tensors)
    assert flat.tolist() == [0, 3, 1, 4, 2, 5, 1, 1, 1, 1]
    parts = _unflatten_dense_tensors(flat, tensors)
    assert all(torch.equal(p, t) for p, t in zip(parts, tensors, strict=True))
    parts[1].zero_()
    assert flat[6:].tolist() == [0, 0, 0, 0]
    assert _flatten_dense_tensors(tensors[1:2])._base is tensors[1]


def test_parts_are_written():
    x = torch.zeros(2, dtype=torch.complex64)
    leaf = torch.ones(2, requires_grad=True)
    x.real, x.imag = 3, leaf * 2
    assert x.tolist() == [3 + 2j, 3 + 2j]
    x.abs().sum().backward()
    assert torch.allclose(leaf.grad, torch.full((2,), 4 / 13**0.5))
    x = torch.ones(2)
    x.real *= 2
    assert x.tolist() == [2, 2]
    with pytest.raises(TypeError, match="can't assign a list"):
        x.real = [1.0, 2.0]
    with pytest.raises(RuntimeError, match="imag is not implemented"):
        x.imag = 1
    with pytest.raises(RuntimeError, match="without overflow"):
        x.real = 1j


def test_what_needs_several_processes_can_be_imported():
    from pullback.machine import distributed

    assert not isinstance(3, distributed.ProcessGroup)
    assert distributed.ReduceOp.SUM is not distributed.ReduceOp.MAX
    with pytest.raises(ValueError, match="not been initialized"):
        distributed.all_gather_into_tensor(torch.ones(2), torch.ones(1))
    assert torch.cuda._initialized is False
