"""Attention with scores and masks that are Python functions.

A `mask_mod(b, h, q, kv)` says which keys a query sees, a `score_mod(score, b, h, q, kv)` changes
scores; both take single indices and are mapped over all of them with `vmap`.  The scores are
computed whole; a `BlockMask` also counts the blocks that are empty or full, as programs ask for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ... import errors
from ...core.handle import Tensor
from ...func import vmap
from ...table.packets import ops

__all__ = ["AuxOutput", "AuxRequest", "BlockMask", "and_masks", "create_block_mask", "create_mask",
           "flex_attention", "noop_mask", "or_masks"]

_DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxRequest(NamedTuple):
    """What else `flex_attention` is to return."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What else it returned."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch, head, token_q, token_kv):
    """Every query sees every key."""
    return batch.new_ones((), dtype="bool")


def _identity(score, batch, head, token_q, token_kv):
    return score


def and_masks(*mask_mods: Callable) -> Callable:
    """A key is seen if all say so."""
    return _joined(mask_mods, ops.logical_and, True)


def or_masks(*mask_mods: Callable) -> Callable:
    """A key is seen if one says so."""
    return _joined(mask_mods, ops.logical_or, False)


def _joined(mask_mods: tuple, join: Callable, start: bool) -> Callable:
    if not all(map(callable, mask_mods)):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def mask(b, h, q, kv):
        result = b.new_full((), start, dtype="bool")
        for mod in mask_mods:
            result = join(result, mod(b, h, q, kv))
        return result

    return mask


def _everywhere(function: Callable, shape: tuple, device, *scores: Tensor,
                batch: Tensor | None = None) -> Tensor:
    """A function of single indices, at all of them."""
    indices = [ops.arange(n, device=device) for n in shape]
    indices[0] = indices[0] if batch is None else batch
    front = (0,) * len(scores)
    for place in (3, 2, 1, 0):
        dims = tuple(0 if k == place else None for k in range(4))
        function = vmap(function, in_dims=(*front, *dims))
    return function(*scores, *indices)


def create_mask(mod_fn: Callable, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
                device: Any = "cpu") -> Tensor:
    """The dense mask of a `mask_mod`, or the dense bias of a `score_mod` (five arguments)."""
    shape = (B or 1, H or 1, Q_LEN, KV_LEN)
    if mod_fn.__code__.co_argcount == 5 if hasattr(mod_fn, "__code__") else False:
        bias = _everywhere(mod_fn, shape, device, ops.zeros(shape, device=device))
        return bias != -math.inf
    return _everywhere(mod_fn, shape, device).expand(shape)


