"""Graphs cut by hand, the backward cut once more, and partitioners of users."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pullback as torch
from pullback.aot import aot_function, nop
from pullback.cut.extraction import (
    _extract_fwd_bwd_modules,
    _extract_fwd_bwd_outputs,
    _extract_graph_with_inputs_outputs,
    is_sym_node,
    split_backward,
)
from pullback.cut.partition import (
    PartitionError,
    default_partition,
    min_cut_rematerialization_partition,
)


def net(x, w, v):
    return torch.tanh(torch.layer_norm(x @ w, (6,))) @ v


def halves(partition):
    torch.manual_seed(0)
    args = [torch.randn(5, 6, requires_grad=True), *[
        torch.randn(6, 6, requires_grad=True) for _ in range(2)]]
    run = torch.compile(net, backend="numpy", options={"fuse_backward": False})
    run(*args)
    (program,) = run.programs.values()
    forward, backward = partition(program.joint.module, 1)
    saved = forward(*[a.detach() for a in args])[1:]
    inputs = [*saved, torch.ones(5, 6)]
    return backward, inputs


@pytest.mark.parametrize("partition", [default_partition, min_cut_rematerialization_partition])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_a_backward_as_two(partition, count):
    backward, inputs = halves(partition)
    whole = backward(*inputs)
    first, second = split_backward(backward, count)
    early = first(*inputs)
    late = second(*early[count:])
    for ours, theirs in zip((*early[:count], *late), whole, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    both = [{n.name for n in g.graph.nodes if n.op == "call_function"} for g in (first, second)]
    assert not both[0] & both[1]
    if count == 1:  # the last weight's gradient needs nothing of the input's
        assert sum(n.op == "call_function" for n in second.graph.nodes) >= 2


def test_more_gradients_than_there_are():
    backward, _ = halves(default_partition)
    with pytest.raises(PartitionError, match="returns 3 gradients"):
        split_backward(backward, 4)


def test_by_hand_under_pytorchs_names():
    """A backward whose placeholders are not called tangents, cut at values of one's choice."""
    backward, inputs = halves(default_partition)
    for node in [n for n in backward.graph.nodes if n.op == "placeholder"]:
        if "tangents" in node.name:
            with backward.graph.inserting_before(node):
                new = backward.graph.placeholder("given")
                new.meta.update(node.meta)
            node.replace_all_uses_with(new)
            backward.graph.erase_node(node)
    backward.recompile()
    first, second, said, _ = _extract_fwd_bwd_outputs(backward, num_fwd_outputs=1)
    assert (len(first), len(second)) == (1, 2)
    places = [n for n in backward.graph.nodes if n.op == "placeholder"]
    part = _extract_graph_with_inputs_outputs(
        backward.graph, places, first, said, "forward", ignore_must_be_in_fw_bw=True)
    names = {n.name for n in part.nodes if n.op != "output"}
    saved = [
        n for n in backward.graph.nodes
        if n.name in names and not is_sym_node(n) and any(u.name not in names for u in n.users)
    ]
    early, late = _extract_fwd_bwd_modules(
        backward, saved, saved_sym_nodes=[], num_fwd_outputs=1, ignore_must_be_in_fw_bw=True,
        omit_aot_autograd_runtime=True)
    found = early(*inputs)
    for ours, theirs in zip((found[0], *late(*found[1:])), backward(*inputs), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


class Mine:
    """A partitioner that is an object."""

    def __init__(self):
        self.calls = []

    def __call__(self, joint, inputs, **rest):
        self.calls.append((len(inputs), sorted(rest)))
        return min_cut_rematerialization_partition(joint, inputs, **rest)

    def uuid(self):
        return "mine"


def test_a_partitioner_that_is_an_object():
    mine = Mine()
    run = aot_function(net, nop, partition_fn=mine)
    args = [torch.randn(6, 6, requires_grad=True) for _ in range(3)]
    found = torch.autograd.grad(run(*args).sum(), args)
    for ours, theirs in zip(found, torch.autograd.grad(net(*args).sum(), args)):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-4, atol=1e-5)
    assert len(mine.calls) == 1
    assert "num_fwd_outputs" in mine.calls[0][1]
    assert run.report().saved


def test_pytorchs_paths(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import pullback\n"
        "pullback.install_as_torch()\n"
        "from torch._functorch.partitioners import (default_partition, is_sym_node,\n"
        "    min_cut_rematerialization_partition, _extract_fwd_bwd_modules)\n"
        "import functorch.compile\n"
        "from functorch.compile import aot_function, nop\n"
        "m = functorch.compile.min_cut_rematerialization_partition\n"
        "import torch, torch._functorch.config as config\n"
        "from torch.utils.checkpoint import CheckpointPolicy\n"
        "assert m is min_cut_rematerialization_partition\n"
        "x = torch.ones(3, requires_grad=True)\n"
        "def part(joint, inputs, **kw):\n"
        "    return m(joint, inputs, 'inductor', static_lifetime_input_indices=[], **kw)\n"
        "with config.patch(activation_memory_budget=0.5):\n"
        "    aot_function(lambda x: x.sin().cos(), nop, partition_fn=part)(x).sum().backward()\n"
        "print(x.grad.shape)\n"
    )
    root = str(Path(torch.__file__).parents[1])
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True,
                          check=False, env={**os.environ, "PYTHONPATH": root})
    assert done.stdout == "torch.Size([3])\n", done.stderr
