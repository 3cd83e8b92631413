"""Interrupts while functions are compiled, called and differentiated, and files are written."""

import io

import numpy as np
import pytest

import pullback as torch
from pullback.utils.data import DataLoader
from tests.helpers.interrupts import condition, run, same_again  # noqa: F401

# an interrupt inside of a finalizer reaches nobody; Python says that it was ignored
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def points(total: int, count: int) -> range:
    return range(1 + total % 7, total + 1, max(1, total // count))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache of one's own."""
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))


def loss_of(model):
    return lambda x: (model(x) ** 2).mean()


def gradients(model) -> list:
    return [None if p.grad is None else p.grad.numpy().copy() for p in model.parameters()]


X = torch.linspace(-1, 1, 12).reshape(4, 3)


@pytest.mark.parametrize("stage", ["compile", "call", "backward"])
def test_a_compiled_function_survives(stage):
    model = network()
    eager = loss_of(model)
    eager(X).backward()
    want, right = eager(X).item(), gradients(model)
    model.zero_grad()
    made = torch.compile(loss_of(model))
    for _ in range(4):
        made(X).backward()
    model.zero_grad()

    def work():
        f = torch.compile(loss_of(model)) if stage == "compile" else made
        used.append(f)
        value = f(X)
        if stage == "backward":
            value.backward()

    used: list = []
    versions = [p._version for p in model.parameters()]
    work()
    model.zero_grad()
    before, total = condition(model), run(work)
    model.zero_grad()
    assert total > 50
    for at in points(total, 12 if stage == "compile" else 120):
        run(work, at)
        model.zero_grad()
        assert condition(model) == before, at
        assert [p._version for p in model.parameters()] == versions
        value = used[-1](X)
        value.backward()
        assert abs(value.item() - want) < 1e-6, at
        for got, expected in zip(gradients(model), right):
            np.testing.assert_allclose(got, expected, atol=1e-6, err_msg=str(at))
        model.zero_grad()


def test_the_cache_has_whole_entries_only(folder):
    """Interrupts while entries are written: later calls compile, load and compute."""
    numbers = iter(range(10_000))

    def work():
        k = float(next(numbers))
        torch.compile(lambda x: x * x + k)(X)

    work()
    before, total = condition(), run(work)
    for at in points(total, 8):
        run(work, at)
        assert condition() == before, at
    whole = [p for p in folder.rglob("*") if p.is_file() and not p.name.startswith(".")]
    for name in whole:
        assert name.stat().st_size > 40
    for k in range(next(numbers)):
        got = torch.compile(lambda x, k=float(k): x * x + k)(X)
        np.testing.assert_array_equal(got.numpy(), (X * X + k).numpy())


def test_a_checkpoint_is_written_or_not(tmp_path):
    """A file that half of a `save` has written is refused by `load`, or is the whole of it."""
    model, name = network(), tmp_path / "model.pt"
    work = lambda: torch.save(model.state_dict(), name)
    work()
    before, total = condition(model), run(work)
    loaded = 0
    for at in points(total, 60):
        run(work, at)
        assert condition(model) == before
        try:
            got = torch.load(name)
        except (torch.errors.FileFormatError, EOFError):
            continue
        loaded += 1
        assert all(torch.equal(v, got[k]) for k, v in model.state_dict().items())
    assert [p.name for p in tmp_path.iterdir()] == ["model.pt"]
    work()
    assert torch.load(name).keys() == model.state_dict().keys()


def test_load_changes_nothing():
    model, file = network(), io.BytesIO()
    torch.save(model.state_dict(), file)
    work = lambda: torch.load(io.BytesIO(file.getvalue()))
    work()
    before, total, values = condition(model), run(work), gradients(model)
    for at in points(total, 60):
        run(work, at)
        assert condition(model) == before
    assert gradients(model) == values and len(work()) == 4


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_loader_begins_anew(shuffle):
    """Interrupts in an iteration: the next one has every element once."""
    data = [torch.tensor([float(i)]) for i in range(6)]
    loader = DataLoader(data, batch_size=2, shuffle=shuffle)
    work = lambda: list(loader)
    work()
    before, total = condition(), run(work)
    for at in points(total, 60):
        run(work, at)
        assert condition() == before
        assert sorted(float(v) for batch in loader for v in batch) == [0, 1, 2, 3, 4, 5]


def test_draws_go_on():
    """A generator is never held afterwards, and its stream can be begun anew."""
    make, work = torch.Generator, lambda: torch.randn(5, generator=used)
    used = make().manual_seed(3)
    want = work()
    run(work)
    total = run(work)
    for at in points(total, 150):
        run(work, at)
        assert used.lock.acquire(blocking=False), at
        used.lock.release()
        used.get_state()
        used.manual_seed(3)
        assert torch.equal(work(), want), at


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
def test_an_optimiser_goes_on(kind):
    """Parameters are those before a step or after it, each with its version."""
    def made():
        model = network()
        loss_of(model)(X).backward()
        return model, kind(model.parameters(), lr=0.1)

    model, optimiser = made()
    first = [p.detach().numpy().copy() for p in model.parameters()]
    versions = [p._version for p in model.parameters()]
    optimiser.step()
    second = [p.detach().numpy().copy() for p in model.parameters()]
    work = lambda: used.step()
    used = made()[1]
    run(work)
    used = made()[1]
    total = run(work)
    for at in points(total, 40):
        model, used = made()
        before = condition(model)
        run(work, at)
        assert condition(model) == before, at
        for p, old, new, version in zip(model.parameters(), first, second, versions):
            now = p.detach().numpy()
            same = np.array_equal(now, old)
            assert same or p._version > version, at
            assert same or np.allclose(now, new), at
        used.step()


WRITES = {
    "add_": lambda x: x.add_(1),
    "item": lambda x: x.__setitem__(0, 5.0),
    "rows": lambda x: x.__setitem__(slice(1, 2), torch.ones(1)),
    "foreach": lambda x: torch._foreach_mul_([x], 3.0),
    "zero_": lambda x: x.zero_(),
    "copy_": lambda x: x.copy_(torch.ones(3)),
    "masked_fill_": lambda x: x.masked_fill_(x > 0, 9.0),
    "out": lambda x: torch.add(x, x, out=x),
    "compiled": torch.compile(lambda x: x.mul_(3).add_(1)),
}


@pytest.mark.parametrize("name", list(WRITES))
def test_no_write_is_hidden(name):
    """What was written has another version, so that no gradient is computed from it."""
    write = WRITES[name]
    work = lambda: write(x)
    for _ in range(3):
        x = torch.full((3,), 2.0)
        work()
    x = torch.full((3,), 2.0)
    run(work)
    total = run(work)
    for at in range(1, total + 1):
        x = torch.full((3,), 2.0)
        y = torch.ones(3, requires_grad=True) * x  # saves x
        run(work, at)
        assert x._version > 0 or x.tolist() == [2.0, 2.0, 2.0], at
        if x._version:
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.sum().backward()
