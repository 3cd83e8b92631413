"""Functional tensors by hand: the mode, the switches below it, and graphs made of them."""

import pytest

import pullback as pb
from pullback.aot import aot_function, nop
from pullback.func import functionalize
from pullback.fx.make_fx import make_fx
from pullback.torch.functional_tensor import (
    FunctionalTensor,
    FunctionalTensorMode,
    dispatch_functionalize,
)


def by_switches(f, *args, reapply_views=True):
    """A function by the switches; arguments that were written get their new values."""
    inside = [pb._to_functional_tensor(a) for a in args]
    pb._enable_functionalization(reapply_views=reapply_views)
    try:
        out = f(*inside)
    finally:
        pb._disable_functionalization()
    for a, t in zip(args, inside):
        pb._sync(t)
        new = pb._from_functional_tensor(t)
        if new is not a:
            a.copy_(new)
    return pb._from_functional_tensor(out)


def writes(x):
    part = x.view(-1)[1:]
    part.mul_(3)
    x.add_(1)
    return part * 2


def test_switches_do_what_the_function_does():
    x, y = pb.arange(4.0).reshape(2, 2), pb.arange(4.0).reshape(2, 2)
    assert pb.equal(by_switches(writes, x), writes(y)) and pb.equal(x, y)


def test_no_memory_is_written_inside():
    x = pb.ones(3)

    def f(t):
        t.add_(1)
        assert x.sum().item() == 3 and t.sum().item() == 6
        return t

    assert by_switches(f, x).sum().item() == 6 and x.sum().item() == 6


@pytest.mark.parametrize("reapply", [True, False])
def test_graphs_of_switches_have_no_writes_but_the_last(reapply):
    gm = make_fx(lambda x: by_switches(writes, x, reapply_views=reapply))(pb.zeros(2, 2))
    names = [str(n.target) for n in gm.graph.nodes]
    assert sum(name.startswith("aten.copy") for name in names) == 1
    assert any("_copy." in name for name in names) is not reapply
    assert not any(name.startswith(("aten.mul_.", "aten.add_.")) for name in names)
    x, y = pb.arange(4.0).reshape(2, 2), pb.arange(4.0).reshape(2, 2)
    assert pb.equal(gm(x), writes(y)) and pb.equal(x, y)


def test_the_mode():
    x = pb.ones(3)
    with FunctionalTensorMode():
        t = FunctionalTensor.to_functional(x)
        seen = t[:2]
        t.mul_(4)
        out = seen + 1
        made = pb.zeros(2)
        assert all(isinstance(v, FunctionalTensor) for v in (t, seen, out, made))
    assert not isinstance(x, FunctionalTensor) and x.sum().item() == 3
    assert pb.equal(out.from_functional(), pb.full((2,), 5.0))
    assert pb.equal(pb._from_functional_tensor(t.elem), pb.full((3,), 4.0))
    assert pb.equal(pb._from_functional_tensor(seen), pb.full((2,), 4.0))


def test_graph_of_the_mode():
    def f(x):
        seen = x.view(-1)
        x.mul_(2)
        return seen + 1

    gm = make_fx(dispatch_functionalize(f))(pb.ones(2))
    assert not any("mul_" in str(n.target) or "copy_" in str(n.target) for n in gm.graph.nodes)
    x = pb.arange(2.0)
    assert pb.equal(gm(x), pb.arange(2.0) * 2 + 1) and pb.equal(x, pb.arange(2.0))


def test_what_is_no_functional_tensor():
    x = pb.ones(2)
    assert pb._from_functional_tensor(x) is x and not pb._is_functional_tensor(x)
    with pytest.raises(RuntimeError, match="takes functional tensors"):
        pb._sync(x)
    with pytest.raises(RuntimeError, match="outside of any FunctionalTensorMode"):
        FunctionalTensor.to_functional(x)
    with pytest.raises(TypeError, match="to_functional"):
        FunctionalTensor(x)


def test_frozen_memory_is_not_written():
    def f(x):
        y = x.clone()
        view = y[0]
        pb._freeze_functional_tensor(y)
        x.add_(1)
        for write in (lambda: y.add_(1), lambda: view.mul_(2), lambda: y.view(-1).zero_()):
            with pytest.raises(RuntimeError, match="cannot mutate tensors with frozen storage"):
                write()
        return view * 3

    x = pb.ones(2, 2)
    assert by_switches(f, x).tolist() == [3, 3] and x.sum().item() == 8
    with pytest.raises(RuntimeError, match="takes functional tensors"):
        pb._freeze_functional_tensor(x)


def test_a_copy_into_an_input_is_one_write():
    gm = make_fx(lambda x, y: x.copy_(y))(pb.ones(3), pb.ones(3))
    calls = [n for n in gm.graph.nodes if n.op == "call_function"]
    assert [str(n.target) for n in calls] == ["aten.copy_.default"]


def test_copies_in_a_ring_keep_their_order():
    def swap(x, y):
        old = x.clone()
        x.copy_(y)
        y.copy_(old)

    def turn(x, y):
        y.copy_(x)
        x.add_(1)

    for f in (swap, turn):
        gm = make_fx(f)(pb.ones(2), pb.ones(2))
        a, b, c, d = pb.ones(2), pb.zeros(2), pb.ones(2), pb.zeros(2)
        gm(a, b)
        f(c, d)
        assert pb.equal(a, c) and pb.equal(b, d)


def test_writes_to_overlapping_windows_are_refused():
    def overlapping(x):
        return (x + x).unfold(1, 3, 2).abs_()

    def apart(x):
        return (x + x).unfold(1, 2, 2).abs_()

    x = pb.ones(1, 5)
    assert functionalize(apart)(x).shape == (1, 2, 2)
    for function in (functionalize(overlapping), aot_function(overlapping, nop)):
        with pytest.raises(RuntimeError, match="tensor being mutated that has internal overlap"):
            function(x)
    assert overlapping(x).shape == (1, 2, 3)  # as ever in eager mode


def test_views_do_not_grow():
    def f(x):
        return (x + 1).view(4, 4).resize_(5, 5)

    with pytest.raises(RuntimeError, match=r"to a larger size\. This is not "
                                           "allowed in the functionalization pass"):
        functionalize(f)(pb.ones(8, 2))
