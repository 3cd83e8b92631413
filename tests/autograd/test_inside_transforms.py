"""What PyTorch refuses inside of transforms and mathematics allows: hooks, `.grad`, packed values,
backward, and writes of values that differ per example."""

import numpy as np
import pytest

import pullback as torch
from pullback.autograd import Function
from pullback.autograd.graph import (
    get_gradient_edge,
    register_multi_grad_hook,
    saved_tensors_hooks,
)
from pullback.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from pullback.fx.make_fx import make_fx

X = np.array([1.0, 2.0, 3.0])


def x():
    return torch.tensor(X)


def batch():
    return torch.tensor(np.stack([X, 2 * X]))


def zeros(*shape):
    return torch.zeros(*shape, dtype=torch.float64)


def close(a, b):
    assert np.allclose(a.detach().numpy(), np.asarray(b)), (a, b)


# hooks


def hooked(y, seen, factor=2.0):
    y.register_hook(lambda g: (seen.append(g), g * factor)[1])
    return y


def test_tensor_hooks_change_gradients():
    seen = []

    def f(v):
        return hooked(v**3, seen).sum()

    close(grad(f)(x()), 6 * X**2)
    assert len(seen) == 1
    close(vmap(grad(f))(batch()), np.stack([6 * X**2, 24 * X**2]))
    assert len(seen) == 2  # once for all examples
    close(jacrev(lambda v: hooked(v**3, seen))(x()), np.diag(6 * X**2))
    close(hessian(f)(x()), np.diag(12 * X))
    close(jvp(grad(f), (x(),), (torch.ones_like(x()),))[1], 12 * X)
    _, pull = vjp(lambda v: hooked(v**3, seen), x())
    seen.clear()
    for _ in range(2):
        close(pull(torch.ones_like(x()))[0], 6 * X**2)
    assert len(seen) == 2


def test_hooks_are_differentiated():
    def f(v):
        y = v**3
        y.register_hook(lambda g: g * g * v)  # uses the argument: counts in the second derivative
        return (y * 2).sum()

    close(grad(f)(x()), 4 * X * 3 * X**2)
    close(jacrev(grad(f))(x()), np.diag(36 * X**2))
    close(jacfwd(grad(f))(x()), np.diag(36 * X**2))


def test_hooks_of_the_argument_and_of_nodes():
    seen = []

    def f(v):
        hooked(v, seen)
        y = v * v
        y.grad_fn.register_prehook(lambda gs: (gs[0] * 3,))
        y.grad_fn.register_hook(lambda gi, go: seen.append(len(gi)))
        return y.sum()

    close(grad(f)(x()), 12 * X)
    assert seen[0] == 2 and len(seen) == 2


def test_hooks_can_be_removed():
    def f(v):
        y = v * v
        y.register_hook(lambda g: g * 100).remove()
        with y.register_hook(lambda g: g * 100):
            pass
        return y.sum()

    close(grad(f)(x()), 2 * X)


def test_multi_grad_hooks():
    seen = []

    def f(v, mode):
        y = v * v
        z = y.exp()
        unused = v * 3
        register_multi_grad_hook((y, z, unused), seen.append, mode=mode)
        return z.sum()

    grad(f)(x(), "all")
    assert [g is not None for g in seen.pop()] == [True, True, False]
    vmap(grad(f), in_dims=(0, None))(batch(), "any")
    assert len(seen) == 1 and seen[0].shape == (3,)


def test_retained_gradients_and_backward_inside():
    def f(v):
        w = torch.ones_like(v).requires_grad_()
        y = w * v * v
        y.retain_grad()
        (y * 3).sum().backward(create_graph=True)
        return (w.grad * y.grad).sum()  # 3 v² · 3

    close(grad(f)(x()), 18 * X)
    close(vmap(grad(f))(batch()), np.stack([18 * X, 36 * X]))
    close(jvp(f, (x(),), (torch.ones_like(x()),))[1], 18 * X.sum())
    close(hessian(f)(x()), np.diag([18.0] * 3))


def test_gradients_inside_keep_tangents():
    def f(v):
        w = v.clone().detach().requires_grad_()
        (w * v).sum().backward()
        return w.grad * v

    close(jvp(f, (x(),), (torch.ones_like(x()),))[1], 2 * X)


def test_post_accumulate_hooks():
    seen = []

    def f(v):
        w = torch.ones_like(v).requires_grad_()
        w.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad))
        (w * v * v).sum().backward(create_graph=True)
        return w.grad.sum()

    close(grad(f)(x()), 2 * X)
    close(vmap(grad(f))(batch()), np.stack([2 * X, 4 * X]))
    assert len(seen) == 2


