"""The short way into compiled programs: taken by calls like an earlier one, by no others."""

import gc
import weakref

import numpy as np
import pytest

import pullback as torch
from pullback import nn
from pullback.capture import fast_guards as short
from pullback.capture.compiled import Compiled
from pullback.compile import native


@pytest.fixture(params=["python", "native"], autouse=True)
def form(request, monkeypatch):
    """Both forms of the comparison do the same."""
    if request.param == "native":
        native.runtime()
    else:
        monkeypatch.setattr(short, "same_call", short.SameCall)


@pytest.fixture
def general(monkeypatch):
    """The calls that came in by the general way."""
    calls, real = [], Compiled._general

    def counted(self, args, kwargs):
        calls.append(args)
        return real(self, args, kwargs)

    monkeypatch.setattr(Compiled, "_general", counted)
    return calls


def same(f, g, *args):
    """Does a compiled function give what the function gives?"""
    assert torch.equal(f(*args), g(*args))


def test_calls_like_the_last_one(general):
    def scaled(x, factor, flag=True):
        return x * factor if flag else x + factor

    f = torch.compile(scaled)
    for number in range(4):
        same(f, scaled, torch.full((3,), float(number)), 2.0)
    assert len(general) == 1


def test_tensors_without_dimensions(general):
    def scaled(x, factor):
        return x * factor

    f = torch.compile(scaled)
    for number in range(4):
        same(f, scaled, torch.tensor(float(number)), torch.tensor(3.0))
    assert len(general) == 1
    same(f, scaled, torch.ones(1), torch.tensor(3.0))
    assert len(general) == 2


def test_arguments_by_name(general):
    def f(x, other=None, *, factor=1.0, shift=None):
        return x * factor if shift is None else x * factor + shift

    compiled, x, s = torch.compile(f), torch.ones(2), torch.full((2,), 3.0)
    calls = [((x,), {"factor": 2.0, "shift": s}), ((x,), {"shift": s, "factor": 2.0}),
             ((x, "factor", ), {"factor": 2.0}), ((x,), {"other": "factor", "factor": 2.0}),
             ((x,), {"factor": 2.0})]
    for args, kwargs in calls:
        for _ in range(3):
            assert torch.equal(compiled(*args, **kwargs), f(*args, **kwargs))
    assert len(general) == len(calls)


def test_sizes_and_modes_in_turn(general):
    def double(x):
        return x * 2

    f, w = torch.compile(double, dynamic=False), torch.ones(3, requires_grad=True)
    for _ in range(3):
        same(f, double, torch.ones(2))
        same(f, double, w)
        with torch.no_grad():
            assert not f(w).requires_grad
        assert f(w).requires_grad
    assert len(general) == 3


@pytest.mark.parametrize("other", [
    torch.ones(4), torch.ones(3, dtype=torch.float64), torch.ones(6)[::2], torch.ones(1, 3),
    torch.ones(3, requires_grad=True), torch.ones(3, 3)[0]], ids=str)
def test_another_tensor(general, other):
    def double(x):
        return x * 2

    f = torch.compile(double)
    f(torch.ones(3))
    out, want = f(other), double(other)
    assert torch.equal(out, want) and out.dtype == want.dtype
    assert out.requires_grad == want.requires_grad
    assert len(general) == 2


def test_another_number():
    def scaled(x, factor):
        return x * factor

    f = torch.compile(scaled)
    for factor in (2, 2.0, True, 3, 2):
        x = torch.arange(3)
        same(f, scaled, x, factor)
        assert f(x, factor).dtype == scaled(x, factor).dtype


def test_a_view_whose_base_got_a_history():
    f = torch.compile(lambda x: x * 3)
    f(torch.ones(3))
    base, w = torch.ones(2, 3), torch.ones(2, 3, requires_grad=True)
    view = base[0]
    base.mul_(w)
    f(view).sum().backward()
    assert w.grad.tolist() == [[3, 3, 3], [0, 0, 0]]


