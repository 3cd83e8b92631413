"""Modules of normalisation, recurrence, attention and losses against PyTorch's own.

Both libraries make the same module; ours takes over the parameters.  Outputs, gradients of inputs
and parameters, and buffers after the call must agree.
"""

import numpy as np
import pytest

import pullback as pb
from pullback import nn
from pullback.nn.utils import rnn as sequences
from tests.helpers.theirs import torch

pytestmark = pytest.mark.torch

RANDOM = np.random.default_rng(0)


def real(*shape):
    return RANDOM.standard_normal(shape)


def whole(*shape, high, low=0):
    return RANDOM.integers(low, high, shape)


def leaves(values, library):
    made = []
    for v in values:
        t = library.tensor(np.array(v))
        made.append(t.requires_grad_(True) if np.asarray(v).dtype.kind == "f" else t)
    return made


def flat(out):
    if isinstance(out, (tuple, list)):
        return [t for o in out for t in flat(o)]
    return [] if out is None else [out]


def agree(ours, theirs, what):
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-7,
                               atol=1e-10, err_msg=what)


def compare(make, *values, train=True, call=None, calls=1):
    """`make(nn)` builds the module in either library, `call(module, inputs, library)` runs it."""
    call = call or (lambda module, inputs, library: module(*inputs))
    theirs, ours = make(torch.nn).double().train(train), make(nn).double().train(train)
    ours.load_state_dict({k: pb.from_numpy(v.detach().numpy().copy())
                          for k, v in theirs.state_dict().items()})
    for _ in range(calls):
        results = {}
        for module, library in ((ours, pb), (theirs, torch)):
            inputs = leaves(values, library)
            outs = flat(call(module, inputs, library))
            wanted = [t for t in (*inputs, *module.parameters()) if t.requires_grad]
            seeds = [library.tensor(np.random.default_rng(i).standard_normal(tuple(o.shape)))
                     for i, o in enumerate(outs)]
            grads = library.autograd.grad(outs, wanted, seeds, allow_unused=True)
            results[library] = outs, grads
        for i, (a, b) in enumerate(zip(results[pb][0], results[torch][0], strict=True)):
            agree(a, b, f"output {i}")
        for i, (a, b) in enumerate(zip(results[pb][1], results[torch][1], strict=True)):
            assert (a is None) == (b is None), f"gradient {i}"
            if a is not None:
                agree(a, b, f"gradient {i}")
    for (name, a), b in zip(ours.named_buffers(), theirs.buffers(), strict=True):
        agree(a, b, name)


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("name, shape", [
    ("BatchNorm1d", (4, 3)), ("BatchNorm1d", (4, 3, 5)), ("BatchNorm2d", (4, 3, 2, 2)),
    ("BatchNorm3d", (2, 3, 2, 2, 2)), ("InstanceNorm1d", (4, 3, 5)), ("InstanceNorm1d", (3, 5)),
    ("InstanceNorm2d", (4, 3, 2, 2)), ("InstanceNorm3d", (2, 3, 2, 2, 2))])
@pytest.mark.parametrize("options", [
    {}, {"affine": True, "track_running_stats": True, "momentum": 0.3},
    {"affine": False, "track_running_stats": False}])
def test_norms_with_statistics(name, shape, train, options):
    compare(lambda n: getattr(n, name)(3, **options), real(*shape), train=train, calls=2)


def test_cumulative_statistics():
    compare(lambda n: n.BatchNorm1d(3, momentum=None), real(5, 3), calls=3)


@pytest.mark.parametrize("make, shape", [
    (lambda n: n.GroupNorm(2, 4), (3, 4, 5)),
    (lambda n: n.GroupNorm(4, 4, affine=False), (3, 4, 2, 2)),
    (lambda n: n.LocalResponseNorm(3), (2, 5, 4)),
    (lambda n: n.LocalResponseNorm(2, 0.1, 0.5, 2.0), (2, 5, 4, 3)),
    (lambda n: n.PReLU(), (3, 4)), (lambda n: n.PReLU(4), (3, 4, 2)),
    (lambda n: n.CELU(0.5), (3, 4)), (lambda n: n.SELU(), (3, 4)), (lambda n: n.GLU(), (3, 4)),
    (lambda n: n.Hardswish(), (9, 4)), (lambda n: n.Hardsigmoid(), (9, 4)),
    (lambda n: n.Hardshrink(0.3), (3, 4)), (lambda n: n.Softshrink(0.3), (3, 4)),
    (lambda n: n.Softsign(), (3, 4)), (lambda n: n.Tanhshrink(), (3, 4)),
    (lambda n: n.LogSigmoid(), (3, 4)), (lambda n: n.Softmin(1), (3, 4)),
    (lambda n: n.Softmax2d(), (2, 3, 4)), (lambda n: n.Mish(), (3, 4)),
    (lambda n: n.ReLU6(), (3, 4)), (lambda n: n.Hardtanh(-0.5, 0.7), (3, 4)),
    (lambda n: n.Threshold(0.1, 2.0), (3, 4))])
