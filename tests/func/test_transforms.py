"""Function transforms, one small test per behaviour that PyTorch's own tests ask for.

What nests with what is in `test_nesting.py`; custom functions in `../autograd/test_function.py`.
"""

import functools
import warnings

import pytest

import pullback as torch
from pullback import nn
from pullback.func import (
    functional_call,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)
from pullback.func.grad import _slice_argnums
from pullback.fx.make_fx import make_fx
from pullback.nn import functorch

X = torch.tensor([0.3, -1.2, 2.0])


def close(a, b):
    assert torch.allclose(torch.as_tensor(a), torch.as_tensor(b), atol=1e-6)


# which arguments

@pytest.mark.parametrize("argnums, what", [
    (0.0, "int or Tuple"), ([0], "int or Tuple"), ((0.0,), "must be int"),
    (((0, 1), 2), "must be int"), (3, "positional inputs"), (-4, "positional inputs"),
    ((-4,), "but only"), ((), "must be non-empty"), ((0, 0), "must be unique"),
    ((0, -3), "must be unique")])
def test_wrong_numbers_of_arguments(argnums, what):
    with pytest.raises(RuntimeError, match=what):
        _slice_argnums((1.0, 2.0, 3.0), argnums)
    for transform in (grad, jacrev, jacfwd):
        with pytest.raises(RuntimeError, match=what):
            transform(lambda *xs: sum(x.sum() for x in xs), argnums)(X, X, X)


def test_numbers_of_arguments():
    args = ((1.0, 2.0), 3.0, [4.0])
    assert _slice_argnums(args, 0) == (args[0],) and _slice_argnums(args, -1) == ([4.0],)
    assert _slice_argnums(args, (1, 0)) == (3.0, (1.0, 2.0))
    assert _slice_argnums(args, 0, as_tuple=False) == (1.0, 2.0)

    def f(x, y):
        return (x * y**2).sum()

    close(grad(f, 1)(X, X), 2 * X * X)
    swapped = grad(f, (1, 0))(X, X)
    close(swapped[0], 2 * X * X)
    close(swapped[1], X**2)
    assert isinstance(grad(f, (-1,))(X, X), tuple)


def test_trees_keywords_and_unused_inputs():
    found = grad(lambda t: (t["a"] ** 2).sum() + 3 * t["b"][0])({"a": X, "b": (X[0], X)})
    close(found["a"], 2 * X)
    close(found["b"][0], 3.0)
    close(found["b"][1], torch.zeros(3))
    close(grad(lambda x, y: (x * y).sum())(X, y=X), X)
    assert grad(lambda x: X.sum())(X).tolist() == [0, 0, 0]
    assert vjp(lambda x: X * 1, X)[1](X)[0].tolist() == [0, 0, 0]
    assert hessian(lambda x: X.sum())(X).tolist() == [[0] * 3] * 3
    assert jacrev(lambda x, y: y * 1, argnums=(0, 1))(X, X)[0].tolist() == [[0] * 3] * 3


# what is seen inside

def test_facts_are_read_through():
    x = torch.ones(2, 3, dtype=torch.float64)
    seen = []

    def f(t):
        seen.append((t.shape, t.dtype, t.is_cuda, t.numel(), t.layout, t.tolist(), t.stride()))
        return t.sum()

    f(x)
    grad(f)(x)
    grad(lambda t: grad(f)(t).sum())(x)
    jvp(f, (x,), (x,))
    assert all(s == seen[0] for s in seen) and len(seen) == 4


def test_printed():
    seen = []

    def f(x):
        seen.append(repr(x).replace("\n", "").replace("  ", ""))
        return x.mean()

    x = torch.ones(2)
    grad(f)(x)
    grad(grad(f))(x[0])
    vmap(f)(x)
    vmap(vmap(f))(torch.ones(1, 2))
    vmap(grad(f))(torch.ones(1, 2))
    inner = "tensor([[1., 1.]])"
    assert seen == [
        "GradTrackingTensor(lvl=1, value=tensor([1., 1.]))",
        "GradTrackingTensor(lvl=2, value=GradTrackingTensor(lvl=1, value=tensor(1.)))",
        "BatchedTensor(lvl=1, bdim=0, value=tensor([1., 1.]))",
        f"BatchedTensor(lvl=2, bdim=0, value=BatchedTensor(lvl=1, bdim=0, value={inner}))",
        f"GradTrackingTensor(lvl=2, value=BatchedTensor(lvl=1, bdim=0, value={inner}))"]
    seen.clear()
    vjp(lambda y: seen.append(repr(X)) or y, torch.ones(4))
    assert seen == [repr(X)]


