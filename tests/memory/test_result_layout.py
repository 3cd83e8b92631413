"""How results lie in memory: eager, without data and compiled alike, and as PyTorch 2.13 has it."""

import math

import numpy as np
import pytest

import pullback as pb
from pullback.array import dtype as dt
from pullback.array.fake import fake_like
from pullback.core.handle import Tensor, make
from pullback.core.op import registry
from pullback.core.overload import overload_of
from pullback.core.stack import bind
from pullback.nn import functional as F
from pullback.pytree import tree_flatten, tree_map
from pullback.testing import samples

# operators whose results have a size that depends on values, or that copy as their parts lie
UNKNOWN = ("unsafe_split", "unsafe_chunk")


def steps(t):
    """Strides of the dims that have any."""
    return None if 0 in t.shape else tuple(s for s, n in zip(t.stride(), t.shape) if n > 1)


@pytest.mark.parametrize("part", range(4))
def test_table(part):
    """A fake result has the strides of the real one, whatever order the operands are in."""
    wrong = {}
    for name in sorted(registry)[part::4]:
        op = registry[name]
        ov = overload_of(op)
        if ov.is_view or ov.kind == "composite" or name.startswith(UNKNOWN):
            continue
        try:
            cases = samples.cases(op, dt.float32)[:3]
        except Exception:
            continue  # not for this dtype
        for case in cases:
            flat = tree_map(lambda v: make(np.asfortranarray(v._payload)) if isinstance(v, Tensor)
                            and v._payload.ndim > 1 else v, list(samples.flat(op, case)))
            try:
                real = bind(ov, tuple(flat))
                fake = bind(ov, tuple(tree_map(
                    lambda v: make(fake_like(v._payload)) if isinstance(v, Tensor) else v, flat)))
            except (RuntimeError, ValueError, TypeError, NotImplementedError):
                continue  # sizes that depend on values, dtypes that are refused
            for a, b in zip(tree_flatten(real)[0], tree_flatten(fake)[0]):
                if isinstance(a, Tensor) and steps(a) != steps(b):
                    wrong[name] = steps(a), steps(b)
    assert not wrong


def turned(*shape):
    """Numbers whose dims lie in memory in reversed order."""
    count = math.prod(shape)
    return pb.arange(float(count)).reshape(shape[::-1]).permute(*reversed(range(len(shape))))


def image():
    return pb.arange(192.0).reshape(2, 4, 4, 6).to(memory_format=pb.channels_last)


T, I = turned(4, 3, 2), image()
LYING = {  # strides that PyTorch 2.13 gives
    "cat": (lambda x: pb.cat([x, x]), T, (6, 2, 1)),
    "cumsum": (lambda x: x.cumsum(0), T, (6, 2, 1)),
    "softmax": (lambda x: x.softmax(0), T, (6, 2, 1)),
    "sum": (lambda x: x.sum(0), T, (2, 1)),
    "amax": (lambda x: x.amax(0), T, (2, 1)),
    "logsumexp": (lambda x: x.logsumexp(0), T, (2, 1)),
    "roll": (lambda x: x.roll(1, 0), T, (6, 2, 1)),
    "stack": (lambda x: pb.stack([x, x]), T, (24, 6, 2, 1)),
    "flip": (lambda x: x.flip(0), T, (1, 4, 12)),
    "sort": (lambda x: x.sort(0)[0], T, (1, 4, 12)),
    "add": (lambda x: x + 1, T, (1, 4, 12)),
    "clone": (lambda x: x.clone(), T, (1, 4, 12)),
    "rows": (lambda x: x.clone(memory_format=pb.contiguous_format), T, (6, 2, 1)),
    "like": (lambda x: pb.zeros_like(x) + 1, T, (1, 4, 12)),
    "draw": (lambda x: pb.rand_like(x), T, (1, 4, 12)),
    "mean": (lambda x: x.sin().mean((1, 2)), T, (1,)),
    "layer_norm": (lambda x: F.layer_norm(x, [2]), T, (6, 2, 1)),
    "loss": (lambda x: F.mse_loss(x, x, reduction="none"), T, (1, 4, 12)),
    "view of it": (lambda x: (x + 2)[:, 0], T, (1, 12)),
    "conv": (lambda x: F.conv2d(x, pb.ones(3, 4, 2, 2)).relu(), I, (45, 1, 15, 3)),
    "pool": (lambda x: F.max_pool2d(x, 2), I, (24, 1, 12, 4)),
    "joined": (lambda x: pb.cat([x, x], 1), I, (192, 1, 48, 8)),
    "upsample": (lambda x: F.interpolate(x, scale_factor=2), I, (384, 1, 48, 4)),
    "group_norm": (lambda x: F.group_norm(x, 2), I, (96, 1, 24, 4)),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), I, (96, 1, 24, 4)),
    "pad": (lambda x: F.pad(x, (1, 1)), I, (128, 1, 32, 4)),
    "over channels": (lambda x: x.softmax(1), I, (96, 24, 6, 1)),
}


@pytest.mark.parametrize("way", ["eager", "numpy", "nop"])
@pytest.mark.parametrize("name", LYING)
def test_as_pytorch(name, way):
    f, x, strides = LYING[name]
    wrap = {"eager": lambda f: f, "numpy": lambda f: pb.compile(f, backend="numpy"),
            "nop": lambda f: pb.aot.aot_function(f, pb.aot.nop)}[way]
    assert wrap(f)(x).stride() == strides
    assert wrap(f)(x.clone().requires_grad_()).stride() == strides


@pytest.mark.cc
def test_compiled():
    """All of them in one program; the C code lays results out as eager does."""
    of_turned = [f for f, x, _ in LYING.values() if x is T]
    of_image = [f for f, x, _ in LYING.values() if x is I]

    def run(x, y):
        return [f(x) for f in of_turned] + [f(y) for f in of_image]

    expected, found = run(T, I), pb.compile(run)(T, I)
    assert [t.stride() for t in found] == [t.stride() for t in expected]
    with_history = pb.compile(run)(T.clone().requires_grad_(), I.clone().requires_grad_())
    assert [t.stride() for t in with_history] == [t.stride() for t in expected]


@pytest.mark.parametrize(("leaf", "strides"), [
    (T, (1, 4, 12)), (I, (96, 1, 24, 4)), (T[::2], (6, 2, 1)), (pb.zeros(3, 4), (4, 1))])
@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: pb.compile(f, backend="numpy")])
def test_gradients_of_leaves_lie_like_the_leaf(leaf, strides, wrap):
    x = leaf.detach().requires_grad_()
    wrap(lambda x: (x.contiguous() * 2).sin().sum())(x).backward()
    assert x.grad.stride() == strides


def test_rows_may_be_viewed():
    x = turned(3, 4)
    assert pb.cat([x, x]).view(-1).shape == (24,)
    assert x.cumsum(0).view(2, 6).shape == (2, 6)
    assert turned(2, 3, 4).sum(0).view(-1).shape == (12,)


@pytest.mark.parametrize("name", ["floor", "ceil", "round", "trunc", "abs", "neg", "sign"])
def test_rounded_integers_lie_as_they_did(name):
    x = pb.arange(6).reshape(3, 2).t()
    assert getattr(pb, name)(x).stride() == (1, 2)
