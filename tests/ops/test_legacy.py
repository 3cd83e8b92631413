"""Calls with their arguments in an old order: `torch.addcmul(t, value, a, b)`, `x.add_(alpha, y)`.

Entries say which there are; each is compared with the call as it is written today.
"""

import warnings
from pathlib import Path

import pytest

import pullback as torch
from pullback import errors
from pullback.core.op import registry
from pullback.core.overload import overload_of
from pullback.table.packets import load_all
from pullback.testing.samples import cases, flat

load_all()
OLD = [(name, order) for name, op in registry.items() for order in op.legacy]


def calls(name: str, order: str):
    """Samples that can be written in that order: the old arguments by name, and those of today."""
    op = registry[name]
    ov = overload_of(op)
    for case in cases(op):
        values = dict(zip(ov.schema.names, flat(op, case)))
        old = {n: values.pop(n) for n in order.split()}
        left = {a.name: a.default for a in ov.schema.args if a.name in values}
        tensors = [n for n in old if ov.schema.args[ov.schema.names.index(n)].is_tensor]
        if all(isinstance(old[n], torch.Tensor) for n in tensors):
            for n in set(old) - set(tensors):
                old[n] = 2
            yield old, {**old, **left}


def today(ov, values: dict) -> tuple:
    given = [values[a.name] for a in ov.schema.args if not a.kwarg_only]
    return given, {a.name: values[a.name] for a in ov.schema.args if a.kwarg_only}


@pytest.mark.parametrize("name, order", OLD)
def test_old_orders_are_the_calls_of_today(name, order):
    ov, base = overload_of(registry[name]), name.partition(".")[0]
    seen = 0
    for old, values in calls(name, order):
        args, kwargs = today(ov, values)
        try:
            expected = getattr(torch, base)(*args, **kwargs)
        except RuntimeError:
            continue
        seen += 1
        rest = [v for n, v in old.items() if n != "self"]
        assert torch.equal(getattr(torch, base)(*old.values()), expected)
        assert torch.equal(getattr(old["self"], base)(*rest), expected)
        out = torch.empty_like(expected)
        assert getattr(torch, base)(*old.values(), out=out) is out and torch.equal(out, expected)
        if expected.shape == old["self"].shape:
            x = old["self"].clone()
            assert getattr(x, f"{base}_")(*rest) is x and torch.equal(x, expected)
    assert seen


@pytest.mark.parametrize("name, order", OLD)
def test_old_orders_stay_what_they_are_when_calls_come_often(name, order):
    base = name.partition(".")[0]
    old, _ = next(iter(calls(name, order)))
    first = getattr(torch, base)(*old.values())
    for _ in range(40):
        assert torch.equal(getattr(torch, base)(*old.values()), first)


def test_old_orders_have_gradients_graphs_and_transforms():
    x, y = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0])
    torch.add(y, 3, x).sum().backward()
    assert x.grad.tolist() == [3, 3]
    graph = torch.make_fx(lambda a: torch.addcmul(a, 2, a, a))(y)
    assert "addcmul.default(a_1, a_1, a_1, value = 2)" in graph.code
    assert torch.vmap(lambda a: a.sub(2, a))(y).tolist() == [-3, -4]
    assert torch.compile(lambda a: torch.add(a, 2, a).add_(2, a))(y).tolist() == [15, 20]
    assert torch.func.jvp(lambda a: a.add(2, a), (y,), (y,))[1].tolist() == [9, 12]


def test_sparse_matrices_and_products():
    t, s = torch.tensor([[1.0, 2.0], [0.0, 3.0]]), torch.eye(2).to_sparse()
    both, one = 2 * torch.eye(2) + 3 * t, 2 * torch.eye(2) + t
    for got, expected in [
            (torch.sspaddmm(2, s, 3, s, t), both), (torch.sspaddmm(2, s, s, t), one),
            (s.sspaddmm(2, 3, s, t), both), (s.sspaddmm(2, s, t), one)]:
        assert got.is_sparse and torch.equal(got.to_dense(), expected)
    for args in ((s, s, t, t), (2, s, 3, s, t, t)):
        with pytest.raises(TypeError, match="sspaddmm"):
            torch.sspaddmm(*args)


def test_numbers_that_tensors_hold():
    x, y = torch.tensor(5.0), torch.tensor(7.0)
    assert torch.add(x, 2, y).item() == 19 and torch.add(2, 3, y).item() == 23
    assert torch.add(torch.ones(2), y, x).tolist() == [36, 36]


def test_one_warning_at_the_line_of_the_first_call(monkeypatch):
    x = torch.ones(2)
    monkeypatch.setattr(errors, "said", set())
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        torch.add(x, 2, x)
        torch.sub(x, 2, x)
        x.addcmul_(2, x, x)
    assert [w.category for w in seen] == [UserWarning] and seen[0].filename == __file__
    assert "add(self, alpha, other)" in str(seen[0].message)
    assert "Write add(self, other, alpha=alpha)" in str(seen[0].message)
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            for _ in range(20):  # plans among them
                torch.add(x, 2, x)
        assert len(seen) == 20
    finally:
        torch.set_warn_always(False)


@pytest.mark.parametrize("call", [
    lambda x, m: torch.subtract(x, 2, x),  # a name that is not as old
    lambda x, m: torch.rsub(x, 2, x),
    lambda x, m: torch.addmm(m, 2, m, m),  # the order of the method, in a function
    lambda x, m: m.addmm(2, m, 3, m, m),
    lambda x, m: torch.addmm(2, m, m, m, beta=2),
    lambda x, m: torch.add(x, "a", x),
    lambda x, m: torch.add(x, x, 2),
])
def test_other_orders_are_refused(call):
    with pytest.raises(TypeError):
        call(torch.ones(2), torch.ones(2, 2))


@pytest.mark.torch
def test_all_old_orders_of_pytorch_are_there():
    """PyTorch's package lists them beside its table of operators."""
    import torchgen

    text = Path(torchgen.__file__).with_name("packaged") / "autograd" / "deprecated.yaml"
    wanted = set()
    for row in text.read_text().splitlines():
        if not row.startswith("- name: "):
            continue
        name, _, given = row.removeprefix("- name: ").split(" -> ")[0].partition("(")
        order = [a.split()[-1] for a in given.removesuffix(")").split(", *, ")[0].split(", ")]
        wanted.add((name.rstrip("_"), " ".join(order)))
    known = {(name.partition(".")[0], order) for name, order in OLD}
    assert {w for w in wanted if w[0] != "sspaddmm"} == known  # that one is of sparse matrices
