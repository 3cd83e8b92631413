"""Modules of normalisation over batches, instances, layers, groups and neighbouring channels."""

from __future__ import annotations

from ..array import dtype as dt
from ..core.handle import Tensor
from ..table.packets import ops
from . import functional as F
from . import init
from .module import Module
from .shared import new, sizes


def _unit(module: Module) -> None:
    """Scale one, shift zero."""
    if module.weight is not None:
        init.ones_(module.weight)
    if getattr(module, "bias", None) is not None:
        init.zeros_(module.bias)


class _NormBase(Module):
    """Parameters and running statistics per channel."""

    _version = 2  # 1 had no num_batches_tracked
    _version = 2  # 2: checkpoints have num_batches_tracked
    ranks: tuple[int, ...] = ()  # numbers of dims that an input may have
    words = ""  # the same in words

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
                 affine: bool = True, track_running_stats: bool = True, device=None, dtype=None,
                 *, bias: bool = True) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        for name, given in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, new((num_features,), device, dtype) if given else None)
        kept = {"running_mean": None, "running_var": None, "num_batches_tracked": None}
        if track_running_stats:
            kept["running_mean"] = ops.zeros([num_features], device=device, dtype=dtype)
            kept["running_var"] = ops.ones([num_features], device=device, dtype=dtype)
            kept["num_batches_tracked"] = ops.zeros([], dtype=dt.int64, device=device)
        for name, value in kept.items():
            self.register_buffer(name, value)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Mean zero, variance one, nothing seen."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Scale one, shift zero, fresh statistics."""
        self.reset_running_stats()
        _unit(self)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in self.ranks:
            raise ValueError(f"expected {self.words} input (got {input.ndim}D input)")

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict,
                              *rest) -> None:
        key, version = f"{prefix}num_batches_tracked", local_metadata.get("version")
        if self.track_running_stats and (version is None or version < 2):
            count = self.num_batches_tracked
            if count is None or count.device.type == "meta":
                count = ops.zeros([], dtype=dt.int64)
            state_dict.setdefault(key, count)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def extra_repr(self) -> str:
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
                f"affine={self.affine}, bias={self.bias is not None}, "
                f"track_running_stats={self.track_running_stats}")


