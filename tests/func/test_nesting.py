"""Transforms in any order: every pair and triple, against finite differences and loops.

Each transform takes a function from vectors to arrays to another such function, in two versions:
ours, and one by NumPy with fourth-order differences.  Composing both in the same order must
agree.
"""

import functools
import itertools

import numpy as np
import pytest

import pullback as torch
from pullback import errors
from pullback.func import grad, hessian, jacfwd, jacrev, jvp, value_and_grad, vjp, vmap

# functions of a vector of two numbers


def swinging(x):
    return x.sin() * x.sum()


def swinging_np(x):
    return np.sin(x) * x.sum()


def overwritten(x):
    y = x * x
    y[0] = y[0] * x[1]
    y.mul_(x)
    return y


def overwritten_np(x):
    y = x * x
    return np.stack([y[0] * x[1], *y[1:]]) * x


def assembled(x):
    out = torch.zeros(3, dtype=torch.float64)
    out[0] = x[0] * x[1]
    out[1:] = x.exp()
    out[::2] += x
    return out


def assembled_np(x):
    return np.stack([x[0] * x[1] + x[0], np.exp(x[0]), np.exp(x[1]) + x[1]])


MATRIX = np.array([[1.0, -0.5], [0.3, 0.7], [0.2, 0.4]])


def product(x):
    return (torch.from_numpy(MATRIX) @ x).tanh() * (x @ x)


def product_np(x):
    return np.tanh(MATRIX @ x) * (x @ x)


def through_views(x):
    y = torch.stack([x, x * 2])
    column = y.T[1]
    column.mul_(x)
    y.diagonal().add_(x[0])
    return y.reshape(-1) * column.sum()


def through_views_np(x):
    y = np.stack([x, x * 2])
    y = np.stack([y[:, 0], y[:, 1] * x], 1) + np.eye(2) * x[0]
    return y.reshape(-1) * y[:, 1].sum()


def normalised(x):
    return x.softmax(0) * x.exp().sum().log() + torch.nn.functional.layer_norm(x * x, (2,))


def normalised_np(x):
    e = np.exp(x)
    y = x * x
    c = y - y.mean()
    return e / e.sum() * np.log(e.sum()) + c / np.sqrt((c * c).mean() + 1e-5)


def chosen(x):
    return torch.where(x > x.mean(), x**3, x * x.cos()) + x.max() * x[torch.tensor([1, 0])]


def chosen_np(x):
    return np.where(x > x.mean(), x**3, x * np.cos(x)) + x.max() * x[[1, 0]]


def reduced(x):
    y = torch.cat([x, x * x.flip(0)])
    return torch.stack([y.prod(0), y.std(0), y.norm(), y.logsumexp(0), y.cumsum(0)[2]])


def reduced_np(x):
    y = np.concatenate([x, x * x[::-1]])
    return np.stack(
        [y.prod(), y.std(ddof=1), np.sqrt((y * y).sum()), np.log(np.exp(y).sum()), y[:3].sum()]
    )


FUNCTIONS = {
    f.__name__: (f, globals()[f.__name__ + "_np"])
    for f in (swinging, overwritten, assembled, product, through_views, normalised, chosen, reduced)
}
POINT = np.array([0.4, 0.9])
DIRECTION = np.array([0.6, -1.1])
STEP = 2e-2


def difference(f, x, v):
    """Directional derivative by a sixth-order central difference."""
    return sum(
        w * (f(x + k * STEP * v) - f(x - k * STEP * v)) for k, w in ((1, 45), (2, -9), (3, 1))
    ) / (60 * STEP)


def spread(x):
    """A batch of two points around x."""
    return (torch if isinstance(x, torch.Tensor) else np).stack([x, x * 0.75])


def jacobian_np(f):
    return lambda x: np.stack([difference(f, x, u) for u in np.eye(2)], -1)


def pulled_back(f):
    def rows(x):
        out, pull = vjp(f, x)
        return pull(torch.ones_like(out))[0]

    return rows


