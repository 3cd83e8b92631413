"""Weights that quantised layers hold: integers with their scales, and a bias in single precision.

`ops.quantized.linear_prepack(weight, bias)` makes one, `linear_unpack` takes it apart, and
`linear_dynamic` and relatives use it.  Read next: `products.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import errors
from ..array import dtype as dt
from ..core.handle import Box, Tensor
from .tensor import QuantizedTensor, unpacked


class Packed:
    """A weight and a bias; equal by identity, copied and pickled as the two."""

    def __init__(self, weight: Tensor, bias: Tensor | None):
        self._weight, self._bias = weight, bias

    def unpack(self) -> tuple[Tensor, Tensor | None]:
        """(weight, bias)."""
        return self._weight, self._bias

    def weight(self) -> Tensor:
        """The weight."""
        return self._weight

    def bias(self) -> Tensor | None:
        """The bias, if there is one."""
        return self._bias

    @property
    def sums(self) -> Tensor:
        """The sums of the integers of the rows of the weight."""
        def find() -> Tensor:
            integers = unpacked(self._weight)
            return integers.reshape(integers.shape[0], -1).sum(1, dtype=dt.int32)

        return self.once("_sums", find)

    def once(self, name: str, find: Callable[[], Tensor]) -> Tensor:
        """What follows from the weight, found once; what a capture finds ends with it."""
        found = self.__dict__.get(name)
        if found is None:
            found = find()
            if not isinstance(found._payload, Box):
                self.__dict__[name] = found
        return found

    def __getstate__(self) -> dict:
        return {k: v for k, v in self.__dict__.items() if k not in ("_sums", "_rows")}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.unpack()})"


class LinearPackedParamsBase(Packed):
    """The weight of a linear layer in 8 bits."""


class LinearHalfParams(Packed):
    """The weight of a linear layer in half precision; products are in single precision."""

    def __init__(self, weight: Tensor, bias: Tensor | None):
        limit = 65504.0
        super().__init__(weight.detach().clamp(-limit, limit).to(dt.float16), bias)

    def unpack(self) -> tuple[Tensor, Tensor | None]:
        return self._weight.to(dt.float32), self._bias


class ConvPackedParamsBase(Packed):
    """The weight of a convolution in 8 bits, and how it is moved over its input."""

    def __init__(self, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any,
                 dilation: Any, groups: int, transposed: bool = False,
                 output_padding: Any = None):
        super().__init__(weight, bias)
        n = weight.ndim - 2
        self._stride, self._padding, self._dilation = (
            [int(v) for v in given] for given in (stride, padding, dilation))
        self._groups, self._transposed = groups, transposed
        self._output_padding = [int(v) for v in output_padding or [0] * n]

    def stride(self) -> list[int]:
        """Steps over the input."""
        return self._stride

    def padding(self) -> list[int]:
        """What is put around the input."""
        return self._padding

    def output_padding(self) -> list[int]:
        """What is put behind the output."""
        return self._output_padding

    def dilation(self) -> list[int]:
        """Steps between elements of the weight."""
        return self._dilation

    def groups(self) -> int:
        """How many parts the channels are divided into."""
        return self._groups

    def transpose(self) -> bool:
        """Is it transposed?"""
        return self._transposed


class EmbeddingPackedParamsBase(Packed):
    """Rows of an embedding in 8 or 4 bits, each with a scale and a zero point."""

    def __init__(self, weight: QuantizedTensor):
        super().__init__(weight, None)

    def unpack(self) -> Tensor:  # type: ignore[override]
        return self._weight

    embeddingbag_unpack = unpack

    @property
    def rows(self) -> Tensor:
        """The integers of the rows, one by one."""
        return self.once("_rows", lambda: unpacked(self._weight).reshape(self._weight.shape))


class ScriptObject:
    """What stands for a packed weight in whole models that PyTorch has pickled: it becomes one."""

    def __setstate__(self, state: tuple) -> None:
        held, kind = state
        maker = _unpickled.get(kind.rpartition(".")[2])
        if maker is None:
            raise errors.FileFormatError(errors.text(
                f"the file holds an object of TorchScript, {kind} ({errors.user_line(3)})",
                cure="save a state_dict() of the model with PyTorch, and load that"))
        made = maker(held)
        self.__class__ = type(made)
        self.__dict__.update(made.__dict__)


def _linear_of_file(held: tuple) -> Packed:
    weight, bias = held
    plain = not isinstance(weight, QuantizedTensor)
    return (LinearHalfParams if plain else LinearPackedParamsBase)(weight, bias)


def _cell_of_file(held: tuple) -> Any:
    from .recurrent import CellParamsBase

    of_input, of_state = held[4][:2]
    return CellParamsBase(of_input, of_state, bool(held[3] and held[3][-1]))


_unpickled = {"LinearPackedParamsBase": _linear_of_file, "CellParamsBase": _cell_of_file,
              "EmbeddingPackedParamsBase": lambda held: EmbeddingPackedParamsBase(held[1][0])}


def _checked_weight(weight: Any, name: str) -> QuantizedTensor:
    if not isinstance(weight, QuantizedTensor) or weight.kind.name != "qint8":
        raise errors.DTypeError(errors.text(
            f"{name}: the weight must be quantised to qint8 ({errors.user_line(4)})",
            f"weight: {getattr(weight, 'dtype', type(weight).__name__)}",
            "torch.quantize_per_tensor(weight, scale, zero_point, torch.qint8)"))
    if weight.axis > 0:
        raise errors.RefusedValue(
            f"{name}: the scales of the weight belong to dim {weight.axis}, expected 0 "
            f"({errors.user_line(4)})")
    return weight


def linear_weight(weight: Tensor, bias: Tensor | None) -> LinearPackedParamsBase:
    """A weight of 8 bits for linear layers."""
    weight = _checked_weight(weight, "linear_prepack")
    if weight.ndim != 2:
        raise errors.ShapeError(
            f"linear_prepack: the weight must be a matrix, got {list(weight.shape)} "
            f"({errors.user_line(3)})")
    if bias is not None and tuple(bias.shape) != (weight.shape[0],):
        raise errors.ShapeError(
            f"linear_prepack: bias should have K elements: {weight.shape[0]}, got "
            f"{list(bias.shape)} ({errors.user_line(3)})")
    return LinearPackedParamsBase(weight, bias)


def conv_weight(dims: int, transposed: bool = False) -> Any:
    """The function that packs weights of convolutions over so many dims."""
    name = f"conv{'_transpose' * transposed}{dims}d_prepack"

    def pack(weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, *rest: Any):
        if not isinstance(weight, QuantizedTensor):
            _checked_weight(weight, name)
        if weight.ndim != dims + 2:
            raise errors.ShapeError(
                f"{name}: the weight must have {dims + 2} dims, got {list(weight.shape)} "
                f"({errors.user_line(2)})")
        output_padding, dilation, groups = rest if transposed else (None, *rest)
        if not transposed:
            _checked_weight(weight, name)
        return ConvPackedParamsBase(weight, bias, stride, padding, dilation, groups, transposed,
                                    output_padding)

    pack.__name__ = name
    what = f"{'transposed ' * transposed}convolutions over {dims} dims"
    pack.__doc__ = f"A weight of 8 bits for {what}."
    return pack


def embedding_weight(weight: QuantizedTensor) -> EmbeddingPackedParamsBase:
    """Rows of an embedding for look-ups."""
    if not isinstance(weight, QuantizedTensor) or weight.axis != 0:
        raise errors.DTypeError(errors.text(
            f"embedding_bag_prepack: expected a weight with a scale for each row "
            f"({errors.user_line(2)})",
            cure="torch.quantize_per_channel(weight, scales, zero_points, 0, torch.quint8)"))
    return EmbeddingPackedParamsBase(weight)