def test_without_statistics(make, shape):
    compare(make, 3 * real(*shape))


RECURRENT = [{}, {"num_layers": 2, "bidirectional": True}, {"bias": False, "batch_first": True}]
OWN = {  # options of one layer alone
    "RNN": [{"nonlinearity": "relu"}],
    "LSTM": [{"proj_size": 2}, {"proj_size": 2, "num_layers": 2, "bidirectional": True}],
    "GRU": [],
}


@pytest.mark.parametrize("name, options", [(n, o) for n in OWN for o in RECURRENT + OWN[n]])
@pytest.mark.parametrize("form", ["plain", "states", "single", "packed", "unsorted"])
def test_recurrent_layers(name, options, form):
    batch_first = options.get("batch_first", False)
    layers = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    batch = () if form == "single" else (3,)
    shape = (*batch, 4, 5) if batch_first else (4, *batch, 5)
    width = options.get("proj_size") or 6
    states = [real(layers, *batch, width), real(layers, *batch, 6)][:2 if name == "LSTM" else 1]
    lengths = {"packed": [4, 2, 2], "unsorted": [2, 4, 1]}.get(form)

    def call(module, inputs, library):
        x, *hidden = inputs
        hx = (tuple(hidden) if name == "LSTM" else hidden[0]) if form != "plain" else None
        if lengths is None:
            return module(x, hx)
        tools = sequences if library is pb else torch.nn.utils.rnn
        packed = tools.pack_padded_sequence(x, lengths, batch_first, form == "packed")
        out, final = module(packed, hx)
        return tools.pad_packed_sequence(out, batch_first, total_length=4)[0], final

    compare(lambda n: getattr(n, name)(5, 6, **options), real(*shape), *states, call=call)


@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batch", [(3,), ()])
def test_cells(name, bias, batch):
    states = [real(*batch, 6) for _ in range(2 if name == "LSTMCell" else 1)]

    def call(module, inputs, library):
        x, *hidden = inputs
        hx = tuple(hidden) if name == "LSTMCell" else hidden[0]
        return module(x, hx), module(x)

    compare(lambda n: getattr(n, name)(5, 6, bias=bias), real(*batch, 5), *states, call=call)


def test_dropout_between_layers_draws_the_same_numbers():
    torch.manual_seed(3)
    theirs = torch.nn.GRU(3, 4, 2, dropout=0.5).double()
    ours = nn.GRU(3, 4, 2, dropout=0.5).double()
    ours.load_state_dict({k: pb.from_numpy(v.detach().numpy().copy())
                          for k, v in theirs.state_dict().items()})
    x = real(5, 2, 3)
    torch.manual_seed(4)
    pb.manual_seed(4)
    agree(ours(pb.tensor(x))[0], theirs(torch.tensor(x))[0], "output")


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN", "LSTMCell", "MultiheadAttention"])
def test_same_initial_parameters(name):
    arguments = (8, 2) if name == "MultiheadAttention" else (4, 5)
    torch.manual_seed(1)
    theirs = getattr(torch.nn, name)(*arguments).state_dict()
    pb.manual_seed(1)
    ours = getattr(nn, name)(*arguments).state_dict()
    assert list(ours) == list(theirs)
    for key, value in ours.items():
        np.testing.assert_array_equal(value.numpy(), theirs[key].numpy(), err_msg=key)


@pytest.mark.parametrize("options", [
    {}, {"bias": False}, {"add_bias_kv": True}, {"add_zero_attn": True}, {"kdim": 3, "vdim": 5},
    {"batch_first": True}])
@pytest.mark.parametrize("form", ["weights", "heads", "fused", "masked", "padded", "causal"])
def test_attention(options, form):
    swap = (1, 0, 2) if options.get("batch_first") else (0, 1, 2)
    values = [real(4, 2, 6), real(5, 2, options.get("kdim", 6)), real(5, 2, options.get("vdim", 6))]
    values = [v.transpose(swap) for v in values]
    forbidden = np.triu(np.ones((4, 5), bool), 1)
    padding = np.array([[False] * 5, [False, False, False, True, True]])

    def call(module, inputs, library):
        extra = {"weights": {}, "heads": {"average_attn_weights": False},
                 "fused": {"need_weights": False},
                 "masked": {"attn_mask": library.tensor(forbidden), "need_weights": False},
                 "padded": {"key_padding_mask": library.tensor(padding),
                            "attn_mask": library.tensor(forbidden)},
                 "causal": {"attn_mask": library.tensor(forbidden), "is_causal": True}}[form]
        return module(*inputs, **extra)

    compare(lambda n: n.MultiheadAttention(6, 2, **options), *values, call=call)


