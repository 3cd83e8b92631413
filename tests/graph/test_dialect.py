"""What graphs show in PyTorch's form computes what the table computes: values and gradients."""

import pytest

import pullback as torch
from pullback.aot import aot_function, make_boxed_compiler, nop
from pullback.array import dtype as dt
from pullback.core.op import registry
from pullback.core.overload import overload_of
from pullback.decomp import get_decompositions
from pullback.errors import DataDependentError
from pullback.testing import samples
from pullback.torch.dialect import dialect
from pullback.torch.dialect.calls import WHOLE
from pullback.torch.dialect.formulas import formulas_of, matches


def _concerned(name, op) -> bool:
    if op.samples is None or op.kind in ("random", "creation"):
        return False
    ov = overload_of(op)
    parts = dialect("aot").compositions
    return bool(name in parts or formulas_of(ov)
                or ov.is_composite and matches(name, WHOLE))


ENTRIES = sorted(name for name, op in registry.items() if _concerned(name, op))


def _tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for v in value for t in _tensors(v)] if isinstance(value, (list, tuple)) else []


def _filled(value, tensors):
    if isinstance(value, torch.Tensor):
        return next(tensors)
    if isinstance(value, (list, tuple)):
        return [_filled(v, tensors) for v in value]
    return value


def _weights(results):
    """Other numbers for each element, complex ones where the result is."""
    found = []
    for o in results:
        steps = torch.linspace(0.5, 1.5, max(o.numel(), 1))[: o.numel()].reshape(o.shape)
        turned = steps * (1 - 0.75j) if o.dtype.is_complex else steps
        found.append(turned.to(o.dtype))
    return found


def _pulled(results, leaves, **kwargs) -> list:
    """Gradients of all results by those leaves that have any."""
    tracked, wanted = [[t for t in ts if t.requires_grad] for ts in (results, leaves)]
    if not tracked or not wanted:
        return []
    return list(torch.autograd.grad(tracked, wanted, _weights(tracked), allow_unused=True,
                                    **kwargs))


def _results(function, given, order):
    """Results of a call on fresh leaves and the gradients of these, or gradients and theirs."""
    leaves = [t.detach().clone().requires_grad_(t.dtype.is_floating_point or t.dtype.is_complex)
              for t in given]
    out = _tensors(function(*leaves))
    return out, _pulled(out, leaves) if order else []


def _gradients(call):
    """The function that gives the gradients of another one, zeros where there is none."""
    def gradients(*leaves):
        found = _pulled(_tensors(call(*leaves)), leaves, create_graph=True)
        wanted = [t for t in leaves if t.requires_grad] if found else []
        return [torch.zeros_like(t) if g is None else g for t, g in zip(wanted, found)]

    return gradients


def _same(mine, others, label) -> None:
    assert len(mine) == len(others), label
    for a, b in zip(mine, others):
        if a is None or b is None:  # a zero may be left out
            assert a is b or not (b if a is None else a).abs().sum(), label
        else:
            assert a.dtype is b.dtype and torch.allclose(a, b, equal_nan=True), label


def _operands(given, dtype):
    """The tensors of a sample; complex ones beside real ones, too."""
    yield given
    if dtype.is_complex and sum(t.dtype.is_complex for t in given) > 1:
        for i, t in enumerate(given):
            if t.dtype.is_complex:
                yield [*given[:i], t.real.clone(), *given[i + 1:]]


def _agree(call, given, order, label) -> None:
    """Does a captured function compute what it computes as written?"""
    nothing = make_boxed_compiler(lambda module, inputs: module)
    try:
        wanted = _results(call, given, order)
    except (NotImplementedError, RuntimeError):
        return  # nothing to compare with
    try:
        found = _results(aot_function(call, nothing, nothing), given, order)
    except DataDependentError:
        return  # sizes that values decide are not captured
    for mine, others in zip(wanted, found):
        _same(mine, others, label)


def _programs(name, dtype):
    """Calls of an operator as functions of their tensors, with the tensors and what to say."""
    op = registry[name]
    for case in samples.cases(op, dtype):
        for given in _operands(_tensors([*case.args, *case.kwargs.values()]), dtype):
            def call(*tensors, case=case):
                left = iter(tensors)
                args = [_filled(a, left) for a in case.args]
                return overload_of(op)(
                    *args, **{k: _filled(v, left) for k, v in case.kwargs.items()})

            if given:
                yield call, given, f"{case.label} of {[t.dtype.name for t in given]}"


@pytest.mark.parametrize("name", ENTRIES)
def test_graph_computes_the_same(name):
    """Values and first derivatives in both dialects, for real and complex numbers."""
    for dtype in (dt.float64, dt.complex128) if registry[name].complex else (dt.float64,):
        for call, given, label in _programs(name, dtype):
            _agree(call, given, 1, label)


@pytest.mark.parametrize("name", [n for n in ENTRIES if formulas_of(
    overload_of(registry[n]))])
def test_second_derivatives_are_the_same(name):
    """The formulas of a graph, differentiated inside of it, and their derivatives outside."""
    for dtype in (dt.float64, dt.complex128) if registry[name].complex else (dt.float64,):
        for call, given, label in list(_programs(name, dtype))[:3]:
            _agree(_gradients(call), given, 1, f"second derivative of {label}")


def backward_of(f, *args, **options):
    seen = []
    out = aot_function(f, nop, lambda module, _: seen.append(module) or module, **options)(*args)
    out.sum().backward()
    return seen[0].code


def test_sizes_in_formulas_are_numbers():
    """PyTorch's formulas divide by a `Scalar`, whether it is known or a symbol."""
    x = torch.ones(3, 4, requires_grad=True)
    assert "div.Scalar(expand, 12)" in backward_of(torch.mean, x)
    assert "div.Scalar(expand, mul)" in backward_of(torch.mean, x, dynamic=True)
    code = backward_of(lambda x: x * x.shape[0], x, dynamic=True)  # of the user: a tensor's place
    assert "mul.Tensor(tangents_1, sym_size_int)" in code


def test_decompositions_of_a_backward_call_overloads_for_tensors():
    table = get_decompositions([torch.ops.aten.gelu, torch.ops.aten.gelu_backward])
    x = torch.ones(3, requires_grad=True)
    code = backward_of(torch.nn.functional.gelu, x, decompositions=table)
    assert "mul.Tensor(primals_1, 0.7071067811865476)" in code and ".Scalar(" not in code