class _BatchNorm(_NormBase):
    """Zero mean and unit variance of each channel over the batch."""

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        share = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # a plain mean over all batches
                share = 1.0 / float(self.num_batches_tracked)
        measured = self.training or (self.running_mean is None and self.running_var is None)
        kept = not self.training or self.track_running_stats
        return F.batch_norm(input, self.running_mean if kept else None,
                            self.running_var if kept else None, self.weight, self.bias, measured,
                            share, self.eps)


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of (N, C) or (N, C, L)."""

    ranks, words = (2, 3), "2D or 3D"


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of (N, C, H, W)."""

    ranks, words = (4,), "4D"


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of (N, C, D, H, W)."""

    ranks, words = (5,), "5D"


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation over all processes; here there is one, so it is that of the batch."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
                 affine: bool = True, track_running_stats: bool = True, process_group=None,
                 device=None, dtype=None, *, bias: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype,
                         bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError(f"expected at least 2D input (got {input.ndim}D input)")

    def _check_non_zero_input_channels(self, input: Tensor) -> None:
        if input.shape[1] == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        self._check_non_zero_input_channels(input)
        return super().forward(input)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group=None) -> Module:
        """A module whose batch normalisations are replaced by this one, parameters shared."""
        converted = module
        if isinstance(module, _BatchNorm):
            converted = cls(module.num_features, module.eps, module.momentum, module.affine,
                            module.track_running_stats, process_group,
                            bias=module.bias is not None)
            for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
                setattr(converted, name, getattr(module, name))
            converted.training = module.training
            if hasattr(module, "qconfig"):
                converted.qconfig = module.qconfig
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted


class _InstanceNorm(_NormBase):
    """Zero mean and unit variance of each channel of each example."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1,
                 affine: bool = False, track_running_stats: bool = False, device=None, dtype=None,
                 *, bias: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype,
                         bias=bias)

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict,
                              *rest) -> None:
        found = [prefix + name for name in ("running_mean", "running_var")
                 if prefix + name in state_dict]
        if found and not self.track_running_stats and local_metadata.get("version") is None:
            *_, problems = rest
            names, kind = " and ".join(f'"{key}"' for key in found), self._get_name()
            problems.append(f"Unexpected running stats buffer(s) {names} for {kind} with "
                            "track_running_stats=False. Remove these keys from the checkpoint, or "
                            f"make the {kind} with track_running_stats=True.")
            for key in found:
                state_dict.pop(key)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        single = input.ndim == self.ranks[0]
        channels = input.shape[0 if single else 1]
        if channels != self.num_features and self.affine:
            raise ValueError(f"expected input's size at dim={0 if single else 1} to match "
                             f"num_features ({self.num_features}), but got: {channels}.")
        out = F.instance_norm(
            input.unsqueeze(0) if single else input, self.running_mean, self.running_var,
            self.weight, self.bias, self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum, self.eps)
        return out.squeeze(0) if single else out


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of (N, C, L) or (C, L)."""

    ranks, words = (2, 3), "2D or 3D"


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of (N, C, H, W) or (C, H, W)."""

    ranks, words = (3, 4), "3D or 4D"


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of (N, C, D, H, W) or (C, D, H, W)."""

    ranks, words = (4, 5), "4D or 5D"


class _Scaling(Module):
    """A normalisation followed by a learned scale, and a shift if it has a bias."""

    def reset_parameters(self) -> None:
        """Scale one, shift zero."""
        _unit(self)


class GroupNorm(_Scaling):
    """Zero mean and unit variance of each group of channels."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True,
                 device=None, dtype=None, *, bias: bool = True) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups "
                             f"({num_groups})")
        self.num_groups, self.num_channels = num_groups, num_channels
        self.eps, self.affine = eps, affine
        for name, given in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, new((num_channels,), device, dtype) if given else None)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
                f"bias={self.bias is not None}")


class LocalResponseNorm(Module):
    """Division by a power of the mean square of neighbouring channels."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(Module):
    """`LocalResponseNorm` of (N, C, H, W) with a centred window.

    As in PyTorch the square of channel 0 stays in the sum when the window has left it behind.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.ndim}D instead.")
        reach = int((self.size - 1) / 2)  # channels on either side
        squares = F.pad(input * input, [0, 0, 0, 0, reach, reach])
        total = squares.unfold(1, 2 * reach + 1, 1).sum(-1)
        if input.shape[1] > reach + 1:
            first = squares[:, reach:reach + 1]
            total = ops.cat([total[:, :reach + 1], total[:, reach + 1:] + first], 1)
        return input * (total * (self.alpha / self.size) + self.k) ** -self.beta

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class _LastDims(_Scaling):
    """A normalisation over the last dims."""

    normalized_shape: tuple
    eps: float | None
    elementwise_affine: bool

    def extra_repr(self) -> str:
        return (f"{self.normalized_shape}, eps={self.eps}, "
                f"elementwise_affine={self.elementwise_affine}")


class LayerNorm(_LastDims):
    """Zero mean and unit variance over the last dims, then scale and shift."""

    def __init__(self, normalized_shape, eps: float = 1e-5, elementwise_affine: bool = True,
                 bias: bool = True, device=None, dtype=None) -> None:
        super().__init__()
        self.normalized_shape = sizes(normalized_shape, 1)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.register_parameter("weight", None)
        self.register_parameter("bias", None)
        if elementwise_affine:
            self.weight = new(self.normalized_shape, device, dtype)
            if bias:
                self.bias = new(self.normalized_shape, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, bias={self.bias is not None}"


class RMSNorm(_LastDims):
    """Division by the root mean square over the last dims, then scale."""

    def __init__(self, normalized_shape, eps: float | None = None,
                 elementwise_affine: bool = True, device=None, dtype=None) -> None:
        super().__init__()
        self.normalized_shape = sizes(normalized_shape, 1)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.register_parameter("weight", None)
        if elementwise_affine:
            self.weight = new(self.normalized_shape, device, dtype)
        self.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)
