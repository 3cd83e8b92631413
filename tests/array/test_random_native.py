"""Random arrays made by C against those made by NumPy: the same numbers."""

import numpy as np
import pytest

import pullback as pb
from pullback.array import random as rng
from pullback.array.generator import Generator
from pullback.compile import fills

F32 = np.dtype(np.float32)


@pytest.fixture
def by_c():
    """Fill every array by C."""
    if fills.library(build=True) is None:
        pytest.fail("random.c could not be compiled")


@pytest.fixture
def by_numpy(monkeypatch):
    """A function that draws with NumPy alone."""

    def draw(function, *args):
        with monkeypatch.context() as patch:
            patch.setattr(rng, "_drawn", -(1 << 62))
            patch.setattr(Generator, "by_c", None)
            return function(*args)

    return draw


@pytest.mark.cc
@pytest.mark.parametrize("count", [16, 17, 31, 624, 625, 5000, 70001])
def test_same_numbers(count, by_c, by_numpy):
    one, two = (Generator().manual_seed(3) for _ in range(2))
    for gen in (one, two):
        rng.uniform(gen, (5,), F32)  # not at the start of the twister's words
    for function, *numbers in [(rng.uniform,), (rng.uniform, -0.1, 0.3), (rng.normal,),
                               (rng.normal, 1.5, 0.02)]:
        ours = function(one, (count,), F32, *numbers)
        theirs = by_numpy(function, two, (count,), F32, *numbers)
        assert ours.tobytes() == theirs.tobytes()
    for p in (0.0, 0.3, 0.9, 2.0**-53, 1.0):
        for dtype in (F32, np.dtype(bool), np.dtype(np.float16), np.dtype(np.int64)):
            ours = rng.bernoulli(one, p, (count,), dtype)
            theirs = by_numpy(rng.bernoulli, two, p, (count,), dtype)
            assert ours.dtype == dtype and ours.tobytes() == theirs.tobytes()
    for dtype in (np.int64, np.int32, np.float32):
        ours = rng.randperm(one, count, np.dtype(dtype))
        assert ours.dtype == dtype and sorted(ours) == list(range(count))
        assert ours.tobytes() == by_numpy(rng.randperm, two, count, np.dtype(dtype)).tobytes()
    assert pb.equal(one.get_state(), two.get_state())
    assert one.draw64(count).tobytes() == by_numpy(two.draw64, count).tobytes()


@pytest.mark.cc
def test_fills_write_the_tensor_itself(by_c, by_numpy):
    for name, *numbers in [("uniform_", -1.0, 2.0), ("normal_", 0.5, 2.0)]:
        drawn = []
        for drawer in (lambda function, *args: function(*args), by_numpy):
            pb.manual_seed(1)
            x = pb.zeros(40, 50)
            address, version = x.data_ptr(), x._version
            assert drawer(getattr(x, name), *numbers) is x
            assert x.data_ptr() == address and x._version == version + 1
            drawer(getattr(x.t(), name), *numbers)  # strided: by way of another array
            drawer(getattr(x[3:7], name), *numbers)
            drawn.append(x.numpy().copy())
        assert drawn[0].tobytes() == drawn[1].tobytes()
    with pytest.raises(RuntimeError, match="std >= 0"):
        x.normal_(0, -1)
    assert x.numpy().tobytes() == drawn[0].tobytes()


def test_sums_are_rounded_once():
    # in float64 the sum is rounded to halfway between two float32: the rest decides
    high, low = 1 + 2.0**-24, 2.0**-60
    x = np.full(4096, high)
    assert np.float32(high + low) == 1  # what rounding twice gives
    assert (rng._rounded_sum(x, low) == np.float32(1 + 2.0**-23)).all()
    assert (rng._rounded_sum(x, -low) == 1).all()
    assert (rng._rounded_sum(x, 0.0) == 1).all()  # a tie: to even
    assert (rng._rounded_sum(-x, -low) == np.float32(-1 - 2.0**-23)).all()


def test_it_is_loaded_and_built_when_drawing_has_taken_as_long(monkeypatch):
    asked = []
    monkeypatch.setattr(fills, "library", lambda build: asked.append(build))
    monkeypatch.setattr(Generator, "by_c", None)
    monkeypatch.setattr(rng, "_drawn", 0)
    gen = Generator().manual_seed(0)
    for _ in range(100):
        rng.uniform(gen, (100,), F32)
    assert asked == [False]  # is it there? Asked once
    rng.bernoulli(gen, 0.5, (5 << 20,), np.dtype(bool))
    rng.uniform(gen, (5 << 20,), F32)
    assert asked == [False, True]  # NumPy goes on where it could not be built


def test_without_a_compiler(monkeypatch):
    monkeypatch.setattr(fills, "library", lambda build: None)
    monkeypatch.setattr(Generator, "by_c", None)
    monkeypatch.setattr(rng, "_drawn", 0)
    gen = Generator().manual_seed(0)
    drawn = rng.normal(gen, (1 << 15,), F32)
    assert abs(drawn.mean()) < 0.03 and abs(drawn.std() - 1) < 0.03
