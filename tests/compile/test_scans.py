"""Running sums, places of extremes, repeats, reversals and means over windows in native code."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from tests.helpers.compiled_checks import graphs_made

F = pb.nn.functional


def numbers(*shape, seed=0):
    return pb.tensor(np.random.default_rng(seed).normal(size=shape), dtype=pb.float32)


def steps_of(f, *args):
    """Results and gradients of the compiled function as eager's; the NumPy steps that it takes."""
    leaves = [a.detach().clone().requires_grad_(a.is_floating_point()) for a in args]
    found = []
    with graphs_made() as graphs:
        for call in (f, pb.compile(f)):
            out = call(*leaves)
            outs = list(out) if isinstance(out, (tuple, list)) else [out]
            tracked = [o for o in outs if o.requires_grad]
            grads = pb.autograd.grad(
                tracked, [a for a in leaves if a.requires_grad],
                [numbers(*o.shape, seed=3).to(o.dtype) for o in tracked]) if tracked else ()
            found.append([*outs, *grads])
    for a, b in zip(*found, strict=True):
        assert a.dtype is b.dtype
        np.testing.assert_allclose(
            b.detach().numpy(), a.detach().numpy(), rtol=3e-6, atol=3e-6)
    return [e["target"] for g in graphs for e in g.report["externs"]]


NATIVE = {
    "cumsum of rows": lambda x: x.cumsum(-1),
    "cumsum of columns": lambda x: (x * 2).cumsum(0),
    "cumsum of flags": lambda x: (x > 0).cumsum(1).float() * x,
    "cumprod": lambda x: (x * 0.3 + 1).cumprod(1),
    "argmax": lambda x: x.argmax(1).float() * x.sum(1),
    "argmin of all": lambda x: x.argmin().float() * x,
    "argmax kept": lambda x: x * x.argmax(0, keepdim=True).float(),
    "max along": lambda x: x.max(1),
    "min along, kept": lambda x: (x * x).min(0, keepdim=True),
    "flip": lambda x: x.flip(0) * x.flip(-1) + x.flip(0, 1).exp(),
    "flip of a view": lambda x: x[::2, 1:].t().flip(1).sin(),
    "writes between": lambda x: x.slice_scatter(x[:2] * 3, 0, 1, 6, 3).sin(),
    "parts with steps": lambda x: x[:, 1:7:3].exp() + x[:, :6:3].cos(),
    "repeat": lambda x: x.repeat(2, 3) * 2,
    "repeat with new dims": lambda x: x.repeat(2, 1, 2).sum(0),
    "pad": lambda x: F.pad(x, (1, -2, -1, 3), value=0.5).sin(),
    "pad by reflection": lambda x: F.pad(x[None], (2, 1), mode="reflect"),
    "remainder": lambda x: x % 0.3 + pb.fmod(x, 0.7),
    "remainder of tensors": lambda x: pb.remainder(x, x.flip(0) + 3),
    "logsumexp": lambda x: pb.logsumexp(x, 1),
    "angles": lambda x: (pb.atan2(x, x.flip(0)) + pb.atan(x) + pb.asin(x.tanh())
                         + pb.acos(x.sin() * 0.9)),
    "hyperbolic": lambda x: (x.sinh() + x.cosh()).asinh() + (x.abs() + 1.1).acosh()
                            + (x.tanh() * 0.9).atanh(),
    "mean windows": lambda x: F.avg_pool2d(x[None], 2),
    "mean windows that overlap": lambda x: F.avg_pool2d(x[None, None], 3, 2, 1),
    "mean of padded windows, by three": lambda x: F.avg_pool2d(x[None], 2, 1, 1, False, False, 3),
    "adaptive means": lambda x: F.adaptive_avg_pool2d(x[None], (3, 2)),
    "nearest": lambda x: F.interpolate(x[None, None], scale_factor=3) ** 2,
}  # fmt: skip


@pytest.mark.parametrize("name", NATIVE)
def test_no_step_of_numpy_is_left(name):
    assert steps_of(NATIVE[name], numbers(6, 8)) == []


def test_windows_of_different_sizes_are_left_to_numpy():
    x = numbers(2, 5, 7)
    assert steps_of(lambda x: F.avg_pool2d(x, 2, 2, 1, True, False), x)
    assert steps_of(lambda x: F.adaptive_avg_pool2d(x, 3), x)


def test_places_of_ties_and_nan_are_the_first():
    nan = float("nan")
    x = pb.tensor([[1.0, 3.0, 3.0, 2.0], [nan, 1.0, nan, 5.0], [4.0, 4.0, 4.0, nan]])
    for op in ("argmax", "argmin"):
        f = pb.compile(lambda x, op=op: getattr(x, op)(1))
        assert f(x).tolist() == getattr(x, op)(1).tolist()
    values, places = pb.compile(lambda x: x.max(0))(x)
    assert places.tolist() == x.max(0).indices.tolist()
    np.testing.assert_array_equal(values.numpy(), x.max(0).values.numpy())


def test_running_sums_of_whole_numbers_wrap():
    x = pb.tensor([2**62, 2**62, 2**62, 5])
    f = pb.compile(lambda x: (x.cumsum(0), x.cumprod(0)))
    assert [t.tolist() for t in f(x)] == [x.cumsum(0).tolist(), x.cumprod(0).tolist()]


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), ()])
def test_nothing_and_single_numbers(shape):
    x = pb.ones(shape)
    for f in (lambda x: x.cumsum(0), lambda x: x.flip(list(range(x.ndim))) + 1,
              lambda x: x.repeat(*(2,) * max(1, x.ndim))):
        assert pb.equal(pb.compile(f)(x), f(x))


@pytest.mark.parametrize("f", [
    lambda x: (x.sin().flip(0)[1:] * 2).flip(1),
    lambda x: pb.cat([x, (x * 2).flip(1)], 1).flip(1).reshape(-1, 4).flip(0),
    lambda x: (x + x.exp().flip(0)).t()[::2].flip(1) - x[pb.arange(6).flip(0)].t()[::2],
])  # fmt: skip
def test_reversals_of_what_is_computed(f):
    assert steps_of(f, numbers(6, 8)) == []
