"""Steps with sparse gradients: numbers of PyTorch 2.13, refusals, lazy and dense steps."""

import tracemalloc

import numpy as np
import pytest

import pullback as torch
from pullback import optim
from pullback.compile import sparse_loops
from pullback.nn import functional as F
from pullback.optim import sparse_rows

SCALES = torch.tensor([[1.0, 2.0], [0.5, -1.0], [2.0, 0.25]])
READS = [[0, 2, 2], [3, 2, 0], [5, 5, 1], [0, 3, 3]]


def trained(make, sparse=True, steps=4):
    w = torch.nn.Parameter(torch.arange(12.0).reshape(6, 2) / 10)
    optimizer = make([w])
    for rows in READS[:steps]:
        w.grad = None
        y = F.embedding(torch.tensor(rows), w, sparse=sparse)
        (y * SCALES).pow(2).sum().backward()
        optimizer.step()
    return w, optimizer


RECORDED = [
    (optim.SGD, dict(lr=0.1), [0, .00395, .04, .29625, .057, .315, .072, .11025, .8, .9, .75, 0]),
    (optim.SGD, dict(lr=0.1, momentum=0.9), [0, -.081977, -.104, .292875, -.77739, -.078806,
                                             -.0414, -.74025, .8, .9, .525, -.99]),
    (optim.SGD, dict(lr=0.1, momentum=0.9, dampening=0.5),
     [0, -.128644, .048, .296438, -.773325, .0279, .23085, -.07665, .8, .9, .7625, .055]),
    (optim.SGD, dict(lr=0.1, momentum=0.9, nesterov=True),
     [0, .038132, -.2336, .289838, -.950034, -.140155, -.256482, -.895734, .8, .9, .3225, -1.881]),
    (optim.SGD, dict(lr=0.1, maximize=True),
     [0, .32805, .36, .30375, .777, .7275, 1.332, 1.52775, .8, .9, 1.25, 2.2]),
    (optim.Adagrad, dict(lr=0.1),
     [0, 0, .1, .2, .295593, .33985, .403763, .5778, .8, .9, .9, 1]),
    (optim.Adagrad, dict(lr=0.1, lr_decay=0.1, initial_accumulator_value=0.5),
     [0, .01075, .123778, .295587, .298145, .367042, .448289, .592595, .8, .9, .919812, 1.016838]),
    (optim.Adagrad, dict(lr=0.1, maximize=True),
     [0, .292832, .3, .4, .507333, .67487, .798026, .829048, .8, .9, 1.1, 1.2]),
    (optim.SparseAdam, dict(lr=0.1), [0, -.073766, .136119, .236119, .229778, .301706, .455893,
                                      .561246, .8, .9, .936119, 1.036119]),
    (optim.SparseAdam, dict(lr=0.1, betas=(0.8, 0.9), maximize=True),
     [0, .341413, .267468, .367467, .570301, .700171, .748489, .845803, .8, .9, 1.067468,
      1.167468]),
]


@pytest.mark.parametrize(("cls", "options", "wanted"), RECORDED)
def test_steps_are_those_of_pytorch(cls, options, wanted):
    w, optimizer = trained(lambda p: cls(p, **options))
    assert torch.allclose(w.detach().flatten(), torch.tensor(wanted), atol=2e-6)
    if "momentum" in options:
        assert optimizer.state[w]["momentum_buffer"].layout is torch.sparse_coo


def test_momenta_go_on_when_gradients_become_dense():
    both = []
    for sparse in (True, False):
        w, optimizer = trained(lambda p: optim.SGD(p, lr=0.1, momentum=0.9), sparse, 2)
        w.grad = torch.ones_like(w)
        optimizer.step()
        both.append(w.detach())
    assert torch.allclose(*both)


@pytest.mark.parametrize("name", ["Adadelta", "Adam", "AdamW", "Adamax", "ASGD", "NAdam", "RAdam",
                                  "RMSprop", "Rprop", "Adafactor", "Muon"])
def test_others_refuse(name):
    with pytest.raises(RuntimeError, match="does not support sparse gradients"):
        trained(getattr(optim, name))
    wanted, _ = trained(getattr(optim, name), False)
    w, _ = trained(lambda p: getattr(optim, name)([{"params": p, "sparse": "dense"}]))
    assert torch.allclose(w, wanted)


