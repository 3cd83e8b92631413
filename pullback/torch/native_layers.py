"""Functions of PyTorch's `torch._C._nn` that `nn.functional` does not have, or not with `out=`."""

from ..table.packets import ops

elu, hardsigmoid, hardswish, hardtanh = ops.elu, ops.hardsigmoid, ops.hardswish, ops.hardtanh
leaky_relu, mish, silu = ops.leaky_relu, ops.mish, ops.silu
mkldnn_linear = ops.mkldnn_linear
mkldnn_reorder_conv2d_weight = ops.mkldnn_reorder_conv2d_weight
mkldnn_reorder_conv3d_weight = ops.mkldnn_reorder_conv3d_weight
