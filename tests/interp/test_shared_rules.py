"""Entries of the table inherit and share what is said about them; nothing that one of them does
stays for the next.

Every operator runs under vmap after each of its siblings (those with the same base class or the
same batching rule), and is compared with its examples one by one.
"""

import collections
import inspect

import pytest

import pullback as torch
from pullback.core import op as kinds
from pullback.core import surface
from pullback.core.op import registry
from pullback.core.overload import overload_of
from pullback.testing import kit, samples

_KINDS = {kinds.Op, kinds.Pointwise, kinds.Reduction, kinds.View, kinds.Creation, kinds.Random,
          kinds.Composite, object}


def _families() -> list[list[type]]:
    """Entries that have something in common beyond their kind."""
    found = collections.defaultdict(list)
    for _, op in sorted(registry.items()):
        if op.samples is None or not op.__module__.startswith("pullback."):
            continue
        rule = inspect.getattr_static(op, "batch")
        if rule is not None:
            found[rule].append(op)
        for base in op.__mro__[1:]:
            if base not in _KINDS:
                found[base].append(op)
    unique = {tuple(ops) for ops in found.values() if len(ops) > 1}
    return [list(ops) for ops in sorted(unique, key=lambda ops: [o.full_name for o in ops])]


def _check(op) -> None:
    dtype = torch.float64
    cases = samples.cases(op, dtype)
    if cases:
        kit.check_vmap(op, cases[0], dtype)


@pytest.mark.parametrize("family", _families(), ids=lambda ops: f"{len(ops)}-{ops[0].full_name}")
def test_operators_after_their_siblings(family):
    for op in [*family, *reversed(family)]:  # each comes after both of its neighbours, and all
        _check(op)


def test_rules_of_different_entries_are_different():
    """A rule that knows its operator is bound to it, whoever asked before."""
    for family in _families():
        bound = {}
        for op in family:
            rule = overload_of(op).batch_rule
            if getattr(rule, "func", None) is not None:
                assert rule.args == (overload_of(op),)
                bound[op] = rule
        assert len(set(map(id, bound.values()))) == len(bound)


def test_largest_after_smallest():
    x = torch.tensor([[1.0, 5.0, 3.0], [4.0, 2.0, 6.0]])
    for _ in range(2):
        assert torch.vmap(lambda t: t.max(0)[0])(x).tolist() == [5.0, 6.0]
        assert torch.vmap(lambda t: t.min(0)[0])(x).tolist() == [1.0, 2.0]
        assert torch.vmap(lambda t: t.median(0)[0])(x).tolist() == [3.0, 4.0]


def test_a_renamed_node_has_the_formulas_of_now():
    """Nodes of in-place calls under another name follow a change of the operator's formulas."""
    named = next(op for _, op in sorted(registry.items()) if op.inplace_node and op.grad)
    ov = overload_of(named)
    before = surface._renamed(ov.rule, ov.op.inplace_node)
    ov.forget()
    after = surface._renamed(ov.rule, ov.op.inplace_node)
    assert before is not after and after.name == before.name == named.inplace_node
