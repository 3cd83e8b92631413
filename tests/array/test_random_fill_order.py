"""In which order random fills go through the elements of a tensor: as they lie in memory."""

import numpy as np
import pytest

import pullback as pb

FILLS = {
    "uniform": lambda t: t.uniform_(-1, 2),
    "exponential": lambda t: t.exponential_(1.5),
    "bernoulli": lambda t: t.bernoulli_(0.3),
    "bernoulli of a tensor": lambda t: t.bernoulli_(t.new_full((), 0.3)),
    "random": lambda t: t.random_(3, 77),
    "cauchy": lambda t: t.cauchy_(),
    "geometric": lambda t: t.geometric_(0.4),
    "log_normal": lambda t: t.log_normal_(),
}
LAYOUTS = {
    "transposed": lambda lib, n: lib.zeros(n, n + 1).t(),
    "permuted": lambda lib, n: lib.zeros(n, n + 1, 3).permute(2, 0, 1),
    "channels last": lambda lib, n: lib.zeros(2, 3, n, n).to(memory_format=lib.channels_last),
    "with gaps": lambda lib, n: lib.zeros(n, 2 * n)[:, ::2],
    "with gaps, transposed": lambda lib, n: lib.zeros(n, 2 * n)[:, :n].t(),
}


def in_memory(t):
    """The elements as they lie in memory."""
    order = sorted(range(t.ndim), key=lambda d: -t.stride(d))
    return t.permute(order).reshape(-1)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("fill", FILLS)
def test_fills_follow_memory(fill, layout):
    t = LAYOUTS[layout](pb, 4)
    row = pb.zeros(t.numel())
    for target in (t, row):
        pb.manual_seed(3)
        FILLS[fill](target)
    assert pb.equal(in_memory(t), row)


def test_normals_go_by_blocks_only_where_memory_is_contiguous():
    def pair_by_pair(n, dtype):
        pb.manual_seed(3)
        return pb.cat([pb.zeros(8, dtype=dtype).normal_() for _ in range(n // 8)])

    for dtype in (pb.float32, pb.float64):
        row = pb.zeros(48, dtype=dtype)
        pb.manual_seed(3)
        row.normal_()
        assert not pb.equal(row, pair_by_pair(48, dtype))
        for t in (pb.zeros(48, 2, dtype=dtype)[:, 1], pb.zeros(6, 8, dtype=dtype).t()):
            pb.manual_seed(3)
            assert pb.equal(in_memory(t.normal_()), pair_by_pair(48, dtype))


def test_tensors_like_a_permuted_one_are_drawn_and_laid_out_like_it():
    x = pb.zeros(5, 4).t()
    for make in (pb.rand_like, pb.randn_like, lambda t, **k: pb.randint_like(t, 9, **k)):
        pb.manual_seed(3)
        kept = make(x)
        pb.manual_seed(3)
        plain = make(x, memory_format=pb.contiguous_format)
        assert kept.stride() == (1, 4) and plain.stride() == (5, 1)
        assert not pb.equal(kept, plain)
    twos = lambda t, **k: pb.full_like(t, 2, **k)
    for make in (pb.zeros_like, pb.ones_like, pb.empty_like, twos):
        image = make(pb.zeros(2, 3, 4, 5), memory_format=pb.channels_last)
        assert image.stride() == (60, 1, 15, 3)
        assert make(pb.zeros(3, 1, 4).expand(3, 2, 4).permute(2, 1, 0)).stride() == (1, 4, 8)


def test_multinomial_and_masks_follow_memory():
    weights = pb.arange(1.0, 21).reshape(4, 5).t()
    pb.manual_seed(3)
    drawn = pb.multinomial(weights, 2)
    pb.manual_seed(3)
    times = pb.empty(4, 5).exponential_().t()
    assert pb.equal(drawn, (weights / times).topk(2).indices) and drawn.stride() == (2, 1)
    pb.manual_seed(3)
    kept = pb.native_dropout(weights, 0.5, True)[1]
    pb.manual_seed(3)
    assert pb.equal(kept, pb.empty(4, 5).bernoulli_(0.5).t().bool())


@pytest.mark.torch
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("fill", ["normal", *FILLS])
def test_fills_agree_with_pytorch(fill, layout):
    import torch

    call = FILLS.get(fill, lambda t: t.normal_(1, 2))
    for n in (3, 7, 40):
        made = []
        for lib in (torch, pb):
            lib.manual_seed(5)
            made.append(np.asarray(call(LAYOUTS[layout](lib, n))))
            made.append(lib.rand(1).item())
        assert np.array_equal(made[0], made[2]) and made[1] == made[3]
