"""`disable_functionalization`: in-place operators stay in the graphs, in their order.

Literal graphs are PyTorch 2.13's. What a user sees of the program is compared by the oracle;
`test_semantics.py` and `test_behaviours.py` do so with their cases.
"""

import numpy as np
import pytest

import pullback as pb
from pullback import aot
from pullback.array import dtype as dt
from pullback.core.handle import Tensor
from pullback.core.op import registry
from pullback.core.overload import overload_of
from pullback.core.stack import bind
from pullback.testing import samples
from tests.helpers.custom_functions import saving
from tests.helpers.oracle import check
from tests.helpers.random_programs import make_program


@pytest.mark.parametrize("seed", range(0, 60, 10))
def test_random_programs(seed):
    for number in range(seed, seed + 10):
        function, start, _ = make_program(number)
        check(function, start, ways=("writing",), writes=(True,), orders=(1,))


def lines(f, *args, backward=False):
    """The graphs of forward and backward, without what frees values."""
    found = {}

    def compiler(name):
        def compile(module, _):
            body = module.code.strip().splitlines()[1:]
            found[name] = [line.strip().partition(";")[0].replace("torch.ops.aten.", "")
                           for line in body]
            return module
        return compile

    out = aot.aot_function(f, compiler("forward"), compiler("backward"),
                           disable_functionalization=True)(*args)
    if backward:
        out.sum().backward()
    return found


def leaf():
    return pb.ones(3, requires_grad=True)


def test_intermediate():
    def f(x):
        y = x * 2
        y.add_(1)
        return y.sin()

    assert lines(f, leaf(), backward=True) == {
        "forward": ["mul = mul.Tensor(primals_1, 2)", "add_ = add_.Tensor(mul, 1)",
                    "sin = sin.default(add_)", "return (sin, add_)"],
        "backward": ["cos = cos.default(add_)", "mul_1 = mul.Tensor(tangents_1, cos)",
                     "mul_2 = mul.Tensor(mul_1, 2)", "return (mul_2,)"]}


def test_view():
    def f(x):
        y = x * 2
        y[0].add_(1)
        return y.sin()

    assert lines(f, leaf())["forward"] == [
        "mul = mul.Tensor(primals_1, 2)", "select = select.int(mul, 0, 0)",
        "add_ = add_.Tensor(select, 1)", "sin = sin.default(mul)", "return (sin, mul)"]


def test_input():
    def f(x, y):
        y.add_(1)
        return x * y

    x, y = leaf(), pb.ones(3)
    assert lines(f, x, y)["forward"] == [
        "add_ = add_.Tensor(primals_2, 1)", "mul = mul.Tensor(primals_1, add_)",
        "return (add_, mul, add_)"]
    assert y.tolist() == [2, 2, 2] and y._version == 1


class Doubles(saving(pb.clone)):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        x.mul_(2)
        return grad * x


def test_write_of_the_backward_is_in_the_backward():
    found = lines(lambda x, y: Doubles.apply(x * 1) * y, leaf(), pb.ones(3), backward=True)
    assert not any("mul_." in line for line in found["forward"])
    assert "mul_ = mul_.Tensor(mul, 2)" in found["backward"]


@pytest.mark.parametrize("wrap", [
    pb.compile, lambda f: aot.aot_function(f, aot.nop),
    lambda f: aot.aot_function(f, aot.nop, disable_functionalization=True)])
def test_backward_writes_into_saved_inputs(wrap):
    x, b = leaf(), pb.ones(3)

    class Scaled(pb.autograd.Function):
        @staticmethod
        def forward(ctx, x, b):
            ctx.save_for_backward(b)
            b.add_(1)
            return x * b

        @staticmethod
        def backward(ctx, grad):
            (b,) = ctx.saved_tensors
            b.mul_(2)
            return grad * b, None

    out = wrap(lambda x, b: Scaled.apply(x, b))(x, b)
    assert b.tolist() == [2, 2, 2] and b._version == 1
    out.sum().backward()
    assert b.tolist() == [4, 4, 4] and b._version == 2 and x.grad.tolist() == [4, 4, 4]


def test_old_value_that_is_wanted_stays():
    """PyTorch's graph would overwrite what the backward reads; ours keeps the pure operator."""
    def f(x):
        y = x.sin()
        z = y * y
        y.add_(1)
        return z + y

    x = pb.rand(3, dtype=pb.float64).requires_grad_()
    out = aot.aot_function(f, aot.nop, disable_functionalization=True)(x)
    (grad,) = pb.autograd.grad(out.sum(), x)
    s, c = np.sin(x.detach().numpy()), np.cos(x.detach().numpy())
    np.testing.assert_allclose(grad.numpy(), 2 * s * c + c)


def test_operators():
    """A sample of the table, each result written in place."""
    count = 0
    for name in sorted(registry)[::9]:
        op = registry[name]
        ov = overload_of(op)
        if ov.is_random or ov.is_view or ov.kind == "composite" or "empty" in name:
            continue
        case = next(iter(samples.cases(op, dt.float64)), None)
        flat = [] if case is None else list(samples.flat(op, case))
        slots = [place for place in samples.places(flat) if place[1] is None]

        def f(*tensors, ov=ov, flat=flat, slots=slots):
            out = bind(ov, samples.replaced(flat, slots, tensors))
            out = [t for t in (out if isinstance(out, (tuple, list)) else [out])
                   if isinstance(t, Tensor) and t.dtype.is_floating_point]
            return [t.mul_(2) for t in out]

        def run(g, flat=flat, slots=slots):
            pb.manual_seed(0)
            tensors = [flat[i].clone() for i, _ in slots]
            tensors = [t.requires_grad_() if t.dtype.is_floating_point else t for t in tensors]
            out = g(*tensors)
            ends = [t for t in out if t.requires_grad]
            grads = pb.autograd.grad(sum((t * t).sum() for t in ends), [
                t for t in tensors if t.requires_grad], allow_unused=True) if ends else ()
            return [t.detach().numpy() for t in out] + [
                np.zeros(()) if g is None else g.numpy() for g in grads]

        try:
            expected = run(f)
        except (RuntimeError, NotImplementedError, TypeError):
            continue  # has no derivative, or takes no such arguments
        try:
            found = run(aot.aot_function(f, aot.nop, disable_functionalization=True))
        except pb.errors.DataDependentError:
            continue
        for a, b in zip(expected, found):
            np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-9, err_msg=name)
        count += 1
    assert count > 40
