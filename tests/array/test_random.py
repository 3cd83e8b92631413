"""The random stream against numbers recorded from PyTorch.

`tests/data/random.json` holds, for each call below, a few values, a checksum of all bytes and the
next draw, which tells whether the call took as many draws as PyTorch does.  To record it anew, run
this file as a script where PyTorch is installed.
"""

import copy
import json
import pickle
import threading
import zlib
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from pullback.array import random
from pullback.array.random import Generator

DATA = Path(__file__).parents[1] / "data" / "random.json"
SIZES = (0, 1, 15, 16, 17, 31, 32, 33, 1000)
SEEDS = (0, 5, 2**32 - 1, 2**32, 2**40 + 77, 2**63, 2**64 - 1, -1, -7, -(2**63))
FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INTS = ("bool", "uint8", "int8", "int16", "int32", "int64")
WEIGHTS = [[0.1, 2.0, 0.0, 0.4, 1.5], [1.0, 1.0, 3.0, 0.25, 0.0], [0.0, 0.0, 0.0, 7.0, 0.5]]

# (function, dtype, arguments); the shape comes from SIZES.
CALLS = [
    *(("uniform", d, a) for d in FLOATS + COMPLEX for a in ((), (-1.3, 2.7), (-0.1, 0.1))),
    *(("normal", d, a) for d in FLOATS + COMPLEX for a in ((), (1.3, 2.7))),
    *(("exponential", d, (r,)) for d in FLOATS for r in (1.0, 0.3)),
    *(("log_normal", d, (0.3, 0.7)) for d in FLOATS),
    *(("cauchy", d, (1.5, 2.5)) for d in FLOATS),
    *(("geometric", d, (0.3,)) for d in (*FLOATS, "int32", "int64")),
    *(("randint", d, (0, 2)) for d in INTS),
    *(("randint", d, (-5, 100)) for d in (*FLOATS, "int8", "int16", "int32", "int64")),
    ("randint", "int32", (-(2**31), 2**31 - 1)),
    ("randint", "float32", (-(2**31), 2**31 - 1)),
    ("randint", "float16", (0, 3000)),
    *(("randint", "int64", (low, low + width)) for low in (0, -3)
      for width in (2**28 - 1, 2**28, 2**31, 2**32, 2**62 + 5)),
    ("randint", "int64", (-(2**63), 2**63)),
    *(("random", d, ()) for d in FLOATS + INTS),
    *(("bernoulli", d, (p,)) for d in FLOATS + INTS for p in (0.3,)),
    *(("bernoulli", "float32", (p,)) for p in (0.0, 1.0, 0.9)),
    *(("bernoulli_array", d, ()) for d in FLOATS),
    *(("randperm", d, ()) for d in ("int32", "int64", "float64")),
    *(("multinomial", d, (r,)) for d in FLOATS for r in (True, False)),
]  # fmt: skip
SEQUENCE = [(CALLS[i * 7 % len(CALLS)], SIZES[i % len(SIZES)]) for i in range(120)]
# Recorded to the last bit, but computed with logarithms and the like of the C library at hand.
INEXACT = {(f, d) for f in ("normal", "exponential", "log_normal", "cauchy")
           for d in ("float64", "complex128")}  # fmt: skip


def np_dtype(name):
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def call(gen, function, dtype, args, size):
    """The call as this package makes it."""
    dtype = np_dtype(dtype)
    if function == "randperm":
        return random.randperm(gen, size, dtype)
    if function == "multinomial":
        weights = np.array(WEIGHTS).astype(dtype)
        return random.multinomial(gen, weights, max(size, 1) if args[0] else 2, args[0])
    if function == "bernoulli":
        return random.bernoulli(gen, *args, (size,), dtype)
    if function == "bernoulli_array":
        return random.bernoulli(gen, np.linspace(0, 1, size).astype(dtype), (size,), np.float32)
    if function == "randint":
        return random.randint(gen, (size,), *args, dtype)
    return getattr(random, function)(gen, (size,), dtype, *args)


def torch_call(gen, function, dtype, args, size):
    """The same call as PyTorch makes it, as a NumPy array."""
    import torch

    kind = getattr(torch, dtype)
    if function == "randperm":
        out = torch.randperm(size, dtype=kind, generator=gen)
    elif function == "multinomial":
        samples = max(size, 1) if args[0] else 2
        out = torch.multinomial(torch.tensor(WEIGHTS).to(kind), samples, args[0], generator=gen)
    elif function == "bernoulli_array":
        p = torch.from_numpy(np.linspace(0, 1, size)).to(kind)
        out = torch.empty(size).bernoulli_(p, generator=gen)
    elif function == "randint":
        args = (args[0], None) if args[1] - args[0] == 2**64 else args
        out = torch.empty(size, dtype=kind).random_(*args, generator=gen)
    else:
        out = getattr(torch.empty(size, dtype=kind), function + "_")(*args, generator=gen)
    if out.dtype == torch.bfloat16:
        return out.view(torch.int16).numpy().view(np_dtype("bfloat16"))
    return out.numpy()