class BlockMask:
    """A mask function, and which blocks of queries and keys it leaves empty, partial or full."""

    def __init__(self, mask_mod: Callable, seq_lengths: tuple[int, int],
                 block_size: tuple[int, int], partial: Tensor, full: Tensor) -> None:
        self.mask_mod, self.seq_lengths, self.BLOCK_SIZE = mask_mod, seq_lengths, block_size
        self._partial, self._full = partial, full  # per block of queries and of keys
        self.kv_num_blocks, self.kv_indices = _ordered(partial)
        self.full_kv_num_blocks, self.full_kv_indices = _ordered(full)
        self.q_num_blocks, self.q_indices = _ordered(partial.transpose(-1, -2))
        self.full_q_num_blocks, self.full_q_indices = _ordered(full.transpose(-1, -2))

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self._partial.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """How many pairs of a query and a key there are."""
        return math.prod(self.shape)

    def to_dense(self) -> Tensor:
        """One where a block is not empty."""
        return (self._partial | self._full).to("int32")

    def sparsity(self) -> float:
        """Which part of all pairs lies in empty blocks, in percent."""
        seen = int(self.to_dense().sum()) * math.prod(self.BLOCK_SIZE)
        return 100.0 * (1 - seen / self.numel())

    def to(self, device) -> BlockMask:
        """The same on another device."""
        return BlockMask(self.mask_mod, self.seq_lengths, self.BLOCK_SIZE,
                         self._partial.to(device), self._full.to(device))

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def _ordered(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """How many blocks of each row are set, and their places first."""
    flags = blocks.to("int32")
    order = ops.argsort(flags, stable=True, dim=-1, descending=True)
    return flags.sum(-1, dtype="int32"), order.to("int32")


def create_block_mask(mask_mod: Callable, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
                      device: Any = None, BLOCK_SIZE: int | tuple[int, int] = 128,
                      _compile: bool = False) -> BlockMask:
    """The mask of a function; `B` or `H` None: the same for all."""
    block = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, "cpu" if device is None else device)
    rows, columns = (-(-n // b) for n, b in zip((Q_LEN, KV_LEN), block, strict=True))
    padding = [0, columns * block[1] - KV_LEN, 0, rows * block[0] - Q_LEN]
    tiles = ops.constant_pad_nd(mask, padding, False).reshape(
        *mask.shape[:2], rows, block[0], columns, block[1])
    count = tiles.sum((-3, -1))
    full = count == block[0] * block[1]
    return BlockMask(mask_mod, (Q_LEN, KV_LEN), block, (count > 0) & ~full, full)


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: dict | None = None,
    *,
    return_aux: AuxRequest | None = None,
):
    """Attention of (batch, head, token, feature) tensors; a query that sees nothing gets zeros.

    The tokens may be the ragged dim of nested tensors: indices are those in the sequence.
    """
    if {query.ndim, key.ndim, value.ndim} != {4}:
        raise errors.ShapeError(
            "flex_attention: query, key and value must have 4 dimensions, got "
            f"{query.ndim}, {key.ndim} and {value.ndim}")
    if query.shape[1] != key.shape[1] and (
            not enable_gqa or query.shape[1] % key.shape[1]):
        raise errors.ShapeError(
            f"flex_attention: {query.shape[1]} heads of queries and {key.shape[1]} of keys; "
            "enable_gqa=True lets groups of queries share them")
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    score_mod = None if score_mod is _identity else score_mod
    mask_mod = None if block_mask is None else block_mask.mask_mod
    if query.is_nested or key.is_nested or value.is_nested:
        from ...nested.flex import attend_nested

        found = attend_nested(attend, query, key, value, score_mod, mask_mod, scale)
    else:
        found = attend(query, key, value, score_mod, mask_mod, scale)
    out, lse, highest = found
    if return_aux is not None:
        return out, AuxOutput(lse if return_aux.lse else None,
                              highest if return_aux.max_scores else None)
    return (out, lse) if return_lse else out


def attend(query: Tensor, key: Tensor, value: Tensor, score_mod: Callable | None,
           mask_mod: Callable | None, scale: float, batch: Tensor | None = None,
           inside: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """The results, the logarithms of the sums, and the highest scores.

    `batch`: the numbers of the rows, for the functions; `inside`: which keys there are.
    """
    groups = query.shape[1] // key.shape[1]
    if groups != 1:
        key, value = (t.repeat_interleave(groups, 1) for t in (key, value))
    kind = "float64" if query.dtype.name == "float64" else "float32"
    scores = (query.to(kind) @ key.to(kind).transpose(-2, -1)) * scale
    shape = tuple(scores.shape)
    if score_mod is not None:
        scores = _everywhere(score_mod, shape, query.device, scores, batch=batch).to(kind)
    if mask_mod is not None:
        seen = _everywhere(mask_mod, shape, query.device, batch=batch)
        scores = scores.masked_fill(~seen, -math.inf)
    if inside is not None:
        scores = scores.masked_fill(~inside, -math.inf)
    top = scores.detach().amax(-1, keepdim=True)
    top = top.masked_fill(top == -math.inf, 0.0)
    weights = (scores - top).exp()
    total = weights.sum(-1, keepdim=True)
    out = (weights / total.masked_fill(total == 0, 1.0)).to(query.dtype) @ value
    return out, (total.log() + top).squeeze(-1), scores.amax(-1)
