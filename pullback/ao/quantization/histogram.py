"""`HistogramObserver`: the range that loses least, found in a histogram of all that was seen."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ...array import dtype as dt
from ...core.handle import Tensor
from ...creation import tensor
from ...table.packets import ops
from .observer import _AFFINE, _EPS, _QUINT8, UniformQuantizationObserverBase, is_per_tensor

_STEP = 1e-5  # by how much of the mass the range may shrink at a time


class HistogramObserver(UniformQuantizationObserverBase):
    """An observer of how often numbers occur; it leaves out what costs more than it gives."""

    histogram: Tensor
    min_val: Tensor
    max_val: Tensor
    upsample_rate = 16  # pieces of a bin when bins move

    def __init__(self, bins: int = 2048, dtype: Any = _QUINT8, qscheme: Any = _AFFINE,
                 reduce_range: bool = False, quant_min: int | None = None,
                 quant_max: int | None = None, factory_kwargs: Any = None, eps: float = _EPS,
                 is_dynamic: bool = False, **kwargs: Any):
        if not is_per_tensor(qscheme):
            raise NotImplementedError("HistogramObserver's qscheme only support "
                                      "torch.per_tensor_symmetric and torch.per_tensor_affine.")
        if is_dynamic:
            raise NotImplementedError("HistogramObserver doesn't support dynamic quantization")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps,
                         is_dynamic, **kwargs)
        self.bins = bins
        self.register_buffer("histogram", ops.zeros(bins))
        self.register_buffer("min_val", tensor(float("inf")))
        self.register_buffer("max_val", tensor(float("-inf")))
        self.dst_nbins = 2 ** (8 * dtype.itemsize)

    def forward(self, x_orig: Tensor) -> Tensor:
        x = x_orig.detach()
        if not x.numel():
            return x_orig
        low, high = ops.aminmax(x)
        if float(low) == float("-inf") or float(high) == float("inf"):
            warnings.warn("torch.inf detected in input tensor, ignoring input", stacklevel=2)
            x = x[x.abs() != float("inf")]
            if not x.numel():
                return x_orig
            low, high = ops.aminmax(x)
        if float(self.min_val) == float("inf") or float(self.max_val) == float("-inf"):
            self.reset_histogram(x, low, high)
            return x_orig
        low, high = ops.minimum(self.min_val, low), ops.maximum(self.max_val, high)
        found = ops.histc(x, self.bins, min=float(low), max=float(high))
        self.histogram.copy_(self._combined(found, low, high))
        self.min_val.copy_(low)
        self.max_val.copy_(high)
        return x_orig

    def reset_histogram(self, x: Tensor, min_val: Tensor, max_val: Tensor) -> None:
        """Begin anew with what is given."""
        self.min_val.copy_(min_val)
        self.max_val.copy_(max_val)
        self.histogram.copy_(ops.histc(x, self.bins, min=float(min_val), max=float(max_val)))

    def _combined(self, found: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """A histogram over a range with what was seen before."""
        before, after = (float(self.min_val), float(self.max_val)), (float(low), float(high))
        if before == after:
            return self.histogram + found
        if before[0] == before[1]:  # all that was seen is one number
            own = ops.histc(self.min_val, self.bins, min=after[0], max=after[1])
            return own * self.histogram.sum() + found
        return found + self._moved(before, after)

    def _moved(self, before: tuple, after: tuple) -> Tensor:
        """The histogram in the bins of a wider range: pieces of bins go where their middles are."""
        count = self.bins * self.upsample_rate
        pieces = self.histogram.repeat_interleave(self.upsample_rate) / self.upsample_rate
        size = (self.max_val - self.min_val) / count
        middles = ops.linspace(*before, count + 1)[:-1] + 0.5 * size
        edges = ops.linspace(*after, self.bins + 1)
        places = (ops.bucketize(middles, edges, right=True) - 1).clamp(0, self.bins - 1)
        return ops.bincount(places, weights=pieces, minlength=self.bins).to(dt.float32)

    def _compute_quantization_error(self, next_start_bin: int, next_end_bin: int) -> float:
        """The squared error of rounding if the range begins and ends with these bins."""
        return _error(self.histogram.numpy(), float(self.max_val) - float(self.min_val), self.bins,
                      self.dst_nbins, next_start_bin, next_end_bin)

    def _non_linear_param_search(self) -> tuple[Tensor, Tensor]:
        """The range that is left when ends were cut off for as long as the error became less."""
        mass = ops.cumsum(self.histogram, 0).numpy()
        total = float(self.histogram.sum())
        alpha, beta = 0.0, 1.0  # the shares of the mass that the range begins and ends with
        start, end, best = 0, self.bins - 1, float("inf")
        while alpha < beta:
            next_alpha, next_beta = alpha + _STEP, beta - _STEP
            left, right = start, end
            while left < end and mass[left] < np.float32(next_alpha * total):
                left += 1
            while right > start and mass[right] > np.float32(next_beta * total):
                right -= 1
            if left - start > end - right:
                new, alpha = (left, end), next_alpha
            else:
                new, beta = (start, right), next_beta
            if new == (start, end):
                continue
            error = self._compute_quantization_error(*new)
            if error > best:
                break
            best, (start, end) = error, new
        width = (self.max_val - self.min_val) / self.bins
        return self.min_val + width * start, self.min_val + width * (end + 1)

    def calculate_qparams(self, **kwargs: Any) -> tuple[Tensor, Tensor]:
        if float(self.min_val) == float("inf") and float(self.max_val) == float("-inf"):
            return self._calculate_qparams(self.min_val, self.max_val)
        return self._calculate_qparams(*self._non_linear_param_search())

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict,
                              *rest: Any) -> None:
        version = local_metadata.get("version")
        if version is None or version < 3:
            for name, value in (("min_val", "inf"), ("max_val", "-inf")):
                if prefix + name in state_dict and not state_dict[prefix + name].numel():
                    state_dict[prefix + name] = tensor(float(value))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


def _error(histogram: np.ndarray, span: float, bins: int, levels: int, start: int,
           end: int) -> float:
    """The integral of squared distances to the nearest level, numbers being even in each bin."""
    width = span / bins
    step = width * (end - start + 1) / levels
    if step == 0.0:
        return 0.0
    real = np.float32
    begins = (np.arange(bins) - start).astype(real) * real(width)
    ends = begins + real(width)
    of_begin = np.clip(np.floor_divide(begins, real(step)), 0, levels - 1)
    of_end = np.clip(np.floor_divide(ends, real(step)), 0, levels - 1)
    density = histogram / real(width)
    half = real(step / 2)

    def integral(a: Any, b: Any) -> Any:
        return density * ((b * b * b - a * a * a) / real(3))

    norm = integral(begins - (of_begin + real(0.5)) * real(step), half)
    norm = norm + (of_end - of_begin - real(1)) * integral(-half, half)
    norm = norm + integral(-half, ends - (of_end * real(step) + half))
    return float(norm.sum(dtype=real))
