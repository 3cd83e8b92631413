"""Modules, layers and functions of nn."""

import copy
import pickle

import numpy as np
import pytest

import pullback as pb
from pullback import nn
from pullback.nn import functional as F


def tensor(*shape, seed=0):
    return pb.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.rest = nn.ModuleList([nn.Tanh(), nn.Linear(4, 2, bias=False)])
        self.register_buffer("scale", pb.ones([2]))
        self.register_buffer("cache", pb.zeros([1]), persistent=False)
        self.shift = nn.Parameter(pb.zeros([2]))

    def forward(self, x):
        x = self.first(x)
        for layer in self.rest:
            x = layer(x)
        return x * self.scale + self.shift


def test_names_in_order():
    net = Net()
    assert [n for n, _ in net.named_parameters()] == [
        "shift", "first.weight", "first.bias", "rest.1.weight"]
    assert [n for n, _ in net.named_buffers()] == ["scale", "cache"]
    assert list(net.state_dict()) == ["shift", "scale", "first.weight", "first.bias",
                                      "rest.1.weight"]


def test_state_dict_round_trip():
    pb.manual_seed(0)
    one, two = Net(), Net()
    x = tensor(5, 3)
    assert not np.array_equal(one(x).detach().numpy(), two(x).detach().numpy())
    two.load_state_dict(one.state_dict())
    np.testing.assert_array_equal(one(x).detach().numpy(), two(x).detach().numpy())


def test_strict_loading_names_the_keys():
    with pytest.raises(RuntimeError, match=r'Missing key\(s\).*"first.bias"'):
        Net().load_state_dict({"shift": pb.zeros([2])})
    keys = Net().load_state_dict({"other": pb.zeros([2])}, strict=False)
    assert keys.unexpected_keys == ["other"]


def test_copies_are_independent():
    net = Net()
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        with pb.no_grad():
            other.shift.add_(1)
        assert isinstance(other.shift, nn.Parameter) and other.shift.requires_grad
        assert net.shift.detach().numpy().max() == 0


def test_conversion_keeps_parameters():
    net = Net()
    params = list(net.parameters())
    net.double()
    assert all(a is b for a, b in zip(params, net.parameters()))
    assert net.first.weight.dtype is pb.float64 and net.scale.dtype is pb.float64


def test_train_eval_and_hooks():
    net = nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 3))
    net.eval()
    assert not net[0].training
    x = tensor(4, 3)
    np.testing.assert_array_equal(net[0](x).numpy(), x.numpy())
    handle = net.register_forward_hook(lambda module, args, out: out * 0)
    assert net(x).detach().numpy().any() == False  # noqa: E712
    handle.remove()
    assert net(x).detach().numpy().any()


def test_assignment_rules():
    net = Net()
    with pytest.raises(TypeError):
        net.shift = pb.zeros([2])
    with pytest.raises(TypeError):
        net.first = 3
    net.shift = None
    assert "shift" not in dict(net.named_parameters())


def test_training_lowers_the_loss():
    pb.manual_seed(1)
    net = nn.Sequential(nn.Linear(2, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 2))
    optimizer = pb.optim.AdamW(net.parameters(), lr=1e-2)
    x = tensor(64, 2)
    target = pb.from_numpy((x.numpy()[:, 0] * x.numpy()[:, 1] > 0).astype(np.int64))
    losses = []
    for _ in range(60):
        loss = nn.CrossEntropyLoss()(net(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_cross_entropy_by_hand(reduction):
    x, target = tensor(4, 3), np.array([0, 2, -100, 1])
    logits = x.numpy().astype(np.float64)
    scores = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    terms = np.array([0.0 if t < 0 else -scores[i, t] for i, t in enumerate(target)])
    expected = {"none": terms, "mean": terms.sum() / 3, "sum": terms.sum()}[reduction]
    got = F.cross_entropy(x, pb.from_numpy(target), reduction=reduction)
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-5)


def test_attention_rows_that_see_nothing_are_zero():
    q, k, v = tensor(3, 4), tensor(5, 4, seed=1), tensor(5, 2, seed=2)
    mask = np.ones((3, 5), bool)
    mask[1] = False
    out = F.scaled_dot_product_attention(q, k, v, pb.from_numpy(mask)).numpy()
    assert np.isfinite(out).all() and not out[1].any() and out[0].any()


def test_legacy_arguments_and_bad_reduction():
    x, y = tensor(3), tensor(3, seed=1)
    with pytest.warns(UserWarning, match="reduction='sum'"):
        legacy = F.mse_loss(x, y, size_average=False)
    np.testing.assert_allclose(legacy.item(), F.mse_loss(x, y, reduction="sum").item())
    with pytest.raises(ValueError, match="not a valid value"):
        F.mse_loss(x, y, reduction="all")


def test_inplace_activations_differentiate():
    for function in (F.relu, F.leaky_relu, F.elu, F.silu, F.mish, F.hardtanh, F.hardswish):
        leaves = [tensor(5).requires_grad_() for _ in range(2)]
        one = function(leaves[0] * 2)
        two = function(leaves[1] * 2, inplace=True)
        np.testing.assert_array_equal(one.detach().numpy(), two.detach().numpy())
        for out in (one, two):
            out.sum().backward()
        np.testing.assert_allclose(leaves[0].grad.numpy(), leaves[1].grad.numpy())


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_a_recurrent_layer_is_its_cell_step_by_step(kind, bias):
    """Steps of a layer share the transposed weights; its gradients are the sums over the steps."""
    layer = getattr(nn, kind)(3, 4, bias=bias)
    cell = getattr(nn, f"{kind}Cell")(3, 4, bias=bias)
    cell.load_state_dict({k.removesuffix("_l0"): v for k, v in layer.state_dict().items()})
    x, state, outputs = tensor(5, 2, 3), None, []
    for row in x:
        state = cell(row, state)
        outputs.append(state[0] if kind == "LSTM" else state)
    out, last = layer(x)
    assert pb.allclose(out, pb.stack(outputs), atol=1e-6)
    for a, b in zip(*((last, state) if kind == "LSTM" else ((last,), (state,)))):
        assert pb.allclose(a[0], b, atol=1e-6)
    (out**2).sum().backward()
    (pb.stack(outputs)**2).sum().backward()
    for a, b in zip(layer.parameters(), cell.parameters()):
        assert pb.allclose(a.grad, b.grad, atol=1e-5)



@pytest.mark.torch
def test_agrees_with_torch():
    import torch

    def build(lib):
        lib.manual_seed(7)
        return lib.nn.Sequential(
            lib.nn.Embedding(10, 8), lib.nn.Linear(8, 16), lib.nn.GELU(), lib.nn.LayerNorm(16),
            lib.nn.Dropout(0.2), lib.nn.Linear(16, 4, bias=False))

    ours, theirs = build(pb), build(torch)
    assert repr(ours) == repr(theirs)
    indices, target = np.arange(6), np.arange(6) % 4
    pairs = []
    for lib, net in ((pb, ours), (torch, theirs)):
        optimizer = lib.optim.Adam(net.parameters(), lr=1e-2)
        losses = []
        for _ in range(4):
            loss = lib.nn.functional.cross_entropy(net(lib.from_numpy(indices)),
                                                   lib.from_numpy(target))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        pairs.append(losses)
    np.testing.assert_allclose(pairs[0], pairs[1], rtol=1e-4)
