"""Saved-tensor hooks around compiled calls: they see what the cut saves."""

import gc

import numpy as np
import pytest

import pullback as torch
from pullback.autograd.graph import save_on_cpu, saved_tensors_hooks
from pullback.fx.make_fx import make_fx
from pullback.nn import functional as F

BACKENDS = ["numpy", "native"]


def net(x, w, v):
    return torch.tanh(x @ w).exp() @ v


def args(dtype=torch.float64):
    torch.manual_seed(0)
    return [(torch.randn(8, 8, dtype=dtype) / 2).requires_grad_() for _ in range(3)]


def gradients(function, inputs):
    out = function(*inputs)
    return [out, *torch.autograd.grad(out.sin().sum(), inputs)]


def same(ours, theirs, **how):
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), **how)


class Counting:
    """Hooks that write down what they are given."""

    def __init__(self):
        self.packed, self.opened = [], 0

    def pack(self, t):
        self.packed.append(t)
        return t

    def unpack(self, t):
        self.opened += 1
        return t

    def __enter__(self):
        self.hooks = saved_tensors_hooks(self.pack, self.unpack)
        self.hooks.__enter__()
        return self

    def __exit__(self, *exc):
        self.hooks.__exit__(*exc)


@pytest.mark.parametrize("backend", BACKENDS)
def test_hooks_get_what_is_saved_at_every_call(backend):
    inputs = args()
    run = torch.compile(net, backend=backend)
    expected = gradients(net, inputs)
    for _ in range(3):
        with Counting() as seen:
            out = run(*inputs)
        assert len(seen.packed) == len(run.report().saved)
        assert not seen.opened
        found = [out, *torch.autograd.grad(out.sin().sum(), inputs)]
        assert seen.opened == len(seen.packed)
        same(found, expected, rtol=1e-9)
        # inputs are the user's own tensors
        assert {id(t) for t in seen.packed} & {id(t) for t in inputs} == {id(t) for t in inputs}
    count = len(seen.packed)
    run(*inputs).sum().backward()  # without hooks
    assert len(seen.packed) == count


def test_a_loss_is_cut_while_there_are_hooks():
    inputs = args()
    run = torch.compile(lambda *a: net(*a).sum())
    run(*inputs).backward()
    with Counting() as seen:
        loss = run(*inputs)
    assert seen.packed
    found = torch.autograd.grad(loss, inputs)
    same(found, torch.autograd.grad(net(*inputs).sum(), inputs), rtol=1e-9)


@pytest.mark.parametrize("backend", BACKENDS)
def test_changed_values_reach_the_backward(backend):
    inputs = args()
    run = torch.compile(net, backend=backend)
    out = run(*inputs)
    clean = torch.autograd.grad(out.sum(), inputs)
    with saved_tensors_hooks(lambda t: t, lambda t: t * 0):
        out = run(*inputs)
    zero = torch.autograd.grad(out.sum(), inputs)
    assert all(float(g.abs().max()) > 0 for g in clean)
    assert float(zero[0].abs().max()) == 0


def test_saving_elsewhere(tmp_path):
    inputs = args()
    run = torch.compile(net)
    expected = gradients(net, inputs)
    with save_on_cpu():
        same(gradients(run, inputs), expected, rtol=1e-9)
    files = []

    def to_disk(t):
        files.append(tmp_path / f"{len(files)}.npy")
        np.save(files[-1], t.detach().numpy())
        return files[-1]

    with saved_tensors_hooks(to_disk, lambda path: torch.from_numpy(np.load(path))):
        out = run(*inputs)
    gc.collect()
    assert files
    same([out, *torch.autograd.grad(out.sin().sum(), inputs)], expected, rtol=1e-9)


def test_a_value_of_another_shape_is_refused():
    inputs = args()
    run = torch.compile(net)
    with saved_tensors_hooks(lambda t: t, lambda t: t.float()):
        out = run(*inputs)
    with pytest.raises(torch.errors.ShapeError, match=r"float32.*float64"):
        out.sum().backward()


def test_hooks_inside_of_the_function_are_part_of_it():
    def halves(x):
        with saved_tensors_hooks(lambda t: t * 1, lambda t: t * 2):
            return x.exp()

    x = torch.ones(3, requires_grad=True)
    run = torch.compile(halves, backend="numpy")
    for _ in range(2):
        (grad,) = torch.autograd.grad(run(x).sum(), x)
        np.testing.assert_allclose(grad.numpy(), 2 * np.e, rtol=1e-6)
    assert len(run.programs) == 1


