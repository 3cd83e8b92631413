"""Variables outside of a compiled function: what they hold counts in every call."""

import functools

import numpy as np
import pytest

import pullback as torch
from pullback.compile.errors import CompileWarning

scale, table, weight = 2.0, {"shift": 1.0}, torch.ones(2)
X = torch.tensor([1.0, 2.0])


def helper(x):
    return x * scale


def through_others(x):
    return [helper(x)][0] + table["shift"]


class Options:
    def __init__(self):
        self.factor, self.calls = 3.0, 0


options = Options()


def with_options(x):
    options.calls += 1
    return x * options.factor


class Scaled:
    factor = 2.0

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor

    def method(self, x):
        return x + self.factor


class Layer(torch.nn.Module):
    def forward(self, x):
        return x - scale


@pytest.fixture(params=["native", "numpy", "aot"])
def compiled(request):
    if request.param == "aot":
        return functools.partial(torch.aot.aot_function, fw_compiler=torch.aot.nop)
    return functools.partial(torch.compile, backend=request.param)


def test_globals(compiled, monkeypatch):
    run = compiled(through_others)
    assert run(X).tolist() == [3, 5]
    monkeypatch.setitem(globals(), "scale", 4.0)
    assert run(X).tolist() == [5, 9]
    monkeypatch.setitem(table, "shift", 0.0)
    assert run(X).tolist() == [4, 8]
    monkeypatch.setitem(globals(), "helper", lambda x: -x)
    assert run(X).tolist() == [-1, -2]
    monkeypatch.undo()
    assert run(X).tolist() == [3, 5]


def test_kinds_of_numbers(compiled, monkeypatch):
    monkeypatch.setitem(globals(), "scale", 1)
    run = compiled(helper)
    assert run(torch.tensor([2])).dtype == torch.int64
    monkeypatch.setitem(globals(), "scale", 1.0)
    assert run(torch.tensor([2])).dtype == torch.float32


def test_closures_and_tensors(compiled, monkeypatch):
    number, tensor = 2, torch.ones(2)

    def function(x):
        return (x + tensor + weight) * number

    run = compiled(function)
    assert run(X).tolist() == [6, 8]
    count = len(run.programs)
    tensor = torch.zeros(2)
    monkeypatch.setitem(globals(), "weight", torch.full((2,), 3.0))
    assert run(X).tolist() == [8, 10]
    assert len(run.programs) == count  # tensors are inputs
    number = 3
    assert run(X).tolist() == [12, 15]
    tensor = torch.zeros(1, dtype=torch.float64)
    assert run(X).dtype == torch.float64 and run(X).tolist() == [12, 15]
    tensor = 5.0
    assert run(X).tolist() == [27, 30]


def test_gradients_of_a_tensor_that_was_replaced(compiled):
    w = torch.tensor([2.0, 3.0], requires_grad=True)
    run = compiled(lambda x: (x * w * w).sum())
    run(X).backward()
    assert w.grad.tolist() == [4, 12]
    w = torch.tensor([1.0, 1.0], requires_grad=True)
    run(X).backward()
    assert w.grad.tolist() == [2, 4]


def test_attributes(compiled, monkeypatch):
    run = compiled(with_options)
    assert run(X).tolist() == run(X).tolist() == [3, 6] and len(run.programs) == 1
    monkeypatch.setattr(options, "factor", 5.0)
    assert run(X).tolist() == [5, 10]
    scaled = Scaled(2.0)
    method = compiled(scaled.method)
    assert method(X).tolist() == [3, 4]
    scaled.factor = 1.0
    assert method(X).tolist() == [2, 3]


def test_items_and_things(compiled):
    items, kind, array = [2.0, torch.ones(2), {"w": torch.ones(2)}], list, np.ones(2, np.float32)

    def function(x, more=[1.0]):  # noqa: B006
        more = more[0] if kind is list else 0.0
        return x * items[0] + items[1] + items[2]["w"] + torch.from_numpy(array) + more

    run = compiled(function)
    assert run(X).tolist() == function(X).tolist() == [6, 8]
    count = len(run.programs)
    items[1], items[2] = torch.zeros(2), {"w": torch.zeros(2)}
    assert run(X).tolist() == [4, 6] and len(run.programs) == count  # tensors are inputs
    items[0] = 3.0
    assert run(X).tolist() == function(X).tolist() == [5, 8]
    array = np.zeros(2, np.float32)
    assert run(X).tolist() == function(X).tolist() == [4, 7]
    kind = dict
    assert run(X).tolist() == function(X).tolist() == [3, 6]
    kind, function.__defaults__ = list, ([5.0],)
    assert run(X).tolist() == function(X).tolist() == [8, 11]
    items.append(1)  # it might have been asked for its length
    assert run(X).tolist() == [8, 11]


def test_modules(monkeypatch):
    run = torch.compile(Layer())
    assert run(X).tolist() == [-1, 0]
    monkeypatch.setitem(globals(), "scale", 0.0)
    assert run(X).tolist() == [1, 2]


def test_a_number_that_is_always_another(monkeypatch):
    run = torch.compile(helper, backend="numpy")
    with pytest.warns(CompileWarning, match="outside of it was new in 8"):
        for k in range(12):
            monkeypatch.setitem(globals(), "scale", float(k))
            assert run(X).tolist() == [k, 2 * k]
    assert "scale outside of it is 1.0, the program is for 0.0" in run.recompiles[0]


def test_facts_of_tensors_that_are_not_used(compiled, monkeypatch):
    kept, options.tensor = [torch.ones(3)], torch.ones(2, 3)

    def in_a_list(x):
        return x * kept[0].shape[0]

    def with_history(x):
        return x * 2 if kept[0].requires_grad else x

    def of_a_global(x):
        return x * len(weight)

    def of_an_object(x):
        return x * options.tensor.size(1)

    def changed():
        kept[0], options.tensor = torch.ones(5, requires_grad=True), torch.ones(2, 4)
        monkeypatch.setitem(globals(), "weight", torch.ones(7))

    functions = [in_a_list, with_history, of_a_global, of_an_object]
    fast = [compiled(f) for f in functions]
    for _ in range(2):
        for f, g in zip(functions, fast):
            for _ in range(3):
                assert g(X).tolist() == f(X).tolist()
        changed()
    assert [len(g.programs) for g in fast] == [2] * 4
    del options.tensor


def test_tensors_of_which_values_were_read(compiled, monkeypatch):
    """They became a part of the program: another tensor has others, also where it is no input."""
    held = {"count": torch.tensor(1)}
    options.tensor = torch.tensor(1)

    def in_a_table(x):
        return x[:int(held["count"])] * 2

    def of_an_object(x):
        return x[:options.tensor.item()] * 2

    fast = [compiled(f) for f in (in_a_table, of_an_object)]
    for n in (1, 2, 1):
        held["count"], options.tensor = torch.tensor(n), torch.tensor(n)
        for g in fast:
            assert g(X).tolist() == (X[:n] * 2).tolist()
    del options.tensor
