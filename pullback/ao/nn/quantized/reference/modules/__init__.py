"""Layers whose weight is rounded as integers would, at every call."""

from __future__ import annotations

from typing import Any, ClassVar

from ...... import nn
from ......array import dtype as dt
from ......core.handle import Tensor
from ......creation import as_tensor
from ......quantized.construct import quantize_per_channel, quantize_per_tensor


class _Reference(nn.Module):
    """A layer with a weight, and the scale with which it is rounded."""

    _plain: ClassVar[type]
    weight: Any
    weight_scale: Any
    weight_zero_point: Any

    def _init_weight_qparams(self, weight_qparams: dict) -> None:
        self.weight_qscheme, self.weight_dtype = weight_qparams["qscheme"], weight_qparams["dtype"]
        self.weight_axis_int = weight_qparams.get("axis", 0)
        for name in ("scale", "zero_point"):
            self.register_buffer(f"weight_{name}", as_tensor(weight_qparams[name]).detach().clone())

    def get_quantized_weight(self) -> Tensor:
        """The weight in integers."""
        scale, zero_point = self.weight_scale, self.weight_zero_point
        if self.weight_qscheme.name.startswith("per_tensor"):
            return quantize_per_tensor(self.weight.detach(), float(scale), int(zero_point),
                                       self.weight_dtype)
        floating = self.weight_qscheme.name.endswith("float_qparams")
        wide, whole = (dt.float32, dt.float32) if floating else (dt.float64, dt.int64)
        return quantize_per_channel(self.weight.detach(), scale.to(wide), zero_point.to(whole),
                                    self.weight_axis_int, self.weight_dtype)

    def get_weight(self) -> Tensor:
        """The numbers that the rounded weight stands for."""
        return self.get_quantized_weight().dequantize()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the layer itself does, with the rounded weight."""
        plain: Any = self._plain.__new__(self._plain)
        plain.__dict__.update(self.__dict__)
        plain._parameters = self._parameters | {"weight": self.get_weight()}
        return plain.forward(*args, **kwargs)

    def _get_name(self) -> str:
        return f"Quantized{self._plain.__name__}(Reference)"


def _reference(plain: type) -> Any:
    doc = f"`nn.{plain.__name__}` with a weight that is rounded at every call."
    return type(plain.__name__, (_Reference, plain), {
        "_plain": plain, "__doc__": doc, "__module__": __name__, "__qualname__": plain.__name__})


Linear = _reference(nn.Linear)
Conv1d, Conv2d, Conv3d = map(_reference, (nn.Conv1d, nn.Conv2d, nn.Conv3d))
ConvTranspose1d, ConvTranspose2d, ConvTranspose3d = map(
    _reference, (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d))
Embedding, EmbeddingBag = map(_reference, (nn.Embedding, nn.EmbeddingBag))
_ALL = (Linear, Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d,
        Embedding, EmbeddingBag)


def referenced(module: nn.Module, observer: Any, look: bool) -> nn.Module | None:
    """What says in numbers what a quantised layer would do; None if there is none of its class.

    `look`: has the observer not seen the weight yet?
    """
    cls = next((c for c in _ALL if c._plain is type(module)), None)
    if cls is None:
        return None
    if look:
        observer(module.weight)
    scale, zero_point = observer.calculate_qparams()
    new = cls.__new__(cls)
    new.__dict__.update(module.__dict__)
    new._parameters, new._buffers = dict(module._parameters), dict(module._buffers)
    new._init_weight_qparams({
        "qscheme": observer.qscheme, "dtype": observer.dtype, "scale": scale,
        "zero_point": zero_point, "axis": getattr(observer, "ch_axis", 0)})
    return new


__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
           "Embedding", "EmbeddingBag", "Linear", "referenced"]
