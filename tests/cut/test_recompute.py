"""What the cut does with checkpoints, draws, masks and pools in captured functions."""

import functools
import time

import numpy as np
import pytest

import pullback as torch
from pullback.cut.partition import default_partition, min_cut_rematerialization_partition
from pullback.nn import functional as F
from pullback.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

cut = min_cut_rematerialization_partition


def leaf(*shape):
    return (torch.randn(*shape, dtype=torch.float64) / 2).requires_grad_()


def compiled(function, *args, backend="numpy"):
    made = torch.compile(function, backend=backend, options={"fuse_backward": False})
    return made, made(*args)


def saved(made):
    """Names of what the only program saves."""
    (program,) = made.programs.values()
    return [n.name for n in program.graphs()[0].graph.output_node().args[0][program.count:]]


def targets(module):
    return [str(n.target) for n in module.graph.nodes if n.op == "call_function"]


def gradients(function, args, seed=None):
    if seed is not None:
        torch.manual_seed(seed)
    out = function(*args)
    return [out, *torch.autograd.grad(out.square().sum(), [a for a in args if a.requires_grad])]


def agree(function, args, backend="native"):
    """Values, gradients and the stream of random numbers are eager's."""
    run = torch.compile(function, backend=backend, options={"fuse_backward": False})
    for seed in (3, 4):
        ours = gradients(run, args, seed), torch.rand(2)
        theirs = gradients(function, args, seed), torch.rand(2)
        for a, b in zip(ours[0], theirs[0]):
            a, b = a.detach().numpy(), b.detach().numpy()
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)
        assert torch.equal(ours[1], theirs[1])
    return run


# Checkpoints --------------------------------------------------------------------------------------


def two_blocks(x, v, w, **how):
    def block(x, w):
        return F.dropout(torch.tanh(x @ w), 0.5) @ w

    x = checkpoint(block, x, v, use_reentrant=False, **how)
    return checkpoint(block, x, w, use_reentrant=False, **how).sin()


def args_of_blocks():
    torch.manual_seed(0)
    return [leaf(32, 32) for _ in range(3)]


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_checkpoint_saves_what_enters_it_and_the_state_of_its_draws(backend):
    run = agree(two_blocks, args_of_blocks(), backend)
    assert saved(run) == [
        "primals_1", "primals_2", "primals_3", "get_rng_state", "mm_1", "get_rng_state_1"
    ]
    backward = run.graphs()[1]
    assert targets(backward).count("run_with_rng_state") == 2
    report = cut(run.programs[next(iter(run.programs))].joint.module, 1).report
    reasons = {row.name: row.reason for row in report.rows}
    assert reasons["mm_1"] == "result of a checkpoint that another one reads"
    assert reasons["mm_2"] == "checkpoint policy PREFER_RECOMPUTE"


def test_drawing_again_leaves_the_generator_alone():
    args = args_of_blocks()
    _, out = compiled(two_blocks, *args)
    torch.manual_seed(7)
    before = torch.get_rng_state()
    out.sum().backward()
    assert torch.equal(torch.get_rng_state(), before)


def policy(context, op, *args, **kwargs):
    return CheckpointPolicy.MUST_SAVE if op == torch.ops.aten.mm.default else (
        CheckpointPolicy.PREFER_RECOMPUTE)


@pytest.mark.parametrize(
    ("chosen", "kept"),
    [
        (policy, {"mm", "mm_1", "mm_2", "mm_3"}),
        ([torch.ops.aten.tanh.default], {"tanh", "tanh_1"}),
        (lambda context, op, *args: op is torch.ops.aten.tanh.default, {"tanh", "tanh_1"}),
        (lambda *args: CheckpointPolicy.MUST_RECOMPUTE, set()),
    ],
    ids=["policy", "list", "bool", "all again"],
)
def test_selective_checkpoints_become_wishes(chosen, kept):
    contexts = functools.partial(create_selective_checkpoint_contexts, chosen)
    run = agree(functools.partial(two_blocks, context_fn=contexts), args_of_blocks())
    names = set(saved(run))
    assert kept <= names
    assert not (names - kept) & {"mm", "mm_2", "tanh", "tanh_1", "bernoulli", "bernoulli_1"}