TRANSFORMS = {
    "grad": (lambda f: grad(lambda x: f(x).sum()), lambda f: jacobian_np(lambda x: f(x).sum())),
    "vjp": (pulled_back, lambda f: jacobian_np(lambda x: f(x).sum())),
    "jvp": (
        lambda f: lambda x: jvp(f, (x,), (torch.from_numpy(DIRECTION),))[1],
        lambda f: lambda x: difference(f, x, DIRECTION),
    ),
    "vmap": (
        lambda f: lambda x: vmap(f)(spread(x)),
        lambda f: lambda x: np.stack([f(row) for row in spread(x)]),
    ),
    "jacrev": (jacrev, jacobian_np),
    "jacfwd": (jacfwd, jacobian_np),
}


def compose(names, number):
    def build(f):
        for name in reversed(names):
            f = TRANSFORMS[name][number](f)
        return f

    return build


SAME = {"vjp": "grad", "jacrev": "jacfwd"}  # what differs in ours alone


@functools.cache
def reference(names, label):
    return compose(names, 1)(FUNCTIONS[label][1])(POINT)


def agree(names, tolerance, labels=tuple(FUNCTIONS)):
    for label in labels:
        ours, _ = FUNCTIONS[label]
        got = compose(names, 0)(ours)(torch.from_numpy(POINT.copy()))
        expected = reference(tuple([SAME.get(name, name) for name in names]), label)
        assert got.shape == expected.shape, label
        assert got.dtype is torch.float64
        np.testing.assert_allclose(
            got.numpy(),
            expected,
            rtol=tolerance,
            atol=tolerance,
            err_msg=f"{' of '.join(names)} of {label}",
        )


@pytest.mark.parametrize("name", TRANSFORMS)
def test_single(name):
    agree((name,), 1e-8)


@pytest.mark.parametrize("names", list(itertools.product(TRANSFORMS, repeat=2)), ids=" of ".join)
def test_pair(names):
    agree(names, 1e-6)


@pytest.mark.parametrize(
    "names",
    list(itertools.product([t for t in TRANSFORMS if t != "vjp"], repeat=3)),
    ids=" of ".join,
)
def test_triple(names):
    """Of every other function: pairs are taken of all."""
    turn = sum(map(list(TRANSFORMS).index, names)) % 2
    agree(names, 1e-4, tuple(FUNCTIONS)[turn::2])


def test_deep_nesting():
    """The tenth derivative of x^10 is 10!."""
    f = g = lambda x: x**10
    for k in range(10):
        f = grad(f)
        g = (lambda h: lambda x: jvp(h, (x,), (torch.ones(()),))[1])(g) if k % 2 else grad(g)
    assert f(torch.tensor(1.0)).item() == g(torch.tensor(1.0)).item() == 3628800


# perturbation confusion


def test_perturbation_confusion():
    def inner_derivative(transform):
        return lambda x: x * transform(lambda y: x + y)(torch.tensor(1.0))

    def by_jvp(f):
        return lambda x: jvp(f, (x,), (torch.tensor(1.0),))[1]

    for inner, outer in itertools.product((grad, by_jvp), repeat=2):
        assert outer(inner_derivative(inner))(torch.tensor(2.0)).item() == 1


def test_closures_are_constants_of_inner_levels():
    x = torch.tensor(3.0)
    assert grad(lambda a: grad(lambda b: a * b * b)(a))(x).item() == 12  # d/da 2 a^2
    assert vmap(lambda a: grad(lambda b: (a * b).sin())(x))(torch.tensor([0.5, 2.0])).tolist() == (
        pytest.approx([0.5 * np.cos(1.5), 2 * np.cos(6.0)])
    )


# the eager tape


