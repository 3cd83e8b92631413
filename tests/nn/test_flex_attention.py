"""Attention by functions: against the dense one, masks by blocks, rows that see nothing."""

import math

import pytest

import pullback as pb
from pullback import errors
from pullback.nn.attention.flex_attention import (
    AuxRequest,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    noop_mask,
    or_masks,
)
from pullback.nn.functional import scaled_dot_product_attention


def tensors(heads=4):
    pb.manual_seed(0)
    return pb.randn(2, 4, 6, 8), pb.randn(2, heads, 6, 8), pb.randn(2, heads, 6, 8)


def causal(b, h, q, kv):
    return q >= kv


def same(a, b):
    assert pb.allclose(a, b, atol=1e-6), (a - b).abs().max()


def test_masks_and_scores_agree_with_dense_attention():
    q, k, v = tensors()
    mask = create_block_mask(causal, None, None, 6, 6, BLOCK_SIZE=4)
    same(flex_attention(q, k, v), scaled_dot_product_attention(q, k, v))
    same(flex_attention(q, k, v, block_mask=mask),
         scaled_dot_product_attention(q, k, v, is_causal=True))
    bias = pb.arange(6.0)[:, None] - pb.arange(6.0)
    tilted = flex_attention(q, k, v, lambda s, b, h, i, j: s + (i - j) * 0.5, scale=0.2)
    same(tilted, scaled_dot_product_attention(q, k, v, bias * 0.5, scale=0.2))


def test_gradients_reach_what_the_functions_use():
    q, k, v = tensors()
    slope = pb.ones(4, requires_grad=True)
    out = flex_attention(q, k, v, lambda s, b, h, i, j: s - slope[h] * (i - j).abs())
    out.sum().backward()
    dense = pb.ones(4, requires_grad=True)
    away = (pb.arange(6.0)[:, None] - pb.arange(6.0)).abs()
    scaled_dot_product_attention(q, k, v, -dense[:, None, None] * away).sum().backward()
    same(slope.grad, dense.grad)


def test_shared_keys():
    q, k, v = tensors(heads=2)
    wide = (t.repeat_interleave(2, 1) for t in (k, v))
    same(flex_attention(q, k, v, enable_gqa=True), scaled_dot_product_attention(q, *wide))
    with pytest.raises(errors.ShapeError, match="enable_gqa"):
        flex_attention(q, k, v)
    with pytest.raises(errors.ShapeError, match="4 dimensions"):
        flex_attention(q[0], k[0], v[0])


def test_a_query_that_sees_nothing():
    q, k, v = (t.requires_grad_() for t in tensors())
    mask = create_block_mask(lambda b, h, i, j: i > j, None, None, 6, 6)
    out, aux = flex_attention(q, k, v, block_mask=mask, return_aux=AuxRequest(lse=True))
    assert (out[:, :, 0] == 0).all() and (aux.lse[:, :, 0] == -math.inf).all()
    assert aux.max_scores is None
    out.sum().backward()
    assert q.grad.isfinite().all() and (q.grad[:, :, 0] == 0).all()


def test_blocks():
    mask = create_block_mask(causal, 2, None, 8, 8, BLOCK_SIZE=(4, 2))
    assert mask.shape == (2, 1, 8, 8) and mask.numel() == 128
    assert mask.to_dense()[0, 0].tolist() == [[1, 1, 0, 0], [1, 1, 1, 1]]
    assert mask.kv_num_blocks[0, 0].tolist() == [2, 2]
    assert mask.full_kv_num_blocks[0, 0].tolist() == [0, 2]
    assert mask.kv_indices[0, 0].tolist() == [[0, 1, 2, 3], [2, 3, 0, 1]]
    assert mask.full_q_num_blocks[0, 0].tolist() == [1, 1, 0, 0]
    assert mask.sparsity() == 25.0


def test_joined_masks():
    near = and_masks(causal, lambda b, h, q, kv: q - kv < 2)
    assert create_mask(near, None, None, 3, 3)[0, 0].int().tolist() == [
        [1, 0, 0], [1, 1, 0], [0, 1, 1]]  # fmt: skip
    assert create_mask(or_masks(near, noop_mask), None, None, 3, 3).all()
    with pytest.raises(RuntimeError, match="callable"):
        and_masks(3)
