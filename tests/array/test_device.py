"""Devices: kernels use only the array namespace of their arguments.

Every sample of the table runs on a stand-in device whose arrays refuse NumPy
(`second_device.py`), forward and backward, and must give what the CPU gives.
"""


import numpy as np
import pytest

import pullback as torch
from pullback import errors
from pullback.array import dtype as dt
from pullback.array.device import Device
from pullback.autograd.gradients import grad
from pullback.core.handle import make
from pullback.core.op import registry
from pullback.core.overload import overload_of
from pullback.core.stack import bind
from pullback.testing import samples
from tests.helpers import second_device as second

NAME = second.install()
GPU = Device(NAME)

# operators that need the host, and why; random operators do: their stream lives there
HOST = {
    "_to_cpu": "goes to the host, that is its meaning",
    "get_device": "asks which device it is",
    "_pad_packed_sequence": "`batch_sizes` is a tensor of the host by contract, as in PyTorch",
}


def moved(value):
    """The same arguments on the second device."""
    if isinstance(value, torch.Tensor):
        return make(second.DeviceArray(np.array(value._payload)))
    return [moved(v) for v in value] if isinstance(value, list) else value


def placed(ov, flat: tuple, device) -> tuple:
    """Arguments with the device argument of a creation operator filled in."""
    makes = ov.kind == "creation" or ov.is_composite
    return tuple(
        device if a.base == "Device" and makes else v
        for a, v in zip(ov.schema.args, flat, strict=True)
    )


def listed(out) -> list:
    """All results, those in lists of results included."""
    return [o for v in out for o in listed(v)] if isinstance(out, (list, tuple)) else [out]


def host(t) -> np.ndarray:
    kind = type(t._payload)
    assert kind is second.DeviceArray, f"a result is on the host: {kind.__name__}"
    return t._payload._host


def same(ours, expected, what):
    for a, b in zip(listed(ours), listed(expected), strict=True):
        if isinstance(b, torch.Tensor):
            assert str(a.device) == NAME, what
            h = host(a)
            assert h.dtype == b._payload.dtype and h.shape == b._payload.shape, what
            np.testing.assert_allclose(h, b._payload, rtol=1e-12, atol=1e-12, err_msg=what)
        else:
            assert a == b, what


def skipped(op) -> bool:
    return op.kind == "random" or op.full_name in HOST or op.samples is None


ENTRIES = [op for op in registry.values() if not skipped(op)]


@pytest.mark.parametrize("op", ENTRIES, ids=lambda op: op.full_name)
def test_kernel(op):
    ov = overload_of(op)
    for case in samples.cases(op, dt.float64):
        flat = samples.flat(op, case)
        if op.base_name.startswith(("empty", "new_empty")):
            out = bind(ov, placed(ov, moved(list(flat)), GPU))
            assert host(out).shape == bind(ov, flat)._payload.shape
            continue
        ours = placed(ov, moved(list(flat)), GPU)  # before the operator can write its arguments
        same(bind(ov, ours), bind(ov, flat), case.label)


def tracked(flat: tuple, on_device: bool) -> tuple:
    """(arguments, leaves): all floating tensors require grad."""
    leaves = []

    def one(v):
        if isinstance(v, list):
            return [one(x) for x in v]
        if not isinstance(v, torch.Tensor):
            return v
        t = moved(v) if on_device else make(np.array(v._payload))
        if t.dtype.category >= 2:
            t.requires_grad_()
            leaves.append(t)
        return t

    return tuple(one(v) for v in flat), leaves


def gradients(ov, flat: tuple, on_device: bool):
    flat, leaves = tracked(flat, on_device)
    written = [a.is_write and isinstance(v, torch.Tensor) for a, v in zip(ov.schema.args, flat)]
    flat = tuple(v.clone() if w else v for v, w in zip(flat, written))
    outs = [o for o in listed(bind(ov, flat)) if isinstance(o, torch.Tensor) and o.requires_grad]
    if not outs or not leaves:
        return None
    seeds = []
    for i, o in enumerate(outs):
        seed = make(
            np.asarray(np.random.default_rng(i).normal(size=tuple(o.shape))).astype(o._payload.dtype)
        )
        seeds.append(moved(seed) if on_device else seed)
    return grad(outs, leaves, seeds, allow_unused=True)


def differentiable(op) -> bool:
    ov = overload_of(op)
    return ov.is_composite or ov.rule is not None