def test_eager_tape_through_transforms():
    x = torch.tensor([0.4, 0.9], dtype=torch.float64, requires_grad=True)
    for f, f_np in FUNCTIONS.values():
        for names in (
            ("vmap",),
            ("grad",),
            ("jvp",),
            ("jacrev",),
            ("vmap", "grad"),
            ("jacfwd", "grad"),
        ):
            out = compose(names, 0)(f)(x)
            assert out.requires_grad
            w = np.cos(np.arange(out.numel(), dtype=float)).reshape(out.shape)
            (g,) = torch.autograd.grad(out, x, torch.from_numpy(w))
            reference = compose(names, 1)(f_np)
            expected = jacobian_np(lambda p: (reference(p) * w).sum())(POINT)
            np.testing.assert_allclose(g.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_eager_tape_inside_of_transforms():
    """`autograd.grad` may be called inside of a transformed function."""

    def f(x):
        y = x.detach().requires_grad_() if not x.requires_grad else x
        return torch.autograd.grad((y**3).sum(), y, create_graph=True)[0]

    assert vmap(f)(torch.tensor([[1.0], [2.0]])).tolist() == [[3], [12]]
    assert jacrev(f)(torch.tensor([1.0, 2.0])).tolist() == [[6, 0], [0, 12]]


def test_closed_over_leaf_gets_its_gradient():
    w = torch.tensor([2.0, 3.0], requires_grad=True)
    vmap(lambda x: (w * x).sum())(torch.ones(4, 2)).sum().backward()
    assert w.grad.tolist() == [4, 4]
    w.grad = None
    grad(lambda x: (w * x * x).sum())(torch.ones(2)).sum().backward()
    assert w.grad.tolist() == [2, 2]


def test_hooks_work_at_every_level():
    seen = []

    def f(x):
        y = x * 2
        y.register_hook(lambda g: seen.append(tuple(g.shape)))
        return (y * y).sum()

    grad(f)(torch.ones(3))
    vmap(grad(f))(torch.ones(4, 3))
    assert seen == [(3,), (3,)]


# escape


def leak_from(transform):
    kept = []

    def f(x):
        kept.append(x * 2)
        return (x * x).sum()

    transform(f)
    return kept[0]


ESCAPES = {
    "grad": lambda f: grad(f)(torch.ones(2)),
    "vmap": lambda f: vmap(f)(torch.ones(3, 2)),
    "jvp": lambda f: jvp(f, (torch.ones(2),), (torch.ones(2),)),
    "vjp": lambda f: vjp(f, torch.ones(2)),
}


USES = (
    lambda kept: kept + 1,
    lambda kept: torch.ones(2) * kept,
    lambda kept: kept.sum(),
    lambda kept: torch.cat([torch.ones(1), kept]),
    lambda kept: kept.add_(1),
    lambda kept: grad(lambda x: (x * kept).sum())(torch.ones(2)),
)


def test_escaped_from_vmap():
    kept = leak_from(ESCAPES["vmap"])
    for use in USES:
        with pytest.raises(errors.EscapedTensor) as caught:
            use(kept)
        assert "test_nesting.py" in str(caught.value).splitlines()[0]
        assert "vmap" in str(caught.value)
    assert torch.is_grad_enabled() and (torch.ones(1) + 1).item() == 2


@pytest.mark.parametrize("name", ["grad", "jvp", "vjp"])
def test_escaped_from_derivatives_is_the_value(name):
    for use in USES:
        kept, plain = leak_from(ESCAPES[name]), leak_from(lambda f: f(torch.ones(2)))
        assert "lvl=-2" in repr(kept)
        found = use(kept)
        assert torch.equal(found, use(plain)) and not found.requires_grad
    kept = leak_from(ESCAPES[name])
    assert kept.t_().shape == (2,)
    assert torch.add(torch.ones(2), 1, out=leak_from(ESCAPES[name])).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="does not require grad"):
        leak_from(ESCAPES[name]).backward(torch.ones(2))
    assert np.array_equal(leak_from(ESCAPES[name]).detach().numpy(), plain.numpy())


