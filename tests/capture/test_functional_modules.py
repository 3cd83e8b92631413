"""Modules as functions of their state, captured: static and symbolic sizes, training and not.

One module of each kind; all classes of `torch.nn` have been compared once with PyTorch's inputs.
"""

import pytest

import pullback as torch
from pullback import nn
from pullback.aot import aot_function, nop
from pullback.func import functional_call
from pullback.utils._pytree import tree_leaves, tree_map


def draw(*shape):
    return torch.randn(*shape)


CASES = {
    "linear": (lambda: nn.Linear(3, 4), lambda: (draw(5, 3),)),
    "bilinear": (lambda: nn.Bilinear(2, 3, 4), lambda: (draw(5, 2), draw(5, 3))),
    "conv1d": (lambda: nn.Conv1d(2, 3, 3, padding="same"), lambda: (draw(2, 2, 6),)),
    "conv2d": (lambda: nn.Conv2d(2, 4, 3, stride=2, groups=2), lambda: (draw(2, 2, 7, 6),)),
    "transposed": (lambda: nn.ConvTranspose2d(2, 3, 3, 2, 1, 1), lambda: (draw(2, 2, 4, 5),)),
    "batch norm": (lambda: nn.BatchNorm2d(3), lambda: (draw(4, 3, 2, 2),)),
    "instance norm": (lambda: nn.InstanceNorm1d(3, affine=True, track_running_stats=True),
                      lambda: (draw(4, 3, 5),)),
    "group norm": (lambda: nn.GroupNorm(2, 4), lambda: (draw(3, 4, 2),)),
    "layer norm": (lambda: nn.LayerNorm([2, 3]), lambda: (draw(4, 2, 3),)),
    "rms norm": (lambda: nn.RMSNorm(3), lambda: (draw(4, 3),)),
    "dropout": (lambda: nn.Dropout(0.4), lambda: (draw(20),)),
    "embedding": (lambda: nn.Embedding(7, 3, padding_idx=1),
                  lambda: (torch.tensor([[0, 1], [5, 2]]),)),
    "bags": (lambda: nn.EmbeddingBag(7, 3, mode="mean"), lambda: (torch.tensor([[0, 1], [5, 2]]),)),
    "prelu": (lambda: nn.PReLU(3), lambda: (draw(2, 3, 4),)),
    "glu": (lambda: nn.GLU(), lambda: (draw(3, 4),)),
    "max pool": (lambda: nn.MaxPool2d(2, 1, return_indices=True), lambda: (draw(1, 2, 4, 4),)),
    "adaptive": (lambda: nn.AdaptiveAvgPool2d((2, None)), lambda: (draw(1, 2, 5, 3),)),
    "upsample": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), lambda: (draw(1, 2, 3, 3),)),
    "shuffle": (lambda: nn.PixelShuffle(2), lambda: (draw(1, 8, 3, 3),)),
    "unfold": (lambda: nn.Unfold(2), lambda: (draw(1, 2, 4, 4),)),
    "pad": (lambda: nn.ReflectionPad2d((1, 2, 1, 0)), lambda: (draw(1, 2, 4, 4),)),
    "rnn": (lambda: nn.RNN(3, 4, 2, bidirectional=True), lambda: (draw(5, 2, 3), draw(4, 2, 4))),
    "lstm": (lambda: nn.LSTM(3, 4, proj_size=2, dropout=0.0), lambda: (draw(5, 2, 3),)),
    "gru cell": (lambda: nn.GRUCell(3, 4), lambda: (draw(2, 3), draw(2, 4))),
    "attention": (lambda: nn.MultiheadAttention(4, 2, batch_first=True),
                  lambda: (draw(2, 3, 4),) * 3),
    "encoder": (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(
        4, 2, 8, dropout=0.0, batch_first=True), 2, enable_nested_tensor=False),
        lambda: (draw(2, 3, 4),)),
    "decoder": (lambda: nn.TransformerDecoderLayer(4, 2, 8, dropout=0.0),
                lambda: (draw(3, 2, 4), draw(5, 2, 4))),
    "cross entropy": (lambda: nn.CrossEntropyLoss(label_smoothing=0.1),
                      lambda: (draw(4, 3), torch.tensor([0, 2, 1, 1]))),
    "huber": (lambda: nn.HuberLoss(delta=0.5), lambda: (draw(4), draw(4))),
    "cosine": (lambda: nn.CosineEmbeddingLoss(),
               lambda: (draw(3, 4), draw(3, 4), torch.tensor([1, -1, 1]))),
    "adaptive softmax": (lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 8, [3]),
                         lambda: (draw(5, 4), torch.tensor([0, 7, 3, 2, 5]))),
}
DATA_DEPENDENT = ("adaptive softmax",)  # how many targets fall into a cluster is asked in Python
TRAINED = ("batch norm", "instance norm", "dropout", "attention", "encoder")  # in two ways


def copied(tree):
    return tree_map(lambda t: t.detach().clone().requires_grad_(
        t.requires_grad or t.is_floating_point()) if isinstance(t, torch.Tensor) else t, tree)


def results(module, parameters, buffers, args, wrap):
    """Outputs, gradients and buffers after a call."""
    parameters, args = copied(parameters), copied(args)
    buffers = {name: b.clone() for name, b in buffers.items()}

    def call(parameters, buffers, args):
        return functional_call(module, (parameters, buffers), args)

    torch.manual_seed(1)
    out = [o for o in tree_leaves(wrap(call)(parameters, buffers, args))
           if isinstance(o, torch.Tensor)]
    total = sum((o * torch.linspace(0.5, 1.5, o.numel()).reshape(o.shape)).sum()
                for o in out if o.requires_grad)
    total.backward()
    grads = [t.grad for t in [*parameters.values(), *args] if t.is_floating_point()]
    return [*out, *grads, *buffers.values()]


@pytest.mark.parametrize("name, training", [
    (n, t) for n in CASES for t in ((True, False) if n in TRAINED else (True,))])
def test_captured_modules(name, training):
    torch.manual_seed(0)
    make, inputs = CASES[name]
    module, args = make().train(training), inputs()
    state = dict(module.named_parameters()), dict(module.named_buffers())
    wanted = results(module, *state, args, lambda f: f)
    wraps = [lambda f: torch.compile(f)] if name in DATA_DEPENDENT else [
        lambda f: aot_function(f, nop), lambda f: aot_function(f, nop, dynamic=True)]
    for wrap in wraps:
        found = results(module, *state, args, wrap)
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted):
            assert (a is None) == (b is None)
            if a is not None:
                assert torch.allclose(a.detach(), b.detach(), rtol=1e-4, atol=1e-5)
