"""`flex_attention` over sequences of different lengths is that of each sequence."""

import pytest

import pullback as torch
from pullback import func, nested
from pullback.nn import functional as F
from pullback.nn.attention.flex_attention import (
    AuxRequest,
    BlockMask,
    create_block_mask,
    flex_attention,
)

LENGTHS, OTHERS = [3, 0, 7, 7, 60], [4, 2, 7, 1, 50]
SLOPE = torch.tensor([0.5, -0.25])


def drawn(lengths, heads=2, width=4, dtype="float64"):
    """(batch, heads, ragged, width)."""
    values = torch.randn(sum(lengths), heads, width, dtype=dtype)
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    return nested.nested_tensor_from_jagged(values, offsets).transpose(1, 2)


def causal(b, h, q, kv):
    return q >= kv


def window(b, h, q, kv):
    return (q - kv).abs() <= b


def tilted(score, b, h, q, kv):
    return score * (b + 1) + SLOPE[h].to(score.dtype) * (q - kv)


def masked(mod):
    return None if mod is None else create_block_mask(mod, None, None, 64, 64)


def each(query, key, value, score_mod, mask_mod, **options):
    """One sequence at a time."""
    found = []
    for b, parts in enumerate(zip(query.unbind(), key.unbind(), value.unbind())):
        def score(s, _, h, q, kv, b=b):
            return score_mod(s, torch.tensor(b), h, q, kv)

        def mask(_, h, q, kv, b=b):
            return mask_mod(torch.tensor(b), h, q, kv)

        n, m = parts[0].shape[1], parts[1].shape[1]
        if not n:
            found.append(parts[0][..., :parts[2].shape[-1]])
            continue
        found.append(flex_attention(
            *[p.unsqueeze(0) for p in parts], None if score_mod is None else score,
            None if mask_mod is None else create_block_mask(mask, None, None, n, m),
            **options)[0])
    return found


@pytest.mark.parametrize("score_mod", [None, tilted])
@pytest.mark.parametrize("mask_mod", [None, causal, window])
def test_each_sequence(score_mod, mask_mod):
    torch.manual_seed(0)
    given = [drawn(n).requires_grad_() for n in (LENGTHS, OTHERS, OTHERS)]
    out = flex_attention(*given, score_mod, masked(mask_mod))
    plain = [t.detach().requires_grad_() for t in given]
    want = each(*plain, score_mod, mask_mod)
    assert out.shape == given[0].shape
    for a, b in zip(out.unbind(), want, strict=True):
        torch.testing.assert_close(a, b)
    torch.sin(out.values()).sum().backward()
    sum(torch.sin(w).sum() for w in want).backward()
    for a, b in zip(given, plain):
        torch.testing.assert_close(a.grad.values(), b.grad.values())


def test_against_scaled_dot_product_attention():
    torch.manual_seed(0)
    q, k, v = drawn(LENGTHS), drawn(OTHERS), drawn(OTHERS)
    torch.testing.assert_close(flex_attention(q, k, v).values(),
                               F.scaled_dot_product_attention(q, k, v).values())
    q = drawn(LENGTHS, heads=4)
    wide = flex_attention(q, k, v, enable_gqa=True)
    torch.testing.assert_close(
        wide.values(), F.scaled_dot_product_attention(q, k, v, enable_gqa=True).values())
    with pytest.raises(torch.errors.ShapeError, match="enable_gqa"):
        flex_attention(q, k, v)


def test_compiled_for_all_lengths():
    torch.manual_seed(0)
    mask = masked(causal)
    assert isinstance(mask, BlockMask)
    compiled = torch.compile(lambda q, k, v: flex_attention(q, k, v, tilted, mask),
                             backend="numpy", fullgraph=True)
    for lengths in ([3, 1, 4], [5, 9, 2]):
        given = [drawn(lengths).requires_grad_() for _ in range(3)]
        out, want = compiled(*given), flex_attention(*given, tilted, mask)
        torch.testing.assert_close(out.values(), want.values())
        grads = torch.autograd.grad(out.values().sin().sum(), given)
        for a, b in zip(grads, torch.autograd.grad(want.values().sin().sum(), given)):
            torch.testing.assert_close(a.values(), b.values())


def test_second_derivatives_and_forward_mode():
    torch.manual_seed(0)
    given = [drawn([2, 1], heads=1, width=2) for _ in range(3)]
    leaves = [t.values().detach().requires_grad_() for t in given]

    def run(*values):
        q, k, v = [t.with_values(v) for t, v in zip(given, values)]
        return flex_attention(q, k, v, lambda s, b, h, i, j: s * (b + 1) + i, mask).values()

    mask = create_block_mask(causal, None, None, 2, 2)

    assert torch.autograd.gradcheck(run, leaves)
    assert torch.autograd.gradgradcheck(run, leaves)
    tangents = tuple(torch.ones_like(v) for v in leaves)
    _, pushed = func.jvp(run, tuple(leaves), tangents)
    assert pushed.shape == leaves[0].shape


def test_other_results():
    torch.manual_seed(0)
    q, k, v = (drawn([3, 5]) for _ in range(3))
    out, lse = flex_attention(q, k, v, return_lse=True)
    scores = q.unbind()[1] @ k.unbind()[1].mT / 2
    torch.testing.assert_close(lse.unbind()[1], scores.logsumexp(-1))
    _, aux = flex_attention(q, k, v, return_aux=AuxRequest(max_scores=True))
    torch.testing.assert_close(aux.max_scores.unbind()[1], scores.amax(-1))
    assert aux.lse is None and out.shape == q.shape


def test_what_is_refused():
    q = drawn([3, 5])
    with pytest.raises(NotImplementedError, match="must all be jagged"):
        flex_attention(q, torch.ones(2, 2, 5, 4), torch.ones(2, 2, 5, 4))
    with pytest.raises(NotImplementedError, match="must all be jagged"):
        flex_attention(*[q.transpose(1, 2)] * 3)
    with pytest.raises(torch.errors.ShapeError, match="same lengths"):
        flex_attention(q, q, drawn([3, 4]))
