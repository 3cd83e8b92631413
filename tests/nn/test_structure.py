"""The structure of modules as PyTorch has it: names, states, hooks, conversions, printing."""

import copy
import importlib
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback import nn
from tests.helpers import module_structure as structure

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "structure.json").read_text())


@pytest.mark.parametrize("name", structure.PROGRAMS)
def test_as_recorded(name):
    assert json.loads(json.dumps(structure.report(name, pb))) == RECORDED[name]


@pytest.mark.torch
@pytest.mark.parametrize("name", structure.PROGRAMS)
def test_the_record(name):
    import torch

    assert json.loads(json.dumps(structure.report(name, torch))) == RECORDED[name]


class Halver(nn.Module):
    def forward(self, x):
        return x / 2


def load_pre_hook(module, state, *rest):
    module.loaded = len(state)


def test_hooks_of_copies_know_their_module():
    one = Halver()
    one.register_load_state_dict_pre_hook(load_pre_hook)
    for two in (copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        two.load_state_dict({}, strict=False)
        assert two.loaded == 0 and not hasattr(one, "loaded")


def test_handles_of_copies_remove_from_the_copy():
    module = Halver()
    module.handle = module.register_forward_hook(load_pre_hook)
    copied = copy.deepcopy(module)
    copied.handle.remove()
    assert not copied._forward_hooks and module._forward_hooks
    module.handle.remove()
    assert not module._forward_hooks


def test_own_call_impl_is_called():
    class Doubled(Halver):
        def _call_impl(self, *args, **kwargs):
            return 2 * super()._call_impl(*args, **kwargs)

    class Further(Doubled):
        pass

    assert Doubled()(pb.ones(1)).tolist() == Further()(pb.ones(1)).tolist() == [1.0]


def test_compiled_in_place():
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
    x = pb.ones(4, 2)
    expected = net(x)
    net.compile(backend="numpy")
    assert pb.allclose(net(x), expected)
    assert list(net.state_dict()) == ["0.weight", "0.bias"]
    assert "_compiled_call_impl" not in pickle.loads(pickle.dumps(net)).__dict__


def test_forgotten_init():
    class Net(nn.Module):
        def __init__(self):
            self.size = 3

    with pytest.raises(AttributeError, match=r"call super\(\).__init__\(\)"):
        Net()(1)


def test_parameter_shares_the_version():
    data = pb.ones(2)
    parameter = nn.Parameter(data)
    y = (parameter * parameter).sum()
    data.add_(1)
    with pytest.raises(RuntimeError, match="modified"):
        y.backward()


def test_shared_memory_reaches_a_child():
    import os

    layer = nn.Linear(2, 2).share_memory()
    child = os.fork()
    if child == 0:
        layer.weight.detach().fill_(7)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert (layer.weight == 7).all()


PATHS = {
    "module": "Module _addindent _IncompatibleKeys register_module_forward_hook",
    "conv": "Conv2d _ConvNd _size_2_t _pair LazyConv2d F init Parameter",
    "batchnorm": "BatchNorm2d _BatchNorm _NormBase SyncBatchNorm",
    "utils": "_single _pair _triple _quadruple _ntuple _reverse_repeat_tuple _list_with_default",
    "container": "Sequential ModuleList ParameterDict", "linear": "Linear LazyLinear Identity",
    "activation": "ReLU MultiheadAttention", "loss": "_Loss _WeightedLoss CrossEntropyLoss",
    "normalization": "LayerNorm GroupNorm", "instancenorm": "InstanceNorm2d _InstanceNorm",
    "pooling": "MaxPool2d _MaxPoolNd", "dropout": "Dropout", "rnn": "LSTM RNNCellBase",
    "sparse": "Embedding", "transformer": "Transformer", "upsampling": "Upsample",
    "padding": "ReflectionPad2d", "pixelshuffle": "PixelShuffle", "fold": "Fold",
    "flatten": "Flatten Unflatten", "distance": "CosineSimilarity", "lazy": "LazyModuleMixin",
    "adaptive": "AdaptiveLogSoftmaxWithLoss", "channelshuffle": "ChannelShuffle",
    "_functions": "BackwardHookFunction",
}


@pytest.mark.parametrize("path", PATHS)
def test_paths_of_the_module_tree(path):
    module = importlib.import_module(f"pullback.nn.modules.{path}")
    assert getattr(nn.modules, path) is module
    for name in PATHS[path].split():
        assert getattr(module, name) is not None
        if not name.startswith("_") and name[0].isupper() and hasattr(nn, name):
            assert getattr(module, name) is getattr(nn, name) is getattr(nn.modules, name)
    assert not {"math", "annotations", "np"} & set(module.__all__)
    with pytest.raises(AttributeError, match=f"modules.{path}"):
        _ = module.no_such_name


def test_helpers_of_the_module_tree():
    utils = nn.modules.utils
    assert utils._pair(3) == (3, 3) and utils._triple([1, 2, 3]) == (1, 2, 3)
    assert utils._reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
    assert utils._list_with_default([None, 5], [1, 2, 3]) == [2, 5]
    state = nn.DataParallel(nn.Linear(1, 1)).state_dict()
    utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == ["weight", "bias"] and list(state._metadata) == [""]
    nn.Linear(1, 1).load_state_dict(state)


def test_parallel_on_one_device():
    layer = nn.Linear(2, 2)
    x = pb.ones(1, 2)
    wrapped = nn.DataParallel(layer, device_ids=[0])
    assert pb.equal(wrapped(x), layer(x)) and "module.weight" in wrapped.state_dict()
    assert pb.equal(nn.parallel.data_parallel(layer, x), layer(x))
    file = importlib.import_module("pullback.nn.parallel.distributed")
    with pytest.raises(ValueError, match="process group"):
        file.DistributedDataParallel(layer)


def test_size_of_a_call_without_hooks():
    # one Python frame between the caller and forward: what is rare costs nothing
    import inspect

    class Depth(nn.Module):
        def forward(self):
            return len(inspect.stack(0))

    assert Depth()() == len(inspect.stack(0)) + 2


@pytest.mark.parametrize("shape", [(3, 4), (4, 2, 3, 3)])
def test_initialisation(shape):
    x = nn.Parameter(pb.zeros(shape))
    rows = shape[0]
    assert nn.init.orthogonal_(x, gain=2) is x and x.requires_grad
    flat = x.detach().numpy().reshape(rows, -1)
    np.testing.assert_allclose(flat @ flat.T, 4 * np.eye(rows), atol=1e-5)
    nn.init.trunc_normal_(x, std=0.5, a=-0.3, b=0.4)
    assert (x >= -0.3).all() and (x <= 0.4).all() and x.std() > 0.1
    nn.init.trunc_normal_(x, a=2.0, b=2.5)
    assert (x >= 2).all() and (x <= 2.5).all()
    with pytest.warns(FutureWarning, match="xavier_uniform_"):
        nn.init.xavier_uniform(x)


def test_initialisation_of_special_matrices():
    x = pb.ones(4, 2, 3, 3)
    image = pb.rand(1, 4, 5, 5)
    nn.init.dirac_(x, groups=2)
    assert pb.equal(nn.functional.conv2d(image, x, padding=1, groups=2), image)
    assert pb.equal(nn.init.eye_(pb.ones(2, 3)), pb.eye(2, 3))
    sparse = nn.init.sparse_(pb.ones(10, 4), 0.25)
    assert ((sparse == 0).sum(0) == 3).all()
    vector = pb.ones(3)
    for wrong in (lambda: nn.init.eye_(vector), lambda: nn.init.dirac_(vector),
                  lambda: nn.init.dirac_(pb.ones(3, 2, 2), 2), lambda: nn.init.sparse_(vector, 1),
                  lambda: nn.init.orthogonal_(vector), lambda: nn.init.xavier_normal_(vector),
                  lambda: nn.init.calculate_gain("other"),
                  lambda: nn.init.calculate_gain("leaky_relu", True),
                  lambda: nn.init.kaiming_normal_(pb.ones(2, 2), mode="other")):
        with pytest.raises(ValueError):
            wrong()
    with pytest.warns(UserWarning, match="no-op"):
        nn.init.kaiming_uniform_(pb.ones(0, 3))
