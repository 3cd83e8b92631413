"""Lazy layers: shapes from the first input, then the ordinary layer with the same numbers."""

import copy
import pickle

import pytest

import pullback as pb
from pullback import nn
from pullback.nn.modules.lazy import LazyModuleMixin
from pullback.nn.parameter import is_lazy

CASES = [
    (lambda: nn.LazyLinear(3), lambda: nn.Linear(4, 3), (2, 4)),
    (lambda: nn.LazyConv1d(4, 3), lambda: nn.Conv1d(2, 4, 3), (2, 2, 8)),
    (lambda: nn.LazyConv2d(4, 3, groups=2), lambda: nn.Conv2d(2, 4, 3, groups=2), (2, 5, 5)),
    (lambda: nn.LazyConv3d(2, 2, bias=False), lambda: nn.Conv3d(2, 2, 2, bias=False),
     (1, 2, 3, 3, 3)),
    (lambda: nn.LazyConvTranspose1d(4, 3), lambda: nn.ConvTranspose1d(2, 4, 3), (2, 2, 5)),
    (lambda: nn.LazyConvTranspose2d(4, 3, stride=2), lambda: nn.ConvTranspose2d(2, 4, 3, stride=2),
     (2, 2, 5, 5)),
    (lambda: nn.LazyConvTranspose3d(2, 2), lambda: nn.ConvTranspose3d(2, 2, 2), (1, 2, 3, 3, 3)),
    (lambda: nn.LazyBatchNorm1d(), lambda: nn.BatchNorm1d(4), (3, 4)),
    (lambda: nn.LazyBatchNorm2d(affine=False), lambda: nn.BatchNorm2d(4, affine=False),
     (3, 4, 2, 2)),
    (lambda: nn.LazyBatchNorm3d(), lambda: nn.BatchNorm3d(4), (3, 4, 2, 2, 2)),
    (lambda: nn.LazyInstanceNorm1d(), lambda: nn.InstanceNorm1d(
        3, affine=True, track_running_stats=True), (2, 3, 4)),
    (lambda: nn.LazyInstanceNorm2d(), lambda: nn.InstanceNorm2d(
        3, affine=True, track_running_stats=True), (2, 3, 4, 4)),
    (lambda: nn.LazyInstanceNorm3d(), lambda: nn.InstanceNorm3d(
        3, affine=True, track_running_stats=True), (2, 3, 4, 4, 2)),
]


@pytest.mark.parametrize("lazy, plain, shape", CASES)
def test_becomes_the_ordinary_layer(lazy, plain, shape):
    x = pb.rand(shape)
    layer = lazy()
    copies = [copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))]
    for made in [layer, *copies]:
        pb.manual_seed(0)
        y = made(x)
        pb.manual_seed(0)
        expected = plain()
        assert type(made) is type(expected) and repr(made) == repr(expected)
        assert pb.equal(y, expected(x))
        assert not made._forward_pre_hooks and not made._load_state_dict_pre_hooks
        assert all(type(p) is nn.Parameter for p in made.parameters())


@pytest.mark.parametrize("lazy, plain, shape", CASES)
def test_shapes_from_a_state(lazy, plain, shape):
    state, layer = plain().state_dict(), lazy()
    assert repr(layer.load_state_dict(state)) == "<All keys matched successfully>"
    x = pb.rand(shape)
    assert layer(x).shape == plain()(x).shape
    assert repr(layer) == repr(plain())
    for name, value in layer.state_dict().items():
        if "running" not in name and "tracked" not in name:
            assert pb.equal(value, state[name])


def test_placeholders_refuse_and_convert():
    layer = nn.LazyLinear(3)
    assert repr(layer.weight) == "<UninitializedParameter>" and is_lazy(layer.bias)
    with pytest.raises(RuntimeError, match="Can't access the shape"):
        _ = layer.weight.shape
    for use in (lambda w: w + 1, lambda w: pb.sin(w), lambda w: w.sum(), lambda w: w.numpy()):
        with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
            use(layer.weight)
    layer.double()
    assert is_lazy(layer.weight) and layer.weight.dtype is pb.float64
    assert layer(pb.ones(2, 4, dtype=pb.float64)).dtype is pb.float64
    with pytest.raises(RuntimeError, match="Can't access the shape"):
        layer.load_state_dict(nn.LazyLinear(3).state_dict())
    with pytest.raises(ValueError, match="divisible by groups"):
        nn.LazyConv2d(3, 3, groups=3)(pb.ones(1, 2, 5, 5))
    with pytest.raises(RuntimeError, match=r"Expected 3D .* or 4D"):
        nn.LazyConv2d(3, 3)(pb.ones(2, 2))


def test_own_lazy_module():
    class Scale(LazyModuleMixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.UninitializedParameter()

        def initialize_parameters(self, x):
            self.weight.materialize(x.shape[-1:])
            nn.init.ones_(self.weight)

        def forward(self, x):
            return x * self.weight

    module = Scale()
    module(pb.ones(2, 3)).sum().backward()
    assert module.weight.grad.tolist() == [2, 2, 2]

    class Empty(LazyModuleMixin, nn.Module):
        pass

    with pytest.raises(NotImplementedError, match="initialize_parameters"):
        Empty()(pb.ones(1))
