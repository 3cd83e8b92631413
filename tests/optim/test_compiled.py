"""Whole training steps as one native call: forward, backward, clipping, update."""

import copy
import warnings

import numpy as np
import pytest

import pullback as pb
from pullback import nn
from pullback.optim import lr_scheduler

OPTIMIZERS = {
    "SGD": {"lr": 0.1},
    "SGD with momentum": {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    "Adam": {"lr": 0.01},
    "Adam with amsgrad": {"lr": 0.01, "amsgrad": True, "weight_decay": 0.01},
    "AdamW": {"lr": 0.01},
    "RMSprop": {"lr": 0.01, "momentum": 0.9, "centered": True},
    "Adagrad": {"lr": 0.1, "lr_decay": 0.1},
    "NAdam": {"lr": 0.01},
    "RAdam": {"lr": 0.05, "betas": (0.9, 0.9)},
    "Adamax": {"lr": 0.01},
    "Adadelta": {},
    "ASGD": {"lr": 0.1, "t0": 3},
    "Rprop": {},
    "Adafactor": {"lr": 0.05},
}


def network():
    pb.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))


def training_step(net, optimizer, clip=True):
    def step(x, y):
        loss = (net(x) - y).pow(2).mean()
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return step


def batches(count):
    random = np.random.default_rng(0)
    for _ in range(count):
        yield [pb.from_numpy(random.standard_normal((5, n)).astype(np.float32)) for n in (4, 3)]


def train(name, backend, given, count=12, schedule=lambda o: lr_scheduler.ExponentialLR(o, 0.9)):
    net = network()
    optimizer = getattr(pb.optim, name.partition(" ")[0])(net.parameters(), **given)
    scheduler = schedule(optimizer)
    step = training_step(net, optimizer)
    if backend is not None:
        step = pb.compile(step, backend=backend)
    losses = []
    for x, y in batches(count):
        losses.append(step(x, y).item())
        scheduler.step()
        assert all(p.grad is None for p in net.parameters())
    return losses, net, optimizer, step


@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_whole_step_is_one_graph(name, backend):
    """The rate changes after every step, and counters count, without another capture."""
    expected, net, optimizer, _ = train(name, None, OPTIMIZERS[name])
    losses, other, compiled, step = train(name, backend, OPTIMIZERS[name])
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    for p, q in zip(net.parameters(), other.parameters()):
        np.testing.assert_allclose(q.detach().numpy(), p.detach().numpy(), rtol=1e-4, atol=1e-6)
        a, b = optimizer.state[p], compiled.state[q]
        assert a.keys() == b.keys()
        for k in a:
            np.testing.assert_allclose(b[k].numpy(), a[k].numpy(), rtol=1e-3, atol=1e-5)
    assert len(step.programs) == 1
    if backend == "native":
        ((_, part),) = step.parts().items()  # one graph, not a forward and a backward one
        assert not part.report["externs"]  # all of it native


def test_one_native_call(monkeypatch):
    """Count what is run, from Python, for a step."""
    _, _, _, step = train("Adam", "native", {})
    from pullback.array import evaluate
    from pullback.core import stack

    calls = []
    (part,) = step.parts().values()
    monkeypatch.setattr(stack, "run_raw", lambda *a: calls.append("kernel"))
    monkeypatch.setattr(evaluate, "run_raw", lambda *a: calls.append("kernel"))
    program = next(iter(step.programs.values()))
    program._made["forward"] = lambda *arrays: calls.append("native") or part(*arrays)
    x, y = next(batches(1))
    step(x, y)
    assert calls == ["native"]


def test_momentum_of_a_cycle_is_an_input_too():
    cycle = lambda o: lr_scheduler.OneCycleLR(o, 0.1, 20)
    for name in ("SGD", "Adam"):
        given = {"momentum": 0.9} if name == "SGD" else {}
        expected = train(name, None, given, schedule=cycle)[0]
        losses, _, _, step = train(name, "numpy", given, schedule=cycle)
        np.testing.assert_allclose(losses, expected, rtol=1e-5)
        assert len(step.programs) == 1


