"""Embeddings whose rows are integers of 8 or 4 bits, with a scale for every row."""

from __future__ import annotations

from typing import Any, ClassVar

from ..... import nn
from .....array import dtype as dt
from .....core.handle import Tensor
from .....quantized.construct import _empty_per_channel_affine_quantized
from .....quantized.embeddings import functions
from .....quantized.packed import embedding_weight
from .....table.packets import ops
from .utils import Shown, _quantize_weight, weight_observer

_KINDS = tuple(dt.by_name(name) for name in ("quint8", "quint4x2"))


def _empty_rows(count: int, width: int, dtype: Any) -> Tensor:
    return _empty_per_channel_affine_quantized(
        [count, width], scales=ops.ones(count), zero_points=ops.zeros(count), axis=0, dtype=dtype)


class EmbeddingPackedParams(nn.Module):
    """What holds the rows of an embedding."""

    _version = 1

    def __init__(self, num_embeddings: int, embedding_dim: int, dtype: Any = _KINDS[0]):
        super().__init__()
        if dtype not in _KINDS:
            raise NotImplementedError("Unsupported dtype on quantized embedding! Supports quint8 "
                                      f"and quint4x2. Got dtype: {dtype}")
        self.dtype = dtype
        self.set_weight(_empty_rows(num_embeddings, embedding_dim, dtype))

    def set_weight(self, weight: Tensor) -> None:
        """Hold other rows."""
        self._packed_weight = embedding_weight(weight)

    def _weight(self) -> Tensor:
        return self._packed_weight.unpack()

    def forward(self, x: Tensor) -> Tensor:
        return x

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}dtype"] = self.dtype
        destination[f"{prefix}_packed_weight"] = self._weight()

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict,
                              strict: bool, *rest: Any) -> None:
        self.dtype = state_dict.pop(f"{prefix}dtype")
        self.set_weight(state_dict.pop(f"{prefix}_packed_weight"))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *rest)

    def __repr__(self) -> str:
        return repr(self._weight())


class Embedding(Shown, nn.Module):
    """Rows of integers, which are numbers when they are looked up."""

    _version = 1
    _FLOAT_MODULE: ClassVar[Any] = nn.Embedding

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
                 max_norm: float | None = None, norm_type: float = 2.0,
                 scale_grad_by_freq: bool = False, sparse: bool = False,
                 _weight: Tensor | None = None, dtype: Any = _KINDS[0]):
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.dtype = num_embeddings, embedding_dim, dtype
        if _weight is not None and list(_weight.shape) != [num_embeddings, embedding_dim]:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        self._packed_params = EmbeddingPackedParams(num_embeddings, embedding_dim, dtype)
        if _weight is not None:
            self.set_weight(_weight)

    def forward(self, indices: Tensor) -> Tensor:
        return functions["embedding_byte"](self._packed_params._packed_weight, indices)

    def _get_name(self) -> str:
        return "QuantizedEmbedding"

    def extra_repr(self) -> str:
        return (f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, "
                f"dtype={self._packed_params.dtype}, qscheme={self.weight().qscheme()}")

    def set_weight(self, w: Tensor) -> None:
        """Hold other rows."""
        self._packed_params.set_weight(w)

    def weight(self) -> Tensor:
        """The rows."""
        return self._packed_params._weight()

    @classmethod
    def _rows(cls, mod: nn.Module) -> tuple[Tensor, Any]:
        """(the rows of a layer in integers, their dtype)."""
        from ....quantization.qconfig import float_qparams_weight_only_qconfig

        observer = getattr(mod, "weight_fake_quant", None)
        if observer is None:
            if type(mod) is not cls._FLOAT_MODULE:
                raise AssertionError(f"nnq.{cls.__name__}.from_float only works for "
                                     f"{cls._FLOAT_MODULE.__name__}")
            if not hasattr(mod, "qconfig"):
                raise AssertionError(
                    f"{cls.__name__} input float module must have qconfig defined")
            observer = weight_observer(mod, float_qparams_weight_only_qconfig.weight)
        if observer.qscheme.name != "per_channel_affine_float_qparams":
            raise AssertionError(f"{cls.__name__} quantization is only supported with "
                                 "float_qparams_weight_only_qconfig.")
        if observer.dtype not in _KINDS:
            raise AssertionError(f"The only supported dtype for nnq.{cls.__name__} is torch.quint8 "
                                 f"and torch.quint4x2, got {observer.dtype}")
        observer(mod.weight)
        return _quantize_weight(mod.weight.float(), observer), observer.dtype

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Embedding:
        """The layer that stands for one with numbers."""
        rows, dtype = cls._rows(mod)
        new = Embedding(mod.num_embeddings, mod.embedding_dim, dtype=dtype)
        new.set_weight(rows)
        return new


class EmbeddingBag(Embedding):
    """Sums of rows of integers."""

    _FLOAT_MODULE: ClassVar[Any] = nn.EmbeddingBag

    def __init__(self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None,
                 norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "sum",
                 sparse: bool = False, _weight: Tensor | None = None,
                 include_last_offset: bool = False, dtype: Any = _KINDS[0]):
        super().__init__(num_embeddings, embedding_dim, _weight=_weight, dtype=dtype)
        self.mode, self.include_last_offset, self.pruned_weights = mode, include_last_offset, False

    def forward(self, indices: Tensor, offsets: Tensor | None = None,
                per_sample_weights: Tensor | None = None,
                compressed_indices_mapping: Tensor | None = None) -> Tensor:
        return functions["embedding_bag_byte"](
            self._packed_params._packed_weight, indices, offsets, False, 0, self.pruned_weights,
            per_sample_weights, compressed_indices_mapping, self.include_last_offset)

    def _get_name(self) -> str:
        return "QuantizedEmbeddingBag"

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> EmbeddingBag:
        rows, dtype = cls._rows(mod)
        new = EmbeddingBag(
            mod.num_embeddings, mod.embedding_dim, max_norm=mod.max_norm, norm_type=mod.norm_type,
            scale_grad_by_freq=mod.scale_grad_by_freq, mode=mod.mode, sparse=mod.sparse,
            include_last_offset=mod.include_last_offset, dtype=dtype)
        new.set_weight(rows)
        return new