def test_refusals_depend_on_options():
    with pytest.raises(RuntimeError, match=r"add\(sparse, dense\) is not supported"):
        trained(lambda p: optim.SGD(p, weight_decay=0.1))
    with pytest.raises(RuntimeError, match="weight_decay option is not compatible with sparse"):
        trained(lambda p: optim.Adagrad(p, weight_decay=0.1))
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients"):
        trained(optim.SparseAdam, False)
    with pytest.raises(ValueError, match="SparseAdam requires dense parameter"):
        optim.SparseAdam([torch.zeros(2, 2).to_sparse()])
    with pytest.raises(ValueError, match="Invalid sparse value"):
        optim.Adam([torch.zeros(2, requires_grad=True)], sparse="yes")
    assert "sparse" not in optim.Adam([torch.zeros(2, requires_grad=True)]).param_groups[0]


def test_lazy_steps_are_dense_ones_where_nothing_is_missed():
    for cls in (optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop):
        both = []
        for sparse in (True, False):
            w = torch.nn.Parameter(torch.arange(8.0).reshape(4, 2) / 10)
            o = cls([w], weight_decay=0.1, **({"sparse": "lazy"} if sparse else {}))
            for _ in range(3):  # all rows, every time
                o.zero_grad()
                F.embedding(torch.arange(4), w, sparse=sparse).pow(2).sum().backward()
                o.step()
            both.append(w.detach())
        assert torch.allclose(*both), cls


def test_lazy_decay_is_caught_up():
    w = torch.nn.Parameter(torch.ones(3, 1))
    o = optim.SGD([w], lr=0.1, weight_decay=0.5, sparse="lazy")
    for rows in ([0], [0], [1]):
        o.zero_grad()
        (F.embedding(torch.tensor(rows), w, sparse=True) * 0).sum().backward()
        o.step()
    assert torch.allclose(w.detach().flatten(), torch.tensor([0.95**2, 0.95**3, 1]))
    o.catch_up()
    o.catch_up()
    assert torch.allclose(w.detach(), torch.full((3, 1), 0.95**3))
    m = torch.nn.Parameter(torch.ones(2, 1))
    o = optim.AdamW([m], lr=0.1, weight_decay=0.0, betas=(0.5, 0.25), sparse="lazy")
    for rows in ([0], [1], [1], [0]):
        o.zero_grad()
        F.embedding(torch.tensor(rows), m, sparse=True).sum().backward()
        o.step()
    state = o.state[m]
    assert torch.allclose(state["exp_avg"][0], torch.tensor([0.5 * 0.125 + 0.5]))
    assert torch.allclose(state["exp_avg_sq"][0], torch.tensor([0.75 / 64 + 0.75]))


def test_averages_of_rows_decay_whose_gradient_is_zero():
    w = torch.nn.Parameter(torch.ones(3, 1))
    o = optim.SparseAdam([w])
    for scale in (1.0, 0.0):
        o.zero_grad()
        (F.embedding(torch.tensor([1]), w, sparse=True) * scale).sum().backward()
        o.step()
    assert torch.allclose(o.state[w]["exp_avg"].flatten(), torch.tensor([0, 0.09, 0]))


def gradients():
    w = torch.nn.Parameter(torch.arange(12.0).reshape(6, 2) / 10)
    v = torch.nn.Parameter(torch.ones(2))
    y = F.embedding(torch.tensor([0, 2, 2]), w, sparse=True)
    ((y * SCALES).pow(2).sum() + (v * 3).sum()).backward()
    return w, v


@pytest.mark.parametrize("foreach", [None, False])
def test_clipping_counts_each_place_once(foreach):
    w, v = gradients()
    whole = torch.cat([w.grad.to_dense().flatten(), v.grad])
    norm = torch.nn.utils.clip_grad_norm_([w, v], 1.0, foreach=foreach)
    assert torch.allclose(norm, whole.norm())
    assert torch.allclose(w.grad.to_dense().flatten(), whole[:12] / (norm + 1e-6))
    w, v = gradients()
    torch.nn.utils.clip_grad_value_([w, v], 0.5, foreach=foreach)
    assert torch.allclose(w.grad.to_dense().flatten(), whole[:12].clamp(-0.5, 0.5))