# writes and views

@pytest.mark.parametrize("f", [
    lambda x: x.clone().sin_().sum(),
    lambda x: (lambda y: (y[0].sin_(), y.sum())[1])(x.clone()),
    lambda x: (lambda y: (lambda v: (y.sin_(), v)[1])(y[0]))(x.clone()),
    lambda x: (x.view(3, 1).sin() * 2).sum(),
    lambda x: x[[0, 0, 2]].exp().sum()], ids=["inplace", "view", "base", "views", "indices"])
def test_writes_and_views_inside(f):
    leaf = X.clone().requires_grad_()
    (wanted,) = torch.autograd.grad(f(leaf), leaf)
    close(grad(f)(X), wanted)
    close(torch.stack([jvp(f, (X,), (e,))[1] for e in torch.eye(3)]), wanted)


def test_seeds_and_tensors_made_inside():
    def f(x):
        torch.manual_seed(0)
        return (x * torch.randn_like(x)).sum()

    leaf = X.clone().requires_grad_()
    (wanted,) = torch.autograd.grad(f(leaf), leaf)
    close(grad(f)(X), wanted)
    close(grad(lambda x: (torch.tensor([1.0, 2.0, 3.0]) * x).sum())(X), [1.0, 2.0, 3.0])


# modes

def test_no_grad_inside_and_around():
    def shifted(x):
        with torch.no_grad():
            shift = x**2
        return x**2 - shift

    x = torch.tensor(1.5, requires_grad=True)
    with torch.no_grad():
        y = grad(shifted)(x)
    assert y == 3 and not y.requires_grad
    y = grad(shifted)(x)
    assert y == 3 and torch.autograd.grad(y, x)[0] == 2 and grad(grad(shifted))(x) == 2

    def nested(x):
        with torch.no_grad():
            shift = grad(lambda x: 0.25 * x**4)(x)
        return x**3 - shift

    y = grad(nested)(x)
    close(y, 3 * x**2)
    close(torch.autograd.grad(y, x)[0], 6 * x)

    def twice(x):
        with torch.no_grad():
            shift = grad(shifted)(x)
        return grad(shifted)(x) * x - shift

    close(grad(twice)(x), 4 * x)

    def value(x):
        with torch.no_grad():
            found = grad_and_value(lambda x: x**3)(x)[1]
        return x**3 - found

    close(grad(value)(x), 3 * x**2)


def test_no_grad_around_vjp():
    x = torch.tensor(2.0, requires_grad=True)
    one = torch.tensor(1.0)
    with torch.no_grad():
        out, pull = vjp(lambda x: x**2, x)
        inside = pull(one)[0]
    outside = pull(one)[0]
    assert inside == outside == 4 and not out.requires_grad and not inside.requires_grad
    assert outside.requires_grad and torch.autograd.grad(outside, x)[0] == 2
    out, pull = vjp(lambda x: x**2, x)
    with torch.no_grad():
        assert not pull(one)[0].requires_grad
    assert torch.autograd.grad(out, x)[0] == 4


@pytest.mark.parametrize("run, wanted", [
    (lambda: grad(lambda x: (x**2).sum())(X), 2 * X),
    (lambda: vjp(lambda x: (x**2).sum(), X)[1](torch.tensor(1.0))[0], 2 * X),
    (lambda: jvp(lambda x: (x**2).sum(), (X,), (torch.ones(3),))[1], (2 * X).sum()),
    (lambda: jacrev(lambda x: x**2)(X), torch.diag(2 * X)),
    (lambda: jacfwd(lambda x: x**2)(X), torch.diag(2 * X)),
    (lambda: vmap(grad(lambda x: (x**2).sum()))(X.expand(2, 3)), (2 * X).expand(2, 3)),
    (lambda: grad(lambda x: vmap(lambda x: x**2)(x).sum())(X), 2 * X),
    (lambda: grad(grad(lambda x: x**3))(X[0]), 6 * X[0]),
    (lambda: jacrev(grad(lambda x: (x**3).sum()))(X), torch.diag(6 * X)),
    (lambda: hessian(lambda x: (x**3).sum())(X), torch.diag(6 * X))])
def test_inference_mode_around(run, wanted):
    with torch.inference_mode():
        found = run()
        with torch.no_grad():
            close(run(), wanted)
        assert torch.is_inference_mode_enabled()
    close(found, wanted)
    assert not torch.is_inference_mode_enabled()


