"""The least memory of networks of equal layers: never above eager execution, nor above the best
checkpointing by hand."""

import pytest

import pullback as torch
from bench import layers
from pullback.compile.meter import Planned
from pullback.cut import budget
from pullback.cut.partition import min_cut_rematerialization_partition as cut
from pullback.cut.simulate import Meter
from pullback.cut.split import JointGraph


def program_of(run, args):
    made = torch.compile(run, backend="numpy", options={"fuse_backward": False})
    made(*args)
    (program,) = made.programs.values()
    return program


@pytest.fixture(scope="module")
def small():
    """Twelve layers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(layers.NETWORKS, "small", (layers.dense, 12, 256, 64, 64))
        return layers.network(torch, "small")


@pytest.fixture(scope="module")
def joint(small):
    run, _, args = small
    return program_of(run, args).joint.module


@pytest.fixture(scope="module")
def hand(small):
    """The least memory by hand."""
    _, by_hand, args = small
    return min(layers.peak(torch, by_hand(k), args, 1) for k in (3, 4))


def test_segments_save_their_ends_alone(joint):
    joint = JointGraph(joint, 1)
    found = {way.name: [n.name for n in way.saved if n.op != "placeholder"]
             for way in budget.ways(joint)}
    for count in (2, 3, 4):
        # its ends and the result of the forward, which is there anyway; nothing of the backward
        saved = found[f"{count} of {count} segments computed again"]
        assert len(saved) == count and all(name.startswith(("tanh", "mm")) for name in saved)


@pytest.mark.parametrize("meter", [Meter, Planned])
def test_less_than_by_hand(joint, hand, meter):
    assert cut(joint, 1, memory=0.0, meter=meter()).report.phases.peak < hand


def test_by_hand_is_less_than_without(small, hand):
    run, _, args = small
    assert hand < layers.peak(torch, run, args, 1)


def test_what_is_measured(small, hand):
    run, _, args = small
    frugal = torch.compile(run, memory=hand)
    found = layers.peak(torch, frugal, args)
    assert found <= 1.02 * frugal.report().phases.peak <= 1.02 * hand
    assert "segments computed again" in frugal.report().way
    wanted = torch.autograd.grad(run(*args).sum(), args)
    for a, b in zip(torch.autograd.grad(frugal(*args).sum(), args), wanted):
        assert torch.allclose(a, b, atol=1e-5)