def summary(array, following):
    """What is recorded of a result, and of one more draw after it."""
    flat = array.reshape(-1)
    flat = flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat
    some = [float(v) if flat.dtype.kind in "fV" else int(v) for v in [*flat[:2], *flat[-2:]]]
    return [some, zlib.crc32(np.ascontiguousarray(array).tobytes()), int(following)]


def summaries(make, following):
    """All that is recorded, with `make(seed)` giving a generator and the function to call."""
    data = {"calls": {}, "seeds": [], "sequence": []}
    for key in CALLS:
        rows = data["calls"][repr(key)] = []
        for size in SIZES:
            gen, run = make(5)
            rows.append(summary(run(gen, *key, size), following(gen)))
    for seed in SEEDS:
        gen, run = make(seed)
        data["seeds"].append(summary(run(gen, "uniform", "float32", (), 3), following(gen)))
    gen, run = make(11)
    for key, size in SEQUENCE:
        data["sequence"].append(summary(run(gen, *key, size), 0))
    data["state"] = zlib.crc32(bytes(bytearray(np.asarray(gen.get_state())[:5016])))
    return data


@pytest.fixture(scope="module")
def recorded():
    return json.loads(DATA.read_text())


def following(gen):
    return random.randint(gen, (1,), 0, 2**28 - 1)[0]


def check(key, array, expected, after=0):
    values, checksum, draw = summary(array, after)
    np.testing.assert_allclose(values, expected[0], rtol=1e-14)
    assert draw == expected[2]
    if key[:2] not in INEXACT:
        assert checksum == expected[1]


@pytest.mark.parametrize("key", CALLS, ids=lambda key: f"{key[0]}-{key[1]}-{key[2]}")
def test_recorded_calls(key, recorded):
    for size, expected in zip(SIZES, recorded["calls"][repr(key)], strict=True):
        gen = Generator().manual_seed(5)
        array = call(gen, *key, size)
        if key[0] not in ("multinomial", "bernoulli_array"):
            assert array.dtype == np_dtype(key[1]) and array.shape == (size,)
        check(key, array, expected, following(gen))


@pytest.mark.parametrize(("index", "seed"), list(enumerate(SEEDS)))
def test_seeds(index, seed, recorded):
    gen = Generator().manual_seed(seed)
    assert gen.initial_seed() == seed % 2**64
    key = ("uniform", "float32", ())
    check(key, call(gen, *key, 3), recorded["seeds"][index], following(gen))


def test_mixed_sequence(recorded):
    gen = Generator().manual_seed(11)
    for (key, size), expected in zip(SEQUENCE, recorded["sequence"], strict=True):
        check(key, call(gen, *key, size), expected)
    assert zlib.crc32(gen.get_state().numpy()[:5016].tobytes()) == recorded["state"]


def test_sequence_is_the_same_from_any_saved_state():
    gen, other = Generator().manual_seed(3), Generator()
    for key, size in SEQUENCE[:60]:
        other.set_state(gen.get_state())
        copies = other, gen.clone_state(), copy.deepcopy(gen), pickle.loads(pickle.dumps(gen))
        expected = call(gen, *key, size)
        for each in copies:
            assert call(each, *key, size).tobytes() == expected.tobytes()
            assert (each.get_state() == gen.get_state()).all()


def test_known_numbers():
    gen = Generator().manual_seed(0)
    expected = np.array([0.49625658988952637, 0.7682217955589294, 0.08847743272781372], np.float32)
    np.testing.assert_array_equal(random.uniform(gen, (3,), np.float32), expected)
    np.testing.assert_array_equal(random.randperm(gen.manual_seed(0), 5), [4, 0, 1, 3, 2])
    expected = [[1.5409960746765137, -0.293428897857666], [-2.1787893772125244, 0.5684312582015991]]
    result = random.normal(gen.manual_seed(0), (2, 2), np.float32)
    np.testing.assert_array_equal(result, np.array(expected, np.float32))


def test_reseeding_restarts_and_forgets_the_spare_normal():
    gen = Generator().manual_seed(5)
    first = random.normal(gen, (1,), np.float32)
    assert gen.spare is not None
    gen.manual_seed(5)
    assert gen.spare is None
    assert random.normal(gen, (1,), np.float32) == first
    second = random.normal(gen, (1,), np.float32)  # the spare one: takes no draw
    both = random.normal(gen.manual_seed(5), (2,), np.float32)
    np.testing.assert_array_equal(both, [first[0], second[0]])


