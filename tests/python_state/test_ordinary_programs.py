"""Ordinary programs yield the same with and without `compile`."""

import functools

import numpy as np
import pytest

import pullback as torch
from pullback.pytree import tree_flatten
from tests.helpers.ordinary_programs import PROGRAMS

pytestmark = pytest.mark.filterwarnings("ignore::pullback.compile.errors.CompileWarning")


def seen(name, compiled):
    torch.manual_seed(0)
    leaves = []
    for found in PROGRAMS[name](compiled):
        leaves += tree_flatten(found)[0]
        leaves = [v.detach().clone() if isinstance(v, torch.Tensor) else v for v in leaves]
    return leaves


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_same(name, backend):
    expected = seen(name, lambda function: function)
    found = seen(name, functools.partial(torch.compile, backend=backend))
    assert len(found) == len(expected) > 0
    for a, b in zip(found, expected):
        if not isinstance(b, torch.Tensor):
            assert a == b
            continue
        assert a.dtype is b.dtype and a.shape == b.shape
        assert np.allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)