@pytest.mark.parametrize(
    "op", [op for op in ENTRIES if differentiable(op)], ids=lambda op: op.full_name
)
def test_pullback(op):
    ov = overload_of(op)
    for case in samples.cases(op, dt.float64):
        flat = samples.flat(op, case)
        try:
            expected = gradients(ov, flat, False)
        except (errors.NotDifferentiable, errors.DerivativeNotWritten):
            continue
        if expected is None:
            continue
        got = gradients(ov, flat, True)
        for g, e in zip(got, expected, strict=True):
            assert (g is None) == (e is None), case.label
            if g is not None:
                np.testing.assert_allclose(
                    host(g), e._payload, rtol=1e-10, atol=1e-12, err_msg=case.label
                )


def test_the_stand_in_refuses_numpy():
    a = second.xp.ones((2, 2))
    for call in (
        lambda: np.sin(a),
        lambda: np.asarray(a),
        lambda: np.concatenate([a, a]),
        lambda: a + np.ones((2, 2)),
        lambda: np.ones((2, 2)) * a,
        lambda: second.xp.sin(np.ones(2)),
        lambda: a[np.array([0])],
    ):
        with pytest.raises(TypeError):
            call()
    assert (np.float32(2) * a).tolist() == [[2, 2], [2, 2]]
    assert second.xp.asnumpy(a + 1).tolist() == [[2, 2], [2, 2]]
    assert type(second.xp.add.reduce(a)) is second.DeviceArray


def on_gpu(*values):
    return torch.tensor(values, dtype=torch.float64, device=NAME)


def test_moving():
    x = torch.tensor([1.0, 2.0])
    y = x.to(NAME)
    assert str(y.device) == NAME and y.device == Device(NAME) and not y.is_cuda
    assert y.to(NAME) is y and str(y.cpu().device) == "cpu" and y.cpu().tolist() == [1, 2]
    assert y.tolist() == [1, 2] and y[0].item() == 1 and y.numpy(force=True).tolist() == [1, 2]
    assert str(torch.zeros(2, device=NAME).device) == NAME
    assert str(torch.zeros_like(y).device) == NAME and str(y.new_ones(2).device) == NAME
    assert str(torch.tensor([1, 2], device=NAME).device) == NAME
    assert "device='fake_gpu'" in repr(y)


def test_gradient_crosses_devices():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x.to(NAME) * 3).cpu().sum().backward()
    assert x.grad.tolist() == [3, 3] and str(x.grad.device) == "cpu"


def test_mixed_devices_are_refused():
    x, y = torch.ones(2, dtype=torch.float64), on_gpu(1.0, 2.0)
    for call in (
        lambda: x + y,
        lambda: y * x,
        lambda: torch.cat([x, y]),
        lambda: x @ y,
        lambda: torch.where(x > 0, x, y),
        lambda: x.add_(y),
    ):
        with pytest.raises(errors.DeviceError) as caught:
            call()
        first = str(caught.value).splitlines()[0]
        assert "cpu" in first and NAME in first and "test_device.py" in first
        assert "Fix:" in str(caught.value) and isinstance(caught.value, RuntimeError)
    assert x.tolist() == [1, 1] and x._version == 0
    assert (y * 2).tolist() == [2, 4]  # Python numbers go anywhere
    assert (y * torch.tensor(2.0)).tolist() == [2, 4]  # and so do 0-d tensors of the host


def test_unknown_devices():
    with pytest.raises(RuntimeError, match="no device type 'abacus'"):
        torch.zeros(2, device="abacus")


def test_training_step():
    """Autograd, views and writes on the second device."""
    w = on_gpu(0.5, -0.5).requires_grad_()
    for _ in range(3):
        loss = ((w * on_gpu(1.0, 2.0)).tanh().sum() - 0.3) ** 2
        loss.backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
            w.grad.zero_()
    v = torch.tensor([0.5, -0.5], dtype=torch.float64, requires_grad=True)
    for _ in range(3):
        loss = ((v * torch.tensor([1.0, 2.0], dtype=torch.float64)).tanh().sum() - 0.3) ** 2
        (g,) = torch.autograd.grad(loss, v)
        v = (v - 0.1 * g).detach().requires_grad_()
    np.testing.assert_allclose(host(w), v.detach().numpy(), rtol=1e-12)


