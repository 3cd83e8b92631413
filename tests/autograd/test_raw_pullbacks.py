"""Pullbacks that run on arrays give what the same formulas give on handles."""

import numpy as np
import pytest

import pullback as torch
from pullback.core import tape
from pullback.core.op import registry
from pullback.core.overload import overload_of
from pullback.core.project import project
from pullback.eager import pullbacks as raw
from pullback.testing import samples
from pullback.threads.state import count, off, state


def raw_entries():
    """Entries whose formulas run on arrays, with the function that does."""
    for op in list(registry.values()):
        ov = overload_of(op)
        if op.samples is not None and ov.rule is not None and not any(ov.rule.lists):
            apply = raw.apply_of(ov.rule, sum(ov.rule.diff_outputs) > 1)
            if apply is not None:
                yield ov, apply


def node_of(ov, case):
    """The node of a sample call, and gradients for its outputs."""
    flat = [t.requires_grad_() if isinstance(t, torch.Tensor) and t.is_floating_point()
            and ov.schema.args[i].name in ov.rule.input_names else t
            for i, t in enumerate(samples.flat(ov.op, case))]  # fmt: skip
    out = ov.call(*flat)
    outs = [o for o in (out if isinstance(out, (tuple, list)) else [out]) if o is not None]
    node = next((o.grad_fn for o in outs if o.grad_fn is not None), None)
    if node is None or node.rule is not ov.rule:
        return None, ()
    grads = [None] * node.outputs
    for o in outs:
        if o.grad_fn is node and grads[o.output_nr] is None and o.output_nr == 0:
            grads[0] = torch.randn(o.shape, dtype=o.dtype)
    return node, grads


def run(node, grads, apply, active: int):
    """The gradients of a node's inputs, while nothing is recorded."""
    count("ACTIVE", active)
    off.add(run)
    before, state.record[0] = state.record[0], False
    try:
        return apply(node, list(grads), [e is not None for e in node.edges])
    finally:
        state.record[0] = before
        off.discard(run)
        count("ACTIVE", -active)


def test_raw_pullbacks_agree_with_those_on_handles():
    compared = 0
    for ov, apply in raw_entries():
        for case in samples.cases(ov.op)[:6]:
            node, grads = node_of(ov, case)
            if node is None or grads[0] is None:
                continue
            there = run(node, grads, tape.Node.apply, 1)
            here = run(node, grads, apply, 0)
            assert len(here) == len(there), case.label
            for a, b, meta in zip(here, there, node.metas):
                if meta is None:
                    continue
                assert (a is None) == (b is None), case.label
                if a is not None:
                    a, b = (project(t, *meta).detach().numpy() for t in (a, b))
                    np.testing.assert_allclose(a, b, 1e-12, 1e-12, err_msg=case.label)
                    compared += 1
    assert compared > 300


def trained(**kwargs):
    """Losses of a few steps of a small network that uses most of them."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
    head = torch.nn.Linear(8, 5)
    x, y = torch.randn(4, 3, 8), torch.tensor([0, 1, 2, 3])
    optimizer = torch.optim.SGD([*layer.parameters(), *head.parameters()], lr=0.1)
    losses = []
    for _ in range(12):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(head(layer(x).mean(1)), y)
        loss.backward(**kwargs)
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_training_is_the_same_when_the_graph_is_recorded():
    plain, recorded = trained(), trained(create_graph=True)
    np.testing.assert_allclose(plain, recorded, 1e-5)
    assert plain[-1] < plain[0]


def test_values_that_were_overwritten_are_noticed_on_arrays_too():
    for attempt in range(2 * tape.OFTEN):
        x, w = torch.randn(3, 4, requires_grad=True), torch.randn(4, 2, requires_grad=True)
        y = x @ w
        if attempt < 2 * tape.OFTEN - 1:
            y.sum().backward()
            continue
        with torch.no_grad():
            w.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def test_hooks_see_gradients_of_raw_pullbacks():
    x = torch.randn(3, 4, requires_grad=True)
    seen = []
    for _ in range(2 * tape.OFTEN):
        y = x.t()
        y.register_hook(lambda g: seen.append(tuple(g.shape)) or g * 2)
        x.grad = None
        y.reshape(2, 6).sum().backward()
        assert torch.equal(x.grad, torch.full((3, 4), 2.0))
    assert set(seen) == {(4, 3)}
