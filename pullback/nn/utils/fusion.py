"""Layers with a batch normalisation behind them, as one layer, for evaluation."""

from __future__ import annotations

import copy

from ...core.handle import Tensor
from ...table.packets import ops
from ..module import Module
from ..parameter import Parameter


def _fused(weight: Tensor, bias: Tensor | None, scale: Tensor, mean: Tensor, shift: Tensor | None,
           shape: list[int]) -> tuple[Parameter, Parameter]:
    """Weight and bias of a layer whose result is shifted by `mean`, scaled, and shifted again."""
    given = ops.zeros_like(mean) if bias is None else bias
    moved = (given - mean) * scale
    moved = moved if shift is None else moved + shift
    return (Parameter((weight * scale.reshape(shape)).to(weight.dtype), weight.requires_grad),
            Parameter(moved.to((weight if bias is None else bias).dtype), given.requires_grad))


def fuse_conv_bn_weights(conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor,
                         bn_eps: float, bn_w: Tensor | None, bn_b: Tensor | None,
                         transpose: bool = False) -> tuple[Parameter, Parameter]:
    """Weight and bias of the convolution that includes a normalisation."""
    scale = ops.rsqrt(bn_rv + bn_eps)
    scale = scale if bn_w is None else bn_w * scale
    shape = ([1, -1] if transpose else [-1, 1]) + [1] * (conv_w.ndim - 2)
    return _fused(conv_w, conv_b, scale, bn_rm, bn_b, shape)


def fuse_linear_bn_weights(linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor,
                           bn_rv: Tensor, bn_eps: float, bn_w: Tensor,
                           bn_b: Tensor) -> tuple[Parameter, Parameter]:
    """Weight and bias of the linear layer that includes a normalisation."""
    return _fused(linear_w, linear_b, bn_w * ops.rsqrt(bn_rv + bn_eps), bn_rm, bn_b, [-1, 1])


def _check(layer: Module, bn: Module) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")


def fuse_conv_bn_eval(conv: Module, bn: Module, transpose: bool = False) -> Module:
    """A copy of a convolution that includes the normalisation behind it."""
    _check(conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias,
        transpose)
    return fused


def fuse_linear_bn_eval(linear: Module, bn: Module) -> Module:
    """A copy of a linear layer that includes the normalisation behind it."""
    _check(linear, bn)
    if bn.num_features not in (linear.out_features, 1):
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features "
                             f"== 1, got linear.out_features={linear.out_features} and "
                             f"bn.num_features={bn.num_features}")
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    return fused