def test_escaped_two_levels():
    kept = []
    y = torch.ones(2, requires_grad=True)
    grad(lambda x: grad(lambda z: (kept.append(x * z * y) or kept[-1]).sum())(x).sum())(y)
    kept[0].sum().backward()  # what is below the levels goes on
    assert y.grad.tolist() == [3, 3]


def test_pullback_after_the_output_escaped():
    kept = []
    value, pull = vjp(lambda x: kept.extend([x, x.sin()]) or kept[-1], torch.ones(2))
    assert torch.equal(kept[0] + 1, torch.ones(2) * 2) and torch.equal(kept[1] * 1, value)
    assert torch.equal(pull(torch.ones(2))[0], torch.ones(2).cos())


def test_level_is_left_after_an_exception():
    def f(x):
        raise KeyError("inside")

    for run in ESCAPES.values():
        with pytest.raises(KeyError, match="inside"):
            run(f)
    x = torch.ones(1, requires_grad=True)
    (x * 2).backward()
    assert x.grad.item() == 2 and vmap(lambda a: a + 1)(torch.ones(2)).tolist() == [2, 2]


# vmap


@pytest.mark.parametrize(
    "use",
    [
        bool,
        float,
        int,
        lambda t: t.item(),
        lambda t: t.tolist(),
        lambda t: 1 if t > 0 else 2,
        lambda t: t.numpy(),
    ],
)
def test_values_under_vmap(use):
    with pytest.raises(errors.DataDependentError) as caught:
        vmap(lambda x: use(x) and x)(torch.ones(3))
    assert "test_nesting.py" in str(caught.value).splitlines()[0]
    assert "where()" in str(caught.value)


def test_values_under_grad_and_jvp_are_known():
    def f(x):
        return x * x if x > 0 else -x

    assert grad(f)(torch.tensor(3.0)).item() == 6 and grad(f)(torch.tensor(-3.0)).item() == -1
    assert jvp(f, (torch.tensor(3.0),), (torch.tensor(1.0),))[1].item() == 6
    assert grad(lambda x: x * x.item())(torch.tensor(3.0)).item() == 3


def test_in_dims_and_out_dims():
    x, y = torch.arange(6.0).reshape(2, 3), torch.arange(3.0)
    assert vmap(lambda a: a * 2)(x).tolist() == (x * 2).tolist()
    assert vmap(lambda a: a.sum(), in_dims=1)(x).tolist() == x.sum(0).tolist()
    assert vmap(lambda a: a.sum(), in_dims=-1)(x).tolist() == x.sum(0).tolist()
    assert vmap(lambda a: a * 2, in_dims=1, out_dims=1)(x).tolist() == (x * 2).tolist()
    assert vmap(lambda a: a * 2, out_dims=-1)(x).tolist() == (x * 2).T.tolist()
    outer = vmap(vmap(torch.mul, in_dims=(None, 0)), in_dims=(0, None))
    assert outer(y, y).tolist() == torch.outer(y, y).tolist()
    assert vmap(lambda a, b: a + b, in_dims=(1, 0))(x, y).tolist() == (x.T + y[:, None]).tolist()
    assert vmap(lambda a, b: a + b, in_dims=(0, None))(x, y).tolist() == (x + y).tolist()
    assert vmap(lambda a, n: a * n, in_dims=(0, None))(x, 3).tolist() == (x * 3).tolist()
    a, b = vmap(lambda v: (v, v.sum()), out_dims=(1, 0))(x)
    assert a.tolist() == x.T.tolist() and b.tolist() == x.sum(1).tolist()
    c, d = vmap(lambda v: (v, y), out_dims=(0, None))(x)
    assert d.tolist() == y.tolist() and c.shape == (2, 3)
    assert vmap(lambda v: y)(x).tolist() == [y.tolist()] * 2
    assert vmap(lambda v, k=1: v * k)(x, k=5).tolist() == (x * 5).tolist()