def test_default_seed_and_fresh_seed():
    gen = Generator()
    assert gen.initial_seed() == 67280421310721 and str(gen.device) == "cpu"
    seed = gen.seed()
    assert gen.initial_seed() == seed
    first = random.uniform(gen, (4,), np.float64)
    again = random.uniform(Generator().manual_seed(seed), (4,), np.float64)
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("draws", [0, 1, 623, 624, 625, 2000])
def test_state_layout(draws):
    gen = Generator().manual_seed(2**40 + 3)
    gen.draw32(draws)
    state = gen.get_state().numpy()
    assert state.dtype == np.uint8 and state.shape == (5056,)
    assert state[:8].view("<u8")[0] == 2**40 + 3
    left, seeded, position = state[8:20].view("<i4")
    used = draws and (draws - 1) % 624 + 1
    assert (left, seeded, position) == (625 - used if draws else 1, 1, used)


def test_bad_seeds_and_states():
    gen = Generator()
    for bad in (1.5, "3", True, None):
        with pytest.raises(RuntimeError, match="manual_seed expected a long"):
            gen.manual_seed(bad)
    for bad in (2**64, -(2**63) - 1):
        with pytest.raises(ValueError, match="Overflow"):
            gen.manual_seed(bad)
    assert gen.manual_seed(np.int64(3)).initial_seed() == 3
    with pytest.raises(TypeError, match="ByteTensor"):
        gen.set_state(np.zeros(5056))
    with pytest.raises(RuntimeError, match="size 5056"):
        gen.set_state(np.zeros(12, np.uint8))
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        gen.set_state(np.zeros(5056, np.uint8))


@pytest.mark.parametrize(
    "make",
    [
        lambda g: random.uniform(g, (2,), np.float32, 2.0, 1.0),
        lambda g: random.normal(g, (2,), np.float32, 0.0, -1.0),
        lambda g: random.exponential(g, (2,), np.float32, 0.0),
        lambda g: random.log_normal(g, (2,), np.float32, 0.0, 0.0),
        lambda g: random.cauchy(g, (2,), np.float32, 0.0, 0.0),
        lambda g: random.geometric(g, (2,), np.float32, 1.0),
        lambda g: random.randint(g, (2,), 3, 3),
        lambda g: random.bernoulli(g, 1.5, (2,), np.float32),
        lambda g: random.bernoulli(g, np.array([0.5, np.nan]), (2,), np.float32),
        lambda g: random.multinomial(g, np.ones(3), 4),
        lambda g: random.multinomial(g, np.ones(3), 0),
        lambda g: random.multinomial(g, np.ones((1, 1, 3)), 1),
        lambda g: random.multinomial(g, np.zeros(3), 1),
        lambda g: random.multinomial(g, np.array([1.0, -1.0]), 1),
        lambda g: random.multinomial(g, np.array([1.0, np.inf]), 2, True),
    ],
)
def test_bad_parameters_take_no_draws(make):
    gen = Generator().manual_seed(1)
    before = gen.get_state()
    with pytest.raises(RuntimeError):
        make(gen)
    assert (gen.get_state() == before).all()


def test_shapes_are_filled_in_order():
    for function, dtype, args in CALLS:
        if function not in ("randperm", "multinomial", "bernoulli_array", "bernoulli", "randint"):
            run = getattr(random, function)
            flat = run(Generator().manual_seed(2), (24,), np_dtype(dtype), *args)
            cube = run(Generator().manual_seed(2), (2, 3, 4), np_dtype(dtype), *args)
            assert cube.shape == (2, 3, 4) and cube.tobytes() == flat.tobytes()
    assert random.normal(Generator(), (), np.float32).shape == ()
    assert random.randint(Generator(), (0, 3), 0, 5).shape == (0, 3)
    p = np.array([0.0, 0.5, 1.0], np.float32)
    mask = random.bernoulli(Generator(), p, (50, 3), np.bool_)
    assert not mask[:, 0].any() and mask[:, 1].any() and mask[:, 2].all()


def test_long_arrays_equal_short_ones_put_together():
    for dtype in (np.float32, np.float64):
        whole = random.uniform(Generator().manual_seed(4), (40000,), dtype, -0.1, 0.1)
        gen = Generator().manual_seed(4)
        parts = [random.uniform(gen, (n,), dtype, -0.1, 0.1) for n in (1, 16383, 16385, 7231)]
        np.testing.assert_array_equal(whole, np.concatenate(parts))
        whole = random.normal(Generator().manual_seed(4), (48000,), dtype, 1.0, 0.5)
        gen = Generator().manual_seed(4)
        parts = [random.normal(gen, (n,), dtype, 1.0, 0.5) for n in (16, 15984, 32000)]
        np.testing.assert_array_equal(whole, np.concatenate(parts))


