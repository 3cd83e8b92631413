"""Points of the Sobol sequence; values recorded from PyTorch 2.13."""

import numpy as np
import pytest

import pullback as pb
from pullback.quasirandom import SobolEngine


def test_the_first_points():
    engine = SobolEngine(5)
    assert engine.draw(4).tolist() == [[0, 0, 0, 0, 0], [0.5] * 5,
                                       [0.75, 0.25, 0.25, 0.25, 0.75],
                                       [0.25, 0.75, 0.75, 0.75, 0.25]]
    assert engine.num_generated == 4
    assert engine.quasi.tolist() == [268435456, 805306368, 805306368, 805306368, 268435456]
    rest = engine.draw(28, dtype=pb.float64)
    assert pb.equal(engine.reset().fast_forward(4).draw(28, dtype=pb.float64), rest)
    out = pb.empty(0)
    assert engine.reset().draw(2, out=out) is out and out.shape == (2, 5)


def test_scrambled_points():
    engine = SobolEngine(3, scramble=True, seed=7)
    assert engine.shift.tolist() == [214182645, 183537049, 804615878]
    assert engine.sobolstate[0, :4].tolist() == [545853173, 438452617, 257908810, 109232640]
    expected = [[0.1995, 0.1709, 0.7494], [0.6922, 0.7115, 0.4898], [0.8505, 0.2963, 0.7880]]
    assert np.allclose(engine.draw(3).numpy(), expected, atol=5e-5)
    assert repr(engine) == "SobolEngine(dimension=3, scramble=True, seed=7)"
    points = engine.reset().draw_base2(5).numpy()  # every 32nd of the line holds one
    for column in points.T:
        assert sorted((column * 32).astype(int)) == list(range(32))


def test_refusals():
    with pytest.raises(ValueError, match="dimensionality"):
        SobolEngine(0)
    engine = SobolEngine(2)
    engine.draw(3)
    with pytest.raises(ValueError, match="power of 2"):
        engine.draw_base2(2)