def test_inference_mode_inside():
    def f(x):
        with torch.inference_mode():
            constant = x**2
        return (x - constant).sum()

    for mode in (torch.inference_mode, torch.enable_grad):
        with mode():
            assert grad(f)(X).tolist() == [1, 1, 1]


# jacobians

def test_structures_of_jacobians():
    def f(x, y):
        return {"a": x * y.sum(), "b": (y**2, [x.sum()])}

    x, y = X, torch.tensor([[1.0, 2.0]])
    for jac in (jacrev, jacfwd):
        found = jac(f)(x, y)
        assert found["a"].shape == (3, 3) and found["b"][0].shape == (1, 2, 3)
        assert found["b"][1][0].shape == (3,)
        both = jac(f, (1, 0))(x, y)
        close(both["a"][0], x[:, None, None].expand(3, 1, 2))
        close(both["b"][0][0], torch.diag(2 * y[0]).reshape(1, 2, 1, 2))
        assert jac(lambda x, n: x * n)(x, 2).tolist() == (2 * torch.eye(3)).tolist()
        close(jac(jac(torch.sin))(x[0]), -x[0].sin())
        close(vmap(jac(torch.sin))(x.expand(2, 3)), torch.diag(x.cos()).expand(2, 3, 3))
        close(jac(lambda x: (x**2, x + 1), has_aux=True)(x)[1], x + 1)
        assert jac(lambda x: x.take(torch.tensor([0])))(x).shape == (1, 3)
        with pytest.raises(RuntimeError, match="xpected"):
            jac(lambda x: ())(x)
        with pytest.raises(RuntimeError, match="all inputs"):
            jac(torch.sin)(torch.tensor([1j]))
        with pytest.raises(RuntimeError, match="all outputs"):
            jac(lambda x: x * 1j)(x)
        with pytest.raises(RuntimeError, match="should be a tuple"):
            jac(lambda x: x, has_aux=True)(x)


def test_chunked_jacobians():
    def f(x):
        return x.sin().outer(x)

    wanted = jacrev(f)(X)
    for size in (1, 2, 4, 100):
        for preallocate in (False, True):
            found = jacrev(f, chunk_size=size, _preallocate_and_copy=preallocate)(X)
            close(found, wanted)
    for size in (0, -1):
        with pytest.raises(ValueError, match="greater than 0"):
            jacrev(f, chunk_size=size)(X)


def test_hessians():
    def f(x, y):
        return (x**2 * y).sum() + x.prod()

    (xx, xy), (yx, yy) = hessian(f, (0, 1))(X, X)
    close(xy, torch.diag(2 * X))
    close(yx, xy.T)
    assert not yy.any()
    close(xx, jacrev(jacfwd(f))(X, X))
    close(vmap(hessian(lambda x: (x**3).sum()))(X.expand(2, 3)), torch.diag(6 * X).expand(2, 3, 3))


# forward mode

def test_refusals_of_jvp():
    with pytest.raises(RuntimeError, match="tuple"):
        jvp(torch.sin, X, X)
    with pytest.raises(RuntimeError, match="same python structure"):
        jvp(torch.sin, (X,), ([X],))
    with pytest.raises(RuntimeError, match="only contain Tensors"):
        jvp(torch.sin, (1.0,), (1.0,))
    with pytest.raises(RuntimeError, match="at least one Tensor"):
        jvp(lambda: X, (), ())
    with pytest.raises(RuntimeError, match="strict"):
        jvp(lambda x: X * 1, (X,), (X,), strict=True)
    with pytest.raises(RuntimeError, match="non-empty output"):
        jvp(lambda x: None, (X,), (X,))
    assert jvp(lambda x: (X * 1, x), (X,), (X,))[1][0].tolist() == [0, 0, 0]
    assert jvp(lambda x: torch.zeros(2), (X,), (X,))[1].tolist() == [0, 0]


def test_linear_maps():
    def f(tree):
        return {"sum": tree["x"].sum(), "rest": (tree["y"] * tree["x"], tree["y"].exp())}

    primal, tangent = {"x": X, "y": X + 1}, {"x": X * 2, "y": X - 1}
    out, push = linearize(f, primal)
    wanted = jvp(f, (primal,), (tangent,))
    close(out["rest"][0], wanted[0]["rest"][0])
    for a, b in zip((push(tangent)["sum"], *push(tangent)["rest"]),
                    (wanted[1]["sum"], *wanted[1]["rest"])):
        close(a, b)
    _, push = linearize(torch.sin, X)
    close(vmap(push)(torch.eye(3)), torch.diag(X.cos()))
    close(linearize(grad(lambda x: (x**3).sum()), X)[1](X), 6 * X * X)


