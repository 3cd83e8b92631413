"""Random programs of views and writes against a model of memory without mutation.

The model keeps the memory of a base as one flat tensor and a view as the places of its elements;
a write makes a new flat tensor.  After the program, the value and the gradient of the base and of
every view that was made on the way, however stale, must be those of the model.
"""

import random

import numpy as np
import pytest

import pullback as torch
from tests.helpers.interrupts import tracing


def _strided(a, size, stride, offset):
    item = a.itemsize
    return np.lib.stride_tricks.as_strided(a.reshape(-1)[offset:], size, [s * item for s in stride])


def choices(r, places, depth):
    """(what the view does to a tensor, what it does to an array of places), for one view."""
    shape = places.shape
    yield lambda x: x.unsqueeze(0), lambda p: p[None]
    yield lambda x: x[...], lambda p: p
    if len(shape):
        d = r.randrange(len(shape))
        n = shape[d]
        i = r.randrange(n)
        key = (slice(None),) * d
        yield lambda x: x.select(d, i), lambda p: p[(*key, i)]
        yield lambda x: x.narrow(d, i, n - i), lambda p: p[(*key, slice(i, None))]
        yield lambda x: x[::2], lambda p: p[::2]
        yield lambda x: x.movedim(d, 0), lambda p: np.moveaxis(p, d, 0)
        if n >= 2:
            windows = np.lib.stride_tricks.sliding_window_view
            yield lambda x: x.unfold(d, 2, 2), lambda p: windows(p, 2, d)[(*key, slice(0, None, 2))]
    if len(shape) >= 2:
        yield lambda x: x.transpose(0, -1), lambda p: p.swapaxes(0, -1)
        yield lambda x: x.diagonal(), lambda p: np.diagonal(p, 0, 0, 1)
    if not depth and places.size >= 8:
        yield (lambda x: x.as_strided((2, 3), (4, 1), 1), lambda p: _strided(p, (2, 3), (4, 1), 1))


