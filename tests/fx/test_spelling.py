"""What graphs show in PyTorch's form computes what the table computes: values and gradients."""

import pytest

import pullback as torch
from pullback.aot import aot_function, make_boxed_compiler
from pullback.core import dtype as dt
from pullback.core.op import overload_of, registry
from pullback.errors import DataDependentError
from pullback.fx import spelling
from pullback.testing import samples


def _concerned(name, op) -> bool:
    if op.samples is None or op.kind in ("random", "creation"):
        return False
    ov = overload_of(op)
    parts = {**spelling.PARTS, **spelling.TRACED}
    return bool(name in parts or spelling.formulas_of(ov)
                or ov.is_composite and spelling.matches(name, spelling.WHOLE))


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


def _results(function, given):
    """Results of a call on fresh leaves, and the gradients of these."""
    leaves = [t.detach().clone().requires_grad_(t.dtype.is_floating_point or t.dtype.is_complex)
              for t in given]
    out = _tensors(function(*leaves))
    tracked = [o for o in out if o.requires_grad]
    wanted = [t for t in leaves if t.requires_grad]
    grads = []
    if tracked and wanted:
        weights = [torch.linspace(0.5, 1.5, max(o.numel(), 1))[: o.numel()].reshape(o.shape)
                   .to(o.dtype) for o in tracked]
        grads = torch.autograd.grad(tracked, wanted, weights, allow_unused=True)
    return out, grads


@pytest.mark.parametrize("name", ENTRIES)
def test_graph_computes_the_same(name):
    op = registry[name]
    nothing = make_boxed_compiler(lambda module, inputs: module)
    for case in samples.cases(op, dt.float64):
        given = _tensors([*case.args, *case.kwargs.values()])
        if not given:
            continue

        def call(*tensors, case=case):
            left = iter(tensors)
            args = [_filled(a, left) for a in case.args]
            return overload_of(op)(*args, **{k: _filled(v, left) for k, v in case.kwargs.items()})

        try:
            out, grads = _results(call, given)
        except (NotImplementedError, RuntimeError):
            continue  # nothing to compare with
        try:
            found, others = _results(aot_function(call, nothing, nothing), given)
        except DataDependentError:
            continue  # sizes that values decide are not captured
        assert len(found) == len(out)
        for a, b in zip(out, found):
            assert torch.allclose(a, b, equal_nan=True), case.label
        for a, b in zip(grads, others):
            if a is None or b is None:  # a zero may be left out
                assert a is b or not (b if a is None else a).abs().sum(), case.label
            else:
                assert a.dtype is b.dtype and torch.allclose(a, b, equal_nan=True), case.label