def test_pytrees():
    params = {"w": torch.ones(2, 3), "b": [torch.zeros(2), torch.ones(2)]}

    def f(p, x):
        return {"out": (p["w"] * x).sum() + p["b"][0], "both": (p["b"][1], x)}

    x = torch.arange(3.0)
    out = vmap(f, in_dims=({"w": 0, "b": [0, 0]}, None))(params, x)
    assert out["out"].tolist() == [3, 3] and out["both"][1].shape == (2, 3)
    out = vmap(f, in_dims=(0, None))(params, x)
    assert out["both"][0].tolist() == [1, 1]

    def loss(p, x):
        return ((p["w"] @ x).sum() * p["b"][1]).sum()

    g = grad(loss)(params, x)
    assert set(g) == {"w", "b"} and g["w"].tolist() == [[0, 2, 4]] * 2
    assert g["b"][0].tolist() == [0, 0] and g["b"][1].tolist() == [6, 6]
    j = jacrev(lambda p: {"y": p["w"].sum(0)})({"w": torch.ones(2, 3)})
    assert j["y"]["w"].shape == (3, 2, 3)
    j = jacfwd(lambda p: {"y": p["w"].sum(0)})({"w": torch.ones(2, 3)})
    assert j["y"]["w"].shape == (3, 2, 3)
    value, tangent = jvp(
        lambda p: {"s": p["a"] * p["b"]},
        ({"a": torch.ones(1), "b": torch.ones(1)},),
        ({"a": torch.ones(1), "b": torch.full((1,), 2.0)},),
    )
    assert value["s"].tolist() == [1] and tangent["s"].tolist() == [3]
    _, pull = vjp(lambda a, b: (a * b, a), torch.tensor(2.0), torch.tensor(3.0))
    assert [t.item() for t in pull((torch.tensor(1.0), torch.tensor(10.0)))] == [13, 2]


def test_argnums_and_aux():
    def f(a, b, c):
        return (a * b * c).sum()

    args = [torch.tensor(2.0), torch.tensor(3.0), torch.tensor(5.0)]
    assert grad(f, argnums=1)(*args).item() == 10
    assert grad(f, argnums=-1)(*args).item() == 6
    assert [g.item() for g in grad(f, argnums=(0, 2))(*args)] == [15, 6]
    value, g = value_and_grad(f, argnums=(0,))(*args)
    assert value.item() == 30 and g[0].item() == 15
    g, aux = grad(lambda x: (x * x, {"twice": x * 2}), has_aux=True)(torch.tensor(3.0))
    assert g.item() == 6 and aux["twice"].item() == 6 and (aux["twice"] + 1).item() == 7
    _, pull, aux = vjp(lambda x: (x * x, x + 1), torch.tensor(3.0), has_aux=True)
    assert aux.item() == 4 and pull(torch.tensor(1.0))[0].item() == 6
    h = hessian(f, argnums=(0, 1))(*args)
    assert h[0][1].item() == 5 and h[1][1].item() == 0
    j, aux = jacrev(lambda x: (x * x, x), has_aux=True)(torch.ones(2))
    assert aux.tolist() == [1, 1] and j.tolist() == [[2, 0], [0, 2]]
    with pytest.raises(errors.TransformError):
        grad(f, argnums=3)(*args)


def test_chunks():
    x = torch.arange(10.0).reshape(5, 2)
    sizes = []

    def f(a):
        sizes.append(a.shape)
        return a.sum(), a * 2

    for chunk in (1, 2, 3, 5, 7):
        total, double = vmap(f, chunk_size=chunk, out_dims=(0, 1))(x)
        assert total.tolist() == x.sum(1).tolist() and double.tolist() == (x * 2).T.tolist()
    assert (
        jacrev(lambda a: a * a, chunk_size=1)(torch.ones(3)).tolist() == (2 * torch.eye(3)).tolist()
    )