def test_a_gradient_that_was_not_there():
    f = torch.compile(lambda x: x * 1 if x.grad is None else x * 2)
    x = torch.ones(2, requires_grad=True)
    assert f(x).tolist() == f(x).tolist() == [1, 1]
    x.grad = torch.ones(2)
    assert f(x).tolist() == f(x).tolist() == [2, 2]


class Layer(nn.Module):
    """A module with all that a program may depend on."""

    def __init__(self):
        super().__init__()
        self.parts = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
        self.factor = 2

    def forward(self, x):
        return self.parts(x) * self.factor


def test_calls_of_a_module(general):
    m = Layer().eval()
    f, x = torch.compile(m), torch.ones(2, 3)
    for _ in range(3):
        same(f, m, x)
    m.parts[0].weight = nn.Parameter(torch.zeros(3, 3))
    same(f, m, x)
    m.parts[0].weight.data = torch.ones(3, 3)
    same(f, m, x)
    assert len(general) == 1


@pytest.mark.parametrize("change", [
    lambda m: setattr(m, "factor", 3),
    lambda m: setattr(m.parts, "0", nn.Linear(3, 3, bias=False)),
    lambda m: m.parts.append(nn.ReLU()),
    lambda m: setattr(m.parts[0], "weight", nn.Parameter(torch.ones(5, 3))) or setattr(
        m.parts[0], "bias", None),
    lambda m: setattr(m.parts[0].weight, "data", torch.ones(3, 3, dtype=torch.float64).T),
    lambda m: m.requires_grad_(False),
], ids=["number", "part", "more", "size", "dtype", "history"])
def test_a_module_that_changed(general, change):
    m = Layer().eval()
    f, x = torch.compile(m), torch.ones(2, 3)
    same(f, m, x)
    same(f, m, x)
    change(m)
    if m.parts[0].weight.dtype == torch.float64:
        m, x = m.double(), x.double()
    same(f, m, x)
    assert f(x).requires_grad == m(x).requires_grad
    assert len(general) == 2


def test_parts_in_another_order():
    m = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    f, x = torch.compile(m), -torch.ones(3, 2)
    same(f, m, x)
    m._modules["0"] = m._modules.pop("0")
    same(f, m, x)


def test_training_in_turn(general):
    m = Layer()
    f, x = torch.compile(m), torch.ones(4, 3)
    for _ in range(3):
        m.eval()
        same(f, m, x)
        m.train()
        torch.manual_seed(0)
        out = f(x)
        torch.manual_seed(0)
        assert torch.equal(out, m(x))
    assert len(general) == 2


def test_variables(general):
    w, factor, table = torch.ones(2, requires_grad=True), 2, {"shift": 1.0}

    def g(x):
        return x * w * factor + table["shift"]

    f, x = torch.compile(g), torch.ones(2)
    for _ in range(2):
        same(f, g, x)
    w = torch.full((2,), 5.0, requires_grad=True)
    same(f, g, x)
    assert len(general) == 1
    factor = 3
    same(f, g, x)
    table["shift"] = 2.0
    same(f, g, x)
    w = 4.0
    same(f, g, x)
    assert len(general) == 4


def test_nothing_is_kept_alive():
    m = nn.Linear(2, 2)
    f = torch.compile(m)
    x = torch.ones(1, 2)
    f(x)
    f(x)
    old, given = weakref.ref(m.weight), weakref.ref(x)
    m.weight, x = nn.Parameter(torch.zeros(2, 2)), None
    gc.collect()
    assert old() is None and given() is None
    last = weakref.ref(m)
    del m, f
    gc.collect()
    assert last() is None


def test_the_place_of_a_call_is_the_users():
    m = nn.Linear(2, 2)
    f, x = torch.compile(m), torch.ones(1, 2)
    for _ in range(2):
        code, _ = f(x).grad_fn.where
        assert code is test_the_place_of_a_call_is_the_users.__code__


def test_tensors_around_arrays_of_its_own():
    f = torch.compile(lambda x: x * torch.from_numpy(np.array([1.0, 2.0], np.float32)))
    for _ in range(3):
        assert f(torch.ones(2)).tolist() == [1, 2]
