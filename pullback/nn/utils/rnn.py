"""Sequences of different lengths: padded in one tensor, or packed without padding.

A `PackedSequence` holds the rows of all sequences step by step, longest sequence first, and how
many sequences each step has.  Recurrent layers take it in place of a tensor.
"""

from __future__ import annotations

from typing import NamedTuple

from ...array import dtype as dt
from ...core.handle import Tensor
from ...creation import as_tensor
from ...table.packets import ops
from .order import FEW, longest_first


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Packed):
    """Rows of sequences, the number of sequences of each step, and how they were sorted."""

    __slots__ = ()

    def __new__(cls, data: Tensor, batch_sizes: Tensor | None = None,
                sorted_indices: Tensor | None = None, unsorted_indices: Tensor | None = None):
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError("batch_sizes should always be on CPU. Instances of PackedSequence "
                             "should never be created manually. They should be instantiated by "
                             "functions like pack_sequence and pack_padded_sequence in "
                             "nn.utils.rnn.")
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args, **kwargs) -> PackedSequence:
        """Data in another dtype or on another device."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        moved = [None if i is None else i.to(data.device)
                 for i in (self.sorted_indices, self.unsorted_indices)]
        return type(self)(data, self.batch_sizes, *moved)

    def cpu(self, *args, **kwargs) -> PackedSequence:
        """Data on the host."""
        return self.to("cpu", *args, **kwargs)

    def cuda(self, device=None, **kwargs) -> PackedSequence:
        """Data on a GPU."""
        return self.to("cuda" if device is None else device, **kwargs)

    def pin_memory(self) -> PackedSequence:
        """The same: memory of the host needs no pinning here."""
        return self

    def is_pinned(self) -> bool:
        """Never."""
        return False

    @property
    def is_cuda(self) -> bool:
        """Is the data on a GPU?"""
        return self.data.device.type == "cuda"


def _conversion(dtype: dt.DType):
    def convert(self) -> PackedSequence:
        return self.to(dtype)
    convert.__doc__ = f"Data as {dtype.name}."
    return convert


for _word, _dtype in {"double": dt.float64, "float": dt.float32, "half": dt.float16,
                      "long": dt.int64, "int": dt.int32, "short": dt.int16, "char": dt.int8,
                      "byte": dt.uint8}.items():
    setattr(PackedSequence, _word, _conversion(_dtype))


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes another."""
    if permutation is None:
        return None
    places = ops.arange(permutation.numel(), device=permutation.device)
    return ops.empty_like(permutation).scatter(0, permutation, places.to(permutation.dtype))


def pack_padded_sequence(input: Tensor, lengths, batch_first: bool = False,
                         enforce_sorted: bool = True) -> PackedSequence:
    """Padded sequences without their padding; `lengths` need not be sorted if not enforced."""
    if not isinstance(lengths, Tensor):
        lengths = as_tensor(lengths, dtype=dt.int64)
    else:
        lengths = lengths.to(dt.int64)
    order = None
    if not enforce_sorted:
        if lengths.numel() > FEW:
            order = as_tensor(longest_first(lengths.tolist()))
            lengths = lengths.index_select(0, order)
        else:
            lengths, order = ops.sort(lengths, descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    data, sizes = ops._pack_padded_sequence(input, lengths, batch_first)
    return PackedSequence(data, sizes, order, None)


def pad_packed_sequence(sequence: PackedSequence, batch_first: bool = False,
                        padding_value: float = 0.0,
                        total_length: int | None = None) -> tuple[Tensor, Tensor]:
    """Packed sequences with padding again, in their original order, and their lengths."""
    longest = sequence.batch_sizes.shape[0]
    if total_length is not None and total_length < longest:
        raise ValueError("Expected total_length to be at least the length of the longest sequence "
                         f"in input, but got total_length={total_length} and max sequence length "
                         f"being {longest}")
    padded, lengths = ops._pad_packed_sequence(
        sequence.data, sequence.batch_sizes, batch_first, padding_value,
        longest if total_length is None else total_length)
    back = sequence.unsorted_indices
    if back is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, back), lengths[back.to(lengths.device)]


def pad_sequence(sequences, batch_first: bool = False, padding_value: float = 0.0,
                 padding_side: str = "right") -> Tensor:
    """Sequences of different lengths in one tensor."""
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    elif not hasattr(sequences, "__iter__"):
        raise RuntimeError("pad_sequence: Expected iterable for input sequences, but got arg of "
                           f"type: {type(sequences)}")
    return ops.pad_sequence(list(sequences), batch_first, padding_value, padding_side)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor,
                   batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded tensor, each with its own length."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [rows[:length].clone() for rows, length in
            zip(padded_sequences.unbind(0), lengths.tolist(), strict=True)]


def pack_sequence(sequences, enforce_sorted: bool = True) -> PackedSequence:
    """Sequences of different lengths, packed."""
    from ...creation import tensor
    lengths = tensor([len(v) for v in sequences], dtype=dt.int64)
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed one, in their original order."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
