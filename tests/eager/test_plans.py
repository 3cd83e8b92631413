"""Calls that come often are done by a plan: it gives what the general way gives."""

import itertools

import numpy as np
import pytest

import pullback as torch
from pullback.core.overload import OFTEN
from pullback.table.packets import Packet, _methods, ops

DTYPES = (torch.bool, torch.uint8, torch.int32, torch.int64, torch.float16, torch.float32,
          torch.float64, torch.complex64)
CALLS = {
    "mul": lambda x, y: x * y,
    "sub": lambda x, y: x - y,
    "eq": lambda x, y: x == y,
    "lt": lambda x, y: x < y,
    "and": lambda x, y: x & y,
    "floor_divide": lambda x, y: x // y,
    "remainder": lambda x, y: x % y,
    "twice": lambda x, y: x * 2,
    "more": lambda x, y: x > 1,
    "less": lambda x, y: 2 - x,
    "half": lambda x, y: x * 0.5,
    "not": lambda x, y: ~x,
    "negative": lambda x, y: -x,
    "clamp": lambda x, y: x.clamp(0, 2),
    "where": lambda x, y: torch.where(x == y, x, y),
    "where_number": lambda x, y: torch.where(x == y, x, 1.5),
    "zeros": lambda x, y: torch.zeros([2, 3], dtype=x.dtype, device=x.device),
    "index_add": lambda x, y: x.index_add(0, torch.tensor([2, 0, 2]), y),
    "gather": lambda x, y: x.gather(0, torch.tensor([2, 0, 2, 1])),
}


def outcome(call, x, y):
    """What a call gives: a tensor's dtype and values, or an error."""
    try:
        out = call(x, y)
    except (RuntimeError, TypeError, NotImplementedError) as error:
        return type(error), str(error).split(" (")[0]
    return out.dtype, out.tolist()


def first(call, x, y):
    """What it gives where nothing has come before."""
    for packet in (*vars(ops).values(), *_methods.values()):
        if isinstance(packet, Packet):
            packet.forget()
    return outcome(call, x, y)


@pytest.mark.parametrize("name", CALLS)
def test_plans_give_what_the_general_way_gives(name):
    numbers = np.array([0, 1, 3]), np.array([1, 1, 2])
    pairs = [tuple(torch.from_numpy(n.astype(d.np)) for n, d in zip(numbers, both))
             for both in itertools.product(DTYPES, repeat=2)
             if both[0] == both[1] or torch.float32 in both]
    expected = [first(CALLS[name], *pair) for pair in pairs]
    for _ in range(OFTEN + 2):
        assert [outcome(CALLS[name], *pair) for pair in pairs] == expected


def test_whole_numbers_have_plans(monkeypatch):
    def refuse(self, *args, **kwargs):
        raise AssertionError(f"{self.name} went the general way")

    i, m = torch.arange(4), torch.tensor([True, False, True, True])
    calls = [lambda: i * 2, lambda: i + i, lambda: i == i, lambda: i > 1, lambda: m & m,
             lambda: torch.mul(i, 2), lambda: torch.where(m, i, i),
             lambda: torch.zeros(3, device=i.device)]
    for call in calls:
        for _ in range(2 * OFTEN):
            call()
    monkeypatch.setattr(Packet, "resolve", refuse)
    for call in calls:
        call()


def test_integers_beside_a_plan_for_them_are_still_recorded():
    for _ in range(OFTEN + 1):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = torch.where(torch.tensor([True, False]), x, 3 * x) * torch.tensor([2, 2])
        y.sum().backward()
        assert x.grad.tolist() == [2, 6]
        (torch.tensor([1, 2]) * torch.tensor([1, 2])).sum()