def test_steps_of_an_optimizer_inside():
    """A training step is a function like any other: here, of its learning rate."""

    def trained(rate):
        w = torch.tensor(2.0, dtype=torch.float64).requires_grad_()
        for _ in range(2):
            loss = w * w
            (g,) = torch.autograd.grad(loss, w, create_graph=True)
            w = w - rate * g
        return w

    rate = torch.tensor(0.1, dtype=torch.float64)  # w = 2 (1 - 2 r)²
    close(grad(trained)(rate), -8 * (1 - 0.2))
    close(vmap(grad(trained))(torch.stack([rate, 2 * rate])), [-8 * 0.8, -8 * 0.6])


def test_saved_tensors_hooks():
    seen = []

    def halves():
        return saved_tensors_hooks(lambda t: (seen.append(1), t * 2)[1], lambda t: t / 2)

    def f(v):
        with halves():
            return (v.exp() * v).sum()

    expected = np.exp(X) * (1 + X)
    close(grad(f)(x()), expected)
    close(vmap(grad(f))(batch())[0], expected)
    assert seen
    with halves():
        close(grad(lambda v: (v.exp() * v).sum())(x()), expected)
        close(hessian(lambda v: (v**3).sum())(x()), np.diag(6 * X))


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled:UserWarning")
def test_edges_and_anomalies():
    def f(v):
        y = v * v
        edge = get_gradient_edge(y)
        return torch.autograd.grad(y.exp().sum(), edge, create_graph=True)[0].sum()

    close(grad(f)(x()), 2 * X * np.exp(X * X))
    with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="nan"):
        grad(lambda v: (v * 0).sqrt().sum() * 0)(x())


def test_hooks_in_captures():
    def f(v):
        return hooked(v**3, []).sum()

    close(make_fx(grad(f))(x())(x()), 6 * X**2)
    v = x().requires_grad_()
    torch.compile(f)(v).backward()
    close(v.grad, 6 * X**2)


# writes


TRANSFORMS = {
    "vmap": lambda f: vmap(f)(batch()),
    "jacfwd": lambda f: jacfwd(f)(x()),
    "jacrev": lambda f: jacrev(f)(x()),
    "vmap of jacrev": lambda f: vmap(jacrev(f))(batch()),
    "vmap of jacfwd": lambda f: vmap(jacfwd(f))(batch()),
    "jacfwd of jacrev": lambda f: jacfwd(jacrev(f))(x()),
}


def into_new(v):
    out = zeros(3)
    out[1] = v[0] * v[2]
    out[:1] = v[1:2].sin()
    return out


def into_new_plainly(v):
    return torch.stack([v[1].sin(), v[0] * v[2], v[0] * 0])


def through_views(v):
    out = v * 1
    out.view(3, 1)[0].mul_(v[2])
    out[1:].t()[0] += v[0] ** 2
    out.unsqueeze(0).diagonal().mul_(2)
    return out


def through_views_plainly(v):
    return torch.stack([2 * v[0] * v[2], v[1] + v[0] ** 2, v[2]])


def masked(v):
    out = zeros(3)
    out[v > 1.5] = -1.0
    out.masked_fill_(v > 2.5, 7.0)
    return out * v


def masked_plainly(v):
    return torch.where(v > 2.5, 7.0, torch.where(v > 1.5, -1.0, 0.0)) * v


def filled(v):
    out = zeros(2, 3)
    out.fill_(v.sum())
    out[0].copy_(v.exp())
    out[:, 1].zero_()
    return out.sum(0)


def filled_plainly(v):
    return (v.exp() + v.sum()) * torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64)


def accumulated(v):
    index = torch.tensor([0, 0, 2])
    out = v.new_zeros(3)
    out.index_put_((index,), v, accumulate=True)
    out.index_add_(0, index, v * v)
    out.scatter_add_(0, index, v.sin())
    return out


def accumulated_plainly(v):
    w = v + v * v + v.sin()
    return torch.stack([w[0] + w[1], w[0] * 0, w[2]])


WRITES = [
    (into_new, into_new_plainly),
    (through_views, through_views_plainly),
    (masked, masked_plainly),
    (filled, filled_plainly),
    (accumulated, accumulated_plainly),
]


