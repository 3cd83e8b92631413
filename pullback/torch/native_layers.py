"""Functions of PyTorch's `torch._C._nn` that `nn.functional` does not have."""

from ..table.packets import ops

mkldnn_linear = ops.mkldnn_linear
mkldnn_reorder_conv2d_weight = ops.mkldnn_reorder_conv2d_weight
mkldnn_reorder_conv3d_weight = ops.mkldnn_reorder_conv3d_weight
