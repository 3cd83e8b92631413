"""Programs for operators with vendors' names, and for oneDNN's layout: here it is the usual one."""

from dataclasses import dataclass
from pathlib import Path

import pullback as torch
from tests.helpers.quantized.models import draw
from tests.helpers.quantized.programs import KINDS, Dense, Entry

aten, F = torch.ops.aten, torch.nn.functional
D = torch.float64
COMPARISONS = Path(__file__).parents[2] / "ops" / "test_vendor.py"


def real(seed, *shape, positive=False):
    x = draw(torch, seed, *shape).to(D)
    return x.abs() + 0.5 if positive else x


def inputs(*shapes):
    return lambda: [real(k, *s) for k, s in enumerate(shapes)]


# ---------------------------------------------------------------------------------------------
# Names of vendors: `tests/ops/test_vendor.py` compares them with the generic operator


def rnn_backward(x, g, w, v, h):
    """The gradients of one layer with tanh, with the packed weights and the reserve it gives."""
    layer = (5, 1, False, 0.0, True, False, [], None)
    out = torch.miopen_rnn(x, [w, v], 2, h, None, 1, *layer)
    return aten.miopen_rnn_backward(x, [w, v], 2, out[4], h, None, out[0], g, None, None, 1, *layer,
                                    out[3], [True] * 4)


def by_cudnn(x, g, w, v, h):
    layer = (5, 0, 1, False, 0.0, True, False, [], None)
    out = torch._cudnn_rnn(x, [w, v], 2, None, h, None, 1, *layer)
    return aten._cudnn_rnn_backward(x, [w, v], 2, out[4], h, None, out[0], g, None, None, 1, *layer,
                                    out[3], [True] * 4)


COMPARED = {  # here, with the generic operator
    "cudnn_grid_sampler_backward": Dense(
        aten.cudnn_grid_sampler_backward,
        lambda x, p, g: aten.grid_sampler_2d_backward(g, x, p, 0, 0, True, [True, True]),
        lambda: [real(0, 2, 3, 4, 4), real(1, 2, 3, 3, 2) * 0.3, real(2, 2, 3, 3, 3)]),
    "miopen_rnn_backward": Dense(
        rnn_backward, by_cudnn,
        lambda: [real(0, 6, 3, 4), real(1, 6, 3, 5), real(2, 5, 4), real(3, 5, 5),
                 real(4, 1, 3, 5)]),
}


@dataclass(frozen=True)
class Vendor(Entry):
    """An entry that is a generic operator: the same numbers, and all derivatives of that."""

    def run(self, kind):
        compared = COMPARED.get(self.name)
        if compared is not None:
            compared.run(kind)
        else:
            assert self.name.partition(".")[0] in COMPARISONS.read_text()
        super().run(kind)


NAMES = """
    cudnn_affine_grid_generator cudnn_batch_norm cudnn_batch_norm_backward cudnn_convolution
    cudnn_convolution_transpose _cudnn_ctc_loss _cudnn_ctc_loss.Tensor cudnn_grid_sampler
    cudnn_grid_sampler_backward _cudnn_rnn _cudnn_rnn_backward _lstm_mps lstm_mps_backward
    miopen_batch_norm miopen_batch_norm_backward miopen_convolution miopen_convolution_transpose
    miopen_ctc_loss miopen_ctc_loss.Tensor miopen_depthwise_convolution miopen_rnn
    miopen_rnn_backward mkldnn_adaptive_avg_pool2d mkldnn_convolution mkldnn_linear
    mkldnn_max_pool2d mkldnn_max_pool3d _mkldnn_reshape mkldnn_rnn_layer mkldnn_rnn_layer_backward
    _mps_convolution mps_convolution_backward _mps_convolution_transpose
    _nnpack_spatial_convolution to_mkldnn"""
VENDOR = {name: Vendor(name) for name in NAMES.split()}

# ---------------------------------------------------------------------------------------------
# oneDNN's layout


def opaque(call, *shapes, wanted=None, positive=(), mapped=0):
    """An operator on what `to_mkldnn` gives: the dense operator, of any number of tensors."""
    def there(*given):
        found = [x.to_mkldnn() for x in given]
        assert not any(x.is_mkldnn for x in found)  # an ordinary tensor: see docs/differences.md
        out = call(*found)
        return tuple([o.to_dense() for o in out if o is not None]) if isinstance(
            out, (tuple, list)) else out.to_dense()

    def plain(*given):
        out = (wanted or call)(*[x.clone() for x in given])
        return tuple([o for o in out if o is not None]) if isinstance(out, (tuple, list)) else out

    def drawn():
        return [real(k, *s, positive=k in positive) for k, s in enumerate(shapes)]

    return Dense(there, plain, drawn, KINDS, mapped)