def test_scalers_unscale_and_find_infinities():
    w, _ = gradients()
    before, o = w.grad.to_dense(), optim.SGD([w], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(torch.ones(1))
    scaler.unscale_(o)
    assert torch.allclose(w.grad.to_dense(), before / 4)
    kept = w.detach().clone()
    scaler.step(o)
    assert not torch.equal(w.detach(), kept)
    scaler.update()
    w, _ = gradients()
    w.grad = w.grad * float("inf")
    o, kept = optim.SGD([w], lr=0.1), w.detach().clone()
    scaler.step(o)
    assert torch.equal(w.detach(), kept)


@pytest.mark.parametrize("make", [
    lambda p: optim.SGD(p, lr=0.1), lambda p: optim.SGD(p, lr=0.1, momentum=0.9), optim.Adagrad,
    optim.SparseAdam, lambda p: optim.AdamW(p, sparse="lazy")])
def test_a_step_needs_memory_for_the_rows_it_touches(make):
    w = torch.nn.Parameter(torch.zeros(100_000, 8))
    rows, o = torch.arange(0, 100_000, 1000), make([w])

    def step():
        o.zero_grad()
        F.embedding(rows, w, sparse=True).pow(2).sum().backward()
        torch.nn.utils.clip_grad_norm_([w], 1.0)
        o.step()

    step()
    tracemalloc.start()
    step()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300_000  # the table has 3.2 million bytes


@pytest.mark.parametrize("make", [
    lambda p: optim.SGD(p, lr=0.1, momentum=0.9), optim.Adagrad, optim.SparseAdam])
@pytest.mark.filterwarnings("ignore:compile")
def test_steps_inside_of_compiled_functions(make):
    def step(w, optimizer, rows):
        optimizer.zero_grad()
        F.embedding(rows, w, sparse=True).pow(2).sum().backward()
        optimizer.step()

    found = []
    for function in (step, torch.compile(step)):
        w = torch.nn.Parameter(torch.arange(12.0).reshape(6, 2) / 10)
        optimizer = make([w])
        for rows in READS:
            function(w, optimizer, torch.tensor(rows))
        found.append(w.detach())
    assert torch.allclose(*found)


@pytest.mark.parametrize("make", [
    lambda p: optim.SGD(p, lr=0.1, momentum=0.9), optim.Adagrad, optim.SparseAdam])
@pytest.mark.filterwarnings("ignore:compile")
def test_compiled_steps(make):
    wanted, _ = trained(make)

    def compiled(params):
        optimizer = make(params)
        optimizer.step = torch.compile(optimizer.step)
        return optimizer

    assert torch.equal(trained(compiled)[0], wanted)


@pytest.mark.parametrize("maximize", (False, True))
@pytest.mark.parametrize("dtype", (torch.float32, torch.float64))
def test_steps_on_rows_in_c_are_those_of_operators(dtype, maximize, monkeypatch):
    monkeypatch.setattr(sparse_loops._library, "spent", 1.0)  # enough work: the library is built
    if sparse_loops.library(np.dtype(np.float32)) is None:
        pytest.skip("no compiler")
    found = []
    for in_c in (True, False):
        torch.manual_seed(3)
        table = torch.nn.Embedding(50, 7, sparse=True, dtype=dtype)
        seen = table.weight.data[:]
        optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1, maximize=maximize)
        if not in_c:
            monkeypatch.setattr(sparse_rows, "adam_in_c", lambda *args: False)
        for step in range(4):
            optimizer.zero_grad()
            words = torch.tensor([3, 9, 3, 49, 0, 3, 9, step])
            (table(words) * torch.arange(56.0, dtype=dtype).reshape(8, 7).sin()).sum().backward()
            version = table.weight._version
            optimizer.step()
            assert table.weight._version > version
        state = optimizer.state[table.weight]
        assert seen.tolist() == table.weight.tolist()  # the memory is the same
        found.append([t.tolist() for t in (table.weight, state["exp_avg"], state["exp_avg_sq"])])
    assert found[0] == found[1]


def test_a_row_outside_of_the_table_changes_nothing(monkeypatch):
    monkeypatch.setattr(sparse_loops._library, "spent", 1.0)
    p = torch.zeros(4, 3, requires_grad=True)
    optimizer = torch.optim.SparseAdam([p])
    p.grad = torch.sparse_coo_tensor([[1, 9]], torch.ones(2, 3), (4, 3), check_invariants=False)
    with pytest.raises((IndexError, RuntimeError), match="9"):
        optimizer.step()
    assert not p.any()