def test_a_rate_that_is_a_tensor():
    expected = train("Adam", None, {"lr": pb.tensor(0.01)})[0]
    losses, _, _, step = train("Adam", "numpy", {"lr": pb.tensor(0.01)})
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    assert len(step.programs) == 1


def test_momentum_with_dampening_begins_with_another_graph():
    given = {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}
    expected = train("SGD", None, given)[0]
    losses, _, _, step = train("SGD", "numpy", given)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    assert len(step.programs) == 2


def test_options_and_state_that_change_are_noticed():
    def run(compiled):
        net = network()
        optimizer = pb.optim.Adam(net.parameters(), lr=0.01)
        step = training_step(net, optimizer)
        step = pb.compile(step, backend="numpy") if compiled else step
        losses = []
        for t, (x, y) in enumerate(batches(10)):
            if t == 2:
                saved = copy.deepcopy(optimizer.state_dict())
            if t == 4:
                optimizer.param_groups[0]["weight_decay"] = 0.1  # from zero: another graph
            if t == 6:
                optimizer.load_state_dict(saved)  # other tensors
            if t == 8:
                optimizer.param_groups[0]["maximize"] = True
            losses.append(step(x, y).item())
        return losses

    np.testing.assert_allclose(run(True), run(False), rtol=1e-5)


def test_the_step_alone():
    found = []
    for compiled in (False, True):
        net = network()
        optimizer = pb.optim.AdamW(net.parameters(), lr=0.01)
        step = pb.compile(optimizer.step) if compiled else optimizer.step
        for x, y in batches(5):
            optimizer.zero_grad()  # every gradient is a new tensor
            (net(x) - y).pow(2).mean().backward()
            version = net[0].weight._version
            step()
            assert net[0].weight._version == version + 1
        found.append([p.detach().numpy() for p in net.parameters()])
        if compiled:
            assert len(step.programs) == 1
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


def test_gradients_that_stay():
    """Without `zero_grad` they add up in the tensors that are there, as they do eagerly."""
    found = []
    for compiled in (False, True):
        net = network()

        def accumulate(x, y):
            loss = (net(x) - y).pow(2).mean()
            loss.backward()
            return loss.detach()

        run = pb.compile(accumulate) if compiled else accumulate
        for t, (x, y) in enumerate(batches(4)):
            run(x, y)
            if t == 0:
                kept = net[0].weight.grad
            if t == 2:
                net[2].bias.grad = None
        assert net[0].weight.grad is kept
        found.append([p.grad.numpy().copy() for p in net.parameters()])
        if compiled:
            assert len(run.programs) == 3  # none, all, all but one
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


def test_gradients_that_are_cleared_first():
    """What was there before does not matter then, and stays as it is."""
    net = network()

    def run(x, y):
        for p in net.parameters():
            p.grad = None
        (net(x) - y).pow(2).mean().backward()

    compiled, kept = pb.compile(run), []
    for x, y in batches(3):
        compiled(x, y)
        kept.append((net[0].weight.grad, net[0].weight.grad.tolist()))
        run(x, y)
        np.testing.assert_allclose(net[0].weight.grad.numpy(), kept[-1][1], rtol=1e-5, atol=1e-7)
    assert len(compiled.programs) == 1
    assert all(grad.tolist() == values for grad, values in kept)


def test_gradients_of_arguments():
    def f(x):
        (x * x).sum().backward()
        return x.grad * 2

    x = pb.tensor([1.0, 2.0], requires_grad=True)
    compiled = pb.compile(f, backend="numpy")
    assert compiled(x).tolist() == [4, 8] and x.grad.tolist() == [2, 4]
    assert compiled(x).tolist() == [8, 16] and x.grad.tolist() == [4, 8]
    y = pb.tensor([3.0, 4.0], requires_grad=True)
    assert compiled(y).tolist() == [12, 16] and x.grad.tolist() == [4, 8]