# Hooks that are graphs ----------------------------------------------------------------------------


def quantise(t):
    scale = t.abs().amax() / 448 + 1e-12
    return (t / scale).to(torch.float8_e4m3fn), scale


def restore(kept):
    values, scale = kept
    return values.to(scale.dtype) * scale


def graphs(like):
    pack = make_fx(quantise)(like)
    return pack, make_fx(restore)(quantise(like))


def block(x, w, v):
    return F.gelu(F.layer_norm(x, (8,)) @ w) @ v


@pytest.mark.parametrize("backend", BACKENDS)
def test_graphs_become_part_of_the_program(backend):
    inputs = args(torch.float32)
    pack, unpack = graphs(torch.ones(8, 8))
    run = torch.compile(block, backend=backend)
    plain = gradients(run, inputs)
    with saved_tensors_hooks(pack, unpack):
        out = run(*inputs)
        packed_program = list(run.programs.values())[-1]
    found = [out, *torch.autograd.grad(out.sin().sum(), inputs)]
    forward, backward = packed_program.graphs()
    kinds = [n.meta["val"].dtype for n in forward.graph.output_node().args[0]]
    assert torch.float8_e4m3fn in kinds
    text = str(backward.code)
    assert "_to_copy" in text or "convert_element_type" in text
    assert not torch.equal(found[1], plain[1])
    for a, b in zip(found, plain):
        assert float((a - b).abs().max()) < 0.1 * float(b.abs().max())
    again = gradients(run, inputs)  # without hooks: the other program
    same(again, plain, rtol=0)
    assert len(run.programs) == 2


@pytest.mark.parametrize("mode", ["donated", "no_static", "all"])
def test_for_which_values(mode):
    inputs = args(torch.float32)
    pack, unpack = (make_fx(f)(torch.ones(8, 8)) for f in (torch.neg, torch.neg))
    run = torch.compile(lambda x, w, v: torch.tanh(x @ w) @ v, backend="numpy")
    setting = torch.aot.config.patch(saved_tensors_hooks_filtering_mode=mode)
    with setting, saved_tensors_hooks(pack, unpack):
        found = gradients(run, inputs)
    same(found, gradients(lambda x, w, v: torch.tanh(x @ w) @ v, inputs), rtol=1e-5)
    (program,) = run.programs.values()
    results = program.graphs()[0].graph.output_node().args[0][1:]
    count = sum(n.op == "call_function" and str(n.target).startswith("aten.neg") for n in results)
    assert count == {"donated": 1, "no_static": 1, "all": len(results)}[mode]


def test_graphs_that_write_are_refused():
    inputs = args(torch.float32)
    pack = make_fx(lambda t: t * 1)(torch.ones(8, 8))
    writing = torch.fx.symbolic_trace(lambda t: t.mul_(2))
    run = torch.compile(net, backend="numpy")
    with saved_tensors_hooks(pack, writing), pytest.raises(
            torch.errors.NotDifferentiable, match="mutations are not allowed"):
        run(*inputs)


def test_graphs_that_change_the_shape_are_refused():
    inputs = args(torch.float32)
    pack = make_fx(lambda t: t[:1])(torch.ones(8, 8))
    unpack = make_fx(lambda t: t * 1)(torch.ones(1, 8))
    run = torch.compile(net, backend="numpy")
    with saved_tensors_hooks(pack, unpack), pytest.raises(
            torch.errors.ShapeError, match="unpack hook makes"):
        run(*inputs)


def test_hooks_that_are_graphs_and_a_result_that_is_an_input():
    double = make_fx(lambda x: x * 2)(torch.ones(8, 8))
    half = make_fx(lambda x: x / 2)(torch.ones(8, 8))
    x, w, _ = args()
    run = torch.aot.aot_function(lambda x, w: ((x @ w).exp(), w), torch.aot.nop, torch.aot.nop)
    with saved_tensors_hooks(double, half):
        out, same_w = run(x, w)
    assert same_w is w
    found, = torch.autograd.grad(out.sum(), x)
    assert torch.allclose(found, torch.autograd.grad((x @ w).exp().sum(), x)[0])