def labels(*shape):
    return whole(*shape, high=2) * 2 - 1


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("make, values", [
    (lambda n, r: n.CTCLoss(reduction=r),
     (np.log(np.exp(real(6, 2, 4))), whole(2, 3, low=1, high=4), np.array([6, 5]),
      np.array([3, 2]))),
    (lambda n, r: n.MultiMarginLoss(reduction=r), (real(4, 3), whole(4, high=3))),
    (lambda n, r: n.MultiMarginLoss(2, 0.5, reduction=r), (real(4, 3), whole(4, high=3))),
    (lambda n, r: n.MultiLabelMarginLoss(reduction=r),
     (real(2, 4), np.array([[3, 0, -1, 1], [1, 2, 2, -1]]))),
    (lambda n, r: n.MultiLabelSoftMarginLoss(reduction=r), (real(4, 3), whole(4, 3, high=2))),
    (lambda n, r: n.SoftMarginLoss(reduction=r), (real(4, 3), labels(4, 3))),
    (lambda n, r: n.HingeEmbeddingLoss(reduction=r), (real(4, 3), labels(4, 3))),
    (lambda n, r: n.CosineEmbeddingLoss(0.1, reduction=r), (real(4, 3), real(4, 3), labels(4))),
    (lambda n, r: n.MarginRankingLoss(0.2, reduction=r), (real(4), real(4), labels(4))),
    (lambda n, r: n.TripletMarginLoss(swap=True, reduction=r),
     (real(4, 3), real(4, 3), real(4, 3))),
    (lambda n, r: n.TripletMarginWithDistanceLoss(reduction=r),
     (real(4, 3), real(4, 3), real(4, 3))),
    (lambda n, r: n.PoissonNLLLoss(full=True, reduction=r), (real(4, 3), np.abs(4 * real(4, 3)))),
    (lambda n, r: n.GaussianNLLLoss(full=True, reduction=r),
     (real(4, 3), real(4, 3), np.abs(real(4, 3)) + 0.1))])
def test_losses(make, values, reduction):
    def call(module, inputs, library):
        return module(*inputs)

    compare(lambda n: make(n, reduction), *values, call=call)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("options", [{}, {"padding_idx": 2}, {"max_norm": 1.0}])
def test_bags(mode, options):
    def call(module, inputs, library):
        return (module(inputs[0]), module(inputs[0].reshape(-1), inputs[1]))

    compare(lambda n: n.EmbeddingBag(6, 3, mode=mode, **options), whole(4, 3, high=6),
            np.array([0, 2, 2, 9]), call=call)


def test_weights_of_bag_entries():
    def call(module, inputs, library):
        index, weights = inputs
        return module(index, per_sample_weights=weights)

    compare(lambda n: n.EmbeddingBag(6, 3, mode="sum"), whole(4, 3, high=6), real(4, 3), call=call)


def test_bags_scaled_by_frequency_are_like_embeddings():
    weight = pb.tensor(real(5, 3)).requires_grad_()
    index = pb.tensor([[0, 2, 2], [2, 4, 0]])
    bags = nn.functional.embedding_bag(index, weight, mode="sum", scale_grad_by_freq=True)
    rows = nn.functional.embedding(index, weight, scale_grad_by_freq=True).sum(1)
    seed = pb.tensor(real(2, 3))
    for one, two in zip(pb.autograd.grad(bags, weight, seed), pb.autograd.grad(rows, weight, seed),
                        strict=True):
        np.testing.assert_allclose(one.numpy(), two.numpy())


def test_random_slopes_draw_the_same_numbers():
    x = real(5, 6)
    torch.manual_seed(5)
    pb.manual_seed(5)
    theirs = torch.nn.functional.rrelu(torch.tensor(x), training=True)
    agree(nn.functional.rrelu(pb.tensor(x), training=True), theirs, "rrelu")
    theirs = torch.nn.functional.gumbel_softmax(torch.tensor(x), 0.5)
    agree(nn.functional.gumbel_softmax(pb.tensor(x), 0.5), theirs, "gumbel_softmax")


@pytest.mark.parametrize("function", ["dropout1d", "dropout2d", "dropout3d", "alpha_dropout",
                                      "feature_alpha_dropout"])
def test_channel_dropout_draws_the_same_numbers(function):
    shape = {"dropout1d": (2, 3, 4), "dropout2d": (2, 3, 2, 2)}.get(function, (2, 3, 2, 2, 2))
    x = real(*shape)
    torch.manual_seed(5)
    pb.manual_seed(5)
    theirs = getattr(torch.nn.functional, function)(torch.tensor(x), 0.4, True)
    agree(getattr(nn.functional, function)(pb.tensor(x), 0.4, True), theirs, function)