class Program:
    """The same steps on tensors that are overwritten and on the model."""

    def __init__(self, seed: int):
        self.r = random.Random(seed)
        shape = self.r.choice([(12,), (3, 4), (2, 3, 2), (4, 4)])
        count = int(np.prod(shape))
        self.leaf = torch.arange(1, count + 1, dtype=torch.float64).div(7).requires_grad_()
        self.other = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
        self.base = (self.leaf * 1.5).reshape(shape).clone()
        self.memory = self.leaf * 1.5
        self.views = [(self.base, np.arange(count).reshape(shape), 0)]

    def step(self):
        r = self.r
        x, places, depth = r.choice(self.views)
        if r.random() < 0.5:
            view, same = r.choice(list(choices(r, places, depth)))
            self.views.append((view(x), same(places), depth + 1))
            return
        index = torch.tensor(places.reshape(-1))
        old = self.memory.index_select(0, index).reshape(places.shape)
        kind = r.randrange(5)
        if kind == 0:
            x.mul_(self.other)
            new = old * self.other
        elif kind == 1:
            x.sin_()
            new = old.sin()
        elif kind == 2:
            x.copy_(self.other * self.other)
            new = (self.other * self.other).expand(places.shape)
        elif kind == 3:
            x.zero_()
            new = torch.zeros(places.shape, dtype=torch.float64)
        else:  # what another view shows goes into this one
            y, more, _ = r.choice([v for v in self.views if v[1].size])
            picked = torch.tensor(more.reshape(-1))
            x.add_(y.sum())
            new = old + self.memory.index_select(0, picked).sum()
        self.memory = self.memory.index_put([index], new.reshape(-1))

    def check(self):
        for x, places, _ in self.views:
            index = torch.tensor(places.reshape(-1))
            model = self.memory.index_select(0, index).reshape(places.shape)
            np.testing.assert_allclose(x.detach().numpy(), model.detach().numpy(), rtol=1e-12)
            w = torch.arange(1, places.size + 1, dtype=torch.float64).reshape(places.shape)
            inputs = (self.leaf, self.other)
            options = {"retain_graph": True, "allow_unused": True, "materialize_grads": True}
            ours = torch.autograd.grad(x, inputs, w, **options)
            want = torch.autograd.grad(model, inputs, w, **options)
            for g, h in zip(ours, want, strict=True):
                np.testing.assert_allclose(g.numpy(), h.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("block", range(10))
def test_random_programs(block):
    for seed in range(block * 15, block * 15 + 15):
        program = Program(seed)
        for _ in range(14):
            program.step()
        program.check()


def test_batched_and_second_derivatives_of_regenerated_views():
    x = torch.tensor([0.3, -0.4, 0.5, 0.7], dtype=torch.float64, requires_grad=True)

    def program(x):
        y = (x * 1).reshape(2, 2).clone()
        column = y[:, 1]
        deep = y.t()[1].unsqueeze(0).squeeze(0)[1:]
        y.sin_()
        deep.mul_(x[0])
        return column * column

    assert torch.autograd.gradcheck(program, (x,), check_batched_grad=True)
    assert torch.autograd.gradgradcheck(program, (x,))


def lines_of(function) -> int:
    """How many lines of Python run."""
    count = 0

    def look(frame, event, arg):
        nonlocal count
        count += event == "line"
        return look

    with tracing(look):
        function()
    return count


def test_long_chains_of_views_are_linear():
    """A view of a view of a view ... costs the same at any depth, and so does a write to it."""
    def run(depth):
        v = y = torch.ones(8, requires_grad=True) * 2
        for i in range(depth):
            v = v.view(2, 4) if i % 2 else v.view(8)
            if i % 10 == 0:
                v.mul_(1.0)
        return y, v

    run(50)
    assert lines_of(lambda: run(1000)) < 11 * lines_of(lambda: run(100))
    y, v = run(1000)
    assert v._base is y and v.sum().item() == 16
    v.sum().backward()


def turned(x):
    """An older view is written after the layout of its base has changed in place."""
    y = x * 2
    v = y[0]
    y.t_()
    v.mul_(x[1])
    y.unsqueeze_(0)
    return y * torch.arange(6.0, dtype=torch.float64).reshape(1, 3, 2)


def test_bases_that_change_their_layout():
    x = torch.arange(1.0, 7, dtype=torch.float64).reshape(2, 3).requires_grad_()
    y = torch.cat([(x[0] * 2 * x[1])[None], x[1:] * 2]).t()[None]
    expected = y * torch.arange(6.0, dtype=torch.float64).reshape(1, 3, 2)
    assert turned(x).tolist() == expected.tolist()
    (want,) = torch.autograd.grad(expected.sum(), x)
    (have,) = torch.autograd.grad(turned(x).sum(), x)
    assert have.tolist() == want.tolist()
    total = torch.func.grad(lambda x: turned(x).sum())(x.detach())
    assert total.tolist() == want.tolist()
    batch = torch.func.vmap(turned)(x.detach()[None].expand(2, 2, 3))
    assert batch[1].tolist() == expected.tolist()
    tangent = torch.func.jvp(turned, (x.detach(),), (torch.ones(2, 3, dtype=torch.float64),))[1]
    assert abs(tangent.sum().item() - want.sum().item()) < 1e-9


def test_views_of_other_bases():
    x = torch.ones(2, 3, requires_grad=True)
    y = x * 2
    v = y[0]
    other = torch.arange(6.0).view(2, 3)
    assert v._view_func(other).tolist() == [0, 1, 2]
    assert y._view_func(other) is None and v._view_func(torch.ones(5)) is None
    with torch.autograd._force_original_view_tracking(True):
        w = y[1]
    y.mul_(2)
    assert w.grad_fn.name() == "SelectBackward0" and v.grad_fn.name() == "AsStridedBackward0"


def test_one_copy_of_an_expanded_tensor_is_written():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    y.expand(3, 2)[-1].mul_(3)
    assert y.tolist() == [3, 6]
    y.sum().backward()
    assert x.grad.tolist() == [3, 3]