def test_writes_share_memory():
    x = torch.zeros(2, 3, dtype=torch.float64, device=NAME)
    row, alias = x[1], x.detach()
    row.add_(1)
    x[:, 0] = 5
    alias.mul_(2)
    assert x.tolist() == [[10, 0, 0], [10, 2, 2]] and row.tolist() == [10, 2, 2]
    assert alias.tolist() == x.tolist() and x._version == row._version == alias._version == 3
    y = on_gpu(1.0, 2.0).requires_grad_()
    z = y * 2
    z[0].mul_(10)
    z[1:] += y[:1]
    z.sum().backward()
    assert y.grad.tolist() == [21, 2]


def test_versions_on_the_second_device():
    x = on_gpu(1.0, 2.0).requires_grad_()
    y = x * 1
    z = (y * y).sum()
    y.add_(1)
    with pytest.raises(errors.SavedValueModified):
        z.backward()
    with pytest.raises(errors.LeafWriteError):
        x.add_(1)


def test_transforms():
    from pullback.func import grad as grad_of
    from pullback.func import jacrev, vmap

    x = on_gpu(1.0, 2.0)
    assert grad_of(lambda t: (t**3).sum())(x).tolist() == [3, 12]
    assert vmap(lambda t: t * 2)(x).tolist() == [2, 4]
    assert jacrev(lambda t: t * t)(x).tolist() == [[2, 0], [0, 4]]
    assert str(jacrev(lambda t: t * t)(x).device) == NAME


def test_conjugates_are_copies_there():
    values = np.array([1 + 2j, 3 - 1j])
    x = moved(torch.from_numpy(values)).requires_grad_()
    b = x * 1
    y, z = b.conj(), torch._neg_view(b.real)
    assert not (y.is_conj() or z.is_neg() or y._is_view() or y.imag.is_neg())
    b.mul_(2)
    np.testing.assert_array_equal(host(y), values.conj())
    np.testing.assert_array_equal(host(z), -values.real)
    gradient, = grad([(y * y).real.sum()], [x])
    np.testing.assert_allclose(host(gradient), 2 * values.conj())


def on_device(*values):
    """Tensors of the host and the same on the second device."""
    return [(v, make(second.DeviceArray(np.array(v._payload)))) for v in values]


KEYS = {
    "rows": lambda: torch.tensor([0, 2]), "a mask": lambda: torch.tensor([True, False, True]),
    "columns": lambda: (slice(None), torch.tensor([1, 1])),
    "one of each": lambda: (torch.tensor([0, 2]), moved(torch.tensor([1, 3]))),
    "a number": lambda: torch.tensor(1),
}  # fmt: skip


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_indices_of_the_host(key):
    """Index tensors may be in the memory of the host, whatever they index."""
    key = key()
    (here, there), = on_device(torch.arange(12.0, dtype=torch.float64).reshape(3, 4))
    plain = tuple(torch.from_numpy(k._payload._host) if isinstance(k, torch.Tensor) and (
        str(k.device) == NAME) else k for k in (key if isinstance(key, tuple) else (key,)))
    same(there[key], here[plain], "read")
    for value in (1.0, torch.tensor(2.0, dtype=torch.float64)):
        ours, theirs = there.clone(), here.clone()
        ours[key] = theirs[plain] = value
        same(ours, theirs, "written")
    ours, theirs = there.clone().requires_grad_(), here.clone().requires_grad_()
    (ours[key] * 2).sum().backward()
    (theirs[plain] * 2).sum().backward()
    same(ours.grad, theirs.grad, "gradient")


def test_indices_of_a_device_are_refused_on_the_host():
    index = moved(torch.tensor([0, 2]))
    with pytest.raises(errors.DeviceError, match="different devices"):
        torch.arange(3.0)[index]
    with pytest.raises(errors.DeviceError, match="different devices"):
        moved(torch.arange(3.0))[torch.tensor([0, 2])] = torch.ones(2)


def test_copies_between_devices():
    """`copy_` takes a tensor from anywhere, and its gradient goes back there."""
    for (here, there) in on_device(torch.arange(6.0).reshape(2, 3), torch.tensor(3.0)):
        back, away = torch.zeros_like(here).copy_(there), torch.zeros_like(there).copy_(here)
        assert str(back.device) == "cpu" and torch.equal(back, here)
        same(away, here, "away")
        leaf = there.clone().requires_grad_()
        (torch.zeros_like(here).copy_(leaf) * 2).sum().backward()
        same(leaf.grad, torch.full_like(here, 2.0), "gradient")
