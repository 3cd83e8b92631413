"""What the disk remembers of captured functions: a second compilation cuts and lowers nothing."""

import json
import os

import numpy as np
import pytest

import pullback as torch
from pullback import errors
from pullback.capture import build as api
from pullback.compile import cache, keys, native
from pullback.testing.two_tensor import TwoTensor
from pullback.utils.checkpoint import checkpoint

F = torch.nn.functional


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache; the runtime is loaded before."""
    native.runtime()
    native.product("f")
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_folder", None)
    return tmp_path / "cache"


@pytest.fixture
def work(monkeypatch):
    """How often graphs are simplified and cut."""
    from pullback.cut import partition

    counts = {"simplified": 0, "cut": 0}
    simplify, cut = api.simplify, partition.min_cut_rematerialization_partition

    def counted(name, function):
        def run(*args, **kwargs):
            counts[name] += 1
            return function(*args, **kwargs)

        return run

    monkeypatch.setattr(api, "simplify", counted("simplified", simplify))
    monkeypatch.setattr(partition, "min_cut_rematerialization_partition", counted("cut", cut))
    return counts


def writes(x, w):
    y = x.detach()
    y.mul_(2)
    return y + w.sum()


def aliases(x, w):
    y = x @ w
    return y.t(), y[0], x, x.view(-1), 3, w.detach()


class Cubed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 5 * grad * x * x  # not the derivative: this formula is the one that counts


def shapes_written(x, w):
    y = x.clone()
    y.t_()
    y.mul_(2)
    y[0].add_(w.sum())
    return y, y[1:]


def no_grad_part(x, w):
    with torch.no_grad():
        scale = (x @ w).abs().amax()
    return (x / scale) @ w


def hooked(x, w):
    y = x * 2
    if y.requires_grad:
        y.register_hook(lambda grad: grad * 3)
    return y @ w


def wrapped(x, w):
    two = TwoTensor(x, x * 2)
    out = two * w.sum()
    return out.a, out.b


FUNCTIONS = {
    "loss": lambda x, w: ((x @ w).relu() ** 2).mean(),
    "split": lambda x, w: (x @ w).tanh().sin(),
    "no gradient": lambda x, w: (x @ w).detach().exp(),
    "input itself": lambda x, w: (x, (x * w.sum()).reshape(x.shape)),
    "draws": lambda x, w: F.dropout(x, 0.5) @ w,
    "constant": lambda x, w: x * torch.tensor([[1.0, 2.0, 3.0]]) + torch.arange(3),
    "normed": lambda x, w: F.layer_norm(x @ w, (4,)).softmax(-1),
    "writes": writes,
    "aliases": aliases,
    "custom function": lambda x, w: Cubed.apply(x) @ w,
    "shapes written": shapes_written,
    "no_grad part": no_grad_part,
    "hooked": hooked,
    "same argument": lambda x, w: (lambda a, b: a * b + a)(x, x) @ w,
    "sizes": lambda x, w: (x.expand(x.shape) @ w / x.shape[0], x.size(), x.numel()),
    "autocast": lambda x, w: torch.autocast("cpu")(torch.mm)(x, w).float(),
    "checkpoint": lambda x, w: checkpoint(lambda a: (a @ w).sin(), x, use_reentrant=False),
    "wrapped": wrapped,
}


def outcome(function):
    """Results, inputs and gradients of a call; the second one takes the short way."""
    found = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        x = torch.randn(2, 3, requires_grad=True)
        w = torch.randn(3, 4, requires_grad=True)
        out = function(x, w)
        tensors = [t for t in (out if isinstance(out, tuple) else (out,)) if torch.is_tensor(t)]
        tracked = [t for t in tensors if t.requires_grad]
        if tracked:
            sum((t * t).sum() for t in tracked).backward()
        found += [*tensors, x, w, x.grad, w.grad]
    return [None if t is None else t.detach().numpy().copy() for t in found]


def same(a, b):
    assert len(a) == len(b)
    for x, y in zip(a, b):
        assert (x is None) is (y is None)
        if x is not None:
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_second_compilation_finds_everything(name, folder, work):
    f = FUNCTIONS[name]
    first = outcome(torch.compile(f))
    for a, b in zip(first, outcome(f)):
        assert (a is None) is (b is None) and (a is None or np.allclose(a, b, atol=1e-6))
    before, misses = dict(work), cache.info()["misses"]
    assert before["simplified"]
    same(outcome(torch.compile(f)), first)
    assert work == before and cache.info()["misses"] == misses


def test_symbolic_sizes_find_everything(folder, work):
    """One entry serves all sizes, in the next process, too."""
    f = FUNCTIONS["normed"]

    def several(function):
        found = []
        for n in (2, 3, 5):
            torch.manual_seed(n)
            x, w = torch.randn(n, 3, requires_grad=True), torch.randn(3, 4)
            out = function(x, w)
            out.pow(2).sum().backward()
            found += [out.detach().numpy().copy(), x.grad.numpy().copy()]
        return found

    first = several(torch.compile(f, dynamic=True))
    for a, b in zip(first, several(f)):
        np.testing.assert_allclose(a, b, atol=1e-5)
    misses, compiled = cache.info()["misses"], cache.info()["compiled"]
    same(several(torch.compile(f, dynamic=True)), first)
    assert cache.info()["misses"] == misses and cache.info()["compiled"] == compiled


def test_graphs_and_second_derivatives_are_made_when_asked_for(folder, work):
    f = FUNCTIONS["split"]
    outcome(torch.compile(f))
    cold = torch.compile(f)
    x = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    w = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    cold(x, w).sum().backward()
    done = dict(work)
    known = torch.compile(f)
    known(x, w).sum().backward()
    assert work == done
    forward, backward = known.graphs()
    assert "tanh" in forward.code and "tangents_1" in backward.code
    assert forward.code == cold.graphs()[0].code
    assert str(known.report()) and work["cut"] == done["cut"] + 1
    assert torch.autograd.gradgradcheck(torch.compile(f), (x, w))


def test_other_settings_are_other_entries(folder, work):
    f = FUNCTIONS["split"]
    first = outcome(torch.compile(f))
    for change in (
        lambda: torch.compile(f, memory="1MB"),
        lambda: torch.compile(f, options={"fuse_backward": False}),
    ):
        count = work["simplified"]
        for a, b in zip(outcome(change()), first):
            assert a is None or np.allclose(a, b, atol=1e-6)
        assert work["simplified"] > count


def test_another_version_finds_nothing(folder, work, monkeypatch):
    f = FUNCTIONS["loss"]
    first = outcome(torch.compile(f))
    count = work["simplified"]
    monkeypatch.setattr(keys, "package_stamp", lambda: "another")
    same(outcome(torch.compile(f)), first)
    assert work["simplified"] > count


def entries(folder, *suffixes):
    return [p for p in sorted(folder.glob("*/*")) if p.suffix in suffixes]


def test_flipped_bits_and_missing_ends_are_noticed(folder):
    f = FUNCTIONS["split"]
    outcome(torch.compile(f))
    kept = entries(folder, ".facts", ".forward", ".backward", ".plan")
    assert {p.suffix for p in kept} == {".facts", ".forward", ".backward", ".plan"}
    for path in kept:
        whole = path.read_bytes()
        for at in range(0, len(whole), 1 if len(whole) < 400 else 37):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1:])
            assert cache.read_sealed(path.name) is None
            path.write_bytes(whole[:at])
            assert cache.read_sealed(path.name) is None
        path.write_bytes(whole)
        assert cache.read_sealed(path.name) is not None


@pytest.mark.parametrize("suffix", [".facts", ".forward", ".backward", ".fused", ".plan", ".so"])
def test_broken_entries_are_made_again(folder, suffix):
    f = FUNCTIONS["loss" if suffix == ".fused" else "split"]
    first = outcome(torch.compile(f))
    broken = entries(folder, suffix)
    assert broken
    for path in broken:
        data = path.read_bytes()
        os.unlink(path)  # a loaded object stays as it is
        path.write_bytes(data[: len(data) // 2])
    same(outcome(torch.compile(f)), first)
    assert all(cache.read_sealed(path.name) is not None for path in broken)


@pytest.mark.parametrize("entry", [
    [], {}, {"plan": "none", "title": "x", "saved": None}, {"plan": 3, "title": "x", "saved": []},
    {"plan": "../../x", "title": "x", "saved": None}])
def test_entries_of_another_form_are_not_believed(folder, entry):
    f = FUNCTIONS["split"]
    first = outcome(torch.compile(f))
    for path in entries(folder, ".forward", ".backward", ".facts"):
        cache.write_sealed(path.name, json.dumps(entry).encode())
    same(outcome(torch.compile(f)), first)


def test_a_full_disk_is_no_error(folder, monkeypatch):
    f = FUNCTIONS["loss"]
    expected = outcome(f)

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(cache.os, "replace", full)
        with pytest.warns(errors.CompileWarning):
            found = outcome(torch.compile(f))
    for a, b in zip(found, expected):
        assert a is None or np.allclose(a, b, atol=1e-6)


def test_entries_that_cannot_be_written_are_left_out(folder, monkeypatch):
    f = FUNCTIONS["split"]
    write = cache.write_sealed

    def refuse(name, data):
        if not name.endswith(".plan"):
            raise PermissionError(13, "Permission denied")
        return write(name, data)

    monkeypatch.setattr(cache, "write_sealed", refuse)
    first = outcome(torch.compile(f))
    same(outcome(torch.compile(f)), first)
    assert not entries(folder, ".facts", ".forward", ".backward")