@pytest.mark.parametrize("pair", WRITES, ids=lambda p: p[0].__name__)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_writes(transform, pair):
    written, plainly = pair
    run = TRANSFORMS[transform]
    close(run(written), run(plainly).numpy())


def test_batched_indices():
    place = torch.tensor([0, 2])
    value = torch.tensor([7.0, 8.0], dtype=torch.float64)

    def one(v, i, w):
        out = v.clone()
        out[i] = w
        return out

    close(vmap(one)(batch(), place, value), [[7, 2, 3], [2, 4, 8]])
    close(vmap(lambda i: one(zeros(3), i, 5.0))(place), [[5, 0, 0], [0, 0, 5]])

    def several(v, i, j):
        out = zeros(3, 3)
        out[i, j] = v
        out[:, 0] = v
        out[..., 2] += 1
        return out

    rows, columns = torch.tensor([[0, 1, 2], [2, 1, 0]]), torch.tensor([[1, 1, 1], [2, 2, 2]])
    found = vmap(several)(batch(), rows, columns)
    close(found[0], [[1, 1, 1], [2, 2, 1], [3, 3, 1]])
    close(found[1], [[2, 0, 7], [4, 0, 5], [6, 0, 3]])

    def loss(v, i):
        return (one(v, i, v[1] * v[2]) ** 2).sum()

    found = vmap(grad(loss))(batch(), place)
    for row, v, i in zip(found, batch(), place):
        close(row, grad(loss)(v, i).numpy())


def test_nested_batches():
    def f(v, w):
        out = v.new_zeros(3)
        out[0] = v.sum()
        out[1] = w.sum()
        out[2] = (v * w).sum()
        return out

    found = vmap(lambda v: vmap(lambda w: f(v, w))(batch()))(batch())
    for i, v in enumerate(batch()):
        for j, w in enumerate(batch()):
            close(found[i, j], f(v, w).numpy())


def test_outer_tensors():
    outer = zeros(3)
    found = vmap(lambda v: v + outer.add_(1))(batch())  # the same for all examples: allowed
    close(outer, [1, 1, 1])
    close(found, batch().numpy() + 1)
    for write in (
        lambda v: outer.copy_(v),
        lambda v: outer[1:].mul_(v[1:]),
        lambda v: outer.__setitem__(0, v[0]),
        lambda v: outer.index_add_(0, torch.tensor([0]), v[:1]),
        lambda v: torch.add(v, 1, out=outer),
    ):
        with pytest.raises(RuntimeError, match=r"outside of vmap \(test_inside_tr") as caught:
            vmap(write)(batch())
        close(outer, [1, 1, 1])  # nothing was changed
    assert "outer" in str(caught.value)


def test_the_line_that_made_the_outer_tensor_is_named():
    made_here = zeros(3)
    line = test_the_line_that_made_the_outer_tensor_is_named.__code__.co_firstlineno + 1
    with pytest.raises(RuntimeError) as caught:
        vmap(made_here.copy_)(batch())
    assert f"'made_here' (set at test_inside_transforms.py:{line})" in str(caught.value)

    def closure():
        total = zeros(3)

        def add(v):
            total.add_(v)
            return v

        return add

    with pytest.raises(RuntimeError, match="'total'"):
        vmap(closure())(batch())

    def inner(v):
        partial = v * 1  # differs per example of the outer level only

        def add(w):
            partial.add_(w)
            return w

        return vmap(add)(batch())

    with pytest.raises(RuntimeError, match=r"'partial' \(set at test_inside_transforms.py"):
        vmap(inner)(batch())


def test_writes_to_captured_tensors_are_differentiated():
    captured = zeros(3)

    def f(v):
        captured.copy_(v * v)
        return captured.sum()

    close(grad(f)(x()), 2 * X)
    close(captured, X * X)
    close(jvp(f, (x(),), (torch.ones_like(x()),))[1], 2 * X.sum())


