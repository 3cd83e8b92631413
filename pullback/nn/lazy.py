"""Layers that find out the sizes of their inputs when they see the first one.

Their parameters are `UninitializedParameter`s (`nn/parameter.py`) up to then.  The first call gives
them their shapes, fills them as the ordinary layer does, and turns the layer into that layer.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from ..array import dtype as dt
from ..autograd.grad_mode import no_grad
from ..core.handle import Tensor
from ..table.packets import ops
from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .linear import Linear
from .normalisation import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from .parameter import UninitializedBuffer, UninitializedParameter, is_lazy


class LazyModuleMixin:
    """Put in front of a Module: `initialize_parameters(input)` is called before the first forward.

    With `cls_to_become` the module is then of that class.
    """

    cls_to_become: type[Any] | None = None

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters,
                                                               with_kwargs=True)

    def _lazy_load_hook(self, state_dict, prefix, *rest) -> None:
        """Take the shapes from a state that is loaded."""
        for name, tensor in itertools.chain(self._parameters.items(), self._buffers.items()):
            value = state_dict.get(prefix + name)
            if is_lazy(tensor) and isinstance(value, Tensor) and not is_lazy(value):
                with no_grad():
                    tensor.materialize(value.shape)

    def initialize_parameters(self, *args, **kwargs) -> None:
        """Give the parameters their shapes, which the first input tells."""
        raise NotImplementedError("initialize_parameters is not implemented for "
                                  f"{type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Is there a parameter or buffer without a shape?"""
        return any(map(is_lazy, itertools.chain(self._parameters.values(),
                                                self._buffers.values())))

    def _infer_parameters(self, module, args, kwargs=None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self):
        raise RuntimeError("Modules with uninitialized parameters can't be used with "
                           "`DataParallel`. Run a dummy forward pass to correctly initialize the "
                           "modules")


class _LazyLayer(LazyModuleMixin):
    """A lazy layer of this package: `size` is the attribute that the first input tells."""

    size: str
    _size_of: Callable[[Tensor], int]
    _shape_of: Callable[[str], tuple]  # of a parameter or buffer, by its name

    def reset_parameters(self) -> None:
        """As the ordinary layer does, once there are shapes."""
        if not self.has_uninitialized_params() and getattr(self, self.size) != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Give the parameters their shapes, which the first input tells."""
        if self.has_uninitialized_params():
            with no_grad():
                setattr(self, self.size, self._size_of(input))
                for name, tensor in itertools.chain(self._parameters.items(),
                                                    self._buffers.items()):
                    if is_lazy(tensor):
                        tensor.materialize(self._shape_of(name))
                self.reset_parameters()
        elif getattr(self, self.size) == 0:  # shapes came from a state that was loaded
            setattr(self, self.size, self._size_of(input))


class LazyLinear(_LazyLayer, Linear):
    """A `Linear` that finds out its number of inputs."""

    cls_to_become, size = Linear, "in_features"

    def __init__(self, out_features: int, bias: bool = True, device=None, dtype=None) -> None:
        super().__init__(0, 0, False)
        self.out_features = out_features
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def _size_of(self, input: Tensor) -> int:
        return input.shape[-1]

    def _shape_of(self, name: str) -> tuple:
        return (self.out_features, self.in_features) if name == "weight" else (self.out_features,)


class _LazyConvXdMixin(_LazyLayer):
    """A convolution that finds out its number of input channels."""

    size = "in_channels"

    def _start(self, out_channels: int, bias: bool, device, dtype) -> None:
        self.out_channels = out_channels
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def _size_of(self, input: Tensor) -> int:
        single = self.rank + 1
        if input.ndim not in (single, single + 1):
            raise RuntimeError(f"Expected {single}D (unbatched) or {single + 1}D (batched) input "
                               f"to {type(self).__name__}, but got input of size: {input.shape}")
        channels = input.shape[0 if input.ndim == single else 1]
        if channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        return channels

    def _shape_of(self, name: str) -> tuple:
        if name == "bias":
            return (self.out_channels,)
        ins, outs = self.in_channels, self.out_channels
        first, second = (ins, outs) if self.transposed else (outs, ins)
        return (first, second // self.groups, *self.kernel_size)


class _LazyConv(_LazyConvXdMixin):
    def __init__(self, out_channels: int, kernel_size, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1,
                 groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device=None,
                 dtype=None) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._start(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConvXdMixin):
    def __init__(self, out_channels: int, kernel_size, stride: Any = 1, padding: Any = 0,
                 output_padding: Any = 0,
                 groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros",
                 device=None, dtype=None) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False,
                         dilation, padding_mode)
        self._start(out_channels, bias, device, dtype)


class _LazyNormBase(_LazyLayer):
    """A normalisation that finds out its number of channels."""

    size = "num_features"

    def __init__(self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device=None, dtype=None) -> None:
        super().__init__(0, eps, momentum, False, False)
        self.affine, self.track_running_stats = affine, track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = ops.zeros([], dtype=dt.int64, device=device)

    def _size_of(self, input: Tensor) -> int:
        return input.shape[1]

    def _shape_of(self, name: str) -> tuple:
        return (self.num_features,)


def _lazy(kind: type, layer: type) -> type:
    """The lazy form of a layer."""
    return type(f"Lazy{layer.__name__}", (kind, layer), {
        "__doc__": f"A `{layer.__name__}` that finds out its number of input channels.",
        "__module__": __name__, "cls_to_become": layer})


LazyConv1d, LazyConv2d, LazyConv3d = (
    _lazy(_LazyConv, layer) for layer in (Conv1d, Conv2d, Conv3d))
LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d = (
    _lazy(_LazyConvTranspose, layer)
    for layer in (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d))
LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d = (
    _lazy(_LazyNormBase, layer) for layer in (BatchNorm1d, BatchNorm2d, BatchNorm3d))
LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d = (
    _lazy(_LazyNormBase, layer) for layer in (InstanceNorm1d, InstanceNorm2d, InstanceNorm3d))
