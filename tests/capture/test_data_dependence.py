"""Compiled functions that read tensors: conditions, numbers, masks, generators seeded inside."""

from __future__ import annotations

import warnings

import pytest

import pullback as pb
from pullback import errors


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def counted(function):
    """A compiled function and its programs."""
    compiled = pb.compile(function)
    return compiled, compiled.programs


def test_both_ways_of_a_condition_are_compiled():
    f, runs = counted(lambda x: x * 2 if x.sum() > 0 else -x)
    x = pb.ones(3)
    for _ in range(3):
        assert f(x).tolist() == [2, 2, 2]
        assert f(-x).tolist() == [1, 1, 1]
    assert len(runs) == 2


def test_conditions_on_tensors_from_outside():
    limit, x = pb.tensor(0.0), pb.ones(2, requires_grad=True)
    f, runs = counted(lambda x: (x if (limit * 2 < 1).all() else 3 * x).sum())
    for value, wanted in (0.0, 1), (1.0, 3), (0.25, 1):
        limit.fill_(value)
        x.grad = None
        f(x).backward()
        assert x.grad.tolist() == [wanted, wanted]
    assert len(runs) == 2


def test_a_condition_on_what_was_written():
    def f(x):
        x.mul_(2)
        return x + 1 if x[0] > 3 else x - 1

    compiled = pb.compile(f)
    for start in 1.0, 2.0, 1.0:
        x = pb.full((2,), start)
        y = x.clone()
        assert compiled(x).tolist() == f(y).tolist()
        assert x.tolist() == y.tolist()


def test_masks():
    f, runs = counted(lambda x, m: (x[m] ** 2).sum() + x.masked_select(m).sum())
    x = pb.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for mask in [True, False, True], [False, True, False], [True, False, True]:
        x.grad = None
        m = pb.tensor(mask)
        f(x, m).backward()
        assert x.grad.tolist() == [(2 * v + 1) * t for v, t in zip([1, 2, 3], mask)]
    assert len(runs) == 2


def test_sizes_that_depend_on_values():
    labels = pb.tensor([0, 2, 2, 1])
    f, runs = counted(lambda x: x.sum() * pb.unique(labels).numel() + labels.nonzero().shape[0])
    assert f(pb.ones(2)).item() == 2 * 3 + 3
    labels[0] = 2
    assert f(pb.ones(2)).item() == 2 * 2 + 4
    assert len(runs) == 2


def test_numbers_that_are_always_new_end_compilation_with_a_warning():
    f, _ = counted(lambda x: x * x.sum().item())
    with pytest.warns(errors.CompileWarning, match="always|new in"):
        for i in range(12):
            assert f(pb.full((2,), float(i))).tolist() == [2 * i * i] * 2
    assert set(f.captures.values()) == {8}  # then as it is


@pytest.mark.parametrize("forked", [False, True])
def test_generators_seeded_inside(forked):
    def f(x):
        before = pb.rand(2)
        if forked:
            with pb.random.fork_rng():
                pb.manual_seed(3)
                x = x * pb.rand(2)
        else:
            pb.manual_seed(3)
            x = x * pb.rand_like(x)
        own = pb.Generator().manual_seed(5)
        return x + pb.randn(2, generator=own) + before

    results = []
    for run in f, pb.compile(f):
        pb.manual_seed(0)
        results.append([run(pb.ones(2)).tolist() for _ in range(3)] + [pb.rand(2).tolist()])
    assert results[0] == results[1]


def test_values_drawn_by_a_seeded_generator_are_refused_on_demand():
    def f(x):
        pb.manual_seed(0)
        return pb.nn.functional.dropout(x)

    with pytest.raises(errors.DataDependentError, match="seeded"):
        pb.compile(f, fullgraph=True)(pb.ones(8))


