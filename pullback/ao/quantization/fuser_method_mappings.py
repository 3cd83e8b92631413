"""Which layers can be taken together, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import errors, nn
from ..nn import intrinsic as nni


def _alike(*layers: nn.Module) -> None:
    if len({layer.training for layer in layers}) > 1:
        raise AssertionError("Conv and BN both must be in the same mode (train or eval).")


def _normed(layer: nn.Module, bn: nn.Module, features: int) -> None:
    if bn.num_features != features:
        raise AssertionError("Output channel of Conv2d must match num_features of BatchNorm2d.")
    if not bn.affine or not bn.track_running_stats:
        raise AssertionError("Only support fusing BatchNorm2d with affine and "
                             "tracking_running_stats set to True")


def _dims(layer: nn.Module) -> str:
    for n in (1, 2, 3):
        if type(layer) is getattr(nn, f"Conv{n}d"):
            return f"{n}d"
    raise NotImplementedError(f"Cannot fuse modules: {layer}")


def fuse_conv_bn(is_qat: bool, conv: nn.Module, bn: nn.Module) -> nn.Module:
    """A convolution and its norm: one module for training, else one convolution."""
    _alike(conv, bn)
    if not is_qat:
        return nn.utils.fuse_conv_bn_eval(conv, bn)
    _normed(conv, bn, conv.out_channels)
    return getattr(nni, f"ConvBn{_dims(conv)}")(conv, bn)


def fuse_conv_bn_relu(is_qat: bool, conv: nn.Module, bn: nn.Module, relu: nn.Module) -> nn.Module:
    """A convolution, its norm and a rectifier as one module."""
    _alike(conv, bn, relu)
    if not is_qat:
        fused = nn.utils.fuse_conv_bn_eval(conv, bn)
        return getattr(nni, f"ConvReLU{_dims(conv)}")(fused, relu)
    _normed(conv, bn, conv.out_channels)
    return getattr(nni, f"ConvBnReLU{_dims(conv)}")(conv, bn, relu)


def fuse_linear_bn(is_qat: bool, linear: nn.Module, bn: nn.Module) -> nn.Module:
    """A linear layer and its norm."""
    _alike(linear, bn)
    if not is_qat:
        return nn.utils.fuse_linear_bn_eval(linear, bn)
    _normed(linear, bn, linear.out_features)
    return nni.LinearBn1d(linear, bn)


def fuse_convtranspose_bn(is_qat: bool, convt: nn.Module, bn: nn.Module) -> nn.Module:
    """A transposed convolution and its norm."""
    _alike(convt, bn)
    if is_qat:
        raise errors.NotInThisBuild(errors.text(
            "Fusing ConvTranspose+BatchNorm not yet supported in QAT "
            f"({errors.user_line(2)})", cure="fuse them after training"))
    return nn.utils.fuse_conv_bn_eval(convt, bn, transpose=True)


def _together(cls: Any) -> Callable:
    return lambda is_qat, a, b: cls(a, b)


_DEFAULT_OP_LIST_TO_FUSER_METHOD: dict[tuple, Callable] = {
    (nn.Linear, nn.BatchNorm1d): fuse_linear_bn,
    (nn.Linear, nn.ReLU): _together(nni.LinearReLU),
    (nn.BatchNorm2d, nn.ReLU): _together(nni.BNReLU2d),
    (nn.BatchNorm3d, nn.ReLU): _together(nni.BNReLU3d),
}
for _n in (1, 2, 3):
    _conv, _bn = getattr(nn, f"Conv{_n}d"), getattr(nn, f"BatchNorm{_n}d")
    _DEFAULT_OP_LIST_TO_FUSER_METHOD |= {
        (_conv, _bn): fuse_conv_bn, (_conv, _bn, nn.ReLU): fuse_conv_bn_relu,
        (_conv, nn.ReLU): _together(getattr(nni, f"ConvReLU{_n}d")),
        (getattr(nn, f"ConvTranspose{_n}d"), _bn): fuse_convtranspose_bn,
    }


def get_fuser_method(op_list: tuple, additional_fuser_method_mapping: dict | None = None) -> Any:
    """What takes layers of these classes together."""
    known = _DEFAULT_OP_LIST_TO_FUSER_METHOD | (additional_fuser_method_mapping or {})
    found = known.get(op_list)
    if found is None:
        raise AssertionError(f"did not find fuser method for: {op_list} ")
    return found
