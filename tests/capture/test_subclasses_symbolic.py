"""Wrapper subclasses with symbolic sizes: compiled once, outer sizes and strides are arguments."""

import pytest

import pullback as torch
from pullback import _dynamo as dynamo
from pullback.aot import aot_function
from pullback.testing.two_tensor import TwoTensor
from pullback.utils._pytree import tree_leaves

SIZES = (4, 3), (6, 3), (5, 7), (4, 4), (1, 3)


def two(*size):
    return TwoTensor(torch.randn(*size), torch.randn(*size))


def four(*size):
    return TwoTensor(two(*size), two(*size))


KINDS = {
    "two": (two, two), "first": (two, torch.randn), "second": (torch.randn, two),
    "nested": (four, four), "transposed": (lambda m, n: two(n, m).t(), two),
    "sliced": (lambda m, n: two(m, 2 * n)[:, ::2], two)}
PROGRAMS = {
    "pointwise": lambda x, y: (x.sin() * y.cos()).exp() + 1,
    "product": lambda x, y: (x.t() @ y, (x @ y.t()).softmax(-1)),
    "views": lambda x, y: (x.t(), x[1:], (y * 2).view(-1), x, x.t() * 2),
    "sizes": lambda x, y: (x * x.shape[0] + y.stride(0), x.shape[0], tuple(y.shape)),
    "shapes": lambda x, y: (torch.cat([x, y]), x.sum(0).expand(x.shape) + y, x[None] * y[:, None]),
    "made": lambda x, y: x + torch.ones(x.shape[0], 1) * y.numel(),
    "branch": lambda x, y: x * 2 if x.shape[0] > 4 else y * x,
}


def parts(t):
    """What is inside of a wrapper, all the way down."""
    if not isinstance(t, TwoTensor):
        return [t.detach()]
    return [*parts(t.a), *parts(t.b)]


def outcome(function, x, y, grad):
    x, y = (t.detach().requires_grad_(grad) for t in (x, y))
    out = tree_leaves(function(x, y))
    tensors = [t for t in out if isinstance(t, torch.Tensor)]
    facts = [(type(t), t.shape, t.stride()) if isinstance(t, torch.Tensor) else t for t in out]
    if grad:
        seeds = [torch.ones_like(t) for t in tensors]
        grads = torch.autograd.grad(tensors, [x, y], seeds, allow_unused=True)
        tensors += [g for g in grads if g is not None]
        facts += [None if g is None else (type(g), g.shape) for g in grads]
    return facts, [p for t in tensors for p in parts(t)]


def agree(compiled, function, make, size):
    torch.manual_seed(0)
    x, y = (m(*size) for m in make)
    for grad in (False, True):
        (facts, values), (expected, right) = (
            outcome(f, x, y, grad) for f in (compiled, function))
        assert facts == expected
        for a, b in zip(values, right, strict=True):
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_all_sizes(name, kind):
    program = PROGRAMS[name]
    compiled = torch.compile(program, backend="numpy", dynamic=True)
    literal = aot_function(program, lambda m, _: m, dynamic=True)
    for size in SIZES:
        agree(compiled, program, KINDS[kind], size)
        agree(literal, program, KINDS[kind], size)


def test_one_capture_serves_all():
    compiled = torch.compile(PROGRAMS["shapes"], backend="numpy", dynamic=True)
    for size in SIZES[:3]:
        compiled(two(*size), two(*size))
    assert not compiled.recompiles
    compiled(two(1, 3), two(1, 3))
    (reason,) = compiled.recompiles
    assert "x.a.size(0) is 1, the program is for at least 2" in reason


def test_the_second_size_makes_a_dimension_dynamic():
    compiled = torch.compile(lambda x: x * x.shape[0], backend="numpy")
    for size in ((4, 3), (5, 3), (9, 3), (9, 4), (7, 8)):
        compiled(two(*size))
    assert [r.rpartition("): ")[2] for r in compiled.recompiles] == [
        "x.a.size(0) is 5, the program is for 4", "x.a.size(1) is 4, the program is for 3"]


