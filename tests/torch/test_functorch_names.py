"""What programs for the package `functorch` import, and what transforms say about outputs."""

import copy
import warnings

import pytest

import pullback as pb
from pullback import nn
from pullback.autograd import forward_ad
from pullback.func import grad, grad_and_value, jacfwd, jacrev, jvp, vjp
from pullback.func.vmap import chunk_vmap, restore_vmap
from pullback.nn import functorch, older


class Tied(nn.Module):
    """A weight under two names, and a buffer that a call writes."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3, bias=False)
        self.again = self.first.weight
        self.register_buffer("calls", pb.zeros(()))

    def forward(self, x):
        self.calls += 1
        return self.first(x) @ self.again


def test_make_functional_takes_tensors_by_position():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    run, params = older.make_functional(model)
    x = pb.arange(6.0).reshape(2, 3)
    assert run.param_names == ("0.weight", "0.bias", "2.weight", "2.bias")
    assert all(p is not q and p.requires_grad for p, q in zip(params, model.parameters()))
    assert pb.equal(run(params, x), model(x))
    zeros = tuple(pb.zeros_like(p) for p in params)
    assert not run(zeros, x).any() and model(x).any()
    _, frozen = older.make_functional(model, disable_autograd_tracking=True)
    assert not any(p.requires_grad for p in frozen)
    assert all(p.requires_grad for p in model.parameters())
    with pytest.raises(TypeError, match="takes 4 tensors here, got 3"):
        run(params[:3], x)


def test_make_functional_with_buffers_ties_and_writes():
    with pytest.raises(RuntimeError, match="has buffers"):
        older.make_functional(Tied())
    model = Tied()
    run, params, buffers = older.make_functional_with_buffers(model)
    assert len(params) == len(buffers) == 1 and run.buffer_names == ("calls",)
    assert run.names_map["again"] == ["again", "first.weight"]
    eye = pb.eye(3)
    assert pb.equal(run((2 * eye,), buffers, eye), 4 * eye)
    assert buffers[0] == 1 and model.calls == 0


def test_ensembles():
    models = [nn.Linear(2, 2) for _ in range(3)]
    run, params, buffers = older.combine_state_for_ensemble(models)
    xs = pb.arange(12.0).reshape(3, 2, 2)
    expected = pb.stack([model(x) for model, x in zip(models, xs)])
    assert buffers == () and pb.allclose(pb.vmap(run)(params, buffers, xs), expected)
    for bad, words in (([], "at least one"), ([models[0], nn.Tanh()], "same class"),
                       ([models[0], nn.Linear(2, 2).eval()], "training/eval")):
        with pytest.raises(RuntimeError, match=words):
            older.combine_state_for_ensemble(bad)
    weights, run, names = older.functional_init(nn.Linear, (4,))(2, 5)
    assert [w.shape for w in weights] == [(4, 5, 2), (4, 5)] and names == ("weight", "bias")
    assert pb.vmap(run)(weights, (pb.ones(4, 2),)).shape == (4, 5)
    one = older.functional_init_with_buffers(nn.BatchNorm1d)(5)
    assert [len(part) for part in (one[0], one[1], one[3], one[4])] == [2, 3, 2, 3]


def test_first_names_warn():
    with pytest.warns(FutureWarning, match=r"use `torch\.func\.grad`"):
        assert functorch.grad(lambda x: x * x)(pb.tensor(3.0)) == 6
    with pytest.warns(FutureWarning, match=r"use `torch\.vmap`"):
        functorch.vmap(pb.sin)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grad(pb.sin)(pb.tensor(0.0))


@pytest.mark.parametrize("chunks", [1, 2, 3, 7])
def test_chunk_vmap(chunks):
    x = pb.arange(10.0).reshape(2, 5)
    seen = []
    out = chunk_vmap(lambda v: seen.append(1) or v.cumsum(0), 1, 1, chunks=chunks)(x)
    assert pb.equal(out, x.cumsum(0)) and len(seen) == {1: 1, 2: 2, 3: 3, 7: 5}[chunks]
    with pytest.raises(ValueError, match="positive"):
        chunk_vmap(pb.sin, chunks=0)


def test_restore_vmap_says_where_the_dimension_is():
    x = pb.arange(6.0).reshape(2, 3)

    def f(a, b):
        return {"both": a + b, "one": b.clone()}

    out, dims = restore_vmap(f, (1, None), 3, "error")(x, pb.ones(2))
    assert dims["one"] is None and pb.equal(out["one"], pb.ones(2))
    assert pb.equal(out["both"].movedim(dims["both"], 0), x.T + 1)


@pytest.mark.parametrize("aux", [1, "text", None, [pb.ones(1), 2.0]])
def test_auxiliary_values_are_tensors(aux):
    x = pb.ones(3)
    for run in (lambda f: grad(f, has_aux=True)(x), lambda f: vjp(f, x, has_aux=True),
                lambda f: jvp(f, (x,), (x,), has_aux=True),
                lambda f: jacrev(f, has_aux=True)(x), lambda f: jacfwd(f, has_aux=True)(x)):
        with pytest.raises(RuntimeError, match="Expected tensors, got unsupported type"):
            run(lambda v: (v.sum(), aux))
        for bad in (lambda v: [v.sum(), v], lambda v: (v.sum(), v, v), lambda v: v.sum()):
            with pytest.raises(RuntimeError, match="should be a tuple"):
                run(bad)


def test_what_functions_must_return():
    x = pb.ones(2)
    for out in (None, (), []):
        for run in (lambda f: vjp(f, x), lambda f: jvp(f, (x,), (x,))):
            with pytest.raises(RuntimeError, match="non-empty output"):
                run(lambda v: out)
    with pytest.raises(RuntimeError, match="only tensors, got int"):
        vjp(lambda v: (v, 1), x)
    with pytest.raises(RuntimeError, match="primals to be a tuple"):
        jvp(pb.sin, x, (x,))
    with pytest.raises(RuntimeError, match="same python structure"):
        jvp(pb.sin, (x,), [x])
    with pytest.raises(RuntimeError, match="int or Tuple"):
        grad_and_value(pb.sum, argnums=[0])(x)


def test_the_pullback_takes_one_structure():
    x = pb.ones(2)
    _, pull = vjp(lambda v: (v * 2, v * 3), x)
    assert pb.equal(pull((x, x))[0], 5 * x)
    assert pb.equal(pull((x, x), True, True)[0], 5 * x)
    _, pull = vjp(pb.sin, x)
    with pytest.raises(RuntimeError, match="pytree structure of cotangents"):
        pull((x,))


def test_tangents_switched_off_inside_jvp():
    def f(x):
        with forward_ad.set_fwd_grad_enabled(False):
            constant = x * x
        return x * x - constant

    x, one = pb.tensor(3.0), pb.tensor(1.0)
    assert jvp(f, (x,), (one,))[1] == 6
    assert jvp(lambda y: jvp(f, (y,), (one,))[1], (x,), (one,))[1] == 2
    with forward_ad.set_fwd_grad_enabled(False):  # a transform begins afresh
        assert jvp(lambda y: y * y, (x,), (one,))[1] == 6
        assert jvp(lambda y: jvp(lambda z: z * z, (y,), (one,))[1], (x,), (one,))[1] == 2
    # the inner switch does not reach the outer level
    def inner(y):
        def g(z):
            with forward_ad.set_fwd_grad_enabled(False):
                return y * z
        return jvp(g, (y,), (one,))[0]
    assert jvp(inner, (x,), (one,))[1] == 6


def test_registered_operators_are_copied_as_names():
    with pb.library._scoped_library("functorch_names", "FRAGMENT") as made:
        made.define("twice(Tensor x) -> Tensor")
        packet = pb.ops.functorch_names.twice
        assert copy.deepcopy(packet) is packet and copy.copy(packet) is packet
        assert not hasattr(packet, "missing")