def test_tangents_follow_views_under_vmap():
    def copied(x, y):
        x = x.clone()
        view = x[0]
        view.copy_(y)
        return view, x

    def written(x, y):
        x = x.clone()
        view = x[0]
        x.copy_(y.expand(2, 3))
        return view, x

    x, y, t = torch.ones(4, 2, 3), X.expand(4, 3), torch.eye(4, 3)
    for f, rows in ((copied, 1), (written, 2)):
        _, (view, base) = vmap(lambda x, y, t: jvp(functools.partial(f, x), (y,), (t,)))(x, y, t)
        close(view, t)
        close(base.sum(1), rows * t)


# composition, modules

def test_old_names_warn():
    with pytest.warns(FutureWarning, match=r"Please use `torch\.vmap`"):
        functorch.vmap(torch.sin)
    for name in ("grad", "jacrev", "jacfwd", "grad_and_value", "hessian", "functionalize"):
        with pytest.warns(FutureWarning, match=rf"Please use `torch\.func\.{name}`"):
            getattr(functorch, name)(torch.sin)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vmap(torch.sin)


def test_captured_transforms():
    def check(f, *args):
        graph = make_fx(f)(*args)
        close(graph(*args), f(*args))

    check(grad(lambda x: x.sin().sum()), X)
    check(vmap(torch.sin), X)
    check(vmap(grad(torch.sin)), X)
    check(lambda x: vjp(torch.sin, x)[1](x)[0], X)
    check(jacrev(torch.sin), X)
    check(lambda x: jvp(torch.sin, (x,), (x,))[1], X)
    check(functionalize(lambda x: x.clone().sin_()), X)


def test_state_of_modules():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(3, 3, bias=False)
            self.b = self.a

        def forward(self, x):
            return self.b(self.a(x))

    module, x = Tied(), torch.eye(3)
    before = module.a.weight
    assert len(dict(module.named_parameters())) == 1
    close(functional_call(module, {"a.weight": 2 * torch.eye(3)}, x), 4 * torch.eye(3))
    close(functional_call(module, ({"a.weight": torch.eye(3)}, {}), (x,)), x)
    assert module.a.weight is before

    models = [nn.Linear(2, 2) for _ in range(3)]
    params, buffers = stack_module_state(models)
    assert params["weight"].shape == (3, 2, 2) and params["weight"].is_leaf and not buffers
    assert params["weight"].requires_grad
    x = torch.ones(2)
    found = vmap(lambda p: functional_call(models[0], p, x))(params)
    close(found, torch.stack([m(x) for m in models]))
    for wrong, what in (([], "at least one model"),
                        ([models[0], nn.Bilinear(2, 2, 2)], "same class"),
                        ([models[0], nn.Linear(2, 2).eval()], "same training/eval mode"),
                        ([models[0], nn.Linear(2, 2).requires_grad_(False)], "requires_grad")):
        with pytest.raises(RuntimeError, match=what):
            stack_module_state(wrong)


def test_small_programs():
    """An inner step of learning, gradients per sample, a running mean, forces of a potential."""
    def loss(w, x):
        return ((x * w).sum() - 1) ** 2

    adapted = grad(lambda w: loss(w - 0.1 * grad(loss)(w, X), X))(X)
    leaf = X.clone().requires_grad_()
    (g,) = torch.autograd.grad(loss(leaf, X), leaf, create_graph=True)
    close(adapted, torch.autograd.grad(loss(leaf - 0.1 * g, X), leaf)[0])

    rows = torch.arange(6.0).reshape(2, 3)
    close(vmap(grad(loss), (None, 0))(X, rows), torch.stack([grad(loss)(X, r) for r in rows]))

    def mean_into(running, x):
        return running.lerp_(x.mean(), 0.5)

    out = vmap(mean_into)(torch.zeros(2), rows)
    close(out, rows.mean(1) / 2)

    def energy(r):
        return 4 * (r**-12 - r**-6)

    radii = torch.tensor([1.0, 1.5, 2.0])
    close(-vmap(jacrev(energy))(radii), 24 * (2 * radii**-13 - radii**-7))


def test_compiled_transforms():
    f = torch.compile(vmap(hessian(lambda x: (x**3).sum())))
    close(f(X.expand(2, 3)), torch.diag(6 * X).expand(2, 3, 3))
    close(torch.compile(lambda x: grad(lambda t: t.sin().sum())(x))(X), X.cos())
