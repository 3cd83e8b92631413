"""Calls of every layer class, and what they give: `nn/test_layers.py` compares them with PyTorch.

A case is a constructor call and the inputs, in which names mean the same in both libraries.
"""

import numpy as np

CASES = """
Identity(3, a=4) | r(2, 3)
Linear(5, 4) | r(3, 5)
Linear(5, 4, bias=False) | r(2, 3, 5)
Bilinear(3, 4, 5) | r(6, 3), r(6, 4)
Bilinear(3, 4, 2, bias=False) | r(2, 6, 3), r(2, 6, 4)
Embedding(7, 3) | i(4, 2, high=7)
Embedding(7, 3, padding_idx=-2) | i(4, 2, high=7)
Embedding(7, 3, max_norm=1.0, scale_grad_by_freq=True) | i(9, high=7)
EmbeddingBag(7, 3) | i(4, 2, high=7)
EmbeddingBag(7, 3, mode="sum", padding_idx=1) | i(4, 5, high=7)
EmbeddingBag(7, 3, mode="max") | i(9, high=7), t([0, 2, 2, 6])
EmbeddingBag(7, 3, mode="sum", include_last_offset=True) | i(9, high=7), t([0, 2, 2, 9]), r(9)
Conv1d(4, 6, 3) | r(2, 4, 9)
Conv1d(4, 6, 3, 2, 1, 2, groups=2, bias=False) | r(2, 4, 9)
Conv1d(4, 6, 4, padding="same", padding_mode="circular") | r(4, 9)
Conv2d(3, 4, 3, padding=1) | r(2, 3, 5, 6)
Conv2d(4, 4, (3, 2), stride=(2, 1), padding=(2, 1), dilation=(1, 2), groups=4) | r(2, 4, 6, 6)
Conv2d(3, 4, (3, 4), padding="same", padding_mode="reflect") | r(2, 3, 6, 7)
Conv2d(3, 4, 3, padding=(1, 2), padding_mode="replicate") | r(2, 3, 6, 7)
Conv3d(2, 3, 2, padding="valid") | r(2, 2, 4, 3, 4)
ConvTranspose1d(4, 6, 3, 2, 1, 1, groups=2) | r(2, 4, 5)
ConvTranspose2d(4, 3, (3, 2), stride=2, padding=1, dilation=2) | r(2, 4, 4, 5)
ConvTranspose2d(4, 3, 3, stride=2) | r(2, 4, 4, 5), output_size=[10, 12]
ConvTranspose3d(2, 3, 2, stride=2, bias=False) | r(2, 2, 3, 2, 3)
MaxPool1d(3) | r(2, 3, 8)
MaxPool1d(3, 2, 1, return_indices=True, ceil_mode=True) | r(2, 3, 8)
MaxPool2d((2, 3), stride=(2, 1), padding=(1, 0), dilation=2) | r(2, 3, 7, 8)
MaxPool2d(2) | r(3, 6, 6)
MaxPool3d(2, return_indices=True) | r(2, 2, 4, 4, 4)
MaxUnpool1d(2) | r(1, 1, 3), t([[[0, 3, 4]]])
MaxUnpool2d(2, stride=2) | r(1, 1, 2, 2), t([[[[0, 3], [8, 15]]]])
MaxUnpool3d(2) | r(1, 1, 1, 1, 2), t([[[[[1, 14]]]]])
AvgPool1d(3, 2, 1) | r(2, 3, 9)
AvgPool2d((2, 3), 2, (1, 0), count_include_pad=False) | r(2, 3, 6, 7)
AvgPool2d(2, divisor_override=3, ceil_mode=True) | r(2, 3, 5, 5)
AvgPool3d(2) | r(2, 2, 4, 4, 4)
AdaptiveAvgPool1d(3) | r(2, 3, 8)
AdaptiveAvgPool2d((None, 3)) | r(2, 3, 5, 8)
AdaptiveAvgPool3d(2) | r(2, 2, 5, 4, 3)
AdaptiveMaxPool1d(3, return_indices=True) | r(2, 3, 8)
AdaptiveMaxPool2d((2, 3)) | r(2, 3, 5, 8)
AdaptiveMaxPool3d(2) | r(2, 2, 5, 4, 3)
FractionalMaxPool2d(2, output_size=(3, 4)) | r(2, 3, 7, 9)
FractionalMaxPool2d(2, output_ratio=0.5, return_indices=True) | r(2, 3, 8, 9)
FractionalMaxPool3d(2, output_size=3) | r(2, 2, 6, 6, 7)
LPPool1d(2, 3) | r(2, 3, 9)
LPPool2d(3.0, (2, 3), stride=2, ceil_mode=True) | p(2, 3, 6, 7)
LPPool3d(1.5, 2) | p(2, 2, 4, 4, 4)
ConstantPad1d(2, 3.5) | r(2, 3, 4)
ConstantPad2d((1, 2, 0, 3), -1) | r(2, 3, 4)
ConstantPad3d((1, 0, 2, 1, 0, 1), 0.5) | r(2, 2, 3, 3, 3)
ZeroPad1d((1, 2)) | r(2, 3, 4)
ZeroPad2d(1) | r(2, 3, 4)
ZeroPad3d(1) | r(1, 2, 2, 3, 2)
ReflectionPad1d((2, 1)) | r(2, 3, 4)
ReflectionPad2d(2) | r(2, 3, 4, 4)
ReflectionPad3d(1) | r(1, 2, 3, 3, 3)
ReplicationPad1d((2, 1)) | r(2, 3, 4)
ReplicationPad2d((1, 2, 3, 4)) | r(2, 3, 4, 4)
ReplicationPad3d(1) | r(1, 2, 3, 3, 3)
CircularPad1d((2, 1)) | r(2, 3, 4)
CircularPad2d((1, 2, 0, 2)) | r(2, 3, 4, 4)
CircularPad3d(1) | r(1, 2, 3, 3, 3)
Upsample(scale_factor=2) | r(2, 3, 4)
Upsample(size=(5, 7), mode="bilinear") | r(2, 3, 4, 4)
Upsample(scale_factor=(1.5, 2), mode="bicubic", align_corners=True) | r(2, 3, 4, 4)
Upsample(scale_factor=1.7, mode="trilinear", recompute_scale_factor=True) | r(1, 2, 3, 3, 3)
UpsamplingNearest2d(scale_factor=2) | r(2, 3, 4, 4)
UpsamplingBilinear2d(size=6) | r(2, 3, 4, 4)
Flatten() | r(2, 3, 4)
Flatten(0, 1) | r(2, 3, 4)
Unflatten(1, (2, 3)) | r(4, 6)
Unflatten(-1, [2, -1]) | r(4, 6)
Unfold((2, 3), dilation=2, padding=1, stride=2) | r(2, 3, 7, 8)
Fold((4, 5), (2, 2)) | r(2, 12, 12)
PixelShuffle(2) | r(2, 8, 3, 3)
PixelUnshuffle(2) | r(2, 2, 4, 6)
ChannelShuffle(2) | r(2, 4, 3, 3)
BatchNorm1d(3) | r(5, 3)
BatchNorm1d(3, momentum=None, bias=False) | r(5, 3, 2)
BatchNorm2d(3, eps=0.1, affine=False) | r(4, 3, 2, 2)
BatchNorm3d(3, track_running_stats=False) | r(2, 3, 2, 2, 2)
SyncBatchNorm(3) | r(5, 3, 2)
InstanceNorm1d(3) | r(4, 3, 5)
InstanceNorm2d(3, affine=True, track_running_stats=True) | r(4, 3, 2, 3)
InstanceNorm2d(3, affine=True, bias=False) | r(3, 2, 3)
InstanceNorm3d(3) | r(2, 3, 2, 2, 2)
GroupNorm(2, 4) | r(3, 4, 5)
GroupNorm(2, 4, bias=False) | r(3, 4, 5)
LocalResponseNorm(3) | r(2, 5, 4)
CrossMapLRN2d(3, 0.1) | r(2, 6, 3, 2).detach()
CrossMapLRN2d(4, 0.1, 0.5, 2.0) | r(2, 2, 3, 2)
LayerNorm(4) | r(3, 4)
LayerNorm((3, 4), bias=False) | r(2, 3, 4)
LayerNorm([4], elementwise_affine=False) | r(2, 3, 4)
RMSNorm(4) | r(3, 4)
RMSNorm((3, 4), 0.1, elementwise_affine=False) | r(2, 3, 4)
Threshold(0.1, 2.0) | r(3, 4)
Hardtanh(-0.5, 0.7) | r(3, 4)
ReLU() | r(3, 4)
ReLU(inplace=True) | c(3, 4)
ReLU6() | r(9, 4)
RReLU() | r(3, 4)
RReLU(0.1, 0.9, True) | c(3, 4)
PReLU() | r(3, 4)
PReLU(4, init=0.1) | r(3, 4, 2)
LeakyReLU(0.2) | r(3, 4)
LeakyReLU(0.2, True) | c(3, 4)
ELU(0.5) | r(3, 4)
SELU() | r(3, 4)
CELU(0.5, inplace=True) | c(3, 4)
GELU() | r(3, 4)
GELU("tanh") | r(3, 4)
SiLU() | r(3, 4)
Mish() | r(3, 4)
Hardswish() | r(9, 4)
Hardsigmoid() | r(9, 4)
Hardshrink(0.3) | r(3, 4)
Softshrink(0.3) | r(3, 4)
Softsign() | r(3, 4)
Tanhshrink() | r(3, 4)
Tanh() | r(3, 4)
Sigmoid() | r(3, 4)
LogSigmoid() | r(3, 4)
Softplus() | r(3, 4)
Softplus(2, 1) | r(3, 4)
GLU() | r(3, 4)
GLU(0) | r(4, 3)
Softmax(1) | r(3, 4)
Softmax() | r(3, 4)
Softmin(0) | r(3, 4)
LogSoftmax(-1) | r(3, 4)
Softmax2d() | r(2, 3, 2, 2)
Dropout() | r(40, 3)
Dropout(0.2, inplace=True) | c(40, 3)
Dropout1d(0.4) | r(4, 5, 6)
Dropout2d(0.4) | r(4, 5, 2, 3)
Dropout3d(0.4) | r(4, 5, 2, 3, 2)
AlphaDropout(0.3) | r(40, 3)
FeatureAlphaDropout(0.3) | r(4, 5, 6)
MSELoss() | r(3, 4), r(3, 4)
L1Loss(reduction="sum") | r(3, 4), r(3, 4)
SmoothL1Loss(beta=0.5) | r(3, 4), r(3, 4)
HuberLoss(delta=0.3, reduction="none") | r(3, 4), r(3, 4)
KLDivLoss(reduction="batchmean", log_target=True) | r(3, 4), r(3, 4)
KLDivLoss() | r(3, 4), p(3, 4)
NLLLoss() | r(5, 3), i(5, high=3)
NLLLoss(weight=p(3), ignore_index=1) | r(5, 3, 2), i(5, 2, high=3)
NLLLoss2d() | r(5, 3, 2, 2), i(5, 2, 2, high=3)
CrossEntropyLoss() | r(5, 3), i(5, high=3)
CrossEntropyLoss(weight=p(3), label_smoothing=0.2, reduction="sum") | r(5, 3), u(5, 3)
BCELoss(weight=p(4)) | u(3, 4), u(3, 4)
BCEWithLogitsLoss(pos_weight=p(4)) | r(3, 4), u(3, 4)
CosineSimilarity() | r(3, 4), r(3, 4)
PairwiseDistance(3, keepdim=True) | r(3, 4), r(3, 4)
PoissonNLLLoss(full=True) | r(3, 4), p(3, 4)
PoissonNLLLoss(log_input=False) | p(3, 4), p(3, 4)
GaussianNLLLoss(full=True) | r(3, 4), r(3, 4), p(3, 4)
CTCLoss() | r(6, 2, 4), i(2, 3, low=1, high=4), t([6, 5]), t([3, 2])
HingeEmbeddingLoss(0.5) | r(3, 4), s(3, 4)
CosineEmbeddingLoss(0.1) | r(4, 3), r(4, 3), s(4)
MarginRankingLoss(0.2) | r(4), r(4), s(4)
SoftMarginLoss() | r(4, 3), s(4, 3)
MultiMarginLoss(2, 0.5, weight=p(3)) | r(4, 3), i(4, high=3)
MultiLabelMarginLoss() | r(2, 4), t([[3, 0, -1, 1], [1, 2, 2, -1]])
MultiLabelSoftMarginLoss(weight=p(3)) | r(4, 3), i(4, 3, high=2)
TripletMarginLoss(swap=True) | r(4, 3), r(4, 3), r(4, 3)
TripletMarginWithDistanceLoss(margin=0.5) | r(4, 3), r(4, 3), r(4, 3)
LinearCrossEntropyLoss(5, 4, bias=True) | r(3, 5), i(3, high=4)
LinearCrossEntropyLoss(5, 4, out_features=(2,), label_smoothing=0.1) | r(3, 5), i(3, 2, high=4)
AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], div_value=2.0) | r(9, 8), i(9, high=20)
AdaptiveLogSoftmaxWithLoss(8, 20, (5,), head_bias=True) | r(8), t(17)
RNN(5, 6) | r(4, 3, 5)
RNN(5, 6, 2, "relu", bidirectional=True, dropout=0.4) | r(4, 3, 5)
LSTM(5, 6, batch_first=True) | r(3, 4, 5)
LSTM(5, 6, 3, dropout=0.3, bidirectional=True, proj_size=2) | r(4, 3, 5)
LSTM(5, 6, bias=False) | r(4, 5), (r(1, 6), r(1, 6))
GRU(5, 6, 2, dropout=0.5) | r(4, 3, 5), r(2, 3, 6)
GRU(5, 6, 1, False, True, 0.0, True) | r(3, 4, 5)
RNNCell(5, 6, nonlinearity="relu") | r(3, 5)
LSTMCell(5, 6) | r(3, 5), (r(3, 6), r(3, 6))
GRUCell(5, 6, bias=False) | r(5), r(6)
MultiheadAttention(6, 2) | r(4, 3, 6), r(5, 3, 6), r(5, 3, 6)
MultiheadAttention(6, 2, 0.2, batch_first=True) | *[r(3, 4, 6)] * 3, need_weights=False
MultiheadAttention(6, 2, kdim=3, vdim=5, add_bias_kv=True, add_zero_attn=True) | r(4, 3, 6), \
r(5, 3, 3), r(5, 3, 5), average_attn_weights=False
MultiheadAttention(6, 3, bias=False) | r(4, 6), r(5, 6), r(5, 6), attn_mask=r(4, 5)
TransformerEncoderLayer(6, 2, 8) | r(4, 3, 6)
TransformerEncoderLayer(6, 2, 8, 0.2, "gelu", 1e-3, True, True) | r(3, 4, 6), causal(4)
TransformerEncoderLayer(6, 3, 8, bias=False, batch_first=True) | r(3, 4, 6), \
src_key_padding_mask=padding(3, 4)
TransformerDecoderLayer(6, 2, 8) | r(4, 3, 6), r(5, 3, 6)
TransformerDecoderLayer(6, 2, 8, batch_first=True, norm_first=True) | r(3, 4, 6), r(3, 5, 6), \
causal(4), tgt_is_causal=True, memory_key_padding_mask=padding(3, 5)
TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8), 2, nn.LayerNorm(6)) | r(4, 3, 6), causal(4)
TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, batch_first=True), 2) | r(3, 4, 6), \
src_key_padding_mask=padding(3, 4)
TransformerDecoder(nn.TransformerDecoderLayer(6, 2, 8), 2) | r(4, 3, 6), r(5, 3, 6), causal(4)
Transformer(6, 2, 1, 2, 8) | r(4, 3, 6), r(5, 3, 6), tgt_mask=causal(5)
Transformer(6, 2, 1, 1, 8, 0.0, "gelu", batch_first=True, norm_first=True, bias=False) | \
r(3, 4, 6), r(3, 5, 6)
Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)) | r(5, 3)
"""
CASES = CASES.replace("\\\n", "").strip().splitlines()


