"""Checks of operators that are no functions of values: facts, random numbers, memory, streams."""

import pytest

import pullback as torch
from pullback import func
from pullback.core.op import Composite
from pullback.nested.strided import StridedNested
from pullback.nested.tensor import NestedTensor
from tests.helpers.own_entries import entry

from .cases import LENGTHS

aten = torch.ops.aten


def parts():
    torch.manual_seed(5)
    return [torch.randn(n, 3, dtype=torch.float64) for n in LENGTHS]


def jagged():
    return torch.nested.as_nested_tensor(parts(), layout=torch.jagged)


def compiled(function):
    return torch.compile(function, fullgraph=True)


def dummy():
    values = torch.ones(2)
    found = aten._nested_get_jagged_dummy.default(values)
    assert found.is_nested and found.layout is torch.jagged and found.dtype is values.dtype
    around = aten._nested_view_from_jagged.default(values, torch.tensor([0, 2]), found)
    assert around.tolist() == [[1, 1]]
    of_nested = aten._nested_get_jagged_dummy.default(jagged())
    assert of_nested.is_nested and of_nested.dtype is torch.float64


def lengths():
    x = jagged()
    assert aten._nested_get_lengths.default(x) is None
    short = x[:, :2]
    found = aten._nested_get_lengths.default(short)
    assert found.tolist() == [min(n, 2) for n in LENGTHS]
    scaled = compiled(lambda t: t * aten._nested_get_lengths.default(t).sum())
    assert torch.equal(scaled(short), short * 7)


def shortest():
    x = jagged()
    assert aten._nested_get_min_seqlen.default(x).shape == (1, 0)
    with torch._dynamo.config.patch(capture_scalar_outputs=True):  # it is read from the offsets
        out = compiled(lambda t: aten._nested_get_min_seqlen.default(t) + 1)(x)
    assert out.shape == (1, 0)


def empty():
    x = jagged()
    for run in (aten.empty_like.default, compiled(aten.empty_like.default)):
        out = run(x)
        assert out.shape == x.shape and out.dtype is x.dtype and out.is_nested
    assert aten.empty_like.default(x, dtype=torch.int64).dtype is torch.int64
    assert not aten.empty_like.default(x.requires_grad_()).requires_grad


def new_empty():
    x = jagged()
    for run in (aten.new_empty.default, compiled(aten.new_empty.default)):
        out = run(x, (2, 3))
        assert out.shape == (2, 3) and out.dtype is x.dtype and not out.is_nested
    for run in (lambda t: aten.new_empty.default(t, t.shape), compiled(
            lambda t: aten.new_empty.default(t, t.shape))):
        out = run(x)
        assert out.shape == x.shape and out.dtype is x.dtype and out.is_nested
    with pytest.raises(RuntimeError, match="no tensor of the size"):
        x.new_empty((3, x.size(1)))


def dropout():
    x = jagged().requires_grad_()
    for run in (lambda t: aten.native_dropout.default(t, 0.5, True),
                compiled(lambda t: aten.native_dropout.default(t, 0.5, True))):
        torch.manual_seed(1)
        out, mask = run(x)
        assert 0 < mask.values().sum() < 30 and mask.dtype is torch.bool
        assert torch.equal(out.detach(), x.detach() * mask * 2)
        (grad,) = torch.autograd.grad(out.values().sum(), x)
        assert torch.equal(grad, mask * 2.0 * torch.ones_like(x.detach()))


def random(draw, below=None):
    """A check of an operator that makes random numbers of the sizes of a tensor."""
    def check():
        x = jagged()
        for run in (draw, compiled(draw)):
            torch.manual_seed(3)
            out = run(x)
            assert out.shape == x.shape and out.dtype is x.dtype
            values = out.values()
            assert len(values.unique()) > 3
            if below is not None:
                assert (values < below).all() and torch.equal(values, values.floor())
            again = run(x).values()
            assert not torch.equal(values, again)
            torch.manual_seed(3)
            assert torch.equal(run(x).values(), values)
        each = func.vmap(lambda s: draw(x).values() * s, randomness="different")(torch.ones(2))
        assert not torch.equal(each[0], each[1])
        assert not draw(x.requires_grad_()).requires_grad

    return check


def stream():
    """There are no streams here: tensors of both kinds say so."""
    given = torch.cpu.current_stream()
    for t in (torch.ones(2), jagged()):
        for record in (t.record_stream, lambda s, t=t: aten.record_stream.default(t, s)):
            with pytest.raises(RuntimeError, match="have no streams"):
                record(given)


def equal_offsets():
    """Arguments with equal offsets are captured with one ragged size."""
    x = jagged().requires_grad_()
    y = torch.nested.nested_tensor_from_jagged(x.values().detach().cos(), x.offsets().clone())
    assert x.offsets() is not y.offsets() and x.shape == y.shape
    for run in (torch.mul, compiled(lambda a, b: a * b)):
        out = run(x, y)
        assert torch.equal(out.values().detach(), x.values().detach() * y.values())
        (grad,) = torch.autograd.grad(out.values().sum(), x)
        assert torch.equal(grad.values(), y.values())


ENTRIES = torch.tensor([[0, 0, 1, 2, 3, 3], [0, 2, 1, 0, 1, 2]])  # of a sparse matrix (4, 3)


def sparse(w, kind):
    """A matrix with some entries of another one."""
    out = torch.sparse_coo_tensor(ENTRIES, w[tuple(ENTRIES)], w.shape, is_coalesced=True)
    return out if kind == "coo" else getattr(out, f"to_sparse_{kind}")()


def pattern(w):
    """The same matrix, dense."""
    return torch.zeros_like(w).index_put(tuple(ENTRIES), w[tuple(ENTRIES)])


def _squares(name, schema, formula, plain, call):
    """An entry of which nested tensors have a formula of their own: `rule` for both classes."""
    with entry(f"_of_values_{name}(Tensor self) -> Tensor", run="self.copy()",
               shape="tuple(self.shape)", grad={"self": formula}) as own, entry(
                   schema, **plain) as operator:
        full = operator.name
        for cls in (NestedTensor, StridedNested):
            cls.rules[full] = lambda t, *_: t.with_carrier(own(t.values_with_history))
        try:
            for layout in (torch.jagged, torch.strided):
                x = torch.nested.nested_tensor(parts(), layout=layout, requires_grad=True)
                grad = torch.full_like(x.detach(), 3.0)
                (found,) = torch.autograd.grad(call(operator, x), x, grad)
                yield found.values()
            dense = torch.ones(3, requires_grad=True)
            yield torch.autograd.grad(call(operator, dense), dense, torch.full((3,), 3.0))[0]
        finally:
            for cls in (NestedTensor, StridedNested):
                del cls.rules[full]


def own_formula():
    plain = {"run": "self.copy()", "shape": "tuple(self.shape)",
             "grad": {"self": "grad.expand(self.shape) + 1"}}
    *nested, dense = _squares("a", "_test_own_formula(Tensor self) -> Tensor", "grad * grad", plain,
                              lambda f, x: f(x))
    assert all((g == 9).all() for g in nested) and (dense == 4).all()


def own_formula_of_composite():
    plain = {"kind": Composite, "compose": lambda self, b: self.clone()}
    *nested, dense = _squares("b", "_test_own_formula_of_two(Tensor self, bool b) -> Tensor",
                              "grad * grad + grad", plain, lambda f, x: f(x, True))
    assert all((g == 12).all() for g in nested) and (dense == 3).all()