def statistics(x):
    """Running ones, for each example of a batch."""
    like = x.detach().mean((0, 2))
    return like * 0, like * 0 + 1


def normed(name):
    """Batch normalisation in training: its results, and what it writes."""
    def call(x, w, b):
        mean, var = statistics(x)
        rest = (0.1, 1e-5) if "update" in name else (True, 0.1, 1e-5)
        out = getattr(aten, name)(x, w, b, mean, var, *rest)
        return out[0], mean * 1, var * 1

    def wanted(x, w, b):
        mean, var = statistics(x)
        out = F.batch_norm(x, mean, var, w, b, True, 0.1, 1e-5)
        return out, mean * 1, var * 1

    return opaque(call, (4, 3, 5), (3,), (3,), wanted=wanted)


def of_norm(g, x, w):
    mean, var = x.mean((0, 2)), x.var((0, 2), unbiased=False)
    return g, x, w, mean, (var + 1e-5).rsqrt()


def batch_norm_backward(g, x, w):
    g, x, w, mean, scale = of_norm(g, x, w)
    reserve = torch.zeros(0, dtype=torch.uint8)
    return aten.batch_norm_backward(g, x, w, None, None, mean, scale, True, 1e-5, [True] * 3,
                                    reserve)


def native_batch_norm_backward(g, x, w):
    g, x, w, mean, scale = of_norm(g, x, w)
    return aten.native_batch_norm_backward(g, x, w, None, None, mean, scale, True, 1e-5, [True] * 3)


def by_hand(g, x, w):
    """The derivative of normalisation: what is left without the parts along 1 and x."""
    g, x, w, mean, scale = of_norm(g, x, w)
    mean, scale, shaped = (t.reshape(1, 3, 1) for t in (mean, scale, w))
    level = (x - mean) * scale
    along = g.mean((0, 2), keepdim=True) + level * (g * level).mean((0, 2), keepdim=True)
    return (g - along) * scale * shaped, (g * level).sum((0, 2)), g.sum((0, 2))


def max_pool_backward(n):
    name = f"mkldnn_max_pool{n}d_backward"
    shape = (2, *[5] * n)

    def call(g, x):
        out = getattr(F, f"max_pool{n}d")(x, 2)
        return getattr(aten, name)(g, out, x, [2] * n, [2] * n)

    def wanted(g, x):
        pool = getattr(aten, f"max_pool{n}d_with_indices")
        indices = pool(x, [2] * n, [2] * n)[1]
        return getattr(aten, f"max_pool{n}d_with_indices_backward")(
            g, x, [2] * n, [2] * n, [0] * n, [1] * n, False, indices)

    return opaque(call, (1, 2, *[2] * n), (1, *shape), wanted=wanted)


def avg_pool_backward(n):
    name = f"avg_pool{n}d_backward"
    return opaque(lambda g, x: getattr(aten, name)(g, x, [2] * n, [2] * n, [0] * n, False, True,
                                                   None),
                  (1, 2, *[2] * n), (1, 2, *[4] * n),
                  wanted=lambda g, x: _spread(g, n) / 2**n + 0 * x)


def _spread(g, n):
    for d in range(n):
        g = g.repeat_interleave(2, g.ndim - 1 - d)
    return g


def made_empty(x):
    out = torch.empty(x.shape, dtype=x.dtype, layout=torch._mkldnn)
    assert out.shape == x.shape and out.dtype is x.dtype
    return torch.zeros_like(x) + torch.empty_like(x, layout=torch._mkldnn).copy_(x)


