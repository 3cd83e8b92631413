"""`to_mkldnn`: a module whose layers are those of oneDNN, for inference.

Weights become buffers and layers call the operators of `ops/vendor_layers.py`, so that they are the
same numbers as before; batch normalisation takes its running statistics.  Tensors have no layout of
oneDNN's own here: the layers take and give ordinary ones.
"""

from __future__ import annotations

from .. import nn
from ..array import dtype as dt
from ..errors import LayerRefused, text, user_line
from ..table.packets import ops

_DTYPES = (dt.float32, dt.bfloat16, dt.float16)


class _Fixed(nn.Module):
    """A layer with buffers in place of parameters."""

    def __init__(self, dense_module, *names: str, dtype=None):
        super().__init__()
        for name in names:
            value = getattr(dense_module, name)
            if value is None:  # a bias that there is not: zeros, one for each row of the weight
                value = dense_module.weight.new_zeros(dense_module.weight.shape[0])
            wanted = dtype if name == "weight" else None
            self.register_buffer(name, value.detach().to_mkldnn(wanted))


class MkldnnLinear(_Fixed):
    """A linear layer."""

    def __init__(self, dense_module, dtype):
        super().__init__(dense_module, "weight", "bias", dtype=dtype)

    def forward(self, x):
        """The linear map of `x`."""
        return ops.mkldnn_linear(x, self.weight, self.bias)


class _MkldnnConvNd(_Fixed):
    """A convolution with zeros around its input."""

    def __init__(self, dense_module, dtype):
        padding = dense_module.padding
        if isinstance(padding, str) or dense_module.padding_mode != "zeros":
            raise LayerRefused(text(
                f"to_mkldnn() takes convolutions whose padding is zeros in numbers "
                f"({user_line(2)})", f"padding: {padding!r}, {dense_module.padding_mode}",
                "pad before the layer: nn.functional.pad"))
        super().__init__(dense_module, "weight", "bias", dtype=dtype)
        self.padding, self.stride = padding, dense_module.stride
        self.dilation, self.groups = dense_module.dilation, dense_module.groups

    def forward(self, x):
        """The convolution of `x`."""
        return ops.mkldnn_convolution(x, self.weight, self.bias, self.padding, self.stride,
                                      self.dilation, self.groups)


class MkldnnConv1d(_MkldnnConvNd):
    """A convolution over one dim."""


class MkldnnConv2d(_MkldnnConvNd):
    """A convolution over two dims."""


class MkldnnConv3d(_MkldnnConvNd):
    """A convolution over three dims."""


class MkldnnBatchNorm(_Fixed):
    """Batch normalisation by running statistics; it stays in the dtype that it has."""

    def __init__(self, dense_module):
        for wrong, what in ((dense_module.training, "eval mode"),
                            (not dense_module.track_running_stats, "track_running_stats=True"),
                            (not dense_module.affine, "affine=True")):
            if wrong:
                raise LayerRefused(text(
                    f"Only support {what} batchnorm for mkldnn path now ({user_line(2)})",
                    f"module: {dense_module}", "call module.eval() before to_mkldnn(module)"
                    if what == "eval mode" else "leave the layer out"))
        super().__init__(dense_module, "weight", "bias", "running_mean", "running_var")
        self.exponential_average_factor = dense_module.momentum or 0.0
        self.eps = dense_module.eps

    def forward(self, x):
        """`x` with the mean and deviation of the running statistics."""
        return ops.batch_norm(x, self.weight, self.bias, self.running_mean, self.running_var,
                              False, self.exponential_average_factor, self.eps, False)


class MkldnnPrelu(_Fixed):
    """A relu with a learned slope below zero."""

    def __init__(self, dense_module, dtype):
        super().__init__(dense_module, "weight", dtype=dtype)

    def forward(self, x):
        """`x`, with a slope below zero."""
        return ops.prelu(x, self.weight)


_LAYERS = ((nn.Linear, MkldnnLinear), (nn.Conv1d, MkldnnConv1d), (nn.Conv2d, MkldnnConv2d),
           (nn.Conv3d, MkldnnConv3d), (nn.PReLU, MkldnnPrelu))


def _made(module, dtype):
    """What stands for one layer: itself, if oneDNN has none of its kind."""
    if isinstance(module, (nn.BatchNorm2d, nn.BatchNorm3d)):
        return MkldnnBatchNorm(module)
    for kind, made in _LAYERS:
        if isinstance(module, kind):
            return made(module, dtype)
    return module


def _replace(module, dtype):
    new = _made(module, dtype)
    for name, child in list(module.named_children()):
        setattr(new, name, _replace(child, dtype))
    return new


def to_mkldnn(module: nn.Module, dtype=dt.float32) -> nn.Module:
    """A module whose linear, convolution, batch norm and prelu layers are oneDNN's.

    Layers inside of `module` are replaced in place, as PyTorch does; the result is `module` itself
    unless it is such a layer.
    """
    if dtype not in _DTYPES:
        raise LayerRefused(text(
            f"MKLDNN only support float, bfloat16, and half path now ({user_line(2)})",
            f"dtype: {dtype}", "pass dtype=torch.float"))
    return _replace(module, dtype)