class Scope(dict):
    """What the names of a case mean in one library; inputs are the same in both."""

    def __init__(self, torch):
        self.torch, self.leaves, self.draws = torch, [], 0
        super().__init__(nn=torch.nn, r=self.real, c=self.copied, p=self.positive, u=self.unit,
                         i=self.whole, s=self.sign, t=torch.tensor, causal=self.causal,
                         padding=self.padding)

    def random(self):
        self.draws += 1
        return np.random.default_rng(self.draws)

    def leaf(self, array):
        self.leaves.append(self.torch.tensor(array.astype(np.float32)).requires_grad_())
        return self.leaves[-1]

    def real(self, *shape):
        return self.leaf(self.random().standard_normal(shape))

    def copied(self, *shape):
        """For layers that write into their input."""
        return self.real(*shape) * 1

    def positive(self, *shape):
        return self.torch.tensor(self.random().uniform(0.2, 2, shape).astype(np.float32))

    def unit(self, *shape):
        return self.leaf(self.random().uniform(0.1, 0.9, shape))

    def whole(self, *shape, high, low=0):
        return self.torch.tensor(self.random().integers(low, high, shape))

    def sign(self, *shape):
        return self.whole(*shape, low=0, high=2) * 2 - 1

    def causal(self, size):
        return self.torch.nn.Transformer.generate_square_subsequent_mask(size)

    def padding(self, rows, columns):
        """The last place of the first row, the last two of the second, and so on."""
        return self.torch.tensor(np.arange(columns) >= columns - 1 - np.arange(rows)[:, None])