@pytest.mark.parametrize("n", [4096, 4097, 5000, 30000])
def test_permutation_by_swaps(n):
    gen = Generator().manual_seed(n)
    swaps = gen.draw32(n - 1).tolist()
    expected = list(range(n))
    for i, draw in enumerate(swaps):
        j = i + draw % (n - i)
        expected[i], expected[j] = expected[j], expected[i]
    assert random.randperm(gen.manual_seed(n), n).tolist() == expected


@pytest.mark.parametrize("n", [1, 2, 10, 5000])
def test_huge_permutation(n, monkeypatch):
    monkeypatch.setattr(random, "_HUGE", 0)  # the real limit takes gigabytes
    gen = Generator().manual_seed(n)
    expected = []
    for i, draw in enumerate(gen.draw64(n).tolist()):
        j = draw % (i + 1)
        expected.append(i)
        expected[i], expected[j] = expected[j], expected[i]
    assert random.randperm(gen.manual_seed(n), n).tolist() == expected


def test_moments():
    gen, n = Generator().manual_seed(8), 200_000
    for dtype in (np.float32, np.float64):
        x = random.normal(gen, (n,), dtype, 1.0, 2.0)
        assert abs(x.mean() - 1) < 0.02 and abs(x.std() - 2) < 0.02
        u = random.uniform(gen, (n,), dtype, -3.0, 1.0)
        assert u.min() >= -3 and u.max() < 1 and abs(u.mean() + 1) < 0.02
        assert abs(random.exponential(gen, (n,), dtype, 4.0).mean() - 0.25) < 0.01
    z = random.normal(gen, (n,), np.complex128)
    assert abs(z.std() - 1) < 0.01
    picks = random.multinomial(gen, np.array([1.0, 0.0, 3.0], np.float32), n, True)
    np.testing.assert_allclose(np.bincount(picks, minlength=3) / n, [0.25, 0, 0.75], atol=0.01)
    half = random.uniform(gen, (n,), np.float16)
    assert half.min() == 0 and half.max() < 1


def test_threads_share_one_stream():
    gen = Generator().manual_seed(6)
    pieces: list[np.ndarray] = []

    def work():
        for _ in range(20):
            pieces.append(random.uniform(gen, (20_000,), np.float32))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = Generator().manual_seed(6)
    expected = {random.uniform(alone, (20_000,), np.float32).tobytes() for _ in range(80)}
    assert {piece.tobytes() for piece in pieces} == expected


def torch_source():
    """PyTorch's half of `summaries`."""
    import torch

    make = lambda seed: (torch.Generator().manual_seed(seed), torch_call)
    return make, lambda gen: torch.randint(0, 2**28 - 1, (1,), generator=gen).item()


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:.*out of bounds")
def test_live():
    """Calls of other sizes and ranges, against an installed PyTorch, states included."""
    import torch

    if not torch.backends.cpu.get_cpu_capability().startswith("AVX"):
        pytest.skip("PyTorch's float32 normals have other last digits here")
    theirs, ours = torch.Generator().manual_seed(21), Generator().manual_seed(21)
    for i in range(3 * len(CALLS)):
        key, size = CALLS[i % len(CALLS)], (2, 9, 48, 100, 624, 5001, 16400, 40000)[i % 8]
        a, b = torch_call(theirs, *key, size), call(ours, *key, size)
        if key[:2] in INEXACT:
            np.testing.assert_allclose(b, a, rtol=1e-14)
        else:
            assert a.tobytes() == b.tobytes(), (key, size)
        same = theirs.get_state().numpy() == ours.get_state()
        assert same[:5016].all() and same[5040:].all(), (key, size)


if __name__ == "__main__":
    DATA.parent.mkdir(exist_ok=True)
    data = summaries(*torch_source())
    DATA.write_text(json.dumps(data).replace(']], "', ']],\n"') + "\n")


def test_sums_that_lie_halfway_between_two_numbers():
    """Nothing is lost: to the even one. Something is: to its side. Neither warns."""
    x = np.full(random._CHUNK, 1 + 2.0**-24)
    with np.errstate(all="raise"):
        assert (random._rounded_sum(x, 0.0) == 1).all()
        assert (random._rounded_sum(x, 2.0**-80) == np.float32(1 + 2.0**-23)).all()
        assert (random._rounded_sum(x + 2.0**-23, -(2.0**-80)) == np.float32(1 + 2.0**-23)).all()