def test_gradients_filled_with_zeros():
    found = []
    for compiled in (False, True):
        net = network()
        optimizer = pb.optim.SGD(net.parameters(), lr=0.1)

        def step(x, y):
            optimizer.zero_grad(set_to_none=False)
            loss = (net(x) - y).pow(2).mean()
            loss.backward()
            optimizer.step()
            return loss

        run = pb.compile(step) if compiled else step
        found.append([run(x, y).item() for x, y in batches(4)])
    np.testing.assert_allclose(*found, rtol=1e-5)


def test_the_history_of_the_loss_is_used_up():
    net = network()
    step = pb.compile(training_step(net, pb.optim.SGD(net.parameters(), lr=0.1)))
    x, y = next(batches(1))
    loss = step(x, y)
    assert loss.requires_grad
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_a_capture_that_fails_leaves_everything_as_it_was():
    net = network()
    optimizer = pb.optim.Adam(net.parameters())

    def step(x, y):
        loss = (net(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss if loss > 0 else -loss

    before = [p.detach().clone() for p in net.parameters()]
    x, y = next(batches(1))
    with pytest.raises(RuntimeError, match="while the function is being captured"):
        pb.compile(step, fullgraph=True)(x, y)
    for p, old in zip(net.parameters(), before):
        assert p.grad is None and pb.equal(p.detach(), old)
        assert optimizer.state[p]["step"].item() == 0
    training_step(net, optimizer)(x, y)
    assert optimizer.state[net[0].weight]["step"].item() == 1


def test_schedulers_step_as_in_eager_mode_or_outside():
    optimizer = pb.optim.SGD(network().parameters(), lr=0.1)
    scheduler = lr_scheduler.StepLR(optimizer, 1)

    def step(x):
        scheduler.step()
        return x * 2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = pb.compile(step)
        for k in range(1, 5):
            assert run(pb.ones(2)).tolist() == [2, 2]
            assert np.isclose(optimizer.param_groups[0]["lr"], 0.1 ** (k + 1))
        with pytest.raises(RuntimeError, match=r"scheduler\.step\(\) outside"):
            pb.compile(step, fullgraph=True)(pb.ones(2))


class Averaged(pb.optim.Optimizer):
    """An optimizer of a third party, with its state made on the way."""

    def __init__(self, params, lr=0.1, counts=False):
        super().__init__(params, {"lr": lr, "counts": counts})

    @pb.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["average"] = pb.zeros_like(p)
                    state["step"] = 0
                if group["counts"]:
                    state["step"] += 1
                state["average"].mul_(0.9).add_(p.grad, alpha=0.1)
                p.add_(state["average"], alpha=-group["lr"])


def test_optimizers_of_third_parties():
    found = []
    for compiled in (False, True):
        net = network()
        optimizer = Averaged(net.parameters())
        step = training_step(net, optimizer)
        step = pb.compile(step) if compiled else step
        losses = []
        for t, (x, y) in enumerate(batches(6)):
            if t == 4:
                optimizer.param_groups[0]["lr"] = 0.5
            losses.append(step(x, y).item())
        found.append(losses)
    np.testing.assert_allclose(*found, rtol=1e-5)
    assert len(step.programs) == 2  # one for each rate; the first step ran as it is


def test_python_counters_of_third_parties_count():
    x, y = next(batches(1))
    for whole in (False, True):
        net = network()
        optimizer = Averaged(net.parameters(), counts=True)
        step = pb.compile(training_step(net, optimizer), fullgraph=whole)
        step(x, y)
        if whole:
            with pytest.raises(RuntimeError, match="Python values of its own"):
                step(x, y)
        else:
            step(x, y)
        assert optimizer.state[net[0].weight]["step"] == (1 if whole else 2)


# memory


def report(compiled):
    (part,) = compiled.parts().values()
    return part.report


def test_parameters_and_state_are_written_where_they_are():
    net = network()
    optimizer = pb.optim.Adam(net.parameters())
    step = pb.compile(training_step(net, optimizer))
    x, y = next(batches(1))
    arrays = [p.detach().numpy() for p in net.parameters()]
    step(x, y)
    before = [a.copy() for a in arrays]
    step(x, y)
    assert report(step)["inplace"] == 16  # 4 parameters with 2 averages and a counter each
    for p, array, old in zip(net.parameters(), arrays, before):
        assert np.shares_memory(p.detach().numpy(), array) and not np.array_equal(array, old)


def test_swapped_inputs():
    """Each is the new value of the other: neither may be overwritten before it is read."""
    a, b = pb.arange(40.0), pb.ones(40)

    def swap(x):
        old = a + 0
        a.copy_(b)
        b.copy_(old)
        return x + 1

    compiled = pb.compile(swap)
    compiled(pb.ones(1))
    assert a.tolist() == [1.0] * 40 and b.tolist() == list(range(40))


def test_inputs_that_are_read_elsewhere():
    a = pb.arange(40.0)

    def f(x):
        a.mul_(2)
        return a.flip(0) + x, (a * x).sum()

    expected, compiled = [], pb.compile(f)
    for g in (f, compiled):
        a.copy_(pb.arange(40.0))
        expected.append([t.tolist() for t in g(pb.ones(40))] + [a.tolist()])
    assert expected[0] == expected[1]


def test_memory_that_arguments_share_with_what_is_written():
    for view in (lambda a: a.detach(), lambda a: a.detach().flip(0)[3:], lambda a: a.detach()[5:]):
        found = []
        for compiled in (False, True):
            a = pb.arange(40.0)

            def f(x, y):
                a.add_(x.sum())
                a.mul_(2)
                return (x * y).sum()

            run = pb.compile(f) if compiled else f
            if compiled:
                run(pb.ones(view(a).shape), pb.ones(view(a).shape))  # the usual call comes first
                a.copy_(pb.arange(40.0))
            x = view(a)
            y = pb.ones(x.shape)
            out = run(x, y)
            found.append((out.item(), a.tolist()))
        assert found[0] == found[1]


def test_memory_that_may_not_be_written():
    a = pb.arange(40.0)
    array = a._payload
    compiled = pb.compile(lambda x: (a.add_(x), x * 2)[1])
    assert compiled(pb.ones(1)).tolist() == [2]
    array.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        compiled(pb.ones(1))
    assert array[0] == 1


def test_a_bad_index_changes_nothing():
    table = nn.Embedding(5, 3)
    head = nn.Linear(3, 2)
    params = [*table.parameters(), *head.parameters()]
    optimizer = pb.optim.Adam(params)

    def step(rows):
        loss = head(table(rows)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    compiled = pb.compile(step)
    compiled(pb.tensor([0, 3]))
    before = [p.detach().clone() for p in params]
    counts = [optimizer.state[p]["step"].item() for p in params]
    with pytest.raises(IndexError):
        compiled(pb.tensor([0, 7]))
    assert all(pb.equal(p.detach(), old) for p, old in zip(params, before))
    assert counts == [optimizer.state[p]["step"].item() for p in params] == [1, 1, 1]
    compiled(pb.tensor([1, 2]))
    assert report(compiled)["inplace"] >= 6
    assert not any(pb.equal(p.detach(), old) for p, old in zip(params, before))


def test_an_output_does_not_share_memory_with_what_was_written():
    a = pb.arange(40.0)

    def f(x):
        a.add_(x)
        return a.clone()

    compiled = pb.compile(f)
    out = compiled(pb.ones(1))
    out.zero_()
    assert a.tolist() == [i + 1.0 for i in range(40)]