def test_marks_reach_what_is_inside():
    x = two(4, 3)
    dynamo.mark_dynamic(x, 0)
    assert x.a._dynamo_dynamic_indices == {0}
    compiled = torch.compile(lambda x: x * x.shape[0], backend="numpy")
    for value in (x, two(5, 3), two(6, 3)):
        assert torch.equal(compiled(value).a, value.a * value.shape[0])
    assert not compiled.recompiles


def graphs(function, *args):
    seen = []
    f = aot_function(function, lambda m, _: seen.append(m.code.strip()) or m, dynamic=True)
    for make, size in ((args, (4, 3)), (args, (6, 7))):
        given = [m(*size).requires_grad_(grad) for m, grad in make]
        out = f(*given)
        if isinstance(out, torch.Tensor) and out.requires_grad:
            torch.autograd.grad(out, given, torch.ones_like(out))
    return seen


def test_graphs_have_outer_sizes_and_strides():  # texts are PyTorch's
    assert graphs(lambda x: x * 2, (two, False)) == ["""\
def forward(self, arg0_1, arg1_1, arg2_1, arg3_1, arg4_1):
    mul = torch.ops.aten.mul.Tensor(arg0_1, 2);  arg0_1 = None
    mul_1 = torch.ops.aten.mul.Tensor(arg1_1, 2);  arg1_1 = None
    return (mul, mul_1, arg2_1, arg4_1, arg4_1)"""]
    assert graphs(lambda x, y: (x * y).sum(0), (two, True), (torch.ones, True)) == ["""\
def forward(self, primals_1, primals_2, primals_3, primals_4, primals_5, primals_6):
    mul = torch.ops.aten.mul.Tensor(primals_1, primals_6)
    mul_1 = torch.ops.aten.mul.Tensor(primals_2, primals_6)
    sum_1 = torch.ops.aten.sum.dim_IntList(mul, [0]);  mul = None
    sum_2 = torch.ops.aten.sum.dim_IntList(mul_1, [0]);  mul_1 = None
    return (sum_1, sum_2, primals_5, primals_1, primals_2, primals_6, primals_3, primals_5)""", """\
def forward(self, primals_3, primals_5, primals_1, primals_2, primals_6, tangents_1, tangents_2):
    unsqueeze = torch.ops.aten.unsqueeze.default(tangents_1, 0);  tangents_1 = None
    unsqueeze_1 = torch.ops.aten.unsqueeze.default(tangents_2, 0);  tangents_2 = None
    expand = torch.ops.aten.expand.default(unsqueeze, [primals_3, primals_5]);  unsqueeze = None
    expand_1 = torch.ops.aten.expand.default(unsqueeze_1, [primals_3, primals_5]);  \
unsqueeze_1 = None
    mul_2 = torch.ops.aten.mul.Tensor(expand, primals_1);  primals_1 = None
    mul_3 = torch.ops.aten.mul.Tensor(expand_1, primals_2);  primals_2 = None
    mul_4 = torch.ops.aten.mul.Tensor(expand, primals_6);  expand = None
    mul_5 = torch.ops.aten.mul.Tensor(expand_1, primals_6);  expand_1 = primals_6 = None
    return (mul_4, mul_5, primals_3, primals_5, primals_5, mul_2, mul_3, primals_3, primals_5, \
primals_5)"""]


def test_sizes_among_results_are_of_the_forward():
    """A size that only gradients of outputs have, when the results are looked at last."""
    f = aot_function(lambda x: (torch.cat([x, x]).sin(), torch.cat([x, x]).shape[0], x.numel()),
                     lambda m, _: m, dynamic=True)
    for n in (3, 4):
        x = torch.randn(n, 5, requires_grad=True)
        out, rows, count = f(x)
        out.sum().backward()
        assert (rows, count) == (2 * n, 5 * n) and torch.allclose(x.grad, 2 * x.cos())
