"""Fully decomposed captures consist of core operators, and compute what eager mode computes.

Every sample of every entry of the operator table is captured with its gradients.
"""

import numpy as np
import pytest

import pullback as torch
from pullback import aot, errors
from pullback.core.handle import Tensor
from pullback.core.op import registry
from pullback.core.overload import OpOverload, overload_of
from pullback.core.stack import bind
from pullback.decomp import decomposition_table, is_core
from pullback.fx.make_fx import make_fx
from pullback.table.catalog import FILES
from pullback.testing import samples

REFUSED = (errors.DataDependentError, errors.TransformError)
UNTRACKED = (errors.NotDifferentiable, errors.DerivativeNotWritten, errors.LeafWriteError)
# entries whose samples cannot all be captured: sizes or Python values that depend on data
_BY_VALUES = """
where allclose equal is_nonzero item one_hot lstm.data gru.data rnn_tanh.data rnn_relu.data
tensor_split.tensor_indices_or_sections repeat_interleave.self_Tensor repeat_interleave.Tensor
index.Tensor masked_select nonzero nonzero.as_tuple nonzero_numpy argwhere _unique2 _unique
unique_dim unique_dim_consecutive unique unique_consecutive bincount _pack_padded_sequence
_pad_packed_sequence is_set_to _ctc_loss_backward.Tensor _local_scalar_dense resize_ resize_as_
_flash_attention_forward _efficient_attention_forward _reshape_from_tensor linalg_lstsq
"""
BY_VALUES = set(_BY_VALUES.split())


def _problem(op, case):
    """A function of tensors, and those tensors."""
    ov, flat = overload_of(op), samples.flat(op, case)
    places = samples.places(flat)

    def call(*tensors):
        out = bind(ov, samples.replaced(flat, places, tensors))
        return out if isinstance(out, (list, tuple)) else (out,)

    return call, [flat[i] if j is None else flat[i][j] for i, j in places]


def _with_gradients(call):
    def run(*tensors):
        out = call(*tensors)
        tracked = [o for o in out if isinstance(o, Tensor) and o.requires_grad]
        wanted = [t for t in tensors if t.requires_grad]
        grads = ()
        if tracked and wanted:
            seeds = [torch.ones_like(o) for o in tracked]
            grads = torch.autograd.grad(tracked, wanted, seeds, allow_unused=True)
        return list(out), list(grads)

    return run


def _differentiable(op) -> bool:
    return op.kind == "composite" or bool(op.grad)


def _leaves(value) -> list:
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _leaves(item)]
    if not isinstance(value, Tensor):
        return []
    if value.dtype is torch.complex32:  # NumPy cannot compare them
        value = value.to(torch.complex64)
    return [samples.host(value)]


def _captured(op, case, mode: str):
    """The graph of a sample, the tensors to run it on, and what eager mode gives."""
    call, tensors = _problem(op, case)
    run = _with_gradients(call)

    def fresh(tracked):
        copies = [samples.place(samples.host(t)) for t in tensors]
        return [t.requires_grad_(tracked and t.dtype.category >= 2) for t in copies]

    tracked = _differentiable(op)
    try:
        wanted = run(*fresh(tracked))
    except RuntimeError:  # there is no derivative: the values then
        tracked = False
        wanted = run(*fresh(tracked))
    module = make_fx(run, decomposition_table, mode)(*fresh(tracked))
    return module, fresh(tracked), wanted


@pytest.mark.parametrize("file", FILES)
def test_captures_are_core_and_right(file):
    _check(file, 0, 3)


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_all_captures_are_core_and_right(file):
    _check(file, 3, None)


def _check(file: str, start: int, end: int | None) -> None:
    wrong, refused = [], set()
    for name in registry:
        op = registry[name]
        if op.__module__.rpartition(".")[2] != file or "decomposition" in op.unchecked:
            continue
        for number, case in list(enumerate(samples.cases(op)))[start:end]:
            for mode in ("fake", "real") if number == 0 else ("fake",):
                try:
                    module, inputs, wanted = _captured(op, case, mode)
                except REFUSED:
                    refused.add(name)
                    continue
                targets = [n.target for n in module.graph.nodes if n.op == "call_function"]
                strange = [
                    t for t in targets if isinstance(t, OpOverload) and not is_core(t.name)
                ]
                if strange:
                    wrong.append(f"{case.label}: {strange}")
                if op.pure and not any(getattr(t, "is_random", False) for t in targets):
                    wrong += _differences(case, module(*inputs), wanted, op)
    assert not wrong
    assert refused <= BY_VALUES


@pytest.mark.parametrize("file", FILES)
def test_both_halves_are_core_and_right(file):
    """Forward and backward graphs of ahead-of-time autograd, of the first sample of an entry."""
    wrong = []
    for op in list(map(registry.__getitem__, registry)):
        if op.__module__.rpartition(".")[2] != file or "decomposition" in op.unchecked:
            continue
        if not _differentiable(op) or not op.pure:
            continue
        for case in list(samples.cases(op))[:1]:
            call, tensors = _problem(op, case)
            targets = []

            def keep(module, inputs):
                targets.extend(n.target for n in module.graph.nodes)
                return module

            halves = aot.aot_function(call, keep, keep, decompositions=decomposition_table)
            found = []
            for run in (call, halves):
                given = [samples.place(samples.host(t)) for t in tensors]
                for t in given:
                    t.requires_grad_(t.dtype.category >= 2)
                try:
                    found.append(_with_gradients(run)(*given))
                except (*REFUSED, *UNTRACKED):
                    break
            strange = [t for t in targets if isinstance(t, OpOverload) and not is_core(t.name)]
            if strange:
                wrong.append(f"{case.label}: {strange}")
            if len(found) == 2 and not any(getattr(t, "is_random", False) for t in targets):
                wrong += _differences(case, found[1], found[0], op)
    assert not wrong


def _differences(case, got, wanted, op) -> list[str]:
    got, wanted = _leaves(got), _leaves(wanted)
    if len(got) != len(wanted):
        return [f"{case.label}: {len(got)} results instead of {len(wanted)}"]
    if op.base_name.startswith("empty") or op.base_name in ("new_empty", "new_empty_strided"):
        return []
    return [
        f"{case.label}: result {i} differs by {np.abs(a - b).max()}"
        for i, (a, b) in enumerate(zip(got, wanted))
        if a.shape != b.shape
        or a.dtype != b.dtype
        or not np.allclose(a, b, rtol=1e-6, atol=1e-7, equal_nan=True)
    ]
