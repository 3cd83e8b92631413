"""Pointwise operators of a tracked tensor and a Python number, by the function that is generated
on the first call: it gives what the general way gives.
"""

import pytest

import pullback as torch
from pullback.core.op import families
from pullback.core.overload import overload_of
from pullback.core.stack import bind
from pullback.table.packets import ops


def _families():
    for name, entries in sorted(families.items()):
        for op in entries:
            if op.kind != "pointwise" or not (op.grad or op.constant):
                continue
            args = overload_of(op).schema.args
            if len(args) > 1 and args[0].is_tensor and args[1].name in op.scalars and all(
                    a.has_default for a in args[2:]):
                yield name, op


@pytest.mark.parametrize("name, op", list(_families()), ids=lambda v: v if type(v) is str else "")
def test_the_second_call_with_a_number(name, op):
    def run(call):
        x = torch.tensor([0.5, 0.75, 0.9], dtype=torch.float64, requires_grad=True)
        try:
            out = call(x, 2)
        except RuntimeError as refusal:
            return str(refusal).partition("(")[0], None, None
        if not out.requires_grad:
            return out.tolist(), None, None
        (grad,) = torch.autograd.grad(out.sum(), x, allow_unused=True)
        return out.tolist(), type(out.grad_fn).__name__, None if grad is None else grad.tolist()

    def general(x, number):
        ov = overload_of(op)
        return bind(ov, ov.bind((x, number), {}))

    wanted = run(general)
    packet = getattr(ops, name)
    for _ in range(3):
        assert run(packet) == wanted


def test_floor_division_again_and_again():
    x = torch.tensor([1.0, 5.0, -3.0], requires_grad=True)
    for _ in range(3):
        y = x // 2
        assert y.tolist() == [0.0, 2.0, -2.0]
    (y.sum() + x.sum()).backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]