def test_functions_that_write_under_transforms():
    class Scale(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(v, k):
            return v.mul_(k)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_dirty(inputs[0])
            ctx.k = inputs[1]

        @staticmethod
        def backward(ctx, g):
            return g * ctx.k, None

        @staticmethod
        def jvp(ctx, t, _):
            return t * ctx.k

    def f(v):
        y = v**2
        Scale.apply(y, 3.0)
        return y

    close(vmap(f)(batch()), 3 * batch().numpy() ** 2)
    close(jacrev(f)(x()), np.diag(6 * X))
    close(jacfwd(f)(x()), np.diag(6 * X))
    close(vmap(jacrev(f))(batch())[1], np.diag(12 * X))


# leaves made inside


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(3, dtype=torch.float64).requires_grad_(),
        lambda: torch.zeros(3, dtype=torch.float64, requires_grad=True),
        lambda: torch.tensor([0.0, 0.0, 0.0], dtype=torch.float64, requires_grad=True),
        lambda: torch.nn.Parameter(torch.zeros(3, dtype=torch.float64)),
    ],
)
def test_training_inside(make):
    """A step of gradient descent from zero towards v²."""

    def trained(v):
        w = make()
        ((w - v * v) ** 2).sum().backward(create_graph=True)
        return w - 0.2 * w.grad

    close(trained(x()), 0.4 * X * X)
    close(vmap(trained)(batch()), 0.4 * batch().numpy() ** 2)
    close(jacrev(trained)(x()), np.diag(0.8 * X))
    close(jacfwd(trained)(x()), np.diag(0.8 * X))
    close(vmap(jacrev(trained))(batch())[1], np.diag(1.6 * X))
    close(vmap(jacfwd(trained))(batch())[1], np.diag(1.6 * X))


def test_updates_inside():
    def trained(v):
        w = zeros(3).requires_grad_()
        for _ in range(2):
            ((w - v) ** 2).sum().backward()
            with torch.no_grad():
                w -= 0.2 * w.grad
            w.grad = None
        return w.detach()

    close(trained(x()), 0.64 * X)
    close(vmap(trained)(batch()), 0.64 * batch().numpy())


def test_leaves_made_inside_are_leaves_afterwards():
    kept = []

    def f(v):
        w = zeros(3).requires_grad_()
        kept.append(w)
        return (w + v).sum()

    grad(f)(x())
    jvp(f, (x(),), (torch.ones_like(x()),))
    for w in kept:
        assert w.requires_grad and w.is_leaf
        (w + 1).sum().backward()
        close(w.grad, [1, 1, 1])
    outer = zeros(3).requires_grad_()  # a leaf from outside stays one of the level outside
    vmap(lambda v: (outer * v).sum())(batch()).sum().backward()
    close(outer.grad, 3 * X)


def through_data(x):
    y = x * 2
    y.data.mul_(3)
    return y * x


def shown_later(x):
    y = x * 2
    old = y.data
    y.mul_(3)
    return old * x


def ended(x):
    y = x * 2
    y.detach_()
    return y * x


@pytest.mark.parametrize("f, slope", [(through_data, 8), (shown_later, 6), (ended, 2)])
def test_data_and_detach_in_place(f, slope):
    """Values are written, histories are not; slopes per unit of x, of f or of its tangents."""
    value = f(x())
    assert torch.allclose(grad(lambda x: f(x).sum())(x()), slope * x())
    primal, tangent = jvp(f, (x(),), (torch.ones(3, dtype=torch.float64),))
    assert torch.allclose(primal, value) and torch.allclose(tangent, slope * x())
    for mode in ("real", "symbolic"):
        graph = make_fx(f, tracing_mode=mode)(x() * 5)
        assert torch.allclose(graph(x()), value)
        assert torch.allclose(grad(lambda x, g=graph: g(x).sum())(x()),
                              (slope if f is not through_data else 6) * x())
    assert torch.allclose(torch.func.functionalize(f)(x()), value)


def written_unrecorded(x):
    y = x * 1
    with torch.no_grad():
        y[:1].mul_(3)
    return (y * x).sum()


def written_behind(x):
    y = x * 1
    y.detach()[0] = 9.0
    return (y * x).sum()


@pytest.mark.parametrize("f, slope, moved, bend", [
    (written_unrecorded, lambda x: x * torch.tensor([4.0, 2, 2]),
     lambda x: x * torch.tensor([6.0, 2, 2]), [4, 2, 2]),  # no_grad does not stop tangents
    (written_behind, *[lambda x: x + torch.cat([9 + 0 * x[:1], x[1:]])] * 2, [2, 2, 2])])
def test_writes_without_history_leave_those_of_all_levels(f, slope, moved, bend):
    together = grad(lambda b: vmap(f)(b).sum())
    for found in (together(batch()), vmap(grad(f))(batch()), torch.stack([*map(grad(f), batch())])):
        assert torch.allclose(found, vmap(slope)(batch()))
    assert torch.allclose(vmap(jacfwd(f))(batch()), vmap(moved)(batch()))
    assert torch.allclose(hessian(f)(x()), torch.diag(torch.tensor(bend, dtype=torch.float64)))