def test_the_wishes_are_in_the_joint_graph():
    run, _ = compiled(
        lambda x: checkpoint(torch.sin, x, use_reentrant=False).cos(), leaf(4, 4))
    (program,) = run.programs.values()
    wishes = {n.name: n.meta.get("recompute") for n in program.joint.module.graph.nodes}
    assert wishes["sin"] is CheckpointPolicy.PREFER_RECOMPUTE
    assert wishes["cos"] is None


def test_a_loss_with_a_checkpoint_is_cut():
    def loss(x, w):
        return checkpoint(lambda x: torch.tanh(x @ w).exp(), x, use_reentrant=False).sum()

    run = torch.compile(loss, backend="numpy")
    args = leaf(8, 8), leaf(8, 8)
    ours, theirs = gradients(run, args), gradients(loss, args)
    assert all(map(torch.allclose, ours, theirs))
    assert saved(run) == ["primals_1", "primals_2"]


# Small forms --------------------------------------------------------------------------------------


def test_masks_are_saved_as_bytes():
    run = agree(lambda x, w: F.dropout(torch.tanh(x @ w), 0.3) @ w, [leaf(16, 16), leaf(16, 16)])
    forward = run.graphs()[0]
    masks = [n for n in forward.graph.output_node().args[0] if n.meta["val"].dtype == torch.bool]
    assert len(masks) == 1
    assert "bernoulli" not in saved(run)


@pytest.mark.parametrize(
    "how",
    [
        dict(kernel_size=2),
        dict(kernel_size=3, stride=2, padding=1),
        dict(kernel_size=(2, 3), stride=(1, 2), padding=(0, 1)),
        dict(kernel_size=2, dilation=2),
        dict(kernel_size=3, stride=2, padding=1, dilation=(1, 2), ceil_mode=True),
    ],
    ids=str,
)
def test_places_of_maxima_are_saved_as_bytes(how):
    x = torch.randn(2, 3, 9, 11, dtype=torch.float64, requires_grad=True)

    def pool(x):
        return F.max_pool2d(x.sin(), **how).exp()

    for backend in ("numpy", "native"):
        run = agree(pool, [x], backend)
    kinds = {n.meta["val"].dtype for n in run.graphs()[0].graph.output_node().args[0]}
    assert torch.uint8 in kinds
    assert torch.int64 not in kinds


def test_large_windows_keep_their_places():
    x = torch.randn(1, 1, 20, 20, dtype=torch.float64, requires_grad=True)
    run = agree(lambda x: F.max_pool2d(x.sin(), 16), [x])
    kinds = [n.meta["val"].dtype for n in run.graphs()[0].graph.output_node().args[0]]
    assert torch.uint8 not in kinds


def test_the_joint_graph_is_not_touched():
    run, _ = compiled(lambda x: F.dropout(F.max_pool2d(x, 2), 0.5), leaf(1, 1, 4, 4))
    (program,) = run.programs.values()
    module = program.joint.module
    before = module.graph.python_code("self").src
    cut(module, 1)
    default_partition(module, 1)
    assert module.graph.python_code("self").src == before


@pytest.mark.parametrize("how", [{}, {"is_causal": True}, {"dropout_p": 0.5}], ids=str)
def test_the_weights_of_attention_are_computed_again(how):
    args = [leaf(2, 3, 16, 4) for _ in range(3)]
    run = agree(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **how), args)
    forward = run.graphs()[0]
    square = [
        n for n in forward.graph.output_node().args[0]
        if tuple(n.meta["val"].shape)[-2:] == (16, 16) and n.meta["val"].dtype.is_floating_point
    ]
    assert not square


# Time ---------------------------------------------------------------------------------------------


def deep(depth):
    """The joint graph of a deep network, and the number of its results."""
    def f(x, *weights):
        for w in weights:
            x = x + torch.tanh(torch.layer_norm(x, (8,)) @ w) @ w
        return x

    run = torch.compile(f, backend="numpy")
    run(leaf(4, 8), *[leaf(8, 8) for _ in range(depth)])
    (program,) = run.programs.values()
    return program.joint.module


def test_the_cut_is_linear_in_depth():
    times = {}
    for depth in (10, 40):
        module = deep(depth)
        spent = []
        for _ in range(3):
            begun = time.process_time()
            cut(module, 1)
            spent.append(time.process_time() - begun)
        times[depth] = min(spent)
    assert times[40] < 7 * times[10]
