"""Operators under vendors' names against an installed PyTorch: schemas, and oneDNN's numbers."""

import numpy as np
import pytest

import pullback as pb
from pullback.core.op import registry
from pullback.core.overload import overload_of
from pullback.core.schema import Schema
from tests.helpers.theirs import torch

pytestmark = pytest.mark.torch

RANDOM = np.random.default_rng(0)


def real(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def both(*arrays, grad=False):
    """The arrays as tensors of PyTorch and of this package."""
    return ([torch.from_numpy(a.copy()).requires_grad_(grad) for a in arrays],
            [pb.from_numpy(a.copy()).requires_grad_(grad) for a in arrays])


def assert_close(theirs, ours, tolerance=2e-5):
    theirs = theirs.to_dense() if theirs.is_mkldnn else theirs
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=tolerance,
                               atol=tolerance)


def test_schemas_are_those_of_the_registry():
    count = 0
    for name, entry in registry.items():
        if not entry.__module__.rpartition(".")[2].startswith("vendor_"):
            continue
        base, _, variant = name.partition(".")
        known = getattr(getattr(torch.ops.aten, base), variant or "default")._schema
        wanted, ours = Schema(str(known).removeprefix("aten::")), overload_of(entry).schema
        assert len(wanted.args) == len(ours.args) and len(wanted.returns) == len(ours.returns), name
        for a, b in zip([*wanted.args, *wanted.returns], [*ours.args, *ours.returns]):
            assert a.same_as(b), f"{ours} in PyTorch: {known}"
        public = hasattr(torch._C._VariableFunctions, base)
        assert public == overload_of(entry).op.function, name
        assert hasattr(torch.Tensor, base) == overload_of(entry).op.method, name
        count += 1
    assert count >= 60


CONVOLUTIONS = [((2, 4, 7), (6, 2, 3), [1], [2], [1], 2),
                ((2, 4, 6, 5), (6, 4, 3, 2), [1, 0], [2, 1], [1, 2], 1),
                ((1, 2, 4, 4, 4), (3, 2, 2, 2, 2), [1, 1, 0], [1, 1, 1], [1, 1, 1], 1)]


@pytest.mark.parametrize("x, w, padding, stride, dilation, groups", CONVOLUTIONS)
def test_convolution(x, w, padding, stride, dilation, groups):
    theirs, ours = both(real(*x), real(*w), real(w[0]), grad=True)
    case = padding, stride, dilation, groups
    a, b = torch.mkldnn_convolution(*theirs, *case), pb.mkldnn_convolution(*ours, *case)
    assert_close(a, b)
    for g, h in zip(torch.autograd.grad(a.sin().sum(), theirs),
                    pb.autograd.grad(b.sin().sum(), ours)):
        assert_close(g, h, 2e-4)


def test_operators_of_onednn():
    (x, w, b, image), (px, pw, pbias, pimage) = both(
        real(3, 4), real(5, 4), real(5), real(2, 3, 6, 8))
    assert_close(torch._C._nn.mkldnn_linear(x.to_mkldnn(), w, b),
                 pb._C._nn.mkldnn_linear(px.to_mkldnn(), pw, pbias))
    special, own = image.to_mkldnn(), pimage.to_mkldnn()
    for name, args in (("mkldnn_max_pool2d", (3, 2, 1)), ("mkldnn_max_pool2d", (2, 2, 0, 1, True)),
                       ("mkldnn_adaptive_avg_pool2d", ((3, 4),)), ("_mkldnn_reshape", ([6, -1],)),
                       ("_mkldnn_transpose", (1, 2))):
        assert_close(getattr(torch, name)(special, *args), getattr(pb, name)(own, *args))
    grad = real(3, 5)
    g, own_grad = torch.from_numpy(grad).to_mkldnn(), pb.from_numpy(grad)
    for a, b in zip(torch.ops.aten.mkldnn_linear_backward(x.to_mkldnn(), g, w, [True] * 3),
                    pb.ops.aten.mkldnn_linear_backward(px, own_grad, pw, [True] * 3)):
        assert_close(a, b)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("lead", [(1,), ()])
def test_recurrent_layer(reverse, biases, lead):
    arrays = [real(5, 3, 4), real(24, 4), real(24, 6), real(24), real(24), real(*lead, 3, 6),
              real(*lead, 3, 6)]
    theirs, ours = both(*arrays, grad=True)
    rest = reverse, [], 2, 6, 1, biases, False, False, True
    a, b = torch.mkldnn_rnn_layer(*theirs, *rest), pb.mkldnn_rnn_layer(*ours, *rest)
    for i in range(3):
        assert_close(a[i], b[i])
    assert a[3].dtype is torch.uint8 and b[3].dtype is pb.uint8
    assert [o.requires_grad for o in a] == [o.requires_grad for o in b]
    used = slice(None) if biases else slice(3)
    grads = torch.autograd.grad(sum((o * o).sum() for o in a[:3]), theirs[used])
    own = pb.autograd.grad(sum((o * o).sum() for o in b[:3]), ours[used])
    for g, h in zip(grads, own):
        assert_close(g, h, 2e-4)


def test_modules():
    from torch.utils import mkldnn

    def network(t):
        return t.nn.Sequential(t.nn.Conv2d(3, 4, 3, padding=1), t.nn.BatchNorm2d(4), t.nn.PReLU(),
                               t.nn.Flatten(), t.nn.Linear(4 * 36, 5)).eval()

    theirs, ours = network(torch), network(pb)
    ours.load_state_dict({k: pb.from_numpy(v.numpy()) for k, v in theirs.state_dict().items()})
    x = real(2, 3, 6, 6)
    their_made, made = mkldnn.to_mkldnn(theirs), pb.utils.mkldnn.to_mkldnn(ours)
    assert_close(their_made(torch.from_numpy(x).to_mkldnn()), made(pb.from_numpy(x)), 1e-4)
    assert sorted(made.state_dict()) == sorted(their_made.state_dict())


@pytest.mark.parametrize("dtype", ["int32", "int64", "bool", "complex64"])
def test_the_same_dtypes_are_refused(dtype):
    for t in (torch, pb):
        with pytest.raises(RuntimeError, match="dense_to_mkldnn expects"):
            t.ones(2, dtype=getattr(t, dtype)).to_mkldnn()
