"""Random chains of shapes, slices and joins on random patterns, against dense arithmetic.

After each step the integers are looked at: what says that it is in order has to be.
"""

import math
import random

import pytest

import pullback as torch
from pullback.sparse import invariants

D = torch.float64
CHAINS = 120  # in each of the layouts


def pattern(rng, layout):
    """A random tensor: batches, vectors as entries, narrow integers, places that come twice."""
    shape = rng.choice([(4, 6), (6, 4), (1, 3), (3, 1), (0, 4), (6, 6)])
    batch, dense = rng.choice([(), (), (2,), (2, 3)]), rng.choice([(), (), (2,)])
    with_batch = (*batch, *shape) if layout in ("coo", "twice") else shape
    keep = torch.tensor([rng.random() < 0.4 for _ in range(math.prod(with_batch))])
    full = torch.tensor([rng.uniform(-1, 1) for _ in range(math.prod((*batch, *shape, *dense)))],
                        dtype=D).reshape(*batch, *shape, *dense)
    lead = () if with_batch != shape else (1,) * len(batch)
    full = full * keep.reshape(*lead, *with_batch, *(1,) * len(dense))
    if layout in ("coo", "twice"):
        x = full.to_sparse(full.ndim - len(dense))
        if layout == "coo":
            return x
        order = torch.tensor(rng.choices(range(x._nnz()), k=x._nnz()), dtype=torch.int64)
        return torch.sparse_coo_tensor(x.indices()[:, order], x.values()[order], x.shape)
    if layout in ("bsr", "bsc"):
        size = [rng.choice([k for k in (1, 2, 3) if n % k == 0]) for n in shape]
        return getattr(full, f"to_sparse_{layout}")(size, dense_dim=len(dense))
    x = getattr(full, f"to_sparse_{layout}")(dense_dim=len(dense))
    parts = [i.int() for i in ((x.crow_indices(), x.col_indices()) if layout == "csr" else
                               (x.ccol_indices(), x.row_indices()))]
    return torch.sparse_compressed_tensor(*parts, x.values(), x.shape, layout=x.layout)


def steps(rng, shape):
    """Functions that a tensor of some shape may go through."""
    n, dims = len(shape), range(len(shape))
    if not n:
        return [lambda x: x.reshape(1)]
    d = rng.choice(dims)
    size, lead = shape[d], [slice(None)] * d
    low = rng.randint(0, size)
    key = (*lead, slice(low, rng.randint(low, size), rng.choice([1, 1, 2, 3])))
    order, some = rng.sample(dims, n), rng.sample(dims, rng.randint(1, n))
    counts = [rng.randint(1, 2) for _ in dims]
    mask = torch.tensor([rng.random() < 0.5 for _ in range(size)], dtype=torch.bool)
    place, by = rng.randint(0, n), rng.randint(-5, 5)
    found = [
        lambda x: x[key], lambda x: x.permute(order), lambda x: x.flip(some),
        lambda x: x.repeat(counts), lambda x: x.repeat(2, *counts), lambda x: x.squeeze(),
        lambda x: torch.cat([x, x.flip(some)], d), lambda x: x[(*lead, mask)],
        lambda x: x.unsqueeze(place), lambda x: torch.stack([x, x.flip(some)], place),
        lambda x: x.reshape(*shape[:d], -1) if 0 not in shape else x,
    ]
    if size:
        index = rng.randrange(-size, size)
        several = torch.tensor([[rng.randrange(-size, size) for _ in range(3)] for _ in range(2)])
        found += [
            lambda x: x.select(d, index), lambda x: x[(*lead, several[0])],
            lambda x: x[(*lead, several)], lambda x: x.roll(by, d),
            lambda x: torch.cat(x.split(2, d), d), lambda x: torch.stack(x.unbind(d))]
        other = rng.choice(dims)
        if other != d and shape[other]:
            both = {d: several, other: torch.tensor([0, shape[other] - 1, -1])}
            found.append(lambda x: x[tuple([both.get(k, slice(None)) for k in dims])])
    if n > 1:
        a, b = rng.sample(dims, 2)
        found += [lambda x: x.tril(by), lambda x: x.triu(by), lambda x: x.diagonal(by, a, b)]
    return found


@pytest.mark.parametrize("layout", ("coo", "twice", "csr", "csc", "bsr", "bsc"))
def test_chains(layout):
    for seed in range(CHAINS):
        rng = random.Random(f"{layout} {seed}")
        leaf = pattern(rng, layout).requires_grad_()
        x, y = leaf, leaf.to_dense()
        for _ in range(rng.randint(1, 4)):
            if x.layout is torch.strided or y.numel() > 5000:
                break
            step = rng.choice(steps(rng, tuple(y.shape)))
            x, y = step(x), step(y)
            if x.layout is not torch.strided:
                invariants.check_all(x)
            whole = x if x.layout is torch.strided else x.to_dense()
            assert whole.shape == y.shape and torch.allclose(whole, y), seed
        if y.numel():
            weight = torch.arange(y.numel(), dtype=D).sin().reshape(y.shape)
            ours, theirs = [torch.autograd.grad((t * weight).sum(), leaf, retain_graph=True)[0]
                            for t in (whole, y)]
            assert torch.allclose(ours._values(), theirs._values()), seed