def flat(value):
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in flat(part)]
    return [] if value is None else [value]


def pattern(size):
    return np.cos(np.arange(size) * 0.7)


def run(case, torch, train, grad=True, wrap=lambda module: module):
    """(module, initial parameters, named results) of one case in one library."""
    scope = Scope(torch)
    make, _, call = case.partition(" | ")
    torch.manual_seed(0)
    module = eval(f"nn.{make}", dict(scope)).train(train)
    start = [(name, value.detach().numpy().copy()) for name, value in module.state_dict().items()]
    scope.leaves.clear()
    torch.manual_seed(1)
    scope["module"] = wrap(module)
    with torch.set_grad_enabled(grad):
        outs = flat(eval(f"module({call})", dict(scope)))
    results = [(f"output {i}", out.detach().numpy()) for i, out in enumerate(outs)]
    results.append(("next draw", torch.rand(1).numpy()))
    wanted = [*scope.leaves, *(p for p in module.parameters() if p.requires_grad)]
    smooth = [out for out in outs if out.requires_grad]
    if grad and smooth and wanted:
        seeds = [torch.tensor(pattern(out.numel()).astype(np.float32)).reshape(out.shape)
                 for out in smooth]
        grads = torch.autograd.grad(smooth, wanted, seeds, allow_unused=True)
        results += [(f"gradient {i}", g.numpy()) for i, g in enumerate(grads) if g is not None]
    results += [(name, b.numpy()) for name, b in module.named_buffers()]
    return module, start, results