MATRIX = (3, 4)
OPAQUE = {
    "_batch_norm_with_update": normed("_batch_norm_with_update"),
    "_mkldnn_transpose": opaque(lambda x: torch._mkldnn_transpose(x, 0, 1), MATRIX,
                                wanted=lambda x: x.t() * 1),
    "_mkldnn_transpose_": opaque(lambda x: torch._mkldnn_transpose_(x * 1, 0, 1), MATRIX,
                                 wanted=lambda x: x.t() * 1),
    "_native_batch_norm_legit": normed("_native_batch_norm_legit"),
    "_prelu_kernel": opaque(aten._prelu_kernel, MATRIX, (1, 4), wanted=lambda x, w: torch.where(
        x > 0, x, x * w)),
    "_prelu_kernel_backward": opaque(
        aten._prelu_kernel_backward, MATRIX, MATRIX, (1, 4),
        wanted=lambda g, x, w: (torch.where(x > 0, g, g * w), torch.where(x > 0, 0.0, g * x))),
    "_softmax": opaque(lambda x: aten._softmax(x, 1, False), MATRIX,
                       wanted=lambda x: x.exp() / x.exp().sum(1, keepdim=True)),
    "adaptive_avg_pool2d": opaque(lambda x: F.adaptive_avg_pool2d(x, 1), (2, 3, 4, 5),
                                  wanted=lambda x: x.mean((2, 3), keepdim=True)),
    "add": opaque(lambda x, y: torch.add(x, y, alpha=2), MATRIX, MATRIX,
                  wanted=lambda x, y: x + 2 * y),
    "add_": opaque(lambda x, y: (x * 1).add_(y), MATRIX, MATRIX, wanted=lambda x, y: x + y),
    "avg_pool2d": opaque(lambda x: F.avg_pool2d(x, 4), (2, 3, 4, 4),
                         wanted=lambda x: x.mean((2, 3), keepdim=True)),
    "avg_pool2d_backward": avg_pool_backward(2),
    "avg_pool3d": opaque(lambda x: F.avg_pool3d(x, 2), (2, 3, 2, 2, 2),
                         wanted=lambda x: x.mean((2, 3, 4), keepdim=True)),
    "avg_pool3d_backward": avg_pool_backward(3),
    "batch_norm_backward": opaque(batch_norm_backward, (4, 3, 5), (4, 3, 5), (3,), wanted=by_hand),
    "copy_": opaque(lambda x, y: (x * 1).copy_(y), MATRIX, MATRIX, wanted=lambda x, y: y * 1),
    "empty": opaque(made_empty, MATRIX, wanted=lambda x: x * 1),
    "gelu": opaque(F.gelu, MATRIX, wanted=lambda x: x * (1 + torch.erf(x / 2**0.5)) / 2),
    "gelu_backward": opaque(aten.gelu_backward, MATRIX, MATRIX, wanted=lambda g, x: g * (
        (1 + torch.erf(x / 2**0.5)) / 2 + x * (-x * x / 2).exp() / (2 * torch.pi) ** 0.5)),
    "mkldnn_adaptive_avg_pool2d_backward": opaque(
        aten.mkldnn_adaptive_avg_pool2d_backward, (2, 3, 2, 2), (2, 3, 4, 4),
        wanted=lambda g, x: _spread(g, 2) / 4 + 0 * x),
    "mkldnn_linear_backward": opaque(
        lambda x, g, w: aten.mkldnn_linear_backward(x, g, w, [True] * 3), MATRIX, (3, 5), (5, 4),
        wanted=lambda x, g, w: (g @ w, g.t() @ x, g.sum(0))),
    "mkldnn_linear_backward_input": opaque(
        lambda g, w: aten.mkldnn_linear_backward_input([3, 4], g, w), (3, 5), (5, 4),
        wanted=torch.mm),
    "mkldnn_linear_backward_weights": opaque(
        lambda g, x, w: aten.mkldnn_linear_backward_weights(g, x, w, True), (3, 5), MATRIX, (5, 4),
        wanted=lambda g, x, w: (g.t() @ x + 0 * w, g.sum(0))),
    "mkldnn_max_pool2d_backward": max_pool_backward(2),
    "mkldnn_max_pool3d_backward": max_pool_backward(3),
    "mkldnn_reorder_conv2d_weight": opaque(aten.mkldnn_reorder_conv2d_weight, (3, 2, 2, 2),
                                           wanted=lambda w: w * 1),
    "mkldnn_reorder_conv3d_weight": opaque(aten.mkldnn_reorder_conv3d_weight, (3, 2, 2, 2, 1),
                                           wanted=lambda w: w * 1),
    "mul": opaque(torch.mul, MATRIX, MATRIX),
    "mul_": opaque(lambda x, y: (x * 1).mul_(y), MATRIX, MATRIX, wanted=torch.mul),
    "native_batch_norm": normed("native_batch_norm"),
    "native_batch_norm_backward": opaque(native_batch_norm_backward, (4, 3, 5), (4, 3, 5), (3,),
                                         wanted=by_hand),
    "relu_": opaque(lambda x: (x * 1).relu_(), MATRIX, wanted=lambda x: x.clamp(min=0)),
    "sigmoid": opaque(torch.sigmoid, MATRIX, wanted=lambda x: 1 / (1 + (-x).exp())),
    "sigmoid_": opaque(lambda x: (x * 1).sigmoid_(), MATRIX, wanted=lambda x: 1 / (1 + (-x).exp())),
    "tanh_": opaque(lambda x: (x * 1).tanh_(), MATRIX, wanted=lambda x: x.sinh() / x.cosh()),
    "threshold_backward": opaque(lambda g, x: aten.threshold_backward(g, x, 0.1), MATRIX, MATRIX,
                                 wanted=lambda g, x: torch.where(x > 0.1, g, 0.0)),
    "zero_": opaque(lambda x: (x * 1).zero_() + x, MATRIX, wanted=lambda x: x * 1),
}
PROGRAMS = VENDOR | {f"mkldnn layout {name}": program for name, program in OPAQUE.items()}