def test_randomness():
    x = torch.zeros(4, 3)
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(lambda a: a + torch.rand(3))(x)
    same = vmap(lambda a: a + torch.rand(3), randomness="same")(x)
    assert (same == same[0]).all()
    other = vmap(lambda a: a + torch.rand(3), randomness="different")(x)
    assert not (other[0] == other[1]).any()
    dropped = vmap(lambda a: torch.nn.functional.dropout(a + 1, 0.5), randomness="different")(
        torch.zeros(50, 20)
    )
    assert 0.3 < (dropped == 0).double().mean().item() < 0.7
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(lambda a: a, randomness="sometimes")(x)
    torch.manual_seed(0)
    nested = vmap(
        vmap(lambda a: torch.randn(()) + a, randomness="different"), randomness="different"
    )(x)
    assert len(set(nested.reshape(-1).tolist())) == 12


def test_wrong_arguments_of_vmap():
    x = torch.ones(2, 3)
    for call in (
        lambda: vmap(torch.add)(x, torch.ones(3, 3)),
        lambda: vmap(torch.sin, 3)(x),
        lambda: vmap(lambda n: n)(2),
        lambda: vmap(torch.add, in_dims=(0,))(x, x),
        lambda: vmap(torch.sin, in_dims=None)(x),
        lambda: vmap(lambda a: 3)(x),
        lambda: vmap(torch.sin, out_dims=4)(x),
        lambda: vmap(torch.sin)(torch.tensor(1.0)),
        lambda: vmap(torch.sin, out_dims=None)(x),
    ):
        with pytest.raises((ValueError, IndexError)) as caught:
            call()
        assert isinstance(caught.value, (errors.MappingError, errors.DimError))
        assert "test_nesting.py" in str(caught.value).splitlines()[0]


def test_wrong_arguments_of_the_others():
    x = torch.ones(3)
    for call in (
        lambda: grad(torch.sin)(x),
        lambda: grad(lambda a: 3.0)(x),
        lambda: grad(lambda a: a.sum())(torch.arange(3)),
        lambda: jvp(torch.sin, (x,), (torch.ones(2),)),
        lambda: jvp(torch.sin, x, x),
        lambda: jvp(torch.sin, (x,), (x, x)),
        lambda: vjp(torch.sin, x)[1](torch.ones(2)),
        lambda: vjp(lambda a: 3, x),
        lambda: jvp(lambda a: 3, (x,), (x,)),
    ):
        with pytest.raises((RuntimeError, TypeError)) as caught:
            call()
        assert "test_nesting.py" in str(caught.value).splitlines()[0]


# mutation seen from outside


def test_inputs_changed_inside_are_changed_outside():
    def change(x):
        x.mul_(3)
        return x.sum()

    x = torch.ones(2)
    memory = x.data_ptr()
    g = grad(change)(x)
    assert x.tolist() == [3, 3] and g.tolist() == [3, 3]
    assert x._version == 1 and x.data_ptr() == memory
    y = torch.ones(2, 2)
    assert vmap(change)(y).tolist() == [6, 6] and y.tolist() == [[3, 3], [3, 3]]
    y = torch.arange(4.0).reshape(2, 2)
    vmap(change, in_dims=1)(y)
    assert y.tolist() == [[0, 3], [6, 9]]
    z = torch.ones(2)
    jvp(change, (z,), (torch.ones(2),))
    assert z.tolist() == [3, 3]
    z = torch.ones(2)
    _, pull = vjp(change, z)
    assert z.tolist() == [3, 3] and pull(torch.tensor(1.0))[0].tolist() == [3, 3]
    part = torch.ones(3)
    grad(change)(part[1:])
    assert part.tolist() == [1, 3, 3]
    both = torch.ones(2, 2)
    vmap(grad(change))(both)
    assert both.tolist() == [[3, 3], [3, 3]]


