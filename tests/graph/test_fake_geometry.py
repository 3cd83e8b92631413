"""Fake results lie in memory as real ones do: strides and offsets, for every operator of the table.

Captures decide by them whether a `view` is one; a backend runs that on real results.
"""

import numpy as np
import pytest

import pullback
from pullback import errors
from pullback.core.handle import Tensor, make
from pullback.core.overload import overload_of
from pullback.fx.fake_mode import FakeTensorMode
from pullback.pytree import tree_leaves, tree_map
from pullback.table.packets import load_all, registry
from pullback.testing.samples import cases

load_all()
# the start is a number in a tensor: without its value nobody knows the offset
UNKNOWN_OFFSET = {"narrow.Tensor"}


def relaid(t):
    """The same values with channels last, or with all dims in reverse order in memory."""
    if not isinstance(t, Tensor) or t.ndim < 2:
        return t
    order = (0, *range(2, t.ndim), 1) if t.ndim in (4, 5) else tuple(range(t.ndim))[::-1]
    return make(np.ascontiguousarray(t._payload.transpose(order)).transpose(np.argsort(order)))


def facts(t):
    if not isinstance(t, Tensor):
        return t if isinstance(t, (int, str)) else None
    steps = [step for n, step in zip(t.shape, t.stride()) if n > 1] if t.numel() else []
    return tuple(t.shape), t.dtype, steps, t.storage_offset(), t.is_contiguous()


def differing(op):
    ov = overload_of(op)
    for i, case in enumerate(cases(op)):
        args, kwargs = tree_map(relaid, (case.args, case.kwargs))
        mode = FakeTensorMode(allow_non_fake_inputs=True)
        fakes, named = tree_map(
            lambda t: mode.from_tensor(t) if isinstance(t, Tensor) else t, (args, kwargs))
        try:
            want = ov(*args, **kwargs)  # after the fakes are made: it may change its arguments
        except RuntimeError:
            continue  # a view that this layout does not allow
        try:
            with mode:
                got = ov(*fakes, **named)
        except (errors.DynamicOutputShapeException, errors.DataDependentError):
            continue
        for real, fake in zip(tree_leaves(want), tree_leaves(got), strict=True):
            if facts(real) != facts(fake) and op.full_name not in UNKNOWN_OFFSET:
                yield f"{op.full_name}#{i}: {facts(real)} is {facts(fake)} as a fake"


@pytest.mark.parametrize("part", range(4))
def test_fake_results_lie_as_real_ones(part):
    found = [text for op in list(registry.values())[part::4] for text in differing(op)]
    assert not found, "\n".join(found)


def test_as_strided_of_a_fake():
    with FakeTensorMode():
        x = pullback.zeros(12).reshape(3, 4)[1:]
        y = x.as_strided((2, 2), (3, 1), 5)
        assert y.storage_offset() == 5 and x.as_strided((2,), (1,)).storage_offset() == 4
        assert y.as_strided((1,), (1,), 2).storage_offset() == 2
        for bad in (((2,), (1, 1), 0), ((-1,), (1,), 0), ((2,), (-1,), 0), ((2,), (1,), -1)):
            with pytest.raises(RuntimeError):
                x.as_strided(*bad)
