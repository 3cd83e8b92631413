"""Sizes that a compiled function leaves in Python: they are numbers there, never symbols."""

import collections
import dataclasses
import functools
import json
import math
import pickle

import numpy as np
import pytest

import pullback as pb
from pullback import nn
from pullback.array.size import Symbolic

pytestmark = pytest.mark.filterwarnings("ignore:compile")
CASES = {}


def case(make):
    CASES[make.__name__] = make
    return make


@case
def keys_of_tensors():
    cache = {}

    def f(x):
        n = x.shape[0]
        if n not in cache:
            cache[n] = pb.arange(n)
        return x[:, 0] * cache[n]

    return f, lambda: list(cache)


@case
def keys_that_are_written():
    cache = {}

    def f(x):
        cache[x.shape[0]] = x.sum()
        cache[x.shape[0] * 2, "twice"] = x.shape[0]
        return x * 2

    return f, lambda: [(key, float(value)) for key, value in cache.items()]


@case
def keys_that_are_shapes():
    cache = {}

    def f(x):
        if x.shape not in cache:
            cache[x.shape] = pb.zeros(x.shape)
        return x + cache[x.shape]

    return f, lambda: list(map(tuple, cache))


@case
def counts_by_size():
    counts, more = collections.defaultdict(int), collections.Counter()

    def f(x):
        counts[x.shape[0]] += 1
        more.update([x.shape[0]])
        return x * 2

    return f, lambda: (dict(counts), dict(more))


@case
def attributes():
    class Seen:
        total = 0

    @dataclasses.dataclass
    class Notes:
        last: int = 0
        sizes: dict = dataclasses.field(default_factory=dict)

    notes = Notes()

    def f(x):
        notes.last, Seen.total = x.shape[0], x.shape[0] * 2 + 1
        notes.sizes[x.shape[0]] = True
        return x * 2

    return f, lambda: (notes.last, notes.sizes, Seen.total, type(notes.last), type(Seen.total))


@case
def variables():
    total, last = 0, None

    def f(x):
        nonlocal total, last
        total += x.shape[0]
        last = {"shape": x.shape, x.shape[0]: 1}
        return x * 2

    return f, lambda: (total, type(total), last, [type(n) for n in last["shape"]])


@case
def lists_and_sets():
    items, first, some, ring = [], [0], set(), collections.deque(maxlen=2)

    def f(x):
        items.append(x.shape[0])
        first[0] = x.shape[0]
        some.add(x.shape[0])
        ring.append(x.shape[0])
        return x * 2

    return f, lambda: (items, first, sorted(some), list(ring), [type(n) for n in (*items, *some)])


@case
def texts():
    seen = {}

    def f(x):
        n = x.shape[0]
        seen["text"] = f"{n:04d} {n} {n!r:>4}"
        return (str(n), repr(x.shape), "%d" % n, format(n, "x"), "{}".format(n),  # noqa: UP031, UP032
                json.dumps({"n": n, "shape": list(x.shape), n: 1}))

    return f, lambda: seen


@case
def caches():
    @functools.lru_cache
    def mask(n):
        return pb.arange(n) * 1.0

    @functools.cache
    def square(n):
        return n * n

    def f(x):
        return x[:, 0] * mask(x.shape[0]) + square(x.shape[0])

    return f, lambda: None  # how full they are, a capture may change


@case
def arithmetic():
    def f(x):
        n = x.shape[0]
        return (divmod(n, 2), round(n / 3, 2), n**2, abs(-n), n >> 1, n & 1, ~n, math.sqrt(n),
                math.floor(n / 2), float(n), complex(n), hash(n), bytes(n), n.bit_length(),
                pickle.loads(pickle.dumps(n)), float(np.sqrt(n)), np.arange(n).tolist(),
                n == 3, n in (3, 5), isinstance(n, int), sorted([n, 4]), min(n, 4), [0] * n,
                list("abcdefgh")[n], sum(range(n)), int(n))

    return f, lambda: None


@case
def results():
    def f(x):
        n = x.shape[0]
        return {n: x * 2, "shape": x.shape, "inner": [{(n, 1): (x.numel(), x.stride())}]}, {n}

    return f, lambda: None


@case
def attributes_of_tensors():
    kept = {}

    def f(x):
        y = kept["y"] = x * 2
        y.rows = x.shape[0]
        return y

    return f, lambda: (kept["y"].rows, type(kept["y"].rows))


@case
def functions():
    kept = {}

    def f(x):
        n = x.shape[0]
        kept["f"], kept["g"] = (lambda: n), functools.partial(int, n)
        return x * 2

    return f, lambda: (kept["f"](), kept["g"](), type(kept["f"]()))


@case
def a_module():
    class Positions(nn.Module):
        def __init__(self):
            super().__init__()
            self.cache, self.longest = {}, 0
            self.register_buffer("places", pb.zeros(0), persistent=False)

        def forward(self, x):
            if self.places.shape[0] < x.shape[0]:
                self.places = pb.arange(x.shape[0]) * 1.0
            self.longest = max(self.longest, x.shape[0])
            self.cache[x.shape[0]] = 1
            return x * self.places[:x.shape[0], None]

    m = Positions()
    return m, lambda: (m.longest, m.cache, m.places.tolist(), type(m.longest))


def is_free(value):
    """Are there no symbols in a value?"""
    if isinstance(value, dict):
        return all(is_free(v) for pair in value.items() for v in pair)
    if isinstance(value, (list, tuple, set)):
        return all(map(is_free, value))
    return not isinstance(value, Symbolic)


def seen(make, wrap):
    f, state = make()
    run, out = wrap(f), []
    for n in (3, 5, 3, 7, 5, 4):
        result = run(pb.ones(n, 2))
        assert is_free(result)
        out.append(repr(result))
    assert is_free(state())
    return out, repr(state())


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", CASES)
def test_as_without_compile(name, dynamic):
    make = CASES[name]
    found = seen(make, lambda f: pb.compile(f, backend="numpy", dynamic=dynamic))
    assert found == seen(make, lambda f: f)


def test_numbers_among_the_arguments():
    cache = {}

    def f(x, rate):
        cache[rate] = x.shape[0]
        return x * rate

    run = pb.compile(f, backend="numpy")
    for rate in (0.5, 0.25, 0.125, 0.25):
        run(pb.ones(3), rate)
    assert cache == {0.5: 3, 0.25: 3, 0.125: 3} and is_free(cache)


def test_a_capture_that_fails_leaves_no_symbols():
    cache = {}

    def f(x):
        cache[x.shape[0]] = x.shape[0] * 2
        if x.shape[0] > 4:
            raise ValueError("too long")
        return x * 2

    run = pb.compile(f, backend="numpy", dynamic=True)
    for n in (3, 5, 6, 4):
        if n > 4:
            with pytest.raises(ValueError):
                run(pb.ones(n, 2))
        else:
            run(pb.ones(n, 2))
        assert is_free(cache)
    assert cache == {3: 6, 5: 10, 6: 12, 4: 8}
