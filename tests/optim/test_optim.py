"""Optimizers: groups, state, hooks, closures, errors, and the ones without a simple formula."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import pullback as pb
from pullback import optim
from pullback.optim import optimizer as base


def leaf(shape=(3, 4), seed=0):
    random = np.random.default_rng(seed)
    return pb.from_numpy(random.standard_normal(shape)).requires_grad_()


def quadratic(p, optimizer):
    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    return closure


# groups


def test_groups_and_missing_gradients():
    a, b, c = (leaf(seed=i) for i in range(3))
    optimizer = optim.SGD([{"params": [a], "lr": 1.0}, {"params": [b, c]}], lr=0.1)
    before = [t.detach().numpy().copy() for t in (a, b, c)]
    a.grad, b.grad = pb.ones_like(a.detach()), pb.ones_like(b.detach())
    optimizer.step()
    moved = [x - t.detach().numpy() for x, t in zip(before, (a, b, c))]
    np.testing.assert_allclose([m.mean() for m in moved], [1.0, 0.1, 0.0])


def test_parameters_with_names():
    a, b, c = (leaf(seed=i) for i in range(3))
    optimizer = optim.Adam([("a", a), ("b", b)])
    assert optimizer.param_groups[0]["param_names"] == ["a", "b"]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["a", "b"]
    with pytest.raises(ValueError, match="without names"):
        optimizer.add_param_group({"params": [c]})
    with pytest.raises(ValueError, match="names are missing"):
        optim.SGD([("a", a), b])
    assert len(optimizer.param_groups) == 1
    optimizer.add_param_group({"params": [("c", c)], "lr": 0.5})
    assert optimizer.param_groups[1]["lr"] == 0.5 and optimizer.param_groups[1]["eps"] == 1e-8


def test_parameter_numbers_run_through_the_groups():
    a, b, c = (leaf(seed=i) for i in range(3))
    optimizer = optim.Adam([{"params": [a]}, {"params": [b, c]}])
    c.grad = pb.ones_like(c.detach())
    optimizer.step()
    saved = optimizer.state_dict()
    assert [g["params"] for g in saved["param_groups"]] == [[0], [1, 2]]
    assert list(saved["state"]) == [2]


@pytest.mark.parametrize("make, error", [
    (lambda p: optim.SGD([p], lr=-1.0), ValueError),
    (lambda p: optim.SGD([p], lr=float("nan")), ValueError),
    (lambda p: optim.SGD([p], lr=pb.ones(2)), ValueError),
    (lambda p: optim.SGD([p], lr=0.1, nesterov=True), ValueError),
    (lambda p: optim.SGD([p], fused=True, foreach=True), RuntimeError),
    (lambda p: optim.Adam([p], betas=(1.0, 0.9)), ValueError),
    (lambda p: optim.Adam([p], betas=(0.9, pb.tensor(0.9))), ValueError),
    (lambda p: optim.Adam([p], lr=pb.tensor(0.1), foreach=True), ValueError),
    (lambda p: optim.Adam([p], fused=True, differentiable=True), RuntimeError),
    (lambda p: optim.Adam([]), ValueError),
    (lambda p: optim.Adam(p), TypeError),
    (lambda p: optim.Adam([1.0]), TypeError),
    (lambda p: optim.Adam([{"params": {p}}]), TypeError),
    (lambda p: optim.SGD([p * 2], lr=0.1), ValueError),
    (lambda p: optim.SGD([{"params": [p]}, {"params": [p]}], lr=0.1), ValueError),
    (lambda p: optim.Rprop([p], etas=(1.2, 0.5)), ValueError),
    (lambda p: optim.Adadelta([p], rho=1.5), ValueError),
    (lambda p: optim.RMSprop([p], alpha=-1), ValueError),
    (lambda p: optim.Adafactor([p], d=0.5), ValueError),
    (lambda p: optim.Muon([leaf(3)]), ValueError),
    (lambda p: optim.Muon([p], adjust_lr_fn="other"), ValueError),
    (lambda p: optim.LBFGS([{"params": [p]}, {"params": [leaf()]}]), ValueError),
    (lambda p: optim.SparseAdam([p], lr=0.0), ValueError),
    (lambda p: optim.SparseAdam([p.detach() * 1j]), ValueError),
    (lambda p: optim.Optimizer([p], {"lr": base.required}), ValueError),
])
def test_bad_arguments(make, error):
    with pytest.raises(error):
        make(leaf())


def test_a_parameter_twice_in_a_group_is_a_warning():
    p = leaf()
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optim.SGD([p, p], lr=0.1)


# steps


def test_closure_and_zero_grad():
    param = leaf()
    optimizer = optim.SGD([param], lr=0.1, fused=True)
    first = optimizer.step(quadratic(param, optimizer)).item()
    assert optimizer.step(quadratic(param, optimizer)).item() < first
    kept = param.grad
    optimizer.zero_grad(set_to_none=False)
    assert param.grad is kept and not param.grad.numpy().any()
    optimizer.zero_grad()
    assert param.grad is None


def test_a_step_counts_as_a_write():
    param = leaf()
    loss = (param * param).sum()
    param.grad = pb.ones_like(param.detach())
    optim.SGD([param], lr=0.1).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_a_step_that_is_differentiated():
    """The derivative of a loss after two steps with respect to the learning rate and the start."""

    def after(start, lr, name, **more):
        p = start.clone()
        optimizer = getattr(optim, name)([p], lr=lr, differentiable=True, **more)
        for _ in range(2):
            q = p.clone()
            p.grad = q * q + 1
            optimizer.step()
        return (p * p).sum()

    for name, more in (("SGD", {"momentum": 0.9}), ("Adam", {}), ("AdamW", {"amsgrad": True}),
                       ("RMSprop", {"momentum": 0.9, "centered": True}), ("Adagrad", {}),
                       ("NAdam", {}), ("RAdam", {}), ("Adamax", {}), ("ASGD", {}),
                       ("Adadelta", {})):
        start = leaf((3,)).detach().double().requires_grad_()
        lr = pb.tensor(0.1, dtype=pb.float64, requires_grad=True)
        tensors = [start] if name == "ASGD" else [start, lr]
        found = pb.autograd.grad(after(start, lr, name, **more), tensors)
        for t, g in zip(tensors, found):
            plain = [x.detach() for x in (start, lr)]
            k = 0 if t is start else 1
            step = pb.zeros_like(plain[k])
            step.view(-1)[0] = 1e-5
            ends = [after(*[x + s * step if i == k else x for i, x in enumerate(plain)], name,
                          **more) for s in (1, -1)]
            slope = (ends[0] - ends[1]) / 2e-5
            if name == "SGD":  # momentum begins with a gradient that has no history
                continue
            np.testing.assert_allclose(g.reshape(-1)[0].item(), slope.item(), rtol=2e-3)


def test_scaled_gradients_are_unscaled_or_skipped():
    p = leaf()
    start = p.detach().clone()
    optimizer = optim.Adam([p], lr=0.1, fused=True)
    assert optimizer._step_supports_amp_scaling
    p.grad = pb.ones_like(start) * 8
    optimizer.grad_scale, optimizer.found_inf = pb.tensor(8.0), pb.tensor(1.0)
    optimizer.step()
    assert pb.equal(p.detach(), start) and not optimizer.state
    optimizer.found_inf = pb.tensor(0.0)
    optimizer.step()
    assert pb.equal(p.grad, pb.ones_like(start)) and not pb.equal(p.detach(), start)


# state


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "LBFGS"])
def test_copies(name, clone):
    p = leaf()
    optimizer = getattr(optim, name)([p], lr=0.1)
    optimizer.step(quadratic(p, optimizer))
    other = clone(optimizer)
    q = other.param_groups[0]["params"][0]
    assert q is not p and repr(other) == repr(optimizer)
    optimizer.step(quadratic(p, optimizer))
    other.step(quadratic(q, other))
    assert pb.equal(p.detach(), q.detach())


def test_old_checkpoints_with_steps_as_numbers():
    p = leaf()
    optimizer = optim.Adam([p])
    optimizer.step(quadratic(p, optimizer))
    saved = copy.deepcopy(optimizer.state_dict())
    saved["state"][0]["step"] = 1
    del saved["param_groups"][0]["decoupled_weight_decay"], saved["param_groups"][0]["fused"]
    optimizer.load_state_dict(saved)
    optimizer.step(quadratic(p, optimizer))
    assert optimizer.state[p]["step"].item() == 2


def test_loading_checks_the_groups_and_changes_nothing():
    p, q = leaf(), leaf(seed=1)
    one, two = optim.Adam([p]), optim.Adam([p, q])
    one.step(quadratic(p, one))
    with pytest.raises(ValueError, match="match the size"):
        two.load_state_dict(one.state_dict())
    with pytest.raises(ValueError, match="number of parameter groups"):
        optim.Adam([{"params": [p]}, {"params": [q]}]).load_state_dict(one.state_dict())
    assert not two.state


def test_loaded_state_takes_the_dtype_of_the_parameter():
    p = leaf()
    one = optim.Adam([p])
    one.step(quadratic(p, one))
    two = optim.Adam([p.detach().float().requires_grad_()])
    two.load_state_dict(one.state_dict())
    (state,) = two.state.values()
    assert state["exp_avg"].dtype is pb.float32 and state["step"].dtype is pb.float32
    assert one.state[p]["exp_avg"].dtype is pb.float64


def test_other_parameters_for_a_while():
    p = leaf()
    optimizer = optim.Adam([p], lr=0.1)
    optimizer.step(quadratic(p, optimizer))
    saved = copy.deepcopy(optimizer.state_dict())
    before = p.detach().clone()
    q = leaf(seed=1)
    q.grad = pb.ones_like(q.detach())
    with optim.swap_in_optimizer_params_and_state(optimizer, {"p": q}, saved):
        optimizer.step()
    assert pb.equal(p.detach(), before) and optimizer.state[p]["step"].item() == 1
    assert saved["state"][0]["step"].item() == 2
    with pytest.raises(RuntimeError, match="param group 0"):
        saved["param_groups"][0]["more"] = 1
        with optim.swap_in_optimizer_params_and_state(optimizer, {"p": q}, saved):
            pass


# hooks


def test_step_hooks():
    p, calls = leaf(), []
    optimizer = optim.SGD([p], lr=0.1)
    note = lambda text: lambda *args: calls.append((text, len(args)))
    handles = [
        optimizer.register_step_post_hook(note("post")),
        base.register_optimizer_step_pre_hook(note("global pre")),
        optimizer.register_step_pre_hook(note("pre")),
        base.register_optimizer_step_post_hook(note("global post")),
    ]
    optimizer.step()
    assert calls == [("global pre", 3), ("pre", 3), ("post", 3), ("global post", 3)]
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert len(calls) == 4
    with optimizer.register_step_pre_hook(
            lambda o, args, kwargs: ((o,), {"closure": lambda: "loss"})):
        assert optimizer.step() == "loss"
    with optimizer.register_step_pre_hook(lambda o, args, kwargs: 1), pytest.raises(RuntimeError):
        optimizer.step()


def test_state_hooks():
    p, calls = leaf(), []
    optimizer = optim.SGD([p], lr=0.1)
    optimizer.register_state_dict_pre_hook(lambda o: calls.append("before"))
    optimizer.register_state_dict_pre_hook(lambda o: calls.append("first"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda o, d: {**d, "mine": 1})
    optimizer.register_load_state_dict_pre_hook(
        lambda o, d: {**d, "param_groups": [{**g, "lr": 7} for g in d["param_groups"]]})
    optimizer.register_load_state_dict_post_hook(lambda o: calls.append("loaded"))
    saved = optimizer.state_dict()
    assert calls == ["first", "before"] and saved["mine"] == 1
    optimizer.load_state_dict(saved)
    assert calls[-1] == "loaded" and optimizer.param_groups[0]["lr"] == 7


# optimizers of third parties


class Lion(optim.Optimizer):
    """As such optimizers are written in the wild."""

    def __init__(self, params, lr=1e-2, betas=(0.9, 0.99), differentiable=False):
        super().__init__(params, dict(lr=lr, betas=betas, differentiable=differentiable))

    @base._use_grad_for_differentiable
    def step(self, closure=None):
        for group in self.param_groups:
            for p in filter(lambda p: p.grad is not None, group["params"]):
                state = self.state[p]
                if len(state) == 0:
                    state["exp_avg"] = pb.zeros_like(p)
                beta1, beta2 = group["betas"]
                update = state["exp_avg"].clone().mul_(beta1).add(p.grad, alpha=1 - beta1).sign_()
                p.add_(update, alpha=-group["lr"])
                state["exp_avg"].mul_(beta2).add_(p.grad, alpha=1 - beta2)


def test_optimizers_of_third_parties():
    p, calls = leaf(), []
    start = p.detach().clone()
    optimizer = Lion([p])
    optimizer.register_step_post_hook(lambda *args: calls.append(1))
    for _ in range(2):
        p.grad = pb.ones_like(start)
        optimizer.step()
    np.testing.assert_allclose((start - p.detach()).numpy(), 0.02)
    assert calls == [1, 1] and "lr: 0.01" in repr(optimizer)
    optimizer.load_state_dict(optimizer.state_dict())
    assert pb.is_grad_enabled()
    assert base._get_value(pb.tensor(2.0)) == 2.0 and base._dispatch_sqrt(4.0) == 2.0
    assert base._default_to_fused_or_foreach([p], False, True) == (True, False)


# import paths


def test_import_paths():
    import importlib

    from pullback.optim import _functional, _multi_tensor

    for name, home in optim._HOME.items():
        module = importlib.import_module(f"pullback.optim.{home}")
        assert getattr(module, name) is getattr(optim, name)
    assert _multi_tensor.Adam([leaf()]).defaults["foreach"] is True
    assert _functional.adam is importlib.import_module("pullback.optim.adam").adam


LISTS = {  # optimizer -> its state in the order of the function's arguments
    "adam": ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"),
    "adamw": ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"),
    "adamax": ("exp_avg", "exp_inf", "step"),
    "nadam": ("exp_avg", "exp_avg_sq", "mu_product", "step"),
    "radam": ("exp_avg", "exp_avg_sq", "step"),
    "rmsprop": ("square_avg", "grad_avg", "momentum_buffer", "step"),
    "adagrad": ("sum", "step"),
    "adadelta": ("square_avg", "acc_delta", "step"),
    "asgd": ("ax", "mu", "eta", "step"),
    "rprop": ("prev", "step_size", "step"),
    "sgd": ("momentum_buffer",),
}


@pytest.mark.parametrize("name", LISTS)
def test_functions_of_lists(name):
    import inspect

    from pullback.optim import _functional

    function = getattr(_functional, name)
    cls = next(getattr(optim, n) for n in optim._HOME if n.lower() == name)
    p = leaf()
    more = {"sgd": {"momentum": 0.9}, "rmsprop": {"momentum": 0.9, "centered": True}}.get(name, {})
    optimizer = cls([p], **more)
    optimizer.step(quadratic(p, optimizer))
    q = p.detach().clone()
    states = [copy.deepcopy(optimizer.state[p]).get(n) for n in LISTS[name]]
    given = dict(optimizer.param_groups[0])
    given.update(zip(("beta1", "beta2"), given.get("betas", ())))
    given.update(zip(("etaminus", "etaplus"), given.get("etas", ())))
    given.update(zip(("step_size_min", "step_size_max"), given.get("step_sizes", ())))
    wanted = inspect.signature(function).parameters
    options = {k: v for k, v in given.items() if k in wanted and wanted[k].kind == 3}
    p.grad = pb.ones_like(q)
    function([q], [pb.ones_like(q)], *[[] if s is None else [s] for s in states], **options)
    optimizer.step()
    assert pb.equal(p.detach(), q)


def test_a_missing_momentum_is_put_into_the_list():
    from pullback.optim._functional import sgd

    p, buffers = leaf().detach(), [None]
    sgd([p], [pb.ones_like(p)], buffers, weight_decay=0, momentum=0.9, lr=0.1, dampening=0.5,
        nesterov=False, maximize=False)
    assert pb.equal(buffers[0], pb.ones_like(p))


# those without a formula per element


@pytest.mark.parametrize("more", [{"lr": 0.2}, {"line_search_fn": "strong_wolfe"},
                                  {"line_search_fn": "strong_wolfe", "history_size": 2}])
def test_lbfgs_finds_the_bottom_of_a_valley(more):
    x = pb.tensor([-1.5, 2.0], dtype=pb.float64, requires_grad=True)
    y = pb.tensor([[0.5j]], dtype=pb.complex128, requires_grad=True)
    optimizer = optim.LBFGS([x, y], max_iter=50, **more)

    def closure():
        optimizer.zero_grad()
        loss = 10 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2 + (y - 2j).abs().pow(2).sum()
        loss.backward()
        return loss

    for _ in range(4):
        optimizer.step(closure)
    assert closure().item() < 1e-8
    np.testing.assert_allclose(x.detach().numpy(), [1, 1], atol=1e-4)
    assert optimizer.state_dict()["state"][0]["n_iter"] <= 200


def test_lbfgs_counts_its_calls():
    x = pb.tensor([2.0], dtype=pb.float64, requires_grad=True)
    optimizer = optim.LBFGS([x], max_iter=4, line_search_fn="strong_wolfe")
    calls = []

    def closure():
        optimizer.zero_grad()
        loss = x.pow(4).sum()
        loss.backward()
        calls.append(loss.item())
        return loss

    assert optimizer.step(closure).item() == 16
    assert optimizer.state[x]["func_evals"] == len(calls) and calls[-1] < 0.1


def test_sparse_adam_leaves_unused_rows_alone():
    table = pb.nn.Embedding(6, 3, sparse=True)
    start = table.weight.detach().clone()
    optimizer = optim.SparseAdam(table.parameters(), lr=0.1)
    for rows in ([0, 2], [2, 2]):
        optimizer.zero_grad()
        table(pb.tensor(rows)).sum().backward()
        optimizer.step()
    moved = (start - table.weight.detach()).numpy()
    assert not moved[[1, 3, 4, 5]].any()
    np.testing.assert_allclose(moved[0], 0.1, rtol=1e-5)  # one step of size lr
    assert moved[2].min() > 0.15
    assert optimizer.state[table.weight]["step"] == 2


def test_muon_makes_steps_orthogonal():
    p = leaf((4, 8))
    start = p.detach().clone()
    optimizer = optim.Muon([p], lr=1.0, weight_decay=0.0)
    p.grad = leaf((4, 8), seed=3).detach()
    optimizer.step()
    values = np.linalg.svd((start - p.detach()).numpy(), compute_uv=False)
    assert values.min() > 0.5 and values.max() < 1.3


def test_no_warnings_from_numpy():
    p = pb.zeros(3, requires_grad=True)
    optimizer = optim.Adam([p], eps=0.0)
    p.grad = pb.zeros(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=RuntimeWarning, module="pullback")
        optimizer.step()
    assert p.isnan().all()


def test_modes_see_the_operators_of_a_step():
    from pullback.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Operators(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    one, other = (pb.nn.Parameter(pb.ones(3)) for _ in range(2))
    for p in (one, other):
        p.grad = pb.full((3,), 0.5)
    with Operators():
        pb.optim.Adam([one]).step()
    assert pb.ops.aten.copy_.default in seen and pb.ops.aten.sqrt.default in seen
    pb.optim.Adam([other]).step()
    pb.testing.assert_close(one, other)