def test_writes_to_captured_tensors():
    total = torch.zeros(2)

    def f(x):
        total.add_(x.detach())
        return (x * x).sum()

    grad(f)(torch.ones(2))
    assert total.tolist() == [1, 1] and (total + 1).tolist() == [2, 2]
    counter = torch.zeros(1)

    def count(x):
        counter.add_(1)
        return x

    vmap(count)(torch.ones(3))
    assert counter.tolist() == [1]


def test_batched_write_to_outside_is_refused():
    outside = torch.zeros(2)
    view = outside[:1]

    def f(x):
        outside[0] = x
        return x

    with pytest.raises(errors.BatchedWriteError) as caught:
        vmap(f)(torch.arange(3.0))
    assert "vmap" in str(caught.value) and "test_nesting.py" in str(caught.value).splitlines()[0]
    assert outside.tolist() == [0, 0] and view.tolist() == [0] and not outside.requires_grad
    outside.add_(1)  # and it is usable as before
    assert outside.tolist() == [1, 1] and view.tolist() == [1]

    def g(x):
        view.add_(x)
        return x

    with pytest.raises(errors.BatchedWriteError):
        vmap(g)(torch.arange(3.0))
    assert outside.tolist() == [1, 1] and view.tolist() == [1]


def test_writes_to_unbatched_tensors_made_inside():
    def f(x):
        out = torch.zeros(3)
        out[1] = x
        out[2:].add_(x * 2)
        return out

    assert vmap(f)(torch.tensor([1.0, 2.0])).tolist() == [[0, 1, 2], [0, 2, 4]]
    assert vmap(lambda x: torch.zeros(()).add_(x))(torch.tensor([1.0, 2.0])).tolist() == [1, 2]


def test_indexing_with_batched_indices():
    x = torch.arange(12.0).reshape(3, 4)
    i = torch.tensor([0, 2, 3])
    assert vmap(lambda row, k: row[k])(x, i).tolist() == [0, 6, 11]
    assert vmap(lambda row, k: row.index_select(0, k[None]))(x, i).tolist() == [[0], [6], [11]]

    def put(row, k):
        row = row.clone()
        row[k] = -1
        return row

    expected = x.clone()
    expected[torch.arange(3), i] = -1
    assert vmap(put)(x, i).tolist() == expected.tolist()
    assert vmap(lambda k: torch.arange(4.0)[k])(i).tolist() == [0, 2, 3]


def test_out_under_vmap():
    def f(x):
        out = torch.zeros(2)
        torch.mul(x, 2, out=out)
        return out

    assert vmap(f)(torch.ones(3, 2)).tolist() == [[2, 2]] * 3


def test_vjp_may_be_pulled_many_times_and_late():
    x = torch.tensor([1.0, 2.0])
    _, pull = vjp(lambda a: a * a, x)
    assert pull(torch.ones(2))[0].tolist() == [2, 4]
    assert pull(torch.tensor([1.0, 0.0]))[0].tolist() == [2, 0]
    assert vmap(pull)(torch.eye(2))[0].tolist() == [[2, 0], [0, 4]]
    assert grad(lambda c: pull(c)[0].sum())(torch.ones(2)).tolist() == [2, 4]


def test_jvp_of_non_differentiable_parts():
    value, tangent = jvp(lambda x: x.detach() * 2, (torch.ones(2),), (torch.ones(2),))
    assert tangent.tolist() == [0, 0]
    value, tangent = jvp(lambda x: (x > 0).to(torch.float32), (torch.ones(2),), (torch.ones(2),))
    assert tangent.tolist() == [0, 0]
    value, tangent = jvp(lambda x: x.argmax(), (torch.ones(2),), (torch.ones(2),))
    assert value.item() == 0


def test_integer_outputs_of_vmap():
    x = torch.tensor([[1.0, 3.0], [5.0, 2.0]])
    assert vmap(torch.argmax)(x).tolist() == [1, 0]
    assert vmap(lambda a: a > 2)(x).tolist() == [[False, True], [True, False]]
