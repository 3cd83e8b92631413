"""The least memory of models of `bench/cut.py`: never above eager execution, nor above the best
checkpointing by hand (all of them: `python -m bench.checkpoints`)."""

import pytest

import pullback as torch
from bench import checkpoints, cut
from bench.layers import peak
from pullback.compile.meter import Planned
from pullback.cut.partition import min_cut_rematerialization_partition


@pytest.mark.parametrize("name", ["autoencoder", "norms"])
def test_no_more_than_eager_or_by_hand(name):
    torch.manual_seed(0)
    function, args = cut.MODELS[name](torch, torch.nn.functional)
    made = torch.compile(function, backend="numpy", options={"fuse_backward": False})
    made(*args)
    (program,) = made.programs.values()
    partition = min_cut_rematerialization_partition(
        program.joint.module, 1, memory=0.0, meter=Planned())
    least = partition.report.phases.peak
    assert least < peak(torch, function, args, 1)
    assert least < min(peak(torch, run, args, 1)
                       for _, run in checkpoints.by_hand(function, args))


def test_ways_by_hand():
    function, args = cut.MODELS["bodies"](torch, torch.nn.functional)
    ways = dict(checkpoints.by_hand(function, args))
    assert list(ways) == [
        "the model", "every 1 of 3", "every 1 of 3 but the last", "every 2 of 3",
        "every 2 of 3 but the last", "every 3 of 3"]
    wanted = torch.autograd.grad(function(*args), args)
    for run in ways.values():
        for a, b in zip(torch.autograd.grad(run(*args), args), wanted):
            assert torch.allclose(a, b, rtol=1e-4)
    whole, whole_args = cut.MODELS["elementwise"](torch, torch.nn.functional)
    assert [how for how, _ in checkpoints.by_hand(whole, whole_args)] == ["the model"]
