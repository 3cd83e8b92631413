"""`x.data` and `x.detach()` in compiled functions, and inputs that are written after their use."""

from __future__ import annotations

import pytest

import pullback as pb


def halved_by_data(x, w):
    w.data.mul_(0.5)
    return (w * x).sum()


def halved_by_detach(x, w):
    w.detach().mul_(0.5)
    return (w * x).sum()


def written_after_use(x, w):
    y = w * x
    w.data.mul_(0.5)
    return (w * y).sum()


def written_without_grad(x, w):
    y = w * x
    with pb.no_grad():
        w.mul_(0.5)
    return (w * y).sum()


def part_of_data(x, w):
    w.data[0] = 7
    w.data[1:].add_(1)
    return (w * x).sum()


def data_replaced(x, w):
    w.data = w.data * 0.5
    return (w * x).sum()


def data_of_a_result(x, w):
    y = w * 2
    y.data.mul_(3)
    return (y * x).sum()


def view_of_data(x, w):
    alias = w.data
    w.data.add_(1)
    return (w * alias).sum()


FUNCTIONS = (halved_by_data, halved_by_detach, written_after_use, written_without_grad,
             part_of_data, data_replaced, data_of_a_result, view_of_data)  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_as_eager(function, backend):
    results = []
    for run in function, pb.compile(function, backend=backend):
        w, found = pb.tensor([1.0, 2.0, 3.0], requires_grad=True), []
        for _ in range(3):
            w.grad = None
            loss = run(pb.tensor([1.0, 2.0, 4.0]), w)
            loss.backward()
            found.append((loss.item(), w.grad.tolist(), w.tolist(), w.is_leaf))
        results.append(found)
    assert results[0] == results[1]


@pytest.mark.parametrize("way", ["data", "assign", "detach"])
def test_buffers_from_outside(way):
    def f(x):
        if way == "data":
            module.mean.data.copy_(module.mean * 0.5 + x)
        elif way == "assign":
            module.mean.data = module.mean.data * 0.5 + x
        else:
            module.mean.detach().lerp_(x, 0.5)
        return (module.mean * x).sum()

    results = []
    for run in f, pb.compile(f):
        module = pb.nn.Module()
        module.register_buffer("mean", pb.zeros(3))
        results.append([run(pb.ones(3)).item() for _ in range(3)] + module.mean.tolist())
    assert results[0] == results[1]


def test_a_buffer_whose_old_value_the_backward_needs():
    def f(x, buffer, w):
        y = w * buffer.exp()
        buffer.mul_(0.5)
        return (y * x).sum()

    gradients = []
    for run in f, pb.compile(f):
        w, buffer = pb.ones(2, requires_grad=True), pb.ones(2)
        run(pb.ones(2), buffer, w).backward()
        assert buffer.tolist() == [0.5, 0.5]
        gradients.append(w.grad)
    assert pb.allclose(*gradients)


def test_detached_aliases_inside_of_transforms():
    def f(x):
        y = x * 2
        y.detach().add_(1)
        return (y * y).sum()

    x = pb.tensor([1.0, 2.0])
    assert pb.func.grad(f)(x).tolist() == [12.0, 20.0]
    assert pb.func.vmap(lambda v: f(v[None]))(x).tolist() == [9.0, 25.0]