def test_constants_that_are_returned_belong_to_the_caller():
    for f in (
        lambda x: x.nonzero(as_tuple=True)[1],
        lambda x: x.nonzero().t()[1],
        lambda x: pb.tensor([[9, 0], [9, 1]])[:, 1],
        lambda x: pb.tensor([0, 1]),
    ):
        compiled = pb.compile(f)
        for _ in range(2):
            out = compiled(pb.tensor([[1.0, 0.0], [0.0, 2.0]]))
            assert out.tolist() == [0, 1]
            out.add_(5)


def test_tensors_made_inside_are_new_in_every_call():
    def accumulate(x):
        total = pb.tensor([1.0, 2.0])
        total[:1] += x.sum()
        total.add_(x.new_tensor([1.0, 1.0]))
        return total

    compiled = pb.compile(accumulate)
    first, second = compiled(pb.ones(2)), compiled(pb.ones(2))
    assert first.tolist() == second.tolist() == accumulate(pb.ones(2)).tolist() == [4, 3]
    first.zero_()
    assert compiled(pb.ones(2)).tolist() == second.tolist() == [4, 3]


def _given(x):
    return x * 2 if pb.equal(x, pb.ones(3)) else x


def _close(x):
    return x * 2 if pb.allclose(x, pb.ones(3)) else x


@pytest.mark.parametrize("function", [
    _given,
    _close,
    lambda x: x * 2 if pb.is_nonzero(x.sum() - 3) else x,
    lambda x: pb.nn.functional.one_hot(x.long()).float(),
    lambda x: pb.arange(x.sum().long()).float(),
    lambda x: pb.zeros(x.sum().long(), 2),
    lambda x: x[: x[-1].long() + 1],
    lambda x: pb.tensor([x.sum(), 2.0]),
    lambda x: pb.arange(12.0).reshape(x.sum().long(), -1),
], ids=["equal", "allclose", "is_nonzero", "one_hot", "arange", "zeros", "slice", "tensor",
        "reshape"])  # fmt: skip
def test_operators_that_go_by_values(function):
    compiled, runs = counted(function)
    for _ in range(2):
        for x in pb.ones(3), pb.tensor([1.0, 1.0, 2.0]):
            assert compiled(x).tolist() == function(x).tolist()
    assert len(runs) == 2


def test_looks_in_passing_decide_nothing():
    compiled, runs = counted(lambda x: (
        pb.distributions.Normal(x, x.abs() + 1).log_prob(x).sum() + pb.cov(x, aweights=x.abs())
        + (x.abs() ** x.long()[0]).sum() + pb.linspace(0, x[0], 3).sum()))
    for k in range(12):
        compiled(pb.tensor([1.0, 2.0, 3.0 + k]))
    assert len(runs) == 1


def test_conditions_on_draws():
    def f(x):
        noise = pb.randn(3)
        if pb.rand(()) < 0.5:  # which layers to leave out, for instance
            return x + pb.rand(3) + noise
        return x * noise

    results = []
    compiled, runs = counted(f)
    for function in f, compiled:
        pb.manual_seed(5)
        results.append([function(pb.ones(3)).tolist() for _ in range(12)])
        results.append([pb.rand(()).item()])
    assert results[:2] == results[2:]
    assert len(runs) == 2


def test_draws_of_another_generator_are_not_foreseen():
    generator = pb.Generator()

    def f(x):
        return x if pb.rand((), generator=generator) < 0.5 else -x

    with pytest.warns(match="operator by operator"):
        pb.compile(f)(pb.ones(2))


@pytest.mark.parametrize("options", [{}, {"fuse_backward": False}], ids=["fused", "apart"])
@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_draws_that_nobody_uses_count(backend, options):
    def f(x):
        pb.rand(3)
        return (x * pb.rand(3)).sum()

    results = []
    for function in f, pb.compile(f, backend=backend, options=options):
        pb.manual_seed(0)
        x = pb.ones(3, requires_grad=True)
        for _ in range(2):
            function(x).backward()
        results.append([x.grad.tolist(), pb.rand(2).tolist()])
    assert results[0] == results[1]
